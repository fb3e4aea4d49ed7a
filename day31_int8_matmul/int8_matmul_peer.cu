#include "int8_matmul_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>

#include "common/check/check_cublas.hpp"

namespace day31 {

std::string cublas_constraint(const MatmulShape& shape) {
    return shape.k % 4 != 0 || shape.n % 4 != 0 ? "cuBLAS requires k and n to be multiples of 4" : "";
}

// cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T = W A^T,
// where W has to be transposed back.
std::function<void(cudaStream_t)> make_cublas_int8(course::DeviceMatrix<const std::int8_t> a,
                                                   course::DeviceMatrix<const std::int8_t> w,
                                                   course::DeviceMatrix<std::int32_t> c) {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    const std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    return [=](cudaStream_t stream) {
        const int one = 1;
        const int zero = 0;
        const auto count = [](std::size_t n) { return static_cast<int>(n); };
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasGemmEx(handle.get(), CUBLAS_OP_T, CUBLAS_OP_N, count(c.cols()), count(c.rows()),
                                  count(a.cols()), &one, w.data(), CUDA_R_8I, count(w.leading_dimension()),
                                  a.data(), CUDA_R_8I, count(a.leading_dimension()), &zero, c.data(),
                                  CUDA_R_32I, count(c.leading_dimension()), CUBLAS_COMPUTE_32I,
                                  CUBLAS_GEMM_DEFAULT));
    };
}

}  // namespace day31

#else

namespace day31 {

std::string cublas_constraint(const MatmulShape&) {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas_int8(course::DeviceMatrix<const std::int8_t>,
                                                   course::DeviceMatrix<const std::int8_t>,
                                                   course::DeviceMatrix<std::int32_t>) {
    return {};
}

}  // namespace day31

#endif

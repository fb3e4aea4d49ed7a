#include "llm_int8_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>

#include "common/check/check_cublas.hpp"

namespace day32 {

std::string why_no_cublas() {
    return "";
}

// cuBLAS is column-major, and a row-major matrix read by columns is its transpose: Y^T = W X^T,
// where W has to be transposed back.
std::function<void(cudaStream_t)> make_cublas_half(course::DeviceMatrix<const __half> x,
                                                   course::DeviceMatrix<const __half> w,
                                                   course::DeviceMatrix<__half> y) {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    const std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    return [=](cudaStream_t stream) {
        const float one = 1;
        const float zero = 0;
        const auto count = [](std::size_t n) { return static_cast<int>(n); };
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasGemmEx(handle.get(), CUBLAS_OP_T, CUBLAS_OP_N, count(y.cols()), count(y.rows()),
                                  count(x.cols()), &one, w.data(), CUDA_R_16F, count(w.leading_dimension()),
                                  x.data(), CUDA_R_16F, count(x.leading_dimension()), &zero, y.data(),
                                  CUDA_R_16F, count(y.leading_dimension()), CUBLAS_COMPUTE_32F,
                                  CUBLAS_GEMM_DEFAULT));
    };
}

}  // namespace day32

#else

namespace day32 {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas_half(course::DeviceMatrix<const __half>,
                                                   course::DeviceMatrix<const __half>,
                                                   course::DeviceMatrix<__half>) {
    return {};
}

}  // namespace day32

#endif

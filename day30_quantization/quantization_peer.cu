#include "quantization_peer.hpp"

namespace day30 {

std::string cublas_int8_constraint(const MatmulShape& shape) {
    return shape.k % 4 != 0 || shape.n % 4 != 0 ? "cuBLAS wants k and n to be multiples of 4" : "";
}

}  // namespace day30

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>

#include "common/check/check_cublas.hpp"

namespace day30 {
namespace {

std::shared_ptr<cublasContext> make_handle() {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    return {raw, cublasDestroy};
}

// C = A W^T, row-major. cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T = W A^T, where W has to be
// transposed back.
template <class T, class Result, class Scalar>
std::function<void(cudaStream_t)> make_product(course::DeviceMatrix<const T> a,
                                               course::DeviceMatrix<const T> w,
                                               course::DeviceMatrix<Result> c, cudaDataType_t type,
                                               cudaDataType_t result_type, cublasComputeType_t compute) {
    return [=, handle = make_handle()](cudaStream_t stream) {
        const Scalar one = 1;
        const Scalar zero = 0;
        const auto count = [](std::size_t n) { return static_cast<int>(n); };
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasGemmEx(handle.get(), CUBLAS_OP_T, CUBLAS_OP_N, count(c.cols()), count(c.rows()),
                                  count(a.cols()), &one, w.data(), type, count(w.leading_dimension()),
                                  a.data(), type, count(a.leading_dimension()), &zero, c.data(), result_type,
                                  count(c.leading_dimension()), compute, CUBLAS_GEMM_DEFAULT));
    };
}

}  // namespace

std::string why_no_cublas() {
    return "";
}

std::function<void(cudaStream_t)> make_cublas_int8(course::DeviceMatrix<const std::int8_t> a,
                                                   course::DeviceMatrix<const std::int8_t> w,
                                                   course::DeviceMatrix<std::int32_t> c) {
    return make_product<std::int8_t, std::int32_t, int>(a, w, c, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I);
}

std::function<void(cudaStream_t)> make_cublas_half(course::DeviceMatrix<const __half> x,
                                                   course::DeviceMatrix<const __half> w,
                                                   course::DeviceMatrix<__half> y) {
    return make_product<__half, __half, float>(x, w, y, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F);
}

}  // namespace day30

#else

namespace day30 {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas_int8(course::DeviceMatrix<const std::int8_t>,
                                                   course::DeviceMatrix<const std::int8_t>,
                                                   course::DeviceMatrix<std::int32_t>) {
    return {};
}

std::function<void(cudaStream_t)> make_cublas_half(course::DeviceMatrix<const __half>,
                                                   course::DeviceMatrix<const __half>,
                                                   course::DeviceMatrix<__half>) {
    return {};
}

}  // namespace day30

#endif

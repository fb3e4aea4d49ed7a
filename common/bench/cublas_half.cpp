#include "common/bench/cublas_half.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>
#include <type_traits>

#include "common/check/check_cublas.hpp"

namespace course::half_matmul {

std::string why_no_cublas() {
    return "";
}

template <class T>
std::function<void(cudaStream_t)> make_cublas(const Gemm<T>& gemm) {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    return [gemm, handle = std::shared_ptr<cublasContext>(raw, cublasDestroy)](cudaStream_t stream) {
        constexpr cudaDataType_t kType = std::is_same_v<T, __half> ? CUDA_R_16F : CUDA_R_16BF;
        const auto& [a, b, c, alpha, beta] = gemm;
        const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        // cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T =
        // B^T A^T.
        CUBLAS_CHECK(cublasGemmEx_64(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, count(c.cols()), count(c.rows()),
                                     count(a.cols()), &alpha, b.data(), kType, count(b.leading_dimension()),
                                     a.data(), kType, count(a.leading_dimension()), &beta, c.data(),
                                     CUDA_R_32F, count(c.leading_dimension()), CUBLAS_COMPUTE_32F,
                                     CUBLAS_GEMM_DEFAULT));
    };
}

#else

namespace course::half_matmul {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

template <class T>
std::function<void(cudaStream_t)> make_cublas(const Gemm<T>&) {
    return {};
}

#endif

template std::function<void(cudaStream_t)> make_cublas(const Gemm<__half>&);
template std::function<void(cudaStream_t)> make_cublas(const Gemm<__nv_bfloat16>&);

}  // namespace course::half_matmul

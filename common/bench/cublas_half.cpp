#include "common/bench/cublas_half.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>
#include <type_traits>

#include "common/check/check_cublas.hpp"

namespace course::half_matmul {
namespace {

template <class T>
constexpr cudaDataType_t kType = std::is_same_v<T, float>    ? CUDA_R_32F
                                 : std::is_same_v<T, __half> ? CUDA_R_16F
                                                             : CUDA_R_16BF;

template <class T, class Result>
std::function<void(cudaStream_t)> make_call(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b,
                                            const DeviceMatrix<Result>& c, float alpha, float beta) {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    // Where K is split, parts of a sum could otherwise be rounded to 16 bits before they are added.
    if constexpr (!std::is_same_v<Result, float>)
        CUBLAS_CHECK(cublasSetMathMode(raw, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    return [=](cudaStream_t stream) {
        const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        // cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T =
        // B^T A^T.
        CUBLAS_CHECK(cublasGemmEx_64(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, count(c.cols()), count(c.rows()),
                                     count(a.cols()), &alpha, b.data(), kType<T>,
                                     count(b.leading_dimension()), a.data(), kType<T>,
                                     count(a.leading_dimension()), &beta, c.data(), kType<Result>,
                                     count(c.leading_dimension()), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    };
}

}  // namespace

std::string why_no_cublas() {
    return "";
}

template <class T>
std::function<void(cudaStream_t)> make_cublas(const Gemm<T>& gemm) {
    return make_call<T>(gemm.a, gemm.b, gemm.c, gemm.alpha, gemm.beta);
}

template <class T>
std::function<void(cudaStream_t)> make_cublas(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b,
                                              const DeviceMatrix<T>& c) {
    return make_call<T>(a, b, c, 1, 0);
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

template <class T>
std::function<void(cudaStream_t)> make_cublas(const DeviceMatrix<const T>&, const DeviceMatrix<const T>&,
                                              const DeviceMatrix<T>&) {
    return {};
}

#endif

template std::function<void(cudaStream_t)> make_cublas(const Gemm<__half>&);
template std::function<void(cudaStream_t)> make_cublas(const Gemm<__nv_bfloat16>&);
template std::function<void(cudaStream_t)> make_cublas(const DeviceMatrix<const __half>&,
                                                       const DeviceMatrix<const __half>&,
                                                       const DeviceMatrix<__half>&);
template std::function<void(cudaStream_t)> make_cublas(const DeviceMatrix<const __nv_bfloat16>&,
                                                       const DeviceMatrix<const __nv_bfloat16>&,
                                                       const DeviceMatrix<__nv_bfloat16>&);

}  // namespace course::half_matmul

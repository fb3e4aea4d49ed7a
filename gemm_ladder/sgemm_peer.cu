#include "sgemm_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>

#include "common/check/check_cublas.hpp"

namespace gemm {

std::string why_no_cublas() {
    return "";
}

std::function<void(cudaStream_t)> make_cublas(const Sgemm& gemm, bool tf32) {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    const std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    CUBLAS_CHECK(cublasSetMathMode(handle.get(), tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
    return [handle, gemm](cudaStream_t stream) {
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        const auto& [a, b, c, alpha, beta, scratch] = gemm;
        // cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T =
        // B^T A^T.
        CUBLAS_CHECK(cublasSgemm_64(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N,
                                    static_cast<std::int64_t>(c.cols()), static_cast<std::int64_t>(c.rows()),
                                    static_cast<std::int64_t>(a.cols()), &alpha, b.data(),
                                    static_cast<std::int64_t>(b.leading_dimension()), a.data(),
                                    static_cast<std::int64_t>(a.leading_dimension()), &beta, c.data(),
                                    static_cast<std::int64_t>(c.leading_dimension())));
    };
}

}  // namespace gemm

#else

namespace gemm {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas(const Sgemm&, bool) {
    return {};
}

}  // namespace gemm

#endif

#include "fused_matmul_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>

#include "common/check_cublas.hpp"

namespace day45 {

std::string why_no_cublas() {
    return "";
}

std::function<void(cudaStream_t)> make_cublas(const BatchedMatmul& matmul) {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    return [matmul, handle = std::shared_ptr<cublasContext>(raw, cublasDestroy)](cudaStream_t stream) {
        const auto& [factors, c, alpha, beta] = matmul;
        const auto number = [](std::size_t n) { return static_cast<std::int64_t>(n); };
        const auto op = [](Op which) { return which == Op::kNone ? CUBLAS_OP_N : CUBLAS_OP_T; };
        const auto& [a, b, op_a, op_b] = factors;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        // cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T = op(B)^T op(A)^T.
        CUBLAS_CHECK(cublasSgemmStridedBatched_64(
            handle.get(), op(op_b), op(op_a), number(factors.n()), number(factors.m()), number(factors.k()),
            &alpha, b.first.data(), number(b.first.leading_dimension()), number(b.stride), a.first.data(),
            number(a.first.leading_dimension()), number(a.stride), &beta, c.first.data(),
            number(c.first.leading_dimension()), number(c.stride), number(c.count)));
    };
}

}  // namespace day45

#else

namespace day45 {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas(const BatchedMatmul&) {
    return {};
}

}  // namespace day45

#endif

#include "fused_matmul_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <memory>

#include "common/check/check_cublas.hpp"

namespace day45 {

std::string why_no_cublas() {
    return "";
}

namespace {

std::int64_t number(std::size_t n) {
    return static_cast<std::int64_t>(n);
}

cublasOperation_t operation(course::Op op) {
    return op == course::Op::kNone ? CUBLAS_OP_N : CUBLAS_OP_T;
}

std::shared_ptr<cublasContext> make_handle() {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    return {raw, cublasDestroy};
}

}  // namespace

// cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T = op(B)^T
// op(A)^T.

std::function<void(cudaStream_t)> make_cublas(const BatchedMatmul& matmul) {
    return [matmul, handle = make_handle()](cudaStream_t stream) {
        const auto& [operands, c, alpha, beta] = matmul;
        const auto& [a, b, op_a, op_b] = operands;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasSgemmStridedBatched_64(
            handle.get(), operation(op_b), operation(op_a), number(operands.n()), number(operands.m()),
            number(operands.k()), &alpha, b.first.data(), number(b.first.leading_dimension()),
            number(b.stride), a.first.data(), number(a.first.leading_dimension()), number(a.stride), &beta,
            c.first.data(), number(c.first.leading_dimension()), number(c.stride), number(c.count)));
    };
}

std::function<void(cudaStream_t)> make_cublas(const Bfloat16Matmul& matmul) {
    return [matmul, handle = make_handle()](cudaStream_t stream) {
        const auto& [operands, c, alpha, beta] = matmul;
        const auto& [a, b, op_a, op_b] = operands;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasGemmStridedBatchedEx_64(
            handle.get(), operation(op_b), operation(op_a), number(operands.n()), number(operands.m()),
            number(operands.k()), &alpha, b.first.data(), CUDA_R_16BF, number(b.first.leading_dimension()),
            number(b.stride), a.first.data(), CUDA_R_16BF, number(a.first.leading_dimension()),
            number(a.stride), &beta, c.first.data(), CUDA_R_32F, number(c.first.leading_dimension()),
            number(c.stride), number(c.count), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
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

std::function<void(cudaStream_t)> make_cublas(const Bfloat16Matmul&) {
    return {};
}

}  // namespace day45

#endif

#include "common/bench/cublas_sgemm.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <cstdint>
#include <memory>

#include "common/check/check_cublas.hpp"

namespace course {

std::string why_no_cublas() {
    return "";
}

namespace {

std::shared_ptr<cublasContext> make_handle() {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    const std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    CUBLAS_CHECK(cublasSetMathMode(handle.get(), CUBLAS_DEFAULT_MATH));
    return handle;
}

std::int64_t count(std::size_t n) {
    return static_cast<std::int64_t>(n);
}

cublasOperation_t operation(Op op) {
    return op == Op::kNone ? CUBLAS_OP_N : CUBLAS_OP_T;
}

}  // namespace

std::function<void(cudaStream_t)> make_cublas_sgemm(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                                    DeviceMatrix<float> c) {
    return [=, handle = make_handle()](cudaStream_t stream) {
        const float one = 1;
        const float zero = 0;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        // cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T =
        // B^T A^T.
        CUBLAS_CHECK(cublasSgemm_64(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, count(c.cols()), count(c.rows()),
                                    count(a.cols()), &one, b.data(), count(b.leading_dimension()), a.data(),
                                    count(a.leading_dimension()), &zero, c.data(),
                                    count(c.leading_dimension())));
    };
}

std::function<void(cudaStream_t)> make_cublas_sgemm(const Operands& operands, const Batch<float>& c,
                                                    float alpha) {
    return [=, handle = make_handle()](cudaStream_t stream) {
        const float zero = 0;
        const auto& [a, b, op_a, op_b] = operands;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasSgemmStridedBatched_64(
            handle.get(), operation(op_b), operation(op_a), count(operands.n()), count(operands.m()),
            count(operands.k()), &alpha, b.first.data(), count(b.first.leading_dimension()), count(b.stride),
            a.first.data(), count(a.first.leading_dimension()), count(a.stride), &zero, c.first.data(),
            count(c.first.leading_dimension()), count(c.stride), count(c.count)));
    };
}

}  // namespace course

#else

namespace course {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas_sgemm(DeviceMatrix<const float>, DeviceMatrix<const float>,
                                                    DeviceMatrix<float>) {
    return {};
}

std::function<void(cudaStream_t)> make_cublas_sgemm(const Operands&, const Batch<float>&, float) {
    return {};
}

}  // namespace course

#endif

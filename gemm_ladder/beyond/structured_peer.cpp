#include "structured_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <cstdint>
#include <memory>

#include "common/check/check_cublas.hpp"

namespace gemm {
namespace {

std::shared_ptr<cublasContext> make_handle() {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    const std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    CUBLAS_CHECK(cublasSetMathMode(handle.get(), CUBLAS_DEFAULT_MATH));
    return handle;
}

int count(std::size_t n) {
    return static_cast<int>(n);
}

// cuBLAS is column-major, and a row-major matrix read by columns is its transpose. So the lower
// triangle is the upper one, the left side is the right one, and op(A) stays what it is, because
// both A and C^T are transposed.
cublasFillMode_t fill_of(Triangle triangle) {
    return triangle == Triangle::kLower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

cublasSideMode_t side_of(Side side) {
    return side == Side::kLeft ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT;
}

}  // namespace

std::string why_no_structured_peer() {
    return "";
}

std::function<void(cudaStream_t)> make_cublas_syrk(const Syrk& p) {
    return [handle = make_handle(), p](cudaStream_t stream) {
        const bool transposed = p.op_a == course::Op::kTranspose;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasSsyrk(handle.get(), fill_of(p.triangle), transposed ? CUBLAS_OP_N : CUBLAS_OP_T,
                                 count(p.c.rows()), count(transposed ? p.a.rows() : p.a.cols()), &p.alpha,
                                 p.a.data(), count(p.a.leading_dimension()), &p.beta, p.c.data(),
                                 count(p.c.leading_dimension())));
    };
}

std::function<void(cudaStream_t)> make_cublas_symm(const Symm& p) {
    return [handle = make_handle(), p](cudaStream_t stream) {
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasSsymm(handle.get(), side_of(p.side), fill_of(p.triangle), count(p.c.cols()),
                                 count(p.c.rows()), &p.alpha, p.a.data(), count(p.a.leading_dimension()),
                                 p.b.data(), count(p.b.leading_dimension()), &p.beta, p.c.data(),
                                 count(p.c.leading_dimension())));
    };
}

std::function<void(cudaStream_t)> make_cublas_trmm(const Trmm& p) {
    return [handle = make_handle(), p](cudaStream_t stream) {
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasStrmm(handle.get(), side_of(p.side), fill_of(p.triangle),
                                 p.op_a == course::Op::kNone ? CUBLAS_OP_N : CUBLAS_OP_T,
                                 p.diagonal == Diagonal::kUnit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT,
                                 count(p.c.cols()), count(p.c.rows()), &p.alpha, p.a.data(),
                                 count(p.a.leading_dimension()), p.b.data(), count(p.b.leading_dimension()),
                                 p.c.data(), count(p.c.leading_dimension())));
    };
}

}  // namespace gemm

#else

namespace gemm {

std::string why_no_structured_peer() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas_syrk(const Syrk&) {
    return {};
}
std::function<void(cudaStream_t)> make_cublas_symm(const Symm&) {
    return {};
}
std::function<void(cudaStream_t)> make_cublas_trmm(const Trmm&) {
    return {};
}

}  // namespace gemm

#endif

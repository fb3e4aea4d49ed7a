// Level 2: operations on matrices and vectors.
#pragma once

#include "call.hpp"
#include "host_blas.hpp"

namespace cuda_on_cpu::blas {

// When beta is 0, y is not read, because it may contain NaN.
template <class T>
void clear_if_zero(T beta, T* y, int n, int incy) {
    if (beta != T{}) return;
    const Vector<T> v(y, n, incy);
    for (int i = 0; i < n; ++i)
        v[i] = T{};
}

template <class T>
void product(cublasOperation_t trans, int m, int n, T alpha, const T* A, int lda, const T* x, int incx,
             T beta, T* y, int incy) {
    const Shape op = stored(trans, m, n);
    const ReadableGuards guards{A, x, y};
    clear_if_zero(beta, y, op.rows, incy);
    Cblas<T>::gemv(CblasColMajor, to_cblas(trans), m, n, by_value(alpha), A, lda, x, incx, by_value(beta), y,
                   incy);
}

template <class T>
cublasStatus_t gemv(Call call, cublasOperation_t trans, int m, int n, const T* alpha, const T* A, int lda,
                    const T* x, int incx, const T* beta, T* y, int incy) {
    const Shape op = stored(trans, m, n);
    call.option("trans", trans, 3).size("m", m).size("n", n).leading("lda", lda, m);
    call.increment("incx", incx).increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("A", A, {m, n}, lda).reads("x", x, m > 0 ? op.columns : 0, incx);
    call.writes("y", y, n > 0 || m > 0 ? op.rows : 0, incy);
    return call.run([=] {
        if (m > 0 && n > 0) product(trans, m, n, a(), A, lda, x, incx, b(), y, incy);
    });
}

template <class T>
cublasStatus_t gbmv(Call call, cublasOperation_t trans, int m, int n, int kl, int ku, const T* alpha,
                    const T* A, int lda, const T* x, int incx, const T* beta, T* y, int incy) {
    const Shape op = stored(trans, m, n);
    call.option("trans", trans, 3).size("m", m).size("n", n).size("kl", kl).size("ku", ku);
    call.leading("lda", lda, kl + ku + 1).increment("incx", incx).increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("A", A, {kl + ku + 1, n}, lda).reads("x", x, op.columns, incx).writes("y", y, op.rows, incy);
    return call.run([=] {
        clear_if_zero(b(), y, op.rows, incy);
        Cblas<T>::gbmv(CblasColMajor, to_cblas(trans), m, n, kl, ku, by_value(a()), A, lda, x, incx,
                       by_value(b()), y, incy);
    });
}

inline Call& check_triangular(Call& call, cublasFillMode_t uplo, cublasOperation_t trans,
                              cublasDiagType_t diag, int n, int incx) {
    return call.option("uplo", uplo, 2)
        .option("trans", trans, 3)
        .option("diag", diag, 2)
        .size("n", n)
        .increment("incx", incx);
}

// x = op(A) x, and x = op(A)^-1 x, where A is a full, a banded or a packed triangle.
#define CUDA_ON_CPU_TRIANGULAR(name)                                                                         \
    template <class T>                                                                                       \
    cublasStatus_t tr##name(Call call, cublasFillMode_t uplo, cublasOperation_t trans,                       \
                            cublasDiagType_t diag, int n, const T* A, int lda, T* x, int incx) {             \
        check_triangular(call, uplo, trans, diag, n, incx).leading("lda", lda, n);                           \
        call.reads("A", A, {n, n}, lda).writes("x", x, n, incx);                                             \
        return call.run([=] {                                                                                \
            Cblas<T>::tr##name(CblasColMajor, to_cblas(uplo), to_cblas(trans), to_cblas(diag), n, A, lda, x, \
                               incx);                                                                        \
        });                                                                                                  \
    }                                                                                                        \
    template <class T>                                                                                       \
    cublasStatus_t tb##name(Call call, cublasFillMode_t uplo, cublasOperation_t trans,                       \
                            cublasDiagType_t diag, int n, int k, const T* A, int lda, T* x, int incx) {      \
        check_triangular(call, uplo, trans, diag, n, incx).size("k", k).leading("lda", lda, k + 1);          \
        call.reads("A", A, {k + 1, n}, lda).writes("x", x, n, incx);                                         \
        return call.run([=] {                                                                                \
            Cblas<T>::tb##name(CblasColMajor, to_cblas(uplo), to_cblas(trans), to_cblas(diag), n, k, A, lda, \
                               x, incx);                                                                     \
        });                                                                                                  \
    }                                                                                                        \
    template <class T>                                                                                       \
    cublasStatus_t tp##name(Call call, cublasFillMode_t uplo, cublasOperation_t trans,                       \
                            cublasDiagType_t diag, int n, const T* AP, T* x, int incx) {                     \
        check_triangular(call, uplo, trans, diag, n, incx);                                                  \
        call.reads("AP", AP, packed(n), packed(n).rows).writes("x", x, n, incx);                             \
        return call.run([=] {                                                                                \
            Cblas<T>::tp##name(CblasColMajor, to_cblas(uplo), to_cblas(trans), to_cblas(diag), n, AP, x,     \
                               incx);                                                                        \
        });                                                                                                  \
    }
CUDA_ON_CPU_TRIANGULAR(mv)
CUDA_ON_CPU_TRIANGULAR(sv)
#undef CUDA_ON_CPU_TRIANGULAR

// Is element (row, column) in the triangle?
inline bool in_triangle(cublasFillMode_t uplo, int row, int column) {
    return uplo == CUBLAS_FILL_MODE_LOWER ? row >= column : row <= column;
}

// CBLAS has neither a complex symmetric matrix-vector product nor updates of complex symmetric
// matrices.
template <class T>
cublasStatus_t symv(Call call, cublasFillMode_t uplo, int n, const T* alpha, const T* A, int lda, const T* x,
                    int incx, const T* beta, T* y, int incy) {
    call.option("uplo", uplo, 2)
        .size("n", n)
        .leading("lda", lda, n)
        .increment("incx", incx)
        .increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("A", A, {n, n}, lda).reads("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] {
        clear_if_zero(b(), y, n, incy);
        if constexpr (!kComplex<T>) {
            Cblas<T>::symv(CblasColMajor, to_cblas(uplo), n, a(), A, lda, x, incx, b(), y, incy);
        } else {
            const Vector<const T> from(x, n, incx);
            const Vector<T> to(y, n, incy);
            for (int row = 0; row < n; ++row) {
                T sum{};
                for (int column = 0; column < n; ++column) {
                    const bool stored = in_triangle(uplo, row, column);
                    const std::size_t i = stored ? row : column, j = stored ? column : row;
                    sum += A[i + j * lda] * from[column];
                }
                to[row] = a() * sum + b() * to[row];
            }
        }
    });
}

template <class T>
cublasStatus_t syr(Call call, cublasFillMode_t uplo, int n, const T* alpha, const T* x, int incx, T* A,
                   int lda) {
    call.option("uplo", uplo, 2).size("n", n).leading("lda", lda, n).increment("incx", incx);
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, n, incx).writes("A", A, {n, n}, lda);
    return call.run([=] {
        if constexpr (!kComplex<T>) {
            Cblas<T>::syr(CblasColMajor, to_cblas(uplo), n, a(), x, incx, A, lda);
        } else {
            const Vector<const T> v(x, n, incx);
            for (int column = 0; column < n; ++column) {
                for (int row = 0; row < n; ++row) {
                    if (in_triangle(uplo, row, column))
                        A[row + static_cast<std::size_t>(column) * lda] += a() * v[row] * v[column];
                }
            }
        }
    });
}

template <class T>
cublasStatus_t syr2(Call call, cublasFillMode_t uplo, int n, const T* alpha, const T* x, int incx, const T* y,
                    int incy, T* A, int lda) {
    call.option("uplo", uplo, 2)
        .size("n", n)
        .leading("lda", lda, n)
        .increment("incx", incx)
        .increment("incy", incy);
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, n, incx).reads("y", y, n, incy).writes("A", A, {n, n}, lda);
    return call.run([=] {
        if constexpr (!kComplex<T>) {
            Cblas<T>::syr2(CblasColMajor, to_cblas(uplo), n, a(), x, incx, y, incy, A, lda);
        } else {
            const Vector<const T> v(x, n, incx), w(y, n, incy);
            for (int column = 0; column < n; ++column) {
                for (int row = 0; row < n; ++row) {
                    if (in_triangle(uplo, row, column))
                        A[row + static_cast<std::size_t>(column) * lda] +=
                            a() * (v[row] * w[column] + w[row] * v[column]);
                }
            }
        }
    });
}

// A = alpha x y^T + A. `update` is the CBLAS function.
template <class T, class Update>
cublasStatus_t rank_one(Call call, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy,
                        T* A, int lda, Update update) {
    call.size("m", m).size("n", n).increment("incx", incx).increment("incy", incy).leading("lda", lda, m);
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, m, incx).reads("y", y, n, incy).writes("A", A, {m, n}, lda);
    return call.run([=] { update(CblasColMajor, m, n, by_value(a()), x, incx, y, incy, A, lda); });
}

template <class T>
cublasStatus_t ger(Call call, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, T* A,
                   int lda) {
    return rank_one(std::move(call), m, n, alpha, x, incx, y, incy, A, lda, Cblas<T>::ger);
}
template <class T>
cublasStatus_t geru(Call call, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, T* A,
                    int lda) {
    return rank_one(std::move(call), m, n, alpha, x, incx, y, incy, A, lda, Cblas<T>::geru);
}
template <class T>
cublasStatus_t gerc(Call call, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, T* A,
                    int lda) {
    return rank_one(std::move(call), m, n, alpha, x, incx, y, incy, A, lda, Cblas<T>::gerc);
}

template <class T>
cublasStatus_t hemv(Call call, cublasFillMode_t uplo, int n, const T* alpha, const T* A, int lda, const T* x,
                    int incx, const T* beta, T* y, int incy) {
    call.option("uplo", uplo, 2)
        .size("n", n)
        .leading("lda", lda, n)
        .increment("incx", incx)
        .increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("A", A, {n, n}, lda).reads("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] {
        clear_if_zero(b(), y, n, incy);
        Cblas<T>::hemv(CblasColMajor, to_cblas(uplo), n, by_value(a()), A, lda, x, incx, by_value(b()), y,
                       incy);
    });
}

template <class T>
cublasStatus_t hbmv(Call call, cublasFillMode_t uplo, int n, int k, const T* alpha, const T* A, int lda,
                    const T* x, int incx, const T* beta, T* y, int incy) {
    call.option("uplo", uplo, 2).size("n", n).size("k", k).leading("lda", lda, k + 1);
    call.increment("incx", incx).increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("A", A, {k + 1, n}, lda).reads("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] {
        clear_if_zero(b(), y, n, incy);
        Cblas<T>::hbmv(CblasColMajor, to_cblas(uplo), n, k, by_value(a()), A, lda, x, incx, by_value(b()), y,
                       incy);
    });
}

template <class T>
cublasStatus_t hpmv(Call call, cublasFillMode_t uplo, int n, const T* alpha, const T* AP, const T* x,
                    int incx, const T* beta, T* y, int incy) {
    call.option("uplo", uplo, 2).size("n", n).increment("incx", incx).increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("AP", AP, packed(n), packed(n).rows).reads("x", x, n, incx).writes("y", y, n, incy);
    return call.run([=] {
        clear_if_zero(b(), y, n, incy);
        Cblas<T>::hpmv(CblasColMajor, to_cblas(uplo), n, by_value(a()), AP, x, incx, by_value(b()), y, incy);
    });
}

template <class T>
cublasStatus_t her(Call call, cublasFillMode_t uplo, int n, const Real<T>* alpha, const T* x, int incx, T* A,
                   int lda) {
    call.option("uplo", uplo, 2).size("n", n).leading("lda", lda, n).increment("incx", incx);
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, n, incx).writes("A", A, {n, n}, lda);
    return call.run([=] { Cblas<T>::her(CblasColMajor, to_cblas(uplo), n, a(), x, incx, A, lda); });
}

template <class T>
cublasStatus_t her2(Call call, cublasFillMode_t uplo, int n, const T* alpha, const T* x, int incx, const T* y,
                    int incy, T* A, int lda) {
    call.option("uplo", uplo, 2)
        .size("n", n)
        .leading("lda", lda, n)
        .increment("incx", incx)
        .increment("incy", incy);
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, n, incx).reads("y", y, n, incy).writes("A", A, {n, n}, lda);
    return call.run(
        [=] { Cblas<T>::her2(CblasColMajor, to_cblas(uplo), n, by_value(a()), x, incx, y, incy, A, lda); });
}

template <class T>
cublasStatus_t hpr(Call call, cublasFillMode_t uplo, int n, const Real<T>* alpha, const T* x, int incx,
                   T* AP) {
    call.option("uplo", uplo, 2).size("n", n).increment("incx", incx);
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, n, incx).writes("AP", AP, packed(n), packed(n).rows);
    return call.run([=] { Cblas<T>::hpr(CblasColMajor, to_cblas(uplo), n, a(), x, incx, AP); });
}

template <class T>
cublasStatus_t hpr2(Call call, cublasFillMode_t uplo, int n, const T* alpha, const T* x, int incx, const T* y,
                    int incy, T* AP) {
    call.option("uplo", uplo, 2).size("n", n).increment("incx", incx).increment("incy", incy);
    const auto a = call.scalar("alpha", alpha);
    call.reads("x", x, n, incx).reads("y", y, n, incy).writes("AP", AP, packed(n), packed(n).rows);
    return call.run(
        [=] { Cblas<T>::hpr2(CblasColMajor, to_cblas(uplo), n, by_value(a()), x, incx, y, incy, AP); });
}

// For real matrices, the symmetric functions.
template <class... A>
cublasStatus_t sbmv(Call call, A... arguments) {
    return hbmv(std::move(call), arguments...);
}
template <class... A>
cublasStatus_t spmv(Call call, A... arguments) {
    return hpmv(std::move(call), arguments...);
}
template <class... A>
cublasStatus_t spr(Call call, A... arguments) {
    return hpr(std::move(call), arguments...);
}
template <class... A>
cublasStatus_t spr2(Call call, A... arguments) {
    return hpr2(std::move(call), arguments...);
}

}  // namespace cuda_on_cpu::blas

// Level 3: operations on matrices.
#pragma once

#include "call.hpp"
#include "host_blas.hpp"

namespace cuda_on_cpu::blas {

// C = alpha op(A) op(B) + beta C, where op(A) is m x k. When beta is 0, C is not read, because it
// may contain NaN.
template <class T>
void multiply(cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, T alpha, const T* A,
              int lda, const T* B, int ldb, T beta, T* C, int ldc) {
    if (m == 0 || n == 0) return;
    const ReadableGuards guards{A, B, C};
    if (beta == T{}) clear(C, {m, n}, ldc);
    Cblas<T>::gemm(CblasColMajor, to_cblas(transa), to_cblas(transb), m, n, k, by_value(alpha), A, lda, B,
                   ldb, by_value(beta), C, ldc);
}

inline Call& check_product(Call& call, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                           int k, int lda, int ldb, int ldc) {
    call.option("transa", transa, 3).option("transb", transb, 3).size("m", m).size("n", n).size("k", k);
    call.leading("lda", lda, stored(transa, m, k).rows).leading("ldb", ldb, stored(transb, k, n).rows);
    return call.leading("ldc", ldc, m);
}

template <class T>
cublasStatus_t gemm(Call call, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                    const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc) {
    check_product(call, transa, transb, m, n, k, lda, ldb, ldc);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    if (m > 0 && n > 0)
        call.reads("A", A, stored(transa, m, k), lda).reads("B", B, stored(transb, k, n), ldb);
    call.writes("C", C, {m, n}, ldc);
    return call.run([=] { multiply(transa, transb, m, n, k, a(), A, lda, B, ldb, b(), C, ldc); });
}

template <class... A>
cublasStatus_t gemm3m(Call call, A... arguments) {
    return gemm(std::move(call), arguments...);
}

// C = alpha A B + beta C or alpha B A + beta C, where A is symmetric or Hermitian. `product` is the
// CBLAS function.
template <class T, class Product>
cublasStatus_t sided_product(Call call, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n,
                             const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C,
                             int ldc, Product product) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    call.option("side", side, 2).option("uplo", uplo, 2).size("m", m).size("n", n);
    call.leading("lda", lda, order).leading("ldb", ldb, m).leading("ldc", ldc, m);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    if (m > 0 && n > 0) call.reads("A", A, {order, order}, lda);
    call.reads("B", B, {m, n}, ldb).writes("C", C, {m, n}, ldc);
    return call.run([=] {
        if (b() == T{}) clear(C, {m, n}, ldc);
        product(CblasColMajor, to_cblas(side), to_cblas(uplo), m, n, by_value(a()), A, lda, B, ldb,
                by_value(b()), C, ldc);
    });
}

template <class T>
cublasStatus_t symm(Call call, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, const T* alpha,
                    const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc) {
    return sided_product(std::move(call), side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc,
                         Cblas<T>::symm);
}
template <class T>
cublasStatus_t hemm(Call call, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, const T* alpha,
                    const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc) {
    return sided_product(std::move(call), side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc,
                         Cblas<T>::hemm);
}

inline Call& check_update(Call& call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, int lda,
                          int ldc) {
    call.option("uplo", uplo, 2).option("trans", trans, 3).size("n", n).size("k", k);
    return call.leading("lda", lda, stored(trans, n, k).rows).leading("ldc", ldc, n);
}

// A triangle of C = alpha op(A) op(A)^T + beta C, or with ^H and real S.
template <class T, class S, class Update>
cublasStatus_t update_by_one(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,
                             const S* alpha, const T* A, int lda, const S* beta, T* C, int ldc,
                             Update update) {
    check_update(call, uplo, trans, n, k, lda, ldc);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    if (n > 0) call.reads("A", A, stored(trans, n, k), lda);
    call.writes("C", C, {n, n}, ldc);
    return call.run([=] {
        if (b() == S{}) clear_triangle(uplo, n, C, ldc);
        update(CblasColMajor, to_cblas(uplo), to_cblas(trans), n, k, by_value(a()), A, lda, by_value(b()), C,
               ldc);
    });
}

template <class T>
cublasStatus_t syrk(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, const T* alpha,
                    const T* A, int lda, const T* beta, T* C, int ldc) {
    return update_by_one(std::move(call), uplo, trans, n, k, alpha, A, lda, beta, C, ldc, Cblas<T>::syrk);
}
template <class T>
cublasStatus_t herk(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,
                    const Real<T>* alpha, const T* A, int lda, const Real<T>* beta, T* C, int ldc) {
    return update_by_one(std::move(call), uplo, trans, n, k, alpha, A, lda, beta, C, ldc, Cblas<T>::herk);
}

// The same with both A and B; `update` is the CBLAS function.
template <class T, class S, class Update>
cublasStatus_t update_by_two(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,
                             const T* alpha, const T* A, int lda, const T* B, int ldb, const S* beta, T* C,
                             int ldc, Update update) {
    check_update(call, uplo, trans, n, k, lda, ldc).leading("ldb", ldb, stored(trans, n, k).rows);
    const auto a = call.scalar("alpha", alpha);
    const auto b = call.scalar("beta", beta);
    if (n > 0) call.reads("A", A, stored(trans, n, k), lda).reads("B", B, stored(trans, n, k), ldb);
    call.writes("C", C, {n, n}, ldc);
    return call.run([=] {
        if (b() == S{}) clear_triangle(uplo, n, C, ldc);
        update(CblasColMajor, to_cblas(uplo), to_cblas(trans), n, k, by_value(a()), A, lda, B, ldb,
               by_value(b()), C, ldc);
    });
}

template <class T>
cublasStatus_t syr2k(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, const T* alpha,
                     const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc) {
    return update_by_two(std::move(call), uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc,
                         Cblas<T>::syr2k);
}
template <class T>
cublasStatus_t her2k(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, const T* alpha,
                     const T* A, int lda, const T* B, int ldb, const Real<T>* beta, T* C, int ldc) {
    return update_by_two(std::move(call), uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc,
                         Cblas<T>::her2k);
}

// A triangle of C = alpha op(A) op(B)^T + beta C, or with ^H (`transposed`). The whole product is
// computed, but only one triangle of it is stored.
template <class T, class S>
cublasStatus_t update_by_product(Call call, cublasFillMode_t uplo, cublasOperation_t trans,
                                 cublasOperation_t transposed, int n, int k, const T* alpha, const T* A,
                                 int lda, const T* B, int ldb, const S* beta, T* C, int ldc) {
    check_update(call, uplo, trans, n, k, lda, ldc).leading("ldb", ldb, stored(trans, n, k).rows);
    const auto a = call.scalar("alpha", alpha);
    const auto b = call.scalar("beta", beta);
    if (n > 0) call.reads("A", A, stored(trans, n, k), lda).reads("B", B, stored(trans, n, k), ldb);
    call.writes("C", C, {n, n}, ldc);
    return call.run([=] {
        if (b() == S{}) clear_triangle(uplo, n, C, ldc);
        std::vector<T> product(static_cast<std::size_t>(n) * n);
        const cublasOperation_t other = trans == CUBLAS_OP_N ? transposed : CUBLAS_OP_N;
        multiply(trans, other, n, n, k, a(), A, lda, B, ldb, T{}, product.data(), std::max(n, 1));
        for (int column = 0; column < n; ++column) {
            for (int row = 0; row < n; ++row) {
                if (uplo == CUBLAS_FILL_MODE_LOWER ? row < column : row > column) continue;
                T& c = C[row + static_cast<std::size_t>(column) * ldc];
                c = product[row + static_cast<std::size_t>(column) * n] + b() * c;
                if (row == column && transposed == CUBLAS_OP_C) c = std::real(c);
            }
        }
    });
}

template <class T>
cublasStatus_t syrkx(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, const T* alpha,
                     const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc) {
    return update_by_product(std::move(call), uplo, trans, CUBLAS_OP_T, n, k, alpha, A, lda, B, ldb, beta, C,
                             ldc);
}
template <class T>
cublasStatus_t herkx(Call call, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, const T* alpha,
                     const T* A, int lda, const T* B, int ldb, const Real<T>* beta, T* C, int ldc) {
    return update_by_product(std::move(call), uplo, trans, CUBLAS_OP_C, n, k, alpha, A, lda, B, ldb, beta, C,
                             ldc);
}

inline Call& check_triangular(Call& call, cublasSideMode_t side, cublasFillMode_t uplo,
                              cublasOperation_t trans, cublasDiagType_t diag, int m, int n, int lda,
                              int ldb) {
    call.option("side", side, 2).option("uplo", uplo, 2).option("trans", trans, 3).option("diag", diag, 2);
    call.size("m", m).size("n", n).leading("lda", lda, side == CUBLAS_SIDE_LEFT ? m : n);
    return call.leading("ldb", ldb, m);
}

// Out of place, as in cuBLAS, unless C is B.
template <class T>
cublasStatus_t trmm(Call call, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                    cublasDiagType_t diag, int m, int n, const T* alpha, const T* A, int lda, const T* B,
                    int ldb, T* C, int ldc) {
    check_triangular(call, side, uplo, trans, diag, m, n, lda, ldb).leading("ldc", ldc, m);
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    const auto a = call.scalar("alpha", alpha);
    if (m > 0 && n > 0) call.reads("A", A, {order, order}, lda);
    call.reads("B", B, {m, n}, ldb).writes("C", C, {m, n}, ldc);
    return call.run([=] {
        for (int column = 0; column < n && B != C; ++column)
            std::copy_n(B + static_cast<std::size_t>(column) * ldb, m,
                        C + static_cast<std::size_t>(column) * ldc);
        Cblas<T>::trmm(CblasColMajor, to_cblas(side), to_cblas(uplo), to_cblas(trans), to_cblas(diag), m, n,
                       by_value(a()), A, lda, C, ldc);
    });
}

template <class T>
void solve_triangular(cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                      cublasDiagType_t diag, int m, int n, T alpha, const T* A, int lda, T* B, int ldb) {
    const ReadableGuards guards{A, B};
    if (alpha == T{}) clear(B, {m, n}, ldb);
    Cblas<T>::trsm(CblasColMajor, to_cblas(side), to_cblas(uplo), to_cblas(trans), to_cblas(diag), m, n,
                   by_value(alpha), A, lda, B, ldb);
}

template <class T>
cublasStatus_t trsm(Call call, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                    cublasDiagType_t diag, int m, int n, const T* alpha, const T* A, int lda, T* B, int ldb) {
    check_triangular(call, side, uplo, trans, diag, m, n, lda, ldb);
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    const auto a = call.scalar("alpha", alpha);
    if (m > 0 && n > 0) call.reads("A", A, {order, order}, lda);
    call.writes("B", B, {m, n}, ldb);
    return call.run([=] { solve_triangular(side, uplo, trans, diag, m, n, a(), A, lda, B, ldb); });
}

// Element (row, column) of op(A).
template <class T>
T element(cublasOperation_t trans, const T* A, int lda, int row, int column) {
    if (trans == CUBLAS_OP_N) return A[row + static_cast<std::size_t>(column) * lda];
    const T value = A[column + static_cast<std::size_t>(row) * lda];
    return trans == CUBLAS_OP_C ? conjugate(value) : value;
}

// C = alpha op(A) + beta op(B). If a scalar is 0, its matrix is not read.
template <class T>
cublasStatus_t geam(Call call, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                    const T* alpha, const T* A, int lda, const T* beta, const T* B, int ldb, T* C, int ldc) {
    call.option("transa", transa, 3).option("transb", transb, 3).size("m", m).size("n", n);
    call.leading("lda", lda, stored(transa, m, n).rows).leading("ldb", ldb, stored(transb, m, n).rows);
    call.leading("ldc", ldc, m);
    call.require(A != C || A == nullptr || (transa == CUBLAS_OP_N && lda == ldc), CUBLAS_STATUS_INVALID_VALUE,
                 "C is A; expected lda == ldc and transa == CUBLAS_OP_N in place");
    call.require(B != C || B == nullptr || (transb == CUBLAS_OP_N && ldb == ldc), CUBLAS_STATUS_INVALID_VALUE,
                 "C is B; expected ldb == ldc and transb == CUBLAS_OP_N in place");
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    if (a.pointer == nullptr && a.value != T{}) call.reads("A", A, stored(transa, m, n), lda);
    if (b.pointer == nullptr && b.value != T{}) call.reads("B", B, stored(transb, m, n), ldb);
    call.writes("C", C, {m, n}, ldc);
    return call.run([=] {
        for (int column = 0; column < n; ++column) {
            for (int row = 0; row < m; ++row) {
                const T first = a() == T{} ? T{} : a() * element(transa, A, lda, row, column);
                const T second = b() == T{} ? T{} : b() * element(transb, B, ldb, row, column);
                C[row + static_cast<std::size_t>(column) * ldc] = first + second;
            }
        }
    });
}

// C = diag(x) A or A diag(x).
template <class T>
cublasStatus_t dgmm(Call call, cublasSideMode_t side, int m, int n, const T* A, int lda, const T* x, int incx,
                    T* C, int ldc) {
    const int count = side == CUBLAS_SIDE_LEFT ? m : n;
    call.option("mode", side, 2).size("m", m).size("n", n).leading("lda", lda, m).leading("ldc", ldc, m);
    call.reads("A", A, {m, n}, lda).reads("x", x, count, incx).writes("C", C, {m, n}, ldc);
    return call.run([=] {
        const Vector<const T> diagonal(x, count, incx);
        for (int column = 0; column < n; ++column) {
            for (int row = 0; row < m; ++row)
                C[row + static_cast<std::size_t>(column) * ldc] =
                    A[row + static_cast<std::size_t>(column) * lda] *
                    diagonal[side == CUBLAS_SIDE_LEFT ? row : column];
        }
    });
}

// Packs a triangle by columns: calls `visit` with the position in A and the position in AP.
template <class Visit>
void visit_triangle(cublasFillMode_t uplo, int n, int lda, Visit visit) {
    std::size_t next = 0;
    for (int column = 0; column < n; ++column) {
        const int begin = uplo == CUBLAS_FILL_MODE_LOWER ? column : 0;
        const int end = uplo == CUBLAS_FILL_MODE_LOWER ? n : column + 1;
        for (int row = begin; row < end; ++row)
            visit(row + static_cast<std::size_t>(column) * lda, next++);
    }
}

template <class T>
cublasStatus_t trttp(Call call, cublasFillMode_t uplo, int n, const T* A, int lda, T* AP) {
    call.option("uplo", uplo, 2).size("n", n).leading("lda", lda, n);
    call.reads("A", A, {n, n}, lda).writes("AP", AP, packed(n), packed(n).rows);
    return call.run(
        [=] { visit_triangle(uplo, n, lda, [=](std::size_t full, std::size_t p) { AP[p] = A[full]; }); });
}

template <class T>
cublasStatus_t tpttr(Call call, cublasFillMode_t uplo, int n, const T* AP, T* A, int lda) {
    call.option("uplo", uplo, 2).size("n", n).leading("lda", lda, n);
    call.reads("AP", AP, packed(n), packed(n).rows).writes("A", A, {n, n}, lda);
    return call.run(
        [=] { visit_triangle(uplo, n, lda, [=](std::size_t full, std::size_t p) { A[full] = AP[p]; }); });
}

}  // namespace cuda_on_cpu::blas

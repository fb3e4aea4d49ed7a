// Batches of small matrices: given by an array of pointers, which is in device memory, too, or by a
// stride.
#pragma once

#include "call.hpp"
#include "level2.hpp"
#include "level3.hpp"

namespace cuda_on_cpu::blas {

template <class T>
bool can_read(const char* function, const char* name, const T* matrix, Shape shape, int leading) {
    if (shape.rows <= 0 || shape.columns <= 0) return true;
    return reachable(function, {name, matrix, sizeof(T) * shape.rows, static_cast<std::size_t>(shape.columns),
                                sizeof(T) * leading});
}

template <class T>
void wrote(T* matrix, Shape shape, int leading) {
    if (shape.rows <= 0 || shape.columns <= 0) return;
    note_written({"", matrix, sizeof(T) * shape.rows, static_cast<std::size_t>(shape.columns),
                  sizeof(T) * leading, true});
}

template <class T>
cublasStatus_t gemmBatched(Call call, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                           const T* alpha, const T* const A[], int lda, const T* const B[], int ldb,
                           const T* beta, T* const C[], int ldc, int batch) {
    check_product(call, transa, transb, m, n, k, lda, ldb, ldc).size("batch", batch);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("the array of A", A, batch, 1)
        .reads("the array of B", B, batch, 1)
        .reads("the array of C", C, batch, 1);
    return call.run([=, function = call.function()] {
        if (m == 0 || n == 0) return true;
        for (int i = 0; i < batch; ++i) {
            if (!can_read(function, "a matrix of A", A[i], stored(transa, m, k), lda) ||
                !can_read(function, "a matrix of B", B[i], stored(transb, k, n), ldb) ||
                !can_read(function, "a matrix of C", C[i], {m, n}, ldc))
                return false;
            multiply(transa, transb, m, n, k, a(), A[i], lda, B[i], ldb, b(), C[i], ldc);
            wrote(C[i], {m, n}, ldc);
        }
        return true;
    });
}

template <class T>
cublasStatus_t gemmStridedBatched(Call call, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                                  int k, const T* alpha, const T* A, int lda, long long stride_a, const T* B,
                                  int ldb, long long stride_b, const T* beta, T* C, int ldc,
                                  long long stride_c, int batch) {
    check_product(call, transa, transb, m, n, k, lda, ldb, ldc).size("batch", batch);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    return call.run([=, function = call.function()] {
        if (m == 0 || n == 0) return true;
        for (int i = 0; i < batch; ++i) {
            const T* Ai = A + i * stride_a;
            const T* Bi = B + i * stride_b;
            T* Ci = C + i * stride_c;
            if (!can_read(function, "A", Ai, stored(transa, m, k), lda) ||
                !can_read(function, "B", Bi, stored(transb, k, n), ldb) ||
                !can_read(function, "C", Ci, {m, n}, ldc))
                return false;
            multiply(transa, transb, m, n, k, a(), Ai, lda, Bi, ldb, b(), Ci, ldc);
            wrote(Ci, {m, n}, ldc);
        }
        return true;
    });
}

// `x_of(i)` and the others return the i-th operand. They are called only after the array of
// pointers has been found to be in device memory.
template <class T, class MatrixOf, class VectorOf, class ResultOf>
bool gemv_each(const char* function, cublasOperation_t trans, int m, int n, T alpha, MatrixOf matrix_of,
               int lda, VectorOf x_of, int incx, T beta, ResultOf y_of, int incy, int batch) {
    const Shape op = stored(trans, m, n);
    if (m == 0 || n == 0) return true;
    for (int i = 0; i < batch; ++i) {
        const T* A = matrix_of(i);
        const T* x = x_of(i);
        T* y = y_of(i);
        if (!can_read(function, "A", A, {m, n}, lda) ||
            !can_read(function, "x", x, {1, op.columns}, std::abs(incx)) ||
            !can_read(function, "y", y, {1, op.rows}, std::abs(incy)))
            return false;
        product(trans, m, n, alpha, A, lda, x, incx, beta, y, incy);
        wrote(y, {1, op.rows}, std::abs(incy));
    }
    return true;
}

template <class T>
cublasStatus_t gemvBatched(Call call, cublasOperation_t trans, int m, int n, const T* alpha,
                           const T* const A[], int lda, const T* const x[], int incx, const T* beta,
                           T* const y[], int incy, int batch) {
    call.option("trans", trans, 3).size("m", m).size("n", n).leading("lda", lda, m).size("batch", batch);
    call.increment("incx", incx).increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    call.reads("the array of A", A, batch, 1)
        .reads("the array of x", x, batch, 1)
        .reads("the array of y", y, batch, 1);
    return call.run([=, function = call.function()] {
        return gemv_each<T>(
            function, trans, m, n, a(), [=](int i) { return A[i]; }, lda, [=](int i) { return x[i]; }, incx,
            b(), [=](int i) { return y[i]; }, incy, batch);
    });
}

template <class T>
cublasStatus_t gemvStridedBatched(Call call, cublasOperation_t trans, int m, int n, const T* alpha,
                                  const T* A, int lda, long long stride_a, const T* x, int incx,
                                  long long stride_x, const T* beta, T* y, int incy, long long stride_y,
                                  int batch) {
    call.option("trans", trans, 3).size("m", m).size("n", n).leading("lda", lda, m).size("batch", batch);
    call.increment("incx", incx).increment("incy", incy);
    const auto a = call.scalar("alpha", alpha), b = call.scalar("beta", beta);
    return call.run([=, function = call.function()] {
        return gemv_each<T>(
            function, trans, m, n, a(), [=](int i) { return A + i * stride_a; }, lda,
            [=](int i) { return x + i * stride_x; }, incx, b(), [=](int i) { return y + i * stride_y; }, incy,
            batch);
    });
}

template <class T>
cublasStatus_t trsmBatched(Call call, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                           cublasDiagType_t diag, int m, int n, const T* alpha, const T* const A[], int lda,
                           T* const B[], int ldb, int batch) {
    check_triangular(call, side, uplo, trans, diag, m, n, lda, ldb).size("batch", batch);
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    const auto a = call.scalar("alpha", alpha);
    call.reads("the array of A", A, batch, 1).reads("the array of B", B, batch, 1);
    return call.run([=, function = call.function()] {
        if (m == 0 || n == 0) return true;
        for (int i = 0; i < batch; ++i) {
            if (!can_read(function, "a matrix of A", A[i], {order, order}, lda) ||
                !can_read(function, "a matrix of B", B[i], {m, n}, ldb))
                return false;
            solve_triangular(side, uplo, trans, diag, m, n, a(), A[i], lda, B[i], ldb);
            wrote(B[i], {m, n}, ldb);
        }
        return true;
    });
}

// A = P L U in place; the diagonal of L is all ones. Row i was exchanged with row pivots[i],
// counted from 1. If `pivots` is null, rows are not exchanged. Returns 0, or the position, counted
// from 1, of the first zero on U's diagonal.
template <class T>
int factorise(int n, T* A, int lda, int* pivots) {
    int singular = 0;
    const auto at = [=](int row, int column) -> T& {
        return A[row + static_cast<std::size_t>(column) * lda];
    };
    for (int j = 0; j < n; ++j) {
        int largest = j;
        for (int row = j + 1; pivots != nullptr && row < n; ++row) {
            if (std::abs(at(row, j)) > std::abs(at(largest, j))) largest = row;
        }
        if (pivots != nullptr) pivots[j] = largest + 1;
        for (int column = 0; largest != j && column < n; ++column)
            std::swap(at(j, column), at(largest, column));
        if (at(j, j) == T{}) {
            if (singular == 0) singular = j + 1;
            continue;
        }
        for (int row = j + 1; row < n; ++row)
            at(row, j) /= at(j, j);
        for (int column = j + 1; column < n; ++column) {
            for (int row = j + 1; row < n; ++row)
                at(row, column) -= at(row, j) * at(j, column);
        }
    }
    return singular;
}

// B = op(A)^-1 B, from the factorisation of A.
template <class T>
void solve(cublasOperation_t trans, int n, int columns, const T* A, int lda, const int* pivots, T* B,
           int ldb) {
    const auto exchange = [=](int i) {
        for (int column = 0; column < columns; ++column) {
            T* b = B + static_cast<std::size_t>(column) * ldb;
            std::swap(b[i], b[pivots[i] - 1]);
        }
    };
    const auto triangle = [=](cublasFillMode_t uplo, cublasDiagType_t diag) {
        solve_triangular(CUBLAS_SIDE_LEFT, uplo, trans, diag, n, columns, T{1}, A, lda, B, ldb);
    };
    if (trans == CUBLAS_OP_N) {
        for (int i = 0; pivots != nullptr && i < n; ++i)
            exchange(i);
        triangle(CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_UNIT);
        triangle(CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT);
    } else {
        triangle(CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT);
        triangle(CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_UNIT);
        for (int i = n - 1; pivots != nullptr && i >= 0; --i)
            exchange(i);
    }
}

template <class T>
void set_identity(int n, T* C, int ldc) {
    clear(C, {n, n}, ldc);
    for (int i = 0; i < n; ++i)
        C[i + static_cast<std::size_t>(i) * ldc] = T{1};
}

template <class T>
cublasStatus_t getrfBatched(Call call, int n, T* const A[], int lda, int* pivots, int* info, int batch) {
    call.size("n", n).leading("lda", lda, n).size("batch", batch);
    call.reads("the array of A", A, batch, 1).writes("info", info, batch, 1);
    if (pivots != nullptr) call.writes("pivots", pivots, Shape{n, batch}, n);
    return call.run([=, function = call.function()] {
        for (int i = 0; i < batch; ++i) {
            if (!can_read(function, "a matrix of A", A[i], {n, n}, lda)) return false;
            info[i] = factorise(n, A[i], lda,
                                pivots == nullptr ? nullptr : pivots + static_cast<std::size_t>(i) * n);
            wrote(A[i], {n, n}, lda);
        }
        return true;
    });
}

template <class T>
cublasStatus_t getriBatched(Call call, int n, const T* const A[], int lda, const int* pivots, T* const C[],
                            int ldc, int* info, int batch) {
    call.size("n", n).leading("lda", lda, n).leading("ldc", ldc, n).size("batch", batch);
    call.reads("the array of A", A, batch, 1)
        .reads("the array of C", C, batch, 1)
        .writes("info", info, batch, 1);
    if (pivots != nullptr) call.reads("pivots", pivots, Shape{n, batch}, n);
    return call.run([=, function = call.function()] {
        for (int i = 0; i < batch; ++i) {
            if (!can_read(function, "a matrix of A", A[i], {n, n}, lda) ||
                !can_read(function, "a matrix of C", C[i], {n, n}, ldc))
                return false;
            info[i] = 0;
            for (int j = n - 1; j >= 0; --j) {
                if (A[i][j + static_cast<std::size_t>(j) * lda] == T{}) info[i] = j + 1;
            }
            if (info[i] != 0) continue;
            set_identity(n, C[i], ldc);
            solve(CUBLAS_OP_N, n, n, A[i], lda,
                  pivots == nullptr ? nullptr : pivots + static_cast<std::size_t>(i) * n, C[i], ldc);
            wrote(C[i], {n, n}, ldc);
        }
        return true;
    });
}

// `info` is in host memory: it reports wrong arguments.
template <class T>
cublasStatus_t getrsBatched(Call call, cublasOperation_t trans, int n, int nrhs, const T* const A[], int lda,
                            const int* pivots, T* const B[], int ldb, int* info, int batch) {
    call.option("trans", trans, 3)
        .size("n", n)
        .size("nrhs", nrhs)
        .leading("lda", lda, n)
        .leading("ldb", ldb, n);
    call.given("info", info).size("batch", batch);
    if (info != nullptr) *info = call.ok() ? 0 : -1;
    call.reads("the array of A", A, batch, 1).reads("the array of B", B, batch, 1);
    if (pivots != nullptr) call.reads("pivots", pivots, Shape{n, batch}, n);
    return call.run([=, function = call.function()] {
        for (int i = 0; i < batch; ++i) {
            if (!can_read(function, "a matrix of A", A[i], {n, n}, lda) ||
                !can_read(function, "a matrix of B", B[i], {n, nrhs}, ldb))
                return false;
            solve(trans, n, nrhs, A[i], lda,
                  pivots == nullptr ? nullptr : pivots + static_cast<std::size_t>(i) * n, B[i], ldb);
            wrote(B[i], {n, nrhs}, ldb);
        }
        return true;
    });
}

template <class T>
cublasStatus_t matinvBatched(Call call, int n, const T* const A[], int lda, T* const C[], int ldc, int* info,
                             int batch) {
    call.size("n", n).leading("lda", lda, n).leading("ldc", ldc, n).size("batch", batch);
    call.require(n <= 32, CUBLAS_STATUS_INVALID_VALUE,
                 "n is above 32, the largest that cublas<t>matinvBatched takes");
    call.reads("the array of A", A, batch, 1)
        .reads("the array of C", C, batch, 1)
        .writes("info", info, batch, 1);
    return call.run([=, function = call.function()] {
        std::vector<T> factors(static_cast<std::size_t>(n) * n);
        std::vector<int> pivots(n);
        for (int i = 0; i < batch; ++i) {
            if (!can_read(function, "a matrix of A", A[i], {n, n}, lda) ||
                !can_read(function, "a matrix of C", C[i], {n, n}, ldc))
                return false;
            for (int column = 0; column < n; ++column)
                std::copy_n(A[i] + static_cast<std::size_t>(column) * lda, n, factors.data() + column * n);
            info[i] = factorise(n, factors.data(), n, pivots.data());
            if (info[i] != 0) continue;
            set_identity(n, C[i], ldc);
            solve(CUBLAS_OP_N, n, n, factors.data(), n, pivots.data(), C[i], ldc);
            wrote(C[i], {n, n}, ldc);
        }
        return true;
    });
}

}  // namespace cuda_on_cpu::blas

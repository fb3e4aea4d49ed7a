// Products, and triangular systems.
#include "sparse.hpp"

namespace cuda_on_cpu::sparse {
namespace {

cusparseStatus_t check_product(const char* function, cusparseHandle_t handle, cusparseOperation_t operation,
                               const void* alpha, const Matrix* A, const Vector* x, const void* beta,
                               const Vector* y, cudaDataType compute) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, A, x, y));
    CUSPARSE_TRY(check_operation(function, "the operation of A", operation));
    CUSPARSE_TRY(check_scalar(function, handle, "alpha", alpha));
    CUSPARSE_TRY(check_scalar(function, handle, "beta", beta));
    CUSPARSE_TRY(check_same_type(function, "x", x->type, A->type));
    CUSPARSE_TRY(check_same_type(function, "y", y->type, A->type));
    CUSPARSE_TRY(check_same_type(function, "the computation", compute, A->type));
    CUSPARSE_TRY(check_size(function, "the size of x", x->size, is_plain(operation) ? A->columns : A->rows));
    return check_size(function, "the size of y", y->size, is_plain(operation) ? A->rows : A->columns);
}

cusparseStatus_t multiply(const char* function, cusparseHandle_t handle, cusparseOperation_t operation,
                          const void* alpha, const Matrix& A, const Vector& x, const void* beta,
                          const Vector& y) {
    std::vector<Region> regions = regions_of(A);
    regions.push_back(region_of("x", x));
    regions.push_back(region_of("y", y, true));
    regions.push_back(scalar_region(handle, "alpha", alpha, A.type));
    regions.push_back(scalar_region(handle, "beta", beta, A.type));
    return with_type(A.type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions),
                   [=, a = scalar<T>(handle, alpha), b = scalar<T>(handle, beta)] {
                       std::vector<Wide<T>> sums(y.size);
                       const T* from = static_cast<const T*>(x.values);
                       const bool done = entries<T>(function, A, [&](int64_t row, int64_t column, T value) {
                           if (!is_plain(operation)) std::swap(row, column);
                           sums[row] += operated(operation, value) * Wide<T>(from[column]);
                       });
                       T* to = static_cast<T*>(y.values);
                       for (int64_t i = 0; done && i < y.size; ++i) {
                           Wide<T> result = Wide<T>(a()) * sums[i];
                           if (b() != T{}) result += Wide<T>(b()) * Wide<T>(to[i]);
                           to[i] = narrowed<T>(result);
                       }
                       return done;
                   });
    });
}

cusparseStatus_t check_product(const char* function, cusparseHandle_t handle, cusparseOperation_t a_operation,
                               cusparseOperation_t b_operation, const void* alpha, const Matrix* A,
                               const Dense* B, const void* beta, const Dense* C, cudaDataType compute) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, A, B, C));
    CUSPARSE_TRY(check_operation(function, "the operation of A", a_operation));
    CUSPARSE_TRY(check_operation(function, "the operation of B", b_operation));
    CUSPARSE_TRY(check_scalar(function, handle, "alpha", alpha));
    CUSPARSE_TRY(check_scalar(function, handle, "beta", beta));
    CUSPARSE_TRY(check_same_type(function, "B", B->type, A->type));
    CUSPARSE_TRY(check_same_type(function, "C", C->type, A->type));
    CUSPARSE_TRY(check_same_type(function, "the computation", compute, A->type));
    const bool a_plain = is_plain(a_operation), b_plain = is_plain(b_operation);
    CUSPARSE_TRY(check_size(function, "the number of rows of C", C->rows, a_plain ? A->rows : A->columns));
    CUSPARSE_TRY(check_size(function, "the number of rows of op(B)", b_plain ? B->rows : B->columns,
                            a_plain ? A->columns : A->rows));
    return check_size(function, "the number of columns of C", C->columns, b_plain ? B->columns : B->rows);
}

cusparseStatus_t multiply(const char* function, cusparseHandle_t handle, cusparseOperation_t a_operation,
                          cusparseOperation_t b_operation, const void* alpha, const Matrix& A, const Dense& B,
                          const void* beta, const Dense& C) {
    std::vector<Region> regions = regions_of(A);
    regions.push_back(region_of("B", B));
    regions.push_back(region_of("C", C, true));
    regions.push_back(scalar_region(handle, "alpha", alpha, A.type));
    regions.push_back(scalar_region(handle, "beta", beta, A.type));
    return with_type(A.type, [&](auto type) {
        using T = decltype(type);
        return run(
            handle, function, std::move(regions),
            [=, a = scalar<T>(handle, alpha), b = scalar<T>(handle, beta)] {
                std::vector<Wide<T>> sums(C.rows * C.columns);
                const T* from = static_cast<const T*>(B.values);
                const bool done = entries<T>(function, A, [&](int64_t row, int64_t k, T value) {
                    if (!is_plain(a_operation)) std::swap(row, k);
                    const Wide<T> factor = operated(a_operation, value);
                    for (int64_t column = 0; column < C.columns; ++column) {
                        const T other =
                            from[is_plain(b_operation) ? element(B, k, column) : element(B, column, k)];
                        sums[row * C.columns + column] += factor * operated(b_operation, other);
                    }
                });
                T* to = static_cast<T*>(C.values);
                for (int64_t i = 0; done && i < C.rows * C.columns; ++i) {
                    T& c = to[element(C, i / C.columns, i % C.columns)];
                    Wide<T> result = Wide<T>(a()) * sums[i];
                    if (b() != T{}) result += Wide<T>(b()) * Wide<T>(c);
                    c = narrowed<T>(result);
                }
                return done;
            });
    });
}

// --- Triangular systems --------------------------------------------------------------------------

cusparseStatus_t check_system(const char* function, cusparseHandle_t handle, cusparseOperation_t operation,
                              const void* alpha, const Matrix* A, const Vector* x, const Vector* y,
                              cudaDataType compute, const cusparseSpSVDescr* descriptor) {
    CUSPARSE_TRY(check_given(function, descriptor));
    CUSPARSE_TRY(check_product(function, handle, operation, alpha, A, x, alpha, y, compute));
    return check_size(function, "the number of A's columns", A->columns, A->rows);
}

cusparseStatus_t solve(const char* function, cusparseHandle_t handle, cusparseOperation_t operation,
                       const void* alpha, const Matrix& A, const Vector& x, const Vector& y) {
    std::vector<Region> regions = regions_of(A);
    regions.push_back(region_of("x", x));
    regions.push_back(region_of("y", y, true));
    regions.push_back(scalar_region(handle, "alpha", alpha, A.type));
    return with_type(A.type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions), [=, a = scalar<T>(handle, alpha)] {
            Triangle<T> triangle;
            if (!read_triangle(function, A, operation, triangle)) return false;
            std::vector<Wide<T>> solution(A.rows);
            solve_triangle<T>(triangle, solution, [&](int64_t row) {
                return Wide<T>(a()) * Wide<T>(static_cast<const T*>(x.values)[row]);
            });
            for (int64_t i = 0; i < A.rows; ++i)
                static_cast<T*>(y.values)[i] = narrowed<T>(solution[i]);
            return true;
        });
    });
}

}  // namespace
}  // namespace cuda_on_cpu::sparse

using namespace cuda_on_cpu::sparse;
using cuda_on_cpu::Region;

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t operation,
                                         const void* alpha, cusparseConstSpMatDescr_t A,
                                         cusparseConstDnVecDescr_t x, const void* beta,
                                         cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t,
                                         size_t* size) {
    CUSPARSE_TRY(check_product(__func__, handle, operation, alpha, A, x, beta, y, compute));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t operation,
                                         const void* alpha, cusparseConstSpMatDescr_t A,
                                         cusparseConstDnVecDescr_t x, const void* beta,
                                         cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t,
                                         void*) {
    return check_product(__func__, handle, operation, alpha, A, x, beta, y, compute);
}
cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t operation, const void* alpha,
                              cusparseConstSpMatDescr_t A, cusparseConstDnVecDescr_t x, const void* beta,
                              cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t, void*) {
    CUSPARSE_TRY(check_product(__func__, handle, operation, alpha, A, x, beta, y, compute));
    return multiply(__func__, handle, operation, alpha, *A, *x, beta, *y);
}
cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                         cusparseOperation_t b_operation, const void* alpha,
                                         cusparseConstSpMatDescr_t A, cusparseConstDnMatDescr_t B,
                                         const void* beta, cusparseDnMatDescr_t C, cudaDataType compute,
                                         cusparseSpMMAlg_t, size_t* size) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, alpha, A, B, beta, C, compute));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                         cusparseOperation_t b_operation, const void* alpha,
                                         cusparseConstSpMatDescr_t A, cusparseConstDnMatDescr_t B,
                                         const void* beta, cusparseDnMatDescr_t C, cudaDataType compute,
                                         cusparseSpMMAlg_t, void*) {
    return check_product(__func__, handle, a_operation, b_operation, alpha, A, B, beta, C, compute);
}
cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t a_operation,
                              cusparseOperation_t b_operation, const void* alpha, cusparseConstSpMatDescr_t A,
                              cusparseConstDnMatDescr_t B, const void* beta, cusparseDnMatDescr_t C,
                              cudaDataType compute, cusparseSpMMAlg_t, void*) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, alpha, A, B, beta, C, compute));
    return multiply(__func__, handle, a_operation, b_operation, alpha, *A, *B, beta, *C);
}

cusparseStatus_t cusparseSpSV_createDescr(cusparseSpSVDescr_t* descriptor) {
    CUSPARSE_TRY(check_given(__func__, descriptor));
    *descriptor = new cusparseSpSVDescr;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSV_destroyDescr(cusparseSpSVDescr_t descriptor) {
    delete descriptor;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSV_bufferSize(cusparseHandle_t handle, cusparseOperation_t operation,
                                         const void* alpha, cusparseConstSpMatDescr_t A,
                                         cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y,
                                         cudaDataType compute, cusparseSpSVAlg_t,
                                         cusparseSpSVDescr_t descriptor, size_t* size) {
    CUSPARSE_TRY(check_system(__func__, handle, operation, alpha, A, x, y, compute, descriptor));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSpSV_analysis(cusparseHandle_t handle, cusparseOperation_t operation,
                                       const void* alpha, cusparseConstSpMatDescr_t A,
                                       cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y,
                                       cudaDataType compute, cusparseSpSVAlg_t,
                                       cusparseSpSVDescr_t descriptor, void*) {
    CUSPARSE_TRY(check_system(__func__, handle, operation, alpha, A, x, y, compute, descriptor));
    descriptor->analysed = true;
    descriptor->matrix = *A;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSV_updateMatrix(cusparseHandle_t handle, cusparseSpSVDescr_t descriptor,
                                           void* values, cusparseSpSVUpdate_t part) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    CUSPARSE_TRY(check_given(__func__, descriptor, values));
    if (!descriptor->analysed)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__,
                      "the system has not been analysed; expected cusparseSpSV_analysis before");
    const Matrix& A = descriptor->matrix;
    const bool diagonal = part == CUSPARSE_SPSV_UPDATE_DIAGONAL;
    std::vector<Region> regions = regions_of(A);
    regions[2].written = true;
    regions.push_back(region_of("the new values", values, size_of(A.type) * (diagonal ? A.rows : A.nnz)));
    return with_type(A.type, [&, function = __func__](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions), [=] {
            T* const to = static_cast<T*>(A.values);
            const T* const from = static_cast<const T*>(values);
            int64_t i = 0;
            return entries<T>(function, A, [&](int64_t row, int64_t column, T) {
                if (!diagonal)
                    to[i] = from[i];
                else if (row == column)
                    to[i] = from[row];
                ++i;
            });
        });
    });
}
cusparseStatus_t cusparseSpSV_solve(cusparseHandle_t handle, cusparseOperation_t operation, const void* alpha,
                                    cusparseConstSpMatDescr_t A, cusparseConstDnVecDescr_t x,
                                    cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpSVAlg_t,
                                    cusparseSpSVDescr_t descriptor) {
    CUSPARSE_TRY(check_system(__func__, handle, operation, alpha, A, x, y, compute, descriptor));
    if (!descriptor->analysed)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__,
                      "the system has not been analysed; expected cusparseSpSV_analysis before");
    return solve(__func__, handle, operation, alpha, *A, *x, *y);
}

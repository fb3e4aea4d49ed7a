// Sparse vectors, what descriptors hold, products of sparse matrices, and systems with several
// right sides.
#include "sparse.hpp"

struct cusparseSpVecDescr {
    int64_t size, nnz;
    void *indices, *values;
    cusparseIndexType_t index_type;
    cusparseIndexBase_t base;
    cudaDataType type;
};

struct cusparseSpSMDescr {
    bool analysed = false;
};

// The product as it is computed, before alpha: rows of columns in ascending order.
struct cusparseSpGEMMDescr {
    bool computed = false;
    int64_t products = 0;
    std::vector<int64_t> offsets, columns;
    std::vector<std::complex<double>> values;
};

namespace cuda_on_cpu::sparse {
namespace {

using SparseVector = cusparseSpVecDescr;
using SparseProduct = cusparseSpGEMMDescr;

std::vector<Region> regions_of(const SparseVector& x, bool written = false) {
    return {region_of("the indices of the sparse vector", x.indices, index_size(x.index_type) * x.nnz),
            region_of("the values of the sparse vector", x.values, size_of(x.type) * x.nnz, written)};
}

// Calls use(i, index) for each entry. Returns false, after a message, if an index is outside.
template <class Use>
bool each_entry(const char* function, const SparseVector& x, Use use) {
    for (int64_t i = 0; i < x.nnz; ++i) {
        const int64_t index = load_index(x.index_type, x.indices, i) - x.base;
        if (index < 0 || index >= x.size) {
            fail_in_stream(function,
                           "element %lld of the indices of the sparse vector is %lld; expected %d to %lld",
                           static_cast<long long>(i), static_cast<long long>(index + x.base), x.base,
                           static_cast<long long>(x.size - 1 + x.base));
            return false;
        }
        use(i, index);
    }
    return true;
}

cusparseStatus_t check_vectors(const char* function, cusparseHandle_t handle, const SparseVector* x,
                               const Vector* y) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, x, y));
    if (x->type != y->type)
        return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function, "the type of y is %d; expected %d, that of x",
                      y->type, x->type);
    return check_size(function, "the size of y", y->size, x->size);
}

template <class T>
Wide<T> conjugate(Wide<T> value) {
    if constexpr (std::is_arithmetic_v<T>)
        return value;
    else
        return std::conj(value);
}

template <class T>
T from_complex(std::complex<double> value) {
    if constexpr (std::is_arithmetic_v<T>)
        return static_cast<T>(value.real());
    else
        return T(value);
}

// --- C = A B -------------------------------------------------------------------------------------

cusparseStatus_t check_product(const char* function, cusparseHandle_t handle, cusparseOperation_t a_operation,
                               cusparseOperation_t b_operation, const Matrix* A, const Matrix* B,
                               const Matrix* C, const SparseProduct* descriptor) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, A, B, C, descriptor));
    if (!is_plain(a_operation) || !is_plain(b_operation))
        return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function,
                      "the operations of A and B are %d and %d; expected "
                      "CUSPARSE_OPERATION_NON_TRANSPOSE for both",
                      a_operation, b_operation);
    for (const Matrix* matrix : {A, B, C}) {
        if (matrix->format != CUSPARSE_FORMAT_CSR)
            return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function,
                          "the format of a matrix is %d; expected CUSPARSE_FORMAT_CSR", matrix->format);
    }
    CUSPARSE_TRY(check_same_type(function, "B", B->type, A->type));
    CUSPARSE_TRY(check_same_type(function, "C", C->type, A->type));
    CUSPARSE_TRY(check_size(function, "the number of rows of B", B->rows, A->columns));
    CUSPARSE_TRY(check_size(function, "the number of rows of C", C->rows, A->rows));
    return check_size(function, "the number of columns of C", C->columns, B->columns);
}

// Rows of B, and the product of each row of A with them. Returns false after a message.
template <class T>
bool multiply_sparse(const char* function, const Matrix& A, const Matrix& B, SparseProduct& product) {
    struct Entry {
        int64_t column;
        std::complex<double> value;
    };
    std::vector<std::vector<Entry>> a(A.rows), b(B.rows);
    const auto collect = [function](const Matrix& M, std::vector<std::vector<Entry>>& rows) {
        return entries<T>(function, M, [&rows](int64_t row, int64_t column, T value) {
            rows[row].push_back({column, std::complex<double>(Wide<T>(value))});
        });
    };
    if (!collect(A, a) || !collect(B, b)) return false;
    product.offsets.assign(1, 0);
    product.columns.clear();
    product.values.clear();
    product.products = 0;
    std::vector<std::complex<double>> sums(B.columns);
    std::vector<char> used(B.columns);
    for (const std::vector<Entry>& row : a) {
        const std::size_t begin = product.columns.size();
        for (const Entry& left : row) {
            for (const Entry& right : b[left.column]) {
                ++product.products;
                sums[right.column] += left.value * right.value;
                if (used[right.column]) continue;
                used[right.column] = 1;
                product.columns.push_back(right.column);
            }
        }
        std::sort(product.columns.begin() + static_cast<std::ptrdiff_t>(begin), product.columns.end());
        for (std::size_t i = begin; i < product.columns.size(); ++i) {
            const int64_t column = product.columns[i];
            product.values.push_back(sums[column]);
            sums[column] = 0;
            used[column] = 0;
        }
        product.offsets.push_back(static_cast<int64_t>(product.columns.size()));
    }
    product.computed = true;
    return true;
}

std::vector<Region> operands(const Matrix& A, const Matrix& B) {
    std::vector<Region> regions = sparse::regions_of(A);
    for (const Region& region : sparse::regions_of(B))
        regions.push_back(region);
    return regions;
}

// Computes the product, which the host waits for, as its size is the host's to know.
cusparseStatus_t compute_product(const char* function, cusparseHandle_t handle, const Matrix& A,
                                 const Matrix& B, Matrix& C, SparseProduct& product) {
    product.computed = false;
    CUSPARSE_TRY(with_type(A.type, [&](auto type) {
        using T = decltype(type);
        return run(
            handle, function, operands(A, B),
            [=, &product] { return multiply_sparse<T>(function, A, B, product); }, true);
    }));
    if (!product.computed) return CUSPARSE_STATUS_EXECUTION_FAILED;
    C.nnz = static_cast<int64_t>(product.columns.size());
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t check_computed(const char* function, const SparseProduct& product, const Matrix& C,
                                const char* before) {
    if (!product.computed)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function,
                      "the product has not been computed; expected %s before", before);
    return check_size(function, "the number of values of C", C.nnz,
                      static_cast<int64_t>(product.columns.size()));
}

void write_structure(const Matrix& C, const SparseProduct& product) {
    for (std::size_t i = 0; i < product.offsets.size(); ++i)
        store_index(C.outer_type, C.outer, static_cast<int64_t>(i), product.offsets[i] + C.base);
    for (std::size_t i = 0; i < product.columns.size(); ++i)
        store_index(C.inner_type, C.inner, static_cast<int64_t>(i), product.columns[i] + C.base);
}

template <class T>
void write_values(const Matrix& C, const SparseProduct& product, T alpha, T beta) {
    T* const values = static_cast<T*>(C.values);
    for (std::size_t i = 0; i < product.values.size(); ++i) {
        std::complex<double> value = std::complex<double>(Wide<T>(alpha)) * product.values[i];
        if (beta != T{})
            value += std::complex<double>(Wide<T>(beta)) * std::complex<double>(Wide<T>(values[i]));
        values[i] = from_complex<T>(value);
    }
}

std::vector<Region> written(const Matrix& C, bool structure, bool values) {
    std::vector<Region> regions = sparse::regions_of(C);
    if (!values) regions.pop_back();
    for (std::size_t i = 0; i < regions.size(); ++i)
        regions[i].written = structure || i == 2;
    return regions;
}

// --- op(A) C = alpha op(B) -----------------------------------------------------------------------

cusparseStatus_t check_systems(const char* function, cusparseHandle_t handle, cusparseOperation_t a_operation,
                               cusparseOperation_t b_operation, const void* alpha, const Matrix* A,
                               const Dense* B, const Dense* C, cudaDataType compute,
                               const cusparseSpSMDescr* descriptor) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, A, B, C, descriptor));
    CUSPARSE_TRY(check_operation(function, "the operation of A", a_operation));
    CUSPARSE_TRY(check_operation(function, "the operation of B", b_operation));
    if (b_operation == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE)
        return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function,
                      "the operation of B is the conjugate transpose; expected "
                      "CUSPARSE_OPERATION_NON_TRANSPOSE or CUSPARSE_OPERATION_TRANSPOSE");
    CUSPARSE_TRY(check_scalar(function, handle, "alpha", alpha));
    CUSPARSE_TRY(check_same_type(function, "B", B->type, A->type));
    CUSPARSE_TRY(check_same_type(function, "C", C->type, A->type));
    CUSPARSE_TRY(check_same_type(function, "the computation", compute, A->type));
    CUSPARSE_TRY(check_size(function, "the number of A's columns", A->columns, A->rows));
    CUSPARSE_TRY(check_size(function, "the number of rows of C", C->rows, A->rows));
    CUSPARSE_TRY(check_size(function, "the number of rows of op(B)",
                            is_plain(b_operation) ? B->rows : B->columns, A->rows));
    return check_size(function, "the number of columns of op(B)",
                      is_plain(b_operation) ? B->columns : B->rows, C->columns);
}

cusparseStatus_t solve_systems(const char* function, cusparseHandle_t handle, cusparseOperation_t a_operation,
                               cusparseOperation_t b_operation, const void* alpha, const Matrix& A,
                               const Dense& B, const Dense& C) {
    std::vector<Region> regions = sparse::regions_of(A);
    regions.push_back(region_of("B", B));
    regions.push_back(region_of("C", C, true));
    regions.push_back(scalar_region(handle, "alpha", alpha, A.type));
    return with_type(A.type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions), [=, a = scalar<T>(handle, alpha)] {
            Triangle<T> triangle;
            if (!read_triangle(function, A, a_operation, triangle)) return false;
            std::vector<Wide<T>> solution(A.rows);
            std::vector<Wide<T>> all(C.rows * C.columns);  // C may be B
            for (int64_t column = 0; column < C.columns; ++column) {
                solve_triangle<T>(triangle, solution, [&](int64_t row) {
                    const auto at = is_plain(b_operation) ? element(B, row, column) : element(B, column, row);
                    return Wide<T>(a()) * Wide<T>(static_cast<const T*>(B.values)[at]);
                });
                for (int64_t row = 0; row < C.rows; ++row)
                    all[row * C.columns + column] = solution[row];
            }
            for (int64_t row = 0; row < C.rows; ++row) {
                for (int64_t column = 0; column < C.columns; ++column)
                    static_cast<T*>(C.values)[element(C, row, column)] =
                        narrowed<T>(all[row * C.columns + column]);
            }
            return true;
        });
    });
}

// --- C = alpha op(A) op(B) at the places of C + beta C -------------------------------------------

cusparseStatus_t check_sampled(const char* function, cusparseHandle_t handle, cusparseOperation_t a_operation,
                               cusparseOperation_t b_operation, const void* alpha, const Dense* A,
                               const Dense* B, const void* beta, const Matrix* C, cudaDataType compute) {
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
    CUSPARSE_TRY(
        check_size(function, "the number of rows of op(A)", a_plain ? A->rows : A->columns, C->rows));
    CUSPARSE_TRY(check_size(function, "the number of rows of op(B)", b_plain ? B->rows : B->columns,
                            a_plain ? A->columns : A->rows));
    return check_size(function, "the number of columns of op(B)", b_plain ? B->columns : B->rows, C->columns);
}

}  // namespace
}  // namespace cuda_on_cpu::sparse

using namespace cuda_on_cpu::sparse;
using cuda_on_cpu::Region;

cusparseStatus_t cusparseCsrGet(cusparseSpMatDescr_t matrix, int64_t* rows, int64_t* columns, int64_t* nnz,
                                void** row_offsets, void** column_indices, void** values,
                                cusparseIndexType_t* offsets_type, cusparseIndexType_t* indices_type,
                                cusparseIndexBase_t* base, cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz, row_offsets, column_indices, values,
                             offsets_type, indices_type, base, type));
    if (matrix->format != CUSPARSE_FORMAT_CSR)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the format of the matrix is %d; expected %d",
                      matrix->format, CUSPARSE_FORMAT_CSR);
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    *row_offsets = matrix->outer;
    *column_indices = matrix->inner;
    *values = matrix->values;
    *offsets_type = matrix->outer_type;
    *indices_type = matrix->inner_type;
    *base = matrix->base;
    *type = matrix->type;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCscGet(cusparseSpMatDescr_t matrix, int64_t* rows, int64_t* columns, int64_t* nnz,
                                void** column_offsets, void** row_indices, void** values,
                                cusparseIndexType_t* offsets_type, cusparseIndexType_t* indices_type,
                                cusparseIndexBase_t* base, cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz, column_offsets, row_indices, values,
                             offsets_type, indices_type, base, type));
    if (matrix->format != CUSPARSE_FORMAT_CSC)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the format of the matrix is %d; expected %d",
                      matrix->format, CUSPARSE_FORMAT_CSC);
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    *column_offsets = matrix->outer;
    *row_indices = matrix->inner;
    *values = matrix->values;
    *offsets_type = matrix->outer_type;
    *indices_type = matrix->inner_type;
    *base = matrix->base;
    *type = matrix->type;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCooGet(cusparseSpMatDescr_t matrix, int64_t* rows, int64_t* columns, int64_t* nnz,
                                void** row_indices, void** column_indices, void** values,
                                cusparseIndexType_t* indices_type, cusparseIndexBase_t* base,
                                cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz, row_indices, column_indices, values,
                             indices_type, base, type));
    if (matrix->format != CUSPARSE_FORMAT_COO)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the format of the matrix is %d; expected %d",
                      matrix->format, CUSPARSE_FORMAT_COO);
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    *row_indices = matrix->outer;
    *column_indices = matrix->inner;
    *values = matrix->values;
    *indices_type = matrix->inner_type;
    *base = matrix->base;
    *type = matrix->type;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDnMatGet(cusparseDnMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                  int64_t* leading, void** values, cudaDataType* type,
                                  cusparseOrder_t* order) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, leading, values, type, order));
    *rows = matrix->rows;
    *columns = matrix->columns;
    *leading = matrix->leading;
    *values = matrix->values;
    *type = matrix->type;
    *order = matrix->order;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstCsrGet(cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                     int64_t* nnz, const void** row_offsets, const void** column_indices,
                                     const void** values, cusparseIndexType_t* offsets_type,
                                     cusparseIndexType_t* indices_type, cusparseIndexBase_t* base,
                                     cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz, row_offsets, column_indices, values,
                             offsets_type, indices_type, base, type));
    if (matrix->format != CUSPARSE_FORMAT_CSR)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the format of the matrix is %d; expected %d",
                      matrix->format, CUSPARSE_FORMAT_CSR);
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    *row_offsets = matrix->outer;
    *column_indices = matrix->inner;
    *values = matrix->values;
    *offsets_type = matrix->outer_type;
    *indices_type = matrix->inner_type;
    *base = matrix->base;
    *type = matrix->type;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstCscGet(cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                     int64_t* nnz, const void** column_offsets, const void** row_indices,
                                     const void** values, cusparseIndexType_t* offsets_type,
                                     cusparseIndexType_t* indices_type, cusparseIndexBase_t* base,
                                     cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz, column_offsets, row_indices, values,
                             offsets_type, indices_type, base, type));
    if (matrix->format != CUSPARSE_FORMAT_CSC)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the format of the matrix is %d; expected %d",
                      matrix->format, CUSPARSE_FORMAT_CSC);
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    *column_offsets = matrix->outer;
    *row_indices = matrix->inner;
    *values = matrix->values;
    *offsets_type = matrix->outer_type;
    *indices_type = matrix->inner_type;
    *base = matrix->base;
    *type = matrix->type;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstCooGet(cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                     int64_t* nnz, const void** row_indices, const void** column_indices,
                                     const void** values, cusparseIndexType_t* indices_type,
                                     cusparseIndexBase_t* base, cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz, row_indices, column_indices, values,
                             indices_type, base, type));
    if (matrix->format != CUSPARSE_FORMAT_COO)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the format of the matrix is %d; expected %d",
                      matrix->format, CUSPARSE_FORMAT_COO);
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    *row_indices = matrix->outer;
    *column_indices = matrix->inner;
    *values = matrix->values;
    *indices_type = matrix->inner_type;
    *base = matrix->base;
    *type = matrix->type;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnMatGet(cusparseConstDnMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                       int64_t* leading, const void** values, cudaDataType* type,
                                       cusparseOrder_t* order) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, leading, values, type, order));
    *rows = matrix->rows;
    *columns = matrix->columns;
    *leading = matrix->leading;
    *values = matrix->values;
    *type = matrix->type;
    *order = matrix->order;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstSpMatGetValues(cusparseConstSpMatDescr_t matrix, const void** values) {
    CUSPARSE_TRY(check_given(__func__, matrix, values));
    *values = matrix->values;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnMatGetValues(cusparseConstDnMatDescr_t matrix, const void** values) {
    CUSPARSE_TRY(check_given(__func__, matrix, values));
    *values = matrix->values;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnVecGetValues(cusparseConstDnVecDescr_t vector, const void** values) {
    CUSPARSE_TRY(check_given(__func__, vector, values));
    *values = vector->values;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnVecGet(cusparseConstDnVecDescr_t vector, int64_t* size, const void** values,
                                       cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, vector, size, values, type));
    *size = vector->size;
    *values = vector->values;
    *type = vector->type;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateConstCsc(cusparseConstSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                        int64_t nnz, const void* column_offsets, const void* row_indices,
                                        const void* values, cusparseIndexType_t offsets_type,
                                        cusparseIndexType_t indices_type, cusparseIndexBase_t base,
                                        cudaDataType type) {
    return cusparseCreateCsc(const_cast<cusparseSpMatDescr_t*>(matrix), rows, columns, nnz,
                             const_cast<void*>(column_offsets), const_cast<void*>(row_indices),
                             const_cast<void*>(values), offsets_type, indices_type, base, type);
}

cusparseStatus_t cusparseCreateConstCoo(cusparseConstSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                        int64_t nnz, const void* row_indices, const void* column_indices,
                                        const void* values, cusparseIndexType_t indices_type,
                                        cusparseIndexBase_t base, cudaDataType type) {
    return cusparseCreateCoo(const_cast<cusparseSpMatDescr_t*>(matrix), rows, columns, nnz,
                             const_cast<void*>(row_indices), const_cast<void*>(column_indices),
                             const_cast<void*>(values), indices_type, base, type);
}

cusparseStatus_t cusparseCreateSpVec(cusparseSpVecDescr_t* vector, int64_t size, int64_t nnz, void* indices,
                                     void* values, cusparseIndexType_t indices_type, cusparseIndexBase_t base,
                                     cudaDataType type) {
    CUSPARSE_TRY(check_given(__func__, vector));
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    if (size < 0 || nnz < 0 || nnz > size)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__,
                      "%lld values of %lld elements; expected at least 0, and no more values than elements",
                      static_cast<long long>(nnz), static_cast<long long>(size));
    if (index_size(indices_type) == 0)
        return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, __func__,
                      "the type of the indices is %d; expected CUSPARSE_INDEX_32I or 64I", indices_type);
    *vector = new cusparseSpVecDescr{size, nnz, indices, values, indices_type, base, type};
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstSpVec(cusparseConstSpVecDescr_t* vector, int64_t size, int64_t nnz,
                                          const void* indices, const void* values,
                                          cusparseIndexType_t indices_type, cusparseIndexBase_t base,
                                          cudaDataType type) {
    return cusparseCreateSpVec(const_cast<cusparseSpVecDescr_t*>(vector), size, nnz,
                               const_cast<void*>(indices), const_cast<void*>(values), indices_type, base,
                               type);
}
cusparseStatus_t cusparseDestroySpVec(cusparseConstSpVecDescr_t vector) {
    delete vector;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpVecGet(cusparseSpVecDescr_t vector, int64_t* size, int64_t* nnz, void** indices,
                                  void** values, cusparseIndexType_t* indices_type, cusparseIndexBase_t* base,
                                  cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, vector, size, nnz, indices, values, indices_type, base, type));
    *size = vector->size;
    *nnz = vector->nnz;
    *indices = vector->indices;
    *values = vector->values;
    *indices_type = vector->index_type;
    *base = vector->base;
    *type = vector->type;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpVecGetValues(cusparseSpVecDescr_t vector, void** values) {
    CUSPARSE_TRY(check_given(__func__, vector, values));
    *values = vector->values;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstSpVecGet(cusparseConstSpVecDescr_t vector, int64_t* size, int64_t* nnz,
                                       const void** indices, const void** values,
                                       cusparseIndexType_t* indices_type, cusparseIndexBase_t* base,
                                       cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, vector, size, nnz, indices, values, indices_type, base, type));
    *size = vector->size;
    *nnz = vector->nnz;
    *indices = vector->indices;
    *values = vector->values;
    *indices_type = vector->index_type;
    *base = vector->base;
    *type = vector->type;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseConstSpVecGetValues(cusparseConstSpVecDescr_t vector, const void** values) {
    CUSPARSE_TRY(check_given(__func__, vector, values));
    *values = vector->values;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpVecGetIndexBase(cusparseConstSpVecDescr_t vector, cusparseIndexBase_t* base) {
    CUSPARSE_TRY(check_given(__func__, vector, base));
    *base = vector->base;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpVecSetValues(cusparseSpVecDescr_t vector, void* values) {
    CUSPARSE_TRY(check_given(__func__, vector));
    vector->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseAxpby(cusparseHandle_t handle, const void* alpha, cusparseConstSpVecDescr_t x,
                               const void* beta, cusparseDnVecDescr_t y) {
    CUSPARSE_TRY(check_vectors(__func__, handle, x, y));
    CUSPARSE_TRY(check_scalar(__func__, handle, "alpha", alpha));
    CUSPARSE_TRY(check_scalar(__func__, handle, "beta", beta));
    std::vector<Region> regions = regions_of(*x);
    regions.push_back(region_of("y", *y, true));
    regions.push_back(scalar_region(handle, "alpha", alpha, x->type));
    regions.push_back(scalar_region(handle, "beta", beta, x->type));
    const char* const function = __func__;
    return with_type(x->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions),
                   [=, from = *x, to = *y, a = scalar<T>(handle, alpha), b = scalar<T>(handle, beta)] {
                       std::vector<Wide<T>> sums(to.size);
                       T* const values = static_cast<T*>(to.values);
                       if (!each_entry(function, from, [&](int64_t i, int64_t index) {
                               sums[index] += Wide<T>(a()) * Wide<T>(static_cast<const T*>(from.values)[i]);
                           }))
                           return false;
                       for (int64_t i = 0; i < to.size; ++i) {
                           if (b() != T{}) sums[i] += Wide<T>(b()) * Wide<T>(values[i]);
                           values[i] = narrowed<T>(sums[i]);
                       }
                       return true;
                   });
    });
}
cusparseStatus_t cusparseGather(cusparseHandle_t handle, cusparseConstDnVecDescr_t y,
                                cusparseSpVecDescr_t x) {
    CUSPARSE_TRY(check_vectors(__func__, handle, x, y));
    std::vector<Region> regions = regions_of(*x, true);
    regions.push_back(region_of("y", *y));
    const char* const function = __func__;
    return with_type(x->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions), [=, to = *x, from = *y] {
            return each_entry(function, to, [&](int64_t i, int64_t index) {
                static_cast<T*>(to.values)[i] = static_cast<const T*>(from.values)[index];
            });
        });
    });
}
cusparseStatus_t cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t x,
                                 cusparseDnVecDescr_t y) {
    CUSPARSE_TRY(check_vectors(__func__, handle, x, y));
    std::vector<Region> regions = regions_of(*x);
    regions.push_back(region_of("y", *y, true));
    const char* const function = __func__;
    return with_type(x->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions), [=, from = *x, to = *y] {
            return each_entry(function, from, [&](int64_t i, int64_t index) {
                static_cast<T*>(to.values)[index] = static_cast<const T*>(from.values)[i];
            });
        });
    });
}
cusparseStatus_t cusparseRot(cusparseHandle_t handle, const void* c, const void* s, cusparseSpVecDescr_t x,
                             cusparseDnVecDescr_t y) {
    CUSPARSE_TRY(check_vectors(__func__, handle, x, y));
    CUSPARSE_TRY(check_scalar(__func__, handle, "c", c));
    CUSPARSE_TRY(check_scalar(__func__, handle, "s", s));
    std::vector<Region> regions = regions_of(*x, true);
    regions.push_back(region_of("y", *y, true));
    regions.push_back(scalar_region(handle, "c", c, x->type));
    regions.push_back(scalar_region(handle, "s", s, x->type));
    const char* const function = __func__;
    return with_type(x->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions),
                   [=, sparse = *x, dense = *y, cosine = scalar<T>(handle, c), sine = scalar<T>(handle, s)] {
                       return each_entry(function, sparse, [&](int64_t i, int64_t index) {
                           T& left = static_cast<T*>(sparse.values)[i];
                           T& right = static_cast<T*>(dense.values)[index];
                           const Wide<T> a(left), b(right), co(cosine()), si(sine());
                           left = narrowed<T>(co * a + si * b);
                           right = narrowed<T>(co * b - conjugate<T>(si) * a);
                       });
                   });
    });
}
cusparseStatus_t cusparseSpVV_bufferSize(cusparseHandle_t handle, cusparseOperation_t operation,
                                         cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y,
                                         const void*, cudaDataType, size_t* size) {
    CUSPARSE_TRY(check_vectors(__func__, handle, x, y));
    CUSPARSE_TRY(check_operation(__func__, "the operation of x", operation));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSpVV(cusparseHandle_t handle, cusparseOperation_t operation,
                              cusparseConstSpVecDescr_t x, cusparseConstDnVecDescr_t y, void* result,
                              cudaDataType compute, void*) {
    CUSPARSE_TRY(check_vectors(__func__, handle, x, y));
    CUSPARSE_TRY(check_operation(__func__, "the operation of x", operation));
    CUSPARSE_TRY(check_scalar(__func__, handle, "result", result));
    if (compute != x->type)
        return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, __func__,
                      "the type of the computation is %d; expected %d, that of x", compute, x->type);
    std::vector<Region> regions = regions_of(*x);
    regions.push_back(region_of("y", *y));
    regions.push_back(scalar_region(handle, "result", result, x->type));
    regions.back().written = regions.back().pointer != nullptr;
    const char* const function = __func__;
    return with_type(x->type, [&](auto type) {
        using T = decltype(type);
        return run(
            handle, function, std::move(regions),
            [=, left = *x, right = *y] {
                Wide<T> sum{};
                if (!each_entry(function, left, [&](int64_t i, int64_t index) {
                        sum += operated(operation, static_cast<const T*>(left.values)[i]) *
                               Wide<T>(static_cast<const T*>(right.values)[index]);
                    }))
                    return false;
                const T rounded = narrowed<T>(sum);
                std::memcpy(result, &rounded, sizeof rounded);
                return true;
            },
            handle->pointer_mode == CUSPARSE_POINTER_MODE_HOST);
    });
}

cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t* descriptor) {
    CUSPARSE_TRY(check_given(__func__, descriptor));
    *descriptor = new cusparseSpSMDescr;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSM_destroyDescr(cusparseSpSMDescr_t descriptor) {
    delete descriptor;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSM_bufferSize(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                         cusparseOperation_t b_operation, const void* alpha,
                                         cusparseConstSpMatDescr_t A, cusparseConstDnMatDescr_t B,
                                         cusparseDnMatDescr_t C, cudaDataType compute, cusparseSpSMAlg_t,
                                         cusparseSpSMDescr_t descriptor, size_t* size) {
    CUSPARSE_TRY(
        check_systems(__func__, handle, a_operation, b_operation, alpha, A, B, C, compute, descriptor));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSpSM_analysis(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                       cusparseOperation_t b_operation, const void* alpha,
                                       cusparseConstSpMatDescr_t A, cusparseConstDnMatDescr_t B,
                                       cusparseDnMatDescr_t C, cudaDataType compute, cusparseSpSMAlg_t,
                                       cusparseSpSMDescr_t descriptor, void*) {
    CUSPARSE_TRY(
        check_systems(__func__, handle, a_operation, b_operation, alpha, A, B, C, compute, descriptor));
    descriptor->analysed = true;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSM_solve(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                    cusparseOperation_t b_operation, const void* alpha,
                                    cusparseConstSpMatDescr_t A, cusparseConstDnMatDescr_t B,
                                    cusparseDnMatDescr_t C, cudaDataType compute, cusparseSpSMAlg_t,
                                    cusparseSpSMDescr_t descriptor) {
    CUSPARSE_TRY(
        check_systems(__func__, handle, a_operation, b_operation, alpha, A, B, C, compute, descriptor));
    if (!descriptor->analysed)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__,
                      "the systems have not been analysed; expected cusparseSpSM_analysis before");
    return solve_systems(__func__, handle, a_operation, b_operation, alpha, *A, *B, *C);
}

cusparseStatus_t cusparseSpGEMM_createDescr(cusparseSpGEMMDescr_t* descriptor) {
    CUSPARSE_TRY(check_given(__func__, descriptor));
    *descriptor = new cusparseSpGEMMDescr;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t descriptor) {
    delete descriptor;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpGEMM_workEstimation(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                               cusparseOperation_t b_operation, const void*,
                                               cusparseConstSpMatDescr_t A, cusparseConstSpMatDescr_t B,
                                               const void*, cusparseSpMatDescr_t C, cudaDataType,
                                               cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t descriptor,
                                               size_t* size, void* buffer) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    if (buffer == nullptr) return buffer_size(handle, __func__, size);
    return compute_product(__func__, handle, *A, *B, *C, *descriptor);
}
cusparseStatus_t cusparseSpGEMM_getNumProducts(cusparseSpGEMMDescr_t descriptor, int64_t* products) {
    CUSPARSE_TRY(check_given(__func__, descriptor, products));
    *products = descriptor->products;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpGEMM_estimateMemory(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                               cusparseOperation_t b_operation, const void*,
                                               cusparseConstSpMatDescr_t A, cusparseConstSpMatDescr_t B,
                                               const void*, cusparseSpMatDescr_t C, cudaDataType,
                                               cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t descriptor, float,
                                               size_t* size3, void* buffer3, size_t* size2) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    return buffer_size(handle, __func__, buffer3 == nullptr ? size3 : size2);
}
cusparseStatus_t cusparseSpGEMM_compute(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                        cusparseOperation_t b_operation, const void*,
                                        cusparseConstSpMatDescr_t A, cusparseConstSpMatDescr_t B, const void*,
                                        cusparseSpMatDescr_t C, cudaDataType compute, cusparseSpGEMMAlg_t,
                                        cusparseSpGEMMDescr_t descriptor, size_t* size, void* buffer) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    CUSPARSE_TRY(check_same_type(__func__, "the computation", compute, A->type));
    if (buffer == nullptr) return buffer_size(handle, __func__, size);
    return compute_product(__func__, handle, *A, *B, *C, *descriptor);
}
cusparseStatus_t cusparseSpGEMM_copy(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                     cusparseOperation_t b_operation, const void* alpha,
                                     cusparseConstSpMatDescr_t A, cusparseConstSpMatDescr_t B,
                                     const void* beta, cusparseSpMatDescr_t C, cudaDataType compute,
                                     cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t descriptor) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    CUSPARSE_TRY(check_same_type(__func__, "the computation", compute, A->type));
    CUSPARSE_TRY(check_scalar(__func__, handle, "alpha", alpha));
    CUSPARSE_TRY(check_scalar(__func__, handle, "beta", beta));
    CUSPARSE_TRY(check_computed(__func__, *descriptor, *C, "cusparseSpGEMM_compute"));
    std::vector<Region> regions = written(*C, true, true);
    regions.push_back(scalar_region(handle, "alpha", alpha, A->type));
    regions.push_back(scalar_region(handle, "beta", beta, A->type));
    const char* const function = __func__;
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        return run(
            handle, function, std::move(regions),
            [result = *C, product = *descriptor, a = scalar<T>(handle, alpha), b = scalar<T>(handle, beta)] {
                write_structure(result, product);
                write_values<T>(result, product, a(), b());
                return true;
            });
    });
}

cusparseStatus_t cusparseSpGEMMreuse_workEstimation(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                                    cusparseOperation_t b_operation,
                                                    cusparseConstSpMatDescr_t A, cusparseConstSpMatDescr_t B,
                                                    cusparseSpMatDescr_t C, cusparseSpGEMMAlg_t,
                                                    cusparseSpGEMMDescr_t descriptor, size_t* size,
                                                    void* buffer) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    return buffer == nullptr ? buffer_size(handle, __func__, size) : CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpGEMMreuse_nnz(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                         cusparseOperation_t b_operation, cusparseConstSpMatDescr_t A,
                                         cusparseConstSpMatDescr_t B, cusparseSpMatDescr_t C,
                                         cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t descriptor, size_t* size2,
                                         void* buffer2, size_t* size3, void*, size_t* size4, void*) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    if (buffer2 != nullptr) return compute_product(__func__, handle, *A, *B, *C, *descriptor);
    CUSPARSE_TRY(buffer_size(handle, __func__, size2));
    CUSPARSE_TRY(buffer_size(handle, __func__, size3));
    return buffer_size(handle, __func__, size4);
}
cusparseStatus_t cusparseSpGEMMreuse_copy(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                          cusparseOperation_t b_operation, cusparseConstSpMatDescr_t A,
                                          cusparseConstSpMatDescr_t B, cusparseSpMatDescr_t C,
                                          cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t descriptor,
                                          size_t* size5, void* buffer5) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    if (buffer5 == nullptr) return buffer_size(handle, __func__, size5);
    CUSPARSE_TRY(check_computed(__func__, *descriptor, *C, "cusparseSpGEMMreuse_nnz"));
    return run(handle, __func__, written(*C, true, false), [result = *C, product = *descriptor] {
        write_structure(result, product);
        return true;
    });
}
cusparseStatus_t cusparseSpGEMMreuse_compute(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                             cusparseOperation_t b_operation, const void* alpha,
                                             cusparseConstSpMatDescr_t A, cusparseConstSpMatDescr_t B,
                                             const void* beta, cusparseSpMatDescr_t C, cudaDataType compute,
                                             cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t descriptor) {
    CUSPARSE_TRY(check_product(__func__, handle, a_operation, b_operation, A, B, C, descriptor));
    CUSPARSE_TRY(check_same_type(__func__, "the computation", compute, A->type));
    CUSPARSE_TRY(check_scalar(__func__, handle, "alpha", alpha));
    CUSPARSE_TRY(check_scalar(__func__, handle, "beta", beta));
    CUSPARSE_TRY(check_computed(__func__, *descriptor, *C, "cusparseSpGEMMreuse_nnz"));
    std::vector<Region> regions = written(*C, false, true);
    for (const Region& region : operands(*A, *B))
        regions.push_back(region);
    regions.push_back(scalar_region(handle, "alpha", alpha, A->type));
    regions.push_back(scalar_region(handle, "beta", beta, A->type));
    const char* const function = __func__;
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions),
                   [=, left = *A, right = *B, result = *C, a = scalar<T>(handle, alpha),
                    b = scalar<T>(handle, beta)] {
                       SparseProduct product;
                       if (!multiply_sparse<T>(function, left, right, product)) return false;
                       if (static_cast<int64_t>(product.columns.size()) != result.nnz) {
                           fail_in_stream(function,
                                          "the product has %zu values and C has %lld: A or B got another "
                                          "structure after cusparseSpGEMMreuse_nnz",
                                          product.columns.size(), static_cast<long long>(result.nnz));
                           return false;
                       }
                       write_values<T>(result, product, a(), b());
                       return true;
                   });
    });
}

cusparseStatus_t cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                          cusparseOperation_t b_operation, const void* alpha,
                                          cusparseConstDnMatDescr_t A, cusparseConstDnMatDescr_t B,
                                          const void* beta, cusparseSpMatDescr_t C, cudaDataType compute,
                                          cusparseSDDMMAlg_t, size_t* size) {
    CUSPARSE_TRY(check_sampled(__func__, handle, a_operation, b_operation, alpha, A, B, beta, C, compute));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSDDMM_preprocess(cusparseHandle_t handle, cusparseOperation_t a_operation,
                                          cusparseOperation_t b_operation, const void* alpha,
                                          cusparseConstDnMatDescr_t A, cusparseConstDnMatDescr_t B,
                                          const void* beta, cusparseSpMatDescr_t C, cudaDataType compute,
                                          cusparseSDDMMAlg_t, void*) {
    return check_sampled(__func__, handle, a_operation, b_operation, alpha, A, B, beta, C, compute);
}
cusparseStatus_t cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t a_operation,
                               cusparseOperation_t b_operation, const void* alpha,
                               cusparseConstDnMatDescr_t A, cusparseConstDnMatDescr_t B, const void* beta,
                               cusparseSpMatDescr_t C, cudaDataType compute, cusparseSDDMMAlg_t, void*) {
    CUSPARSE_TRY(check_sampled(__func__, handle, a_operation, b_operation, alpha, A, B, beta, C, compute));
    std::vector<Region> regions = written(*C, false, true);
    regions.push_back(region_of("A", *A));
    regions.push_back(region_of("B", *B));
    regions.push_back(scalar_region(handle, "alpha", alpha, A->type));
    regions.push_back(scalar_region(handle, "beta", beta, A->type));
    const char* const function = __func__;
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        return run(
            handle, function, std::move(regions),
            [=, left = *A, right = *B, result = *C, a = scalar<T>(handle, alpha),
             b = scalar<T>(handle, beta)] {
                const bool a_plain = is_plain(a_operation), b_plain = is_plain(b_operation);
                const int64_t terms = a_plain ? left.columns : left.rows;
                std::vector<T> values;
                values.reserve(result.nnz);
                const bool done = entries<T>(function, result, [&](int64_t row, int64_t column, T old) {
                    Wide<T> sum{};
                    for (int64_t k = 0; k < terms; ++k) {
                        const T x = static_cast<const T*>(
                            left.values)[a_plain ? element(left, row, k) : element(left, k, row)];
                        const T y = static_cast<const T*>(
                            right.values)[b_plain ? element(right, k, column) : element(right, column, k)];
                        sum += operated(a_operation, x) * operated(b_operation, y);
                    }
                    sum *= Wide<T>(a());
                    if (b() != T{}) sum += Wide<T>(b()) * Wide<T>(old);
                    values.push_back(narrowed<T>(sum));
                });
                if (done) std::copy(values.begin(), values.end(), static_cast<T*>(result.values));
                return done;
            });
    });
}

// The incomplete LU factorisation without fill-in, ILU(0), of a matrix in CSR.
#include <cmath>
#include <memory>

#include "sparse.hpp"

namespace cuda_on_cpu::sparse {
namespace {

// The result of a factorisation, which the program reads later.
struct Pivots {
    // The first row, in the index base of the matrix, whose pivot is 0 or not stored; -1: none.
    int zero = -1;
    bool boosts = false;
    double tolerance = 0;
    std::complex<double> boost = 0;
};

}  // namespace
}  // namespace cuda_on_cpu::sparse

struct csrilu02Info {
    std::shared_ptr<cuda_on_cpu::sparse::Pivots> pivots = std::make_shared<cuda_on_cpu::sparse::Pivots>();
    bool analysed = false;
};

namespace cuda_on_cpu::sparse {
namespace {

// Converts the arguments to a matrix of the generic functions.
Matrix matrix_of(int rows, int nnz, cusparseMatDescr_t descriptor, const void* values, const int* offsets,
                 const int* columns, cudaDataType type) {
    return {CUSPARSE_FORMAT_CSR,
            rows,
            rows,
            nnz,
            const_cast<int*>(offsets),
            const_cast<int*>(columns),
            const_cast<void*>(values),
            CUSPARSE_INDEX_32I,
            CUSPARSE_INDEX_32I,
            descriptor->base,
            type};
}

cusparseStatus_t check_factorisation(const char* function, cusparseHandle_t handle, int rows, int nnz,
                                     cusparseMatDescr_t descriptor, const csrilu02Info* info) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, descriptor, info));
    if (rows < 0 || nnz < 0)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function,
                      "%d rows, %d stored elements; expected at least 0", rows, nnz);
    if (descriptor->type != CUSPARSE_MATRIX_TYPE_GENERAL)
        return refuse(CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED, function,
                      "the type of the matrix is %d; expected CUSPARSE_MATRIX_TYPE_GENERAL",
                      descriptor->type);
    return CUSPARSE_STATUS_SUCCESS;
}

// Processes row after row: subtracts multiples of the rows above, but only where the row stores an
// element.
template <class T>
bool factorise(const char* function, const Matrix& A, Pivots& pivots) {
    struct Entry {
        int64_t column;
        int64_t place;
    };
    std::vector<std::vector<Entry>> rows(A.rows);
    int64_t place = 0;
    if (!entries<T>(function, A, [&](int64_t row, int64_t column, T) {
            rows[row].push_back({column, place++});
        }))
        return false;
    for (auto& row : rows)
        std::sort(row.begin(), row.end(), [](const Entry& a, const Entry& b) { return a.column < b.column; });
    auto* const values = static_cast<T*>(A.values);
    constexpr int64_t kNone = -1;
    std::vector<int64_t> diagonal(A.rows, kNone);
    // The position of each column's element in the current row.
    std::vector<int64_t> in_row(A.columns, kNone);
    const auto note_zero = [&](int64_t row) {
        if (pivots.zero < 0) pivots.zero = static_cast<int>(row + A.base);
    };
    for (int64_t i = 0; i < A.rows; ++i) {
        for (const Entry& entry : rows[i])
            in_row[entry.column] = entry.place;
        for (const Entry& left : rows[i]) {
            const int64_t k = left.column;
            if (k >= i) break;
            if (diagonal[k] == kNone) continue;  // a row without a pivot, which has been recorded already
            const T factor = values[left.place] /= values[diagonal[k]];
            for (const Entry& above : rows[k]) {
                if (above.column > k && in_row[above.column] != kNone)
                    values[in_row[above.column]] -= factor * values[above.place];
            }
        }
        diagonal[i] = in_row[i];
        if (diagonal[i] == kNone) {
            note_zero(i);
        } else {
            T& pivot = values[diagonal[i]];
            if (pivots.boosts && std::abs(pivot) <= pivots.tolerance) {
                if constexpr (std::is_floating_point_v<T>)
                    pivot = static_cast<T>(pivots.boost.real());
                else
                    pivot = T(pivots.boost);
            }
            if (pivot == T{}) note_zero(i);
        }
        for (const Entry& entry : rows[i])
            in_row[entry.column] = kNone;
    }
    return true;
}

cusparseStatus_t factorise(const char* function, cusparseHandle_t handle, const Matrix& A,
                           csrilu02Info* info) {
    if (!info->analysed)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function,
                      "the matrix has not been analysed; expected csrilu02_analysis before");
    std::vector<Region> regions = regions_of(A);
    for (Region& region : regions)
        region.written = region.pointer == A.values;
    return with_type(A.type, [&](auto type) {
        using T = decltype(type);
        return run(handle, function, std::move(regions), [function, A, pivots = info->pivots] {
            pivots->zero = -1;
            return factorise<T>(function, A, *pivots);
        });
    });
}

}  // namespace
}  // namespace cuda_on_cpu::sparse

using namespace cuda_on_cpu::sparse;

cusparseStatus_t cusparseCreateCsrilu02Info(csrilu02Info_t* info) {
    CUSPARSE_TRY(check_given(__func__, info));
    *info = new csrilu02Info;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroyCsrilu02Info(csrilu02Info_t info) {
    delete info;
    return CUSPARSE_STATUS_SUCCESS;
}

// Waits for the stream, because the factorisation determines the row.
cusparseStatus_t cusparseXcsrilu02_zeroPivot(cusparseHandle_t handle, csrilu02Info_t info, int* position) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    CUSPARSE_TRY(check_given(__func__, info, position));
    if (cudaStreamSynchronize(handle->stream) != cudaSuccess) return CUSPARSE_STATUS_EXECUTION_FAILED;
    *position = info->pivots->zero;
    return *position < 0 ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ZERO_PIVOT;
}

#define CUSPARSE_ILU(letter, Type, data_type)                                                                \
    cusparseStatus_t cusparse##letter##csrilu02_numericBoost(cusparseHandle_t handle, csrilu02Info_t info,   \
                                                             int enable, double* tolerance, Type* boost) {   \
        CUSPARSE_TRY(check_handle(__func__, handle));                                                        \
        CUSPARSE_TRY(check_given(__func__, info));                                                           \
        info->pivots->boosts = enable != 0;                                                                  \
        if (enable == 0) return CUSPARSE_STATUS_SUCCESS;                                                     \
        CUSPARSE_TRY(check_given(__func__, tolerance, boost));                                               \
        info->pivots->tolerance = *tolerance;                                                                \
        with_type(data_type, [&](auto type) {                                                                \
            decltype(type) value;                                                                            \
            std::memcpy(static_cast<void*>(&value), boost, sizeof value);                                    \
            info->pivots->boost = value;                                                                     \
            return CUSPARSE_STATUS_SUCCESS;                                                                  \
        });                                                                                                  \
        return CUSPARSE_STATUS_SUCCESS;                                                                      \
    }                                                                                                        \
    cusparseStatus_t cusparse##letter##csrilu02_bufferSize(cusparseHandle_t handle, int rows, int nnz,       \
                                                           cusparseMatDescr_t descriptor, Type*, const int*, \
                                                           const int*, csrilu02Info_t info, int* bytes) {    \
        CUSPARSE_TRY(check_factorisation(__func__, handle, rows, nnz, descriptor, info));                    \
        size_t size = 0;                                                                                     \
        CUSPARSE_TRY(check_given(__func__, bytes));                                                          \
        CUSPARSE_TRY(buffer_size(handle, __func__, &size));                                                  \
        *bytes = static_cast<int>(size);                                                                     \
        return CUSPARSE_STATUS_SUCCESS;                                                                      \
    }                                                                                                        \
    cusparseStatus_t cusparse##letter##csrilu02_analysis(                                                    \
        cusparseHandle_t handle, int rows, int nnz, cusparseMatDescr_t descriptor, const Type*, const int*,  \
        const int*, csrilu02Info_t info, cusparseSolvePolicy_t, void*) {                                     \
        CUSPARSE_TRY(check_factorisation(__func__, handle, rows, nnz, descriptor, info));                    \
        info->analysed = true;                                                                               \
        return CUSPARSE_STATUS_SUCCESS;                                                                      \
    }                                                                                                        \
    cusparseStatus_t cusparse##letter##csrilu02(                                                             \
        cusparseHandle_t handle, int rows, int nnz, cusparseMatDescr_t descriptor, Type* values,             \
        const int* offsets, const int* columns, csrilu02Info_t info, cusparseSolvePolicy_t, void*) {         \
        CUSPARSE_TRY(check_factorisation(__func__, handle, rows, nnz, descriptor, info));                    \
        return factorise(__func__, handle,                                                                   \
                         matrix_of(rows, nnz, descriptor, values, offsets, columns, data_type), info);       \
    }
CUSPARSE_ILU(S, float, CUDA_R_32F)
CUSPARSE_ILU(D, double, CUDA_R_64F)
CUSPARSE_ILU(C, cuComplex, CUDA_C_32F)
CUSPARSE_ILU(Z, cuDoubleComplex, CUDA_C_64F)
#undef CUSPARSE_ILU

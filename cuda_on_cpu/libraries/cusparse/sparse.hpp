// Code that the files of cuSPARSE share. One function, entries(), reads all three formats: it
// visits row, column and value of each entry.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "cusparse.h"
#include "errors.hpp"
#include "library_arguments.hpp"
#include "memory.hpp"
#include "stream.hpp"

struct cusparseContext {
    cudaStream_t stream = nullptr;
    cusparsePointerMode_t pointer_mode = CUSPARSE_POINTER_MODE_HOST;
};

struct cusparseMatDescr {
    cusparseMatrixType_t type = CUSPARSE_MATRIX_TYPE_GENERAL;
    cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
    cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
    cusparseIndexBase_t base = CUSPARSE_INDEX_BASE_ZERO;
};

// CSR: `outer` are the offsets of the rows, `inner` the columns of the entries. CSC: the same with
// rows and columns exchanged. COO: the rows and columns of the entries.
struct cusparseSpMatDescr {
    cusparseFormat_t format;
    int64_t rows, columns, nnz;
    void *outer, *inner, *values;
    cusparseIndexType_t outer_type, inner_type;
    cusparseIndexBase_t base;
    cudaDataType type;
    cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
    cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
};

struct cusparseDnVecDescr {
    int64_t size;
    void* values;
    cudaDataType type;
};

struct cusparseDnMatDescr {
    int64_t rows, columns, leading;
    void* values;
    cudaDataType type;
    cusparseOrder_t order;
};

struct cusparseSpSVDescr {
    bool analysed = false;
    cusparseSpMatDescr matrix{};
};

namespace cuda_on_cpu::sparse {

using Matrix = cusparseSpMatDescr;
using Vector = cusparseDnVecDescr;
using Dense = cusparseDnMatDescr;

inline std::mutex mutex;

inline std::set<cusparseHandle_t>& handles() {
    static auto* alive = new std::set<cusparseHandle_t>;  // usable until the last static destructor
    return *alive;
}

struct StatusText {
    const char* name;
    const char* text;
};
constexpr StatusText kStatusTexts[] = {
    {"CUSPARSE_STATUS_SUCCESS", "success"},
    {"CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"},
    {"CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
    {"CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
    {"CUSPARSE_STATUS_ARCH_MISMATCH", "architecture mismatch"},
    {"CUSPARSE_STATUS_MAPPING_ERROR", "texture cache error"},
    {"CUSPARSE_STATUS_EXECUTION_FAILED", "kernel launch failure"},
    {"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
    {"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"},
    {"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
    {"CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"},
    {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "insufficient resources"},
};
constexpr StatusText kUnknown = {"unknown error code", "unknown error code"};

inline const StatusText& text_of(cusparseStatus_t status) {
    return static_cast<std::size_t>(status) < std::size(kStatusTexts) ? kStatusTexts[status] : kUnknown;
}

[[gnu::format(printf, 3, 4)]] inline cusparseStatus_t refuse(cusparseStatus_t status, const char* function,
                                                             const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[512];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function, message, text_of(status).name);
    return status;
}

// Errors in the data are reported at the next synchronisation, as after a kernel.
[[gnu::format(printf, 2, 3)]] inline void fail_in_stream(const char* function, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[512];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s\n", function, message);
    lose_context(cudaErrorIllegalAddress);
}

// Returns an error status from the enclosing function.
#define CUSPARSE_TRY(call) \
    if (const cusparseStatus_t tried = (call); tried != CUSPARSE_STATUS_SUCCESS) return tried

inline cusparseStatus_t check_handle(const char* function, cusparseHandle_t handle) {
    const std::scoped_lock lock(mutex);
    if (handles().contains(handle)) return CUSPARSE_STATUS_SUCCESS;
    return refuse(
        CUSPARSE_STATUS_NOT_INITIALIZED, function, "the handle is %s",
        handle == nullptr ? "null; expected one of cusparseCreate" : "not one of cusparseCreate (any more)");
}

inline std::size_t size_of(cudaDataType type) {
    switch (type) {
        case CUDA_R_32F:
            return sizeof(float);
        case CUDA_R_64F:
        case CUDA_C_32F:
            return sizeof(double);
        case CUDA_C_64F:
            return 2 * sizeof(double);
        default:
            return 0;
    }
}

inline cusparseStatus_t check_type(const char* function, const char* what, cudaDataType type) {
    if (size_of(type) != 0) return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function,
                  "the type of %s is %d; expected CUDA_R_32F, CUDA_R_64F, CUDA_C_32F or CUDA_C_64F", what,
                  type);
}

// Calls `work` with a value of the C++ type that corresponds to `type`.
template <class Work>
auto with_type(cudaDataType type, Work work) {
    switch (type) {
        case CUDA_R_64F:
            return work(double{});
        case CUDA_C_32F:
            return work(std::complex<float>{});
        case CUDA_C_64F:
            return work(std::complex<double>{});
        default:
            return work(float{});
    }
}

// The type in which sums are computed.
template <class T>
struct WideOf {
    using type = double;
};
template <class R>
struct WideOf<std::complex<R>> {
    using type = std::complex<double>;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
Wide<T> operated(cusparseOperation_t operation, T value) {
    if constexpr (!std::is_arithmetic_v<T>) {
        if (operation == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE) return std::conj(Wide<T>(value));
    }
    return Wide<T>(value);
}

template <class T>
T narrowed(Wide<T> value) {
    return T(value);
}

inline std::size_t index_size(cusparseIndexType_t type) {
    return type == CUSPARSE_INDEX_64I ? sizeof(int64_t) : type == CUSPARSE_INDEX_32I ? sizeof(int32_t) : 0;
}
inline int64_t load_index(cusparseIndexType_t type, const void* indices, int64_t i) {
    return type == CUSPARSE_INDEX_64I ? static_cast<const int64_t*>(indices)[i]
                                      : static_cast<const int32_t*>(indices)[i];
}
inline void store_index(cusparseIndexType_t type, void* indices, int64_t i, int64_t value) {
    if (type == CUSPARSE_INDEX_64I) {
        static_cast<int64_t*>(indices)[i] = value;
    } else {
        static_cast<int32_t*>(indices)[i] = static_cast<int32_t>(value);
    }
}

inline int64_t outer_extent(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_CSC ? A.columns : A.rows;
}
inline int64_t inner_extent(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_CSC ? A.rows : A.columns;
}
inline int64_t outer_count(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_COO ? A.nnz : outer_extent(A) + 1;
}
inline const char* outer_name(const Matrix& A) {
    switch (A.format) {
        case CUSPARSE_FORMAT_CSC:
            return "the column offsets of the sparse matrix";
        case CUSPARSE_FORMAT_COO:
            return "the row indices of the sparse matrix";
        default:
            return "the row offsets of the sparse matrix";
    }
}
inline const char* inner_name(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_CSC ? "the row indices of the sparse matrix"
                                           : "the column indices of the sparse matrix";
}

inline Region region_of(const char* name, const void* pointer, std::size_t bytes, bool written = false) {
    return {.name = name, .pointer = pointer, .bytes = bytes, .written = written};
}
inline std::vector<Region> regions_of(const Matrix& A) {
    return {region_of(outer_name(A), A.outer, index_size(A.outer_type) * outer_count(A)),
            region_of(inner_name(A), A.inner, index_size(A.inner_type) * A.nnz),
            region_of("the values of the sparse matrix", A.values, size_of(A.type) * A.nnz)};
}
inline Region region_of(const char* name, const Vector& x, bool written = false) {
    return region_of(name, x.values, size_of(x.type) * x.size, written);
}
inline Region region_of(const char* name, const Dense& B, bool written = false) {
    const bool by_rows = B.order == CUSPARSE_ORDER_ROW;
    return {.name = name,
            .pointer = B.values,
            .bytes = size_of(B.type) * (by_rows ? B.columns : B.rows),
            .columns = static_cast<std::size_t>(by_rows ? B.rows : B.columns),
            .pitch = size_of(B.type) * B.leading,
            .written = written};
}
inline std::size_t element(const Dense& B, int64_t row, int64_t column) {
    return B.order == CUSPARSE_ORDER_ROW ? row * B.leading + column : column * B.leading + row;
}

// Calls use(row, column, value) for each entry. Returns false, after a message, if an index or an
// offset is outside the matrix.
template <class T, class Use>
bool entries(const char* function, const Matrix& A, Use use) {
    const T* values = static_cast<const T*>(A.values);
    const auto entry = [&](int64_t outer, int64_t i) {
        const int64_t inner = load_index(A.inner_type, A.inner, i) - A.base;
        if (outer < 0 || outer >= outer_extent(A) || inner < 0 || inner >= inner_extent(A)) {
            const bool is_outer = outer < 0 || outer >= outer_extent(A);
            fail_in_stream(
                function, "element %lld of %s is %lld; expected %d to %lld", static_cast<long long>(i),
                is_outer ? outer_name(A) : inner_name(A),
                static_cast<long long>((is_outer ? outer : inner) + A.base), A.base,
                static_cast<long long>((is_outer ? outer_extent(A) : inner_extent(A)) - 1 + A.base));
            return false;
        }
        if (A.format == CUSPARSE_FORMAT_CSC) {
            use(inner, outer, values[i]);
        } else {
            use(outer, inner, values[i]);
        }
        return true;
    };
    if (A.format == CUSPARSE_FORMAT_COO) {
        for (int64_t i = 0; i < A.nnz; ++i) {
            if (!entry(load_index(A.outer_type, A.outer, i) - A.base, i)) return false;
        }
        return true;
    }
    for (int64_t outer = 0; outer < outer_extent(A); ++outer) {
        const int64_t begin = load_index(A.outer_type, A.outer, outer) - A.base;
        const int64_t end = load_index(A.outer_type, A.outer, outer + 1) - A.base;
        if (begin < 0 || end < begin || end > A.nnz) {
            fail_in_stream(function,
                           "elements %lld and %lld of %s are %lld and %lld; the matrix has %lld entries",
                           static_cast<long long>(outer), static_cast<long long>(outer + 1), outer_name(A),
                           static_cast<long long>(begin + A.base), static_cast<long long>(end + A.base),
                           static_cast<long long>(A.nnz));
            return false;
        }
        for (int64_t i = begin; i < end; ++i) {
            if (!entry(outer, i)) return false;
        }
    }
    return true;
}

// alpha or beta: its value, or its address in device memory.
template <class T>
struct Scalar {
    const void* device = nullptr;
    T value{};
    T operator()() const { return device == nullptr ? value : *static_cast<const T*>(device); }
};
template <class T>
Scalar<T> scalar(cusparseHandle_t handle, const void* pointer) {
    if (handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE) return {pointer, {}};
    Scalar<T> found;
    std::memcpy(&found.value, pointer, sizeof(T));
    return found;
}

inline cusparseStatus_t check_scalar(const char* function, cusparseHandle_t handle, const char* name,
                                     const void* pointer) {
    if (pointer == nullptr) return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "%s is null", name);
    const auto allocation = find_allocation(pointer);
    if (handle->pointer_mode == CUSPARSE_POINTER_MODE_HOST && allocation &&
        allocation->type == cudaMemoryTypeDevice)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function,
                      "%s is device memory, which the host cannot access; expected host memory, or "
                      "CUSPARSE_POINTER_MODE_DEVICE",
                      name);
    return CUSPARSE_STATUS_SUCCESS;
}
inline Region scalar_region(cusparseHandle_t handle, const char* name, const void* pointer,
                            cudaDataType type) {
    return handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE ? region_of(name, pointer, size_of(type))
                                                                : region_of(name, nullptr, 0);
}

// `work` runs in the handle's stream if all regions are in device memory. It returns false after it
// has reported an error.
inline cusparseStatus_t run(cusparseHandle_t handle, const char* function, std::vector<Region> regions,
                            std::function<bool()> work, bool host_waits = false) {
    const auto checked = [function, regions = std::move(regions), work = std::move(work)] {
        for (const Region& region : regions) {
            // Reported at the next synchronisation.
            if (!reachable(function, region)) return cudaSuccess;
        }
        if (!work()) return cudaSuccess;
        for (const Region& region : regions) {
            if (region.written) note_written(region);
        }
        return cudaSuccess;
    };
    cudaError_t error = submit(handle->stream, function, checked);
    if (error == cudaSuccess && host_waits) error = cudaStreamSynchronize(handle->stream);
    return error == cudaSuccess ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}

inline cusparseStatus_t check_operation(const char* function, const char* name,
                                        cusparseOperation_t operation) {
    if (operation >= CUSPARSE_OPERATION_NON_TRANSPOSE && operation <= CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE)
        return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "%s is %d; expected 0 to 2", name, operation);
}
inline cusparseStatus_t check_size(const char* function, const char* what, int64_t size, int64_t expected) {
    if (size == expected) return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "%s is %lld; expected %lld", what,
                  static_cast<long long>(size), static_cast<long long>(expected));
}
inline cusparseStatus_t check_same_type(const char* function, const char* what, cudaDataType type,
                                        cudaDataType expected) {
    if (type == expected) return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function, "the type of %s is %d; expected %d, that of A",
                  what, type, expected);
}
template <class... Pointer>
cusparseStatus_t check_given(const char* function, const Pointer*... pointers) {
    if (((pointers != nullptr) && ...)) return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "a descriptor or an address is null");
}

inline bool is_plain(cusparseOperation_t operation) {
    return operation == CUSPARSE_OPERATION_NON_TRANSPOSE;
}

// GPUs need a buffer for some of these functions; no function here does.
inline cusparseStatus_t buffer_size(cusparseHandle_t handle, const char* function, size_t* size) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, size));
    constexpr size_t kSome = 256;
    *size = kSome;
    return CUSPARSE_STATUS_SUCCESS;
}

// The triangle of op(A) that its attributes name: the rows without the diagonal, and the diagonal.
template <class T>
struct Triangle {
    struct Entry {
        int64_t column;
        Wide<T> value;
    };
    bool lower = true;
    std::vector<std::vector<Entry>> rows;
    std::vector<Wide<T>> diagonal;
};
template <class T>
bool read_triangle(const char* function, const Matrix& A, cusparseOperation_t operation,
                   Triangle<T>& triangle) {
    triangle.lower = (A.fill == CUSPARSE_FILL_MODE_LOWER) == is_plain(operation);
    const bool unit = A.diagonal == CUSPARSE_DIAG_TYPE_UNIT;
    triangle.rows.resize(A.rows);
    triangle.diagonal.assign(A.rows, unit ? Wide<T>{1} : Wide<T>{});
    return entries<T>(function, A, [&](int64_t row, int64_t column, T value) {
        if (!is_plain(operation)) std::swap(row, column);
        if (row == column && !unit) triangle.diagonal[row] += operated(operation, value);
        if (triangle.lower ? column < row : column > row)
            triangle.rows[row].push_back({column, operated(operation, value)});
    });
}
// `right(row)`: the right side.
template <class T, class Right>
void solve_triangle(const Triangle<T>& triangle, std::vector<Wide<T>>& solution, Right right) {
    const auto rows = static_cast<int64_t>(triangle.rows.size());
    for (int64_t step = 0; step < rows; ++step) {
        const int64_t row = triangle.lower ? step : rows - 1 - step;
        Wide<T> rest = right(row);
        for (const auto& entry : triangle.rows[row])
            rest -= entry.value * solution[entry.column];
        solution[row] = rest / triangle.diagonal[row];
    }
}

}  // namespace cuda_on_cpu::sparse

// Sparse matrices. One function, entries(), reads all three formats: it passes on row, column and
// value of each entry.
#include "cusparse.h"

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

#include "device_memory.hpp"
#include "errors.hpp"
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

// CSR: `outer` are the rows' offsets, `inner` the entries' columns. CSC: of columns and rows. COO:
// the entries' rows and columns.
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
    void* values = nullptr;
};

namespace cuda_on_cpu::sparse {
namespace {

using Matrix = cusparseSpMatDescr;
using Vector = cusparseDnVecDescr;
using Dense = cusparseDnMatDescr;

std::mutex mutex;

std::set<cusparseHandle_t>& handles() {
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

const StatusText& text_of(cusparseStatus_t status) {
    return static_cast<std::size_t>(status) < std::size(kStatusTexts) ? kStatusTexts[status] : kUnknown;
}

[[gnu::format(printf, 3, 4)]] cusparseStatus_t refuse(cusparseStatus_t status, const char* function,
                                                      const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[512];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function, message, text_of(status).name);
    return status;
}

// What is wrong with the data shows at the next synchronisation, as after a kernel.
[[gnu::format(printf, 2, 3)]] void fail_in_stream(const char* function, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[512];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s\n", function, message);
    lose_context(cudaErrorIllegalAddress);
}

// Evaluates to an error status, or goes on.
#define CUSPARSE_TRY(call) \
    if (const cusparseStatus_t tried = (call); tried != CUSPARSE_STATUS_SUCCESS) return tried

cusparseStatus_t check_handle(const char* function, cusparseHandle_t handle) {
    const std::scoped_lock lock(mutex);
    if (handles().contains(handle)) return CUSPARSE_STATUS_SUCCESS;
    return refuse(
        CUSPARSE_STATUS_NOT_INITIALIZED, function, "the handle is %s",
        handle == nullptr ? "null; expected one of cusparseCreate" : "not one of cusparseCreate (any more)");
}

std::size_t size_of(cudaDataType type) {
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

cusparseStatus_t check_type(const char* function, const char* what, cudaDataType type) {
    if (size_of(type) != 0) return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function,
                  "the type of %s is %d; expected CUDA_R_32F, CUDA_R_64F, CUDA_C_32F or CUDA_C_64F", what,
                  type);
}

// Calls `work` with a value of the C++ type.
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

// What sums are made in.
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

std::size_t index_size(cusparseIndexType_t type) {
    return type == CUSPARSE_INDEX_64I ? sizeof(int64_t) : type == CUSPARSE_INDEX_32I ? sizeof(int32_t) : 0;
}
int64_t load_index(cusparseIndexType_t type, const void* indices, int64_t i) {
    return type == CUSPARSE_INDEX_64I ? static_cast<const int64_t*>(indices)[i]
                                      : static_cast<const int32_t*>(indices)[i];
}
void store_index(cusparseIndexType_t type, void* indices, int64_t i, int64_t value) {
    if (type == CUSPARSE_INDEX_64I) {
        static_cast<int64_t*>(indices)[i] = value;
    } else {
        static_cast<int32_t*>(indices)[i] = static_cast<int32_t>(value);
    }
}

int64_t outer_extent(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_CSC ? A.columns : A.rows;
}
int64_t inner_extent(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_CSC ? A.rows : A.columns;
}
int64_t outer_count(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_COO ? A.nnz : outer_extent(A) + 1;
}
const char* outer_name(const Matrix& A) {
    switch (A.format) {
        case CUSPARSE_FORMAT_CSC:
            return "the column offsets of the sparse matrix";
        case CUSPARSE_FORMAT_COO:
            return "the row indices of the sparse matrix";
        default:
            return "the row offsets of the sparse matrix";
    }
}
const char* inner_name(const Matrix& A) {
    return A.format == CUSPARSE_FORMAT_CSC ? "the row indices of the sparse matrix"
                                           : "the column indices of the sparse matrix";
}

Region region_of(const char* name, const void* pointer, std::size_t bytes, bool written = false) {
    return {.name = name, .pointer = pointer, .bytes = bytes, .written = written};
}
std::vector<Region> regions_of(const Matrix& A) {
    return {region_of(outer_name(A), A.outer, index_size(A.outer_type) * outer_count(A)),
            region_of(inner_name(A), A.inner, index_size(A.inner_type) * A.nnz),
            region_of("the values of the sparse matrix", A.values, size_of(A.type) * A.nnz)};
}
Region region_of(const char* name, const Vector& x, bool written = false) {
    return region_of(name, x.values, size_of(x.type) * x.size, written);
}
Region region_of(const char* name, const Dense& B, bool written = false) {
    const bool by_rows = B.order == CUSPARSE_ORDER_ROW;
    return {.name = name,
            .pointer = B.values,
            .bytes = size_of(B.type) * (by_rows ? B.columns : B.rows),
            .columns = static_cast<std::size_t>(by_rows ? B.rows : B.columns),
            .pitch = size_of(B.type) * B.leading,
            .written = written};
}
std::size_t element(const Dense& B, int64_t row, int64_t column) {
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

// alpha or beta: its value, or where it lies in device memory.
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

cusparseStatus_t check_scalar(const char* function, cusparseHandle_t handle, const char* name,
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
Region scalar_region(cusparseHandle_t handle, const char* name, const void* pointer, cudaDataType type) {
    return handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE ? region_of(name, pointer, size_of(type))
                                                                : region_of(name, nullptr, 0);
}

// `work` runs in the handle's stream, if all regions are device memory. It returns false
// after it has reported a mistake.
cusparseStatus_t run(cusparseHandle_t handle, const char* function, std::vector<Region> regions,
                     std::function<bool()> work, bool host_waits = false) {
    const auto checked = [function, regions = std::move(regions), work = std::move(work)] {
        for (const Region& region : regions) {
            if (!reachable(function, region)) return cudaSuccess;  // shows at the next synchronisation
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

cusparseStatus_t check_operation(const char* function, const char* name, cusparseOperation_t operation) {
    if (operation >= CUSPARSE_OPERATION_NON_TRANSPOSE && operation <= CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE)
        return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "%s is %d; expected 0 to 2", name, operation);
}
cusparseStatus_t check_size(const char* function, const char* what, int64_t size, int64_t expected) {
    if (size == expected) return CUSPARSE_STATUS_SUCCESS;
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "%s is %lld; expected %lld", what,
                  static_cast<long long>(size), static_cast<long long>(expected));
}
cusparseStatus_t check_same_type(const char* function, const char* what, cudaDataType type,
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

bool is_plain(cusparseOperation_t operation) {
    return operation == CUSPARSE_OPERATION_NON_TRANSPOSE;
}

// GPUs need memory for some of these; no function here does.
cusparseStatus_t buffer_size(cusparseHandle_t handle, const char* function, size_t* size) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, size));
    constexpr size_t kSome = 256;
    *size = kSome;
    return CUSPARSE_STATUS_SUCCESS;
}

// --- Products ------------------------------------------------------------------------------------------------------------

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

// --- Triangular systems ----------------------------------------------------------------------------------------------------

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
            struct Entry {
                int64_t column;
                Wide<T> value;
            };
            const bool lower = (A.fill == CUSPARSE_FILL_MODE_LOWER) == is_plain(operation);
            const bool unit = A.diagonal == CUSPARSE_DIAG_TYPE_UNIT;
            std::vector<std::vector<Entry>> rows(A.rows);  // of the triangle of op(A) without its diagonal
            std::vector<Wide<T>> diagonal(A.rows, unit ? Wide<T>{1} : Wide<T>{});
            const bool done = entries<T>(function, A, [&](int64_t row, int64_t column, T value) {
                if (!is_plain(operation)) std::swap(row, column);
                if (row == column && !unit) diagonal[row] += operated(operation, value);
                if (lower ? column < row : column > row)
                    rows[row].push_back({column, operated(operation, value)});
            });
            if (!done) return false;
            std::vector<Wide<T>> solution(A.rows);
            for (int64_t step = 0; step < A.rows; ++step) {
                const int64_t row = lower ? step : A.rows - 1 - step;
                Wide<T> rest = Wide<T>(a()) * Wide<T>(static_cast<const T*>(x.values)[row]);
                for (const Entry& entry : rows[row])
                    rest -= entry.value * solution[entry.column];
                solution[row] = rest / diagonal[row];
            }
            for (int64_t i = 0; i < A.rows; ++i)
                static_cast<T*>(y.values)[i] = narrowed<T>(solution[i]);
            return true;
        });
    });
}

// --- Conversions ---------------------------------------------------------------------------------------------------------

// Entries of one row, or column, after the other.
struct Place {
    int64_t outer, inner, from;
};

void store_offsets(const std::vector<Place>& places, int64_t extent, cusparseIndexType_t type,
                   cusparseIndexBase_t base, void* offsets) {
    std::vector<int64_t> counts(extent + 1);
    for (const Place& place : places)
        ++counts[place.outer + 1];
    for (int64_t i = 0; i < extent; ++i)
        counts[i + 1] += counts[i];
    for (int64_t i = 0; i <= extent; ++i)
        store_index(type, offsets, i, counts[i] + base);
}

// Where A is not zero, in the order of B's format.
template <class T>
std::vector<Place> places_in(const Dense& A, const Matrix& B) {
    std::vector<Place> places;
    for (int64_t outer = 0; outer < outer_extent(B); ++outer) {
        for (int64_t inner = 0; inner < inner_extent(B); ++inner) {
            const bool by_columns = B.format == CUSPARSE_FORMAT_CSC;
            const std::size_t i = by_columns ? element(A, inner, outer) : element(A, outer, inner);
            if (static_cast<const T*>(A.values)[i] != T{})
                places.push_back({outer, inner, static_cast<int64_t>(i)});
        }
    }
    return places;
}

cusparseStatus_t check_conversion(const char* function, cusparseHandle_t handle, const Matrix* sparse,
                                  const Dense* dense) {
    CUSPARSE_TRY(check_handle(function, handle));
    CUSPARSE_TRY(check_given(function, sparse, dense));
    CUSPARSE_TRY(check_same_type(function, "the dense matrix", dense->type, sparse->type));
    CUSPARSE_TRY(check_size(function, "the number of the dense matrix' rows", dense->rows, sparse->rows));
    return check_size(function, "the number of the dense matrix' columns", dense->columns, sparse->columns);
}

cusparseStatus_t create(const char* function, cusparseSpMatDescr_t* made, const Matrix& matrix) {
    CUSPARSE_TRY(check_given(function, made));
    CUSPARSE_TRY(check_type(function, "the values", matrix.type));
    if (matrix.rows < 0 || matrix.columns < 0 || matrix.nnz < 0)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function,
                      "%lld x %lld elements, of which %lld are stored; expected at least 0",
                      static_cast<long long>(matrix.rows), static_cast<long long>(matrix.columns),
                      static_cast<long long>(matrix.nnz));
    if (index_size(matrix.outer_type) == 0 || index_size(matrix.inner_type) == 0)
        return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, function,
                      "the types of the indices are %d and %d; expected CUSPARSE_INDEX_32I or 64I",
                      matrix.outer_type, matrix.inner_type);
    *made = new Matrix(matrix);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t set_pointers(const char* function, cusparseFormat_t format, cusparseSpMatDescr_t matrix,
                              void* outer, void* inner, void* values) {
    CUSPARSE_TRY(check_given(function, matrix));
    if (matrix->format != format)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, function, "the format of the matrix is %d; expected %d",
                      matrix->format, format);
    matrix->outer = outer;
    matrix->inner = inner;
    matrix->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cuda_on_cpu::sparse

using namespace cuda_on_cpu::sparse;
using cuda_on_cpu::Region;

// --- Handles and descriptors ---------------------------------------------------------------------------------------------

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
    if (handle == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
    *handle = new cusparseContext;
    const std::scoped_lock lock(mutex);
    handles().insert(*handle);
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    const std::scoped_lock lock(mutex);
    handles().erase(handle);
    delete handle;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseGetVersion(cusparseHandle_t, int* version) {
    if (version == nullptr) return CUSPARSE_STATUS_INVALID_VALUE;
    *version = CUSPARSE_VERSION;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr || type > PATCH_LEVEL) return CUSPARSE_STATUS_INVALID_VALUE;
    constexpr int kVersion[] = {CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH};
    *value = kVersion[type];
    return CUSPARSE_STATUS_SUCCESS;
}
const char* cusparseGetErrorName(cusparseStatus_t status) {
    return text_of(status).name;
}
const char* cusparseGetErrorString(cusparseStatus_t status) {
    return text_of(status).text;
}

// A setting of a handle: kept, and given back.
#define CUSPARSE_SETTING(Name, Type, field)                                    \
    cusparseStatus_t cusparseSet##Name(cusparseHandle_t handle, Type value) {  \
        CUSPARSE_TRY(check_handle(__func__, handle));                          \
        handle->field = value;                                                 \
        return CUSPARSE_STATUS_SUCCESS;                                        \
    }                                                                          \
    cusparseStatus_t cusparseGet##Name(cusparseHandle_t handle, Type* value) { \
        CUSPARSE_TRY(check_handle(__func__, handle));                          \
        CUSPARSE_TRY(check_given(__func__, value));                            \
        *value = handle->field;                                                \
        return CUSPARSE_STATUS_SUCCESS;                                        \
    }
CUSPARSE_SETTING(Stream, cudaStream_t, stream)
CUSPARSE_SETTING(PointerMode, cusparsePointerMode_t, pointer_mode)
#undef CUSPARSE_SETTING

cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t* descriptor) {
    CUSPARSE_TRY(check_given(__func__, descriptor));
    *descriptor = new cusparseMatDescr;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t descriptor) {
    delete descriptor;
    return CUSPARSE_STATUS_SUCCESS;
}
#define CUSPARSE_SETTING(Name, Type, field)                                            \
    cusparseStatus_t cusparseSetMat##Name(cusparseMatDescr_t descriptor, Type value) { \
        CUSPARSE_TRY(check_given(__func__, descriptor));                               \
        descriptor->field = value;                                                     \
        return CUSPARSE_STATUS_SUCCESS;                                                \
    }                                                                                  \
    Type cusparseGetMat##Name(cusparseMatDescr_t descriptor) {                         \
        return descriptor->field;                                                      \
    }
CUSPARSE_SETTING(Type, cusparseMatrixType_t, type)
CUSPARSE_SETTING(FillMode, cusparseFillMode_t, fill)
CUSPARSE_SETTING(DiagType, cusparseDiagType_t, diagonal)
CUSPARSE_SETTING(IndexBase, cusparseIndexBase_t, base)
#undef CUSPARSE_SETTING

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nnz,
                                   void* row_offsets, void* column_indices, void* values,
                                   cusparseIndexType_t offsets_type, cusparseIndexType_t indices_type,
                                   cusparseIndexBase_t base, cudaDataType type) {
    return create(__func__, matrix,
                  {CUSPARSE_FORMAT_CSR, rows, columns, nnz, row_offsets, column_indices, values, offsets_type,
                   indices_type, base, type});
}
cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                        int64_t nnz, const void* row_offsets, const void* column_indices,
                                        const void* values, cusparseIndexType_t offsets_type,
                                        cusparseIndexType_t indices_type, cusparseIndexBase_t base,
                                        cudaDataType type) {
    return create(__func__, const_cast<cusparseSpMatDescr_t*>(matrix),
                  {CUSPARSE_FORMAT_CSR, rows, columns, nnz, const_cast<void*>(row_offsets),
                   const_cast<void*>(column_indices), const_cast<void*>(values), offsets_type, indices_type,
                   base, type});
}
cusparseStatus_t cusparseCreateCsc(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nnz,
                                   void* column_offsets, void* row_indices, void* values,
                                   cusparseIndexType_t offsets_type, cusparseIndexType_t indices_type,
                                   cusparseIndexBase_t base, cudaDataType type) {
    return create(__func__, matrix,
                  {CUSPARSE_FORMAT_CSC, rows, columns, nnz, column_offsets, row_indices, values, offsets_type,
                   indices_type, base, type});
}
cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns, int64_t nnz,
                                   void* row_indices, void* column_indices, void* values,
                                   cusparseIndexType_t indices_type, cusparseIndexBase_t base,
                                   cudaDataType type) {
    return create(__func__, matrix,
                  {CUSPARSE_FORMAT_COO, rows, columns, nnz, row_indices, column_indices, values, indices_type,
                   indices_type, base, type});
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
    delete matrix;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void* row_offsets, void* column_indices,
                                        void* values) {
    return set_pointers(__func__, CUSPARSE_FORMAT_CSR, matrix, row_offsets, column_indices, values);
}
cusparseStatus_t cusparseCscSetPointers(cusparseSpMatDescr_t matrix, void* column_offsets, void* row_indices,
                                        void* values) {
    return set_pointers(__func__, CUSPARSE_FORMAT_CSC, matrix, column_offsets, row_indices, values);
}
cusparseStatus_t cusparseCooSetPointers(cusparseSpMatDescr_t matrix, void* row_indices, void* column_indices,
                                        void* values) {
    return set_pointers(__func__, CUSPARSE_FORMAT_COO, matrix, row_indices, column_indices, values);
}
cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t* rows, int64_t* columns,
                                      int64_t* nnz) {
    CUSPARSE_TRY(check_given(__func__, matrix, rows, columns, nnz));
    *rows = matrix->rows;
    *columns = matrix->columns;
    *nnz = matrix->nnz;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetFormat(cusparseConstSpMatDescr_t matrix, cusparseFormat_t* format) {
    CUSPARSE_TRY(check_given(__func__, matrix, format));
    *format = matrix->format;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t matrix, cusparseIndexBase_t* base) {
    CUSPARSE_TRY(check_given(__func__, matrix, base));
    *base = matrix->base;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetValues(cusparseSpMatDescr_t matrix, void** values) {
    CUSPARSE_TRY(check_given(__func__, matrix, values));
    *values = matrix->values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void* values) {
    CUSPARSE_TRY(check_given(__func__, matrix));
    matrix->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute,
                                           void* value, size_t size) {
    CUSPARSE_TRY(check_given(__func__, matrix, value));
    CUSPARSE_TRY(check_size(__func__, "the size of the value", static_cast<int64_t>(size), sizeof(int)));
    if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
        std::memcpy(&matrix->fill, value, size);
    } else {
        std::memcpy(&matrix->diagonal, value, size);
    }
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t matrix,
                                           cusparseSpMatAttribute_t attribute, void* value, size_t size) {
    CUSPARSE_TRY(check_given(__func__, matrix, value));
    CUSPARSE_TRY(check_size(__func__, "the size of the value", static_cast<int64_t>(size), sizeof(int)));
    if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
        std::memcpy(value, &matrix->fill, size);
    } else {
        std::memcpy(value, &matrix->diagonal, size);
    }
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* vector, int64_t size, void* values,
                                     cudaDataType type) {
    CUSPARSE_TRY(check_given(__func__, vector));
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    if (size < 0)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__, "the size is %lld; expected at least 0",
                      static_cast<long long>(size));
    *vector = new Vector{size, values, type};
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstDnVec(cusparseConstDnVecDescr_t* vector, int64_t size, const void* values,
                                          cudaDataType type) {
    return cusparseCreateDnVec(const_cast<cusparseDnVecDescr_t*>(vector), size, const_cast<void*>(values),
                               type);
}
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) {
    delete vector;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnVecGet(cusparseDnVecDescr_t vector, int64_t* size, void** values,
                                  cudaDataType* type) {
    CUSPARSE_TRY(check_given(__func__, vector, size, values, type));
    *size = vector->size;
    *values = vector->values;
    *type = vector->type;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnVecGetValues(cusparseDnVecDescr_t vector, void** values) {
    CUSPARSE_TRY(check_given(__func__, vector, values));
    *values = vector->values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vector, void* values) {
    CUSPARSE_TRY(check_given(__func__, vector));
    vector->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns,
                                     int64_t leading, void* values, cudaDataType type,
                                     cusparseOrder_t order) {
    CUSPARSE_TRY(check_given(__func__, matrix));
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    const int64_t least = order == CUSPARSE_ORDER_ROW ? columns : rows;
    if (rows < 0 || columns < 0 || leading < least)
        return refuse(CUSPARSE_STATUS_INVALID_VALUE, __func__,
                      "%lld x %lld elements, and the leading dimension is %lld; expected at least %lld",
                      static_cast<long long>(rows), static_cast<long long>(columns),
                      static_cast<long long>(leading), static_cast<long long>(least));
    *matrix = new Dense{rows, columns, leading, values, type, order};
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* matrix, int64_t rows, int64_t columns,
                                          int64_t leading, const void* values, cudaDataType type,
                                          cusparseOrder_t order) {
    return cusparseCreateDnMat(const_cast<cusparseDnMatDescr_t*>(matrix), rows, columns, leading,
                               const_cast<void*>(values), type, order);
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
    delete matrix;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnMatGetValues(cusparseDnMatDescr_t matrix, void** values) {
    CUSPARSE_TRY(check_given(__func__, matrix, values));
    *values = matrix->values;
    return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t matrix, void* values) {
    CUSPARSE_TRY(check_given(__func__, matrix));
    matrix->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}

// --- Products and systems --------------------------------------------------------------------------------------------------

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
    return CUSPARSE_STATUS_SUCCESS;
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

// --- Conversions -----------------------------------------------------------------------------------------------------------

cusparseStatus_t cusparseSparseToDense_bufferSize(cusparseHandle_t handle, cusparseConstSpMatDescr_t A,
                                                  cusparseDnMatDescr_t B, cusparseSparseToDenseAlg_t,
                                                  size_t* size) {
    CUSPARSE_TRY(check_conversion(__func__, handle, A, B));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseSparseToDense(cusparseHandle_t handle, cusparseConstSpMatDescr_t A,
                                       cusparseDnMatDescr_t B, cusparseSparseToDenseAlg_t, void*) {
    CUSPARSE_TRY(check_conversion(__func__, handle, A, B));
    std::vector<Region> regions = regions_of(*A);
    regions.push_back(region_of("the dense matrix", *B, true));
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, __func__, std::move(regions), [=, function = __func__, A = *A, B = *B] {
            T* to = static_cast<T*>(B.values);
            for (int64_t i = 0; i < B.rows * B.columns; ++i)
                to[element(B, i / B.columns, i % B.columns)] = T{};
            return entries<T>(function, A, [&](int64_t row, int64_t column, T value) {
                to[element(B, row, column)] = value;
            });
        });
    });
}
cusparseStatus_t cusparseDenseToSparse_bufferSize(cusparseHandle_t handle, cusparseConstDnMatDescr_t A,
                                                  cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t,
                                                  size_t* size) {
    CUSPARSE_TRY(check_conversion(__func__, handle, B, A));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseDenseToSparse_analysis(cusparseHandle_t handle, cusparseConstDnMatDescr_t A,
                                                cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t, void*) {
    CUSPARSE_TRY(check_conversion(__func__, handle, B, A));
    std::vector<Region> regions = {region_of("the dense matrix", *A)};
    const bool has_offsets = B->format != CUSPARSE_FORMAT_COO;
    if (has_offsets)
        regions.push_back(
            region_of(outer_name(*B), B->outer, index_size(B->outer_type) * outer_count(*B), true));
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        const auto work = [=, A = *A] {
            const std::vector<Place> places = places_in<T>(A, *B);
            if (has_offsets) store_offsets(places, outer_extent(*B), B->outer_type, B->base, B->outer);
            B->nnz = static_cast<int64_t>(places.size());
            return true;
        };
        return run(handle, __func__, std::move(regions), work, true);
    });
}
cusparseStatus_t cusparseDenseToSparse_convert(cusparseHandle_t handle, cusparseConstDnMatDescr_t A,
                                               cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t, void*) {
    CUSPARSE_TRY(check_conversion(__func__, handle, B, A));
    std::vector<Region> regions = regions_of(*B);
    for (Region& region : regions)
        region.written = true;
    regions.push_back(region_of("the dense matrix", *A));
    return with_type(A->type, [&](auto type) {
        using T = decltype(type);
        return run(handle, __func__, std::move(regions), [=, function = __func__, A = *A, B = *B] {
            const std::vector<Place> places = places_in<T>(A, B);
            if (static_cast<int64_t>(places.size()) != B.nnz) {
                fail_in_stream(
                    function,
                    "the dense matrix has %zu values that are not zero, and the sparse one %lld; expected "
                    "cusparseDenseToSparse_analysis before",
                    places.size(), static_cast<long long>(B.nnz));
                return false;
            }
            for (std::size_t i = 0; i < places.size(); ++i) {
                store_index(B.inner_type, B.inner, i, places[i].inner + B.base);
                if (B.format == CUSPARSE_FORMAT_COO)
                    store_index(B.outer_type, B.outer, i, places[i].outer + B.base);
                static_cast<T*>(B.values)[i] = static_cast<const T*>(A.values)[places[i].from];
            }
            if (B.format != CUSPARSE_FORMAT_COO)
                store_offsets(places, outer_extent(B), B.outer_type, B.base, B.outer);
            return true;
        });
    });
}

cusparseStatus_t cusparseCsr2cscEx2_bufferSize(cusparseHandle_t handle, int, int, int, const void*,
                                               const int*, const int*, void*, int*, int*, cudaDataType type,
                                               cusparseAction_t, cusparseIndexBase_t, cusparseCsr2CscAlg_t,
                                               size_t* size) {
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    return buffer_size(handle, __func__, size);
}
cusparseStatus_t cusparseCsr2cscEx2(cusparseHandle_t handle, int rows, int columns, int nnz,
                                    const void* csr_values, const int* csr_offsets, const int* csr_indices,
                                    void* csc_values, int* csc_offsets, int* csc_indices, cudaDataType type,
                                    cusparseAction_t action, cusparseIndexBase_t base, cusparseCsr2CscAlg_t,
                                    void*) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    CUSPARSE_TRY(check_type(__func__, "the values", type));
    const bool numeric = action == CUSPARSE_ACTION_NUMERIC;
    const Matrix from{CUSPARSE_FORMAT_CSR,
                      rows,
                      columns,
                      nnz,
                      const_cast<int*>(csr_offsets),
                      const_cast<int*>(csr_indices),
                      const_cast<void*>(csr_values),
                      CUSPARSE_INDEX_32I,
                      CUSPARSE_INDEX_32I,
                      base,
                      type};
    std::vector<Region> regions = regions_of(from);
    if (!numeric) regions.pop_back();
    regions.push_back(
        region_of("the column offsets", csc_offsets, sizeof(int) * (columns + std::size_t{1}), true));
    regions.push_back(region_of("the row indices", csc_indices, sizeof(int) * nnz, true));
    if (numeric)
        regions.push_back(region_of("the values of the result", csc_values, size_of(type) * nnz, true));
    return with_type(type, [&](auto value) {
        using T = decltype(value);
        return run(handle, __func__, std::move(regions), [=, function = __func__] {
            std::vector<Place> places;
            int64_t i = 0;
            Matrix pattern = from;
            std::vector<T> none(numeric ? 0 : nnz);
            if (!numeric) pattern.values = none.data();
            if (!entries<T>(function, pattern, [&](int64_t row, int64_t column, T) {
                    places.push_back({column, row, i++});
                }))
                return false;
            std::stable_sort(places.begin(), places.end(),
                             [](const Place& a, const Place& b) { return a.outer < b.outer; });
            const int64_t first = load_index(CUSPARSE_INDEX_32I, csr_offsets, 0) - base;
            for (std::size_t to = 0; to < places.size(); ++to) {
                csc_indices[to] = static_cast<int>(places[to].inner) + base;
                if (numeric)
                    static_cast<T*>(csc_values)[to] =
                        static_cast<const T*>(csr_values)[first + places[to].from];
            }
            store_offsets(places, columns, CUSPARSE_INDEX_32I, base, csc_offsets);
            return true;
        });
    });
}
cusparseStatus_t cusparseXcoo2csr(cusparseHandle_t handle, const int* row_indices, int nnz, int rows,
                                  int* row_offsets, cusparseIndexBase_t base) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    return run(handle, __func__,
               {region_of("the row indices", row_indices, sizeof(int) * nnz),
                region_of("the row offsets", row_offsets, sizeof(int) * (rows + std::size_t{1}), true)},
               [=] {
                   for (int row = 0; row <= rows; ++row) {
                       const int* const first = std::lower_bound(row_indices, row_indices + nnz, row + base);
                       row_offsets[row] = static_cast<int>(first - row_indices) + base;
                   }
                   return true;
               });
}
cusparseStatus_t cusparseXcsr2coo(cusparseHandle_t handle, const int* row_offsets, int nnz, int rows,
                                  int* row_indices, cusparseIndexBase_t base) {
    CUSPARSE_TRY(check_handle(__func__, handle));
    return run(handle, __func__,
               {region_of("the row offsets", row_offsets, sizeof(int) * (rows + std::size_t{1})),
                region_of("the row indices", row_indices, sizeof(int) * nnz, true)},
               [=, function = __func__] {
                   for (int row = 0; row < rows; ++row) {
                       const int begin = row_offsets[row] - base, end = row_offsets[row + 1] - base;
                       if (begin < 0 || end < begin || end > nnz) {
                           fail_in_stream(function,
                                          "row %d begins at %d and ends at %d; there are %d entries", row,
                                          begin, end, nnz);
                           return false;
                       }
                       std::fill(row_indices + begin, row_indices + end, row + base);
                   }
                   return true;
               });
}
#undef CUSPARSE_TRY

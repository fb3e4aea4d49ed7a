// Handles, their settings, and copies of vectors and matrices.
#include <cstdio>
#include <mutex>
#include <set>

#include "call.hpp"
#include "cuda_runtime_api.h"

namespace cuda_on_cpu::blas {
namespace {

std::mutex mutex;

std::set<cublasHandle_t>& handles() {
    static auto* alive = new std::set<cublasHandle_t>;  // usable until the last static destructor
    return *alive;
}

struct StatusText {
    cublasStatus_t status;
    const char* name;
    const char* text;
};

#define CUBLAS_STATUS_TEXT(status, text) \
    StatusText {                         \
        status, #status, text            \
    }
constexpr StatusText kStatusTexts[] = {
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_SUCCESS, "success"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_INVALID_VALUE,
                       "an unsupported value or parameter was passed to the function"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_ARCH_MISMATCH,
                       "the requested functionality is not available on this architecture"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_MAPPING_ERROR, "an access to GPU memory space failed"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_NOT_SUPPORTED, "the functionality is not supported"),
    CUBLAS_STATUS_TEXT(CUBLAS_STATUS_LICENSE_ERROR, "a license check failed"),
};
#undef CUBLAS_STATUS_TEXT

const StatusText* find(cublasStatus_t status) {
    for (const StatusText& text : kStatusTexts) {
        if (text.status == status) return &text;
    }
    return nullptr;
}

// `n` elements of a vector are copied as a matrix with one row, and `n` columns of `rows` elements
// as rows of memory.
cublasStatus_t copy(const char* function, int rows, int columns, int element_size, const void* from,
                    int from_leading, void* to, int to_leading, cudaMemcpyKind kind, cudaStream_t stream,
                    bool wait) {
    const auto refuse_value = [&](const char* name, long long value, long long least) {
        std::fprintf(stderr,
                     "cuda_on_cpu: %s: %s is %lld; expected at least %lld (CUBLAS_STATUS_INVALID_VALUE)\n",
                     function, name, value, least);
        return CUBLAS_STATUS_INVALID_VALUE;
    };
    if (rows < 0) return refuse_value("the number of rows", rows, 0);
    if (columns < 0) return refuse_value("the number of columns or elements", columns, 0);
    if (element_size <= 0) return refuse_value("the size of an element", element_size, 1);
    const int least = std::max(1, rows);
    if (from_leading < least)
        return refuse_value("the source's leading dimension or increment", from_leading, least);
    if (to_leading < least)
        return refuse_value("the destination's leading dimension or increment", to_leading, least);
    if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
    const std::size_t size = element_size;
    const cudaError_t error = cudaMemcpy2DAsync(to, size * to_leading, from, size * from_leading, size * rows,
                                                columns, kind, stream);
    if (error != cudaSuccess || (wait && cudaStreamSynchronize(stream) != cudaSuccess))
        return CUBLAS_STATUS_MAPPING_ERROR;
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

bool is_alive(cublasHandle_t handle) {
    const std::scoped_lock lock(mutex);
    return handles().contains(handle);
}

}  // namespace cuda_on_cpu::blas

using namespace cuda_on_cpu::blas;

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
    if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *handle = new cublasContext;
    const std::scoped_lock lock(mutex);
    handles().insert(*handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    const std::scoped_lock lock(mutex);
    if (handles().erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
    if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
    if (value == nullptr || type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
    constexpr int kVersion[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
    *value = kVersion[type];
    return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
    const StatusText* text = find(status);
    return text == nullptr ? "unknown status" : text->name;
}

const char* cublasGetStatusString(cublasStatus_t status) {
    const StatusText* text = find(status);
    return text == nullptr ? "unknown status" : text->text;
}

// A setting of a handle, which is stored and can be read back.
#define CUBLAS_SETTING(Name, Type, field)                                \
    cublasStatus_t cublasSet##Name(cublasHandle_t handle, Type value) {  \
        if (!is_alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;     \
        handle->field = value;                                           \
        return CUBLAS_STATUS_SUCCESS;                                    \
    }                                                                    \
    cublasStatus_t cublasGet##Name(cublasHandle_t handle, Type* value) { \
        if (!is_alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;     \
        if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;        \
        *value = handle->field;                                          \
        return CUBLAS_STATUS_SUCCESS;                                    \
    }
CUBLAS_SETTING(Stream, cudaStream_t, stream)
CUBLAS_SETTING(PointerMode, cublasPointerMode_t, pointer_mode)
CUBLAS_SETTING(MathMode, cublasMath_t, math_mode)
CUBLAS_SETTING(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
#undef CUBLAS_SETTING

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes) {
    Call call(handle, __func__);
    call.require(workspace != nullptr || bytes == 0, CUBLAS_STATUS_INVALID_VALUE, "the workspace is null");
    return call.status();
}

cublasStatus_t cublasSetVector(int n, int element_size, const void* x, int incx, void* y, int incy) {
    return copy(__func__, 1, n, element_size, x, incx, y, incy, cudaMemcpyHostToDevice, nullptr, true);
}
cublasStatus_t cublasGetVector(int n, int element_size, const void* x, int incx, void* y, int incy) {
    return copy(__func__, 1, n, element_size, x, incx, y, incy, cudaMemcpyDeviceToHost, nullptr, true);
}
cublasStatus_t cublasSetMatrix(int rows, int columns, int element_size, const void* A, int lda, void* B,
                               int ldb) {
    return copy(__func__, rows, columns, element_size, A, lda, B, ldb, cudaMemcpyHostToDevice, nullptr, true);
}
cublasStatus_t cublasGetMatrix(int rows, int columns, int element_size, const void* A, int lda, void* B,
                               int ldb) {
    return copy(__func__, rows, columns, element_size, A, lda, B, ldb, cudaMemcpyDeviceToHost, nullptr, true);
}
cublasStatus_t cublasSetVectorAsync(int n, int element_size, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream) {
    return copy(__func__, 1, n, element_size, x, incx, y, incy, cudaMemcpyHostToDevice, stream, false);
}
cublasStatus_t cublasGetVectorAsync(int n, int element_size, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream) {
    return copy(__func__, 1, n, element_size, x, incx, y, incy, cudaMemcpyDeviceToHost, stream, false);
}
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int element_size, const void* A, int lda, void* B,
                                    int ldb, cudaStream_t stream) {
    return copy(__func__, rows, columns, element_size, A, lda, B, ldb, cudaMemcpyHostToDevice, stream, false);
}
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int element_size, const void* A, int lda, void* B,
                                    int ldb, cudaStream_t stream) {
    return copy(__func__, rows, columns, element_size, A, lda, B, ldb, cudaMemcpyDeviceToHost, stream, false);
}

#include "call.hpp"

#include <cstdarg>
#include <cstdio>

#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "memory.hpp"

namespace cuda_on_cpu::blas {

Call::Call(cublasHandle_t handle, const char* function) : handle_(handle), function_(function) {
    if (!is_alive(handle)) {
        std::fprintf(
            stderr, "cuda_on_cpu: %s: the handle is %s (CUBLAS_STATUS_NOT_INITIALIZED)\n", function,
            handle == nullptr ? "null; expected one of cublasCreate" : "not one of cublasCreate (any more)");
        status_ = CUBLAS_STATUS_NOT_INITIALIZED;
    }
}

Call& Call::require(bool condition, cublasStatus_t otherwise, const char* sentence) {
    if (!ok() || condition) return *this;
    status_ = otherwise;
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function_, sentence, cublasGetStatusName(otherwise));
    return *this;
}

Call& Call::at_least(const char* name, long long value, long long least) {
    if (!ok() || value >= least) return *this;
    char sentence[160];
    std::snprintf(sentence, sizeof sentence, "%s is %lld; expected at least %lld", name, value, least);
    return require(false, CUBLAS_STATUS_INVALID_VALUE, sentence);
}

Call& Call::increment(const char* name, int value) {
    if (!ok() || value != 0) return *this;
    char sentence[160];
    std::snprintf(sentence, sizeof sentence, "%s is 0; expected any other number", name);
    return require(false, CUBLAS_STATUS_INVALID_VALUE, sentence);
}

Call& Call::option(const char* name, int value, int count) {
    if (!ok() || (value >= 0 && value < count)) return *this;
    char sentence[160];
    std::snprintf(sentence, sizeof sentence, "%s is %d; expected 0 to %d", name, value, count - 1);
    return require(false, CUBLAS_STATUS_INVALID_VALUE, sentence);
}

Call& Call::given(const char* name, const void* pointer) {
    if (!ok() || pointer != nullptr) return *this;
    char sentence[160];
    std::snprintf(sentence, sizeof sentence, "%s is null", name);
    return require(false, CUBLAS_STATUS_INVALID_VALUE, sentence);
}

Call& Call::expect_host(const char* name, const void* pointer) {
    const auto allocation = find_allocation(pointer);
    if (!ok() || !allocation || allocation->type != cudaMemoryTypeDevice) return *this;
    char sentence[200];
    std::snprintf(sentence, sizeof sentence,
                  "%s is device memory, which the host cannot access; expected host memory, or "
                  "CUBLAS_POINTER_MODE_DEVICE",
                  name);
    return require(false, CUBLAS_STATUS_INVALID_VALUE, sentence);
}

Call& Call::add(const Region& region) {
    if (ok()) regions_.push_back(region);
    return *this;
}

Call& Call::mark_written() {
    if (ok()) regions_.back().written = true;
    return *this;
}

cublasStatus_t Call::submit_checked(std::function<bool()> work) {
    const auto checked = [function = function_, regions = regions_, work = std::move(work)] {
        for (const Region& region : regions) {
            // Reported at the next synchronisation.
            if (!reachable(function, region)) return cudaSuccess;
        }
        const ReadableGuards guards(regions);
        if (!work()) return cudaSuccess;
        for (const Region& region : regions) {
            if (region.written) note_written(region);
        }
        return cudaSuccess;
    };
    cudaError_t error = submit(handle_->stream, function_, checked);
    if (error == cudaSuccess && has_host_result_) error = cudaStreamSynchronize(handle_->stream);
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace cuda_on_cpu::blas

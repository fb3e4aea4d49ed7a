// Asynchronous copies to shared memory as functions: __pipeline_memcpy_async and the functions that
// commit and wait.
#pragma once

#include <cstddef>

#include "cuda_on_cpu/async_copy.h"
#include "cuda_runtime.h"

// `bytes` is 4, 8 or 16. The last `zeros` bytes are zero-filled, and their source is not read.
inline void __pipeline_memcpy_async(void* __restrict__ shared, const void* __restrict__ global,
                                    std::size_t bytes, std::size_t zeros = 0,
                                    cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
        cuda_on_cpu::device_failure(
            cudaErrorLaunchFailure,
            "__pipeline_memcpy_async of a size that is not 4, 8 or 16 bytes, or of more zeros than bytes",
            site);
    cuda_on_cpu::issue_copy(shared, global, static_cast<unsigned>(bytes),
                            static_cast<unsigned>(bytes - zeros), site);
}
inline void __pipeline_commit() {
    cuda_on_cpu::commit_copies();
}
inline void __pipeline_wait_prior(std::size_t pending) {
    cuda_on_cpu::wait_for_copies(static_cast<unsigned>(pending));
}

// The allocations of each memory pool.
#pragma once

#include <cstddef>

#include "driver_types.h"

namespace cuda_on_cpu {

// Records an allocation of `pool`; null: of the device's current pool.
void note_pool_allocation(cudaMemPool_t pool, const void* pointer, std::size_t bytes);
// release() of memory.hpp, also for memory of another process's pool.
cudaError_t release_any(void* pointer, cudaMemoryType type, const char* function);

}  // namespace cuda_on_cpu

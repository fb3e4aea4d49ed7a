// What each memory pool has given out.
#pragma once

#include <cstddef>

#include "driver_types.h"

namespace cuda_on_cpu {

// Memory of `pool`; null: of the device's current pool.
void note_pool_allocation(cudaMemPool_t pool, const void* pointer, std::size_t bytes);
// Does nothing if the memory is not of a pool.
void note_pool_release(const void* pointer);
// False: the memory is not of a pool of another process.
bool release_imported(void* pointer);

}  // namespace cuda_on_cpu

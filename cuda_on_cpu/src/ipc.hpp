// Device memory that processes share.
#pragma once

#include "driver_types.h"

namespace cuda_on_cpu {

// The live allocation that begins at `pointer` becomes a file, and `handle` tells other processes
// which. Waits for all streams.
cudaError_t export_memory(const char* function, void* pointer, void* handle);
// The memory of another process: mapped here, until close_memory(). A second one of the same memory
// gives the same pointer, and has to be closed, too.
cudaError_t import_memory(const char* function, const void* handle, void** pointer);
// False: no pointer of import_memory().
bool close_memory(void* pointer);

}  // namespace cuda_on_cpu

// Device memory that processes share.
#pragma once

#include "driver_types.h"

namespace cuda_on_cpu {

// Moves the live allocation that begins at `pointer` to a file, which `handle` identifies for other
// processes. Waits for all streams.
cudaError_t export_memory(const char* function, void* pointer, void* handle);
// Maps the memory of another process until close_memory(). A second import of the same memory
// returns the same pointer and must be closed as well.
cudaError_t import_memory(const char* function, const void* handle, void** pointer);
// False: the pointer is not from import_memory().
bool close_memory(void* pointer);

}  // namespace cuda_on_cpu

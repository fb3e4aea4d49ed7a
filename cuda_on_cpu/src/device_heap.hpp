// The heap of a device, from which its kernels allocate.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

// The sizes for the current device. A heap that kernels have used keeps its size: false.
bool set_heap_size(std::size_t bytes);
std::size_t heap_size();
// cudaDeviceReset(): the heap is empty, and its size may be set again.
void reset_heap();
// Has a kernel of the current device got a null pointer because the heap was full?
bool heap_was_full();
// Is the byte in memory that a kernel has allocated, also if it has been freed since?
bool in_heap_of_kernels(const void* byte);

}  // namespace cuda_on_cpu

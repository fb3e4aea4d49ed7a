// A program of the user's own, built by `nvcc` of the stand-in or by `./course run`: its right
// results are not known. One line at its end reports what suggests that they are wrong, and where
// to look.
#pragma once

#include <cstddef>
#include <string>

#include "driver_types.h"

namespace cuda_on_cpu {

// A kernel is launched. From the first one on, the end of the program is observed.
void note_launch();
// The stand-in has said what is wrong with a kernel. Only behind an illegal access there may be
// more.
void note_failure(cudaError_t error);
// The results of the kernel were others when its threads, or only its blocks, ran in the other
// order.
enum class OrderOf { threads, blocks };
void note_order_shows(const std::string& kernel, OrderOf of);
// A structure among the kernel's arguments has a pointer to host memory.
void note_host_pointer(const std::string& kernel, const std::string& argument);
// The host has copied these bytes from device memory. Is there anything in them that comes from
// memory that nothing wrote?
void look_at_copy(const void* bytes, std::size_t size);
// Managed memory, before it is freed: is it a counter that nothing had set before kernels counted?
void look_at_counter(const void* bytes, std::size_t size);

}  // namespace cuda_on_cpu

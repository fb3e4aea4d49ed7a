// The report at the end of a user's own program, built by the stand-in's `nvcc` or by `./course
// run`. The correct results are unknown, so a line reports any sign that they are wrong, and where
// to look.
#pragma once

#include <cstddef>
#include <string>

#include "driver_types.h"

namespace cuda_on_cpu {

// A kernel is launched. The first launch registers the report at the end of the program.
void note_launch();
// The stand-in has already reported an error of a kernel. Only after an illegal access may more
// follow.
void note_failure(cudaError_t error);
// The results of the kernel changed when its threads, or only its blocks, ran in the other order.
enum class OrderOf { threads, blocks };
void note_order_shows(const std::string& kernel, OrderOf of);
// A structure among the kernel's arguments contains a pointer to host memory.
void note_host_pointer(const std::string& kernel, const std::string& argument);
// The host has copied an object with virtual functions to device memory, or passed one to a kernel.
void note_virtual_functions();
// The host has copied these bytes from device memory. Checks whether they contain values computed
// from uninitialised memory.
void look_at_copy(const void* bytes, std::size_t size);
// Checks managed memory before it is freed: is it a counter that kernels incremented without an
// initial value?
void look_at_counter(const void* bytes, std::size_t size);

}  // namespace cuda_on_cpu

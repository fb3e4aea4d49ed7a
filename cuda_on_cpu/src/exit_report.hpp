// A program that `nvcc` of the stand-in has made, or `./course run`, is somebody's own: nobody
// knows what its results should be. What suggests that they are wrong is told in one line when it
// ends, and where to look.
#pragma once

#include <cstddef>
#include <string>

#include "driver_types.h"

namespace cuda_on_cpu {

// A kernel is launched. From the first one on the end of the program is watched.
void note_launch();
// The stand-in has said what is wrong with a kernel. Only behind an illegal access there may be
// more.
void note_failure(cudaError_t error);
// The results of the kernel were others when its threads ran in the other order.
void note_order_shows(const std::string& kernel);
// The host has copied these bytes from device memory. Is there anything in them that comes from
// memory that nothing wrote?
void look_at_copy(const void* bytes, std::size_t size);

}  // namespace cuda_on_cpu

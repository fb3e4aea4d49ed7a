// What page_host.cpp and contexts.cpp count.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

extern std::uint64_t threads_run;    // CUDA threads that have started
extern std::uint64_t switches_made;  // from one thread's stack to another one

}  // namespace cuda_on_cpu

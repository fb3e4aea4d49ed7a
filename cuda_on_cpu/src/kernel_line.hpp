// Where in the source of a kernel the program is.
#pragma once

#include <span>
#include <string>

namespace cuda_on_cpu {

// "file.cu:93": the first line of these instructions, innermost function first, that is neither the
// stand-in's own nor the system's; of a lesson rather than of the headers that lessons share.
// Empty: there is none. Asks addr2line: not for signal handlers.
std::string kernel_line(std::span<void* const> instructions);

// The line of the kernel that the caller, a function of the stand-in, was called from.
std::string calling_kernel_line();

}  // namespace cuda_on_cpu

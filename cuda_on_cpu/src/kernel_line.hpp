// The present line in the source of a kernel.
#pragma once

#include <span>
#include <string>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

// "file.cu:93": the first line of these instructions, innermost function first, that belongs
// neither to the stand-in nor to the system. A lesson's line is preferred to one of the headers
// that lessons share. Empty: there is none. Runs addr2line: not for signal handlers.
std::string kernel_line(std::span<void* const> instructions);

// The line of the kernel that called the present function of the stand-in.
std::string calling_kernel_line();

// "warp.cuh:28, called in sum.cuh:44": `site`, where the running thread is, and if that is in a
// function that a kernel calls, the line of the call. Runs addr2line several times.
std::string place_and_caller(Site site);

}  // namespace cuda_on_cpu

// Included by headers that an older standard cannot compile.
#pragma once

#if defined(__cplusplus) && __cplusplus < 202002L
#error "CUDA on the CPU: this header needs -std=c++20; with CMake -DCMAKE_CXX_STANDARD=20"
// Ends the compilation, before hundreds of errors that follow from the first.
#include "-std=c++20"
#endif

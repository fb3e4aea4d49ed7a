// Included by headers that do not compile with an older standard.
#pragma once

#if defined(__cplusplus) && __cplusplus < 202002L
#error "CUDA on the CPU: this header needs -std=c++20; with CMake -DCMAKE_CXX_STANDARD=20"
// Stops the compilation before hundreds of consequential errors.
#include "-std=c++20"
#endif

// Shared by the files of the driver API, which are named after the groups of its functions:
// driver_contexts.cpp, driver_memory.cpp and so on.
#pragma once

#include <cuda.h>

#include "driver_types.h"

struct CUctx_st {
    int device = 0;
    unsigned flags = 0;
    int references = 0;
};

namespace cuda_on_cpu {

// The driver API's error with the same number as the runtime's.
CUresult result_of(cudaError_t error);
// Prints on stderr which function refused what, and returns the error.
[[gnu::format(printf, 3, 4)]] CUresult refuse_call(CUresult error, const char* function, const char* format,
                                                   ...);
// Checks that cuInit was called and that the device exists; returns an error otherwise.
CUresult check_device(const char* function, CUdevice device);
CUresult check_context(const char* function, CUcontext context);
// Checks that this host thread has a context. A program that has called cuInit uses the driver API
// and must make a context current on each host thread; the runtime creates its own.
CUresult check_current(const char* function);

CUctx_st& primary_of(int device);
// Null: none.
CUcontext current_context();

char* pointer_of(CUdeviceptr pointer);
CUdeviceptr number_of(const void* pointer);

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_CHECK(call) \
    if (const CUresult error_ = call; error_ != CUDA_SUCCESS) return error_

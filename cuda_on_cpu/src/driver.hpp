// What the files of the driver API have in common: driver_contexts.cpp, driver_memory.cpp and so
// on, by what the functions are about.
#pragma once

#include <cuda.h>

#include "driver_types.h"

struct CUctx_st {
    int device = 0;
    unsigned flags = 0;
    int references = 0;
};

namespace cuda_on_cpu {

// The driver's error with the number of the runtime's.
CUresult result_of(cudaError_t error);
// Says on stderr which function refused what, and gives the error back.
[[gnu::format(printf, 3, 4)]] CUresult refuse_call(CUresult error, const char* function, const char* format,
                                                   ...);
// cuInit was called, and the device exists; or else which of the two is not so.
CUresult check_device(const char* function, CUdevice device);
CUresult check_context(const char* function, CUcontext context);
// A program that has called cuInit uses the driver API, and needs a context on each host thread.
// The runtime makes its own.
CUresult check_current(const char* function);

CUctx_st& primary_of(int device);
// Null: none.
CUcontext current_context();

char* pointer_of(CUdeviceptr pointer);
CUdeviceptr number_of(const void* pointer);

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_CHECK(call) \
    if (const CUresult error_ = call; error_ != CUDA_SUCCESS) return error_

// There is no profiler to be told: both succeed.
#pragma once

#include <cuda.h>

static inline CUresult cuProfilerStart(void) {
    return CUDA_SUCCESS;
}
static inline CUresult cuProfilerStop(void) {
    return CUDA_SUCCESS;
}

// Verdict: launches, line 24
// Mystery 7, repaired: the first reading of a row is taken from all.
//
// Cause: launches. Each takes a few microseconds before and after the kernel, which has 1 KB to
// read, on one SM of 132.
// Repair: one launch, with a block for each row.
// Limited by that launch. Such a small problem ends before all of the GPU is busy.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day07 {

__global__ void subtract_first(const float* in, float* out) {
    const std::size_t first = std::size_t{blockIdx.x} * 256;
    out[first + threadIdx.x] = in[first + threadIdx.x] - in[first];
}

inline void mystery7(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    subtract_first<<<static_cast<unsigned>(n), 256, 0, stream>>>(in, out);
}

}  // namespace day07

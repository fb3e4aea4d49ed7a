// Verdict: ?, line ?
// Mystery 7: "We take the first reading of a row from all of its readings. 512 rows are half a
// megabyte, which should take a few microseconds. We launched it in a loop and found nothing wrong
// in it."
//
//   out[256 r + c] = in[256 r + c] - in[256 r]; there are n rows of 256
//
//   ./course profile day07 --only mystery7      what it does with its time
//   ./course check day07/mystery7               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day07 {

__global__ void subtract_first(const float* row, float* out) {
    out[threadIdx.x] = row[threadIdx.x] - row[0];
}

inline void mystery7(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    for (std::size_t row = 0; row < n; ++row)
        subtract_first<<<1, 256, 0, stream>>>(in + row * 256, out + row * 256);
}

}  // namespace day07

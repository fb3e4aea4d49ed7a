// Verdict: ?, line ?
// Mystery 5: "We follow 133 asteroids, a block for each, with 1,024 threads. It is all arithmetic,
// and every SM gets work. With 132 asteroids it takes half of the time."
//
//   out[a n + t] = E with E - 0.5 sin E = in[a n + t]: Kepler's equation for asteroid a at time t
//
//   ./course profile day07 --only mystery5      what it does with its time
//   ./course check day07/mystery5               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>

namespace day07 {

// Each iteration halves the error, at least.
__device__ inline float eccentric_anomaly(float mean) {
    float e = mean;
    for (int iteration = 0; iteration < 24; ++iteration)
        e = mean + 0.5f * sinf(e);
    return e;
}

__global__ void follow_asteroids(const float* in, std::size_t n, float* out) {
    const std::size_t first = blockIdx.x * n;
    for (std::size_t t = threadIdx.x; t < n; t += 1024)
        out[first + t] = eccentric_anomaly(in[first + t]);
}

inline void mystery5(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    follow_asteroids<<<133, 1024, 0, stream>>>(in, n, out);
}

}  // namespace day07

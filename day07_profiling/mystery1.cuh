// Verdict: uncoalesced accesses, line 30
// Mystery 1, repaired: particles move.
//
// Cause: uncoalesced accesses. In an array of structures, x of a particle lies 32 bytes behind that
// of the one before, so a warp's load of x touches 32 sectors instead of 4. Sectors are all that
// memory moves: 32 bytes arrive, and 8 of them, x and v, are used.
// Repair: a structure of arrays. The x of adjacent particles are adjacent.
// Limited by the bandwidth of DRAM, 12 bytes per particle and step.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day07 {

struct Particles {
    float *x, *v, *mass, *charge, *age, *red, *green, *blue;  // n elements each
};

__global__ void place_particles(const float* in, std::size_t n, Particles to) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i >= n) return;
    to.x[i] = in[i];
    to.v[i] = in[n + i];
    to.mass[i] = to.red[i] = to.green[i] = to.blue[i] = 1;
    to.charge[i] = to.age[i] = 0;
}

__global__ void move_particles(float* x, const float* v, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) x[i] += 0.01f * v[i];
}

__global__ void show_particles(const float* x, std::size_t n, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) out[i] = x[i];
}

// `work` has 8 n elements.
inline void mystery1(const float* in, std::size_t n, float* work, float* out, cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(n, 256);
    const Particles all{work,         work + n,     work + 2 * n, work + 3 * n,
                        work + 4 * n, work + 5 * n, work + 6 * n, work + 7 * n};
    place_particles<<<blocks, 256, 0, stream>>>(in, n, all);
    for (int step = 0; step < 16; ++step)
        move_particles<<<blocks, 256, 0, stream>>>(all.x, all.v, n);
    show_particles<<<blocks, 256, 0, stream>>>(all.x, n, out);
}

}  // namespace day07

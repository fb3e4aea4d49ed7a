// Verdict: ?, line ?
// Mystery 1: "We move 33 million particles. Each step reads two numbers of a particle and writes
// one, 12 bytes. At the GPU's bandwidth a step should take a seventh of the time that it does."
//
//   out[i] = the position of particle i after 16 steps; `in` has n positions, then n velocities
//
//   ./course profile day07 --only mystery1      what it does with its time
//   ./course check day07/mystery1               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day07 {

struct Particle {
    float x, v, mass, charge, age, red, green, blue;
};

__global__ void place_particles(const float* in, std::size_t n, Particle* particles) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) particles[i] = {in[i], in[n + i], 1, 0, 0, 1, 1, 1};
}

__global__ void move_particles(Particle* particles, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) particles[i].x += 0.01f * particles[i].v;
}

__global__ void show_particles(const Particle* particles, std::size_t n, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) out[i] = particles[i].x;
}

// `work` has 8 n elements.
inline void mystery1(const float* in, std::size_t n, float* work, float* out, cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(n, 256);
    Particle* const particles = reinterpret_cast<Particle*>(work);
    place_particles<<<blocks, 256, 0, stream>>>(in, n, particles);
    for (int step = 0; step < 16; ++step)
        move_particles<<<blocks, 256, 0, stream>>>(particles, n);
    show_particles<<<blocks, 256, 0, stream>>>(particles, n, out);
}

}  // namespace day07

// Day 25, beyond: the initial weights of a layer, drawn on the GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "attention.cuh"
#include "attention.hpp"

namespace day25 {

constexpr int kDrawThreads = 256;

// Idea: a counter-based generator (common/device/random.hpp). Thread i draws weight i without the
// weights before it, and the CPU draws the same bits.
// Cost removed: drawing on the host and copying; a generator state for each thread.
// Still limits it: memory, one store per weight.
__global__ void __launch_bounds__(kDrawThreads)
    draw_weights(Xavier distribution, DeviceSpan<float> transposed, std::size_t inputs, std::size_t outputs,
                 float scale, std::uint64_t seed, std::uint64_t first) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kDrawThreads + threadIdx.x;
    if (i >= transposed.size()) return;
    const std::size_t input = i / outputs;
    const std::size_t output = i % outputs;
    transposed[i] = xavier_weight(distribution, seed, first + output * inputs + input, scale);
}

inline void launch_draw_weights(Xavier distribution, DeviceSpan<float> transposed, std::size_t inputs,
                                std::size_t outputs, float scale, std::uint64_t seed, std::uint64_t first) {
    const unsigned grid = course::blocks_for(transposed.size(), kDrawThreads);
    draw_weights<<<grid, kDrawThreads>>>(distribution, transposed, inputs, outputs, scale, seed, first);
}

}  // namespace day25

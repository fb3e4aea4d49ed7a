// Day 48, beyond: the k best of each row for k beyond 1024.
//
//   kernel        what is new                                       what limits it
//   select_best   the kernel of the lesson, on the keys that are    not measured yet
//                 left over by the passes before
//   append_pass   adds the results of a pass to those before        not measured yet
//
//   ./course run day48 --size 512x4096x64x3000
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "keys.cuh"
#include "rows_after.cuh"

namespace day48 {

// The results of a pass, `size` for each row, and where they go: `begin` to begin + size - 1 of the
// k results of each row.
struct Pass {
    const float* values;
    const std::uint32_t* indices;
    std::size_t begin;
    std::size_t size;
    std::size_t k;
};

// Idea: a thread for each result. The one with the last result of a row stores its key, after which
// the next pass starts. The key is made from value and column again: a value that is NaN, or 0,
// has the same rank as before.
// Cost removed: none. select_best, which the lesson shows, stores k results of a row one after the
// other; here a row has the results of other passes, too.
// Still limits it: not measured yet.
__global__ void append_pass(const Pass pass, std::size_t rows, float sign, float* values,
                            std::uint32_t* indices, Key* last) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= rows * pass.size) return;
    const std::size_t row = i / pass.size;
    const std::size_t place = i % pass.size;
    values[row * pass.k + pass.begin + place] = pass.values[i];
    indices[row * pass.k + pass.begin + place] = pass.indices[i];
    if (place == pass.size - 1) last[row] = key_of(sign * pass.values[i], pass.indices[i]);
}

inline void launch_append_pass(const Pass& pass, std::size_t rows, float sign, float* values,
                               std::uint32_t* indices, Key* last, cudaStream_t stream) {
    constexpr unsigned kThreads = 256;
    append_pass<<<course::blocks_for(rows * pass.size, kThreads), kThreads, 0, stream>>>(
        pass, rows, sign, values, indices, last);
}

}  // namespace day48

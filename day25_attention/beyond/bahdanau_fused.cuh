// Day 25, beyond: Bahdanau's scores, v . tanh(W [h; s_j]), from the product while it is in
// registers.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "matmul_tile.cuh"
#include "scores.cuh"

namespace day25 {

using ScoreTile = Tile<64, 64, 16, 4, 4>;

// Idea: use a result while it is in a register. A block multiplies 64 states by 64 units; tanh, v
// and the sum over its units follow at once.
// Cost removed: S W_s^T in memory. 64 x 64 results become 64 numbers, which add_rows adds up.
// Still limits it: shared memory, from which the product takes its operands (counters: 65 % busy).
__global__ void __launch_bounds__(ScoreTile::THREADS)
    score_tiles(DeviceMatrix<const float> states, DeviceMatrix<const float> weight,
                DeviceSpan<const float> add, DeviceSpan<const float> v, DeviceMatrix<float> parts) {
    __shared__ typename ScoreTile::Shared shared;
    const std::size_t part = blockIdx.x % parts.cols();
    const std::size_t row0 = blockIdx.x / parts.cols() * ScoreTile::BM;
    const std::size_t unit0 = part * ScoreTile::BN;
    ScoreTile tile;
    tile.multiply<true>(states, weight, row0, unit0, shared);

    float score[ScoreTile::TM] = {};  // of this thread's TM states, over its TN units
    for (int j = 0; j < ScoreTile::TN; ++j) {
        const std::size_t unit = unit0 + ScoreTile::col() + j * ScoreTile::COLS;
        if (unit >= weight.rows()) continue;
        for (int i = 0; i < ScoreTile::TM; ++i)
            score[i] += v[unit] * tanhf(tile.sum[i][j] + add[unit]);
    }
    // The threads that share a row are adjacent lanes.
    static_assert(course::kWarpSize % ScoreTile::COLS == 0);
    for (int i = 0; i < ScoreTile::TM; ++i) {
        for (int distance = ScoreTile::COLS / 2; distance > 0; distance /= 2)
            score[i] += __shfl_xor_sync(course::kWholeWarp, score[i], distance);
        const std::size_t row = row0 + ScoreTile::row() + i * ScoreTile::ROWS;
        if (ScoreTile::col() == 0 && row < parts.rows()) parts(row, part) = score[i];
    }
}

// `parts` has a column for every ScoreTile::BN units; launch_add_rows adds up its rows.
inline void launch_score_tiles(DeviceMatrix<const float> states, DeviceMatrix<const float> weight,
                               DeviceSpan<const float> add, DeviceSpan<const float> v,
                               DeviceMatrix<float> parts, cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div<std::size_t>(states.rows(), ScoreTile::BM) * parts.cols();
    const unsigned grid = course::blocks_for(tiles, 1);
    score_tiles<<<grid, ScoreTile::THREADS, 0, stream>>>(states, weight, add, v, parts);
}

}  // namespace day25

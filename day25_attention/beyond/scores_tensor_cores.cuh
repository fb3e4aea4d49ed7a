// Day 25, beyond: Bahdanau's scores with the product S W_s^T on tensor cores, in FP32 accuracy:
// each operand becomes the sum of two TF32 numbers, and three products replace one
// (common/tile/tf32_mma.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/warp.cuh"
#include "common/tile/tf32_mma.cuh"

namespace day25 {

namespace mma = course::tf32_mma;

constexpr int kScoringBlocksPerSm = 3;

// Idea: bahdanau_fused, and tensor cores multiply. Copies are asynchronous, two stages ahead.
// Cost removed: the multiply-adds of CUDA cores.
// Still limits it: latency (counters: tensor cores 42 % busy, no unit above it): three products for
// each one, and every warp splits its operands for itself.
template <bool ALIGNED>
__global__ void __launch_bounds__(mma::Tile::THREADS, kScoringBlocksPerSm)
    score_tiles_mma(const __grid_constant__ course::DeviceMatrix<const float> states,
                    const __grid_constant__ course::DeviceMatrix<const float> weight,
                    const course::DeviceSpan<const float> add, const course::DeviceSpan<const float> v,
                    const course::DeviceMatrix<float> parts) {
    extern __shared__ __align__(128) unsigned char memory[];
    const auto across = static_cast<unsigned>(course::ceil_div<std::size_t>(weight.rows(), mma::Tile::BN));
    const int row0 = static_cast<int>(blockIdx.x / across) * mma::Tile::BM;
    const int unit0 = static_cast<int>(blockIdx.x % across) * mma::Tile::BN;
    mma::Sums sums = {};
    mma::multiply<ALIGNED>(states, weight, row0, unit0, reinterpret_cast<mma::Stages&>(memory), sums);

    const mma::Lane at;
    const std::size_t part = static_cast<std::size_t>(unit0 + at.warp_col) / mma::Tile::WN;
#pragma unroll
    for (int i = 0; i < mma::ROWS; ++i) {
        const std::size_t row = row0 + at.row(i);
        float score = 0;
#pragma unroll
        for (int j = 0; j < mma::COLS; ++j) {
            const std::size_t unit = unit0 + at.col(j);
            if (row >= states.rows() || unit >= weight.rows()) continue;
            float sum = mma::result(sums, i, j);
            if (!isfinite(sum)) sum = mma::multiply_in_fp32(states, row, weight, unit);
            score += v[unit] * tanhf(sum + add[unit]);
        }
        // The four lanes that share the row.
        score += __shfl_xor_sync(course::kWholeWarp, score, 1);
        score += __shfl_xor_sync(course::kWholeWarp, score, 2);
        if (at.lane % 4 == 0 && row < parts.rows() && part < parts.cols()) parts(row, part) = score;
    }
}

// `parts` has a column for every mma::Tile::WN units. ALIGNED: states and weight consist of whole
// rows of aligned float4.
template <bool ALIGNED>
void launch_score_tiles_mma(course::DeviceMatrix<const float> states,
                            course::DeviceMatrix<const float> weight, course::DeviceSpan<const float> add,
                            course::DeviceSpan<const float> v, course::DeviceMatrix<float> parts,
                            cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div<std::size_t>(states.rows(), mma::Tile::BM) *
                              course::ceil_div<std::size_t>(weight.rows(), mma::Tile::BN);
    course::launch(score_tiles_mma<ALIGNED>,
                   {.grid = course::blocks_for(tiles, 1),
                    .block = mma::Tile::THREADS,
                    .shared_bytes = sizeof(mma::Stages),
                    .stream = stream},
                   states, weight, add, v, parts);
}

}  // namespace day25

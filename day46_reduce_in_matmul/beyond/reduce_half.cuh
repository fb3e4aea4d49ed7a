// Day 46, beyond: minima and maxima of products of 16-bit matrices on tensor cores.
//
//   version      what is new                                     what limits it
//   half_mma     mma.sync multiplies, in FP16 or BF16             not profiled
//   half_wgmma   Hopper: TMA and wgmma, in reduce_half_wgmma.cu   not profiled
//
// mma.sync is the subject of day 40; the main loop is given (common/tile/half_mma.cuh).
//
//   ./course run day46 --size 512x512x64
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/launch.hpp"
#include "common/device/operands.hpp"
#include "common/tile/distance.cuh"
#include "common/tile/half_mma.cuh"
#include "reduce_in_matmul.cuh"
#include "row_partition.cuh"

namespace day46 {

namespace half_mma = course::half_mma;

// Four warps. With three stages two blocks fit on an SM of Hopper, one on an A100, and none where a
// block may have 99 KB; with two, the block fits wherever there is mma.sync for these types.
template <class E, int STAGES>
using HalfTile = half_mma::TileOf<E, 128, 128, STAGES>;

// Idea: the epilogue of `fused` on the results of mma.sync. A lane has 16 columns of each of its 8
// rows; the 4 lanes that share its rows are adjacent.
// Cost removed: multiply-adds of CUDA cores, and half of the bytes of the operands.
// Still limits it: not profiled. A tile's reduction takes as many instructions as that of
// `fused`, and its product far fewer.
//
// E: the type of the elements. ALIGNED: rows of A and B are 16-byte aligned.
template <class R, class L, bool ALIGNED>
__global__ void __launch_bounds__(L::THREADS, 2)
    reduce_tiles_half(const __grid_constant__ course::OperandsOf<typename L::T> operands,
                      const __grid_constant__ RowPartition<L> tiles,
                      const __grid_constant__ course::Distance distance, std::size_t results,
                      typename R::State* parts) {
    extern __shared__ __align__(128) unsigned char half_stages[];
    __shared__ typename R::State states[half_mma::ROWS][L::THREADS];
    const auto walk = tiles.walk();
#pragma unroll
    for (int i = 0; i < half_mma::ROWS; ++i)
        states[i][threadIdx.x] = R::nothing();
    half_mma::multiply_tiles<L, ALIGNED>(
        operands, walk, reinterpret_cast<half_mma::Stage<L>*>(half_stages),
        [&](const half_mma::LaneCoords<L>& at, float(&values)[half_mma::ROWS][half_mma::COLS]) {
            distance.finish(at, values);
            if (at.tile.col + L::BN > distance.n) {
#pragma unroll
                for (int j = 0; j < half_mma::COLS; ++j) {
                    if (at.col(j) < distance.n) continue;
#pragma unroll
                    for (int i = 0; i < half_mma::ROWS; ++i)
                        values[i][j] = R::kNeutral;
                }
            }
            R::add(
                [&](int i) -> auto& { return states[i][threadIdx.x]; }, values,
                [&](int j) { return at.col(j); });
        });
    const half_mma::LaneCoords<L> at{walk.at(walk.first())};
    const unsigned part = blockIdx.x / tiles.rows_of_tiles * L::WARPS_N + at.warp_col / L::WN;
#pragma unroll
    for (int i = 0; i < half_mma::ROWS; ++i) {
        const typename R::State row = merge_lanes<R, half_mma::LANES_OF_ROW>(states[i][threadIdx.x]);
        if (at.lane % half_mma::LANES_OF_ROW == 0 && at.row(i) < distance.m)
            parts[part * results + at.tile.product * distance.m + at.row(i)] = row;
    }
}

template <class R, class L, bool ALIGNED>
void launch_reduce_tiles_half(const course::OperandsOf<typename L::T>& operands, const RowPartition<L>& tiles,
                              const course::Distance& distance, std::size_t results, typename R::State* parts,
                              cudaStream_t stream) {
    const unsigned grid = tiles.rows_of_tiles * tiles.blocks_per_row;
    course::launch(reduce_tiles_half<R, L, ALIGNED>, {grid, L::THREADS, half_mma::kStages<L>, stream},
                   operands, tiles, distance, results, parts);
}

}  // namespace day46

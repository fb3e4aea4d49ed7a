// Day 48, beyond: half_mma, the fused selection from products of 16-bit matrices.
//
// The main loop is that of common/tile/half_mma.cuh: mma.sync, the subject of day 40. Lists,
// thresholds and pieces are those of `fused` (fused.cuh, row_lists.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/launch.hpp"
#include "common/tile/distance.cuh"
#include "common/tile/half_mma.cuh"
#include "fused.cuh"
#include "row_lists.cuh"

namespace day48 {

namespace half_mma = course::half_mma;

// The tile of EqualShares, eight warps. Three stages do not fit into the 99 KB of some GPUs.
template <class E, int STAGES>
using HalfTile = half_mma::TileOf<E, T::BM, T::BN, STAGES>;
static_assert(HalfTile<__half, 2>::THREADS == T::THREADS,
              "list_best_half: the lists are shared by T::THREADS");

// Appends those of a lane's values that are better than the thresholds of their rows. Returns
// whether a list is full. As append_values() in fused.cuh, with 16 columns of 8 rows.
template <class L>
__device__ bool append_values(const RowLists& lists, RowState& rows, const half_mma::LaneCoords<L>& at,
                              const float (&values)[half_mma::ROWS][half_mma::COLS]) {
    const auto rows_inside = static_cast<unsigned>(min(lists.m - at.tile.row, std::size_t{L::BM}));
    const auto cols_inside = static_cast<unsigned>(min(lists.n - at.tile.col, std::size_t{L::BN}));
    unsigned inside = 0;
#pragma unroll
    for (int j = 0; j < half_mma::COLS; ++j)
        inside |= (static_cast<unsigned>(at.col_in_tile(j)) < cols_inside ? 1u : 0u) << j;
    bool is_full = false;
#pragma unroll
    for (int i = 0; i < half_mma::ROWS; ++i) {
        const auto row = static_cast<unsigned>(at.row_in_tile(i));
        const float bound = rows.bound[row];
        unsigned chosen = 0;
#pragma unroll
        for (int j = 0; j < half_mma::COLS; ++j)
            chosen |= (!(values[i][j] >= bound) ? 1u : 0u) << j;
        chosen &= inside;
        if (chosen == 0 || row >= rows_inside) continue;
        const unsigned count = __popc(chosen);
        const unsigned before = atomicAdd(&rows.listed[row], count);
        Key* place = lists.list(row) + before;
        // The loop over all j is unrolled, so that values[i] stays in registers.
#pragma unroll
        for (int j = 0; j < half_mma::COLS; ++j) {
            if ((chosen >> j & 1) != 0) *place++ = key_of(values[i][j], static_cast<unsigned>(at.col(j)));
        }
        is_full |= lists.size.is_full(before + count);
    }
    return is_full;
}

// Idea: the epilogue of `fused` on the results of mma.sync.
// Cost removed: multiply-adds of CUDA cores, and half of the bytes of the operands.
// Still limits it: not profiled. The lists take as many instructions as those of `fused`, and
// the products far fewer.
//
// ALIGNED: rows of A and B are 16-byte aligned.
template <class L, bool ALIGNED>
__global__ void __launch_bounds__(L::THREADS, 1)
    list_best_half(const __grid_constant__ course::OperandsOf<typename L::T> operands,
                   const __grid_constant__ course::Distance distance, const float sign,
                   const __grid_constant__ RowLists lists) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ RowState rows;
    const EqualShares& tiles = lists.pieces.tiles;
    start_rows(rows, tiles);
    const auto finish_row = [&](const course::Tile& tile) {
        publish_bounds(lists, rows, tile);
        __syncthreads();
        read_bounds(lists, rows, tile);
        __syncthreads();
        write_pieces(lists, rows, tile);
    };
    half_mma::multiply_tiles<L, ALIGNED>(
        operands, tiles, reinterpret_cast<half_mma::Stage<L>*>(memory),
        [&](const half_mma::LaneCoords<L>& at, float(&values)[half_mma::ROWS][half_mma::COLS]) {
            // Tiles of this row that the block has finished.
            const unsigned before = static_cast<unsigned>(at.tile.col / L::BN) - rows.first;
            if (is_time_for_bounds(before)) {
                read_bounds(lists, rows, at.tile);
                __syncthreads();
            }
            distance.finish(at, values);
            if (sign < 0) {
#pragma unroll
                for (int i = 0; i < half_mma::ROWS; ++i) {
#pragma unroll
                    for (int j = 0; j < half_mma::COLS; ++j)
                        values[i][j] = -values[i][j];
                }
            }
            const bool is_full = __syncthreads_or(append_values(lists, rows, at, values));
            // Each warp now changes lists to which all threads append. The barriers of the main
            // loop come before the next append.
            if (lists.is_last_of_row(at.tile)) {
                finish_row(at.tile);
            } else if (is_full) {
                shorten_lists(lists, rows);
            } else if (is_time_for_bounds(before + 1)) {
                publish_bounds(lists, rows, at.tile);
            }
        });
    const course::Tile last = tiles.at(tiles.last());
    __syncthreads();  // the lists of the last tile may have been shortened
    if (!lists.is_last_of_row(last)) finish_row(last);
}

template <class L, bool ALIGNED>
void launch_list_best_half(const course::OperandsOf<typename L::T>& operands,
                           const course::Distance& distance, float sign, const RowLists& lists,
                           cudaStream_t stream) {
    course::launch(list_best_half<L, ALIGNED>,
                   {lists.pieces.tiles.blocks, L::THREADS, half_mma::kStages<L>, stream}, operands, distance,
                   sign, lists);
}

}  // namespace day48

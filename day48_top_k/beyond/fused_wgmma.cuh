// Day 48, beyond: fused_wgmma, the fused selection with the products on Hopper's tensor cores.
//
// Step 16 of the ladder multiplies TF32 in FP32 accuracy: each operand is split into two TF32
// numbers, and three products replace one (common/tile/tf32_wgmma.cuh). There, the right operand of
// wgmma has rows along K, as the points do, and the left one columns along K, as the transposed
// queries do. So the product is that of points and queries, and a tile has 128 points by 128
// queries. A warp has all 128 points for 16 of the queries, so no other warp of the block has
// candidates for its lists.
//
// Compiled for compute capability 9.0a only (course_hopper_library in CMakeLists.txt).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/tile/distance.cuh"
#include "common/tile/tf32_wgmma.cuh"
#include "fused.cuh"
#include "row_lists.cuh"
#include "warp_lists.cuh"

namespace day48 {

namespace tf32 = course::tf32;

static_assert(POINTS == tf32::BM && T::BM == tf32::BN,
              "list_best_wgmma: the halves of a tile of EqualShares");

struct Shared {
    tf32::Ring<3> ring;
    RowState rows;
};

// queries[k][i] = element k of query i. The rows of the result are `pitch` elements apart.
__global__ void transpose_queries(const __grid_constant__ course::Operands operands, float* queries,
                                  std::size_t pitch) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= pitch * operands.k()) return;
    const std::size_t row = i % pitch;
    const std::size_t k = i / pitch;
    const auto a = operands.a[0];
    queries[i] = row >= operands.m() ? 0 : operands.op_a == course::Op::kNone ? a(row, k) : a(k, row);
}

inline void launch_transpose_queries(const course::Operands& operands, float* queries, std::size_t pitch,
                                     cudaStream_t stream) {
    constexpr unsigned kThreads = 256;
    transpose_queries<<<course::blocks_for(pitch * operands.k(), kThreads), kThreads, 0, stream>>>(
        operands, queries, pitch);
}

// Where a lane's results are: value [h][i] is that of query row(h) and point col(i).
struct LaneCoords {
    tf32::Lane lane;
    course::Tile tile;  // tile.col: of this half

    __device__ unsigned row_in_tile(int h) const { return static_cast<unsigned>(lane.col() + h); }
    __device__ std::size_t row(int h) const { return tile.row + row_in_tile(h); }
    __device__ std::size_t col(int i) const { return tile.col + lane.row(i); }
};

// The rows of a warp in the tile, for WarpLists.
struct RowsOfWarp {
    tf32::Lane lane;

    __device__ unsigned operator()(unsigned i) const {
        tf32::Lane other = lane;
        other.g = static_cast<int>(i) / 2;
        return static_cast<unsigned>(other.col()) + i % 2;
    }
};

// Splitting Inf, or a number that TF32 rounds to Inf, leaves Inf or NaN in the sum. Such a sum is
// recomputed in FP32.
__device__ inline void repair(const course::Operands& operands, const LaneCoords& at,
                              float (&sums)[2][OF_LANE]) {
    const auto a = operands.a[0];
    const auto b = operands.b[0];
    const std::size_t depth = operands.k();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int i = 0; i < OF_LANE; ++i) {
            if (isfinite(sums[h][i]) || at.row(h) >= operands.m() || at.col(i) >= operands.n()) continue;
            float sum = 0;
#pragma unroll 1
            for (std::size_t k = 0; k < depth; ++k) {
                const float x = operands.op_a == course::Op::kNone ? a(at.row(h), k) : a(k, at.row(h));
                sum += x * b(at.col(i), k);
            }
            sums[h][i] = sum;
        }
    }
}

// Idea: `fused` on tensor cores. A warp has whole rows of the tile, so it lists, shortens and
// publishes without the other warps.
// Cost removed: multiply-adds of CUDA cores; barriers in the epilogue. While the warps of one
// consumer list their values, the products of the other continue.
// Still limits it: latency (counters: ALU 42 % busy, tensor cores 26 %): products and lists take
// turns, and a warpgroup waits for its slowest warp. With few
// points, the lists.
__global__ void __launch_bounds__(tf32::THREADS, 1)
    list_best_wgmma(const __grid_constant__ tf32::Maps maps,
                    const __grid_constant__ course::Operands operands,
                    const __grid_constant__ course::Distance distance, const float sign,
                    const __grid_constant__ RowLists lists) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& ring = reinterpret_cast<Shared*>(memory)->ring;
    auto& rows = reinterpret_cast<Shared*>(memory)->rows;
    const EqualShares& tiles = lists.pieces.tiles;
    const unsigned first = tiles.first();
    const unsigned last = tiles.last();
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(operands.k(), tf32::BK));
    start_rows(rows, tiles);
    ring.init();
    const tf32::Lane lane;
    if (lane.consumer == tf32::CONSUMERS) {
        tf32::give_registers();
        const int count = static_cast<int>(last - first + 1);
        return tf32::produce(ring, maps, count * HALVES * steps, [&](int step) {
            const int half = step / steps;
            const course::Tile tile = tiles.at(first + half / HALVES);
            return tf32::StepCoords{static_cast<int>(tile.col) + half % HALVES * POINTS,
                                    static_cast<int>(tile.row), step % steps * tf32::BK};
        });
    }
    tf32::take_registers();
    const WarpLists<RowsOfWarp> warp{lists, rows, {lane}};
    int step = 0;
#pragma unroll 1
    for (unsigned i = first; i <= last; ++i) {
        const course::Tile tile = tiles.at(i);
        const unsigned before = min(i % tiles.across, i - first);  // tiles of this row that are done
        if (is_time_for_bounds(before)) warp.read(tile);
        bool is_full = false;
#pragma unroll 1
        for (int half = 0; half < HALVES; ++half) {
            tf32::Sums sums = {};
#pragma unroll 1
            for (int k = 0; k < steps; ++k)
                tf32::consume(ring, step++, lane, sums);
            const LaneCoords at{lane, {tile.product, tile.row, tile.col + std::size_t(half) * POINTS}};
            float values[2][OF_LANE];
            float zero = 0;  // NaN when one of the values is not finite
#pragma unroll
            for (int j = 0; j < OF_LANE * 2; ++j) {
                values[j % 2][j / 2] = tf32::result(sums, j / 2, j % 2);
                zero += 0 * values[j % 2][j / 2];
            }
            if (zero != 0) repair(operands, at, values);
            is_full |= warp.append_half(distance, sign, at, values);
        }
        warp.end_tile(tile, before, is_full, i == last);
    }
}

inline void launch_wgmma(const tf32::Maps& maps, const course::Operands& operands,
                         const course::Distance& distance, float sign, const RowLists& lists,
                         cudaStream_t stream) {
    const course::ClusterLaunch how{
        .threads = tf32::THREADS, .shared = sizeof(Shared), .cluster = 1, .persistent = false};
    how.start(list_best_wgmma, lists.pieces.tiles.blocks, stream, maps, operands, distance, sign, lists);
}

}  // namespace day48

// Day 21, short rows: with a warp for each, most lanes would have no column.
//
//   version          what is new                              what limits it
//   lanes_per_row    several rows share a warp                packs: a row of 5 columns has none that is whole
//   rows_in_shared   rows are copied without regard to where  reads and writes of shared memory
//                    they start, and taken apart there
//
//   ./course run day21 --size 131072x33
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"
#include "softmax_rows.cuh"
#include "softmax_rows.hpp"

namespace day21 {

// The maximum or the sum of kLanes adjacent lanes, a power of two, in each of them.
template <int kLanes, class Operator>
__device__ float reduce_lanes(float x, Operator op) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
        x = op(x, __shfl_xor_sync(course::kWholeWarp, x, distance));
    return x;
}

constexpr int kRowsOfGroup = 2;

// Idea: kLanes lanes keep a row, so a warp has 32 / kLanes rows at a time. Each group of lanes has
// kRowsOfGroup rows, and loads both before it uses the first.
// Cost removed: idle lanes. For rows of 8 columns a warp per row has only 2 of 32 lanes active.
// Still limits it: memory bandwidth, where rows consist of whole packs. Otherwise a load for each
// column.
template <Output kOutput, bool kWhole, int kLanes, int kPacks>
__global__ void __launch_bounds__(kRowThreads)
    lanes_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step, std::size_t rows,
                  int cols) {
    constexpr int kGroups = kRowThreads / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    const std::size_t first =
        static_cast<std::size_t>(blockIdx.x) * kGroups * kRowsOfGroup + threadIdx.x / kLanes;
    const auto row_of = [&](int r) {
        const std::size_t row = first + static_cast<std::size_t>(r) * kGroups;
        return Slice<kWhole>(in + row * in_step, out + row * out_step, row < rows ? cols : 0);
    };
    Pack packs[kRowsOfGroup][kPacks];
#pragma unroll
    for (int r = 0; r < kRowsOfGroup; ++r)
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            packs[r][p] = load_pack(row_of(r), p * kLanes + lane);
#pragma unroll
    for (int r = 0; r < kRowsOfGroup; ++r) {
        const float max = reduce_lanes<kLanes>(max_of(packs[r]), course::Max{});
        const float sum = reduce_lanes<kLanes>(exponentiate<kOutput>(packs[r], max), course::Sum{});
        const float factor = 1 / sum;
        const float log_of_sum = logf(sum);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            for (float& x : packs[r][p].value)
                x = kOutput == Output::kSoftmax ? x * factor : (x - max) - log_of_sum;
            store_pack(row_of(r), p * kLanes + lane, packs[r][p]);
        }
    }
}

constexpr int kTileWarps = 2;  // of a block
constexpr int kTileThreads = kTileWarps * course::kWarpSize;
constexpr int kTile = 512;  // elements that a warp copies at a time, about

// Floats of shared memory for `elements` elements that start at any address.
constexpr __host__ __device__ int tile_size(int elements) {
    return (elements + 2 * kWidth - 1) / kWidth * kWidth;
}

// Idea: where rows follow each other without a gap, `rows_of_warp` rows are contiguous in memory. A
// warp copies them to shared memory in whole packs, and separates the rows there. kLanes lanes have
// a row: the largest power of two up to 32 that divides `cols`. Then cols / kLanes is odd, or a row
// has all lanes, and the 32 lanes read 32 different banks: lane l of row r reads word kLanes (r
// cols / kLanes + i) + l.
// Cost removed: loads and stores of single columns.
// Still limits it: each element passes through shared memory three times.
//
// kOwn: the columns of a row that a lane has, if there are so few that the overhead of a loop would
// dominate; otherwise 0.
template <Output kOutput, int kLanes, int kOwn>
__global__ void __launch_bounds__(kTileThreads)
    rows_in_shared(const float* in, float* out, std::size_t rows, int cols, int rows_of_warp) {
    extern __shared__ float4 memory[];
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const std::size_t first_row = (static_cast<std::size_t>(blockIdx.x) * kTileWarps + warp) * rows_of_warp;
    if (first_row >= rows) return;  // the whole warp
    const int count =
        static_cast<int>(::min(static_cast<std::size_t>(rows_of_warp), rows - first_row)) * cols;
    const Slice<false> piece(in + first_row * cols, out + first_row * cols, count);

    // The rows in shared memory, placed so that their whole packs are 16-byte aligned, too.
    float* const tile = reinterpret_cast<float*>(memory) + warp * tile_size(rows_of_warp * cols) +
                        (kWidth - piece.head) % kWidth;
    float* const packs = tile + piece.head;
    for (int p = lane; p < piece.whole; p += course::kWarpSize)
        course::ptx::cp_async_16(packs + p * kWidth, piece.in + p * kWidth);
    for (int p = piece.whole + lane; p < piece.packs; p += course::kWarpSize)
        piece.for_edges(p, [&](int, std::ptrdiff_t offset) { packs[offset] = piece.in[offset]; });
    course::ptx::cp_async_commit();
    course::ptx::cp_async_wait<0>();
    __syncwarp();

    const int row_cols = kOwn > 0 ? kOwn * kLanes : cols;
    for (int row = 0; row < count; row += course::kWarpSize / kLanes * row_cols) {
        const int begin = row + lane / kLanes * row_cols;  // of this lane's row
        const bool here = begin < count;                   // the last rows of the warp may be missing
        float* const x = tile + begin + lane % kLanes;
        float max = -INFINITY;
#pragma unroll 4
        for (int i = 0; here && i < row_cols; i += kLanes)
            max = fmaxf(max, x[i]);
        max = reduce_lanes<kLanes>(max, course::Max{});
        float sum = 0;
#pragma unroll 4
        for (int i = 0; here && i < row_cols; i += kLanes) {
            const float e = exponential(x[i], max);
            sum += e;
            if (kOutput == Output::kSoftmax) x[i] = e;
        }
        sum = reduce_lanes<kLanes>(sum, course::Sum{});
        const float factor = 1 / sum;
        const float log_of_sum = logf(sum);
#pragma unroll 4
        for (int i = 0; here && i < row_cols; i += kLanes)
            x[i] = kOutput == Output::kSoftmax ? x[i] * factor : (x[i] - max) - log_of_sum;
    }
    __syncwarp();

    for (int p = lane; p < piece.whole; p += course::kWarpSize)
        store_pack(piece, p, Pack::load(packs + p * kWidth));
    for (int p = piece.whole + lane; p < piece.packs; p += course::kWarpSize)
        piece.for_edges(p, [&](int, std::ptrdiff_t offset) { __stcs(piece.out + offset, packs[offset]); });
}

}  // namespace day21

// Day 21, beyond: short rows in shared memory.
//
//   version          what is new                              what limits it
//   rows_in_shared   rows are copied without regard to where  L2 (rows of 128 columns)
//                    they start, and taken apart there
//
//   ./course run day21 --size 131072x33
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"
#include "softmax_rows.cuh"

namespace day21 {

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
// Still limits it: with rows of 128 columns L2 (counters: 77 % busy); but each element passes
// through shared memory three times, which is 56 % busy, and so are issue slots (70 %).
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

// Rows without gaps between them: gaps would be copied, too.
template <Output kOutput>
void launch_rows_in_shared(const float* in, float* out, std::size_t rows, int cols, cudaStream_t stream) {
    const auto launch = [&]<int kLanes, int kOwn = 0>() {
        constexpr int kRowsAtOnce = course::kWarpSize / kLanes;
        const int rows_of_warp = std::max(1, kTile / (cols * kRowsAtOnce)) * kRowsAtOnce;
        const std::size_t shared = sizeof(float) * kTileWarps * tile_size(rows_of_warp * cols);
        const auto kernel = rows_in_shared<kOutput, kLanes, kOwn>;
        course::allow_shared_bytes(kernel, shared);
        const unsigned blocks = course::blocks_for(rows, kTileWarps * rows_of_warp);
        kernel<<<blocks, kTileThreads, shared, stream>>>(in, out, rows, cols, rows_of_warp);
    };
    switch (cols) {
        case 1:
            return launch.template operator()<1, 1>();
        case 2:
            return launch.template operator()<2, 1>();
        case 3:
            return launch.template operator()<1, 3>();
        case 6:
            return launch.template operator()<2, 3>();
    }
    switch (std::min(cols & -cols, course::kWarpSize)) {  // the largest power of two that divides cols
        case 1:
            return launch.template operator()<1>();
        case 2:
            return launch.template operator()<2>();
        case 4:
            return launch.template operator()<4>();
        case 8:
            return launch.template operator()<8>();
        case 16:
            return launch.template operator()<16>();
        default:
            return launch.template operator()<32>();
    }
}

}  // namespace day21

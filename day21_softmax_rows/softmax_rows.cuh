// Day 21: softmax of every row of a matrix.
//
// A row is read from memory once, stays in registers while its maximum and its sum are found, and
// is written once. The versions differ in which threads share a row:
//
//   version           a row is shared by            columns           threads exchange results
//   warp_per_row      32 threads                    up to 1024        by shuffles
//   block_per_row     64 to 1024 threads            up to 32768       in shared memory
//   lanes_per_row     1 to 16 threads               up to 192         by shuffles
//
// row_packs.cuh loads and stores the packs of a row, wherever it starts. Rows in shared memory, and
// rows that no block can keep, are in beyond/.
//
//   ./course run day21 --size 4096x1024
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>

#include "common/device/block_reduce.cuh"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "max_sum.hpp"
#include "row_packs.cuh"

namespace day21 {

// --- A warp per row ------------------------------------------------------------------------------

// exp(x - shift), as a power of two (day 20).
__device__ inline float exponential(float x, float shift) {
    constexpr float kLog2OfE = 1.44269504f;
    return exp2f((x - shift) * kLog2OfE);
}

constexpr int kWarpsPerBlock = 8;
constexpr int kRowThreads = kWarpsPerBlock * course::kWarpSize;

// Idea: a warp keeps a row in registers. Lane l has packs l, l + 32, l + 64, ... of the row.
// Cost removed: every read except the first; all barriers.
// Still limits it: memory bandwidth; with 65,536 rows of 128 columns, which fit into its cache, L2
// (counters: 85 % busy, DRAM 51 %). 32 values in each of 32 lanes are 1024 columns.
//
// kValues: values per lane, enough for the row's packs. kOutput: log-softmax needs the values
// themselves again, softmax only their exponentials. kWhole: all rows consist of whole packs, so
// pack p is columns 4 p to 4 p + 3 (row_packs.cuh has the other case). Row r of a matrix starts r *
// step elements after the first.
template <Output kOutput, bool kWhole, int kValues>
__global__ void __launch_bounds__(kRowThreads)
    warp_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step, std::size_t rows,
                 int cols) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + warp;
    if (index >= rows) return;  // the whole warp
    const Slice<kWhole> row(in + index * in_step, out + index * out_step, cols);

    constexpr int kPacks = kValues / kWidth;
    Pack packs[kPacks];  // this lane's part of the row
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        packs[p] = load_pack(row, p * course::kWarpSize + lane);

    float max = -INFINITY;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        for (const float x : packs[p].value)
            max = fmaxf(max, x);
    max = course::warp_reduce(max, course::Max{});

    float sum = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        for (float& x : packs[p].value) {
            const float e = exponential(x, max);
            sum += e;
            if (kOutput == Output::kSoftmax) x = e;
        }
    }
    sum = course::warp_reduce(sum, course::Sum{});

    const float factor = 1 / sum;
    const float log_of_sum = logf(sum);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        for (float& x : packs[p].value)
            x = kOutput == Output::kSoftmax ? x * factor : (x - max) - log_of_sum;
        store_pack(row, p * course::kWarpSize + lane, packs[p]);
    }
}

constexpr std::size_t kWarpCols = 1024;

template <Output kOutput, bool kWhole>
void launch_warp_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step,
                         std::size_t rows, int cols, cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(rows, kWarpsPerBlock);
    const auto launch = [&](auto kernel) {
        kernel<<<blocks, kRowThreads, 0, stream>>>(in, in_step, out, out_step, rows, cols);
    };
    const int values = course::ceil_div(cols, course::kWarpSize);  // of a lane
    if (values <= 4) {
        launch(warp_per_row<kOutput, kWhole, 4>);
    } else if (values <= 8) {
        launch(warp_per_row<kOutput, kWhole, 8>);
    } else if (values <= 16) {
        launch(warp_per_row<kOutput, kWhole, 16>);
    } else if (values <= 24) {
        launch(warp_per_row<kOutput, kWhole, 24>);
    } else {
        launch(warp_per_row<kOutput, kWhole, 32>);
    }
}

// --- The same loops as functions, for the versions of more than a warp ---------------------------
//
// kThreads threads share the columns of a slice. Adjacent threads have adjacent packs, here with
// kThreads = 256:
//
//     pack of the slice   0   1   ...  255   256   257   ...
//     thread              0   1   ...  255     0     1   ...
//     its register        0   0   ...    0     1     1   ...

template <int kThreads, int kPacks, bool kWhole>
__device__ void load(Pack (&packs)[kPacks], const Slice<kWhole>& row) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        packs[p] = load_pack(row, p * kThreads + static_cast<int>(threadIdx.x));
}

template <int kThreads, int kPacks, bool kWhole>
__device__ void store(const Pack (&packs)[kPacks], const Slice<kWhole>& row) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        store_pack(row, p * kThreads + static_cast<int>(threadIdx.x), packs[p]);
}

template <int kPacks>
__device__ float max_of(const Pack (&packs)[kPacks]) {
    float max = -INFINITY;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        for (const float x : packs[p].value)
            max = fmaxf(max, x);
    return max;
}

// The sum of exp(x - shift). For softmax the exponentials replace the values.
template <Output kOutput, int kPacks>
__device__ float exponentiate(Pack (&packs)[kPacks], float shift) {
    float sum = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        for (float& x : packs[p].value) {
            const float e = exponential(x, shift);
            sum += e;
            if (kOutput == Output::kSoftmax) x = e;
        }
    }
    return sum;
}

// --- A block per row -----------------------------------------------------------------------------

// The value to subtract where the maximum of a part is `max`. If a part is -Inf throughout, -Inf -
// (-Inf) would be NaN and spoil the sum of the row (day 20).
__device__ inline float shift_of(float max) {
    return max == -INFINITY ? 0.0f : max;
}

// The packs of a warp as one part of the row: its maximum and the sum of exp(x - maximum). For
// softmax exp(x - maximum of the warp) replaces each value x.
template <Output kOutput, int kPacks>
__device__ MaxSum part_of_warp(Pack (&packs)[kPacks]) {
    const float max = course::warp_reduce(max_of(packs), course::Max{});
    return {max, course::warp_reduce(exponentiate<kOutput>(packs, shift_of(max)), course::Sum{})};
}

// Merges the parts of the 32 lanes, with the result in every lane: each sum is rescaled to the
// common maximum.
__device__ inline MaxSum warp_merge(MaxSum part) {
    const float max = course::warp_reduce(part.max, course::Max{});
    return {max, course::warp_reduce(part.sum * exponential(part.max, shift_of(max)), course::Sum{})};
}

// A part without elements: merging it with another part changes nothing.
__device__ inline MaxSum nothing() {
    return {-INFINITY, 0};
}

// Merges the parts of all warps of a block, with the result in every thread. `part` is that of the
// whole warp. All threads call it. Two calls need a barrier between them, because the second call
// overwrites of_warp.
template <int kThreads>
__device__ MaxSum block_merge(MaxSum part) {
    constexpr int kWarps = kThreads / course::kWarpSize;
    static_assert(kThreads % course::kWarpSize == 0 && kWarps <= course::kWarpSize,
                  "block_merge: a block consists of whole warps, at most one for each lane");
    __shared__ MaxSum of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    if (lane == 0) of_warp[static_cast<int>(threadIdx.x) / course::kWarpSize] = part;
    __syncthreads();
    return warp_merge(lane < kWarps ? of_warp[lane] : nothing());
}

// After part_of_warp(): the results, from the maximum of the warp's part and from the whole row.
template <Output kOutput, int kPacks>
__device__ void finish(Pack (&packs)[kPacks], float part_max, MaxSum row) {
    const float shift = shift_of(row.max);
    const float factor = exponential(part_max, shift) * (1 / row.sum);  // exp(x - part_max) to the result
    const float log_of_sum = logf(row.sum);
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        for (float& x : packs[p].value)
            x = kOutput == Output::kSoftmax ? x * factor : (x - shift) - log_of_sum;
}

// Idea: as warp_per_row, with a block for a row. Each warp finds the maximum and the sum of its
// part; then the warps exchange these pairs in shared memory, with a single barrier.
// Cost removed: the limit of 1024 columns.
// Still limits it: memory bandwidth (counters at 8192 x 8192: DRAM 82 % busy). From 16385 columns
// on, a block takes more than half of an SM's registers (41 or 56 for each of its 1024 threads;
// nvcc 13.0, sm_90). So no other block is resident that could use memory while this one waits at
// its barrier.
template <Output kOutput, bool kWhole, int kThreads, int kValues>
__global__ void __launch_bounds__(kThreads)
    block_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step, int cols) {
    // Called twice, so that the address of the result takes no registers before it is needed.
    const auto row = [&] {
        return Slice<kWhole>(in + blockIdx.x * in_step, out + blockIdx.x * out_step, cols);
    };
    Pack packs[kValues / kWidth];
    load<kThreads>(packs, row());
    const MaxSum part = part_of_warp<kOutput>(packs);
    const MaxSum whole_row = block_merge<kThreads>(part);
    finish<kOutput>(packs, part.max, whole_row);
    store<kThreads>(packs, row());
}

constexpr std::size_t kBlockCols = 32768;

template <Output kOutput, bool kWhole>
void launch_block_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step,
                          std::size_t rows, int cols, cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(rows, 1);
    const auto launch = [&](auto kernel, int threads) {
        kernel<<<blocks, threads, 0, stream>>>(in, in_step, out, out_step, cols);
    };
    if (cols <= 1024) {
        launch(block_per_row<kOutput, kWhole, 64, 16>, 64);
    } else if (cols <= 2048) {
        launch(block_per_row<kOutput, kWhole, 128, 16>, 128);
    } else if (cols <= 4096) {
        launch(block_per_row<kOutput, kWhole, 256, 16>, 256);
    } else if (cols <= 8192) {
        launch(block_per_row<kOutput, kWhole, 512, 16>, 512);
    } else if (cols <= 16384) {
        launch(block_per_row<kOutput, kWhole, 1024, 16>, 1024);
    } else if (cols <= 24576) {
        launch(block_per_row<kOutput, kWhole, 1024, 24>, 1024);
    } else {
        launch(block_per_row<kOutput, kWhole, 1024, 32>, 1024);
    }
}

// --- A few lanes per row -------------------------------------------------------------------------

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
// Still limits it: memory bandwidth, or L2, as above, where rows consist of whole packs. Otherwise
// a load for each column.
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

constexpr std::size_t kShortCols = 192;

template <Output kOutput, bool kWhole>
void launch_lanes_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step,
                          std::size_t rows, int cols, cudaStream_t stream) {
    const auto launch = [&]<int kLanes, int kPacks>() {
        const unsigned blocks = course::blocks_for(rows, kRowThreads / kLanes * kRowsOfGroup);
        lanes_per_row<kOutput, kWhole, kLanes, kPacks>
            <<<blocks, kRowThreads, 0, stream>>>(in, in_step, out, out_step, rows, cols);
    };
    const int packs = course::ceil_div(cols, kWidth);
    if (packs <= 1) {
        launch.template operator()<1, 1>();
    } else if (packs <= 2) {
        launch.template operator()<2, 1>();
    } else if (packs <= 4) {
        launch.template operator()<4, 1>();
    } else if (packs <= 8) {
        launch.template operator()<8, 1>();
    } else if (packs <= 16) {
        launch.template operator()<16, 1>();
    } else if (packs <= 32) {
        launch.template operator()<16, 2>();
    } else {
        launch.template operator()<16, 3>();
    }
}

}  // namespace day21

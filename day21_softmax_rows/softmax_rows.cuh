// Day 21: softmax of every row of a matrix.
//
// A row is read from memory once, stays in registers while its maximum and its sum are found, and
// is written once. The versions differ in which threads share a row:
//
//   version           a row is shared by            columns           threads exchange results
//   warp_per_row      32 threads                    up to 1024        by shuffles
//   block_per_row     64 to 1024 threads            up to 32768       in shared memory
//   cluster_per_row   2 to 8 blocks of a cluster    up to 262144      in each other's shared memory
//   whole_gpu         a team of blocks              some millions     in global memory, at a grid barrier
//   two_pass          blocks, one per part (twice)  any               between two kernels
//
// The first two are here, the others in long_rows.cuh.   ./course run day21 --size 4096x1024
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>

#include "common/device/block_reduce.cuh"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "softmax_rows.hpp"

namespace day21 {

// exp(x - shift), as a power of two (day 20).
__device__ inline float exponential(float x, float shift) {
    constexpr float kLog2OfE = 1.44269504f;
    return exp2f((x - shift) * kLog2OfE);
}

// A streaming store: results are evicted from the L2 cache first, so the input stays longer. The
// intrinsic guarantees one 16-byte store; the compiler may split a plain one.
template <int kWidth>
__device__ void store_streaming(const course::Pack<float, kWidth>& pack, float* address) {
    const float* const x = pack.value;
    if constexpr (kWidth == 4) {
        __stcs(reinterpret_cast<float4*>(address), make_float4(x[0], x[1], x[2], x[3]));
    } else {
        __stcs(address, x[0]);
    }
}

constexpr int kWarpsPerBlock = 8;
constexpr int kRowThreads = kWarpsPerBlock * course::kWarpSize;

// Idea: a warp keeps a row in registers. Lane l has packs l, l + 32, l + 64, ... of the row.
// Cost removed: every read except the first; all barriers.
// Still limits it: memory. 32 values in each of 32 lanes are 1024 columns.
//
// kValues: values per lane, enough for `cols`. kWidth: 4 where every row consists of whole packs
// aligned to 16 bytes, otherwise 1. kOutput: log-softmax needs the values themselves again, softmax
// only their exponentials. Row r of a matrix begins r * step elements after the first.
template <Output kOutput, int kWidth, int kValues>
__global__ void __launch_bounds__(kRowThreads)
    warp_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step, std::size_t rows,
                 int cols) {
    using Pack = course::Pack<float, kWidth>;
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const std::size_t row = static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + warp;
    if (row >= rows) return;  // the whole warp
    in += row * in_step;
    out += row * out_step;

    constexpr int kPacks = kValues / kWidth;
    Pack packs[kPacks];  // this lane's part of the row
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const int col = (p * course::kWarpSize + lane) * kWidth;
        if (col < cols) {
            packs[p] = Pack::load(in + col);
        } else {  // -Inf changes no maximum and adds 0 to the sum
            for (float& x : packs[p].value)
                x = -INFINITY;
        }
    }

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
        const int col = (p * course::kWarpSize + lane) * kWidth;
        if (col < cols) store_streaming(packs[p], out + col);
    }
}

// --- The same loops as functions, for the versions below ---------------------------------------------------------------
//
// kThreads threads share `count` columns that begin at `row`. Neighbouring threads have
// neighbouring packs, here with kWidth = 4 and kThreads = 256:
//
//     columns   0..3   4..7   ...  1020..1023   1024..1027   ...
//     thread      0      1    ...     255            0       ...
//     pack        0      0    ...       0            1       ...

template <int kThreads, int kWidth, int kPacks>
__device__ void load(course::Pack<float, kWidth> (&packs)[kPacks], const float* row, int count) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const int col = (p * kThreads + static_cast<int>(threadIdx.x)) * kWidth;
        if (col < count) {
            packs[p] = course::Pack<float, kWidth>::load(row + col);
        } else {
            for (float& x : packs[p].value)
                x = -INFINITY;
        }
    }
}

template <int kThreads, int kWidth, int kPacks>
__device__ void store(const course::Pack<float, kWidth> (&packs)[kPacks], float* row, int count) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        const int col = (p * kThreads + static_cast<int>(threadIdx.x)) * kWidth;
        if (col < count) store_streaming(packs[p], row + col);
    }
}

template <int kWidth, int kPacks>
__device__ float max_of(const course::Pack<float, kWidth> (&packs)[kPacks]) {
    float max = -INFINITY;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        for (const float x : packs[p].value)
            max = fmaxf(max, x);
    return max;
}

// The sum of exp(x - shift). For softmax the exponentials replace the values.
template <Output kOutput, int kWidth, int kPacks>
__device__ float exponentiate(course::Pack<float, kWidth> (&packs)[kPacks], float shift) {
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

// --- A block per row ---------------------------------------------------------------------------------------------------

// What is subtracted where the maximum of a part is `max`. If a part is -Inf throughout, -Inf -
// (-Inf) would be NaN and spoil the sum of the row (day 20).
__device__ inline float shift_of(float max) {
    return max == -INFINITY ? 0.0f : max;
}

// The packs of a warp as one part of the row: its maximum and the sum of exp(x - maximum). For
// softmax exp(x - maximum of the warp) replaces each value x.
template <Output kOutput, int kWidth, int kPacks>
__device__ MaxSum part_of_warp(course::Pack<float, kWidth> (&packs)[kPacks]) {
    const float max = course::warp_reduce(max_of(packs), course::Max{});
    return {max, course::warp_reduce(exponentiate<kOutput>(packs, shift_of(max)), course::Sum{})};
}

// The parts of the 32 lanes become one, in every lane: each sum is rescaled to the common maximum.
__device__ inline MaxSum warp_merge(MaxSum part) {
    const float max = course::warp_reduce(part.max, course::Max{});
    return {max, course::warp_reduce(part.sum * exponential(part.max, shift_of(max)), course::Sum{})};
}

// A part without elements: merging it with another part changes nothing.
__device__ inline MaxSum nothing() {
    return {-INFINITY, 0};
}

// The parts of all warps of a block become one, in every thread. `part` is that of the whole warp.
// All threads call it. Two calls need a barrier between them: the second call overwrites of_warp.
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
template <Output kOutput, int kWidth, int kPacks>
__device__ void finish(course::Pack<float, kWidth> (&packs)[kPacks], float part_max, MaxSum row) {
    const float shift = shift_of(row.max);
    const float factor = exponential(part_max, shift) * (1 / row.sum);  // exp(x - part_max) to the result
    const float log_of_sum = logf(row.sum);
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
        for (float& x : packs[p].value)
            x = kOutput == Output::kSoftmax ? x * factor : (x - shift) - log_of_sum;
}

// Idea: the same with a block for a row. Each warp finds maximum and sum of its part; then the
// warps exchange these pairs in shared memory, with a single barrier.
// Cost removed: the limit of 1024 columns.
// Still limits it: at 32768 columns one row fills the registers of an SM. No other block is
// resident that could use memory while this one waits at its barrier.
template <Output kOutput, int kWidth, int kThreads, int kValues>
__global__ void __launch_bounds__(kThreads)
    block_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step, int cols) {
    const std::size_t row = blockIdx.x;
    course::Pack<float, kWidth> packs[kValues / kWidth];
    load<kThreads>(packs, in + row * in_step, cols);
    const MaxSum part = part_of_warp<kOutput>(packs);
    const MaxSum whole_row = block_merge<kThreads>(part);
    finish<kOutput>(packs, part.max, whole_row);
    store<kThreads>(packs, out + row * out_step, cols);
}

}  // namespace day21

// Day 48: the k best elements of each row of a matrix product: nearest neighbours, for example.
// PMPP chapters 6 and 10 (4th and 5th edition).
//
//   version           what is new                               what limits it
//   k_minima          all distances; k minima of each row       a row is read k times
//   unfused           all distances; selection in one pass      multiply-adds; 8 bytes per element
//
// Another kernel has written the product, here a matrix of distances. These kernels select from its
// rows, a block for each row. Each is followed by its launch. beyond/ selects in the product's
// epilogue (day 45), and writes no distances.
//
// A threshold is called `bound` in the code. Elements that are better become candidates. In random
// order, column j is one of the k best so far with probability k / j, so a list of candidates grows
// ever more slowly. Of 62,500 columns with k = 128 about 920 would become candidates with an exact
// threshold, but about 1,900 do, because the threshold is lowered only when a list is full. Sorted
// data can make every element a candidate. The result is still right, but the kernel is slow.
//
// Read keys.cuh first, and thresholds.cuh before the second kernel.
//
//   ./course run day48 --only unfused --size 1024x1000000x64x128
//   ./course run day48 --program                                     program.cu: from main() to the result
//   ./course inspect day48 --only unfused --size 512x512x64
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "keys.cuh"
#include "thresholds.cuh"

namespace day48 {

constexpr int kSelectThreads = 256;

// The matrix of distances, which another kernel has written. rows[row][i] is the key of an
// element: its value and its column in one integer, the lower the better (keys.cuh).
struct RowsOfDistances {
    const float* distances;
    std::size_t cols;
    float sign;

    struct Row {
        const float* distances;
        float sign;
        std::size_t count;
        __device__ Key operator[](std::size_t i) const {
            return key_of(sign * distances[i], static_cast<unsigned>(i));
        }
    };
    __device__ Row operator[](std::size_t row) const { return {distances + row * cols, sign, cols}; }
};

// Idea: a block for each row, which another kernel has written. The first key of the result is the
// least one, each of the others the least one greater than the key before it.
// Cost removed: none. This is a minimum (day 15), k times.
// Still limits it: memory and ALU (counters: 69 % and 71 % busy). The row is read k times.
__global__ void __launch_bounds__(kSelectThreads)
    select_k_minima(const RowsOfDistances rows, unsigned k, float sign, float* values,
                    std::uint32_t* indices) {
    constexpr int WARPS = kSelectThreads / course::kWarpSize;
    __shared__ Key of_warp[WARPS];
    const RowsOfDistances::Row row = rows[blockIdx.x];
    const auto smaller = [](Key a, Key b) { return min(a, b); };
    Key found = 0;  // less than all keys
    for (unsigned i = 0; i < k; ++i) {
        Key least = kNoKey;
        for (std::size_t col = threadIdx.x; col < row.count; col += kSelectThreads) {
            const Key key = row[col];
            if (key > found) least = min(least, key);
        }
        least = course::warp_reduce(least, smaller);
        if (threadIdx.x % course::kWarpSize == 0) of_warp[threadIdx.x / course::kWarpSize] = least;
        __syncthreads();
        found = of_warp[0];
        for (int warp = 1; warp < WARPS; ++warp)
            found = min(found, of_warp[warp]);
        if (threadIdx.x == 0) {
            values[std::size_t{blockIdx.x} * k + i] = sign * value_of(found) + 0.0f;  // no -0
            indices[std::size_t{blockIdx.x} * k + i] = col_of(found);
        }
        __syncthreads();  // all reads are done before the next pass overwrites of_warp
    }
}

// `count` rows of distances, `rows.cols` in each: a block for each row.
inline void launch_k_minima(const RowsOfDistances& rows, std::size_t count, unsigned k, float* values,
                            std::uint32_t* indices, cudaStream_t stream) {
    select_k_minima<<<course::blocks_for(count, 1), kSelectThreads, 0, stream>>>(rows, k, rows.sign, values,
                                                                                 indices);
}

// --- Select in one pass --------------------------------------------------------------------------

constexpr unsigned kMostSelected = 1024;  // the largest k

// From thresholds.cuh: find_bound(list, count, least, most) returns a threshold that between
// `least` and `most` keys of a list do not exceed; copy_up_to(bound, list, count, to) keeps these
// keys.

// A bitonic sort of `count` keys, a power of two, by all threads of the block. Each pass over
// `width` merges pairs of sequences, one ascending, one descending, into sequences of `width`.
__device__ inline void sort(Key* keys, unsigned count) {
    for (unsigned width = 2; width <= count; width *= 2) {
        for (unsigned distance = width / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < count / 2; i += kSelectThreads) {
                const unsigned a = i / distance * distance * 2 + i % distance;
                const unsigned b = a + distance;
                if ((keys[a] > keys[b]) == ((a & width) == 0)) {
                    const Key key = keys[a];
                    keys[a] = keys[b];
                    keys[b] = key;
                }
            }
        }
    }
    __syncthreads();
}

// Idea: a block for each row lists keys below a threshold in shared memory. When the list is full,
// one warp lowers the threshold and drops the rest. At the end about k keys are left, and they are
// sorted.
// Cost removed: k - 1 of k passes over the row.
// Still limits it: latency. Warps wait for loads 45 % of the time, at barriers 21 % (counters:
// memory 46 % busy). All distances were written by one kernel and are read by this one. If rows are
// short, the single warp that shortens the list.
//
// Rows: RowsOfDistances, or RowsOfPieces for the versions in beyond/.
template <class Rows>
__global__ void __launch_bounds__(kSelectThreads)
    select_best(const __grid_constant__ Rows rows, unsigned k, float sign, float* values,
                std::uint32_t* indices) {
    constexpr unsigned EACH = 4;                      // keys of a thread in one step
    constexpr unsigned STEP = EACH * kSelectThreads;  // keys of the block in one step
    constexpr unsigned ROOM = 2 * kMostSelected + 2 * STEP;
    static_assert(kMostSelected + kMostSelected / 8 <= ROOM - STEP,
                  "select_best: a shortened list is not full");
    __shared__ Key list[ROOM];
    __shared__ unsigned listed;
    __shared__ Key bound;
    const bool is_first_warp = threadIdx.x < course::kWarpSize;
    const auto row = rows[blockIdx.x];
    if (threadIdx.x == 0) {
        listed = 0;
        bound = kNoKey;
    }
    __syncthreads();
    for (std::size_t begin = 0; begin < row.count; begin += STEP) {
        bool is_full = false;
#pragma unroll
        for (unsigned j = 0; j < EACH; ++j) {
            const std::size_t i = begin + j * kSelectThreads + threadIdx.x;
            const Key key = i < row.count ? row[i] : kNoKey;
            if (key >= bound) continue;
            const unsigned place = atomicAdd(&listed, 1u);
            list[place] = key;
            is_full |= place >= ROOM - STEP;
        }
        if (!__syncthreads_or(is_full)) continue;
        if (is_first_warp) {
            const unsigned count = listed;
            const Key better = find_bound(list, count, k, k + k / 8);
            const unsigned kept = copy_up_to(better, list, count, list);
            if (threadIdx.x == 0) {
                listed = kept;
                bound = better;
            }
        }
        __syncthreads();
    }
    unsigned sorted = 1;
    while (sorted < k)
        sorted *= 2;
    if (is_first_warp) {
        const unsigned count = listed;
        unsigned kept = count;
        if (count > k) kept = copy_up_to(find_bound(list, count, k, k), list, count, list);
        for (unsigned i = kept + threadIdx.x; i < sorted; i += course::kWarpSize)
            list[i] = kNoKey;
    }
    sort(list, sorted);
    for (unsigned i = threadIdx.x; i < k; i += kSelectThreads) {
        values[std::size_t{blockIdx.x} * k + i] = sign * value_of(list[i]) + 0.0f;  // no -0
        indices[std::size_t{blockIdx.x} * k + i] = col_of(list[i]);
    }
}

template <class Rows>
void launch_select_best(const Rows& rows, std::size_t count, unsigned k, float sign, float* values,
                        std::uint32_t* indices, cudaStream_t stream) {
    select_best<<<course::blocks_for(count, 1), kSelectThreads, 0, stream>>>(rows, k, sign, values, indices);
}

inline void launch_unfused(const RowsOfDistances& rows, std::size_t count, unsigned k, float* values,
                           std::uint32_t* indices, cudaStream_t stream) {
    launch_select_best(rows, count, k, rows.sign, values, indices, stream);
}

}  // namespace day48

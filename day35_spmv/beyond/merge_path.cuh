// Day 35, beyond: merge path. Every thread takes the same number of steps. Read segments.cuh and
// balanced.cuh first.
//
//   version     what is new                                            what limits it
//   csr_merge   rows and entries together are cut into equal pieces    L2, if columns are far apart
//
// A walk through a CSR matrix merges two sorted lists: the ends of the rows, and the numbers 0, 1,
// 2, ... of the entries. Each step takes either an entry (add its product) or the end of a row
// (write the sum). The path has rows + entries steps and can be cut anywhere: a binary search on
// the cut's diagonal finds its position in both lists. D. Merrill and M. Garland, "Merge-based
// parallel sparse matrix-vector multiplication", SC 2016.
//
//            entries 0 1 2 3 4 5           rows end at 2, 2, 6 (the second is empty)
//   end 2            e-e-|                  e: take an entry, to the right
//   end 2                |                  |: end of a row, down
//   end 6                e-e-e-e-|
#pragma once

#include <limits>

#include "balanced.cuh"
#include "segments.cuh"

namespace day35 {
// Internal linkage: with external linkage nvcc 13.0 generates 40 more instructions for the kernel.
namespace {

constexpr int kMergeWarps = kBlock / kWarpSize;
constexpr int kMergeSteps = 8;                    // of a thread
constexpr int kMergeTile = kBlock * kMergeSteps;  // of a block
// Packs of four entries that a thread may need, since a block's entries may start at any position.
constexpr int kMergePacks = kMergeSteps / kPack + 1;

// How many of the ends row_end(0) to row_end(rows - 1) a path has passed after `steps` steps; the
// other steps took entries.
template <class RowEnd, class Count>
__host__ __device__ Count rows_passed(const RowEnd& row_end, Count rows, Count entries, Count steps) {
    Count low = steps > entries ? steps - entries : 0;
    Count high = steps < rows ? steps : rows;
    while (low < high) {
        const Count middle = low + (high - low) / 2;
        if (row_end(middle) <= steps - middle - 1) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// sum_of_run over the whole block. `before` becomes the result of the previous thread, and 0 in the
// first.
__device__ float sum_of_run_in_block(Index key, float value, float* before) {
    __shared__ Index last_key[kMergeWarps];
    __shared__ float last_sum[kMergeWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    float sum = sum_of_run(key, value);
    if (lane == kWarpSize - 1) {
        last_key[warp] = key;
        last_sum[warp] = sum;
    }
    __syncthreads();
    Index open_key = kNoColumn;
    float open_sum = 0;
    for (int w = 0; w < warp; ++w) {
        open_sum = last_sum[w] + (last_key[w] == open_key ? open_sum : 0.0f);
        open_key = last_key[w];
    }
    if (key == open_key) sum += open_sum;
    const float previous = __shfl_up_sync(kWholeWarp, sum, 1);
    *before = lane == 0 ? open_sum : previous;
    return sum;
}

// Idea: block b takes the steps from b * kMergeTile on, each thread kMergeSteps of them. The thread
// in which a row ends writes it. If a row continues, a thread passes its partial sum to the thread
// in which that row ends; the block's last thread passes it to the next kernel.
// Cost removed: load imbalance between threads. One dense row among empty ones is as good as a
// band.
// Still limits it: L2 where columns are far apart (power law, counters: 87 % busy). The two
// searches and the scan over the block leave issue slots free (35 % busy), and the second kernel
// takes 7 of 89 us; but all rows pay for them, even if they have the same length.
template <class O>
__global__ void __launch_bounds__(kBlock)
    csr_merge_kernel(CsrView<O> a, Offset entries, const Index* tile_rows, float* carries, const float* x,
                     float* y) {
    alignas(16) __shared__ float products[kMergePacks * kBlock * kPack];
    __shared__ int row_ends[kMergeTile + 1];
    const Offset first_step = static_cast<Offset>(blockIdx.x) * kMergeTile;
    const Index first_row = tile_rows[blockIdx.x];
    const int rows = tile_rows[blockIdx.x + 1] - first_row;  // that end here
    const Offset begin = first_step - first_row;
    const auto steps = static_cast<int>(min(Offset{kMergeTile}, a.rows + entries - first_step));
    const Offset origin = begin / kPack * kPack;
    const float* const own = products + (begin - origin);

    stage_products<kBlock, kMergePacks>(a, x, begin, begin + steps - rows, products);
    for (int i = static_cast<int>(threadIdx.x); i < rows; i += kBlock)
        row_ends[i] = static_cast<int>(a.row_start[first_row + i + 1] - begin);
    // The row that continues in the next block does not end here.
    if (threadIdx.x == 0) row_ends[rows] = std::numeric_limits<int>::max();
    __syncthreads();

    int step = min(static_cast<int>(threadIdx.x) * kMergeSteps, steps);
    const int end = min(step + kMergeSteps, steps);
    int row = rows_passed([&](int i) { return row_ends[i]; }, rows, steps - rows, step);
    // The first row that ends in this thread: other threads may hold its start.
    int ended = kNoColumn;
    float ended_sum = 0;
    float sum = 0;
    for (; step < end; ++step) {
        const int entry = step - row;
        if (entry < row_ends[row]) {
            sum += own[entry];
            continue;
        }
        if (ended == kNoColumn) {
            ended = row;
            ended_sum = sum;
        } else {
            y[first_row + row] = sum;
        }
        sum = 0;
        ++row;
    }

    float before = 0;
    const float open = sum_of_run_in_block(row, sum, &before);
    if (ended != kNoColumn) y[first_row + ended] = ended_sum + before;
    if (threadIdx.x == kBlock - 1) carries[blockIdx.x] = open;
}

// `tile_rows`: the row in which each block starts, and the one in which the last block ends. No row
// continues after the last block, so its sum is not added.
template <class O>
void launch_csr_merge(const CsrView<O>& a, Offset entries, const Index* tile_rows, unsigned blocks,
                      float* carries, const float* x, float* y, cudaStream_t stream) {
    csr_merge_kernel<<<blocks, kBlock, 0, stream>>>(a, entries, tile_rows, carries, x, y);
    launch_add_segments(static_cast<Offset>(blocks) - 1, tile_rows + 1, Sums{carries}, y, stream);
}

}  // namespace
}  // namespace day35

// Day 35, beyond: segmented sums, for COO and for the hybrid.
//
//   version         what is new                                        what limits it
//   coo_segmented   a warp sums runs of one row, then adds them to y   L2; 12 bytes per entry
//   hybrid          ELL up to a width, COO for the rest of long rows   L2; two kernels        PMPP 14.5
#pragma once

#include <cstddef>

#include "spmv.cuh"

namespace day35 {

// A segmented scan: each lane gets the sum from the first lane of its run of equal keys up to
// itself. Equal keys are adjacent. All lanes of the warp call it.
__device__ inline float sum_of_run(Index key, float value) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
        const Index other_key = __shfl_up_sync(kWholeWarp, key, distance);
        const float other = __shfl_up_sync(kWholeWarp, value, distance);
        if (lane >= distance && other_key == key) value += other;
    }
    return value;
}

// A warp takes kSteps * 32 entries, so that it cuts few runs.
constexpr int kSteps = 8;

// The terms of the sum are a template parameter, Term. Here they are the products of a matrix and a
// vector.
struct Products {
    CooView a;
    const float* x;
    __device__ float operator()(Offset i) const { return a.values[i] * x[a.cols[i]]; }
};
// The partial sums that csr_merge stores for the rows that it cuts (merge_path.cuh).
struct Sums {
    const float* sums;
    __device__ float operator()(Offset i) const { return sums[i]; }
};

// Idea: entries are sorted by row, so a warp finds runs of one row among its 32 and sums each by a
// segmented scan. The run that reaches the last lane continues in the next 32.
// Cost removed: all atomics but one for each run.
// Still limits it: 12 bytes per entry from memory, or L2 where columns are far apart (power law,
// counters: L2 89 % busy, memory 32 %).
template <class Term>
__global__ void __launch_bounds__(kBlock)
    add_segments_kernel(Offset entries, const Index* rows, Term term, float* y) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const Offset first = global_thread() / kWarpSize * (kSteps * kWarpSize);
    // Row and sum of the run that continues from the last step, in every lane.
    Index open_row = kNoColumn;
    float open_sum = 0;
    for (Offset begin = first; begin < min(entries, first + kSteps * kWarpSize); begin += kWarpSize) {
        const Offset i = begin + lane;
        const Index row = i < entries ? rows[i] : kNoColumn;  // beyond the end: a run of its own
        float sum = sum_of_run(row, i < entries ? term(i) : 0.0f);

        const Index first_row = __shfl_sync(kWholeWarp, row, 0);
        if (row == open_row) sum += open_sum;
        if (lane == 0 && open_row != kNoColumn && first_row != open_row) atomicAdd(&y[open_row], open_sum);

        const Index next_row = __shfl_down_sync(kWholeWarp, row, 1);
        if (lane < kWarpSize - 1 && row != next_row && row != kNoColumn) atomicAdd(&y[row], sum);
        open_row = __shfl_sync(kWholeWarp, row, kWarpSize - 1);
        open_sum = __shfl_sync(kWholeWarp, sum, kWarpSize - 1);
    }
    if (lane == 0 && open_row != kNoColumn) atomicAdd(&y[open_row], open_sum);
}

// y[rows[i]] += term(i) for all entries.
template <class Term>
void launch_add_segments(Offset entries, const Index* rows, Term term, float* y, cudaStream_t stream) {
    if (entries == 0) return;
    const std::size_t warps = course::ceil_div<std::size_t>(entries, kSteps * kWarpSize);
    add_segments_kernel<<<course::blocks_for(warps * kWarpSize, kBlock), kBlock, 0, stream>>>(entries, rows,
                                                                                              term, y);
}

// y has `rows` elements.
inline void launch_coo_segmented(const CooView& a, Index rows, const float* x, float* y,
                                 cudaStream_t stream) {
    cudaMemsetAsync(y, 0, static_cast<std::size_t>(rows) * sizeof(float), stream);
    launch_add_segments(a.entries, a.rows, Products{a, x}, y, stream);
}

// --- Hybrid: ELL up to a width, COO for the rest of long rows ------------------------------------

// Idea: ELL for the first `width` entries of each row, and COO for the others. The first kernel
// writes y, the second one adds to it.
// Cost removed: most of ELL's padding: a long row pads no other.
// Still limits it: L2 where columns are far apart (power law, counters: 86 and 88 % busy in the two
// kernels); two kernels, and 12 bytes per entry in COO.
inline void launch_hybrid(const EllView& ell, const CooView& coo, const float* x, float* y,
                          cudaStream_t stream) {
    launch_ell(ell, x, y, stream);
    launch_add_segments(coo.entries, coo.rows, Products{coo, x}, y, stream);
}

}  // namespace day35

// Day 35, y = A x for a sparse matrix A.        PMPP chapter 14 (4th edition), 17 (5th edition)
//
//   version      what is new                                        what limits it
//   coo_atomic   a thread per entry adds its product to y           latency: an atomic per entry  14.2
//   csr_scalar   a thread per row, no atomics                       lanes load far apart          14.3
//   csr_vector   2 to 32 lanes per row, by the mean length          latency: 4 bytes per load; long rows
//   ell          rows filled up to the longest, stored by columns   one long row fills up all     14.4
//   jds          rows sorted by length: nothing to fill up          long rows; y out of order     14.6
//
// Each entry is loaded once for one multiplication and one addition, so the product is
// memory-bound: 8 bytes per entry for CSR, and the traffic for x. An element of x costs almost
// nothing if a nearby row has brought it into the cache, and a sector of 32 bytes otherwise.
//
// Each kernel is followed by its launch. beyond/ has 16-byte loads, the hybrid (14.5), equal shares
// of the entries, and ELL in slices with fewer bytes.
//
//   ./course run day35                       five kinds of matrices: all versions, verified and timed
//   ./course run day35 --program             program.cu: one product, from main() to the result
//   ./course run day35 --matrix file.mtx     your own matrix: which format wins, and why
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "index.hpp"

namespace day35 {

using course::kWarpSize;
using course::kWholeWarp;

constexpr int kBlock = 256;

// The number of this thread in the grid.
__device__ inline Offset global_thread() {
    return static_cast<Offset>(blockIdx.x) * static_cast<Offset>(blockDim.x) + threadIdx.x;
}

// --- COO: row, column and value of each entry ----------------------------------------------------

struct CooView {
    Offset entries;
    const Index* rows;  // ascending
    const Index* cols;
    const float* values;
};

// Idea: a thread loads an entry, and adds value * x[column] to y[row].
// Cost removed: none yet. All threads have equal work, even if one row has all entries.
// Still limits it: an atomic for each entry; those of one row are serialised, so no unit is busy
// (power law, counters: L2 25 %, atomics 15 %).
__global__ void coo_atomic_kernel(CooView a, const float* x, float* y) {
    const Offset i = global_thread();
    if (i < a.entries) atomicAdd(&y[a.rows[i]], a.values[i] * x[a.cols[i]]);
}

// y has `rows` elements.
inline void launch_coo_atomic(const CooView& a, Index rows, const float* x, float* y, cudaStream_t stream) {
    cudaMemsetAsync(y, 0, static_cast<std::size_t>(rows) * sizeof(float), stream);
    if (a.entries == 0) return;
    coo_atomic_kernel<<<course::blocks_for(a.entries, kBlock), kBlock, 0, stream>>>(a, x, y);
}

// --- CSR: the entries of a row are adjacent ------------------------------------------------------

// Row r has the entries row_start[r] to row_start[r + 1] - 1. O, the type of these offsets, is
// std::int32_t as long as that can count all entries, else Offset (64 bits).
template <class O>
struct CsrView {
    Index rows;
    const O* row_start;  // rows + 1 of them
    const Index* cols;
    const float* values;
};

// Idea: a thread per row sums its products in a register, and writes y once.
// Cost removed: COO's row numbers, its atomics, and setting y to 0.
// Still limits it: the 32 lanes of a warp load from 32 rows, far apart, and all wait for the
// longest row.
template <class O>
__global__ void csr_scalar_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread();
    if (row >= a.rows) return;
    float sum = 0;
    for (O i = a.row_start[row]; i < a.row_start[row + 1]; ++i)
        sum += a.values[i] * x[a.cols[i]];
    y[row] = sum;
}

template <class O>
void launch_csr_scalar(const CsrView<O>& a, const float* x, float* y, cudaStream_t stream) {
    csr_scalar_kernel<O><<<course::blocks_for(a.rows, kBlock), kBlock, 0, stream>>>(a, x, y);
}

// The sum over each group of kLanes adjacent lanes, in all of them. All lanes of the warp call
// it.
template <int kLanes>
__device__ float sum_of_lanes(float value) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(kWholeWarp, value, distance);
    return value;
}

// Idea: kLanes adjacent lanes for a row. They load adjacent entries and add up their sums by
// shuffles. The matrix is read once, so its cache lines are evicted first (__ldcs), and x stays.
// Cost removed: scattered loads. A warp waits for the longest of 32 / kLanes rows instead of 32.
// Still limits it: latency, by loads of 4 bytes (power law, counters: no unit above 20 %). A row
// that is much longer than the others still has kLanes lanes.
template <int kLanes, class O>
__global__ void csr_vector_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    float sum = 0;
    if (row < a.rows) {
        const O end = a.row_start[row + 1];
        for (O i = a.row_start[row] + lane; i < end; i += kLanes)
            sum += __ldcs(&a.values[i]) * x[__ldcs(&a.cols[i])];
    }
    sum = sum_of_lanes<kLanes>(sum);
    if (row < a.rows && lane == 0) y[row] = sum;
}

// How many lanes csr_vector takes: the fewest that load a row of mean length in one step; at least
// 2, at most a warp.
inline int lanes_by_mean(double mean) {
    int lanes = 2;
    while (lanes < kWarpSize && lanes < mean)
        lanes *= 2;
    return lanes;
}

template <class O>
void launch_csr_vector(const CsrView<O>& a, int lanes, const float* x, float* y, cudaStream_t stream) {
    const auto kernel = lanes == 2    ? csr_vector_kernel<2, O>
                        : lanes == 4  ? csr_vector_kernel<4, O>
                        : lanes == 8  ? csr_vector_kernel<8, O>
                        : lanes == 16 ? csr_vector_kernel<16, O>
                                      : csr_vector_kernel<32, O>;
    const std::size_t threads = static_cast<std::size_t>(a.rows) * lanes;
    kernel<<<course::blocks_for(threads, kBlock), kBlock, 0, stream>>>(a, x, y);
}

// --- ELL: every row has `width` places, stored column by column ----------------------------------

// Entry k of row r is at k * rows + r. Places without an entry have the column kNoColumn, at the
// end of a row.
struct EllView {
    Index rows;
    Index width;
    const Index* cols;
    const float* values;
};

// Idea: entry k of all rows together, so that thread r loads next to thread r - 1.
// Cost removed: scattered loads, with one thread per row and no shuffles.
// Still limits it: L2 (counters: 65 % busy), and the width, which is that of the longest row.
__global__ void ell_kernel(EllView a, const float* x, float* y) {
    const Offset row = global_thread();
    if (row >= a.rows) return;
    float sum = 0;
    for (Index k = 0; k < a.width; ++k) {
        const Offset place = static_cast<Offset>(k) * a.rows + row;
        const Index col = __ldcs(&a.cols[place]);
        // Padding is not multiplied, not even by 0, because 0 times an infinite x is NaN.
        if (col == kNoColumn) break;
        sum += __ldcs(&a.values[place]) * x[col];
    }
    y[row] = sum;
}

inline void launch_ell(const EllView& a, const float* x, float* y, cudaStream_t stream) {
    ell_kernel<<<course::blocks_for(a.rows, kBlock), kBlock, 0, stream>>>(a, x, y);
}

// --- JDS: rows sorted by length, longest first ---------------------------------------------------

// Diagonal k holds entry k of each row that has one: that of row order[i] at diagonal_start[k] + i.
struct JdsView {
    Index rows;
    Index diagonals;
    const Index* order;
    const Offset* diagonal_start;
    const Index* cols;
    const float* values;
};

// Idea: rows from the longest to the shortest, so that diagonal k belongs to the first threads, as
// many as it has entries.
// Cost removed: all padding; and the threads of a warp have rows of about the same length.
// Still limits it: on the power law the longest row, which one thread sums (counters: no unit more
// than 2 % busy). Else y is written in the order of lengths; adjacent rows, which share elements of
// x, load them at different times.
__global__ void jds_kernel(JdsView a, const float* x, float* y) {
    const Offset place = global_thread();
    if (place >= a.rows) return;
    float sum = 0;
    for (Index k = 0; k < a.diagonals; ++k) {
        const Offset i = a.diagonal_start[k] + place;
        if (i >= a.diagonal_start[k + 1]) break;
        sum += __ldcs(&a.values[i]) * x[__ldcs(&a.cols[i])];
    }
    y[a.order[place]] = sum;
}

inline void launch_jds(const JdsView& a, const float* x, float* y, cudaStream_t stream) {
    jds_kernel<<<course::blocks_for(a.rows, kBlock), kBlock, 0, stream>>>(a, x, y);
}

}  // namespace day35

// Day 35, y = A x for a sparse matrix A. First part: the book's formats, PMPP chapter 14.
//
//   version          what is new                                        what limits it
//   coo_atomic       a thread per entry adds its product to y           an atomic per entry           14.2
//   csr_scalar       a thread per row, no atomics                       lanes load far apart          14.3
//   csr_vector       2 to 32 lanes per row, by the mean length          4 bytes per load; long rows
//   csr_vectorised   16-byte loads of values and columns                long rows among short ones
//   ell              rows filled up to the longest, stored by columns   one long row fills up all     14.4
//   hybrid           ELL up to a width, COO for the rest of long rows   two kernels                   14.5
//   jds              rows sorted by length: nothing to fill up          y is written out of order     14.6
//
// Each entry is loaded once for one multiplication and one addition, so the product is
// memory-bound: 8 bytes per entry for CSR, and the traffic for x. An element of x costs almost
// nothing if a nearby row has brought it into the cache, and a sector of 32 bytes otherwise.
//
// Continue with sell.cuh (ELL in slices, with fewer bytes) or balanced.cuh (equal shares of the
// entries).
//
//   ./course run day35                       five kinds of matrices: all versions, verified and timed
//   ./course run day35 --matrix file.mtx     your own matrix: which format wins, and why
#pragma once

#include <cuda_runtime.h>

#include <cstring>
#include <type_traits>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "host/formats.hpp"

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
// Still limits it: an atomic for each entry; those of one row are serialised.
__global__ void coo_atomic_kernel(CooView a, const float* x, float* y) {
    const Offset i = global_thread();
    if (i < a.entries) atomicAdd(&y[a.rows[i]], a.values[i] * x[a.cols[i]]);
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
// Still limits it: loads of 4 bytes. A row that is much longer than the others still has kLanes
// lanes.
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

constexpr int kPack = 4;  // entries of a vectorised load

// A vectorised load of N elements that are read only once.
template <int N, class T>
__device__ course::Pack<T, N> load_once(const T* address) {
    using Word = std::conditional_t<sizeof(T) * N == 16, uint4,
                                    std::conditional_t<sizeof(T) * N == 8, uint2, unsigned>>;
    const Word word = __ldcs(reinterpret_cast<const Word*>(address));
    course::Pack<T, N> pack;
    std::memcpy(&pack, &word, sizeof(pack));
    return pack;
}

// Idea: a lane loads four entries at once, 16-byte aligned. Entries of the pack that belong to the
// rows before and after are not multiplied. The arrays are padded to whole packs.
// Cost removed: three of four loads of the matrix, and the latency between them.
// Still limits it: long rows among short ones; for rows of a few entries, lanes without work.
template <int kLanes, class O>
__global__ void csr_vectorised_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    float sum = 0;
    if (row < a.rows) {
        const O begin = a.row_start[row];
        const O end = a.row_start[row + 1];
        for (O i = begin / kPack * kPack + lane * kPack; i < end; i += kLanes * kPack) {
            const auto cols = load_once<kPack>(a.cols + i);
            const auto values = load_once<kPack>(a.values + i);
#pragma unroll
            for (int j = 0; j < kPack; ++j) {
                if (i + j >= begin && i + j < end) sum += values.value[j] * x[cols.value[j]];
            }
        }
    }
    sum = sum_of_lanes<kLanes>(sum);
    if (row < a.rows && lane == 0) y[row] = sum;
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
// Still limits it: the width is that of the longest row. The hybrid is this kernel up to a smaller
// width, and add_segments_kernel (balanced.cuh) for the rest.
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
// Still limits it: y is written in the order of lengths; adjacent rows, which share elements of
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

}  // namespace day35

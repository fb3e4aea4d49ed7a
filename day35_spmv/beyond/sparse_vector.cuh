// Day 35, beyond: y = A x for a sparse A and a sparse x (SpMSpV). Only the columns of A that x has
// an entry for take part.
//
//   version        what is new                                       what limits it
//   dense_x        x is made dense, then multiplied as before        every entry of A is read
//   columns        a thread per entry of x; the others are not read  L2: few loads in flight
//   column_lanes   2 to 32 lanes per entry of x                      L2: an atomic per entry
//   sparse_y       y is sparse, too: count, scan, fill               L2; four kernels
//
// The matrix is in CSC (csc.cuh), because a column must be found without a search.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "csc.cuh"
#include "spmv.cuh"

namespace day35 {

// Entry i of x is values[i], at cols[i]. Columns may come in any order. If a column comes twice,
// the values add up.
struct SparseXView {
    Offset entries;
    const Index* cols;
    const float* values;
};

// --- dense_x: x is made dense --------------------------------------------------------------------

// Idea: write the entries of x into a vector of zeros. Then any version of the day can multiply.
// Cost removed: none yet. The whole matrix is read, whatever x holds.
// Still limits it: every entry of A is read all the same, by the product.
__global__ void scatter_x_kernel(SparseXView x, float* dense) {
    const Offset i = global_thread();
    // An addition, because a column may come twice.
    if (i < x.entries) atomicAdd(&dense[x.cols[i]], x.values[i]);
}

// `dense` has `cols` elements. The product with it follows (make_dense_x in spmv.cu).
inline void launch_scatter_x(const SparseXView& x, Index cols, float* dense, cudaStream_t stream) {
    cudaMemsetAsync(dense, 0, static_cast<std::size_t>(cols) * sizeof(float), stream);
    if (x.entries == 0) return;
    scatter_x_kernel<<<course::blocks_for(x.entries, kBlock), kBlock, 0, stream>>>(x, dense);
}

// --- columns: only the columns that x has an entry for -------------------------------------------

// Idea: csc_atomic with a thread per entry of x instead of one per column.
// Cost removed: all entries of A in other columns. The work is that of the columns of x, not that
// of the matrix.
// Still limits it: L2 (counters, 10 % of x: 63 % busy). Lanes load from 32 columns, far apart, and
// all wait for the longest.
__global__ void columns_kernel(CscView a, SparseXView x, float* y) {
    const Offset k = global_thread();
    if (k >= x.entries) return;
    const Index col = x.cols[k];
    const float factor = x.values[k];
    for (Offset i = a.col_start[col]; i < a.col_start[col + 1]; ++i)
        atomicAdd(&y[a.rows[i]], a.values[i] * factor);
}

// y has `rows` elements.
inline void launch_columns(const CscView& a, const SparseXView& x, Index rows, float* y,
                           cudaStream_t stream) {
    cudaMemsetAsync(y, 0, static_cast<std::size_t>(rows) * sizeof(float), stream);
    if (x.entries == 0) return;
    columns_kernel<<<course::blocks_for(x.entries, kBlock), kBlock, 0, stream>>>(a, x, y);
}

// --- column_lanes: several lanes for a column ----------------------------------------------------

// Idea: kLanes adjacent lanes for an entry of x, as csr_vector has them for a row. No shuffles:
// each product goes to another row.
// Cost removed: scattered loads of the matrix. A sparse x has few entries, so that a thread for
// each leaves most of the GPU idle; kLanes times as many threads have work.
// Still limits it: L2, by an atomic per entry (counters, 10 % of x: 83 % busy).
template <int kLanes>
__global__ void column_lanes_kernel(CscView a, SparseXView x, float* y) {
    const Offset k = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    if (k >= x.entries) return;
    const Index col = x.cols[k];
    const float factor = x.values[k];
    const Offset end = a.col_start[col + 1];
    for (Offset i = a.col_start[col] + lane; i < end; i += kLanes)
        atomicAdd(&y[a.rows[i]], a.values[i] * factor);
}

// `lanes` of each entry of x: 2, 4, 8, 16 or 32. y has `rows` elements.
inline void launch_column_lanes(const CscView& a, const SparseXView& x, int lanes, Index rows, float* y,
                                cudaStream_t stream) {
    cudaMemsetAsync(y, 0, static_cast<std::size_t>(rows) * sizeof(float), stream);
    if (x.entries == 0) return;
    const auto kernel = lanes == 2    ? column_lanes_kernel<2>
                        : lanes == 4  ? column_lanes_kernel<4>
                        : lanes == 8  ? column_lanes_kernel<8>
                        : lanes == 16 ? column_lanes_kernel<16>
                                      : column_lanes_kernel<32>;
    const std::size_t threads = static_cast<std::size_t>(x.entries) * lanes;
    kernel<<<course::blocks_for(threads, kBlock), kBlock, 0, stream>>>(a, x, y);
}

// --- sparse_y: a sparse result: count, scan, fill ------------------------------------------------

// Work space. Sums and marks are 0 before and after a product; counts are written anew. Bit r % 32
// of marks[r / 32]: row r has a sum.
struct MarkedSums {
    Index rows;
    float* sums;      // one for each row
    unsigned* marks;  // one for 32 rows
    Index* counts;    // of marked rows, one for each warp of 32 words
};

// The result: `count` rows, ascending, with their sums. A row is in it if an entry of A met an
// entry of x there, even if its sum is 0. `rows` and `values` have room for all rows.
struct SparseYView {
    Index* rows;
    float* values;
    Index* count;
};

constexpr int kRowsOfWord = 32;

// Idea: products are added to sums that are 0 already, and each row that gets one is marked in a
// bitmap. Then the marked rows are counted, the counts are scanned (day 16), and each warp knows
// where its rows go.
// Cost removed: setting y to 0. Afterwards only the bitmap is read, a 32nd of y, and only sums of
// marked rows are set back to 0.
// Still limits it: L2, by two atomics for many entries (counters, 10 % of x: 84 % busy). And
// fill_kernel, which reads the bitmap of all rows, doubles the time.
//
// The thread whose addition finds a 0 marks the row. The first addition to a row always finds one,
// so no row is missed, and most others need no second atomic.
template <int kLanes>
__global__ void add_and_mark_kernel(CscView a, SparseXView x, MarkedSums y) {
    const Offset k = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    if (k >= x.entries) return;
    const Index col = x.cols[k];
    const float factor = x.values[k];
    const Offset end = a.col_start[col + 1];
    for (Offset i = a.col_start[col] + lane; i < end; i += kLanes) {
        const Index row = a.rows[i];
        const float before = atomicAdd(&y.sums[row], a.values[i] * factor);
        if (before == 0) atomicOr(&y.marks[row / kRowsOfWord], 1u << row % kRowsOfWord);
    }
}

__host__ __device__ inline Index words_of(Index rows) {
    return static_cast<Index>((Offset{rows} + kRowsOfWord - 1) / kRowsOfWord);
}

// The sum of the values of all lanes up to this one. All lanes of the warp call it.
__device__ inline Index sum_up_to_lane(Index value) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
        const Index other = __shfl_up_sync(kWholeWarp, value, distance);
        if (lane >= distance) value += other;
    }
    return value;
}

// Count: a lane per word of the bitmap, a sum per warp.
__global__ void count_marks_kernel(MarkedSums y) {
    const Offset word = global_thread();
    const Index marked = word < words_of(y.rows) ? __popc(y.marks[word]) : 0;
    const Index all = sum_up_to_lane(marked);
    const bool last_lane = threadIdx.x % kWarpSize == kWarpSize - 1;
    if (last_lane && word / kWarpSize * kWarpSize < words_of(y.rows)) y.counts[word / kWarpSize] = all;
}

constexpr int kScanThreads = 1024;

// Scan: one block replaces each count by the sum of those before it, 1,024 in each step.
__global__ void __launch_bounds__(kScanThreads) scan_counts_kernel(Index size, Index* counts, Index* total) {
    __shared__ Index warp_sums[kScanThreads / kWarpSize];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    Index before_step = 0;
    for (Index begin = 0; begin < size; begin += kScanThreads) {
        const Index i = begin + static_cast<Index>(threadIdx.x);
        const Index own = i < size ? counts[i] : 0;
        const Index up_to_own = sum_up_to_lane(own);
        if (lane == kWarpSize - 1) warp_sums[warp] = up_to_own;
        __syncthreads();
        if (warp == 0) warp_sums[lane] = sum_up_to_lane(warp_sums[lane]);
        __syncthreads();
        const Index before_warp = warp == 0 ? 0 : warp_sums[warp - 1];
        if (i < size) counts[i] = before_step + before_warp + up_to_own - own;
        before_step += warp_sums[kScanThreads / kWarpSize - 1];
        __syncthreads();  // all have read the sums
    }
    if (threadIdx.x == 0) *total = before_step;
}

// Fill: the rows of a warp's words go to adjacent places from the warp's count on. A lane takes the
// set bits of its word one by one, and sets its sums and its word back to 0.
__global__ void fill_kernel(MarkedSums y, SparseYView out) {
    const Offset word = global_thread();
    const bool exists = word < words_of(y.rows);
    unsigned marks = exists ? y.marks[word] : 0;
    const Index marked = __popc(marks);
    const Index before_lane = sum_up_to_lane(marked) - marked;
    if (marked == 0) return;
    Index place = y.counts[word / kWarpSize] + before_lane;
    for (; marks != 0; marks &= marks - 1) {  // clears the lowest set bit
        const auto row = static_cast<Index>(word * kRowsOfWord + __ffs(static_cast<int>(marks)) - 1);
        out.rows[place] = row;
        out.values[place] = y.sums[row];
        y.sums[row] = 0;
        ++place;
    }
    y.marks[word] = 0;
}

// `lanes` as for launch_column_lanes.
inline void launch_sparse_y(const CscView& a, const SparseXView& x, int lanes, const MarkedSums& y,
                            const SparseYView& out, cudaStream_t stream) {
    if (x.entries > 0) {
        const auto add = lanes == 2    ? add_and_mark_kernel<2>
                         : lanes == 4  ? add_and_mark_kernel<4>
                         : lanes == 8  ? add_and_mark_kernel<8>
                         : lanes == 16 ? add_and_mark_kernel<16>
                                       : add_and_mark_kernel<32>;
        const std::size_t threads = static_cast<std::size_t>(x.entries) * lanes;
        add<<<course::blocks_for(threads, kBlock), kBlock, 0, stream>>>(a, x, y);
    }
    const Index words = words_of(y.rows);
    const auto warps = static_cast<Index>(course::ceil_div<Offset>(words, kWarpSize));
    if (words > 0) count_marks_kernel<<<course::blocks_for(words, kBlock), kBlock, 0, stream>>>(y);
    scan_counts_kernel<<<1, kScanThreads, 0, stream>>>(warps, y.counts, out.count);
    if (words > 0) fill_kernel<<<course::blocks_for(words, kBlock), kBlock, 0, stream>>>(y, out);
}

}  // namespace day35

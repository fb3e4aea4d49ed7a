// Day 35, beyond: blocks with equal shares of the entries, for rows of any length.
//
//   version        what is new                                        what limits it
//   csr_adaptive   a block takes whole rows, up to 1,024 entries      L2, if columns are far apart
//
// Which rows go together is decided once, on the host (spmv.cu). After J. Greathouse and M. Daga,
// "Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format", SC 2014; a
// row that is too long for a block is cut here. merge_path.cuh takes the last step: it cuts rows
// anywhere.
#pragma once

#include "vectorised.cuh"

namespace day35 {

constexpr int kAdaptiveBlock = 128;
// Blocks that fill the SM with threads, which leaves 32 registers per thread on most GPUs.
constexpr int kAdaptiveBlocksPerSm = course::kThreadsPerMultiprocessor / kAdaptiveBlock;
constexpr int kAdaptivePacks = 2;  // of four entries, per thread
constexpr int kAdaptiveTile = kAdaptiveBlock * kAdaptivePacks * kPack;
constexpr int kLongRow = 32;  // entries per lane; a row with more is left to a whole warp

// The share of a block: the entries from `begin` to the next piece's.
struct alignas(16) Piece {
    Offset begin;
    Index row;   // the first of the rows; of a part of a long row: which of the LongRows
    Index rows;  // > 0: so many whole rows. -k: part k of a long row, of which the first is part 0
};

// A row with too many entries for a block is cut into parts.
struct LongRow {
    Index row;
    Index first;  // part k's sum is stored in sums[first + k]
    Index parts;
};
struct LongRows {
    const LongRow* rows;
    unsigned* arrived;  // how many parts of each row are summed; 0 before and after a product
    float* sums;
};

// Stores the products of the entries [begin, end) in shared memory: that of entry i in products[i -
// origin], where `origin` is `begin` rounded down to a multiple of four. kThreads threads load at
// most kPacks packs of four entries each. All loads are issued before the first result is used.
// Entries that share a pack with the first or the last one are multiplied, too, but no sum uses
// them. A barrier must follow.
template <int kThreads, int kPacks, class O>
__device__ void stage_products(const CsrView<O>& a, const float* x, Offset begin, Offset end,
                               float* products) {
    const Offset first = begin / kPack * kPack + threadIdx.x * kPack;
    course::Pack<Index, kPack> cols[kPacks];
    course::Pack<float, kPack> values[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
        const Offset i = first + k * kThreads * kPack;
        if (i < end) {
            cols[k] = load_once<kPack>(a.cols + i);
            values[k] = load_once<kPack>(a.values + i);
        }
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
        if (first + k * kThreads * kPack >= end) break;
#pragma unroll
        for (int j = 0; j < kPack; ++j)
            values[k].value[j] *= x[cols[k].value[j]];
        values[k].store(products + (k * kThreads + threadIdx.x) * kPack);
    }
}

// The sum of values[begin, end) with `lanes` lanes, a power of two; in all of them. All lanes of
// the warp call it.
__device__ inline float sum_with_lanes(const float* values, int begin, int end, int lanes) {
    float sum = 0;
    for (int i = begin + static_cast<int>(threadIdx.x) % lanes; i < end; i += lanes)
        sum += values[i];
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(kWholeWarp, sum, distance);
    return sum;
}

// Stores the sum of a part of a long row. The last part to arrive sums them all, always in the same
// order, so the result has the same bits every time. Called by one warp, with the sum in all lanes.
__device__ inline void add_part(const LongRows& long_rows, Index which, Index part, float sum, float* y) {
    const LongRow row = long_rows.rows[which];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    unsigned before = 0;
    if (lane == 0) {
        long_rows.sums[row.first + part] = sum;
        __threadfence();  // release: the sum is visible before the arrival
        before = atomicAdd(&long_rows.arrived[which], 1u);
    }
    if (__shfl_sync(kWholeWarp, before, 0) + 1 != static_cast<unsigned>(row.parts)) return;
    __threadfence();  // acquire: the other parts' sums
    float total = 0;
    for (Index k = lane; k < row.parts; k += kWarpSize)
        total += __ldcg(&long_rows.sums[row.first + k]);
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
        total += __shfl_xor_sync(kWholeWarp, total, distance);
    if (lane != 0) return;
    y[row.row] = total;
    long_rows.arrived[which] = 0;
}

// Idea: a block stores the products of its piece in shared memory. Only then does it consider rows:
// a few lanes sum each row, and more of them if the piece has fewer rows.
// Cost removed: lanes that wait for long rows, and most idle lanes of short rows, because entries
// are loaded in whole packs.
// Still limits it: memory, or L2 where columns are far apart (power law, counters: L2 89 % busy,
// memory 21 %). Each product passes through shared memory, which is not busy.
template <class O>
__global__ void __launch_bounds__(kAdaptiveBlock, kAdaptiveBlocksPerSm)
    csr_adaptive_kernel(CsrView<O> a, const Piece* pieces, LongRows long_rows, const float* x, float* y) {
    alignas(16) __shared__ float products[kAdaptiveTile];
    const Piece piece = pieces[blockIdx.x];
    const Offset end = pieces[blockIdx.x + 1].begin;
    const Offset origin = piece.begin / kPack * kPack;
    // Where row i of the piece starts in `products`.
    const auto start = [&](int i) { return static_cast<int>(a.row_start[piece.row + i] - origin); };
    stage_products<kAdaptiveBlock, kAdaptivePacks>(a, x, piece.begin, end, products);
    __syncthreads();

    if (piece.rows <= 0) {  // part of one row, for one warp
        if (threadIdx.x >= kWarpSize) return;
        const float sum = sum_with_lanes(products, static_cast<int>(piece.begin - origin),
                                         static_cast<int>(end - origin), kWarpSize);
        add_part(long_rows, piece.row, -piece.rows, sum, y);
        return;
    }
    // Rows that are left to a whole warp.
    __shared__ int postponed[kAdaptiveTile / kLongRow];
    __shared__ int postponed_count;
    if (threadIdx.x == 0) postponed_count = 0;
    // The block's lanes are divided among all of its rows, up to a warp for each.
    int lanes = kWarpSize;
    while (lanes > 1 && lanes * piece.rows > kAdaptiveBlock)
        lanes /= 2;
    __syncthreads();
    for (int first = 0; first < piece.rows; first += kAdaptiveBlock / lanes) {
        const int i = first + static_cast<int>(threadIdx.x) / lanes;
        // Lanes without a row take the last one, because all must take part in the shuffles.
        const int row = min(i, piece.rows - 1);
        const int begin = start(row);
        const int row_end = start(row + 1);
        const bool is_long = row_end - begin > kLongRow * lanes;
        const float sum = sum_with_lanes(products, begin, is_long ? begin : row_end, lanes);
        if (i >= piece.rows || threadIdx.x % lanes != 0) continue;
        if (is_long) {
            postponed[atomicAdd(&postponed_count, 1)] = row;
        } else {
            y[piece.row + row] = sum;
        }
    }
    __syncthreads();
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    for (int i = warp; i < postponed_count; i += kAdaptiveBlock / kWarpSize) {
        const int row = postponed[i];
        const float sum = sum_with_lanes(products, start(row), start(row + 1), kWarpSize);
        if (threadIdx.x % kWarpSize == 0) y[piece.row + row] = sum;
    }
}

// A block for each piece; pieces[blocks] starts where the entries end.
template <class O>
void launch_csr_adaptive(const CsrView<O>& a, const Piece* pieces, unsigned blocks, const LongRows& long_rows,
                         const float* x, float* y, cudaStream_t stream) {
    csr_adaptive_kernel<<<blocks, kAdaptiveBlock, 0, stream>>>(a, pieces, long_rows, x, y);
}

}  // namespace day35

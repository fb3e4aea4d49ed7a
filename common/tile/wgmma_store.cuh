// Stores to C the sums that wgmma has left in registers: C = alpha sum + beta C. Three ways: from
// registers; in rows that pass through shared memory; in slices that TMA stores.
#pragma once

#include <cuda_runtime.h>

#include "common/tile/pair_output.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace course::hopper {

// A warp stores its 16 rows in slices of 32 columns.
constexpr int kSliceColumns = 32;

// Stores the slice from column `first` of the tile on. Lane 4 g + t holds columns 2 t and 2 t + 1
// of each group of eight, in rows g and g + 8: four lanes store a whole sector of 32 bytes.
template <class S>
__device__ void store_slice(const OutputOf<typename S::Sum>& out, TileCoords tile, int first,
                            const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int i = first / 2; i < (first + kSliceColumns) / 2; i += 2)
        store_pair(out, tile.row + warp * 16 + i / 2 % 2 * 8 + lane / 4, tile.col + i / 4 * 8 + lane % 4 * 2,
                   sums[i], sums[i + 1]);
}

// Stores columns [begin, end) of the tile.
template <class S>
__device__ void store_from_registers(const OutputOf<typename S::Sum>& out, TileCoords tile,
                                     const Sums<S>& sums, int begin = 0, int end = S::BN) {
#pragma unroll
    for (int first = 0; first < S::BN; first += kSliceColumns)
        if (begin <= first && first < end) store_slice<S>(out, tile, first, sums);
}

// A warp's slices in shared memory. While TMA stores one, the warp fills the next.
template <class Sum>
using Slice = Sum[16 * kSliceColumns];
template <class S>
using Slices = Slice<typename S::Sum>[S::CONSUMERS * 4][S::SLICES];

// Fills a slice from column `first` of the tile on, swizzled as TMA expects it: 16-byte chunk c of
// row r is at chunk c ^ (r % 8). A row is 128 bytes, all 32 banks, so the place of a chunk in its
// row determines its banks. In a wavefront 16 lanes store chunks 2 j and 2 j + 1 of four rows g, at
// 2 j ^ g and (2 j + 1) ^ g. In an even row and the odd row after it, these are the same two
// places: a bank conflict. So odd rows take j ^ 2 instead of j: chunks in the other half of the
// row.
template <class S>
__device__ void fill_slice(Slice<typename S::Sum>& slice, int first, const OutputOf<typename S::Sum>& out,
                           TileCoords tile, const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    const bool odd = g % 2 == 1;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int eight = odd ? j ^ 2 : j;
#pragma unroll
        for (int lower = 0; lower < 2; ++lower) {
            // Constant indices, then a selection: an index known only at run time would move the
            // sums to local memory.
            const auto* const even_sums = &sums[(first / 8 + j) * 4 + lower * 2];
            const auto* const odd_sums = &sums[(first / 8 + (j ^ 2)) * 4 + lower * 2];
            const int row = lower * 8 + g;
            const PairOf<typename S::Sum> result =
                finished(out, tile.row + row, tile.col + first + eight * 8 + t * 2,
                         odd ? odd_sums[0] : even_sums[0], odd ? odd_sums[1] : even_sums[1]);
            const int chunk = (eight * 2 + t / 2) ^ g;
            result.store(&slice[row * kSliceColumns + chunk * 4 + t % 2 * 2]);
        }
    }
}

// A warp's 16 rows of sums in shared memory. Padding by 8 makes each row begin 8 banks after the
// one before. So when 16 lanes store 8 bytes each, to four rows, they use all 32 banks once.
template <class S>
using RowsOfWarp = typename S::Sum[16][S::BN + 8];
template <class S>
using RowsOfWarps = RowsOfWarp<S>[S::CONSUMERS * 4];

// Stores alpha sum + beta C for a warp's rows: each lane COUNT adjacent elements at a time.
// `first` is the first row and column of the warp's part of the tile.
template <class S, int COUNT>
__device__ void store_rows(const RowsOfWarp<S>& rows, const OutputOf<typename S::Sum>& out,
                           TileCoords first) {
    constexpr int kInRow = S::BN / COUNT;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x) % 32; i < 16 * kInRow; i += 32) {
        const int row = i / kInRow;
        const int col = i % kInRow * COUNT;
        if (!inside(out, first.row + row, first.col + col)) continue;
        auto* const to = &out.c(first.row + row, first.col + col);
        auto results = Pack<typename S::Sum, COUNT>::load(&rows[row][col]);
        const auto before = out.beta == 0 ? results : Pack<typename S::Sum, COUNT>::load(to);
#pragma unroll
        for (int element = 0; element < COUNT; ++element) {
            results.value[element] *= out.alpha;
            if (out.beta != 0) results.value[element] += out.beta * before.value[element];
        }
        results.store(to);
    }
}

// Stores the 64 rows of a warpgroup through shared memory. From registers, one instruction would
// store only every other element of an unaligned row. Here adjacent lanes store adjacent elements,
// whatever the alignment of the row. `rows` belongs to this warp.
template <class S>
__device__ void store_in_rows(RowsOfWarp<S>& rows, const OutputOf<typename S::Sum>& out, TileCoords tile,
                              const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < S::BN / 2; i += 2)
        PairOf<typename S::Sum>{{sums[i], sums[i + 1]}}.store(
            &rows[i / 2 % 2 * 8 + lane / 4][i / 4 * 8 + lane % 4 * 2]);
    __syncwarp();  // the rows are complete
    tile.row += static_cast<int>(threadIdx.x) / 32 % 4 * 16;
    if (out.c.cols() % 4 == 0 && out.c.leading_dimension() % 4 == 0 && is_aligned(out.c.data(), 16)) {
        store_rows<S, 4>(rows, out, tile);
    } else {
        store_rows<S, 1>(rows, out, tile);
    }
}

// Stores the tile through shared memory: one lane issues one TMA store per slice, and the warp goes
// on. Of what is out of range, TMA drops only whole pieces of 16 bytes. If C ends within such a
// piece, the last slice is stored from registers instead.
template <class S>
__device__ void store_through_tma(const CUtensorMap& map, Slice<typename S::Sum> (&slices)[S::SLICES],
                                  const OutputOf<typename S::Sum>& out, TileCoords tile,
                                  const Sums<S>& sums) {
    const bool first_lane = threadIdx.x % 32 == 0;
    const int columns = static_cast<int>(out.c.cols());
    const int warp_row = tile.row + static_cast<int>(threadIdx.x) / 32 % 4 * 16;
#pragma unroll
    for (int first = 0; first < S::BN; first += kSliceColumns) {
        if (columns % 4 != 0 && tile.col + first + kSliceColumns > columns) {
            store_slice<S>(out, tile, first, sums);
            // An empty group: the wait below assumes one group per slice.
            if (first_lane) ptx::tma_store_commit();
            continue;
        }
        Slice<typename S::Sum>& slice = slices[first / kSliceColumns % S::SLICES];
        if (first_lane) ptx::tma_store_wait_read<S::SLICES - 1>();
        __syncwarp();  // the slice is safe to overwrite
        fill_slice<S>(slice, first, out, {warp_row, tile.col}, sums);
        ptx::fence_proxy_async();
        __syncwarp();  // the slice is complete
        if (first_lane) {
            ptx::tma_store(&map, tile.col + first, warp_row, slice);
            ptx::tma_store_commit();
        }
    }
}

}  // namespace course::hopper

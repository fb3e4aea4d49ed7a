// From the sums in registers to C: alpha sum + beta C.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "output.cuh"
#include "tile.cuh"

namespace day40 {

// C is stored in slices of 16 rows and 32 columns of a warp.
constexpr int kSliceColumns = 32;

// Results of the slice from column `first` of the tile on. Lane 4 g + t has results 2 t and 2 t + 1 of eight, in rows g and g + 8: four lanes
// fill a sector of 32 bytes, so no store is a partial one.
template <class S>
__device__ void store_slice(const OutputOf<typename S::Sum>& out, Place place, int first,
                            const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int i = first / 2; i < (first + kSliceColumns) / 2; i += 2)
        store_pair(out, place.row + warp * 16 + i / 2 % 2 * 8 + lane / 4,
                   place.column + i / 4 * 8 + lane % 4 * 2, sums[i], sums[i + 1]);
}

// Columns [begin, end) of the tile.
template <class S>
__device__ void store_from_registers(const OutputOf<typename S::Sum>& out, Place place, const Sums<S>& sums,
                                     int begin = 0, int end = S::BN) {
#pragma unroll
    for (int first = 0; first < S::BN; first += kSliceColumns)
        if (begin <= first && first < end) store_slice<S>(out, place, first, sums);
}

// A warp's slices in shared memory. While TMA stores one, the warp fills the next.
template <class Sum>
using Slice = Sum[16 * kSliceColumns];
template <class S>
using Slices = Slice<typename S::Sum>[S::MULTIPLIERS * 4][S::SLICES];

// Fills a slice with results from column `first` of the tile on, swizzled as TMA expects it: sixteen bytes c of row r at c ^ (r % 8).
// Lanes of odd rows write their results in another order: else rows g and g + 1, whose swizzles differ in the lowest bit alone, would
// write to the same banks.
template <class S>
__device__ void fill(Slice<typename S::Sum>& slice, int first, const OutputOf<typename S::Sum>& out,
                     Place place, const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    const bool odd = g % 2 == 1;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int eight = odd ? j ^ 2 : j;
#pragma unroll
        for (int lower = 0; lower < 2; ++lower) {
            const auto* const even_sums = &sums[(first / 8 + j) * 4 + lower * 2];
            const auto* const odd_sums = &sums[(first / 8 + (j ^ 2)) * 4 + lower * 2];
            const int row = lower * 8 + g;
            const PairOf<typename S::Sum> result =
                finished(out, place.row + row, place.column + first + eight * 8 + t * 2,
                         odd ? odd_sums[0] : even_sums[0], odd ? odd_sums[1] : even_sums[1]);
            const int sixteen_bytes = (eight * 2 + t / 2) ^ g;
            result.store(&slice[row * kSliceColumns + sixteen_bytes * 4 + t % 2 * 2]);
        }
    }
}

// The same results through shared memory: a warp stores a slice with one instruction and goes on, and TMA leaves out what lies outside C. Not
// quite: it writes whole 16 bytes, so a slice whose last 16 bytes C's last column cuts is stored from registers.
template <class S>
__device__ void store_through_tma(const CUtensorMap& map, Slice<typename S::Sum> (&slices)[S::SLICES],
                                  const OutputOf<typename S::Sum>& out, Place place, const Sums<S>& sums) {
    const bool first_lane = threadIdx.x % 32 == 0;
    const int columns = static_cast<int>(out.c.cols());
    const int warp_row = place.row + static_cast<int>(threadIdx.x) / 32 % 4 * 16;
#pragma unroll
    for (int first = 0; first < S::BN; first += kSliceColumns) {
        if (columns % 4 != 0 && place.column + first + kSliceColumns > columns) {
            store_slice<S>(out, place, first, sums);
            if (first_lane) ptx::tma_store_commit();  // an empty group: they are counted as the slices are
            continue;
        }
        Slice<typename S::Sum>& slice = slices[first / kSliceColumns % S::SLICES];
        if (first_lane) ptx::tma_store_wait_read<S::SLICES - 1>();
        __syncwarp();  // the slice has been read
        fill<S>(slice, first, out, {warp_row, place.column}, sums);
        ptx::fence_proxy_async();
        __syncwarp();  // the slice is full
        if (first_lane) {
            ptx::tma_store(&map, place.column + first, warp_row, slice);
            ptx::tma_store_commit();
        }
    }
}

}  // namespace day40

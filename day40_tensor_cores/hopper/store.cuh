// From the sums in registers to C: alpha sum + beta C.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "tile.cuh"

namespace day40 {

struct Output {
    course::DeviceMatrix<float> c;
    float alpha;
    float beta;
    bool pairs;  // every element with an even column is at a multiple of 8 bytes
};

__device__ inline bool inside(const Output& out, int row, int column) {
    return row < static_cast<int>(out.c.rows()) && column < static_cast<int>(out.c.cols());
}

// What becomes of the sums at (row, column) and beside it. C is read only if beta asks for it.
__device__ inline float2 finished(const Output& out, int row, int column, float sum, float beside) {
    float2 result = make_float2(out.alpha * sum, out.alpha * beside);
    if (out.beta != 0) {
        if (inside(out, row, column)) result.x += out.beta * out.c(row, column);
        if (inside(out, row, column + 1)) result.y += out.beta * out.c(row, column + 1);
    }
    return result;
}

// Lane 4 g + t has results 2 t and 2 t + 1 of eight, in rows g and g + 8 of its warp's sixteen: four lanes fill a sector of 32 bytes,
// which is as much as a store needs to be a whole one.
template <class S>
__device__ void store_from_registers(const Output& out, Place place, const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int i = 0; i < S::BN / 2; i += 2) {
        const int row = place.row + warp * 16 + i / 2 % 2 * 8 + lane / 4;
        const int column = place.column + i / 4 * 8 + lane % 4 * 2;
        const float2 result = finished(out, row, column, sums[i], sums[i + 1]);
        if (out.pairs && inside(out, row, column + 1)) {
            *reinterpret_cast<float2*>(&out.c(row, column)) = result;
        } else {
            if (inside(out, row, column)) out.c(row, column) = result.x;
            if (inside(out, row, column + 1)) out.c(row, column + 1) = result.y;
        }
    }
}

// A warp's slices of C in shared memory: 16 rows of 32 results. While TMA stores one, the warp fills the next.
constexpr int kSliceColumns = 32;
constexpr int kSlices = 2;
using Slice = float[16 * kSliceColumns];
template <class S>
using Slices = Slice[S::MULTIPLIERS * 4][kSlices];

// Fills a slice with results from column `first` of the tile on, swizzled as TMA expects it: sixteen bytes c of row r at c ^ (r % 8).
// Lanes of odd rows write their results in another order: else rows g and g + 1, whose swizzles differ in the lowest bit alone, would
// write to the same banks.
template <class S>
__device__ void fill(Slice& slice, int first, const Output& out, Place place, const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    const bool odd = g % 2 == 1;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int eight = odd ? j ^ 2 : j;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float* const even_sums = &sums[(first / 8 + j) * 4 + half * 2];
            const float* const odd_sums = &sums[(first / 8 + (j ^ 2)) * 4 + half * 2];
            const int row = half * 8 + g;
            const float2 result =
                finished(out, place.row + row, place.column + first + eight * 8 + t * 2,
                         odd ? odd_sums[0] : even_sums[0], odd ? odd_sums[1] : even_sums[1]);
            const int sixteen_bytes = (eight * 2 + t / 2) ^ g;
            *reinterpret_cast<float2*>(&slice[row * kSliceColumns + sixteen_bytes * 4 + t % 2 * 2]) = result;
        }
    }
}

// The same results through shared memory: a warp stores 16 x 32 of them with one instruction and goes on, and what lies outside C is
// left out by TMA.
template <class S>
__device__ void store_through_tma(const CUtensorMap& map, Slice (&slices)[kSlices], const Output& out,
                                  Place place, const Sums<S>& sums) {
    const bool first_lane = threadIdx.x % 32 == 0;
    place.row += static_cast<int>(threadIdx.x) / 32 % 4 * 16;
#pragma unroll
    for (int column = 0; column < S::BN; column += kSliceColumns) {
        Slice& slice = slices[column / kSliceColumns % kSlices];
        if (first_lane) ptx::tma_store_wait_read<kSlices - 1>();
        __syncwarp();  // the slice has been read
        fill<S>(slice, column, out, place, sums);
        ptx::fence_proxy_async();
        __syncwarp();  // the slice is full
        if (first_lane) {
            ptx::tma_store(&map, place.column + column, place.row, slice);
            ptx::tma_store_commit();
        }
    }
}

}  // namespace day40

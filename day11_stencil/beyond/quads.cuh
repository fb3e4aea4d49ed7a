// Day 11, beyond: four cells of a row at a time.
#pragma once

#include <cuda_runtime.h>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "grid.cuh"

namespace day11 {

// Four cells of a row, which move between memory and registers in one access.
using Quad = course::Pack<float, 4>;
constexpr int kLaneCells = 4;
constexpr int kWarpCells = course::kWarpSize * kLaneCells;  // 128 consecutive cells of a row

// The quad at column x of the row that starts at `row` and has nx cells. Out-of-range cells are
// zero-filled. kAligned: rows are 16-byte aligned and x is a multiple of 4, so either all four
// cells are in range or none.
template <bool kAligned>
__device__ Quad load_quad(const float* row, int x, int nx) {
    Quad quad = {};
    if constexpr (kAligned) {
        if (x >= 0 && x < nx) quad = Quad::load(row + x);
    } else {
        for (int j = 0; j < kLaneCells; ++j)
            if (x + j >= 0 && x + j < nx) quad.value[j] = row[x + j];
    }
    return quad;
}

// kStreaming: the cells are not read again soon, so the L2 cache may evict them first.
template <bool kAligned, bool kStreaming = false>
__device__ void store_quad(float* row, int x, int nx, const Quad& quad) {
    if constexpr (kAligned) {
        if (x >= nx) return;
        kStreaming ? quad.store_streaming(row + x) : quad.store(row + x);
    } else {
        for (int j = 0; j < kLaneCells; ++j)
            if (x + j < nx) row[x + j] = quad.value[j];
    }
}

// Puts the old values back into cells of the boundary. `row_inside` is the same for the whole warp,
// so its branch does not diverge. In an aligned row, only the first cell of the first quad and the
// last cell of the last quad can be on the boundary.
template <bool kAligned>
__device__ void keep_boundary(Quad& result, const Quad& old, bool row_inside, int x, int nx) {
    if (!row_inside) {
        result = old;
        return;
    }
#pragma unroll
    for (int j = 0; j < kLaneCells; ++j) {
        const bool first = kAligned ? j == 0 && x == 0 : x + j == 0;
        const bool last = kAligned ? j == kLaneCells - 1 && x == nx - kLaneCells : x + j == nx - 1;
        if (first || last) result.value[j] = old.value[j];
    }
}

}  // namespace day11

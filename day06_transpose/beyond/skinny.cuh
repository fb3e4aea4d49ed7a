// Day 6, beyond: transposes of matrices with few rows or few columns, 32 at most. A square tile of
// such a matrix is nearly empty.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "transpose_any.cuh"

namespace day06 {

constexpr unsigned kMostFew = 32;  // rows or columns of the short side
constexpr unsigned kSkinnyTile = 4096;
constexpr int kSkinnyEach = kSkinnyTile / kThreads;  // elements of a thread

// A tile has all `few` of the short side, and `many` of the long one, a multiple of 32.
struct SkinnyTile {
    unsigned few;
    unsigned many;
    unsigned stride;  // in shared memory, from one of the short side to the next
    // Quotients by `few` and by many / 32, of numbers below 4096: the reciprocal times 2^20,
    // rounded up. The error is less than 4096 * 32 / 2^20, an eighth of the distance to the next
    // quotient.
    unsigned by_few;
    unsigned by_warps;

    explicit SkinnyTile(std::size_t few_of_matrix)
        : few(static_cast<unsigned>(few_of_matrix)),
          many(kSkinnyTile / few / 32 * 32),
          // With 1 to 4, 8, 11, 16 and 32 elements along the short side, 32 consecutive ones lie
          // in 32 banks; with others two may share a bank.
          stride(many + course::ceil_div(32U, few)),
          by_few(course::ceil_div(1U << 20, few)),
          by_warps(course::ceil_div(1U << 20, many / 32)) {}
};

struct SkinnyPlace {
    unsigned few;
    unsigned many;
};

// Element k of this thread. ALONG_FEW: adjacent threads are adjacent along the short side.
// Otherwise a warp has 32 adjacent elements along the long side.
template <bool ALONG_FEW>
__device__ SkinnyPlace skinny_place(const SkinnyTile& shape, unsigned k) {
    const unsigned i = k * kThreads + threadIdx.x;
    if constexpr (ALONG_FEW) {
        const unsigned many = i * shape.by_few >> 20;
        return {i - many * shape.few, many};
    } else {
        const unsigned few = (i / 32) * shape.by_warps >> 20;
        return {few, i - few * shape.many};
    }
}

// Idea: a tile is as long as it must be to have 4096 elements. On the long side of `in` or of `out`
// a warp moves 32 adjacent elements of a row, on the other one elements of several short rows,
// which are adjacent in memory if there is no padding between them.
// Cost removed: lanes without an element, and blocks that move few of them.
// Still limits it: not profiled.
//
// FEW_COLS: the short side of `in` are its columns.
template <bool FEW_COLS, class T>
__global__ void __launch_bounds__(kThreads)
    transpose_skinny(DeviceMatrix<const T> in, DeviceMatrix<T> out, SkinnyTile shape) {
    __shared__ T tile[kSkinnyTile + 2 * kMostFew];  // few * stride + many
    const std::size_t first = std::size_t{blockIdx.x} * shape.many;
    const std::size_t all = FEW_COLS ? in.rows() : in.cols();
    const unsigned many = all - first < shape.many ? static_cast<unsigned>(all - first) : shape.many;

    T loaded[kSkinnyEach];  // all loads are issued before the first value is needed
#pragma unroll
    for (int k = 0; k < kSkinnyEach; ++k) {
        const SkinnyPlace at = skinny_place<FEW_COLS>(shape, k);
        if (at.few < shape.few && at.many < many)
            loaded[k] = FEW_COLS ? in(first + at.many, at.few) : in(at.few, first + at.many);
    }
#pragma unroll
    for (int k = 0; k < kSkinnyEach; ++k) {
        const SkinnyPlace at = skinny_place<FEW_COLS>(shape, k);
        if (at.few < shape.few && at.many < many) tile[at.few * shape.stride + at.many] = loaded[k];
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kSkinnyEach; ++k) {
        const SkinnyPlace at = skinny_place<!FEW_COLS>(shape, k);
        if (at.few >= shape.few || at.many >= many) continue;
        const T value = tile[at.few * shape.stride + at.many];
        (FEW_COLS ? out(at.few, first + at.many) : out(first + at.many, at.few)) = value;
    }
}

template <class T>
void launch_skinny(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    const SkinnyTile shape(std::min(in.rows(), in.cols()));
    const bool few_cols = in.cols() <= in.rows();
    const unsigned blocks =
        course::blocks_for(few_cols ? in.rows() : in.cols(), static_cast<int>(shape.many));
    if (few_cols) {
        transpose_skinny<true, T><<<blocks, kThreads, 0, stream>>>(in, out, shape);
    } else {
        transpose_skinny<false, T><<<blocks, kThreads, 0, stream>>>(in, out, shape);
    }
}

}  // namespace day06

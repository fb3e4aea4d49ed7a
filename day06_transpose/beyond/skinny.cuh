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

constexpr unsigned kMostFew = 32;           // rows or columns of the short side
constexpr unsigned kSkinnyElements = 4096;  // of a tile
constexpr unsigned kFewElements = 1024;     // of a tile of a small matrix, which several blocks share

// A tile of ELEMENTS elements at most has all `few` of the short side, and `many` of the long one,
// a multiple of 32 * PACK. A thread moves PACK adjacent elements at a time.
template <unsigned ELEMENTS, unsigned PACK>
struct SkinnyTile {
    static constexpr unsigned kRow = 32 * PACK;  // elements of a warp along the long side
    static_assert(ELEMENTS >= kMostFew * kRow,
                  "a tile has at least a row of a warp for each of the short side");

    unsigned few;
    unsigned many;
    unsigned stride;  // in shared memory, from one of the short side to the next
    // Quotients by `few` and by many / kRow, of numbers below 4096: the reciprocal times 2^20,
    // rounded up. The error is less than 4096 * 32 / 2^20, an eighth of the distance to the next
    // quotient.
    unsigned by_few;
    unsigned by_warps;

    explicit SkinnyTile(std::size_t few_of_matrix)
        : few(static_cast<unsigned>(few_of_matrix)),
          many(ELEMENTS / few / kRow * kRow),
          // With 1 to 4, 8, 11, 16 and 32 elements along the short side, 32 consecutive ones lie
          // in 32 banks; with others two may share a bank.
          stride(many + course::ceil_div(32U, few)),
          by_few(course::ceil_div(1U << 20, few)),
          by_warps(course::ceil_div(1U << 20, many / kRow)) {}
};

struct SkinnyPlace {
    unsigned few;
    unsigned many;
};

// Element j of pack k of this thread. ALONG_FEW: adjacent elements are adjacent along the short
// side, and then the next of the long one. Otherwise they are adjacent along the long side.
template <bool ALONG_FEW, unsigned ELEMENTS, unsigned PACK>
__device__ SkinnyPlace skinny_place(const SkinnyTile<ELEMENTS, PACK>& shape, unsigned k, unsigned j) {
    const unsigned pack = k * kThreads + threadIdx.x;
    if constexpr (ALONG_FEW) {
        const unsigned i = pack * PACK + j;
        const unsigned many = i * shape.by_few >> 20;
        return {i - many * shape.few, many};
    } else {
        const unsigned few = (pack / 32) * shape.by_warps >> 20;
        return {few, pack * PACK + j - few * shape.many};
    }
}

// Idea: a tile is as long as it must be to have ELEMENTS elements. On the long side of `in` or of
// `out` a warp moves adjacent elements of a row, on the other one elements of several short rows,
// which are adjacent in memory if there is no padding between them.
// Cost removed: lanes without an element, and blocks that move few of them.
// Still limits it: not profiled.
//
// FEW_COLS: the short side of `in` are its columns. PACK: elements that a thread moves at a time,
// where both matrices allow it (see pairs_aligned).
template <bool FEW_COLS, unsigned ELEMENTS, unsigned PACK, class T>
__global__ void __launch_bounds__(kThreads)
    transpose_skinny(DeviceMatrix<const T> in, DeviceMatrix<T> out, SkinnyTile<ELEMENTS, PACK> shape) {
    constexpr int kEach = ELEMENTS / kThreads / PACK;  // packs of a thread
    __shared__ T tile[ELEMENTS + 2 * kMostFew];        // few * stride + many
    const std::size_t first = std::size_t{blockIdx.x} * shape.many;
    const std::size_t all = FEW_COLS ? in.rows() : in.cols();
    const unsigned many = all - first < shape.many ? static_cast<unsigned>(all - first) : shape.many;
    const auto there = [&](SkinnyPlace at) { return at.few < shape.few && at.many < many; };

    const auto source = [&](SkinnyPlace at) {
        return FEW_COLS ? &in(first + at.many, at.few) : &in(at.few, first + at.many);
    };
    const auto target = [&](SkinnyPlace at) {
        return FEW_COLS ? &out(at.few, first + at.many) : &out(first + at.many, at.few);
    };

    T loaded[kEach][PACK];  // all loads are issued before the first value is needed
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        if constexpr (PACK > 1) {
            if (there(skinny_place<FEW_COLS>(shape, k, PACK - 1))) {
                const auto pack = course::Pack<T, PACK>::load(source(skinny_place<FEW_COLS>(shape, k, 0)));
                for (unsigned j = 0; j < PACK; ++j)
                    loaded[k][j] = pack.value[j];
                continue;
            }
        }
        for (unsigned j = 0; j < PACK; ++j) {
            const SkinnyPlace at = skinny_place<FEW_COLS>(shape, k, j);
            if (there(at)) loaded[k][j] = *source(at);
        }
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
#pragma unroll
        for (unsigned j = 0; j < PACK; ++j) {
            const SkinnyPlace at = skinny_place<FEW_COLS>(shape, k, j);
            if (there(at)) tile[at.few * shape.stride + at.many] = loaded[k][j];
        }
    }
    __syncthreads();
    const auto turned = [&](SkinnyPlace at) { return tile[at.few * shape.stride + at.many]; };
#pragma unroll 4
    for (int k = 0; k < kEach; ++k) {
        if constexpr (PACK > 1) {
            if (there(skinny_place<!FEW_COLS>(shape, k, PACK - 1))) {
                course::Pack<T, PACK> pack;
                for (unsigned j = 0; j < PACK; ++j)
                    pack.value[j] = turned(skinny_place<!FEW_COLS>(shape, k, j));
                pack.store(target(skinny_place<!FEW_COLS>(shape, k, 0)));
                continue;
            }
        }
        for (unsigned j = 0; j < PACK; ++j) {
            const SkinnyPlace at = skinny_place<!FEW_COLS>(shape, k, j);
            if (there(at)) *target(at) = turned(at);
        }
    }
}

// Whether pairs of elements can be moved at once. `narrow` has short rows, which must follow each
// other without padding; in `wide` each row must start at a multiple of a pair.
template <class T, class U>
bool pairs_aligned(DeviceMatrix<T> narrow, DeviceMatrix<U> wide) {
    return narrow.leading_dimension() == narrow.cols() && course::is_aligned(narrow.data(), 2 * sizeof(T)) &&
           (wide.rows() == 1 || wide.leading_dimension() % 2 == 0) &&
           course::is_aligned(wide.data(), 2 * sizeof(T));
}

template <bool FEW_COLS, unsigned ELEMENTS, unsigned PACK, class T>
void launch_skinny_tiles(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    const SkinnyTile<ELEMENTS, PACK> shape(std::min(in.rows(), in.cols()));
    const unsigned blocks =
        course::blocks_for(FEW_COLS ? in.rows() : in.cols(), static_cast<int>(shape.many));
    transpose_skinny<FEW_COLS, ELEMENTS, PACK, T><<<blocks, kThreads, 0, stream>>>(in, out, shape);
}

template <bool FEW_COLS, class T>
void launch_skinny_sides(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    // With fewer tiles than multiprocessors, smaller ones are done sooner.
    if (in.rows() * in.cols() < kSkinnyElements * course::multiprocessors())
        return launch_skinny_tiles<FEW_COLS, kFewElements, 1>(in, out, stream);
    if constexpr (sizeof(T) == 2) {
        if (FEW_COLS ? pairs_aligned(in, out) : pairs_aligned(out, in))
            return launch_skinny_tiles<FEW_COLS, kSkinnyElements, 2>(in, out, stream);
    }
    launch_skinny_tiles<FEW_COLS, kSkinnyElements, 1>(in, out, stream);
}

// A row and a column without padding are the same memory, so one is copied to the other.
template <class T>
void launch_skinny(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    const bool is_column = in.cols() == 1 && in.leading_dimension() == 1;
    const bool to_column = out.cols() == 1 && out.leading_dimension() == 1;
    if ((in.rows() == 1 || is_column) && (out.rows() == 1 || to_column)) {
        CUDA_CHECK(cudaMemcpyAsync(out.data(), in.data(), in.rows() * in.cols() * sizeof(T),
                                   cudaMemcpyDeviceToDevice, stream));
    } else if (in.cols() <= in.rows()) {
        launch_skinny_sides<true>(in, out, stream);
    } else {
        launch_skinny_sides<false>(in, out, stream);
    }
}

}  // namespace day06

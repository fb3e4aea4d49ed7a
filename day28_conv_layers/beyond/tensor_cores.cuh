// Day 28, beyond: implicit GEMM on tensor cores, channels last.
//
//   y (NPQ x K) = columns (NPQ x RSC) times w^T (RSC x K)
//
// With x as NHWC, the C values of a pixel are adjacent in memory, and so are the C values of a
// filter's element with w as KRSC. So the depth has c as its fastest index, and a copy moves 16
// bytes: 8 channels in BF16, 4 in TF32. Day 40 builds the main loop step by step.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/tile/tile_copies.cuh"
#include "layer.cuh"
#include "taps.cuh"

namespace day28 {

// 128 pixels x 64 filters per block of four warps, 128 bytes of the depth at a time, 64 x 32 per
// warp. Three such blocks fit on an SM of an H100; there would be too few larger tiles for the
// later layers of a network, whose images are small. A chunk is 16 bytes: what cp.async copies and
// what ldmatrix reads as a row.
template <class Type>
struct TensorTile {
    using T = Type;
    static constexpr int BM = 128;
    static constexpr int BN = 64;
    static constexpr int BK = 128 / sizeof(T);
    static constexpr int WM = 64;
    static constexpr int WN = 32;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
    static constexpr int STAGES = 3;
    static constexpr int BLOCKS = 3;  // on an SM
    static constexpr bool SWIZZLED = true;
    static constexpr int IN_CHUNK = course::kInChunk<T>;
    static constexpr int ROWS_AT_ONCE = THREADS / 8;  // eight threads copy the 128 bytes of a row
};

template <class S>
struct TensorStage {
    course::SharedTile<S, S::BM, S::BK> pixels;
    course::SharedTile<S, S::BN, S::BK> filters;
};

// A thread's copies of both operands, one stage after the other. It has the same chunk of every
// ROWS_AT_ONCE-th row; its place (r, s, c) in the filter is the same for all of them.
template <class S>
struct TensorCopies {
    using T = typename S::T;
    static constexpr int kPixels = S::BM / S::ROWS_AT_ONCE;
    static constexpr int kFilters = S::BN / S::ROWS_AT_ONCE;

    const Shape& shape;
    const T* x;
    const T* w;
    int row;             // the first of this thread in a tile
    int chunk;           // which of the eight chunks of a row
    int r, s, c;         // of this chunk, in the next stage
    int first[kPixels];  // offset in x of the element (r, s, c) = 0 under each pixel
    int top[kPixels];    // its row and column in the image
    int left[kPixels];
    int filter;  // the first one

    __device__ TensorCopies(const Shape& shape_, const T* x_, const T* w_, int first_pixel, int first_k)
        : shape(shape_), x(x_), w(w_) {
        row = static_cast<int>(threadIdx.x) / 8;
        chunk = static_cast<int>(threadIdx.x) % 8;
        const int depth = chunk * S::IN_CHUNK;
        c = depth % shape.c;
        s = depth / shape.c % shape.s;
        r = depth / shape.c / shape.s;
        filter = first_k + row;
#pragma unroll
        for (int i = 0; i < kPixels; ++i) {
            const int pixel = first_pixel + row + i * S::ROWS_AT_ONCE;
            const int n = pixel / shape.plane();
            top[i] =
                n < shape.n ? pixel % shape.plane() / shape.q() * shape.stride - shape.padding : kNowhere;
            left[i] = pixel % shape.q() * shape.stride - shape.padding;
            first[i] = n < shape.n ? ((n * shape.h + top[i]) * shape.w + left[i]) * shape.c : 0;
        }
    }

    // Out-of-range chunks are zero-filled: pixels in the padding, filters and depth beyond the
    // last.
    __device__ void issue(TensorStage<S>& stage) {
        const bool in_filter = r < shape.r;
        const std::ptrdiff_t offset = (r * shape.w + s) * shape.c + c;
#pragma unroll
        for (int i = 0; i < kPixels; ++i) {
            const bool inside = in_filter &&
                                static_cast<unsigned>(top[i] + r) < static_cast<unsigned>(shape.h) &&
                                static_cast<unsigned>(left[i] + s) < static_cast<unsigned>(shape.w);
            course::ptx::cp_async_16(stage.pixels.chunk(row + i * S::ROWS_AT_ONCE, chunk),
                                     x + first[i] + offset, inside ? 16 : 0);
        }
        const std::ptrdiff_t depth = (r * shape.s + s) * shape.c + c;
#pragma unroll
        for (int i = 0; i < kFilters; ++i) {
            const int k = filter + i * S::ROWS_AT_ONCE;
            course::ptx::cp_async_16(stage.filters.chunk(row + i * S::ROWS_AT_ONCE, chunk),
                                     w + std::ptrdiff_t{k} * shape.filter() + depth,
                                     in_filter && k < shape.k ? 16 : 0);
        }
        c += S::BK;
        while (c >= shape.c) {
            c -= shape.c;
            if (++s == shape.s) {
                s = 0;
                ++r;
            }
        }
    }
};

// Fragments of floats, rounded to TF32; BF16 needs no rounding.
template <class T, int kRegisters>
__device__ void round_fragment(unsigned (&fragment)[kRegisters]) {
    if constexpr (std::is_same_v<T, float>) {
#pragma unroll
        for (unsigned& bits : fragment)
            bits = course::ptx::to_tf32(__uint_as_float(bits));
    }
}

// Two chunks of depth: 16 of BF16, 8 of TF32. Both fragments have the same layout in memory:
// ldmatrix loads rows of 16 bytes, and gives lane 4 g + t the t-th word of row g.
template <class S>
__device__ void multiply_chunks(TensorStage<S>& stage, int chunk, int warp_row, int warp_col,
                                float (&sums)[S::WM / 16][S::WN / 8][4]) {
    using T = typename S::T;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    unsigned a[S::WM / 16][4];
    unsigned b[S::WN / 8][2];
#pragma unroll
    for (int i = 0; i < S::WM / 16; ++i) {
        course::ptx::ldmatrix_x4(a[i], stage.pixels.chunk(warp_row + i * 16 + lane % 16, chunk + lane / 16));
        round_fragment<T>(a[i]);
    }
#pragma unroll
    for (int j = 0; j < S::WN / 8; j += 2) {
        unsigned pair[4];  // filters 0 to 7 and 8 to 15, both with the two chunks
        course::ptx::ldmatrix_x4(
            pair, stage.filters.chunk(warp_col + j * 8 + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2));
        round_fragment<T>(pair);
        b[j][0] = pair[0];
        b[j][1] = pair[1];
        b[j + 1][0] = pair[2];
        b[j + 1][1] = pair[3];
    }
#pragma unroll
    for (int i = 0; i < S::WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < S::WN / 8; ++j) {
            if constexpr (std::is_same_v<T, float>) {
                course::ptx::mma_m16n8k8_tf32(sums[i][j], a[i], b[j]);
            } else {
                course::ptx::mma_m16n8k16_bf16(sums[i][j], a[i], b[j]);
            }
        }
}

// Two adjacent outputs. pairs: K is even and y is aligned to both.
template <class T>
__device__ void store_two(T* y, float first, float second, bool pairs, bool has_second) {
    if (pairs) {
        if constexpr (std::is_same_v<T, float>) {
            *reinterpret_cast<float2*>(y) = make_float2(first, second);
        } else {
            *reinterpret_cast<__nv_bfloat162*>(y) = __floats2bfloat162_rn(first, second);
        }
        return;
    }
    y[0] = static_cast<T>(first);
    if (has_second) y[1] = static_cast<T>(second);
}

// Idea: 128 pixels x 64 filters on tensor cores. A row of the left tile is a pixel: 128 bytes of
// channels under one element of the filter, copied by eight threads. Each thread computes the row
// and the column of its pixel in the image, and zero-fills where the filter's element is in the
// padding.
// Cost removed: FP32 multiply-adds; and 4-byte copies. A copy of 16 bytes checks its bounds once.
// Still limits it: latency (counters: no unit above 54 %, tensor cores 40 %): mma.sync takes its
// operands from registers, so a warp loads and waits before it multiplies. Hopper's wgmma reads
// both from shared memory (day 41).
template <class S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    conv_tensor_cores(const typename S::T* x, const typename S::T* w, typename S::T* y, Shape shape,
                      bool pairs) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<TensorStage<S>*>(memory);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first_pixel = static_cast<int>(blockIdx.x) * S::BM;
    const int first_k = static_cast<int>(blockIdx.y) * S::BN;
    const int warp_row = warp / S::WARPS_N * S::WM;
    const int warp_col = warp % S::WARPS_N * S::WN;
    TensorCopies<S> copies(shape, x, w, first_pixel, first_k);

    float sums[S::WM / 16][S::WN / 8][4] = {};
    const int steps = course::ceil_div(shape.filter(), S::BK);
    for (int step = 0; step < S::STAGES - 1; ++step) {
        if (step < steps) copies.issue(stages[step]);
        course::ptx::cp_async_commit();
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        course::ptx::cp_async_wait<S::STAGES - 2>();
        __syncthreads();  // the stage is complete, and the one before it is safe to overwrite
        const int ahead = step + S::STAGES - 1;
        if (ahead < steps) copies.issue(stages[ahead % S::STAGES]);
        course::ptx::cp_async_commit();
#pragma unroll
        for (int chunk = 0; chunk < 8; chunk += 2)
            multiply_chunks<S>(stages[step % S::STAGES], chunk, warp_row, warp_col, sums);
    }

    // Lane 4 g + t has columns 2 t and 2 t + 1 of rows g and g + 8.
    const int pixels = shape.n * shape.plane();
#pragma unroll
    for (int i = 0; i < S::WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < S::WN / 8; ++j) {
            const int pixel = first_pixel + warp_row + i * 16 + lane / 4;
            const int k = first_k + warp_col + j * 8 + lane % 4 * 2;
            if (k >= shape.k) continue;
            typename S::T* const out = y + static_cast<std::ptrdiff_t>(pixel) * shape.k + k;
            const bool has_second = k + 1 < shape.k;
            if (pixel < pixels) store_two(out, sums[i][j][0], sums[i][j][1], pairs, has_second);
            if (pixel + 8 < pixels)
                store_two(out + 8 * std::ptrdiff_t{shape.k}, sums[i][j][2], sums[i][j][3], pairs, has_second);
        }
}

template <class S>
constexpr std::size_t kSharedBytes = sizeof(TensorStage<S>) * S::STAGES;

// course::launch also asks for more than 48 KB of shared memory.
template <class T>
void launch_conv_tensor_cores(const T* x, const T* w, T* y, const Shape& shape, cudaStream_t stream) {
    using S = TensorTile<T>;
    const bool pairs = shape.k % 2 == 0 && course::is_aligned(y, 2 * sizeof(T));
    const dim3 grid(course::ceil_div(shape.n * shape.plane(), S::BM), course::ceil_div(shape.k, S::BN));
    course::launch(conv_tensor_cores<S>,
                   {.grid = grid, .block = S::THREADS, .shared_bytes = kSharedBytes<S>, .stream = stream}, x,
                   w, y, shape, pairs);
}

}  // namespace day28

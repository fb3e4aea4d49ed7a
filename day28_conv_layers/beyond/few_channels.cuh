// Day 28, beyond: the gradient with respect to an input of few channels, such as that of a
// network's first layer.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "backward.cuh"
#include "common/device/grid.hpp"
#include "common/device/ptx.cuh"
#include "layer.cuh"

namespace day28 {

// A stride of s splits dx into s x s phases. Row i of a phase is row i stride + phase_row - padding
// of dx. Tap j, row phase_row + j stride of a filter, multiplies row i - j of dy. The same holds
// for columns.

// The weights of all channels of x, four at most, are one 16-byte load.
constexpr int kMostChannels = 4;
// A phase has at most 8 x 8 taps.
constexpr int kMostTaps = 8;

// A block computes 32 x 32 pixels of a phase: a column per lane, eight rows per warp. It loads
// patches of dy, and the weights for them, four filters at a time.
constexpr int kPhaseTile = 32;
constexpr int kRowsPerThread = 8;
constexpr int kWarps = kPhaseTile / kRowsPerThread;
constexpr int kDepth = 4;
constexpr int kPatch = kPhaseTile + kMostTaps - 1;

// The tiles of all phases of an image.
struct PhaseTiles {
    int down;
    int across;
    int phases;  // stride * stride
};

// Idea: a thread computes all C channels of eight pixels of dx, below each other in a phase. An
// element of dy, loaded once, serves all C channels; the weights of a tap, also loaded once, serve
// eight rows. Adjacent blocks compute the phases of the same part of dx, so they share dy in L2.
// Cost removed: the empty rows of implicit GEMM's tiles; the kernels that rotate the filters and
// interleave the phases in dx.
// Still limits it: asynchronous copies of only 4 bytes.
template <int C>
__global__ void __launch_bounds__(kPhaseTile* kWarps, 8)
    input_gradient_few_channels(const float* dy, const float* w, float* dx, Shape shape, PhaseTiles tiles) {
    __shared__ float patches[kDepth][kPatch][kPatch];
    __shared__ float4 weights[kDepth][kMostTaps][kMostTaps];
    int index = static_cast<int>(blockIdx.x);
    const int phase_row = index % shape.stride;
    const int phase_col = index / shape.stride % shape.stride;
    index /= tiles.phases;
    const int first_col = index % tiles.across * kPhaseTile;
    const int first_row = index / tiles.across % tiles.down * kPhaseTile;
    const int n = index / tiles.across / tiles.down;
    // Taps of this phase: none, if the stride is larger than the filter.
    const int rows = course::ceil_div(max(shape.r - phase_row, 0), shape.stride);
    const int cols = course::ceil_div(max(shape.s - phase_col, 0), shape.stride);
    const std::ptrdiff_t plane = shape.plane();  // four of them may be more than an int holds
    const int lane = static_cast<int>(threadIdx.x);
    const int warp = static_cast<int>(threadIdx.y);

    float sums[kRowsPerThread][C] = {};
    for (int first_k = 0; first_k < shape.k; first_k += kDepth) {
        const int depth = min(kDepth, shape.k - first_k);
        for (int i = warp; i < kPhaseTile + rows - 1; i += kWarps)
            for (int j = lane; j < kPhaseTile + cols - 1; j += kPhaseTile) {
                const int p = first_row - (rows - 1) + i;
                const int q = first_col - (cols - 1) + j;
                const bool inside = p >= 0 && p < shape.p() && q >= 0 && q < shape.q();
                const float* const first =
                    dy + (n * shape.k + first_k) * plane + std::ptrdiff_t{p} * shape.q() + q;
#pragma unroll
                for (int d = 0; d < kDepth; ++d)
                    course::ptx::cp_async_4(&patches[d][i][j], first + d * plane, inside && d < depth);
            }
        for (int i = warp * kPhaseTile + lane; i < depth * rows * cols; i += kPhaseTile * kWarps) {
            const int d = i / (rows * cols);
            const int r = phase_row + i / cols % rows * shape.stride;
            const int s = phase_col + i % cols * shape.stride;
            float of_channel[kMostChannels] = {};
            for (int c = 0; c < C; ++c)
                of_channel[c] = w[(((first_k + d) * C + c) * shape.r + r) * shape.s + s];
            weights[d][i / cols % rows][i % cols] =
                make_float4(of_channel[0], of_channel[1], of_channel[2], of_channel[3]);
        }
        course::ptx::cp_async_commit();
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the patches and the weights are complete
        for (int d = 0; d < depth; ++d)
            for (int j = 0; j < cols; ++j) {
                // Sliding window: the rows of dy that this thread's rows of dx need, from the last
                // tap on. Each further tap needs one more row.
                const float(*const top)[kPatch] = &patches[d][warp * kRowsPerThread];
                float column[kRowsPerThread + kMostTaps - 1];
#pragma unroll
                for (int t = 0; t < kRowsPerThread - 1; ++t)
                    column[t] = top[t][lane + cols - 1 - j];
#pragma unroll
                for (int i = 0; i < kMostTaps; ++i) {
                    if (i == rows) break;
                    column[i + kRowsPerThread - 1] = top[i + kRowsPerThread - 1][lane + cols - 1 - j];
                    const float4 four = weights[d][rows - 1 - i][j];
                    const float of_channel[kMostChannels] = {four.x, four.y, four.z, four.w};
#pragma unroll
                    for (int t = 0; t < kRowsPerThread; ++t)
#pragma unroll
                        for (int c = 0; c < C; ++c)
                            sums[t][c] += column[i + t] * of_channel[c];
                }
            }
        __syncthreads();  // safe to overwrite
    }

    const int col = (first_col + lane) * shape.stride + phase_col - shape.padding;
    if (col < 0 || col >= shape.w) return;
    for (int t = 0; t < kRowsPerThread; ++t) {
        const int row = (first_row + warp * kRowsPerThread + t) * shape.stride + phase_row - shape.padding;
        if (row < 0 || row >= shape.h) continue;
        for (int c = 0; c < C; ++c)
            dx[n * shape.image() + (c * shape.h + row) * shape.w + col] = sums[t][c];
    }
}

template <int C>
void launch_few_channels_of(const float* dy, const float* w, float* dx, const Shape& shape,
                            cudaStream_t stream) {
    const PhaseTiles tiles{course::ceil_div(rows_of_phase(shape), kPhaseTile),
                           course::ceil_div(cols_of_phase(shape), kPhaseTile), shape.stride * shape.stride};
    const std::size_t blocks = std::size_t{1} * tiles.down * tiles.across * tiles.phases * shape.n;
    input_gradient_few_channels<C>
        <<<course::blocks_for(blocks, 1), dim3(kPhaseTile, kWarps), 0, stream>>>(dy, w, dx, shape, tiles);
}

inline void launch_few_channels(const float* dy, const float* w, float* dx, const Shape& shape,
                                cudaStream_t stream) {
    static_assert(kMostChannels == 4);
    switch (shape.c) {
        case 1:
            return launch_few_channels_of<1>(dy, w, dx, shape, stream);
        case 2:
            return launch_few_channels_of<2>(dy, w, dx, shape, stream);
        case 3:
            return launch_few_channels_of<3>(dy, w, dx, shape, stream);
        default:
            return launch_few_channels_of<4>(dy, w, dx, shape, stream);
    }
}

}  // namespace day28

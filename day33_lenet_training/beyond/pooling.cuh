// Day 33, beyond: max-pooling with fewer loads, and average pooling. These kernels do little
// arithmetic, so all of them are memory-bound.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "lenet_training.cuh"

namespace day33 {

// The largest of some elements, and its place.
struct Largest {
    float value = -INFINITY;
    int place = -1;  // there was no element yet

    // NaN counts as larger than all, and of equal elements the first stays.
    __device__ void or_later(float later, int at) {
        if (place >= 0 && (later <= value || isnan(value))) return;
        value = later;
        place = at;
    }
};

// The largest of the columns of two windows, four elements from `four` on. With windows of 3 x 3,
// an element to the left belongs to the first one, and the second element to both.
template <int kWindow>
__device__ void largest_of_columns(const float* four, bool has_left, Largest (&largest)[2]) {
    const auto elements = course::Pack<float, 4>::load(four);
    largest[0] = largest[1] = Largest{};
    if constexpr (kWindow == 3) {
        if (has_left) largest[0].or_later(four[-1], 0);
        largest[1].or_later(elements.value[1], 0);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
        largest[j / 2].or_later(elements.value[j], kWindow - 2 + j % 2);
}

constexpr int kRowsOfThread = 8;  // rows of the output

// For windows of 2 x 2, and of 3 x 3 with a padding of 1, both with a stride of 2.
// Idea: a thread has two windows side by side, and goes down eight rows of windows. A load of 16
// bytes has all their columns of a row but one. If windows overlap, the last row of one is the
// first of the next, so its largest elements are kept.
// Cost removed: most of the 4-byte loads, and most divisions. There were four divisions for each
// output, now there are four for 16.
// Still limits it: memory bandwidth.
template <int kWindow>
__global__ void __launch_bounds__(kNetThreads)
    max_pool_rows(const float* x, float* y, std::uint8_t* place, PoolShape shape) {
    constexpr int kShared = kWindow - 2;  // rows that a window has in common with the next one
    const int pairs = shape.w / 4;
    const int parts = course::ceil_div(shape.p(), kRowsOfThread);
    const int i = thread_of_grid();
    if (i >= shape.planes * parts * pairs) return;
    const int pair = i % pairs;
    const int first_p = i / pairs % parts * kRowsOfThread;
    const int plane = i / pairs / parts;
    const float* const columns = x + static_cast<std::ptrdiff_t>(plane) * shape.h * shape.w + pair * 4;

    Largest of_row[2];  // in the padding above the first row there is no element
    if (kShared > 0 && first_p > 0)
        largest_of_columns<kWindow>(columns + (2 * first_p - 1) * shape.w, pair > 0, of_row);
    for (int p = first_p; p < min(first_p + kRowsOfThread, shape.p()); ++p) {
        Largest largest[2];
        if (kShared > 0) {
            largest[0] = of_row[0];
            largest[1] = of_row[1];
        }
#pragma unroll
        for (int r = kShared; r < kWindow; ++r) {
            const int row = 2 * p + r - kShared;
            if (row >= shape.h) continue;  // the padding below
            largest_of_columns<kWindow>(columns + row * shape.w, pair > 0, of_row);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                largest[j].or_later(of_row[j].value, r * kWindow + of_row[j].place);
        }
        const std::ptrdiff_t output =
            (static_cast<std::ptrdiff_t>(plane) * shape.p() + p) * shape.q() + 2 * pair;
        course::Pack<float, 2>{{largest[0].value, largest[1].value}}.store(y + output);
        *reinterpret_cast<uchar2*>(place + output) = make_uchar2(
            static_cast<unsigned char>(largest[0].place), static_cast<unsigned char>(largest[1].place));
    }
}

template <int kWindow>
void launch_max_pool_rows(const float* x, float* y, std::uint8_t* place, const PoolShape& shape,
                          cudaStream_t stream) {
    const std::size_t threads =
        std::size_t{1} * shape.planes * course::ceil_div(shape.p(), kRowsOfThread) * (shape.w / 4);
    max_pool_rows<kWindow>
        <<<course::blocks_for(threads, kNetThreads), kNetThreads, 0, stream>>>(x, y, place, shape);
}

// Idea: as max_pool_windows, with a sum. The padding counts as zeros.
// Cost removed: the stored place. The gradient of a mean needs none.
// Still limits it: memory bandwidth.
template <int kWindow>
__global__ void average_pool_windows(const float* x, float* y, PoolShape shape) {
    const int i = thread_of_grid();
    if (i >= shape.planes * shape.p() * shape.q()) return;
    const int window = kWindow > 0 ? kWindow : shape.window;
    const int plane = i / (shape.p() * shape.q());
    const int top = i / shape.q() % shape.p() * shape.stride - shape.padding;
    const int left = i % shape.q() * shape.stride - shape.padding;
    const float* const first = x + static_cast<std::ptrdiff_t>(plane) * shape.h * shape.w;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < window; ++r)
#pragma unroll
        for (int s = 0; s < window; ++s) {
            const int row = top + r;
            const int col = left + s;
            if (row >= 0 && row < shape.h && col >= 0 && col < shape.w) sum += first[row * shape.w + col];
        }
    y[i] = sum / static_cast<float>(window * window);
}

template <int kWindow>
void launch_average_pool_windows(const float* x, float* y, const PoolShape& shape, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.outputs(), kNetThreads);
    average_pool_windows<kWindow><<<grid, kNetThreads, 0, stream>>>(x, y, shape);
}

// Idea: as max_pool_gather, but every window that an element is in counts.
// Cost removed: atomic additions.
// Still limits it: memory bandwidth.
__global__ void average_pool_gather(const float* dy, float* dx, PoolShape shape) {
    const int i = thread_of_grid();
    if (i >= shape.planes * shape.h * shape.w) return;
    const int plane = i / (shape.h * shape.w);
    const Windows down =
        windows_around(i / shape.w % shape.h, shape.window, shape.padding, shape.stride, shape.p());
    const Windows across = windows_around(i % shape.w, shape.window, shape.padding, shape.stride, shape.q());
    float sum = 0;
    for (int p = down.first; p < down.end; ++p)
        for (int q = across.first; q < across.end; ++q)
            sum += dy[(plane * shape.p() + p) * shape.q() + q];
    dx[i] = sum / static_cast<float>(shape.window * shape.window);
}

inline void launch_average_pool_gather(const float* dy, float* dx, const PoolShape& shape,
                                       cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.inputs(), kNetThreads);
    average_pool_gather<<<grid, kNetThreads, 0, stream>>>(dy, dx, shape);
}

}  // namespace day33

// Day 25, beyond: masked softmax of rows that fit into the registers of a block (day 21).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "attention.cuh"

namespace day25 {

// Idea: the threads keep the row in registers, PACKS packs each.
// Cost removed: the second and the third read, and every second exponential.
// Still limits it: memory, one read and one write (counters: DRAM 85 % busy); rows longer than the
// registers.
template <int WIDTH, int PACKS>
__global__ void __launch_bounds__(kSoftmaxThreads)
    softmax_short_rows(DeviceMatrix<float> scores, MaskedRows rows) {
    __shared__ float maxima[kSoftmaxWarps];
    __shared__ float sums[kSoftmaxWarps];
    float* const row = scores.data() + blockIdx.x * scores.leading_dimension();
    const Visible visible = rows.visible(blockIdx.x, scores.cols());
    course::Pack<float, WIDTH> x[PACKS];
    const auto key = [](int pack) { return (pack * kSoftmaxThreads + threadIdx.x) * WIDTH; };

    float max = -kInfinity;
    for (int p = 0; p < PACKS; ++p)
        if (key(p) < visible.end) x[p] = course::Pack<float, WIDTH>::load(row + key(p));
    for (int p = 0; p < PACKS; ++p) {
        for (int i = 0; i < WIDTH; ++i) {
            x[p].value[i] = visible(key(p) + i) ? x[p].value[i] : -kInfinity;
            max = fmaxf(max, x[p].value[i]);
        }
    }
    const Exponential exponential(block_reduce(max, Max{}, maxima));

    float sum = 0;
    for (int p = 0; p < PACKS; ++p)
        for (int i = 0; i < WIDTH; ++i)
            sum += x[p].value[i] = exponential(x[p].value[i]);
    const float scale = Exponential::scale(block_reduce(sum, Sum{}, sums));

    for (int p = 0; p < PACKS; ++p) {
        for (int i = 0; i < WIDTH; ++i)
            x[p].value[i] = visible(key(p) + i) ? x[p].value[i] * scale : 0.0f;
        if (key(p) < scores.cols()) x[p].store(row + key(p));
    }
}

constexpr int kMostPacks = 4;  // of a thread

// `scores` has at most kMostPacks * kSoftmaxThreads * WIDTH columns.
template <int WIDTH>
void launch_softmax_short_rows(DeviceMatrix<float> scores, const MaskedRows& rows, cudaStream_t stream) {
    constexpr std::size_t kOnePack = kSoftmaxThreads * WIDTH;
    const unsigned grid = course::blocks_for(scores.rows(), 1);
    const auto kernel = scores.cols() <= kOnePack       ? softmax_short_rows<WIDTH, 1>
                        : scores.cols() <= 2 * kOnePack ? softmax_short_rows<WIDTH, 2>
                                                        : softmax_short_rows<WIDTH, kMostPacks>;
    kernel<<<grid, kSoftmaxThreads, 0, stream>>>(scores, rows);
}

}  // namespace day25

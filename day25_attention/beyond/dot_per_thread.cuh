// Day 25, beyond: the dot product of dot_separate in one kernel, still with a thread for each
// score.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "scores.cuh"

namespace day25 {

// Idea: both operations in one loop, a thread for each score.
// Cost removed: the products in memory, written and read again.
// Still limits it: latency, because the threads are few, one for each state; and the same sectors
// as in add_rows.
__global__ void score_per_thread(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                                 DeviceSpan<float> scores) {
    const std::size_t row = element();
    if (row >= scores.size()) return;
    float sum = 0;
    for (std::size_t i = 0; i < states.cols(); ++i)
        sum += hidden[i] * states(row, i);
    scores[row] = sum;
}

inline void launch_score_per_thread(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                                    DeviceSpan<float> scores, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(scores.size(), kScoreThreads);
    score_per_thread<<<grid, kScoreThreads, 0, stream>>>(hidden, states, scores);
}

}  // namespace day25

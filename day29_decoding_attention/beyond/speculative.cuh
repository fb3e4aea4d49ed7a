// Day 29, beyond: accepts or rejects proposed tokens.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/warp.cuh"

namespace day29 {

struct SpeculationTask {
    const float* draft_logits;
    const float* target_logits;
    const int* proposed;
    const float* uniform;
    int* accepted;
    int* token;
    int drafted;
    int vocabulary;
};

constexpr int kSpeculationWarps = 8;
constexpr int kSpeculationThreads = kSpeculationWarps * 32;

// Sum, or maximum, of a value of each thread, in all threads. Adds in a fixed order.
template <class Op>
__device__ float of_block(float value, Op op) {
    __shared__ float of_warp[kSpeculationWarps];
    value = course::warp_reduce(value, op);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    float result = of_warp[0];
    for (int w = 1; w < kSpeculationWarps; ++w)
        result = op(result, of_warp[w]);
    __syncthreads();  // safe to overwrite
    return result;
}
__device__ inline float sum_of_block(float value) {
    return of_block(value, [](float x, float y) { return x + y; });
}

// Of a row of logits: what its softmax needs.
struct Softmax {
    float max;
    float sum;
    __device__ float of(float logit) const { return expf(logit - max) / sum; }
};
__device__ inline Softmax softmax_of(const float* logits, int size) {
    float max = -__builtin_huge_valf();
    for (auto i = static_cast<int>(threadIdx.x); i < size; i += kSpeculationThreads)
        max = fmaxf(max, logits[i]);
    max = of_block(max, [](float x, float y) { return fmaxf(x, y); });
    float sum = 0;
    for (auto i = static_cast<int>(threadIdx.x); i < size; i += kSpeculationThreads)
        sum += expf(logits[i] - max);
    return {max, sum_of_block(sum)};
}

// Idea: a block for each sequence, which takes one position after the other, until a token is
// rejected. The next token is drawn by inverse transform: the block looks for the first token whose
// cumulated weight is above uniform times the sum of all. Each thread sums a range of adjacent
// tokens; thread 0 adds up the 256 sums to find the range; and the thread of that range looks
// through it.
// Cost removed: a step of the target for each accepted token.
// Still limits it: latency, because there is one block for each sequence. 16 sequences have 11
// times the bytes of one, and take 1.6 times as long: 672 in place of 421 µs (4 proposed tokens of
// 131,072, H200).
__global__ void __launch_bounds__(kSpeculationThreads) accept_or_reject(SpeculationTask task) {
    __shared__ float sums[kSpeculationThreads];
    __shared__ float before;
    __shared__ int range;
    const std::size_t sequence = blockIdx.x;
    const auto thread = static_cast<int>(threadIdx.x);
    const int size = task.vocabulary;
    const float* const q_rows = task.draft_logits + sequence * task.drafted * size;
    const float* const p_rows = task.target_logits + sequence * (task.drafted + 1) * size;
    const float* const uniform = task.uniform + sequence * (task.drafted + 1);

    int kept = 0;
    Softmax p{};
    Softmax q{};
    for (; kept < task.drafted; ++kept) {
        p = softmax_of(p_rows + static_cast<std::size_t>(kept) * size, size);
        q = softmax_of(q_rows + static_cast<std::size_t>(kept) * size, size);
        const int x = task.proposed[sequence * task.drafted + kept];
        if (x < 0 || x >= size) break;
        const std::size_t at = static_cast<std::size_t>(kept) * size + x;
        // The same as uniform < min(1, p / q), without the division.
        if (!(uniform[kept] * q.of(q_rows[at]) < p.of(p_rows[at]))) break;
    }
    const bool rejected = kept < task.drafted;
    const float* const p_row = p_rows + static_cast<std::size_t>(kept) * size;
    const float* const q_row = q_rows + static_cast<std::size_t>(kept) * size;
    if (!rejected) p = softmax_of(p_row, size);
    bool of_difference = rejected;
    const auto weight = [&](int i) {
        return of_difference ? fmaxf(p.of(p_row[i]) - q.of(q_row[i]), 0) : p.of(p_row[i]);
    };

    const int share = (size + kSpeculationThreads - 1) / kSpeculationThreads;
    const int first = min(thread * share, size);
    const int last = min(first + share, size);
    float sum = 0;
    for (int i = first; i < last; ++i)
        sum += weight(i);
    if (rejected && sum_of_block(sum) == 0) {  // p - q is nowhere above 0; the same for all threads
        of_difference = false;
        for (int i = first; i < last; ++i)
            sum += weight(i);
    }
    sums[thread] = sum;
    __syncthreads();
    if (thread == 0) {
        float all = 0;
        for (int t = 0; t < kSpeculationThreads; ++t)
            all += sums[t];
        const float threshold = uniform[task.drafted] * all;
        float cumulated = 0;
        range = 0;
        before = 0;
        // The last range with a weight, if rounding lets no sum be above the threshold.
        for (int t = 0; t < kSpeculationThreads; ++t) {
            if (sums[t] > 0) {
                range = t;
                before = cumulated;
            }
            cumulated += sums[t];
            if (cumulated > threshold) break;
        }
        sums[0] = threshold;
        task.accepted[sequence] = kept;
    }
    __syncthreads();
    if (thread != range) return;
    float cumulated = before;
    int chosen = 0;
    for (int i = first; i < last; ++i) {
        const float of_token = weight(i);
        if (of_token > 0) chosen = i;
        cumulated += of_token;
        if (cumulated > sums[0]) break;
    }
    task.token[sequence] = chosen;
}

inline void launch_accept(const SpeculationTask& task, unsigned batch, cudaStream_t stream) {
    accept_or_reject<<<batch, kSpeculationThreads, 0, stream>>>(task);
}

}  // namespace day29

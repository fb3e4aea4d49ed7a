// Day 27: the arguments of all kernels, and the router, which chooses the experts of each token
// (day 25).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day27 {

constexpr int kMostExperts = 256;
constexpr int kMostChosen = 8;
constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffff;

// Arguments of all kernels: a layer, and what the routing kernels make of it.
struct Task {
    const float* logits;   // [tokens, experts]
    const float* x;        // [tokens, hidden]
    const float* weights;  // [experts, hidden, width]
    float* out;            // [tokens, width]
    int tokens;
    int hidden;
    int width;
    int experts;
    int chosen;     // k
    int* choice;    // [pairs]: the expert of each pair
    float* gate;    // [pairs]
    int* counts;    // [experts, blocks of pairs]: how many; after the scan, the first place
    int* starts;    // [experts + 1]: the first place of each expert
    int* place;     // [pairs]: the place of a pair in the order by expert
    int* pair_at;   // [pairs]: the pair at a place
    float* result;  // [pairs, width]: of the pair at a place
    int* tiles;     // [experts + 1]: the first tile of each expert

    __host__ __device__ int pairs() const { return tokens * chosen; }
};

// --- The router ----------------------------------------------------------------------------------

constexpr int kBlock = 256;
static_assert(kBlock >= kMostExperts, "count_pairs: a thread for each expert");
constexpr int kWarps = kBlock / kWarpSize;
constexpr int kOfLane = kMostExperts / kWarpSize;  // experts that a lane looks at, at most
constexpr float kInfinity = __builtin_huge_valf();

struct Candidate {
    float logit;
    int expert;
    // Of equal logits, the lower expert comes first.
    __device__ bool before(const Candidate& other) const {
        return logit > other.logit || (logit == other.logit && expert < other.expert);
    }
};

// Idea: a warp for each token. Lane l has the experts l, l + 32, ... In each of k rounds the warp
// finds the best candidate, as in a reduction by shuffles (day 15), and its lane crosses it out.
// The gates are the softmax of the chosen logits.
// Cost removed: sorting all logits of a token, of which only k are needed.
// Still limits it: ALU (counters: 63 % busy; 80 % with 16,384 tokens and k = 8).
__global__ void choose_experts(Task task) {
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const int token = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarpSize);
    if (token >= task.tokens) return;  // the whole warp
    const float* const logits = task.logits + static_cast<std::size_t>(token) * task.experts;

    float own[kOfLane];  // -Inf for a NaN, which so comes last
    bool taken[kOfLane];
    for (int i = 0; i < kOfLane; ++i) {
        const int expert = i * kWarpSize + lane;
        taken[i] = expert >= task.experts;
        own[i] = taken[i] ? 0 : fmaxf(logits[expert], -kInfinity);
    }
    float max = 0;
    float sum = 0;
    float weight = 0;  // of lane j: exp of the j-th chosen logit
    for (int j = 0; j < task.chosen; ++j) {
        Candidate best = {-kInfinity, kMostExperts};  // worse than every expert
        for (int i = 0; i < kOfLane; ++i) {
            const Candidate mine = {own[i], i * kWarpSize + lane};
            if (!taken[i] && mine.before(best)) best = mine;
        }
        for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
            const Candidate other = {__shfl_xor_sync(kWholeWarp, best.logit, distance),
                                     __shfl_xor_sync(kWholeWarp, best.expert, distance)};
            if (other.before(best)) best = other;
        }
        for (int i = 0; i < kOfLane; ++i)
            taken[i] = taken[i] || best.expert == i * kWarpSize + lane;
        if (j == 0) max = best.logit == -kInfinity ? 0 : best.logit;
        // +Inf - +Inf would be NaN.
        const float exponential = best.logit == max ? 1 : expf(best.logit - max);
        sum += exponential;
        if (lane == j) {
            weight = exponential;
            task.choice[token * task.chosen + j] = best.expert;
        }
    }
    if (lane < task.chosen) task.gate[token * task.chosen + lane] = sum == 0 ? 0 : weight / sum;
}

inline void launch_router(const Task& task, cudaStream_t stream) {
    choose_experts<<<course::blocks_for(task.tokens, kWarps), kBlock, 0, stream>>>(task);
}

}  // namespace day27

// Day 3: warps and scheduling.                            PMPP chapter 4 (4th and 5th edition)
//
// A warp is 32 threads of a block with consecutive threadIdx.x. It executes one instruction at a
// time for all of its lanes. Each kernel here computes little and shows one consequence.
//
//   version          what is new                                what limits it
//   uniform          all lanes take the same way                a coefficient from shared memory per step
//   diverge_by_lane  odd lanes take another branch              shared memory, for both branches in turn
//   diverge_by_warp  the same results; whole warps branch       a coefficient from shared memory per step
//   unequal_loops    each lane has its own number of steps      shared memory; the longest lane of a warp
//   sorted_loops     the same results; equal lengths together   latency: loads through an index
//
//   chains_1 to _8   1, 2, 4, 8 independent multiply-adds       latency, then arithmetic
//
// The first five evaluate the polynomial c[0] x^(T-1) + ... + c[T-1] at many points x. The last
// four only try to keep the arithmetic units busy.
//
// Each kernel is followed by its launch.
//
//   ./course run day03                                     every version, verified and timed; occupancy
//   ./course run day03 --program                           program.cu: one polynomial, from main() to the result
//   ./course inspect day03 --only diverge_by_lane       active lanes of each line, without a GPU
#pragma once

#include <cuda_runtime.h>

#include "common/device/grid.hpp"

namespace day03 {

constexpr int kBlock = 256;  // threads of a block
constexpr int kTerms = 256;  // coefficients of a polynomial; one for each thread of a block to load

// __device__: a function that kernels call.
//
// Copies the coefficients to the block's shared memory c. The barrier holds every thread until all
// have arrived, so all threads of the block must call this, even those that have no point.
__device__ void load_coefficients(const float* coefficients, float* c) {
    c[threadIdx.x] = coefficients[threadIdx.x];
    __syncthreads();
}

// Horner's rule for the first `terms` coefficients. Each step needs the result of the one before.
__device__ float horner(const float* c, float x, int terms) {
    float y = 0;
    for (int k = 0; k < terms; ++k)
        y = y * x + c[k];
    return y;
}

// Idea: one thread per point. All lanes take kTerms steps, so they always execute the same
// instruction.
// Cost removed: the loop over the points.
// Still limits it: shared memory, which delivers a coefficient for each multiply-add (counters: 89
// % busy, FMA 45 %). The others are compared with this one.
__global__ void uniform(const float* x, const float* coefficients, float* y, int n) {
    __shared__ float c[kTerms];
    load_coefficients(coefficients, c);
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i < n) y[i] = horner(c, x[i], kTerms);
}

// A thread for each point, in whole blocks. n > 0.
inline void launch_uniform(const float* x, const float* coefficients, float* y, int n, cudaStream_t stream) {
    uniform<<<course::ceil_div(n, kBlock), kBlock, 0, stream>>>(x, coefficients, y, n);
}

// The polynomial with its coefficients in reverse order: as much work as horner().
__device__ float horner_reversed(const float* c, float x) {
    float y = 0;
    for (int k = kTerms - 1; k >= 0; --k)
        y = y * x + c[k];
    return y;
}

// Idea: even points use the polynomial, odd points the reversed one.
// Cost added: divergence. In every warp 16 lanes take each branch. The warp executes one branch
// with 16 active lanes, then the other; at the store the lanes have reconverged.
// Limits it: twice the instructions of `uniform`, and twice its reads of shared memory (87 % busy),
// for the same number of results.
__global__ void diverge_by_lane(const float* x, const float* coefficients, float* y, int n) {
    __shared__ float c[kTerms];
    load_coefficients(coefficients, c);
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i >= n) return;
    float result;
    if (i % 2 == 0) {
        result = horner(c, x[i], kTerms);
    } else {
        result = horner_reversed(c, x[i]);
    }
    y[i] = result;
}

inline void launch_diverge_by_lane(const float* x, const float* coefficients, float* y, int n,
                                   cudaStream_t stream) {
    diverge_by_lane<<<course::ceil_div(n, kBlock), kBlock, 0, stream>>>(x, coefficients, y, n);
}

// Idea: the same points, assigned differently. The first half of the block takes the block's even
// points, the second half the odd ones. The condition then depends on the warp, not on the lane.
// Cost removed: divergence. Each warp executes one branch with 32 active lanes.
// Still limits it: shared memory, as in `uniform` (counters: 87 % busy, DRAM 8 %). A warp's points
// lie two apart, so a load of x touches twice as many sectors, but there is one per 256 steps.
__global__ void diverge_by_warp(const float* x, const float* coefficients, float* y, int n) {
    __shared__ float c[kTerms];
    load_coefficients(coefficients, c);
    const int odd = threadIdx.x / (kBlock / 2);   // 0 for warps 0 to 3, 1 for warps 4 to 7
    const int pair = threadIdx.x % (kBlock / 2);  // of adjacent points
    const int i = blockIdx.x * kBlock + 2 * pair + odd;
    if (i >= n) return;
    float result;
    if (odd == 0) {
        result = horner(c, x[i], kTerms);
    } else {
        result = horner_reversed(c, x[i]);
    }
    y[i] = result;
}

inline void launch_diverge_by_warp(const float* x, const float* coefficients, float* y, int n,
                                   cudaStream_t stream) {
    diverge_by_warp<<<course::ceil_div(n, kBlock), kBlock, 0, stream>>>(x, coefficients, y, n);
}

// Idea: point i uses only the first terms[i] coefficients, 0 to kTerms.
// Cost added: a loop is a branch, too. A lane whose loop has ended is inactive until the longest
// loop of its warp has ended.
// Limits it: per warp, the maximum of 32 lengths instead of their mean. Each step still waits for
// shared memory (counters: 91 % busy, with 17.6 active lanes).
__global__ void unequal_loops(const float* x, const int* terms, const float* coefficients, float* y, int n) {
    __shared__ float c[kTerms];
    load_coefficients(coefficients, c);
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i < n) y[i] = horner(c, x[i], terms[i]);
}

inline void launch_unequal_loops(const float* x, const int* terms, const float* coefficients, float* y, int n,
                                 cudaStream_t stream) {
    unequal_loops<<<course::ceil_div(n, kBlock), kBlock, 0, stream>>>(x, terms, coefficients, y, n);
}

// Idea: `order` lists the points from the longest loop to the shortest. Thread t takes point
// order[t], so the lanes of a warp have loops of nearly equal length.
// Cost removed: idle lanes.
// Still limits it: order[t] may be any point, so x, terms and y are gathered and scattered, a
// sector per lane. On an H200 that costs far more than the idle lanes did: latency, with no unit
// above 60 % (counters: shared memory 9 % busy, and 77 % of the warps' time spent on loads).
__global__ void sorted_loops(const float* x, const int* terms, const int* order, const float* coefficients,
                             float* y, int n) {
    __shared__ float c[kTerms];
    load_coefficients(coefficients, c);
    const int t = blockIdx.x * kBlock + threadIdx.x;
    if (t >= n) return;
    const int i = order[t];
    y[i] = horner(c, x[i], terms[i]);
}

inline void launch_sorted_loops(const float* x, const int* terms, const int* order, const float* coefficients,
                                float* y, int n, cudaStream_t stream) {
    sorted_loops<<<course::ceil_div(n, kBlock), kBlock, 0, stream>>>(x, terms, order, coefficients, y, n);
}

// Idea: the thread's multiply-adds form kChains independent chains. Within a chain each waits for
// the one before. Different chains do not wait for each other, so the warp issues one multiply-add
// after the other.
// Cost removed: latency. One chain needs many warps to keep the scheduler busy; eight need few.
// Still limits it: with few warps and chains latency, with enough the rate of the multiply-adds
// (counters, 4 warps per SM: FMA 20 % busy with one chain, 84 % with eight).
//
// Chain k of thread t starts at t % 1000 + k and takes `multiply_adds / kChains` steps of y = y * a
// + b.
template <int kChains>
__global__ void chains(float* out, int multiply_adds, float a, float b) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    float y[kChains];
    for (int k = 0; k < kChains; ++k)
        y[k] = static_cast<float>(t % 1000 + k);
#pragma unroll 8
    for (int step = 0; step < multiply_adds / kChains; ++step) {
        for (int k = 0; k < kChains; ++k)
            y[k] = y[k] * a + b;
    }
    float sum = 0;
    for (int k = 0; k < kChains; ++k)
        sum += y[k];
    out[t] = sum;
}

// One block per SM, or two of 32 warps each: a block has at most 32 warps.
template <int kChains>
void launch_chains(float* out, int warps_per_sm, int multiply_adds, cudaStream_t stream) {
    const int blocks_per_sm = warps_per_sm > 32 ? 2 : 1;
    const unsigned blocks = course::multiprocessors() * static_cast<unsigned>(blocks_per_sm);
    // Multiplier and summand are arguments, so the compiler cannot replace the chain by its result.
    chains<kChains><<<blocks, static_cast<unsigned>(warps_per_sm * 32 / blocks_per_sm), 0, stream>>>(
        out, multiply_adds, 1, 1);
}

}  // namespace day03

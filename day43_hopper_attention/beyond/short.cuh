// Day 43, beyond: the versions for short sequences: blocks of 64 rows, several on an SM, and keys
// shared between warpgroups.
//
// Long sequences need tall tiles, which load K and V less often. A short sequence has few of them.
// 4x16x512 has 256 tiles of 128 rows for 132 SMs, and each SM starts and ends two of them with
// nothing to overlap. 1x8x512 has 32, so that 100 SMs have no work at all.
#pragma once

#include "common/device/launch.hpp"
#include "hopper_attention.cuh"

namespace day43 {

// Keys of a tile, and blocks of an SM, as registers and shared memory allow. With a head dimension
// of 64, a block of one warpgroup has 40 KB and 168 registers per thread; with 128, it has 48 KB
// and 168 registers, or, if there are four blocks, 128.
template <int D, int GROUPS>
constexpr int kShortKeys = D == 64 || GROUPS > 1 ? 128 : 64;

// A tile of K and one of V for each warpgroup, and barriers of its own.
template <class T, int D, int GROUPS>
struct Shares {
    Box<T, D, kRows> q;
    struct Share {
        Box<T, D, kShortKeys<D, GROUPS>> k;
        Box<T, D, kShortKeys<D, GROUPS>> v;
    } share[GROUPS];
    // Of each thread's two rows.
    float max[GROUPS][2][kWarpgroup];
    float sum[GROUPS][2][kWarpgroup];
    ptx::MBarrier q_full;
    ptx::MBarrier k_full[GROUPS];
    ptx::MBarrier v_full[GROUPS];
};

// __syncthreads() for one warpgroup of the block. Barrier 0 is that of __syncthreads().
__device__ inline void group_barrier(int group) {
    ptx::named_barrier(1 + group, kWarpgroup);
}

// Adds the results of the other warpgroups to those of warpgroup 0. All have the same rows, but
// other keys, so the sums are rescaled to the larger maximum first. Thread t of warpgroup 0 adds
// the sums of thread t of each other one, so the order in shared memory is free. Register i of all
// threads is contiguous there, so there are no bank conflicts.
template <class T, int D, int GROUPS>
__device__ void combine(Shares<T, D, GROUPS>& shares, int group, OnlineSoftmax<>& softmax,
                        float (&out)[D / 2]) {
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const auto sums_of = [&](int g) { return reinterpret_cast<float*>(&shares.share[g]) + thread; };
    static_assert(sizeof(shares.share[0]) >= D / 2 * kWarpgroup * sizeof(float));
    __syncthreads();  // K and V are safe to overwrite
    if (group > 0) {
        for (int h = 0; h < 2; ++h) {
            shares.max[group][h][thread] = softmax.max[h];
            shares.sum[group][h][thread] = softmax.sum[h];
        }
#pragma unroll
        for (int i = 0; i < D / 2; ++i)
            sums_of(group)[i * kWarpgroup] = out[i];
    }
    __syncthreads();
    if (group > 0) return;
    for (int g = 1; g < GROUPS; ++g) {
        float own[2];
        float others[2];
        for (int h = 0; h < 2; ++h) {
            const float other = shares.max[g][h][thread];
            const float highest = fmaxf(softmax.max[h], other);
            // -Inf: neither has a key for this row. All sums are 0, and -Inf - -Inf would be NaN.
            const float shift = highest == -kInfinity ? 0.0f : highest;
            own[h] = ptx::exp2_approx(softmax.max[h] - shift);
            others[h] = ptx::exp2_approx(other - shift);
            softmax.max[h] = highest;
            softmax.sum[h] = softmax.sum[h] * own[h] + shares.sum[g][h][thread] * others[h];
        }
        // Registers 4 j and 4 j + 1 belong to the first of the thread's two rows, the next two to
        // the second.
#pragma unroll
        for (int i = 0; i < D / 2; ++i)
            out[i] = out[i] * own[i / 2 % 2] + sums_of(g)[i * kWarpgroup] * others[i / 2 % 2];
    }
}

// Idea: many blocks. A block has 64 rows and one warpgroup, and three or four blocks share an SM.
// While one waits for a load, or computes a softmax, another multiplies: overlap without a
// producer, rings or turns. `split_keys` (GROUPS = 2) is for fewer tiles than SMs: two warpgroups
// have the same rows, each takes every second tile of keys, and at the end they combine their
// results.
// Cost removed: idle SMs, and the start and end of a block, which other blocks hide. A block may
// start before the previous kernel has ended, so the work before cudaGridDependencySynchronize()
// costs no time.
// Still limits it: L2. A tile of K and V serves 64 rows only.
template <class T, int D, int GROUPS, int BLOCKS>
__global__ void __launch_bounds__(GROUPS* kWarpgroup, BLOCKS)
    many_blocks(const __grid_constant__ Maps maps, const Problem<T> problem) {
    constexpr int KEYS = kShortKeys<D, GROUPS>;
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shares = *reinterpret_cast<Shares<T, D, GROUPS>*>(memory);
    const RowTile tile = row_tile(problem, static_cast<int>(blockIdx.x), kRows, KEYS);
    // The same in the whole warp. The compiler can only know that if it is the result of a shuffle.
    const int group = GROUPS == 1 ? 0 : __shfl_sync(course::kWholeWarp, threadIdx.x / kWarpgroup, 0);
    auto& k = shares.share[group].k;
    auto& v = shares.share[group].v;
    ptx::MBarrier* const k_full = &shares.k_full[group];
    ptx::MBarrier* const v_full = &shares.v_full[group];
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&shares.q_full, 1);
        for (int g = 0; g < GROUPS; ++g) {
            ptx::mbarrier_init(&shares.k_full[g], 1);
            ptx::mbarrier_init(&shares.v_full[g], 1);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    cudaTriggerProgrammaticLaunchCompletion();  // the next kernel may start, and wait as this one does
    cudaGridDependencySynchronize();            // the last kernel's results are there

    const auto load_k = [&](int step) {
        ptx::mbarrier_arrive_expect(k_full, sizeof(k));
        load(k, maps.k, step * KEYS, tile.head_kv, tile.batch, k_full);
    };
    const auto load_v = [&](int step) {
        ptx::mbarrier_arrive_expect(v_full, sizeof(v));
        load(v, maps.v, step * KEYS, tile.head_kv, tile.batch, v_full);
    };
    const bool loads = threadIdx.x % kWarpgroup == 0;
    int step = tile.steps - 1 - group;
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect(&shares.q_full, sizeof(shares.q));
        load(shares.q, maps.q, tile.first, tile.head, tile.batch, &shares.q_full);
    }
    if (loads && step >= 0) {
        load_k(step);
        load_v(step);
    }
    OnlineSoftmax<> softmax;
    float scores[KEYS / 2];
    float out[D / 2];
    unsigned p[KEYS / 16][4];
    clear(out);
    ptx::mbarrier_wait(&shares.q_full, 0);
    for (unsigned parity = 0; step >= 0; step -= GROUPS, parity ^= 1) {
        ptx::mbarrier_wait(k_full, parity);
        ptx::wgmma_fence();
        multiply_keys(shares.q, k, scores);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(scores);
        group_barrier(group);  // K is safe to overwrite
        if (loads && step >= GROUPS) load_k(step - GROUPS);

        weigh_tile(problem, softmax, scores, tile.first, step);
        if (softmax.rescales()) softmax.rescale(out);
        round_weights<T>(scores, p);

        ptx::mbarrier_wait(v_full, parity);
        ptx::wgmma_fence();
        multiply_values(p, v, out);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(out);
        group_barrier(group);  // V is safe to overwrite
        if (loads && step >= GROUPS) load_v(step - GROUPS);
    }
    if constexpr (GROUPS > 1) {
        combine(shares, group, softmax, out);
        if (group > 0) return;
    }
    store_rows<T, D>(problem, tile, tile.first, softmax, out);
}

// `split_keys` has two GROUPS. The launch is a programmatic dependent one: blocks may start while
// the last ones of the previous kernel still run.
template <class T, int D, int GROUPS, int BLOCKS>
void launch_many_blocks(const Maps& maps, const Problem<T>& problem, unsigned tiles, cudaStream_t stream) {
    course::launch_early(many_blocks<T, D, GROUPS, BLOCKS>,
                         {tiles, GROUPS * kWarpgroup, sizeof(Shares<T, D, GROUPS>), stream}, maps, problem);
}

}  // namespace day43

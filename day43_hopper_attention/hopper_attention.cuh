// Day 43: softmax(scale Q K^T) V with Hopper's TMA and wgmma, FP16 and BF16.
// PMPP chapters 15 and 20 (5th edition). Day 26 has the online softmax, day 41 TMA and wgmma.
//
//   version      rows of a block  what is new                             what limits it
//   wgmma_tma    64               Q, K, V by TMA; weights in registers    L2; loads, products, softmax: turns
//   specialised  128 or 192       a producer, consumers, rings of stages  tensor cores; own softmax in turn
//   ping_pong    128 or 192       consumers take turns at the products    softmax longer than others' products
//
// What they share is in attention_tile.cuh (loads, products) and common/tile/attention_rows.cuh
// (softmax, stores). beyond/ overlaps the products and the softmax of one warpgroup as well, and
// has versions for short sequences.
//
// A launch takes the tensor maps of Q, K and V and the problem; hopper_attention.cu and program.cu
// make both. `tiles`: blocks of rows in all heads of all batches.
//
//   ./course run day43                               every version, verified and timed
//   ./course run day43 --size 4x16x4096x128          batch x heads x tokens x head dimension
#pragma once

#include <cuda_runtime.h>

#include "attention_tile.cuh"
#include "common/device/launch.hpp"

namespace day43 {

// --- Version 1 -----------------------------------------------------------------------------------

template <class T, int D>
struct OneStage {
    Box<T, D, kRows> q;
    Keys<T, D> k;
    Keys<T, D> v;
    ptx::MBarrier full;
};

// Idea: a warpgroup has 64 rows. For each tile of keys one thread issues the TMA loads, then all
// multiply, with one wgmma per 64 x 128 x 16; the weights go from the scores' registers straight
// into the second product.
// Cost removed: fragments. K and V are multiplied where TMA has stored them, and p stays in
// registers.
// Still limits it: loads, products and softmax take turns; and L2, since 64 rows share a tile of K
// (counters: L2 64 % busy, tensor cores 53 %).
//
// Tiles are processed from the last to the first, because the last ones are those that need a mask.
template <class T, int D>
__global__ void __launch_bounds__(kWarpgroup)
    wgmma_tma(const __grid_constant__ Maps maps, const Problem<T> problem) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [q, k, v, full] = *reinterpret_cast<OneStage<T, D>*>(memory);
    const RowTile tile = row_tile(problem, static_cast<int>(blockIdx.x), kRows, kKeys);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);  // one arrival: of the thread that issues the loads
        ptx::fence_mbarrier_init();    // TMA must see it, too
    }
    __syncthreads();

    OnlineSoftmax<> softmax;
    float scores[kKeys / 2];    // 64 x 128 per warpgroup
    float out[D / 2];           // 64 x D per warpgroup
    unsigned p[kKeys / 16][4];  // weights, rounded
    clear(out);
    unsigned parity = 0;
    for (int step = tile.steps - 1; step >= 0; --step, parity ^= 1) {
        if (threadIdx.x == 0) {
            const bool first = step == tile.steps - 1;
            ptx::mbarrier_arrive_expect(&full, (first ? sizeof(q) : 0) + sizeof(k) + sizeof(v));
            if (first) load(q, maps.q, tile.first, tile.head, tile.batch, &full);
            load(k, maps.k, step * kKeys, tile.head_kv, tile.batch, &full);
            load(v, maps.v, step * kKeys, tile.head_kv, tile.batch, &full);
        }
        ptx::mbarrier_wait(&full, parity);
        ptx::wgmma_fence();
        multiply_keys(q, k, scores);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(scores);

        weigh_tile(problem, softmax, scores, tile.first, step);
        softmax.rescale(out);
        round_weights<T>(scores, p);

        ptx::wgmma_fence();
        multiply_values(p, v, out);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(out);
        __syncthreads();  // K and V are safe to overwrite
    }
    store_rows<T, D>(problem, tile, tile.first, softmax, out);
}

template <class T, int D>
void launch_wgmma_tma(const Maps& maps, const Problem<T>& problem, unsigned tiles, cudaStream_t stream) {
    // A tile of Q, K and V is 80 KB with 128 columns; a kernel must opt in to more than 48 KB.
    course::allow_shared_bytes(wgmma_tma<T, D>, sizeof(OneStage<T, D>));
    wgmma_tma<T, D><<<tiles, kWarpgroup, sizeof(OneStage<T, D>), stream>>>(maps, problem);
}

// --- Warp specialisation -------------------------------------------------------------------------

constexpr int kStages = 2;

// Consumer warpgroups. Their accumulators must fit in registers: with three of them, a thread has
// 160.
template <int D>
constexpr int kConsumers = D == 64 ? 3 : 2;
template <int D>
constexpr int kBlockRows = kConsumers<D>* kRows;
template <int D>
constexpr int kThreads = (1 + kConsumers<D>)*kWarpgroup;

// K and V have separate barriers, because scores do not need V.
template <class T, int D>
struct Rings {
    Box<T, D, kRows> q[kConsumers<D>];
    Keys<T, D> k[kStages];
    Keys<T, D> v[kStages];
    ptx::MBarrier q_full;
    ptx::MBarrier q_empty;  // in `persistent`: all threads have read `index` and are done with Q
    ptx::MBarrier k_full[kStages];
    ptx::MBarrier v_full[kStages];
    ptx::MBarrier k_empty[kStages];
    ptx::MBarrier v_empty[kStages];
    int index;  // of the tile, in `persistent`
};

template <class T, int D>
__device__ void init_barriers(Rings<T, D>& rings, const Maps& maps) {
    ptx::prefetch(&maps.q);
    ptx::prefetch(&maps.k);
    ptx::prefetch(&maps.v);
    ptx::mbarrier_init(&rings.q_full, 1);
    ptx::mbarrier_init(&rings.q_empty, kConsumers<D> * kWarpgroup);
    for (int stage = 0; stage < kStages; ++stage) {
        ptx::mbarrier_init(&rings.k_full[stage], 1);
        ptx::mbarrier_init(&rings.v_full[stage], 1);
        ptx::mbarrier_init(&rings.k_empty[stage], kConsumers<D>);
        ptx::mbarrier_init(&rings.v_empty[stage], kConsumers<D>);
    }
    ptx::fence_mbarrier_init();
}

// The stage of a step and the parity of its phase; release(empty) is the arrival of a warpgroup at
// the barrier of a stage that it is done with (common/tile/warpgroup.cuh).
using RingPosition = course::RingPosition<kStages>;

// The producer, one thread: loads Q, then K and V of each step, as soon as their stage is empty.
template <class T, int D>
__device__ void produce(Rings<T, D>& rings, const Maps& maps, const RowTile& tile, RingPosition& at) {
    ptx::mbarrier_arrive_expect(&rings.q_full, sizeof(rings.q));
    for (int group = 0; group < kConsumers<D>; ++group)
        load(rings.q[group], maps.q, tile.first + group * kRows, tile.head, tile.batch, &rings.q_full);
    for (int step = tile.steps - 1; step >= 0; --step, at.advance()) {
        const int s = at.stage;
        // On a fresh barrier the phase before the first counts as ended: parity 1 does not wait.
        ptx::mbarrier_wait(&rings.k_empty[s], at.parity ^ 1);
        ptx::mbarrier_arrive_expect(&rings.k_full[s], sizeof(rings.k[s]));
        load(rings.k[s], maps.k, step * kKeys, tile.head_kv, tile.batch, &rings.k_full[s]);
        ptx::mbarrier_wait(&rings.v_empty[s], at.parity ^ 1);
        ptx::mbarrier_arrive_expect(&rings.v_full[s], sizeof(rings.v[s]));
        load(rings.v[s], maps.v, step * kKeys, tile.head_kv, tile.batch, &rings.v_full[s]);
    }
}

// The producer needs few registers and releases the others (setmaxnreg).
template <int D>
__device__ void give_registers() {
    if constexpr (kConsumers<D> == 3) {
        ptx::registers_decrease<32>();
    } else {
        ptx::registers_decrease<24>();
    }
}
template <int D>
__device__ void take_registers() {
    if constexpr (kConsumers<D> == 3) {
        ptx::registers_increase<160>();
    } else {
        ptx::registers_increase<240>();
    }
}

// Idea: warp specialisation. One thread of the first warpgroup loads; two or three consumer
// warpgroups, with 64 rows each, multiply and compute the softmax.
// Cost removed: the wait for loads, and the barrier of the block. A tile of K and V serves all
// consumers.
// Still limits it: tensor cores, 65 % busy (counters), and waits. A consumer needs the scores for
// the softmax and the weights for the second product, so its own products and its softmax take
// turns.
template <class T, int D>
__global__ void __launch_bounds__(kThreads<D>, 1)
    specialised(const __grid_constant__ Maps maps, const Problem<T> problem) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& rings = *reinterpret_cast<Rings<T, D>*>(memory);
    const RowTile tile = row_tile(problem, static_cast<int>(blockIdx.x), kBlockRows<D>, kKeys);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // of the consumers; -1: the producer
    if (threadIdx.x == 0) init_barriers(rings, maps);
    __syncthreads();

    RingPosition at;
    if (group < 0) {
        give_registers<D>();
        if (threadIdx.x == 0) produce(rings, maps, tile, at);
    } else {
        take_registers<D>();
        const int first = tile.first + group * kRows;
        OnlineSoftmax<> softmax;
        float scores[kKeys / 2];
        float out[D / 2];
        unsigned p[kKeys / 16][4];
        clear(out);
        ptx::mbarrier_wait(&rings.q_full, 0);
        for (int step = tile.steps - 1; step >= 0; --step, at.advance()) {
            ptx::mbarrier_wait(&rings.k_full[at.stage], at.parity);
            ptx::wgmma_fence();
            multiply_keys(rings.q[group], rings.k[at.stage], scores);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
            hold(scores);
            release(&rings.k_empty[at.stage]);

            weigh_tile(problem, softmax, scores, first, step);
            if (softmax.rescales()) softmax.rescale(out);
            round_weights<T>(scores, p);

            ptx::mbarrier_wait(&rings.v_full[at.stage], at.parity);
            ptx::wgmma_fence();
            multiply_values(p, rings.v[at.stage], out);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
            hold(out);
            release(&rings.v_empty[at.stage]);
        }
        store_rows<T, D>(problem, tile, first, softmax, out);
    }
}

template <class T, int D>
void launch_specialised(const Maps& maps, const Problem<T>& problem, unsigned tiles, cudaStream_t stream) {
    course::allow_shared_bytes(specialised<T, D>, sizeof(Rings<T, D>));
    specialised<T, D><<<tiles, kThreads<D>, sizeof(Rings<T, D>), stream>>>(maps, problem);
}

// --- Ping-pong -----------------------------------------------------------------------------------

// Turns of the consumers at the tensor cores: consumer i waits at named barrier 1 + i, where the
// previous consumer arrives. So a barrier counts two warpgroups. Barrier 0 is that of
// __syncthreads().
template <int D>
struct Turns {
    int group;

    // Called once, by all consumers. The first turn is consumer 0's: the last consumer arrives at
    // its barrier.
    __device__ void begin() const {
        if (group == kConsumers<D> - 1) pass();
    }
    __device__ void wait() const { ptx::named_barrier(1 + group, 2 * kWarpgroup); }
    __device__ void pass() const {
        ptx::named_barrier_arrive(1 + (group + 1) % kConsumers<D>, 2 * kWarpgroup);
    }
};

// Idea: ping-pong. A consumer issues the second product of a tile and the first of the next one
// together, then lets the next consumer issue its products, which overlap with its own softmax.
// Cost removed: idle tensor cores. Without turns, consumers may multiply at the same time, and then
// all compute exponentials.
// Still limits it: a consumer's own products and softmax still take turns. If the softmax takes
// longer than the others' products, the tensor cores wait.
template <class T, int D>
__global__ void __launch_bounds__(kThreads<D>, 1)
    ping_pong(const __grid_constant__ Maps maps, const Problem<T> problem) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& rings = *reinterpret_cast<Rings<T, D>*>(memory);
    const RowTile tile = row_tile(problem, static_cast<int>(blockIdx.x), kBlockRows<D>, kKeys);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (threadIdx.x == 0) init_barriers(rings, maps);
    __syncthreads();

    RingPosition at;
    if (group < 0) {
        give_registers<D>();
        if (threadIdx.x == 0) produce(rings, maps, tile, at);
    } else {
        take_registers<D>();
        const int first = tile.first + group * kRows;
        const Turns<D> turns{group};
        turns.begin();
        OnlineSoftmax<> softmax;
        float scores[kKeys / 2];
        float out[D / 2];
        unsigned p[kKeys / 16][4];
        clear(out);
        ptx::mbarrier_wait(&rings.q_full, 0);
        if (tile.steps > 0) {
            ptx::mbarrier_wait(&rings.k_full[at.stage], at.parity);
            turns.wait();
            ptx::wgmma_fence();
            multiply_keys(rings.q[group], rings.k[at.stage], scores);
            ptx::wgmma_commit();
            turns.pass();
            ptx::wgmma_wait<0>();
            hold(scores);
            release(&rings.k_empty[at.stage]);
            weigh_tile(problem, softmax, scores, first, tile.steps - 1);
            round_weights<T>(scores, p);

            for (int step = tile.steps - 2; step >= 0; --step) {
                const RingPosition before = at;  // of the step before
                at.advance();
                ptx::mbarrier_wait(&rings.v_full[before.stage], before.parity);
                ptx::mbarrier_wait(&rings.k_full[at.stage], at.parity);
                turns.wait();
                ptx::wgmma_fence();
                multiply_values(p, rings.v[before.stage], out);
                multiply_keys(rings.q[group], rings.k[at.stage], scores);
                ptx::wgmma_commit();
                turns.pass();
                ptx::wgmma_wait<0>();
                hold(scores);
                hold(out);
                release(&rings.v_empty[before.stage]);
                release(&rings.k_empty[at.stage]);

                weigh_tile(problem, softmax, scores, first, step);
                if (softmax.rescales()) softmax.rescale(out);
                round_weights<T>(scores, p);
            }
            ptx::mbarrier_wait(&rings.v_full[at.stage], at.parity);
            ptx::wgmma_fence();
            multiply_values(p, rings.v[at.stage], out);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
            hold(out);
        }
        store_rows<T, D>(problem, tile, first, softmax, out);
    }
}

template <class T, int D>
void launch_ping_pong(const Maps& maps, const Problem<T>& problem, unsigned tiles, cudaStream_t stream) {
    course::allow_shared_bytes(ping_pong<T, D>, sizeof(Rings<T, D>));
    ping_pong<T, D><<<tiles, kThreads<D>, sizeof(Rings<T, D>), stream>>>(maps, problem);
}

}  // namespace day43

// Day 44, beyond: version overlapped, with 192 rows and 96 keys of a tile. A producer loads; three
// consumers multiply the next tile of keys while the exponentials of this one are computed. Tiles
// and products are in eight_bit_attention.cuh.
#pragma once

#include <algorithm>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "eight_bit_attention.cuh"

namespace day44 {

using course::release;

// Three consumers of 96 keys: 48 scores, 12 registers of weights and 64 sums of a thread's 160
// registers. With two consumers there are 240, enough for 192 keys, but that is slower (README).
constexpr int kConsumers = 3;
constexpr int kBlockRows = kConsumers * kRows;
constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kKeys = 96;
constexpr int kStages = 3;

struct Rings {
    Box<kRows> q[kConsumers];
    Box<kKeys> k[kStages];
    Box<D> v[kStages];  // 128 places, of which 96 are used: a row of a box has 128 bytes
    ptx::MBarrier q_full;
    ptx::MBarrier q_empty;  // all threads have read `index` and are done with Q
    ptx::MBarrier k_full[kStages];
    ptx::MBarrier v_full[kStages];
    ptx::MBarrier k_empty[kStages];
    ptx::MBarrier v_empty[kStages];
    int index;  // of the tile
};

using RingPosition = course::RingPosition<kStages>;

// The producer, one thread: loads Q, then K and V of each step, as soon as their stage is empty.
__device__ inline void produce(Rings& rings, const Maps& maps, const RowTile& tile, RingPosition& at) {
    ptx::mbarrier_arrive_expect(&rings.q_full, sizeof(rings.q));
    for (int group = 0; group < kConsumers; ++group)
        ptx::tma_load(rings.q[group].element, &maps.q, 0, tile.first + group * kRows, tile.head, tile.batch,
                      &rings.q_full);
    for (int step = tile.steps - 1; step >= 0; --step, at.advance()) {
        const int s = at.stage;
        ptx::mbarrier_wait(&rings.k_empty[s], at.parity ^ 1);
        ptx::mbarrier_arrive_expect(&rings.k_full[s], sizeof(rings.k[s]));
        ptx::tma_load(rings.k[s].element, &maps.k, 0, step * kKeys, tile.head_kv, tile.batch,
                      &rings.k_full[s]);
        ptx::mbarrier_wait(&rings.v_empty[s], at.parity ^ 1);
        ptx::mbarrier_arrive_expect(&rings.v_full[s], sizeof(rings.v[s]));
        ptx::tma_load(rings.v[s].element, &maps.v, step * kKeys, 0, tile.head_kv, tile.batch,
                      &rings.v_full[s]);
    }
}

// A consumer's 64 rows of a tile, as day 43's `attend`: the scores of the next tile of keys are
// issued before the second product of this one.
__device__ inline void attend(Rings& rings, RingPosition& at, const Problem& problem, const RowTile& tile,
                              float factor, int group, Softmax& softmax, float (&out)[D / 2]) {
    const int first = tile.first + group * kRows;
    float scores[kKeys / 2];
    unsigned p[kKeys / 32][4];
    clear(out);
    if (tile.steps == 0) {
        ptx::mbarrier_arrive(&rings.q_empty);
        return;
    }
    ptx::mbarrier_wait(&rings.k_full[at.stage], at.parity);
    ptx::wgmma_fence();
    multiply_keys(rings.q[group], rings.k[at.stage], scores);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    hold(scores);
    release(&rings.k_empty[at.stage]);
    weigh_tile(problem.rows, softmax, scores, first, tile.steps - 1, factor);
    round_weights(scores, p);

    for (int step = tile.steps - 2; step >= 0; --step) {
        const RingPosition before = at;
        at.advance();
        ptx::mbarrier_wait(&rings.k_full[at.stage], at.parity);
        ptx::wgmma_fence();
        multiply_keys(rings.q[group], rings.k[at.stage], scores);
        ptx::wgmma_commit();
        ptx::mbarrier_wait(&rings.v_full[before.stage], before.parity);
        multiply_values(p, rings.v[before.stage], out);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();  // the scores are there; out is not
        hold(scores);
        release(&rings.k_empty[at.stage]);

        weigh_tile(problem.rows, softmax, scores, first, step, factor);
        hold(scores);
        // Two branches, so that ptxas keeps the wait after the softmax (day 43).
        if (step % 2 == 0) {
            ptx::wgmma_wait_in_branch<0>();
        } else {
            ptx::wgmma_wait<0>();
        }
        hold(out);
        if (softmax.rescales()) softmax.rescale(out);
        release(&rings.v_empty[before.stage]);
        round_weights(scores, p);  // p is safe to overwrite
    }
    ptx::mbarrier_arrive(&rings.q_empty);
    ptx::mbarrier_wait(&rings.v_full[at.stage], at.parity);
    ptx::wgmma_fence();
    multiply_values(p, rings.v[at.stage], out);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    hold(out);
    release(&rings.v_empty[at.stage]);
    at.advance();
}

// Idea: day 43's persistent blocks, with three consumers. Products take half as long as there, but
// the softmax does not: three warpgroups compute exponentials while one multiplies, so they need no
// turns.
// Cost removed: waits for loads and for products.
// Still limits it: latency of exponentials and products: no unit is 60 % busy. 64 x 96 exponentials
// take 384 cycles of an SM's special function units, the two products 384 cycles of its tensor
// cores (counters: 59 % and 56 % busy).
__global__ void __launch_bounds__(kThreads, 1)
    overlapped(const __grid_constant__ Maps maps, const Problem problem, int tiles, int* next) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& rings = *reinterpret_cast<Rings*>(memory);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // of the consumers; -1: the producer
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&rings.q_full, 1);
        ptx::mbarrier_init(&rings.q_empty, kConsumers * kWarpgroup);
        for (int s = 0; s < kStages; ++s) {
            ptx::mbarrier_init(&rings.k_full[s], 1);
            ptx::mbarrier_init(&rings.v_full[s], 1);
            ptx::mbarrier_init(&rings.k_empty[s], kConsumers);
            ptx::mbarrier_init(&rings.v_empty[s], kConsumers);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();

    RingPosition at;
    unsigned q_parity = 0;
    if (group < 0) {
        ptx::registers_decrease<32>();
        if (threadIdx.x > 0) return;
        for (;; q_parity ^= 1) {
            const int index = atomicAdd(next, 1);
            ptx::mbarrier_wait(&rings.q_empty, q_parity ^ 1);
            rings.index = index;  // published by the arrival at q_full
            if (index >= tiles) {
                ptx::mbarrier_arrive(&rings.q_full);
                return;
            }
            produce(rings, maps, row_tile(problem.rows, index, kBlockRows, kKeys), at);
        }
    } else {
        ptx::registers_increase<160>();
        for (;; q_parity ^= 1) {
            ptx::mbarrier_wait(&rings.q_full, q_parity);
            const int index = rings.index;
            if (index >= tiles) return;
            const RowTile tile = row_tile(problem.rows, index, kBlockRows, kKeys);
            Softmax softmax;
            float out[D / 2];
            const float of_scores = problem.of_scores(tile);
            correct_queries(rings.q[group], of_scores, 1 + static_cast<unsigned>(group));
            attend(rings, at, problem, tile, positive_factor(of_scores), group, softmax, out);
            const float of_result = spare_small_factor(out, problem.of_result(tile));
            store_rows<Result, D>(problem.rows, tile, tile.first + group * kRows, softmax, out, of_result);
        }
    }
}

// One block per SM. tiles: blocks of kBlockRows rows; next: an int of device memory.
inline void launch_overlapped(const Maps& maps, const Problem& problem, unsigned tiles, int* next,
                              cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(next, 0, sizeof(*next), stream));
    const unsigned blocks = std::min(tiles, course::multiprocessors());
    course::allow_shared_bytes(overlapped, sizeof(Rings));
    overlapped<<<blocks, kThreads, sizeof(Rings), stream>>>(maps, problem, static_cast<int>(tiles), next);
}

}  // namespace day44

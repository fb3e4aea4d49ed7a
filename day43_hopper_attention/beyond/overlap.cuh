// Day 43, beyond: the versions whose products overlap with the softmax of the same rows.
//
//   version      what is new                                             what limits it
//   overlapped   the next scores come before this tile's second product  start and end of a block
//   persistent   a block computes tile after tile                        tensor cores, power
#pragma once

#include <algorithm>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "hopper_attention.cuh"

namespace day43 {

// --- Overlap within a warpgroup ------------------------------------------------------------------

// A consumer's 64 rows of a tile. The scores of the next tile of keys are issued before the second
// product of this one; each of the two is a group of its own. When the scores are complete, their
// softmax overlaps with the second product. After the last scores Q is no longer read: each thread
// arrives at `q_empty`, unless it is null.
template <class T, int D>
__device__ void attend(Rings<T, D>& rings, RingPosition& at, const Problem<T>& problem, const RowTile& tile,
                       int group, ptx::MBarrier* q_empty, OnlineSoftmax<>& softmax, float (&out)[D / 2]) {
    const int first = tile.first + group * kRows;
    const Turns<D> turns{group};
    float scores[kKeys / 2];
    unsigned p[kKeys / 16][4];
    clear(out);
    if (tile.steps == 0) {
        if (q_empty != nullptr) ptx::mbarrier_arrive(q_empty);
        return;
    }
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
        const RingPosition before = at;
        at.advance();
        ptx::mbarrier_wait(&rings.k_full[at.stage], at.parity);
        turns.wait();
        ptx::wgmma_fence();
        multiply_keys(rings.q[group], rings.k[at.stage], scores);
        ptx::wgmma_commit();
        ptx::mbarrier_wait(&rings.v_full[before.stage], before.parity);
        multiply_values(p, rings.v[before.stage], out);
        ptx::wgmma_commit();
        turns.pass();
        ptx::wgmma_wait<1>();  // the scores are complete; `out` is not
        hold(scores);
        release(&rings.k_empty[at.stage]);

        weigh_tile(problem, softmax, scores, first, step);
        hold(scores);  // the softmax is complete before the wait
        // ptxas moves a wait to the start of its basic block, ahead of the softmax. A branch ends
        // the block. All warps of a warpgroup must wait at the same instruction, so the condition
        // must be the same for all of them.
        if (step % 2 == 0) {
            ptx::wgmma_wait_in_branch<0>();
        } else {
            ptx::wgmma_wait<0>();
        }
        hold(out);
        if (softmax.rescales()) softmax.rescale(out);
        release(&rings.v_empty[before.stage]);
        round_weights<T>(scores, p);  // p is safe to overwrite
    }
    if (q_empty != nullptr) ptx::mbarrier_arrive(q_empty);
    ptx::mbarrier_wait(&rings.v_full[at.stage], at.parity);
    ptx::wgmma_fence();
    multiply_values(p, rings.v[at.stage], out);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    hold(out);
    release(&rings.v_empty[at.stage]);
    at.advance();
}

// Idea: overlap within a warpgroup. The scores of the next tile are issued before the softmax of
// this one, so a consumer's softmax overlaps with its own second product, too.
// Cost removed: the tensor cores' wait for a softmax that takes longer than the others' products.
// Still limits it: tensor cores, 79 % busy (counters).
// The first softmax and the last product of a block have nothing to overlap with,
// and the next block starts when the last of its warps ends.
template <class T, int D>
__global__ void __launch_bounds__(kThreads<D>, 1)
    overlapped(const __grid_constant__ Maps maps, const Problem<T> problem) {
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
        Turns<D>{group}.begin();
        OnlineSoftmax<> softmax;
        float out[D / 2];
        ptx::mbarrier_wait(&rings.q_full, 0);
        attend(rings, at, problem, tile, group, nullptr, softmax, out);
        store_rows<T, D>(problem, tile, tile.first + group * kRows, softmax, out);
    }
}

template <class T, int D>
void launch_overlapped(const Maps& maps, const Problem<T>& problem, unsigned tiles, cudaStream_t stream) {
    course::allow_shared_bytes(overlapped<T, D>, sizeof(Rings<T, D>));
    overlapped<T, D><<<tiles, kThreads<D>, sizeof(Rings<T, D>), stream>>>(maps, problem);
}

// --- Persistent blocks ---------------------------------------------------------------------------

// Idea: one block per SM computes tile after tile. The producer takes the next tile from a counter
// in global memory, and loads its Q, K and V while the consumers finish the previous tile. Long
// tiles are taken first, so that the last ones are short and all SMs end at about the same time.
// Cost removed: the start of a block, and idle SMs at the end of a causal problem.
// Still limits it: tensor cores and power. The clock falls when they are busy (counters: 80 % busy
// at 1.71 of 1.98 GHz).
//
// `next` is 0 when the kernel starts.
template <class T, int D>
__global__ void __launch_bounds__(kThreads<D>, 1)
    persistent(const __grid_constant__ Maps maps, const Problem<T> problem, int tiles, int* next) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& rings = *reinterpret_cast<Rings<T, D>*>(memory);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (threadIdx.x == 0) init_barriers(rings, maps);
    __syncthreads();

    RingPosition at;
    unsigned q_parity = 0;
    if (group < 0) {
        give_registers<D>();
        if (threadIdx.x > 0) return;
        for (;; q_parity ^= 1) {
            const int index = atomicAdd(next, 1);
            ptx::mbarrier_wait(&rings.q_empty, q_parity ^ 1);
            rings.index = index;  // published by the arrival at q_full
            if (index >= tiles) {
                ptx::mbarrier_arrive(&rings.q_full);
                return;
            }
            produce(rings, maps, row_tile(problem, index, kBlockRows<D>, kKeys), at);
        }
    } else {
        take_registers<D>();
        Turns<D>{group}.begin();
        for (;; q_parity ^= 1) {
            ptx::mbarrier_wait(&rings.q_full, q_parity);
            const int index = rings.index;
            if (index >= tiles) return;
            const RowTile tile = row_tile(problem, index, kBlockRows<D>, kKeys);
            OnlineSoftmax<> softmax;
            float out[D / 2];
            attend(rings, at, problem, tile, group, &rings.q_empty, softmax, out);
            store_rows<T, D>(problem, tile, tile.first + group * kRows, softmax, out);
        }
    }
}

// One block per SM. `next`: an int of device memory.
template <class T, int D>
void launch_persistent(const Maps& maps, const Problem<T>& problem, unsigned tiles, int* next,
                       cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(next, 0, sizeof(*next), stream));
    const unsigned blocks = std::min(tiles, course::multiprocessors());
    course::allow_shared_bytes(persistent<T, D>, sizeof(Rings<T, D>));
    persistent<T, D>
        <<<blocks, kThreads<D>, sizeof(Rings<T, D>), stream>>>(maps, problem, static_cast<int>(tiles), next);
}

}  // namespace day43

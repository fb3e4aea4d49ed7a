// Day 34, beyond: the versions with Hopper's TMA and wgmma, for FP16 and BF16. Days 41 and 43 come
// first.
//
//   a block     128 keys, and all tiles of rows of Q that see them
//   a producer  one thread loads Q, d_out and the row terms; another one adds dQ to global memory
//   consumers   two warpgroups, 64 keys each: dK and dV stay in their registers
//
// A consumer computes S^T = K Q^T and dP^T = V d_out^T, with its keys as rows. So P^T and dS^T,
// rounded to pairs in registers, are the left operands of dV = P^T d_out and dK = dS^T Q (day 43).
// Only dQ = dS K sums over all keys of the block, so dS goes through shared memory, transposed by
// stmatrix. hopper_tile.cuh has the products and the work on a tile in registers,
// hopper_queries.cuh the path of dQ to global memory.
#pragma once

#include "hopper_queries.cuh"
#include "hopper_tile.cuh"

namespace day34 {

// The producer's first thread: K and V once, then Q, d_out and the row terms of one tile of rows
// after the other.
template <class T, int D>
__device__ void produce(HopperMemory<T, D>& memory, const Maps& maps, const Problem<T>& problem,
                        const KeyTile& keys) {
    constexpr int ROWS = kRows<D>;
    const auto heads = static_cast<std::size_t>(problem.dk.extents().heads);
    const auto head = static_cast<int>(keys.head % heads);
    const auto batch = static_cast<int>(keys.head / heads);
    ptx::mbarrier_arrive_expect(&memory.keys_full, sizeof(memory.k) + sizeof(memory.v));
    load(memory.k, maps.k, keys.first, head, batch, &memory.keys_full);
    load(memory.v, maps.v, keys.first, head, batch, &memory.keys_full);
    RingPosition<kStagesQ> at_q;
    RingPosition<kStagesDOut> at;
    for (int tile = keys.begin; tile < problem.row_tiles; ++tile, at_q.advance(), at.advance()) {
        const std::size_t row = keys.head * problem.terms.padded + static_cast<std::size_t>(tile * ROWS);
        ptx::MBarrier* const q_full = &memory.q_full[at_q.stage];
        ptx::mbarrier_wait(&memory.q_empty[at_q.stage], at_q.parity ^ 1);
        ptx::mbarrier_arrive_expect(q_full, sizeof(memory.q[0]) + sizeof(memory.lse[0]));
        load(memory.q[at_q.stage], maps.q, tile * ROWS, head, batch, q_full);
        ptx::bulk_load(memory.lse[at_q.stage], problem.terms.lse + row, sizeof(memory.lse[0]), q_full);
        ptx::MBarrier* const d_out_full = &memory.d_out_full[at.stage];
        ptx::mbarrier_wait(&memory.d_out_empty[at.stage], at.parity ^ 1);
        ptx::mbarrier_arrive_expect(d_out_full, sizeof(memory.d_out[0]) + sizeof(memory.d[0]));
        load(memory.d_out[at.stage], maps.d_out, tile * ROWS, head, batch, d_out_full);
        ptx::bulk_load(memory.d[at.stage], problem.terms.d + row, sizeof(memory.d[0]), d_out_full);
    }
}

// Idea: TMA and wgmma. Sums and left operands stay in registers, except for dS. A consumer's
// arithmetic overlaps with its own products:
//
//     products      dP dV | S of the next tile, dK, dQ
//     arithmetic       dS | weights of the next tile
//
// Cost removed: fragments, and atomics of single floats: dQ is added 32 KB at a time.
// Still limits it: shared memory (counters: 65 % busy, tensor cores 62 %); in hopper_ordered
// latency, where blocks wait for each other (no unit above 55 %). A product of 64 x 64 reads both
// operands at the full rate of the tensor cores, and register pressure rules out larger ones.
template <class T, int D, bool ORDERED>
__global__ void __launch_bounds__(kHopperThreads, 1)
    attention_gradients(const __grid_constant__ Maps maps, const Problem<T> problem) {
    constexpr int ROWS = kRows<D>;
    extern __shared__ __align__(1024) unsigned char bytes[];
    auto& memory = *reinterpret_cast<HopperMemory<T, D>*>(bytes);
    if (threadIdx.x == 0) {
        init_barriers(memory);
        memory.number = ORDERED ? atomicAdd(problem.ticket, 1u) : blockIdx.x;
    }
    __syncthreads();
    const KeyTile keys = key_tile<T, D, ORDERED>(problem, memory.number);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // of the consumers; -1: the producer

    if (group < 0) {
        ptx::registers_decrease<24>();
        if (threadIdx.x == 0) produce(memory, maps, problem, keys);
        if (threadIdx.x == 32) write_queries<T, D, ORDERED>(memory, problem, keys);
        return;
    }
    ptx::registers_increase<240>();
    float dk[D / 2];           // 64 keys x D per warpgroup
    float dv[D / 2];           // 64 keys x D
    float scores[ROWS / 2];    // 64 keys x ROWS; then weights
    unsigned p[ROWS / 16][4];  // weights, rounded
    unsigned ds[ROWS / 16][4];
    clear(dk);
    clear(dv);
    RingPosition<kStagesQ> at_q;  // of the newest scores
    RingPosition<kStagesDOut> at;
    unsigned dq_parity = 1;
    ptx::mbarrier_wait(&memory.keys_full, 0);
    if (keys.begin < problem.row_tiles) {
        ptx::mbarrier_wait(&memory.q_full[0], 0);
        ptx::wgmma_fence();
        multiply_rows(memory.k, group, memory.q[0], scores);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(scores);
        weigh_tile<T, D>(problem, keys, group, keys.begin, memory.lse[0], scores);
    }
    int stage = 0;  // of Q
    for (int tile = keys.begin; tile < problem.row_tiles; ++tile, at.advance(), dq_parity ^= 1) {
        float dp[ROWS / 2];
        float dq[32];
        ptx::mbarrier_wait(&memory.d_out_full[at.stage], at.parity);
        ptx::wgmma_fence();
        multiply_rows(memory.v, group, memory.d_out[at.stage], dp);
        ptx::wgmma_commit();
        round_weights<T>(scores, p);
        ptx::wgmma_fence();
        add_rows<T, D, ROWS>(p, memory.d_out[at.stage], dv);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();  // dP is complete; dV is not
        hold(dp);
        differentiate<T, ROWS / 2>(p, dp, memory.d[at.stage], ds);
        store_transposed<T, ROWS>(memory.ds[tile % 2], group, ds);
        ptx::fence_proxy_async();

        // The next scores. After the last tile they are not used, but if they were issued under a
        // condition, ptxas would serialise all MMAs.
        if (tile + 1 < problem.row_tiles) {
            at_q.advance();
            ptx::mbarrier_wait(&memory.q_full[at_q.stage], at_q.parity);
        }
        ptx::wgmma_wait<0>();  // dV is complete, and p is safe to overwrite
        hold(dv);
        ptx::wgmma_fence();
        multiply_rows(memory.k, group, memory.q[at_q.stage], scores);
        ptx::wgmma_commit();
        add_rows<T, D, ROWS>(ds, memory.q[stage], dk);
        ptx::wgmma_commit();
        ptx::named_barrier(1, kConsumers * kWarpgroup);  // dS of both consumers is complete
        release(&memory.d_out_empty[at.stage]);
        multiply_keys<T, D, ROWS>(memory.ds[tile % 2], memory.k, group, dq);
        ptx::wgmma_commit();
        ptx::wgmma_wait<2>();  // the next scores are complete
        hold(scores);
        weigh_tile<T, D>(problem, keys, group, tile + 1, memory.lse[at_q.stage], scores);

        // ptxas moves the wait for products to the start of its basic block, which would be ahead
        // of the exponentials. The loop of this wait starts a new basic block.
        ptx::mbarrier_wait(&memory.dq_empty, dq_parity);
        ptx::wgmma_wait<0>();  // dQ and dK are complete
        hold(dk);
        release(&memory.q_empty[stage]);
        hold(dq);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            memory.dq[group][i * kWarpgroup + static_cast<int>(threadIdx.x) % kWarpgroup] = {
                dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]};
        ptx::fence_proxy_async();
        ptx::mbarrier_arrive(&memory.dq_full);
        stage = at_q.stage;
    }
    store_keys<T, D>(problem.dk, keys.head, keys.first + group * 64, dk, problem.scale);
    store_keys<T, D>(problem.dv, keys.head, keys.first + group * 64, dv, 1.0f);
}

template <class T, int D, bool ORDERED>
void launch_attention_gradients(const Maps& maps, const Problem<T>& problem, cudaStream_t stream) {
    const Extents k = problem.dk.extents();
    const unsigned blocks =
        course::blocks_for(k.batch * k.heads * static_cast<std::size_t>(problem.key_tiles), 1);
    course::launch(attention_gradients<T, D, ORDERED>,
                   {blocks, kHopperThreads, sizeof(HopperMemory<T, D>), stream}, maps, problem);
}

}  // namespace day34

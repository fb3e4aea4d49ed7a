// Day 41, part 2: warp specialisation. A producer loads, consumers multiply. Versions specialised
// and wide_tile. hopper_matmul.cuh has the table of versions, Stage, load_stage() and
// multiply_stage().
#pragma once

#include "hopper_matmul.cuh"

namespace day41 {

// Called first, by thread 0. `consumers`: the number of arrivals that empty a stage. The tensor
// maps are prefetched at the same time.
template <class T, int BN, int STAGES>
__device__ void init_barriers(Ring<T, BN, STAGES>& ring, const Maps& maps, int consumers) {
    ptx::prefetch(&maps.a);
    ptx::prefetch(&maps.b);
    for (int stage = 0; stage < STAGES; ++stage) {
        ptx::mbarrier_init(&ring.full[stage], 1);
        ptx::mbarrier_init(&ring.empty[stage], consumers);
    }
    ptx::fence_mbarrier_init();
}

// The next stage in the ring and the parity of its phase, counted without a division. The producer
// and each consumer keep their own copy.
template <int STAGES>
struct RingPosition {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
};

// Sets the sums to zero before the loop. Without hold(), the compiler may move this behind the
// loop, for the case of no steps. Then ptxas sees a write to registers of a running wgmma, and
// serialises all of them. hold() costs no instruction. tma_wgmma and ring do not need it, because
// they leave no MMA in flight at the end of a step.
template <int COUNT>
__device__ void clear(float (&sums)[COUNT]) {
#pragma unroll
    for (float& sum : sums) {
        sum = 0;
        ptx::hold(sum);
    }
}

template <class T>
using DeepRing = Ring<T, 128, 6>;

// Idea: warp specialisation. One thread of the first warpgroup is the producer: it waits until a
// stage is empty, and issues its loads. Two consumer warpgroups wait until it is full, and
// multiply. A consumer issues the MMAs of a step before it waits for those of the previous one.
// Cost removed: the barrier of all threads. The tensor cores always have MMAs to work on.
// Still limits it: shared memory. For 64 x 128 results a consumer reads 64 rows of A and 128
// columns of B.
template <class T>
__global__ void __launch_bounds__(3 * kWarpgroup)
    specialised(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    DeepRing<T>& ring = *reinterpret_cast<DeepRing<T>*>(memory);
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * BM;
    const int col = tile.col * 128;
    const int steps = (depth + BK - 1) / BK;
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // of the consumers; -1: the producer
    if (threadIdx.x == 0) init_barriers(ring, maps, 2);
    __syncthreads();

    RingPosition<6> at;
    if (group < 0) {
        if (threadIdx.x > 0) return;
        for (int step = 0; step < steps; ++step, at.advance()) {
            // Parity 1 of a fresh barrier does not wait: the phase before the first counts as
            // ended.
            ptx::mbarrier_wait(&ring.empty[at.stage], at.parity ^ 1);
            load_stage(ring.stages[at.stage], &ring.full[at.stage], maps, row, col, step * BK);
        }
    } else {
        float sums[64];
        clear(sums);
        int previous = -1;
        for (int step = 0; step < steps; ++step, at.advance()) {
            ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
            multiply_stage(ring.stages[at.stage], group, sums);
            // The MMAs of the previous step are complete. A group of wgmma belongs to the
            // warpgroup, not to a warp, so one thread may arrive for all 128.
            ptx::wgmma_wait<1>();
            if (previous >= 0 && threadIdx.x % kWarpgroup == 0) ptx::mbarrier_arrive(&ring.empty[previous]);
            previous = at.stage;
        }
        ptx::wgmma_wait<0>();
        store_sums<128>(out, row + group * 64, col, sums);
    }
}

template <class T>
using WideRing = Ring<T, 256, 4>;

// Idea: 128 x 256 results. A consumer thread holds 128 sums, so the producer warpgroup gives
// registers away: setmaxnreg leaves it 40, and the consumers get 232.
// Cost removed: a quarter of the loads from L2 per product, and a sixth of the reads of shared
// memory.
// Still limits it: L2. Each SM loads 48 KB per 1024 cycles of MMAs, and each block loads its own B.
template <class T>
__global__ void __launch_bounds__(3 * kWarpgroup)
    wide_tile(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    WideRing<T>& ring = *reinterpret_cast<WideRing<T>*>(memory);
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * BM;
    const int col = tile.col * 256;
    const int steps = (depth + BK - 1) / BK;
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (threadIdx.x == 0) init_barriers(ring, maps, 2);
    __syncthreads();

    RingPosition<4> at;
    if (group < 0) {
        ptx::registers_decrease<40>();  // the whole warpgroup
        if (threadIdx.x > 0) return;
        for (int step = 0; step < steps; ++step, at.advance()) {
            ptx::mbarrier_wait(&ring.empty[at.stage], at.parity ^ 1);
            load_stage(ring.stages[at.stage], &ring.full[at.stage], maps, row, col, step * BK);
        }
    } else {
        ptx::registers_increase<232>();
        float sums[128];
        clear(sums);
        int previous = -1;
        for (int step = 0; step < steps; ++step, at.advance()) {
            ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
            multiply_stage(ring.stages[at.stage], group, sums);
            ptx::wgmma_wait<1>();
            if (previous >= 0 && threadIdx.x % kWarpgroup == 0) ptx::mbarrier_arrive(&ring.empty[previous]);
            previous = at.stage;
        }
        ptx::wgmma_wait<0>();
        store_sums<256>(out, row + group * 64, col, sums);
    }
}

}  // namespace day41

// Day 42, continued: 8-bit factors with TMA and wgmma. The stages, the producer and the consumers are those of day 41.
#pragma once

#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace day42 {

using namespace course::hopper;
using course::RasterOrder;

// What is added to sums is added after the wait, and what is set is set before the products begin.
template <class Array>
__device__ void hold(Array& sums) {
#pragma unroll
    for (auto& sum : sums)
        course::ptx::hold(sum);
}

// As multiply(), but the products of each stage are summed for themselves, and those sums added by the CUDA cores.
template <class S>
__device__ void multiply_promoted(Stages<S>& stages, RingPosition<S>& ring, int group, int steps,
                                  Sums<S>& sums) {
#pragma unroll
    for (auto& sum : sums)
        sum = 0;
    for (int step = 0; step < steps; ++step, ring.advance()) {
        Sums<S> of_stage = {};
        hold(of_stage);
        course::ptx::mbarrier_wait(&stages.full[ring.stage], ring.parity);
        multiply_stage(stages, ring.stage, group, of_stage);
        course::ptx::wgmma_wait<0>();
        hold(of_stage);
        stages.release(ring.stage);
#pragma unroll
        for (int i = 0; i < S::BN / 2; ++i)
            sums[i] += of_stage[i];
    }
}

template <class S>
struct Memory {
    Stages<S> stages;
    alignas(1024) Slices<S> slices;
};

// Idea: async_store with elements of half the size. TMA, barriers and swizzle count bytes, and so does the distance from product to
// product: nothing changes but the boxes of B, which lie along k. The plans below make two versions of it.
// Cost removed: half of the bytes from global to shared memory, and half of the products' time.
// Still limits it: see the plans.
template <class S, bool kPromoted>
__global__ void __launch_bounds__((1 + S::MULTIPLIERS) * kWarpgroup)
    bytes_wgmma(const __grid_constant__ Maps maps, course::OutputOf<typename S::Sum> out, int depth,
                RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<Memory<S>*>(memory);
    shared.stages.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = steps_of<S>(depth);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // -1: the producer

    RingPosition<S> ring;
    if (group < 0) {
        S::give_registers();
        if (threadIdx.x == 0) {
            for (int tile = first; tile < tiles; tile += clusters)
                produce(shared.stages, ring, maps, coords_of<S>(order, tile), 0, steps);
        }
        __syncwarp();  // whole warps meet
    } else {
        S::take_registers();
        const int warp = static_cast<int>(threadIdx.x - kWarpgroup) / 32;
        for (int tile = first; tile < tiles; tile += clusters) {
            TileCoords coords = coords_of<S>(order, tile);
            coords.row += group * 64;
            Sums<S> sums;
            if constexpr (kPromoted) {
                multiply_promoted(shared.stages, ring, group, steps, sums);
            } else {
                consume(shared.stages, ring, group, steps, sums);
            }
            store_through_tma<S>(maps.c, shared.slices[warp], out, coords, sums);
        }
        course::ptx::tma_store_wait<0>();
    }
    if constexpr (S::CLUSTER > 1)
        shared.stages.synchronise();  // no block ends while another may still write to it
}

}  // namespace day42

// Day 41: C = alpha A B + beta C with Hopper's tensor memory accelerator (TMA) and wgmma.   PMPP chapters 5 and 6
//
//   version        tile       stages   what is new                                       what limits it
//   tma_wgmma      128 x 128  1        boxes copied by TMA; products of four warps       copies and products take turns
//   specialised    128 x 128  6        one warpgroup copies, two multiply                shared memory: B is read for 128 columns only
//   wide_tile      128 x 256  4        registers go from the producer to the consumers   tiles begin and end; L2, as every block fetches its own B
//   multicast      128 x 256  4        two blocks of a cluster share B                   the end of each tile: nobody multiplies
//   persistent     128 x 256  4        a block for each multiprocessor, many tiles       storing C
//   async_store    128 x 256  4        C leaves through shared memory and TMA            power: the clock falls
//   split_k        128 x 128  6        two blocks share out K, and exchange sums         the exchange; each reads its own A and B
//   fitted         one of eight        the tile that suits the shape                     as its tile
//   realigned      as fitted           A and B copied, where their rows begin anywhere   the copies
//
// C is m x n; A, row-major, is m x k; B, row-major, is k x n. Rows of A and B (and C, for those that store through TMA) begin at
// multiples of 16 bytes; `realigned` takes any.
//
//   ./course run day41 --size 4096x4096x4096
#pragma once

#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"
#include "split_k.cuh"

namespace day41 {

using namespace course::hopper;
using course::RasterOrder;
using Output = course::OutputOf<float>;
namespace ptx = course::ptx;

// Idea: one thread asks TMA for a stage; all wait for its bytes, and multiply: one wgmma for 64 x 128 x 16.
// Cost removed: copies and fragments no longer pass through registers, and no thread computes an address.
// Still limits it: copies and products take rings within a block; only other blocks of the multiprocessor fill the gaps.
template <class S>
__global__ void __launch_bounds__(S::MULTIPLIERS* kWarpgroup)
    single_stage(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& stages = *reinterpret_cast<Stages<S>*>(memory);
    stages.init(maps);
    TileCoords coords = coords_of<S>(order, static_cast<int>(blockIdx.x));
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup;

    Sums<S> sums = {};
    unsigned parity = 0;
    for (int k = 0; k < depth; k += S::BK, parity ^= 1) {
        if (threadIdx.x == 0) load_stage(stages, 0, maps, coords, k);
        ptx::mbarrier_wait(&stages.full[0], parity);
        multiply_stage(stages, 0, group, sums);
        ptx::wgmma_wait<0>();
        __syncthreads();
    }
    coords.row += group * 64;
    store_from_registers<S>(out, coords, sums);
}

template <class S, bool kThroughTma>
struct Memory {
    Stages<S> stages;
    alignas(1024) Slices<S> slices;
};
template <class S>
struct Memory<S, false> {
    Stages<S> stages;
};

// Idea: the first warpgroup copies, the others multiply; between them a ring of stages and two mbarriers for each. The plans below make
// five versions of it, and tiles of other sizes.
// Cost removed: waiting for copies, and barriers for the whole block.
// Still limits it: see the plans.
template <class S, bool kThroughTma>
__global__ void __launch_bounds__((1 + S::MULTIPLIERS) * kWarpgroup)
    specialised(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& shared = *reinterpret_cast<Memory<S, kThroughTma>*>(memory);
    Stages<S>& stages = shared.stages;
    stages.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = steps_of<S>(depth);
    const int group =
        static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // of those that multiply; -1: the producer

    RingPosition<S> ring;
    if (group < 0) {
        S::give_registers();
        if (threadIdx.x == 0) {
            for (int tile = first; tile < tiles; tile += clusters)
                produce(stages, ring, maps, coords_of<S>(order, tile), 0, steps);
        }
        __syncwarp();  // whole warps meet
    } else {
        S::take_registers();
        for (int tile = first; tile < tiles; tile += clusters) {
            TileCoords coords = coords_of<S>(order, tile);
            coords.row += group * 64;
            Sums<S> sums;
            consume(stages, ring, group, steps, sums);
            if constexpr (kThroughTma) {
                const int warp = static_cast<int>(threadIdx.x - kWarpgroup) / 32;
                store_through_tma<S>(maps.c, shared.slices[warp], out, coords, sums);
            } else {
                store_from_registers<S>(out, coords, sums);
            }
        }
        if constexpr (kThroughTma) ptx::tma_store_wait<0>();
    }
    if constexpr (S::CLUSTER > 1) stages.synchronise();  // no block ends while another may still write to it
}

// Idea: where tiles are few and K is long, two blocks take half of K each. Then each has half of every sum; they exchange halves of the tile.
// Cost removed: multiprocessors that have no tile.
// Still limits it: the exchange, and that each block reads its own A and B.
template <class S>
__global__ void __launch_bounds__((1 + S::MULTIPLIERS) * kWarpgroup)
    split_k(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& stages = *reinterpret_cast<Stages<S>*>(memory);
    static_assert(kFitsIntoStages<S>);
    auto& given = *reinterpret_cast<HalfOfSums<S>*>(memory);
    stages.init(maps);
    TileCoords coords = coords_of<S>(order, static_cast<int>(blockIdx.x) / S::CLUSTER);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    const int steps = steps_of<S>(depth);
    const int rank = S::rank();
    const int mine = rank == 0 ? (steps + 1) / 2 : steps / 2;

    RingPosition<S> ring;
    if (group < 0) {
        if (threadIdx.x == 0) produce(stages, ring, maps, coords, rank == 0 ? 0 : steps - mine, mine);
        __syncwarp();  // whole warps meet
        stages.synchronise();
        stages.synchronise();
    } else {
        Sums<S> sums;
        consume(stages, ring, group, mine, sums);
        stages.synchronise();  // both are done with their stages
        give_half<S>(given, 1 - rank, sums);
        stages.synchronise();
        take_half<S>(given, rank, sums);
        coords.row += group * 64;
        store_from_registers<S>(out, coords, sums, rank * S::BN / 2, (rank + 1) * S::BN / 2);
    }
}

}  // namespace day41

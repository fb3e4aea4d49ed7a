// Day 41, beyond: kernels for any tile size, C stored by TMA, and split-K.
//
//   version      block tile       stages  what is new                             what limits it
//   async_store  128 x 256        4       C leaves through shared memory and TMA  power
//   split_k      128 x 128        6       two blocks share the K of a tile        L2; exchanging their sums
//   fitted       one of eleven            the tile that suits the shape           as its tile
//   realigned    as fitted                unaligned rows: loaded or copied        loads; copies
//
// fitted and realigned choose among them on the host (common/tile/tile_choice.hpp,
// common/device/aligned_copy.cuh).
//
// S, a course::hopper::TileShape, is the size of a tile and the number of its stages and blocks.
// common/tile/wgmma_tile.cuh has the parts of `persistent` for any S: Ring, RingPosition,
// load_stage(), multiply_stage(), clear() and release_stage() are those of hopper_matmul.cuh and
// clusters.cuh; produce() is the producer's loop over K, consume() the consumers'. Day 42 uses
// them, too.
#pragma once

#include <cuda_runtime.h>

#include "beyond/clusters.cuh"
#include "common/device/cluster_launch.hpp"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/wgmma_split.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"
#include "hopper_matmul.cuh"

namespace day41 {

namespace hopper = course::hopper;

template <class S>
struct RingAndSlices {
    hopper::Ring<S> ring;
    alignas(1024) hopper::Slices<S> slices;
};

// Idea: C is stored by way of shared memory. A warp fills a slice of 16 x 32 results, TMA stores
// it, and the warp continues.
// Cost removed: waiting for stores, and the instructions for their addresses.
// Still limits it: power. With busy tensor cores, the GPU lowers its clock (8192^3, counters: 96 %
// busy, 1.58 of 1.98 GHz).
template <class S>
__global__ void __launch_bounds__((1 + S::CONSUMERS) * kWarpgroup)
    async_store(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [ring, slices] = *reinterpret_cast<RingAndSlices<S>*>(memory);
    ring.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first_tile = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = hopper::steps_of<S>(depth);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;

    hopper::RingPosition<S> at;
    if (group < 0) {
        S::give_registers();
        if (threadIdx.x == 0) {
            for (int tile = first_tile; tile < tiles; tile += clusters)
                hopper::produce(ring, at, maps, hopper::coords_of<S>(order, tile), 0, steps);
        }
        __syncwarp();
    } else {
        S::take_registers();
        for (int tile = first_tile; tile < tiles; tile += clusters) {
            hopper::TileCoords coords = hopper::coords_of<S>(order, tile);
            coords.row += group * 64;
            hopper::Sums<S> sums;
            hopper::consume(ring, at, group, steps, sums);
            const int warp = static_cast<int>(threadIdx.x - kWarpgroup) / 32;
            hopper::store_through_tma<S>(maps.c, slices[warp], out, coords, sums);
        }
        // TMA must have read this block's shared memory before the block ends. It does not have to
        // wait for the writes, which are complete when the kernel ends.
        ptx::tma_store_wait_read<0>();
    }
    if constexpr (S::CLUSTER > 1) ring.synchronise_cluster();
}

// `early`: a programmatic dependent launch; ring.init() waits for the kernel before.
template <class S>
void launch_async_store(const DeviceMatrix<const typename S::T>& a,
                        const DeviceMatrix<const typename S::T>& b, const Output& out, cudaStream_t stream) {
    Maps maps = make_maps(a, b, S::BM, S::SHARE);
    maps.c = course::make_tensor_map(out.c, 16, hopper::kSliceColumns);
    const RasterOrder order = course::make_order(out.c, S::BM * S::SHARERS, S::BN, kBand);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * kWarpgroup,
                                    .shared = sizeof(RingAndSlices<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = true,
                                    .early = true};
    how.start(async_store<S>, course::blocks_of(order, S::CLUSTER), stream, maps, out,
              static_cast<int>(a.cols()), order);
}

// --- Split-K -------------------------------------------------------------------------------------

// Idea: if there are few tiles and K is long, each block of a cluster takes a part of K; a cluster
// has two, four or eight blocks. Each sends the others the sums of their columns through
// distributed shared memory, adds up those of its own columns and stores them.
// Cost removed: SMs without a tile.
// Still limits it: L2, since each block loads its own A and B (8192^3, counters: 94 % busy); and
// the exchange.
template <class S>
__global__ void __launch_bounds__((1 + S::CONSUMERS) * kWarpgroup)
    split_k(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& ring = *reinterpret_cast<hopper::Ring<S>*>(memory);
    auto& received = *reinterpret_cast<hopper::Received<S>*>(memory);  // when the stages are no longer needed
    static_assert(sizeof(received) <= sizeof(ring.a) + sizeof(ring.b), "the barriers stay intact");
    ring.init(maps);
    hopper::TileCoords coords = hopper::coords_of<S>(order, static_cast<int>(blockIdx.x) / S::CLUSTER);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    const hopper::PartOfK<S> part(hopper::steps_of<S>(depth), S::rank());

    hopper::RingPosition<S> at;
    if (group < 0) {
        if (threadIdx.x == 0) hopper::produce(ring, at, maps, coords, part.first, part.count);
        __syncwarp();
        ring.synchronise_cluster();
        ring.synchronise_cluster();
    } else {
        hopper::Sums<S> sums;
        hopper::consume(ring, at, group, part.count, sums);
        ring.synchronise_cluster();  // all blocks are done with their stages
        hopper::send_sums<S>(received, sums);
        ring.synchronise_cluster();  // the sums have arrived
        coords.row += group * 64;
        hopper::store_own_sums<S>(out, coords, received, sums);
    }
}

template <class S>
void launch_split_k(const DeviceMatrix<const typename S::T>& a, const DeviceMatrix<const typename S::T>& b,
                    const Output& out, cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, 1);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * kWarpgroup,
                                    .shared = sizeof(hopper::Ring<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = false,
                                    .early = true};
    how.start(split_k<S>, course::blocks_of(order, S::CLUSTER), stream, make_maps(a, b, S::BM, S::SHARE), out,
              static_cast<int>(a.cols()), order);
}

}  // namespace day41

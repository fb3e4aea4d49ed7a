// Day 42, beyond: 8-bit operands with TMA and wgmma. Rows are 16-byte aligned.
//
//   version         block tile  stages  what is new                        what limits it
//   bytes_wgmma     128 x 256   4       day 41's TMA and wgmma             power; FP8: lost digits
//   bytes_fitted    one of nine         the tile that suits the shape      as its tile
//   bytes_promoted  128 x 128   6       FP8: CUDA cores add sums of 128    MMAs and additions in turn
//
// The ring of stages, its producer and its consumers are those of day 41, in
// common/tile/wgmma_tile.cuh, because they count bytes. A row of a stage is 128 bytes, now 128
// elements, and from one wgmma to the next both descriptors advance by 32 bytes. Only the boxes of
// B differ, because B is K-major.
#pragma once

#include <cuda_runtime.h>

#include "common/device/cluster_launch.hpp"
#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/wgmma_split.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace day42 {

namespace hopper = course::hopper;
namespace ptx = course::ptx;
using course::DeviceMatrix;
using course::RasterOrder;
using hopper::kWarpgroup;

constexpr int kBandOfClusters = 8;  // of 256 rows, as on day 41

// How TMA sees the operands.
template <class S>
hopper::Maps make_maps(const DeviceMatrix<const typename S::T>& a,
                       const DeviceMatrix<const typename S::T>& b) {
    hopper::Maps maps{};
    if (a.cols() > 0) {  // no extent may be 0; without K, no box is loaded
        maps.a = course::make_tensor_map(a, S::BM, S::BK);
        maps.b = course::make_tensor_map(b, S::SHARE, S::IN_ROW);
    }
    return maps;
}

template <class S>
struct Memory {
    hopper::Ring<S> ring;
    alignas(1024) hopper::Slices<S> slices;
};

template <class T>
using WideTile = hopper::TileShape<T, 128, 256, 4, 2>;  // clusters of two blocks share B

// Idea: async_store of day 41: persistent clusters, a producer and two consumers, C stored by TMA.
// Cost removed: operands no longer pass through registers. wgmma reads them from shared memory.
// Still limits it: power (FP8, counters: tensor cores 92 % busy at 1.56 of 1.98 GHz). For FP8 also
// the precision of the sums: Hopper adds with fewer digits than a float has, so a term that is
// small beside the sum is lost.
//
// S: WideTile, or another of the tiles that `bytes_fitted` chooses from.
template <class S>
__global__ void __launch_bounds__((1 + S::CONSUMERS) * kWarpgroup)
    bytes_wgmma(const __grid_constant__ hopper::Maps maps, course::OutputOf<typename S::Sum> out, int depth,
                RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [ring, slices] = *reinterpret_cast<Memory<S>*>(memory);
    ring.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first_tile = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = hopper::steps_of<S>(depth);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;  // of the consumers; -1: the producer

    hopper::RingPosition<S> at;
    if (group < 0) {
        S::give_registers();
        if (threadIdx.x == 0) {
            for (int tile = first_tile; tile < tiles; tile += clusters)
                hopper::produce(ring, at, maps, hopper::coords_of<S>(order, tile), 0, steps);
        }
        __syncwarp();  // the cluster's barrier takes whole warps
    } else {
        S::take_registers();
        const int warp = static_cast<int>(threadIdx.x - kWarpgroup) / 32;
        for (int tile = first_tile; tile < tiles; tile += clusters) {
            hopper::TileCoords coords = hopper::coords_of<S>(order, tile);
            coords.row += group * 64;
            hopper::Sums<S> sums;
            hopper::consume(ring, at, group, steps, sums);
            hopper::store_through_tma<S>(maps.c, slices[warp], out, coords, sums);
        }
        ptx::tma_store_wait<0>();
    }
    ring.synchronise_cluster();  // a block must not end while the other may still write to its shared memory
}

// `early`: a programmatic dependent launch (day 41); ring.init() waits for the kernel before.
template <class S>
void launch_bytes_wgmma(const DeviceMatrix<const typename S::T>& a,
                        const DeviceMatrix<const typename S::T>& b, const DeviceMatrix<typename S::Sum>& c,
                        cudaStream_t stream) {
    hopper::Maps maps = make_maps<S>(a, b);
    maps.c = course::make_tensor_map(c, 16, hopper::kSliceColumns);
    const RasterOrder order = course::make_order(c, S::BM * S::SHARERS, S::BN, kBandOfClusters);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * kWarpgroup,
                                    .shared = sizeof(Memory<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = true,
                                    .early = true};
    how.start(bytes_wgmma<S>, course::blocks_of(order, S::CLUSTER), stream, maps,
              course::make_output<typename S::Sum>(c, 1, 0), static_cast<int>(a.cols()), order);
}

// Idea: split_k of day 41. The blocks of a cluster compute the same tile of C, each over a part of
// K, and add up their sums through distributed shared memory.
// Cost removed: SMs without a tile, if C is small.
// Still limits it: the exchange; and each block loads its own A and B.
template <class S>
__global__ void __launch_bounds__((1 + S::CONSUMERS) * kWarpgroup)
    bytes_split(const __grid_constant__ hopper::Maps maps, course::OutputOf<typename S::Sum> out, int depth,
                RasterOrder order) {
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
void launch_bytes_split(const DeviceMatrix<const typename S::T>& a,
                        const DeviceMatrix<const typename S::T>& b, const DeviceMatrix<typename S::Sum>& c,
                        cudaStream_t stream) {
    const hopper::Maps maps = make_maps<S>(a, b);
    const RasterOrder order = course::make_order(c, S::BM, S::BN, 1);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * kWarpgroup,
                                    .shared = sizeof(hopper::Ring<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = false,
                                    .early = true};
    how.start(bytes_split<S>, course::blocks_of(order, S::CLUSTER), stream, maps,
              course::make_output<typename S::Sum>(c, 1, 0), static_cast<int>(a.cols()), order);
}

template <class T>
using PromotedTile = hopper::TileShape<T, 128, 128, 6, 2>;

// Sums are read after the wait, and set before the products begin: the compiler must not move
// either.
template <class Array>
__device__ void hold(Array& sums) {
#pragma unroll
    for (auto& sum : sums)
        ptx::hold(sum);
}

// consume(), with the sums of each stage, 128 products, added by CUDA cores in FP32.
template <class S>
__device__ void consume_promoted(hopper::Ring<S>& ring, hopper::RingPosition<S>& at, int group, int steps,
                                 hopper::Sums<S>& sums) {
#pragma unroll
    for (auto& sum : sums)
        sum = 0;
    for (int step = 0; step < steps; ++step, at.advance()) {
        hopper::Sums<S> of_stage = {};
        hold(of_stage);
        ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
        hopper::multiply_stage(ring, at.stage, group, of_stage);
        ptx::wgmma_wait<0>();
        hold(of_stage);
        ring.release_stage(at.stage);
#pragma unroll
        for (int i = 0; i < S::BN / 2; ++i)
            sums[i] += of_stage[i];
    }
}

// Idea: FP8. The tensor cores sum 128 products from zero, and the CUDA cores add these sums.
// Cost removed: the lost digits.
// Still limits it: two sums per result take twice the registers, so tiles are half as wide, and L2
// is 62 % busy, as much as the tensor cores (66 %); and
// while one consumer adds, only the other multiplies.
template <class T>
__global__ void __launch_bounds__(3 * kWarpgroup)
    bytes_promoted(const __grid_constant__ hopper::Maps maps, course::OutputOf<float> out, int depth,
                   RasterOrder order) {
    using S = PromotedTile<T>;
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [ring, slices] = *reinterpret_cast<Memory<S>*>(memory);
    ring.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first_tile = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = hopper::steps_of<S>(depth);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;

    hopper::RingPosition<S> at;
    if (group < 0) {
        if (threadIdx.x == 0) {
            for (int tile = first_tile; tile < tiles; tile += clusters)
                hopper::produce(ring, at, maps, hopper::coords_of<S>(order, tile), 0, steps);
        }
        __syncwarp();
    } else {
        const int warp = static_cast<int>(threadIdx.x - kWarpgroup) / 32;
        for (int tile = first_tile; tile < tiles; tile += clusters) {
            hopper::TileCoords coords = hopper::coords_of<S>(order, tile);
            coords.row += group * 64;
            hopper::Sums<S> sums;
            consume_promoted(ring, at, group, steps, sums);
            hopper::store_through_tma<S>(maps.c, slices[warp], out, coords, sums);
        }
        ptx::tma_store_wait<0>();
    }
    ring.synchronise_cluster();
}

template <class T>
void launch_bytes_promoted(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b,
                           const DeviceMatrix<float>& c, cudaStream_t stream) {
    using S = PromotedTile<T>;
    hopper::Maps maps = make_maps<S>(a, b);
    maps.c = course::make_tensor_map(c, 16, hopper::kSliceColumns);
    const RasterOrder order = course::make_order(c, S::BM * S::SHARERS, S::BN, kBandOfClusters);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * kWarpgroup,
                                    .shared = sizeof(Memory<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = true,
                                    .early = true};
    how.start(bytes_promoted<T>, course::blocks_of(order, S::CLUSTER), stream, maps,
              course::make_output<typename S::Sum>(c, 1, 0), static_cast<int>(a.cols()), order);
}

}  // namespace day42

// Day 31, beyond: products of 8-bit integers with Hopper's TMA and wgmma.
//
//   version   multiply-adds by       what is new                    what limits it
//   wgmma     524,288 in a wgmma     operands from shared memory    power
//
// Day 41 builds the parts one by one; common/tile/wgmma_tile.cuh has them for any tile S: a ring of
// stages in shared memory, produce(), which fills it, and consume(), which multiplies from it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/cluster_launch.hpp"
#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace day31 {

using course::DeviceMatrix;
namespace hopper = course::hopper;

template <class S>
struct WgmmaMemory {
    hopper::Ring<S> ring;
    alignas(1024) hopper::Slices<S> slices;
};

// Idea: a warpgroup multiplies 64 x 32 by 32 x 256 bytes in one instruction, which reads both from
// shared memory. One thread issues the copies of whole tiles; as many blocks run as fit on the GPU,
// each computes tile after tile, and the copies for a tile start while the previous tile is stored.
// Cost removed: operands no longer pass through registers, and the instructions of copies.
// Still limits it: power (counters: tensor cores 92 % busy at 1.67 of 1.98 GHz, memory 26 %).
template <class S>
__global__ void __launch_bounds__((1 + S::CONSUMERS) * hopper::kWarpgroup)
    wgmma(const __grid_constant__ hopper::Maps maps, course::OutputOf<int> out, int depth,
          course::RasterOrder order, bool through_tma) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [ring, slices] = *reinterpret_cast<WgmmaMemory<S>*>(memory);
    ring.init(maps);
    const int clusters = static_cast<int>(gridDim.x) / S::CLUSTER;
    const int first_tile = static_cast<int>(blockIdx.x) / S::CLUSTER;
    const int tiles = order.rows * order.columns;
    const int steps = hopper::steps_of<S>(depth);                              // of 128 bytes of K
    const int group = static_cast<int>(threadIdx.x) / hopper::kWarpgroup - 1;  // -1: the producer

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
        const int warp = static_cast<int>(threadIdx.x) / 32 - 4;
        for (int tile = first_tile; tile < tiles; tile += clusters) {
            hopper::TileCoords coords = hopper::coords_of<S>(order, tile);
            coords.row += group * 64;
            hopper::Sums<S> sums;
            hopper::consume(ring, at, group, steps, sums);
            // Directly from registers if TMA cannot store the rows of C.
            if (through_tma) {
                hopper::store_through_tma<S>(maps.c, slices[warp], out, coords, sums);
            } else {
                hopper::store_from_registers<S>(out, coords, sums);
            }
        }
        course::ptx::tma_store_wait_read<0>();
    }
    if constexpr (S::CLUSTER > 1) ring.synchronise_cluster();
}

constexpr int kBand = 8;  // rows of tiles that are computed together, for L2: as on day 41

// A matrix of a single row may have any leading dimension, but a tensor map needs a multiple of 16.
inline DeviceMatrix<const std::int8_t> with_aligned_pitch(DeviceMatrix<const std::int8_t> matrix) {
    if (matrix.rows() != 1) return matrix;
    const auto row = course::DeviceSpan<const std::int8_t>::from_device_pointer(matrix.data(), matrix.cols());
    return {row, 1, matrix.cols(), course::ceil_div<std::size_t>(matrix.cols(), 16) * 16};
}

template <class S>
void launch_wgmma_shape(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                        DeviceMatrix<std::int32_t> c, cudaStream_t stream) {
    hopper::Maps maps{};
    if (a.cols() > 0) {
        maps.a = course::make_tensor_map(with_aligned_pitch(a), S::BM, S::BK);
        maps.b = course::make_tensor_map(with_aligned_pitch(w), S::SHARE, S::IN_ROW);
    }
    const bool through_tma = course::why_no_tensor_map(c).empty();
    if (through_tma) maps.c = course::make_tensor_map(c, 16, hopper::kSliceColumns);
    const course::RasterOrder order = course::make_order(c, S::BM * S::SHARERS, S::BN, kBand);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * hopper::kWarpgroup,
                                    .shared = sizeof(WgmmaMemory<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = true,
                                    .early = true};
    how.start(wgmma<S>, course::blocks_of(order, S::CLUSTER), stream, maps, course::make_output(c, 1, 0),
              static_cast<int>(a.cols()), order, through_tma);
}

}  // namespace day31

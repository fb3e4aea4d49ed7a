// Day 41, beyond: the blocks of a cluster share loads, and compute tile after tile. The ring of
// stages and the two roles are those of hopper_matmul.cuh.
//
//   version     block tile  stages  what is new                             what limits it
//   multicast   128 x 256   4       the two blocks of a cluster share B     power; start and end of a tile
//   persistent  128 x 256   4       a block computes tile after tile        power; storing C
#pragma once

#include <cstdint>

#include "common/device/cluster_launch.hpp"
#include "hopper_matmul.cuh"

namespace day41 {

// A barrier of all threads of the cluster.
__device__ inline void synchronise_cluster() {
    ptx::cluster_arrive();
    ptx::cluster_wait();
}

// One thread of block `rank` issues the loads of a stage: its own rows of A, and half of the rows
// of B, which arrive in both blocks. So the barrier of each block counts the bytes of a whole
// stage.
//
// The other block's half may arrive before this thread expects it. Is it counted in the right
// phase? This phase cannot end without the arrival of this thread. The phase before has ended: the
// other block loads only after this block's consumers have arrived at `empty`, and they arrive
// after the end of that phase.
template <class T, int BN>
__device__ void load_shared_stage(Stage<T, BN>& stage, ptx::MBarrier* full, const Maps& maps, int row,
                                  int col, int k, int rank) {
    constexpr std::uint16_t kBoth = 0b11;
    const int first = rank * (BK / 2);  // of the rows of each box of B
    ptx::mbarrier_arrive_expect(full, sizeof(stage));
    ptx::tma_load(stage.a, &maps.a, k, row, full);
    for (int box = 0; box < BN / 64; ++box)
        ptx::tma_load_multicast(&stage.b[box][first * 64], &maps.b, col + box * 64, k + first, full, kBoth);
}

// Called by a consumer warpgroup that is done with a stage. Both blocks load into this block's B,
// so two threads arrive, one at the barrier of each block.
template <class T, int BN, int STAGES>
__device__ void release_stage(Ring<T, BN, STAGES>& ring, int stage) {
    const unsigned thread = threadIdx.x % kWarpgroup;
    if (thread < 2) ptx::mbarrier_arrive_at(&ring.empty[stage], thread);
}

// Idea: a cluster of two blocks, one below the other. They need the same B, so each loads half of
// it for both.
// Cost removed: a third of the loads from L2.
// Still limits it: power with a long K (8192^3, counters: tensor cores 93 % busy at 1.57 of 1.98
// GHz); with a short one, the start and end of a tile. While C is stored and the first stages are
// loaded, no MMA is in flight.
template <class T>
__global__ void __launch_bounds__(3 * kWarpgroup)
    multicast(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    WideRing<T>& ring = *reinterpret_cast<WideRing<T>*>(memory);
    const int rank = static_cast<int>(ptx::cluster_rank());
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x) / 2);  // 256 x 256 per cluster
    const int row = (tile.row * 2 + rank) * BM;
    const int col = tile.col * 256;
    const int steps = (depth + BK - 1) / BK;
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (threadIdx.x == 0) init_barriers(ring, maps, 2 * 2);  // the consumers of both blocks
    synchronise_cluster();

    RingPosition<4> at;
    if (group < 0) {
        ptx::registers_decrease<40>();
        if (threadIdx.x == 0) {
            for (int step = 0; step < steps; ++step, at.advance()) {
                ptx::mbarrier_wait(&ring.empty[at.stage], at.parity ^ 1);
                load_shared_stage(ring.stages[at.stage], &ring.full[at.stage], maps, row, col, step * BK,
                                  rank);
            }
        }
        __syncwarp();  // the cluster's barrier takes whole warps
    } else {
        ptx::registers_increase<232>();
        float sums[128];
        clear(sums);
        int previous = -1;
        for (int step = 0; step < steps; ++step, at.advance()) {
            ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
            multiply_stage(ring.stages[at.stage], group, sums);
            ptx::wgmma_wait<1>();
            if (previous >= 0) release_stage(ring, previous);
            previous = at.stage;
        }
        ptx::wgmma_wait<0>();
        if (previous >= 0) release_stage(ring, previous);
        store_sums<256>(out, row + group * 64, col, sums);
    }
    synchronise_cluster();  // a block must not end while the other may still write to its shared memory
}

// A launch with attributes: clusters of two blocks. A load of B brings half a box, 32 rows.
template <class T>
void launch_multicast(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                      cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, 2 * BM, 256, 1);
    const course::ClusterLaunch how{
        .threads = 3 * kWarpgroup, .shared = sizeof(WideRing<T>), .cluster = 2, .persistent = false};
    how.start(multicast<T>, course::blocks_of(order, 2), stream, make_maps(a, b, BM, BK / 2), out,
              static_cast<int>(a.cols()), order);
}

// --- Persistent blocks ---------------------------------------------------------------------------

// Idea: two changes. First, there are as many clusters as fit on the GPU, and each computes tile
// after tile. The ring continues from tile to tile: while the consumers store C, the producer loads
// the first stages of the next tile. Second, the launcher passes another rasterisation order:
// groups of eight rows of tiles instead of row by row.
// Cost removed: by the first change, the start of a tile; by the second, misses in L2, because
// blocks that run at the same time share rows and columns.
// Still limits it: power with a long K (8192^3, counters: tensor cores 95 % busy at 1.58 of 1.98
// GHz); with a short one, storing C. During the store, the consumers do not multiply.
template <class T>
__global__ void __launch_bounds__(3 * kWarpgroup)
    persistent(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    WideRing<T>& ring = *reinterpret_cast<WideRing<T>*>(memory);
    const int rank = static_cast<int>(ptx::cluster_rank());
    const int first_tile = static_cast<int>(blockIdx.x) / 2;
    const int clusters = static_cast<int>(gridDim.x) / 2;
    const int tiles = order.rows * order.columns;
    const int steps = (depth + BK - 1) / BK;
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (threadIdx.x == 0) init_barriers(ring, maps, 2 * 2);
    synchronise_cluster();

    RingPosition<4> at;
    if (group < 0) {
        ptx::registers_decrease<40>();
        if (threadIdx.x == 0) {
            for (int index = first_tile; index < tiles; index += clusters) {
                const RasterOrder::Tile tile = order.tile(index);
                const int row = (tile.row * 2 + rank) * BM;
                const int col = tile.col * 256;
                for (int step = 0; step < steps; ++step, at.advance()) {
                    ptx::mbarrier_wait(&ring.empty[at.stage], at.parity ^ 1);
                    load_shared_stage(ring.stages[at.stage], &ring.full[at.stage], maps, row, col, step * BK,
                                      rank);
                }
            }
        }
        __syncwarp();
    } else {
        ptx::registers_increase<232>();
        for (int index = first_tile; index < tiles; index += clusters) {
            const RasterOrder::Tile tile = order.tile(index);
            const int row = (tile.row * 2 + rank) * BM + group * 64;
            const int col = tile.col * 256;
            float sums[128];
            clear(sums);
            int previous = -1;
            for (int step = 0; step < steps; ++step, at.advance()) {
                ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
                multiply_stage(ring.stages[at.stage], group, sums);
                ptx::wgmma_wait<1>();
                if (previous >= 0) release_stage(ring, previous);
                previous = at.stage;
            }
            ptx::wgmma_wait<0>();
            if (previous >= 0) release_stage(ring, previous);
            store_sums<256>(out, row, col, sums);
        }
    }
    synchronise_cluster();
}

constexpr int kBand = 8;  // of 256 rows: 66 clusters work on about 8 x 8 tiles of 256 x 256

// Blocks: no more than can be resident at a time.
template <class T>
void launch_persistent(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                       cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, 2 * BM, 256, kBand);
    const course::ClusterLaunch how{
        .threads = 3 * kWarpgroup, .shared = sizeof(WideRing<T>), .cluster = 2, .persistent = true};
    how.start(persistent<T>, course::blocks_of(order, 2), stream, make_maps(a, b, BM, BK / 2), out,
              static_cast<int>(a.cols()), order);
}

}  // namespace day41

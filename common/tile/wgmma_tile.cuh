// A tile of C by TMA and wgmma, for any tile size: a ring of stages in shared memory, the producer
// that fills it and the consumers that multiply from it. Day 41 builds these parts one by one.
//
// Only for a course_hopper_library.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/raster_order.cuh"
#include "common/tile/warpgroup.cuh"

namespace course::hopper {

using course::kWarpgroup;

// BM x BN results per block, 64 x BN per consumer warpgroup; STAGES tiles of A and B in shared
// memory. A cluster has SHARERS blocks, one below the other, that share B; or SPLITS blocks with
// the same tile of C, each with its part of K. B is K x N, or N x K for 8-bit elements.
template <class T_, int BM_, int BN_, int STAGES_, int SHARERS_ = 1, int SPLITS_ = 1>
struct TileShape {
    static_assert(SHARERS_ == 1 || SPLITS_ == 1);
    using T = T_;
    using Sum = std::conditional_t<std::is_integral_v<T>, int, float>;
    static constexpr bool B_ALONG_K = sizeof(T) == 1;
    static constexpr int BM = BM_, BN = BN_, STAGES = STAGES_, SHARERS = SHARERS_, SPLITS = SPLITS_;
    static constexpr int CLUSTER = SHARERS * SPLITS;
    static constexpr int IN_ROW = 128 / sizeof(T);  // elements in a row of a box: 128 bytes, all 32 banks
    static constexpr int BK = IN_ROW;
    static constexpr int SLICES = BM > 128 ? 1 : 2;        // of C, per warp, in shared memory
    static constexpr int CONSUMERS = BM / 64;              // consumer warpgroups
    static constexpr int BOXES = (BN + 63) / 64;           // of B per stage, 64 rows each
    static constexpr int SHARE = 64 / SHARERS;             // rows of such a box that one block loads
    static constexpr int BYTES = (BM + BOXES * 64) * 128;  // of a stage

    // The rank of this block in its cluster.
    __device__ static int rank() { return CLUSTER == 1 ? 0 : static_cast<int>(ptx::cluster_rank()); }

    static_assert(BN / 32 % SLICES == 0, "a tile's last slice and the next one's first would be the same");
    static_assert(BN < 256 || CONSUMERS <= 2, "too few registers for the sums");

    // 128 sums per thread, or three consumer warpgroups, need the producer's registers.
    __device__ static void give_registers() {
        if constexpr (BN == 256) ptx::registers_decrease<40>();
        if constexpr (CONSUMERS == 3) ptx::registers_decrease<32>();
    }
    __device__ static void take_registers() {
        if constexpr (BN == 256) ptx::registers_increase<232>();
        if constexpr (CONSUMERS == 3) ptx::registers_increase<160>();
    }
};

template <class S>
using Sums = typename S::Sum[S::BN / 2];  // of a thread

// In shared memory. Every box is 1024-byte aligned, because the swizzle pattern repeats after 1024
// bytes.
template <class S>
struct alignas(1024) Ring {
    typename S::T a[S::STAGES][S::BM * S::BK];
    typename S::T b[S::STAGES][S::BOXES][S::BK * 64];
    // A phase of `full` ends when the bytes of the stage have arrived, one of `empty` when all its
    // consumers, in all blocks of the cluster, are done with it.
    ptx::MBarrier full[S::STAGES];
    ptx::MBarrier empty[S::STAGES];

    // Called by all threads of the cluster, first. With a programmatic dependent launch, this part
    // runs while the kernel in front ends; then its results are waited for.
    __device__ void init(const Maps& maps) {
        if (threadIdx.x == 0) {
            ptx::prefetch(&maps.a);
            ptx::prefetch(&maps.b);
            for (int stage = 0; stage < S::STAGES; ++stage) {
                ptx::mbarrier_init(&full[stage], 1);
                ptx::mbarrier_init(&empty[stage], S::CONSUMERS * S::SHARERS);
            }
            ptx::fence_mbarrier_init();
        }
        synchronise_cluster();
        cudaGridDependencySynchronize();  // the kernel before has ended
    }

    // A barrier of all threads of the cluster, which may be one block.
    __device__ static void synchronise_cluster() {
        if constexpr (S::CLUSTER > 1) {
            ptx::cluster_arrive();
            ptx::cluster_wait();
        } else {
            __syncthreads();
        }
    }

    // Called by a consumer warpgroup that no longer reads the stage. One thread arrives for it at
    // the barrier of each block that loads into this stage.
    __device__ void release_stage(int stage) {
        const unsigned thread = threadIdx.x % kWarpgroup;
        if constexpr (S::SHARERS > 1) {
            if (thread < S::SHARERS) ptx::mbarrier_arrive_at(&empty[stage], thread);
        } else {
            if (thread == 0) ptx::mbarrier_arrive(&empty[stage]);
        }
    }
};

// The next stage of the ring, and the parity of its phase.
template <class S>
using RingPosition = course::RingPosition<S::STAGES>;

// The first row and column of a tile of C.
struct TileCoords {
    int row;
    int col;
};

// Those of the block's part of tile `index`: the blocks of a cluster are one below the other.
template <class S>
__device__ TileCoords coords_of(const RasterOrder& order, int index) {
    const RasterOrder::Tile tile = order.tile(index);
    return {(tile.row * S::SHARERS + (S::SHARERS == 1 ? 0 : S::rank())) * S::BM, tile.col * S::BN};
}

// Steps along K: one iteration each, for the tiles of one stage.
template <class S>
__device__ int steps_of(int depth) {
    return depth / S::BK + (depth % S::BK == 0 ? 0 : 1);  // depth + BK may exceed an int
}

// One thread issues the loads of a stage, from `k` on. A block of a cluster loads its rows of A and
// its share of B, which arrives in all blocks of the cluster.
template <class S>
__device__ void load_stage(Ring<S>& ring, int stage, const Maps& maps, TileCoords tile, int k) {
    ptx::MBarrier* const full = &ring.full[stage];
    ptx::mbarrier_arrive_expect(full, S::BYTES);
    ptx::tma_load(ring.a[stage], &maps.a, k, tile.row, full);
    const auto col = [&](int box) { return S::B_ALONG_K ? k : tile.col + box * 64; };
    const auto row = [&](int box) { return S::B_ALONG_K ? tile.col + box * 64 : k; };
    if constexpr (S::SHARERS == 1) {
        for (int box = 0; box < S::BOXES; ++box)
            ptx::tma_load(ring.b[stage][box], &maps.b, col(box), row(box), full);
    } else {
        const int first = S::rank() * S::SHARE;  // row of each box
        for (int box = 0; box < S::BOXES; ++box)
            ptx::tma_load_multicast(&ring.b[stage][box][first * S::IN_ROW], &maps.b, col(box),
                                    row(box) + first, full, (1 << S::SHARERS) - 1);
    }
}

// Issues the products of a stage as one group: the 64 rows of A of consumer `group` times all of B.
// A wgmma takes 32 bytes of K.
template <class S>
__device__ void multiply_stage(const Ring<S>& ring, int stage, int group, Sums<S>& sums) {
    const std::uint64_t a = ptx::descriptor_k_major(ring.a[stage] + group * 64 * S::BK);
    const std::uint64_t b = S::B_ALONG_K ? ptx::descriptor_k_major(ring.b[stage])
                                         : ptx::descriptor_mn_major(ring.b[stage], sizeof(ring.b[stage][0]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step)
        ptx::wgmma<typename S::T, !S::B_ALONG_K>(sums, ptx::advanced(a, step * 32),
                                                 ptx::advanced(b, step * (S::B_ALONG_K ? 32 : 2048)));
    ptx::wgmma_commit();
}

// The producer, one thread: loads `steps` stages of a tile, each as soon as its place in the ring
// is empty.
template <class S>
__device__ void produce(Ring<S>& ring, RingPosition<S>& at, const Maps& maps, TileCoords tile, int first_step,
                        int steps) {
    for (int step = first_step; step < first_step + steps; ++step, at.advance()) {
        ptx::mbarrier_wait(&ring.empty[at.stage], at.parity ^ 1);
        load_stage(ring, at.stage, maps, tile, step * S::BK);
    }
}

// Sets the sums to zero, before the products begin; day 41 explains why hold() is needed.
template <class Sum, int COUNT>
__device__ void clear(Sum (&sums)[COUNT]) {
#pragma unroll
    for (Sum& sum : sums) {
        sum = 0;
        ptx::hold(sum);
    }
}

// Consumer warpgroup `group`: the sums of its 64 rows of a tile. The products of one stage are in
// flight while those of the next are issued; then it waits for the older ones and releases their
// stage.
template <class S>
__device__ void consume(Ring<S>& ring, RingPosition<S>& at, int group, int steps, Sums<S>& sums) {
    clear(sums);
    int previous = -1;
    for (int step = 0; step < steps; ++step, at.advance()) {
        ptx::mbarrier_wait(&ring.full[at.stage], at.parity);
        multiply_stage(ring, at.stage, group, sums);
        ptx::wgmma_wait<1>();
        if (previous >= 0) ring.release_stage(previous);
        previous = at.stage;
    }
    ptx::wgmma_wait<0>();
    if (previous >= 0) ring.release_stage(previous);
}

}  // namespace course::hopper

// Split-K in a cluster: its blocks compute the same tile of C, each for its part of K, and add
// their sums up through distributed shared memory. It needs no scratch memory, and the order of
// the additions is fixed.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace course::hopper {

// Of a thread's BN / 2 sums each block completes and stores OWNED: block 0 those of the first
// columns.
template <class S>
constexpr int OWNED = S::BN / 2 / S::SPLITS;

// The sums that a block receives in shared memory: from each block of the cluster, the sums of a
// thread in a column.
template <class S>
using Received = typename S::Sum[S::SPLITS][OWNED<S>][S::CONSUMERS * kWarpgroup];

// The steps along K of block `rank`: the first blocks get one more where K does not divide.
template <class S>
struct PartOfK {
    int first;
    int count;

    __device__ PartOfK(int steps, int rank)
        : first(rank * (steps / S::SPLITS) + min(rank, steps % S::SPLITS)),
          count(steps / S::SPLITS + (rank < steps % S::SPLITS ? 1 : 0)) {}
};

// Called by the consumers of all blocks: each block gets the sums of its columns.
template <class S>
__device__ void send_sums(Received<S>& received, const Sums<S>& sums) {
    const int rank = S::rank();
    const unsigned thread = threadIdx.x % (S::CONSUMERS * kWarpgroup);
#pragma unroll
    for (int to = 0; to < S::SPLITS; ++to) {
        if (to == rank) continue;
        auto& theirs = *cooperative_groups::this_cluster().map_shared_rank(&received, to);
#pragma unroll
        for (int i = 0; i < OWNED<S>; ++i)
            theirs[rank][i][thread] = sums[to * OWNED<S> + i];
    }
}

// Called by the consumers when all sums have been sent: adds those of this block's columns, in the
// order of the blocks, and stores them. `tile`: the first row and column of the warpgroup's part.
template <class S>
__device__ void store_own_sums(const OutputOf<typename S::Sum>& out, TileCoords tile,
                               const Received<S>& received, const Sums<S>& sums) {
    static_assert(OWNED<S> % 4 == 0, "a block stores eight columns at least");
    const int rank = S::rank();
    const unsigned thread = threadIdx.x % (S::CONSUMERS * kWarpgroup);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
    for (int owner = 0; owner < S::SPLITS; ++owner) {
        // Unrolled, so that sums stay in registers.
        if (owner != rank) continue;
        typename S::Sum total[OWNED<S>];
#pragma unroll
        for (int i = 0; i < OWNED<S>; ++i) {
            total[i] = 0;
#pragma unroll
            for (int from = 0; from < S::SPLITS; ++from)
                total[i] += from == owner ? sums[owner * OWNED<S> + i] : received[from][i][thread];
        }
#pragma unroll
        for (int i = 0; i < OWNED<S>; i += 2)
            store_pair(out, tile.row + warp * 16 + i / 2 % 2 * 8 + lane / 4,
                       tile.col + owner * (S::BN / S::SPLITS) + i / 4 * 8 + lane % 4 * 2, total[i],
                       total[i + 1]);
    }
}

}  // namespace course::hopper

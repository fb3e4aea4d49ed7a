// What Hopper's versions share: a tile of C is computed from stages, pieces of A and B along K that the tensor memory accelerator
// (TMA) brings to shared memory and wgmma multiplies there. A stage goes round: empty, asked for, full, multiplied, empty.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/device/ptx_hopper.cuh"
#include "output.cuh"

namespace day40 {

namespace ptx = course::ptx;

constexpr int kWarpgroup = 128;  // threads: the four warps that wgmma takes

// BM x BN results of a block, 64 x BN of a warpgroup; STAGES pieces of A and B in shared memory at a time. Clusters are of SHARERS blocks, one
// below the other, that share B; or of SPLITS blocks that have the same results to find, each from its part of K.
// B is K x N, or, of 8-bit elements, N x K.
template <class T_, int BM_, int BN_, int STAGES_, int SHARERS_ = 1, int SPLITS_ = 1>
struct TileShape {
    static_assert(SHARERS_ == 1 || SPLITS_ == 1);
    using T = T_;
    using Sum = std::conditional_t<std::is_integral_v<T>, int, float>;
    static constexpr bool B_ALONG_K = sizeof(T) == 1;
    static constexpr int BM = BM_, BN = BN_, STAGES = STAGES_, SHARERS = SHARERS_, SPLITS = SPLITS_;
    static constexpr int CLUSTER = SHARERS * SPLITS;
    static constexpr int IN_ROW = 128 / sizeof(T);  // elements of a row of a box: 128 bytes, all 32 banks
    static constexpr int BK = IN_ROW;
    static constexpr int SLICES =
        BM > 128 ? 1 : 2;                         // of C, that a warp has in shared memory on their way out
    static constexpr int MULTIPLIERS = BM / 64;   // warpgroups that multiply
    static constexpr int BOXES = (BN + 63) / 64;  // of B, in a stage: 64 rows each
    static constexpr int SHARE = 64 / SHARERS;    // of these, what a block asks for
    static constexpr int BYTES = (BM + BOXES * 64) * 128;  // of a stage

    // Which block of its cluster this is.
    __device__ static int rank() { return CLUSTER == 1 ? 0 : static_cast<int>(ptx::cluster_rank()); }

    static_assert(BN / 32 % SLICES == 0, "a tile's last slice and the next one's first would be the same");
    static_assert(BN < 256 || MULTIPLIERS <= 2, "no registers for that many sums");

    // Sums of 128 registers of a thread, and three warpgroups that multiply, need the producer's registers.
    __device__ static void give_registers() {
        if constexpr (BN == 256) ptx::registers_decrease<40>();
        if constexpr (MULTIPLIERS == 3) ptx::registers_decrease<32>();
    }
    __device__ static void take_registers() {
        if constexpr (BN == 256) ptx::registers_increase<232>();
        if constexpr (MULTIPLIERS == 3) ptx::registers_increase<160>();
    }
};

template <class S>
using Sums = typename S::Sum[S::BN / 2];  // of a thread

// How TMA sees the matrices.
struct Maps {
    CUtensorMap a;  // boxes of BM x BK
    CUtensorMap b;  // of SHARE x IN_ROW
    CUtensorMap c;  // of 16 x 32, for those who store through it
};

// In shared memory. Every box begins at a multiple of 1024 bytes, which is where the swizzle's pattern begins.
template <class S>
struct alignas(1024) Stages {
    typename S::T a[S::STAGES][S::BM * S::BK];
    typename S::T b[S::STAGES][S::BOXES][S::BK * 64];
    ptx::MBarrier full[S::STAGES];  // ends a phase when a stage's bytes are there
    ptx::MBarrier
        empty[S::STAGES];  // when all who multiply have left it, those of the cluster's other blocks too

    // Called by all threads of the cluster, first.
    __device__ void init(const Maps& maps) {
        if (threadIdx.x == 0) {
            ptx::prefetch(&maps.a);
            ptx::prefetch(&maps.b);
            for (int stage = 0; stage < S::STAGES; ++stage) {
                ptx::mbarrier_init(&full[stage], 1);
                ptx::mbarrier_init(&empty[stage], S::MULTIPLIERS * S::SHARERS);
            }
            ptx::fence_mbarrier_init();
        }
        meet();
    }

    // All threads of the cluster wait for each other.
    __device__ static void meet() {
        if constexpr (S::CLUSTER > 1) {
            ptx::cluster_arrive();
            ptx::cluster_wait();
        } else {
            __syncthreads();
        }
    }

    // One thread of each warpgroup that multiplies tells every block that copies to this stage: we have left it.
    __device__ void release(int stage) {
        const unsigned thread = threadIdx.x % kWarpgroup;
        if constexpr (S::SHARERS > 1) {
            if (thread < S::SHARERS) ptx::mbarrier_arrive_at(&empty[stage], thread);
        } else {
            if (thread == 0) ptx::mbarrier_arrive(&empty[stage]);
        }
    }
};

// Whose turn it is in the ring of stages, and the parity of its phase.
template <class S>
struct Turn {
    int stage = 0;
    unsigned parity = 0;

    __device__ void next() {
        stage = stage + 1 == S::STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
};

// The first row and column of a tile of C.
struct Place {
    int row;
    int column;
};

// The first row and column of the block's part of tile `tile`: blocks of a cluster are one below the other.
template <class S>
__device__ Place place_of(const Order& order, int tile) {
    const Order::Place place = order.place(tile);
    return {(place.row * S::SHARERS + (S::SHARERS == 1 ? 0 : S::rank())) * S::BM, place.column * S::BN};
}

// Stages along K.
template <class S>
__device__ int steps_of(int depth) {
    return (depth + S::BK - 1) / S::BK;
}

// Asks for one stage: `k` on, of the tile at `place`. One thread. A block of a cluster asks for its rows of A and its share of B,
// which arrives in all blocks of the cluster.
template <class S>
__device__ void request(Stages<S>& stages, int stage, const Maps& maps, Place place, int k) {
    ptx::MBarrier* const full = &stages.full[stage];
    ptx::mbarrier_arrive_expect(full, S::BYTES);
    ptx::tma_load(stages.a[stage], &maps.a, k, place.row, full);
    const auto column = [&](int box) { return S::B_ALONG_K ? k : place.column + box * 64; };
    const auto row = [&](int box) { return S::B_ALONG_K ? place.column + box * 64 : k; };
    if constexpr (S::SHARERS == 1) {
        for (int box = 0; box < S::BOXES; ++box)
            ptx::tma_load(stages.b[stage][box], &maps.b, column(box), row(box), full);
    } else {
        const int first = S::rank() * S::SHARE;  // row of each box
        for (int box = 0; box < S::BOXES; ++box)
            ptx::tma_load_multicast(&stages.b[stage][box][first * S::IN_ROW], &maps.b, column(box),
                                    row(box) + first, full, (1 << S::SHARERS) - 1);
    }
}

// Starts the products of one stage, as a group: 64 rows of A, those of warpgroup `group`, by all of B. A product takes 32 bytes of k.
template <class S>
__device__ void start_products(const Stages<S>& stages, int stage, int group, Sums<S>& sums) {
    const std::uint64_t a = ptx::descriptor_k_major(stages.a[stage] + group * 64 * S::BK);
    const std::uint64_t b = S::B_ALONG_K
                                ? ptx::descriptor_k_major(stages.b[stage])
                                : ptx::descriptor_mn_major(stages.b[stage], sizeof(stages.b[stage][0]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step)
        ptx::wgmma<typename S::T, !S::B_ALONG_K>(sums, ptx::advanced(a, step * 32),
                                                 ptx::advanced(b, step * (S::B_ALONG_K ? 32 : 2048)));
    ptx::wgmma_commit();
}

// The producer: asks for all stages of a tile, or those of a part of K, each as soon as its place is empty. One thread.
template <class S>
__device__ void produce(Stages<S>& stages, Turn<S>& turn, const Maps& maps, Place place, int first_step,
                        int steps) {
    for (int step = first_step; step < first_step + steps; ++step, turn.next()) {
        ptx::mbarrier_wait(&stages.empty[turn.stage], turn.parity ^ 1);
        request(stages, turn.stage, maps, place, step * S::BK);
    }
}

// A consumer, warpgroup `group` of those that multiply: the sums of its 64 rows of a tile, over so many stages. The products of one stage are
// under way while those of the next are started; then the older ones are waited for, and their stage is left.
template <class S>
__device__ void multiply(Stages<S>& stages, Turn<S>& turn, int group, int steps, Sums<S>& sums) {
#pragma unroll
    for (auto& sum : sums) {
        sum = 0;
        ptx::hold(sum);
    }
    int before = -1;
    for (int step = 0; step < steps; ++step, turn.next()) {
        ptx::mbarrier_wait(&stages.full[turn.stage], turn.parity);
        start_products(stages, turn.stage, group, sums);
        ptx::wgmma_wait<1>();
        if (before >= 0) stages.release(before);
        before = turn.stage;
    }
    ptx::wgmma_wait<0>();
    if (before >= 0) stages.release(before);
}

}  // namespace day40

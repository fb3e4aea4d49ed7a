// Day 41: C = alpha A B + beta C with Hopper's TMA and wgmma, 16-bit factors, sums in FP32.
// PMPP chapter 15 (5th edition).
//
// A is M x K, B is K x N, C is M x N, all row-major. Any shape. Rows of A and B are 16-byte
// aligned, and those of C in versions that store it by TMA. Only realigned takes other rows.
//
//   version      block tile  stages  what is new                             what limits it
//   tma_wgmma    128 x 128   1       TMA copies, wgmma multiplies            they take turns
//   ring         128 x 128   4       a ring of stages: loads run ahead       a barrier of the block per step
//   specialised  128 x 128   6       a producer warpgroup, two consumers     reads of shared memory
//   wide_tile    128 x 256   4       consumers get the producer's registers  each block loads its own B
//   multicast    128 x 256   4       the two blocks of a cluster share B     the begin and end of a tile
//   persistent   128 x 256   4       a block computes tile after tile        storing C
//   async_store  128 x 256   4       C leaves through shared memory and TMA  power
//   split_k      128 x 128   6       two blocks share the K of a tile        exchanging their sums
//   fitted       one of eleven       the tile that suits the shape           as its tile
//   realigned    as fitted           unaligned rows: loaded or copied        loads; copies
//
// The kernels of the first six are below, those of async_store and split_k in any_tile.cuh. fitted
// and realigned choose among them (common/tile/tile_choice.hpp, common/device/aligned_copy.cuh).
//
//   ./course run day41                                            every version, verified and timed
//   ./course run day41 --only persistent --size 4096x4096x4096    one version, any size
//   ./course inspect day41 --only async_store --size 256x256x128  bank conflicts, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/ptx_hopper.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace day41 {

namespace hopper = course::hopper;
namespace ptx = course::ptx;
using course::RasterOrder;
using hopper::kWarpgroup;  // 128 threads: the four warps that issue a wgmma together
using hopper::Maps;        // the tensor maps of A, B and C: how TMA sees the matrices
using Output = course::OutputOf<float>;

constexpr int BM = 128;  // rows of a block's tile: two warpgroups of 64
constexpr int BK = 64;   // depth of a stage: rows of 128 bytes, which is what the swizzle permutes

// A tile of A and one of B in shared memory. TMA copies boxes whose rows are 128 bytes long: A's
// tile is one box, B's has one for each 64 columns. A box must be 1024-byte aligned.
template <class T, int BN>
struct alignas(1024) Stage {
    T a[BM * BK];
    T b[BN / 64][BK * 64];
};

// One thread issues the loads of a stage: K from `k` on, of the tile at (row, column). The
// barrier's phase ends when all of its bytes have arrived. Out-of-range elements are zero-filled,
// and count as bytes.
template <class T, int BN>
__device__ void load_stage(Stage<T, BN>& stage, ptx::MBarrier* full, const Maps& maps, int row, int col,
                           int k) {
    ptx::mbarrier_arrive_expect(full, sizeof(stage));
    ptx::tma_load(stage.a, &maps.a, k, row, full);
    for (int box = 0; box < BN / 64; ++box)
        ptx::tma_load(stage.b[box], &maps.b, col + box * 64, k, full);
}

// Issues the products of a stage: 64 rows of A, those of warpgroup `group`, times all of B. wgmma
// reads both from shared memory, through descriptors. One wgmma takes 16 of K: 32 bytes of A's
// rows, 16 rows of B. The fence orders earlier accesses to the sums, which are registers, before
// the products. It does not order writes to shared memory: what threads have written there would
// need fence_proxy_async(). TMA wrote the stage, so its barrier is enough.
template <class T, int BN>
__device__ void multiply_stage(const Stage<T, BN>& stage, int group, float (&sums)[BN / 2]) {
    const std::uint64_t a = ptx::descriptor_k_major(stage.a + group * 64 * BK);
    const std::uint64_t b = ptx::descriptor_mn_major(stage.b, sizeof(stage.b[0]));
    constexpr bool kBRowMajor = true;
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < BK; k += 16)
        ptx::wgmma<T, kBRowMajor>(sums, ptx::advanced(a, k * 2), ptx::advanced(b, k * 128));
    ptx::wgmma_commit();
}

// Stores alpha sum + beta C from registers, 64 rows from `row` on. Lane 4 g + t of a warp holds
// columns 2 t and 2 t + 1 of each eight, in rows g and g + 8 of its 16.
template <int BN>
__device__ void store_sums(const Output& out, int row, int col, const float (&sums)[BN / 2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    row += warp * 16 + lane / 4;
    col += lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < BN / 2; i += 4) {
        store_pair(out, row, col + i * 2, sums[i], sums[i + 1]);
        store_pair(out, row + 8, col + i * 2, sums[i + 2], sums[i + 3]);
    }
}

template <class T>
struct OneStage {
    Stage<T, 128> stage;
    ptx::MBarrier full;
};

// Idea: one thread issues the TMA loads of a stage, and an mbarrier counts their bytes. Then two
// warpgroups multiply it, each with one wgmma per 64 x 128 x 16.
// Cost removed: the instructions of copies, fragments and addresses. No data passes through
// registers.
// Still limits it: copies and products take turns. Only other blocks on the SM fill the gaps.
//
// `maps` is a __grid_constant__: TMA reads a tensor map through its address, so it must not be
// copied to a thread's local memory. order.tile(b) is the tile of C of block b.
template <class T>
__global__ void __launch_bounds__(2 * kWarpgroup)
    tma_wgmma(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [stage, full] = *reinterpret_cast<OneStage<T>*>(memory);
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * BM;
    const int col = tile.col * 128;
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);  // one arrival: of the thread that issues the loads
        ptx::fence_mbarrier_init();    // TMA must see it, too
    }
    __syncthreads();

    float sums[64] = {};  // of this thread: 64 x 128 per warpgroup
    unsigned parity = 0;  // of the barrier's phase: 0, 1, 0, ...
    for (int k = 0; k < depth; k += BK, parity ^= 1) {
        if (threadIdx.x == 0) load_stage(stage, &full, maps, row, col, k);
        ptx::mbarrier_wait(&full, parity);  // the stage is complete
        multiply_stage(stage, group, sums);
        ptx::wgmma_wait<0>();
        __syncthreads();  // the stage is safe to overwrite
    }
    store_sums<128>(out, row + group * 64, col, sums);
}

// --- A ring of stages ----------------------------------------------------------------------------

template <class T, int BN, int STAGES>
struct Ring {
    Stage<T, BN> stages[STAGES];
    ptx::MBarrier full[STAGES];   // a phase ends when the bytes of the stage have arrived
    ptx::MBarrier empty[STAGES];  // from `specialised` on: when all consumers are done with the stage
};

template <class T>
using PlainRing = Ring<T, 128, 4>;

// Idea: a ring of four stages. While one is multiplied, the loads of the next three are in flight.
// Cost removed: the latency of a load.
// Still limits it: one barrier per step for all threads. The tensor cores idle from the last
// product of a step to the first of the next.
template <class T>
__global__ void __launch_bounds__(2 * kWarpgroup)
    ring(const __grid_constant__ Maps maps, Output out, int depth, RasterOrder order) {
    constexpr int STAGES = 4;
    extern __shared__ __align__(1024) unsigned char memory[];
    PlainRing<T>& ring = *reinterpret_cast<PlainRing<T>*>(memory);
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * BM;
    const int col = tile.col * 128;
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
    const int steps = (depth + BK - 1) / BK;
    if (threadIdx.x == 0) {
        for (ptx::MBarrier& full : ring.full)
            ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
        for (int step = 0; step < min(STAGES, steps); ++step)
            load_stage(ring.stages[step], &ring.full[step], maps, row, col, step * BK);
    }
    __syncthreads();

    float sums[64] = {};
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        ptx::mbarrier_wait(&ring.full[stage], step / STAGES % 2);
        multiply_stage(ring.stages[stage], group, sums);
        ptx::wgmma_wait<0>();
        __syncthreads();  // the stage is safe to overwrite
        if (threadIdx.x == 0 && step + STAGES < steps)
            load_stage(ring.stages[stage], &ring.full[stage], maps, row, col, (step + STAGES) * BK);
    }
    store_sums<128>(out, row + group * 64, col, sums);
}

// --- Warp specialisation -------------------------------------------------------------------------

// Called first, by thread 0. `consumers`: arrivals that empty a stage. The tensor maps are fetched
// meanwhile.
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

// The next stage in the ring and the parity of its phase, counted without a division. Producer and
// consumers each have their own.
template <int STAGES>
struct RingPosition {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
};

// Sets the sums to zero before the loop: hold() stops the compiler from moving that behind the
// loop, for the case that there is no step. To ptxas that would be a write to registers of a
// running wgmma, and it would serialise all of them. tma_wgmma and ring leave no product in flight
// at the end of a step, so they need no hold().
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
// multiply. A consumer issues the products of a step before it waits for those of the previous one.
// Cost removed: the barrier of all threads. The tensor cores always have products to work on.
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
            // The products of the previous step are complete. A group of wgmma belongs to the
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
// Still limits it: L2. Each SM loads 48 KB per 1024 cycles of products, and each block its own B.
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

// --- Clusters ------------------------------------------------------------------------------------

// A barrier of all threads of the cluster.
__device__ inline void synchronise_cluster() {
    ptx::cluster_arrive();
    ptx::cluster_wait();
}

// One thread of block `rank` issues the loads of a stage: its own rows of A, and half of the rows
// of B, which arrive in both blocks. So the barrier of each block counts the bytes of a whole
// stage.
//
// The other block's half may arrive before this thread expects it. It counts for the right phase:
// this phase cannot end without the arrival of this thread. And the phase before has ended, because
// the other block has waited at `empty` for this block's consumers, which had waited for that end.
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
// Still limits it: the begin and end of a tile. While C is stored and the first stages are loaded,
// no product is in flight.
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

// --- Persistent blocks ---------------------------------------------------------------------------

// Idea: two changes. As many clusters as fit on the GPU; each computes tile after tile. The ring
// goes on from tile to tile: while the consumers store C, the producer loads the first stages of
// the next. And the launcher passes another order: tiles in bands of eight rows of tiles, where it
// was row by row.
// Cost removed: by the first, the begin of a tile; by the second, misses in L2, as blocks that run
// at the same time share rows and columns.
// Still limits it: storing C. Meanwhile the consumers do not multiply.
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

}  // namespace day41

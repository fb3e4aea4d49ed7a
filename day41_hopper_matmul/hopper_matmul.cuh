// Day 41: C = alpha A B + beta C with Hopper's TMA and wgmma, 16-bit operands, sums in FP32. PMPP
// chapter 15 (5th edition).
//
// A is M x K, B is K x N, C is M x N, all row-major. Any shape. Rows of A and B are 16-byte
// aligned.
//
//   version      block tile  stages  what is new                             what limits it
//   tma_wgmma    128 x 128   1       TMA copies, wgmma multiplies            they take turns
//   ring         128 x 128   4       a ring of stages: loads run ahead       L2; a barrier of the block per step
//   specialised  128 x 128   6       a producer warpgroup, two consumers     L2: small tiles
//   wide_tile    128 x 256   4       consumers get the producer's registers  power; each block loads its B
//
// A step is one iteration of the main loop, 64 of K; a stage is the shared memory for one step's
// tiles. Each kernel is followed by its launch. Further versions are in beyond/.
//
// Maps has the tensor maps of A, B and C, which describe the matrices to TMA. order.tile(b) is the
// tile of C of block b. Output has C, alpha and beta; store_pair() stores two adjacent elements.
// Each instruction is a function of ptx_hopper.cuh.
//
//   ./course run day41                                          every version, verified and timed
//   ./course run day41 --program                                program.cu: one product, from main()
//   ./course run day41 --only ring --size 4096x4096x4096        one version, any size
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/launch.hpp"
#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"

namespace day41 {

namespace ptx = course::ptx;
using course::DeviceMatrix;
using course::RasterOrder;
using course::hopper::Maps;
using Output = course::OutputOf<float>;

constexpr int kWarpgroup = 128;  // threads: the four warps that issue a wgmma together

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

// Issues the MMAs of a stage: 64 rows of A, those of warpgroup `group`, times all of B. wgmma reads
// both from shared memory, through descriptors. One wgmma takes 16 of K: 32 bytes of A's rows, 16
// rows of B.
//
// The fence (day 15) orders earlier accesses to the sums, which are registers, before the MMAs. It
// does not order stores to shared memory: if threads had stored the stage, fence_proxy_async()
// would be needed. TMA wrote it, so its barrier is enough.
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

// Stores alpha sum + beta C from registers, 64 rows from `row` on. A warp has 16 of them. Its lane
// 4 g + t holds columns 2 t and 2 t + 1 of each eight columns, in rows g and g + 8.
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
// Still limits it: copies and MMAs take turns. Only other blocks on the SM can fill the gaps.
//
// `maps` is a __grid_constant__: TMA reads a tensor map through its address, so it must not be
// copied to a thread's local memory.
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

// The host describes the matrices to TMA: element type, address, extents, leading dimension, and
// the rows of a box.
template <class T>
Maps make_maps(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, unsigned rows_of_a = BM,
               unsigned rows_of_b = 64) {
    Maps maps{};
    if (a.cols() > 0) {  // no extent may be 0; without K, no box is loaded
        maps.a = course::make_tensor_map(a, rows_of_a, BK);
        maps.b = course::make_tensor_map(b, rows_of_b, 64);
    }
    return maps;
}

template <class T>
void launch_tma_wgmma(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                      cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, BM, 128, 1);  // row by row
    tma_wgmma<T><<<course::blocks_of(order), 2 * kWarpgroup, sizeof(OneStage<T>), stream>>>(
        make_maps(a, b), out, static_cast<int>(a.cols()), order);
}

// --- A ring of stages ----------------------------------------------------------------------------

template <class T, int BN, int STAGES>
struct Ring {
    Stage<T, BN> stages[STAGES];
    ptx::MBarrier full[STAGES];   // a phase ends when the bytes of the stage have arrived
    ptx::MBarrier empty[STAGES];  // from `specialised` on: it ends when all consumers are done with it
};

template <class T>
using PlainRing = Ring<T, 128, 4>;

// Idea: a ring of four stages. While one is multiplied, the loads of the next three are in flight.
// Cost removed: the latency of a load.
// Still limits it: L2 (8192^3, counters: 86 % busy), and one barrier per step for all threads,
// where warps wait 56 % of the time. The tensor cores idle from the last MMA of a step to the first
// of the next.
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

template <class T>
void launch_ring(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                 cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, BM, 128, 1);
    // Four stages are 128 KB; a kernel must opt in to more than 48 KB of shared memory.
    course::allow_shared_bytes(ring<T>, sizeof(PlainRing<T>));
    ring<T><<<course::blocks_of(order), 2 * kWarpgroup, sizeof(PlainRing<T>), stream>>>(
        make_maps(a, b), out, static_cast<int>(a.cols()), order);
}

// --- Warp specialisation -------------------------------------------------------------------------

// Called first, by thread 0. `consumers`: the number of arrivals that empty a stage. The tensor
// maps are prefetched at the same time.
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

// The next stage in the ring and the parity of its phase, counted without a division. The producer
// and each consumer keep their own copy.
template <int STAGES>
struct RingPosition {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
};

// Sets the sums to zero before the loop. Without hold(), the compiler may move this behind the
// loop, for the case of no steps. Then ptxas sees a write to registers of a running wgmma, and
// serialises all of them. hold() costs no instruction. tma_wgmma and ring do not need it, because
// they leave no MMA in flight at the end of a step.
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
// multiply. A consumer issues the MMAs of a step before it waits for those of the previous one.
// Cost removed: the barrier of all threads. The tensor cores always have MMAs to work on.
// Still limits it: L2 (8192^3, counters: 94 % busy, shared memory 55 %). A tile of 128 x 128 loads
// an element for 64 multiply-adds, one of 128 x 256 for 85.
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
            // The MMAs of the previous step are complete. A group of wgmma belongs to the
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
void launch_specialised(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                        cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, BM, 128, 1);
    course::allow_shared_bytes(specialised<T>, sizeof(DeepRing<T>));
    specialised<T><<<course::blocks_of(order), 3 * kWarpgroup, sizeof(DeepRing<T>), stream>>>(
        make_maps(a, b), out, static_cast<int>(a.cols()), order);
}

template <class T>
using WideRing = Ring<T, 256, 4>;

// Idea: 128 x 256 results. A consumer thread holds 128 sums, so the producer warpgroup gives
// registers away: setmaxnreg leaves it 40, and the consumers get 232.
// Cost removed: a quarter of the loads from L2 per product, and a sixth of the reads of shared
// memory.
// Still limits it: power (8192^3, counters: tensor cores 94 % busy at 1.50 of 1.98 GHz). L2 is 82 %
// busy: each SM loads 48 KB per 1024 cycles of MMAs, and each block loads its own B.
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

template <class T>
void launch_wide_tile(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                      cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, BM, 256, 1);
    course::allow_shared_bytes(wide_tile<T>, sizeof(WideRing<T>));
    wide_tile<T><<<course::blocks_of(order), 3 * kWarpgroup, sizeof(WideRing<T>), stream>>>(
        make_maps(a, b), out, static_cast<int>(a.cols()), order);
}

}  // namespace day41

// Products in FP32 accuracy by TMA and wgmma, for a tile of 128 x 128 results: 3xTF32. Step 16 of
// the ladder explains it: its head comment says why B is the left operand and how A is split.
//
// Only for a course_hopper_library.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/pack.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/tf32_split.cuh"

namespace course::tf32 {

constexpr int BM = 128;  // a block's tile of C = A B: BM x BN
constexpr int BN = 128;
constexpr int BK = 32;              // of a step: 128 bytes of A
constexpr int BOX = 32;             // columns of B that TMA copies at a time
constexpr int WARPGROUP = 128;      // threads
constexpr int CONSUMERS = BN / 64;  // warpgroups that multiply: 64 columns of C each
constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;

// The operands as described to TMA.
struct Maps {
    CUtensorMap a;  // boxes of BM x BK
    CUtensorMap b;  // of BK x BOX
};

// In shared memory. Rows are 128 bytes, and TMA swizzles them: the 16-byte chunk c of row r is
// stored at chunk c ^ (r % 8).
template <int STAGES_>
struct alignas(1024) Ring {
    static constexpr int STAGES = STAGES_;
    float a[STAGES][BM][BK];
    float a_small[STAGES][BM][BK];
    float b[STAGES][CONSUMERS][64 / BOX][BK][BOX];
    // Phases of a stage: TMA has copied its tiles; A is split; the consumers are done with it.
    ptx::MBarrier copied[STAGES];
    ptx::MBarrier split[STAGES];
    ptx::MBarrier empty[STAGES];

    // Called by all threads of the block.
    __device__ void init() {
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < STAGES; ++stage) {
                ptx::mbarrier_init(&copied[stage], 1);
                ptx::mbarrier_init(&split[stage], WARPGROUP / 32);
                ptx::mbarrier_init(&empty[stage], CONSUMERS * WARPGROUP / 32);
            }
            ptx::fence_mbarrier_init();
        }
        __syncthreads();
    }
};

// The operands of a step: columns k to k + BK - 1 of A from `row` on, and the same rows of B from
// `col` on. Out-of-range elements are zero-filled.
struct StepCoords {
    int row;
    int col;
    int k;
};

// One thread calls it.
template <class Ring>
__device__ void load_stage(Ring& ring, int stage, const Maps& maps, const StepCoords& at) {
    ptx::MBarrier* const copied = &ring.copied[stage];
    ptx::mbarrier_arrive_expect(copied, sizeof ring.a[stage] + sizeof ring.b[stage]);
    ptx::tma_load(ring.a[stage], &maps.a, at.k, at.row, copied);
    for (int box = 0; box < BN / BOX; ++box)
        ptx::tma_load(ring.b[stage][box / 2][box % 2], &maps.b, at.col + box * BOX, at.k, copied);
}

// The small parts of A's tile. big = x with its last 13 bits truncated. nearest_tf32() would be
// twice as accurate, but then the big parts would have to be stored, too. small is rounded: half of
// the lowest bit that tensor cores use is added. All of this is elementwise, so the swizzle does
// not matter.
template <class Ring>
__device__ void split_stage(Ring& ring, int stage) {
    const auto* const a = reinterpret_cast<const float4*>(ring.a[stage]);
    auto* const a_small = reinterpret_cast<float4*>(ring.a_small[stage]);
    const auto small = [](float x) {
        const float big = __uint_as_float(__float_as_uint(x) & 0xffffe000u);
        return __uint_as_float(__float_as_uint(x - big) + 0x1000u);
    };
#pragma unroll 2
    for (int i = static_cast<int>(threadIdx.x) % WARPGROUP; i < BM * BK / 4; i += WARPGROUP) {
        const float4 x = a[i];
        a_small[i] = {small(x.x), small(x.y), small(x.z), small(x.w)};
    }
}

// The producer warpgroup, `steps` steps: one thread loads stages, as soon as they are empty; all
// split them. coords_of(step): what the step multiplies.
template <class Ring, class CoordsOf>
__device__ void produce(Ring& ring, const Maps& maps, int steps, CoordsOf coords_of) {
    constexpr int STAGES = Ring::STAGES;
    const auto load = [&](int step) {
        if (threadIdx.x % WARPGROUP != 0 || step >= steps) return;
        ptx::mbarrier_wait(&ring.empty[step % STAGES], (step / STAGES + 1) % 2);
        load_stage(ring, step % STAGES, maps, coords_of(step));
    };
    for (int step = 0; step < STAGES - 1; ++step)
        load(step);
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        ptx::mbarrier_wait(&ring.copied[stage], step / STAGES % 2);
        split_stage(ring, stage);
        ptx::fence_proxy_async();  // wgmma will read what these threads have written
        __syncwarp();
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&ring.split[stage]);
        load(step + STAGES - 1);
        __syncwarp();
    }
}

// Lane 4 g + t of warp w of a consumer has columns 8 h + g of 16 in the layout of wgmma, h = 0 and
// 1. The mapping to columns of C is free, as long as a lane loads and stores the same columns. Two
//    adjacent columns for h = 0 and 1 let a lane load 8 bytes. They are taken from two boxes, and
//    in a box from quads (groups of four columns) w and w + 4: so 16 lanes, which load four rows
//    at the same time, use each bank once.
struct Lane {
    int consumer = static_cast<int>(threadIdx.x) / WARPGROUP;
    int warp = static_cast<int>(threadIdx.x) % WARPGROUP / 32;
    int g = static_cast<int>(threadIdx.x) % 32 / 4;
    int t = static_cast<int>(threadIdx.x) % 4;

    __device__ int box() const { return g / 4; }
    __device__ int quad() const { return g / 2 % 2 * 4 + warp; }
    __device__ int in_quad() const { return g % 2 * 2; }
    // In the tile: the first of the lane's two columns, and row `i` of its BM / 4 rows.
    __device__ int col() const { return consumer * 64 + box() * BOX + quad() * 4 + in_quad(); }
    __device__ int row(int i) const { return i / 2 * 8 + t * 2 + i % 2; }
};

// A lane's results, in the layout of wgmma. result(sums, i, h): row(i) and column col() + h.
using Sums = float[BM / 2];
__device__ inline float& result(Sums& sums, int i, int h) {
    return sums[i / 2 * 4 + h * 2 + i % 2];
}

constexpr int INSTRUCTIONS = BK / 8;  // along K
using Left = SplitOperands<4>[INSTRUCTIONS];

// The lane's operands from B, two columns: rows 8 j + t and 8 j + t + 4 for instruction j.
__device__ inline void load_left(const float (&boxes)[64 / BOX][BK][BOX], const Lane& lane, Left& left) {
    const auto at = [&](int row) {
        return &boxes[lane.box()][row][(lane.quad() ^ row) * 4 + lane.in_quad()];
    };
    const float* const upper = at(lane.t);
    const float* const lower = at(lane.t + 4);
#pragma unroll
    for (int j = 0; j < INSTRUCTIONS; ++j) {
        const auto first = Pack<float, 2>::load(upper + j * 8 * BOX);
        const auto second = Pack<float, 2>::load(lower + j * 8 * BOX);
        left[j] = split({first.value[0], first.value[1], second.value[0], second.value[1]});
    }
}

// No instruction: keeps `left` in its registers until here. The compiler assumes that they are
// free as soon as the wgmma have been issued.
__device__ inline void hold_left(Left& left) {
#pragma unroll
    for (auto& operands : left) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            ptx::hold(operands.big[i]);
            ptx::hold(operands.small[i]);
        }
    }
}

// Issues the products of a stage: run = B^T A^T. The small products come first: while the sum is
// small, truncation loses less.
template <class Ring>
__device__ void multiply_stage(const Ring& ring, int stage, const Left& left, Sums& run) {
    const std::uint64_t big = ptx::descriptor_k_major(ring.a[stage]);
    const std::uint64_t small = ptx::descriptor_k_major(ring.a_small[stage]);
    ptx::wgmma_fence();
    ptx::wgmma_tf32_set(run, left[0].small, big);
    ptx::wgmma_tf32(run, left[0].big, small);
#pragma unroll
    for (int j = 1; j < INSTRUCTIONS; ++j) {
        ptx::wgmma_tf32(run, left[j].small, ptx::advanced(big, j * 32));
        ptx::wgmma_tf32(run, left[j].big, ptx::advanced(small, j * 32));
    }
#pragma unroll
    for (int j = 0; j < INSTRUCTIONS; ++j)
        ptx::wgmma_tf32(run, left[j].big, ptx::advanced(big, j * 32));
    ptx::wgmma_commit();
}

// A consumer warpgroup: sums += the products of step `step`. As in step 15, tensor cores only sum
// BK terms, because they truncate their sums; CUDA cores, which round, add the partial sums.
template <class Ring>
__device__ void consume(Ring& ring, int step, const Lane& lane, Sums& sums) {
    const int stage = step % Ring::STAGES;
    const unsigned parity = step / Ring::STAGES % 2;
    ptx::mbarrier_wait(&ring.copied[stage], parity);
    ptx::mbarrier_wait(&ring.split[stage], parity);
    Left left;
    load_left(ring.b[stage][lane.consumer], lane, left);
    Sums run;
    multiply_stage(ring, stage, left, run);
    ptx::wgmma_wait<0>();
    hold_left(left);
    // Each warp arrives separately, because no other barrier ensures that all four have loaded
    // their part of B.
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&ring.empty[stage]);
#pragma unroll
    for (int i = 0; i < BM / 2; ++i)
        sums[i] += run[i];
}

// A consumer needs more registers than a thread of the producer.
__device__ inline void give_registers() {
    ptx::registers_decrease<24>();
}
__device__ inline void take_registers() {
    ptx::registers_increase<240>();
}

}  // namespace course::tf32

// Day 45, beyond: batched products of BF16 matrices by TMA and wgmma, for Hopper. The table of
// versions is in batched_bfloat16.cuh; TMA, mbarriers and wgmma are the subject of day 41. Here
// they are given.
//
//   ./course run day45 --size 8x256x256x64
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "batched_bfloat16.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/device/tensor_map.hpp"
#include "common/tile/pair_output.cuh"
#include "common/tile/tile_order.cuh"
#include "common/tile/wgmma_store.cuh"
#include "common/tile/wgmma_tile.cuh"

namespace day45 {

namespace ptx = course::ptx;

using course::hopper::kWarpgroup;  // 128 threads

// A block computes BM x BN results: a consumer warpgroup for each 64 rows, and a producer, which is
// one warp. BLOCKS of them fit on an SM, so that one multiplies while the others store. A wide tile
// reads less of A and B for each MMA.
template <int BM_, int BN_, int STAGES_, int BLOCKS_>
struct WgmmaTile {
    using Sum = float;
    static constexpr int BM = BM_, BN = BN_, BK = 64, STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr int CONSUMERS = BM / 64;
    static constexpr int THREADS = CONSUMERS * kWarpgroup + 32;
};
using WideWgmmaTile = WgmmaTile<128, 256, 4, 1>;
using LargeWgmmaTile = WgmmaTile<128, 192, 5, 1>;
using MediumWgmmaTile = WgmmaTile<128, 64, 4, 2>;
using SmallWgmmaTile = WgmmaTile<64, 64, 4, 3>;

// The tensor maps of the batches have four extents, of which the third is the product.
struct BatchMaps {
    CUtensorMap a;
    CUtensorMap b;
    bool one_a;  // the same for all products
    bool one_b;
};

// A tile of A and one of B, as they lie in global memory, in boxes whose rows are 128 bytes long. A
// K-major tile is one box of BM or BN rows, an MN-major one has a box of 64 rows along K for each
// 64 of its columns.
template <class S>
struct alignas(1024) WgmmaStage {
    __nv_bfloat16 a[S::BM / 64][64 * S::BK];
    __nv_bfloat16 b[S::BN / 64][64 * S::BK];
};

template <class S>
struct WgmmaMemory {
    WgmmaStage<S> stages[S::STAGES];
    course::hopper::Slice<float> slices[S::CONSUMERS * 4];  // of C, one for each warp
    ptx::MBarrier full[S::STAGES];   // a phase ends when the bytes of the stage have arrived
    ptx::MBarrier empty[S::STAGES];  // ... when all consumers are done with the stage
};

// Issues the loads of one operand: its rows or columns from `first` on, 64 of K from `k` on.
template <bool K_MAJOR, int BOXES>
__device__ void load_operand(__nv_bfloat16 (&boxes)[BOXES][64 * 64], const CUtensorMap& map, int first, int k,
                             int product, ptx::MBarrier* full) {
    if constexpr (K_MAJOR) {
        ptx::tma_load(boxes, &map, k, first, product, 0, full);
    } else {
        for (int box = 0; box < BOXES; ++box)
            ptx::tma_load(boxes[box], &map, first + box * 64, k, product, 0, full);
    }
}

// The MMAs of a stage: 64 rows of A times BN columns of B. A wgmma takes 16 of K: 32 bytes of the
// rows of a K-major tile, 16 rows of an MN-major one.
template <class S, bool A_K_MAJOR, bool B_K_MAJOR>
__device__ void multiply_stage(const WgmmaStage<S>& stage, int group, float (&sums)[S::BN / 2]) {
    constexpr unsigned kNextColumns = sizeof(stage.b[0]);
    const std::uint64_t a = A_K_MAJOR ? ptx::descriptor_k_major(stage.a[group])
                                      : ptx::descriptor_mn_major(stage.a[group], kNextColumns);
    const std::uint64_t b =
        B_K_MAJOR ? ptx::descriptor_k_major(stage.b) : ptx::descriptor_mn_major(stage.b, kNextColumns);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < S::BK / 16; ++step)
        ptx::wgmma<__nv_bfloat16, !B_K_MAJOR, !A_K_MAJOR>(sums,
                                                          ptx::advanced(a, step * (A_K_MAJOR ? 32 : 2048)),
                                                          ptx::advanced(b, step * (B_K_MAJOR ? 32 : 2048)));
    ptx::wgmma_commit();
}

// A warp stores its 16 rows in slices of 32 columns, which pass through shared memory: eight lanes
// then store a whole line of 128 bytes, if rows of C are 16-byte aligned. fill_slice() puts chunk c
// of row r at c ^ (r % 8), so that neither writes nor reads have bank conflicts.
template <class S>
__device__ void store_sums(const course::OutputOf<float>& out, int row, int col,
                           course::hopper::Slice<float>& slice, const float (&sums)[S::BN / 2]) {
    namespace hopper = course::hopper;
    const auto& c = out.c;
    if (c.cols() % 4 != 0 || c.leading_dimension() % 4 != 0 || !course::is_aligned(c.data(), 16)) {
        hopper::store_from_registers<S>(out, {row, col}, sums);
        return;
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row += static_cast<int>(threadIdx.x) / 32 % 4 * 16;
#pragma unroll
    for (int first = 0; first < S::BN; first += hopper::kSliceColumns) {
        hopper::fill_slice<S>(slice, first, out, {row, col}, sums);
        __syncwarp();  // the slice is complete
#pragma unroll 1
        for (int i = 0; i < 4; ++i) {
            const int in_slice = i * 4 + lane / 8;
            const int chunk = lane % 8;
            const auto four = course::Pack<float, 4>::load(
                &slice[in_slice * hopper::kSliceColumns + (chunk ^ in_slice % 8) * 4]);
            const int at = col + first + chunk * 4;
            if (row + in_slice < static_cast<int>(c.rows()) && at < static_cast<int>(c.cols()))
                four.store(&c(row + in_slice, at));
        }
        __syncwarp();  // safe to overwrite
    }
}

// Idea: the batch is the third extent of a tensor map, so a box never reaches into the next
// product: out-of-range elements are zero-filled. A producer warp loads the stages of tile after
// tile, across all products, while two consumers multiply and store. wgmma reads all four layouts
// from shared memory as TMA wrote them.
// Cost removed: operands no longer pass through registers, and the instructions of copies.
// Still limits it: with a short K, the stores of C; with a long one, reads of shared memory.
template <class S, bool A_K_MAJOR, bool B_K_MAJOR>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    multiply_by_wgmma(const __grid_constant__ BatchMaps maps, const __grid_constant__ Bfloat16Matmul matmul,
                      const __grid_constant__ course::EveryTile<S> tiles, int steps) {
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [stages, slices, full, empty] = *reinterpret_cast<WgmmaMemory<S>*>(memory);
    const int group = static_cast<int>(threadIdx.x) / kWarpgroup;  // of the consumers, then the producer
    if (threadIdx.x == 0) {
        ptx::prefetch(&maps.a);
        ptx::prefetch(&maps.b);
        for (int stage = 0; stage < S::STAGES; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);
            ptx::mbarrier_init(&empty[stage], S::CONSUMERS);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    cudaGridDependencySynchronize();  // the kernel before has ended

    course::hopper::RingPosition<S> at;  // the next stage, and the parity of its phase
    if (group == S::CONSUMERS) {
        if (threadIdx.x % 32 > 0) return;
        for (unsigned i = tiles.first(); tiles.has(i); i = tiles.next(i)) {
            const course::Tile tile = tiles.at(i);
            const int product = static_cast<int>(tile.product);
            for (int step = 0; step < steps; ++step, at.advance()) {
                ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
                ptx::mbarrier_arrive_expect(&full[at.stage], sizeof(WgmmaStage<S>));
                load_operand<A_K_MAJOR>(stages[at.stage].a, maps.a, static_cast<int>(tile.row), step * S::BK,
                                        maps.one_a ? 0 : product, &full[at.stage]);
                load_operand<B_K_MAJOR>(stages[at.stage].b, maps.b, static_cast<int>(tile.col), step * S::BK,
                                        maps.one_b ? 0 : product, &full[at.stage]);
            }
        }
    } else {
        for (unsigned i = tiles.first(); tiles.has(i); i = tiles.next(i)) {
            float sums[S::BN / 2];
#pragma unroll
            for (float& sum : sums) {
                sum = 0;
                ptx::hold(sum);  // not behind the loop, for the case that there is no step
            }
            int previous = -1;
            for (int step = 0; step < steps; ++step, at.advance()) {
                ptx::mbarrier_wait(&full[at.stage], at.parity);
                multiply_stage<S, A_K_MAJOR, B_K_MAJOR>(stages[at.stage], group, sums);
                ptx::wgmma_wait<1>();
                if (previous >= 0 && threadIdx.x % kWarpgroup == 0) ptx::mbarrier_arrive(&empty[previous]);
                previous = at.stage;
            }
            ptx::wgmma_wait<0>();
            if (previous >= 0 && threadIdx.x % kWarpgroup == 0) ptx::mbarrier_arrive(&empty[previous]);
            const course::Tile tile = tiles.at(i);
            store_sums<S>(course::make_output(matmul.c[tile.product], matmul.alpha, matmul.beta),
                          static_cast<int>(tile.row) + group * 64, static_cast<int>(tile.col),
                          slices[threadIdx.x / 32], sums);
        }
    }
}

using Matrices = course::Batch<const __nv_bfloat16>;

// In boxes of 64 along K by `extent`, or of 64 by 64.
inline CUtensorMap map_of(const Matrices& matrices, bool k_major, unsigned extent) {
    const auto& first = matrices.first;
    const bool one = matrices.stride == 0;
    return course::make_tensor_map<__nv_bfloat16>(first.data(), first.rows(), first.cols(),
                                                  first.leading_dimension(), {one ? 1 : matrices.count, 1},
                                                  {matrices.stride, 0}, k_major ? extent : 64);
}

// Persistent blocks, which start while the kernel before still runs.
template <class S, bool A_K_MAJOR, bool B_K_MAJOR>
void launch_multiply_by_wgmma(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    const auto& operands = matmul.operands;
    const BatchMaps maps{.a = map_of(operands.a, A_K_MAJOR, S::BM),
                         .b = map_of(operands.b, B_K_MAJOR, S::BN),
                         .one_a = operands.a.stride == 0,
                         .one_b = operands.b.stride == 0};
    const auto tiles = course::every_tile<S>(operands.m(), operands.n(), operands.count());
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(operands.k(), S::BK));
    const course::ClusterLaunch how{.threads = S::THREADS,
                                    .shared = sizeof(WgmmaMemory<S>),
                                    .cluster = 1,
                                    .persistent = true,
                                    .early = true};
    how.start(multiply_by_wgmma<S, A_K_MAJOR, B_K_MAJOR>, tiles.all, stream, maps, matmul, tiles, steps);
}

}  // namespace day45

// Day 38: asynchronous copies. C = A B in FP32, row-major: A is M x K, B is K x N, C is M x N.
// PMPP chapters 5 and 6 (both editions), 15 (5th edition).
//
//   version        results of a thread   how a tile is copied                      what limits it
//   tiled_1d       8 of a column         all threads: load, store, barrier         9 shared loads per 8 multiply-adds
//   tiled_2d       8 x 8                 the same                                  issue slots: load instructions
//   tiled_float4   8 x 8                 the same, 16 bytes at a time              issue slots; latency of a tile
//   pipeline       8 x 8                 three tiles ahead: cuda::pipeline         multiply-adds; copies among them
//   cp_async       8 x 8                 three tiles ahead: cp.async               multiply-adds; copies among them
//
// The arithmetic is the same in all of them. What changes is which threads wait for memory. Each
// kernel is followed by its launch. beyond/ has warps that only copy.
//
// tile.cuh has what all kernels share: a Source copies a thread's part of the tiles of A and B into
// a Stage, and multiply() adds their product to the thread's sums. `watch` records what a warp does
// and when, for the timeline of the README; as Silent it compiles to nothing (timeline.cuh).
//
//   ./course run day38                                          all versions, verified and timed
//   ./course run day38 --only cp_async --size 4096x4096x4096
//   ./course run day38 --program                                program.cu: one product, from main()
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cuda/pipeline>

#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "tile.cuh"
#include "timeline.cuh"

namespace day38 {

// The synchronous copy of a pack from global memory (`from`) to shared memory (`to`). Out-of-range
// packs are zero-filled, here and below.
template <int VEC>
struct CopyNow {
    __device__ void operator()(float* to, const float* from, bool inside) const {
        using Pack = course::Pack<float, VEC>;
        (inside ? Pack::load(from) : Pack{}).store(to);
    }
};

// Idea: a thread computes TM x TN results, so each value it loads from shared memory serves several
// multiply-adds.
// Cost removed: TM - 1 of TM loads of B, TN - 1 of TN loads of A; with VEC = 4 also three of four
// load and store instructions.
// Still limits it: with 8 results, shared memory; with 8 x 8, issue slots (counters: 64 % busy, and
// warps are ready but not selected for 40 % of the time). And a block does not multiply while its
// tile is in flight.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_tiled(Operands operands, Watch watch) {
    Stage<T>& stage = Shared<T>::of_block().stage[0];
    const int thread = static_cast<int>(threadIdx.x);
    const Origin origin = origin_of_block<T>(operands.c);
    const auto place = Place<T>::of_thread(thread);
    Source<T, VEC, T::THREADS> source(operands, origin, thread);
    const unsigned tiles = tiles_along_k<T>(operands);

    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kCopy, tile);
        source.next(stage, CopyNow<VEC>{});
        watch.begin(Activity::kWait, tile);
        __syncthreads();  // the tile is complete
        watch.begin(Activity::kMultiply, tile);
        multiply(stage, place, sums);
        watch.begin(Activity::kWait, tile);
        __syncthreads();  // the tile is safe to overwrite
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

//                           BM   BN  BK TM TN WIDE
using Tile1d = TileShape<64, 64, 16, 8, 1, 1>;
using Tile2d = TileShape<128, 128, 16, 8, 8, 1>;
using TileFloat4 = TileShape<128, 128, 16, 8, 8, 4>;

// T: one of these. VEC: 4 if the rows of A and B are whole, 16-byte aligned float4s, else 1.
template <class T, int VEC, class Watch>
void launch_tiled(const Operands& operands, Watch watch, cudaStream_t stream) {
    constexpr int kBlocksPerSm = 2;
    multiply_tiled<T, std::min(VEC, T::WIDE), kBlocksPerSm>
        <<<blocks_for_tiles<T>(operands.c), T::THREADS, sizeof(Shared<T>), stream>>>(operands, watch);
}

// --- Copies in flight ----------------------------------------------------------------------------

// The same copy by a cuda::pipeline.
template <int VEC, class Pipe>
struct CopyByPipeline {
    Pipe& pipe;
    __device__ void operator()(float* to, const float* from, bool inside) const {
        constexpr std::size_t kBytes = VEC * sizeof(float);
        if (inside) {
            cuda::memcpy_async(to, from, cuda::aligned_size_t<kBytes>(kBytes), pipe);
        } else {
            course::Pack<float, VEC>{}.store(to);
        }
    }
};

// Idea: asynchronous copies in a multistage pipeline. STAGES - 1 tiles are in flight while one is
// multiplied.
// Cost removed: the latency of a tile, the registers its data passed through, and one of two
// barriers per tile.
// Still limits it: multiply-adds (counters: FMA 65 % busy, issue slots 71 %).
// Every warp issues copies among them, and the library computes at
// run time which group to wait for.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_pipeline(Operands operands, Watch watch) {
    auto& stages = Shared<T>::of_block().stage;
    const int thread = static_cast<int>(threadIdx.x);
    const Origin origin = origin_of_block<T>(operands.c);
    const auto place = Place<T>::of_thread(thread);
    Source<T, VEC, T::THREADS> source(operands, origin, thread);
    const unsigned tiles = tiles_along_k<T>(operands);

    auto pipe = cuda::make_pipeline();
    const auto copy = [&](unsigned tile) {
        pipe.producer_acquire();
        if (tile < tiles) {
            watch.begin(Activity::kCopy, tile);
            source.next(stages[tile % T::STAGES], CopyByPipeline<VEC, decltype(pipe)>{pipe});
        }
        pipe.producer_commit();
    };
    for (unsigned tile = 0; tile + 1 < T::STAGES; ++tile)
        copy(tile);
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kWait, tile);
        pipe.consumer_wait();  // this thread's part of the tile has arrived
        __syncthreads();       // all parts have; and the previous tile is safe to overwrite
        copy(tile + T::STAGES - 1);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
        pipe.consumer_release();
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

// 32 deep, with four stages: 136 KB of shared memory, one block per SM. course::launch() opts in to
// more than the 48 KB that every kernel may have.
using TileDeep = TileShape<128, 128, 32, 8, 8, 4, 4, 4>;

template <int VEC, class Watch>
void launch_pipeline(const Operands& operands, Watch watch, cudaStream_t stream) {
    using T = TileDeep;
    course::launch(multiply_pipeline<T, VEC, 1, Watch>,
                   {blocks_for_tiles<T>(operands.c), T::THREADS, sizeof(Shared<T>), stream}, operands, watch);
}

// The same copy by the instruction, which zero-fills by itself.
template <int VEC>
struct CopyByInstruction {
    __device__ void operator()(float* to, const float* from, bool inside) const {
        if constexpr (VEC == 4) {
            course::ptx::cp_async_16(to, from, inside ? 16 : 0);
        } else {
            course::ptx::cp_async_4(to, from, inside);
        }
    }
};

// Idea: the same pipeline with the instructions themselves: cp.async, commit_group, wait_group.
// Cost removed: the library's counting of groups at run time, because the count is a constant here.
// Still limits it: multiply-adds (counters: FMA 68 % busy, issue slots 73 %). Every warp issues
// copies among them, and there is a barrier of the block per tile.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_cp_async(Operands operands, Watch watch) {
    auto& stages = Shared<T>::of_block().stage;
    const int thread = static_cast<int>(threadIdx.x);
    const Origin origin = origin_of_block<T>(operands.c);
    const auto place = Place<T>::of_thread(thread);
    Source<T, VEC, T::THREADS> source(operands, origin, thread);
    const unsigned tiles = tiles_along_k<T>(operands);

    const auto copy = [&](unsigned tile) {
        if (tile < tiles) {
            watch.begin(Activity::kCopy, tile);
            source.next(stages[tile % T::STAGES], CopyByInstruction<VEC>{});
        }
        course::ptx::cp_async_commit();
    };
    for (unsigned tile = 0; tile + 1 < T::STAGES; ++tile)
        copy(tile);
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kWait, tile);
        course::ptx::cp_async_wait<T::STAGES - 2>();
        __syncthreads();
        copy(tile + T::STAGES - 1);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

template <int VEC, class Watch>
void launch_cp_async(const Operands& operands, Watch watch, cudaStream_t stream) {
    using T = TileDeep;
    course::launch(multiply_cp_async<T, VEC, 1, Watch>,
                   {blocks_for_tiles<T>(operands.c), T::THREADS, sizeof(Shared<T>), stream}, operands, watch);
}

}  // namespace day38

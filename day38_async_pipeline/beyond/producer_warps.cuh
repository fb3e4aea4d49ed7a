// Day 38, beyond: warps that copy, warps that multiply.
//
//   version        results of a thread   how a tile is copied                      what limits it
//   one_of_eight   8 x 8                 by 1 of 8 warps: block-scope pipeline     multiply-adds
//   nine_warps     8 x 8                 by 1 warp beside 8 that multiply          issue slots; spilling
//   twelve_warps   8 x 8                 by 4 warps beside 8, 1 per scheduler      multiply-adds
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cuda/barrier>
#include <cuda/pipeline>

#include "async_pipeline.cuh"

namespace day38 {

namespace cg = cooperative_groups;

// In shared memory: how many tiles of the pipeline are filled and how many are free.
template <class T>
using BlockPipeline = cuda::pipeline_shared_state<cuda::thread_scope_block, T::STAGES>;

// Idea: warp specialisation. Warp 0 is the producer and only copies; the others are consumers and
// only multiply. A block-scope pipeline connects them.
// Cost removed: copies among the multiply-adds, and the barrier of all threads.
// Still limits it: multiply-adds (counters: FMA 62 % busy, issue slots 70 %). The producer's
// scheduler has one consumer fewer, in every block; and one warp issues all copies.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS + 32, BLOCKS) void multiply_one_of_eight(Operands operands,
                                                                                 Watch watch) {
    auto& [stages, state] = Shared<T, BlockPipeline<T>>::of_block();
    const Origin origin = origin_of_block<T>(operands.c);
    const unsigned tiles = tiles_along_k<T>(operands);
    const bool copies = threadIdx.x < 32;
    auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state,
                                    copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    if (copies) {
        Source<T, VEC, 32> source(operands, origin, static_cast<int>(threadIdx.x));
        for (unsigned tile = 0; tile < tiles; ++tile) {
            watch.begin(Activity::kWait, tile);
            pipe.producer_acquire();  // the stage is free
            watch.begin(Activity::kCopy, tile);
            source.next(stages[tile % T::STAGES], CopyByPipeline<VEC, decltype(pipe)>{pipe});
            pipe.producer_commit();
        }
        watch.begin(Activity::kEnd, tiles);
        return;
    }
    const auto place = Place<T>::of_thread(static_cast<int>(threadIdx.x) - 32);
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kWait, tile);
        pipe.consumer_wait();  // the tile has arrived
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
        pipe.consumer_release();
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

using TileSeven = TileShape<112, 128, 16, 8, 8, 4, 2, 4>;  // of seven warps

template <int VEC, class Watch>
void launch_one_of_eight(const Operands& operands, Watch watch, cudaStream_t stream) {
    using T = TileSeven;
    constexpr int kBlocksPerSm = 2;
    course::launch(
        multiply_one_of_eight<T, VEC, kBlocksPerSm, Watch>,
        {blocks_for_tiles<T>(operands.c), T::THREADS + 32, sizeof(Shared<T, BlockPipeline<T>>), stream},
        operands, watch);
}

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Instead of the pipeline, two barriers for each stage.
template <class T>
struct StageBarriers {
    Barrier filled[T::STAGES];
    Barrier emptied[T::STAGES];
};

// Idea: producer warps in addition to eight consumer warps. Two barriers per stage replace the
// pipeline and its branches: filled (the tile is complete) and emptied (the stage is free).
// Cost removed: the missing eighth consumer; the library's branches.
// Still limits it: with one producer warp and two blocks per SM, issue slots (counters: 71 % busy,
// FMA 51 %) and registers, which spill (a producer has as many as a consumer). With four,
// multiply-adds (FMA 71 % busy).
template <class T, int COPYING, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS + COPYING, BLOCKS) void multiply_beside(Operands operands,
                                                                                Watch watch) {
    auto& [stages, barriers] = Shared<T, StageBarriers<T>>::of_block();
    auto& [filled, emptied] = barriers;
    const Origin origin = origin_of_block<T>(operands.c);
    const unsigned tiles = tiles_along_k<T>(operands);
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < T::STAGES) {
        init(&filled[thread], COPYING);      // arrivals of producers
        init(&emptied[thread], T::THREADS);  // arrivals of consumers
    }
    __syncthreads();

    if (thread >= T::THREADS) {
        Source<T, VEC, COPYING> source(operands, origin, thread - T::THREADS);
        auto copies = cuda::make_pipeline();
        for (unsigned tile = 0; tile < tiles; ++tile) {
            const unsigned stage = tile % T::STAGES;
            const unsigned round = tile / T::STAGES;
            watch.begin(Activity::kWait, tile);
            if (round > 0) emptied[stage].wait_parity((round - 1) % 2 != 0);
            watch.begin(Activity::kCopy, tile);
            source.next(stages[stage], CopyByInstruction<VEC>{});
            cuda::pipeline_producer_commit(copies, filled[stage]);  // the phase ends after the copies
            static_cast<void>(filled[stage].arrive());              // and after this arrival
        }
        watch.begin(Activity::kEnd, tiles);
        return;
    }
    const auto place = Place<T>::of_thread(thread);
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        const unsigned stage = tile % T::STAGES;
        watch.begin(Activity::kWait, tile);
        filled[stage].wait_parity(tile / T::STAGES % 2 != 0);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[stage], place, sums);
        static_cast<void>(emptied[stage].arrive());
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

// COPYING: producer threads; BLOCKS: per SM.
template <class T, int COPYING, int BLOCKS, int VEC, class Watch>
void launch_beside(const Operands& operands, Watch watch, cudaStream_t stream) {
    course::launch(
        multiply_beside<T, COPYING, VEC, BLOCKS, Watch>,
        {blocks_for_tiles<T>(operands.c), T::THREADS + COPYING, sizeof(Shared<T, StageBarriers<T>>), stream},
        operands, watch);
}

using TileStages = TileShape<128, 128, 16, 8, 8, 4, 4, 4>;

template <int VEC, class Watch>
void launch_nine_warps(const Operands& operands, Watch watch, cudaStream_t stream) {
    launch_beside<TileStages, 32, 2, VEC>(operands, watch, stream);
}

template <int VEC, class Watch>
void launch_twelve_warps(const Operands& operands, Watch watch, cudaStream_t stream) {
    launch_beside<TileDeep, 128, 1, VEC>(operands, watch, stream);
}

}  // namespace day38

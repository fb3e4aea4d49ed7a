// Day 38: asynchronous copies. C = A B.   A: M x K, B: K x N, C: M x N, FP32, row-major.             PMPP chapters 5 and 6
//
//   version            a thread computes   who copies a tile, and how                               what limits it
//   tiled_1d           8 of a column       all threads: load, store, barrier                        shared loads: 9 for 8 multiply-adds
//   tiled_2d           8 x 8               the same                                                 instructions that load; waiting
//   tiled_float4       8 x 8               the same, four floats at a time                          waiting for memory at each tile
//   pipeline           8 x 8               all threads, three tiles ahead: cuda::pipeline           copies among the multiply-adds
//   cp_async           8 x 8               the same in single instructions: cp.async                copies among the multiply-adds
//   one_of_eight       8 x 8               one warp copies, seven multiply: block-scope pipeline    one scheduler with half the work
//   nine_warps         8 x 8               one warp copies beside eight that multiply               registers: 18 warps, 96 for a thread
//   twelve_warps       8 x 8               four copy beside eight, a warp for each scheduler        multiply-adds
//
// The arithmetic is the same in all of them. What changes is who waits for memory, and what the others do meanwhile.
//
//   ./course run day38                                     all versions, verified and timed
//   ./course run day38 --variant cp_async --size 4096x4096x4096
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <string_view>

#include "async_pipeline.hpp"
#include "common/device/ptx.cuh"
#include "launch.cuh"
#include "tile.cuh"

namespace day38 {
namespace {

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// How each copies a pack: `to` in shared memory, `from` in global memory; zeros where that is not inside the matrix.
template <int VEC>
struct CopyNow {
    __device__ void operator()(float* to, const float* from, bool inside) const {
        using Pack = course::Pack<float, VEC>;
        (inside ? Pack::load(from) : Pack{}).store(to);
    }
};

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

template <class T>
using BlockPipeline = cuda::pipeline_shared_state<cuda::thread_scope_block, T::STAGES>;

template <class T>
struct StageBarriers {
    Barrier filled[T::STAGES];
    Barrier emptied[T::STAGES];
};

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: a thread computes TM x TN elements; what it reads from shared memory once serves several multiply-adds.
// Cost removed: TM - 1 of TM reads of B, TN - 1 of TN reads of A; with VEC = 4 three of four instructions that move data.
// Still limits it: while the tile is copied nobody multiplies, and the copy takes as long as memory answers.
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
        __syncthreads();  // nobody needs it any more
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

// Idea: copies that nobody waits for until their tile is needed; STAGES - 1 tiles are on their way while one is multiplied.
// Cost removed: waiting for memory, registers for what is on its way, and one of two barriers for each tile.
// Still limits it: every warp issues copies among its multiply-adds; which group to wait for is worked out at run time.
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
        pipe.consumer_wait();  // this thread's part of the tile is there
        __syncthreads();       // so is everybody's; and nobody needs the tile before it any more
        copy(tile + T::STAGES - 1);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
        pipe.consumer_release();
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

// Idea: the same with the instructions themselves.
// Cost removed: what cuda::pipeline counts at run time is known when this is compiled.
// Still limits it: every warp issues copies among its multiply-adds, and all meet at a barrier for each tile.
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

// Idea: warp 0 does nothing but copy, the others nothing but multiply; a pipeline of the block stands between them.
// Cost removed: copies among the multiply-adds, and the barrier of all threads.
// Still limits it: the scheduler of the copying warp has one warp fewer that multiplies, in every block; one warp issues all copies.
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
        pipe.consumer_wait();  // the tile is there
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
        pipe.consumer_release();
    }
    watch.begin(Activity::kEnd, tiles);
    write(operands.c, origin, place, sums);
}

// Idea: warps that copy come in addition to eight that multiply; barriers in place of the pipeline, which adds branches to them.
// Cost removed: the missing eighth warp; the library's branches.
// Still limits it: registers, which the copying warps have as many of as the others; and multiply-adds.
template <class T, int COPYING, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS + COPYING, BLOCKS) void multiply_beside(Operands operands,
                                                                                Watch watch) {
    auto& [stages, barriers] = Shared<T, StageBarriers<T>>::of_block();
    auto& [filled, emptied] = barriers;
    const Origin origin = origin_of_block<T>(operands.c);
    const unsigned tiles = tiles_along_k<T>(operands);
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < T::STAGES) {
        init(&filled[thread], COPYING);      // threads that copy
        init(&emptied[thread], T::THREADS);  // threads that multiply
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
            cuda::pipeline_producer_commit(copies, filled[stage]);  // the phase waits for the copies
            static_cast<void>(filled[stage].arrive());              // and for this thread
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

// --- Launchers (launch.cuh) ----------------------------------------------------------------------------------------------

template <class T, int BLOCKS>
struct Tiled : Version<T> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_tiled<T, std::min(VEC, T::WIDE), BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct ByPipeline : Version<T> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_pipeline<T, VEC, BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct ByCpAsync : Version<T> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_cp_async<T, VEC, BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct OneOfEight : Version<T, 32, BlockPipeline<T>> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_one_of_eight<T, VEC, BLOCKS, Watch>;
};
template <class T, int COPYING, int BLOCKS>
struct Beside : Version<T, COPYING, StageBarriers<T>> {
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_beside<T, COPYING, VEC, BLOCKS, Watch>;
};

//                        BM   BN  BK  TM TN WIDE  LANES_M  STAGES
using Tile1d = TileShape<64, 64, 16, 8, 1, 1, 4>;
using Tile2d = TileShape<128, 128, 16, 8, 8, 1, 4>;
using TileFloat4 = TileShape<128, 128, 16, 8, 8, 4, 4>;
using TileStages = TileShape<128, 128, 16, 8, 8, 4, 4, 4>;
using TileSeven = TileShape<112, 128, 16, 8, 8, 4, 2, 4>;
using TileDeep = TileShape<128, 128, 32, 8, 8, 4, 4, 4>;

}  // namespace

std::string_view name(Activity activity) {
    static constexpr std::array<std::string_view, 4> kNames = {"copy", "wait", "multiply", "end"};
    return kNames.at(static_cast<std::size_t>(activity));
}

// --- The list ----------------------------------------------------------------------------------------------------------

std::span<const Pipeline> variants() {
    static const std::array list = std::to_array<Pipeline>({
        entry<Tiled<Tile1d, 2>>("tiled_1d", "8 elements of a column for each thread"),
        entry<Tiled<Tile2d, 2>>("tiled_2d", "8 x 8 elements"),
        entry<Tiled<TileFloat4, 2>>("tiled_float4", "four floats at a time"),
        entry<ByPipeline<TileDeep, 1>>("pipeline", "three tiles ahead: cuda::pipeline"),
        entry<ByCpAsync<TileDeep, 1>>("cp_async", "three tiles ahead: cp.async"),
        entry<OneOfEight<TileSeven, 2>>("one_of_eight", "one warp copies, seven multiply"),
        entry<Beside<TileStages, 32, 2>>("nine_warps", "one warp copies, eight multiply"),
        entry<Beside<TileDeep, 128, 1>>("twelve_warps", "four warps copy, eight multiply"),
    });
    return list;
}

}  // namespace day38

// To work through: fill in what says TODO, then ./course check day38. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
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
    // TODO day38/tiled, about 20 minutes.
    // The loop of day 5 with the parts of this day: copy a tile, wait, multiply, wait. One stage in shared
    // memory, `Shared<T>::of_block().stage[0]`. `origin_of_block<T>(operands.c)` is where the block's tile of
    // C begins, `Place<T>::of_thread(thread)` what of it this thread computes, `tiles_along_k<T>(operands)`
    // how often the loop goes round. A `Source<T, VEC, T::THREADS>` is made from the operands, the origin and
    // the thread; `CopyNow<VEC>{}` copies at once.
    //
    // The timeline wants `Activity::kCopy`, `kWait`, `kMultiply` and `kWait` in each round, and `kEnd` behind
    // the last.
}

// Idea: copies that nobody waits for until their tile is needed; STAGES - 1 tiles are on their way while one is multiplied.
// Cost removed: waiting for memory, registers for what is on its way, and one of two barriers for each tile.
// Still limits it: every warp issues copies among its multiply-adds; which group to wait for is worked out at run time.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_pipeline(Operands operands, Watch watch) {
    // TODO day38/pipeline, about 30 minutes.
    // Now `T::STAGES` stages, and copies that are under way while others are multiplied. `auto pipe =
    // cuda::make_pipeline();` is a pipeline of this thread alone. Around the copies of one tile stand
    // `pipe.producer_acquire()` and `pipe.producer_commit()`; `pipe.consumer_wait()` waits for the oldest
    // tile that has not been waited for, `pipe.consumer_release()` gives it back. The copy is
    // `CopyByPipeline<VEC, decltype(pipe)>{pipe}`.
    //
    // One barrier for each tile is enough. Which one?
}

// Idea: the same with the instructions themselves.
// Cost removed: what cuda::pipeline counts at run time is known when this is compiled.
// Still limits it: every warp issues copies among its multiply-adds, and all meet at a barrier for each tile.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_cp_async(Operands operands, Watch watch) {
    // TODO day38/cp_async, about 15 minutes.
    // The same with the instructions: `course::ptx::cp_async_commit()` closes a group of copies, and
    // `course::ptx::cp_async_wait<N>()` waits until at most the N youngest groups of this thread are still
    // under way. The copy is `CopyByInstruction<VEC>{}`.
}

// Idea: warp 0 does nothing but copy, the others nothing but multiply; a pipeline of the block stands between them.
// Cost removed: copies among the multiply-adds, and the barrier of all threads.
// Still limits it: the scheduler of the copying warp has one warp fewer that multiplies, in every block; one warp issues all copies.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS + 32, BLOCKS) void multiply_one_of_eight(Operands operands,
                                                                                 Watch watch) {
    // TODO day38/roles, about 40 minutes.
    // Warp 0 copies, the others multiply. The pipeline is one of the block, and each thread has a role:
    // `cuda::make_pipeline(cg::this_thread_block(), &state, role)` with `cuda::pipeline_role::producer` or
    // `consumer`, and `state` the second part of `Shared<T, BlockPipeline<T>>::of_block()`. There is no
    // `__syncthreads()` in the loops any more: whom would it wait for?
    //
    // The copying threads are 0 to 31, so the thread that multiplies as number i is thread i + 32; a
    // `Source<T, VEC, 32>` divides a tile among 32 threads.
}

// Idea: warps that copy come in addition to eight that multiply; barriers in place of the pipeline, which adds branches to them.
// Cost removed: the missing eighth warp; the library's branches.
// Still limits it: registers, which the copying warps have as many of as the others; and multiply-adds.
template <class T, int COPYING, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS + COPYING, BLOCKS) void multiply_beside(Operands operands,
                                                                                Watch watch) {
    // TODO day38/beside, about 60 minutes.
    // `COPYING` threads come in addition to the `T::THREADS` that multiply, behind them. A stage has two
    // barriers, `auto& [filled, emptied] = barriers;` with `auto& [stages, barriers] = Shared<T,
    // StageBarriers<T>>::of_block();`. `init(&barrier, count)` says how many arrivals complete a phase: for
    // `filled` the threads that copy, for `emptied` those that multiply.
    //
    // `barrier.arrive()` does not wait; `barrier.wait_parity(parity)` waits for the end of the phase of this
    // parity: phases are counted 0, 1, 0, 1... `cuda::pipeline_producer_commit(copies, barrier)` makes the
    // barrier's phase wait for this thread's copies so far; `copies` is a `cuda::make_pipeline()` of the
    // thread, and the copy is `CopyByInstruction<VEC>{}`.
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

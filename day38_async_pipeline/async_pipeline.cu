// Day 38: asynchronous copies. C = A B.   A: M x K, B: K x N, C: M x N, FP32, row-major.             PMPP chapters 5 and 6
//
//   version            a thread computes   who copies a tile, and how                               what limits it
//   tiled_1d           8 of a column       all threads: load, store, barrier                        shared loads: 9 for 8 multiply-adds
//   tiled_2d           8 x 8               the same                                                 instructions that load; waiting
//   tiled_float4       8 x 8               the same, four floats at a time                          waiting for memory at each tile
//   pipeline           8 x 8               all threads, three tiles ahead: cuda::pipeline           copies among the multiply-adds
//   cp_async           8 x 8               the same in single instructions: cp.async                copies among the multiply-adds
//   one_of_eight       8 x 8               one warp copies, seven multiply: block-scope pipeline    a warp less; barriers for each thread
//   one_beside_eight   8 x 8               one warp copies beside eight that multiply               multiply-adds
//
// The arithmetic is the same in all of them. What changes is who waits for memory, and what the others do meanwhile.
//
//   ./course run day38                                     all versions, verified and timed
//   ./course run day38 --variant cp_async --size 4096x4096x4096
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <array>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <stdexcept>
#include <string>
#include <utility>

#include "async_pipeline.hpp"
#include "common/check.hpp"
#include "common/device_buffer.hpp"
#include "common/grid.hpp"
#include "common/ptx.cuh"
#include "tile.cuh"
#include "timeline.cuh"

namespace day38 {
namespace {

namespace cg = cooperative_groups;

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
__device__ unsigned tiles_along_k(const Operands& operands) {
    return static_cast<unsigned>(course::ceil_div<std::size_t>(operands.a.cols(), T::BK));
}

// The block's dynamic shared memory: the stages, and what warps agree by.
struct Nothing {};
template <class T, class Agreement = Nothing>
struct Shared {
    Stage<T> stage[T::STAGES];
    Agreement agreement;

    static __device__ Shared& of_block() {
        extern __shared__ float4 memory[];
        return reinterpret_cast<Shared&>(memory[0]);
    }
};

template <class T>
using BlockPipeline = cuda::pipeline_shared_state<cuda::thread_scope_block, T::STAGES>;

template <class T>
struct StageBarriers {
    cuda::barrier<cuda::thread_scope_block> filled[T::STAGES];
    cuda::barrier<cuda::thread_scope_block> emptied[T::STAGES];
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
    write<T, VEC>(operands.c, origin, place, sums);
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
        if (tile < tiles) source.next(stages[tile % T::STAGES], CopyByPipeline<VEC, decltype(pipe)>{pipe});
        pipe.producer_commit();
    };
    for (unsigned tile = 0; tile + 1 < T::STAGES; ++tile)
        copy(tile);
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kWait, tile);
        pipe.consumer_wait();  // this thread's part of the tile is there
        __syncthreads();       // so is everybody's; and nobody needs the tile before it any more
        watch.begin(Activity::kCopy, tile);
        copy(tile + T::STAGES - 1);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
        pipe.consumer_release();
    }
    watch.begin(Activity::kEnd, tiles);
    write<T, VEC>(operands.c, origin, place, sums);
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
        if (tile < tiles) source.next(stages[tile % T::STAGES], CopyByInstruction<VEC>{});
        course::ptx::cp_async_commit();
    };
    for (unsigned tile = 0; tile + 1 < T::STAGES; ++tile)
        copy(tile);
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kWait, tile);
        course::ptx::cp_async_wait<T::STAGES - 2>();
        __syncthreads();
        watch.begin(Activity::kCopy, tile);
        copy(tile + T::STAGES - 1);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
    }
    watch.begin(Activity::kEnd, tiles);
    write<T, VEC>(operands.c, origin, place, sums);
}

// Idea: warp 0 does nothing but copy, the others nothing but multiply; a pipeline of the block stands between them.
// Cost removed: copies among the multiply-adds, and the barrier of all threads.
// Still limits it: one warp of eight does not multiply; every thread arrives at two barriers for each tile.
template <class T, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS + 32, BLOCKS) void multiply_one_of_eight(Operands operands, Watch watch) {
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
    write<T, VEC>(operands.c, origin, place, sums);
}

// Idea: the warp that copies comes in addition to those that multiply, and those arrive at barriers as warps, not as threads.
// Cost removed: an eighth of the multiply-adds' time; 31 of 32 arrivals for each tile that is free again.
// Still limits it: multiply-adds, and reads of shared memory between them.
template <class T, int COPYING, bool FAST, int VEC, int BLOCKS, class Watch>
__global__ __launch_bounds__(T::THREADS + COPYING, BLOCKS) void multiply_one_beside_eight(Operands operands, Watch watch) {
    auto& [stages, barriers] = Shared<T, StageBarriers<T>>::of_block();
    auto& [filled, emptied] = barriers;
    const Origin origin = origin_of_block<T>(operands.c);
    const unsigned tiles = tiles_along_k<T>(operands);
    if (threadIdx.x < T::STAGES) {
        init(&filled[threadIdx.x], COPYING);           // threads that copy
        init(&emptied[threadIdx.x], T::THREADS / 32);  // warps that multiply
    }
    __syncthreads();

    if (threadIdx.x >= T::THREADS) {
        Source<T, VEC, COPYING> source(operands, origin, static_cast<int>(threadIdx.x) - T::THREADS);
        auto pipe = cuda::make_pipeline();
        for (unsigned tile = 0; tile < tiles; ++tile) {
            const unsigned round = tile / T::STAGES;
            watch.begin(Activity::kWait, tile);
            if (round > 0) emptied[tile % T::STAGES].wait_parity((round - 1) % 2 != 0);
            watch.begin(Activity::kCopy, tile);
            if constexpr (FAST) source.next(stages[tile % T::STAGES], CopyByInstruction<VEC>{});
            else source.next(stages[tile % T::STAGES], CopyByPipeline<VEC, decltype(pipe)>{pipe});
            cuda::pipeline_producer_commit(pipe, filled[tile % T::STAGES]);  // an arrival when the copies are done,
            static_cast<void>(filled[tile % T::STAGES].arrive());            // and this thread's own
        }
        watch.begin(Activity::kEnd, tiles);
        return;
    }
    const auto place = Place<T>::of_thread(static_cast<int>(threadIdx.x));
    float sums[T::TM][T::TN] = {};
    for (unsigned tile = 0; tile < tiles; ++tile) {
        watch.begin(Activity::kWait, tile);
        filled[tile % T::STAGES].wait_parity(tile / T::STAGES % 2 != 0);
        watch.begin(Activity::kMultiply, tile);
        multiply(stages[tile % T::STAGES], place, sums);
        __syncwarp();
        if (threadIdx.x % 32 == 0) static_cast<void>(emptied[tile % T::STAGES].arrive());
    }
    watch.begin(Activity::kEnd, tiles);
    write<T, VEC>(operands.c, origin, place, sums);
}

// --- Launchers -------------------------------------------------------------------------------------------------------

std::string text_of(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("async_pipeline: " + message);
}

void check(const Operands& operands) {
    const auto& [a, b, c] = operands;
    require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
            "A is " + text_of(a.rows(), a.cols()) + ", B is " + text_of(b.rows(), b.cols()) + ", C is " +
                text_of(c.rows(), c.cols()) + "; expected A: M x K, B: K x N, C: M x N");
    require(!overlap(a, c), "C overlaps A; expected no common element");
    require(!overlap(b, c), "C overlaps B; expected no common element");
}

// Is each row of all three matrices a whole number of float4, each at a multiple of 16 bytes?
bool rows_are_whole_packs(const Operands& operands) {
    const auto whole = [](const auto& matrix) {
        return course::is_aligned(matrix.data(), 16) && matrix.cols() % 4 == 0 && matrix.leading_dimension() % 4 == 0;
    };
    return whole(operands.a) && whole(operands.b) && whole(operands.c);
}

// The kernels by name, so that launchers can choose VEC and Watch.
template <class T, int BLOCKS>
struct Tiled {
    using Tile = T;
    using Memory = Shared<T>;
    static constexpr int kThreads = T::THREADS;
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_tiled<T, VEC < T::WIDE ? VEC : T::WIDE, BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct ByPipeline {
    using Tile = T;
    using Memory = Shared<T>;
    static constexpr int kThreads = T::THREADS;
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_pipeline<T, VEC, BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct ByCpAsync {
    using Tile = T;
    using Memory = Shared<T>;
    static constexpr int kThreads = T::THREADS;
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_cp_async<T, VEC, BLOCKS, Watch>;
};
template <class T, int BLOCKS>
struct OneOfEight {
    using Tile = T;
    using Memory = Shared<T, BlockPipeline<T>>;
    static constexpr int kThreads = T::THREADS + 32;
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_one_of_eight<T, VEC, BLOCKS, Watch>;
};
template <class T, int COPYING, int BLOCKS, bool FAST = true>
struct OneBesideEight {
    using Tile = T;
    using Memory = Shared<T, StageBarriers<T>>;
    static constexpr int kThreads = T::THREADS + COPYING;
    template <int VEC, class Watch>
    static constexpr auto kKernel = multiply_one_beside_eight<T, COPYING, FAST, VEC, BLOCKS, Watch>;
};

// A block for each tile of C.
template <class Version>
struct BlockPerTile {
    using T = typename Version::Tile;
    static constexpr int THREADS = Version::kThreads;
    static constexpr std::size_t kShared = sizeof(typename Version::Memory);
    template <class Watch>
    using Function = void(Operands, Watch);

    template <class Watch>
    static void run(const Operands& operands, Watch watch, cudaStream_t stream) {
        check(operands);
        const std::size_t tiles = course::ceil_div<std::size_t>(operands.c.rows(), T::BM) *
                                  course::ceil_div<std::size_t>(operands.c.cols(), T::BN);
        if (tiles == 0) return;  // a grid must have a block
        Function<Watch>* kernel = Version::template kKernel<1, Watch>;
        if (rows_are_whole_packs(operands)) kernel = Version::template kKernel<4, Watch>;
        allow_shared(kernel);
        kernel<<<course::blocks_for(tiles, 1), THREADS, kShared, stream>>>(operands, watch);
        CUDA_CHECK_LAUNCH();
    }

    static void launch(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                       cudaStream_t stream) {
        run({a, b, c}, Silent(), stream);
    }

    static std::vector<Stamp> timeline(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                       DeviceMatrix<float> c, unsigned block, unsigned most) {
        const std::vector<unsigned> none(THREADS / 32);
        course::DeviceBuffer<unsigned> counts{std::span(none)};
        course::DeviceBuffer<Stamp> stamps(none.size() * most);
        run({a, b, c}, Stamping(stamps.data(), counts.data(), block, most), nullptr);
        const std::vector<Stamp> places = stamps.to_host();
        std::vector<Stamp> found;
        unsigned warp = 0;
        for (const unsigned count : counts.to_host()) {
            const auto first = places.begin() + static_cast<std::ptrdiff_t>(warp++ * most);
            found.insert(found.end(), first, first + count);
        }
        return found;
    }

    static course::KernelResources resources() {
        Function<Silent>* const kernel = Version::template kKernel<4, Silent>;
        allow_shared(kernel);
        return course::resources_of(kernel, THREADS, kShared);
    }

    static Kernel kernel() { return {launch, timeline, resources}; }

  private:
    // More than 48 KB of dynamic shared memory must be asked for.
    template <class Watch>
    static void allow_shared(Function<Watch>* kernel) {
        CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(kShared)));
    }
};

course::Work work(const Shape& shape) {
    const auto m = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.cols);
    const auto k = static_cast<double>(shape.depth);
    return {.bytes = sizeof(float) * (m * k + k * n + m * n),
            .written = sizeof(float) * m * n,
            .flops = 2 * m * n * k};
}

//                        BM   BN  BK  TM TN WIDE  LANES_M  STAGES
using Tile1d = TileShape<64, 64, 16, 8, 1, 1, 4>;
using Tile2d = TileShape<128, 128, 16, 8, 8, 1, 4>;
using TileFloat4 = TileShape<128, 128, 16, 8, 8, 4, 4>;
using TileStages = TileShape<128, 128, 16, 8, 8, 4, 4, 4>;
using TileSeven = TileShape<112, 128, 16, 8, 8, 4, 2, 4>;
using TileWide = TileShape<128, 256, 16, 16, 8, 4, 4, 4>;
using TileTall = TileShape<192, 128, 16, 8, 8, 4, 4, 4>;

}  // namespace

std::string_view name(Activity activity) {
    static constexpr std::array<std::string_view, 4> kNames = {"copy", "wait", "multiply", "end"};
    return kNames.at(static_cast<std::size_t>(activity));
}

// --- The list ----------------------------------------------------------------------------------------------------------

std::span<const Pipeline> variants() {
    static const std::array list = std::to_array<Pipeline>({
        {"tiled_1d", "8 elements of a column for each thread", BlockPerTile<Tiled<Tile1d, 2>>::kernel(), work},
        {"tiled_2d", "8 x 8 elements", BlockPerTile<Tiled<Tile2d, 2>>::kernel(), work},
        {"tiled_float4", "four floats at a time", BlockPerTile<Tiled<TileFloat4, 2>>::kernel(), work},
        {"pipeline", "three tiles ahead: cuda::pipeline", BlockPerTile<ByPipeline<TileStages, 2>>::kernel(), work},
        {"cp_async", "three tiles ahead: cp.async", BlockPerTile<ByCpAsync<TileStages, 2>>::kernel(), work},
        {"one_of_eight", "one warp copies, seven multiply", BlockPerTile<OneOfEight<TileSeven, 2>>::kernel(), work},
        {"one_beside_eight", "one warp copies, eight multiply", BlockPerTile<OneBesideEight<TileStages, 32, 2>>::kernel(),
         work},
#ifdef DAY38_EXPERIMENTS
        {"x_7+1_2blocks", "", BlockPerTile<OneBesideEight<TileSeven, 32, 2>>::kernel(), work},
        {"x_8+1_1block", "", BlockPerTile<OneBesideEight<TileStages, 32, 1>>::kernel(), work},
        {"x_8+2_1block", "", BlockPerTile<OneBesideEight<TileStages, 64, 1>>::kernel(), work},
        {"x_8+4_1block", "", BlockPerTile<OneBesideEight<TileStages, 128, 1>>::kernel(), work},
        {"x_8+4_1block_bk8", "", BlockPerTile<OneBesideEight<TileShape<128, 128, 8, 8, 8, 4, 4, 6>, 128, 1>>::kernel(), work},
        {"x_8+4_1block_bk32", "", BlockPerTile<OneBesideEight<TileShape<128, 128, 32, 8, 8, 4, 4, 4>, 128, 1>>::kernel(), work},
        {"x_8+1_1block_bk32", "", BlockPerTile<OneBesideEight<TileShape<128, 128, 32, 8, 8, 4, 4, 4>, 32, 1>>::kernel(), work},
        {"x_12+4_192x128", "", BlockPerTile<OneBesideEight<TileTall, 128, 1>>::kernel(), work},
        {"x_cp_async_128x256", "", BlockPerTile<ByCpAsync<TileWide, 1>>::kernel(), work},
        {"x_cp_async_1block", "", BlockPerTile<ByCpAsync<TileStages, 1>>::kernel(), work},
        {"x_cp_async_1block_bk32", "", BlockPerTile<ByCpAsync<TileShape<128, 128, 32, 8, 8, 4, 4, 4>, 1>>::kernel(), work},
        {"x_pipeline_1block", "", BlockPerTile<ByPipeline<TileStages, 1>>::kernel(), work},
        {"x_2d_1block", "", BlockPerTile<Tiled<Tile2d, 1>>::kernel(), work},
#endif
    });
    return list;
}

}  // namespace day38

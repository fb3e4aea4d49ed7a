// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 11: several blocks for each tile of C.
//
// Change:     SPLIT = 2 blocks share a tile of C, each adds up half of the tiles along K with the main loop of step 10 (multiply_tiles())
//             and stores its sums in scratch memory. Who adds them up and applies alpha and beta:
//               11_split_k            a second kernel, its loads in a pipeline of five stages;
//               11_split_k_in_kernel  the last of the tile's blocks to finish, known by a ticket that each draws.
//             Split s has tiles s, s + SPLIT...: no split has two tiles more than another.
// Why:        C of 1024 x 1024 has 64 tiles; an H200 has 132 multiprocessors. With two blocks for each tile, 128 of them have work.
// Prediction: 1024^3: up to twice as fast. 4096^3: slower than step 10, which has 1024 blocks and needs no more: 128 MiB of sums are
//             written and read again, about 0.07 ms of 2.8 at 4 TB/s. In the kernel, much of it is still in the L2 cache, and other
//             tiles are multiplied in the meantime.
// Counter:    launch__waves_per_multiprocessor; dram__bytes_write.sum; gpu__time_duration.sum of both kernels.
// Measured:   4096^3: about 47 TFLOP/s, 1 % more than step 10, not less: the order in which store_partial() keeps the
//             sums saves more than the traffic costs.
// Next:       work comes in whole tiles, and the last round of blocks does not fill the GPU; B's tiles pass through registers.
#include <cuda/atomic>

#include "../launch.hpp"
#include "../thread_tile.cuh"
#include "../tile.cuh"
#include "../warp_main_loop.cuh"
#include "common/device/ptx.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

using Tile = TileShape<128, 128, 16, 64, 64, 16, 8>;
constexpr int kBlocks = 2;  // that a multiprocessor runs at the same time
constexpr int kSplit = 2;
constexpr int kReduceStages = 5;

// The partial sums of one thread of split 0; those of the other splits follow, each DISTANCE floats after the one before. They stand in
// scratch memory as float4: neighbouring threads, neighbouring float4.
template <class T>
struct Partial {
    static constexpr std::size_t DISTANCE = static_cast<std::size_t>(T::BM) * T::BN;

    float* data;

    template <int SPLIT>
    static __device__ Partial of(const Sgemm& gemm, unsigned tile) {
        return {gemm.scratch.partial.data() + tile * SPLIT * DISTANCE + threadIdx.x * 4};
    }

    // Four neighbours of a row of the thread's results, the quad-th four.
    __device__ float* at(int split, int quad) const {
        return data + split * DISTANCE + quad * T::THREADS * 4;
    }
};

// Stores what a thread has added up in its split; of two neighbours the second comes first.
//
// Values that one instruction loads or stores are in neighbouring registers, the first of them in an even one. So b[j], which a float4
// brought, is in an even register for even j, and sums[i][j] in an odd one. Even and odd registers are two banks: a multiply-add reads
// both at the same time. In their natural order they would be in the same bank, read one after the other.
template <class T>
__device__ void store_partial(const Partial<T>& partial, int split, const float (&sums)[T::TM][T::TN]) {
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        const float* const four = &sums[quad * 4 / T::TN][quad * 4 % T::TN];
        course::Pack<float, 4>{{four[1], four[0], four[3], four[2]}}.store(partial.at(split, quad));
    }
}

// Float4 on their way from scratch memory, STAGES times one of each split, for each thread.
template <class T, int SPLIT, int STAGES>
struct ReduceBuffers {
    float4 quads[STAGES][SPLIT][T::THREADS];
};

// Adds up the splits' partial sums of a tile, always in the same order, and writes it to C. While a thread adds up one float4 of each
// split, those of the next STAGES - 1 rounds are on their way. Nobody else reads what a thread copies: no barrier is needed.
template <class T, int VEC, int SPLIT, int STAGES>
__device__ void reduce_tile(const Sgemm& gemm, unsigned tile, ReduceBuffers<T, SPLIT, STAGES>& shared) {
    static_assert(STAGES >= 2, "reduce_tile: one stage to read and at least one on its way");
    const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, tile);
    const Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));
    const auto partial = Partial<T>::template of<SPLIT>(gemm, tile);
    const auto copy = [&](int quad) {
        if (quad < T::QUADS) {
#pragma unroll
            for (int split = 0; split < SPLIT; ++split)
                course::ptx::cp_async_16(&shared.quads[quad % STAGES][split][threadIdx.x],
                                         partial.at(split, quad));
        }
        course::ptx::cp_async_commit();  // past the end as well, so that a wait always counts the same
    };
    for (int quad = 0; quad < STAGES - 1; ++quad)
        copy(quad);
    for (int quad = 0; quad < T::QUADS; ++quad) {
        copy(quad + STAGES - 1);
        course::ptx::cp_async_wait<STAGES - 1>();  // this round has arrived
        float sums[4] = {};
#pragma unroll
        for (int split = 0; split < SPLIT; ++split) {
            const float4 four = shared.quads[quad % STAGES][split][threadIdx.x];
            sums[0] += four.y;
            sums[1] += four.x;
            sums[2] += four.w;
            sums[3] += four.z;
        }
        const int i = quad * 4 / T::TN;
        const int j = quad * 4 % T::TN;
        write_row_of_packs<VEC, T::LANES_N>(gemm, origin.row + place.row + place_of<T::LANES_M>(0, i),
                                            origin.col + place.col + place_of<T::LANES_N>(0, j), sums);
    }
}

// Idea: SPLIT blocks share a tile of C; split s adds up tiles s, s + SPLIT... along K, so that no split has two tiles more than another.
// Cost removed: multiprocessors without a block, where C has few tiles.
// Still limits it: SPLIT partial sums for each element of C are written and read again.
template <class T, int VEC, int SPLIT>
__global__ __launch_bounds__(T::THREADS, kBlocks) void sgemm_split_k(Sgemm gemm) {
    // TODO gemm_ladder/split_k, about 20 minutes.
    // SPLIT blocks share a tile of C. Block b has tile b / SPLIT, and split s = b % SPLIT adds up tiles s, s
    // + SPLIT, s + 2 SPLIT... along K. It stores its sums in scratch memory; a second kernel, a block for
    // each tile, adds them up.
    //
    // Given: `__shared__ TileBuffers<T> shared` and `multiply_tiles<T, VEC, STRIDE>(gemm, origin, first,
    // shared, sums)`, the main loop of step 10 for tiles `first`, `first + STRIDE`...; `Partial<T>::template
    // of<SPLIT>(gemm, tile)`, where this thread's sums of that tile stand, and `store_partial(partial, split,
    // sums)`; `reduce_tile<T, VEC>(gemm, tile, shared)` with `__shared__ ReduceBuffers<T, SPLIT, STAGES>
    // shared`.
}

// Idea: a block for each tile of C adds up what the splits have left, its loads STAGES deep in a pipeline.
// Cost removed: waiting for one load after the other.
// Still limits it: memory bandwidth; and a second launch, which begins when the last block of the first has ended.
template <class T, int VEC, int SPLIT, int STAGES>
__global__ __launch_bounds__(T::THREADS) void sgemm_reduce_splits(Sgemm gemm) {
    // TODO gemm_ladder/split_k: this one too, see sgemm_split_k.
}

// Idea: of the blocks that share a tile, the last one to finish adds up, while other tiles are still being multiplied.
// Cost removed: the second launch; and the partial sums are still in the L2 cache.
// Still limits it: the partial sums still go through memory; and tiles are split, whether or not there are too few of them.
template <class T, int VEC, int SPLIT, int STAGES>
__global__ __launch_bounds__(T::THREADS, kBlocks) void sgemm_split_k_in_kernel(Sgemm gemm) {
    // TODO gemm_ladder/split_k_in_kernel, about 30 minutes.
    // As split_k, but without a second kernel: of the SPLIT blocks of a tile, the last one to finish adds up.
    // Which one that is, nobody knows before: each block draws a ticket from `gemm.scratch.tickets[tile]`,
    // which is 0 before the launch and must be 0 again after it.
    //
    // Given: what split_k has, and `cuda::atomic_ref<unsigned, cuda::thread_scope_device>` with fetch_add and
    // store. multiply_tiles and reduce_tile need their shared memory one after the other: a union of
    // `TileBuffers<T>` and `ReduceBuffers<T, SPLIT, STAGES>` holds both. Think of who must see whose stores.
}

template <class T, int SPLIT, bool IN_KERNEL>
struct SplitK {
    template <int VEC>
    static constexpr auto kMultiply =
        IN_KERNEL ? sgemm_split_k_in_kernel<T, VEC, SPLIT, kReduceStages> : sgemm_split_k<T, VEC, SPLIT>;

    static_assert(SPLIT >= 2, "SplitK: at least two blocks share a tile");

    static ScratchSize scratch(const Shape& shape) {
        const std::size_t tiles = tiles_in<T::BM, T::BN>(shape.m, shape.n);
        return {.partial = tiles * SPLIT * Partial<T>::DISTANCE, .tickets = IN_KERNEL ? tiles : 0};
    }

    static void launch(const Sgemm& given, cudaStream_t stream) {
        const Sgemm gemm = checked(given, scratch({given.m(), given.n(), given.k()}));
        const unsigned tiles = tiles_of<T::BM, T::BN>(gemm);
        if (tiles == 0) return;
        const unsigned blocks = course::blocks_for(static_cast<std::size_t>(tiles) * SPLIT, 1);
        const bool aligned = rows_are_aligned(gemm);
        const auto multiply = aligned ? kMultiply<4> : kMultiply<1>;
        multiply<<<blocks, T::THREADS, 0, stream>>>(gemm);
        CUDA_CHECK_LAUNCH();
        if constexpr (!IN_KERNEL) {
            const auto reduce = aligned ? sgemm_reduce_splits<T, 4, SPLIT, kReduceStages>
                                        : sgemm_reduce_splits<T, 1, SPLIT, kReduceStages>;
            reduce<<<tiles, T::THREADS, 0, stream>>>(gemm);
            CUDA_CHECK_LAUNCH();
        }
    }

    static course::KernelResources resources() { return course::resources_of(kMultiply<4>, T::THREADS); }

    static Kernel kernel() { return {launch, resources, scratch}; }
};

}  // namespace

Kernel split_k() {
    return SplitK<Tile, kSplit, false>::kernel();
}

Kernel split_k_in_kernel() {
    return SplitK<Tile, kSplit, true>::kernel();
}

}  // namespace gemm

// Stream-K (step 13; also of 14): the work is not cut at the borders of tiles, but into equal shares.
//
// Number all steps of all tiles, BK columns of A each, one tile after the other. Of the S steps, block b of G does those from
// b S / G to (b + 1) S / G: the end of one tile, perhaps some whole tiles, the beginning of another. Whole tiles go to C at once.
// Sums over a part of K go to scratch memory; when all blocks that have a share in a tile have brought theirs, each of them
// adds up a part of the tile and writes it to C, always in the same order.
// M. Osama et al., "Stream-K: Work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU", 2023.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cuda/atomic>
#include <stdexcept>

#include "launch.hpp"
#include "pipelined_tile.cuh"

namespace gemm {

struct Division {
    std::size_t steps_in_tile;
    std::size_t steps;
    unsigned blocks;

    __device__ std::size_t first_of(unsigned block) const { return block * steps / blocks; }
    __device__ unsigned owner_of(std::size_t step) const {
        return static_cast<unsigned>(((step + 1) * blocks - 1) / steps);
    }
};

// The blocks that share a tile: [first, last].
struct Owners {
    unsigned first;
    unsigned last;

    __device__ Owners(const Division& division, std::size_t tile)
        : first(division.owner_of(tile * division.steps_in_tile)),
          last(division.owner_of((tile + 1) * division.steps_in_tile - 1)) {}

    __device__ unsigned count() const { return last - first + 1; }
};

// A block shares at most two tiles with others, the one it begins with and the one it ends with: its sums of the first go to slot 0,
// of the second to slot 1.
template <class T>
__device__ float* partial_of(const Sgemm& gemm, unsigned block, int slot) {
    return gemm.scratch.partial.data() + (2 * static_cast<std::size_t>(block) + slot) * T::BM * T::BN;
}

__device__ inline int slot_of(const Division& division, unsigned block, std::size_t tile) {
    return division.first_of(block) / division.steps_in_tile == tile ? 0 : 1;
}

// Stores a thread's results as float4: neighbouring threads, neighbouring float4.
template <class T>
__device__ void store_partial(float* partial, const float (&sums)[T::TM][T::TN]) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; j += 4) {
            const int quad = (i * T::TN + j) / 4;
            swapped<T>(sums, i, j).store(partial + (quad * T::THREADS + static_cast<int>(threadIdx.x)) * 4);
        }
    }
}

// Adds four floats of a partial sum, stored by store_partial(), each to its own.
__device__ inline void add_swapped(float (&sum)[4], const course::Pack<float, 4>& four) {
    sum[0] += four.value[1];
    sum[1] += four.value[0];
    sum[2] += four.value[3];
    sum[3] += four.value[2];
}

// Writes a finished float4 of the tile at `origin` to C; they are counted as store_partial() stores them.
template <class T, int VEC>
__device__ void write_quad(const Sgemm& gemm, const Origin& origin, unsigned quad, const float (&sum)[4]) {
    const Place place = place_of_thread<T>(static_cast<int>(quad % T::THREADS));
    const int result = static_cast<int>(quad / T::THREADS) * 4;
    write_row_of_packs<VEC, T::LANES_N>(
        gemm, origin.row + place.row + place_of<T::LANES_M>(0, result / T::TN),
        origin.col + place.col + place_of<T::LANES_N>(0, result % T::TN), sum);
}

// Adds up this block's part of a shared tile, and writes it to C. All its owners but the first begin with it.
template <class T, int VEC>
__device__ void finish_tile(const Sgemm& gemm, const Division& division, std::size_t tile,
                            const Owners& owners) {
    constexpr unsigned QUADS = T::QUADS * T::THREADS;
    constexpr unsigned AT_ONCE = 4;  // loads that are on their way at the same time, for each thread
    const unsigned part = blockIdx.x - owners.first;
    const unsigned end = (part + 1) * QUADS / owners.count();
    const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, static_cast<unsigned>(tile));
    const float* const first_partial =
        partial_of<T>(gemm, owners.first, slot_of(division, owners.first, tile));
    for (unsigned begin = part * QUADS / owners.count() + threadIdx.x; begin < end;
         begin += AT_ONCE * T::THREADS) {
        float sums[AT_ONCE][4] = {};
#pragma unroll 4
        for (unsigned block = owners.first; block <= owners.last; ++block) {
            const float* const partial =
                block == owners.first ? first_partial : partial_of<T>(gemm, block, 0);
#pragma unroll
            for (unsigned n = 0; n < AT_ONCE; ++n) {
                const unsigned quad = begin + n * T::THREADS;
                if (quad >= end) continue;
                const auto four = course::Pack<float, 4>::load(partial + quad * 4);
                add_swapped(sums[n], four);
            }
        }
#pragma unroll
        for (unsigned n = 0; n < AT_ONCE; ++n) {
            const unsigned quad = begin + n * T::THREADS;
            if (quad >= end) continue;
            write_quad<T, VEC>(gemm, origin, quad, sums[n]);
        }
    }
}

// From so many owners on, each has so little of a tile that half of its threads would have nothing to add up.
template <class T>
inline constexpr unsigned kManyOwners = 2 * T::QUADS;

// The same for many owners, who have a few float4 each: several threads add up the same one, each what some of the owners have, and
// then one of them what they have. A function of its own, so that the main loop is compiled as if it were not there.
template <class T, int VEC>
__device__ __noinline__ void finish_tile_of_many(const Sgemm& gemm, const Division& division,
                                                 std::size_t tile, const Owners& owners, float* shared) {
    constexpr unsigned QUADS = T::QUADS * T::THREADS;
    const unsigned part = blockIdx.x - owners.first;
    const unsigned begin = part * QUADS / owners.count();
    const unsigned width = (part + 1) * QUADS / owners.count() - begin;
    if (width == 0) return;  // more owners than float4
    const unsigned slices = T::THREADS / width;
    const unsigned slice = threadIdx.x / width;
    const unsigned quad = begin + threadIdx.x % width;
    const float* const partial = gemm.scratch.partial.data() + quad * 4;
    const int first_slot = slot_of(division, owners.first, tile);
    float sum[4] = {};
    if (slice < slices) {
#pragma unroll 8
        for (unsigned block = owners.first + slice; block <= owners.last; block += slices) {
            const std::size_t slot = block == owners.first ? first_slot : 0;
            const auto four =
                course::Pack<float, 4>::load(partial + (2 * std::size_t{block} + slot) * T::BM * T::BN);
            add_swapped(sum, four);
        }
    }
    course::Pack<float, 4>{{sum[0], sum[1], sum[2], sum[3]}}.store(shared + threadIdx.x * 4);
    __syncthreads();  // all slices are there
    if (slice > 0) return;
    for (unsigned other = 1; other < slices; ++other) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sum[i] += shared[(other * width + threadIdx.x) * 4 + i];
    }
    write_quad<T, VEC>(gemm, origin_of_tile<T::BM, T::BN>(gemm, static_cast<unsigned>(tile)), quad, sum);
}

// A tile's ticket counts the blocks that have brought their part, then those that have finished; the last one leaves it at zero.
using Ticket = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// Idea: every block does the same number of steps, whatever the number of tiles.
// Cost removed: the last, half empty round of blocks; and for few tiles with a long K, multiprocessors without any work.
// Still limits it: sums over parts of K go through memory; blocks that begin at different places along K have less of A and B in common
// in the caches.
template <class T, int VEC, int BLOCKS>
__global__ __launch_bounds__(T::THREADS,
                             BLOCKS) void sgemm_stream_k(const __grid_constant__ Sgemm gemm,
                                                         const __grid_constant__ Division division) {
    extern __shared__ float4 shared[];
    const std::size_t begin = division.first_of(blockIdx.x);
    const std::size_t end = division.first_of(blockIdx.x + 1);

    for (std::size_t step = begin; step < end;) {
        const std::size_t tile = step / division.steps_in_tile;
        const std::size_t first = step % division.steps_in_tile;
        const std::size_t count = min(division.steps_in_tile - first, end - step);
        const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, static_cast<unsigned>(tile));
        float sums[T::TM][T::TN] = {};
        multiply_pipelined<T, VEC>(gemm, origin, first * T::BK, min((first + count) * T::BK, gemm.k()),
                                   reinterpret_cast<Stage<T>*>(shared), sums);
        if (count == division.steps_in_tile) {
            write_tile<T, VEC>(gemm, origin, sums, reinterpret_cast<float*>(shared));
            __syncthreads();  // the stages are free again
        } else {
            store_partial<T>(partial_of<T>(gemm, blockIdx.x, step == begin ? 0 : 1), sums);
            __syncthreads();  // all of the block have stored
            if (threadIdx.x == 0) Ticket(gemm.scratch.tickets[tile]).fetch_add(1, cuda::memory_order_release);
        }
        step += count;
    }

    // Nobody waits before all his work is done, and all blocks run at the same time (a cooperative launch): so nobody waits for ever.
    for (std::size_t tile = begin / division.steps_in_tile; tile * division.steps_in_tile < end; ++tile) {
        const Owners owners(division, tile);
        if (owners.count() == 1) continue;
        Ticket ticket(gemm.scratch.tickets[tile]);
        if (threadIdx.x == 0) {
            while (ticket.load(cuda::memory_order_acquire) < owners.count()) {
            }
        }
        __syncthreads();  // all parts are there
        if (owners.count() < kManyOwners<T>) {
            finish_tile<T, VEC>(gemm, division, tile, owners);
        } else {
            finish_tile_of_many<T, VEC>(gemm, division, tile, owners, reinterpret_cast<float*>(shared));
        }
        __syncthreads();  // all of the block have read
        if (threadIdx.x == 0 && ticket.fetch_add(1, cuda::memory_order_relaxed) == 2 * owners.count() - 1)
            ticket.store(0, cuda::memory_order_relaxed);
    }
}

template <class T, int BLOCKS>
struct StreamK {
    static constexpr std::size_t SHARED = sizeof(Stage<T>) * T::STAGES;
    template <int VEC>
    static constexpr auto kKernel = sgemm_stream_k<T, VEC, BLOCKS>;

    // How many blocks the device runs at the same time.
    static unsigned resident() {
        course::allow_shared_bytes(kKernel<4>, SHARED);
        course::allow_shared_bytes(kKernel<1>, SHARED);
        return std::min(course::resident_blocks(kKernel<4>, T::THREADS, SHARED),
                        course::resident_blocks(kKernel<1>, T::THREADS, SHARED));
    }

    static ScratchSize scratch(const Shape& shape) {
        const std::size_t tiles = tiles_in<T::BM, T::BN>(shape.m, shape.n);
        return {.partial = std::size_t{2} * resident() * T::BM * T::BN, .tickets = tiles};
    }

    // On `blocks` blocks, or as many as there are steps or run at the same time, if that is less.
    static void launch_on(unsigned blocks, const Sgemm& given, cudaStream_t stream) {
        if (blocks == 0)
            throw std::invalid_argument("sgemm: blocks is 0; expected at least 1 to share the work");
        Sgemm gemm = checked(given, scratch({given.m(), given.n(), given.k()}));
        const unsigned tiles = tiles_of<T::BM, T::BN>(gemm);
        if (tiles == 0) return;
        // K = 0 has a step too, an empty one, so that C is written.
        Division division{};
        division.steps_in_tile = std::max<std::size_t>(course::ceil_div<std::size_t>(gemm.k(), T::BK), 1);
        division.steps = division.steps_in_tile * tiles;
        division.blocks = static_cast<unsigned>(std::min<std::size_t>({blocks, resident(), division.steps}));
        const auto kernel = rows_are_whole_packs(gemm) ? kKernel<4> : kKernel<1>;
        void* arguments[] = {&gemm, &division};
        CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(division.blocks), dim3(T::THREADS), arguments,
                                               SHARED, stream));
    }

    static void launch(const Sgemm& gemm, cudaStream_t stream) { launch_on(resident(), gemm, stream); }

    static course::KernelResources resources() {
        course::allow_shared_bytes(kKernel<4>, SHARED);
        return course::resources_of(kKernel<4>, T::THREADS, SHARED);
    }

    static Kernel kernel() { return {launch, resources, scratch}; }
};

}  // namespace gemm

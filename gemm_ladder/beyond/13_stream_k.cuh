// Step 13: equal shares for all blocks (stream-K).
//
// Change:     as many blocks as run at the same time. Each computes the same number of steps of BK
//             columns along K, regardless of where tiles end. If blocks share a tile, their sums go
//             through scratch memory. A tile is multiplied as in step 12: this step changes only
//             which block multiplies which part.
// Why:        the last wave of blocks is as full as the others, for every shape.
// Prediction: 4096^3: the main loop leaves no SM idle, where step 12 loses 3 %; but shared tiles
//             cost memory traffic and waiting. And a tile of 64 x 128 with 8 x 8 results per thread
//             needs all words that shared memory can return: slower than step 12 on squares, faster
//             on shapes of few tiles and a deep K.
// Counter:    sm__cycles_active.avg over sm__cycles_elapsed.max nears 1; dram__bytes_write.sum.
// Measured:   about 51 TFLOP/s, a little less than step 12 on this shape.
// Limit:      multiply-adds (counters: FMA 78 % busy, issue slots 89 %).
// Next:       which tile is fastest, and which of steps 12 and 13, depends on the shape.
//
// Number the steps of all tiles one after the other. Of the S steps, block b of G has those from
// b S / G to (b + 1) S / G: the end of a tile, perhaps whole tiles, the start of another. Three
// tiles of 8 steps for four blocks:
//
//     tile    0 0 0 0 0 0 0 0   1 1 1 1 1 1 1 1   2 2 2 2 2 2 2 2
//     block   0 0 0 0 0 0 1 1   1 1 1 1 2 2 2 2   2 2 3 3 3 3 3 3
//
// A block stores a whole tile to C at once. A partial sum goes to scratch memory. When all blocks
// that share a tile, its owners, have stored theirs, each owner adds up a part of the tile, always
// in the same order, and stores it to C: the fix-up.
//
// M. Osama et al., "Stream-K: Work-centric parallel decomposition for dense matrix-matrix
// multiplication on the GPU", 2023.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cuda/atomic>

#include "12_multi_stage.cuh"

namespace gemm {

// Which steps a block has, and which block has a step.
struct Division {
    std::size_t steps_in_tile;
    std::size_t steps;
    unsigned blocks;

    __device__ std::size_t first_of(unsigned block) const { return block * steps / blocks; }
    __device__ unsigned owner_of(std::size_t step) const {
        return static_cast<unsigned>(((step + 1) * blocks - 1) / steps);
    }
};

// A block shares at most two tiles with others: the one that its steps start in, and the one that
// they end in. So it has room for two partial sums in scratch memory, slot 0 and slot 1.
template <class T>
__device__ float* partial_of(const Sgemm& gemm, unsigned block, int slot) {
    return gemm.scratch.partial.data() + (2 * static_cast<std::size_t>(block) + slot) * T::BM * T::BN;
}

// The slot of `block` for `tile`, one of the two.
__device__ inline int slot_of(const Division& division, unsigned block, std::size_t tile) {
    return division.first_of(block) / division.steps_in_tile == tile ? 0 : 1;
}

// Stores a thread's results to scratch memory, float4 by float4; adjacent threads have adjacent
// float4.
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

// The blocks that share a tile: `first` to `last`.
struct Owners {
    unsigned first;
    unsigned last;

    __device__ Owners(const Division& division, std::size_t tile)
        : first(division.owner_of(tile * division.steps_in_tile)),
          last(division.owner_of((tile + 1) * division.steps_in_tile - 1)) {}

    __device__ unsigned count() const { return last - first + 1; }
};

// sum += a float4 that store_partial() has stored, and its order undone.
__device__ inline void add_swapped(float (&sum)[4], const course::Pack<float, 4>& four) {
    sum[0] += four.value[1];
    sum[1] += four.value[0];
    sum[2] += four.value[3];
    sum[3] += four.value[2];
}

// Stores a finished float4 of the tile at `origin` to C. `quad` is its number in store_partial().
template <class T, int VEC>
__device__ void write_quad(const Sgemm& gemm, const Origin& origin, unsigned quad, const float (&sum)[4]) {
    const Place place = place_of_thread<T>(static_cast<int>(quad % T::THREADS));
    const int result = static_cast<int>(quad / T::THREADS) * 4;
    write_row_of_packs<VEC, T::LANES_N>(
        gemm, origin.row + place.row + place_of<T::LANES_M>(0, result / T::TN),
        origin.col + place.col + place_of<T::LANES_N>(0, result % T::TN), sum);
}

// The fix-up of a tile with few owners: this block adds up its part of the tile and stores it to C.
// All owners but the first start with this tile: their partial sums are in slot 0.
template <class T, int VEC>
__device__ void fix_up_for_few(const Sgemm& gemm, const Division& division, std::size_t tile,
                               const Owners& owners) {
    constexpr unsigned QUADS = T::QUADS * T::THREADS;
    constexpr unsigned AT_ONCE = 4;  // loads of a thread that are in flight at the same time
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

// From this number of owners on, a part is so small that half of the block's threads would be idle.
template <class T>
inline constexpr unsigned kManyOwners = 2 * T::QUADS;

// The fix-up of a tile with many owners. A part is a few float4, so several threads add up the same
// one: each reads the partial sums of some of the owners, a slice. Then one of the threads adds up
// the slices. Not inlined, because that would change the registers of the main loop.
template <class T, int VEC>
__device__ __noinline__ void fix_up_for_many(const Sgemm& gemm, const Division& division, std::size_t tile,
                                             const Owners& owners, float* shared) {
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
    __syncthreads();  // all slices are complete
    if (slice > 0) return;
    for (unsigned other = 1; other < slices; ++other) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sum[i] += shared[(other * width + threadIdx.x) * 4 + i];
    }
    write_quad<T, VEC>(gemm, origin_of_tile<T::BM, T::BN>(gemm, static_cast<unsigned>(tile)), quad, sum);
}

// The fix-up of a shared tile. All threads of all its owners call it.
template <class T, int VEC>
__device__ void fix_up(const Sgemm& gemm, const Division& division, std::size_t tile, const Owners& owners,
                       float* shared) {
    if (owners.count() < kManyOwners<T>) {
        fix_up_for_few<T, VEC>(gemm, division, tile, owners);
    } else {
        fix_up_for_many<T, VEC>(gemm, division, tile, owners, shared);
    }
}

// A tile's ticket counts the owners that have stored their partial sums, then those that have
// finished the fix-up. The last of them sets it to 0 again, for the next launch.
using Ticket = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// What limits it: multiply-adds (4096^3, counters: FMA 78 % busy). Blocks that start at different
// places along K have less of A and B in common in the caches: 4.6 GB from memory, step 12: 0.34.
template <class T, int VEC, int BLOCKS>
__global__ __launch_bounds__(T::THREADS,
                             BLOCKS) void sgemm_stream_k(const __grid_constant__ Sgemm gemm,
                                                         const __grid_constant__ Division division) {
    extern __shared__ float4 shared[];  // the stages; between products, rows of C and slices
    const std::size_t begin = division.first_of(blockIdx.x);
    const std::size_t end = division.first_of(blockIdx.x + 1);

    // Multiply: this block's steps, tile after tile.
    for (std::size_t step = begin; step < end;) {
        const std::size_t tile = step / division.steps_in_tile;
        const std::size_t first = step % division.steps_in_tile;  // in the tile
        const std::size_t count = min(division.steps_in_tile - first, end - step);
        const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, static_cast<unsigned>(tile));
        float sums[T::TM][T::TN] = {};  // TM x TN results of this thread
        multiply_pipelined<T, VEC>(gemm, origin, first * T::BK, min((first + count) * T::BK, gemm.k()),
                                   reinterpret_cast<Stage<T>*>(shared), sums);
        if (count == division.steps_in_tile) {
            write_tile<T, VEC>(gemm, origin, sums, reinterpret_cast<float*>(shared));
            __syncthreads();  // the stages are safe to overwrite
        } else {
            store_partial<T>(partial_of<T>(gemm, blockIdx.x, step == begin ? 0 : 1), sums);
            __syncthreads();  // all threads of the block have stored
            // Release: an owner that reads this count sees the block's partial sum.
            if (threadIdx.x == 0) Ticket(gemm.scratch.tickets[tile]).fetch_add(1, cuda::memory_order_release);
        }
        step += count;
    }

    // Fix up the shared tiles. A block waits only after it has finished all of its own products,
    // and all blocks run at the same time (a cooperative launch), so there is no deadlock.
    for (std::size_t tile = begin / division.steps_in_tile; tile * division.steps_in_tile < end; ++tile) {
        const Owners owners(division, tile);
        if (owners.count() == 1) continue;
        Ticket ticket(gemm.scratch.tickets[tile]);
        if (threadIdx.x == 0) {
            while (ticket.load(cuda::memory_order_acquire) < owners.count()) {
            }
        }
        __syncthreads();  // the partial sums of all owners are visible to all threads
        fix_up<T, VEC>(gemm, division, tile, owners, reinterpret_cast<float*>(shared));
        __syncthreads();  // all threads of the block have read
        if (threadIdx.x == 0 && ticket.fetch_add(1, cuda::memory_order_relaxed) == 2 * owners.count() - 1)
            ticket.store(0, cuda::memory_order_relaxed);
    }
}

}  // namespace gemm

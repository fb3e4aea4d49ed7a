// Day 18: merge. Two sorted arrays, a and b, become one.    PMPP chapter 12 (4th edition), 13 (5th edition)
//
//   version           what is new                                   what limits it
//   sequential        one thread merges everything                  one thread; each step waits for memory
//   basic             each thread finds its share by co-rank        L2: scattered accesses
//   tiled             tiles of a and b in shared memory             L2: stores use 4 of 32 bytes of a sector
//   circular_buffer   ring buffers keep what a tile has left        the same
//
// The merge loop is sequential, because the next element depends on all elements before it. The
// co-rank makes it parallel. Which part of a and which part of b become elements k0 to k1 of the
// output? A binary search finds them without merging anything.
//
// All versions are stable: of equal keys, those of a come first. Each kernel is followed by its
// launch, for at least one element. beyond/ merges in registers, and loads while it merges.
//
//   ./course run day18                                every version, verified and timed
//   ./course run day18 --program                      program.cu: one merge, from main() to the result
//   ./course inspect day18 --only tiled               sectors and bank conflicts, line by line
#pragma once

#include "co_rank.cuh"
#include "common/device/grid.hpp"

namespace day18 {

// The sequential merge, by one thread: elements 0 to m - 1 of a, 0 to n - 1 of b. A and B are
// pointers, or the rings of circular_buffer.
template <class Index, class A, class B>
__device__ void merge_sequential(A a, Index m, B b, Index n, Key* out) {
    Index i = 0;
    Index j = 0;
    for (Index k = 0; k < m + n; ++k) {
        const bool from_a = j == n || (i < m && a[i] <= b[j]);
        out[k] = from_a ? a[i++] : b[j++];
    }
}

// Idea: the loop of the CPU, in one thread.
// Cost removed: none. This is the baseline for the other versions.
// Still limits it: one thread does all the work, and each step waits for a load.
__global__ void sequential(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out) {
    merge_sequential(a, m, b, n, out);
}

inline void launch_sequential(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out,
                              cudaStream_t stream) {
    sequential<<<1, 1, 0, stream>>>(a, m, b, n, out);
}

constexpr int kBasicBlock = 256;      // threads of a block
constexpr unsigned kBasicShare = 16;  // elements of the output per thread

// Idea: each thread merges 16 elements of the output. The co-ranks of the first one and of the end
// are where its parts of a and b start and end.
// Cost removed: the one loop. All threads have a share, equally long.
// Still limits it: adjacent threads read and write 64 bytes apart, so a warp's store touches 32
// sectors instead of 4. Counters at 2^28 elements: L2 95 % busy. A search takes some 28 steps, each
// waiting for memory.
__global__ void basic(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out) {
    const std::size_t thread = std::size_t{blockIdx.x} * kBasicBlock + threadIdx.x;
    const std::size_t k = smaller(thread * kBasicShare, m + n);
    const std::size_t k_end = smaller(k + kBasicShare, m + n);
    const std::size_t i = co_rank(k, a, m, b, n);
    const std::size_t i_end = co_rank(k_end, a, m, b, n);
    const std::size_t j = k - i;
    const std::size_t j_end = k_end - i_end;
    merge_sequential(a + i, i_end - i, b + j, j_end - j, out + k);
}

inline void launch_basic(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out,
                         cudaStream_t stream) {
    const unsigned grid = course::blocks_for(m + n, kBasicBlock * kBasicShare);
    basic<<<grid, kBasicBlock, 0, stream>>>(a, m, b, n, out);
}

// --- Tiles in shared memory ----------------------------------------------------------------------

constexpr int kTiledBlock = 128;
constexpr unsigned kTiledShare = 8;                           // elements per thread and tile
constexpr unsigned kTiledTile = kTiledBlock * kTiledShare;    // 1,024 elements of the output
constexpr unsigned kTilesOfBlock = 8;                         // one after the other
constexpr unsigned kBlockShare = kTiledTile * kTilesOfBlock;  // 8,192 elements of the output

// Where a block's parts of the output (k), of a (i) and of b (j) start and end.
struct Part {
    std::size_t k, k_end;
    std::size_t i, i_end;
    std::size_t j, j_end;
};

// Two threads search, all threads get the result.
__device__ inline Part part_of_block(const Key* a, std::size_t m, const Key* b, std::size_t n) {
    __shared__ std::size_t found[2];
    Part part;
    part.k = std::size_t{blockIdx.x} * kBlockShare;
    part.k_end = smaller(part.k + kBlockShare, m + n);
    if (threadIdx.x < 2) found[threadIdx.x] = co_rank(threadIdx.x == 0 ? part.k : part.k_end, a, m, b, n);
    __syncthreads();
    part.i = found[0];
    part.i_end = found[1];
    part.j = part.k - part.i;
    part.j_end = part.k_end - part.i_end;
    return part;
}

// Idea: a block merges 8 tiles of 1,024 elements, one after the other. The next 1,024 elements of a
// and the next 1,024 of b are always enough for a tile. They are loaded to shared memory, and the
// threads search there.
// Cost removed: searches in global memory, except for two per block; scattered loads.
// Still limits it: a thread's 8 results are still 32 bytes apart from those of the next one, so a
// warp's store touches 32 sectors. Counters at 2^28 elements: L2 87 % busy, DRAM 20 %. Moreover,
// 2,048 elements are loaded for 1,024 that are merged. The rest is loaded again with the next tile.
__global__ void __launch_bounds__(kTiledBlock)
    tiled(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out) {
    __shared__ Key tile_a[kTiledTile];
    __shared__ Key tile_b[kTiledTile];
    __shared__ unsigned taken_from_a;
    Part rest = part_of_block(a, m, b, n);
    while (rest.k < rest.k_end) {
        const auto size_a = static_cast<unsigned>(smaller<std::size_t>(rest.i_end - rest.i, kTiledTile));
        const auto size_b = static_cast<unsigned>(smaller<std::size_t>(rest.j_end - rest.j, kTiledTile));
        for (unsigned x = threadIdx.x; x < size_a; x += kTiledBlock)
            tile_a[x] = a[rest.i + x];
        for (unsigned x = threadIdx.x; x < size_b; x += kTiledBlock)
            tile_b[x] = b[rest.j + x];
        __syncthreads();

        const unsigned size = smaller(size_a + size_b, kTiledTile);
        const unsigned k = smaller(threadIdx.x * kTiledShare, size);
        const unsigned k_end = smaller(k + kTiledShare, size);
        const unsigned i = co_rank(k, tile_a, size_a, tile_b, size_b);
        const unsigned i_end = co_rank(k_end, tile_a, size_a, tile_b, size_b);
        const unsigned j = k - i;
        const unsigned j_end = k_end - i_end;
        merge_sequential(tile_a + i, i_end - i, tile_b + j, j_end - j, out + rest.k + k);

        // The last thread's end is the end of the tile.
        if (threadIdx.x == kTiledBlock - 1) taken_from_a = i_end;
        __syncthreads();
        rest.i += taken_from_a;
        rest.j += size - taken_from_a;
        rest.k += size;
    }
}

inline void launch_tiled(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out,
                         cudaStream_t stream) {
    const unsigned grid = course::blocks_for(m + n, kBlockShare);  // 8 tiles for each block
    tiled<<<grid, kTiledBlock, 0, stream>>>(a, m, b, n, out);
}

// A buffer whose end is followed by its start. Element 0 is in slot `first`.
struct Ring {
    const Key* slots;
    unsigned first;
    __device__ unsigned slot(unsigned i) const { return (first + i) % kTiledTile; }
    __device__ Key operator[](unsigned i) const { return slots[slot(i)]; }
    __device__ Ring from(unsigned i) const { return {slots, first + i}; }
};

// Idea: elements that a tile has not used stay in the buffer. The next elements overwrite those
// that it has used, so the buffers are rings: slot 1,023 is followed by slot 0.
// Cost removed: the second load. Each element is loaded once.
// Still limits it: the stores are those of tiled, so a warp's store touches 32 sectors instead of 4
// (counters at 2^28 elements: L2 86 % busy). An access takes more instructions, for the slot. While
// the block loads, it does not merge.
__global__ void __launch_bounds__(kTiledBlock)
    circular_buffer(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out) {
    __shared__ Key slots_a[kTiledTile];
    __shared__ Key slots_b[kTiledTile];
    __shared__ unsigned taken_from_a;
    Part rest = part_of_block(a, m, b, n);
    Ring ring_a{slots_a, 0};
    Ring ring_b{slots_b, 0};
    unsigned kept_a = 0;  // elements that the last tile left over
    unsigned kept_b = 0;
    while (rest.k < rest.k_end) {
        const auto size_a = static_cast<unsigned>(smaller<std::size_t>(rest.i_end - rest.i, kTiledTile));
        const auto size_b = static_cast<unsigned>(smaller<std::size_t>(rest.j_end - rest.j, kTiledTile));
        for (unsigned x = kept_a + threadIdx.x; x < size_a; x += kTiledBlock)
            slots_a[ring_a.slot(x)] = a[rest.i + x];
        for (unsigned x = kept_b + threadIdx.x; x < size_b; x += kTiledBlock)
            slots_b[ring_b.slot(x)] = b[rest.j + x];
        __syncthreads();

        const unsigned size = smaller(size_a + size_b, kTiledTile);
        const unsigned k = smaller(threadIdx.x * kTiledShare, size);
        const unsigned k_end = smaller(k + kTiledShare, size);
        const unsigned i = co_rank(k, ring_a, size_a, ring_b, size_b);
        const unsigned i_end = co_rank(k_end, ring_a, size_a, ring_b, size_b);
        const unsigned j = k - i;
        const unsigned j_end = k_end - i_end;
        merge_sequential(ring_a.from(i), i_end - i, ring_b.from(j), j_end - j, out + rest.k + k);

        if (threadIdx.x == kTiledBlock - 1) taken_from_a = i_end;
        __syncthreads();
        const unsigned taken_from_b = size - taken_from_a;
        ring_a.first += taken_from_a;
        ring_b.first += taken_from_b;
        kept_a = size_a - taken_from_a;
        kept_b = size_b - taken_from_b;
        rest.i += taken_from_a;
        rest.j += taken_from_b;
        rest.k += size;
    }
}

inline void launch_circular_buffer(const Key* a, std::size_t m, const Key* b, std::size_t n, Key* out,
                                   cudaStream_t stream) {
    const unsigned grid = course::blocks_for(m + n, kBlockShare);
    circular_buffer<<<grid, kTiledBlock, 0, stream>>>(a, m, b, n, out);
}

}  // namespace day18

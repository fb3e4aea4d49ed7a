// A tile of a scan: loaded, scanned and stored by one block, as in day 16. Here blocks are the
// subject, so this part is in a header of its own.
//
// A block that loads the next tile needs no barrier before it. After load_tile and scan_tile, the
// barrier in sum_before has let all threads read their elements. After store_tile, a thread loads
// to the places that it has stored from itself.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day24 {

constexpr int kBlock = 256;            // threads of a block
constexpr int kEach = 8;               // elements of a thread
constexpr int kTile = kEach * kBlock;  // elements of a tile
constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffff;

// Shared memory for a tile. After every 32 words one is unused, so that lanes that access elements
// 8 apart have no bank conflicts.
constexpr int kShared = kTile + kTile / kWarpSize;
__device__ inline unsigned place(unsigned k) {
    return k + k / kWarpSize;
}

// The sum of the values of all threads before this one. `total` gets the sum of all threads'
// values. Two calls need a barrier in between.
//
// `of_warp` begins at a multiple of 16 bytes, so that the compiler's 16-byte loads read nothing
// else. Without the alignment they read the word before it, too. They ignore it, but another thread
// may write it in the meantime, and compute-sanitizer reports a race.
__device__ inline int sum_before(int value, int& total) {
    alignas(16) __shared__ int of_warp[kBlock / kWarpSize];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    int inclusive = value;
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        const int left = __shfl_up_sync(kWholeWarp, inclusive, stride);
        if (lane >= stride) inclusive += left;
    }
    if (lane == kWarpSize - 1) of_warp[warp] = inclusive;
    __syncthreads();
    int of_warps_before = 0;
    total = 0;
    for (int w = 0; w < kBlock / kWarpSize; ++w) {
        if (w == warp) of_warps_before = total;
        total += of_warp[w];
    }
    return of_warps_before + inclusive - value;
}

// Loads the tile that starts at element `first`, with 0 from n on. Thread t gets elements 8 t to
// 8 t + 7 of the tile. Adjacent threads load adjacent elements; shared memory rearranges them.
__device__ inline void load_tile(const int* in, std::size_t n, std::size_t first, int* shared,
                                 int (&mine)[kEach]) {
    for (unsigned k = threadIdx.x; k < kTile; k += kBlock)
        shared[place(k)] = first + k < n ? in[first + k] : 0;
    __syncthreads();
    for (unsigned j = 0; j < kEach; ++j)
        mine[j] = shared[place(threadIdx.x * kEach + j)];
}

// `mine` becomes the thread's part of the scan of the tile. Returns the sum of the tile.
__device__ inline int scan_tile(int (&mine)[kEach]) {
    for (int j = 1; j < kEach; ++j)
        mine[j] += mine[j - 1];
    int total;
    const int before = sum_before(mine[kEach - 1], total);
    for (int j = 0; j < kEach; ++j)
        mine[j] += before;
    return total;
}

// Adds `before`, the sum of all tiles before, and stores the tile.
__device__ inline void store_tile(const int (&mine)[kEach], int before, int* shared, int* out, std::size_t n,
                                  std::size_t first) {
    for (unsigned j = 0; j < kEach; ++j)
        shared[place(threadIdx.x * kEach + j)] = mine[j] + before;
    __syncthreads();
    for (unsigned k = threadIdx.x; k < kTile; k += kBlock)
        if (first + k < n) out[first + k] = shared[place(k)];
}

}  // namespace day24

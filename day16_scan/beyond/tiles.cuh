// Day 16, beyond: tiles of 5,120 elements, in shared memory and in registers.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "block_scan.cuh"

namespace day16 {

constexpr int kPacks = 5;               // 16-byte packs of a thread: odd, see Tile
constexpr int kItems = 4 * kPacks;      // elements of a thread, consecutive
constexpr int kTile = kBlock * kItems;  // 5,120 elements of a tile

template <class T>
struct alignas(16) Pack {
    T item[4];
};

// A tile in shared memory. For coalesced accesses to global memory, adjacent threads take adjacent
// packs (striped); for the scan, thread t has packs 5 t to 5 t + 4 (blocked). Eight threads access
// 128 bytes at once, a pack in each eighth of the banks: 5 t modulo 8 takes all eight values, so
// there are no bank conflicts.
template <class T>
using Tile = Pack<T>[kBlock * kPacks];

template <class T>
__device__ void load_tile(Tile<T>& tile, const T* in, std::size_t n, std::size_t first) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(in) % sizeof(Pack<T>) == 0;
    if (aligned && first + kTile <= n) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            const int pack = p * kBlock + static_cast<int>(threadIdx.x);
            tile[pack] = *reinterpret_cast<const Pack<T>*>(in + first + pack * 4);
        }
    } else {
        for (int k = static_cast<int>(threadIdx.x); k < kTile; k += kBlock)
            tile[k / 4].item[k % 4] = first + k < n ? in[first + k] : T{0};
    }
    __syncthreads();
}

template <class T>
__device__ void store_tile(const Tile<T>& tile, T* out, std::size_t n, std::size_t first) {
    __syncthreads();
    const bool aligned = reinterpret_cast<std::uintptr_t>(out) % sizeof(Pack<T>) == 0;
    if (aligned && first + kTile <= n) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
            const int pack = p * kBlock + static_cast<int>(threadIdx.x);
            *reinterpret_cast<Pack<T>*>(out + first + pack * 4) = tile[pack];
        }
    } else {
        for (int k = static_cast<int>(threadIdx.x); k < kTile; k += kBlock)
            if (first + k < n) out[first + k] = tile[k / 4].item[k % 4];
    }
}

// This thread's elements, and their sum.
template <class T>
__device__ T read_items(const Tile<T>& tile, Pack<T> (&items)[kPacks]) {
    T sum = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
        items[p] = tile[threadIdx.x * kPacks + p];
#pragma unroll
        for (const T& item : items[p].item)
            sum += item;
    }
    return sum;
}

// Writes the scan of this thread's elements; `sum` is the sum of everything before them. Exclusive:
// without the element itself.
template <bool kExclusive, class T>
__device__ void write_scan(Tile<T>& tile, Pack<T> (&items)[kPacks], T sum) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
        for (T& item : items[p].item) {
            const T before = sum;
            sum += item;
            item = kExclusive ? before : sum;
        }
        tile[threadIdx.x * kPacks + p] = items[p];
    }
}

}  // namespace day16

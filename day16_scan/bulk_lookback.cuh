// Day 16, last version: the look-back is fed by asynchronous bulk copies. Needs compute capability
// 9.0.
#pragma once

#include "common/device/ptx_hopper.cuh"
#include "look_back.cuh"

namespace day16 {

namespace ptx = course::ptx;

constexpr int kStages = 3;  // one arrives, one is scanned, one is being stored

template <class T>
struct Stages {
    Tile<T> tiles[kStages];
    ptx::MBarrier full[kStages];  // a phase ends when the bytes of the tile have arrived
    unsigned numbers[kStages];
};

// Idea: as many blocks as the GPU holds at once, which draw tile after tile. While a block scans
// one, the next one arrives in shared memory by a bulk copy, and the last one leaves by another.
// Cost removed: the idle time of memory during scan and look-back.
// Still limits it: memory bandwidth.
//
// `in` and `out` are 16-byte aligned.
template <class T, bool kExclusive>
__global__ void __launch_bounds__(kBlock)
    bulk_lookback(const T* in, T* out, std::size_t n, Progress* progress, volatile Word* words) {
    extern __shared__ __align__(128) unsigned char memory[];
    Stages<T>& ring = *reinterpret_cast<Stages<T>*>(memory);
    __shared__ T before_tile;
    const std::size_t tiles = (n + kTile - 1) / kTile;
    const unsigned launch = progress->launch;

    // Thread 0: draws a tile for the stage, and starts its copy. The last tile may be shorter; it
    // is not copied here.
    const auto begin_load = [&](int stage) {
        const unsigned number = draw_tile(progress);
        ring.numbers[stage] = number;
        if ((std::size_t{number} + 1) * kTile > n) return;
        ptx::mbarrier_arrive_expect(&ring.full[stage], sizeof(Tile<T>));
        ptx::bulk_load(ring.tiles[stage], in + std::size_t{number} * kTile, sizeof(Tile<T>),
                       &ring.full[stage]);
    };
    if (threadIdx.x == 0) {
        for (ptx::MBarrier& full : ring.full)
            ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
        begin_load(0);
    }
    __syncthreads();

    unsigned parity = 0;
    for (int stage = 0;;) {
        const int next = stage + 1 == kStages ? 0 : stage + 1;
        const unsigned number = ring.numbers[stage];
        if (number >= tiles) break;
        if (threadIdx.x == 0) {
            ptx::tma_store_wait_read<1>();  // the tile that was in stage `next` has left
            begin_load(next);
        }
        const std::size_t first = std::size_t{number} * kTile;
        const bool is_whole = first + kTile <= n;
        Tile<T>& tile = ring.tiles[stage];
        if (is_whole) {
            ptx::mbarrier_wait(&ring.full[stage], parity);
        } else {
            load_tile(tile, in, n, first);
        }
        Pack<T> items[kPacks];
        T total;
        const T before = sum_before(read_items(tile, items), total);
        if (threadIdx.x < kWarpSize) {
            const T found = publish_and_look_back(words, number, launch, total);
            if (threadIdx.x == 0) before_tile = found;
        }
        __syncthreads();
        write_scan<kExclusive>(tile, items, static_cast<T>(before_tile + before));
        if (is_whole) {
            ptx::fence_proxy_async();  // what this thread has written, the copy will read
            __syncthreads();
            if (threadIdx.x == 0) {
                ptx::bulk_store(out + first, tile, sizeof(tile));
                ptx::tma_store_commit();
            }
        } else {
            store_tile(tile, out, n, first);
        }
        stage = next;
        if (stage == 0) parity ^= 1;
    }
    if (threadIdx.x == 0) {
        ptx::tma_store_wait<0>();  // shared memory must live until it has been read
        finish(progress, words);
    }
}

}  // namespace day16

// Day 29, beyond: loads that never stop.
#pragma once

#include "common/device/launch.hpp"
#include "decoding_attention.cuh"
#include "warp_rows.cuh"

namespace day29 {

constexpr int kStages = 2;  // tiles of a warp: one is multiplied, one is in flight

// A warp's ring of tiles in shared memory.
template <class T, int D>
struct Ring {
    Tile<T, D> stages[kStages];
};

// Issues this lane's part of the copies of a tile: keys and values of the first `left` of kKeys
// tokens, zeros for the others. A warp's 32 copies of 16 bytes are adjacent.
template <class T, int D>
__device__ void copy_tile(Tile<T, D>& tile, const T* k, const T* v, int left) {
    constexpr int PACKS = D / 8;
    constexpr int ROWS = 32 / PACKS;  // that a warp copies at a time
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int first = lane / PACKS;
    // opaque(): else the compiler sees that lane and row have no bits in common, and replaces the
    // sums below, which are immediate offsets, by an OR for each address.
    const int place = course::ptx::opaque(Tile<T, D>::place(first, lane % PACKS));
    const int offset = course::ptx::opaque(lane * 8);
    k += offset;
    v += offset;
    left -= first;
    // Rows first, first + ROWS, ...: place(first + row, pack) is this.
#pragma unroll
    for (int row = 0; row < kKeys; row += ROWS)
        course::ptx::cp_async_16(&tile.k[(place ^ row % 8) + row * PACKS], k + row * D, row < left ? 16 : 0);
#pragma unroll
    for (int row = 0; row < kKeys; row += ROWS)
        course::ptx::cp_async_16(&tile.v[(place ^ row % 8) + row * PACKS], v + row * D, row < left ? 16 : 0);
}

// Idea: each warp takes every kWarps-th tile of 16 keys and copies it with cp.async (day 38) into a
// ring of its own. The next tile is in flight while this one is multiplied.
// Cost removed: the block's barriers, and the time in which an SM has no loads in flight. 8 warps x
// 2 tiles x 8 KB keep 64 to 128 KB of each SM in flight.
// Still limits it: memory (one sequence of 32 heads, counters: 83 % busy); with more sequences, the
// grid. 128 heads on 132 SMs need one block each or two. With two, the last
// wave has 124 of 132 blocks; with sequences of different lengths, some blocks have less work.
template <class T, int D>
__global__ void __launch_bounds__(kWarps * 32) async_ring(Task<T> task, int splits, float* parts) {
    extern __shared__ __align__(128) unsigned char memory[];
    const int warp = static_cast<int>(threadIdx.x / 32);
    Ring<T, D>& ring = reinterpret_cast<Ring<T, D>*>(memory)[warp];
    const auto item = static_cast<int>(blockIdx.x / static_cast<unsigned>(splits));
    const auto split = static_cast<int>(blockIdx.x % static_cast<unsigned>(splits));
    const int length = task.length(item / task.heads_kv);
    const Range keys = range_of(length, split, splits, kKeys);

    const auto copy = [&](int first, int stage) {
        if (first < keys.last) {
            const std::size_t at = task.cache(item, first, D);
            copy_tile(ring.stages[stage], task.k + at, task.v + at, length - first);
        }
        course::ptx::cp_async_commit();  // a group for each tile, also where there is none
    };
    constexpr int kStep = kKeys * kWarps;
    const int begin = keys.first + warp * kKeys;
    for (int stage = 0; stage < kStages - 1; ++stage)
        copy(begin + stage * kStep, stage);
    WarpRows<T, D> rows(task.q + static_cast<std::size_t>(item) * task.rows * D, task.rows, task.queries);
    int stage = 0;
    for (int first = begin; first < keys.last; first += kStep) {
        copy(first + (kStages - 1) * kStep, (stage + kStages - 1) % kStages);
        course::ptx::cp_async_wait<kStages - 1>();
        __syncwarp();  // this tile is complete in all lanes
        rows.attend(ring.stages[stage], length - first, task.scale);
        __syncwarp();  // safe to overwrite
        stage = (stage + 1) % kStages;
    }
    course::ptx::cp_async_wait<0>();
    rows.template merge_warps<kWarps>([&](int row, int col, const Part& part) {
        const std::size_t of_all = static_cast<std::size_t>(item) * task.rows + row;
        store_part<D>(parts, of_all * splits + split, col, part);
    });
}

template <class T, int D>
void launch_async_ring(const Task<T>& task, int splits, float* parts, cudaStream_t stream) {
    const std::size_t heads = static_cast<std::size_t>(task.batch) * task.heads_kv;  // of K
    const unsigned blocks = course::blocks_for(heads * static_cast<std::size_t>(splits), 1);
    course::launch(async_ring<T, D>, {blocks, kWarps * 32, kWarps * sizeof(Ring<T, D>), stream}, task, splits,
                   parts);
    launch_combine_splits<T, D>(parts, splits, task.out, all_rows(task), stream);
}

}  // namespace day29

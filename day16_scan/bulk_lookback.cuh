// Day 16, last version: the look-back is fed by asynchronous bulk copies. Needs compute capability
// 9.0.
#pragma once

#include "common/device/ptx_hopper.cuh"
#include "look_back.cuh"

namespace day16 {

namespace ptx = course::ptx;

#ifndef BT
#define BT 512
#define BR 4
#define BS 3
#define BB 2
#define BL 1
#endif
constexpr int kBulkThreads = BT;
constexpr int kBulkWarps = kBulkThreads / kWarpSize;
constexpr int kRows = BR;  // packs of a thread: a warp scans as many rows of 32 packs
constexpr int kBulkTile = kBulkThreads * kRows * 4;
constexpr int kStages = BS;   // tiles in shared memory
constexpr unsigned kAhead = BL;  // rounds from the publication of a tile's sum to its scan

template <class T>
struct Stages {
    Pack<T> tiles[kStages][kBulkTile / 4];
    T of_warp[kStages][kBulkWarps];  // the sum of each warp's part of the tile
    ptx::MBarrier full[kStages];     // a phase ends when the bytes of the tile have arrived
};

// This thread's packs of the last tile, which is shorter: elements from n on are 0.
template <class T>
__device__ Pack<T> load_pack(const T* in, std::size_t n, std::size_t first) {
    Pack<T> pack;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        pack.item[k] = first + k < n ? in[first + k] : T{0};
    return pack;
}

// `sum` is that of all elements before the pack. Exclusive: without the element itself.
template <bool kExclusive, class T>
__device__ void scan_and_store(Pack<T> pack, T sum, T* out, std::size_t n, std::size_t first) {
#pragma unroll
    for (T& item : pack.item) {
        const T before = sum;
        sum += item;
        item = kExclusive ? before : sum;
    }
    if (first + 4 <= n) {
#ifdef CS
        __stcs(reinterpret_cast<float4*>(out + first), *reinterpret_cast<float4*>(&pack));
#else
        *reinterpret_cast<Pack<T>*>(out + first) = pack;
#endif
    } else {
        for (int k = 0; k < 4; ++k)
            if (first + k < n) out[first + k] = pack.item[k];
    }
}

// The sum of the values of a warp; all lanes get it.
template <class T>
__device__ T warp_sum(T value) {
    for (int stride = kWarpSize / 2; stride > 0; stride /= 2)
        value += __shfl_xor_sync(kWholeWarp, value, stride);
    return value;
}

template <class T>
__device__ T sum_of(const T* values, int count) {
    T sum = 0;
    for (int i = 0; i < count; ++i)
        sum += values[i];
    return sum;
}

// Idea: as many blocks as the GPU holds at once. Block b of G scans tiles b, b + G, b + 2 G, ... It
// knows the sum up to its last tile, so it adds up the G sums that were published since, each
// thread one of them. The next tiles are already on their way to shared memory, by bulk copies.
// Cost removed: prefixes that wait for prefixes, and the idle time of memory during the look-back.
// Still limits it: memory bandwidth.
//
// All blocks must run at the same time, so it is a cooperative launch. Sums are added in the same
// order in every run. `in` and `out` are 16-byte aligned.
template <class T, bool kExclusive>
__global__ void __launch_bounds__(kBulkThreads, BB)
    bulk_lookback(const T* in, T* out, std::size_t n, Board board) {
    extern __shared__ __align__(128) unsigned char memory[];
    Stages<T>& stages = *reinterpret_cast<Stages<T>*>(memory);
    __shared__ unsigned launch_number;
    __shared__ T found[2][kBulkWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const int my_pack = warp * kRows * kWarpSize + lane;  // a warp's elements are neighbours
    const std::size_t tiles = (n + kBulkTile - 1) / kBulkTile;
    const std::size_t blocks = gridDim.x;

    const auto is_whole = [&](std::size_t tile) { return (tile + 1) * kBulkTile <= n; };
    // The last tile may be shorter: it is not copied here.
    const auto begin_load = [&](unsigned round) {
        const std::size_t tile = blockIdx.x + round * blocks;
        if (!is_whole(tile)) return;
        const int stage = static_cast<int>(round % kStages);
        ptx::mbarrier_arrive_expect(&stages.full[stage], sizeof(stages.tiles[stage]));
        ptx::bulk_load(stages.tiles[stage], in + tile * kBulkTile, sizeof(stages.tiles[stage]),
                       &stages.full[stage]);
    };
    const auto pack_of = [&](std::size_t tile, int stage, int row) {
        const int pack = my_pack + row * kWarpSize;
        return is_whole(tile) ? stages.tiles[stage][pack] : load_pack(in, n, tile * kBulkTile + pack * 4);
    };
    if (threadIdx.x == 0) {
        for (ptx::MBarrier& full : stages.full)
            ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
        for (unsigned round = 0; round < kStages; ++round)
            begin_load(round);
        launch_number = draw(board, tiles).launch;
    }
    __syncthreads();
    const unsigned launch = launch_number;

    T prefix = 0;  // the sum of all elements before the block's last tile
    Word word = 0;
    for (unsigned round = 0;; ++round) {
        // The sum of the tile that is kAhead rounds ahead.
        const std::size_t ahead = blockIdx.x + round * blocks;
        const int stage = static_cast<int>(round % kStages);
        if (ahead < tiles) {
            if (is_whole(ahead)) ptx::mbarrier_wait(&stages.full[stage], round / kStages % 2);
            T sum = 0;
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                const Pack<T> pack = pack_of(ahead, stage, row);
                sum += (pack.item[0] + pack.item[1]) + (pack.item[2] + pack.item[3]);
            }
            sum = warp_sum(sum);
            if (lane == 0) stages.of_warp[stage][warp] = sum;
        }

        // The look-back: at the tiles from number - blocks to number - 1, a thread for each.
        const std::size_t number = ahead - kAhead * blocks;
        if (round >= kAhead && number < tiles) {
            const bool looks = threadIdx.x < blocks && number + threadIdx.x >= blocks;
            while (looks && state_of(word, launch) == 0)
                word = board.words[number + threadIdx.x - blocks];
            const T sum = warp_sum(looks ? value_of<T>(word) : T{0});
            if (lane == 0) found[round % 2][warp] = sum;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            if (ahead < tiles)
                board.words[ahead] = make_word(launch, kSum, sum_of(stages.of_warp[stage], kBulkWarps));
            if (round > kAhead) begin_load(round - kAhead - 1 + kStages);
        }
        if (round < kAhead) continue;
        if (number >= tiles) break;
#ifndef NOPRE
        word = 0;
        if (threadIdx.x < blocks && number + blocks < tiles) word = board.words[number + threadIdx.x];
#else
        word = 0;
#endif

        prefix += sum_of(found[round % 2], kBulkWarps);
        const int scanned = static_cast<int>((round - kAhead) % kStages);
        T sum = prefix + sum_of(stages.of_warp[scanned], warp);
        const std::size_t first = number * kBulkTile;
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            const Pack<T> pack = pack_of(number, scanned, row);
            const T inclusive =
                warp_scan((pack.item[0] + pack.item[1]) + (pack.item[2] + pack.item[3]));
            const T left = __shfl_up_sync(kWholeWarp, inclusive, 1);
            scan_and_store<kExclusive>(pack, lane == 0 ? sum : sum + left, out, n,
                                       first + (my_pack + row * kWarpSize) * 4);
            sum += __shfl_sync(kWholeWarp, inclusive, kWarpSize - 1);
        }
    }
}

}  // namespace day16

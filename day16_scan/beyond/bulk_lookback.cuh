// Day 16, last version: the look-back is fed by asynchronous bulk copies. Needs compute capability
// 9.0.
#pragma once

#include "common/device/ptx_hopper.cuh"
#include "look_back.cuh"

namespace day16 {

namespace ptx = course::ptx;

// A warp owns consecutive elements: kRows rows of 32 packs, lane l the l-th pack of each row. So
// global and shared memory are accessed in whole lines, and no element moves to another thread.
constexpr int kBulkThreads = 512;
constexpr int kBulkWarps = kBulkThreads / kWarpSize;
constexpr int kRows = 4;
constexpr int kBulkTile = kBulkThreads * kRows * 4;  // 8,192 elements, 32 KB
constexpr unsigned kStages = 6;                      // tiles in shared memory, of the one block that fits
constexpr unsigned kAhead = 3;  // rounds between the publication of a tile's sum and its scan

template <class T>
struct Stages {
    Pack<T> tiles[kStages][kBulkTile / 4];
    T sums[kStages][kBulkWarps];  // of each warp's part of the tile
    ptx::MBarrier full[kStages];  // a phase ends when the bytes of a tile have arrived
};

// A pack of the last tile, which is shorter: elements from n on are 0.
template <class T>
__device__ Pack<T> load_pack(const T* in, std::size_t n, std::size_t first) {
    Pack<T> pack;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        pack.item[k] = first + k < n ? in[first + k] : T{0};
    return pack;
}

// Stores 16 bytes of results, those from n on left out. They are not needed again soon, so __stcs
// leaves the L2 cache to the input.
template <class T, int kPack>
__device__ void store_pack(const T (&results)[kPack], T* out, std::size_t n, std::size_t first) {
    uint4 bits;
    static_assert(sizeof(results) == sizeof(bits));
    if (first + kPack <= n) {
        memcpy(&bits, &results, sizeof(bits));
        __stcs(reinterpret_cast<uint4*>(out + first), bits);
    } else {
        for (int k = 0; k < kPack; ++k)
            if (first + k < n) out[first + k] = results[k];
    }
}

// Stores the scan of a pack. `sum` is that of all elements before it. Exclusive: without the
// element itself.
template <bool kExclusive, class T>
__device__ void scan_and_store(Pack<T> pack, T sum, T* out, std::size_t n, std::size_t first) {
#pragma unroll
    for (T& item : pack.item) {
        const T before = sum;
        sum += item;
        item = kExclusive ? before : sum;
    }
    store_pack(pack.item, out, n, first);
}

template <class T>
__device__ T sum_of(const Pack<T>& pack) {
    return (pack.item[0] + pack.item[1]) + (pack.item[2] + pack.item[3]);
}

template <class T>
__device__ T sum_of_first(int count, const T* values) {
    T sum = 0;
    for (int i = 0; i < count; ++i)
        sum += values[i];
    return sum;
}

template <class T>
__device__ T sum_of_warp(T value) {
    for (int stride = kWarpSize / 2; stride > 0; stride /= 2)
        value += __shfl_xor_sync(kWholeWarp, value, stride);
    return value;
}

// Idea: as many blocks as the GPU holds at once, G of them. In round r block b has tile r G + b. It
// publishes the tile's sum as soon as the tile is in shared memory, and scans the tile kAhead
// rounds later. By then the sums of the G tiles before it have usually been published. Each of G
// threads reads one of them, and the block adds them to the sum of all tiles before its previous
// one.
// Cost removed: waiting. A look-back rarely waits, and bulk copies of later tiles are always in
// flight.
// Still limits it: memory bandwidth (counters at 2^28 elements: 83 % busy). At 2^20 latency,
// because a block has only one tile.
//
// Blocks wait for sums of all others, so all must run at the same time, by a cooperative launch.
// Sums are added in a fixed order, so every run gives the same bits. `in` and `out` are 16-byte
// aligned, and gridDim.x <= kBulkThreads.
template <class T, bool kExclusive>
__global__ void __launch_bounds__(kBulkThreads)
    bulk_lookback(const T* in, T* out, std::size_t n, Board board) {
    extern __shared__ __align__(128) unsigned char memory[];
    Stages<T>& stages = *reinterpret_cast<Stages<T>*>(memory);
    __shared__ T found[2][kBulkWarps];
    __shared__ unsigned shared_launch;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const int my_pack = warp * kRows * kWarpSize + lane;
    const std::size_t blocks = gridDim.x;
    const std::size_t tiles = (n + kBulkTile - 1) / kBulkTile;
    const auto is_whole = [&](std::size_t tile) { return (tile + 1) * kBulkTile <= n; };

    // The last tile may be shorter. It is read from global memory instead.
    const auto begin_copy = [&](unsigned round) {
        const std::size_t tile = round * blocks + blockIdx.x;
        if (!is_whole(tile)) return;
        const unsigned stage = round % kStages;
        ptx::mbarrier_arrive_expect(&stages.full[stage], sizeof(stages.tiles[stage]));
        ptx::bulk_load(stages.tiles[stage], in + tile * kBulkTile, sizeof(stages.tiles[stage]),
                       &stages.full[stage]);
    };
    const auto read_pack = [&](std::size_t tile, unsigned stage, int row) {
        const int pack = my_pack + row * kWarpSize;
        return is_whole(tile) ? stages.tiles[stage][pack] : load_pack(in, n, tile * kBulkTile + pack * 4);
    };

    if (threadIdx.x == 0) {
        for (ptx::MBarrier& full : stages.full)
            ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
        for (unsigned round = 0; round < kStages; ++round)
            begin_copy(round);
        shared_launch = draw(board, tiles).launch;
    }
    __syncthreads();
    const unsigned launch = shared_launch;

    T prefix = 0;   // the sum of all tiles before the one that this block scanned last
    Word word = 0;  // of the tile that this thread looks at
    for (unsigned round = 0;; ++round) {
        // 1. The sum of this round's tile, first of each warp's part.
        const std::size_t tile = round * blocks + blockIdx.x;
        const unsigned stage = round % kStages;
        if (tile < tiles) {
            if (is_whole(tile)) ptx::mbarrier_wait(&stages.full[stage], round / kStages % 2);
            T sum = 0;
#pragma unroll
            for (int row = 0; row < kRows; ++row)
                sum += sum_of(read_pack(tile, stage, row));
            sum = sum_of_warp(sum);
            if (lane == 0) stages.sums[stage][warp] = sum;
        }

        // 2. The look-back of the tile of kAhead rounds ago: at tiles old - blocks to old - 1.
        const std::size_t old = tile - kAhead * blocks;
        const unsigned old_stage = (round - kAhead) % kStages;
        const bool has_old = round >= kAhead && old < tiles;
        if (has_old) {
            const bool looks = threadIdx.x < blocks && old + threadIdx.x >= blocks;
            while (looks && state_of(word, launch) == 0)
                word = load_relaxed(&board.words[old - blocks + threadIdx.x]);
            const T sum = sum_of_warp(looks ? value_of<T>(word) : T{0});
            if (lane == 0) found[round % 2][warp] = sum;
        }
        __syncthreads();  // the sums are complete; all threads have finished the round before
        if (threadIdx.x == 0) {
            if (tile < tiles)
                store_relaxed(&board.words[tile],
                              make_word(launch, kSum, sum_of_first(kBulkWarps, stages.sums[stage])));
            if (round > kAhead) begin_copy(round - kAhead - 1 + kStages);
        }
        if (round < kAhead) continue;
        if (!has_old) break;
        // The word for the next round is loaded early; usually it has been published already.
        word =
            threadIdx.x < blocks && old + blocks < tiles ? load_relaxed(&board.words[old + threadIdx.x]) : 0;

        // 3. The scan of that tile.
        prefix += sum_of_first(kBulkWarps, found[round % 2]);
        T before_row = prefix + sum_of_first(warp, stages.sums[old_stage]);
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            const Pack<T> pack = read_pack(old, old_stage, row);
            const T inclusive = warp_scan(sum_of(pack));
            const T left = __shfl_up_sync(kWholeWarp, inclusive, 1);
            const T before = lane == 0 ? before_row : before_row + left;
            scan_and_store<kExclusive>(pack, before, out, n,
                                       old * kBulkTile + (my_pack + row * kWarpSize) * 4);
            before_row += __shfl_sync(kWholeWarp, inclusive, kWarpSize - 1);
        }
    }
}

}  // namespace day16

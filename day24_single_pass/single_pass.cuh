// Day 24: blocks of one launch that wait for one another.      PMPP chapter 11 (4th and 5th edition)
//
//   version         what is new                                     what limits it
//   grid_barrier    all blocks meet, twice; no second launch        memory: 3 n; block 0 scans alone
//   domino          a block waits for the block before it           a chain through all tiles
//   look_back       it adds up sums until it finds a prefix         one word at a time
//   look_back_warp  32 words at a time                              a block that looks back loads nothing
//   filter          the same, with counts: writes what is kept      the same
//
// The problem is the inclusive scan of day 16, of ints: out[i] = in[0] + ... + in[i]. Every sum of
// adjacent elements has to fit into an int. A block scans a tile (tile.cuh); what it needs from the
// blocks before is one number, the sum of their tiles. How does it get it without a second launch?
// `out` may be `in`. What limits a version is what the counters say at 2^28 elements; `filter` has
// none.
//
//   ./course run day24                                 every version, verified and timed
//   ./course run day24 --program                       program.cu: one scan, from main() to the result
//   ./course inspect day24 --only domino               races between blocks, line by line
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/relaxed.cuh"
#include "tile.cuh"

namespace day24 {

namespace cg = cooperative_groups;
using course::load_relaxed;
using course::store_relaxed;

// Idea: the three kernels of day 16 become three phases of one. A grid barrier, grid.sync(), lets
// no block go on before all blocks have arrived, and what they wrote before it is visible after it.
// Cost removed: two launches.
// Still limits it: memory, because all elements are read twice, 3 n of traffic (counters: L2 74 %
// busy, DRAM 65 %). While block 0 scans the sums, all other blocks wait.
//
// A block that has not started cannot arrive, so all blocks must be resident at the same time:
// that is what a cooperative launch guarantees. There may be more tiles than blocks, hence the
// loops.
__global__ void __launch_bounds__(kBlock) grid_barrier(const int* in, int* out, std::size_t n, int* sums) {
    __shared__ int shared[kShared];
    const cg::grid_group grid = cg::this_grid();
    const std::size_t tiles = course::ceil_div<std::size_t>(n, kTile);
    int mine[kEach];

    // Between two tiles no barrier is needed: see tile.cuh.
    for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        load_tile(in, n, tile * kTile, shared, mine);
        const int total = scan_tile(mine);
        if (threadIdx.x == 0) sums[tile] = total;
    }
    grid.sync();  // all sums are stored

    if (blockIdx.x == 0) {
        int before = 0;
        for (std::size_t first = 0; first < tiles; first += kTile) {
            load_tile(sums, tiles, first, shared, mine);
            const int total = scan_tile(mine);
            store_tile(mine, before, shared, sums, tiles, first);
            before += total;
        }
    }
    grid.sync();  // all sums are scanned

    for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        load_tile(in, n, tile * kTile, shared, mine);
        scan_tile(mine);
        store_tile(mine, tile > 0 ? sums[tile - 1] : 0, shared, out, n, tile * kTile);
    }
}

// `sums` has an element for each tile. A larger grid than can be resident would be refused.
inline void launch_grid_barrier(const int* in, int* out, std::size_t n, int* sums, cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    const unsigned grid = std::min(tiles, course::resident_blocks(grid_barrier, kBlock));
    void* arguments[] = {&in, &out, &n, &sums};
    cudaLaunchCooperativeKernel(grid_barrier, dim3(grid), dim3(kBlock), arguments, 0, stream);
}

// --- Tickets -------------------------------------------------------------------------------------

// 64 bits that one instruction loads or stores whole. The board of a launch is an array of them:
// board[0] counts the tickets drawn, board[1 + tile] is what the block of the tile publishes.
using Word = unsigned long long;

// Before each launch: no ticket is drawn, and no block has published.
inline void clear_board(Word* board, unsigned tiles, cudaStream_t stream) {
    cudaMemsetAsync(board, 0, (std::size_t{1} + tiles) * sizeof(Word), stream);
}

// Each block draws a ticket: 0, 1, 2, ... in the order in which blocks start. It takes the tile of
// that number. Then all earlier tiles belong to blocks that have started, and a block that waits
// for them waits for blocks that run.
//
// blockIdx.x gives no such promise: blocks may start in any order. If the last ones start first and
// take all places on the GPU, they wait for blocks that cannot start: a deadlock.
__device__ inline unsigned draw_ticket(Word* board) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) ticket = static_cast<unsigned>(atomicAdd(&board[0], Word{1}));
    __syncthreads();
    return ticket;
}

// Idea: a block waits for the prefix of the tile before its own, the sum of that tile and all
// before it. It adds the sum of its tile and passes the result on.
// Cost removed: the second read. 2 n of traffic, which is the least possible.
// Still limits it: the chain. Each tile adds a round trip through L2, and no block can skip one:
// 1.07 us for each of 131,072 tiles. Counters: 87 % of the time of the warps passes at the barrier
// behind the thread that waits, and no unit is above 6 %.
//
// The prefix and the word that announces it are two variables. A fence orders them in the writer,
// and a second one in the reader.
__global__ void __launch_bounds__(kBlock)
    domino(const int* in, int* out, std::size_t n, Word* board, int* prefixes) {
    __shared__ int shared[kShared];
    __shared__ int before;
    const unsigned tile = draw_ticket(board);
    const std::size_t first = std::size_t{tile} * kTile;
    Word* const is_ready = board + 1;
    int mine[kEach];
    load_tile(in, n, first, shared, mine);
    const int total = scan_tile(mine);

    if (threadIdx.x == 0) {
        before = 0;
        if (tile > 0) {
            while (load_relaxed(&is_ready[tile - 1]) == 0) {
            }
            __threadfence();  // acquire: the prefix that the word announces is visible
            before = prefixes[tile - 1];
        }
        prefixes[tile] = before + total;
        __threadfence();  // release: the prefix is visible before the word is
        store_relaxed(&is_ready[tile], Word{1});
    }
    __syncthreads();
    store_tile(mine, before, shared, out, n, first);
}

// A block for each tile. `prefixes` has an element for each.
inline void launch_domino(const int* in, int* out, std::size_t n, Word* board, int* prefixes,
                          cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear_board(board, tiles, stream);
    domino<<<tiles, kBlock, 0, stream>>>(in, out, n, board, prefixes);
}

// --- Decoupled look-back -------------------------------------------------------------------------

// A status word: the state of a tile in the upper half, its value in the lower half. One store
// publishes both, so that no fence is needed between them. 0 is "empty".
enum State : unsigned {
    kEmpty = 0,
    kSum = 1,    // of the tile
    kPrefix = 2  // of the tile and all before it
};

__device__ inline Word make_word(State state, int value) {
    return Word{state} << 32 | static_cast<unsigned>(value);
}

__device__ inline State state_of(Word word) {
    return static_cast<State>(word >> 32);
}

__device__ inline int value_of(Word word) {
    return static_cast<int>(static_cast<unsigned>(word));
}

// The sum of all tiles before `tile`, computed by one thread: it walks back, adding up sums, until
// it has added a prefix. An empty word is loaded again.
__device__ inline int walk_back(const Word* words, unsigned tile) {
    int sum = 0;
    while (tile > 0) {
        --tile;
        Word word;
        do {
            word = load_relaxed(&words[tile]);
        } while (state_of(word) == kEmpty);
        sum += value_of(word);
        if (state_of(word) == kPrefix) break;
    }
    return sum;
}

// Idea: a block publishes the sum of its tile before it waits. Later blocks add up these sums, and
// need no prefix of the tile just before theirs.
// Cost removed: the chain. A block waits until the tiles before have been loaded and added up, not
// until their blocks have finished waiting.
// Still limits it: the thread loads one word after the other, each with the latency of L2.
// Counters: the other warps spend 73 % of their time at the barrier behind it, DRAM is 28 % busy.
__global__ void __launch_bounds__(kBlock) look_back(const int* in, int* out, std::size_t n, Word* board) {
    __shared__ int shared[kShared];
    __shared__ int before;
    const unsigned tile = draw_ticket(board);
    const std::size_t first = std::size_t{tile} * kTile;
    Word* const words = board + 1;
    int mine[kEach];
    load_tile(in, n, first, shared, mine);
    const int total = scan_tile(mine);

    if (threadIdx.x == 0) {
        store_relaxed(&words[tile], make_word(tile == 0 ? kPrefix : kSum, total));
        before = walk_back(words, tile);
        if (tile > 0) store_relaxed(&words[tile], make_word(kPrefix, before + total));
    }
    __syncthreads();
    store_tile(mine, before, shared, out, n, first);
}

inline void launch_look_back(const int* in, int* out, std::size_t n, Word* board, cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear_board(board, tiles, stream);
    look_back<<<tiles, kBlock, 0, stream>>>(in, out, n, board);
}

// The same sum, computed by one warp; all its lanes get it. Lane 0 loads the word of tile - 1, lane
// 1 that of tile - 2, and so on. The values up to the nearest prefix are added up. If there is
// none, the warp goes on with the 32 tiles before.
__device__ inline int walk_back_warp(const Word* words, unsigned tile) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    int sum = 0;
    for (long long nearest = static_cast<long long>(tile) - 1;; nearest -= kWarpSize) {
        const long long mine = nearest - lane;
        Word word = make_word(kPrefix, 0);  // before the first tile
        do {
            if (mine >= 0) word = load_relaxed(&words[mine]);
        } while (__any_sync(kWholeWarp, state_of(word) == kEmpty));
        const unsigned prefixes = __ballot_sync(kWholeWarp, state_of(word) == kPrefix);
        const int last = prefixes != 0 ? __ffs(static_cast<int>(prefixes)) - 1 : kWarpSize - 1;
        int part = lane <= last ? value_of(word) : 0;
        // Distances 1, 2, 4, ... add up adjacent tiles, whose sums fit into an int.
        for (int distance = 1; distance < kWarpSize; distance *= 2)
            part += __shfl_xor_sync(kWholeWarp, part, distance);
        sum += part;
        if (prefixes != 0) return sum;
    }
}

// Publishes the sum of the tile, looks back, publishes the prefix. Returns the sum of all tiles
// before. The first warp calls it.
__device__ inline int publish_and_look_back(Word* words, unsigned tile, int total) {
    if (threadIdx.x == 0) store_relaxed(&words[tile], make_word(tile == 0 ? kPrefix : kSum, total));
    const int before = walk_back_warp(words, tile);
    if (threadIdx.x == 0 && tile > 0) store_relaxed(&words[tile], make_word(kPrefix, before + total));
    return before;
}

// Idea: the lanes of a warp look at 32 words at the same time, and vote.
// Cost removed: 31 of 32 round trips to L2, where no prefix is near.
// Still limits it: while a block looks back, it has no loads of its tile in flight. Counters: warps
// spend 59 % of their time at barriers, DRAM is 41 % busy.
__global__ void __launch_bounds__(kBlock)
    look_back_warp(const int* in, int* out, std::size_t n, Word* board) {
    __shared__ int shared[kShared];
    __shared__ int before;
    const unsigned tile = draw_ticket(board);
    const std::size_t first = std::size_t{tile} * kTile;
    int mine[kEach];
    load_tile(in, n, first, shared, mine);
    const int total = scan_tile(mine);

    if (threadIdx.x < kWarpSize) {
        const int found = publish_and_look_back(board + 1, tile, total);
        if (threadIdx.x == 0) before = found;
    }
    __syncthreads();
    store_tile(mine, before, shared, out, n, first);
}

inline void launch_look_back_warp(const int* in, int* out, std::size_t n, Word* board, cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear_board(board, tiles, stream);
    look_back_warp<<<tiles, kBlock, 0, stream>>>(in, out, n, board);
}

// --- Filter --------------------------------------------------------------------------------------

// Idea: day 17's problem. The place of an element that is kept is the number of elements kept
// before it: a scan of flags. A block looks back for the number that all tiles before keep.
// Cost removed: the three kernels of day 17's `stable`, and the second read. n + m of traffic for m
// elements kept, in their order.
// Still limits it: barriers, as in look_back_warp (counters: 59 % of a warp's time); and bank
// conflicts where threads gather what they keep, 8-way if they keep everything.
__global__ void __launch_bounds__(kBlock)
    filter(const int* in, std::size_t n, int threshold, int* out, unsigned* count, Word* board) {
    __shared__ int shared[kShared];
    __shared__ int before;
    const unsigned tile = draw_ticket(board);
    const std::size_t first = std::size_t{tile} * kTile;
    int mine[kEach];
    load_tile(in, n, first, shared, mine);
    bool is_kept[kEach];
    int kept = 0;
    for (unsigned j = 0; j < kEach; ++j) {
        is_kept[j] = first + threadIdx.x * kEach + j < n && mine[j] < threshold;
        kept += is_kept[j];
    }
    int total;
    int next = sum_before(kept, total);  // the place of the thread's next element, among those of the tile

    if (threadIdx.x < kWarpSize) {
        const int found = publish_and_look_back(board + 1, tile, total);
        if (threadIdx.x == 0) before = found;
    }
    // `shared` may be overwritten: since the barrier in sum_before, all threads have read their
    // elements.
    for (int j = 0; j < kEach; ++j)
        if (is_kept[j]) shared[next++] = mine[j];
    __syncthreads();

    const std::size_t start = static_cast<unsigned>(before);
    for (int k = static_cast<int>(threadIdx.x); k < total; k += kBlock)
        out[start + k] = shared[k];
    if (threadIdx.x == 0 && tile == gridDim.x - 1) *count = static_cast<unsigned>(before + total);
}

inline void launch_filter(const int* in, std::size_t n, int threshold, int* out, unsigned* count, Word* board,
                          cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear_board(board, tiles, stream);
    filter<<<tiles, kBlock, 0, stream>>>(in, n, threshold, out, count, board);
}

}  // namespace day24

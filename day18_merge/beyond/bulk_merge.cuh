// Day 18, beyond: one warp loads, the others merge. Needs compute capability 9.0. The kernel comes
// last, after the functions of its producer and its consumers.
//
//   version           what is new                                   what limits it
//   bulk_merge        a warp loads, others merge                    memory bandwidth
//   bulk_merge_pairs  the same, with a value for each key           memory bandwidth
#pragma once

#include <algorithm>

#include "beyond/co_rank_by_warp.cuh"
#include "beyond/split_tiles.cuh"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx_hopper.cuh"

namespace day18 {

namespace ptx = course::ptx;

constexpr unsigned kLine = 32;  // elements: 128 bytes

// Sizes for keys, and for pairs. One block fits on an SM.
template <bool kPairs>
struct BulkShape {
    static constexpr int kWarps = kPairs ? 16 : 24;  // that merge; one more loads
    static constexpr int kThreads = (kWarps + 1) * kWarpSize;
    // Elements per thread and tile. Odd: stores spread over all banks.
    static constexpr int kShare = kPairs ? 15 : 17;
    static constexpr unsigned kOfWarp = kWarpSize * kShare;
    static constexpr unsigned kTile = kWarps * kOfWarp;  // elements of the output
    // Of a stage: the parts of a and of b start and end within lines, which are copied whole, and b
    // continues for kShare + 1 elements.
    static constexpr unsigned kSlots = kTile + 5 * kLine;
    static constexpr unsigned kValueSlots = kPairs ? kSlots : 4;
};

constexpr unsigned kStages = 2;         // tiles in shared memory
constexpr unsigned kMostOwnRounds = 8;  // tiles of a block whose splits it finds itself

// The slots of a stage where a tile's parts of a and of b start, their sizes, and where the result
// starts in the output.
struct Parts {
    unsigned a, size_a;
    unsigned b, size_b;
    std::size_t place;
};

template <bool kPairs>
struct Stages {
    using Shape = BulkShape<kPairs>;
    alignas(128) Key keys[kStages][Shape::kSlots];
    alignas(128) Value values[kStages][Shape::kValueSlots];
    alignas(128) Key merged[Shape::kTile];
    alignas(128) Value merged_values[kPairs ? Shape::kTile : 4];
    Parts parts[kStages];
    ptx::MBarrier full[kStages];             // a phase ends when a tile has arrived
    ptx::MBarrier empty[kStages];            // a phase ends when all threads have merged a tile
    std::size_t splits[2 * kMostOwnRounds];  // of the first tiles: where each starts in a, and ends
};

// --- The producer: the warp that loads -----------------------------------------------------------

// Elements `begin` to `end` of an array, as they are copied. A bulk copy takes whole lines, so it
// starts some elements earlier and ends some later. If the array ends within a line, lanes copy the
// elements of that line one by one. Element `from` belongs in slot 0.
struct Piece {
    std::size_t from;   // where the bulk copy starts
    std::size_t whole;  // where it ends, or `from` if there is none
    std::size_t end;

    __device__ Piece(std::size_t begin, std::size_t end_, std::size_t size)
        : from(begin / kLine * kLine), end(end_) {
        whole = smaller((end + kLine - 1) / kLine * kLine, size / kLine * kLine);
        if (whole < from) whole = from;
    }
    __device__ bool ends_within_line() const { return end > whole; }
    __device__ unsigned bytes() const { return static_cast<unsigned>((whole - from) * sizeof(Key)); }
    __device__ void copy(const std::int32_t* array, std::int32_t* slots, ptx::MBarrier* full) const {
        const unsigned lane = threadIdx.x % kWarpSize;
        if (lane == 0 && bytes() > 0) ptx::bulk_load(slots, array + from, bytes(), full);
        if (whole + lane < end) slots[whole + lane - from] = array[whole + lane];
    }
};

// --- The consumers: the warps that merge ---------------------------------------------------------

// A thread merges its share of a tile from `keys` to merged[0] and up, and likewise the values.
// After the part of b there is a key that is not smaller than any in the tile, b's next one or the
// largest of all. So only the end of a needs a bounds check.
template <bool kPairs>
__device__ void merge_share_of(const Key* keys, const Value* values, const Parts& parts, unsigned first,
                               Key* merged, Value* merged_values) {
    const unsigned from_a_before =
        co_rank<unsigned>(first, keys + parts.a, parts.size_a, keys + parts.b, parts.size_b);
    unsigned at_a = parts.a + from_a_before;
    // Each merged element advances one of the two positions by one. So their sum is known, and the
    // position in b needs no register.
    const unsigned sum = parts.a + parts.b + first;
    const unsigned end_a = parts.a + parts.size_a;
    Key next_a = keys[at_a];
    Key next_b = keys[sum - at_a];
#pragma unroll
    for (int x = 0; x < BulkShape<kPairs>::kShare; ++x) {
        const bool from_a = at_a < end_a && next_a <= next_b;
        merged[x] = from_a ? next_a : next_b;
        if constexpr (kPairs) merged_values[x] = values[from_a ? at_a : sum + x - at_a];
        if (from_a) ++at_a;
        const Key next = keys[from_a ? at_a : sum + x + 1 - at_a];
        next_a = from_a ? next : next_a;
        next_b = from_a ? next_b : next;
    }
}

// The warp stores the merged elements by a bulk copy, which is in flight while the warp merges the
// next tile. A bulk copy takes multiples of 16 bytes; lanes store the rest.
__device__ inline void store_merged(const std::int32_t* merged, unsigned count, std::int32_t* out) {
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned whole = count / 4 * 4;
    if (lane == 0 && whole > 0) ptx::bulk_store(out, merged, whole * sizeof(std::int32_t));
    if (whole + lane < count) out[whole + lane] = merged[whole + lane];
}

// Idea: as many blocks as the GPU holds at once, and each merges one tile after the other. Warp
// specialisation: one producer warp issues bulk copies of exactly the lines that a tile needs. The
// consumer warps only merge. Each stages its results in shared memory that no other warp uses, and
// stores them by bulk copies.
// Cost removed: the barriers of the loop; copies that threads issue; indices modulo the ring's
// length.
// Still limits it: memory bandwidth (counters at 2^28: DRAM 84 % busy).
//
// The first own_rounds tiles of block b of G are b, b + G, b + 2 G and so on. Its warps find their
// splits. Later tiles are drawn, and their splits are those that split_tiles has found meanwhile: a
// programmatic dependent launch. If there are no later tiles, `splits` is null. All arrays are
// 16-byte aligned.
template <bool kPairs>
__global__ void __launch_bounds__(BulkShape<kPairs>::kThreads)
    bulk_merge(const Key* a, const Value* values_a, std::size_t m, const Key* b, const Value* values_b,
               std::size_t n, std::size_t tile_size, unsigned own_rounds, const std::size_t* splits,
               unsigned* ticket, Key* out, Value* values_out) {
    using Shape = BulkShape<kPairs>;
    extern __shared__ __align__(128) unsigned char memory[];
    Stages<kPairs>& stages = *reinterpret_cast<Stages<kPairs>*>(memory);
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned warp = threadIdx.x / kWarpSize;
    const std::size_t total = m + n;
    const auto begin_of = [&](std::size_t tile) { return smaller(tile * tile_size, total); };
    const auto tile_of_round = [&](unsigned round) { return std::size_t{round} * gridDim.x + blockIdx.x; };

    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < kStages; ++stage) {
            ptx::mbarrier_init(&stages.full[stage], kWarpSize);
            ptx::mbarrier_init(&stages.empty[stage], Shape::kWarps * kWarpSize);
        }
        ptx::fence_mbarrier_init();
    }
    static_assert(2 * kMostOwnRounds <= Shape::kWarps);
    if (warp < 2 * own_rounds) {
        const std::size_t found = co_rank_by_warp(begin_of(tile_of_round(warp / 2) + warp % 2), a, m, b, n);
        if (lane == 0) stages.splits[warp] = found;
    }
    __syncthreads();

    if (warp == Shape::kWarps) {
        for (unsigned round = 0;; ++round) {
            // 1. The tile, and where it starts and ends.
            std::size_t tile = tile_of_round(round);
            const bool is_drawn = splits != nullptr && round >= own_rounds;
            if (is_drawn) {
                if (round == own_rounds) cudaGridDependencySynchronize();  // split_tiles has ended
                unsigned drawn = 0;
                if (lane == 0) drawn = atomicAdd(ticket, 1U);
                tile = std::size_t{own_rounds} * gridDim.x + __shfl_sync(kWholeWarp, drawn, 0);
            }
            const std::size_t k = begin_of(tile);
            const std::size_t k_end = begin_of(tile + 1);
            std::size_t i = 0;
            std::size_t i_end = 0;
            if (k < total) {
                i = is_drawn ? splits[tile] : stages.splits[2 * round];
                i_end = is_drawn ? splits[tile + 1] : stages.splits[2 * round + 1];
            }
            const unsigned stage = round % kStages;
            ptx::MBarrier* const full = &stages.full[stage];
            if (round >= kStages) ptx::mbarrier_wait(&stages.empty[stage], (round / kStages - 1) % 2);
            if (k == total) {  // no tile is left: an empty one ends the consumers' loop
                if (lane == 0) stages.parts[stage] = {};
                ptx::mbarrier_arrive(full);
                return;
            }

            // 2. The copies.
            const std::size_t j = k - i;
            const std::size_t j_end = k_end - i_end;
            const Piece of_a(i, i_end, m);
            // Includes some elements after the part of b: the last thread may read beyond the
            // tile's end.
            const Piece of_b(j, smaller(j_end + Shape::kShare + 1, n), n);
            const auto slot_b = static_cast<unsigned>((i_end + kLine - 1) / kLine * kLine - of_a.from);
            if (lane == 0) {
                stages.parts[stage] = {static_cast<unsigned>(i - of_a.from), static_cast<unsigned>(i_end - i),
                                       slot_b + static_cast<unsigned>(j - of_b.from),
                                       static_cast<unsigned>(j_end - j), k};
            }
            // Threads read one key after the part of a, and more after that of b. Where neither a
            // copied line nor b has one, it becomes the largest key. No bulk copy writes there.
            if (lane == 0 && of_a.ends_within_line()) stages.keys[stage][i_end - of_a.from] = INT32_MAX;
            if (lane <= Shape::kShare && j_end + lane >= n) {
                stages.keys[stage][slot_b + (j_end + lane - of_b.from)] = INT32_MAX;
                if constexpr (kPairs) stages.values[stage][slot_b + (j_end + lane - of_b.from)] = 0;
            }
            of_a.copy(a, stages.keys[stage], full);
            of_b.copy(b, stages.keys[stage] + slot_b, full);
            if constexpr (kPairs) {
                of_a.copy(values_a, stages.values[stage], full);
                of_b.copy(values_b, stages.values[stage] + slot_b, full);
            }
            // Lanes have written to slots that the bulk copies of a later round overwrite. The
            // fence orders the two.
            if (of_a.ends_within_line() || of_b.ends_within_line() || j_end + Shape::kShare >= n)
                ptx::fence_proxy_async();
            // Every lane arrives, because every lane may have written.
            if (lane == 0) {
                ptx::mbarrier_arrive_expect(full, (of_a.bytes() + of_b.bytes()) * (kPairs ? 2 : 1));
            } else {
                ptx::mbarrier_arrive(full);
            }
        }
    }

    const unsigned warp_first = warp * Shape::kOfWarp;
    Key* const merged = stages.merged + warp_first;
    Value* const merged_values = stages.merged_values + (kPairs ? warp_first : 0);
    for (unsigned round = 0;; ++round) {
        const unsigned stage = round % kStages;
        ptx::mbarrier_wait(&stages.full[stage], round / kStages % 2);
        const Parts parts = stages.parts[stage];
        const unsigned size = parts.size_a + parts.size_b;
        if (size == 0) break;
        const unsigned count = warp_first < size ? smaller(size - warp_first, Shape::kOfWarp) : 0;
        // The bulk copies of the round before have read the slots that are now overwritten.
        if (lane == 0) ptx::tma_store_wait_read<0>();
        __syncwarp();
        if (count > 0) {
            const unsigned mine = lane * Shape::kShare;
            merge_share_of<kPairs>(stages.keys[stage], stages.values[stage], parts,
                                   smaller(warp_first + mine, size), merged + mine,
                                   merged_values + (kPairs ? mine : 0));
        }
        ptx::mbarrier_arrive(&stages.empty[stage]);
        // Makes the writes of all lanes visible to the bulk copies.
        ptx::fence_proxy_async();
        __syncwarp();
        const std::size_t place = parts.place + warp_first;
        store_merged(merged, count, out + place);
        if constexpr (kPairs) store_merged(merged_values, count, values_out + place);
        if (lane == 0) ptx::tma_store_commit();
    }
    // The block's shared memory is freed when the block ends, so bulk copies must have read it.
    if (lane == 0) ptx::tma_store_wait_read<0>();
}

// One block merges up to kOneTile elements, without searching for a split in global memory. Many
// blocks share more elements, but with tiles shorter than kShortestTile each has too little work.
constexpr std::size_t kOneTile = 4096;
constexpr std::size_t kShortestTile = 1536;
constexpr unsigned kOwnRounds = 4;  // they give split_tiles the time that it needs

// `splits` has room for an element for each tile of BulkShape::kTile, and one more.
template <bool kPairs>
void launch_bulk_merge(const Key* a, const Value* values_a, std::size_t m, const Key* b,
                       const Value* values_b, std::size_t n, std::size_t* splits, unsigned* ticket, Key* out,
                       Value* values_out, cudaStream_t stream) {
    using Shape = BulkShape<kPairs>;
    constexpr auto kKernel = bulk_merge<kPairs>;
    constexpr std::size_t kShared = sizeof(Stages<kPairs>);
    course::allow_shared_bytes(kKernel, kShared);
    const std::size_t total = m + n;
    const std::size_t resident = course::resident_blocks(kKernel, Shape::kThreads, kShared);
    const std::size_t blocks =
        total <= kOneTile ? 1 : std::min(resident, course::ceil_div(total, kShortestTile));
    const std::size_t rounds = course::ceil_div(total, blocks * Shape::kTile);
    const course::LaunchConfig config{.grid = static_cast<unsigned>(blocks),
                                      .block = Shape::kThreads,
                                      .shared_bytes = kShared,
                                      .stream = stream};
    if (rounds <= kMostOwnRounds) {
        // Tiles as short as this number of rounds allows, in whole lines.
        const std::size_t tile_size = course::ceil_div(total, blocks * rounds * kLine) * kLine;
        course::launch(kKernel, config, a, values_a, m, b, values_b, n, tile_size,
                       static_cast<unsigned>(rounds), nullptr, ticket, out, values_out);
    } else {
        launch_split_tiles(a, m, b, n, Shape::kTile, splits, ticket, stream);
        course::launch_early(kKernel, config, a, values_a, m, b, values_b, n, Shape::kTile, kOwnRounds,
                             splits, ticket, out, values_out);
    }
}

}  // namespace day18

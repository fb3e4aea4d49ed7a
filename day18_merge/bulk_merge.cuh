// Day 18, third part: one warp loads, the others merge. Needs compute capability 9.0.
#pragma once

#include "co_rank.cuh"
#include "common/device/ptx_hopper.cuh"

namespace day18 {

namespace ptx = course::ptx;

constexpr unsigned kLine = 32;   // elements of 128 bytes
constexpr unsigned kBatch = 16;  // tiles of a block whose splits are searched at once

// Sizes for keys, and for pairs. One block fits on an SM.
template <bool kPairs>
struct BulkShape {
    static constexpr int kWarps = kPairs ? 16 : 24;  // that merge; one more loads
    static constexpr int kThreads = (kWarps + 1) * kWarpSize;
    static constexpr int kShare = 15;  // elements per thread and tile; odd
    static constexpr unsigned kOfWarp = kWarpSize * kShare;
    static constexpr unsigned kTile = kWarps * kOfWarp;    // elements of the output
    static constexpr unsigned kStages = kPairs ? 2 : 3;    // tiles in shared memory
    static constexpr unsigned kSlots = kTile + 5 * kLine;  // of a stage: a tile, in whole lines
    static constexpr unsigned kValueSlots = kPairs ? kSlots : 4;
};

// Where a tile's part of a and its part of b are in a stage.
struct Parts {
    unsigned a, size_a;
    unsigned b, size_b;
};

template <bool kPairs>
struct Stages {
    using Shape = BulkShape<kPairs>;
    alignas(128) Key keys[Shape::kStages][Shape::kSlots];
    alignas(128) Value values[Shape::kStages][Shape::kValueSlots];
    alignas(128) Key merged[Shape::kTile];
    alignas(128) Value merged_values[kPairs ? Shape::kTile : 4];
    Parts parts[Shape::kStages];
    ptx::MBarrier full[Shape::kStages];   // a phase ends when a tile has arrived
    ptx::MBarrier empty[Shape::kStages];  // a phase ends when all warps have merged a tile
    std::size_t splits[2 * kBatch];       // of the first tiles: where they begin and end in a
};

// --- The warp that loads --------------------------------------------------------------------------

// A lane's search for a split, as in co_rank, one step for each tile that is loaded. A step asks
// for keys at three places, the next one decides where among them to go on. Meanwhile nobody waits
// for memory.
struct SplitSearch {
    std::size_t k = 0;
    std::size_t low = 0;
    std::size_t high = 0;
    Key keys_a[3] = {};
    Key keys_b[3] = {};

    __device__ bool is_done() const { return low >= high; }
    // The last elements of three quarters of what is left.
    __device__ std::size_t place(int quarter) const {
        const std::size_t step = (high - low + 3) / 4;
        return smaller(low + (quarter + 1) * step, high) - 1;
    }
    __device__ void ask(const Key* a, const Key* b) {
        if (is_done()) return;
#pragma unroll
        for (int quarter = 0; quarter < 3; ++quarter) {
            keys_a[quarter] = a[place(quarter)];
            keys_b[quarter] = b[k - 1 - place(quarter)];
        }
    }
    __device__ void decide() {
        if (is_done()) return;
        std::size_t new_low = low;
        std::size_t new_high = high;
#pragma unroll
        for (int quarter = 0; quarter < 3; ++quarter) {
            if (keys_a[quarter] <= keys_b[quarter]) {
                new_low = place(quarter) + 1;
            } else {
                new_high = smaller(new_high, place(quarter));
            }
        }
        low = new_low;
        high = new_high;
    }
};

// Elements `begin` to `end` of an array, as they are copied: a bulk copy takes whole lines. So it
// begins some elements earlier and ends some later. What the array has of its last line is copied
// one by one.
struct Piece {
    std::size_t from;   // where the bulk copy begins
    std::size_t whole;  // where it ends, or `from` if there is none
    std::size_t end;

    __device__ Piece(std::size_t begin, std::size_t end_, std::size_t size)
        : from(begin / kLine * kLine), end(end_) {
        whole = smaller((end + kLine - 1) / kLine * kLine, size / kLine * kLine);
        if (whole < from) whole = from;
    }
    __device__ unsigned bytes() const { return static_cast<unsigned>((whole - from) * sizeof(Key)); }
    __device__ void copy(const std::int32_t* array, std::int32_t* slots, ptx::MBarrier* full) const {
        const unsigned lane = threadIdx.x % kWarpSize;
        if (lane == 0 && bytes() > 0) ptx::bulk_load(slots, array + from, bytes(), full);
        if (whole + lane < end) slots[whole + lane - from] = array[whole + lane];
    }
};

// --- The warps that merge -------------------------------------------------------------------------

// A thread merges its share of a tile from `keys` to merged[0] and up, and what belongs to it from
// `values`. Behind the part of b stands a key that is not smaller than any in the tile.
template <bool kPairs>
__device__ void merge_share_of(const Key* keys, const Value* values, const Parts& parts, unsigned first,
                               Key* merged, Value* merged_values) {
    const unsigned from_a_before =
        co_rank<unsigned>(first, keys + parts.a, parts.size_a, keys + parts.b, parts.size_b);
    unsigned at_a = parts.a + from_a_before;
    // Each element merged moves one of the two places by one. So their sum is known.
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

// The warp stores what it has merged: `count` elements, 16 bytes at once. They are not needed again
// soon: __stcs leaves the L2 cache to the input.
__device__ inline void store_merged(const std::int32_t* merged, unsigned count, std::int32_t* out) {
    for (unsigned x = threadIdx.x % kWarpSize * 4; x < count; x += kWarpSize * 4) {
        if (x + 4 <= count) {
            __stcs(reinterpret_cast<uint4*>(out + x), *reinterpret_cast<const uint4*>(merged + x));
        } else {
            for (unsigned y = x; y < count; ++y)
                out[y] = merged[y];
        }
    }
}

// Idea: G blocks, as many as the GPU holds at once. In round r block b merges tile r G + b. The
// splits are found ahead, of 16 tiles at once, so bulk copies bring exactly what a tile needs. One
// warp does both. The other warps only merge, each at its own pace: what they have merged goes
// through shared memory that no other warp uses.
// Cost removed: the barriers of the loop; copies that threads issue; the remainders of rings.
// Still limits it: open. Long arrays take a fifth longer than a copy of as many bytes; the number
// of warps, of stages, and the length of a thread's share change little. Copies of lines of 128
// bytes took 3 to 5 % less time than those of 16.
//
// All arrays are 16-byte aligned.
template <bool kPairs>
__global__ void __launch_bounds__(BulkShape<kPairs>::kThreads)
    bulk_merge(const Key* a, const Value* values_a, std::size_t m, const Key* b, const Value* values_b,
               std::size_t n, Key* out, Value* values_out) {
    using Shape = BulkShape<kPairs>;
    extern __shared__ __align__(128) unsigned char memory[];
    Stages<kPairs>& stages = *reinterpret_cast<Stages<kPairs>*>(memory);
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned warp = threadIdx.x / kWarpSize;

    // As few rounds as possible, and tiles as short as that allows: whole lines.
    const std::size_t total = m + n;
    const std::size_t blocks = gridDim.x;
    const std::size_t rounds = (total + blocks * Shape::kTile - 1) / (blocks * Shape::kTile);
    const std::size_t tile_size = (total + blocks * rounds * kLine - 1) / (blocks * rounds * kLine) * kLine;
    const auto begin_of = [&](std::size_t round) {
        return smaller((round * blocks + blockIdx.x) * tile_size, total);
    };
    const auto end_of = [&](std::size_t round) { return smaller(begin_of(round) + tile_size, total); };

    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < Shape::kStages; ++stage) {
            ptx::mbarrier_init(&stages.full[stage], 1);
            ptx::mbarrier_init(&stages.empty[stage], Shape::kWarps);
        }
        ptx::fence_mbarrier_init();
    }
    // The splits of the first 16 tiles, by all warps: number 2 r is where tile r begins, the next
    // one where it ends. Later on lane l has split l.
    const auto place_of_split = [&](std::size_t round, unsigned split) {
        return split % 2 == 0 ? begin_of(round + split / 2) : end_of(round + split / 2);
    };
    for (unsigned split = warp; split < 2 * kBatch; split += Shape::kWarps + 1) {
        const std::size_t found = co_rank_by_warp(place_of_split(0, split), a, m, b, n);
        if (lane == 0) stages.splits[split] = found;
    }
    __syncthreads();

    if (warp == Shape::kWarps) {
        std::size_t splits = stages.splits[lane];  // of these 16 tiles
        SplitSearch search;                        // the splits of the next 16 tiles
        for (unsigned round = 0; begin_of(round) < total; ++round) {
            search.decide();
            if (round % kBatch == 0) {
                while (__any_sync(kWholeWarp, !search.is_done())) {
                    search.ask(a, b);
                    search.decide();
                }
                if (round > 0) splits = search.low;
                // A split moves by no more than the places in the output do.
                const std::size_t k = place_of_split(round, lane);
                search.k = place_of_split(round + kBatch, lane);
                search.low = search.k > n ? search.k - n : 0;
                if (search.low < splits) search.low = splits;
                search.high = smaller(smaller(search.k, m), splits + (search.k - k));
            }

            const std::size_t i = __shfl_sync(kWholeWarp, splits, round % kBatch * 2);
            const std::size_t i_end = __shfl_sync(kWholeWarp, splits, round % kBatch * 2 + 1);
            const std::size_t j = begin_of(round) - i;
            const std::size_t j_end = end_of(round) - i_end;
            const Piece of_a(i, i_end, m);
            // With what stands behind the part of b: the last thread may merge beyond the tile's
            // end.
            const Piece of_b(j, smaller(j_end + Shape::kShare + 1, n), n);
            const auto slot_b = static_cast<unsigned>((i_end + kLine - 1) / kLine * kLine - of_a.from);

            const unsigned stage = round % Shape::kStages;
            if (round >= Shape::kStages)
                ptx::mbarrier_wait(&stages.empty[stage], (round / Shape::kStages - 1) % 2);
            ptx::MBarrier* const full = &stages.full[stage];
            if (lane == 0) {
                stages.parts[stage] = {static_cast<unsigned>(i - of_a.from), static_cast<unsigned>(i_end - i),
                                       slot_b + static_cast<unsigned>(j - of_b.from),
                                       static_cast<unsigned>(j_end - j)};
            }
            // Behind the arrays' ends, no key is larger. No bulk copy writes there.
            if (lane == 0 && i_end == m && m % kLine != 0) stages.keys[stage][m - of_a.from] = INT32_MAX;
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
            // Later bulk copies may overwrite what lanes have written.
            if (i_end == m || j_end + Shape::kShare >= n) ptx::fence_proxy_async();
            __syncwarp();
            if (lane == 0)
                ptx::mbarrier_arrive_expect(full, (of_a.bytes() + of_b.bytes()) * (kPairs ? 2 : 1));
            search.ask(a, b);
        }
        return;
    }

    const unsigned warp_first = warp * Shape::kOfWarp;
    Key* const merged = stages.merged + warp_first;
    Value* const merged_values = stages.merged_values + (kPairs ? warp_first : 0);
    for (unsigned round = 0; begin_of(round) < total; ++round) {
        const unsigned stage = round % Shape::kStages;
        ptx::mbarrier_wait(&stages.full[stage], round / Shape::kStages % 2);
        const Parts parts = stages.parts[stage];
        const unsigned size = parts.size_a + parts.size_b;
        const unsigned count = warp_first < size ? smaller(size - warp_first, Shape::kOfWarp) : 0;
        if (count > 0) {
            const unsigned mine = lane * Shape::kShare;
            merge_share_of<kPairs>(stages.keys[stage], stages.values[stage], parts,
                                   smaller(warp_first + mine, size), merged + mine,
                                   merged_values + (kPairs ? mine : 0));
        }
        // One lane arrives for its warp: __syncwarp() orders what the others did before that.
        __syncwarp();
        if (lane == 0) ptx::mbarrier_arrive(&stages.empty[stage]);
        const std::size_t place = begin_of(round) + warp_first;
        store_merged(merged, count, out + place);
        if constexpr (kPairs) store_merged(merged_values, count, values_out + place);
        __syncwarp();
    }
}

}  // namespace day18

// Day 18, third part: one warp loads, the others merge. Needs compute capability 9.0.
#pragma once

#include "co_rank.cuh"
#include "common/device/ptx_hopper.cuh"

namespace day18 {

namespace ptx = course::ptx;

constexpr unsigned kLine = 32;                 // elements of 128 bytes
constexpr unsigned kBatch = 8;                 // tiles of a block whose splits are searched at once
constexpr unsigned kBatchSplits = 2 * kBatch;  // where each begins, and where it ends

// Sizes for keys, and for pairs. One block fits on an SM.
template <bool kPairs>
struct BulkShape {
    static constexpr int kWarps = 16;  // that merge; one more loads
    static constexpr int kThreads = (kWarps + 1) * kWarpSize;
    static constexpr int kShare = kPairs ? 15 : 23;  // elements per thread and tile; odd
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
    ptx::MBarrier empty[Shape::kStages];  // a phase ends when all threads have merged a tile
    std::size_t splits[kBatchSplits];     // of the first tiles: where they begin and end in a
};

// --- The producer: the warp that loads -----------------------------------------------------------

constexpr std::size_t kNear = 8192;  // elements: how far a split may be from where it is expected

// A lane's search for a split, as in co_rank, with one step per tile that is loaded. ask() issues
// the loads of keys at three places; decide(), called before the next tile is loaded, compares
// them. So the latency of these loads is hidden. They are scattered over memory, so the fewer steps
// the better: the first one tests whether the split is near the place where it is expected.
struct SplitSearch {
    std::size_t k = 0;
    std::size_t low = 0;
    std::size_t high = 0;
    std::size_t places[3] = {};
    Key keys_a[3] = {};
    Key keys_b[3] = {};

    __device__ bool is_done() const { return low >= high; }
    __device__ void begin(std::size_t rank, std::size_t from, std::size_t to, std::size_t expected) {
        k = rank;
        low = from;
        high = to;
        if (is_done()) return;
        const auto within = [&](std::size_t i) { return i < low ? low : smaller(i, high - 1); };
        places[0] = within(expected < kNear ? 0 : expected - kNear);
        places[1] = within(expected);
        places[2] = within(expected + kNear);
    }
    __device__ void ask(const Key* a, const Key* b) {
        if (is_done()) return;
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            keys_a[p] = a[places[p]];
            keys_b[p] = b[k - 1 - places[p]];
        }
    }
    // The next step compares at the ends of the first three quarters of what is left.
    __device__ void decide() {
        if (is_done()) return;
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            if (keys_a[p] <= keys_b[p]) {
                low = places[p] + 1;
            } else {
                high = smaller(high, places[p]);
            }
        }
        const std::size_t step = (high - low + 3) / 4;
#pragma unroll
        for (int p = 0; p < 3; ++p)
            places[p] = smaller(low + (p + 1) * step, high) - 1;
    }
};

// Elements `begin` to `end` of an array, as they are copied. A bulk copy takes whole lines, so it
// begins some elements earlier and ends some later. If the array ends within a line, lanes copy the
// elements of that line one by one.
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

// --- The consumers: the warps that merge ---------------------------------------------------------

// A thread merges its share of a tile from `keys` to merged[0] and up, and likewise the values.
// After the part of b there is a key that is not smaller than any in the tile.
template <bool kPairs>
__device__ void merge_share_of(const Key* keys, const Value* values, const Parts& parts, unsigned first,
                               Key* merged, Value* merged_values) {
    const unsigned from_a_before =
        co_rank<unsigned>(first, keys + parts.a, parts.size_a, keys + parts.b, parts.size_b);
    unsigned at_a = parts.a + from_a_before;
    // Each element merged advances one of the two places by one. So their sum is known.
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

// The warp stores what it has merged by a bulk copy, which is in flight while the warp merges the
// next tile. A bulk copy takes multiples of 16 bytes; lanes store what is left.
__device__ inline void store_merged(const std::int32_t* merged, unsigned count, std::int32_t* out) {
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned whole = count / 4 * 4;
    if (lane == 0 && whole > 0) ptx::bulk_store(out, merged, whole * sizeof(std::int32_t));
    if (whole + lane < count) out[whole + lane] = merged[whole + lane];
}

// Idea: G blocks, as many as the GPU holds at once. In round r block b merges tile r G + b. Warp
// specialisation: one producer warp finds the splits of 8 tiles at once, ahead of time, and issues
// bulk copies of exactly the lines that a tile needs. The consumer warps only merge. Each stages
// its results in shared memory that no other warp uses, and stores them by bulk copies.
// Cost removed: the barriers of the loop; copies that threads issue; indices modulo the length of a
// ring.
// Still limits it: memory bandwidth, for the most part. On an H200 2^28 random keys took 568 us, a
// copy of as many bytes 509. A trial without the merging was no faster, one without the searches 1
// % faster. Before the searches began near the expected place, and before results were stored by
// bulk copies, it took 599 us.
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
            ptx::mbarrier_init(&stages.full[stage], kWarpSize);
            ptx::mbarrier_init(&stages.empty[stage], Shape::kWarps * kWarpSize);
        }
        ptx::fence_mbarrier_init();
    }
    // The splits of the first 8 tiles, a warp for each: number 2 r is where tile r begins, the next
    // one where it ends. Later on lane l has split l.
    const auto place_of_split = [&](std::size_t round, unsigned split) {
        return split % 2 == 0 ? begin_of(round + split / 2) : end_of(round + split / 2);
    };
    static_assert(kBatchSplits <= Shape::kWarps);
    if (warp < kBatchSplits) {
        const std::size_t found = co_rank_by_warp(place_of_split(0, warp), a, m, b, n);
        if (lane == 0) stages.splits[warp] = found;
    }
    __syncthreads();

    if (warp == Shape::kWarps) {
        const bool has_split = lane < kBatchSplits;
        std::size_t splits = has_split ? stages.splits[lane] : 0;  // of these 8 tiles
        SplitSearch search;                                        // the splits of the next 8 tiles
        for (unsigned round = 0; begin_of(round) < total; ++round) {
            search.decide();
            if (round % kBatch == 0) {
                while (__any_sync(kWholeWarp, !search.is_done())) {
                    search.ask(a, b);
                    search.decide();
                }
                const std::size_t k = place_of_split(round, lane);
                const std::size_t next_k = place_of_split(round + kBatch, lane);
                // A split is expected to move on as far as it did last time; at first, by a's
                // share.
                std::size_t moved = static_cast<std::size_t>(
                    static_cast<double>(next_k - k) * static_cast<double>(m) / static_cast<double>(total));
                if (round > 0) {
                    moved = search.low - splits;
                    splits = search.low;
                }
                // It moves by no more than the places in the output do.
                const std::size_t from = next_k > n && next_k - n > splits ? next_k - n : splits;
                const std::size_t to = smaller(smaller(next_k, m), splits + (next_k - k));
                if (has_split) search.begin(next_k, from, to, splits + moved);
            }

            const std::size_t i = __shfl_sync(kWholeWarp, splits, round % kBatch * 2);
            const std::size_t i_end = __shfl_sync(kWholeWarp, splits, round % kBatch * 2 + 1);
            const std::size_t j = begin_of(round) - i;
            const std::size_t j_end = end_of(round) - i_end;
            const Piece of_a(i, i_end, m);
            // Includes some elements after the part of b: the last thread may read beyond the
            // tile's end.
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
            // After the arrays' ends: the largest key. No bulk copy writes there.
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
            // Each lane arrives for what it has written.
            if (lane == 0) {
                ptx::mbarrier_arrive_expect(full, (of_a.bytes() + of_b.bytes()) * (kPairs ? 2 : 1));
            } else {
                ptx::mbarrier_arrive(full);
            }
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
        // The bulk copies of the round before have read what is now overwritten.
        if (lane == 0) ptx::tma_store_wait_read<0>();
        __syncwarp();
        if (count > 0) {
            const unsigned mine = lane * Shape::kShare;
            merge_share_of<kPairs>(stages.keys[stage], stages.values[stage], parts,
                                   smaller(warp_first + mine, size), merged + mine,
                                   merged_values + (kPairs ? mine : 0));
        }
        ptx::mbarrier_arrive(&stages.empty[stage]);
        // Bulk copies read what all lanes have written.
        ptx::fence_proxy_async();
        __syncwarp();
        const std::size_t place = begin_of(round) + warp_first;
        store_merged(merged, count, out + place);
        if constexpr (kPairs) store_merged(merged_values, count, values_out + place);
        if (lane == 0) ptx::tma_store_commit();
    }
    // A block's shared memory goes when it ends.
    if (lane == 0) ptx::tma_store_wait_read<0>();
}

}  // namespace day18

// How a block sorts its tile by one digit of eight bits, shared by radix_8bit and onesweep. Read
// scatter_bytes in onesweep.cuh first, which calls these functions in order. stage_keys() ranks.
#pragma once

#include "beyond/key_code.hpp"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace day19 {

using course::kWarpSize;
using course::kWholeWarp;
using Count = unsigned long long;  // a number of keys

constexpr int kBins = 256;          // values of a digit
constexpr int kSweepBlock = kBins;  // threads: each also has a bin, that of its number
constexpr int kSweepWarps = kSweepBlock / kWarpSize;
constexpr int kCountsPerSum = 1024;  // of scan_counts() in sort.hpp
constexpr int kGroup = 4;            // keys of a thread whose digits are compared at the same time

// Keys of a thread: 40 of 32 bits, 24 of 64 bits.
template <class Bits>
constexpr int kSweepEach = sizeof(Bits) == 4 ? 40 : 24;
template <class Bits>
constexpr int kBytes = static_cast<int>(sizeof(Bits));  // digits of a key
template <class Bits>
constexpr int kSweepTile = kSweepBlock* kSweepEach<Bits>;

// The tile in shared memory. Pairs: each key has a value of 32 bits, which moves with it.
// (segments.cuh has a smaller one; the functions for both take any type of tile.)
template <class Bits, bool kPairs>
struct Tile {
    Bits keys[kSweepTile<Bits>];
    std::uint32_t values[kPairs ? kSweepTile<Bits> : 1];
    // Counted: keys of each digit that a warp has. Then: where its next one goes in the tile.
    unsigned counters[kSweepWarps][kBins];
    Count offsets[kBins];  // from a place in the sorted tile to the place in `out`
    Count sums_of_all[kSweepWarps];
    unsigned sums[kSweepWarps];
};

// Digit `pass` of the key, from the right: one of its bytes.
__device__ inline unsigned byte_of(std::uint32_t key, int pass) {
    return __byte_perm(key, 0, 0x4440 | pass);  // one instruction; byte 4 is a byte of the 0
}
__device__ inline unsigned byte_of(std::uint64_t key, int pass) {
    return static_cast<unsigned>(key >> (8 * pass)) & 0xff;
}

// Where key k of this thread is in the tile: a warp has consecutive keys, and adjacent lanes have
// adjacent ones, so loads are coalesced. A stable sort keeps keys with equal digits in this order.
template <class Bits>
__device__ unsigned place_of(int k) {
    const unsigned warp = threadIdx.x / kWarpSize;
    const unsigned lane = threadIdx.x % kWarpSize;
    return (warp * kSweepEach<Bits> + k) * kWarpSize + lane;
}

// Loads this thread's keys of a tile of `size`, and encodes them in the first pass. Missing keys
// get the largest code, so they stay after all others.
template <class Bits>
__device__ void load_keys(const Bits* in, unsigned size, const KeyCode<Bits>& code, bool encode,
                          Bits (&keys)[kSweepEach<Bits>]) {
    const Bits behind = encode ? code.decode(~Bits{0}) : ~Bits{0};
    const bool is_full = size == kSweepTile<Bits>;
#pragma unroll
    for (int k = 0; k < kSweepEach<Bits>; ++k)
        keys[k] = is_full || place_of<Bits>(k) < size ? in[place_of<Bits>(k)] : behind;
    if (!encode) return;
#pragma unroll
    for (int k = 0; k < kSweepEach<Bits>; ++k)
        keys[k] = code.encode(keys[k]);
}

// The exclusive scan of a value for each bin. All threads of the block call it; `sums` must not be
// in use.
template <class T>
__device__ T scan_bins(T value, T* sums) {
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    T sum = value;
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
        const T left = __shfl_up_sync(kWholeWarp, sum, distance);
        if (lane >= distance) sum += left;
    }
    if (lane == kWarpSize - 1) sums[warp] = sum;
    __syncthreads();
    T before = sum - value;
    for (int w = 0; w < kSweepWarps; ++w)
        if (w < warp) before += sums[w];
    return before;
}

template <class AnyTile>
__device__ void clear_counters(AnyTile& tile) {
#pragma unroll
    for (int warp = 0; warp < kSweepWarps; ++warp)
        tile.counters[warp][threadIdx.x] = 0;
}

// Counts the digits of each warp's keys: of the first `each` of a thread. The counters are 0
// before.
template <class Bits, int kEach, class AnyTile>
__device__ void count_bytes_of_warps(const Bits (&keys)[kEach], int pass, AnyTile& tile, int each = kEach) {
    unsigned* const counters = tile.counters[threadIdx.x / kWarpSize];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        if (k < each) atomicAdd(&counters[byte_of(keys[k], pass)], 1U);
}

// How many keys of digit threadIdx.x the tile has.
template <class AnyTile>
__device__ unsigned sum_of_warps(const AnyTile& tile) {
    unsigned sum = 0;
#pragma unroll
    for (int warp = 0; warp < kSweepWarps; ++warp)
        sum += tile.counters[warp][threadIdx.x];
    return sum;
}

// Where each warp's keys of digit threadIdx.x start in the sorted tile: the tile's start at
// `first`, after all smaller digits, and a warp's after those of the warps before it.
template <class AnyTile>
__device__ void place_warps(unsigned first, AnyTile& tile) {
#pragma unroll
    for (int warp = 0; warp < kSweepWarps; ++warp) {
        const unsigned count = tile.counters[warp][threadIdx.x];
        tile.counters[warp][threadIdx.x] = first;
        first += count;
    }
}

// Sorts this warp's keys to their places in the tile, stably. Lanes with the same digit take
// consecutive places, in the order of lanes, and the last of them advances the counter. Atomics are
// not used, because they would assign places in arbitrary order. `each` is a multiple of kGroup.
template <class Bits, int kEach, class AnyTile>
__device__ void stage_keys(const Bits (&keys)[kEach], int pass, AnyTile& tile, unsigned (&places)[kEach],
                           int each = kEach) {
    // Hides from the compiler that count_bytes_of_warps() computed the same digits, because if it
    // kept them until here, they would take a register each.
    pass = course::ptx::opaque(pass);
    unsigned* const next = tile.counters[threadIdx.x / kWarpSize];
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned lanes_before = (1U << lane) - 1;
    const unsigned lanes_behind = ~lanes_before << 1;
#pragma unroll
    for (int first = 0; first < kEach; first += kGroup) {
        if (first >= each) break;
        unsigned digits[kGroup];
        unsigned equal[kGroup];  // the lanes whose key has the same digit
#pragma unroll
        for (int g = 0; g < kGroup; ++g)
            digits[g] = byte_of(keys[first + g], pass);
        course::ptx::match_bytes(digits, equal);
#pragma unroll
        for (int g = 0; g < kGroup; ++g) {
            const unsigned place = next[digits[g]] + __popc(equal[g] & lanes_before);
            __syncwarp();  // all lanes have read the counter
            if ((equal[g] & lanes_behind) == 0) next[digits[g]] = place + 1;
            __syncwarp();  // and read it again for the next key
            tile.keys[place] = keys[first + g];
            places[first + g] = place;
        }
    }
}

// All keys of the tile have the same digit, so they stay in place.
template <class Bits, bool kPairs>
__device__ void keep_order(const Bits (&keys)[kSweepEach<Bits>], Tile<Bits, kPairs>& tile,
                           unsigned (&places)[kSweepEach<Bits>]) {
#pragma unroll
    for (int k = 0; k < kSweepEach<Bits>; ++k) {
        places[k] = place_of<Bits>(k);
        tile.keys[places[k]] = keys[k];
    }
}

// Issues copies of this thread's values to the places that their keys have in the unsorted tile.
template <class Bits, bool kPairs>
__device__ void begin_values(const std::uint32_t* values, unsigned size, Tile<Bits, kPairs>& tile) {
    const bool is_full = size == kSweepTile<Bits>;
#pragma unroll
    for (int k = 0; k < kSweepEach<Bits>; ++k) {
        const unsigned place = place_of<Bits>(k);
        if (is_full || place < size) {
            course::ptx::cp_async_4(&tile.values[place], values + place);
        } else {
            tile.values[place] = 0;
        }
    }
    course::ptx::cp_async_commit();
}

// The values follow their keys.
template <class Bits, bool kPairs>
__device__ void stage_values(const unsigned (&places)[kSweepEach<Bits>], Tile<Bits, kPairs>& tile) {
    course::ptx::cp_async_wait<0>();
    std::uint32_t mine[kSweepEach<Bits>];
#pragma unroll
    for (int k = 0; k < kSweepEach<Bits>; ++k)
        mine[k] = tile.values[place_of<Bits>(k)];
    __syncthreads();  // all threads have read theirs: safe to overwrite
#pragma unroll
    for (int k = 0; k < kSweepEach<Bits>; ++k)
        tile.values[places[k]] = mine[k];
}

// Stores the sorted tile: adjacent keys of one digit are adjacent in `out`, too.
template <bool kDecode, class Bits, bool kPairs>
__device__ void store_tile(const Tile<Bits, kPairs>& tile, unsigned size, int pass, const KeyCode<Bits>& code,
                           Bits* out, std::uint32_t* values_out) {
    const auto store = [&](unsigned i) {
        const Bits key = tile.keys[i];
        const Count place = tile.offsets[byte_of(key, pass)] + i;
        out[place] = kDecode ? code.decode(key) : key;
        if constexpr (kPairs) values_out[place] = tile.values[i];
    };
    if (size == kSweepTile<Bits>) {  // without a branch for each key, loads overlap
#pragma unroll
        for (int k = 0; k < kSweepEach<Bits>; ++k)
            store(threadIdx.x + k * kSweepBlock);
    } else {
        for (unsigned i = threadIdx.x; i < size; i += kSweepBlock)
            store(i);
    }
}

}  // namespace day19

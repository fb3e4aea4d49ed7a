// Keys, and how the k best of many are found: by a warp that shortens a list, and by a block for each row.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/warp.cuh"
#include "top_k.hpp"

namespace day48 {

// --- Keys ------------------------------------------------------------------------------------------------------------
//
// A value and its column as one number, so that the order is exact and no two are equal: the lower, the better. Of the largest values,
// `sign` = -1 makes the smallest.

using Key = std::uint64_t;
constexpr Key kNoKey = ~Key{0};  // behind all others

// Ascends as values do, NaN last.
__device__ inline unsigned rank_of(float value) {
    const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes 0
    // The bits of positive floats ascend as they do, those of negative ones descend: there all are flipped, here the sign.
    const unsigned ascending = bits ^ (static_cast<unsigned>(static_cast<int>(bits) >> 31) | 0x80000000);
    return isnan(value) ? 0xffffffff : ascending;
}

// Of 0, as of all ranks behind that of infinity: NaN.
__device__ inline float value_of_rank(unsigned rank) {
    return __uint_as_float(rank >> 31 == 1 ? rank & 0x7fffffff : ~rank);
}

__device__ inline Key key_of(float value, unsigned col) {
    return Key{rank_of(value)} << 32 | col;
}

__device__ inline unsigned rank_of(Key key) {
    return static_cast<unsigned>(key >> 32);
}

__device__ inline float value_of(Key key) {
    return value_of_rank(rank_of(key));
}

__device__ inline unsigned col_of(Key key) {
    return static_cast<unsigned>(key);
}

// --- What a warp does with a list of keys, in no order, all of them different ----------------------------------------

// A key that `least` to `most` of them are not behind, of more than `most`. Which does not matter: half of what is left is tried, and all
// are counted, until one will do. `each` calls a function with each of the lane's keys.
template <class Each>
__device__ Key find_bound(const Each& each, unsigned least, unsigned most) {
    Key first = kNoKey;
    Key last = 0;
    each([&](Key key) {
        first = min(first, key);
        last = max(last, key);
    });
    // Fewer than `least` are not behind `low`, more than `most` are not behind `high`.
    Key low = course::warp_reduce(first, [](Key a, Key b) { return min(a, b); }) - 1;
    Key high = course::warp_reduce(last, [](Key a, Key b) { return max(a, b); });
    for (;;) {
        const Key middle = low + (high - low) / 2;
        unsigned not_behind = 0;
        each([&](Key key) { not_behind += key <= middle ? 1 : 0; });
        not_behind = course::warp_reduce(not_behind, [](unsigned a, unsigned b) { return a + b; });
        if (not_behind < least) {
            low = middle;
        } else if (not_behind > most) {
            high = middle;
        } else {
            return middle;
        }
    }
}

// The same of a list of `count` keys.
__device__ inline Key find_bound(const Key* list, unsigned count, unsigned least, unsigned most) {
    return find_bound(
        [&](auto work) {
#pragma unroll 4
            for (unsigned i = threadIdx.x % course::kWarpSize; i < count; i += course::kWarpSize)
                work(list[i]);
        },
        least, most);
}

// A list of which a lane has at most MOST_OF_LANE keys is read only once, and then in registers.
template <unsigned MOST_OF_LANE>
__device__ Key find_bound_in_registers(const Key* list, unsigned count, unsigned least, unsigned most) {
    if (count > MOST_OF_LANE * course::kWarpSize) return find_bound(list, count, least, most);
    Key keys[MOST_OF_LANE];
#pragma unroll
    for (unsigned j = 0; j < MOST_OF_LANE; ++j) {
        const unsigned i = j * course::kWarpSize + threadIdx.x % course::kWarpSize;
        keys[j] = i < count ? list[i] : kNoKey;
    }
    return find_bound(
        [&](auto work) {
#pragma unroll
            for (const Key key : keys) {
                if (key != kNoKey) work(key);
            }
        },
        least, most);
}

// Copies those that are not behind `bound`, and says how many they are. `to` may be the list itself.
__device__ inline unsigned copy_up_to(Key bound, const Key* list, unsigned count, Key* to) {
    constexpr unsigned AT_ONCE = 4;
    const unsigned lane = threadIdx.x % course::kWarpSize;
    unsigned copied = 0;
    for (unsigned begin = 0; begin < count; begin += AT_ONCE * course::kWarpSize) {
        Key keys[AT_ONCE];
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j) {
            const unsigned i = begin + j * course::kWarpSize + lane;
            keys[j] = i < count ? list[i] : kNoKey;
        }
        __syncwarp();  // all have read what is written now
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j) {
            const bool is_copied = keys[j] <= bound && keys[j] != kNoKey;
            const unsigned copying = __ballot_sync(course::kWholeWarp, is_copied);
            if (is_copied) to[copied + __popc(copying & ((1u << lane) - 1))] = keys[j];
            copied += __popc(copying);
        }
    }
    __syncwarp();  // all see the copies
    return copied;
}

// --- What a block does with the keys of a row ------------------------------------------------------------------------

constexpr int kSelectThreads = 256;

// A bitonic sort: sequences of `width` that ascend and descend by turns are made into such of twice the width. The block shares the
// `count` keys, which are a power of two.
__device__ inline void sort(Key* keys, unsigned count) {
    for (unsigned width = 2; width <= count; width *= 2) {
        for (unsigned distance = width / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < count / 2; i += kSelectThreads) {
                const unsigned a = i / distance * distance * 2 + i % distance;
                const unsigned b = a + distance;
                if ((keys[a] > keys[b]) == ((a & width) == 0)) {
                    const Key key = keys[a];
                    keys[a] = keys[b];
                    keys[b] = key;
                }
            }
        }
    }
    __syncthreads();
}

// Idea: a block for each row lists, in shared memory, what is better than the k-th best so far; at the end it sorts them.
// Cost removed: sorting the whole row, or reading it more than once.
// Still limits it: memory, where rows are long; otherwise the warp that shortens the list alone.
template <class Rows>
__global__ __launch_bounds__(kSelectThreads) void select_best(const __grid_constant__ Rows rows, unsigned k,
                                                              float sign, float* values,
                                                              std::uint32_t* indices) {
    constexpr unsigned EACH = 4;                      // keys that a thread looks at at a time
    constexpr unsigned STEP = EACH * kSelectThreads;  // and the block
    constexpr unsigned ROOM = 2 * kMostBest + 2 * STEP;
    static_assert(kMostBest + kMostBest / 8 <= ROOM - STEP, "select_best: a shortened list is not full");
    __shared__ Key list[ROOM];
    __shared__ unsigned listed;
    __shared__ Key bound;
    const bool is_first_warp = threadIdx.x < course::kWarpSize;
    const auto row = rows[blockIdx.x];
    if (threadIdx.x == 0) {
        listed = 0;
        bound = kNoKey;
    }
    __syncthreads();
    for (std::size_t begin = 0; begin < row.count; begin += STEP) {
        bool is_full = false;
#pragma unroll
        for (unsigned j = 0; j < EACH; ++j) {
            const std::size_t i = begin + j * kSelectThreads + threadIdx.x;
            const Key key = i < row.count ? row[i] : kNoKey;
            if (key >= bound) continue;
            const unsigned place = atomicAdd(&listed, 1u);
            list[place] = key;
            is_full |= place >= ROOM - STEP;
        }
        if (!__syncthreads_or(is_full)) continue;
        if (is_first_warp) {
            const unsigned count = listed;
            const Key better = find_bound(list, count, k, k + k / 8);
            const unsigned kept = copy_up_to(better, list, count, list);
            if (threadIdx.x == 0) {
                listed = kept;
                bound = better;
            }
        }
        __syncthreads();
    }
    unsigned sorted = 1;
    while (sorted < k)
        sorted *= 2;
    if (is_first_warp) {
        const unsigned count = listed;
        unsigned kept = count;
        if (count > k) kept = copy_up_to(find_bound(list, count, k, k), list, count, list);
        for (unsigned i = kept + threadIdx.x; i < sorted; i += course::kWarpSize)
            list[i] = kNoKey;
    }
    sort(list, sorted);
    for (unsigned i = threadIdx.x; i < k; i += kSelectThreads) {
        values[std::size_t{blockIdx.x} * k + i] = sign * value_of(list[i]) + 0.0f;  // no -0
        indices[std::size_t{blockIdx.x} * k + i] = col_of(list[i]);
    }
}

}  // namespace day48

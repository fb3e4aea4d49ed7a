// How a warp shortens a list of distinct keys in any order: it searches for a threshold, and copies
// the keys that do not exceed it.
#pragma once

#include <cuda_runtime.h>

#include "common/device/warp.cuh"
#include "keys.cuh"

namespace day48 {

// Returns a threshold that between `least` and `most` keys do not exceed. There must be more than
// `most` keys. Because any such threshold is right, a binary search halves an interval and counts,
// until the count is in that range. `each` calls a function with each of the lane's keys.
template <class Each>
__device__ Key find_bound(const Each& each, unsigned least, unsigned most) {
    Key first = kNoKey;
    Key last = 0;
    each([&](Key key) {
        first = min(first, key);
        last = max(last, key);
    });
    // Invariant: fewer than `least` keys are up to `low`, more than `most` are up to `high`.
    Key low = course::warp_reduce(first, [](Key a, Key b) { return min(a, b); }) - 1;
    Key high = course::warp_reduce(last, [](Key a, Key b) { return max(a, b); });
    for (;;) {
        const Key middle = low + (high - low) / 2;
        unsigned up_to = 0;
        each([&](Key key) { up_to += key <= middle ? 1 : 0; });
        up_to = course::warp_reduce(up_to, [](unsigned a, unsigned b) { return a + b; });
        if (up_to < least) {
            low = middle;
        } else if (up_to > most) {
            high = middle;
        } else {
            return middle;
        }
    }
}

// The same for a list of `count` keys in memory.
__device__ inline Key find_bound(const Key* list, unsigned count, unsigned least, unsigned most) {
    return find_bound(
        [&](auto work) {
#pragma unroll 4
            for (unsigned i = threadIdx.x % course::kWarpSize; i < count; i += course::kWarpSize)
                work(list[i]);
        },
        least, most);
}

// The same; a list of at most MOST_OF_LANE keys per lane is loaded once, into registers.
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

// Copies the keys up to `bound` and returns their number. `to` may be the list itself.
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
        __syncwarp();  // all lanes have loaded the keys that are overwritten now
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j) {
            const bool is_copied = keys[j] <= bound && keys[j] != kNoKey;
            const unsigned copying = __ballot_sync(course::kWholeWarp, is_copied);
            if (is_copied) to[copied + __popc(copying & ((1u << lane) - 1))] = keys[j];
            copied += __popc(copying);
        }
    }
    __syncwarp();  // all lanes see the copies
    return copied;
}

}  // namespace day48

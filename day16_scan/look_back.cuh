// How the blocks of one launch exchange sums, and the look-back.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

#include "block_scan.cuh"

namespace day16 {

// Shared by the blocks of a launch. A block may start at any time, in any order, so it does not
// take the tile of its own number but draws the next one: then all tiles before have been drawn by
// blocks that run.
struct Progress {
    unsigned next_tile;
    unsigned blocks_done;
    unsigned launch;  // number of this launch, from 1 on: words of earlier launches do not count
    unsigned words;   // how many the workspace has
};

__device__ inline unsigned draw_tile(Progress* progress) {
    return atomicAdd(&progress->next_tile, 1);
}

// A tile's word: a value, and what it is the sum of. 64 bits are loaded and stored whole, so the
// value needs no fence before its state.
enum State : unsigned {
    kSum = 1,    // of the tile
    kPrefix = 2  // of the tile and all before it
};
using Word = unsigned long long;

// Thread 0 of each block calls it at the end. The last block prepares the next launch. The number
// of the launch has 30 bits in a word: when it starts again, the words are cleared.
__device__ inline void finish(Progress* progress, volatile Word* words) {
    __threadfence();  // release
    if (atomicAdd(&progress->blocks_done, 1) < gridDim.x - 1) return;
    __threadfence();  // acquire: what the other blocks did comes before what follows
    progress->next_tile = 0;
    progress->blocks_done = 0;
    if ((++progress->launch & 0x3fffffff) == 0) {
        ++progress->launch;
        for (unsigned i = 0; i < progress->words; ++i)
            words[i] = 0;
    }
}

template <class T>
__device__ Word make_word(unsigned launch, State state, T value) {
    static_assert(sizeof(T) == 4);
    unsigned bits;
    memcpy(&bits, &value, sizeof(bits));
    return static_cast<Word>(launch << 2 | state) << 32 | bits;
}

// 0 as long as this launch has not written the word.
__device__ inline unsigned state_of(Word word, unsigned launch) {
    const auto high = static_cast<unsigned>(word >> 32);
    return high >> 2 == (launch & 0x3fffffff) ? high & 3 : 0;
}

template <class T>
__device__ T value_of(Word word) {
    const auto bits = static_cast<unsigned>(word);
    T value;
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

// The sum of all tiles before `number`, by one warp; all its lanes get it. Each lane looks at one
// tile, the nearest first. Sums are added up to the nearest prefix; without one the warp goes on 32
// tiles further left. D. Merrill and M. Garland, "Single-pass parallel prefix scan with decoupled
// look-back", NVIDIA, 2016.
template <class T>
__device__ T look_back(const volatile Word* words, unsigned number, unsigned launch) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    T sum = 0;
    for (long long nearest = static_cast<long long>(number) - 1;; nearest -= kWarpSize) {
        const long long mine = nearest - lane;
        Word word = make_word(launch, kPrefix, T{0});  // before the first tile
        do {
            if (mine >= 0) word = words[mine];
        } while (__any_sync(kWholeWarp, state_of(word, launch) == 0));
        const unsigned prefixes = __ballot_sync(kWholeWarp, state_of(word, launch) == kPrefix);
        const int last = prefixes != 0 ? __ffs(static_cast<int>(prefixes)) - 1 : kWarpSize - 1;
        T part = lane <= last ? value_of<T>(word) : T{0};
        for (int stride = kWarpSize / 2; stride > 0; stride /= 2)
            part += __shfl_xor_sync(kWholeWarp, part, stride);
        sum += part;
        if (prefixes != 0) return sum;
    }
}

// Publishes the sum of the tile, finds what comes before it, publishes that, too. The first warp
// calls it.
template <class T>
__device__ T publish_and_look_back(volatile Word* words, unsigned number, unsigned launch, T total) {
    if (threadIdx.x == 0) words[number] = make_word(launch, number == 0 ? kPrefix : kSum, total);
    const T before = number == 0 ? T{0} : look_back<T>(words, number, launch);
    if (threadIdx.x == 0 && number > 0) words[number] = make_word(launch, kPrefix, before + total);
    return before;
}

}  // namespace day16

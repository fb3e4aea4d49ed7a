// How the blocks of one launch exchange sums, and the look-back.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

#include "common/device/relaxed.cuh"
#include "tiles.cuh"

namespace day16 {

using course::load_relaxed;
using course::store_relaxed;

// A tile's word: a value, and what it is the sum of. 64 bits are loaded and stored whole, so no
// fence is needed between the value and its state. The word also holds the number of the launch, so
// that words of earlier launches are ignored and need not be cleared.
enum State : unsigned {
    kSum = 1,    // of the tile
    kPrefix = 2  // of the tile and all before it
};
using Word = unsigned long long;
constexpr unsigned kLaunches = 1U << 30;  // what fits into a word with the state; then numbers repeat

template <class T>
__device__ Word make_word(unsigned launch, State state, T value) {
    static_assert(sizeof(T) == 4);
    unsigned bits;
    memcpy(&bits, &value, sizeof(bits));
    return static_cast<Word>(launch << 2 | state) << 32 | bits;
}

// 0 until this launch has written the word.
__device__ inline unsigned state_of(Word word, unsigned launch) {
    const auto high = static_cast<unsigned>(word >> 32);
    return high >> 2 == launch ? high & 3 : 0;
}

template <class T>
__device__ T value_of(Word word) {
    const auto bits = static_cast<unsigned>(word);
    T value;
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

// The data that the blocks of a launch share. It is kept for the next launch with the same
// workspace.
struct Board {
    unsigned long long* ticket;  // upper half: the number of the launch; lower half: draws so far
    Word* words;                 // one for each tile
    std::size_t capacity;        // how many words there are
};

struct Draw {
    unsigned number;
    unsigned launch;
};

// One thread of each block draws a number: 0, 1, 2, ... Blocks start in any order. If each takes
// the tile that it has drawn, all earlier tiles belong to blocks that have started. The last draw
// prepares the next launch.
//
// The numbers of launches repeat after kLaunches, and no word with the same number may remain from
// before. So the last two launches of a cycle clear all words that they do not write, those beyond
// their `tiles`. The last one thereby removes the words of all other numbers, and the one before it
// those of the last.
__device__ inline Draw draw(const Board& board, std::size_t tiles) {
    const unsigned long long ticket = atomicAdd(board.ticket, 1);
    const auto number = static_cast<unsigned>(ticket);
    const auto launch = static_cast<unsigned>(ticket >> 32);
    if (number == gridDim.x - 1) {
        const unsigned next = (launch + 1) % kLaunches;
        store_relaxed(board.ticket, static_cast<unsigned long long>(next) << 32);
        for (std::size_t i = tiles; launch >= kLaunches - 2 && i < board.capacity; ++i)
            store_relaxed(&board.words[i], Word{0});
    }
    return {number, launch};
}

// The sum of all tiles before `number`, computed by one warp; all its lanes get it. Lane l reads
// the word of tile number - 1 - l. Sums are added up to the nearest prefix; without one the warp
// goes on 32 tiles further left. D. Merrill and M. Garland, "Single-pass parallel prefix scan with
// decoupled look-back", NVIDIA, 2016.
template <class T>
__device__ T look_back(const Word* words, unsigned number, unsigned launch) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    T sum = 0;
    for (long long nearest = static_cast<long long>(number) - 1;; nearest -= kWarpSize) {
        const long long mine = nearest - lane;
        Word word = make_word(launch, kPrefix, T{0});  // before the first tile
        do {
            if (mine >= 0) word = load_relaxed(&words[mine]);
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

// Publishes the sum of the tile, looks back, and publishes the prefix. Returns the sum of all tiles
// before. The first warp calls it.
template <class T>
__device__ T publish_and_look_back(Word* words, unsigned number, unsigned launch, T total) {
    if (threadIdx.x == 0)
        store_relaxed(&words[number], make_word(launch, number == 0 ? kPrefix : kSum, total));
    const T before = number == 0 ? T{0} : look_back<T>(words, number, launch);
    if (threadIdx.x == 0 && number > 0)
        store_relaxed(&words[number], make_word(launch, kPrefix, before + total));
    return before;
}

}  // namespace day16

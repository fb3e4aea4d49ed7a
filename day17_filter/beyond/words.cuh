// The words by which the blocks of a launch exchange counts, and the ticket by which a block draws
// its tile.
#pragma once

#include <cuda_runtime.h>

#include "common/device/relaxed.cuh"

namespace day17 {

using course::load_relaxed;
using course::store_relaxed;

using Count = unsigned long long;  // a number of elements

// A block publishes a word for its tile: the number of the launch, so that words of earlier
// launches are ignored; a state; and the number of elements kept, of the tile alone or of all tiles
// up to it. 64 bits are loaded and stored by one instruction, so no fence is needed between count
// and state.
using Word = unsigned long long;
enum State : unsigned {
    kEmpty = 0,
    kSum = 1,    // of the tile
    kPrefix = 2  // of the tile and all before it
};
constexpr int kCountBits = 39;
constexpr int kStateBits = 2;
constexpr unsigned kLaunches = 1U << (64 - kCountBits - kStateBits);

__device__ inline Word make_word(unsigned launch, State state, Count count) {
    return (Word{launch} << kStateBits | state) << kCountBits | count;
}

__device__ inline State state_of(Word word, unsigned launch) {
    if (word >> (kCountBits + kStateBits) != launch) return kEmpty;
    return static_cast<State>(word >> kCountBits & ((1U << kStateBits) - 1));
}

__device__ inline Count count_of(Word word) {
    return word & ((Word{1} << kCountBits) - 1);
}

struct Progress {
    unsigned long long ticket;       // the number of the launch, from 1 on, and the next tile
    unsigned long long blocks_done;  // counted only in the last launch before numbers repeat
    unsigned long long words;        // how many the workspace has
};

struct Ticket {
    unsigned launch;
    unsigned tile;
};

// Blocks start in any order, and a block may only wait for blocks that have started. So a block
// does not take tile blockIdx.x but draws the next one. The block that draws the last tile prepares
// the next launch.
__device__ inline Ticket draw_ticket(Progress* progress) {
    const unsigned long long drawn = atomicAdd(&progress->ticket, 1ULL);
    const Ticket ticket{static_cast<unsigned>(drawn >> 32), static_cast<unsigned>(drawn)};
    if (ticket.tile == gridDim.x - 1) {
        const unsigned next = ticket.launch + 1 < kLaunches ? ticket.launch + 1 : 1;
        store_relaxed(&progress->ticket, static_cast<unsigned long long>(next) << 32);
    }
    return ticket;
}

// Before the numbers of launches repeat, the last block of the last launch clears all words. Thread
// 0 of each block calls it at the end.
__device__ inline void finish(Progress* progress, Word* words, unsigned launch) {
    if (launch != kLaunches - 1) return;
    __threadfence();  // release
    if (atomicAdd(&progress->blocks_done, 1ULL) < gridDim.x - 1) return;
    __threadfence();  // acquire: all other blocks have finished with the words
    progress->blocks_done = 0;
    for (unsigned long long i = 0; i < progress->words; ++i)
        words[i] = 0;
}

}  // namespace day17

// Day 23: what a thread sees of what other threads write, and when.
//
//   version               what is new                                    what limits it
//   lock_with_fences      one block at a time: a lock, two fences         atomics on one word
//   acquire_release       the order is part of the lock's own accesses    atomics on one word
//   ticket_lock           blocks wait in a queue, and only load           latency: block after block
//   publication           no lock: a record and a flag for each block     integer instructions
//   last_block            no block waits: the last one adds up            integer instructions
//   sequence_lock         a record that is read while it is rewritten     not profiled
//
// The problem: one record of n ints (record.hpp): how many, their sum, the smallest, and where it
// is. 32 bytes are more than an atomic instruction changes. Each block makes the record of a tile
// (tile.cuh). How do the records of all blocks become one, in one launch?
//
//   ./course run day23                                  every version, verified and timed
//   ./course run day23 --program                        program.cu: from main() to the result
//   ./course inspect day23 --only acquire_release       races between blocks, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cuda/atomic>

#include "common/device/grid.hpp"
#include "record.hpp"
#include "tile.cuh"

namespace day23 {

// A word that all threads of the device may access at the same time. `Atomic(word).load(...)` and
// `.store(...)` access the word in memory, whole, never a copy in a register. The argument says
// what else is ordered; nothing else is with memory_order_relaxed.
using Atomic = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using cuda::memory_order_acq_rel;
using cuda::memory_order_acquire;
using cuda::memory_order_relaxed;
using cuda::memory_order_release;

// The words that the blocks of a launch share, and a flag for each tile after them.
struct Board {
    unsigned lock;    // 1: a block holds it
    unsigned ticket;  // the next one to be drawn
    unsigned turn;    // the ticket whose block may enter
    unsigned unused;
    unsigned flags[1];  // one for each tile: 1 when its record is published
};

// Before each launch: the lock is free, no ticket is drawn, nothing is published. The total is the
// record of no elements.
inline void clear(Record* total, Board* board, unsigned tiles, cudaStream_t stream) {
    cudaMemsetAsync(total, 0, sizeof(Record), stream);
    cudaMemsetAsync(board, 0, sizeof(Board) + tiles * sizeof(unsigned), stream);
}

// --- Locks ---------------------------------------------------------------------------------------

// Idea: a lock. The thread whose exchange returns 0 has taken it, and may change the total, which
// no other thread accesses until it gives the lock back.
// Cost removed: none, this is the first version.
// Still limits it: atomics on one word (counters: its slice of L2 is 80 % busy). One block at a
// time changes the total, and each that waits keeps exchanging the word.
//
// The exchange itself orders nothing: without the fences, the total may be loaded before the lock
// is taken, or stored after it is free again.
__global__ void __launch_bounds__(kBlock)
    lock_with_fences(const int* in, std::size_t n, Record* total, Board* board) {
    const Record mine = record_of_tile(in, n, blockIdx.x);
    if (threadIdx.x != 0) return;

    while (Atomic(board->lock).exchange(1, memory_order_relaxed) != 0) {
    }
    __threadfence();  // acquire: what the last holder stored is visible
    *total = combined(*total, mine);
    __threadfence();  // release: the total is visible before the lock is free
    Atomic(board->lock).store(0, memory_order_relaxed);
}

inline void launch_lock_with_fences(const int* in, std::size_t n, Record* total, Board* board,
                                    cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear(total, board, tiles, stream);
    lock_with_fences<<<tiles, kBlock, 0, stream>>>(in, n, total, board);
}

// Idea: an order of its own for each access. The exchange *acquires*: what follows it in the
// program cannot be seen before it. The store *releases*: what stands before it is visible to the
// thread that acquires what it stored.
// Cost removed: the two fences, each of which orders everything before it with everything after it.
// Still limits it: atomics on one word, as before (80 %). Blocks that wait still exchange it.
__global__ void __launch_bounds__(kBlock)
    acquire_release(const int* in, std::size_t n, Record* total, Board* board) {
    const Record mine = record_of_tile(in, n, blockIdx.x);
    if (threadIdx.x != 0) return;

    while (Atomic(board->lock).exchange(1, memory_order_acquire) != 0) {
    }
    *total = combined(*total, mine);
    Atomic(board->lock).store(0, memory_order_release);
}

inline void launch_acquire_release(const int* in, std::size_t n, Record* total, Board* board,
                                   cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear(total, board, tiles, stream);
    acquire_release<<<tiles, kBlock, 0, stream>>>(in, n, total, board);
}

// Idea: a ticket lock. A block draws a number and waits until it is its turn. It only loads the
// turn, and blocks enter in the order of their tickets.
// Cost removed: the exchanges of blocks that wait, each of which changes the word.
// Still limits it: latency (stalls: 94 % wait for a load). Still one block at a time: from the
// release of a turn to the load that sees it.
//
// Drawing a ticket orders nothing: the total is guarded by `turn`.
__global__ void __launch_bounds__(kBlock)
    ticket_lock(const int* in, std::size_t n, Record* total, Board* board) {
    const Record mine = record_of_tile(in, n, blockIdx.x);
    if (threadIdx.x != 0) return;

    const unsigned ticket = Atomic(board->ticket).fetch_add(1, memory_order_relaxed);
    while (Atomic(board->turn).load(memory_order_acquire) != ticket) {
    }
    *total = combined(*total, mine);
    Atomic(board->turn).store(ticket + 1, memory_order_release);
}

inline void launch_ticket_lock(const int* in, std::size_t n, Record* total, Board* board,
                               cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear(total, board, tiles, stream);
    ticket_lock<<<tiles, kBlock, 0, stream>>>(in, n, total, board);
}

// --- Messages ------------------------------------------------------------------------------------

// Idea: publication. Each block stores its record in a place of its own and then raises a flag. The
// block that has started last waits for all flags and adds up.
// Cost removed: the lock. Blocks store their records at the same time, and end.
// Still limits it: integer instructions of the tiles' records (ALU 65 % busy). One block waits for
// all others.
//
// The tickets are drawn at the start: when the last one is drawn, all other blocks have started, so
// that its block may wait for them. Each thread acquires the flags of the records that it
// reads.
__global__ void __launch_bounds__(kBlock)
    publication(const int* in, std::size_t n, Record* total, Board* board, Record* records) {
    __shared__ unsigned tile;
    if (threadIdx.x == 0) tile = Atomic(board->ticket).fetch_add(1, memory_order_relaxed);
    __syncthreads();
    const Record mine = record_of_tile(in, n, tile);
    if (threadIdx.x == 0) {
        records[tile] = mine;
        Atomic(board->flags[tile]).store(1, memory_order_release);
    }
    if (tile != gridDim.x - 1) return;

    Record sum{};
    for (unsigned k = threadIdx.x; k < gridDim.x; k += kBlock) {
        while (Atomic(board->flags[k]).load(memory_order_acquire) == 0) {
        }
        sum = combined(sum, records[k]);
    }
    __syncthreads();  // record_of_block is called a second time
    sum = record_of_block(sum);
    if (threadIdx.x == 0) *total = sum;
}

// `records` has an element for each tile.
inline void launch_publication(const int* in, std::size_t n, Record* total, Board* board, Record* records,
                               cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear(total, board, tiles, stream);
    publication<<<tiles, kBlock, 0, stream>>>(in, n, total, board, records);
}

// Idea: a ticket at the end, as in day 15's single pass. When the last one is drawn,
// all records are stored, because each block drew its ticket after it had stored its own.
// Cost removed: waiting, and the flags. No block waits for another one.
// Still limits it: integer instructions (ALU 62 % busy).
//
// One access does both: it releases the block's own record, and acquires all records whose tickets
// were drawn before. The barrier passes on what thread 0 has acquired to the other threads.
__global__ void __launch_bounds__(kBlock)
    last_block(const int* in, std::size_t n, Record* total, Board* board, Record* records) {
    __shared__ bool is_last;
    const Record mine = record_of_tile(in, n, blockIdx.x);
    if (threadIdx.x == 0) {
        records[blockIdx.x] = mine;
        is_last = Atomic(board->ticket).fetch_add(1, memory_order_acq_rel) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;

    Record sum{};
    for (unsigned k = threadIdx.x; k < gridDim.x; k += kBlock)
        sum = combined(sum, records[k]);
    sum = record_of_block(sum);
    if (threadIdx.x == 0) *total = sum;
}

inline void launch_last_block(const int* in, std::size_t n, Record* total, Board* board, Record* records,
                              cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kTile);
    clear(total, board, tiles, stream);
    last_block<<<tiles, kBlock, 0, stream>>>(in, n, total, board, records);
}

// --- A sequence lock -----------------------------------------------------------------------------

// What a writer keeps rewriting. Words that belong together: word w of state k is k * (w + 1).
constexpr unsigned kWords = 8;
struct State {
    unsigned sequence;  // even: the words are those of state sequence / 2; odd: they are being written
    unsigned ticket;
    unsigned words[kWords];
};

// Stores state k. One thread of the grid calls it.
//
// Idea: readers do not lock. The sequence number is odd while words are written. A reader that has
// seen the same even number before and after has read the words of one state.
// Cost removed: the lock of each reader; the writer never waits.
// Still limits it: not profiled (0.56 ms for 1,000 states on an H200). A reader whose words were
// overwritten reads them again.
//
// The words are read while they are written, so they have to be atomic accesses, too. The first
// fence keeps the stores of the words after that of the odd number. The last store releases them.
__device__ inline void write_state(State* state, unsigned k) {
    Atomic(state->sequence).store(2 * k - 1, memory_order_relaxed);
    __threadfence();  // the odd number is visible before any word of the new state
    for (unsigned w = 0; w < kWords; ++w)
        Atomic(state->words[w]).store(k * (w + 1), memory_order_relaxed);
    Atomic(state->sequence).store(2 * k, memory_order_release);
}

// Reads the words of one state, and returns its number.
__device__ inline unsigned read_state(State* state, unsigned (&words)[kWords]) {
    for (;;) {
        const unsigned before = Atomic(state->sequence).load(memory_order_acquire);
        for (unsigned w = 0; w < kWords; ++w)
            words[w] = Atomic(state->words[w]).load(memory_order_relaxed);
        __threadfence();  // the words have been read before the number is loaded again
        const unsigned after = Atomic(state->sequence).load(memory_order_relaxed);
        if (before == after && before % 2 == 0) return before / 2;
    }
}

// One block writes states 1 to `states`, a thread of each other block reads until it has seen the
// last one. mixed[reader] becomes 1 if it got words that do not belong together, else 0. The writer
// is the block that starts first, because readers wait for it.
__global__ void __launch_bounds__(kWarpSize) sequence_lock(State* state, unsigned states, unsigned* mixed) {
    if (threadIdx.x != 0) return;
    const unsigned ticket = Atomic(state->ticket).fetch_add(1, memory_order_relaxed);
    if (ticket == 0) {
        for (unsigned k = 1; k <= states; ++k)
            write_state(state, k);
        return;
    }
    bool is_mixed = false;
    unsigned seen = 0;
    while (seen < states && !is_mixed) {
        unsigned words[kWords];
        for (unsigned& word : words)
            word = ~0U;  // of no state
        seen = read_state(state, words);
        for (unsigned w = 0; w < kWords; ++w)
            is_mixed |= words[w] != seen * (w + 1);
    }
    mixed[ticket - 1] = is_mixed;
}

inline void launch_sequence_lock(State* state, unsigned states, unsigned* mixed, unsigned readers,
                                 cudaStream_t stream) {
    cudaMemsetAsync(state, 0, sizeof(State), stream);
    sequence_lock<<<1 + readers, kWarpSize, 0, stream>>>(state, states, mixed);
}

}  // namespace day23

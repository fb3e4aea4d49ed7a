// Day 34, beyond: the FP32 versions in which a block with a tile of keys also adds to dQ.
#pragma once

#include "attention_backward.cuh"

namespace day34 {

// The last tile of keys that a tile of rows sees: the first one whose turn it is.
__device__ inline int last_tile(const Gradient<float>& a, int row) {
    const int of_head = (a.k.length() - 1) / kTile;
    if (!a.causal) return of_head;
    return min(of_head, (row + kTile - 1 + a.k.length() - a.q.length()) / kTile);
}

// Turns of the blocks that add to the same rows of dQ. All counters are 0 when the kernel starts.
struct Turns {
    unsigned* ticket;  // the next block's number
    unsigned* done;    // [head][tile of rows]: how many tiles of keys have been added

    // A block may wait only for blocks that have started. So a block does not take its number from
    // blockIdx, but draws one when it starts.
    __device__ unsigned draw() const {
        __shared__ unsigned number;
        if (threadIdx.x == 0) number = atomicAdd(ticket, 1u);
        __syncthreads();
        return number;
    }
    // Called by one thread.
    __device__ void wait(std::size_t tile, int turn) const {
        while (atomicAdd(&done[tile], 0u) != static_cast<unsigned>(turn)) {
        }
        __threadfence();
    }
    __device__ void pass(std::size_t tile) const {
        __threadfence();
        atomicAdd(&done[tile], 1u);
    }
};

// Idea: one pass. A block of 32 keys has dS of its keys in shared memory; it also multiplies it by
// K, and adds the product to dQ, to which the blocks of all keys add.
// Cost removed: the second S and dP.
// Still limits it: shared memory (counters: 80 % busy; the units of atomics at most 14 %). Blocks
// add in any order, on which sums of floats depend, so two runs differ in the last bits. ORDERED:
// the blocks of a head add to a tile of rows in the order of their keys, the last keys first. So
// blocks wait for each other.
//
// dq is 0 when the kernel starts.
template <int D, bool ORDERED>
__global__ void __launch_bounds__(kThreads)
    one_pass(const Gradient<float> a, const RowTerms terms, const Turns turns) {
    extern __shared__ float4 memory[];
    Tiles<D>& tiles = *reinterpret_cast<Tiles<D>*>(memory);
    const unsigned number = ORDERED ? turns.draw() : blockIdx.x;
    const int in_head = (a.k.length() + kTile - 1) / kTile;
    const std::size_t head = number / static_cast<unsigned>(in_head);
    // The last keys come first, because with a causal mask they reach a tile of rows first.
    const int tile = in_head - 1 - static_cast<int>(number % static_cast<unsigned>(in_head));
    const int key = tile * kTile;
    const int i = static_cast<int>(threadIdx.x) / kAcross;
    const int first = static_cast<int>(threadIdx.x) % kAcross;
    load_tile<D>(tiles.k, a.k, head, key);
    load_tile<D>(tiles.v, a.v, head, key);
    KeySums<D> sums;
    for (int row = first_row(a, key); row < a.q.length(); row += kTile) {
        load_tile<D>(tiles.q, a.q, head, row);
        load_tile<D>(tiles.d_out, a.d_out, head, row);
        __syncthreads();
        weigh_tile<D>(a, terms, tiles, head, row, key);
        __syncthreads();
        sums.add(tiles);

        float dq[D / kAcross] = {};
        for (int j = 0; j < kTile; ++j) {
#pragma unroll
            for (int n = 0; n < D / kAcross; ++n)
                dq[n] += tiles.ds[i][j] * tiles.k[j][first + n * kAcross];
        }
        const std::size_t counter = head * (terms.padded / kTile) + static_cast<std::size_t>(row / kTile);
        if (ORDERED) {
            if (threadIdx.x == 0) turns.wait(counter, last_tile(a, row) - tile);
            __syncthreads();
        }
        if (row + i < a.q.length()) {
            float* const to = row_of(a.dq, head, static_cast<std::size_t>(row + i));
            for (int n = 0; n < D / kAcross; ++n)
                if (first + n * kAcross < a.q.dim()) atomicAdd(&to[first + n * kAcross], dq[n] * a.scale);
        }
        __syncthreads();  // the tiles are safe to overwrite; all threads have added
        if (ORDERED && threadIdx.x == 0) turns.pass(counter);
    }
    sums.store(a, head, key);
}

template <int D, bool ORDERED>
void launch_one_pass(const Gradient<float>& a, const RowTerms& terms, const Turns& turns,
                     cudaStream_t stream) {
    course::launch(one_pass<D, ORDERED>,
                   {blocks_for_tiles(a.k.extents()), kThreads, sizeof(Tiles<D>), stream}, a, terms, turns);
}

}  // namespace day34

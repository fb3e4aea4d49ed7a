// Day 29, beyond: the list that the blocks of equal_shares.cuh share.
//
// All heads of all sequences form one list: sequence after sequence, head after head, tile after
// tile. An entry is a place. The tiles of each head follow kHeadCost places without a tile, because
// starting and ending a head takes as long as that many tiles.
//
//   sequence 0                                      sequence 1
//   head 0             head 1                       head 0
//   _ _ _ T T T T T T  _ _ _ T T T T T T  ...       _ _ _ T T  ...          T: a tile of kKeys keys
//
// The list is not stored. A block computes from the lengths which head has a place.
#pragma once

#include "decoding_attention.cuh"
#include "warp_rows.cuh"

namespace day29 {

constexpr int kHeadCost = 16;

// An empty sequence has a tile, too: a tile without keys, whose results are zeros.
__device__ inline int tiles_of(int length) {
    return max(1, (length + kKeys - 1) / kKeys);
}

// A head of a sequence in the list.
struct Head {
    int sequence;
    int head;    // of K
    int length;  // of the sequence
    int first;   // place of its first tile
    int tiles;

    __device__ int end() const { return first + tiles; }
};

// The head that has this place. A warp looks at 32 sequences at a time: a scan (day 16) of their
// places, and a vote on where `place` is passed.
template <class T>
__device__ Head head_of(const Task<T>& task, int place) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    int before = 0;  // places of the sequences so far
    for (int sequence = lane;; sequence += 32) {
        const bool exists = sequence < task.batch;
        const int length = exists ? task.length(sequence) : 0;
        const int of_head = exists ? kHeadCost + tiles_of(length) : 0;
        const int own = of_head * task.heads_kv;
        int end = own;
        for (int stride = 1; stride < 32; stride *= 2) {
            const int left = __shfl_up_sync(course::kWholeWarp, end, stride);
            if (lane >= stride) end += left;
        }
        end += before;
        const unsigned passed = __ballot_sync(course::kWholeWarp, end > place);
        if (passed != 0) {
            const int found = __ffs(static_cast<int>(passed)) - 1;
            const int first = __shfl_sync(course::kWholeWarp, end - own, found);
            const int places = __shfl_sync(course::kWholeWarp, of_head, found);
            const int head = (place - first) / places;
            return {__shfl_sync(course::kWholeWarp, sequence, found), head,
                    __shfl_sync(course::kWholeWarp, length, found), first + head * places + kHeadCost,
                    places - kHeadCost};
        }
        before = __shfl_sync(course::kWholeWarp, end, 31);
    }
}

// Moves to the head that has `place`.
template <class T>
__device__ void advance(const Task<T>& task, Head& head, int place) {
    while (place >= head.end()) {
        head.first = head.end() + kHeadCost;
        if (++head.head < task.heads_kv) continue;
        head.head = 0;
        head.length = task.length(++head.sequence);
        head.tiles = tiles_of(head.length);
    }
}

}  // namespace day29

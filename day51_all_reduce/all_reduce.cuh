// Day 51: all-reduce. Every GPU has an array, and every GPU gets the sum of all of them.
//
//   version    what is new                                  what limits it
//   gather     one GPU copies all arrays, adds, copies      its link; the others wait
//              the sums back
//   ring       each GPU adds up a part, and sends to the    2 (n - 1) copies, one after the other
//              next one only
//   one_shot   one kernel: each GPU reads all arrays        every array crosses every link
//              itself, and adds up everything
//   two_shot   one kernel: each GPU adds up a part, and     the bandwidth of the links
//              stores the sums in the memory of all
//
// NCCL is the peer. Read gather and ring first, in copies.cu: copies, events, and a small kernel.
// one_shot and two_shot are here, each followed by its launch: one kernel for each GPU and call.
// parts.cuh has the flags, and the parts of an array. beyond/ has two versions for short arrays.
//
//   ./course run day51                                     every version, verified and timed
//   CUDA_ON_CPU_DEVICES=4 ./course run day51               on four devices of the stand-in
//   ./course run day51 --program                           program.cu: from main() to the result
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cuda/atomic>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "parts.cuh"

namespace day51 {

static_assert(kBlock >= kMostRanks, "in meet() each rank has a thread of the block");
// Blocks that wait for each other must run at the same time: this many on each multiprocessor.
// __launch_bounds__ makes the compiler use no more registers than that allows.
constexpr int kBlocksOnEach = 2;

// The arrays of all ranks. With peer access, a kernel reads and writes all of them.
struct Pointers {
    const float* in[kMostRanks];
    float* out[kMostRanks];
};

// A rank, and the flags of all of them.
struct Team {
    int rank;
    int ranks;
    Signals* signals[kMostRanks];
};

using SystemFlag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// A barrier between this block and the block of the same number on all other GPUs. `number` is 1
// for a block's first barrier, 2 for the next one, and so on, also in later launches: a reset could
// erase a flag that a faster GPU has set for the next launch. All waiting blocks must be running,
// so a grid has no more blocks than a GPU can run at the same time.
//
// A flag is in the memory of the GPU that waits for it, so polling stays inside that GPU, and only
// the store crosses the link. Release and acquire, at the scope of the whole system: all reads and
// writes of a block before the barrier happen before all those of others after it.
__device__ inline void meet(const Team& team, unsigned number) {
    __syncthreads();  // the accesses of all threads of this block happen before the flag is set
    const int other = static_cast<int>(threadIdx.x);
    if (other < team.ranks) {
        unsigned& theirs = team.signals[other]->arrived[blockIdx.x][team.rank];
        SystemFlag(theirs).store(number, cuda::memory_order_release);
        unsigned& mine = team.signals[team.rank]->arrived[blockIdx.x][other];
        // The other block may be one barrier ahead.
        while (static_cast<int>(SystemFlag(mine).load(cuda::memory_order_acquire) - number) < 0) {
        }
    }
    __syncthreads();
}

// The values i to i + kWidth - 1 of all ranks, added in the order of the ranks, so that every GPU
// gets the same bits.
template <int kWidth>
__device__ course::Pack<float, kWidth> sum_of_ranks(const Pointers& arrays, int ranks, std::size_t i) {
    using Values = course::Pack<float, kWidth>;
    Values sum = Values::load(arrays.in[0] + i);
    for (int r = 1; r < ranks; ++r) {
        const Values next = Values::load(arrays.in[r] + i);
        for (int k = 0; k < kWidth; ++k)
            sum.value[k] += next.value[k];
    }
    return sum;
}

// Adds up the values from `begin` to `end` - 1 in rounds. In each round a thread has kWidth values.
// In place, a GPU may overwrite its values only after the others have read them. So there is a
// barrier between reading and writing, during which the sums stay in registers. In the last round,
// the same barrier protects the input from later work that may overwrite it.
template <int kWidth>
__device__ void sum_everything(const Team& team, const Pointers& arrays, std::size_t begin, std::size_t end,
                               unsigned& number) {
    const std::size_t first = (std::size_t{blockIdx.x} * kBlock + threadIdx.x) * kWidth;
    const std::size_t of_round = std::size_t{gridDim.x} * kBlock * kWidth;
    for (std::size_t round = begin; round < end; round += of_round) {
        const std::size_t i = round + first;
        course::Pack<float, kWidth> sum{};
        if (i < end) sum = sum_of_ranks<kWidth>(arrays, team.ranks, i);
        meet(team, ++number);
        if (i < end) sum.store(arrays.out[team.rank] + i);
    }
}

// Idea: no copies. Each GPU reads the arrays of all others where they are, and adds up everything
// by itself. For up to one round of values it waits for the others only twice, for any number of
// GPUs.
// Cost removed: launches, events, and 2 (n - 1) steps, one after the other.
// Still limits it: each GPU reads n - 1 whole arrays. All GPUs compute the same sums.
//
// kWidth: floats of an access, 4 where all arrays are aligned to 16 bytes, else 1.
template <int kWidth>
__global__ void __launch_bounds__(kBlock, kBlocksOnEach)
    one_shot(Team team, Pointers arrays, std::size_t count) {
    unsigned& passed = team.signals[team.rank]->passed[blockIdx.x];
    unsigned number = passed;
    meet(team, ++number);  // every rank has reached this launch, so its input is complete
    const std::size_t whole = count / kWidth * kWidth;
    sum_everything<kWidth>(team, arrays, 0, whole, number);
    sum_everything<1>(team, arrays, whole, count, number);
    if (threadIdx.x == 0) passed = number;
}

// Blocks for `count` values, at least `width` for each thread: no more than can run at the same
// time, because they wait for each other. `multiprocessors`: of the smallest GPU, since all GPUs
// must have the same number of blocks.
inline unsigned blocks_that_wait(std::size_t count, int width, unsigned multiprocessors) {
    const std::size_t threads = course::ceil_div(count, static_cast<std::size_t>(width));
    const std::size_t blocks = course::ceil_div(threads, std::size_t{kBlock});
    return static_cast<unsigned>(
        std::min({blocks, std::size_t{kMostBlocks}, std::size_t{multiprocessors} * kBlocksOnEach}));
}

// Of one rank, on its GPU. All ranks must be launched before any of them can end.
template <int kWidth>
void launch_one_shot(const Team& team, const Pointers& arrays, std::size_t count, unsigned multiprocessors,
                     cudaStream_t stream) {
    const unsigned blocks = blocks_that_wait(count, kWidth, multiprocessors);
    one_shot<kWidth><<<blocks, kBlock, 0, stream>>>(team, arrays, count);
}

// Adds up the values from `begin` to `end` - 1, and stores the sums in the arrays of all ranks.
// Each rank starts with its own array, so they do not all store to rank 0 at the same time.
template <int kWidth>
__device__ void sum_for_all(const Team& team, const Pointers& arrays, std::size_t begin, std::size_t end) {
    const std::size_t first = (std::size_t{blockIdx.x} * kBlock + threadIdx.x) * kWidth;
    for (std::size_t i = begin + first; i < end; i += std::size_t{gridDim.x} * kBlock * kWidth) {
        const course::Pack<float, kWidth> sum = sum_of_ranks<kWidth>(arrays, team.ranks, i);
        for (int k = 0; k < team.ranks; ++k)
            sum.store(arrays.out[(team.rank + k) % team.ranks] + i);
    }
}

// Idea: a part for each GPU. It reads the part from all arrays, and stores the sums in all arrays.
// Reduce-scatter and all-gather, as in the ring, in one pass.
// Cost removed: from each other GPU, a GPU reads 1 / n of an array, and receives 1 / n of the sums.
// No sum is computed twice.
// Still limits it: the links. The sums cross them after the values.
//
// In place this is right without a barrier in the middle, because one thread of one rank reads a
// value of all arrays and then overwrites it, and no other thread accesses it.
template <int kWidth>
__global__ void __launch_bounds__(kBlock, kBlocksOnEach) two_shot(Team team, Pointers arrays, Part part) {
    unsigned& passed = team.signals[team.rank]->passed[blockIdx.x];
    unsigned number = passed;
    meet(team, ++number);  // every input is complete, and every output may be overwritten
    const std::size_t whole = part.begin + part.size() / kWidth * kWidth;
    sum_for_all<kWidth>(team, arrays, part.begin, whole);
    sum_for_all<1>(team, arrays, whole, part.end);
    meet(team, ++number);  // the sums of all other ranks have arrived here
    if (threadIdx.x == 0) passed = number;
}

// A thread has at least two packs of the longest part, which is the first one.
template <int kWidth>
void launch_two_shot(const Team& team, const Pointers& arrays, std::size_t count, unsigned multiprocessors,
                     cudaStream_t stream) {
    const std::size_t longest = part_of(count, team.ranks, 0).size();
    const unsigned blocks = blocks_that_wait(longest, 2 * kWidth, multiprocessors);
    two_shot<kWidth><<<blocks, kBlock, 0, stream>>>(team, arrays, part_of(count, team.ranks, team.rank));
}

}  // namespace day51

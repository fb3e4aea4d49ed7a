// Day 51, second part: GPUs send values instead of reading them. Read all_reduce.cuh first.
#pragma once

#include "all_reduce.cuh"

namespace day51 {

// The inboxes of all ranks. A place in them belongs to a sender, to one of two calls in turn, and
// to a thread.
struct Inboxes {
    char* of[kMostRanks];
    std::size_t blocks;
    std::size_t bytes;  // of a block

    template <class T>
    __device__ T* place(int of_rank, int sender, unsigned number, std::size_t k) const {
        const std::size_t block = (std::size_t{2} * sender + number % 2) * blocks + blockIdx.x;
        return reinterpret_cast<T*>(of[of_rank] + block * bytes) + k * kBlock + threadIdx.x;
    }
};

// Idea: send the values instead of a flag that they are ready. Each GPU stores its array in the
// inboxes of all others, meets them once, and adds what has arrived.
// Cost removed: the barrier before the values are read, and the way back of a load. The input is
// not read by others, so it may be overwritten as soon as the kernel has ended.
// Still limits it: the barrier. Its release waits until all stores have arrived.
//
// Why are two places enough? A place is used again two calls later. In the call between these two,
// this block has met the same block of the other rank. So that rank had begun the call between, and
// had ended the kernel that read this place.
template <int kWidth>
__global__ void __launch_bounds__(kBlock, kBlocksOnEach)
    push(Team team, Pointers arrays, Inboxes inboxes, std::size_t count) {
    using Values = course::Pack<float, kWidth>;
    unsigned& passed = team.signals[team.rank]->passed[blockIdx.x];
    const unsigned number = passed + 1;
    const float* const in = arrays.in[team.rank];
    const std::size_t first = (std::size_t{blockIdx.x} * kBlock + threadIdx.x) * kWidth;
    const std::size_t of_round = std::size_t{gridDim.x} * kBlock * kWidth;
    for (std::size_t i = first, k = 0; i < count; i += of_round, ++k) {
        const Values values = Values::load(in + i);
        for (int step = 1; step < team.ranks; ++step)
            *inboxes.place<Values>((team.rank + step) % team.ranks, team.rank, number, k) = values;
    }
    meet(team, number);
    for (std::size_t i = first, k = 0; i < count; i += of_round, ++k) {
        Values sum{};
        for (int r = 0; r < team.ranks; ++r) {
            const Values next =
                r == team.rank ? Values::load(in + i) : *inboxes.place<Values>(team.rank, r, number, k);
            for (int v = 0; v < kWidth; ++v)
                sum.value[v] = r == 0 ? next.value[v] : sum.value[v] + next.value[v];
        }
        sum.store(arrays.out[team.rank] + i);
    }
    if (threadIdx.x == 0) passed = number;
}

// A value and the number of the call. 8 bytes are stored and loaded as a whole, so a packet with
// the right number has the right value.
using Packet = unsigned long long;
using AtomicPacket = cuda::atomic_ref<Packet, cuda::thread_scope_system>;

__device__ inline Packet packet_of(float value, unsigned number) {
    return Packet{number} << 32 | __float_as_uint(value);
}

__device__ inline float receive(Packet& place, unsigned number) {
    Packet packet = 0;
    do {
        packet = AtomicPacket(place).load(cuda::memory_order_relaxed);
    } while (packet >> 32 != number);
    return __uint_as_float(static_cast<unsigned>(packet));
}

// Idea: each value carries its own flag, the number of the call, in one word. A thread polls the
// places in its own memory until the numbers are right.
// Cost removed: the barrier, and its fence.
// Still limits it: half of each packet is its number, so twice the bytes cross the links.
//
// Two places are enough, as in push: the packets of the call between have arrived, which proves
// what the barrier proves there.
__global__ void __launch_bounds__(kBlock, kBlocksOnEach)
    packets(Team team, Pointers arrays, Inboxes inboxes, std::size_t count) {
    unsigned& sent = team.signals[team.rank]->sent[blockIdx.x];
    const unsigned number = sent + 1;
    const float* const in = arrays.in[team.rank];
    const std::size_t first = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    const std::size_t of_round = std::size_t{gridDim.x} * kBlock;
    for (std::size_t i = first, k = 0; i < count; i += of_round, ++k) {
        const Packet packet = packet_of(in[i], number);
        for (int step = 1; step < team.ranks; ++step) {
            Packet* const place =
                inboxes.place<Packet>((team.rank + step) % team.ranks, team.rank, number, k);
            AtomicPacket(*place).store(packet, cuda::memory_order_relaxed);
        }
    }
    for (std::size_t i = first, k = 0; i < count; i += of_round, ++k) {
        float sum = 0;
        for (int r = 0; r < team.ranks; ++r) {
            const float value =
                r == team.rank ? in[i] : receive(*inboxes.place<Packet>(team.rank, r, number, k), number);
            sum = r == 0 ? value : sum + value;
        }
        arrays.out[team.rank][i] = sum;
    }
    __syncthreads();  // all threads have read `sent`
    if (threadIdx.x == 0) sent = number;
}

}  // namespace day51

// Day 51, beyond: GPUs send values instead of reading them. Read all_reduce.cuh first.
//
//   version    what is new                                  what limits it
//   push       one kernel: each GPU stores its array in     one barrier
//              inboxes of all others
//   packets    the same, three values with the number of    a third more bytes cross the links
//              the call: no barrier
//
//   ./course run day51 --size 16384x10 --only packets
#pragma once

#include "all_reduce.cuh"
#include "common/device/ptx.cuh"

namespace day51 {

// The inboxes of all ranks. A place in them belongs to a sender and a thread. There are two of
// each, which calls use in turn (double buffering).
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

// The ranks after this one, in turn: not all ranks send to rank 0 first.
__device__ inline int rank_after(const Team& team, int step) {
    const int rank = team.rank + step;
    return rank < team.ranks ? rank : rank - team.ranks;
}

// Idea: send the values instead of a flag that they are ready. Each GPU stores its array in the
// inboxes of all others, synchronises with them once, and adds the values that have arrived.
// Cost removed: the barrier before the values are read, and the round trip of a load. The input is
// not read by others, so it may be overwritten as soon as the kernel has ended.
// Still limits it: the barrier. Its release waits until all stores have arrived.
//
// Why are two places enough? A place is used again two calls later. In the call between these two,
// this block has synchronised with the same block of the other rank. So that rank had started the
// call in between, and had ended the kernel that read this place.
template <int kWidth>
__global__ void __launch_bounds__(kBlock, kBlocksOnEach)
    push(Team team, const float* in, float* out, Inboxes inboxes, std::size_t count) {
    using Values = course::Pack<float, kWidth>;
    unsigned& passed = team.signals[team.rank]->passed[blockIdx.x];
    const unsigned number = passed + 1;
    const std::size_t first = (std::size_t{blockIdx.x} * kBlock + threadIdx.x) * kWidth;
    const std::size_t of_round = std::size_t{gridDim.x} * kBlock * kWidth;
    for (std::size_t i = first, k = 0; i < count; i += of_round, ++k) {
        const Values values = Values::load(in + i);
        for (int step = 1; step < team.ranks; ++step)
            *inboxes.place<Values>(rank_after(team, step), team.rank, number, k) = values;
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
        sum.store(out + i);
    }
    if (threadIdx.x == 0) passed = number;
}

// Of one rank, on its GPU. The inboxes have room for `blocks` blocks, the same number on all GPUs.
template <int kWidth>
void launch_push(const Team& team, const float* in, float* out, const Inboxes& inboxes, std::size_t count,
                 unsigned blocks, cudaStream_t stream) {
    push<kWidth><<<blocks, kBlock, 0, stream>>>(team, in, out, inboxes, count);
}

// Three values and the number of the call. 16 bytes are stored and loaded as a whole, so a packet
// with the right number contains the right values.
struct alignas(16) Packet {
    float value[3];
    unsigned number;
};
constexpr int kOfPacket = 3;

// The values from i on; zeros beyond the end of the array.
__device__ inline Packet packet_at(const float* in, std::size_t i, std::size_t count, unsigned number) {
    Packet packet{{}, number};
    for (int v = 0; v < kOfPacket; ++v)
        if (i + v < count) packet.value[v] = in[i + v];
    return packet;
}

__device__ inline Packet receive(const Packet* place, unsigned number) {
    Packet packet;
    do {
        packet = course::ptx::ld_relaxed_sys_b128(place);
    } while (packet.number != number);
    return packet;
}

// Idea: values carry their own flag, the number of the call, in one packet. A thread polls the
// places in its own memory until the number is right.
// Cost removed: the barrier, and its fence.
// Still limits it: a quarter of each packet is its number, so a third more bytes cross the links.
//
// Two places are enough, as in push: the packets of the call in between have arrived, which proves
// the same as the barrier there.
__global__ void __launch_bounds__(kBlock, kBlocksOnEach)
    packets(Team team, const float* in, float* out, Inboxes inboxes, std::size_t count) {
    unsigned& sent = team.signals[team.rank]->sent[blockIdx.x];
    const unsigned number = sent + 1;
    const std::size_t first = (std::size_t{blockIdx.x} * kBlock + threadIdx.x) * kOfPacket;
    const std::size_t of_round = std::size_t{gridDim.x} * kBlock * kOfPacket;
    for (std::size_t i = first, k = 0; i < count; i += of_round, ++k) {
        const Packet packet = packet_at(in, i, count, number);
        for (int step = 1; step < team.ranks; ++step)
            course::ptx::st_relaxed_sys_b128(
                inboxes.place<Packet>(rank_after(team, step), team.rank, number, k), packet);
    }
    for (std::size_t i = first, k = 0; i < count; i += of_round, ++k) {
        const Packet own = packet_at(in, i, count, number);
        float sum[kOfPacket] = {};
        for (int r = 0; r < team.ranks; ++r) {
            const Packet next =
                r == team.rank ? own : receive(inboxes.place<Packet>(team.rank, r, number, k), number);
            for (int v = 0; v < kOfPacket; ++v)
                sum[v] = r == 0 ? next.value[v] : sum[v] + next.value[v];
        }
        for (int v = 0; v < kOfPacket; ++v)
            if (i + v < count) out[i + v] = sum[v];
    }
    __syncthreads();  // all threads have read `sent`
    if (threadIdx.x == 0) sent = number;
}

// As launch_push().
inline void launch_packets(const Team& team, const float* in, float* out, const Inboxes& inboxes,
                           std::size_t count, unsigned blocks, cudaStream_t stream) {
    packets<<<blocks, kBlock, 0, stream>>>(team, in, out, inboxes, count);
}

}  // namespace day51

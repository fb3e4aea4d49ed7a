// Day 29, beyond: equal shares.
//
// head_list.cuh puts the tiles of all heads of all sequences into one list. Block b of B takes the
// places [b n / B, (b + 1) n / B) of n: a share may start and end inside a head, and contain
// several heads in between. So all SMs have the same amount of work, however different the lengths
// are.
#pragma once

#include "async_ring.cuh"
#include "common/device/launch.hpp"
#include "decoding_attention.hpp"
#include "head_list.cuh"

namespace day29 {

struct Shares {
    int places;
    int blocks;  // that have a share

    __device__ int begin(int block) const {
        return static_cast<int>(static_cast<long long>(block) * places / blocks);
    }
    // The block whose share has this place.
    __device__ int owner(int place) const { return static_cast<int>(((place + 1LL) * blocks - 1) / places); }
};

// At most `blocks` shares, of at least kWarps places. All lanes of a warp call it, as of head_of().
template <class T>
__device__ Shares shares_of(const Task<T>& task, int blocks) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    int places = 0;
    for (int sequence = lane; sequence < task.batch; sequence += 32)
        places += kHeadCost + tiles_of(task.length(sequence));
    places = course::warp_reduce(places, [](int x, int y) { return x + y; }) * task.heads_kv;
    return {places, min(max(places / kWarps, 1), blocks)};
}

// A block stores at most two parts: one of its first head, which starts in the share of another
// block, and one of its last head, which starts in its own. Each part has kMostRows rows in the
// workspace.
constexpr std::size_t kSlots = 2;

__device__ inline std::size_t slot_of(int block, bool head_begins_here) {
    return (static_cast<std::size_t>(block) * kSlots + (head_begins_here ? 1 : 0)) * kMostRows;
}

// From compute capability 9.0 on, the second kernel may start while the first one runs
// (programmatic dependent launch). The first kernel allows it.
__device__ inline void allow_next() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// Idea: a block for each SM, all with equal shares of the list. Copies continue from one head to
// the next. A part is stored only if a head is divided.
// Cost removed: the wave that is not full, sequences that end early, and most of the parts.
// Still limits it: memory bandwidth; and at the end the slowest SM, since shares are fixed.
template <class T, int D>
__global__ void __launch_bounds__(kWarps * 32) equal_shares(Task<T> task, float* parts) {
    extern __shared__ __align__(128) unsigned char memory[];
    allow_next();
    const int warp = static_cast<int>(threadIdx.x / 32);
    Ring<T, D>& ring = reinterpret_cast<Ring<T, D>*>(memory)[warp];
    const Shares shares = shares_of(task, static_cast<int>(gridDim.x));
    const auto block = static_cast<int>(blockIdx.x);
    if (block >= shares.blocks) return;
    const int begin = shares.begin(block);
    const int end = shares.begin(block + 1);
    Head head = head_of(task, begin);

    // This warp copies the tiles at begin + warp, begin + warp + kWarps, ...; places without a tile
    // are steps without a copy.
    Head ahead = head;
    int next = begin + warp;
    int next_stage = 0;
    const auto copy = [&] {
        if (next < end) {
            advance(task, ahead, next);
            if (next >= ahead.first) {
                const int key = (next - ahead.first) * kKeys;
                const std::size_t at = task.cache(ahead.sequence * task.heads_kv + ahead.head, key, D);
                copy_tile(ring.stages[next_stage], task.k + at, task.v + at, ahead.length - key);
            }
        }
        course::ptx::cp_async_commit();
        next += kWarps;
        next_stage = (next_stage + 1) % kStages;
    };
    for (int i = 0; i < kStages - 1; ++i)
        copy();

    int place = begin + warp;
    int stage = 0;
    for (int from = begin; from < end; from = head.end()) {
        advance(task, head, from);
        const int to = min(end, head.end());
        const std::size_t item = static_cast<std::size_t>(head.sequence) * task.heads_kv + head.head;
        WarpRows<T, D> rows(task.q + item * static_cast<std::size_t>(task.rows) * D, task.rows, task.queries);
        for (; place < to; place += kWarps) {
            copy();
            course::ptx::cp_async_wait<kStages - 1>();
            __syncwarp();  // this tile is complete in all lanes
            if (place >= head.first)
                rows.attend(ring.stages[stage], head.length - (place - head.first) * kKeys, task.scale);
            __syncwarp();  // safe to overwrite
            stage = (stage + 1) % kStages;
        }
        if (to <= head.first) continue;  // the share ends before the head's first tile
        const int first_block = shares.owner(head.first);
        const int last_block = shares.owner(head.end() - 1);
        const bool whole = first_block == last_block;
        const std::size_t slot = slot_of(block, block == first_block);
        rows.template merge_warps<kWarps>([&](int row, int col, const Part& part) {
            if (whole) {
                task.out[(item * task.rows + row) * D + col] = T(part.result());
            } else {
                store_part<D>(parts, slot + static_cast<std::size_t>(row), col, part);
            }
        });
    }
    course::ptx::cp_async_wait<0>();
}

// Returns when the first kernel has ended and its stores are visible.
__device__ inline void wait_for_previous() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

constexpr int kPartGroups = 4;   // of threads, which add up different parts
constexpr int kPartsAtOnce = 4;  // whose loads a thread issues together

// The second kernel: a block for each end of a share. Where a head is divided, n ends are inside
// it, and the blocks of these ends take its rows in turn: block i the rows i, i + n, ... All blocks
// wait for the first kernel, so any work after this kernel comes after both.
template <class T, int D>
__global__ void __launch_bounds__(D* kPartGroups) combine_shares(Task<T> task, const float* parts) {
    __shared__ Part sums[kPartGroups][D];
    const Shares shares = shares_of(task, static_cast<int>(gridDim.x) + 1);
    const auto block = static_cast<int>(blockIdx.x);
    if (block + 1 >= shares.blocks) return wait_for_previous();
    const Head head = head_of(task, shares.begin(block + 1));
    const int first_block = shares.owner(head.first);
    const int last_block = shares.owner(head.end() - 1);
    const auto col = static_cast<int>(threadIdx.x % D);
    const auto group = static_cast<int>(threadIdx.x / D);
    const std::size_t item = static_cast<std::size_t>(head.sequence) * task.heads_kv + head.head;
    wait_for_previous();
    if (block < first_block || block >= last_block) return;  // the end is before the head's first tile
    for (int row = block - first_block; row < task.rows; row += last_block - first_block) {
        Part sum;
        for (int from = first_block + group; from <= last_block; from += kPartGroups * kPartsAtOnce) {
            Part loaded[kPartsAtOnce];
#pragma unroll
            for (int i = 0; i < kPartsAtOnce; ++i) {
                const int part = from + i * kPartGroups;
                if (part <= last_block)
                    loaded[i] = load_part<D>(parts, slot_of(part, part == first_block) + row, col);
            }
#pragma unroll
            for (int i = 0; i < kPartsAtOnce; ++i)
                sum.add(loaded[i]);
        }
        sums[group][col] = sum;
        __syncthreads();
        if (group == 0) {
            for (int i = 1; i < kPartGroups; ++i)
                sum.add(sums[i][col]);
            task.out[(item * task.rows + row) * D + col] = T(sum.result());
        }
        __syncthreads();  // sums may be overwritten
    }
}

// `blocks`: as many as run at the same time, one for each SM.
template <class T, int D>
void launch_equal_shares(const Task<T>& task, unsigned blocks, float* parts, cudaStream_t stream) {
    course::launch(equal_shares<T, D>, {blocks, kWarps * 32, kWarps * sizeof(Ring<T, D>), stream}, task,
                   parts);
    // With one block, nothing is divided.
    if (blocks == 1) return;
    course::launch_early(combine_shares<T, D>, {blocks - 1, D * kPartGroups, 0, stream}, task, parts);
}

}  // namespace day29

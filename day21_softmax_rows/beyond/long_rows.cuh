// Day 21, beyond: rows too long for the registers of one block.
//
//   version           what is new                                        what limits it
//   cluster_per_row   blocks of a cluster write to each other's          L2; waits at cluster barriers;
//                     shared memory                                      at most 8 blocks
//   whole_gpu         the registers of all SMs; one barrier for          no loads are in flight while the
//                     the grid                                           grid synchronises
//   two_pass          any length: the row is read again, backwards       memory: what of the second read
//                                                                        misses the L2 cache
//
//   ./course run day21 --only two_pass --size 16x1048576
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "softmax_rows.cuh"

namespace day21 {

namespace cg = cooperative_groups;

constexpr int kValuesOfSm = 32768;       // floats of rows that fit in the registers of an SM
constexpr int kMostBlocksOfCluster = 8;  // the portable limit

// Idea: a cluster of blocks, on SMs near each other, shares a row. Each block finds the maximum and
// the sum of its slice and stores the pair in the shared memory of every block.
// Cost removed: the limit of 32768 columns.
// Still limits it: L2 and waits (counters at 8192 x 8192: L2 82 % busy, DRAM only 66 %). Warps
// spend 19 % of their time at fences, which the cluster barriers need, and a whole cluster is
// launched for each row. Clusters of more than 8 blocks are not portable.
template <Output kOutput, bool kWhole, int kThreads, int kValues>
__global__ void __launch_bounds__(kThreads, kValuesOfSm / (kThreads * kValues))
    cluster_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step, int cols,
                    int packs_of_slice) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // older GPUs have no clusters
    __shared__ MaxSum of_blocks[kMostBlocksOfCluster];
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned blocks = cluster.num_blocks();
    const unsigned rank = cluster.block_rank();
    const std::size_t row = blockIdx.x / blocks;
    const auto mine = [&] {
        return Slice<kWhole>(in + row * in_step, out + row * out_step, cols, packs_of_slice,
                             static_cast<int>(rank));
    };
    auto runs = cluster.barrier_arrive();

    Pack packs[kValues / kWidth];
    load<kThreads>(packs, mine());
    const MaxSum part = part_of_warp<kOutput>(packs);
    const MaxSum whole_slice = block_merge<kThreads>(part);
    cluster.barrier_wait(std::move(runs));  // all blocks run, so their shared memory exists
    if (threadIdx.x < blocks) *cluster.map_shared_rank(&of_blocks[rank], threadIdx.x) = whole_slice;
    cluster.sync();  // all pairs have arrived
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const MaxSum whole_row = warp_merge(lane < blocks ? of_blocks[lane] : nothing());
    finish<kOutput>(packs, part.max, whole_row);
    store<kThreads>(packs, mine());
#endif
}

constexpr std::size_t kClusterCols = std::size_t{kMostBlocksOfCluster} * kValuesOfSm;

// The packs of a slice, where `blocks` share a row.
inline int packs_of_slice(std::size_t cols, std::size_t blocks) {
    return static_cast<int>(course::ceil_div(cols, kWidth * blocks));
}

template <Output kOutput, bool kWhole>
void launch_cluster_per_row(const float* in, std::size_t in_step, float* out, std::size_t out_step,
                            std::size_t rows, std::size_t cols, cudaStream_t stream) {
    const auto launch = [&](auto kernel, unsigned threads, std::size_t of_block) {
        const std::size_t blocks = std::max<std::size_t>(2, course::ceil_div(cols, of_block));
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
        attribute.val.clusterDim.y = 1;
        attribute.val.clusterDim.z = 1;
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(course::blocks_for(rows * blocks, 1));
        config.blockDim = dim3(threads);
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = 1;
        cudaLaunchKernelEx(&config, kernel, in, in_step, out, out_step, static_cast<int>(cols),
                           packs_of_slice(cols, blocks));
    };
    if (cols <= kClusterCols / 4) {
        launch(cluster_per_row<kOutput, kWhole, 256, 32>, 256, kValuesOfSm / 4);
    } else if (cols <= kClusterCols / 2) {
        launch(cluster_per_row<kOutput, kWhole, 512, 32>, 512, kValuesOfSm / 2);
    } else {
        launch(cluster_per_row<kOutput, kWhole, 1024, 32>, 1024, kValuesOfSm);
    }
}

// Merges two parts: both sums are rescaled to the larger maximum (day 20).
__device__ inline MaxSum merge(MaxSum a, MaxSum b) {
    const float max = fmaxf(a.max, b.max);
    const float shift = shift_of(max);
    return {max, a.sum * exponential(a.max, shift) + b.sum * exponential(b.max, shift)};
}

// Merges `count` parts in global memory, with the result in every thread. All threads call it.
template <int kThreads>
__device__ MaxSum merge_parts(const MaxSum* parts, int count) {
    MaxSum mine = nothing();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
        mine = merge(mine, parts[i]);
    return block_merge<kThreads>(warp_merge(mine));
}

constexpr int kGpuThreads = 1024;

// Idea: the registers of the whole GPU hold the row. Blocks form teams of `blocks_per_row`, with
// one row per team and round. All blocks synchronise once per round at a grid barrier. A
// cooperative launch guarantees that all blocks are resident at the same time.
// Cost removed: the limit of 262144 columns.
// Still limits it: no loads are in flight while the grid synchronises. Counters at 8192 x 8192:
// warps spend 39 % of their time at barriers, DRAM is 27 % busy.
template <Output kOutput, bool kWhole>
__global__ void __launch_bounds__(kGpuThreads, 1)
    whole_gpu(const float* in, std::size_t in_step, float* out, std::size_t out_step, std::size_t rows,
              int cols, int blocks_per_row, int packs_of_slice, MaxSum* parts) {
    const cg::grid_group grid = cg::this_grid();
    const unsigned team = blockIdx.x / blocks_per_row;
    const auto member = static_cast<int>(blockIdx.x % blocks_per_row);
    const unsigned teams = gridDim.x / blocks_per_row;

    Pack packs[kValuesOfSm / kGpuThreads / kWidth];
    for (std::size_t round = 0; round < rows; round += teams) {
        const std::size_t row = round + team;
        MaxSum* const parts_of_row = parts + row * blocks_per_row;
        const auto mine = [&] {
            return Slice<kWhole>(in + row * in_step, out + row * out_step, cols, packs_of_slice, member);
        };
        MaxSum part = nothing();
        if (row < rows) {
            load<kGpuThreads>(packs, mine());
            part = part_of_warp<kOutput>(packs);
            const MaxSum whole_slice = block_merge<kGpuThreads>(part);
            if (threadIdx.x == 0) parts_of_row[member] = whole_slice;
        }
        grid.sync();  // also by teams without a row in the last round
        if (row < rows) {
            const MaxSum whole_row = merge_parts<kGpuThreads>(parts_of_row, blocks_per_row);
            finish<kOutput>(packs, part.max, whole_row);
            store<kGpuThreads>(packs, mine());
            __syncthreads();  // the next block_merge overwrites what slow warps may still be reading
        }
    }
}

// `teams` x `blocks_per_row` blocks, at most as many as can be resident at the same time.
template <Output kOutput, bool kWhole>
void launch_whole_gpu(const float* in, std::size_t in_step, float* out, std::size_t out_step,
                      std::size_t rows, int cols, std::size_t teams, int blocks_per_row, MaxSum* parts,
                      cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(teams) * static_cast<unsigned>(blocks_per_row);
    int packs = packs_of_slice(static_cast<std::size_t>(cols), static_cast<std::size_t>(blocks_per_row));
    void* arguments[] = {&in, &in_step, &out, &out_step, &rows, &cols, &blocks_per_row, &packs, &parts};
    cudaLaunchCooperativeKernel(whole_gpu<kOutput, kWhole>, dim3(grid), dim3(kGpuThreads), arguments, 0,
                                stream);
}

constexpr int kPassThreads = 256;
constexpr int kPassValues = 32;                     // of a thread, at a time
constexpr int kChunk = kPassThreads * kPassValues;  // columns that a block has in registers at a time
constexpr int kChunkPacks = kChunk / kWidth;

// Idea: two passes over rows of any length. A row is cut into parts of `chunks_per_part` chunks,
// one block per part. The first pass finds the maximum and the sum of each part.
// Cost removed: the limit on columns. The sum is rescaled once per chunk and thread, not per
// element.
// Still limits it: memory (counters at 8192 x 8192: DRAM 89 % busy here), because the data is read
// a second time.
template <bool kWhole>
__global__ void __launch_bounds__(kPassThreads)
    find_parts(const float* in, std::size_t in_step, std::ptrdiff_t cols, unsigned parts_per_row,
               int chunks_per_part, MaxSum* parts) {
    const float* const row = in + blockIdx.x / parts_per_row * in_step;
    const auto part = static_cast<std::ptrdiff_t>(blockIdx.x % parts_per_row);
    MaxSum mine = nothing();
    for (int i = 0; i < chunks_per_part; ++i) {
        const Slice<kWhole> chunk(row, nullptr, cols, kChunkPacks, part * chunks_per_part + i);
        Pack packs[kPassValues / kWidth];
        load<kPassThreads>(packs, chunk);
        const float max = max_of(packs);
        // As for log-softmax, the values are not replaced, because the kernel only needs the sum.
        mine = merge(mine, {max, exponentiate<Output::kLogSoftmax>(packs, shift_of(max))});
    }
    mine = block_merge<kPassThreads>(warp_merge(mine));
    if (threadIdx.x == 0) parts[blockIdx.x] = mine;
}

// Idea: the second pass runs backwards. What find_parts has read last is still in the L2 cache, as
// far as it fits.
// Cost removed: as much of the second read as L2 holds, which is little at 8192 x 8192.
// Still limits it: memory, for the rest of the second read and the results (counters at 8192 x
// 8192: DRAM 80 % busy).
template <Output kOutput, bool kWhole>
__global__ void __launch_bounds__(kPassThreads)
    normalise_parts(const float* in, std::size_t in_step, float* out, std::size_t out_step,
                    std::ptrdiff_t cols, unsigned parts_per_row, int chunks_per_part, const MaxSum* parts) {
    const unsigned block = gridDim.x - 1 - blockIdx.x;
    const std::size_t row = block / parts_per_row;
    const auto part = static_cast<std::ptrdiff_t>(block % parts_per_row);
    in += row * in_step;
    out += row * out_step;

    constexpr int kPacks = kPassValues / kWidth;
    Pack packs[kPacks];
    Slice<kWhole> chunk(in, out, cols, kChunkPacks, (part + 1) * chunks_per_part - 1);
    load<kPassThreads>(packs, chunk);  // in flight while parts merge
    const MaxSum whole_row =
        merge_parts<kPassThreads>(parts + row * parts_per_row, static_cast<int>(parts_per_row));
    const float shift = shift_of(whole_row.max);
    const float factor = 1 / whole_row.sum;
    const float log_of_sum = logf(whole_row.sum);
    for (int i = chunks_per_part - 1;; --i) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            for (float& x : packs[p].value)
                x = kOutput == Output::kSoftmax ? exponential(x, shift) * factor : (x - shift) - log_of_sum;
        store<kPassThreads>(packs, chunk);
        if (i == 0) break;
        chunk = Slice<kWhole>(in, out, cols, kChunkPacks, part * chunks_per_part + i - 1);
        load<kPassThreads>(packs, chunk);
    }
}

constexpr std::size_t kMostParts = 1024;  // of a row: few enough for a block to merge all of them quickly

template <Output kOutput, bool kWhole>
void launch_two_pass(const float* in, std::size_t in_step, float* out, std::size_t out_step, std::size_t rows,
                     std::size_t cols, MaxSum* workspace, cudaStream_t stream) {
    const std::size_t chunks = course::ceil_div<std::size_t>(cols, kChunk);
    const std::size_t chunks_per_part = course::ceil_div(chunks, kMostParts);
    const std::size_t parts = course::ceil_div(chunks, chunks_per_part);
    const unsigned blocks = course::blocks_for(rows * parts, 1);
    find_parts<kWhole><<<blocks, kPassThreads, 0, stream>>>(in, in_step, static_cast<std::ptrdiff_t>(cols),
                                                            static_cast<unsigned>(parts),
                                                            static_cast<int>(chunks_per_part), workspace);
    normalise_parts<kOutput, kWhole><<<blocks, kPassThreads, 0, stream>>>(
        in, in_step, out, out_step, static_cast<std::ptrdiff_t>(cols), static_cast<unsigned>(parts),
        static_cast<int>(chunks_per_part), workspace);
}

}  // namespace day21

// Day 27: a mixture of experts. Each token (day 25) is multiplied by the matrices of the few
// experts that a router chose for it. PMPP chapter 20 (5th edition).
//
//   version             what is new                                        what limits it
//   every_token         a launch for each expert, a thread per result      latency of loads
//   sorted              tokens sorted by expert; tiles; a launch each      small grids, in turn
//   one_launch_atomic   one launch for all experts; atomics                shared memory
//   one_launch_gather   results stored by place, then gathered: no atomics shared memory
//   tile_list           one launch; a list of the tiles that exist         shared memory
//   resident            as many blocks as fit take tile after tile         latency: 4 blocks, not 5
//
// T tokens of D numbers, E experts of D x N weights. Token t chooses k experts e_0, e_1, ... with
// gates g_0, g_1, ..., and out(t) = sum over j of g_j x(t) W(e_j). A pair is a token and one of its
// choices: pair t k + j. Each kernel is followed by its launch. router.cuh has the arguments of all
// kernels (Task) and the router.
//
//   ./course run day27                               every version, verified and timed
//   ./course run day27 --program                     program.cu: one layer, from main() to the result
//   ./course run day27 --size 500x64x64x16x2         tokens x D x N x experts x k
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "router.cuh"

namespace day27 {

// --- A launch for each expert --------------------------------------------------------------------

// Idea: a thread for each element of the result looks whether its token chose this expert, and if
// so adds gate times product. The launches of a stream run one after the other, so no two add at
// once.
// Cost removed: none yet, this is the start.
// Still limits it: latency. Warps wait for loads 69 % of the time (counters: L1 38 %, L2 20 %), and
// each token loads its weights again. With k = 2 of 64 experts 62 of 64 threads have nothing to do.
__global__ void add_expert(Task task, int expert) {
    const int col = static_cast<int>(blockIdx.x * kWarpSize + threadIdx.x);
    const int token = static_cast<int>(blockIdx.y * kWarps + threadIdx.y);
    if (token >= task.tokens || col >= task.width) return;
    for (int j = 0; j < task.chosen; ++j) {
        const int pair = token * task.chosen + j;
        if (task.choice[pair] != expert) continue;
        float sum = 0;
        for (int d = 0; d < task.hidden; ++d)
            sum += task.x[static_cast<std::size_t>(token) * task.hidden + d] *
                   task.weights[(static_cast<std::size_t>(expert) * task.hidden + d) * task.width + col];
        task.out[static_cast<std::size_t>(token) * task.width + col] += task.gate[pair] * sum;
    }
}

inline void launch_every_token(const Task& task, cudaStream_t stream) {
    launch_router(task, stream);
    cudaMemsetAsync(task.out, 0, sizeof(float) * task.tokens * task.width, stream);
    const dim3 block(kWarpSize, kWarps);
    const dim3 grid(course::ceil_div(task.width, kWarpSize), course::ceil_div(task.tokens, kWarps));
    for (int expert = 0; expert < task.experts; ++expert)
        add_expert<<<grid, block, 0, stream>>>(task, expert);
}

// --- Tokens in the order of their experts --------------------------------------------------------

// Idea: the pairs of each expert become adjacent: a counting sort. First a histogram (day 12) of
// each block's pairs, then a scan (day 16) of all counts, by expert and then by block, gives the
// first place of each block's pairs of each expert.
__global__ void count_pairs(Task task) {
    __shared__ int of_expert[kMostExperts];
    of_expert[threadIdx.x] = 0;
    __syncthreads();
    const auto pair = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
    if (pair < task.pairs()) atomicAdd(&of_expert[task.choice[pair]], 1);
    __syncthreads();
    const auto expert = static_cast<int>(threadIdx.x);
    if (expert < task.experts)
        task.counts[static_cast<std::size_t>(expert) * gridDim.x + blockIdx.x] = of_expert[expert];
}

constexpr int kScanBlock = 1024;

// One block. A thread sums a range of counts, the block scans these sums, and each thread replaces
// its range by places.
__global__ void scan_counts(Task task, int blocks) {
    __shared__ int sums[kScanBlock];
    const int total = task.experts * blocks;
    const int share = course::ceil_div(total, kScanBlock);
    const auto thread = static_cast<int>(threadIdx.x);
    const int first = min(thread * share, total);
    const int last = min(first + share, total);
    int sum = 0;
    for (int i = first; i < last; ++i)
        sum += task.counts[i];
    sums[thread] = sum;
    __syncthreads();
    for (int distance = 1; distance < kScanBlock; distance *= 2) {
        const int before = thread >= distance ? sums[thread - distance] : 0;
        __syncthreads();  // all have read
        sums[thread] += before;
        __syncthreads();
    }
    int place = sums[thread] - sum;  // exclusive
    for (int i = first; i < last; ++i) {
        const int count = task.counts[i];
        task.counts[i] = place;
        if (i % blocks == 0) task.starts[i / blocks] = place;
        place += count;
    }
    if (thread == 0) task.starts[task.experts] = task.pairs();
}

// A pair's place: the first of its block and expert, and the pairs before it in the block that have
// the same expert. So the order is stable: pairs of an expert keep their order, in every run.
__global__ void place_pairs(Task task) {
    __shared__ int choices[kBlock];
    const auto pair = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
    const auto thread = static_cast<int>(threadIdx.x);
    const int expert = pair < task.pairs() ? task.choice[pair] : -1;
    choices[thread] = expert;
    __syncthreads();
    if (expert < 0) return;
    int place = task.counts[static_cast<std::size_t>(expert) * gridDim.x + blockIdx.x];
    for (int i = 0; i < thread; ++i)
        place += choices[i] == expert ? 1 : 0;
    task.place[pair] = place;
    task.pair_at[place] = pair;
}

inline void launch_sort(const Task& task, cudaStream_t stream) {
    launch_router(task, stream);
    const unsigned blocks = course::blocks_for(task.pairs(), kBlock);
    count_pairs<<<blocks, kBlock, 0, stream>>>(task);
    scan_counts<<<1, kScanBlock, 0, stream>>>(task, static_cast<int>(blocks));
    place_pairs<<<blocks, kBlock, 0, stream>>>(task);
}

// --- A tile of an expert's rows ------------------------------------------------------------------

constexpr int kTileRows = 32;
constexpr int kTileCols = 64;
constexpr int kDepth = 32;
constexpr int kRows = kTileRows / kWarps;     // of a thread: 4 rows, kWarps apart
constexpr int kCols = kTileCols / kWarpSize;  // and 2 columns, kWarpSize apart

// The tiled product of day 5, coarsened, whose rows of X are those of the pairs at the places
// [first, first + rows), rows <= kTileRows. So tokens are not copied into the order of experts:
// only the addresses of loads change. A block of kWarpSize x kWarps threads calls it.
__device__ inline void multiply_tile(const Task& task, int expert, int first, int rows, int first_col,
                                     float (&sum)[kRows][kCols]) {
    __shared__ float x_tile[kTileRows][kDepth];
    __shared__ float w_tile[kDepth][kTileCols];
    const auto tx = static_cast<int>(threadIdx.x);
    const auto ty = static_cast<int>(threadIdx.y);
    const float* const weights = task.weights + static_cast<std::size_t>(expert) * task.hidden * task.width;
    std::size_t row_of_x[kRows];
    for (int i = 0; i < kRows; ++i) {
        const int row = ty + i * kWarps;
        const int pair = row < rows ? task.pair_at[first + row] : 0;
        row_of_x[i] = static_cast<std::size_t>(pair / task.chosen) * task.hidden;
        for (int j = 0; j < kCols; ++j)
            sum[i][j] = 0;
    }
    for (int d0 = 0; d0 < task.hidden; d0 += kDepth) {
        for (int i = 0; i < kRows; ++i) {
            const bool inside = ty + i * kWarps < rows && d0 + tx < task.hidden;
            x_tile[ty + i * kWarps][tx] = inside ? task.x[row_of_x[i] + d0 + tx] : 0;
        }
        for (int d = ty; d < kDepth; d += kWarps) {
            for (int j = 0; j < kCols; ++j) {
                const int col = first_col + tx + j * kWarpSize;
                const bool inside = d0 + d < task.hidden && col < task.width;
                w_tile[d][tx + j * kWarpSize] =
                    inside ? weights[static_cast<std::size_t>(d0 + d) * task.width + col] : 0;
            }
        }
        __syncthreads();  // the tiles are complete
        for (int d = 0; d < kDepth; ++d)
            for (int i = 0; i < kRows; ++i)
                for (int j = 0; j < kCols; ++j)
                    sum[i][j] += x_tile[ty + i * kWarps][d] * w_tile[d][tx + j * kWarpSize];
        __syncthreads();  // safe to overwrite
    }
}

// Adds gate times product of a tile to `out`. kAtomic: other blocks may add to the same elements.
template <bool kAtomic>
__device__ void add_tile(const Task& task, int expert, int first, int last, int first_col) {
    float sum[kRows][kCols];
    const int rows = min(last - first, kTileRows);
    multiply_tile(task, expert, first, rows, first_col, sum);
    for (int i = 0; i < kRows; ++i) {
        const int row = static_cast<int>(threadIdx.y) + i * kWarps;
        if (row >= rows) continue;
        const int pair = task.pair_at[first + row];
        float* const to = task.out + static_cast<std::size_t>(pair / task.chosen) * task.width;
        for (int j = 0; j < kCols; ++j) {
            const int col = first_col + static_cast<int>(threadIdx.x) + j * kWarpSize;
            if (col >= task.width) continue;
            if (kAtomic) {
                atomicAdd(to + col, task.gate[pair] * sum[i][j]);
            } else {
                to[col] += task.gate[pair] * sum[i][j];
            }
        }
    }
}

// Idea: a launch for each expert, as before, but only for the tokens that chose it, in tiles. A
// token has at most one row in a launch, and launches run one after the other, so += is safe.
// Cost removed: idle threads, and most loads of weights: a tile uses each of them for 32 tokens.
// Still limits it: the grids run in turn, and that of one expert does not fill the GPU. If 4,096
// tokens choose 2 of 64 experts, it has about 64 blocks. With 8 experts it has 512, and as many
// products take 1.14 ms in place of 5.94 (H200). The host waits for the counts in both cases.
__global__ void multiply_one(Task task, int expert, int first, int last) {
    add_tile<false>(task, expert, first + static_cast<int>(blockIdx.y) * kTileRows, last,
                    static_cast<int>(blockIdx.x) * kTileCols);
}

inline void launch_zeros(const Task& task, cudaStream_t stream) {
    cudaMemsetAsync(task.out, 0, sizeof(float) * task.tokens * task.width, stream);
}

// `starts`: room on the host for experts + 1 numbers.
inline void launch_sorted(const Task& task, int* starts, cudaStream_t stream) {
    launch_sort(task, stream);
    launch_zeros(task, stream);
    cudaMemcpyAsync(starts, task.starts, sizeof(int) * (task.experts + 1), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    const unsigned cols = course::ceil_div(task.width, kTileCols);
    for (int e = 0; e < task.experts; ++e) {
        if (starts[e] == starts[e + 1]) continue;
        const dim3 grid(cols, course::ceil_div(starts[e + 1] - starts[e], kTileRows));
        multiply_one<<<grid, dim3(kWarpSize, kWarps), 0, stream>>>(task, e, starts[e], starts[e + 1]);
    }
}

// --- One launch for all experts ------------------------------------------------------------------

// Idea: blockIdx.z is the expert, and the grid is large enough for the worst case: all tokens
// choose the same one. Blocks without rows return at once. Now the blocks of a token's experts run
// at the same time, so they add with atomics.
// Cost removed: the launches, and the host, which no longer needs the counts. Small experts run at
// the same time.
// Still limits it: shared memory (counters: 68 % busy, with L1 74 %). A thread has 4 x 2 results,
// so it reads 0.75 numbers per multiply-add. Of E T / 32 row tiles only about k T / 32 exist.
__global__ void multiply_atomic(Task task) {
    const auto expert = static_cast<int>(blockIdx.z);
    const int first = task.starts[expert] + static_cast<int>(blockIdx.y) * kTileRows;
    if (first >= task.starts[expert + 1]) return;  // the whole block
    add_tile<true>(task, expert, first, task.starts[expert + 1], static_cast<int>(blockIdx.x) * kTileCols);
}

inline dim3 worst_case(const Task& task) {
    return dim3(course::ceil_div(task.width, kTileCols), course::ceil_div(task.tokens, kTileRows),
                task.experts);
}

inline void launch_one_launch_atomic(const Task& task, cudaStream_t stream) {
    launch_sort(task, stream);
    launch_zeros(task, stream);
    multiply_atomic<<<worst_case(task), dim3(kWarpSize, kWarps), 0, stream>>>(task);
}

// --- Results are gathered ------------------------------------------------------------------------

// The product of a tile, stored at the places of its pairs.
__device__ inline void store_tile(const Task& task, int expert, int first, int last, int first_col) {
    float sum[kRows][kCols];
    const int rows = min(last - first, kTileRows);
    multiply_tile(task, expert, first, rows, first_col, sum);
    for (int i = 0; i < kRows; ++i) {
        const int row = static_cast<int>(threadIdx.y) + i * kWarps;
        for (int j = 0; j < kCols; ++j) {
            const int col = first_col + static_cast<int>(threadIdx.x) + j * kWarpSize;
            if (row < rows && col < task.width)
                task.result[static_cast<std::size_t>(first + row) * task.width + col] = sum[i][j];
        }
    }
}

// Idea: each pair's product has a place of its own. Then a thread for each element of the result
// adds up the k products of its token, in the order of its choices.
// Cost removed: atomics, and sums whose order differs from run to run. The products are written and
// read once more.
// Still limits it: shared memory (counters: 67 % busy, with L1 74 %). The grid is as above.
__global__ void multiply_stored(Task task) {
    const auto expert = static_cast<int>(blockIdx.z);
    const int first = task.starts[expert] + static_cast<int>(blockIdx.y) * kTileRows;
    if (first >= task.starts[expert + 1]) return;  // the whole block
    store_tile(task, expert, first, task.starts[expert + 1], static_cast<int>(blockIdx.x) * kTileCols);
}

__global__ void combine(Task task) {
    const auto token = static_cast<int>(blockIdx.x);
    const auto col = static_cast<int>(blockIdx.y * kBlock + threadIdx.x);
    if (col >= task.width) return;
    float sum = 0;
    for (int j = 0; j < task.chosen; ++j) {
        const int pair = token * task.chosen + j;
        sum += task.gate[pair] * task.result[static_cast<std::size_t>(task.place[pair]) * task.width + col];
    }
    task.out[static_cast<std::size_t>(token) * task.width + col] = sum;
}

inline void launch_combine(const Task& task, cudaStream_t stream) {
    const dim3 grid(task.tokens, course::ceil_div(task.width, kBlock));
    combine<<<grid, kBlock, 0, stream>>>(task);
}

inline void launch_one_launch_gather(const Task& task, cudaStream_t stream) {
    launch_sort(task, stream);
    multiply_stored<<<worst_case(task), dim3(kWarpSize, kWarps), 0, stream>>>(task);
    launch_combine(task, stream);
}

// --- A list of tiles -----------------------------------------------------------------------------

// The first row tile of each expert, and behind them the number of all. One block.
__global__ void list_tiles(Task task) {
    __shared__ int before[kMostExperts + 1];
    const auto expert = static_cast<int>(threadIdx.x);
    if (expert < task.experts)
        before[expert + 1] = course::ceil_div(task.starts[expert + 1] - task.starts[expert], kTileRows);
    __syncthreads();
    if (expert > 0) return;
    before[0] = 0;
    for (int e = 0; e <= task.experts; ++e)
        task.tiles[e] = before[e] += e > 0 ? before[e - 1] : 0;
}

// A tile of the list: its expert is the last one whose tiles start at it or before (binary search).
__device__ inline void store_listed(const Task& task, int tile, int first_col) {
    int low = 0;
    int high = task.experts;  // tiles[low] <= tile < tiles[high]
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (task.tiles[middle] <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const int first = task.starts[low] + (tile - task.tiles[low]) * kTileRows;
    store_tile(task, low, first, task.starts[low + 1], first_col);
}

// Idea: a grouped GEMM. All row tiles of all experts are one list; a block finds its expert by
// binary search. The k T pairs have at most k T / 32 + E tiles: of each expert, one is not full.
// Cost removed: blocks without rows, but for at most E.
// Still limits it: shared memory (counters: 72 % busy, with L1 78 %).
__global__ void multiply_listed(Task task) {
    const auto tile = static_cast<int>(blockIdx.y);
    if (tile >= task.tiles[task.experts]) return;  // the whole block
    store_listed(task, tile, static_cast<int>(blockIdx.x) * kTileCols);
}

inline void launch_tile_list(const Task& task, cudaStream_t stream) {
    launch_sort(task, stream);
    list_tiles<<<1, kMostExperts, 0, stream>>>(task);
    const dim3 grid(course::ceil_div(task.width, kTileCols), task.pairs() / kTileRows + task.experts);
    multiply_listed<<<grid, dim3(kWarpSize, kWarps), 0, stream>>>(task);
    launch_combine(task, stream);
}

// Idea: as many blocks as fit on the GPU, and block b takes the tiles b, b + blocks, ... of the
// list. The grid no longer depends on the tokens.
// Cost removed: blocks without rows, and the start of a block for each tile.
// Still limits it: latency. The loop over tiles takes 64 registers in place of 48, so an SM has 4
// blocks in place of 5, and no unit is busy (counters: L1 59 %, issue 58 %). It is slower.
__global__ void multiply_resident(Task task) {
    const int cols = course::ceil_div(task.width, kTileCols);
    const int all = task.tiles[task.experts] * cols;
    for (auto i = static_cast<int>(blockIdx.x); i < all; i += static_cast<int>(gridDim.x))
        store_listed(task, i / cols, i % cols * kTileCols);
}

inline void launch_resident(const Task& task, cudaStream_t stream) {
    launch_sort(task, stream);
    list_tiles<<<1, kMostExperts, 0, stream>>>(task);
    const unsigned blocks = course::resident_blocks(multiply_resident, kWarpSize * kWarps);
    multiply_resident<<<blocks, dim3(kWarpSize, kWarps), 0, stream>>>(task);
    launch_combine(task, stream);
}

}  // namespace day27

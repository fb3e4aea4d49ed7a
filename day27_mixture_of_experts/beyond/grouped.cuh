// Day 27, beyond: the grouped GEMM on tensor cores. x and the weights are BF16; sums are FP32.
//
//   version     what is new                                               what limits it
//   tile_each   a block for each tile of the list; mma.sync               L2
//   persistent  a block goes from tile to tile, and its copies for the    L2
//               next tile, often of another expert, start before the end
//
// Both are one kernel, multiply_groups, with two grids. mma.sync, ldmatrix and the XOR swizzle are
// the subject of day 40, and persistent blocks that of day 45. Here they are given. Routing and the
// weighted sum of a token's results are those of the core.
//
//   ./course run day27 --size 500x64x64x16x2         also in BF16
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/operands.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/tile_copies.cuh"

namespace day27 {

// A block computes BM x BN results of one expert, a warp WM x WN. BM is small, because at most one
// tile of each expert is not full, and its empty rows are multiplied, too.
struct GroupTile {
    using T = __nv_bfloat16;
    static constexpr int BM = 64, BN = 128, BK = 64, WM = 32, WN = 64, STAGES = 3;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
    static constexpr bool SWIZZLED = true;
};

struct GroupStage {
    course::SharedTile<GroupTile, GroupTile::BM, GroupTile::BK> x;
    course::SharedTile<GroupTile, GroupTile::BK, GroupTile::BN> weights;
};

// Arguments of the kernels. Names as in Task (router.cuh).
struct GroupedTask {
    const __nv_bfloat16* x;                      // [tokens, hidden]
    course::Batch<const __nv_bfloat16> weights;  // of each expert: hidden x width
    float* result;                               // [pairs, width]: of the pair at a place
    const int* starts;                           // [experts + 1]: the first place of each expert
    const int* pair_at;                          // [pairs]: the pair at a place
    int* tiles;                                  // [experts + 1]: the first row tile of each expert
    int hidden, width, experts, chosen;
};

// As list_tiles of the core, for tiles of BM rows. One block, with a thread for each expert and one
// more.
__global__ void list_groups(GroupedTask task) {
    extern __shared__ int row_tiles[];
    const auto expert = static_cast<int>(threadIdx.x);
    if (expert < task.experts)
        row_tiles[expert] = course::ceil_div(task.starts[expert + 1] - task.starts[expert], GroupTile::BM);
    __syncthreads();
    int before = 0;
    for (int e = 0; e < expert; ++e)
        before += row_tiles[e];
    task.tiles[expert] = before;
}

// The tiles of all experts are numbered: those of a row tile are adjacent.
class GroupList {
  public:
    struct Tile {
        int expert;
        int first;  // its rows are those of the places [first, first + rows)
        int rows;   // at most BM
        int first_col;
    };

    __device__ explicit GroupList(const GroupedTask& task)
        : task_(task),
          columns_(course::ceil_div(task.width, GroupTile::BN)),
          all_(task.tiles[task.experts] * columns_) {}

    __device__ bool has(int number) const { return number < all_; }

    // The expert is the last one whose tiles start at this row tile or before (binary search).
    __device__ Tile at(int number) const {
        const int row_tile = number / columns_;
        int low = 0;
        int high = task_.experts;  // tiles[low] <= row_tile < tiles[high]
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (task_.tiles[middle] <= row_tile) {
                low = middle;
            } else {
                high = middle;
            }
        }
        const int first = task_.starts[low] + (row_tile - task_.tiles[low]) * GroupTile::BM;
        return {low, first, min(task_.starts[low + 1] - first, GroupTile::BM),
                number % columns_ * GroupTile::BN};
    }

  private:
    const GroupedTask& task_;
    int columns_;
    int all_;
};

// One thread's share of copying BM rows of x by BK of K: chunks of 16 bytes at the same column of
// every ROWS_AT_ONCE-th row. The rows are not adjacent in x, so each has its own address.
// Out-of-range elements are zero-filled.
template <bool kAligned>
class GatheredRows {
    static constexpr int IN_CHUNK = course::kInChunk<__nv_bfloat16>;
    static constexpr int CHUNKS = GroupTile::BK / IN_CHUNK;
    static constexpr int ROWS_AT_ONCE = GroupTile::THREADS / CHUNKS;
    static constexpr int ROWS = GroupTile::BM / ROWS_AT_ONCE;

  public:
    __device__ GatheredRows(const GroupedTask& task, const GroupList::Tile& tile)
        : columns_left_(task.hidden - chunk() * IN_CHUNK), rows_left_(tile.rows - row()) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            // Of a row that does not exist nothing is loaded; but its address must be one of x.
            const bool exists = i * ROWS_AT_ONCE < rows_left_;
            const int pair = task.pair_at[exists ? tile.first + row() + i * ROWS_AT_ONCE : tile.first];
            source_[i] =
                task.x + static_cast<std::size_t>(pair / task.chosen) * task.hidden + chunk() * IN_CHUNK;
        }
    }

    // Copies these columns to `tile`, and goes on to the next BK columns.
    __device__ void copy_to(course::SharedTile<GroupTile, GroupTile::BM, GroupTile::BK>& tile) {
        const int in_row = max(0, min(columns_left_, IN_CHUNK));
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            __nv_bfloat16* const to = tile.chunk(row() + i * ROWS_AT_ONCE, chunk());
            const int valid = i * ROWS_AT_ONCE < rows_left_ ? in_row : 0;
            if constexpr (kAligned) {
                course::ptx::cp_async_16(to, source_[i],
                                         static_cast<unsigned>(valid * sizeof(__nv_bfloat16)));
            } else {
                for (int e = 0; e < IN_CHUNK; ++e)
                    to[e] = e < valid ? source_[i][e] : __nv_bfloat16(0.0f);
            }
            source_[i] += GroupTile::BK;
        }
        columns_left_ -= GroupTile::BK;
    }

  private:
    static __device__ int row() {
        return static_cast<int>(threadIdx.x) / CHUNKS;
    }
    static __device__ int chunk() {
        return static_cast<int>(threadIdx.x) % CHUNKS;
    }

    const __nv_bfloat16* source_[ROWS];
    int columns_left_;
    int rows_left_;  // from this thread's first row on
};

// The copies of one block: step after step, tile after tile, and from one expert to the next.
template <bool kAligned>
class GroupCopies {
    using Weights = course::TileCopies<GroupTile, GroupTile::BK, GroupTile::BN>;

  public:
    __device__ GroupCopies(const GroupedTask& task, const GroupList& list)
        : task_(task),
          list_(list),
          number_(static_cast<int>(blockIdx.x)),
          x_(task, list.at(number_)),
          weights_(weights_of(list.at(number_))) {}

    // Steps of a tile.
    __device__ int steps() const { return course::ceil_div(task_.hidden, GroupTile::BK); }

    // Issues the copies of the next step into `stage` and closes their group. After the last tile
    // the group is empty.
    __device__ void start(GroupStage& stage) {
        if (list_.has(number_)) {
            x_.copy_to(stage.x);
            weights_.template to<kAligned>(stage.weights);
            weights_.next_rows();
            if (++step_ == steps()) next_tile();
        }
        course::ptx::cp_async_commit();
    }

  private:
    __device__ Weights weights_of(const GroupList::Tile& tile) const {
        return {task_.weights[tile.expert], 0, tile.first_col};
    }

    __device__ void next_tile() {
        step_ = 0;
        number_ += static_cast<int>(gridDim.x);
        if (!list_.has(number_)) return;
        const GroupList::Tile tile = list_.at(number_);
        x_ = GatheredRows<kAligned>(task_, tile);
        weights_ = weights_of(tile);
    }

    const GroupedTask& task_;
    const GroupList& list_;
    int number_;
    int step_ = 0;
    GatheredRows<kAligned> x_;
    Weights weights_;
};

// The sums of a warp: 16 x 8 results each. Lane 4 g + t holds columns 2 t and 2 t + 1 of rows g and
// g + 8.
class GroupSums {
    static constexpr int ROWS = GroupTile::WM / 16, COLS = GroupTile::WN / 8;

  public:
    // Adds the products of one stage.
    __device__ void multiply(GroupStage& stage) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int k = 0; k < GroupTile::BK; k += 16) {
            unsigned a[ROWS][4];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                course::ptx::ldmatrix_x4(a[i],
                                         stage.x.chunk(warp_row() + i * 16 + lane % 16, k / 8 + lane / 16));
#pragma unroll
            for (int j = 0; j < COLS; j += 2) {
                unsigned b[4];  // of 16 columns
                course::ptx::ldmatrix_x4_trans(
                    b, stage.weights.chunk(k + lane % 16, warp_col() / 8 + j + lane / 16));
#pragma unroll
                for (int i = 0; i < ROWS; ++i) {
                    course::ptx::mma_m16n8k16_bf16(sums_[i][j], a[i], {b[0], b[1]});
                    course::ptx::mma_m16n8k16_bf16(sums_[i][j + 1], a[i], {b[2], b[3]});
                }
            }
        }
    }

    // Stores the results of a tile at the places of its pairs. kAligned: the width is a multiple of
    // 8, so pairs of results are aligned, and both in range or out of it.
    template <bool kAligned>
    __device__ void store(const GroupedTask& task, const GroupList::Tile& tile) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
#pragma unroll
            for (int lower = 0; lower < 2; ++lower) {
                const int row = warp_row() + i * 16 + lower * 8 + lane / 4;
                if (row >= tile.rows) continue;
                float* const to = task.result + static_cast<std::size_t>(tile.first + row) * task.width;
#pragma unroll
                for (int j = 0; j < COLS; ++j) {
                    const int col = tile.first_col + warp_col() + j * 8 + lane % 4 * 2;
                    const float left = sums_[i][j][lower * 2];
                    const float right = sums_[i][j][lower * 2 + 1];
                    if constexpr (kAligned) {
                        if (col < task.width) *reinterpret_cast<float2*>(to + col) = make_float2(left, right);
                    } else {
                        if (col < task.width) to[col] = left;
                        if (col + 1 < task.width) to[col + 1] = right;
                    }
                }
            }
        }
    }

  private:
    static __device__ int warp_row() {
        return static_cast<int>(threadIdx.x) / 32 / GroupTile::WARPS_N * GroupTile::WM;
    }
    static __device__ int warp_col() {
        return static_cast<int>(threadIdx.x) / 32 % GroupTile::WARPS_N * GroupTile::WN;
    }

    float sums_[ROWS][COLS][4] = {};
};

// Idea: a persistent grouped GEMM. Block b takes the tiles b, b + blocks, ... of all experts. Two
// stages are in flight while one is multiplied, also from one tile to the next, whose expert may be
// another one.
// Cost removed: a multiply-add as an instruction of its own; with persistent blocks, the latency of
// the first stage of each tile. With 16,384 tokens and k = 8 that gains nothing: tensor cores are
// 50 % busy with both grids.
// Still limits it: L2 (counters: 68 % busy; 66 % in persistent). A tile of 64 x 128 results copies
// 24 KB in each step of 64.
template <bool kAligned>
__global__ __launch_bounds__(GroupTile::THREADS) void multiply_groups(
    const __grid_constant__ GroupedTask task) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<GroupStage*>(memory);
    const GroupList list(task);
    auto number = static_cast<int>(blockIdx.x);
    if (!list.has(number)) return;  // the whole block
    GroupCopies<kAligned> copies(task, list);
    for (int stage = 0; stage < GroupTile::STAGES - 1; ++stage)
        copies.start(stages[stage]);
    int now = 0;
    int free = GroupTile::STAGES - 1;
    for (; list.has(number); number += static_cast<int>(gridDim.x)) {
        GroupSums sums;
        for (int step = 0; step < copies.steps(); ++step) {
            course::ptx::cp_async_wait<GroupTile::STAGES - 2>();
            __syncthreads();  // the stage is complete; the one before it is safe to overwrite
            copies.start(stages[free]);
            sums.multiply(stages[now]);
            free = now;
            now = now + 1 == GroupTile::STAGES ? 0 : now + 1;
        }
        sums.store<kAligned>(task, list.at(number));
    }
    course::ptx::cp_async_wait<0>();
}

constexpr std::size_t kGroupShared = sizeof(GroupStage) * GroupTile::STAGES;

// kPersistent: at most as many blocks as the GPU runs at the same time. Otherwise one for each tile
// that the list may have: of each expert, one row tile is not full.
template <bool kAligned, bool kPersistent>
void launch_groups(const GroupedTask& task, int pairs, cudaStream_t stream) {
    const auto threads = static_cast<unsigned>(task.experts + 1);
    list_groups<<<1, threads, sizeof(int) * task.experts, stream>>>(task);
    const auto kernel = multiply_groups<kAligned>;
    const unsigned all = static_cast<unsigned>(pairs / GroupTile::BM + task.experts) *
                         static_cast<unsigned>(course::ceil_div(task.width, GroupTile::BN));
    course::allow_shared_bytes(kernel, kGroupShared);
    const unsigned resident = course::resident_blocks(kernel, GroupTile::THREADS, kGroupShared);
    const unsigned grid = kPersistent ? std::min(all, resident) : all;
    course::launch(kernel, {grid, GroupTile::THREADS, kGroupShared, stream}, task);
}

}  // namespace day27

// Day 45: many matrix products at once, C[i] = alpha op(A[i]) op(B[i]) + beta C[i], in FP32.
// PMPP chapters 5 and 6 (both editions).
//
//   version            what is new                                  what limits it
//   one_thread_each    a thread for each element of each product    two loads for a multiply-add
//   tile_each          a block for each tile of each product        multiply-adds; filling the pipeline
//   pipelined          persistent blocks: the copies for a tile     multiply-adds; what of a tile
//                      start while the one before is multiplied     lies outside C
//   pipelined_128x128  half the tile, two blocks on an SM           multiply-adds; more copies
//   pipelined_64x64    an eighth of the tile, six blocks on an SM   loads from shared memory
//   fitted             the tile that suits the shape                multiply-adds
//
// From tile_each on, all versions are one kernel, multiply_tiles_in_turn. Its tile and its grid
// differ: tile_each launches a block for each tile, the others as many blocks as the GPU runs at a
// time. Each kernel is followed by its launch. beyond/ does the same on tensor cores.
//
//   ./course run day45 --size 8x256x256x64                  each layout of A and B
//   ./course run day45 --program                            program.cu: a batch, from main() to the result
//   ./course inspect day45 --only pipelined --size 1x512x512x64
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "batched_matmul.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/fragments.cuh"
#include "common/tile/loader.cuh"
#include "common/tile/tile_order.cuh"

namespace day45 {

__device__ inline float element_of(const course::DeviceMatrix<const float>& matrix, course::Op op,
                                   std::size_t row, std::size_t col) {
    return op == course::Op::kNone ? matrix(row, col) : matrix(col, row);
}

// Idea: a thread for each element of each C. The number of a thread determines product, row and
// column.
// Cost removed: a launch for each product.
// Still limits it: every multiply-add waits for two loads.
__global__ void multiply_one_thread_each(const BatchedMatmul matmul) {
    const course::Operands& operands = matmul.operands;
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t in_product = i % (operands.m() * operands.n());
    const std::size_t product = i / (operands.m() * operands.n());
    if (product >= operands.count()) return;
    const std::size_t row = in_product / operands.n();
    const std::size_t col = in_product % operands.n();
    const course::DeviceMatrix<const float> a = operands.a[product];
    const course::DeviceMatrix<const float> b = operands.b[product];
    float sum = 0;
    for (std::size_t k = 0; k < operands.k(); ++k)
        sum += element_of(a, operands.op_a, row, k) * element_of(b, operands.op_b, k, col);
    float& element = matmul.c[product](row, col);
    // With beta = 0, C may hold anything, because it is not read.
    element = matmul.beta == 0 ? matmul.alpha * sum : matmul.alpha * sum + matmul.beta * element;
}

inline void launch_multiply_one_thread_each(const BatchedMatmul& matmul, cudaStream_t stream) {
    constexpr int kThreads = 256;
    const std::size_t elements = matmul.c.first.rows() * matmul.c.first.cols() * matmul.c.count;
    multiply_one_thread_each<<<course::blocks_for(elements, kThreads), kThreads, 0, stream>>>(matmul);
}

// The copies of one block: step after step along K, tile after tile of C. A step is BK columns of
// op(A) and BK rows of op(B). The step after the last one of a tile is the first one of the next
// tile.
//
// LoaderA and LoaderB copy one matrix, float by float or float4 by float4 (common/tile/loader.cuh).
template <class T, class LoaderA, class LoaderB>
class CopiesAhead {
  public:
    __device__ CopiesAhead(const course::Operands& operands, const course::EveryTile<T>& tiles)
        : operands_(operands),
          tiles_(tiles),
          steps_(max(static_cast<int>(course::ceil_div<std::size_t>(operands.k(), T::BK)), 1)),
          last_depth_(static_cast<int>(operands.k()) - (steps_ - 1) * T::BK),
          tile_(tiles.first()) {
        begin_tile();
    }

    // Steps of a tile.
    __device__ int steps() const { return steps_; }

    // From the next step on, so many steps of the same tile are in range, and their copies need no
    // bounds check.
    __device__ int whole_steps() const {
        return has_tile_ && a_.is_whole() && b_.is_whole() ? steps_ - (last_depth_ < T::BK) - step_ : 0;
    }

    // Issues the copies of the next step into `stage` and closes their group. WHOLE: the step is in
    // range. After the last tile the stage is zero-filled.
    template <bool WHOLE>
    __device__ void start(course::Stage<T>& stage) {
        const int depth = !has_tile_ ? 0 : step_ + 1 < steps_ ? T::BK : last_depth_;
        a_.template start<WHOLE>(a_is_k_major(), depth, stage.a);
        b_.template start<WHOLE>(b_is_k_major(), depth, stage.b);
        course::ptx::cp_async_commit();
    }

    // Counts `steps` that have been started, all of one tile.
    __device__ void move_on(int steps) {
        step_ += steps;
        if (step_ < steps_) return;
        step_ = 0;
        tile_ = tiles_.next(tile_);
        begin_tile();
    }

  private:
    __device__ void begin_tile() {
        has_tile_ = tiles_.has(tile_);
        if (!has_tile_) return;
        const course::Tile tile = tiles_.at(tile_);
        a_.begin(operands_.a[tile.product], a_is_k_major(), tile.row);
        b_.begin(operands_.b[tile.product], b_is_k_major(), tile.col);
    }

    __device__ bool a_is_k_major() const { return operands_.op_a == course::Op::kNone; }
    __device__ bool b_is_k_major() const { return operands_.op_b == course::Op::kTranspose; }

    const course::Operands& operands_;
    const course::EveryTile<T>& tiles_;
    int steps_;
    int last_depth_;  // of K, in the last step
    int step_ = 0;    // the next one
    unsigned tile_;
    bool has_tile_ = false;
    LoaderA a_;
    LoaderB b_;
};

// Idea: a block multiplies one tile after the other, and its copies are STAGES - 1 steps ahead.
// They do not stop at the end of a tile: while its last steps are multiplied, and while C is
// written, the first steps of the next tile are in flight.
// Cost removed: two loads for each multiply-add, by tiles in shared memory and registers; with
// fewer blocks than tiles, the time in which the pipeline fills, three of the eight steps of K =
// 64.
// Still limits it: the multiply-adds (counters: FMA 74 % busy, issue slots 78 %), and those that a
// tile spends outside C. With tiles of 64 x 64 also shared memory (71 % busy).
template <class T, int BLOCKS, class LoaderA, class LoaderB>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_tiles_in_turn(
    const __grid_constant__ course::Operands operands, const __grid_constant__ course::EveryTile<T> tiles,
    const __grid_constant__ course::Batch<float> c, float alpha, float beta) {
    static_assert(T::STAGES >= 2 && T::BK % 2 == 0, "the fragments alternate, and end where they began");
    constexpr int AHEAD = T::STAGES - 1;
    extern __shared__ float4 memory[];
    auto* const stages = reinterpret_cast<course::Stage<T>*>(memory);
    const course::Place place = course::place_of_thread<T>(static_cast<int>(threadIdx.x));

    // Prologue: the pipeline fills, once for all tiles of the block.
    CopiesAhead<T, LoaderA, LoaderB> copies(operands, tiles);
    for (int stage = 0; stage < AHEAD; ++stage) {
        copies.template start<false>(stages[stage]);
        copies.move_on(1);
    }
    course::ptx::cp_async_wait<AHEAD - 1>();
    __syncthreads();  // the first stage is complete
    course::Fragments<T> fragments[2];
    fragments[0].read(stages[0], 0, place);
    int now = 0;       // the stage that is multiplied
    int free = AHEAD;  // the stage that is filled next

    // One step: BK outer products of a column of A and a row of B. The fragments of the next one
    // are read from shared memory between the multiply-adds of this one.
    const auto multiply_step = [&](float(&sums)[T::TM][T::TN], auto start_copies) {
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k == T::COPY_AT) {
                start_copies(stages[free]);
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == T::BK - 1) {
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next stage is complete; this one is safe to overwrite
                now = now + 1 == T::STAGES ? 0 : now + 1;
            }
            course::multiply_and_read_ahead<T>(fragments[k % 2], sums, fragments[(k + 1) % 2], stages[now],
                                               (k + 1) % T::BK, place);
        }
    };
    for (unsigned tile = tiles.first(); tiles.has(tile); tile = tiles.next(tile)) {
        float sums[T::TM][T::TN] = {};
        // Main loop. One bounds check serves a run of steps, because a branch between the
        // multiply-adds would prevent the compiler from moving loads away from the use of their
        // values.
        for (int left = copies.steps(); left > 0;) {
            const int whole = min(copies.whole_steps(), left);
#pragma unroll 1
            for (int step = 0; step < whole; ++step)
                multiply_step(sums, [&](course::Stage<T>& stage) { copies.template start<true>(stage); });
            copies.move_on(whole);
            left -= whole;
            if (whole > 0) continue;
            multiply_step(sums, [&](course::Stage<T>& stage) { copies.template start<false>(stage); });
            copies.move_on(1);
            --left;
        }
        // Epilogue. alpha * sum gets a register of its own: see write_tile().
        const course::ThreadTileCoords<T> at{tiles.at(tile)};
        const course::DeviceMatrix<float> matrix = c[at.tile.product];
        if (beta == 0) {
            course::write_tile(at, matrix, [&](int i, int j) { return alpha * sums[i][j]; });
        } else {
            course::write_tile(at, matrix, [&](int i, int j) {
                return alpha * sums[i][j] + beta * matrix(at.row(i), at.col(j));
            });
        }
    }
    course::ptx::cp_async_wait<0>();
}

// The loaders for any layout and alignment copy float by float. If rows of A (B) are MN-major and
// 16-byte aligned, course::PackLoader copies float4 by float4.
template <class T>
using ElementsA = course::ElementLoader<T::BM, T::BK, T::THREADS>;
template <class T>
using ElementsB = course::ElementLoader<T::BN, T::BK, T::THREADS>;

// PERSISTENT: at most as many blocks as the GPU runs at the same time. Otherwise one for each tile.
template <class T, int BLOCKS, bool PERSISTENT, class LoaderA = ElementsA<T>, class LoaderB = ElementsB<T>>
void launch_multiply_tiles_in_turn(const BatchedMatmul& matmul, cudaStream_t stream) {
    constexpr std::size_t kShared = sizeof(course::Stage<T>) * T::STAGES;
    const auto tiles = course::every_tile<T>(matmul.operands);
    unsigned grid = tiles.all;
    if (PERSISTENT) {
        const auto general = multiply_tiles_in_turn<T, BLOCKS, ElementsA<T>, ElementsB<T>>;
        course::allow_shared_bytes(general, kShared);  // more than 48 KB
        grid = std::min(grid, course::resident_blocks(general, T::THREADS, kShared));
    }
    // As <<<grid, T::THREADS, kShared, stream>>>, with a check of errors.
    course::launch(multiply_tiles_in_turn<T, BLOCKS, LoaderA, LoaderB>, {grid, T::THREADS, kShared, stream},
                   matmul.operands, tiles, matmul.c, matmul.alpha, matmul.beta);
}

}  // namespace day45

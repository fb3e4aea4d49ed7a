// The main loop of every kernel of day 45: a block multiplies one tile after the other, and hands each of them over when it is done.
//
//     walk      which tiles are this block's, and in which order; if it has is_idle(), also in which of them this warp has
//               nothing to multiply
//     add       what becomes of a pair of factors: a product to be added up, or a squared difference
//     take      what becomes of a finished tile: the kernel's epilogue
//
// The copies do not stop at the end of a tile. While the last of K of one tile is multiplied, and while it is taken, the first of
// the next is on its way: a short K does not cost the time that a pipeline takes to fill.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/fragments.cuh"
#include "common/tile/tile_shape.cuh"
#include "factors.hpp"

namespace day45 {

// Where a tile begins in C, and in the C of which product.
struct Tile {
    std::size_t product;
    std::size_t row;
    std::size_t col;
};

// One stage: a tile of A and one of B, K going down.
template <class T>
struct alignas(16) Stage {
    // What is copied from rows along K comes 8 floats of 4 rows at a time; with four floats more in a row of the stage, they go to 32
    // different banks.
    static constexpr int PAD = 4;
    float a[T::BK][T::BM + PAD];
    float b[T::BK][T::BN + PAD];
};

// A thread's share of the tiles of one matrix that follow each other along K: EXTENT of its rows or columns, BK at a time.
//
// In shared memory K goes down. Where the matrix's rows run along K (A; B transposed), they become columns; where they run across K
// (B; A transposed), they stay rows. Either way the thread's n-th float lies n equal steps behind its first one, in global memory and
// in shared memory. So one loop does both, for any alignment: each float is an asynchronous copy of 4 bytes.
template <int EXTENT, int BK, int THREADS>
class TileCopy {
    static constexpr int COUNT = EXTENT * BK / THREADS;  // floats that a thread copies of a tile
    static constexpr int ROWS = THREADS / BK;      // along K: rows of the matrix that are copied at a time
    static constexpr int DEEP = THREADS / EXTENT;  // across K: the same
    static_assert(BK == 8 && EXTENT % ROWS == 0,
                  "TileCopy: along K, all threads copy a number of rows at a time");
    static_assert(THREADS % EXTENT == 0 && BK % DEEP == 0,
                  "TileCopy: across K, all threads copy a number of rows at a time");

  public:
    // The tiles from row or column `first` on, which is one of the matrix's. `along`: its rows run along K.
    __device__ void begin(const course::DeviceMatrix<const float>& matrix, bool along, std::size_t first) {
        const auto pitch = static_cast<int>(matrix.leading_dimension());
        const std::size_t extent = along ? matrix.rows() : matrix.cols();
        from_ = matrix.data() + (along ? (first + e(along)) * pitch + k(along)
                                       : std::size_t(k(along)) * pitch + first + e(along));
        step_ = (along ? ROWS : DEEP) * pitch;
        inside_ = static_cast<int>(min(extent - first, std::size_t{EXTENT}));
    }

    // Do all of the matrix's rows or columns that the tiles have lie within it?
    __device__ bool is_whole() const { return inside_ == EXTENT; }

    // Starts to copy the next tile. WHOLE: all of it lies within the matrix; otherwise the first `depth` of K do. What lies outside is 0.
    template <bool WHOLE, int STRIDE>
    __device__ void start(bool along, int depth, float (&tile)[BK][STRIDE]) {
        float* const to = &tile[k(along)][e(along)];
        const int to_step = along ? ROWS : DEEP * STRIDE;
        const int e_step = along ? ROWS : 0;
        const int k_step = along ? 0 : DEEP;
#pragma unroll
        for (int n = 0; n < COUNT; ++n) {
            course::ptx::cp_async_4(
                to + n * to_step, from_ + n * std::ptrdiff_t{step_},
                WHOLE || (e(along) + n * e_step < inside_ && k(along) + n * k_step < depth));
        }
        from_ += along ? BK : COUNT * std::ptrdiff_t{step_};
    }

  private:
    // Of the thread's first float in the tile: column, and row.
    static __device__ int e(bool along) {
        return static_cast<int>(along ? threadIdx.x / BK : threadIdx.x % EXTENT);
    }
    static __device__ int k(bool along) {
        return static_cast<int>(along ? threadIdx.x % BK : threadIdx.x / EXTENT);
    }

    const float* from_ = nullptr;
    int step_ = 0;    // in global memory, to the thread's next float
    int inside_ = 0;  // rows or columns of the tile that lie within the matrix
};

// The same for a matrix whose rows run across K, are aligned to 16 bytes and whole numbers of float4: a quarter of the copies.
template <int EXTENT, int BK, int THREADS>
class PackCopy {
    static constexpr int QUADS = EXTENT / 4;      // in a row
    static constexpr int ROWS = THREADS / QUADS;  // copied at a time
    static_assert(THREADS % QUADS == 0 && BK % ROWS == 0,
                  "PackCopy: every thread must copy the same number of float4");

  public:
    __device__ void begin(const course::DeviceMatrix<const float>& matrix, bool, std::size_t first) {
        pitch_ = static_cast<int>(matrix.leading_dimension());
        from_ = matrix.data() + std::size_t(row()) * pitch_ + first + col();
        inside_ = static_cast<int>(min(matrix.cols() - first, std::size_t{EXTENT}));
    }

    __device__ bool is_whole() const { return inside_ == EXTENT; }

    template <bool WHOLE, int STRIDE>
    __device__ void start(bool, int depth, float (&tile)[BK][STRIDE]) {
#pragma unroll
        for (int r = 0; r < BK; r += ROWS) {
            const bool valid = WHOLE || (col() < inside_ && row() + r < depth);
            course::ptx::cp_async_16(&tile[row() + r][col()], from_ + r * std::ptrdiff_t{pitch_},
                                     valid ? 16 : 0);
        }
        from_ += BK * std::ptrdiff_t{pitch_};
    }

  private:
    static __device__ int row() {
        return static_cast<int>(threadIdx.x) / QUADS;
    }
    static __device__ int col() {
        return static_cast<int>(threadIdx.x) % QUADS * 4;
    }

    const float* from_ = nullptr;
    int pitch_ = 0;
    int inside_ = 0;  // columns of the tile that lie within the matrix
};

// Both matrices' tiles along K, for the tiles of C that `walk` names, one after the other. Behind the last one stand zeros.
// CopyA and CopyB: one of the two above.
template <class T, class CopyA, class CopyB, class Walk>
class Copies {
  public:
    __device__ Copies(const Factors& factors, const Walk& walk)
        : factors_(factors),
          walk_(walk),
          steps_(max(static_cast<int>(course::ceil_div<std::size_t>(factors.k(), T::BK)), 1)),
          last_depth_(static_cast<int>(factors.k()) - (steps_ - 1) * T::BK),
          tile_(walk.first()) {
        begin_tile();
    }

    // Steps of BK that a tile takes.
    __device__ int steps() const { return steps_; }

    // How many steps from the next one on belong to the same tile, and lie within the matrices?
    __device__ int whole_steps() const {
        return has_tile_ && a_.is_whole() && b_.is_whole() ? steps_ - (last_depth_ < T::BK) - step_ : 0;
    }

    // Starts to copy the next step into `stage`, and closes its group. WHOLE: it is one of the whole ones.
    template <bool WHOLE>
    __device__ void start(Stage<T>& stage) {
        const int depth = !has_tile_ ? 0 : step_ + 1 < steps_ ? T::BK : last_depth_;
        a_.template start<WHOLE>(a_runs_along(), depth, stage.a);
        b_.template start<WHOLE>(b_runs_along(), depth, stage.b);
        course::ptx::cp_async_commit();
    }

    // `steps` more have been started, of one tile.
    __device__ void move_on(int steps) {
        step_ += steps;
        if (step_ < steps_) return;
        step_ = 0;
        tile_ = walk_.next(tile_);
        begin_tile();
    }

  private:
    __device__ void begin_tile() {
        has_tile_ = walk_.has(tile_);
        if (!has_tile_) return;
        const Tile tile = walk_.at(tile_);
        a_.begin(factors_.a[tile.product], a_runs_along(), tile.row);
        b_.begin(factors_.b[tile.product], b_runs_along(), tile.col);
    }

    __device__ bool a_runs_along() const { return factors_.op_a == Op::kNone; }
    __device__ bool b_runs_along() const { return factors_.op_b == Op::kTranspose; }

    const Factors& factors_;
    const Walk& walk_;
    int steps_;
    int last_depth_;
    int step_ = 0;
    unsigned tile_;
    bool has_tile_ = false;
    CopyA a_;
    CopyB b_;
};

// Has this warp nothing to multiply of a tile? Most walks do not ask.
template <class Walk>
__device__ bool is_idle(const Walk& walk, unsigned tile) {
    if constexpr (requires { walk.is_idle(tile); }) {
        return walk.is_idle(tile);
    } else {
        return false;
    }
}

// All threads of the block call it; `stages` are STAGES of them.
template <class T, class CopyA, class CopyB, class Walk, class Add, class Take>
__device__ void multiply_tiles(const Factors& factors, const Walk& walk, Stage<T>* stages, const Add& add,
                               Take take) {
    static_assert(T::STAGES >= 2, "multiply_tiles: one stage to multiply and at least one on its way");
    static_assert(T::BK % 2 == 0,
                  "multiply_tiles: the fragments of the next step must fall to the first of the two");
    constexpr int AHEAD = T::STAGES - 1;  // steps on their way or ready
    const course::Place place = course::place_of_thread<T>(static_cast<int>(threadIdx.x));
    Copies<T, CopyA, CopyB, Walk> copies(factors, walk);
    for (int stage = 0; stage < AHEAD; ++stage) {
        copies.template start<false>(stages[stage]);
        copies.move_on(1);
    }
    course::ptx::cp_async_wait<AHEAD - 1>();
    __syncthreads();  // the first stage is complete

    course::Fragments<T> fragments[2];
    fragments[0].read(stages[0], 0, place);
    int now = 0;
    int free = AHEAD;
    // An idle warp copies, and meets the others at the barrier.
    const auto multiply_step = [&](bool idle, float(&sums)[T::TM][T::TN], auto start_copies) {
#pragma unroll
        for (int k = 0; k < T::BK; ++k) {
            if (k == T::COPY_AT) {
                start_copies(stages[free]);
                free = free + 1 == T::STAGES ? 0 : free + 1;
            }
            if (k == T::BK - 1) {
                course::ptx::cp_async_wait<AHEAD - 1>();
                __syncthreads();  // the next stage is complete, and nobody needs this one any more
                now = now + 1 == T::STAGES ? 0 : now + 1;
            }
            if (idle) continue;
            course::multiply_and_read_ahead<T>(fragments[k % 2], sums, fragments[(k + 1) % 2], stages[now],
                                               (k + 1) % T::BK, place, add);
        }
        if (idle) fragments[0].read(stages[now], 0, place);
    };
    for (unsigned tile = walk.first(); walk.has(tile); tile = walk.next(tile)) {
        const bool idle = is_idle(walk, tile);
        float sums[T::TM][T::TN] = {};
        for (int left = copies.steps(); left > 0;) {
            const int whole = min(copies.whole_steps(), left);
#pragma unroll 1
            for (int step = 0; step < whole; ++step)
                multiply_step(idle, sums, [&](Stage<T>& stage) { copies.template start<true>(stage); });
            copies.move_on(whole);
            left -= whole;
            if (whole > 0) continue;
            multiply_step(idle, sums, [&](Stage<T>& stage) { copies.template start<false>(stage); });
            copies.move_on(1);
            --left;
        }
        take(walk.at(tile), sums);
    }
    course::ptx::cp_async_wait<0>();
}

}  // namespace day45

// Loaders of FP32 tiles: from global memory to shared memory by asynchronous copies, for any
// layout, alignment and shape. For days whose subject is not data movement; day 38 teaches that.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/operands.hpp"
#include "common/device/ptx.cuh"

namespace course {

// The product that a tile belongs to, and the position of the tile in its C.
struct Tile {
    std::size_t product;
    std::size_t row;
    std::size_t col;
};

// One stage of the pipeline: a tile of A and one of B. Each row has one value of k.
template <class T>
struct alignas(16) Stage {
    // Padding against bank conflicts: the copies of a K-major matrix store 8 floats of 4 rows at a
    // time. With 4 more floats in a row of the stage they go to 32 different banks.
    static constexpr int PAD = 4;
    float a[T::BK][T::BM + PAD];
    float b[T::BK][T::BN + PAD];
};

// One thread's copies of the tiles of one matrix, step by step along K: EXTENT rows or columns, BK
// at a time, float by float.
//
// A row of the tile has one value of k. So the rows of a K-major matrix (A; B transposed) become
// columns; those of an MN-major one (B; A transposed) stay rows. Either way, the n-th float of a
// thread is n equal strides after its first one, in global and in shared memory, so one loop copies
// both kinds.
template <int EXTENT, int BK, int THREADS>
class ElementLoader {
    static constexpr int COUNT = EXTENT * BK / THREADS;  // floats of a thread, per tile
    static constexpr int ROWS = THREADS / BK;            // K-major: rows of the matrix per pass
    static constexpr int DEEP = THREADS / EXTENT;        // MN-major: the same
    static_assert(BK == 8 && EXTENT % ROWS == 0,
                  "ElementLoader: K-major, a pass of all threads is a number of rows");
    static_assert(THREADS % EXTENT == 0 && BK % DEEP == 0,
                  "ElementLoader: MN-major, a pass of all threads is a number of rows");

  public:
    // `first`: the row or column of the matrix where its tiles begin. k_major: its rows run along
    // K.
    __device__ void begin(const DeviceMatrix<const float>& matrix, bool k_major, std::size_t first) {
        const auto pitch = static_cast<int>(matrix.leading_dimension());
        const std::size_t extent = k_major ? matrix.rows() : matrix.cols();
        from_ =
            matrix.data() + (k_major ? (first + along_extent(k_major)) * pitch + along_k(k_major)
                                     : std::size_t(along_k(k_major)) * pitch + first + along_extent(k_major));
        step_ = (k_major ? ROWS : DEEP) * pitch;
        inside_ = static_cast<int>(min(extent - first, std::size_t{EXTENT}));
    }

    // All EXTENT rows or columns are in range.
    __device__ bool is_whole() const { return inside_ == EXTENT; }

    // Issues the copies of the next tile. WHOLE: all of it is in range; otherwise its first `depth`
    // of K are. Out-of-range elements are zero-filled.
    template <bool WHOLE, int STRIDE>
    __device__ void start(bool k_major, int depth, float (&tile)[BK][STRIDE]) {
        float* const to = &tile[along_k(k_major)][along_extent(k_major)];
        const int to_step = k_major ? ROWS : DEEP * STRIDE;
        const int e_step = k_major ? ROWS : 0;
        const int k_step = k_major ? 0 : DEEP;
#pragma unroll
        for (int n = 0; n < COUNT; ++n) {
            ptx::cp_async_4(to + n * to_step, from_ + n * std::ptrdiff_t{step_},
                            WHOLE || (along_extent(k_major) + n * e_step < inside_ &&
                                      along_k(k_major) + n * k_step < depth));
        }
        from_ += k_major ? BK : COUNT * std::ptrdiff_t{step_};
    }

  private:
    // The position of the thread's first float in the tile.
    static __device__ int along_extent(bool k_major) {
        return static_cast<int>(k_major ? threadIdx.x / BK : threadIdx.x % EXTENT);
    }
    static __device__ int along_k(bool k_major) {
        return static_cast<int>(k_major ? threadIdx.x % BK : threadIdx.x / EXTENT);
    }

    const float* from_ = nullptr;
    int step_ = 0;    // in global memory, to the next float of the thread
    int inside_ = 0;  // rows or columns in range
};

// The same for an MN-major matrix whose rows are 16-byte aligned and whole numbers of float4: a
// quarter of the copies.
template <int EXTENT, int BK, int THREADS>
class PackLoader {
    static constexpr int QUADS = EXTENT / 4;      // in a row
    static constexpr int ROWS = THREADS / QUADS;  // copied at a time
    static_assert(THREADS % QUADS == 0 && BK % ROWS == 0,
                  "PackLoader: every thread must copy the same number of float4");

  public:
    __device__ void begin(const DeviceMatrix<const float>& matrix, bool, std::size_t first) {
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
            ptx::cp_async_16(&tile[row() + r][col()], from_ + r * std::ptrdiff_t{pitch_}, valid ? 16 : 0);
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
    int inside_ = 0;  // columns in range
};

// The copies of one block: step by step along K, tile by tile of C, in the order of `walk`. After
// the last tile, stages are zero-filled. LoaderA and LoaderB: one of the two above.
template <class T, class LoaderA, class LoaderB, class Walk>
class TileLoader {
  public:
    __device__ TileLoader(const Operands& operands, const Walk& walk)
        : operands_(operands),
          walk_(walk),
          steps_(max(static_cast<int>(ceil_div<std::size_t>(operands.k(), T::BK)), 1)),
          last_depth_(static_cast<int>(operands.k()) - (steps_ - 1) * T::BK),
          tile_(walk.first()) {
        begin_tile();
    }

    // Steps of a tile.
    __device__ int steps() const { return steps_; }

    // The number of steps of the same tile, from the next one on, that are in range. Their copies
    // need no bounds check.
    __device__ int whole_steps() const {
        return has_tile_ && a_.is_whole() && b_.is_whole() ? steps_ - (last_depth_ < T::BK) - step_ : 0;
    }

    // Issues the copies of the next step into `stage` and closes their group. WHOLE: the step is in
    // range.
    template <bool WHOLE>
    __device__ void start(Stage<T>& stage) {
        const int depth = !has_tile_ ? 0 : step_ + 1 < steps_ ? T::BK : last_depth_;
        a_.template start<WHOLE>(a_is_k_major(), depth, stage.a);
        b_.template start<WHOLE>(b_is_k_major(), depth, stage.b);
        ptx::cp_async_commit();
    }

    // Counts `steps` that have been started, all of one tile.
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
        a_.begin(operands_.a[tile.product], a_is_k_major(), tile.row);
        b_.begin(operands_.b[tile.product], b_is_k_major(), tile.col);
    }

    __device__ bool a_is_k_major() const { return operands_.op_a == Op::kNone; }
    __device__ bool b_is_k_major() const { return operands_.op_b == Op::kTranspose; }

    const Operands& operands_;
    const Walk& walk_;
    int steps_;
    int last_depth_;
    int step_ = 0;
    unsigned tile_;
    bool has_tile_ = false;
    LoaderA a_;
    LoaderB b_;
};

}  // namespace course

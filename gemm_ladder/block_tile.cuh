// How the threads of a block bring a tile of A or B into shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/pack.cuh"
#include "tile.cuh"

namespace gemm {

// What a thread loads of a tile that is COLS wide, and of the tiles that follow it when the window moves: packs of VEC neighbours.
// Neighbouring threads have neighbouring packs of a row. The tile may lie beyond the edge of the matrix.
// The thread's address is worked out once; a move only adds to it, and what asks about edges is the same for all threads.
template <int COLS, int VEC = 1>
class Window {
  public:
    using Pack = course::Pack<float, VEC>;
    static_assert(COLS % VEC == 0, "Window: a row of the tile is a whole number of packs");

    // Of `matrix`, the first tile beginning at (row, col).
    __device__ Window(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col)
        : matrix_(matrix),
          row_(row),
          col_(col),
          elements_(matrix.data() + (row + first_row()) * matrix.leading_dimension() + (col + first_col())) {}

    // Where in the tile the thread's first pack belongs.
    static __device__ int first_row() { return static_cast<int>(threadIdx.x) * VEC / COLS; }
    static __device__ int first_col() { return static_cast<int>(threadIdx.x) * VEC % COLS; }

    // The pack `down` rows below the first. Instead of what lies beyond the edge stands 0; only a pack that lies partly beyond it
    // is loaded one by one.
    __device__ Pack load(int down) const {
        const float* const elements = elements_ + down * matrix_.leading_dimension();
        const int inside =
            left(matrix_.rows(), row_) > first_row() + down ? left(matrix_.cols(), col_) - first_col() : 0;
        if (inside >= VEC) return Pack::load(elements);
        Pack pack{};
#pragma unroll
        for (int j = 0; j < VEC - 1; ++j) {
            if (j < inside) pack.value[j] = elements[j];
        }
        return pack;
    }

    // Does a tile of `rows` rows lie inside the matrix, all of it? All threads get the same answer.
    __device__ bool is_whole(int rows) const {
        return row_ + rows <= matrix_.rows() && col_ + COLS <= matrix_.cols();
    }

    // As load(), without asking: of a whole tile.
    __device__ Pack load_inside(int down) const {
        return Pack::load(elements_ + down * matrix_.leading_dimension());
    }

    __device__ void move_right(int cols) {
        elements_ += cols;
        col_ += cols;
    }

    __device__ void move_down(int rows) {
        elements_ += rows * matrix_.leading_dimension();
        row_ += rows;
    }

  private:
    // Elements from `begin` to `end`; farther than any tile reaches, it does not matter how many.
    static __device__ int left(std::size_t end, std::size_t begin) {
        constexpr int kFar = 1024;
        if (begin >= end) return 0;
        return end - begin < kFar ? static_cast<int>(end - begin) : kFar;
    }

    DeviceMatrix<const float> matrix_;
    std::size_t row_;
    std::size_t col_;
    const float* elements_;
};

// THREADS threads load a tile, element by element.
template <int THREADS, int ROWS, int COLS>
__device__ void load_tile(const Window<COLS>& window, float (&tile)[ROWS][COLS]) {
    static_assert(THREADS % COLS == 0, "load_tile: the threads together load whole rows");
    static_assert(ROWS % (THREADS / COLS) == 0, "load_tile: every thread loads the same number of elements");
#pragma unroll
    for (int down = 0; down < ROWS; down += THREADS / COLS)
        tile[window.first_row() + down][window.first_col()] = window.load(down).value[0];
}

// What one of THREADS threads has of a ROWS x COLS tile on its way from global to shared memory, in registers.
template <int ROWS, int COLS, int THREADS, int VEC>
class TileShare {
  public:
    static_assert(THREADS * VEC % COLS == 0, "TileShare: the threads together load whole rows of the tile");
    static_assert(ROWS * COLS % (THREADS * VEC) == 0,
                  "TileShare: every thread loads the same number of packs");

    // Only starts the loads: the thread waits where it first needs a value, that is when it stores it.
    __device__ void load(const Window<COLS, VEC>& window) {
#pragma unroll
        for (int n = 0; n < kPacks; ++n)
            packs_[n] = window.load(n * kStep);
    }

    // As load(), but asks about edges once for the whole tile, not once for each pack: most tiles come without a branch between their
    // loads.
    __device__ void load_at_once(const Window<COLS, VEC>& window) {
        if (!window.is_whole(ROWS)) return load(window);
#pragma unroll
        for (int n = 0; n < kPacks; ++n)
            packs_[n] = window.load_inside(n * kStep);
    }

    __device__ void store(float (&tile)[ROWS][COLS]) const {
#pragma unroll
        for (int n = 0; n < kPacks; ++n)
            packs_[n].store(&tile[Place::first_row() + n * kStep][Place::first_col()]);
    }

    // Element (row, col) goes to tile[col][place(col, row)].
    template <class Swizzle>
    __device__ void store_transposed(float (&tile)[COLS][ROWS], Swizzle place) const {
#pragma unroll
        for (int n = 0; n < kPacks; ++n) {
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                const int col = Place::first_col() + j;
                tile[col][place(col, Place::first_row() + n * kStep)] = packs_[n].value[j];
            }
        }
    }

    __device__ void store_transposed(float (&tile)[COLS][ROWS]) const {
        store_transposed(tile, [](int, int row) { return row; });
    }

  private:
    using Place = Window<COLS, VEC>;
    static constexpr int kPacks = ROWS * COLS / (THREADS * VEC);
    static constexpr int kStep = THREADS * VEC / COLS;

    course::Pack<float, VEC> packs_[kPacks];
};

}  // namespace gemm

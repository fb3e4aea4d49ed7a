// How the threads of a block bring a tile of A or B into shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/pack.cuh"
#include "tile.cuh"

namespace gemm {

// The ROWS x COLS elements from (row, col) on, loaded one by one: neighbouring threads, neighbouring elements of a row.
template <int THREADS, int ROWS, int COLS>
__device__ void load_tile(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col,
                          float (&tile)[ROWS][COLS]) {
    static_assert(THREADS % COLS == 0, "load_tile: the threads load whole rows");
    static_assert(ROWS % (THREADS / COLS) == 0, "load_tile: every thread loads the same number of elements");
    constexpr int STRIDE = THREADS / COLS;  // rows between two elements of a thread
    const int first = static_cast<int>(threadIdx.x) / COLS;
    const int c = static_cast<int>(threadIdx.x) % COLS;
    const float* element = &matrix(row + first, col + c);
    const int rows_left = static_cast<int>(min(matrix.rows() - row, static_cast<std::size_t>(ROWS)));
    const bool inside = col + c < matrix.cols();
#pragma unroll
    for (int r = 0; r < ROWS; r += STRIDE) {
        tile[first + r][c] = inside && first + r < rows_left ? *element : 0.0f;
        element += STRIDE * matrix.leading_dimension();
    }
}

// VEC neighbours from (row, col) on. What lies beyond the edge is 0; a pack that lies partly beyond it is loaded one by one.
template <int VEC>
__device__ course::Pack<float, VEC> load_pack(const DeviceMatrix<const float>& matrix, std::size_t row,
                                              std::size_t col) {
    if (row < matrix.rows() && col + VEC <= matrix.cols())
        return course::Pack<float, VEC>::load(&matrix(row, col));
    course::Pack<float, VEC> pack;
#pragma unroll
    for (int j = 0; j < VEC; ++j)
        pack.value[j] = load_or_zero(matrix, row, col + j);
    return pack;
}

// What one of THREADS threads has of a ROWS x COLS tile on its way from global to shared memory: packs of VEC neighbours.
template <int ROWS, int COLS, int THREADS, int VEC>
class TileShare {
  public:
    static_assert(COLS % VEC == 0, "TileShare: a row is a whole number of packs");
    static_assert(ROWS * COLS % (THREADS * VEC) == 0,
                  "TileShare: every thread moves the same number of packs");

    // Only starts the loads: the thread waits where it first needs a value, that is in store().
    __device__ void load(const DeviceMatrix<const float>& matrix, std::size_t first_row,
                         std::size_t first_col) {
#pragma unroll
        for (int n = 0; n < kPacks; ++n)
            packs_[n] = load_pack<VEC>(matrix, first_row + row(n), first_col + col(n));
    }

    __device__ void store(float (&tile)[ROWS][COLS]) const {
#pragma unroll
        for (int n = 0; n < kPacks; ++n)
            packs_[n].store(&tile[row(n)][col(n)]);
    }

    // Element (row, col) goes to tile[col][place(row, col)].
    template <class Place>
    __device__ void store_transposed(float (&tile)[COLS][ROWS], Place place) const {
#pragma unroll
        for (int n = 0; n < kPacks; ++n) {
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                tile[col(n) + j][place(row(n), col(n) + j)] = packs_[n].value[j];
        }
    }

    __device__ void store_transposed(float (&tile)[COLS][ROWS]) const {
        store_transposed(tile, [](int row, int) { return row; });
    }

  private:
    static constexpr int kPacks = ROWS * COLS / (THREADS * VEC);

    static __device__ int row(int n) {
        return (n * THREADS + static_cast<int>(threadIdx.x)) * VEC / COLS;
    }
    static __device__ int col(int n) {
        return (n * THREADS + static_cast<int>(threadIdx.x)) * VEC % COLS;
    }

    course::Pack<float, VEC> packs_[kPacks];
};

}  // namespace gemm

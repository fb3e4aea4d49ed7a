// Tiles of a matrix in shared memory in the layout that ldmatrix reads, and copies to them. S has
// T, THREADS and SWIZZLED.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/ptx.cuh"

namespace course {

template <class T>
constexpr int kInChunk = 16 / sizeof(T);  // elements

// ROWS x COLUMNS elements in shared memory, in chunks of 16 bytes, which is what cp.async copies
// and what ldmatrix reads as a row. The eight rows that it reads at the same chunk begin in the
// same bank. Swizzling avoids that conflict: the index of a chunk is XORed with its row.
template <class S, int ROWS, int COLUMNS>
struct SharedTile {
    static constexpr int CHUNKS = COLUMNS / kInChunk<typename S::T>;
    // The XOR changes the lower three bits of an index. Only in a group of eight chunks does each
    // result stay within the row.
    static_assert(!S::SWIZZLED || CHUNKS % 8 == 0,
                  "the rows of a swizzled tile are a multiple of 128 bytes: eight chunks of 16");
    typename S::T elements[ROWS * COLUMNS];

    __device__ typename S::T* chunk(int row, int index) {
        return elements +
               (row * CHUNKS + (S::SWIZZLED ? index ^ (row % 8) : index)) * kInChunk<typename S::T>;
    }
};

// One thread's share of copying ROWS x COLUMNS elements from (first_row, first_column) of a matrix
// on, and then of the tiles that follow: a chunk of every ROWS_AT_ONCE-th row, at addresses that
// differ by constants.
template <class S, int ROWS, int COLUMNS>
class TileCopies {
    using T = typename S::T;
    static constexpr int IN_CHUNK = kInChunk<T>;
    static constexpr int CHUNKS = COLUMNS / IN_CHUNK;
    static constexpr int ROWS_AT_ONCE = S::THREADS / CHUNKS;
    static_assert(S::THREADS % CHUNKS == 0 && ROWS % ROWS_AT_ONCE == 0 && ROWS_AT_ONCE % 8 == 0);

  public:
    __device__ TileCopies(const DeviceMatrix<const T>& matrix, int first_row, int first_column)
        : row_(static_cast<int>(threadIdx.x) / CHUNKS),
          index_(static_cast<int>(threadIdx.x) % CHUNKS),
          rows_left_(static_cast<int>(matrix.rows()) - first_row - row_),
          columns_left_(static_cast<int>(matrix.cols()) - first_column - index_ * IN_CHUNK),
          pitch_(matrix.leading_dimension()),
          source_(matrix.data() + static_cast<std::size_t>(first_row + row_) * pitch_ + first_column +
                  index_ * IN_CHUNK) {}

    // Out-of-range elements are zero-filled. kInside: the tile is known to be in range, so bounds
    // are not checked. Rows that are not 16-byte aligned are copied element by element,
    // synchronously.
    template <bool kAligned, bool kInside = false>
    __device__ void to(SharedTile<S, ROWS, COLUMNS>& tile) const {
        const int in_row = kInside ? IN_CHUNK : max(0, min(columns_left_, IN_CHUNK));
#pragma unroll
        for (int row = 0; row < ROWS; row += ROWS_AT_ONCE) {
            T* const chunk = tile.chunk(row_ + row, index_);
            const T* const source = source_ + static_cast<std::size_t>(row) * pitch_;
            const int valid = kInside || row < rows_left_ ? in_row : 0;
            if constexpr (kAligned) {
                ptx::cp_async_16(chunk, source, static_cast<unsigned>(valid * sizeof(T)));
            } else {
                for (int e = 0; e < IN_CHUNK; ++e)
                    chunk[e] = e < valid ? source[e] : T(0.0f);
            }
        }
    }

    __device__ void next_columns() {
        source_ += COLUMNS;
        columns_left_ -= COLUMNS;
    }
    __device__ void next_rows() {
        source_ += ROWS * pitch_;
        rows_left_ -= ROWS;
    }

  private:
    int row_;
    int index_;
    int rows_left_;
    int columns_left_;
    std::size_t pitch_;
    const T* source_;
};

}  // namespace course

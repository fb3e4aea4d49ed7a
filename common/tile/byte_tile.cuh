// Tiles of a product C = A W^T on tensor cores, where both operands are K-major.
//
// K is counted in bytes: 32 bytes are one mma.m16n8k32 of int8, or one mma.m16n8k16 of half, and
// the fragments of both have the same layout. So one kit serves both types:
//
//   global memory ──cp.async──▶ shared memory, swizzled ──ldmatrix──▶ fragments ──mma.sync──▶ sums
//
// Days 31 and 32 write the loop over K themselves. Day 40 explains swizzling, ldmatrix and
// mma.sync.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace course {

// BM x BN results of a block, WM x WN of a warp; STAGES tiles of K in shared memory at a time.
template <int BM_, int BN_, int WM_, int WN_, int STAGES_>
struct ByteTileShape {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, STAGES = STAGES_;
    static constexpr int BK = 128;           // bytes of K in a stage: a row is one line of all 32 banks
    static constexpr int STEP = 32;          // bytes of K of one mma
    static constexpr int STEPS = BK / STEP;  // of a stage
    static constexpr int CHUNK = 16;         // bytes of an asynchronous copy, and of a row of ldmatrix
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * kWarpSize;
    static constexpr int MMA_M = WM / 16, MMA_N = WN / 8;  // instructions for a warp's tile
    static constexpr int STAGE_BYTES = (BM + BN) * BK;
    static constexpr std::size_t SHARED = std::size_t{STAGES} * STAGE_BYTES;
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0);
};

// --- From global to shared memory ----------------------------------------------------------------

// The rows of a matrix from the first row of a tile on.
struct ByteRows {
    const std::byte* first;
    std::size_t pitch;  // bytes from row to row
    int rows;           // how many the matrix has from here on
    int bytes;          // of a row
};

template <class T>
__device__ ByteRows byte_rows(const T* data, std::size_t leading_dimension, std::size_t rows,
                              std::size_t cols, std::size_t begin) {
    return {reinterpret_cast<const std::byte*>(data + begin * leading_dimension),
            leading_dimension * sizeof(T), static_cast<int>(min(rows - begin, std::size_t{1} << 30)),
            static_cast<int>(cols * sizeof(T))};
}

template <class T>
__device__ ByteRows byte_rows(const DeviceMatrix<T>& m, std::size_t begin) {
    return byte_rows(m.data(), m.leading_dimension(), m.rows(), m.cols(), begin);
}

// The address of chunk `chunk` of row `row`. Without a swizzle the eight rows that one ldmatrix
// reads would begin in the same bank. An XOR with the row's number permutes the chunks of each row.
template <class Shape>
__device__ std::byte* swizzled_chunk(std::byte* tile, int row, int chunk) {
    constexpr int CHUNKS = Shape::BK / Shape::CHUNK;
    static_assert((CHUNKS & (CHUNKS - 1)) == 0, "an XOR stays within a power of two");
    return tile + row * Shape::BK + (chunk ^ (row & (CHUNKS - 1))) * Shape::CHUNK;
}

// A thread's share of the copies of a tile's ROWS rows: one chunk of every ROWS_AT_ONCE-th row. It
// holds one pointer and 32-bit counters: an address for each copy would need so many registers that
// they spill.
template <class Shape, int ROWS>
class ByteTileCopies {
    static constexpr int CHUNKS = Shape::BK / Shape::CHUNK;
    static constexpr int ROWS_AT_ONCE = Shape::THREADS / CHUNKS;

  public:
    __device__ explicit ByteTileCopies(const ByteRows& from)
        : row_(static_cast<int>(threadIdx.x) / CHUNKS),
          chunk_(static_cast<int>(threadIdx.x) % CHUNKS),
          source_(from.first + static_cast<std::size_t>(row_) * from.pitch + chunk_ * Shape::CHUNK),
          step_(from.pitch * ROWS_AT_ONCE),
          rows_(from.rows),
          left_(from.bytes - chunk_ * Shape::CHUNK) {}

    // Issues part `part` of PARTS of the copies for a stage. Out-of-range bytes are zero-filled.
    template <int PARTS>
    __device__ void issue(std::byte* tile, int part) const {
        constexpr int COUNT = ROWS / ROWS_AT_ONCE / PARTS;
        static_assert(COUNT * PARTS * ROWS_AT_ONCE == ROWS, "every part copies whole groups of rows");
        const int valid = max(0, min(left_, Shape::CHUNK));
#pragma unroll
        for (int i = part * COUNT; i < (part + 1) * COUNT; ++i) {
            const int row = row_ + i * ROWS_AT_ONCE;
            ptx::cp_async_16(swizzled_chunk<Shape>(tile, row, chunk_), source_ + i * step_,
                             row < rows_ ? static_cast<unsigned>(valid) : 0u);
        }
    }

    __device__ void next_stage() {
        source_ += Shape::BK;
        left_ -= Shape::BK;
    }

  private:
    int row_;
    int chunk_;
    const std::byte* source_;
    std::size_t step_;
    int rows_;
    int left_;
};

// --- From shared memory to sums ------------------------------------------------------------------

__device__ inline void multiply_add(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    ptx::mma_m16n8k32_s8(d, a, b);
}
__device__ inline void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    ptx::mma_m16n8k16_f16(d, a, b);
}

// A warp's sums, in the registers of its lanes: int for int8 operands, float for half operands.
template <class Shape, class Sum>
using ByteTileSums = Sum[Shape::MMA_M][Shape::MMA_N][4];

// The operands of a warp for one step: 32 bytes of each of its rows of A and of W.
template <class Shape>
struct ByteFragments {
    unsigned a[Shape::MMA_M][4];
    unsigned w[Shape::MMA_N][2];

    __device__ void load(std::byte* a_tile, std::byte* w_tile, int step) {
        const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
        const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
        // Lane l passes the address of row l % 8 of the 8 x 16-byte matrix l / 8.
        // A: rows 0..7, rows 8..15, then both 16 bytes further.
        const int a_row = warp / Shape::WARPS_N * Shape::WM + lane % 16;
#pragma unroll
        for (int i = 0; i < Shape::MMA_M; ++i)
            ptx::ldmatrix_x4(a[i], swizzled_chunk<Shape>(a_tile, a_row + i * 16, 2 * step + lane / 16));
        // W: rows 0..7, the same rows 16 bytes further, then rows 8..15 in the same way.
        const int w_row = warp % Shape::WARPS_N * Shape::WN + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int j = 0; j < Shape::MMA_N; j += 2) {
            unsigned two[4];
            ptx::ldmatrix_x4(two, swizzled_chunk<Shape>(w_tile, w_row + j * 8, 2 * step + lane / 8 % 2));
            w[j][0] = two[0];
            w[j][1] = two[1];
            w[j + 1][0] = two[2];
            w[j + 1][1] = two[3];
        }
    }

    // Each fragment of A times each of W.
    template <class Sum>
    __device__ void multiply(ByteTileSums<Shape, Sum>& sums) const {
#pragma unroll
        for (int i = 0; i < Shape::MMA_M; ++i)
#pragma unroll
            for (int j = 0; j < Shape::MMA_N; ++j)
                multiply_add(sums[i][j], a[i], w[j]);
    }
};

// Calls visit(i, j, p, row, col) for every two adjacent sums of a thread: sums[i][j][p] belongs to
// (row, col) of the block's tile, and sums[i][j][p + 1] to (row, col + 1).
template <class Shape, class Visit>
__device__ void for_each_pair(const Visit& visit) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const int row = warp / Shape::WARPS_N * Shape::WM + lane / 4;
    const int col = warp % Shape::WARPS_N * Shape::WN + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < Shape::MMA_M; ++i)
#pragma unroll
        for (int j = 0; j < Shape::MMA_N; ++j)
#pragma unroll
            for (int pair = 0; pair < 4; pair += 2)
                visit(i, j, pair, row + i * 16 + pair * 4, col + j * 8);
}

// --- Which tile a block computes -----------------------------------------------------------------

// The first row and column of a block's tile. Blocks that run at the same time share rows of A and
// of W, which then come from the L2 cache: the rasterisation order works off bands of BAND tiles,
// column by column.
struct TileOrigin {
    std::size_t row;
    std::size_t col;
};
template <class Shape, unsigned BAND = 8>
__device__ TileOrigin tile_origin(unsigned tiles_m, unsigned tiles_n) {
    const unsigned band = blockIdx.x / (BAND * tiles_n);
    const unsigned height = min(BAND, tiles_m - band * BAND);
    const unsigned in_band = blockIdx.x % (BAND * tiles_n);
    return {std::size_t{band * BAND + in_band % height} * Shape::BM,
            std::size_t{in_band / height} * Shape::BN};
}

}  // namespace course

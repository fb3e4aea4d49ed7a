// Day 31: products of 8-bit integers, C = A W^T. int8 x int8 -> int32, exact.  Tiles: PMPP chapters 5 and 6
//
// A is M x K and W is N x K, so both are read along K (K-major): a layer's weights W[out][in] as
// they lie in memory. Four bytes that are adjacent along K are one 32-bit word, which is what makes
// int8 fast.
//
//   version   multiply-adds by         what is new                        what limits it
//   scalar    one instruction each     a thread for each result           two 1-byte loads per multiply-add
//   dp4a      four in __dp4a           words of K, tiles, 8 x 8 results   FMA: the rate of __dp4a
//
// Each kernel is followed by its launch. beyond/ has the versions for tensor cores (day 40):
// mma_sync, tensor_cores and wgmma (day 41).
//
//   ./course run day31                                               every version, verified and timed
//   ./course run day31 --program                                     program.cu, from main() to the result
//   ./course inspect day31 --only scalar --size 64x64x64             what its loads cost
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"

namespace day31 {

using course::DeviceMatrix;

constexpr int kScalarCols = 32;
constexpr int kScalarRows = 8;
constexpr int kScalarThreads = kScalarCols * kScalarRows;

// Idea: a thread for each result, as in the definition. A byte becomes an int before it is
// multiplied, so nothing overflows: K times 128 * 128 must fit into 31 bits.
// Cost removed: none yet.
// Still limits it: L1 (counters: 98 % busy). Two loads of one byte for one multiply-add; and
// because adjacent threads read different rows of W, a warp's load of W touches 32 lines.
__global__ void __launch_bounds__(kScalarThreads)
    scalar(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w, DeviceMatrix<std::int32_t> c,
           unsigned tiles_n) {
    const std::size_t row = std::size_t{blockIdx.x / tiles_n} * kScalarRows + threadIdx.y;
    const std::size_t col = std::size_t{blockIdx.x % tiles_n} * kScalarCols + threadIdx.x;
    if (row >= c.rows() || col >= c.cols()) return;
    int sum = 0;
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * w(col, k);
    c(row, col) = sum;
}

inline void launch_scalar(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                          DeviceMatrix<std::int32_t> c, cudaStream_t stream) {
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), kScalarRows);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), kScalarCols);
    scalar<<<course::blocks_for(tiles_m * tiles_n, 1), dim3(kScalarCols, kScalarRows), 0, stream>>>(
        a, w, c, static_cast<unsigned>(tiles_n));
}

// --- Four bytes in a word ------------------------------------------------------------------------

constexpr int kDotTile = 128;     // results of a block, each way
constexpr int kDotThreads = 256;  // 16 x 16
constexpr int kDotWords = 8;      // of four bytes of K, in a tile
constexpr int kDotPad = 4;        // keeps rows 16-byte aligned, and spreads the stores of a column over banks

// One thread's part of a tile: four words of K of one row, transposed into shared memory.
// Out-of-range bytes are zero-filled.
template <bool kAligned>
__device__ void load_words(DeviceMatrix<const std::int8_t> from, std::size_t first_row, std::size_t begin,
                           int (&tile)[kDotWords][kDotTile + kDotPad]) {
    constexpr int kParts = kDotWords / 4;
    const int row = static_cast<int>(threadIdx.x) / kParts;
    const int part = static_cast<int>(threadIdx.x) % kParts * 4;
    const std::size_t col = begin + static_cast<std::size_t>(part * 4);
    course::Pack<std::int8_t, 16> bytes{};
    if (first_row + row < from.rows()) {
        const std::int8_t* const source = from.data() + (first_row + row) * from.leading_dimension();
        if (kAligned && col + 16 <= from.cols()) {
            bytes = course::Pack<std::int8_t, 16>::load(source + col);
        } else {
            for (std::size_t i = 0; i < 16; ++i)
                if (col + i < from.cols()) bytes.value[i] = source[col + i];
        }
    }
    int words[4];
    std::memcpy(words, &bytes, sizeof(words));
    for (int i = 0; i < 4; ++i)
        tile[part + i][row] = words[i];
}

// Idea: __dp4a multiplies the four bytes of two words and adds the four products to a sum, in one
// instruction. The rest is day 5 with words in place of floats: tiles in shared memory, 8 x 8
// results per thread in registers. They are four 4 x 4 quarters, so that adjacent threads load
// adjacent words.
// Cost removed: nearly all loads, and three of four instructions.
// Still limits it: the rate of __dp4a, which the FMA pipe executes (counters: 80 % busy, issue
// slots 45 %).
template <bool kAligned>
__global__ void __launch_bounds__(kDotThreads, 2)
    dp4a(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w, DeviceMatrix<std::int32_t> c,
         unsigned tiles_n) {
    __shared__ __align__(16) int a_tile[kDotWords][kDotTile + kDotPad];
    __shared__ __align__(16) int w_tile[kDotWords][kDotTile + kDotPad];
    const std::size_t tile_row = std::size_t{blockIdx.x / tiles_n} * kDotTile;
    const std::size_t tile_col = std::size_t{blockIdx.x % tiles_n} * kDotTile;
    const int row = static_cast<int>(threadIdx.x) / 16 * 4;
    const int col = static_cast<int>(threadIdx.x) % 16 * 4;

    int sums[8][8] = {};
    for (std::size_t begin = 0; begin < a.cols(); begin += kDotWords * 4) {
        load_words<kAligned>(a, tile_row, begin, a_tile);
        load_words<kAligned>(w, tile_col, begin, w_tile);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < kDotWords; ++k) {
            course::Pack<int, 4> x[2], y[2];
            for (int half = 0; half < 2; ++half) {
                x[half] = course::Pack<int, 4>::load(&a_tile[k][row + half * kDotTile / 2]);
                y[half] = course::Pack<int, 4>::load(&w_tile[k][col + half * kDotTile / 2]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    sums[i][j] = __dp4a(x[i / 4].value[i % 4], y[j / 4].value[j % 4], sums[i][j]);
        }
        __syncthreads();  // safe to overwrite
    }
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) {
            const std::size_t r = tile_row + row + i / 4 * kDotTile / 2 + i % 4;
            const std::size_t s = tile_col + col + j / 4 * kDotTile / 2 + j % 4;
            if (r < c.rows() && s < c.cols()) c(r, s) = sums[i][j];
        }
    }
}

// kAligned: rows of A and W start at multiples of 16 bytes.
template <bool kAligned>
void launch_dp4a(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                 DeviceMatrix<std::int32_t> c, cudaStream_t stream) {
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), kDotTile);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), kDotTile);
    dp4a<kAligned><<<course::blocks_for(tiles_m * tiles_n, 1), kDotThreads, 0, stream>>>(
        a, w, c, static_cast<unsigned>(tiles_n));
}

}  // namespace day31

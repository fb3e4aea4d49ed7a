// Day 31: products of 8-bit integers, C = A W^T. int8 x int8 -> int32, exact.  Tiles: PMPP chapters 5 and 6
//
// A is M x K and W is N x K, so both are read along K (K-major): a layer's weights W[out][in] as
// they lie in memory. Four neighbouring bytes of K are one 32-bit word, and that is what makes int8
// fast.
//
//   version        multiply-adds by         what is new                        what limits it
//   scalar         one instruction each     a thread for each result           two 1-byte loads per multiply-add
//   dp4a           four in __dp4a           words of K, tiles, 8 x 8 results   the rate of __dp4a
//   mma_sync       4,096 in an mma          tensor cores                       copies and products take turns
//   tensor_cores   4,096 in an mma          stages in flight, fragments        the rate of mma.sync
//                                           one step ahead
//   wgmma          524,288 in a wgmma       factors read from shared memory    storing C, and power
//
// The last one needs Hopper and is in int8_wgmma.cuh.
//
//   ./course run day31                                                  every version, verified and timed
//   ./course run day31 --only tensor_cores --size 4096x4096x4096     M x N x K
//   ./course inspect day31 --only scalar --size 64x64x64             what its loads cost
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"
#include "common/tile/byte_tile.cuh"

namespace day31 {

using course::DeviceMatrix;

constexpr int kScalarCols = 32;
constexpr int kScalarRows = 8;
constexpr int kScalarThreads = kScalarCols * kScalarRows;

// Idea: a thread for each result, as in the definition. A byte becomes an int before it is
// multiplied, so nothing overflows: K times 128 * 128 must fit into 31 bits.
// Cost removed: none yet.
// Still limits it: two loads of one byte for one multiply-add; and neighbouring threads read
// different rows of W, so a warp's load of W touches 32 lines.
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
// instruction. The rest is day 5 with words for floats: tiles in shared memory, 8 x 8 results per
// thread in registers. They are four 4 x 4 quarters, so that neighbouring threads load neighbouring
// words.
// Cost removed: nearly all loads, and three of four instructions.
// Still limits it: the rate of __dp4a.
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

// --- Tensor cores --------------------------------------------------------------------------------

// Stores a thread's sums directly from registers, two neighbours at a time where C allows it.
template <class Shape>
__device__ void store_sums(DeviceMatrix<std::int32_t> c, const course::TileOrigin& origin,
                           const course::ByteTileSums<Shape, int>& sums) {
    const bool pairs = c.leading_dimension() % 2 == 0 && reinterpret_cast<std::uintptr_t>(c.data()) % 8 == 0;
    course::for_each_pair<Shape>([&](int i, int j, int pair, int row, int col) {
        const int* const sum = &sums[i][j][pair];
        const std::size_t r = origin.row + row;
        const std::size_t s = origin.col + col;
        if (r >= c.rows() || s >= c.cols()) return;
        if (pairs && s + 1 < c.cols()) {
            *reinterpret_cast<int2*>(&c(r, s)) = make_int2(sum[0], sum[1]);
        } else {
            c(r, s) = sum[0];
            if (s + 1 < c.cols()) c(r, s + 1) = sum[1];
        }
    });
}

using OneStage = course::ByteTileShape<128, 128, 64, 64, 1>;

// Idea: mma.m16n8k32. A warp multiplies 16 x 32 by 32 x 8 bytes in one instruction. Both factors
// are K-major, so ldmatrix needs no transpose, which for bytes it could not do.
// Cost removed: instructions. 4,096 multiply-adds in one, where a warp's __dp4a does 128.
// Still limits it: the tensor cores idle while a tile is copied.
template <class Shape>
__global__ void __launch_bounds__(Shape::THREADS)
    mma_sync(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
             DeviceMatrix<std::int32_t> c, unsigned tiles_m, unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const course::TileOrigin origin = course::tile_origin<Shape>(tiles_m, tiles_n);
    const course::ByteRows a_rows = course::byte_rows(a, origin.row);
    const course::ByteRows w_rows = course::byte_rows(w, origin.col);
    course::ByteTileCopies<Shape, Shape::BM> a_copies(a_rows);
    course::ByteTileCopies<Shape, Shape::BN> w_copies(w_rows);
    std::byte* const a_tile = shared;
    std::byte* const w_tile = shared + Shape::BM * Shape::BK;

    course::ByteTileSums<Shape, int> sums = {};
    for (int done = 0; done < a_rows.bytes; done += Shape::BK) {
        a_copies.template issue<1>(a_tile, 0);
        w_copies.template issue<1>(w_tile, 0);
        a_copies.next_stage();
        w_copies.next_stage();
        course::ptx::cp_async_commit();
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is complete
        for (int step = 0; step < Shape::STEPS; ++step) {
            course::ByteFragments<Shape> fragments;
            fragments.load(a_tile, w_tile, step);
            fragments.multiply(sums);
        }
        __syncthreads();  // safe to overwrite
    }
    store_sums<Shape>(c, origin, sums);
}

// The pipeline, for a block's tile. While the tensor cores work on one step, the fragments of the
// next step are loaded, and a quarter of the copies for a later stage is issued. (Issued all at
// once, the copies would delay the fragments.) `shared` has Shape::SHARED bytes.
template <class Shape>
__device__ void multiply_tile(std::byte* shared, const course::ByteRows& a, const course::ByteRows& w,
                              course::ByteTileSums<Shape, int>& sums) {
    constexpr int STEPS = Shape::STEPS;
    const int stages = (a.bytes + Shape::BK - 1) / Shape::BK;
    if (stages == 0) return;
    const auto a_tile = [&](int stage) { return shared + stage * Shape::STAGE_BYTES; };
    const auto w_tile = [&](int stage) { return a_tile(stage) + Shape::BM * Shape::BK; };
    course::ByteTileCopies<Shape, Shape::BM> a_copies(a);
    course::ByteTileCopies<Shape, Shape::BN> w_copies(w);
    // Beyond the last stage nothing is left to copy, but the groups are committed all the same, so
    // that cp_async_wait can count them.
    const auto copy = [&](int stage, int part) {
        a_copies.template issue<STEPS>(a_tile(stage), part);
        w_copies.template issue<STEPS>(w_tile(stage), part);
        if (part < STEPS - 1) return;
        course::ptx::cp_async_commit();
        a_copies.next_stage();
        w_copies.next_stage();
    };
    for (int stage = 0; stage < Shape::STAGES - 1; ++stage)
        for (int part = 0; part < STEPS; ++part)
            copy(stage, part);
    course::ptx::cp_async_wait<Shape::STAGES - 2>();
    __syncthreads();  // the first stage is complete

    course::ByteFragments<Shape> fragments[2];
    fragments[0].load(a_tile(0), w_tile(0), 0);
    int read = 0;  // the stage that fragments are loaded from
    for (int i = 0; i < stages; ++i) {
        const int write = read == 0 ? Shape::STAGES - 1 : read - 1;  // the stage that copies fill
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            copy(write, step);
            if (step == STEPS - 1) {
                read = read == Shape::STAGES - 1 ? 0 : read + 1;
                course::ptx::cp_async_wait<Shape::STAGES - 2>();
                __syncthreads();  // the next stage is complete, and this one is safe to overwrite
            }
            fragments[(step + 1) % 2].load(a_tile(read), w_tile(read), (step + 1) % STEPS);
            fragments[step % 2].multiply(sums);
        }
    }
    course::ptx::cp_async_wait<0>();
    __syncthreads();  // no copy is in flight: shared memory may be used again
}

// Two blocks fit on an SM: one multiplies while the other stores its results.
using ThreeStages = course::ByteTileShape<128, 128, 64, 64, 3>;

// Idea: a multistage pipeline, multiply_tile() above.
// Cost removed: the latency of global and of shared memory.
// Still limits it: mma.sync takes its operands through registers. Hopper's wgmma reads them from
// shared memory.
template <class Shape>
__global__ void __launch_bounds__(Shape::THREADS)
    tensor_cores(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                 DeviceMatrix<std::int32_t> c, unsigned tiles_m, unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const course::TileOrigin origin = course::tile_origin<Shape>(tiles_m, tiles_n);
    course::ByteTileSums<Shape, int> sums = {};
    multiply_tile<Shape>(shared, course::byte_rows(a, origin.row), course::byte_rows(w, origin.col), sums);
    store_sums<Shape>(c, origin, sums);
}

}  // namespace day31

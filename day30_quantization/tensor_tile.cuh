// A tile of a product on tensor cores: A rows and W rows, both along K, come to shared memory by asynchronous copies, several stages
// of them, and from there as fragments to registers. K is counted in bytes: 32 bytes are a step of mma.m16n8k32 for int8 and of
// mma.m16n8k16 for half alike, and fragments of both lie the same way.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/ptx.cuh"
#include "common/warp.cuh"

namespace day30 {

// BM x BN results of a block, WM x WN of a warp; STAGES tiles of K in shared memory at a time.
template <int BM_, int BN_, int WM_, int WN_, int STAGES_>
struct TileShape {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, STAGES = STAGES_;
    static constexpr int BK = 128;    // bytes of K in a stage: a row is one line of all 32 banks
    static constexpr int STEP = 32;   // bytes of K for one mma
    static constexpr int CHUNK = 16;  // bytes of an asynchronous copy, and of a row of ldmatrix
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * course::kWarpSize;
    static constexpr int MMA_M = WM / 16, MMA_N = WN / 8;  // instructions for a warp's tile
    static constexpr std::size_t SHARED = std::size_t{STAGES} * (BM + BN) * BK;
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0);
};

// Rows of a matrix from a tile's first one on: `rows` of them are there, `pitch` bytes apart, each `bytes` long.
struct TileRows {
    const std::byte* first;
    std::size_t pitch;
    std::size_t rows;
    std::size_t bytes;
};

template <class T>
__device__ TileRows rows_from(const T* data, std::size_t leading_dimension, std::size_t rows, std::size_t cols,
                              std::size_t begin) {
    return {reinterpret_cast<const std::byte*>(data + begin * leading_dimension), leading_dimension * sizeof(T),
            rows - begin, cols * sizeof(T)};
}

// Chunk `chunk` of row `row` of a tile. The eight rows that one ldmatrix reads at the same chunk would all begin in the same bank: the
// chunks of each row change places by an XOR with the row's number.
template <class T>
__device__ std::byte* swizzled(std::byte* tile, int row, int chunk) {
    constexpr int CHUNKS = T::BK / T::CHUNK;
    return tile + row * T::BK + (chunk ^ row % CHUNKS) * T::CHUNK;
}

// Issues the copies of ROWS rows, bytes [begin, begin + BK) of each. What lies outside the matrix becomes 0.
template <class T, int ROWS>
__device__ void copy_rows(std::byte* tile, const TileRows& from, std::size_t begin) {
    constexpr int CHUNKS = T::BK / T::CHUNK;
    constexpr int ROWS_AT_ONCE = T::THREADS / CHUNKS;
    const int chunk = static_cast<int>(threadIdx.x) % CHUNKS;
    const int first = static_cast<int>(threadIdx.x) / CHUNKS;
    const std::size_t at = begin + static_cast<std::size_t>(chunk * T::CHUNK);
    const std::size_t left = at < from.bytes ? from.bytes - at : 0;
    const unsigned valid = left < T::CHUNK ? static_cast<unsigned>(left) : T::CHUNK;
#pragma unroll
    for (int row = first; row < ROWS; row += ROWS_AT_ONCE) {
        const bool inside = static_cast<std::size_t>(row) < from.rows;
        course::ptx::cp_async_16(swizzled<T>(tile, row, chunk),
                                 from.first + static_cast<std::size_t>(row) * from.pitch + at,
                                 inside ? valid : 0);
    }
}

__device__ inline void multiply_add(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    course::ptx::mma_m16n8k32_s8(d, a, b);
}
__device__ inline void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    course::ptx::mma_m16n8k16_f16(d, a, b);
}

// A warp's part of the sums, in the registers of its lanes: int for products of int8, float for those of half.
template <class T, class Sum>
using Sums = Sum[T::MMA_M][T::MMA_N][4];

// Adds the products of a stage to a warp's sums.
template <class T, class Sum>
__device__ void multiply_stage(std::byte* a_tile, std::byte* w_tile, Sums<T, Sum>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const int warp_m = warp / T::WARPS_N * T::WM;
    const int warp_n = warp % T::WARPS_N * T::WN;
#pragma unroll
    for (int step = 0; step < T::BK / T::STEP; ++step) {
        // Lane l gives the address of row l % 8 of the 8 x 16 byte matrix l / 8. A: rows 0..7, 8..15, then both 16 bytes further.
        unsigned a[T::MMA_M][4];
#pragma unroll
        for (int i = 0; i < T::MMA_M; ++i)
            course::ptx::ldmatrix_x4(
                a[i], swizzled<T>(a_tile, warp_m + i * 16 + lane % 16, 2 * step + lane / 16));
        // W: rows 0..7, the same 16 bytes further, rows 8..15 in the same way.
        unsigned w[T::MMA_N][2];
#pragma unroll
        for (int j = 0; j < T::MMA_N; j += 2) {
            unsigned both[4];
            course::ptx::ldmatrix_x4(both, swizzled<T>(w_tile, warp_n + j * 8 + lane / 16 * 8 + lane % 8,
                                                       2 * step + lane / 8 % 2));
            w[j][0] = both[0], w[j][1] = both[1];
            w[j + 1][0] = both[2], w[j + 1][1] = both[3];
        }
#pragma unroll
        for (int i = 0; i < T::MMA_M; ++i)
#pragma unroll
            for (int j = 0; j < T::MMA_N; ++j)
                multiply_add(sums[i][j], a[i], w[j]);
    }
}

// Adds A W^T of a block's tile to the sums of its warps. `shared` has T::SHARED bytes, free again when this returns.
template <class T, class Sum>
__device__ void multiply_tile(std::byte* shared, const TileRows& a, const TileRows& w, std::size_t bytes,
                              Sums<T, Sum>& sums) {
    const auto a_tile = [&](int stage) { return shared + stage * (T::BM + T::BN) * T::BK; };
    const auto w_tile = [&](int stage) { return a_tile(stage) + T::BM * T::BK; };
    const auto copy = [&](int stage, std::size_t begin) {
        if (begin < bytes) {
            copy_rows<T, T::BM>(a_tile(stage), a, begin);
            copy_rows<T, T::BN>(w_tile(stage), w, begin);
        }
        course::ptx::cp_async_commit();  // also of nothing, so that the groups can be counted
    };
#pragma unroll
    for (int stage = 0; stage < T::STAGES - 1; ++stage)
        copy(stage, static_cast<std::size_t>(stage) * T::BK);
    int stage = 0;
    for (std::size_t begin = 0; begin < bytes; begin += T::BK) {
        course::ptx::cp_async_wait<T::STAGES - 2>();
        __syncthreads();  // this stage is there for all, and all have done with the one before
        copy((stage + T::STAGES - 1) % T::STAGES, begin + (T::STAGES - 1) * T::BK);
        multiply_stage<T, Sum>(a_tile(stage), w_tile(stage), sums);
        stage = (stage + 1) % T::STAGES;
    }
    course::ptx::cp_async_wait<0>();
    __syncthreads();
}

// Calls visit(i, j, p, row, column) for each two neighbouring sums of a thread: sums[i][j][p] is at (row, column) of the block's tile,
// and sums[i][j][p + 1] beside it.
template <class T, class Visit>
__device__ void for_each_pair(const Visit& visit) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const int row = warp / T::WARPS_N * T::WM + lane / 4;
    const int column = warp % T::WARPS_N * T::WN + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < T::MMA_M; ++i)
#pragma unroll
        for (int j = 0; j < T::MMA_N; ++j)
#pragma unroll
            for (int pair = 0; pair < 4; pair += 2)
                visit(i, j, pair, row + i * 16 + pair * 4, column + j * 8);
}

// Tiles in an order in which blocks that run at the same time share rows of A and of W, which then come from the L2 cache: bands of
// BAND tiles high are worked off column by column.
struct TilePlace {
    std::size_t row;
    std::size_t column;
};
template <class T, unsigned BAND = 8>
__device__ TilePlace tile_place(unsigned tiles_m, unsigned tiles_n) {
    const unsigned band = blockIdx.x / (BAND * tiles_n);
    const unsigned height = min(BAND, tiles_m - band * BAND);
    const unsigned in_band = blockIdx.x % (BAND * tiles_n);
    return {std::size_t{band * BAND + in_band % height} * T::BM, std::size_t{in_band / height} * T::BN};
}

}  // namespace day30

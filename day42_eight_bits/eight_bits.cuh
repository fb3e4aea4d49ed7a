// Day 42: C = A B^T on tensor cores, 8-bit operands: INT8 summed in 32-bit integers, FP8 summed in
// FP32.
//
// A is M x K, B is N x K, C is M x N, all row-major: both operands are K-major (day 31). Any shape.
//
//   version           block tile  stages  what is new                             what limits it
//   bytes_mma_global  32 x 16     -       mma.sync takes 32 of K                  a fragment, one product
//   bytes_mma_sync    128 x 128   3       day 38's pipeline; no transposed loads  latency of mma.sync
//
// Any alignment of rows; kAligned: all rows are 16-byte aligned. Each kernel is followed by its
// launch. The versions with Hopper's own instructions are in beyond/.
//
// order.tile(b) is the tile of C of block b. Output has C, alpha and beta; store_pair() stores two
// adjacent elements. TileCopies issues a thread's copies of a tile (cp.async, day 38), and
// SharedTile has its rows in shared memory, swizzled (day 40): chunk(row, c) is the address of
// columns 16 c to 16 c + 15.
//
//   ./course run day42                                              every version, verified and timed
//   ./course run day42 --program                                    program.cu: one product, from main()
//   ./course run day42 --only bytes_mma_sync --size 512x512x512     one version, any size
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/tile_copies.cuh"
#include "sum_type.hpp"

namespace day42 {

using course::DeviceMatrix;
using course::RasterOrder;
template <class T>
using Output = course::OutputOf<Sum<T>>;  // int for INT8, float for FP8

constexpr int kBand = 8;  // rows of tiles that are computed together, for the L2 cache (RasterOrder)

// D += A B, where A is 16 x 32, B is 32 x 8 and D is 16 x 8: the instruction mma.sync.m16n8k32.
template <class T>
__device__ void multiply_add(Sum<T> (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (std::is_same_v<T, std::int8_t>) {
        course::ptx::mma_m16n8k32_s8(d, a, b);
    } else if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {
        course::ptx::mma_m16n8k32_e4m3(d, a, b);
    } else {
        course::ptx::mma_m16n8k32_e5m2(d, a, b);
    }
}

// Four adjacent elements of a row in one register, as mma.sync takes them. Out-of-range elements
// are zero.
template <bool kAligned, class T>
__device__ unsigned load_four(const DeviceMatrix<const T>& matrix, int row, int k) {
    if (row >= static_cast<int>(matrix.rows())) return 0;
    const int depth = static_cast<int>(matrix.cols());
    if (kAligned && k + 4 <= depth) return *reinterpret_cast<const unsigned*>(&matrix(row, k));
    unsigned four = 0;
    for (int i = 0; i < 4; ++i) {
        if (k + i < depth)
            four |= unsigned{*reinterpret_cast<const unsigned char*>(&matrix(row, k + i))} << (8 * i);
    }
    return four;
}

// Idea: a product of 8-bit operands. Lane 4 g + t holds four elements that are adjacent along K, of
// rows g and g + 8 of A, and of row g of B, which is a column of the product. Each is one load of
// 32 bits. A warp has 16 x 8 results.
// Cost removed: half of the bytes and half of the instructions of 16-bit operands.
// Still limits it: L1 (FP8, counters: 100 % busy, L2 35 %). Each fragment is loaded for one MMA.
template <class T, bool kAligned>
__global__ void __launch_bounds__(128)
    bytes_mma_global(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output<T> out, RasterOrder order) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    const int t = static_cast<int>(threadIdx.x) % 4;
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * 32 + warp / 2 * 16 + g;
    const int col = tile.col * 16 + warp % 2 * 8;

    Sum<T> sums[4] = {};  // columns 2 t and 2 t + 1 of rows g and g + 8
    for (int k = 0; k < static_cast<int>(a.cols()); k += 32) {
        const int left = k + t * 4;  // of two columns of 16 bytes
        const int right = left + 16;
        const unsigned a_fragment[4] = {
            load_four<kAligned>(a, row, left), load_four<kAligned>(a, row + 8, left),
            load_four<kAligned>(a, row, right), load_four<kAligned>(a, row + 8, right)};
        const unsigned b_fragment[2] = {load_four<kAligned>(b, col + g, left),
                                        load_four<kAligned>(b, col + g, right)};
        multiply_add<T>(sums, a_fragment, b_fragment);
    }
    store_pair(out, row, col + t * 2, sums[0], sums[1]);
    store_pair(out, row + 8, col + t * 2, sums[2], sums[3]);
}

template <class T, bool kAligned>
void launch_bytes_mma_global(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b,
                             const Output<T>& out, cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, 32, 16, kBand);
    bytes_mma_global<T, kAligned><<<course::blocks_of(order), 128, 0, stream>>>(a, b, out, order);
}

// --- Shared memory: a pipeline of three stages ---------------------------------------------------

// 128 x 128 results per block, 64 x 32 per warp. Tiles of A and B are 128 deep: rows of 128 bytes,
// as before.
template <class T_>
struct TileShape {
    using T = T_;
    static constexpr int BM = 128, BN = 128, BK = 128, WM = 64, WN = 32, STAGES = 3;
    static constexpr bool SWIZZLED = true;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
};

template <class S>
struct Stage {
    course::SharedTile<S, S::BM, S::BK> a;
    course::SharedTile<S, S::BN, S::BK> b;  // its rows are columns of the product
};

// The sums of a warp, 16 x 8 results each.
template <class S>
using Sums = Sum<typename S::T>[S::WM / 16][S::WN / 8][4];

// The MMAs of one stage. ldmatrix moves rows of 16 bytes: 16 elements of a row are one row of an 8
// x 8 matrix. It cannot transpose bytes, but because B is K-major, it does not have to.
template <class S>
__device__ void multiply_stage(Stage<S>& stage, int warp_row, int warp_col, Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int k = 0; k < S::BK; k += 32) {
        unsigned a[S::WM / 16][4];
        unsigned b[S::WN / 8][2];
#pragma unroll
        for (int i = 0; i < S::WM / 16; ++i)
            course::ptx::ldmatrix_x4(a[i], stage.a.chunk(warp_row + i * 16 + lane % 16, k / 16 + lane / 16));
#pragma unroll
        for (int j = 0; j < S::WN / 8; j += 2) {
            unsigned pair[4];
            const int b_row = warp_col + (j + lane / 16) * 8 + lane % 8;
            course::ptx::ldmatrix_x4(pair, stage.b.chunk(b_row, k / 16 + lane / 8 % 2));
            b[j][0] = pair[0];
            b[j][1] = pair[1];
            b[j + 1][0] = pair[2];
            b[j + 1][1] = pair[3];
        }
#pragma unroll
        for (int i = 0; i < S::WM / 16; ++i)
#pragma unroll
            for (int j = 0; j < S::WN / 8; ++j)
                multiply_add<typename S::T>(sums[i][j], a[i], b[j]);
    }
}

// Stores the warp's results, which start at (row, col) of C.
template <class S>
__device__ void store_sums(const Output<typename S::T>& out, int row, int col, const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < S::WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < S::WN / 8; ++j)
#pragma unroll
            for (int lower = 0; lower < 2; ++lower)
                store_pair(out, row + i * 16 + lower * 8 + lane / 4, col + j * 8 + lane % 4 * 2,
                           sums[i][j][lower * 2], sums[i][j][lower * 2 + 1]);
}

// Idea: the pipeline of day 38 with the tiles of day 40. Two stages are in flight while a third one
// is multiplied; a warp has 64 x 32 results.
// Cost removed: loads from L2. A fragment serves four or eight MMAs.
// Still limits it: latency (FP8, counters: tensor cores 53 % busy, issue slots 50 %). mma.sync
// takes its operands from registers. On an H200 FP8 takes more than twice as long as INT8 and loses
// no digits, as if its operands were converted to half precision first (counters: ALU 40 % busy).
template <class T, bool kAligned>
__global__ void __launch_bounds__(TileShape<T>::THREADS)
    bytes_mma_sync(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output<T> out, RasterOrder order) {
    using S = TileShape<T>;
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<Stage<S>*>(memory);
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * S::BM;
    const int col = tile.col * S::BN;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int warp_row = warp / S::WARPS_N * S::WM;
    const int warp_col = warp % S::WARPS_N * S::WN;
    const int count = static_cast<int>(course::ceil_div<std::size_t>(a.cols(), S::BK));

    course::TileCopies<S, S::BM, S::BK> a_copies(a, row, 0);
    course::TileCopies<S, S::BN, S::BK> b_copies(b, col, 0);
    const auto copy = [&](int number) {
        if (number < count) {
            a_copies.template to<kAligned>(stages[number % S::STAGES].a);
            b_copies.template to<kAligned>(stages[number % S::STAGES].b);
            a_copies.next_columns();
            b_copies.next_columns();
        }
        course::ptx::cp_async_commit();  // beyond the last tile: an empty group
    };

    Sums<S> sums = {};
    for (int number = 0; number < S::STAGES - 1; ++number)
        copy(number);
    for (int number = 0; number < count; ++number) {
        course::ptx::cp_async_wait<S::STAGES - 2>();
        __syncthreads();  // the stage is complete, and the previous one is safe to overwrite
        copy(number + S::STAGES - 1);
        multiply_stage<S>(stages[number % S::STAGES], warp_row, warp_col, sums);
    }
    store_sums<S>(out, row + warp_row, col + warp_col, sums);
}

template <class T, bool kAligned>
void launch_bytes_mma_sync(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b,
                           const Output<T>& out, cudaStream_t stream) {
    using S = TileShape<T>;
    constexpr std::size_t kShared = S::STAGES * sizeof(Stage<S>);  // 96 KB: above 48 a kernel must opt in
    course::allow_shared_bytes(bytes_mma_sync<T, kAligned>, kShared);
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, kBand);
    bytes_mma_sync<T, kAligned><<<course::blocks_of(order), S::THREADS, kShared, stream>>>(a, b, out, order);
}

}  // namespace day42

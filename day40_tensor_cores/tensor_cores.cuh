// Day 40: C = alpha A B + beta C on tensor cores, 16-bit operands, sums in FP32. PMPP chapters 5
// and 6 (both editions), 15 (5th edition).
//
// A is M x K, B is K x N, C is M x N, all row-major. Any shape and any alignment of rows.
//
//   version          block      warp     stages  what is new               what limits it
//   wmma_global      32 x 32    16 x 16  -       WMMA: matrices of a warp  a fragment serves one MMA
//   wmma_shared      64 x 64    32 x 32  2       shared memory, cp.async   bank conflicts, opaque layout
//   mma_sync         64 x 64    16 x 16  1       ldmatrix, mma.sync        loads: 8-way bank conflicts
//   warp_tiles       128 x 128  64 x 32  1       reuse of fragments        bank conflicts of ldmatrix
//   swizzled         128 x 128  64 x 32  1       XOR swizzle               latency of the next tile
//   multi_stage      128 x 256  64 x 64  3       two stages in flight      the start of each step
//   fragments_ahead  128 x 256  64 x 64  3       fragments 16 of K ahead   mma.sync, power
//
// Block and warp: the results of each. A step is one iteration of the main loop, 64 of K; a stage
// is the shared memory for one step's tiles. The first two versions are in wmma.cuh, the last two
// in pipelines.cuh. mma_sync returns to one stage and small warp tiles, so that the versions after
// it show what each idea is worth.
//
// block_tile.cuh has what all versions share: TileShape<T, BM, BN, WM, WN, SWIZZLED> is a row of
// this table, TileCoords gives a warp the start of its tile of C, and loader.copy_to(stage) issues
// a thread's copies of the next tiles of A and B (cp.async, day 38). RasterOrder is the order in
// which blocks take the tiles of C. kAligned: all rows are 16-byte aligned.
//
//   ./course run day40                                               every version, verified and timed
//   ./course run day40 --only multi_stage --size 4096x4096x4096      one version, any size
//   ./course inspect day40 --only warp_tiles --size 256x256x128      bank conflicts, line by line
#pragma once

#include <cuda_fp16.h>

#include <type_traits>

#include "block_tile.cuh"
#include "common/device/ptx.cuh"

namespace day40 {

// D += A B, where A is 16 x 16, B is 16 x 8 and D is 16 x 8: the instruction mma.sync.m16n8k16.
template <class T>
__device__ void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (std::is_same_v<T, __half>) {
        course::ptx::mma_m16n8k16_f16(d, a, b);
    } else {
        course::ptx::mma_m16n8k16_bf16(d, a, b);
    }
}

// The sums of a thread: four of each 16 x 8 of its warp. Lane 4 g + t holds columns 2 t and 2 t + 1
// of rows g and g + 8.
template <class S>
using Sums = float[S::WM / 16][S::WN / 8][4];

// Stores alpha sum + beta C, directly from registers.
template <class S>
__device__ void store_sums(const Output& out, const TileCoords<S>& tile, const Sums<S>& sums) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = tile.first_row + tile.warp_row + lane / 4;
    const int col = tile.first_col + tile.warp_col + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < S::WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < S::WN / 8; ++j) {
            store_pair(out, row + i * 16, col + j * 8, sums[i][j][0], sums[i][j][1]);
            store_pair(out, row + i * 16 + 8, col + j * 8, sums[i][j][2], sums[i][j][3]);
        }
}

template <class T>
using SmallShape = TileShape<T, 64, 64, 16, 16, false>;

// Idea: the instructions themselves. ldmatrix loads four 8 x 8 matrices: lanes 0 to 7 pass the
// addresses of the rows of the first, 8 to 15 of the second, and so on. mma.sync multiplies 16 x 16
// by 16 x 8.
// Cost removed: the opaque layout. Each lane holds known elements of C, so C is stored from
// registers.
// Still limits it: shared memory. A warp loads 16 x 16 of A and of B for two MMAs, each with 8-way
// bank conflicts: the eight rows of a matrix are 128 bytes apart, so they start in the same bank.
template <class T, bool kAligned>
__global__ void __launch_bounds__(SmallShape<T>::THREADS)
    mma_sync(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output out, RasterOrder order) {
    using S = SmallShape<T>;
    extern __shared__ __align__(128) unsigned char memory[];
    Stage<S>& stage = *reinterpret_cast<Stage<S>*>(memory);
    const TileCoords<S> tile(order);
    TileLoader<S, kAligned> loader(a, b, tile);
    const int lane = static_cast<int>(threadIdx.x) % 32;

    Sums<S> sums = {};  // 1 x 2 of 16 x 8
    const int depth = static_cast<int>(a.cols());
    // If it were unrolled, the loop would take more registers, and fewer blocks would fit on an SM.
#pragma unroll 1
    for (int done = 0; done < depth; done += S::BK) {
        loader.copy_to(stage);
        course::ptx::cp_async_commit();
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is complete
#pragma unroll
        for (int k = 0; k < S::BK; k += 16) {
            // An unsigned holds two consecutive elements along k. Lane l passes the address of row
            // l % 16 of the left half (l < 16) or the right half: registers 0 and 1 get the left
            // half's upper and lower matrix, 2 and 3 the right half's. B is stored row by row, so
            // elements that are adjacent in memory are consecutive along n. But mma.sync needs them
            // along k, hence _trans.
            unsigned a_fragment[4];  // 16 x 16
            unsigned b_pair[4];      // 16 x 16: two fragments of B, one from each half
            course::ptx::ldmatrix_x4(a_fragment, stage.a.chunk(tile.warp_row + lane % 16, k / 8 + lane / 16));
            course::ptx::ldmatrix_x4_trans(b_pair,
                                           stage.b.chunk(k + lane % 16, tile.warp_col / 8 + lane / 16));
            multiply_add<T>(sums[0][0], a_fragment, {b_pair[0], b_pair[1]});
            multiply_add<T>(sums[0][1], a_fragment, {b_pair[2], b_pair[3]});
        }
        __syncthreads();  // safe to overwrite
    }
    store_sums<S>(out, tile, sums);
}

// --- Warp tiles: a fragment serves several products ----------------------------------------------

// The operands of a warp for 16 of K: WM x 16 of A and 16 x WN of B.
template <class S>
struct Fragments {
    unsigned a[S::WM / 16][4];
    unsigned b[S::WN / 8][2];
};

// The swizzle is the same in rows 16 apart, so the addresses of further fragments differ by
// constants, which become immediate offsets. In B's tile that holds along k, too: k is a number of
// rows, a multiple of 16. In A's tile k is a chunk of a row and takes part in the swizzle.
template <class S>
__device__ void load_fragments(Fragments<S>& fragments, Stage<S>& stage, const TileCoords<S>& tile, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < S::WM / 16; ++i)
        course::ptx::ldmatrix_x4(
            fragments.a[i], stage.a.chunk(tile.warp_row + lane % 16, k / 8 + lane / 16) + i * 16 * S::BK);
#pragma unroll
    for (int j = 0; j < S::WN / 8; j += 2) {
        unsigned pair[4];
        course::ptx::ldmatrix_x4_trans(
            pair, stage.b.chunk(lane % 16, tile.warp_col / 8 + j + lane / 16) + k * S::BN);
        fragments.b[j][0] = pair[0];
        fragments.b[j][1] = pair[1];
        fragments.b[j + 1][0] = pair[2];
        fragments.b[j + 1][1] = pair[3];
    }
}

// Each fragment of A times each of B.
template <class S>
__device__ void multiply_fragments(const Fragments<S>& fragments, Sums<S>& sums) {
#pragma unroll
    for (int i = 0; i < S::WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < S::WN / 8; ++j)
            multiply_add<typename S::T>(sums[i][j], fragments.a[i], fragments.b[j]);
}

template <class S>
__device__ void multiply_tile(Stage<S>& stage, const TileCoords<S>& tile, Sums<S>& sums) {
#pragma unroll
    for (int k = 0; k < S::BK; k += 16) {
        Fragments<S> fragments;
        load_fragments(fragments, stage, tile, k);
        multiply_fragments(fragments, sums);
    }
}

template <class T>
using WarpTileShape = TileShape<T, 128, 128, 64, 32, false>;

// Idea: 64 x 32 results per warp. Four fragments of A and four of B serve sixteen MMAs.
// Cost removed: five eighths of the loads from shared memory per MMA, half of those from global
// memory.
// Still limits it: bank conflicts. The eight rows of an ldmatrix start in the same bank.
template <class T, bool kAligned>
__global__ void __launch_bounds__(WarpTileShape<T>::THREADS)
    warp_tiles(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output out, RasterOrder order) {
    using S = WarpTileShape<T>;
    extern __shared__ __align__(128) unsigned char memory[];
    Stage<S>& stage = *reinterpret_cast<Stage<S>*>(memory);
    const TileCoords<S> tile(order);
    TileLoader<S, kAligned> loader(a, b, tile);
    const int depth = static_cast<int>(a.cols());

    Sums<S> sums = {};
    for (int done = 0; done < depth; done += S::BK) {
        loader.copy_to(stage);
        course::ptx::cp_async_commit();
        course::ptx::cp_async_wait<0>();
        __syncthreads();
        multiply_tile<S>(stage, tile, sums);
        __syncthreads();
    }
    store_sums<S>(out, tile, sums);
}

template <class T>
using SwizzledShape = TileShape<T, 128, 128, 64, 32, true>;

// Idea: an XOR swizzle. Chunk c of row r is stored at c ^ (r % 8): SharedTile::chunk() with
// SWIZZLED.
// Cost removed: bank conflicts, all of them. The kernel is the same.
// Still limits it: latency. Copies and MMAs take turns.
template <class T, bool kAligned>
__global__ void __launch_bounds__(SwizzledShape<T>::THREADS)
    swizzled(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output out, RasterOrder order) {
    using S = SwizzledShape<T>;
    extern __shared__ __align__(128) unsigned char memory[];
    Stage<S>& stage = *reinterpret_cast<Stage<S>*>(memory);
    const TileCoords<S> tile(order);
    TileLoader<S, kAligned> loader(a, b, tile);
    const int depth = static_cast<int>(a.cols());

    Sums<S> sums = {};
    for (int done = 0; done < depth; done += S::BK) {
        loader.copy_to(stage);
        course::ptx::cp_async_commit();
        course::ptx::cp_async_wait<0>();
        __syncthreads();
        multiply_tile<S>(stage, tile, sums);
        __syncthreads();
    }
    store_sums<S>(out, tile, sums);
}

}  // namespace day40

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
//
// Block and warp: the results of each. A step is one iteration of the main loop, 64 of K; a stage
// is the shared memory for one step's tiles. mma_sync returns to one stage and small warp tiles, so
// that the versions after it show what each idea is worth. Each kernel is followed by its launch.
//
// block_tile.cuh has what all versions share. TileShape<T, BM, BN, WM, WN, SWIZZLED> is a row of
// this table; TileCoords gives a warp the start of its tile of C; loader.copy_to(stage) issues a
// thread's copies of the next tiles of A and B (cp.async, day 38). Output has C, alpha and beta;
// store_pair() stores two adjacent elements; multiply_add() is mma.sync. kAligned: all rows are
// 16-byte aligned (32-byte in wmma_global).
//
//   ./course run day40                                               every version, verified and timed
//   ./course run day40 --program                                     program.cu: one product, from main()
//   ./course inspect day40 --only warp_tiles --size 256x256x128      bank conflicts, line by line
#pragma once

#include <cuda_fp16.h>
#include <mma.h>

#include "block_tile.cuh"
#include "common/device/ptx.cuh"

namespace day40 {

// --- WMMA, CUDA's C++ interface ------------------------------------------------------------------

namespace wmma = nvcuda::wmma;

// A fragment is a 16 x 16 matrix in the registers of a warp. CUDA does not say which lane holds
// which element.
template <class T>
using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major>;
template <class T>
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
constexpr int kElements = 16 * 16;  // of a fragment

// Loads the 16 x 16 elements from (row, col) on. A fragment can be loaded directly from global
// memory if it is in range and its rows are aligned (`direct`); all others pass through `staging`
// in shared memory, where out-of-range elements are zero-filled.
template <class Fragment, class T>
__device__ void load_fragment(Fragment& fragment, const DeviceMatrix<const T>& matrix, bool direct, int row,
                              int col, T* staging) {
    const int rows = static_cast<int>(matrix.rows());
    const int cols = static_cast<int>(matrix.cols());
    if (direct && row + 16 <= rows && col + 16 <= cols) {
        wmma::load_matrix_sync(fragment, &matrix(row, col),
                               static_cast<unsigned>(matrix.leading_dimension()));
        return;
    }
    for (int e = static_cast<int>(threadIdx.x) % 32; e < kElements; e += 32) {
        const bool in_range = row + e / 16 < rows && col + e % 16 < cols;
        staging[e] = in_range ? matrix(row + e / 16, col + e % 16) : T(0.0f);
    }
    __syncwarp();
    wmma::load_matrix_sync(fragment, staging, 16);
    __syncwarp();  // the next fragment may overwrite it
}

// Stores alpha sum + beta C. The layout of an accumulator is opaque, so the sums pass through
// shared memory, where their rows and columns are known.
__device__ inline void store_accumulator(const Accumulator& sum, const Output& out, int row, int col,
                                         float* staging) {
    wmma::store_matrix_sync(staging, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = static_cast<int>(threadIdx.x) % 32 * 2; e < kElements; e += 64)
        store_pair(out, row + e / 16, col + e % 16, staging[e], staging[e + 1]);
    __syncwarp();
}

// Idea: WMMA. A warp loads a 16 x 16 fragment of A and one of B and multiplies them in one call.
// Cost removed: instructions. A call replaces 128 multiply-adds of each thread.
// Still limits it: L1 (counters: 99 % busy, L2 35 %). Each fragment is loaded for one MMA.
template <class T, bool kAligned>
__global__ void __launch_bounds__(128)
    wmma_global(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output out, RasterOrder order) {
    __shared__ __align__(32) float results[4][kElements];  // one matrix per warp
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * 32 + warp / 2 * 16;
    const int col = tile.col * 32 + warp % 2 * 16;
    T* const staging = reinterpret_cast<T*>(results[warp]);

    Accumulator sum;
    wmma::fill_fragment(sum, 0.0f);
    if constexpr (kHasFragments) {
        for (int k = 0; k < static_cast<int>(a.cols()); k += 16) {
            FragmentA<T> a_fragment;
            FragmentB<T> b_fragment;
            load_fragment(a_fragment, a, kAligned, row, k, staging);
            load_fragment(b_fragment, b, kAligned, k, col, staging);
            wmma::mma_sync(sum, a_fragment, b_fragment, sum);
        }
    }
    store_accumulator(sum, out, row, col, results[warp]);
}

template <class T, bool kAligned>
void launch_wmma_global(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                        cudaStream_t stream) {
    const RasterOrder order = course::make_order(out.c, 32, 32, kBand);
    wmma_global<T, kAligned><<<course::blocks_of(order), 128, 0, stream>>>(a, b, out, order);
}

template <class T>
using WmmaShape = TileShape<T, 64, 64, 32, 32, false>;

// Idea: tiles pass through shared memory. cp.async copies the next tile while this one is
// multiplied, and each fragment serves two MMAs.
// Cost removed: most loads from global memory, and the wait for the others.
// Still limits it: bank conflicts. The rows of a tile are 128 bytes apart, so all of them start in
// the same bank; load_matrix_sync takes any pitch, so rows may be padded, but not swizzled. And
// because the layout of an accumulator is opaque, results must pass through shared memory.
template <class T, bool kAligned>
__global__ void __launch_bounds__(WmmaShape<T>::THREADS)
    wmma_shared(DeviceMatrix<const T> a, DeviceMatrix<const T> b, Output out, RasterOrder order) {
    using S = WmmaShape<T>;
    constexpr int ROWS = S::WM / 16, COLS = S::WN / 16;  // fragments of a warp
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<Stage<S>*>(memory);  // two
    const TileCoords<S> tile(order);
    TileLoader<S, kAligned> loader(a, b, tile);
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(a.cols(), S::BK));

    Accumulator sums[ROWS][COLS];
#pragma unroll
    for (auto& row : sums)
#pragma unroll
        for (Accumulator& sum : row)
            wmma::fill_fragment(sum, 0.0f);

    if (steps > 0) loader.copy_to(stages[0]);
    course::ptx::cp_async_commit();
    for (int step = 0; step < steps; ++step) {
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is complete, and the previous one is safe to overwrite
        if (step + 1 < steps) loader.copy_to(stages[(step + 1) % 2]);
        course::ptx::cp_async_commit();
        Stage<S>& stage = stages[step % 2];
        if constexpr (kHasFragments) {
#pragma unroll
            for (int k = 0; k < S::BK; k += 16) {
                FragmentA<T> a_fragments[ROWS];
                FragmentB<T> b_fragments[COLS];
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
                    wmma::load_matrix_sync(a_fragments[i], stage.a.chunk(tile.warp_row + i * 16, k / 8),
                                           S::BK);
#pragma unroll
                for (int j = 0; j < COLS; ++j)
                    wmma::load_matrix_sync(b_fragments[j], stage.b.chunk(k, tile.warp_col / 8 + j * 2),
                                           S::BN);
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int j = 0; j < COLS; ++j)
                        wmma::mma_sync(sums[i][j], a_fragments[i], b_fragments[j], sums[i][j]);
            }
        }
    }
    __syncthreads();  // the stages are free: results are staged there
    float* const staging = reinterpret_cast<float*>(memory) + threadIdx.x / 32 * kElements;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < COLS; ++j)
            store_accumulator(sums[i][j], out, tile.first_row + tile.warp_row + i * 16,
                              tile.first_col + tile.warp_col + j * 16, staging);
}

template <class T, bool kAligned>
void launch_wmma_shared(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                        cudaStream_t stream) {
    using S = WmmaShape<T>;
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, kBand);
    wmma_shared<T, kAligned>
        <<<course::blocks_of(order), S::THREADS, 2 * sizeof(Stage<S>), stream>>>(a, b, out, order);
}

// --- The instructions themselves -----------------------------------------------------------------

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

template <class T, bool kAligned>
void launch_mma_sync(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                     cudaStream_t stream) {
    using S = SmallShape<T>;
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, kBand);
    mma_sync<T, kAligned>
        <<<course::blocks_of(order), S::THREADS, sizeof(Stage<S>), stream>>>(a, b, out, order);
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

template <class T, bool kAligned>
void launch_warp_tiles(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                       cudaStream_t stream) {
    using S = WarpTileShape<T>;
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, kBand);
    warp_tiles<T, kAligned>
        <<<course::blocks_of(order), S::THREADS, sizeof(Stage<S>), stream>>>(a, b, out, order);
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

template <class T, bool kAligned>
void launch_swizzled(const DeviceMatrix<const T>& a, const DeviceMatrix<const T>& b, const Output& out,
                     cudaStream_t stream) {
    using S = SwizzledShape<T>;
    const RasterOrder order = course::make_order(out.c, S::BM, S::BN, kBand);
    swizzled<T, kAligned>
        <<<course::blocks_of(order), S::THREADS, sizeof(Stage<S>), stream>>>(a, b, out, order);
}

}  // namespace day40

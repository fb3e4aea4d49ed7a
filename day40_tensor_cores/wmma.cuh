// Day 40, part 1: tensor cores through WMMA, CUDA's own interface. The table of versions is in
// tensor_cores.cuh, which continues with the instructions themselves. RasterOrder is the order in
// which blocks take the tiles of C; Output has C, alpha and beta, and store_pair() stores two
// adjacent elements. From wmma_shared on, TileShape, Stage, TileCoords and TileLoader are those of
// block_tile.cuh.
#pragma once

#include <mma.h>

#include "block_tile.cuh"
#include "common/device/ptx.cuh"

namespace day40 {

namespace wmma = nvcuda::wmma;

// A fragment is a 16 x 16 matrix in the registers of a warp. CUDA does not say which lane holds
// which element.
template <class T>
using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major>;
template <class T>
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
constexpr int kElements = 16 * 16;  // of a fragment

// GPUs below compute capability 8.0 have no bfloat16 fragments. Version::constraint refuses such
// GPUs.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
constexpr bool kHasFragments = true;
#else
constexpr bool kHasFragments = false;
#endif

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
// Still limits it: global memory and L2. Each fragment is loaded for one MMA.
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

}  // namespace day40

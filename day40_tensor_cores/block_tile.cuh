// The tile of a block: its shape, its stages in shared memory, the part of it that a warp
// multiplies and the part that a thread copies; and the MMA of either type.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "common/device/device_view.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/tile_copies.cuh"

namespace day40 {

using course::DeviceMatrix;
using course::RasterOrder;
using Output = course::OutputOf<float>;

constexpr int kBand = 8;  // rows of tiles that are computed together, for the L2 cache (RasterOrder)

// BM x BN results per block, WM x WN of them per warp; tiles of A and B are 64 deep.
template <class T_, int BM_, int BN_, int WM_, int WN_, bool SWIZZLED_>
struct TileShape {
    using T = T_;
    static constexpr int BM = BM_, BN = BN_, BK = 64, WM = WM_, WN = WN_;
    static constexpr bool SWIZZLED = SWIZZLED_;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
};

// A tile of A and one of B. chunk(row, c) is the address of columns 8 c to 8 c + 7 of a row: 16
// bytes.
template <class S>
struct Stage {
    course::SharedTile<S, S::BM, S::BK> a;
    course::SharedTile<S, S::BK, S::BN> b;
};

// The first row and column of the block's tile in C, and of the warp's tile within it, all in
// elements.
template <class S>
struct TileCoords {
    int first_row;
    int first_col;
    int warp_row;
    int warp_col;

    __device__ explicit TileCoords(const RasterOrder& order) {
        const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
        const int warp = static_cast<int>(threadIdx.x) / 32;
        first_row = tile.row * S::BM;
        first_col = tile.col * S::BN;
        warp_row = warp / S::WARPS_N * S::WM;
        warp_col = warp % S::WARPS_N * S::WN;
    }
};

// This thread's part of copying the tiles along K, in order. copy_to() issues the copies of the
// next tile with cp.async and zero-fills out-of-range elements (common/tile/tile_copies.cuh).
template <class S, bool kAligned>
struct TileLoader {
    course::TileCopies<S, S::BM, S::BK> a;
    course::TileCopies<S, S::BK, S::BN> b;

    __device__ TileLoader(const DeviceMatrix<const typename S::T>& a_matrix,
                          const DeviceMatrix<const typename S::T>& b_matrix, const TileCoords<S>& tile)
        : a(a_matrix, tile.first_row, 0), b(b_matrix, 0, tile.first_col) {}

    __device__ void copy_to(Stage<S>& stage) {
        a.template to<kAligned>(stage.a);
        b.template to<kAligned>(stage.b);
        a.next_columns();
        b.next_rows();
    }
};

// GPUs below compute capability 8.0 have no bfloat16 fragments. Version::constraint refuses such
// GPUs.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
constexpr bool kHasFragments = true;
#else
constexpr bool kHasFragments = false;
#endif

// D += A B, where A is 16 x 16, B is 16 x 8 and D is 16 x 8: the instruction mma.sync.m16n8k16.
template <class T>
__device__ void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (std::is_same_v<T, __half>) {
        course::ptx::mma_m16n8k16_f16(d, a, b);
    } else {
        course::ptx::mma_m16n8k16_bf16(d, a, b);
    }
}

}  // namespace day40

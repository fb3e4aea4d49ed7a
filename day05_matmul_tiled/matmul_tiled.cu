// Day 5's host code: argument checks, products in parts, the list of versions. The kernels and
// their launches are in matmul_tiled.cuh and beyond/.
#include <algorithm>
#include <array>

#include "beyond/any_tile.cuh"
#include "beyond/prefetch.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "matmul_tiled.cuh"
#include "matmul_tiled.hpp"

namespace day05 {
namespace {

using course::require;

void check_arguments(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c) {
    require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(), "matmul_tiled: A is ", a,
            ", B is ", b, ", C is ", c, "; expected A: M x K, B: K x N, C: M x N");
    require(!overlap(a, c), "matmul_tiled: C overlaps A; expected no common element");
    require(!overlap(b, c), "matmul_tiled: C overlaps B; expected no common element");
}

// Rows [row, row + rows) and columns [col, col + cols) of `matrix`.
template <class T>
DeviceMatrix<T> part_of(DeviceMatrix<T> matrix, std::size_t row, std::size_t rows, std::size_t col,
                        std::size_t cols) {
    const std::size_t ld = matrix.leading_dimension();
    // An empty matrix may have no address to count from.
    const bool empty = rows == 0 || cols == 0;
    T* const first = empty ? matrix.data() : matrix.data() + row * ld + col;
    const std::size_t elements = empty ? 0 : (rows - 1) * ld + cols;
    return DeviceMatrix<T>(course::DeviceSpan<T>::from_device_pointer(first, elements), rows, cols, ld);
}

// A grid has at most 65535 blocks in y. If C has more rows, or columns, than 65535 blocks cover, it
// is computed in parts, one launch after the other. A block computes tile x (tile * coarse)
// elements of C.
template <class Launch>
void launch_in_parts(std::size_t tile, std::size_t coarse, DeviceMatrix<const float> a,
                     DeviceMatrix<const float> b, DeviceMatrix<float> c, const Launch& launch) {
    check_arguments(a, b, c);
    constexpr std::size_t kMostBlocks = 65535;
    const std::size_t width = tile * coarse;
    for (std::size_t row = 0; row < c.rows(); row += kMostBlocks * tile) {
        for (std::size_t col = 0; col < c.cols(); col += kMostBlocks * width) {
            const std::size_t rows = std::min(c.rows() - row, kMostBlocks * tile);
            const std::size_t cols = std::min(c.cols() - col, kMostBlocks * width);
            launch(part_of(a, row, rows, 0, a.cols()), part_of(b, 0, b.rows(), col, cols),
                   part_of(c, row, rows, col, cols));
            CUDA_CHECK_LAUNCH();
        }
    }
}

// naive and coalesced: blocks of kSide x kSide threads.
template <auto kLaunch, unsigned kSide>
void in_blocks(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
               cudaStream_t stream) {
    launch_in_parts(kSide, 1, a, b, c, [=](auto a_part, auto b_part, auto c_part) {
        kLaunch(a_part, b_part, c_part, kSide, stream);
    });
}

// The tiled versions. A thread computes kColumnsPerThread elements.
template <auto kLaunch, unsigned kColumnsPerThread = 1>
void in_tiles(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
              cudaStream_t stream) {
    launch_in_parts(kTile, kColumnsPerThread, a, b, c,
                    [=](auto a_part, auto b_part, auto c_part) { kLaunch(a_part, b_part, c_part, stream); });
}

// The largest tile for which a block of the current device has enough threads and shared memory.
unsigned largest_tile() {
    int device = 0;
    int threads = 0;
    int shared_bytes = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device));
    CUDA_CHECK(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlock, device));
    int tile = 8;  // 8, 16, 32: whole warps, whole sectors
    while (4 * tile * tile <= threads &&
           2 * 4 * tile * tile * static_cast<int>(sizeof(float)) <= shared_bytes)
        tile *= 2;
    return static_cast<unsigned>(tile);
}

void in_largest_tiles(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                      cudaStream_t stream) {
    const unsigned tile = largest_tile();
    launch_in_parts(tile, 1, a, b, c, [=](auto a_part, auto b_part, auto c_part) {
        launch_tiled_dynamic(a_part, b_part, c_part, tile, stream);
    });
}

// A block that computes kBlockRows x kBlockCols elements loads, per multiply-add, 1 / kBlockCols of
// an element of A and 1 / kBlockRows of an element of B from global memory. 1 x 1: nothing is
// shared.
template <int kBlockRows, int kBlockCols>
course::Work work(const Shape& shape) {
    const auto m = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.cols);
    const auto k = static_cast<double>(shape.depth);
    const double loads = m * n * k * (1.0 / kBlockRows + 1.0 / kBlockCols);
    return {.bytes = sizeof(float) * (m * k + k * n + m * n),
            .written = sizeof(float) * m * n,
            .flops = 2 * m * n * k,
            .requested = sizeof(float) * (loads + m * n)};
}

}  // namespace

std::span<const Matmul> versions() {
    constexpr auto kUntiled = work<1, 1>;
    constexpr auto kTiled = work<kTile, kTile>;
    static const std::array<Matmul, 8> list = {{
        {"naive_16x16", "a warp's loads of A go down columns", in_blocks<launch_naive, 16>, kUntiled},
        {"naive_32x32", "the same in larger blocks", in_blocks<launch_naive, 32>, kUntiled},
        {"coalesced_16x16", "a warp's loads go along rows", in_blocks<launch_coalesced, 16>, kUntiled},
        {"coalesced_32x32", "the same in larger blocks", in_blocks<launch_coalesced, 32>, kUntiled},
        {"tiled_static", "32 x 32 tiles in shared memory", in_tiles<launch_tiled>, kTiled},
        {"tiled_dynamic", "tile size chosen from the device's limits", in_largest_tiles, kTiled},
        {"tiled_prefetch", "the next tiles are loaded while these are used", in_tiles<launch_tiled_prefetch>,
         kTiled},
        {"coarsened", "four elements of C per thread", in_tiles<launch_coarsened, kCoarse>,
         work<kTile, kTile * kCoarse>},
    }};
    return list;
}

}  // namespace day05

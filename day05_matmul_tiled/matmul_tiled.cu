// Day 5's launchers: argument checks, grids, the list of versions. The kernels are in
// matmul_tiled.cuh.
#include <algorithm>
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "matmul_tiled.cuh"
#include "matmul_tiled.hpp"

namespace day05 {
namespace {

using course::require;

using Kernel = void(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c);

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

// Starts blocks of tile x tile threads, each of which computes tile x (tile * coarse) elements of
// C. A grid has at most 65535 blocks in y. If C has more rows, or columns, than 65535 blocks cover,
// it is computed in parts, one launch after the other.
void launch_for_all(Kernel* kernel, std::size_t tile, std::size_t coarse, std::size_t shared_bytes,
                    DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                    cudaStream_t stream) {
    constexpr std::size_t kMostBlocks = 65535;
    const std::size_t width = tile * coarse;
    for (std::size_t row = 0; row < c.rows(); row += kMostBlocks * tile) {
        for (std::size_t col = 0; col < c.cols(); col += kMostBlocks * width) {
            const std::size_t rows = std::min(c.rows() - row, kMostBlocks * tile);
            const std::size_t cols = std::min(c.cols() - col, kMostBlocks * width);
            const dim3 grid(static_cast<unsigned>(course::ceil_div(cols, width)),
                            static_cast<unsigned>(course::ceil_div(rows, tile)));
            const dim3 block(static_cast<unsigned>(tile), static_cast<unsigned>(tile));
            course::launch(kernel, {grid, block, shared_bytes, stream}, part_of(a, row, rows, 0, a.cols()),
                           part_of(b, 0, b.rows(), col, cols), part_of(c, row, rows, col, cols));
        }
    }
}

template <Kernel* kKernel, int kSide, int kColumnsPerThread = 1>
void launch_static(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                   cudaStream_t stream) {
    check_arguments(a, b, c);
    launch_for_all(kKernel, kSide, kColumnsPerThread, 0, a, b, c, stream);
}

// The largest tile for which a block of the current device has enough threads and shared memory.
std::size_t largest_tile() {
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
    return static_cast<std::size_t>(tile);
}

void launch_tiled_dynamic(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                          cudaStream_t stream) {
    check_arguments(a, b, c);
    const std::size_t tile = largest_tile();
    launch_for_all(multiply_tiled_dynamic, tile, 1, 2 * tile * tile * sizeof(float), a, b, c, stream);
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
        {"naive_16x16", "a warp's loads of A go down columns", launch_static<multiply_naive, 16>, kUntiled},
        {"naive_32x32", "the same in larger blocks", launch_static<multiply_naive, 32>, kUntiled},
        {"coalesced_16x16", "a warp's loads go along rows", launch_static<multiply_coalesced, 16>, kUntiled},
        {"coalesced_32x32", "the same in larger blocks", launch_static<multiply_coalesced, 32>, kUntiled},
        {"tiled_static", "32 x 32 tiles in shared memory", launch_static<multiply_tiled, kTile>, kTiled},
        {"tiled_dynamic", "tile size chosen from the device's limits", launch_tiled_dynamic, kTiled},
        {"tiled_prefetch", "the next tiles are loaded while these are used",
         launch_static<multiply_tiled_prefetch, kTile>, kTiled},
        {"coarsened", "four elements of C per thread", launch_static<multiply_coarsened, kTile, kCoarse>,
         work<kTile, kTile * kCoarse>},
    }};
    return list;
}

}  // namespace day05

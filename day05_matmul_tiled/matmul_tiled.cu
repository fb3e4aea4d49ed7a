// Day 5: matrix multiplication, C = A B.   A: M x K, B: K x N, C: M x N, FP32, row-major.        PMPP chapters 3 to 6
//
//   version            a thread computes     a warp reads in one step of k                       what limits it
//   naive_16x16        one element of C      32 rows of A, one column of B: 32 + sectors         uncoalesced loads
//   naive_32x32        one element           the same, in larger blocks                          uncoalesced loads
//   coalesced_16x16    one element           two rows of A, 16 neighbours of B                   loads: two for each multiply-add
//   coalesced_32x32    one element           one element of A, 32 neighbours of B                loads: two for each multiply-add
//   tiled_static       one element           shared memory only; global loads are 32 times fewer   shared loads
//   tiled_dynamic      one element           the same, tile size chosen when the program runs    shared loads, loop overhead
//   tiled_prefetch     one element           the same; the next tiles are already on their way   shared loads
//   coarsened          four elements         one A for four B                                    shared loads, fewer
//
// Every version does 2 M N K operations. What differs is how many bytes it asks memory for on the way: see the README.
//
//   ./course run day05                                     all versions, verified and timed
//   ./course run day05 --variant tiled_static --size 4096x4096x4096
#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "matmul_tiled.hpp"

namespace day05 {
namespace {

using course::DeviceMatrix;

constexpr int kTile = 32;
constexpr int kCoarse = 4;
constexpr std::size_t kMaxGridY = 65535;

// The row of blocks that this block is in. A grid ends at 65535 in y; where C has more rows of blocks, z goes on.
__device__ std::size_t block_row() {
    return static_cast<std::size_t>(blockIdx.z) * gridDim.y + blockIdx.y;
}

// Beyond the edge of the matrix stands a 0, which adds nothing to a sum.
__device__ float load_or_zero(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col) {
    return row < matrix.rows() && col < matrix.cols() ? matrix(row, col) : 0.0f;
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: a thread for each element of C; block (bx, by) computes BLOCK x BLOCK of them, threadIdx.x counts the rows.
// Cost removed: the two outer loops of the CPU.
// Still limits it: neighbouring threads are in different rows, so a warp's loads of A lie K elements apart: a sector each.
template <int BLOCK>
__global__ void multiply_naive(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                               DeviceMatrix<float> c) {
    const std::size_t row = block_row() * BLOCK + threadIdx.x;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * BLOCK + threadIdx.y;
    if (row >= c.rows() || col >= c.cols()) return;
    float sum = 0;
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * b(k, col);
    c(row, col) = sum;
}

// Idea: threadIdx.x counts the columns. Nothing else has changed.
// Cost removed: scattered loads; a warp now reads B from neighbouring addresses and shares its elements of A.
// Still limits it: two loads for every multiply-add, and every element is loaded again by each thread that needs it.
template <int BLOCK>
__global__ void multiply_coalesced(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                   DeviceMatrix<float> c) {
    const std::size_t row = block_row() * BLOCK + threadIdx.y;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * BLOCK + threadIdx.x;
    if (row >= c.rows() || col >= c.cols()) return;
    float sum = 0;
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * b(k, col);
    c(row, col) = sum;
}

// Idea: the block loads a TILE x TILE piece of A and of B into shared memory, once, and all its threads use them TILE times.
// Cost removed: TILE - 1 of TILE global loads.
// Still limits it: both factors of every multiply-add come from shared memory, which is loaded by the same slow unit.
template <int TILE>
__global__ void multiply_tiled(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                               DeviceMatrix<float> c) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = block_row() * TILE + ty;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * TILE + tx;

    float sum = 0;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += TILE) {
        a_tile[ty][tx] = load_or_zero(a, row, k0 + tx);
        b_tile[ty][tx] = load_or_zero(b, k0 + ty, col);
        __syncthreads();  // the tiles are complete
        for (int k = 0; k < TILE; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();  // nobody needs them any more
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

// Idea: the same with a tile size that is known only when the program runs: one binary for every GPU.
// Cost removed: a guess about the device. The launcher asks it how many threads and how much shared memory a block may have.
// Still limits it: the compiler cannot unroll a loop whose length it does not know, so it adds its own instructions.
__global__ void multiply_tiled_dynamic(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                       DeviceMatrix<float> c) {
    extern __shared__ float tiles[];
    const unsigned tile = blockDim.x;
    float* const a_tile = tiles;
    float* const b_tile = tiles + tile * tile;
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = block_row() * tile + ty;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * tile + tx;

    float sum = 0;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += tile) {
        a_tile[ty * tile + tx] = load_or_zero(a, row, k0 + tx);
        b_tile[ty * tile + tx] = load_or_zero(b, k0 + ty, col);
        __syncthreads();
        for (unsigned k = 0; k < tile; ++k)
            sum += a_tile[ty * tile + k] * b_tile[k * tile + tx];
        __syncthreads();
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

// Idea: load the next tiles into registers before this step's arithmetic starts, and store them when it is done.
// Cost removed: waiting for global memory at the head of every step.
// Still limits it: shared loads, now nearly alone: compare with launch_tile_limit().
template <int TILE>
__global__ void multiply_tiled_prefetch(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                        DeviceMatrix<float> c) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = block_row() * TILE + ty;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * TILE + tx;

    float sum = 0;
    float a_next = load_or_zero(a, row, tx);
    float b_next = load_or_zero(b, ty, col);
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += TILE) {
        a_tile[ty][tx] = a_next;
        b_tile[ty][tx] = b_next;
        __syncthreads();
        a_next = load_or_zero(a, row, k0 + TILE + tx);  // needed a whole step later
        b_next = load_or_zero(b, k0 + TILE + ty, col);
        for (int k = 0; k < TILE; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

// Idea: a thread computes COARSE elements of its row, TILE columns apart; a value of A read once serves all of them.
// Cost removed: COARSE - 1 of COARSE loads of A, from shared and from global memory.
// Still limits it: B is still loaded once for each multiply-add. Tiles in registers, both ways, are gemm_ladder's subject.
template <int TILE, int COARSE>
__global__ void multiply_coarsened(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                   DeviceMatrix<float> c) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE * COARSE];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = block_row() * TILE + ty;
    const std::size_t first_col = static_cast<std::size_t>(blockIdx.x) * TILE * COARSE + tx;

    float sum[COARSE] = {};
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += TILE) {
        a_tile[ty][tx] = load_or_zero(a, row, k0 + tx);
        for (int i = 0; i < COARSE; ++i)
            b_tile[ty][tx + i * TILE] = load_or_zero(b, k0 + ty, first_col + i * TILE);
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            const float a_value = a_tile[ty][k];
            for (int i = 0; i < COARSE; ++i)
                sum[i] += a_value * b_tile[k][tx + i * TILE];
        }
        __syncthreads();
    }
    for (int i = 0; i < COARSE; ++i) {
        const std::size_t col = first_col + i * TILE;
        if (row < c.rows() && col < c.cols()) c(row, col) = sum[i];
    }
}

// The main loop of multiply_tiled, `rounds` times on the same tiles: no global loads, nothing to wait for but the barrier
// that keeps the compiler from keeping the tiles in registers.
template <int TILE>
__global__ void multiply_one_tile_again(std::size_t rounds, float* never) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    a_tile[ty][tx] = static_cast<float>(tx);
    b_tile[ty][tx] = static_cast<float>(ty);
    float sum = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
        __syncthreads();
        for (int k = 0; k < TILE; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
    }
    if (never != nullptr) never[threadIdx.x] = sum;  // without a use the loop would go
}

// --- Launchers -------------------------------------------------------------------------------------------------------

std::string text_of(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("matmul_tiled: " + message);
}

void check_arguments(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c) {
    require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
            "A is " + text_of(a.rows(), a.cols()) + ", B is " + text_of(b.rows(), b.cols()) + ", C is " +
                text_of(c.rows(), c.cols()) + "; expected A: M x K, B: K x N, C: M x N");
    require(!overlap(a, c), "C overlaps A; expected no common element");
    require(!overlap(b, c), "C overlaps B; expected no common element");
}

// Blocks of `height` x `width` elements that cover `rows` x `cols` of them.
dim3 grid_for(std::size_t rows, std::size_t cols, std::size_t height, std::size_t width) {
    const std::size_t down = course::ceil_div(rows, height);
    const std::size_t y = std::min(down, kMaxGridY);
    const std::size_t z = course::ceil_div(down, y);
    require(z <= kMaxGridY, std::to_string(rows) + " rows need more blocks than a grid can have");
    return dim3(course::blocks_for(cols, static_cast<int>(width)), static_cast<unsigned>(y),
                static_cast<unsigned>(z));
}

// A tile that is as large as the device's blocks can be: tile x tile threads, two tiles in shared memory.
int largest_tile() {
    int device = 0;
    int threads = 0;
    int shared_bytes = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device));
    CUDA_CHECK(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlock, device));
    int tile = 8;  // whole warps, and coalesced sectors: 8, 16, 32
    while (4 * tile * tile <= threads &&
           2 * 4 * tile * tile * static_cast<int>(sizeof(float)) <= shared_bytes)
        tile *= 2;
    return tile;
}

template <int BLOCK, bool COALESCED>
void launch_untiled(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                    cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.rows() == 0 || c.cols() == 0) return;  // a grid must have a block
    const auto kernel = COALESCED ? multiply_coalesced<BLOCK> : multiply_naive<BLOCK>;
    kernel<<<grid_for(c.rows(), c.cols(), BLOCK, BLOCK), dim3(BLOCK, BLOCK), 0, stream>>>(a, b, c);
    CUDA_CHECK_LAUNCH();
}

template <bool PREFETCH>
void launch_tiled(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                  cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.rows() == 0 || c.cols() == 0) return;
    const dim3 grid = grid_for(c.rows(), c.cols(), kTile, kTile);
    const auto kernel = PREFETCH ? multiply_tiled_prefetch<kTile> : multiply_tiled<kTile>;
    kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c);
    CUDA_CHECK_LAUNCH();
}

void launch_tiled_dynamic(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                          cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.rows() == 0 || c.cols() == 0) return;
    const auto tile = static_cast<unsigned>(largest_tile());
    const dim3 grid = grid_for(c.rows(), c.cols(), tile, tile);
    const std::size_t shared_bytes = 2 * sizeof(float) * tile * tile;
    multiply_tiled_dynamic<<<grid, dim3(tile, tile), shared_bytes, stream>>>(a, b, c);
    CUDA_CHECK_LAUNCH();
}

void launch_coarsened(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                      cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.rows() == 0 || c.cols() == 0) return;
    const dim3 grid = grid_for(c.rows(), c.cols(), kTile, kTile * kCoarse);
    multiply_coarsened<kTile, kCoarse><<<grid, dim3(kTile, kTile), 0, stream>>>(a, b, c);
    CUDA_CHECK_LAUNCH();
}

// Each multiply-add of a block_rows x block_cols block loads 1 / block_cols of A and 1 / block_rows of B from global
// memory; 1 x 1: no sharing.
template <int BLOCK_ROWS, int BLOCK_COLS>
course::Work work(const Shape& shape) {
    const auto m = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.cols);
    const auto k = static_cast<double>(shape.depth);
    const double loads = m * n * k * (1.0 / BLOCK_ROWS + 1.0 / BLOCK_COLS);
    return {.bytes = sizeof(float) * (m * k + k * n + m * n),
            .written = sizeof(float) * m * n,
            .flops = 2 * m * n * k,
            .requested = sizeof(float) * (loads + m * n)};
}

}  // namespace

void launch_tile_limit(Shape shape, cudaStream_t stream) {
    if (shape.rows == 0 || shape.cols == 0) return;
    const dim3 grid = grid_for(shape.rows, shape.cols, kTile, kTile);
    const std::size_t rounds = course::ceil_div<std::size_t>(shape.depth, kTile);
    multiply_one_tile_again<kTile><<<grid, dim3(kTile, kTile), 0, stream>>>(rounds, nullptr);
    CUDA_CHECK_LAUNCH();
}

// --- The list ----------------------------------------------------------------------------------------------------------

std::span<const Matmul> variants() {
    static const std::array<Matmul, 8> list = {{
        {"naive_16x16", "a warp walks down columns", launch_untiled<16, false>, work<1, 1>},
        {"naive_32x32", "the same in larger blocks", launch_untiled<32, false>, work<1, 1>},
        {"coalesced_16x16", "a warp walks along rows", launch_untiled<16, true>, work<1, 1>},
        {"coalesced_32x32", "the same in larger blocks", launch_untiled<32, true>, work<1, 1>},
        {"tiled_static", "32 x 32 tiles in shared memory", launch_tiled<false>, work<kTile, kTile>},
        {"tiled_dynamic", "tile size chosen from the device's limits", launch_tiled_dynamic,
         work<kTile, kTile>},
        {"tiled_prefetch", "the next tiles are loaded while these are used", launch_tiled<true>,
         work<kTile, kTile>},
        {"coarsened", "four elements of C per thread", launch_coarsened, work<kTile, kTile * kCoarse>},
    }};
    return list;
}

}  // namespace day05

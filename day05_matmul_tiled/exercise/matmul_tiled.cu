// To work through: fill in what says TODO, then ./course check day05. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
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
    // TODO day05/naive, about 10 minutes.
    // `c = a b`, with `a` of M x K, `b` of K x N and `c` of M x N elements. One thread for each element of
    // `c`.
    //
    // Blocks have `BLOCK` x `BLOCK` threads, and each block does a square of `BLOCK` x `BLOCK` elements:
    // `block_row()` is the number of its row of squares, `blockIdx.x` of its column of squares. Within the
    // square let `threadIdx.x` count the rows and `threadIdx.y` the columns. The next exercise turns that
    // round. M and N need not be multiples of `BLOCK`, and any of M, N and K may be 1; K may be 0.
}

// Idea: threadIdx.x counts the columns. Nothing else has changed.
// Cost removed: scattered loads; a warp now reads B from neighbouring addresses and shares its elements of A.
// Still limits it: two loads for every multiply-add, and every element is loaded again by each thread that needs it.
template <int BLOCK>
__global__ void multiply_coalesced(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                   DeviceMatrix<float> c) {
    // TODO day05/coalesced, about 10 minutes.
    // The same kernel, but now the 32 threads of a warp should ask for neighbours in memory. Rows of `a`, `b`
    // and `c` lie one after the other in memory, so neighbours are elements of one row.
    //
    // Threads of a warp have neighbouring `threadIdx.x`. The tests look at the result alone, and your `naive`
    // would pass them: the star for coalescing is what you work for here.
}

// Idea: the block loads a TILE x TILE piece of A and of B into shared memory, once, and all its threads use them TILE times.
// Cost removed: TILE - 1 of TILE global loads.
// Still limits it: both factors of every multiply-add come from shared memory, which is loaded by the same slow unit.
template <int TILE>
__global__ void multiply_tiled(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                               DeviceMatrix<float> c) {
    // TODO day05/tiled, about 30 minutes.
    // A block of `TILE` x `TILE` threads computes a square of `TILE` x `TILE` elements of `c`. All threads of
    // a row of it want the same row of `a`: so let the block load a square piece of `a` and one of `b` into
    // shared memory, once, and use each number `TILE` times.
    //
    // Declare `__shared__ float a_tile[TILE][TILE];` and one for `b`. Go over K in steps of `TILE`.
    // `load_or_zero(matrix, row, col)` is an element, or 0 beyond the edge. Indices within the block as in
    // `coalesced`: `threadIdx.x` counts columns.
}

// Idea: the same with a tile size that is known only when the program runs: one binary for every GPU.
// Cost removed: a guess about the device. The launcher asks it how many threads and how much shared memory a block may have.
// Still limits it: the compiler cannot unroll a loop whose length it does not know, so it adds its own instructions.
__global__ void multiply_tiled_dynamic(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                       DeviceMatrix<float> c) {
    // TODO day05/tiled_dynamic, about 15 minutes.
    // The same tiles, but their size is known only when the program runs: `blockDim.x`, which is equal to
    // `blockDim.y`. The launcher gives the block 2 * tile * tile floats of dynamic shared memory. It is one
    // array, and it has no rows: `extern __shared__ float tiles[];`
}

// Idea: load the next tiles into registers before this step's arithmetic starts, and store them when it is done.
// Cost removed: waiting for global memory at the head of every step.
// Still limits it: shared loads, now nearly alone: compare with launch_tile_limit().
template <int TILE>
__global__ void multiply_tiled_prefetch(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                        DeviceMatrix<float> c) {
    // TODO day05/prefetch, about 15 minutes.
    // In `multiply_tiled` all threads wait for memory at the head of each step, and memory waits while they
    // compute. Let both work at the same time: ask for the next step's numbers before this step's arithmetic
    // begins, and keep them in two registers, `a_next` and `b_next`, until the tiles are free.
    //
    // The tests cannot see the difference from `multiply_tiled`; a GPU's clock can.
}

// Idea: a thread computes COARSE elements of its row, TILE columns apart; a value of A read once serves all of them.
// Cost removed: COARSE - 1 of COARSE loads of A, from shared and from global memory.
// Still limits it: B is still loaded once for each multiply-add. Tiles in registers, both ways, are gemm_ladder's subject.
template <int TILE, int COARSE>
__global__ void multiply_coarsened(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                   DeviceMatrix<float> c) {
    // TODO day05/coarsened, about 30 minutes.
    // Each thread computes `COARSE` elements of its row of `c`, `TILE` columns apart, so that a number of `a`
    // read once from shared memory serves `COARSE` multiply-adds.
    //
    // Blocks still have `TILE` x `TILE` threads, but a block now does `TILE` rows and `TILE * COARSE`
    // columns. Its tile of `a` is `TILE` x `TILE`, that of `b` is `TILE` x `TILE * COARSE`. Keep the sums in
    // `float sum[COARSE] = {};`.
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

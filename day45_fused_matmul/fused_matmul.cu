// Day 45: matrix products that do something else with their results.                               PMPP chapters 5 and 6
//
// Part one: many products at once (fused_matmul.hpp), and the kernel that everything else of the day is made of: one main loop
// (main_loop.cuh), and an epilogue that says what becomes of a finished tile (matmul.cuh). Here the epilogue is the plain one.
//
//   version            idea                                                       limited by
//   one_thread_each    a thread for each element of each C                        two loads for a multiply-add
//   tile_each          a block for each tile of each C: the ladder's step 12      tiles that end together; filling the pipeline
//   pipelined          a block goes from tile to tile, its copies ahead of it     multiply-adds; what of a tile lies outside C
//   pipelined_128x128  the same with half the tile, and two blocks                more copies for each multiply-add
//   pipelined_64x64    the same with an eighth of it, and six                     still more, and loads from shared memory
//   fitted             the tile that suits the shape: one of the three            multiply-adds
//
//   ./course run day45 --size 8x256x256x64
#include <algorithm>
#include <array>

#include "batched.cuh"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/tile/epilogue.cuh"
#include "common/tile/fused_matmul.cuh"
#include "fused_matmul.hpp"

namespace day45 {
namespace {

// --- Kernels ---------------------------------------------------------------------------------------------------------

__device__ float element_of(const course::DeviceMatrix<const float>& matrix, course::Op op, std::size_t row,
                            std::size_t col) {
    return op == course::Op::kNone ? matrix(row, col) : matrix(col, row);
}

// Idea: a thread for each element of each C.
// Cost removed: a launch for each product.
// Still limits it: every multiply-add waits for two loads.
__global__ void multiply_one_thread_each(const BatchedMatmul matmul) {
    const course::Factors& factors = matmul.factors;
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t in_product = i % (factors.m() * factors.n());
    const std::size_t product = i / (factors.m() * factors.n());
    if (product >= factors.count()) return;
    const std::size_t row = in_product / factors.n();
    const std::size_t col = in_product % factors.n();
    const course::DeviceMatrix<const float> a = factors.a[product];
    const course::DeviceMatrix<const float> b = factors.b[product];
    float sum = 0;
    for (std::size_t k = 0; k < factors.k(); ++k)
        sum += element_of(a, factors.op_a, row, k) * element_of(b, factors.op_b, k, col);
    course::update(matmul.c[product](row, col), matmul.alpha, sum, matmul.beta);
}

// --- Launchers -------------------------------------------------------------------------------------------------------

void launch_one_thread_each(const BatchedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    constexpr int kThreads = 256;
    const std::size_t elements = matmul.c.first.rows() * matmul.c.first.cols() * matmul.c.count;
    multiply_one_thread_each<<<course::blocks_for(elements, kThreads), kThreads, 0, stream>>>(matmul);
    CUDA_CHECK_LAUNCH();
}

template <class T, int BLOCKS, bool PERSISTENT>
void launch_tiles(const BatchedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    const auto walk = course::every_tile<T>(matmul.factors);
    const course::FusedMatmul<T, BLOCKS, course::EveryTile<T>, course::WriteTile, course::MultiplyAdd,
                              course::Packs::kOfBoth>
        kernel;
    const unsigned grid = PERSISTENT ? std::min(walk.all, kernel.resident_blocks()) : walk.all;
    kernel.launch(grid, matmul.factors, walk, {matmul.c, matmul.alpha, matmul.beta}, stream);
}

// --- The tile that suits the shape -----------------------------------------------------------------------------------

// The time of a tile is what a multiprocessor takes for it when it has many of them, in multiply-adds for each of K. Of several blocks
// that a multiprocessor runs, each has its share of that time.
struct Tiling {
    std::size_t rows;
    std::size_t columns;
    double speed;  // of multiply-adds, relative to the large tile
    // A multiprocessor takes as long for one tile as for a share of so many: one block does not keep it busy.
    double alone;

    // What the multiprocessor with the most tiles takes. What of a tile lies outside C takes as long as what lies within.
    double time(const Shape& shape, std::size_t multiprocessors) const {
        const std::size_t tiles =
            shape.count * course::ceil_div(shape.m, rows) * course::ceil_div(shape.n, columns);
        const auto most = static_cast<double>(course::ceil_div(tiles, multiprocessors));
        return std::max(most, alone) * static_cast<double>(rows * columns) / speed;
    }
};

template <class T>
constexpr Tiling tiling(double speed, double alone) {
    return {T::BM, T::BN, speed, alone};
}

struct Candidate {
    const char* version;
    Tiling tiling;
    Launcher launch;
};

// Of equal ones the first is taken: the larger tile loads less.
constexpr Candidate kCandidates[] = {
    {"pipelined", tiling<course::LargeTile>(1.00, 1.0), launch_tiles<course::LargeTile, 1, true>},
    {"pipelined_128x128", tiling<course::SquareTile>(0.97, 1.4), launch_tiles<course::SquareTile, 2, true>},
    {"pipelined_64x64", tiling<course::SmallTile>(0.75, 3.0), launch_tiles<course::SmallTile, 6, true>},
};

const Candidate& fastest(const Shape& shape, std::size_t multiprocessors) {
    return *std::ranges::min_element(kCandidates, {}, [&](const Candidate& candidate) {
        return candidate.tiling.time(shape, multiprocessors);
    });
}

void launch_fitted(const BatchedMatmul& matmul, cudaStream_t stream) {
    const course::Factors& factors = matmul.factors;
    const Shape shape{.count = factors.count(), .m = factors.m(), .n = factors.n(), .k = factors.k()};
    fastest(shape, course::multiprocessors()).launch(matmul, stream);
}

}  // namespace

std::string tile_for(const Shape& shape, std::size_t multiprocessors) {
    return fastest(shape, multiprocessors).version;
}

std::span<const Batched> variants() {
    static const std::array list = {
        Batched{.name = "one_thread_each",
                .idea = "a thread for each element of each product",
                .launcher = launch_one_thread_each,
                .work = work<float>},
        Batched{.name = "tile_each",
                .idea = "a block for each tile",
                .launcher = launch_tiles<course::LargeTile, 1, false>,
                .work = work<float>},
        Batched{.name = "pipelined",
                .idea = "a block goes from tile to tile, and its copies do not wait for it",
                .launcher = launch_tiles<course::LargeTile, 1, true>,
                .work = work<float>},
        Batched{.name = "pipelined_128x128",
                .idea = "the same with tiles half as large, two blocks on a multiprocessor",
                .launcher = launch_tiles<course::SquareTile, 2, true>,
                .work = work<float>},
        Batched{.name = "pipelined_64x64",
                .idea = "the same with tiles an eighth as large",
                .launcher = launch_tiles<course::SmallTile, 6, true>,
                .work = work<float>},
        Batched{.name = "fitted",
                .idea = "the tile that suits the shape",
                .launcher = launch_fitted,
                .work = work<float>},
    };
    return list;
}

}  // namespace day45

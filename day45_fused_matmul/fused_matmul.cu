// Day 45, host code: argument checks, which tile suits which shape, and the list of versions. The
// kernels and their launches are in fused_matmul.cuh and beyond/.
#include <algorithm>
#include <array>

#include "batched.cuh"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/tile/few_results.hpp"
#include "fused_matmul.cuh"
#include "fused_matmul.hpp"

namespace day45 {
namespace {

void launch_one_thread_each(const BatchedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    launch_multiply_one_thread_each(matmul, stream);
    CUDA_CHECK_LAUNCH();
}

// The kernel suits the matrices. Packs: the rows are MN-major and aligned, so they are copied
// float4 by float4.
template <class T, int BLOCKS, bool PERSISTENT>
void launch_tiles(const BatchedMatmul& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    using PacksA = course::PackLoader<T::BM, T::BK, T::THREADS>;
    using PacksB = course::PackLoader<T::BN, T::BK, T::THREADS>;
    const bool b_in_packs = b_goes_in_packs(matmul.operands);
    if (a_goes_in_packs(matmul.operands)) {
        const auto launch = b_in_packs
                                ? launch_multiply_tiles_in_turn<T, BLOCKS, PERSISTENT, PacksA, PacksB>
                                : launch_multiply_tiles_in_turn<T, BLOCKS, PERSISTENT, PacksA, ElementsB<T>>;
        return launch(matmul, stream);
    }
    const auto launch =
        b_in_packs ? launch_multiply_tiles_in_turn<T, BLOCKS, PERSISTENT, ElementsA<T>, PacksB>
                   : launch_multiply_tiles_in_turn<T, BLOCKS, PERSISTENT, ElementsA<T>, ElementsB<T>>;
    launch(matmul, stream);
}

// A tile as `fitted` sees it. The time of a tile is that of an SM which has many of them, in
// multiply-adds for each k. If an SM runs several blocks at the same time, each has its share of
// that time.
struct Tiling {
    std::size_t rows;
    std::size_t columns;
    double speed;  // of multiply-adds, relative to the large tile
    // One block does not keep an SM busy: an SM takes as long for one tile as for its share of
    // `alone` tiles.
    double alone;

    // The time of the SM with the most tiles. The part of a tile outside C takes as long as the
    // part inside.
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

// Of equally fast ones the first is chosen, because the larger tile loads less.
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
    const course::Operands& operands = matmul.operands;
    const Shape shape{.count = operands.count(), .m = operands.m(), .n = operands.n(), .k = operands.k()};
    const std::size_t multiprocessors = course::multiprocessors();
    const Candidate& tile = fastest(shape, multiprocessors);
    // Microseconds: of a launch, and for so many multiply-adds of an SM, 85 % of 128 in each of
    // 1,700 cycles.
    constexpr double kPerMicrosecond = 1.85e5;
    const double in_tiles =
        3 + tile.tiling.time(shape, multiprocessors) * static_cast<double>(shape.k) / kPerMicrosecond;
    const course::FewResultsPlan few = course::plan_few_results(shape, multiprocessors);
    if (few.microseconds >= in_tiles) return tile.launch(matmul, stream);
    if (!is_worth_a_launch(matmul)) return;
    course::multiply_few<float>(few, operands, matmul.c, matmul.alpha, matmul.beta, stream);
}

}  // namespace

std::string tile_for(const Shape& shape, std::size_t multiprocessors) {
    return fastest(shape, multiprocessors).version;
}

std::span<const Batched> versions() {
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

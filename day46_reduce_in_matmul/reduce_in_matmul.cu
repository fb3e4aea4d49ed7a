// Day 46, host code: argument checks, the number of blocks for each row of tiles, and the list of
// versions. The kernels and their launches are in reduce_in_matmul.cuh and beyond/.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "beyond/choose_partition.hpp"
#include "beyond/other_reductions.cuh"
#include "beyond/reduce_wgmma.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "reduce_in_matmul.cuh"
#include "reduce_in_matmul.hpp"

namespace day46 {
namespace {

using T = course::LargeTile;

// The sizes and the grid of a problem. The scratch memory holds the norms, and after them the parts
// of each row, or the matrix of distances.
struct LaunchConfig {
    std::size_t m, n, count;  // along rows
    std::size_t norm_words;
    RowPartition<T> tiles;
    RowPartition<WgmmaTile> wgmma_tiles;

    LaunchConfig(std::size_t rows, std::size_t cols, std::size_t products, course::Metric metric)
        : m(rows),
          n(cols),
          count(products),
          norm_words(course::ceil_div<std::size_t>(course::norms_size(metric, m, n, count), 2)),
          tiles(row_partition<T>(m, n, count)),
          wgmma_tiles(row_partition<WgmmaTile>(m, n, count)) {}

    std::size_t fused_words() const { return norm_words + m * count * parts_of_row(tiles); }
    std::size_t wgmma_words() const {
        return std::max(fused_words(), norm_words + m * count * wgmma_tiles.blocks_per_row * kPartsOfBlock);
    }
    std::size_t unfused_words() const { return norm_words + course::ceil_div<std::size_t>(m * count * n, 2); }
};

LaunchConfig config_of(const ReduceShape& shape) {
    return shape.along == Along::kRows ? LaunchConfig(shape.m, shape.n, shape.count, shape.metric)
                                       : LaunchConfig(shape.n, shape.m, shape.count, shape.metric);
}

LaunchConfig config_of(const ReducedMatmul& matmul) {
    return {matmul.operands.m(), matmul.operands.n(), matmul.operands.count(), matmul.metric};
}

// The problem along rows, checked.
ReducedMatmul along_rows(const ReducedMatmul& given) {
    ReducedMatmul matmul = given;
    if (given.along == Along::kColumns) matmul.operands = course::transposed(given.operands);
    matmul.along = Along::kRows;
    const course::Operands& operands = matmul.operands;
    course::check_operands(operands, "reduced matmul");
    const std::size_t results = operands.m() * operands.count();
    const bool is_extremum = given.reduction == Reduction::kMin || given.reduction == Reduction::kMax;
    course::require(matmul.values.size() == results, "reduced matmul: values has ", matmul.values.size(),
                    " elements; expected ", results, ", one for each result");
    course::require(matmul.indices.empty() || matmul.indices.size() == results,
                    "reduced matmul: indices has ", matmul.indices.size(), " elements; expected ", results,
                    ", or none");
    course::require(matmul.indices.empty() || is_extremum, "reduced matmul: there are indices, but a ",
                    name(given.reduction), " has none; expected no indices");
    course::require(!is_extremum || results == 0 || operands.n() > 0, "reduced matmul: the ",
                    name(given.reduction), " of no elements is asked for; expected at least one");
    return matmul;
}

void require_scratch(const ReducedMatmul& matmul, std::size_t needed) {
    course::require(matmul.scratch.size() >= needed, "reduced matmul: scratch has ", matmul.scratch.size(),
                    " elements; expected at least ", needed);
}

// Calls `work` with the type of the reduction.
template <class Work>
void with_reduction(Reduction reduction, const Work& work) {
    switch (reduction) {
        case Reduction::kMin:
            return work(Extremum<false>{});
        case Reduction::kMax:
            return work(Extremum<true>{});
        case Reduction::kSum:
            return work(Sum{});
        case Reduction::kLogSumExp:
            return work(LogSumExp{});
    }
}

// Null: no indices are requested.
std::uint32_t* indices_of(const ReducedMatmul& matmul) {
    return matmul.indices.empty() ? nullptr : matmul.indices.data();
}

// Besides its stages, a block has a state for each of its rows in each thread; an extremum needs
// the most.
std::string fused_constraint(const ReduceShape& = {}) {
    return course::why_too_little_shared(kStages<T> + sizeof(RowStates<Extremum<false>, T>));
}

void launch_fused(const ReducedMatmul& given, cudaStream_t stream) {
    const ReducedMatmul matmul = along_rows(given);
    const std::string reason = fused_constraint();
    course::require(reason.empty(), "reduced matmul: fused ", reason);
    const course::Operands& operands = matmul.operands;
    const std::size_t results = operands.m() * operands.count();
    if (results == 0) return;
    const LaunchConfig config = config_of(matmul);
    require_scratch(matmul, config.fused_words());
    const course::Distance distance =
        course::launch_distance(matmul.metric, operands, matmul.scratch.data(), stream);
    with_reduction(matmul.reduction, [&]<class R>(R) {
        auto* const parts = reinterpret_cast<typename R::State*>(matmul.scratch.data() + config.norm_words);
        course::with_add(matmul.metric, [&]<class Add>(Add) {
            using ElementsB = course::ElementLoader<T::BN, T::BK, T::THREADS>;
            using PacksB = course::PackLoader<T::BN, T::BK, T::THREADS>;
            const auto launch = course::b_goes_in_packs(operands) ? launch_reduce_tiles<R, T, PacksB, Add>
                                                                  : launch_reduce_tiles<R, T, ElementsB, Add>;
            launch(operands, config.tiles, distance, results, parts, stream);
        });
        launch_merge_parts<R>(parts, parts_of_row(config.tiles), results, matmul.values.data(),
                              indices_of(matmul), stream);
        CUDA_CHECK_LAUNCH();
    });
}

// `fused`, where tensor cores cannot or should not multiply.
void launch_fused_wgmma(const ReducedMatmul& given, cudaStream_t stream) {
    const ReducedMatmul matmul = along_rows(given);
    const LaunchConfig config = config_of(matmul);
    require_scratch(matmul, config.wgmma_words());
    if (!why_no_wgmma(matmul).empty()) return launch_fused(given, stream);
    const course::Operands& operands = matmul.operands;
    if (operands.m() == 0) return;
    const course::Distance distance =
        course::launch_distance(matmul.metric, operands, matmul.scratch.data(), stream);
    const auto launch = [&]<class R>(R) {
        auto* const parts = reinterpret_cast<typename R::State*>(matmul.scratch.data() + config.norm_words);
        launch_reduce_wgmma<R>(operands, config.wgmma_tiles, distance, parts, stream);
        launch_merge_parts<R>(parts, config.wgmma_tiles.blocks_per_row * kPartsOfBlock, operands.m(),
                              matmul.values.data(), indices_of(matmul), stream);
        CUDA_CHECK_LAUNCH();
    };
    matmul.reduction == Reduction::kMin ? launch(Extremum<false>{}) : launch(Extremum<true>{});
}

void launch_unfused(const ReducedMatmul& given, cudaStream_t stream) {
    const ReducedMatmul matmul = along_rows(given);
    const course::Operands& operands = matmul.operands;
    const std::size_t results = operands.m() * operands.count();
    if (results == 0) return;
    const LaunchConfig config = config_of(matmul);
    require_scratch(matmul, config.unfused_words());
    auto* const distances = reinterpret_cast<float*>(matmul.scratch.data() + config.norm_words);
    course::launch_distances(matmul.metric, operands, matmul.scratch.data(), distances, stream);
    with_reduction(matmul.reduction, [&]<class R>(R) {
        launch_reduce_rows<R>(distances, results, operands.n(), matmul.values.data(), indices_of(matmul),
                              stream);
        CUDA_CHECK_LAUNCH();
    });
}

course::Work work(const ReduceShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto d = static_cast<double>(shape.d);
    const double results = count * (shape.along == Along::kRows ? m : n);
    return {.bytes = sizeof(float) * (count * (m * d + d * n) + results),
            .written = sizeof(float) * results,
            .flops = (shape.metric == course::Metric::kDifferences ? 3 : 2) * count * m * n * d};
}

// Not compared with the limit of FP32.
course::Work tensor_work(const ReduceShape& shape) {
    course::Work same = work(shape);
    same.arithmetic = course::Arithmetic::kOther;
    return same;
}

}  // namespace

std::string name(Reduction reduction) {
    switch (reduction) {
        case Reduction::kMin:
            return "min";
        case Reduction::kMax:
            return "max";
        case Reduction::kSum:
            return "sum";
        case Reduction::kLogSumExp:
            return "logsumexp";
    }
    throw std::invalid_argument("name: no such reduction: " + std::to_string(static_cast<int>(reduction)));
}

std::span<const Reduce> reduce_versions() {
    static const std::array list = {
        Reduce{.name = "unfused",
               .idea = "the matrix of distances, then a pass over it",
               .launcher = {launch_unfused,
                            [](const ReduceShape& shape) { return config_of(shape).unfused_words(); }},
               .work = work},
        Reduce{.name = "fused",
               .idea = "the reduction is the epilogue",
               .launcher = {launch_fused,
                            [](const ReduceShape& shape) { return config_of(shape).fused_words(); }},
               .work = work,
               .constraint = fused_constraint},
        Reduce{.name = "fused_wgmma",
               .idea = "tensor cores multiply, in FP32 accuracy",
               .launcher = {launch_fused_wgmma,
                            [](const ReduceShape& shape) { return config_of(shape).wgmma_words(); }},
               .work = tensor_work,
               .constraint = [](const ReduceShape&) { return course::why_no_hopper(); }},
    };
    return list;
}

}  // namespace day46

// Day 46, beyond: host code of reduce_half.cuh, and the list of versions.
#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include "choose_partition.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "reduce_half.cuh"
#include "reduce_half.hpp"
#include "reduce_half_wgmma.hpp"

namespace day46 {
namespace {

constexpr std::size_t kBlocksOnSm = 2;

// The scratch memory: the norms, then the parts of each row.
template <class L>
struct HalfConfig {
    std::size_t results;  // the rows of all products
    std::size_t norm_words;
    RowPartition<L> tiles;

    // L: the tile; HalfWgmmaTile fills an SM.
    explicit HalfConfig(const ReduceShape& s)
        : results(s.m * s.count),
          norm_words(course::ceil_div<std::size_t>(course::norms_size(s.metric, s.m, s.n, s.count), 2)),
          tiles(row_partition<L>(s.m, s.n, s.count, std::is_same_v<L, HalfWgmmaTile> ? 1 : kBlocksOnSm)) {}

    std::size_t words() const { return norm_words + results * parts_of_row(tiles); }
};

// The numbers of stages differ in nothing that the scratch memory depends on.
template <class T>
std::size_t scratch_size(const ReduceShape& shape) {
    return HalfConfig<HalfTile<T, 2>>(shape).words();
}

template <class T>
void check(const ReducedMatmulOf<T>& matmul) {
    const course::OperandsOf<T>& operands = matmul.operands;
    course::check_operands(operands, "reduced 16-bit matmul");
    course::require(operands.op_a == course::Op::kNone && operands.op_b == course::Op::kTranspose,
                    "reduced 16-bit matmul: the layout is ", operands.op_a == course::Op::kNone ? "N" : "T",
                    operands.op_b == course::Op::kNone ? "N" : "T",
                    "; expected NT: rows of A and rows of B along K");
    course::require(matmul.along == Along::kRows,
                    "reduced 16-bit matmul: along is kColumns; expected kRows (exchange A and B)");
    course::require(matmul.reduction == Reduction::kMin || matmul.reduction == Reduction::kMax,
                    "reduced 16-bit matmul: the reduction is ", name(matmul.reduction),
                    "; expected min or max");
    course::require(matmul.metric != course::Metric::kDifferences, "reduced 16-bit matmul: the metric is ",
                    name(matmul.metric), ", which is no product; expected dot, squared_l2 or cosine");
    const std::size_t results = operands.m() * operands.count();
    course::require(matmul.values.size() == results, "reduced 16-bit matmul: values has ",
                    matmul.values.size(), " elements; expected ", results, ", one for each result");
    course::require(matmul.indices.empty() || matmul.indices.size() == results,
                    "reduced 16-bit matmul: indices has ", matmul.indices.size(), " elements; expected ",
                    results, ", or none");
    course::require(results == 0 || operands.n() > 0, "reduced 16-bit matmul: the ", name(matmul.reduction),
                    " of no elements is asked for; expected at least one");
}

template <class T, int STAGES>
void launch_with(const ReducedMatmulOf<T>& matmul, cudaStream_t stream) {
    using L = HalfTile<T, STAGES>;
    const course::OperandsOf<T>& operands = matmul.operands;
    const HalfConfig<L> config(
        {operands.m(), operands.n(), operands.k(), operands.count(), matmul.metric, matmul.reduction});
    course::require(matmul.scratch.size() >= config.words(), "reduced 16-bit matmul: scratch has ",
                    matmul.scratch.size(), " elements; expected at least ", config.words());
    const course::Distance distance =
        course::launch_distance(matmul.metric, operands, matmul.scratch.data(), stream);
    const bool aligned = half_mma::has_aligned_rows(operands.a) && half_mma::has_aligned_rows(operands.b);
    const auto work = [&]<class R>(R) {
        auto* const parts = reinterpret_cast<typename R::State*>(matmul.scratch.data() + config.norm_words);
        const auto launch =
            aligned ? launch_reduce_tiles_half<R, L, true> : launch_reduce_tiles_half<R, L, false>;
        launch(operands, config.tiles, distance, config.results, parts, stream);
        launch_merge_parts<R>(parts, parts_of_row(config.tiles), config.results, matmul.values.data(),
                              matmul.indices.empty() ? nullptr : matmul.indices.data(), stream);
        CUDA_CHECK_LAUNCH();
    };
    matmul.reduction == Reduction::kMin ? work(Extremum<false>{}) : work(Extremum<true>{});
}

template <class T, int STAGES>
std::string why_not() {
    using L = HalfTile<T, STAGES>;
    using State = Extremum<false>::State;
    const std::string reason =
        course::why_no_tensor_cores(reduce_tiles_half<Extremum<false>, L, true>, half_mma::kStages<L>);
    // The CPU backend knows the static shared memory of a kernel, its states, after the first
    // launch.
    constexpr std::size_t kStates = sizeof(State) * half_mma::ROWS * L::THREADS;
    return reason.empty() ? course::why_too_little_shared(half_mma::kStages<L> + kStates) : reason;
}

template <class T>
void launch(const ReducedMatmulOf<T>& matmul, cudaStream_t stream) {
    check(matmul);
    const std::string reason = why_not<T, 2>();
    course::require(reason.empty(), "reduced 16-bit matmul: half_mma ", reason);
    if (matmul.operands.m() * matmul.operands.count() == 0) return;
    why_not<T, 3>().empty() ? launch_with<T, 3>(matmul, stream) : launch_with<T, 2>(matmul, stream);
}

// The tile of wgmma is twice as wide, with one part instead of two for each row.
template <class T>
std::size_t wgmma_scratch_size(const ReduceShape& shape) {
    return std::max(scratch_size<T>(shape), HalfConfig<HalfWgmmaTile>(shape).words());
}

// `half_mma`, where TMA cannot load the operands.
template <class T>
void launch_wgmma(const ReducedMatmulOf<T>& matmul, cudaStream_t stream) {
    check(matmul);
    const course::OperandsOf<T>& operands = matmul.operands;
    const ReduceShape shape{operands.m(),     operands.n(),  operands.k(),
                            operands.count(), matmul.metric, matmul.reduction};
    const std::size_t needed = wgmma_scratch_size<T>(shape);
    course::require(matmul.scratch.size() >= needed, "reduced 16-bit matmul: scratch has ",
                    matmul.scratch.size(), " elements; expected at least ", needed);
    if (shape.m * shape.count == 0) return;
    if (!why_no_half_wgmma(matmul).empty()) return launch(matmul, stream);
    const HalfConfig<HalfWgmmaTile> config(shape);
    const course::Distance distance =
        course::launch_distance(matmul.metric, operands, matmul.scratch.data(), stream);
    const auto work = [&]<class R>(R) {
        auto* const parts = reinterpret_cast<typename R::State*>(matmul.scratch.data() + config.norm_words);
        launch_reduce_half_wgmma<R, T>(operands, config.tiles, distance, parts, stream);
        launch_merge_parts<R>(parts, parts_of_row(config.tiles), config.results, matmul.values.data(),
                              matmul.indices.empty() ? nullptr : matmul.indices.data(), stream);
        CUDA_CHECK_LAUNCH();
    };
    matmul.reduction == Reduction::kMin ? work(Extremum<false>{}) : work(Extremum<true>{});
}

// Not compared with the limit of FP32.
course::Work work(const ReduceShape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto d = static_cast<double>(shape.d);
    return {.bytes = 2 * count * (m * d + d * n) + sizeof(float) * count * m,
            .written = sizeof(float) * count * m,
            .flops = 2 * count * m * n * d,
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace

template <class T>
std::span<const HalfReduce<T>> half_reduce_versions() {
    static const std::array list = {
        HalfReduce<T>{.name = "half_mma",
                      .idea = "mma.sync multiplies 16-bit operands, the reduction is the epilogue",
                      .launcher = {launch<T>, scratch_size<T>},
                      .work = work,
                      .constraint = [](const ReduceShape&) { return why_not<T, 2>(); }},
        HalfReduce<T>{.name = "half_wgmma",
                      .idea = "Hopper: TMA loads, wgmma multiplies",
                      .launcher = {launch_wgmma<T>, wgmma_scratch_size<T>},
                      .work = work,
                      .constraint = [](const ReduceShape&) { return course::why_no_hopper(); }},
    };
    return list;
}

template std::span<const HalfReduce<__half>> half_reduce_versions<__half>();
template std::span<const HalfReduce<__nv_bfloat16>> half_reduce_versions<__nv_bfloat16>();

}  // namespace day46

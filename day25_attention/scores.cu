// Day 25's host functions around the scoring functions: argument checks, the lists of versions, and
// which launches make up a version. Kernels and launches are in scores.cuh and beyond/.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "attention.hpp"
#include "beyond/bahdanau_fused.cuh"
#include "beyond/dot_per_thread.cuh"
#include "beyond/luong_early.cuh"
#include "beyond/scores_tensor_cores.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "scores.cuh"
#include "scores.hpp"

namespace day25 {
namespace {

ScoreShape shape_of(const ScoreInputs& inputs) {
    return {inputs.states.rows(), inputs.states.cols(), inputs.hidden.size(), inputs.v.size()};
}

// Returns false if there is nothing to do.
bool check(Scoring scoring, const ScoreInputs& inputs, DeviceSpan<float> scores,
           DeviceSpan<float> workspace) {
    const ScoreShape shape = shape_of(inputs);
    course::require(scores.size() == shape.states, "day25: scores: ", scores.size(),
                    " elements; expected one per state, ", shape.states);
    course::require(scoring != Scoring::kDot || shape.hidden == shape.width, "day25: scores: hidden has ",
                    shape.hidden, " elements; expected ", shape.width, ", the states' width");
    const std::size_t rows = shape.weight_rows(scoring);
    const std::size_t cols = shape.weight_cols(scoring);
    course::require(inputs.weight.rows() == rows && inputs.weight.cols() == cols, "day25: scores: weight is ",
                    inputs.weight, "; expected ", rows, " x ", cols);
    const std::size_t needed = score_workspace(scoring, shape);
    course::require(workspace.size() >= needed, "day25: scores: workspace has ", workspace.size(),
                    " elements; expected at least ", needed);
    const DeviceMatrix<float> used(workspace, 1, workspace.size());
    const auto apart = [](const char* input, bool overlaps) {
        course::require(!overlaps, "day25: scores: workspace overlaps ", input,
                        "; expected that it does not");
    };
    apart("hidden", overlap(workspace, inputs.hidden));
    apart("states", overlap(used, inputs.states));
    apart("weight", overlap(used, inputs.weight));
    apart("v", overlap(workspace, inputs.v));
    const DeviceMatrix<float> row(scores, 1, scores.size());
    course::require(!overlap(scores, inputs.hidden) && !overlap(scores, workspace) &&
                        !overlap(row, inputs.states) && !overlap(row, inputs.weight) &&
                        !overlap(scores, inputs.v),
                    "day25: scores: scores overlap an input or the workspace; expected that they do not");
    return shape.states > 0;
}

void multiply_transposed(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                         cudaStream_t stream) {
    product_versions().back().launcher({.a = a, .b = b, .c = c, .transpose_b = true}, stream);
}

void launch_dot_separate(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                         cudaStream_t stream) {
    if (!check(Scoring::kDot, in, scores, workspace)) return;
    const auto products = workspace.subspan(0, in.states.rows() * in.states.cols());
    if (!products.empty()) {
        launch_multiply_states(in.hidden, in.states, products, stream);
        CUDA_CHECK_LAUNCH();
    }
    launch_add_rows(products, in.states.cols(), scores, stream);
    CUDA_CHECK_LAUNCH();
}

void launch_dot_per_thread(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                           cudaStream_t stream) {
    if (!check(Scoring::kDot, in, scores, workspace)) return;
    launch_score_per_thread(in.hidden, in.states, scores, stream);
    CUDA_CHECK_LAUNCH();
}

void launch_dot_fused(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                      cudaStream_t stream) {
    if (check(Scoring::kDot, in, scores, workspace)) multiply_vector(in.states, in.hidden, scores, stream);
}

// As check(). A sum without terms is 0, whatever is in the states or in h: here the versions would
// differ, because some of them compute 0 times Inf.
bool check_luong(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                 cudaStream_t stream) {
    if (!check(Scoring::kLuong, in, scores, workspace)) return false;
    if (in.weight.rows() > 0 && in.weight.cols() > 0) return true;
    CUDA_CHECK(cudaMemsetAsync(scores.data(), 0, scores.size() * sizeof(float), stream));
    return false;
}

void launch_luong_states_first(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                               cudaStream_t stream) {
    if (!check_luong(in, scores, workspace, stream)) return;
    const DeviceMatrix<float> mapped(workspace, in.states.rows(), in.hidden.size());
    multiply_transposed(in.states, in.weight, mapped, stream);
    multiply_vector(mapped, in.hidden, scores, stream);
}

void launch_luong_hidden_first(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                               cudaStream_t stream) {
    if (!check_luong(in, scores, workspace, stream)) return;
    const auto mapped = workspace.subspan(0, in.states.cols());
    if (!mapped.empty()) {
        launch_vector_times_matrix(in.hidden, in.weight, mapped, stream);
        CUDA_CHECK_LAUNCH();
    }
    multiply_vector(in.states, mapped, scores, stream);
}

// h^T W, at the start of the workspace.
DeviceSpan<const float> map_by_narrow_blocks(const ScoreInputs& in, DeviceSpan<float> workspace,
                                             cudaStream_t stream) {
    const auto mapped = workspace.subspan(0, in.states.cols());
    if (!mapped.empty()) {
        launch_vector_times_narrow(in.hidden, in.weight, mapped, stream);
        CUDA_CHECK_LAUNCH();
    }
    return mapped;
}

void launch_luong_narrow(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                         cudaStream_t stream) {
    if (!check_luong(in, scores, workspace, stream)) return;
    multiply_vector(in.states, map_by_narrow_blocks(in, workspace, stream), scores, stream);
}

std::string why_not_early(const ScoreShape&) {
    return course::may_start_early(multiply_rows_early<4>)
               ? ""
               : "needs programmatic dependent launches: compute capability 9.0, and code built for it";
}

void launch_luong_early(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                        cudaStream_t stream) {
    if (!check_luong(in, scores, workspace, stream)) return;
    const std::string reason = why_not_early({});
    course::require(reason.empty(), "day25: scores: luong_early ", reason);
    const auto mapped = map_by_narrow_blocks(in, workspace, stream);
    const bool packs = in_packs(in.states) && course::is_aligned(mapped.data(), 16);
    const auto launch = packs ? launch_multiply_rows_early<4> : launch_multiply_rows_early<1>;
    launch(in.states, mapped, scores, stream);
}

void launch_bahdanau_concatenated(const ScoreInputs& in, DeviceSpan<float> scores,
                                  DeviceSpan<float> workspace, cudaStream_t stream) {
    if (!check(Scoring::kBahdanau, in, scores, workspace)) return;
    const std::size_t states = in.states.rows();
    const std::size_t both = in.weight.cols();
    const DeviceMatrix<float> concatenated(workspace.subspan(0, states * both), states, both);
    const DeviceMatrix<float> mapped(workspace.subspan(states * both, states * in.v.size()), states,
                                     in.v.size());
    if (both > 0) {
        launch_concatenate(in.hidden, in.states, concatenated, stream);
        CUDA_CHECK_LAUNCH();
    }
    multiply_transposed(concatenated, in.weight, mapped, stream);
    launch_weigh_tanh(mapped, {}, in.v, scores, stream);
    CUDA_CHECK_LAUNCH();
}

// W_h and W_s are pieces of W, side by side. W_h h goes to the start of the workspace.
DeviceSpan<const float> map_hidden(const ScoreInputs& in, DeviceSpan<float> workspace, cudaStream_t stream) {
    const auto mapped = workspace.subspan(0, in.v.size());
    multiply_vector(piece(in.weight, 0, in.weight.rows(), 0, in.hidden.size()), in.hidden, mapped, stream);
    return mapped;
}

DeviceMatrix<const float> weight_of_states(const ScoreInputs& in) {
    return piece(in.weight, 0, in.weight.rows(), in.hidden.size(), in.states.cols());
}

void launch_bahdanau_split(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                           cudaStream_t stream) {
    if (!check(Scoring::kBahdanau, in, scores, workspace)) return;
    const std::size_t units = in.v.size();
    const auto add = map_hidden(in, workspace, stream);
    const DeviceMatrix<float> mapped(workspace.subspan(units, in.states.rows() * units), in.states.rows(),
                                     units);
    multiply_transposed(in.states, weight_of_states(in), mapped, stream);
    launch_weigh_tanh(mapped, add, in.v, scores, stream);
    CUDA_CHECK_LAUNCH();
}

void launch_bahdanau_fused(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                           cudaStream_t stream) {
    if (!check(Scoring::kBahdanau, in, scores, workspace)) return;
    const std::size_t units = in.v.size();
    const auto add = map_hidden(in, workspace, stream);
    const std::size_t tiles = course::ceil_div<std::size_t>(units, ScoreTile::BN);
    const auto parts = workspace.subspan(units, scores.size() * tiles);
    if (tiles > 0) {
        launch_score_tiles(in.states, weight_of_states(in), add, in.v,
                           DeviceMatrix<float>(parts, scores.size(), tiles), stream);
        CUDA_CHECK_LAUNCH();
    }
    launch_add_rows(parts, tiles, scores, stream);
    CUDA_CHECK_LAUNCH();
}

constexpr std::size_t kMmaShared = sizeof(mma::Stages);

std::string why_no_mma(const ScoreShape& shape) {
    constexpr std::size_t kMost = (std::size_t{1} << 31) - mma::Tile::BM;
    if (shape.states > kMost || shape.units > kMost || shape.width > kMost)
        return "counts states, units and columns in an int; expected at most " + std::to_string(kMost);
    return course::why_no_tensor_cores(score_tiles_mma<true>, kMmaShared);
}

void launch_bahdanau_tensor_cores(const ScoreInputs& in, DeviceSpan<float> scores,
                                  DeviceSpan<float> workspace, cudaStream_t stream) {
    if (!check(Scoring::kBahdanau, in, scores, workspace)) return;
    const std::string reason = why_no_mma(shape_of(in));
    course::require(reason.empty(), "day25: scores: bahdanau_tensor_cores ", reason);
    const std::size_t units = in.v.size();
    const auto add = map_hidden(in, workspace, stream);
    const auto weight = weight_of_states(in);
    const std::size_t columns = course::ceil_div<std::size_t>(units, mma::Tile::WN);
    const DeviceMatrix<float> parts(workspace.subspan(units, scores.size() * columns), scores.size(),
                                    columns);
    if (units > 0) {
        const bool packs = in_packs(in.states) && in_packs(weight);
        const auto launch = packs ? launch_score_tiles_mma<true> : launch_score_tiles_mma<false>;
        launch(in.states, weight, add, in.v, parts, stream);
    }
    launch_add_rows(workspace.subspan(units, scores.size() * columns), columns, scores, stream);
    CUDA_CHECK_LAUNCH();
}

// The least work: `product` multiply-adds, and the inputs read once.
template <Scoring SCORING>
course::Work work(const ScoreShape& shape) {
    const auto n = static_cast<double>(shape.states);
    const auto width = static_cast<double>(shape.width);
    const auto hidden = static_cast<double>(shape.hidden);
    const auto units = static_cast<double>(shape.units);
    const double weights = static_cast<double>(shape.weight_rows(SCORING) * shape.weight_cols(SCORING));
    double flops = 2 * n * width;
    if (SCORING == Scoring::kLuong) flops += 2 * hidden * width;
    if (SCORING == Scoring::kBahdanau) flops = 2 * units * (hidden + n * width) + 4 * n * units;
    return {.bytes = sizeof(float) * (n * width + hidden + weights + units + n),
            .written = sizeof(float) * n,
            .flops = flops};
}

// With products on tensor cores, whose limit is not measured.
course::Work work_of_tensor_cores(const ScoreShape& shape) {
    course::Work all = work<Scoring::kBahdanau>(shape);
    all.arithmetic = course::Arithmetic::kOther;
    return all;
}

}  // namespace

void multiply_vector(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector, DeviceSpan<float> out,
                     cudaStream_t stream) {
    course::require(vector.size() == matrix.cols() && out.size() == matrix.rows(),
                    "day25: multiply_vector: matrix is ", matrix, ", vector has ", vector.size(),
                    " elements and out ", out.size(), "; expected as many as columns and rows");
    course::require(!overlap(out, vector) && !overlap(DeviceMatrix<float>(out, 1, out.size()), matrix),
                    "day25: multiply_vector: out overlaps matrix or vector; expected that it does not");
    if (matrix.rows() == 0) return;
    const bool packs = in_packs(matrix) && course::is_aligned(vector.data(), 16);
    const auto launch = packs ? launch_multiply_rows<4> : launch_multiply_rows<1>;
    launch(matrix, vector, out, stream);
    CUDA_CHECK_LAUNCH();
}

std::string name(Scoring scoring) {
    switch (scoring) {
        case Scoring::kDot:
            return "dot";
        case Scoring::kLuong:
            return "luong";
        case Scoring::kBahdanau:
            return "bahdanau";
    }
    throw std::invalid_argument("day25: scoring is not one of the three");
}

std::size_t ScoreShape::weight_rows(Scoring scoring) const {
    return scoring == Scoring::kDot ? 0 : scoring == Scoring::kLuong ? hidden : units;
}

std::size_t ScoreShape::weight_cols(Scoring scoring) const {
    return scoring == Scoring::kDot ? 0 : scoring == Scoring::kLuong ? width : hidden + width;
}

std::size_t score_workspace(Scoring scoring, const ScoreShape& shape) {
    switch (scoring) {
        case Scoring::kDot:
            return shape.states * shape.width;
        case Scoring::kLuong:
            return std::max(shape.states * shape.hidden, shape.width);
        case Scoring::kBahdanau:
            return shape.states * (shape.hidden + shape.width + shape.units) + shape.units;
    }
    return 0;
}

std::span<const ScoreVersion> score_versions(Scoring scoring) {
    static const std::array<ScoreVersion, 3> dot = {{
        {"dot_separate", "multiply, then add up", launch_dot_separate, work<Scoring::kDot>},
        {"dot_per_thread", "a thread per state does both", launch_dot_per_thread, work<Scoring::kDot>},
        {"dot_fused", "a warp per state does both", launch_dot_fused, work<Scoring::kDot>},
    }};
    static const std::array<ScoreVersion, 4> luong = {{
        {"luong_states_first", "h (W s): a product of matrices", launch_luong_states_first,
         work<Scoring::kLuong>},
        {"luong_hidden_first", "(h W) s: two products with a vector", launch_luong_hidden_first,
         work<Scoring::kLuong>},
        {"luong_narrow", "(h W) by more, narrower blocks", launch_luong_narrow, work<Scoring::kLuong>},
        {"luong_early", "the second kernel loads while the first one runs", launch_luong_early,
         work<Scoring::kLuong>, why_not_early},
    }};
    static const std::array<ScoreVersion, 4> bahdanau = {{
        {"bahdanau_concatenated", "[h; s] in memory, one product", launch_bahdanau_concatenated,
         work<Scoring::kBahdanau>},
        {"bahdanau_split", "W_h h once, a product for the states", launch_bahdanau_split,
         work<Scoring::kBahdanau>},
        {"bahdanau_fused", "tanh and v where the product's results are", launch_bahdanau_fused,
         work<Scoring::kBahdanau>},
        {"bahdanau_tensor_cores", "the product on tensor cores, in FP32 accuracy",
         launch_bahdanau_tensor_cores, work_of_tensor_cores, why_no_mma},
    }};
    switch (scoring) {
        case Scoring::kDot:
            return dot;
        case Scoring::kLuong:
            return luong;
        case Scoring::kBahdanau:
            return bahdanau;
    }
    return {};
}

}  // namespace day25

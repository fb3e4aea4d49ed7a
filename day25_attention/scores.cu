// Day 25, first part: scoring functions.      h: hidden, S: states x width, a score for every row of S      PMPP chapters 5, 10
//
//   version                  in between                            multiply-adds                 what limits it
//   dot_separate             products: states x width              states width                  memory: written and read again
//   dot_fused                nothing                               states width                  memory: S, once
//   luong_states_first       S W^T: states x hidden                states width hidden           the product
//   luong_hidden_first       h^T W: width                          (states + hidden) width       memory: S, once
//   bahdanau_concatenated    [h; s_j]: states x (hidden + width)   states (hidden + width) units   the product, memory
//   bahdanau_split           W_h h: units, S W_s^T: states x units   states width units           the product
//   bahdanau_fused           W_h h: units, states x units / 64     states width units            the product, and nothing else
//
// Twice the fast version computes less: (h^T W) s_j instead of h^T (W s_j), and W [h; s_j] = W_h h + W_s s_j, of which the
// first half is the same for all states.
//
//   ./course run day25 --variant bahdanau_fused
#include <algorithm>
#include <array>

#include "attention.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "matmul_tile.cuh"
#include "scores.hpp"
#include "self_attention.hpp"

namespace day25 {
namespace {

using course::DeviceMatrix;
using course::DeviceSpan;

constexpr int kThreads = 256;

// --- Kernels ---------------------------------------------------------------------------------------------------------

// A thread per element of `out`, in chunks of a block.
__device__ std::size_t element() {
    return static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
}

// Idea: the multiplication of the dot products as an operation of its own, as array languages have it: products[j][i] = h[i] S[j][i].
// Cost removed: the loop on the CPU.
// Still limits it: memory. As many products are written as states were read, and read again to be added up.
__global__ void multiply_states(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                                DeviceSpan<float> products) {
    const std::size_t i = element();
    if (i >= products.size()) return;
    const std::size_t width = states.cols();
    products[i] = hidden[i % width] * states(i / width, i % width);
}

// Idea: and the sum: a thread per state adds up its row.
// Cost removed: atomic additions.
// Still limits it: neighbouring threads read a row's length apart: a sector for each float.
__global__ void add_rows(DeviceSpan<const float> products, std::size_t width, DeviceSpan<float> scores) {
    const std::size_t row = element();
    if (row >= scores.size()) return;
    float sum = 0;
    for (std::size_t i = 0; i < width; ++i)
        sum += products[row * width + i];
    scores[row] = sum;
}

// Idea: h^T W column by column: a block has 32 columns, and its warps share out the rows.
// Cost removed: columns read down by a thread each, with too few threads for the GPU.
// Still limits it: memory: every weight is used once.
constexpr int kColumnWarps = 8;
__global__ void __launch_bounds__(kColumnWarps* course::kWarpSize)
    vector_times_matrix(DeviceSpan<const float> vector, DeviceMatrix<const float> matrix,
                        DeviceSpan<float> out) {
    __shared__ float parts[kColumnWarps][course::kWarpSize];
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const unsigned warp = threadIdx.x / course::kWarpSize;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * course::kWarpSize + lane;
    float sum = 0;
    if (col < matrix.cols())
        for (std::size_t row = warp; row < matrix.rows(); row += kColumnWarps)
            sum += vector[row] * matrix(row, col);
    parts[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || col >= matrix.cols()) return;
    for (int i = 1; i < kColumnWarps; ++i)
        sum += parts[i][lane];
    out[col] = sum;
}

// Idea: [h; s_j] for every state, so that W meets it in one product.
// Cost removed: none; it is what the formula says.
// Still limits it: memory; and the product multiplies W_h with the same h for every state.
__global__ void concatenate(DeviceSpan<const float> hidden, DeviceMatrix<const float> states,
                            DeviceMatrix<float> out) {
    const std::size_t i = element();
    if (i >= out.rows() * out.cols()) return;
    const std::size_t row = i / out.cols();
    const std::size_t col = i % out.cols();
    out(row, col) = col < hidden.size() ? hidden[col] : states(row, col - hidden.size());
}

// Idea: a warp per state takes tanh, weighs and adds up, in one pass. `add` (or nothing) comes before tanh: W_h h.
// Cost removed: results of tanh in memory.
// Still limits it: memory: what the product has just written is read.
__global__ void __launch_bounds__(kThreads)
    weigh_tanh(DeviceMatrix<const float> in, DeviceSpan<const float> add, DeviceSpan<const float> v,
               DeviceSpan<float> scores) {
    const std::size_t row = element() / course::kWarpSize;
    if (row >= in.rows()) return;
    float sum = 0;
    for (std::size_t i = threadIdx.x % course::kWarpSize; i < in.cols(); i += course::kWarpSize)
        sum += v[i] * tanhf(in(row, i) + (add.empty() ? 0.0f : add[i]));
    sum = course::warp_reduce(sum, [](float a, float b) { return a + b; });
    if (threadIdx.x % course::kWarpSize == 0) scores[row] = sum;
}

using FusedTile = Tile<64, 64, 16, 4, 4>;

// Idea: a block has 64 states and 64 units; tanh, v and the sum over its units happen where the product's results are, in registers.
// Cost removed: S W_s^T, written and read; a number for each state and 64 units is left, which add_rows adds up.
// Still limits it: the product.
__global__ void __launch_bounds__(FusedTile::THREADS)
    score_tiles(DeviceMatrix<const float> states, DeviceMatrix<const float> weight,
                DeviceSpan<const float> add, DeviceSpan<const float> v, DeviceMatrix<float> parts) {
    __shared__ typename FusedTile::Shared shared;
    const std::size_t part = blockIdx.x % parts.cols();
    const std::size_t row0 = blockIdx.x / parts.cols() * FusedTile::BM;
    const std::size_t unit0 = part * FusedTile::BN;
    FusedTile tile;
    tile.multiply<true>(states, weight, row0, unit0, shared);

    float score[FusedTile::TM] = {};
    for (int j = 0; j < FusedTile::TN; ++j) {
        const std::size_t unit = unit0 + FusedTile::col() + j * FusedTile::COLS;
        if (unit >= weight.rows()) continue;
        for (int i = 0; i < FusedTile::TM; ++i)
            score[i] += v[unit] * tanhf(tile.sum[i][j] + add[unit]);
    }
    // The threads that share a row are neighbours in a warp.
    static_assert(course::kWarpSize % FusedTile::COLS == 0);
    for (int i = 0; i < FusedTile::TM; ++i) {
        for (int distance = FusedTile::COLS / 2; distance > 0; distance /= 2)
            score[i] += __shfl_xor_sync(course::kWholeWarp, score[i], distance);
        const std::size_t row = row0 + FusedTile::row() + i * FusedTile::ROWS;
        if (FusedTile::col() == 0 && row < parts.rows()) parts(row, part) = score[i];
    }
}

// --- Launchers -----------------------------------------------------------------------------------------------------------

ScoreShape shape_of(const ScoreInputs& inputs) {
    return {inputs.states.rows(), inputs.states.cols(), inputs.hidden.size(), inputs.v.size()};
}

// False when there is nothing to do.
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

unsigned blocks(std::size_t threads) {
    return course::blocks_for(threads, kThreads);
}

void multiply_transposed(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                         cudaStream_t stream) {
    products().back().launcher({.a = a, .b = b, .c = c, .transpose_b = true}, stream);
}

void launch_dot_separate(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                         cudaStream_t stream) {
    if (!check(Scoring::kDot, in, scores, workspace)) return;
    const auto products = workspace.subspan(0, in.states.rows() * in.states.cols());
    if (!products.empty()) {
        multiply_states<<<blocks(products.size()), kThreads, 0, stream>>>(in.hidden, in.states, products);
        CUDA_CHECK_LAUNCH();
    }
    add_rows<<<blocks(scores.size()), kThreads, 0, stream>>>(products, in.states.cols(), scores);
    CUDA_CHECK_LAUNCH();
}

void launch_dot_fused(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                      cudaStream_t stream) {
    if (check(Scoring::kDot, in, scores, workspace)) multiply_vector(in.states, in.hidden, scores, stream);
}

void launch_luong_states_first(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                               cudaStream_t stream) {
    if (!check(Scoring::kLuong, in, scores, workspace)) return;
    const DeviceMatrix<float> mapped(workspace, in.states.rows(), in.hidden.size());
    multiply_transposed(in.states, in.weight, mapped, stream);
    multiply_vector(mapped, in.hidden, scores, stream);
}

void launch_luong_hidden_first(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                               cudaStream_t stream) {
    if (!check(Scoring::kLuong, in, scores, workspace)) return;
    const auto mapped = workspace.subspan(0, in.states.cols());
    if (!mapped.empty()) {
        vector_times_matrix<<<course::blocks_for(mapped.size(), course::kWarpSize),
                              kColumnWarps * course::kWarpSize, 0, stream>>>(in.hidden, in.weight, mapped);
        CUDA_CHECK_LAUNCH();
    }
    multiply_vector(in.states, mapped, scores, stream);
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
        concatenate<<<blocks(states * both), kThreads, 0, stream>>>(in.hidden, in.states, concatenated);
        CUDA_CHECK_LAUNCH();
    }
    multiply_transposed(concatenated, in.weight, mapped, stream);
    weigh_tanh<<<blocks(states * course::kWarpSize), kThreads, 0, stream>>>(mapped, {}, in.v, scores);
    CUDA_CHECK_LAUNCH();
}

// W_h and W_s stand side by side in W; W_h h goes to the head of the workspace.
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
    weigh_tanh<<<blocks(scores.size() * course::kWarpSize), kThreads, 0, stream>>>(mapped, add, in.v, scores);
    CUDA_CHECK_LAUNCH();
}

void launch_bahdanau_fused(const ScoreInputs& in, DeviceSpan<float> scores, DeviceSpan<float> workspace,
                           cudaStream_t stream) {
    if (!check(Scoring::kBahdanau, in, scores, workspace)) return;
    const std::size_t units = in.v.size();
    const auto add = map_hidden(in, workspace, stream);
    const std::size_t tiles = course::ceil_div<std::size_t>(units, FusedTile::BN);
    const auto parts = workspace.subspan(units, scores.size() * tiles);
    if (tiles > 0) {
        const std::size_t count = course::ceil_div<std::size_t>(scores.size(), FusedTile::BM) * tiles;
        score_tiles<<<course::blocks_for(count, 1), FusedTile::THREADS, 0, stream>>>(
            in.states, weight_of_states(in), add, in.v, DeviceMatrix<float>(parts, scores.size(), tiles));
        CUDA_CHECK_LAUNCH();
    }
    add_rows<<<blocks(scores.size()), kThreads, 0, stream>>>(parts, tiles, scores);
    CUDA_CHECK_LAUNCH();
}

// The least there is to do: `product` multiply-adds, and the inputs read once.
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

}  // namespace

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

std::span<const Scorer> scorers(Scoring scoring) {
    static const std::array<Scorer, 2> dot = {{
        {"dot_separate", "multiply, then add up", launch_dot_separate, work<Scoring::kDot>},
        {"dot_fused", "a warp per state does both", launch_dot_fused, work<Scoring::kDot>},
    }};
    static const std::array<Scorer, 2> luong = {{
        {"luong_states_first", "h (W s): a product of matrices", launch_luong_states_first,
         work<Scoring::kLuong>},
        {"luong_hidden_first", "(h W) s: two products with a vector", launch_luong_hidden_first,
         work<Scoring::kLuong>},
    }};
    static const std::array<Scorer, 3> bahdanau = {{
        {"bahdanau_concatenated", "[h; s] in memory, one product", launch_bahdanau_concatenated,
         work<Scoring::kBahdanau>},
        {"bahdanau_split", "W_h h once, a product for the states", launch_bahdanau_split,
         work<Scoring::kBahdanau>},
        {"bahdanau_fused", "tanh and v where the product's results are", launch_bahdanau_fused,
         work<Scoring::kBahdanau>},
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

// Day 25, part 3: a layer, as PyTorch's nn.MultiheadAttention.
//
//   1  q, k, v   tokens times weights, plus biases      one product if the tokens are the same
//   2  heads     self_attention.cpp on pieces of q, k, v: a head is a few columns, so no data moves
//   3  out       heads times weights, plus bias         one product
//
// A bias takes no pass over a result: it is stored first, and the product adds to it (beta = 1).
// The constructor allocates all memory, so forward() only queues kernels and can be captured into a
// graph.
#include "attention_layer.hpp"

#include <algorithm>
#include <cmath>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"

namespace day25 {
namespace {

using course::DeviceMatrix;
using course::DeviceSpan;

std::vector<float> transposed(const std::vector<float>& matrix, std::size_t rows, std::size_t cols) {
    std::vector<float> result(matrix.size());
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cols; ++c)
            result[c * rows + r] = matrix[r * cols + c];
    return result;
}

AttentionShape shape_of(const AttentionConfig& config, const TokenCounts& counts) {
    check_config(config);
    const std::size_t head = config.width / config.heads;
    return {counts.batch, config.heads, counts.queries, counts.keys, head, head};
}

std::vector<ProductShape> projections(const AttentionConfig& config, const TokenCounts& most) {
    const std::size_t queries = most.batch * most.queries;
    const std::size_t keys = most.batch * most.keys;
    const std::size_t width = config.width;
    return {
        {queries, 3 * width, width}, {queries, width, width}, {keys, 2 * width, width}, {keys, width, width}};
}

bool same(DeviceMatrix<const float> a, DeviceMatrix<const float> b) {
    return a.data() == b.data() && a.rows() == b.rows() && a.leading_dimension() == b.leading_dimension();
}

void require_shape(const char* name, const DeviceMatrix<const float>& matrix, std::size_t rows,
                   std::size_t cols) {
    course::require(matrix.rows() == rows && matrix.cols() == cols, "day25: attention layer: ", name, " is ",
                    matrix, "; expected ", rows, " x ", cols);
}

void require_length(const char* name, std::size_t length, std::size_t expected) {
    course::require(length == expected, "day25: attention layer: ", name, " has ", length,
                    " elements; expected ", expected);
}

}  // namespace

void check_config(const AttentionConfig& config) {
    course::require(config.heads > 0 && config.width % config.heads == 0, "day25: attention layer: heads is ",
                    config.heads, "; expected a divisor of width, ", config.width);
}

void check_weights(const AttentionConfig& config, const AttentionWeights& weights) {
    const std::size_t width = config.width;
    require_length("in_weight", weights.in_weight.size(), 3 * width * width);
    require_length("out_weight", weights.out_weight.size(), width * width);
    require_length("in_bias", weights.in_bias.size(), config.bias ? 3 * width : 0);
    require_length("out_bias", weights.out_bias.size(), config.bias ? width : 0);
}

course::Work layer_work(const AttentionConfig& config, const TokenCounts& counts) {
    const auto width = static_cast<double>(config.width);
    const auto queries = static_cast<double>(counts.batch * counts.queries);
    const auto keys = static_cast<double>(counts.batch * counts.keys);
    const double pairs = queries * static_cast<double>(counts.keys);
    const double weights = 4 * width * (width + (config.bias ? 1 : 0));
    return {.bytes = sizeof(float) * (weights + 2 * queries * width),
            .written = sizeof(float) * queries * width,
            .flops = 4 * (queries + keys) * width * width + 4 * pairs * width};
}

AttentionLayer::AttentionLayer(const AttentionConfig& config, const TokenCounts& most, const Version& version,
                               std::uint64_t seed)
    : config_(config),
      most_(most),
      attention_(version, shape_of(config, most)),
      backend_(version.launcher.make_backend(projections(config, most))),
      in_weight_(3 * config.width * config.width),
      out_weight_(config.width * config.width),
      in_bias_(config.bias ? 3 * config.width : 0),
      out_bias_(config.bias ? config.width : 0),
      projected_(most.batch * (most.queries + 2 * most.keys) * config.width),
      heads_(most.batch * most.queries * config.width) {
    draw_xavier(config.initial, in_weight_.span(), config.width, seed, 0);
    draw_xavier(config.initial, out_weight_.span(), config.width, seed, in_weight_.size());
    if (in_bias_.size() > 0) {
        CUDA_CHECK(cudaMemset(in_bias_.data(), 0, in_bias_.bytes()));
        CUDA_CHECK(cudaMemset(out_bias_.data(), 0, out_bias_.bytes()));
    }
    CUDA_CHECK(cudaDeviceSynchronize());  // forward() may run on any stream
}

void AttentionLayer::set_weights(const AttentionWeights& weights) {
    check_weights(config_, weights);
    in_weight_.copy_from(transposed(weights.in_weight, 3 * config_.width, config_.width));
    out_weight_.copy_from(transposed(weights.out_weight, config_.width, config_.width));
    in_bias_.copy_from(weights.in_bias);
    out_bias_.copy_from(weights.out_bias);
}

AttentionWeights AttentionLayer::weights() const {
    return {transposed(in_weight_.to_host(), config_.width, 3 * config_.width),
            transposed(out_weight_.to_host(), config_.width, config_.width), in_bias_.to_host(),
            out_bias_.to_host()};
}

void AttentionLayer::project(DeviceMatrix<const float> in, DeviceMatrix<const float> weight_transposed,
                             DeviceSpan<const float> bias, std::size_t first, DeviceMatrix<float> out,
                             cudaStream_t stream) {
    if (!bias.empty()) fill_rows(bias.subspan(first, out.cols()), out, stream);
    backend_->multiply({.a = in,
                        .b = piece(weight_transposed, 0, config_.width, first, out.cols()),
                        .c = out,
                        .beta = bias.empty() ? 0.0f : 1.0f},
                       stream);
}

void AttentionLayer::forward(DeviceMatrix<const float> query, DeviceMatrix<const float> key,
                             DeviceMatrix<const float> value, DeviceMatrix<float> out,
                             const TokenCounts& counts, const Mask& mask, cudaStream_t stream) {
    const auto [batch, queries, keys] = counts;
    const std::size_t width = config_.width;
    course::require(batch <= most_.batch && queries <= most_.queries && keys <= most_.keys,
                    "day25: attention layer: ", batch, " batches of ", queries, " x ", keys,
                    " tokens; expected at most ", most_.batch, " of ", most_.queries, " x ", most_.keys);
    require_shape("query", query, batch * queries, width);
    require_shape("key", key, batch * keys, width);
    require_shape("value", value, batch * keys, width);
    require_shape("out", out, batch * queries, width);
    course::require(!overlap(out, query) && !overlap(out, key) && !overlap(out, value),
                    "day25: attention layer: out overlaps query, key or value; expected that it does not");

    // In `projected_`: q beside k beside v, or q and then k beside v, or all three one after the
    // other.
    const auto in_weight = std::as_const(in_weight_).matrix(width, 3 * width);
    const auto in_bias = std::as_const(in_bias_).span();
    const auto part = [&](std::size_t offset, std::size_t rows, std::size_t cols) {
        return DeviceMatrix<float>(projected_.span().subspan(offset, rows * cols), rows, cols);
    };
    DeviceMatrix<float> q, k, v;
    if (same(query, key) && same(key, value)) {
        const auto all = part(0, batch * queries, 3 * width);
        project(query, in_weight, in_bias, 0, all, stream);
        q = piece(all, 0, all.rows(), 0, width);
        k = piece(all, 0, all.rows(), width, width);
        v = piece(all, 0, all.rows(), 2 * width, width);
    } else {
        q = part(0, batch * queries, width);
        project(query, in_weight, in_bias, 0, q, stream);
        const std::size_t behind_q = batch * queries * width;
        if (same(key, value)) {
            const auto both = part(behind_q, batch * keys, 2 * width);
            project(key, in_weight, in_bias, width, both, stream);
            k = piece(both, 0, both.rows(), 0, width);
            v = piece(both, 0, both.rows(), width, width);
        } else {
            k = part(behind_q, batch * keys, width);
            v = part(behind_q + batch * keys * width, batch * keys, width);
            project(key, in_weight, in_bias, width, k, stream);
            project(value, in_weight, in_bias, 2 * width, v, stream);
        }
    }
    const auto heads = heads_.matrix(batch * queries, width);
    const auto head_width = static_cast<double>(width / config_.heads);
    attention_(shape_of(config_, counts), q, k, v, heads, static_cast<float>(1 / std::sqrt(head_width)), mask,
               stream);
    project(heads, std::as_const(out_weight_).matrix(width, width), std::as_const(out_bias_).span(), 0, out,
            stream);
}

}  // namespace day25

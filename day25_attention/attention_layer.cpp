#include "attention_layer.hpp"

#include <cmath>

#include "common/check/require.hpp"

namespace day25 {
namespace {

void require_length(const char* name, std::size_t length, std::size_t expected) {
    course::require(length == expected, "day25: attention layer: ", name, " has ", length,
                    " elements; expected ", expected);
}

}  // namespace

float xavier_bound(std::size_t inputs, std::size_t outputs) {
    return inputs + outputs == 0 ? 0.0f
                                 : static_cast<float>(std::sqrt(6.0 / static_cast<double>(inputs + outputs)));
}

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

AttentionLayerOnCpu::AttentionLayerOnCpu(const AttentionConfig& config, std::uint64_t seed)
    : config_(config) {
    check_config(config);
    const std::size_t width = config.width;
    std::uint64_t number = 0;
    const auto draw = [&](std::size_t outputs) {
        std::vector<float> weight(outputs * width);
        for (float& w : weight)
            w = xavier_weight(seed, number++, xavier_bound(width, outputs));
        return weight;
    };
    weights_.in_weight = draw(3 * width);
    weights_.out_weight = draw(width);
    if (config.bias) {
        weights_.in_bias.resize(3 * width);
        weights_.out_bias.resize(width);
    }
}

void AttentionLayerOnCpu::set_weights(const AttentionWeights& weights) {
    check_weights(config_, weights);
    weights_ = weights;
}

Bounded AttentionLayerOnCpu::forward(std::span<const float> query, std::span<const float> key,
                                     std::span<const float> value, const TokenCounts& counts, bool causal,
                                     std::span<const std::uint8_t> padding, course::Growth growth) const {
    const auto [batch, queries, keys] = counts;
    const std::size_t width = config_.width;
    const auto project = [&](const Bounded& in, const std::vector<float>& weight,
                             const std::vector<float>& bias, std::size_t first) {
        const std::span<const float> rows = std::span(weight).subspan(first * width, width * width);
        const Bounded out = multiply(in, Bounded(width, width, rows, growth), true);
        return bias.empty()
                   ? out
                   : add_to_rows(out, Bounded(1, width, std::span(bias).subspan(first, width), growth));
    };
    const Bounded q =
        project(Bounded(batch * queries, width, query, growth), weights_.in_weight, weights_.in_bias, 0);
    const Bounded k =
        project(Bounded(batch * keys, width, key, growth), weights_.in_weight, weights_.in_bias, width);
    const Bounded v =
        project(Bounded(batch * keys, width, value, growth), weights_.in_weight, weights_.in_bias, 2 * width);

    const std::size_t head = width / config_.heads;
    const Bounded heads = self_attention_reference({batch, config_.heads, queries, keys, head, head}, q, k, v,
                                                   1 / std::sqrt(static_cast<double>(head)), causal, padding);
    return project(heads, weights_.out_weight, weights_.out_bias, 0);
}

}  // namespace day25

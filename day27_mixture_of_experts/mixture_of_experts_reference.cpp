// The reference of day 27: plain loops in double, and the bound of the error, which the README
// derives.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mixture_of_experts.hpp"

namespace day27 {
namespace {

// The j-th chosen expert of a token is choice[j].
struct Choice {
    std::vector<int> expert;
    std::vector<double> gate;
    std::vector<double> distance;  // of the logit from the largest one, which is rounded by exp
};

Choice choose(std::span<const float> logits, std::size_t chosen) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::vector<double> values(logits.begin(), logits.end());
    for (double& value : values)
        value = std::isnan(value) ? -kInfinity : value;
    std::vector<int> order(values.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = static_cast<int>(i);
    const auto value = [&](int expert) { return values[static_cast<std::size_t>(expert)]; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return value(a) > value(b); });
    order.resize(chosen);

    Choice choice{order, std::vector<double>(chosen), std::vector<double>(chosen)};
    const double max = value(order[0]);
    if (max == -kInfinity) return choice;
    double sum = 0;
    for (std::size_t j = 0; j < chosen; ++j) {
        const double x = value(order[j]);
        choice.distance[j] = x == -kInfinity || x == max ? 0 : max - x;
        choice.gate[j] = x == max ? 1 : std::exp(x - max);
        sum += choice.gate[j];
    }
    for (double& gate : choice.gate)
        gate /= sum;
    return choice;
}

}  // namespace

Routing route_on_cpu(const Shape& shape, std::span<const float> logits) {
    Routing routing;
    routing.starts.resize(shape.experts + 1);
    for (std::size_t token = 0; token < shape.tokens; ++token) {
        const Choice choice = choose(logits.subspan(token * shape.experts, shape.experts), shape.chosen);
        routing.choice.insert(routing.choice.end(), choice.expert.begin(), choice.expert.end());
        routing.gate.insert(routing.gate.end(), choice.gate.begin(), choice.gate.end());
    }
    for (const int expert : routing.choice)
        ++routing.starts[static_cast<std::size_t>(expert) + 1];
    for (std::size_t expert = 0; expert < shape.experts; ++expert)
        routing.starts[expert + 1] += routing.starts[expert];
    std::vector<int> next(routing.starts.begin(), routing.starts.end() - 1);
    routing.pair_at.resize(shape.pairs());
    for (std::size_t pair = 0; pair < shape.pairs(); ++pair) {
        const int place = next[static_cast<std::size_t>(routing.choice[pair])]++;
        routing.place.push_back(place);
        routing.pair_at[static_cast<std::size_t>(place)] = static_cast<int>(pair);
    }
    return routing;
}

Expected layer_on_cpu(const Shape& shape, std::span<const float> logits, std::span<const float> x,
                      std::span<const float> weights, std::size_t first, std::size_t count, Sums sums) {
    constexpr double u = 0x1p-24;
    const std::size_t width = shape.width;
    Expected expected{std::vector<double>(count * width), std::vector<double>(count * width)};
    const auto hidden = static_cast<double>(shape.hidden);
    const auto tokens = static_cast<std::ptrdiff_t>(count);
#pragma omp parallel for
    for (std::ptrdiff_t n = 0; n < tokens; ++n) {
        const auto at = static_cast<std::size_t>(n);
        const std::size_t token = first + at;
        const Choice choice = choose(logits.subspan(token * shape.experts, shape.experts), shape.chosen);
        std::vector<double> sum(width), magnitude(width);
        for (std::size_t j = 0; j < shape.chosen; ++j) {
            std::ranges::fill(sum, 0);
            std::ranges::fill(magnitude, 0);
            const std::size_t matrix = static_cast<std::size_t>(choice.expert[j]) * shape.hidden * width;
            for (std::size_t d = 0; d < shape.hidden; ++d) {
                const double value = static_cast<double>(x[token * shape.hidden + d]);
                for (std::size_t c = 0; c < width; ++c) {
                    const double term = value * static_cast<double>(weights[matrix + d * width + c]);
                    sum[c] += term;
                    magnitude[c] += std::abs(term);
                }
            }
            // The product: a sum of `hidden` terms, of which a tensor core cuts off up to two units
            // each. In BF16 it has 8 bits: rounding is 2^-8 of it, 2^16 units. The gate: its
            // logit's difference is rounded, which exp turns into a relative error; exp, the sum
            // and the quotient have a few roundings each. Then the sum of k terms.
            const double largest = *std::ranges::max_element(choice.distance);
            const double of_sum = sums == Sums::kRounded ? 2 * (std::sqrt(hidden) + 2) : 2 * 2 * (hidden + 1);
            const double of_gate = choice.distance[j] + largest + 8 + static_cast<double>(shape.chosen);
            const double of_total = static_cast<double>(shape.chosen) + 1;
            const double of_store = sums == Sums::kCutOffToBfloat16 ? 0x1p16 : 0;
            for (std::size_t c = 0; c < width; ++c) {
                const double gate = choice.gate[j];
                expected.value[at * width + c] += gate * sum[c];
                expected.bound[at * width + c] +=
                    u * gate * (of_sum * magnitude[c] + (of_gate + of_total + of_store) * std::abs(sum[c])) +
                    std::numeric_limits<float>::denorm_min() * (1 + magnitude[c]);
            }
        }
    }
    return expected;
}

}  // namespace day27

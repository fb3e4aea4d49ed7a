// Host code of speculative decoding: checks and the reference. The kernel is in speculative.cuh.
#include <algorithm>
#include <cmath>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "speculative.cuh"
#include "speculative.hpp"

namespace day29 {
namespace {

using course::require;

std::vector<double> softmax_on_cpu(std::span<const float> logits) {
    std::vector<double> p(logits.begin(), logits.end());
    const double max = *std::ranges::max_element(p);
    double sum = 0;
    for (double& x : p)
        sum += x = std::exp(x - max);
    for (double& x : p)
        x /= sum;
    return p;
}

}  // namespace

void accept(const Speculation& s, cudaStream_t stream) {
    require(s.drafted >= 1 && s.drafted <= kMostDrafted, "speculation: drafted is ", s.drafted,
            "; expected 1 to ", kMostDrafted);
    require(s.vocabulary >= 1 && s.vocabulary <= std::size_t{1} << 20, "speculation: vocabulary is ",
            s.vocabulary, "; expected 1 to 2^20");
    const auto same_size = [](const char* what, std::size_t size, std::size_t expected) {
        require(size == expected, "speculation: ", what, " has ", size, " elements; expected ", expected);
    };
    same_size("draft_logits", s.draft_logits.size(), s.batch * s.drafted * s.vocabulary);
    same_size("target_logits", s.target_logits.size(), s.batch * (s.drafted + 1) * s.vocabulary);
    same_size("proposed", s.proposed.size(), s.batch * s.drafted);
    same_size("uniform", s.uniform.size(), s.batch * (s.drafted + 1));
    same_size("accepted", s.accepted.size(), s.batch);
    same_size("token", s.token.size(), s.batch);
    if (s.batch == 0) return;
    launch_accept(
        {s.draft_logits.data(), s.target_logits.data(), s.proposed.data(), s.uniform.data(),
         s.accepted.data(), s.token.data(), static_cast<int>(s.drafted), static_cast<int>(s.vocabulary)},
        course::blocks_for(s.batch, 1), stream);
    CUDA_CHECK_LAUNCH();
}

Accepted accept_on_cpu(std::size_t drafted, std::size_t vocabulary, std::span<const float> draft_logits,
                       std::span<const float> target_logits, std::span<const int> proposed,
                       std::span<const float> uniform) {
    Accepted result;
    std::vector<double> weights;
    for (std::size_t i = 0;; ++i) {
        weights = softmax_on_cpu(target_logits.subspan(i * vocabulary, vocabulary));
        if (i == drafted) break;
        const std::vector<double> q = softmax_on_cpu(draft_logits.subspan(i * vocabulary, vocabulary));
        const auto x = static_cast<std::size_t>(proposed[i]);
        const double ratio = x < vocabulary ? weights[x] / q[x] : 0;
        const auto u = static_cast<double>(uniform[i]);
        result.nearest = std::min(result.nearest, std::abs(u - ratio));
        if (u < std::min(1.0, ratio)) {
            ++result.accepted;
            continue;
        }
        for (std::size_t j = 0; j < vocabulary; ++j)
            weights[j] = std::max(weights[j] - q[j], 0.0);
        break;
    }
    double sum = 0;
    for (const double weight : weights)
        sum += weight;
    if (sum == 0) {
        weights = softmax_on_cpu(
            target_logits.subspan(static_cast<std::size_t>(result.accepted) * vocabulary, vocabulary));
        for (const double weight : weights)
            sum += weight;
    }
    double cumulated = 0;
    const double threshold = static_cast<double>(uniform[drafted]) * sum;
    bool found = false;
    for (std::size_t j = 0; j < vocabulary; ++j) {
        cumulated += weights[j];
        if (weights[j] > 0) result.nearest = std::min(result.nearest, std::abs(cumulated - threshold));
        if (!found && cumulated > threshold) {
            found = true;
            result.token = static_cast<int>(j);
        }
    }
    return result;
}

}  // namespace day29

// Host code of speculative decoding: checks and the reference. The kernel is in speculative.cuh.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

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

// The logits of one sequence.
struct Rows {
    std::size_t drafted, vocabulary;
    std::span<const float> draft_logits, target_logits;

    std::vector<double> p(std::size_t row) const {
        return softmax_on_cpu(target_logits.subspan(row * vocabulary, vocabulary));
    }
    std::vector<double> q(std::size_t row) const {
        return softmax_on_cpu(draft_logits.subspan(row * vocabulary, vocabulary));
    }

    // The probability with which token x of a row is accepted: min(1, p(x) / q(x)).
    double ratio(std::size_t row, int x) const {
        if (x < 0 || static_cast<std::size_t>(x) >= vocabulary) return 0;
        const auto at = static_cast<std::size_t>(x);
        return std::min(p(row)[at] / q(row)[at], 1.0);
    }

    // Of all tokens, for the draw after the first `kept` have been accepted.
    std::vector<double> weights(std::size_t kept) const {
        std::vector<double> of_target = p(kept);
        if (kept == drafted) return of_target;
        std::vector<double> difference = q(kept);
        for (std::size_t x = 0; x < vocabulary; ++x)
            difference[x] = std::max(0.0, of_target[x] - difference[x]);  // 0 for a NaN, as fmaxf()
        const bool all_are_0 = std::ranges::all_of(difference, [](double weight) { return weight == 0; });
        return all_are_0 ? of_target : difference;
    }
};

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
    const Rows rows{drafted, vocabulary, draft_logits, target_logits};
    Accepted result;
    std::size_t row = 0;
    while (row < drafted && static_cast<double>(uniform[row]) < rows.ratio(row, proposed[row]))
        ++row;
    result.accepted = static_cast<int>(row);
    const std::vector<double> weights = rows.weights(row);
    const double threshold =
        static_cast<double>(uniform[drafted]) * std::accumulate(weights.begin(), weights.end(), 0.0);
    double cumulated = 0;
    for (std::size_t x = 0; x < vocabulary; ++x) {
        cumulated += weights[x];
        if (cumulated > threshold) {
            result.token = static_cast<int>(x);
            break;
        }
    }
    return result;
}

bool may_be_right(const Accepted& got, std::size_t drafted, std::size_t vocabulary,
                  std::span<const float> draft_logits, std::span<const float> target_logits,
                  std::span<const int> proposed, std::span<const float> uniform) {
    constexpr double kRounding = 3e-5;
    if (got.accepted < 0 || static_cast<std::size_t>(got.accepted) > drafted) return false;
    if (got.token < 0 || static_cast<std::size_t>(got.token) >= vocabulary) return false;
    const Rows rows{drafted, vocabulary, draft_logits, target_logits};
    const auto kept = static_cast<std::size_t>(got.accepted);
    for (std::size_t row = 0; row < kept; ++row)
        if (static_cast<double>(uniform[row]) >= rows.ratio(row, proposed[row]) + kRounding) return false;
    if (kept < drafted && static_cast<double>(uniform[kept]) < rows.ratio(kept, proposed[kept]) - kRounding)
        return false;
    const std::vector<double> weights = rows.weights(kept);
    const auto token = weights.begin() + got.token;
    const double threshold =
        static_cast<double>(uniform[drafted]) * std::accumulate(weights.begin(), weights.end(), 0.0);
    const double before = std::accumulate(weights.begin(), token, 0.0);
    return *token > 0 && before - kRounding <= threshold && threshold < before + *token + kRounding;
}

}  // namespace day29

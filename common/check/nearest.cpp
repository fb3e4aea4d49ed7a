#include "common/check/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace course {
namespace {

constexpr std::size_t kLeftOut = 1;
constexpr std::size_t kWrong = 2;
constexpr std::size_t kTooMany = 2;

// The cost of editing `a` into `b`.
std::size_t edit_cost(std::string_view a, std::string_view b) {
    // row[j]: cost of turning the letters of `a` seen so far into the first j letters of b.
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = (i + 1) * kTooMany;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : kWrong);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + kLeftOut, row[j + 1] + kTooMany});
        }
    }
    return row.back();
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
    std::string best;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::string& candidate : candidates) {
        const std::size_t cost = edit_cost(name, candidate);
        const bool is_begun = !name.empty() && candidate.starts_with(name);
        const bool is_near = is_begun || 5 * cost <= 2 * (name.size() + candidate.size());
        if (is_near && cost < least) {
            best = candidate;
            least = cost;
        }
    }
    return best;
}

std::string unknown_name(std::string_view what, std::string_view name,
                         std::span<const std::string> candidates) {
    if (candidates.empty()) return fmt::format("unknown {} '{}': there are none", what, name);
    const std::string near = nearest(name, candidates);
    return fmt::format("unknown {} '{}'{} Known: {}", what, name,
                       near.empty() ? "." : fmt::format(": did you mean '{}'?", near),
                       fmt::join(candidates, ", "));
}

}  // namespace course

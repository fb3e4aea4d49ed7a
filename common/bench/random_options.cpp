#include "common/bench/random_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <utility>

namespace course {
namespace {

std::uint64_t whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value >= least && value <= most) return value;
    throw std::invalid_argument(
        fmt::format("{} '{}': expected a whole number from {} to {}", option, text, least, most));
}

}  // namespace

std::optional<RandomChoice> random_choice(const RandomOptions& options) {
    constexpr std::uint64_t kMostProblems = 1000000;
    constexpr std::uint64_t kMostWork = std::uint64_t{1} << 60;
    if (!options.count) {
        for (const auto& [option, value] :
             {std::pair("--seed", options.seed), {"--random-limit", options.limit}})
            if (value)
                throw std::invalid_argument(fmt::format("{} '{}': expected with --random N", option, *value));
        return std::nullopt;
    }
    RandomChoice choice{.count = whole_number("--random", *options.count, 1, kMostProblems)};
    if (options.seed) choice.seed = whole_number("--seed", *options.seed, 0, UINT64_MAX);
    if (options.limit) choice.limit = whole_number("--random-limit", *options.limit, 1, kMostWork);
    return choice;
}

}  // namespace course

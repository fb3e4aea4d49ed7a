// The options --random, --seed and --random-limit of the days' programs and of `./course bench`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace course {

// As they are on the command line.
struct RandomOptions {
    std::optional<std::string> count{}, seed{}, limit{};
};

struct RandomChoice {
    std::size_t count = 0;  // of problems
    std::uint64_t seed = 1;
    std::optional<std::size_t> limit{};  // the most work of a problem, if not the distribution's
};

// The numbers, or nothing without --random. Throws std::invalid_argument, with the option, its
// value and what was expected, for what is no such number and for --seed or --random-limit alone.
std::optional<RandomChoice> random_choice(const RandomOptions& options);

}  // namespace course

#include "common/check/data_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "common/device/grid.hpp"

namespace course {
namespace {

[[noreturn]] void throw_unknown(DataPattern pattern) {
    throw std::invalid_argument(fmt::format(
        "data pattern {}: expected one of the values of course::DataPattern", static_cast<int>(pattern)));
}

// How many numbers draw_real() takes from a Random for each value; empty if their number varies.
std::optional<std::size_t> draws_of_real(DataPattern pattern) {
    switch (pattern) {
        case DataPattern::kSignedUniform:
        case DataPattern::kSorted:
        case DataPattern::kReversed:
            return 1;  // no draw from [-1, 1) is rounded up to 1
        case DataPattern::kNormal:
            return 4;
        case DataPattern::kAllEqual:
            return 0;
        default:
            return std::nullopt;
    }
}

}  // namespace

std::string_view name(DataPattern pattern) {
    switch (pattern) {
        case DataPattern::kSignedUniform:
            return "signed_uniform";
        case DataPattern::kNormal:
            return "normal";
        case DataPattern::kAllEqual:
            return "all_equal";
        case DataPattern::kHugeNextToTiny:
            return "huge_next_to_tiny";
        case DataPattern::kSorted:
            return "sorted";
        case DataPattern::kReversed:
            return "reversed";
        case DataPattern::kWithNan:
            return "with_nan";
        case DataPattern::kWithInf:
            return "with_inf";
    }
    throw_unknown(pattern);
}

double draw_real(DataPattern pattern, int exponent_range, Random& random) {
    constexpr std::uint32_t kOneIn = 16;
    switch (pattern) {
        case DataPattern::kSignedUniform:
        case DataPattern::kSorted:
        case DataPattern::kReversed:
            return random.uniform(-1, 1);
        case DataPattern::kNormal:
            return random.normal();
        case DataPattern::kAllEqual:
            return 0.75;
        case DataPattern::kHugeNextToTiny:
            return std::ldexp(random.normal(), random.below(2) == 0 ? exponent_range : -exponent_range);
        case DataPattern::kWithNan:
            return random.below(kOneIn) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                             : random.uniform(-1, 1);
        case DataPattern::kWithInf:
            return random.below(kOneIn) == 0
                       ? std::copysign(std::numeric_limits<double>::infinity(), random.normal())
                       : random.uniform(-1, 1);
    }
    throw_unknown(pattern);
}

std::int32_t draw_integer(DataPattern pattern, std::int32_t magnitude, Random& random) {
    switch (pattern) {
        case DataPattern::kSignedUniform:
        case DataPattern::kSorted:
        case DataPattern::kReversed:
            return random.integer(-magnitude, magnitude);
        case DataPattern::kNormal:
            return static_cast<std::int32_t>(random.normal() * static_cast<float>(magnitude) / 6);
        case DataPattern::kAllEqual:
            return magnitude / 2;
        case DataPattern::kHugeNextToTiny:
            return random.below(2) == 0 ? random.integer(-1, 1) : magnitude * (random.below(2) == 0 ? 1 : -1);
        case DataPattern::kWithNan:
        case DataPattern::kWithInf:
            throw std::invalid_argument(fmt::format(
                "data pattern {} needs a floating-point type, got an integer type", name(pattern)));
    }
    throw_unknown(pattern);
}

namespace detail {

void fill_with_reals(std::size_t size, DataPattern pattern, std::uint64_t seed,
                     const std::function<void(std::size_t begin, std::size_t end, Random& random)>& fill) {
    const std::optional<std::size_t> draws = draws_of_real(pattern);
    if (!draws) {
        Random random(seed);
        return fill(0, size, random);
    }
    constexpr std::size_t kPart = std::size_t{1} << 16;
#pragma omp parallel for schedule(static) if (size > kPart)
    for (std::size_t part = 0; part < ceil_div(size, kPart); ++part) {
        Random random(seed, part * kPart * *draws);
        fill(part * kPart, std::min(size, (part + 1) * kPart), random);
    }
}

}  // namespace detail
}  // namespace course

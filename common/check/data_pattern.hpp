// Test data by name: well-behaved data, and data that exposes errors.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/device/random.hpp"

namespace course {

enum class DataPattern {
    kSignedUniform,   // [-1, 1)
    kNormal,          // mean 0, variance 1
    kAllEqual,        // one value everywhere: tests tie-breaking
    kHugeNextToTiny,  // magnitudes many powers of two apart, both signs: sums lose their small terms
    kSorted,          // ascending
    kReversed,        // descending
    kWithNan,         // signed uniform with a NaN in about 1 of 16 places; floating point only
    kWithInf,         // signed uniform with +Inf or -Inf in about 1 of 16 places; floating point only
};

inline constexpr std::array kFinitePatterns = {DataPattern::kSignedUniform, DataPattern::kNormal,
                                               DataPattern::kAllEqual,      DataPattern::kHugeNextToTiny,
                                               DataPattern::kSorted,        DataPattern::kReversed};

// "signed_uniform", "all_equal", ... Throws std::invalid_argument for a value outside the list.
std::string_view name(DataPattern pattern);

// The next value of a pattern, before sorting: floating point with magnitudes up to about
// 2^exponent_range,
double draw_real(DataPattern pattern, int exponent_range, Random& random);
// or an integer in [-magnitude, magnitude]; throws std::invalid_argument for the patterns with NaN
// and Inf.
std::int32_t draw_integer(DataPattern pattern, std::int32_t magnitude, Random& random);

namespace detail {

// Calls fill(begin, end, random) for parts of [0, size), on all of the host's cores. If every
// value of `pattern` takes the same number of draws, each part can start at its own position in the
// random sequence. Otherwise [0, size) is one part.
void fill_with_reals(std::size_t size, DataPattern pattern, std::uint64_t seed,
                     const std::function<void(std::size_t begin, std::size_t end, Random& random)>& fill);

}  // namespace detail

// `size` values of `pattern`, the same for the same seed. T: an arithmetic type, or one made from a
// float (__half). Integers lie within +-1000, or within half of the range of T if that is less;
// unsigned integers are shifted to start at 0.
template <class T>
std::vector<T> make_data(std::size_t size, DataPattern pattern, std::uint64_t seed) {
    std::vector<T> values(size);
    if constexpr (std::is_integral_v<T>) {
        constexpr auto kMagnitude =
            static_cast<std::int32_t>(std::min<std::uint64_t>(1000, std::numeric_limits<T>::max() / 2));
        constexpr std::int32_t kOffset = std::is_signed_v<T> ? 0 : kMagnitude;
        Random random(seed);
        for (T& value : values)
            value = static_cast<T>(draw_integer(pattern, kMagnitude, random) + kOffset);
    } else {
        constexpr int kExponentRange = sizeof(T) < 4 ? 12 : 30;  // 6 * 2^12 is in the range of a half
        detail::fill_with_reals(size, pattern, seed, [&](std::size_t begin, std::size_t end, Random& random) {
            for (std::size_t i = begin; i < end; ++i)
                values[i] = static_cast<T>(static_cast<float>(draw_real(pattern, kExponentRange, random)));
        });
    }
    const auto less = [](const T& a, const T& b) { return static_cast<double>(a) < static_cast<double>(b); };
    if (pattern == DataPattern::kSorted) std::sort(values.begin(), values.end(), less);
    if (pattern == DataPattern::kReversed) std::sort(values.rbegin(), values.rend(), less);
    return values;
}

}  // namespace course

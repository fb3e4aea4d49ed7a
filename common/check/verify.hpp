// Verifies a result: compares it element by element with a reference that is computed in double
// (or exactly, for integers).
//
// The bound. A sum of n terms in precision eps, added in any order, is off by at most about n * eps * sum |terms|
// (N. Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2: the constant is (n -
// 1) u + O(u^2), u = eps / 2). A dot product's terms are a_i * b_i. So:
//
//     |got - expected| <= factor * eps(T) * growth(n) * magnitude
//
// magnitude   sum |terms| of that element. Without it max |expected| stands in, which is right for elementwise work and
//             too strict for sums that cancel: give it there.
// growth      n is guaranteed. sqrt(n) holds with high probability, rounding errors being about independent
//             (N. Higham, T. Mary, SIAM J. Sci. Comput. 41, 2019), and finds smaller mistakes.
// NaN is right where NaN is expected and nowhere else; so is +Inf, and -Inf.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/check/unwritten.hpp"

namespace course {

// The spacing of T at 1, and its smallest positive value. half_traits.hpp adds __half and
// __nv_bfloat16.
template <class T>
struct FloatTraits {
    static_assert(std::is_floating_point_v<T>,
                  "verify: for __half and __nv_bfloat16 include common/device/half_traits.hpp; "
                  "for integers use verify_exact");
    static constexpr double kEpsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
    static constexpr double kSmallest = static_cast<double>(std::numeric_limits<T>::denorm_min());
};

enum class Growth { kLinear, kSquareRoot };

struct Bound {
    std::size_t terms = 1;  // length of the sum behind one element
    Growth growth = Growth::kLinear;
    double factor = 2;

    // factor * growth(terms). Throws std::invalid_argument unless terms >= 1 and factor is finite
    // and >= 0.
    double roundings() const;
};

struct Mismatch {
    std::size_t index = 0;
    std::string expected;
    std::string got;
    std::string allowed;  // difference allowed; empty for exact comparison
};

struct VerifyResult {
    std::size_t compared = 0;
    std::size_t differing = 0;
    // Of the differing elements (unwritten.hpp): those still as before the launch, and NaN that
    // were computed from memory that no thread had written.
    std::size_t untouched = 0;
    std::size_t from_output = 0;
    std::size_t from_shared_memory = 0;
    std::size_t from_device_memory = 0;
    std::size_t from_outside = 0;  // outside of all arrays
    std::size_t ratios = 0;        // of the differing elements, got / expected, where that is finite
    double smallest_ratio = 0;
    double largest_ratio = 0;
    double max_error = 0;         // largest |got - expected|; infinite if NaN or Inf is in the wrong place
    std::vector<Mismatch> first;  // the first few that differ
    std::size_t cols = 0;         // when not 0, indices are reported as (row, col) too
    std::string damage;           // to the guards around the output, see guarded_buffer.hpp; empty if none

    bool ok() const { return differing == 0 && damage.empty(); }

    // "1000 values agree, largest error 1.2e-07"; or how many differ, how many of them were never
    // written, and the first few.
    std::string message() const;
};

// Compares `got` with `expected`. `magnitude` is empty or has one value per element. `cols` is
// used only for the report. Throws std::invalid_argument when the lengths differ, when a magnitude
// is negative, or when a magnitude is not finite although the expected value is.
template <std::ranges::contiguous_range Got>
VerifyResult verify(const Got& got, std::span<const double> expected, const Bound& bound = {},
                    std::span<const double> magnitude = {}, std::size_t cols = 0);

// For integers: the values must be equal. `expected` has the same element type.
template <std::ranges::contiguous_range Got>
VerifyResult verify_exact(const Got& got, std::span<const std::ranges::range_value_t<Got>> expected,
                          std::size_t cols = 0);

// --- Implementation of the templates -------------------------------------------------------------

namespace detail {

void require_lengths(std::size_t got, std::size_t expected, std::size_t magnitudes);
double largest_finite_magnitude(std::span<const double> values);
// Compares one element, and records the outcome in `result`.
void compare(VerifyResult& result, std::size_t index, double got, double expected, double roundings_epsilon,
             double magnitude, double smallest);
// Counts a difference. `describe` makes the Mismatch, but only for the first few: the texts of
// millions would take seconds.
template <class Describe>
void note_mismatch(VerifyResult& result, const Describe& describe) {
    constexpr std::size_t kReported = 5;
    ++result.differing;
    if (result.first.size() < kReported) result.first.push_back(describe());
}

// Counts a differing value as untouched, or by the memory that it was computed from.
template <class T>
void note_origin(VerifyResult& result, const T& value) {
    if (is_unwritten(value)) {
        ++result.untouched;
    } else if constexpr (std::is_floating_point_v<T>) {
        const NanOrigin origin = origin_of_nan(&value, sizeof(T));
        result.from_output += origin == NanOrigin::kOutput;
        result.from_shared_memory += origin == NanOrigin::kSharedMemory;
        result.from_device_memory += origin == NanOrigin::kDeviceMemory;
        result.from_outside += origin == NanOrigin::kOutside;
    } else if constexpr (std::is_integral_v<T> && sizeof(T) >= sizeof(std::uint32_t)) {
        const NanOrigin origin = origin_of_integer(static_cast<std::uint64_t>(value));
        result.from_shared_memory += origin == NanOrigin::kSharedMemory;
        result.from_device_memory += origin == NanOrigin::kDeviceMemory;
        result.from_outside += origin == NanOrigin::kOutside;
    }
}

// Combines the results of part(begin, end) for all parts of [0, count), on all of the host's
// cores.
VerifyResult compare_in_parts(std::size_t count,
                              const std::function<VerifyResult(std::size_t begin, std::size_t end)>& part);

}  // namespace detail

template <std::ranges::contiguous_range Got>
VerifyResult verify(const Got& got, std::span<const double> expected, const Bound& bound,
                    std::span<const double> magnitude, std::size_t cols) {
    using T = std::ranges::range_value_t<Got>;
    const std::span<const T> values(got);
    detail::require_lengths(values.size(), expected.size(), magnitude.size());
    const double common_magnitude = magnitude.empty() ? detail::largest_finite_magnitude(expected) : 0;
    const double roundings = bound.roundings();

    VerifyResult result = detail::compare_in_parts(values.size(), [&](std::size_t begin, std::size_t end) {
        VerifyResult part;
        for (std::size_t i = begin; i < end; ++i) {
            double value = 0;
            if constexpr (std::is_floating_point_v<T>) {
                value = static_cast<double>(values[i]);
            } else {
                value = static_cast<double>(static_cast<float>(values[i]));
            }
            const std::size_t differing = part.differing;
            detail::compare(part, i, value, expected[i], roundings * FloatTraits<T>::kEpsilon,
                            magnitude.empty() ? common_magnitude : magnitude[i],
                            roundings * FloatTraits<T>::kSmallest);
            if (part.differing > differing) detail::note_origin(part, values[i]);
        }
        return part;
    });
    result.cols = cols;
    return result;
}

// Most tests compare floats, so this instantiation is compiled once, in verify.cpp.
extern template VerifyResult verify(const std::vector<float>&, std::span<const double>, const Bound&,
                                    std::span<const double>, std::size_t);

template <std::ranges::contiguous_range Got>
VerifyResult verify_exact(const Got& got, std::span<const std::ranges::range_value_t<Got>> expected,
                          std::size_t cols) {
    using T = std::ranges::range_value_t<Got>;
    static_assert(std::is_integral_v<T>, "verify_exact compares integers; for floating point use verify");
    const std::span<const T> values(got);
    detail::require_lengths(values.size(), expected.size(), 0);

    VerifyResult result = detail::compare_in_parts(values.size(), [&](std::size_t begin, std::size_t end) {
        VerifyResult part;
        part.compared = end - begin;
        for (std::size_t i = begin; i < end; ++i) {
            if (values[i] == expected[i]) continue;
            const double error = std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i]));
            part.max_error = std::max(part.max_error, error);
            detail::note_mismatch(part, [&] {
                return Mismatch{i, std::to_string(expected[i]), std::to_string(values[i]), ""};
            });
            detail::note_origin(part, values[i]);
        }
        return part;
    });
    result.cols = cols;
    return result;
}

}  // namespace course

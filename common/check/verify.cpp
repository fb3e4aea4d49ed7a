#include "common/check/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>

#include "common/device/grid.hpp"

namespace course {
namespace {

constexpr std::size_t kPart = std::size_t{1}
                              << 18;  // elements: about 0.3 ms, which hides the cost of a thread

bool same_non_finite(double got, double expected) {
    return (std::isnan(expected) && std::isnan(got)) || (std::isinf(expected) && got == expected);
}

void note_ratios(VerifyResult& result, std::size_t count, double smallest, double largest) {
    if (count == 0) return;
    const bool is_first = result.ratios == 0;
    result.smallest_ratio = is_first ? smallest : std::min(result.smallest_ratio, smallest);
    result.largest_ratio = is_first ? largest : std::max(result.largest_ratio, largest);
    result.ratios += count;
}

// The factor by which all differing elements are wrong; empty if there is none, or if few differ.
std::optional<double> common_factor(const VerifyResult& result) {
    constexpr std::size_t kFew = 4;
    constexpr double kRoundings = 1e-3;
    const double largest = std::max(std::abs(result.smallest_ratio), std::abs(result.largest_ratio));
    if (result.differing < kFew || result.ratios < result.differing || largest == 0 ||
        result.largest_ratio - result.smallest_ratio > kRoundings * largest)
        return std::nullopt;
    return (result.smallest_ratio + result.largest_ratio) / 2;
}

}  // namespace

double Bound::roundings() const {
    if (terms < 1 || !std::isfinite(factor) || factor < 0) {
        throw std::invalid_argument(
            fmt::format("Bound: expected terms >= 1 and a finite factor >= 0, got {} and {}", terms, factor));
    }
    const auto n = static_cast<double>(terms);
    return factor * (growth == Growth::kLinear ? n : std::sqrt(n));
}

std::string VerifyResult::message() const {
    std::string text =
        differing == 0   ? fmt::format("{} value{}", compared, compared == 1 ? " agrees" : "s agree")
        : differing == 1 ? fmt::format("1 of {} value{} differs", compared, compared == 1 ? "" : "s")
                         : fmt::format("{} of {} values differ", differing, compared);
    // If a NaN was compared with a number, the error is not finite and not reported.
    if (std::isfinite(max_error)) text += fmt::format(", largest error {:.3g}", max_error);
    if (untouched > 0)
        text += fmt::format("\n  {} never written",
                            untouched == 1 ? "1 value was" : fmt::format("{} values were", untouched));
    const auto add = [&](std::size_t count, const char* what) {
        if (count > 0) text += fmt::format("\n  {} of them {}", count, what);
    };
    add(from_output, "computed from the output before it was written: does the kernel read its output (+=)?");
    add(from_shared_memory,
        "computed from shared memory that no thread had written: is a barrier missing, or the wait for a "
        "copy, or is part of a tile never loaded? A thread that has returned loads nothing.");
    add(from_device_memory,
        "as fresh device memory is, or computed from it: cudaMalloc does not clear memory. Did a thread "
        "leave before it stored its value, or is a barrier missing between a store and a load?");
    add(from_outside,
        "read, or computed from, what lies before or behind an array: is an index out of range?");
    if (const std::optional<double> factor = common_factor(*this))
        text += fmt::format(
            "\n  each of them is {:.4g} times what is expected: is a factor wrong, or the sum by which they "
            "are "
            "divided?",
            *factor);
    for (const Mismatch& mismatch : first) {
        const std::string place =
            cols == 0 ? "" : fmt::format(" (row {}, col {})", mismatch.index / cols, mismatch.index % cols);
        const std::string allowed = mismatch.allowed.empty() ? "" : fmt::format(" +- {}", mismatch.allowed);
        text += fmt::format("\n  [{}]{}: expected {}{}, got {}", mismatch.index, place, mismatch.expected,
                            allowed, mismatch.got);
    }
    if (differing > first.size()) text += "\n  ...";
    if (damage.empty()) return text;
    return differing == 0 ? damage + "\n  " + text : text + "\n  " + damage;
}

namespace detail {

void require_lengths(std::size_t got, std::size_t expected, std::size_t magnitudes) {
    if (got != expected) {
        throw std::invalid_argument(fmt::format("verify: got {} values, expected {}", got, expected));
    }
    if (magnitudes != 0 && magnitudes != expected) {
        throw std::invalid_argument(
            fmt::format("verify: magnitude has {} values, expected none or {}", magnitudes, expected));
    }
}

double largest_finite_magnitude(std::span<const double> values) {
    double largest = 0;
    for (const double value : values) {
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    return largest;
}

void compare(VerifyResult& result, std::size_t index, double got, double expected, double roundings_epsilon,
             double magnitude, double smallest) {
    ++result.compared;
    if (std::isfinite(expected) && std::isfinite(got)) {
        if (!std::isfinite(magnitude) || magnitude < 0) {
            throw std::invalid_argument(
                fmt::format("verify: magnitude[{}] is {}, expected a finite value >= 0", index, magnitude));
        }
        const double error = std::abs(got - expected);
        const double allowed = roundings_epsilon * magnitude + smallest;
        result.max_error = std::max(result.max_error, error);
        if (error <= allowed) return;
        if (expected != 0) note_ratios(result, 1, got / expected, got / expected);
        note_mismatch(result, [&] {
            return Mismatch{index, fmt::format("{:.9g}", expected), fmt::format("{:.9g}", got),
                            allowed == 0 ? "" : fmt::format("{:.3g}", allowed)};
        });
        return;
    }
    if (same_non_finite(got, expected)) return;
    result.max_error = std::numeric_limits<double>::infinity();
    // The sign of a NaN has no meaning.
    const auto text = [](double value) { return std::isnan(value) ? "nan" : fmt::format("{:.9g}", value); };
    note_mismatch(result, [&] { return Mismatch{index, text(expected), text(got), ""}; });
}

VerifyResult compare_in_parts(std::size_t count,
                              const std::function<VerifyResult(std::size_t begin, std::size_t end)>& part) {
    std::vector<VerifyResult> results(ceil_div(count, kPart));
    std::vector<std::exception_ptr> errors(results.size());
#pragma omp parallel for schedule(static) if (results.size() > 1)
    for (std::size_t i = 0; i < results.size(); ++i) {
        try {
            results[i] = part(i * kPart, std::min(count, (i + 1) * kPart));
        } catch (...) {  // an exception must not leave the parallel loop
            errors[i] = std::current_exception();
        }
    }

    VerifyResult all;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (errors[i]) std::rethrow_exception(errors[i]);
        all.compared += results[i].compared;
        all.max_error = std::max(all.max_error, results[i].max_error);
        const std::size_t unnamed = results[i].differing - results[i].first.size();
        for (Mismatch& mismatch : results[i].first)
            note_mismatch(all, [&] { return std::move(mismatch); });
        all.differing += unnamed;
        note_ratios(all, results[i].ratios, results[i].smallest_ratio, results[i].largest_ratio);
        all.untouched += results[i].untouched;
        all.from_output += results[i].from_output;
        all.from_shared_memory += results[i].from_shared_memory;
        all.from_device_memory += results[i].from_device_memory;
        all.from_outside += results[i].from_outside;
    }
    return all;
}

}  // namespace detail

template VerifyResult verify(const std::vector<float>&, std::span<const double>, const Bound&,
                             std::span<const double>, std::size_t);

}  // namespace course

#include "common/bench/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace course {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
    const double position = fraction * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

// The standard error of the mean of `count` samples, relative to the mean. It cannot be estimated
// from one sample.
double relative_standard_error(std::size_t count, double mean, double squares) {
    if (count < 2) return HUGE_VAL;
    if (squares == 0) return 0;
    const auto n = static_cast<double>(count);
    return std::sqrt(squares / (n - 1) / n) / mean;
}

}  // namespace

Statistics summarize(std::span<const double> samples) {
    if (samples.empty()) throw std::invalid_argument("summarize: expected at least one sample, got none");
    std::vector<double> sorted(samples.begin(), samples.end());
    std::sort(sorted.begin(), sorted.end());

    double sum = 0;
    for (const double sample : sorted)
        sum += sample;
    const double mean = sum / static_cast<double>(sorted.size());
    double squares = 0;
    for (const double sample : sorted)
        squares += (sample - mean) * (sample - mean);

    return {.count = static_cast<int>(sorted.size()),
            .median = quantile(sorted, 0.5),
            .spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2,
            .min = sorted.front(),
            .mean = mean,
            .relative_error = relative_standard_error(sorted.size(), mean, squares)};
}

std::string_view name(StopReason reason) {
    switch (reason) {
        case StopReason::kPrecise:
            return "precise";
        case StopReason::kRepeatCap:
            return "repeat cap";
        case StopReason::kTimeCap:
            return "time cap";
    }
    throw std::invalid_argument("name: not a StopReason");
}

Sampler::Sampler(const RepeatLimits& limits) : limits_(limits) {
    if (limits.min_repeats < 1 || limits.max_repeats < limits.min_repeats || !(limits.max_seconds > 0) ||
        !(limits.target_error > 0)) {
        throw std::invalid_argument(fmt::format(
            "RepeatLimits: expected 1 <= min_repeats <= max_repeats, max_seconds > 0 and target_error > 0, "
            "got min_repeats {}, max_repeats {}, max_seconds {}, target_error {}",
            limits.min_repeats, limits.max_repeats, limits.max_seconds, limits.target_error));
    }
}

void Sampler::add(double milliseconds) {
    if (!std::isfinite(milliseconds) || milliseconds < 0) {
        throw std::invalid_argument(
            fmt::format("Sampler: expected a time of 0 ms or more, got {} ms", milliseconds));
    }
    samples_.push_back(milliseconds);
    const double distance = milliseconds - mean_;
    mean_ += distance / static_cast<double>(samples_.size());
    squares_ += distance * (milliseconds - mean_);
}

std::optional<StopReason> Sampler::stop_reason(double elapsed_seconds) const {
    const auto count = static_cast<int>(samples_.size());
    if (count < limits_.min_repeats) return std::nullopt;
    if (relative_standard_error(samples_.size(), mean_, squares_) < limits_.target_error)
        return StopReason::kPrecise;
    if (count >= limits_.max_repeats) return StopReason::kRepeatCap;
    if (elapsed_seconds >= limits_.max_seconds) return StopReason::kTimeCap;
    return std::nullopt;
}

}  // namespace course

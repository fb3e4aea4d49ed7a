// Statistics of repeated timings, and the rule that ends the repetition. This file does not depend
// on CUDA.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace course {

struct Statistics {
    int count = 0;
    double median = 0;
    double spread = 0;  // half the interquartile range: half of all samples lie within about median +- spread
    double min = 0;
    double mean = 0;
    double relative_error = 0;  // standard error of the mean / mean
};

// Quartiles are interpolated linearly between the sorted samples. Throws std::invalid_argument when
// there are none.
Statistics summarize(std::span<const double> samples);

// When to stop repeating: when the mean is known to within `target_error` or a cap is reached, but
// not before `min_repeats`.
struct RepeatLimits {
    int min_repeats = 10;
    int max_repeats = 500;
    double max_seconds = 1.0;  // total time, including the flushes between the repeats
    double target_error = 0.01;
};

enum class StopReason { kPrecise, kRepeatCap, kTimeCap };

// "precise", "repeat cap", "time cap"
std::string_view name(StopReason reason);

// Collects samples under RepeatLimits.
class Sampler {
  public:
    // Throws std::invalid_argument for meaningless limits (no repeats, max below min, no time, no
    // target).
    explicit Sampler(const RepeatLimits& limits);

    // Throws std::invalid_argument for a time that is negative or not finite.
    void add(double milliseconds);

    // The reason to stop now, or empty while another sample is needed.
    std::optional<StopReason> stop_reason(double elapsed_seconds) const;

    std::span<const double> samples() const { return samples_; }

  private:
    RepeatLimits limits_;
    std::vector<double> samples_;
    double mean_ = 0;
    double squares_ = 0;  // sum of squared distances from the mean, updated by Welford's method
};

}  // namespace course

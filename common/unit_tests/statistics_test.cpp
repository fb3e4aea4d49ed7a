#include "common/bench/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace {

using course::Sampler;
using course::StopReason;

TEST(Statistics, OfAKnownSequence) {
    const course::Statistics s = course::summarize(std::vector<double>{4, 1, 3, 2, 5});
    EXPECT_EQ(s.count, 5);
    EXPECT_DOUBLE_EQ(s.median, 3);
    EXPECT_DOUBLE_EQ(s.spread, 1);  // quartiles 2 and 4
    EXPECT_DOUBLE_EQ(s.min, 1);
    EXPECT_DOUBLE_EQ(s.mean, 3);
    EXPECT_DOUBLE_EQ(s.relative_error, std::sqrt(2.5 / 5) / 3);
}

TEST(Statistics, QuartilesAreInterpolated) {
    const course::Statistics s = course::summarize(std::vector<double>{1, 2, 3, 4});
    EXPECT_DOUBLE_EQ(s.median, 2.5);
    EXPECT_DOUBLE_EQ(s.spread, (3.25 - 1.75) / 2);
}

TEST(Statistics, OneOutlierMovesTheMeanButNotTheMedianOrTheSpread) {
    std::vector<double> samples(99, 1.0);
    samples.push_back(1000.0);
    const course::Statistics s = course::summarize(samples);
    EXPECT_DOUBLE_EQ(s.median, 1);
    EXPECT_DOUBLE_EQ(s.spread, 0);
    EXPECT_DOUBLE_EQ(s.mean, 10.99);
}

TEST(Statistics, OneSampleSaysNothingAboutItsError) {
    const course::Statistics s = course::summarize(std::vector<double>{7});
    EXPECT_DOUBLE_EQ(s.median, 7);
    EXPECT_EQ(s.relative_error, std::numeric_limits<double>::infinity());
    EXPECT_THROW(course::summarize({}), std::invalid_argument);
}

TEST(Sampler, StopsOnceTheMeanIsKnown) {
    // 0.9, 1.1, 0.9, ...: the standard error after n samples is about 0.1 / sqrt(n - 1), under 1 %
    // from n = 102 on.
    Sampler sampler({.min_repeats = 10, .max_repeats = 1000, .max_seconds = 1e9, .target_error = 0.01});
    int count = 0;
    while (!sampler.stop_reason(0))
        sampler.add(count++ % 2 == 0 ? 0.9 : 1.1);
    EXPECT_EQ(sampler.stop_reason(0), StopReason::kPrecise);
    EXPECT_NEAR(count, 102, 2);
    EXPECT_LT(course::summarize(sampler.samples()).relative_error, 0.01);
}

TEST(Sampler, NeverStopsBelowTheMinimum) {
    Sampler sampler({.min_repeats = 5, .max_repeats = 100, .max_seconds = 1, .target_error = 0.01});
    for (int i = 0; i < 4; ++i)
        sampler.add(1.0);
    EXPECT_EQ(sampler.stop_reason(1000), std::nullopt);
    sampler.add(1.0);
    EXPECT_EQ(sampler.stop_reason(1000), StopReason::kPrecise);
}

TEST(Sampler, CapsAreToldApart) {
    Sampler sampler({.min_repeats = 2, .max_repeats = 4, .max_seconds = 1, .target_error = 0.01});
    sampler.add(1);
    sampler.add(2);
    EXPECT_EQ(sampler.stop_reason(0.5), std::nullopt);
    EXPECT_EQ(sampler.stop_reason(1.0), StopReason::kTimeCap);
    sampler.add(1);
    sampler.add(2);
    EXPECT_EQ(sampler.stop_reason(0.5), StopReason::kRepeatCap);
}

TEST(Sampler, RefusesNonsense) {
    EXPECT_THROW(Sampler({.min_repeats = 0}), std::invalid_argument);
    EXPECT_THROW(Sampler({.min_repeats = 10, .max_repeats = 9}), std::invalid_argument);
    EXPECT_THROW(Sampler({.max_seconds = 0}), std::invalid_argument);
    EXPECT_THROW(Sampler({.target_error = std::nan("")}), std::invalid_argument);
    Sampler sampler({});
    EXPECT_THROW(sampler.add(-1), std::invalid_argument);
    EXPECT_THROW(sampler.add(std::nan("")), std::invalid_argument);
}

}  // namespace

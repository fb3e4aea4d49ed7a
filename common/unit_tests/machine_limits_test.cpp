#include "common/bench/machine_limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "common/bench/machine.hpp"
#include "common/test/device_test.hpp"

namespace {

using MachineLimitsTest = course::DeviceTest;

using course::check_against_limits;
using course::L2State;
using course::Work;

// 1000 GB/s, 10 TFLOP/s, and a cache of 50 MB.
const std::optional<course::MachineLimits> kKnownMachine =
    course::MachineLimits{.streams = {{"read", 0, 1e12}, {"copy", 0.5, 0.8e12}, {"write", 1, 1e12}},
                          .flops_per_second = 1e13,
                          .l2_bytes = 50'000'000};

TEST(LimitCheck, PercentOfMemoryLimit) {
    const course::LimitCheck check = check_against_limits({.bytes = 1e9}, 2.0, L2State::kWarm, kKnownMachine);
    ASSERT_TRUE(check.percent);
    EXPECT_DOUBLE_EQ(*check.percent, 50);
    EXPECT_EQ(check.violation, "");
    EXPECT_DOUBLE_EQ(check.bytes_per_second, kKnownMachine->memory_rate(0));
    EXPECT_DOUBLE_EQ(check.flops_per_second, kKnownMachine->flops_per_second);
}

TEST(LimitCheck, TheMixOfReadsAndWritesDecides) {
    EXPECT_DOUBLE_EQ(kKnownMachine->memory_rate(0), 1e12);
    EXPECT_DOUBLE_EQ(kKnownMachine->memory_rate(0.5), 0.8e12);
    EXPECT_DOUBLE_EQ(kKnownMachine->memory_rate(1), 1e12);
    EXPECT_DOUBLE_EQ(kKnownMachine->memory_rate(0.25), 1 / (0.5 / 1e12 + 0.5 / 0.8e12));
    EXPECT_THROW(static_cast<void>(kKnownMachine->memory_rate(1.5)), std::invalid_argument);
    const Work copy{.bytes = 1e9, .written = 0.5e9};
    EXPECT_DOUBLE_EQ(*check_against_limits(copy, 2.5, L2State::kWarm, kKnownMachine).percent, 50);
    EXPECT_THROW(check_against_limits({.bytes = 1, .written = 2}, 1, L2State::kWarm, kKnownMachine),
                 std::invalid_argument);
}

TEST(LimitCheck, AWarmProblemInTheCacheIsNotMeasuredByItsFewOperations) {
    const Work adds{.bytes = 4e7,
                    .flops = 1e7};  // memory is the nearer limit, but the bytes need not come from there
    EXPECT_FALSE(check_against_limits(adds, 0.03, L2State::kWarm, kKnownMachine).percent);
}

TEST(LimitCheck, TheNearerLimitCounts) {
    const Work work{.bytes = 1e9, .flops = 1.5e10};  // 1 ms of memory, 1.5 ms of arithmetic
    EXPECT_DOUBLE_EQ(*check_against_limits(work, 3.0, L2State::kWarm, kKnownMachine).percent, 50);
}

TEST(LimitCheck, FasterThanMemoryIsAMistake) {
    const course::LimitCheck check =
        check_against_limits({.bytes = 1e10}, 9.0, L2State::kWarm, kKnownMachine);
    EXPECT_FALSE(check.percent);
    EXPECT_NE(check.violation.find("1000 GB/s"), std::string::npos) << check.violation;
    EXPECT_NE(check_against_limits({.bytes = 1e9}, 0.0, L2State::kFlushed, kKnownMachine).violation, "");
}

TEST(LimitCheck, FasterThanArithmeticIsAMistakeInFp32Alone) {
    EXPECT_NE(check_against_limits({.flops = 1e10}, 0.9, L2State::kWarm, kKnownMachine).violation, "");
    EXPECT_EQ(check_against_limits({.flops = 1e10}, 0.98, L2State::kWarm, kKnownMachine).violation, "");
    EXPECT_EQ(check_against_limits({.flops = 1e10, .arithmetic = course::Arithmetic::kOther}, 0.1,
                                   L2State::kWarm, kKnownMachine)
                  .violation,
              "");
}

TEST(LimitCheck, WhatFitsIntoTheCacheMayBeFasterThanMemory) {
    const Work small{.bytes = 4e7};
    const course::LimitCheck warm = check_against_limits(small, 0.01, L2State::kWarm, kKnownMachine);
    EXPECT_EQ(warm.violation, "");
    EXPECT_FALSE(warm.percent);
    // Flushed, 40 MB may all be writes that stay in the cache; 400 MB cannot.
    EXPECT_EQ(check_against_limits(small, 0.01, L2State::kFlushed, kKnownMachine).violation, "");
    EXPECT_NE(check_against_limits({.bytes = 4e8}, 0.3, L2State::kFlushed, kKnownMachine).violation, "");
    // The same 400 MB warm: up to 100 MB need not cross the bus.
    EXPECT_EQ(check_against_limits({.bytes = 4e8}, 0.3, L2State::kWarm, kKnownMachine).violation, "");
    EXPECT_FALSE(check_against_limits({.bytes = 4e8}, 0.3, L2State::kWarm, kKnownMachine).percent);
    EXPECT_NE(check_against_limits({.bytes = 4e8}, 0.28, L2State::kWarm, kKnownMachine).violation, "");
}

TEST(LimitCheck, WithoutLimitsThereIsNothingToSay) {
    const course::LimitCheck check = check_against_limits({.bytes = 1e12}, 0.1, L2State::kWarm, std::nullopt);
    EXPECT_FALSE(check.percent);
    EXPECT_EQ(check.violation, "");
}

TEST_F(MachineLimitsTest, HasARateForEachMix) {
    const course::MachineLimits limits = course::measure_machine_limits(1 << 20, 4);
    ASSERT_EQ(limits.streams.size(), 4u);
    EXPECT_EQ(limits.streams.front().written_share, 0);
    EXPECT_EQ(limits.streams.back().written_share, 1);
    for (const course::StreamRate& rate : limits.streams)
        EXPECT_GT(rate.bytes_per_second, 0) << rate.pattern;
    EXPECT_GT(limits.flops_per_second, 0);
    EXPECT_THROW(course::measure_machine_limits(100, 4), std::invalid_argument);
}

TEST_F(MachineLimitsTest, AreMeasuredOnceAndOnlyOnAGpu) {
    EXPECT_EQ(course::machine_limits().has_value(), !course::is_cpu_stand_in());
    EXPECT_EQ(&course::machine_limits(), &course::machine_limits());
}

}  // namespace

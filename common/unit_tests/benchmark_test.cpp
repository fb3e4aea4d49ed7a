#include "common/bench/benchmark.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using BenchmarkTest = course::DeviceTest;

using course::launches_per_repeat;

constexpr course::RepeatLimits kFive = {.min_repeats = 5, .max_repeats = 5};

TEST(Benchmark, ShortLaunchesAreTimedTogether) {
    EXPECT_EQ(launches_per_repeat(5.0), 1);
    EXPECT_EQ(launches_per_repeat(0.5), 1);
    EXPECT_EQ(launches_per_repeat(0.3), 2) << "a launch beside it that takes 0.29 ms is timed alike";
    EXPECT_EQ(launches_per_repeat(0.020), 25);
    EXPECT_EQ(launches_per_repeat(0.010), 50);
    EXPECT_EQ(launches_per_repeat(0.0), 256);
    EXPECT_THROW(launches_per_repeat(-1), std::invalid_argument);
}

TEST_F(BenchmarkTest, WarmRunsLaunchWhatTheySay) {
    course::DeviceBuffer<float> buffer(1 << 12);
    int launches = 0;
    const course::Measurement m = course::measure_warm(
        "fill",
        [&](cudaStream_t stream) {
            ++launches;
            course::testing::fill(buffer.span(), 1, 0, 1 << 12, stream);
        },
        kFive);
    EXPECT_EQ(m.ms.count, 5);
    EXPECT_EQ(m.l2, course::L2State::kWarm);
    EXPECT_EQ(launches, 2 + 5 * (1 + m.launches_per_repeat))
        << "two to warm up; one untimed before each repeat";
    EXPECT_GT(m.ms.median, 0);
}

TEST_F(BenchmarkTest, TimeIsThatOfOneLaunchOfABatch) {
    constexpr std::chrono::microseconds kLaunch(200);
    int launches = 0;
    const course::Measurement m = course::measure_warm(
        "sleep",
        [&](cudaStream_t) {
            if (++launches > 2)
                std::this_thread::sleep_for(kLaunch);  // short launches while the batch size is chosen
        },
        {.min_repeats = 1, .max_repeats = 1});
    ASSERT_GT(m.launches_per_repeat, 10);
    EXPECT_GE(m.ms.median, 0.2);
    EXPECT_LT(m.ms.median, 0.2 * m.launches_per_repeat / 2) << "not the time of the whole batch";
}

TEST_F(BenchmarkTest, FlushedRunsFlushBeforeEachRepeatAndNeverBatch) {
    course::DeviceBuffer<float> buffer(1 << 12);
    course::L2Flush flush(1 << 16);
    int launches = 0;
    const course::Measurement m = course::measure_flushed(
        "fill",
        [&](cudaStream_t stream) {
            EXPECT_EQ(flush.value(), static_cast<unsigned>(launches))
                << "each launch but the warm-up follows a flush";
            ++launches;
            course::testing::fill(buffer.span(), 1, 0, 1 << 12, stream);
        },
        flush, kFive);
    EXPECT_EQ(launches, 1 + 5);
    EXPECT_EQ(flush.value(), 5u);
    EXPECT_EQ(m.launches_per_repeat, 1);
    EXPECT_EQ(m.l2, course::L2State::kFlushed);
}

TEST_F(BenchmarkTest, FlushWritesAllOfABufferLargerThanTheCache) {
    EXPECT_GT(course::L2Flush::default_bytes(), 0u);
    course::L2Flush flush((1 << 20) + 4);
    for (std::uint32_t pass = 1; pass <= 2; ++pass) {
        flush(nullptr);
        const std::vector<std::uint32_t> words = flush.buffer().to_host();
        EXPECT_EQ(words.size(), (1u << 18) + 1);
        EXPECT_EQ(std::count(words.begin(), words.end(), pass), static_cast<std::ptrdiff_t>(words.size()));
    }
}

TEST_F(BenchmarkTest, HostWorkIsTimedByTheHostClock) {
    int runs = 0;
    const course::Measurement m = course::measure_on_host([&] { ++runs; }, kFive);
    EXPECT_EQ(runs, 1 + 5);
    EXPECT_EQ(m.ms.count, 5);
    course::measure_on_host([&] { ++runs; }, kFive, false);
    EXPECT_EQ(runs, 1 + 5 + 5);
}

}  // namespace

// The bank conflicts that the lesson claims, counted, and races: on the CPU, where the threads of a
// block take turns, counting without an atomic can give the right result.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "histogram.hpp"
#include "histogram_data.hpp"

namespace {

using course::DeviceBuffer;
using day12::Distribution;

class Lesson : public testing::Test {
  protected:
    // Queues the histogram of 20000 bytes in 256 bins.
    std::function<void()> histogram(const std::string& version, Distribution distribution) {
        const auto values = day12::make_values<std::uint8_t>(20000, distribution, day12::kAllBytes, 12);
        values_ = DeviceBuffer<std::uint8_t>{std::span(values)};
        return [this, &launch = course::find_version(day12::versions(), version).launcher] {
            launch(values_.span(), day12::kAllBytes, counts_.span(), nullptr);
        };
    }

  private:
    DeviceBuffer<std::uint8_t> values_{1};
    DeviceBuffer<day12::Counter> counts_{256};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day12::Histogram& version : day12::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(histogram(version.name, Distribution::kUniform));
    }
}

// One part and two of them; a cache with room for all bins, and for few.
TEST_F(Lesson, NoVersionForManyBinsHasRaces) {
    constexpr day12::Range kRange = {.lower = -100000, .upper = 100000};
    DeviceBuffer<day12::Counter> counts(60000);
    for (const Distribution distribution :
         {Distribution::kSingleValued, Distribution::kZipf, Distribution::kUniform}) {
        const auto values = day12::make_values<std::int32_t>(9001, distribution, kRange, 12);
        const DeviceBuffer<std::int32_t> in{std::span(values)};
        for (const day12::Histogram& version : day12::many_bins_versions()) {
            for (const std::size_t bins : {std::size_t{300}, counts.size()}) {
                SCOPED_TRACE(std::string(version.name) + ", " + std::to_string(bins) + " bins");
                EXPECT_NO_RACES(
                    [&] { version.launcher(in.span(), kRange, counts.span().subspan(0, bins), nullptr); });
            }
        }
    }
}

TEST_F(Lesson, ACopyPerLaneHasNoBankConflictsWhateverTheData) {
    for (const Distribution distribution : day12::kDistributions) {
        SCOPED_TRACE(name(distribution));
        EXPECT_CONFLICT_FREE(histogram("lane_copies", distribution));
        EXPECT_CONFLICT_FREE(histogram("any_bins", distribution));
    }
    EXPECT_FALSE(
        course::conflict_free(course::inspect(histogram("per_warp_copies", Distribution::kUniform))));
}

}  // namespace

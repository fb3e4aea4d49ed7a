// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "beyond/operator_scan.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/test/inspection_test.hpp"
#include "scan.hpp"

namespace {

using course::DeviceBuffer;

constexpr std::size_t kElements = 8 * 5120;

class Lesson : public testing::Test {
  protected:
    std::function<void()> scan(const std::string& version) {
        return [this, &launch = course::find_version(day16::versions(), version).launcher] {
            launch(in_.span(), out_.span(), workspace_, nullptr);
        };
    }

  private:
    const std::vector<float> ones_ = std::vector<float>(kElements, 1.0f);
    const DeviceBuffer<float> in_{std::span(ones_)};
    DeviceBuffer<float> out_{kElements};
    day16::Workspace workspace_{kElements};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day16::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(scan(version.name));
    }
}

// Values and states are separate here: fences order them.
TEST_F(Lesson, OperatorScansHaveNoRaces) {
    const std::vector<float> ones(kElements, 1.0f);
    const std::vector<unsigned char> no_segments(kElements, 0);
    const DeviceBuffer<float> values{std::span(ones)};
    const DeviceBuffer<unsigned char> begins{std::span(no_segments)};
    DeviceBuffer<float> out(kElements);
    day16::Workspace workspace(kElements);
    EXPECT_NO_RACES([&] {
        day16::segmented_scan(begins.span(), values.span(), out.span(), workspace, nullptr);
        day16::solve_recurrence(values.span(), values.span(), out.span(), workspace, nullptr);
    });
}

// Ten rounds of every block: more than there are stages, so copies overwrite tiles.
TEST_F(Lesson, BulkScansHaveNoRacesInManyRounds) {
    const std::size_t n = course::multiprocessors() * std::size_t{10} * 8192 - 5;
    const DeviceBuffer<float> values{std::span<const float>(std::vector<float>(n, 1.0f))};
    const DeviceBuffer<std::int32_t> keys{std::span<const std::int32_t>(std::vector<std::int32_t>(n))};
    const DeviceBuffer<std::int64_t> integers{std::span<const std::int64_t>(std::vector<std::int64_t>(n))};
    DeviceBuffer<float> out(n);
    DeviceBuffer<std::int64_t> sums(n);
    day16::Workspace workspace(n);
    EXPECT_NO_RACES([&] { day16::inclusive_scan<float>(values.span(), out.span(), workspace, nullptr); });
    EXPECT_NO_RACES([&] { day16::scan_by_key(keys.span(), values.span(), out.span(), workspace, nullptr); });
    EXPECT_NO_RACES([&] { day16::inclusive_scan(integers.span(), sums.span(), workspace, nullptr); });
}

TEST_F(Lesson, CoarseningCostsBankConflictsAndTilesHaveNone) {
    EXPECT_FALSE(course::conflict_free(course::inspect(scan("coarsened"))));
    for (const char* version : {"kogge_stone", "scan_scan_add", "reduce_scan_scan", "decoupled_lookback"}) {
        SCOPED_TRACE(version);
        EXPECT_CONFLICT_FREE(scan(version));
    }
}

TEST_F(Lesson, GlobalMemoryIsReadAndWrittenCoalesced) {
    for (const char* version : {"kogge_stone", "brent_kung", "coarsened", "warp_shuffle", "scan_scan_add"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(scan(version));
    }
}

}  // namespace

// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/test/inspection_test.hpp"
#include "single_pass.hpp"

namespace {

using course::DeviceBuffer;

constexpr std::size_t kElements = 12 * 2048;

class Lesson : public testing::Test {
  protected:
    std::function<void()> scan(const std::string& version) {
        return [this, &launch = course::find_version(day24::versions(), version).launcher] {
            launch(in_.span(), out_.span(), workspace_, nullptr);
        };
    }
    void filter() { day24::filter_below(in_.span(), 1, out_.span(), count_.span(), workspace_, nullptr); }

  private:
    const std::vector<std::int32_t> zeros_ = std::vector<std::int32_t>(kElements);
    const DeviceBuffer<std::int32_t> in_{std::span(zeros_)};
    DeviceBuffer<std::int32_t> out_{kElements};
    DeviceBuffer<std::uint32_t> count_{1};
    day24::Workspace workspace_{kElements};
};

// Without its release fence, domino has right results on a CPU, and a race here. That the acquire
// fence is missing would not be noticed.
TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day24::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(scan(version.name));
    }
    EXPECT_NO_RACES([&] { filter(); });
}

TEST_F(Lesson, TilesHaveNoBankConflicts) {
    for (const auto& version : day24::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_CONFLICT_FREE(scan(version.name));
    }
}

// With more tiles than resident blocks, grid_barrier loads one tile after the other.
TEST_F(Lesson, GridBarrierHasNoRacesBetweenTiles) {
    const std::size_t n = course::multiprocessors() * std::size_t{20} * 2048;
    const DeviceBuffer<std::int32_t> in{std::span<const std::int32_t>(std::vector<std::int32_t>(n))};
    DeviceBuffer<std::int32_t> out(n);
    day24::Workspace workspace(n);
    EXPECT_NO_RACES([&] {
        course::find_version(day24::versions(), "grid_barrier")
            .launcher(in.span(), out.span(), workspace, nullptr);
    });
}

// All elements are kept: thread t stores elements 8 t to 8 t + 7, one after the other.
TEST_F(Lesson, FilterGathersWithEightWayBankConflicts) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    double most = 0;
    for (const course::KernelInspection& kernel : course::inspect([this] { filter(); }).kernels)
        for (const course::AccessLine& line : kernel.lines)
            if (line.space == course::Space::kShared)
                most =
                    std::max(most, static_cast<double>(line.transactions) / static_cast<double>(line.ideal));
    EXPECT_EQ(most, 8);
}

// Bytes of global memory that the lines of the kernel load and store, without the words of the
// board: 3 n and 2 n elements.
TEST_F(Lesson, OnePassMovesTwoThirdsOfTheBytes) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const auto sectors = [&](const std::string& version) {
        std::uint64_t sum = 0;
        for (const course::KernelInspection& kernel : course::inspect(scan(version)).kernels)
            for (const course::AccessLine& line : kernel.lines)
                if (line.space == course::Space::kGlobal && line.bytes == 4) sum += line.transactions;
        return static_cast<double>(sum) / (kElements * 4 / 32);
    };
    EXPECT_NEAR(sectors("grid_barrier"), 3, 0.05);
    EXPECT_NEAR(sectors("look_back_warp"), 2, 0.05);
}

}  // namespace

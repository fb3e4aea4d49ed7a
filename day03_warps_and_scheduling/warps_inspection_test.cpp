// What the lesson says of active lanes, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "warps.hpp"

namespace {

using course::DeviceBuffer;

constexpr std::size_t kPoints = 1024;

// Lane l of each warp takes 8 (l + 1) steps: the longest 256, the mean 132.
std::vector<int> terms_by_lane() {
    std::vector<int> terms;
    for (std::size_t i = 0; i < kPoints; ++i)
        terms.push_back(8 * (static_cast<int>(i % 32) + 1));
    return terms;
}

class Lesson : public testing::Test {
  protected:
    std::function<void()> launch(const std::string& version) {
        return [this, &launcher = course::find_version(day03::versions(), version).launcher] {
            launcher({x_.span(), terms_device_.span(), order_.span()}, coefficients_.span(), y_.span(),
                     nullptr);
        };
    }

    struct Line {
        double lanes = 0;  // active on average, of 32
        std::uint64_t requests = 0;
        std::uint64_t sectors = 0;  // or wavefronts
    };
    // The lines of `version` that access `space` in this way, in the order of the file.
    std::vector<Line> lines(const std::string& version, course::Space space, course::Operation operation) {
        std::vector<Line> found;
        for (const course::KernelInspection& kernel : course::inspect(launch(version)).kernels) {
            for (const course::AccessLine& line : kernel.lines) {
                if (line.space == space && line.operation == operation)
                    found.push_back(
                        {static_cast<double>(line.active_lanes) / static_cast<double>(line.requests),
                         line.requests, line.transactions});
            }
        }
        return found;
    }
    // The loops: horner() and horner_reversed() load a coefficient per step.
    std::vector<Line> loops(const std::string& version) {
        return lines(version, course::Space::kShared, course::Operation::kLoad);
    }

  private:
    const std::vector<int> terms_ = terms_by_lane();
    const DeviceBuffer<float> x_{std::span<const float>(std::vector<float>(kPoints, 0.5f))};
    const DeviceBuffer<int> terms_device_{std::span(terms_)};
    const DeviceBuffer<int> order_{std::span<const int>(day03::longest_first(terms_))};
    const DeviceBuffer<float> coefficients_{
        std::span<const float>(std::vector<float>(day03::kCoefficients, 1.0f))};
    DeviceBuffer<float> y_{kPoints};
};

constexpr std::uint64_t kWarps = kPoints / 32;

TEST_F(Lesson, AllLanesAreActiveWhenAllTakeTheSameWay) {
    const std::vector<Line> loop = loops("uniform");
    ASSERT_EQ(loop.size(), 1U);
    EXPECT_EQ(loop[0].lanes, 32);
    EXPECT_EQ(loop[0].requests, kWarps * 256);
}

TEST_F(Lesson, EachBranchHasHalfTheLanesWhenNeighboursDiffer) {
    const std::vector<Line> loop = loops("diverge_by_lane");
    ASSERT_EQ(loop.size(), 2U);
    for (const Line& branch : loop) {
        EXPECT_EQ(branch.lanes, 16);
        EXPECT_EQ(branch.requests, kWarps * 256) << "every warp executes both branches";
    }
}

TEST_F(Lesson, LanesHaveReconvergedAtTheStore) {
    const std::vector<Line> stores =
        lines("diverge_by_lane", course::Space::kGlobal, course::Operation::kStore);
    ASSERT_EQ(stores.size(), 1U);
    EXPECT_EQ(stores[0].lanes, 32);
    EXPECT_EQ(stores[0].requests, kWarps);
}

TEST_F(Lesson, AllLanesAreActiveWhenWholeWarpsDiffer) {
    const std::vector<Line> loop = loops("diverge_by_warp");
    ASSERT_EQ(loop.size(), 2U);
    for (const Line& branch : loop) {
        EXPECT_EQ(branch.lanes, 32);
        EXPECT_EQ(branch.requests, kWarps / 2 * 256) << "every warp executes one of the branches";
    }
}

// The price of dealing out the points by warp.
TEST_F(Lesson, AStrideOfTwoDoublesTheSectors) {
    const auto sectors = [&](const std::string& version) {
        return lines(version, course::Space::kGlobal, course::Operation::kStore).at(0).sectors;
    };
    EXPECT_EQ(sectors("diverge_by_lane"), kWarps * 4);
    EXPECT_EQ(sectors("diverge_by_warp"), kWarps * 8);
}

TEST_F(Lesson, AWarpLoopsAsLongAsItsLongestLane) {
    const std::vector<Line> loop = loops("unequal_loops");
    ASSERT_EQ(loop.size(), 1U);
    EXPECT_EQ(loop[0].requests, kWarps * 256) << "the maximum";
    EXPECT_DOUBLE_EQ(loop[0].lanes, 32 * 132.0 / 256) << "the mean, of the maximum";
}

// There are 32 points of each length: a warp for each.
TEST_F(Lesson, SortedLoopsKeepAllLanesActive) {
    const std::vector<Line> loop = loops("sorted_loops");
    ASSERT_EQ(loop.size(), 1U);
    EXPECT_EQ(loop[0].lanes, 32);
    EXPECT_EQ(loop[0].requests, kWarps * 132);
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day03::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(launch(version.name));
    }
}

}  // namespace

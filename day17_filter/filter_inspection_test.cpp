// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/test/inspection_test.hpp"
#include "filter.hpp"

namespace {

using course::DeviceBuffer;
using day17::Count;

constexpr std::size_t kElements = 6 * 4096;
constexpr std::int32_t kThreshold = 0;

class Lesson : public testing::Test {
  protected:
    // All elements are kept; or every other run of three, or the first of each run.
    std::function<void()> filter(const std::string& version, bool all = true) {
        return [this, &in = all ? all_ : runs_,
                launch = course::find_version(day17::versions(), version).launcher.launch] {
            launch(in.span(), kThreshold, out_.span(), count_.span(), workspace_, nullptr);
        };
    }

    day17::Workspace workspace_{kElements};

  private:
    static DeviceBuffer<std::int32_t> made(std::int32_t length_of_run) {
        // -2, -1, -2, ... or -1, -1, -1, 0, 0, 0, -1, ...
        std::vector<std::int32_t> values(kElements);
        for (std::size_t i = 0; i < kElements; ++i)
            values[i] = static_cast<std::int32_t>(i) / length_of_run % 2 - (length_of_run == 1 ? 2 : 1);
        return DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(values));
    }

    const DeviceBuffer<std::int32_t> all_ = made(1);
    const DeviceBuffer<std::int32_t> runs_ = made(3);
    DeviceBuffer<std::int32_t> out_{kElements};
    DeviceBuffer<Count> count_{1};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day17::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(filter(version.name));
        EXPECT_NO_RACES(filter(version.name, false));
    }
}

// Ten rounds of every block: more than there are stages, so copies overwrite tiles.
TEST_F(Lesson, BulkFiltersHaveNoRacesInManyRounds) {
    const std::size_t n = course::multiprocessors() * std::size_t{10} * 8192 - 5;
    std::vector<std::int32_t> alternating(n);
    for (std::size_t i = 0; i < n; ++i)
        alternating[i] = static_cast<std::int32_t>(i % 2) - 1;
    const DeviceBuffer<std::int32_t> in{std::span<const std::int32_t>(alternating)};
    DeviceBuffer<std::int32_t> out(n);
    DeviceBuffer<Count> count(1);
    day17::Workspace workspace(n);
    for (const char* version : {"bulk_filter", "bulk_unique"}) {
        SCOPED_TRACE(version);
        const auto launch = course::find_version(day17::versions(), version).launcher.launch;
        EXPECT_NO_RACES([&] { launch(in.span(), kThreshold, out.span(), count.span(), workspace, nullptr); });
    }
}

// The last launch before the numbers of launches begin again: its last block clears all words.
TEST_F(Lesson, TheLaunchThatClearsWordsHasNoRacesEither) {
    for (const char* version :
         {"single_pass", "single_pass_unique", "partition", "bulk_filter", "bulk_unique"}) {
        SCOPED_TRACE(version);
        const std::uint64_t ticket = std::uint64_t{(1U << 23) - 1} << 32;
        CUDA_CHECK(cudaMemcpy(workspace_.progress(), &ticket, sizeof(ticket), cudaMemcpyHostToDevice));
        EXPECT_NO_RACES(filter(version));
        std::uint64_t next = 0;
        CUDA_CHECK(cudaMemcpy(&next, workspace_.progress(), sizeof(next), cudaMemcpyDeviceToHost));
        EXPECT_EQ(next, std::uint64_t{1} << 32);
    }
}

TEST_F(Lesson, ElementsAreStagedWithoutBankConflicts) {
    for (const char* version :
         {"coarsened", "remove_duplicates", "single_pass", "single_pass_unique", "partition"}) {
        SCOPED_TRACE(version);
        EXPECT_CONFLICT_FREE(filter(version));
        EXPECT_CONFLICT_FREE(filter(version, false));
    }
}

TEST_F(Lesson, WhereAllElementsAreKeptStoresAreCoalesced) {
    for (const char* version :
         {"warp_aggregated", "privatised", "stable", "coarsened", "bulk_filter", "bulk_unique"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(filter(version));
    }
}

}  // namespace

// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "reduction.hpp"

namespace {

using course::DeviceBuffer;
using Sum = day15::Sum<float>;

class Lesson : public testing::Test {
  protected:
    // Queues the sum of 32768 ones.
    std::function<void()> sum(const std::string& version) {
        return [this, &launch = course::find_version(day15::versions<Sum>(), version).launcher] {
            launch(in_.span(), out_.span(), workspace_, 0, nullptr);
        };
    }

  private:
    const std::vector<float> ones_ = std::vector<float>(32768, 1.0f);
    const DeviceBuffer<float> in_{std::span(ones_)};
    DeviceBuffer<float> out_{1};
    day15::Workspace workspace_;
};

TEST_F(Lesson, TreesOverHalvesHaveNoBankConflicts) {
    for (const char* tree : {"shared_memory", "coarsened"}) {
        SCOPED_TRACE(tree);
        EXPECT_CONFLICT_FREE(sum(tree));
    }
}

TEST_F(Lesson, LoadsAreCoalescedButInTheFirstVersion) {
    for (const char* coalesced : {"shared_memory", "coarsened", "shuffle", "vectorised", "single_pass"}) {
        SCOPED_TRACE(coalesced);
        EXPECT_COALESCED(sum(coalesced));
    }
    EXPECT_FALSE(course::coalesced(course::inspect(sum("interleaved"))));
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day15::versions<Sum>()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(sum(version.name));
    }
}

}  // namespace

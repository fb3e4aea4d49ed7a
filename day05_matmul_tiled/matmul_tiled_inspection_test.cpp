// The lesson's claims about sectors, bank conflicts and races, counted.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "beyond/tile_limit.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "matmul_tiled.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Enqueues a product of 128 x 128 matrices: whole tiles, several each way.
    std::function<void()> product(const std::string& version) {
        return [this, &launch = course::find_version(day05::versions(), version).launcher] {
            launch(DeviceMatrix<const float>(a_.span(), kN, kN), DeviceMatrix<const float>(b_.span(), kN, kN),
                   DeviceMatrix<float>(c_.span(), kN, kN), nullptr);
        };
    }

  private:
    static constexpr std::size_t kN = 128;
    const std::vector<float> ones_ = std::vector<float>(kN * kN, 1.0f);
    const DeviceBuffer<float> a_{std::span(ones_)};
    const DeviceBuffer<float> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

TEST_F(Lesson, ThreadsInARowAreCoalesced) {
    EXPECT_COALESCED(product("coalesced_32x32"));
    EXPECT_FALSE(course::coalesced(course::inspect(product("naive_32x32"))));
}

TEST_F(Lesson, TilesHaveNoBankConflicts) {
    for (const char* tiled : {"tiled_static", "tiled_dynamic", "tiled_prefetch", "coarsened"}) {
        SCOPED_TRACE(tiled);
        EXPECT_CONFLICT_FREE(product(tiled));
        EXPECT_COALESCED(product(tiled));
    }
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day05::Matmul& version : day05::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(product(version.name));
    }
}

// No result of it is checked, so only the inspection notices a wrong index.
TEST(TileLimit, ReadsOnlyItsTilesAndWithoutConflicts) {
    const auto limit = [] { day05::launch_tile_limit({64, 96, 128}, nullptr); };
    EXPECT_NO_RACES(limit);
    EXPECT_CONFLICT_FREE(limit);
}

}  // namespace

// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/test/inspection_test.hpp"
#include "hopper_matmul.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Queues a product of whole tiles, more than there are clusters of two blocks (on up to six
    // threads): persistent blocks go on to a second tile. K has more steps than any ring has
    // stages, also when it is split.
    std::function<void()> product(const day41::Version& version) {
        return [this, &kernel = version.launcher.half] {
            kernel.launch({.a = DeviceMatrix<const __half>(a_.span(), rows_, kDepth),
                           .b = DeviceMatrix<const __half>(b_.span(), kDepth, kN),
                           .c = DeviceMatrix<float>(c_.span(), rows_, kN)},
                          nullptr);
        };
    }
    std::function<void()> product(const std::string& version) {
        return product(course::find_version(day41::versions(), version));
    }

  private:
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 26 * 64;
    const std::size_t rows_ = 256 * (1 + std::clamp(course::multiprocessors() / 2, 1U, 3U));
    const std::vector<__half> ones_ = std::vector<__half>(rows_ * kDepth, __half(1.0f));
    const DeviceBuffer<__half> a_{std::span(ones_)};
    const DeviceBuffer<__half> b_{std::span(ones_).first(kDepth * kN)};
    DeviceBuffer<float> c_{rows_ * kN};
};

// C passes through slices in shared memory.
TEST_F(Lesson, SlicesOfCAreFilledWithoutBankConflicts) {
    EXPECT_CONFLICT_FREE(product("async_store"));
}

// Four lanes that hold neighbours fill a sector of C.
TEST_F(Lesson, ResultsAreStoredInWholeSectors) {
    for (const char* version :
         {"tma_wgmma", "ring", "specialised", "wide_tile", "multicast", "persistent", "split_k"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(product(version));
    }
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto versions : {day41::versions(), day41::tiles_to_choose_from()}) {
        for (const day41::Version& version : versions) {
            SCOPED_TRACE(version.name);
            EXPECT_NO_RACES(product(version));
        }
    }
}

}  // namespace

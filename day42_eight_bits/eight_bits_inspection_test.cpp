// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "eight_bits.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Queues a product of FP8 of whole tiles, enough for a cluster of two blocks; K has more steps
    // than any ring has stages.
    std::function<void()> product(const std::string& version) {
        return [this, &kernel = course::find_version(day42::versions(), version).launcher.e4m3] {
            kernel.launch({.a = DeviceMatrix<const T>(a_.span(), kN, kDepth),
                           .b = DeviceMatrix<const T>(b_.span(), kN, kDepth),
                           .c = DeviceMatrix<float>(c_.span(), kN, kN)},
                          nullptr);
        };
    }

  private:
    using T = __nv_fp8_e4m3;
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 7 * 128;
    const std::vector<T> ones_ = std::vector<T>(kN * kDepth, T(1.0f));
    const DeviceBuffer<T> a_{std::span(ones_)};
    const DeviceBuffer<T> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

TEST_F(Lesson, SharedMemoryIsReadAndWrittenWithoutBankConflicts) {
    for (const char* version : {"bytes_mma_sync", "bytes_wgmma", "bytes_promoted"}) {
        SCOPED_TRACE(version);
        EXPECT_CONFLICT_FREE(product(version));
    }
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day42::Version& version : day42::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(product(version.name));
    }
}

TEST_F(Lesson, ResultsAreStoredInWholeSectors) {
    EXPECT_COALESCED(product("bytes_mma_sync"));
}

}  // namespace

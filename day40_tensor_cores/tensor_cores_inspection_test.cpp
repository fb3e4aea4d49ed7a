// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "tensor_cores.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Queues a product of whole tiles; K has more steps than any version has stages.
    std::function<void()> product(const day40::Version& version) {
        return [this, &kernel = version.launcher.half] {
            kernel.launch({.a = DeviceMatrix<const __half>(a_.span(), kN, kDepth),
                           .b = DeviceMatrix<const __half>(b_.span(), kDepth, kN),
                           .c = DeviceMatrix<float>(c_.span(), kN, kN)},
                          nullptr);
        };
    }
    std::function<void()> product(const std::string& version) {
        return product(course::find_version(day40::versions(), version));
    }

  private:
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 26 * 64;
    const std::vector<__half> ones_ = std::vector<__half>(kN * kDepth, __half(1.0f));
    const DeviceBuffer<__half> a_{std::span(ones_)};
    const DeviceBuffer<__half> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

// Eight rows that ldmatrix reads at once, each from 16 bytes of its own: a wavefront for each
// matrix, or one for each row.
TEST_F(Lesson, WithTheSwizzleNoBankConflictsAreLeft) {
    for (const char* version : {"swizzled", "multi_stage", "fragments_ahead"}) {
        SCOPED_TRACE(version);
        EXPECT_CONFLICT_FREE(product(version));
    }
    for (const char* version : {"mma_sync", "warp_tiles"}) {
        SCOPED_TRACE(version);
        EXPECT_FALSE(course::conflict_free(course::inspect(product(version))));
    }
}

// Four lanes that hold neighbours fill a sector of C.
TEST_F(Lesson, ResultsAreStoredInWholeSectors) {
    for (const char* version : {"swizzled", "multi_stage", "fragments_ahead"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(product(version));
    }
}

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day40::Version& version : day40::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(product(version));
    }
}

}  // namespace

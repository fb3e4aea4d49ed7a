// No version has a race.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "async_pipeline.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceMatrix;

class Lesson : public testing::Test {
  protected:
    // Enqueues a product of several tiles in each direction, more along K than there are stages.
    std::function<void()> product(const std::string& version) {
        return [this, &launcher = course::find_version(day38::versions(), version).launcher] {
            launcher.launch(DeviceMatrix<const float>(a_.span(), kN, kDepth),
                            DeviceMatrix<const float>(b_.span(), kDepth, kN),
                            DeviceMatrix<float>(c_.span(), kN, kN), nullptr);
        };
    }

  private:
    static constexpr std::size_t kN = 256;
    static constexpr std::size_t kDepth = 224;
    const std::vector<float> ones_ = std::vector<float>(kN * kDepth, 1.0f);
    const DeviceBuffer<float> a_{std::span(ones_)};
    const DeviceBuffer<float> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day38::Pipeline& version : day38::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(product(version.name));
    }
}

}  // namespace

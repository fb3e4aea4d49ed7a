// What the lesson says of its versions' accesses, counted; and that no version has a race.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "dynamic_parallelism.hpp"
#include "shapes_data.hpp"

namespace {

using course::DeviceBuffer;
using day39::kMostPoints;

class Lesson : public testing::Test {
  protected:
    std::function<void()> curves(const std::string& version, std::size_t n) {
        curves_ = DeviceBuffer<day39::Curve>{std::span<const day39::Curve>(day39::random_curves(n, 39))};
        counts_ = DeviceBuffer<unsigned>(n);
        points_ = DeviceBuffer<float2>(n * kMostPoints);
        return [this, &launch = course::find_version(day39::curve_versions(), version).launcher] {
            launch(curves_.span(), 1e-4f, counts_.span(), points_.span(), nullptr);
        };
    }
    std::function<void()> tree(const std::string& version, std::size_t n) {
        const day39::Limits limits{.capacity = 8, .max_depth = 6};
        points_ = DeviceBuffer<float2>{
            std::span<const float2>(day39::random_points(n, day39::Pattern::clustered, 39))};
        out_ = DeviceBuffer<float2>(n);
        other_ = DeviceBuffer<float2>(n);
        nodes_ = DeviceBuffer<day39::Node>(day39::most_nodes(n, limits));
        return [this, limits, &launch = course::find_version(day39::tree_versions(), version).launcher] {
            launch(points_.span(), limits, {out_.span(), other_.span(), nodes_.span(), header_.span()},
                   nullptr);
        };
    }

  private:
    DeviceBuffer<day39::Curve> curves_{1};
    DeviceBuffer<unsigned> counts_{1};
    DeviceBuffer<float2> points_{1}, out_{1}, other_{1};
    DeviceBuffer<day39::Node> nodes_{1};
    DeviceBuffer<day39::Header> header_{1};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day39::curve_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(curves(version.name, 70));
    }
    for (const auto& version : day39::tree_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(tree(version.name, 300));
    }
}

}  // namespace

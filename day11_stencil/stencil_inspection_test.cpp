// The bank conflicts that the lesson speaks of, and that no version has a race.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "stencil.hpp"

namespace {

using course::DeviceBuffer;
using day11::Extents;
using day11::Shape;

class Lesson : public testing::Test {
  protected:
    // Queues `steps` sweeps of 128 x 18 x 12 cells, or of a plane of 128 x 70.
    std::function<void()> sweeps(Shape shape, const day11::Version& version, unsigned steps) {
        return [this, shape, &version, steps] {
            const Extents e = shape == Shape::kCross5 ? Extents{128, 70, 1} : Extents{128, 18, 12};
            const std::size_t n = cells(e);
            version.launcher(day11::heat(shape), {in_.span().subspan(0, n), e},
                             {out_.span().subspan(0, n), e}, {spare_.span().subspan(0, n), e}, steps,
                             nullptr);
        };
    }

  private:
    const std::vector<float> ones_ = std::vector<float>(128 * 18 * 12, 1.0f);
    const DeviceBuffer<float> in_{std::span(ones_)};
    DeviceBuffer<float> out_{ones_.size()};
    DeviceBuffer<float> spare_{ones_.size()};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const Shape shape : day11::kShapes) {
        for (const day11::Version& version : day11::versions(shape)) {
            SCOPED_TRACE(std::string(day11::name(shape)) + " " + version.name);
            EXPECT_NO_RACES(sweeps(shape, version, 5));
        }
    }
}

TEST_F(Lesson, TilesHaveNoBankConflicts) {
    for (const char* name : {"shared_tile", "coarsened_z", "register_tiled"}) {
        SCOPED_TRACE(name);
        EXPECT_CONFLICT_FREE(
            sweeps(Shape::kStar7, course::find_version(day11::versions(Shape::kStar7), name), 1));
    }
}

}  // namespace

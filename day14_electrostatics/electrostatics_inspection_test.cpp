// The sectors that the lesson claims, counted, and races: on the CPU, where the threads of a block
// take turns, an addition without an atomic can give the right result.
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "beyond/energy.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "electrostatics.hpp"

namespace {

using course::DeviceBuffer;
using day14::Atom;

class Lesson : public testing::Test {
  protected:
    std::function<void()> map(const day14::Version& version) {
        const float cutoff = version.cannot_run({.grid = kGrid, .atoms = 40}).empty() ? 0.0f : 2.0f;
        return [this, &launch = version.launcher, cutoff] {
            launch(atoms_.span(), kGrid, cutoff, potential_.span(), nullptr);
        };
    }
    std::function<void()> map(const std::string& version) {
        return map(course::find_version(day14::versions(), version));
    }

    static constexpr day14::Grid kGrid{128, 8, 2, 0.5f};

  private:
    DeviceBuffer<Atom> atoms_{std::span<const Atom>(day14::random_atoms(40, kGrid, 14))};
    DeviceBuffer<float> potential_{points(kGrid)};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const day14::Version& version : day14::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(map(version));
    }
}

// Three tiles, of which the last is not full.
TEST(Energy, NoVersionHasRaces) {
    const DeviceBuffer<Atom> atoms{std::span<const Atom>(day14::random_atoms(300, {9, 9, 9, 2}, 14))};
    DeviceBuffer<double> energy(1);
    for (const day14::EnergyVersion& version : day14::energy_versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES([&] { version.launcher(atoms.span(), energy.span(), nullptr); });
    }
}

TEST_F(Lesson, AdjacentLanesShouldHaveAdjacentPoints) {
    for (const char* const version : {"gather", "coalesced", "all_slices"}) {
        SCOPED_TRACE(version);
        EXPECT_COALESCED(map(version));
    }
    EXPECT_FALSE(course::coalesced(course::inspect(map("coarsened"))));
}

}  // namespace

// Every version against the reference in double, within the derived bound.
#include "electrostatics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using day14::Atom;
using day14::Grid;

constexpr std::uint64_t kSeed = 14;

// `roundings` are in units of 2^-24: half an epsilon.
course::VerifyResult verify(const std::vector<float>& got, const day14::Expected& expected) {
    return course::verify(got, expected.potential, {.factor = 0.5}, expected.roundings);
}

class VersionTest : public course::DeviceTestWithParam<const day14::Version*> {
  protected:
    static bool has_cutoff() { return !GetParam()->cannot_run({.grid = {1, 1, 1, 1}, .atoms = 1}).empty(); }

    // Versions without a cutoff ignore `cutoff`.
    static void expect_right(const std::vector<Atom>& atoms, const Grid& grid, float cutoff) {
        if (!has_cutoff()) cutoff = 0;
        SCOPED_TRACE(std::to_string(atoms.size()) + " atoms, " + to_text(grid) + " points " +
                     std::to_string(grid.spacing) + " apart, cutoff " + std::to_string(cutoff));
        GuardedBuffer<Atom> device(atoms.size());
        device.copy_from(atoms);
        GuardedBuffer<float> potential(points(grid));
        GetParam()->launcher(device.span(), grid, cutoff, potential.span(), nullptr);
        course::VerifyResult result =
            verify(potential.to_host(), day14::potential_on_cpu(atoms, grid, cutoff));
        result.damage = potential.damage() + device.damage();
        EXPECT_TRUE(result.ok()) << result.message();
    }
    static void expect_right_for_random_atoms(std::size_t n, const Grid& grid, float cutoff) {
        expect_right(day14::random_atoms(n, grid, kSeed + n), grid, cutoff);
    }
};

INSTANTIATE_TEST_SUITE_P(DayFourteen, VersionTest, course::each_of(day14::versions()), course::VersionName());

TEST_P(VersionTest, AnyNumberOfAtoms) {
    for (const std::size_t n : {0, 1, 2, 31, 32, 33, 127, 128, 129, 257})
        expect_right_for_random_atoms(n, {9, 5, 3, 0.5f}, 2);
}

// Constant memory is filled again.
TEST_P(VersionTest, MoreAtomsThanAChunk) {
    for (const std::size_t n : {3999, 4000, 4001, 8100})
        expect_right_for_random_atoms(n, {5, 3, 2, 2}, 3);
}

TEST_P(VersionTest, AnyExtents) {
    for (const int nx : {1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 257})
        expect_right_for_random_atoms(20, {nx, 2, 2, 0.5f}, 4);
    for (const int ny : {1, 3, 4, 5, 67})
        expect_right_for_random_atoms(20, {3, ny, 2, 0.5f}, 4);
    for (const int nz : {1, 3, 4, 5, 67})
        expect_right_for_random_atoms(20, {3, 2, nz, 0.5f}, 4);
    for (const Grid& grid : {Grid{0, 2, 2, 1}, Grid{2, 0, 2, 1}, Grid{2, 2, 0, 1}})
        expect_right_for_random_atoms(3, grid, 1);
}

TEST_P(VersionTest, AtomsOnPoints) {
    const Grid grid{6, 5, 4, 0.75f};
    std::vector<Atom> atoms;
    for (int i = 0; i < 4; ++i)
        atoms.push_back({grid.at(i), grid.at(i), grid.at(i), i % 2 == 0 ? 1.0f : -0.5f});
    atoms.push_back(atoms[0]);  // and two on the same
    expect_right(atoms, grid, 2);
    expect_right({{0, 0, 0, 1}}, {1, 1, 1, 1}, 1);
}

TEST_P(VersionTest, HugeChargesBesideTinyOnes) {
    const Grid grid{10, 6, 4, 0.5f};
    std::vector<Atom> atoms = day14::random_atoms(60, grid, kSeed);
    for (std::size_t i = 0; i < atoms.size(); ++i)
        atoms[i].charge *= i % 3 == 0 ? 1e20f : 1e-20f;
    expect_right(atoms, grid, 2);
}

TEST_P(VersionTest, ChargesThatCancel) {
    const Grid grid{10, 6, 4, 0.5f};
    std::vector<Atom> atoms = day14::random_atoms(60, grid, kSeed);
    for (std::size_t i = 0; i < 60; ++i) {
        atoms.push_back(atoms[i]);
        atoms.back().charge = -atoms[i].charge;
    }
    expect_right(atoms, grid, 2);
}

// More of them than a bin holds; in a few bins, in one, and all in the same place.
TEST_P(VersionTest, CrowdedAtoms) {
    const Grid grid{9, 8, 7, 0.5f};
    for (const float spread : {1.0f, 0.1f, 0.0f}) {
        std::vector<Atom> atoms = day14::random_atoms(150, {1, 1, 1, 1}, kSeed);
        for (Atom& atom : atoms)
            atom = {1.3f + spread * atom.x, 2.1f + spread * atom.y, 0.7f + spread * atom.z, atom.charge};
        for (const std::size_t n : {15, 16, 17, 18, 150})
            expect_right({atoms.begin(), atoms.begin() + static_cast<std::ptrdiff_t>(n)}, grid, 2.5f);
    }
}

// Two groups in different rows of cells, near all points: a warp of `cell_list` loads 32 of a row.
TEST_P(VersionTest, AtomsOfTwoRowsOfCells) {
    const Grid grid{32, 4, 4, 1};
    for (const std::size_t first : {31, 32, 33}) {
        for (const std::size_t second : {1, 31, 32, 33}) {
            std::vector<Atom> atoms = day14::random_atoms(first + second, {6, 1, 1, 1}, kSeed);
            for (std::size_t i = 0; i < atoms.size(); ++i) {
                atoms[i].x += 13;
                if (i >= first) atoms[i].z += 30;
            }
            expect_right(atoms, grid, 40);
        }
    }
}

TEST_P(VersionTest, AtomsOutsideOfTheBox) {
    const Grid grid{7, 6, 5, 1};
    std::vector<Atom> atoms;
    for (const float away : {-1e18f, -1e10f, -60.0f, -3.1f, -3.0f, -2.9f, -0.1f, 0.0f, 5.5f, 8.9f, 9.0f, 9.1f,
                             80.0f, 3e9f, 1e18f}) {
        atoms.push_back({away, 2, 2, 1});
        atoms.push_back({2, away, 2, -0.7f});
        atoms.push_back({2, 2, away, 0.4f});
        atoms.push_back({away, away, away, 1});
    }
    expect_right(atoms, grid, 3);
}

// From less than the softening to more than the box.
TEST_P(VersionTest, AnyCutoff) {
    if (!has_cutoff()) GTEST_SKIP() << "it has no cutoff";
    for (const float cutoff : {1e-30f, 0.01f, 0.1f, 0.5f, 1.0f, 1.7f, 4.0f, 12.0f, 100.0f, 1e5f, 1e25f})
        expect_right_for_random_atoms(100, {17, 6, 5, 0.5f}, cutoff);
}

// Of these atoms, none, some or all points are exactly at the cutoff.
TEST_P(VersionTest, PointsAtTheCutoff) {
    const Grid grid{13, 13, 5, 1};
    for (const float charge : {1.0f, 1e10f})
        expect_right({{6, 6, 2, charge}, {0, 0, 0, charge}, {12, 12, 4, -charge}}, grid, 5);
}

// One term alone: coordinates are whole numbers, so only s, the root and the sum are rounded.
TEST_P(VersionTest, RootsAreAccurate) {
    if (has_cutoff()) GTEST_SKIP() << "its factor is rounded, too";
    const Grid grid{33, 20, 19, 1};
    const std::vector<Atom> atom = {{2, 1, 3, 1}};
    const DeviceBuffer<Atom> device{std::span<const Atom>(atom)};
    GuardedBuffer<float> potential(points(grid));
    GetParam()->launcher(device.span(), grid, 0, potential.span(), nullptr);
    const std::vector<float> got = potential.to_host();
    for (int z = 0; z < grid.nz; ++z) {
        for (int y = 0; y < grid.ny; ++y) {
            for (int x = 0; x < grid.nx; ++x) {
                const double s = (x - 2) * (x - 2) + (y - 1) * (y - 1) + (z - 3) * (z - 3) + 1.0 / 4096;
                // s: half of two roundings; the root: 2 ulp, which is up to 4 of these units.
                ASSERT_NEAR(got[grid.index(x, y, z)] * std::sqrt(s), 1, 5.5 * 0x1p-24)
                    << "point (" << x << ", " << y << ", " << z << ")";
            }
        }
    }
}

TEST_P(VersionTest, RandomProblems) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 12; ++round) {
        const Grid grid{1 + random.integer(0, 40), 1 + random.integer(0, 12), 1 + random.integer(0, 8),
                        random.uniform(0.1f, 2.0f)};
        const std::size_t n = random.below(300);
        expect_right(day14::random_atoms(n, grid, random.next()), grid, random.uniform(0.5f, 8.0f));
    }
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    DeviceBuffer<Atom> atoms{std::span<const Atom>(std::vector<Atom>(3, {0, 0, 0, 1}))};
    GuardedBuffer<float> potential(8);
    const auto nodes_of = [&](std::size_t n) {
        const course::CapturedWork work([&](cudaStream_t stream) {
            GetParam()->launcher(atoms.span().subspan(0, n), {2, 2, 2, 1}, has_cutoff() ? 1.0f : 0.0f,
                                 potential.span(), stream);
        });
        return work.nodes();
    };
    EXPECT_GE(nodes_of(3), 2U) << "expected a memset and at least one kernel on the given stream";
    EXPECT_EQ(nodes_of(0), 1U) << "expected the memset alone";

    const float cutoff = has_cutoff() ? 1.0f : 0.0f;
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(atoms.span(), {2, 2, 2, 1}, cutoff, potential.span(), stream);
    });
    CUDA_CHECK(cudaDeviceSynchronize());
    potential.spoil();
    work.run();
    EXPECT_TRUE(verify(potential.to_host(),
                       day14::potential_on_cpu(std::vector<Atom>(3, {0, 0, 0, 1}), {2, 2, 2, 1}, cutoff))
                    .ok());
}

TEST_P(VersionTest, RefusesBadArguments) {
    const DeviceBuffer<Atom> atoms{std::span<const Atom>(std::vector<Atom>(3, {0, 0, 0, 1}))};
    GuardedBuffer<float> potential(8);
    const float usual = has_cutoff() ? 1.0f : 0.0f;
    const auto refusal = [&](const Grid& grid, float cutoff, course::DeviceSpan<float> out) {
        return course::refusal([&] { GetParam()->launcher(atoms.span(), grid, cutoff, out, nullptr); });
    };
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(refusal({2, 2, 3, 1}, usual, potential.span()),
              "electrostatics: potential has 8 elements; expected 12, one for each of 2 x 2 x 3 points");
    EXPECT_EQ(refusal({2, -1, 2, 1}, usual, potential.span()),
              "electrostatics: the grid has 2 x -1 x 2 points; expected 0 to 65535 along each axis");
    EXPECT_EQ(refusal({65536, 1, 1, 1}, usual, potential.span()),
              "electrostatics: the grid has 65536 x 1 x 1 points; expected 0 to 65535 along each axis");
    EXPECT_EQ(refusal({2, 2, 2, 0}, usual, potential.span()),
              "electrostatics: spacing is 0; expected a finite number above 0");
    EXPECT_EQ(refusal({2, 2, 2, infinity}, usual, potential.span()),
              "electrostatics: spacing is inf; expected a finite number above 0");
    EXPECT_EQ(refusal({2, 2, 2, 1e6f}, usual, potential.span()),
              "electrostatics: the grid is 2e+06 angstrom long; expected at most 1e+06");
    EXPECT_EQ(refusal({2, 2, 2, 1}, -1, potential.span()),
              "electrostatics: cutoff is -1; expected 1e-30 to 1e30, or 0 for none");
    for (const float cutoff : {1e-45f, 2e38f, infinity, std::numeric_limits<float>::quiet_NaN()})
        EXPECT_NE(refusal({2, 2, 2, 1}, cutoff, potential.span()).find("expected 1e-30 to 1e30"),
                  std::string::npos);
    EXPECT_EQ(refusal({2, 2, 2, 1}, has_cutoff() ? 0.0f : 3.0f, potential.span()),
              has_cutoff()
                  ? "electrostatics: cutoff is 0: it needs a cutoff above 0"
                  : "electrostatics: cutoff is 3: it computes all pairs; the cutoff versions end the "
                    "potential at 3 angstrom");
    const auto inside = course::DeviceSpan<float>::from_device_pointer(
        reinterpret_cast<float*>(const_cast<Atom*>(atoms.data())) + 4, 8);
    EXPECT_EQ(refusal({2, 2, 2, 1}, usual, inside),
              "electrostatics: potential overlaps atoms; expected no element in common");
    const auto got = potential.to_host();
    EXPECT_TRUE(std::ranges::all_of(got, [](float value) { return std::isnan(value); }))
        << "written in spite of the refusal";
}

// More than 2^31 points: an index of 32 bits would wrap.
TEST_P(VersionTest, MorePointsThan31BitsCount) {
    if (GetParam()->name == "scatter") GTEST_SKIP() << "three threads would add to two billion points";
    const Grid grid{1290, 1290, 1300, 0.5f};
    if (const std::string reason = course::why_not_so_large(points(grid) * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    const std::vector<Atom> atoms = day14::random_atoms(3, grid, kSeed);
    const DeviceBuffer<Atom> device{std::span<const Atom>(atoms)};
    DeviceBuffer<float> potential(points(grid));
    CUDA_CHECK(cudaMemset(potential.data(), 0xff, potential.bytes()));
    const float cutoff = has_cutoff() ? 300.0f : 0.0f;
    GetParam()->launcher(device.span(), grid, cutoff, potential.span(), nullptr);
    constexpr std::size_t kWindow = 2000;
    for (const std::size_t first : {std::size_t{0}, std::size_t{1} << 31, points(grid) - kWindow}) {
        std::vector<std::size_t> at(kWindow);
        for (std::size_t i = 0; i < kWindow; ++i)
            at[i] = first + i;
        std::vector<float> got(kWindow);
        CUDA_CHECK(cudaMemcpy(got.data(), potential.data() + first, kWindow * sizeof(float),
                              cudaMemcpyDeviceToHost));
        const course::VerifyResult result = verify(got, day14::potential_on_cpu(atoms, grid, cutoff, at));
        EXPECT_TRUE(result.ok()) << "from point " << first << " on: " << result.message();
    }
}

// The definition, by hand.
TEST(PotentialOnCpu, IsTheDefinition) {
    const Grid grid{3, 1, 1, 2};
    const double softened = 4 + 1.0 / 4096;
    const day14::Expected all = day14::potential_on_cpu(std::vector<Atom>{{0, 0, 0, 3}}, grid, 0);
    EXPECT_DOUBLE_EQ(all.potential[0], 3 * 64);
    EXPECT_DOUBLE_EQ(all.potential[1], 3 / std::sqrt(softened));
    const day14::Expected near = day14::potential_on_cpu(std::vector<Atom>{{0, 0, 0, 3}}, grid, 4);
    const double inside = 1 - softened / 16;
    EXPECT_DOUBLE_EQ(near.potential[1], 3 / std::sqrt(softened) * inside * inside);
    EXPECT_EQ(near.potential[2], 0);
}

TEST(Versions, AreFoundByNameAndOthersSuggested) {
    EXPECT_EQ(course::find_version(day14::versions(), "binned").name, "binned");
    EXPECT_THROW(course::find_version(day14::versions(), "bins"), std::invalid_argument);
}

}  // namespace

// Every version against sums in double, within the bound that mri_verify.hpp derives.
#include "mri.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "mri_verify.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using day37::Grid;
using day37::HostPositions;
using day37::HostSamples;

constexpr std::uint64_t kSeed = 37;

// Inputs on the device.
struct OnDevice {
    OnDevice(const HostSamples& k, const HostPositions& voxels, const Grid& voxel_grid)
        : host{k.kx, k.ky, k.kz, k.phi_re, k.phi_im, k.d_re, k.d_im, voxels.x, voxels.y, voxels.z},
          grid(voxel_grid) {
        for (const std::vector<float>& values : host)
            arrays.emplace_back(std::span(values));
    }
    day37::KSpace k() const {
        const auto& a = arrays;
        return {a[0].span(), a[1].span(), a[2].span(), a[3].span(), a[4].span(), a[5].span(), a[6].span()};
    }
    day37::Voxels voxels() const { return {arrays[7].span(), arrays[8].span(), arrays[9].span(), grid}; }
    bool is_unchanged() const {
        for (std::size_t i = 0; i < host.size(); ++i) {
            const std::vector<float> now = arrays[i].to_host();
            if (!now.empty() && std::memcmp(now.data(), host[i].data(), now.size() * sizeof(float)) != 0)
                return false;
        }
        return true;
    }

    std::vector<std::vector<float>> host;
    std::vector<DeviceBuffer<float>> arrays;
    Grid grid;
};

class VersionTest : public course::DeviceTestWithParam<const day37::Version*> {
  protected:
    // "": all is right, or the version does not run this problem.
    static std::string sums(const HostSamples& k, const HostPositions& voxels, const Grid& grid = {},
                            day37::ErrorOfTerm error = {}) {
        const day37::Problem problem{grid, k.size()};
        error.fixed += extra_error();
        if (!GetParam()->cannot_run(problem).empty()) return "";
        const OnDevice inputs(k, voxels, grid);
        GuardedBuffer<float> re(voxels.size());
        GuardedBuffer<float> im(voxels.size());
        day37::Workspace workspace(problem);
        GetParam()->launcher(inputs.k(), inputs.voxels(), {re.span(), im.span()}, workspace, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        if (!inputs.is_unchanged()) return "an input was changed";
        course::VerifyResult result =
            day37::verify_sums(re.to_host(), im.to_host(), day37::sums_on_cpu(k, voxels), k.size(), error);
        result.damage += re.damage() + im.damage();
        return result.ok() ? "" : result.message();
    }

    // Each rotation adds at most 2 eps (beyond/runs.cuh).
    static double extra_error() { return GetParam()->name == "rotation" ? 30 : 0; }

    // Does the version reduce the phase to half a turn before it multiplies by 2 pi?
    static bool is_reduced() {
        const std::string& name = GetParam()->name;
        return name != "scatter_atomic" && name != "gather" && name != "registers" &&
               name != "constant_chunks";
    }

    static std::string sums_on_grid(const Grid& grid, std::size_t samples) {
        return sums(day37::random_samples(samples, grid, kSeed), day37::grid_positions(grid), grid);
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtySeven, VersionTest, course::each_of(day37::versions()),
                         course::VersionName());

// Voxels around a warp and a block of 256.
TEST_P(VersionTest, AnyNumberOfVoxels) {
    for (const std::size_t nx : {0, 1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 521})
        EXPECT_EQ(sums_on_grid({nx, 1, 1}, 5), "") << nx << " voxels";
}

// Samples around a warp, a tile of 256 and chunks of 1,024 and 2,048.
TEST_P(VersionTest, AnyNumberOfSamples) {
    for (const std::size_t samples :
         {0, 1, 2, 31, 32, 33, 255, 256, 257, 1021, 1023, 1024, 1025, 2047, 2048, 2049, 4097})
        EXPECT_EQ(sums_on_grid({3, 2, 1}, samples), "") << samples << " samples";
}

TEST_P(VersionTest, GridsOfAnyShape) {
    for (const Grid& grid : {Grid{9, 7, 5}, Grid{5, 7, 9}, Grid{1, 1, 37}, Grid{1, 41, 1}, Grid{16, 2, 3},
                             Grid{129, 3, 1}, Grid{3, 5, 13}, Grid{131, 1, 2}})
        EXPECT_EQ(sums_on_grid(grid, 67), "") << grid.nx << " x " << grid.ny << " x " << grid.nz;
}

// Versions for grids refuse any other positions.
TEST_P(VersionTest, VoxelsAnywhere) {
    const Grid extent{100, 200, 50};
    EXPECT_EQ(sums(day37::random_samples(43, extent, kSeed), day37::random_positions(301, kSeed + 1)), "");
}

// k and x are such that the phase has no rounding error at all. So a version with range reduction
// is as exact at thousands of turns as at one; without, 2 pi times the phase is rounded.
TEST_P(VersionTest, LargePhases) {
    HostSamples k = day37::random_samples(16, {1, 1, 1}, kSeed);
    for (std::size_t m = 0; m < k.size(); ++m) {
        k.kx[m] = 5000.0f + static_cast<float>(m) / 16;
        k.ky[m] = -3000.0f;
        k.kz[m] = 0;
    }
    HostPositions voxels = day37::random_positions(40, kSeed);
    std::fill(voxels.x.begin(), voxels.x.end(), 1.0f);
    std::fill(voxels.y.begin(), voxels.y.end(), 0.5f);
    EXPECT_EQ(sums(k, voxels, {}, {.per_phase = is_reduced() ? 0.0 : 7.0}), "");
    // Anything else is within the usual bound.
    EXPECT_EQ(sums(day37::random_samples(9, {4000, 4000, 4000}, kSeed), voxels), "");
    // The largest phases that range reduction allows for, 2^22, with both signs and all fractions.
    k = day37::random_samples(8, {1, 1, 1}, kSeed);
    for (std::size_t m = 0; m < k.size(); ++m) {
        k.kx[m] = m == 0 ? 0x1p22f : 0x1p22f - static_cast<float>(m) / 4;
        if (m % 2 == 1) k.kx[m] = -k.kx[m];
        k.ky[m] = 0;
        k.kz[m] = 0;
    }
    EXPECT_EQ(sums(k, voxels, {}, {.per_phase = is_reduced() ? 0.0 : 7.0}), "");
}

// k = 0: all voxels have the sum of all mu. Voxels half a turn apart have opposite signs.
TEST_P(VersionTest, WavesThatAreKnown) {
    const Grid grid{4, 2, 2};
    HostSamples k = day37::random_samples(1, grid, kSeed);
    k.kx = {0};
    k.ky = {0};
    k.kz = {0};
    k.phi_re = {1};
    k.phi_im = {0};
    k.d_re = {3};
    k.d_im = {-2};
    EXPECT_EQ(sums(k, day37::grid_positions(grid), grid), "");
    k.kz = {1};
    EXPECT_EQ(sums(k, day37::grid_positions(grid), grid), "");
    // conj(phi) d, not phi d.
    k.phi_re = {0};
    k.phi_im = {1};
    EXPECT_EQ(sums(k, day37::grid_positions(grid), grid), "");
}

// Samples that cancel, and one that is far larger than the others.
TEST_P(VersionTest, SamplesOfVeryDifferentSize) {
    const Grid grid{7, 6, 5};
    HostSamples k = day37::random_samples(64, grid, kSeed);
    for (std::size_t m = 0; m + 1 < k.size(); m += 2) {
        k.kx[m + 1] = k.kx[m];
        k.ky[m + 1] = k.ky[m];
        k.kz[m + 1] = k.kz[m];
        k.phi_re[m + 1] = k.phi_re[m];
        k.phi_im[m + 1] = k.phi_im[m];
        k.d_re[m + 1] = -k.d_re[m];
        k.d_im[m + 1] = -k.d_im[m];
    }
    EXPECT_EQ(sums(k, day37::grid_positions(grid), grid), "");
    k.d_re[3] = 1e6f;
    EXPECT_EQ(sums(k, day37::grid_positions(grid), grid), "");
}

TEST_P(VersionTest, RandomShapes) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 8; ++round) {
        const Grid grid{1 + random.below(20), 1 + random.below(12), 1 + random.below(6)};
        const std::size_t samples = random.below(90);
        EXPECT_EQ(sums_on_grid(grid, samples), "")
            << grid.nx << " x " << grid.ny << " x " << grid.nz << " voxels, " << samples << " samples";
    }
}

TEST_P(VersionTest, UsesTheGivenStream) {
    const Grid grid{5, 4, 3};
    const HostSamples k = day37::random_samples(40, grid, kSeed);
    const HostPositions voxels = day37::grid_positions(grid);
    const OnDevice inputs(k, voxels, grid);
    GuardedBuffer<float> re(voxels.size());
    GuardedBuffer<float> im(voxels.size());
    day37::Workspace workspace({grid, k.size()});
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(inputs.k(), inputs.voxels(), {re.span(), im.span()}, workspace, stream);
    });
    CUDA_CHECK(cudaDeviceSynchronize());
    re.spoil();
    im.spoil();
    work.run();
    const course::VerifyResult result = day37::verify_sums(
        re.to_host(), im.to_host(), day37::sums_on_cpu(k, voxels), k.size(), {.fixed = 10 + extra_error()});
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(VersionTest, RefusesArgumentsThatDoNotFit) {
    const Grid grid{4, 3, 1};
    const OnDevice inputs(day37::random_samples(6, grid, kSeed), day37::grid_positions(grid), grid);
    DeviceBuffer<float> re(12);
    DeviceBuffer<float> im(12);
    day37::Workspace workspace({grid, 6});
    const auto refuses = [&](day37::KSpace k, day37::Voxels voxels, day37::Image out, day37::Workspace& space,
                             const std::string& text) {
        try {
            GetParam()->launcher(k, voxels, out, space, nullptr);
            ADD_FAILURE() << "accepted; expected a message with: " << text;
        } catch (const std::invalid_argument& error) {
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
    };
    const day37::KSpace k = inputs.k();
    const day37::Voxels voxels = inputs.voxels();
    const day37::Image out{re.span(), im.span()};
    day37::KSpace short_k = k;
    short_k.d_im = k.d_im.subspan(0, 5);
    refuses(short_k, voxels, out, workspace, "d_im has 5 elements; expected 6, as kx");
    day37::Voxels short_voxels = voxels;
    short_voxels.z = voxels.z.subspan(1, 11);
    refuses(k, short_voxels, out, workspace, "z has 11 elements; expected 12, as x");
    refuses(k, voxels, {re.span(), im.span().subspan(0, 3)}, workspace, "have 12 and 3 elements");
    refuses(k, voxels, {re.span(), re.span()}, workspace, "re overlaps im");
    day37::KSpace overlapping = k;
    overlapping.ky = re.span().subspan(2, 6);
    refuses(overlapping, voxels, out, workspace, "an output overlaps ky");
    day37::Workspace of_small_grid({{2, 1, 1}, 6});
    if (!GetParam()->cannot_run({{}, 6}).empty())
        refuses(k, voxels, out, of_small_grid, "expected one for 6 samples and 4 x 3 x 1 voxels");
    day37::Workspace small({grid, 5});
    refuses(k, voxels, out, small, "the workspace is for 5 samples; expected at least 6");
    day37::Voxels other_grid = voxels;
    other_grid.grid = {5, 3, 1};
    refuses(k, other_grid, out, workspace, "the grid has 15 voxels and x 12");
}

TEST(Grids, AreTheirOwnMirrorImage) {
    for (const std::size_t n : {1, 2, 7, 8, 129}) {
        for (std::size_t i = 0; i < n; ++i)
            EXPECT_EQ(day37::grid_position(i, n), -day37::grid_position(n - 1 - i, n)) << i << " of " << n;
    }
}

TEST(WorkspaceTest, RefusesTooManySamples) {
    EXPECT_THROW(day37::Workspace({Grid{1, 1, 1}, day37::kMostSamples + 1}), std::invalid_argument);
}

}  // namespace

// Gridding against the sum of all waves in double, within a bound that depends on the window's
// width (gridding_verify.hpp); its first step also where there is no transform.
#include "beyond/gridding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/gridding_verify.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "mri.hpp"

namespace {

using course::DeviceBuffer;
using day37::Grid;
using day37::Gridding;
using day37::HostSamples;
using day37::Spreading;

constexpr std::uint64_t kSeed = 37;

struct SamplesOnDevice {
    explicit SamplesOnDevice(const HostSamples& k) {
        for (const auto* values : {&k.kx, &k.ky, &k.kz, &k.phi_re, &k.phi_im, &k.d_re, &k.d_im})
            arrays.emplace_back(std::span(*values));
        // With phi = 1, mu is d.
        weighted = {arrays[0].data(), arrays[1].data(), arrays[2].data(),
                    arrays[5].data(), arrays[6].data(), k.size()};
    }
    day37::KSpace k() const {
        const auto& a = arrays;
        return {a[0].span(), a[1].span(), a[2].span(), a[3].span(), a[4].span(), a[5].span(), a[6].span()};
    }
    std::vector<DeviceBuffer<float>> arrays;
    day37::Weighted weighted{};
};

HostSamples with_phi_1(HostSamples k) {
    std::ranges::fill(k.phi_re, 1.0f);
    std::ranges::fill(k.phi_im, 0.0f);
    return k;
}

std::string name(const Grid& grid) {
    return std::to_string(grid.nx) + " x " + std::to_string(grid.ny) + " x " + std::to_string(grid.nz);
}

// Voxels of `grid`, where `field` are one field of view.
day37::HostPositions positions(const Grid& grid, const Grid& field) {
    day37::HostPositions all = day37::grid_positions(grid);
    const auto stretch = [](std::vector<float>& values, std::size_t n, std::size_t of_field) {
        for (float& value : values)
            value = static_cast<float>(static_cast<double>(value) * static_cast<double>(n) /
                                       static_cast<double>(of_field));
    };
    stretch(all.x, grid.nx, field.nx);
    stretch(all.y, grid.ny, field.ny);
    stretch(all.z, grid.nz, field.nz);
    return all;
}

class GriddingTest : public course::DeviceTestWithParam<const day37::NamedSpreading*> {
  protected:
    // The points after the first step. "": all are right.
    static std::string spread(const HostSamples& samples, const Grid& grid, const Grid& field, int width) {
        const HostSamples k = with_phi_1(samples);
        const SamplesOnDevice on_device(k);
        Gridding gridding(grid, field, k.size(), width);
        gridding.spread(on_device.weighted, GetParam()->how, nullptr);
        const Grid points = gridding.extents();
        std::vector<float2> got(points.count());
        CUDA_CHECK(cudaMemcpy(got.data(), gridding.points().data(), got.size() * sizeof(float2),
                              cudaMemcpyDeviceToHost));
        const day37::SpreadOnCpu expected = day37::spread_on_cpu(k, grid, field, points, width);
        // A weight near the window's end is small, and its error relative to the middle's.
        const double fixed = *std::ranges::max_element(expected.magnitude);
        const double of_magnitude = day37::spread_rounding(k.size(), width);
        for (std::size_t n = 0; n < got.size(); ++n) {
            const std::complex<double> value(got[n].x, got[n].y);
            const double error = std::abs(value - expected.sum[n]);
            const double allowed = 0x1p-23 * (of_magnitude * expected.magnitude[n] + 4 * fixed);
            if (!(error <= allowed))
                return "point " + std::to_string(n) + " of " + name(points) + " is off by " +
                       std::to_string(error) + "; allowed " + std::to_string(allowed);
        }
        return "";
    }

    static std::string spread(std::size_t samples, const Grid& grid, int width) {
        return spread(day37::random_samples(samples, grid, kSeed), grid, grid, width);
    }

    // All of it. "": all voxels are right.
    static std::string sum(const HostSamples& k, const Grid& grid, const Grid& field, int width) {
        const SamplesOnDevice on_device(k);
        Gridding gridding(grid, field, k.size(), width);
        course::GuardedBuffer<float> re(grid.count());
        course::GuardedBuffer<float> im(grid.count());
        gridding.sum(on_device.k(), GetParam()->how, {re.span(), im.span()}, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        const day37::Expected expected = day37::sums_on_cpu(k, positions(grid, field));
        const Grid points = gridding.extents();
        const day37::ErrorOfTerm error =
            day37::gridding_error(day37::spread_on_cpu(k, grid, field, points, width), points, k.size(),
                                  width, expected.weight.front());
        course::VerifyResult result =
            day37::verify_sums(re.to_host(), im.to_host(), expected, k.size(), error);
        result.damage += re.damage() + im.damage();
        return result.ok() ? "" : result.message();
    }

    static std::string sum(std::size_t samples, const Grid& grid, int width) {
        return sum(day37::random_samples(samples, grid, kSeed), grid, grid, width);
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtySeven, GriddingTest, course::each_of(day37::kSpreadings),
                         course::VersionName());

// Grids with axes of one voxel, of fewer points than the window, and around a tile of 16 x 16 x 2.
TEST_P(GriddingTest, SpreadsOnGridsOfAnyShape) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{2, 1, 1}, Grid{1, 9, 1}, Grid{1, 1, 5}, Grid{8, 8, 1},
                             Grid{9, 7, 1}, Grid{17, 3, 2}, Grid{5, 20, 3}, Grid{24, 2, 9}})
        EXPECT_EQ(spread(67, grid, 6), "") << name(grid);
}

TEST_P(GriddingTest, SpreadsWithWindowsOfAnyWidth) {
    for (int width = Gridding::kLeastWidth; width <= Gridding::kMostWidth; ++width)
        EXPECT_EQ(spread(50, {11, 10, 4}, width), "") << "width " << width;
}

TEST_P(GriddingTest, SpreadsAnyNumberOfSamples) {
    for (const std::size_t samples : {1, 7, 8, 9, 31, 32, 33, 255, 256, 257, 521})
        EXPECT_EQ(spread(samples, {10, 6, 1}, 4), "") << samples << " samples";
}

TEST_P(GriddingTest, SumsOnGridsOfAnyShape) {
    if (const std::string reason = day37::why_no_fft(); !reason.empty()) GTEST_SKIP() << reason;
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{2, 1, 1}, Grid{1, 9, 1}, Grid{1, 1, 5}, Grid{8, 8, 1},
                             Grid{9, 7, 1}, Grid{17, 3, 2}, Grid{5, 20, 3}, Grid{24, 2, 9}})
        EXPECT_EQ(sum(67, grid, 6), "") << name(grid);
}

TEST_P(GriddingTest, IsOffByNoMoreThanItsWindowIs) {
    if (const std::string reason = day37::why_no_fft(); !reason.empty()) GTEST_SKIP() << reason;
    for (int width = Gridding::kLeastWidth; width <= Gridding::kMostWidth; ++width) {
        EXPECT_EQ(sum(40, {11, 10, 4}, width), "") << "width " << width;
        EXPECT_EQ(sum(300, {20, 13, 1}, width), "") << "width " << width;
    }
}

}  // namespace

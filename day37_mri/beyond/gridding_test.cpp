// Gridding against the sum of all waves in double, within a bound that depends on the window's
// width (gridding_verify.hpp); its first step also where there is no transform.
#include "beyond/gridding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
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
        const double of_magnitude = day37::spread_rounding(k.size(), width, 3);
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
        return difference(k, grid, field, width, gridding.extents(), re, im);
    }

    static std::string difference(const HostSamples& k, const Grid& grid, const Grid& field, int width,
                                  const Grid& points, const course::GuardedBuffer<float>& re,
                                  const course::GuardedBuffer<float>& im) {
        const day37::Expected expected = day37::sums_on_cpu(k, positions(grid, field));
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

// The differences of a grid's voxels: more voxels than a field of view has. Q is such a sum.
TEST_P(GriddingTest, SumsOverMoreThanAFieldOfView) {
    if (const std::string reason = day37::why_no_fft(); !reason.empty()) GTEST_SKIP() << reason;
    const HostSamples k = day37::random_samples(80, {8, 5, 3}, kSeed);
    EXPECT_EQ(sum(k, {15, 9, 5}, {8, 5, 3}, 5), "");
    EXPECT_EQ(sum(k, {10, 1, 6}, {7, 5, 4}, 5), "");
}

// Samples on points, where a window of an even width starts and ends at points; at one place; and
// far outside of what the grid resolves, where the sum's waves are the same as inside.
TEST_P(GriddingTest, SamplesAtSpecialPlaces) {
    const Grid grid{16, 10, 3};
    HostSamples k = day37::random_samples(60, grid, kSeed);
    for (std::size_t m = 0; m < k.size(); ++m) {
        k.kx[m] = static_cast<float>(m % 17) - 8;
        k.ky[m] = static_cast<float>(m % 11) - 5;
        k.kz[m] = static_cast<float>(m % 2) - 0.5f;
    }
    HostSamples together = k;
    for (auto* values : {&together.kx, &together.ky, &together.kz})
        std::ranges::fill(*values, 1.25f);
    const HostSamples outside = day37::random_samples(60, {150, 90, 40}, kSeed);
    for (const HostSamples& samples : {k, together, outside}) {
        EXPECT_EQ(spread(samples, grid, grid, 6), "");
        if (!day37::why_no_fft().empty()) continue;
        EXPECT_EQ(sum(samples, grid, grid, 6), "");
    }
}

// The grid's extents are powers of two, so that places are exact.
TEST_P(GriddingTest, SpreadsSamplesAnyNumberOfTurnsOutside) {
    const Grid grid{16, 8, 4};
    HostSamples k = day37::random_samples(9, grid, kSeed);
    k.kx = {1e9f, -1e9f, 1e16f, -1e16f, 1e20f, -1e20f, 3e38f, -3e38f, 15.5f};
    k.ky = {3e38f, 1e20f, 2.5f, -1e18f, 1e9f, 1, -1e20f, 0, -3e38f};
    k.kz = {0, 1e20f, -1e16f, 1, 3e38f, -1.5f, 2, -1e20f, 1e10f};
    EXPECT_EQ(spread(k, grid, grid, 6), "");
}

// As in the core, one sample without a place makes all voxels NaN. Spreading makes only the points
// of its window NaN.
TEST_P(GriddingTest, SamplesThatAreNotFiniteMakeTheSumNaN) {
    const Grid grid{16, 8, 4};
    const int width = 6;
    const auto count_nan = [](const auto& values) {
        return std::ranges::count_if(values, [](float value) { return std::isnan(value); });
    };
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()})
        for (auto HostSamples::*axis : {&HostSamples::kx, &HostSamples::ky, &HostSamples::kz}) {
            HostSamples k = with_phi_1(day37::random_samples(40, grid, kSeed));
            (k.*axis)[7] = value;
            const SamplesOnDevice on_device(k);
            Gridding gridding(grid, grid, k.size(), width);
            gridding.spread(on_device.weighted, GetParam()->how, nullptr);
            std::vector<float> got(2 * gridding.extents().count());
            CUDA_CHECK(cudaMemcpy(got.data(), gridding.points().data(), got.size() * sizeof(float),
                                  cudaMemcpyDeviceToHost));
            EXPECT_EQ(count_nan(got), 2 * width * width * width);
            if (!day37::why_no_fft().empty()) continue;
            course::GuardedBuffer<float> re(grid.count());
            course::GuardedBuffer<float> im(grid.count());
            gridding.sum(on_device.k(), GetParam()->how, {re.span(), im.span()}, nullptr);
            EXPECT_EQ(count_nan(re.to_host()) + count_nan(im.to_host()),
                      static_cast<std::ptrdiff_t>(2 * grid.count()));
        }
}

TEST_P(GriddingTest, SumsOfNoSamplesAre0) {
    const Grid grid{5, 4, 1};
    Gridding gridding(grid, grid, 3, 4);
    gridding.spread({}, GetParam()->how, nullptr);
    std::vector<float2> points(gridding.extents().count());
    CUDA_CHECK(cudaMemcpy(points.data(), gridding.points().data(), points.size() * sizeof(float2),
                          cudaMemcpyDeviceToHost));
    for (const float2 point : points)
        EXPECT_TRUE(point.x == 0 && point.y == 0);
    if (!day37::why_no_fft().empty()) return;
    EXPECT_EQ(sum(0, grid, 4), "");
}

TEST_P(GriddingTest, UsesTheGivenStream) {
    if (const std::string reason = day37::why_no_fft(); !reason.empty()) GTEST_SKIP() << reason;
    const Grid grid{9, 8, 2};
    const HostSamples k = day37::random_samples(40, grid, kSeed);
    const SamplesOnDevice on_device(k);
    Gridding gridding(grid, grid, k.size(), 5);
    course::GuardedBuffer<float> re(grid.count());
    course::GuardedBuffer<float> im(grid.count());
    const course::CapturedWork work([&](cudaStream_t stream) {
        gridding.sum(on_device.k(), GetParam()->how, {re.span(), im.span()}, stream);
    });
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int repetition = 0; repetition < 2; ++repetition) {
        re.spoil();
        im.spoil();
        work.run();
        EXPECT_EQ(difference(k, grid, grid, 5, gridding.extents(), re, im), "");
    }
}

class GriddingWindow : public course::DeviceTest {};
class GriddingArguments : public course::DeviceTest {};

// A wave of one sample, at 17 places between two points. The bound is not only kept: it is reached.
TEST_F(GriddingWindow, ItsErrorIsThatOfTheWidth) {
    if (const std::string reason = day37::why_no_fft(); !reason.empty()) GTEST_SKIP() << reason;
    const Grid grid{64, 1, 1};
    for (int width = Gridding::kLeastWidth; width <= Gridding::kMostWidth; ++width) {
        Gridding gridding(grid, grid, 1, width);
        DeviceBuffer<float> re(64);
        DeviceBuffer<float> im(64);
        double worst = 0;
        double allowed = 0;
        for (int place = 0; place <= 32; place += 2) {
            HostSamples k = with_phi_1(day37::random_samples(1, grid, kSeed));
            k.kx = {3 + static_cast<float>(place) / 64};
            k.d_re = {0.6f};
            k.d_im = {-0.8f};
            const SamplesOnDevice on_device(k);
            gridding.sum(on_device.weighted, Spreading::kTiled, re.span(), im.span(), nullptr);
            const day37::Expected expected = day37::sums_on_cpu(k, day37::grid_positions(grid));
            const Grid points = gridding.extents();
            const day37::SpreadOnCpu spread = day37::spread_on_cpu(k, grid, grid, points, width);
            allowed = std::max(allowed, 0x1p-23 * day37::gridding_error(spread, points, 1, width, 1).fixed);
            const std::vector<float> real = re.to_host();
            const std::vector<float> imaginary = im.to_host();
            for (std::size_t n = 0; n < real.size(); ++n)
                worst = std::max(worst, std::hypot(static_cast<double>(real[n]) - expected.re[n],
                                                   static_cast<double>(imaginary[n]) - expected.im[n]));
        }
        const double error = day37::window_error(width);
        EXPECT_LE(worst, allowed) << "width " << width;
        EXPECT_LT(allowed, error + 1e-4) << "width " << width;
        EXPECT_GT(worst, 0.8 * error) << "width " << width;
    }
}

// "": the message has the text.
template <class Exception, class Call>
std::string refuses(const Call& call, const std::string& text) {
    try {
        call();
        return "accepted; expected a message with: " + text;
    } catch (const Exception& error) {
        return std::string(error.what()).find(text) != std::string::npos ? "" : error.what();
    }
}

TEST_F(GriddingArguments, AreRefusedIfTheyDoNotFit) {
    using Invalid = std::invalid_argument;
    const auto plan = [](const Grid& grid, const Grid& field, std::size_t samples, int width) {
        return [=] { Gridding(grid, field, samples, width); };
    };
    const Grid one{1, 1, 1};
    EXPECT_EQ(refuses<Invalid>(plan({4, 0, 1}, one, 5, 4), "has 0 voxels along an axis; expected 1 to 2048"),
              "");
    EXPECT_EQ(refuses<Invalid>(plan({4, 1, 2049}, one, 5, 4), "has 2049 voxels"), "");
    EXPECT_EQ(refuses<Invalid>(plan({2048, 2048, 2048}, one, 5, 4), "points; expected at most 2^30"), "");
    EXPECT_EQ(refuses<Invalid>(plan(one, {1, 0, 1}, 5, 4), "field of view has 0 voxels"), "");
    EXPECT_EQ(refuses<Invalid>(plan(one, one, 5, 1), "width is 1; expected 2 to 8"), "");
    EXPECT_EQ(refuses<Invalid>(plan(one, one, 5, 9), "width is 9; expected 2 to 8"), "");
    EXPECT_EQ(refuses<Invalid>(plan(one, one, day37::kMostSamples + 1, 4), "expected at most 2^30"), "");

    const Grid grid{4, 3, 1};
    const SamplesOnDevice samples(day37::random_samples(6, grid, kSeed));
    DeviceBuffer<float> re(12);
    DeviceBuffer<float> im(12);
    Gridding small(grid, grid, 5, 4);
    Gridding gridding(grid, grid, 6, 4);
    const auto sum = [&](Gridding& with, const day37::KSpace& k, const day37::Image& out) {
        return [&with, k, out] { with.sum(k, Spreading::kTiled, out, nullptr); };
    };
    EXPECT_EQ(
        refuses<Invalid>(sum(small, samples.k(), {re.span(), im.span()}), "6 samples; expected at most 5"),
        "");
    EXPECT_EQ(refuses<Invalid>([&] { small.spread(samples.weighted, Spreading::kTiled, nullptr); },
                               "expected at most 5"),
              "");
    EXPECT_EQ(refuses<Invalid>(sum(gridding, samples.k(), {re.span(), im.span().subspan(1, 11)}),
                               "re and im have 12 and 11 elements; expected 12"),
              "");
    EXPECT_EQ(refuses<Invalid>(sum(gridding, samples.k(), {re.span(), re.span()}), "re overlaps im"), "");
    day37::KSpace short_k = samples.k();
    short_k.d_im = short_k.d_im.subspan(0, 3);
    EXPECT_EQ(refuses<Invalid>(sum(gridding, short_k, {re.span(), im.span()}), "expected 6, as kx"), "");
    if (day37::why_no_fft().empty()) return;
    EXPECT_EQ(refuses<std::runtime_error>(sum(gridding, samples.k(), {re.span(), im.span()}),
                                          "scripts/install_dependencies.sh --libraries"),
              "");
}

}  // namespace

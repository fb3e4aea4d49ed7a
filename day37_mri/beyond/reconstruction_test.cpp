// F^H F against plain sums in double, conjugate gradients against the equation that they solve, and
// an image against the ellipses that it was scanned from.
#include "beyond/reconstruction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/gridding.hpp"
#include "beyond/gridding_verify.hpp"
#include "beyond/phantom.hpp"
#include "beyond/reconstruction_verify.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "mri.hpp"
#include "mri_verify.hpp"

namespace {

using course::DeviceBuffer;
using course::refusal;
using day37::Grid;
using day37::HostPositions;
using day37::HostSamples;
using Complex = std::complex<double>;

constexpr std::uint64_t kSeed = 37;

std::vector<float2> random_image(std::size_t count) {
    course::Random random(kSeed);
    std::vector<float2> image;
    for (std::size_t i = 0; i < count; ++i)
        image.push_back(make_float2(random.uniform(-1, 1), random.uniform(-1, 1)));
    return image;
}

double value(const std::vector<float>& values, std::size_t i) {
    return static_cast<double>(values[i]);
}

class Normal : public course::DeviceTest {
  protected:
    // "": right. With a `width`, Q is by gridding.
    static std::string compare(const Grid& grid, std::size_t samples, bool in_place = false, int width = 0) {
        const HostSamples k = day37::random_samples(samples, grid, kSeed);
        const day37::SamplesOnDevice on_device(k);
        const std::vector<float2> x = random_image(grid.count());
        day37::NormalOperator normal = make(grid, on_device.k(), width);
        DeviceBuffer<float2> in{std::span(x)};
        course::GuardedBuffer<float2> out(x.size());
        normal.apply(in.span(), in_place ? in.span() : out.span(), nullptr);
        const std::vector<float2> got = in_place ? in.to_host() : out.to_host();
        const std::vector<Complex> expected = day37::normal_on_cpu(k, grid, x);
        const double of_gridding = width == 0 ? 0 : gridding_error(k, grid, width);
        const double allowed = day37::product_error(k, grid, x, of_gridding) * 0x1p-23;
        for (std::size_t n = 0; n < x.size(); ++n) {
            const double error = std::abs(day37::complex_of(got[n]) - expected[n]);
            if (!(error <= allowed))
                return "voxel " + std::to_string(n) + " is off by " + std::to_string(error) + "; allowed " +
                       std::to_string(allowed);
        }
        return in_place ? "" : out.damage();
    }

    static day37::NormalOperator make(const Grid& grid, const day37::KSpace& k, int width) {
        if (width == 0) return {grid, k, nullptr};
        day37::Gridding gridding(day37::differences_of(grid), grid, k.kx.size(), width);
        day37::NormalOperator normal(grid, k, gridding, nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        return normal;
    }

    // In eps, of W (gridding_verify.hpp).
    static double gridding_error(const HostSamples& k, const Grid& grid, int width) {
        const HostSamples squares = day37::with_d_phi(k);
        double weight = 0;
        for (std::size_t m = 0; m < k.size(); ++m)
            weight += std::norm(Complex(value(k.phi_re, m), value(k.phi_im, m)));
        const Grid differences = day37::differences_of(grid);
        const Grid points = day37::Gridding(differences, grid, k.size(), width).extents();
        return day37::gridding_error(day37::spread_on_cpu(squares, differences, grid, points, width), points,
                                     k.size(), width, weight)
            .fixed;
    }
};

TEST_F(Normal, IsTheProductOfBothSums) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{2, 1, 1}, Grid{5, 1, 1}, Grid{1, 6, 1}, Grid{1, 1, 16},
                             Grid{4, 3, 2}, Grid{9, 7, 5}, Grid{17, 8, 1}, Grid{3, 1, 33}, Grid{130, 2, 1},
                             Grid{2, 130, 1}, Grid{1, 2, 130}, Grid{2, 300, 1}, Grid{1, 2, 600}})
        EXPECT_EQ(compare(grid, 40), "") << grid.nx << " x " << grid.ny << " x " << grid.nz;
}

TEST_F(Normal, IsTheProductOfBothSumsWithQByGridding) {
    if (const std::string reason = day37::why_no_fft(); !reason.empty()) GTEST_SKIP() << reason;
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{2, 1, 1}, Grid{5, 1, 1}, Grid{1, 6, 1}, Grid{1, 1, 16},
                             Grid{4, 3, 2}, Grid{9, 7, 5}, Grid{17, 8, 1}, Grid{3, 1, 33}})
        EXPECT_EQ(compare(grid, 40, false, 6), "") << grid.nx << " x " << grid.ny << " x " << grid.nz;
    for (int width = day37::Gridding::kLeastWidth; width <= day37::Gridding::kMostWidth; ++width)
        EXPECT_EQ(compare({10, 7, 1}, 60, false, width), "") << "width " << width;
}

// The bound of the product is wide, because errors of Q may add up. Value by value it is not.
TEST_F(Normal, PointSpreadByEitherRoad) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{6, 1, 1}, Grid{5, 4, 3}, Grid{12, 9, 1}}) {
        const HostSamples k = day37::random_samples(50, grid, kSeed);
        const day37::SamplesOnDevice on_device(k);
        const Grid differences = day37::differences_of(grid);
        const day37::Expected expected =
            day37::sums_on_cpu(day37::with_d_phi(k), day37::difference_positions(grid));
        for (const int width : {0, 4, 7}) {
            if (width > 0 && !day37::why_no_fft().empty()) continue;
            course::GuardedBuffer<float> re(differences.count());
            course::GuardedBuffer<float> im(differences.count());
            const day37::Image q{re.span(), im.span()};
            day37::Workspace workspace({differences, k.size()});
            day37::ErrorOfTerm error;
            if (width == 0) {
                day37::point_spread(on_device.k(), grid, q, workspace, nullptr);
            } else {
                day37::Gridding gridding(differences, grid, k.size(), width);
                day37::point_spread(on_device.k(), grid, gridding, q, workspace, nullptr);
                CUDA_CHECK(cudaDeviceSynchronize());
                error.fixed = gridding_error(k, grid, width);
            }
            course::VerifyResult result =
                day37::verify_sums(re.to_host(), im.to_host(), expected, k.size(), error);
            result.damage += re.damage() + im.damage();
            EXPECT_TRUE(result.ok()) << "width " << width << ", " << grid.nx << " x " << grid.ny << " x "
                                     << grid.nz << ": " << result.message();
        }
    }
}

// The reference by pairs of samples against that by plain sums, which the other tests use.
TEST_F(Normal, ReferencesAgree) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{6, 1, 1}, Grid{5, 4, 3}}) {
        const HostSamples k = day37::random_samples(20, grid, kSeed);
        const std::vector<float2> image = day37::image_on_cpu(k, grid);
        const std::vector<float2> product = day37::product_on_cpu(k, grid);
        const std::vector<Complex> expected = day37::normal_on_cpu(k, grid, image);
        const day37::Expected sums = day37::sums_on_cpu(k, day37::grid_positions(grid));
        for (std::size_t n = 0; n < image.size(); ++n) {
            EXPECT_LT(std::abs(day37::complex_of(image[n]) - Complex(sums.re[n], sums.im[n])), 1e-5);
            EXPECT_LT(std::abs(day37::complex_of(product[n]) - expected[n]), 1e-6 * std::abs(expected[n]));
        }
    }
}

TEST_F(Normal, MayOverwriteItsInput) {
    EXPECT_EQ(compare({9, 6, 4}, 30, true), "");
}

TEST_F(Normal, RefusesWhatDoesNotFit) {
    const day37::SamplesOnDevice samples(day37::random_samples(4, {2, 2, 1}, kSeed));
    EXPECT_THROW(day37::NormalOperator({0, 1, 1}, samples.k(), nullptr), std::invalid_argument);
    EXPECT_THROW(day37::NormalOperator({1, 1025, 1}, samples.k(), nullptr), std::invalid_argument);
    day37::KSpace k = samples.k();
    k.kz = k.kz.subspan(0, 3);
    EXPECT_EQ(refusal([&] {
                  day37::NormalOperator({2, 2, 1}, k, nullptr);
              }),
              "NormalOperator: kz has 3 elements; expected 4, as kx");
    DeviceBuffer<float> nine(9);
    DeviceBuffer<float> eight(8);
    DeviceBuffer<float> others(9);
    day37::Workspace workspace({{3, 3, 1}, 4});
    const auto refused = [&](const Grid& grid, const day37::KSpace& of, const day37::Image& q) {
        return refusal([&] { day37::point_spread(of, grid, q, workspace, nullptr); });
    };
    const day37::Image right{nine.span(), others.span()};
    EXPECT_EQ(refused({2, 2, 1}, samples.k(), right), "");
    EXPECT_EQ(refused({2, 2, 1}, samples.k(), {nine.span(), eight.span()}),
              "point_spread: q has 9 and 8 elements; expected 9, one per difference");
    EXPECT_EQ(refused({2, 2, 1}, samples.k(), {nine.span(), nine.span()}),
              "point_spread: re overlaps im; expected no element in common");
    EXPECT_EQ(refused({2, 0, 1}, samples.k(), right),
              "point_spread: the grid has 0 voxels along an axis; expected 1 to 1024");
    for (auto day37::KSpace::*input : {&day37::KSpace::kx, &day37::KSpace::phi_im}) {
        day37::KSpace overlapping = samples.k();
        overlapping.*input = others.span().subspan(5, 4);
        EXPECT_EQ(refused({2, 2, 1}, overlapping, right),
                  std::string("point_spread: an output overlaps ") +
                      (input == &day37::KSpace::kx ? "kx" : "phi_im") + "; expected no element in common");
    }
    workspace = day37::Workspace({{3, 3, 1}, 3});
    EXPECT_EQ(refused({2, 2, 1}, samples.k(), right),
              "point_spread: the workspace is for 3 samples; expected at least 4");
    workspace = day37::Workspace({{2, 2, 1}, 4});
    EXPECT_EQ(refused({2, 2, 1}, samples.k(), right),
              "point_spread: the workspace has 32 floats for tables; expected at least 48, as one for the "
              "differences has");
    day37::Gridding of_other_field({3, 3, 1}, {3, 3, 1}, 4, 4);
    EXPECT_THROW(day37::NormalOperator({2, 2, 1}, samples.k(), of_other_field, nullptr),
                 std::invalid_argument);
    day37::Gridding of_voxels({2, 2, 1}, {2, 2, 1}, 4, 4);
    EXPECT_THROW(day37::NormalOperator({2, 2, 1}, samples.k(), of_voxels, nullptr), std::invalid_argument);
    day37::NormalOperator normal({2, 2, 1}, samples.k(), nullptr);
    DeviceBuffer<float2> four(4);
    DeviceBuffer<float2> five(5);
    EXPECT_THROW(normal.apply(five.span(), four.span(), nullptr), std::invalid_argument);
    EXPECT_THROW(normal.apply(five.span().subspan(0, 4), five.span().subspan(1, 4), nullptr),
                 std::invalid_argument);
    day37::ConjugateGradients gradients({2, 2, 1});
    DeviceBuffer<float2> x(4);
    DeviceBuffer<double> residuals(4);
    EXPECT_THROW(gradients.solve(normal, four.span(), -1, 3, x.span(), residuals.span(), nullptr),
                 std::invalid_argument);
    EXPECT_THROW(gradients.solve(normal, four.span(), 0, 4, x.span(), residuals.span(), nullptr),
                 std::invalid_argument);
    EXPECT_THROW(gradients.solve(normal, four.span(), 0, 3, four.span(), residuals.span(), nullptr),
                 std::invalid_argument);
}

class Gradients : public course::DeviceTest {
  protected:
    struct Solution {
        std::vector<float2> x;
        std::vector<double> residuals;
    };
    static Solution solve(const Grid& grid, const HostSamples& k, const std::vector<float2>& b, float lambda,
                          int iterations) {
        const day37::SamplesOnDevice on_device(k);
        day37::NormalOperator normal(grid, on_device.k(), nullptr);
        day37::ConjugateGradients gradients(grid);
        const DeviceBuffer<float2> b_device{std::span(b)};
        course::GuardedBuffer<float2> x(grid.count());
        DeviceBuffer<double> residuals(static_cast<std::size_t>(iterations) + 1);
        gradients.solve(normal, b_device.span(), lambda, iterations, x.span(), residuals.span(), nullptr);
        EXPECT_EQ(x.damage(), "");
        return {x.to_host(), residuals.to_host()};
    }
};

TEST_F(Gradients, SolveTheEquation) {
    for (const Grid& grid : {Grid{6, 5, 1}, Grid{3, 2, 2}, Grid{1, 1, 1}}) {
        const HostSamples k = day37::random_samples(4 * grid.count(), grid, kSeed);
        const std::vector<float2> b = random_image(grid.count());
        const Solution solution = solve(grid, k, b, 0.5f, 25);
        const std::vector<Complex> product = day37::normal_on_cpu(k, grid, solution.x, 0.5);
        double residual = 0;
        double size = 0;
        for (std::size_t n = 0; n < b.size(); ++n) {
            residual += std::norm(product[n] - day37::complex_of(b[n]));
            size += std::norm(day37::complex_of(b[n]));
        }
        EXPECT_LT(std::sqrt(residual / size), 1e-4) << grid.nx << " x " << grid.ny << " x " << grid.nz;
        EXPECT_NEAR(solution.residuals.front(), size, 1e-5 * size);
        EXPECT_LT(solution.residuals.back(), 1e-8 * size);
    }
}

// Steps in double, with other numbers in between: the samples of each image.
TEST_F(Gradients, TakeTheStepsOfTheReference) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{2, 1, 1}, Grid{1, 1, 9}, Grid{6, 5, 1}, Grid{9, 7, 5}}) {
        const HostSamples k = day37::random_samples(20, grid, kSeed);
        const std::vector<float2> b = day37::image_on_cpu(k, grid);
        const float lambda = static_cast<float>(grid.count()) / 8;
        const Solution solution = solve(grid, k, b, lambda, 8);
        const day37::GradientsCheck check(k, grid, b, lambda, 8);
        const course::VerifyResult result = check.verify(solution.x, solution.residuals);
        EXPECT_TRUE(result.ok()) << grid.nx << " x " << grid.ny << " x " << grid.nz << ": "
                                 << result.message();
    }
}

// Without a step, the only residual is b. 256 blocks of 256 threads share a sum, or fewer.
TEST_F(Gradients, SumSquaresOfAnyNumberOfVoxels) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{255, 1, 1}, Grid{1, 256, 1}, Grid{257, 1, 1},
                             Grid{256, 256, 1}, Grid{257, 256, 1}}) {
        const std::vector<float2> b = random_image(grid.count());
        double size = 0;
        for (const float2 v : b)
            size += std::norm(day37::complex_of(v));
        const Solution solution = solve(grid, day37::random_samples(1, grid, kSeed), b, 0, 0);
        EXPECT_NEAR(solution.residuals.front(), size, 1e-12 * size) << grid.nx << " x " << grid.ny;
    }
}

// The image of 0 is 0, and no step divides by 0.
TEST_F(Gradients, SolveForZero) {
    const Grid grid{3, 2, 1};
    const Solution solution =
        solve(grid, day37::random_samples(9, grid, kSeed), std::vector<float2>(6, make_float2(0, 0)), 0, 3);
    for (const float2 v : solution.x)
        EXPECT_TRUE(v.x == 0 && v.y == 0);
}

class Phantom : public Gradients {
  protected:
    static std::vector<float2> sums(const Grid& grid, const HostSamples& k) {
        const day37::Expected sums = day37::sums_on_cpu(k, day37::grid_positions(grid));
        std::vector<float2> b;
        for (std::size_t n = 0; n < grid.count(); ++n)
            b.push_back(make_float2(static_cast<float>(sums.re[n]), static_cast<float>(sums.im[n])));
        return b;
    }
    // Root mean square of the difference, relative to that of the truth.
    static double error(const std::vector<float2>& image, const std::vector<float>& truth) {
        double difference = 0;
        double size = 0;
        for (std::size_t n = 0; n < truth.size(); ++n) {
            difference += std::norm(day37::complex_of(image[n]) - value(truth, n));
            size += value(truth, n) * value(truth, n);
        }
        return std::sqrt(difference / size);
    }
};

// F^H d is an image already; conjugate gradients make its samples agree with the scan.
TEST_F(Phantom, IsNearerAfterConjugateGradients) {
    constexpr std::size_t kVoxels = 32;
    const Grid grid{kVoxels, kVoxels, 1};
    const std::vector<float> truth = day37::phantom_image(kVoxels);
    const HostSamples k = day37::spiral_scan(kVoxels, 1800, 17);
    const std::vector<float2> b = sums(grid, k);
    const double of_sum = error(b, truth);
    const double of_gradients = error(solve(grid, k, b, 1e-3f, 15).x, truth);
    EXPECT_LT(of_gradients, 0.7 * of_sum);
    EXPECT_LT(of_gradients, 0.2);
}

// The transform of the ellipses against a sum over many points.
TEST(PhantomSamples, AreTheTransformOfTheImage) {
    constexpr std::size_t kPoints = 128;
    const std::vector<float> image = day37::phantom_image(kPoints);
    for (const auto& [kx, ky] : {std::pair{0.0, 0.0}, {1.0, 0.0}, {0.0, 2.0}, {-3.5, 1.25}}) {
        Complex sum = 0;
        for (std::size_t i = 0; i < image.size(); ++i) {
            const double x = static_cast<double>(day37::grid_position(i % kPoints, kPoints));
            const double y = static_cast<double>(day37::grid_position(i / kPoints, kPoints));
            sum += value(image, i) * std::polar(1.0, -2 * std::numbers::pi * (kx * x + ky * y));
        }
        sum /= static_cast<double>(image.size());
        EXPECT_LT(std::abs(sum - day37::phantom_sample(kx, ky)), 1e-3) << kx << ", " << ky;
    }
}

}  // namespace

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
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "mri.hpp"
#include "mri_verify.hpp"

namespace {

using course::DeviceBuffer;
using day37::Grid;
using day37::HostPositions;
using day37::HostSamples;
using Complex = std::complex<double>;

constexpr std::uint64_t kSeed = 37;

struct SamplesOnDevice {
    explicit SamplesOnDevice(const HostSamples& k) {
        for (const auto* values : {&k.kx, &k.ky, &k.kz, &k.phi_re, &k.phi_im, &k.d_re, &k.d_im})
            arrays.emplace_back(std::span(*values));
    }
    day37::KSpace k() const {
        const auto& a = arrays;
        return {a[0].span(), a[1].span(), a[2].span(), a[3].span(), a[4].span(), a[5].span(), a[6].span()};
    }
    std::vector<DeviceBuffer<float>> arrays;
};

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

Complex complex_of(float2 value) {
    return {static_cast<double>(value.x), static_cast<double>(value.y)};
}

class Normal : public course::DeviceTest {
  protected:
    // "": right. A value of Q is off by the rounding of its table (5 eps) and of a sum of M terms,
    // relative to W, the sum of |phi|^2. A transform of length L adds an error of at most about 3 eps
    // log2 L in the norm. The transform of Q is at most W times the number of differences. With a
    // `width`, Q is by gridding, whose values are off by more.
    static std::string compare(const Grid& grid, std::size_t samples, bool in_place = false, int width = 0) {
        const HostSamples k = day37::random_samples(samples, grid, kSeed);
        const SamplesOnDevice on_device(k);
        const std::vector<float2> x = random_image(grid.count());
        day37::NormalOperator normal = make(grid, on_device.k(), width);
        DeviceBuffer<float2> in{std::span(x)};
        course::GuardedBuffer<float2> out(x.size());
        normal.apply(in.span(), in_place ? in.span() : out.span(), nullptr);
        const std::vector<float2> got = in_place ? in.to_host() : out.to_host();
        const std::vector<Complex> expected = day37::normal_on_cpu(k, grid, x);
        double weight = 0;
        double one_norm = 0;
        double two_norm = 0;
        for (std::size_t m = 0; m < samples; ++m)
            weight += std::norm(Complex(value(k.phi_re, m), value(k.phi_im, m)));
        for (const float2 v : x) {
            one_norm += std::abs(complex_of(v));
            two_norm += std::norm(complex_of(v));
        }
        const double differences =
            static_cast<double>((2 * grid.nx - 1) * (2 * grid.ny - 1) * (2 * grid.nz - 1));
        const double stages = std::log2(differences) + 3;
        const double of_gridding = width == 0 ? 0 : gridding_error(k, grid, width, weight);
        const double of_q =
            (5 + 2 * std::sqrt(static_cast<double>(samples)) + of_gridding) * weight * one_norm;
        const double of_transforms = 6 * stages * weight * std::sqrt(differences * two_norm);
        const double allowed = (of_q + of_transforms) * 0x1p-23;
        for (std::size_t n = 0; n < x.size(); ++n) {
            const double error = std::abs(complex_of(got[n]) - expected[n]);
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
    static double gridding_error(const HostSamples& k, const Grid& grid, int width, double weight) {
        const HostSamples squares = with_d_phi(k);
        const Grid differences = day37::differences_of(grid);
        const Grid points = day37::Gridding(differences, grid, k.size(), width).extents();
        return day37::gridding_error(day37::spread_on_cpu(squares, differences, grid, points, width), points,
                                     k.size(), width, weight)
            .fixed;
    }

    // Then mu is |phi|^2.
    static HostSamples with_d_phi(HostSamples k) {
        k.d_re = k.phi_re;
        k.d_im = k.phi_im;
        return k;
    }
};

TEST_F(Normal, IsTheProductOfBothSums) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{2, 1, 1}, Grid{5, 1, 1}, Grid{1, 6, 1}, Grid{1, 1, 16},
                             Grid{4, 3, 2}, Grid{9, 7, 5}, Grid{17, 8, 1}, Grid{3, 1, 33}, Grid{130, 2, 1}})
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
        const SamplesOnDevice on_device(k);
        const Grid differences = day37::differences_of(grid);
        const day37::Expected expected = day37::sums_on_cpu(with_d_phi(k), day37::difference_positions(grid));
        for (const int width : {0, 4, 7}) {
            if (width > 0 && !day37::why_no_fft().empty()) continue;
            course::GuardedBuffer<float> re(differences.count());
            course::GuardedBuffer<float> im(differences.count());
            const day37::Image q{re.span(), im.span()};
            day37::ErrorOfTerm error;
            if (width == 0) {
                day37::point_spread(on_device.k(), grid, q, nullptr);
            } else {
                day37::Gridding gridding(differences, grid, k.size(), width);
                day37::point_spread(on_device.k(), grid, gridding, q, nullptr);
                CUDA_CHECK(cudaDeviceSynchronize());
                error.fixed = gridding_error(k, grid, width, expected.weight.front());
            }
            course::VerifyResult result =
                day37::verify_sums(re.to_host(), im.to_host(), expected, k.size(), error);
            result.damage += re.damage() + im.damage();
            EXPECT_TRUE(result.ok()) << "width " << width << ", " << grid.nx << " x " << grid.ny << " x "
                                     << grid.nz << ": " << result.message();
        }
    }
}

TEST_F(Normal, MayOverwriteItsInput) {
    EXPECT_EQ(compare({9, 6, 4}, 30, true), "");
}

TEST_F(Normal, RefusesWhatDoesNotFit) {
    const SamplesOnDevice samples(day37::random_samples(4, {2, 2, 1}, kSeed));
    EXPECT_THROW(day37::NormalOperator({0, 1, 1}, samples.k(), nullptr), std::invalid_argument);
    EXPECT_THROW(day37::NormalOperator({1, 1025, 1}, samples.k(), nullptr), std::invalid_argument);
    day37::KSpace k = samples.k();
    k.kz = k.kz.subspan(0, 3);
    EXPECT_THROW(day37::NormalOperator({2, 2, 1}, k, nullptr), std::invalid_argument);
    DeviceBuffer<float> nine(9);
    DeviceBuffer<float> eight(8);
    EXPECT_THROW(day37::point_spread(samples.k(), {2, 2, 1}, {nine.span(), eight.span()}, nullptr),
                 std::invalid_argument);
    EXPECT_THROW(day37::point_spread(samples.k(), {2, 2, 1}, {nine.span(), nine.span()}, nullptr),
                 std::invalid_argument);
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
        const SamplesOnDevice on_device(k);
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
            residual += std::norm(product[n] - complex_of(b[n]));
            size += std::norm(complex_of(b[n]));
        }
        EXPECT_LT(std::sqrt(residual / size), 1e-4) << grid.nx << " x " << grid.ny << " x " << grid.nz;
        EXPECT_NEAR(solution.residuals.front(), size, 1e-5 * size);
        EXPECT_LT(solution.residuals.back(), 1e-8 * size);
    }
}

// Without a step, the only residual is b. 256 blocks of 256 threads share a sum, or fewer.
TEST_F(Gradients, SumSquaresOfAnyNumberOfVoxels) {
    for (const Grid& grid : {Grid{1, 1, 1}, Grid{255, 1, 1}, Grid{1, 256, 1}, Grid{257, 1, 1},
                             Grid{256, 256, 1}, Grid{257, 256, 1}}) {
        const std::vector<float2> b = random_image(grid.count());
        double size = 0;
        for (const float2 v : b)
            size += std::norm(complex_of(v));
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
            difference += std::norm(complex_of(image[n]) - value(truth, n));
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

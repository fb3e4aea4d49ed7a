// Gaussian mixtures: an iteration against double, within a derived bound; whole runs, whose
// likelihood never falls and which find what the points were drawn from; and k-means as their
// limit.
#include "gaussian_mixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "blobs.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "k_means.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using course::Random;
using course::refusal;
using day46::Mixture;
using day46::MixtureShape;
using day46::MixtureStep;
using day46::Reduce;

constexpr float kFloor = 1e-6f;

class MixtureTest : public course::DeviceTest {
  protected:
    static const Reduce& reduction() {
        const Reduce& fused = course::find_version(day46::reduce_versions(), "fused");
        return fused.cannot_run({}).empty() ? fused
                                            : course::find_version(day46::reduce_versions(), "unfused");
    }
};

struct Iteration {
    std::vector<float> log_density;
    double log_likelihood = 0;
    Mixture<float> next{};
};

Iteration iterate(const Reduce& reduce, const std::vector<float>& points, const Mixture<float>& mixture,
                  std::size_t d, float floor = kFloor) {
    const MixtureShape shape{points.size() / d, mixture.weights.size(), d};
    const auto [n, k, unused] = shape;
    const DeviceBuffer<float> points_device{std::span(points)};
    const DeviceBuffer<float> weights{std::span(mixture.weights)};
    const DeviceBuffer<float> means{std::span(mixture.means)};
    const DeviceBuffer<float> variances{std::span(mixture.variances)};
    GuardedBuffer<float> expanded(n * day46::expanded_columns(d));
    GuardedBuffer<float> coefficients(k * day46::expanded_columns(d));
    GuardedBuffer<float> log_density(n);
    GuardedBuffer<double> log_likelihood(day46::likelihood_parts(n));
    GuardedBuffer<float> new_weights(k), new_means(k * d), new_variances(k * d);
    GuardedBuffer<std::uint64_t> scratch(day46::mixture_scratch_size(reduce, shape));
    day46::launch_expand(points_device.matrix(n, d), expanded.span(), nullptr);
    const MixtureStep step{.shape = shape,
                           .expanded = expanded.span(),
                           .weights = weights.span(),
                           .means = means.span(),
                           .variances = variances.span(),
                           .variance_floor = floor,
                           .coefficients = coefficients.span(),
                           .log_density = log_density.span(),
                           .log_likelihood = log_likelihood.span(),
                           .new_weights = new_weights.span(),
                           .new_means = new_means.span(),
                           .new_variances = new_variances.span(),
                           .scratch = scratch.span()};
    day46::launch_expectation(reduce, step, nullptr);
    Iteration result{.log_density = log_density.to_host()};
    for (const double part : log_likelihood.to_host())
        result.log_likelihood += part;
    day46::launch_maximisation(step, nullptr);
    EXPECT_EQ(expanded.damage() + coefficients.damage() + log_density.damage() + log_likelihood.damage() +
                  new_weights.damage() + new_means.damage() + new_variances.damage() + scratch.damage(),
              "");
    result.next = {new_weights.to_host(), new_means.to_host(), new_variances.to_host()};
    return result;
}

Mixture<double> in_double(const Mixture<float>& mixture) {
    return {{mixture.weights.begin(), mixture.weights.end()},
            {mixture.means.begin(), mixture.means.end()},
            {mixture.variances.begin(), mixture.variances.end()}};
}

// The bounds are of first order, which a tenth more allows for.
void expect_within(const std::vector<float>& got, const std::vector<double>& expected,
                   const std::vector<double>& error, const char* what, std::size_t cols = 0) {
    const auto result = course::verify(got, expected, {.factor = 1.1 * 0x1p23}, error, cols);
    EXPECT_TRUE(result.ok()) << what << ": " << result.message();
}

// Overlapping blobs, and components that start at some of the points.
struct Start {
    std::vector<float> points;
    Mixture<float> mixture{};
};
Start overlapping(const MixtureShape& s, std::uint64_t seed) {
    Start start{.points = day46::make_blobs(s.n, std::max<std::size_t>(s.k, 2), s.d, 1, seed).points};
    Random random(seed + 1);
    for (float& x : start.points)
        x /= 5;
    for (std::size_t j = 0; j < s.k; ++j) {
        start.mixture.weights.push_back(1 / static_cast<float>(s.k));
        const std::size_t point = random.below(static_cast<std::uint32_t>(s.n));
        for (std::size_t c = 0; c < s.d; ++c) {
            start.mixture.means.push_back(start.points[point * s.d + c]);
            start.mixture.variances.push_back(random.uniform(0.3f, 2));
        }
    }
    return start;
}

std::string text(const MixtureShape& s) {
    return "n = " + std::to_string(s.n) + ", k = " + std::to_string(s.k) + ", d = " + std::to_string(s.d);
}

TEST_F(MixtureTest, OneStepEqualsTheReference) {
    // Around a warp, a piece of 512 points, several pieces of a part; coordinates around a warp.
    for (const MixtureShape& s : {MixtureShape{1, 1, 1},
                                  {31, 2, 1},
                                  {32, 5, 2},
                                  {33, 3, 3},
                                  {511, 2, 31},
                                  {512, 4, 32},
                                  {513, 3, 33},
                                  {1031, 40, 7},
                                  {1500, 1, 2},
                                  {64 * 512 + 700, 2, 2}}) {
        SCOPED_TRACE(text(s));
        const Start start = overlapping(s, 46);
        const Iteration got = iterate(reduction(), start.points, start.mixture, s.d);
        const auto expected = day46::mixture_step_on_cpu(start.points, in_double(start.mixture), s.d,
                                                         static_cast<double>(kFloor));
        EXPECT_LT(expected.largest_error, 0.01);  // else the bounds would say nothing
        expect_within(got.log_density, expected.log_density, expected.log_density_error, "log density");
        expect_within(got.next.weights, expected.next.weights, expected.next_error.weights, "weights");
        expect_within(got.next.means, expected.next.means, expected.next_error.means, "means", s.d);
        expect_within(got.next.variances, expected.next.variances, expected.next_error.variances, "variances",
                      s.d);
        EXPECT_NEAR(got.log_likelihood, expected.log_likelihood, expected.log_likelihood_error);
    }
}

TEST_F(MixtureTest, LogLikelihoodNeverFalls) {
    for (const std::uint64_t seed : {1, 2, 3}) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const MixtureShape s{400, 4, 2 + seed};
        Start start = overlapping(s, seed);
        double last = -std::numeric_limits<double>::infinity();
        double last_error = 0;
        double first = 0;
        for (int i = 0; i < 25; ++i) {
            const auto exact = day46::mixture_step_on_cpu(start.points, in_double(start.mixture), s.d,
                                                          static_cast<double>(kFloor));
            const Iteration now = iterate(reduction(), start.points, start.mixture, s.d);
            EXPECT_GE(now.log_likelihood, last - last_error - exact.log_likelihood_error)
                << "iteration " << i;
            if (i == 0) first = now.log_likelihood;
            last = now.log_likelihood;
            last_error = exact.log_likelihood_error;
            start.mixture = now.next;
        }
        EXPECT_GT(last, first + 0.05 * static_cast<double>(s.n));
    }
}

// Three components far apart: weights, means and variances within five standard errors of those
// that the points are drawn from.
TEST_F(MixtureTest, SeparatedComponentsAreRecovered) {
    constexpr std::uint64_t kSeed = 4;
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    constexpr std::size_t kN = 3000;
    constexpr std::size_t kD = 2;
    const Mixture<float> truth{
        {0.2f, 0.3f, 0.5f}, {103, -5, 110, 4, 97, 3}, {0.25f, 1, 1, 0.01f, 0.49f, 0.09f}};
    Random random(kSeed);
    std::vector<float> points;
    for (std::size_t i = 0; i < kN; ++i) {
        const float u = random.uniform(0, 1);
        const std::size_t j = u < 0.2f ? 0 : u < 0.5f ? 1 : 2;
        for (std::size_t c = 0; c < kD; ++c)
            points.push_back(truth.means[j * kD + c] +
                             std::sqrt(truth.variances[j * kD + c]) * random.normal());
    }
    const Mixture<float> start{{1, 1, 1}, {102, -4, 108, 3, 98, 2}, std::vector<float>(6, 4)};
    const auto fit = day46::fit_mixture(points, start, kD);
    EXPECT_TRUE(fit.has_converged);
    for (std::size_t j = 0; j < 3; ++j) {
        const float weight = truth.weights[j];
        EXPECT_NEAR(fit.mixture.weights[j], weight, 5 * std::sqrt(weight * (1 - weight) / kN));
        for (std::size_t i = j * kD; i < (j + 1) * kD; ++i) {
            const float variance = truth.variances[i];
            EXPECT_NEAR(fit.mixture.means[i], truth.means[i], 5 * std::sqrt(variance / (weight * kN)));
            EXPECT_NEAR(fit.mixture.variances[i], variance, 5 * variance * std::sqrt(2 / (weight * kN)));
        }
    }
    // The whole run in double ends with the same mixture.
    const auto expected = day46::fit_mixture_on_cpu(points, start, kD);
    EXPECT_EQ(fit.likeliest, expected.likeliest);
    EXPECT_NEAR(fit.log_likelihood.back(), expected.log_likelihood.back(), 1e-3 * kN);
    // And so does every other run, with the same bits.
    const auto again = day46::fit_mixture(points, start, kD);
    EXPECT_EQ(again.log_likelihood, fit.log_likelihood);
    EXPECT_EQ(again.mixture.means, fit.mixture.means);
    EXPECT_EQ(again.mixture.variances, fit.mixture.variances);
}

// The hard limit: if components lie far apart, each responsibility is 0 or 1, and an iteration is
// one of k-means. The centres are then the means of the same points.
TEST_F(MixtureTest, IsKMeansWhereComponentsLieFarApart) {
    constexpr std::size_t kD = 3;
    constexpr std::size_t kK = 5;
    constexpr std::size_t kN = 700;
    const auto [centres, points] = day46::make_blobs(kN, kK, kD, 0.3f, 17);
    std::vector<float> start = centres;
    for (float& x : start)
        x += 0.25f;
    const auto clusters = day46::k_means(points, start, kD);
    const auto fit =
        day46::fit_mixture(points, {std::vector<float>(kK, 1), start, std::vector<float>(kK * kD, 0.1f)}, kD);
    EXPECT_EQ(fit.likeliest, clusters.assignment);
    const auto exact =
        day46::mixture_step_on_cpu(points, in_double(fit.mixture), kD, static_cast<double>(kFloor));
    EXPECT_LT(exact.largest_error, 0.02);
    for (std::size_t i = 0; i < kK * kD; ++i) {
        // Coordinates up to 10 are rounded when the mean is subtracted, and added again.
        EXPECT_NEAR(fit.mixture.means[i], clusters.centres[i],
                    1.1 * exact.next_error.means[i] + 4 * 10 * 0x1p-23)
            << i;
    }
    for (std::size_t j = 0; j < kK; ++j) {
        const auto points_of = std::ranges::count(clusters.assignment, static_cast<std::uint32_t>(j));
        EXPECT_NEAR(fit.mixture.weights[j], static_cast<double>(points_of) / kN,
                    1.1 * exact.next_error.weights[j]);
    }
}

TEST_F(MixtureTest, AComponentWithoutPointsStaysAndGetsNoWeight) {
    constexpr std::size_t kD = 2;
    const auto points = day46::make_blobs(300, 2, kD, 1, 7).points;
    const Mixture<float> two{{1, 1}, {-1, -1, 1, 1}, {9, 9, 9, 9}};
    Mixture<float> three = two;
    three.weights.push_back(1);
    three.means.insert(three.means.end(), {4096, -4096});
    three.variances.insert(three.variances.end(), {1, 2});
    const auto expected = day46::fit_mixture_on_cpu(points, two, kD);
    const auto fit = day46::fit_mixture(points, three, kD, {.most_iterations = 200});
    EXPECT_EQ(fit.mixture.weights[2], 0);
    EXPECT_NEAR(fit.mixture.means[4], 4096, 0x1p-10);  // the origin was subtracted, and added again
    EXPECT_NEAR(fit.mixture.means[5], -4096, 0x1p-10);
    EXPECT_EQ(fit.mixture.variances[4], 1);
    EXPECT_EQ(fit.mixture.variances[5], 2);
    EXPECT_EQ(std::ranges::count(fit.likeliest, 2u), 0);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(fit.mixture.means[i], expected.mixture.means[i], 1e-2) << i;
    EXPECT_NEAR(fit.log_likelihood.back(), expected.log_likelihood.back(), 1e-3 * 300);
}

// All variances are at the floor, and the density there is that of the floor.
TEST_F(MixtureTest, EqualPointsHaveTheVarianceFloor) {
    constexpr std::size_t kD = 3;
    constexpr std::size_t kN = 600;
    const std::vector<float> points(kN * kD, 7.5f);
    constexpr float kLarge = 0x1p-10f;
    const auto fit = day46::fit_mixture(points, {{1, 3}, {7, 7, 7, 8, 8, 8}, std::vector<float>(6, 1)}, kD,
                                        {.variance_floor = kLarge});
    EXPECT_TRUE(fit.has_converged);
    for (const float variance : fit.mixture.variances)
        EXPECT_EQ(variance, kLarge);
    for (const float mean : fit.mixture.means)
        EXPECT_NEAR(mean, 7.5f, 1e-6);
    EXPECT_NEAR(fit.mixture.weights[0], 0.25, 1e-5);  // both fit equally well
    const double density = -0.5 * kD * std::log(2 * std::numbers::pi * static_cast<double>(kLarge));
    EXPECT_NEAR(fit.log_likelihood.back(), kN * density, kN * 1e-4);
}

TEST_F(MixtureTest, RefusesBadArguments) {
    const std::vector<float> numbers(12, 1);
    const Mixture<float> right{{1, 1}, std::vector<float>(6, 1), std::vector<float>(6, 1)};
    const auto of = [&](const std::vector<float>& points, std::size_t d, auto change,
                        const day46::MixtureOptions& options = {}) {
        Mixture<float> start = right;
        change(start);
        return refusal([&] { day46::fit_mixture(points, start, d, options); });
    };
    const auto nothing = [](Mixture<float>&) {};
    EXPECT_EQ(of(numbers, 0, nothing), "fit_mixture: d is 0; expected 1 to 4096");
    EXPECT_EQ(of(numbers, 5, nothing),
              "fit_mixture: points has 12 numbers and d is 5; expected whole vectors of d, at least one");
    EXPECT_EQ(of({}, 3, nothing),
              "fit_mixture: points has 0 numbers and d is 3; expected whole vectors of d, at least one");
    EXPECT_EQ(of(numbers, 3, [](auto& m) { m.weights.clear(); }),
              "fit_mixture: start has no components; expected at least one");
    EXPECT_EQ(of(numbers, 3, [](auto& m) { m.means.pop_back(); }),
              "fit_mixture: start.means has 5 numbers; expected components x d = 6");
    EXPECT_EQ(of(numbers, 3, [](auto& m) { m.variances.pop_back(); }),
              "fit_mixture: start.variances has 5 numbers; expected components x d = 6");
    EXPECT_EQ(of(numbers, 3, nothing, {.most_iterations = 0}),
              "fit_mixture: most_iterations is 0; expected at least 1");
    EXPECT_EQ(of(numbers, 3, nothing, {.variance_floor = 0}),
              "fit_mixture: variance_floor is 0; expected a finite number of at least 1.1754944e-38");
    EXPECT_EQ(of(numbers, 3,
                 [](auto& m) {
                     m.weights = {0, 0};
                 }),
              "fit_mixture: start.weights has sum 0; expected a weight above 0");
    EXPECT_EQ(of(numbers, 3, [](auto& m) { m.weights[1] = -1; }),
              "fit_mixture: start.weights[1] is -1; expected a finite number, at least 0");
    EXPECT_EQ(of(numbers, 3, [](auto& m) { m.variances[4] = 0; }),
              "fit_mixture: start.variances[4] is 0; expected a finite number above 0");
    const std::string limit = "; expected a magnitude of at most 3.77e+15, so that densities are finite";
    EXPECT_EQ(of(numbers, 3, [](auto& m) { m.means[2] = std::numeric_limits<float>::infinity(); }),
              "fit_mixture: start.means[2] is inf" + limit);
    std::vector<float> bad = numbers;
    bad[7] = -4e20f;
    EXPECT_EQ(of(bad, 3, nothing), "fit_mixture: points[7] is -4e+20" + limit);
    bad[7] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(of(bad, 3, nothing), "fit_mixture: points[7] is nan" + limit);
    // The largest that are allowed.
    std::vector<float> large = numbers;
    for (std::size_t i = 0; i < large.size(); ++i)
        large[i] = i < 6 ? 3.7e15f : -3.7e15f;
    const auto fit =
        day46::fit_mixture(large, {{1}, {3.7e15f, -3.7e15f, 0}, {1, 1e-9f, 1}}, 3, {.most_iterations = 3});
    EXPECT_TRUE(std::isfinite(fit.log_likelihood[0]));
    // And where the squares decide, not the densities.
    large.assign(64, 8e17f);
    std::fill_n(large.begin(), 32, -8e17f);
    const auto wide =
        day46::fit_mixture(large, {{1}, {0}, {1}}, 1, {.most_iterations = 3, .variance_floor = 1});
    for (const double likelihood : wide.log_likelihood)
        EXPECT_TRUE(std::isfinite(likelihood));
    EXPECT_TRUE(std::isfinite(wide.mixture.variances[0]));
    EXPECT_NE(refusal([&] {
                  large[5] = 9e17f;
                  day46::fit_mixture(large, {{1}, {0}, {1}}, 1, {.variance_floor = 1});
              }).find("points[5] is 9e+17; expected a magnitude of at most 8.15e+17"),
              std::string::npos);
    EXPECT_EQ(
        refusal([&] {
            day46::fit_mixture(std::vector<float>{1, 2}, {{1}, {0}, {1}}, 1, {.variance_floor = 1e-40f});
        }),
        "fit_mixture: variance_floor is 1e-40; expected a finite number of at least 1.1754944e-38");
    EXPECT_EQ(refusal([&] {
                  day46::launch_maximisation({.shape = {4, 2, 3}}, nullptr);
              }),
              "mixture step: expanded has 0 elements; expected 32");
}

}  // namespace

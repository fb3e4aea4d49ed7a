#include "gaussian_mixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"

namespace day46 {
namespace {

using course::require;

// Relative to their mean, points and means are at most twice as large. Then no sum of d terms
// x^2 / (2 variance) + x mean / variance exceeds 8 d largest^2 / floor, and no sum of 32 squares of
// a difference exceeds 512 largest^2. Both must be finite.
void require_magnitudes(std::span<const float> numbers, std::string_view name, std::size_t d, float floor) {
    const auto largest = static_cast<double>(std::numeric_limits<float>::max());
    const double most =
        std::min(std::sqrt(largest * static_cast<double>(floor) / (8 * static_cast<double>(d))),
                 std::sqrt(largest / 512));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (std::abs(static_cast<double>(numbers[i])) <= most) continue;  // a NaN is not
        throw std::invalid_argument(
            fmt::format("fit_mixture: {}[{}] is {}; expected a magnitude of at most {:.3g}, so that "
                        "densities are finite",
                        name, i, numbers[i], most));
    }
}

MixtureShape checked(std::span<const float> points, const Mixture<float>& start, std::size_t d,
                     const MixtureOptions& options) {
    require(d >= 1 && d <= kMostCoordinates, "fit_mixture: d is ", d, "; expected 1 to ", kMostCoordinates);
    require(!points.empty() && points.size() % d == 0, "fit_mixture: points has ", points.size(),
            " numbers and d is ", d, "; expected whole vectors of d, at least one");
    const std::size_t k = start.weights.size();
    require(k > 0, "fit_mixture: start has no components; expected at least one");
    require(start.means.size() == k * d, "fit_mixture: start.means has ", start.means.size(),
            " numbers; expected components x d = ", k * d);
    require(start.variances.size() == k * d, "fit_mixture: start.variances has ", start.variances.size(),
            " numbers; expected components x d = ", k * d);
    require(options.most_iterations > 0, "fit_mixture: most_iterations is 0; expected at least 1");
    require(
        options.variance_floor >= std::numeric_limits<float>::min() && std::isfinite(options.variance_floor),
        "fit_mixture: variance_floor is ", options.variance_floor, "; expected a finite number of at least ",
        std::numeric_limits<float>::min());
    require_magnitudes(points, "points", d, options.variance_floor);
    require_magnitudes(start.means, "start.means", d, options.variance_floor);
    float sum = 0;
    for (std::size_t j = 0; j < k; ++j) {
        require(start.weights[j] >= 0 && std::isfinite(start.weights[j]), "fit_mixture: start.weights[", j,
                "] is ", start.weights[j], "; expected a finite number, at least 0");
        sum += start.weights[j];
    }
    require(sum > 0, "fit_mixture: start.weights has sum 0; expected a weight above 0");
    for (std::size_t i = 0; i < k * d; ++i)
        require(start.variances[i] > 0 && std::isfinite(start.variances[i]), "fit_mixture: start.variances[",
                i, "] is ", start.variances[i], "; expected a finite number above 0");
    return {.n = points.size() / d, .k = k, .d = d};
}

// Weights with sum 1, and variances of at least the floor: then no iteration can lower the
// likelihood.
Mixture<double> prepared(const Mixture<float>& start, float variance_floor) {
    Mixture<double> mixture{{start.weights.begin(), start.weights.end()},
                            {start.means.begin(), start.means.end()},
                            {start.variances.begin(), start.variances.end()}};
    const double sum = std::accumulate(mixture.weights.begin(), mixture.weights.end(), 0.0);
    for (double& weight : mixture.weights)
        weight /= sum;
    for (double& variance : mixture.variances)
        variance = std::max(variance, static_cast<double>(variance_floor));
    return mixture;
}

std::vector<double> mean_of(std::span<const float> points, std::size_t d) {
    std::vector<double> mean(d);
    for (std::size_t i = 0; i < points.size(); ++i)
        mean[i % d] += static_cast<double>(points[i]);
    for (double& x : mean)
        x /= static_cast<double>(points.size() / d);
    return mean;
}

std::vector<float> as_floats(const std::vector<double>& numbers) {
    return {numbers.begin(), numbers.end()};
}

// Whether an iteration that began with the last but one log-likelihood of the list was the last.
bool has_converged(const std::vector<double>& log_likelihood, std::size_t n, double tolerance) {
    if (log_likelihood.size() < 2) return false;
    const double gain = log_likelihood.back() - log_likelihood[log_likelihood.size() - 2];
    return gain < tolerance * static_cast<double>(n);
}

}  // namespace

MixtureFit<float> fit_mixture(std::span<const float> points, const Mixture<float>& start, std::size_t d,
                              const MixtureOptions& options) {
    const MixtureShape shape = checked(points, start, d, options);
    const auto [n, k, unused] = shape;
    // The mean of the points becomes the origin: the expanded square has more digits there.
    const std::vector<double> origin = mean_of(points, d);
    std::vector<float> centred(points.size());
    for (std::size_t i = 0; i < points.size(); ++i)
        centred[i] = static_cast<float>(static_cast<double>(points[i]) - origin[i % d]);
    Mixture<double> first = prepared(start, options.variance_floor);
    for (std::size_t i = 0; i < k * d; ++i)
        first.means[i] -= origin[i % d];

    const Reduce& fused = find_version(reduce_versions(), "fused");
    const Reduce& reduce =
        fused.cannot_run({.m = n, .n = k, .d = expanded_columns(d), .reduction = Reduction::kLogSumExp})
                .empty()
            ? fused
            : find_version(reduce_versions(), "unfused");
    using course::DeviceBuffer;
    DeviceBuffer<float> expanded(n * expanded_columns(d));
    {
        const DeviceBuffer<float> points_device{std::span<const float>(centred)};
        launch_expand(points_device.matrix(n, d), expanded.span(), nullptr);
    }
    DeviceBuffer<float> weights{std::span<const float>(as_floats(first.weights))};
    DeviceBuffer<float> means{std::span<const float>(as_floats(first.means))};
    DeviceBuffer<float> variances{std::span<const float>(as_floats(first.variances))};
    DeviceBuffer<float> new_weights(k), new_means(k * d), new_variances(k * d);
    DeviceBuffer<float> coefficients(k * expanded_columns(d));
    DeviceBuffer<float> log_density(n);
    DeviceBuffer<double> log_likelihood(likelihood_parts(n));
    DeviceBuffer<std::uint64_t> scratch(mixture_scratch_size(reduce, shape));
    MixtureFit<float> fit;
    while (true) {
        const MixtureStep step{.shape = shape,
                               .expanded = std::as_const(expanded).span(),
                               .weights = std::as_const(weights).span(),
                               .means = std::as_const(means).span(),
                               .variances = std::as_const(variances).span(),
                               .variance_floor = options.variance_floor,
                               .coefficients = coefficients.span(),
                               .log_density = log_density.span(),
                               .log_likelihood = log_likelihood.span(),
                               .new_weights = new_weights.span(),
                               .new_means = new_means.span(),
                               .new_variances = new_variances.span(),
                               .scratch = scratch.span()};
        launch_expectation(reduce, step, nullptr);
        const std::vector<double> parts = log_likelihood.to_host();
        fit.log_likelihood.push_back(std::accumulate(parts.begin(), parts.end(), 0.0));
        fit.has_converged = has_converged(fit.log_likelihood, n, options.tolerance);
        if (fit.has_converged || fit.log_likelihood.size() == options.most_iterations) {
            DeviceBuffer<std::uint32_t> likeliest(n);
            launch_likeliest(reduce, step, likeliest.span(), nullptr);
            fit.likeliest = likeliest.to_host();
            break;
        }
        launch_maximisation(step, nullptr);
        std::swap(weights, new_weights);
        std::swap(means, new_means);
        std::swap(variances, new_variances);
    }
    fit.mixture = {weights.to_host(), means.to_host(), variances.to_host()};
    for (std::size_t i = 0; i < k * d; ++i)
        fit.mixture.means[i] = static_cast<float>(static_cast<double>(fit.mixture.means[i]) + origin[i % d]);
    return fit;
}

// The errors, with u = 2^-24, to first order.
//
// s, the log of a component's density at a point, is a sum of 2 d + 1 products. On its path a term
// is rounded 2 d + 5 times at most: its coefficient, x^2, the product, 2 d + 1 additions, and the
// padding adds zeros without rounding. So its error is (2 d + 5) u times the sum of the terms'
// magnitudes.
//
// The log-sum-exp has the mean of these errors, weighted by responsibilities. Its own exponentials
// and additions are at most 100 roundings for k up to 10,000, as are 2 |x| for each exponent x: weighted by exp(x),
// these are less than 2 log k. The last two roundings, with log(), are relative to the result.
//
// A responsibility exp(s - log_density) has the sum of both errors as its relative error, and
// |exponent| + 3 roundings. Products and sums of 32 of these are rounded 36 times at most; the rest
// is in double. Means and variances have the errors of their quotients, and one last rounding.
MixtureStepOnCpu mixture_step_on_cpu(std::span<const float> points, const Mixture<double>& mixture,
                                     std::size_t d, double variance_floor) {
    constexpr double kUnit = 0x1p-24;
    const std::size_t n = points.size() / d;
    const std::size_t k = mixture.weights.size();
    MixtureStepOnCpu result{.log_density = std::vector<double>(n),
                            .log_density_error = std::vector<double>(n),
                            .likeliest = std::vector<std::uint32_t>(n),
                            .next = mixture};
    std::vector<double> mass(k), mass_error(k), sums(k * d), sum_errors(k * d), squares(k * d),
        square_errors(k * d), s(k), s_error(k);
    for (std::size_t i = 0; i < n; ++i) {
        const auto x = [&](std::size_t c) { return static_cast<double>(points[i * d + c]); };
        double largest = -std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < k; ++j) {
            double constant = std::log(mixture.weights[j]);
            double exponent = 0;
            double magnitude = 0;
            for (std::size_t c = 0; c < d; ++c) {
                const double variance = mixture.variances[j * d + c];
                const double mean = mixture.means[j * d + c];
                constant -= 0.5 * (std::log(2 * std::numbers::pi * variance) + mean * mean / variance);
                exponent += (mean * mean - (x(c) - mean) * (x(c) - mean)) / (2 * variance);
                magnitude += x(c) * x(c) / (2 * variance) + std::abs(x(c) * mean / variance);
            }
            s[j] = constant + exponent;
            s_error[j] = std::isinf(constant)
                             ? 0
                             : (2 * static_cast<double>(d) + 5) * kUnit * (magnitude + std::abs(constant));
            if (s[j] > largest) {
                largest = s[j];
                result.likeliest[i] = static_cast<std::uint32_t>(j);
            }
        }
        double sum = 0;
        for (std::size_t j = 0; j < k; ++j)
            sum += std::exp(s[j] - largest);
        const double log_density = largest + std::log(sum);
        double error = (100 + 2 * std::log(static_cast<double>(k)) + 2 * std::abs(log_density)) * kUnit;
        for (std::size_t j = 0; j < k; ++j)
            error += std::exp(s[j] - log_density) * s_error[j];
        result.log_density[i] = log_density;
        result.log_density_error[i] = error;
        result.log_likelihood += log_density;
        result.log_likelihood_error += error;
        for (std::size_t j = 0; j < k; ++j) {
            const double r = std::exp(s[j] - log_density);
            if (r == 0) continue;
            const double relative = s_error[j] + error + (std::abs(s[j] - log_density) + 3) * kUnit;
            if (r > 1e-6) result.largest_error = std::max(result.largest_error, relative);
            mass[j] += r;
            mass_error[j] += r * relative;
            for (std::size_t c = 0; c < d; ++c) {
                const double difference = x(c) - mixture.means[j * d + c];
                sums[j * d + c] += r * difference;
                sum_errors[j * d + c] += std::abs(r * difference) * (relative + 36 * kUnit);
                squares[j * d + c] += r * difference * difference;
                square_errors[j * d + c] += r * difference * difference * (relative + 36 * kUnit);
            }
        }
    }
    result.next_error = {std::vector<double>(k), std::vector<double>(k * d), std::vector<double>(k * d)};
    for (std::size_t j = 0; j < k; ++j) {
        result.next.weights[j] = mass[j] / static_cast<double>(n);
        result.next_error.weights[j] =
            mass_error[j] / static_cast<double>(n) + kUnit * result.next.weights[j];
        if (mass[j] == 0) continue;
        for (std::size_t i = j * d; i < (j + 1) * d; ++i) {
            const double moved = sums[i] / mass[j];
            const double moved_error = (sum_errors[i] + std::abs(moved) * mass_error[j]) / mass[j];
            const double square = squares[i] / mass[j];
            result.next.means[i] = mixture.means[i] + moved;
            result.next_error.means[i] = moved_error + kUnit * std::abs(result.next.means[i]);
            result.next.variances[i] = std::max(square - moved * moved, variance_floor);
            result.next_error.variances[i] = (square_errors[i] + square * mass_error[j]) / mass[j] +
                                             2 * std::abs(moved) * moved_error +
                                             kUnit * result.next.variances[i];
        }
    }
    return result;
}

MixtureFit<double> fit_mixture_on_cpu(std::span<const float> points, const Mixture<float>& start,
                                      std::size_t d, const MixtureOptions& options) {
    const MixtureShape shape = checked(points, start, d, options);
    MixtureFit<double> fit{.mixture = prepared(start, options.variance_floor)};
    while (true) {
        MixtureStepOnCpu step =
            mixture_step_on_cpu(points, fit.mixture, d, static_cast<double>(options.variance_floor));
        fit.log_likelihood.push_back(step.log_likelihood);
        fit.likeliest = std::move(step.likeliest);
        fit.has_converged = has_converged(fit.log_likelihood, shape.n, options.tolerance);
        if (fit.has_converged || fit.log_likelihood.size() == options.most_iterations) return fit;
        fit.mixture = std::move(step.next);
    }
}

}  // namespace day46

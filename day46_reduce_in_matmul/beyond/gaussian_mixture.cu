// Day 46, beyond: host code of one iteration of expectation-maximisation. The kernels and their
// launches are in gaussian_mixture.cuh.
#include <algorithm>
#include <string_view>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "gaussian_mixture.cuh"

namespace day46 {
namespace {

constexpr std::size_t kPointsOfThread = 32;
constexpr std::size_t kMostLikelihoodParts = 1024;

void require_size(std::size_t size, std::size_t expected, std::string_view name) {
    course::require(size == expected, "mixture step: ", name, " has ", size, " elements; expected ",
                    expected);
}

void check(const MixtureStep& step) {
    const auto [n, k, d] = step.shape;
    course::require(d >= 1 && d <= kMostCoordinates, "mixture step: d is ", d, "; expected 1 to ",
                    kMostCoordinates);
    require_size(step.expanded.size(), n * expanded_columns(d), "expanded");
    require_size(step.weights.size(), k, "weights");
    require_size(step.means.size(), k * d, "means");
    require_size(step.variances.size(), k * d, "variances");
    require_size(step.coefficients.size(), k * expanded_columns(d), "coefficients");
    require_size(step.log_density.size(), n, "log_density");
}

course::DeviceMatrix<const float> expanded_of(const MixtureStep& step) {
    return {step.expanded, step.shape.n, expanded_columns(step.shape.d)};
}

course::DeviceMatrix<float> coefficients_of(const MixtureStep& step) {
    return {step.coefficients, step.shape.k, expanded_columns(step.shape.d)};
}

Parameters parameters_of(const MixtureStep& step) {
    return {step.weights.data(), step.means.data(), step.variances.data()};
}

// A row for each point, a column for each component.
ReducedMatmul log_densities(const MixtureStep& step, Reduction reduction) {
    return {
        .operands = {.a = {expanded_of(step)}, .b = {coefficients_of(step)}, .op_b = course::Op::kTranspose},
        .metric = course::Metric::kDot,
        .reduction = reduction,
        .values = step.log_density,
        .scratch = step.scratch};
}

std::size_t words_of_sums(const MixtureShape& shape) {
    return parts_of_points(shape.n) * shape.k * sums_of_component(shape.d);
}

}  // namespace

std::size_t likelihood_parts(std::size_t n) {
    const std::size_t warps = course::ceil_div<std::size_t>(n, course::kWarpSize * kPointsOfThread);
    return std::clamp<std::size_t>(warps, 1, kMostLikelihoodParts);
}

std::size_t mixture_scratch_size(const Reduce& reduce, const MixtureShape& shape) {
    ReduceShape product{
        .m = shape.n, .n = shape.k, .d = expanded_columns(shape.d), .reduction = Reduction::kLogSumExp};
    const std::size_t of_sums = reduce.launcher.scratch_size(product);
    product.reduction = Reduction::kMax;
    return std::max({of_sums, reduce.launcher.scratch_size(product), words_of_sums(shape)});
}

void launch_expand(course::DeviceMatrix<const float> points, course::DeviceSpan<float> expanded,
                   cudaStream_t stream) {
    const std::size_t columns = expanded_columns(points.cols());
    require_size(expanded.size(), points.rows() * columns, "expanded");
    if (points.rows() == 0) return;
    launch_expand_rows(points, {expanded, points.rows(), columns}, stream);
    CUDA_CHECK_LAUNCH();
}

void launch_expectation(const Reduce& reduce, const MixtureStep& step, cudaStream_t stream) {
    check(step);
    require_size(step.log_likelihood.size(), likelihood_parts(step.shape.n), "log_likelihood");
    if (step.shape.k > 0) {
        launch_make_coefficients(parameters_of(step), step.shape.d, coefficients_of(step), stream);
        CUDA_CHECK_LAUNCH();
    }
    reduce.launcher.launch(log_densities(step, Reduction::kLogSumExp), stream);
    launch_add_log_density(step.log_density, step.log_likelihood, stream);
    CUDA_CHECK_LAUNCH();
}

void launch_maximisation(const MixtureStep& step, cudaStream_t stream) {
    check(step);
    const MixtureShape& shape = step.shape;
    require_size(step.new_weights.size(), shape.k, "new_weights");
    require_size(step.new_means.size(), shape.k * shape.d, "new_means");
    require_size(step.new_variances.size(), shape.k * shape.d, "new_variances");
    course::require(step.scratch.size() >= words_of_sums(shape), "mixture step: scratch has ",
                    step.scratch.size(), " elements; expected at least ", words_of_sums(shape));
    course::require(step.variance_floor > 0, "mixture step: variance_floor is ", step.variance_floor,
                    "; expected more than 0");
    if (shape.n == 0 || shape.k == 0) return;
    auto* const sums = reinterpret_cast<double*>(step.scratch.data());
    launch_add_responsibilities(expanded_of(step), step.means.data(), shape.d, coefficients_of(step),
                                step.log_density, sums, stream);
    CUDA_CHECK_LAUNCH();
    launch_maximise(sums, shape, parameters_of(step), step.variance_floor, step.new_weights.data(),
                    step.new_means.data(), step.new_variances.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void launch_likeliest(const Reduce& reduce, const MixtureStep& step,
                      course::DeviceSpan<std::uint32_t> likeliest, cudaStream_t stream) {
    check(step);
    ReducedMatmul matmul = log_densities(step, Reduction::kMax);
    matmul.indices = likeliest;
    reduce.launcher.launch(matmul, stream);
}

}  // namespace day46

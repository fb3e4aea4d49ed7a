// An iteration of expectation-maximisation, with each version of the expectation.
#include "gaussian_mixture_bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "blobs.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "gaussian_mixture.hpp"

namespace day46 {
namespace {

constexpr float kFloor = 1e-6f;
// Bounds of first order, in units of 2^-23.
constexpr course::Bound kBound{.factor = 1.1 * 0x1p23};

struct Data {
    explicit Data(const MixtureShape& s)
        : shape(s),
          points(make_blobs(s.n, s.k, s.d, 1, 1).points),
          start{std::vector<float>(s.k, 1 / static_cast<float>(s.k)), evenly_chosen(points, s.d, s.k),
                std::vector<float>(s.k * s.d, 4)},
          expected(mixture_step_on_cpu(points,
                                       {{start.weights.begin(), start.weights.end()},
                                        {start.means.begin(), start.means.end()},
                                        {start.variances.begin(), start.variances.end()}},
                                       s.d, static_cast<double>(kFloor))),
          expanded(s.n * expanded_columns(s.d)),
          weights(std::span<const float>(start.weights)),
          means(std::span<const float>(start.means)),
          variances(std::span<const float>(start.variances)),
          coefficients(s.k * expanded_columns(s.d)),
          log_density(s.n),
          log_likelihood(likelihood_parts(s.n)),
          new_weights(s.k),
          new_means(s.k * s.d),
          new_variances(s.k * s.d) {
        const course::DeviceBuffer<float> points_device{std::span<const float>(points)};
        launch_expand(points_device.matrix(s.n, s.d), expanded.span(), nullptr);
    }

    MixtureStep step(course::DeviceBuffer<std::uint64_t>& scratch) {
        return {.shape = shape,
                .expanded = std::as_const(expanded).span(),
                .weights = std::as_const(weights).span(),
                .means = std::as_const(means).span(),
                .variances = std::as_const(variances).span(),
                .variance_floor = kFloor,
                .coefficients = coefficients.span(),
                .log_density = log_density.span(),
                .log_likelihood = log_likelihood.span(),
                .new_weights = new_weights.span(),
                .new_means = new_means.span(),
                .new_variances = new_variances.span(),
                .scratch = scratch.span()};
    }

    void spoil() {
        for (course::GuardedBuffer<float>* buffer : outputs())
            buffer->spoil();
    }

    course::VerifyResult verify() {
        course::VerifyResult result =
            course::verify(log_density.to_host(), expected.log_density, kBound, expected.log_density_error);
        const auto also = [&](const course::GuardedBuffer<float>& got, const std::vector<double>& values,
                              const std::vector<double>& errors) {
            if (result.ok()) result = course::verify(got.to_host(), values, kBound, errors);
        };
        also(new_weights, expected.next.weights, expected.next_error.weights);
        also(new_means, expected.next.means, expected.next_error.means);
        also(new_variances, expected.next.variances, expected.next_error.variances);
        for (course::GuardedBuffer<float>* buffer : outputs())
            result.damage += buffer->damage();
        return result;
    }

    std::vector<course::GuardedBuffer<float>*> outputs() {
        return {&log_density, &new_weights, &new_means, &new_variances};
    }

    MixtureShape shape;
    std::vector<float> points;
    Mixture<float> start;
    MixtureStepOnCpu expected;
    course::DeviceBuffer<float> expanded, weights, means, variances, coefficients;
    course::GuardedBuffer<float> log_density;
    course::DeviceBuffer<double> log_likelihood;
    course::GuardedBuffer<float> new_weights, new_means, new_variances;
};

// 2 d + 1 multiply-adds for each log of a density, and about 2 d for the sums of its
// responsibility. Points are read, and a number of each is written.
course::Work work_of(const MixtureShape& s) {
    const auto n = static_cast<double>(s.n);
    const auto k = static_cast<double>(s.k);
    const auto d = static_cast<double>(s.d);
    const double parameters = k * (2 * d + 1);
    return {.bytes = sizeof(float) * (n * d + n + 2 * parameters),
            .written = sizeof(float) * (n + parameters),
            .flops = n * k * (2 * (2 * d + 1) + 5 * d)};
}

}  // namespace

course::Case make_mixture_case(const course::Dims& dims) {
    if (dims.size() != 3 || dims[0] / 10 < dims[1]) return {};
    const MixtureShape shape{.n = dims[0], .k = dims[1], .d = dims[2]};
    if (static_cast<double>(shape.n) * static_cast<double>(shape.k) * static_cast<double>(shape.d) >
        kMostProducts)
        return {};
    const auto data = std::make_shared<Data>(shape);
    course::Case result{.problem = fmt::format("em_iteration {}", fmt::join(dims, "x")), .dtype = "float"};
    result.spoil = [data] { data->spoil(); };
    result.verify = [data] { return data->verify(); };
    for (const Reduce& version : reduce_versions()) {
        // It has no log-sum-exp on tensor cores.
        if (version.name == "fused_wgmma") continue;
        result.contestants.push_back(
            {.name = version.name,
             .work = work_of(shape),
             .cannot_run = version.cannot_run({}),
             .prepare = [data, &version,
                         words = mixture_scratch_size(version, shape)](course::Contestant& me) {
                 const auto scratch = std::make_shared<course::DeviceBuffer<std::uint64_t>>(words);
                 me.launch = [data, &version, scratch](cudaStream_t stream) {
                     const MixtureStep step = data->step(*scratch);
                     launch_expectation(version, step, stream);
                     launch_maximisation(step, stream);
                 };
             }});
    }
    return result;
}

}  // namespace day46

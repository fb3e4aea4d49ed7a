// Gaussian mixtures by expectation-maximisation (A. Dempster, N. Laird, D. Rubin, "Maximum
// likelihood from incomplete data via the EM algorithm", 1977), with diagonal covariances: a soft
// k-means. Component j has a weight, and a mean and a variance for each coordinate. The density of
// a point x is
//
//     sum over j of weight[j] * product over c of N(x[c]; mean[j][c], variance[j][c])
//
//     expectation     the responsibility of component j for point i is its share of this sum
//     maximisation    weights, means and variances become those of the points, each of which counts
//                     as much as its responsibility
//
// Apart from rounding, neither can make the likelihood of the points smaller.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/device/device_view.hpp"
#include "reduce_in_matmul.hpp"

namespace day46 {

template <class T>
struct Mixture {
    std::vector<T> weights;    // k, sum 1
    std::vector<T> means;      // k vectors of d numbers
    std::vector<T> variances;  // k vectors of d numbers
};

struct MixtureOptions {
    std::size_t most_iterations = 100;
    // It ends when an iteration raises the log-likelihood by less than this, per point.
    double tolerance = 1e-6;
    // A variance is at least this. Without it, a component that has one point, or equal points,
    // would have variance 0 and an infinite density.
    float variance_floor = 1e-6f;
};

// These belong together: log_likelihood.back() is that of the points with this mixture.
template <class T>
struct MixtureFit {
    Mixture<T> mixture;
    std::vector<std::uint32_t> likeliest{};  // the component most responsible for each point
    std::vector<double> log_likelihood{};    // of each iteration, the first one with the start
    bool has_converged = false;
};

// Starts with the mixture `start`. A component whose responsibilities are all 0 keeps its mean and
// variance, has weight 0 from then on, and does not return. The result is the same in every run, to
// the last bit. Points are vectors of d numbers, one after the other. Throws std::invalid_argument
// for points and a start that do not fit together, for d = 0 or above kMostCoordinates, and without
// points, components or iterations. Weights must be finite and at least 0, with a sum above 0;
// variances and the floor finite and above 0; points and means so small that densities are finite.
inline constexpr std::size_t kMostCoordinates = 4096;
MixtureFit<float> fit_mixture(std::span<const float> points, const Mixture<float>& start, std::size_t d,
                              const MixtureOptions& options = {});

// The reference, in double: plain loops, the same rules.
MixtureFit<double> fit_mixture_on_cpu(std::span<const float> points, const Mixture<float>& start,
                                      std::size_t d, const MixtureOptions& options = {});

// --- One iteration, in device memory -----------------------------------------------------------------

// With h = 1 / (2 variance), the log of a component's density is a dot product,
//
//     log(weight * N(x; mean, variance)) = sum of x^2 (-h)  +  sum of x (2 h mean)  +  constant,
//
// of a row of `expanded`, [x^2, x, 1], and a row of `coefficients`. Rows are padded with zeros, so
// that they are 16-byte aligned.
constexpr std::size_t expanded_columns(std::size_t d) {
    return (2 * d + 1 + 3) / 4 * 4;
}

struct MixtureShape {
    std::size_t n = 0, k = 0, d = 0;
};

struct MixtureStep {
    MixtureShape shape;
    course::DeviceSpan<const float> expanded{};   // n x expanded_columns(d)
    course::DeviceSpan<const float> weights{};    // k
    course::DeviceSpan<const float> means{};      // k x d
    course::DeviceSpan<const float> variances{};  // k x d
    float variance_floor = 0;
    course::DeviceSpan<float> coefficients{};     // k x expanded_columns(d), any content
    course::DeviceSpan<float> log_density{};      // n: of each point
    course::DeviceSpan<double> log_likelihood{};  // likelihood_parts(n): partial sums of log_density
    course::DeviceSpan<float> new_weights{};      // k
    course::DeviceSpan<float> new_means{};        // k x d
    course::DeviceSpan<float> new_variances{};    // k x d
    course::DeviceSpan<std::uint64_t> scratch{};  // mixture_scratch_size() elements or more, any content
};

std::size_t likelihood_parts(std::size_t n);
std::size_t mixture_scratch_size(const Reduce& reduce, const MixtureShape& shape);

// Each queues its part on the stream. They throw std::invalid_argument when sizes do not match,
// CudaError if a call to CUDA fails.
void launch_expand(course::DeviceMatrix<const float> points, course::DeviceSpan<float> expanded,
                   cudaStream_t stream);
// Writes coefficients, log_density and log_likelihood.
void launch_expectation(const Reduce& reduce, const MixtureStep& step, cudaStream_t stream);
// Reads coefficients and log_density; writes the new mixture.
void launch_maximisation(const MixtureStep& step, cudaStream_t stream);
// The component with the largest responsibility, of equal ones the first. Reads coefficients;
// overwrites log_density.
void launch_likeliest(const Reduce& reduce, const MixtureStep& step,
                      course::DeviceSpan<std::uint32_t> likeliest, cudaStream_t stream);

// The reference of an iteration, in double. The errors bound the distance of float results that
// start from the same numbers (derivation in gaussian_mixture.cpp).
struct MixtureStepOnCpu {
    std::vector<double> log_density, log_density_error;
    std::vector<std::uint32_t> likeliest;
    Mixture<double> next, next_error{};
    double log_likelihood = 0, log_likelihood_error = 0;
    double largest_error = 0;  // the largest relative error of a responsibility that is not negligible
};
MixtureStepOnCpu mixture_step_on_cpu(std::span<const float> points, const Mixture<double>& mixture,
                                     std::size_t d, double variance_floor);

}  // namespace day46

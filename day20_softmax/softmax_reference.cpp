#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check/require.hpp"
#include "softmax.hpp"

namespace day20 {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A value beyond the range of a float is infinite.
double within_float(double value) {
    return std::abs(value) > std::numeric_limits<float>::max() ? std::copysign(kInfinity, value) : value;
}

// The maximum of the numbers; a NaN makes the sum NaN.
double maximum(std::span<const float> in) {
    double max = -kInfinity;
    for (const float x : in)
        max = std::fmax(max, static_cast<double>(x));
    return max;
}

}  // namespace

void softmax_on_cpu(Output output, std::span<const float> in, std::span<double> out) {
    course::require(in.size() == out.size(), "softmax_on_cpu: in has ", in.size(), " elements and out ",
                    out.size(), "; expected the same number");
    const double max = maximum(in);
    double sum = 0;
    for (const float x : in)
        sum += std::exp(static_cast<double>(x) - max);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double below = static_cast<double>(in[i]) - max;
        out[i] = output == Output::kSoftmax ? std::exp(below) / sum : within_float(below - std::log(sum));
    }
}

// Let u = 2^-24, half the spacing of floats at 1. For an element x, let d = max - x, and p its
// softmax, so its share of the sum. All errors are relative:
// - x - max is rounded; its product with log2(e) (itself rounded) is rounded again: together less
//   than 2.3 u. That changes exp by 2.3 u d. exp2f adds 4 u (two units in the last place).
// - The sum errs by the mean of its terms' errors, weighted with their shares, 2.3 u (sum of p d) +
//   4 u, and by one u for every addition in the longest chain. `online` may rescale at every step:
//   one more product and one more exponential, so 6 u per step.
// - The quotient is a reciprocal and a product: 2 u.
// Log-softmax is (x - max) - log(sum): half a unit for each difference, one for the logarithm, and
// the relative error of the sum becomes an absolute one.
void error_magnitudes(Output output, std::span<const float> in, std::span<const double> expected,
                      std::span<double> magnitude) {
    course::require(in.size() == expected.size() && in.size() == magnitude.size(),
                    "error_magnitudes: in, expected and magnitude have ", in.size(), ", ", expected.size(),
                    " and ", magnitude.size(), " elements; expected the same number");
    // No version adds more numbers one after the other, up to 2^24 elements.
    const double chain = static_cast<double>(std::min<std::size_t>(in.size(), 96));
    const double max = maximum(in);
    double sum = 0;
    double weighted = 0;  // sum of exp(x - max) |x - max|
    for (const float x : in) {
        const double below = static_cast<double>(x) - max;
        const double e = std::exp(below);
        sum += e;
        if (e > 0) weighted += e * -below;
    }
    // Relative error of the sum, and then of each value, in units of 2 epsilon = 4 u.
    const double of_sum = 0.6 * weighted / sum + 1.5 * chain + 2;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double below = max - static_cast<double>(in[i]);
        const double y = std::abs(expected[i]);
        if (!std::isfinite(y)) {
            magnitude[i] = 0;
        } else if (output == Output::kSoftmax) {
            magnitude[i] = y == 0 ? 0 : y * (0.6 * below + of_sum + 3.25);
        } else {
            magnitude[i] = 0.25 * (below + y) + 0.5 * std::log(sum) + of_sum;
        }
    }
}

}  // namespace day20

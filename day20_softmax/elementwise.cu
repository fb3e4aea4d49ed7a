// The host code of day 20's functions of one element, and their expected values. The kernel and its
// launch are in beyond/elementwise.cuh.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "beyond/elementwise.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "elementwise.hpp"

namespace day20 {
namespace {

using course::DeviceSpan;

template <float (*kFunction)(float)>
void launch(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    course::require(in.size() == out.size(), "elementwise: in and out have ", in.size(), " and ", out.size(),
                    " elements; expected the same number");
    course::require(
        in.data() == out.data() || !overlap(in, out),
        "elementwise: out overlaps in but is not in; expected the same elements or none in common");
    if (in.empty()) return;
    launch_apply<kFunction>(in.data(), out.data(), in.size(), stream);
    CUDA_CHECK_LAUNCH();
}

// --- What they should give -----------------------------------------------------------------------

double exact_sigmoid(double x) {
    const double e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

double gelu_argument(double x) {
    return kGeluScale * x * (1 + kGeluCubic * x * x);
}

}  // namespace

std::span<const Elementwise> elementwise_functions() {
    // Roundings: expf errs by at most 1 epsilon, tanhf by 2, erfcf by 4, other operations by 1 / 2.
    // A relative error r of z becomes |z| r in exp(z), at most (2 z^2 + 1) r in erfc(z), z > 0, and
    // |z| (1 - sigmoid(z)) r in sigmoid(z). In gelu_tanh z takes 7 roundings.
    static const std::array<Elementwise, 5> list = {{
        {"relu", "max(x, 0)", launch<relu>, [](double x) { return x < 0 ? 0 : x; },
         [](double) { return 0.0; }},
        {"sigmoid", "1 / (1 + exp(-x))", launch<sigmoid>, exact_sigmoid, [](double) { return 3.0; }},
        {"tanh", "tanh(x)", launch<hyperbolic_tangent>, [](double x) { return std::tanh(x); },
         [](double) { return 2.0; }},
        {"gelu", "x Phi(x)", launch<gelu>,
         [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); },
         [](double x) { return 6 + (x < 0 ? x * x + 1 : 1); }},
        {"gelu_tanh", "x (1 + tanh(t)) / 2", launch<gelu_tanh>,
         [](double x) { return x * exact_sigmoid(gelu_argument(x)); },
         [](double x) {
             const double z = gelu_argument(x);
             return 5 + 3.5 * std::abs(z) * exact_sigmoid(-z);
         }},
    }};
    return list;
}

double error_magnitude(const Elementwise& function, double x) {
    constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
    constexpr double kSmallest = std::numeric_limits<float>::denorm_min();
    const double y = std::abs(function.exact(x));
    if (!std::isfinite(y)) return 0;
    const double lost =
        std::min(std::abs(x), 128.0) * kSmallest / kEpsilon;  // exp(-128) is below the range of a float
    return y * function.roundings(x) + lost;
}

course::Work elementwise_work(std::size_t n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 2 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

}  // namespace day20

// Day 20, warm-up: functions of one element, out[i] = f(in[i]).                              PMPP chapters 2 and 3
//
// One kernel for all of them: the function is a type, and the compiler puts it into the loop. All read 4 and write 4 bytes per
// element, so all take nearly the same time; only gelu has so much arithmetic that it shows. What fuses them with the
// kernel before or after saves all of that time.
//
//   relu        x < 0 ? 0 : x
//   sigmoid     1 / (1 + exp(-x))
//   tanh        tanh(x)
//   gelu        x Phi(x), Phi the normal distribution: x erfc(-x / sqrt(2)) / 2
//   gelu_tanh   x (1 + tanh(t)) / 2, t = sqrt(2 / pi) (x + 0.044715 x^3)
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "elementwise.hpp"

namespace day20 {
namespace {

using course::DeviceSpan;

constexpr int kBlockSize = 256;
constexpr double kGeluCubic = 0.044715;
constexpr double kGeluScale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // 2 sqrt(2 / pi)

// --- Functions -------------------------------------------------------------------------------------------------------

struct Relu {
    __device__ float operator()(float x) const {
        return x < 0 ? 0 : x;
    }  // and NaN stays NaN, unlike with fmaxf
};

// exp() of a number <= 0 cannot overflow, so nothing is lost where sigmoid is tiny.
struct Sigmoid {
    __device__ float operator()(float x) const {
        const float e = expf(-fabsf(x));
        return (x < 0 ? e : 1) / (1 + e);
    }
};

struct Tanh {
    __device__ float operator()(float x) const { return tanhf(x); }
};

// erfc and not 1 + erf, which loses its digits where x is negative.
struct Gelu {
    __device__ float operator()(float x) const {
        return 0.5f * x * erfcf(-x * static_cast<float>(1 / std::numbers::sqrt2));
    }
};

// (1 + tanh(t)) / 2 = sigmoid(2 t), without the loss of digits.
struct GeluTanh {
    __device__ float operator()(float x) const {
        const float cubic = x * (1 + static_cast<float>(kGeluCubic) * x * x);
        return x * Sigmoid()(static_cast<float>(kGeluScale) * cubic);
    }
};

// --- Kernel ----------------------------------------------------------------------------------------------------------

// Idea: the function is a template parameter; every thread does one pack of kWidth neighbours.
// Cost removed: a kernel to write, and to test, for each function.
// Still limits it: memory, for all of them.
template <class Function, int kWidth>
__global__ void apply(const float* in, float* out, std::size_t n) {
    using Values = course::Pack<float, kWidth>;
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::size_t packs = n / kWidth;
    const Function f;
    if (i < packs) {
        Values x = Values::load(in + kWidth * i);
#pragma unroll
        for (int k = 0; k < kWidth; ++k)
            x.value[k] = f(x.value[k]);
        x.store(out + kWidth * i);
    }
    const std::size_t tail = kWidth * packs + i;
    if (tail < n) out[tail] = f(in[tail]);
}

// --- Launcher --------------------------------------------------------------------------------------------------------

template <class Function>
void launch(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    if (in.size() != out.size()) {
        throw std::invalid_argument("elementwise: in and out have " + std::to_string(in.size()) + " and " +
                                    std::to_string(out.size()) + " elements; expected the same number");
    }
    if (in.data() != out.data() && overlap(in, out)) {
        throw std::invalid_argument(
            "elementwise: out overlaps in but is not in; expected the same elements or none in common");
    }
    if (in.empty()) return;
    const bool packs = course::is_aligned(in.data(), 16) && course::is_aligned(out.data(), 16);
    const std::size_t threads = packs ? course::ceil_div<std::size_t>(in.size(), 4) : in.size();
    const auto kernel = packs ? apply<Function, 4> : apply<Function, 1>;
    kernel<<<course::blocks_for(threads, kBlockSize), kBlockSize, 0, stream>>>(in.data(), out.data(),
                                                                               in.size());
    CUDA_CHECK_LAUNCH();
}

// --- What they should give ---------------------------------------------------------------------------------------------

double sigmoid(double x) {
    const double e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

double gelu_argument(double x) {
    return kGeluScale * x * (1 + kGeluCubic * x * x);
}

}  // namespace

std::span<const Elementwise> elementwise_functions() {
    // Roundings: expf, tanhf and the other operations err by at most 1 epsilon each, erfcf by 4. A relative error r of z makes one
    // of |z| r in exp(z), and one of at most (2 z^2 + 1) r in erfc(z), z > 0.
    static const std::array<Elementwise, 5> list = {{
        {"relu", "max(x, 0)", launch<Relu>, [](double x) { return x < 0 ? 0 : x; },
         [](double) { return 0.0; }},
        {"sigmoid", "1 / (1 + exp(-x))", launch<Sigmoid>, sigmoid, [](double) { return 3.0; }},
        {"tanh", "tanh(x)", launch<Tanh>, [](double x) { return std::tanh(x); }, [](double) { return 2.0; }},
        {"gelu", "x Phi(x)", launch<Gelu>,
         [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); },
         [](double x) { return 6 + (x < 0 ? x * x + 1 : 1); }},
        {"gelu_tanh", "x (1 + tanh(t)) / 2", launch<GeluTanh>,
         [](double x) { return x * sigmoid(gelu_argument(x)); },
         [](double x) { return 5 + 3 * std::abs(gelu_argument(x)); }},
    }};
    return list;
}

double error_magnitude(const Elementwise& function, double x) {
    constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
    constexpr double kSmallest = std::numeric_limits<float>::denorm_min();
    const double y = std::abs(function.exact(x));
    if (!std::isfinite(y)) return 0;
    const double lost =
        std::min(std::abs(x), 128.0) * kSmallest / kEpsilon;  // exp(-128) is no float any more
    return y * function.roundings(x) + lost;
}

course::Work elementwise_work(std::size_t n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 2 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

}  // namespace day20

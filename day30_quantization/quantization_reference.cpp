#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "common/check/matrix_arguments.hpp"
#include "quantization.hpp"

namespace day30 {
namespace {

using course::Argument;
using course::require_size;

std::size_t group_of(const Problem& problem, std::size_t i) {
    switch (problem.method.granularity) {
        case Granularity::kTensor:
            return 0;
        case Granularity::kRow:
            return i / problem.cols;
        case Granularity::kColumn:
            return i % problem.cols;
    }
    return 0;
}

void require_sizes(std::string_view function, const Problem& problem, std::size_t in, std::size_t out,
                   std::size_t scale, std::size_t zero_point) {
    require_size(Argument{function, "in"}, in, problem.rows * problem.cols);
    require_size(Argument{function, "out"}, out, in);
    require_size(Argument{function, "scale"}, scale, group_count(problem));
    if (problem.method.scheme == Scheme::kAsymmetric || zero_point != 0)
        require_size(Argument{function, "zero_point"}, zero_point, scale);
}

}  // namespace

template <class T>
void find_parameters_on_cpu(const Problem& problem, std::span<const T> in, std::span<float> scale,
                            std::span<std::int32_t> zero_point) {
    require_sizes("find_parameters_on_cpu", problem, in.size(), in.size(), scale.size(), zero_point.size());
    const bool symmetric = problem.method.scheme == Scheme::kSymmetric;
    std::vector<float> lowest(scale.size(), 0.0f);
    std::vector<float> highest(scale.size(), 0.0f);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::size_t group = group_of(problem, i);
        const auto x = static_cast<float>(in[i]);
        // A NaN stays: no comparison with it is true.
        if (!(x >= lowest[group])) lowest[group] = std::isnan(lowest[group]) ? lowest[group] : x;
        if (!(x <= highest[group])) highest[group] = std::isnan(highest[group]) ? highest[group] : x;
    }
    for (std::size_t group = 0; group < scale.size(); ++group) {
        const float low = lowest[group];
        const float high = highest[group];
        float& s = scale[group];
        s = symmetric ? std::max(high, -low) / 127 : high / 255 + -low / 255;
        if (!std::isfinite(low) || !std::isfinite(high)) s = std::numeric_limits<float>::quiet_NaN();
        if (s < FLT_MIN) s = 0;
        if (zero_point.empty()) continue;
        zero_point[group] =
            s > 0 && !symmetric ? static_cast<std::int32_t>(std::nearbyint(-low / s)) - 128 : 0;
    }
}

template <class T>
void quantize_on_cpu(const Problem& problem, std::span<const T> in, std::span<const float> scale,
                     std::span<const std::int32_t> zero_point, std::span<std::int8_t> out) {
    require_sizes("quantize_on_cpu", problem, in.size(), out.size(), scale.size(), zero_point.size());
    const bool symmetric = problem.method.scheme == Scheme::kSymmetric;
    const auto count = static_cast<std::ptrdiff_t>(in.size());
#pragma omp parallel for if (count > 100000)
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::size_t group = group_of(problem, at);
        const double zero = symmetric ? 0 : zero_point[group];
        const double inverse = std::abs(scale[group]) >= FLT_MIN ? static_cast<double>(1 / scale[group]) : 0;
        const double exact = static_cast<double>(static_cast<float>(in[at])) * inverse;  // 48 bits at most
        const double rounded = std::isnan(exact) ? zero : std::nearbyint(exact) + zero;
        out[at] = static_cast<std::int8_t>(std::clamp(rounded, symmetric ? -127.0 : -128.0, 127.0));
    }
}

void dequantize_on_cpu(const Problem& problem, std::span<const std::int8_t> in, std::span<const float> scale,
                       std::span<const std::int32_t> zero_point, std::span<double> out) {
    require_sizes("dequantize_on_cpu", problem, in.size(), out.size(), scale.size(), zero_point.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::size_t group = group_of(problem, i);
        const int zero = problem.method.scheme == Scheme::kSymmetric ? 0 : zero_point[group];
        out[i] = static_cast<double>(in[i] - zero) * static_cast<double>(scale[group]);
    }
}

#define DAY30_INSTANTIATE(T)                                                                      \
    template void find_parameters_on_cpu<T>(const Problem&, std::span<const T>, std::span<float>, \
                                            std::span<std::int32_t>);                             \
    template void quantize_on_cpu<T>(const Problem&, std::span<const T>, std::span<const float>,  \
                                     std::span<const std::int32_t>, std::span<std::int8_t>);
DAY30_INSTANTIATE(float)
DAY30_INSTANTIATE(__half)
#undef DAY30_INSTANTIATE

}  // namespace day30

// Day 27's program: every version verified and timed, in FP32 and in BF16 (beyond/). A size is
// tokens x hidden x width x experts x chosen. Of a result, up to 64 tokens are compared.
#include <cuda_bf16.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "beyond/grouped.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "mixture_of_experts.hpp"
#include "mixture_of_experts_peer.hpp"

namespace {

using day27::Shape;

constexpr std::size_t kTokensToVerify = 64;  // the CPU would take too long for all of them

// Skewed: each expert is a little less popular than the one before it, so the first have many
// tokens and the last few or none.
std::vector<float> make_logits(const Shape& shape, bool skewed) {
    std::vector<float> logits =
        course::make_data<float>(shape.tokens * shape.experts, course::DataPattern::kNormal, 1);
    for (std::size_t i = 0; skewed && i < logits.size(); ++i)
        logits[i] -= 4 * static_cast<float>(i % shape.experts) / static_cast<float>(shape.experts);
    return logits;
}

// T: of x and the weights. The host has them as floats with the same values.
template <class T>
struct Data {
    Data(const Shape& given, bool skewed)
        : shape(given),
          logits_host(make_logits(given, skewed)),
          logits(std::span<const float>(logits_host)),
          x(make(shape.tokens * shape.hidden, 2, x_host)),
          weights(make(shape.experts * shape.hidden * shape.width, 3, weights_host)),
          out(shape.tokens * shape.width),
          workspace(shape) {}

    static course::DeviceBuffer<T> make(std::size_t size, std::uint64_t seed, std::vector<float>& host) {
        const std::vector<T> values = course::make_data<T>(size, course::DataPattern::kNormal, seed);
        host.assign(values.begin(), values.end());
        return course::DeviceBuffer<T>(std::span<const T>(values));
    }

    day27::LayerOf<T> layer() {
        const Data& inputs = *this;
        return {shape, inputs.logits.span(), inputs.x.span(), inputs.weights.span(), out.span()};
    }

    // Bytes of the weights of experts that no token chose. They need not be loaded.
    double unused_bytes() const {
        const std::vector<int> starts = day27::route_on_cpu(shape, logits_host).starts;
        std::size_t unused = 0;
        for (std::size_t expert = 0; expert < shape.experts; ++expert)
            unused += starts[expert] == starts[expert + 1] ? 1 : 0;
        return static_cast<double>(unused * shape.hidden * shape.width * sizeof(T));
    }

    // The first tokens and the last; all others must not have a NaN.
    course::VerifyResult verify(day27::Sums sums) const {
        const std::vector<float> all = out.to_host();
        const std::size_t checked = std::min(shape.tokens, kTokensToVerify);
        course::VerifyResult result;
        for (const std::size_t first : {std::size_t{0}, shape.tokens - checked / 2}) {
            const std::size_t count = first == 0 ? checked - checked / 2 : checked / 2;
            const day27::Expected expected =
                day27::layer_on_cpu(shape, logits_host, x_host, weights_host, first, count, sums);
            std::vector<double> magnitude = expected.bound;
            for (double& bound : magnitude)
                bound /= course::FloatTraits<float>::kEpsilon;
            const std::vector<float> got(
                all.begin() + static_cast<std::ptrdiff_t>(first * shape.width),
                all.begin() + static_cast<std::ptrdiff_t>((first + count) * shape.width));
            result = course::verify(got, expected.value, {.factor = 1}, magnitude, shape.width);
            if (!result.ok()) return result;
        }
        if (std::ranges::any_of(all, [](float value) { return std::isnan(value); }))
            result.damage += " there are NaN in the result";
        return result;
    }

    Shape shape;
    std::vector<float> logits_host, x_host, weights_host;
    course::DeviceBuffer<float> logits;
    course::DeviceBuffer<T> x, weights;
    course::GuardedBuffer<float> out;
    day27::Workspace workspace;
};

Shape shape_of(const course::Dims& size) {
    course::require(size.size() == 5, "--size has ", size.size(),
                    " extents; expected 5: tokens x hidden x width x experts x chosen, for example "
                    "4096x1024x1024x64x2");
    return {size[0], size[1], size[2], size[3], size[4]};
}

template <class T, class Versions>
course::UsualCase<Data<T>> usual_case(const course::Dims& size, bool skewed, const char* topic,
                                      const char* type, const Versions& versions) {
    const Shape shape = shape_of(size);
    course::UsualCase<Data<T>> usual(
        fmt::format("{} {}{}", topic, day27::name(shape), skewed ? " skewed" : ""), type,
        std::make_shared<Data<T>>(shape, skewed));
    usual.output_in_place(&Data<T>::out, [](const Data<T>& data) {
        return data.verify(std::is_same_v<T, float> ? day27::Sums::kRounded : day27::Sums::kCutOff);
    });
    usual.versions(versions, shape, [](const auto& version, Data<T>& data, cudaStream_t stream) {
        version.launcher(data.layer(), data.workspace, stream);
    });
    const double unused_bytes = usual.data->unused_bytes();
    for (course::Contestant& contestant : usual.result.contestants)
        contestant.work.bytes -= unused_bytes;
    return usual;
}

// The rows in the order of experts are copied only if the peer runs.
template <class T>
std::function<void(course::Contestant&)> prepare_cublas(const std::shared_ptr<Data<T>>& shared) {
    return [shared](course::Contestant& contestant) {
        contestant.launch = day27::make_cublas<T>(shared->layer(), shared->logits_host);
    };
}

template <bool kSkewed>
course::Case make_case(const course::Dims& size) {
    auto usual = usual_case<float>(size, kSkewed, "mixture", "float", day27::versions());
    // In this one the host waits for the counts, so its clock has to time them.
    for (course::Contestant& contestant : usual.result.contestants) {
        contestant.on_host = contestant.name == "sorted";
        contestant.drives_device = contestant.on_host;
    }
    usual.add({.name = "cublas_products",
               .role = course::Role::kPeer,
               .work = usual.result.contestants.front().work,
               .cannot_run = day27::why_no_cublas(),
               .prepare = prepare_cublas(usual.data)});
    return usual.result;
}

template <bool kSkewed>
course::Case make_bfloat16_case(const course::Dims& size) {
    auto usual = usual_case<__nv_bfloat16>(size, kSkewed, "mixture_bfloat16", "bfloat16 to float",
                                           day27::grouped_versions());
    const course::Work work = usual.result.contestants.front().work;
    usual.add({.name = "cublas_products",
               .role = course::Role::kPeer,
               .work = work,
               .cannot_run = day27::why_no_cublas(),
               .prepare = prepare_cublas(usual.data)});
    usual.add({.name = "cublas_grouped_to_bfloat16",
               .role = course::Role::kPeer,
               .work = work,
               .cannot_run = day27::why_no_grouped_cublas(usual.data->shape),
               .verify =
                   [shared = usual.data] {
                       course::VerifyResult result = shared->verify(day27::Sums::kCutOffToBfloat16);
                       result.damage += shared->out.damage();
                       return result;
                   },
               .prepare =
                   [shared = usual.data](course::Contestant& contestant) {
                       contestant.launch = day27::make_grouped_cublas(shared->layer(), shared->logits_host);
                   }});
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day27_mixture_of_experts",
        .title = "a layer of a mixture of experts: each token is multiplied by the matrices that it chose",
        .default_size = {100, 48, 80, 8, 2},
        .bench_sizes = {{4096, 1024, 1024, 64, 2},
                        {4096, 1024, 1024, 8, 2},
                        {16384, 1024, 1024, 64, 8},
                        {64, 1024, 1024, 64, 2}},
        .make_cases = {make_case<false>, make_case<true>, make_bfloat16_case<false>,
                       make_bfloat16_case<true>},
        .stand_in_limit = std::size_t{1} << 27};
    return course::run_program(program, argc, argv);
}

// Day 27's program: every version verified and timed. A size is tokens x hidden x width x experts x
// chosen. Of a result, up to 64 tokens are compared.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

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

struct Data {
    Data(const Shape& given, bool skewed)
        : shape(given),
          logits_host(make_logits(given, skewed)),
          x_host(course::make_data<float>(shape.tokens * shape.hidden, course::DataPattern::kNormal, 2)),
          weights_host(course::make_data<float>(shape.experts * shape.hidden * shape.width,
                                                course::DataPattern::kNormal, 3)),
          logits(std::span<const float>(logits_host)),
          x(std::span<const float>(x_host)),
          weights(std::span<const float>(weights_host)),
          out(shape.tokens * shape.width),
          workspace(shape) {}

    day27::Layer layer() {
        const Data& inputs = *this;
        return {shape, inputs.logits.span(), inputs.x.span(), inputs.weights.span(), out.span()};
    }

    // The first tokens and the last; all others must not have a NaN.
    course::VerifyResult verify() const {
        const std::vector<float> all = out.to_host();
        const std::size_t checked = std::min(shape.tokens, kTokensToVerify);
        course::VerifyResult result;
        for (const std::size_t first : {std::size_t{0}, shape.tokens - checked / 2}) {
            const std::size_t count = first == 0 ? checked - checked / 2 : checked / 2;
            const day27::Expected expected =
                day27::layer_on_cpu(shape, logits_host, x_host, weights_host, first, count);
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
    course::DeviceBuffer<float> logits, x, weights;
    course::GuardedBuffer<float> out;
    day27::Workspace workspace;
};

template <bool kSkewed>
course::Case make_case(const course::Dims& size) {
    course::require(size.size() == 5, "--size has ", size.size(),
                    " extents; expected 5: tokens x hidden x width x experts x chosen, for example "
                    "4096x1024x1024x64x2");
    const Shape shape{size[0], size[1], size[2], size[3], size[4]};
    course::UsualCase<Data> usual(fmt::format("mixture {}{}", day27::name(shape), kSkewed ? " skewed" : ""),
                                  "float", std::make_shared<Data>(shape, kSkewed));
    usual.output_in_place(&Data::out, [](const Data& data) { return data.verify(); });
    usual.versions(day27::versions(), shape,
                   [](const day27::Version& version, Data& data, cudaStream_t stream) {
                       version.launcher(data.layer(), data.workspace, stream);
                   });
    // In this one the host waits for the counts, so its clock has to time them.
    for (course::Contestant& contestant : usual.result.contestants)
        contestant.on_host = contestant.drives_device = contestant.name == "sorted";
    Data& data = *usual.data;
    usual.add({.name = "cublas_products",
               .role = course::Role::kPeer,
               .launch = day27::make_cublas(data.layer(), data.logits_host),
               .work = day27::versions().front().work(shape),
               .cannot_run = day27::why_no_cublas()});
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
        .make_cases = {make_case<false>, make_case<true>},
        .stand_in_limit = std::size_t{1} << 27};
    return course::run_program(program, argc, argv);
}

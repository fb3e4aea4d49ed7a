// Day 28's program: every version of every pass, verified and timed. A size is
// N x C x H x W x K x R x stride; filters are R x R, and the padding is R / 2.
//
//     day28_conv_layers --size 64x64x56x56x64x3x1
//
// Each size is five cases: forward, backward_input and backward_weights in FP32, NCHW; forward_tf32
// and forward_bf16 on tensor cores, NHWC.
#include <cuda_bf16.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "conv_layers.hpp"
#include "conv_layers_plain_loop.hpp"
#include "conv_verify.hpp"

namespace {

using course::DataPattern;
using day28::Pass;
using day28::Shape;

Shape shape_of(const course::Dims& size) {
    course::require(size.size() == 7, "size has ", size.size(),
                    " numbers; expected seven, N x C x H x W x K x R x stride, for example 2x8x12x12x8x3x1");
    course::require(std::ranges::max(size) <= 32768, "size has ", std::ranges::max(size),
                    "; expected at most 32768");
    const auto at = [&](std::size_t i) { return static_cast<int>(size[i]); };
    return {.n = at(0),
            .c = at(1),
            .h = at(2),
            .w = at(3),
            .k = at(4),
            .r = at(5),
            .s = at(5),
            .padding = at(5) / 2,
            .stride = at(6)};
}

std::string problem(std::string_view what, const Shape& s) {
    return fmt::format("{} {}x{}x{}x{}x{}x{}x{}", what, s.n, s.c, s.h, s.w, s.k, s.r, s.stride);
}

struct PassData {
    PassData(Pass pass, const Shape& s)
        : shape(s),
          a_host(course::make_data<float>(lengths(pass, s).a, DataPattern::kNormal, 1)),
          b_host(course::make_data<float>(lengths(pass, s).b, DataPattern::kNormal, 2)),
          reference(pass, s, a_host, b_host),
          a(std::span<const float>(a_host)),
          b(std::span<const float>(b_host)),
          out(lengths(pass, s).out) {
        std::size_t floats = 0;
        for (const day28::Version& version : day28::versions(pass))
            if (version.cannot_run(s).empty()) floats = std::max(floats, version.launcher.scratch_floats(s));
        scratch = course::DeviceBuffer<float>(floats);
    }

    Shape shape;
    std::vector<float> a_host;
    std::vector<float> b_host;
    day28::Reference reference;
    course::DeviceBuffer<float> a;
    course::DeviceBuffer<float> b;
    course::GuardedBuffer<float> out;
    course::DeviceBuffer<float> scratch;
};

course::Case pass_case(Pass pass, const course::Dims& size) {
    const Shape shape = shape_of(size);
    course::UsualCase<PassData> usual(problem(name(pass), shape), "float",
                                      std::make_shared<PassData>(pass, shape));
    usual.also_spoil([](PassData& d) { d.out.spoil(); });
    usual.versions(
        day28::versions(pass), shape,
        [](const day28::Version& version, PassData& d, cudaStream_t stream) {
            version.launcher.run(d.shape, d.a.span(), d.b.span(), d.out.span(), d.scratch.span(), stream);
        },
        [](const day28::Version& version, PassData& d) {
            course::VerifyResult result = d.reference.verify(d.out.to_host(), version.launcher.winograd);
            result.damage = d.out.damage();
            return result;
        });
    if (pass == Pass::kForward) {
        const course::Work work = day28::versions(pass).front().work(shape);
        usual.plain_loop(
            work, work.flops * 2e-10, [count = outputs(shape)] { return course::unwritten<float>(count); },
            [](const PassData& d, std::span<float> out, int threads) {
                day28::forward_plainly(d.shape, d.a_host, d.b_host, out, threads);
            },
            [data = usual.data](const PassData&, const auto& out) { return data->reference.verify(out, 0); });
    }
    return usual.result;
}

template <class T>
struct TensorCoreData {
    explicit TensorCoreData(const Shape& s)
        : shape(s),
          reference(s, course::make_data<float>(inputs(s), DataPattern::kNormal, 1),
                    course::make_data<float>(weights(s), DataPattern::kNormal, 2)),
          x(std::span<const T>(reference.x)),
          w(std::span<const T>(reference.w)),
          y(outputs(s)) {}

    Shape shape;
    day28::TensorCoreReference<T> reference;
    course::DeviceBuffer<T> x;
    course::DeviceBuffer<T> w;
    course::GuardedBuffer<T> y;
};

template <class T>
course::Case tensor_core_case(const course::Dims& size) {
    using Data = TensorCoreData<T>;
    const Shape shape = shape_of(size);
    const bool floats = std::is_same_v<T, float>;
    course::UsualCase<Data> usual(problem(floats ? "forward_tf32" : "forward_bf16", shape),
                                  floats ? "tf32" : "bfloat16", std::make_shared<Data>(shape));
    usual.output(&Data::y, [](const Data& d, const std::vector<T>& got) { return d.reference.verify(got); });
    usual.versions(day28::tensor_core_versions<T>(), shape,
                   [](const day28::TensorCoreVersion<T>& version, Data& d, cudaStream_t stream) {
                       version.launcher.run(d.shape, d.x.span(), d.w.span(), d.y.span(), {}, stream);
                   });
    return usual.result;
}

// N x C x H x W x K x R x stride; C and K are multiples of `multiple`.
course::DrawnSize draw_layer(course::Draw& draw, std::size_t multiple) {
    const auto r = draw.one_of<std::size_t>({1, 1, 3, 3, 5, 7});
    const auto kind = draw.one_of<const char*>({"any", "first layer", "few pixels", "odd"});
    const auto is = [kind](const char* one) { return kind == std::string_view(one); };
    const auto channels = [&] { return draw.jittered(draw.log_uniform(8, 1024)); };
    const std::size_t side =
        draw.jittered(is("few pixels") ? draw.log_uniform(1, 14) : draw.log_uniform(7, 256));
    std::size_t c = is("first layer") ? draw.one_of<std::size_t>({1, 3, 4}) : channels();
    std::size_t k = channels();
    if (is("odd")) {
        c |= 1;
        k |= 1;
    }
    const auto groups = [multiple](std::size_t n) { return std::max<std::size_t>(n / multiple, 1); };
    course::Dims size = draw.fitted({draw.log_uniform(1, 256), groups(c), side, side, groups(k)},
                                    r * r * multiple * multiple);
    for (const std::size_t channels_at : {1, 4})
        size[channels_at] *= multiple;
    size.push_back(r);
    size.push_back(draw.one_of<std::size_t>({1, 1, 1, 2}));
    return {std::to_string(r) + "x" + std::to_string(r) + ", " + kind, size};
}

course::Distribution layers(const std::string& name, const std::vector<std::string>& ours,
                            const std::function<course::Case(const course::Dims&)>& make,
                            std::size_t multiple = 1) {
    return {
        .name = name,
        .text = "N x C x H x W x K x R x stride, R from 1 to 7: any, first layer, few pixels, odd" +
                (multiple == 1 ? std::string() : "; C and K are multiples of " + std::to_string(multiple)),
        .most = std::size_t{1} << 34,
        .most_on_cpu = 1 << 21,
        .ours = ours,
        .draw = [make, multiple](course::Draw& draw) -> course::RandomProblem {
            const auto [kind, size] = draw_layer(draw, multiple);
            return {kind, size, [size = size, make] { return make(size); }};
        }};
}

}  // namespace

int main(int argc, char** argv) {
    course::Program program{
        .day = "day28_conv_layers",
        .title = "convolutional layers: N images of C x H x W, K filters of R x R, padding R / 2",
        .default_size = {2, 8, 12, 12, 8, 3, 1},
        // The four 3 x 3 layers of ResNet-50, its first layer, one before a stride; LeNet-5's
        // first.
        .bench_sizes = {{64, 64, 56, 56, 64, 3, 1},
                        {64, 128, 28, 28, 128, 3, 1},
                        {64, 256, 14, 14, 256, 3, 1},
                        {64, 512, 7, 7, 512, 3, 1},
                        {64, 3, 224, 224, 64, 7, 2},
                        {64, 64, 112, 112, 64, 3, 2},
                        {64, 1, 28, 28, 6, 5, 1},
                        {1024, 1, 28, 28, 6, 5, 1}},
        .make_cases = {}};
    for (const Pass pass : day28::kPasses)
        program.make_cases.push_back([pass](const course::Dims& size) { return pass_case(pass, size); });
    program.distributions = {
        layers("forward", {"winograd_4x4", "implicit_gemm", "implicit_tiled"},
               [](const course::Dims& size) { return pass_case(Pass::kForward, size); }),
        layers("input gradients", {"winograd_4x4", "few_channels", "implicit_gemm", "direct"},
               [](const course::Dims& size) { return pass_case(Pass::kBackwardInput, size); }),
        layers("weight gradients", {"winograd_4x4", "split_k"},
               [](const course::Dims& size) { return pass_case(Pass::kBackwardWeights, size); }),
        layers("forward tf32", {"implicit_gemm"}, tensor_core_case<float>, 8),
        layers("forward bf16", {"tma_wgmma", "implicit_gemm"}, tensor_core_case<__nv_bfloat16>, 8)};
    program.make_cases.push_back(tensor_core_case<float>);
    program.make_cases.push_back(tensor_core_case<__nv_bfloat16>);
    return course::run_program(program, argc, argv);
}

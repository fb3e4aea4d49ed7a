// Day 32's program. A size is tokens x outputs x inputs: a layer without and one with outlier
// columns, by every version and by cuBLAS in half; the error of each is measured against exact
// arithmetic.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/relative_error.hpp"
#include "common/check/sampled_rows.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "llm_int8.hpp"
#include "llm_int8_peer.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::Role;

constexpr std::size_t kSample = 64;                          // tokens that are verified
constexpr std::size_t kMostForPlain = std::size_t{1} << 36;  // multiply-adds

std::string cannot_run(const day32::Version& version, const day32::LayerShape& shape) {
    if (version.launcher.needs_aligned_rows && shape.inputs % 16 != 0)
        return "needs rows of a multiple of 16 bytes";
    if (version.name == "plain" && shape.tokens * shape.outputs * shape.inputs > kMostForPlain)
        return "it would take long";
    return version.cannot_run(shape);
}

struct LayerData {
    LayerData(const day32::LayerShape& s, std::size_t outlier_columns)
        : shape(s),
          x(course::make_data<__half>(s.tokens * s.inputs, DataPattern::kNormal, 1)),
          w(course::make_data<__half>(s.outputs * s.inputs, DataPattern::kNormal, 2)),
          x_device(x.size()),
          w_device(std::span<const __half>(w)),
          w8(w.size()),
          w_scale(s.outputs),
          y(s.tokens * s.outputs),
          sample(course::sampled_rows(s.tokens, kSample)) {
        // As in trained models: a few columns, large in nearly every token.
        course::Random random(3);
        for (std::size_t i = 0; i < outlier_columns; ++i) {
            const std::size_t column = i * s.inputs / outlier_columns + s.inputs / (2 * outlier_columns);
            for (std::size_t token = 0; token < s.tokens; ++token)
                x[token * s.inputs + column] = __half(random.normal() * 3 + (i % 2 == 0 ? 40.0f : -40.0f));
        }
        x_device.copy_from(x);
        const std::vector<std::uint16_t> all(s.inputs, 0xffff);
        const DeviceBuffer<std::uint16_t> keep{std::span<const std::uint16_t>(all)};
        day32::quantize_kept_columns(w_device.matrix(s.outputs, s.inputs), keep.span(),
                                     w8.matrix(s.outputs, s.inputs), w_scale.span(), nullptr);
        sampled_x = course::rows_of<__half>(x, sample, s.inputs);
        exact.resize(sample.size() * s.outputs);
        day32::linear_on_cpu(sampled_layer(0), exact);
    }

    day32::HostLayer sampled_layer(float threshold) const {
        return {{sample.size(), shape.outputs, shape.inputs}, threshold, sampled_x, w};
    }

    std::vector<__half> result() const { return course::rows_of<__half>(y.to_host(), sample, shape.outputs); }

    day32::LayerShape shape;
    std::vector<__half> x, w;
    DeviceBuffer<__half> x_device, w_device;
    DeviceBuffer<std::int8_t> w8;
    DeviceBuffer<float> w_scale;
    GuardedBuffer<__half> y;
    std::vector<std::size_t> sample;
    std::vector<__half> sampled_x;
    std::vector<double> exact;
};

course::Case make_layer(const course::Dims& size, bool with_outliers) {
    if (size.size() != 3)
        throw std::invalid_argument("expected tokens x outputs x inputs, for example 512x1024x2048");
    const day32::LayerShape shape{size[0], size[1], size[2]};
    const std::size_t outliers = with_outliers ? std::max<std::size_t>(1, shape.inputs / 600) : 0;
    const auto data = std::make_shared<LayerData>(shape, outliers);
    course::Case result{.problem = "llm_int8 " + std::to_string(shape.tokens) + "x" +
                                   std::to_string(shape.outputs) + "x" + std::to_string(shape.inputs) +
                                   (with_outliers ? " with outliers" : " without outliers"),
                        .dtype = "half"};
    result.spoil = [data] { data->y.spoil(); };

    const auto figures_with = [data](std::optional<double> columns) {
        std::vector<double> got;
        for (const __half y : data->result())
            got.push_back(static_cast<double>(static_cast<float>(y)));
        const course::RelativeError error = course::relative_error(data->exact, got);
        course::Figures figures = {{"relative error", error.root_mean_square},
                                   {"largest error", error.largest}};
        if (columns) figures.insert(figures.begin(), {"outlier columns", *columns});
        return figures;
    };
    struct Row {
        std::string name;
        const day32::Version* version;
        float threshold;
    };
    std::vector<Row> rows;
    for (const day32::Version& version : day32::versions())
        rows.push_back({version.name, &version, day32::kThreshold});
    rows.push_back({"fused_no_threshold", rows.back().version, std::numeric_limits<float>::infinity()});
    for (const Row& row : rows) {
        const auto workspace =
            std::make_shared<DeviceBuffer<std::byte>>(row.version->launcher.workspace(shape));
        struct Expected {
            std::vector<std::uint32_t> columns;
            std::vector<double> y, allowed;
        };
        const auto expected = std::make_shared<Expected>();
        expected->columns = day32::outlier_columns_on_cpu({shape, row.threshold, data->x, data->w});
        expected->y.resize(data->exact.size());
        expected->allowed.resize(data->exact.size());
        day32::llm_int8_on_cpu(data->sampled_layer(row.threshold), expected->columns, expected->y,
                               expected->allowed);
        for (double& bound : expected->allowed)
            bound /= course::FloatTraits<__half>::kEpsilon;
        const auto [tokens, outputs, inputs] = shape;
        const day32::Layer layer{data->x_device.matrix(tokens, inputs),
                                 data->w_device.matrix(outputs, inputs),
                                 data->w8.matrix(outputs, inputs),
                                 data->w_scale.span(),
                                 data->y.matrix(tokens, outputs),
                                 workspace->span(),
                                 row.threshold};
        result.contestants.push_back(
            {.name = row.name,
             .launch = [layer, workspace, version = row.version](
                           cudaStream_t stream) { version->launcher.launch(layer, stream); },
             .work = row.version->work(shape),
             .cannot_run = cannot_run(*row.version, shape),
             .verify =
                 [data, expected] {
                     course::VerifyResult verified = course::verify(
                         data->result(), expected->y, {.factor = 1}, expected->allowed, data->shape.outputs);
                     verified.damage = data->y.damage();
                     return verified;
                 },
             .resources = row.version->launcher.resources,
             .figures = [=] { return figures_with(static_cast<double>(expected->columns.size())); }});
    }
    const auto verify_half = [data] {
        // Summed in float, in any order, and rounded to half.
        std::vector<double> magnitude;
        for (const double y : data->exact)
            magnitude.push_back(std::abs(y) + 0x1p-13 * std::sqrt(static_cast<double>(data->shape.inputs)) *
                                                  static_cast<double>(data->shape.inputs));
        course::VerifyResult verified =
            course::verify(data->result(), data->exact, {.factor = 1}, magnitude, data->shape.outputs);
        verified.damage = data->y.damage();
        return verified;
    };
    const auto [tokens, outputs, inputs] = shape;
    result.contestants.push_back({.name = "cublas_half",
                                  .role = Role::kPeer,
                                  .launch = day32::make_cublas_half(data->x_device.matrix(tokens, inputs),
                                                                    data->w_device.matrix(outputs, inputs),
                                                                    data->y.matrix(tokens, outputs)),
                                  .work = day32::half_layer_work(shape),
                                  .cannot_run = day32::why_no_cublas(),
                                  .verify = verify_half,
                                  .figures = [=] { return figures_with(std::nullopt); }});
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day32_llm_int8",
        .title = "LLM.int8()",
        .default_size = {256, 256, 256},
        .bench_sizes = {{4096, 4096, 4096}, {8192, 8192, 8192}},
        .make_cases = {[](const course::Dims& size) { return make_layer(size, false); },
                       [](const course::Dims& size) { return make_layer(size, true); }}};
    return course::run_program(program, argc, argv);
}

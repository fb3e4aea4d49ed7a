// Day 30's program. A size of two numbers is a matrix to quantise, rows x columns; one of three is a layer, tokens x outputs x inputs:
// X is quantised, the int8 product and the layer are run, and the layer's error is measured against exact arithmetic.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "blockwise.hpp"
#include "common/bench/program.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "int8_matmul.hpp"
#include "llm_int8.hpp"
#include "quantization.hpp"
#include "quantization_peer.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::Role;
using day30::Granularity;
using day30::Method;
using day30::Scheme;

constexpr std::size_t kMostFromHost = std::size_t{1} << 24;  // elements; more would take long to repeat
constexpr std::size_t kSample = 64;                          // rows of a product that are checked

std::string dims(std::initializer_list<std::size_t> sizes) {
    std::string text;
    for (const std::size_t size : sizes)
        text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
}

void require_dims(const course::Dims& size) {
    if (size.size() != 2 && size.size() != 3)
        throw std::invalid_argument(
            "expected rows x columns or tokens x outputs x inputs, for example 512x1024x2048");
}

// --- Quantisation -----------------------------------------------------------------------------------------------------------

// The limit: a copy that reads and writes as many bytes together.
course::Contestant copy_of(double bytes, std::shared_ptr<void> owner) {
    const auto half = static_cast<std::size_t>(bytes / 2);
    const auto from = std::make_shared<DeviceBuffer<std::byte>>(half);
    const auto to = std::make_shared<DeviceBuffer<std::byte>>(half);
    return {.name = "cudaMemcpy",
            .role = Role::kLimit,
            .launch =
                [from, to, owner](cudaStream_t stream) {
                    CUDA_CHECK(cudaMemcpyAsync(to->data(), from->data(), from->bytes(),
                                               cudaMemcpyDeviceToDevice, stream));
                },
            .work = {.bytes = bytes, .written = bytes / 2}};
}

template <class T>
struct QuantizationData {
    explicit QuantizationData(const day30::Problem& p)
        : problem(p),
          in(course::make_data<T>(p.rows * p.cols, DataPattern::kNormal, 1)),
          scale(day30::group_count(p)),
          zero_point(p.method.scheme == Scheme::kAsymmetric ? scale.size() : 0),
          q(in.size()),
          in_device(std::span<const T>(in)),
          out_device(in.size()),
          scale_device(scale.size()),
          zero_device(zero_point.size()) {
        day30::find_parameters_on_cpu<T>(p, in, scale, zero_point);
        day30::quantize_on_cpu<T>(p, in, scale, zero_point, q);
    }

    course::VerifyResult verify(const std::vector<std::int8_t>& got,
                                const std::vector<float>& got_scale) const {
        course::VerifyResult result = course::verify_exact(got, q, problem.cols);
        const std::vector<double> exact(scale.begin(), scale.end());
        const course::VerifyResult of_scale = course::verify(got_scale, exact, {.factor = 0});
        if (!of_scale.ok()) result.damage += " scale: " + of_scale.message();
        return result;
    }

    course::VerifyResult verify_device() const {
        course::VerifyResult result = verify(out_device.to_host(), scale_device.to_host());
        const course::VerifyResult of_zero_point = course::verify_exact(zero_device.to_host(), zero_point);
        if (!of_zero_point.ok()) result.damage += " zero point: " + of_zero_point.message();
        result.damage += out_device.damage() + scale_device.damage() + zero_device.damage();
        return result;
    }

    day30::Problem problem;
    std::vector<T> in;
    std::vector<float> scale;
    std::vector<std::int32_t> zero_point;
    std::vector<std::int8_t> q;
    DeviceBuffer<T> in_device;
    GuardedBuffer<std::int8_t> out_device;
    GuardedBuffer<float> scale_device;
    GuardedBuffer<std::int32_t> zero_device;
    std::vector<std::int8_t> on_host;
    std::vector<float> scale_on_host;
};

template <class T>
course::Case make_quantization(const course::Dims& size, Method method) {
    require_dims(size);
    const day30::Problem problem{size.front(), size.back(), method};
    if (problem.rows * problem.cols > std::size_t{1} << 26 &&
        (!std::is_same_v<T, __half> || method.granularity != Granularity::kRow ||
         method.scheme != Scheme::kSymmetric))
        return {};  // the largest matrices take the host long to check
    const auto data = std::make_shared<QuantizationData<T>>(problem);
    const std::string type = std::is_same_v<T, float> ? "float" : "half";
    course::Case result{
        .problem = "quantize " + type + " " + dims({problem.rows, problem.cols}) + " " + day30::name(method),
        .dtype = type + " to int8"};
    result.spoil = [data] {
        data->out_device.spoil();
        data->scale_device.spoil();
        data->zero_device.spoil();
        data->on_host.clear();
    };
    result.verify = [data] { return data->verify_device(); };
    const course::Work work = day30::variants<T>().front().work(problem);
    if (method.granularity == Granularity::kRow && method.scheme == Scheme::kSymmetric) {
        result.contestants.push_back(
            {.name = "host_pointers",
             .launch =
                 [data](cudaStream_t) {
                     data->on_host.resize(data->q.size());
                     data->scale_on_host.resize(data->scale.size());
                     day30::quantize_rows_of_host<T>(data->problem.rows, data->problem.cols, data->in,
                                                     data->on_host, data->scale_on_host);
                 },
             .work = work,
             .cannot_run = problem.rows * problem.cols <= kMostFromHost ? "" : "it would take long",
             .verify = [data] { return data->verify(data->on_host, data->scale_on_host); }});
    }
    for (const auto& variant : day30::variants<T>()) {
        if (variant.name == "auto") continue;
        result.contestants.push_back({.name = variant.name,
                                      .launch =
                                          [data, &variant](cudaStream_t stream) {
                                              const auto [rows, cols, how] = data->problem;
                                              variant.launcher(how, data->in_device.matrix(rows, cols),
                                                               data->out_device.matrix(rows, cols),
                                                               data->scale_device.span(),
                                                               data->zero_device.span(), stream);
                                          },
                                      .work = work,
                                      .cannot_run = variant.cannot_run(problem)});
    }
    result.contestants.push_back(copy_of(work.bytes, data));
    return result;
}

// --- Blocks ---------------------------------------------------------------------------------------------------------------------

constexpr day30::BlockFormat kFormats[] = {
    {day30::Code::kInt8, 32}, {day30::Code::kInt4, 32}, {day30::Code::kInt4, 128}, {day30::Code::kNf4, 64}};

struct BlockData {
    BlockData(std::size_t r, std::size_t c)
        : rows(r),
          cols(c),
          in(course::make_data<__half>(r * c, DataPattern::kNormal, 1)),
          in_device(std::span<const __half>(in)),
          codes(r * c),
          scales(r * c),
          out(r * c) {}

    std::size_t rows, cols;
    std::vector<__half> in;
    DeviceBuffer<__half> in_device;
    GuardedBuffer<std::uint8_t> codes;
    GuardedBuffer<float> scales;
    GuardedBuffer<__half> out;
};

// What a format's codes mean, against what they were made from; and both ways, timed.
course::Case make_blocks(const course::Dims& size, bool back) {
    const std::size_t rows = size.front();
    const std::size_t cols = size.back();
    if (rows * cols > std::size_t{1} << 25) return {};
    const auto data = std::make_shared<BlockData>(rows, cols);
    course::Case result{
        .problem = (back ? "dequantize_blocks half " : "quantize_blocks half ") + dims({rows, cols}),
        .dtype = "half and codes"};
    result.spoil = [data, back] {
        if (back) {
            data->out.spoil();
        } else {
            data->codes.spoil();
            data->scales.spoil();
        }
    };
    for (const day30::BlockFormat& format : kFormats) {
        const std::size_t bytes = format.bytes(cols);
        const std::size_t count = format.scales(cols);
        const auto codes_of = [=] {
            return course::DeviceMatrix<std::uint8_t>(data->codes.span(), rows, bytes);
        };
        const auto scales_of = [=] { return course::DeviceMatrix<float>(data->scales.span(), rows, count); };
        const auto quantize = [=](cudaStream_t stream) {
            day30::quantize_blocks<__half>(format, data->in_device.matrix(rows, cols), codes_of(),
                                           scales_of(), stream);
        };
        struct Expected {
            std::vector<std::uint8_t> codes;
            std::vector<float> scales;
            std::vector<double> back;
        };
        const auto expected = std::make_shared<Expected>();
        expected->codes.resize(rows * bytes);
        expected->scales.resize(rows * count);
        expected->back.resize(rows * cols);
        day30::quantize_blocks_on_cpu<__half>(format, rows, cols, data->in, expected->codes,
                                              expected->scales);
        day30::dequantize_blocks_on_cpu(format, rows, cols, expected->codes, expected->scales,
                                        expected->back);
        const auto figures = [=] {
            std::vector<double> exact(rows * cols);
            std::ranges::transform(data->in, exact.begin(),
                                   [](__half x) { return double{static_cast<float>(x)}; });
            return course::Figures{
                {"bits per value", 8.0 * static_cast<double>(bytes + 4 * count) / static_cast<double>(cols)},
                {"relative error", day30::relative_error(exact, expected->back).root_mean_square}};
        };
        const auto verify_codes = [=] {
            std::vector<std::uint8_t> codes = data->codes.to_host();
            codes.resize(rows * bytes);
            std::vector<float> scales = data->scales.to_host();
            scales.resize(rows * count);
            course::VerifyResult verified = course::verify_exact(codes, expected->codes, bytes);
            if (scales != expected->scales) verified.damage += " the scales differ";
            verified.damage += data->codes.damage() + data->scales.damage();
            return verified;
        };
        const auto verify_values = [=] {
            std::vector<double> magnitude(rows * cols);
            std::ranges::transform(expected->back, magnitude.begin(), [](double x) { return std::abs(x); });
            course::VerifyResult verified =
                course::verify(data->out.to_host(), expected->back, {.factor = 1}, magnitude, cols);
            verified.damage += data->out.damage();
            return verified;
        };
        course::Contestant contestant{
            .name = day30::name(format.code) + "_blocks_of_" + std::to_string(format.block),
            .work = day30::quantize_blocks_work(format, rows, cols, sizeof(__half)),
            .figures = figures};
        if (back) {
            contestant.work.written = sizeof(__half) * static_cast<double>(rows * cols);
            // Each contestant's codes are made before it first runs.
            contestant.launch = [=, made = std::make_shared<bool>(false)](cudaStream_t stream) {
                if (!*made) quantize(stream);
                *made = true;
                day30::dequantize_blocks<__half>(format, codes_of(), scales_of(),
                                                 data->out.matrix(rows, cols), stream);
            };
            contestant.verify = verify_values;
        } else {
            contestant.launch = quantize;
            contestant.verify = verify_codes;
        }
        result.contestants.push_back(std::move(contestant));
    }
    return result;
}

// --- Products --------------------------------------------------------------------------------------------------------------------

// Rows [0, count) that are checked of a product with `rows` of them, the first and the last among them.
std::vector<std::size_t> sampled_rows(std::size_t rows) {
    std::vector<std::size_t> sample;
    const std::size_t count = std::min(rows, kSample);
    for (std::size_t i = 0; i < count; ++i)
        sample.push_back(count == 1 ? 0 : i * (rows - 1) / (count - 1));
    return sample;
}

template <class T>
std::vector<T> rows_of(std::span<const T> values, const std::vector<std::size_t>& rows, std::size_t cols) {
    std::vector<T> result;
    for (const std::size_t row : rows)
        result.insert(result.end(), values.begin() + static_cast<std::ptrdiff_t>(row * cols),
                      values.begin() + static_cast<std::ptrdiff_t>((row + 1) * cols));
    return result;
}

course::Case make_matmul(const course::Dims& size) {
    require_dims(size);
    if (size.size() != 3) return {};
    struct Data {
        Data(std::size_t m, std::size_t n, std::size_t k) : a(m * k), w(n * k), c(m * n) {}
        DeviceBuffer<std::int8_t> a, w;
        GuardedBuffer<std::int32_t> c;
        std::vector<std::int32_t> expected;
    };
    const std::size_t m = size[0];
    const std::size_t n = size[1];
    const std::size_t k = size[2];
    const auto data = std::make_shared<Data>(m, n, k);
    const auto random = [](std::size_t count, std::uint64_t seed) {
        course::Random source(seed);
        std::vector<std::int8_t> values(count);
        for (std::int8_t& value : values)
            value = static_cast<std::int8_t>(source.next());
        return values;
    };
    const std::vector<std::int8_t> a = random(m * k, 1);
    const std::vector<std::int8_t> w = random(n * k, 2);
    data->a.copy_from(a);
    data->w.copy_from(w);
    const std::vector<std::size_t> sample = sampled_rows(m);
    data->expected.resize(sample.size() * n);
    day30::int8_matmul_on_cpu({sample.size(), n, k}, rows_of<std::int8_t>(a, sample, k), w, data->expected);

    course::UsualCase<Data> usual("int8_matmul " + dims({m, n, k}), "int8 to int32", data);
    usual.output(&Data::c, [=](const Data& d, const auto& c) {
        return course::verify_exact(rows_of<std::int32_t>(c, sample, n), d.expected, n);
    });
    for (const day30::Int8Matmul& variant : day30::matmul_variants()) {
        if (variant.name == "auto") continue;
        const bool aligned = !variant.launcher.wants_aligned_rows || k % 16 == 0;
        const bool slow = variant.name == "scalar" && m * n * k > std::size_t{1} << 36;
        usual.add({.name = variant.name,
                   .launch =
                       [=, &variant](cudaStream_t stream) {
                           variant.launcher.launch(data->a.matrix(m, k), data->w.matrix(n, k),
                                                   data->c.matrix(m, n), stream);
                       },
                   .work = variant.work({m, n, k}),
                   .cannot_run = !aligned ? "wants rows of a multiple of 16 bytes"
                                 : slow   ? "it would take long"
                                          : variant.cannot_run({m, n, k}),
                   .resources = variant.launcher.resources});
    }
    const std::string no_cublas = day30::why_no_cublas();
    usual.add(
        {.name = "cublas_int8",
         .role = Role::kPeer,
         .launch = day30::make_cublas_int8(data->a.matrix(m, k), data->w.matrix(n, k), data->c.matrix(m, n)),
         .work = day30::matmul_variants().front().work({m, n, k}),
         .cannot_run = no_cublas.empty() ? day30::cublas_int8_constraint({m, n, k}) : no_cublas});
    return usual.result;
}

// --- The layer ---------------------------------------------------------------------------------------------------------------------

struct LayerData {
    LayerData(const day30::LayerShape& s, std::size_t outlier_columns)
        : shape(s),
          x(course::make_data<__half>(s.tokens * s.inputs, DataPattern::kNormal, 1)),
          w(course::make_data<__half>(s.outputs * s.inputs, DataPattern::kNormal, 2)),
          x_device(x.size()),
          w_device(std::span<const __half>(w)),
          w8(w.size()),
          w_scale(s.outputs),
          y(s.tokens * s.outputs),
          sample(sampled_rows(s.tokens)) {
        // As in trained models: a few columns, large in nearly every token.
        course::Random random(3);
        for (std::size_t i = 0; i < outlier_columns; ++i) {
            const std::size_t column = i * s.inputs / outlier_columns + s.inputs / (2 * outlier_columns);
            for (std::size_t token = 0; token < s.tokens; ++token)
                x[token * s.inputs + column] = __half(random.normal() * 3 + (i % 2 == 0 ? 40.0f : -40.0f));
        }
        x_device.copy_from(x);
        course::find_variant(day30::variants<__half>(), "auto")
            .launcher({}, w_device.matrix(s.outputs, s.inputs), w8.matrix(s.outputs, s.inputs),
                      w_scale.span(), {}, nullptr);
        sampled_x = rows_of<__half>(x, sample, s.inputs);
        exact.resize(sample.size() * s.outputs);
        day30::linear_on_cpu(sampled_layer(0), exact);
    }

    day30::HostLayer sampled_layer(float threshold) const {
        return {{sample.size(), shape.outputs, shape.inputs}, threshold, sampled_x, w};
    }

    std::vector<__half> result() const { return rows_of<__half>(y.to_host(), sample, shape.outputs); }

    day30::LayerShape shape;
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
    require_dims(size);
    if (size.size() != 3) return {};
    const day30::LayerShape shape{size[0], size[1], size[2]};
    const std::size_t outliers = with_outliers ? std::max<std::size_t>(1, shape.inputs / 600) : 0;
    const auto data = std::make_shared<LayerData>(shape, outliers);
    course::Case result{.problem = "llm_int8 " + dims({shape.tokens, shape.outputs, shape.inputs}) +
                                   (with_outliers ? " with outliers" : " without outliers"),
                        .dtype = "half"};
    result.spoil = [data] { data->y.spoil(); };

    const auto figures_with = [data](std::optional<double> columns) {
        std::vector<double> got;
        for (const __half y : data->result())
            got.push_back(static_cast<double>(static_cast<float>(y)));
        const day30::RelativeError error = day30::relative_error(data->exact, got);
        course::Figures figures = {{"relative error", error.root_mean_square},
                                   {"largest error", error.largest}};
        if (columns) figures.insert(figures.begin(), {"outlier columns", *columns});
        return figures;
    };
    struct Version {
        std::string name;
        const day30::LlmInt8* variant;
        float threshold;
    };
    std::vector<Version> versions;
    for (const day30::LlmInt8& variant : day30::layer_variants())
        versions.push_back({variant.name, &variant, day30::kThreshold});
    versions.push_back(
        {"fused_no_threshold", versions.back().variant, std::numeric_limits<float>::infinity()});
    for (const Version& version : versions) {
        const bool aligned = !version.variant->launcher.wants_aligned_rows || shape.inputs % 16 == 0;
        const auto workspace =
            std::make_shared<DeviceBuffer<std::byte>>(version.variant->launcher.workspace(shape));
        struct Expected {
            std::vector<std::uint32_t> columns;
            std::vector<double> y, allowed;
        };
        const auto expected = std::make_shared<Expected>();
        expected->columns = day30::outlier_columns_on_cpu({shape, version.threshold, data->x, data->w});
        expected->y.resize(data->exact.size());
        expected->allowed.resize(data->exact.size());
        day30::llm_int8_on_cpu(data->sampled_layer(version.threshold), expected->columns, expected->y,
                               expected->allowed);
        for (double& bound : expected->allowed)
            bound /= course::FloatTraits<__half>::kEpsilon;
        const auto [tokens, outputs, inputs] = shape;
        const day30::Layer layer{data->x_device.matrix(tokens, inputs),
                                 data->w_device.matrix(outputs, inputs),
                                 data->w8.matrix(outputs, inputs),
                                 data->w_scale.span(),
                                 data->y.matrix(tokens, outputs),
                                 workspace->span(),
                                 version.threshold};
        result.contestants.push_back(
            {.name = version.name,
             .launch =
                 [=](cudaStream_t stream) {
                     (void)workspace, version.variant->launcher.launch(layer, stream);
                 },
             .work = version.variant->work(shape),
             .cannot_run =
                 aligned ? version.variant->cannot_run(shape) : "wants rows of a multiple of 16 bytes",
             .verify =
                 [data, expected] {
                     course::VerifyResult verified = course::verify(
                         data->result(), expected->y, {.factor = 1}, expected->allowed, data->shape.outputs);
                     verified.damage = data->y.damage();
                     return verified;
                 },
             .resources = version.variant->launcher.resources,
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
                                  .launch = day30::make_cublas_half(data->x_device.matrix(tokens, inputs),
                                                                    data->w_device.matrix(outputs, inputs),
                                                                    data->y.matrix(tokens, outputs)),
                                  .work = day30::half_layer_work(shape),
                                  .cannot_run = day30::why_no_cublas(),
                                  .verify = verify_half,
                                  .figures = [=] { return figures_with(std::nullopt); }});
    return result;
}

template <class T>
std::function<course::Case(const course::Dims&)> quantization(Scheme scheme, Granularity granularity) {
    return [=](const course::Dims& size) { return make_quantization<T>(size, {scheme, granularity}); };
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day30_quantization",
        .title = "8-bit and 4-bit quantisation, int8 products, LLM.int8()",
        .default_size = {256, 256, 256},
        .bench_sizes = {{4096, 4096, 4096}, {16384, 16384}, {8192, 8192, 8192}},
        .make_cases = {quantization<__half>(Scheme::kSymmetric, Granularity::kRow),
                       quantization<float>(Scheme::kSymmetric, Granularity::kRow),
                       quantization<__half>(Scheme::kAsymmetric, Granularity::kRow),
                       quantization<__half>(Scheme::kSymmetric, Granularity::kColumn),
                       quantization<__half>(Scheme::kSymmetric, Granularity::kTensor),
                       [](const course::Dims& size) { return make_blocks(size, false); },
                       [](const course::Dims& size) { return make_blocks(size, true); }, make_matmul,
                       [](const course::Dims& size) { return make_layer(size, false); },
                       [](const course::Dims& size) { return make_layer(size, true); }}};
    return course::run_program(program, argc, argv);
}

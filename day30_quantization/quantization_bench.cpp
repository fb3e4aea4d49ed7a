// Day 30's program. A size is rows x columns: a matrix of float and of half to 8 bits, by every
// version, and in blocks to 8 and 4 bits and back.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "beyond/blockwise.hpp"
#include "common/bench/plain_loop.hpp"
#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/relative_error.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "quantization.hpp"
#include "quantization_plain_loop.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::Role;
using day30::Granularity;
using day30::Method;
using day30::Scheme;

constexpr std::size_t kMostFromHost = std::size_t{1} << 24;  // elements; more would take long to repeat

std::string dims(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + "x" + std::to_string(cols);
}

// --- Quantisation --------------------------------------------------------------------------------

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

std::vector<course::Contestant> plain_loops_over_rows(const std::shared_ptr<QuantizationData<float>>& data,
                                                      const course::Work& work) {
    struct Out {
        std::vector<std::int8_t> q;
        std::vector<float> scale;
    };
    const day30::Problem& problem = data->problem;
    return course::plain_loops(
        work, static_cast<double>(data->in.size()) * 5e-9,
        [problem] {
            return Out{course::unwritten<std::int8_t>(problem.rows * problem.cols),
                       course::unwritten<float>(problem.rows)};
        },
        [data](Out& out, int threads) {
            day30::quantize_rows_plainly(data->problem.rows, data->problem.cols, data->in, out.q, out.scale,
                                         threads);
        },
        [data](const Out& out) { return data->verify(out.q, out.scale); });
}

template <class T>
course::Case make_quantization(const course::Dims& size, Method method) {
    if (size.size() != 2) throw std::invalid_argument("expected rows x columns, for example 512x1024");
    const day30::Problem problem{size[0], size[1], method};
    if (problem.rows * problem.cols > std::size_t{1} << 26 &&
        (!std::is_same_v<T, __half> || method.granularity != Granularity::kRow ||
         method.scheme != Scheme::kSymmetric))
        return {};  // the largest matrices take the host long to check
    const auto data = std::make_shared<QuantizationData<T>>(problem);
    const std::string type = std::is_same_v<T, float> ? "float" : "half";
    course::Case result{
        .problem = "quantize " + type + " " + dims(problem.rows, problem.cols) + " " + day30::name(method),
        .dtype = type + " to int8"};
    result.spoil = [data] {
        data->out_device.spoil();
        data->scale_device.spoil();
        data->zero_device.spoil();
        data->on_host.clear();
    };
    result.verify = [data] { return data->verify_device(); };
    const course::Work work = day30::versions<T>().front().work(problem);
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
    for (const auto& version : day30::versions<T>()) {
        if (version.name == "auto") continue;
        result.contestants.push_back({.name = version.name,
                                      .launch =
                                          [data, &version](cudaStream_t stream) {
                                              const auto [rows, cols, how] = data->problem;
                                              version.launcher(how, data->in_device.matrix(rows, cols),
                                                               data->out_device.matrix(rows, cols),
                                                               data->scale_device.span(),
                                                               data->zero_device.span(), stream);
                                          },
                                      .work = work,
                                      .cannot_run = version.cannot_run(problem)});
    }
    if constexpr (std::is_same_v<T, float>) {
        if (method.granularity == Granularity::kRow && method.scheme == Scheme::kSymmetric)
            std::ranges::move(plain_loops_over_rows(data, work), std::back_inserter(result.contestants));
    }
    result.contestants.push_back(copy_of(work.bytes, data));
    return result;
}

// --- Back ----------------------------------------------------------------------------------------

// Codes to values with given scales. Small matrices only: it is here for `check` and `inspect`.
course::Case make_dequantization(const course::Dims& size) {
    constexpr std::size_t kMostValues = std::size_t{1} << 20;
    const day30::Problem problem{size.front(), size.back(), {Scheme::kSymmetric, Granularity::kRow}};
    if (problem.rows * problem.cols > kMostValues) return {};
    struct Data {
        explicit Data(const day30::Problem& p)
            : made(p),
              q(std::span<const std::int8_t>(made.q)),
              scale(std::span<const float>(made.scale)),
              out(made.q.size()) {}
        QuantizationData<__half> made;
        DeviceBuffer<std::int8_t> q;
        DeviceBuffer<float> scale;
        GuardedBuffer<__half> out;
    };
    const auto data = std::make_shared<Data>(problem);
    const std::size_t n = problem.rows * problem.cols;
    course::Case result{.problem = "dequantize half " + dims(problem.rows, problem.cols),
                        .dtype = "int8 to half"};
    result.spoil = [data] { data->out.spoil(); };
    result.verify = [data, problem, n] {
        std::vector<double> expected(n);
        day30::dequantize_on_cpu(problem, data->made.q, data->made.scale, {}, expected);
        std::vector<double> magnitude(n);
        std::ranges::transform(expected, magnitude.begin(), [](double x) { return std::abs(x); });
        course::VerifyResult verified =
            course::verify(data->out.to_host(), expected, {.factor = 1}, magnitude, problem.cols);
        verified.damage += data->out.damage();
        return verified;
    };
    course::Work work = day30::versions<__half>().front().work(problem);
    work.bytes = static_cast<double>(n * (sizeof(__half) + 1) + data->scale.bytes());
    work.written = static_cast<double>(n * sizeof(__half));
    result.contestants.push_back({.name = "octets",
                                  .launch =
                                      [data, problem](cudaStream_t stream) {
                                          day30::dequantize<__half>(
                                              problem.method,
                                              std::as_const(data->q).matrix(problem.rows, problem.cols),
                                              std::as_const(data->scale).span(), {},
                                              data->out.matrix(problem.rows, problem.cols), stream);
                                      },
                                  .work = work});
    return result;
}

// --- Blocks --------------------------------------------------------------------------------------

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

// Values to codes, or `back`; with the error of each format.
course::Case make_blocks(const course::Dims& size, bool back) {
    const std::size_t rows = size.front();
    const std::size_t cols = size.back();
    if (rows * cols > std::size_t{1} << 25) return {};
    const auto data = std::make_shared<BlockData>(rows, cols);
    course::Case result{
        .problem = (back ? "dequantize_blocks half " : "quantize_blocks half ") + dims(rows, cols),
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
                {"relative error", course::relative_error(exact, expected->back).root_mean_square}};
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

template <class T>
std::function<course::Case(const course::Dims&)> quantization(Scheme scheme, Granularity granularity) {
    return [=](const course::Dims& size) { return make_quantization<T>(size, {scheme, granularity}); };
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day30_quantization",
        .title = "8-bit and 4-bit quantisation",
        .default_size = {256, 256},
        .bench_sizes = {{4096, 4096}, {8192, 8192}, {16384, 16384}},
        .make_cases = {quantization<__half>(Scheme::kSymmetric, Granularity::kRow),
                       quantization<float>(Scheme::kSymmetric, Granularity::kRow),
                       quantization<__half>(Scheme::kAsymmetric, Granularity::kRow),
                       quantization<__half>(Scheme::kSymmetric, Granularity::kColumn),
                       quantization<__half>(Scheme::kSymmetric, Granularity::kTensor), make_dequantization,
                       [](const course::Dims& size) { return make_blocks(size, false); },
                       [](const course::Dims& size) { return make_blocks(size, true); }}};
    return course::run_program(program, argc, argv);
}

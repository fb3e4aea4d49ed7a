// Day 44's program: both versions of 8-bit attention, verified and timed. A size is batch x heads x
// tokens x head dimension. V is transposed anew in each launch, and that is timed, too.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/bench/attention_case.hpp"
#include "common/bench/program.hpp"
#include "common/check/require.hpp"
#include "eight_bit_attention.hpp"

namespace {

using course::attention::kMaxDim;
using course::attention::kRowsToVerify;
using day44::E4m3;
using day44::Result;
using day44::Shape;
using day44::Version;

// Normal numbers, divided by a scale for each head that makes the largest 448.
struct Tensor {
    Tensor(const course::attention::Extents& e, std::uint64_t seed)
        : exact(course::make_data<float>(e.batch * e.heads * e.length * e.dim, course::DataPattern::kNormal,
                                         seed)),
          rounded(exact.size()) {
        const std::size_t size = e.length * e.dim;
        std::vector<E4m3> elements(exact.size());
        std::vector<float> all_scales(e.batch * e.heads);
        const auto heads = static_cast<std::ptrdiff_t>(all_scales.size());
#pragma omp parallel for
        for (std::ptrdiff_t head = 0; head < heads; ++head) {
            const std::size_t first = static_cast<std::size_t>(head) * size;
            float largest = 0;
            for (std::size_t i = first; i < first + size; ++i)
                largest = std::max(largest, std::abs(exact[i]));
            const float scale = largest / 448;
            for (std::size_t i = first; i < first + size; ++i) {
                elements[i] = E4m3(exact[i] / scale);
                rounded[i] = static_cast<float>(elements[i]) * scale;
            }
            all_scales[static_cast<std::size_t>(head)] = scale;
        }
        device = course::DeviceBuffer<E4m3>(std::span<const E4m3>(elements));
        scales = course::DeviceBuffer<float>(std::span<const float>(all_scales));
    }

    std::vector<float> exact;
    std::vector<float> rounded;  // the elements times their scale
    course::DeviceBuffer<E4m3> device;
    course::DeviceBuffer<float> scales;
};

struct Data {
    explicit Data(const Shape& given)
        : shape(given),
          q(shape.q(), 1),
          k(shape.kv(), 2),
          v(shape.kv(), 3),
          out(q.exact.size()),
          scale(1 / std::sqrt(static_cast<float>(shape.dim))) {}

    void launch(const Version& version, cudaStream_t stream) {
        const auto& self = *this;
        version.launcher({{self.q.device.span(), shape.q()},
                          {self.k.device.span(), shape.kv()},
                          {self.v.device.span(), shape.kv()},
                          self.q.scales.span(),
                          self.k.scales.span(),
                          self.v.scales.span(),
                          {out.span(), shape.q()},
                          scale,
                          shape.causal},
                         stream);
    }

    std::size_t row_of(std::size_t number, std::size_t checked) const {
        const std::size_t rows = shape.batch * shape.heads * shape.length_q;
        if (number < checked / 4) return number;
        if (number >= checked - checked / 4) return rows - (checked - number);
        course::Random random(7, number);
        return static_cast<std::size_t>(random.next() % rows);
    }

    // From operands as they are, or rounded to eight bits.
    course::attention::ReferenceRow reference(std::size_t row, std::vector<float> Tensor::*values) const {
        const std::size_t head = row / shape.length_q * shape.length_k * shape.dim;
        const std::size_t count = shape.length_k * shape.dim;
        return course::attention::reference_row<float>(
            std::span(q.*values).subspan(row * shape.dim, shape.dim),
            std::span(k.*values).subspan(head, count), std::span(v.*values).subspan(head, count),
            course::attention::visible_keys(row % shape.length_q, shape.length_q, shape.length_k,
                                            shape.causal),
            static_cast<double>(scale), day44::precision());
    }

    course::VerifyResult verify() {
        const std::vector<Result> all = out.to_host();
        const std::size_t checked = std::min(shape.batch * shape.heads * shape.length_q, kRowsToVerify);
        std::vector<Result> got(checked * shape.dim);
        std::vector<double> expected(got.size());
        std::vector<double> magnitude(got.size());
        std::vector<double> exact(got.size());
        const auto count = static_cast<std::ptrdiff_t>(checked);
#pragma omp parallel for
        for (std::ptrdiff_t n = 0; n < count; ++n) {
            const std::size_t row = row_of(static_cast<std::size_t>(n), checked);
            const auto of_rounded = reference(row, &Tensor::rounded);
            const auto of_exact = reference(row, &Tensor::exact);
            for (std::size_t c = 0; c < shape.dim; ++c) {
                const std::size_t i = static_cast<std::size_t>(n) * shape.dim + c;
                got[i] = all[row * shape.dim + c];
                expected[i] = of_rounded.value[c];
                magnitude[i] = of_rounded.bound[c] / course::FloatTraits<Result>::kEpsilon;
                exact[i] = of_exact.value[c];
            }
        }
        kernel_error = relative_error(got, expected);
        whole_error = relative_error(got, exact);
        course::VerifyResult result = course::verify(got, expected, {.factor = 1}, magnitude, shape.dim);
        result.damage = out.damage();
        if (std::any_of(all.begin(), all.end(), [](Result x) { return std::isnan(static_cast<float>(x)); }))
            result.damage += " there are NaN in the result";
        return result;
    }

    // The root of the mean square of the error, beside that of the expected values.
    static double relative_error(const std::vector<Result>& got, const std::vector<double>& expected) {
        double error = 0;
        double size = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double difference = static_cast<double>(static_cast<float>(got[i])) - expected[i];
            error += difference * difference;
            size += expected[i] * expected[i];
        }
        return std::sqrt(error / size);
    }

    Shape shape;
    Tensor q, k, v;
    course::GuardedBuffer<Result> out;
    float scale;
    double kernel_error = 0;  // beside attention of the rounded operands
    double whole_error = 0;   // beside attention of the operands as they were
};

template <bool kCausal>
course::Case make_case(const course::Dims& size) {
    course::require(
        size.size() == 4, "--size has ", size.size(),
        " extents; expected 4: batch x heads x tokens x columns of a head, for example 4x8x2048x64");
    course::require(size[3] <= kMaxDim, "--size has heads of ", size[3], " columns; expected at most ",
                    kMaxDim);
    const Shape shape{size[0], size[1], size[1], size[2], size[2], size[3], kCausal};
    const auto data = std::make_shared<Data>(shape);
    course::Case result{.problem = fmt::format("eight_bit_attention {}", name(shape)), .dtype = "e4m3"};
    result.spoil = [data] { data->out.spoil(); };
    for (const Version& version : day44::versions()) {
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, &version](cudaStream_t stream) { data->launch(version, stream); },
             .work = version.work(shape),
             .cannot_run = version.cannot_run(shape),
             .verify = [data] { return data->verify(); }});
    }
    result.comment = [data](const auto&) {
        return fmt::format(
            "error, root mean square, of the last version: {:.1f} % of the results of E4M3 operands, {:.1f} "
            "% "
            "of those of the operands before they were rounded\n",
            100 * data->kernel_error, 100 * data->whole_error);
    };
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    course::Program program{.day = "day44_eight_bit_attention",
                            .title = "attention in eight bits: softmax(scale Q K^T) V of E4M3 operands",
                            .default_size = {1, 2, 200, 64},
                            .bench_sizes = {{4, 16, 4096, 128}, {2, 16, 8192, 128}, {1, 16, 16384, 128}},
                            .make_cases = {make_case<false>, make_case<true>},
                            .stand_in_limit = 1 << 17};
    return course::run_program(program, argc, argv);
}

// Day 34's program: every version of the gradients of attention, verified and timed. A size is
// batch x heads x tokens x head dimension.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention_backward.hpp"
#include "common/bench/attention_case.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/program.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"

namespace {

using course::DataPattern;
using course::attention::kTypeName;
using day34::Shape;

// Of each gradient. The CPU would take too long for all rows.
constexpr std::size_t kRowsToVerify = 24;

template <class T>
bool has_nan(const std::vector<T>& values) {
    bool found = false;
    const auto count = static_cast<std::ptrdiff_t>(values.size());
#pragma omp parallel for reduction(|| : found)
    for (std::ptrdiff_t i = 0; i < count; ++i)
        found = found || std::isnan(static_cast<float>(values[static_cast<std::size_t>(i)]));
    return found;
}

template <class T>
struct Data {
    explicit Data(const Shape& given)
        : shape(given),
          of_head(shape.length_q * shape.dim),
          scale(1 / std::sqrt(static_cast<float>(shape.dim))),
          q_host(make(1)),
          k_host(make(2)),
          v_host(make(3)),
          d_out_host(make(4)),
          q(std::span<const T>(q_host)),
          k(std::span<const T>(k_host)),
          v(std::span<const T>(v_host)),
          d_out(std::span<const T>(d_out_host)),
          out(q.size()),
          lse(shape.batch * shape.heads * shape.length_q),
          dq(q.size()),
          dk(q.size()),
          dv(q.size()) {
        day34::forward(gradient(), {out.span(), shape.q()}, lse.span(), nullptr);
        out_host = out.to_host();
        lse_host = lse.to_host();
    }

    std::vector<T> make(std::uint64_t seed) const {
        return course::make_data<T>(shape.batch * shape.heads * of_head, DataPattern::kNormal, seed);
    }

    day34::Gradient<T> gradient() {
        const auto& inputs = *this;
        const auto input = [&](const course::DeviceBuffer<T>& buffer) {
            return course::attention::HeadsView<const T>(buffer.span(), shape.q());
        };
        const auto output = [&](course::GuardedBuffer<T>& buffer) {
            return course::attention::HeadsView<T>(buffer.span(), shape.q());
        };
        return {input(q),   input(k),   input(v),   input(out), input(d_out), inputs.lse.span(),
                output(dq), output(dk), output(dv), scale,      shape.causal};
    }

    // Compares kRowsToVerify rows of each gradient with the reference: the first, random ones, and
    // the last. All others must not have a NaN.
    course::VerifyResult verify(const course::attention::Precision& precision) const {
        const std::vector<T> all[3] = {dq.to_host(), dk.to_host(), dv.to_host()};
        const std::size_t rows = shape.batch * shape.heads * shape.length_q;
        const std::size_t checked = std::min(rows, kRowsToVerify);
        std::vector<T> got(3 * checked * shape.dim);
        std::vector<double> expected(got.size());
        std::vector<double> magnitude(got.size());
        const auto count = static_cast<std::ptrdiff_t>(2 * checked);
#pragma omp parallel for schedule(dynamic)
        for (std::ptrdiff_t n = 0; n < count; ++n) {
            const std::size_t number = static_cast<std::size_t>(n) / 2;
            course::Random random(7, number);
            std::size_t row = static_cast<std::size_t>(random.next() % rows);
            if (number < checked / 4) row = number;
            if (number >= checked - checked / 4) row = rows - (checked - number);
            const auto part = [&](const std::vector<T>& values) {
                return std::span(values).subspan(row / shape.length_q * of_head, of_head);
            };
            const day34::Head<T> head{
                part(q_host),
                part(k_host),
                part(v_host),
                part(out_host),
                part(d_out_host),
                std::span(lse_host).subspan(row / shape.length_q * shape.length_q, shape.length_q)};
            const auto put = [&](std::size_t which, const day34::GradientRow& reference) {
                for (std::size_t c = 0; c < shape.dim; ++c) {
                    const std::size_t at = (which * checked + number) * shape.dim + c;
                    got[at] = all[which][row * shape.dim + c];
                    expected[at] = reference.value[c];
                    magnitude[at] = reference.bound[c] / course::FloatTraits<T>::kEpsilon;
                }
            };
            const std::size_t in_head = row % shape.length_q;
            if (n % 2 == 0) {
                put(0, query_gradient(head, shape, static_cast<double>(scale), precision, in_head));
            } else {
                const auto keys = key_gradient(head, shape, static_cast<double>(scale), precision, in_head);
                put(1, keys.dk);
                put(2, keys.dv);
            }
        }
        course::VerifyResult result = course::verify(got, expected, {.factor = 1}, magnitude, shape.dim);
        result.damage = dq.damage() + dk.damage() + dv.damage();
        for (const auto& values : all)
            if (has_nan(values)) result.damage += " there are NaN in the result";
        return result;
    }

    void spoil() {
        dq.spoil();
        dk.spoil();
        dv.spoil();
    }

    Shape shape;
    std::size_t of_head;  // elements
    float scale;
    std::vector<T> q_host, k_host, v_host, d_out_host, out_host;
    std::vector<float> lse_host;
    course::DeviceBuffer<T> q, k, v, d_out, out;
    course::DeviceBuffer<float> lse;
    course::GuardedBuffer<T> dq, dk, dv;
};

template <class T, bool kCausal>
course::Case make_case(const course::Dims& size) {
    course::require(
        size.size() == 4, "--size has ", size.size(),
        " extents; expected 4: batch x heads x tokens x columns of a head, for example 4x8x2048x64");
    course::require(size[3] <= course::attention::kMaxDim, "--size has heads of ", size[3],
                    " columns; expected at most ", course::attention::kMaxDim);
    const Shape shape{size[0], size[1], size[1], size[2], size[2], size[3], kCausal};
    // `naive` stores two matrices of scores, and FP32 would take seconds.
    constexpr std::size_t kMostTokensOfFloat = 2048;
    if (std::is_same_v<T, float> && size[2] > kMostTokensOfFloat) return {};
    course::attention::Precision precision;
    if constexpr (!std::is_same_v<T, float>) precision = course::attention::tensor_core_precision<T>();
    const auto data = std::make_shared<Data<T>>(shape);
    course::Case result{.problem = fmt::format("attention_backward {} {}", kTypeName<T>, name(shape)),
                        .dtype = kTypeName<T>};
    result.spoil = [data] { data->spoil(); };
    for (const auto& version : day34::versions<T>()) {
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, &version](cudaStream_t stream) { version.launcher(data->gradient(), stream); },
             .work = version.work(shape),
             .cannot_run = version.cannot_run(shape),
             .verify = [data, precision] { return data->verify(precision); }});
    }
    return result;
}

course::RandomProblem random_gradient(course::Draw& draw) {
    const auto [kind, size] = course::draw_attention(draw);
    const auto make = draw.one_of<course::Case (*)(const course::Dims&)>(
        {make_case<__nv_bfloat16, false>, make_case<__nv_bfloat16, true>});
    return {kind, size, [size = size, make] { return make(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    course::Program program{.day = "day34_attention_backward",
                            .title = "the gradients of attention with respect to Q, K and V",
                            .default_size = {1, 2, 200, 64},
                            .bench_sizes = {{4, 16, 4096, 128},
                                            {2, 16, 8192, 128},
                                            {1, 16, 16384, 128},
                                            {4, 32, 4096, 64},
                                            {1, 32, 16384, 64},
                                            {1, 8, 2048, 64}},
                            .make_cases = {make_case<__nv_bfloat16, false>, make_case<__nv_bfloat16, true>,
                                           make_case<float, false>},
                            .distributions = {{.name = "gradients",
                                               .text = course::kAttentionText,
                                               .most = std::size_t{1} << 38,
                                               .most_on_cpu = 1 << 21,
                                               .ours = {"hopper", "tensor_cores"},
                                               .draw = random_gradient}},
                            .stand_in_limit = 1 << 17};
    return course::run_program(program, argc, argv);
}

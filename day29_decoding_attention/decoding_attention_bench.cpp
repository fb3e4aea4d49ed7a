// Day 29's program: every version of attention for decoding, verified and timed. A size is batch x
// heads x heads of K x tokens x head dimension. Of a result, up to 32 rows are compared.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "beyond/serving_bench.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "decoding_attention.hpp"

namespace {

using day29::Shape;

constexpr std::size_t kRowsToVerify = 32;  // the CPU would take too long for all of them

template <class T>
struct Data {
    Data(const Shape& given, bool ragged)
        : shape(given),
          lengths_host(day29::lengths_of(given.batch, given.capacity, ragged)),
          q_host(course::make_data<T>(shape.q_elements(), course::DataPattern::kNormal, 1)),
          k_host(course::make_data<T>(shape.cache_elements(), course::DataPattern::kNormal, 2)),
          v_host(course::make_data<T>(shape.cache_elements(), course::DataPattern::kNormal, 3)),
          q(std::span<const T>(q_host)),
          k(std::span<const T>(k_host)),
          v(std::span<const T>(v_host)),
          lengths(std::span<const int>(lengths_host)),
          copy(k_host.size()),
          out(shape.q_elements()),
          workspace(shape) {}

    std::size_t tokens() const {
        return std::accumulate(
            lengths_host.begin(), lengths_host.end(), std::size_t{0},
            [](std::size_t sum, int length) { return sum + static_cast<std::size_t>(length); });
    }
    float scale() const { return 1 / std::sqrt(static_cast<float>(shape.dim)); }

    void launch(const day29::Version<T>& version, cudaStream_t stream) {
        const Data& inputs = *this;
        version.launcher({shape, inputs.q.span(), inputs.k.span(), inputs.v.span(), inputs.lengths.span(),
                          out.span(), scale()},
                         workspace, stream);
    }

    // The first rows, random ones, and the last; all others must not have a NaN.
    course::VerifyResult verify(const day29::Version<T>& version, const std::vector<T>& all) const {
        const std::size_t rows = shape.q_elements() / shape.dim;
        const std::size_t checked = std::min(rows, kRowsToVerify);
        std::vector<T> got(checked * shape.dim);
        std::vector<double> expected(got.size());
        std::vector<double> magnitude(got.size());
        const auto count = static_cast<std::ptrdiff_t>(checked);
#pragma omp parallel for
        for (std::ptrdiff_t n = 0; n < count; ++n) {
            const auto number = static_cast<std::size_t>(n);
            course::Random random(7, number);
            std::size_t row = random.below(rows);
            if (number < checked / 4) row = number;
            if (number >= checked - checked / 4) row = rows - (checked - number);
            const std::size_t item = row / shape.rows();
            const auto length = static_cast<std::size_t>(lengths_host[item / shape.heads_kv]);
            const std::size_t first = item * shape.capacity * shape.dim;
            const day29::ReferenceRow reference =
                day29::reference_row<T>(std::span(q_host).subspan(row * shape.dim, shape.dim),
                                        std::span(k_host).subspan(first, length * shape.dim),
                                        std::span(v_host).subspan(first, length * shape.dim), length,
                                        static_cast<double>(scale()), day29::precision(version));
            for (std::size_t c = 0; c < shape.dim; ++c) {
                got[number * shape.dim + c] = all[row * shape.dim + c];
                expected[number * shape.dim + c] = reference.value[c];
                magnitude[number * shape.dim + c] = reference.bound[c] / course::FloatTraits<T>::kEpsilon;
            }
        }
        course::VerifyResult result = course::verify(got, expected, {.factor = 1}, magnitude, shape.dim);
        if (std::any_of(all.begin(), all.end(), [](T x) { return std::isnan(static_cast<float>(x)); }))
            result.damage += " there are NaN in the result";
        return result;
    }

    Shape shape;
    std::vector<int> lengths_host;
    std::vector<T> q_host, k_host, v_host;
    course::DeviceBuffer<T> q, k, v;
    course::DeviceBuffer<int> lengths;
    course::DeviceBuffer<T> copy;  // of as many bytes as K and V of all tokens have, read and written
    course::GuardedBuffer<T> out;
    day29::Workspace workspace;
};

template <class T, bool kRagged>
course::Case make_case(const course::Dims& size) {
    const std::string type = std::is_same_v<T, __half> ? "half" : "bfloat16";
    if (size.size() == 3) return {.problem = "decoding " + type, .dtype = type};  // of speculation
    course::require(
        size.size() == 5, "--size has ", size.size(),
        " extents; expected 5: batch x heads x heads of K x tokens x columns of a head, for example "
        "16x32x8x8192x128; or 3: batch x proposed tokens x tokens of the vocabulary");
    const Shape shape{size[0], size[1], size[2], 1, size[3], size[4]};
    const bool too_many_heads = shape.heads_kv > 0 && shape.rows() > day29::kMostRows;  // pages allow more
    if (day29::is_latent(size) || too_many_heads || (kRagged && shape.batch == 1))
        return {.problem = "decoding " + type, .dtype = type};
    course::UsualCase<Data<T>> usual(
        fmt::format("decoding {} {}{}", type, day29::name(shape), kRagged ? " ragged" : ""), type,
        std::make_shared<Data<T>>(shape, kRagged));
    usual.also_spoil([](Data<T>& data) { data.out.spoil(); });
    const std::size_t tokens = usual.data->tokens();
    usual.versions(
        day29::versions<T>(), day29::Load{shape, tokens},
        [](const auto& version, Data<T>& data, cudaStream_t stream) { data.launch(version, stream); },
        [](const auto& version, const Data<T>& data) {
            course::VerifyResult result = data.verify(version, data.out.to_host());
            result.damage += data.out.damage();
            return result;
        });
    usual.limit_copy(&Data<T>::k, &Data<T>::copy, tokens * shape.heads_kv * shape.dim * sizeof(T));
    return usual.result;
}

course::RandomProblem random_decoding(course::Draw& draw) {
    const auto kind = draw.one_of<const char*>({"any", "few keys", "one long sequence"});
    const auto heads_kv = draw.one_of<std::size_t>({1, 2, 4, 8, 16});
    const auto group = draw.one_of<std::size_t>({1, 2, 4, 8});  // heads that share K and V
    const auto dim = draw.one_of<std::size_t>({64, 128});
    const bool one = kind == std::string("one long sequence");
    const bool few = kind == std::string("few keys");
    const std::size_t batch = one ? 1 : draw.log_uniform(1, 128);
    const std::size_t capacity = draw.jittered(draw.log_uniform(few || !one ? 1 : 8192, few ? 512 : 1 << 17));
    // Of the keys and values.
    course::Dims cache = draw.fitted({batch, heads_kv, capacity}, dim);
    const course::Dims size = {cache[0], group * cache[1], cache[1], cache[2], dim};
    const auto make = draw.one_of<course::Case (*)(const course::Dims&)>(
        {make_case<__nv_bfloat16, false>, make_case<__half, false>});
    return {kind, size, [size, make] { return make(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day29_decoding_attention",
        .title = "attention of one query for each sequence and head, over a long cache of K and V",
        .default_size = {2, 8, 2, 100, 64},
        .bench_sizes = {{1, 32, 32, 8192, 128},
                        {16, 32, 8, 8192, 128},
                        {64, 32, 8, 2048, 128},
                        {1, 32, 8, 65536, 128},
                        {16, 32, 8, 8192, 64},
                        {16, 64, 8, 8192, 128},
                        {16, 32, 1, 8192, 128},
                        {16, 16, 1, 8192, 576},
                        {64, 128, 1, 4096, 576},
                        {1, 4, 131072},
                        {16, 4, 131072},
                        {64, 8, 32768}},
        .make_cases = {make_case<__nv_bfloat16, false>, make_case<__nv_bfloat16, true>,
                       make_case<__half, false>,
                       [](const course::Dims& size) { return day29::make_paged_case(size, false); },
                       [](const course::Dims& size) { return day29::make_paged_case(size, true); },
                       day29::make_latent_case, day29::make_speculation_case},
        .distributions =
            {{.name = "decoding",
              .text =
                  "batch x heads x heads of K x tokens x head dimension: any, few keys, one long sequence; "
                  "most: of numbers in K",
              .most = std::size_t{1} << 29,
              .most_on_cpu = 1 << 18,
              .ours = {"any_length", "split_keys"},
              .draw = random_decoding,
              .beside = course::Role::kLimit}},
        .stand_in_limit = 1 << 18};
    return course::run_program(program, argc, argv);
}

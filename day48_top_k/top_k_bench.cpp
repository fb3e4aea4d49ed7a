// Day 48's program: the k nearest of many points, by every version of top_k.hpp.
//
//     day48_top_k --size 512x512x64             the 128 nearest of 512 points of 64 numbers for each of 512 queries
//     day48_top_k --size 1024x1000000x64x10     the 10 nearest of a million
//     day48_top_k --size 100x5000x64x3000       more than 1024: by several passes
//     day48_top_k --plot                        from 4,096 points to a million, of 64, 256 and 1,024 numbers; several k
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/half_top_k.hpp"
#include "beyond/many_best.hpp"
#include "common/bench/program.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "nearest_neighbours.hpp"
#include "top_k.hpp"

namespace day48 {
namespace {

constexpr std::size_t kSample = 64;         // queries whose neighbours the host looks for, too
constexpr std::size_t kSampleOfPlots = 16;  // with --plot

// Whole numbers from 0 to 255, as in many descriptors of pictures; or to less, so that a sum of
// squares is below 2^24 and every distance exact. Then there is only one right answer.
std::vector<float> make_vectors(std::size_t count, std::size_t d, std::uint64_t seed) {
    const double largest = std::sqrt(0x1p23 / static_cast<double>(d));
    const auto values = static_cast<std::uint32_t>(std::min(255.0, largest)) + 1;
    course::Random random(seed);
    std::vector<float> vectors(count * d);
    for (float& x : vectors)
        x = static_cast<float>(random.below(values));
    return vectors;
}

// At most `most` of `count`, evenly spaced, the first and the last among them.
std::vector<std::size_t> sample_of(std::size_t count, std::size_t most) {
    const std::size_t size = std::min(count, most);
    std::vector<std::size_t> sample(size);
    for (std::size_t i = 0; i < size; ++i)
        sample[i] = size == 1 ? 0 : i * (count - 1) / (size - 1);
    return sample;
}

template <class T>
std::vector<T> rows_of(std::span<const T> values, const std::vector<std::size_t>& rows, std::size_t cols) {
    std::vector<T> result;
    for (const std::size_t row : rows) {
        const auto chosen = values.subspan(row * cols, cols);
        result.insert(result.end(), chosen.begin(), chosen.end());
    }
    return result;
}

struct Data {
    explicit Data(const TopKShape& s, std::size_t most_sampled)
        : shape(s),
          queries(make_vectors(s.m, s.d, 1)),
          points(make_vectors(s.n, s.d, 2)),
          sample(sample_of(s.m, most_sampled)),
          nearest(nearest_neighbours_on_cpu(rows_of<float>(queries, sample, s.d), points, s.d, s.k)),
          queries_device(std::span<const float>(queries)),
          points_device(std::span<const float>(points)),
          values(s.m * s.k),
          indices(s.m * s.k) {}

    TopKMatmul matmul(course::DeviceBuffer<std::uint64_t>& scratch) {
        return {.operands = {.a = {std::as_const(queries_device).matrix(shape.m, shape.d)},
                             .b = {std::as_const(points_device).matrix(shape.n, shape.d)},
                             .op_b = course::Op::kTranspose},
                .metric = shape.metric,
                .order = shape.order,
                .k = shape.k,
                .values = values.span(),
                .indices = indices.span(),
                .scratch = scratch.span()};
    }

    // Of the queries that the host has looked at.
    Neighbours found() const {
        return {shape.k, rows_of<std::uint32_t>(indices.to_host(), sample, shape.k),
                rows_of<float>(values.to_host(), sample, shape.k)};
    }

    // All distances must be those of the points that are named; of the sampled queries those must
    // be the nearest.
    course::VerifyResult verify() const {
        const std::vector<std::uint32_t> named = indices.to_host();
        std::vector<double> distances(named.size(), std::nan(""));
        for (std::size_t i = 0; i < named.size(); ++i) {
            if (named[i] >= shape.n) continue;
            const float* const a = queries.data() + i / shape.k * shape.d;
            const float* const b = points.data() + named[i] * shape.d;
            distances[i] = 0;
            for (std::size_t j = 0; j < shape.d; ++j) {
                const double difference = static_cast<double>(a[j]) - static_cast<double>(b[j]);
                distances[i] += difference * difference;
            }
        }
        course::VerifyResult result = course::verify(values.to_host(), distances, {.factor = 0}, {}, shape.k);
        const auto of_sample = course::verify_exact(found().indices, nearest.indices, shape.k);
        if (!of_sample.ok()) result.damage += " indices of the sampled queries: " + of_sample.message();
        result.damage += values.damage() + indices.damage();
        return result;
    }

    TopKShape shape;
    std::vector<float> queries, points;
    std::vector<std::size_t> sample;
    Neighbours nearest;
    course::DeviceBuffer<float> queries_device, points_device;
    course::GuardedBuffer<float> values;
    course::GuardedBuffer<std::uint32_t> indices;
};

std::string queries_per_second(std::size_t queries, std::span<const course::Record> records) {
    std::string text;
    for (const course::Record& record : records) {
        if (!record.measurement || record.measurement->l2 != course::L2State::kWarm) continue;
        text += fmt::format("{}{} {:.0f}", text.empty() ? "queries per second: " : ", ", record.version,
                            static_cast<double>(queries) / (record.measurement->ms.median * 1e-3));
    }
    return text.empty() ? "" : text + "\n";
}

course::Case make_case(const course::Dims& dims, std::size_t most_sampled = kSample) {
    const TopKShape shape{.m = dims[0], .n = dims[1], .d = dims[2], .k = dims[3]};
    const auto data = std::make_shared<Data>(shape, most_sampled);
    course::Case result{
        .problem = fmt::format("nearest_neighbours {}x{}x{}, k = {}", shape.m, shape.n, shape.d, shape.k),
        .dtype = "float"};
    result.spoil = [data] {
        data->values.spoil();
        data->indices.spoil();
    };
    result.verify = [data] { return data->verify(); };
    result.comment = [queries = shape.m](std::span<const course::Record> records) {
        return queries_per_second(queries, records);
    };
    for (const TopK& version : top_k_versions()) {
        result.contestants.push_back(
            {.name = version.name,
             .work = version.work(shape),
             .cannot_run = version.cannot_run(shape),
             .figures =
                 [data] {
                     return course::Figures{{"recall", recall(data->found(), data->nearest)}};
                 },
             .prepare =
                 [data, &version](course::Contestant& contestant) {
                     const auto scratch = std::make_shared<course::DeviceBuffer<std::uint64_t>>(
                         version.launcher.scratch_size(data->shape));
                     contestant.launch = [data, scratch, &version](cudaStream_t stream) {
                         version.launcher.launch(data->matmul(*scratch), stream);
                     };
                 }});
    }
    if (shape.k >= kMostBest) {
        result.contestants.push_back(
            {.name = "many_best",
             .work = top_k_versions().front().work(shape),
             .figures =
                 [data] {
                     return course::Figures{{"recall", recall(data->found(), data->nearest)}};
                 },
             .prepare =
                 [data](course::Contestant& contestant) {
                     const auto scratch = std::make_shared<course::DeviceBuffer<std::uint64_t>>(
                         many_best_scratch_size(data->shape));
                     contestant.launch = [data, scratch](cudaStream_t stream) {
                         launch_many_best(data->matmul(*scratch), stream);
                     };
                 }});
    }
    return result;
}

// The same vectors in 16 bits, which hold such whole numbers.
template <class E>
course::Case make_half_case(const course::Dims& dims, const std::string& dtype) {
    const TopKShape shape{.m = dims[0], .n = dims[1], .d = dims[2], .k = dims[3]};
    if (shape.k > kMostBest) return {};
    const auto data = std::make_shared<Data>(shape, kSampleOfPlots);
    const auto in_16_bits = [](const std::vector<float>& vectors) {
        const std::vector<E> rounded(vectors.begin(), vectors.end());
        return std::make_shared<course::DeviceBuffer<E>>(std::span<const E>(rounded));
    };
    const auto queries = in_16_bits(data->queries);
    const auto points = in_16_bits(data->points);
    course::Case result{.problem = fmt::format("nearest_neighbours_16_bit {} {}x{}x{}, k = {}", dtype,
                                               shape.m, shape.n, shape.d, shape.k),
                        .dtype = dtype};
    result.spoil = [data] {
        data->values.spoil();
        data->indices.spoil();
    };
    result.verify = [data] { return data->verify(); };
    for (const HalfTopK<E>& version : half_top_k_versions<E>()) {
        result.contestants.push_back(
            {.name = version.name,
             .work = version.work(shape),
             .cannot_run = version.cannot_run(shape),
             .figures =
                 [data] {
                     return course::Figures{{"recall", recall(data->found(), data->nearest)}};
                 },
             .prepare =
                 [data, queries, points, &version](course::Contestant& contestant) {
                     const auto scratch = std::make_shared<course::DeviceBuffer<std::uint64_t>>(
                         version.launcher.scratch_size(data->shape));
                     contestant.launch = [data, queries, points, scratch, &version](cudaStream_t stream) {
                         const TopKShape& s = data->shape;
                         version.launcher.launch(
                             {.operands = {.a = {std::as_const(*queries).matrix(s.m, s.d)},
                                           .b = {std::as_const(*points).matrix(s.n, s.d)},
                                           .op_b = course::Op::kTranspose},
                              .metric = s.metric,
                              .order = s.order,
                              .k = s.k,
                              .values = data->values.span(),
                              .indices = data->indices.span(),
                              .scratch = scratch->span()},
                             stream);
                     };
                 }});
    }
    return result;
}

// Without k_minima, which is far slower, and fused_own_bounds.
course::Case make_plotted(const course::Dims& dims) {
    course::Case result = make_case(dims, kSampleOfPlots);
    std::erase_if(result.contestants, [](const course::Contestant& each) {
        return each.name == "k_minima" || each.name == "fused_own_bounds";
    });
    return result;
}

// Over the number of points for three lengths of vectors, and over k.
std::vector<course::Dims> sizes_of_plots() {
    constexpr std::size_t kQueries = 1024;
    std::vector<course::Dims> sizes;
    for (const std::size_t d : {64, 256, 1024}) {
        for (const std::size_t points : {4096, 16384, 65536, 262144})
            sizes.push_back({kQueries, points, d, 128});
    }
    sizes.push_back({kQueries, 1048576, 64, 128});
    for (const std::size_t k : {1, 4, 16, 64, 256, 512, 1024, 2048, 4096})
        sizes.push_back({kQueries, 262144, 64, k});
    return sizes;
}

// queries x points x d [x k]; k is 128 unless it is said, or as many as there are points.
course::Dims m_n_d_k(course::Dims size) {
    constexpr std::size_t kUsual = 128;
    if (size.size() == 3) size.push_back(std::min(kUsual, size[1]));
    if (size.size() != 4) {
        throw std::invalid_argument(
            "expected queries x points x d, or queries x points x d x k, for example 1024x1000000x64x128");
    }
    if (size[3] > size[1]) {
        throw std::invalid_argument(
            fmt::format("k is {}, but there are {} points; expected at most as many", size[3], size[1]));
    }
    return size;
}

}  // namespace
}  // namespace day48

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day48_top_k",
        .title = "the k best of each row of a matrix product that is never written",
        .default_size = {200, 200, 64},
        .bench_sizes = {{8192, 8192, 64},
                        {16384, 16384, 64},
                        {8192, 8192, 256},
                        {1024, 1000000, 64},
                        {1024, 1000000, 256}},
        .plot_sizes = day48::sizes_of_plots(),
        .make_cases = {[](const course::Dims& size) { return day48::make_case(day48::m_n_d_k(size)); },
                       [](const course::Dims& size) {
                           return day48::make_half_case<__half>(day48::m_n_d_k(size), "half");
                       },
                       [](const course::Dims& size) {
                           return day48::make_half_case<__nv_bfloat16>(day48::m_n_d_k(size), "bfloat16");
                       }},
        .plot_cases = {[](const course::Dims& size) { return day48::make_plotted(day48::m_n_d_k(size)); }}};
    return course::run_program(program, argc, argv);
}

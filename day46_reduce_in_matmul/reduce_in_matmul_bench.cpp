// Day 46's program: the nearest of many vectors, from products that are never written; and k-means.
//
//     day46_reduce_in_matmul --size 512x512x64        the nearest of 512 vectors of 64 elements for each of 512 others
//     day46_reduce_in_matmul --size 20000x100x64      the same, and an iteration of k-means: 20000 points, 100 centres
//     day46_reduce_in_matmul --clusters FILE          and what k-means does with points in the plane
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/gaussian_mixture_bench.hpp"
#include "beyond/k_means_bench.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "reduce_in_matmul.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;

constexpr std::size_t kRowsVerified = 64;  // those of which all distances are worked out

// --- Reductions ----------------------------------------------------------------------------------

struct Reductions {
    Reductions(const day46::ReduceShape& s)
        : shape(s),
          a(course::make_data<float>(s.m * s.d, DataPattern::kSignedUniform, 1)),
          b(course::make_data<float>(s.d * s.n, DataPattern::kSignedUniform, 2)),
          a_device(std::span<const float>(a)),
          b_device(std::span<const float>(b)),
          values(s.m),
          indices(s.m) {}

    day46::ReducedMatmul matmul() {
        return {.operands = {{.first = std::as_const(a_device).matrix(shape.m, shape.d)},
                             {.first = std::as_const(b_device).matrix(shape.d, shape.n)}},
                .metric = shape.metric,
                .reduction = shape.reduction,
                .along = shape.along,
                .values = values.span(),
                .indices = indices.span()};
    }

    // Of some rows all distances, evenly spaced; of the others, that the distance at the index is
    // the value.
    course::VerifyResult verify() {
        const std::vector<float> got = values.to_host();
        const std::vector<std::uint32_t> at = indices.to_host();
        course::VerifyResult verified = verify_some_rows(got);
        std::vector<double> named(shape.m, std::numeric_limits<double>::quiet_NaN());
        std::vector<double> magnitude(shape.m);
#pragma omp parallel for
        for (std::ptrdiff_t row = 0; row < static_cast<std::ptrdiff_t>(shape.m); ++row) {
            const auto i = static_cast<std::size_t>(row);
            if (at[i] >= shape.n) continue;
            std::vector<float> column(shape.d);
            for (std::size_t p = 0; p < shape.d; ++p)
                column[p] = b[p * shape.n + at[i]];
            const auto distance = course::distances_on_cpu(
                shape.metric, 1, 1, shape.d, std::span(a).subspan(i * shape.d, shape.d), column);
            named[i] = distance.values[0];
            magnitude[i] = distance.magnitudes[0];
        }
        const course::VerifyResult all = course::verify(got, named, bound(), magnitude);
        if (!all.ok()) return all;
        verified.damage += values.damage() + indices.damage();
        return verified;
    }

    course::Bound bound() const {
        return {.terms = shape.d + 4, .growth = course::Growth::kSquareRoot};
    }

    course::VerifyResult verify_some_rows(const std::vector<float>& got) const {
        const std::size_t count = std::min(kRowsVerified, shape.m);
        std::vector<float> rows;
        std::vector<float> got_of_rows;
        for (std::size_t r = 0; r < count; ++r) {
            const std::size_t row = r * (shape.m - 1) / std::max<std::size_t>(count - 1, 1);
            rows.insert(rows.end(), a.begin() + static_cast<std::ptrdiff_t>(row * shape.d),
                        a.begin() + static_cast<std::ptrdiff_t>((row + 1) * shape.d));
            got_of_rows.push_back(got[row]);
        }
        const auto distances = course::distances_on_cpu(shape.metric, count, shape.n, shape.d, rows, b);
        const auto expected =
            day46::reduce_on_cpu(shape.reduction, day46::Along::kRows, count, shape.n, distances);
        return course::verify(got_of_rows, expected.values, bound(), expected.magnitudes);
    }

    day46::ReduceShape shape;
    std::vector<float> a, b;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> values;
    course::GuardedBuffer<std::uint32_t> indices;
};

course::Case make_reduced(const course::Dims& size, course::Metric metric) {
    const auto data = std::make_shared<Reductions>(
        day46::ReduceShape{.m = size[0], .n = size[1], .d = size[2], .metric = metric});
    const day46::ReduceShape& s = data->shape;
    course::Case result{.problem = "argmin of " + course::name(metric) + " " + std::to_string(s.m) + "x" +
                                   std::to_string(s.n) + "x" + std::to_string(s.d),
                        .dtype = "float"};
    result.spoil = [data] {
        data->values.spoil();
        data->indices.spoil();
    };
    result.verify = [data] { return data->verify(); };
    for (const day46::Reduce& version : day46::reduce_versions()) {
        const std::size_t words = version.launcher.scratch_size(s);
        course::Contestant contestant{
            .name = version.name, .work = version.work(s), .cannot_run = version.cannot_run(s)};
        contestant.figures = [words] {
            return course::Figures{{"scratch MB", static_cast<double>(words * 8) / 1e6}};
        };
        // Scratch memory for when it is this one's turn: of the unfused version it may be tens of
        // gigabytes.
        contestant.prepare = [data, &version, words](course::Contestant& me) {
            const auto scratch = std::make_shared<DeviceBuffer<std::uint64_t>>(words);
            me.launch = [data, &version, scratch](cudaStream_t stream) {
                day46::ReducedMatmul matmul = data->matmul();
                matmul.scratch = scratch->span();
                version.launcher.launch(matmul, stream);
            };
        };
        result.contestants.push_back(std::move(contestant));
    }
    return result;
}

// --- k-means -------------------------------------------------------------------------------------

// Centres are for many points each.
course::Case make_k_means(const course::Dims& size) {
    constexpr std::size_t kLeastOfEach = 10;
    if (size[0] / kLeastOfEach < size[1]) return {};
    return day46::make_k_means_case(size);
}

// --- Which problems a size is --------------------------------------------------------------------

// Without --size and --bench: both parts, small.
const course::Dims kDefault = {200, 200, 64};
const course::Dims kDefaultOfKMeans = {1000, 16, 16};

course::Dims m_n_k(const course::Dims& size) {
    if (size.size() != 3) throw std::invalid_argument("expected m x n x k, for example 512x512x64");
    return size;
}

void add_options(CLI::App& app, course::Program& program, std::string& clusters) {
    app.add_option(
        "--clusters", clusters,
        "write what k-means does with points in the plane, as JSON (scripts/plot_k_means.py draws it)");
    app.callback([&] {
        if (!clusters.empty()) program.finish = [&] { day46::write_clusters(clusters); };
    });
}

}  // namespace

int main(int argc, char** argv) {
    std::string clusters;
    course::Program program{.day = "day46_reduce_in_matmul",
                            .title = "minima of matrix products that are never written",
                            .default_size = kDefault,
                            .bench_sizes = {{8192, 8192, 64},
                                            {16384, 16384, 64},
                                            {8192, 8192, 256},
                                            {1024, 1000000, 64},
                                            {1024, 1000000, 256},
                                            {1000000, 10000, 64},
                                            {100000, 100, 64}},
                            .make_cases = {}};  // below
    for (const course::Metric metric : {course::Metric::kDot, course::Metric::kSquaredL2}) {
        program.make_cases.push_back(
            [=](const course::Dims& size) { return make_reduced(m_n_k(size), metric); });
    }
    program.make_cases.push_back(
        [](const course::Dims& size) { return make_k_means(size == kDefault ? kDefaultOfKMeans : size); });
    program.make_cases.push_back([](const course::Dims& size) {
        return day46::make_mixture_case(size == kDefault ? kDefaultOfKMeans : size);
    });
    program.add_options = [&](CLI::App& app, course::Program& own) { add_options(app, own, clusters); };
    return course::run_program(program, argc, argv);
}

// Day 45's program: batched products beside cuBLAS, masked ones, and reductions and nearest neighbours of products that are never written.
//
//     day45_fused_matmul --size 8x256x256x64      8 products of 256 x 256 x 64, in each of the four layouts; the causal half of them
//     day45_fused_matmul --size 512x512x64        the nearest, and the 128 nearest, of 512 vectors of 64 elements for each of 512 others
//     day45_fused_matmul --size 20000x100x64      those, and an iteration of k-means: 20000 points, 100 centres
//     day45_fused_matmul --clusters FILE          and what k-means does with points in the plane
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "batched_bfloat16_bench.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "expected.hpp"
#include "fused_matmul.hpp"
#include "fused_matmul_peer.hpp"
#include "k_means_bench.hpp"
#include "masked_bench.hpp"
#include "reduce.hpp"
#include "top_k_bench.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using day45::Op;

constexpr std::size_t kRowsVerified = 64;  // of a reduction: those of which all distances are worked out

// --- Batched products ------------------------------------------------------------------------------------------------

struct Products {
    Products(const day45::Shape& s, Op op_a, Op op_b)
        : Products(s, op_a, op_b,
                   course::make_data<float>(s.count * s.m * s.k, DataPattern::kSignedUniform, 1),
                   course::make_data<float>(s.count * s.k * s.n, DataPattern::kSignedUniform, 2)) {}

    // Of op(A) and op(B), packed.
    Products(const day45::Shape& s, Op op_a, Op op_b, const std::vector<float>& a,
             const std::vector<float>& b)
        : shape(s),
          ops{op_a, op_b},
          a_device(std::span<const float>(op_a == Op::kNone ? a : day45::each_transposed(a, s.m, s.k))),
          b_device(std::span<const float>(op_b == Op::kNone ? b : day45::each_transposed(b, s.k, s.n))),
          c(s.count * s.m * s.n),
          expected(s, 1, a, b) {}

    day45::BatchedMatmul matmul() {
        const auto& [count, m, n, k] = shape;
        const auto batch = [&](auto& buffer, Op op, std::size_t rows, std::size_t cols) {
            return day45::Batch<const float>{.first = op == Op::kNone
                                                          ? std::as_const(buffer).matrix(rows, cols)
                                                          : std::as_const(buffer).matrix(cols, rows),
                                             .count = count,
                                             .stride = rows * cols};
        };
        return {.factors = {batch(a_device, ops.a, m, k), batch(b_device, ops.b, k, n), ops.a, ops.b},
                .c = {.first = c.matrix(m, n), .count = count, .stride = m * n}};
    }

    struct Ops {
        Op a, b;
    };

    day45::Shape shape;
    Ops ops;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c;
    day45::Expected expected;
};

course::Case make_batched(const course::Dims& size, Op op_a, Op op_b) {
    if (size.size() != 4) return {};
    const auto data =
        std::make_shared<Products>(day45::Shape{size[0], size[1], size[2], size[3]}, op_a, op_b);
    const day45::Shape& s = data->shape;
    const auto letter = [](Op op) { return op == Op::kNone ? "N" : "T"; };
    course::Case result{.problem = "batched " + std::to_string(s.count) + "x" + std::to_string(s.m) + "x" +
                                   std::to_string(s.n) + "x" + std::to_string(s.k) + " " + letter(op_a) +
                                   letter(op_b),
                        .dtype = "float"};
    result.spoil = [data] { data->c.spoil(); };
    result.verify = [data] { return data->expected.verify(data->c); };
    const course::Work work = day45::variants().front().work(s);
    result.contestants.push_back({.name = "cublas",
                                  .role = course::Role::kPeer,
                                  .launch = day45::make_cublas(data->matmul()),
                                  .work = work,
                                  .cannot_run = day45::why_no_cublas()});
    for (const day45::Batched& variant : day45::variants()) {
        result.contestants.push_back(
            {.name = variant.name,
             .launch = [data, &variant](cudaStream_t stream) { variant.launcher(data->matmul(), stream); },
             .work = work,
             .cannot_run = variant.cannot_run(s)});
    }
    return result;
}

// --- Reductions ------------------------------------------------------------------------------------------------------

struct Reductions {
    Reductions(const day45::ReduceShape& s)
        : shape(s),
          a(course::make_data<float>(s.m * s.k, DataPattern::kSignedUniform, 1)),
          b(course::make_data<float>(s.k * s.n, DataPattern::kSignedUniform, 2)),
          a_device(std::span<const float>(a)),
          b_device(std::span<const float>(b)),
          values(s.m),
          indices(s.m) {}

    day45::ReducedMatmul matmul() {
        return {.factors = {{.first = std::as_const(a_device).matrix(shape.m, shape.k)},
                            {.first = std::as_const(b_device).matrix(shape.k, shape.n)}},
                .metric = shape.metric,
                .reduction = shape.reduction,
                .along = shape.along,
                .values = values.span(),
                .indices = indices.span()};
    }

    // Of some rows all distances, evenly spaced; of the others, that the distance at the index is the value.
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
            std::vector<float> column(shape.k);
            for (std::size_t p = 0; p < shape.k; ++p)
                column[p] = b[p * shape.n + at[i]];
            const auto distance = day45::distances_on_cpu(shape.metric, 1, 1, shape.k,
                                                          std::span(a).subspan(i * shape.k, shape.k), column);
            named[i] = distance.values[0];
            magnitude[i] = distance.magnitudes[0];
        }
        const course::VerifyResult all = course::verify(got, named, bound(), magnitude);
        if (!all.ok()) return all;
        verified.damage += values.damage() + indices.damage();
        return verified;
    }

    course::Bound bound() const {
        return {.terms = shape.k + 4, .growth = course::Growth::kSquareRoot};
    }

    course::VerifyResult verify_some_rows(const std::vector<float>& got) const {
        const std::size_t count = std::min(kRowsVerified, shape.m);
        std::vector<float> rows;
        std::vector<float> got_of_rows;
        for (std::size_t r = 0; r < count; ++r) {
            const std::size_t row = r * (shape.m - 1) / std::max<std::size_t>(count - 1, 1);
            rows.insert(rows.end(), a.begin() + static_cast<std::ptrdiff_t>(row * shape.k),
                        a.begin() + static_cast<std::ptrdiff_t>((row + 1) * shape.k));
            got_of_rows.push_back(got[row]);
        }
        const auto distances = day45::distances_on_cpu(shape.metric, count, shape.n, shape.k, rows, b);
        const auto expected =
            day45::reduce_on_cpu(shape.reduction, day45::Along::kRows, count, shape.n, distances);
        return course::verify(got_of_rows, expected.values, bound(), expected.magnitudes);
    }

    day45::ReduceShape shape;
    std::vector<float> a, b;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> values;
    course::GuardedBuffer<std::uint32_t> indices;
};

course::Case make_reduced(const course::Dims& size, day45::Metric metric) {
    if (size.size() != 3) return {};
    const auto data = std::make_shared<Reductions>(
        day45::ReduceShape{.m = size[0], .n = size[1], .k = size[2], .metric = metric});
    const day45::ReduceShape& s = data->shape;
    course::Case result{.problem = "argmin of " + day45::name(metric) + " " + std::to_string(s.m) + "x" +
                                   std::to_string(s.n) + "x" + std::to_string(s.k),
                        .dtype = "float"};
    result.spoil = [data] {
        data->values.spoil();
        data->indices.spoil();
    };
    result.verify = [data] { return data->verify(); };
    for (const day45::Reduce& variant : day45::reduce_variants()) {
        const std::size_t words = variant.launcher.scratch_size(s);
        course::Contestant contestant{
            .name = variant.name, .work = variant.work(s), .cannot_run = variant.cannot_run(s)};
        contestant.figures = [words] {
            return course::Figures{{"scratch MB", static_cast<double>(words * 8) / 1e6}};
        };
        // Scratch memory for when it is this one's turn: of the unfused version it may be tens of gigabytes.
        contestant.prepare = [data, &variant, words](course::Contestant& me) {
            const auto scratch = std::make_shared<DeviceBuffer<std::uint64_t>>(words);
            me.launch = [data, &variant, scratch](cudaStream_t stream) {
                day45::ReducedMatmul matmul = data->matmul();
                matmul.scratch = scratch->span();
                variant.launcher.launch(matmul, stream);
            };
        };
        result.contestants.push_back(std::move(contestant));
    }
    return result;
}

// --- The nearest neighbours ------------------------------------------------------------------------------------------

constexpr std::size_t kNeighbours = 128;
constexpr std::size_t kMostNamed = std::size_t{1} << 21;  // neighbours, which are all verified one by one

course::Case make_nearest(const course::Dims& size) {
    if (size.size() != 3) return {};
    const std::size_t k = std::min(kNeighbours, size[1]);
    if (size[0] * k > kMostNamed) return {};
    return course::make_top_k_case({size[0], size[1], size[2], k});
}

// --- k-means ---------------------------------------------------------------------------------------------------------

// Centres are for many points each.
course::Case make_k_means(const course::Dims& size) {
    constexpr std::size_t kLeastOfEach = 10;
    if (size.size() != 3 || size[0] / kLeastOfEach < size[1]) return {};
    return day45::make_k_means_case(size);
}

// --- Which problems a size is -----------------------------------------------------------------------------------------

// Without --size and --bench: each part, small.
const course::Dims kDefault = {2, 200, 200, 64};
const course::Dims kDefaultOfKMeans = {1000, 16, 16};

course::Dims count_m_n_k(const course::Dims& size) {
    if (size.size() != 3 && size.size() != 4) {
        throw std::invalid_argument(
            "expected count x m x n x k, for example 8x256x256x64, or m x n x k, for example 512x512x64");
    }
    return size;
}

course::Dims m_n_k(const course::Dims& size) {
    return size == kDefault ? course::Dims(size.begin() + 1, size.end()) : size;
}

// Masks are for products of as many rows as columns; of small ones there are no tiles to skip.
course::Case make_masked(const course::Dims& size, course::Case (*make)(const course::Dims&)) {
    constexpr std::size_t kLeast = 512;
    const bool is_one =
        size.size() == 4 && size[1] == size[2] && (size[1] >= kLeast || course::is_cpu_stand_in());
    return is_one ? make(size) : course::Case{};
}

void add_options(CLI::App& app, course::Program& program, std::string& clusters) {
    app.add_option(
        "--clusters", clusters,
        "write what k-means does with points in the plane, as JSON (scripts/plot_k_means.py draws it)");
    app.callback([&] {
        if (!clusters.empty()) program.finish = [&] { day45::write_clusters(clusters); };
    });
}

}  // namespace

int main(int argc, char** argv) {
    std::string clusters;
    course::Program program{.day = "day45_fused_matmul",
                            .title = "matrix products that do something else with their results",
                            .default_size = kDefault,
                            .bench_sizes = {{1024, 128, 128, 128},
                                            {256, 256, 256, 256},
                                            {64, 512, 512, 512},
                                            {128, 1024, 1024, 64},
                                            {128, 1024, 1024, 128},
                                            {8192, 8192, 64},
                                            {16384, 16384, 64},
                                            {8192, 8192, 256},
                                            {1024, 1000000, 64},
                                            {1024, 1000000, 256},
                                            {1000000, 10000, 64}},
                            .make_cases = {}};  // below
    for (const Op op_a : {Op::kNone, Op::kTranspose}) {
        for (const Op op_b : {Op::kNone, Op::kTranspose}) {
            program.make_cases.push_back(
                [=](const course::Dims& size) { return make_batched(count_m_n_k(size), op_a, op_b); });
            program.make_cases.push_back([=](const course::Dims& size) {
                return day45::make_batched_bfloat16_case(size, op_a, op_b);
            });
        }
    }
    for (const auto make : {day45::make_masked_case, day45::make_masked_by_array_case})
        program.make_cases.push_back([=](const course::Dims& size) { return make_masked(size, make); });
    for (const day45::Metric metric : {day45::Metric::kDot, day45::Metric::kSquaredL2}) {
        program.make_cases.push_back(
            [=](const course::Dims& size) { return make_reduced(m_n_k(size), metric); });
    }
    program.make_cases.push_back(
        [](const course::Dims& size) { return make_k_means(size == kDefault ? kDefaultOfKMeans : size); });
    program.make_cases.push_back([](const course::Dims& size) { return make_nearest(m_n_k(size)); });
    program.add_options = [&](CLI::App& app, course::Program& own) { add_options(app, own, clusters); };
    return course::run_program(program, argc, argv);
}

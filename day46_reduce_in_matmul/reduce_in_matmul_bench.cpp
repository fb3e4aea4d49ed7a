// Day 46's program: the nearest of many vectors, from products that are never written; and k-means.
//
//     day46_reduce_in_matmul --size 512x512x64        the nearest of 512 vectors of 64 elements for each of 512 others
//     day46_reduce_in_matmul --size 20000x100x64      the same, and an iteration of k-means: 20000 points, 100 centres
//     day46_reduce_in_matmul --plot                   many sizes, without k-means: K = 16, 64, 256, and 64 products
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
#include "beyond/reduce_half_bench.hpp"
#include "common/bench/cublas_sgemm.hpp"
#include "common/bench/program.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "reduce_in_matmul.hpp"
#include "reduce_in_matmul_peer.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;

constexpr std::size_t kRowsVerified = 64;  // those of which all distances are worked out

// --- Reductions ----------------------------------------------------------------------------------

struct Reductions {
    Reductions(const day46::ReduceShape& s)
        : shape(s),
          a(course::make_data<float>(s.count * s.m * s.d, DataPattern::kSignedUniform, 1)),
          b(course::make_data<float>(s.count * s.d * s.n, DataPattern::kSignedUniform, 2)),
          a_device(std::span<const float>(a)),
          b_device(std::span<const float>(b)),
          values(s.count * s.m),
          indices(s.count * s.m) {}

    day46::ReducedMatmul matmul() {
        const auto batch = [&](const auto& buffer, std::size_t rows, std::size_t cols) {
            return course::Batch<const float>{
                .first = buffer.matrix(rows, cols), .count = shape.count, .stride = rows * cols};
        };
        return {.operands = {batch(std::as_const(a_device), shape.m, shape.d),
                             batch(std::as_const(b_device), shape.d, shape.n)},
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
        std::vector<double> named(got.size(), std::numeric_limits<double>::quiet_NaN());
        std::vector<double> magnitude(got.size());
#pragma omp parallel for
        for (std::ptrdiff_t row = 0; row < static_cast<std::ptrdiff_t>(got.size()); ++row) {
            const auto i = static_cast<std::size_t>(row);
            if (at[i] >= shape.n) continue;
            const std::span<const float> of_product = columns_of(i);
            std::vector<float> column(shape.d);
            for (std::size_t p = 0; p < shape.d; ++p)
                column[p] = of_product[p * shape.n + at[i]];
            const auto distance = course::distances_on_cpu(shape.metric, 1, 1, shape.d, vector_of(i), column);
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
        const std::size_t count = std::min(kRowsVerified, got.size());
        std::vector<float> got_of_rows(count);
        std::vector<double> expected(count);
        std::vector<double> magnitudes(count);
#pragma omp parallel for
        for (std::ptrdiff_t signed_r = 0; signed_r < static_cast<std::ptrdiff_t>(count); ++signed_r) {
            const auto r = static_cast<std::size_t>(signed_r);
            const std::size_t row = r * (got.size() - 1) / std::max<std::size_t>(count - 1, 1);
            const auto of_row = day46::reduce_on_cpu(
                shape.reduction, day46::Along::kRows, 1, shape.n,
                course::distances_on_cpu(shape.metric, 1, shape.n, shape.d, vector_of(row), columns_of(row)));
            got_of_rows[r] = got[row];
            expected[r] = of_row.values[0];
            magnitudes[r] = of_row.magnitudes[0];
        }
        return course::verify(got_of_rows, expected, bound(), magnitudes);
    }

    // Row `row` of the rows of all products, and the columns of its product.
    std::span<const float> vector_of(std::size_t row) const {
        return std::span(a).subspan(row * shape.d, shape.d);
    }
    std::span<const float> columns_of(std::size_t row) const {
        return std::span(b).subspan(row / shape.m * shape.d * shape.n, shape.d * shape.n);
    }

    day46::ReduceShape shape;
    std::vector<float> a, b;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> values;
    course::GuardedBuffer<std::uint32_t> indices;
};

course::Case make_reduced(const std::shared_ptr<Reductions>& data) {
    const day46::ReduceShape& s = data->shape;
    course::Case result{.problem = "argmin of " + course::name(s.metric) + " " +
                                   (s.count == 1 ? "" : std::to_string(s.count) + "x") + std::to_string(s.m) +
                                   "x" + std::to_string(s.n) + "x" + std::to_string(s.d),
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

// Least dot products beside those that cuBLAS writes and the second kernel of `unfused` reads.
course::Case make_plotted(const course::Dims& size) {
    const day46::ReduceShape shape{.m = size[1], .n = size[2], .d = size[3], .count = size[0]};
    const auto data = std::make_shared<Reductions>(shape);
    course::Case result = make_reduced(data);
    // Tensor cores take one product.
    if (shape.count != 1)
        std::erase_if(result.contestants, [](const auto& each) { return each.name == "fused_wgmma"; });
    course::Contestant peer{.name = "cublas_then_reduce",
                            .role = course::Role::kPeer,
                            .work = day46::reduce_versions().front().work(shape),
                            .cannot_run = course::why_no_cublas()};
    peer.prepare = [data, shape](course::Contestant& me) {
        const auto product = std::make_shared<DeviceBuffer<float>>(shape.count * shape.m * shape.n);
        me.launch = [product, work = day46::make_cublas_then_reduce(data->matmul(), product->span())](
                        cudaStream_t stream) { work(stream); };
    };
    result.contestants.insert(result.contestants.begin(), std::move(peer));
    return result;
}

std::vector<course::Dims> sizes_of_plots() {
    std::vector<course::Dims> sizes;
    for (const std::size_t d : {16, 64, 256}) {
        for (const std::size_t n : {512, 1024, 2048, 4096, 8192, 16384})
            sizes.push_back({1, n, n, d});
    }
    for (const std::size_t n : {128, 256, 512, 1024, 2048})
        sizes.push_back({64, n, n, 64});
    return sizes;
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

course::Dims count_m_n_k(course::Dims size) {
    if (size.size() == 3) size.insert(size.begin(), 1);
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
    course::Program program{
        .day = "day46_reduce_in_matmul",
        .title = "minima of matrix products that are never written",
        .default_size = kDefault,
        .bench_sizes = {{8192, 8192, 64},
                        {16384, 16384, 64},
                        {8192, 8192, 256},
                        {1024, 1000000, 64},
                        {1024, 1000000, 256},
                        {1000000, 10000, 64},
                        {100000, 100, 64}},
        .plot_sizes = sizes_of_plots(),
        .make_cases = {},  // below
        .plot_cases = {[](const course::Dims& size) { return make_plotted(count_m_n_k(size)); }}};
    for (const course::Metric metric : {course::Metric::kDot, course::Metric::kSquaredL2}) {
        program.make_cases.push_back([=](const course::Dims& size) {
            m_n_k(size);
            return make_reduced(std::make_shared<Reductions>(
                day46::ReduceShape{.m = size[0], .n = size[1], .d = size[2], .metric = metric}));
        });
    }
    program.make_cases.emplace_back(day46::make_half_case);
    program.make_cases.emplace_back(day46::make_bfloat16_case);
    program.make_cases.push_back(
        [](const course::Dims& size) { return make_k_means(size == kDefault ? kDefaultOfKMeans : size); });
    program.make_cases.push_back([](const course::Dims& size) {
        return day46::make_mixture_case(size == kDefault ? kDefaultOfKMeans : size);
    });
    program.add_options = [&](CLI::App& app, course::Program& own) { add_options(app, own, clusters); };
    return course::run_program(program, argc, argv);
}

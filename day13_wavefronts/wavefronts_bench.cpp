// Day 13's program: every version verified and timed.
//
//     day13_wavefronts --size 4096           sequences of 4096 symbols, graph of 4096 vertices
//     day13_wavefronts --size 1000x3000      sequences alone
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "beyond/alignments_bench.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "wavefronts.hpp"

namespace {

using course::DeviceBuffer;
using day13::Symbol;

constexpr std::uint64_t kSeed = 13;

// --- Edit distance -------------------------------------------------------------------------------

constexpr double kMostChecked = 4e9;  // cells that the plain loop computes in some seconds

std::vector<Symbol> random_symbols(std::size_t n, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<Symbol> symbols(n);
    for (Symbol& symbol : symbols)
        symbol = static_cast<Symbol>(random.below(4));
    return symbols;
}

struct Pair {
    Pair(std::size_t m, std::size_t n)
        : a(random_symbols(m, kSeed)), b(random_symbols(n, kSeed + 1)), distances(n + 1), workspace(m, n) {
        if (static_cast<double>(m) * static_cast<double>(n) <= kMostChecked) {
            expected = day13::edit_distances_on_cpu(a, b);
        } else {
            // Too many for the loop. The time does not depend on the data, so b starts as a does:
            // then the first j symbols of b need m - j insertions, or the rest of j - m deletions.
            std::copy_n(a.begin(), std::min(m, n), b.begin());
            for (std::size_t j = 0; j <= n; ++j)
                expected.push_back(static_cast<int>(std::max(m, j) - std::min(m, j)));
        }
        a_device = DeviceBuffer<Symbol>(std::span<const Symbol>(a));
        b_device = DeviceBuffer<Symbol>(std::span<const Symbol>(b));
    }

    std::vector<Symbol> a, b;
    std::vector<int> expected;
    DeviceBuffer<Symbol> a_device{0}, b_device{0};
    course::GuardedBuffer<int> distances;
    day13::Workspace workspace;
};

course::Case edit_case(const course::Dims& size) {
    course::require(
        size.size() <= 2, "size has ", size.size(),
        " numbers; expected one, the length of both sequences, or both lengths, such as 1000x3000");
    const day13::Sequences lengths{size.front(), size.back()};
    course::UsualCase<Pair> usual(
        "edit distance " + std::to_string(lengths.m) + "x" + std::to_string(lengths.n), "uint8",
        std::make_shared<Pair>(lengths.m, lengths.n));
    usual.output(&Pair::distances,
                 [](const Pair& pair, const auto& got) { return course::verify_exact(got, pair.expected); });
    usual.versions(day13::edit_versions(), lengths,
                   [](const day13::EditVersion& version, Pair& pair, cudaStream_t stream) {
                       version.launcher(pair.a_device.span(), pair.b_device.span(), pair.distances.span(),
                                        pair.workspace, stream);
                   });
    for (course::Contestant& version : usual.result.contestants)
        if (version.name == "diagonals" && lengths.cells() > 1e6)
            version.not_profiled = std::to_string(lengths.m + lengths.n + 1) + " launches";
    usual.plain_loop(
        day13::edit_versions().front().work(lengths), lengths.cells() * 1.5e-9,
        [n = lengths.n] { return course::unwritten<int>(n + 1); },
        [](const Pair& pair, std::vector<int>& out, int) {
            out = day13::edit_distances_on_cpu(pair.a, pair.b);
        },
        [](const Pair& pair, const std::vector<int>& out) {
            return course::verify_exact(out, pair.expected);
        });
    usual.result.derive_figures = [cells = lengths.cells()](std::span<course::Record> records) {
        day13::add_rates(records, cells, day13::kEditInstructions);
    };
    return usual.result;
}

// --- Local alignment -----------------------------------------------------------------------------

constexpr day13::Scoring kScoring{};

struct LocalPair {
    LocalPair(std::size_t m, std::size_t n)
        : a(random_symbols(m, kSeed)), b(random_symbols(n, kSeed + 1)), score(1), workspace(m, n) {
        if (static_cast<double>(m) * static_cast<double>(n) <= kMostChecked) {
            expected = {day13::local_score_on_cpu(a, b, kScoring)};
        } else {
            // As above. No alignment has a higher score than all symbols of the shorter one paired.
            std::copy_n(a.begin(), std::min(m, n), b.begin());
            expected = {kScoring.match * static_cast<int>(std::min(m, n))};
        }
        a_device = DeviceBuffer<Symbol>(std::span<const Symbol>(a));
        b_device = DeviceBuffer<Symbol>(std::span<const Symbol>(b));
    }

    std::vector<Symbol> a, b;
    std::vector<int> expected;
    DeviceBuffer<Symbol> a_device{0}, b_device{0};
    course::GuardedBuffer<int> score;
    day13::Workspace workspace;
};

course::Case local_case(const course::Dims& size) {
    const day13::Sequences lengths{size.front(), size.back()};
    course::UsualCase<LocalPair> usual(
        "local alignment " + std::to_string(lengths.m) + "x" + std::to_string(lengths.n), "uint8",
        std::make_shared<LocalPair>(lengths.m, lengths.n));
    usual.output(&LocalPair::score, [](const LocalPair& pair, const auto& got) {
        return course::verify_exact(got, pair.expected);
    });
    usual.versions(day13::local_versions(), lengths,
                   [](const day13::LocalVersion& version, LocalPair& pair, cudaStream_t stream) {
                       version.launcher(pair.a_device.span(), pair.b_device.span(), kScoring,
                                        pair.score.span(), pair.workspace, stream);
                   });
    usual.result.derive_figures = [cells = lengths.cells()](std::span<course::Record> records) {
        day13::add_rates(records, cells, day13::kLocalInstructions);
    };
    return usual.result;
}

// --- All shortest paths --------------------------------------------------------------------------

// Half of the edges, with whole weights: sums are exact.
std::vector<float> random_graph(std::size_t n) {
    std::vector<float> weights(n * n);
#pragma omp parallel for
    for (std::size_t i = 0; i < n; ++i) {
        course::Random random(kSeed, i);
        for (std::size_t j = 0; j < n; ++j) {
            const int weight = random.integer(1, 10000);
            weights[i * n + j] = static_cast<float>(weight);
            if (random.below(2) == 0) weights[i * n + j] = INFINITY;
            if (i == j) weights[i * n + j] = 0;
        }
    }
    return weights;
}

constexpr std::size_t kMostCheckedVertices = 2048;

// A launch changes its input, so each starts with a copy of the weights. A copy is short beside n^3
// cells: 16 n^2 bytes are written and read.
struct Weights {
    explicit Weights(std::size_t vertices)
        : n(vertices), weights(random_graph(n)), device(std::span<const float>(weights)), distance(n * n) {
        if (n <= kMostCheckedVertices) {
            std::vector<double> exact(weights.begin(), weights.end());
            day13::shortest_paths_on_cpu(exact, n);
            expected = std::move(exact);
        } else {  // the plain loops would take minutes: the first and the last row
            for (const std::size_t source : {std::size_t{0}, n - 1}) {
                const std::vector<double> row = day13::shortest_paths_from_on_cpu(weights, n, source);
                expected.insert(expected.end(), row.begin(), row.end());
            }
        }
    }

    // All rows, or those that are in `expected`.
    course::VerifyResult verify(const std::vector<float>& got) const {
        if (expected.size() == n * n) return course::verify(got, expected, {.factor = 0});
        std::vector<float> rows;
        for (const std::size_t row : {std::size_t{0}, n - 1})
            rows.insert(rows.end(), got.begin() + static_cast<std::ptrdiff_t>(row * n),
                        got.begin() + static_cast<std::ptrdiff_t>((row + 1) * n));
        return course::verify(rows, expected, {.factor = 0});
    }

    std::size_t n;
    std::vector<float> weights;
    std::vector<double> expected;
    DeviceBuffer<float> device;
    course::GuardedBuffer<float> distance;
};

course::Case path_case(const course::Dims& size) {
    if (size.size() != 1) return {};
    const std::size_t n = size.front();
    course::UsualCase<Weights> usual("shortest paths " + std::to_string(n), "float",
                                     std::make_shared<Weights>(n));
    usual.output(&Weights::distance, [](const Weights& data, const auto& got) { return data.verify(got); });
    usual.versions(day13::path_versions(), n,
                   [](const day13::PathVersion& version, Weights& data, cudaStream_t stream) {
                       CUDA_CHECK(cudaMemcpyAsync(data.distance.data(), data.device.data(),
                                                  data.device.bytes(), cudaMemcpyDeviceToDevice, stream));
                       version.launcher(data.distance.span(), data.n, stream);
                   });
    usual.result.derive_figures = [n](std::span<course::Record> records) {
        const auto vertices = static_cast<double>(n);
        for (course::Record& record : records)
            if (record.measurement)
                record.figures.push_back(
                    {"GCUPS", vertices * vertices * vertices / record.measurement->ms.median * 1e-6});
    };
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day13_wavefronts",
        .title = "edit distance of two sequences; all shortest paths of a graph",
        .default_size = {192},
        .bench_sizes = {{1024}, {4096}, {16384}},
        .make_cases = {edit_case, local_case, path_case, day13::trace_case, day13::local_trace_case,
                       day13::affine_case, day13::search_case, day13::frechet_case},
        .stand_in_limit = 512};
    return course::run_program(program, argc, argv);
}

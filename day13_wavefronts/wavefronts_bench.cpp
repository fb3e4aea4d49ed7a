// Day 13's program: every version verified and timed.
//
//     day13_wavefronts --size 4096           edit distance of 4096 and 4096 symbols, paths of 4096 vertices
//     day13_wavefronts --size 1000x3000      edit distance alone
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
        for (course::Record& record : records)
            if (record.measurement)
                record.figures.push_back({"GCUPS", cells / record.measurement->ms.median * 1e-6});
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
        }
    }

    course::VerifyResult verify(const std::vector<float>& got) const {
        if (!expected.empty()) return course::verify(got, expected, {.factor = 0});
        return verify_rows(got);
    }

    // Where the plain loops would take minutes: some rows by Dijkstra's method, n^2 steps for each.
    course::VerifyResult verify_rows(const std::vector<float>& got) const {
        std::vector<float> some_got;
        std::vector<double> some_expected;
        for (std::size_t row = 0; row < n; row += n / 4 + 1) {
            const std::vector<float> lengths = from(row);
            some_expected.insert(some_expected.end(), lengths.begin(), lengths.end());
            some_got.insert(some_got.end(), got.begin() + static_cast<std::ptrdiff_t>(row * n),
                            got.begin() + static_cast<std::ptrdiff_t>((row + 1) * n));
        }
        return course::verify(some_got, some_expected, {.factor = 0});
    }

    std::vector<float> from(std::size_t source) const {
        std::vector<float> length(n, INFINITY);
        std::vector<char> done(n);
        length[source] = 0;
        for (std::size_t round = 0; round < n; ++round) {
            std::size_t nearest = n;
            for (std::size_t v = 0; v < n; ++v)
                if (!done[v] && (nearest == n || length[v] < length[nearest])) nearest = v;
            done[nearest] = 1;
            for (std::size_t v = 0; v < n; ++v)
                length[v] = std::min(length[v], length[nearest] + weights[nearest * n + v]);
        }
        return length;
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
    const course::Program program{.day = "day13_wavefronts",
                                  .title = "edit distance of two sequences; all shortest paths of a graph",
                                  .default_size = {192},
                                  .bench_sizes = {{1024}, {4096}, {16384}},
                                  .make_cases = {edit_case, path_case},
                                  .stand_in_limit = 512};
    return course::run_program(program, argc, argv);
}

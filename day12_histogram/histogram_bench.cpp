// Day 12's program: every version verified and timed on bytes that are spread evenly, all equal and
// skewed, and on ints.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "histogram.hpp"
#include "histogram_data.hpp"
#include "histogram_peer.hpp"
#include "histogram_plain_loop.hpp"

namespace {

using course::DeviceBuffer;
using day12::Counter;
using day12::Distribution;
using day12::Range;

constexpr std::size_t kManyBins = 4096;  // from here on, the versions for many bins run beside any_bins
constexpr std::size_t kFewestInManyBins = std::size_t{1} << 20;

template <class Value>
struct Data {
    Data(std::size_t n, Distribution distribution, Range range_of_bins, std::size_t bins)
        : range(range_of_bins),
          values(day12::make_values<Value>(n, distribution, range, 1)),
          expected(bins),
          device(std::span<const Value>(values)),
          copy(n),
          counts_device(bins),
          cub_counts_device(bins) {
        const auto width = static_cast<std::uint64_t>(range.upper - range.lower);
        for (const std::int64_t value : values)
            ++expected[static_cast<std::uint64_t>(value - range.lower) * bins / width];
    }

    Range range;
    std::vector<Value> values;
    std::vector<Counter> expected;
    DeviceBuffer<Value> device, copy;
    course::GuardedBuffer<Counter> counts_device;
    course::GuardedBuffer<std::uint32_t> cub_counts_device;
};

// The values lie within `range`.
template <class Value>
course::Case make_case(const std::string& problem, std::size_t n, Distribution distribution, Range range,
                       std::size_t bins) {
    using Inputs = Data<Value>;
    const day12::Problem shape = {.size = n, .value_bytes = sizeof(Value), .bins = bins, .range = range};
    const course::Work work = day12::versions().front().work(shape);

    course::UsualCase<Inputs> usual(problem, sizeof(Value) == 1 ? "uint8" : "int32",
                                    std::make_shared<Inputs>(n, distribution, range, bins));
    const auto verify = [](const Inputs& data, const auto& got) {
        return course::verify_exact(got, data.expected);
    };
    usual.output(&Inputs::counts_device, verify);
    usual.also_spoil([](Inputs& data) { data.cub_counts_device.spoil(); });
    // The other versions refuse ints: their 256 counters are indexed by the byte itself.
    const auto versions = sizeof(Value) == 1 ? day12::versions() : day12::versions().last(1);
    const auto launch = [](const auto& version, Inputs& data, cudaStream_t stream) {
        version.launcher(data.device.span(), data.range, data.counts_device.span(), stream);
    };
    usual.versions(versions, shape, launch);
    // What any_bins chooses from, and what it did before.
    if (bins >= kManyBins) usual.versions(day12::many_bins_versions(), shape, launch);
    course::Contestant cub =
        day12::cub_histogram(usual.data->device.span(), range, usual.data->cub_counts_device.span());
    cub.work = work;
    cub.verify = [data = usual.data] {
        const std::vector<std::uint32_t> counts = data->cub_counts_device.to_host();
        return course::verify_exact(std::vector<Counter>(counts.begin(), counts.end()), data->expected);
    };
    usual.add(cub);
    usual.plain_loop(
        work, static_cast<double>(n) * 2e-9, [bins] { return course::unwritten<Counter>(bins); },
        [](const Inputs& data, std::span<Counter> counts, int threads) {
            day12::count_plainly(data.values, data.range, counts, threads);
        },
        verify);
    // A copy writes as many bytes as it reads; a histogram only reads.
    usual.limit_copy(&Inputs::device, &Inputs::copy);
    return usual.result;
}

course::Case bytes_case(const course::Dims& size, Distribution distribution) {
    const std::size_t n = course::only_extent(size, "bytes");
    return make_case<std::uint8_t>(
        "histogram " + std::to_string(n) + " bytes " + std::string(name(distribution)), n, distribution,
        day12::kAllBytes, 256);
}

// As many bytes, in ints. Their range is no multiple of the bins.
course::Case ints_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "bytes") / sizeof(std::int32_t);
    return make_case<std::int32_t>("histogram " + std::to_string(n) + " ints uniform, 1024 bins", n,
                                   Distribution::kUniform, {-1000000, 1000000}, 1024);
}

// As many bytes, in ints in many bins. With few values this would time how counters are cleared.
course::Case many_bins_case(const course::Dims& size, Distribution distribution, std::size_t bins) {
    const std::size_t n = course::only_extent(size, "bytes") / sizeof(std::int32_t);
    if (n < kFewestInManyBins) return {};
    return make_case<std::int32_t>("histogram " + std::to_string(n) + " ints " +
                                       std::string(name(distribution)) + ", " + std::to_string(bins) +
                                       " bins",
                                   n, distribution, {-(1 << 21), 1 << 21}, bins);
}

std::vector<std::function<course::Case(const course::Dims&)>> all_cases() {
    std::vector<std::function<course::Case(const course::Dims&)>> cases;
    for (const Distribution distribution :
         {Distribution::kUniform, Distribution::kSingleValued, Distribution::kZipf})
        cases.push_back([=](const course::Dims& size) { return bytes_case(size, distribution); });
    cases.push_back(ints_case);
    for (const std::size_t bins : {std::size_t{4096}, std::size_t{1} << 16, std::size_t{1} << 20})
        for (const Distribution distribution : {Distribution::kUniform, Distribution::kSingleValued,
                                                Distribution::kZipf, Distribution::kSorted})
            cases.push_back(
                [=](const course::Dims& size) { return many_bins_case(size, distribution, bins); });
    return cases;
}

course::RandomProblem random_histogram(course::Draw& draw) {
    const auto [kind, size] = course::draw_length(draw);
    const std::size_t n = size[0];
    const auto distribution = draw.one_of(day12::kDistributions);
    const bool bytes = draw.one_of({true, false});
    const std::size_t bins = bytes ? draw.one_of<std::size_t>({draw.log_uniform(2, 256), 256})
                                   : std::max<std::size_t>(draw.jittered(draw.log_uniform(2, 1 << 20)), 2);
    const std::string text = std::to_string(n) + (bytes ? " bytes " : " ints ") +
                             std::string(name(distribution)) + ", " + std::to_string(bins) + " bins";
    // Ints have as many values as bins, or more.
    const auto spread = static_cast<std::int64_t>(bytes ? 256 : draw.log_uniform(bins, 1 << 24));
    return {
        kind + ", " + std::string(name(distribution)), {n, bins}, [=] {
            if (bytes)
                return make_case<std::uint8_t>("histogram " + text, n, distribution, day12::kAllBytes, bins);
            return make_case<std::int32_t>("histogram " + text + " of " + std::to_string(spread) + " values",
                                           n, distribution, {-spread / 2, spread - spread / 2}, bins);
        }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day12_histogram",
        .title = "how many of n bytes (or n/4 ints) fall into each bin",
        .default_size = {1 << 20},
        .bench_sizes = {{1 << 28}},
        .make_cases = all_cases(),
        .distributions = {{.name = "histograms",
                           .text =
                               "n bytes or ints in 2 to 2^20 bins, uniform, one value, zipf, runs, sorted: "
                               "any n, tiny, large",
                           .most = std::size_t{1} << 27,
                           .most_on_cpu = 1 << 18,
                           .ours = {"any_bins"},
                           .draw = random_histogram}}};
    return course::run_program(program, argc, argv);
}

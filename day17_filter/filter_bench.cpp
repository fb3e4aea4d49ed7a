// Day 17's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU.
#include <omp.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/expected_output.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "filter.hpp"
#include "filter_peer.hpp"
#include "filter_plain_loop.hpp"

namespace {

using course::DeviceBuffer;
using day17::Count;
using day17::Operation;

constexpr std::int32_t kValues = 1 << 16;  // the elements are 0 to kValues - 1
constexpr std::int32_t kUnwritten = -1;    // what a GuardedBuffer holds before anything is written

// `percent` of the elements are kept: below the threshold, or different from their left neighbour.
struct Data {
    Data(Operation operation, std::size_t n, int percent)
        : threshold(kValues / 100 * percent + kValues % 100 * percent / 100),
          in(n),
          copy(n),
          out(n),
          count(1),
          workspace(n) {
        const auto value = [](std::size_t i) {
            return static_cast<std::int32_t>(course::Random(17, i).below(kValues));
        };
        if (operation != Operation::kUnique) {
            course::for_each_index(n, [&](std::size_t i) { in[i] = value(i); });
        } else {
            course::for_each_sum<std::size_t>(
                n, [&](std::size_t i) { return value(i) < threshold ? 1 : 0; },
                [&](std::size_t i, std::size_t changes) {
                    in[i] = static_cast<std::int32_t>(changes % kValues);
                });
        }
        in_device = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(in));
        std::vector<std::int32_t> right(n);
        course::for_each_index(n, [&](std::size_t i) { right[i] = kUnwritten; });
        kept = filter_on_cpu(operation, in, threshold, right);
        expected = course::ExpectedOutput<std::int32_t>(std::move(right));
    }

    std::int32_t threshold;
    std::vector<std::int32_t> in;
    course::ExpectedOutput<std::int32_t> expected;
    std::size_t kept;
    DeviceBuffer<std::int32_t> in_device;
    DeviceBuffer<std::int32_t> copy;
    course::GuardedBuffer<std::int32_t> out;
    course::GuardedBuffer<Count> count;
    day17::Workspace workspace;
};

// How many elements have each value.
std::vector<std::uint64_t> histogram(const std::vector<std::int32_t>& values, std::size_t size) {
    std::vector<std::uint64_t> bins(kValues);
    std::mutex mutex;
    const std::size_t parts = static_cast<std::size_t>(omp_get_max_threads());
#pragma omp parallel for
    for (std::size_t part = 0; part < parts; ++part) {
        std::vector<std::uint64_t> mine(kValues);
        for (std::size_t i = size * part / parts; i < size * (part + 1) / parts; ++i)
            ++mine[static_cast<std::uint32_t>(values[i]) % kValues];
        const std::scoped_lock lock(mutex);
        for (std::size_t bin = 0; bin < mine.size(); ++bin)
            bins[bin] += mine[bin];
    }
    return bins;
}

course::VerifyResult same_count(const Data& data, course::VerifyResult result) {
    const Count count = data.count.to_host()[0];
    if (count == data.kept) return result;
    ++result.differing;
    result.first.insert(result.first.begin(),
                        {0, "a count of " + std::to_string(data.kept), std::to_string(count), ""});
    return result;
}

course::VerifyResult same(Data& data) {
    return same_count(data, data.expected.verify(data.out));
}

// As many elements of each value, in any order; and nothing behind them.
course::VerifyResult same_in_any_order(Data& data) {
    const std::vector<std::int32_t> got = data.out.to_host();
    const std::vector<std::int32_t>& expected = data.expected.on_host();
    const std::span<const std::int32_t> behind = std::span(got).subspan(data.kept);
    course::VerifyResult result = course::verify_exact(behind, std::span(expected).subspan(data.kept));
    if (!result.ok()) return same(data);
    return same_count(data, course::verify_exact(histogram(got, data.kept), histogram(expected, data.kept)));
}

course::Case filter_case(Operation operation, const std::string& name, int percent,
                         const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    course::UsualCase<Data> usual(name + " " + std::to_string(percent) + " % " + std::to_string(n), "int32",
                                  std::make_shared<Data>(operation, n, percent));
    Data& data = *usual.data;
    usual.output_in_place(&Data::out, same);
    usual.also_spoil([](Data& d) { d.count.spoil(); });

    std::vector<day17::Version> versions;
    for (const day17::Version& version : day17::versions())
        if (version.launcher.operation == operation) versions.push_back(version);
    const day17::Problem problem{n, data.kept};
    const course::Work work = versions.front().work(problem);
    usual.add(day17::cub_filter(operation, data.in_device.span(), data.threshold, data.out.span(),
                                data.count.span(), work));
    usual.versions(
        versions, problem,
        [](const day17::Version& version, Data& d, cudaStream_t stream) {
            version.launcher.launch(d.in_device.span(), d.threshold, d.out.span(), d.count.span(),
                                    d.workspace, stream);
        },
        [](const day17::Version& version, Data& d) {
            course::VerifyResult result = version.launcher.is_stable ? same(d) : same_in_any_order(d);
            result.damage = d.out.damage() + d.count.damage();
            return result;
        });
    usual.plain_loop(
        work, static_cast<double>(n) * 3e-9, [n] { return std::vector<std::int32_t>(n, kUnwritten); },
        [operation](const Data& d, std::span<std::int32_t> out, int threads) {
            filter_plainly(operation, d.in, d.threshold, out, threads);
        },
        [](const Data& d, const auto& out) { return d.expected.verify(out); });
    usual.limit_copy(&Data::in_device, &Data::copy, static_cast<std::size_t>(work.bytes / 2) / 4 * 4);
    return usual.result;
}

std::vector<std::function<course::Case(const course::Dims&)>> all_cases() {
    std::vector<std::function<course::Case(const course::Dims&)>> cases;
    const auto add = [&cases](Operation operation, const std::string& name, int percent) {
        cases.push_back(
            [=](const course::Dims& size) { return filter_case(operation, name, percent, size); });
    };
    for (const int percent : {50, 0, 1, 10, 90, 100})
        add(Operation::kSelect, "select", percent);
    for (const int percent : {50, 0, 1, 10, 90, 100})
        add(Operation::kUnique, "unique", percent);
    for (const int percent : {50, 10, 90})
        add(Operation::kPartition, "partition", percent);
    return cases;
}

course::RandomProblem random_filter(course::Draw& draw) {
    const auto [kind, size] = course::draw_length(draw);
    struct Choice {
        Operation operation;
        const char* name;
    };
    const auto [operation, name] = draw.one_of<Choice>({{Operation::kSelect, "select"},
                                                        {Operation::kUnique, "unique"},
                                                        {Operation::kPartition, "partition"}});
    const int percent = draw.one_of({0, 1, 3, 10, 30, 50, 70, 90, 99, 100});
    return {kind, size, [operation = operation, name = name, percent, size = size] {
                return filter_case(operation, name, percent, size);
            }};
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day17_filter",
        .title = "a filter of n 32-bit integers; 50 %: half of them are kept",
        .default_size = {1 << 16},
        .bench_sizes = {{1 << 16}, {1 << 20}, {1 << 24}, {1 << 28}},
        .make_cases = all_cases(),
        .distributions = {
            {.name = "filters",
             .text = "select, unique or partition of n integers, 0 to "
                     "100 % kept: any n, tiny, large",
             .most = std::size_t{1} << 27,
             .most_on_cpu = 1 << 18,
             .ours = {"bulk_filter", "single_pass", "bulk_unique", "single_pass_unique", "partition"},
             .draw = random_filter}}};
    return course::run_program(program, argc, argv);
}

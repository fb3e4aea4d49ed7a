// Day 17's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "filter.hpp"
#include "filter_peer.hpp"

namespace {

constexpr std::size_t kMostOnCpu = std::size_t{1} << 23;  // elements; more would take long to repeat

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
          expected(n, kUnwritten),
          on_cpu(n),
          in_device(n),
          copy(n),
          out(n),
          count(1),
          workspace(n) {
        course::Random random(17);
        for (std::size_t i = 0; i < n; ++i) {
            const auto value = static_cast<std::int32_t>(random.below(kValues));
            if (operation != Operation::kUnique) {
                in[i] = value;
            } else {
                const std::int32_t left = i > 0 ? in[i - 1] : 0;
                in[i] = value < threshold ? (left + 1) % kValues : left;
            }
        }
        in_device = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(in));
        kept = filter_on_cpu(operation, in, threshold, expected);
    }

    std::int32_t threshold;
    std::vector<std::int32_t> in;
    std::vector<std::int32_t> expected;
    std::size_t kept;
    std::vector<std::int32_t> on_cpu;
    DeviceBuffer<std::int32_t> in_device;
    DeviceBuffer<std::int32_t> copy;
    course::GuardedBuffer<std::int32_t> out;
    course::GuardedBuffer<Count> count;
    day17::Workspace workspace;
};

// How many elements have each value.
std::vector<std::uint64_t> histogram(const std::vector<std::int32_t>& values, std::size_t size) {
    std::vector<std::uint64_t> bins(kValues);
    for (std::size_t i = 0; i < size; ++i)
        ++bins[static_cast<std::uint32_t>(values[i]) % kValues];
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

course::VerifyResult same(const Data& data, const std::vector<std::int32_t>& got) {
    return same_count(data, course::verify_exact(got, data.expected));
}

// As many elements of each value, in any order; and nothing behind them.
course::VerifyResult same_in_any_order(const Data& data, const std::vector<std::int32_t>& got) {
    const auto behind = got.begin() + static_cast<std::ptrdiff_t>(data.kept);
    if (std::any_of(behind, got.end(), [](std::int32_t value) { return value != kUnwritten; }))
        return same(data, got);
    return same_count(data,
                      course::verify_exact(histogram(got, data.kept), histogram(data.expected, data.kept)));
}

course::Case filter_case(Operation operation, const std::string& name, int percent,
                         const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    course::UsualCase<Data> usual(name + " " + std::to_string(percent) + " % " + std::to_string(n), "int32",
                                  std::make_shared<Data>(operation, n, percent));
    Data& data = *usual.data;
    usual.output(&Data::out, same);
    usual.also_spoil([](Data& d) {
        d.count.spoil();
        std::ranges::fill(d.on_cpu, kUnwritten);
    });

    std::vector<day17::Version> versions;
    for (const day17::Version& version : day17::versions())
        if (version.launcher.operation == operation) versions.push_back(version);
    const day17::Problem problem{n, data.kept};
    const course::Work work = versions.front().work(problem);
    if (n <= kMostOnCpu)
        usual.cpu(
            work, [operation](Data& d) { filter_on_cpu(operation, d.in, d.threshold, d.on_cpu); },
            [](const Data& d) { return course::verify_exact(d.on_cpu, d.expected); });
    usual.add(day17::cub_filter(operation, data.in_device.span(), data.threshold, data.out.span(),
                                data.count.span(), work));
    usual.versions(
        versions, problem,
        [](const day17::Version& version, Data& d, cudaStream_t stream) {
            version.launcher.launch(d.in_device.span(), d.threshold, d.out.span(), d.count.span(),
                                    d.workspace, stream);
        },
        [](const day17::Version& version, const Data& d) {
            const std::vector<std::int32_t> got = d.out.to_host();
            course::VerifyResult result =
                version.launcher.is_stable ? same(d, got) : same_in_any_order(d, got);
            result.damage = d.out.damage() + d.count.damage();
            return result;
        });
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

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "day17_filter",
                                  .title = "a filter of n 32-bit integers; 50 %: half of them are kept",
                                  .default_size = {1 << 16},
                                  .bench_sizes = {{1 << 16}, {1 << 20}, {1 << 24}, {1 << 28}},
                                  .make_cases = all_cases()};
    return course::run_program(program, argc, argv);
}

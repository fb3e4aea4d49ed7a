// Day 24's program: every version verified and timed, beside CUB, a copy of as many bytes and the
// CPU.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/expected_output.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "single_pass.hpp"
#include "single_pass_peer.hpp"

namespace {

constexpr std::size_t kMostOnCpu = std::size_t{1} << 23;  // elements; more would take long to repeat

using course::DeviceBuffer;
using course::DeviceSpan;

// Whole numbers from -8 to 8.
struct Data {
    explicit Data(std::size_t n) : in(n), out(n), copy(n), workspace(n), on_cpu(n <= kMostOnCpu ? n : 0) {
        course::for_each_index(n, [&](std::size_t i) {
            in[i] = static_cast<std::int32_t>(course::Random(24, i).integer(-8, 8));
        });
        in_device = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(in));
    }

    std::vector<std::int32_t> in;
    DeviceBuffer<std::int32_t> in_device;
    course::GuardedBuffer<std::int32_t> out;
    DeviceBuffer<std::int32_t> copy;
    day24::Workspace workspace;
    course::ExpectedOutput<std::int32_t> expected;
    std::vector<std::int32_t> on_cpu;
};

course::Case sum_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    course::UsualCase<Data> usual("inclusive sum " + std::to_string(n), "int32", std::make_shared<Data>(n));
    std::vector<std::int32_t> sums(n);
    day24::scan_on_all_cores(usual.data->in, sums);
    usual.data->expected = course::ExpectedOutput<std::int32_t>(std::move(sums));
    usual.output_in_place(&Data::out, [](Data& data) { return data.expected.verify(data.out); });
    usual.also_spoil([](Data& data) { std::ranges::fill(data.on_cpu, std::numeric_limits<int>::max()); });

    const course::Work work = day24::versions().front().work(n);
    const auto verify_cpu = [](const Data& data) { return data.expected.verify(data.on_cpu); };
    if (n <= kMostOnCpu) {
        usual
            .cpu(
                work, [](Data& d) { day24::scan_on_cpu(d.in, d.on_cpu); }, verify_cpu)
            .name = "cpu";
        usual.cpu(
            work, [](Data& d) { day24::scan_on_all_cores(d.in, d.on_cpu); }, verify_cpu);
    }
    usual.add(day24::cub_scan(usual.data->in_device.span(), usual.data->out.span(), work));
    usual.versions(day24::versions(), n, [](const auto& version, Data& data, cudaStream_t stream) {
        version.launcher(data.in_device.span(), data.out.span(), data.workspace, stream);
    });
    usual.limit_copy(&Data::in_device, &Data::copy);
    return usual.result;
}

struct FilterData : Data {
    explicit FilterData(std::size_t n) : Data(n), count(1) {}
    course::GuardedBuffer<std::uint32_t> count;
    std::size_t kept = 0;
};

// Keeps the elements below 0: 8 of 17.
course::Case filter_case(const course::Dims& size) {
    constexpr std::int32_t kThreshold = 0;
    const std::size_t n = course::only_extent(size, "elements");
    course::UsualCase<FilterData> usual("filter " + std::to_string(n), "int32",
                                        std::make_shared<FilterData>(n));
    FilterData& data = *usual.data;
    std::vector<std::int32_t> right(n);
    data.kept = day24::filter_on_cpu(data.in, kThreshold, right);
    right.resize(data.kept);
    const auto expected = std::make_shared<const std::vector<std::int32_t>>(std::move(right));
    course::GuardedBuffer<std::int32_t> FilterData::*const out = &FilterData::out;  // inherited
    usual.output_in_place(out, [expected](FilterData& d) {
        std::vector<std::int32_t> got(std::min<std::size_t>(d.count.to_host()[0], d.out.size()));
        CUDA_CHECK(cudaMemcpy(got.data(), d.out.data(), got.size() * sizeof(got[0]), cudaMemcpyDeviceToHost));
        course::VerifyResult result;
        if (got.size() == expected->size()) return course::verify_exact(got, *expected);
        result.differing = 1;
        result.first.push_back(
            {0, "a count of " + std::to_string(expected->size()), std::to_string(d.count.to_host()[0]), ""});
        return result;
    });
    usual.also_spoil([](FilterData& d) { d.count.spoil(); });

    const auto bytes = static_cast<double>(4 * (n + data.kept));
    const course::Work work{
        .bytes = bytes, .written = static_cast<double>(4 * data.kept), .flops = static_cast<double>(n)};
    usual.add(day24::cub_filter(data.in_device.span(), kThreshold, data.out.span(), data.count.span(), work));
    usual.add({.name = "filter",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       day24::filter_below(data->in_device.span(), kThreshold, data->out.span(),
                                           data->count.span(), data->workspace, stream);
                   },
               .work = work});
    DeviceBuffer<std::int32_t> FilterData::*const in = &FilterData::in_device;
    DeviceBuffer<std::int32_t> FilterData::*const copy = &FilterData::copy;
    usual.limit_copy(in, copy, static_cast<std::size_t>(bytes / 2) / 4 * 4);
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day24_single_pass",
        .title = "the inclusive prefix sum of n integers, and a filter that keeps 8 of 17",
        .default_size = {1 << 18},
        .bench_sizes = {{1 << 16}, {1 << 20}, {1 << 24}, {1 << 28}},
        .make_cases = {sum_case, filter_case}};
    return course::run_program(program, argc, argv);
}

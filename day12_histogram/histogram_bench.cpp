// Day 12's program: every version verified and timed on bytes that are spread evenly, all equal and skewed, and on ints.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "histogram.hpp"
#include "histogram_data.hpp"
#include "histogram_peer.hpp"

namespace {

using course::DeviceBuffer;
using day12::Counter;
using day12::Distribution;
using day12::Range;

template <class Value>
struct Data {
    Data(std::size_t n, Distribution distribution, Range range_of_bins, std::size_t bins)
        : range(range_of_bins),
          values(day12::make_values<Value>(n, distribution, range, 1)),
          expected(bins),
          counts(bins),
          device(std::span<const Value>(values)),
          copy(n),
          counts_device(bins),
          cub_counts_device(bins) {
        const auto width = static_cast<std::uint64_t>(range.upper - range.lower);
        for (const std::int64_t value : values)  // independent of histogram_on_cpu, which is a contestant too
            ++expected[static_cast<std::uint64_t>(value - range.lower) * bins / width];
    }

    Range range;
    std::vector<Value> values;
    std::vector<Counter> expected, counts;
    DeviceBuffer<Value> device, copy;
    course::GuardedBuffer<Counter> counts_device;
    course::GuardedBuffer<std::uint32_t> cub_counts_device;
};

// The values lie within `range`.
template <class Value>
course::Case make_case(const std::string& problem, std::size_t n, Distribution distribution, Range range,
                       std::size_t bins) {
    const auto data = std::make_shared<Data<Value>>(n, distribution, range, bins);
    const day12::Problem shape = {.size = n, .value_bytes = sizeof(Value), .bins = bins};
    const course::Work work = day12::variants().front().work(shape);

    course::Case result{.problem = problem, .dtype = sizeof(Value) == 1 ? "uint8" : "int32"};
    result.spoil = [data] {
        data->counts_device.spoil();
        data->cub_counts_device.spoil();
        std::fill(data->counts.begin(), data->counts.end(), ~Counter{0});
    };
    result.verify = [data] {
        course::VerifyResult verified = course::verify_exact(data->counts_device.to_host(), data->expected);
        verified.damage = data->counts_device.damage();
        return verified;
    };
    result.contestants.push_back(
        {.name = "cpu_openmp",
         .role = course::Role::kPeer,
         .launch = [data](cudaStream_t) { day12::histogram_on_cpu(data->values, data->range, data->counts); },
         .work = work,
         .on_host = true,
         .verify = [data] { return course::verify_exact(data->counts, data->expected); }});
    for (const day12::Histogram& variant : day12::variants()) {
        result.contestants.push_back({.name = variant.name,
                                      .launch =
                                          [data, &variant](cudaStream_t stream) {
                                              variant.launcher(data->device.span(), data->range,
                                                               data->counts_device.span(), stream);
                                          },
                                      .work = work,
                                      .cannot_run = variant.cannot_run(shape)});
    }
    course::Contestant cub = day12::cub_histogram(data->device.span(), range, data->cub_counts_device.span());
    cub.work = work;
    cub.verify = [data] {
        const std::vector<std::uint32_t> counts = data->cub_counts_device.to_host();
        return course::verify_exact(std::vector<Counter>(counts.begin(), counts.end()), data->expected);
    };
    result.contestants.push_back(cub);
    // A copy, for the bandwidth: it writes as many bytes as it reads, a histogram only reads.
    result.contestants.push_back({.name = "cudaMemcpy",
                                  .role = course::Role::kLimit,
                                  .launch =
                                      [data](cudaStream_t stream) {
                                          CUDA_CHECK(cudaMemcpyAsync(data->copy.data(), data->device.data(),
                                                                     data->device.bytes(),
                                                                     cudaMemcpyDeviceToDevice, stream));
                                      },
                                  .work = {.bytes = 2.0 * static_cast<double>(n * sizeof(Value)),
                                           .written = static_cast<double>(n * sizeof(Value))}});
    return result;
}

std::size_t only_number(const course::Dims& size) {
    if (size.size() != 1) throw std::invalid_argument("expected one number of bytes, for example 1048576");
    return size[0];
}

course::Case bytes_case(const course::Dims& size, Distribution distribution) {
    const std::size_t n = only_number(size);
    return make_case<std::uint8_t>(
        "histogram " + std::to_string(n) + " bytes " + std::string(name(distribution)), n, distribution,
        day12::kAllBytes, 256);
}

// As many bytes, in ints. Their range is no multiple of the bins.
course::Case ints_case(const course::Dims& size) {
    const std::size_t n = only_number(size) / sizeof(std::int32_t);
    return make_case<std::int32_t>("histogram " + std::to_string(n) + " ints uniform, 1024 bins", n,
                                   Distribution::kUniform, {-1000000, 1000000}, 1024);
}

}  // namespace

int main(int argc, char** argv) {
    const auto bytes = [](Distribution distribution) {
        return [distribution](const course::Dims& size) { return bytes_case(size, distribution); };
    };
    const course::Program program{
        .day = "day12_histogram",
        .title = "how many of n bytes (or n/4 ints) fall into each bin",
        .default_size = {1 << 20},
        .bench_sizes = {{1 << 28}},
        .make_cases = {bytes(Distribution::kUniform), bytes(Distribution::kSingleValued),
                       bytes(Distribution::kZipf), ints_case}};
    return course::run_program(program, argc, argv);
}

// Day 9's program: every version verified and timed by the host's clock, beside what it could
// overlap: the copies alone, both directions at once, the kernel alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/bench/program.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/device/device_buffer.hpp"
#include "copies_and_streams.hpp"

namespace {

using course::Contestant;
using day09::HostBuffer;
using day09::HostMemory;

struct Options {
    int work = course::is_cpu_stand_in() ? 16 : 2048;  // about as long as a copy, on a GPU as fast as an H200
    int chunks = 0;                                    // 0: by the size
};

// How many chunks take the least time, when the kernel takes about as long as a copy. All in units
// of the time in which one float crosses the bus: c chunks take (c + 2) / c * n, since the first
// copy in and the last copy out overlap with little, and c * start for the calls. The sum is
// smallest where c * c is 2 * n / start. At least 2, or nothing overlaps.
int chunks_for(std::size_t n) {
    // In floats. An assumption: starting a chunk takes 5 us, in which a bus of 52 GB/s carries 256
    // KB.
    constexpr double kStart = 1 << 16;
    return static_cast<int>(std::max(2.0, std::round(std::sqrt(2 * static_cast<double>(n) / kStart))));
}

// A second or so for each run on 16 cores.
std::string too_long_on_cpu(std::size_t n, int steps) {
    constexpr double kMultiplyAdds = 1ULL << 37;
    return static_cast<double>(n) * steps <= kMultiplyAdds ? "" : "it would take long on the CPU";
}

// What all versions of a case share. The CPU computes all expected values, whatever the size: a
// fused multiply-add has one right result, so every element of every version is compared, and must
// be equal.
struct Data {
    Data(std::size_t n, int steps)
        : in(course::make_data<float>(n, course::DataPattern::kSignedUniform, 1)), on_cpu(n) {
        day09::iterate_on_cpu(in, on_cpu, steps);
        expected.assign(on_cpu.begin(), on_cpu.end());
    }
    std::vector<float> in;
    std::vector<float> on_cpu;
    std::vector<double> expected;
};

// A version with host memory of its kind; made when its turn comes.
struct Ready {
    Ready(const day09::Version& version, const Data& data, int steps, int chunks)
        : in(version.launcher.memory, data.in.size()),
          out(version.launcher.memory, data.in.size()),
          runner(version, {in.data(), out.data(), data.in.size(), steps, chunks}) {
        std::copy(data.in.begin(), data.in.end(), in.data());
    }
    HostBuffer in;
    HostBuffer out;
    day09::Runner runner;
};

Contestant make_contestant(const day09::Version& version, const std::shared_ptr<Data>& data, int steps,
                           int chunks) {
    const day09::Problem problem{data->in.size(), steps};
    return {.name = version.name,
            .work = version.work(problem),
            .cannot_run = version.cannot_run(problem),
            .on_host = true,
            .drives_device = true,
            .prepare = [=, &version](Contestant& self) {
                const auto ready = std::make_shared<Ready>(version, *data, steps, chunks);
                std::memset(ready->out.data(), 0xFF, data->in.size() * sizeof(float));
                self.launch = [ready](cudaStream_t) { ready->runner.run(); };
                // Spoils what it has read, so that the next check sees a result of the next run.
                self.verify = [ready, data] {
                    course::VerifyResult result =
                        course::verify(ready->out.span(), data->expected, {.factor = 0});
                    std::memset(ready->out.data(), 0xFF, data->in.size() * sizeof(float));
                    return result;
                };
            }};
}

class Stream {
  public:
    Stream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

// Pinned and device memory, and a stream for each direction.
struct Bus {
    explicit Bus(std::size_t n)
        : host_in(HostMemory::kPinned, n), host_out(HostMemory::kPinned, n), device_in(n), device_out(n) {
        std::fill(host_in.span().begin(), host_in.span().end(), 0.5f);
        CUDA_CHECK(cudaMemset(device_in.data(), 0, device_in.bytes()));
        CUDA_CHECK(cudaMemset(device_out.data(), 0, device_out.bytes()));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    void queue_in() {
        CUDA_CHECK(
            cudaMemcpyAsync(device_in.data(), host_in.data(), device_in.bytes(), cudaMemcpyHostToDevice, in));
    }
    void queue_out() {
        CUDA_CHECK(cudaMemcpyAsync(host_out.data(), device_out.data(), device_out.bytes(),
                                   cudaMemcpyDeviceToHost, out));
    }
    void wait() const {
        CUDA_CHECK(cudaStreamSynchronize(in));
        CUDA_CHECK(cudaStreamSynchronize(out));
    }
    HostBuffer host_in, host_out;
    course::DeviceBuffer<float> device_in, device_out;
    Stream in, out;
};

// `queue` and a wait, timed as the versions are.
Contestant make_limit(const std::string& name, std::size_t n, const course::Work& work,
                      void (*queue)(Bus&, int steps), int steps) {
    return {.name = name,
            .role = course::Role::kLimit,
            .work = work,
            .on_host = true,
            .drives_device = true,
            .prepare = [=](Contestant& self) {
                const auto bus = std::make_shared<Bus>(n);
                self.launch = [=](cudaStream_t) {
                    queue(*bus, steps);
                    bus->wait();
                };
            }};
}

constexpr const char* kIn = "copy_in";
constexpr const char* kOut = "copy_out";
constexpr const char* kBothWays = "copy_both_ways";
constexpr const char* kKernel = "kernel_alone";

// The time of a contestant, in milliseconds; none if it was not asked for, or failed.
std::optional<double> median_of(std::span<const course::Record> records, const std::string& name) {
    for (const course::Record& record : records)
        if (record.version == name && record.measurement) return record.measurement->ms.median;
    return std::nullopt;
}

// Perfect overlap takes as long as the longer one of copying, in both directions at once, and
// computing.
void derive_overlap(std::span<course::Record> records) {
    if (course::is_cpu_stand_in()) return;  // where nothing overlaps
    const std::optional<double> copy = median_of(records, kBothWays);
    const std::optional<double> kernel = median_of(records, kKernel);
    if (!copy || !kernel) return;
    for (course::Record& record : records) {
        if (record.role != course::Role::kOurs || !record.measurement) continue;
        record.figures.emplace_back("overlap %",
                                    100 * std::max(*copy, *kernel) / record.measurement->ms.median);
    }
}

// Says what the column `overlap %` is. Without any overlap it is not 0, so that is said, too.
std::string explain_overlap(std::span<const course::Record> records, int chunks) {
    const std::optional<double> in = median_of(records, kIn);
    const std::optional<double> out = median_of(records, kOut);
    const std::optional<double> copy = median_of(records, kBothWays);
    const std::optional<double> kernel = median_of(records, kKernel);
    if (!in || !out || !copy || !kernel) return "";
    if (course::is_cpu_stand_in()) {
        return fmt::format(
            "On a GPU there would be a column overlap %: on the CPU nothing overlaps.\n"
            "chunked_streams and graph: {} chunks\n",
            chunks);
    }
    return fmt::format(
        "overlap % = 100 * longer one of ({}, {}) / median; {:.0f} where copy, kernel and copy follow each "
        "other.\nchunked_streams and graph: {} chunks\n",
        kBothWays, kKernel, 100 * std::max(*copy, *kernel) / (*in + *kernel + *out), chunks);
}

course::Case make_case(const course::Dims& size, int steps, int chunks) {
    if (size.size() != 1) throw std::invalid_argument("expected one number of elements, for example 1048576");
    const std::size_t n = size[0];
    if (chunks == 0) chunks = chunks_for(n);
    const auto data = std::make_shared<Data>(n, steps);
    const double one_way = sizeof(float) * static_cast<double>(n);
    const double flops = 2.0 * steps * static_cast<double>(n);

    course::Case result{
        .problem = "copies_and_streams " + std::to_string(n) + " steps " + std::to_string(steps),
        .dtype = "float",
        .derive_figures = derive_overlap,
        .comment = [chunks](std::span<const course::Record> records) {
            return explain_overlap(records, chunks);
        }};
    result.contestants = {
        make_limit(
            kIn, n, {.bytes = one_way, .written = one_way}, [](Bus& bus, int) { bus.queue_in(); }, steps),
        make_limit(
            kOut, n, {.bytes = one_way, .written = one_way}, [](Bus& bus, int) { bus.queue_out(); }, steps),
        make_limit(
            kBothWays, n, {.bytes = 2 * one_way, .written = 2 * one_way},
            [](Bus& bus, int) {
                bus.queue_in();
                bus.queue_out();
            },
            steps),
        make_limit(
            kKernel, n, {.flops = flops},
            [](Bus& bus, int steps_) {
                day09::launch_iterate(bus.device_in.data(), bus.device_out.data(), bus.device_in.size(),
                                      steps_, bus.in);
            },
            steps)};
    result.contestants.push_back(
        {.name = "cpu_openmp",
         .role = course::Role::kPeer,
         .launch = [=](cudaStream_t) { day09::iterate_on_cpu(data->in, data->on_cpu, steps); },
         .work = day09::versions().front().work({n, steps}),
         .cannot_run = too_long_on_cpu(n, steps),
         .on_host = true,
         .verify =
             [=] {
                 course::VerifyResult verified = course::verify(data->on_cpu, data->expected, {.factor = 0});
                 std::ranges::fill(data->on_cpu, std::numeric_limits<float>::quiet_NaN());
                 return verified;
             }});
    for (const day09::Version& version : day09::versions())
        result.contestants.push_back(make_contestant(version, data, steps, chunks));
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    course::Program program{
        .day = "day09_copies_and_streams",
        .title = "n floats to the device, a kernel, n floats back",
        .default_size = {1 << 20},
        .bench_sizes = {{1 << 16}, {1 << 20}, {1 << 24}, {1 << 26}},
        .make_cases = {
            [&](const course::Dims& size) { return make_case(size, options.work, options.chunks); },
            // Hardly any computing: the bus alone.
            [&](const course::Dims& size) {
                return options.work == 1 ? course::Case{} : make_case(size, 1, options.chunks);
            }}};
    program.add_options = [&](CLI::App& app, course::Program&) {
        app.add_option("--work", options.work, "multiply-adds per element: how long the kernel takes")
            ->check(CLI::Range(0, 1'000'000));
        app.add_option("--chunks", options.chunks,
                       "pieces of chunked_streams and graph; left out: by the size")
            ->check(CLI::Range(1, 10'000));
    };
    return course::run_program(program, argc, argv);
}

// Day 23's program: every version verified and timed, beside a copy and the CPU; and the litmus
// tests, with --litmus.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/report.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/parallel.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "litmus.hpp"
#include "memory_model.hpp"

namespace {

constexpr std::size_t kMostOnCpu = std::size_t{1} << 23;  // elements; more would take long to repeat

using course::DeviceBuffer;
using day23::Record;

std::vector<std::int64_t> words_of(const Record& r) {
    return {r.count, r.sum, r.least, r.where};
}

struct Data {
    explicit Data(std::size_t n) : in(n), total(1), copy(n), workspace(n) {
        course::for_each_index(n, [&](std::size_t i) {
            in[i] = static_cast<std::int32_t>(course::Random(23, i).integer(-1'000'000'000, 1'000'000'000));
        });
        in_device = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(in));
        expected = day23::record_on_all_cores(in);
    }

    std::vector<std::int32_t> in;
    DeviceBuffer<std::int32_t> in_device;
    course::GuardedBuffer<Record> total;
    DeviceBuffer<std::int32_t> copy;
    day23::Workspace workspace;
    Record expected{};
    Record on_cpu{};
};

course::VerifyResult compare(const Record& got, const Record& expected) {
    return course::verify_exact(words_of(got), words_of(expected));
}

course::Case record_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "elements");
    course::UsualCase<Data> usual("record " + std::to_string(n), "int32", std::make_shared<Data>(n));
    usual.output(&Data::total, [](Data& data, const auto& got) { return compare(got[0], data.expected); });
    usual.also_spoil([](Data& data) { data.on_cpu = {}; });

    const course::Work work = day23::versions().front().work(n);
    const auto verify_cpu = [](const Data& data) { return compare(data.on_cpu, data.expected); };
    if (n <= kMostOnCpu) {
        usual
            .cpu(
                work, [](Data& d) { d.on_cpu = day23::record_on_cpu(d.in); }, verify_cpu)
            .name = "cpu";
        usual.cpu(
            work, [](Data& d) { d.on_cpu = day23::record_on_all_cores(d.in); }, verify_cpu);
    }
    usual.versions(day23::versions(), n, [](const auto& version, Data& data, cudaStream_t stream) {
        version.launcher(data.in_device.span(), data.total.span(), data.workspace, stream);
    });
    // Reads and writes n / 2 elements: as many bytes as a version reads.
    usual.limit_copy(&Data::in_device, &Data::copy, n / 2 * 4, "cudaMemcpy of half");
    return usual.result;
}

struct States {
    explicit States(std::size_t readers) : mixed(readers), memory(day23::state_words()) {}
    course::GuardedBuffer<std::uint32_t> mixed;
    DeviceBuffer<std::uint32_t> memory;
};

// 1,000 states, read by 15 blocks: the time of the slowest reader.
course::Case sequence_lock_case(const course::Dims&) {
    constexpr std::size_t kReaders = 15;
    constexpr std::uint32_t kStates = 1000;
    course::UsualCase<States> usual("sequence lock " + std::to_string(kStates), "uint32",
                                    std::make_shared<States>(kReaders));
    usual.output(&States::mixed, [](States&, const auto& got) {
        return course::verify_exact(got, std::vector<std::uint32_t>(kReaders, 0));
    });
    usual.add({.name = "sequence_lock",
               .launch =
                   [data = usual.data](cudaStream_t stream) {
                       day23::read_while_written(kStates, data->mixed.span(), data->memory.span(), stream);
                   },
               .work = {.bytes = 4.0 * static_cast<double>(day23::state_words()) * kStates}});
    return usual.result;
}

struct Litmus {
    std::uint64_t runs = 0;
    std::string json;
};

void add_options(CLI::App& app, course::Program& program, Litmus& litmus) {
    auto* runs = app.add_option("--litmus", litmus.runs,
                                "run the litmus tests instead, each form at least so many times");
    app.add_option("--litmus-json", litmus.json, "write their counts to this file, an object in each line")
        ->needs(runs);
    app.callback([&app, &program, &litmus] {
        if (app.count("--litmus") == 0) return;
        if (litmus.runs == 0) throw std::invalid_argument("--litmus is 0; expected at least 1");
        program.make_cases.clear();
        program.finish = [&litmus] {
            const auto results = day23::run_litmus_tests(litmus.runs);
            std::cout << day23::litmus_table(results);
            if (!litmus.json.empty()) course::write_file(litmus.json, day23::litmus_json(results));
        };
    });
}

}  // namespace

int main(int argc, char** argv) {
    Litmus litmus;
    const course::Program program{
        .day = "day23_memory_model",
        .title = "one record of n integers: count, sum, the smallest and where it is",
        .default_size = {1 << 17},
        .bench_sizes = {{1 << 16}, {1 << 20}, {1 << 24}},
        .make_cases = {record_case, sequence_lock_case},
        .add_options = [&](CLI::App& app, course::Program& own) { add_options(app, own, litmus); }};
    return course::run_program(program, argc, argv);
}

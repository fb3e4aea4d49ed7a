// Day 51's program: every version on all GPUs, verified and timed, beside NCCL.
//
//     day51_all_reduce --size COUNTxCALLS [--ranks N]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "all_reduce.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/check/verify_on_device.hpp"
#include "group.hpp"

namespace {

using day51::Arrays;
using day51::Group;
using day51::OnDevice;

// On the CPU, before the stand-in reads it: two devices.
const int devices_are_set = setenv("CUDA_ON_CPU_DEVICES", "2", 0);

std::vector<int> devices_for(std::size_t ranks) {
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    std::vector<int> devices(ranks == 0 ? static_cast<std::size_t>(std::max(count, 2)) : ranks);
    for (std::size_t r = 0; r < devices.size(); ++r)
        devices[r] = static_cast<int>(r) % count;
    return devices;
}

struct OfRank {
    explicit OfRank(const std::vector<float>& values)
        : in(std::span<const float>(values)), out(values.size()), expected(values.size()) {}
    course::DeviceBuffer<float> in;
    course::GuardedBuffer<float> out;
    course::DeviceBuffer<float> expected;  // compared on the device: arrays have up to 1 GiB
};

// Whole numbers up to 1000: their sums are exact, so that the order makes no difference, NCCL's
// neither.
struct Data {
    Data(std::size_t count, int all_calls, std::size_t ranks) : calls(all_calls), group(devices_for(ranks)) {
        std::vector<float> sums(count);
        for (std::size_t r = 0; r < group.ranks().size(); ++r) {
            const std::vector<std::int32_t> numbers =
                course::make_data<std::int32_t>(count, course::DataPattern::kSignedUniform, 51 + r);
            const std::vector<float> values(numbers.begin(), numbers.end());
            for (std::size_t i = 0; i < count; ++i)
                sums[i] += values[i];
            const OnDevice on(group.ranks()[r].device);
            memory.push_back(std::make_unique<OfRank>(values));
            arrays.in.emplace_back(memory[r]->in.span());
            arrays.out.push_back(memory[r]->out.span());
        }
        for (const std::unique_ptr<OfRank>& of_rank : memory)
            of_rank->expected.copy_from(sums);
    }

    void spoil() {
        for (std::size_t r = 0; r < memory.size(); ++r) {
            const OnDevice on(group.ranks()[r].device);
            memory[r]->out.spoil();
        }
    }

    // The outputs of all ranks. The first rank that is wrong is reported.
    course::VerifyResult verify() {
        course::VerifyResult result;
        for (std::size_t r = 0; r < memory.size() && result.ok(); ++r) {
            const OnDevice on(group.ranks()[r].device);
            result = course::verify_exact_on_device<float>(memory[r]->out.span(), memory[r]->expected.span());
            result.damage = memory[r]->out.damage();
        }
        return result;
    }

    void run(day51::Launcher launcher, cudaStream_t stream) {
        group.begin_after(stream);
        for (int call = 0; call < calls; ++call)
            launcher(group, arrays);
        group.end_before(stream);
    }

    // The same calls, recorded once: one launch of a graph instead of `calls` launches per GPU.
    void run_in_graph(day51::Launcher launcher, cudaStream_t stream) {
        cudaGraphExec_t& executable = graphs[launcher];
        if (executable == nullptr) {
            // Not recorded: what it allocates the first time.
            launcher(group, arrays);
            for (const day51::Rank& rank : group.ranks())
                CUDA_CHECK(cudaStreamSynchronize(rank.stream));
            const OnDevice on(group.ranks()[0].device);
            cudaStream_t origin = nullptr;
            cudaGraph_t graph = nullptr;
            CUDA_CHECK(cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking));
            CUDA_CHECK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
            run(launcher, origin);
            CUDA_CHECK(cudaStreamEndCapture(origin, &graph));
            CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
            CUDA_CHECK(cudaGraphDestroy(graph));
            CUDA_CHECK(cudaStreamDestroy(origin));
        }
        CUDA_CHECK(cudaGraphLaunch(executable, stream));
    }

    ~Data() {
        for (const auto& [launcher, executable] : graphs)
            static_cast<void>(cudaGraphExecDestroy(executable));
    }
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;

    int calls;
    std::map<day51::Launcher, cudaGraphExec_t> graphs;
    Group group;
    std::vector<std::unique_ptr<OfRank>> memory;
    Arrays arrays;
};

// The bytes that cross a link in each direction at least, as NCCL's tests count them: of n GPUs,
// each sends 2 (n - 1) / n of an array.
double bytes_of_link(const day51::Problem& problem) {
    const double n = problem.ranks;
    return 2 * (n - 1) / n * static_cast<double>(problem.count) * sizeof(float) * problem.calls;
}

// What the links would allow: each GPU copies as many bytes to the next one as must cross its link,
// all at the same time.
course::Contestant link_limit(const std::shared_ptr<Data>& data, const day51::Problem& problem) {
    const course::Work work = day51::versions()[0].work(problem);
    return {.name = "peer_copies",
            .role = course::Role::kLimit,
            .launch =
                [data, problem](cudaStream_t stream) {
                    const std::vector<day51::Rank>& ranks = data->group.ranks();
                    const double n = problem.ranks;
                    const auto bytes = static_cast<std::size_t>((n - 1) / n * problem.count) * sizeof(float);
                    data->group.begin_after(stream);
                    for (int copy = 0; copy < 2 * problem.calls; ++copy) {
                        for (std::size_t r = 0; r < ranks.size(); ++r) {
                            const std::size_t to = (r + 1) % ranks.size();
                            CUDA_CHECK(cudaMemcpyPeerAsync(data->arrays.out[to].data(), ranks[to].device,
                                                           data->arrays.in[r].data(), ranks[r].device, bytes,
                                                           ranks[r].stream));
                        }
                    }
                    data->group.end_before(stream);
                },
            .work = {.bytes = work.bytes, .written = work.written}};
}

enum class Calls { kInStreams, kInGraph };

// What a graph cannot hold: copies from GPU to GPU.
std::string not_in_graph(const day51::Version& version) {
    return version.name == "gather" || version.name == "ring"
               ? "copies by cudaMemcpyPeerAsync, which no graph records"
               : "";
}

course::Case make_case(const course::Dims& size, std::size_t ranks, Calls calls) {
    course::require(size.size() == 2 && size[1] >= 1 && size[1] <= 1000, "size has ", size.size(),
                    " numbers; expected two, the values of an array and 1 to 1000 calls, for example "
                    "262144x20");
    // A launch takes microseconds: with long arrays it makes no difference.
    constexpr std::size_t kMostInGraph = std::size_t{1} << 20;
    if (calls == Calls::kInGraph && size[0] > kMostInGraph) return {};
    const auto data = std::make_shared<Data>(size[0], static_cast<int>(size[1]), ranks);
    const day51::Problem problem = day51::problem_of(data->group, size[0], data->calls);
    course::UsualCase<Data> usual(fmt::format("all-reduce {}x{}{} on {} {}", size[0], size[1],
                                              calls == Calls::kInGraph ? " in a graph" : "", problem.ranks,
                                              problem.shares_devices ? "ranks" : "GPUs"),
                                  "float", data);
    usual.also_spoil([](Data& d) { d.spoil(); });
    usual.result.verify = [data] { return data->verify(); };
    const auto add = [&](const day51::Version& version, course::Role role) {
        std::string reason = version.cannot_run(problem);
        if (reason.empty() && calls == Calls::kInGraph) reason = not_in_graph(version);
        usual.add({.name = version.name,
                   .role = role,
                   .launch =
                       [data, calls, launcher = version.launcher](cudaStream_t stream) {
                           calls == Calls::kInGraph ? data->run_in_graph(launcher, stream)
                                                    : data->run(launcher, stream);
                       },
                   .work = version.work(problem),
                   .cannot_run = reason});
    };
    for (const day51::Version& version : day51::versions())
        add(version, course::Role::kOurs);
    for (const day51::Version& peer : day51::peers())
        add(peer, course::Role::kPeer);
    if (calls == Calls::kInStreams) usual.add(link_limit(data, problem));
    usual.result.derive_figures = [problem](std::span<course::Record> records) {
        for (course::Record& record : records) {
            if (!record.measurement) continue;
            const double seconds = record.measurement->ms.median * 1e-3;
            record.figures.emplace_back("us per call", seconds * 1e6 / problem.calls);
            record.figures.emplace_back("link GB/s", bytes_of_link(problem) / seconds * 1e-9);
        }
    };
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t ranks = 0;
    course::Program program{
        .day = "day51_all_reduce",
        .title = "all-reduces of an array of floats on each of several GPUs, one call after the other",
        .default_size = {5003, 3},
        // 8 bytes, 1 KiB, 64 KiB, 1 MiB, 16 MiB, 256 MiB, 1 GiB
        .bench_sizes =
            {{2, 100}, {256, 100}, {16384, 100}, {262144, 100}, {4194304, 20}, {67108864, 4}, {268435456, 2}},
        .make_cases = {
            [&ranks](const course::Dims& size) { return make_case(size, ranks, Calls::kInStreams); },
            [&ranks](const course::Dims& size) { return make_case(size, ranks, Calls::kInGraph); }},
        .add_options = [&ranks](CLI::App& app, course::Program&) {
            app.add_option("--ranks", ranks, "how many ranks, at least 2; without it, one for each GPU")
                ->check(CLI::Range(2, day51::kMostRanks));
        }};
    return course::run_program(program, argc, argv);
}

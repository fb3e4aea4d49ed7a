// Day 7's host code: argument checks and the list of versions. Each mystery has two files of its
// own: the slow kernel in slow_kernels/, and the repaired one. This table has the solutions. The
// last column is what an H200 counted (docs/measured/day07_profiling.md).
//
//   version            what it does                             what limits it
//   mystery1           an array of structures                   memory: unused parts of sectors
//   mystery1_repaired  a structure of arrays                    memory
//   mystery2           rows of 32 words in shared memory        shared memory: bank conflicts
//   mystery2_repaired  rows of 33 words                         memory
//   mystery3           stores each sum before the next load     latency: one load in flight
//   mystery3_repaired  16 loads before the first addition       memory
//   mystery4           blocks of 1,024 threads                  L2: registers that are spilled
//   mystery4_repaired  blocks of 256 threads                    memory
//   mystery5           133 blocks on 132 SMs                    latency: half of the SMs wait
//   mystery5_repaired  a block for each 256 elements            issue slots
//   mystery6           an atomic for each positive number       latency: one address, 1.8 ns an atomic
//   mystery6_repaired  an atomic for each block                 barriers, for the slowest load
//   mystery7           a launch for each row                    launches
//   mystery7_repaired  one launch                               launch: there is little to do
//   mystery8           copies a number to the host each step    launches, with gaps between them
//   mystery8_repaired  leaves the number on the GPU             launches
#include <vector>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "mystery1.cuh"
#include "mystery2.cuh"
#include "mystery3.cuh"
#include "mystery4.cuh"
#include "mystery5.cuh"
#include "mystery6.cuh"
#include "mystery7.cuh"
#include "mystery8.cuh"
#include "profiling.hpp"
#include "references.hpp"
#include "slow_kernels.hpp"

namespace day07 {
namespace {

constexpr std::size_t kMillion = std::size_t{1} << 20;

struct Plan {
    const char* name;
    const char* idea;
    const char* repaired;
    Mystery mystery;  // with the launch of the repaired one
    course::Work (*work)(const std::size_t& n);
};

// Each input is read once, and each output written once, in each of `passes` passes.
template <Layout (*LAYOUT)(std::size_t), int PASSES = 1, int FLOPS = 0>
course::Work work_of(const std::size_t& n) {
    const Layout layout = LAYOUT(n);
    const double written = PASSES * 4.0 * static_cast<double>(layout.out);
    return {.bytes = written + PASSES * 4.0 * static_cast<double>(layout.in),
            .written = written,
            .flops = FLOPS * static_cast<double>(n)};
}

const Plan kPlans[] = {
    {"mystery1",
     "particles move",
     "as a structure of arrays",
     {mystery1, particles_layout, particles_on_cpu, 8, 256 * kMillion},
     work_of<particles_layout, 16>},
    {"mystery2",
     "running sums of rows of 32",
     "rows of 33 words in shared memory",
     {mystery2, running_sums_layout, running_sums_on_cpu, 32, 64 * kMillion},
     work_of<running_sums_layout>},
    {"mystery3",
     "the readings of sensors are added up",
     "the sum is in a register",
     {mystery3, readings_layout, readings_on_cpu, 32768, 128 * kMillion},
     work_of<readings_layout>},
    {"mystery4",
     "the eighth power of small matrices",
     "blocks of 256 threads",
     {mystery4, matrices_layout, matrices_on_cpu, 64, 64 * kMillion},
     work_of<matrices_layout, 1, 3 * 2 * 8 * 64>},
    {"mystery5",
     "asteroids are followed",
     "many short blocks",
     {mystery5, asteroids_layout, asteroids_on_cpu, 133, 8 * kMillion},
     work_of<asteroids_layout>},
    {"mystery6",
     "positive numbers are counted",
     "a block counts first",
     {mystery6, positive_layout, positive_on_cpu, 1, 16 * kMillion},
     work_of<positive_layout>},
    {"mystery7",
     "the first reading of a row is taken from all",
     "one launch",
     {mystery7, first_layout, first_on_cpu, 256, kMillion / 8},
     work_of<first_layout>},
    {"mystery8",
     "a signal is divided by its first element",
     "the number stays on the GPU",
     {mystery8, signal_layout, signal_on_cpu, 1, kMillion / 16},
     work_of<signal_layout, 16>},
};

}  // namespace

std::span<const Version> versions() {
    static const std::vector<Version> list = [] {
        std::vector<Version> all;
        for (const Plan& plan : kPlans) {
            Version version{plan.name, plan.idea, plan.mystery, plan.work};
            version.launcher.launch = slow_launches()[all.size() / 2];
            all.push_back(version);
            all.push_back({std::string(plan.name) + "_repaired", plan.repaired, plan.mystery, plan.work});
        }
        return all;
    }();
    return list;
}

void run(const Version& version, course::DeviceSpan<const float> in, std::size_t n,
         course::DeviceSpan<float> work, course::DeviceSpan<float> out, cudaStream_t stream) {
    course::require(n >= 1, version.name, ": n is 0; expected at least 1");
    const Layout layout = version.launcher.layout(n);
    const auto require_size = [&](const char* argument, std::size_t size, std::size_t expected) {
        course::require(size == expected, version.name, ": ", argument, " has ", size, " elements; expected ",
                        expected);
    };
    require_size("in", in.size(), layout.in);
    require_size("work", work.size(), layout.work);
    require_size("out", out.size(), layout.out);
    course::require(!overlap(in, out) && !overlap(in, work) && !overlap(work, out), version.name,
                    ": in, work and out overlap; expected memory of their own");
    version.launcher.launch(in.data(), n, work.data(), out.data(), stream);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day07

// What betrays a cause without a GPU: sectors, wavefronts and atomics, counted for the slow kernels
// and for the repaired ones.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/test/inspection_test.hpp"
#include "trial.hpp"

namespace {

struct Counts {
    std::uint64_t sectors = 0;     // of global memory, without atomics
    std::uint64_t wavefronts = 0;  // of shared memory
    std::uint64_t atomics = 0;     // requests to global memory
};

// Of all kernels of a version, or of those whose name has `kernel_name` in it.
Counts counts_of(const std::string& name, std::size_t n, const std::string& kernel_name = "") {
    const day07::Version& version = course::find_version(day07::versions(), name);
    day07::Trial trial(version, n);
    const course::Inspection seen = course::inspect([&] { trial.launch(version); });
    EXPECT_TRUE(course::without_findings(seen));
    EXPECT_TRUE(trial.verify().ok()) << trial.verify().message();
    Counts counts;
    for (const course::KernelInspection& kernel : seen.kernels) {
        if (kernel.name.find(kernel_name) == std::string::npos) continue;
        for (const course::AccessLine& line : kernel.lines) {
            if (line.space == course::Space::kShared)
                counts.wavefronts += line.transactions;
            else if (line.operation == course::Operation::kAtomic)
                counts.atomics += line.requests;
            else
                counts.sectors += line.transactions;
        }
    }
    return counts;
}

// In each of 16 steps, a warp loads x and v and stores x.
TEST(Mystery1, TouchesASectorForEachFloat) {
    const std::size_t n = 1024;
    EXPECT_EQ(counts_of("mystery1", n, "move").sectors, n / 32 * 16 * 3 * 32);
    EXPECT_EQ(counts_of("mystery1_repaired", n, "move").sectors, n / 32 * 16 * 3 * 4);
}

// A warp stores and loads its part of the tile 32 times each way, and its threads load and store
// their rows.
TEST(Mystery2, TakesAWavefrontForEachLane) {
    const std::size_t n = 1024;
    EXPECT_EQ(counts_of("mystery2", n).wavefronts, n / 32 * (32 + 32 + 32 * 32 + 32 * 32));
    EXPECT_EQ(counts_of("mystery2_repaired", n).wavefronts, n / 32 * 4 * 32);
}

// A store for each row, and not one for each column.
TEST(Mystery3, StoresASumForEachReading) {
    const std::size_t n = 8;
    const std::size_t warps = 32768 / 32;
    EXPECT_GE(counts_of("mystery3", n).sectors, warps * 4 * 2 * n);
    EXPECT_EQ(counts_of("mystery3_repaired", n).sectors, warps * 4 * (n + 1));
}

TEST(Mystery6, AddsOnceForAllOfAWarpOrOfABlock) {
    const std::size_t n = 8192;
    EXPECT_EQ(counts_of("mystery6", n).atomics, n / 32);
    EXPECT_EQ(counts_of("mystery6_repaired", n).atomics, n / 256);
}

}  // namespace

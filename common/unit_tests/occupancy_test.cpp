#include "common/bench/occupancy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/bench/kernel_resources.hpp"
#include "common/check/check.hpp"
#include "common/test/device_test.hpp"
#include "occupancy_kernels.hpp"

namespace {

using course::BlockNeeds;
using course::MultiprocessorLimits;

// The values of cudaGetDeviceProperties for a Tesla T4, an A100 and an H100.
MultiprocessorLimits device_of(int major, int threads, int blocks, std::size_t shared,
                               std::size_t shared_of_block, std::size_t reserved) {
    cudaDeviceProp properties{};
    properties.major = major;
    properties.maxThreadsPerMultiProcessor = threads;
    properties.maxBlocksPerMultiProcessor = blocks;
    properties.regsPerMultiprocessor = 65536;
    properties.sharedMemPerMultiprocessor = shared;
    properties.sharedMemPerBlockOptin = shared_of_block;
    properties.reservedSharedMemPerBlock = reserved;
    return course::limits_of(properties);
}
const MultiprocessorLimits kTuring = device_of(7, 1024, 16, 64 << 10, 64 << 10, 0);
const MultiprocessorLimits kAmpere = device_of(8, 2048, 32, 164 << 10, 163 << 10, 1024);
const MultiprocessorLimits kHopper = device_of(9, 2048, 32, 228 << 10, 227 << 10, 1024);

void expect(const BlockNeeds& needs, const MultiprocessorLimits& limits, int blocks, double share,
            const std::string& limit) {
    const course::Occupancy result = course::occupancy(needs, limits);
    EXPECT_EQ(result.blocks, blocks);
    EXPECT_DOUBLE_EQ(result.share, share);
    EXPECT_EQ(result.limit, limit);
}

// 64 registers x 32 lanes = 2048 a warp: 65536 / 2048 = 32 warps, of 8 each.
TEST(Occupancy, RegistersBind) {
    expect({.threads = 256, .registers = 64}, kHopper, 4, 0.5, "registers");
    expect({.threads = 256, .registers = 64}, kAmpere, 4, 0.5, "registers");
    expect({.threads = 256, .registers = 64}, kTuring, 4, 1, "registers, threads");
}

// 73 x 32 = 2336, rounded up to 2560: a partition's 16384 hold 6 warps, not 7; 73 to 80 registers
// cost the same.
TEST(Occupancy, AWarpsRegistersComeInPortions) {
    expect({.threads = 128, .registers = 72}, kHopper, 7, 28 / 64.0, "registers");
    expect({.threads = 128, .registers = 73}, kHopper, 6, 24 / 64.0, "registers");
    expect({.threads = 128, .registers = 80}, kHopper, 6, 24 / 64.0, "registers");
}

// 136 x 32 = 4352: 65536 would be 15 warps, but each of the four partitions has room for 3.
TEST(Occupancy, AWarpFindsItsRegistersInOnePartition) {
    expect({.threads = 32, .registers = 136}, kHopper, 12, 12 / 64.0, "registers");
}

// 255 x 32 = 8160, rounded up to 8192 per warp: only 8 warps fit.
TEST(Occupancy, ABlockThatAsksForTooManyRegistersDoesNotRun) {
    expect({.threads = 256, .registers = 255}, kHopper, 1, 8 / 64.0, "registers");
    expect({.threads = 288, .registers = 255}, kHopper, 0, 0, "registers");
    expect({.threads = 544, .registers = 112}, kHopper, 0, 0,
           "registers");  // 17 x 3584 registers exist, but not in one partition
}

TEST(Occupancy, SharedMemoryBinds) {
    // 32 KB + 1 KB reserved by the system: 228 / 33 = 6; 164 / 33 = 4; without a reserved part 64
    // / 32 = 2.
    expect({.threads = 128, .registers = 32, .shared_bytes = 32 << 10}, kHopper, 6, 24 / 64.0,
           "shared memory");
    expect({.threads = 128, .registers = 32, .shared_bytes = 32 << 10}, kAmpere, 4, 16 / 64.0,
           "shared memory");
    expect({.threads = 128, .registers = 32, .shared_bytes = 32 << 10}, kTuring, 2, 8 / 32.0,
           "shared memory");
    // Half of the shared memory, and one byte more: (113 KB + 1 KB) x 2 fits.
    expect({.threads = 128, .shared_bytes = 113 << 10}, kHopper, 2, 8 / 64.0, "shared memory");
    expect({.threads = 128, .shared_bytes = (113 << 10) + 1}, kHopper, 1, 4 / 64.0, "shared memory");
}

TEST(Occupancy, SharedMemoryComesInPortions) {
    // 65536 / 13 = 5041.2: 13 blocks of 4865 bytes, rounded up to 5120, would be 66560.
    expect({.threads = 32, .shared_bytes = 4865}, kTuring, 12, 12 / 32.0, "shared memory");
    expect({.threads = 32, .shared_bytes = 4864}, kTuring, 13, 13 / 32.0, "shared memory");
    // 8064 + 1024 = 71 portions of 128 bytes, of which there are 1824: 25; one byte more, 72: 25;
    // 8321: 74 and 24.
    expect({.threads = 32, .shared_bytes = 8064}, kHopper, 25, 25 / 64.0, "shared memory");
    expect({.threads = 32, .shared_bytes = 8192}, kHopper, 25, 25 / 64.0, "shared memory");
    expect({.threads = 32, .shared_bytes = 8193}, kHopper, 24, 24 / 64.0, "shared memory");
}

TEST(Occupancy, ABlockThatAsksForTooMuchSharedMemoryDoesNotRun) {
    expect({.threads = 32, .shared_bytes = 227 << 10}, kHopper, 1, 1 / 64.0, "shared memory");
    expect({.threads = 32, .shared_bytes = (227 << 10) + 1}, kHopper, 0, 0, "shared memory");
}

TEST(Occupancy, ABlockOfMoreThan1024ThreadsDoesNotRun) {
    expect({.threads = 1025}, kHopper, 0, 0, "threads");
}

TEST(Occupancy, ThreadsOrBlocksBind) {
    expect({.threads = 768, .registers = 24}, kHopper, 2, 48 / 64.0, "threads");
    expect({.threads = 1024, .registers = 32}, kTuring, 1, 1, "threads");
    expect({.threads = 1024, .registers = 32}, kHopper, 2, 1, "registers, threads");
    expect({.threads = 32, .registers = 16}, kHopper, 32, 0.5, "blocks");
    expect({.threads = 32, .registers = 16}, kTuring, 16, 0.5, "blocks");
    expect({.threads = 64, .registers = 16}, kTuring, 16, 1, "threads, blocks");
}

TEST(Occupancy, AWarpThatIsNotFullCountsWhole) {
    expect({.threads = 33}, kHopper, 32, 1, "threads, blocks");
    expect({.threads = 1}, kHopper, 32, 0.5, "blocks");
    expect({.threads = 1000}, kHopper, 2, 1, "threads");
}

// The table's limits, and those that a device reports.
void expect_same(const MultiprocessorLimits& known, const MultiprocessorLimits& reported) {
    EXPECT_EQ(known.warps, reported.warps);
    EXPECT_EQ(known.blocks, reported.blocks);
    EXPECT_EQ(known.registers, reported.registers);
    EXPECT_EQ(known.shared_bytes, reported.shared_bytes);
    EXPECT_EQ(known.shared_bytes_of_block, reported.shared_bytes_of_block);
    EXPECT_EQ(known.reserved_shared_bytes, reported.reserved_shared_bytes);
    EXPECT_EQ(known.shared_portion, reported.shared_portion);
    EXPECT_EQ(known.register_portion, reported.register_portion);
    EXPECT_EQ(known.partitions, reported.partitions);
}

TEST(Occupancy, KnowsCapabilities) {
    std::size_t compared = 0;
    for (const auto& [capability, limits] : course::known_capabilities()) {
        for (const auto& [name, reported] : {std::pair<std::string, MultiprocessorLimits>{"7.5", kTuring},
                                             {"8.0", kAmpere},
                                             {"9.0", kHopper}}) {
            if (name != capability) continue;
            SCOPED_TRACE(name);
            expect_same(limits, reported);
            ++compared;
        }
    }
    EXPECT_EQ(compared, 3u);
}

class CapabilityTest : public course::DeviceTest {};

TEST_F(CapabilityTest, TheTableAgreesWithTheDevice) {
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    const std::string capability = fmt::format("{}.{}", properties.major, properties.minor);
    for (const course::CapabilityLimits& known : course::known_capabilities()) {
        if (known.capability == capability) return expect_same(known.limits, course::limits_of(properties));
    }
    GTEST_SKIP() << "compute capability " << capability << " is not in the table";
}

TEST(Occupancy, RefusesABlockThatIsNone) {
    EXPECT_THROW(static_cast<void>(course::occupancy({.threads = 0}, kHopper)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(course::occupancy({.threads = 32, .registers = -1}, kHopper)),
                 std::invalid_argument);
}

class KernelOccupancyTest : public course::DeviceTestWithParam<const course::testing::OccupancyKernel*> {};

INSTANTIATE_TEST_SUITE_P(Kernels, KernelOccupancyTest, course::each_of(course::testing::occupancy_kernels()),
                         course::VersionName());

TEST_P(KernelOccupancyTest, TheFormulaAgreesWithCuda) {
    const auto& kernel = *GetParam();
    kernel.run();
    int most = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    for (const int threads :
         {1, 31, 32, 33, 64, 96, 100, 128, 160, 192, 256, 320, 384, 512, 544, 768, 1000, 1024}) {
        if (threads > kernel.most_threads) continue;
        for (const std::size_t dynamic : {0, 4, 1000, 1024, 5000, 16384, 33000, 50000, 51200}) {
            if (kernel.shared + dynamic > static_cast<std::size_t>(most)) continue;
            const course::KernelResources resources = kernel.resources(threads, dynamic);
            EXPECT_EQ(resources.blocks, kernel.blocks(threads, dynamic))
                << threads << " threads, " << resources.registers << " registers, " << resources.shared_bytes
                << " bytes of shared memory";
        }
    }
}

TEST_P(KernelOccupancyTest, ResourcesAreThoseOfTheKernel) {
    const auto& kernel = *GetParam();
    kernel.run();
    const course::KernelResources resources = kernel.resources(100, 1000);
    EXPECT_EQ(resources.threads, 100);
    EXPECT_EQ(resources.shared_bytes, kernel.shared + 1000);
    EXPECT_DOUBLE_EQ(resources.occupancy, resources.blocks * 4.0 / course::multiprocessor_limits().warps);
    EXPECT_FALSE(resources.limit.empty());
    if (course::is_cpu_stand_in()) {
        EXPECT_EQ(resources.registers, 0);
    } else {
        EXPECT_GE(resources.registers, kernel.live_values);
        EXPECT_LE(resources.registers * kernel.most_threads, 65536);
    }
    EXPECT_EQ(resources.local_bytes, 0u);
}

}  // namespace

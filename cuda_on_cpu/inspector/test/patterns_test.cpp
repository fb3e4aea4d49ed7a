#include "patterns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

namespace cuda_on_cpu::inspector {
namespace {

constexpr LaneMask kAll = ~LaneMask{0};

Addresses random_addresses(std::mt19937& random, unsigned bytes) {
    Addresses addresses;
    const std::uint64_t begin = 0x10000 + random() % 64 * bytes;
    const unsigned form = random() % 4;
    const unsigned stride = random() % 40;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const unsigned element = form == 0   ? lane * stride
                                 : form == 1 ? lane % 16
                                 : form == 2 ? lane / 16 * 256
                                             : random() % 1024;
        addresses[lane] = begin + std::uint64_t{element} * bytes;
    }
    return addresses;
}

// Whatever was seen before, a request counts as if it were the first.
TEST(Patterns, CountAsEachRequestByItself) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Patterns patterns;
    for (int i = 0; i < 3000; ++i) {
        const unsigned bytes = 1U << random() % 5;
        const auto space = random() % 2 == 0 ? Space::kShared : Space::kGlobal;
        constexpr std::array kOperations = {Operation::kLoad, Operation::kStore, Operation::kAtomic};
        const Action action(1 + random() % 3, space, kOperations[random() % 3], bytes);
        Addresses addresses = random_addresses(random, bytes);
        std::uint64_t to_gpu = random() % 4 * 16;
        for (int step = 0; step < 40; ++step) {
            if (random() % 8 == 0) to_gpu = random() % 4 * 16 - 32;
            Addresses gpu = addresses;
            for (std::uint64_t& address : gpu)
                address += to_gpu;
            Sectors expected_sectors;
            const Count expected = space == Space::kShared
                                       ? count_shared(action.operation(), kAll, gpu, bytes)
                                       : count_global(action.operation(), kAll, gpu, bytes, expected_sectors);
            const Pattern& pattern = patterns.of(action, addresses, to_gpu);
            ASSERT_EQ(pattern.count(), expected);
            ASSERT_EQ(pattern.lowest(addresses[0]), *std::ranges::min_element(addresses));
            ASSERT_EQ(pattern.highest(addresses[0]), *std::ranges::max_element(addresses));
            if (space == Space::kGlobal) {
                Sectors sectors;
                pattern.sectors(gpu[0], sectors);
                ASSERT_EQ(sectors.count, expected_sectors.count);
                for (unsigned s = 0; s < sectors.count; ++s)
                    ASSERT_EQ(sectors.sector[s], expected_sectors.sector[s]);
            }
            const std::uint64_t on = random() % 4 == 0 ? random() % 4096 * bytes : bytes;
            for (std::uint64_t& address : addresses)
                address += on;
            if (random() % 8 == 0) addresses[random() % kLanes] += 4 * std::uint64_t{bytes};
        }
    }
}

// Each lane is in one group, and its word is where the group says it is.
TEST(Patterns, GroupsCoverAllLanes) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Patterns patterns;
    for (int i = 0; i < 3000; ++i) {
        const unsigned bytes = 4U << random() % 3;
        const Action action(1, Space::kGlobal, Operation::kLoad, bytes);
        const Addresses addresses = random_addresses(random, bytes);
        unsigned next = 0;
        for (const LaneGroup& group : patterns.of(action, addresses, 0).groups()) {
            ASSERT_EQ(group.first, next);
            ASSERT_GE(group.lanes, group.one_address ? 2 : 1);
            for (unsigned lane = group.first; lane < group.first + group.lanes; ++lane) {
                const unsigned on = group.one_address ? 0 : (lane - group.first) * bytes;
                ASSERT_EQ(addresses[lane], addresses[group.first] + on);
                ASSERT_EQ(addresses[lane] / Pattern::kLineBytes,
                          addresses[group.first] / Pattern::kLineBytes);
            }
            next = group.first + group.lanes;
        }
        ASSERT_EQ(next, kLanes);
    }
}

TEST(Patterns, HalvesOfAWarpInTwoRows) {
    Patterns patterns;
    Addresses addresses;
    for (unsigned lane = 0; lane < kLanes; ++lane)
        addresses[lane] = 0x10000 + lane / 16 * 1024 + lane % 16 * 4;
    const Action action(1, Space::kGlobal, Operation::kLoad, 4);
    EXPECT_EQ(patterns.of(action, addresses, 0).groups().size(), 2);
    for (unsigned lane = 0; lane < kLanes; ++lane)
        addresses[lane] = 0x10000 + lane / 16 * 1024;
    const auto groups = patterns.of(action, addresses, 0).groups();
    EXPECT_EQ(groups.size(), 2);
    EXPECT_TRUE(groups[0].one_address);
}

}  // namespace
}  // namespace cuda_on_cpu::inspector

// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/inspection_test.hpp"
#include "sort.hpp"

namespace {

using course::DeviceBuffer;
using day19::Key;

constexpr std::size_t kKeys = 2 * 3840;   // of which accesses are counted
constexpr std::size_t kMostKeys = 20481;  // three tiles of the largest

class Lesson : public testing::Test {
  protected:
    // The first `n` of the keys, which are random; or all are equal.
    std::function<void()> sort(const std::string& version, std::size_t n = kKeys, bool is_random = true) {
        return [this, n, &in = is_random ? random_ : equal_,
                launch = course::find_version(day19::versions(), version).launcher] {
            launch(in.span().subspan(0, n), out_.span().subspan(0, n), workspace_, nullptr);
        };
    }

    // Of the kernel called `kernel`: sectors that a warp's store of keys touches, in the mean.
    double sectors_of_a_store(const std::string& version, const std::string& kernel) {
        std::uint64_t sectors = 0;
        std::uint64_t requests = 0;
        for (const course::KernelInspection& seen : course::inspect(sort(version)).kernels) {
            if (seen.name.find(kernel) == std::string::npos) continue;
            for (const course::AccessLine& line : seen.lines) {
                if (line.space != course::Space::kGlobal || line.operation != course::Operation::kStore)
                    continue;
                sectors += line.transactions;
                requests += line.requests;
            }
        }
        EXPECT_GT(requests, 0U) << kernel << " stored nothing";
        return static_cast<double>(sectors) / static_cast<double>(requests);
    }

    void SetUp() override {
        if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    }

  private:
    static DeviceBuffer<Key> made(bool is_random) {
        course::Random random(19);
        std::vector<Key> keys(kMostKeys, 7);
        for (Key& key : keys)
            if (is_random) key = static_cast<Key>(random.next() >> 32);
        return DeviceBuffer<Key>(std::span<const Key>(keys));
    }

    const DeviceBuffer<Key> random_ = made(true);
    const DeviceBuffer<Key> equal_ = made(false);
    DeviceBuffer<Key> out_{kMostKeys};
    day19::Workspace workspace_{kMostKeys};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day19::versions()) {
        SCOPED_TRACE(version.name);
        const bool has_large_tiles = version.name == "radix_8bit" || version.name == "onesweep";
        const std::size_t several = has_large_tiles ? kMostKeys : 4500;
        const std::size_t n = version.cannot_run(several).empty() ? several : 1000;
        EXPECT_NO_RACES(sort(version.name, n));
        EXPECT_NO_RACES(sort(version.name, n, false));
    }
}

// Two tiles of each; and segments of each kind: of rows, of a warp, of a block, short and medium,
// and a long one.
TEST_F(Lesson, PairsLongKeysAndSegmentsHaveNoRaces) {
    constexpr auto kUp = day19::Direction::kAscending;
    constexpr std::size_t kPairs = 10241;
    constexpr std::size_t kLongKeys = 6145;
    const std::vector<std::uint64_t> offsets = {0, 3, 3, 23, 55, 100, 200, 5200, 11200, 21441};
    const std::vector<Key> keys(offsets.back(), 7);
    const DeviceBuffer<Key> in{std::span<const Key>(keys)};
    const DeviceBuffer<std::uint64_t> long_keys{
        std::span<const std::uint64_t>(std::vector<std::uint64_t>(kLongKeys, 7))};
    const DeviceBuffer<std::uint64_t> begins{std::span<const std::uint64_t>(offsets)};
    DeviceBuffer<Key> out(in.size());
    DeviceBuffer<std::uint32_t> values_out(kPairs);
    DeviceBuffer<std::uint64_t> long_out(kLongKeys);
    day19::RadixWorkspace pairs(kPairs, sizeof(Key), true);
    day19::RadixWorkspace wide(2 * in.size(), sizeof(std::uint64_t));
    const auto first = [](auto& buffer) { return buffer.span().subspan(0, kPairs); };
    EXPECT_NO_RACES([&] {
        day19::sort_pairs<Key>(first(in), first(in), first(out), values_out.span(), kUp, pairs, nullptr);
    });
    EXPECT_NO_RACES(
        [&] { day19::sort_keys<std::uint64_t>(long_keys.span(), long_out.span(), kUp, wide, nullptr); });
    EXPECT_NO_RACES(
        [&] { day19::sort_segments<Key>(in.span(), begins.span(), out.span(), kUp, wide, nullptr); });
    // The first seven have few keys: one launch.
    EXPECT_NO_RACES([&] {
        day19::sort_segments<Key>(in.span().subspan(0, 5200), begins.span().subspan(0, 8),
                                  out.span().subspan(0, 5200), kUp, wide, nullptr);
    });
}

// 32 neighbours are in 4 sectors, or in 5 if they begin in the middle of one.
TEST_F(Lesson, SortedInTheBlockFirstStoresAreCoalesced) {
    const double two_places = sectors_of_a_store("radix_1bit", "scatter_by_bit");
    const double split_first = sectors_of_a_store("radix_1bit_coalesced", "scatter_split_tiles");
    const double four_bits = sectors_of_a_store("radix_multibit", "scatter_sorted_tiles");
    const double large_tiles = sectors_of_a_store("radix_coarsened", "scatter_large_tiles");
    EXPECT_GT(two_places, 5.5);
    EXPECT_LT(split_first, 4.6);
    EXPECT_GT(four_bits, 6);
    EXPECT_LT(large_tiles, 5);
}

}  // namespace

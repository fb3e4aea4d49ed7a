// What the lesson says of its versions' accesses, counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/inspection_test.hpp"
#include "merge.hpp"

namespace {

using course::DeviceBuffer;
using day18::Key;
using day18::Value;

constexpr std::size_t kElements = 8192;  // of a and of b

class Lesson : public testing::Test {
  protected:
    // Random keys of both; or all of a before b.
    std::function<void()> merge(const std::string& version, bool is_mixed = true) {
        return [this, &b = is_mixed ? mixed_b_ : later_b_,
                method = course::find_version(day18::versions(), version).launcher] {
            if (method.operation == day18::Operation::kPairs) {
                method.launch({a_.span(), values_.span()}, {b.span(), values_.span()},
                              {out_.span(), out_values_.span()}, workspace_, nullptr);
            } else {
                method.launch({a_.span(), {}}, {b.span(), {}}, {out_.span(), {}}, workspace_, nullptr);
            }
        };
    }

    // How many blocks of bulk_merge merge the first m keys of a and n of b.
    std::uint64_t blocks_for(std::size_t m, std::size_t n) {
        const auto launch = course::find_version(day18::versions(), "bulk_merge").launcher.launch;
        const course::Inspection seen = course::inspect([&] {
            launch({a_.span().subspan(0, m), {}}, {mixed_b_.span().subspan(0, n), {}},
                   {out_.span().subspan(0, m + n), {}}, workspace_, nullptr);
        });
        return seen.kernels.at(0).blocks;
    }

    // Each line of the kind takes no more transactions than its bytes need.
    static testing::AssertionResult is_ideal(const course::Inspection& seen, course::Space space,
                                             course::Operation operation) {
        bool any = false;
        for (const course::KernelInspection& kernel : seen.kernels) {
            for (const course::AccessLine& line : kernel.lines) {
                if (line.space != space || line.operation != operation) continue;
                any = true;
                if (line.transactions != line.ideal)
                    return testing::AssertionFailure() << course::described(line);
            }
        }
        return any ? testing::AssertionSuccess() : testing::AssertionFailure() << "no such access";
    }

    // Sectors of global memory that accesses of this kind touch.
    static std::uint64_t sectors(const course::Inspection& seen, course::Operation operation) {
        std::uint64_t sum = 0;
        for (const course::KernelInspection& kernel : seen.kernels)
            for (const course::AccessLine& line : kernel.lines)
                if (line.space == course::Space::kGlobal && line.operation == operation)
                    sum += line.transactions;
        return sum;
    }

    void SetUp() override {
        if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    }

  private:
    static DeviceBuffer<Key> sorted(std::uint64_t seed, Key least) {
        course::Random random(seed);
        std::vector<Key> keys(kElements);
        for (Key& key : keys)
            key = least + random.integer(0, 30000);
        std::sort(keys.begin(), keys.end());
        return DeviceBuffer<Key>(std::span<const Key>(keys));
    }

    const DeviceBuffer<Key> a_ = sorted(1, 0);
    const DeviceBuffer<Key> mixed_b_ = sorted(2, 0);
    const DeviceBuffer<Key> later_b_ = sorted(3, 30001);
    const DeviceBuffer<Value> values_ = sorted(4, 0);
    DeviceBuffer<Key> out_{2 * kElements};
    DeviceBuffer<Value> out_values_{2 * kElements};
    day18::Workspace workspace_{2 * kElements};
};

TEST_F(Lesson, NoVersionHasRaces) {
    for (const auto& version : day18::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(merge(version.name));
        EXPECT_NO_RACES(merge(version.name, false));
    }
}

// More tiles for each block than there are stages, so copies overwrite tiles; and so many that
// blocks draw them.
TEST_F(Lesson, BulkMergesHaveNoRacesInManyRounds) {
    const std::size_t n = course::multiprocessors() * std::size_t{5} * 13056 - 3;
    std::vector<Key> keys(n);
    for (std::size_t i = 0; i < n; ++i)
        keys[i] = static_cast<Key>(i / 3);
    const DeviceBuffer<Key> in{std::span<const Key>(keys)};
    DeviceBuffer<Key> out(2 * n);
    DeviceBuffer<Value> out_values(2 * n);
    day18::Workspace workspace(2 * n);
    const auto launch = [](const char* version) {
        return course::find_version(day18::versions(), version).launcher.launch;
    };
    EXPECT_NO_RACES([&] {
        launch("bulk_merge")({in.span(), {}}, {in.span(), {}}, {out.span(), {}}, workspace, nullptr);
    });
    EXPECT_NO_RACES([&] {
        launch("bulk_merge_pairs")({in.span(), in.span()}, {in.span(), in.span()},
                                   {out.span(), out_values.span()}, workspace, nullptr);
    });
}

// All of a lies within one line, which no bulk copy takes, and several tiles begin in it. So many
// elements that there are several tiles for any number of multiprocessors.
TEST_F(Lesson, TilesThatDivideTheLastLineOfAnArrayReadNothingUnwritten) {
    constexpr std::size_t kFew = 5, kMany = 40000;
    std::vector<Key> few(kFew), many(kMany);
    for (std::size_t i = 0; i < kMany; ++i)
        many[i] = static_cast<Key>(i);
    for (std::size_t i = 0; i < kFew; ++i)
        few[i] = static_cast<Key>((2 * i + 1) * kMany / (2 * kFew));
    const DeviceBuffer<Key> a{std::span<const Key>(few)}, b{std::span<const Key>(many)};
    DeviceBuffer<Key> out(kFew + kMany);
    DeviceBuffer<Value> out_values(kFew + kMany);
    day18::Workspace workspace(kFew + kMany);
    const auto launch = [](const char* version) {
        return course::find_version(day18::versions(), version).launcher.launch;
    };
    EXPECT_NO_RACES([&] {
        launch("bulk_merge")({a.span(), {}}, {b.span(), {}}, {out.span(), {}}, workspace, nullptr);
    });
    EXPECT_NO_RACES([&] {
        launch("bulk_merge")({b.span(), {}}, {a.span(), {}}, {out.span(), {}}, workspace, nullptr);
    });
    EXPECT_NO_RACES([&] {
        launch("bulk_merge_pairs")({a.span(), a.span()}, {b.span(), b.span()},
                                   {out.span(), out_values.span()}, workspace, nullptr);
    });
}

TEST_F(Lesson, StagedStoresAreCoalesced) {
    for (const char* version : {"merge_path", "overlapped", "overlapped_pairs"}) {
        for (const bool is_mixed : {true, false}) {
            EXPECT_TRUE(is_ideal(course::inspect(merge(version, is_mixed)), course::Space::kGlobal,
                                 course::Operation::kStore))
                << version;
        }
    }
}

// More are shared by blocks that each have at least 1,536.
TEST_F(Lesson, UpTo4096ElementsAreMergedByOneBlock) {
    EXPECT_EQ(blocks_for(1, 0), 1U);
    EXPECT_EQ(blocks_for(2048, 2048), 1U);
    EXPECT_EQ(blocks_for(2049, 2048), std::min<std::uint64_t>(3, course::multiprocessors()));
}

// Three rounds find one of up to 32^3 places. Each has a request to a and one to b, and a block
// looks for two places.
TEST_F(Lesson, AWarpFindsItsSplitInThreeRounds) {
    const course::Inspection seen = course::inspect(merge("overlapped"));
    const course::KernelInspection& kernel = seen.kernels.at(0);
    std::uint64_t requests = 0;
    for (const course::AccessLine& line : kernel.lines)
        if (line.space == course::Space::kGlobal && line.source.file.ends_with("co_rank_by_warp.cuh"))
            requests += line.requests;
    EXPECT_GT(requests, 0U);
    EXPECT_LE(requests, kernel.blocks * 2 * 3 * 2);
}

// Tiles of whole lines: no lane has anything left to store.
TEST_F(Lesson, BulkMergesStoreByBulkCopiesAlone) {
    for (const char* version : {"bulk_merge", "bulk_merge_pairs"})
        EXPECT_EQ(sectors(course::inspect(merge(version)), course::Operation::kStore), 0U) << version;
}

// A thread's share of 15 is odd: a warp stages to 32 banks, whatever the data.
TEST_F(Lesson, MergePathStagesWithoutBankConflicts) {
    for (const bool is_mixed : {true, false}) {
        EXPECT_TRUE(is_ideal(course::inspect(merge("merge_path", is_mixed)), course::Space::kShared,
                             course::Operation::kStore));
    }
}

TEST_F(Lesson, ACircularBufferLoadsHalfAsMuch) {
    const auto loaded = [&](const char* version) {
        return sectors(course::inspect(merge(version)), course::Operation::kLoad);
    };
    const std::uint64_t tiled = loaded("tiled");
    const std::uint64_t ring = loaded("circular_buffer");
    EXPECT_LT(ring, tiled * 7 / 10);
    EXPECT_GT(ring, 2 * kElements / 8);
}

// In sectors of 8 keys; at the edges of what is loaded at once one is touched twice.
TEST_F(Lesson, OverlappedLoadsEachElementOnce) {
    const std::uint64_t copied = sectors(course::inspect(merge("overlapped")), course::Operation::kAsyncCopy);
    EXPECT_GE(copied, 2 * kElements / 8);
    EXPECT_LT(copied, 2 * kElements / 8 * 11 / 10);
}

}  // namespace

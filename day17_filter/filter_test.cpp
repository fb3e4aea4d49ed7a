// Every version against the CPU: stable ones element by element, the others as multisets. Behind
// what is kept, `out` must be left alone.
#include "filter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <parallel/algorithm>
#include <span>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using day17::Count;
using day17::Operation;
using day17::Workspace;

constexpr std::uint64_t kSeed = 17;
constexpr std::size_t kTile = 4096;
constexpr std::size_t kBulkTile = 8192;  // of bulk_filter and bulk_unique
// Above 0, the value of places where the last tile has no elements.
constexpr std::int32_t kThreshold = 1000;
// What a GuardedBuffer holds before anything is written.
constexpr std::int32_t kUnwritten = -1;

// Around a warp, a block, what a warp has of a tile, and a tile; more than 32 tiles, so that one
// look at 32 of them is not enough; more than 1,024 blocks, so that their counts take two rounds.
const std::vector<std::size_t> kSizes = {
    0,     1,    31,        32,    33,        255,           256,       257,           512,
    513,   1025, kTile - 1, kTile, kTile + 1, kBulkTile - 1, kBulkTile, kBulkTile + 1, 34 * kTile + 7,
    270001};
// Data for filters by kThreshold, and for runs of equal elements. Elements that are kept, and those
// that are not, have all kinds of values, but never kUnwritten.
enum class Pattern {
    kNone,
    kAll,
    kAlternating,
    kRandom,
    kRare,
    kLastOnly,
    kOneRun,
    kRuns,
    kWarpRuns,
    kNoRuns
};
constexpr Pattern kPatterns[] = {
    Pattern::kNone,     Pattern::kAll,    Pattern::kAlternating, Pattern::kRandom,   Pattern::kRare,
    Pattern::kLastOnly, Pattern::kOneRun, Pattern::kRuns,        Pattern::kWarpRuns, Pattern::kNoRuns};
constexpr const char* kNames[] = {"none kept", "all kept", "alternating", "random",         "one in 100 kept",
                                  "last kept", "one run",  "runs",        "runs of a warp", "no runs"};

std::vector<std::int32_t> make_data(std::size_t n, Pattern pattern, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    std::vector<std::int32_t> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        const auto above = static_cast<std::int32_t>(random.integer(0, 2000000000));
        const std::int32_t high = kThreshold + above;
        const std::int32_t low = -2 - above;
        const std::int32_t either = random.below(2) == 0 ? low : high;
        const bool is_last = i + 1 == n;
        const std::int32_t left = i > 0 ? values[i - 1] : 5;
        switch (pattern) {
            case Pattern::kNone:
                values[i] = high;
                break;
            case Pattern::kAll:
                values[i] = low;
                break;
            case Pattern::kAlternating:
                values[i] = i % 2 == 0 ? low : high;
                break;
            case Pattern::kRandom:
                values[i] = either;
                break;
            case Pattern::kRare:
                values[i] = random.below(100) == 0 ? low : high;
                break;
            case Pattern::kLastOnly:
                values[i] = is_last ? low : kThreshold;
                break;
            case Pattern::kOneRun:
                values[i] = -7;
                break;
            case Pattern::kRuns:
                values[i] = random.below(4) == 0 ? either : left;
                break;
            // Each run begins with a warp: with its first lane, and no other one.
            case Pattern::kWarpRuns:
                values[i] = i % 32 == 0 ? either : left;
                break;
            case Pattern::kNoRuns:
                values[i] = left == 5 ? -5 : left - 1;
                break;
        }
    }
    return values;
}

struct Expected {
    std::vector<std::int32_t> out;
    std::size_t count;
};

Expected reference(Operation operation, const std::vector<std::int32_t>& in) {
    Expected expected{std::vector<std::int32_t>(in.size(), kUnwritten), 0};
    expected.count = day17::filter_on_cpu(operation, in, kThreshold, expected.out);
    return expected;
}

class VersionTest : public course::DeviceTestWithParam<const day17::Version*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day17::Version*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({1, 1}); !reason.empty())
            GTEST_SKIP() << reason;
    }

    // Compares what is in `out` and `count`. "": all is right.
    static std::string compare(const GuardedBuffer<std::int32_t>& out, const GuardedBuffer<Count>& count,
                               Expected expected) {
        const Count got_count = count.to_host()[0];
        if (got_count != expected.count)
            return "count is " + std::to_string(got_count) + "; expected " + std::to_string(expected.count);
        std::vector<std::int32_t> got = out.to_host();
        if (!GetParam()->launcher.is_stable) {
            const auto kept = static_cast<std::ptrdiff_t>(expected.count);
            __gnu_parallel::sort(got.begin(), got.begin() + kept);
            __gnu_parallel::sort(expected.out.begin(), expected.out.begin() + kept);
        }
        course::VerifyResult result = course::verify_exact(got, expected.out);
        result.damage = out.damage() + count.damage();
        return result.ok() ? "" : result.message();
    }

    // `in` begins `offset` elements after an aligned address, between elements that would be kept;
    // the output begins `out_offset` elements after one.
    std::string filter(const std::vector<std::int32_t>& in, std::size_t offset = 0,
                       std::size_t out_offset = 0) {
        return filter(in, reference(operation(), in), offset, out_offset);
    }

    std::string filter(const std::vector<std::int32_t>& in, const Expected& expected, std::size_t offset = 0,
                       std::size_t out_offset = 0) {
        constexpr std::size_t kBehind = 8;
        std::vector<std::int32_t> all(offset + in.size() + kBehind, -99);
        std::copy(in.begin(), in.end(), all.begin() + static_cast<std::ptrdiff_t>(offset));
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(all)};
        GuardedBuffer<std::int32_t> out(in.size(), out_offset);
        GuardedBuffer<Count> count(1);
        // Twice: the first launch must leave the workspace as the second one needs it.
        for (int launch = 0; launch < 2; ++launch) {
            out.spoil();
            count.spoil();
            GetParam()->launcher.launch(device.span().subspan(offset, in.size()), kThreshold, out.span(),
                                        count.span(), workspace_for(in.size()), nullptr);
            CUDA_CHECK(cudaDeviceSynchronize());
        }
        if (device.to_host() != all) return "the input was changed";
        return compare(out, count, expected);
    }

    static Operation operation() { return GetParam()->launcher.operation; }

  private:
    // One for all filters of a test: each must leave it as the next one needs it.
    Workspace& workspace_for(std::size_t n) {
        if (!workspace_ || workspace_->capacity() < n) workspace_.emplace(std::max<std::size_t>(n, 50000));
        return *workspace_;
    }

    std::optional<Workspace> workspace_;
};

INSTANTIATE_TEST_SUITE_P(DaySeventeen, VersionTest, course::each_of(day17::versions()),
                         course::VersionName());

TEST_P(VersionTest, AllSizesAndPatterns) {
    for (const std::size_t n : kSizes) {
        for (const Pattern pattern : kPatterns) {
            // Of the longer ones these are enough.
            if (n > 2 * kTile && pattern != Pattern::kRuns) continue;
            EXPECT_EQ(filter(make_data(n, pattern)), "")
                << "n = " << n << ", " << kNames[static_cast<int>(pattern)];
        }
    }
}

TEST_P(VersionTest, RandomSizesAndAlignments) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 8; ++round) {
        const std::size_t n = random.below(20000);
        const std::size_t offset = random.below(5);
        const std::size_t out_offset = random.below(40);
        const Pattern pattern = round % 2 == 0 ? Pattern::kRandom : Pattern::kRuns;
        EXPECT_EQ(filter(make_data(n, pattern, round), offset, out_offset), "")
            << "n = " << n << ", in " << offset << " and out " << out_offset
            << " elements after an aligned address";
    }
}

// The smallest and the largest integers, at every place of a warp, and as neighbours.
TEST_P(VersionTest, ExtremeValues) {
    std::vector<std::int32_t> in(1000);
    for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = i % 3 == 0 ? INT32_MIN : i % 3 == 1 ? INT32_MAX : kThreshold;
    EXPECT_EQ(filter(in), "");
    // The first element has no left neighbour, whatever its value.
    for (const std::int32_t first : {0, 1, INT32_MIN, INT32_MAX}) {
        in[0] = first;
        EXPECT_EQ(filter(in), "") << "first element " << first;
        EXPECT_EQ(filter({first}), "") << "one element, " << first;
    }
}

// Blocks start late, and look back at tiles of others.
TEST_P(VersionTest, MoreTilesThanResidentBlocks) {
    // Of millions: made once, not for each version.
    static const std::vector<std::int32_t> in =
        make_data(course::multiprocessors() * std::size_t{40} * kTile + 7, Pattern::kRuns);
    static std::map<Operation, Expected> references;
    if (!references.contains(operation())) references.emplace(operation(), reference(operation(), in));
    EXPECT_EQ(filter(in, references.at(operation())), "") << in.size() << " elements";
}

// A short filter after a long one: words of the long one must not count.
TEST_P(VersionTest, OneWorkspaceForManyFilters) {
    Workspace workspace(100000);
    for (const std::size_t n : {100000, 12000, 77777, 1, 0, 50000}) {
        const std::vector<std::int32_t> in = make_data(n, Pattern::kRuns, n);
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<std::int32_t> out(n);
        GuardedBuffer<Count> count(1);
        GetParam()->launcher.launch(device.span(), kThreshold, out.span(), count.span(), workspace, nullptr);
        EXPECT_EQ(compare(out, count, reference(operation(), in)), "") << "n = " << n;
    }
}

TEST_P(VersionTest, RoomToSpareIsLeftAlone) {
    const std::vector<std::int32_t> in = make_data(5000, Pattern::kRuns);
    const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
    GuardedBuffer<std::int32_t> out(in.size() + 100);
    GuardedBuffer<Count> count(1);
    Workspace workspace(in.size() + 100);
    GetParam()->launcher.launch(device.span(), kThreshold, out.span(), count.span(), workspace, nullptr);
    const std::vector<std::int32_t> got = out.to_host();
    EXPECT_EQ(std::count(got.begin() + 5000, got.end(), kUnwritten), 100);
    EXPECT_EQ(count.to_host()[0], reference(operation(), in).count);
}

TEST_P(VersionTest, RunsOnTheGivenStreamAndInGraphs) {
    constexpr std::size_t kElements = 70000;
    DeviceBuffer<std::int32_t> device = course::zeros<std::int32_t>(kElements);
    GuardedBuffer<std::int32_t> out(kElements);
    GuardedBuffer<Count> count(1);
    Workspace workspace(kElements);
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher.launch(device.span(), kThreshold, out.span(), count.span(), workspace, stream);
    });
    EXPECT_GE(work.nodes(), 1U);
    // Other data each time: words that an earlier replay left would give its places.
    for (const std::uint64_t seed : {1, 2, 3}) {
        const std::vector<std::int32_t> in = make_data(kElements, Pattern::kRuns, seed);
        CUDA_CHECK(cudaMemcpy(device.data(), in.data(), device.bytes(), cudaMemcpyHostToDevice));
        out.spoil();
        count.spoil();
        work.run();
        EXPECT_EQ(compare(out, count, reference(operation(), in)), "") << "replay " << seed;
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<std::int32_t> buffer = course::zeros<std::int32_t>(64);
    DeviceBuffer<Count> counts = course::zeros<Count>(2);
    Workspace workspace(16);
    const DeviceSpan<std::int32_t> all = buffer.span();
    const DeviceSpan<Count> one = counts.span().subspan(0, 1);
    const auto message = [&](DeviceSpan<std::int32_t> in, DeviceSpan<std::int32_t> out,
                             DeviceSpan<Count> count) {
        return course::refusal(
            [&] { GetParam()->launcher.launch(in, kThreshold, out, count, workspace, nullptr); });
    };
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(8, 7), one),
              "filter: out has 7 elements; expected room for all elements of in, 8");
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(7, 8), one),
              "filter: out overlaps in; expected no element in common");
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(0, 8), one),
              "filter: out overlaps in; expected no element in common");
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(8, 8), counts.span()),
              "filter: count has 2 elements; expected 1");
    EXPECT_EQ(message(all.subspan(0, 8), all.subspan(8, 8), counts.span().subspan(0, 0)),
              "filter: count has 0 elements; expected 1");
    for (const std::size_t word : {2, 14}) {  // of in, of out
        const auto within =
            DeviceSpan<Count>::from_device_pointer(reinterpret_cast<Count*>(all.data() + word), 1);
        EXPECT_EQ(message(all.subspan(0, 8), all.subspan(8, 8), within),
                  "filter: count overlaps in or out; expected memory of its own");
    }
    EXPECT_EQ(message(all.subspan(0, 17), all.subspan(20, 17), one),
              "filter: workspace has capacity 16; expected at least the length of in, 17");
    EXPECT_EQ(message(all.subspan(0, 16), all.subspan(16, 16), one), "");
}

using PartitionTest = course::DeviceTest;

class OnAnotherGpu : public course::DeviceTest {};

TEST_F(OnAnotherGpu, AVersionIsRefusedWithItsReason) {
    for (const day17::Version& version : day17::versions()) {
        const std::string reason = version.cannot_run({16, 16});
        if (reason.empty()) continue;
        DeviceBuffer<std::int32_t> buffer = course::zeros<std::int32_t>(64);
        DeviceBuffer<Count> count = course::zeros<Count>(1);
        Workspace workspace(16);
        EXPECT_EQ(course::refusal([&] {
                      version.launcher.launch(buffer.span().subspan(0, 16), kThreshold,
                                              buffer.span().subspan(16, 16), count.span(), workspace,
                                              nullptr);
                  }),
                  "filter: this version " + reason);
    }
}

// On the CPU, of the versions in which blocks are independent: a few of their blocks.
TEST_P(VersionTest, IndicesOf64Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    if (GetParam()->launcher.is_stable) GTEST_SKIP() << "all blocks must run: tested on a GPU";
    const std::size_t n = (std::size_t{1} << 32) + 5;
    const course::LargeArray<std::int32_t> in(n);
    const course::LargeArray<std::int32_t> out(n);
    GuardedBuffer<Count> count(1);
    Workspace workspace(n);
    // Element i of a 32-bit index would be one near the first of them.
    const std::vector<std::size_t> places = {3, n / 2 - 1, n / 2, n - 2, n - 1};
    std::vector<std::int32_t> expected;
    for (const std::size_t place : places) {
        in[place] = -2 - static_cast<std::int32_t>(expected.size());
        expected.insert(expected.begin(), in[place]);
    }
    course::run_few_blocks(
        [&] { GetParam()->launcher.launch(in.span(), 0, out.span(), count.span(), workspace, nullptr); });
    ASSERT_EQ(count.to_host()[0], expected.size());
    std::vector<std::int32_t> got;
    for (std::size_t i = 0; i < expected.size(); ++i)
        got.push_back(out[i]);
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, expected);
}

// 34 GB: all elements are kept, also by a filter that removes duplicates. Then the few that differ
// are found among them.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 5;
    if (const std::string reason = course::why_not_so_large(2 * n * sizeof(std::int32_t)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<std::int32_t> in(n);
    const std::vector<std::int32_t> chunk = make_data(std::size_t{1} << 20, Pattern::kNoRuns);
    CUDA_CHECK(cudaMemcpy(in.data(), chunk.data(), chunk.size() * sizeof(chunk[0]), cudaMemcpyHostToDevice));
    for (std::size_t done = chunk.size(); done < n;) {
        const std::size_t part = std::min(done, n - done);
        CUDA_CHECK(
            cudaMemcpy(in.data() + done, in.data(), part * sizeof(chunk[0]), cudaMemcpyDeviceToDevice));
        done += part;
    }
    const std::vector<std::size_t> places = {3, std::size_t{1} << 31, (std::size_t{1} << 32) - 1, n - 1};
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int32_t value = INT32_MIN + static_cast<std::int32_t>(i);
        CUDA_CHECK(cudaMemcpy(in.data() + places[i], &value, sizeof(value), cudaMemcpyHostToDevice));
    }
    DeviceBuffer<std::int32_t> out(n);
    DeviceBuffer<Count> count(1);
    Workspace workspace(n);
    GetParam()->launcher.launch(in.span(), kThreshold, out.span(), count.span(), workspace, nullptr);
    ASSERT_EQ(count.to_host()[0], n);
    if (GetParam()->launcher.is_stable) {
        for (const std::size_t place : {places[1] - 1, places[1], places[2], places[2] + 1, places[3]}) {
            std::int32_t values[2] = {};
            CUDA_CHECK(cudaMemcpy(&values[0], in.data() + place, sizeof(values[0]), cudaMemcpyDeviceToHost));
            CUDA_CHECK(cudaMemcpy(&values[1], out.data() + place, sizeof(values[1]), cudaMemcpyDeviceToHost));
            EXPECT_EQ(values[1], values[0]) << "at " << place;
        }
    }
    DeviceBuffer<std::int32_t>& few = in;
    course::find_version(day17::versions(), "stable")
        .launcher.launch(out.span(), INT32_MIN + static_cast<std::int32_t>(places.size()), few.span(),
                         count.span(), workspace, nullptr);
    EXPECT_EQ(count.to_host()[0], places.size());
}

// 34 GB: hardly any element is kept, so others come from beyond 2^32 to the front of the output.
TEST_F(PartitionTest, MoreRejectedThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 5000;
    if (const std::string reason = course::why_not_so_large(2 * n * sizeof(std::int32_t)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<std::int32_t> in(n);
    CUDA_CHECK(cudaMemset(in.data(), 1, in.bytes()));
    const std::vector<std::size_t> kept = {7, (std::size_t{1} << 32) + 3};
    const std::vector<std::size_t> marked = {3, std::size_t{1} << 31, (std::size_t{1} << 32) - 1, n - 1};
    const auto put = [&](std::size_t place, std::int32_t value) {
        CUDA_CHECK(cudaMemcpy(in.data() + place, &value, sizeof(value), cudaMemcpyHostToDevice));
    };
    for (std::size_t i = 0; i < kept.size(); ++i)
        put(kept[i], -5 - static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < marked.size(); ++i)
        put(marked[i], 100 + static_cast<std::int32_t>(i));
    DeviceBuffer<std::int32_t> out(n);
    DeviceBuffer<Count> count(1);
    Workspace workspace(n);
    course::find_version(day17::versions(), "partition")
        .launcher.launch(in.span(), 0, out.span(), count.span(), workspace, nullptr);
    ASSERT_EQ(count.to_host()[0], kept.size());
    const auto expect_at = [&](std::size_t place, std::int32_t value) {
        std::int32_t got = 0;
        CUDA_CHECK(cudaMemcpy(&got, out.data() + place, sizeof(got), cudaMemcpyDeviceToHost));
        EXPECT_EQ(got, value) << "at " << place;
    };
    expect_at(0, -5);
    expect_at(1, -6);
    // Element i goes to place n - 1 - (i - those kept before it).
    expect_at(n - 1 - marked[0], 100);
    expect_at(n - 1 - (marked[1] - 1), 101);
    expect_at(n - 1 - (marked[2] - 1), 102);
    expect_at(2, 103);
    expect_at(n - 1, 0x01010101);
}

// The versions whose tiles look back, and what they leave in the workspace (words.cuh). The blocks
// of the bulk filters wait for all others, so they must all run.
using WordsTest = VersionTest;
using LookBackTest = VersionTest;

std::vector<const day17::Version*> versions(const std::vector<std::string>& names) {
    std::vector<const day17::Version*> chosen;
    for (const std::string& name : names)
        chosen.push_back(&course::find_version(day17::versions(), name));
    return chosen;
}

INSTANTIATE_TEST_SUITE_P(DaySeventeen, WordsTest,
                         testing::ValuesIn(versions({"single_pass", "single_pass_unique", "partition",
                                                     "bulk_filter", "bulk_unique"})),
                         course::VersionName());
INSTANTIATE_TEST_SUITE_P(DaySeventeen, LookBackTest,
                         testing::ValuesIn(versions({"single_pass", "single_pass_unique", "partition"})),
                         course::VersionName());

// The versions with three kernels: counts, their scan, the elements. Of the first and the last
// kernel only the last five blocks run, and no other block keeps anything. Not `stable`, whose scan
// of 2^24 counts takes a block of the stand-in seconds.
using CountedTest = VersionTest;
INSTANTIATE_TEST_SUITE_P(DaySeventeen, CountedTest,
                         testing::ValuesIn(versions({"coarsened", "remove_duplicates"})),
                         course::VersionName());

TEST_P(CountedTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kRun = 5;
    constexpr std::size_t kTiles = (std::size_t{1} << 32) / kTile + kRun;
    constexpr std::size_t kFirst = (kTiles - kRun) * kTile;  // element
    const course::LargeArray<std::int32_t> in(kTiles * kTile - 3, 2 * kRun * kTile, {1});
    const course::LargeArray<std::int32_t> out(in.span().size(), 2 * kRun * kTile, {0});
    const std::vector<std::int32_t> values = make_data(in.span().size() - kFirst, Pattern::kRuns);
    std::ranges::copy(values, &in[kFirst]);
    in[kFirst - 1] = values[0] - 1;
    const Expected expected = reference(operation(), values);
    Workspace workspace(in.span().size());
    CUDA_CHECK(cudaMemset(workspace.counts(), 0, kTiles * sizeof(Count)));
    GuardedBuffer<Count> count(1);
    course::run_few_blocks(
        [&] {
            GetParam()->launcher.launch(in.span(), kThreshold, out.span(), count.span(), workspace, nullptr);
        },
        {1});
    if (HasFatalFailure()) return;
    ASSERT_EQ(count.to_host()[0], expected.count);
    for (std::size_t i = 0; i < expected.count; ++i)
        ASSERT_EQ(out[i], expected.out[i]) << "element " << i << " that is kept";
}

// Numbers of launches have 23 bits; then they begin again, and words with the same number from long
// ago must not count.
TEST_P(WordsTest, AreClearedBeforeNumbersOfLaunchesBeginAgain) {
    constexpr std::size_t kTiles = 6;
    Workspace workspace(kTiles * kTile);
    const auto expect_right = [&](std::size_t n) {
        const std::vector<std::int32_t> in = make_data(n, Pattern::kRuns, n);
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<std::int32_t> out(n);
        GuardedBuffer<Count> count(1);
        GetParam()->launcher.launch(device.span(), kThreshold, out.span(), count.span(), workspace, nullptr);
        EXPECT_EQ(compare(out, count, reference(operation(), in)), "") << "n = " << n;
    };
    const auto copied = [](const unsigned long long* from, std::size_t size) {
        std::vector<unsigned long long> values(size);
        CUDA_CHECK(cudaMemcpy(values.data(), from, size * sizeof(values[0]), cudaMemcpyDeviceToHost));
        return values;
    };
    constexpr unsigned long long kFirst = 1ULL << 32;  // launch 1, tile 0
    constexpr unsigned long long kLast = ((1ULL << 23) - 1) << 32;
    EXPECT_EQ(copied(workspace.progress(), 3), (std::vector<unsigned long long>{kFirst, 0, kTiles}));
    expect_right(kTiles * kTile);
    EXPECT_EQ(copied(workspace.progress(), 3), (std::vector<unsigned long long>{2 * kFirst, 0, kTiles}));
    const bool is_bulk = std::string(GetParam()->name).starts_with("bulk");
    const std::size_t used = is_bulk ? kTiles * kTile / kBulkTile : kTiles;
    for (const unsigned long long word : copied(workspace.words(), used))
        EXPECT_EQ(word >> 41, 1U);
    CUDA_CHECK(cudaMemcpy(workspace.progress(), &kLast, sizeof(kLast), cudaMemcpyHostToDevice));
    expect_right(2 * kTile + 1);  // two or three tiles: the other words are those of launch 1
    EXPECT_EQ(copied(workspace.progress(), 3), (std::vector<unsigned long long>{kFirst, 0, kTiles}));
    EXPECT_EQ(copied(workspace.words(), kTiles), std::vector<unsigned long long>(kTiles));
    expect_right(kTiles * kTile - 5);
}

// Blocks of the stand-in are done nearly in order, and the nearest prefix is never far. So here all
// tiles but the last five have published their sums, and only the first its prefix. The five blocks
// that run draw the other tiles, and look back three times.
TEST_P(LookBackTest, OverManyTilesWithoutAPrefix) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU runs all blocks of a grid";
    constexpr std::size_t kTiles = 80;
    constexpr std::size_t kRun = 5;
    const std::size_t n = kTiles * kTile - 100;
    const std::vector<std::int32_t> in = make_data(n, Pattern::kRuns);
    Expected expected = reference(operation(), in);

    // What launch 1 would publish: its number, a state of 2 bits (sum 1, prefix 2), a number of 39.
    std::vector<unsigned long long> words;
    std::size_t before = 0;
    std::vector<std::int32_t> unused(n);
    for (std::size_t tile = 0; tile < kTiles - kRun; ++tile) {
        const std::size_t end = (tile + 1) * kTile;
        const std::size_t up_to_end = day17::filter_on_cpu(operation(), std::span(in).first(end), kThreshold,
                                                           std::span(unused).first(end));
        words.push_back((1ULL << 2 | (tile == 0 ? 2 : 1)) << 39 | (up_to_end - before));
        before = up_to_end;
    }
    Workspace workspace(n);
    const std::uint64_t ticket = std::uint64_t{1} << 32 | words.size();
    CUDA_CHECK(
        cudaMemcpy(workspace.words(), words.data(), words.size() * sizeof(words[0]), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(workspace.progress(), &ticket, sizeof(ticket), cudaMemcpyHostToDevice));

    // The other tiles write nothing.
    std::fill_n(expected.out.begin(), before, kUnwritten);
    if (operation() == Operation::kPartition)
        std::fill_n(expected.out.rbegin(), words.size() * kTile - before, kUnwritten);
    const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
    GuardedBuffer<std::int32_t> out(n);
    GuardedBuffer<Count> count(1);
    course::run_few_blocks(
        [&] {
            GetParam()->launcher.launch(device.span(), kThreshold, out.span(), count.span(), workspace,
                                        nullptr);
        },
        {0});
    EXPECT_EQ(count.to_host()[0], expected.count);
    const course::VerifyResult result = course::verify_exact(out.to_host(), expected.out);
    EXPECT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(out.damage(), "");
}

// The last five tiles of so many that their elements have numbers beyond 32 bits. Each of the 40
// tiles before them has published a prefix of 100.
TEST_P(LookBackTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr std::size_t kRun = 5;
    constexpr std::size_t kTiles = (std::size_t{1} << 32) / kTile + kRun;
    constexpr std::size_t kFirst = (kTiles - kRun) * kTile;  // element
    constexpr std::size_t kBefore = 100;                     // elements that are kept
    const course::LargeArray<std::int32_t> in(kTiles * kTile - 3, 2 * kRun * kTile, {1});
    const course::LargeArray<std::int32_t> out(in.span().size(), 2 * kRun * kTile, {0});
    const std::vector<std::int32_t> values = make_data(in.span().size() - kFirst, Pattern::kRuns);
    std::ranges::copy(values, &in[kFirst]);
    in[kFirst - 1] = values[0] - 1;
    const Expected expected = reference(operation(), values);

    Workspace workspace(in.span().size());
    const std::uint64_t ticket = std::uint64_t{1} << 32 | (kTiles - kRun);
    CUDA_CHECK(cudaMemcpy(workspace.progress(), &ticket, sizeof(ticket), cudaMemcpyHostToDevice));
    const std::vector<unsigned long long> words(40, (1ULL << 2 | 2) << 39 | kBefore);
    CUDA_CHECK(cudaMemcpy(workspace.words() + kTiles - kRun - words.size(), words.data(),
                          words.size() * sizeof(words[0]), cudaMemcpyHostToDevice));
    GuardedBuffer<Count> count(1);
    course::run_few_blocks(
        [&] {
            GetParam()->launcher.launch(in.span(), kThreshold, out.span(), count.span(), workspace, nullptr);
        },
        {0});
    if (HasFatalFailure()) return;
    ASSERT_EQ(count.to_host()[0], kBefore + expected.count);
    // A partition writes those not kept after those kept, as only 100 are kept before them.
    const std::size_t written = operation() == Operation::kPartition ? values.size() : expected.count;
    for (std::size_t i = 0; i < written; ++i)
        ASSERT_EQ(out[kBefore + i], expected.out[i]) << "element " << i << " written by the last tiles";
}

using WorkspaceTest = course::DeviceTest;

TEST_F(WorkspaceTest, RefusesMoreThanItsWordsCount) {
    EXPECT_EQ(course::refusal([] { Workspace workspace((std::size_t{1} << 38) + 1); }),
              "Workspace: capacity is 274877906945; expected at most 2^38");
}

TEST(OnTheCpu, KnownResults) {
    const std::vector<std::int32_t> in = {3, -1, -1, 0, -5, -5, 3};
    std::vector<std::int32_t> out(in.size(), 99);
    EXPECT_EQ(day17::filter_on_cpu(Operation::kSelect, in, 0, out), 4U);
    EXPECT_EQ(out, (std::vector{-1, -1, -5, -5, 99, 99, 99}));
    out.assign(in.size(), 99);
    EXPECT_EQ(day17::filter_on_cpu(Operation::kUnique, in, 0, out), 5U);
    EXPECT_EQ(out, (std::vector{3, -1, 0, -5, 3, 99, 99}));
    EXPECT_EQ(day17::filter_on_cpu(Operation::kPartition, in, 0, out), 4U);
    EXPECT_EQ(out, (std::vector{-1, -1, -5, -5, 3, 0, 3}));
    EXPECT_EQ(day17::filter_on_cpu(Operation::kUnique, {}, 0, {}), 0U);
}

}  // namespace

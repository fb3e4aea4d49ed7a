// Every version against the CPU, exactly; and the sequence lock.
#include "memory_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "beyond/proxy.hpp"
#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace day23 {

void PrintTo(const Record& r, std::ostream* out) {
    *out << "count " << r.count << ", sum " << r.sum << ", least " << r.least << " at " << r.where;
}

}  // namespace day23

namespace {

using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using day23::Record;
using day23::Workspace;
using Ints = std::vector<std::int32_t>;

constexpr std::uint64_t kSeed = 23;
constexpr std::size_t kTile = 1024;

// Around a warp, a block and a tile; more than a block of tiles; a prime.
const std::vector<std::size_t> kSizes = {0, 1, 31, 32, 33, 255, 257, kTile - 1, kTile, kTile + 1, 39989};

Ints random_values(std::size_t n, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    Ints values(n);
    for (std::int32_t& value : values)
        value = static_cast<std::int32_t>(random.integer(-1'000'000'000, 1'000'000'000));
    return values;
}

class VersionTest : public course::DeviceTestWithParam<const day23::Version*> {
  protected:
    // Three times with the same workspace: a launch must not take words of the one before.
    static void expect_record(const Ints& in, const std::string& what) {
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<Record> total(1);
        Workspace workspace(in.size());
        for (int launch = 0; launch < 3; ++launch) {
            total.spoil();
            GetParam()->launcher(device.span(), total.span(), workspace, nullptr);
            EXPECT_EQ(total.to_host()[0], day23::record_on_cpu(in))
                << what << ", " << in.size() << " elements, launch " << launch << ", seed " << kSeed;
            EXPECT_EQ(total.damage(), "") << what;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwentyThree, VersionTest, course::each_of(day23::versions()),
                         course::VersionName());

TEST_P(VersionTest, AllSizes) {
    for (const std::size_t n : kSizes)
        expect_record(random_values(n), "random values");
}

// Of equal elements the first is the smallest; sums need 64 bits.
TEST_P(VersionTest, Patterns) {
    const std::size_t n = 5 * kTile + 77;
    Ints values(n, 7);
    expect_record(values, "all equal");
    std::ranges::fill(values, INT32_MIN);
    expect_record(values, "the smallest int");
    std::ranges::fill(values, INT32_MAX);
    expect_record(values, "the largest int");
    for (std::size_t i = 0; i < n; ++i)
        values[i] = static_cast<std::int32_t>(n - i);
    expect_record(values, "descending");
    values[3 * kTile] = values[3 * kTile + 1] = values[2 * kTile - 1] = -5;
    expect_record(values, "three equal ones");
}

TEST_P(VersionTest, MoreTilesThanResidentBlocks) {
    expect_record(random_values(course::multiprocessors() * std::size_t{20} * kTile + 7), "many blocks");
}

// A shorter array must not see what a longer one has left in the workspace, nor the other way.
TEST_P(VersionTest, OneWorkspaceForManyLengths) {
    Workspace workspace(50 * kTile);
    for (const std::size_t n : {50 * kTile, kTile - 1, 34 * kTile + 1, std::size_t{1}, 50 * kTile - 3}) {
        const Ints in = random_values(n, n);
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<Record> total(1);
        GetParam()->launcher(device.span(), total.span(), workspace, nullptr);
        EXPECT_EQ(total.to_host()[0], day23::record_on_cpu(in)) << n << " elements";
    }
}

TEST_P(VersionTest, RunsOnTheGivenStreamAndInGraphs) {
    constexpr std::size_t kElements = 10 * kTile + 1;
    DeviceBuffer<std::int32_t> device = course::zeros<std::int32_t>(kElements);
    GuardedBuffer<Record> total(1);
    Workspace workspace(kElements);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(device.span(), total.span(), workspace, stream); });
    EXPECT_GE(work.nodes(), 1U);
    for (const std::uint64_t seed : {1, 2, 3}) {
        const Ints in = random_values(kElements, seed);
        CUDA_CHECK(cudaMemcpy(device.data(), in.data(), device.bytes(), cudaMemcpyHostToDevice));
        total.spoil();
        work.run();
        EXPECT_EQ(total.to_host()[0], day23::record_on_cpu(in)) << "replay " << seed;
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<std::int32_t> in = course::zeros<std::int32_t>(64);
    DeviceBuffer<Record> totals(2);
    Workspace workspace(16);
    const auto message = [&](std::size_t length, DeviceSpan<Record> total) {
        return course::refusal(
            [&] { GetParam()->launcher(in.span().subspan(0, length), total, workspace, nullptr); });
    };
    EXPECT_EQ(message(8, totals.span()), "record: total has 2 elements; expected 1");
    EXPECT_EQ(message(17, totals.span().subspan(0, 1)),
              "record: workspace has capacity 16; expected at least the length of in, 17");
    const auto inside =
        DeviceSpan<Record>::from_device_pointer(reinterpret_cast<Record*>(in.data()), std::size_t{1});
    EXPECT_EQ(message(16, inside), "record: total overlaps in; expected memory of its own");
    EXPECT_EQ(message(16, totals.span().subspan(0, 1)), "");
}

class SequenceLock : public course::DeviceTest {
  protected:
    static void expect_whole_states(std::uint32_t states, std::size_t readers) {
        GuardedBuffer<std::uint32_t> mixed(readers);
        DeviceBuffer<std::uint32_t> memory(day23::state_words());
        for (int launch = 0; launch < 2; ++launch) {
            mixed.spoil();
            day23::read_while_written(states, mixed.span(), memory.span(), nullptr);
            EXPECT_EQ(mixed.to_host(), std::vector<std::uint32_t>(readers, 0))
                << states << " states, " << readers << " readers: states whose words do not belong together";
            EXPECT_EQ(mixed.damage(), "");
        }
        Ints words(day23::state_words());
        CUDA_CHECK(cudaMemcpy(words.data(), memory.data(), memory.bytes(), cudaMemcpyDeviceToHost));
        EXPECT_EQ(words[0], static_cast<std::int32_t>(2 * states)) << "the sequence number at the end";
    }
};

TEST_F(SequenceLock, ReadersGetTheWordsOfOneState) {
    expect_whole_states(0, 1);
    expect_whole_states(1, 1);
    expect_whole_states(1000, 1);
    expect_whole_states(500, 7);
}

TEST_F(SequenceLock, RefusesBadArguments) {
    DeviceBuffer<std::uint32_t> words(64);
    const auto message = [&](std::uint32_t states, std::size_t readers, std::size_t memory) {
        return course::refusal([&] {
            day23::read_while_written(states, words.span().subspan(0, readers),
                                      words.span().subspan(64 - memory, memory), nullptr);
        });
    };
    const std::size_t right = day23::state_words();
    EXPECT_EQ(message(1, 1, right), "");
    EXPECT_EQ(message((1U << 30) + 1, 1, right),
              "read_while_written: states is 1073741825; expected at most 2^30");
    EXPECT_EQ(message(1, 0, right), "read_while_written: mixed has 0 elements; expected one for each reader");
    EXPECT_EQ(message(1, 1, right - 1), "read_while_written: memory has " + std::to_string(right - 1) +
                                            " elements; expected " + std::to_string(right));
    EXPECT_EQ(message(1, 60, right),
              "read_while_written: mixed overlaps memory; expected no element in common");
}

// With the proxy fence. What is missing without it, an inspection reports.
TEST(BulkCopy, StoresWhatTheThreadsHaveWritten) {
    int capability = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, 0));
    if (capability != 9) GTEST_SKIP() << "proxy_copy is built for compute capability 9.0";
    for (const std::size_t n : {0, 256, 2560}) {
        const Ints in = random_values(n);
        const DeviceBuffer<std::int32_t> device{std::span<const std::int32_t>(in)};
        GuardedBuffer<std::int32_t> out(n);
        day23::double_by_bulk_copy(device.span(), out.span(), true, nullptr);
        Ints expected;
        for (const std::int32_t value : in)
            expected.push_back(2 * value);
        EXPECT_EQ(out.to_host(), expected) << n << " elements";
        EXPECT_EQ(out.damage(), "") << n << " elements";
    }
}

TEST(BulkCopy, RefusesBadArguments) {
    DeviceBuffer<std::int32_t> words(1024);
    const auto message = [&](std::size_t in, std::size_t first, std::size_t out) {
        return course::refusal([&] {
            day23::double_by_bulk_copy(words.span().subspan(0, in), words.span().subspan(first, out), true,
                                       nullptr);
        });
    };
    EXPECT_EQ(message(256, 512, 255),
              "double_by_bulk_copy: in has 256 elements and out 255; expected the same multiple of 256");
    EXPECT_EQ(message(255, 512, 255),
              "double_by_bulk_copy: in has 255 elements and out 255; expected the same multiple of 256");
    EXPECT_EQ(message(256, 513, 256),
              "double_by_bulk_copy: out is not 16-byte aligned; expected a multiple of 16 bytes");
}

TEST(Reference, AllCoresAgreeWithOneLoop) {
    for (const std::size_t n : {0UL, 1UL, 5UL, 39989UL}) {
        const Ints in = random_values(n);
        EXPECT_EQ(day23::record_on_all_cores(in), day23::record_on_cpu(in)) << n;
    }
}

}  // namespace

// Lists that are followed to the right line, and sums of every element, each once.
#include "memory_hierarchy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "beyond/near_and_far.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;

constexpr std::uint64_t kSeed = 4;
constexpr std::size_t kLine = 32;            // words
constexpr std::size_t kLinesInShared = 384;  // 48 KB

// --- Lists ---------------------------------------------------------------------------------------

// The ring as `next` of the API. A word that no step may read leads to an address far outside.
std::vector<unsigned> lines_of(const day04::Ring& ring) {
    std::vector<unsigned> words(ring.next.size() * kLine, 0xfffffff0U);
    for (std::size_t line = 0; line < ring.next.size(); ++line)
        words[line * kLine] = ring.next[line];
    return words;
}

class ChaseTest : public course::DeviceTestWithParam<const day04::ChaseVersion*> {
  protected:
    static std::string follow(const day04::Ring& ring, std::size_t rank, unsigned steps) {
        const std::vector<unsigned> words = lines_of(ring);
        const DeviceBuffer<unsigned> next{std::span(words)};
        GuardedBuffer<unsigned> last(1);
        GetParam()->launcher(next.span(), ring.after(rank, 0), steps, last.span(), nullptr);
        const unsigned got = last.to_host()[0];
        const unsigned expected = ring.after(rank, steps);
        std::string said = last.damage();
        if (got != expected)
            said += "after " + std::to_string(steps) + " steps in a list of " +
                    std::to_string(ring.order.size()) + " lines: word " + std::to_string(got) +
                    "; expected " + std::to_string(expected);
        return said;
    }
};

INSTANTIATE_TEST_SUITE_P(DayFour, ChaseTest, course::each_of(day04::chase_versions()), course::VersionName());

TEST_P(ChaseTest, ReachesTheLineThatTheListLeadsTo) {
    for (const std::size_t lines :
         {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{255}, std::size_t{256}, kLinesInShared,
          kLinesInShared + 1, std::size_t{1009}}) {
        if (!GetParam()->cannot_run({lines, 0}).empty()) continue;
        const day04::Ring ring = day04::random_ring(lines, kSeed);
        for (const std::size_t steps :
             {std::size_t{0}, std::size_t{1}, lines - 1, lines, lines + 1, 3 * lines})
            EXPECT_EQ(follow(ring, 0, static_cast<unsigned>(steps)), "");
        EXPECT_EQ(follow(ring, lines - 1, 5), "") << "from the last line of the order";
    }
}

TEST_P(ChaseTest, RandomLists) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 10; ++round) {
        const std::size_t lines = 1 + random.below(kLinesInShared);
        const day04::Ring ring = day04::random_ring(lines, random.next());
        EXPECT_EQ(follow(ring, random.below(static_cast<unsigned>(lines)),
                         static_cast<unsigned>(random.below(5000))),
                  "");
    }
}

TEST_P(ChaseTest, RunsOnTheGivenStream) {
    const DeviceBuffer<unsigned> next = course::zeros<unsigned>(kLine);
    DeviceBuffer<unsigned> last(1);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(next.span(), 0, 3, last.span(), stream); });
    EXPECT_EQ(work.nodes(), 1U);
}

TEST_P(ChaseTest, RefusesBadArguments) {
    const DeviceBuffer<unsigned> next = course::zeros<unsigned>(2 * kLine);
    DeviceBuffer<unsigned> last(2);
    const auto refused = [&](std::size_t words, unsigned start, std::size_t results) {
        return refusal([&] {
            GetParam()->launcher(next.span().subspan(0, words), start, 1, last.span().subspan(0, results),
                                 nullptr);
        });
    };
    EXPECT_EQ(refused(0, 0, 1),
              "chase: next has 0 words; expected whole lines of 32, at least one, and fewer "
              "than 2^32 words");
    EXPECT_NE(refused(33, 0, 1).find("next has 33 words"), std::string::npos);
    EXPECT_EQ(refused(64, 1, 1),
              "chase: start is 1; expected the first word of one of 2 lines, a multiple of 32");
    EXPECT_NE(refused(64, 64, 1).find("start is 64"), std::string::npos);
    EXPECT_EQ(refused(64, 0, 2), "chase: last has 2 elements; expected 1");
    EXPECT_EQ(refusal([&] {
                  DeviceBuffer<unsigned> both = course::zeros<unsigned>(kLine);
                  GetParam()->launcher(both.span(), 0, 1, both.span().subspan(0, 1), nullptr);
              }),
              "chase: last overlaps next; expected memory of its own");
}

class SharedMemory : public course::DeviceTest {};

TEST_F(SharedMemory, RefusesALongerList) {
    const auto& version = course::find_version(day04::chase_versions(), "chase_shared");
    const DeviceBuffer<unsigned> next = course::zeros<unsigned>((kLinesInShared + 1) * kLine);
    DeviceBuffer<unsigned> last(1);
    const std::string expected = "a list of 385 lines is larger than 48 KB of shared memory, 384 lines";
    EXPECT_EQ(version.cannot_run({kLinesInShared + 1, 0}), expected);
    EXPECT_EQ(refusal([&] { version.launcher(next.span(), 0, 1, last.span(), nullptr); }),
              "chase_shared: " + expected);
}

TEST(Ring, IsOneRoundThroughAllLinesInRandomOrder) {
    const std::size_t lines = 1000;
    const day04::Ring ring = day04::random_ring(lines, kSeed);
    std::vector<unsigned> sorted = ring.order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<unsigned> all(lines);
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(sorted, all);
    EXPECT_FALSE(std::is_sorted(ring.order.begin(), ring.order.end()));
    unsigned at = ring.order[0] * 32;
    for (std::size_t step = 1; step <= lines; ++step) {
        at = ring.next[at / 32];
        ASSERT_EQ(at, ring.after(0, step)) << "step " << step;
    }
    EXPECT_EQ(at, ring.order[0] * 32);
    EXPECT_EQ(refusal([] { static_cast<void>(day04::random_ring(0, 1)); }),
              "random_ring: there are 0 lines; expected 1 to 2^27 - 1");
}

// --- Sums ----------------------------------------------------------------------------------------

class ReadTest : public course::DeviceTestWithParam<const day04::ReadVersion*> {
  protected:
    // The array stands between guards; each thread's sum is written, and all together are right.
    static std::string add_up(std::size_t n, unsigned blocks_per_sm, std::uint64_t seed) {
        course::Random random(seed);
        std::vector<unsigned> values(n);
        for (unsigned& value : values)
            value = static_cast<unsigned>(random.next());
        GuardedBuffer<unsigned> x(n);
        if (n != 0)
            CUDA_CHECK(cudaMemcpy(x.data(), values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
        GuardedBuffer<unsigned> sums(day04::read_threads(blocks_per_sm));
        GetParam()->launcher(x.span(), blocks_per_sm, sums.span(), nullptr);
        const unsigned got = day04::sum_on_cpu(sums.to_host());
        const unsigned expected = day04::sum_on_cpu(values);
        if (got == expected) return sums.damage() + x.damage();
        return "the sum of " + std::to_string(n) + " elements, " + std::to_string(blocks_per_sm) +
               " blocks per SM, is " + std::to_string(got) + "; expected " + std::to_string(expected);
    }
};

INSTANTIATE_TEST_SUITE_P(DayFour, ReadTest, course::each_of(day04::read_versions()), course::VersionName());
INSTANTIATE_TEST_SUITE_P(Beyond, ReadTest, course::each_of(day04::stretch_versions()), course::VersionName());

// Around a quad, and around one and four rounds of the grid.
TEST_P(ReadTest, EveryElementOnce) {
    const std::size_t threads = day04::read_threads(1);
    for (const std::size_t n :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{5},
          threads - 1, threads, threads + 1, 3 * threads, 4 * threads - 1, 4 * threads, 4 * threads + 1,
          4 * threads + 3, 8 * threads + 7})
        EXPECT_EQ(add_up(n, 1, kSeed), "");
    for (const unsigned blocks_per_sm : {2U, 3U, 8U})
        EXPECT_EQ(add_up(100003, blocks_per_sm, kSeed), "");
}

TEST_P(ReadTest, RandomSizes) {
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 10; ++round)
        EXPECT_EQ(add_up(random.below(200000), 1 + static_cast<unsigned>(random.below(8)), kSeed + 1), "");
}

TEST_P(ReadTest, MoreElementsThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 5;
    if (const std::string reason = course::why_not_so_large(n * sizeof(unsigned)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<unsigned> x(n);
    CUDA_CHECK(cudaMemset(x.data(), 0, x.bytes()));
    const unsigned value = 12345;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1} << 31, (std::size_t{1} << 32) - 1, n - 1})
        CUDA_CHECK(cudaMemcpy(x.data() + i, &value, sizeof value, cudaMemcpyHostToDevice));
    GuardedBuffer<unsigned> sums(day04::read_threads(8));
    GetParam()->launcher(x.span(), 8, sums.span(), nullptr);
    EXPECT_EQ(day04::sum_on_cpu(sums.to_host()), 4 * value);
    EXPECT_EQ(sums.damage(), "");
}

TEST_P(ReadTest, RunsOnTheGivenStream) {
    const DeviceBuffer<unsigned> x = course::zeros<unsigned>(8);
    DeviceBuffer<unsigned> sums(day04::read_threads(2));
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(x.span(), 2, sums.span(), stream); });
    EXPECT_EQ(work.nodes(), 1U);
    EXPECT_EQ(work.grid().x, day04::read_threads(2) / 256) << "two blocks for each SM";
}

TEST_P(ReadTest, RefusesBadArguments) {
    const DeviceBuffer<unsigned> x = course::zeros<unsigned>(8);
    DeviceBuffer<unsigned> sums(day04::read_threads(1));
    const auto refused = [&](course::DeviceSpan<const unsigned> from, unsigned blocks_per_sm) {
        return refusal([&] { GetParam()->launcher(from, blocks_per_sm, sums.span(), nullptr); });
    };
    EXPECT_EQ(refused(x.span(), 0), "read: blocks_per_sm is 0; expected 1 to 8");
    EXPECT_EQ(refused(x.span(), 9), "read: blocks_per_sm is 9; expected 1 to 8");
    EXPECT_NE(refused(x.span(), 2).find("one for each thread"), std::string::npos);
    EXPECT_EQ(refused(x.span().subspan(1, 4), 1),
              "read: x does not start at a multiple of 16 bytes, as cudaMalloc's memory does");
    EXPECT_EQ(refused(sums.span(), 1), "read: sums overlaps x; expected memory of its own");
}

// --- Beyond: a piece for each SM ------------------------------------------------------------------

class AgainTest : public course::DeviceTestWithParam<const day04::AgainVersion*> {
  protected:
    static std::string add_up(std::size_t quads, unsigned rounds) {
        course::Random random(kSeed);
        std::vector<unsigned> values(quads * 4 * course::multiprocessors());
        for (unsigned& value : values)
            value = static_cast<unsigned>(random.next());
        GuardedBuffer<unsigned> x(values.size());
        if (!values.empty())
            CUDA_CHECK(cudaMemcpy(x.data(), values.data(), values.size() * sizeof(unsigned),
                                  cudaMemcpyHostToDevice));
        GuardedBuffer<unsigned> sums(day04::again_threads());
        GetParam()->launcher(x.span(), rounds, sums.span(), nullptr);
        const unsigned got = day04::sum_on_cpu(sums.to_host());
        const unsigned expected = rounds * day04::sum_on_cpu(values);
        if (got == expected) return sums.damage() + x.damage();
        return std::to_string(rounds) + " rounds of " + std::to_string(quads) + " quads per SM: the sum is " +
               std::to_string(got) + "; expected " + std::to_string(expected);
    }
};

INSTANTIATE_TEST_SUITE_P(DayFour, AgainTest, course::each_of(day04::again_versions()), course::VersionName());

// Around a block's threads, and more shared memory than a kernel has without asking.
TEST_P(AgainTest, EveryElementInEachRound) {
    for (const std::size_t quads : {0, 1, 1025, 4097})
        EXPECT_EQ(add_up(quads, 3), "");
    EXPECT_EQ(add_up(1025, 0), "") << "no round, and the sums are 0";
}

TEST_P(AgainTest, RunsOnTheGivenStream) {
    const DeviceBuffer<unsigned> x = course::zeros<unsigned>(4 * course::multiprocessors());
    DeviceBuffer<unsigned> sums(day04::again_threads());
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(x.span(), 2, sums.span(), stream); });
    EXPECT_EQ(work.nodes(), 1U);
    EXPECT_EQ(work.grid().x, course::multiprocessors()) << "a block for each SM";
}

// The preference belongs to the function, which both versions launch: each sets its own.
TEST_F(SharedMemory, IsPreferredByTheLaunchThatSaysSo) {
    if (course::is_cpu_stand_in()) GTEST_SKIP() << "needs a GPU: the kernel of a captured launch";
    const DeviceBuffer<unsigned> x = course::zeros<unsigned>(4 * course::multiprocessors());
    DeviceBuffer<unsigned> sums(day04::again_threads());
    const auto carveout = [&](const char* name) {
        const auto& version = course::find_version(day04::again_versions(), name);
        const course::CapturedWork work(
            [&](cudaStream_t stream) { version.launcher(x.span(), 1, sums.span(), stream); });
        cudaFuncAttributes attributes{};
        CUDA_CHECK(cudaFuncGetAttributes(&attributes, work.kernel().func));
        return attributes.preferredShmemCarveout;
    };
    EXPECT_EQ(carveout("again_l1"), cudaSharedmemCarveoutMaxL1);
    EXPECT_EQ(carveout("again_small_l1"), cudaSharedmemCarveoutMaxShared);
    EXPECT_EQ(carveout("again_l1"), cudaSharedmemCarveoutMaxL1) << "after the other";
}

TEST_P(AgainTest, RefusesBadArguments) {
    const std::size_t sms = course::multiprocessors();
    const DeviceBuffer<unsigned> x = course::zeros<unsigned>(8 * sms);
    DeviceBuffer<unsigned> sums(day04::again_threads());
    const auto refused = [&](std::size_t first, std::size_t n, std::size_t results) {
        return refusal([&] {
            GetParam()->launcher(x.span().subspan(first, n), 1, sums.span().subspan(0, results), nullptr);
        });
    };
    EXPECT_EQ(refused(0, 4 * sms + 1, sums.size()), "again: x has " + std::to_string(4 * sms + 1) +
                                                        " elements; expected the same number for each of " +
                                                        std::to_string(sms) +
                                                        " SMs, a multiple of 4 and less than 2^33");
    EXPECT_NE(refused(0, 2 * sms, sums.size()).find("a multiple of 4"), std::string::npos);
    EXPECT_NE(refused(0, 8 * sms, sums.size() - 1).find("one for each thread"), std::string::npos);
    EXPECT_EQ(refused(1, 4 * sms, sums.size()),
              "again: x does not start at a multiple of 16 bytes, as cudaMalloc's memory does");
    EXPECT_EQ(
        refusal([&] { GetParam()->launcher(sums.span().subspan(0, 4 * sms), 1, sums.span(), nullptr); }),
        "again: sums overlaps x; expected memory of its own");
}

TEST_F(SharedMemory, RefusesALargerPiece) {
    const auto& version = course::find_version(day04::again_versions(), "again_shared");
    const std::size_t most = std::size_t{227} << 10;
    EXPECT_EQ(version.cannot_run({most, 1}), "");
    EXPECT_EQ(
        version.cannot_run({most + 16, 1}),
        "a piece of 232464 bytes is larger than the 232448 bytes of shared memory that a block can have");
    const DeviceBuffer<unsigned> x =
        course::zeros<unsigned>((most + 16) / sizeof(unsigned) * course::multiprocessors());
    DeviceBuffer<unsigned> sums(day04::again_threads());
    EXPECT_EQ(refusal([&] { version.launcher(x.span(), 1, sums.span(), nullptr); }),
              "again_shared: " + version.cannot_run({most + 16, 1}));
}

// --- Beyond: records that pass by a table ---------------------------------------------------------

class LookupTest : public course::DeviceTestWithParam<const day04::LookupVersion*> {
  protected:
    static std::string add_up(std::size_t records, std::size_t table_words) {
        course::Random random(kSeed);
        std::vector<unsigned> record_words(32 * records);
        std::vector<unsigned> table_words_(table_words);
        for (std::vector<unsigned>* words : {&record_words, &table_words_})
            for (unsigned& word : *words)
                word = static_cast<unsigned>(random.next());
        GuardedBuffer<unsigned> on_device(record_words.size());
        if (records != 0)
            CUDA_CHECK(
                cudaMemcpy(on_device.data(), record_words.data(), 128 * records, cudaMemcpyHostToDevice));
        GuardedBuffer<unsigned> table(table_words);
        CUDA_CHECK(cudaMemcpy(table.data(), table_words_.data(), 4 * table_words, cudaMemcpyHostToDevice));
        GuardedBuffer<unsigned> sums(day04::lookup_threads());
        GetParam()->launcher(on_device.span(), table.span(), sums.span(), nullptr);
        const unsigned got = day04::sum_on_cpu(sums.to_host());
        const unsigned expected = day04::lookup_on_cpu(record_words, table_words_);
        if (got == expected) return sums.damage() + on_device.damage() + table.damage();
        return std::to_string(records) + " records, a table of " + std::to_string(table_words) +
               " words: the sum is " + std::to_string(got) + "; expected " + std::to_string(expected);
    }
};

INSTANTIATE_TEST_SUITE_P(DayFour, LookupTest, course::each_of(day04::lookup_versions()),
                         course::VersionName());

TEST_P(LookupTest, EachRecordLooksUpOneWord) {
    const std::size_t one_round = day04::lookup_threads() / 8;  // records
    for (const std::size_t records : {std::size_t{0}, std::size_t{33}, one_round + 1})
        EXPECT_EQ(add_up(records, 4096), "");
    EXPECT_EQ(add_up(33, 1), "");
}

TEST_P(LookupTest, RunsOnTheGivenStream) {
    const DeviceBuffer<unsigned> words = course::zeros<unsigned>(32);
    DeviceBuffer<unsigned> sums(day04::lookup_threads());
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(words.span(), words.span().subspan(0, 1), sums.span(), stream);
    });
    EXPECT_EQ(work.nodes(), 1U);
}

TEST_P(LookupTest, RefusesBadArguments) {
    const DeviceBuffer<unsigned> words = course::zeros<unsigned>(68);
    DeviceBuffer<unsigned> sums(day04::lookup_threads());
    const auto refused = [&](std::size_t first, std::size_t n, std::size_t table_words) {
        return refusal([&] {
            GetParam()->launcher(words.span().subspan(first, n), words.span().subspan(0, table_words),
                                 sums.span(), nullptr);
        });
    };
    EXPECT_EQ(refused(0, 33, 1), "lookup: records has 33 words; expected whole records of 32");
    EXPECT_EQ(refused(0, 32, 3), "lookup: table has 3 words; expected a power of two of at most 2^32");
    EXPECT_NE(refused(0, 32, 0).find("table has 0 words"), std::string::npos);
    EXPECT_EQ(refused(1, 32, 1),
              "lookup: records does not start at a multiple of 16 bytes, as cudaMalloc's memory does");
    const std::string overlaps = "lookup: sums overlaps an input; expected memory of its own";
    const auto some = sums.span().subspan(0, 32);
    EXPECT_EQ(refusal([&] { GetParam()->launcher(words.span().subspan(0, 32), some, sums.span(), nullptr); }),
              overlaps);
    EXPECT_EQ(refusal([&] { GetParam()->launcher(some, words.span().subspan(0, 1), sums.span(), nullptr); }),
              overlaps);
}

TEST_F(SharedMemory, OfL2IsSetAsideWhileItIsNeeded) {
    const auto limit = [] {
        std::size_t bytes = 0;
        CUDA_CHECK(cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize));
        return bytes;
    };
    if (!day04::lookup_versions().back().cannot_run({}).empty())
        GTEST_SKIP() << "no part of L2 can be set aside";
    {
        const day04::L2SetAside set_aside(std::size_t{1} << 20);
        EXPECT_GE(limit(), std::size_t{1} << 20);
    }
    EXPECT_EQ(limit(), 0U);
}

// --- Beyond: a page for each line -----------------------------------------------------------------

class FarChaseTest : public course::DeviceTestWithParam<const day04::FarChaseVersion*> {};

INSTANTIATE_TEST_SUITE_P(DayFour, FarChaseTest, course::each_of(day04::far_chase_versions()),
                         course::VersionName());

TEST_P(FarChaseTest, ReachesTheWordThatTheListLeadsTo) {
    for (const std::size_t apart : {std::size_t{1}, std::size_t{16}, std::size_t{512}})
        for (const std::size_t lines : {std::size_t{1}, std::size_t{2}, std::size_t{100}}) {
            const day04::Ring ring = day04::random_ring(lines, kSeed);
            std::vector<unsigned long long> words(lines * apart, ~0ULL >> 8);
            for (std::size_t line = 0; line < lines; ++line)
                words[line * apart] = ring.next[line] / kLine * apart;
            const DeviceBuffer<unsigned long long> next{std::span(words)};
            for (const std::size_t steps : {std::size_t{0}, std::size_t{1}, 3 * lines + 1}) {
                GuardedBuffer<unsigned long long> last(1);
                GetParam()->launcher(next.span(), ring.order[0] * apart, static_cast<unsigned>(steps),
                                     last.span(), nullptr);
                EXPECT_EQ(last.to_host()[0], ring.order[steps % lines] * apart)
                    << lines << " lines, " << steps << " steps";
                EXPECT_EQ(last.damage(), "");
            }
        }
}

TEST_P(FarChaseTest, MoreWordsThan32BitsCount) {
    const unsigned long long far = (1ULL << 32) + 1;
    if (const std::string reason = course::why_not_so_large(8 * (far + 1)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<unsigned long long> next(far + 1);
    const unsigned long long zero = 0;
    CUDA_CHECK(cudaMemcpy(next.data(), &far, sizeof far, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(next.data() + far, &zero, sizeof zero, cudaMemcpyHostToDevice));
    GuardedBuffer<unsigned long long> last(1);
    GetParam()->launcher(next.span(), 0, 5, last.span(), nullptr);
    EXPECT_EQ(last.to_host()[0], far);
}

TEST_P(FarChaseTest, RunsOnTheGivenStream) {
    const DeviceBuffer<unsigned long long> next = course::zeros<unsigned long long>(1);
    DeviceBuffer<unsigned long long> last(1);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(next.span(), 0, 3, last.span(), stream); });
    EXPECT_EQ(work.nodes(), 1U);
}

TEST_P(FarChaseTest, RefusesBadArguments) {
    const DeviceBuffer<unsigned long long> next = course::zeros<unsigned long long>(8);
    DeviceBuffer<unsigned long long> last(2);
    const auto refused = [&](unsigned long long start, std::size_t results) {
        return refusal(
            [&] { GetParam()->launcher(next.span(), start, 1, last.span().subspan(0, results), nullptr); });
    };
    EXPECT_EQ(refused(8, 1), "chase_far: start is 8; expected one of 8 words");
    EXPECT_EQ(refused(0, 2), "chase_far: last has 2 elements; expected 1");
    EXPECT_EQ(refusal([&] { GetParam()->launcher(last.span(), 0, 1, last.span().subspan(1, 1), nullptr); }),
              "chase_far: last overlaps next; expected memory of its own");
}

// --- Beyond: which block runs on which SM, and when -----------------------------------------------

class WavesTest : public course::DeviceTestWithParam<const day04::WavesVersion*> {};

INSTANTIATE_TEST_SUITE_P(DayFour, WavesTest, course::each_of(day04::waves_versions()), course::VersionName());

TEST_P(WavesTest, EveryThreadComputesAndEveryBlockNotesItsStay) {
    constexpr unsigned kSteps = 5;
    for (const std::size_t threads : {1024, 3072}) {
        GuardedBuffer<unsigned> values(threads);
        GuardedBuffer<day04::Stay> stays(threads / GetParam()->block);
        GetParam()->launcher(kSteps, values.span(), stays.span(), nullptr);
        const std::vector<unsigned> got = values.to_host();
        for (unsigned t = 0; t < threads; ++t)
            ASSERT_EQ(got[t], day04::value_after(t, kSteps)) << "thread " << t;
        for (const day04::Stay& stay : stays.to_host()) {
            EXPECT_GT(stay.begin, 0U);
            EXPECT_LE(stay.begin, stay.end);
            EXPECT_LT(stay.sm, 1024U);
        }
        EXPECT_EQ(values.damage() + stays.damage(), "");
    }
}

// 20,000 multiply-adds, each of which needs the one before it, take more than 10 us of any clock.
TEST_P(WavesTest, AStayLastsAsLongAsTheWork) {
    const std::size_t threads = 3072;
    DeviceBuffer<unsigned> values(threads);
    DeviceBuffer<day04::Stay> stays(threads / GetParam()->block);
    GetParam()->launcher(20000, values.span(), stays.span(), nullptr);
    std::set<unsigned> sms;
    for (const day04::Stay& stay : stays.to_host()) {
        EXPECT_GT(stay.end - stay.begin, 10000U);
        sms.insert(stay.sm);
    }
    if (!course::is_cpu_stand_in()) {
        EXPECT_GT(sms.size(), 1U) << "an SM holds two blocks of 1,024 threads, and there are three";
    }
}

TEST_P(WavesTest, RunsOnTheGivenStream) {
    DeviceBuffer<unsigned> values(2048);
    DeviceBuffer<day04::Stay> stays(2048 / GetParam()->block);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(1, values.span(), stays.span(), stream); });
    EXPECT_EQ(work.nodes(), 1U);
    EXPECT_EQ(work.grid().x, stays.size());
}

TEST_P(WavesTest, RefusesBadArguments) {
    DeviceBuffer<unsigned> values(2048);
    DeviceBuffer<day04::Stay> stays(17);
    const auto refused = [&](std::size_t threads, std::size_t blocks) {
        return refusal([&] {
            GetParam()->launcher(1, values.span().subspan(0, threads), stays.span().subspan(0, blocks),
                                 nullptr);
        });
    };
    EXPECT_NE(refused(1000, 1).find("values has 1000 elements; expected a multiple of 1024"),
              std::string::npos);
    EXPECT_NE(refused(0, 0).find("values has 0 elements"), std::string::npos);
    EXPECT_NE(refused(2048, 17).find("one for each block"), std::string::npos);
}

TEST(Waves, PlacesAreEmptyBetweenTheFirstBeginAndTheLastEnd) {
    EXPECT_EQ(day04::value_after(7, 2), 2501U) << "7, 50, 2501";
    const std::vector<day04::Stay> full = {{100, 200, 0}, {100, 200, 1}};
    EXPECT_EQ(day04::empty_share(full, 2, 1), 0);
    EXPECT_EQ(day04::empty_share(full, 2, 2), 0.5);
    const std::vector<day04::Stay> tail = {{100, 200, 0}, {100, 200, 1}, {200, 300, 0}};
    EXPECT_EQ(day04::empty_share(tail, 2, 1), 0.25);
}

}  // namespace

// Every version against the CPU, counter by counter, exactly.
#include "histogram.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
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
#include "histogram_data.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using day12::Counter;
using day12::Distribution;
using day12::Range;

constexpr std::uint64_t kSeed = 12;
constexpr Range kTwoMillion = {.lower = -1000003, .upper = 999331};  // no number of bins divides its width

// The definition, one value after the other in 64-bit integers: independent of histogram_on_cpu.
template <class Value>
std::vector<Counter> expected_counts(std::span<const Value> values, Range range, std::size_t bins) {
    std::vector<Counter> counts(bins);
    for (const std::int64_t value : values) {
        if (value < range.lower || value >= range.upper) continue;
        const auto distance = static_cast<std::uint64_t>(value - range.lower);
        ++counts[distance * bins / static_cast<std::uint64_t>(range.upper - range.lower)];
    }
    return counts;
}

// A read out of range finds the guards around the values. No other mistake counts only that byte.
template <class Value>
bool counts_a_guard(const course::VerifyResult& result) {
    return sizeof(Value) == 1 && result.differing == 1 &&
           result.first[0].index == std::size_t{course::kGuardByte} &&
           std::stod(result.first[0].got) > std::stod(result.first[0].expected);
}
constexpr const char* kGuardCounted =
    "\n  165 is the byte that this test puts before and behind the values: is an index out of range?";

class VersionTest : public course::DeviceTestWithParam<const day12::Histogram*> {
  protected:
    // Counts values that begin `misaligned_by` elements after an aligned address.
    template <class Value>
    void expect_right(const std::vector<Value>& values, Range range, std::size_t bins,
                      const std::string& what, std::size_t misaligned_by = 0) const {
        GuardedBuffer<Value> device(values.size(), misaligned_by);
        device.copy_from(values);
        GuardedBuffer<Counter> counts(bins);
        GetParam()->launcher(device.span(), range, counts.span(), nullptr);
        course::VerifyResult result = course::verify_exact(
            counts.to_host(), expected_counts(std::span<const Value>(values), range, bins));
        result.damage = counts.damage() + device.damage();
        EXPECT_TRUE(result.ok()) << "n = " << values.size()
                                 << (sizeof(Value) == 1 ? " (bytes), " : " (ints), ") << bins << " bins, "
                                 << what << "; the counters: " << result.message()
                                 << (counts_a_guard<Value>(result) ? kGuardCounted : "");
        EXPECT_EQ(device.to_host(), values) << "the input was changed";
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwelve, VersionTest, course::each_of(day12::versions()), course::VersionName());

// Ints, other ranges and other bins: the one version that takes them.
class AnyBinsTest : public VersionTest {};
INSTANTIATE_TEST_SUITE_P(DayTwelve, AnyBinsTest,
                         testing::Values(&course::find_version(day12::versions(), "any_bins")),
                         course::VersionName());

// Around a pack, a warp, a block, and more than all resident threads of the stand-in take in one
// round of four packs.
constexpr std::size_t kSizes[] = {0,  1,   3,   4,   5,   15,  16,   17,   31,   32,
                                  33, 255, 256, 257, 511, 513, 4095, 4097, 70001};

TEST_P(VersionTest, BytesOfAllSizesAndDistributions) {
    for (const std::size_t n : kSizes) {
        for (const Distribution distribution : day12::kDistributions) {
            expect_right(day12::make_values<std::uint8_t>(n, distribution, day12::kAllBytes, kSeed),
                         day12::kAllBytes, 256, std::string(name(distribution)));
        }
    }
}

TEST_P(AnyBinsTest, IntsOfAllSizesAndDistributions) {
    for (const std::size_t n : kSizes) {
        for (const Distribution distribution : day12::kDistributions) {
            expect_right(day12::make_values<std::int32_t>(n, distribution, kTwoMillion, kSeed), kTwoMillion,
                         100, std::string(name(distribution)));
        }
    }
}

// Each thread has several rounds of four packs, and a rest.
const std::size_t kManyRounds = course::is_cpu_stand_in() ? 1500007 : 50000017;

TEST_P(VersionTest, MoreThanOneRoundForEveryThread) {
    expect_right(
        day12::make_values<std::uint8_t>(kManyRounds, Distribution::kUniform, day12::kAllBytes, kSeed),
        day12::kAllBytes, 256, "uniform");
}

TEST_P(AnyBinsTest, MoreThanOneRoundOfInts) {
    const std::size_t n = kManyRounds;
    expect_right(day12::make_values<std::int32_t>(n, Distribution::kUniform, kTwoMillion, kSeed), kTwoMillion,
                 64, "uniform");
}

TEST_P(AnyBinsTest, AnyNumberOfBins) {
    for (const std::size_t bins : std::initializer_list<std::size_t>{
             1, 2, 31, 32, 33, 255, 256, 257, 1000, 1024, 2048, 5000, 10007, 50000, 100000}) {
        expect_right(day12::make_values<std::int32_t>(10007, Distribution::kUniform, kTwoMillion, kSeed),
                     kTwoMillion, bins, "uniform");
        expect_right(day12::make_values<std::int32_t>(2003, Distribution::kRuns, kTwoMillion, kSeed),
                     kTwoMillion, bins, "runs");
        // 256 values in more bins: most stay empty.
        expect_right(day12::make_values<std::uint8_t>(5003, Distribution::kZipf, day12::kAllBytes, kSeed),
                     day12::kAllBytes, bins, "zipf");
    }
}

// 15 values on either side of each border between two bins, for narrow and wide ranges, odd and
// even.
TEST_P(AnyBinsTest, BordersBetweenBins) {
    constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const Range ranges[] = {day12::kAllInts, {0, kMost}, {kLeast, 0}, {kLeast, kMost},
                            {-7, 4294967},   {5, 6},     {-3, 4}};
    for (const Range range : ranges) {
        for (const std::size_t bins : std::initializer_list<std::size_t>{1, 2, 3, 7, 31, 255, 256, 1000}) {
            std::vector<std::int32_t> values;
            for (std::size_t border = 0; border <= bins; border += bins / 16 + 1) {
                const std::int64_t at = range.lower + (range.upper - range.lower) *
                                                          static_cast<std::int64_t>(border) /
                                                          static_cast<std::int64_t>(bins);
                for (std::int64_t value = at - 15; value <= at + 15; ++value) {
                    if (value >= kLeast && value <= kMost) values.push_back(static_cast<std::int32_t>(value));
                }
            }
            for (const std::int64_t value :
                 {kLeast, kMost, range.upper, range.upper - 1, range.lower, range.lower - 1}) {
                if (value >= kLeast && value <= kMost) values.push_back(static_cast<std::int32_t>(value));
            }
            expect_right(
                values, range, bins,
                "borders in [" + std::to_string(range.lower) + ", " + std::to_string(range.upper) + ")");
        }
    }
}

TEST_P(AnyBinsTest, ValuesOutsideAreNotCounted) {
    const std::vector<std::int32_t> ints =
        day12::make_values<std::int32_t>(20011, Distribution::kUniform, {-3000, 3000}, kSeed);
    const std::vector<std::uint8_t> bytes =
        day12::make_values<std::uint8_t>(20011, Distribution::kUniform, day12::kAllBytes, kSeed);
    for (const Range range : {Range{-1000, 1000}, Range{2999, 5000}, Range{100, 101}, Range{-9000, -8000}}) {
        const std::string what = "[" + std::to_string(range.lower) + ", " + std::to_string(range.upper) + ")";
        for (const std::size_t bins : std::initializer_list<std::size_t>{1, 32, 40}) {
            expect_right(ints, range, bins, what);
            expect_right(bytes, range, bins, what);
        }
    }
    for (const std::size_t bins : std::initializer_list<std::size_t>{10, 64, 300})
        expect_right(bytes, {17, 117}, bins, "[17, 117)");
}

TEST_P(VersionTest, SubRangesWithAnyAlignment) {
    for (std::size_t offset = 1; offset < 16; ++offset) {
        for (const std::size_t n : std::initializer_list<std::size_t>{1, 14, 15, 16, 17, 31, 1029}) {
            const std::string what = "offset " + std::to_string(offset);
            expect_right(day12::make_values<std::uint8_t>(n, Distribution::kUniform, day12::kAllBytes, kSeed),
                         day12::kAllBytes, 256, what, offset);
        }
    }
}

TEST_P(AnyBinsTest, SubRangesOfIntsWithAnyAlignment) {
    for (std::size_t offset = 1; offset < 4; ++offset) {
        for (const std::size_t n : std::initializer_list<std::size_t>{1, 2, 3, 4, 5, 31, 1029}) {
            expect_right(day12::make_values<std::int32_t>(n, Distribution::kUniform, kTwoMillion, kSeed),
                         kTwoMillion, 33, "offset " + std::to_string(offset), offset);
        }
    }
}

TEST_P(VersionTest, RandomSizesOfBytes) {
    course::Random random(20260113);
    SCOPED_TRACE("course::Random seed 20260113");
    for (int round = 0; round < 20; ++round) {
        const std::size_t n = random.below(40000);
        const Distribution distribution = day12::kDistributions[random.below(day12::kDistributions.size())];
        const std::size_t offset = random.below(16);
        expect_right(day12::make_values<std::uint8_t>(n, distribution, day12::kAllBytes, random.next()),
                     day12::kAllBytes, 256,
                     std::string(name(distribution)) + ", offset " + std::to_string(offset), offset);
    }
}

TEST_P(AnyBinsTest, RandomShapes) {
    course::Random random(20260112);
    SCOPED_TRACE("course::Random seed 20260112");
    for (int round = 0; round < 25; ++round) {
        const std::size_t n = random.below(20000);
        const std::size_t bins = 1 + random.below(3000);
        const Range range = {.lower = random.integer(-5000, 0),
                             .upper = random.integer(1, 1 << random.below(31))};
        const std::size_t offset = random.below(16);
        const std::uint64_t seed = random.next();
        const std::string what = "[" + std::to_string(range.lower) + ", " + std::to_string(range.upper) +
                                 "), offset " + std::to_string(offset);
        expect_right(day12::make_values<std::int32_t>(n, Distribution::kUniform,
                                                      {range.lower - 50, range.upper}, seed),
                     range, bins, what, offset);
        expect_right(day12::make_values<std::uint8_t>(n, Distribution::kRuns, day12::kAllBytes, seed), range,
                     bins, what, offset);
    }
}

// What counts ints in many bins, in few of them as well.
class ManyBinsTest : public VersionTest {};
INSTANTIATE_TEST_SUITE_P(DayTwelve, ManyBinsTest, course::each_of(day12::many_bins_versions()),
                         course::VersionName());

TEST_P(ManyBinsTest, AllSizesAndDistributions) {
    std::vector<std::size_t> sizes(std::begin(kSizes), std::end(kSizes));
    for (const std::size_t tile : std::initializer_list<std::size_t>{8192, 16384}) {
        for (const std::size_t n : {tile - 1, tile, tile + 1, 2 * tile + 1})
            sizes.push_back(n);
    }
    for (const std::size_t n : sizes) {
        for (const Distribution distribution : day12::kDistributions) {
            expect_right(day12::make_values<std::int32_t>(n, distribution, kTwoMillion, kSeed), kTwoMillion,
                         1 + n / 3, std::string(name(distribution)), n % 4);
        }
    }
}

// Every bin has a value, also the first and the last of each part; others are outside the range.
// 200,003 is prime: the last part is smaller than the others.
TEST_P(ManyBinsTest, EachBinOnce) {
    for (const std::size_t bins : std::initializer_list<std::size_t>{58111, 58112, 58113, 65536, 200003}) {
        std::vector<std::int32_t> values(bins + 200);
        std::iota(values.begin(), values.end(), -100);
        expect_right(values, {0, static_cast<std::int64_t>(bins)}, bins, "each bin once");
    }
}

// A block has many tiles. The cache, which is emptied after 16 of them, is emptied twice, and has
// room for few of the bins.
TEST_P(ManyBinsTest, MoreThanOneRound) {
    const bool has_cache = GetParam()->name == "many_bins_cached";
    const std::size_t resident = std::size_t{4} * course::multiprocessors();  // blocks of 512 threads
    const std::size_t n = has_cache ? resident * 17 * 8192 + 5 : 500009;
    for (const Distribution distribution :
         {Distribution::kUniform, Distribution::kSingleValued, Distribution::kSorted}) {
        expect_right(day12::make_values<std::int32_t>(n, distribution, kTwoMillion, kSeed), kTwoMillion,
                     distribution == Distribution::kUniform ? std::size_t{1} << 20 : 65536,
                     std::string(name(distribution)));
    }
}

TEST_P(ManyBinsTest, ValuesOutsideAreNotCounted) {
    const std::vector<std::int32_t> values =
        day12::make_values<std::int32_t>(20011, Distribution::kUniform, {-3000, 3000}, kSeed);
    for (const Range range : {Range{-1000, 1000}, Range{2999, 5000}, Range{100, 101}, Range{-9000, -8000}}) {
        for (const std::size_t bins : std::initializer_list<std::size_t>{1, 40, 70000})
            expect_right(values, range, bins,
                         "[" + std::to_string(range.lower) + ", " + std::to_string(range.upper) + ")");
    }
    expect_right(values, day12::kAllInts, 70000, "all ints");
}

TEST_P(ManyBinsTest, RefusesBytes) {
    DeviceBuffer<std::uint8_t> values{std::vector<std::uint8_t>(16)};
    GuardedBuffer<Counter> counts(256);
    const std::string reason = "it counts ints; any_bins counts bytes";
    EXPECT_EQ(GetParam()->cannot_run({.size = 16, .value_bytes = 1, .bins = 256}), reason);
    EXPECT_EQ(GetParam()->cannot_run({.size = 16, .value_bytes = 4, .bins = 256}), "");
    try {
        GetParam()->launcher(values.span(), day12::kAllBytes, counts.span(), nullptr);
        ADD_FAILURE() << "accepted bytes";
    } catch (const std::invalid_argument& error) {
        EXPECT_EQ(error.what(), "histogram: " + reason);
    }
}

// More than 2^32 ints of one value. 17 GB.
TEST_P(ManyBinsTest, MoreValuesThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 100003;
    if (const std::string reason = course::why_not_so_large(n * sizeof(std::int32_t)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<std::int32_t> values(n);
    CUDA_CHECK(cudaMemset(values.data(), 0, values.bytes()));
    CUDA_CHECK(cudaMemset(values.data() + n - 1009, 1, 1009 * sizeof(std::int32_t)));
    std::vector<Counter> expected(100000);
    expected[50000] = n - 1009;
    expected[50000 + 0x01010101 / 42950] = 1009;  // 2^32 / 100,000 is 42,949.67: 16,843,009 is of bin 392
    GuardedBuffer<Counter> counts(100000);
    GetParam()->launcher(values.span(), day12::kAllInts, counts.span(), nullptr);
    const course::VerifyResult result = course::verify_exact(counts.to_host(), expected);
    EXPECT_TRUE(result.ok()) << result.message();
}

// Few values and many, in as many parts as any_bins takes and in more.
TEST_P(AnyBinsTest, ManyBins) {
    for (const std::size_t n : {5003, 300007}) {
        for (const std::size_t bins : std::initializer_list<std::size_t>{58111, 65536, 464888, 600011}) {
            for (const Distribution distribution : {Distribution::kSingleValued, Distribution::kUniform})
                expect_right(day12::make_values<std::int32_t>(n, distribution, kTwoMillion, kSeed),
                             kTwoMillion, bins, std::string(name(distribution)));
        }
    }
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    DeviceBuffer<std::uint8_t> values(1000);
    GuardedBuffer<Counter> counts(256);
    const auto nodes_of = [&](std::size_t n) {
        const course::CapturedWork work([&](cudaStream_t stream) {
            GetParam()->launcher(values.span().subspan(0, n), day12::kAllBytes, counts.span(), stream);
        });
        return work.nodes();
    };
    EXPECT_EQ(nodes_of(1000), 2U) << "expected a memset and a kernel on the given stream";
    EXPECT_EQ(nodes_of(0), 1U) << "expected the memset alone";
}

template <class Call>
void expect_refused(const Call& call, const std::string& message) {
    try {
        call();
        ADD_FAILURE() << "accepted; expected: " << message;
    } catch (const std::invalid_argument& error) {
        EXPECT_EQ(error.what(), message);
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<std::uint8_t> values{std::span<const std::uint8_t>(std::vector<std::uint8_t>(64, 1))};
    GuardedBuffer<Counter> counts(8);
    const auto count = [&](Range range, DeviceSpan<Counter> into) {
        return [=, &values] { GetParam()->launcher(values.span(), range, into, nullptr); };
    };
    constexpr std::int64_t kBeyond = (std::int64_t{1} << 31) + 1;
    expect_refused(count({0, 8}, counts.span().subspan(0, 0)),
                   "histogram: counts has 0 bins; expected 1 to 2^31");
    expect_refused(count({8, 8}, counts.span()),
                   "histogram: range is [8, 8); expected lower < upper, both from -2^31 to 2^31");
    expect_refused(count({0, kBeyond}, counts.span()),
                   "histogram: range is [0, 2147483649); expected lower < upper, both from -2^31 to 2^31");
    expect_refused(count({-kBeyond, 0}, counts.span()),
                   "histogram: range is [-2147483649, 0); expected lower < upper, both from -2^31 to 2^31");
    const auto inside = DeviceSpan<Counter>::from_device_pointer(
        reinterpret_cast<Counter*>(values.data() + 56), 1);  // the last 8 bytes of the values
    expect_refused(count({0, 8}, inside), "histogram: counts overlaps values; expected no element in common");
    EXPECT_EQ(counts.to_host(), std::vector<Counter>(8, ~Counter{0})) << "written in spite of the refusal";
}

// A version either counts a problem or says why not, and then its launcher says the same.
TEST_P(VersionTest, SaysWhatItCannotCount) {
    constexpr std::size_t kBins = 100000;
    DeviceBuffer<std::int32_t> ints{std::vector<std::int32_t>(16)};
    DeviceBuffer<std::uint8_t> bytes{std::vector<std::uint8_t>(16)};
    GuardedBuffer<Counter> counts(kBins);
    const bool any = GetParam()->name == "any_bins";
    const auto expect_same = [&](const auto& values, Range range, std::size_t bins, const std::string& text) {
        const std::string reason = GetParam()->cannot_run(
            {.size = values.size(), .value_bytes = sizeof(*values.data()), .bins = bins, .range = range});
        EXPECT_EQ(reason, any ? "" : "it counts bytes in 256 bins; any_bins counts " + text);
        const auto count = [&] {
            GetParam()->launcher(values.span(), range, counts.span().subspan(0, bins), nullptr);
        };
        if (any) {
            count();
        } else {
            expect_refused(count, "histogram: " + reason);
        }
    };
    expect_same(ints, {0, 1 << 20}, kBins, "ints of [0, 1048576) in 100000 bins");
    expect_same(ints, day12::kAllBytes, 256, "ints of [0, 256) in 256 bins");
    expect_same(bytes, day12::kAllBytes, 255, "bytes of [0, 256) in 255 bins");
    expect_same(bytes, {0, 255}, 256, "bytes of [0, 255) in 256 bins");
    expect_same(bytes, {-1, 256}, 256, "bytes of [-1, 256) in 256 bins");
}

// More than 2^32 values, nearly all equal: an index or a counter of 32 bits would wrap.
TEST_P(VersionTest, MoreValuesThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 100003;
    if (const std::string reason = course::why_not_so_large(n); !reason.empty()) GTEST_SKIP() << reason;
    DeviceBuffer<std::uint8_t> values(n);
    CUDA_CHECK(cudaMemset(values.data(), 7, n));
    constexpr std::size_t kWindow = 1009;
    std::vector<Counter> expected(256);
    std::uint8_t mark = 100;
    for (const std::size_t place :
         {std::size_t{0}, std::size_t{1} << 31, std::size_t{1} << 32, n - kWindow}) {
        CUDA_CHECK(cudaMemset(values.data() + place, mark, kWindow));
        expected[mark++] = kWindow;
    }
    expected[7] = n - 4 * kWindow;
    GuardedBuffer<Counter> counts(256);
    GetParam()->launcher(values.span(), day12::kAllBytes, counts.span(), nullptr);
    const course::VerifyResult result = course::verify_exact(counts.to_host(), expected);
    EXPECT_TRUE(result.ok()) << result.message();
}

// The same on the CPU, where only the last blocks of each grid run. The stand-in reports so many
// multiprocessors that every grid covers all values. One of the last values is not 0.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t n = (std::size_t{1} << 32) + 2000;
    const course::LargeArray<std::uint8_t> values(n, n);
    values[n - 40] = 9;
    GuardedBuffer<Counter> counts(256);
    course::run_few_blocks(
        [&] { GetParam()->launcher(values.span(), day12::kAllBytes, counts.span(), nullptr); }, {1});
    if (HasFatalFailure()) return;
    EXPECT_EQ(counts.to_host()[9], 1U) << course::large_element(n - 40, n);
}

TEST(HistogramOnCpu, CountsAsTheDefinitionDoes) {
    const auto ints = day12::make_values<std::int32_t>(50021, Distribution::kUniform, kTwoMillion, kSeed);
    for (const Range range : {kTwoMillion, day12::kAllInts, Range{-5000, 700000}}) {
        for (const std::size_t bins : std::initializer_list<std::size_t>{1, 7, 1000}) {
            std::vector<Counter> counts(bins, 3);
            day12::histogram_on_cpu(ints, range, counts);
            EXPECT_EQ(counts, expected_counts(std::span<const std::int32_t>(ints), range, bins));
        }
    }
    const auto bytes = day12::make_values<std::uint8_t>(50021, Distribution::kZipf, day12::kAllBytes, kSeed);
    std::vector<Counter> counts(256, 3);
    day12::histogram_on_cpu(bytes, day12::kAllBytes, counts);
    EXPECT_EQ(counts, expected_counts(std::span<const std::uint8_t>(bytes), day12::kAllBytes, 256));
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), Counter{0}), bytes.size());
    EXPECT_THROW(day12::histogram_on_cpu(bytes, {3, 3}, counts), std::invalid_argument);
    EXPECT_THROW(day12::histogram_on_cpu(bytes, day12::kAllBytes, {}), std::invalid_argument);
}

TEST(Data, ZipfHalvesFromTheFirstToTheSecondValue) {
    constexpr std::size_t n = 100000;
    const auto values = day12::make_values<std::uint8_t>(n, Distribution::kZipf, {10, 20}, kSeed);
    std::vector<double> counts(256);
    for (const std::uint8_t value : values)
        counts[value] += 1;
    double all = 0;
    for (int rank = 1; rank <= 10; ++rank)
        all += 1.0 / rank;
    for (std::size_t rank = 1; rank <= 10; ++rank) {
        const double expected = n / (static_cast<double>(rank) * all);
        EXPECT_NEAR(counts[9 + rank], expected, 5 * std::sqrt(expected))
            << "rank " << rank;  // 5 standard deviations
    }
}

TEST(Versions, AreFoundByNameAndOthersSuggested) {
    EXPECT_EQ(course::find_version(day12::versions(), "lane_copies").name, "lane_copies");
    EXPECT_THROW(course::find_version(day12::versions(), "lane_copy"), std::invalid_argument);
}

}  // namespace

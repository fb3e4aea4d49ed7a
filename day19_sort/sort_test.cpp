// Every version against the CPU, key by key. What comes out is sorted, and has the same keys as
// what went in: one comparison with the sorted input proves both.
#include "sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using day19::Key;
using day19::Workspace;

constexpr std::uint64_t kSeed = 19;
constexpr Key kLargest = 0xffffffff;

// Around a warp, a block's keys (256, 1,024, 2,048, 3,840), two of them, and 64 blocks, whose 1,024
// counts are scanned at once.
const std::vector<std::size_t> kLengths = {0,    1,    2,    31,   33,   255,  256,  257,  1023,
                                           1024, 1025, 2047, 2048, 2049, 3840, 3841, 4097, 16385};

enum class Pattern {
    kRandom,
    kSorted,
    kReversed,
    kAllEqual,
    kAllLargest,
    kFewKeys,
    kZipf,
    kHighBits,
    kLowBits,
    kMiddleBits,
    kExtremes,
    kOneOutOfPlace
};
constexpr Pattern kPatterns[] = {Pattern::kRandom,     Pattern::kSorted,     Pattern::kReversed,
                                 Pattern::kAllEqual,   Pattern::kAllLargest, Pattern::kFewKeys,
                                 Pattern::kZipf,       Pattern::kHighBits,   Pattern::kLowBits,
                                 Pattern::kMiddleBits, Pattern::kExtremes,   Pattern::kOneOutOfPlace};
constexpr const char* kNames[] = {"random",
                                  "sorted",
                                  "reversed",
                                  "all equal",
                                  "all 0xffffffff",
                                  "few keys",
                                  "Zipf",
                                  "high bits",
                                  "low bits",
                                  "middle bits",
                                  "0xffffffff, 0 and few others",
                                  "one out of place"};

std::vector<Key> make_keys(std::size_t n, Pattern pattern, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    std::vector<Key> keys(n);
    for (std::size_t i = 0; i < n; ++i) {
        const auto place = static_cast<Key>(i);
        const auto bits = static_cast<Key>(random.next() >> 32);
        switch (pattern) {
            case Pattern::kRandom:
                keys[i] = bits;
                break;
            case Pattern::kSorted:
            case Pattern::kOneOutOfPlace:
                keys[i] = place * (kLargest / static_cast<Key>(n));
                break;
            case Pattern::kReversed:
                keys[i] = kLargest - place * (kLargest / static_cast<Key>(n));
                break;
            case Pattern::kAllEqual:
                keys[i] = 0x12345678;
                break;
            case Pattern::kAllLargest:
                keys[i] = kLargest;
                break;
            case Pattern::kFewKeys:
                keys[i] = bits % 5 * 0x31415926;
                break;
            // Any power of two is as likely: key k comes about 1 / k times as often as key 1.
            case Pattern::kZipf:
                keys[i] = (bits | 1U << 31) >> random.below(32);
                break;
            case Pattern::kHighBits:
                keys[i] = bits << 28 | 0x0abcdef;
                break;
            case Pattern::kLowBits:
                keys[i] = 0xabcdef00 | bits % 16;
                break;
            case Pattern::kMiddleBits:
                keys[i] = 0xa000000b | (bits & 0x000ff000);
                break;
            case Pattern::kExtremes:
                keys[i] = bits % 8 < 4 ? kLargest : bits % 8 < 6 ? 0 : bits % 3 == 0 ? kLargest - 1 : 1;
                break;
        }
    }
    if (pattern == Pattern::kOneOutOfPlace && n > 0) std::swap(keys.front(), keys.back());
    return keys;
}

std::vector<Key> sorted(const std::vector<Key>& keys) {
    std::vector<Key> result(keys.size());
    day19::sort_on_cpu(keys, result);
    return result;
}

class VersionTest : public course::DeviceTestWithParam<const day19::Version*> {
  protected:
    static bool can_sort(std::size_t n) { return GetParam()->cannot_run(n).empty(); }
    // Tiles of 10,240 keys.
    static bool has_large_tiles() {
        return GetParam()->name == "radix_8bit" || GetParam()->name == "onesweep";
    }

    // Sorts the keys and compares. "": all is right. Smaller keys precede and
    // follow the input; without an offset it ends where its memory ends.
    std::string sort(const std::vector<Key>& keys, std::size_t in_offset = 0, std::size_t out_offset = 0) {
        return sort(keys, sorted(keys), in_offset, out_offset);
    }

    std::string sort(const std::vector<Key>& keys, const std::vector<Key>& expected,
                     std::size_t in_offset = 0, std::size_t out_offset = 0) {
        std::vector<Key> in_host(in_offset + keys.size() + (in_offset > 0 ? 8 : 0), 0);
        std::ranges::copy(keys, in_host.begin() + static_cast<std::ptrdiff_t>(in_offset));
        const DeviceBuffer<Key> in{std::span<const Key>(in_host)};
        GuardedBuffer<Key> out(keys.size(), out_offset);
        // No key is right before the kernels run, not even 0xffffffff.
        std::vector<Key> wrong(expected);
        for (Key& key : wrong)
            key = ~key;
        out.copy_from(wrong);

        GetParam()->launcher(in.span().subspan(in_offset, keys.size()), out.span(),
                             workspace_for(keys.size()), nullptr);
        CUDA_CHECK(cudaDeviceSynchronize());
        if (in.to_host() != in_host) return "the input was changed";
        course::VerifyResult result = course::verify_exact(out.to_host(), expected);
        result.damage = out.damage();
        return result.ok() ? "" : result.message();
    }

  private:
    // One for all sorts of a test.
    Workspace& workspace_for(std::size_t n) {
        if (!workspace_ || workspace_->capacity() < n) workspace_.emplace(n);
        return *workspace_;
    }

    std::optional<Workspace> workspace_;
};

INSTANTIATE_TEST_SUITE_P(DayNineteen, VersionTest, course::each_of(day19::versions()), course::VersionName());

TEST_P(VersionTest, AllLengths) {
    std::vector<std::size_t> lengths = kLengths;
    if (has_large_tiles()) lengths.insert(lengths.end(), {10239, 10240, 10241, 20480, 20481});
    // With a bit at a time there are two counts for each block, and 64 blocks are like two.
    const bool few_counts = course::is_cpu_stand_in() && GetParam()->name.starts_with("radix_1bit");
    if (few_counts) lengths.pop_back();
    for (const std::size_t n : lengths) {
        if (can_sort(n)) {
            EXPECT_EQ(sort(make_keys(n, Pattern::kRandom)), "") << "n = " << n;
        }
    }
}

TEST_P(VersionTest, AllPatterns) {
    for (const Pattern pattern : kPatterns)
        EXPECT_EQ(sort(make_keys(1000, pattern)), "") << "n = 1000, " << kNames[static_cast<int>(pattern)];
    // Several blocks; the last one has keys that look like those that it lacks.
    const std::size_t kMany = has_large_tiles() ? 10300 : 4300;
    if (!can_sort(kMany)) return;
    for (const Pattern pattern : {Pattern::kReversed, Pattern::kZipf, Pattern::kExtremes})
        EXPECT_EQ(sort(make_keys(kMany, pattern)), "")
            << "n = " << kMany << ", " << kNames[static_cast<int>(pattern)];
}

// The lowest bit decides, among keys that the higher ones have put in order; and any other bit.
TEST_P(VersionTest, EachBitCounts) {
    std::vector<Key> keys;
    for (int bit = 0; bit < 32; ++bit)
        for (const Key other : {Key{0}, Key{0x55555555}, Key{0xaaaaaaaa}, kLargest})
            keys.insert(keys.end(), {other ^ Key{1} << bit, other});
    std::shuffle(keys.begin(), keys.end(), std::mt19937(kSeed));
    EXPECT_EQ(sort(keys), "");
}

TEST_P(VersionTest, RandomLengthsPatternsAndAlignments) {
    const std::uint64_t seed = std::random_device()();
    SCOPED_TRACE("course::Random seed " + std::to_string(seed));
    course::Random random(seed);
    const int rounds = course::is_cpu_stand_in() ? 4 : 8;
    for (int round = 0; round < rounds; ++round) {
        const std::size_t n = random.below(round % 2 == 0 ? 1025 : 9000);
        if (!can_sort(n)) continue;
        const std::size_t in_offset = random.below(5);
        const std::size_t out_offset = random.below(40);
        const Pattern pattern = kPatterns[random.below(static_cast<std::uint32_t>(std::size(kPatterns)))];
        EXPECT_EQ(sort(make_keys(n, pattern, seed + round), in_offset, out_offset), "")
            << "n = " << n << ", " << kNames[static_cast<int>(pattern)] << "; in " << in_offset << ", out "
            << out_offset << " keys after an aligned address";
    }
}

TEST_P(VersionTest, RunsOnTheGivenStreamAndInGraphs) {
    const std::size_t n = has_large_tiles() ? 10241 : can_sort(4500) ? 4500 : 1000;
    DeviceBuffer<Key> in = course::zeros<Key>(n);
    GuardedBuffer<Key> out(n);
    Workspace workspace(n);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(in.span(), out.span(), workspace, stream); });
    EXPECT_GE(work.nodes(), 1U);
    for (const std::uint64_t seed : {1, 2}) {
        const std::vector<Key> keys = make_keys(n, Pattern::kRandom, seed);
        in.copy_from(keys);
        std::vector<Key> expected(n);
        day19::sort_on_cpu(keys, expected);
        out.spoil();
        work.run();
        EXPECT_EQ(out.to_host(), expected) << "replay " << seed;
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<Key> buffer = course::zeros<Key>(3000);
    Workspace workspace(16);
    const DeviceSpan<Key> all = buffer.span();
    const auto message = [&](DeviceSpan<const Key> in, DeviceSpan<Key> out) {
        return course::refusal([&] { GetParam()->launcher(in, out, workspace, nullptr); });
    };
    const DeviceSpan<const Key> in = all.subspan(0, 16);
    EXPECT_EQ(message(in, all.subspan(16, 16)), "");
    EXPECT_EQ(message(in, all.subspan(16, 15)), "sort: out has 15 keys; expected as many as in, 16");
    EXPECT_EQ(message(in, all.subspan(16, 17)), "sort: out has 17 keys; expected as many as in, 16");
    EXPECT_EQ(message(in, all.subspan(15, 16)), "sort: out overlaps in; expected no key in common");
    EXPECT_EQ(message(in, all.subspan(0, 16)), "sort: out overlaps in; expected no key in common");
    EXPECT_EQ(message(all.subspan(0, 17), all.subspan(17, 17)),
              "sort: workspace has capacity 16; expected at least the length of in, 17");
}

TEST_P(VersionTest, RefusesMoreKeysThanItCanSort) {
    constexpr std::size_t kMany = 2049;
    if (can_sort(kMany)) GTEST_SKIP() << GetParam()->name << " sorts any number of keys";
    DeviceBuffer<Key> buffer = course::zeros<Key>(2 * kMany);
    Workspace workspace(kMany);
    EXPECT_EQ(course::refusal([&] {
                  GetParam()->launcher(buffer.span().subspan(0, kMany), buffer.span().subspan(kMany, kMany),
                                       workspace, nullptr);
              }),
              "sort: in has 2049 keys; " + GetParam()->cannot_run(kMany));
}

// Several rounds of scan_sums, and many of all else.
TEST_P(VersionTest, MillionsOfKeys) {
    constexpr std::size_t kMany = (std::size_t{1} << 24) + 4321;
    if (!can_sort(kMany)) GTEST_SKIP() << GetParam()->cannot_run(kMany);
    if (course::is_cpu_stand_in()) GTEST_SKIP() << "needs a GPU: on CPU threads it would take minutes";
    struct Problem {
        std::vector<Key> keys, expected;
    };
    static std::map<Pattern, Problem> problems;  // made once, not for each version
    for (const Pattern pattern : {Pattern::kRandom, Pattern::kZipf, Pattern::kSorted}) {
        Problem& problem = problems[pattern];
        if (problem.keys.empty()) {
            problem.keys = make_keys(kMany, pattern);
            problem.expected = sorted(problem.keys);
        }
        EXPECT_EQ(sort(problem.keys, problem.expected), "") << kNames[static_cast<int>(pattern)];
    }
}

// 17 GB of keys: a third of one key, the rest of a smaller one, but for a few.
TEST_P(VersionTest, MoreKeysThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 12345;
    if (!can_sort(n)) GTEST_SKIP() << GetParam()->cannot_run(n);
    if (const std::string reason = course::why_not_so_large(5 * n * sizeof(Key) + n); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<Key> in(n);
    DeviceBuffer<Key> out(n);
    const auto set = [](DeviceBuffer<Key>& buffer, std::size_t i, Key value) {
        CUDA_CHECK(cudaMemcpy(buffer.data() + i, &value, sizeof(value), cudaMemcpyHostToDevice));
    };
    const auto get = [](const DeviceBuffer<Key>& buffer, std::size_t i) {
        Key value = 0;
        CUDA_CHECK(cudaMemcpy(&value, buffer.data() + i, sizeof(value), cudaMemcpyDeviceToHost));
        return value;
    };
    const std::size_t large = n / 3;
    CUDA_CHECK(cudaMemset(in.data(), 0xee, large * sizeof(Key)));
    CUDA_CHECK(cudaMemset(in.data() + large, 0x11, (n - large) * sizeof(Key)));
    CUDA_CHECK(cudaMemset(out.data(), 0x77, out.bytes()));
    set(in, 5, 3);
    set(in, n / 2, kLargest);
    set(in, n - 1, 2);
    Workspace workspace(n);
    GetParam()->launcher(in.span(), out.span(), workspace, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_EQ(get(out, 0), 2U);
    EXPECT_EQ(get(out, 1), 3U);
    // Of the large ones one was replaced, of the small ones two.
    const std::size_t border = 2 + (n - large - 2);
    for (const std::size_t i : {std::size_t{2}, n / 2, border - 1})
        EXPECT_EQ(get(out, i), 0x11111111U) << "at " << i;
    for (const std::size_t i : {border, n - 2})
        EXPECT_EQ(get(out, i), 0xeeeeeeeeU) << "at " << i;
    EXPECT_EQ(get(out, n - 1), kLargest);
}

using ScanCounts = course::DeviceTest;

// More than 1,024 parts, so that the sums take two rounds. All counts are 2^21 or nearly so: their
// sums need more than 32 bits.
TEST_F(ScanCounts, SumsWithinAPartAndBeforeIt) {
    for (const std::size_t n : {1, 1023, 1024, 1025, 1024 * 1025 + 7}) {
        std::vector<unsigned> counts(n);
        for (std::size_t i = 0; i < n; ++i)
            counts[i] = (1U << 21) - static_cast<unsigned>(i % 7);
        DeviceBuffer<unsigned> device{std::span<const unsigned>(counts)};
        GuardedBuffer<std::size_t> sums((n + 1023) / 1024 + 1);
        day19::scan_counts(device.span(), sums.span(), nullptr);
        const std::vector<unsigned> scanned = device.to_host();
        const std::vector<std::size_t> of_parts = sums.to_host();
        std::size_t before = 0;
        for (std::size_t i = 0; i < n; ++i) {
            ASSERT_EQ(of_parts[i / 1024] + scanned[i], before) << "count " << i << " of " << n;
            before += counts[i];
        }
        EXPECT_EQ(of_parts.back(), before) << n;
        EXPECT_EQ(sums.damage(), "");
    }
}

TEST_F(ScanCounts, RefusesBadArguments) {
    DeviceBuffer<unsigned> counts(1025);
    DeviceBuffer<std::size_t> sums(3);
    const auto message = [&](std::size_t n, std::size_t parts) {
        return course::refusal(
            [&] { day19::scan_counts(counts.span().subspan(0, n), sums.span().subspan(0, parts), nullptr); });
    };
    EXPECT_EQ(message(0, 1), "scan_counts: counts has 0 elements; expected at least 1");
    EXPECT_EQ(message(1025, 2),
              "scan_counts: sums has 2 elements; expected one for each 1024 counts, and one more, 3");
}

TEST(SortWorkspace, RefusesMoreThanItCanIndex) {
    EXPECT_EQ(course::refusal([] { Workspace((std::size_t{1} << 37) + 1); }),
              "Workspace: capacity is 137438953473; expected at most 2^37");
}

TEST(SortOnCpu, SortsAndKeepsItsInput) {
    const std::vector<Key> keys = {7, kLargest, 0, 7, 1U << 31};
    std::vector<Key> out(keys.size());
    day19::sort_on_cpu(keys, out);
    EXPECT_EQ(out, (std::vector<Key>{0, 7, 7, 1U << 31, kLargest}));
    EXPECT_EQ(course::refusal([&] { day19::sort_on_cpu(keys, std::span(out).first(4)); }),
              "sort_on_cpu: out has 4 keys; expected as many as in, 5");
}

}  // namespace

// Every version against the CPU. Integers, and floats that add without rounding, are compared
// exactly.
#include "reduction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceSpan;
using course::GuardedBuffer;
using day15::Max;
using day15::Min;
using day15::Sum;
using day15::Workspace;

constexpr std::uint64_t kSeed = 15;
constexpr float kInf = std::numeric_limits<float>::infinity();

// Integers of all magnitudes; floats that are whole numbers, which sums of these lengths add
// exactly in any order.
template <class T>
std::vector<T> exact_data(std::size_t n, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    std::vector<T> values(n);
    for (T& value : values) {
        if constexpr (std::is_same_v<T, float>) {
            value = static_cast<float>(random.integer(-100, 100));
        } else {
            value = static_cast<T>(random.next());
        }
    }
    return values;
}

// A value that changes the result of everything it is taken into by mistake.
template <class Op>
typename Op::Element intruder() {
    using T = typename Op::Element;
    if constexpr (std::is_same_v<Op, Max<T>>) return std::numeric_limits<T>::max();
    if constexpr (std::is_same_v<Op, Min<T>>) return std::numeric_limits<T>::lowest();
    return static_cast<T>(12345);
}

// Compares one result with the CPU's. Sums of floats may be off by what adding that many rounds (0:
// exactly equal).
template <class Op>
course::VerifyResult compare(const GuardedBuffer<typename Op::Result>& out,
                             const std::vector<typename Op::Element>& in, double factor) {
    course::VerifyResult result;
    const auto expected = day15::reduce_on_cpu<Op>(in);
    if constexpr (std::is_same_v<typename Op::Result, float>) {
        double magnitude = 0;
        for (const float x : in)
            magnitude += std::abs(static_cast<double>(x));
        if (!std::isfinite(magnitude)) magnitude = 0;
        result = course::verify(out.to_host(), std::vector{expected},
                                {.terms = std::max<std::size_t>(1, in.size()),
                                 .growth = course::Growth::kSquareRoot,
                                 .factor = std::is_same_v<Op, Sum<float>> ? factor : 0},
                                std::vector{magnitude});
    } else {
        result = course::verify_exact(out.to_host(), std::vector{expected});
    }
    result.damage = out.damage();
    return result;
}

class VersionTest : public course::DeviceTestWithParam<std::string> {
  protected:
    // Calls f<Op>() for each operation that the version has: float sums, for `deterministic` all
    // nine.
    template <class F>
    void for_each_operation(F f) {
        const auto one = [&]<class Op>(const char* name) {
            SCOPED_TRACE(name);
            const std::vector<std::string> versions = course::names(day15::versions<Op>());
            if (std::ranges::find(versions, GetParam()) != versions.end()) f.template operator()<Op>();
        };
        one.template operator()<Sum<float>>("Sum<float>");
        one.template operator()<Sum<std::int32_t>>("Sum<int32_t>");
        one.template operator()<Sum<std::int64_t>>("Sum<int64_t>");
        one.template operator()<Min<float>>("Min<float>");
        one.template operator()<Min<std::int32_t>>("Min<int32_t>");
        one.template operator()<Min<std::int64_t>>("Min<int64_t>");
        one.template operator()<Max<float>>("Max<float>");
        one.template operator()<Max<std::int32_t>>("Max<int32_t>");
        one.template operator()<Max<std::int64_t>>("Max<int64_t>");
    }

    struct Options {
        std::size_t offset = 0;  // of the input, in elements, from a well-aligned address
        unsigned blocks = 0;
        double factor = 0;
    };

    template <class Op>
    void launch(DeviceSpan<const typename Op::Element> in, DeviceSpan<typename Op::Result> out,
                unsigned blocks = 0, cudaStream_t stream = nullptr) {
        course::find_version(day15::versions<Op>(), GetParam())
            .launcher(in, out, workspace(), blocks, stream);
    }

    // One workspace for all reductions of a test: each must leave it as the next one needs it.
    Workspace& workspace() {
        if (!workspace_) workspace_.emplace();
        return *workspace_;
    }

    // `in` lies between intruders on the device.
    template <class Op>
    course::VerifyResult reduce(const std::vector<typename Op::Element>& in, const Options& options) {
        using T = typename Op::Element;
        constexpr std::size_t kBehind = 8;
        std::vector<T> all(options.offset + in.size() + kBehind, intruder<Op>());
        std::copy(in.begin(), in.end(), all.begin() + static_cast<std::ptrdiff_t>(options.offset));
        const DeviceBuffer<T> device{std::span<const T>(all)};
        GuardedBuffer<typename Op::Result> out(1);
        launch<Op>(device.span().subspan(options.offset, in.size()), out.span(), options.blocks);
        course::VerifyResult result = compare<Op>(out, in, options.factor);
        if (device.to_host() != all && !std::is_floating_point_v<T>)
            result.damage += " the input was changed";
        return result;
    }

    template <class Op>
    course::VerifyResult reduce(const std::vector<typename Op::Element>& in) {
        return reduce<Op>(in, Options{});
    }

    template <class Op>
    void expect_right(const std::vector<typename Op::Element>& in, const std::string& what) {
        const course::VerifyResult result = reduce<Op>(in);
        EXPECT_TRUE(result.ok()) << what << ": " << result.message();
    }

  private:
    std::optional<Workspace> workspace_;
};

INSTANTIATE_TEST_SUITE_P(DayFifteen, VersionTest,
                         testing::ValuesIn(course::names(day15::versions<Sum<float>>())),
                         [](const auto& version) { return version.param; });

TEST_P(VersionTest, AllSizesAndOperations) {
    // Around a pack, a warp, a block and a tile of 4- and of 8-byte elements; several tiles; a
    // prime.
    for (const std::size_t n :
         {0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097, 8191, 8192, 8193, 20011}) {
        for_each_operation([&]<class Op>() {
            const course::VerifyResult result = reduce<Op>(exact_data<typename Op::Element>(n));
            EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
        });
    }
}

TEST_P(VersionTest, RandomSizesGridsAndAlignments) {
    course::Random random(20260101);
    SCOPED_TRACE("course::Random seed 20260101");
    for (int round = 0; round < 4; ++round) {
        const std::size_t n = random.below(12000);
        const Options options{.offset = random.below(5), .blocks = random.below(9)};
        for_each_operation([&]<class Op>() {
            const course::VerifyResult result = reduce<Op>(exact_data<typename Op::Element>(n), options);
            EXPECT_TRUE(result.ok()) << "n = " << n << ", which begin " << options.offset
                                     << " behind an aligned address, a grid of " << options.blocks
                                     << " blocks (0: the launcher's choice): " << result.message();
        });
    }
}

// A grid that does not fit the data: blocks that loop, and blocks without work.
TEST_P(VersionTest, AnyGrid) {
    for (const unsigned blocks : {2, 40}) {
        for_each_operation([&]<class Op>() {
            const course::VerifyResult result =
                reduce<Op>(exact_data<typename Op::Element>(17001), {.blocks = blocks});
            EXPECT_TRUE(result.ok()) << "a grid of " << blocks << " blocks: " << result.message();
        });
    }
}

TEST_P(VersionTest, SubRangesWithAnyAlignment) {
    for (const std::size_t offset : {1, 3}) {
        for (const std::size_t n : {5, 8197}) {
            for_each_operation([&]<class Op>() {
                const course::VerifyResult result =
                    reduce<Op>(exact_data<typename Op::Element>(n), {.offset = offset});
                EXPECT_TRUE(result.ok()) << "n = " << n << ", which begin " << offset
                                         << " behind an aligned address: " << result.message();
            });
        }
    }
}

TEST_P(VersionTest, FloatPatterns) {
    for (const std::size_t n : {1, 33, 9001}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny,
              DataPattern::kSorted, DataPattern::kWithNan, DataPattern::kWithInf}) {
            const std::vector<float> in = course::make_data<float>(n, pattern, kSeed);
            for_each_operation([&]<class Op>() {
                if constexpr (std::is_same_v<typename Op::Element, float>) {
                    const course::VerifyResult result = reduce<Op>(in, {.factor = 2});
                    EXPECT_TRUE(result.ok())
                        << "n = " << n << ", " << course::name(pattern) << ": " << result.message();
                }
            });
        }
    }
}

// Minima, maxima and integers: the one version that has them.
class AnyOperation : public VersionTest {};
INSTANTIATE_TEST_SUITE_P(DayFifteen, AnyOperation,
                         testing::ValuesIn(course::names(day15::versions<Min<float>>())),
                         [](const auto& version) { return version.param; });

TEST_P(AnyOperation, IntegersAtTheirLimits) {
    for (const std::int32_t value : {INT32_MIN, INT32_MAX, -1}) {
        const std::vector<std::int32_t> in(1000, value);
        const std::string what = "1000 times the int32_t " + std::to_string(value);
        expect_right<Sum<std::int32_t>>(in, "the sum, in 64 bits, of " + what);
        expect_right<Min<std::int32_t>>(in, "the minimum of " + what);
        expect_right<Max<std::int32_t>>(in, "the maximum of " + what);
    }
    for (const std::int64_t value : {INT64_MIN, INT64_MAX, std::int64_t{-1}}) {
        const std::vector<std::int64_t> in(1000, value);
        const std::string what = "1000 times the int64_t " + std::to_string(value);
        expect_right<Sum<std::int64_t>>(in, "the sum, modulo 2^64, of " + what);
        expect_right<Min<std::int64_t>>(in, "the minimum of " + what);
        expect_right<Max<std::int64_t>>(in, "the maximum of " + what);
    }
}

// Two tiles, so that the results of two blocks are combined.
constexpr std::size_t kTwoTiles = 8192 + 300;

// A block may have only positive values, or only negative ones.
TEST_P(AnyOperation, ExtremesOfFloatsWhereverTheyAre) {
    for (const auto& [low, high] : std::vector<std::pair<float, float>>{
             {1.0f, 2.0f}, {-2.0f, -1.0f}, {-1.0f, 1.0f}, {-0.0f, 0.0f}, {0.0f, kInf}, {-kInf, 0.0f}}) {
        std::vector<float> lows(kTwoTiles, high);
        lows[0] = low;
        std::vector<float> highs(kTwoTiles, low);
        highs[kTwoTiles - 1] = high;
        expect_right<Min<float>>(lows, "the minimum of one " + std::to_string(low) + " among " +
                                           std::to_string(kTwoTiles - 1) + " times " + std::to_string(high));
        expect_right<Max<float>>(highs, "the maximum of one " + std::to_string(high) + " among " +
                                            std::to_string(kTwoTiles - 1) + " times " + std::to_string(low));
    }
}

// Whatever its sign, and whether it comes before or after the other block's numbers.
TEST_P(AnyOperation, OneNanIsEnough) {
    for (const float value : {-1.0f, 1.0f}) {
        for (const std::uint32_t bits : {0x7fc00000U, 0xffc00000U, 0x7f800001U}) {
            for (const std::size_t place : {std::size_t{0}, kTwoTiles - 1}) {
                std::vector<float> in(kTwoTiles, value);
                in[place] = std::bit_cast<float>(bits);
                const std::string what = "one NaN at " + std::to_string(place) + " among " +
                                         std::to_string(kTwoTiles - 1) + " times " + std::to_string(value);
                SCOPED_TRACE(testing::Message() << "the NaN's bits: " << std::hex << bits);
                expect_right<Min<float>>(in, "the minimum of " + what);
                expect_right<Max<float>>(in, "the maximum of " + what);
            }
        }
    }
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    const DeviceBuffer<float> in{std::span<const float>(exact_data<float>(10000))};
    GuardedBuffer<float> out(1);
    // Allocates: not allowed during capture.
    static_cast<void>(workspace());
    const course::CapturedWork work(
        [&](cudaStream_t stream) { launch<Sum<float>>(in.span(), out.span(), 0, stream); });
    const bool one_launch = GetParam() == "single_pass" || GetParam() == "deterministic";
    const std::size_t expected = one_launch ? 1 : 2;
    EXPECT_EQ(work.nodes(), expected) << "kernels and memsets on the stream that was given: expected "
                                      << expected << ", got " << work.nodes();
}

TEST_P(VersionTest, RefusesBadArguments) {
    DeviceBuffer<float> buffer{std::span<const float>(std::vector<float>(16, 1.0f))};
    const auto message = [&](DeviceSpan<float> in, DeviceSpan<float> out, unsigned blocks) -> std::string {
        try {
            launch<Sum<float>>(in, out, blocks);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    const DeviceSpan<float> all = buffer.span();
    const DeviceSpan<float> in = all.subspan(4, 8);
    EXPECT_EQ(message(in, all.subspan(0, 0), 0), "reduction: out has 0 elements; expected 1");
    EXPECT_EQ(message(in, all.subspan(0, 2), 0), "reduction: out has 2 elements; expected 1");
    EXPECT_EQ(message(in, all.subspan(4, 1), 0),
              "reduction: out lies within in; expected an element of its own");
    EXPECT_EQ(message(in, all.subspan(11, 1), 0),
              "reduction: out lies within in; expected an element of its own");
    EXPECT_EQ(message(in, all.subspan(0, 1), 4097),
              "reduction: blocks is 4097; expected at most 4096, or 0 for the launcher's choice");
    EXPECT_EQ(message(in, all.subspan(3, 1), 2), "accepted");
    EXPECT_EQ(message(in, all.subspan(12, 1), 0), "accepted");
}

// 17 GB of zeros, but for four elements. A 32-bit index would miss some of them, or read them
// twice.
TEST_P(VersionTest, MoreElementsThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 5;
    if (const std::string reason = course::why_not_so_large(n * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<float> in(n);
    CUDA_CHECK(cudaMemset(in.data(), 0, in.bytes()));
    float value = 1;
    float expected = 0;
    for (const std::size_t place : {std::size_t{0}, std::size_t{1} << 31, n - 6, n - 1}) {
        CUDA_CHECK(cudaMemcpy(in.data() + place, &value, sizeof(value), cudaMemcpyHostToDevice));
        expected += value;
        value *= 3;
    }
    GuardedBuffer<float> sum(1);
    launch<Sum<float>>(in.span(), sum.span());
    EXPECT_EQ(sum.to_host()[0], expected);
}

// The same on the CPU, where only the last blocks run, and all that they read can be read. They
// have element 2^32 - 1: as the last of a grid that covers the array, or of one with kMostBlocks
// blocks, which come to it in their last round.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    if (GetParam() == "single_pass" || GetParam() == "deterministic")
        GTEST_SKIP() << "the last block to finish writes the result, and not all blocks run here";
    const std::size_t n = (std::size_t{1} << 32) + 5;
    const course::LargeArray<float> in(n, n);
    in[n - 6] = 3;
    GuardedBuffer<float> sum(1);
    course::run_few_blocks([&] { launch<Sum<float>>(in.span(), sum.span()); }, {1.0});
    if (HasFatalFailure()) return;
    EXPECT_EQ(sum.to_host()[0], 3) << course::large_element(n - 6, n);
}

// On a GPU, for integers, none of them 0: an element that is read twice or not at all changes the
// sum.
TEST_P(AnyOperation, MoreIntegersThan32BitsCount) {
    const std::size_t n = (std::size_t{1} << 32) + 5;
    if (const std::string reason = course::why_not_so_large(n * sizeof(std::int32_t)); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<std::int32_t> in(n);
    CUDA_CHECK(cudaMemset(in.data(), 1, in.bytes()));
    constexpr std::int64_t kEach = 0x01010101;
    std::int64_t expected = kEach * static_cast<std::int64_t>(n);
    std::int32_t value = 2;
    for (const std::size_t place : {std::size_t{0}, std::size_t{1} << 31, n - 6, n - 1}) {
        CUDA_CHECK(cudaMemcpy(in.data() + place, &value, sizeof(value), cudaMemcpyHostToDevice));
        expected += value - kEach;
        value *= -3;
    }
    GuardedBuffer<std::int64_t> sum(1);
    launch<Sum<std::int32_t>>(in.span(), sum.span());
    EXPECT_EQ(sum.to_host()[0], expected);
    // The last of the four.
    GuardedBuffer<std::int32_t> least(1);
    launch<Min<std::int32_t>>(in.span(), least.span());
    EXPECT_EQ(least.to_host()[0], -54);
}

using DeterministicTest = course::DeviceTest;

// The sum has the same bits with several grids and alignments, and in every run.
void expect_the_same_bits(const std::vector<float>& in, const std::vector<unsigned>& grids) {
    const auto& version = course::find_version(day15::versions<Sum<float>>(), "deterministic");
    Workspace workspace;
    std::set<std::uint32_t> results;
    for (std::size_t offset = 0; offset < 4; ++offset) {
        DeviceBuffer<float> device(in.size() + offset);
        CUDA_CHECK(
            cudaMemcpy(device.data() + offset, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
        for (const unsigned blocks : grids) {
            DeviceBuffer<float> out(1);
            version.launcher(device.span().subspan(offset, in.size()), out.span(), workspace, blocks,
                             nullptr);
            results.insert(std::bit_cast<std::uint32_t>(out.to_host()[0]));
        }
    }
    EXPECT_EQ(results.size(), 1U) << in.size() << " elements";
}

TEST_F(DeterministicTest, SameBitsWithEveryGridAndAlignment) {
    for (const std::size_t n : {1000, 50021}) {
        for (const DataPattern pattern : {DataPattern::kNormal, DataPattern::kHugeNextToTiny})
            expect_the_same_bits(course::make_data<float>(n, pattern, kSeed), {0, 0, 1, 3, 13});
    }
}

// More tiles than segments: every segment has two tiles, and the last one has one.
TEST_F(DeterministicTest, SegmentsOfSeveralTiles) {
    constexpr std::size_t kTile = 8192;
    const std::size_t n = (day15::kMostBlocks + 1) * kTile + 5;
    const std::vector<float> in = exact_data<float>(n);
    const DeviceBuffer<float> device{std::span<const float>(in)};
    GuardedBuffer<float> out(1);
    Workspace workspace;
    const auto& version = course::find_version(day15::versions<Sum<float>>(), "deterministic");
    for (const unsigned blocks : {0U, 3U}) {
        if (course::is_cpu_stand_in() && blocks == 0) continue;  // as few there as of a small GPU
        out.spoil();
        version.launcher(device.span(), out.span(), workspace, blocks, nullptr);
        const course::VerifyResult result = compare<Sum<float>>(out, in, 0);
        EXPECT_TRUE(result.ok()) << result.message();
    }
}

// The last block adds up more sums than it has threads: each thread has several, of several rounds
// of loads.
TEST_F(DeterministicTest, SinglePassAddsTheSumsOfManyBlocks) {
    const std::vector<float> in = exact_data<float>(600 * 8192);
    const DeviceBuffer<float> device{std::span<const float>(in)};
    GuardedBuffer<float> out(1);
    Workspace workspace;
    const auto& version = course::find_version(day15::versions<Sum<float>>(), "single_pass");
    for (const unsigned blocks : {512U, 300U}) {
        out.spoil();
        version.launcher(device.span(), out.span(), workspace, blocks, nullptr);
        const course::VerifyResult result = compare<Sum<float>>(out, in, 0);
        EXPECT_TRUE(result.ok()) << blocks << " blocks: " << result.message();
    }
}

using WorkspaceTest = course::DeviceTest;

TEST_F(WorkspaceTest, TicketIsZeroWheneverNoReductionRuns) {
    Workspace workspace;
    const auto ticket = [&] {
        unsigned value = 1;
        CUDA_CHECK(cudaMemcpy(&value, workspace.ticket(), sizeof(value), cudaMemcpyDeviceToHost));
        return value;
    };
    EXPECT_EQ(ticket(), 0U);
    const DeviceBuffer<float> in{std::span<const float>(exact_data<float>(50000))};
    DeviceBuffer<float> out(1);
    for (const auto& version : day15::versions<Sum<float>>()) {
        for (const unsigned blocks : {0U, 1U, 9U}) {
            version.launcher(in.span(), out.span(), workspace, blocks, nullptr);
            EXPECT_EQ(ticket(), 0U) << version.name;
        }
    }
}

TEST(OnTheCpu, KnownResults) {
    const std::vector<float> floats = {3, -1, 2.5f};
    EXPECT_EQ(day15::reduce_on_cpu<Sum<float>>(floats), 4.5);
    EXPECT_EQ(day15::reduce_on_cpu<Min<float>>(floats), -1);
    EXPECT_EQ(day15::reduce_on_cpu<Max<float>>(floats), 3);
    const std::vector<std::int32_t> large = {INT32_MAX, INT32_MAX, INT32_MIN};
    EXPECT_EQ(day15::reduce_on_cpu<Sum<std::int32_t>>(large), INT64_C(2147483646));
    const std::vector<std::int64_t> wraps = {INT64_MAX, 1};
    EXPECT_EQ(day15::reduce_on_cpu<Sum<std::int64_t>>(wraps), INT64_MIN);
    EXPECT_EQ(day15::reduce_on_cpu<Max<std::int64_t>>(wraps), INT64_MAX);
}

TEST(OnTheCpu, NothingReducesToTheIdentity) {
    EXPECT_EQ(day15::reduce_on_cpu<Sum<float>>({}), 0);
    EXPECT_EQ(day15::reduce_on_cpu<Min<float>>({}), kInf);
    EXPECT_EQ(day15::reduce_on_cpu<Max<float>>({}), -kInf);
    EXPECT_EQ(day15::reduce_on_cpu<Min<std::int32_t>>({}), INT32_MAX);
    EXPECT_EQ(day15::reduce_on_cpu<Max<std::int64_t>>({}), INT64_MIN);
}

TEST(OnTheCpu, NanIsPassedOn) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const std::vector<float>& in : {std::vector{nan, 1.0f}, std::vector{1.0f, nan}}) {
        EXPECT_TRUE(std::isnan(day15::reduce_on_cpu<Sum<float>>(in)));
        EXPECT_TRUE(std::isnan(day15::reduce_on_cpu<Min<float>>(in)));
        EXPECT_TRUE(std::isnan(day15::reduce_on_cpu<Max<float>>(in)));
    }
}

// 2^24 + 1 is not a float: a plain sum of ones stops there, a compensated one does not.
TEST(OnTheCpu, KahanKeepsWhatAnAdditionLoses) {
    std::vector<float> in(1001, 1.0f);
    in[0] = 0x1p24f;
    EXPECT_EQ(day15::sum_in_order(in), 0x1p24f);
    EXPECT_EQ(day15::sum_kahan(in), 0x1p24f + 1000);
}

}  // namespace

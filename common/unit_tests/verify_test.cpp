#include "common/check/verify.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/relative_error.hpp"
#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using course::verify;
using course::VerifyResult;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kEps = std::numeric_limits<float>::epsilon();

// 1000 right results, to plant errors in.
struct Planted {
    std::vector<double> expected = std::vector<double>(1000, 1.0);
    std::vector<float> got = std::vector<float>(1000, 1.0f);
};

TEST(Verify, AgreementPasses) {
    const Planted p;
    const VerifyResult result = verify(p.got, p.expected);
    EXPECT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result.compared, 1000u);
    EXPECT_EQ(result.max_error, 0);
}

TEST(Verify, OneWrongValueFailsAndIsNamed) {
    Planted p;
    p.got[437] = 1.5f;
    const VerifyResult result = verify(p.got, p.expected, {}, {}, 100);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.differing, 1u);
    EXPECT_DOUBLE_EQ(result.max_error, 0.5);
    const std::string message = result.message();
    EXPECT_NE(message.find("1 of 1000 values differs"), std::string::npos) << message;
    EXPECT_NE(message.find("[437] (row 4, col 37): expected 1 +- "), std::string::npos) << message;
    EXPECT_NE(message.find("got 1.5"), std::string::npos) << message;
}

TEST(Verify, AFactorThatAllWrongValuesHaveIsNamed) {
    const std::string factor = "each of them is 0.75 times what is expected";
    std::vector<float> got(1000);
    std::vector<double> expected(1000);
    for (std::size_t i = 0; i < got.size(); ++i) {
        expected[i] = 1 + static_cast<double>(i);
        got[i] = 0.75f * static_cast<float>(expected[i]);
    }
    std::string message = verify(got, expected).message();
    EXPECT_NE(message.find(factor), std::string::npos) << message;

    got[999] = 1;
    message = verify(got, expected).message();
    EXPECT_EQ(message.find("times what is expected"), std::string::npos) << message;
    got.assign(1000, 0.0f);
    message = verify(got, expected).message();
    EXPECT_EQ(message.find("times what is expected"), std::string::npos) << "zero: " << message;
    message = verify(std::vector<float>{2, 4, 6}, std::vector<double>{1, 2, 3}).message();
    EXPECT_EQ(message.find("times what is expected"), std::string::npos) << "few: " << message;
    expected[0] = 0;
    got.assign(1000, 1.0f);
    message = verify(got, expected).message();
    EXPECT_EQ(message.find("times what is expected"), std::string::npos) << "not a factor: " << message;
}

TEST(Verify, WhereTheComparisonIsExactNoToleranceIsNamed) {
    const VerifyResult result = verify(std::vector<float>{2}, std::vector{1.0}, {.factor = 0});
    EXPECT_NE(result.message().find("[0]: expected 1, got 2"), std::string::npos) << result.message();
}

// Long enough to be compared in parts on all cores.
TEST(Verify, LongResultsAreComparedWhole) {
    constexpr std::size_t kLength = 1'000'003;
    const std::vector<double> expected(kLength, 1.0);
    std::vector<float> got(kLength, 1.0f);
    EXPECT_TRUE(verify(got, expected).ok());
    EXPECT_EQ(verify(got, expected).compared, kLength);

    const std::vector<std::size_t> wrong = {0, 262'143, 262'144, 524'288, 700'000, 999'999, 1'000'002};
    for (const std::size_t i : wrong)
        got[i] = 2.0f;
    got[700'000] = 4.0f;
    const VerifyResult result = verify(got, expected);
    EXPECT_EQ(result.differing, wrong.size());
    EXPECT_EQ(result.max_error, 3);
    ASSERT_EQ(result.first.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(result.first[i].index, wrong[i]) << "in order";

    std::vector<double> magnitude(kLength, 1.0);
    magnitude[600'000] = -1;
    magnitude[900'000] = -2;
    try {
        verify(got, expected, {}, magnitude);
        FAIL() << "expected std::invalid_argument";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("magnitude[600000] is -1"), std::string::npos)
            << error.what();
    }
    std::ranges::fill(got, 3.0f);
    EXPECT_EQ(verify(got, expected).differing, kLength);
}

TEST(Verify, NanFailsUnlessExpected) {
    Planted p;
    p.got[0] = static_cast<float>(kNan);
    EXPECT_EQ(verify(p.got, p.expected).differing, 1u);
    EXPECT_EQ(verify(p.got, p.expected).max_error, kInf);
    p.expected[0] = kNan;
    EXPECT_TRUE(verify(p.got, p.expected).ok());
    p.got[0] = 1.0f;
    EXPECT_EQ(verify(p.got, p.expected).differing, 1u) << "NaN expected, a number got";
}

TEST(Verify, InfMustMatchWithItsSign) {
    Planted p;
    p.got[5] = static_cast<float>(kInf);
    EXPECT_EQ(verify(p.got, p.expected).differing, 1u);
    p.expected[5] = kInf;
    EXPECT_TRUE(verify(p.got, p.expected).ok());
    p.got[5] = static_cast<float>(-kInf);
    EXPECT_EQ(verify(p.got, p.expected).differing, 1u);
    p.got[5] = static_cast<float>(kNan);
    EXPECT_EQ(verify(p.got, p.expected).differing, 1u);
    p.got[5] = std::numeric_limits<float>::max();
    EXPECT_EQ(verify(p.got, p.expected).differing, 1u);
}

TEST(Verify, AnExpectedNanOrInfDoesNotLoosenTheRest) {
    Planted p;
    p.expected[0] = kInf;
    p.got[0] = static_cast<float>(kInf);
    p.expected[1] = kNan;
    p.got[1] = static_cast<float>(kNan);
    p.got[2] = 1.001f;
    EXPECT_EQ(verify(p.got, p.expected).differing, 1u);
}

TEST(Verify, ToleranceIsRoundingsTimesEpsilonTimesMagnitude) {
    const std::vector<double> expected = {100.0};
    // factor 2, one term: 2 eps * 100. A step of a float at 100 is 64 eps: 3 steps are inside, 4
    // are not.
    EXPECT_TRUE(verify(std::vector<float>{100.0f + 3 * 64 * kEps}, expected).ok());
    EXPECT_FALSE(verify(std::vector<float>{100.0f + 4 * 64 * kEps}, expected).ok());
}

TEST(Verify, LongerSumsAreAllowedMore) {
    const std::vector<double> expected = {1.0};
    const std::vector<float> got = {1.0f + 100 * kEps};
    EXPECT_FALSE(verify(got, expected, {.terms = 1}).ok());
    EXPECT_FALSE(verify(got, expected, {.terms = 1000, .growth = course::Growth::kSquareRoot}).ok());
    EXPECT_TRUE(verify(got, expected, {.terms = 1000}).ok());
    EXPECT_TRUE(verify(got, expected, {.terms = 10000, .growth = course::Growth::kSquareRoot}).ok());
}

TEST(Verify, CancellingSumsAreHeldToTheirTerms) {
    // 1e6 + 1 - 1e6: an error of 0.06 is one rounding of the terms, and far too much for the
    // result.
    const std::vector<double> expected = {1.0};
    const std::vector<float> got = {1.0625f};
    const std::vector<double> magnitude = {2e6};
    EXPECT_FALSE(verify(got, expected, {.terms = 3}).ok());
    EXPECT_TRUE(verify(got, expected, {.terms = 3}, magnitude).ok());
}

TEST(Verify, EachElementHasItsOwnMagnitude) {
    const std::vector<double> expected = {1e6, 1.0};
    const std::vector<float> got = {1e6f, 1.01f};
    EXPECT_FALSE(verify(got, expected, {}, expected).ok())
        << "the large neighbour must not cover the small one";
}

TEST(Verify, ResultsBelowTheSmallestNormalMayLoseTheirLastBits) {
    const std::vector<double> expected = {1e-45};
    EXPECT_TRUE(verify(std::vector<float>{0.0f}, expected).ok());
}

TEST(Verify, FactorZeroIsExact) {
    const std::vector<double> expected = {1.0};
    EXPECT_TRUE(verify(std::vector<float>{1.0f}, expected, {.factor = 0}).ok());
    EXPECT_FALSE(verify(std::vector<float>{1.0f + kEps}, expected, {.factor = 0}).ok());
}

TEST(Verify, BadArgumentsAreRefused) {
    const Planted p;
    EXPECT_THROW(verify(std::vector<float>(999), p.expected), std::invalid_argument);
    EXPECT_THROW(verify(p.got, p.expected, {}, std::vector<double>(3, 1.0)), std::invalid_argument);
    EXPECT_THROW(verify(p.got, p.expected, {}, std::vector<double>(1000, kInf)), std::invalid_argument)
        << "an infinite magnitude would let everything pass";
    EXPECT_THROW(verify(p.got, p.expected, {}, std::vector<double>(1000, -1.0)), std::invalid_argument);
    EXPECT_THROW(verify(p.got, p.expected, {.terms = 0}), std::invalid_argument);
    EXPECT_THROW(verify(p.got, p.expected, {.factor = kNan}), std::invalid_argument);
}

TEST(Verify, NothingToCompareAgrees) {
    EXPECT_TRUE(verify(std::vector<float>{}, {}).ok());
}

TEST(Verify, OnlyTheFirstFewAreListed) {
    Planted p;
    std::fill(p.got.begin(), p.got.end(), 2.0f);
    const VerifyResult result = verify(p.got, p.expected);
    EXPECT_EQ(result.differing, 1000u);
    EXPECT_EQ(result.first.size(), 5u);
    EXPECT_NE(result.message().find("..."), std::string::npos);
}

TEST(VerifyExact, EveryBitCounts) {
    // Adjacent integers that are equal when converted to double.
    const std::vector<std::int64_t> expected = {std::int64_t{1} << 60, 7};
    std::vector<std::int64_t> got = expected;
    EXPECT_TRUE(course::verify_exact(got, expected).ok());
    got[0] += 1;
    const VerifyResult result = course::verify_exact(got, expected);
    EXPECT_FALSE(result.ok());
    EXPECT_NE(result.message().find("expected 1152921504606846976, got 1152921504606846977"),
              std::string::npos);
}

TEST(VerifyExact, LongResultsAreComparedWhole) {
    constexpr std::size_t kLength = 1'000'003;
    const std::vector<std::uint16_t> expected(kLength, 7);
    std::vector<std::uint16_t> got = expected;
    EXPECT_EQ(course::verify_exact(got, expected).compared, kLength);
    const std::vector<std::size_t> wrong = {0, 262'143, 262'144, 524'288, 700'000, 999'999, 1'000'002};
    for (const std::size_t i : wrong)
        got[i] = 9;
    got[700'000] = 0xffff;
    const VerifyResult result = course::verify_exact(got, expected);
    EXPECT_EQ(result.differing, wrong.size());
    EXPECT_EQ(result.untouched, 1u);
    EXPECT_EQ(result.max_error, 0xffff - 7);
    ASSERT_EQ(result.first.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(result.first[i].index, wrong[i]) << "in order";
    std::ranges::fill(got, 8);
    EXPECT_EQ(course::verify_exact(got, expected).differing, kLength);
}

// --- guarded outputs -----------------------------------------------------------------------------

using course::GuardedBuffer;
using GuardedBufferTest = course::DeviceTest;

TEST_F(GuardedBufferTest, ACorrectKernelLeavesTheGuardsAlone) {
    GuardedBuffer<float> output(1000);
    course::testing::fill(output.span(), 1, 0, 1000);
    EXPECT_EQ(output.damage(), "");
    EXPECT_TRUE(verify(output.to_host(), std::vector<double>(1000, 1.0)).ok());
}

TEST_F(GuardedBufferTest, UntouchedOutputIsNan) {
    GuardedBuffer<float> output(1000);
    course::testing::fill(output.span(), 1, 0, 999);
    const VerifyResult result = verify(output.to_host(), std::vector<double>(1000, 1.0));
    EXPECT_EQ(result.differing, 1u);
    EXPECT_EQ(result.first.at(0).index, 999u);
    EXPECT_EQ(result.message(),
              "1 of 1000 values differs\n  1 value was never written\n  [999]: expected 1, got nan");
}

// A NaN shows which memory it was computed from if arithmetic keeps its mantissa.
TEST_F(GuardedBufferTest, NanTellsWhichMemoryWasNotWritten) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU makes the same NaN of all of them";
    GuardedBuffer<float> output(110);
    course::DeviceBuffer<float> fresh(32);
    course::testing::compute_from_unwritten(output.span(), fresh.span());
    const VerifyResult result = verify(output.to_host(), std::vector<double>(110, 1.0));
    EXPECT_EQ(result.differing, 102u);
    EXPECT_EQ(result.from_output, 32u);
    EXPECT_EQ(result.from_shared_memory, 32u);
    EXPECT_EQ(result.from_device_memory, 32u);
    EXPECT_EQ(result.untouched, 6u);
    for (const char* words : {"6 values were never written", "is a barrier missing",
                              "does the kernel read its output", "cudaMalloc does not clear memory"})
        EXPECT_NE(result.message().find(words), std::string::npos) << result.message();
}

// An array of 13 floats ends 12 bytes before its guard page.
TEST_F(GuardedBufferTest, NanTellsThatAnIndexIsOutOfRange) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU reads whatever is there";
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "a sanitizer reports the access itself";
#endif
    GuardedBuffer<float> output(13);
    const std::vector<float> ones(13, 1.0f);
    for (int array = 0; array < 3; ++array) {
        const course::DeviceBuffer<float> input{std::span(ones)};
        course::testing::add_neighbours(output.span(), input.span());
        const VerifyResult result = verify(output.to_host(), std::vector<double>(13, 2.0));
        EXPECT_EQ(result.differing, 1u);
        EXPECT_EQ(result.from_outside, 1u);
        EXPECT_NE(result.message().find("is an index out of range?"), std::string::npos) << result.message();
    }
}

TEST(OriginOfNan, SurvivesConversions) {
    const auto origin = [](auto value) { return course::origin_of_nan(&value, sizeof value); };
    float output = 0;
    double wide_output = 0;
    std::memcpy(&output, course::unwritten_bytes<float>().data(), sizeof output);
    std::memcpy(&wide_output, course::unwritten_bytes<double>().data(), sizeof wide_output);
    EXPECT_EQ(origin(static_cast<double>(output)), course::NanOrigin::kOutput);
    EXPECT_EQ(origin(static_cast<float>(wide_output)), course::NanOrigin::kOutput);
    const std::pair<std::uint32_t, course::NanOrigin> patterns[] = {
        {0xFFFEFFFE, course::NanOrigin::kSharedMemory}, {0xFFFDFFFD, course::NanOrigin::kDeviceMemory}};
    for (const auto& [bits, expected] : patterns) {
        const auto value = std::bit_cast<float>(bits);
        const auto wide = std::bit_cast<double>(std::uint64_t{bits} << 32 | bits);
        EXPECT_EQ(origin(value), expected);
        EXPECT_EQ(origin(static_cast<double>(value)), expected);
        EXPECT_EQ(origin(wide), expected);
        EXPECT_EQ(origin(static_cast<float>(wide)), expected);
        EXPECT_EQ(origin(std::bit_cast<float>(bits << 16)), expected);  // a bfloat16, widened
    }
    EXPECT_EQ(origin(std::numeric_limits<float>::quiet_NaN()), course::NanOrigin::kUnknown);
    EXPECT_EQ(origin(-std::numeric_limits<double>::quiet_NaN()), course::NanOrigin::kUnknown);
    EXPECT_EQ(origin(std::numeric_limits<float>::infinity()), course::NanOrigin::kUnknown);
    EXPECT_EQ(origin(1.0f), course::NanOrigin::kUnknown);
    EXPECT_EQ(origin(std::uint16_t{0xFFFE}), course::NanOrigin::kUnknown);
}

// Counters that were never cleared start at the contents of fresh shared memory.
TEST(Verify, CountsFromUnwrittenMemoryAreTold) {
    const std::vector<std::uint64_t> got = {0xFFFEFFFE, 0xFFFEFFFE + 7, 0xFFFDFFFD, 12, 0x1FFFEFFFE};
    const course::VerifyResult result =
        course::verify_exact(got, std::vector<std::uint64_t>{0, 7, 0, 13, 14});
    EXPECT_EQ(result.differing, 5u);
    EXPECT_EQ(result.from_shared_memory, 2u);
    EXPECT_EQ(result.from_device_memory, 1u);
    EXPECT_EQ(course::verify_exact(std::vector<int>{-65538}, std::vector<int>{1}).from_shared_memory, 1u);
    EXPECT_NE(result.message().find("2 of them computed from shared memory that no thread had written"),
              std::string::npos)
        << result.message();
}

// Only unwritten values count, not NaN that a kernel has computed, and not -1 where -1 is right.
TEST(Verify, UntouchedValuesAreCounted) {
    std::vector<float> got = {1, 2, std::numeric_limits<float>::quiet_NaN(), 0, 0};
    std::memset(&got[3], 0xff, 2 * sizeof(float));
    const VerifyResult result = verify(got, std::vector<double>{1, 1, 1, kNan, 1});
    EXPECT_EQ(result.differing, 3u);
    EXPECT_EQ(result.untouched, 1u);
    const VerifyResult integers =
        course::verify_exact(std::vector<std::int8_t>{-1, -1, 3}, std::vector<std::int8_t>{-1, 2, 4});
    EXPECT_EQ(integers.differing, 2u);
    EXPECT_EQ(integers.untouched, 1u);
    std::vector<float> long_result(600'000);
    std::memset(long_result.data(), 0xff, long_result.size() * sizeof(float));
    EXPECT_EQ(verify(long_result, std::vector<double>(long_result.size())).untouched, long_result.size());
    EXPECT_EQ(verify(std::vector<float>{2}, std::vector<double>{1}).message().find("not written"),
              std::string::npos);
}

TEST_F(GuardedBufferTest, SpoilForgetsTheLastResult) {
    GuardedBuffer<float> output(8);
    course::testing::fill(output.span(), 1, -1, 9);
    output.spoil();
    EXPECT_EQ(output.damage(), "");
    for (const float value : output.to_host())
        EXPECT_TRUE(std::isnan(value));
}

TEST_F(GuardedBufferTest, WritePastTheEndIsFound) {
    GuardedBuffer<float> output(1000);
    course::testing::fill(output.span(), 1, 0, 1001);
    EXPECT_NE(output.damage().find("after the output were overwritten, the first at byte +0 from its end"),
              std::string::npos)
        << output.damage();
}

TEST_F(GuardedBufferTest, WriteBeforeTheBeginningIsFound) {
    GuardedBuffer<float> output(1000);
    course::testing::fill(output.span(), 1, -1, 1);
    EXPECT_NE(
        output.damage().find("before the output were overwritten, the first at byte -4 from its beginning"),
        std::string::npos)
        << output.damage();
}

TEST(Verify, DamageFailsVerification) {
    VerifyResult result;
    EXPECT_TRUE(result.ok());
    result.damage = "4 bytes after the output were overwritten";
    EXPECT_FALSE(result.ok());
    result.compared = 3;
    EXPECT_EQ(result.message(),
              "4 bytes after the output were overwritten\n  3 values agree, largest error 0")
        << "what is wrong comes first";
    result.differing = 1;
    EXPECT_TRUE(result.message().starts_with("1 of 3 values differs")) << result.message();
    EXPECT_TRUE(result.message().ends_with(result.damage)) << result.message();
}

TEST_F(GuardedBufferTest, ACopyOfAGuardComesFromOutside) {
    const auto differing = [](auto got) {
        return course::verify_exact(std::vector{got}, std::vector{decltype(got){7}});
    };
    EXPECT_EQ(differing(std::uint32_t{0xA5A5A5A5}).from_outside, 1u);
    EXPECT_EQ(differing(static_cast<std::int32_t>(0xA5A5A5A5)).from_outside, 1u);
    EXPECT_EQ(differing(std::uint64_t{0xA5A5A5A5A5A5A5A5}).from_outside, 1u);
    EXPECT_EQ(differing(std::uint32_t{0xA5A5A5A6}).from_outside, 0u);
    EXPECT_NE(differing(std::uint32_t{0xA5A5A5A5}).message().find("is an index out of range?"),
              std::string::npos);
}

// What a kernel adds up that reads the elements before and behind an array of zeros.
template <class T>
void expect_guards_in_every_sum() {
    const std::vector<T> zeros(3, T{});
    GuardedBuffer<T> input(3, 1);
    input.copy_from(zeros);
    std::vector<T> around(5);
    CUDA_CHECK(cudaMemcpy(around.data(), input.data() - 1, 5 * sizeof(T), cudaMemcpyDeviceToHost));
    for (const int outside : {0, 4}) {
        float sum = 0;
        for (const int i : {outside, 1, 2, 3})
            sum += static_cast<float>(around[i]);
        EXPECT_TRUE(std::isnan(sum)) << outside;
        if (sizeof(T) != 2) {  // others are converted by instructions or in software
            EXPECT_EQ(course::origin_of_nan(&sum, sizeof sum), course::NanOrigin::kOutside) << outside;
        }
    }
    EXPECT_EQ(input.damage(), "");
}

TEST_F(GuardedBufferTest, NoSumHidesAGuard) {
    expect_guards_in_every_sum<float>();
    expect_guards_in_every_sum<double>();
    expect_guards_in_every_sum<__half>();
    expect_guards_in_every_sum<__nv_bfloat16>();
}

// A kernel that adds 1 to too many elements, in place: a quiet NaN would stay as it is.
TEST_F(GuardedBufferTest, ASumOfAGuardDamagesIt) {
    GuardedBuffer<float> buffer(4);
    float guard = 0;
    CUDA_CHECK(cudaMemcpy(&guard, buffer.data() + 4, sizeof guard, cudaMemcpyDeviceToHost));
    guard += 1;
    CUDA_CHECK(cudaMemcpy(buffer.data() + 4, &guard, sizeof guard, cudaMemcpyHostToDevice));
    EXPECT_NE(buffer.damage(), "");
}

TEST_F(GuardedBufferTest, CanBeMisalignedOnPurpose) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(GuardedBuffer<float>(4).data()) % 256, 0u);
    GuardedBuffer<float> output(4, 3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(output.data()) % 256, 12u);
    course::testing::fill(output.span(), 1, 0, 4);
    EXPECT_EQ(output.damage(), "");
    course::testing::fill(output.span(), 1, -1, 1);
    EXPECT_NE(output.damage(), "");
}

TEST_F(GuardedBufferTest, MayBeEmpty) {
    GuardedBuffer<float> output(0);
    EXPECT_TRUE(output.to_host().empty());
    course::testing::fill(output.span(), 1, 0, 1);
    EXPECT_NE(output.damage(), "");
}

using course::GuardedMatrix;
using GuardedMatrixTest = course::DeviceTest;

TEST_F(GuardedMatrixTest, GivesBackWhatItWasGiven) {
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    GuardedMatrix<float> matrix(values, 2, 3, 2, 1);
    EXPECT_EQ(matrix.packed(), values);
    EXPECT_EQ(matrix.damage(), "");
    EXPECT_EQ(matrix.view().leading_dimension(), 5U);
    EXPECT_TRUE(GuardedMatrix<float>(0, 3, 2).packed().empty());
}

TEST_F(GuardedMatrixTest, UntouchedElementsAreNan) {
    const GuardedMatrix<float> output(2, 2, 1);
    for (const float value : output.packed())
        EXPECT_TRUE(std::isnan(value));
}

TEST_F(GuardedMatrixTest, WriteBetweenRowsOrBehindThemIsFound) {
    GuardedMatrix<float> output(2, 2, 1);
    const float value = 1;
    const auto write = [&](std::size_t place) {
        CUDA_CHECK(cudaMemcpy(output.view().data() + place, &value, sizeof(value), cudaMemcpyHostToDevice));
    };
    write(3);
    EXPECT_EQ(output.damage(), "");
    write(2);
    EXPECT_EQ(output.damage(), "1 elements written between rows");
    output.spoil();
    EXPECT_EQ(output.damage(), "");
    write(5);
    EXPECT_NE(output.damage(), "");
}

TEST_F(GuardedMatrixTest, RefusesAnotherNumberOfElements) {
    EXPECT_THROW(GuardedMatrix<float>(std::vector<float>(5), 2, 3), std::invalid_argument);
}

TEST_F(GuardedMatrixTest, NoticesAChangeOfItsInputAndBetweenTheRows) {
    const std::vector<float> values(6, 1.0f);
    for (const std::size_t at : {0, 3, 9}) {
        GuardedMatrix<float> matrix(values, 2, 3, course::MatrixLayout{.misaligned_by = 1, .padding = 4});
        EXPECT_TRUE(matrix.unchanged());
        const float other = 2;
        CUDA_CHECK(cudaMemcpy(matrix.view().data() + at, &other, sizeof(other), cudaMemcpyHostToDevice));
        EXPECT_FALSE(matrix.unchanged()) << "element " << at;
    }
}

TEST(RelativeError, KnownValues) {
    const std::vector<double> exact = {3, 4};
    const course::RelativeError error = course::relative_error(exact, std::vector<double>{3, 5});
    EXPECT_DOUBLE_EQ(error.root_mean_square, 0.2);
    EXPECT_DOUBLE_EQ(error.largest, 1 / std::sqrt(12.5));
}

TEST(RelativeError, RefusesResultsOfAnotherLength) {
    EXPECT_THROW(course::relative_error(std::vector<double>{1, 2}, std::vector<double>{1}),
                 std::invalid_argument);
}

}  // namespace

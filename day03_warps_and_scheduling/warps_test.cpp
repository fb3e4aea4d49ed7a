// Every version against the CPU, and the count of resident blocks against the runtime's.
#include "warps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;

constexpr std::uint64_t kSeed = 3;

std::vector<float> points_of(std::size_t n, DataPattern pattern = DataPattern::kSignedUniform) {
    return course::make_data<float>(n, pattern, kSeed);
}
std::vector<float> some_coefficients() {
    return course::make_data<float>(day03::kCoefficients, DataPattern::kSignedUniform, kSeed + 1);
}
std::vector<int> random_terms(std::size_t n) {
    course::Random random(kSeed);
    std::vector<int> terms(n);
    for (int& count : terms)
        count = static_cast<int>(random.integer(0, day03::kCoefficients));
    return terms;
}

class VersionTest : public course::DeviceTestWithParam<const day03::Divergence*> {
  protected:
    course::VerifyResult evaluate(const std::vector<float>& x, const std::vector<int>& terms) const {
        const std::vector<float> coefficients = some_coefficients();
        const DeviceBuffer<float> x_device{std::span(x)};
        const DeviceBuffer<float> coefficients_device{std::span(coefficients)};
        const DeviceBuffer<int> terms_device{std::span(terms)};
        const std::vector<int> order = day03::longest_first(terms);
        const DeviceBuffer<int> order_device{std::span(order)};
        GuardedBuffer<float> y(x.size());
        GetParam()->launcher({x_device.span(), terms_device.span(), order_device.span()},
                             coefficients_device.span(), y.span(), nullptr);
        const day03::Expected expected = day03::evaluate_on_cpu(GetParam()->rule, x, terms, coefficients);
        course::VerifyResult result =
            course::verify(y.to_host(), expected.y, {.terms = day03::kCoefficients}, expected.magnitude);
        result.damage = y.damage();
        return result;
    }
};

INSTANTIATE_TEST_SUITE_P(DayThree, VersionTest, course::each_of(day03::versions()), course::VersionName());

// Around a warp, half a block and a block; a large prime.
TEST_P(VersionTest, AnyNumberOfPoints) {
    for (const std::size_t n : {0, 1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 511, 100003}) {
        const course::VerifyResult result = evaluate(points_of(n), random_terms(n));
        EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
    }
}

TEST_P(VersionTest, EqualPointsAndNans) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kWithNan}) {
        const course::VerifyResult result = evaluate(points_of(1003, pattern), random_terms(1003));
        EXPECT_TRUE(result.ok()) << course::name(pattern) << ": " << result.message();
    }
}

TEST_P(VersionTest, LoopsOfNoAndOfAllSteps) {
    for (const int terms : {0, 1, 256}) {
        const course::VerifyResult result = evaluate(points_of(300), std::vector<int>(300, terms));
        EXPECT_TRUE(result.ok()) << terms << " terms: " << result.message();
    }
}

TEST_P(VersionTest, RunsOnTheGivenStreamOrNotAtAll) {
    const std::vector<int> numbers = {0, 1, 2};
    const DeviceBuffer<float> x(3);
    const DeviceBuffer<int> list{std::span(numbers)};
    const DeviceBuffer<float> coefficients(day03::kCoefficients);
    DeviceBuffer<float> y(3);
    const day03::Points points = {x.span(), list.span(), list.span()};
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(points, coefficients.span(), y.span(), stream); });
    EXPECT_EQ(work.nodes(), 1U) << "launches on the stream that was given: expected 1, got " << work.nodes();
    const course::CapturedWork nothing(
        [&](cudaStream_t stream) { GetParam()->launcher({}, coefficients.span(), {}, stream); });
    EXPECT_EQ(nothing.nodes(), 0U) << "no points: no launch";
}

// 2^31 bytes and a few: looked at where the first points, the middle ones and the last ones are.
TEST_P(VersionTest, MoreBytesThan31BitsCount) {
    const std::size_t n = (std::size_t{1} << 29) + 1003;
    if (const std::string reason = course::why_not_so_large(4 * n * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    constexpr std::size_t kWindow = 1003;
    const std::size_t places[] = {0, std::size_t{1} << 28, n - kWindow};  // even: odd points stay odd
    const std::vector<float> x = points_of(kWindow);
    const std::vector<int> terms = random_terms(kWindow);
    const std::vector<float> coefficients = some_coefficients();
    DeviceBuffer<float> x_device(n);
    DeviceBuffer<int> terms_device(n);
    CUDA_CHECK(cudaMemset(x_device.data(), 0, x_device.bytes()));
    CUDA_CHECK(cudaMemset(terms_device.data(), 0, terms_device.bytes()));
    for (const std::size_t place : places) {
        CUDA_CHECK(
            cudaMemcpy(x_device.data() + place, x.data(), kWindow * sizeof(float), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(terms_device.data() + place, terms.data(), kWindow * sizeof(int),
                              cudaMemcpyHostToDevice));
    }
    std::vector<int> order(GetParam()->name == "sorted_loops" ? n : 0);
    std::iota(order.rbegin(), order.rend(), 0);
    const DeviceBuffer<int> order_device{std::span<const int>(order)};
    const DeviceBuffer<float> coefficients_device{std::span(coefficients)};
    GuardedBuffer<float> y(n);
    GetParam()->launcher({x_device.span(), terms_device.span(), order_device.span()},
                         coefficients_device.span(), y.span(), nullptr);
    const day03::Expected expected = day03::evaluate_on_cpu(GetParam()->rule, x, terms, coefficients);
    for (const std::size_t place : places) {
        std::vector<float> got(kWindow);
        CUDA_CHECK(
            cudaMemcpy(got.data(), y.span().data() + place, kWindow * sizeof(float), cudaMemcpyDeviceToHost));
        const course::VerifyResult result =
            course::verify(got, expected.y, {.terms = day03::kCoefficients}, expected.magnitude);
        EXPECT_TRUE(result.ok()) << "from point " << place << ": " << result.message();
    }
    EXPECT_EQ(y.damage(), "");
}

TEST_P(VersionTest, RefusesWhatDoesNotFitTogether) {
    DeviceBuffer<float> x(8);
    DeviceBuffer<float> y(8);
    DeviceBuffer<int> list(8);
    DeviceBuffer<int> other_list(8);
    DeviceBuffer<float> coefficients(day03::kCoefficients);
    const auto refused = [&](const day03::Points& points, std::size_t count, course::DeviceSpan<float> out) {
        return refusal(
            [&] { GetParam()->launcher(points, coefficients.span().subspan(0, count), out, nullptr); });
    };
    const day03::Points eight = {x.span(), list.span(), other_list.span()};
    EXPECT_EQ(refused(eight, 255, y.span()), "warps: there are 255 coefficients; expected 256");
    EXPECT_EQ(refused(eight, 256, y.span().subspan(0, 7)),
              "warps: x and y have 8 and 7 elements; expected the same number");
    for (void* input :
         std::initializer_list<void*>{x.data(), list.data(), other_list.data(), coefficients.data()}) {
        const auto span = course::DeviceSpan<float>::from_device_pointer(static_cast<float*>(input), 8);
        EXPECT_EQ(refused(eight, 256, span), "warps: y overlaps an input; expected memory of its own");
    }
    // Nothing is launched, so the addresses need not exist.
    const std::size_t many = (std::size_t{1} << 30) + 1;
    const auto much = [many](auto* first) {
        return course::DeviceSpan<std::remove_pointer_t<decltype(first)>>::from_device_pointer(first, many);
    };
    EXPECT_EQ(refused({much(x.data()), much(list.data()), much(list.data())}, 256, much(y.data())),
              "warps: there are 1073741825 points; expected at most 1073741824");
    if (GetParam()->rule == day03::Rule::kOwnTerms) {
        EXPECT_EQ(refused({x.span(), list.span().subspan(0, 7), list.span()}, 256, y.span()),
                  "warps: x and terms have 8 and 7 elements; expected the same number");
    }
    if (GetParam()->name == "sorted_loops") {
        EXPECT_EQ(refused({x.span(), list.span(), list.span().subspan(0, 7)}, 256, y.span()),
                  "warps: x and order have 8 and 7 elements; expected the same number");
    }
}

TEST(Reference, ReversesTheCoefficientsOfOddPoints) {
    std::vector<float> coefficients(day03::kCoefficients);
    coefficients[0] = 3;    // of x^255
    coefficients[255] = 5;  // of x^0
    const std::vector<float> x = {0, 0, 1};
    const std::vector<int> terms = {0, 1, 256};
    using V = std::vector<double>;
    const auto y = [&](day03::Rule rule) { return day03::evaluate_on_cpu(rule, x, terms, coefficients).y; };
    EXPECT_EQ(y(day03::Rule::kAllTerms), (V{5, 5, 8}));
    EXPECT_EQ(y(day03::Rule::kOddReversed), (V{5, 3, 8}));
    EXPECT_EQ(y(day03::Rule::kOwnTerms), (V{0, 3, 8}));
}

TEST(Reference, OrdersPointsFromTheLongestLoopToTheShortest) {
    EXPECT_EQ(day03::longest_first(std::vector{3, 256, 0, 3}), (std::vector{1, 0, 3, 2}));
    EXPECT_TRUE(day03::longest_first({}).empty());
}

// --- Chains --------------------------------------------------------------------------------------

class ChainsTest : public course::DeviceTestWithParam<const day03::Chains*> {
  protected:
    int chains() const { return GetParam()->chains; }
};

INSTANTIATE_TEST_SUITE_P(DayThree, ChainsTest, course::each_of(day03::chains_versions()),
                         course::VersionName());

TEST_P(ChainsTest, EveryThreadTakesAllItsSteps) {
    for (const int warps : {1, 3, 32, 64}) {
        for (const int multiply_adds : {0, 8, 200}) {
            GuardedBuffer<float> out(day03::chain_threads(warps));
            if (warps == 64 && course::multiprocessor_limits().warps < 64) continue;
            GetParam()->launcher({warps, multiply_adds}, out.span(), nullptr);
            std::vector<double> expected;
            for (std::size_t t = 0; t < out.size(); ++t)
                expected.push_back(day03::chains_on_cpu(chains(), multiply_adds, t));
            const course::VerifyResult result = course::verify(out.to_host(), expected, {.factor = 0});
            EXPECT_TRUE(result.ok()) << warps << (warps == 1 ? " warp per SM, " : " warps per SM, ")
                                     << multiply_adds << " multiply-adds per thread: " << result.message();
            EXPECT_EQ(out.damage(), "");
        }
    }
}

TEST_P(ChainsTest, RefusesOtherShapes) {
    DeviceBuffer<float> out(day03::chain_threads(4));
    const auto refused = [&](const day03::ChainsProblem& problem) {
        return refusal([&] { GetParam()->launcher(problem, out.span(), nullptr); });
    };
    for (const int warps : {0, 33, 65})
        EXPECT_EQ(refused({warps, 8}),
                  "chains: warps_per_sm is " + std::to_string(warps) + "; expected 1 to 32, or 64");
    EXPECT_EQ(refused({4, 12}), "chains: multiply_adds is 12; expected a multiple of 8 that is not negative");
    EXPECT_EQ(refused({4, -8}), "chains: multiply_adds is -8; expected a multiple of 8 that is not negative");
    EXPECT_NE(refused({2, 8}).find("one for each thread"), std::string::npos);
}

// --- Occupancy -----------------------------------------------------------------------------------

class Occupancy : public course::DeviceTest {};

TEST_F(Occupancy, OfThisDaysKernelsIsWhatTheRuntimeSays) {
    for (const day03::Residency& row : day03::residencies()) {
        EXPECT_EQ(row.by_hand, row.by_runtime)
            << row.kernel << ", " << row.block.threads << " threads, " << row.block.registers
            << " registers, " << row.block.shared_bytes << " bytes";
        EXPECT_GT(row.by_runtime, 0) << row.kernel;
    }
}

// An H100 and a T4, with the resource that decides in each case.
TEST(OccupancyByHand, TheScarcestResourceDecides) {
    const course::MultiprocessorLimits h100 = {.warps = 64,
                                               .blocks = 32,
                                               .registers = 65536,
                                               .shared_bytes = 228 << 10,
                                               .shared_bytes_of_block = 227 << 10,
                                               .reserved_shared_bytes = 1024};
    const course::MultiprocessorLimits t4 = {.warps = 32,
                                             .blocks = 16,
                                             .registers = 65536,
                                             .shared_bytes = 64 << 10,
                                             .shared_bytes_of_block = 64 << 10,
                                             .shared_portion = 256};
    using day03::resident_blocks;
    EXPECT_EQ(resident_blocks({.threads = 256}, h100), 8) << "warps";
    EXPECT_EQ(resident_blocks({.threads = 225}, h100), 8) << "a whole warp for one thread";
    EXPECT_EQ(resident_blocks({.threads = 768}, h100), 2) << "warps: 16 places stay empty";
    EXPECT_EQ(resident_blocks({.threads = 32}, h100), 32) << "blocks";
    EXPECT_EQ(resident_blocks({.threads = 32}, t4), 16) << "blocks";
    EXPECT_EQ(resident_blocks({.threads = 256, .registers = 64}, h100), 4) << "registers";
    EXPECT_EQ(resident_blocks({.threads = 128, .registers = 72}, h100), 7) << "registers";
    EXPECT_EQ(resident_blocks({.threads = 128, .registers = 73}, h100), 6) << "registers, in portions";
    EXPECT_EQ(resident_blocks({.threads = 32, .registers = 136}, h100), 12) << "registers of a partition";
    EXPECT_EQ(resident_blocks({.threads = 128, .shared_bytes = 48 << 10}, h100), 4) << "shared memory";
    EXPECT_EQ(resident_blocks({.threads = 128, .shared_bytes = 227 << 10}, h100), 1) << "all of it";
    EXPECT_EQ(resident_blocks({.threads = 128, .shared_bytes = 57 << 10}, h100), 3) << "1 KB is reserved";
    EXPECT_EQ(resident_blocks({.threads = 32, .shared_bytes = 13107}, t4), 4) << "shared memory, in portions";
}

TEST(OccupancyByHand, AgreesWithTheCoursesOwn) {
    const course::MultiprocessorLimits sm = {.warps = 48,
                                             .blocks = 16,
                                             .registers = 65536,
                                             .shared_bytes = 100 << 10,
                                             .shared_bytes_of_block = 99 << 10,
                                             .reserved_shared_bytes = 1024};
    for (int threads = 1; threads <= 1024; threads += 31) {
        for (const int registers : {0, 16, 33, 64, 100, 168, 255}) {
            for (const std::size_t shared : {0, 1, 1000, 10000, 13604, 50000, 99 << 10}) {
                const course::BlockNeeds block = {threads, registers, shared};
                ASSERT_EQ(day03::resident_blocks(block, sm), course::occupancy(block, sm).blocks)
                    << threads << " threads, " << registers << " registers, " << shared << " bytes";
            }
        }
    }
}

}  // namespace

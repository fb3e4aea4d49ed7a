// Every step against the CPU in double: C = alpha A B + beta C on shapes around the tiles' edges.
#include "sgemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "common/test/matmul_test.hpp"
#include "scratch.hpp"
#include "test_problem.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::GuardedBuffer;
using gemm::Shape;
using gemm::test::integers;
using gemm::test::kNan;
using gemm::test::multiply_twice;
using gemm::test::Problem;

constexpr std::uint64_t kSeed = 11;

class StepTest : public course::DeviceTestWithParam<const gemm::Step*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const gemm::Step*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    course::VerifyResult multiply(const Problem& problem, const std::vector<float>& a,
                                  const std::vector<float>& b, const std::vector<float>& c,
                                  const course::Bound& bound) const {
        return multiply_twice([&](const gemm::Sgemm& gemm) { GetParam()->launcher.launch(gemm, nullptr); },
                              GetParam()->launcher.scratch(problem.shape), problem, a, b, c, bound);
    }

    // One problem that fails says enough: after it, nothing more is tried.
    void expect_right(const Problem& problem, DataPattern pattern) const {
        if (HasFailure()) return;
        const auto [m, n, k] = problem.shape;
        const auto a = course::make_data<float>(m * k, pattern, kSeed);
        const auto b = course::make_data<float>(k * n, pattern, kSeed + 1);
        const auto c = problem.nan_in_c ? std::vector<float>(m * n, kNan)
                                        : course::make_data<float>(m * n, pattern, kSeed + 2);
        const course::VerifyResult result = multiply(problem, a, b, c, {.terms = k + 1});
        EXPECT_TRUE(result.ok()) << text_of(problem) << ", " << course::name(pattern) << ": "
                                 << result.message();
    }

    // Small integers: every product and every sum is exact in single precision, so only equal is
    // right.
    void expect_exact(const Problem& problem) const {
        if (HasFailure()) return;
        const auto [m, n, k] = problem.shape;
        const auto c = problem.nan_in_c ? std::vector<float>(m * n, kNan) : integers(m * n, kSeed + 2);
        const course::VerifyResult result =
            multiply(problem, integers(m * k, kSeed), integers(k * n, kSeed + 1), c, {.factor = 0});
        EXPECT_TRUE(result.ok()) << text_of(problem) << ", integers: " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(Ladder, StepTest, course::each_of(gemm::steps()), course::VersionName());
INSTANTIATE_TEST_SUITE_P(Beyond, StepTest, course::each_of(gemm::beyond()), course::VersionName());
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StepTest);

constexpr std::size_t kExtents[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257};

// Each extent in each direction, the other two changing with it through the list.
TEST_P(StepTest, EveryExtentInEachDirection) {
    const std::size_t count = std::size(kExtents);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t other = kExtents[(5 * i + 3) % count];
        const std::size_t small = kExtents[i % 4];
        expect_exact({.shape = {kExtents[i], other, small}, .nan_in_c = true});
        expect_exact({.shape = {small, kExtents[i], other}, .nan_in_c = true});
        expect_exact({.shape = {other, small, kExtents[i]}, .nan_in_c = true});
    }
}

// A of more elements than 32 bits count, and the blocks of its last rows alone. Steps 11 and beyond
// have no block of their own for a tile.
TEST_P(StepTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    if (GetParam()->name >= std::string("11")) GTEST_SKIP() << "its blocks share tiles";
    constexpr std::size_t kRows = std::size_t{1} << 20;
    constexpr std::size_t kDepth = 4100;  // of whole float4s: steps 6 to 10 have other kernels for other rows
    constexpr std::size_t kCols = 4;
    const std::vector<double> end = {1};
    const course::LargeArray<float> a(kRows * kDepth, 2048 * kDepth, end);
    const std::vector<float> last_row = integers(kDepth, kSeed);
    std::ranges::copy(last_row, &a[(kRows - 1) * kDepth]);
    const std::vector<float> b = integers(kDepth * kCols, kSeed + 1);
    const DeviceBuffer<float> b_device{std::span(b)};
    DeviceBuffer<float> c(kRows * kCols);
    gemm::ScratchMemory scratch(GetParam()->launcher.scratch({kRows, kCols, kDepth}));
    course::run_few_blocks(
        [&] {
            GetParam()->launcher.launch({.a = DeviceMatrix<const float>(a.span(), kRows, kDepth),
                                         .b = b_device.matrix(kDepth, kCols),
                                         .c = c.matrix(kRows, kCols),
                                         .scratch = scratch.view()},
                                        nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    std::vector<float> got(kCols);
    CUDA_CHECK(cudaMemcpy(got.data(), c.data() + (kRows - 1) * kCols, kCols * sizeof(float),
                          cudaMemcpyDeviceToHost));
    std::vector<double> expected(kCols);
    std::vector<double> magnitude(kCols);
    gemm::multiply_on_cpu({1, kCols, kDepth}, 1, last_row, b, 0, expected, magnitude);
    const course::VerifyResult result = course::verify(got, expected, {.factor = 0});
    EXPECT_TRUE(result.ok()) << course::large_element((kRows - 1) * kDepth, kRows * kDepth) << "\n"
                             << result.message();
}

TEST_P(StepTest, AlphaAndBeta) {
    const auto check = [&](const Shape& shape, float alpha, float beta) {
        expect_exact({.shape = shape, .alpha = alpha, .beta = beta, .nan_in_c = beta == 0});
        expect_exact({.shape = shape, .alpha = alpha, .beta = beta, .padding = 2});
    };
    for (const float alpha : {0.0f, 1.0f, -0.5f}) {
        for (const float beta : {0.0f, 1.0f, -0.5f})
            check({33, 65, 31}, alpha, beta);
    }
    // Stores of whole packs, alone and beside an edge.
    for (const Shape& shape : {Shape{128, 128, 16}, Shape{129, 132, 36}}) {
        check(shape, -0.5f, 0);
        check(shape, -0.5f, 1);
        check(shape, 0, -0.5f);
        check(shape, 1, -0.5f);
    }
}

TEST_P(StepTest, DataPatterns) {
    for (const Shape shape : {Shape{64, 96, 65}, Shape{131, 7, 67}}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kAllEqual,
              DataPattern::kHugeNextToTiny, DataPattern::kWithNan, DataPattern::kWithInf})
            expect_right({.shape = shape, .alpha = -0.5f, .beta = 1}, pattern);
    }
}

// Rows that begin everywhere but at a multiple of 16 bytes, and padding that keeps them aligned.
TEST_P(StepTest, PaddedAndMisalignedRows) {
    for (const std::size_t padding : {0, 1, 2, 4}) {
        for (const std::size_t misaligned_by : {0, 1, 2}) {
            // One of the two is enough to make packs impossible.
            if (padding % 4 != 0 && misaligned_by != 0) continue;
            const float beta = misaligned_by == 0 ? 0.0f : -0.5f;
            expect_exact(
                {.shape = {130, 66, 37}, .beta = beta, .padding = padding, .misaligned_by = misaligned_by});
            expect_exact(
                {.shape = {36, 132, 68}, .beta = beta, .padding = padding, .misaligned_by = misaligned_by});
        }
    }
}

TEST_P(StepTest, NothingToAddOrNothingToWrite) {
    expect_exact({.shape = {33, 130, 0}, .beta = -0.5f});
    expect_exact({.shape = {33, 130, 0}, .beta = 0, .nan_in_c = true});
    for (const Shape shape : {Shape{0, 5, 3}, Shape{5, 0, 3}, Shape{0, 0, 0}})
        expect_exact({.shape = shape});
}

// Nothing times infinity is nothing here: there are no products.
TEST_P(StepTest, NothingToAddAndAlphaInfinite) {
    expect_exact({.shape = {33, 5, 0}, .alpha = std::numeric_limits<float>::infinity(), .beta = 1});
}

// alpha = 0: NaN in A and B must not reach C.
TEST_P(StepTest, AlphaZeroReadsNeitherOperand) {
    const Problem problem{.shape = {40, 33, 17}, .alpha = 0, .beta = 1};
    const auto [m, n, k] = problem.shape;
    const course::VerifyResult result =
        multiply(problem, std::vector<float>(m * k, kNan), std::vector<float>(k * n, kNan),
                 integers(m * n, kSeed), {.factor = 0});
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(StepTest, RandomShapes) {
    constexpr std::uint64_t kShapeSeed = 20261121;
    SCOPED_TRACE("course::Random seed " + std::to_string(kShapeSeed));
    course::Random random(kShapeSeed);
    for (int round = 0; round < 12; ++round) {
        const Shape shape{random.below(300), random.below(300), random.below(150)};
        expect_exact({.shape = shape,
                      .alpha = static_cast<float>(random.integer(-2, 2)),
                      .beta = static_cast<float>(random.integer(-2, 2)) * 0.5f,
                      .padding = random.below(5),
                      .misaligned_by = random.below(4)});
    }
}

// On the CPU a tile of 128 x 256 results costs the same for 3 x 5 of them: a shorter sum will do.
TEST_P(StepTest, ALongSum) {
    const std::size_t k = course::is_cpu_stand_in() ? 2000 : 20000;
    expect_right({.shape = {3, 5, k + 11}}, DataPattern::kSignedUniform);
    expect_exact({.shape = {5, 4, k + 4}, .beta = 1});
}

TEST_P(StepTest, RefusesWhatDoesNotFit) {
    course::expect_misfits_refused("sgemm", [](auto a, auto b, auto c) {
        gemm::ScratchMemory scratch(GetParam()->launcher.scratch({c.rows(), c.cols(), a.cols()}));
        GetParam()->launcher.launch({.a = a, .b = b, .c = c, .scratch = scratch.view()}, nullptr);
    });
}

TEST_P(StepTest, RefusesTooLittleScratch) {
    const Shape shape{130, 129, 20};
    const gemm::ScratchSize needed = GetParam()->launcher.scratch(shape);
    const DeviceBuffer<float> a(shape.m * shape.k);
    const DeviceBuffer<float> b(shape.k * shape.n);
    DeviceBuffer<float> c(shape.m * shape.n);
    const auto message_of = [&](const gemm::Scratch& scratch) -> std::string {
        try {
            GetParam()->launcher.launch({.a = a.matrix(shape.m, shape.k),
                                         .b = b.matrix(shape.k, shape.n),
                                         .c = c.matrix(shape.m, shape.n),
                                         .alpha = 0,
                                         .scratch = scratch},
                                        nullptr);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    const auto expected = [&](std::size_t partial, std::size_t tickets) {
        return "sgemm: the scratch memory has " + std::to_string(partial) + " partial sums and " +
               std::to_string(tickets) + " tickets; expected at least " + std::to_string(needed.partial) +
               " and " + std::to_string(needed.tickets);
    };
    if (needed.partial == 0) {
        EXPECT_EQ(message_of({}), "accepted");
        return;
    }
    gemm::ScratchMemory memory({needed.partial + 4, needed.tickets});
    const auto [partial, tickets] = memory.view();
    EXPECT_EQ(message_of({}), expected(0, 0));
    EXPECT_EQ(message_of({partial.subspan(0, needed.partial - 1), tickets}),
              expected(needed.partial - 1, needed.tickets));
    if (needed.tickets != 0) {
        EXPECT_EQ(message_of({partial, tickets.subspan(0, needed.tickets - 1)}),
                  expected(needed.partial + 4, needed.tickets - 1));
    }
    EXPECT_EQ(
        message_of({partial.subspan(1, needed.partial), tickets}),
        "sgemm: the scratch memory's partial sums do not begin at a multiple of 16 bytes; expected that "
        "they do");
    EXPECT_EQ(message_of({partial.subspan(4, needed.partial), tickets}), "accepted");
}

TEST(MultiplyOnCpu, AProductWorkedOutByHand) {
    const std::vector<float> a = {1, 2, 3, 4, 5, 6};     // 2 x 3
    const std::vector<float> b = {1, -2, 3, -4, 5, -6};  // 3 x 2
    std::vector<double> c = {10, 20, 30, 40};
    std::vector<double> magnitude(4);
    gemm::multiply_on_cpu({2, 2, 3}, 2, a, b, -0.5f, c, magnitude);
    EXPECT_EQ(c, (std::vector<double>{39, -66, 83, -148}));
    EXPECT_EQ(magnitude, (std::vector<double>{49, 66, 113, 148}));
    c.assign(4, kNan);
    gemm::multiply_on_cpu({2, 2, 3}, 1, a, b, 0, c, magnitude);
    EXPECT_EQ(c, (std::vector<double>{22, -28, 49, -64}));
}

TEST(MultiplyOnCpu, RefusesWrongLengths) {
    std::vector<double> four(4);
    EXPECT_THROW(
        gemm::multiply_on_cpu({2, 2, 3}, 1, std::vector<float>(5), std::vector<float>(6), 0, four, four),
        std::invalid_argument);
    EXPECT_THROW(
        gemm::multiply_on_cpu({2, 2, 3}, 1, std::vector<float>(6), std::vector<float>(7), 0, four, four),
        std::invalid_argument);
}

}  // namespace

// Products with few rows or few columns, divided in many ways.
#include "beyond/thin.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "test_problem.hpp"

namespace {

using course::DataPattern;
using gemm::Shape;
using gemm::test::integers;
using gemm::test::kNan;
using gemm::test::Problem;

constexpr std::uint64_t kSeed = 15;

class Thin : public course::DeviceTestWithParam<std::size_t> {  // the thin extent
  protected:
    static void expect_exact(const Problem& problem, unsigned blocks) {
        const auto [m, n, k] = problem.shape;
        const auto c = problem.beta == 0 ? std::vector<float>(m * n, kNan) : integers(m * n, kSeed);
        const course::VerifyResult result = gemm::test::multiply_twice(
            [&](const gemm::Sgemm& gemm) { gemm::launch_thin(blocks, gemm, nullptr); },
            gemm::thin_scratch(problem.shape, blocks), problem, integers(m * k, kSeed + 1),
            integers(k * n, kSeed + 2), c, {.factor = 0});
        EXPECT_TRUE(result.ok()) << text_of(problem) << ", blocks " << blocks << ": " << result.message();
    }

    // Once as few rows, once as few columns.
    static void expect_exact_both(std::size_t wide, std::size_t k, unsigned blocks, Problem problem = {}) {
        problem.shape = {GetParam(), wide, k};
        expect_exact(problem, blocks);
        problem.shape = {wide, GetParam(), k};
        expect_exact(problem, blocks);
    }
};

INSTANTIATE_TEST_SUITE_P(Ladder, Thin, testing::Values(1, 2, 7, 8, 9, 16));

TEST_P(Thin, AroundStripsAndChunks) {
    constexpr std::size_t kWide[] = {1, 31, 33, 127, 128, 129, 260};
    constexpr std::size_t kDepths[] = {1, 4, 63, 64, 65, 255, 256, 257};
    // Every second pair: each extent in four of them, whole strips with whole chunks among them.
    for (std::size_t i = 0; i < std::size(kWide); ++i) {
        for (std::size_t j = i % 2; j < std::size(kDepths); j += 2)
            expect_exact_both(kWide[i], kDepths[j], 1);
    }
}

TEST_P(Thin, ManyParts) {
    for (const unsigned blocks : {2u, 7u, 40u, 1000000u}) {
        expect_exact_both(130, 1031, blocks);
        expect_exact_both(36, 1540, blocks, {.alpha = -0.5f, .beta = 1, .padding = 4});
        expect_exact_both(3, 4003, blocks, {.beta = -0.5f});
    }
}

TEST_P(Thin, PaddedAndMisaligned) {
    for (const std::size_t padding : {0, 1, 4}) {
        for (const std::size_t misaligned_by : {0, 1, 2})
            expect_exact_both(132, 516, 5, {.beta = 1, .padding = padding, .misaligned_by = misaligned_by});
    }
}

TEST_P(Thin, DataPatterns) {
    for (const DataPattern pattern : {DataPattern::kSignedUniform, DataPattern::kHugeNextToTiny,
                                      DataPattern::kWithNan, DataPattern::kWithInf}) {
        for (const Shape shape : {Shape{GetParam(), 131, 517}, Shape{131, GetParam(), 517}}) {
            const Problem problem{.shape = shape, .alpha = -0.5f, .beta = 1};
            const auto [m, n, k] = shape;
            const course::VerifyResult result = gemm::test::multiply_twice(
                [](const gemm::Sgemm& gemm) { gemm::launch_thin(7, gemm, nullptr); },
                gemm::thin_scratch(shape, 7), problem, course::make_data<float>(m * k, pattern, kSeed),
                course::make_data<float>(k * n, pattern, kSeed + 1),
                course::make_data<float>(m * n, pattern, kSeed + 2), {.terms = k + 1});
            EXPECT_TRUE(result.ok()) << text_of(problem) << ", " << course::name(pattern) << ": "
                                     << result.message();
        }
    }
}

// alpha = 0: NaN in A and B must not reach C.
TEST_P(Thin, AlphaZeroReadsNeitherOperand) {
    const std::size_t m = GetParam(), n = 130, k = 300;
    const Problem problem{.shape = {m, n, k}, .alpha = 0, .beta = 1};
    const course::VerifyResult result = gemm::test::multiply_twice(
        [](const gemm::Sgemm& gemm) { gemm::launch_thin(7, gemm, nullptr); },
        gemm::thin_scratch(problem.shape, 7), problem, std::vector<float>(m * k, kNan),
        std::vector<float>(k * n, kNan), integers(m * n, kSeed), {.factor = 0});
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(Thin, NothingToAdd) {
    expect_exact_both(130, 0, 7);
    expect_exact_both(130, 0, 7, {.beta = -0.5f});
    expect_exact_both(0, 5, 7);
}

TEST(ThinProduct, RefusesWhatItCannotRun) {
    EXPECT_THROW(gemm::thin_scratch({17, 17, 1}, 1), std::invalid_argument);
    EXPECT_THROW(gemm::launch_thin(0, {}, nullptr), std::invalid_argument);
}

class ThinScratch : public course::DeviceTest {};

TEST_F(ThinScratch, TooLittleIsRefused) {
    const Problem problem{.shape = {1, 65, 640}};
    EXPECT_THROW(
        gemm::test::multiply_twice([&](const gemm::Sgemm& gemm) { gemm::launch_thin(4, gemm, nullptr); }, {},
                                   problem, integers(640, 1), integers(640 * 65, 2), integers(65, 3), {}),
        std::invalid_argument);
}

}  // namespace

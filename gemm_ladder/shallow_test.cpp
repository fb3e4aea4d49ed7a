// Products with a short K.
#include "beyond/shallow.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/test/device_test.hpp"
#include "test_problem.hpp"

namespace {

using course::DataPattern;
using gemm::Shape;
using gemm::test::integers;
using gemm::test::kNan;
using gemm::test::Problem;

constexpr std::uint64_t kSeed = 16;

void launch(const gemm::Sgemm& gemm) {
    gemm::launch_shallow(gemm, nullptr);
}

class Shallow : public course::DeviceTest {  // exact: small whole numbers
  protected:
    static void expect_exact(const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        const auto c = problem.beta == 0 ? std::vector<float>(m * n, kNan) : integers(m * n, kSeed);
        const course::VerifyResult result = gemm::test::multiply_twice(
            launch, {}, problem, integers(m * k, kSeed + 1), integers(k * n, kSeed + 2), c, {.factor = 0});
        EXPECT_TRUE(result.ok()) << text_of(problem) << ": " << result.message();
    }
};

TEST_F(Shallow, AroundTiles) {
    for (const std::size_t m : {1, 7, 63, 64, 65, 130}) {
        for (const std::size_t n : {1, 31, 33, 127, 128, 129, 258}) {
            for (const std::size_t k : {1, 2, 15, 16})
                expect_exact({.shape = {m, n, k}});
        }
    }
}

TEST_F(Shallow, PaddedAndMisaligned) {
    for (const std::size_t padding : {0, 1, 4}) {
        for (const std::size_t misaligned_by : {0, 1, 2}) {
            expect_exact({.shape = {67, 131, 10},
                          .alpha = -0.5f,
                          .beta = 1,
                          .padding = padding,
                          .misaligned_by = misaligned_by});
        }
    }
}

TEST_F(Shallow, DataPatterns) {
    for (const DataPattern pattern : {DataPattern::kSignedUniform, DataPattern::kHugeNextToTiny,
                                      DataPattern::kWithNan, DataPattern::kWithInf}) {
        const auto [m, n, k] = Shape{67, 131, 13};
        const Problem problem{.shape = {m, n, k}, .alpha = -0.5f, .beta = 1};
        const course::VerifyResult result =
            gemm::test::multiply_twice(launch, {}, problem, course::make_data<float>(m * k, pattern, kSeed),
                                       course::make_data<float>(k * n, pattern, kSeed + 1),
                                       course::make_data<float>(m * n, pattern, kSeed + 2), {.terms = k + 1});
        EXPECT_TRUE(result.ok()) << course::name(pattern) << ": " << result.message();
    }
}

TEST_F(Shallow, AlphaZeroReadsNeitherOperand) {
    const Problem problem{.shape = {65, 129, 9}, .alpha = 0, .beta = 1};
    const course::VerifyResult result = gemm::test::multiply_twice(
        launch, {}, problem, std::vector<float>(65 * 9, kNan), std::vector<float>(9 * 129, kNan),
        integers(65 * 129, kSeed), {.factor = 0});
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_F(Shallow, NothingToAdd) {
    expect_exact({.shape = {65, 129, 0}});
    expect_exact({.shape = {65, 129, 0}, .beta = -0.5f});
    expect_exact({.shape = {0, 5, 7}});
}

TEST_F(Shallow, RefusesALongerK) {
    const Problem problem{.shape = {2, 3, 17}};
    EXPECT_THROW(gemm::test::multiply_twice(launch, {}, problem, integers(2 * 17, 1), integers(17 * 3, 2),
                                            integers(6, 3), {}),
                 std::invalid_argument);
}

TEST_F(Shallow, IsForAShortK) {
    EXPECT_TRUE(gemm::is_worth_a_shallow_kernel({20000, 20000, 16}));
    EXPECT_FALSE(gemm::is_worth_a_shallow_kernel({20000, 20000, 17}));
}

}  // namespace

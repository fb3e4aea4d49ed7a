// One level of Strassen's method: the result, and its error beside the bound.
#include "beyond/strassen.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "beyond/beyond.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/verify.hpp"
#include "common/test/device_test.hpp"
#include "test_problem.hpp"

namespace {

using course::DataPattern;
using gemm::Shape;
using gemm::test::integers;
using gemm::test::kNan;
using gemm::test::Problem;

constexpr std::uint64_t kSeed = 23;

course::VerifyResult multiply(const Problem& problem, const std::vector<float>& a,
                              const std::vector<float>& b, const std::vector<float>& c,
                              const course::Bound& bound) {
    return gemm::test::multiply_twice([](const gemm::Sgemm& gemm) { gemm::strassen().launch(gemm, nullptr); },
                                      gemm::strassen().scratch(problem.shape), problem, a, b, c, bound);
}

class Strassen : public course::DeviceTest {
  protected:
    // Small whole numbers: sums of quarters, of products and of their sums are exact, too.
    static void expect_exact(const Problem& problem) {
        if (HasFailure()) return;
        const auto [m, n, k] = problem.shape;
        const auto c = problem.beta == 0 ? std::vector<float>(m * n, kNan) : integers(m * n, kSeed + 2);
        const course::VerifyResult result =
            multiply(problem, integers(m * k, kSeed), integers(k * n, kSeed + 1), c, {.factor = 0});
        EXPECT_TRUE(result.ok()) << text_of(problem) << ", seed " << kSeed << ": " << result.message();
    }
};

TEST_F(Strassen, HalvesAndWhatTheyLeave) {
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 64, 64}, Shape{64, 7, 64}, Shape{64, 64, 7},
                               Shape{2, 8, 8}, Shape{3, 15, 15}, Shape{64, 64, 64}, Shape{65, 71, 79},
                               Shape{130, 66, 37}, Shape{33, 132, 68}, Shape{150, 136, 200}})
        expect_exact({.shape = shape});
}

TEST_F(Strassen, AlphaAndBeta) {
    for (const Shape& shape : {Shape{64, 72, 80}, Shape{67, 75, 83}}) {
        for (const float alpha : {-0.5f, 0.0f}) {
            for (const float beta : {0.0f, 1.0f, -2.0f})
                expect_exact({.shape = shape, .alpha = alpha, .beta = beta});
        }
    }
}

// Then the dispatcher computes the whole product, which may share its sums among blocks.
TEST_F(Strassen, ScratchIsEnoughForAlphaZero) {
    bool any_shared = false;
    for (std::size_t n = 64; n <= 8192; n += 32) {
        SCOPED_TRACE(n);
        const gemm::ScratchSize own = gemm::strassen().scratch({n, n, n});
        const gemm::ScratchSize whole = gemm::dispatcher().scratch({n, n, n});
        EXPECT_GE(own.tickets, whole.tickets);
        EXPECT_GE(own.partial, whole.partial);
        any_shared = any_shared || whole.tickets > 0;
    }
    EXPECT_TRUE(any_shared);
}

TEST_F(Strassen, PaddedAndMisaligned) {
    for (const std::size_t padding : {1, 4}) {
        for (const std::size_t misaligned_by : {0, 1}) {
            expect_exact(
                {.shape = {67, 75, 83}, .beta = 1, .padding = padding, .misaligned_by = misaligned_by});
            expect_exact({.shape = {64, 72, 80}, .padding = padding, .misaligned_by = misaligned_by});
        }
    }
}

TEST_F(Strassen, NothingToAddOrNothingToWrite) {
    expect_exact({.shape = {64, 64, 0}, .beta = -0.5f});
    expect_exact({.shape = {0, 64, 64}});
    expect_exact({.shape = {64, 0, 64}});
}

// NaN or Inf in one element of A and of B: only that row and that column of C depend on them.
TEST_F(Strassen, NanAndInfStayWhereTheyBelong) {
    for (const float special : {kNan, std::numeric_limits<float>::infinity()}) {
        const Problem problem{.shape = {66, 72, 80}};
        std::vector<float> a = integers(66 * 80, kSeed);
        std::vector<float> b = integers(80 * 72, kSeed + 1);
        a[3 * 80 + 50] = special;
        b[10 * 72 + 70] = special;
        const course::VerifyResult result =
            multiply(problem, a, b, std::vector<float>(66 * 72, kNan), {.terms = 80});
        EXPECT_TRUE(result.ok()) << result.message();
    }
}

// The largest error of C = A B by strassen().
double error_of(const Shape& shape, const std::vector<float>& a, const std::vector<float>& b) {
    const auto [m, n, k] = shape;
    const course::VerifyResult result =
        multiply({.shape = shape}, a, b, std::vector<float>(m * n, kNan),
                 {.terms = k, .factor = 1e30});  // none is too large: only the largest counts here
    return result.max_error;
}

double most_of(const std::vector<float>& values) {
    double most = 0;
    for (const float value : values)
        most = std::max(most, std::abs(static_cast<double>(value)));
    return most;
}

// Beside the bound of a plain sum, too, which is 4.5 times smaller: one level costs two bits.
TEST_F(Strassen, TheErrorIsWithinItsBound) {
    for (const Shape& shape : {Shape{64, 64, 128}, Shape{66, 68, 513}}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kHugeNextToTiny}) {
            const auto a = course::make_data<float>(shape.m * shape.k, pattern, kSeed);
            const auto b = course::make_data<float>(shape.k * shape.n, pattern, kSeed + 1);
            const double error = error_of(shape, a, b);
            EXPECT_LE(error, gemm::strassen_error(shape.k, most_of(a), most_of(b))) << course::name(pattern);
        }
    }
}

// Where the rows of A differ in size, so do the rows of C, and those of a plain sum are accurate to
// their own size. Here they lose digits to the large ones: the bound is that of the matrix.
TEST_F(Strassen, SmallRowsLoseDigitsToLargeOnes) {
    const std::size_t n = 64;
    auto a = course::make_data<float>(n * n, DataPattern::kSignedUniform, kSeed);
    const auto b = course::make_data<float>(n * n, DataPattern::kSignedUniform, kSeed + 1);
    for (std::size_t i = n / 2 * n; i < n * n; ++i)
        a[i] *= 1e-6f;
    const std::vector<float> c(n * n, kNan);
    const Problem problem{.shape = {n, n, n}};
    const course::Bound of_sums{.terms = n};
    const auto dispatcher = course::find_version(gemm::beyond(), "14_dispatcher").launcher;
    EXPECT_TRUE(gemm::test::multiply_twice([&](const gemm::Sgemm& gemm) { dispatcher.launch(gemm, nullptr); },
                                           dispatcher.scratch(problem.shape), problem, a, b, c, of_sums)
                    .ok());
    EXPECT_FALSE(multiply(problem, a, b, c, of_sums).ok());
    EXPECT_LE(error_of(problem.shape, a, b), gemm::strassen_error(n, 1, 1));
}

TEST_F(Strassen, RefusesTooLittleScratch) {
    const Problem problem{.shape = {64, 64, 64}};
    EXPECT_THROW(gemm::test::multiply_twice(
                     [](const gemm::Sgemm& gemm) { gemm::strassen().launch(gemm, nullptr); }, {}, problem,
                     integers(64 * 64, 1), integers(64 * 64, 2), integers(64 * 64, 3), {}),
                 std::invalid_argument);
}

}  // namespace

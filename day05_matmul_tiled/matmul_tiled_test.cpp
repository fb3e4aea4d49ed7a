// Every version against the reference in double, on shapes around the edges of the tiles.
#include "matmul_tiled.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/require.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "common/test/matmul_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::GuardedMatrix;
using day05::Shape;

constexpr std::uint64_t kSeed = 5;

std::string text_of(Shape shape) {
    return "M x N x K = " + course::shape_text(shape.rows, shape.cols, shape.depth);
}

class VersionTest : public course::DeviceTestWithParam<const day05::Matmul*> {
  protected:
    // The rows are followed by elements that must be neither read nor written: `padding` of them in
    // A, more in B and C, so that each matrix has a leading dimension of its own.
    course::VerifyResult multiply(Shape shape, const std::vector<float>& a, const std::vector<float>& b,
                                  const course::Bound& bound, std::size_t padding = 0) const {
        const auto [rows, cols, depth] = shape;
        GuardedMatrix<float> a_device(a, rows, depth, padding);
        GuardedMatrix<float> b_device(b, depth, cols, padding == 0 ? 0 : padding + 1);
        GuardedMatrix<float> c_device(rows, cols, padding == 0 ? 0 : padding + 2);
        GetParam()->launcher(a_device.view(), b_device.view(), c_device.view(), nullptr);

        std::vector<double> product(rows * cols);
        std::vector<double> magnitude(rows * cols);
        day05::multiply_on_cpu(shape, a, b, product, magnitude);
        // verify() expects finite magnitudes. Where one is not finite, neither is the product.
        for (double& size : magnitude)
            size = std::isfinite(size) ? size : 0;
        course::VerifyResult result = course::verify(c_device.packed(), product, bound, magnitude, cols);
        result.damage = c_device.damage();
        return result;
    }

    void expect_right(Shape shape, DataPattern pattern, std::size_t padding = 0) const {
        const auto a = course::make_data<float>(shape.rows * shape.depth, pattern, kSeed);
        const auto b = course::make_data<float>(shape.depth * shape.cols, pattern, kSeed + 1);
        const course::Bound bound{.terms = std::max<std::size_t>(shape.depth, 1)};
        const course::VerifyResult result = multiply(shape, a, b, bound, padding);
        EXPECT_TRUE(result.ok()) << text_of(shape) << ", " << course::name(pattern) << ", padding " << padding
                                 << ": " << result.message();
    }

    // Small integers: every product and every sum is exact in single precision, so equal bits are
    // expected.
    void expect_exact(Shape shape, std::size_t padding = 0) const {
        const auto integers = [](std::size_t count, std::uint64_t seed) {
            course::Random random(seed);
            std::vector<float> values(count);
            for (float& value : values)
                value = static_cast<float>(random.integer(-8, 8));
            return values;
        };
        const course::VerifyResult result =
            multiply(shape, integers(shape.rows * shape.depth, kSeed),
                     integers(shape.depth * shape.cols, kSeed + 1), {.factor = 0}, padding);
        EXPECT_TRUE(result.ok()) << text_of(shape) << ", integers, padding " << padding << ": "
                                 << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(DayFive, VersionTest, course::each_of(day05::versions()), course::VersionName());

// Around a block of 16, a tile of 32 and a coarsened tile of 128, in each direction by itself.
TEST_P(VersionTest, EveryExtentAroundTheTiles) {
    for (const std::size_t extent : {1, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 0}) {
        expect_exact({extent, 7, 5});
        expect_exact({7, extent, 5});
        expect_exact({7, 5, extent});
    }
}

TEST_P(VersionTest, ShapesAndPatterns) {
    for (const Shape shape : {Shape{1, 1, 1}, Shape{32, 32, 32}, Shape{33, 31, 65}, Shape{64, 160, 96},
                              Shape{1, 257, 129}, Shape{131, 1, 67}}) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kAllEqual,
              DataPattern::kHugeNextToTiny, DataPattern::kWithNan, DataPattern::kWithInf}) {
            expect_right(shape, pattern);
        }
    }
}

TEST_P(VersionTest, PaddedRows) {
    for (const std::size_t padding : {1, 3, 32}) {
        expect_exact({33, 130, 37}, padding);
        expect_right({17, 40, 70}, DataPattern::kSignedUniform, padding);
    }
}

TEST_P(VersionTest, RandomShapes) {
    constexpr std::uint64_t kShapeSeed = 20260105;
    SCOPED_TRACE("course::Random seed " + std::to_string(kShapeSeed));
    course::Random random(kShapeSeed);
    for (int round = 0; round < 15; ++round)
        expect_exact({random.below(100), random.below(150), random.below(100)}, random.below(3));
}

TEST_P(VersionTest, ALongSum) {
    expect_right({3, 5, 100003}, DataPattern::kSignedUniform);
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    const std::vector<float> ones(32 * 32, 1.0f);
    const DeviceBuffer<float> a{std::span(ones)};
    GuardedBuffer<float> c(ones.size());
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(a.matrix(32, 32), a.matrix(32, 32), c.matrix(32, 32), stream);
    });
    EXPECT_TRUE(std::isnan(c.to_host()[0])) << "ran before the graph it was captured into";
    work.run();
    EXPECT_EQ(c.to_host(), std::vector<float>(ones.size(), 32.0f));
}

TEST_P(VersionTest, RefusesWhatDoesNotFit) {
    const auto launch = [](auto a, auto b, auto c) { GetParam()->launcher(a, b, c, nullptr); };
    course::expect_misfits_refused("matmul_tiled", launch);
    DeviceBuffer<float> memory{std::span<const float>(std::vector<float>(64))};
    const auto half = [&](std::size_t first) {
        return DeviceMatrix<float>(memory.span().subspan(first, 7), 2, 2, 5);
    };
    const DeviceMatrix<float> b(memory.span().subspan(32, 4), 2, 2);
    EXPECT_EQ(course::refusal([&] { launch(half(0), b, half(2)); }), "") << "A and C side by side";
    CUDA_CHECK(cudaDeviceSynchronize());
}

// A grid has at most 65535 blocks in y: larger products are computed in parts. A row or a column of
// 2 as one operand, so that the product is the other operand, doubled.
TEST_P(VersionTest, MoreRowsOrColumnsThanOneGridCovers) {
    const bool small_blocks = GetParam()->name.ends_with("16x16");
    if (course::is_cpu_stand_in() && !small_blocks)
        GTEST_SKIP() << "needs a GPU: 67 million threads of the CPU stand-in would take a minute";
    const bool coarse = GetParam()->name == "coarsened";
    const std::vector<float> two{2.0f};
    const DeviceBuffer<float> two_device{std::span(two)};
    for (const bool tall : {true, false}) {
        const std::size_t of_a_block = (small_blocks ? 16 : 32) * (coarse && !tall ? 4 : 1);
        const std::size_t extent = 65535 * of_a_block + 100;
        const std::vector<float> long_one =
            course::make_data<float>(extent, DataPattern::kSignedUniform, kSeed);
        const DeviceBuffer<float> long_device{std::span(long_one)};
        GuardedBuffer<float> c(extent);
        if (tall) {
            GetParam()->launcher(long_device.matrix(extent, 1), two_device.matrix(1, 1), c.matrix(extent, 1),
                                 nullptr);
        } else {
            GetParam()->launcher(two_device.matrix(1, 1), long_device.matrix(1, extent), c.matrix(1, extent),
                                 nullptr);
        }
        std::vector<double> expected(long_one.begin(), long_one.end());
        for (double& value : expected)
            value *= 2;
        course::VerifyResult result = course::verify(c.to_host(), expected, {.factor = 0});
        result.damage = c.damage();
        EXPECT_TRUE(result.ok()) << (tall ? "rows: " : "columns: ") << result.message();
    }
}

TEST_P(VersionTest, MoreElementsThan31BitsCount) {
    course::expect_right_beyond_31_bits(
        [](auto a, auto b, auto c) { GetParam()->launcher(a, b, c, nullptr); },
        [](std::span<const float> a, std::span<const float> b, auto product, auto magnitude) {
            day05::multiply_on_cpu({1, 3, a.size()}, a, b, product, magnitude);
        });
}

// The same on the CPU, where only the last blocks run.
TEST_P(VersionTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t rows = 65535 * 16;  // of one launch
    const std::size_t depth = 4099;
    const std::vector<double> end = {1};
    course::LargeArray<float> a(rows * depth, 192 * depth, end);
    const std::vector<float> last_row = course::make_data<float>(depth, DataPattern::kSignedUniform, kSeed);
    for (std::size_t k = 0; k < depth; ++k)
        a[(rows - 1) * depth + k] = last_row[k];
    const std::vector<float> b = course::make_data<float>(depth * 3, DataPattern::kSignedUniform, kSeed + 1);
    const DeviceBuffer<float> b_device{std::span(b)};
    DeviceBuffer<float> c(rows * 3);
    course::run_few_blocks(
        [&] {
            GetParam()->launcher(DeviceMatrix<const float>(a.span(), rows, depth), b_device.matrix(depth, 3),
                                 c.matrix(rows, 3), nullptr);
        },
        end);
    if (HasFatalFailure()) return;

    std::vector<double> expected(3);
    std::vector<double> magnitude(3);
    day05::multiply_on_cpu({1, 3, depth}, last_row, b, expected, magnitude);
    const std::vector<float> all = c.to_host();
    const std::vector<float> got(all.end() - 3, all.end());
    const course::VerifyResult result = course::verify(got, expected, {.terms = depth}, magnitude, 3);
    EXPECT_TRUE(result.ok()) << course::large_element((rows - 1) * depth, rows * depth) << "\n"
                             << result.message();
}

TEST(MultiplyOnCpu, AProductWorkedOutByHand) {
    const std::vector<float> a = {1, 2, 3, 4, 5, 6};     // 2 x 3
    const std::vector<float> b = {1, -2, 3, -4, 5, -6};  // 3 x 2
    std::vector<double> product(4);
    std::vector<double> magnitude(4);
    day05::multiply_on_cpu({2, 2, 3}, a, b, product, magnitude);
    EXPECT_EQ(product, (std::vector<double>{22, -28, 49, -64}));
    EXPECT_EQ(magnitude, (std::vector<double>{22, 28, 49, 64}));
}

TEST(MultiplyOnCpu, RefusesWrongLengths) {
    std::vector<double> four(4);
    EXPECT_THROW(day05::multiply_on_cpu({2, 2, 3}, std::vector<float>(5), std::vector<float>(6), four, four),
                 std::invalid_argument);
    EXPECT_THROW(day05::multiply_on_cpu({2, 2, 3}, std::vector<float>(6), std::vector<float>(7), four, four),
                 std::invalid_argument);
}

// The horizontal axis of the roofline in the README.
TEST(Work, ArithmeticIntensityGrowsWithTheTile) {
    const Shape shape{1024, 1024, 1 << 20};  // deep: the stores are negligible
    const auto intensity = [&](const char* name) {
        const course::Work work = course::find_version(day05::versions(), name).work(shape);
        return work.flops / work.requested;
    };
    EXPECT_NEAR(intensity("naive_16x16"), 0.25, 1e-3);  // 2 operations for 8 bytes
    EXPECT_NEAR(intensity("tiled_static"), 8, 1e-3);    // 32 times that
    EXPECT_NEAR(intensity("coarsened"), 12.8, 1e-3);    // 2 / (4 / 32 + 4 / 128)
}

}  // namespace

// Steps 15 and 16 alone: what splitting operands into TF32 numbers could get wrong, and how large
// their errors are beside FP32's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "beyond/tf32x3_wgmma.hpp"
#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "scratch.hpp"
#include "sgemm.hpp"
#include "test_problem.hpp"

namespace {

using course::DataPattern;
using gemm::Shape;

constexpr float kInf = std::numeric_limits<float>::infinity();

const gemm::Step& tf32x3() {
    return course::find_version(gemm::beyond(), "15_tf32x3");
}
// Not "16_tf32x3_wgmma", which leaves small products to step 14.
const gemm::Step& tf32x3_wgmma() {
    return course::find_version(gemm::beyond(), "16a_wgmma_alone");
}

const gemm::Step& fp32() {
    return course::find_version(gemm::steps(), "01_naive");
}

class Tf32x3Test : public course::DeviceTestWithParam<const gemm::Step*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const gemm::Step*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }
};
INSTANTIATE_TEST_SUITE_P(Beyond, Tf32x3Test, testing::Values(&tf32x3(), &tf32x3_wgmma()),
                         course::VersionName());

// A matrix on the device whose rows all begin at multiples of 16 bytes: without that, step 16 would
// be step 15. What is between the rows is NaN, and so is a matrix without values.
class AlignedRows {
  public:
    AlignedRows(std::size_t rows, std::size_t cols, const std::vector<float>& packed)
        : AlignedRows(rows, cols, packed, (cols + 3) / 4 * 4) {}
    AlignedRows(std::size_t rows, std::size_t cols, const std::vector<float>& packed, std::size_t pitch)
        : rows_(rows), cols_(cols), pitch_(pitch), device_(rows * pitch_) {
        std::vector<float> values(rows * pitch_, std::numeric_limits<float>::quiet_NaN());
        for (std::size_t i = 0; i < packed.size(); ++i)
            values[i / cols * pitch_ + i % cols] = packed[i];
        device_.copy_from(values);
    }

    course::DeviceMatrix<float> view() { return {device_.span(), rows_, cols_, pitch_}; }

    std::vector<float> packed() const {
        EXPECT_EQ(device_.damage(), "");
        const std::vector<float> values = device_.to_host();
        std::vector<float> result(rows_ * cols_);
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i % pitch_ < cols_) {
                result[i / pitch_ * cols_ + i % pitch_] = values[i];
            } else {
                EXPECT_TRUE(std::isnan(values[i])) << "behind row " << i / pitch_;
            }
        }
        return result;
    }

  private:
    std::size_t rows_, cols_, pitch_;
    course::GuardedBuffer<float> device_;
};

// What `launch` makes of alpha A B + beta C, where C was `before` if there is one.
std::vector<float> product(const std::function<void(const gemm::Sgemm&)>& launch, const Shape& shape,
                           const std::vector<float>& a, const std::vector<float>& b, float alpha = 1,
                           float beta = 0, const std::vector<float>& before = {}, bool odd_pitch = false) {
    AlignedRows a_device(shape.m, shape.k, a);
    AlignedRows b_device(shape.k, shape.n, b);
    AlignedRows c_device(shape.m, shape.n, before, odd_pitch ? shape.n | 1 : (shape.n + 3) / 4 * 4);
    launch({.a = a_device.view(), .b = b_device.view(), .c = c_device.view(), .alpha = alpha, .beta = beta});
    return c_device.packed();
}

std::vector<float> product(const gemm::Step& step, const Shape& shape, const std::vector<float>& a,
                           const std::vector<float>& b, float alpha = 1, float beta = 0,
                           const std::vector<float>& before = {}) {
    return product([&](const gemm::Sgemm& gemm) { step.launcher.launch(gemm, nullptr); }, shape, a, b, alpha,
                   beta, before);
}

struct Exact {
    Exact(const Shape& shape, const std::vector<float>& a, const std::vector<float>& b)
        : product(shape.m * shape.n), magnitude(product.size()) {
        gemm::multiply_on_cpu(shape, 1, a, b, 0, product, magnitude);
    }

    std::vector<double> product;
    std::vector<double> magnitude;
};

// The errors of all elements, each as a part of its magnitude.
struct Error {
    Error(const std::vector<float>& got, const Exact& exact) {
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double error =
                std::abs(static_cast<double>(got[i]) - exact.product[i]) / exact.magnitude[i];
            largest = std::max(largest, error);
            mean_square += error * error / static_cast<double>(got.size());
        }
    }

    double largest = 0;
    double mean_square = 0;
};

// Less, so that it is not FP32 by itself: a NaN where none belongs would have the whole tile
// computed again.
void expect_less_error_than_fp32(const gemm::Step& step, const Shape& shape, const std::vector<float>& a,
                                 const std::vector<float>& b) {
    const Exact exact(shape, a, b);
    const Error ours(product(step, shape, a, b), exact);
    const Error of_fp32(product(fp32(), shape, a, b), exact);
    EXPECT_LT(ours.mean_square, of_fp32.mean_square);
    EXPECT_LE(ours.largest, 2 * of_fp32.largest);
}

constexpr std::size_t kLong = course::is_cpu_stand_in() ? 2048 : 4096;
constexpr Shape kLongSums[] = {{32, 40, kLong}, {31, 39, kLong - 1}};

TEST_P(Tf32x3Test, LessErrorThanFp32InLongSums) {
    for (const Shape& shape : kLongSums) {
        for (const DataPattern pattern : {DataPattern::kSignedUniform, DataPattern::kNormal}) {
            SCOPED_TRACE(std::to_string(shape.k) + ", " + std::string(course::name(pattern)));
            expect_less_error_than_fp32(*GetParam(), shape,
                                        course::make_data<float>(shape.m * shape.k, pattern, 1),
                                        course::make_data<float>(shape.k * shape.n, pattern, 2));
        }
    }
}

// Of one sign: what is cut off always goes the same way.
TEST_P(Tf32x3Test, LessErrorThanFp32InLongSumsOfOneSign) {
    const auto positive = [](std::size_t size, std::uint64_t seed) {
        auto values = course::make_data<float>(size, DataPattern::kSignedUniform, seed);
        for (float& value : values)
            value = std::abs(value);
        return values;
    };
    for (const Shape& shape : kLongSums)
        expect_less_error_than_fp32(*GetParam(), shape, positive(shape.m * shape.k, 1),
                                    positive(shape.k * shape.n, 2));
}

// Two operands, step 15: each split is off by 2^-23 at most, and small small, at most 2^-22, is
// missing. Step 16 cuts big parts of A off: that split is off by 2^-22 at most, and small small is
// at most 2^-21. From 2^-102 on nothing is too small.
TEST_P(Tf32x3Test, OneProductIsOffBy2ToTheMinus21AtMost) {
    const int most = GetParam()->name == tf32x3().name ? -21 : -20;
    const Shape shape{150, 150, 1};
    for (const int exponent : {0, 60, -102}) {
        auto a = course::make_data<float>(shape.m, DataPattern::kNormal, 5);
        const auto b = course::make_data<float>(shape.n, DataPattern::kNormal, 6);
        for (float& value : a)
            value = std::ldexp(std::copysign(std::abs(value) + 1, value), exponent);
        const Exact exact(shape, a, b);
        EXPECT_LE(Error(product(*GetParam(), shape, a, b), exact).largest, std::ldexp(1.0, most))
            << "operands of about 2^" << exponent;
    }
}

// Integers of 16 bits have a small part, those of 3 bits have none. All sums are exact, so the sum
// without one of the products is wrong.
TEST_P(Tf32x3Test, NoneOfTheThreeProductsIsMissing) {
    const Shape shape{131, 70, 67};
    course::Random random(3);
    const auto integers = [&](std::size_t count, std::int32_t most) {
        std::vector<float> values(count);
        for (float& value : values)
            value = static_cast<float>(random.integer(-most, most));
        return values;
    };
    for (const auto& [most_in_a, most_in_b] : {std::pair{32768, 3}, std::pair{3, 32768}}) {
        const auto a = integers(shape.m * shape.k, most_in_a);
        const auto b = integers(shape.k * shape.n, most_in_b);
        const auto result = course::verify(product(*GetParam(), shape, a, b), Exact(shape, a, b).product,
                                           {.factor = 0}, {}, shape.n);
        EXPECT_TRUE(result.ok()) << "up to " << most_in_a << " times up to " << most_in_b << ": "
                                 << result.message();
    }
}

void expect_same(const std::vector<float>& got, const std::vector<float>& expected, std::size_t cols) {
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
            << "(" << i / cols << ", " << i % cols << "): got " << got[i] << ", expected " << expected[i];
    }
}

// Every one of them times every other: as FP32 does it, also where Inf or FLT_MAX meet a number
// that has no small part.
TEST_P(Tf32x3Test, InfAndNanAndTheLargestNumbers) {
    const std::vector<float> values = {
        kInf,
        -kInf,
        std::numeric_limits<float>::quiet_NaN(),
        std::bit_cast<float>(0x7f800001u),  // NaN by its last bit
        FLT_MAX,
        -FLT_MAX,
        std::bit_cast<float>(0x7f7ff000u),  // the least that TF32 rounds to Inf
        std::bit_cast<float>(0x7f7fefffu),
        0,
        1,
        -0.5f,
        2};
    const Shape shape{1, values.size(), 1};
    for (const float a : values) {
        SCOPED_TRACE(a);
        expect_same(product(*GetParam(), shape, {a}, values), product(fp32(), shape, {a}, values), shape.n);
    }
}

// Where they are in one tile of C, the others are what they were; and the tile's edges lie within
// the matrix.
TEST_P(Tf32x3Test, InfAndNanStayInTheirRowsAndColumns) {
    const Shape shape{150, 301, 19};
    course::Random random(4);
    std::vector<float> a(shape.m * shape.k);
    std::vector<float> b(shape.k * shape.n);
    for (auto* values : {&a, &b}) {
        for (float& value : *values)
            value = static_cast<float>(random.integer(-8, 8));
    }
    a[3 * shape.k + 5] = kInf;
    a[149 * shape.k + 18] = FLT_MAX;
    b[7 * shape.n + 300] = std::numeric_limits<float>::quiet_NaN();
    expect_same(product(*GetParam(), shape, a, b), product(fp32(), shape, a, b), shape.n);
}

// Of two tiles one above the other, the upper one is computed again. C is read and every element
// must be written once: an element that is written a second time has beta applied twice.
TEST_P(Tf32x3Test, InfLeavesTheTileBelowAsItIs) {
    const Shape shape{150, 70, 19};
    course::Random random(7);
    const auto integers = [&](std::size_t count) {
        std::vector<float> values(count);
        for (float& value : values)
            value = static_cast<float>(random.integer(-8, 8));
        return values;
    };
    auto a = integers(shape.m * shape.k);
    a[3 * shape.k + 5] = kInf;
    const auto b = integers(shape.k * shape.n);
    const auto before = integers(shape.m * shape.n);
    expect_same(product(*GetParam(), shape, a, b, 2, -0.5f, before),
                product(fp32(), shape, a, b, 2, -0.5f, before), shape.n);
}

// What TF32 has no exponent for is lost, and no more: 2^-126 of an operand.
TEST_P(Tf32x3Test, OfTinyOperandsLessThanTheSmallestNormalNumberIsLost) {
    std::vector<float> tiny;
    for (int exponent = -149; exponent < -100; ++exponent)
        tiny.push_back(std::ldexp(1 + 0x1p-23f * 0x2b5679, exponent));
    const std::vector<float> others = {1, -0x1.fffffep0f, 0x1.234566p100f, 0x1.234566p-20f};
    const Shape shape{tiny.size(), others.size(), 1};
    const auto expect_little_lost = [&](const std::vector<float>& got, auto tiny_of, auto other_of) {
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double exact = static_cast<double>(tiny_of(i)) * static_cast<double>(other_of(i));
            const double lost =
                std::abs(static_cast<double>(other_of(i))) * 0x1p-126 + std::abs(exact) * 0x1p-21 + 0x1p-126;
            EXPECT_LE(std::abs(static_cast<double>(got[i]) - exact), lost)
                << tiny_of(i) << " times " << other_of(i);
        }
    };
    const std::size_t n = others.size();
    const std::size_t m = tiny.size();
    expect_little_lost(
        product(*GetParam(), shape, tiny, others), [&](std::size_t i) { return tiny[i / n]; },
        [&](std::size_t i) { return others[i % n]; });
    expect_little_lost(
        product(*GetParam(), {n, m, 1}, others, tiny), [&](std::size_t i) { return tiny[i % m]; },
        [&](std::size_t i) { return others[i / m]; });
}

class Tf32Splits : public course::DeviceTestWithParam<int> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<int>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = tf32x3_wgmma().cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    // Data and results are such that FP32 is exact.
    static void expect_as_fp32(const Shape& shape, const std::vector<float>& a, const std::vector<float>& b) {
        const auto before = gemm::test::integers(shape.m * shape.n, 3);
        gemm::ScratchMemory scratch(gemm::tf32x3_wgmma_scratch(shape, GetParam()));
        const auto launch = [&](gemm::Sgemm gemm) {
            gemm.scratch = scratch.view();
            gemm::launch_tf32x3_wgmma(GetParam(), gemm, nullptr);
        };
        const auto expected = product(fp32(), shape, a, b, 2, -0.5f, before);
        for (const bool odd_pitch : {false, true})  // results are stored in pairs, or one by one
            expect_same(product(launch, shape, a, b, 2, -0.5f, before, odd_pitch), expected, shape.n);
    }
};
INSTANTIATE_TEST_SUITE_P(Beyond, Tf32Splits, testing::Values(1, 2, 3, 7, 1000));

TEST_P(Tf32Splits, EveryPartIsAddedOnce) {
    for (const Shape& shape : {Shape{130, 70, 100}, {128, 256, 64}, {1, 3, 257}, {257, 131, 390}, {5, 9, 1}})
        expect_as_fp32(shape, gemm::test::integers(shape.m * shape.k, 1),
                       gemm::test::integers(shape.k * shape.n, 2));
}

TEST_P(Tf32Splits, InfAndNanInOneOfTheParts) {
    const Shape shape{150, 131, 230};
    auto a = gemm::test::integers(shape.m * shape.k, 1);
    auto b = gemm::test::integers(shape.k * shape.n, 2);
    a[3 * shape.k + 5] = kInf;
    a[149 * shape.k + 229] = FLT_MAX;
    b[100 * shape.n + 130] = std::numeric_limits<float>::quiet_NaN();
    expect_as_fp32(shape, a, b);
}

TEST(Tf32x3, IsNotHeldAgainstTheLimitOfFp32) {
    for (const gemm::Step& step : {tf32x3(), tf32x3_wgmma()}) {
        EXPECT_EQ(step.work({2, 3, 4}).arithmetic, course::Arithmetic::kOther);
        EXPECT_EQ(step.work({2, 3, 4}).flops, 48);
    }
}

}  // namespace

// Batched products of FP16 matrices: the kernels of batched_bfloat16_test.cpp with the other type.
// So here is what depends on the type: the MMA, the copies of each layout, and the arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "batched_bfloat16.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/verify.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/test_operands.hpp"

namespace {

using course::DataPattern;
using course::Op;
using course::TestBatch;
using day45::Shape;
using Layout = course::BatchLayout;

constexpr Op kOps[] = {Op::kNone, Op::kTranspose};

// n / 1024 with n from 1024 to 2047: all 11 bits of FP16, of which BF16 would round three away. A
// product has 22 bits, so it is exact in FP32.
std::vector<__half> fractions(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<__half> values(size);
    for (__half& value : values)
        value = __half(static_cast<float>(1024 + random.below(1024)) / 1024.0f);
    return values;
}

std::vector<__half> integers(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<__half> values(size);
    for (__half& value : values)
        value = __half(static_cast<float>(random.below(17)) - 8.0f);
    return values;
}

std::vector<float> as_floats(const std::vector<__half>& values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](__half value) { return static_cast<float>(value); });
    return floats;
}

class BatchedHalfTest : public course::DeviceTestWithParam<const day45::BatchedHalf*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day45::BatchedHalf*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    void expect_within(const course::Bound& bound, const Shape& s, const std::vector<__half>& a,
                       const std::vector<__half>& b, const Layout& of_a, const Layout& of_b,
                       const Layout& of_c = {}, float alpha = 1, float beta = 0) const {
        const auto before = course::make_data<float>(s.count * s.m * s.n, DataPattern::kSignedUniform, 3);
        std::vector<double> product(before.begin(), before.end());
        std::vector<double> magnitude(product.size());
        day45::multiply_on_cpu(s, alpha, as_floats(a), as_floats(b), beta, product, magnitude);
        TestBatch<const __half> a_device(a, s.count, s.m, s.k, of_a);
        TestBatch<const __half> b_device(b, s.count, s.k, s.n, of_b);
        TestBatch<float> c_device = beta == 0 ? TestBatch<float>(s.count, s.m, s.n, of_c)
                                              : TestBatch<float>(before, s.count, s.m, s.n, of_c);
        GetParam()->launcher({.operands = {a_device.view(), b_device.view(), of_a.op, of_b.op},
                              .c = c_device.view(),
                              .alpha = alpha,
                              .beta = beta},
                             nullptr);
        course::VerifyResult result = course::verify(c_device.packed(), product, bound, magnitude, s.n);
        result.damage = c_device.damage() + a_device.damage() + b_device.damage();
        EXPECT_TRUE(result.ok()) << s.count << " of " << s.m << " x " << s.n << " x " << s.k
                                 << (of_a.op == Op::kNone ? ", N" : ", T")
                                 << (of_b.op == Op::kNone ? "N: " : "T: ") << result.message();
    }

    void expect_exact(const Shape& s, const Layout& of_a, const Layout& of_b, const Layout& of_c = {}) const {
        expect_within({.factor = 0}, s, integers(s.count * s.m * s.k, 1), integers(s.count * s.k * s.n, 2),
                      of_a, of_b, of_c);
    }
};

INSTANTIATE_TEST_SUITE_P(DayFortyFive, BatchedHalfTest, course::each_of(day45::half_versions()),
                         course::VersionName());

// Rows of whole chunks of eight, and others; aligned to 16 bytes, and not; matrices behind
// pointers.
TEST_P(BatchedHalfTest, EveryLayout) {
    for (const Op op_a : kOps) {
        for (const Op op_b : kOps) {
            const Layout a{.op = op_a};
            const Layout b{.op = op_b};
            for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{2, 3, 4, 0}, Shape{3, 33, 65, 17},
                                   Shape{1, 136, 144, 72}, Shape{2, 22, 22, 200}})
                expect_exact(s, a, b);
            const Shape small{2, 40, 24, 80};
            expect_exact(small, {.op = op_a, .padding = 8}, {.op = op_b, .padding = 3});
            expect_exact(small, {.op = op_a, .misaligned_by = 1}, {.op = op_b, .misaligned_by = 4});
            expect_exact(small, {.op = op_a, .pointers = true}, b, {.padding = 2, .pointers = true});
        }
    }
}

TEST_P(BatchedHalfTest, AllBitsOfTheTypeCount) {
    for (const Op op_a : kOps)
        for (const Op op_b : kOps)
            expect_within({.factor = 0}, {2, 40, 24, 1}, fractions(80, 1), fractions(48, 2), {.op = op_a},
                          {.op = op_b});
}

// 65,504 is the largest number of FP16, 2^-24 the smallest.
TEST_P(BatchedHalfTest, TheLargestAndTheSmallestNumbers) {
    const std::vector<__half> a = {__half(65504.0f), __half(-65504.0f), __half(0x1p-24f), __half(0x1p-24f)};
    const std::vector<__half> b = {__half(65504.0f), __half(0x1p-24f)};
    for (const Op op_a : kOps)
        for (const Op op_b : kOps)
            expect_within({.factor = 0}, {1, 4, 2, 1}, a, b, {.op = op_a}, {.op = op_b});
}

TEST_P(BatchedHalfTest, AlphaAndBetaAndPatterns) {
    const Shape s{2, 40, 70, 100};
    for (const DataPattern pattern :
         {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kWithNan, DataPattern::kWithInf}) {
        const auto a = course::make_data<__half>(s.count * s.m * s.k, pattern, 1);
        const auto b = course::make_data<__half>(s.count * s.k * s.n, pattern, 2);
        expect_within({.terms = s.k + 1}, s, a, b, {.op = Op::kTranspose}, {}, {}, -0.5f, 2);
        expect_within({.terms = s.k + 1}, s, a, b, {}, {.op = Op::kTranspose});
    }
}

TEST_P(BatchedHalfTest, RefusesBadArguments) {
    const std::vector<__half> ones(24, __half(1.0f));
    TestBatch<const __half> a(std::span<const __half>(ones).first(12), 1, 3, 4, {});
    TestBatch<const __half> b(ones, 1, 4, 6, {});
    TestBatch<float> c(1, 3, 5, {});
    EXPECT_EQ(course::refusal([&] {
                  GetParam()->launcher({.operands = {a.view(), b.view()}, .c = c.view()}, nullptr);
              }),
              "batched matmul: there are 1 matrices C of 3 x 5; expected 1 of 3 x 6");
    EXPECT_EQ(course::refusal([&] {
                  GetParam()->launcher(
                      {.operands = {a.view(), b.view(), Op::kTranspose, Op::kNone}, .c = c.view()}, nullptr);
              }),
              "batched matmul: op(A) is 4 x 3 and op(B) 4 x 6; expected as many rows of op(B) as op(A) has "
              "columns");
}

}  // namespace

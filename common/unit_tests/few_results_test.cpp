// Products with few results: every way to share the work, element type and layout.
#include "common/tile/few_results.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/check/matmul_reference.hpp"
#include "common/check/verify.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/test_operands.hpp"

namespace {

using course::FewResultsPlan;
using course::FewSum;
using course::Op;
using course::ProductShape;
using course::refusal;
using course::TestBatch;
using Layout = course::BatchLayout;

struct Layouts {
    Layout a{}, b{}, c{};
};

template <class T>
class FewResults : public course::DeviceTest {};
using Elements = ::testing::Types<float, __half, __nv_bfloat16, __nv_fp8_e4m3, __nv_fp8_e5m2, std::int8_t>;
TYPED_TEST_SUITE(FewResults, Elements);

std::vector<FewResultsPlan> plans() {
    std::vector<FewResultsPlan> list;
    for (const unsigned lanes : {1, 2, 4, 8, 16, 32})
        list.push_back({.lanes = lanes});
    for (const unsigned splits : {1, 3})
        list.push_back({.splits = splits});
    return list;
}

// Whole numbers from -4 to 4, which all types hold, or fractions.
template <class T>
std::vector<T> values(std::size_t size, std::uint64_t seed, bool whole) {
    course::Random random(seed);
    std::vector<T> result(size);
    for (T& value : result) {
        const float number = static_cast<float>(random.below(9)) - 4.0f;
        if constexpr (std::is_integral_v<T>) {
            value = static_cast<T>(whole ? number : static_cast<float>(random.below(256)) - 128.0f);
        } else {
            value = T(whole ? number : number / 3.0f);
        }
    }
    return result;
}

template <class T>
std::vector<float> as_floats(const std::vector<T>& from) {
    std::vector<float> floats(from.size());
    std::ranges::transform(from, floats.begin(), [](T value) { return static_cast<float>(value); });
    return floats;
}

template <class T>
void expect_right(const FewResultsPlan& plan, const ProductShape& s, const Layouts& layouts, bool whole,
                  int alpha = 1, int beta = 0) {
    using Sum = FewSum<T>;
    const auto a = values<T>(s.count * s.m * s.k, 1, whole);
    const auto b = values<T>(s.count * s.k * s.n, 2, whole);
    const auto before = as_floats(values<std::int8_t>(s.count * s.m * s.n, 3, true));
    std::vector<double> product(before.begin(), before.end());
    std::vector<double> magnitude(product.size());
    course::multiply_batch_on_cpu(s.count, s.m, s.n, s.k, static_cast<float>(alpha), as_floats(a),
                                  as_floats(b), static_cast<float>(beta), product, magnitude);

    TestBatch<const T> a_device(a, s.count, s.m, s.k, layouts.a);
    TestBatch<const T> b_device(b, s.count, s.k, s.n, layouts.b);
    TestBatch<Sum> c_device = beta == 0 ? TestBatch<Sum>(s.count, s.m, s.n, layouts.c)
                                        : TestBatch<Sum>(std::vector<Sum>(before.begin(), before.end()),
                                                         s.count, s.m, s.n, layouts.c);
    course::multiply_few<T>(plan, {a_device.view(), b_device.view(), layouts.a.op, layouts.b.op},
                            c_device.view(), static_cast<Sum>(alpha), static_cast<Sum>(beta), nullptr);
    course::VerifyResult result;
    if constexpr (std::is_integral_v<Sum>) {
        result =
            course::verify_exact(c_device.packed(), std::vector<Sum>(product.begin(), product.end()), s.n);
    } else {
        const course::Bound bound = whole ? course::Bound{.factor = 0} : course::Bound{.terms = s.k + 2};
        result = course::verify(c_device.packed(), product, bound, magnitude, s.n);
    }
    result.damage = c_device.damage() + a_device.damage() + b_device.damage();
    EXPECT_TRUE(result.ok()) << s.count << " of " << s.m << " x " << s.n << " x " << s.k << ", lanes "
                             << plan.lanes << ", splits " << plan.splits << ": " << result.message();
}

constexpr Op kOps[] = {Op::kNone, Op::kTranspose};

// Around a tile of 16, a team's and a block's k, lanes.
TYPED_TEST(FewResults, EveryShape) {
    for (const FewResultsPlan& plan : plans())
        for (const ProductShape& s : {ProductShape{1, 1, 1, 1}, ProductShape{2, 17, 15, 129},
                                      ProductShape{5, 2, 7, 0}, ProductShape{2, 3, 2, 31}})
            expect_right<TypeParam>(plan, s, {}, true);
}

// More products than a block has threads, k of exactly some slabs, more splits than k.
TEST(FewResultsOfFloats, MoreShapes) {
    for (const FewResultsPlan& plan : plans())
        for (const ProductShape& s :
             {ProductShape{1, 16, 16, 128}, ProductShape{70, 3, 1, 11}, ProductShape{1, 4, 5, 1024}})
            expect_right<float>(plan, s, {}, true);
    expect_right<float>({.splits = 20}, {1, 2, 17, 13}, {}, true);
    expect_right<float>({.splits = 7}, {1, 33, 2, 900}, {}, true);
    // Twice and three times as many parts as threads that add them.
    expect_right<float>({.splits = 33}, {1, 3, 5, 4300}, {}, true);
    expect_right<std::int8_t>({.splits = 70}, {1, 2, 9, 9000}, {}, true);
}

TYPED_TEST(FewResults, EveryLayout) {
    for (const FewResultsPlan& plan : {FewResultsPlan{.lanes = 4}, FewResultsPlan{.splits = 3}})
        for (const Op op_a : kOps)
            for (const Op op_b : kOps) {
                const ProductShape s{2, 18, 5, 140};
                expect_right<TypeParam>(plan, s, {{.op = op_a}, {.op = op_b}}, true);
                expect_right<TypeParam>(plan, s,
                                        {{.op = op_a, .padding = 3, .misaligned_by = 1},
                                         {.op = op_b, .padding = 1, .misaligned_by = 3},
                                         {.padding = 2, .misaligned_by = 1}},
                                        true);
                expect_right<TypeParam>(
                    plan, s,
                    {{.op = op_a, .pointers = true}, {.op = op_b, .pointers = true}, {.pointers = true}},
                    true);
            }
}

TYPED_TEST(FewResults, AlphaAndBeta) {
    for (const FewResultsPlan& plan : {FewResultsPlan{.lanes = 8}, FewResultsPlan{.splits = 2}})
        for (const int beta : {0, 1, -2})
            for (const int alpha : {0, 1, 3})
                expect_right<TypeParam>(plan, {1, 3, 18, 40}, {}, true, alpha, beta);
}

TEST(FewResultsOfFloats, AlphaOfZeroReadsNeitherANorB) {
    const std::vector<float> nan(40, std::numeric_limits<float>::quiet_NaN());
    TestBatch<const float> a(nan, 1, 2, 20, {});
    TestBatch<const float> b(nan, 1, 20, 2, {});
    for (const FewResultsPlan& plan : {FewResultsPlan{.lanes = 4}, FewResultsPlan{.splits = 2}}) {
        TestBatch<float> c(std::vector<float>{1, 2, 3, 4}, 1, 2, 2, {});
        course::multiply_few<float>(plan, {a.view(), b.view()}, c.view(), 0, 2, nullptr);
        EXPECT_EQ(c.packed(), (std::vector<float>{2, 4, 6, 8}));
    }
}

// Sums of fractions: the errors stay within the bound of a sum of so many terms.
TYPED_TEST(FewResults, Fractions) {
    for (const FewResultsPlan& plan : {FewResultsPlan{.lanes = 4}, FewResultsPlan{.splits = 3}})
        expect_right<TypeParam>(plan, {1, 9, 7, 777}, {}, false);
}

TEST(FewResultsOfBytes, SumsWrap) {
    constexpr std::size_t kDepth = 200'000;  // 128 * 128 * 200,000 is more than 2^31
    const std::vector<std::int8_t> least(kDepth, -128);
    const auto expected = static_cast<std::int32_t>(static_cast<std::uint32_t>(16384ULL * kDepth));
    TestBatch<const std::int8_t> a(least, 1, 1, kDepth, {});
    TestBatch<const std::int8_t> b(least, 1, kDepth, 1, {});
    for (const FewResultsPlan& plan : {FewResultsPlan{.lanes = 32}, FewResultsPlan{.splits = 5}}) {
        TestBatch<std::int32_t> c(1, 1, 1, {});
        course::multiply_few<std::int8_t>(plan, {a.view(), b.view()}, c.view(), 1, 0, nullptr);
        EXPECT_EQ(c.packed(), std::vector{expected});
    }
}

TEST(FewResultsPlans, AllBlocksShareADeepKAndLanesTheOthers) {
    const FewResultsPlan deep = course::plan_few_results({1, 16, 16, 86672}, 132);
    EXPECT_EQ(deep.lanes, 0u);
    EXPECT_GE(deep.splits, 132u);
    const FewResultsPlan tiny = course::plan_few_results({3601, 3, 1, 11}, 132);
    EXPECT_GE(tiny.lanes, 1u);
    EXPECT_EQ(tiny.splits, 0u);
    for (const ProductShape& many : {ProductShape{1000000, 16, 16, 128}, ProductShape{10000, 32, 32, 4096}})
        EXPECT_GE(course::plan_few_results(many, 132).lanes, 1u);
    EXPECT_EQ(course::plan_few_results({1, 1 << 16, 1 << 16, 1}, 132).microseconds,
              std::numeric_limits<double>::infinity());
    EXPECT_GT(course::plan_few_results({1, 4096, 4096, 4096}, 132).microseconds, 1000);
}

TEST(FewResultsPlans, MistakesAreNamed) {
    const std::vector<float> one(1, 1.0f);
    TestBatch<const float> a(one, 1, 1, 1, {});
    TestBatch<float> c(1, 1, 1, {});
    const auto multiply = [&](const FewResultsPlan& plan) {
        return refusal([&] {
            course::multiply_few<float>(plan, {a.view(), a.view()}, c.view(), 1, 0, nullptr);
        });
    };
    EXPECT_EQ(multiply({.lanes = 3}), "multiply_few: lanes is 3; expected 0, or a power of two up to 32");
    EXPECT_EQ(multiply({.lanes = 64}), "multiply_few: lanes is 64; expected 0, or a power of two up to 32");
    EXPECT_EQ(multiply({}), "multiply_few: splits is 0; expected from 1 to 65535");
    EXPECT_EQ(multiply({.splits = 65536}), "multiply_few: splits is 65536; expected from 1 to 65535");
}

}  // namespace

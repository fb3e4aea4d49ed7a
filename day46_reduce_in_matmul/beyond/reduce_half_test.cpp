// Minima and maxima of products of FP16 and BF16 matrices: every version.
#include "reduce_half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/test_operands.hpp"

namespace {

using course::DataPattern;
using course::GuardedBuffer;
using course::Metric;
using course::Op;
using course::refusal;
using day46::ReduceShape;
using day46::Reduction;
using Layout = course::BatchLayout;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
std::vector<float> as_floats(std::span<const T> values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](T value) { return static_cast<float>(value); });
    return floats;
}

template <class T>
std::vector<T> as_halves(std::span<const float> values) {
    std::vector<T> halves(values.size());
    std::ranges::transform(values, halves.begin(), [](float value) { return T(value); });
    return halves;
}

// -8 to 8: both types hold them, and every sum of a few thousand products is exact.
std::vector<float> integers(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float> values(size);
    for (float& value : values)
        value = static_cast<float>(random.below(17)) - 8.0f;
    return values;
}

template <class T>
class ReduceHalfTest : public course::DeviceTest {
  protected:
    // Calls work(version) with every version that can run here.
    template <class Work>
    void each_version(const Work& work) {
        bool any = false;
        for (const auto& version : day46::half_reduce_versions<T>()) {
            if (!version.cannot_run({}).empty()) continue;
            SCOPED_TRACE(version.name);
            any = true;
            work(version);
        }
        if (!any) GTEST_SKIP() << day46::half_reduce_versions<T>().front().cannot_run({});
    }

    // `b`: op(B), d x n, packed. EXACT: values and indices must be those of the reference.
    // Otherwise a value may be off by k roundings of a sum that tensor cores truncate
    // (half_mma.cuh), and an index may name an element that is as good but for rounding.
    void expect_right(const ReduceShape& s, std::span<const float> a, std::span<const float> b, bool exact,
                      const Layout& a_layout = {}, const Layout& b_layout = {.op = Op::kTranspose}) {
        each_version([&](const auto& version) {
            const std::string where = course::name(s.metric) + ", " + day46::name(s.reduction) + " of " +
                                      std::to_string(s.count) + " " + std::to_string(s.m) + " x " +
                                      std::to_string(s.n) + " x " + std::to_string(s.d);
            course::TestBatch<const T> a_device(as_halves<T>(a), s.count, s.m, s.d, a_layout);
            course::TestBatch<const T> b_device(as_halves<T>(b), s.count, s.d, s.n, b_layout);
            GuardedBuffer<float> values(s.count * s.m);
            GuardedBuffer<std::uint32_t> indices(s.count * s.m);
            GuardedBuffer<std::uint64_t> scratch(version.launcher.scratch_size(s));
            version.launcher.launch({.operands = {a_device.view(), b_device.view(), a_layout.op, b_layout.op},
                                     .metric = s.metric,
                                     .reduction = s.reduction,
                                     .values = values.span(),
                                     .indices = indices.span(),
                                     .scratch = scratch.span()},
                                    nullptr);
            const std::vector<float> got = values.to_host();
            const std::vector<std::uint32_t> at = indices.to_host();
            EXPECT_EQ(
                values.damage() + indices.damage() + scratch.damage() + a_device.damage() + b_device.damage(),
                "")
                << where;
            compare(s, a, b, exact, got, at, where);
        });
    }

    static void compare(const ReduceShape& s, std::span<const float> a, std::span<const float> b, bool exact,
                        std::span<const float> got, std::span<const std::uint32_t> at,
                        const std::string& where) {
        const course::Bound bound{.terms = s.d + 4, .factor = exact ? 0.0 : 2.0};
        for (std::size_t i = 0; i < s.count; ++i) {
            const auto distances =
                course::distances_on_cpu(s.metric, s.m, s.n, s.d, a.subspan(i * s.m * s.d, s.m * s.d),
                                         b.subspan(i * s.d * s.n, s.d * s.n));
            const auto expected = day46::reduce_on_cpu(s.reduction, day46::Along::kRows, s.m, s.n, distances);
            const auto result =
                course::verify(got.subspan(i * s.m, s.m), expected.values, bound, expected.magnitudes);
            ASSERT_TRUE(result.ok()) << where << ", product " << i << ": " << result.message();
            for (std::size_t row = 0; row < s.m; ++row) {
                const std::size_t index = at[i * s.m + row];
                ASSERT_LT(index, s.n) << where << ", product " << i << ", row " << row;
                if (exact) {
                    ASSERT_EQ(index, expected.indices[row]) << where << ", product " << i << ", row " << row;
                    continue;
                }
                const double named = distances.values[row * s.n + index];
                const double allowed = bound.roundings() * 1.2e-7 *
                                       (distances.magnitudes[row * s.n + index] + expected.magnitudes[row]);
                ASSERT_LE(std::abs(named - expected.values[row]), allowed)
                    << where << ", product " << i << ", row " << row << ", index " << index;
            }
        }
    }

    void expect_exact(const ReduceShape& s, const Layout& a_layout = {},
                      const Layout& b_layout = {.op = Op::kTranspose}) {
        expect_right(s, integers(s.count * s.m * s.d, 1), integers(s.count * s.d * s.n, 2), true, a_layout,
                     b_layout);
    }

    void expect_near(const ReduceShape& s, DataPattern pattern) {
        const auto a = course::make_data<T>(s.count * s.m * s.d, pattern, 1);
        const auto b = course::make_data<T>(s.count * s.d * s.n, pattern, 2);
        expect_right(s, as_floats<T>(a), as_floats<T>(b), false);
    }
};

using HalfTypes = ::testing::Types<__half, __nv_bfloat16>;
TYPED_TEST_SUITE(ReduceHalfTest, HalfTypes);

// One tile and parts of it, several tiles of a row, several rows of tiles; K of one step, of parts
// of one, and of several.
TYPED_TEST(ReduceHalfTest, ShapesWithManyTies) {
    for (const std::size_t n : {1, 31, 63, 64, 65, 127, 128, 129, 300})
        this->expect_exact({.m = 5, .n = n, .d = 8});
    for (const std::size_t m : {1, 63, 64, 65, 128, 129})
        this->expect_exact({.m = m, .n = 20, .d = 16, .reduction = Reduction::kMax});
    for (const std::size_t d : {1, 7, 15, 63, 64, 65, 136, 257})
        this->expect_exact({.m = 9, .n = 150, .d = d, .metric = Metric::kSquaredL2});
    this->expect_exact({.m = 130, .n = 140, .d = 24, .count = 3});
}

TYPED_TEST(ReduceHalfTest, EveryMetricOfRandomNumbers) {
    for (const Metric metric : {Metric::kDot, Metric::kSquaredL2, Metric::kCosine}) {
        for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
            this->expect_near({.m = 70, .n = 200, .d = 40, .metric = metric, .reduction = reduction},
                              DataPattern::kSignedUniform);
        }
    }
    this->expect_near({.m = 3, .n = 70, .d = 1000}, DataPattern::kNormal);
    this->expect_near({.m = 3, .n = 70, .d = 64}, DataPattern::kHugeNextToTiny);
}

// Rows of whole chunks of 16 bytes and others; matrices behind pointers.
TYPED_TEST(ReduceHalfTest, Layouts) {
    const ReduceShape s{.m = 20, .n = 70, .d = 24, .count = 2};
    this->expect_exact(s, {.padding = 8}, {.op = Op::kTranspose, .padding = 16});
    this->expect_exact(s, {.padding = 3}, {.op = Op::kTranspose});
    this->expect_exact(s, {.misaligned_by = 1}, {.op = Op::kTranspose, .padding = 4});
    this->expect_exact(s, {.pointers = true}, {.op = Op::kTranspose, .misaligned_by = 4, .pointers = true});
}

// Of equal elements the lowest column, also where the lanes, warps, tiles and blocks meet.
TYPED_TEST(ReduceHalfTest, OfEqualElementsTheLowestColumn) {
    const ReduceShape s{.m = 3, .n = 700, .d = 2};
    for (const std::size_t first : {0, 1, 2, 7, 8, 63, 64, 127, 128, 129, 511, 698}) {
        std::vector<float> b(s.d * s.n, 1);
        for (std::size_t col = first; col < s.n; ++col)
            b[col] = b[s.n + col] = -2;
        const std::vector<float> a(s.m * s.d, 1);
        this->expect_right(s, a, b, true);
    }
}

TYPED_TEST(ReduceHalfTest, NanBeforeAllNumbersAndInfinity) {
    const ReduceShape s{.m = 2, .n = 150, .d = 1};
    const std::vector<float> a = {1, 2};
    std::vector<float> b(s.n, 3);
    b[40] = -kInf;
    b[140] = kInf;
    this->expect_right(s, a, b, true);
    b[100] = b[120] = kNan;
    this->expect_right(s, a, b, true);
    this->expect_right({.m = 2, .n = 150, .d = 1, .reduction = Reduction::kMax}, a, b, true);
}

TYPED_TEST(ReduceHalfTest, NothingToDo) {
    this->expect_exact({.m = 0, .n = 5, .d = 3});
    this->expect_exact({.m = 4, .n = 5, .d = 0});
}

TYPED_TEST(ReduceHalfTest, RefusesWhatItCannotDo) {
    using T = TypeParam;
    this->each_version([](const auto& version) {
        const ReduceShape s{.m = 4, .n = 6, .d = 8};
        course::DeviceBuffer<T> a(s.m * s.d);
        course::DeviceBuffer<T> b(s.n * s.d);
        course::DeviceBuffer<float> values(s.m);
        course::DeviceBuffer<std::uint32_t> indices(s.m);
        course::DeviceBuffer<std::uint64_t> scratch(version.launcher.scratch_size(s));
        const auto refused = [&](auto&& change) {
            day46::ReducedMatmulOf<T> matmul{.operands = {.a = {std::as_const(a).matrix(s.m, s.d)},
                                                          .b = {std::as_const(b).matrix(s.n, s.d)},
                                                          .op_b = Op::kTranspose},
                                             .values = values.span(),
                                             .indices = indices.span(),
                                             .scratch = scratch.span()};
            change(matmul);
            return refusal([&] { version.launcher.launch(matmul, nullptr); });
        };
        EXPECT_EQ(refused([&](auto& matmul) {
                      matmul.operands.b = {std::as_const(b).matrix(s.d, s.n)};
                      matmul.operands.op_b = Op::kNone;
                  }),
                  "reduced 16-bit matmul: the layout is NN; expected NT: rows of A and rows of B along K");
        EXPECT_EQ(refused([](auto& matmul) { matmul.along = day46::Along::kColumns; }),
                  "reduced 16-bit matmul: along is kColumns; expected kRows (exchange A and B)");
        EXPECT_EQ(refused([](auto& matmul) { matmul.reduction = Reduction::kSum; }),
                  "reduced 16-bit matmul: the reduction is sum; expected min or max");
        EXPECT_EQ(refused([](auto& matmul) { matmul.metric = Metric::kDifferences; }),
                  "reduced 16-bit matmul: the metric is differences, which is no product; expected dot, "
                  "squared_l2 or cosine");
        EXPECT_EQ(refused([&](auto& matmul) { matmul.values = values.span().subspan(0, 3); }),
                  "reduced 16-bit matmul: values has 3 elements; expected 4, one for each result");
        EXPECT_EQ(refused([&](auto& matmul) { matmul.indices = indices.span().subspan(0, 3); }),
                  "reduced 16-bit matmul: indices has 3 elements; expected 4, or none");
        const std::size_t needed = scratch.size();
        EXPECT_EQ(refused([&](auto& matmul) { matmul.scratch = scratch.span().subspan(0, needed - 1); }),
                  "reduced 16-bit matmul: scratch has " + std::to_string(needed - 1) +
                      " elements; expected at least " + std::to_string(needed));
    });
}

}  // namespace

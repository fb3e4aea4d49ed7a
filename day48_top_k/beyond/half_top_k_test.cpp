// The k best of each row of products of FP16 and BF16 matrices: every version.
#include "half_top_k.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/grid.hpp"
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
using day48::Order;
using day48::TopKShape;
using Layout = course::BatchLayout;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr Layout kRows = {.op = Op::kTranspose};  // points are rows of B
// Vectors of one number whose rows TMA can address: the next seven numbers are NaN.
constexpr Layout kPaddedTo8 = {.padding = 7};
constexpr Layout kRowsPaddedTo8 = {.op = Op::kTranspose, .padding = 7};

template <class E>
std::vector<float> as_floats(std::span<const E> values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](E value) { return static_cast<float>(value); });
    return floats;
}

template <class E>
std::vector<E> as_halves(std::span<const float> values) {
    std::vector<E> halves(values.size());
    std::ranges::transform(values, halves.begin(), [](float value) { return E(value); });
    return halves;
}

// Both types hold them, and every sum of a few thousand products is exact.
std::vector<float> integers(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float> values(size);
    for (float& value : values)
        value = static_cast<float>(random.below(17)) - 8.0f;
    return values;
}

template <class E>
class HalfTopKTest : public course::DeviceTest {
  protected:
    template <class Work>
    void each_version(const Work& work) {
        bool any = false;
        for (const auto& version : day48::half_top_k_versions<E>()) {
            if (!version.cannot_run({}).empty()) continue;
            SCOPED_TRACE(version.name);
            any = true;
            work(version);
        }
        if (!any) GTEST_SKIP() << day48::half_top_k_versions<E>().front().cannot_run({});
    }

    // `b`: op(B), d x n, packed. EXACT: values and indices are those of the reference. Otherwise
    // values may be off by d roundings of a sum that tensor cores truncate (half_mma.cuh).
    void expect_right(const TopKShape& s, std::span<const float> a, std::span<const float> b, bool exact,
                      const Layout& a_layout = {}, const Layout& b_layout = kRows) {
        each_version([&](const auto& version) {
            const std::string where = course::name(s.metric) + ", " + day48::name(s.order) + " " +
                                      std::to_string(s.k) + " of " + std::to_string(s.count) + " " +
                                      std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
                                      std::to_string(s.d);
            course::TestBatch<const E> a_device(as_halves<E>(a), s.count, s.m, s.d, a_layout);
            course::TestBatch<const E> b_device(as_halves<E>(b), s.count, s.d, s.n, b_layout);
            GuardedBuffer<float> values(s.count * s.m * s.k);
            GuardedBuffer<std::uint32_t> indices(values.size());
            GuardedBuffer<std::uint64_t> scratch(version.launcher.scratch_size(s));
            scratch.copy_from(std::vector<std::uint64_t>(scratch.size()));  // 0: better than all keys
            version.launcher.launch({.operands = {a_device.view(), b_device.view(), a_layout.op, b_layout.op},
                                     .metric = s.metric,
                                     .order = s.order,
                                     .k = s.k,
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
            for (std::size_t i = 0; i < s.count; ++i) {
                const auto distances =
                    course::distances_on_cpu(s.metric, s.m, s.n, s.d, a.subspan(i * s.m * s.d, s.m * s.d),
                                             b.subspan(i * s.d * s.n, s.d * s.n));
                compare(s, distances, std::span(got).subspan(i * s.m * s.k, s.m * s.k),
                        std::span(at).subspan(i * s.m * s.k, s.m * s.k), exact, where);
            }
        });
    }

    static void compare(const TopKShape& s, const course::DistancesOnCpu& distances,
                        std::span<const float> got, std::span<const std::uint32_t> at, bool exact,
                        const std::string& where) {
        const course::Bound bound{.terms = s.d + 4, .factor = exact ? 0.0 : 2.0};
        const auto expected = day48::top_k_on_cpu(s.order, s.k, s.m, s.n, distances);
        const auto result = course::verify(got, expected.values, bound, expected.magnitudes, s.k);
        ASSERT_TRUE(result.ok()) << where << ": " << result.message();
        if (exact) {
            const auto same = course::verify_exact(at, expected.indices, s.k);
            ASSERT_TRUE(same.ok()) << where << ", indices: " << same.message();
            return;
        }
        for (std::size_t row = 0; row < s.m; ++row) {
            std::vector<std::uint32_t> named(at.begin() + static_cast<std::ptrdiff_t>(row * s.k),
                                             at.begin() + static_cast<std::ptrdiff_t>((row + 1) * s.k));
            for (std::size_t i = 0; i < s.k; ++i) {
                ASSERT_LT(named[i], s.n) << where << ", row " << row << ", number " << i;
                const std::size_t place = row * s.n + named[i];
                ASSERT_LE(std::abs(distances.values[place] - static_cast<double>(got[row * s.k + i])),
                          bound.roundings() * 1.2e-7 * distances.magnitudes[place])
                    << where << ", row " << row << ", number " << i << ", column " << named[i];
            }
            std::ranges::sort(named);
            EXPECT_EQ(std::ranges::adjacent_find(named), named.end()) << where << ": a column twice";
        }
    }

    void expect_exact(const TopKShape& s, const Layout& a_layout = {}, const Layout& b_layout = kRows) {
        expect_right(s, integers(s.count * s.m * s.d, 1), integers(s.count * s.d * s.n, 2), true, a_layout,
                     b_layout);
    }

    void expect_near(const TopKShape& s, DataPattern pattern) {
        const auto a = course::make_data<E>(s.count * s.m * s.d, pattern, 1);
        const auto b = course::make_data<E>(s.count * s.d * s.n, pattern, 2);
        expect_right(s, as_floats<E>(a), as_floats<E>(b), false);
    }
};

using HalfTypes = ::testing::Types<__half, __nv_bfloat16>;
TYPED_TEST_SUITE(HalfTopKTest, HalfTypes);

// Many ties: parts of a tile, several tiles of a row, several rows of tiles; K of parts of a step,
// and of several.
TYPED_TEST(HalfTopKTest, ShapesWithManyTies) {
    for (const std::size_t n : {33, 64, 65, 255, 256, 257, 1000})
        this->expect_exact({.m = 5, .n = n, .d = 8, .k = 33});
    for (const std::size_t m : {1, 64, 65, 128, 129})
        this->expect_exact({.m = m, .n = 300, .d = 16, .k = 7, .order = Order::kLargest});
    for (const std::size_t d : {1, 63, 64, 65, 136})
        this->expect_exact({.m = 3, .n = 600, .d = d, .k = 100, .metric = Metric::kDot});
    this->expect_exact({.m = 130, .n = 280, .d = 24, .count = 2, .k = 12});
    this->expect_exact({.m = 2, .n = 1024, .d = 4, .k = 1024});
}

// Rows that TMA can address, so that half_wgmma does not leave them to half_mma: parts of the 64
// queries of a consumer, of the 256 points of a tile and of the 64 numbers of a step; more steps
// than there are stages; several products.
TYPED_TEST(HalfTopKTest, ShapesOfAlignedRows) {
    for (const std::size_t n : {127, 128, 129})
        this->expect_exact({.m = 5, .n = n, .d = 8, .k = 33});
    for (const std::size_t m : {15, 16, 17, 63, 127})
        this->expect_exact({.m = m, .n = 300, .d = 16, .k = 7, .order = Order::kLargest});
    for (const std::size_t d : {56, 72, 264, 584})
        this->expect_exact({.m = 3, .n = 600, .d = d, .k = 100, .metric = Metric::kDot});
    this->expect_exact({.m = 130, .n = 280, .d = 264, .count = 3, .k = 12});
    this->expect_exact({.m = 70, .n = 1030, .d = 40, .k = 1024, .order = Order::kLargest});
}

TYPED_TEST(HalfTopKTest, EveryMetricOfRandomNumbers) {
    for (const Metric metric : {Metric::kDot, Metric::kSquaredL2, Metric::kCosine}) {
        for (const Order order : {Order::kSmallest, Order::kLargest})
            this->expect_near({.m = 20, .n = 700, .d = 40, .k = 20, .metric = metric, .order = order},
                              DataPattern::kSignedUniform);
    }
    this->expect_near({.m = 3, .n = 300, .d = 500, .k = 5}, DataPattern::kNormal);
}

TYPED_TEST(HalfTopKTest, Layouts) {
    const TopKShape s{.m = 20, .n = 270, .d = 24, .count = 2, .k = 9};
    this->expect_exact(s, {.padding = 8}, {.op = Op::kTranspose, .padding = 16});
    this->expect_exact(s, {.padding = 3}, kRows);
    this->expect_exact(s, {.misaligned_by = 1}, {.op = Op::kTranspose, .padding = 4});
    this->expect_exact(s, {.pointers = true}, {.op = Op::kTranspose, .misaligned_by = 4, .pointers = true});
}

// Sorted: every element of a tile is better than all before it, so that lists fill up.
TYPED_TEST(HalfTopKTest, FullListsAndEqualElements) {
    const TopKShape s{.m = 2, .n = 2048, .d = 1, .k = 16, .metric = Metric::kDot};
    std::vector<float> b(s.n);
    for (std::size_t i = 0; i < s.n; ++i)
        b[i] = static_cast<float>((s.n - 1 - i) / 16);
    for (const auto& [a_layout, b_layout] :
         {std::pair{Layout{}, kRows}, std::pair{kPaddedTo8, kRowsPaddedTo8}}) {
        this->expect_right(s, std::vector<float>{1, -1}, b, true, a_layout, b_layout);
        this->expect_right(s, std::vector<float>{0, 0}, b, true, a_layout, b_layout);
    }
}

// As TopKTest.EqualElementsOfBlocksThatShareARow: each block publishes the threshold 3, and the
// first one has an element equal to it, in its last tile. The others are 3 + 2^-22, the next float,
// so that no threshold is between.
TYPED_TEST(HalfTopKTest, EqualElementsOfBlocksThatShareARow) {
    const std::size_t blocks = std::min(course::multiprocessors(), 1024u);
    constexpr std::size_t kShare = 8 * 256;
    const TopKShape s{.m = 1, .n = blocks * kShare, .d = 2, .k = blocks, .metric = Metric::kDot};
    std::vector<float> b(s.d * s.n, 3);
    std::fill_n(b.begin() + static_cast<std::ptrdiff_t>(s.n), s.n, 0x1p-11f);
    for (std::size_t block = 0; block < blocks; ++block)
        b[s.n + block * kShare + 5] = 0;
    b[s.n + kShare - 7] = 0;
    for (const std::size_t padding : {0, 6})
        this->expect_right(s, std::vector<float>{1, 0x1p-11f}, b, true, {.padding = padding},
                           {.op = Op::kTranspose, .padding = padding});
}

// Blocks that end in the middle of a row of tiles have parts of several rows: a threshold of one
// row must not be used for another. As TopKTest.BoundsBelongToOneRow.
TYPED_TEST(HalfTopKTest, BoundsBelongToOneRow) {
    for (const float of_product : {256.0f, -256.0f}) {
        const TopKShape s{.m = 72,
                          .n = 3 * 256,
                          .d = 8,
                          .count = std::min<std::size_t>(course::multiprocessors() + 1, 200),
                          .k = 40,
                          .metric = Metric::kDot};
        // The sum is of_product * product + column: numbers that both types hold.
        std::vector<float> a(s.count * s.m * s.d);
        std::vector<float> b(s.count * s.d * s.n);
        for (std::size_t i = 0; i < s.count * s.m; ++i)
            std::fill_n(a.begin() + static_cast<std::ptrdiff_t>(i * s.d), 3, 1.0f);
        for (std::size_t product = 0; product < s.count; ++product) {
            float* const of = b.data() + product * s.d * s.n;
            for (std::size_t col = 0; col < s.n; ++col) {
                of[col] = of_product * static_cast<float>(product);
                of[s.n + col] = static_cast<float>(col / 16 * 16);
                of[2 * s.n + col] = static_cast<float>(col % 16);
            }
        }
        this->expect_right(s, a, b, true);
    }
}

// NaN after all numbers in both orders.
TYPED_TEST(HalfTopKTest, NanAndInfinity) {
    std::vector<float> b(300, 3);
    b[40] = -kInf;
    b[140] = kInf;
    b[100] = b[260] = kNan;
    for (const Order order : {Order::kSmallest, Order::kLargest}) {
        for (const auto& [a_layout, b_layout] :
             {std::pair{Layout{}, kRows}, std::pair{kPaddedTo8, kRowsPaddedTo8}})
            this->expect_right({.m = 2, .n = 300, .d = 1, .k = 300, .metric = Metric::kDot, .order = order},
                               std::vector<float>{1, 2}, b, true, a_layout, b_layout);
    }
}

// half_wgmma leaves to half_mma what TMA cannot load, and nothing else: the tests above would not
// notice if it left everything.
TYPED_TEST(HalfTopKTest, WhatHalfWgmmaLeavesToHalfMma) {
    using E = TypeParam;
    const auto reason = [](std::size_t d, const Layout& a_layout, const Layout& b_layout) {
        constexpr std::size_t kCount = 2, kM = 4, kN = 60;
        course::TestBatch<const E> a(as_halves<E>(integers(kCount * kM * d, 1)), kCount, kM, d, a_layout);
        course::TestBatch<const E> b(as_halves<E>(integers(kCount * d * kN, 2)), kCount, d, kN, b_layout);
        return day48::why_no_half_wgmma<E>({a.view(), b.view(), a_layout.op, b_layout.op});
    };
    // "" on Hopper.
    const std::string of_gpu =
        course::find_version(day48::half_top_k_versions<E>(), "half_wgmma").cannot_run({});
    EXPECT_EQ(reason(8, {}, kRows), of_gpu);
    EXPECT_EQ(reason(1, kPaddedTo8, kRowsPaddedTo8), of_gpu);
    EXPECT_EQ(reason(584, {.padding = 8}, {.op = Op::kTranspose, .padding = 16}), of_gpu);
    EXPECT_EQ(reason(20, {}, kRows),
              "A has an address % 16 of 0 and rows that are 40 bytes apart; expected 0 and a multiple of 16");
    EXPECT_EQ(reason(24, {}, {.op = Op::kTranspose, .misaligned_by = 4}),
              "B has an address % 16 of 8 and rows that are 48 bytes apart; expected 0 and a multiple of 16");
    EXPECT_EQ(reason(24, {.pointers = true}, kRows), "A is behind pointers, which only a kernel can read");
}

TYPED_TEST(HalfTopKTest, RefusesWhatItCannotDo) {
    using E = TypeParam;
    this->expect_exact({.m = 0, .n = 50, .d = 3, .k = 5});
    this->each_version([](const auto& version) {
        const TopKShape s{.m = 4, .n = 60, .d = 8, .k = 5};
        course::DeviceBuffer<E> a(s.m * s.d);
        course::DeviceBuffer<E> b(s.n * s.d);
        course::DeviceBuffer<float> values(s.m * s.k);
        course::DeviceBuffer<std::uint32_t> indices(s.m * s.k);
        course::DeviceBuffer<std::uint64_t> scratch(version.launcher.scratch_size(s));
        const auto refused = [&](auto&& change) {
            day48::TopKMatmulOf<E> matmul{.operands = {.a = {std::as_const(a).matrix(s.m, s.d)},
                                                       .b = {std::as_const(b).matrix(s.n, s.d)},
                                                       .op_b = Op::kTranspose},
                                          .k = s.k,
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
                  "top-k matmul: the layout is NN; expected NT for 16-bit operands: rows of A and rows of B "
                  "along K");
        EXPECT_EQ(refused([](auto& matmul) { matmul.metric = Metric::kDifferences; }),
                  "top-k matmul: the metric is differences, which is no product; expected dot, squared_l2 or "
                  "cosine");
        EXPECT_EQ(refused([](auto& matmul) { matmul.k = 1025; }),
                  "top-k matmul: k is 1025; expected 1 to 1024");
        EXPECT_EQ(
            refused([](auto& matmul) { matmul.scratch = {}; }),
            "top-k matmul: scratch has 0 elements; expected at least " + std::to_string(scratch.size()));
        EXPECT_EQ(refused([](auto& matmul) { matmul.k = 61; }),
                  "top-k matmul: k is 61, but there are 60 columns of op(B) to choose from; expected at most "
                  "as many");
        EXPECT_EQ(refused([&](auto& matmul) {
                      matmul.operands.a = {std::as_const(a).matrix(s.m, 0)};
                      matmul.operands.b = {std::as_const(b).matrix(s.n, 0)};
                  }),
                  "top-k matmul: vectors have 0 numbers; expected at least 1");
    });
}

}  // namespace

// The k best of each row beyond 1024: the borders between passes.
#include "many_best.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/test_operands.hpp"

namespace {

using course::GuardedBuffer;
using course::Metric;
using course::Op;
using course::refusal;
using day48::Order;
using day48::TopKShape;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Integers, so that all distances are exact and only one answer is right.
std::vector<float> integers(std::size_t size, unsigned values, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float> all(size);
    for (float& x : all)
        x = static_cast<float>(random.below(values)) - static_cast<float>(values / 2);
    return all;
}

class ManyBestTest : public course::DeviceTest {
  protected:
    // Points are rows of B.
    static void expect_exact(const TopKShape& s, std::span<const float> queries,
                             std::span<const float> points) {
        const std::string where = day48::name(s.order) + " " + std::to_string(s.k) + " of " +
                                  std::to_string(s.count) + " " + std::to_string(s.m) + " x " +
                                  std::to_string(s.n) + " x " + std::to_string(s.d);
        course::TestBatch<const float> a(queries, s.count, s.m, s.d, {});
        course::TestBatch<const float> b(points, s.count, s.d, s.n, {.op = Op::kTranspose});
        GuardedBuffer<float> values(s.count * s.m * s.k);
        GuardedBuffer<std::uint32_t> indices(values.size());
        GuardedBuffer<std::uint64_t> scratch(day48::many_best_scratch_size(s));
        day48::launch_many_best({.operands = {a.view(), b.view(), Op::kNone, Op::kTranspose},
                                 .metric = s.metric,
                                 .order = s.order,
                                 .k = s.k,
                                 .values = values.span(),
                                 .indices = indices.span(),
                                 .scratch = scratch.span()},
                                nullptr);
        const std::vector<float> got_values = values.to_host();
        const std::vector<std::uint32_t> got_indices = indices.to_host();
        EXPECT_EQ(values.damage() + indices.damage() + scratch.damage() + a.damage() + b.damage(), "")
            << where;
        for (std::size_t i = 0; i < s.count; ++i) {
            const auto distances =
                course::distances_on_cpu(s.metric, s.m, s.n, s.d, queries.subspan(i * s.m * s.d, s.m * s.d),
                                         points.subspan(i * s.d * s.n, s.d * s.n));
            const auto expected = day48::top_k_on_cpu(s.order, s.k, s.m, s.n, distances);
            const auto of_product = [&](const auto& all) {
                return std::span(all).subspan(i * s.m * s.k, s.m * s.k);
            };
            const auto same_values =
                course::verify(of_product(got_values), expected.values, {.factor = 0}, {}, s.k);
            ASSERT_TRUE(same_values.ok()) << where << ": " << same_values.message();
            const auto same_indices = course::verify_exact(of_product(got_indices), expected.indices, s.k);
            ASSERT_TRUE(same_indices.ok()) << where << ", indices: " << same_indices.message();
        }
    }

    static void expect_exact(const TopKShape& s, unsigned values) {
        expect_exact(s, integers(s.count * s.m * s.d, values, 1), integers(s.count * s.d * s.n, values, 2));
    }
};

// One more than a pass, whole passes, and the rest of one; hardly any ties.
TEST_F(ManyBestTest, PassesFollowEachOther) {
    for (const std::size_t k : {1023, 1024, 1025, 2048, 2049, 4096})
        expect_exact({.m = 2, .n = 5000, .d = 4, .k = k}, 2001);
    expect_exact({.m = 1, .n = 12000, .d = 4, .k = 10000}, 2001);
}

// A product of two numbers from -2 to 2 has seven values: each border is within equal elements.
TEST_F(ManyBestTest, EqualElementsOnBothSidesOfABorder) {
    for (const Order order : {Order::kSmallest, Order::kLargest}) {
        expect_exact({.m = 3, .n = 4000, .d = 1, .k = 3100, .metric = Metric::kDot, .order = order}, 5);
        expect_exact({.m = 2, .n = 2500, .d = 2, .count = 2, .k = 2100, .order = order}, 3);
    }
}

TEST_F(ManyBestTest, OfEqualElementsTheLowestColumnsInOrder) {
    const std::vector<float> zeros(3000);
    expect_exact({.m = 1, .n = 3000, .d = 1, .k = 2500}, std::span(zeros).first(1), zeros);
}

// -0 and 0 are equal, also if a border is between them.
TEST_F(ManyBestTest, ZerosOfBothSignsAroundABorder) {
    std::vector<float> points(2200);
    for (std::size_t i = 0; i < points.size(); ++i)
        points[i] = i % 3 == 0 ? -0.0f : 0.0f;
    points[5] = -1;
    const std::vector<float> one = {1.0f};
    expect_exact({.m = 1, .n = points.size(), .d = 1, .k = 2100, .metric = Metric::kDot}, one, points);
}

// NaN comes last in both orders. Here 1,500 of the 2,600 results are NaN, so that a pass starts
// among numbers and one within the NaN.
TEST_F(ManyBestTest, NanOnBothSidesOfABorder) {
    std::vector<float> points = integers(3000, 101, 3);
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (i % 30 < 19) points[i] = kNan;
    }
    const std::vector<float> one = {1.0f};
    for (const Order order : {Order::kSmallest, Order::kLargest})
        expect_exact({.m = 1, .n = 3000, .d = 1, .k = 2600, .metric = Metric::kDot, .order = order}, one,
                     points);
}

TEST_F(ManyBestTest, AllColumnsAreASortedRow) {
    for (const std::size_t n : {1, 1024, 1025, 3000})
        expect_exact({.m = 2, .n = n, .d = 2, .k = n}, 41);
}

TEST_F(ManyBestTest, InfinityIsAValueLikeOthers) {
    std::vector<float> points(2100, std::numeric_limits<float>::infinity());
    points[7] = -std::numeric_limits<float>::infinity();
    points[2000] = 3;
    const std::vector<float> one = {1.0f};
    expect_exact({.m = 1, .n = 2100, .d = 1, .k = 2100, .metric = Metric::kDot}, one, points);
}

TEST_F(ManyBestTest, NothingToDo) {
    expect_exact({.m = 0, .n = 2000, .d = 3, .k = 1500}, 5);
    EXPECT_EQ(day48::passes_of(1), 1U);
    EXPECT_EQ(day48::passes_of(1024), 1U);
    EXPECT_EQ(day48::passes_of(1025), 2U);
    EXPECT_EQ(day48::passes_of(10000), 10U);
}

TEST_F(ManyBestTest, RefusesWhatDoesNotFit) {
    EXPECT_EQ(refusal([] { day48::many_best_scratch_size({.m = 1, .n = 5000, .d = 1, .k = 5001}); }),
              "top-k matmul: k is 5001; expected 1 to 5000, the number of columns of op(B)");
    EXPECT_EQ(refusal([] { day48::many_best_scratch_size({.m = 1, .n = 5000, .d = 1, .k = 0}); }),
              "top-k matmul: k is 0; expected 1 to 5000, the number of columns of op(B)");
    const TopKShape s{.m = 2, .n = 1500, .d = 3, .k = 1200};
    course::DeviceBuffer<float> a(s.m * s.d);
    course::DeviceBuffer<float> b(s.n * s.d);
    course::DeviceBuffer<float> values(s.m * s.k);
    course::DeviceBuffer<std::uint32_t> indices(s.m * s.k);
    course::DeviceBuffer<std::uint64_t> scratch(day48::many_best_scratch_size(s));
    const auto refused = [&](auto&& change) {
        day48::TopKMatmul matmul{.operands = {.a = {std::as_const(a).matrix(s.m, s.d)},
                                              .b = {std::as_const(b).matrix(s.n, s.d)},
                                              .op_b = Op::kTranspose},
                                 .k = s.k,
                                 .values = values.span(),
                                 .indices = indices.span(),
                                 .scratch = scratch.span()};
        change(matmul);
        return refusal([&] { day48::launch_many_best(matmul, nullptr); });
    };
    EXPECT_EQ(refused([](auto& matmul) { matmul.k = 1501; }),
              "top-k matmul: k is 1501; expected 1 to 1500, the number of columns of op(B)");
    EXPECT_EQ(refused([&](auto& matmul) { matmul.values = values.span().subspan(0, 2399); }),
              "top-k matmul: values has 2399 elements; expected 2400, 1200 for each row");
    EXPECT_EQ(refused([&](auto& matmul) { matmul.indices = indices.span().subspan(0, 2399); }),
              "top-k matmul: indices has 2399 elements; expected 2400, 1200 for each row");
    const std::size_t needed = scratch.size();
    EXPECT_EQ(refused([&](auto& matmul) { matmul.scratch = scratch.span().subspan(0, needed - 1); }),
              "top-k matmul: scratch has " + std::to_string(needed - 1) + " elements; expected at least " +
                  std::to_string(needed));
}

}  // namespace

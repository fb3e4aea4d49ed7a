// Reductions of products: every version, metric, reduction and direction.
#include "reduce_in_matmul.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/test_operands.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;
using day46::Along;
using Layout = course::BatchLayout;
using course::Metric;
using course::Op;
using course::TestBatch;
using day46::ReduceShape;
using day46::Reduction;

constexpr Metric kMetrics[] = {Metric::kDot, Metric::kSquaredL2, Metric::kDifferences, Metric::kCosine};
constexpr Reduction kReductions[] = {Reduction::kMin, Reduction::kMax, Reduction::kSum,
                                     Reduction::kLogSumExp};
constexpr Along kAlong[] = {Along::kRows, Along::kColumns};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

bool is_extremum(Reduction reduction) {
    return reduction == Reduction::kMin || reduction == Reduction::kMax;
}

// What a version makes of packed operands, products one after the other.
struct Results {
    std::vector<float> values;
    std::vector<std::uint32_t> indices;
    std::string damage;
};

class ReduceTest : public course::DeviceTestWithParam<const day46::Reduce*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day46::Reduce*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    // Whether one kernel computes distances and another reduces them: the first has nothing to do
    // with the reduction, the second nothing with the metric. Each in every case, but not each case
    // of one with each of the other; on a CPU a block for every result takes long.
    bool is_in_two_kernels() const { return course::is_cpu_stand_in() && GetParam()->name == "unfused"; }

    Results run(const ReduceShape& s, std::span<const float> a, std::span<const float> b,
                const Layout& a_layout = {}, const Layout& b_layout = {}) const {
        TestBatch<const float> a_device(a, s.count, s.m, s.d, a_layout);
        TestBatch<const float> b_device(b, s.count, s.d, s.n, b_layout);
        const std::size_t size = s.count * (s.along == Along::kRows ? s.m : s.n);
        GuardedBuffer<float> values(size);
        GuardedBuffer<std::uint32_t> indices(is_extremum(s.reduction) ? size : 0);
        GuardedBuffer<std::uint64_t> scratch(GetParam()->launcher.scratch_size(s));
        GetParam()->launcher.launch({.operands = {a_device.view(), b_device.view(), a_layout.op, b_layout.op},
                                     .metric = s.metric,
                                     .reduction = s.reduction,
                                     .along = s.along,
                                     .values = values.span(),
                                     .indices = indices.span(),
                                     .scratch = scratch.span()},
                                    nullptr);
        return {
            values.to_host(), indices.to_host(),
            values.damage() + indices.damage() + scratch.damage() + a_device.damage() + b_device.damage()};
    }

    // Against the reference. EXACT: all numbers are small integers, so that indices must be equal
    // too; otherwise the element that an index names must be as good as the best one, but for
    // rounding.
    void expect_right(const ReduceShape& s, DataPattern pattern = DataPattern::kSignedUniform,
                      const Layout& a_layout = {}, const Layout& b_layout = {}) const {
        const auto a = course::make_data<float>(s.count * s.m * s.d, pattern, 1);
        const auto b = course::make_data<float>(s.count * s.d * s.n, pattern, 2);
        compare(s, a, b, run(s, a, b, a_layout, b_layout), false,
                std::string(course::name(pattern)) + (a_layout.op == Op::kNone ? ", N" : ", T") +
                    (b_layout.op == Op::kNone ? "N" : "T"));
    }

    void expect_exact(const ReduceShape& s, std::span<const float> a, std::span<const float> b) const {
        compare(s, a, b, run(s, a, b), true, "exact");
    }

    static void compare(const ReduceShape& s, std::span<const float> a, std::span<const float> b,
                        const Results& got, bool exact, const std::string& what) {
        const std::string where = what + ", " + course::name(s.metric) + ", " + day46::name(s.reduction) +
                                  (s.along == Along::kRows ? " along rows of " : " along columns of ") +
                                  std::to_string(s.count) + " " + std::to_string(s.m) + " x " +
                                  std::to_string(s.n) + " x " + std::to_string(s.d);
        EXPECT_EQ(got.damage, "") << where;
        const bool rows = s.along == Along::kRows;
        const std::size_t size = rows ? s.m : s.n;
        const std::size_t terms = s.d + 4 + (is_extremum(s.reduction) ? 0 : rows ? s.n : s.m);
        const course::Bound bound{.terms = terms, .growth = course::Growth::kSquareRoot};
        for (std::size_t i = 0; i < s.count; ++i) {
            const auto distances =
                course::distances_on_cpu(s.metric, s.m, s.n, s.d, a.subspan(i * s.m * s.d, s.m * s.d),
                                         b.subspan(i * s.d * s.n, s.d * s.n));
            const auto expected = day46::reduce_on_cpu(s.reduction, s.along, s.m, s.n, distances);
            const std::span<const float> values = std::span(got.values).subspan(i * size, size);
            const auto result = course::verify(values, expected.values, bound, expected.magnitudes);
            ASSERT_TRUE(result.ok()) << where << ", product " << i << ": " << result.message();
            if (!is_extremum(s.reduction)) continue;
            for (std::size_t r = 0; r < size; ++r) {
                const std::size_t index = got.indices[i * size + r];
                if (exact) {
                    ASSERT_EQ(index, expected.indices[r]) << where << ", product " << i << ", result " << r;
                    continue;
                }
                ASSERT_LT(index, rows ? s.n : s.m) << where << ", product " << i << ", result " << r;
                const std::size_t at = rows ? r * s.n + index : index * s.n + r;
                const double named = distances.values[at];
                const double allowed =
                    bound.roundings() * 1.2e-7 * (distances.magnitudes[at] + expected.magnitudes[r]);
                ASSERT_TRUE(std::isnan(named) ? std::isnan(expected.values[r])
                                              : std::abs(named - expected.values[r]) <= allowed)
                    << where << ", product " << i << ", result " << r << ": index " << index << " names "
                    << named << ", the best is " << expected.values[r];
            }
        }
    }
};

INSTANTIATE_TEST_SUITE_P(DayFortySix, ReduceTest, course::each_of(day46::reduce_versions()),
                         course::VersionName());

TEST_P(ReduceTest, EveryMetricReductionAndDirection) {
    for (const Metric metric : kMetrics) {
        for (const Reduction reduction : kReductions) {
            for (const Along along : kAlong) {
                if (is_in_two_kernels() && metric != Metric::kCosine && reduction != Reduction::kSum)
                    continue;
                expect_right({40, 70, 20, 1, metric, reduction, along});
                expect_right({33, 300, 9, 2, metric, reduction, along}, DataPattern::kNormal,
                             {.op = Op::kTranspose}, {.op = Op::kTranspose, .padding = 1});
            }
        }
    }
}

TEST_P(ReduceTest, Shapes) {
    for (const Reduction reduction : kReductions) {
        for (const std::size_t n : {1, 31, 255, 256, 257, 513, 1025})
            expect_right({7, n, 12, 1, Metric::kDot, reduction, Along::kRows});
        if (is_in_two_kernels() && reduction != Reduction::kMin) continue;
        for (const std::size_t m : {1, 31, 127, 128, 129, 257})
            expect_right({m, 37, 8, 1, Metric::kSquaredL2, reduction, Along::kRows},
                         DataPattern::kSignedUniform, {}, {.op = Op::kTranspose});
        for (const std::size_t k : {0, 1, 7, 8, 9, 25, 33, 100})
            expect_right({9, 33, k, 2, Metric::kCosine, reduction, Along::kColumns});
    }
}

TEST_P(ReduceTest, Patterns) {
    for (const Reduction reduction : kReductions) {
        for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kSorted,
                                          DataPattern::kReversed, DataPattern::kHugeNextToTiny})
            expect_right({20, 280, 16, 1, Metric::kDot, reduction, Along::kRows}, pattern);
    }
}

// Products of small integers are exact: of equal extrema the first counts, in every tile, warp and
// lane.
TEST_P(ReduceTest, TiesGoToTheLowestIndex) {
    course::Random random(7);
    SCOPED_TRACE("course::Random seed 7");
    for (const Along along : kAlong) {
        for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
            for (const Metric metric : {Metric::kDot, Metric::kSquaredL2, Metric::kDifferences}) {
                if (is_in_two_kernels() && metric != Metric::kDot) continue;
                const ReduceShape s{50, 600, 3, 1, metric, reduction, along};
                std::vector<float> a(s.m * s.d);
                std::vector<float> b(s.d * s.n);
                for (float& x : a)
                    x = static_cast<float>(random.integer(-2, 2));
                for (float& x : b)
                    x = static_cast<float>(random.integer(-2, 2));
                expect_exact(s, a, b);
                std::ranges::fill(b, 1.0f);  // all columns are equal
                expect_exact(s, a, b);
            }
        }
    }
}

// A single best column, wherever it stands.
TEST_P(ReduceTest, FindsTheOnlyOne) {
    const ReduceShape s{3, 530, 1, 1, Metric::kDot, Reduction::kMin, Along::kRows};
    const std::vector<float> a(s.m, 1.0f);
    for (const std::size_t at : {0, 3, 4, 31, 32, 63, 64, 200, 255, 256, 300, 511, 512, 529}) {
        std::vector<float> b(s.n, 2.0f);
        b[at] = 1.0f;
        expect_exact(s, a, b);
        b[at] = -kInf;
        expect_exact(s, a, b);
        std::ranges::fill(b, kInf);
        expect_exact(s, a, b);
    }
}

// NaN is before all numbers, and the first of them counts; a sum of one is one. What is infinite
// stays it.
TEST_P(ReduceTest, NanAndInfinity) {
    for (const Reduction reduction : kReductions) {
        const ReduceShape s{2, 300, 1, 1, Metric::kDot, reduction, Along::kRows};
        const std::vector<float> a = {1.0f, 2.0f};
        const auto with = [&](std::vector<std::pair<std::size_t, float>> places, float fill = 1.0f) {
            std::vector<float> b(s.n, fill);
            for (const auto& [at, value] : places)
                b[at] = value;
            expect_exact(s, a, b);
        };
        with({{280, kNan}});
        with({{280, kNan}, {17, kNan}, {18, -kInf}, {3, kInf}});
        with({{18, -kInf}});
        with({{18, kInf}});
        with({{5, kInf}, {290, kInf}});
        with({}, -kInf);
        with({}, kInf);
        with({{299, 0.5f}}, -kInf);
        with({{0, 1e38f}, {299, -1e38f}}, 0.0f);
    }
}

// What tensor cores take: whole packs in each row, and vectors that are long enough.
TEST_P(ReduceTest, AlignedRows) {
    for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
        for (const Metric metric : {Metric::kDot, Metric::kSquaredL2, Metric::kCosine}) {
            if (is_in_two_kernels() && reduction != Reduction::kMin) continue;
            for (const auto& [m, n, d] :
                 {std::array{130, 300, 36}, {1, 4, 16}, {257, 132, 100}, {20, 1000, 64}})
                expect_right({static_cast<std::size_t>(m), static_cast<std::size_t>(n),
                              static_cast<std::size_t>(d), 1, metric, reduction, Along::kRows},
                             DataPattern::kNormal);
        }
    }
    const ReduceShape s{150, 600, 32, 1, Metric::kDot, Reduction::kMin, Along::kRows};
    course::Random random(8);
    std::vector<float> a(s.m * s.d);
    std::vector<float> b(s.d * s.n);
    for (auto* values : {&a, &b}) {
        for (float& x : *values)
            x = static_cast<float>(random.integer(-2, 2));
    }
    expect_exact(s, a, b);  // ties
    std::vector<float> equal_columns(s.d * s.n, 1.0f);
    expect_exact(s, a, equal_columns);
}

// TF32 has no Inf that can be split: such results are computed in FP32.
TEST_P(ReduceTest, NanAndInfinityInAlignedRows) {
    for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
        const ReduceShape s{131, 400, 20, 1, Metric::kDot, reduction, Along::kRows};
        const std::vector<float> a(s.m * s.d, 1.0f);
        std::vector<float> b(s.d * s.n, 2.0f);
        for (const auto& [col, value] :
             {std::pair{5, kInf}, {399, -kInf}, {200, 3e38f}, {130, kNan}, {129, kNan}}) {
            b[7 * s.n + static_cast<std::size_t>(col)] = value;
            expect_exact(s, a, b);
        }
    }
}

// A thread has several rows, of which only one has a NaN.
TEST_P(ReduceTest, NanInOneRowOfA) {
    for (const Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
        const ReduceShape s{131, 400, 20, 1, Metric::kDot, reduction, Along::kRows};
        std::vector<float> a(s.m * s.d, 1.0f);
        const std::vector<float> b(s.d * s.n, 2.0f);
        for (const std::size_t row : {0, 77}) {
            a[row * s.d + 7] = kNan;
            expect_exact(s, a, b);
        }
    }
}

TEST_P(ReduceTest, ExponentialsDoNotOverflow) {
    for (const float scale : {1000.0f, -1000.0f, 1e30f}) {
        const ReduceShape s{2, 290, 1, 1, Metric::kDot, Reduction::kLogSumExp, Along::kRows};
        const std::vector<float> a = {1.0f, 0.5f};
        auto b = course::make_data<float>(s.n, DataPattern::kSorted, 5);
        for (float& x : b)
            x *= scale;
        compare(s, a, b, run(s, a, b), false, "scaled");
    }
}

// Whatever the order in which blocks finish: sums are added in the same order. Several tiles for
// each block, and as many blocks for a row as there can be.
TEST_P(ReduceTest, EveryRunGivesTheSameBits) {
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    const std::size_t n = 2 * 256 * std::clamp(course::multiprocessors(), 4u, 32u);
    for (const Reduction reduction : {Reduction::kSum, Reduction::kLogSumExp}) {
        const ReduceShape s{40, n, 8, 1, Metric::kDot, reduction, Along::kRows};
        const auto a = course::make_data<float>(s.m * s.d, DataPattern::kNormal, 1);
        const auto b = course::make_data<float>(s.d * s.n, DataPattern::kNormal, 2);
        const std::vector<float> first = run(s, a, b).values;
        for (int again = 0; again < 3; ++again)
            EXPECT_TRUE(std::ranges::equal(run(s, a, b).values, first, {}, bits, bits))
                << day46::name(reduction);
    }
}

TEST_P(ReduceTest, NothingToReduce) {
    for (const Along along : kAlong) {
        expect_right({0, 0, 4, 1, Metric::kDot, Reduction::kSum, along});
        expect_right({5, 7, 4, 0, Metric::kSquaredL2, Reduction::kMin, along});
    }
    expect_right({0, 5, 4, 1, Metric::kDot, Reduction::kMin, Along::kRows});
    expect_right({5, 0, 4, 1, Metric::kDot, Reduction::kMax, Along::kColumns});
    expect_right({5, 0, 4, 1, Metric::kDot, Reduction::kSum, Along::kRows});
    expect_right({0, 5, 4, 2, Metric::kDot, Reduction::kLogSumExp, Along::kColumns});
}

TEST_P(ReduceTest, RandomShapes) {
    course::Random random(4546);
    SCOPED_TRACE("course::Random seed 4546");
    for (int round = 0; round < (is_in_two_kernels() ? 8 : 20); ++round) {
        const ReduceShape s{1 + random.below(300),  1 + random.below(600),     random.below(40),
                            1 + random.below(3),    kMetrics[random.below(4)], kReductions[random.below(4)],
                            kAlong[random.below(2)]};
        const auto layout = [&] {
            return Layout{random.below(2) == 0 ? Op::kNone : Op::kTranspose, random.below(5), random.below(3),
                          random.below(2) == 1};
        };
        expect_right(s, DataPattern::kNormal, layout(), layout());
    }
}

TEST_P(ReduceTest, RunsOnTheGivenStream) {
    const ReduceShape s{20, 30, 10, 1, Metric::kDot, Reduction::kMin, Along::kRows};
    TestBatch<const float> a(std::vector<float>(s.m * s.d, 1.0f), 1, s.m, s.d, {});
    TestBatch<const float> b(std::vector<float>(s.d * s.n, 1.0f), 1, s.d, s.n, {});
    GuardedBuffer<float> values(s.m);
    DeviceBuffer<std::uint64_t> scratch(GetParam()->launcher.scratch_size(s));
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher.launch(
            {.operands = {a.view(), b.view()}, .values = values.span(), .scratch = scratch.span()}, stream);
    });
    EXPECT_TRUE(std::isnan(values.to_host().front())) << "it ran instead of being captured";
    work.run();
    EXPECT_EQ(values.to_host(), std::vector<float>(s.m, 10.0f));
}

TEST_P(ReduceTest, RefusesBadArguments) {
    const ReduceShape s{3, 6, 4, 1, Metric::kDot, Reduction::kMin, Along::kRows};
    TestBatch<const float> a(std::vector<float>(12), 1, 3, 4, {});
    TestBatch<const float> b(std::vector<float>(24), 1, 4, 6, {});
    TestBatch<const float> empty(std::vector<float>(), 1, 4, 0, {});
    DeviceBuffer<float> values(6);
    DeviceBuffer<std::uint32_t> indices(6);
    DeviceBuffer<std::uint64_t> scratch(GetParam()->launcher.scratch_size(s));
    const day46::ReducedMatmul right{.operands = {a.view(), b.view()},
                                     .values = values.span().subspan(0, 3),
                                     .indices = indices.span().subspan(0, 3),
                                     .scratch = scratch.span()};
    const auto with = [&](auto change) {
        day46::ReducedMatmul matmul = right;
        change(matmul);
        return refusal([&] { GetParam()->launcher.launch(matmul, nullptr); });
    };
    EXPECT_EQ(with([](auto&) {}), "");
    EXPECT_EQ(with([&](auto& x) { x.operands.b = empty.view(); }),
              "reduced matmul: the min of no elements is asked for; expected at least one");
    EXPECT_EQ(with([&](auto& x) { x.along = Along::kColumns; }),
              "reduced matmul: values has 3 elements; expected 6, one for each result");
    EXPECT_EQ(with([&](auto& x) { x.indices = indices.span(); }),
              "reduced matmul: indices has 6 elements; expected 3, or none");
    EXPECT_EQ(with([&](auto& x) { x.reduction = Reduction::kSum; }),
              "reduced matmul: there are indices, but a sum has none; expected no indices");
    EXPECT_EQ(with([&](auto& x) { x.scratch = {}; }),
              "reduced matmul: scratch has 0 elements; expected at least " + std::to_string(scratch.size()));
    EXPECT_EQ(with([&](auto& x) { std::swap(x.operands.a, x.operands.b); }),
              "reduced matmul: op(A) is 4 x 6 and op(B) 3 x 4; expected as many rows of op(B) as op(A) has "
              "columns");
}

}  // namespace

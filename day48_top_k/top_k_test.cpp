// The k best of each row: every version, metric, layout and order.
#include "top_k.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
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
using Layout = course::BatchLayout;
using course::Metric;
using course::Op;
using course::TestBatch;
using day48::Order;
using day48::TopKShape;

constexpr Metric kMetrics[] = {Metric::kDot, Metric::kSquaredL2, Metric::kDifferences, Metric::kCosine};
constexpr Order kOrders[] = {Order::kSmallest, Order::kLargest};
constexpr Op kOps[] = {Op::kNone, Op::kTranspose};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The results of a version for packed operands, products one after the other.
struct Results {
    std::vector<float> values;
    std::vector<std::uint32_t> indices;
    std::string damage;
};

std::string text(const TopKShape& s) {
    return course::name(s.metric) + ", " + day48::name(s.order) + " " + std::to_string(s.k) + " of " +
           std::to_string(s.count) + " " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
           std::to_string(s.d);
}

class TopKTest : public course::DeviceTestWithParam<const day48::TopK*> {
  protected:
    static constexpr std::size_t kLeast = 16;  // numbers of a vector that fused_wgmma takes itself

    Results run(const TopKShape& s, std::span<const float> a, std::span<const float> b,
                const Layout& a_layout = {}, const Layout& b_layout = {}) const {
        TestBatch<const float> a_device(a, s.count, s.m, s.d, a_layout);
        TestBatch<const float> b_device(b, s.count, s.d, s.n, b_layout);
        GuardedBuffer<float> values(s.count * s.m * s.k);
        GuardedBuffer<std::uint32_t> indices(values.size());
        GuardedBuffer<std::uint64_t> scratch(GetParam()->launcher.scratch_size(s));
        scratch.copy_from(std::vector<std::uint64_t>(scratch.size()));  // 0: better than all keys
        GetParam()->launcher.launch({.operands = {a_device.view(), b_device.view(), a_layout.op, b_layout.op},
                                     .metric = s.metric,
                                     .order = s.order,
                                     .k = s.k,
                                     .values = values.span(),
                                     .indices = indices.span(),
                                     .scratch = scratch.span()},
                                    nullptr);
        return {
            values.to_host(), indices.to_host(),
            values.damage() + indices.damage() + scratch.damage() + a_device.damage() + b_device.damage()};
    }

    void expect_right(const TopKShape& s, DataPattern pattern = DataPattern::kSignedUniform,
                      const Layout& a_layout = {}, const Layout& b_layout = {.op = Op::kTranspose}) const {
        const auto a = course::make_data<float>(s.count * s.m * s.d, pattern, 1);
        const auto b = course::make_data<float>(s.count * s.d * s.n, pattern, 2);
        compare(s, a, b, run(s, a, b, a_layout, b_layout), false,
                std::string(course::name(pattern)) + (a_layout.op == Op::kNone ? ", N" : ", T") +
                    (b_layout.op == Op::kNone ? "N" : "T"));
    }

    void expect_exact(const TopKShape& s, std::span<const float> a, std::span<const float> b) const {
        // Too short vectors fused_wgmma leaves to fused, which has had them.
        if (GetParam()->name == "fused_wgmma" && s.d < kLeast && s.count == 1)
            return expect_exact_padded(s, a, b);
        compare(s, a, b, run(s, a, b), true, "exact");
    }

    // The same vectors with zeros behind them, and points as rows: what tensor cores take.
    void expect_exact_padded(TopKShape s, std::span<const float> a, std::span<const float> b) const {
        std::vector<float> wide_a(s.m * kLeast);
        for (std::size_t i = 0; i < a.size(); ++i)
            wide_a[i / s.d * kLeast + i % s.d] = a[i];
        std::vector<float> wide_b(b.begin(), b.end());
        wide_b.resize(kLeast * s.n);
        s.d = kLeast;
        compare(s, wide_a, wide_b, run(s, wide_a, wide_b, {}, {.op = Op::kTranspose}), true, "padded");
    }

    // Against the reference. EXACT: all numbers are small integers, so that indices must be equal
    // too. Otherwise each value must be that of the same rank, and that of the element that its
    // index names, but for rounding.
    static void compare(const TopKShape& s, std::span<const float> a, std::span<const float> b,
                        const Results& got, bool exact, const std::string& what) {
        const std::string where = what + ", " + text(s);
        EXPECT_EQ(got.damage, "") << where;
        const course::Bound bound{.terms = s.d + 4, .growth = course::Growth::kSquareRoot};
        for (std::size_t i = 0; i < s.count; ++i) {
            const auto distances =
                course::distances_on_cpu(s.metric, s.m, s.n, s.d, a.subspan(i * s.m * s.d, s.m * s.d),
                                         b.subspan(i * s.d * s.n, s.d * s.n));
            const auto expected = day48::top_k_on_cpu(s.order, s.k, s.m, s.n, distances);
            const auto values = std::span(got.values).subspan(i * s.m * s.k, s.m * s.k);
            const auto indices = std::span(got.indices).subspan(i * s.m * s.k, s.m * s.k);
            const auto result = course::verify(values, expected.values, bound, expected.magnitudes, s.k);
            ASSERT_TRUE(result.ok()) << where << ", product " << i << ": " << result.message();
            if (exact) {
                const auto same = course::verify_exact(indices, expected.indices, s.k);
                ASSERT_TRUE(same.ok()) << where << ", product " << i << ", indices: " << same.message();
                continue;
            }
            for (std::size_t row = 0; row < s.m; ++row)
                compare_row(s, distances, bound, row, values.subspan(row * s.k, s.k),
                            indices.subspan(row * s.k, s.k), where);
        }
    }

    // Values in order, and of equal ones the indices, so that none comes twice; and each index
    // names its value.
    static void compare_row(const TopKShape& s, const course::DistancesOnCpu& distances,
                            const course::Bound& bound, std::size_t row, std::span<const float> values,
                            std::span<const std::uint32_t> indices, const std::string& where) {
        const auto fail = [&](std::size_t i, const std::string& why) {
            FAIL() << where << ", row " << row << ", number " << i << ": " << why << " (column " << indices[i]
                   << ", " << values[i] << ")";
        };
        for (std::size_t i = 0; i < s.k; ++i) {
            if (indices[i] >= s.n) return fail(i, "no such column");
            const std::size_t at = row * s.n + indices[i];
            const double named = distances.values[at];
            const auto value = static_cast<double>(values[i]);
            const double allowed = bound.roundings() * 1.2e-7 * distances.magnitudes[at];
            const bool is_named =
                std::isnan(named) ? std::isnan(value) : named == value || std::abs(named - value) <= allowed;
            if (!is_named) return fail(i, "the column has another value, " + std::to_string(named));
            if (i == 0) continue;
            const float before = values[i - 1];
            const bool tie = values[i] == before || (std::isnan(values[i]) && std::isnan(before));
            const bool ordered = tie                           ? indices[i - 1] < indices[i]
                                 : std::isnan(values[i])       ? true
                                 : s.order == Order::kSmallest ? before < values[i]
                                                               : before > values[i];
            if (!ordered) return fail(i, "not behind the one before it");
        }
    }
};

INSTANTIATE_TEST_SUITE_P(DayFortyEight, TopKTest, course::each_of(day48::top_k_versions()),
                         course::VersionName());

TEST_P(TopKTest, EveryMetricOrderAndLayout) {
    for (const Metric metric : kMetrics) {
        for (const Order order : kOrders) {
            for (const Op op_a : kOps) {
                for (const Op op_b : kOps)
                    expect_right({7, 300, 9, 1, 12, metric, order}, DataPattern::kNormal, {.op = op_a},
                                 {.op = op_b, .padding = 1});
            }
        }
    }
    expect_right({6, 280, 12, 2, 5}, DataPattern::kNormal, {.op = Op::kTranspose, .pointers = true},
                 {.pointers = true});
    expect_right({6, 280, 12, 2, 5}, DataPattern::kNormal, {.padding = 4, .misaligned_by = 1},
                 {.op = Op::kTranspose, .misaligned_by = 2});
}

// As many columns as are asked for, one more, and other numbers, around a tile's 256 and a few
// times as many.
TEST_P(TopKTest, EveryK) {
    for (const std::size_t k : {1, 2, 31, 32, 33, 100, 128, 1000, 1024}) {
        for (const std::size_t n : {k, k + 1, std::size_t{1000}, std::size_t{3001}}) {
            // A thousand passes take long on a CPU, whatever their length: once is enough.
            if (course::is_cpu_stand_in() && GetParam()->name == "k_minima" && k >= 1000 && n != 1024)
                continue;
            if (n >= k) expect_right({3, n, 4, 1, k});
        }
    }
    for (const std::size_t n : {255, 256, 257}) {
        for (const std::size_t k : {1, 33, 255})
            expect_right({3, n, 4, 1, k, Metric::kDot, Order::kLargest});
    }
}

TEST_P(TopKTest, Shapes) {
    for (const std::size_t m : {1, 31, 127, 128, 129})
        expect_right({m, 300, 8, 1, 3});
    for (const std::size_t d : {0, 1, 7, 8, 9, 33})
        expect_right({3, 270, d, 1, 4, Metric::kDot});
    // Rows of tiles that end in the middle of a block's share.
    expect_right({3, 770, 8, 5, 4});
    expect_right({130, 1030, 4, 1, 4});
}

// Vectors of so many numbers that tensor cores multiply, where the points are aligned rows.
class LongVectorsTest : public TopKTest {};

INSTANTIATE_TEST_SUITE_P(DayFortyEight, LongVectorsTest,
                         testing::Values(&course::find_version(day48::top_k_versions(), "fused_wgmma")),
                         course::VersionName());

TEST_P(LongVectorsTest, MetricsOrdersLayoutsAndShapes) {
    for (const Metric metric : {Metric::kDot, Metric::kSquaredL2, Metric::kCosine}) {
        for (const Order order : kOrders) {
            for (const Op op_a : kOps)
                expect_right({5, 300, 20, 1, 12, metric, order}, DataPattern::kNormal,
                             {.op = op_a, .padding = 1}, {.op = Op::kTranspose});
        }
    }
    for (const std::size_t m : {1, 15, 16, 17, 64, 127, 128, 129})
        expect_right({m, 270, 16, 1, 3});
    for (const std::size_t d : {16, 28, 31, 32, 36, 64, 100, 132})
        expect_right({3, 300, d, 1, 40});
    for (const std::size_t n : {20, 127, 128, 129, 255, 256, 257, 1000})
        expect_right({3, n, 20, 1, 20, Metric::kDot, Order::kLargest});
    for (const std::size_t k : {1, 33, 128, 1000, 1024})
        expect_right({3, 3001, 16, 1, k});
    // Rows of tiles that end in the middle of a block's share.
    expect_right({300, 1500, 16, 1, 4});
    expect_right({5, 300, 20, 1, 7}, DataPattern::kNormal, {}, {.op = Op::kTranspose, .padding = 4});
    expect_right({5, 300, 20, 1, 7}, DataPattern::kNormal, {}, {.op = Op::kTranspose, .misaligned_by = 1});
    expect_right({5, 300, 20, 2, 7}, DataPattern::kNormal);
}

TEST_P(LongVectorsTest, Patterns) {
    for (const Order order : kOrders) {
        for (const DataPattern pattern :
             {DataPattern::kAllEqual, DataPattern::kSorted, DataPattern::kReversed,
              DataPattern::kHugeNextToTiny, DataPattern::kWithNan, DataPattern::kWithInf})
            expect_right({3, 1500, 20, 1, 40, Metric::kDot, order}, pattern);
    }
}

TEST_P(TopKTest, Patterns) {
    for (const Order order : kOrders) {
        for (const DataPattern pattern :
             {DataPattern::kAllEqual, DataPattern::kSorted, DataPattern::kReversed,
              DataPattern::kHugeNextToTiny, DataPattern::kWithNan, DataPattern::kWithInf})
            expect_right({3, 1500, 2, 1, 40, Metric::kDot, order}, pattern);
    }
}

// Products of small integers are exact: of equal elements the first counts, in every tile, warp and
// lane.
TEST_P(TopKTest, TiesGoToTheLowestIndex) {
    course::Random random(7);
    SCOPED_TRACE("course::Random seed 7");
    for (const Order order : kOrders) {
        for (const Metric metric : {Metric::kDot, Metric::kSquaredL2, Metric::kDifferences}) {
            for (const std::size_t k : {1, 50, 300}) {
                const TopKShape s{4, 1800, 3, 1, k, metric, order};
                std::vector<float> a(s.m * s.d);
                std::vector<float> b(s.d * s.n);
                for (float& x : a)
                    x = static_cast<float>(random.integer(-2, 2));
                for (float& x : b)
                    x = static_cast<float>(random.integer(-2, 2));
                expect_exact(s, a, b);
            }
        }
    }
}

// The orders in which nothing, or everything, of a tile is better than what was before it.
TEST_P(TopKTest, EqualAscendingAndDescending) {
    const std::vector<float> a = {1.0f, 2.0f};
    for (const Order order : kOrders) {
        for (const std::size_t k : {1, 20, 128}) {
            const TopKShape s{2, 4400, 1, 1, k, Metric::kDot, order};
            std::vector<float> b(s.n, 3.0f);
            expect_exact(s, a, b);
            for (std::size_t i = 0; i < s.n; ++i)
                b[i] = static_cast<float>(i);
            expect_exact(s, a, b);
            std::ranges::reverse(b);
            expect_exact(s, a, b);
        }
    }
    std::vector<float> descending(std::max<std::size_t>(6000, 768 * course::multiprocessors()));
    for (std::size_t i = 0; i < descending.size(); ++i)
        descending[i] = -static_cast<float>(i / 2);
    expect_exact({2, 6000, 1, 1, 1024, Metric::kDot}, a, std::span(descending).first(6000));
    // Lists that are full to the last place, or nearly: three tiles for each block. A key that does
    // not fit would become the best of the second row.
    const std::vector<float> other = {2.0f, 1.0f};
    const std::size_t n = 768 * course::multiprocessors();
    for (const std::size_t k : {226, 227, 228, 229})
        expect_exact({2, n, 1, 1, k, Metric::kDot}, other, std::span(descending).first(n));
}

// Blocks that share a row publish thresholds. An element equal to all of them is one of the best if
// its column is lower. With eight tiles for each block and k = number of blocks, each block has one
// of the best in its first tile, and the first block another one in its last. All others are the
// next greater float, so that only the best value itself can be a threshold.
TEST_P(TopKTest, EqualElementsOfBlocksThatShareARow) {
    const std::size_t blocks = std::min(course::multiprocessors(), 1024u);
    const std::size_t share = 8 * 256;
    const TopKShape s{1, blocks * share, 1, 1, blocks, Metric::kDot};
    const std::vector<float> a = {1.0f};
    std::vector<float> b(s.n, std::nextafter(3.0f, 4.0f));
    for (std::size_t block = 0; block < blocks; ++block)
        b[block * share + 5] = 3.0f;
    b[share - 7] = 3.0f;
    expect_exact(s, a, b);
}

// Blocks that end in the middle of a row of tiles have parts of several rows: a threshold of one
// row must not be used for another. From product to product elements become greater, or less, and
// so they do from column to column. Then all of the best are in one block, and it must not drop one
// because of a threshold of another row.
TEST_P(TopKTest, BoundsBelongToOneRow) {
    if (GetParam()->name == "k_minima" || GetParam()->name == "unfused")
        GTEST_SKIP() << "each of its blocks has one row";
    for (const float of_product : {10000.0f, -10000.0f}) {
        for (const float of_column : {1.0f, -1.0f}) {
            const TopKShape s{72, 3 * 256, 1, course::multiprocessors() + 1, 40, Metric::kDot};
            const std::vector<float> a(s.count * s.m, 1.0f);
            std::vector<float> b(s.count * s.n);
            for (std::size_t i = 0; i < b.size(); ++i)
                b[i] = of_product * static_cast<float>(i / s.n) + of_column * static_cast<float>(i % s.n);
            expect_exact(s, a, b);
        }
    }
}

// One row whose list fills up again and again beside others that are done after the first tile.
TEST_P(TopKTest, OneRowOfMany) {
    const TopKShape s{128, 2100, 2, 1, 3, Metric::kDot, Order::kLargest};
    std::vector<float> a(s.m * s.d);
    for (std::size_t row = 0; row < s.m; ++row)
        a[row * s.d + (row == 77 ? 1 : 0)] = 1;
    std::vector<float> b(s.d * s.n);
    for (std::size_t col = 0; col < s.n; ++col) {
        b[col] = -static_cast<float>(col);
        b[s.n + col] = static_cast<float>(col);
    }
    expect_exact(s, a, b);
}

// The best ones alone, wherever they stand.
TEST_P(TopKTest, FindsTheOnlyOnes) {
    const TopKShape s{2, 1290, 1, 1, 3, Metric::kDot, Order::kSmallest};
    const std::vector<float> a(s.m, 1.0f);
    for (const std::size_t at : {0, 3, 4, 31, 32, 63, 255, 256, 511, 512, 767, 768, 1023, 1024, 1279, 1287}) {
        std::vector<float> b(s.n, 5.0f);
        b[at] = 2.0f;
        b[at + 1] = 1.0f;
        b[at + 2] = 1.0f;
        expect_exact(s, a, b);
    }
}

// NaN is behind all numbers in both orders, the first of them first. What is infinite is a number;
// 0 and -0 are equal.
TEST_P(TopKTest, NanInfinityAndZero) {
    const std::vector<float> a = {1.0f, 2.0f};
    for (const Order order : kOrders) {
        for (const std::size_t k : {1, 70}) {
            const TopKShape s{2, 900, 1, 1, k, Metric::kDot, order};
            const auto with = [&](std::vector<std::pair<std::size_t, float>> places, float fill) {
                std::vector<float> b(s.n, fill);
                for (const auto& [at, value] : places)
                    b[at] = value;
                expect_exact(s, a, b);
            };
            with({{280, kNan}, {17, -kNan}, {18, -kInf}, {3, kInf}}, 1.0f);
            with({{280, 1.0f}, {18, -kInf}, {3, kInf}, {899, 2.0f}}, kNan);
            with({{3, -kNan}, {5, -kNan}}, kNan);
            with({{899, 1.0f}}, -kInf);
            with({{0, 1.0f}}, kInf);
            with({{5, -0.0f}, {6, 0.0f}, {600, -0.0f}, {601, 0.0f}},
                 order == Order::kSmallest ? 1.0f : -1.0f);
            with({{6, 0.0f}, {601, 0.0f}}, -0.0f);
            with({{6, -0.0f}, {601, -0.0f}}, 0.0f);
        }
    }
}

// Products too small for a float are 0 or, where they are added in the same step, -0: all equal,
// and none comes out negative.
TEST_P(TopKTest, ZerosAreEqual) {
    for (const Order order : kOrders) {
        const TopKShape s{1, 600, 8, 1, 5, Metric::kDot, order};
        std::vector<float> a(s.d);
        std::vector<float> b(s.d * s.n);
        a.back() = 1e-30f;
        for (std::size_t col = 0; col < s.n; ++col)
            b[(s.d - 1) * s.n + col] = col % 3 == 0 ? 1e-30f : -1e-30f;
        const Results got = run(s, a, b);
        EXPECT_EQ(got.indices, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
        for (const float value : got.values)
            EXPECT_TRUE(value == 0 && !std::signbit(value)) << value;
    }
}

// --- Thresholds ----------------------------------------------------------------------------------

// Results do not depend on them, so the tests look at the scratch memory. It begins with the lists
// of the blocks.
class ThresholdsTest : public course::DeviceTest {
  protected:
    // The scratch memory afterwards, zeros before. All s.m rows have these distances.
    static std::vector<std::uint64_t> scratch_of(const std::string& version, const TopKShape& s,
                                                 const std::vector<float>& distances) {
        const auto& selector = course::find_version(day48::top_k_versions(), version).launcher;
        TestBatch<const float> a(std::vector<float>(s.m, 1.0f), 1, s.m, 1, {});
        TestBatch<const float> b(distances, 1, 1, s.n, {});
        DeviceBuffer<float> values(s.m * s.k);
        DeviceBuffer<std::uint32_t> indices(values.size());
        const std::vector<std::uint64_t> zeros(selector.scratch_size(s));
        DeviceBuffer<std::uint64_t> scratch{std::span(zeros)};
        selector.launch({.operands = {a.view(), b.view()},
                         .metric = s.metric,
                         .k = s.k,
                         .values = values.span(),
                         .indices = indices.span(),
                         .scratch = scratch.span()},
                        nullptr);
        return scratch.to_host();
    }
};

// Eight tiles of ascending values for each block. After two tiles a list is full and shortened, and
// no later value is less than the threshold.
TEST_F(ThresholdsTest, ABlockDropsWhatItsOwnExcludes) {
    constexpr std::size_t kShare = 8 * 256;
    const TopKShape s{2, course::multiprocessors() * kShare, 1, 1, 16, Metric::kDot};
    std::vector<float> ascending(s.n);
    std::iota(ascending.begin(), ascending.end(), 0.0f);
    std::size_t listed = 0;
    for (const std::uint64_t word : scratch_of("fused_own_bounds", s, ascending)) {
        const auto col = static_cast<std::uint32_t>(word);  // if it is a key
        if (col == 0 || col >= s.n) continue;
        ++listed;
        EXPECT_LT(col % kShare, 512u) << "the column of a key in a list; the block has seen 16 better ones";
    }
    EXPECT_GT(listed, 0u);
}

// A block fills up its piece of a row with words of which all bits are set. The last block of a row
// to finish reads the thresholds of all others. They let it keep about k / blocks elements; without
// them it keeps k.
TEST_F(ThresholdsTest, ABlockDropsWhatThoseOfOtherBlocksExclude) {
    const std::size_t blocks = course::multiprocessors();
    if (blocks == 1) GTEST_SKIP() << "needs two multiprocessors: blocks that share a row";
    // Eight tiles for each block. With two blocks, the last one drops about 3/8 k elements of each
    // of the two rows; with more blocks, more.
    const TopKShape s{2, blocks * 8 * 256, 1, 1, 512, Metric::kDot};
    // Each tile has each of the values 0 to 255 once.
    std::vector<float> distances(s.n);
    for (std::size_t col = 0; col < s.n; ++col)
        distances[col] = static_cast<float>(col * 77 % 256);
    const auto words_without_key = [&](const std::string& version) {
        return std::ranges::count(scratch_of(version, s, distances), ~std::uint64_t{0});
    };
    EXPECT_GE(words_without_key("fused"), words_without_key("fused_own_bounds") + 128);
}

TEST_P(TopKTest, NoRows) {
    expect_right({0, 10, 4, 1, 5});
    expect_right({5, 7, 4, 0, 3});
}

TEST_P(TopKTest, RandomShapes) {
    course::Random random(4547);
    SCOPED_TRACE("course::Random seed 4547");
    for (int round = 0; round < 10; ++round) {
        const std::size_t n = 1 + random.below(1200);
        const TopKShape s{1 + random.below(round % 5 == 0 ? 200 : 10),
                          n,
                          random.below(20),
                          1 + random.below(3),
                          1 + random.below(static_cast<std::uint32_t>(std::min<std::size_t>(n, 300))),
                          kMetrics[random.below(4)],
                          kOrders[random.below(2)]};
        const auto layout = [&] {
            return Layout{kOps[random.below(2)], random.below(5), random.below(3), random.below(2) == 1};
        };
        expect_right(s, DataPattern::kNormal, layout(), layout());
    }
}

TEST_P(TopKTest, RunsOnTheGivenStream) {
    const TopKShape s{20, 30, 10, 1, 2, Metric::kDot};
    TestBatch<const float> a(std::vector<float>(s.m * s.d, 1.0f), 1, s.m, s.d, {});
    TestBatch<const float> b(std::vector<float>(s.d * s.n, 1.0f), 1, s.d, s.n, {});
    GuardedBuffer<float> values(s.m * s.k);
    GuardedBuffer<std::uint32_t> indices(s.m * s.k);
    DeviceBuffer<std::uint64_t> scratch(GetParam()->launcher.scratch_size(s));
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher.launch({.operands = {a.view(), b.view()},
                                     .metric = s.metric,
                                     .k = s.k,
                                     .values = values.span(),
                                     .indices = indices.span(),
                                     .scratch = scratch.span()},
                                    stream);
    });
    EXPECT_TRUE(std::isnan(values.to_host().front())) << "it ran instead of being captured";
    work.run(2);
    EXPECT_EQ(values.to_host(), std::vector<float>(s.m * s.k, 10.0f));
    EXPECT_EQ(indices.to_host()[1], 1u);
}

TEST_P(TopKTest, RefusesBadArguments) {
    const TopKShape s{3, 6, 4, 1, 2};
    TestBatch<const float> a(std::vector<float>(12), 1, 3, 4, {});
    TestBatch<const float> b(std::vector<float>(24), 1, 4, 6, {});
    DeviceBuffer<float> values(21);
    DeviceBuffer<std::uint32_t> indices(21);
    DeviceBuffer<std::uint64_t> scratch(GetParam()->launcher.scratch_size(s));
    const day48::TopKMatmul right{.operands = {a.view(), b.view()},
                                  .k = s.k,
                                  .values = values.span().subspan(0, 6),
                                  .indices = indices.span().subspan(0, 6),
                                  .scratch = scratch.span()};
    const auto with = [&](auto change) {
        day48::TopKMatmul matmul = right;
        change(matmul);
        return refusal([&] { GetParam()->launcher.launch(matmul, nullptr); });
    };
    EXPECT_EQ(with([](auto&) {}), "");
    EXPECT_EQ(with([&](auto& x) { x.k = 7; }),
              "top-k matmul: k is 7, but there are 6 columns of op(B) to choose from; expected at most as "
              "many");
    EXPECT_EQ(with([&](auto& x) { x.k = 0; }), "top-k matmul: k is 0; expected 1 to 1024");
    EXPECT_EQ(with([&](auto& x) { x.k = 1025; }), "top-k matmul: k is 1025; expected 1 to 1024");
    EXPECT_EQ(with([&](auto& x) { x.values = values.span(); }),
              "top-k matmul: values has 21 elements; expected 6, 2 for each row");
    EXPECT_EQ(with([&](auto& x) { x.indices = {}; }),
              "top-k matmul: indices has 0 elements; expected 6, 2 for each row");
    EXPECT_EQ(with([&](auto& x) { x.scratch = {}; }),
              "top-k matmul: scratch has 0 elements; expected at least " + std::to_string(scratch.size()));
    EXPECT_EQ(with([&](auto& x) { std::swap(x.operands.a, x.operands.b); }),
              "top-k matmul: op(A) is 4 x 6 and op(B) 3 x 4; expected as many rows of op(B) as op(A) has "
              "columns");
}

}  // namespace

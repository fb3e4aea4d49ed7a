// The parts that attention is made of, the scoring functions, and self-attention put together from
// parts.
#include "attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attention_reference.hpp"
#include "attention_test_data.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "scores.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::DeviceSpan;
using course::GuardedBuffer;
using course::refusal;
using day25::AttentionShape;
using day25::Bounded;
using day25::HostMask;
using day25::Mask;
using day25::Scoring;
using day25_test::expect_within;
using day25_test::kInf;
using day25_test::kNan;
using day25_test::Matrix;
using day25_test::normal;

// --- Products ------------------------------------------------------------------------------------

class ProductTest : public course::DeviceTestWithParam<const day25::ProductVersion*> {
  protected:
    // alpha A op(B) + beta C with paddings of 0 to 3 elements after each row and before the first.
    void expect_right(std::size_t m, std::size_t n, std::size_t k, bool transpose_b, float alpha, float beta,
                      DataPattern pattern, unsigned layout) const {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                     (transpose_b ? " transposed" : "") + " layout " + std::to_string(layout));
        const std::vector<float> a_host = course::make_data<float>(m * k, pattern, 1);
        const std::vector<float> b_host = course::make_data<float>(k * n, pattern, 2);
        Matrix a(m, k, layout % 4, layout / 4 % 4);
        Matrix b(transpose_b ? n : k, transpose_b ? k : n, layout / 2 % 4, layout / 8 % 4);
        Matrix c(m, n, layout / 3 % 4, layout % 3);
        a.set(a_host);
        b.set(b_host);
        const std::vector<float> c_host = beta == 0 ? std::vector<float>(m * n, kNan) : normal(m * n, 3);
        c.set(c_host);
        GetParam()->launcher({a.view(), b.view(), c.view(), transpose_b, alpha, beta}, nullptr);

        Bounded expected = day25::multiply(Bounded(m, k, a_host), Bounded(b.rows(), b.cols(), b_host),
                                           transpose_b, static_cast<double>(alpha));
        for (std::size_t i = 0; i < m * n && beta != 0; ++i) {
            const double old = static_cast<double>(beta) * static_cast<double>(c_host[i]);
            expected.value[i] += old;
            expected.error[i] += 0x1p-23 * (std::abs(expected.value[i]) + std::abs(old));
        }
        expect_within(c, expected);
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwentyFive, ProductTest, course::each_of(day25::product_versions()),
                         course::VersionName());

TEST_P(ProductTest, ShapesAroundTheTiles) {
    for (const std::size_t size : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65}) {
        for (const bool transpose_b : {false, true}) {
            expect_right(size, 5, 7, transpose_b, 1, 0, DataPattern::kNormal, 0);
            expect_right(3, size, 9, transpose_b, 1, 0, DataPattern::kNormal, 1);
            expect_right(4, 6, size, transpose_b, 1, 0, DataPattern::kNormal, 2);
        }
    }
    expect_right(129, 131, 67, false, 1, 0, DataPattern::kNormal, 0);
    expect_right(67, 129, 131, true, 1, 0, DataPattern::kNormal, 5);
}

TEST_P(ProductTest, AlphaAndBeta) {
    for (const bool transpose_b : {false, true}) {
        for (const float alpha : {1.0f, -0.5f, 0.0f}) {
            for (const float beta : {0.0f, 1.0f, -2.0f})
                expect_right(33, 34, 35, transpose_b, alpha, beta, DataPattern::kSignedUniform, 9);
        }
    }
}

TEST_P(ProductTest, Patterns) {
    for (const DataPattern pattern : course::kFinitePatterns)
        for (const bool transpose_b : {false, true})
            expect_right(34, 66, 40, transpose_b, 1, 0, pattern, 6);
}

TEST_P(ProductTest, RandomShapes) {
    constexpr std::uint64_t kSeed = 250100;
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    course::Random random(kSeed);
    for (int round = 0; round < 12; ++round)
        expect_right(1 + random.below(70), 1 + random.below(70), 1 + random.below(70), random.below(2) == 1,
                     1, 0, DataPattern::kNormal, random.below(64));
}

// A sum of nothing is 0.
TEST_P(ProductTest, EmptyExtents) {
    for (const bool transpose_b : {false, true}) {
        for (const float beta : {0.0f, 1.0f}) {
            expect_right(3, 5, 0, transpose_b, 1, beta, DataPattern::kNormal, 0);
            expect_right(0, 5, 2, transpose_b, 1, beta, DataPattern::kNormal, 0);
            expect_right(3, 0, 2, transpose_b, 1, beta, DataPattern::kNormal, 0);
        }
    }
}

// A NaN reaches its row (of A) or column (of op(B)) and nothing else.
TEST_P(ProductTest, NanStaysInItsRowAndColumn) {
    for (const bool transpose_b : {false, true}) {
        Matrix a(40, 36), b(transpose_b ? 41 : 36, transpose_b ? 36 : 41), c(40, 41);
        std::vector<float> a_host(40 * 36, 1), b_host(36 * 41, 1);
        a_host[33 * 36 + 35] = kNan;
        b_host[transpose_b ? 34 * 36 + 2 : 2 * 41 + 34] = kInf;
        a.set(a_host);
        b.set(b_host);
        GetParam()->launcher({a.view(), b.view(), c.view(), transpose_b}, nullptr);
        Bounded expected(40, 41);
        for (std::size_t i = 0; i < expected.value.size(); ++i)
            expected.value[i] = i / 41 == 33   ? static_cast<double>(kNan)
                                : i % 41 == 34 ? static_cast<double>(kInf)
                                               : 36;
        expect_within(c, expected);
    }
}

TEST_P(ProductTest, RefusesWhatDoesNotFit) {
    auto memory = course::zeros<float>(100);
    const auto matrix = [&](std::size_t offset, std::size_t rows, std::size_t cols) {
        return DeviceMatrix<float>(memory.span().subspan(offset, rows * cols), rows, cols);
    };
    const auto with = [&](DeviceMatrix<float> a, DeviceMatrix<float> b, DeviceMatrix<float> c,
                          bool transpose_b) {
        return refusal([&] { GetParam()->launcher({a, b, c, transpose_b}, nullptr); });
    };
    EXPECT_EQ(with(matrix(0, 2, 3), matrix(10, 3, 4), matrix(30, 2, 4), false), "");
    EXPECT_EQ(with(matrix(0, 2, 3), matrix(10, 4, 3), matrix(30, 2, 4), true), "");
    EXPECT_EQ(with(matrix(0, 2, 3), matrix(10, 4, 3), matrix(30, 2, 4), false),
              "day25: product: A is 2 x 3, B 4 x 3 and C 2 x 4; expected m x k, k x n (transposed: n x k) "
              "and m x n");
    EXPECT_EQ(with(matrix(0, 2, 3), matrix(10, 3, 4), matrix(30, 2, 4), true),
              "day25: product: A is 2 x 3, B 3 x 4 (transposed) and C 2 x 4; expected m x k, k x n "
              "(transposed: n x k) "
              "and m x n");
    const std::string overlap = "day25: product: C overlaps A or B; expected that it does not";
    EXPECT_EQ(with(matrix(0, 2, 3), matrix(10, 3, 4), matrix(5, 2, 4), false), overlap);
    EXPECT_EQ(with(matrix(0, 2, 3), matrix(10, 3, 4), matrix(21, 2, 4), false), overlap);
    EXPECT_EQ(with(matrix(0, 2, 3), matrix(10, 3, 4), matrix(22, 2, 4), false), "");
}

// --- Masked softmax ------------------------------------------------------------------------------

using Attention = course::DeviceTest;

// On scores of batch x heads x queries rows, against the reference.
void expect_softmax(const day25::ScoreRows& rows, std::size_t keys, const std::vector<float>& data,
                    bool causal, const std::vector<std::uint8_t>& padding, std::size_t row_padding = 0,
                    std::size_t offset = 0) {
    SCOPED_TRACE(std::to_string(rows.batch) + "x" + std::to_string(rows.heads) + "x" +
                 std::to_string(rows.queries) + "x" + std::to_string(keys) + (causal ? " causal" : "") +
                 (padding.empty() ? "" : " padding"));
    Matrix scores(rows.count(), keys, row_padding, offset);
    scores.set(data);
    const DeviceBuffer<std::uint8_t> padding_device{std::span(padding)};
    day25::masked_softmax(scores.view(), rows, {causal, padding_device.span()}, nullptr);
    const Bounded all(rows.count(), keys, data);
    Bounded expected(rows.count(), keys);
    for (std::size_t first = 0; first < rows.count(); first += rows.queries) {
        const std::size_t batch = first / (rows.heads * rows.queries);
        const HostMask mask{causal, padding.empty() ? std::span<const std::uint8_t>{}
                                                    : std::span(padding).subspan(batch * keys, keys)};
        expected.put(first, 0, day25::masked_softmax(all.piece(first, rows.queries, 0, keys), mask));
    }
    expect_within(scores, expected);
}

std::vector<std::uint8_t> random_padding(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<std::uint8_t> padding(size);
    for (std::uint8_t& p : padding)
        p = random.below(3) == 0 ? static_cast<std::uint8_t>(1 + random.below(255)) : 0;
    return padding;
}

TEST_F(Attention, SoftmaxOfAllLengthsAndMasks) {
    for (const std::size_t keys : {1, 2, 3, 4, 5, 31, 32, 33, 127, 255, 256, 257, 1023, 1024, 1025, 4099}) {
        const day25::ScoreRows rows{2, 2, 3};
        const std::vector<float> data = normal(rows.count() * keys, keys);
        expect_softmax(rows, keys, data, false, {});
        expect_softmax(rows, keys, data, true, {});
        expect_softmax(rows, keys, data, false, random_padding(2 * keys, keys), keys % 2, keys % 3);
        expect_softmax(rows, keys, data, true, random_padding(2 * keys, keys + 1), 4 - keys % 4);
    }
}

// The diagonal at every position in a pack and across warps; more queries than keys, and fewer.
TEST_F(Attention, SoftmaxOfCausalSquares) {
    for (const std::size_t queries : {33, 130})
        for (const std::size_t keys : {20, 33, 128, 132})
            expect_softmax({1, 2, queries}, keys, normal(2 * queries * keys, 7), true, {});
}

TEST_F(Attention, SoftmaxOfLargeAndEqualScores) {
    for (const float scale : {0.0f, 100.0f, 1e30f}) {
        std::vector<float> data = normal(6 * 260, 8);
        for (float& x : data)
            x *= scale;
        expect_softmax({1, 2, 3}, 260, data, false, {});
        expect_softmax({1, 2, 3}, 260, data, true, random_padding(260, 9));
    }
}

// A query that sees no key gets zeros. A masked score may be anything.
TEST_F(Attention, SoftmaxOfNothing) {
    expect_softmax({2, 2, 3}, 9, normal(12 * 9, 1), false,
                   {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    expect_softmax({1, 1, 3}, 4, normal(12, 1), true, {1, 0, 0, 0});
    expect_softmax({1, 1, 0}, 4, {}, false, {});
    expect_softmax({1, 1, 3}, 0, {}, false, {});
}

TEST_F(Attention, SoftmaxWithNanAndInfinity) {
    constexpr std::size_t kKeys = 8;
    std::vector<float> data(6 * kKeys, 1.0f);
    data[0 * kKeys + 7] = kNan;  // masked by the padding
    data[1 * kKeys + 2] = kNan;
    data[2 * kKeys + 3] = kInf;
    std::fill_n(data.begin() + 3 * kKeys, 4, -kInf);
    std::fill_n(data.begin() + 4 * kKeys, 8, -kInf);
    data[5 * kKeys + 7] = kInf;  // masked by the padding
    Matrix scores(6, kKeys);
    scores.set(data);
    const std::vector<std::uint8_t> padding_host = {0, 0, 0, 0, 0, 0, 0, 1};
    const DeviceBuffer<std::uint8_t> padding{std::span(padding_host)};
    day25::masked_softmax(scores.view(), {1, 1, 6}, {false, padding.span()}, nullptr);
    Bounded expected(6, kKeys);
    for (std::size_t i = 0; i < expected.value.size(); ++i) {
        const std::size_t row = i / kKeys;
        const std::size_t key = i % kKeys;
        const double of_row[] = {
            1.0 / 7, static_cast<double>(kNan), static_cast<double>(kNan), key < 4 ? 0.0 : 1.0 / 3, 0.0,
            1.0 / 7};
        expected.value[i] = key == 7 ? 0 : of_row[row];
        expected.error[i] = std::isfinite(expected.value[i]) ? 1e-6 * expected.value[i] : 0;
    }
    expect_within(scores, expected);
}

TEST_F(Attention, SoftmaxRefusesWhatDoesNotFit) {
    auto scores = course::zeros<float>(24);
    auto padding = course::zeros<std::uint8_t>(9);
    EXPECT_EQ(refusal([&] {
                  day25::masked_softmax(scores.matrix(6, 4), {1, 2, 4}, {}, nullptr);
              }),
              "day25: masked_softmax: scores have 6 rows; expected batch x heads x queries = 8");
    EXPECT_EQ(refusal([&] {
                  day25::masked_softmax(scores.matrix(6, 4), {2, 1, 3}, {false, padding.span()}, nullptr);
              }),
              "day25: masked_softmax: padding has 9 elements; expected none or batch x keys = 8");
}

// --- Transposing and filling ---------------------------------------------------------------------

TEST_F(Attention, TransposesAnyShape) {
    for (const std::size_t rows : {0, 1, 31, 32, 33, 70}) {
        for (const std::size_t cols : {0, 1, 7, 32, 33, 65}) {
            const std::vector<float> data = normal(rows * cols, 3);
            Matrix in(rows, cols, 1, 2), out(cols, rows, 3, 1);
            in.set(data);
            day25::transpose(in.view(), out.view(), nullptr);
            Bounded expected(cols, rows);
            for (std::size_t i = 0; i < data.size(); ++i)
                expected.value[i % cols * rows + i / cols] = static_cast<double>(data[i]);
            expect_within(out, expected);
        }
    }
    auto memory = course::zeros<float>(16);
    EXPECT_EQ(refusal([&] { day25::transpose(memory.matrix(2, 3), memory.matrix(2, 3), nullptr); }),
              "day25: transpose: in is 2 x 3 and out 2 x 3; expected rows and columns exchanged");
    EXPECT_EQ(refusal([&] { day25::transpose(memory.matrix(2, 3), memory.matrix(3, 2), nullptr); }),
              "day25: transpose: out overlaps in; expected that it does not");
}

TEST_F(Attention, FillsRows) {
    for (const std::size_t rows : {0, 1, 7, 8, 9, 20}) {
        for (const std::size_t cols : {0, 1, 4, 5, 1023, 1024, 1028}) {
            for (const std::size_t padding : {0, 1, 4}) {
                const std::vector<float> row = normal(cols, 4);
                const DeviceBuffer<float> row_device{std::span<const float>(row)};
                Matrix out(rows, cols, padding, padding);
                day25::fill_rows(row_device.span(), out.view(), nullptr);
                Bounded expected(rows, cols);
                for (std::size_t i = 0; i < rows * cols; ++i)
                    expected.value[i] = static_cast<double>(row[i % cols]);
                expect_within(out, expected);
            }
        }
    }
    auto memory = course::zeros<float>(16);
    EXPECT_EQ(refusal([&] { day25::fill_rows(memory.span().subspan(0, 3), memory.matrix(2, 4), nullptr); }),
              "day25: fill_rows: row has 3 elements; expected 4, the columns of out");
    EXPECT_EQ(refusal([&] { day25::fill_rows(memory.span().subspan(7, 4), memory.matrix(2, 4), nullptr); }),
              "day25: fill_rows: out overlaps row; expected that it does not");
    EXPECT_EQ(refusal([&] { day25::fill_rows(memory.span().subspan(8, 4), memory.matrix(2, 4), nullptr); }),
              "");
}

TEST_F(Attention, VectorProductRefusesWhatDoesNotFit) {
    auto memory = course::zeros<float>(16);
    const auto with = [&](std::size_t vector, std::size_t cols, std::size_t out) {
        return refusal([&] {
            day25::multiply_vector(memory.matrix(2, 4), memory.span().subspan(vector, cols),
                                   memory.span().subspan(out, 2), nullptr);
        });
    };
    EXPECT_EQ(with(8, 4, 12), "");
    EXPECT_EQ(with(8, 3, 12),
              "day25: multiply_vector: matrix is 2 x 4, vector has 3 elements and out 2; expected as many as "
              "columns and rows");
    for (const std::size_t out : {7, 11}) {
        EXPECT_EQ(with(8, 4, out),
                  "day25: multiply_vector: out overlaps matrix or vector; expected that it does not");
    }
}

// --- Scoring functions ---------------------------------------------------------------------------

class ScorerTest : public course::DeviceTestWithParam<std::tuple<Scoring, const day25::ScoreVersion*>> {
  protected:
    static Scoring scoring() { return std::get<0>(GetParam()); }
    static const day25::ScoreVersion& scorer() { return *std::get<1>(GetParam()); }

    void SetUp() override {
        course::DeviceTestWithParam<std::tuple<Scoring, const day25::ScoreVersion*>>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = scorer().cannot_run({1, 1, 1, 1}); !reason.empty())
            GTEST_SKIP() << reason;
    }

    static void expect_right(std::size_t states, std::size_t width, std::size_t hidden, std::size_t units,
                             std::size_t padding = 0, DataPattern pattern = DataPattern::kNormal) {
        if (scoring() == Scoring::kDot) hidden = width;
        if (scoring() != Scoring::kBahdanau) units = 0;
        const day25::ScoreShape shape{states, width, hidden, units};
        SCOPED_TRACE(std::to_string(states) + " states of " + std::to_string(width) + ", hidden " +
                     std::to_string(hidden) + ", units " + std::to_string(units));
        const std::vector<float> h = course::make_data<float>(hidden, pattern, 1);
        const std::vector<float> s = course::make_data<float>(states * width, pattern, 2);
        const std::size_t rows = shape.weight_rows(scoring());
        const std::size_t cols = shape.weight_cols(scoring());
        const std::vector<float> w = course::make_data<float>(rows * cols, DataPattern::kSignedUniform, 3);
        const std::vector<float> v = normal(units, 4);
        Matrix h_device(1, hidden, 0, padding), s_device(states, width, padding, padding / 2),
            w_device(rows, cols, padding / 2, padding), v_device(1, units, 0, padding),
            scores(1, states, 0, padding);
        h_device.set(h);
        s_device.set(s);
        w_device.set(w);
        v_device.set(v);
        GuardedBuffer<float> workspace(day25::score_workspace(scoring(), shape));
        scorer().launcher({h_device.row(), s_device.view(), w_device.view(), v_device.row()}, scores.row(),
                          workspace.span(), nullptr);
        expect_within(scores, day25::score_reference(scoring(), shape, h, s, w, v));
        EXPECT_EQ(workspace.damage(), "");
    }
};

std::vector<std::tuple<Scoring, const day25::ScoreVersion*>> all_scorers() {
    std::vector<std::tuple<Scoring, const day25::ScoreVersion*>> all;
    for (const Scoring scoring : {Scoring::kDot, Scoring::kLuong, Scoring::kBahdanau})
        for (const day25::ScoreVersion& scorer : day25::score_versions(scoring))
            all.emplace_back(scoring, &scorer);
    return all;
}

INSTANTIATE_TEST_SUITE_P(DayTwentyFive, ScorerTest, testing::ValuesIn(all_scorers()),
                         [](const auto& test) { return std::get<1>(test.param)->name; });

TEST_P(ScorerTest, AllSizes) {
    for (const std::size_t states : {1, 7, 8, 9, 63, 64, 65, 257})
        expect_right(states, 12, 20, 9);
    // 516: more than luong_early loads ahead.
    for (const std::size_t width : {1, 3, 31, 32, 33, 128, 131, 516})
        expect_right(5, width, 7, 6);
    for (const std::size_t hidden : {1, 8, 31, 33, 100, 601})
        expect_right(5, 16, hidden, 6);
    for (const std::size_t units : {1, 16, 63, 64, 65, 130})
        expect_right(5, 16, 8, units);
}

TEST_P(ScorerTest, AnyAlignment) {
    for (const std::size_t padding : {1, 2, 3, 4})
        expect_right(70, 20, 36, 68, padding);
}

TEST_P(ScorerTest, Patterns) {
    for (const DataPattern pattern : course::kFinitePatterns)
        expect_right(20, 40, 40, 40, 0, pattern);
}

TEST_P(ScorerTest, EmptyExtents) {
    expect_right(0, 4, 4, 4);
    expect_right(4, 0, 4, 4);
    expect_right(4, 4, 0, 4);
    expect_right(4, 4, 4, 0);
    expect_right(4, 0, 0, 4);
}

// More than 2^32 elements of S, on the CPU: only the last blocks run.
TEST_P(ScorerTest, IndicesBeyond32Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    if (scoring() != Scoring::kDot) GTEST_SKIP() << "its blocks need what blocks that do not run compute";
    constexpr std::size_t kWidth = 640;
    constexpr std::size_t kStates = (std::size_t{1} << 32) / kWidth + 5;
    constexpr std::size_t kReach = 4096 * kWidth;
    const std::vector<double> end = {1};
    const course::LargeArray<float> states(kStates * kWidth, kReach, end);
    const course::LargeArray<float> workspace(day25::score_workspace(scoring(), {kStates, kWidth, kWidth, 0}),
                                              kReach, end);
    const course::LargeArray<float> scores(kStates, 4096, end);
    const std::vector<float> h = normal(kWidth, 1);
    const std::vector<float> last = normal(kWidth, 2);
    std::ranges::copy(last, &states[(kStates - 1) * kWidth]);
    const DeviceBuffer<float> h_device{std::span<const float>(h)};
    course::run_few_blocks(
        [&] {
            scorer().launcher({h_device.span(), DeviceMatrix<const float>(states.span(), kStates, kWidth)},
                              scores.span(), workspace.span(), nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    const Bounded expected = day25::score_reference(scoring(), {1, kWidth, kWidth, 0}, h, last, {}, {});
    EXPECT_NEAR(scores[kStates - 1], expected.value[0], expected.error[0])
        << course::large_element((kStates - 1) * kWidth, kStates * kWidth);
}

// Inf and NaN are operands of no product.
TEST_P(ScorerTest, ASumWithoutTermsIsZeroWhateverTheOtherOperandHolds) {
    if (scoring() != Scoring::kLuong) GTEST_SKIP() << "only h^T W s has two sums, of which one may be empty";
    for (const float bad : {kInf, kNan}) {
        for (const bool is_h_empty : {true, false}) {
            const std::size_t hidden = is_h_empty ? 0 : 5;
            const std::size_t width = is_h_empty ? 5 : 0;
            Matrix h(1, hidden), s(3, width), w(hidden, width), scores(1, 3);
            h.set(std::vector<float>(hidden, bad));
            s.set(std::vector<float>(3 * width, bad));
            w.set({});
            DeviceBuffer<float> workspace(day25::score_workspace(scoring(), {3, width, hidden, 0}));
            scorer().launcher({h.row(), s.view(), w.view(), {}}, scores.row(), workspace.span(), nullptr);
            SCOPED_TRACE(std::to_string(hidden) + " of h, width " + std::to_string(width));
            expect_within(scores, Bounded(1, 3));
        }
    }
}

// tanh of Inf is 1. So a state with an Inf, or with a number that TF32 would round to Inf, has a
// score, and a NaN stays in its state.
TEST_P(ScorerTest, InfAndNanStayInTheirStates) {
    if (scoring() != Scoring::kBahdanau) GTEST_SKIP() << "a sum with an Inf is no score";
    constexpr std::size_t kStates = 70, kWidth = 36, kUnits = 65;
    Matrix h(1, 1), s(kStates, kWidth), w(kUnits, 1 + kWidth), v(1, kUnits), scores(1, kStates);
    std::vector<float> states(kStates * kWidth);
    states[3 * kWidth + 35] = kInf;
    states[4 * kWidth] = -std::numeric_limits<float>::max();
    states[69 * kWidth + 1] = kNan;
    h.set({0});
    s.set(states);
    w.set(std::vector<float>(kUnits * (1 + kWidth), 0.5f));
    v.set(std::vector<float>(kUnits, 1));
    DeviceBuffer<float> workspace(day25::score_workspace(scoring(), {kStates, kWidth, 1, kUnits}));
    scorer().launcher({h.row(), s.view(), w.view(), v.row()}, scores.row(), workspace.span(), nullptr);
    Bounded expected(1, kStates);
    expected.value[3] = kUnits;
    expected.value[4] = -static_cast<double>(kUnits);
    expected.value[69] = static_cast<double>(kNan);
    expect_within(scores, expected);
}

TEST_P(ScorerTest, RefusesWhatDoesNotFit) {
    const day25::ScoreShape shape{3, 4, 4, scoring() == Scoring::kBahdanau ? 5U : 0U};
    const std::size_t rows = shape.weight_rows(scoring());
    const std::size_t cols = shape.weight_cols(scoring());
    auto memory = course::zeros<float>(100);
    DeviceBuffer<float> workspace(day25::score_workspace(scoring(), shape)), scores(3);
    day25::ScoreInputs inputs{memory.span().subspan(0, 4),
                              DeviceMatrix<const float>(memory.span().subspan(4, 12), 3, 4),
                              DeviceMatrix<const float>(memory.span().subspan(16, rows * cols), rows, cols),
                              memory.span().subspan(80, shape.units)};
    const auto with = [&](const day25::ScoreInputs& in, DeviceSpan<float> out, DeviceSpan<float> space) {
        return refusal([&] { scorer().launcher(in, out, space, nullptr); });
    };
    const std::size_t needed = workspace.size();
    EXPECT_EQ(with(inputs, scores.span(), workspace.span()), "");
    EXPECT_EQ(with(inputs, scores.span().subspan(0, 2), workspace.span()),
              "day25: scores: 2 elements; expected one per state, 3");
    EXPECT_EQ(with(inputs, scores.span(), workspace.span().subspan(0, needed - 1)),
              "day25: scores: workspace has " + std::to_string(needed - 1) + " elements; expected at least " +
                  std::to_string(needed));
    EXPECT_EQ(with(inputs, memory.span().subspan(2, 3), workspace.span()),
              "day25: scores: scores overlap an input or the workspace; expected that they do not");
    EXPECT_EQ(with(inputs, workspace.span().subspan(0, 3), workspace.span()),
              "day25: scores: scores overlap an input or the workspace; expected that they do not");
    const DeviceSpan<float> space = workspace.span();
    const auto overlapping = [&](const char* name, auto day25::ScoreInputs::*input, auto place) {
        day25::ScoreInputs wrong = inputs;
        wrong.*input = place;
        EXPECT_EQ(with(wrong, scores.span(), space),
                  std::string("day25: scores: workspace overlaps ") + name + "; expected that it does not");
    };
    overlapping("hidden", &day25::ScoreInputs::hidden, DeviceSpan<const float>(space.subspan(needed - 4, 4)));
    overlapping("states", &day25::ScoreInputs::states,
                DeviceMatrix<const float>(space.subspan(needed - 12, 12), 3, 4));
    if (scoring() == Scoring::kBahdanau)
        overlapping("v", &day25::ScoreInputs::v, DeviceSpan<const float>(space.subspan(needed - 5, 5)));
    if (scoring() != Scoring::kDot) {
        DeviceBuffer<float> more(std::max(needed, rows * cols));
        day25::ScoreInputs wrong = inputs;
        wrong.weight = DeviceMatrix<const float>(more.span().subspan(0, rows * cols), rows, cols);
        EXPECT_EQ(with(wrong, scores.span(), more.span()),
                  "day25: scores: workspace overlaps weight; expected that it does not");
    }
    if (scoring() == Scoring::kDot) {
        inputs.hidden = memory.span().subspan(0, 3);
        EXPECT_EQ(with(inputs, scores.span(), workspace.span()),
                  "day25: scores: hidden has 3 elements; expected 4, the states' width");
    } else {
        inputs.weight = {};
        EXPECT_EQ(with(inputs, scores.span(), workspace.span()), "day25: scores: weight is 0 x 0; expected " +
                                                                     std::to_string(rows) + " x " +
                                                                     std::to_string(cols));
    }
}

// --- Self-attention ------------------------------------------------------------------------------

struct Options {
    bool causal = false;
    bool padding = false;
    float spread = 1;  // of q: large scores
    std::size_t row_padding = 0;
    std::size_t offset = 0;
    std::optional<float> scale{};  // not given: 1 / sqrt(width)
};

class SelfAttentionTest : public course::DeviceTestWithParam<const day25::Version*> {
  protected:
    static std::size_t q_size(const AttentionShape& s) { return s.batch * s.queries * s.heads * s.width; }
    static std::size_t k_size(const AttentionShape& s) { return s.batch * s.keys * s.heads * s.width; }
    static std::size_t v_size(const AttentionShape& s) { return s.batch * s.keys * s.heads * s.value_width; }

    static void run(day25::SelfAttention& attention, const AttentionShape& shape, const std::vector<float>& q,
                    const std::vector<float>& k, const std::vector<float>& v, float scale, Mask mask,
                    Matrix& out, const Options& options) {
        Matrix q_device(shape.batch * shape.queries, shape.heads * shape.width, options.row_padding,
                        options.offset);
        Matrix k_device(shape.batch * shape.keys, shape.heads * shape.width, options.row_padding,
                        options.offset);
        Matrix v_device(shape.batch * shape.keys, shape.heads * shape.value_width, options.row_padding,
                        options.offset);
        q_device.set(q);
        k_device.set(k);
        v_device.set(v);
        attention(shape, q_device.view(), k_device.view(), v_device.view(), out.view(), scale, mask, nullptr);
        static_cast<void>(out.values());  // waits: the inputs go away
    }

    static void expect_right(day25::SelfAttention& attention, const AttentionShape& shape,
                             const Options& options) {
        const auto [batch, heads, queries, keys, width, value_width] = shape;
        if (!GetParam()->cannot_run({width, value_width, options.padding}).empty()) return;
        SCOPED_TRACE(std::to_string(batch) + " batches, " + std::to_string(heads) + " heads, " +
                     std::to_string(queries) + " queries, " + std::to_string(keys) + " keys, width " +
                     std::to_string(width) + ", " + std::to_string(value_width) +
                     (options.causal ? ", causal" : "") + (options.padding ? ", padding" : ""));
        std::vector<float> q = normal(q_size(shape), 1);
        for (float& x : q)
            x *= options.spread;
        const std::vector<float> k = normal(k_size(shape), 2);
        const std::vector<float> v = normal(v_size(shape), 3);
        const std::vector<std::uint8_t> padding =
            options.padding ? random_padding(batch * keys, 4) : std::vector<std::uint8_t>{};
        const DeviceBuffer<std::uint8_t> padding_device{std::span(padding)};
        const float scale =
            options.scale.value_or(width == 0 ? 1.0f : 1 / std::sqrt(static_cast<float>(width)));
        Matrix out(batch * queries, heads * value_width, options.row_padding, options.offset);
        run(attention, shape, q, k, v, scale, {options.causal, padding_device.span()}, out, options);
        expect_within(out, day25::self_attention_reference(shape, q, k, v, scale, options.causal, padding));
    }

    // What the version cannot do is left out.
    static void expect_right(const AttentionShape& shape, const Options& options = {}) {
        if (!GetParam()->cannot_run({shape.width, shape.value_width}).empty()) return;
        day25::SelfAttention attention(*GetParam(), shape);
        expect_right(attention, shape, options);
    }
};

INSTANTIATE_TEST_SUITE_P(DayTwentyFive, SelfAttentionTest, course::each_of(day25::versions()),
                         course::VersionName());

TEST_P(SelfAttentionTest, OneHead) {
    for (const std::size_t tokens : {1, 5, 31, 32, 33, 65})
        expect_right({1, 1, tokens, tokens, 8, 8});
    for (const std::size_t width : {1, 3, 33, 68})
        expect_right({1, 1, 9, 12, width, width});
    expect_right({1, 1, 20, 129, 16, 40});
    expect_right({1, 1, 129, 20, 40, 16});
}

TEST_P(SelfAttentionTest, HeadsAndBatches) {
    expect_right({2, 3, 17, 19, 4, 4});
    expect_right({3, 2, 8, 12, 5, 7});
    expect_right({2, 2, 33, 20, 8, 8}, {.row_padding = 3, .offset = 1});
    expect_right({2, 2, 33, 20, 8, 8}, {.row_padding = 8});
}

TEST_P(SelfAttentionTest, Masks) {
    for (const bool causal : {false, true}) {
        for (const bool padding : {false, true}) {
            expect_right({2, 2, 21, 21, 8, 8}, {.causal = causal, .padding = padding});
            expect_right({2, 1, 9, 30, 8, 8}, {.causal = causal, .padding = padding});
            expect_right({1, 2, 30, 9, 8, 8}, {.causal = causal, .padding = padding});
        }
    }
}

TEST_P(SelfAttentionTest, LargeScores) {
    expect_right({1, 1, 20, 40, 8, 8}, {.spread = 100});
}

TEST_P(SelfAttentionTest, EmptyExtents) {
    expect_right({0, 1, 3, 3, 4, 4});
    expect_right({1, 0, 3, 3, 4, 4});
    expect_right({1, 2, 0, 3, 4, 4});
    expect_right({1, 2, 3, 0, 4, 4});
    expect_right({1, 2, 3, 5, 0, 4});
    expect_right({1, 2, 3, 5, 4, 0});
    expect_right({1, 2, 3, 5, 0, 0});
}

TEST_P(SelfAttentionTest, ScalesOfEitherSignAndZero) {
    if (GetParam()->launcher.fused) GTEST_SKIP() << "refuses them: FusedRefusesWhatItCannotDo";
    for (const float scale : {-0.5f, 0.0f, -0.0f, 1e-40f}) {
        SCOPED_TRACE("scale " + std::to_string(scale));
        expect_right({1, 2, 9, 12, 8, 8}, {.scale = scale});
        expect_right({2, 1, 9, 9, 8, 8}, {.causal = true, .padding = true, .scale = scale});
    }
}

// What a query sees is NaN. A query that sees no key gets zeros.
TEST_P(SelfAttentionTest, ScalesThatAreNoNumbers) {
    if (GetParam()->launcher.fused) GTEST_SKIP() << "refuses them: FusedRefusesWhatItCannotDo";
    const AttentionShape shape{1, 2, 5, 7, 4, 4};
    day25::SelfAttention attention(*GetParam(), shape);
    for (const float scale : {kNan, kInf, -kInf}) {
        for (const std::uint8_t hidden : {0, 1}) {
            const std::vector<std::uint8_t> padding(7, hidden);
            const DeviceBuffer<std::uint8_t> padding_device{std::span(padding)};
            Matrix out(5, 8);
            // Scores of both signs in each row: of Inf, one is +Inf.
            std::vector<float> k(k_size(shape));
            for (std::size_t i = 0; i < k.size(); ++i)
                k[i] = i / 8 % 2 == 0 ? 1.0f : -1.0f;
            run(attention, shape, std::vector<float>(q_size(shape), 1.0f), k, normal(v_size(shape), 3), scale,
                {false, padding_device.span()}, out, {});
            for (const float x : out.values())
                EXPECT_TRUE(hidden != 0 ? x == 0 : std::isnan(x))
                    << x << ", scale " << scale << ", hidden " << int{hidden};
        }
    }
}

// One object, several shapes within the constructor's: no result depends on an earlier one.
TEST_P(SelfAttentionTest, SmallerShapesThanItWasMadeFor) {
    day25::SelfAttention attention(*GetParam(), {2, 2, 40, 50, 8, 8});
    expect_right(attention, {2, 2, 40, 50, 8, 8}, {});
    expect_right(attention, {1, 2, 13, 50, 8, 8}, {.causal = true});
    expect_right(attention, {2, 2, 40, 7, 8, 8}, {});
    expect_right(attention, {2, 2, 40, 50, 8, 8}, {.padding = true});
}

// A NaN in a query, in a masked key, in a key, in a value.
TEST_P(SelfAttentionTest, NanGoesWhereItMust) {
    if (GetParam()->launcher.fused)
        GTEST_SKIP() << "fused has no mask for padding; its own tests have NaN in Q, K and V";
    const AttentionShape shape{1, 2, 6, 6, 4, 4};
    const std::vector<std::uint8_t> padding = {0, 0, 0, 0, 0, 1};
    const DeviceBuffer<std::uint8_t> padding_device{std::span(padding)};
    day25::SelfAttention attention(*GetParam(), shape);
    const std::vector<float> clean = normal(6 * 8, 5);
    const auto results = [&](std::size_t in_q, std::size_t in_k, std::size_t in_v) {
        std::vector<float> q = clean, k = clean, v = clean;
        if (in_q < q.size()) q[in_q] = kNan;
        if (in_k < k.size()) k[in_k] = kNan;
        if (in_v < v.size()) v[in_v] = kNan;
        Matrix out(6, 8);
        run(attention, shape, q, k, v, 0.5f, {true, padding_device.span()}, out, {});
        return out.values();
    };
    constexpr std::size_t kNone = 1000;
    const std::vector<float> right = results(kNone, kNone, kNone);
    const auto expect_nan = [&](const std::vector<float>& got, auto is_nan) {
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (is_nan(i / 8, i % 8)) {
                EXPECT_TRUE(std::isnan(got[i])) << i / 8 << ", " << i % 8;
            } else {
                EXPECT_EQ(got[i], right[i]) << i / 8 << ", " << i % 8;
            }
        }
    };
    // Row 2 of head 1; key 3, seen by queries 3 to 5, in head 0; the padded key; value 4 in one
    // column.
    expect_nan(results(2 * 8 + 5, kNone, kNone),
               [](std::size_t row, std::size_t col) { return row == 2 && col >= 4; });
    expect_nan(results(kNone, 3 * 8 + 1, kNone),
               [](std::size_t row, std::size_t col) { return row >= 3 && col < 4; });
    expect_nan(results(kNone, 5 * 8 + 1, kNone), [](std::size_t, std::size_t) { return false; });
    // A weight of 0 times NaN is NaN.
    expect_nan(results(kNone, kNone, 4 * 8 + 2), [](std::size_t, std::size_t col) { return col == 2; });
}

TEST_P(SelfAttentionTest, RefusesWhatItCannotDo) {
    for (const AttentionShape& shape :
         {AttentionShape{1, 1, 2, 3, 4, 5}, AttentionShape{1, 1, 2, 3, 129, 129}}) {
        const std::string reason = GetParam()->cannot_run({shape.width, shape.value_width});
        EXPECT_EQ(reason.empty(), !GetParam()->launcher.fused);
        EXPECT_EQ(refusal([&] { day25::SelfAttention(*GetParam(), shape); }),
                  reason.empty() ? "" : "day25: self-attention: fused " + reason);
    }
    day25::SelfAttention attention(*GetParam(), {1, 1, 2, 2, 4, 4});
    auto in = course::zeros<float>(8), out = course::zeros<float>(8);
    const std::vector<std::uint8_t> nothing_hidden(2);
    const DeviceBuffer<std::uint8_t> padding{std::span(nothing_hidden)};
    EXPECT_EQ(refusal([&] {
                  attention(in.matrix(2, 4), in.matrix(2, 4), in.matrix(2, 4), out.matrix(2, 4), 1,
                            {false, padding.span()}, nullptr);
              }),
              GetParam()->launcher.fused ? "day25: self-attention: fused has no mask for padding" : "");
}

TEST_P(SelfAttentionTest, FusedRefusesWhatItCannotDo) {
    if (!GetParam()->launcher.fused) GTEST_SKIP() << "the others can";
    auto memory = course::zeros<float>(2 * 32);
    day25::SelfAttention attention(*GetParam(), {1, 1, 4, 4, 8, 8});
    const auto in = memory.matrix(4, 8);
    const auto with = [&](DeviceMatrix<float> q, DeviceMatrix<float> out, float scale) {
        return refusal([&] { attention(q, q, q, out, scale, {}, nullptr); });
    };
    const DeviceMatrix<float> out(memory.span().subspan(32, 32), 4, 8);
    EXPECT_EQ(with(in, out, 1), "");
    for (const auto& [scale, text] : {std::pair{0.0f, "0"},
                                      {-0.0f, "-0"},
                                      {-0.5f, "-0.5"},
                                      {kInf, "inf"},
                                      {-kInf, "-inf"},
                                      {kNan, "nan"}})
        EXPECT_EQ(with(in, out, scale),
                  std::string("fused attention: scale is ") + text + "; expected a finite number above 0");
    EXPECT_EQ(with(DeviceMatrix<float>(memory.span().subspan(0, 56), 4, 8, 16),
                   DeviceMatrix<float>(memory.span().subspan(8, 56), 4, 8, 16), 1),
              "fused attention: out overlaps an input; expected memory of its own");
}

TEST_P(SelfAttentionTest, RefusesWhatDoesNotFit) {
    day25::SelfAttention attention(*GetParam(), {1, 2, 3, 4, 6, 6});
    auto q = course::zeros<float>(36), k = course::zeros<float>(48), v = course::zeros<float>(48);
    DeviceBuffer<float> out(36);
    auto padding = course::zeros<std::uint8_t>(3);
    const auto with = [&](DeviceMatrix<float> q_, DeviceMatrix<float> k_, DeviceMatrix<float> v_,
                          DeviceMatrix<float> out_, Mask mask) {
        return refusal([&] { attention(q_, k_, v_, out_, 1, mask, nullptr); });
    };
    EXPECT_EQ(with(q.matrix(3, 12), k.matrix(4, 12), v.matrix(4, 12), out.matrix(3, 12), {}), "");
    EXPECT_EQ(with(q.matrix(2, 12), k.matrix(4, 12), v.matrix(4, 12), out.matrix(3, 12), {}),
              "day25: self-attention: q is 2 x 12; expected 3 x 12");
    EXPECT_EQ(with(q.matrix(3, 12), k.matrix(4, 11), v.matrix(4, 12), out.matrix(3, 12), {}),
              "day25: self-attention: k is 4 x 11; expected 4 x 12");
    EXPECT_EQ(with(q.matrix(3, 12), k.matrix(4, 12), v.matrix(4, 11), out.matrix(3, 12), {}),
              "day25: self-attention: v is 4 x 11; expected 4 x 12");
    EXPECT_EQ(with(q.matrix(3, 12), k.matrix(4, 12), v.matrix(4, 12), out.matrix(3, 11), {}),
              "day25: self-attention: out is 3 x 11; expected 3 x 12");
    EXPECT_EQ(with(q.matrix(3, 12), k.matrix(4, 12), v.matrix(4, 12), v.matrix(3, 12), {}),
              "day25: self-attention: out overlaps q, k or v; expected that it does not");
    EXPECT_EQ(
        with(q.matrix(3, 12), k.matrix(4, 12), v.matrix(4, 12), out.matrix(3, 12), {false, padding.span()}),
        "day25: self-attention: padding has 3 elements; expected none or batch x keys = 4");
    const AttentionShape larger{1, 2, 3, 5, 6, 6};
    EXPECT_EQ(refusal([&] {
                  attention(larger, q.matrix(3, 12), k.matrix(4, 12), v.matrix(4, 12), out.matrix(3, 12), 1,
                            {}, nullptr);
              }),
              "day25: self-attention: batch 1, heads 2, queries 3, keys 5, width 6, value width 6; expected "
              "at most "
              "batch 1, queries 3, keys 4, and heads 2, width 6, value width 6");
}

// 10 GB of scores, more than 32 bits count. Some queries are verified, the last one included.
TEST_P(SelfAttentionTest, MoreElementsThan32BitsCount) {
    const AttentionShape shape{1, 1, 49157, 49153, 4, 4};
    if (const std::string reason = course::why_not_so_large(shape.queries * (shape.keys + 3) * sizeof(float));
        !reason.empty())
        GTEST_SKIP() << reason;
    const std::vector<float> q = normal(q_size(shape), 1), k = normal(k_size(shape), 2),
                             v = normal(v_size(shape), 3);
    day25::SelfAttention attention(*GetParam(), shape);
    Matrix out(shape.queries, 4);
    run(attention, shape, q, k, v, 0.5f, {}, out, {});
    const std::vector<float> got = out.values();
    for (const std::size_t first : {0, 21844, 43689, 49150}) {
        const AttentionShape few{1, 1, 7, shape.keys, 4, 4};
        const course::VerifyResult result = day25::verify(
            std::span(got).subspan(first * 4, 28),
            day25::self_attention_reference(few, std::span(q).subspan(first * 4, 28), k, v, 0.5f, false, {}));
        EXPECT_TRUE(result.ok()) << "from query " << first << ": " << result.message();
    }
}

// --- Backends ------------------------------------------------------------------------------------

// A backend made for no shape has no scratch memory, and still multiplies.
TEST_P(SelfAttentionTest, BackendDoesShapesItWasNotMadeFor) {
    const auto backend = GetParam()->launcher.make_backend({});
    for (const day25::ProductShape shape :
         {day25::ProductShape{64, 64, 2000}, day25::ProductShape{5, 200, 300},
          day25::ProductShape{130, 70, 33}}) {
        const std::vector<float> a_host = normal(shape.rows * shape.depth, 1);
        const std::vector<float> b_host = normal(shape.depth * shape.cols, 2);
        Matrix a(shape.rows, shape.depth), b(shape.depth, shape.cols), c(shape.rows, shape.cols);
        a.set(a_host);
        b.set(b_host);
        backend->multiply({a.view(), b.view(), c.view()}, nullptr);
        expect_within(c, day25::multiply(Bounded(shape.rows, shape.depth, a_host),
                                         Bounded(shape.depth, shape.cols, b_host)));
        const day25::Product transposed{b.view(), a.view(), c.view(), true};
        if (!backend->takes_transposed()) {
            EXPECT_EQ(refusal([&] { backend->multiply(transposed, nullptr); }),
                      "day25: ladder: transpose_b is set; expected a B that is not transposed");
        }
    }
}

// --- The references themselves -------------------------------------------------------------------

TEST(AttentionReference, KnownValues) {
    // Two keys, scores ln 3 and 0: weights 3/4 and 1/4.
    const std::vector<float> q = {1}, k = {std::log(3.0f), 0}, v = {8, 4};
    const Bounded out = day25::self_attention_reference({1, 1, 1, 2, 1, 1}, q, k, v, 1, false, {});
    EXPECT_NEAR(out.value[0], 7, 1e-6);
    const std::vector<float> h = {1, 2}, s = {3, 4, 5, 6}, w = {1, 2, 3, 4};
    EXPECT_EQ(day25::score_reference(Scoring::kDot, {2, 2, 2, 0}, h, s, {}, {}).value,
              (std::vector<double>{11, 17}));
    // h^T W = {7, 10}
    EXPECT_EQ(day25::score_reference(Scoring::kLuong, {2, 2, 2, 0}, h, s, w, {}).value,
              (std::vector<double>{61, 95}));
    const std::vector<float> one_unit = {0.1f, 0.2f, 0.3f, -0.1f}, twice = {2};
    const Bounded score = day25::score_reference(Scoring::kBahdanau, {2, 2, 2, 1}, h, s, one_unit, twice);
    EXPECT_NEAR(score.value[0], 2 * std::tanh(1.0), 1e-6);
    EXPECT_NEAR(score.value[1], 2 * std::tanh(1.4), 1e-6);
}

// The bound must see a key of a hundred left out, or a head's scale a thousandth off.
TEST(AttentionReference, BoundsAreTightEnough) {
    const std::vector<float> q = normal(64, 1), k = normal(6400, 2), v = normal(6400, 3);
    const Bounded all = day25::self_attention_reference({1, 1, 1, 100, 64, 64}, q, k, v, 0.125f, false, {});
    const auto others = {
        day25::self_attention_reference({1, 1, 1, 99, 64, 64}, q, std::span(k).first(6336),
                                        std::span(v).first(6336), 0.125f, false, {}),
        day25::self_attention_reference({1, 1, 1, 100, 64, 64}, q, k, v, 0.125125f, false, {})};
    for (const Bounded& other : others) {
        const std::vector<float> got(other.value.begin(), other.value.end());
        EXPECT_GT(day25::verify(got, all).differing, 32U);  // more than half
    }
}

// The bound that the program verifies with, for one query of 2048 keys of 512 columns.
TEST(AttentionReference, BoundsOfIndependentErrorsAreTightEnough) {
    constexpr std::size_t kKeys = 2048, kWidth = 512;
    const std::vector<float> q = normal(kWidth, 1), k = normal(kKeys * kWidth, 2),
                             v = normal(kKeys * kWidth, 3);
    const auto scale = 1 / std::sqrt(static_cast<float>(kWidth));
    const auto expected = [&](float factor) {
        return day25::self_attention_reference({1, 1, 1, kKeys, kWidth, kWidth}, q, k, v, factor * scale,
                                               false, {}, course::Growth::kSquareRoot);
    };
    const Bounded right = expected(1);
    const auto wrong = [&](const Bounded& other) {
        return day25::verify(std::vector<float>(other.value.begin(), other.value.end()), right).differing;
    };
    EXPECT_EQ(wrong(right), 0U);
    EXPECT_GT(wrong(Bounded(1, kWidth)), 9 * kWidth / 10) << "zeros";
    EXPECT_GT(wrong(expected(0)), 9 * kWidth / 10) << "the same weight for every key";
    EXPECT_GT(wrong(expected(1.001f)), kWidth / 100) << "a scale that is a thousandth off";
}

}  // namespace

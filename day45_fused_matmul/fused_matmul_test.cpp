// Batched products: every version, every layout, awkward shapes.
#include "fused_matmul.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/verify.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/test_operands.hpp"

namespace {

using course::DataPattern;
using course::refusal;
using Layout = course::BatchLayout;
using course::Op;
using course::TestBatch;
using day45::Shape;

constexpr Op kOps[] = {Op::kNone, Op::kTranspose};

std::string text(const Shape& s) {
    return std::to_string(s.count) + " of " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
           std::to_string(s.k);
}

class BatchedTest : public course::DeviceTestWithParam<const day45::Batched*> {
  protected:
    void expect_right(const Shape& s, const Layout& a_layout, const Layout& b_layout,
                      const Layout& c_layout = {}, float alpha = 1, float beta = 0,
                      DataPattern pattern = DataPattern::kSignedUniform) const {
        const std::string where = text(s) + (a_layout.op == Op::kNone ? ", N" : ", T") +
                                  (b_layout.op == Op::kNone ? "N" : "T") + ", alpha " +
                                  std::to_string(alpha) + ", beta " + std::to_string(beta);
        const auto a = course::make_data<float>(s.count * s.m * s.k, pattern, 1);
        const auto b = course::make_data<float>(s.count * s.k * s.n, pattern, 2);
        const auto before = course::make_data<float>(s.count * s.m * s.n, DataPattern::kSignedUniform, 3);
        std::vector<double> product(before.begin(), before.end());
        std::vector<double> magnitude(product.size());
        day45::multiply_on_cpu(s, alpha, a, b, beta, product, magnitude);

        TestBatch<const float> a_device(a, s.count, s.m, s.k, a_layout);
        TestBatch<const float> b_device(b, s.count, s.k, s.n, b_layout);
        TestBatch<float> c_device = beta == 0 ? TestBatch<float>(s.count, s.m, s.n, c_layout)
                                              : TestBatch<float>(before, s.count, s.m, s.n, c_layout);
        GetParam()->launcher({.operands = {a_device.view(), b_device.view(), a_layout.op, b_layout.op},
                              .c = c_device.view(),
                              .alpha = alpha,
                              .beta = beta},
                             nullptr);
        course::VerifyResult result =
            course::verify(c_device.packed(), product,
                           {.terms = s.k + 1, .growth = course::Growth::kSquareRoot}, magnitude, s.n);
        result.damage = c_device.damage() + a_device.damage() + b_device.damage();
        EXPECT_TRUE(result.ok()) << where << ": " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(DayFortyFive, BatchedTest, course::each_of(day45::versions()),
                         course::VersionName());

TEST_P(BatchedTest, EveryLayout) {
    for (const Op op_a : kOps) {
        for (const Op op_b : kOps) {
            for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{3, 33, 65, 17}, Shape{2, 128, 256, 8},
                                   Shape{2, 132, 260, 24}, Shape{1, 127, 255, 31}})
                expect_right(s, {.op = op_a}, {.op = op_b});
            expect_right({2, 36, 68, 20}, {.op = op_a, .padding = 4}, {.op = op_b, .padding = 8});
            expect_right({2, 36, 68, 20}, {.op = op_a, .padding = 3}, {.op = op_b, .padding = 4});
            expect_right({2, 36, 68, 20}, {.op = op_a, .misaligned_by = 1}, {.op = op_b});
            expect_right({2, 36, 68, 20}, {.op = op_a}, {.op = op_b, .misaligned_by = 2}, {.padding = 1});
            expect_right({3, 20, 40, 12}, {.op = op_a, .pointers = true}, {.op = op_b, .pointers = true},
                         {.padding = 2, .pointers = true});
            expect_right({3, 20, 40, 12}, {.op = op_a}, {.op = op_b, .pointers = true});
            expect_right({3, 20, 40, 12}, {.op = op_a, .pointers = true}, {.op = op_b});
        }
    }
}

// Around a step of K, the stages of the pipeline, and where the tile ends.
TEST_P(BatchedTest, Edges) {
    for (const std::size_t k : {0, 1, 7, 8, 9, 16, 23, 24, 25, 31, 32, 33, 40, 97})
        expect_right({2, 5, 9, k}, {}, {.op = Op::kTranspose});
    for (const std::size_t m : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257})
        expect_right({2, m, 36, 12}, {.op = Op::kTranspose}, {});
    for (const std::size_t n : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 513})
        expect_right({2, 20, n, 12}, {}, {});
}

TEST_P(BatchedTest, NothingToWrite) {
    for (const Shape& s : {Shape{0, 4, 4, 4}, Shape{2, 0, 4, 4}, Shape{2, 4, 0, 4}})
        expect_right(s, {}, {});
}

TEST_P(BatchedTest, AlphaAndBeta) {
    for (const auto& [alpha, beta] : {std::pair{2.0f, 0.0f}, {1.0f, 1.0f}, {-0.5f, 2.0f}, {0.0f, 3.0f}}) {
        expect_right({3, 33, 66, 20}, {}, {}, {}, alpha, beta);
        expect_right({2, 130, 260, 0}, {}, {}, {.padding = 4}, alpha, beta);
    }
}

TEST_P(BatchedTest, Patterns) {
    for (const DataPattern pattern :
         {DataPattern::kNormal, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny, DataPattern::kWithNan})
        expect_right({2, 40, 70, 30}, {}, {.op = Op::kTranspose}, {}, 1, 0, pattern);
}

// More products than blocks that run at the same time, so that each block goes from tile to tile.
TEST_P(BatchedTest, ManyProducts) {
    expect_right({300, 3, 5, 9}, {}, {});
    expect_right({150, 10, 7, 20}, {.op = Op::kTranspose}, {.op = Op::kTranspose}, {.pointers = true});
}

TEST_P(BatchedTest, OneMatrixForAllProducts) {
    const Shape s{4, 20, 30, 10};
    const auto a = course::make_data<float>(s.m * s.k, DataPattern::kSignedUniform, 1);
    const auto b = course::make_data<float>(s.count * s.k * s.n, DataPattern::kSignedUniform, 2);
    std::vector<float> same;
    for (std::size_t i = 0; i < s.count; ++i)
        same.insert(same.end(), a.begin(), a.end());
    std::vector<double> product(s.count * s.m * s.n);
    std::vector<double> magnitude(product.size());
    day45::multiply_on_cpu(s, 1, same, b, 0, product, magnitude);
    TestBatch<const float> a_device(a, 1, s.m, s.k, {});
    TestBatch<const float> b_device(b, s.count, s.k, s.n, {});
    TestBatch<float> c_device(s.count, s.m, s.n, {});
    course::Batch<const float> one_for_all = a_device.view();
    one_for_all.count = s.count;
    one_for_all.stride = 0;
    GetParam()->launcher({.operands = {one_for_all, b_device.view()}, .c = c_device.view()}, nullptr);
    const course::VerifyResult result = course::verify(c_device.packed(), product, {.terms = s.k}, magnitude);
    EXPECT_TRUE(result.ok()) << result.message();
}

// Each matrix of A and of B begins three elements behind the one before: no row of most of them is
// aligned.
TEST_P(BatchedTest, OperandsThatOverlap) {
    const Shape s{3, 36, 40, 12};
    constexpr std::size_t kStride = 3;
    const auto memory = course::make_data<float>(2000, DataPattern::kSignedUniform, 1);
    const course::DeviceBuffer<float> on_device{std::span<const float>(memory)};
    // op(), packed, of all matrices that lie in memory as rows x cols.
    const auto packed = [&](Op op, std::size_t rows, std::size_t cols) {
        std::vector<float> all;
        for (std::size_t i = 0; i < s.count; ++i) {
            for (std::size_t e = 0; e < rows * cols; ++e)
                all.push_back(memory[i * kStride + (op == Op::kNone ? e : e % rows * cols + e / rows)]);
        }
        return all;
    };
    std::vector<const float*> begins;
    for (std::size_t i = 0; i < s.count; ++i)
        begins.push_back(on_device.data() + i * kStride);
    const course::DeviceBuffer<const float*> pointers{std::span<const float* const>(begins)};
    const auto batch = [&](std::size_t rows, std::size_t cols, bool with_pointers) {
        course::Batch<const float> all{
            .first = on_device.matrix(rows, cols), .count = s.count, .stride = kStride};
        if (with_pointers) {
            all.stride = 0;
            all.pointers = pointers.span();
        }
        return all;
    };
    for (const Op op_a : kOps) {
        for (const Op op_b : kOps) {
            const std::size_t a_rows = op_a == Op::kNone ? s.m : s.k;
            const std::size_t b_rows = op_b == Op::kNone ? s.k : s.n;
            const std::size_t a_cols = s.m + s.k - a_rows;
            const std::size_t b_cols = s.n + s.k - b_rows;
            std::vector<double> product(s.count * s.m * s.n);
            std::vector<double> magnitude(product.size());
            day45::multiply_on_cpu(s, 1, packed(op_a, a_rows, a_cols), packed(op_b, b_rows, b_cols), 0,
                                   product, magnitude);
            for (const bool with_pointers : {false, true}) {
                TestBatch<float> c(s.count, s.m, s.n, {});
                GetParam()->launcher({.operands = {batch(a_rows, a_cols, with_pointers),
                                                   batch(b_rows, b_cols, with_pointers), op_a, op_b},
                                      .c = c.view()},
                                     nullptr);
                const course::VerifyResult result =
                    course::verify(c.packed(), product, {.terms = s.k}, magnitude);
                EXPECT_TRUE(result.ok()) << result.message();
            }
        }
    }
}

// The memory of A and B ends where the matrices end: nothing behind them may be read.
TEST_P(BatchedTest, ReadsNothingBehindTheOperands) {
    const std::vector<float> ones(16 * 12, 1.0f);
    const course::DeviceBuffer<float> a{std::span<const float>(ones)};
    const course::DeviceBuffer<float> b{std::span<const float>(ones)};
    for (const Op op_a : kOps) {
        for (const Op op_b : kOps) {
            TestBatch<float> c(1, 16, 16, {});
            GetParam()->launcher(
                {.operands = {{.first = op_a == Op::kNone ? a.matrix(16, 12) : a.matrix(12, 16)},
                              {.first = op_b == Op::kNone ? b.matrix(12, 16) : b.matrix(16, 12)},
                              op_a,
                              op_b},
                 .c = c.view()},
                nullptr);
            EXPECT_EQ(c.packed(), std::vector<float>(16 * 16, 12.0f));
        }
    }
}

// Each product a part of the columns of one wide matrix, as attention heads have them.
TEST_P(BatchedTest, ProductsSideBySide) {
    const Shape s{3, 20, 36, 10};
    const auto a = course::make_data<float>(s.count * s.m * s.k, DataPattern::kSignedUniform, 1);
    const auto b = course::make_data<float>(s.count * s.k * s.n, DataPattern::kSignedUniform, 2);
    std::vector<double> product(s.count * s.m * s.n);
    std::vector<double> magnitude(product.size());
    day45::multiply_on_cpu(s, 1, a, b, 0, product, magnitude);
    TestBatch<const float> a_device(a, s.count, s.m, s.k, {});
    TestBatch<const float> b_device(b, s.count, s.k, s.n, {});
    const std::size_t width = s.count * s.n;
    course::GuardedMatrix<float> c(s.m, width);
    const auto part =
        course::DeviceSpan<float>::from_device_pointer(c.view().data(), (s.m - 1) * width + s.n);
    GetParam()->launcher({.operands = {a_device.view(), b_device.view()},
                          .c = {.first = {part, s.m, s.n, width}, .count = s.count, .stride = s.n}},
                         nullptr);
    const std::vector<float> wide = c.packed();
    std::vector<float> got(wide.size());
    for (std::size_t e = 0; e < wide.size(); ++e)
        got[(e % width / s.n * s.m + e / width) * s.n + e % s.n] = wide[e];
    course::VerifyResult result = course::verify(got, product, {.terms = s.k}, magnitude);
    result.damage = c.damage();
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(BatchedTest, RandomShapes) {
    constexpr std::uint64_t kSeed = 4545;
    SCOPED_TRACE("course::Random seed 4545");
    course::Random random(kSeed);
    for (int round = 0; round < 12; ++round) {
        const Shape s{1 + random.below(4), 1 + random.below(200), 1 + random.below(300), random.below(70)};
        expect_right(s, {kOps[random.below(2)], random.below(5), random.below(3), random.below(2) == 1},
                     {kOps[random.below(2)], random.below(5), random.below(3), random.below(2) == 1},
                     {Op::kNone, random.below(5), random.below(3), random.below(2) == 1}, 1,
                     random.below(2) == 1 ? 0.5f : 0.0f);
    }
}

TEST_P(BatchedTest, RunsOnTheGivenStream) {
    const Shape s{2, 20, 30, 10};
    const std::vector<float> ones(s.count * s.m * s.k + s.count * s.k * s.n, 1.0f);
    TestBatch<const float> a(std::span<const float>(ones).first(s.count * s.m * s.k), s.count, s.m, s.k, {});
    TestBatch<const float> b(std::span<const float>(ones).first(s.count * s.k * s.n), s.count, s.k, s.n, {});
    TestBatch<float> c(s.count, s.m, s.n, {});
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher({.operands = {a.view(), b.view()}, .c = c.view()}, stream);
    });
    EXPECT_TRUE(std::isnan(c.packed().front())) << "it ran instead of being captured";
    work.run();
    EXPECT_EQ(c.packed(), std::vector<float>(s.count * s.m * s.n, 10.0f));
}

// Which version `fitted` is, on the 132 multiprocessors of an H200 and on two cores.
TEST(BatchedTileFor, SuitsTheShape) {
    const auto tile = [](const Shape& shape, std::size_t multiprocessors = 132) {
        return day45::tile_for(shape, multiprocessors);
    };
    EXPECT_EQ(tile({256, 256, 256, 256}), "pipelined") << "nothing of its tiles lies outside";
    EXPECT_EQ(tile({64, 512, 512, 512}), "pipelined");
    EXPECT_EQ(tile({128, 1024, 1024, 64}), "pipelined");
    EXPECT_EQ(tile({1, 8192, 8192, 64}), "pipelined");
    EXPECT_EQ(tile({1024, 128, 128, 128}), "pipelined_128x128") << "half of a large tile lies outside";
    EXPECT_EQ(tile({1024, 96, 96, 128}), "pipelined_128x128") << "the same of four small ones";
    EXPECT_EQ(tile({256, 128, 300, 64}), "pipelined_128x128") << "three instead of two tiles twice as large";
    EXPECT_EQ(tile({1024, 128, 256, 64}), "pipelined");
    EXPECT_EQ(tile({1024, 256, 128, 64}), "pipelined_128x128") << "a large tile is wide, not high";
    EXPECT_EQ(tile({132, 128, 256, 64}), "pipelined") << "one for each multiprocessor";
    EXPECT_EQ(tile({150, 128, 256, 64}), "pipelined_128x128")
        << "three of half the size; of large tiles one multiprocessor has two";
    EXPECT_EQ(tile({132, 128, 128, 64}), "pipelined_64x64")
        << "four small tiles keep a multiprocessor busier than one with half of the threads";
    EXPECT_EQ(tile({1024, 64, 64, 64}), "pipelined_64x64");
    EXPECT_EQ(tile({1024, 64, 128, 64}), "pipelined_64x64");
    EXPECT_EQ(tile({1024, 1, 8192, 64}), "pipelined_64x64");
    EXPECT_EQ(tile({1, 256, 256, 64}), "pipelined_64x64") << "sixteen multiprocessors instead of two";
    EXPECT_EQ(tile({1, 256, 256, 64}, 2), "pipelined") << "one tile for each";
    EXPECT_EQ(tile({0, 5, 5, 5}), "pipelined_64x64") << "nothing takes no time";
}

TEST_P(BatchedTest, RefusesBadArguments) {
    TestBatch<const float> a(std::vector<float>(2 * 3 * 4), 2, 3, 4, {});
    TestBatch<const float> b(std::vector<float>(2 * 5 * 6), 2, 5, 6, {});
    TestBatch<const float> right_b(std::vector<float>(2 * 4 * 6), 2, 4, 6, {});
    TestBatch<const float> three_b(std::vector<float>(3 * 4 * 6), 3, 4, 6, {});
    TestBatch<float> c(2, 3, 6, {});
    TestBatch<float> small(2, 3, 5, {});
    const auto with = [&](const day45::BatchedMatmul& matmul) {
        return refusal([&] { GetParam()->launcher(matmul, nullptr); });
    };
    EXPECT_EQ(with({.operands = {a.view(), b.view()}, .c = c.view()}),
              "batched matmul: op(A) is 3 x 4 and op(B) 5 x 6; expected as many rows of op(B) as op(A) has "
              "columns");
    EXPECT_EQ(with({.operands = {a.view(), three_b.view()}, .c = c.view()}),
              "batched matmul: there are 2 matrices A and 3 matrices B; expected as many");
    EXPECT_EQ(with({.operands = {a.view(), right_b.view()}, .c = small.view()}),
              "batched matmul: there are 2 matrices C of 3 x 5; expected 2 of 3 x 6");
    const day45::BatchedMatmul right{.operands = {a.view(), right_b.view()}, .c = c.view()};
    EXPECT_EQ(with(right), "");
    day45::BatchedMatmul wrong = right;
    wrong.c.stride = 17;
    EXPECT_EQ(with(wrong),
              "batched matmul: the stride of C is 17; expected at least 18, or matrices side by side, so "
              "that they do not overlap");
    course::DeviceBuffer<float*> one_pointer(1);
    wrong = right;
    wrong.c.pointers = std::as_const(one_pointer).span();
    EXPECT_EQ(with(wrong), "batched matmul: C has 1 pointers for 2 matrices; expected one for each");
    course::DeviceBuffer<float> shared(100);
    const auto part = [&](std::size_t offset, std::size_t rows, std::size_t cols) {
        return course::DeviceMatrix<float>(shared.span().subspan(offset, 100 - offset), rows, cols);
    };
    wrong = {.operands = {{.first = part(0, 3, 4)}, {.first = part(12, 4, 6)}},
             .c = {.first = part(36, 3, 6)}};
    EXPECT_EQ(with(wrong), "");
    wrong.c.first = part(35, 3, 6);
    EXPECT_EQ(with(wrong), "batched matmul: C overlaps B; expected memory of its own for it");
    wrong.operands.a.first = part(53, 3, 4);
    wrong.operands.b.first = part(0, 4, 6);
    wrong.c.first = part(36, 3, 6);
    EXPECT_EQ(with(wrong), "batched matmul: C overlaps A; expected memory of its own for it");
    const std::size_t far = std::size_t{1} << 26;
    const auto one_row = course::DeviceSpan<const float>::from_device_pointer(shared.data(), 6);
    wrong.operands = {{.first = part(0, 3, 1)}, {.first = {one_row, 1, 6, far}}};
    EXPECT_EQ(with(wrong), "batched matmul: a leading dimension is 67108864; expected at most 2^26 - 1");
}

}  // namespace

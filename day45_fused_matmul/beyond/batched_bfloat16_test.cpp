// Batched products of BF16 matrices: every version, every layout, awkward shapes.
#include "batched_bfloat16.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/verify.hpp"
#include "common/device/grid.hpp"
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
using Bf16 = __nv_bfloat16;

constexpr Op kOps[] = {Op::kNone, Op::kTranspose};

// Small: every product and every sum of a few thousand is exact in single precision, so that only
// equal is right.
std::vector<Bf16> integers(std::size_t size, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<Bf16> values(size);
    for (Bf16& value : values)
        value = Bf16(static_cast<float>(random.below(17)) - 8.0f);
    return values;
}

std::vector<float> as_floats(const std::vector<Bf16>& values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](Bf16 value) { return static_cast<float>(value); });
    return floats;
}

struct Layouts {
    Layout a{}, b{}, c{};
};

std::string text(const Shape& s, const Layouts& layouts) {
    return std::to_string(s.count) + " of " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
           std::to_string(s.k) + (layouts.a.op == Op::kNone ? ", N" : ", T") +
           (layouts.b.op == Op::kNone ? "N" : "T");
}

class BatchedBfloat16Test : public course::DeviceTestWithParam<const day45::BatchedBfloat16*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day45::BatchedBfloat16*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    void expect_within(const course::Bound& bound, const Shape& s, const std::vector<Bf16>& a,
                       const std::vector<Bf16>& b, const Layouts& layouts, float alpha, float beta) const {
        const auto before = course::make_data<float>(s.count * s.m * s.n, DataPattern::kSignedUniform, 3);
        std::vector<double> product(before.begin(), before.end());
        std::vector<double> magnitude(product.size());
        day45::multiply_on_cpu(s, alpha, as_floats(a), as_floats(b), beta, product, magnitude);

        TestBatch<const Bf16> a_device(a, s.count, s.m, s.k, layouts.a);
        TestBatch<const Bf16> b_device(b, s.count, s.k, s.n, layouts.b);
        TestBatch<float> c_device = beta == 0 ? TestBatch<float>(s.count, s.m, s.n, layouts.c)
                                              : TestBatch<float>(before, s.count, s.m, s.n, layouts.c);
        GetParam()->launcher({.operands = {a_device.view(), b_device.view(), layouts.a.op, layouts.b.op},
                              .c = c_device.view(),
                              .alpha = alpha,
                              .beta = beta},
                             nullptr);
        course::VerifyResult result = course::verify(c_device.packed(), product, bound, magnitude, s.n);
        result.damage = c_device.damage() + a_device.damage() + b_device.damage();
        EXPECT_TRUE(result.ok()) << text(s, layouts) << ", alpha " << alpha << ", beta " << beta << ": "
                                 << result.message();
    }

    void expect_exact(const Shape& s, const Layouts& layouts = {}) const {
        expect_within({.factor = 0}, s, integers(s.count * s.m * s.k, 1), integers(s.count * s.k * s.n, 2),
                      layouts, 1, 0);
    }

    void expect_right(const Shape& s, const Layouts& layouts = {}, float alpha = 1, float beta = 0,
                      DataPattern pattern = DataPattern::kSignedUniform) const {
        expect_within({.terms = s.k + 1}, s, course::make_data<Bf16>(s.count * s.m * s.k, pattern, 1),
                      course::make_data<Bf16>(s.count * s.k * s.n, pattern, 2), layouts, alpha, beta);
    }
};

INSTANTIATE_TEST_SUITE_P(DayFortyFive, BatchedBfloat16Test, course::each_of(day45::bfloat16_versions()),
                         course::VersionName());
INSTANTIATE_TEST_SUITE_P(TilesOfWgmma, BatchedBfloat16Test, course::each_of(day45::wgmma_tiles()),
                         course::VersionName());

// Rows of whole chunks of eight, and others; aligned to 16 bytes, and not.
TEST_P(BatchedBfloat16Test, EveryLayout) {
    for (const Op op_a : kOps) {
        for (const Op op_b : kOps) {
            const Layout a{.op = op_a};
            const Layout b{.op = op_b};
            // The last one: the columns of a tile that is 256 wide, and a second tile.
            for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{3, 33, 65, 17}, Shape{1, 128, 128, 64},
                                   Shape{1, 136, 144, 72}, Shape{1, 8, 264, 64}})
                expect_exact(s, {a, b});
            const Shape small{2, 40, 24, 80};
            expect_exact(small, {{.op = op_a, .padding = 8}, {.op = op_b, .padding = 16}});
            expect_exact(small, {{.op = op_a, .padding = 3}, b});
            expect_exact(small, {a, {.op = op_b, .padding = 4}, {.padding = 2}});
            expect_exact(small, {{.op = op_a, .misaligned_by = 1}, b});
            expect_exact(small, {a, {.op = op_b, .misaligned_by = 4}, {.padding = 1}});
            expect_exact(small, {a, b, {.misaligned_by = 1}});
            expect_exact(small, {{.op = op_a, .pointers = true}, b, {.padding = 2, .pointers = true}});
            expect_exact(small, {a, {.op = op_b, .misaligned_by = 2, .pointers = true}});
            // Rows that end within 16 bytes: of 8 and of 4 bytes; aligned rows of odd length.
            for (const std::size_t extent : {20, 22})
                expect_exact({2, extent, extent, extent}, {a, b});
            // C: rows that end within a float4, and rows of whole ones that begin within one.
            expect_exact({2, 40, 22, 20}, {a, b, {.padding = 2}});
            expect_exact({2, 40, 24, 20}, {a, b, {.misaligned_by = 1}});
            const Shape odd{2, 13, 13, 13};
            expect_exact(odd, {{.op = op_a, .padding = 3}, {.op = op_b, .misaligned_by = 1}});
            expect_exact(odd, {{.op = op_a, .misaligned_by = 1}, {.op = op_b, .padding = 3}});
        }
    }
}

// Around a chunk, a product of fragments, a stage, the stages of the pipeline, and where the tile
// ends.
TEST_P(BatchedBfloat16Test, Edges) {
    for (const Op op : kOps) {
        const Layouts layouts{{.op = op}, {.op = op}};
        for (const std::size_t k : {0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 191, 193, 257})
            expect_exact({1, 5, 9, k}, layouts);
        for (const std::size_t k : {8, 56, 64, 72, 136})  // in chunks
            expect_exact({1, 16, 8, k}, layouts);
        // Every stage of a ring twice; rows aligned to 16, 8, 4 and 2 bytes.
        for (const std::size_t k : {896, 900, 898, 901})
            expect_exact({1, 5, 9, k}, layouts);
        for (const std::size_t m : {1, 8, 15, 16, 17, 63, 64, 65, 120, 127, 128, 129})
            expect_exact({2, m, 9, 12}, layouts);
        for (const std::size_t n : {1, 8, 15, 16, 17, 63, 64, 65, 120, 127, 128, 129, 257})
            expect_exact({2, 9, n, 12}, layouts);
    }
}

TEST_P(BatchedBfloat16Test, NothingToWrite) {
    for (const Shape& s : {Shape{0, 4, 4, 4}, Shape{2, 0, 4, 4}, Shape{2, 4, 0, 4}})
        expect_exact(s);
}

TEST_P(BatchedBfloat16Test, AlphaAndBeta) {
    for (const auto& [alpha, beta] : {std::pair{2.0f, 0.0f}, {1.0f, 1.0f}, {-0.5f, 2.0f}, {0.0f, 3.0f}}) {
        expect_right({3, 33, 67, 20}, {}, alpha, beta);
        expect_right({2, 130, 36, 0}, {{}, {}, {.padding = 4}}, alpha, beta);
    }
}

TEST_P(BatchedBfloat16Test, Patterns) {
    for (const DataPattern pattern :
         {DataPattern::kNormal, DataPattern::kAllEqual, DataPattern::kHugeNextToTiny, DataPattern::kWithNan,
          DataPattern::kWithInf})
        expect_right({2, 40, 70, 100}, {{}, {.op = Op::kTranspose}}, 1, 0, pattern);
}

// More tiles than blocks that run at the same time, of which a multiprocessor has two, so that each
// block goes from tile to tile.
TEST_P(BatchedBfloat16Test, ManyProducts) {
    const std::size_t count = 5 * course::multiprocessors() + 1;
    expect_exact({count, 3, 5, 9});
    expect_exact({count, 10, 7, 70}, {{.op = Op::kTranspose}, {.op = Op::kTranspose, .pointers = true}});
    expect_exact({count, 8, 8, 200}, {{}, {.op = Op::kTranspose}});
    expect_exact({count, 4, 4, 0});
    expect_exact({count / 2 + 1, 4, 140, 16});
}

TEST_P(BatchedBfloat16Test, OneMatrixForAllProducts) {
    const Shape s{4, 20, 32, 16};
    const std::vector<Bf16> one = integers(s.m * s.k, 1);
    const std::vector<Bf16> others = integers(s.count * s.k * s.n, 2);
    std::vector<Bf16> same;
    for (std::size_t i = 0; i < s.count; ++i)
        same.insert(same.end(), one.begin(), one.end());
    std::vector<double> product(s.count * s.m * s.n);
    std::vector<double> magnitude(product.size());
    day45::multiply_on_cpu(s, 1, as_floats(same), as_floats(others), 0, product, magnitude);
    TestBatch<const Bf16> a(one, 1, s.m, s.k, {});
    TestBatch<const Bf16> b(others, s.count, s.k, s.n, {});
    TestBatch<float> c(s.count, s.m, s.n, {});
    course::Batch<const Bf16> one_for_all = a.view();
    one_for_all.count = s.count;
    one_for_all.stride = 0;
    GetParam()->launcher({.operands = {one_for_all, b.view()}, .c = c.view()}, nullptr);
    const course::VerifyResult result = course::verify(c.packed(), product, {.factor = 0}, magnitude);
    EXPECT_TRUE(result.ok()) << result.message();
}

// The memory of A and B ends where the matrices end: nothing behind them may be read. Rows that are
// aligned, and rows that are not.
TEST_P(BatchedBfloat16Test, ReadsNothingBehindTheOperands) {
    for (const auto& [m, n, k] : {std::array<std::size_t, 3>{16, 16, 24}, {17, 17, 15}, {20, 20, 12}}) {
        const course::DeviceBuffer<Bf16> a{std::span<const Bf16>(std::vector<Bf16>(m * k, Bf16(1.0f)))};
        const course::DeviceBuffer<Bf16> b{std::span<const Bf16>(std::vector<Bf16>(k * n, Bf16(1.0f)))};
        for (const Op op_a : kOps) {
            for (const Op op_b : kOps) {
                TestBatch<float> c(1, m, n, {});
                GetParam()->launcher(
                    {.operands = {{.first = op_a == Op::kNone ? a.matrix(m, k) : a.matrix(k, m)},
                                  {.first = op_b == Op::kNone ? b.matrix(k, n) : b.matrix(n, k)},
                                  op_a,
                                  op_b},
                     .c = c.view()},
                    nullptr);
                EXPECT_EQ(c.packed(), std::vector<float>(m * n, static_cast<float>(k)));
            }
        }
    }
}

// Each product a part of the columns of wide matrices, as attention heads have them: scores = Q
// K^T, all side by side.
TEST_P(BatchedBfloat16Test, ProductsSideBySide) {
    for (const std::size_t k : {16, 10}) {
        const Shape s{3, 20, 36, k};
        const std::vector<Bf16> q = integers(s.m * s.count * s.k, 1);  // heads side by side
        const std::vector<Bf16> keys = integers(s.n * s.count * s.k, 2);
        const course::DeviceBuffer<Bf16> q_device{std::span<const Bf16>(q)};
        const course::DeviceBuffer<Bf16> keys_device{std::span<const Bf16>(keys)};
        course::GuardedMatrix<float> c(s.m, s.count * s.n);
        const auto head = [&](const auto& buffer, std::size_t rows, std::size_t cols) {
            const std::size_t width = s.count * cols;
            return course::Batch<std::remove_pointer_t<decltype(buffer.data())>>{
                .first = {buffer.subspan(0, (rows - 1) * width + cols), rows, cols, width},
                .count = s.count,
                .stride = cols};
        };
        GetParam()->launcher(
            {.operands = {head(q_device.span(), s.m, s.k), head(keys_device.span(), s.n, s.k), Op::kNone,
                          Op::kTranspose},
             .c = head(course::DeviceSpan<float>::from_device_pointer(c.view().data(), s.m * s.count * s.n),
                       s.m, s.n)},
            nullptr);
        std::vector<double> expected(s.m * s.count * s.n);
        for (std::size_t e = 0; e < expected.size(); ++e) {
            const std::size_t row = e / (s.count * s.n);
            const std::size_t which = e / s.n % s.count;
            for (std::size_t p = which * k; p < (which + 1) * k; ++p)
                expected[e] += static_cast<double>(static_cast<float>(q[row * s.count * k + p])) *
                               static_cast<double>(static_cast<float>(keys[e % s.n * s.count * k + p]));
        }
        course::VerifyResult result = course::verify(c.packed(), expected, {.factor = 0}, {}, s.count * s.n);
        result.damage = c.damage();
        EXPECT_TRUE(result.ok()) << "heads of " << k << ": " << result.message();
    }
}

TEST_P(BatchedBfloat16Test, RandomShapes) {
    constexpr std::uint64_t kSeed = 4516;
    SCOPED_TRACE("course::Random seed 4516");
    course::Random random(kSeed);
    const auto layout = [&] {
        return Layout{kOps[random.below(2)], random.below(9), random.below(3), random.below(2) == 1};
    };
    for (int round = 0; round < 10; ++round) {
        const Shape s{1 + random.below(4), 1 + random.below(150), 1 + random.below(150), random.below(150)};
        Layouts layouts{layout(), layout(), layout()};
        layouts.c.op = Op::kNone;
        expect_right(s, layouts, 1, random.below(2) == 1 ? 0.5f : 0.0f);
    }
}

TEST_P(BatchedBfloat16Test, RunsOnTheGivenStream) {
    const Shape s{2, 20, 30, 10};
    const std::vector<Bf16> ones(s.count * std::max(s.m, s.n) * s.k, Bf16(1.0f));
    TestBatch<const Bf16> a(std::span<const Bf16>(ones).first(s.count * s.m * s.k), s.count, s.m, s.k, {});
    TestBatch<const Bf16> b(std::span<const Bf16>(ones).first(s.count * s.k * s.n), s.count, s.k, s.n, {});
    TestBatch<float> c(s.count, s.m, s.n, {});
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher({.operands = {a.view(), b.view()}, .c = c.view()}, stream);
    });
    EXPECT_TRUE(std::isnan(c.packed().front())) << "it ran instead of being captured";
    work.run();
    EXPECT_EQ(c.packed(), std::vector<float>(s.count * s.m * s.n, 10.0f));
}

TEST_P(BatchedBfloat16Test, RefusesBadArguments) {
    const auto matrix = [](auto* data, std::size_t rows, std::size_t cols) {
        using T = std::remove_pointer_t<decltype(data)>;
        return course::DeviceMatrix<T>(course::DeviceSpan<T>::from_device_pointer(data, rows * cols), rows,
                                       cols);
    };
    course::DeviceBuffer<Bf16> memory(100);
    auto* const operands = std::as_const(memory).data();
    auto* const results = reinterpret_cast<float*>(memory.data());
    const auto with = [&](const day45::Bfloat16Matmul& matmul) {
        return refusal([&] { GetParam()->launcher(matmul, nullptr); });
    };
    const day45::Bfloat16Matmul right{
        .operands = {{.first = matrix(operands, 3, 4)}, {.first = matrix(operands + 12, 4, 6)}},
        .c = {.first = matrix(results + 18, 3, 6)}};
    EXPECT_EQ(with(right), "");
    day45::Bfloat16Matmul wrong = right;
    wrong.c.first = matrix(results + 17, 3, 6);  // four bytes, which are two elements of B
    EXPECT_EQ(with(wrong), "batched matmul: C overlaps B; expected memory of its own for it");
    wrong = right;
    wrong.operands.a.first = matrix(operands + 71, 3, 4);
    EXPECT_EQ(with(wrong), "batched matmul: C overlaps A; expected memory of its own for it");
    wrong = right;
    wrong.operands.b.first = matrix(operands + 12, 5, 6);
    EXPECT_EQ(with(wrong),
              "batched matmul: op(A) is 3 x 4 and op(B) 5 x 6; expected as many rows of op(B) as op(A) has "
              "columns");
    wrong = right;
    wrong.operands.b.count = 2;
    EXPECT_EQ(with(wrong), "batched matmul: there are 1 matrices A and 2 matrices B; expected as many");
    wrong = right;
    wrong.c.first = matrix(results + 18, 6, 3);
    EXPECT_EQ(with(wrong), "batched matmul: there are 1 matrices C of 6 x 3; expected 1 of 3 x 6");
    course::DeviceBuffer<const Bf16*> two_pointers(2);
    wrong = right;
    wrong.operands.a.pointers = std::as_const(two_pointers).span();
    EXPECT_EQ(with(wrong), "batched matmul: A has 2 pointers for 1 matrices; expected one for each");
}

// Rows are counted in int, with room for a tile behind the last.
TEST(BatchedBfloat16, RefusesExtentsThatCannotBeCounted) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const std::size_t most = (std::size_t{1} << 31) - 1024;
    course::DeviceBuffer<float> somewhere(1);  // nothing is read or written
    const auto column = [&]<class T>(T, std::size_t rows, std::size_t cols) {
        return course::DeviceMatrix<T>(
            course::DeviceSpan<T>::from_device_pointer(reinterpret_cast<T*>(somewhere.data()), rows * cols),
            rows, cols);
    };
    const day45::Bfloat16Matmul matmul{
        .operands = {{.first = column(Bf16(), most + 1, 0)}, {.first = column(Bf16(), 0, 1)}},
        .c = {.first = column(0.0f, most + 1, 1)}};
    for (const day45::BatchedBfloat16& version : day45::bfloat16_versions()) {
        if (!version.cannot_run({}).empty()) continue;
        EXPECT_EQ(refusal([&] { version.launcher(matmul, nullptr); }),
                  "batched matmul: m, n and k are 2147482625 x 1 x 0; expected each at most 2147482624 on "
                  "tensor cores")
            << version.name;
    }
}

}  // namespace

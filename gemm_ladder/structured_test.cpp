// SYRK, SYMM and TRMM against plain loops in double.
#include "beyond/structured.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/verify.hpp"
#include "common/device/grid.hpp"
#include "common/test/device_test.hpp"
#include "test_problem.hpp"

namespace {

using course::Op;
using gemm::Diagonal;
using gemm::Side;
using gemm::Triangle;
using gemm::test::integers;
using gemm::test::kNan;
using gemm::test::Operand;

constexpr std::uint64_t kSeed = 54;
constexpr Triangle kTriangles[] = {Triangle::kLower, Triangle::kUpper};
constexpr Op kOps[] = {Op::kNone, Op::kTranspose};
constexpr Side kSides[] = {Side::kLeft, Side::kRight};

enum class Routine { kSyrk, kSymm, kTrmm };

struct Problem {
    Routine routine = Routine::kSyrk;
    std::size_t m = 0;  // SYRK: C is m x m, and K is n
    std::size_t n = 0;
    Triangle triangle = Triangle::kLower;
    Op op = Op::kNone;
    Side side = Side::kLeft;
    Diagonal diagonal = Diagonal::kStored;
    float alpha = 1;
    float beta = 0;
    std::size_t padding = 0;
    std::size_t misaligned_by = 0;

    std::string text() const {
        const char* const names[] = {"syrk", "symm", "trmm"};
        return std::string(names[static_cast<int>(routine)]) + " " + std::to_string(m) + " x " +
               std::to_string(n) + (triangle == Triangle::kLower ? ", lower" : ", upper") +
               (op == Op::kNone ? "" : ", transposed") + (side == Side::kLeft ? ", left" : ", right") +
               (diagonal == Diagonal::kUnit ? ", unit" : "") + ", alpha " + std::to_string(alpha) +
               ", beta " + std::to_string(beta) + ", padding " + std::to_string(padding) +
               ", misaligned by " + std::to_string(misaligned_by);
    }
    bool is_syrk() const { return routine == Routine::kSyrk; }
    std::size_t c_rows() const { return m; }
    std::size_t c_cols() const { return is_syrk() ? m : n; }
    std::size_t a_rows() const {
        if (is_syrk()) return op == Op::kNone ? m : n;
        return side == Side::kLeft ? m : n;
    }
    std::size_t a_cols() const {
        if (is_syrk()) return op == Op::kNone ? n : m;
        return a_rows();
    }
};

bool is_in(Triangle triangle, std::size_t row, std::size_t col) {
    return triangle == Triangle::kLower ? col <= row : row <= col;
}

class Structured : public course::DeviceTest {
  protected:
    // NaN in the elements of A that must not be read; in C, too, with beta = 0. In the triangle of
    // C that SYRK must not write, numbers that the result does not have.
    static void expect(const Problem& p, std::vector<float> a, const std::vector<float>& b,
                       std::vector<float> c, const course::Bound& bound) {
        if (HasFailure()) return;
        if (!p.is_syrk()) {
            for (std::size_t i = 0; i < p.a_rows(); ++i) {
                for (std::size_t j = 0; j < p.a_rows(); ++j) {
                    if (!is_in(p.triangle, i, j) || (p.diagonal == Diagonal::kUnit && i == j))
                        a[i * p.a_rows() + j] = kNan;
                }
            }
        }
        for (std::size_t i = 0; i < p.c_rows(); ++i) {
            for (std::size_t j = 0; j < p.c_cols(); ++j) {
                const bool written = !p.is_syrk() || is_in(p.triangle, i, j);
                float& element = c[i * p.c_cols() + j];
                if (!written) element = 0.123f + static_cast<float>(i) + 1000 * static_cast<float>(j);
                if (written && p.beta == 0) element = kNan;
            }
        }
        std::vector<double> product(c.begin(), c.end());
        std::vector<double> magnitude(c.size());
        switch (p.routine) {
            case Routine::kSyrk:
                gemm::syrk_on_cpu(p.m, p.n, p.op, p.triangle, p.alpha, a, p.beta, product, magnitude);
                break;
            case Routine::kSymm:
                gemm::symm_on_cpu(p.m, p.n, p.side, p.triangle, p.alpha, a, b, p.beta, product, magnitude);
                break;
            case Routine::kTrmm:
                gemm::trmm_on_cpu(p.m, p.n, p.side, p.triangle, p.op, p.diagonal, p.alpha, a, b, p.beta,
                                  product, magnitude);
        }
        for (double& size : magnitude)
            size = std::isfinite(size) ? size : 0;

        Operand a_device(a, p.a_rows(), p.a_cols(), p.padding, p.misaligned_by);
        Operand b_device(b, p.is_syrk() ? 0 : p.m, p.is_syrk() ? 0 : p.n, p.padding == 0 ? 0 : p.padding + 1,
                         p.misaligned_by);
        Operand c_device(c, p.c_rows(), p.c_cols(), p.padding == 0 ? 0 : p.padding + 2, p.misaligned_by);
        switch (p.routine) {
            case Routine::kSyrk:
                gemm::syrk({.a = a_device.view(),
                            .c = c_device.view(),
                            .op_a = p.op,
                            .triangle = p.triangle,
                            .alpha = p.alpha,
                            .beta = p.beta},
                           nullptr);
                break;
            case Routine::kSymm:
                gemm::symm({.a = a_device.view(),
                            .b = b_device.view(),
                            .c = c_device.view(),
                            .side = p.side,
                            .triangle = p.triangle,
                            .alpha = p.alpha,
                            .beta = p.beta},
                           nullptr);
                break;
            case Routine::kTrmm:
                gemm::trmm({.a = a_device.view(),
                            .b = b_device.view(),
                            .c = c_device.view(),
                            .side = p.side,
                            .triangle = p.triangle,
                            .op_a = p.op,
                            .diagonal = p.diagonal,
                            .alpha = p.alpha,
                            .beta = p.beta},
                           nullptr);
        }
        course::VerifyResult result =
            course::verify(c_device.packed(), product, bound, magnitude, p.c_cols());
        result.damage = c_device.damage();
        EXPECT_TRUE(result.ok()) << p.text() << ", seed " << kSeed << ": " << result.message();
    }

    // Small whole numbers: every sum is exact, so only equal is right.
    static void expect_exact(const Problem& p) {
        expect(p, integers(p.a_rows() * p.a_cols(), kSeed), integers(p.is_syrk() ? 0 : p.m * p.n, kSeed + 1),
               integers(p.c_rows() * p.c_cols(), kSeed + 2), {.factor = 0});
    }

    // Each combination of what the routine knows.
    template <class Check>
    static void each(const Problem& given, const Check& check) {
        Problem p = given;
        for (const Triangle triangle : kTriangles) {
            p.triangle = triangle;
            for (const Op op : kOps) {
                p.op = op;
                for (const Side side : kSides) {
                    p.side = side;
                    p.routine = Routine::kTrmm;
                    check(p);
                    if (op == Op::kTranspose) continue;
                    p.routine = Routine::kSymm;
                    check(p);
                }
                p.side = Side::kLeft;
                p.routine = Routine::kSyrk;
                check(p);
            }
        }
    }
};

TEST_F(Structured, AroundTiles) {
    for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{1, 1},
                               {31, 3},
                               {5, 33},
                               {64, 64},
                               {65, 70},
                               {63, 130},
                               {130, 1},
                               {129, 63}})
        each({.m = m, .n = n}, expect_exact);
}

TEST_F(Structured, AlphaAndBeta) {
    each({.m = 68, .n = 36, .alpha = -0.5f, .beta = 2}, expect_exact);
    each({.m = 68, .n = 36, .alpha = 2, .beta = -1}, expect_exact);
    each({.m = 68, .n = 36, .alpha = 0, .beta = -0.5f}, expect_exact);
    each({.m = 68, .n = 36, .alpha = 0, .beta = 0}, expect_exact);
}

TEST_F(Structured, PaddedAndMisaligned) {
    each({.m = 68, .n = 72, .padding = 4}, expect_exact);
    each({.m = 67, .n = 72, .beta = 1, .padding = 1}, expect_exact);
    each({.m = 72, .n = 68, .beta = 1, .misaligned_by = 1}, expect_exact);
}

TEST_F(Structured, TheUnitDiagonalIsNotRead) {
    for (const Side side : kSides) {
        for (const Op op : kOps) {
            for (const Triangle triangle : kTriangles) {
                expect_exact({.routine = Routine::kTrmm,
                              .m = 70,
                              .n = 66,
                              .triangle = triangle,
                              .op = op,
                              .side = side,
                              .diagonal = Diagonal::kUnit,
                              .beta = 1});
            }
        }
    }
}

TEST_F(Structured, NothingToAddOrNothingToWrite) {
    expect_exact({.routine = Routine::kSyrk, .m = 66, .n = 0, .beta = -0.5f});
    expect_exact({.routine = Routine::kSyrk, .m = 66, .n = 0});
    for (const auto& [m, n] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 0}, {0, 0}}) {
        for (const Routine routine : {Routine::kSymm, Routine::kTrmm})
            expect_exact({.routine = routine, .m = m, .n = n});
    }
}

// Sums of k terms, alpha and beta: k + 1 roundings in the bound of verify.hpp.
TEST_F(Structured, DataPatterns) {
    for (const course::DataPattern pattern :
         {course::DataPattern::kSignedUniform, course::DataPattern::kHugeNextToTiny}) {
        each({.m = 70, .n = 90, .alpha = -0.5f, .beta = 1}, [&](const Problem& p) {
            expect(p, course::make_data<float>(p.a_rows() * p.a_cols(), pattern, kSeed),
                   course::make_data<float>(p.is_syrk() ? 0 : p.m * p.n, pattern, kSeed + 1),
                   course::make_data<float>(p.c_rows() * p.c_cols(), pattern, kSeed + 2),
                   {.terms = (p.is_syrk() ? p.n : p.a_rows()) + 1});
        });
    }
}

// A triangle's zeros are not multiplied: NaN and Inf in B reach those elements of C alone that
// depend on them.
TEST_F(Structured, NanAndInfStayWhereTheyBelong) {
    for (const float special : {kNan, std::numeric_limits<float>::infinity()}) {
        each({.m = 70, .n = 75}, [&](const Problem& p) {
            std::vector<float> a(p.a_rows() * p.a_cols(), 1.0f);
            std::vector<float> b(p.is_syrk() ? 0 : p.m * p.n, 2.0f);
            if (!b.empty()) {
                b[3 * p.n + 5] = special;
                b[40 * p.n + 66] = special;
            } else {
                a[7] = special;
            }
            expect(p, a, b, std::vector<float>(p.c_rows() * p.c_cols()), {.terms = 100});
        });
    }
}

// Enough tiles of 128 x 128 for a wave: below, the tiles are smaller.
TEST_F(Structured, LargeTiles) {
    const std::size_t multiprocessors = course::multiprocessors();
    const auto rows_of_tiles =
        static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(4 * multiprocessors))));
    each({.beta = 1}, [&](Problem p) {
        if (p.is_syrk()) {
            p.m = rows_of_tiles * 128 - 3;
            p.n = 37;
        } else {
            p.m = p.side == Side::kLeft ? 135 : multiprocessors * 128 + 4;
            p.n = p.side == Side::kLeft ? multiprocessors * 128 + 4 : 135;
        }
        expect_exact(p);
    });
}

TEST_F(Structured, RefusesWhatDoesNotFit) {
    const auto message_of = [](const auto& call) -> std::string {
        try {
            call();
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    Operand a(std::vector<float>(6), 2, 3);
    Operand square(std::vector<float>(9), 3, 3);
    Operand b(std::vector<float>(12), 3, 4);
    Operand c(std::vector<float>(12), 3, 4);
    EXPECT_EQ(message_of([&] { gemm::syrk({.a = a.view(), .c = square.view()}, nullptr); }),
              "syrk: op(A) has 2 rows and C is 3 x 3; expected C: 2 x 2");
    EXPECT_EQ(message_of([&] { gemm::syrk({.a = square.view(), .c = square.view()}, nullptr); }),
              "syrk: C overlaps A; expected no common element");
    EXPECT_EQ(message_of([&] { gemm::symm({.a = a.view(), .b = b.view(), .c = c.view()}, nullptr); }),
              "symm: A is 2 x 3 and C is 3 x 4; expected A: 3 x 3");
    EXPECT_EQ(message_of([&] { gemm::trmm({.a = square.view(), .b = a.view(), .c = c.view()}, nullptr); }),
              "trmm: B is 2 x 3 and C is 3 x 4; expected the same shape");
    EXPECT_EQ(message_of([&] { gemm::trmm({.a = square.view(), .b = c.view(), .c = c.view()}, nullptr); }),
              "trmm: C overlaps B; expected no common element");
}

// Every tile of triangles of up to 1500 rows, and both ends of each row of larger ones.
TEST(RowInTriangle, IsExact) {
    unsigned tile = 0;
    for (unsigned row = 0; row < 1500; ++row) {
        for (unsigned col = 0; col <= row; ++col, ++tile)
            ASSERT_EQ(gemm::row_in_triangle(tile), row) << tile;
    }
    for (std::uint64_t row = 1500; row * (row + 3) / 2 <= 0xffffffffu; ++row) {
        ASSERT_EQ(gemm::row_in_triangle(static_cast<unsigned>(row * (row + 1) / 2)), row);
        ASSERT_EQ(gemm::row_in_triangle(static_cast<unsigned>(row * (row + 3) / 2)), row);
    }
}

}  // namespace

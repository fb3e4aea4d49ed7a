// The tests of days 40 and 41: every version against the reference in double, for both operand
// types, on shapes around the edges of tiles. A day's test includes this, defines the three
// functions below and instantiates VersionTest and LargeShapes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/half_matmul.hpp"
#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/check/parallel.hpp"
#include "common/check/verify.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/large_array.hpp"
#include "common/test/remembered.hpp"

namespace course::half_matmul {

// Each error message of the day starts with this text.
extern const char* const kTopic;

// Does TMA load A and B? Then rows that TMA cannot address are refused.
bool loads_through_tma(const std::string& version);

// Does TMA also store C?
bool stores_through_tma(const std::string& version);

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::Growth;
using course::GuardedMatrix;

constexpr std::uint64_t kSeed = 40;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Problem {
    Shape shape{};
    float alpha = 1;
    float beta = 0;
    // Elements after each row, rounded up so that rows are 16-byte aligned.
    std::size_t padding = 0;
    std::size_t odd_padding = 0;    // elements after each row without rounding, so rows may be unaligned
    std::size_t misaligned_by = 0;  // elements between a 256-byte aligned address and the first element
    bool nan_in_c = false;          // only where C must not be read
};

std::string text_of(const Problem& p) {
    return std::to_string(p.shape.m) + " x " + std::to_string(p.shape.n) + " x " + std::to_string(p.shape.k) +
           ", alpha " + std::to_string(p.alpha) + ", beta " + std::to_string(p.beta) + ", padding " +
           std::to_string(p.padding) + (p.nan_in_c ? ", NaN in C" : "");
}

// The padding after a row of `cols` elements that makes the next row 16-byte aligned.
template <class T>
std::size_t padding_for(std::size_t cols, std::size_t padding) {
    constexpr std::size_t kStep = 16 / sizeof(T);
    return (cols + padding + kStep - 1) / kStep * kStep - cols;
}

// Small integers: every product and every sum is exact in FP32, so results must be equal.
template <class T>
std::vector<T> integers(std::size_t count, std::uint64_t seed) {
    std::vector<T> values(count);
    course::for_each_part(count, [&](std::size_t begin, std::size_t end) {
        course::Random random(seed, begin);
        for (std::size_t i = begin; i < end; ++i)
            values[i] = T(static_cast<float>(random.integer(-8, 8)));
    });
    return values;
}

class VersionTest : public course::DeviceTestWithParam<const Version*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const Version*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    template <class T>
    course::VerifyResult multiply(const Problem& problem, const std::vector<T>& a, const std::vector<T>& b,
                                  const std::vector<float>& c, const course::Bound& bound) const {
        const auto [m, n, k] = problem.shape;
        GuardedMatrix<T> a_device(a, m, k, padding_for<T>(k, problem.padding) + problem.odd_padding,
                                  problem.misaligned_by);
        GuardedMatrix<T> b_device(b, k, n, padding_for<T>(n, problem.padding) + problem.odd_padding,
                                  problem.misaligned_by);
        GuardedMatrix<float> c_device(c, m, n, padding_for<float>(n, problem.padding) + problem.odd_padding,
                                      problem.misaligned_by);
        const ReferenceProduct& expected = expected_of<T>(problem, a, b, c);
        kernel_of<T>(*GetParam())
            .launch({.a = a_device.view(),
                     .b = b_device.view(),
                     .c = c_device.view(),
                     .alpha = problem.alpha,
                     .beta = problem.beta},
                    nullptr);
        course::VerifyResult result =
            course::verify(c_device.packed(), expected.product, bound, expected.magnitude, n);
        result.damage = c_device.damage() + a_device.damage() + b_device.damage();
        return result;
    }

    template <class T>
    static const ReferenceProduct& expected_of(const Problem& problem, const std::vector<T>& a,
                                               const std::vector<T>& b, const std::vector<float>& c) {
        static RememberedProducts remembered;
        return remembered(bytes_of(problem.shape, problem.alpha, problem.beta, a, b, c), [&] {
            ReferenceProduct expected{{c.begin(), c.end()}, std::vector<double>(c.size())};
            half_matmul::multiply_on_cpu<T>(problem.shape, problem.alpha, a, b, problem.beta,
                                            expected.product, expected.magnitude);
            // verify() needs finite magnitudes; where they are not finite, the product is not
            // finite either.
            for (double& size : expected.magnitude)
                size = std::isfinite(size) ? size : 0;
            return expected;
        });
    }

    template <class T>
    void expect_right_for(const Problem& problem, DataPattern pattern, Growth growth) const {
        const auto [m, n, k] = problem.shape;
        const auto a = course::make_data<T>(m * k, pattern, kSeed);
        const auto b = course::make_data<T>(k * n, pattern, kSeed + 1);
        const auto c = problem.nan_in_c ? std::vector<float>(m * n, kNan)
                                        : course::make_data<float>(m * n, pattern, kSeed + 2);
        const course::VerifyResult result = multiply<T>(problem, a, b, c, {.terms = k + 1, .growth = growth});
        EXPECT_TRUE(result.ok()) << (std::is_same_v<T, __half> ? "half, " : "bfloat16, ") << text_of(problem)
                                 << ", " << course::name(pattern) << ": " << result.message();
    }
    void expect_right(const Problem& problem, DataPattern pattern, Growth growth = Growth::kLinear) const {
        for_types([&] { expect_right_for<__half>(problem, pattern, growth); },
                  [&] { expect_right_for<__nv_bfloat16>(problem, pattern, growth); });
    }

    template <class T>
    void expect_exact_for(const Problem& problem) const {
        const auto [m, n, k] = problem.shape;
        const auto c = problem.nan_in_c ? std::vector<float>(m * n, kNan) : integers<float>(m * n, kSeed + 2);
        const course::VerifyResult result =
            multiply<T>(problem, integers<T>(m * k, kSeed), integers<T>(k * n, kSeed + 1), c, {.factor = 0});
        EXPECT_TRUE(result.ok()) << (std::is_same_v<T, __half> ? "half, " : "bfloat16, ") << text_of(problem)
                                 << ", integers: " << result.message();
    }
    // Results must be equal.
    void expect_exact(const Problem& problem) const {
        for_types([&] { expect_exact_for<__half>(problem); },
                  [&] { expect_exact_for<__nv_bfloat16>(problem); });
    }

  private:
    // Both types on a GPU; one after the other on the CPU, to save time.
    template <class Half, class Bfloat16>
    void for_types(const Half& half, const Bfloat16& bfloat16) const {
        const bool one_of_them = course::is_cpu_stand_in();
        if (!one_of_them || turn_ % 2 == 0) half();
        if (!one_of_them || turn_ % 2 == 1) bfloat16();
        ++turn_;
    }
    mutable unsigned turn_ = 0;
};

// On the CPU, fewer and smaller problems have the same edges, and enough stages and tiles for a
// ring to wrap.
template <class T>
T sized(T on_gpu, T on_cpu) {
    return course::is_cpu_stand_in() ? on_cpu : on_gpu;
}

// Each extent in each direction (on the CPU, in one direction); the other two change with it.
TEST_P(VersionTest, EveryExtentInEachDirection) {
    const auto extents = sized<std::vector<std::size_t>>(
        {1, 2, 3, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 383, 521},
        {1, 16, 31, 33, 64, 65, 127, 129, 257});
    const std::size_t count = extents.size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t other = extents[(5 * i + 3) % count];
        const std::size_t small = extents[i % 5];
        const Shape directions[] = {
            {extents[i], other, small}, {small, extents[i], other}, {other, small, extents[i]}};
        for (std::size_t d = 0; d < sized<std::size_t>(3, 1); ++d)
            expect_exact({.shape = directions[(d + i) % 3], .nan_in_c = true});
    }
}

TEST_P(VersionTest, AlphaAndBeta) {
    const auto shapes =
        sized<std::vector<Shape>>({{33, 65, 31}, {128, 256, 64}, {257, 260, 132}}, {{130, 36, 68}});
    for (const Shape& shape : shapes) {
        for (const float alpha : {0.0f, 1.0f, -0.5f}) {
            for (const float beta : {0.0f, 1.0f, -0.5f}) {
                expect_exact({.shape = shape, .alpha = alpha, .beta = beta, .nan_in_c = beta == 0});
                expect_exact({.shape = shape, .alpha = alpha, .beta = beta, .padding = 9});
            }
        }
    }
}

TEST_P(VersionTest, DataPatterns) {
    const auto shapes =
        sized<std::vector<Shape>>({{64, 96, 65}, {131, 7, 67}, {129, 257, 200}}, {{7, 96, 65}});
    for (const Shape& shape : shapes) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kAllEqual,
              DataPattern::kWithNan, DataPattern::kWithInf})
            expect_right({.shape = shape, .alpha = -0.5f, .beta = 1}, pattern);
    }
}

// More tiles than resident blocks, so that blocks take several; more steps than a ring has stages,
// and fewer.
TEST_P(VersionTest, ManyTiles) {
    // The last column is inside a slice of 32 and not at a multiple of 4, after an odd number of
    // slices, and another tile follows.
    const auto wide = sized(Shape{2200, 2213, 65}, Shape{260, 293, 65});
    expect_exact({.shape = wide, .nan_in_c = true});
    expect_exact({.shape = {wide.m, wide.n, 0}, .beta = -0.5f});
    const auto deep = sized(Shape{2200, 2304, 0}, Shape{130, 258, 0});
    for (const std::size_t k : sized<std::vector<std::size_t>>({1, 65, 256, 450}, {450}))
        expect_exact({.shape = {deep.m, deep.n, k}, .nan_in_c = true});
    const auto many = sized<std::size_t>(40000, 520);
    expect_exact({.shape = {many, 8, 130}, .beta = 1});
    expect_exact({.shape = {8, many, 130}, .beta = 1});
}

TEST_P(VersionTest, NothingToAddOrNothingToWrite) {
    expect_exact({.shape = {33, 130, 0}, .beta = -0.5f});
    expect_exact({.shape = {33, 130, 0}, .nan_in_c = true});
    expect_exact({.shape = {33, 5, 0}, .alpha = std::numeric_limits<float>::infinity(), .beta = 1});
    for (const Shape shape : {Shape{0, 5, 3}, Shape{5, 0, 3}, Shape{0, 0, 0}})
        expect_exact({.shape = shape});
}

// alpha = 0: NaN in A and B must not reach C.
TEST_P(VersionTest, AlphaZeroReadsNeitherOperand) {
    const Problem problem{.shape = {40, 33, 17}, .alpha = 0, .beta = 1};
    const auto [m, n, k] = problem.shape;
    const course::VerifyResult result = multiply<__half>(problem, std::vector<__half>(m * k, __half(kNan)),
                                                         std::vector<__half>(k * n, __half(kNan)),
                                                         integers<float>(m * n, kSeed), {.factor = 0});
    EXPECT_TRUE(result.ok()) << result.message();
}

TEST_P(VersionTest, RandomShapes) {
    constexpr std::uint64_t kShapeSeed = 20261121;
    SCOPED_TRACE("course::Random seed " + std::to_string(kShapeSeed));
    course::Random random(kShapeSeed);
    const auto most = sized(Shape{700, 700, 500}, Shape{300, 300, 200});
    for (int round = 0; round < sized(16, 6); ++round) {
        expect_exact({.shape = {random.below(most.m), random.below(most.n), random.below(most.k)},
                      .alpha = static_cast<float>(random.integer(-2, 2)),
                      .beta = static_cast<float>(random.integer(-2, 2)) * 0.5f,
                      .padding = random.below(40)});
    }
}

// Uses the narrow bound, because a missing stage would pass with the wide one.
TEST_P(VersionTest, ALongSum) {
    expect_right({.shape = {3, 5, sized<std::size_t>(20011, 2003)}}, DataPattern::kSignedUniform,
                 Growth::kSquareRoot);
    expect_exact({.shape = {130, 4, sized<std::size_t>(20004, 1004)}, .beta = 1});
}

TEST_P(VersionTest, RefusesWhatDoesNotFit) {
    DeviceBuffer<__half> halves{std::span<const __half>(std::vector<__half>(64))};
    DeviceBuffer<float> floats(64);
    const auto half = [&](std::size_t rows, std::size_t cols, std::size_t offset) {
        return DeviceMatrix<__half>(halves.span().subspan(offset, rows * cols), rows, cols);
    };
    const auto message_of = [&](auto a, auto b, DeviceMatrix<float> c) {
        return course::refusal([&] { GetParam()->launcher.half.launch({.a = a, .b = b, .c = c}, nullptr); });
    };
    const std::string topic = kTopic;
    const std::string expected = "; expected A: M x K, B: K x N, C: M x N";
    EXPECT_EQ(message_of(half(2, 3, 0), half(4, 5, 8), floats.matrix(2, 5)),
              topic + ": A is 2 x 3, B is 4 x 5, C is 2 x 5" + expected);
    EXPECT_EQ(message_of(half(2, 3, 0), half(3, 5, 8), floats.matrix(3, 5)),
              topic + ": A is 2 x 3, B is 3 x 5, C is 3 x 5" + expected);
    EXPECT_EQ(message_of(half(2, 3, 0), half(3, 5, 8), floats.matrix(2, 4)),
              topic + ": A is 2 x 3, B is 3 x 5, C is 2 x 4" + expected);
    const auto inside =
        course::DeviceSpan<float>::from_device_pointer(reinterpret_cast<float*>(halves.data()), 4);
    EXPECT_EQ(message_of(half(2, 8, 0), half(8, 2, 16), DeviceMatrix<float>(inside, 2, 2)),
              topic + ": C overlaps A; expected no common element");
    EXPECT_EQ(message_of(half(2, 8, 16), half(8, 2, 0), DeviceMatrix<float>(inside, 2, 2)),
              topic + ": C overlaps B; expected no common element");
}

// Rows that TMA cannot address are refused, or multiplied by versions without TMA.
TEST_P(VersionTest, RowsThatBeginAnywhere) {
    const auto& kernel = GetParam()->launcher.half;
    DeviceBuffer<__half> halves{std::span<const __half>(std::vector<__half>(64))};
    DeviceBuffer<float> floats(64);
    const auto half = [&](std::size_t rows, std::size_t cols, std::size_t offset) {
        return DeviceMatrix<__half>(halves.span().subspan(offset, rows * cols), rows, cols);
    };
    const auto message_of = [&](auto a, auto b, std::size_t cols) {
        const Gemm<__half> gemm{.a = a, .b = b, .c = floats.matrix(2, cols)};
        const std::string topic = kTopic;
        const std::string message = course::refusal([&] { kernel.launch(gemm, nullptr); });
        const std::string reason = kernel.why_not(gemm);
        EXPECT_EQ(message, reason.empty() ? "" : topic + ": " + reason);
        return reason;
    };
    if (loads_through_tma(GetParam()->name)) {
        const std::string expected = "; expected 0 and a multiple of 16";
        EXPECT_EQ(message_of(half(2, 3, 0), half(3, 8, 8), 8),
                  "A has an address % 16 of 0 and rows that are 6 bytes apart" + expected);
        EXPECT_EQ(message_of(half(2, 8, 1), half(8, 2, 24), 2),
                  "A has an address % 16 of 2 and rows that are 16 bytes apart" + expected);
        EXPECT_EQ(message_of(half(2, 8, 0), half(8, 2, 16), 2),
                  "B has an address % 16 of 0 and rows that are 4 bytes apart" + expected);
        return;
    }
    EXPECT_EQ(message_of(half(2, 3, 0), half(3, 8, 8), 8), "");
    for (const std::size_t odd : {1, 2, 5}) {
        for (const std::size_t misaligned_by : {0, 1, 2})
            expect_exact(
                {.shape = {130, 66, 37}, .beta = 1, .odd_padding = odd, .misaligned_by = misaligned_by});
    }
    expect_exact({.shape = {40, 66, 5 * 64 + 3}, .odd_padding = 1});  // more stages than a ring has
}

// With aligned operands and an unaligned C, a version refuses, or stores C in another way.
TEST_P(VersionTest, OnlyCBeginsAnywhere) {
    const std::string topic = kTopic;
    constexpr Shape kShape{.m = 70, .n = 72, .k = 40};
    const auto a = integers<__half>(kShape.m * kShape.k, kSeed);
    const auto b = integers<__half>(kShape.k * kShape.n, kSeed + 1);
    const DeviceBuffer<__half> a_device{std::span(a)};
    const DeviceBuffer<__half> b_device{std::span(b)};
    std::vector<double> product(kShape.m * kShape.n);
    std::vector<double> magnitude(product.size());
    half_matmul::multiply_on_cpu<__half>(kShape, 1, a, b, 0, product, magnitude);
    for (const std::size_t padding : {0, 1}) {
        GuardedMatrix<float> c(std::vector<float>(product.size(), kNan), kShape.m, kShape.n, padding,
                               1 - padding);
        const Gemm<__half> gemm{.a = a_device.matrix(kShape.m, kShape.k),
                                .b = b_device.matrix(kShape.k, kShape.n),
                                .c = c.view()};
        const auto& kernel = GetParam()->launcher.half;
        const std::string reason = kernel.why_not(gemm);
        EXPECT_EQ(course::refusal([&] { kernel.launch(gemm, nullptr); }),
                  reason.empty() ? "" : topic + ": " + reason);
        EXPECT_EQ(c.damage(), "");
        if (stores_through_tma(GetParam()->name)) {
            EXPECT_EQ(reason.substr(0, 21), "C has an address % 16");
        } else {
            EXPECT_EQ(reason, "");
            EXPECT_TRUE(course::verify(c.packed(), product, {.factor = 0}, magnitude, kShape.n).ok());
        }
    }
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    DeviceBuffer<__half> halves{std::span<const __half>(std::vector<__half>(32 * 32))};
    DeviceBuffer<float> c(32 * 32);
    const auto operand = std::as_const(halves).matrix(32, 32);
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher.half.launch({.a = operand, .b = operand, .c = c.matrix(32, 32)}, stream);
    });
    EXPECT_EQ(work.nodes(), 1U) << "launches on the stream that was given";
}

// --- Tests that need a GPU -----------------------------------------------------------------------

// A has more than 2^31 elements. On the CPU, only the blocks of its last rows run.
TEST_P(VersionTest, IndicesBeyond31Bits) {
    if (const std::string reason = course::why_no_large_arrays(); !reason.empty()) GTEST_SKIP() << reason;
    if (loads_through_tma(GetParam()->name)) GTEST_SKIP() << "its blocks take several tiles each";
    if (GetParam()->name == "realigned") GTEST_SKIP() << "copies all of A first";
    constexpr std::size_t kRows = std::size_t{1} << 20;
    constexpr std::size_t kDepth = 2056;
    constexpr std::size_t kCols = 8;
    const std::vector<double> end = {1};
    const course::LargeArray<__half> a(kRows * kDepth, 2048 * kDepth, end);
    const std::vector<__half> last_row = integers<__half>(kDepth, kSeed);
    std::ranges::copy(last_row, &a[(kRows - 1) * kDepth]);
    const std::vector<__half> b = integers<__half>(kDepth * kCols, kSeed + 1);
    const DeviceBuffer<__half> b_device{std::span<const __half>(b)};
    DeviceBuffer<float> c(kRows * kCols);
    course::run_few_blocks(
        [&] {
            GetParam()->launcher.half.launch({.a = DeviceMatrix<const __half>(a.span(), kRows, kDepth),
                                              .b = b_device.matrix(kDepth, kCols),
                                              .c = c.matrix(kRows, kCols)},
                                             nullptr);
        },
        end);
    if (HasFatalFailure()) return;
    std::vector<float> got(kCols);
    CUDA_CHECK(cudaMemcpy(got.data(), c.data() + (kRows - 1) * kCols, kCols * sizeof(float),
                          cudaMemcpyDeviceToHost));
    for (std::size_t col = 0; col < kCols; ++col) {
        float expected = 0;  // a sum of integers: exact
        for (std::size_t k = 0; k < kDepth; ++k)
            expected += static_cast<float>(last_row[k]) * static_cast<float>(b[k * kCols + col]);
        EXPECT_EQ(got[col], expected) << "the last row of C, column " << col << "; of A "
                                      << course::large_element((kRows - 1) * kDepth, kRows * kDepth);
    }
}

class LargeShapes : public VersionTest {
  protected:
    void SetUp() override {
        VersionTest::SetUp();
        if (IsSkipped()) return;
        if (course::is_cpu_stand_in())
            GTEST_SKIP() << "needs a GPU: 10^11 multiply-adds would have to run on CPU threads";
    }
};

// The operands and their product in device memory, shared by the tests of all versions.
struct LargeProblem {
    using T = __nv_bfloat16;

    explicit LargeProblem(const Shape& s)
        : shape(s),
          a(from_host(s.m * s.k, kSeed)),
          b(from_host(s.k * s.n, kSeed + 1)),
          product(s.m * s.n),
          magnitude(s.m * s.n) {
        const DeviceBuffer<float> a_float{std::span<const float>(as_floats<T>(a.to_host()))};
        const DeviceBuffer<float> b_float{std::span<const float>(as_floats<T>(b.to_host()))};
        course::multiply_batch_on_device(1, s.m, s.n, s.k, 1, a_float.span(), b_float.span(), product.span(),
                                         magnitude.span());
    }

    static DeviceBuffer<T> from_host(std::size_t size, std::uint64_t seed) {
        return DeviceBuffer<T>(
            std::span<const T>(course::make_data<T>(size, DataPattern::kSignedUniform, seed)));
    }

    Shape shape;
    DeviceBuffer<T> a, b;
    DeviceBuffer<double> product, magnitude;
};

TEST_P(LargeShapes, AroundTileBordersTallWideAndDeep) {
    static const Shape shapes[] = {{4096, 4096, 4096}, {4095, 4104, 4096}, {1 << 18, 8, 72},
                                   {5, 1 << 18, 40},   {65, 72, 1 << 18},  {100003, 136, 128}};
    static const std::vector<LargeProblem> problems(std::begin(shapes), std::end(shapes));
    for (const LargeProblem& problem : problems) {
        const auto [m, n, k] = problem.shape;
        course::GuardedBuffer<float> c(m * n);
        kernel_of<__nv_bfloat16>(*GetParam())
            .launch({.a = problem.a.matrix(m, k), .b = problem.b.matrix(k, n), .c = c.matrix(m, n)}, nullptr);
        course::VerifyResult result = course::verify_on_device(c.span(), problem.product.span(),
                                                               {.terms = k, .growth = Growth::kSquareRoot},
                                                               problem.magnitude.span(), n);
        result.damage = c.damage();
        EXPECT_TRUE(result.ok()) << m << " x " << n << " x " << k << ": " << result.message();
    }
}

// C and A have more than 2^31 elements: offsets exceed 31 bits.
TEST_P(LargeShapes, MoreElementsThan31BitsCount) {
    constexpr std::size_t kLong = 65560;
    constexpr std::size_t kWide = 32800;
    if (const std::string reason = course::why_not_so_large(kLong * kWide * 6); !reason.empty())
        GTEST_SKIP() << reason;
    DeviceBuffer<__half> large(kLong * kWide);
    CUDA_CHECK(cudaMemset(large.data(), 0, large.bytes()));
    const auto end = integers<__half>(kWide, kSeed);
    const std::size_t last_row = large.size() - kWide;
    CUDA_CHECK(
        cudaMemcpy(large.data() + last_row, end.data(), kWide * sizeof(__half), cudaMemcpyHostToDevice));
    const std::vector<__half> ones_on_host(8 * kLong, __half(1.0f));
    const DeviceBuffer<__half> ones{std::span<const __half>(ones_on_host)};
    const auto& launch = GetParam()->launcher.half.launch;

    // The last row of A times columns of ones, which is the sum of `end`; and of B, all of whose
    // other rows are zero.
    DeviceBuffer<float> c(8 * kLong);
    launch(
        {.a = std::as_const(large).matrix(kLong, kWide), .b = ones.matrix(kWide, 8), .c = c.matrix(kLong, 8)},
        nullptr);
    float sum = 0;
    for (const __half value : end)
        sum += static_cast<float>(value);
    const std::vector<float> tall = c.to_host();
    EXPECT_EQ(tall[8 * kLong - 9], 0.0f);
    EXPECT_EQ(tall[8 * kLong - 1], sum);
    launch(
        {.a = ones.matrix(8, kLong), .b = std::as_const(large).matrix(kLong, kWide), .c = c.matrix(8, kWide)},
        nullptr);
    const std::vector<float> wide = c.to_host();
    for (const std::size_t col : {std::size_t{0}, kWide / 2, kWide - 1})
        EXPECT_EQ(wide[7 * kWide + col], static_cast<float>(end[col])) << "column " << col;

    // One product for each element of C; element (i, j) is a_i b_j.
    const auto a = integers<__half>(8 * kLong, kSeed + 1);
    const DeviceBuffer<__half> a_device{std::span<const __half>(a)};
    DeviceBuffer<float> c_large(kLong * kWide);
    CUDA_CHECK(cudaMemset(c_large.data(), 0xff, c_large.bytes()));
    const DeviceMatrix<const __half> column(a_device.span(), kLong, 1, 8);
    const DeviceMatrix<const __half> row(std::as_const(large).span().subspan(last_row, kWide), 1, kWide);
    launch({.a = column, .b = row, .c = c_large.matrix(kLong, kWide)}, nullptr);
    std::vector<float> got(kWide);
    for (const std::size_t i : {std::size_t{0}, kLong / 2, kLong - 129, kLong - 1}) {
        CUDA_CHECK(cudaMemcpy(got.data(), c_large.data() + i * kWide, kWide * sizeof(float),
                              cudaMemcpyDeviceToHost));
        for (std::size_t j = 0; j < kWide; ++j)
            ASSERT_EQ(got[j], static_cast<float>(a[8 * i]) * static_cast<float>(end[j])) << i << ", " << j;
    }
}

}  // namespace
}  // namespace course::half_matmul

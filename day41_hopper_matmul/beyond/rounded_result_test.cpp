// Products with 16-bit results: every version, both types, awkward shapes, any alignment of C.
#include "beyond/rounded_result.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::GuardedMatrix;
using course::MatrixLayout;
using course::refusal;
using day41::RoundedMatmul;
using day41::RoundedVersion;
using day41::Shape;

constexpr std::uint64_t kSeed = 4154;

// Small: a sum of up to 2^17 products is exact in FP32.
template <class T>
std::vector<T> integers(std::size_t count, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<T> values(count);
    for (T& value : values)
        value = T(static_cast<float>(random.integer(-8, 8)));
    return values;
}

// The padding that makes rows of `cols` elements 16-byte aligned, as A and B need it.
MatrixLayout aligned(std::size_t cols) {
    return {.padding = (8 - cols % 8) % 8};
}

std::string text(const Shape& s, const MatrixLayout& c) {
    return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
           ", rows of C padded by " + std::to_string(c.padding) + ", misaligned by " +
           std::to_string(c.misaligned_by);
}

template <class T>
T sized(T on_gpu, T on_cpu) {
    return course::is_cpu_stand_in() ? on_cpu : on_gpu;
}

class RoundedResultTest : public course::DeviceTestWithParam<const RoundedVersion*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const RoundedVersion*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    // C is NaN before.
    template <class T>
    std::vector<T> multiply(const Shape& s, const std::vector<T>& a, const std::vector<T>& b,
                            const MatrixLayout& layout) const {
        GuardedMatrix<T> a_device(a, s.m, s.k, aligned(s.k));
        GuardedMatrix<T> b_device(b, s.k, s.n, aligned(s.n));
        GuardedMatrix<T> c_device(s.m, s.n, layout);
        GetParam()->launcher.of<T>().launch(
            {.a = a_device.view(), .b = b_device.view(), .c = c_device.view()}, nullptr);
        EXPECT_EQ(c_device.damage() + a_device.damage() + b_device.damage(), "") << text(s, layout);
        return c_device.packed();
    }

    struct Expected {
        std::vector<double> product, magnitude;
    };
    template <class T>
    static Expected expected_of(const Shape& s, const std::vector<T>& a, const std::vector<T>& b) {
        Expected expected{std::vector<double>(s.m * s.n), std::vector<double>(s.m * s.n)};
        course::half_matmul::multiply_on_cpu<T>(s, 1, a, b, 0, expected.product, expected.magnitude);
        return expected;
    }

    // The sums are exact in FP32, so each result is the nearest number of T, the even one of two.
    template <class T>
    void expect_exact_for(const Shape& s, const MatrixLayout& layout) const {
        const auto a = integers<T>(s.m * s.k, kSeed);
        const auto b = integers<T>(s.k * s.n, kSeed + 1);
        Expected expected = expected_of(s, a, b);
        for (double& value : expected.product)
            value = static_cast<double>(static_cast<float>(T(static_cast<float>(value))));
        const auto result = course::verify(multiply(s, a, b, layout), expected.product, {.factor = 0},
                                           expected.magnitude, s.n);
        EXPECT_TRUE(result.ok()) << (std::is_same_v<T, __half> ? "half, " : "bfloat16, ") << text(s, layout)
                                 << ": " << result.message();
    }
    void expect_exact(const Shape& s, const MatrixLayout& layout = {}) const {
        for_types([&] { expect_exact_for<__half>(s, layout); },
                  [&] { expect_exact_for<__nv_bfloat16>(s, layout); });
    }

    template <class T>
    void expect_right_for(const Shape& s, DataPattern pattern, course::Growth growth) const {
        const auto a = course::make_data<T>(s.m * s.k, pattern, kSeed);
        const auto b = course::make_data<T>(s.k * s.n, pattern, kSeed + 1);
        const Expected expected = expected_of(s, a, b);
        const auto result =
            day41::verify_rounded<T>(multiply(s, a, b, {}), expected.product, expected.magnitude,
                                     {.terms = s.k, .growth = growth}, s.n);
        EXPECT_TRUE(result.ok()) << (std::is_same_v<T, __half> ? "half, " : "bfloat16, ") << text(s, {})
                                 << ", " << course::name(pattern) << ": " << result.message();
    }
    void expect_right(const Shape& s, DataPattern pattern,
                      course::Growth growth = course::Growth::kLinear) const {
        for_types([&] { expect_right_for<__half>(s, pattern, growth); },
                  [&] { expect_right_for<__nv_bfloat16>(s, pattern, growth); });
    }

  private:
    // Both types on a GPU; one after the other on the CPU, to save time.
    template <class Half, class Bfloat16>
    void for_types(const Half& half, const Bfloat16& bfloat16) const {
        const bool both = !course::is_cpu_stand_in();
        if (both || turn_ % 2 == 0) half();
        if (both || turn_ % 2 == 1) bfloat16();
        ++turn_;
    }
    mutable unsigned turn_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Rounded, RoundedResultTest, course::each_of(day41::rounded_versions()),
                         course::VersionName());

// Each extent in each direction (on the CPU, in one direction), around the edges of a chunk, a
// slice and a tile.
TEST_P(RoundedResultTest, EveryExtentInEachDirection) {
    const auto extents = sized<std::vector<std::size_t>>(
        {1, 2, 7, 8, 9, 15, 16, 31, 33, 63, 64, 65, 72, 127, 128, 129, 191, 193, 255, 256, 257, 521},
        {1, 8, 9, 16, 33, 64, 65, 72, 129, 193, 257});
    const std::size_t count = extents.size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t other = extents[(5 * i + 3) % count];
        const std::size_t small = extents[i % 5];
        const Shape directions[] = {
            {extents[i], other, small}, {small, extents[i], other}, {other, small, extents[i]}};
        for (std::size_t d = 0; d < sized<std::size_t>(3, 1); ++d)
            expect_exact(directions[(d + i) % 3]);
    }
}

// Aligned rows are stored by TMA and end anywhere; rows aligned to 4 or 2 bytes are stored by the
// lanes.
TEST_P(RoundedResultTest, RowsOfCBeginAndEndAnywhere) {
    for (const std::size_t n : {8, 61, 64, 66, 72, 250, 256, 260}) {
        const std::size_t whole = (8 - n % 8) % 8;
        for (const MatrixLayout& layout :
             {MatrixLayout{.padding = whole}, MatrixLayout{.padding = whole + 8},
              MatrixLayout{.misaligned_by = 1, .padding = whole},
              MatrixLayout{.misaligned_by = 2, .padding = whole}, MatrixLayout{.padding = whole + 1},
              MatrixLayout{.padding = whole + 2}}) {
            expect_exact({.m = 20, .n = n, .k = 9}, layout);
            if (!course::is_cpu_stand_in()) expect_exact({.m = 140, .n = n, .k = 72}, layout);
        }
    }
}

TEST_P(RoundedResultTest, DataPatterns) {
    for (const Shape& s :
         sized<std::vector<Shape>>({{64, 96, 65}, {131, 7, 67}, {129, 257, 200}}, {{7, 97, 65}}))
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kAllEqual,
              DataPattern::kWithNan, DataPattern::kWithInf}) {
            expect_right(s, pattern);
            expect_right(s, pattern);  // on the CPU, the other type
        }
}

// More tiles than resident blocks: after the last slice of a tile comes the first of another. The
// last column is in the first, second, third or fourth slice of its tile.
TEST_P(RoundedResultTest, ManyTiles) {
    const std::size_t m = sized<std::size_t>(2200, 520);
    for (const std::size_t n : sized<std::vector<std::size_t>>({2213, 2144, 2296, 2060}, {293, 352, 448})) {
        expect_exact({.m = m, .n = n, .k = 65}, aligned(n));
        expect_exact({.m = m, .n = n, .k = 65}, {.padding = n % 2 == 0 ? 1U : 2U});
    }
    for (const std::size_t k : sized<std::vector<std::size_t>>({1, 256, 450}, {450}))
        expect_exact({.m = sized<std::size_t>(2200, 130), .n = 2304 / sized<std::size_t>(1, 9), .k = k});
}

TEST_P(RoundedResultTest, NothingToAddOrNothingToWrite) {
    expect_exact({.m = 33, .n = 130, .k = 0});
    expect_exact({.m = 33, .n = 136, .k = 0});
    for (const Shape& s : {Shape{0, 5, 3}, Shape{5, 0, 3}, Shape{0, 0, 0}})
        expect_exact(s);
}

// The narrow bound: a missing stage would pass with the wide one.
TEST_P(RoundedResultTest, ALongSum) {
    expect_right({.m = 3, .n = 5, .k = sized<std::size_t>(20011, 2003)}, DataPattern::kSignedUniform,
                 course::Growth::kSquareRoot);
}

// 256 and 64 times 1 are 320. In BF16, 256 + 1 is 256. 256 + 1 in all is half-way between two
// numbers of BF16, and the even one is 256; 256 + 3 is 260.
TEST_P(RoundedResultTest, ASumIsRoundedOnceToTheNearest) {
    using T = __nv_bfloat16;
    using Case = std::pair<int, float>;
    for (const auto& [ones, expected] :
         {Case{64, 320.0f}, Case{1, 256.0f}, Case{2, 258.0f}, Case{3, 260.0f}}) {
        constexpr std::size_t kDepth = 72;
        std::vector<T> a(kDepth, T(0.0f));
        a[0] = T(256.0f);
        std::fill_n(a.begin() + 1, ones, T(1.0f));
        const std::vector<T> b(kDepth, T(1.0f));
        EXPECT_EQ(static_cast<float>(multiply<T>({.m = 1, .n = 1, .k = kDepth}, a, b, {})[0]), expected)
            << "256 and " << ones << " times 1";
    }
}

// The largest half is 65504; 65519 is rounded to it, 65520 is not.
TEST_P(RoundedResultTest, WhatAHalfCannotHoldIsInfinite) {
    using Case = std::pair<float, float>;
    for (const auto& [last, expected] :
         {Case{15.0f, 65504.0f}, Case{16.0f, std::numeric_limits<float>::infinity()}}) {
        const std::vector<__half> a = {__half(32752.0f), __half(32752.0f), __half(last)};
        const std::vector<__half> ones(3, __half(1.0f));
        EXPECT_EQ(static_cast<float>(multiply<__half>({.m = 1, .n = 1, .k = 3}, a, ones, {})[0]), expected);
    }
}

TEST_P(RoundedResultTest, RefusesWhatDoesNotFit) {
    DeviceBuffer<__half> memory{std::span<const __half>(std::vector<__half>(128))};
    const auto matrix = [&](std::size_t rows, std::size_t cols, std::size_t offset) {
        return DeviceMatrix<__half>(memory.span().subspan(offset, rows * cols), rows, cols);
    };
    const auto message_of = [&](auto a, auto b, auto c) {
        const RoundedMatmul<__half> matmul{.a = a, .b = b, .c = c};
        return refusal([&] { GetParam()->launcher.half.launch(matmul, nullptr); });
    };
    const std::string expected = "; expected A: M x K, B: K x N, C: M x N";
    EXPECT_EQ(message_of(matrix(2, 8, 0), matrix(4, 8, 16), matrix(2, 8, 64)),
              "hopper_matmul: A is 2 x 8, B is 4 x 8, C is 2 x 8" + expected);
    EXPECT_EQ(message_of(matrix(2, 8, 0), matrix(8, 8, 16), matrix(3, 8, 80)),
              "hopper_matmul: A is 2 x 8, B is 8 x 8, C is 3 x 8" + expected);
    EXPECT_EQ(message_of(matrix(2, 8, 0), matrix(8, 8, 16), matrix(2, 7, 80)),
              "hopper_matmul: A is 2 x 8, B is 8 x 8, C is 2 x 7" + expected);
    EXPECT_EQ(message_of(matrix(2, 8, 0), matrix(8, 8, 16), matrix(2, 8, 8)),
              "hopper_matmul: C overlaps A; expected no common element");
    EXPECT_EQ(message_of(matrix(2, 8, 0), matrix(8, 8, 16), matrix(2, 8, 72)),
              "hopper_matmul: C overlaps B; expected no common element");
    const std::string alignment = "; expected 0 and a multiple of 16";
    EXPECT_EQ(message_of(matrix(2, 3, 0), matrix(3, 8, 8), matrix(2, 8, 80)),
              "hopper_matmul: A has an address % 16 of 0 and rows that are 6 bytes apart" + alignment);
    EXPECT_EQ(message_of(matrix(2, 8, 0), matrix(8, 2, 17), matrix(2, 2, 80)),
              "hopper_matmul: B has an address % 16 of 2 and rows that are 4 bytes apart" + alignment);
}

TEST_P(RoundedResultTest, RunsOnTheGivenStream) {
    const std::vector<__half> ones(32 * 32, __half(1.0f));
    const DeviceBuffer<__half> operand{std::span(ones)};
    DeviceBuffer<__half> c(32 * 32);
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher.half.launch(
            {.a = operand.matrix(32, 32), .b = operand.matrix(32, 32), .c = c.matrix(32, 32)}, stream);
    });
    EXPECT_EQ(work.nodes(), 1U) << "launches on the stream that was given";
}

// --- Tests that need a GPU -----------------------------------------------------------------------

TEST_P(RoundedResultTest, LargeShapes) {
    if (course::is_cpu_stand_in())
        GTEST_SKIP() << "needs a GPU: 10^10 multiply-adds would have to run on CPU threads";
    using T = __nv_bfloat16;
    for (const Shape& s : {Shape{4096, 4096, 512}, Shape{4095, 4104, 264}, Shape{1 << 18, 8, 72},
                           Shape{5, 1 << 18, 40}, Shape{100003, 136, 128}}) {
        const auto a = course::make_data<T>(s.m * s.k, DataPattern::kSignedUniform, kSeed);
        const auto b = course::make_data<T>(s.k * s.n, DataPattern::kSignedUniform, kSeed + 1);
        const DeviceBuffer<float> a_float{std::span<const float>(course::half_matmul::as_floats<T>(a))};
        const DeviceBuffer<float> b_float{std::span<const float>(course::half_matmul::as_floats<T>(b))};
        Expected expected{std::vector<double>(s.m * s.n), std::vector<double>(s.m * s.n)};
        course::multiply_on_device(s.m, s.n, s.k, 1, a_float.span(), b_float.span(), 0, expected.product,
                                   expected.magnitude);
        const auto result =
            day41::verify_rounded<T>(multiply(s, a, b, {}), expected.product, expected.magnitude,
                                     {.terms = s.k, .growth = course::Growth::kSquareRoot}, s.n);
        EXPECT_TRUE(result.ok()) << text(s, {}) << ": " << result.message();
    }
}

// C has more than 2^31 elements: offsets exceed 31 bits. Element (i, j) is a_i b_j, exact in FP16.
TEST_P(RoundedResultTest, MoreElementsThan31BitsCount) {
    constexpr std::size_t kLong = 65560;
    for (const std::size_t wide : {std::size_t{32800}, std::size_t{32801}}) {
        if (const std::string reason = course::why_not_so_large(kLong * wide * sizeof(__half));
            !reason.empty())
            GTEST_SKIP() << reason;
        const std::size_t pitch = (wide + 7) / 8 * 8;
        const auto a = integers<__half>(8 * kLong, kSeed);
        const auto b = integers<__half>(pitch, kSeed + 1);
        const DeviceBuffer<__half> a_device{std::span(a)};
        const DeviceBuffer<__half> b_device{std::span(b)};
        DeviceBuffer<__half> c(kLong * wide);
        CUDA_CHECK(cudaMemset(c.data(), 0xff, c.bytes()));
        GetParam()->launcher.half.launch({.a = DeviceMatrix<const __half>(a_device.span(), kLong, 1, 8),
                                          .b = DeviceMatrix<const __half>(b_device.span(), 1, wide, pitch),
                                          .c = c.matrix(kLong, wide)},
                                         nullptr);
        std::vector<__half> got(wide);
        for (const std::size_t i : {std::size_t{0}, kLong / 2, kLong - 129, kLong - 1}) {
            CUDA_CHECK(
                cudaMemcpy(got.data(), c.data() + i * wide, wide * sizeof(__half), cudaMemcpyDeviceToHost));
            for (std::size_t j = 0; j < wide; ++j)
                ASSERT_EQ(static_cast<float>(got[j]), static_cast<float>(a[8 * i]) * static_cast<float>(b[j]))
                    << i << ", " << j;
        }
    }
}

}  // namespace

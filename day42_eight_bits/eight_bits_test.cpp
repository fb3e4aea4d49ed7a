// Every version against the reference in double, for all types of operands, on shapes around the
// edges of tiles. Sums of integers must be equal, and so must exact sums of FP8.
#include "eight_bits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/guarded_matrix.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/check/parallel.hpp"
#include "common/check/verify.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "common/test/remembered.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::DeviceMatrix;
using course::GuardedMatrix;
using day42::Product;
using day42::Shape;
using day42::Sum;
using day42::Version;

constexpr std::uint64_t kSeed = 48;
constexpr std::size_t kStep = 16;  // TMA needs rows a multiple of 16 bytes apart

struct Problem {
    Shape shape{};
    std::size_t padding =
        0;  // elements after each row, rounded up so that rows begin at multiples of 16 bytes
    std::size_t odd_padding = 0;    // elements that follow in any case, so that rows begin anywhere
    std::size_t misaligned_by = 0;  // elements between an address that is a multiple of 256 and the first
};

template <class T>
std::string name_of() {
    return std::is_same_v<T, std::int8_t> ? "int8" : std::is_same_v<T, __nv_fp8_e4m3> ? "e4m3" : "e5m2";
}

template <class T>
std::size_t padding_for(std::size_t cols, std::size_t padding) {
    constexpr std::size_t kElements = kStep / sizeof(T);
    return (cols + padding + kElements - 1) / kElements * kElements - cols;
}

// The error bound. Tensor cores of a GPU sum FP8 with fewer digits than a float has, so they
// lose products that are small beside the sum. The stand-in sums in floats.
template <class T>
course::Bound bound_for(std::size_t depth) {
    if (course::is_cpu_stand_in()) return {.terms = depth + 1};
    return {.terms = 1, .factor = 0x1p13};  // 2^-10 of the sum of magnitudes
}

// INT8: all 256 values. FP8: integers so small that 13 bits hold every sum.
template <class T>
std::vector<T> integers(std::size_t count, std::uint64_t seed) {
    std::vector<T> values(count);
    course::for_each_part(count, [&](std::size_t begin, std::size_t end) {
        course::Random random(seed, begin);
        for (std::size_t i = begin; i < end; ++i) {
            if constexpr (std::is_integral_v<T>) {
                values[i] = static_cast<T>(random.integer(-128, 127));
            } else {
                values[i] = T(static_cast<float>(random.integer(-4, 4)));
            }
        }
    });
    return values;
}

std::vector<std::int32_t> wrapped(const std::vector<double>& sums) {
    std::vector<std::int32_t> result;
    for (const double sum : sums)
        result.push_back(
            static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum))));
    return result;
}

template <class T>
course::VerifyResult compare(const std::vector<Sum<T>>& got, const std::vector<double>& product,
                             const std::vector<double>& magnitude, const course::Bound& bound,
                             std::size_t cols) {
    if constexpr (std::is_integral_v<T>) {
        return course::verify_exact(got, std::span<const std::int32_t>(wrapped(product)), cols);
    } else {
        return course::verify(got, product, bound, magnitude, cols);
    }
}

class EightBits : public course::DeviceTestWithParam<const Version*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const Version*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    }

    template <class T>
    const day42::KernelFor<T>& kernel() const {
        return GetParam()->launcher.template of<T>();
    }
    // Does this version have a kernel for T that runs on this GPU?
    template <class T>
    bool runs() const {
        return kernel<T>().launch != nullptr && kernel<T>().why_not({}).empty();
    }

    template <class T>
    course::VerifyResult multiply(const Problem& problem, const std::vector<T>& a, const std::vector<T>& b,
                                  const course::Bound& bound) const {
        const auto [m, n, k] = problem.shape;
        const std::size_t after_row = padding_for<T>(k, problem.padding) + problem.odd_padding;
        GuardedMatrix<T> a_device(a, m, k, after_row, problem.misaligned_by);
        GuardedMatrix<T> b_device(b, n, k, after_row, problem.misaligned_by);
        GuardedMatrix<Sum<T>> c(m, n, padding_for<Sum<T>>(n, problem.padding) + problem.odd_padding,
                                problem.misaligned_by);
        kernel<T>().launch({.a = a_device.view(), .b = b_device.view(), .c = c.view()}, nullptr);
        static course::RememberedProducts remembered;
        const auto& [product, magnitude] = remembered(course::bytes_of(problem.shape, a, b), [&] {
            const std::size_t elements = problem.shape.m * problem.shape.n;
            course::ReferenceProduct expected{std::vector<double>(elements), std::vector<double>(elements)};
            day42::multiply_on_cpu<T>(problem.shape, a, b, expected.product, expected.magnitude);
            // verify() needs finite ones; where it is not, neither is the product
            for (double& size : expected.magnitude)
                size = std::isfinite(size) ? size : 0;
            return expected;
        });
        course::VerifyResult result = compare<T>(c.packed(), product, magnitude, bound, n);
        result.damage = c.damage() + a_device.damage() + b_device.damage();
        return result;
    }

    template <class T>
    void expect_right(const Problem& problem, const std::vector<T>& a, const std::vector<T>& b,
                      const course::Bound& bound, const std::string& data) const {
        const course::VerifyResult result = multiply<T>(problem, a, b, bound);
        EXPECT_TRUE(result.ok()) << name_of<T>() << ", " << problem.shape.m << " x " << problem.shape.n
                                 << " x " << problem.shape.k << ", padding " << problem.padding << " + "
                                 << problem.odd_padding << ", " << data << ": " << result.message();
    }

    // Every sum is exact, so only equal is right. All types on a GPU; one after the other on the
    // CPU, to save time.
    void expect_exact(const Problem& problem) const {
        const Shape& s = problem.shape;
        for_types([&]<class T>(T) {
            expect_right<T>(problem, integers<T>(s.m * s.k, kSeed), integers<T>(s.n * s.k, kSeed + 1),
                            {.factor = 0}, "integers");
        });
    }

    // Calls work(T{}) for each type that runs; on the CPU for the next one only.
    template <class Work>
    void for_types(const Work& work) const {
        const auto try_one = [&]<class T>(T type) {
            if (!runs<T>()) return false;
            work(type);
            return true;
        };
        const auto try_number = [&](unsigned number) {
            return number == 0   ? try_one(std::int8_t{})
                   : number == 1 ? try_one(__nv_fp8_e4m3{})
                                 : try_one(__nv_fp8_e5m2{});
        };
        for (unsigned i = 0; i < 3; ++i) {
            const bool done = try_number(turn_++ % 3);
            if (done && course::is_cpu_stand_in()) return;
        }
    }

  private:
    mutable unsigned turn_ = 0;
};

// The tiles of `bytes_fitted` that are not versions of their own.
std::vector<const Version*> further_tiles() {
    std::vector<const Version*> tiles;
    for (const Version& tile : day42::tiles_to_choose_from()) {
        const auto same = [&](const Version& version) { return version.name == tile.name; };
        if (std::ranges::none_of(day42::versions(), same)) tiles.push_back(&tile);
    }
    return tiles;
}

INSTANTIATE_TEST_SUITE_P(EightBits, EightBits, course::each_of(day42::versions()), course::VersionName());
INSTANTIATE_TEST_SUITE_P(Tiles, EightBits, testing::ValuesIn(further_tiles()), course::VersionName());

// On the CPU, fewer and smaller problems have the same edges.
template <class T>
T sized(T on_gpu, T on_cpu) {
    return course::is_cpu_stand_in() ? on_cpu : on_gpu;
}

// Each extent in each direction (on the CPU: in one of them); the other two change with it.
TEST_P(EightBits, EveryExtentInEachDirection) {
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
            expect_exact({.shape = directions[(d + i) % 3]});
    }
}

TEST_P(EightBits, DataPatterns) {
    const auto shapes =
        sized<std::vector<Shape>>({{64, 96, 65}, {131, 7, 167}, {129, 257, 200}}, {{7, 40, 165}});
    for (const Shape& shape : shapes) {
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kNormal, DataPattern::kAllEqual,
              DataPattern::kHugeNextToTiny, DataPattern::kWithNan}) {
            for_types([&]<class T>(T) {
                if (std::is_integral_v<T> && pattern == DataPattern::kWithNan) return;
                expect_right<T>({.shape = shape}, course::make_data<T>(shape.m * shape.k, pattern, kSeed),
                                course::make_data<T>(shape.n * shape.k, pattern, kSeed + 1),
                                bound_for<T>(shape.k), std::string(course::name(pattern)));
            });
        }
    }
}

// More tiles than resident blocks, so that blocks take several; more steps than a ring has stages,
// and fewer.
TEST_P(EightBits, ManyTiles) {
    // The last column is within a slice of 32 and no multiple of 4, after an odd number of slices,
    // and another tile follows.
    expect_exact({.shape = sized(Shape{2200, 2213, 130}, Shape{260, 293, 130})});
    const auto deep = sized(Shape{2200, 2304, 0}, Shape{130, 258, 0});
    for (const std::size_t k : sized<std::vector<std::size_t>>({1, 129, 512, 900}, {900}))
        expect_exact({.shape = {deep.m, deep.n, k}});
    const auto many = sized<std::size_t>(40000, 264);
    expect_exact({.shape = {many, 8, 260}, .padding = 3});
    expect_exact({.shape = {8, many, 260}, .padding = 3});
}

TEST_P(EightBits, NothingToAddOrNothingToWrite) {
    for (const Shape shape : {Shape{33, 130, 0}, Shape{0, 5, 3}, Shape{5, 0, 3}, Shape{0, 0, 0}})
        expect_exact({.shape = shape});
}

TEST_P(EightBits, RandomShapes) {
    constexpr std::uint64_t kShapeSeed = 20261122;
    SCOPED_TRACE("course::Random seed " + std::to_string(kShapeSeed));
    course::Random random(kShapeSeed);
    const auto most = sized(Shape{700, 700, 1000}, Shape{200, 300, 400});
    for (int round = 0; round < sized(16, 4); ++round)
        expect_exact({.shape = {random.below(static_cast<std::uint32_t>(most.m)),
                                random.below(static_cast<std::uint32_t>(most.n)),
                                random.below(static_cast<std::uint32_t>(most.k))},
                      .padding = random.below(40)});
}

TEST_P(EightBits, ALongSum) {
    expect_exact({.shape = {5, 4, sized<std::size_t>(20004, 1504)}});
}

TEST_P(EightBits, WorksOnItsStream) {
    const auto expect = [&]<class T>(T) {
        if (!runs<T>()) return;
        const DeviceBuffer<T> operand = course::zeros<T>(32 * 32);
        DeviceBuffer<Sum<T>> c(32 * 32);
        const course::CapturedWork work([&](cudaStream_t stream) {
            kernel<T>().launch(
                {.a = operand.matrix(32, 32), .b = operand.matrix(32, 32), .c = c.matrix(32, 32)}, stream);
        });
        EXPECT_EQ(work.nodes(), 1U) << name_of<T>();
    };
    expect(std::int8_t{});
    expect(__nv_fp8_e4m3{});
    expect(__nv_fp8_e5m2{});
}

// The largest products: up to the largest sums that fit, and one product further, where 2^31 wraps.
// Both signs.
TEST_P(EightBits, LargestSumsOfIntegers) {
    if (!runs<std::int8_t>()) GTEST_SKIP() << "there is no such version: sums of integers are exact";
    for (const std::size_t k : sized<std::vector<std::size_t>>({131071, 131072}, {512})) {
        for (const int b : {-128, 127})
            expect_right<std::int8_t>({.shape = {3, 2, k}}, std::vector<std::int8_t>(3 * k, -128),
                                      std::vector<std::int8_t>(2 * k, static_cast<std::int8_t>(b)), {},
                                      "-128 times " + std::to_string(b));
    }
}

// The largest numbers of E4M3 and E5M2, among small ones.
TEST_P(EightBits, LargestNumbersOfFloatingPoint) {
    const auto expect = [&]<class T>(T largest) {
        if (!runs<T>()) return;
        const Problem problem{.shape = {9, 10, 33}};
        std::vector<T> a = integers<T>(9 * 33, kSeed);
        a[40] = largest;
        expect_right<T>(problem, a, integers<T>(10 * 33, kSeed + 1), bound_for<T>(33), "one large number");
    };
    expect(__nv_fp8_e4m3(448.0f));
    expect(__nv_fp8_e5m2(-57344.0f));
}

// All products are equal. With as few digits as tensor cores keep of FP8, the sum is no longer
// exact long before this depth.
TEST_P(EightBits, PromotedSumsLoseNoDigits) {
    if (GetParam()->name != "bytes_promoted") GTEST_SKIP() << "the sums of this version are not promoted";
    const std::size_t k = sized<std::size_t>(8192, 1024);
    const std::vector<__nv_fp8_e4m3> a(130 * k, __nv_fp8_e4m3(0.75f));
    const std::vector<__nv_fp8_e4m3> b(5 * k, __nv_fp8_e4m3(1.125f));
    expect_right<__nv_fp8_e4m3>({.shape = {130, 5, k}}, a, b, {.factor = 0}, "all equal");
}

// --- What is refused -----------------------------------------------------------------------------

class Refusals : public EightBits {
  protected:
    template <class T>
    DeviceMatrix<T> matrix(std::size_t rows, std::size_t cols, std::size_t offset) {
        return {course::DeviceSpan<T>::from_device_pointer(reinterpret_cast<T*>(bytes_.data()) + offset,
                                                           rows * cols),
                rows, cols};
    }
    template <class T>
    std::string refusal(DeviceMatrix<T> a, DeviceMatrix<T> b, DeviceMatrix<Sum<T>> c) {
        return course::refusal([&] { kernel<T>().launch({.a = a, .b = b, .c = c}, nullptr); });
    }

  private:
    DeviceBuffer<std::uint8_t> bytes_{std::span<const std::uint8_t>(std::vector<std::uint8_t>(1024))};
};
INSTANTIATE_TEST_SUITE_P(EightBits, Refusals, course::each_of(day42::versions()), course::VersionName());

TEST_P(Refusals, WhatDoesNotFit) {
    using T = __nv_fp8_e4m3;
    if (!runs<T>()) GTEST_SKIP() << kernel<T>().why_not({});
    const std::string expected = "; expected A: M x K, B: N x K, C: M x N";
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 0), matrix<T>(4, 17, 64), matrix<float>(2, 4, 64)),
              "eight_bits: A is 2 x 16, B is 4 x 17, C is 2 x 4" + expected);
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 0), matrix<T>(4, 16, 64), matrix<float>(3, 4, 64)),
              "eight_bits: A is 2 x 16, B is 4 x 16, C is 3 x 4" + expected);
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 0), matrix<T>(4, 16, 64), matrix<float>(2, 5, 64)),
              "eight_bits: A is 2 x 16, B is 4 x 16, C is 2 x 5" + expected);
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 16), matrix<T>(4, 16, 64), matrix<float>(2, 4, 4)),
              "eight_bits: C overlaps A; expected no common element");
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 256), matrix<T>(4, 16, 0), matrix<float>(2, 4, 12)),
              "eight_bits: C overlaps B; expected no common element");
}

// Rows that TMA cannot address: refused, or multiplied by versions without TMA.
TEST_P(Refusals, RowsThatBeginAnywhere) {
    using T = __nv_fp8_e4m3;
    if (!runs<T>()) GTEST_SKIP() << kernel<T>().why_not({});
    const std::string expected = "; expected 0 and a multiple of 16";
    if (GetParam()->name.starts_with("bytes_mma_")) {
        for (const std::size_t odd : {1, 2, 8}) {
            for (const std::size_t misaligned_by : {0, 1, 3})
                expect_exact({.shape = {130, 66, 37}, .odd_padding = odd, .misaligned_by = misaligned_by});
        }
        return;
    }
    EXPECT_EQ(refusal<T>(matrix<T>(2, 8, 0), matrix<T>(4, 8, 64), matrix<float>(2, 4, 64)),
              "eight_bits: A has an address % 16 of 0 and rows that are 8 bytes apart" + expected);
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 3), matrix<T>(4, 16, 64), matrix<float>(2, 4, 64)),
              "eight_bits: A has an address % 16 of 3 and rows that are 16 bytes apart" + expected);
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 0), matrix<T>(4, 16, 65), matrix<float>(2, 4, 64)),
              "eight_bits: B has an address % 16 of 1 and rows that are 16 bytes apart" + expected);
    EXPECT_EQ(refusal<T>(matrix<T>(2, 16, 0), matrix<T>(5, 16, 64), matrix<float>(2, 5, 64)),
              "eight_bits: C has an address % 16 of 0 and rows that are 20 bytes apart" + expected);
}

TEST(EightBitsReference, RefusesLengthsThatDoNotMatch) {
    const std::vector<std::int8_t> values(6);
    std::vector<double> sums(4);
    const auto message = [&](const Shape& shape) {
        return course::refusal(
            [&] { day42::multiply_on_cpu<std::int8_t>(shape, values, values, sums, sums); });
    };
    EXPECT_EQ(message({2, 2, 3}), "");
    EXPECT_EQ(message({2, 3, 3}), "transposed: there are 6 values; expected 3 x 3");
    EXPECT_EQ(message({1, 2, 3}), "multiply_on_cpu: a has 6 elements; expected 3");
}

// --- What takes a GPU ----------------------------------------------------------------------------

class LargeBytes : public EightBits {
  protected:
    void SetUp() override {
        EightBits::SetUp();
        if (IsSkipped()) return;
        if (course::is_cpu_stand_in())
            GTEST_SKIP() << "needs a GPU: 10^11 multiply-adds would have to run on CPU threads";
    }
};
INSTANTIATE_TEST_SUITE_P(EightBits, LargeBytes, course::each_of(day42::versions()), course::VersionName());

// Operands and their product, in device memory: all versions multiply the same.
template <class T>
struct LargeProblem {
    explicit LargeProblem(const Shape& s)
        : shape(s),
          a(std::span<const T>(integers<T>(s.m * s.k, kSeed))),
          b(std::span<const T>(integers<T>(s.n * s.k, kSeed + 1))),
          product(s.m * s.n),
          magnitude(s.m * s.n) {
        const DeviceBuffer<float> a_float{std::span<const float>(day42::as_floats<T>(a.to_host()))};
        const DeviceBuffer<float> b_float{
            std::span<const float>(day42::transposed<T>(b.to_host(), s.n, s.k))};
        course::multiply_batch_on_device(1, s.m, s.n, s.k, 1, a_float.span(), b_float.span(), product.span(),
                                         magnitude.span());
        if constexpr (std::is_integral_v<T>)
            sums = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(wrapped(product.to_host())));
    }

    course::VerifyResult compare(const course::DeviceSpan<const Sum<T>>& got) const {
        if constexpr (std::is_integral_v<T>) {
            return course::verify_exact_on_device<std::int32_t>(got, sums.span());
        } else {
            return course::verify_on_device(got, product.span(), {.factor = 0}, magnitude.span(), shape.n);
        }
    }

    Shape shape;
    DeviceBuffer<T> a, b;
    DeviceBuffer<double> product, magnitude;
    DeviceBuffer<std::int32_t> sums;  // INT8: the product, wrapped
};

TEST_P(LargeBytes, TallWideAndDeep) {
    static const Shape shapes[] = {{4096, 4096, 4096}, {4095, 4104, 4112}, {1 << 18, 8, 144},
                                   {5, 1 << 18, 80},   {65, 72, 1 << 15},  {100003, 136, 256}};
    for_types([&]<class T>(T) {
        static const std::vector<LargeProblem<T>> problems(std::begin(shapes), std::end(shapes));
        for (const LargeProblem<T>& problem : problems) {
            const auto [m, n, k] = problem.shape;
            course::GuardedBuffer<Sum<T>> c(m * n);
            kernel<T>().launch(
                {.a = problem.a.matrix(m, k), .b = problem.b.matrix(n, k), .c = c.matrix(m, n)}, nullptr);
            course::VerifyResult result = problem.compare(c.span());
            result.damage = c.damage();
            EXPECT_TRUE(result.ok()) << name_of<T>() << ", " << m << " x " << n << " x " << k << ": "
                                     << result.message();
        }
    });
}

// C has more than 2^31 elements: offsets exceed 31 bits.
TEST_P(LargeBytes, MoreElementsThan31BitsCount) {
    constexpr std::size_t kLong = 65560, kWide = 32800, kDepth = 16;
    if (const std::string reason = course::why_not_so_large(kLong * kWide * 4); !reason.empty())
        GTEST_SKIP() << reason;
    for_types([&]<class T>(T) {
        const auto a = integers<T>(kLong * kDepth, kSeed);
        const auto b = integers<T>(kWide * kDepth, kSeed + 1);
        const DeviceBuffer<T> a_device{std::span<const T>(a)};
        const DeviceBuffer<T> b_device{std::span<const T>(b)};
        DeviceBuffer<Sum<T>> c(kLong * kWide);
        CUDA_CHECK(cudaMemset(c.data(), 0xff, c.bytes()));
        kernel<T>().launch({.a = a_device.matrix(kLong, kDepth),
                            .b = b_device.matrix(kWide, kDepth),
                            .c = c.matrix(kLong, kWide)},
                           nullptr);
        std::vector<Sum<T>> got(kWide);
        for (const std::size_t row : {std::size_t{0}, kLong / 2, kLong - 129, kLong - 1}) {
            CUDA_CHECK(cudaMemcpy(got.data(), c.data() + row * kWide, kWide * sizeof(Sum<T>),
                                  cudaMemcpyDeviceToHost));
            std::vector<double> product(kWide);
            std::vector<double> magnitude(kWide);
            day42::multiply_on_cpu<T>({1, kWide, kDepth}, std::span(a).subspan(row * kDepth, kDepth), b,
                                      product, magnitude);
            const course::VerifyResult result = compare<T>(got, product, magnitude, {.factor = 0}, kWide);
            EXPECT_TRUE(result.ok()) << name_of<T>() << ", row " << row << ": " << result.message();
        }
    });
}

// Which tile `bytes_fitted` takes, on an H200 and on two cores.
TEST(TileFor, SuitsTheShape) {
    const auto tile = [](std::size_t m, std::size_t n, std::size_t k, std::size_t multiprocessors = 132) {
        return day42::tile_for({.m = m, .n = n, .k = k}, multiprocessors);
    };
    EXPECT_EQ(tile(512, 512, 512), "tile_64x64") << "64 tiles for 132 multiprocessors";
    EXPECT_EQ(tile(1024, 1024, 1024), "tile_64x128") << "128 tiles";
    EXPECT_EQ(tile(512, 512, 8192), "split_2_64x128") << "32 tiles, and K is long";
    EXPECT_EQ(tile(3072, 3072, 3072), "tile_192x192") << "two rounds of 128 tiles";
    EXPECT_EQ(tile(8192, 8192, 8192), "bytes_wgmma") << "many rounds: the largest tile";
    EXPECT_EQ(tile(2048, 2048, 2048, 2), "bytes_wgmma") << "few multiprocessors are soon all at work";
}

}  // namespace

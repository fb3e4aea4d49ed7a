// MMA of 16-bit and 8-bit floats and of 8-bit integers on tensor cores through
// common/device/ptx.cuh: requirements that hold on every GPU that supports them and on the
// stand-in. (TF32: tensor_core_test.cu.)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"
#include "common/device/random.hpp"
#include "tensor_core_fixture.hpp"

namespace {

using namespace course;

constexpr int kM = 16, kN = 8;

// ---- The formats --------------------------------------------------------------------------------

// Each format has the bits of an element; the type of a sum and its error per term; the range of
// whole numbers to draw; the compute capability that it needs; and the conversions from bits to a
// number and from a number to the nearest bits.
struct WideSums {
    using Sum = float;
    static constexpr double kEpsilon = FLT_EPSILON;
    static constexpr int kLowest = -128, kHighest = 127, kLargestSum = 100000;
    static constexpr int kCapability = 80;
};

struct F16 : WideSums {
    using Bits = std::uint16_t;
    static constexpr int kK = 16;
    static Bits nearest(float value) { return __half_as_ushort(__float2half_rn(value)); }
    static double number(Bits bits) { return __half2float(__ushort_as_half(bits)); }
    __device__ static void multiply(Sum (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        ptx::mma_m16n8k16_f16(d, a, b);
    }
};

struct Bf16 : WideSums {
    using Bits = std::uint16_t;
    static constexpr int kK = 16;
    static Bits nearest(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
    static double number(Bits bits) { return __bfloat162float(__ushort_as_bfloat16(bits)); }
    __device__ static void multiply(Sum (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        ptx::mma_m16n8k16_bf16(d, a, b);
    }
};

// GPUs may sum these formats with less precision than a float has. 13 bits are enough for every
// sum of the whole numbers.
template <class Type>
struct Fp8 {
    using Bits = std::uint8_t;
    using Sum = float;
    static constexpr int kK = 32;
    static constexpr double kEpsilon = 0x1p-13;
    static constexpr int kLowest = -4, kHighest = 4, kLargestSum = 1000;
    static constexpr int kCapability = 89;
    static double number(Bits bits) {
        Type value;
        value.__x = bits;
        return static_cast<double>(static_cast<float>(value));
    }
};

struct E4m3 : Fp8<__nv_fp8_e4m3> {
    static Bits nearest(float value) { return __nv_cvt_float_to_fp8(value, __NV_NOSAT, __NV_E4M3); }
    __device__ static void multiply(Sum (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        ptx::mma_m16n8k32_e4m3(d, a, b);
    }
};

struct E5m2 : Fp8<__nv_fp8_e5m2> {
    static Bits nearest(float value) { return __nv_cvt_float_to_fp8(value, __NV_NOSAT, __NV_E5M2); }
    __device__ static void multiply(Sum (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        ptx::mma_m16n8k32_e5m2(d, a, b);
    }
};

struct S8 : WideSums {
    using Bits = std::uint8_t;
    using Sum = int;
    static constexpr int kK = 32;
    static Bits nearest(float value) { return static_cast<Bits>(static_cast<std::int8_t>(value)); }
    static double number(Bits bits) { return static_cast<std::int8_t>(bits); }
    __device__ static void multiply(Sum (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        ptx::mma_m16n8k32_s8(d, a, b);
    }
};

// ---- One MMA for each warp ----------------------------------------------------------------------

// Row-major, one after the other.
template <class Format>
struct Problem {
    typename Format::Bits a[kM * Format::kK];
    typename Format::Bits b[Format::kK * kN];
    typename Format::Sum c[kM * kN];
};

// Packs elements that are `step` apart, the first one into the lowest bits.
template <class Bits>
__device__ unsigned packed(const Bits* elements, int step) {
    unsigned result = 0;
    for (unsigned i = 0; i < 4 / sizeof(Bits); ++i)
        result |= static_cast<unsigned>(elements[i * step]) << 8 * sizeof(Bits) * i;
    return result;
}

// d = a b + c. A register holds kP elements: the first register of a lane starts at kP t, the
// second one half of k later.
template <class Format>
__global__ void multiply(typename Format::Sum* d, const Problem<Format>* problems) {
    constexpr unsigned kK = Format::kK;
    constexpr unsigned kP = 4 / sizeof(typename Format::Bits);
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned g = threadIdx.x % 32 / 4;
    const unsigned t = threadIdx.x % 4;
    const Problem<Format>& p = problems[warp];
    const unsigned a[4] = {packed(p.a + g * kK + kP * t, 1), packed(p.a + (g + 8) * kK + kP * t, 1),
                           packed(p.a + g * kK + kP * t + kK / 2, 1),
                           packed(p.a + (g + 8) * kK + kP * t + kK / 2, 1)};
    const unsigned b[2] = {packed(p.b + kP * t * kN + g, kN), packed(p.b + (kP * t + kK / 2) * kN + g, kN)};
    const unsigned place[4] = {g * kN + 2 * t, g * kN + 2 * t + 1, (g + 8) * kN + 2 * t,
                               (g + 8) * kN + 2 * t + 1};
    typename Format::Sum sums[4];
    for (int i = 0; i < 4; ++i)
        sums[i] = p.c[place[i]];
    Format::multiply(sums, a, b);
    for (int i = 0; i < 4; ++i)
        d[warp * kM * kN + place[i]] = sums[i];
}

constexpr unsigned kBlocks = 2;
constexpr unsigned kWarpsPerBlock = 3;
constexpr std::size_t kProblems = kBlocks * kWarpsPerBlock;

template <class Format>
std::vector<typename Format::Sum> products(const std::vector<Problem<Format>>& problems) {
    const DeviceBuffer<Problem<Format>> in{std::span<const Problem<Format>>(problems)};
    DeviceBuffer<typename Format::Sum> out(kProblems * kM * kN);
    multiply<Format><<<kBlocks, kWarpsPerBlock * 32>>>(out.data(), in.data());
    CUDA_CHECK_LAUNCH();
    return out.to_host();
}

// The sum of c and the products, or of their magnitudes.
template <class Format>
double element(const Problem<Format>& p, int row, int col, bool magnitudes = false) {
    const auto term = [magnitudes](double value) { return magnitudes ? std::fabs(value) : value; };
    double sum = term(p.c[row * kN + col]);
    for (int k = 0; k < Format::kK; ++k)
        sum += term(Format::number(p.a[row * Format::kK + k]) * Format::number(p.b[k * kN + col]));
    return sum;
}

// Calls see(number, problem, row, column) for each element.
template <class Format, class See>
void for_each_element(const std::vector<Problem<Format>>& problems, See see) {
    for (std::size_t i = 0; i < kProblems * kM * kN; ++i)
        see(i, problems[i / (kM * kN)], static_cast<int>(i / kN) % kM, static_cast<int>(i % kN));
}

// Whole numbers that every format can represent, so small that float sums are exact.
template <class Format>
std::vector<Problem<Format>> whole_numbers(std::uint64_t seed) {
    Random random(seed);
    const auto draw = [&random] {
        return Format::nearest(static_cast<float>(random.integer(Format::kLowest, Format::kHighest)));
    };
    std::vector<Problem<Format>> problems(kProblems);
    for (Problem<Format>& problem : problems) {
        std::generate(std::begin(problem.a), std::end(problem.a), draw);
        std::generate(std::begin(problem.b), std::end(problem.b), draw);
        for (auto& c : problem.c)
            c = static_cast<typename Format::Sum>(random.integer(-Format::kLargestSum, Format::kLargestSum));
    }
    return problems;
}

template <class Format>
class Mma : public TensorCoreTest {
  protected:
    void SetUp() override {
        TensorCoreTest::SetUp();
        if (IsSkipped()) return;
        int major = 0;
        int minor = 0;
        CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
        CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
        if (major * 10 + minor < Format::kCapability)
            GTEST_SKIP() << "needs a GPU of compute capability " << Format::kCapability / 10.0
                         << " or more; this one has " << major << "." << minor;
    }
};
template <class Format>
class MmaOfFloats : public Mma<Format> {};

struct FormatName {
    template <class Format>
    static std::string GetName(int) {
        return std::is_same_v<Format, F16>    ? "f16"
               : std::is_same_v<Format, Bf16> ? "bf16"
               : std::is_same_v<Format, E4m3> ? "e4m3"
               : std::is_same_v<Format, E5m2> ? "e5m2"
                                              : "s8";
    }
};
using Formats = testing::Types<F16, Bf16, E4m3, E5m2, S8>;
using FloatFormats = testing::Types<F16, Bf16, E4m3, E5m2>;
TYPED_TEST_SUITE(Mma, Formats, FormatName);
TYPED_TEST_SUITE(MmaOfFloats, FloatFormats, FormatName);

TYPED_TEST(Mma, EveryElementIsInItsPlace) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const auto problems = whole_numbers<TypeParam>(seed);
        const auto got = products(problems);
        for_each_element(problems, [&](std::size_t i, const auto& problem, int row, int col) {
            EXPECT_EQ(got[i], element(problem, row, col))
                << "number " << i << ", row " << row << ", column " << col << ", seed " << seed;
        });
    }
}

// A matrix with a single 1 selects one row of B. So a failure shows which element of A is in the
// wrong place.
TYPED_TEST(Mma, EachElementOfAPicksItsRowOfB) {
    constexpr int kK = TypeParam::kK;
    auto problems = whole_numbers<TypeParam>(6);
    for (int first = 0; first < kM * kK; first += kProblems) {
        for (std::size_t i = 0; i < kProblems; ++i) {
            std::fill(std::begin(problems[i].a), std::end(problems[i].a), TypeParam::nearest(0));
            problems[i].a[(first + i) % (kM * kK)] = TypeParam::nearest(1);
        }
        const auto got = products(problems);
        for_each_element(problems, [&](std::size_t i, const auto& problem, int row, int col) {
            ASSERT_EQ(got[i], element(problem, row, col))
                << "row " << row << ", column " << col << ", 1 at " << first + i / (kM * kN);
        });
    }
}

TYPED_TEST(MmaOfFloats, SumsOfRandomNumbersAreClose) {
    constexpr int kK = TypeParam::kK;
    Random random(5);
    std::vector<Problem<TypeParam>> problems(kProblems);
    const auto draw = [&random] { return TypeParam::nearest(random.normal()); };
    for (auto& problem : problems) {
        std::generate(std::begin(problem.a), std::end(problem.a), draw);
        std::generate(std::begin(problem.b), std::end(problem.b), draw);
        std::generate(std::begin(problem.c), std::end(problem.c), [&random] { return random.normal(); });
    }
    const auto got = products(problems);
    for_each_element(problems, [&](std::size_t i, const auto& problem, int row, int col) {
        // Tensor cores truncate where float arithmetic would round, so the error of each term is
        // less than an ulp of the largest sum. The stand-in sums in full float precision.
        constexpr double kEpsilon = is_cpu_stand_in() ? FLT_EPSILON : TypeParam::kEpsilon;
        EXPECT_NEAR(got[i], element(problem, row, col),
                    (kK + 1) * kEpsilon * element(problem, row, col, true))
            << "number " << i << ", seed 5";
    });
}

TYPED_TEST(MmaOfFloats, NanAndInfStayInTheirRowOrColumn) {
    constexpr int kK = TypeParam::kK;
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    auto problems = whole_numbers<TypeParam>(7);
    problems[0].a[3 * kK + 5] = TypeParam::nearest(nan);    // row 3
    problems[1].a[12 * kK + 15] = TypeParam::nearest(inf);  // Inf, -Inf, and NaN where B has a 0
    problems[1].b[15 * kN + 2] = TypeParam::nearest(0);
    problems[2].a[9 * kK + 0] = TypeParam::nearest(inf);  // the difference of two Inf, which is NaN
    problems[2].a[9 * kK + 8] = TypeParam::nearest(inf);
    for (int col = 0; col < kN; ++col) {
        problems[2].b[0 * kN + col] = TypeParam::nearest(1);
        problems[2].b[8 * kN + col] = TypeParam::nearest(-1);
    }
    problems[3].b[14 * kN + 7] = TypeParam::nearest(nan);  // column 7
    problems[4].c[15 * kN + 6] = nan;                      // one element
    problems[5].c[0 * kN + 1] = -inf;
    const auto got = products(problems);
    for_each_element(problems, [&](std::size_t i, const auto& problem, int row, int col) {
        const double expected = element(problem, row, col);
        if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(got[i])) << "number " << i << ": " << got[i];
        } else {
            EXPECT_EQ(got[i], expected) << "number " << i;
        }
    });
}

TYPED_TEST(MmaOfFloats, DenormalsCount) {
    auto problems = whole_numbers<TypeParam>(8);
    for (auto& problem : problems) {
        for (int i = 0; i < kM * TypeParam::kK; ++i)  // denormal in A
            problem.a[i] = static_cast<typename TypeParam::Bits>(1 + i % 7);
        std::fill(std::begin(problem.c), std::end(problem.c), 0.0f);
    }
    const auto got = products(problems);
    for_each_element(problems, [&](std::size_t i, const auto& problem, int row, int col) {
        EXPECT_EQ(got[i], element(problem, row, col)) << "number " << i;
    });
}

class MmaOfBytes : public TensorCoreTest {};

TEST_F(MmaOfBytes, SumsWrap) {
    constexpr int kMax = std::numeric_limits<int>::max();
    constexpr int kMin = std::numeric_limits<int>::min();
    auto problems = whole_numbers<S8>(9);
    std::fill(std::begin(problems[0].a), std::end(problems[0].a), S8::nearest(-128));
    std::fill(std::begin(problems[0].b), std::end(problems[0].b), S8::nearest(-128));
    for (std::size_t i = 0; i < kProblems; ++i) {
        for (int j = 0; j < kM * kN; ++j)
            problems[i].c[j] = j % 2 == 0 ? kMax - j : kMin + j;
    }
    const auto got = products(problems);
    for_each_element(problems, [&](std::size_t i, const auto& problem, int row, int col) {
        const auto exact = static_cast<std::int64_t>(element(problem, row, col));
        EXPECT_EQ(static_cast<std::uint32_t>(got[i]), static_cast<std::uint32_t>(exact)) << "number " << i;
    });
    EXPECT_EQ(got[0], kMin + 32 * 128 * 128 - 1) << "no saturation";
}

}  // namespace

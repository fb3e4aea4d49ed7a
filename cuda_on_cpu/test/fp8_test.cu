// __nv_fp8_e4m3 and __nv_fp8_e5m2: all conversions are compared with a reference that knows nothing
// of exponents and mantissas, the sorted table of all values of the type; the table itself with the
// formula of the formats' standard.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "on_device.cuh"

namespace {

using Bits = __nv_fp8_storage_t;

struct E4m3 {
    using Type = __nv_fp8_e4m3;
    static constexpr __nv_fp8_interpretation_t kFormat = __NV_E4M3;
    static constexpr int kMantissaBits = 3, kBias = 7;
    static constexpr Bits kMax = 0x7e;
    static constexpr double kLargest = 448;
    static constexpr bool kHasInfinity = false;
};

struct E5m2 {
    using Type = __nv_fp8_e5m2;
    static constexpr __nv_fp8_interpretation_t kFormat = __NV_E5M2;
    static constexpr int kMantissaBits = 2, kBias = 15;
    static constexpr Bits kMax = 0x7b;
    static constexpr double kLargest = 57344;
    static constexpr bool kHasInfinity = true;
};

template <class F>
__device__ __host__ typename F::Type from_bits(Bits bits) {
    typename F::Type value;
    value.__x = bits;
    return value;
}

// The value of bits, NaN and Inf aside.
template <class F>
double value_of(Bits bits) {
    const int exponent = bits % 128 >> F::kMantissaBits;
    const int mantissa = bits % (1 << F::kMantissaBits);
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - F::kBias - F::kMantissaBits)
                                           : std::ldexp(mantissa + (1 << F::kMantissaBits),
                                                        exponent - F::kBias - F::kMantissaBits);
    return bits < 128 ? magnitude : -magnitude;
}

// The nearest number's bits; of two equally near the even one.
template <class F>
Bits nearest(double value) {
    value = std::clamp(value, -2 * F::kLargest, 2 * F::kLargest);  // beyond, differences are rounded
    Bits best = 0;
    for (int bits = 1; bits <= F::kMax; ++bits) {
        const double better = std::fabs(value_of<F>(best) - std::fabs(value)) -
                              std::fabs(value_of<F>(static_cast<Bits>(bits)) - std::fabs(value));
        if (better > 0 || (better == 0 && bits % 2 == 0)) best = static_cast<Bits>(bits);
    }
    return static_cast<Bits>(best | (std::signbit(value) ? 128 : 0));
}

template <class F>
class Fp8 : public testing::Test {};
using Formats = testing::Types<E4m3, E5m2>;
TYPED_TEST_SUITE(Fp8, Formats);

template <class F>
struct ToFloat {
    __device__ float operator()(Bits bits) const { return static_cast<float>(from_bits<F>(bits)); }
};
template <class F>
struct ThroughHalf {
    __device__ float operator()(Bits bits) const {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, F::kFormat)));
    }
};
template <class F>
struct FromFloat {
    __device__ Bits operator()(float value) const { return typename F::Type(value).__x; }
};
template <class F>
struct FromFloatUnlimited {
    __device__ Bits operator()(float value) const {
        return __nv_cvt_float_to_fp8(value, __NV_NOSAT, F::kFormat);
    }
};

TYPED_TEST(Fp8, BitsStandForTheirNumbers) {
    std::vector<Bits> all(256);
    for (int i = 0; i < 256; ++i)
        all[i] = static_cast<Bits>(i);
    const auto floats = map_on_device<float>(ToFloat<TypeParam>{}, all);
    const auto halves = map_on_device<float>(ThroughHalf<TypeParam>{}, all);
    for (int i = 0; i < 256; ++i) {
        SCOPED_TRACE(i);
        const auto on_host = static_cast<float>(from_bits<TypeParam>(static_cast<Bits>(i)));
        if (i % 128 <= TypeParam::kMax) {
            EXPECT_EQ(floats[i], value_of<TypeParam>(static_cast<Bits>(i)));
            EXPECT_EQ(std::signbit(floats[i]), i >= 128);
            EXPECT_EQ(halves[i], floats[i]);
            EXPECT_EQ(on_host, floats[i]);
        } else if (TypeParam::kHasInfinity && i % 128 == TypeParam::kMax + 1) {
            EXPECT_EQ(floats[i], i < 128 ? INFINITY : -INFINITY);
            EXPECT_EQ(on_host, floats[i]);
        } else {
            EXPECT_TRUE(std::isnan(floats[i]) && std::isnan(halves[i]) && std::isnan(on_host));
        }
    }
    EXPECT_EQ(value_of<TypeParam>(TypeParam::kMax), TypeParam::kLargest);
}

// All numbers, those half way between two, and their neighbours; beyond the largest, and far below
// the smallest.
template <class F>
std::vector<float> interesting() {
    std::vector<float> values = {1e-30f, 1e30f, std::numeric_limits<float>::max(),
                                 std::numeric_limits<float>::denorm_min()};
    for (int bits = 0; bits <= F::kMax; ++bits) {
        const double number = value_of<F>(static_cast<Bits>(bits));
        const double next = bits == F::kMax ? 2 * number - value_of<F>(static_cast<Bits>(bits - 1))
                                            : value_of<F>(static_cast<Bits>(bits + 1));
        for (const double value : {number, (number + next) / 2}) {
            const auto exact = static_cast<float>(value);
            values.insert(values.end(), {exact, std::nextafter(exact, 0.0f), std::nextafter(exact, 1e30f)});
        }
    }
    const std::size_t count = values.size();
    for (std::size_t i = 0; i < count; ++i)
        values.push_back(-values[i]);
    return values;
}

TYPED_TEST(Fp8, ConversionsRoundToTheNearestAndStopAtTheLargest) {
    const std::vector<float> values = interesting<TypeParam>();
    const auto got = map_on_device<Bits>(FromFloat<TypeParam>{}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(got[i], nearest<TypeParam>(static_cast<double>(values[i]))) << values[i];
        EXPECT_EQ(typename TypeParam::Type(values[i]).__x, got[i]) << values[i] << " on the host";
        EXPECT_EQ(typename TypeParam::Type(static_cast<double>(values[i])).__x, got[i]) << values[i];
    }
}

template <class F>
struct PairFromFloat {
    __device__ __nv_fp8x2_storage_t operator()(float value) const {
        return __nv_cvt_float2_to_fp8x2({value, -2 * value}, __NV_SATFINITE, F::kFormat);
    }
};

TYPED_TEST(Fp8, PairsHaveTheirFirstNumberInTheLowerByte) {
    const std::vector<float> values = interesting<TypeParam>();
    const auto got = map_on_device<__nv_fp8x2_storage_t>(PairFromFloat<TypeParam>{}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(got[i] % 256, typename TypeParam::Type(values[i]).__x) << values[i];
        EXPECT_EQ(got[i] / 256, typename TypeParam::Type(-2 * values[i]).__x) << values[i];
    }
}

// A double that lies between two floats, one of them half way between two numbers, must not be
// rounded to a float first.
constexpr double kSlightlyMore = 1 + 1e-12;

template <class F>
struct PairFromDouble {
    __device__ __nv_fp8x2_storage_t operator()(float value) const {
        const double number = value;
        return __nv_cvt_double2_to_fp8x2(make_double2(kSlightlyMore * number, -2 * number), __NV_SATFINITE,
                                         F::kFormat);
    }
};

TYPED_TEST(Fp8, PairsOfDoublesAreRoundedOnce) {
    const std::vector<float> values = interesting<TypeParam>();
    const auto got = map_on_device<__nv_fp8x2_storage_t>(PairFromDouble<TypeParam>{}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double number = values[i];
        EXPECT_EQ(got[i] % 256, nearest<TypeParam>(kSlightlyMore * number)) << values[i];
        EXPECT_EQ(got[i] / 256, nearest<TypeParam>(-2 * number)) << values[i];
    }
}

// Two FP8 numbers become two halves in a word, the first one in its lower half.
template <class F>
struct PairToHalves {
    __device__ unsigned operator()(__nv_fp8x2_storage_t pair) const {
        const __half2_raw halves = __nv_cvt_fp8x2_to_halfraw2(pair, F::kFormat);
        return halves.x | static_cast<unsigned>(halves.y) << 16;
    }
};
template <class F>
struct EachToHalf {
    __device__ unsigned operator()(__nv_fp8x2_storage_t pair) const {
        return __nv_cvt_fp8_to_halfraw(static_cast<Bits>(pair % 256), F::kFormat).x |
               static_cast<unsigned>(__nv_cvt_fp8_to_halfraw(static_cast<Bits>(pair / 256), F::kFormat).x)
                   << 16;
    }
};

// All words of 16 bits: numbers of half precision or bfloat16, or pairs of FP8 numbers.
std::vector<unsigned short> all_words() {
    std::vector<unsigned short> words(65536);
    std::iota(words.begin(), words.end(), static_cast<unsigned short>(0));
    return words;
}

TYPED_TEST(Fp8, PairsBecomeThePairsOfTheirHalves) {
    const auto pairs = map_on_device<unsigned>(PairToHalves<TypeParam>{}, all_words());
    EXPECT_EQ(pairs, map_on_device<unsigned>(EachToHalf<TypeParam>{}, all_words()));
}

struct FromHalf {
    static __device__ Bits convert(unsigned short x, __nv_saturation_t saturate,
                                   __nv_fp8_interpretation_t format) {
        __half_raw raw;
        raw.x = x;
        return __nv_cvt_halfraw_to_fp8(raw, saturate, format);
    }
    static __device__ __nv_fp8x2_storage_t convert(unsigned short x, unsigned short y,
                                                   __nv_saturation_t saturate,
                                                   __nv_fp8_interpretation_t format) {
        __half2_raw raw;
        raw.x = x;
        raw.y = y;
        return __nv_cvt_halfraw2_to_fp8x2(raw, saturate, format);
    }
    static double value_of(unsigned short x) {
        return static_cast<double>(__half2float(__ushort_as_half(x)));
    }
};

struct FromBfloat16 {
    static __device__ Bits convert(unsigned short x, __nv_saturation_t saturate,
                                   __nv_fp8_interpretation_t format) {
        __nv_bfloat16_raw raw;
        raw.x = x;
        return __nv_cvt_bfloat16raw_to_fp8(raw, saturate, format);
    }
    static __device__ __nv_fp8x2_storage_t convert(unsigned short x, unsigned short y,
                                                   __nv_saturation_t saturate,
                                                   __nv_fp8_interpretation_t format) {
        __nv_bfloat162_raw raw;
        raw.x = x;
        raw.y = y;
        return __nv_cvt_bfloat16raw2_to_fp8x2(raw, saturate, format);
    }
    static double value_of(unsigned short x) {
        return static_cast<double>(__bfloat162float(__ushort_as_bfloat16(x)));
    }
};

template <class F, class From>
struct FromWord {
    __nv_saturation_t saturate;
    __device__ Bits operator()(unsigned short word) const {
        return From::convert(word, saturate, F::kFormat);
    }
};
// The second number of the pair has all bits of the first one inverted.
template <class F, class From>
struct PairFromWord {
    __nv_saturation_t saturate;
    __device__ __nv_fp8x2_storage_t operator()(unsigned short word) const {
        return From::convert(word, static_cast<unsigned short>(~word), saturate, F::kFormat);
    }
};

template <class F, class From>
void expect_conversions_of_words() {
    const std::vector<unsigned short> words = all_words();
    const double step = F::kLargest - value_of<F>(static_cast<Bits>(F::kMax - 1));
    const double limit = F::kLargest + step / 2;
    for (const __nv_saturation_t saturate : {__NV_SATFINITE, __NV_NOSAT}) {
        SCOPED_TRACE(saturate == __NV_SATFINITE ? "stops at the largest" : "may overflow");
        const auto got = map_on_device<Bits>(FromWord<F, From>{saturate}, words);
        const auto pairs = map_on_device<__nv_fp8x2_storage_t>(PairFromWord<F, From>{saturate}, words);
        for (const unsigned short word : words) {
            const double value = From::value_of(word);
            const double size = std::fabs(value);
            if (std::isnan(value)) {
                ASSERT_TRUE(std::isnan(static_cast<float>(from_bits<F>(got[word])))) << word;
            } else if (saturate == __NV_SATFINITE || size < limit || (size == limit && F::kMax % 2 == 0)) {
                ASSERT_EQ(got[word], nearest<F>(value)) << value;
            } else {
                ASSERT_EQ(got[word] % 128, F::kMax + 1) << value;
            }
            ASSERT_EQ(pairs[word] % 256, got[word]) << value;
            ASSERT_EQ(pairs[word] / 256, got[65535 - word]) << value;
        }
    }
}

TYPED_TEST(Fp8, AllNumbersOfHalfPrecisionConvert) {
    expect_conversions_of_words<TypeParam, FromHalf>();
}
TYPED_TEST(Fp8, AllNumbersOfBfloat16Convert) {
    expect_conversions_of_words<TypeParam, FromBfloat16>();
}

// Without a stop: from half a step beyond the largest on, Inf, or NaN where there is none.
TYPED_TEST(Fp8, ConversionsMayOverflow) {
    const std::vector<float> values = interesting<TypeParam>();
    const auto got = map_on_device<Bits>(FromFloatUnlimited<TypeParam>{}, values);
    const double step = TypeParam::kLargest - value_of<TypeParam>(static_cast<Bits>(TypeParam::kMax - 1));
    // Half way lies the even one of the two: the largest of E4M3, and not of E5M2.
    const double limit = TypeParam::kLargest + step / 2;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double size = std::fabs(static_cast<double>(values[i]));
        if (size < limit || (size == limit && TypeParam::kMax % 2 == 0)) {
            EXPECT_EQ(got[i], nearest<TypeParam>(static_cast<double>(values[i]))) << values[i];
        } else {
            EXPECT_EQ(got[i] % 128, TypeParam::kMax + 1) << values[i];
        }
    }
}

TYPED_TEST(Fp8, NanStaysNanAndInfinityIsLarge) {
    const float inf = std::numeric_limits<float>::infinity();
    const auto got = map_on_device<Bits>(
        FromFloat<TypeParam>{}, std::vector<float>{inf, -inf, std::numeric_limits<float>::quiet_NaN()});
    EXPECT_EQ(got[0], TypeParam::kMax);
    EXPECT_EQ(got[1], TypeParam::kMax | 128);
    EXPECT_TRUE(std::isnan(static_cast<float>(from_bits<TypeParam>(got[2]))));
}

TYPED_TEST(Fp8, OtherTypesConvertToo) {
    using Type = typename TypeParam::Type;
    EXPECT_EQ(Type(__half(1.75f)).__x, Type(1.75f).__x);
    EXPECT_EQ(Type(__nv_bfloat16(-0.625f)).__x, Type(-0.625f).__x);
    EXPECT_EQ(Type(6).__x, Type(6.0f).__x);
    EXPECT_EQ(Type(7u).__x, Type(7.0f).__x);
    EXPECT_EQ(static_cast<double>(Type(1.5)), 1.5);
    EXPECT_EQ(static_cast<float>(static_cast<__half>(Type(1.5))), 1.5f);
    EXPECT_EQ(static_cast<float>(static_cast<__nv_bfloat16>(Type(1.5))), 1.5f);
    static_assert(sizeof(Type) == 1 && std::is_trivially_copyable_v<Type>);
    static_assert(std::is_trivially_default_constructible_v<Type>);
}

// ---- Powers of two ------------------------------------------------------------------------------

struct E8m0ToFloat {
    __device__ float operator()(Bits bits) const {
        __nv_fp8_e8m0 value;
        value.__x = bits;
        return static_cast<float>(value);
    }
};
struct E8m0ThroughBfloat16 {
    __device__ float operator()(Bits bits) const {
        return __bfloat162float(__nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(bits)));
    }
};
template <__nv_saturation_t kSaturate, cudaRoundMode kRounding>
struct ToE8m0 {
    __device__ Bits operator()(float value) const {
        return __nv_cvt_float_to_e8m0(value, kSaturate, kRounding);
    }
};
struct ToE8m0Type {
    __device__ Bits operator()(float value) const { return __nv_fp8_e8m0(value).__x; }
};

std::vector<Bits> all_bits() {
    std::vector<Bits> all(256);
    for (int i = 0; i < 256; ++i)
        all[i] = static_cast<Bits>(i);
    return all;
}

TEST(Fp8E8m0, BitsStandForPowersOfTwo) {
    const auto floats = map_on_device<float>(E8m0ToFloat{}, all_bits());
    const auto through_bfloat16 = map_on_device<float>(E8m0ThroughBfloat16{}, all_bits());
    for (int i = 0; i < 255; ++i) {
        EXPECT_EQ(floats[i], std::ldexp(1.0, i - 127)) << i;
        EXPECT_EQ(through_bfloat16[i], floats[i]) << i;
    }
    EXPECT_TRUE(std::isnan(floats[255]) && std::isnan(through_bfloat16[255]));
}

// The nearest power that is no larger, or no smaller, looked up among all of them.
Bits power_beside(double size, cudaRoundMode rounding) {
    Bits found = 0;
    for (int i = 0; i < 255; ++i) {
        const double power = std::ldexp(1.0, i - 127);
        if (rounding == cudaRoundZero && power <= size) found = static_cast<Bits>(i);
        if (rounding == cudaRoundPosInf && power < size) found = static_cast<Bits>(i + 1);
    }
    return found;
}

TEST(Fp8E8m0, NumbersGoToThePowerBelowOrAbove) {
    std::vector<float> values = {0.0f,      -0.0f,  1.0f,    -3.0f,   1.5f,
                                 6.25e-39f, 1e-45f, 3.4e38f, 1.8e38f, -3.4e38f};
    for (int e = -149; e < 128; ++e) {
        const float power = std::ldexp(1.0f, e);
        for (const float value : {power, std::nextafter(power, 0.0f), std::nextafter(power, 2 * power)})
            values.push_back(e % 2 == 0 ? value : -value);
    }
    const auto down = map_on_device<Bits>(ToE8m0<__NV_NOSAT, cudaRoundZero>{}, values);
    const auto up = map_on_device<Bits>(ToE8m0<__NV_NOSAT, cudaRoundPosInf>{}, values);
    const auto limited = map_on_device<Bits>(ToE8m0<__NV_SATFINITE, cudaRoundPosInf>{}, values);
    const auto type = map_on_device<Bits>(ToE8m0Type{}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double size = std::fabs(static_cast<double>(values[i]));
        EXPECT_EQ(down[i], power_beside(size, cudaRoundZero)) << values[i];
        EXPECT_EQ(up[i], power_beside(size, cudaRoundPosInf)) << values[i];  // beyond 2^127: NaN's bits
        EXPECT_EQ(limited[i], std::min<int>(up[i], 254)) << values[i];
        EXPECT_EQ(type[i], limited[i]) << values[i];
    }
}

TEST(Fp8E8m0, NanInfinityAndPairs) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(__nv_cvt_float_to_e8m0(nan, __NV_SATFINITE, cudaRoundZero), 255);
    EXPECT_EQ(__nv_cvt_float_to_e8m0(-inf, __NV_SATFINITE, cudaRoundZero), 254);
    EXPECT_EQ(__nv_cvt_float_to_e8m0(inf, __NV_NOSAT, cudaRoundPosInf), 255);
    EXPECT_EQ(__nv_cvt_float2_to_e8m0x2({4.0f, 0.5f}, __NV_NOSAT, cudaRoundZero), 126 << 8 | 129);
    EXPECT_EQ(__nv_cvt_bfloat162raw_to_e8m0x2(__nv_bfloat162(4.0f, 0.5f), __NV_NOSAT, cudaRoundZero),
              126 << 8 | 129);
    const __nv_bfloat162 pair(__nv_cvt_e8m0x2_to_bf162raw(126 << 8 | 129));
    EXPECT_EQ(__bfloat162float(pair.x), 4.0f);
    EXPECT_EQ(__bfloat162float(pair.y), 0.5f);
}

// ---- Types of two and of four -------------------------------------------------------------------

template <class Two, class Four, class One>
void expect_vectors() {
    const float values[4] = {1.0f, 2.0f, 0.25f, 16.0f};
    const Four four(float4{values[0], values[1], values[2], values[3]});
    const float4 back = static_cast<float4>(four);
    const Two two(float2{values[2], values[3]});
    const float2 half_back = static_cast<float2>(two);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(four.__x >> 8 * i & 0xff, One(values[i]).__x) << i;
        EXPECT_EQ((&back.x)[i], values[i]) << i;
    }
    EXPECT_EQ(two.__x, four.__x >> 16);
    EXPECT_EQ(half_back.x, values[2]);
    EXPECT_EQ(half_back.y, values[3]);
    EXPECT_EQ(Four(__half2(values[0], values[1]), __half2(values[2], values[3])).__x, four.__x);
    EXPECT_EQ(__half2float(static_cast<__half2>(two).y), values[3]);
    static_assert(sizeof(Two) == 2 && sizeof(Four) == 4 && std::is_trivially_copyable_v<Four>);
}
TEST(Fp8Vectors, HaveTheirFirstNumberInTheLowestByte) {
    expect_vectors<__nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __nv_fp8_e4m3>();
    expect_vectors<__nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __nv_fp8_e5m2>();
    expect_vectors<__nv_fp8x2_e8m0, __nv_fp8x4_e8m0, __nv_fp8_e8m0>();
}

}  // namespace

// Floating point of 6 and of 4 bits: all conversions are compared with a reference that only knows
// the sorted table of a type's values.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#if __has_include(<cuda_fp4.h>)  // CUDA 12.8 and newer

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>

#include <cmath>
#include <limits>
#include <vector>

#include "on_device.cuh"

namespace {

struct E2m3 {
    using Type = __nv_fp6_e2m3;
    static constexpr unsigned kMantissaBits = 3, kSign = 32;
    static constexpr int kBias = 1;
    static constexpr double kLargest = 7.5;
    static __device__ __host__ unsigned char from(double value, cudaRoundMode rounding) {
        return __nv_cvt_double_to_fp6(value, __NV_E2M3, rounding);
    }
    static __device__ __host__ float to_float(unsigned char bits) {
        return __half2float(__half(__nv_cvt_fp6_to_halfraw(bits, __NV_E2M3)));
    }
};
struct E3m2 {
    using Type = __nv_fp6_e3m2;
    static constexpr unsigned kMantissaBits = 2, kSign = 32;
    static constexpr int kBias = 3;
    static constexpr double kLargest = 28;
    static __device__ __host__ unsigned char from(double value, cudaRoundMode rounding) {
        return __nv_cvt_double_to_fp6(value, __NV_E3M2, rounding);
    }
    static __device__ __host__ float to_float(unsigned char bits) {
        return __half2float(__half(__nv_cvt_fp6_to_halfraw(bits, __NV_E3M2)));
    }
};
struct E2m1 {
    using Type = __nv_fp4_e2m1;
    static constexpr unsigned kMantissaBits = 1, kSign = 8;
    static constexpr int kBias = 1;
    static constexpr double kLargest = 6;
    static __device__ __host__ unsigned char from(double value, cudaRoundMode rounding) {
        return __nv_cvt_double_to_fp4(value, __NV_E2M1, rounding);
    }
    static __device__ __host__ float to_float(unsigned char bits) {
        return __half2float(__half(__nv_cvt_fp4_to_halfraw(bits, __NV_E2M1)));
    }
};

template <class F>
double value_of(unsigned bits) {
    const unsigned exponent = bits % F::kSign >> F::kMantissaBits;
    const unsigned mantissa = bits % (1u << F::kMantissaBits);
    const int scale =
        static_cast<int>(exponent == 0 ? 1 : exponent) - F::kBias - static_cast<int>(F::kMantissaBits);
    const double magnitude =
        std::ldexp(exponent == 0 ? mantissa : mantissa + (1u << F::kMantissaBits), scale);
    return bits < F::kSign ? magnitude : -magnitude;
}

template <class F>
unsigned char expected_bits(double value, cudaRoundMode rounding) {
    if (std::isnan(value)) return F::kSign - 1;
    const double magnitude = std::fabs(value);
    unsigned below = 0;  // the largest that is not greater
    while (below + 1 < F::kSign && value_of<F>(below + 1) <= magnitude)
        ++below;
    unsigned result = below;
    if (rounding == cudaRoundNearest && below + 1 < F::kSign) {
        const double middle = (value_of<F>(below) + value_of<F>(below + 1)) / 2;
        if (magnitude > middle || (magnitude == middle && below % 2 != 0)) ++result;
    }
    return static_cast<unsigned char>(std::signbit(value) ? result + F::kSign : result);
}

// All numbers of the type, what lies between them, and the neighbours of these.
template <class F>
std::vector<double> inputs() {
    std::vector<double> values = {0.0, 1e-300, 1e300, std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};
    for (unsigned bits = 0; bits < F::kSign; ++bits) {
        const double here = value_of<F>(bits);
        const double next = bits + 1 < F::kSign ? value_of<F>(bits + 1) : 2 * here;
        for (const double value : {here, (here + next) / 2})
            values.insert(values.end(), {value, std::nextafter(value, 0.0), std::nextafter(value, 100.0)});
    }
    const std::size_t count = values.size();
    for (std::size_t i = 0; i < count; ++i)
        values.push_back(-values[i]);
    return values;
}

struct FromDouble {
    unsigned char nearest, down, built;
};
template <class F>
struct RoundDouble {
    __device__ FromDouble operator()(double value) const {
        return {F::from(value, cudaRoundNearest), F::from(value, cudaRoundZero), typename F::Type(value).__x};
    }
};

struct FromOthers {
    unsigned char from_float, from_half, from_bfloat16;
    double as_half, as_bfloat16;
};
template <class F>
struct RoundOthers {
    __device__ FromOthers operator()(float value) const {
        using Type = typename F::Type;
        const __half rounded = __float2half(value);
        const __nv_bfloat16 shortened = __float2bfloat16(value);
        return {Type(value).__x, Type(rounded).__x, Type(shortened).__x, __half2float(rounded),
                __bfloat162float(shortened)};
    }
};

struct Values {
    float from_function, from_float;
    double from_double;
    int to_int;
    unsigned to_unsigned;
    signed char to_char;
    bool to_bool;
};
template <class F>
struct ConvertBack {
    __device__ Values operator()(unsigned char bits) const {
        typename F::Type number;
        number.__x = bits;
        return {F::to_float(bits),        static_cast<float>(number),    static_cast<double>(number),
                static_cast<int>(number), static_cast<unsigned>(number), static_cast<signed char>(number),
                static_cast<bool>(number)};
    }
};

template <class F>
class NarrowFloats : public ::testing::Test {};
using Formats = ::testing::Types<E2m3, E3m2, E2m1>;
TYPED_TEST_SUITE(NarrowFloats, Formats);

TYPED_TEST(NarrowFloats, RoundFromDouble) {
    using F = TypeParam;
    const auto values = inputs<F>();
    const auto got = map_on_device<FromDouble>(RoundDouble<F>{}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(got[i].nearest, expected_bits<F>(values[i], cudaRoundNearest)) << values[i];
        EXPECT_EQ(got[i].down, expected_bits<F>(values[i], cudaRoundZero)) << values[i];
        EXPECT_EQ(got[i].built, got[i].nearest) << values[i];
    }
    EXPECT_EQ(value_of<F>(F::kSign - 1), F::kLargest);
}

TYPED_TEST(NarrowFloats, RoundFromFloatAndHalf) {
    using F = TypeParam;
    std::vector<float> values;
    for (const double value : inputs<F>())
        values.push_back(static_cast<float>(value));
    const auto got = map_on_device<FromOthers>(RoundOthers<F>{}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(got[i].from_float, expected_bits<F>(values[i], cudaRoundNearest)) << values[i];
        EXPECT_EQ(got[i].from_half, expected_bits<F>(got[i].as_half, cudaRoundNearest)) << values[i];
        EXPECT_EQ(got[i].from_bfloat16, expected_bits<F>(got[i].as_bfloat16, cudaRoundNearest)) << values[i];
    }
}

TYPED_TEST(NarrowFloats, ConvertBack) {
    using F = TypeParam;
    std::vector<unsigned char> all;
    for (unsigned bits = 0; bits < 2 * F::kSign; ++bits)
        all.push_back(static_cast<unsigned char>(bits));
    const auto got = map_on_device<Values>(ConvertBack<F>{}, all);
    for (unsigned bits = 0; bits < all.size(); ++bits) {
        const double value = value_of<F>(bits);
        EXPECT_EQ(got[bits].from_function, value);
        EXPECT_EQ(got[bits].from_float, value);
        EXPECT_EQ(std::signbit(got[bits].from_float), bits >= F::kSign);
        EXPECT_EQ(got[bits].from_double, value);
        EXPECT_EQ(got[bits].to_int, static_cast<int>(value));
        EXPECT_EQ(got[bits].to_unsigned, value < 0 ? 0u : static_cast<unsigned>(value));
        EXPECT_EQ(got[bits].to_char, static_cast<signed char>(value));
        EXPECT_EQ(got[bits].to_bool, value != 0);
    }
}

// ---- Several at a time --------------------------------------------------------------------------

__global__ void pack(Checks check) {
    check.equal(static_cast<int>(__nv_fp4x2_e2m1(float2{1.0f, -6.0f}).__x), 0xf2);
    check.equal(static_cast<int>(__nv_cvt_float2_to_fp4x2({0.5f, 3.0f}, __NV_E2M1, cudaRoundNearest)), 0x51);
    check.equal(static_cast<int>(__nv_fp4x4_e2m1(float4{0.5f, 1.0f, 2.0f, -4.0f}).__x), 0xe421);
    check.equal(static_cast<int>(__nv_fp6x2_e2m3(float2{1.0f, -7.5f}).__x), 0x3f08);
    check.equal(static_cast<int>(__nv_cvt_double2_to_fp6x2({28.0, 1.0}, __NV_E3M2, cudaRoundZero)), 0x0c1f);
    check.equal(static_cast<unsigned>(__nv_fp6x4_e3m2(float4{1.0f, 2.0f, -1.0f, 0.0f}).__x), 0x002c100cu);
    check.equal(
        static_cast<int>(__nv_fp4x4_e2m1(__floats2half2_rn(0.5f, 1.0f), __floats2half2_rn(2.0f, -4.0f)).__x),
        0xe421);

    __nv_fp4x4_e2m1 four;
    four.__x = 0xe421;
    const float4 values = static_cast<float4>(four);
    check.equal(values.x, 0.5f);
    check.equal(values.y, 1.0f);
    check.equal(values.z, 2.0f);
    check.equal(values.w, -4.0f);
    __nv_fp6x2_e2m3 pair;
    pair.__x = 0x3f08;
    check.equal(static_cast<float2>(pair).x, 1.0f);
    check.equal(static_cast<float2>(pair).y, -7.5f);
    check.equal(__high2float(static_cast<__half2>(pair)), -7.5f);
    const __half2 halves = __half2(__nv_cvt_fp4x2_to_halfraw2(0xf2, __NV_E2M1));
    check.equal(__low2float(halves), 1.0f);
    check.equal(__high2float(halves), -6.0f);
}
TEST(NarrowFloatPacks, HaveTheFirstNumberInTheLowestBits) {
    run_checks(pack);
}

}  // namespace

#endif

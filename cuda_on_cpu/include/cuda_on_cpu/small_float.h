// Floating-point numbers of 16 bits and fewer: bit-exact conversions from and to double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuda_on_cpu/rounding.h"

namespace cuda_on_cpu {

// The operations on these types are computed in float and rounded to the type afterwards. Float has
// more than twice their digits, so for + - * / and the square root the result equals that of a
// single rounding; only the fused multiply-add needs more care.

// IEEE 754 binary16: __half.
struct Binary16 {
    static constexpr int kExponentBits = 5;
    static constexpr int kMantissaBits = 10;
};

// The upper half of a float: __nv_bfloat16.
struct Bfloat16 {
    static constexpr int kExponentBits = 8;
    static constexpr int kMantissaBits = 7;
};

// 8-bit formats, in pairs for matrices: __nv_fp8_e5m2, which follows IEEE 754, and __nv_fp8_e4m3,
// which uses the encodings of Inf and of all but one NaN for numbers.
struct E5m2 {
    static constexpr int kExponentBits = 5;
    static constexpr int kMantissaBits = 2;
};
struct E4m3 {
    static constexpr int kExponentBits = 4;
    static constexpr int kMantissaBits = 3;
};

template <class Format>
inline constexpr bool kHasInfinity = true;
template <>
inline constexpr bool kHasInfinity<E4m3> = false;

template <class Format>
struct FormatLimits {
    static constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
    static constexpr int kMinExponent = 1 - kBias;  // of a normal number
    static constexpr std::uint16_t kSign = 1u << (Format::kExponentBits + Format::kMantissaBits);
    // The only NaN that a GPU generates.
    static constexpr std::uint16_t kNan = kSign - 1;
    // Larger than every finite number, and the result of an overflow: Inf, or NaN for a format
    // without Inf.
    static constexpr std::uint16_t kInfinity =
        kHasInfinity<Format> ? ((1u << Format::kExponentBits) - 1) << Format::kMantissaBits : kNan;
    static constexpr std::uint16_t kMax = kInfinity - 1;
};

// Whether a magnitude between two representable ones is rounded to the larger one. `rest` is the
// part cut off, and `half` is half a unit in the last place.
constexpr bool rounds_away(Rounding mode, bool negative, bool odd, std::uint64_t rest, std::uint64_t half) {
    switch (mode) {
        case Rounding::kNearest:
            return rest > half || (rest == half && odd);
        case Rounding::kTowardZero:
            return false;
        case Rounding::kUp:
            return rest != 0 && !negative;
        case Rounding::kDown:
            return rest != 0 && negative;
    }
    return false;
}

// The bits of `value` rounded to the given format.
template <class Format>
constexpr std::uint16_t encode(double value, Rounding mode = Rounding::kNearest) {
    using Limits = FormatLimits<Format>;
    constexpr int kDoubleMantissaBits = 52;
    constexpr int kDoubleBias = 1023;
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const bool negative = bits >> 63 != 0;
    const std::uint16_t sign = negative ? Limits::kSign : std::uint16_t{0};
    const int biased_exponent = static_cast<int>(bits >> kDoubleMantissaBits & 0x7ff);
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << kDoubleMantissaBits) - 1);
    if (biased_exponent == 0x7ff) {
        return mantissa != 0 ? Limits::kNan : static_cast<std::uint16_t>(sign | Limits::kInfinity);
    }
    const int exponent = biased_exponent != 0 ? biased_exponent - kDoubleBias : 1 - kDoubleBias;
    if (biased_exponent != 0) mantissa |= std::uint64_t{1} << kDoubleMantissaBits;

    // The last bit kept is worth 2^(exponent - kMantissaBits), for subnormals 2^(kMinExponent -
    // kMantissaBits).
    constexpr int kShiftOutAll = 60;
    const int below_normal = exponent < Limits::kMinExponent ? Limits::kMinExponent - exponent : 0;
    const int wanted_shift = kDoubleMantissaBits - Format::kMantissaBits + below_normal;
    const int shift = wanted_shift < kShiftOutAll ? wanted_shift : kShiftOutAll;
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    std::uint64_t kept = mantissa >> shift;
    const std::uint64_t rest = mantissa & (2 * half - 1);
    if (rounds_away(mode, negative, (kept & 1) != 0, rest, half)) ++kept;

    // A carry out of the mantissa correctly increments the exponent, and the leading bit adds one
    // to the exponent.
    const int exponent_field = below_normal != 0 ? 0 : exponent - Limits::kMinExponent;
    const std::uint64_t magnitude =
        (static_cast<std::uint64_t>(exponent_field) << Format::kMantissaBits) + kept;
    if (magnitude < Limits::kInfinity) return static_cast<std::uint16_t>(sign | magnitude);
    const bool stays_finite = mode == Rounding::kTowardZero || (mode == Rounding::kUp && negative) ||
                              (mode == Rounding::kDown && !negative);
    return static_cast<std::uint16_t>(sign | (stays_finite ? Limits::kMax : Limits::kInfinity));
}

template <class Format>
float decode(std::uint16_t bits) {
    using Limits = FormatLimits<Format>;
    constexpr int kFloatMantissaBits = 23;
    constexpr int kFloatBias = 127;
    const std::uint32_t sign = (bits & Limits::kSign) != 0 ? 0x80000000u : 0u;
    const std::uint32_t magnitude = bits & (Limits::kSign - 1u);
    std::uint32_t result = magnitude << (kFloatMantissaBits - Format::kMantissaBits);
    if (magnitude >= Limits::kInfinity) {
        result |= 0x7f800000u;
    } else if constexpr (Limits::kBias != kFloatBias) {
        if (magnitude >> Format::kMantissaBits != 0) {
            result += static_cast<std::uint32_t>(kFloatBias - Limits::kBias) << kFloatMantissaBits;
        } else {
            constexpr float kUnit = std::bit_cast<float>(
                static_cast<std::uint32_t>(Limits::kMinExponent - Format::kMantissaBits + kFloatBias)
                << kFloatMantissaBits);
            result = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * kUnit);
        }
    }
    return std::bit_cast<float>(sign | result);
}

// Every operation converts from float (to nearest) and back, so these conversions use the
// processor's own instructions where they exist.
template <class Format>
std::uint16_t encode_nearest(float value) {
    return encode<Format>(value);
}

template <>
inline std::uint16_t encode_nearest<Bfloat16>(float value) {
    if (std::isnan(value)) return FormatLimits<Bfloat16>::kNan;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t odd = bits >> 16 & 1u;
    return static_cast<std::uint16_t>((bits + 0x7fffu + odd) >> 16);
}

#if defined(__aarch64__) || (defined(__F16C__) && defined(__clang__))
#define CUDA_ON_CPU_NATIVE_HALF __fp16
#elif defined(__F16C__)
#define CUDA_ON_CPU_NATIVE_HALF _Float16
#endif

#if defined(CUDA_ON_CPU_NATIVE_HALF)
__extension__ using NativeHalf = CUDA_ON_CPU_NATIVE_HALF;
#undef CUDA_ON_CPU_NATIVE_HALF

template <>
inline std::uint16_t encode_nearest<Binary16>(float value) {
    if (std::isnan(value)) return FormatLimits<Binary16>::kNan;
    const auto native = static_cast<NativeHalf>(value);
    return std::bit_cast<std::uint16_t>(native);
}

#if defined(__clang__) || !defined(__F16C__)
template <>
inline float decode<Binary16>(std::uint16_t bits) {
    // With memcpy: clang's __fp16 cannot be the return type of std::bit_cast.
    NativeHalf native;
    std::memcpy(&native, &bits, sizeof native);
    return static_cast<float>(native);
}
#else
// No cast: if a double is made of the float, g++ combines both conversions into one for which there
// is no instruction, only a function that takes twenty times as long.
template <>
inline float decode<Binary16>(std::uint16_t bits) {
    using Eight = short __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps(Eight{static_cast<short>(bits)})[0];
}
#endif
#endif

template <class Format, Rounding mode>
std::uint16_t encode_float(float value) {
    if constexpr (mode == Rounding::kNearest) return encode_nearest<Format>(value);
    return encode<Format>(value, mode);
}

// Converts an integer of up to 64 bits to a double that rounds to every narrower format as the
// integer itself would. Bits beyond the 53 of the mantissa set the last bit instead of being
// dropped ("rounding to odd").
template <class Integer>
constexpr double to_odd_double(Integer value) {
    constexpr int kTooMany = 11;
    const bool negative = value < 0;
    std::uint64_t magnitude = static_cast<std::uint64_t>(value);
    if (negative) magnitude = 0 - magnitude;
    if (magnitude >> 53 != 0) {
        const bool inexact = (magnitude & ((1u << kTooMany) - 1)) != 0;
        magnitude = (magnitude >> kTooMany | (inexact ? 1u : 0u)) << kTooMany;
    }
    const double result = static_cast<double>(magnitude);
    return negative ? -result : result;
}

// a * b + c of small floats, rounded to odd in double. The product is exact. The last bit of the
// sum records whether any bits were lost, so that the final rounding to the format equals a single
// rounding.
inline double fused_multiply_add(double a, double b, double c) {
    const double product = unfused(a * b);
    const double sum = unfused(product + c);
    if (!std::isfinite(sum)) return sum;
    const double part_of_c = unfused(sum - product);
    const double error = unfused(product - unfused(sum - part_of_c)) + unfused(c - part_of_c);
    const bool odd = (std::bit_cast<std::uint64_t>(sum) & 1) != 0;
    if (error == 0.0 || odd) return sum;
    return std::nextafter(
        sum, error > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
}

// Clamps to [0, 1]; NaN gives 0.
template <class Real>
Real saturated(Real value) {
    return value > 0 ? (value < 1 ? value : Real{1}) : Real{0};
}

// Applies the operation to the first elements, then to the second elements.
template <class Pair, class Operation, class... Pairs>
Pair pairwise(Operation operation, Pairs... pairs) {
    return Pair(operation(pairs.x...), operation(pairs.y...));
}

}  // namespace cuda_on_cpu

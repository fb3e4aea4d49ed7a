// Inline PTX: floating-point numbers, comparisons and conversions (PTX ISA, "Floating Point
// Instructions", "Half Precision Floating Point Instructions", "Comparison and Selection
// Instructions", cvt).
//
// Where a GPU approximates (.approx, .full), the result here is at least as exact.
#pragma once

#include "cuda_on_cpu/ptx_integer.h"
#include "cuda_on_cpu/ptx_values.h"
#include "cuda_on_cpu/tensor_core.h"

namespace cuda_on_cpu::ptx::isa {

// ---- Arithmetic --------------------------------------------------------------------------------------------------------

// With .ftz a subnormal number is flushed to 0 with its sign.
template <class T, unsigned F>
__forceinline__ Value<T> flushed(Value<T> value) {
    if constexpr ((F & flag::ftz) != 0 && !std::is_same_v<T, f64>) {
        if (std::fabs(value) < T::kMinNormal) return std::copysign(Value<T>{0}, value);
    }
    return value;
}
// .sat clamps to [0, 1] and turns NaN into 0; .relu turns negative results into 0 and keeps NaN.
template <class T, unsigned F>
__forceinline__ Bits<T> result_of(Value<T> value) {
    if constexpr ((F & flag::sat) != 0) value = saturated(value);
    if constexpr ((F & flag::relu) != 0) value = value > 0 || std::isnan(value) ? value : Value<T>{0};
    const Bits<T> bits = T::bits(value);
    if constexpr ((F & flag::ftz) != 0 && !std::is_same_v<T, f64>)
        return T::bits(flushed<T, F>(T::value(bits)));
    return bits;
}

// operation(operands...) on numbers, or on each element of packed pairs.
template <class T, unsigned F, class Operation, class... Operands>
__forceinline__ Bits<T> compute(Operation operation, Operands... operands) {
    if constexpr (kPair<T>) {
        using E = typename T::Element;
        return of_pairs<T>([&](auto... halves) { return compute<E, F>(operation, halves...); }, operands...);
    } else {
        return result_of<T, F>(rounded<kRounding<F>>(operation, flushed<T, F>(T::value(operands))...));
    }
}

template <class T, unsigned F>
__forceinline__ Bits<T> add_float(Bits<T> a, Bits<T> b) {
    return compute<T, F>([](auto x, auto y) { return x + y; }, a, b);
}
template <class T, unsigned F>
__forceinline__ Bits<T> sub_float(Bits<T> a, Bits<T> b) {
    return compute<T, F>([](auto x, auto y) { return x - y; }, a, b);
}
template <class T, unsigned F>
__forceinline__ Bits<T> mul_float(Bits<T> a, Bits<T> b) {
    return compute<T, F>([](auto x, auto y) { return x * y; }, a, b);
}
template <class T, unsigned F>
__forceinline__ Bits<T> div_float(Bits<T> a, Bits<T> b) {
    return compute<T, F>([](auto x, auto y) { return x / y; }, a, b);
}
template <class T, unsigned F>
__forceinline__ Bits<T> fma(Bits<T> a, Bits<T> b, Bits<T> c) {
    if constexpr (kPair<T>) {
        using E = typename T::Element;
        return of_pairs<T>([](auto x, auto y, auto z) { return fma<E, F>(x, y, z); }, a, b, c);
    } else if constexpr (requires { typename T::Format; }) {
        using Format = typename T::Format;
        const double exact = fused_multiply_add(static_cast<double>(flushed<T, F>(T::value(a))),
                                                static_cast<double>(flushed<T, F>(T::value(b))),
                                                static_cast<double>(flushed<T, F>(T::value(c))));
        return result_of<T, F>(decode<Format>(encode<Format>(exact)));
    } else {
        return compute<T, F>([](auto x, auto y, auto z) { return std::fma(x, y, z); }, a, b, c);
    }
}

// Operations that change only the sign keep the bits of a NaN.
template <class T, unsigned F>
__forceinline__ Bits<T> with_sign(Bits<T> a, Bits<T> sign) {
    constexpr Bits<T> kSign = static_cast<Bits<T>>(Bits<T>{1} << (kBits<T> - 1));
    const Bits<T> magnitude = a & static_cast<Bits<T>>(~kSign);
    const bool flushes = (F & flag::ftz) != 0 && flushed<T, F>(T::value(magnitude)) == 0;
    return static_cast<Bits<T>>((flushes ? Bits<T>{0} : magnitude) | (sign & kSign));
}
template <class T, unsigned F>
__forceinline__ Bits<T> abs_float(Bits<T> a) {
    if constexpr (kPair<T>) {
        using E = typename T::Element;
        return of_pairs<T>([](auto x) { return with_sign<E, F>(x, 0); }, a);
    } else {
        return with_sign<T, F>(a, 0);
    }
}
template <class T, unsigned F>
__forceinline__ Bits<T> neg_float(Bits<T> a) {
    if constexpr (kPair<T>) {
        using E = typename T::Element;
        return of_pairs<T>([](auto x) { return with_sign<E, F>(x, static_cast<Bits<E>>(~x)); }, a);
    } else {
        return with_sign<T, F>(a, static_cast<Bits<T>>(~a));
    }
}
// The second operand's magnitude with the first one's sign.
template <class T>
__forceinline__ Bits<T> copysign(Bits<T> a, Bits<T> b) {
    return with_sign<T, 0>(b, a);
}

// -0 is less than 0. If one operand is NaN, the result is the other one, unless .NaN is given.
template <unsigned F, bool kLess, class Real>
__forceinline__ Real extremum(Real a, Real b) {
    const bool nan = std::isnan(a) || std::isnan(b);
    if (nan && (F & flag::NaN) != 0) return std::numeric_limits<Real>::quiet_NaN();
    Real signs = std::copysign(Real{1}, a) * std::copysign(Real{1}, b);
    if constexpr ((F & flag::xorsign) != 0) {
        a = std::fabs(a);
        b = std::fabs(b);
    }
    Real result = a;
    if (std::isnan(a)) {
        result = b;
    } else if (!nan) {
        const bool b_less = b < a || (b == a && std::signbit(b));
        result = b_less == kLess ? b : a;
    }
    return (F & flag::xorsign) != 0 ? std::copysign(result, signs) : result;
}
template <class T, unsigned F>
__forceinline__ Bits<T> min_float(Bits<T> a, Bits<T> b) {
    return compute<T, F>([](auto x, auto y) { return extremum<F, true>(x, y); }, a, b);
}
template <class T, unsigned F>
__forceinline__ Bits<T> max_float(Bits<T> a, Bits<T> b) {
    return compute<T, F>([](auto x, auto y) { return extremum<F, false>(x, y); }, a, b);
}

template <class T, Compare kClass>
__forceinline__ bool testp(Bits<T> a) {
    const int found = std::fpclassify(T::value(a));
    switch (kClass) {
        case Compare::finite:
            return found != FP_INFINITE && found != FP_NAN;
        case Compare::infinite:
            return found == FP_INFINITE;
        case Compare::number:
            return found != FP_NAN;
        case Compare::notanumber:
            return found == FP_NAN;
        case Compare::normal:
            return found == FP_NORMAL || found == FP_ZERO;
        default:
            return found == FP_SUBNORMAL;
    }
}

// Functions of one number, computed in double where that improves the rounding.
template <class T, unsigned F>
__forceinline__ Bits<T> rcp(Bits<T> a) {
    return compute<T, F>([](auto x) { return 1 / x; }, a);
}
template <class T, unsigned F>
__forceinline__ Bits<T> sqrt(Bits<T> a) {
    return compute<T, F>([](auto x) { return std::sqrt(x); }, a);
}
#define CUDA_ON_CPU_FUNCTION(name, expression)                   \
    template <class T, unsigned F>                               \
    __forceinline__ Bits<T> name(Bits<T> a) {                    \
        return compute<T, F>(                                    \
            [](auto value) {                                     \
                const double x = static_cast<double>(value);     \
                return static_cast<decltype(value)>(expression); \
            },                                                   \
            a);                                                  \
    }
CUDA_ON_CPU_FUNCTION(rsqrt, 1 / std::sqrt(x))
CUDA_ON_CPU_FUNCTION(ex2, std::exp2(x))
CUDA_ON_CPU_FUNCTION(lg2, std::log2(x))
CUDA_ON_CPU_FUNCTION(sin, std::sin(x))
CUDA_ON_CPU_FUNCTION(cos, std::cos(x))
CUDA_ON_CPU_FUNCTION(tanh, std::tanh(x))
#undef CUDA_ON_CPU_FUNCTION

// ---- Comparisons and selection -----------------------------------------------------------------------------------------

// The comparisons with u are also true if an operand is NaN. lo, ls, hi and hs compare as unsigned.
template <class T, Compare kCompare, unsigned F>
__forceinline__ bool holds(Bits<T> bits_a, Bits<T> bits_b) {
    Value<T> a = T::value(bits_a);
    Value<T> b = T::value(bits_b);
    bool nan = false;
    if constexpr (T::kFloat) {
        a = flushed<T, F>(a);
        b = flushed<T, F>(b);
        nan = std::isnan(a) || std::isnan(b);
    }
    switch (kCompare) {
        case Compare::eq:
            return a == b;
        case Compare::ne:
            return a != b && !nan;
        case Compare::lt:
            return a < b;
        case Compare::le:
            return a <= b;
        case Compare::gt:
            return a > b;
        case Compare::ge:
            return a >= b;
        case Compare::lo:
            return bits_a < bits_b;
        case Compare::ls:
            return bits_a <= bits_b;
        case Compare::hi:
            return bits_a > bits_b;
        case Compare::hs:
            return bits_a >= bits_b;
        case Compare::equ:
            return nan || a == b;
        case Compare::neu:
            return nan || a != b;
        case Compare::ltu:
            return nan || a < b;
        case Compare::leu:
            return nan || a <= b;
        case Compare::gtu:
            return nan || a > b;
        case Compare::geu:
            return nan || a >= b;
        case Compare::num:
            return !nan;
        default:
            return nan;
    }
}
template <Op kOp>
__forceinline__ bool combined(bool a, bool b) {
    return kOp == Op::and_ ? a && b : kOp == Op::or_ ? a || b : a != b;
}

template <class T, Compare kCompare, unsigned F>
__forceinline__ bool setp(Bits<T> a, Bits<T> b) {
    return holds<T, kCompare, F>(a, b);
}
template <class T, Compare kCompare, Op kOp, unsigned F>
__forceinline__ bool setp_with(Bits<T> a, Bits<T> b, bool c) {
    return combined<kOp>(holds<T, kCompare, F>(a, b), c);
}
// The second predicate is the negation of the first one; for pairs it is the comparison of the high
// halves.
template <class T, Compare kCompare, unsigned F>
__forceinline__ void setp2(bool& p, bool& q, Bits<T> a, Bits<T> b) {
    if constexpr (kPair<T>) {
        using E = typename T::Element;
        p = holds<E, kCompare, F>(static_cast<Bits<E>>(a), static_cast<Bits<E>>(b));
        q = holds<E, kCompare, F>(static_cast<Bits<E>>(a >> 16), static_cast<Bits<E>>(b >> 16));
    } else {
        p = holds<T, kCompare, F>(a, b);
        q = !p;
    }
}
template <class T, Compare kCompare, Op kOp, unsigned F>
__forceinline__ void setp2_with(bool& p, bool& q, Bits<T> a, Bits<T> b, bool c) {
    const bool result = holds<T, kCompare, F>(a, b);
    p = combined<kOp>(result, c);
    q = combined<kOp>(!result, c);
}

// All bits set, or 1.0.
template <class D>
__forceinline__ Bits<D> truth(bool holds) {
    if constexpr (D::kFloat) return D::bits(holds ? Value<D>{1} : Value<D>{0});
    return holds ? static_cast<Bits<D>>(~Bits<D>{0}) : Bits<D>{0};
}
template <class D, class T, Compare kCompare, unsigned F>
__forceinline__ Bits<D> set(Bits<T> a, Bits<T> b) {
    return truth<D>(holds<T, kCompare, F>(a, b));
}
template <class D, class T, Compare kCompare, Op kOp, unsigned F>
__forceinline__ Bits<D> set_with(Bits<T> a, Bits<T> b, bool c) {
    return truth<D>(combined<kOp>(holds<T, kCompare, F>(a, b), c));
}
template <class T, Compare kCompare, unsigned F>
__forceinline__ Bits<T> set_pair(Bits<T> a, Bits<T> b) {
    using E = typename T::Element;
    return of_pairs<T>([](auto x, auto y) { return truth<E>(holds<E, kCompare, F>(x, y)); }, a, b);
}

template <class T>
__forceinline__ Bits<T> selp(Bits<T> a, Bits<T> b, bool c) {
    return c ? a : b;
}
template <class T, class C>
__forceinline__ Bits<T> slct(Bits<T> a, Bits<T> b, Bits<C> c) {
    return C::value(c) >= 0 ? a : b;
}

// ---- Conversions -------------------------------------------------------------------------------------------------------

template <class T>
inline constexpr bool kSmall = requires {
    typename T::Format;
};

// Rounds a number once, to whatever type it is converted.
template <class D, unsigned F, class Real>
__forceinline__ Bits<D> rounded_to(Real value) {
    if constexpr (kSmall<D> && std::is_same_v<Real, float>) {
        return encode_float<typename D::Format, kRounding<F>>(value);
    } else if constexpr (kSmall<D>) {
        return encode<typename D::Format>(value, kRounding<F>);
    } else if constexpr (std::is_same_v<D, f32> && std::is_same_v<Real, double>) {
        return D::bits(to_float<kRounding<F>>(value));
    } else {
        return D::bits(static_cast<Value<D>>(value));
    }
}

template <class D, class T, unsigned F>
__forceinline__ Bits<D> cvt(Bits<T> bits) {
    constexpr Rounding kMode = kRounding<F>;
    if constexpr (!D::kFloat && !T::kFloat) {
        if constexpr ((F & flag::sat) != 0) return clamped<D>(T::value(bits));
        return static_cast<Bits<D>>(T::value(bits));
    } else if constexpr (!D::kFloat) {
        const auto value = flushed<T, F>(T::value(bits));
        if constexpr (sizeof(Bits<D>) < 4) {
            if (!std::isnan(value)) return clamped<D>(to_integer<std::int32_t, kMode>(value));
        }
        return D::bits(to_integer<Value<D>, kMode>(value));
    } else if constexpr (!T::kFloat) {
        const auto value = T::value(bits);
        Bits<D> result;
        if constexpr (kSmall<D>) {
            result = encode<typename D::Format>(to_odd_double(value), kMode);
        } else {
            result = D::bits(from_integer<Value<D>, kMode>(value));
        }
        if constexpr ((F & flag::sat) != 0) return result_of<D, F>(D::value(result));
        return result;
    } else {
        constexpr bool kToWhole = (F & (flag::rni | flag::rzi | flag::rmi | flag::rpi)) != 0;
        auto value = flushed<T, F>(T::value(bits));
        if constexpr (kToWhole) value = to_whole<kMode>(value);
        Bits<D> result = rounded_to < D, kToWhole ? 0 : F > (value);
        if constexpr (kSmall<D> && (F & flag::satfinite) != 0) {
            using Limits = FormatLimits<typename D::Format>;
            if (std::isinf(D::value(result)))
                result = static_cast<Bits<D>>((result & Limits::kSign) | Limits::kMax);
        }
        if constexpr ((F & (flag::sat | flag::relu | flag::ftz)) != 0)
            return result_of<D, F>(D::value(result));
        return result;
    }
}

// The 13 lowest bits of the result are 0. If two numbers are equally near, .rna takes the one
// further from zero.
template <unsigned F>
__forceinline__ std::uint32_t cvt_tf32(std::uint32_t bits) {
    constexpr std::uint32_t kCut = 0x1fff;
    const float value = std::bit_cast<float>(bits);
    std::uint32_t result = bits;
    if constexpr ((F & flag::rna) != 0) {
        result = to_tf32(value);
    } else if (std::isnan(value)) {
        return 0x7fffffffu & ~kCut;
    } else if ((F & flag::rz) != 0) {
        result &= ~kCut;
    } else if (std::isfinite(value)) {
        result = (bits + kCut / 2 + (bits >> 13 & 1)) & ~kCut;
    }
    const bool overflows = (result & 0x7fffffffu) == 0x7f800000u;
    if ((F & flag::satfinite) != 0 && overflows) result = (bits & 0x80000000u) | 0x7f7fe000u;
    return (F & flag::relu) != 0 && bits >> 31 != 0 ? 0 : result;
}

// Two numbers, the first of them in the high half.
template <class E, unsigned F>
__forceinline__ std::uint32_t to_fp8(float value) {
    using Limits = FormatLimits<E>;
    if ((F & flag::relu) != 0 && value < 0) value = 0;
    const std::uint16_t bits = encode<E>(static_cast<double>(value));
    const bool beyond = (bits & (Limits::kSign - 1)) >= Limits::kInfinity && !std::isnan(value);
    return beyond ? (bits & Limits::kSign) | Limits::kMax : bits;
}
template <class D, unsigned F>
__forceinline__ Bits<D> cvt_pair(std::uint32_t high, std::uint32_t low) {
    if constexpr (kPair<D>) {
        using E = typename D::Element;
        return std::uint32_t{cvt<E, f32, F>(high)} << 16 | cvt<E, f32, F>(low);
    } else {
        using E = typename D::Format;
        return static_cast<Bits<D>>(to_fp8<E, F>(f32::value(high)) << 8 | to_fp8<E, F>(f32::value(low)));
    }
}
template <class D, unsigned F>
__forceinline__ Bits<D> cvt_to_fp8(std::uint32_t halves) {
    using E = typename D::Format;
    const auto part = [&](unsigned shift) {
        return to_fp8<E, F>(f16::value(static_cast<std::uint16_t>(halves >> shift)));
    };
    return static_cast<Bits<D>>(part(16) << 8 | part(0));
}
template <class T, unsigned F>
__forceinline__ std::uint32_t cvt_from_fp8(std::uint16_t bytes) {
    const auto part = [&](unsigned shift) {
        return std::uint32_t{
            result_of<f16, F>(decode<typename T::Format>(static_cast<std::uint8_t>(bytes >> shift)))};
    };
    return part(8) << 16 | part(0);
}

// Saturates both numbers and packs them. cvt_pack_with puts `rest` above them.
template <class D>
__forceinline__ std::uint32_t cvt_pack(std::uint32_t high, std::uint32_t low) {
    return std::uint32_t{clamped<D>(s32::value(high))} << 16 | clamped<D>(s32::value(low));
}
template <class D>
__forceinline__ std::uint32_t cvt_pack_with(std::uint32_t high, std::uint32_t low, std::uint32_t rest) {
    return rest << 16 | std::uint32_t{clamped<D>(s32::value(high))} << 8 | clamped<D>(s32::value(low));
}

}  // namespace cuda_on_cpu::ptx::isa

// The translation of inline PTX: the translator turns each instruction of an asm statement into a
// call of a function in the namespace cuda_on_cpu::ptx::isa (ptx.h). This file has the types and
// modifiers that those functions take as template arguments.
//
// A register is an unsigned integer of its width, and a predicate is a bool. The instruction
// decides how to interpret it.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/rounding.h"
#include "cuda_on_cpu/small_float.h"

namespace cuda_on_cpu::ptx::isa {

// ---- Modifiers ---------------------------------------------------------------------------------------------------------

namespace flag {
inline constexpr unsigned rn = 1u << 0, rz = 1u << 1, rm = 1u << 2, rp = 1u << 3;
inline constexpr unsigned rni = 1u << 4, rzi = 1u << 5, rmi = 1u << 6, rpi = 1u << 7;
inline constexpr unsigned rna = 1u << 8, approx = 1u << 9, full = 1u << 10;
inline constexpr unsigned ftz = 1u << 11, sat = 1u << 12, relu = 1u << 13, satfinite = 1u << 14;
inline constexpr unsigned NaN = 1u << 15, xorsign = 1u << 16, trans = 1u << 17;
inline constexpr unsigned weak = 1u << 18, volatile_ = 1u << 19, relaxed = 1u << 20, mmio = 1u << 21;
inline constexpr unsigned acquire = 1u << 22, release = 1u << 23, acq_rel = 1u << 24;
inline constexpr unsigned ca = 0, cg = 1u << 25, cs = 0, lu = 0, cv = 1u << 26;
}  // namespace flag

enum class Space { generic, global, shared, local, const_ };
enum class Scope { cta, cluster, gpu, gl, sys };
enum class Op { add, min, max, inc, dec, and_, or_, xor_, exch };
enum class Mode { l, r, wrap, clamp, f4e, b4e, rc8, ecl, ecr, rc16, up, down, bfly, idx, all, any, uni };
enum class Compare {
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    lo,
    ls,
    hi,
    hs,
    equ,
    neu,
    ltu,
    leu,
    gtu,
    geu,
    num,
    nan,
    finite,
    infinite,
    number,
    notanumber,
    normal,
    subnormal
};

// The rounding mode among the flags; to nearest if there is none.
template <unsigned F>
inline constexpr Rounding kRounding = (F & (flag::rz | flag::rzi)) != 0 ? Rounding::kTowardZero
                                      : (F&(flag::rm | flag::rmi)) != 0 ? Rounding::kDown
                                      : (F&(flag::rp | flag::rpi)) != 0 ? Rounding::kUp
                                                                        : Rounding::kNearest;

// ---- Types -------------------------------------------------------------------------------------------------------------

// Bits: the type of a register; Value: the type that an instruction computes with; Element: the
// element of a packed type.
template <class Integer>
struct IntegerType {
    static constexpr bool kFloat = false;
    using Value = Integer;
    using Bits = std::make_unsigned_t<Integer>;
    static constexpr Value value(Bits bits) { return static_cast<Value>(bits); }
    static constexpr Bits bits(Value value) { return static_cast<Bits>(value); }
};
struct u8 : IntegerType<std::uint8_t> {};
struct u16 : IntegerType<std::uint16_t> {};
struct u32 : IntegerType<std::uint32_t> {};
struct u64 : IntegerType<std::uint64_t> {};
struct s8 : IntegerType<std::int8_t> {};
struct s16 : IntegerType<std::int16_t> {};
struct s32 : IntegerType<std::int32_t> {};
struct s64 : IntegerType<std::int64_t> {};
struct b8 : u8 {};
struct b16 : u16 {};
struct b32 : u32 {};
struct b64 : u64 {};
struct pred {
    static constexpr bool kFloat = false;
    using Value = bool;
    using Bits = bool;
    static constexpr Value value(Bits bits) { return bits; }
    static constexpr Bits bits(Value value) { return value; }
};

struct f32 {
    static constexpr bool kFloat = true;
    using Value = float;
    using Bits = std::uint32_t;
    static constexpr float kMinNormal = std::numeric_limits<float>::min();
    static Value value(Bits bits) { return std::bit_cast<float>(bits); }
    // As on a GPU, there is only one NaN.
    static Bits bits(Value value) { return std::isnan(value) ? 0x7fffffffu : std::bit_cast<Bits>(value); }
};
struct f64 {
    static constexpr bool kFloat = true;
    using Value = double;
    using Bits = std::uint64_t;
    static Value value(Bits bits) { return std::bit_cast<double>(bits); }
    static Bits bits(Value value) { return std::bit_cast<Bits>(value); }
};

// Numbers of 16 bits are computed in float and rounded once more (small_float.h).
template <class Format_>
struct SmallFloatType {
    using Format = Format_;
    static constexpr bool kFloat = true;
    using Value = float;
    using Bits = std::uint16_t;
    static constexpr float kMinNormal =
        std::bit_cast<float>(static_cast<std::uint32_t>(FormatLimits<Format>::kMinExponent + 127) << 23);
    static Value value(Bits bits) { return decode<Format>(bits); }
    static Bits bits(Value value) { return encode_nearest<Format>(value); }
};
struct f16 : SmallFloatType<Binary16> {};
struct bf16 : SmallFloatType<Bfloat16> {};

template <class Element_>
struct PairType {
    static constexpr bool kFloat = Element_::kFloat;
    using Element = Element_;
    using Bits = std::uint32_t;
};
struct f16x2 : PairType<f16> {};
struct bf16x2 : PairType<bf16> {};
struct u16x2 : PairType<u16> {};
struct s16x2 : PairType<s16> {};

// For matrices, and for conversions.
struct tf32 {};
struct e4m3 {
    using Format = E4m3;
};
struct e5m2 {
    using Format = E5m2;
};
struct e4m3x2 {
    using Format = E4m3;
    using Bits = std::uint16_t;
};
struct e5m2x2 {
    using Format = E5m2;
    using Bits = std::uint16_t;
};

template <class T>
using Bits = typename T::Bits;
template <class T>
using Value = typename T::Value;
template <class T>
inline constexpr bool kPair = requires {
    typename T::Element;
};
template <class T>
inline constexpr unsigned kBits = 8 * sizeof(Bits<T>);

// A list of registers, {%1, %2}.
template <class Word, int kCount>
struct List {
    Word word[kCount];
};

// The registers that an instruction writes later.
template <int kCount>
struct Places {
    void* place[kCount];
};

// ---- Operands of an asm statement ----------------------------------------------------------------------------------------

template <unsigned kBits>
struct WordOf;
template <>
struct WordOf<1> {
    using Type = bool;
};
template <>
struct WordOf<8> {
    using Type = std::uint8_t;
};
template <>
struct WordOf<16> {
    using Type = std::uint16_t;
};
template <>
struct WordOf<32> {
    using Type = std::uint32_t;
};
template <>
struct WordOf<64> {
    using Type = std::uint64_t;
};
template <unsigned kBits>
using Word = typename WordOf<kBits>::Type;

template <char kConstraint>
inline constexpr unsigned kBitsOf = kConstraint == 'h'                         ? 16
                                    : kConstraint == 'r' || kConstraint == 'f' ? 32
                                                                               : 64;
template <char kConstraint, class T>
constexpr void check_operand() {
    constexpr bool kReal = kConstraint == 'f' || kConstraint == 'd';
    constexpr bool kKind = std::is_floating_point_v<T> == kReal && !std::is_class_v<T>;
    static_assert(8 * sizeof(T) == kBitsOf<kConstraint> && kKind,
                  "an operand of asm is not of the type that its constraint says: \"h\" is for integers of "
                  "16 bits, \"r\" of "
                  "32, \"l\" of 64 and pointers, \"f\" for float, \"d\" for double");
}

// By value: an array becomes its address, as does a function.
template <char kConstraint, class T>
__forceinline__ Word<kBitsOf<kConstraint>> read(T operand) {
    check_operand<kConstraint, T>();
    Word<kBitsOf<kConstraint>> word;
    std::memcpy(&word, &operand, sizeof word);
    return word;
}
template <char kConstraint, class T>
__forceinline__ void write(T& operand, Word<kBitsOf<kConstraint>> word) {
    check_operand<kConstraint, std::remove_volatile_t<T>>();
    std::memcpy(const_cast<void*>(static_cast<const volatile void*>(&operand)), &word, sizeof word);
}

// The value of a register that was never written: the same as in fresh device memory.
template <unsigned kBits>
constexpr Word<kBits> undefined() {
    return static_cast<Word<kBits>>(0xfffdfffdfffdfffdull);
}

// Writes a result to a register that is wider than its type: sign-extended or zero-extended.
template <class T, class Word>
__forceinline__ void widen(Word& wide, Bits<T> bits) {
    if constexpr (T::kFloat) {
        wide = bits;
    } else {
        wide = static_cast<Word>(T::value(bits));
    }
}

}  // namespace cuda_on_cpu::ptx::isa

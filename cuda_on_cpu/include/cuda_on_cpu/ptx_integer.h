// Inline PTX: integers and bits (PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision
// Integer Arithmetic Instructions", "Logic and Shift Instructions").
#pragma once

#include "cuda_on_cpu/intrinsics.h"
#include "cuda_on_cpu/ptx_values.h"

namespace cuda_on_cpu::ptx::isa {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

// ---- Arithmetic --------------------------------------------------------------------------------------------------------

// Sums and products wrap, so they are computed in unsigned types. Narrow operands are widened to
// std::uint32_t, because C++ would promote them to `int`.
template <class T>
using Modular = std::conditional_t<(sizeof(Bits<T>) < 4), std::uint32_t, Bits<T>>;

template <class T>
__forceinline__ Bits<T> add(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(Modular<T>{a} + b);
}
template <class T>
__forceinline__ Bits<T> sub(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(Modular<T>{a} - b);
}
template <class T>
__forceinline__ Bits<T> clamped(Wide value) {
    using Limits = std::numeric_limits<Value<T>>;
    if (value > Limits::max()) return T::bits(Limits::max());
    if (value < Limits::min()) return T::bits(Limits::min());
    return T::bits(static_cast<Value<T>>(value));
}
template <class T>
__forceinline__ Bits<T> add_sat(Bits<T> a, Bits<T> b) {
    return clamped<T>(Wide{T::value(a)} + T::value(b));
}
template <class T>
__forceinline__ Bits<T> sub_sat(Bits<T> a, Bits<T> b) {
    return clamped<T>(Wide{T::value(a)} - T::value(b));
}

template <class T>
__forceinline__ Bits<T> mul_lo(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(Modular<T>{a} * b);
}
template <class T>
__forceinline__ Bits<T> mul_hi(Bits<T> a, Bits<T> b) {
    if constexpr (std::is_signed_v<Value<T>>) {
        return static_cast<Bits<T>>((Wide{T::value(a)} * T::value(b)) >> kBits<T>);
    } else {
        return static_cast<Bits<T>>((UnsignedWide{a} * b) >> kBits<T>);
    }
}
template <class W, class T>
__forceinline__ Bits<W> mul_wide(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<W>>(static_cast<Value<W>>(T::value(a)) * static_cast<Value<W>>(T::value(b)));
}
template <class W, class T>
__forceinline__ Bits<W> mad_wide(Bits<T> a, Bits<T> b, Bits<W> c) {
    return add<W>(mul_wide<W, T>(a, b), c);
}
template <class T>
__forceinline__ Bits<T> mad_lo(Bits<T> a, Bits<T> b, Bits<T> c) {
    return add<T>(mul_lo<T>(a, b), c);
}
template <class T>
__forceinline__ Bits<T> mad_hi(Bits<T> a, Bits<T> b, Bits<T> c) {
    return add<T>(mul_hi<T>(a, b), c);
}

// Of the 48-bit product of the low 24 bits: the low 32 bits and the high 32 bits.
template <class T>
__forceinline__ std::int64_t product_of_24(Bits<T> a, Bits<T> b) {
    const auto low = [](Bits<T> x) { return std::int64_t{T::value(x << 8)} >> 8; };
    if constexpr (std::is_signed_v<Value<T>>) return low(a) * low(b);
    return static_cast<std::int64_t>(std::uint64_t{a & 0xffffffu} * (b & 0xffffffu));
}
template <class T>
__forceinline__ Bits<T> mul24_lo(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(product_of_24<T>(a, b));
}
template <class T>
__forceinline__ Bits<T> mul24_hi(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(product_of_24<T>(a, b) >> 16);
}
template <class T>
__forceinline__ Bits<T> mad24_lo(Bits<T> a, Bits<T> b, Bits<T> c) {
    return mul24_lo<T>(a, b) + c;
}

// Division by zero gives all ones as quotient and remainder, as on an H200.
template <class T>
__forceinline__ Bits<T> div(Bits<T> a, Bits<T> b) {
    if (b == 0) return static_cast<Bits<T>>(~Bits<T>{0});
    if constexpr (std::is_signed_v<Value<T>>) {
        if (T::value(b) == -1) return sub<T>(0, a);
    }
    return static_cast<Bits<T>>(T::value(a) / T::value(b));
}
template <class T>
__forceinline__ Bits<T> rem(Bits<T> a, Bits<T> b) {
    if (b == 0) return static_cast<Bits<T>>(~Bits<T>{0});
    if constexpr (std::is_signed_v<Value<T>>) {
        if (T::value(b) == -1) return 0;
    }
    return static_cast<Bits<T>>(T::value(a) % T::value(b));
}
template <class T>
__forceinline__ Bits<T> abs(Bits<T> a) {
    return T::value(a) < 0 ? sub<T>(0, a) : a;
}
template <class T>
__forceinline__ Bits<T> neg(Bits<T> a) {
    return sub<T>(0, a);
}
template <class T>
__forceinline__ Bits<T> min(Bits<T> a, Bits<T> b) {
    return T::value(b) < T::value(a) ? b : a;
}
template <class T>
__forceinline__ Bits<T> max(Bits<T> a, Bits<T> b) {
    return T::value(a) < T::value(b) ? b : a;
}

// result = operation(elements of the pairs...), for each element separately
template <class T, class Operation, class... Pairs>
__forceinline__ std::uint32_t of_pairs(Operation operation, Pairs... pairs) {
    using Half = std::uint16_t;
    const std::uint32_t low = operation(static_cast<Half>(pairs)...);
    const std::uint32_t high = operation(static_cast<Half>(pairs >> 16)...);
    return low | high << 16;
}
template <class T, unsigned F>
__forceinline__ Bits<T> at_least_zero(Bits<T> a) {
    if constexpr ((F & flag::relu) != 0) return T::value(a) < 0 ? Bits<T>{0} : a;
    return a;
}
template <class T, unsigned F>
__forceinline__ Bits<T> min_packed(Bits<T> a, Bits<T> b) {
    if constexpr (kPair<T>) {
        using E = typename T::Element;
        return of_pairs<T>([](Bits<E> x, Bits<E> y) { return at_least_zero<E, F>(min<E>(x, y)); }, a, b);
    } else {
        return at_least_zero<T, F>(min<T>(a, b));
    }
}
template <class T, unsigned F>
__forceinline__ Bits<T> max_packed(Bits<T> a, Bits<T> b) {
    if constexpr (kPair<T>) {
        using E = typename T::Element;
        return of_pairs<T>([](Bits<E> x, Bits<E> y) { return at_least_zero<E, F>(max<E>(x, y)); }, a, b);
    } else {
        return at_least_zero<T, F>(max<T>(a, b));
    }
}

template <class T>
__forceinline__ Bits<T> sad(Bits<T> a, Bits<T> b, Bits<T> c) {
    return add<T>(c, T::value(a) < T::value(b) ? sub<T>(b, a) : sub<T>(a, b));
}

// The bytes of a word, or halves of one and bytes of another, signed or unsigned.
template <class T>
__forceinline__ std::uint32_t byte_of(std::uint32_t word, unsigned i) {
    const std::uint32_t byte = word >> 8 * i & 0xffu;
    return std::is_same_v<T, s32> ? static_cast<std::uint32_t>(static_cast<std::int8_t>(byte)) : byte;
}
template <class T>
__forceinline__ std::uint32_t half_of(std::uint32_t word, unsigned i) {
    const std::uint32_t half = word >> 16 * i & 0xffffu;
    return std::is_same_v<T, s32> ? static_cast<std::uint32_t>(static_cast<std::int16_t>(half)) : half;
}
template <class A, class B>
__forceinline__ std::uint32_t dp4a(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (unsigned i = 0; i < 4; ++i)
        c += byte_of<A>(a, i) * byte_of<B>(b, i);
    return c;
}
template <class A, class B, unsigned kFirst>
__forceinline__ std::uint32_t dp2a(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    for (unsigned i = 0; i < 2; ++i)
        c += half_of<A>(a, i) * byte_of<B>(b, kFirst + i);
    return c;
}

// SIMD lanes of 8 or 16 bits. `c` fills the lanes that a mask leaves out, and no lane is left out
// here; with .add, it is added to the sum of the lanes.
template <unsigned F>
__forceinline__ std::uint32_t vadd4(std::uint32_t a, std::uint32_t b, std::uint32_t) {
    return (F & flag::sat) != 0 ? __vaddus4(a, b) : __vadd4(a, b);
}
template <unsigned F>
__forceinline__ std::uint32_t vadd2(std::uint32_t a, std::uint32_t b, std::uint32_t) {
    return (F & flag::sat) != 0 ? __vaddus2(a, b) : __vadd2(a, b);
}
inline std::uint32_t vabsdiff4(std::uint32_t a, std::uint32_t b, std::uint32_t) {
    return __vabsdiffu4(a, b);
}
inline std::uint32_t vabsdiff2(std::uint32_t a, std::uint32_t b, std::uint32_t) {
    return __vabsdiffu2(a, b);
}
inline std::uint32_t vabsdiff4_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __vsadu4(a, b) + c;
}
inline std::uint32_t vabsdiff2_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __vsadu2(a, b) + c;
}

// ---- Carry -------------------------------------------------------------------------------------------------------------

// The carry flag. It outlives an asm statement, because long numbers are often added by one
// statement per word. No thread yields between such statements.
inline constinit thread_local bool carry = false;

template <class T>
__forceinline__ Bits<T> add_with(Bits<T> a, Bits<T> b, bool carry_in, bool sets) {
    const UnsignedWide sum = UnsignedWide{a} + b + carry_in;
    if (sets) carry = (sum >> kBits<T>) != 0;
    return static_cast<Bits<T>>(sum);
}
// After a subtraction the flag is the borrow.
template <class T>
__forceinline__ Bits<T> sub_with(Bits<T> a, Bits<T> b, bool borrow_in, bool sets) {
    const UnsignedWide difference = UnsignedWide{a} - b - borrow_in;
    if (sets) carry = (difference >> kBits<T>) != 0;
    return static_cast<Bits<T>>(difference);
}
template <class T>
__forceinline__ Bits<T> add_cc(Bits<T> a, Bits<T> b) {
    return add_with<T>(a, b, false, true);
}
template <class T>
__forceinline__ Bits<T> addc(Bits<T> a, Bits<T> b) {
    return add_with<T>(a, b, carry, false);
}
template <class T>
__forceinline__ Bits<T> addc_cc(Bits<T> a, Bits<T> b) {
    return add_with<T>(a, b, carry, true);
}
template <class T>
__forceinline__ Bits<T> sub_cc(Bits<T> a, Bits<T> b) {
    return sub_with<T>(a, b, false, true);
}
template <class T>
__forceinline__ Bits<T> subc(Bits<T> a, Bits<T> b) {
    return sub_with<T>(a, b, carry, false);
}
template <class T>
__forceinline__ Bits<T> subc_cc(Bits<T> a, Bits<T> b) {
    return sub_with<T>(a, b, carry, true);
}
#define CUDA_ON_CPU_MAD(part)                                                   \
    template <class T>                                                          \
    __forceinline__ Bits<T> mad_##part##_cc(Bits<T> a, Bits<T> b, Bits<T> c) {  \
        return add_with<T>(mul_##part<T>(a, b), c, false, true);                \
    }                                                                           \
    template <class T>                                                          \
    __forceinline__ Bits<T> madc_##part(Bits<T> a, Bits<T> b, Bits<T> c) {      \
        return add_with<T>(mul_##part<T>(a, b), c, carry, false);               \
    }                                                                           \
    template <class T>                                                          \
    __forceinline__ Bits<T> madc_##part##_cc(Bits<T> a, Bits<T> b, Bits<T> c) { \
        return add_with<T>(mul_##part<T>(a, b), c, carry, true);                \
    }
CUDA_ON_CPU_MAD(lo)
CUDA_ON_CPU_MAD(hi)
#undef CUDA_ON_CPU_MAD

// ---- Bits --------------------------------------------------------------------------------------------------------------

template <class T>
__forceinline__ Bits<T> and_(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(a & b);
}
template <class T>
__forceinline__ Bits<T> or_(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(a | b);
}
template <class T>
__forceinline__ Bits<T> xor_(Bits<T> a, Bits<T> b) {
    return static_cast<Bits<T>>(a ^ b);
}
template <class T>
__forceinline__ Bits<T> not_(Bits<T> a) {
    if constexpr (std::is_same_v<T, pred>) {
        return !a;
    } else {
        return static_cast<Bits<T>>(~a);
    }
}
template <class T>
__forceinline__ Bits<T> cnot(Bits<T> a) {
    return a == 0 ? 1 : 0;
}

// Amounts beyond the register's width are clamped to that width.
template <class T>
__forceinline__ Bits<T> shl(Bits<T> a, std::uint32_t amount) {
    return amount < kBits<T> ? static_cast<Bits<T>>(Modular<T>{a} << amount) : Bits<T>{0};
}
template <class T>
__forceinline__ Bits<T> shr(Bits<T> a, std::uint32_t amount) {
    if (amount < kBits<T>) return static_cast<Bits<T>>(T::value(a) >> amount);
    return static_cast<Bits<T>>(T::value(a) < 0 ? -1 : 0);
}
// A funnel shift of b:a: left returns the upper word, right the lower one.
template <Mode kDirection, Mode kAmount>
__forceinline__ std::uint32_t shf(std::uint32_t a, std::uint32_t b, std::uint32_t amount) {
    if (kAmount == Mode::wrap) amount &= 31;
    return kDirection == Mode::l ? __funnelshift_lc(a, b, amount) : __funnelshift_rc(a, b, amount);
}

// `length` bits from `position` on. Bits beyond the end of the register, and for signed types those
// above the field, are copies of the field's highest bit.
template <class T>
__forceinline__ Bits<T> bfe(Bits<T> a, std::uint32_t position, std::uint32_t length) {
    constexpr unsigned kLast = kBits<T> - 1;
    position &= 0xff;
    length &= 0xff;
    if (length == 0) return 0;
    const bool sign = std::is_signed_v<Value<T>> &&
                      (a >> (position + length - 1 < kLast ? position + length - 1 : kLast) & 1) != 0;
    Bits<T> result = position <= kLast ? static_cast<Bits<T>>(a >> position) : Bits<T>{0};
    // Bits of the register from `position` on.
    const unsigned own = position <= kLast ? kLast + 1 - position : 0;
    const unsigned kept = length < own ? length : own;
    const Bits<T> mask = kept > kLast ? ~Bits<T>{0} : (Bits<T>{1} << kept) - 1;
    result &= mask;
    return sign ? result | ~mask : result;
}
template <class T>
__forceinline__ Bits<T> bfi(Bits<T> field, Bits<T> into, std::uint32_t position, std::uint32_t length) {
    constexpr unsigned kWidth = kBits<T>;
    position &= 0xff;
    length &= 0xff;
    if (position >= kWidth) return into;
    const Bits<T> mask = (length >= kWidth ? ~Bits<T>{0} : (Bits<T>{1} << length) - 1) << position;
    return (into & ~mask) | (field << position & mask);
}
// Position of the highest bit that differs from the sign; all ones if there is none.
template <class T>
__forceinline__ std::uint32_t bfind(Bits<T> a) {
    if (T::value(a) < 0) a = static_cast<Bits<T>>(~a);
    return a == 0 ? 0xffffffffu : kBits<T> - 1 - static_cast<unsigned>(std::countl_zero(a));
}
template <class T>
__forceinline__ std::uint32_t bfind_shiftamt(Bits<T> a) {
    const std::uint32_t place = bfind<T>(a);
    return place == 0xffffffffu ? place : kBits<T> - 1 - place;
}
template <class T>
__forceinline__ Bits<T> brev(Bits<T> a) {
    if constexpr (sizeof a == 8) return __brevll(a);
    return __brev(static_cast<unsigned>(a));
}
template <class T>
__forceinline__ std::uint32_t clz(Bits<T> a) {
    return static_cast<std::uint32_t>(std::countl_zero(a));
}
template <class T>
__forceinline__ std::uint32_t popc(Bits<T> a) {
    return static_cast<std::uint32_t>(std::popcount(a));
}
inline std::uint32_t fns(std::uint32_t mask, std::uint32_t base, std::uint32_t offset) {
    return __fns(mask, base, static_cast<int>(offset));
}
template <Mode kAmount>
__forceinline__ std::uint32_t bmsk(std::uint32_t position, std::uint32_t length) {
    if (kAmount == Mode::wrap) {
        position &= 31;
        length &= 31;
    }
    const std::uint32_t ones = length >= 32 ? 0xffffffffu : (1u << length) - 1;
    return position >= 32 ? 0 : ones << position;
}
template <class T, Mode kAmount>
__forceinline__ Bits<T> szext(Bits<T> a, std::uint32_t length) {
    if (kAmount == Mode::wrap) length &= 31;
    if (length >= 32) return a;
    return length == 0 ? Bits<T>{0} : shr<T>(a << (32 - length), 32 - length);
}

// Each nibble of the selector selects one of the eight bytes of b:a. If its fourth bit is set, it
// gives eight copies of that byte's sign instead.
__forceinline__ std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t nibble = selector >> 4 * i & 0xfu;
        std::uint32_t byte = static_cast<std::uint32_t>(bytes >> 8 * (nibble & 7)) & 0xffu;
        if ((nibble & 8) != 0) byte = (byte & 0x80u) != 0 ? 0xffu : 0u;
        result |= byte << 8 * i;
    }
    return result;
}
template <Mode kMode>
__forceinline__ std::uint32_t prmt_mode(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    const std::uint32_t s = selector & 3;
    switch (kMode) {
        case Mode::f4e:
            return prmt(a, b, (0x3210u + 0x1111u * s) & 0x7777u);
        case Mode::b4e:
            return prmt(a, b, (s | ((s - 1) & 7) << 4 | ((s - 2) & 7) << 8 | ((s - 3) & 7) << 12));
        case Mode::rc8:
            return prmt(a, b, 0x1111u * s);
        case Mode::ecl:  // byte i, but at least byte s
            return prmt(a, b, s | (s > 1 ? s : 1) << 4 | (s > 2 ? s : 2) << 8 | 3u << 12);
        case Mode::ecr:  // byte i, but at most byte s
            return prmt(a, b, (s < 1 ? s : 1) << 4 | (s < 2 ? s : 2) << 8 | s << 12);
        default:
            return prmt(a, b, (s & 1) != 0 ? 0x3232u : 0x1010u);
    }
}

// Bit i of the table is the result where the bits of a, b and c, read as a three-bit number, are i.
__forceinline__ std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
    std::uint32_t result = 0;
    for (unsigned i = 0; i < 8; ++i) {
        if ((table >> i & 1) != 0)
            result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
    }
    return result;
}

// ---- Moves -------------------------------------------------------------------------------------------------------------

template <class T>
__forceinline__ Bits<T> mov(Bits<T> a) {
    return a;
}
// The first element is in the lowest bits.
template <class T, class Element, int kCount>
__forceinline__ Bits<T> pack(List<Element, kCount> list) {
    std::uint64_t bits = 0;
    for (int i = kCount; i-- > 0;)
        bits = bits << (8 * sizeof(Element)) | list.word[i];
    return static_cast<Bits<T>>(bits);
}
template <class T, class E, int kCount>
__forceinline__ void unpack(Bits<E> (&list)[kCount], Bits<T> bits) {
    for (int i = 0; i < kCount; ++i)
        list[i] = static_cast<Bits<E>>(std::uint64_t{bits} >> kBits<E> * static_cast<unsigned>(i));
}

}  // namespace cuda_on_cpu::ptx::isa

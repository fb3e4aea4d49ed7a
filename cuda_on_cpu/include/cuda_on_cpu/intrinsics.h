// Integer, bit, conversion and cache-hint intrinsics: functions that are one or a few instructions
// on a GPU.
#pragma once

#include <vector_types.h>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda_on_cpu/rounding.h"
#include "cuda_on_cpu/spin_hint.h"

// Declared here: <csignal> would bring names such as stack_t along, which programs may define.
extern "C" int raise(int signal) noexcept;

// ---- Bits ----------------------------------------------------------------------------------------------------------

inline int __popc(unsigned int x) {
    return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
    return std::popcount(x);
}
inline int __clz(int x) {
    return std::countl_zero(static_cast<unsigned int>(x));
}
inline int __clzll(long long x) {
    return std::countl_zero(static_cast<unsigned long long>(x));
}

// Position of the lowest set bit, counted from 1; 0 when there is none.
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}

inline unsigned int __brev(unsigned int x) {
    x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
    return __builtin_bswap32(x);
}

inline unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned int>(x))) << 32 |
           __brev(static_cast<unsigned int>(x >> 32));
}

// The bytes in reverse order: big-endian to little-endian and back.
inline unsigned short __nv_bswap16(unsigned short x) {
    return __builtin_bswap16(x);
}
inline unsigned int __nv_bswap32(unsigned int x) {
    return __builtin_bswap32(x);
}
inline unsigned long long __nv_bswap64(unsigned long long x) {
    return __builtin_bswap64(x);
}

// Position of the offset-th set bit of mask, counted upwards from bit `base` (downwards for a
// negative offset, and bit `base` itself for 0); 0xffffffff when there is none.
inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    const int step = offset < 0 ? -1 : 1;
    int left = offset == 0 ? 1 : offset * step;
    for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
        if ((mask >> bit & 1u) != 0 && --left == 0) return static_cast<unsigned int>(bit);
        if (offset == 0) break;
    }
    return 0xffffffffu;
}

// The lower three bits of each of the selector's four nibbles select one of the eight bytes of y:x.
// (The underlying instruction, PTX's prmt, replicates a byte's sign when the fourth bit is set;
// CUDA clears that bit first.)
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
    unsigned int result = 0;
    for (unsigned int i = 0; i < 4; ++i) {
        const unsigned int source = selector >> (4 * i) & 7u;
        const unsigned int byte = static_cast<unsigned int>(bytes >> (8 * source)) & 0xffu;
        result |= byte << (8 * i);
    }
    return result;
}

// Shifts of the 64-bit number hi:lo. A left shift returns the upper half, a right shift the lower
// half; _lc and _rc clamp the shift at 32, the others take it modulo 32.
inline unsigned int __funnelshift_lc(unsigned int lo, unsigned int hi, unsigned int shift) {
    const std::uint64_t both = static_cast<std::uint64_t>(hi) << 32 | lo;
    return static_cast<unsigned int>(both << (shift < 32 ? shift : 32) >> 32);
}
inline unsigned int __funnelshift_rc(unsigned int lo, unsigned int hi, unsigned int shift) {
    const std::uint64_t both = static_cast<std::uint64_t>(hi) << 32 | lo;
    return static_cast<unsigned int>(both >> (shift < 32 ? shift : 32));
}
inline unsigned int __funnelshift_l(unsigned int lo, unsigned int hi, unsigned int shift) {
    return __funnelshift_lc(lo, hi, shift & 31u);
}
inline unsigned int __funnelshift_r(unsigned int lo, unsigned int hi, unsigned int shift) {
    return __funnelshift_rc(lo, hi, shift & 31u);
}

// ---- Integer arithmetic --------------------------------------------------------------------------------------------

inline int __mulhi(int x, int y) {
    return static_cast<int>((static_cast<std::int64_t>(x) * y) >> 32);
}
inline unsigned int __umulhi(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((static_cast<std::uint64_t>(x) * y) >> 32);
}
inline long long __mul64hi(long long x, long long y) {
    __extension__ using Wide = __int128;
    return static_cast<long long>((static_cast<Wide>(x) * y) >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<unsigned long long>((static_cast<Wide>(x) * y) >> 64);
}

// Low 32 bits of the product of the low 24 bits.
inline unsigned int __umul24(unsigned int x, unsigned int y) {
    return (x & 0xffffffu) * (y & 0xffffffu);
}
inline int __mul24(int x, int y) {
    const auto low_24 = [](int value) {
        return static_cast<std::int64_t>(static_cast<int>(static_cast<unsigned int>(value) << 8) >> 8);
    };
    return static_cast<int>(low_24(x) * low_24(y));
}

// |x - y| + z
inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
    return (x > y ? x - y : y - x) + z;
}
inline unsigned int __sad(int x, int y, unsigned int z) {
    const unsigned int difference = static_cast<unsigned int>(x) - static_cast<unsigned int>(y);
    return (x > y ? difference : 0u - difference) + z;
}

// Averages that do not overflow: __hadd rounds down, __rhadd up.
inline int __hadd(int x, int y) {
    return static_cast<int>((static_cast<std::int64_t>(x) + y) >> 1);
}
inline int __rhadd(int x, int y) {
    return static_cast<int>((static_cast<std::int64_t>(x) + y + 1) >> 1);
}
inline unsigned int __uhadd(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((static_cast<std::uint64_t>(x) + y) >> 1);
}
inline unsigned int __urhadd(unsigned int x, unsigned int y) {
    return static_cast<unsigned int>((static_cast<std::uint64_t>(x) + y + 1) >> 1);
}

// ---- Small integers packed in a word -------------------------------------------------------------------------------

namespace cuda_on_cpu {

template <class Lane>
constexpr int kLanes = sizeof(unsigned int) / sizeof(Lane);

template <class Lane>
int lane(unsigned int word, int index) {
    return static_cast<Lane>(word >> (8 * static_cast<int>(sizeof(Lane)) * index));
}

// result lane = operation(lanes of the words...), wrapped to the lane's width
template <class Lane, class Operation, class... Words>
unsigned int lanewise(Operation operation, Words... words) {
    unsigned int result = 0;
    for (int i = 0; i < kLanes<Lane>; ++i) {
        const auto bits = static_cast<std::make_unsigned_t<Lane>>(operation(lane<Lane>(words, i)...));
        result |= static_cast<unsigned int>(bits) << (8 * static_cast<int>(sizeof(Lane)) * i);
    }
    return result;
}

template <class Lane>
int saturate_to(int value) {
    constexpr int kMin = std::numeric_limits<Lane>::min();
    constexpr int kMax = std::numeric_limits<Lane>::max();
    return value < kMin ? kMin : value > kMax ? kMax : value;
}

template <class Lane>
unsigned int sum_of_differences(unsigned int a, unsigned int b) {
    unsigned int sum = 0;
    for (int i = 0; i < kLanes<Lane>; ++i) {
        const int difference = lane<Lane>(a, i) - lane<Lane>(b, i);
        sum += static_cast<unsigned int>(difference < 0 ? -difference : difference);
    }
    return sum;
}

// sum + products of a's lanes, which are `width` bits apart from bit 0 of a, and b's bytes from
// `first_byte` on; wraps
template <class LaneA, class LaneB>
unsigned int dot_product(unsigned int a, unsigned int b, int first_byte, unsigned int sum) {
    for (int i = 0; i < kLanes<LaneA>; ++i) {
        sum += static_cast<unsigned int>(lane<LaneA>(a, i) * lane<LaneB>(b, first_byte + i));
    }
    return sum;
}

inline unsigned int word_of(int value) {
    return static_cast<unsigned int>(value);
}
inline unsigned int word_of(unsigned int value) {
    return value;
}
template <class Vector>
requires(std::is_class_v<Vector> &&
         sizeof(Vector) == sizeof(unsigned int)) unsigned int word_of(Vector vector) {
    return std::bit_cast<unsigned int>(vector);
}

}  // namespace cuda_on_cpu

// __dp4a: four bytes by four bytes. __dp2a: a's two halves by b's two low (_lo) or high (_hi)
// bytes.
#define CUDA_ON_CPU_DOT(Sum, Bytes, Byte, Halves, Half)                                        \
    inline Sum __dp4a(Bytes a, Bytes b, Sum c) {                                               \
        using namespace cuda_on_cpu;                                                           \
        return static_cast<Sum>(                                                               \
            dot_product<Byte, Byte>(word_of(a), word_of(b), 0, static_cast<unsigned int>(c))); \
    }                                                                                          \
    inline Sum __dp2a_lo(Halves a, Bytes b, Sum c) {                                           \
        using namespace cuda_on_cpu;                                                           \
        return static_cast<Sum>(                                                               \
            dot_product<Half, Byte>(word_of(a), word_of(b), 0, static_cast<unsigned int>(c))); \
    }                                                                                          \
    inline Sum __dp2a_hi(Halves a, Bytes b, Sum c) {                                           \
        using namespace cuda_on_cpu;                                                           \
        return static_cast<Sum>(                                                               \
            dot_product<Half, Byte>(word_of(a), word_of(b), 2, static_cast<unsigned int>(c))); \
    }

CUDA_ON_CPU_DOT(int, int, std::int8_t, int, std::int16_t)
CUDA_ON_CPU_DOT(unsigned int, unsigned int, std::uint8_t, unsigned int, std::uint16_t)
CUDA_ON_CPU_DOT(int, char4, std::int8_t, short2, std::int16_t)
CUDA_ON_CPU_DOT(unsigned int, uchar4, std::uint8_t, ushort2, std::uint16_t)
#undef CUDA_ON_CPU_DOT

// One lane-wise function of one or two words.
#define CUDA_ON_CPU_LANES_1(name, Lane, expression)                                   \
    inline unsigned int name(unsigned int word_a) {                                   \
        return cuda_on_cpu::lanewise<Lane>([](int a) { return expression; }, word_a); \
    }
#define CUDA_ON_CPU_LANES_2(name, Lane, expression)                                                  \
    inline unsigned int name(unsigned int word_a, unsigned int word_b) {                             \
        return cuda_on_cpu::lanewise<Lane>([](int a, int b) { return expression; }, word_a, word_b); \
    }
// A true comparison sets all bits of the lane (__vcmp) or returns 1 (__vset).
#define CUDA_ON_CPU_LANES_COMPARE(name, Lane, condition)          \
    CUDA_ON_CPU_LANES_2(__vcmp##name, Lane, (condition) ? -1 : 0) \
    CUDA_ON_CPU_LANES_2(__vset##name, Lane, (condition) ? 1 : 0)

// n lanes of the type Signed or Unsigned. A final s or u means signed or unsigned; ss or us, with
// saturation. Averages round halves away from zero.
#define CUDA_ON_CPU_LANES(n, Signed, Unsigned)                                                 \
    CUDA_ON_CPU_LANES_1(__vabs##n, Signed, a < 0 ? -a : a)                                     \
    CUDA_ON_CPU_LANES_1(__vabsss##n, Signed, cuda_on_cpu::saturate_to<Signed>(a < 0 ? -a : a)) \
    CUDA_ON_CPU_LANES_1(__vneg##n, Signed, -a)                                                 \
    CUDA_ON_CPU_LANES_1(__vnegss##n, Signed, cuda_on_cpu::saturate_to<Signed>(-a))             \
    CUDA_ON_CPU_LANES_2(__vadd##n, Unsigned, a + b)                                            \
    CUDA_ON_CPU_LANES_2(__vaddss##n, Signed, cuda_on_cpu::saturate_to<Signed>(a + b))          \
    CUDA_ON_CPU_LANES_2(__vaddus##n, Unsigned, cuda_on_cpu::saturate_to<Unsigned>(a + b))      \
    CUDA_ON_CPU_LANES_2(__vsub##n, Unsigned, a - b)                                            \
    CUDA_ON_CPU_LANES_2(__vsubss##n, Signed, cuda_on_cpu::saturate_to<Signed>(a - b))          \
    CUDA_ON_CPU_LANES_2(__vsubus##n, Unsigned, cuda_on_cpu::saturate_to<Unsigned>(a - b))      \
    CUDA_ON_CPU_LANES_2(__vavgs##n, Signed, (a + b + (a + b >= 0)) >> 1)                       \
    CUDA_ON_CPU_LANES_2(__vavgu##n, Unsigned, (a + b + 1) >> 1)                                \
    CUDA_ON_CPU_LANES_2(__vhaddu##n, Unsigned, (a + b) >> 1)                                   \
    CUDA_ON_CPU_LANES_2(__vmins##n, Signed, a < b ? a : b)                                     \
    CUDA_ON_CPU_LANES_2(__vminu##n, Unsigned, a < b ? a : b)                                   \
    CUDA_ON_CPU_LANES_2(__vmaxs##n, Signed, a > b ? a : b)                                     \
    CUDA_ON_CPU_LANES_2(__vmaxu##n, Unsigned, a > b ? a : b)                                   \
    CUDA_ON_CPU_LANES_2(__vabsdiffs##n, Signed, a > b ? a - b : b - a)                         \
    CUDA_ON_CPU_LANES_2(__vabsdiffu##n, Unsigned, a > b ? a - b : b - a)                       \
    CUDA_ON_CPU_LANES_COMPARE(eq##n, Unsigned, a == b)                                         \
    CUDA_ON_CPU_LANES_COMPARE(ne##n, Unsigned, a != b)                                         \
    CUDA_ON_CPU_LANES_COMPARE(gts##n, Signed, a > b)                                           \
    CUDA_ON_CPU_LANES_COMPARE(gtu##n, Unsigned, a > b)                                         \
    CUDA_ON_CPU_LANES_COMPARE(ges##n, Signed, a >= b)                                          \
    CUDA_ON_CPU_LANES_COMPARE(geu##n, Unsigned, a >= b)                                        \
    CUDA_ON_CPU_LANES_COMPARE(lts##n, Signed, a < b)                                           \
    CUDA_ON_CPU_LANES_COMPARE(ltu##n, Unsigned, a < b)                                         \
    CUDA_ON_CPU_LANES_COMPARE(les##n, Signed, a <= b)                                          \
    CUDA_ON_CPU_LANES_COMPARE(leu##n, Unsigned, a <= b)                                        \
    inline unsigned int __vsads##n(unsigned int a, unsigned int b) {                           \
        return cuda_on_cpu::sum_of_differences<Signed>(a, b);                                  \
    }                                                                                          \
    inline unsigned int __vsadu##n(unsigned int a, unsigned int b) {                           \
        return cuda_on_cpu::sum_of_differences<Unsigned>(a, b);                                \
    }

CUDA_ON_CPU_LANES(2, std::int16_t, std::uint16_t)
CUDA_ON_CPU_LANES(4, std::int8_t, std::uint8_t)
#undef CUDA_ON_CPU_LANES
#undef CUDA_ON_CPU_LANES_COMPARE
#undef CUDA_ON_CPU_LANES_2
#undef CUDA_ON_CPU_LANES_1

// ---- Bit casts -----------------------------------------------------------------------------------------------------

inline int __float_as_int(float x) {
    return std::bit_cast<int>(x);
}
inline unsigned int __float_as_uint(float x) {
    return std::bit_cast<unsigned int>(x);
}
inline float __int_as_float(int x) {
    return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned int x) {
    return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
    return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
    return std::bit_cast<double>(x);
}
inline int __double2hiint(double x) {
    return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 32);
}
inline int __double2loint(double x) {
    return static_cast<int>(std::bit_cast<std::uint64_t>(x));
}
inline double __hiloint2double(int hi, int lo) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned int>(hi)) << 32 |
                                 static_cast<unsigned int>(lo));
}

// ---- Conversions with a rounding mode ------------------------------------------------------------------------------

#define CUDA_ON_CPU_CONVERT(suffix, Name, Integer, mode)                          \
    inline Integer __float2##Name##_##suffix(float x) {                           \
        return cuda_on_cpu::to_integer<Integer, cuda_on_cpu::Rounding::mode>(x);  \
    }                                                                             \
    inline Integer __double2##Name##_##suffix(double x) {                         \
        return cuda_on_cpu::to_integer<Integer, cuda_on_cpu::Rounding::mode>(x);  \
    }                                                                             \
    inline float __##Name##2float_##suffix(Integer x) {                           \
        return cuda_on_cpu::from_integer<float, cuda_on_cpu::Rounding::mode>(x);  \
    }                                                                             \
    inline double __##Name##2double_##suffix(Integer x) {                         \
        return cuda_on_cpu::from_integer<double, cuda_on_cpu::Rounding::mode>(x); \
    }
#define CUDA_ON_CPU_CONVERT_ALL(suffix, mode)                         \
    CUDA_ON_CPU_CONVERT(suffix, int, int, mode)                       \
    CUDA_ON_CPU_CONVERT(suffix, uint, unsigned int, mode)             \
    CUDA_ON_CPU_CONVERT(suffix, ll, long long, mode)                  \
    CUDA_ON_CPU_CONVERT(suffix, ull, unsigned long long, mode)        \
    inline float __double2float_##suffix(double x) {                  \
        return cuda_on_cpu::to_float<cuda_on_cpu::Rounding::mode>(x); \
    }

CUDA_ON_CPU_CONVERT_ALL(rn, kNearest)
CUDA_ON_CPU_CONVERT_ALL(rz, kTowardZero)
CUDA_ON_CPU_CONVERT_ALL(ru, kUp)
CUDA_ON_CPU_CONVERT_ALL(rd, kDown)
#undef CUDA_ON_CPU_CONVERT_ALL
#undef CUDA_ON_CPU_CONVERT

// ---- Loads and stores with a hint for the cache: plain accesses, a CPU's cache takes no hints -----------------------

template <class T>
T __ldg(const T* address) {
    return *address;
}
template <class T>
T __ldcg(const T* address) {
    return *address;
}
template <class T>
T __ldca(const T* address) {
    return *address;
}
template <class T>
T __ldcs(const T* address) {
    return *address;
}
template <class T>
T __ldlu(const T* address) {
    return *address;
}

// Reloads what another thread may have written: the load of a waiting loop.
template <class T>
T __ldcv(const T* address) {
    cuda_on_cpu::spin_hint();
    return *address;
}

template <class T>
void __stwb(T* address, std::type_identity_t<T> value) {
    *address = value;
}
template <class T>
void __stcg(T* address, std::type_identity_t<T> value) {
    *address = value;
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value) {
    *address = value;
}
template <class T>
void __stwt(T* address, std::type_identity_t<T> value) {
    *address = value;
}

// ---- Hints ---------------------------------------------------------------------------------------------------------

inline void __assume(bool condition) {
    if (!condition) __builtin_unreachable();
}

#if !defined(__clang__)  // has it built in
inline void __builtin_assume(bool condition) {
    __assume(condition);
}
#endif

// Yields. The time, in nanoseconds, is ignored; on a GPU, too, it is only a hint.
inline void __nanosleep(unsigned int) {
    cuda_on_cpu::spin_hint();
}

inline void __brkpt() {
    constexpr int kTrap = 5;  // SIGTRAP
    raise(kTrap);
}
inline void __prof_trigger(int) {}

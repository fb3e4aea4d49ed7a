// Inline PTX: what instructions do, against plain C++ on random words and on those at the edges.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "on_device.cuh"

namespace {

// ---- Many instructions on many operands ---------------------------------------------------------
//
// A list names instructions and, for each, what is expected of the operands a, b and c.

template <class In>
struct Operands {
    In a, b, c;
};

std::vector<std::uint64_t> interesting_words(std::size_t count) {
    std::vector<std::uint64_t> words = {
        0,          1,          2,          3,          4,          7,          8,          15,
        16,         30,         31,         32,         33,         63,         64,         65,
        127,        128,        255,        256,        0x7fff,     0x8000,     0xffff,     0x10000,
        0x7fffff,   0x7f800000, 0x7fc00000, 0x7fffffff, 0x80000000, 0x80000001, 0x3f800000, 0xbf800000,
        0x00800000, 0x007fffff, 0xffffffff, ~0ull,      1ull << 32, 1ull << 63, ~0ull >> 1, 0xfffffffeull};
    for (const std::uint32_t word : random_words(2 * (count - words.size()))) {
        if (words.size() == count) break;
        words.push_back(words.size() % 2 == 0 ? std::uint64_t{word} << 32 | word * 2654435761u : word);
    }
    return words;
}

// Pairs of interesting words, with a third at random.
template <class In>
std::vector<Operands<In>> operands() {
    const std::vector<std::uint64_t> words = interesting_words(64);
    std::vector<Operands<In>> result;
    std::size_t next = 0;
    for (const std::uint64_t a : words) {
        for (const std::uint64_t b : words)
            result.push_back(
                {static_cast<In>(a), static_cast<In>(b), static_cast<In>(words[next++ * 37 % words.size()])});
    }
    return result;
}

using Word = std::uint32_t;
using Long = std::uint64_t;

// A NaN is a NaN.
bool same(float got, float expected) {
    return (std::isnan(got) && std::isnan(expected)) ||
           std::bit_cast<Word>(got) == std::bit_cast<Word>(expected);
}
bool same(Word got, Word expected) {
    return got == expected;
}
bool same(Long got, Long expected) {
    return got == expected;
}

#define PTX_KERNEL_ENTRY(text, expected)                                   \
    {                                                                      \
        Out d;                                                             \
        asm volatile(text : PTX_OUT(d) : PTX_IN(a), PTX_IN(b), PTX_IN(c)); \
        out[k++] = d;                                                      \
    }
#define PTX_HOST_ENTRY(text, value)                                                                   \
    for (std::size_t i = 0, reported = 0; i < inputs.size() && reported < 3; ++i) {                   \
        [[maybe_unused]] const In a = convert<In>(inputs[i].a), b = convert<In>(inputs[i].b),         \
                                  c = convert<In>(inputs[i].c);                                       \
        const Out expected = static_cast<Out>(value), got = outputs[i * kCount + k];                  \
        if (!same(got, expected)) {                                                                   \
            ++reported;                                                                               \
            ADD_FAILURE() << text << " of " << std::hex << inputs[i].a << ", " << inputs[i].b << ", " \
                          << inputs[i].c << ": got " << got << ", expected " << expected;             \
        }                                                                                             \
    }                                                                                                 \
    ++k;
#define PTX_COUNT_ENTRY(text, expected) +1

template <class To, class From>
__host__ __device__ To convert(From word) {
    if constexpr (std::is_same_v<To, float>) {
        To value;
        std::memcpy(&value, &word, sizeof value);
        return value;
    } else {
        return static_cast<To>(word);
    }
}

// LIST of instructions from registers of the type In_, which hold the bits of Bits_, to Out_.
#define PTX_TEST(name, LIST, Bits_, In_, Out_)                                                     \
    __global__ void name##_kernel(const Operands<Bits_>* in, Out_* out, std::size_t count) {       \
        using Out = Out_;                                                                          \
        const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;                  \
        if (i >= count) return;                                                                    \
        const In_ a = convert<In_>(in[i].a), b = convert<In_>(in[i].b), c = convert<In_>(in[i].c); \
        int k = 0;                                                                                 \
        out += i * (0 LIST(PTX_COUNT_ENTRY));                                                      \
        LIST(PTX_KERNEL_ENTRY)                                                                     \
    }                                                                                              \
    TEST(Ptx, name) {                                                                              \
        using Out = Out_;                                                                          \
        using In = In_;                                                                            \
        constexpr std::size_t kCount = 0 LIST(PTX_COUNT_ENTRY);                                    \
        const auto inputs = operands<Bits_>();                                                     \
        DeviceVector<Operands<Bits_>> device_inputs(inputs);                                       \
        DeviceVector<Out> device_outputs(inputs.size() * kCount);                                  \
        name##_kernel<<<static_cast<unsigned>((inputs.size() + 127) / 128), 128>>>(                \
            device_inputs.data(), device_outputs.data(), inputs.size());                           \
        const std::vector<Out> outputs = device_outputs.to_host();                                 \
        std::size_t k = 0;                                                                         \
        LIST(PTX_HOST_ENTRY)                                                                       \
    }

// ---- Integers of 32 bits ------------------------------------------------------------------------

int s(Word a) {
    return static_cast<int>(a);
}
long long wide(Word a) {
    return static_cast<int>(a);
}
Word clamp_s(long long value, long long low, long long high) {
    return static_cast<Word>(std::min(std::max(value, low), high));
}
Word shift_left(Word a, Word amount) {
    return amount > 31 ? 0 : a << amount;
}
Word shift_right(Word a, Word amount) {
    return amount > 31 ? 0 : a >> amount;
}
Word shift_right_signed(Word a, Word amount) {
    return static_cast<Word>(wide(a) >> std::min(amount, 32u));
}
// As the PTX ISA defines them, bit by bit.
template <class Bits>
Bits extract(Bits a, Word position, Word length, bool is_signed) {
    const Word last = 8 * sizeof a - 1;
    position &= 255;
    length &= 255;
    const Bits sign = is_signed && length > 0 ? a >> std::min(position + length - 1, last) & 1 : 0;
    Bits result = 0;
    for (Word i = 0; i <= last; ++i)
        result |= (i < length && position + i <= last ? a >> (position + i) & 1 : sign) << i;
    return result;
}
template <class Bits>
Bits insert(Bits field, Bits into, Word position, Word length) {
    const Word last = 8 * sizeof into - 1;
    position &= 255;
    length &= 255;
    for (Word i = 0; i < length && position + i <= last; ++i) {
        into &= ~(Bits{1} << (position + i));
        into |= (field >> i & 1) << (position + i);
    }
    return into;
}
template <class Bits>
Word highest(Bits a, bool is_signed) {
    const Word last = 8 * sizeof a - 1;
    if (is_signed && (a >> last & 1) != 0) a = ~a;
    for (Word i = last + 1; i-- > 0;) {
        if ((a >> i & 1) != 0) return i;
    }
    return ~0u;
}
template <class Bits>
Bits reversed(Bits a) {
    Bits result = 0;
    for (Word i = 0; i < 8 * sizeof a; ++i)
        result |= (a >> i & 1) << (8 * sizeof a - 1 - i);
    return result;
}
Word byte(Word a, Word b, Word i) {
    return (i < 4 ? a >> 8 * i : b >> 8 * (i - 4)) & 255;
}
Word permuted(Word a, Word b, Word selector) {
    Word result = 0;
    for (Word i = 0; i < 4; ++i) {
        const Word nibble = selector >> 4 * i & 15, chosen = byte(a, b, nibble & 7);
        result |= (nibble > 7 ? (chosen > 127 ? 255 : 0) : chosen) << 8 * i;
    }
    return result;
}
// Tables of the PTX ISA: which bytes, for each selector, the highest first.
Word permuted_by_table(Word a, Word b, Word selector, const char* table) {
    Word result = 0;
    for (Word i = 0; i < 4; ++i)
        result = result << 8 | byte(a, b, static_cast<Word>(table[5 * (selector & 3) + i] - '0'));
    return result;
}
template <class A, class B>
Word dot4(Word a, Word b, Word c) {
    for (Word i = 0; i < 4; ++i)
        c += static_cast<Word>(static_cast<A>(a >> 8 * i) * static_cast<B>(b >> 8 * i));
    return c;
}
Word all_ones(bool holds) {
    return holds ? ~0u : 0;
}

#define WORDS(X)                                                                                            \
    X("add.u32 %0, %1, %2;", a + b)                                                                         \
    X("add.sat.s32 %0, %1, %2;", clamp_s(wide(a) + wide(b), INT32_MIN, INT32_MAX))                          \
    X("sub.s32 %0, %1, %2;", a - b)                                                                         \
    X("sub.sat.s32 %0, %1, %2;", clamp_s(wide(a) - wide(b), INT32_MIN, INT32_MAX))                          \
    X("mul.lo.s32 %0, %1, %2;", a* b)                                                                       \
    X("mul.hi.s32 %0, %1, %2;", (wide(a) * wide(b)) >> 32)                                                  \
    X("mul.hi.u32 %0, %1, %2;", (Long{a} * b) >> 32)                                                        \
    X("mul24.lo.u32 %0, %1, %2;", (a & 0xffffff) * (b & 0xffffff))                                          \
    X("mul24.hi.s32 %0, %1, %2;", ((Long)(wide(a << 8) >> 8) * (Long)(wide(b << 8) >> 8)) >> 16)            \
    X("mad.lo.u32 %0, %1, %2, %3;", a* b + c)                                                               \
    X("mad.hi.s32 %0, %1, %2, %3;", static_cast<Word>((wide(a) * wide(b)) >> 32) + c)                       \
    X("div.u32 %0, %1, %2;", b == 0 ? ~0u : a / b)                                                          \
    X("rem.s32 %0, %1, %2;", b == 0 ? ~0u : wide(a) % wide(b))                                              \
    X("abs.s32 %0, %1;", s(a) < 0 ? 0 - a : a)                                                              \
    X("neg.s32 %0, %1;", 0 - a)                                                                             \
    X("min.s32 %0, %1, %2;", std::min(s(a), s(b)))                                                          \
    X("max.u32 %0, %1, %2;", std::max(a, b))                                                                \
    X("sad.s32 %0, %1, %2, %3;", c + static_cast<Word>(s(a) < s(b) ? b - a : a - b))                        \
    X("sad.u32 %0, %1, %2, %3;", c + (a < b ? b - a : a - b))                                               \
    X("not.b32 %0, %1;", ~a)                                                                                \
    X("cnot.b32 %0, %1;", a == 0)                                                                           \
    X("and.b32 %0, %1, %2;", a& b)                                                                          \
    X("or.b32 %0, %1, 0xf0;", a | 0xf0)                                                                     \
    X("xor.b32 %0, %1, -1;", ~a)                                                                            \
    X("shl.b32 %0, %1, %2;", shift_left(a, b))                                                              \
    X("shr.u32 %0, %1, %2;", shift_right(a, b))                                                             \
    X("shr.s32 %0, %1, %2;", shift_right_signed(a, b))                                                      \
    X("shf.l.wrap.b32 %0, %1, %2, %3;", (Long{b} << 32 | a) << (c & 31) >> 32)                              \
    X("shf.r.clamp.b32 %0, %1, %2, %3;", (Long{b} << 32 | a) >> std::min(c, 32u))                           \
    X("shf.l.clamp.b32 %0, %1, %2, %3;", c > 31 ? a : (Long{b} << 32 | a) << c >> 32)                       \
    X("shf.r.wrap.b32 %0, %1, %2, %3;", (Long{b} << 32 | a) >> (c & 31))                                    \
    X("bfe.u32 %0, %1, %2, %3;", extract(a, b, c, false))                                                   \
    X("bfe.s32 %0, %1, %2, %3;", extract(a, b, c, true))                                                    \
    X("bfi.b32 %0, %1, 0x12345678, %2, %3;", insert(a, Word{0x12345678}, b, c))                             \
    X("bfind.u32 %0, %1;", highest(a, false))                                                               \
    X("bfind.s32 %0, %1;", highest(a, true))                                                                \
    X("bfind.shiftamt.u32 %0, %1;", highest(a, false) == ~0u ? ~0u : 31 - highest(a, false))                \
    X("brev.b32 %0, %1;", reversed(a))                                                                      \
    X("clz.b32 %0, %1;", std::countl_zero(a))                                                               \
    X("popc.b32 %0, %1;", std::popcount(a))                                                                 \
    X("bmsk.clamp.b32 %0, %1, %2;", shift_left(b > 31 ? ~0u : (1u << b) - 1, a))                            \
    X("szext.clamp.s32 %0, %1, %2;", extract(a, 0, std::min(b, 32u), true))                                 \
    X("prmt.b32 %0, %1, %2, %3;", permuted(a, b, c))                                                        \
    X("prmt.b32.f4e %0, %1, %2, %3;", permuted_by_table(a, b, c, "3210 4321 5432 6543"))                    \
    X("prmt.b32.b4e %0, %1, %2, %3;", permuted_by_table(a, b, c, "5670 6701 7012 0123"))                    \
    X("prmt.b32.rc8 %0, %1, %2, %3;", permuted_by_table(a, b, c, "0000 1111 2222 3333"))                    \
    X("prmt.b32.ecl %0, %1, %2, %3;", permuted_by_table(a, b, c, "3210 3211 3222 3333"))                    \
    X("prmt.b32.ecr %0, %1, %2, %3;", permuted_by_table(a, b, c, "0000 1110 2210 3210"))                    \
    X("prmt.b32.rc16 %0, %1, %2, %3;", permuted_by_table(a, b, c, "1010 3232 1010 3232"))                   \
    X(                                                                                                      \
        "vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;", c + [](Word x, Word y) {                               \
            Word total = 0;                                                                                 \
            for (Word h = 0; h < 32; h += 8)                                                                \
                total += static_cast<Word>(                                                                 \
                    std::abs(static_cast<int>(x >> h & 255) - static_cast<int>(y >> h & 255)));             \
            return total;                                                                                   \
        }(a, b))                                                                                            \
    X("dp4a.s32.u32 %0, %1, %2, %3;", (dot4<std::int8_t, std::uint8_t>(a, b, c)))                           \
    X("dp4a.u32.s32 %0, %1, %2, %3;", (dot4<std::uint8_t, std::int8_t>(a, b, c)))                           \
    X("dp2a.hi.s32.s32 %0, %1, %2, %3;",                                                                    \
      c + static_cast<Word>(static_cast<std::int16_t>(a) * static_cast<std::int8_t>(b >> 16)) +             \
          static_cast<Word>(static_cast<std::int16_t>(a >> 16) * static_cast<std::int8_t>(b >> 24)))        \
    X("{.reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %1, %3, p;}", s(a) < s(b) ? a : c)                \
    X("{.reg .pred p, q; setp.hs.u32 p|q, %1, %2; selp.b32 %0, 1, 2, q;}", a >= b ? 2 : 1)                  \
    X("{.reg .pred p; setp.gt.s32 p, %1, 0; setp.ne.and.u32 p, %2, %3, p; mov.b32 %0, 0;"                   \
      " @p add.u32 %0, %0, 1; @!p sub.u32 %0, %0, 1;}",                                                     \
      s(a) > 0 && b != c ? 1 : -1)                                                                          \
    X("{.reg .pred p, q; setp.eq.s32 p, %1, %2; not.pred q, p; or.pred p, p, q; selp.u32 %0, 5, 6, p;}", 5) \
    X("set.le.u32.s32 %0, %1, %2;", all_ones(s(a) <= s(b)))                                                 \
    X("slct.s32.s32 %0, %1, %2, %3;", s(c) >= 0 ? a : b)                                                    \
    X("cvt.s32.s8 %0, %1;", static_cast<std::int8_t>(a))                                                    \
    X("cvt.u32.u16 %0, %1;", static_cast<std::uint16_t>(a))                                                 \
    X("cvt.sat.u8.s32 %0, %1;", clamp_s(s(a), 0, 255))                                                      \
    X("cvt.sat.s16.s32 %0, %1;", clamp_s(s(a), -32768, 32767))                                              \
    X("cvt.sat.s32.u32 %0, %1;", std::min(a, 0x7fffffffu))                                                  \
    X("{.reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l};}", a << 16 | a >> 16)                       \
    X("{.reg .b64 w; mul.wide.s32 w, %1, %2; {.reg .b32 lo; mov.b64 {lo, %0}, w;}}",                        \
      (wide(a) * wide(b)) >> 32)                                                                            \
    X("{.reg .b64 w, x; mov.b64 x, {%3, 0}; mad.wide.u32 w, %1, %2, x; cvt.u32.u64 %0, w;}", a* b + c)      \
    X("{.reg .u32 t; add.cc.u32 t, %1, %2; addc.u32 %0, %3, 0;}", c + (Long{a} + b > 0xffffffff))           \
    X("{.reg .u32 t; sub.cc.u32 t, %1, %2; subc.u32 %0, %3, 1;}", c - 1 - (a < b))                          \
    X("{.reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.u32 %0, %1, %2, 0;}", (Long{a} * b + c) >> 32)    \
    X("{.reg .b16 x, y; cvt.u16.u32 x, %1; cvt.u16.u32 y, %2; shr.s16 x, x, 20; min.s16 y, x, y;"           \
      " cvt.s32.s16 %0, y;}",                                                                               \
      std::min<int>(static_cast<std::int16_t>(a) < 0 ? -1 : 0, static_cast<std::int16_t>(b)))               \
    X("{\n.reg .pred p;\n.reg .u32 i;\nmov.u32 i, 0;\nmov.u32 %0, %1;\nagain:\nadd.u32 %0, %0, %2;\n"       \
      "add.u32 i, i, 1; // one more\nsetp.lt.u32 p, i, 5;\n@p bra again;\n}",                               \
      a + 5 * b)

#define PTX_OUT(d) "=r"(d)
#define PTX_IN(a) "r"(a)
PTX_TEST(Words, WORDS, Word, Word, Word)
#undef PTX_OUT
#undef PTX_IN

// ---- Integers of 64 bits ------------------------------------------------------------------------

__extension__ using Wide = __int128;
Wide s128(Long a) {
    return static_cast<long long>(a);
}

// Of positions and lengths above 255 the manual says that the low 8 bits count; code for 64-bit
// fields on an H200 takes all.
#define LONGS(X)                                                                                      \
    X("add.u64 %0, %1, %2;", a + b)                                                                   \
    X("mul.lo.u64 %0, %1, %2;", a* b)                                                                 \
    X("mul.hi.s64 %0, %1, %2;", (s128(a) * s128(b)) >> 64)                                            \
    X("mad.lo.s64 %0, %1, %2, %3;", a* b + c)                                                         \
    X("rem.u64 %0, %1, %2;", b == 0 ? ~Long{0} : a % b)                                               \
    X("max.s64 %0, %1, %2;", std::max(static_cast<long long>(a), static_cast<long long>(b)))          \
    X("{.reg .b32 n; cvt.u32.u64 n, %2; shl.b64 %0, %1, n;}", Word(b) > 63 ? 0 : a << Word(b))        \
    X("{.reg .b32 n; cvt.u32.u64 n, %2; shr.s64 %0, %1, n;}", s128(a) >> std::min(Word(b), 64u))      \
    X("{.reg .b32 n, m; cvt.u32.u64 n, %2; cvt.u32.u64 m, %3; and.b32 n, n, 255; and.b32 m, m, 255; " \
      "bfe.s64 %0, %1, n, m;}",                                                                       \
      extract(a, Word(b), Word(c), true))                                                             \
    X("{.reg .b32 n, m; cvt.u32.u64 n, %2; cvt.u32.u64 m, %3; and.b32 n, n, 255; and.b32 m, m, 255; " \
      "bfi.b64 %0, %1, %2, n, m;}",                                                                   \
      insert(a, b, Word(b), Word(c)))                                                                 \
    X("brev.b64 %0, %1;", reversed(a))                                                                \
    X("{.reg .b32 n; popc.b64 n, %1; cvt.u64.u32 %0, n;}", std::popcount(a))                          \
    X("{.reg .b32 n; clz.b64 n, %1; cvt.u64.u32 %0, n;}", std::countl_zero(a))                        \
    X("{.reg .b32 n; bfind.s64 n, %1; cvt.s64.s32 %0, n;}", wide(highest(a, true)))                   \
    X("cvt.sat.u64.s64 %0, %1;", static_cast<long long>(a) < 0 ? 0 : a)                               \
    X("cvt.s64.s32 %0, %1;", wide(Word(a)))                                                           \
    X("{.reg .u64 t; add.cc.u64 t, %1, %2; addc.u64 %0, %3, 0;}", c + (a + b < a))                    \
    X("{.reg .b32 l, h; mov.b64 {l, h}, %1; mov.b64 %0, {h, l};}", a << 32 | a >> 32)

#define PTX_OUT(d) "=l"(d)
#define PTX_IN(a) "l"(a)
PTX_TEST(Longs, LONGS, Long, Long, Long)
#undef PTX_OUT
#undef PTX_IN

// ---- Floating point -----------------------------------------------------------------------------

float flush(float x) {
    return std::fabs(x) < 1.17549435e-38f ? std::copysign(0.0f, x) : x;
}
float clamp_to_one(float x) {
    return x > 0 ? std::min(x, 1.0f) : 0.0f;
}
template <class Operation>
float in_mode(int mode, Operation operation) {
    const int before = std::fegetround();
    std::fesetround(mode);
    volatile float result = operation();
    std::fesetround(before);
    return result;
}
float sum(float a, float b, int mode) {
    const volatile float x = a, y = b;
    return in_mode(mode, [&] { return x + y; });
}
float product(float a, float b, int mode) {
    const volatile float x = a, y = b;
    return in_mode(mode, [&] { return x * y; });
}
float quotient(float a, float b, int mode) {
    const volatile float x = a, y = b;
    return in_mode(mode, [&] { return x / y; });
}
float less(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
}
float larger(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
}

#define FLOATS(X)                                                                                          \
    X("add.f32 %0, %1, %2;", sum(a, b, FE_TONEAREST))                                                      \
    X("add.rz.f32 %0, %1, %2;", sum(a, b, FE_TOWARDZERO))                                                  \
    X("sub.rm.f32 %0, %1, %2;", sum(a, -b, FE_DOWNWARD))                                                   \
    X("add.ftz.f32 %0, %1, %2;", flush(sum(flush(a), flush(b), FE_TONEAREST)))                             \
    X("add.sat.f32 %0, %1, %2;", clamp_to_one(a + b))                                                      \
    X("mul.rp.f32 %0, %1, %2;", product(a, b, FE_UPWARD))                                                  \
    X("mul.ftz.f32 %0, %1, %2;", flush(flush(a) * flush(b)))                                               \
    X("fma.rn.f32 %0, %1, %2, %3;", std::fma(a, b, c))                                                     \
    X("fma.rn.ftz.sat.f32 %0, %1, %2, %3;", clamp_to_one(flush(std::fma(flush(a), flush(b), flush(c)))))   \
    X("div.rn.f32 %0, %1, %2;", quotient(a, b, FE_TONEAREST))                                              \
    X("div.rz.f32 %0, %1, %2;", quotient(a, b, FE_TOWARDZERO))                                             \
    X("rcp.rn.f32 %0, %1;", 1 / a)                                                                         \
    X("sqrt.rn.f32 %0, %1;", std::sqrt(a))                                                                 \
    X("min.f32 %0, %1, %2;", less(a, b))                                                                   \
    X("max.f32 %0, %1, %2;", larger(a, b))                                                                 \
    X("max.NaN.f32 %0, %1, %2;", std::isnan(a) || std::isnan(b) ? NAN : larger(a, b))                      \
    X("abs.f32 %0, %1;", std::fabs(a))                                                                     \
    X("neg.ftz.f32 %0, %1;", -flush(a))                                                                    \
    X("copysign.f32 %0, %1, %2;", std::copysign(b, a))                                                     \
    X("mov.f32 %0, 0f40490FDB;", 3.14159274f)                                                              \
    X("add.f32 %0, %1, 1.5;", a + 1.5f)                                                                    \
    X("selp.f32 %0, %1, %2, 1;", a)                                                                        \
    X("slct.f32.f32 %0, %1, %2, %3;", c >= 0 ? a : b)                                                      \
    X("set.gt.f32.f32 %0, %1, %2;", a > b ? 1.0f : 0.0f)                                                   \
    X("cvt.rni.f32.f32 %0, %1;", std::nearbyint(a))                                                        \
    X("cvt.rmi.f32.f32 %0, %1;", std::floor(a))                                                            \
    X("cvt.rpi.f32.f32 %0, %1;", std::ceil(a))                                                             \
    X("cvt.rzi.ftz.f32.f32 %0, %1;", std::trunc(flush(a)))                                                 \
    X("cvt.sat.f32.f32 %0, %1;", clamp_to_one(a))                                                          \
    X("{.reg .f64 x, y; cvt.f64.f32 x, %1; cvt.f64.f32 y, %2; add.rn.f64 x, x, y; cvt.rn.f32.f64 %0, x;}", \
      static_cast<float>(double{a} + double{b}))

#define PTX_OUT(d) "=f"(d)
#define PTX_IN(a) "f"(a)
PTX_TEST(Floats, FLOATS, Word, float, float)
#undef PTX_OUT
#undef PTX_IN

// To nearest even, and what does not fit to the nearest that does; NaN to 0.
Word integer_of(double x, double low, double high) {
    return std::isnan(x) ? 0 : static_cast<Word>(static_cast<long long>(std::min(std::max(x, low), high)));
}
Word half_bits(float x) {
    return __half_raw(__float2half_rn(x)).x;
}

#define WORDS_OF_FLOATS(X)                                                                               \
    X("cvt.rni.s32.f32 %0, %1;", integer_of(std::nearbyint(a), -2147483648.0, 2147483647.0))             \
    X("cvt.rzi.u32.f32 %0, %1;", integer_of(std::trunc(a), 0, 4294967295.0))                             \
    X("cvt.rmi.s32.f32 %0, %1;", integer_of(std::floor(a), -2147483648.0, 2147483647.0))                 \
    X("cvt.rzi.s8.f32 %0, %1;", integer_of(std::trunc(a), -128, 127))                                    \
    X("cvt.rpi.u16.f32 %0, %1;", integer_of(std::ceil(a), 0, 65535))                                     \
    X("{.reg .pred p; setp.neu.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}", !(a == b))                        \
    X("{.reg .pred p; setp.ne.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}", a<b || a> b)                       \
    X("{.reg .pred p; setp.ltu.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}", !(a >= b))                        \
    X("{.reg .pred p; setp.le.ftz.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}", flush(a) <= flush(b))          \
    X("{.reg .pred p; setp.num.f32 p, %1, %2; selp.b32 %0, 1, 0, p;}", !std::isnan(a) && !std::isnan(b)) \
    X("{.reg .pred p; testp.subnormal.f32 p, %1; selp.b32 %0, 1, 0, p;}", a != 0 && flush(a) == 0)       \
    X("{.reg .pred p; testp.infinite.f32 p, %1; selp.b32 %0, 1, 0, p;}", std::isinf(a))                  \
    X("set.equ.u32.f32 %0, %1, %2;", all_ones(!(a < b || a > b)))                                        \
    X("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.u32.u16 %0, h;}", half_bits(a))                           \
    X("cvt.rn.f16x2.f32 %0, %1, %2;", half_bits(a) << 16 | half_bits(b))                                 \
    X("cvt.rn.relu.f16x2.f32 %0, %1, %2;",                                                               \
      half_bits(a < 0 || a == 0 ? 0 : a) << 16 | half_bits(b < 0 || b == 0 ? 0 : b))

#define PTX_OUT(d) "=r"(d)
#define PTX_IN(a) "f"(a)
PTX_TEST(WordsOfFloats, WORDS_OF_FLOATS, Word, float, Word)
#undef PTX_OUT
#undef PTX_IN

#define FLOATS_OF_WORDS(X)                                                     \
    X("cvt.rn.f32.s32 %0, %1;", static_cast<float>(s(a)))                      \
    X("cvt.rn.f32.u8 %0, %1;", static_cast<float>(a & 255))                    \
    X("cvt.rz.f32.u32 %0, %1;", in_mode(FE_TOWARDZERO, [v = double{1.0 * a}] { \
          volatile double exact = v;                                           \
          return static_cast<float>(exact);                                    \
      }))                                                                      \
    X("{.reg .b16 h, l; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}",              \
      __half2float(__half(__half_raw{static_cast<unsigned short>(a >> 16)})))  \
    X("{.reg .b32 t; mov.b32 t, %1; mov.b32 %0, t;}", std::bit_cast<float>(a))

#define PTX_OUT(d) "=f"(d)
#define PTX_IN(a) "r"(a)
PTX_TEST(FloatsOfWords, FLOATS_OF_WORDS, Word, Word, float)
#undef PTX_OUT
#undef PTX_IN

// ---- Pairs of halves ----------------------------------------------------------------------------

float half(Word a) {
    return __half2float(__half(__half_raw{static_cast<unsigned short>(a)}));
}
// Which NaN it is does not count: all are written as one.
Word canonical(Word a) {
    const auto one = [](Word h) { return (h & 0x7fff) > 0x7c00 ? 0x7fffu : h; };
    return one(a & 0xffff) | one(a >> 16) << 16;
}
template <class Operation>
Word of_halves(Operation operation) {
    return canonical(half_bits(operation(0)) | half_bits(operation(16)) << 16);
}

#define HALVES(X)                                                                                     \
    X("add.f16x2 %0, %1, %2;", of_halves([&](int h) { return half(a >> h) + half(b >> h); }))         \
    X("sub.rn.f16x2 %0, %1, %2;", of_halves([&](int h) { return half(a >> h) - half(b >> h); }))      \
    X("mul.sat.f16x2 %0, %1, %2;",                                                                    \
      of_halves([&](int h) { return clamp_to_one(half(a >> h) * half(b >> h)); }))                    \
    X("min.f16x2 %0, %1, %2;", of_halves([&](int h) { return less(half(a >> h), half(b >> h)); }))    \
    X("neg.f16x2 %0, %1;", canonical(a ^ 0x80008000))                                                 \
    X("{.reg .f16 l, h, m, n; mov.b32 {l, h}, %1; mov.b32 {m, n}, %2; mul.f16 l, l, m; mov.b16 h, 0;" \
      " mov.b32 %0, {l, h};}",                                                                        \
      canonical(half_bits(half(a) * half(b))))
#define PTX_OUT(d) "=r"(d)
#define PTX_IN(a) "r"(a)

__global__ void halves_kernel(const Operands<Word>* in, Word* out, std::size_t count) {
    using Out = Word;
    const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
    if (i >= count) return;
    const Word a = in[i].a, b = in[i].b, c = in[i].c;
    int k = 0;
    out += i * (0 HALVES(PTX_COUNT_ENTRY));
    HALVES(PTX_KERNEL_ENTRY)
}
TEST(Ptx, Halves) {
    using Out = Word;
    using In = Word;
    constexpr std::size_t kCount = 0 HALVES(PTX_COUNT_ENTRY);
    const auto inputs = operands<Word>();
    DeviceVector<Operands<Word>> device_inputs(inputs);
    DeviceVector<Out> device_outputs(inputs.size() * kCount);
    halves_kernel<<<static_cast<unsigned>((inputs.size() + 127) / 128), 128>>>(
        device_inputs.data(), device_outputs.data(), inputs.size());
    std::vector<Out> outputs = device_outputs.to_host();
    std::transform(outputs.begin(), outputs.end(), outputs.begin(), canonical);
    std::size_t k = 0;
    HALVES(PTX_HOST_ENTRY)
}
#undef PTX_OUT
#undef PTX_IN

// ---- lop3 with all tables -----------------------------------------------------------------------

template <unsigned kTable>
__device__ Word lop3(Word a, Word b, Word c) {
    Word d;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(kTable));
    return d;
}
template <std::size_t... kTables>
__device__ void all_tables(Word a, Word b, Word c, Word* out, std::index_sequence<kTables...>) {
    ((out[kTables] = lop3<kTables>(a, b, c)), ...);
}
__global__ void all_tables_of_lop3(Word a, Word b, Word c, Word* out) {
    all_tables(a, b, c, out, std::make_index_sequence<256>());
}
TEST(Ptx, Lop3HasAllTables) {
    const std::vector<Word> words = random_words(3);
    DeviceVector<Word> out(256);
    all_tables_of_lop3<<<1, 1>>>(words[0], words[1], words[2], out.data());
    const std::vector<Word> got = out.to_host();
    for (Word table = 0; table < 256; ++table) {
        Word expected = 0;
        for (Word i = 0; i < 32; ++i) {
            const Word row = (words[0] >> i & 1) << 2 | (words[1] >> i & 1) << 1 | (words[2] >> i & 1);
            expected |= (table >> row & 1) << i;
        }
        EXPECT_EQ(got[table], expected) << "table " << table;
    }
}

// ---- Carry from one asm statement to the next ---------------------------------------------------

__global__ void add_numbers_of_256_bits(const Word* a, const Word* b, Word* sum) {
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum[0]) : "r"(a[0]), "r"(b[0]));
#pragma unroll
    for (int i = 1; i < 8; ++i)
        asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum[i]) : "r"(a[i]), "r"(b[i]));
    asm volatile("addc.u32 %0, 0, 0;" : "=r"(sum[8]));
}
TEST(Ptx, CarryOutlivesAStatement) {
    DeviceVector<Word> a({~0u, ~0u, 5, ~0u, ~0u, ~0u, ~0u, ~0u}), b({1, 0, 7, 3, 0, 0, 0, 0}), sum(9);
    add_numbers_of_256_bits<<<1, 1>>>(a.data(), b.data(), sum.data());
    EXPECT_EQ(sum.to_host(), (std::vector<Word>{0, 0, 13, 2, 0, 0, 0, 0, 1}));
}

// ---- Functions that are approximated ------------------------------------------------------------

__global__ void approximate(Checks check) {
    float d;
    asm("ex2.approx.f32 %0, %1;" : "=f"(d) : "f"(hidden(-3.25f)));
    check.near(d, 0.10511205190671431, 1e-6);
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(hidden(-130.0f)));
    check.equal(d, 0.0f);
    asm("lg2.approx.f32 %0, %1;" : "=f"(d) : "f"(hidden(10.0f)));
    check.near(d, 3.3219280948873623, 1e-6);
    asm("sin.approx.f32 %0, %1;" : "=f"(d) : "f"(hidden(1.0f)));
    check.near(d, 0.8414709848078965, 1e-5);
    asm("cos.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(hidden(1.0f)));
    check.near(d, 0.5403023058681398, 1e-5);
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(hidden(3.0f)));
    check.near(d, 1.0 / 3, 1e-6);
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(d) : "f"(hidden(2.0f)));
    check.near(d, 0.7071067811865475, 1e-6);
    asm("sqrt.approx.f32 %0, %1;" : "=f"(d) : "f"(hidden(2.0f)));
    check.near(d, 1.4142135623730951, 1e-6);
    asm("tanh.approx.f32 %0, %1;" : "=f"(d) : "f"(hidden(0.5f)));
    check.near(d, 0.46211715726000975, 1e-3);
    asm("div.full.f32 %0, %1, %2;" : "=f"(d) : "f"(hidden(2.0f)), "f"(hidden(3.0f)));
    check.near(d, 2.0 / 3, 1e-6);
    double e;
    asm("{.reg .f64 t; mul.rz.f64 t, %1, 0d4008000000000000; sqrt.rn.f64 %0, t;}"
        : "=d"(e)
        : "d"(hidden(27.0)));
    check.equal(e, 9.0);
}
TEST(Ptx, Approximations) {
    run_checks(approximate);
}

}  // namespace

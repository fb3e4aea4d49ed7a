// Bit, integer, conversion and cache-hint intrinsics against fixed values and against naive models
// on random words.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <type_traits>
#include <vector>

#include "on_device.cuh"

namespace {

// ---- Fixed values -------------------------------------------------------------------------------

__global__ void count_and_find_bits(Checks check) {
    check.equal(__popc(hidden(0u)), 0);
    check.equal(__popc(hidden(0xffffffffu)), 32);
    check.equal(__popcll(hidden(0x8000000000000001ull)), 2);
    check.equal(__clz(hidden(0)), 32);
    check.equal(__clz(hidden(1)), 31);
    check.equal(__clz(hidden(-1)), 0);
    check.equal(__clzll(hidden(0)), 64);
    check.equal(__clzll(hidden(1ll << 40)), 23);
    check.equal(__ffs(hidden(0)), 0);
    check.equal(__ffs(hidden(0x00ff0000)), 17);
    check.equal(__ffsll(hidden(0)), 0);
    check.equal(__ffsll(hidden(LLONG_MIN)), 64);
    check.equal(__brev(hidden(1u)), 0x80000000u);
    check.equal(__brev(hidden(0x12345678u)), 0x1e6a2c48u);
    check.equal(__brevll(hidden(0x1ull)), 0x8000000000000000ull);
    check.equal(__brevll(hidden(0x123456789abcdef0ull)), 0x0f7b3d591e6a2c48ull);
    check.equal(__nv_bswap16(hidden<unsigned short>(0x12f4)), 0xf412);
    check.equal(__nv_bswap32(hidden(0x123456f8u)), 0xf8563412u);
    check.equal(__nv_bswap64(hidden(0x123456789abcdef0ull)), 0xf0debc9a78563412ull);
    check.equal(__fns(hidden(0b101100), 0, 1), 2u);
    check.equal(__fns(hidden(0b101100), 0, 3), 5u);
    check.equal(__fns(hidden(0b101100), 0, 4), 0xffffffffu);
    check.equal(__fns(hidden(0b101100), 4, -1), 3u);
    check.equal(__fns(hidden(0b101100), 3, 0), 3u);
    check.equal(__fns(hidden(0b101100), 4, 0), 0xffffffffu);
}
TEST(Bits, CountedAndFound) {
    run_checks(count_and_find_bits);
}

__global__ void shift_and_permute(Checks check) {
    check.equal(__byte_perm(hidden(0x33221100u), 0x77665544u, 0x3210), 0x33221100u);
    check.equal(__byte_perm(hidden(0x33221100u), 0x77665544u, 0x7654), 0x77665544u);
    check.equal(__byte_perm(hidden(0x33221100u), 0x77665544u, 0x0123), 0x00112233u);
    check.equal(__byte_perm(hidden(0x33227180u), 0u, 0xabcd9810u), 0x71807180u);
    check.equal(__funnelshift_l(hidden(0x80000001u), 0x00000002u, 1), 0x00000005u);
    check.equal(__funnelshift_l(hidden(0x80000001u), 0x00000002u, 32), 0x00000002u);
    check.equal(__funnelshift_lc(hidden(0x80000001u), 0x00000002u, 32), 0x80000001u);
    check.equal(__funnelshift_lc(hidden(0x80000001u), 0x00000002u, 77), 0x80000001u);
    check.equal(__funnelshift_r(hidden(0x80000001u), 0x00000003u, 1), 0xc0000000u);
    check.equal(__funnelshift_r(hidden(0x80000001u), 0x00000003u, 32), 0x80000001u);
    check.equal(__funnelshift_rc(hidden(0x80000001u), 0x00000003u, 32), 0x00000003u);
    check.equal(__funnelshift_rc(hidden(0x80000001u), 0x00000003u, 99), 0x00000003u);
}
TEST(Bits, ShiftedAndPermuted) {
    run_checks(shift_and_permute);
}

__global__ void multiply_and_average(Checks check) {
    check.equal(__mulhi(hidden(INT_MIN), INT_MIN), 0x40000000);
    check.equal(__mulhi(hidden(-1), 1), -1);
    check.equal(__umulhi(hidden(0xffffffffu), 0xffffffffu), 0xfffffffeu);
    check.equal(__mul64hi(hidden(LLONG_MIN), 2), -1ll);
    check.equal(__umul64hi(hidden(~0ull), ~0ull), ~0ull - 1);
    check.equal(__mul24(hidden(0x00ffffff), 5), -5);
    check.equal(__mul24(hidden(0x7f000003), 5), 15);
    check.equal(__umul24(hidden(0x01ffffffu), 0x00ffffffu), 0xfe000001u);
    check.equal(__sad(hidden(INT_MIN), INT_MAX, 1), 0u);
    check.equal(__sad(hidden(3), -4, 10), 17u);
    check.equal(__usad(hidden(1u), 0xffffffffu, 1), 0xffffffffu);
    check.equal(__hadd(hidden(-3), 0), -2);
    check.equal(__hadd(hidden(INT_MAX), INT_MAX), INT_MAX);
    check.equal(__rhadd(hidden(-3), 0), -1);
    check.equal(__rhadd(hidden(INT_MAX), INT_MAX), INT_MAX);
    check.equal(__uhadd(hidden(0xffffffffu), 0xfffffffeu), 0xfffffffeu);
    check.equal(__urhadd(hidden(0xffffffffu), 0xfffffffeu), 0xffffffffu);
    check.equal(__dp4a(hidden(static_cast<int>(0x80ff7f01u)), static_cast<int>(0x80ff7f01u), -1),
                16384 + 1 + 16129 + 1 - 1);
    check.equal(__dp4a(hidden(0x80ff7f01u), 0x80ff7f01u, 0u), 16384u + 65025u + 16129u + 1u);
    check.equal(__dp4a(make_char4(1, -2, 3, -4), make_char4(5, 6, 7, 8), 100), 100 + 5 - 12 + 21 - 32);
    check.equal(__dp2a_lo(hidden(static_cast<int>(0xfffe0003u)), static_cast<int>(0x04050607u), 10),
                10 + 3 * 7 - 2 * 6);
    check.equal(__dp2a_lo(hidden(0xfffe0003u), 0x0405f607u, 10u), 10u + 3 * 7 + 0xfffeu * 0xf6);
    check.equal(__dp2a_hi(hidden(static_cast<int>(0xfffe0003u)), static_cast<int>(0x04050607u), 10),
                10 + 3 * 5 - 2 * 4);
    check.equal(__dp2a_hi(hidden(0xfffe0003u), 0x04050607u, 10u), 10u + 3 * 5 + 0xfffeu * 4);
    check.equal(__dp2a_lo(make_short2(-3, 4), make_char4(5, 6, 7, 8), 1), 1 - 15 + 24);
}
TEST(Integers, MultipliedAndAveraged) {
    run_checks(multiply_and_average);
}

__global__ void reinterpret(Checks check) {
    check.equal(__float_as_int(hidden(-0.0f)), INT_MIN);
    check.equal(__float_as_uint(hidden(1.0f)), 0x3f800000u);
    check.equal(__int_as_float(hidden(0x7f800000)), INFINITY);
    check.equal(__uint_as_float(hidden(0x80000001u)), -1.40129846e-45f);
    check.equal(__double_as_longlong(hidden(1.0)), 0x3ff0000000000000ll);
    check.equal(__longlong_as_double(hidden(0x4000000000000000ll)), 2.0);
    check.equal(__double2hiint(hidden(-1.0)), static_cast<int>(0xbff00000u));
    check.equal(__double2loint(hidden(__longlong_as_double(0x3ff00000ffffffffll))), -1);
    check.equal(__hiloint2double(hidden(0x3ff00000), -1), 1.0 + 4294967295.0 / 4503599627370496.0);
}
TEST(BitCasts, KeepTheBits) {
    run_checks(reinterpret);
}

__global__ void convert_reals_to_integers(Checks check) {
    check.equal(__float2int_rn(hidden(2.5f)), 2);
    check.equal(__float2int_rn(hidden(3.5f)), 4);
    check.equal(__float2int_rz(hidden(-2.9f)), -2);
    check.equal(__float2int_ru(hidden(-2.9f)), -2);
    check.equal(__float2int_rd(hidden(-2.1f)), -3);
    check.equal(__float2int_ru(hidden(2.1f)), 3);
    check.equal(__float2int_rz(hidden(1e20f)), INT_MAX);
    check.equal(__float2int_rz(hidden(2147483648.0f)), INT_MAX);
    check.equal(__float2int_rz(hidden(-1e20f)), INT_MIN);
    check.equal(__float2int_rn(hidden(NAN)), 0);
    check.equal(__float2uint_rn(hidden(-1.0f)), 0u);
    check.equal(__float2uint_rz(hidden(1e20f)), UINT_MAX);
    check.equal(__float2uint_rz(hidden(4294967040.0f)), 4294967040u);
    check.equal(__float2uint_rn(hidden(NAN)), 0u);
    check.equal(__float2ll_rz(hidden(1e30f)), LLONG_MAX);
    check.equal(__float2ll_rd(hidden(-1.5f)), -2ll);
    check.equal(__float2ll_rn(hidden(NAN)), LLONG_MIN);
    check.equal(__float2ull_rz(hidden(1e30f)), ULLONG_MAX);
    check.equal(__float2ull_rz(hidden(18446744073709551616.0f)), ULLONG_MAX);
    check.equal(__float2ull_ru(hidden(0.25f)), 1ull);
    check.equal(__float2ull_rn(hidden(-5.0f)), 0ull);
    check.equal(__double2int_rn(hidden(-2.5)), -2);
    check.equal(__double2int_rz(hidden(2147483647.9)), INT_MAX);
    check.equal(__double2int_ru(hidden(2147483647.1)), INT_MAX);
    check.equal(__double2int_rn(hidden(NAN)), INT_MIN);
    check.equal(__double2uint_rd(hidden(4294967295.9)), UINT_MAX);
    check.equal(__double2uint_rn(hidden(NAN)), 0x80000000u);
    check.equal(__double2ll_rn(hidden(9007199254740993.0)), 9007199254740992ll);
    check.equal(__double2ll_rz(hidden(-1e300)), LLONG_MIN);
    check.equal(__double2ull_ru(hidden(1e300)), ULLONG_MAX);
    check.equal(__double2ull_rn(hidden(NAN)), 0x8000000000000000ull);
}
TEST(Conversions, RealsToIntegersSaturate) {
    run_checks(convert_reals_to_integers);
}

__global__ void convert_to_reals(Checks check) {
    check.equal(__int2float_rn(hidden(16777217)), 16777216.0f);
    check.equal(__int2float_rz(hidden(16777217)), 16777216.0f);
    check.equal(__int2float_ru(hidden(16777217)), 16777218.0f);
    check.equal(__int2float_rd(hidden(-16777217)), -16777218.0f);
    check.equal(__int2float_rz(hidden(-16777217)), -16777216.0f);
    check.equal(__int2float_rd(hidden(INT_MAX)), 2147483520.0f);
    check.equal(__uint2float_rn(hidden(UINT_MAX)), 4294967296.0f);
    check.equal(__uint2float_rz(hidden(UINT_MAX)), 4294967040.0f);
    check.equal(__ll2float_rn(hidden(LLONG_MAX)), 9223372036854775808.0f);
    check.equal(__ll2float_rz(hidden(LLONG_MAX)), 9223371487098961920.0f);
    check.equal(__ull2float_ru(hidden((1ull << 40) + 1)), 1099511758848.0f);
    check.equal(__ull2float_rn(hidden(ULLONG_MAX)), 18446744073709551616.0f);
    check.equal(__ull2float_rd(hidden(0)), 0.0f);
    check.equal(__int2double_rn(hidden(-7)), -7.0);
    check.equal(__uint2double_rn(hidden(UINT_MAX)), 4294967295.0);
    check.equal(__ll2double_rn(hidden(9007199254740993ll)), 9007199254740992.0);
    check.equal(__ll2double_ru(hidden(9007199254740993ll)), 9007199254740994.0);
    check.equal(__ll2double_rz(hidden(-9007199254740993ll)), -9007199254740992.0);
    check.equal(__ull2double_rd(hidden(ULLONG_MAX)), 18446744073709549568.0);
    check.equal(__double2float_rn(hidden(1.0 + 1e-10)), 1.0f);
    check.equal(__double2float_ru(hidden(1.0 + 1e-10)), 1.00000012f);
    check.equal(__double2float_rd(hidden(-1.0 - 1e-10)), -1.00000012f);
    check.equal(__double2float_rz(hidden(-1.0 - 1e-10)), -1.0f);
    check.equal(__double2float_rn(hidden(1e300)), INFINITY);
    check.equal(__double2float_rz(hidden(1e300)), 3.40282347e38f);
    check.equal(__double2float_ru(hidden(-1e300)), -3.40282347e38f);
    check.equal(__double2float_ru(hidden(1e-300)), 1.40129846e-45f);
    check.equal(__double2float_ru(hidden(-1e-300)), -0.0f);
    check.equal(__double2float_rn(hidden(NAN)), NAN);
}
TEST(Conversions, ToRealsRoundAsAsked) {
    run_checks(convert_to_reals);
}

// ---- Naive models on random words ---------------------------------------------------------------

struct Words {
    std::uint32_t a, b, c;
};

std::vector<Words> random_triples(std::size_t count) {
    const std::vector<std::uint32_t> words = random_words(3 * count);
    std::vector<Words> triples(count);
    for (std::size_t i = 0; i < count; ++i)
        triples[i] = {words[3 * i], words[3 * i + 1], words[3 * i + 2]};
    return triples;
}

struct BytePerm {
    __device__ std::uint32_t operator()(Words w) const { return __byte_perm(w.a, w.b, w.c); }
};

TEST(BytePerm, IsTheNaiveModel) {
    const std::vector<Words> inputs = random_triples(100'000);
    expect_same(map_on_device<std::uint32_t>(BytePerm{}, inputs), inputs, [](Words w) {
        std::uint8_t bytes[8];
        for (int i = 0; i < 4; ++i)
            bytes[i] = static_cast<std::uint8_t>(w.a >> (8 * i));
        for (int i = 0; i < 4; ++i)
            bytes[4 + i] = static_cast<std::uint8_t>(w.b >> (8 * i));
        std::uint32_t result = 0;
        for (int i = 3; i >= 0; --i) {
            result = result * 256 + bytes[(w.c >> (4 * i)) % 8];
        }
        return result;
    });
}

struct Dp4a {
    __device__ int operator()(Words w) const {
        return __dp4a(static_cast<int>(w.a), static_cast<int>(w.b), static_cast<int>(w.c));
    }
};

TEST(Dp4a, IsTheNaiveModel) {
    const std::vector<Words> inputs = random_triples(100'000);
    expect_same(map_on_device<int>(Dp4a{}, inputs), inputs, [](Words w) {
        std::uint32_t sum = w.c;
        for (int i = 0; i < 4; ++i) {
            const int a = static_cast<std::int8_t>(w.a >> (8 * i));
            const int b = static_cast<std::int8_t>(w.b >> (8 * i));
            sum += static_cast<std::uint32_t>(a * b);
        }
        return static_cast<int>(sum);
    });
}

// Every lane-wise function of two words, chosen by its number so that one kernel serves them all.
enum Lanewise : int {
    kAdd,
    kAddSaturateSigned,
    kAddSaturateUnsigned,
    kSub,
    kSubSaturateSigned,
    kSubSaturateUnsigned,
    kAverageSigned,
    kAverageUnsigned,
    kHalfSumUnsigned,
    kMinSigned,
    kMinUnsigned,
    kMaxSigned,
    kMaxUnsigned,
    kDifferenceSigned,
    kDifferenceUnsigned,
    kEqual,
    kNotEqual,
    kGreaterSigned,
    kGreaterUnsigned,
    kGreaterEqualSigned,
    kLessSigned,
    kLessUnsigned,
    kLessEqualUnsigned,
    kSetEqual,
    kSetLessSigned,
    kAbs,
    kAbsSaturate,
    kNegate,
    kNegateSaturate,
    kLanewiseCount
};

template <int kLanes>
struct Lanes {
    Lanewise function;

#define LANES(name) (kLanes == 4 ? name##4(w.a, w.b) : name##2(w.a, w.b))
#define LANES_OF_ONE(name) (kLanes == 4 ? name##4(w.a) : name##2(w.a))
    __device__ std::uint32_t operator()(Words w) const {
        switch (function) {
            case kAdd:
                return LANES(__vadd);
            case kAddSaturateSigned:
                return LANES(__vaddss);
            case kAddSaturateUnsigned:
                return LANES(__vaddus);
            case kSub:
                return LANES(__vsub);
            case kSubSaturateSigned:
                return LANES(__vsubss);
            case kSubSaturateUnsigned:
                return LANES(__vsubus);
            case kAverageSigned:
                return LANES(__vavgs);
            case kAverageUnsigned:
                return LANES(__vavgu);
            case kHalfSumUnsigned:
                return LANES(__vhaddu);
            case kMinSigned:
                return LANES(__vmins);
            case kMinUnsigned:
                return LANES(__vminu);
            case kMaxSigned:
                return LANES(__vmaxs);
            case kMaxUnsigned:
                return LANES(__vmaxu);
            case kDifferenceSigned:
                return LANES(__vabsdiffs);
            case kDifferenceUnsigned:
                return LANES(__vabsdiffu);
            case kEqual:
                return LANES(__vcmpeq);
            case kNotEqual:
                return LANES(__vcmpne);
            case kGreaterSigned:
                return LANES(__vcmpgts);
            case kGreaterUnsigned:
                return LANES(__vcmpgtu);
            case kGreaterEqualSigned:
                return LANES(__vcmpges);
            case kLessSigned:
                return LANES(__vcmplts);
            case kLessUnsigned:
                return LANES(__vcmpltu);
            case kLessEqualUnsigned:
                return LANES(__vcmpleu);
            case kSetEqual:
                return LANES(__vseteq);
            case kSetLessSigned:
                return LANES(__vsetlts);
            case kAbs:
                return LANES_OF_ONE(__vabs);
            case kAbsSaturate:
                return LANES_OF_ONE(__vabsss);
            case kNegate:
                return LANES_OF_ONE(__vneg);
            case kNegateSaturate:
                return LANES_OF_ONE(__vnegss);
            case kLanewiseCount:
                break;
        }
        return 0xdeadbeef;
    }
#undef LANES
#undef LANES_OF_ONE
};

// One lane of `bits` bits: the operands read as signed (s) and unsigned (u) numbers.
std::int64_t naive_lane(Lanewise function, int bits, std::int64_t sa, std::int64_t sb, std::int64_t ua,
                        std::int64_t ub) {
    const std::int64_t signed_max = (std::int64_t{1} << (bits - 1)) - 1;
    const std::int64_t unsigned_max = 2 * signed_max + 1;
    const auto clamp_signed = [&](std::int64_t v) {
        return v < -signed_max - 1 ? -signed_max - 1 : v > signed_max ? signed_max : v;
    };
    const auto clamp_unsigned = [&](std::int64_t v) {
        return v < 0 ? 0 : v > unsigned_max ? unsigned_max : v;
    };
    switch (function) {
        case kAdd:
            return ua + ub;
        case kAddSaturateSigned:
            return clamp_signed(sa + sb);
        case kAddSaturateUnsigned:
            return clamp_unsigned(ua + ub);
        case kSub:
            return ua - ub;
        case kSubSaturateSigned:
            return clamp_signed(sa - sb);
        case kSubSaturateUnsigned:
            return clamp_unsigned(ua - ub);
        case kAverageSigned:
            return static_cast<std::int64_t>(std::round(static_cast<double>(sa + sb) / 2.0));
        case kAverageUnsigned:
            return (ua + ub + 1) / 2;
        case kHalfSumUnsigned:
            return (ua + ub) / 2;
        case kMinSigned:
            return std::min(sa, sb);
        case kMinUnsigned:
            return std::min(ua, ub);
        case kMaxSigned:
            return std::max(sa, sb);
        case kMaxUnsigned:
            return std::max(ua, ub);
        case kDifferenceSigned:
            return std::abs(sa - sb);
        case kDifferenceUnsigned:
            return std::abs(ua - ub);
        case kEqual:
            return ua == ub ? -1 : 0;
        case kNotEqual:
            return ua != ub ? -1 : 0;
        case kGreaterSigned:
            return sa > sb ? -1 : 0;
        case kGreaterUnsigned:
            return ua > ub ? -1 : 0;
        case kGreaterEqualSigned:
            return sa >= sb ? -1 : 0;
        case kLessSigned:
            return sa < sb ? -1 : 0;
        case kLessUnsigned:
            return ua < ub ? -1 : 0;
        case kLessEqualUnsigned:
            return ua <= ub ? -1 : 0;
        case kSetEqual:
            return ua == ub ? 1 : 0;
        case kSetLessSigned:
            return sa < sb ? 1 : 0;
        case kAbs:
            return std::abs(sa);
        case kAbsSaturate:
            return clamp_signed(std::abs(sa));
        case kNegate:
            return -sa;
        case kNegateSaturate:
            return clamp_signed(-sa);
        case kLanewiseCount:
            break;
    }
    return 0;
}

class PackedIntegers : public ::testing::TestWithParam<int> {};

template <int kLanes, class SignedLane, class UnsignedLane>
void expect_naive_lanes(Lanewise function, const std::vector<Words>& inputs) {
    constexpr int kBits = 32 / kLanes;
    expect_same(map_on_device<std::uint32_t>(Lanes<kLanes>{function}, inputs), inputs, [=](Words w) {
        std::uint32_t result = 0;
        for (int shift = 0; shift < 32; shift += kBits) {
            const std::int64_t lane = naive_lane(
                function, kBits, static_cast<SignedLane>(w.a >> shift), static_cast<SignedLane>(w.b >> shift),
                static_cast<UnsignedLane>(w.a >> shift), static_cast<UnsignedLane>(w.b >> shift));
            result |= static_cast<std::uint32_t>(static_cast<UnsignedLane>(lane)) << shift;
        }
        return result;
    });
}

TEST_P(PackedIntegers, AllPairsOfBytes) {
    std::vector<Words> inputs;
    for (std::uint32_t pair = 0; pair < 65536; ++pair) {
        inputs.push_back({(pair & 0xff) * 0x01010101u ^ 0x00807f01u, (pair >> 8) * 0x01010101u, 0});
    }
    expect_naive_lanes<4, std::int8_t, std::uint8_t>(static_cast<Lanewise>(GetParam()), inputs);
}

TEST_P(PackedIntegers, RandomHalves) {
    std::vector<Words> inputs = random_triples(20'000);
    inputs.push_back({0x80007fffu, 0x7fff8000u, 0});
    inputs.push_back({0x80008000u, 0x80008000u, 0});
    inputs.push_back({0xffff0000u, 0x00010001u, 0});
    expect_naive_lanes<2, std::int16_t, std::uint16_t>(static_cast<Lanewise>(GetParam()), inputs);
}

INSTANTIATE_TEST_SUITE_P(AllFunctions, PackedIntegers, ::testing::Range(0, static_cast<int>(kLanewiseCount)));

struct SumOfDifferences {
    __device__ std::uint32_t operator()(Words w) const {
        return __vsads4(w.a, w.b) + 1000000u * __vsadu2(w.a, w.b);
    }
};

TEST(PackedIntegers, SumOfDifferences) {
    const std::vector<Words> inputs = random_triples(10'000);
    expect_same(map_on_device<std::uint32_t>(SumOfDifferences{}, inputs), inputs, [](Words w) {
        std::uint32_t bytes = 0;
        for (int shift = 0; shift < 32; shift += 8) {
            bytes += static_cast<std::uint32_t>(
                std::abs(static_cast<std::int8_t>(w.a >> shift) - static_cast<std::int8_t>(w.b >> shift)));
        }
        const int low = std::abs(static_cast<int>(w.a & 0xffff) - static_cast<int>(w.b & 0xffff));
        const int high = std::abs(static_cast<int>(w.a >> 16) - static_cast<int>(w.b >> 16));
        return bytes + 1000000u * static_cast<std::uint32_t>(low + high);
    });
}

// ---- DPX: minima and maxima of sums and of three numbers ----------------------------------------

// Every function by its number, of whole words and of halves.
enum Dpx : int {
    kAddMax,
    kAddMin,
    kMax3,
    kMin3,
    kAddMaxRelu,
    kAddMinRelu,
    kMax3Relu,
    kMin3Relu,
    kMaxRelu,
    kMinRelu,
    kChooseMax,
    kChooseMin,
    kDpxCount
};
constexpr int kFirstRelu = kAddMaxRelu;

// A choice: whether a was chosen, in the high half and in the low one.
struct DpxResult {
    std::uint32_t word;
    std::uint32_t chose_high;
    std::uint32_t chose_low;
    bool operator==(const DpxResult&) const = default;
};

std::ostream& operator<<(std::ostream& out, const DpxResult& result) {
    return out << result.word << ", a chosen: " << result.chose_high << ' ' << result.chose_low;
}

struct DpxSignedWords {
    Dpx function;
    __device__ DpxResult operator()(Words w) const {
        const int a = static_cast<int>(w.a), b = static_cast<int>(w.b), c = static_cast<int>(w.c);
        bool chose = false;
        const auto result = [&] {
            switch (function) {
                case kAddMax:
                    return __viaddmax_s32(a, b, c);
                case kAddMin:
                    return __viaddmin_s32(a, b, c);
                case kMax3:
                    return __vimax3_s32(a, b, c);
                case kMin3:
                    return __vimin3_s32(a, b, c);
                case kAddMaxRelu:
                    return __viaddmax_s32_relu(a, b, c);
                case kAddMinRelu:
                    return __viaddmin_s32_relu(a, b, c);
                case kMax3Relu:
                    return __vimax3_s32_relu(a, b, c);
                case kMin3Relu:
                    return __vimin3_s32_relu(a, b, c);
                case kMaxRelu:
                    return __vimax_s32_relu(a, b);
                case kMinRelu:
                    return __vimin_s32_relu(a, b);
                case kChooseMax:
                    return __vibmax_s32(a, b, &chose);
                default:
                    return __vibmin_s32(a, b, &chose);
            }
        }();
        return {static_cast<std::uint32_t>(result), chose, chose};
    }
};

struct DpxUnsignedWords {
    Dpx function;
    __device__ DpxResult operator()(Words w) const {
        bool chose = false;
        const std::uint32_t result = [&] {
            switch (function) {
                case kAddMax:
                    return __viaddmax_u32(w.a, w.b, w.c);
                case kAddMin:
                    return __viaddmin_u32(w.a, w.b, w.c);
                case kMax3:
                    return __vimax3_u32(w.a, w.b, w.c);
                case kMin3:
                    return __vimin3_u32(w.a, w.b, w.c);
                case kChooseMax:
                    return __vibmax_u32(w.a, w.b, &chose);
                default:
                    return __vibmin_u32(w.a, w.b, &chose);
            }
        }();
        return {result, chose, chose};
    }
};

struct DpxSignedHalves {
    Dpx function;
    __device__ DpxResult operator()(Words w) const {
        bool high = false, low = false;
        const std::uint32_t result = [&] {
            switch (function) {
                case kAddMax:
                    return __viaddmax_s16x2(w.a, w.b, w.c);
                case kAddMin:
                    return __viaddmin_s16x2(w.a, w.b, w.c);
                case kMax3:
                    return __vimax3_s16x2(w.a, w.b, w.c);
                case kMin3:
                    return __vimin3_s16x2(w.a, w.b, w.c);
                case kAddMaxRelu:
                    return __viaddmax_s16x2_relu(w.a, w.b, w.c);
                case kAddMinRelu:
                    return __viaddmin_s16x2_relu(w.a, w.b, w.c);
                case kMax3Relu:
                    return __vimax3_s16x2_relu(w.a, w.b, w.c);
                case kMin3Relu:
                    return __vimin3_s16x2_relu(w.a, w.b, w.c);
                case kMaxRelu:
                    return __vimax_s16x2_relu(w.a, w.b);
                case kMinRelu:
                    return __vimin_s16x2_relu(w.a, w.b);
                case kChooseMax:
                    return __vibmax_s16x2(w.a, w.b, &high, &low);
                default:
                    return __vibmin_s16x2(w.a, w.b, &high, &low);
            }
        }();
        return {result, high, low};
    }
};

struct DpxUnsignedHalves {
    Dpx function;
    __device__ DpxResult operator()(Words w) const {
        bool high = false, low = false;
        const std::uint32_t result = [&] {
            switch (function) {
                case kAddMax:
                    return __viaddmax_u16x2(w.a, w.b, w.c);
                case kAddMin:
                    return __viaddmin_u16x2(w.a, w.b, w.c);
                case kMax3:
                    return __vimax3_u16x2(w.a, w.b, w.c);
                case kMin3:
                    return __vimin3_u16x2(w.a, w.b, w.c);
                case kChooseMax:
                    return __vibmax_u16x2(w.a, w.b, &high, &low);
                default:
                    return __vibmin_u16x2(w.a, w.b, &high, &low);
            }
        }();
        return {result, high, low};
    }
};

// In 64 bits, except that the sum wraps.
template <class Lane>
std::int64_t naive_dpx(Dpx function, Lane lane_a, Lane lane_b, Lane lane_c) {
    const std::int64_t a = lane_a, b = lane_b, c = lane_c;
    const std::int64_t sum = static_cast<Lane>(a + b);
    switch (function) {
        case kAddMax:
            return std::max(sum, c);
        case kAddMin:
            return std::min(sum, c);
        case kMax3:
            return std::max(std::max(a, b), c);
        case kMin3:
            return std::min(std::min(a, b), c);
        case kAddMaxRelu:
            return std::max<std::int64_t>(std::max(sum, c), 0);
        case kAddMinRelu:
            return std::max<std::int64_t>(std::min(sum, c), 0);
        case kMax3Relu:
            return std::max<std::int64_t>(std::max(std::max(a, b), c), 0);
        case kMin3Relu:
            return std::max<std::int64_t>(std::min(std::min(a, b), c), 0);
        case kMaxRelu:
            return std::max<std::int64_t>(std::max(a, b), 0);
        case kMinRelu:
            return std::max<std::int64_t>(std::min(a, b), 0);
        case kChooseMax:
            return std::max(a, b);
        default:
            return std::min(a, b);
    }
}

template <class Lane, class Device>
void expect_naive_dpx(Dpx function) {
    std::vector<Words> inputs = random_triples(20'000);
    for (const std::uint32_t a : {0x80007fffu, 0x7fffffffu, 0xffff0001u, 0x00010001u, 0u})
        for (const std::uint32_t b : {0x80008000u, 0x7fff7fffu, 0xffffffffu, 0x00010001u, 0u})
            for (const std::uint32_t c : {0x80007fffu, 0u, 0xffffffffu})
                inputs.push_back({a, b, c});
    constexpr int kBits = 8 * sizeof(Lane);
    expect_same(map_on_device<DpxResult>(Device{function}, inputs), inputs, [&](Words w) {
        DpxResult result{};
        for (int shift = 0; shift < 32; shift += kBits) {
            const auto a = static_cast<Lane>(w.a >> shift), b = static_cast<Lane>(w.b >> shift);
            const auto lane = static_cast<std::make_unsigned_t<Lane>>(
                naive_dpx(function, a, b, static_cast<Lane>(w.c >> shift)));
            result.word |= static_cast<std::uint32_t>(lane) << shift;
            if (function < kChooseMax) continue;
            const bool chose = function == kChooseMax ? a >= b : a <= b;
            if (shift == 0) result.chose_low = chose;
            if (shift + kBits == 32) result.chose_high = chose;
        }
        return result;
    });
}

class DpxFunctions : public ::testing::TestWithParam<int> {};

TEST_P(DpxFunctions, OfWordsAndHalves) {
    const auto function = static_cast<Dpx>(GetParam());
    expect_naive_dpx<std::int32_t, DpxSignedWords>(function);
    expect_naive_dpx<std::int16_t, DpxSignedHalves>(function);
    if (function >= kFirstRelu && function < kChooseMax) return;  // of signed numbers only
    expect_naive_dpx<std::uint32_t, DpxUnsignedWords>(function);
    expect_naive_dpx<std::uint16_t, DpxUnsignedHalves>(function);
}

INSTANTIATE_TEST_SUITE_P(AllFunctions, DpxFunctions, ::testing::Range(0, static_cast<int>(kDpxCount)));

// ---- Memory -------------------------------------------------------------------------------------

__global__ void load_and_store(Checks check, float4* memory) {
    __stwb(&memory[0], make_float4(1, 2, 3, 4));
    __stcg(&memory[1], make_float4(5, 6, 7, 8));
    __stcs(&memory[2].x, 9.0f);
    __stwt(&memory[2].y, 10.0f);
    check.equal(__ldcg(&memory[0]).y, 2.0f);
    check.equal(__ldca(&memory[1]).w, 8.0f);
    check.equal(__ldcs(&memory[2].x), 9.0f);
    check.equal(__ldlu(&memory[2].y), 10.0f);
    check.equal(__ldcv(&memory[0].z), 3.0f);
}

struct ThroughTheReadOnlyCache {
    const double2* table;
    __device__ double operator()(int i) const { return __ldg(&table[i]).x + __ldg(&table[i].y); }
};

TEST(CacheHints, LoadAndStore) {
    DeviceVector<float4> memory(3);
    run_checks(load_and_store, memory.data());
}

TEST(CacheHints, ReadOnlyLoads) {
    DeviceVector<double2> table(std::vector<double2>{{1, 2}, {3, 4}, {5, 6}});
    const std::vector<double> sums =
        map_on_device<double>(ThroughTheReadOnlyCache{table.data()}, std::vector<int>{2, 0, 1});
    EXPECT_EQ(sums, (std::vector<double>{11, 3, 7}));
}

__global__ void give_hints(Checks check) {
    const int one = static_cast<int>(blockDim.x);
    __builtin_assume(one == 1);
    __nanosleep(20);
    check.equal(one, 1);
}
TEST(Hints, ChangeNothing) {
    run_checks(give_hints);
}

}  // namespace

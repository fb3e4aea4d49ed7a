// __half and __nv_bfloat16. All conversions and operations are compared to the bit with a reference
// that knows nothing of exponents and mantissas: the sorted table of all values of the type.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "on_device.cuh"

namespace {

using Bits = unsigned short;

// __hfma of __nv_bfloat16 came with Ampere.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define HAS_FUSED_BFLOAT16 1
#else
#define HAS_FUSED_BFLOAT16 0
#endif
constexpr int kFusedBfloat16 = 80;

// Words that random inputs are made from. On a CPU the reference takes seconds for the larger
// number, and what is rare among them is made on purpose: see telling_floats() and break_ties().
#ifdef CUDA_ON_CPU
constexpr std::size_t kRandomWords = 20'000;
#else
constexpr std::size_t kRandomWords = 100'000;
#endif

// ---- The two types under one set of names -------------------------------------------------------

struct Half {
    using Type = __half;
    using Pair = __half2;
    static constexpr int kMantissaBits = 10;
    static constexpr int kExponentBits = 5;
    static __device__ Type from(Bits bits) { return __ushort_as_half(bits); }
    static __device__ Bits bits(Type x) { return __half_as_ushort(x); }
    static __device__ float to_float(Type x) { return __half2float(x); }
    static __device__ Type nearest(float x) { return __float2half_rn(x); }
    static __device__ Type toward_zero(float x) { return __float2half_rz(x); }
    static __device__ Type up(float x) { return __float2half_ru(x); }
    static __device__ Type down(float x) { return __float2half_rd(x); }
    static __device__ Type from_double(double x) { return __double2half(x); }
    static __device__ Type from_int(int x) { return __int2half_rn(x); }
    static __device__ Type from_int_up(int x) { return __int2half_ru(x); }
    static __device__ Type from_wide(long long x) { return __ll2half_rn(x); }
    static __device__ int to_int(Type x) { return __half2int_rd(x); }
    static __device__ unsigned to_unsigned(Type x) { return __half2uint_rn(x); }
    static __device__ short to_short(Type x) { return __half2short_rz(x); }
    static __device__ Pair pair(Type x, Type y) { return __halves2half2(x, y); }
    static __device__ Type low(Pair p) { return __low2half(p); }
    static __device__ Type high(Pair p) { return __high2half(p); }
};

struct Bfloat {
    using Type = __nv_bfloat16;
    using Pair = __nv_bfloat162;
    static constexpr int kMantissaBits = 7;
    static constexpr int kExponentBits = 8;
    static __device__ Type from(Bits bits) { return __ushort_as_bfloat16(bits); }
    static __device__ Bits bits(Type x) { return __bfloat16_as_ushort(x); }
    static __device__ float to_float(Type x) { return __bfloat162float(x); }
    static __device__ Type nearest(float x) { return __float2bfloat16_rn(x); }
    static __device__ Type toward_zero(float x) { return __float2bfloat16_rz(x); }
    static __device__ Type up(float x) { return __float2bfloat16_ru(x); }
    static __device__ Type down(float x) { return __float2bfloat16_rd(x); }
    static __device__ Type from_double(double x) { return __double2bfloat16(x); }
    static __device__ Type from_int(int x) { return __int2bfloat16_rn(x); }
    static __device__ Type from_int_up(int x) { return __int2bfloat16_ru(x); }
    static __device__ Type from_wide(long long x) { return __ll2bfloat16_rn(x); }
    static __device__ int to_int(Type x) { return __bfloat162int_rd(x); }
    static __device__ unsigned to_unsigned(Type x) { return __bfloat162uint_rn(x); }
    static __device__ short to_short(Type x) { return __bfloat162short_rz(x); }
    static __device__ Pair pair(Type x, Type y) { return __halves2bfloat162(x, y); }
    static __device__ Type low(Pair p) { return __low2bfloat16(p); }
    static __device__ Type high(Pair p) { return __high2bfloat16(p); }
};

template <class Kind>
class SmallFloats : public ::testing::Test {};
using Kinds = ::testing::Types<Half, Bfloat>;
TYPED_TEST_SUITE(SmallFloats, Kinds);

// ---- The reference ------------------------------------------------------------------------------

constexpr Bits kNan = 0x7fff;
enum class Direction { kNearest, kTowardZero, kUp, kDown };

// A number, and what long double could not hold of it.
struct Exact {
    long double value;
    long double rest = 0.0l;
};

template <class Kind>
class Table {
  public:
    // Positive numbers ascend with their bits; the infinity counts as the next power of two when
    // numbers are rounded.
    Table() {
        const int bias = (1 << (Kind::kExponentBits - 1)) - 1;
        const int infinity = ((1 << Kind::kExponentBits) - 1) << Kind::kMantissaBits;
        for (int bits = 0; bits <= infinity; ++bits) {
            const int exponent = bits >> Kind::kMantissaBits;
            const int mantissa = bits & ((1 << Kind::kMantissaBits) - 1);
            const int leading = exponent > 0 ? 1 << Kind::kMantissaBits : 0;
            magnitudes_.push_back(
                std::ldexp(mantissa + leading, std::max(exponent, 1) - bias - Kind::kMantissaBits));
        }
    }

    Bits infinity() const { return static_cast<Bits>(magnitudes_.size() - 1); }

    double value(Bits bits) const {
        const Bits magnitude = bits & 0x7fff;
        if (magnitude > infinity()) return std::numeric_limits<double>::quiet_NaN();
        const double result = magnitude == infinity() ? INFINITY : magnitudes_[magnitude];
        return bits >> 15 != 0 ? -result : result;
    }

    Bits round(Exact exact, Direction direction = Direction::kNearest) const {
        if (std::isnan(exact.value)) return kNan;
        const bool negative = std::signbit(exact.value);
        const long double magnitude = std::fabs(exact.value);
        const long double rest = negative ? -exact.rest : exact.rest;
        const bool away = direction == (negative ? Direction::kDown : Direction::kUp);
        std::size_t index = first_not_below(magnitude);
        if (index == magnitudes_.size()) {
            const bool finite = direction != Direction::kNearest && !away && !std::isinf(exact.value);
            index = infinity() - (finite ? 1u : 0u);
        } else if (magnitudes_[index] != magnitude) {
            const long double to_above = magnitudes_[index] - magnitude;
            const long double to_below = magnitude - magnitudes_[index - 1];
            const bool tie = to_below == to_above;
            const bool below_is_nearer =
                tie ? rest < 0 || (!(rest > 0) && index % 2 == 1) : to_below < to_above;
            const bool go_below = direction == Direction::kNearest ? below_is_nearer : !away;
            if (go_below) --index;
        } else if (index == infinity() && direction != Direction::kNearest && !away) {
            --index;  // just the power of two that the infinity counts as
        }
        return static_cast<Bits>(index | (negative ? 0x8000u : 0u));
    }

  private:
    // std::lower_bound() by hand: this file is compiled without optimisation, and a search is what
    // most of its time goes to.
    std::size_t first_not_below(long double magnitude) const {
        const double* const values = magnitudes_.data();
        std::size_t begin = 0;
        for (std::size_t count = magnitudes_.size(); count > 0;) {
            const std::size_t half = count / 2;
            if (values[begin + half] < magnitude) {
                begin += half + 1;
                count -= half + 1;
            } else {
                count = half;
            }
        }
        return begin;
    }

    std::vector<double> magnitudes_;
};

template <class Kind>
const Table<Kind>& table() {
    static const Table<Kind> instance;
    return instance;
}

// Bits with the same value: all NaNs are the same.
template <class Kind>
Bits canonical(Bits bits) {
    return (bits & 0x7fff) > table<Kind>().infinity() ? kNan : bits;
}

template <class Kind, class In, class Reference>
void expect_bits(const std::vector<Bits>& got, const std::vector<In>& inputs, Reference reference) {
    int wrong = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Bits expected = reference(inputs[i]);
        if (canonical<Kind>(got[i]) == canonical<Kind>(expected)) continue;
        if (wrong++ < 5)
            ADD_FAILURE() << std::hex << "input " << i << ": got " << got[i] << ", expected " << expected;
    }
    EXPECT_EQ(wrong, 0) << "seed " << kSeed;
}

std::vector<Bits> all_bits() {
    std::vector<Bits> bits(65536);
    for (std::size_t i = 0; i < bits.size(); ++i)
        bits[i] = static_cast<Bits>(i);
    return bits;
}

// ---- Conversions --------------------------------------------------------------------------------

template <class Kind>
struct ThereAndBack {
    __device__ Bits operator()(Bits bits) const {
        return Kind::bits(Kind::nearest(Kind::to_float(Kind::from(bits))));
    }
};
template <class Kind>
struct Widen {
    __device__ float operator()(Bits bits) const { return Kind::from(bits); }
};

TYPED_TEST(SmallFloats, AllOfThemSurviveTheRoundTrip) {
    const std::vector<Bits> inputs = all_bits();
    expect_bits<TypeParam>(map_on_device<Bits>(ThereAndBack<TypeParam>{}, inputs), inputs,
                           [](Bits bits) { return bits; });
    const std::vector<float> wide = map_on_device<float>(Widen<TypeParam>{}, inputs);
    for (Bits bits : inputs) {
        const double expected = table<TypeParam>().value(bits);
        ASSERT_TRUE(agrees(wide[bits], expected, 0.0)) << std::hex << bits;
    }
}

// Random floats, of all sizes and of those near the type's own range; and every number of the type,
// every midpoint between two neighbours, and what is one float beside either.
template <class Kind>
std::vector<float> telling_floats() {
    std::vector<float> floats = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3.40282347e38f};
    for (std::uint32_t word : random_words(2 * kRandomWords)) {
        float any;
        std::memcpy(&any, &word, sizeof any);
        floats.push_back(any);
        floats.push_back(std::ldexp(1.0f + static_cast<float>(word & 0x7fffff) / 8388608.0f,
                                    static_cast<int>(word >> 23) % 48 - 30));
    }
    for (Bits bits = 0; bits < table<Kind>().infinity(); ++bits) {
        const float number = static_cast<float>(table<Kind>().value(bits));
        const double next =
            bits + 1 < table<Kind>().infinity() ? table<Kind>().value(bits + 1) : 2.0 * number;
        const float middle = static_cast<float>((number + next) / 2);
        for (float x : {number, middle, -middle}) {
            floats.insert(floats.end(), {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)});
        }
    }
    return floats;
}

template <class Kind, Direction kDirection>
struct Narrow {
    __device__ Bits operator()(float x) const {
        switch (kDirection) {
            case Direction::kNearest:
                return Kind::bits(Kind::nearest(x));
            case Direction::kTowardZero:
                return Kind::bits(Kind::toward_zero(x));
            case Direction::kUp:
                return Kind::bits(Kind::up(x));
            case Direction::kDown:
                return Kind::bits(Kind::down(x));
        }
        return 0;
    }
};

template <class Kind>
struct Construct {
    __device__ Bits operator()(float x) const { return Kind::bits(typename Kind::Type(x)); }
};

template <class Kind, Direction kDirection>
void expect_narrowed(const std::vector<float>& inputs) {
    expect_bits<Kind>(map_on_device<Bits>(Narrow<Kind, kDirection>{}, inputs), inputs,
                      [](float x) { return table<Kind>().round({x}, kDirection); });
}

TYPED_TEST(SmallFloats, FloatsRoundAsAsked) {
    const std::vector<float> inputs = telling_floats<TypeParam>();
    expect_narrowed<TypeParam, Direction::kNearest>(inputs);
    expect_narrowed<TypeParam, Direction::kTowardZero>(inputs);
    expect_narrowed<TypeParam, Direction::kUp>(inputs);
    expect_narrowed<TypeParam, Direction::kDown>(inputs);
    expect_bits<TypeParam>(map_on_device<Bits>(Construct<TypeParam>{}, inputs), inputs,
                           [](float x) { return table<TypeParam>().round({x}); });
}

template <class Kind>
struct NarrowDouble {
    __device__ Bits operator()(double x) const { return Kind::bits(Kind::from_double(x)); }
};
template <class Kind>
struct NarrowInt {
    __device__ Bits operator()(int x) const { return Kind::bits(Kind::from_int(x)); }
};
template <class Kind>
struct NarrowIntUp {
    __device__ Bits operator()(int x) const { return Kind::bits(Kind::from_int_up(x)); }
};
template <class Kind>
struct NarrowWide {
    __device__ Bits operator()(long long x) const { return Kind::bits(Kind::from_wide(x)); }
};

TYPED_TEST(SmallFloats, DoublesRoundOnce) {
    std::vector<double> inputs = {1e300, -1e-300, NAN, -INFINITY};
    const Table<TypeParam>& values = table<TypeParam>();
    for (Bits bits = 0; bits + 1 < values.infinity(); bits = static_cast<Bits>(bits + 7)) {
        const double middle = (values.value(bits) + values.value(bits + 1)) / 2;
        inputs.insert(inputs.end(),
                      {middle, std::nextafter(middle, INFINITY), std::nextafter(middle, 0.0), -middle});
    }
    expect_bits<TypeParam>(map_on_device<Bits>(NarrowDouble<TypeParam>{}, inputs), inputs,
                           [&](double x) { return values.round({x}); });
}

TYPED_TEST(SmallFloats, IntegersRoundOnce) {
    std::vector<int> inputs = {0,     1,   -1,       2049,       -2049,          65519,
                               65520, 257, 16842753, 2147483647, -2147483647 - 1};
    for (std::uint32_t word : random_words(20'000))
        inputs.push_back(static_cast<int>(word) >> word % 32);
    const auto nearest = [](int x) { return table<TypeParam>().round({static_cast<long double>(x)}); };
    const auto up = [](int x) {
        return table<TypeParam>().round({static_cast<long double>(x)}, Direction::kUp);
    };
    expect_bits<TypeParam>(map_on_device<Bits>(NarrowInt<TypeParam>{}, inputs), inputs, nearest);
    expect_bits<TypeParam>(map_on_device<Bits>(NarrowIntUp<TypeParam>{}, inputs), inputs, up);
    const long long tie = (1ll << 62) + (1ll << 54);  // halfway between two adjacent bfloat16
    const std::vector<long long> wide = {tie, tie + 1, -tie - 1, tie - 1, 5, 1ll << 40, -2049};
    expect_bits<TypeParam>(map_on_device<Bits>(NarrowWide<TypeParam>{}, wide), wide, [](long long x) {
        return table<TypeParam>().round({static_cast<long double>(x)});
    });
}

struct Integers {
    int floor;
    unsigned nearest;
    short truncated;
};
template <class Kind>
struct ToIntegers {
    __device__ Integers operator()(Bits bits) const {
        const typename Kind::Type x = Kind::from(bits);
        return {Kind::to_int(x), Kind::to_unsigned(x), Kind::to_short(x)};
    }
};

double clamped(double x, double low, double high) {
    return std::isnan(x) ? 0.0 : std::min(std::max(x, low), high);
}

TYPED_TEST(SmallFloats, ToIntegersSaturate) {
    const std::vector<Bits> inputs = all_bits();
    const std::vector<Integers> got = map_on_device<Integers>(ToIntegers<TypeParam>{}, inputs);
    for (Bits bits : inputs) {
        const double x = table<TypeParam>().value(bits);
        ASSERT_EQ(got[bits].floor, static_cast<int>(clamped(std::floor(x), -2147483648.0, 2147483647.0)))
            << bits;
        ASSERT_EQ(got[bits].nearest, static_cast<unsigned>(clamped(std::nearbyint(x), 0.0, 4294967295.0)))
            << bits;
        ASSERT_EQ(got[bits].truncated, static_cast<short>(clamped(std::trunc(x), -32768.0, 32767.0))) << bits;
    }
}

// ---- Arithmetic ---------------------------------------------------------------------------------

struct Three {
    Bits a, b, c;
};

// Random bits, so all sizes, NaN and infinities; numbers close in size, where sums do not just
// drown; and products about as small as the smallest numbers.
template <class Kind>
std::vector<Three> random_threes(std::size_t count) {
    constexpr int kBias = (1 << (Kind::kExponentBits - 1)) - 1;
    std::vector<Three> threes;
    for (std::uint32_t word : random_words(count)) {
        const Bits a = static_cast<Bits>(word);
        const Bits b = static_cast<Bits>(word >> 16);
        const Bits c = static_cast<Bits>(word >> 7 ^ word << 3);
        threes.push_back({a, b, c});
        threes.push_back({a, static_cast<Bits>(a ^ (b & 0x83ff)), static_cast<Bits>(a ^ (c & 0x87ff))});
        const int exponent_of_a = (a & 0x7fff) >> Kind::kMantissaBits;
        const int exponent =
            std::max(0, kBias - exponent_of_a - static_cast<int>(word % (Kind::kMantissaBits + 3)));
        const Bits mantissa = b & ((1 << Kind::kMantissaBits) - 1);
        const Bits partner = static_cast<Bits>(exponent << Kind::kMantissaBits | mantissa);
        threes.push_back({a, partner, static_cast<Bits>(c & 0x80ff)});
    }
    return threes;
}

enum class Operation {
    kAdd,
    kSub,
    kMul,
    kDiv,
    kFma,
    kPairAdd,
    kPairMul,
    kPairFma,
    kSaturatedAdd,
    kRelu,
    kMax,
    kMaxNan,
    kMin
};

template <class Kind>
struct Compute {
    Operation operation;

    __device__ Bits operator()(Three three) const {
        const typename Kind::Type a = Kind::from(three.a);
        const typename Kind::Type b = Kind::from(three.b);
        const typename Kind::Type c = Kind::from(three.c);
        const typename Kind::Pair aa = Kind::pair(c, a);
        const typename Kind::Pair bb = Kind::pair(c, b);
        const typename Kind::Pair cc = Kind::pair(a, c);
        switch (operation) {
            case Operation::kAdd:
                return Kind::bits(a + b);
            case Operation::kSub:
                return Kind::bits(__hsub(a, b));
            case Operation::kMul:
                return Kind::bits(__hmul(a, b));
            case Operation::kDiv:
                return Kind::bits(a / b);
            case Operation::kPairAdd:
                return Kind::bits(Kind::high(__hadd2(aa, bb)));
            case Operation::kPairMul:
                return Kind::bits(Kind::high(aa * bb));
            case Operation::kSaturatedAdd:
                return Kind::bits(__hadd_sat(a, b));
            case Operation::kMax:
                return Kind::bits(__hmax(a, b));
            case Operation::kMaxNan:
                return Kind::bits(__hmax_nan(a, b));
            case Operation::kMin:
                return Kind::bits(Kind::low(__hmin2(Kind::pair(a, c), Kind::pair(b, c))));
#if HAS_FUSED_BFLOAT16
            case Operation::kFma:
                return Kind::bits(__hfma(a, b, c));
            case Operation::kPairFma:
                return Kind::bits(Kind::high(__hfma2(aa, bb, cc)));
            case Operation::kRelu:
                return Kind::bits(__hfma_relu(a, b, c));
#endif
            default:
                break;
        }
        return 0;
    }
};

long double larger(long double a, long double b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}

// The rest by Knuth's TwoSum.
Exact fused(long double a, long double b, long double c) {
    const long double product = a * b;  // of two small numbers: exact
    const long double sum = product + c;
    const long double part_of_c = sum - product;
    return {sum, (product - (sum - part_of_c)) + (c - part_of_c)};
}

template <class Kind>
Exact exact_result(Operation operation, Three three) {
    const long double a = table<Kind>().value(three.a);
    const long double b = table<Kind>().value(three.b);
    const long double c = table<Kind>().value(three.c);
    switch (operation) {
        case Operation::kAdd:
        case Operation::kPairAdd:
            return {a + b};
        case Operation::kSub:
            return {a - b};
        case Operation::kMul:
        case Operation::kPairMul:
            return {a * b};
        case Operation::kDiv:
            return {a / b};
        case Operation::kFma:
        case Operation::kPairFma:
            return fused(a, b, c);
        case Operation::kSaturatedAdd:
            return {std::isnan(a + b) ? 0.0l : std::min(std::max(a + b, 0.0l), 1.0l)};
        case Operation::kRelu:
            return fused(a, b, c).value <= 0.0l ? Exact{0.0l} : fused(a, b, c);
        case Operation::kMax:
            return {larger(a, b)};
        case Operation::kMaxNan:
            return {std::isnan(a) || std::isnan(b) ? std::numeric_limits<long double>::quiet_NaN()
                                                   : larger(a, b)};
        case Operation::kMin:
            return {-larger(-a, -b)};
    }
    return {0.0l};
}

TYPED_TEST(SmallFloats, ArithmeticRoundsOnce) {
    if (compute_capability() < kFusedBfloat16) {
        GTEST_SKIP() << "needs a GPU that fuses bfloat16 (compute capability 8.0); this one has "
                     << compute_capability();
    }
    const std::vector<Three> inputs = random_threes<TypeParam>(kRandomWords);
    for (Operation operation :
         {Operation::kAdd, Operation::kSub, Operation::kMul, Operation::kFma, Operation::kPairAdd,
          Operation::kPairMul, Operation::kPairFma, Operation::kSaturatedAdd, Operation::kRelu,
          Operation::kMax, Operation::kMaxNan, Operation::kMin}) {
        SCOPED_TRACE("operation " + std::to_string(static_cast<int>(operation)));
        expect_bits<TypeParam>(
            map_on_device<Bits>(Compute<TypeParam>{operation}, inputs), inputs,
            [&](Three three) { return table<TypeParam>().round(exact_result<TypeParam>(operation, three)); });
    }
}

// A GPU divides by way of a reciprocal; ours rounds once. So here the last bit may differ, and no
// more.
TYPED_TEST(SmallFloats, QuotientsAreWithinTheLastBit) {
    const std::vector<Three> inputs = random_threes<TypeParam>(kRandomWords);
    const std::vector<Bits> got = map_on_device<Bits>(Compute<TypeParam>{Operation::kDiv}, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Bits expected = table<TypeParam>().round(exact_result<TypeParam>(Operation::kDiv, inputs[i]));
        const int difference = std::abs(canonical<TypeParam>(got[i]) - canonical<TypeParam>(expected));
        ASSERT_LE(difference, 1) << std::hex << inputs[i].a << " / " << inputs[i].b;
    }
}

__global__ void break_ties_far_below(Checks check) {
#if HAS_FUSED_BFLOAT16
    // The product lies halfway between two numbers, c far below the last bit that even a double
    // would have.
    const __nv_bfloat16 a = __float2bfloat16(1.0f + 1.0f / 16);
    const float tie = 1.0f + 1.0f / 8 + 1.0f / 256;
    const float tiny = 7.888609e-31f;
    check.equal(static_cast<float>(__hfma(a, a, __float2bfloat16(0.0f))), tie - 1.0f / 256);
    check.equal(static_cast<float>(__hfma(a, a, __float2bfloat16(tiny))), tie + 1.0f / 256);
    check.equal(static_cast<float>(__hfma(a, a, __float2bfloat16(-tiny))), tie - 1.0f / 256);
    check.equal(
        __high2float(__hfma2(__bfloat162bfloat162(a), __bfloat162bfloat162(a), __float2bfloat162_rn(tiny))),
        tie + 1.0f / 256);
#endif
}

// 1/2048 is half of the last bit of 1. A float has no bit for the tie and 2^-24, the smallest c.
__global__ void break_ties(Checks check) {
    const __half a = __float2half(1.0f + 1.0f / 32);
    const __half b = __float2half(1.0f + 1.0f / 64);
    const float below = 1.0f + 1.0f / 32 + 1.0f / 64;
    const float tiny = 1.0f / (1 << 24);
    check.equal(__half2float(__hfma(a, b, __float2half(0.0f))), below);
    check.equal(__half2float(__hfma(a, b, __float2half(tiny))), below + 1.0f / 1024);
    check.equal(__half2float(__hfma(a, b, __float2half(-tiny))), below);
    check.equal(__high2float(__hfma2(__half2half2(a), __half2half2(b), __float2half2_rn(tiny))),
                below + 1.0f / 1024);
}
TEST(Half, FusedMultiplyAddRoundsOnce) {
    run_checks(break_ties);
}

TEST(Bfloat16, FusedMultiplyAddRoundsOnce) {
    if (compute_capability() < kFusedBfloat16) {
        GTEST_SKIP() << "needs a GPU that fuses bfloat16 (compute capability 8.0); this one has "
                     << compute_capability();
    }
    run_checks(break_ties_far_below);
}

// ---- Comparisons, functions, pairs --------------------------------------------------------------

template <class Kind>
__global__ void compare_numbers(Checks check) {
    using Type = typename Kind::Type;
    using Pair = typename Kind::Pair;
    const Type one = Kind::nearest(1.0f);
    const Type two = Kind::nearest(2.0f);
    const Type nan = Kind::from(kNan);
    const Type zero = Kind::nearest(0.0f);
    const Type minus_zero = Kind::nearest(-0.0f);
    check.equal(__heq(one, one) && __hne(one, two) && __hlt(one, two) && __hle(one, one) && __hgt(two, one) &&
                    __hge(two, two),
                true);
    check.equal(__heq(nan, nan) || __hne(nan, one) || __hlt(nan, one) || __hle(nan, one) || __hgt(nan, one) ||
                    __hge(nan, one),
                false);
    check.equal(__hequ(nan, nan) && __hneu(nan, one) && __hltu(nan, one) && __hleu(nan, one) &&
                    __hgtu(nan, one) && __hgeu(one, nan),
                true);
    check.equal(one == one && one != two && one < two && two >= one && zero == minus_zero, true);
    check.equal(nan == nan, false);
    check.equal(nan != nan, true);
    const Pair a = Kind::pair(one, nan);
    const Pair b = Kind::pair(one, two);
    check.equal(Kind::to_float(Kind::low(__heq2(a, b))), 1.0f);
    check.equal(Kind::to_float(Kind::high(__heq2(a, b))), 0.0f);
    check.equal(Kind::to_float(Kind::high(__hequ2(a, b))), 1.0f);
    check.equal(__hbeq2(a, b), false);
    check.equal(__hbequ2(a, b), true);
    check.equal(__hble2(b, b), true);
    check.equal(__hbgt2(b, b), false);
    check.equal(__heq2_mask(a, b), 0xffffu);
    check.equal(__hneu2_mask(a, b), 0xffff0000u);
    check.equal(b == b, true);
    check.equal(__hisnan(nan) && !__hisnan(one), true);
    check.equal(Kind::to_float(Kind::high(__hisnan2(a))), 1.0f);
    check.equal(Kind::bits(__hmax(zero, minus_zero)), 0);
    check.equal(Kind::bits(__hmin(zero, minus_zero)), 0x8000);
    check.equal(Kind::bits(__hneg(zero)), 0x8000);
    check.equal(Kind::to_float(__habs(Kind::nearest(-3.0f))), 3.0f);
    check.equal(Kind::to_float(-two), -2.0f);
}

TYPED_TEST(SmallFloats, CompareWithAndWithoutNan) {
    run_checks(compare_numbers<TypeParam>);
}

template <class Kind>
__global__ void call_functions(Checks check) {
    using Type = typename Kind::Type;
    const auto value = [](Type x) { return Kind::to_float(x); };
    const Type x = Kind::nearest(0.75f);
    constexpr double kRelative = Kind::kMantissaBits == 10 ? 2e-3 : 1.6e-2;
    check.near(value(hexp(x)), 2.117000016612675, kRelative);
    check.near(value(hexp2(x)), 1.681792830507429, kRelative);
    check.near(value(hexp10(x)), 5.623413251903491, kRelative);
    check.near(value(hlog(x)), -0.2876820724517809, kRelative);
    check.near(value(hlog2(x)), -0.4150374992788438, kRelative);
    check.near(value(hlog10(x)), -0.1249387366082999, kRelative);
    check.near(value(hsqrt(x)), 0.8660254037844386, kRelative);
    check.near(value(hrsqrt(x)), 1.154700538379252, kRelative);
    check.near(value(hrcp(x)), 1.333333333333333, kRelative);
    check.near(value(hsin(x)), 0.6816387600233342, kRelative);
    check.near(value(hcos(x)), 0.7316888688738209, kRelative);
    const Type y = Kind::nearest(-2.5f);
    check.equal(value(hceil(y)), -2.0f);
    check.equal(value(hfloor(y)), -3.0f);
    check.equal(value(htrunc(y)), -2.0f);
    check.equal(value(hrint(y)), -2.0f);
    const typename Kind::Pair pair = Kind::pair(Kind::nearest(4.0f), Kind::nearest(16.0f));
    check.near(value(Kind::high(h2sqrt(pair))), 4.0, kRelative);
    check.near(value(Kind::low(h2rsqrt(pair))), 0.5, kRelative);
    check.equal(value(Kind::high(h2floor(pair))), 16.0f);
    check.near(value(Kind::low(h2exp2(pair))), 16.0, kRelative);
    check.equal(value(hlog2(Kind::nearest(0.0f))), -INFINITY);
    check.equal(value(hsqrt(y)), NAN);
    check.equal(__hisinf(hrcp(Kind::nearest(-0.0f))), -1);
}

TYPED_TEST(SmallFloats, FunctionsAreNearTheTruth) {
    run_checks(call_functions<TypeParam>);
}

__global__ void take_pairs_apart(Checks check) {
    const __half2 a = __floats2half2_rn(1.0f, 2.0f);
    const __half2 b = __float22half2_rn(make_float2(3.0f, 4.0f));
    check.equal(__low2float(a), 1.0f);
    check.equal(__high2float(b), 4.0f);
    check.equal(__half22float2(__lows2half2(a, b)).y, 3.0f);
    check.equal(__half22float2(__highs2half2(a, b)).x, 2.0f);
    check.equal(__low2float(__lowhigh2highlow(a)), 2.0f);
    check.equal(__high2float(__low2half2(b)), 3.0f);
    check.equal(__low2float(__high2half2(b)), 4.0f);
    check.equal(__high2float(__half2half2(__low2half(a))), 1.0f);
    check.equal(__low2float(__float2half2_rn(0.5f)), 0.5f);
    check.equal(__half2float(make_half2(a.y, b.x).x), 2.0f);
    check.equal(__high2float(__hneg2(a)), -2.0f);
    check.equal(__low2float(__h2div(a, b)), 0.333251953125f);
    check.equal(__high2float(__hcmadd(a, b, a)), 1 * 4 + 2 * 3 + 2.0f);
    const __nv_bfloat162 c = __floats2bfloat162_rn(1.0f, 2.0f);
    const __nv_bfloat162 d = __float22bfloat162_rn(make_float2(3.0f, 4.0f));
    check.equal(__bfloat1622float2(__lows2bfloat162(c, d)).y, 3.0f);
    check.equal(__bfloat1622float2(__highs2bfloat162(c, d)).x, 2.0f);
    check.equal(__high2float(__low2bfloat162(d)), 3.0f);
    check.equal(__high2float(__bfloat162bfloat162(__high2bfloat16(d))), 4.0f);
    check.equal(__low2float(__float2bfloat162_rn(0.5f)), 0.5f);
    check.equal(__low2float(c + d), 4.0f);
    // What tensor cores take: a pair as a word, its first number in the low half.
    const __half2 e = __float22half2_rn(make_float2(1.0f, -2.0f));
    const __nv_bfloat162 f = __floats2bfloat162_rn(1.0f, -2.0f);
    check.equal(*reinterpret_cast<const unsigned*>(&e), 0xc0003c00u);
    check.equal(*reinterpret_cast<const unsigned*>(&f), 0xc0003f80u);
    const unsigned words[2] = {0x3c00c000u, 0x3f80c000u};
    check.equal(__half22float2(*reinterpret_cast<const __half2*>(words)).x, -2.0f);
    check.equal(__bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(words + 1)).y, 1.0f);
    check.equal(__half2float(CUDART_INF_FP16), INFINITY);
    check.equal(__bfloat162float(CUDART_ONE_BF16), 1.0f);
}
TEST(Pairs, ArePutTogetherAndTakenApart) {
    run_checks(take_pairs_apart);
}

__device__ unsigned short half_in_global_memory_bits = 0x3e00;  // 1.5: __ldg takes global addresses only

__global__ void write_numbers_naturally(Checks check) {
    __half h = 1.5f;
    h += __half(2);
    h *= __half(2.0);
    check.equal(static_cast<float>(h), 7.0f);
    h++;
    --h;
    const int truncated = static_cast<int>(h / __half(2.0f));
    check.equal(truncated, 3);
    const float widened = h;
    check.equal(widened, 7.0f);
    h = 0.25f;
    check.equal(h ? 1 : 0, 1);
    __nv_bfloat16 b = __nv_bfloat16(h);
    b -= __nv_bfloat16(1.0f);
    check.equal(static_cast<float>(b), -0.75f);
    const half array[2] = {1.0f, h};
    check.equal(__half2float(array[1]), 0.25f);
    check.equal(__half2float(__ldg(reinterpret_cast<const __half*>(&half_in_global_memory_bits))), 1.5f);
}

static_assert(sizeof(__half) == 2 && alignof(__half) == 2 && sizeof(__half2) == 4 && alignof(__half2) == 4);
static_assert(std::is_trivially_copyable_v<__half> && std::is_trivially_default_constructible_v<__half>);
static_assert(std::is_same_v<half, __half> && std::is_same_v<nv_bfloat162, __nv_bfloat162>);

TEST(Numbers, AreWrittenNaturally) {
    run_checks(write_numbers_naturally);
}

// ---- Atomics ------------------------------------------------------------------------------------

struct Sums {
    __half h;
    __nv_bfloat16 b;
    __half2 hh;
    __nv_bfloat162 bb;
};

__global__ void add_atomically(Sums* sums) {
    atomicAdd(&sums->h, __float2half(1.0f));
    atomicAdd(&sums->b, __float2bfloat16(0.5f));
    atomicAdd(&sums->hh, __floats2half2_rn(1.0f, 2.0f));
    atomicAdd(&sums->bb, __floats2bfloat162_rn(-1.0f, 0.5f));
}

TEST(Atomics, AddSmallFloats) {
    DeviceVector<Sums> sums(std::vector<Sums>(1, Sums{0.0f, 0.0f, {0.0f, 0.0f}, {0.0f, 0.0f}}));
    add_atomically<<<4, 64>>>(sums.data());  // 256 additions, exact in both types
    const Sums got = sums.to_host()[0];
    EXPECT_EQ(static_cast<float>(got.h), 256.0f);
    EXPECT_EQ(static_cast<float>(got.b), 128.0f);
    EXPECT_EQ(static_cast<float>(got.hh.x), 256.0f);
    EXPECT_EQ(static_cast<float>(got.hh.y), 512.0f);
    EXPECT_EQ(static_cast<float>(got.bb.x), -256.0f);
    EXPECT_EQ(static_cast<float>(got.bb.y), 128.0f);
}

}  // namespace

// Mathematical functions against long double references on the host, and the rounding intrinsics to
// the last bit.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <math_constants.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <type_traits>

#include "on_device.cuh"

namespace {

// ---- min, max -----------------------------------------------------------------------------------

__global__ void take_extremes(Checks check) {
    check.equal(min(-3, 2), -3);
    check.equal(max(-3, 2), 2);
    check.equal(max(-1, 1u), 0xffffffffu);
    check.equal(min(1u, -1), 1u);
    check.equal(max(1l << 40, 2l), 1l << 40);
    check.equal(min(1ll << 40, -2ll), -2ll);
    check.equal(max(-1ll, 1ull), ~0ull);
    check.equal(max(1.5f, 2.5f), 2.5f);
    check.equal(min(1.5f, 2.5), 1.5);
    check.equal(max(CUDART_NAN_F, 1.0f), 1.0f);
    check.equal(min(1.0, CUDART_NAN), 1.0);
    check.equal(fmaxf(CUDART_NAN_F, -1.0f), -1.0f);
    check.equal(fmin(CUDART_NAN, CUDART_NAN), CUDART_NAN);
    check.equal(abs(-3), 3);
    check.equal(abs(-3.5f), 3.5f);
    check.equal(llabs(-(1ll << 40)), 1ll << 40);
    check.equal(fabs(-2.5), 2.5);
    check.equal(isnan(CUDART_NAN_F) && !isnan(1.0) && isinf(CUDART_INF) && !isinf(1.0f), true);
    check.equal(isfinite(1.0f) && !isfinite(CUDART_INF_F) && signbit(-0.0f) && !signbit(0.0), true);
}
TEST(Extremes, NumbersAndNan) {
    run_checks(take_extremes);
}

static_assert(std::is_same_v<decltype(max(1, 1u)), unsigned int>);
static_assert(std::is_same_v<decltype(max(1l, 1ul)), unsigned long>);
static_assert(std::is_same_v<decltype(min(1.0f, 1.0)), double>);

namespace with_using_directive {
using namespace std;

__global__ void take_extremes_beside_std(Checks check) {
    const int a = 3;
    const int b = 4;
    check.equal(max(a, b), 4);
    check.equal(min(2.0f, 1.0f), 1.0f);
    check.equal(max(size_t{3}, size_t{5}), size_t{5});
    check.equal(abs(-1.5), 1.5);
}

int on_the_host(int a, int b) {
    return max(a, b) + std::max(a, b) + ::max(a, b);
}
}  // namespace with_using_directive

TEST(Extremes, BesideTheStandardOnes) {
    run_checks(with_using_directive::take_extremes_beside_std);
    EXPECT_EQ(with_using_directive::on_the_host(2, 7), 21);
    EXPECT_EQ(std::max<long>(3, 4), 4);
}

// ---- Rounding intrinsics ------------------------------------------------------------------------

// One result for each way of rounding.
struct Rounded {
    float nearest, zero, up, down;
};
struct Operands {
    float a, b, c;
};

// Fixed names for four functions that differ in the suffix.
#define ALL_ROUNDINGS(name, ...)                                                                       \
    Rounded {                                                                                          \
        name##_rn(__VA_ARGS__), name##_rz(__VA_ARGS__), name##_ru(__VA_ARGS__), name##_rd(__VA_ARGS__) \
    }
struct Add {
    __device__ Rounded operator()(Operands o) const { return ALL_ROUNDINGS(__fadd, o.a, o.b); }
    static long double exact(Operands o) { return static_cast<long double>(o.a) + o.b; }
};
struct Subtract {
    __device__ Rounded operator()(Operands o) const { return ALL_ROUNDINGS(__fsub, o.a, o.b); }
    static long double exact(Operands o) { return static_cast<long double>(o.a) - o.b; }
};
struct Multiply {
    __device__ Rounded operator()(Operands o) const { return ALL_ROUNDINGS(__fmul, o.a, o.b); }
    static long double exact(Operands o) { return static_cast<long double>(o.a) * o.b; }
};
struct FusedMultiplyAdd {
    __device__ Rounded operator()(Operands o) const { return ALL_ROUNDINGS(__fmaf, o.a, o.b, o.c); }
    static long double exact(Operands o) { return static_cast<long double>(o.a) * o.b + o.c; }
};
struct Divide {
    __device__ Rounded operator()(Operands o) const { return ALL_ROUNDINGS(__fdiv, o.a, o.b); }
    static long double exact(Operands o) { return static_cast<long double>(o.a) / o.b; }
};
struct Reciprocal {
    __device__ Rounded operator()(Operands o) const { return ALL_ROUNDINGS(__frcp, o.a); }
    static long double exact(Operands o) { return 1 / static_cast<long double>(o.a); }
};
struct SquareRoot {
    __device__ Rounded operator()(Operands o) const { return ALL_ROUNDINGS(__fsqrt, fabsf(o.a)); }
    static long double exact(Operands o) { return std::sqrt(std::fabs(static_cast<long double>(o.a))); }
};

// Random floats of moderate size, so that long double holds their sums and products exactly.
std::vector<Operands> random_operands(std::size_t count) {
    const std::vector<std::uint32_t> words = random_words(3 * count);
    const auto number = [](std::uint32_t word) {
        const float significand = 1.0f + static_cast<float>(word & 0x7fffff) / 8388608.0f;
        const float magnitude = std::ldexp(significand, static_cast<int>(word >> 23 & 7) - 4);
        return word >> 31 != 0 ? -magnitude : magnitude;
    };
    std::vector<Operands> operands(count);
    for (std::size_t i = 0; i < count; ++i) {
        operands[i] = {number(words[3 * i]), number(words[3 * i + 1]), number(words[3 * i + 2])};
    }
    return operands;
}

template <class Operation>
class RoundingIntrinsics : public ::testing::Test {};
using Operations =
    ::testing::Types<Add, Subtract, Multiply, FusedMultiplyAdd, Divide, Reciprocal, SquareRoot>;
TYPED_TEST_SUITE(RoundingIntrinsics, Operations);

TYPED_TEST(RoundingIntrinsics, AreExactToTheBit) {
    const std::vector<Operands> inputs = random_operands(50'000);
    const std::vector<Rounded> got = map_on_device<Rounded>(TypeParam{}, inputs);
    int inexact = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const long double exact = TypeParam::exact(inputs[i]);
        const float nearest = static_cast<float>(exact);
        const float up = nearest < exact ? std::nextafter(nearest, INFINITY) : nearest;
        const float down = nearest > exact ? std::nextafter(nearest, -INFINITY) : nearest;
        inexact += up != down;
        ASSERT_EQ(got[i].nearest, nearest) << "operands " << i << " of seed " << kSeed;
        ASSERT_EQ(got[i].up, up) << "operands " << i << " of seed " << kSeed;
        ASSERT_EQ(got[i].down, down) << "operands " << i << " of seed " << kSeed;
        ASSERT_EQ(got[i].zero, exact > 0 ? down : up) << "operands " << i << " of seed " << kSeed;
    }
    EXPECT_GT(inexact, 0);
}

__global__ void round_in_double(Checks check) {
    const double next = 1.0 + 2.220446049250313e-16;
    check.equal(__dadd_rn(hidden(1.0), 1e-30), 1.0);
    check.equal(__dadd_ru(hidden(1.0), 1e-30), next);
    check.equal(__dadd_rz(hidden(-1.0), -1e-30), -1.0);
    check.equal(__dadd_rd(hidden(-1.0), -1e-30), -next);
    check.equal(__dsub_rd(hidden(-1.0), 1e-30), -next);
    check.equal(__dmul_ru(hidden(next), next), 1.0 + 3 * 2.220446049250313e-16);
    check.equal(__dmul_rn(hidden(next), next), 1.0 + 2 * 2.220446049250313e-16);
    check.equal(__ddiv_ru(hidden(1.0), 3.0), 0.33333333333333337);
    check.equal(__ddiv_rd(hidden(1.0), 3.0), 0.3333333333333333);
    check.equal(__drcp_ru(hidden(3.0)), 0.33333333333333337);
    check.equal(__dsqrt_rd(hidden(2.0)), 1.4142135623730949);
    check.equal(__dsqrt_ru(hidden(2.0)), 1.4142135623730951);
    check.equal(__fma_rn(hidden(next), next, -1.0 - 2 * 2.220446049250313e-16), 4.930380657631324e-32);
    check.equal(__fma_rz(hidden(1.0), 1.0, 1e-30), 1.0);
    check.equal(__fma_ru(hidden(1.0), 1.0, 1e-30), next);
    check.equal(__fadd_ru(hidden(3.40282347e38f), 1.0f), CUDART_INF_F);
    check.equal(__fadd_rz(hidden(3.40282347e38f), 3.40282347e38f), 3.40282347e38f);
    check.equal(__fmul_ru(hidden(CUDART_MIN_DENORM_F), 0.25f), CUDART_MIN_DENORM_F);
    check.equal(__fmul_rn(hidden(CUDART_MIN_DENORM_F), 0.25f), 0.0f);
    check.equal(__fadd_rd(hidden(1.0f), -1.0f), -0.0f);
    check.equal(__fsqrt_rn(hidden(-1.0f)), CUDART_NAN_F);
    check.equal(__frsqrt_rn(hidden(4.0f)), 0.5f);
    check.equal(__frsqrt_rn(hidden(0.0f)), CUDART_INF_F);
}
TEST(RoundingIntrinsics, DoubleAndEdges) {
    run_checks(round_in_double);
}

// __fadd2_rn and the like: compiled for compute capability 10.0 and more on a GPU.
#ifdef CUDA_ON_CPU
__global__ void round_pairs(Checks check) {
    const float2 a = {hidden(1.0f), hidden(-1.0f)};
    const float2 b = {CUDART_TWO_TO_M126_F, -CUDART_TWO_TO_M126_F};
    const auto expect = [&](float2 got, float x, float y) {
        check.equal(got.x, x);
        check.equal(got.y, y);
    };
    const float above = __uint_as_float(0x3f800001), below = __uint_as_float(0x3f7fffff);
    expect(__fadd2_rn(a, b), 1.0f, -1.0f);
    expect(__fadd2_rz(a, b), 1.0f, -1.0f);
    expect(__fadd2_ru(a, b), above, -1.0f);
    expect(__fadd2_rd(a, b), 1.0f, -above);
    const float2 c = {hidden(above), hidden(below)}, d = {hidden(below), hidden(-below)};
    expect(__fmul2_rn(c, d), __fmul_rn(above, below), __fmul_rn(below, -below));
    expect(__fmul2_rz(c, d), __fmul_rz(above, below), __fmul_rz(below, -below));
    expect(__fmul2_ru(c, d), __fmul_ru(above, below), __fmul_ru(below, -below));
    expect(__fmul2_rd(c, d), __fmul_rd(above, below), __fmul_rd(below, -below));
    expect(__ffma2_rn(c, d, a), __fmaf_rn(above, below, 1.0f), __fmaf_rn(below, -below, -1.0f));
    expect(__ffma2_rz(c, d, a), __fmaf_rz(above, below, 1.0f), __fmaf_rz(below, -below, -1.0f));
    expect(__ffma2_ru(c, d, a), __fmaf_ru(above, below, 1.0f), __fmaf_ru(below, -below, -1.0f));
    expect(__ffma2_rd(c, d, a), __fmaf_rd(above, below, 1.0f), __fmaf_rd(below, -below, -1.0f));
}
TEST(RoundingIntrinsics, OfPairs) {
    run_checks(round_pairs);
}
#endif

// In a loop, which compilers like to vectorise: a product must not be fused with the sum it goes
// into.
__global__ void multiply_then_add(const float* a, const float* b, const float* c, float* result, int count) {
    for (int i = 0; i < count; ++i)
        result[i] = __fadd_rn(__fmul_rn(a[i], b[i]), c[i]);
}

TEST(RoundingIntrinsics, AreNotFused) {
    constexpr int kCount = 1000;
    const std::vector<Operands> operands = random_operands(kCount);
    std::vector<float> a, b, c;
    for (const Operands& o : operands) {
        a.push_back(o.a);
        b.push_back(o.b);
        c.push_back(o.c);
    }
    DeviceVector<float> device_a(a), device_b(b), device_c(c), device_result(kCount);
    multiply_then_add<<<1, 1>>>(static_cast<const float*>(device_a.data()),
                                static_cast<const float*>(device_b.data()),
                                static_cast<const float*>(device_c.data()), device_result.data(), kCount);
    const std::vector<float> got = device_result.to_host();
    int fused_would_differ = 0;
    for (int i = 0; i < kCount; ++i) {
        const volatile float product = a[i] * b[i];  // volatile, or the host compiler fuses here
        const float expected = product + c[i];
        ASSERT_EQ(got[i], expected) << i;
        fused_would_differ += expected != std::fma(a[i], b[i], c[i]);
    }
    EXPECT_GT(fused_would_differ, 0);
}

// ---- Functions against their references ---------------------------------------------------------

std::vector<double> evenly(double from, double to, int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i)
        values.push_back(from + (to - from) * i / (count - 1));
    return values;
}

// |got - expected| <= relative * |expected| + absolute, for every input
template <class Function, class Reference>
void expect_close(Function function, const std::vector<double>& inputs, Reference reference, double relative,
                  double absolute = 0.0) {
    const std::vector<double> got = map_on_device<double>(function, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const double expected = static_cast<double>(reference(inputs[i]));
        if (expected == got[i]) continue;
        ASSERT_LE(std::fabs(got[i] - expected), relative * std::fabs(expected) + absolute)
            << "at " << inputs[i] << ": got " << got[i] << ", expected " << expected;
    }
}

#define DEVICE_FUNCTION(Name, Real, call)                  \
    struct Name {                                          \
        __device__ double operator()(double input) const { \
            const Real x = static_cast<Real>(input);       \
            return call;                                   \
        }                                                  \
    }
DEVICE_FUNCTION(FastExp, float, __expf(x));
DEVICE_FUNCTION(FastExp10, float, __exp10f(x));
DEVICE_FUNCTION(FastLog, float, __logf(x));
DEVICE_FUNCTION(FastLog2, float, __log2f(x));
DEVICE_FUNCTION(FastLog10, float, __log10f(x));
DEVICE_FUNCTION(FastSin, float, __sinf(x));
DEVICE_FUNCTION(FastCos, float, __cosf(x));
DEVICE_FUNCTION(FastTan, float, __tanf(x));
DEVICE_FUNCTION(FastPow, float, __powf(x, 1.5f));
DEVICE_FUNCTION(FastDivide, float, __fdividef(2.0f, x));

constexpr double kFloat = 1e-6;  // a few units in the last place
constexpr double kDouble = 2e-14;

// Inputs are multiples of 1/64, which float holds exactly.
TEST(FastMaths, IsNearTheTruth) {
    const std::vector<double> around_zero = evenly(-3, 3, 385);
    const std::vector<double> positive = evenly(0.25, 8.25, 513);
    expect_close(
        FastExp{}, around_zero, [](long double x) { return std::exp(x); }, 1e-5);
    expect_close(
        FastExp10{}, around_zero, [](long double x) { return std::pow(10.0l, x); }, 1e-5);
    expect_close(
        FastLog{}, positive, [](long double x) { return std::log(x); }, 1e-5, 1e-6);
    expect_close(
        FastLog2{}, positive, [](long double x) { return std::log2(x); }, 1e-5, 1e-6);
    expect_close(
        FastLog10{}, positive, [](long double x) { return std::log10(x); }, 1e-5, 1e-6);
    expect_close(
        FastSin{}, around_zero, [](long double x) { return std::sin(x); }, 0, 1e-6);
    expect_close(
        FastCos{}, around_zero, [](long double x) { return std::cos(x); }, 0, 1e-6);
    expect_close(
        FastTan{}, evenly(-1, 1, 129), [](long double x) { return std::tan(x); }, 1e-5, 1e-6);
    expect_close(
        FastPow{}, positive, [](long double x) { return std::pow(x, 1.5l); }, 1e-5);
    expect_close(
        FastDivide{}, positive, [](long double x) { return 2 / x; }, 1e-6);
}

__global__ void call_at_the_edges(Checks check) {
    check.equal(__fdividef(hidden(1.0f), 1.5f * 8.507059e37f), 0.0f);
    check.equal(__fdividef(hidden(CUDART_INF_F), 1.5f * 8.507059e37f), CUDART_NAN_F);
    check.equal(__powf(hidden(-2.0f), 2.0f), CUDART_NAN_F);
    check.equal(__saturatef(hidden(-1.0f)), 0.0f);
    check.equal(__saturatef(hidden(0.25f)), 0.25f);
    check.equal(__saturatef(hidden(7.0f)), 1.0f);
    check.equal(__saturatef(hidden(CUDART_NAN_F)), 0.0f);
    float sine, cosine;
    __sincosf(0.0f, &sine, &cosine);
    check.equal(sine, 0.0f);
    check.equal(cosine, 1.0f);
    sincosf(0.5f, &sine, &cosine);
    check.near(sine * sine + cosine * cosine, 1.0, 1e-6);
    sincospif(0.5f, &sine, &cosine);
    check.equal(sine, 1.0f);
    check.equal(cosine, 0.0f);
    check.equal(sinpi(hidden(1.0)), 0.0);
    check.equal(sinpi(hidden(-3.0)), -0.0);
    check.equal(sinpi(hidden(1e15 + 0.5)), 1.0);
    check.equal(cospi(hidden(1.5)), 0.0);
    check.equal(cospif(hidden(3.0f)), -1.0f);
    check.equal(rsqrt(hidden(0.25)), 2.0);
    check.equal(rsqrtf(hidden(CUDART_INF_F)), 0.0f);
    check.equal(rsqrtf(hidden(-1.0f)), CUDART_NAN_F);
    check.near(rcbrt(hidden(27.0)), 1.0 / 3, 1e-15);
    check.near(rcbrtf(hidden(8.0f)), 0.5, 1e-6);
    check.near(exp10f(hidden(2.0f)), 100.0, 1e-6);
    check.near(exp10(hidden(-3.0)), 1e-3, 1e-15);
    check.near(fdividef(hidden(7.0f), 2.0f), 3.5, 1e-6);
    check.near(norm3df(hidden(2.0f), 3.0f, 6.0f), 7.0f, 1e-6);
    check.near(rnorm3df(hidden(2.0f), 3.0f, 6.0f), 1.0 / 7, 1e-6);
    check.near(norm4df(hidden(2.0f), 4.0f, 5.0f, 6.0f), 9.0f, 1e-6);
    check.near(norm3d(hidden(2e200), 3e200, 6e200), 7e200, 1e-15);
    check.near(norm4d(hidden(1.0), 1.0, 1.0, 1.0), 2.0, 1e-15);
    check.near(rnorm4d(hidden(1.0), 1.0, 1.0, 1.0), 0.5, 1e-15);
    check.near(rhypotf(hidden(3.0f), 4.0f), 0.2, 1e-6);
    check.near(rhypot(hidden(3e-200), 4e-200), 2e199, 1e-15);
    const double numbers[] = {2, 3, 6};
    check.near(norm(3, numbers), 7.0, 1e-15);
    check.near(rnorm(3, numbers), 1.0 / 7, 1e-15);
    check.near(erfinv(hidden(0.0)), 0.0, 1e-15);
    check.equal(erfinv(hidden(1.0)), CUDART_INF);
    check.equal(erfinv(hidden(1.5)), CUDART_NAN);
    check.equal(erfcinv(hidden(2.0)), -CUDART_INF);
    check.equal(erfcinvf(hidden(0.0f)), CUDART_INF_F);
    check.near(normcdfinv(hidden(0.5)), 0.0, 1e-15);
    check.equal(normcdf(hidden(CUDART_INF)), 1.0);
    check.near(erfcx(hidden(0.0)), 1.0, 1e-15);
    check.equal(erfcx(hidden(CUDART_INF)), 0.0);
    check.near(CUDART_PI_F, 3.14159274101257324, 1e-7);
    check.near(CUDART_SQRT_2PI * CUDART_SQRT_2PI, 2 * CUDART_PI, 1e-15);
}
TEST(Functions, AtTheEdges) {
    run_checks(call_at_the_edges);
}

DEVICE_FUNCTION(SinPi, double, sinpi(x));
DEVICE_FUNCTION(CosPi, double, cospi(x));
DEVICE_FUNCTION(SinPiFloat, float, sinpif(x));
DEVICE_FUNCTION(ReciprocalRoot, float, rsqrtf(x));
DEVICE_FUNCTION(NormalCdf, double, normcdf(x));
DEVICE_FUNCTION(NormalCdfFloat, float, normcdff(x));
DEVICE_FUNCTION(ScaledErfc, double, erfcx(x));
DEVICE_FUNCTION(ScaledErfcFloat, float, erfcxf(x));
DEVICE_FUNCTION(ErfOfInverse, double, erf(erfinv(x)));
DEVICE_FUNCTION(ErfcOfInverse, double, erfc(erfcinv(x)));
DEVICE_FUNCTION(ErfInverseFloat, float, erfinvf(x));
DEVICE_FUNCTION(NormalOfInverse, double, normcdf(normcdfinv(x)));
DEVICE_FUNCTION(NormalInverseFloat, float, normcdfinvf(x));
DEVICE_FUNCTION(Gamma, float, tgammaf(x));
DEVICE_FUNCTION(LogGamma, float, lgammaf(x));
DEVICE_FUNCTION(Bessel, float, j0f(x));
#undef DEVICE_FUNCTION

TEST(Functions, AreNearTheTruth) {
    constexpr long double kPi = std::numbers::pi_v<long double>;
    constexpr long double kRoot2 = std::numbers::sqrt2_v<long double>;
    const std::vector<double> wide = evenly(-8, 8, 1025);
    expect_close(
        SinPi{}, wide, [](long double x) { return std::sin(kPi * std::remainder(x, 2.0l)); }, kDouble, 1e-16);
    expect_close(
        CosPi{}, wide, [](long double x) { return std::cos(kPi * std::remainder(x, 2.0l)); }, kDouble, 1e-16);
    expect_close(
        SinPiFloat{}, wide, [](long double x) { return std::sin(kPi * std::remainder(x, 2.0l)); }, kFloat,
        1e-16);
    expect_close(
        ReciprocalRoot{}, evenly(0.25, 8.25, 513), [](long double x) { return 1 / std::sqrt(x); }, kFloat);
    expect_close(
        NormalCdf{}, wide, [](long double x) { return std::erfc(-x / kRoot2) / 2; }, kDouble);
    expect_close(
        NormalCdfFloat{}, wide, [](long double x) { return std::erfc(-x / kRoot2) / 2; }, 2 * kFloat);
    const auto scaled_erfc = [](long double x) { return std::exp(x * x) * std::erfc(x); };
    expect_close(ScaledErfc{}, evenly(-4, 28, 1025), scaled_erfc, kDouble);
    expect_close(ScaledErfcFloat{}, evenly(-4, 28, 1025), scaled_erfc, kFloat);
    const auto same = [](double x) { return x; };
    expect_close(ErfOfInverse{}, evenly(-1, 1, 257), same, kDouble);
    expect_close(ErfcOfInverse{}, evenly(1.0 / 128, 2, 257), same, kDouble);
    expect_close(ErfcOfInverse{}, {1e-300, 1e-100, 1e-20, 1e-5}, same, 1e-12);
    expect_close(NormalOfInverse{}, evenly(1.0 / 128, 127.0 / 128, 127), same, kDouble);
    expect_close(
        ErfInverseFloat{}, {0.25, 0.5, -0.75},
        [](double x) {
            return x == 0.25 ? 0.22531205501217808 : x == 0.5 ? 0.47693627620446987 : -0.81341984759761830;
        },
        kFloat);
    expect_close(
        NormalInverseFloat{}, {0.5, 0.75}, [](double x) { return x == 0.5 ? 0.0 : 0.67448975019608174; },
        kFloat);
    expect_close(
        Gamma{}, evenly(0.5, 10, 153), [](long double x) { return std::tgamma(x); }, 2 * kFloat);
    expect_close(
        LogGamma{}, evenly(3, 20, 137), [](long double x) { return std::lgamma(x); }, 2 * kFloat);
    expect_close(
        Bessel{}, evenly(0, 8, 513), [](double x) { return j0(x); }, kFloat, 1e-6);
}

}  // namespace

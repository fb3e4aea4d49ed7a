// TF32 on tensor cores through common/device/ptx.cuh: requirements that hold on every GPU that
// supports them and on the stand-in.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"
#include "common/device/random.hpp"
#include "tensor_core_fixture.hpp"

namespace {

using namespace course;

// ---- Conversion ---------------------------------------------------------------------------------

__global__ void convert(std::uint32_t* out, const float* in, std::size_t count) {
    const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i < count) out[i] = ptx::to_tf32(in[i]);
}

std::vector<std::uint32_t> converted(const std::vector<float>& values) {
    const DeviceBuffer<float> in{std::span<const float>(values)};
    DeviceBuffer<std::uint32_t> out(values.size());
    constexpr unsigned kBlock = 256;
    convert<<<static_cast<unsigned>((values.size() + kBlock - 1) / kBlock), kBlock>>>(out.data(), in.data(),
                                                                                      values.size());
    CUDA_CHECK_LAUNCH();
    return out.to_host();
}

// Computed with arithmetic, not with bits: adjacent numbers with 10 bits of mantissa are one
// `step` apart.
float nearest_tf32(float value) {
    if (value == 0 || std::isinf(value)) return value;
    const int exponent = std::max(std::ilogb(value), FLT_MIN_EXP - 1);
    const double step = std::ldexp(1.0, exponent - 10);
    return static_cast<float>(
        std::copysign(std::floor(std::fabs(static_cast<double>(value)) / step + 0.5) * step, value));
}

TEST_F(TensorCoreTest, ConversionRoundsToTheNearestAndTiesAwayFromZero) {
    const float inf = std::numeric_limits<float>::infinity();
    const float ulp = std::ldexp(1.0f, -10);
    const std::vector<std::array<float, 2>> known = {
        {0.0f, 0.0f},
        {-0.0f, -0.0f},
        {1.0f, 1.0f},
        {1 + ulp, 1 + ulp},
        {1 + ulp / 2, 1 + ulp},          // a tie
        {-1 - ulp / 2, -1 - ulp},        // its mirror image
        {1 + 3 * ulp / 2, 1 + 2 * ulp},  // a tie above an odd one
        {std::nextafter(1 + ulp / 2, 0.0f), 1.0f},
        {std::nextafter(2.0f, 0.0f), 2.0f},  // carries into the exponent
        {FLT_MAX, inf},
        {-FLT_MAX, -inf},
        {inf, inf},
        {-inf, -inf},
        {FLT_TRUE_MIN, 0.0f},  // denormals are rounded like others
        {-FLT_TRUE_MIN, -0.0f},
        {FLT_MIN * ulp, FLT_MIN * ulp},
        {FLT_MIN * ulp / 2, FLT_MIN * ulp},
        {FLT_MIN, FLT_MIN},
        {std::nextafter(FLT_MIN, 0.0f), FLT_MIN},
    };
    std::vector<float> inputs;
    for (const auto& [input, output] : known)
        inputs.push_back(input);
    const std::vector<std::uint32_t> got = converted(inputs);
    for (std::size_t i = 0; i < known.size(); ++i) {
        EXPECT_EQ(got[i], std::bit_cast<std::uint32_t>(known[i][1]))
            << known[i][0] << " became " << std::bit_cast<float>(got[i]) << ", not " << known[i][1];
    }
}

TEST_F(TensorCoreTest, ConversionKeepsNaN) {
    for (const std::uint32_t bits :
         converted({std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
                    std::bit_cast<float>(0x7fffffffu)}))
        EXPECT_TRUE(std::isnan(std::bit_cast<float>(bits))) << std::hex << bits;
}

TEST_F(TensorCoreTest, ConversionOfRandomBits) {
    Random random(11);
    std::vector<float> values;
    while (values.size() < 100000) {
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
        if (!std::isnan(value)) values.push_back(value);
    }
    const std::vector<std::uint32_t> got = converted(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(got[i], std::bit_cast<std::uint32_t>(nearest_tf32(values[i])))
            << values[i] << ", seed 11, number " << i;
    }
}

// ---- Product ------------------------------------------------------------------------------------

constexpr int kM = 16, kN = 8, kK = 8;

// Row-major, one after the other.
struct Problem {
    float a[kM * kK];
    float b[kK * kN];
    float c[kM * kN];
};

// d = a b + c, one problem for each warp. The lowest 13 bits of a and b get `noise`.
__global__ void multiply(float* d, const Problem* problems, unsigned noise) {
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned g = threadIdx.x % 32 / 4;
    const unsigned t = threadIdx.x % 4;
    const Problem& p = problems[warp];
    const auto bits = [noise](float value) { return __float_as_uint(value) | noise; };
    const unsigned a[4] = {bits(p.a[g * kK + t]), bits(p.a[(g + 8) * kK + t]), bits(p.a[g * kK + t + 4]),
                           bits(p.a[(g + 8) * kK + t + 4])};
    const unsigned b[2] = {bits(p.b[t * kN + g]), bits(p.b[(t + 4) * kN + g])};
    const unsigned place[4] = {g * kN + 2 * t, g * kN + 2 * t + 1, (g + 8) * kN + 2 * t,
                               (g + 8) * kN + 2 * t + 1};
    float sums[4];
    for (int i = 0; i < 4; ++i)
        sums[i] = p.c[place[i]];
    ptx::mma_m16n8k8_tf32(sums, a, b);
    for (int i = 0; i < 4; ++i)
        d[warp * kM * kN + place[i]] = sums[i];
}

constexpr unsigned kBlocks = 2;
constexpr unsigned kWarpsPerBlock = 3;
constexpr std::size_t kProblems = kBlocks * kWarpsPerBlock;

std::vector<float> products(const std::vector<Problem>& problems, unsigned noise = 0) {
    const DeviceBuffer<Problem> in{std::span<const Problem>(problems)};
    DeviceBuffer<float> out(kProblems * kM * kN);
    multiply<<<kBlocks, kWarpsPerBlock * 32>>>(out.data(), in.data(), noise);
    CUDA_CHECK_LAUNCH();
    return out.to_host();
}

// The sum of c and the products, or of their magnitudes.
double element(const Problem& p, int row, int col, bool magnitudes = false) {
    const auto term = [magnitudes](double value) { return magnitudes ? std::fabs(value) : value; };
    double sum = term(p.c[row * kN + col]);
    for (int k = 0; k < kK; ++k)
        sum += term(static_cast<double>(p.a[row * kK + k]) * p.b[k * kN + col]);
    return sum;
}

// Whole numbers so small that every sum is exact, all different within a matrix.
std::vector<Problem> distinct_numbers() {
    std::vector<Problem> problems(kProblems);
    for (std::size_t i = 0; i < kProblems; ++i) {
        for (int j = 0; j < kM * kK; ++j)
            problems[i].a[j] =
                static_cast<float>((j % 2 == 0 ? 1 : -1) * (j + 1 + 128 * static_cast<int>(i)));
        for (int j = 0; j < kK * kN; ++j)
            problems[i].b[j] = static_cast<float>((j % 3 == 0 ? -1 : 1) * (j + 1));
        for (int j = 0; j < kM * kN; ++j)
            problems[i].c[j] = static_cast<float>(1000 * (j + 1));
    }
    return problems;
}

TEST_F(TensorCoreTest, EveryElementIsInItsPlace) {
    const std::vector<Problem> problems = distinct_numbers();
    for (const unsigned noise : {0u, 0x1fffu, 0x0a5au}) {
        const std::vector<float> got = products(problems, noise);
        for (std::size_t i = 0; i < kProblems; ++i) {
            for (int row = 0; row < kM; ++row) {
                for (int col = 0; col < kN; ++col) {
                    EXPECT_EQ(got[i * kM * kN + row * kN + col], element(problems[i], row, col))
                        << "warp " << i << ", row " << row << ", column " << col << ", noise " << noise;
                }
            }
        }
    }
}

TEST_F(TensorCoreTest, SumsOfRandomNumbersAreClose) {
    Random random(5);
    std::vector<Problem> problems(kProblems);
    const auto tf32 = [&random] { return nearest_tf32(random.normal()); };
    for (Problem& problem : problems) {
        std::generate(std::begin(problem.a), std::end(problem.a), tf32);
        std::generate(std::begin(problem.b), std::end(problem.b), tf32);
        std::generate(std::begin(problem.c), std::end(problem.c), [&random] { return random.normal(); });
    }
    const std::vector<float> got = products(problems);
    for (std::size_t i = 0; i < got.size(); ++i) {
        const Problem& problem = problems[i / (kM * kN)];
        const int row = static_cast<int>(i / kN) % kM;
        const int col = static_cast<int>(i % kN);
        // Tensor cores truncate where float arithmetic would round: nine terms, each with an error
        // of less than an ulp of the largest sum.
        EXPECT_NEAR(got[i], element(problem, row, col), 9 * FLT_EPSILON * element(problem, row, col, true))
            << "number " << i << ", seed 5";
    }
}

}  // namespace

// Instructions on single numbers through common/device/ptx.cuh: requirements that hold on every
// GPU and on the stand-in.
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
#include "common/test/device_test.hpp"

namespace {

using namespace course;

class FloatInstructionTest : public DeviceTest {};

__global__ void powers_of_two(float* out, const float* in, std::size_t count) {
    const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i < count) out[i] = ptx::exp2_approx(in[i]);
}

std::vector<float> powers(const std::vector<float>& values) {
    const DeviceBuffer<float> in{std::span<const float>(values)};
    DeviceBuffer<float> out(values.size());
    constexpr unsigned kBlock = 256;
    powers_of_two<<<static_cast<unsigned>((values.size() + kBlock - 1) / kBlock), kBlock>>>(
        out.data(), in.data(), values.size());
    CUDA_CHECK_LAUNCH();
    return out.to_host();
}

TEST_F(FloatInstructionTest, Exp2OfSpecialNumbers) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<std::array<float, 2>> known = {
        {-inf, 0.0f},
        {inf, inf},
        {0.0f, 1.0f},
        {-0.0f, 1.0f},
        {FLT_TRUE_MIN, 1.0f},
        {-FLT_TRUE_MIN, 1.0f},
        {std::nextafter(FLT_MIN, 0.0f), 1.0f},
        {128.0f, inf},
        {FLT_MAX, inf},
        {-FLT_MAX, 0.0f},
        {std::nextafter(-126.0f, -127.0f), 0.0f},  // denormal results are flushed
        {-127.0f, 0.0f},
        {-149.0f, 0.0f},
        {-150.0f, 0.0f},
    };
    std::vector<float> inputs;
    for (const auto& [input, output] : known)
        inputs.push_back(input);
    const std::vector<float> got = powers(inputs);
    for (std::size_t i = 0; i < known.size(); ++i) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(known[i][1]))
            << "2^" << known[i][0] << " became " << got[i] << ", not " << known[i][1];
    }
    EXPECT_TRUE(std::isnan(powers({std::numeric_limits<float>::quiet_NaN()})[0]));
}

// The bound is the PTX ISA's: 2 ulp from the correctly rounded result, which is at most half an
// ulp from the exact one.
TEST_F(FloatInstructionTest, Exp2IsWithinTwoUlp) {
    Random random(12);
    std::vector<float> values;
    for (int exponent = -126; exponent < 128; ++exponent)
        values.push_back(static_cast<float>(exponent));
    while (values.size() < 100000)
        values.push_back(random.uniform(-126.0f, 128.0f));
    while (values.size() < 200000)
        values.push_back(random.uniform(-1.0f, 1.0f));
    const std::vector<float> got = powers(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double truth = std::exp2(static_cast<double>(values[i]));
        const double ulp = std::ldexp(1.0, std::ilogb(truth) - (FLT_MANT_DIG - 1));
        ASSERT_NEAR(got[i], truth, 2.5 * ulp) << "2^" << values[i] << ", seed 12, number " << i;
    }
}

__global__ void reciprocal_roots(float* out, const float* in, std::size_t count) {
    const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i < count) out[i] = ptx::rsqrt_approx(in[i]);
}

// The PTX ISA's bound is 2^-22.9 of the exact value.
TEST_F(FloatInstructionTest, ReciprocalSquareRootIsAsExactAsPromised) {
    Random random(14);
    std::vector<float> values = {FLT_MIN, FLT_MAX, 1.0f, 4.0f};
    while (values.size() < 50000)
        values.push_back(std::ldexp(random.uniform(1.0f, 4.0f), static_cast<int>(random.integer(-126, 125))));
    values.insert(values.end(), {0.0f, -0.0f, FLT_MIN / 2, std::numeric_limits<float>::infinity(), -1.0f});
    const DeviceBuffer<float> in{std::span<const float>(values)};
    DeviceBuffer<float> out(values.size());
    reciprocal_roots<<<static_cast<unsigned>((values.size() + 255) / 256), 256>>>(out.data(), in.data(),
                                                                                  values.size());
    CUDA_CHECK_LAUNCH();
    const std::vector<float> got = out.to_host();
    const std::size_t usual = values.size() - 5;
    for (std::size_t i = 0; i < usual; ++i) {
        const double truth = 1 / std::sqrt(static_cast<double>(values[i]));
        ASSERT_NEAR(got[i], truth, truth * std::exp2(-22.9)) << "1 / sqrt(" << values[i] << "), number " << i;
    }
    constexpr float kInf = std::numeric_limits<float>::infinity();
    EXPECT_EQ(got[usual], kInf);
    EXPECT_EQ(got[usual + 1], -kInf);
    EXPECT_EQ(got[usual + 2], kInf) << "a denormal number counts as 0";
    EXPECT_EQ(got[usual + 3], 0.0f);
    EXPECT_TRUE(std::isnan(got[usual + 4]));
}

__global__ void extrema(float* smaller, float* larger, const float* a, const float* b) {
    smaller[threadIdx.x] = ptx::min_nan(a[threadIdx.x], b[threadIdx.x]);
    larger[threadIdx.x] = ptx::max_nan(a[threadIdx.x], b[threadIdx.x]);
}

TEST_F(FloatInstructionTest, ExtremaKeepNan) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const std::vector<float> a = {1, -2, kNan, 3, kNan, -kInf, kInf, kNan};
    const std::vector<float> b = {2, -3, 1, kNan, kInf, 5, 5, kNan};
    const DeviceBuffer<float> a_device{std::span<const float>(a)};
    const DeviceBuffer<float> b_device{std::span<const float>(b)};
    DeviceBuffer<float> smaller(a.size());
    DeviceBuffer<float> larger(a.size());
    extrema<<<1, static_cast<unsigned>(a.size())>>>(smaller.data(), larger.data(), a_device.data(),
                                                    b_device.data());
    CUDA_CHECK_LAUNCH();
    const std::vector<float> least = smaller.to_host();
    const std::vector<float> most = larger.to_host();
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) || std::isnan(b[i])) {
            EXPECT_TRUE(std::isnan(least[i]) && std::isnan(most[i])) << a[i] << " and " << b[i];
        } else {
            EXPECT_EQ(least[i], std::min(a[i], b[i])) << a[i] << " and " << b[i];
            EXPECT_EQ(most[i], std::max(a[i], b[i])) << a[i] << " and " << b[i];
        }
    }
}

}  // namespace

// The expected values were computed independently of this code, with exact rational arithmetic.
// The first five are those published for SplitMix64 with seed 1234567. Every compiler and the
// device must produce these bits.
#include "common/device/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using RandomOnDeviceTest = course::DeviceTest;

using course::Random;

TEST(Random, BitsAreThoseOfSplitMix64) {
    Random random(1234567);
    for (const std::uint64_t expected : {0x599ed017fb08fc85u, 0x2c73f08458540fa5u, 0x883ebce5a3f27c77u,
                                         0x3fbef740e9177b3fu, 0xe3b8346708cb5ecdu}) {
        EXPECT_EQ(random.next(), expected);
    }
}

TEST(Random, AnyPositionCanBeHadDirectly) {
    Random sequence(99);
    for (std::uint64_t position = 0; position < 10; ++position) {
        EXPECT_EQ(Random(99, position).next(), sequence.next()) << "position " << position;
    }
}

void expect_known(const course::testing::RandomSample& sample) {
    constexpr std::array<std::uint32_t, 4> kBelow = {741, 159, 278, 344};
    constexpr std::array<std::int32_t, 4> kInteger = {3, -4, -2, -2};
    constexpr std::array kUniform = {0x1.17023cp-1f, 0x1.914c42p-3f, 0x1.119290p-2f, 0x1.39dee8p-2f};
    constexpr std::array kNormal = {0x1.f81a80p-4f, -0x1.663ac0p-2f, 0x1.c50368p+0f, 0x1.14b8p-8f};
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(sample.below[i], kBelow[i]) << i;
        EXPECT_EQ(sample.integer[i], kInteger[i]) << i;
        EXPECT_EQ(sample.uniform[i], kUniform[i]) << i;
        EXPECT_EQ(sample.normal[i], kNormal[i]) << i;
    }
}

TEST(Random, KnownValuesOnTheHost) {
    expect_known(course::testing::RandomSample::draw(42));
}

TEST_F(RandomOnDeviceTest, KnownValues) {
    expect_known(course::testing::draw_on_device(42));
}

TEST(Random, KnownValuesFromThisCompiler) {
    Random uniform(42);
    EXPECT_EQ(uniform.uniform(0.1f, 0.7f), 0x1.17023cp-1f);
    Random symmetric(42);
    EXPECT_EQ(symmetric.uniform(-1, 1), 0x1.eeb99p-2f);
    EXPECT_EQ(symmetric.uniform(-1, 1), -0x1.5c4074p-1f);
    Random normal(42);
    EXPECT_EQ(normal.normal(), 0x1.f81a80p-4f);
}

TEST(Random, DrawsAgainWhatWouldBeUnfair) {
    // Of 2^32 values a third would hit the lower part of [0, 3 * 2^30) twice.
    Random random(42);
    for (const std::uint32_t expected : {0x8e61659cu, 0x1eb3ea66u, 0x357dcd81u, 0x4215a97fu}) {
        EXPECT_EQ(random.below(3u << 30), expected);
    }
}

TEST(Random, StaysInsideItsBounds) {
    Random random(7);
    const float one_step_wide = std::nextafter(1.0f, 2.0f);
    for (int i = 0; i < 10000; ++i) {
        EXPECT_LT(random.below(3), 3u);
        const std::int32_t integer = random.integer(-2, 2);
        EXPECT_TRUE(integer >= -2 && integer <= 2) << integer;
        const float real = random.uniform(-3, 5);
        EXPECT_TRUE(real >= -3 && real < 5) << real;
        EXPECT_EQ(random.uniform(1, one_step_wide), 1.0f);
        EXPECT_LE(std::abs(random.normal()), 6.0f);
    }
    EXPECT_EQ(random.below(0), 0u);
    EXPECT_EQ(random.below(1), 0u);
    EXPECT_NO_THROW(
        random.integer(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}

TEST(Random, MomentsAreRight) {
    constexpr int kCount = 200000;
    Random random(1);
    double uniform = 0;
    double normal = 0;
    double square = 0;
    for (int i = 0; i < kCount; ++i) {
        uniform += random.uniform(0, 1);
        const double x = random.normal();
        normal += x;
        square += x * x;
    }
    EXPECT_NEAR(uniform / kCount, 0.5, 0.004);  // five standard deviations and more
    EXPECT_NEAR(normal / kCount, 0.0, 0.012);
    EXPECT_NEAR(square / kCount, 1.0, 0.017);
}

}  // namespace

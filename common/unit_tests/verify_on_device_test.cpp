// The comparison on the device must have the same result as on the host.
#include "common/check/verify_on_device.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/expected_output.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/check/matmul_reference.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::VerifyResult;

class VerifyOnDevice : public course::DeviceTest {
  protected:
    static constexpr course::Bound kBound{.terms = 100, .growth = course::Growth::kSquareRoot};

    std::vector<float> got = std::vector<float>(70'001, 1.0f);
    std::vector<double> expected = std::vector<double>(got.size(), 1.0);
    std::vector<double> magnitude = std::vector<double>(got.size(), 2.0);

    VerifyResult on_device() const {
        const DeviceBuffer<float> got_there{std::span<const float>(got)};
        const DeviceBuffer<double> expected_there{std::span<const double>(expected)};
        const DeviceBuffer<double> magnitude_there{std::span<const double>(magnitude)};
        return course::verify_on_device(got_there.span(), expected_there.span(), kBound,
                                        magnitude_there.span(), 100);
    }

    void expect_as_on_host(bool ok) const {
        const VerifyResult there = on_device();
        const VerifyResult here = course::verify(got, expected, kBound, magnitude, 100);
        EXPECT_EQ(here.ok(), ok) << here.message();
        EXPECT_EQ(there.message(), here.message());
        EXPECT_EQ(there.compared, here.compared);
        EXPECT_EQ(there.max_error, here.max_error);
    }
};

TEST_F(VerifyOnDevice, AgreementPasses) {
    expect_as_on_host(true);
    got.clear();
    expected.clear();
    magnitude.clear();
    expect_as_on_host(true);
}

// At the first position, at the last one, and in between.
TEST_F(VerifyOnDevice, FindsOneWrongValue) {
    const double allowed = kBound.roundings() * std::numeric_limits<float>::epsilon() * 2;
    for (const std::size_t where : {std::size_t{0}, std::size_t{255}, std::size_t{40'000}, got.size() - 1}) {
        expected[where] = 1 + 0.99 * allowed;
        expect_as_on_host(true);
        expected[where] = 1 + 1.01 * allowed;
        expect_as_on_host(false);
        expected[where] = 1 - 1.01 * allowed;
        expect_as_on_host(false);
        expected[where] = 1;
    }
}

TEST_F(VerifyOnDevice, NanAndInfinityOnlyWhereExpected) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    for (const double special : {std::numeric_limits<double>::quiet_NaN(), kInfinite, -kInfinite}) {
        got[7] = static_cast<float>(special);
        expect_as_on_host(false);
        expected[7] = special;
        expect_as_on_host(true);
        got[7] = 1;
        expect_as_on_host(false);
        got[7] = static_cast<float>(-special);
        expect_as_on_host(std::isnan(special));
        got[7] = 1;
        expected[7] = 1;
    }
}

TEST_F(VerifyOnDevice, RefusesWhatVerifyRefuses) {
    magnitude[3] = std::numeric_limits<double>::infinity();
    EXPECT_EQ(course::refusal([&] { on_device(); }),
              "verify: magnitude[3] is inf, expected a finite value >= 0");
    magnitude[3] = -1;
    EXPECT_EQ(course::refusal([&] { on_device(); }),
              "verify: magnitude[3] is -1, expected a finite value >= 0");
    magnitude.pop_back();
    EXPECT_EQ(course::refusal([&] { on_device(); }),
              "verify: magnitude has 70000 values, expected none or 70001");
}

// One differing element at any position, and different lengths.
template <class T>
class VerifyExactlyOnDevice : public course::DeviceTest {};
using ExactTypes = testing::Types<std::int32_t, std::uint32_t, std::int64_t, float>;
TYPED_TEST_SUITE(VerifyExactlyOnDevice, ExactTypes);

TYPED_TEST(VerifyExactlyOnDevice, FindsOneWrongValue) {
    std::vector<TypeParam> values(70'001);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<TypeParam>(i % 1000);
    const course::ExpectedOutput<TypeParam> expected(values);
    course::GuardedBuffer<TypeParam> out(values.size());
    EXPECT_FALSE(expected.verify(out).ok()) << "nothing was written";
    const auto verify = [&] {
        out.copy_from(values);
        const VerifyResult there = course::verify_exact_on_device<TypeParam>(
            out.span(), DeviceBuffer<TypeParam>(std::span<const TypeParam>(expected.on_host())).span());
        EXPECT_EQ(there.message(), expected.verify(values).message());
        EXPECT_EQ(expected.verify(out).message(), there.message());
        return there;
    };
    EXPECT_EQ(verify().compared, values.size());
    EXPECT_TRUE(verify().ok());
    for (const std::size_t where :
         {std::size_t{0}, std::size_t{255}, std::size_t{40'000}, values.size() - 1}) {
        values[where] += 1;
        EXPECT_EQ(verify().differing, 1U) << "at " << where;
        values[where] -= 1;
    }
    out.copy_from(values);
    EXPECT_EQ(course::refusal([&] {
                  course::verify_exact_on_device<TypeParam>(out.span(), out.span().subspan(0, 70'000));
              }),
              "verify: got 70001 values, expected 70000");
}

// The most frequent use.
TEST_F(VerifyOnDevice, BatchOfProducts) {
    constexpr std::size_t kProducts = 3, kRows = 5, kCols = 7, kDepth = 11;
    const auto a = course::make_data<float>(kProducts * kRows * kDepth, DataPattern::kNormal, 1);
    const auto b = course::make_data<float>(kProducts * kDepth * kCols, DataPattern::kNormal, 2);
    DeviceBuffer<double> product(kProducts * kRows * kCols);
    DeviceBuffer<double> sizes(product.size());
    const DeviceBuffer<float> a_there{std::span<const float>(a)};
    const DeviceBuffer<float> b_there{std::span<const float>(b)};
    course::multiply_batch_on_device(kProducts, kRows, kCols, kDepth, 0.5f, a_there.span(), b_there.span(),
                                     product.span(), sizes.span());
    const std::vector<double> products = product.to_host();
    const std::vector<double> all_sizes = sizes.to_host();
    for (std::size_t i = 0; i < kProducts; ++i) {
        std::vector<double> of_one(kRows * kCols);
        std::vector<double> sizes_of_one(of_one.size());
        course::multiply_on_cpu(
            kRows, kCols, kDepth, 0.5f, std::span(a).subspan(i * kRows * kDepth, kRows * kDepth),
            std::span(b).subspan(i * kDepth * kCols, kDepth * kCols), 0, of_one, sizes_of_one);
        for (std::size_t e = 0; e < of_one.size(); ++e) {
            EXPECT_NEAR(products[i * of_one.size() + e], of_one[e], 1e-13 * sizes_of_one[e]);
            EXPECT_NEAR(all_sizes[i * of_one.size() + e], sizes_of_one[e], 1e-13 * sizes_of_one[e]);
        }
    }
}

}  // namespace

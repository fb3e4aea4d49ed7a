// The reference on the device against the one on the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "sgemm_device_reference.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using gemm::Shape;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class DeviceReference : public course::DeviceTest {
  protected:
    struct Result {
        std::vector<double> product, magnitude;
    };

    // Both references; they must agree to what a sum in double can be off by.
    static Result expect_agreement(const Shape& shape, float alpha, float beta,
                                   const std::vector<double>& c) {
        const auto a = course::make_data<float>(shape.m * shape.k, DataPattern::kNormal, 3);
        const auto b = course::make_data<float>(shape.k * shape.n, DataPattern::kNormal, 4);
        const DeviceBuffer<float> a_device{std::span<const float>(a)};
        const DeviceBuffer<float> b_device{std::span<const float>(b)};
        Result expected{c, std::vector<double>(c.size())};
        Result got{c, std::vector<double>(c.size(), kNan)};
        gemm::multiply_on_cpu(shape, alpha, a, b, beta, expected.product, expected.magnitude);
        gemm::multiply_on_device(shape, alpha, a_device.span(), b_device.span(), beta, got.product,
                                 got.magnitude);
        for (std::size_t i = 0; i < c.size(); ++i) {
            const double allowed = 1e-15 * static_cast<double>(shape.k + 2) * expected.magnitude[i];
            EXPECT_NEAR(got.product[i], expected.product[i], allowed) << "element " << i;
            EXPECT_NEAR(got.magnitude[i], expected.magnitude[i], allowed) << "element " << i;
        }
        return got;
    }

    static std::vector<double> values(std::size_t count) {
        return course::make_data<double>(count, DataPattern::kSignedUniform, 5);
    }
};

TEST_F(DeviceReference, AgreesWithTheCpuOnOddShapes) {
    for (const Shape shape :
         {Shape{1, 1, 1}, Shape{1, 300, 7}, Shape{300, 1, 7}, Shape{17, 31, 1}, Shape{37, 53, 61},
          Shape{64, 64, 64}, Shape{16, 16, 16}, Shape{3, 5, 1000}, Shape{129, 65, 33}})
        expect_agreement(shape, 1, 0, std::vector<double>(shape.m * shape.n, kNan));
}

TEST_F(DeviceReference, AlphaAndBeta) {
    const Shape shape{19, 23, 29};
    for (const float alpha : {0.0f, 1.0f, -0.5f}) {
        for (const float beta : {0.0f, 1.0f, -0.5f})
            expect_agreement(shape, alpha, beta, values(shape.m * shape.n));
    }
}

TEST_F(DeviceReference, NothingToAddOrNothingToWrite) {
    expect_agreement({5, 7, 0}, 1, -0.5f, values(35));
    EXPECT_EQ(expect_agreement({5, 7, 0}, 1, 0, std::vector<double>(35, kNan)).product,
              std::vector<double>(35, 0.0));
    expect_agreement({0, 7, 3}, 1, 0, {});
    expect_agreement({7, 0, 3}, 1, 0, {});
}

TEST_F(DeviceReference, RefusesWrongLengths) {
    const DeviceBuffer<float> six{std::span<const float>(std::vector<float>(6))};
    std::vector<double> four(4);
    std::vector<double> five(5);
    const auto multiply = [&](const Shape& shape, std::span<double> product, std::span<double> magnitude) {
        gemm::multiply_on_device(shape, 1, six.span(), six.span(), 0, product, magnitude);
    };
    EXPECT_NO_THROW(multiply({2, 2, 3}, four, four));
    EXPECT_THROW(multiply({3, 2, 3}, four, four), std::invalid_argument);
    EXPECT_THROW(multiply({2, 3, 3}, four, four), std::invalid_argument);
    EXPECT_THROW(multiply({2, 2, 3}, five, four), std::invalid_argument);
    EXPECT_THROW(multiply({2, 2, 3}, four, five), std::invalid_argument);
}

}  // namespace

// Pooling, bias and activation against plain loops; their gradients against differences.
#include "pooling.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using day33::PoolShape;

const std::vector<PoolShape>& shapes() {
    static const std::vector<PoolShape> list = {
        {.planes = 1, .h = 1, .w = 1, .window = 1, .stride = 1},
        {.planes = 3, .h = 8, .w = 6, .window = 2, .stride = 2},
        {.planes = 2, .h = 7, .w = 9, .window = 2, .stride = 2},  // the last row and column are left over
        {.planes = 5, .h = 12, .w = 11, .window = 3, .padding = 1, .stride = 2},
        {.planes = 2, .h = 9, .w = 9, .window = 3, .padding = 1, .stride = 1},
        {.planes = 1, .h = 2, .w = 2, .window = 4, .padding = 2, .stride = 3},
        {.planes = 2, .h = 17, .w = 20, .window = 5, .padding = 2, .stride = 4},
        {.planes = 1, .h = 10, .w = 10, .window = 2, .stride = 5},  // gaps between windows
        {.planes = 1, .h = 16, .w = 16, .window = 16, .stride = 1},
        // Two windows a thread, and more rows than a thread has: an odd and an even number.
        {.planes = 3, .h = 33, .w = 12, .window = 3, .padding = 1, .stride = 2},
        {.planes = 70, .h = 18, .w = 8, .window = 3, .padding = 1, .stride = 2},
        {.planes = 2, .h = 1, .w = 4, .window = 3, .padding = 1, .stride = 2},
        {.planes = 2, .h = 19, .w = 4, .window = 2, .stride = 2},
        // The same rows, but another stride or padding than that kernel is for.
        {.planes = 2, .h = 6, .w = 8, .window = 2, .stride = 1},
        {.planes = 2, .h = 6, .w = 8, .window = 3, .padding = 1, .stride = 3},
        {.planes = 2, .h = 6, .w = 8, .window = 2, .padding = 1, .stride = 2},
        {.planes = 2, .h = 6, .w = 8, .window = 3, .stride = 2},
    };
    return list;
}
std::string text(const PoolShape& s) {
    return std::to_string(s.planes) + " planes of " + std::to_string(s.h) + " x " + std::to_string(s.w) +
           ", window " + std::to_string(s.window) + ", padding " + std::to_string(s.padding) + ", stride " +
           std::to_string(s.stride);
}

// body(output, input, place) for each element of each window that is inside its plane, in order.
template <class Body>
void for_each_element(const PoolShape& s, const Body& body) {
    std::size_t output = 0;
    for (int plane = 0; plane < s.planes; ++plane)
        for (int p = 0; p < s.p(); ++p)
            for (int q = 0; q < s.q(); ++q, ++output)
                for (int r = 0; r < s.window; ++r)
                    for (int t = 0; t < s.window; ++t) {
                        const int row = p * s.stride - s.padding + r;
                        const int col = q * s.stride - s.padding + t;
                        if (row >= 0 && row < s.h && col >= 0 && col < s.w)
                            body(output, static_cast<std::size_t>((plane * s.h + row) * s.w + col),
                                 r * s.window + t);
                    }
}

class Pooling : public course::DeviceTest {};

TEST_F(Pooling, MaxTakesTheFirstLargest) {
    for (const PoolShape& shape : shapes())
        for (const DataPattern pattern :
             {DataPattern::kSignedUniform, DataPattern::kAllEqual, DataPattern::kReversed}) {
            SCOPED_TRACE(text(shape) + ", " + std::string(course::name(pattern)));
            const std::vector<float> x = course::make_data<float>(shape.inputs(), pattern, 1);
            std::vector<float> y(shape.outputs());
            std::vector<int> place(shape.outputs(), -1);
            for_each_element(shape, [&](std::size_t out, std::size_t in, int at) {
                if (place[out] >= 0 && x[in] <= y[out]) return;
                y[out] = x[in];
                place[out] = at;
            });
            // Reversed: from an address that is no multiple of 16 bytes.
            GuardedBuffer<float> x_device(x.size(), pattern == DataPattern::kReversed ? 1 : 0);
            x_device.copy_from(x);
            GuardedBuffer<float> y_device(y.size());
            GuardedBuffer<std::uint8_t> place_device(y.size());
            day33::max_pool(shape, x_device.span(), y_device.span(), place_device.span(), nullptr);
            EXPECT_EQ(y_device.to_host(), y);
            const std::vector<std::uint8_t> got = place_device.to_host();
            EXPECT_EQ(std::vector<int>(got.begin(), got.end()), place);
            EXPECT_EQ(y_device.damage() + place_device.damage(), "");

            const std::vector<float> dy = course::make_data<float>(y.size(), DataPattern::kSignedUniform, 2);
            std::vector<double> dx(x.size());
            std::vector<double> magnitude(x.size());
            for_each_element(shape, [&](std::size_t out, std::size_t in, int at) {
                if (place[out] != at) return;
                dx[in] += static_cast<double>(dy[out]);
                magnitude[in] += std::abs(static_cast<double>(dy[out]));
            });
            DeviceBuffer<float> dy_device{std::span<const float>(dy)};
            GuardedBuffer<float> dx_device(x.size());
            day33::max_pool_gradient(shape, dy_device.span(), place_device.span(), dx_device.span(), nullptr);
            const course::VerifyResult result =
                course::verify(dx_device.to_host(), dx, {.terms = 256, .factor = 1}, magnitude);
            EXPECT_TRUE(result.ok()) << result.message();
            EXPECT_EQ(dx_device.damage(), "");
        }
}

// In rows of 6 elements, and of 8, which another kernel reads.
TEST_F(Pooling, NanAndInfinityReachTheirWindows) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    for (const int w : {6, 8}) {
        const PoolShape shape{.planes = 1, .h = 2, .w = w, .window = 2, .stride = 2};
        std::vector<float> x = {1, nan, -inf, -inf, 3, 4,   0,   0,  //
                                2, 5,   -inf, -inf, 2, inf, nan, nan};
        if (w == 6) x = {1, nan, -inf, -inf, 3, 4, 2, 5, -inf, -inf, 2, inf};
        DeviceBuffer<float> x_device{std::span<const float>(x)};
        GuardedBuffer<float> y(shape.outputs());
        GuardedBuffer<std::uint8_t> place(shape.outputs());
        day33::max_pool(shape, x_device.span(), y.span(), place.span(), nullptr);
        EXPECT_TRUE(std::isnan(y.to_host()[0]));
        EXPECT_EQ(y.to_host()[1], -inf);
        EXPECT_EQ(y.to_host()[2], inf);
        std::vector<std::uint8_t> expected{1, 0, 3, 2};
        expected.resize(shape.outputs());
        EXPECT_EQ(place.to_host(), expected);
    }
}

// -Inf beside the padding, where windows of 3 x 3 overlap: the padding is never the largest.
TEST_F(Pooling, NothingButMinusInfinityHasAPlace) {
    const PoolShape shape{.planes = 1, .h = 3, .w = 4, .window = 3, .padding = 1, .stride = 2};
    const float inf = std::numeric_limits<float>::infinity();
    DeviceBuffer<float> x{std::span<const float>(std::vector<float>(12, -inf))};
    GuardedBuffer<float> y(4);
    GuardedBuffer<std::uint8_t> place(4);
    day33::max_pool(shape, x.span(), y.span(), place.span(), nullptr);
    EXPECT_EQ(y.to_host(), std::vector<float>(4, -inf));
    EXPECT_EQ(place.to_host(), (std::vector<std::uint8_t>{4, 3, 1, 0}));
}

TEST_F(Pooling, AverageAndItsGradient) {
    for (const PoolShape& shape : shapes()) {
        SCOPED_TRACE(text(shape));
        const double size = shape.window * shape.window;
        const std::vector<float> x = course::make_data<float>(shape.inputs(), DataPattern::kSignedUniform, 3);
        const std::vector<float> dy =
            course::make_data<float>(shape.outputs(), DataPattern::kSignedUniform, 4);
        std::vector<double> y(shape.outputs()), dx(shape.inputs());
        std::vector<double> y_magnitude(y.size()), dx_magnitude(dx.size());
        for_each_element(shape, [&](std::size_t out, std::size_t in, int) {
            y[out] += static_cast<double>(x[in]) / size;
            y_magnitude[out] += std::abs(static_cast<double>(x[in])) / size;
            dx[in] += static_cast<double>(dy[out]) / size;
            dx_magnitude[in] += std::abs(static_cast<double>(dy[out])) / size;
        });
        DeviceBuffer<float> x_device{std::span<const float>(x)};
        DeviceBuffer<float> dy_device{std::span<const float>(dy)};
        GuardedBuffer<float> y_device(y.size());
        GuardedBuffer<float> dx_device(dx.size());
        day33::average_pool(shape, x_device.span(), y_device.span(), nullptr);
        day33::average_pool_gradient(shape, dy_device.span(), dx_device.span(), nullptr);
        const auto terms = static_cast<std::size_t>(size) + 1;
        const course::VerifyResult forward =
            course::verify(y_device.to_host(), y, {.terms = terms, .factor = 1}, y_magnitude);
        EXPECT_TRUE(forward.ok()) << forward.message();
        const course::VerifyResult backward =
            course::verify(dx_device.to_host(), dx, {.terms = terms, .factor = 1}, dx_magnitude);
        EXPECT_TRUE(backward.ok()) << backward.message();
        EXPECT_EQ(y_device.damage() + dx_device.damage(), "");
    }
}

TEST_F(Pooling, RefusesBadArguments) {
    GuardedBuffer<float> x(16), y(4);
    const auto message = [&](const PoolShape& shape) {
        return course::refusal([&] { day33::average_pool(shape, x.span(), y.span(), nullptr); });
    };
    EXPECT_EQ(message({.h = 4, .w = 4}), "");
    EXPECT_NE(message({.h = 4, .w = 4, .window = 17}).find("window is 17"), std::string::npos);
    EXPECT_NE(message({.h = 4, .w = 4, .window = 5}).find("expected a window that fits"), std::string::npos);
    EXPECT_NE(message({.h = 4, .w = 4, .window = 3, .padding = 2}).find("padding is 2"), std::string::npos);
    EXPECT_NE(message({.h = 4, .w = 4, .stride = 0}).find("stride is 0"), std::string::npos);
    EXPECT_NE(message({.h = 4, .w = 5}).find("x has 16 elements; expected 20"), std::string::npos);
}

TEST_F(Pooling, NoPlanesAreLegal) {
    GuardedBuffer<float> x(0), y(0);
    const PoolShape shape{.planes = 0, .h = 4, .w = 4};
    EXPECT_NO_THROW(day33::average_pool(shape, x.span(), y.span(), nullptr));
    EXPECT_NO_THROW(day33::average_pool_gradient(shape, y.span(), x.span(), nullptr));
    DeviceBuffer<std::uint8_t> place(0);
    EXPECT_NO_THROW(day33::max_pool(shape, x.span(), y.span(), place.span(), nullptr));
    EXPECT_NO_THROW(day33::max_pool_gradient(shape, y.span(), place.span(), x.span(), nullptr));
}

class Activation : public course::DeviceTest {};

// A NaN must show in the results, not become 0.
TEST_F(Activation, ANanPassesForwardAndBackward) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const int plane : {3, 4}) {  // 4: four values at a time
        const day33::Channels shape{1, 1, plane};
        std::vector<float> z(shape.elements(), -1.0f);
        z[1] = nan;
        GuardedBuffer<float> y(z.size()), dz(z.size()), dbias(1), scratch(1);
        y.copy_from(z);
        DeviceBuffer<float> bias{std::span<const float>(std::vector<float>{0.5f})};
        day33::bias_relu(shape, y.span(), bias.span(), nullptr);
        EXPECT_TRUE(std::isnan(y.to_host()[1]));
        EXPECT_EQ(y.to_host()[0], 0.0f);
        dz.copy_from(std::vector<float>(z.size(), 2.0f));
        day33::bias_relu_gradient(shape, y.span(), dz.span(), dz.span(), dbias.span(), scratch.span(),
                                  nullptr);
        EXPECT_EQ(dz.to_host()[0], 0.0f);
        EXPECT_EQ(dz.to_host()[1], 2.0f);
        EXPECT_EQ(dbias.to_host()[0], 2.0f);
    }
}

// Without images, the gradient of the bias is a sum of nothing.
TEST_F(Activation, ExtentsOfZero) {
    GuardedBuffer<float> none(0), dbias(3);
    DeviceBuffer<float> bias = course::zeros<float>(3);
    const day33::Channels no_images{0, 3, 4};
    EXPECT_NO_THROW(day33::bias_relu(no_images, none.span(), bias.span(), nullptr));
    day33::bias_relu_gradient(no_images, none.span(), none.span(), none.span(), dbias.span(), none.span(),
                              nullptr);
    EXPECT_EQ(dbias.to_host(), std::vector<float>(3, 0.0f));
    for (const day33::Channels& refused : {day33::Channels{2, 0, 4}, day33::Channels{2, 3, 0}})
        EXPECT_THROW(day33::bias_relu(refused, none.span(), bias.span(), nullptr), std::invalid_argument);
}

TEST_F(Activation, BiasAndReluWithTheirGradients) {
    for (const day33::Channels& shape : {day33::Channels{1, 1, 1}, day33::Channels{3, 5, 8},
                                         day33::Channels{2, 7, 33}, day33::Channels{2, 3, 700}})
        for (const std::size_t misaligned : {0, 1}) {
            SCOPED_TRACE(std::to_string(shape.n) + " x " + std::to_string(shape.k) + " x " +
                         std::to_string(shape.plane));
            const std::size_t n = shape.elements();
            const auto channel = [&](std::size_t i) {
                return i / static_cast<std::size_t>(shape.plane) % static_cast<std::size_t>(shape.k);
            };
            const std::vector<float> z = course::make_data<float>(n, DataPattern::kSignedUniform, 5);
            const std::vector<float> dy = course::make_data<float>(n, DataPattern::kSignedUniform, 6);
            const auto filters = static_cast<std::size_t>(shape.k);
            const std::vector<float> bias = course::make_data<float>(filters, DataPattern::kSignedUniform, 7);
            std::vector<float> y(n), dz(n);
            std::vector<double> dbias(filters), magnitude(filters);
            for (std::size_t i = 0; i < n; ++i) {
                y[i] = std::max(z[i] + bias[channel(i)], 0.0f);
                dz[i] = y[i] > 0 ? dy[i] : 0.0f;
                dbias[channel(i)] += static_cast<double>(dz[i]);
                magnitude[channel(i)] += std::abs(static_cast<double>(dz[i]));
            }
            GuardedBuffer<float> y_device(n, misaligned), dz_device(n, misaligned);
            y_device.copy_from(z);
            dz_device.copy_from(dy);
            DeviceBuffer<float> bias_device{std::span<const float>(bias)};
            GuardedBuffer<float> dbias_device(filters);
            DeviceBuffer<float> scratch(static_cast<std::size_t>(shape.n) * filters);
            day33::bias_relu(shape, y_device.span(), bias_device.span(), nullptr);
            EXPECT_EQ(y_device.to_host(), y);
            day33::bias_relu_gradient(shape, y_device.span(), dz_device.span(), dz_device.span(),
                                      dbias_device.span(), scratch.span(), nullptr);
            EXPECT_EQ(dz_device.to_host(), dz);
            const course::VerifyResult result =
                course::verify(dbias_device.to_host(), dbias, {.terms = n / filters, .factor = 1}, magnitude);
            EXPECT_TRUE(result.ok()) << result.message();
            EXPECT_EQ(y_device.damage() + dz_device.damage() + dbias_device.damage(), "");
        }
}

}  // namespace

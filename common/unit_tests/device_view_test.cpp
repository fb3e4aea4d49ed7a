#include "common/device/device_view.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using DeviceViewTest = course::DeviceTest;

using course::DeviceBuffer;
using course::DeviceMatrix;
using course::DeviceSpan;

// A pointer does not convert to a view implicitly, and a view does not lose its const.
static_assert(!std::is_convertible_v<float*, DeviceSpan<float>>);
static_assert(!std::is_constructible_v<DeviceSpan<float>, float*, std::size_t>);
static_assert(!std::is_constructible_v<DeviceSpan<float>, std::vector<float>>);
static_assert(std::is_convertible_v<DeviceSpan<float>, DeviceSpan<const float>>);
static_assert(!std::is_convertible_v<DeviceSpan<const float>, DeviceSpan<float>>);
static_assert(std::is_convertible_v<DeviceMatrix<float>, DeviceMatrix<const float>>);
static_assert(!std::is_convertible_v<DeviceMatrix<const float>, DeviceMatrix<float>>);

TEST_F(DeviceViewTest, SubspanStaysInside) {
    DeviceBuffer<float> buffer(10);
    const DeviceSpan<float> part = buffer.span().subspan(3, 7);
    EXPECT_EQ(part.data(), buffer.data() + 3);
    EXPECT_EQ(part.size(), 7u);
    EXPECT_TRUE(buffer.span().subspan(10, 0).empty());
    EXPECT_THROW(buffer.span().subspan(3, 8), std::out_of_range);
    EXPECT_THROW(buffer.span().subspan(11, 0), std::out_of_range);
    EXPECT_THROW(buffer.span().subspan(1, static_cast<std::size_t>(-1)), std::out_of_range);
}

TEST_F(DeviceViewTest, RowsAreALeadingDimensionApart) {
    constexpr std::size_t kRows = 3;
    constexpr std::size_t kCols = 4;
    constexpr std::size_t kLeading = 6;
    DeviceBuffer<float> buffer(kRows * kLeading);
    buffer.copy_from(std::vector<float>(kRows * kLeading, -1));
    course::testing::number_matrix({buffer.span(), kRows, kCols, kLeading});

    const std::vector<float> values = buffer.to_host();
    for (std::size_t row = 0; row < kRows; ++row) {
        for (std::size_t col = 0; col < kLeading; ++col) {
            const float expected = col < kCols ? static_cast<float>(100 * row + col) : -1;
            EXPECT_EQ(values[row * kLeading + col], expected) << "row " << row << ", col " << col;
        }
    }
}

TEST_F(DeviceViewTest, MustFitIntoItsSpan) {
    DeviceBuffer<float> buffer(16);
    EXPECT_NO_THROW(buffer.matrix(4, 4));
    EXPECT_NO_THROW(DeviceMatrix<float>(buffer.span(), 3, 4, 6)) << "the last row needs no padding";
    EXPECT_NO_THROW(buffer.matrix(0, 100));
    EXPECT_THROW(buffer.matrix(5, 4), std::invalid_argument);
    EXPECT_THROW(buffer.matrix(1, 17), std::invalid_argument);
    EXPECT_THROW(DeviceMatrix<float>(buffer.span(), 2, 4, 3), std::invalid_argument);
    EXPECT_THROW(buffer.matrix(std::size_t{1} << 33, std::size_t{1} << 33), std::invalid_argument);
}

TEST(DeviceSpan, Overlap) {
    std::vector<float> memory(20);  // only looked at as addresses
    const auto at = [&](std::size_t offset, std::size_t size) {
        return course::DeviceSpan<float>::from_device_pointer(memory.data() + offset, size);
    };
    EXPECT_TRUE(overlap(at(0, 5), at(0, 5)));
    EXPECT_TRUE(overlap(at(0, 5), at(4, 5)));
    EXPECT_TRUE(overlap(at(4, 5), at(0, 5)));
    EXPECT_TRUE(overlap(at(0, 9), at(3, 1))) << "one inside the other";
    EXPECT_FALSE(overlap(at(0, 5), at(5, 5)));
    EXPECT_FALSE(overlap(at(5, 5), at(0, 5)));
    EXPECT_FALSE(overlap(at(3, 0), at(0, 9))) << "nothing overlaps nothing";
    const auto pair = course::DeviceSpan<const double>::from_device_pointer(
        reinterpret_cast<const double*>(memory.data()), 2);
    EXPECT_TRUE(overlap(pair, at(3, 1))) << "elements of another size";
    EXPECT_FALSE(overlap(pair, at(4, 1)));
}

TEST(DeviceMatrix, Overlap) {
    std::vector<float> memory(100);  // only looked at as addresses
    const auto at = [&](std::size_t offset, std::size_t rows, std::size_t cols, std::size_t ld) {
        return course::DeviceMatrix<float>(
            course::DeviceSpan<float>::from_device_pointer(memory.data() + offset, memory.size() - offset),
            rows, cols, ld);
    };
    EXPECT_TRUE(overlap(at(0, 2, 3, 3), at(0, 2, 3, 3)));
    EXPECT_TRUE(overlap(at(0, 2, 3, 3), at(5, 2, 3, 3)));
    EXPECT_FALSE(overlap(at(0, 2, 3, 3), at(6, 2, 3, 3)));
    EXPECT_FALSE(overlap(at(6, 2, 3, 3), at(0, 2, 3, 3)));
    EXPECT_FALSE(overlap(at(0, 4, 5, 10), at(5, 4, 5, 10))) << "left and right half of one matrix";
    EXPECT_FALSE(overlap(at(5, 4, 5, 10), at(0, 4, 5, 10)));
    EXPECT_FALSE(overlap(at(35, 4, 5, 10), at(0, 4, 5, 10))) << "the same, some rows further down";
    EXPECT_TRUE(overlap(at(0, 4, 6, 10), at(5, 4, 5, 10))) << "the halves share a column";
    EXPECT_TRUE(overlap(at(0, 4, 5, 10), at(6, 4, 5, 10))) << "the right half goes on in the next row";
    EXPECT_TRUE(overlap(at(0, 4, 5, 10), at(5, 4, 5, 11)));
    EXPECT_FALSE(overlap(at(0, 0, 5, 10), at(0, 4, 5, 10))) << "nothing overlaps nothing";
    const auto of_shorts = [&](std::size_t offset, std::size_t rows, std::size_t cols, std::size_t ld) {
        return course::DeviceMatrix<const short>(
            course::DeviceSpan<const short>::from_device_pointer(
                reinterpret_cast<const short*>(memory.data()) + offset, 2 * memory.size() - offset),
            rows, cols, ld);
    };
    EXPECT_TRUE(overlap(at(0, 2, 3, 3), of_shorts(11, 1, 1, 1))) << "elements of another size";
    EXPECT_FALSE(overlap(at(0, 2, 3, 3), of_shorts(12, 1, 1, 1)));
    EXPECT_FALSE(overlap(at(0, 4, 5, 10), of_shorts(10, 4, 10, 20))) << "left and right half of one matrix";
    EXPECT_FALSE(overlap(of_shorts(10, 4, 10, 20), at(0, 4, 5, 10)));
    EXPECT_TRUE(overlap(at(0, 4, 5, 10), of_shorts(9, 4, 10, 20))) << "the halves share a byte";
    EXPECT_TRUE(overlap(at(0, 4, 5, 10), of_shorts(10, 4, 11, 20)))
        << "the right half goes on in the next row";
    EXPECT_TRUE(overlap(at(0, 4, 5, 10), of_shorts(10, 4, 5, 10))) << "rows at other distances";
}

}  // namespace

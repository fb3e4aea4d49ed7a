#include "common/check/require.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace {

using course::require;
using course::shape_text;
using course::to_text;

struct Grid {
    std::size_t rows() const { return 3; }
    std::size_t cols() const { return 40; }
};

struct Point {
    int x;
};
std::string to_text(const Point& point) {
    return "x = " + std::to_string(point.x);
}

// Counts how often it is converted to text.
struct Counted {
    int* times;
};
std::string to_text(const Counted& counted) {
    ++*counted.times;
    return "counted";
}

TEST(Require, ThrowsItsPartsJoined) {
    try {
        require(false, "topic: ", std::string("x is "), 3, " and ", Grid{}, ", ", Point{4},
                "; expected less");
        ADD_FAILURE() << "accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "topic: x is 3 and 3 x 40, x = 4; expected less");
    }
}

TEST(Require, BuildsNoTextWhenTheConditionHolds) {
    int times = 0;
    EXPECT_NO_THROW(require(true, "topic: ", Counted{&times}));
    EXPECT_EQ(times, 0);
    EXPECT_THROW(require(false, "topic: ", Counted{&times}), std::invalid_argument);
    EXPECT_EQ(times, 1);
}

TEST(Text, OfWholeNumbersIsDecimal) {
    EXPECT_EQ(to_text(-7), "-7");
    EXPECT_EQ(to_text(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
    EXPECT_EQ(to_text(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
    EXPECT_EQ(to_text(std::int8_t{-65}), "-65") << "a number of 8 bits, and no character";
    EXPECT_EQ(to_text(std::uint8_t{65}), "65");
}

TEST(Text, OfABoolAndOfACharIsWhatTheyMean) {
    EXPECT_EQ(to_text(true), "true");
    EXPECT_EQ(to_text(false), "false");
    EXPECT_EQ(to_text('x'), "x");
}

TEST(Text, OfAFloatReadsAsTheSameNumber) {
    EXPECT_EQ(to_text(1e-7f), "1e-07");
    EXPECT_EQ(to_text(0.1f), "0.1");
    EXPECT_EQ(to_text(0.1), "0.1");
    EXPECT_EQ(to_text(-1.0), "-1");
    EXPECT_EQ(to_text(16777217.0), "16777217");
    EXPECT_EQ(to_text(3.4e38f), "3.4e+38");
    EXPECT_EQ(to_text(std::numeric_limits<double>::denorm_min()), "5e-324");
    EXPECT_EQ(to_text(-std::numeric_limits<double>::infinity()), "-inf");
    EXPECT_EQ(to_text(std::numeric_limits<float>::quiet_NaN()), "nan");
}

TEST(Text, OfAShapeHasAnXBetweenExtents) {
    EXPECT_EQ(shape_text(5), "5");
    EXPECT_EQ(shape_text(3, std::size_t{4}, 5u), "3 x 4 x 5");
    EXPECT_EQ(shape_text(Grid{}), "3 x 40");
    EXPECT_EQ(to_text(Grid{}), "3 x 40");
}

}  // namespace

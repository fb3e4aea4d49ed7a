#include "common/device/half_traits.hpp"

#include <gtest/gtest.h>

namespace {

TEST(HalfTraits, EpsilonIsTheStepAtOne) {
    const std::vector<double> expected = {1.0};
    const auto check = [&](auto value) {
        return verify(std::vector{value}, expected, course::Bound{.factor = 1.5}).ok();
    };
    EXPECT_TRUE(check(__float2half(1 + 0x1p-10f)));
    EXPECT_FALSE(check(__float2half(1 + 0x1p-9f)));
    EXPECT_TRUE(check(__float2bfloat16(1 + 0x1p-7f)));
    EXPECT_FALSE(check(__float2bfloat16(1 + 0x1p-6f)));
    EXPECT_FALSE(check(__float2half(NAN)));
}

}  // namespace

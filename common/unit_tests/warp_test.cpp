#include <gtest/gtest.h>

#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using WarpTest = course::DeviceTest;

TEST_F(WarpTest, EveryLaneGetsTheReductionOfItsOwnWarp) {
    EXPECT_EQ(course::testing::lanes_with_a_wrong_reduction(), 0);
}

TEST_F(WarpTest, EveryThreadGetsTheReductionOfItsBlock) {
    EXPECT_EQ(course::testing::threads_with_a_wrong_block_reduction(), 0);
}

}  // namespace

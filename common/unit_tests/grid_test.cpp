#include "common/device/grid.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using GridTest = course::DeviceTest;

TEST(CeilDiv, RoundsUpWithoutOverflow) {
    EXPECT_EQ(course::ceil_div(0, 4), 0);
    EXPECT_EQ(course::ceil_div(1, 4), 1);
    EXPECT_EQ(course::ceil_div(4, 4), 1);
    EXPECT_EQ(course::ceil_div(5, 4), 2);
    EXPECT_EQ(course::ceil_div(UINT32_MAX, 2U), 0x80000000U);  // (n + 1) / 2 would be 0
}

TEST(BlocksFor, CountsBlocksAndRefusesTooMany) {
    EXPECT_EQ(course::blocks_for(0, 256), 0U);
    EXPECT_EQ(course::blocks_for(257, 256), 2U);
    const std::size_t most = std::size_t{256} * 0x7fffffff;
    EXPECT_EQ(course::blocks_for(most, 256), 0x7fffffffU);
    EXPECT_THROW(course::blocks_for(most + 1, 256), std::invalid_argument);
}

TEST_F(GridTest, ResidentBlocksAreThoseOfAllMultiprocessors) {
    int multiprocessors = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    const unsigned blocks = course::testing::resident_blocks_of_a_small_kernel(1024);
    EXPECT_GE(blocks, static_cast<unsigned>(multiprocessors));
    EXPECT_LE(blocks, 2U * static_cast<unsigned>(multiprocessors));  // 2048 threads each
    EXPECT_EQ(blocks % static_cast<unsigned>(multiprocessors), 0U);
}

TEST_F(GridTest, PacksMoveFourValuesAtOnce) {
    EXPECT_TRUE(course::testing::packs_copy_right());
}

TEST_F(GridTest, PacksAndSingleValuesSeeEachOther) {
    EXPECT_TRUE(course::testing::packs_and_floats_see_each_other());
}

}  // namespace

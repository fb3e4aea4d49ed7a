#include <gtest/gtest.h>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/test/device_test.hpp"
#include "hopper_probe.hpp"

namespace {

using HopperTest = course::DeviceTest;

TEST_F(HopperTest, LibraryIsBuiltForItsArchitecture) {
    int major = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major != 9) GTEST_SKIP() << "needs a GPU of compute capability 9.0; this one has " << major << ".x";
    EXPECT_TRUE(course::testing::built_for_hopper_alone());
}

}  // namespace

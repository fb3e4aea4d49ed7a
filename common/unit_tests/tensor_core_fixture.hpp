// For tests of features of compute capability 8.0; below it they are skipped, with the reason.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "common/check/check.hpp"
#include "common/test/device_test.hpp"

namespace course {

class TensorCoreTest : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped()) return;
        int major = 0;
        CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
        if (major < 8)
            GTEST_SKIP() << "needs a GPU of compute capability 8.0 or more; this one has " << major << ".x";
    }
};

}  // namespace course

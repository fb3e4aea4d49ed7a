// GoogleTest fixtures for tests that need a device: skipped, with the reason, where there is none.
// The CPU stand-in is a device.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>

namespace course {

// Why no kernel can run here; empty if one can.
inline std::string why_no_device() {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return std::string("no CUDA device: ") + cudaGetErrorString(error);
    }
    return devices == 0 ? "no CUDA device: cudaGetDeviceCount found none" : "";
}

template <class Fixture>
class NeedsDevice : public Fixture {
  protected:
    void SetUp() override {
        if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    }
};

using DeviceTest = NeedsDevice<testing::Test>;
template <class Parameter>
using DeviceTestWithParam = NeedsDevice<testing::TestWithParam<Parameter>>;

}  // namespace course

// Tests that run kernels are skipped, with the reason, where there is no device. Including this file is enough.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>

// Why no kernel can run here; empty if one can. The CPU stand-in is a device.
inline std::string why_no_device() {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return std::string("no CUDA device: ") + cudaGetErrorString(error);
    }
    return devices == 0 ? "no CUDA device: cudaGetDeviceCount found none" : "";
}

class SkipWithoutDevice : public testing::EmptyTestEventListener {
    // Called before the test's fixture is made: a test skipped here does nothing at all.
    void OnTestStart(const testing::TestInfo&) override {
        if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    }
};

inline const bool kSkipsWithoutDevice = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new SkipWithoutDevice);
    return true;
}();

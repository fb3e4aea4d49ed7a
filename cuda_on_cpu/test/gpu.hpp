// Tests that run kernels are skipped, with the reason, where there is no device. Including this
// file is enough.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <ostream>
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

// How GoogleTest prints the shape of a grid or a block, in the names of tests for instance.
inline void PrintTo(const dim3& shape, std::ostream* out) {
    *out << shape.x << "x" << shape.y << "x" << shape.z;
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

// What tests of the stand-in's reports share.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "on_device.cuh"

inline bool descending() {
    const char* order = std::getenv("CUDA_ON_CPU_ORDER");
    return order != nullptr && std::string(order) == "descending";
}

// "<the test's file>:<line>", as reports give a place.
inline std::string at_line(int line, const char* file = __builtin_FILE()) {
    return std::filesystem::path(file).filename().string() + ":" + std::to_string(line);
}

// A lesson's helper, in a header.
__device__ inline int of_lane_16_further(int value) {
    return __shfl_down_sync(0xffffffffu, value, 16);
}

static __global__ void set_all(int* out, int value) {
    out[threadIdx.x] = value;
}

// Runs `launch`, which must end in `expected`, and returns what it printed. Afterwards kernels run
// again.
inline std::string report_of(cudaError_t expected, const std::function<void()>& launch) {
    testing::internal::CaptureStderr();
    launch();
    const cudaError_t error = cudaDeviceSynchronize();
    std::string report = testing::internal::GetCapturedStderr();
    EXPECT_EQ(error, expected) << cudaGetErrorName(error) << "\n" << report;
    EXPECT_EQ(cudaGetLastError(), expected);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    DeviceVector<int> out(1024);
    set_all<<<1, 1024>>>(out.data(), 5);
    EXPECT_EQ(out.to_host(), std::vector<int>(1024, 5)) << "kernels run again after a failure";
    return report;
}

inline testing::AssertionResult mentions(const std::string& report,
                                         std::initializer_list<std::string> parts) {
    for (const std::string& part : parts) {
        if (report.find(part) == std::string::npos) {
            return testing::AssertionFailure() << "\"" << part << "\" is missing in:\n" << report;
        }
    }
    return testing::AssertionSuccess();
}

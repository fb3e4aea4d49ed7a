// GoogleTest fixtures for tests that need a device: skipped, with the reason, where there is none.
// The CPU stand-in is a device.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/check.hpp"
#include "common/machine.hpp"

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

// Why a test that needs `bytes` of device memory, gigabytes, cannot run here; empty if it can.
inline std::string why_not_so_large(std::size_t bytes) {
    const std::string gigabytes = std::to_string((bytes >> 30) + 1) + " GB";
    if (is_cpu_stand_in()) return "needs a GPU: " + gigabytes + " would have to move through CPU threads";
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (free_bytes >= bytes + (std::size_t{1} << 30)) return "";
    return "needs " + gigabytes + " of free device memory; " + std::to_string(free_bytes) + " bytes are free";
}

// The parameters of a test suite: pointers to all entries of a list of variants.
template <class Variants>
auto each_of(const Variants& variants) {
    std::vector<decltype(&variants[0])> pointers;
    for (const auto& variant : variants)
        pointers.push_back(&variant);
    return testing::ValuesIn(pointers);
}

// And what their tests are called.
struct VariantName {
    template <class Info>
    std::string operator()(const Info& info) const {
        return info.param->name;
    }
};

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

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/test/device_test.hpp"
#include "launch_kernels.hpp"

namespace {

using course::testing::kStaticSharedBytes;
using course::testing::launched_kernel;
using course::testing::LaunchedKernel;

using LaunchTest = course::DeviceTest;

std::vector<int> numbers_from(int first, std::size_t count) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

TEST_F(LaunchTest, PassesGridBlockSharedMemoryStreamAndArguments) {
    course::GuardedBuffer<int> out(1000);
    const course::CapturedWork work(
        [&](cudaStream_t stream) { launched_kernel(0).launch(96, 4096, stream, out.span(), 7); });
    EXPECT_EQ(work.nodes(), 1U) << "kernels on the given stream";
    work.run();
    EXPECT_EQ(out.to_host(), numbers_from(7, 1000));
    EXPECT_EQ(out.damage(), "");
}

TEST_F(LaunchTest, ThrowsWhatARefusedLaunchLeavesBehind) {
    course::GuardedBuffer<int> out(1000);
    EXPECT_THROW(launched_kernel(0).launch(2048, 0, nullptr, out.span(), 7), course::CudaError);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// Neither part alone exceeds the 48 KB that need no opt-in.
TEST_F(LaunchTest, CountsStaticSharedMemoryToo) {
    course::GuardedBuffer<int> out(1000);
    // The CPU stand-in knows the static size only after the kernel has run.
    launched_kernel(1).launch(256, 0, nullptr, out.span(), 0);
    CUDA_CHECK(cudaDeviceSynchronize());
    launched_kernel(1).launch(256, 48 * 1024, nullptr, out.span(), -5);
    EXPECT_EQ(out.to_host(), numbers_from(-5, 1000));
    EXPECT_GE(launched_kernel(1).allowed(), std::size_t{48 * 1024});
}

TEST_F(LaunchTest, WhatWasAllowedStaysAllowed) {
    course::GuardedBuffer<int> out(1000);
    const LaunchedKernel kernel = launched_kernel(2);
    kernel.allow(59 * 1024);
    EXPECT_EQ(kernel.allowed(), std::size_t{59 * 1024});
    kernel.allow(50 * 1024);
    kernel.launch(256, 49 * 1024, nullptr, out.span(), 0);
    EXPECT_EQ(kernel.allowed(), std::size_t{59 * 1024});
    // Together with its static 4 KB, this is all the shared memory of compute capability 7.5.
    kernel.allow(60 * 1024);
    EXPECT_EQ(kernel.allowed(), std::size_t{60 * 1024});
    CUDA_CHECK(cudaDeviceSynchronize());
}

TEST_F(LaunchTest, SaysHowMuchSharedMemoryIsTooMuch) {
    course::GuardedBuffer<int> out(1000);
    launched_kernel(3).launch(256, 0, nullptr, out.span(), 0);
    CUDA_CHECK(cudaDeviceSynchronize());
    int most = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    const std::size_t fits = static_cast<std::size_t>(most) - kStaticSharedBytes;
    launched_kernel(3).launch(256, fits, nullptr, out.span(), 3);
    EXPECT_EQ(out.to_host(), numbers_from(3, 1000));
    try {
        launched_kernel(3).launch(256, fits + 1, nullptr, out.span(), 3);
        ADD_FAILURE() << "accepted";
    } catch (const course::CudaError& error) {
        EXPECT_EQ(error.code(), cudaErrorInvalidValue);
        EXPECT_EQ(error.what(), "launch: a block has 4096 bytes of static and " + std::to_string(fits + 1) +
                                    " bytes of dynamic shared memory; expected at most " +
                                    std::to_string(most) + " together on this device");
    }
}

}  // namespace

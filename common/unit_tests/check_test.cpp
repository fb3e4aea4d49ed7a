#include "common/check/check.hpp"

#include <gtest/gtest.h>

#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

using CheckLaunchTest = course::DeviceTest;

TEST(Check, SuccessIsSilent) {
    EXPECT_NO_THROW(CUDA_CHECK(cudaSuccess));
}

TEST(Check, FailureNamesCallErrorFileAndLine) {
    const int line = __LINE__ + 2;
    try {
        CUDA_CHECK(cudaErrorInvalidValue);
        FAIL() << "expected CudaError";
    } catch (const course::CudaError& error) {
        const std::string message = error.what();
        EXPECT_EQ(error.code(), cudaErrorInvalidValue);
        const std::string place =
            "check_test.cpp:" + std::to_string(line) + ": cudaErrorInvalidValue failed: ";
        EXPECT_NE(message.find(place), std::string::npos) << message;
        EXPECT_NE(message.find(cudaGetErrorString(cudaErrorInvalidValue)), std::string::npos) << message;
    }
}

TEST_F(CheckLaunchTest, RefusedLaunchIsReportedOnce) {
    EXPECT_THROW(course::testing::launch_too_many_threads(), course::CudaError);
    EXPECT_NO_THROW(CUDA_CHECK_LAUNCH()) << "the error must not be blamed on the next launch";
}

TEST_F(CheckLaunchTest, FailedCallDoesNotTaintTheNextLaunch) {
    EXPECT_THROW(CUDA_CHECK(cudaSetDevice(9999)), course::CudaError);
    EXPECT_NO_THROW(CUDA_CHECK_LAUNCH());
}

}  // namespace

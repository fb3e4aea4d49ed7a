// What the stand-in says of mistakes with several devices.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "reports.cuh"

namespace {

// Before the stand-in reads it.
const int environment_is_set = setenv("CUDA_ON_CPU_DEVICES", "2", 1);

int* ints_on(int device, std::size_t count) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    int* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, count * sizeof(int)), cudaSuccess);
    EXPECT_EQ(cudaMemset(data, 0, count * sizeof(int)), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    return data;
}

constexpr int kStoreLine = __LINE__ + 2;
__global__ void store(int* data) {
    data[threadIdx.x] = 1;
}

__global__ void load(const int* from, int* to) {
    to[threadIdx.x] = from[threadIdx.x];
}

TEST(PeerAccess, AStoreWithoutItIsReported) {
    int* const of_1 = ints_on(1, 64);
    const std::string report = report_of(cudaErrorIllegalAddress, [=] { store<<<1, 32>>>(of_1); });
    EXPECT_TRUE(mentions(
        report, {"kernel store", "at byte", "the 256-byte allocation", "of device 1",
                 "from a kernel of device 0", "cudaDeviceEnablePeerAccess(1, 0)", at_line(kStoreLine)}));
    EXPECT_EQ(cudaFree(of_1), cudaSuccess);
}

TEST(PeerAccess, ALoadWithoutItIsReported) {
    int* const of_0 = ints_on(0, 32);
    int* const of_1 = ints_on(1, 32);
    const std::string report = report_of(cudaErrorIllegalAddress, [=] { load<<<1, 32>>>(of_1, of_0); });
    EXPECT_TRUE(mentions(report, {"kernel load", "of device 1", "from a kernel of device 0"}));
    EXPECT_EQ(cudaFree(of_0), cudaSuccess);
    EXPECT_EQ(cudaFree(of_1), cudaSuccess);
}

TEST(PeerAccess, HoldsInOneDirection) {
    int* const of_0 = ints_on(0, 32);
    int* const of_1 = ints_on(1, 32);
    ASSERT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    store<<<1, 32>>>(of_1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    const std::string report = report_of(cudaErrorIllegalAddress, [=] { store<<<1, 32>>>(of_0); });
    EXPECT_TRUE(mentions(report, {"of device 0", "from a kernel of device 1"}));
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
    const std::string after = report_of(cudaErrorIllegalAddress, [=] { store<<<1, 32>>>(of_1); });
    EXPECT_TRUE(mentions(after, {"from a kernel of device 0"}));
    EXPECT_EQ(cudaFree(of_0), cudaSuccess);
    EXPECT_EQ(cudaFree(of_1), cudaSuccess);
}

// A GPU's error belongs to the context of the device.
TEST(PeerAccess, TheOtherDeviceGoesOn) {
    int* const of_1 = ints_on(1, 32);
    testing::internal::CaptureStderr();
    store<<<1, 32>>>(of_1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    store<<<1, 32>>>(of_1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    int value = 0;
    EXPECT_EQ(cudaMemcpy(&value, of_1, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(value, 1);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    static_cast<void>(testing::internal::GetCapturedStderr());
    EXPECT_EQ(cudaFree(of_1), cudaSuccess);
}

// What lies behind another device's allocation is an overrun, with or without access to it.
TEST(PeerAccess, AnOverrunIsStillOne) {
    int* const of_0 = ints_on(0, 1024);
    const std::string report = report_of(cudaErrorIllegalAddress, [=] { store<<<1, 32>>>(of_0 + 1024); });
    EXPECT_TRUE(mentions(report, {"past the end of the 4096-byte allocation", "of device 0"}));
    EXPECT_EQ(report.find("cudaDeviceEnablePeerAccess"), std::string::npos) << report;
    EXPECT_EQ(cudaFree(of_0), cudaSuccess);
}

TEST(PeerAccess, OfAPoolIsItsOwn) {
    ASSERT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 1), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    int* data = nullptr;
    ASSERT_EQ(cudaMallocFromPoolAsync(&data, 32 * sizeof(int), pool, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const std::string report = report_of(cudaErrorIllegalAddress, [=] { store<<<1, 32>>>(data); });
    EXPECT_TRUE(mentions(report, {"of device 1", "from a kernel of device 0", "cudaMemPoolSetAccess"}));
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
}

TEST(Refused, IsSaidWithBothDevices) {
    testing::internal::CaptureStderr();
    cudaStream_t of_1 = nullptr;
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&of_1), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    int* const data = ints_on(0, 32);
    store<<<1, 32, 0, of_1>>>(data);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaMemcpyPeer(data, 1, data, 0, 4), cudaErrorInvalidValue);
    EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(
        mentions(report, {"the stream belongs to device 1, and device 0 is current",
                          "is memory of device 0; expected device 1", "device 2; there are 2, from 0"}));
    static_cast<void>(cudaGetLastError());
    EXPECT_EQ(cudaStreamDestroy(of_1), cudaSuccess);
    EXPECT_EQ(cudaFree(data), cudaSuccess);
}

__device__ int known_late;
__global__ void count() {
    atomicAdd(&known_late, 1);
}

TEST(Variables, OneThatTheHostDidNotKnowIsShared) {
    for (const int device : {0, 1}) {
        ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
        count<<<1, 32>>>();
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    testing::internal::CaptureStderr();
    int value = 0;
    ASSERT_EQ(cudaMemcpyFromSymbol(&value, known_late, sizeof value), cudaSuccess);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"kernels of several devices ran before", "4 bytes", "cudaMemcpyToSymbol"}));
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

__device__ int flag_of_both;
__global__ void set_and_wait(int* flags, int rank) {
    flag_of_both = 7;
    atomicExch_system(&flags[rank], 1);
    while (atomicAdd_system(&flags[1 - rank], 0) == 0) {
    }
}

TEST(Variables, KernelsThatRunTogetherShareThem) {
    int* flags = nullptr;
    ASSERT_EQ(cudaMallocManaged(&flags, 2 * sizeof(int)), cudaSuccess);
    flags[0] = flags[1] = 0;
    for (const int device : {0, 1}) {
        ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
        const int none = 0;
        ASSERT_EQ(cudaMemcpyToSymbol(flag_of_both, &none, sizeof none), cudaSuccess);
    }
    testing::internal::CaptureStderr();
    for (const int device : {0, 1}) {
        ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
        set_and_wait<<<1, 1>>>(flags, device);
    }
    for (const int device : {0, 1}) {
        ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find("__device__ variable"), std::string::npos) << report;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaFree(flags), cudaSuccess);
}

}  // namespace

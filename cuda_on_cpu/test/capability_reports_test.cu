// A device of another compute capability than 9.0: what it offers, and what the stand-in says of
// kernels that need more.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "reports.cuh"

namespace {

using namespace cuda_on_cpu::ptx;

// Before the stand-in reads it.
const int environment_is_set = setenv("CUDA_ON_CPU_CAPABILITY", "8.6", 1);

TEST(Capability, TheDeviceHasThatOf8_6) {
    cudaDeviceProp properties{};
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_EQ(properties.major, 8);
    EXPECT_EQ(properties.minor, 6);
    EXPECT_EQ(properties.sharedMemPerBlockOptin, 99u << 10);
    EXPECT_EQ(properties.sharedMemPerMultiprocessor, 100u << 10);
    EXPECT_EQ(properties.maxThreadsPerMultiProcessor, 1536);
    EXPECT_EQ(properties.maxBlocksPerMultiProcessor, 16);
    EXPECT_EQ(properties.clusterLaunch, 0);
    cudaFuncAttributes attributes{};
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, set_all), cudaSuccess);
    EXPECT_EQ(attributes.binaryVersion, 86);
}

TEST(Capability, ABlockHasNoMoreSharedMemory) {
    EXPECT_EQ(cudaFuncSetAttribute(set_all, cudaFuncAttributeMaxDynamicSharedMemorySize, 99 << 10),
              cudaSuccess);
    int blocks = 0;
    ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, set_all, 32, 99 << 10), cudaSuccess);
    EXPECT_EQ(blocks, 1);
    ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, set_all, 1024, 0), cudaSuccess);
    EXPECT_EQ(blocks, 1) << "1536 threads";
    EXPECT_EQ(cudaFuncSetAttribute(set_all, cudaFuncAttributeMaxDynamicSharedMemorySize, (99 << 10) + 1),
              cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(Capability, NoClusterIsLaunched) {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = 2;
    config.blockDim = 32;
    config.attrs = &cluster;
    config.numAttrs = 1;
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaLaunchKernelEx(&config, set_all, static_cast<int*>(nullptr), 1), cudaErrorNotSupported);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"kernel set_all", "needs compute capability 9.0", "has 8.6"}));
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

__global__ void multiply(float* out) {
    float d[4] = {};
    const unsigned a[4] = {};
    const unsigned b[2] = {};
    mma_m16n8k8_tf32(d, a, b);
    out[threadIdx.x] = d[0];
}

constexpr int kFp8Line = __LINE__ + 5;
__global__ void multiply_fp8(float* out) {
    float d[4] = {};
    const unsigned a[4] = {};
    const unsigned b[2] = {};
    mma_m16n8k32_e4m3(d, a, b);
    out[threadIdx.x] = d[0];
}

__global__ void copy_in_bulk(const float* from) {
    __shared__ MBarrier barrier;
    __shared__ alignas(16) float to[4];
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&barrier, sizeof to);
    isa::bulk_load(to, from, sizeof to, &barrier);
}

__global__ void multiply_as_warpgroup() {
    wgmma_fence();
}

TEST(Capability, InstructionsOfLaterOnesAreReported) {
    DeviceVector<float> data(32);
    float* const out = data.data();
    EXPECT_EQ(report_of(cudaSuccess, [=] { multiply<<<1, 32>>>(out); }), "");
    EXPECT_TRUE(mentions(
        report_of(cudaErrorNoKernelImageForDevice, [=] { multiply_fp8<<<1, 32>>>(out); }),
        {"mma_m16n8k32_e4m3 needs compute capability 8.9 or more; this device has 8.6", at_line(kFp8Line)}));
    EXPECT_TRUE(mentions(report_of(cudaErrorNoKernelImageForDevice, [=] { copy_in_bulk<<<1, 1>>>(out); }),
                         {"a bulk copy needs compute capability 9.0 or more"}));
    EXPECT_TRUE(
        mentions(report_of(cudaErrorNoKernelImageForDevice, [] { multiply_as_warpgroup<<<1, 128>>>(); }),
                 {"wgmma needs compute capability 9.0; this device has 8.6"}));
}

}  // namespace

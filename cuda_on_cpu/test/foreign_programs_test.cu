// What programs use that were not written for this course. Runs on a GPU and on the stand-in; both
// must say the same.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cuda/functional>
#include <cuda/std/functional>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

namespace cg = cooperative_groups;

// ---- Shifts -------------------------------------------------------------------------------------

struct Fields {
    unsigned bits : 5;
    unsigned word;
};

__global__ void shift(std::uint32_t v, std::uint64_t w, std::int64_t negative, int n, long long* out) {
    *out++ = v << n;
    *out++ = v >> n;
    *out++ = (1 << n) - 1;
    *out++ = static_cast<int>(v) >> n;
    *out++ = static_cast<long long>(w << 2 * n);
    *out++ = static_cast<long long>(w >> n);
    *out++ = negative >> (n + n);
    *out++ = v << -n;
    Fields fields{3, 4};
    fields.bits <<= n - 31;
    fields.word <<= n;
    *out++ = fields.bits + fields.word;
    v >>= n;
    *out++ = v;
}

TEST(Shifts, ByTheWidthAndMoreShiftAllBitsOut) {
    DeviceVector<long long> out(10);
    shift<<<1, 1>>>(0x80000001u, 0x8000000000000001u, -5, 32, out.data());
    EXPECT_EQ(out.to_host(), (std::vector<long long>{0, 0, -1, -1, 0, 0x80000000, -1, 0, 6, 0}));
}

// ---- Cooperative groups -------------------------------------------------------------------------

__global__ void copy_in_batches(const int* in, int* out) {
    __shared__ int first[64], second[64];
    const cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, first, in, sizeof first);
    cg::memcpy_async(block, second, 64, in + 64, 64);
    cg::wait_prior<1>(block);
    out[threadIdx.x] = first[63 - threadIdx.x];
    cg::wait(block);
    out[64 + threadIdx.x] = second[63 - threadIdx.x];
}

TEST(CooperativeGroups, CopyAsynchronously) {
    std::vector<int> in(128), expected(128);
    for (int i = 0; i < 128; ++i) {
        in[i] = i;
        expected[i] = i / 64 * 64 + 63 - i % 64;
    }
    DeviceVector<int> in_device(in), out(128);
    copy_in_batches<<<1, 64>>>(in_device.data(), out.data());
    EXPECT_EQ(out.to_host(), expected);
}

// ---- cuda::std ----------------------------------------------------------------------------------

__global__ void use_cuda_std(int* out) {
    static_assert(cuda::std::is_same<cuda::std::remove_const<const int>::type, int>::value, "cuda::std");
    const cuda::std::tuple<int, float> pair(1, 2.0f);
    *out = cuda::std::plus<int>()(cuda::std::get<0>(pair), 40) + cuda::maximum<int>()(1, 2);
}

TEST(CudaStd, IsTheStandardLibrary) {
    DeviceVector<int> out(1);
    use_cuda_std<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host()[0], 43);
}

// ---- Runtime API --------------------------------------------------------------------------------

TEST(RuntimeApi, NamesErrorsThatNoKernelCauses) {
    EXPECT_STREQ(cudaGetErrorName(cudaErrorStubLibrary), "cudaErrorStubLibrary");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidPtx), "cudaErrorInvalidPtx");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidHostPointer), "invalid host pointer");
}

TEST(RuntimeApi, AttributesAreThoseOfTheProperties) {
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_GE(properties.asyncEngineCount, 1);
    const auto attribute = [](cudaDeviceAttr which) {
        int value = -1;
        EXPECT_EQ(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
        return value;
    };
    EXPECT_EQ(attribute(cudaDevAttrAsyncEngineCount), properties.asyncEngineCount);
    EXPECT_EQ(attribute(cudaDevAttrMaxTexture2DHeight), properties.maxTexture2D[1]);
    EXPECT_EQ(attribute(cudaDevAttrSurfaceAlignment), static_cast<int>(properties.surfaceAlignment));
    EXPECT_GT(attribute(cudaDevAttrClockRate), 0);
    EXPECT_EQ(attribute(cudaDevAttrTccDriver), properties.tccDriver);
}

__global__ void idle() {}

TEST(RuntimeApi, ABlockSizeMayDecideOnTheSharedMemory) {
    int grid = 0, block = 0;
    ASSERT_EQ(cudaOccupancyMaxPotentialBlockSizeVariableSMem(
                  &grid, &block, idle, [](int threads) { return threads * 16; }, 256),
              cudaSuccess);
    EXPECT_EQ(block, 256);
    EXPECT_GT(grid, 0);
    std::size_t bytes = 0;
    ASSERT_EQ(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, idle, 2, 128), cudaSuccess);
    EXPECT_GE(bytes, std::size_t{16} << 10);
}

}  // namespace

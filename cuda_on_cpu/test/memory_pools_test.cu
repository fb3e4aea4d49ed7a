// Memory pools, advice about managed memory, peers, limits and programmatic launches.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

// An error of the given code; it is cleared.
testing::AssertionResult gives(cudaError_t got, cudaError_t expected) {
    static_cast<void>(cudaGetLastError());
    if (got == expected) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "got " << cudaGetErrorName(got);
}

class Pool {
  public:
    Pool() {
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        EXPECT_EQ(cudaMemPoolCreate(&pool_, &properties), cudaSuccess);
    }
    ~Pool() { EXPECT_EQ(cudaMemPoolDestroy(pool_), cudaSuccess); }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    cudaMemPool_t get() const { return pool_; }
    std::uint64_t attribute(cudaMemPoolAttr attribute) const {
        std::uint64_t value = 0;
        EXPECT_EQ(cudaMemPoolGetAttribute(pool_, attribute, &value), cudaSuccess);
        return value;
    }

  private:
    cudaMemPool_t pool_ = nullptr;
};

TEST(MemPools, CountWhatIsInUse) {
    const Pool pool;
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrUsedMemCurrent), 0U);
    int* memory = nullptr;
    ASSERT_EQ(cudaMallocFromPoolAsync(&memory, 4096, pool.get(), nullptr), cudaSuccess);
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrUsedMemCurrent), 4096U);
    EXPECT_GE(pool.attribute(cudaMemPoolAttrReservedMemCurrent), 4096U);
    ASSERT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrUsedMemCurrent), 0U);
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrUsedMemHigh), 4096U);
    std::uint64_t zero = 0;
    ASSERT_EQ(cudaMemPoolSetAttribute(pool.get(), cudaMemPoolAttrUsedMemHigh, &zero), cudaSuccess);
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrUsedMemHigh), 0U);
    EXPECT_EQ(cudaMemPoolTrimTo(pool.get(), 0), cudaSuccess);
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrReservedMemCurrent), 0U);
}

TEST(MemPools, TheDeviceAllocatesFromItsCurrentOne) {
    const Pool pool;
    cudaMemPool_t before = nullptr;
    ASSERT_EQ(cudaDeviceGetMemPool(&before, 0), cudaSuccess);
    ASSERT_EQ(cudaDeviceSetMemPool(0, pool.get()), cudaSuccess);
    int* memory = nullptr;
    ASSERT_EQ(cudaMallocAsync(&memory, 1024, nullptr), cudaSuccess);
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrUsedMemCurrent), 1024U);
    ASSERT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSetMemPool(0, before), cudaSuccess);
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    EXPECT_EQ(cudaMemPoolSetAccess(pool.get(), &access, 1), cudaSuccess);
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    ASSERT_EQ(cudaMemPoolGetAccess(&flags, pool.get(), &access.location), cudaSuccess);
    EXPECT_EQ(flags, cudaMemAccessFlagsProtReadWrite);
}

TEST(MemPools, TheDefaultOneStays) {
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
    EXPECT_NE(cudaMemPoolDestroy(pool), cudaSuccess);
    static_cast<void>(cudaGetLastError());
}

#if CUDART_VERSION >= 13000
TEST(ManagedMemory, TellsTheAdviceItWasGiven) {
    int* memory = nullptr;
    ASSERT_EQ(cudaMallocManaged(&memory, 4096), cudaSuccess);
    const cudaMemLocation device{cudaMemLocationTypeDevice, 0};
    ASSERT_EQ(cudaMemAdvise(memory, 4096, cudaMemAdviseSetReadMostly, device), cudaSuccess);
    ASSERT_EQ(cudaMemAdvise(memory, 4096, cudaMemAdviseSetPreferredLocation, device), cudaSuccess);
    int value = 0;
    ASSERT_EQ(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, 4096),
              cudaSuccess);
    EXPECT_EQ(value, 1);
    value = 99;
    ASSERT_EQ(
        cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributePreferredLocation, memory, 4096),
        cudaSuccess);
    EXPECT_EQ(value, 0);
    EXPECT_TRUE(
        gives(cudaMemAdvise(memory, 4096, cudaMemAdviseSetAccessedBy, {cudaMemLocationTypeDevice, 4711}),
              cudaErrorInvalidValue));
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}
#endif

TEST(Peers, ADeviceIsNotItsOwn) {
    int can = 1;
    ASSERT_EQ(cudaDeviceCanAccessPeer(&can, 0, 0), cudaSuccess);
    EXPECT_EQ(can, 0);
    EXPECT_TRUE(gives(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported));
    DeviceVector<int> from(std::vector<int>{1, 2, 3});
    DeviceVector<int> to(3);
    ASSERT_EQ(cudaMemcpyPeer(to.data(), 0, from.data(), 0, 3 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(to.to_host(), (std::vector<int>{1, 2, 3}));
}

TEST(Limits, OfTheHeapCanBeSet) {
    std::size_t before = 0;
    ASSERT_EQ(cudaDeviceGetLimit(&before, cudaLimitMallocHeapSize), cudaSuccess);
    EXPECT_EQ(before, std::size_t{8} << 20);
    EXPECT_TRUE(gives(cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1), cudaErrorInvalidValue));
}

__global__ void first_half(int* values) {
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__global__ void second_half(int* values) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    values[threadIdx.x] *= 2;
}

TEST(ProgrammaticLaunch, WaitsForTheGridInFrontOfIt) {
    DeviceVector<int> values(64);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    first_half<<<1, 64, 0, stream>>>(values.data());
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = compute_capability() >= 90;
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = dim3(1);
    configuration.blockDim = dim3(64);
    configuration.stream = stream;
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    ASSERT_EQ(cudaLaunchKernelEx(&configuration, second_half, values.data()), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    const std::vector<int> got = values.to_host();
    EXPECT_EQ(got[63], 126);
}

// Hints: what is set can be read back.
TEST(L2Cache, HasAShareToSetAside) {
    cudaDeviceProp properties{};
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_GT(properties.persistingL2CacheMaxSize, 0);
    EXPECT_LE(properties.persistingL2CacheMaxSize, properties.l2CacheSize);
    int most = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&most, cudaDevAttrMaxAccessPolicyWindowSize, 0), cudaSuccess);
    EXPECT_EQ(most, properties.accessPolicyMaxWindowSize);
    EXPECT_GT(most, 0);
    int types = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&types, cudaDevAttrMemoryPoolSupportedHandleTypes, 0), cudaSuccess);
    EXPECT_NE(types & cudaMemHandleTypePosixFileDescriptor, 0);
}

}  // namespace

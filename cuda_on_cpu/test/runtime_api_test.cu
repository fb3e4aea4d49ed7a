// The runtime API: every function the stand-in declares, what it does and which code it returns
// when it cannot. Calls that would end a GPU's context, or that CUDA leaves undefined, are in
// reports_test.cu.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"
#include "stream_and_event.hpp"

namespace {

// Where CUDA's documentation leaves the code open, several are right. Clears the error that the
// call left behind.
testing::AssertionResult is_one_of(cudaError_t got, std::initializer_list<cudaError_t> expected) {
    static_cast<void>(cudaGetLastError());
    if (std::find(expected.begin(), expected.end(), got) != expected.end())
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << "got " << cudaGetErrorName(got);
}
testing::AssertionResult gives(cudaError_t got, cudaError_t expected) {
    return is_one_of(got, {expected});
}

// A launch of impossible shape, and a copy whose rows overlap: the specific code up to CUDA 12, the
// general one after.
const std::initializer_list<cudaError_t> kBadShape = {cudaErrorInvalidConfiguration, cudaErrorInvalidValue};
const std::initializer_list<cudaError_t> kBadPitch = {cudaErrorInvalidPitchValue, cudaErrorInvalidValue};

std::vector<int> counting(std::size_t size) {
    std::vector<int> values(size);
    std::iota(values.begin(), values.end(), 0);
    return values;
}

__global__ void nothing() {}
__global__ void set_to(int* out, int value) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void add_to(int* out, int value) {
    out[blockIdx.x * blockDim.x + threadIdx.x] += value;
}
__global__ void times_two_plus(int* out, int value) {
    *out = 2 * *out + value;
}  // the order of calls shows

// Long enough for the host to be ahead of it.
__global__ void slow_set(int* out, int value) {
    const long long start = clock64();
    while (clock64() - start < 2000000)
        __threadfence();
    *out = value;
}

// To device `location`, or to the host (cudaCpuDeviceId). CUDA 13 has another type for where to.
cudaError_t prefetch(const void* memory, std::size_t bytes, int location, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
    const auto type = location == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    return cudaMemPrefetchAsync(memory, bytes, {type, location}, 0, stream);
#else
    return cudaMemPrefetchAsync(memory, bytes, location, stream);
#endif
}

// ---- Errors -------------------------------------------------------------------------------------

TEST(Errors, HaveNamesAndTexts) {
    EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
    EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidConfiguration), "cudaErrorInvalidConfiguration");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(123456)), "unrecognized error code");
    EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(123456)), "unrecognized error code");
}

TEST(Errors, AllHaveTheirOwnNameAndNumber) {
    const struct {
        cudaError_t code;
        const char* name;
        int number;
    } known[] = {{cudaErrorInvalidValue, "cudaErrorInvalidValue", 1},
                 {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", 2},
                 {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", 9},
                 {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", 12},
                 {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", 13},
                 {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", 21},
                 {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", 98},
                 {cudaErrorNoDevice, "cudaErrorNoDevice", 100},
                 {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", 101},
                 {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", 400},
                 {cudaErrorIllegalState, "cudaErrorIllegalState", 401},
                 {cudaErrorNotReady, "cudaErrorNotReady", 600},
                 {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", 700},
                 {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", 701},
                 {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", 702},
                 {cudaErrorAssert, "cudaErrorAssert", 710},
                 {cudaErrorHardwareStackError, "cudaErrorHardwareStackError", 714},
                 {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", 716},
                 {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", 719},
                 {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge", 720},
                 {cudaErrorNotSupported, "cudaErrorNotSupported", 801},
                 {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", 900},
                 {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", 901},
                 {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", 903},
                 {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", 904},
                 {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit", 906},
                 {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", 907},
                 {cudaErrorInvalidClusterSize, "cudaErrorInvalidClusterSize", 912},
                 {cudaErrorUnknown, "cudaErrorUnknown", 999}};
    for (const auto& error : known) {
        EXPECT_STREQ(cudaGetErrorName(error.code), error.name);
        EXPECT_EQ(static_cast<int>(error.code), error.number) << error.name;
    }
}

// Three ways to fail, with codes of their own.
void launch_too_many_threads() {
    nothing<<<1, 2000>>>();
}
void launch_no_blocks() {
    nothing<<<0, 1>>>();
}
void choose_missing_device() {
    EXPECT_EQ(cudaSetDevice(100000), cudaErrorInvalidDevice);
}

TEST(LastError, IsClearedByGetAndNotByPeek) {
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    launch_too_many_threads();
    const cudaError_t error = cudaPeekAtLastError();
    EXPECT_NE(error, cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST(LastError, SurvivesCallsThatSucceed) {
    launch_no_blocks();
    nothing<<<1, 1>>>();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // this call's own result
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_TRUE(is_one_of(cudaGetLastError(), kBadShape));
}

TEST(LastError, IsTheLatest) {
    launch_no_blocks();
    choose_missing_device();
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(LastError, BelongsToOneHostThread) {
    choose_missing_device();
    cudaError_t seen_elsewhere = cudaErrorUnknown;
    std::thread([&seen_elsewhere] { seen_elsewhere = cudaGetLastError(); }).join();
    EXPECT_EQ(seen_elsewhere, cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

// ---- The device ---------------------------------------------------------------------------------

TEST(Device, IsCountedAndChosen) {
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    ASSERT_GE(count, 1);
    int device = -1;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_TRUE(gives(cudaSetDevice(count), cudaErrorInvalidDevice));
    EXPECT_TRUE(gives(cudaSetDevice(-1), cudaErrorInvalidDevice));
    cudaDeviceProp properties;
    EXPECT_TRUE(gives(cudaGetDeviceProperties(&properties, count), cudaErrorInvalidDevice));
    int value = 0;
    EXPECT_TRUE(gives(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count), cudaErrorInvalidDevice));
    EXPECT_TRUE(gives(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue));
    EXPECT_TRUE(
        gives(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0), cudaErrorInvalidValue));
    int can_access = -1;
    EXPECT_TRUE(gives(cudaDeviceCanAccessPeer(&can_access, 0, count), cudaErrorInvalidDevice));
}

TEST(Device, AttributesAgreeWithProperties) {
    cudaDeviceProp p;
    ASSERT_EQ(cudaGetDeviceProperties(&p, 0), cudaSuccess);
    const struct {
        cudaDeviceAttr attribute;
        std::size_t expected;
    } pairs[] = {
        {cudaDevAttrMaxThreadsPerBlock, static_cast<std::size_t>(p.maxThreadsPerBlock)},
        {cudaDevAttrMaxBlockDimX, static_cast<std::size_t>(p.maxThreadsDim[0])},
        {cudaDevAttrMaxBlockDimY, static_cast<std::size_t>(p.maxThreadsDim[1])},
        {cudaDevAttrMaxBlockDimZ, static_cast<std::size_t>(p.maxThreadsDim[2])},
        {cudaDevAttrMaxGridDimX, static_cast<std::size_t>(p.maxGridSize[0])},
        {cudaDevAttrMaxGridDimY, static_cast<std::size_t>(p.maxGridSize[1])},
        {cudaDevAttrMaxGridDimZ, static_cast<std::size_t>(p.maxGridSize[2])},
        {cudaDevAttrMaxSharedMemoryPerBlock, p.sharedMemPerBlock},
        {cudaDevAttrTotalConstantMemory, p.totalConstMem},
        {cudaDevAttrWarpSize, static_cast<std::size_t>(p.warpSize)},
        {cudaDevAttrMaxRegistersPerBlock, static_cast<std::size_t>(p.regsPerBlock)},
        {cudaDevAttrMultiProcessorCount, static_cast<std::size_t>(p.multiProcessorCount)},
        {cudaDevAttrIntegrated, static_cast<std::size_t>(p.integrated)},
        {cudaDevAttrCanMapHostMemory, static_cast<std::size_t>(p.canMapHostMemory)},
        {cudaDevAttrConcurrentKernels, static_cast<std::size_t>(p.concurrentKernels)},
        {cudaDevAttrEccEnabled, static_cast<std::size_t>(p.ECCEnabled)},
        {cudaDevAttrGlobalMemoryBusWidth, static_cast<std::size_t>(p.memoryBusWidth)},
        {cudaDevAttrL2CacheSize, static_cast<std::size_t>(p.l2CacheSize)},
        {cudaDevAttrMaxThreadsPerMultiProcessor, static_cast<std::size_t>(p.maxThreadsPerMultiProcessor)},
        {cudaDevAttrAsyncEngineCount, static_cast<std::size_t>(p.asyncEngineCount)},
        {cudaDevAttrUnifiedAddressing, static_cast<std::size_t>(p.unifiedAddressing)},
        {cudaDevAttrComputeCapabilityMajor, static_cast<std::size_t>(p.major)},
        {cudaDevAttrComputeCapabilityMinor, static_cast<std::size_t>(p.minor)},
        {cudaDevAttrStreamPrioritiesSupported, static_cast<std::size_t>(p.streamPrioritiesSupported)},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, p.sharedMemPerMultiprocessor},
        {cudaDevAttrMaxRegistersPerMultiprocessor, static_cast<std::size_t>(p.regsPerMultiprocessor)},
        {cudaDevAttrManagedMemory, static_cast<std::size_t>(p.managedMemory)},
        {cudaDevAttrConcurrentManagedAccess, static_cast<std::size_t>(p.concurrentManagedAccess)},
        {cudaDevAttrCooperativeLaunch, static_cast<std::size_t>(p.cooperativeLaunch)},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, p.sharedMemPerBlockOptin},
        {cudaDevAttrMaxBlocksPerMultiprocessor, static_cast<std::size_t>(p.maxBlocksPerMultiProcessor)},
        {cudaDevAttrReservedSharedMemoryPerBlock, p.reservedSharedMemPerBlock},
        {cudaDevAttrMemoryPoolsSupported, static_cast<std::size_t>(p.memoryPoolsSupported)},
        {cudaDevAttrClusterLaunch, static_cast<std::size_t>(p.clusterLaunch)},
    };
    for (const auto& pair : pairs) {
        int value = -1;
        ASSERT_EQ(cudaDeviceGetAttribute(&value, pair.attribute, 0), cudaSuccess) << pair.attribute;
        EXPECT_EQ(static_cast<std::size_t>(value), pair.expected) << "attribute " << pair.attribute;
    }
}

TEST(Device, HasPlausibleProperties) {
    cudaDeviceProp p;
    ASSERT_EQ(cudaGetDeviceProperties(&p, 0), cudaSuccess);
    EXPECT_GT(std::strlen(p.name), 0u);
    EXPECT_EQ(p.warpSize, 32);
    EXPECT_EQ(p.maxThreadsPerBlock, 1024);
    EXPECT_EQ(p.maxThreadsDim[0], 1024);
    EXPECT_EQ(p.maxThreadsDim[1], 1024);
    EXPECT_EQ(p.maxThreadsDim[2], 64);
    EXPECT_EQ(p.maxGridSize[0], 2147483647);
    EXPECT_EQ(p.maxGridSize[1], 65535);
    EXPECT_EQ(p.maxGridSize[2], 65535);
    EXPECT_EQ(p.sharedMemPerBlock, 48u * 1024);
    EXPECT_GE(p.sharedMemPerBlockOptin, p.sharedMemPerBlock);
    EXPECT_GE(p.sharedMemPerMultiprocessor, p.sharedMemPerBlockOptin + p.reservedSharedMemPerBlock);
    EXPECT_EQ(p.totalConstMem, 64u * 1024);
    EXPECT_GT(p.multiProcessorCount, 0);
    EXPECT_GT(p.l2CacheSize, 0);
    EXPECT_GT(p.totalGlobalMem, 1u << 28);
    EXPECT_EQ(p.unifiedAddressing, 1);
}

TEST(Device, TellsVersionsLimitsAndPriorities) {
    int runtime = 0;
    int driver = 0;
    ASSERT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
    ASSERT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
    EXPECT_EQ(runtime / 1000, CUDART_VERSION / 1000);
    EXPECT_GE(driver, 12000);
    std::size_t stack = 0;
    ASSERT_EQ(cudaDeviceGetLimit(&stack, cudaLimitStackSize), cudaSuccess);
    EXPECT_GE(stack, 1024u);
    ASSERT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 2048), cudaSuccess);
    ASSERT_EQ(cudaDeviceGetLimit(&stack, cudaLimitStackSize), cudaSuccess);
    EXPECT_GE(stack, 2048u);
    int least = -1000;
    int greatest = 1000;
    ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    EXPECT_GT(least, greatest);  // lower numbers are more urgent
    int alone = -1000;
    ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&alone, nullptr), cudaSuccess);
    EXPECT_EQ(alone, least);
    ASSERT_EQ(cudaDeviceGetStreamPriorityRange(nullptr, &alone), cudaSuccess);
    EXPECT_EQ(alone, greatest);
    int priorities_supported = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&priorities_supported, cudaDevAttrStreamPrioritiesSupported, 0),
              cudaSuccess);
    EXPECT_EQ(priorities_supported, 1);
    EXPECT_EQ(cudaSetDeviceFlags(cudaDeviceScheduleAuto), cudaSuccess);
    EXPECT_EQ(cudaDeviceSetCacheConfig(cudaFuncCachePreferNone), cudaSuccess);
}

TEST(Device, TellsHowMuchMemoryIsFree) {
    constexpr std::size_t kBytes = 64u << 20;
    bool has_shrunk = false;
    for (int attempt = 0; attempt < 20 && !has_shrunk;
         ++attempt) {  // other programs free memory of a GPU, too
        std::size_t free_before = 0;
        std::size_t total = 0;
        ASSERT_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
        EXPECT_LE(free_before, total);
        void* memory = nullptr;
        ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
        std::size_t free_after = 0;
        ASSERT_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
        has_shrunk = free_after + kBytes <= free_before;
        ASSERT_EQ(cudaFree(memory), cudaSuccess);
    }
    EXPECT_TRUE(has_shrunk);
}

// ---- Allocation ---------------------------------------------------------------------------------

TEST(Malloc, GivesAlignedMemoryOfEverySize) {
    std::vector<char*> blocks;
    for (const std::size_t bytes : {1, 3, 16, 255, 256, 4095, 4096, 4097, 1 << 20}) {
        char* memory = nullptr;
        ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 16, 0u);
        ASSERT_EQ(cudaMemset(memory, 7, bytes), cudaSuccess);
        std::vector<char> back(bytes);
        ASSERT_EQ(cudaMemcpy(back.data(), memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
        EXPECT_EQ(back, std::vector<char>(bytes, 7));
        blocks.push_back(memory);
    }
    for (char* memory : blocks)
        EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(Malloc, OfNothingSucceeds) {
    void* memory = &memory;
    EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
}

#ifdef CUDA_ON_CPU
// The system would grant it, and end the program that uses it.
TEST(Malloc, RefusesMoreThanThisMachineHasToGive) {
    std::size_t free = 0;
    std::size_t total = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    EXPECT_LT(free, total) << "other programs have some";
    void* memory = nullptr;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(gives(cudaMalloc(&memory, total - (std::size_t{1} << 20)), cudaErrorMemoryAllocation));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(" GiB) do not fit: of this machine's "), std::string::npos) << said;
    EXPECT_NE(said.find(" GiB are free"), std::string::npos) << said;
    EXPECT_EQ(memory, nullptr);
}
#endif

TEST(Malloc, RefusesWhatCannotBe) {
    void* memory = nullptr;
    EXPECT_TRUE(gives(cudaMalloc(&memory, std::size_t{1} << 50), cudaErrorMemoryAllocation));
    EXPECT_TRUE(gives(cudaMalloc(static_cast<void**>(nullptr), 4), cudaErrorInvalidValue));
    EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(Free, RefusesWhatIsNotAllocated) {
    char* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 1024), cudaSuccess);
    EXPECT_TRUE(gives(cudaFree(memory + 16), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaFreeHost(memory), cudaErrorInvalidValue));
    ASSERT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_TRUE(gives(cudaFree(memory), cudaErrorInvalidValue)) << "freed twice";
    std::vector<char> host(64);
    EXPECT_TRUE(gives(cudaFree(host.data()), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaFreeHost(host.data()), cudaErrorInvalidValue));
}

TEST(MallocPitch, GivesRowsThatStartAligned) {
    char* memory = nullptr;
    std::size_t pitch = 0;
    constexpr std::size_t kWidth = 100;
    constexpr std::size_t kHeight = 37;
    ASSERT_EQ(cudaMallocPitch(&memory, &pitch, kWidth, kHeight), cudaSuccess);
    EXPECT_GE(pitch, kWidth);
    EXPECT_EQ(pitch % 32, 0u);
    EXPECT_EQ(cudaMemset(memory, 1, pitch * kHeight), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// A product that wraps around would make a small allocation, or a check that passes.
TEST(MallocPitch, RefusesWhatNoMemoryHolds) {
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    void* memory = nullptr;
    std::size_t pitch = 0;
    EXPECT_TRUE(gives(cudaMallocPitch(&memory, &pitch, kMost, 2), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMallocPitch(&memory, &pitch, std::size_t{1} << 33, std::size_t{1} << 33),
                      cudaErrorInvalidValue));
}

#ifdef CUDA_ON_CPU
// On a GPU these succeed, and the kernels after them fail.
TEST(MallocPitch, RefusesThreeExtentsThatNoMemoryHolds) {
    cudaPitchedPtr pitched{};
    const cudaExtent extent = make_cudaExtent(512, std::size_t{1} << 32, std::size_t{1} << 32);
    EXPECT_TRUE(gives(cudaMalloc3D(&pitched, extent), cudaErrorInvalidValue));
}

TEST(Memcpy2D, RefusesRowsThatNoMemoryHolds) {
    constexpr std::size_t kHalf = std::numeric_limits<std::size_t>::max() / 2 + 1;
    DeviceVector<char> device(100);
    std::vector<char> host(100);
    EXPECT_TRUE(gives(cudaMemcpy2D(device.data(), kHalf, host.data(), 10, 10, 3, cudaMemcpyHostToDevice),
                      cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemset2D(device.data(), kHalf, 0, 10, 3), cudaErrorInvalidValue));
    const cudaPitchedPtr pitched = make_cudaPitchedPtr(device.data(), kHalf, 10, 1);
    EXPECT_TRUE(gives(cudaMemset3D(pitched, 0, make_cudaExtent(10, 1, 3)), cudaErrorInvalidValue));
}
#endif

TEST(MallocAsync, IsOrderedByTheStream) {
    const Stream stream;
    int* memory = nullptr;
    ASSERT_EQ(cudaMallocAsync(&memory, 32 * sizeof(int), stream), cudaSuccess);
    set_to<<<1, 32, 0, stream>>>(memory, 5);
    std::vector<int> back(32);
    ASSERT_EQ(cudaMemcpyAsync(back.data(), memory, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(back, std::vector<int>(32, 5));
}

TEST(PinnedMemory, IsReachedByKernels) {
    int* from_malloc_host = nullptr;
    int* from_host_alloc = nullptr;
    ASSERT_EQ(cudaMallocHost(&from_malloc_host, 8 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaHostAlloc(&from_host_alloc, 8 * sizeof(int), cudaHostAllocMapped), cudaSuccess);
    for (int* host : {from_malloc_host, from_host_alloc}) {
        std::fill(host, host + 8, 100);
        int* device = nullptr;
        ASSERT_EQ(cudaHostGetDevicePointer(&device, host, 0), cudaSuccess);
        add_to<<<1, 8>>>(device, 11);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(std::vector<int>(host, host + 8), std::vector<int>(8, 111));
        EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
    }
}

// Unified addressing: the copy's kind names the device, and the pointer decides.
TEST(PinnedMemory, MayBeTheDeviceSideOfACopy) {
    int* pinned = nullptr;
    ASSERT_EQ(cudaMallocHost(&pinned, 8 * sizeof(int)), cudaSuccess);
    const std::vector<int> values = counting(8);
    EXPECT_EQ(cudaMemcpy(pinned, values.data(), 8 * sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
    std::vector<int> back(8);
    EXPECT_EQ(cudaMemcpy(back.data(), pinned, 8 * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(back, values);
    EXPECT_TRUE(gives(cudaMemcpy(pinned, values.data(), 9 * sizeof(int), cudaMemcpyHostToDevice),
                      cudaErrorInvalidValue));
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(PinnedMemory, IsNotDeviceMemory) {
    int* device = nullptr;
    ASSERT_EQ(cudaMalloc(&device, 8 * sizeof(int)), cudaSuccess);
    int* mapped = nullptr;
    EXPECT_TRUE(gives(cudaHostGetDevicePointer(&mapped, device, 0), cudaErrorInvalidValue));
    EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(PinnedMemory, MayBeTheProgramsOwn) {
    std::vector<int> own(4096, 1);
    ASSERT_EQ(cudaHostRegister(own.data(), own.size() * sizeof(int), cudaHostRegisterMapped), cudaSuccess);
    EXPECT_TRUE(gives(cudaHostRegister(own.data(), own.size() * sizeof(int), cudaHostRegisterMapped),
                      cudaErrorHostMemoryAlreadyRegistered));
    int* device = nullptr;
    ASSERT_EQ(cudaHostGetDevicePointer(&device, own.data(), 0), cudaSuccess);
    add_to<<<4, 1024>>>(device, 2);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(own, std::vector<int>(4096, 3));
    ASSERT_EQ(cudaMemset(device + 1, 0, 4094 * sizeof(int)), cudaSuccess);
    EXPECT_EQ(std::accumulate(own.begin(), own.end(), 0), 6) << "all but the first and the last are 0";
    EXPECT_EQ(cudaHostUnregister(own.data()), cudaSuccess);
    EXPECT_TRUE(gives(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered));
}

TEST(ManagedMemory, IsReachedFromBothSides) {
    int* both = nullptr;
    ASSERT_EQ(cudaMallocManaged(&both, 64 * sizeof(int)), cudaSuccess);
    for (int i = 0; i < 64; ++i)
        both[i] = i;
    add_to<<<2, 32>>>(both, 1000);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(both[i], i + 1000);
    EXPECT_EQ(cudaFree(both), cudaSuccess);
}

TEST(ManagedMemory, IsPrefetchedToEitherSide) {
    int concurrent = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0), cudaSuccess);
    if (concurrent == 0) GTEST_SKIP() << "this device moves managed memory only at a launch";
    const Stream stream;
    constexpr std::size_t kBytes = 64 * sizeof(int);
    int* both = nullptr;
    ASSERT_EQ(cudaMallocManaged(&both, kBytes), cudaSuccess);
    std::iota(both, both + 64, 0);
    ASSERT_EQ(prefetch(both, kBytes, 0, stream), cudaSuccess);
    add_to<<<2, 32, 0, stream>>>(both, 1000);
    ASSERT_EQ(prefetch(both, kBytes, cudaCpuDeviceId, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(both[i], i + 1000);

    EXPECT_TRUE(gives(prefetch(both, kBytes, 4711, stream), cudaErrorInvalidDevice));
    int* device = nullptr;
    ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
    EXPECT_TRUE(gives(prefetch(device, kBytes, 0, stream), cudaErrorInvalidValue)) << "not managed";
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaFree(both), cudaSuccess);
}

TEST(MemPool, KeepsItsReleaseThreshold) {
    int supported = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0), cudaSuccess);
    if (supported == 0) GTEST_SKIP() << "this device has no memory pools";
    cudaMemPool_t pool = nullptr;
    EXPECT_TRUE(gives(cudaDeviceGetDefaultMemPool(&pool, 4711), cudaErrorInvalidDevice));
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
    std::uint64_t before = 0;
    ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &before), cudaSuccess);
    std::uint64_t threshold = std::uint64_t{1} << 33;
    ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), cudaSuccess);
    std::uint64_t after = 0;
    ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &after), cudaSuccess);
    EXPECT_EQ(after, threshold);
    EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &before), cudaSuccess);
}

TEST(PointerAttributes, TellTheKindOfMemory) {
    char* device = nullptr;
    char* pinned = nullptr;
    char* managed = nullptr;
    ASSERT_EQ(cudaMalloc(&device, 100), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
    ASSERT_EQ(cudaMallocManaged(&managed, 100), cudaSuccess);
    std::vector<char> plain(100);
    const auto type_of = [](const void* pointer) {
        cudaPointerAttributes attributes{};
        EXPECT_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
        return attributes.type;
    };
    EXPECT_EQ(type_of(device), cudaMemoryTypeDevice);
    EXPECT_EQ(type_of(device + 50), cudaMemoryTypeDevice);
    EXPECT_EQ(type_of(pinned), cudaMemoryTypeHost);
    EXPECT_EQ(type_of(managed), cudaMemoryTypeManaged);
    EXPECT_EQ(type_of(plain.data()), cudaMemoryTypeUnregistered);
    cudaPointerAttributes attributes{};
    ASSERT_EQ(cudaPointerGetAttributes(&attributes, device + 50), cudaSuccess);
    EXPECT_EQ(attributes.device, 0);
    EXPECT_EQ(attributes.devicePointer, device + 50);
    ASSERT_EQ(cudaFree(device), cudaSuccess);
    ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
    ASSERT_EQ(cudaFree(managed), cudaSuccess);
}

// ---- Copies -------------------------------------------------------------------------------------

TEST(Memcpy, GoesInEveryDirection) {
    const std::vector<int> values = counting(1000);
    const std::size_t bytes = values.size() * sizeof(int);
    DeviceVector<int> a(values.size());
    DeviceVector<int> b(values.size());
    std::vector<int> host(values.size());
    std::vector<int> back(values.size());
    EXPECT_EQ(cudaMemcpy(host.data(), values.data(), bytes, cudaMemcpyHostToHost), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(a.data(), host.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(b.data(), a.data(), bytes, cudaMemcpyDeviceToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(back.data(), b.data(), bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(back, values);
    EXPECT_EQ(cudaMemset(a.data(), 0, bytes), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(a.data(), back.data(), bytes, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(back.data() + 500, a.data(), 500 * sizeof(int), cudaMemcpyDefault), cudaSuccess);
    EXPECT_TRUE(std::equal(back.begin(), back.begin() + 500, back.begin() + 500));
    EXPECT_EQ(cudaMemcpy(a.data(), back.data(), 0, cudaMemcpyHostToDevice), cudaSuccess);
}

TEST(Memcpy, RefusesWhatLiesOutside) {
    DeviceVector<int> small(10);
    std::vector<int> host(1000);
    const std::size_t too_many = host.size() * sizeof(int);
    EXPECT_TRUE(gives(cudaMemcpy(small.data(), host.data(), too_many, cudaMemcpyHostToDevice),
                      cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemcpy(host.data(), small.data(), too_many, cudaMemcpyDeviceToHost),
                      cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemset(small.data(), 0, too_many), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemcpy(nullptr, host.data(), 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemcpy(small.data(), nullptr, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemcpy(small.data(), host.data(), 4, static_cast<cudaMemcpyKind>(7)),
                      cudaErrorInvalidMemcpyDirection));
    EXPECT_EQ(small.to_host(), std::vector<int>(10));
}

TEST(Memcpy, RunsInAStream) {
    const Stream stream;
    const std::vector<int> values = counting(1000);
    const std::size_t bytes = values.size() * sizeof(int);
    DeviceVector<int> device(values.size());
    std::vector<int> back(values.size());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(device.data(), values.data(), bytes, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(device.data(), 0, bytes / 2, stream), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(back.data(), device.data(), bytes, cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(back[i], i < 500 ? 0 : i);
}

TEST(Memcpy2D, CopiesAndSetsAPartOfAMatrix) {
    constexpr std::size_t kWidth = 20;  // of the part, in ints
    constexpr std::size_t kHeight = 6;
    constexpr std::size_t kHostPitch = 50 * sizeof(int);
    const std::vector<int> values = counting(50 * 10);
    int* device = nullptr;
    std::size_t pitch = 0;
    ASSERT_EQ(cudaMallocPitch(&device, &pitch, kWidth * sizeof(int), kHeight), cudaSuccess);
    ASSERT_EQ(cudaMemcpy2D(device, pitch, values.data() + 3 * 50 + 7, kHostPitch, kWidth * sizeof(int),
                           kHeight, cudaMemcpyHostToDevice),
              cudaSuccess);
    ASSERT_EQ(cudaMemset2D(reinterpret_cast<char*>(device) + pitch, pitch, 0, 4 * sizeof(int), 2),
              cudaSuccess);
    std::vector<int> back(50 * 10, -1);
    ASSERT_EQ(cudaMemcpy2DAsync(back.data() + 2 * 50 + 1, kHostPitch, device, pitch, kWidth * sizeof(int),
                                kHeight, cudaMemcpyDeviceToHost, nullptr),
              cudaSuccess);
    ASSERT_EQ(cudaMemset2DAsync(device, pitch, 1, kWidth * sizeof(int), kHeight, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::size_t row = 0; row < 10; ++row) {
        for (std::size_t column = 0; column < 50; ++column) {
            const bool inside = row >= 2 && row < 2 + kHeight && column >= 1 && column < 1 + kWidth;
            const bool zeroed = inside && row >= 3 && row < 5 && column < 5;
            const int copied = static_cast<int>((row + 1) * 50 + column + 6);
            EXPECT_EQ(back[row * 50 + column], zeroed ? 0 : inside ? copied : -1) << row << " " << column;
        }
    }
    EXPECT_TRUE(is_one_of(
        cudaMemcpy2D(device, 4, values.data(), kHostPitch, kWidth * sizeof(int), 1, cudaMemcpyHostToDevice),
        kBadPitch));
    EXPECT_EQ(cudaFree(device), cudaSuccess);
}

__constant__ int constants[4];
__device__ int variables[4];

TEST(Symbols, AreCopiedInAStream) {
    const Stream stream;
    const int values[4] = {1, 2, 3, 4};
    int back[4] = {};
    EXPECT_EQ(cudaMemcpyToSymbolAsync(variables, values, sizeof values, 0, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    EXPECT_EQ(cudaMemcpyFromSymbolAsync(back, variables, 2 * sizeof(int), 2 * sizeof(int),
                                        cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(std::vector<int>(back, back + 4), (std::vector<int>{3, 4, 0, 0}));
}

TEST(Symbols, RefuseWhatLiesOutside) {
    int values[5] = {};
    EXPECT_TRUE(gives(cudaMemcpyToSymbol(constants, values, sizeof values), cudaErrorInvalidValue));
    EXPECT_TRUE(
        gives(cudaMemcpyToSymbol(constants, values, sizeof(int), 4 * sizeof(int)), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemcpyFromSymbol(values, constants, 4 * sizeof(int), 1), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaMemcpyFromSymbol(values, constants, 1, ~std::size_t{0}), cudaErrorInvalidValue));
}

// As an H200 does, with pageable host memory and with device memory on the other side.
TEST(Symbols, RefuseAKindWithoutTheDeviceOnTheirSide) {
    const Stream stream;
    DeviceVector<int> on_device(4);
    int on_host[4] = {};
    constexpr std::size_t kBytes = sizeof on_host;
    for (void* const other : {static_cast<void*>(on_host), static_cast<void*>(on_device.data())}) {
        for (const int number : {0, 1, 2, 9}) {
            const auto kind = static_cast<cudaMemcpyKind>(number);
            const cudaError_t to =
                kind == cudaMemcpyHostToDevice ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
            const cudaError_t from =
                kind == cudaMemcpyDeviceToHost ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
            EXPECT_TRUE(gives(cudaMemcpyToSymbol(variables, other, kBytes, 0, kind), to)) << number;
            EXPECT_TRUE(gives(cudaMemcpyToSymbolAsync(variables, other, kBytes, 0, kind, stream), to))
                << number;
            EXPECT_TRUE(gives(cudaMemcpyFromSymbol(other, variables, kBytes, 0, kind), from)) << number;
            EXPECT_TRUE(gives(cudaMemcpyFromSymbolAsync(other, variables, kBytes, 0, kind, stream), from))
                << number;
        }
    }
    EXPECT_EQ(cudaMemcpyToSymbol(variables, on_host, 0, 0, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

// ---- Streams ------------------------------------------------------------------------------------

TEST(Streams, AreCreatedInManyWays) {
    cudaStream_t plain = nullptr;
    cudaStream_t urgent = nullptr;
    ASSERT_EQ(cudaStreamCreate(&plain), cudaSuccess);
    int least = 0;
    int greatest = 0;
    ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest), cudaSuccess);
    unsigned flags = 77;
    EXPECT_EQ(cudaStreamGetFlags(plain, &flags), cudaSuccess);
    EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamDefault));
    EXPECT_EQ(cudaStreamGetFlags(urgent, &flags), cudaSuccess);
    EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
    int priority = 77;
    EXPECT_EQ(cudaStreamGetPriority(urgent, &priority), cudaSuccess);
    EXPECT_EQ(priority, greatest);
    DeviceVector<int> out(2);
    set_to<<<1, 1, 0, plain>>>(out.data(), 1);
    set_to<<<1, 1, 0, urgent>>>(out.data() + 1, 2);
    EXPECT_EQ(cudaStreamSynchronize(plain), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(urgent), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(plain), cudaSuccess);
    EXPECT_EQ(out.to_host(), (std::vector<int>{1, 2}));
    EXPECT_EQ(cudaStreamDestroy(plain), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(urgent), cudaSuccess);
    cudaStream_t refused = nullptr;
    EXPECT_TRUE(gives(cudaStreamCreateWithFlags(&refused, 0x70), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle));
}

TEST(Streams, HavePrioritiesWithinTheRangeOfTheDevice) {
    int least = 0;
    int greatest = 0;
    ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    for (const auto& [asked, given] :
         {std::pair{greatest + 1, greatest + 1}, {greatest - 100, greatest}, {least + 100, least}}) {
        cudaStream_t stream = nullptr;
        ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, asked), cudaSuccess);
        int priority = 77;
        EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
        EXPECT_EQ(priority, given) << "asked for " << asked;
        EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
}

TEST(Streams, ByDefaultHaveNames) {
    DeviceVector<int> out(3);
    set_to<<<1, 1, 0, cudaStreamLegacy>>>(out.data(), 1);
    set_to<<<1, 1, 0, cudaStreamPerThread>>>(out.data() + 1, 2);
    set_to<<<1, 1, 0, 0>>>(out.data() + 2, 3);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(out.to_host(), (std::vector<int>{1, 2, 3}));
}

TEST(Streams, KeepTheirOrder) {
    const Stream stream;
    DeviceVector<int> value(1);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    int expected = 0;
    for (int i = 0; i < 20; ++i) {
        times_two_plus<<<1, 1, 0, stream>>>(value.data(), i % 3);
        expected = 2 * expected + i % 3;
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(value.to_host()[0], expected);
}

TEST(Streams, WaitForEventsOfOthers) {
    const Stream first;
    const Stream second;
    const Event done(cudaEventDisableTiming);
    DeviceVector<int> value(1);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 1; i < 5; ++i) {
        slow_set<<<1, 1, 0, first>>>(value.data(), i);
        ASSERT_EQ(cudaEventRecord(done, first), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(second, done, 0), cudaSuccess);
        times_two_plus<<<1, 1, 0, second>>>(value.data(), 100);
        ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
        EXPECT_EQ(value.to_host()[0], 2 * i + 100);
    }
}

struct HostCall {
    const int* watched;
    int seen = -1;
    cudaError_t status = cudaErrorUnknown;
};

TEST(Streams, CallHostFunctionsInOrder) {
    const Stream stream;
    int* pinned = nullptr;
    ASSERT_EQ(cudaMallocHost(&pinned, sizeof(int)), cudaSuccess);
    *pinned = 0;
    HostCall first{pinned};
    HostCall second{pinned};
    const auto look = [](void* data) {
        auto* call = static_cast<HostCall*>(data);
        call->seen = *call->watched;
    };
    const auto look_back = [](cudaStream_t, cudaError_t status, void* data) {
        auto* call = static_cast<HostCall*>(data);
        call->seen = *call->watched;
        call->status = status;
    };
    slow_set<<<1, 1, 0, stream>>>(pinned, 1);
    ASSERT_EQ(cudaLaunchHostFunc(stream, look, &first), cudaSuccess);
    slow_set<<<1, 1, 0, stream>>>(pinned, 2);
    ASSERT_EQ(cudaStreamAddCallback(stream, look_back, &second, 0), cudaSuccess);
    slow_set<<<1, 1, 0, stream>>>(pinned, 3);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(first.seen, 1);
    EXPECT_EQ(second.seen, 2);
    EXPECT_EQ(second.status, cudaSuccess);
    EXPECT_EQ(*pinned, 3);
    EXPECT_TRUE(gives(cudaLaunchHostFunc(stream, nullptr, nullptr), cudaErrorInvalidValue));
    ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// ---- Events -------------------------------------------------------------------------------------

TEST(Events, MeasureTime) {
    const Event start;
    const Event stop;
    DeviceVector<int> value(1);
    ASSERT_EQ(cudaEventRecord(start), cudaSuccess);
    slow_set<<<1, 1>>>(value.data(), 1);
    ASSERT_EQ(cudaEventRecordWithFlags(stop, nullptr, cudaEventRecordDefault), cudaSuccess);
    ASSERT_EQ(cudaEventSynchronize(stop), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(stop), cudaSuccess);
    float milliseconds = -1;
    ASSERT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaSuccess);
    EXPECT_GT(milliseconds, 0.1f);
    EXPECT_LT(milliseconds, 10000.0f);
}

TEST(Events, NeverRecordedAreNothingToWaitFor) {
    const Event event;
    const Stream stream;
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaSuccess);
}

TEST(Events, RefuseToMeasureWhatWasNotTimed) {
    const Event recorded;
    const Event not_recorded;
    const Event without_timing(cudaEventDisableTiming);
    ASSERT_EQ(cudaEventRecord(recorded), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(without_timing), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    float milliseconds = 0;
    EXPECT_TRUE(
        gives(cudaEventElapsedTime(&milliseconds, recorded, not_recorded), cudaErrorInvalidResourceHandle));
    EXPECT_TRUE(
        gives(cudaEventElapsedTime(&milliseconds, recorded, without_timing), cudaErrorInvalidResourceHandle));
    EXPECT_TRUE(gives(cudaEventRecord(nullptr), cudaErrorInvalidResourceHandle));
    cudaEvent_t plain = nullptr;
    ASSERT_EQ(cudaEventCreate(&plain), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(plain), cudaSuccess);
}

// ---- Graphs -------------------------------------------------------------------------------------

class Graph {
  public:
    explicit Graph(cudaGraph_t graph) : graph_(graph) {
        EXPECT_EQ(cudaGraphInstantiate(&executable_, graph, 0), cudaSuccess);
    }
    ~Graph() {
        EXPECT_EQ(cudaGraphExecDestroy(executable_), cudaSuccess);
        EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    std::size_t nodes() const {
        std::size_t count = 0;
        EXPECT_EQ(cudaGraphGetNodes(graph_, nullptr, &count), cudaSuccess);
        return count;
    }
    void launch(cudaStream_t stream) const { EXPECT_EQ(cudaGraphLaunch(executable_, stream), cudaSuccess); }

  private:
    cudaGraph_t graph_;
    cudaGraphExec_t executable_ = nullptr;
};

cudaStreamCaptureStatus capture_status(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    return status;
}

void count_call(void* calls) {
    ++*static_cast<int*>(calls);
}

TEST(Graphs, TellHowTheirKernelsAreLaunched) {
    const Stream stream;
    DeviceVector<int> value(std::vector<int>{1});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    times_two_plus<<<dim3(2, 3), dim3(32, 4), 48, stream>>>(value.data(), 1);
    ASSERT_EQ(cudaMemsetAsync(value.data(), 0, sizeof(int), stream), cudaSuccess);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphNode_t nodes[2] = {};
    std::size_t count = 2;
    ASSERT_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
    ASSERT_EQ(count, 2u);
    int kernels = 0;
    for (const cudaGraphNode_t node : nodes) {
        cudaKernelNodeParams params{};
        if (cudaGraphKernelNodeGetParams(node, &params) != cudaSuccess) continue;  // the memset
        ++kernels;
        EXPECT_EQ(params.gridDim.x, 2u);
        EXPECT_EQ(params.gridDim.y, 3u);
        EXPECT_EQ(params.blockDim.y, 4u);
        EXPECT_EQ(params.sharedMemBytes, 48u);
    }
    EXPECT_EQ(kernels, 1);
    static_cast<void>(cudaGetLastError());
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(Graphs, ReplayWhatAStreamCaptured) {
    for (const auto mode :
         {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
        const Stream stream;
        DeviceVector<int> value(std::vector<int>{1});
        DeviceVector<int> copy(2);
        int calls = 0;
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(capture_status(stream), cudaStreamCaptureStatusNone);
        ASSERT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
        EXPECT_EQ(capture_status(stream), cudaStreamCaptureStatusActive);
        times_two_plus<<<1, 1, 0, stream>>>(value.data(), 1);
        ASSERT_EQ(cudaMemcpyAsync(copy.data(), value.data(), sizeof(int), cudaMemcpyDeviceToDevice, stream),
                  cudaSuccess);
        ASSERT_EQ(cudaMemsetAsync(copy.data() + 1, 0xff, sizeof(int), stream), cudaSuccess);
        ASSERT_EQ(cudaLaunchHostFunc(stream, count_call, &calls), cudaSuccess);
        cudaGraph_t captured = nullptr;
        ASSERT_EQ(cudaStreamEndCapture(stream, &captured), cudaSuccess);
        EXPECT_EQ(capture_status(stream), cudaStreamCaptureStatusNone);
        EXPECT_EQ(value.to_host()[0], 1) << "capturing runs nothing";

        const Graph graph(captured);
        EXPECT_EQ(graph.nodes(), 4u);
        int expected = 1;
        for (int i = 0; i < 10; ++i) {
            graph.launch(stream);
            expected = 2 * expected + 1;
        }
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(value.to_host()[0], expected);
        EXPECT_EQ(copy.to_host(), (std::vector<int>{expected, -1}));
        EXPECT_EQ(calls, 10);
    }
}

TEST(Graphs, ForkAndJoinByEvents) {
    const Stream origin;
    const Stream side;
    const Event forked(cudaEventDisableTiming);
    const Event joined(cudaEventDisableTiming);
    DeviceVector<int> values(2);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal), cudaSuccess);
    add_to<<<1, 2, 0, origin>>>(values.data(), 10);
    ASSERT_EQ(cudaEventRecord(forked, origin), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side, forked), cudaSuccess);
    EXPECT_EQ(capture_status(side), cudaStreamCaptureStatusActive);
    times_two_plus<<<1, 1, 0, side>>>(values.data(), 1);
    times_two_plus<<<1, 1, 0, origin>>>(values.data() + 1, 2);
    ASSERT_EQ(cudaEventRecord(joined, side), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(origin, joined), cudaSuccess);
    add_to<<<1, 2, 0, origin>>>(values.data(), 100);
    cudaGraph_t captured = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(origin, &captured), cudaSuccess);
    EXPECT_EQ(capture_status(side), cudaStreamCaptureStatusNone);
    EXPECT_EQ(values.to_host(), (std::vector<int>{0, 0}));
    const Graph graph(captured);
    EXPECT_EQ(graph.nodes(), 4u);
    graph.launch(side);
    ASSERT_EQ(cudaStreamSynchronize(side), cudaSuccess);
    EXPECT_EQ(values.to_host(), (std::vector<int>{121, 122}));
    graph.launch(nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(values.to_host(), (std::vector<int>{(121 + 10) * 2 + 1 + 100, (122 + 10) * 2 + 2 + 100}));
}

TEST(Graphs, RefuseAWrongBeginningOrEnd) {
    const Stream stream;
    cudaGraph_t captured = nullptr;
    EXPECT_TRUE(gives(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
                      cudaErrorStreamCaptureUnsupported));
    EXPECT_TRUE(gives(cudaStreamEndCapture(stream, &captured), cudaErrorIllegalState));
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    EXPECT_TRUE(gives(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaErrorIllegalState));
    ASSERT_EQ(cudaStreamEndCapture(stream, &captured), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(captured), cudaSuccess);
}

TEST(Graphs, AreInvalidatedByWaitingInsideACapture) {
    const Stream stream;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    nothing<<<1, 1, 0, stream>>>();
    EXPECT_TRUE(gives(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported));
    EXPECT_EQ(capture_status(stream), cudaStreamCaptureStatusInvalidated);
    cudaGraph_t captured = nullptr;
    EXPECT_TRUE(gives(cudaStreamEndCapture(stream, &captured), cudaErrorStreamCaptureInvalidated));
    EXPECT_EQ(captured, nullptr);
    nothing<<<1, 1, 0, stream>>>();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << "the stream itself goes on";
}

TEST(Graphs, RefuseCallsThatWait) {
    struct {
        cudaStreamCaptureMode mode;
        bool allocation;
        cudaError_t expected;
    } const cases[] = {{cudaStreamCaptureModeGlobal, true, cudaErrorStreamCaptureUnsupported},
                       {cudaStreamCaptureModeRelaxed, true, cudaSuccess},
                       {cudaStreamCaptureModeGlobal, false, cudaErrorStreamCaptureUnsupported},
                       {cudaStreamCaptureModeRelaxed, false, cudaErrorStreamCaptureUnsupported}};
    for (const auto& c : cases) {
        const Stream stream;
        ASSERT_EQ(cudaStreamBeginCapture(stream, c.mode), cudaSuccess);
        void* memory = nullptr;
        EXPECT_TRUE(gives(c.allocation ? cudaMalloc(&memory, 4) : cudaDeviceSynchronize(), c.expected));
        cudaGraph_t captured = nullptr;
        EXPECT_TRUE(gives(cudaStreamEndCapture(stream, &captured),
                          c.expected == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
        if (c.expected == cudaSuccess) {
            EXPECT_EQ(cudaGraphDestroy(captured), cudaSuccess);
        }
        EXPECT_EQ(cudaFree(memory), cudaSuccess);
    }
}

// As an H100 does, where the wrong thread ends the capture, too.
TEST(Graphs, KeepToTheHostThreadThatCaptures) {
    struct {
        cudaStreamCaptureMode mode;
        cudaError_t allocation, end;  // in another thread
    } const cases[] = {
        {cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated},
        {cudaStreamCaptureModeThreadLocal, cudaSuccess, cudaErrorStreamCaptureWrongThread},
        {cudaStreamCaptureModeRelaxed, cudaSuccess, cudaSuccess}};
    for (const auto& c : cases) {
        const Stream stream;
        ASSERT_EQ(cudaStreamBeginCapture(stream, c.mode), cudaSuccess);
        cudaGraph_t captured = nullptr;
        void* memory = nullptr;
        std::thread([&] {
            EXPECT_TRUE(gives(cudaMalloc(&memory, 4), c.allocation));
            EXPECT_TRUE(gives(cudaStreamEndCapture(stream, &captured), c.end));
        }).join();
        EXPECT_EQ(captured != nullptr, c.end == cudaSuccess);
        if (captured != nullptr) {
            EXPECT_EQ(cudaGraphDestroy(captured), cudaSuccess);
        }
        EXPECT_TRUE(gives(cudaStreamEndCapture(stream, &captured), cudaErrorIllegalState));
        EXPECT_EQ(cudaFree(memory), cudaSuccess);
    }
}

TEST(Graphs, AreInvalidatedByALaunchThatIsRefused) {
    const Stream stream;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    nothing<<<1, 2000, 0, stream>>>();
    EXPECT_TRUE(is_one_of(cudaGetLastError(), kBadShape));
    cudaGraph_t captured = nullptr;
    EXPECT_TRUE(gives(cudaStreamEndCapture(stream, &captured), cudaErrorStreamCaptureInvalidated));
}

TEST(Graphs, MayForkWithoutWork) {
    const Stream origin;
    const Stream side;
    const Event forked(cudaEventDisableTiming);
    ASSERT_EQ(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(forked, origin), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side, forked), cudaSuccess);
    cudaGraph_t captured = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(origin, &captured), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(captured), cudaSuccess);
    EXPECT_TRUE(gives(cudaGraphLaunch(nullptr, origin), cudaErrorInvalidValue));
    EXPECT_TRUE(gives(cudaGraphDestroy(nullptr), cudaErrorInvalidValue));
}

TEST(Graphs, KnowWhichNodesComeFirst) {
    for (const bool work_before_the_fork : {false, true}) {
        const Stream origin;
        const Stream side;
        const Event forked(cudaEventDisableTiming);
        const Event joined(cudaEventDisableTiming);
        ASSERT_EQ(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal), cudaSuccess);
        if (work_before_the_fork) nothing<<<1, 1, 0, origin>>>();
        ASSERT_EQ(cudaEventRecord(forked, origin), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(side, forked), cudaSuccess);
        for (const cudaStream_t stream : {cudaStream_t(origin), cudaStream_t(side)}) {
            nothing<<<1, 1, 0, stream>>>();
            nothing<<<1, 1, 0, stream>>>();
        }
        ASSERT_EQ(cudaEventRecord(joined, side), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(origin, joined), cudaSuccess);
        nothing<<<1, 1, 0, origin>>>();
        cudaGraph_t captured = nullptr;
        ASSERT_EQ(cudaStreamEndCapture(origin, &captured), cudaSuccess);
        std::size_t roots = 0;
        EXPECT_EQ(cudaGraphGetRootNodes(captured, nullptr, &roots), cudaSuccess);
        EXPECT_EQ(roots, work_before_the_fork ? 1u : 2u);
        EXPECT_EQ(cudaGraphDestroy(captured), cudaSuccess);
    }
}

TEST(Graphs, RefuseAForkThatIsNotJoined) {
    const Stream origin;
    const Stream side;
    const Event forked(cudaEventDisableTiming);
    ASSERT_EQ(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(forked, origin), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side, forked), cudaSuccess);
    nothing<<<1, 1, 0, side>>>();
    cudaGraph_t captured = nullptr;
    EXPECT_TRUE(gives(cudaStreamEndCapture(side, &captured), cudaErrorStreamCaptureUnmatched));
    EXPECT_TRUE(is_one_of(cudaStreamEndCapture(origin, &captured),
                          {cudaErrorStreamCaptureUnjoined, cudaErrorStreamCaptureInvalidated}));
}

TEST(Graphs, AreNotDisturbedByTheLegacyStream) {
    const Stream blocking(cudaStreamDefault);
    DeviceVector<int> value(1);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
    set_to<<<1, 1>>>(value.data(), 1);  // the legacy stream would have to wait for the capture
    EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
    cudaGraph_t captured = nullptr;
    EXPECT_TRUE(gives(cudaStreamEndCapture(blocking, &captured), cudaErrorStreamCaptureInvalidated));
    EXPECT_EQ(value.to_host()[0], 0);
}

// ---- Launches -----------------------------------------------------------------------------------

__global__ void __launch_bounds__(64) for_64_threads(int* out) {
    *out = 1;
}
__global__ void dynamic_shared(int* out) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = 1;
    *out = shared[threadIdx.x];
}
__global__ void static_shared_4096(int* out) {
    __shared__ int shared[1024];
    shared[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

// A launch that is refused leaves its error behind, runs nothing, and spoils nothing.
template <class Launch>
void expect_refused(Launch launch, std::initializer_list<cudaError_t> expected) {
    DeviceVector<int> out(1);
    launch(out.data());
    EXPECT_TRUE(is_one_of(cudaGetLastError(), expected));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(out.to_host()[0], 0);
    set_to<<<1, 1>>>(out.data(), 3);
    EXPECT_EQ(out.to_host()[0], 3);
}

TEST(Launch, RefusesImpossibleShapes) {
    expect_refused([](int* out) { set_to<<<1, 1025>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<1, dim3(32, 33)>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<1, dim3(1, 1, 65)>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<1, 0>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<1, dim3(1, 0, 1)>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<0, 1>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<dim3(1, 1, 0), 1>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<dim3(1, 65536), 1>>>(out, 1); }, kBadShape);
    expect_refused([](int* out) { set_to<<<dim3(1, 1, 65536), 1>>>(out, 1); }, kBadShape);
}

TEST(Launch, RefusesMoreThreadsThanTheBound) {
    expect_refused([](int* out) { for_64_threads<<<1, 65>>>(out); },
                   {cudaErrorInvalidValue, cudaErrorInvalidConfiguration, cudaErrorLaunchOutOfResources});
}

TEST(Launch, RefusesTooMuchSharedMemory) {
    const std::initializer_list<cudaError_t> kCodes = {cudaErrorInvalidValue};
    expect_refused([](int* out) { dynamic_shared<<<1, 1, 48 * 1024 + 1>>>(out); }, kCodes);
    expect_refused([](int* out) { dynamic_shared<<<1, 1, 1024 * 1024>>>(out); }, kCodes);
    EXPECT_TRUE(
        gives(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
              cudaErrorInvalidValue));
}

// 48 KB, of which the static part is used already. The stand-in learns that part when the kernel
// runs.
TEST(Launch, CountsStaticSharedMemoryToo) {
    DeviceVector<int> out(1024);
    const auto launch = [&](std::size_t bytes) {
        static_shared_4096<<<1, 1024, bytes>>>(out.data());
        return cudaGetLastError();
    };
    ASSERT_EQ(launch(0), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(launch(44 * 1024), cudaSuccess);
    EXPECT_TRUE(gives(launch(44 * 1024 + 1), cudaErrorInvalidValue));
    ASSERT_EQ(
        cudaFuncSetAttribute(static_shared_4096, cudaFuncAttributeMaxDynamicSharedMemorySize, 45 * 1024),
        cudaSuccess);
    EXPECT_EQ(launch(45 * 1024), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(Launch, IsAFunctionToo) {
    DeviceVector<int> out(64);
    int* pointer = out.data();
    int value = 4;
    void* arguments[] = {&pointer, &value};
    EXPECT_EQ(cudaLaunchKernel(set_to, dim3(2), dim3(32), arguments, 0, nullptr), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(64, 4));
    value = 5;
    EXPECT_EQ(
        cudaLaunchKernel(reinterpret_cast<const void*>(set_to), dim3(2), dim3(32), arguments, 0, nullptr),
        cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(64, 5));
    value = 6;
    EXPECT_EQ(cudaLaunchKernel((const void*)set_to, dim3(2), dim3(32), arguments, 0, nullptr), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(64, 6));
    EXPECT_EQ(cudaLaunchKernel(nothing, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
    EXPECT_TRUE(is_one_of(cudaLaunchKernel(set_to, dim3(1), dim3(2000), arguments, 0, nullptr), kBadShape));
    EXPECT_TRUE(
        gives(cudaLaunchKernel(static_cast<const void*>(nullptr), dim3(1), dim3(1), nullptr, 0, nullptr),
              cudaErrorInvalidDeviceFunction));
}

TEST(LaunchEx, TakesAConfiguration) {
    const Stream stream;
    DeviceVector<int> out(64);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeIgnore;
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2);
    config.blockDim = dim3(32);
    config.stream = stream;
    EXPECT_EQ(cudaLaunchKernelEx(&config, set_to, out.data(), 8), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(64, 8));
    config.attrs = attributes;
    config.numAttrs = 2;
    EXPECT_EQ(cudaLaunchKernelEx(&config, add_to, out.data(), 1), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(64, 9));
    config.blockDim = dim3(2000);
    EXPECT_TRUE(is_one_of(cudaLaunchKernelEx(&config, add_to, out.data(), 1), kBadShape));
}

TEST(CooperativeLaunch, RefusesAGridThatDoesNotFit) {
    DeviceVector<int> out(64);
    int* pointer = out.data();
    int value = 4;
    void* arguments[] = {&pointer, &value};
    EXPECT_EQ(cudaLaunchCooperativeKernel(set_to, dim3(2), dim3(32), arguments, 0, nullptr), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(64, 4));
    EXPECT_TRUE(gives(cudaLaunchCooperativeKernel(set_to, dim3(1000000), dim3(32), arguments, 0, nullptr),
                      cudaErrorCooperativeLaunchTooLarge));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// ---- Functions and occupancy --------------------------------------------------------------------

TEST(FunctionAttributes, AreReportedAndSet) {
    DeviceVector<int> out(1024);
    static_shared_4096<<<1, 1024>>>(out.data());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cudaFuncAttributes attributes{};
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, static_shared_4096), cudaSuccess);
    EXPECT_EQ(attributes.sharedSizeBytes, 4096u);  // the stand-in learns it when the kernel runs
    EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
    EXPECT_GT(attributes.ptxVersion, 0);
    EXPECT_GT(attributes.binaryVersion, 0);
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, (const void*)for_64_threads), cudaSuccess);
    EXPECT_EQ(attributes.maxThreadsPerBlock, 64);

    ASSERT_EQ(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024),
              cudaSuccess);
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, dynamic_shared), cudaSuccess);
    EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 100 * 1024);
    ASSERT_EQ(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 50),
              cudaSuccess);
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, dynamic_shared), cudaSuccess);
    EXPECT_EQ(attributes.preferredShmemCarveout, 50);
    EXPECT_EQ(cudaFuncSetCacheConfig(dynamic_shared, cudaFuncCachePreferShared), cudaSuccess);
    EXPECT_TRUE(gives(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, -1),
                      cudaErrorInvalidValue));
    EXPECT_TRUE(
        gives(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 101),
              cudaErrorInvalidValue));
    EXPECT_EQ(cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 * 1024),
              cudaSuccess);
}

TEST(Occupancy, CountsBlocksByThreadsAndSharedMemory) {
    cudaDeviceProp p;
    ASSERT_EQ(cudaGetDeviceProperties(&p, 0), cudaSuccess);
    const auto active = [](auto kernel, int threads, std::size_t shared) {
        int blocks = -1;
        EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared),
                  cudaSuccess);
        return blocks;
    };
    for (const int threads : {1, 32, 33, 64, 100, 128, 256, 512, 1024}) {
        const int whole_warps = (threads + 31) / 32 * 32;
        EXPECT_EQ(active(nothing, threads, 0),
                  std::min(p.maxBlocksPerMultiProcessor, p.maxThreadsPerMultiProcessor / whole_warps))
            << threads;
    }
    const std::size_t each = 40 * 1024;
    EXPECT_EQ(active(nothing, 32, each),
              static_cast<int>(p.sharedMemPerMultiprocessor / (each + p.reservedSharedMemPerBlock)));
    EXPECT_EQ(active(nothing, 1025, 0), 0);
    EXPECT_EQ(active(for_64_threads, 65, 0), active(nothing, 65, 0)) << "launch bounds are not looked at";
    int blocks = 0;
    EXPECT_TRUE(
        gives(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0), cudaErrorInvalidValue));
}

TEST(Occupancy, ProposesABlockSize) {
    cudaDeviceProp p;
    ASSERT_EQ(cudaGetDeviceProperties(&p, 0), cudaSuccess);
    for (const int limit : {0, 256, 64}) {
        int grid = 0;
        int block = 0;
        ASSERT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, set_to, 0, limit), cudaSuccess);
        EXPECT_GT(block, 0);
        EXPECT_LE(block, limit == 0 ? 1024 : limit);
        int active = 0;
        ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&active, set_to, block, 0), cudaSuccess);
        EXPECT_EQ(grid, active * p.multiProcessorCount);
        EXPECT_EQ(active * block,
                  std::min(p.maxThreadsPerMultiProcessor, p.maxBlocksPerMultiProcessor * block));
    }
}

struct Large {
    double values[7];
};
template <class T, class... More>
__global__ void sum_of_arguments(const T first, Large large, int* __restrict__ out, More... more) {
    out[threadIdx.x] = static_cast<int>(first + large.values[6] + (0 + ... + more));
}
cudaError_t launch_by_address(const void* kernel, unsigned threads, void** arguments) {
    return cudaLaunchKernel(kernel, dim3(1), dim3(threads), arguments, 0, nullptr);
}

TEST(Launch, OfAKernelOfWhichOnlyTheAddressIsLeft) {
    DeviceVector<int> out(32);
    int* data = out.data();
    int value = 5;
    void* arguments[] = {&data, &value};
    EXPECT_EQ(launch_by_address((const void*)set_to, 32, arguments), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(32, 5));

    float first = 1;
    Large large = {{0, 0, 0, 0, 0, 0, 10}};
    short small = 100;
    double last = 1000;
    void* many[] = {&first, &large, &data, &small, &last};
    const void* const kernel = reinterpret_cast<const void*>(&sum_of_arguments<float, short, double>);
    EXPECT_EQ(launch_by_address(kernel, 32, many), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(32, 1111));

    int blocks = 0;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0), cudaSuccess);
    EXPECT_GT(blocks, 0);
    static int variable = 0;
    EXPECT_TRUE(gives(launch_by_address(&variable, 1, many), cudaErrorInvalidResourceHandle));
}

TEST(Clusters, AreRefusedWhenTheyDoNotFit) {
    int supported = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&supported, cudaDevAttrClusterLaunch, 0), cudaSuccess);
    if (supported == 0) GTEST_SKIP() << "clusters need compute capability 9.0";
    DeviceVector<int> out(8 * 32);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 4;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8);
    config.blockDim = dim3(32);
    config.attrs = &attribute;
    config.numAttrs = 1;
    EXPECT_EQ(cudaLaunchKernelEx(&config, set_to, out.data(), 1), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(8 * 32, 1));
    int clusters = 0;
    EXPECT_EQ(cudaOccupancyMaxActiveClusters(&clusters, set_to, &config), cudaSuccess);
    EXPECT_GT(clusters, 0);
    config.gridDim = dim3(7);
    EXPECT_TRUE(gives(cudaLaunchKernelEx(&config, set_to, out.data(), 2), cudaErrorInvalidClusterSize));
    config.gridDim = dim3(18);
    attribute.val.clusterDim.x = 9;
    EXPECT_TRUE(gives(cudaLaunchKernelEx(&config, set_to, out.data(), 2), cudaErrorInvalidClusterSize));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(8 * 32, 1));
}

}  // namespace

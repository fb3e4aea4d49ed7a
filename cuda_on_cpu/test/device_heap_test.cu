// The heap of a device, from which malloc() and new take in kernels.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "on_device.cuh"

namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

struct Counted {
    __device__ explicit Counted(int* count_in) : count(count_in) { atomicAdd(count, 1); }
    __device__ ~Counted() { atomicSub(count, 1); }
    int* count;
    float values[1000];
};
struct Base {
    __device__ virtual ~Base() {}
    double numbers[64];
};
struct Derived : Base {
    __device__ ~Derived() override { numbers[0] = 0; }
    double more[64];
};
struct alignas(128) Aligned {
    float values[32];
};

// All that is allocated here stays allocated.
__global__ void allocate_and_keep(std::size_t bytes, int* failed) {
    if (malloc(bytes) == nullptr) atomicAdd(failed, 1);
}
__global__ void allocate_objects(int n, int* constructed, int* failed) {
    for (int i = 0; i < n; ++i)
        if (new Counted(constructed) == nullptr) atomicAdd(failed, 1);
}
#ifdef CUDA_ON_CPU  // nvcc has no such operator in device code
__global__ void allocate_without_exceptions(int n, int* constructed, int* failed) {
    for (int i = 0; i < n; ++i)
        if (new (std::nothrow) Counted(constructed) == nullptr) atomicAdd(failed, 1);
}
#endif
__global__ void allocate_arrays(int n, int* failed) {
    for (int i = 0; i < n; ++i)
        if (new float4[4096] == nullptr) atomicAdd(failed, 1);
}

// 200 times 64 KB or more in each way, but never more than a few at a time.
__global__ void allocate_and_free(int* counted, int* failed) {
    for (int i = 0; i < 200; ++i) {
        void* const memory = malloc(65536);
        Counted* const object = new Counted(counted);
        double* const numbers = new double[8192];
        Base* const derived = new Derived;
        Aligned* const aligned = new Aligned[512];
        Base* const bases = new Base[128];
        if (memory == nullptr || object == nullptr || numbers == nullptr || derived == nullptr ||
            aligned == nullptr || bases == nullptr || reinterpret_cast<std::size_t>(aligned) % 16 != 0)
            atomicAdd(failed, 1);
        free(memory);
        delete object;
        delete[] numbers;
        delete derived;
        delete[] aligned;
        delete[] bases;
    }
}

// The failures of a launch, in a context of its own.
template <class Launch>
int failures(std::size_t heap, Launch launch) {
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaDeviceSetLimit(cudaLimitMallocHeapSize, heap), cudaSuccess);
    DeviceVector<int> counts(2);
    EXPECT_EQ(cudaMemset(counts.data(), 0, 2 * sizeof(int)), cudaSuccess);
    launch(counts.data(), counts.data() + 1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return counts.to_host()[1];
}

TEST(DeviceHeap, HasEightMegabytesUnlessItIsSet) {
    std::size_t size = 0;
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize), cudaSuccess);
    EXPECT_EQ(size, 8 * kMegabyte);
    EXPECT_EQ(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 * kMegabyte), cudaSuccess);
    EXPECT_EQ(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize), cudaSuccess);
    EXPECT_GE(size, 32 * kMegabyte);
}

TEST(DeviceHeap, GivesNullWhenItIsFull) {
    const int failed = failures(
        8 * kMegabyte, [](int*, int* count) { allocate_and_keep<<<2, 256>>>(std::size_t{65536}, count); });
    EXPECT_GE(failed, 512 - 128);
    EXPECT_LT(failed, 512);
    EXPECT_EQ(failures(64 * kMegabyte,
                       [](int*, int* count) { allocate_and_keep<<<2, 256>>>(std::size_t{65536}, count); }),
              0);
}

TEST(DeviceHeap, GivesNullForObjectsAndArrays) {
    const int objects = failures(8 * kMegabyte, [](int* constructed, int* failed) {
        allocate_objects<<<1, 32>>>(100, constructed, failed);
    });
    EXPECT_GT(objects, 1000);
    EXPECT_LT(objects, 3200);
    EXPECT_EQ(
        failures(64 * kMegabyte, [](int* constructed,
                                    int* failed) { allocate_objects<<<1, 32>>>(100, constructed, failed); }),
        0);
#ifdef CUDA_ON_CPU
    const int without_exceptions = failures(8 * kMegabyte, [](int* constructed, int* failed) {
        allocate_without_exceptions<<<1, 32>>>(100, constructed, failed);
    });
    EXPECT_GT(without_exceptions, 1000);
    EXPECT_LT(without_exceptions, 3200);
    EXPECT_EQ(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * kMegabyte), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
#endif
    const int arrays =
        failures(8 * kMegabyte, [](int*, int* failed) { allocate_arrays<<<1, 32>>>(8, failed); });
    EXPECT_GE(arrays, 256 - 128);
    EXPECT_LT(arrays, 256);
}

TEST(DeviceHeap, TakesBackWhatIsFreed) {
    EXPECT_EQ(failures(8 * kMegabyte,
                       [](int* counted, int* failed) { allocate_and_free<<<1, 4>>>(counted, failed); }),
              0);
}

TEST(DeviceHeap, KeepsItsSizeOnceAKernelHasUsedIt) {
    EXPECT_EQ(failures(8 * kMegabyte,
                       [](int*, int* count) { allocate_and_keep<<<1, 1>>>(std::size_t{64}, count); }),
              0);
    EXPECT_EQ(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * kMegabyte), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * kMegabyte), cudaSuccess);
}

}  // namespace

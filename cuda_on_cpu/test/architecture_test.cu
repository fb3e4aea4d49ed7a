// What __CUDA_ARCH__ selects: device code sees it, host code does not. Runs on a GPU and on the
// stand-in; both must say the same.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

__global__ void guarded(int* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 500
    out[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
#endif
}

TEST(Architecture, AGuardedKernelHasItsBody) {
    DeviceVector<int> out(32);
    guarded<<<1, 32>>>(out.data());
    EXPECT_EQ(out.to_host()[31], 32);
}

__host__ __device__ inline int side() {
#ifdef __CUDA_ARCH__
    return 1;
#else
    return 0;
#endif
}

template <class T>
__host__ __device__ T side_of(T x) {
#if !defined(__CUDA_ARCH__)
    return x;
#else
    return -x;
#endif
}

struct Position {
    int x;
    __host__ __device__ explicit Position(int at) : x{at} {
#ifdef __CUDA_ARCH__
        x += 100;
#endif
    }
    __host__ __device__ constexpr int weight() const {
#ifdef __CUDA_ARCH__
        return 2;
#else
        return 3;
#endif
    }
};

// Throws on the host; there are no exceptions on the device.
__host__ __device__ inline int checked(int x) {
#ifndef __CUDA_ARCH__
    if (x < 0) throw std::out_of_range("x is negative; expected 0 or more");
#endif
    return x;
}

namespace deep {
#ifdef __CUDA_ARCH__
constexpr int kLevel = 7;
#define LEVEL_OF_MACRO 70
#else
constexpr int kLevel = 5;
#define LEVEL_OF_MACRO 50
#endif
constexpr int kTwice = 2 * kLevel;

__host__ __device__ inline int levels() {
    return kLevel + 1000 * kTwice + 1000000 * LEVEL_OF_MACRO;
}

__host__ __device__ inline int line() {
#ifdef __CUDA_ARCH__
    return __LINE__;
#else

    return __LINE__;
#endif
}
}  // namespace deep

#ifdef __CUDA_ARCH__
__device__ inline int one_of_each() {
    return 1;
}
#else
inline int one_of_each() {
    return 0;
}
#endif
#ifdef __CUDA_ARCH__
__device__ inline int for_the_device() {
    return 4;
}
#endif

__global__ void tell(int* out) {
    *out++ = side();
    *out++ = side_of(8);
    *out++ = Position(1).x;
    *out++ = Position(1).weight();
    *out++ = checked(-1);
    *out++ = deep::levels();
    *out++ = deep::line();
#ifdef __CUDA_ARCH__
    *out++ = one_of_each();
    *out++ = for_the_device();
#endif
}

TEST(Architecture, FunctionsOfBothSidesHaveTwoBodies) {
    DeviceVector<int> out(9);
    tell<<<1, 1>>>(out.data());
    const std::vector<int> device = out.to_host();
    const int line = deep::line();
    EXPECT_EQ(device, (std::vector<int>{1, -8, 101, 2, -1, 7 + 14 * 1000 + 70 * 1000000, line - 3, 1, 4}));
    EXPECT_EQ(side(), 0);
    EXPECT_EQ(side_of(8), 8);
    EXPECT_EQ(Position(1).x, 1);
    EXPECT_EQ(Position(1).weight(), 3);
    EXPECT_THROW(checked(-1), std::out_of_range);
    EXPECT_EQ(deep::levels(), 5 + 10 * 1000 + 50 * 1000000);
    EXPECT_EQ(one_of_each(), 0);
}

// Before compute capability 6.0 programs brought their own; they still do.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
__device__ double atomicAdd(double* address, double value) {
    *address = -1;
    return value;
}
#endif

__global__ void add(double* sum) {
    atomicAdd(sum, 2.0);
}

TEST(Architecture, FunctionsForOlderGpusAreLeftOut) {
    DeviceVector<double> sum(1);
    add<<<1, 3>>>(sum.data());
    EXPECT_EQ(sum.to_host()[0], 6.0);
}

}  // namespace

// What the textbook tests share: the error check every CUDA program has, memory by hand, data, and
// comparison with a plain CPU computation.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu.hpp"

inline void throw_if_failed(cudaError_t error, const char* call, const char* file, int line) {
    if (error == cudaSuccess) return;
    throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                             cudaGetErrorString(error));
}
#define CUDA_CHECK(call) throw_if_failed((call), #call, __FILE__, __LINE__)

template <class T>
T* device_array(std::size_t count) {
    T* data = nullptr;
    CUDA_CHECK(cudaMalloc(&data, count * sizeof(T)));
    return data;
}

template <class T>
T* upload(const std::vector<T>& host) {
    T* data = device_array<T>(host.size());
    CUDA_CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return data;
}

// Also the place where an error of the kernels before it comes to light.
template <class T>
std::vector<T> download(const T* data, std::size_t count) {
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<T> host(count);
    CUDA_CHECK(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

template <class... T>
void release(T*... data) {
    (CUDA_CHECK(cudaFree(data)), ...);
}

constexpr __host__ __device__ int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

// ---- Data: the same on every machine and with every compiler ------------------------------------

constexpr std::uint64_t kSeed = 20240613;

class Random {
  public:
    explicit Random(std::uint64_t seed = kSeed) : state_(seed) {}

    // Uniform in [0, bound).  SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
    int below(int bound) {
        state_ += 0x9e3779b97f4a7c15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return static_cast<int>((z ^ (z >> 31)) % static_cast<std::uint64_t>(bound));
    }
    // Uniform in [-1, 1).
    float real() { return static_cast<float>(below(1 << 24)) / static_cast<float>(1 << 23) - 1.0f; }

  private:
    std::uint64_t state_;
};

// Values from -bound to bound.
inline std::vector<int> random_ints(int count, int bound, std::uint64_t seed = kSeed) {
    Random random(seed);
    std::vector<int> values(static_cast<std::size_t>(count));
    for (int& value : values)
        value = random.below(2 * bound + 1) - bound;
    return values;
}

inline std::vector<float> random_floats(int count, std::uint64_t seed = kSeed) {
    Random random(seed);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values)
        value = random.real();
    return values;
}

// ---- Comparison ---------------------------------------------------------------------------------

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (got[i] == expected[i]) continue;
        if (++wrong <= 5) ADD_FAILURE() << "[" << i << "] is " << got[i] << ", expected " << expected[i];
    }
    EXPECT_EQ(wrong, 0) << "of " << got.size() << " values; seed " << kSeed;
}

// A NaN is near nothing.
template <class T, class Reference>
void expect_near(const std::vector<T>& got, const std::vector<Reference>& expected, double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i])) <= tolerance) continue;
        if (++wrong <= 5) ADD_FAILURE() << "[" << i << "] is " << got[i] << ", expected " << expected[i];
    }
    EXPECT_EQ(wrong, 0) << "of " << got.size() << " values; tolerance " << tolerance << "; seed " << kSeed;
}

// Runs small functions on the device and brings their results to the host, for tests that must hold
// on a GPU as well.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "gpu.hpp"

// Device memory filled from a vector, and back.
template <class T>
class DeviceVector {
  public:
    explicit DeviceVector(const std::vector<T>& values) : size_(values.size()) {
        EXPECT_EQ(cudaMalloc(&data_, size_ * sizeof(T)), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
        // From pageable memory, cudaMemcpy may return before the data has arrived. A kernel in a
        // non-blocking stream would not wait for it.
        EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    }
    explicit DeviceVector(std::size_t size) : DeviceVector(std::vector<T>(size)) {}
    ~DeviceVector() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
    DeviceVector(const DeviceVector&) = delete;
    DeviceVector& operator=(const DeviceVector&) = delete;

    T* data() { return data_; }
    std::vector<T> to_host() const {
        std::vector<T> values(size_);
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return values;
    }

  private:
    std::size_t size_;
    T* data_ = nullptr;
};

// 90 for Hopper, 80 for Ampere. Tests leave out what an older GPU does not have.
inline int compute_capability() {
    int device = 0, major = 0, minor = 0;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), cudaSuccess);
    EXPECT_EQ(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), cudaSuccess);
    return 10 * major + minor;
}

// ---- A function applied to many inputs ----------------------------------------------------------

template <class Function, class In, class Out>
__global__ void apply(Function function, const In* inputs, Out* outputs, std::size_t count) {
    const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i < count) outputs[i] = function(inputs[i]);
}

// {function(input) for every input}, computed on the device
template <class Out, class Function, class In>
std::vector<Out> map_on_device(Function function, const std::vector<In>& inputs) {
    constexpr unsigned kBlock = 256;
    DeviceVector<In> device_inputs(inputs);
    DeviceVector<Out> device_outputs(inputs.size());
    const unsigned grid = static_cast<unsigned>((inputs.size() + kBlock - 1) / kBlock);
    apply<<<grid, kBlock>>>(function, static_cast<const In*>(device_inputs.data()), device_outputs.data(),
                            inputs.size());
    return device_outputs.to_host();
}

// ---- Single checks, written where the call is ---------------------------------------------------

struct Observation {
    int line;
    bool real;
    double tolerance;  // relative
    long long got_integer, expected_integer;
    double got_real, expected_real;
};

// Handed to a kernel of one thread, which reports what it got and what is right; run_checks
// compares on the host.
class Checks {
  public:
    static constexpr unsigned kCapacity = 512;

    Checks(Observation* observations, unsigned* count) : observations_(observations), count_(count) {}

    // The same number: all NaNs are one, but -0 is not +0.
    template <class T>
    __device__ void equal(T got, std::type_identity_t<T> expected, int line = __builtin_LINE()) {
        if constexpr (std::is_floating_point_v<T>) {
            near(got, expected, 0.0, line);
        } else {
            add({line, false, 0.0, static_cast<long long>(got), static_cast<long long>(expected), 0.0, 0.0});
        }
    }
    __device__ void near(double got, double expected, double tolerance, int line = __builtin_LINE()) {
        add({line, true, tolerance, 0, 0, got, expected});
    }

  private:
    __device__ void add(Observation observation) {
        if (*count_ < kCapacity) observations_[*count_] = observation;
        ++*count_;
    }

    Observation* observations_;
    unsigned* count_;
};

// The same value, unknown to the compiler: what is called with it is computed by the machine, not
// by the compiler.
template <class T>
__device__ T hidden(T value) {
    const volatile T copy = value;
    return copy;
}

inline bool agrees(double got, double expected, double tolerance) {
    if (std::isnan(expected)) return std::isnan(got);
    if (got == expected) return tolerance > 0 || std::signbit(got) == std::signbit(expected);
    return std::fabs(got - expected) <= tolerance * std::fabs(expected);
}

inline void compare(const std::vector<Observation>& observations, unsigned count) {
    ASSERT_GT(count, 0u) << "the kernel checked nothing";
    ASSERT_LE(count, observations.size());
    for (unsigned i = 0; i < count; ++i) {
        const Observation& seen = observations[i];
        if (seen.real) {
            EXPECT_TRUE(agrees(seen.got_real, seen.expected_real, seen.tolerance))
                << "line " << seen.line << ": got " << seen.got_real << ", expected " << seen.expected_real
                << " within " << seen.tolerance;
        } else {
            EXPECT_EQ(seen.got_integer, seen.expected_integer) << "line " << seen.line;
        }
    }
}

// Runs kernel(checks, pointers...) with one thread.
template <class... Pointers>
void run_checks(void (*kernel)(Checks, Pointers...), Pointers... pointers) {
    DeviceVector<Observation> observations(Checks::kCapacity);
    DeviceVector<unsigned> count(1);
    kernel<<<1, 1>>>(Checks(observations.data(), count.data()), pointers...);
    const unsigned found = count.to_host()[0];
    compare(observations.to_host(), found);
}

// ---- Data ---------------------------------------------------------------------------------------

constexpr std::uint64_t kSeed = 20240229;

inline std::vector<std::uint32_t> random_words(std::size_t count, std::uint64_t seed = kSeed) {
    ::testing::Test::RecordProperty("seed", std::to_string(seed));
    std::mt19937_64 generator(seed);
    std::vector<std::uint32_t> words(count);
    for (std::uint32_t& word : words)
        word = static_cast<std::uint32_t>(generator() >> 32);
    return words;
}

// Compares got[i] with reference(inputs[i]); reports the first few that differ.
template <class Out, class In, class Reference>
void expect_same(const std::vector<Out>& got, const std::vector<In>& inputs, Reference reference) {
    constexpr int kReported = 5;
    int wrong = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Out expected = reference(inputs[i]);
        if (got[i] == expected) continue;
        if (wrong++ < kReported)
            ADD_FAILURE() << "input " << i << ": got " << got[i] << ", expected " << expected;
    }
    EXPECT_EQ(wrong, 0) << "seed " << kSeed;
}

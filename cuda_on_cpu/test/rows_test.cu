// Kernels whose threads only compute, and kernels that look like them. The stand-in runs the first
// in loops over their threads (cuda_on_cpu/rows.h), which must not show: each is launched both
// ways, in blocks of 96 and 10 x 7 threads, the last ones not full.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "both_ways.cuh"
#include "on_device.cuh"
#ifdef CUDA_ON_CPU
#include "cuda_on_cpu/few_blocks.h"
#endif

namespace {

// ---- Kernels that only compute ------------------------------------------------------------------

// Two products and sums, of which a compiler may make fused operations, in one place or another.
__global__ void products(float* out, const float* x, float a, float b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float square = x[i < n ? i : 0] * a;
    if (i >= n) return;
    out[i] = a * b + x[i] * out[i] + square;
}
__global__ void sizes(float* out, const float* x, const float* y, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] - y[i];
}
template <class T>
__global__ void convert(T* out, const float* x, int n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < static_cast<unsigned>(n)) out[i] += static_cast<T>(x[i]);
}
__global__ void change_parameters(int* out, int n, int count) {
    ++count;
    n -= static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    out += blockIdx.x * blockDim.x + threadIdx.x;
    if (n > 0) *out = count;
}
__global__ void two_dimensions(int* out, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        out[y * width + x] = 1000 * y + 10 * x + static_cast<int>(gridDim.x + gridDim.y + blockDim.z);
}
__global__ void vectors(float* out, const float4* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 3 >= n) return;
    float4 v = x[i];
    v.y = sqrtf(fabsf(v.y));
    reinterpret_cast<float4*>(out)[i] = {v.w, v.z, v.y, v.x};
}
__global__ void bytes(unsigned char* out, int shift, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = static_cast<unsigned char>((out[i] / shift) ^ (i % 7 == 3 ? 255 : i));
}

// Products and sums in functions, of which a compiler may make fused operations as well.
__device__ float blend(float a, float b, float part) {
    if (part > 0.8f) return b * part + a;
    const float rest = 1.0f - part * part;
    return a * rest + b * part;
}
__device__ int larger(int a, int b) {
    return a > b ? a : b;
}
__global__ void functions(float* out, const float* x, float part, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = blend(out[i], x[larger(i - 1, 0)], part) * part + out[i];
}
__device__ double half_of(double x) {
    return x / 2;
}
__device__ int half_of(int x) {
    return x / 2;
}
__global__ void overloads(int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * half_of(i) + static_cast<int>(half_of(0.5));
}

TEST(Rows, GiveTheBitsOfSingleThreads) {
    const std::vector<float> x = random_numbers<float>(1), y = random_numbers<float>(2);
    DeviceVector<float> on_device(x), other(y);
    run_both<float>(11, 96, products, static_cast<const float*>(on_device.data()), 1.1f, 0.7f, kElements);
    const std::vector<float> difference =
        run_both<float>(11, 96, sizes, static_cast<const float*>(on_device.data()),
                        static_cast<const float*>(other.data()), std::size_t{kElements});
    for (std::size_t i = 0; i < kElements; ++i)
        ASSERT_EQ(difference[i], x[i] - y[i]) << i;
    run_both<double>(11, 96, convert<double>, static_cast<const float*>(on_device.data()), kElements);
    run_both<short>(11, 96, convert<short>, static_cast<const float*>(on_device.data()), kElements);
    run_both<float>(3, 96, vectors, reinterpret_cast<const float4*>(on_device.data()), kElements);
    run_both<unsigned char>(11, 96, bytes, 3, kElements);
}

TEST(Rows, CallFunctionsOfTheProgram) {
    DeviceVector<float> x(random_numbers<float>(1));
    for (const float part : {0.3f, 0.9f})
        run_both<float>(11, 96, functions, static_cast<const float*>(x.data()), part, kElements);
    const std::vector<int> even = run_both<int>(11, 96, overloads, kElements);
    for (int i = 0; i < kElements; ++i)
        ASSERT_EQ(even[i], i / 2 * 2) << i;
}

TEST(Rows, GiveEachThreadItsPlaceAndItsParameters) {
    EXPECT_EQ(run_both<int>(11, 96, change_parameters, kElements, 7), std::vector<int>(kElements, 8));
    const std::vector<int> places = run_both<int>(dim3(3, 6), dim3(10, 7), two_dimensions, 25, 40);
    for (int y = 0; y < 40; ++y) {
        for (int x = 0; x < 25; ++x)
            ASSERT_EQ(places[y * 25 + x], 1000 * y + 10 * x + 3 + 6 + 1);
    }
}

// Products that wrap, as they do on a GPU: the compiler must not conclude that they are positive.
__global__ void hash(int* out, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int mixed = i * 1664525 + 1013904223;
    if (i < n) out[i] = mixed < 0 ? -(mixed + 1) : mixed;
}
// A name that hides the built-in variable.
__global__ void hide(int* out, int gridDim) {
    const int blockDim = 2;
    out[threadIdx.x] = gridDim * blockDim;
}

TEST(Rows, WrapAndHideNames) {
    constexpr int kThreads = 1 << 16;
    DeviceVector<int> hashes(kThreads);
    hash<<<kThreads / 256, 256>>>(hashes.data(), kThreads);
    const std::vector<int> found = hashes.to_host();
    for (int i = 0; i < kThreads; ++i) {
        const auto mixed = static_cast<std::int32_t>(static_cast<std::uint32_t>(i) * 1664525u + 1013904223u);
        ASSERT_EQ(found[i], mixed < 0 ? -(mixed + 1) : mixed) << i;
    }
    DeviceVector<int> hidden(64);
    hide<<<1, 64>>>(hidden.data(), 5);
    EXPECT_EQ(hidden.to_host(), std::vector<int>(64, 10));
}

#ifdef CUDA_ON_CPU
// A grid with so many blocks that blockIdx.x * blockDim.x does not fit an int.
__global__ void last_of_many(unsigned* out, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 2 || i >= n - 2) out[i % 4] = i;
}

TEST(Rows, CountBeyondAnInt) {
    const cuda_on_cpu::FewBlocks few({0, 0.5, 1});
    DeviceVector<unsigned> out(4);
    constexpr unsigned kBlocks = 2200000;
    last_of_many<<<kBlocks, 1024>>>(out.data(), kBlocks * 1024u);
    const unsigned n = kBlocks * 1024u;
    EXPECT_EQ(out.to_host(), (std::vector<unsigned>{0, 1, n - 2, n - 1}));
}

// A race: on the CPU, each thread finds what those before it have written.
__global__ void pass_on(int* values) {
    values[threadIdx.x + 1] = values[threadIdx.x] + 1;
}
__global__ void add_to_one(int* sum, int value) {
    *sum += value;
}

TEST(Rows, KeepTheOrderOfThreads) {
    const char* const order = std::getenv("CUDA_ON_CPU_ORDER");
    DeviceVector<int> values(std::vector<int>(257, 0));
    pass_on<<<1, 256>>>(values.data());
    const std::vector<int> passed = values.to_host();
    for (int i = 0; i <= 256; ++i)
        ASSERT_EQ(passed[i], order == nullptr ? i : i > 0) << i;
    DeviceVector<int> sum(1);
    add_to_one<<<1, 256>>>(sum.data(), 3);
    EXPECT_EQ(sum.to_host()[0], 768);
}
#endif

// ---- Kernels that do more -----------------------------------------------------------------------

__global__ void reverse(int* out) {
    __shared__ int copy[96];
    copy[threadIdx.x] = out[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}
__global__ void sum_of_warp(int* out) {
    int value = static_cast<int>(threadIdx.x);
    value += __shfl_xor_sync(~0u, value, 1);
    out[threadIdx.x] = value;
}
__global__ void tickets(int* out, int* counter) {
    const int ticket = atomicAdd(counter, 1);
    out[ticket] = 1;
}
__device__ int twice(int value) {
    return 2 * value + static_cast<int>(threadIdx.x);
}
__global__ void call(int* out) {
    out[threadIdx.x] = twice(static_cast<int>(threadIdx.x));
}
struct Number {
    int value;
    __device__ Number operator+(Number other) const {
        return {value + other.value + static_cast<int>(threadIdx.x)};
    }
};
template <class T>
__global__ void add_numbers(T* out) {
    out[threadIdx.x] = out[threadIdx.x] + out[threadIdx.x];
}
__global__ void wait_for_another(int* out, volatile int* flag) {
    if (threadIdx.x == 0) {
        while (*flag == 0) {
        }
    } else if (threadIdx.x == 64) {
        out[0] = 5;
        *flag = 1;
    }
    out[threadIdx.x + 1] = 6;
}

TEST(Rows, AreNotMadeOfThreadsThatDoMore) {
    const std::vector<int> reversed = run_both<int>(10, 96, reverse);
    const std::vector<int> before = random_numbers<int>(7);
    for (int i = 0; i < 960; ++i)
        ASSERT_EQ(reversed[i], before[i / 96 * 96 + 95 - i % 96]);
    const std::vector<int> sums = run_both<int>(1, 32, sum_of_warp);
    const std::vector<int> called = run_both<int>(1, 96, call);
    for (int i = 0; i < 32; ++i)
        ASSERT_EQ(sums[i], 2 * (i / 2) * 2 + 1);
    for (int i = 0; i < 96; ++i)
        ASSERT_EQ(called[i], 3 * i);

    DeviceVector<int> out(std::vector<int>(192, 0)), counter(1);
    tickets<<<2, 96>>>(out.data(), counter.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(192, 1));

    DeviceVector<Number> numbers(std::vector<Number>(64, Number{3}));
    add_numbers<<<1, 64>>>(numbers.data());
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(numbers.to_host()[i].value, 6 + i);

    DeviceVector<int> flag(1), waited(97);
    wait_for_another<<<1, 96>>>(waited.data(), flag.data());
    std::vector<int> expected(97, 6);
    expected[0] = 5;
    EXPECT_EQ(waited.to_host(), expected);
}

}  // namespace

#ifdef CUDA_ON_CPU
// A header has another function of this name, which is the better one for three int.
using namespace std;
static __device__ float clamp(float x, float low, float high) {
    return x < low ? low : x > high ? high + 100 : x;
}
static __global__ void both_clamps(int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = clamp(i, 2, 5) + static_cast<int>(clamp(0.5f * static_cast<float>(i), 1.0f, 3.0f));
}

static_assert(cuda_on_cpu::is_only<int(int, int)>(larger, 0));
static_assert(!cuda_on_cpu::is_only<float(float, float, float)>(clamp, 0));
static_assert(!cuda_on_cpu::is_only<int(int)>(half_of, 0));

TEST(Rows, CallNoFunctionThatAHeaderHasToo) {
    const std::vector<int> both = run_both<int>(11, 96, both_clamps, kElements);
    EXPECT_EQ(both[1], 2 + 1);
    EXPECT_EQ(both[5], 5 + 2);
    EXPECT_EQ(both[9], 5 + 103);
}
#endif

// libcu++ and the other small headers of the CUDA Toolkit: semaphores, latches, functions, targets,
// whole numbers, pipelines as functions, the clock.
#include <cuda_pipeline.h>
#include <gtest/gtest.h>

#include <ctime>
#include <cuda/annotated_ptr>
#include <cuda/cmath>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/latch>
#include <cuda/std/semaphore>
#include <new>
#include <nv/target>
#include <vector>

#include "on_device.cuh"

namespace {

constexpr int kBlocks = 4, kThreads = 64;

__device__ cuda::binary_semaphore<cuda::thread_scope_device> gate(1);
__device__ cuda::counting_semaphore<cuda::thread_scope_device, 8> slots(2);
using Latch = cuda::latch<cuda::thread_scope_device>;

// A latch has no constructor without a count, so nvcc takes none as a __device__ variable.
__global__ void make_latch(Latch* latch) {
    new (latch) Latch(kBlocks);
}

__global__ void one_after_the_other(Latch* all_blocks, int* counter, int* seen) {
    if (threadIdx.x != 0) return;
    gate.acquire();
    const int before = *counter;
    *counter = before + 1;
    __threadfence();
    gate.release();
    slots.acquire();
    slots.release();
    all_blocks->arrive_and_wait();
    seen[blockIdx.x] = *static_cast<volatile int*>(counter);
}

TEST(LibraryOfCuda, SemaphoresAndLatchesJoinBlocks) {
    DeviceVector<int> counter(1), seen(kBlocks);
    Latch* all_blocks = nullptr;
    ASSERT_EQ(cudaMalloc(&all_blocks, sizeof(Latch)), cudaSuccess);
    make_latch<<<1, 1>>>(all_blocks);
    one_after_the_other<<<kBlocks, 32>>>(all_blocks, counter.data(), seen.data());
    EXPECT_EQ(seen.to_host(), std::vector<int>(kBlocks, kBlocks));
    EXPECT_EQ(cudaFree(all_blocks), cudaSuccess);
}

__host__ __device__ int where() {
    NV_IF_TARGET(NV_IS_DEVICE, (return 1;), (return 2;))
}
__host__ __device__ int which() {
    int answer = 0;
    NV_DISPATCH_TARGET(NV_PROVIDES_SM_70, (answer = 70;), NV_IS_DEVICE, (answer = 1;), NV_IS_HOST,
                       (answer = 2;))
    return answer;
}
__global__ void ask(int* answers) {
    answers[0] = where();
    answers[1] = which();
}

TEST(LibraryOfCuda, TargetsAreOfTheHostAndOfTheDevice) {
    DeviceVector<int> answers(2);
    ask<<<1, 1>>>(answers.data());
    EXPECT_EQ(answers.to_host(), (std::vector<int>{1, 70}));
    EXPECT_EQ(where(), 2);
    EXPECT_EQ(which(), 2);
}

TEST(LibraryOfCuda, WholeNumbers) {
    static_assert(cuda::ceil_div(10, 3) == 4 && cuda::ceil_div(9, 3) == 3 && cuda::ceil_div(0U, 3) == 0);
    static_assert(cuda::round_up(10, 4) == 12 && cuda::round_down(10, 4) == 8 && cuda::round_up(12, 4) == 12);
    static_assert(cuda::ceil_div(2147483647, 2) == 1073741824, "no overflow");
    EXPECT_EQ(cuda::ilog2(1025), 10);
#if defined(CUDA_ON_CPU) || CCCL_VERSION >= 3001000  // CUDA 13.1
    EXPECT_EQ(cuda::ceil_ilog2(1025), 11);
    EXPECT_TRUE(cuda::is_power_of_two(64));
    EXPECT_FALSE(cuda::is_power_of_two(65));
    EXPECT_EQ(cuda::next_power_of_two(65), 128);
#endif
}

__global__ void reverse(const float* in, float* out) {
    __shared__ float tile[kThreads];
    const unsigned i = threadIdx.x;
    __pipeline_memcpy_async(&tile[i], &in[i], sizeof(float), i < 60 ? 0 : sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    const cuda::annotated_ptr<float, cuda::access_property::streaming> target(out);
    target[i] = tile[kThreads - 1 - i];
}

TEST(LibraryOfCuda, PipelineOfFunctions) {
    std::vector<float> x(kThreads), expected(kThreads);
    for (int i = 0; i < kThreads; ++i) {
        x[i] = static_cast<float>(i + 1);
        expected[kThreads - 1 - i] = i < 60 ? x[i] : 0;
    }
    DeviceVector<float> in(x), out(kThreads);
    reverse<<<1, kThreads>>>(in.data(), out.data());
    EXPECT_EQ(out.to_host(), expected);
}

// Programs wait by the clock: it counts cycles, of which a GPU has a million and more in a
// millisecond.
__global__ void wait_for_cycles(clock_t cycles, long long* waited) {
    const long long begin64 = clock64();
    const clock_t begin = clock();
    while (clock() - begin < cycles) {
    }
    *waited = clock64() - begin64;
}

TEST(LibraryOfCuda, ClockOfAKernelCountsCycles) {
    DeviceVector<long long> waited(1);
    wait_for_cycles<<<1, 1>>>(100'000, waited.data());
    const long long cycles = waited.to_host()[0];
    EXPECT_GE(cycles, 100'000);
    EXPECT_LT(cycles, 50'000'000);
    EXPECT_LT(clock(), 3600 * CLOCKS_PER_SEC) << "on the host it is the C library's";
}

}  // namespace

// With late stores, kernels in which a thread reads too early, or adds without an atomic, always
// give wrong results. (A write that is too early goes wrong with prompt stores, in one order of
// threads.) Kernels without a race compute the same results as without late stores.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cuda/barrier>
#include <vector>

namespace {

const int kLate = setenv("CUDA_ON_CPU_STORES", "late", 1);  // read when the first kernel is launched

constexpr int kThreads = 256;

// The values that `kernel` leaves in `count` integers, which are 0 at first.
std::vector<int> results(void (*kernel)(int*), int blocks, int count) {
    int* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, count * sizeof(int)), cudaSuccess);
    EXPECT_EQ(cudaMemset(data, 0, count * sizeof(int)), cudaSuccess);
    kernel<<<blocks, kThreads>>>(data);
    std::vector<int> host(count);
    EXPECT_EQ(cudaMemcpy(host.data(), data, count * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(cudaFree(data), cudaSuccess);
    return host;
}

__global__ void add_without_atomic(int* sum) {
    *sum += 1;
}
__global__ void add_by_atomic(int* sum) {
    atomicAdd(sum, 1);
}

// Threads write a tile and read the adjacent element of it.
template <bool kBarrier>
__global__ void rotate(int* out) {
    __shared__ int tile[kThreads];
    tile[threadIdx.x] = 1 + static_cast<int>(threadIdx.x);
    if (kBarrier) __syncthreads();
    out[threadIdx.x] = tile[(threadIdx.x + 1) % kThreads];
}

// Uses the same tile twice.
__global__ void rotate_again(int* out) {
    __shared__ int tile[kThreads];
    int value = 1 + static_cast<int>(threadIdx.x);
    for (int round = 0; round < 2; ++round) {
        tile[threadIdx.x] = value;
        __syncthreads();
        value = tile[(threadIdx.x + 1) % kThreads];
        __syncthreads();
    }
    out[threadIdx.x] = value;
}

// The same within a warp.
template <bool kBarrier>
__global__ void rotate_in_warp(int* out) {
    __shared__ int tile[kThreads];
    tile[threadIdx.x] = 1 + static_cast<int>(threadIdx.x);
    if (kBarrier) __syncwarp();
    out[threadIdx.x] = tile[threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32];
}

// A thread waits for a word that another thread stores.
__global__ void wait_for_flag(int* out) {
    volatile int* const flag = out;
    if (threadIdx.x == 0) {
        out[1] = 7;
        __threadfence();
        *flag = 1;
    } else if (threadIdx.x == 100) {
        while (*flag == 0) {
        }
        __threadfence();
        out[2] = *static_cast<volatile int*>(out + 1);
    }
}

// Thread 0 copies its 1 to one place, round by round, and the other threads add it up. They release
// the place after reading it, or too early.
template <bool kTooEarly>
__global__ void hand_over(int* out) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ int place;
    __shared__ Barrier filled, emptied;
    if (threadIdx.x == 0) {
        out[0] = 1;
        init(&filled, 1);
        init(&emptied, kThreads - 1);
    }
    __syncthreads();
    for (int round = 0; round < 3; ++round) {
        if (threadIdx.x == 0) {
            if (round > 0) emptied.wait_parity((round - 1) % 2 != 0);
            cuda::memcpy_async(&place, out, sizeof(place), filled);
            static_cast<void>(filled.arrive());
        } else {
            filled.wait_parity(round % 2 != 0);
            if (kTooEarly) static_cast<void>(emptied.arrive());
            const int got = place;
            if (!kTooEarly) static_cast<void>(emptied.arrive());
            out[threadIdx.x] += got;
        }
    }
}

// Writes element `at` of an array of kThreads elements.
template <int kAt>
__global__ void write_beside(int* out) {
    __shared__ int other[1];
    __shared__ int tile[kThreads];
    __shared__ int first, second;
    int* const place = tile;
    if (threadIdx.x == 0) {
        other[0] = first = second = 1;
        place[kAt] = other[0];
    }
    __syncthreads();
    out[0] = first + second;
}

std::vector<int> rotated(int count, int by, int within) {
    std::vector<int> expected(count);
    for (int i = 0; i < count; ++i)
        expected[i] = 1 + i / within * within + (i + by) % within;
    return expected;
}

TEST(LateStores, ThreadsThatAddWithoutAnAtomicAddOnce) {
    ASSERT_EQ(kLate, 0);
    EXPECT_EQ(results(add_without_atomic, 1, 1), std::vector{1});
    EXPECT_LE(results(add_without_atomic, 100, 1)[0], 100);
    EXPECT_EQ(results(add_by_atomic, 100, 1), std::vector{100 * kThreads});
}

TEST(LateStores, AMissingBarrierIsFelt) {
    EXPECT_NE(results(rotate<false>, 1, kThreads), rotated(kThreads, 1, kThreads));
    EXPECT_NE(results(rotate_in_warp<false>, 1, kThreads), rotated(kThreads, 1, 32));
}

TEST(LateStores, WithABarrierNobodyNotices) {
    EXPECT_EQ(results(rotate<true>, 3, kThreads), rotated(kThreads, 1, kThreads));
    EXPECT_EQ(results(rotate_again, 3, kThreads), rotated(kThreads, 2, kThreads));
    EXPECT_EQ(results(rotate_in_warp<true>, 3, kThreads), rotated(kThreads, 1, 32));
    EXPECT_EQ(results(wait_for_flag, 1, 3), (std::vector{1, 7, 7}));
}

TEST(LateStores, AWriteBesideASharedVariableIsReported) {
    for (const auto kernel : {write_beside<kThreads>, write_beside<-1>, write_beside<kThreads + 63>}) {
        int* data = nullptr;
        ASSERT_EQ(cudaMalloc(&data, sizeof(int)), cudaSuccess);
        testing::internal::CaptureStderr();
        kernel<<<3, kThreads>>>(data);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
        const std::string report = testing::internal::GetCapturedStderr();
        EXPECT_NE(report.find("wrote outside of the 1024 bytes of its __shared__ variable tile"), report.npos)
            << report;
        EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    }
    EXPECT_EQ(results(write_beside<kThreads - 1>, 3, 1), std::vector{2});
}

TEST(LateStores, APlaceGivenBackTooEarlyIsFelt) {
    std::vector<int> sums(kThreads, 3);
    sums[0] = 1;
    EXPECT_EQ(results(hand_over<false>, 1, kThreads), sums);
    EXPECT_NE(results(hand_over<true>, 1, kThreads), sums);
}

}  // namespace

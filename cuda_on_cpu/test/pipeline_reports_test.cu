// What the stand-in makes visible of cuda::barrier, cuda::pipeline and cuda::memcpy_async used
// wrongly. What they do when used rightly is in pipeline_test.cu, on GPUs as well.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <string>
#include <vector>

#include "on_device.cuh"
#include "reports.cuh"

namespace {

namespace cg = cooperative_groups;
using BlockBarrier = cuda::barrier<cuda::thread_scope_block>;
using TwoStages = cuda::pipeline_shared_state<cuda::thread_scope_block, 2>;

std::vector<float> counted(std::size_t count) {
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i)
        numbers[i] = static_cast<float>(i + 1);
    return numbers;
}

// ---- A missing wait is NaN ----------------------------------------------------------------------

// Three batches; what is seen after each wait.
__global__ void wait_batch_by_batch(float* out, const float* in) {
    __shared__ float tile[3];
    auto pipe = cuda::make_pipeline();
    for (int i = 0; i < 3; ++i) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[i], &in[i], sizeof(float), pipe);
        pipe.producer_commit();
    }
    for (int waits = 0; waits <= 3; ++waits) {
        if (waits > 0) pipe.consumer_wait();
        for (int i = 0; i < 3; ++i)
            out[3 * waits + i] = tile[i];
    }
    pipe.consumer_wait();  // no batch is left
}
TEST(ThreadPipeline, ABatchIsNaNUntilItIsWaitedFor) {
    DeviceVector<float> in(counted(3));
    DeviceVector<float> out(12);
    wait_batch_by_batch<<<1, 1>>>(out.data(), in.data());
    const std::vector<float> got = out.to_host();
    for (int waits = 0; waits <= 3; ++waits) {
        for (int i = 0; i < 3; ++i) {
            const float seen = got[static_cast<std::size_t>(3 * waits + i)];
            if (i < waits) {
                EXPECT_EQ(seen, static_cast<float>(i + 1)) << waits << " waits, batch " << i;
            } else {
                EXPECT_TRUE(std::isnan(seen)) << waits << " waits, batch " << i << ": " << seen;
            }
        }
    }
}

__global__ void forget_to_commit(float* out, const float* in) {
    __shared__ float tile[1];
    auto pipe = cuda::make_pipeline();
    cuda::memcpy_async(tile, in, sizeof(float), pipe);
    pipe.consumer_wait();
    out[0] = tile[0];
}
TEST(ThreadPipeline, WithoutACommitThereIsNothingToWaitFor) {
    DeviceVector<float> in(counted(1));
    DeviceVector<float> out(1);
    forget_to_commit<<<1, 1>>>(out.data(), in.data());
    EXPECT_TRUE(std::isnan(out.to_host()[0]));
}

// Warp 0 copies, warp 1 reads: before its wait, or after it.
__global__ void read_at_once_or_wait(float* out, const float* in, bool waits) {
    __shared__ TwoStages state;
    __shared__ float tile[32];
    const bool copies = threadIdx.x < 32;
    auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state,
                                    copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    if (copies) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(float), pipe);
        pipe.producer_commit();
    }
    __syncthreads();  // all copies are issued, and that is not enough
    if (copies) return;
    if (waits) pipe.consumer_wait();
    out[threadIdx.x - 32] = tile[threadIdx.x - 32];
}
TEST(BlockPipeline, ABatchIsNaNUntilAConsumerWaits) {
    DeviceVector<float> in(counted(32));
    DeviceVector<float> out(32);
    read_at_once_or_wait<<<1, 64>>>(out.data(), in.data(), false);
    for (const float seen : out.to_host())
        EXPECT_TRUE(std::isnan(seen)) << seen;
    read_at_once_or_wait<<<1, 64>>>(out.data(), in.data(), true);
    EXPECT_EQ(out.to_host(), counted(32));
}

// The copies of a barrier do not complete with the thread's groups.
__global__ void wait_for_the_barrier_or_for_groups(float* out, const float* in, bool for_the_barrier) {
    __shared__ BlockBarrier barrier;
    __shared__ float tile[1];
    init(&barrier, 1);
    cuda::memcpy_async(tile, in, sizeof(float), barrier);
    cuda_on_cpu::ptx::cp_async_commit();
    cuda_on_cpu::ptx::cp_async_wait<0>();
    auto token = barrier.arrive();
    if (for_the_barrier) barrier.wait(std::move(token));
    out[0] = tile[0];
}
TEST(Barrier, ACopyIsNaNUntilItsPhaseIsWaitedFor) {
    DeviceVector<float> in(counted(1));
    DeviceVector<float> out(1);
    wait_for_the_barrier_or_for_groups<<<1, 1>>>(out.data(), in.data(), false);
    EXPECT_TRUE(std::isnan(out.to_host()[0]));
    wait_for_the_barrier_or_for_groups<<<1, 1>>>(out.data(), in.data(), true);
    EXPECT_EQ(out.to_host(), counted(1));
}

// ---- Deadlocks ----------------------------------------------------------------------------------

constexpr int kDeadlockLine = __LINE__ + 9;
__global__ void wait_for_one_arrival_too_many() {
    __shared__ BlockBarrier barrier;
    if (threadIdx.x == 0) init(&barrier, 65);
    __syncthreads();
    auto token = barrier.arrive();
    if (threadIdx.x < 32) {
        return;
    }
    barrier.wait(std::move(token));
}
TEST(Barrier, AMissingArrivalIsADeadlock) {
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchTimeout, [] { wait_for_one_arrival_too_many<<<1, 64>>>(); }),
                 {"wait_for_one_arrival_too_many", "deadlock", "32 thread(s)", "barrier.wait", "0xffffffff",
                  at_line(kDeadlockLine)}));
}

constexpr int kAcquireLine = __LINE__ + 9;
__global__ void never_release(const float* in) {
    __shared__ TwoStages state;
    __shared__ float tile[2];
    auto pipe =
        cuda::make_pipeline(cg::this_thread_block(), &state,
                            threadIdx.x == 0 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    for (int batch = 0; batch < 3; ++batch) {
        if (threadIdx.x == 0) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[batch % 2], &in[batch], sizeof(float), pipe);
            pipe.producer_commit();
        } else if (batch < 2) {
            pipe.consumer_wait();
        }
    }
}
TEST(BlockPipeline, AMissingReleaseIsADeadlock) {
    DeviceVector<float> in(counted(3));
    EXPECT_TRUE(mentions(
        report_of(cudaErrorLaunchTimeout, [&] { never_release<<<1, 2>>>(in.data()); }),
        {"never_release", "deadlock", "pipeline.producer_acquire", "thread (0,0,0)", at_line(kAcquireLine)}));
}

// ---- What cannot be -----------------------------------------------------------------------------

constexpr int kUninitialisedLine = __LINE__ + 3;
__global__ void arrive_uninitialised() {
    __shared__ BlockBarrier barrier;
    static_cast<void>(barrier.arrive());
}
constexpr int kExpectedLine = __LINE__ + 3;
__global__ void expect_nobody(int expected) {
    __shared__ BlockBarrier barrier;
    init(&barrier, expected);
}
constexpr int kArriveLine = __LINE__ + 4;
__global__ void arrive_for(int count) {
    __shared__ BlockBarrier barrier;
    init(&barrier, 3);
    static_cast<void>(barrier.arrive(count));
}
constexpr int kLocalLine = __LINE__ + 3;
__global__ void use_a_barrier_of_its_own() {
    BlockBarrier barrier{};
    init(&barrier, 1);
}
TEST(Barrier, WhatCannotBeIsReported) {
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { arrive_uninitialised<<<1, 1>>>(); }),
                         {"arrive_uninitialised", "not been initialised", at_line(kUninitialisedLine)}));
    for (const int expected : {0, -1}) {
        EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [=] { expect_nobody<<<1, 1>>>(expected); }),
                             {"expects " + std::to_string(expected) + " arrivals", at_line(kExpectedLine)}));
    }
    for (const int count : {4, 0, -1}) {
        EXPECT_TRUE(
            mentions(report_of(cudaErrorLaunchFailure, [=] { arrive_for<<<1, 1>>>(count); }),
                     {std::to_string(count) + " arrivals", "expects 3 more of 3", at_line(kArriveLine)}));
    }
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { use_a_barrier_of_its_own<<<1, 1>>>(); }),
                         {"not in the block's shared memory", at_line(kLocalLine)}));
}

// A barrier that a block has initialised is not initialised for the next one on the same thread of
// the operating system.
__global__ void initialise_in_the_first_block_only() {
    __shared__ BlockBarrier barrier;
    if (blockIdx.x == 0) init(&barrier, 1);
    static_cast<void>(barrier.arrive());
}
TEST(Barrier, EveryBlockBeginsAnew) {
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchFailure, [] { initialise_in_the_first_block_only<<<64, 1>>>(); }),
                 {"not been initialised"}));
}

constexpr int kCopyLine = __LINE__ + 4;
__global__ void copy_as_promised(const float* in, int to, int from, unsigned bytes) {
    extern __shared__ float4 dynamic[];
    auto pipe = cuda::make_pipeline();
    cuda::memcpy_async(reinterpret_cast<float*>(dynamic) + to, in + from, cuda::aligned_size_t<16>(bytes),
                       pipe);
}
TEST(MemcpyAsync, WhatIsNotAlignedAsPromisedIsReported) {
    DeviceVector<float> in(counted(64));
    const auto report = [&](cudaError_t expected, int to, int from, unsigned bytes) {
        return report_of(expected, [&] { copy_as_promised<<<1, 1, 128>>>(in.data(), to, from, bytes); });
    };
    EXPECT_EQ(report(cudaSuccess, 4, 8, 64), "");
    EXPECT_TRUE(mentions(report(cudaErrorMisalignedAddress, 1, 0, 16),
                         {"memcpy_async", "as promised", at_line(kCopyLine)}));
    EXPECT_TRUE(mentions(report(cudaErrorMisalignedAddress, 0, 2, 16), {"as promised", at_line(kCopyLine)}));
    EXPECT_TRUE(mentions(report(cudaErrorMisalignedAddress, 0, 0, 12), {"as promised", at_line(kCopyLine)}));
    EXPECT_TRUE(mentions(report(cudaErrorIllegalAddress, 32, 0, 16),
                         {"not in the block's shared memory", at_line(kCopyLine)}));
}

}  // namespace

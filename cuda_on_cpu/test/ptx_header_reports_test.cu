// What the stand-in makes visible of <cuda/ptx> and cuda::device used wrongly: results that come as
// late as they may, and reports. What they do when used rightly is in ptx_header_test.cu.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cuda/barrier>
#include <cuda/ptx>
#include <string>
#include <utility>
#include <vector>

#include "reports.cuh"

namespace {

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kCount = 64;
constexpr unsigned kBytes = kCount * sizeof(float);

std::vector<float> counted() {
    std::vector<float> numbers(kCount);
    for (int i = 0; i < kCount; ++i)
        numbers[i] = static_cast<float>(i + 1);
    return numbers;
}
bool all_nan(const std::vector<float>& values) {
    for (const float value : values) {
        if (!std::isnan(value)) return false;
    }
    return true;
}

// ---- Loads --------------------------------------------------------------------------------------

enum class Load { right, no_wait, wait_too_late, too_many_bytes };

constexpr int kLoadLine = __LINE__ + 9;
__global__ void load(float* out, const float* in, Load how) {
    __shared__ alignas(16) float part[kCount];
    __shared__ Barrier barrier;
    part[threadIdx.x] = -7;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, in, kBytes,
                           cuda::device::barrier_native_handle(barrier));
        token =
            cuda::device::barrier_arrive_tx(barrier, 1, how == Load::too_many_bytes ? 2 * kBytes : kBytes);
    } else {
        token = barrier.arrive();
    }
    __syncthreads();  // the copy has been asked for, and no thread has waited for it
    if (how == Load::wait_too_late) out[threadIdx.x] = part[threadIdx.x];
    if (how != Load::no_wait) barrier.wait(std::move(token));
    if (how != Load::wait_too_late) out[threadIdx.x] = part[threadIdx.x];
}
TEST(PtxHeaderLoad, IsNotThereBeforeItWasWaitedFor) {
    DeviceVector<float> in(counted()), out(kCount);
    load<<<1, kCount>>>(out.data(), in.data(), Load::right);
    EXPECT_EQ(out.to_host(), counted());
    load<<<1, kCount>>>(out.data(), in.data(), Load::wait_too_late);
    EXPECT_TRUE(all_nan(out.to_host()));
}
TEST(PtxHeaderLoad, MisuseIsReported) {
    DeviceVector<float> in(counted()), out(kCount);
    const auto report = [&](cudaError_t expected, Load how) {
        return report_of(expected, [&] { load<<<1, kCount>>>(out.data(), in.data(), how); });
    };
    EXPECT_TRUE(mentions(report(cudaErrorLaunchFailure, Load::no_wait),
                         {"it has ended before the bulk copy of", at_line(kLoadLine), "was waited for"}));
    EXPECT_TRUE(mentions(report(cudaErrorLaunchTimeout, Load::too_many_bytes),
                         {"deadlock", "barrier.wait", "0 of 64 arrivals missing, 256 bytes missing"}));
}

__global__ void read_without_bytes(float* out, const float* in) {
    __shared__ alignas(16) float part[kCount];
    __shared__ Barrier barrier;
    init(&barrier, 1);
    cuda::device::memcpy_async_tx(part, in, cuda::aligned_size_t<16>(kBytes), barrier);
    barrier.arrive_and_wait();  // the phase has not been told to wait for the copy
    out[0] = part[0];
    static_cast<void>(cuda::device::barrier_arrive_tx(barrier, 1, kBytes));
}
TEST(PtxHeaderLoad, APhaseThatExpectsNoBytesDoesNotWaitForThem) {
    DeviceVector<float> in(counted()), out(1);
    const std::string report =
        report_of(cudaErrorLaunchFailure, [&] { read_without_bytes<<<1, 1>>>(out.data(), in.data()); });
    EXPECT_TRUE(mentions(report, {"read_without_bytes", "bulk copy"}));
}

constexpr int kUnfencedLine = __LINE__ + 6;
__global__ void load_unfenced(const float* in, bool fenced) {
    __shared__ alignas(16) float part[kCount];
    __shared__ std::uint64_t barrier;
    ptx::mbarrier_init(&barrier, 1);
    if (fenced) ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, in, kBytes, &barrier);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, kBytes);
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
    }
}
TEST(PtxHeaderLoad, AnMbarrierNeedsAFenceBeforeIt) {
    DeviceVector<float> in(counted());
    EXPECT_EQ(report_of(cudaSuccess, [&] { load_unfenced<<<1, 1>>>(in.data(), true); }), "");
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchFailure, [&] { load_unfenced<<<1, 1>>>(in.data(), false); }),
                 {"fence.mbarrier_init", at_line(kUnfencedLine)}));
}

__global__ void arrive_without_completing() {
    __shared__ std::uint64_t barrier;
    ptx::mbarrier_init(&barrier, 3);
    ptx::mbarrier_arrive_no_complete(&barrier, 2);
    ptx::mbarrier_arrive_no_complete(&barrier, 1);
}
TEST(PtxHeaderMbarrier, ArriveNoCompleteMustNotEndThePhase) {
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchFailure, [] { arrive_without_completing<<<1, 1>>>(); }),
                 {"mbarrier.arrive.noComplete: 1 arrivals would end the phase, which expects 1 more"}));
}

// ---- Stores -------------------------------------------------------------------------------------

enum class Store { right, no_fence, no_wait, written_meanwhile };

__global__ void store(float* out, Store how) {
    __shared__ alignas(16) float part[kCount];
    part[threadIdx.x] = static_cast<float>(threadIdx.x + 1);
    if (how != Store::no_fence) ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out,
                                  static_cast<const float*>(part), kBytes);
        ptx::cp_async_bulk_commit_group();
        if (how == Store::written_meanwhile) part[3] = 0;
        if (how != Store::no_wait) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
TEST(PtxHeaderStore, MisuseIsReported) {
    DeviceVector<float> out(kCount);
    const auto report = [&](cudaError_t expected, Store how) {
        return report_of(expected, [&] { store<<<1, kCount>>>(out.data(), how); });
    };
    EXPECT_EQ(report(cudaSuccess, Store::right), "");
    EXPECT_EQ(out.to_host(), counted());
    EXPECT_TRUE(mentions(report(cudaErrorLaunchFailure, Store::no_fence), {"fence.proxy.async"}));
    EXPECT_TRUE(mentions(report(cudaErrorLaunchFailure, Store::no_wait), {"cp.async.bulk.wait_group.read"}));
    EXPECT_TRUE(mentions(report(cudaErrorLaunchFailure, Store::written_meanwhile),
                         {"shared memory was written while a bulk store read it"}));
}

// ---- Clusters -----------------------------------------------------------------------------------

template <class T>
__device__ T* there(T* own, unsigned rank) {
    return static_cast<T*>(__cluster_map_shared_rank(own, rank));
}

enum class Send { right, no_wait, barrier_elsewhere, misaligned };

// Block 0 sends to block 1: a value that replaces, one that is added, and an array.
__global__ void __cluster_dims__(2, 1, 1) send(float* out, Send how) {
    __shared__ alignas(16) float array[kCount], copy[kCount];
    __shared__ float value;
    __shared__ unsigned sum;
    __shared__ std::uint64_t barrier;
    const unsigned rank = ptx::get_sreg_cluster_ctarank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        value = -7;
        sum = 40;
        if (rank == 1)
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier,
                                           sizeof value + sizeof sum + kBytes);
    }
    array[threadIdx.x] = static_cast<float>(threadIdx.x);
    ptx::fence_proxy_async();
    __syncthreads();
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (rank == 0 && threadIdx.x == 0) {
        ptx::st_async(there(&value, 1), 5.f, there(&barrier, how == Send::barrier_elsewhere ? 0 : 1));
        ptx::red_async(ptx::op_add, there(&sum, 1), 2u, there(&barrier, 1));
        const bool misaligned = how == Send::misaligned;
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there(&copy[misaligned], 1), array, kBytes,
                           there(&barrier, 1));
        array[0] = 99;  // too early: the copy has not read it
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (rank == 1 && threadIdx.x == 0) {
        if (how == Send::no_wait) {
            out[0] = value;
            out[1] = static_cast<float>(sum);
            out[2] = copy[5];
        }
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &barrier, 0)) {
        }
        if (how != Send::no_wait) {
            out[0] = value;
            out[1] = static_cast<float>(sum);
            out[2] = copy[5];
        }
        out[3] = copy[0];
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}
TEST(PtxHeaderCluster, WhatIsSentIsNotThereBeforeItWasWaitedFor) {
    DeviceVector<float> out(4);
    send<<<2, kCount>>>(out.data(), Send::right);
    EXPECT_EQ(out.to_host(), (std::vector<float>{5, 42, 5, 99}));
    send<<<2, kCount>>>(out.data(), Send::no_wait);
    const std::vector<float> early = out.to_host();
    EXPECT_TRUE(std::isnan(early[0]));
    EXPECT_EQ(early[1], 40);
    EXPECT_TRUE(std::isnan(early[2]));
}
TEST(PtxHeaderCluster, MisuseIsReported) {
    DeviceVector<float> out(4);
    EXPECT_TRUE(mentions(
        report_of(cudaErrorIllegalAddress, [&] { send<<<2, kCount>>>(out.data(), Send::barrier_elsewhere); }),
        {"the destination and the mbarrier are not in shared memory of one block"}));
    EXPECT_TRUE(mentions(
        report_of(cudaErrorMisalignedAddress, [&] { send<<<2, kCount>>>(out.data(), Send::misaligned); }),
        {"must be multiples of 16 bytes"}));
}

}  // namespace

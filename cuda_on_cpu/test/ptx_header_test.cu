// <cuda/ptx>, and the functions of cuda::device in <cuda/barrier>: that programs which use them
// compile, and what the functions do, on a GPU and on the stand-in.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/utility>
#include <vector>

#include "on_device.cuh"

#ifdef __NVCC__
#pragma nv_diag_suppress static_var_with_dynamic_init  // __shared__ Barrier
#endif

namespace {

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kCount = 256;

template <class T>
std::vector<T> counted(std::size_t count, int first = 1) {
    std::vector<T> numbers(count);
    for (std::size_t i = 0; i < count; ++i)
        numbers[i] = static_cast<T>(static_cast<int>(i) + first);
    return numbers;
}

class PtxHeader : public testing::Test {
  protected:
    void SetUp() override {
        if (compute_capability() < 90) GTEST_SKIP() << "bulk copies need compute capability 9.0";
    }
};
using BulkCopy = PtxHeader;
using ClusterCopy = PtxHeader;
using Waits = PtxHeader;
using Instructions = PtxHeader;

// ---- Instructions without other threads ---------------------------------------------------------

__global__ void integers(Checks check) {
    check.equal(ptx::bfind(hidden(std::uint32_t{0x00f0u})), 7u);
    check.equal(ptx::bfind(hidden(std::uint32_t{0})), 0xffffffffu);
    check.equal(ptx::bfind(hidden(std::uint64_t{1} << 40)), 40u);
    check.equal(ptx::bfind(hidden(std::int32_t{-1})), 0xffffffffu);
    check.equal(ptx::bfind(hidden(std::int64_t{-5})), 2u);
    check.equal(ptx::bfind_shiftamt(hidden(std::uint32_t{0x00f0u})), 24u);
    check.equal(ptx::bfind_shiftamt(hidden(std::int64_t{5})), 61u);
    check.equal(ptx::bmsk_clamp(hidden(4u), 8u), 0xff0u);
    check.equal(ptx::bmsk_wrap(hidden(36u), 8u), 0xff0u);
    check.equal(ptx::prmt(hidden(0x33221100u), 0x77665544u, 0x7410u), 0x77441100u);
    check.equal(ptx::prmt_f4e(hidden(0x33221100u), 0x77665544u, 1u), 0x44332211u);
    check.equal(ptx::prmt_b4e(hidden(0x33221100u), 0x77665544u, 1u), 0x66770011u);
    check.equal(ptx::prmt_rc8(hidden(0x33221100u), 0x77665544u, 2u), 0x22222222u);
    check.equal(ptx::prmt_ecl(hidden(0x33221100u), 0x77665544u, 2u), 0x33222222u);
    check.equal(ptx::prmt_ecr(hidden(0x33221100u), 0x77665544u, 2u), 0x22221100u);
    check.equal(ptx::prmt_rc16(hidden(0x33221100u), 0x77665544u, 1u), 0x33223322u);
    check.equal(ptx::shl(hidden(std::uint16_t{0x8001}), 1u), std::uint16_t{2});
    check.equal(ptx::shl(hidden(1u), 32u), 0u);
    check.equal(ptx::shl(hidden(std::uint64_t{1}), 40u), std::uint64_t{1} << 40);
    check.equal(ptx::shr(hidden(0x80000000u), 31u), 1u);
    check.equal(ptx::shr(hidden(std::int32_t{-8}), 1u), -4);
    check.equal(ptx::shr(hidden(std::int64_t{-8}), 70u), std::int64_t{-1});
    check.equal(ptx::shr(hidden(std::int16_t{-8}), 2u), std::int16_t{-2});
}
TEST_F(Instructions, Integers) {
    run_checks(integers);
}

__global__ void registers(Checks check) {
    if (threadIdx.x != 33 || blockIdx.x != 2) return;
    check.equal(ptx::get_sreg_tid_x(), 33u);
    check.equal(ptx::get_sreg_tid_y() + ptx::get_sreg_tid_z(), 0u);
    check.equal(ptx::get_sreg_ntid_x(), 64u);
    check.equal(ptx::get_sreg_ctaid_x(), 2u);
    check.equal(ptx::get_sreg_nctaid_x(), 3u);
    check.equal(ptx::get_sreg_laneid(), 1u);
    check.equal(ptx::get_sreg_lanemask_lt(), 1u);
    check.equal(ptx::get_sreg_lanemask_le(), 3u);
    check.equal(ptx::get_sreg_lanemask_eq(), 2u);
    check.equal(ptx::get_sreg_lanemask_gt(), 0xfffffffcu);
    check.equal(ptx::get_sreg_lanemask_ge(), 0xfffffffeu);
    check.equal(ptx::get_sreg_cluster_ctarank(), 0u);
    check.equal(ptx::get_sreg_cluster_nctarank(), 1u);
    check.equal(ptx::get_sreg_dynamic_smem_size(), 48u);
    check.equal(ptx::get_sreg_smid() < ptx::get_sreg_nsmid(), true);
    const std::uint64_t before = ptx::get_sreg_globaltimer();
    check.equal(ptx::get_sreg_globaltimer() >= before, true);
}
TEST_F(Instructions, SpecialRegisters) {
    DeviceVector<Observation> observations(Checks::kCapacity);
    DeviceVector<unsigned> count(1);
    registers<<<3, 64, 48>>>(Checks(observations.data(), count.data()));
    compare(observations.to_host(), count.to_host()[0]);
}

__global__ void loads_and_stores(int* out, const int* in, double2* pair) {
    ptx::st(ptx::space_global, &out[0], ptx::ld(ptx::space_global, &in[0]));
    ptx::st(ptx::space_global, &out[1], ptx::ld_nc(ptx::space_global, &in[1]));
    ptx::st(ptx::space_global, &out[2], ptx::ld_L1_no_allocate(ptx::space_global, &in[2]));
    ptx::st_L1_no_allocate(ptx::space_global, &out[3],
                           ptx::ld_nc_L1_evict_last_L2_256B(ptx::space_global, &in[3]));
    ptx::st(ptx::space_global, &pair[1], ptx::ld(ptx::space_global, &pair[0]));
    ptx::fence(ptx::sem_acq_rel, ptx::scope_gpu);
    ptx::fence(ptx::sem_sc, ptx::scope_cta);
    ptx::fence(ptx::sem_acq_rel, ptx::scope_cluster);
    ptx::fence_proxy_alias();
    ptx::fence_proxy_async();
    ptx::fence_proxy_async(ptx::space_global);
    ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_gpu);
}
TEST_F(Instructions, LoadsAndStoresOfGlobalMemory) {
    DeviceVector<int> in(counted<int>(4)), out(4);
    DeviceVector<double2> pair(std::vector<double2>{{1, 2}, {3, 4}});
    loads_and_stores<<<1, 1>>>(out.data(), in.data(), pair.data());
    EXPECT_EQ(out.to_host(), counted<int>(4));
    EXPECT_EQ(pair.to_host()[1].x, 1);
    EXPECT_EQ(pair.to_host()[1].y, 2);
}

__global__ void shuffle(int* out) {
    constexpr unsigned kAll = 0xffffffffu, kWholeWarp = 31;
    const int lane = static_cast<int>(threadIdx.x);
    bool in_range = false;
    out[lane] = ptx::shfl_sync_idx(lane, 5u, kWholeWarp, kAll);
    out[32 + lane] = ptx::shfl_sync_bfly(lane, 1u, kWholeWarp, kAll);
    out[64 + lane] = ptx::shfl_sync_down(lane, in_range, 4u, kWholeWarp, kAll) + (in_range ? 0 : 100);
    out[96 + lane] = ptx::shfl_sync_up(lane, in_range, 4u, 0u, kAll) + (in_range ? 0 : 100);
}
TEST_F(Instructions, Shuffles) {
    DeviceVector<int> out(128);
    shuffle<<<1, 32>>>(out.data());
    const std::vector<int> got = out.to_host();
    for (int lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(got[lane], 5);
        EXPECT_EQ(got[32 + lane], lane ^ 1);
        EXPECT_EQ(got[64 + lane], lane < 28 ? lane + 4 : lane + 100);
        EXPECT_EQ(got[96 + lane], lane >= 4 ? lane - 4 : lane + 100);
    }
}

// ---- mbarriers ----------------------------------------------------------------------------------

// Every way to wait, each for a phase of parity 0.
constexpr int kWaysToWait = 12;
__global__ void wait_in_every_way(int* out) {
    __shared__ std::uint64_t barrier;
    __shared__ int value;
    constexpr std::uint32_t kTime = 1000;
    if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, blockDim.x);
    __syncthreads();
    for (int way = 0; way < kWaysToWait; ++way) {
        if (threadIdx.x == 0) value = 10 * way;
        const std::uint64_t state = ptx::mbarrier_arrive(&barrier);
        const auto over = [&] {
            switch (way) {
                case 0:
                    return ptx::mbarrier_test_wait(&barrier, state);
                case 1:
                    return ptx::mbarrier_test_wait(ptx::sem_acquire, ptx::scope_cta, &barrier, state);
                case 2:
                    return ptx::mbarrier_test_wait_parity(&barrier, 0u);
                case 3:
                    return ptx::mbarrier_test_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &barrier, 0u);
                case 4:
                    return ptx::mbarrier_try_wait(&barrier, state);
                case 5:
                    return ptx::mbarrier_try_wait(&barrier, state, kTime);
                case 6:
                    return ptx::mbarrier_try_wait(ptx::sem_acquire, ptx::scope_cta, &barrier, state);
                case 7:
                    return ptx::mbarrier_try_wait(ptx::sem_acquire, ptx::scope_cluster, &barrier, state,
                                                  kTime);
                case 8:
                    return ptx::mbarrier_try_wait_parity(&barrier, 0u);
                case 9:
                    return ptx::mbarrier_try_wait_parity(&barrier, 0u, kTime);
                case 10:
                    return ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &barrier, 0u);
                default:
                    return ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &barrier, 0u,
                                                         kTime);
            }
        };
        while (!over()) {
        }
        out[way * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)] = value;
        // The second phase of the round: value may be written again.
        const std::uint64_t read = ptx::mbarrier_arrive(&barrier);
        while (!ptx::mbarrier_try_wait(&barrier, read)) {
        }
    }
}
TEST_F(Waits, AllOfThemWaitForThePhase) {
    constexpr unsigned kThreads = 96;
    DeviceVector<int> out(kWaysToWait * kThreads);
    wait_in_every_way<<<1, kThreads>>>(out.data());
    const std::vector<int> got = out.to_host();
    for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], 10 * static_cast<int>(i / kThreads)) << i;
}

// Arrivals that count more than once, and one that must not end the phase. Expected: 1 + 4 + 3 + 1
// for each thread.
__global__ void arrive_in_many_ways(int* out) {
    __shared__ std::uint64_t barrier;
    __shared__ int values[64];
    if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 9 * blockDim.x);
    __syncthreads();
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier);
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier, 4u);
    ptx::mbarrier_arrive_no_complete(&barrier, 3u);
    const std::uint64_t state =
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, 0u);
    while (!ptx::mbarrier_try_wait(&barrier, state)) {
    }
    out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}
TEST_F(Waits, ArrivalsCountAsOftenAsTheySay) {
    DeviceVector<int> out(64);
    arrive_in_many_ways<<<1, 64>>>(out.data());
    const std::vector<int> got = out.to_host();
    for (int t = 0; t < 64; ++t)
        EXPECT_EQ(got[t], 63 - t);
}

// The timed waits of cuda::barrier end with an answer.
__global__ void wait_for_a_while(int* out) {
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    Barrier::arrival_token token = barrier.arrive();
    while (!ptx::mbarrier_try_wait(cuda::device::barrier_native_handle(barrier), token)) {
    }
    static_cast<void>(barrier.arrive());
    barrier.wait_parity(true);
    out[threadIdx.x] = 1;
}
TEST_F(Waits, TheStateOfABarrierIsItsToken) {
    DeviceVector<int> out(64);
    wait_for_a_while<<<1, 64>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(64, 1));
}

// ---- Bulk copies of one dimension ---------------------------------------------------------------

enum class Way { ptx, memcpy_async_tx, expect_then_arrive, experimental, own_mbarrier };

// Each block adds 1 to a part of the numbers, which bulk copies bring and take away.
template <Way kWay>
__global__ void add_one(int* numbers) {
    __shared__ alignas(16) int part[kCount];
    __shared__ Barrier barrier;
    __shared__ std::uint64_t mbarrier;
    int* const global = numbers + blockIdx.x * kCount;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        ptx::mbarrier_init(&mbarrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    std::uint64_t* const handle = cuda::device::barrier_native_handle(barrier);
    if constexpr (kWay == Way::own_mbarrier) {
        if (threadIdx.x == 0) {
            ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &mbarrier,
                                    sizeof part);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, global, sizeof part, &mbarrier);
            ptx::mbarrier_arrive(&mbarrier);
        }
        while (!ptx::mbarrier_try_wait_parity(&mbarrier, 0)) {
        }
    } else {
        Barrier::arrival_token token;
        if (threadIdx.x != 0) {
            token = barrier.arrive();
        } else if constexpr (kWay == Way::expect_then_arrive) {
            cuda::device::memcpy_async_tx(part, global, cuda::aligned_size_t<16>(sizeof part), barrier);
            cuda::device::barrier_expect_tx(barrier, sizeof part);
            token = barrier.arrive(1);
        } else {
            if constexpr (kWay == Way::ptx) {
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, global, sizeof part, handle);
            } else if constexpr (kWay == Way::memcpy_async_tx) {
                cuda::device::memcpy_async_tx(part, global, cuda::aligned_size_t<16>(sizeof part), barrier);
            } else {
                cuda::device::experimental::cp_async_bulk_global_to_shared(part, global, sizeof part,
                                                                           barrier);
            }
            token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof part);
        }
        barrier.wait(cuda::std::move(token));
    }
    for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x)
        part[i] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        if constexpr (kWay == Way::experimental) {
            cuda::device::experimental::cp_async_bulk_shared_to_global(global, part, sizeof part);
            cuda::device::experimental::cp_async_bulk_commit_group();
            cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
        } else {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, global, part, sizeof part);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
        }
    }
}
TEST_F(BulkCopy, BringsAndTakesAway) {
    for (const auto kernel :
         {add_one<Way::ptx>, add_one<Way::memcpy_async_tx>, add_one<Way::expect_then_arrive>,
          add_one<Way::experimental>, add_one<Way::own_mbarrier>}) {
        DeviceVector<int> numbers(counted<int>(4 * kCount));
        kernel<<<4, 64>>>(numbers.data());
        EXPECT_EQ(numbers.to_host(), counted<int>(4 * kCount, 2));
    }
}

// A ring of stages: one thread asks for copies ahead, the others sum. Phases of the barriers go
// round.
constexpr int kStages = 3;
__global__ void sum_through_a_ring(long long* sums, const int* numbers, int parts) {
    __shared__ alignas(16) int ring[kStages][kCount];
    __shared__ Barrier full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            init(&full[stage], 1);
            init(&empty[stage], blockDim.x);
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    const auto ask_for = [&](int part) {
        const int stage = part % kStages;
        if (part >= kStages) empty[stage].wait_parity(static_cast<unsigned>(part / kStages - 1) % 2 != 0);
        std::uint64_t* const handle = cuda::device::barrier_native_handle(full[stage]);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, ring[stage], numbers + part * kCount,
                           sizeof ring[stage], handle);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, handle,
                                       sizeof ring[stage]);
    };
    if (threadIdx.x == 0) {
        for (int part = 0; part < kStages && part < parts; ++part)
            ask_for(part);
    }
    long long sum = 0;
    for (int part = 0; part < parts; ++part) {
        const int stage = part % kStages;
        full[stage].wait_parity(part / kStages % 2 != 0);
        for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x)
            sum += ring[stage][i];
        static_cast<void>(empty[stage].arrive());
        if (threadIdx.x == 0 && part + kStages < parts) ask_for(part + kStages);
    }
    sums[threadIdx.x] = sum;
}
TEST_F(BulkCopy, ThroughARingOfStages) {
    for (const int parts : {1, 2, 3, 4, 10}) {
        DeviceVector<int> numbers(counted<int>(static_cast<std::size_t>(parts) * kCount));
        DeviceVector<long long> sums(128);
        sum_through_a_ring<<<1, 128>>>(sums.data(), numbers.data(), parts);
        long long sum = 0;
        for (const long long of_thread : sums.to_host())
            sum += of_thread;
        const long long count = static_cast<long long>(parts) * kCount;
        EXPECT_EQ(sum, count * (count + 1) / 2) << parts;
    }
}

// All blocks combine the same numbers with those in global memory.
template <class T, ptx::dot_op kOp>
__global__ void reduce(T* result, const T* numbers) {
    __shared__ alignas(16) T part[kCount];
    for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x)
        part[i] = numbers[i];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_t<kOp>(), result, part,
                                  static_cast<std::uint32_t>(sizeof part));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
constexpr int kBlocks = 5;
template <class T, ptx::dot_op kOp, class Reference>
void expect_reduced(Reference reference) {
    std::vector<T> numbers(kCount), expected(kCount);
    for (int i = 0; i < kCount; ++i) {
        numbers[i] = static_cast<T>(static_cast<float>(i % 50));
        expected[i] = static_cast<T>(static_cast<float>(20));
    }
    DeviceVector<T> result(expected);
    reduce<T, kOp><<<kBlocks, 32>>>(result.data(), DeviceVector<T>(numbers).data());
    const std::vector<T> got = result.to_host();
    for (int i = 0; i < kCount; ++i)
        EXPECT_EQ(static_cast<double>(static_cast<float>(got[i])), reference(20, i % 50)) << i;
}
TEST_F(BulkCopy, ReducesInGlobalMemory) {
    using ptx::dot_op;
    const auto sum = [](int there, int value) { return there + kBlocks * value; };
    const auto least = [](int there, int value) { return there < value ? there : value; };
    const auto greatest = [](int there, int value) { return there > value ? there : value; };
    expect_reduced<std::uint32_t, dot_op::add>(sum);
    expect_reduced<std::int32_t, dot_op::add>(sum);
    expect_reduced<std::uint64_t, dot_op::add>(sum);
    expect_reduced<float, dot_op::add>(sum);
    expect_reduced<double, dot_op::add>(sum);
    expect_reduced<std::int32_t, dot_op::min>(least);
    expect_reduced<std::uint64_t, dot_op::max>(greatest);
    expect_reduced<std::int64_t, dot_op::min>(least);
    expect_reduced<std::uint32_t, dot_op::or_op>([](int there, int value) { return there | value; });
    expect_reduced<std::uint64_t, dot_op::and_op>([](int there, int value) { return there & value; });
    expect_reduced<std::uint32_t, dot_op::xor_op>([](int there, int value) { return there ^ value; });
    expect_reduced<std::uint32_t, dot_op::inc>([](int there, int value) {
        for (int i = 0; i < kBlocks; ++i)
            there = there >= value ? 0 : there + 1;
        return there;
    });
    expect_reduced<std::uint32_t, dot_op::dec>([](int there, int value) {
        for (int i = 0; i < kBlocks; ++i)
            there = there == 0 || there > value ? value : there - 1;
        return there;
    });
    expect_reduced<__half, dot_op::max>(greatest);
    expect_reduced<__nv_bfloat16, dot_op::min>(least);
}

// ---- Bulk copies of boxes -----------------------------------------------------------------------

using Encode = decltype(&cuTensorMapEncodeTiled);
Encode encoder() {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    EXPECT_EQ(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found),
        cudaSuccess);
    return reinterpret_cast<Encode>(entry);
}

constexpr int kRows = 20, kColumns = 40, kBoxRows = 8, kBoxColumns = 16;
CUtensorMap map_of(int* matrix, unsigned extents) {
    CUtensorMap map{};
    const cuuint64_t columns = extents == 1 ? kRows * kColumns : kColumns;
    const cuuint64_t dims[] = {columns, kRows}, pitch[] = {kColumns * 4};
    const cuuint32_t box[] = {kBoxColumns, kBoxRows}, steps[] = {1, 1};
    EXPECT_EQ(encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, extents, matrix, dims, pitch, box, steps,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    return map;
}

// Adds 1 to all elements, box by box; boxes at the edges reach out of the matrix.
template <int kExtents, bool kExperimental>
__global__ void add_one_to_boxes(const __grid_constant__ CUtensorMap map) {
    constexpr int kElements = kExtents == 1 ? kBoxColumns : kBoxRows * kBoxColumns;
    __shared__ alignas(128) int box[kElements];
    __shared__ Barrier barrier;
    const int x = static_cast<int>(blockIdx.x) * kBoxColumns, y = static_cast<int>(blockIdx.y) * kBoxRows;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
        if constexpr (kExperimental && kExtents == 1) {
            cuda::device::experimental::cp_async_bulk_tensor_1d_global_to_shared(box, &map, x, barrier);
        } else if constexpr (kExperimental) {
            cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(box, &map, x, y, barrier);
        } else if constexpr (kExtents == 1) {
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, {x},
                                      cuda::device::barrier_native_handle(barrier));
        } else {
            const std::int32_t at[2] = {x, y};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, at,
                                      cuda::device::barrier_native_handle(barrier));
        }
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof box);
    } else {
        token = barrier.arrive();
    }
    barrier.wait(cuda::std::move(token));
    for (unsigned i = threadIdx.x; i < kElements; i += blockDim.x)
        box[i] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x != 0) return;
    if constexpr (kExperimental && kExtents == 1) {
        cuda::device::experimental::cp_async_bulk_tensor_1d_shared_to_global(&map, x, box);
    } else if constexpr (kExperimental) {
        cuda::device::experimental::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, box);
    } else if constexpr (kExtents == 1) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, {x}, box);
    } else {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, {x, y}, box);
    }
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}
TEST_F(BulkCopy, OfBoxes) {
    const dim3 boxes((kColumns + kBoxColumns - 1) / kBoxColumns, (kRows + kBoxRows - 1) / kBoxRows);
    for (const auto kernel : {add_one_to_boxes<2, false>, add_one_to_boxes<2, true>}) {
        DeviceVector<int> matrix(counted<int>(kRows * kColumns));
        kernel<<<boxes, 64>>>(map_of(matrix.data(), 2));
        EXPECT_EQ(matrix.to_host(), counted<int>(kRows * kColumns, 2));
    }
    for (const auto kernel : {add_one_to_boxes<1, false>, add_one_to_boxes<1, true>}) {
        DeviceVector<int> line(counted<int>(kRows * kColumns));
        kernel<<<kRows * kColumns / kBoxColumns, 32>>>(map_of(line.data(), 1));
        EXPECT_EQ(line.to_host(), counted<int>(kRows * kColumns, 2));
    }
}

// ---- Clusters -----------------------------------------------------------------------------------

constexpr unsigned kClusterBlocks = 4;

// The address of the same variable in another block.
template <class T>
__device__ T* there(T* own, unsigned rank) {
    return static_cast<T*>(__cluster_map_shared_rank(own, rank));
}

// Each block sends to the next one: single values, pairs and fours; its neighbour adds up what all
// blocks send to it.
__global__ void __cluster_dims__(kClusterBlocks, 1, 1)
    send_round(int* received, long long* pairs, int* fours, unsigned* sums) {
    __shared__ std::uint64_t barrier;
    __shared__ int value[32];
    __shared__ alignas(16) long long pair[2];
    __shared__ alignas(16) int four[4];
    __shared__ unsigned sum, greatest, bits;
    const unsigned rank = ptx::get_sreg_cluster_ctarank(), next = (rank + 1) % kClusterBlocks;
    if (threadIdx.x == 0) {
        sum = 1000;
        greatest = 0;
        bits = 0;
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier,
                                       sizeof value + sizeof pair + sizeof four +
                                           kClusterBlocks * (sizeof sum + sizeof greatest + sizeof bits));
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    std::uint64_t* const of_next = there(&barrier, next);
    ptx::st_async(there(&value[threadIdx.x], next), static_cast<int>(100 * rank + threadIdx.x), of_next);
    if (threadIdx.x == 0) {
        const long long two[2] = {rank, -static_cast<long long>(rank)};
        ptx::st_async(there(&pair[0], next), two, of_next);
        const int some[4] = {0, 1, 2, static_cast<int>(rank)};
        ptx::st_async(there(&four[0], next), some, of_next);
        for (unsigned to = 0; to < kClusterBlocks; ++to) {
            ptx::red_async(ptx::op_add, there(&sum, to), rank, there(&barrier, to));
            ptx::red_async(ptx::op_max, there(&greatest, to), 10 * rank, there(&barrier, to));
            ptx::red_async(ptx::op_or_op, there(&bits, to), 1u << rank, there(&barrier, to));
        }
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &barrier, 0)) {
    }
    received[32 * rank + threadIdx.x] = value[threadIdx.x];
    if (threadIdx.x < 2) pairs[2 * rank + threadIdx.x] = pair[threadIdx.x];
    if (threadIdx.x < 4) fours[4 * rank + threadIdx.x] = four[threadIdx.x];
    if (threadIdx.x == 0) {
        sums[3 * rank] = sum;
        sums[3 * rank + 1] = greatest;
        sums[3 * rank + 2] = bits;
    }
    // No block may end while others still send to it, or from it.
    ptx::barrier_cluster_arrive(ptx::sem_release);
    ptx::barrier_cluster_wait(ptx::sem_acquire);
}
TEST_F(ClusterCopy, StoresAndReductionsInOtherBlocks) {
    DeviceVector<int> received(32 * kClusterBlocks), fours(4 * kClusterBlocks);
    DeviceVector<long long> pairs(2 * kClusterBlocks);
    DeviceVector<unsigned> sums(3 * kClusterBlocks);
    send_round<<<kClusterBlocks, 32>>>(received.data(), pairs.data(), fours.data(), sums.data());
    for (unsigned rank = 0; rank < kClusterBlocks; ++rank) {
        const int before = static_cast<int>((rank + kClusterBlocks - 1) % kClusterBlocks);
        for (int t = 0; t < 32; ++t)
            EXPECT_EQ(received.to_host()[32 * rank + t], 100 * before + t);
        EXPECT_EQ(pairs.to_host()[2 * rank], before);
        EXPECT_EQ(pairs.to_host()[2 * rank + 1], -before);
        EXPECT_EQ(fours.to_host()[4 * rank + 2], 2);
        EXPECT_EQ(fours.to_host()[4 * rank + 3], before);
        EXPECT_EQ(sums.to_host()[3 * rank], 1006u);
        EXPECT_EQ(sums.to_host()[3 * rank + 1], 30u);
        EXPECT_EQ(sums.to_host()[3 * rank + 2], 15u);
    }
}

// Block 0 gets copies of the others' arrays, and their sum. The other blocks arrive at a second
// barrier of block 0.
__global__ void __cluster_dims__(kClusterBlocks, 1, 1) gather(int* copies, int* sums) {
    __shared__ alignas(16) int own[kCount], copy[kClusterBlocks][kCount], sum[kCount];
    __shared__ std::uint64_t full, arrived;
    const unsigned rank = ptx::get_sreg_cluster_ctarank();
    for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x) {
        own[i] = static_cast<int>(kCount * rank + i);
        sum[i] = 0;
    }
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&arrived, kClusterBlocks + 3);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        if (rank == 0)
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &full,
                                           2 * kClusterBlocks * sizeof own);
    }
    ptx::fence_proxy_async();
    __syncthreads();
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there(&copy[rank][0], 0), own, sizeof own,
                           there(&full, 0));
        ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, there(&sum[0], 0),
                                  static_cast<const int*>(own), static_cast<std::uint32_t>(sizeof own),
                                  there(&full, 0));
        std::uint64_t* const of_first = there(&arrived, 0);
        if (rank == 1) {
            ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, of_first, 4u);
        } else {
            ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, of_first);
        }
        sums[kCount + rank] = static_cast<int>(ptx::getctarank(ptx::space_cluster, there(&full, rank)));
    }
    if (rank == 0) {
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full, 0)) {
        }
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &arrived, 0)) {
        }
        for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x) {
            sums[i] = sum[i];
            for (unsigned from = 0; from < kClusterBlocks; ++from)
                copies[from * kCount + i] = copy[from][i];
        }
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}
TEST_F(ClusterCopy, BetweenSharedMemoryOfBlocks) {
    DeviceVector<int> copies(kClusterBlocks * kCount), sums(kCount + kClusterBlocks);
    gather<<<kClusterBlocks, 64>>>(copies.data(), sums.data());
    EXPECT_EQ(copies.to_host(), counted<int>(kClusterBlocks * kCount, 0));
    const std::vector<int> got = sums.to_host();
    for (int i = 0; i < kCount; ++i)
        EXPECT_EQ(got[i], kCount * 6 + 4 * i);
    for (unsigned rank = 0; rank < kClusterBlocks; ++rank)
        EXPECT_EQ(got[kCount + rank], static_cast<int>(rank));
}

// Block 0 loads the numbers for blocks 0, 1 and 3.
__global__ void __cluster_dims__(kClusterBlocks, 1, 1) load_for_others(int* out, const int* in) {
    __shared__ alignas(16) int part[kCount];
    __shared__ std::uint64_t full;
    constexpr std::uint16_t kReceivers = 0b1011;
    const unsigned rank = ptx::get_sreg_cluster_ctarank();
    const bool receives = (kReceivers >> rank & 1) != 0;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        if (receives)
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &full,
                                           sizeof part);
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (rank == 0 && threadIdx.x == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, in, sizeof part, &full, kReceivers);
    if (receives) {
        while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
        }
        for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x)
            out[kCount * rank + i] = part[i];
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}
TEST_F(ClusterCopy, ALoadForSeveralBlocks) {
    DeviceVector<int> in(counted<int>(kCount)), out(kClusterBlocks * kCount);
    load_for_others<<<kClusterBlocks, 32>>>(out.data(), in.data());
    const std::vector<int> got = out.to_host();
    for (unsigned rank = 0; rank < kClusterBlocks; ++rank) {
        for (int i = 0; i < kCount; ++i)
            ASSERT_EQ(got[kCount * rank + i], rank == 2 ? 0 : i + 1) << rank;
    }
}

}  // namespace

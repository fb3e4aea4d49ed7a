// Kernels with a mistake, and correct kernels that look wrong, beyond those of
// calibration/inspection_bugs.cu, which were also checked with a GPU's tools.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda.h>
#include <cuda_pipeline.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/ptx>
#include <functional>
#include <memory>
#include <nvfunctional>
#include <string>
#include <vector>

#include "cuda_on_cpu/async_copy.h"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/inspection.h"
#include "cuda_on_cpu/tensor_core.h"

namespace {

namespace cg = cooperative_groups;
namespace ptx = cuda_on_cpu::ptx;
using cuda_on_cpu::Finding;
using cuda_on_cpu::InspectionOptions;

constexpr unsigned kThreads = 64;

template <class T>
class Buffer {
  public:
    explicit Buffer(std::size_t count, bool cleared = true) {
        EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess);
        if (cleared) {
            EXPECT_EQ(cudaMemset(data_, 0, count * sizeof(T)), cudaSuccess);
        }
    }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* get() const { return data_; }

  private:
    T* data_ = nullptr;
};

std::vector<Finding> findings(const std::function<void()>& launch, const InspectionOptions& options = {}) {
    cuda_on_cpu::begin_inspection(options);
    launch();
    if (cudaDeviceSynchronize() != cudaSuccess) cudaDeviceReset();
    std::vector<Finding> all;
    for (const auto& kernel : cuda_on_cpu::end_inspection().kernels)
        all.insert(all.end(), kernel.findings.begin(), kernel.findings.end());
    return all;
}

std::string kinds(const std::vector<Finding>& all) {
    std::string text;
    for (const Finding& finding : all)
        text += (text.empty() ? "" : " ") + finding.kind;
    return text;
}

std::string messages(const std::vector<Finding>& all) {
    std::string text;
    for (const Finding& finding : all)
        text +=
            finding.source.file + ":" + std::to_string(finding.source.line) + ": " + finding.message + "\n";
    return text;
}

#define EXPECT_FINDS(expected, ...)                              \
    {                                                            \
        const std::vector<Finding> seen = findings(__VA_ARGS__); \
        EXPECT_EQ(kinds(seen), expected) << messages(seen);      \
    }

// --- The first launch of the program

__device__ __noinline__ void count_up(int* numbers) {
    for (int i = 0; i < 8; ++i)
        numbers[i] = i;
}
__global__ void use_own_stack() {
    int numbers[8];
    count_up(numbers);
    if (numbers[7] != 7) __trap();
}

// The first access of an OS thread is one to a stack, which is no memory of the host. This has to
// be the first test: no OS thread has run a block before.
TEST(FirstLaunch, AccessesTheStacksOfItsThreads) {
    EXPECT_FINDS("", [] { use_own_stack<<<64, 1>>>(); });
}

// --- The report of a finding

__global__ void first_reads_what_second_warp_writes(float* out) {
    __shared__ float other[8];
    __shared__ float row[kThreads];
    if (threadIdx.x < 8) other[threadIdx.x] = 0;
    row[threadIdx.x] = 1;
    out[threadIdx.x] = row[(threadIdx.x + 32) % kThreads];
}
constexpr int kLineOfTheRead = __LINE__ - 2;

TEST(Findings, TellBothPlacesBothThreadsAndTheArray) {
    Buffer<float> out(kThreads);
    const auto seen = findings([&] { first_reads_what_second_warp_writes<<<1, kThreads>>>(out.get()); });
    ASSERT_EQ(kinds(seen), "race") << messages(seen);
    const Finding& race = seen[0];
    ASSERT_TRUE(race.other.has_value());
    EXPECT_EQ(race.source.line + race.other->line, 2 * kLineOfTheRead - 1);
    EXPECT_NE(race.source.file.find("findings_kernels_test.cu"), std::string::npos) << race.source.file;
    EXPECT_EQ(std::max(race.thread[0], race.other_thread[0]),
              std::min(race.thread[0], race.other_thread[0]) + 32);
    EXPECT_NE(race.message.find(" of row: "), std::string::npos) << race.message;
    EXPECT_EQ(race.count, kThreads);
    EXPECT_FALSE(race.why.empty());
}

TEST(Findings, LaunchesOfOneKernelAddUp) {
    Buffer<float> out(kThreads);
    const auto seen = findings([&] {
        for (int i = 0; i < 3; ++i)
            first_reads_what_second_warp_writes<<<1, kThreads>>>(out.get());
    });
    ASSERT_EQ(kinds(seen), "race");
    EXPECT_EQ(seen[0].count, 3 * kThreads);
}

// --- Order between threads

__global__ void reduce_in_volatile_memory(float* out) {
    __shared__ volatile float sums[32];
    sums[threadIdx.x] = 1;
    for (unsigned d = 16; d > 0; d /= 2) {
        if (threadIdx.x < d) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + d];
    }
    if (threadIdx.x == 0) *out = sums[0];
}

TEST(Order, VolatileDoesNotMakeAWarpWait) {
    Buffer<float> out(1);
    const auto seen = findings([&] { reduce_in_volatile_memory<<<1, 32>>>(out.get()); });
    ASSERT_FALSE(seen.empty());
    for (const Finding& finding : seen)
        EXPECT_EQ(finding.kind, "race") << finding.message;
}

template <bool kWaits>
__global__ void arrive_and_wait_apart(float* out) {
    __shared__ float row[kThreads];
    const cg::thread_block block = cg::this_thread_block();
    row[threadIdx.x] = 1;
    auto token = block.barrier_arrive();
    if (kWaits) block.barrier_wait(std::move(token));
    out[threadIdx.x] = row[kThreads - 1 - threadIdx.x];
    if (!kWaits) block.barrier_wait(std::move(token));
}

TEST(Order, TheHalvesOfABarrier) {
    Buffer<float> out(kThreads);
    EXPECT_FINDS("", [&] { arrive_and_wait_apart<true><<<1, kThreads>>>(out.get()); });
    EXPECT_FINDS("race", [&] { arrive_and_wait_apart<false><<<1, kThreads>>>(out.get()); });
}

__global__ void write_between_the_halves(float* out) {
    __shared__ float row[kThreads];
    const cg::thread_block block = cg::this_thread_block();
    auto token = block.barrier_arrive();
    row[threadIdx.x] = 1;
    block.barrier_wait(std::move(token));
    out[threadIdx.x] = row[kThreads - 1 - threadIdx.x];
}

TEST(Order, WhatComesAfterTheFirstHalfOfABarrierIsNotOrdered) {
    Buffer<float> out(kThreads);
    const std::vector<Finding> seen = findings([&] { write_between_the_halves<<<1, kThreads>>>(out.get()); });
    EXPECT_NE(kinds(seen).find("race"), std::string::npos) << messages(seen);
}

template <bool kSameTile>
__global__ void tiles_of_a_warp(float* out) {
    __shared__ float row[32];
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    row[threadIdx.x] = 1;
    tile.sync();
    out[threadIdx.x] = row[kSameTile ? threadIdx.x ^ 7 : threadIdx.x ^ 8];
}

TEST(Order, ATileWaitsForItselfOnly) {
    Buffer<float> out(32);
    EXPECT_FINDS("", [&] { tiles_of_a_warp<true><<<1, 32>>>(out.get()); });
    EXPECT_FINDS("race", [&] { tiles_of_a_warp<false><<<1, 32>>>(out.get()); });
}

// Warp 0 copies and stores, and warp 1 reads the data of each batch after waiting for it; a stage
// is overwritten after its release. One of the two may wait too late: then the phases of the
// barriers are still correct, and only the order of the accesses is wrong.
enum class TooLate { neither, reader, writer };
template <TooLate kTooLate>
__global__ void pass_through_a_pipeline(const float* in, float* out) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ Barrier filled[2];
    __shared__ Barrier emptied[2];
    __shared__ float copied[2][32];
    __shared__ float stored[2][32];
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 2) {
        init(&filled[threadIdx.x], 32);
        init(&emptied[threadIdx.x], 1);
    }
    __syncthreads();
    for (unsigned batch = 0; batch < 4; ++batch) {
        const unsigned stage = batch % 2;
        const bool odd_round = batch / 2 % 2 != 0;
        if (threadIdx.x < 32) {
            if (kTooLate != TooLate::writer) emptied[stage].wait_parity(!odd_round);
            cuda::memcpy_async(&copied[stage][lane], &in[lane], sizeof(float), filled[stage]);
            stored[stage][lane] = 1;
            if (kTooLate == TooLate::writer) emptied[stage].wait_parity(!odd_round);
            static_cast<void>(filled[stage].arrive());
        } else {
            if (kTooLate != TooLate::reader) filled[stage].wait_parity(odd_round);
            out[lane] = copied[stage][31 - lane] + stored[stage][lane ^ 1];
            if (kTooLate == TooLate::reader) filled[stage].wait_parity(odd_round);
            __syncwarp();
            if (lane == 0) static_cast<void>(emptied[stage].arrive());
        }
    }
}

TEST(Order, ArrivalsAndWaits) {
    Buffer<float> in(32), out(32);
    EXPECT_FINDS("", [&] { pass_through_a_pipeline<TooLate::neither><<<1, 64>>>(in.get(), out.get()); });
    const auto kinds_of = [&](auto kernel) {
        return kinds(findings([&] { kernel<<<1, 64>>>(in.get(), out.get()); }));
    };
    EXPECT_NE(kinds_of(pass_through_a_pipeline<TooLate::reader>).find("race"), std::string::npos);
    EXPECT_NE(kinds_of(pass_through_a_pipeline<TooLate::writer>).find("race"), std::string::npos);
}

// --- Order by features of Hopper: mbarriers, named barriers, bulk copies

// As pass_through_a_pipeline, with mbarriers.
template <TooLate kTooLate>
__global__ void pass_through_mbarriers(float* out) {
    __shared__ ptx::MBarrier filled[2];
    __shared__ ptx::MBarrier emptied[2];
    __shared__ float stored[2][32];
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 2) {
        ptx::mbarrier_init(&filled[threadIdx.x], 32);
        ptx::mbarrier_init(&emptied[threadIdx.x], 1);
    }
    __syncthreads();
    for (unsigned batch = 0; batch < 6; ++batch) {
        const unsigned stage = batch % 2;
        const unsigned parity = batch / 2 % 2;
        if (threadIdx.x < 32) {
            if (kTooLate != TooLate::writer) ptx::mbarrier_wait(&emptied[stage], parity ^ 1);
            stored[stage][lane] = static_cast<float>(batch);
            if (kTooLate == TooLate::writer) ptx::mbarrier_wait(&emptied[stage], parity ^ 1);
            ptx::mbarrier_arrive(&filled[stage]);
        } else {
            if (kTooLate != TooLate::reader) ptx::mbarrier_wait(&filled[stage], parity);
            out[lane] = stored[stage][31 - lane];
            if (kTooLate == TooLate::reader) ptx::mbarrier_wait(&filled[stage], parity);
            __syncwarp();
            if (lane == 0) ptx::mbarrier_arrive(&emptied[stage]);
        }
    }
}

TEST(Order, MbarriersOrderWhoHasArrivedBeforeWhoHasWaited) {
    Buffer<float> out(32);
    EXPECT_FINDS("", [&] { pass_through_mbarriers<TooLate::neither><<<1, 64>>>(out.get()); });
    const auto kinds_of = [&](auto kernel) { return kinds(findings([&] { kernel<<<1, 64>>>(out.get()); })); };
    EXPECT_NE(kinds_of(pass_through_mbarriers<TooLate::reader>).find("race"), std::string::npos);
    EXPECT_NE(kinds_of(pass_through_mbarriers<TooLate::writer>).find("race"), std::string::npos);
}

// The other block may be the one that completes the phase.
template <bool kWaits>
__global__ void __cluster_dims__(2, 1, 1) arrive_at_both(float* out) {
    __shared__ ptx::MBarrier barrier;
    __shared__ float value;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 2);
        ptx::fence_mbarrier_init();
    }
    cg::this_cluster().sync();
    if (threadIdx.x == 0) {
        value = 1;
        for (unsigned rank = 0; rank < 2; ++rank)
            ptx::mbarrier_arrive_at(&barrier, rank);
    }
    if (kWaits) ptx::mbarrier_wait(&barrier, 0);
    out[blockIdx.x * kThreads + threadIdx.x] = value;
    cg::this_cluster().sync();
}

TEST(Order, AnMbarrierWhosePhaseAnotherBlockEnds) {
    Buffer<float> out(2 * kThreads);
    EXPECT_FINDS("", [&] { arrive_at_both<true><<<2, kThreads>>>(out.get()); });
    EXPECT_NE(kinds(findings([&] { arrive_at_both<false><<<2, kThreads>>>(out.get()); })).find("race"),
              std::string::npos);
}

// Thread 0 arrives at a barrier that no thread waits for. A barrier that is created there later is
// not ordered after that arrival.
template <bool kTells>
__global__ void begin_anew(float* out) {
    __shared__ ptx::MBarrier barrier;
    __shared__ float value;
    __shared__ unsigned begun;
    if (threadIdx.x == 0) begun = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        value = 1;
        ptx::mbarrier_init(&barrier, 1);
        ptx::mbarrier_arrive(&barrier);
        ptx::mbarrier_inval(&barrier);
        ptx::mbarrier_init(&barrier, 1 + kTells);
        if (kTells) ptx::mbarrier_arrive(&barrier);
        atomicExch(&begun, 1);
    } else {
        while (atomicAdd(&begun, 0) == 0) {
        }
        if (threadIdx.x == 64) ptx::mbarrier_arrive(&barrier);
        if (threadIdx.x == 32) {
            ptx::mbarrier_wait(&barrier, 0);
            *out = value;
        }
    }
}

TEST(Order, AnMbarrierThatBeginsAnewHasHeardNothing) {
    Buffer<float> out(1);
    EXPECT_FINDS("", [&] { begin_anew<true><<<1, 96>>>(out.get()); });
    EXPECT_FINDS("race", [&] { begin_anew<false><<<1, 96>>>(out.get()); });
}

// Block 0 sends a request and block 1 answers, so thread 0 of block 0 is ordered before block 1,
// and before thread 32 of its own block.
template <bool kFirstWaits, bool kSecondWaits>
__global__ void __cluster_dims__(2, 1, 1) by_way_of_the_other_block(float* between, float* out) {
    __shared__ ptx::MBarrier asked, answered;
    __shared__ float value;
    const unsigned cluster = blockIdx.x / 2;
    const unsigned rank = cg::this_cluster().block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&asked, 1);
        ptx::mbarrier_init(&answered, 1);
        ptx::fence_mbarrier_init();
    }
    cg::this_cluster().sync();
    if (rank == 0 && threadIdx.x == 0) {
        between[cluster] = value = 1;
        ptx::mbarrier_arrive_at(&asked, 1);
    }
    if (rank == 1 && threadIdx.x == 0) {
        if (kFirstWaits) ptx::mbarrier_wait(&asked, 0);
        out[blockIdx.x] = between[cluster];
        ptx::mbarrier_arrive_at(&answered, 0);
    }
    if (rank == 0 && threadIdx.x == 32 && kFirstWaits) {
        if (kSecondWaits) ptx::mbarrier_wait(&answered, 0);
        out[blockIdx.x] = value;
    }
    cg::this_cluster().sync();
}

TEST(Order, ByWayOfAnMbarrierOfAnotherBlock) {
    Buffer<float> between(16), out(32);
    InspectionOptions few;
    few.blocks_per_launch = 7;
    for (const InspectionOptions& options : {InspectionOptions(), few}) {
        const auto finds = [&](auto kernel) {
            return kinds(findings([&] { kernel<<<32, kThreads>>>(between.get(), out.get()); }, options));
        };
        EXPECT_EQ(finds(by_way_of_the_other_block<true, true>), "");
        EXPECT_EQ(finds(by_way_of_the_other_block<true, false>), "race");
        EXPECT_EQ(finds(by_way_of_the_other_block<false, false>), "race_between_blocks");
    }
}

// Two warps of three synchronise; `reader` is the first thread of the warp that reads the data
// written by the second warp.
__global__ void meet_at_a_named_barrier(float* out, unsigned reader) {
    __shared__ float row[32];
    if (threadIdx.x / 32 == 1) row[threadIdx.x % 32] = 1;
    if (threadIdx.x < 64) ptx::named_barrier(1, 64);
    if (threadIdx.x / 32 == reader / 32) out[threadIdx.x % 32] = row[31 - threadIdx.x % 32];
}

TEST(Order, ANamedBarrierOrdersThoseWhoMeetThere) {
    Buffer<float> out(32);
    EXPECT_FINDS("", [&] { meet_at_a_named_barrier<<<1, 96>>>(out.get(), 0); });
    EXPECT_NE(kinds(findings([&] { meet_at_a_named_barrier<<<1, 96>>>(out.get(), 64); })).find("race"),
              std::string::npos);
}

// A matrix of 32 x 32 numbers, in boxes of 8 rows: 1024 bytes.
class Boxes {
  public:
    explicit Boxes(bool written = true) : numbers_(1024, written) {
        const cuuint64_t extents[] = {32, 32}, pitch[] = {128};
        const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
        EXPECT_EQ(
            cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, numbers_.get(), extents, pitch,
                                   box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            CUDA_SUCCESS);
    }
    float* numbers() const { return numbers_.get(); }

    CUtensorMap map;

  private:
    Buffer<float> numbers_;
};

// One box after the other, in the same shared memory.
enum class BoxMistake { none, read_before_the_wait, one_waits, no_barrier_before_the_next };
template <BoxMistake kMistake>
__global__ void load_boxes(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float box[8][32];
    __shared__ ptx::MBarrier full;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    for (unsigned number = 0; number < 4; ++number) {
        if (threadIdx.x == 0) {
            ptx::mbarrier_arrive_expect(&full, sizeof box);
            ptx::tma_load(box, &map, 0, static_cast<int>(8 * number), &full);
        }
        // With any order of threads, the copy is still pending here.
        if (kMistake == BoxMistake::one_waits) __syncthreads();
        if (kMistake == BoxMistake::read_before_the_wait && threadIdx.x == 0) out[0] = box[0][0];
        if (kMistake != BoxMistake::one_waits || threadIdx.x == 0) ptx::mbarrier_wait(&full, number % 2);
        out[threadIdx.x] = box[7][threadIdx.x % 32];
        if (kMistake != BoxMistake::no_barrier_before_the_next || number == 3) __syncthreads();
    }
}

TEST(BulkCopies, ABoxIsWrittenUntilItsBarrierHasBeenWaitedFor) {
    Boxes boxes;
    Buffer<float> out(kThreads);
    const auto kinds_of = [&](auto kernel) {
        return kinds(findings([&] { kernel<<<1, kThreads>>>(boxes.map, out.get()); }));
    };
    EXPECT_EQ(kinds_of(load_boxes<BoxMistake::none>), "");
    const auto finds = [](const std::string& all, const char* kind) {
        return all.find(kind) != std::string::npos ? testing::AssertionSuccess()
                                                   : testing::AssertionFailure() << "found: " << all;
    };
    EXPECT_TRUE(finds(kinds_of(load_boxes<BoxMistake::read_before_the_wait>), "missing_wait"));
    EXPECT_EQ(kinds_of(load_boxes<BoxMistake::one_waits>), "missing_wait");
    EXPECT_TRUE(finds(kinds_of(load_boxes<BoxMistake::no_barrier_before_the_next>), "race"));
}

// Both boxes are complete before any thread reads: there is a wait for each of them.
template <bool kBoth>
__global__ void wait_for_two_boxes(const __grid_constant__ CUtensorMap map, float* out) {
    __shared__ alignas(128) float box[2][8][32];
    __shared__ ptx::MBarrier full[2];
    const unsigned warp = threadIdx.x / 32;
    if (threadIdx.x < 2) ptx::mbarrier_init(&full[threadIdx.x], 1);
    ptx::fence_mbarrier_init();
    __syncthreads();
    for (int number = 1; threadIdx.x == 33 && number >= 0; --number) {
        ptx::mbarrier_arrive_expect(&full[number], sizeof box[number]);
        ptx::tma_load(box[number], &map, 0, 8 * number, &full[number]);
    }
    ptx::mbarrier_wait(&full[warp], 0);
    if (kBoth) ptx::mbarrier_wait(&full[1], 0);
    out[threadIdx.x] = box[1][7][threadIdx.x % 32];
}

TEST(BulkCopies, ABoxThatWasWaitedForAtTheBarrierOfAnother) {
    Boxes boxes;
    Buffer<float> out(kThreads);
    EXPECT_FINDS("", [&] { wait_for_two_boxes<true><<<1, kThreads>>>(boxes.map, out.get()); });
    const auto seen = findings([&] { wait_for_two_boxes<false><<<1, kThreads>>>(boxes.map, out.get()); });
    ASSERT_EQ(kinds(seen), "race") << messages(seen);
    EXPECT_EQ(seen[0].count, 32u);
    EXPECT_EQ(seen[0].other_thread[0], 33u) << "the thread that issued the copy";
}

TEST(BulkCopies, ABoxOfWhatNothingHasWritten) {
    Boxes boxes(false);
    Buffer<float> out(kThreads);
    EXPECT_FINDS("uninitialised_read",
                 [&] { load_boxes<BoxMistake::none><<<1, kThreads>>>(boxes.map, out.get()); });
}

// Each block loads one box.
template <bool kMeets>
__global__ void store_box(const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float box[8][32];
    for (unsigned row = 0; row < 8; ++row)
        box[row][threadIdx.x] = 1;
    ptx::fence_proxy_async();
    if (kMeets) __syncwarp();
    if (threadIdx.x == (kMeets ? 0 : 31)) {
        ptx::tma_store(&map, 0, static_cast<int>(8 * blockIdx.x), box);
        ptx::tma_store_commit();
        ptx::tma_store_wait<0>();
    }
}
__global__ void sum_all(const float* numbers, float* out) {
    float sum = 0;
    for (unsigned i = 0; i < 1024; ++i)
        sum += numbers[i];
    *out = sum;
}

TEST(BulkCopies, WhatABoxStoresHasBeenWritten) {
    Buffer<float> out(1);
    for (const std::uint64_t watched : {4u, 2u}) {
        Boxes boxes(false);
        InspectionOptions options;
        options.blocks_per_launch = watched;
        EXPECT_FINDS(
            "",
            [&] {
                store_box<true><<<4, 32>>>(boxes.map);
                sum_all<<<1, 1>>>(boxes.numbers(), out.get());
            },
            options);
    }
}

TEST(BulkCopies, AStoreReadsWhatItsThreadKnowsOf) {
    Boxes boxes;
    EXPECT_NE(kinds(findings([&] { store_box<false><<<4, 32>>>(boxes.map); })).find("race"),
              std::string::npos);
}

// The threads that write call fence.proxy.async before the barrier, or the thread that issues the
// bulk copy calls it afterwards.
enum class Fence {
    kByTheIssuer,
    kByAllBehindTheBarrier,
    kByLane0,
    kReduces,
    kNotByAWarp,
    kByAll,
    kByTheWarp,
    kByTheOnlyWriter,
    kInRounds,
    kLoadedByACopy
};
template <Fence kFence>
__global__ void store_what_all_have_written(float* out) {
    __shared__ alignas(128) float tile[2][kThreads];
    const unsigned i = threadIdx.x, lane0 = i / 32 * 32;
    const auto store = [&](float* to, const float* from, unsigned threads) {
        const auto address = static_cast<unsigned>(__cvta_generic_to_shared(from));
        if (kFence == Fence::kReduces) {
            cuda::ptx::cp_reduce_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared,
                                            cuda::ptx::op_add, to, from, threads * 4);
        } else {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                         "r"(address), "r"(threads * 4)
                         : "memory");
        }
        ptx::tma_store_commit();
        ptx::tma_store_wait<0>();
    };
    switch (kFence) {
        case Fence::kByTheIssuer:
        case Fence::kReduces:
            tile[0][i] = 1;
            __syncthreads();
            if (i == 0) {
                ptx::fence_proxy_async();
                store(out, tile[0], kThreads);
            }
            break;
        case Fence::kByAllBehindTheBarrier:
            tile[0][i] = 1;
            __syncthreads();
            ptx::fence_proxy_async();
            if (i == 5) store(out, tile[0], kThreads);
            break;
        case Fence::kByLane0:
            tile[0][i] = 1;
            __syncwarp();
            if (i == lane0) {
                ptx::fence_proxy_async();
                store(out + i, tile[0] + i, 32);
            }
            break;
        case Fence::kNotByAWarp:
            for (int round = 0; round < 3; ++round) {
                tile[0][i] = static_cast<float>(round);
                if (round < 2 || i >= 32) ptx::fence_proxy_async();
                __syncthreads();
                if (i == 40) store(out, tile[0], kThreads);
                __syncthreads();
            }
            break;
        case Fence::kByAll:
            tile[0][i] = 1;
            ptx::fence_proxy_async();
            __syncthreads();
            if (i == 0) store(out, tile[0], kThreads);
            break;
        case Fence::kByTheWarp:
            tile[0][i] = 1;
            ptx::fence_proxy_async();
            __syncwarp();
            if (i == lane0) store(out + i, tile[0] + i, 32);
            break;
        case Fence::kByTheOnlyWriter:
            if (i != 0) break;
            for (float& each : tile[0])
                each = 1;
            ptx::fence_proxy_async();
            store(out, tile[0], kThreads);
            break;
        case Fence::kInRounds:
            for (int round = 0; round < 40; ++round) {
                float* const half = tile[round % 2];
                half[i] = static_cast<float>(round);
                ptx::fence_proxy_async();
                __syncthreads();
                if (i == 0) store(out, half, kThreads);
            }
            __syncthreads();
            break;
        case Fence::kLoadedByACopy: {  // by the same proxy
            __shared__ std::uint64_t barrier;
            if (i == 0) {
                ptx::mbarrier_init(&barrier, 1);
                ptx::fence_mbarrier_init();
                ptx::mbarrier_arrive_expect(&barrier, sizeof tile[0]);
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
                    "[%3];" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(tile[0]))),
                    "l"(out), "r"(static_cast<unsigned>(sizeof tile[0])),
                    "r"(static_cast<unsigned>(__cvta_generic_to_shared(&barrier)))
                    : "memory");
            }
            __syncthreads();
            ptx::mbarrier_wait(&barrier, 0);
            if (i == 0) {
                ptx::fence_proxy_async();
                store(out + kThreads, tile[0], kThreads);
            }
            break;
        }
    }
}

TEST(BulkCopies, EachThreadThatHasWrittenNeedsAFence) {
    Buffer<float> out(2 * kThreads);
    const auto run = [&](auto kernel) { return findings([&] { kernel<<<1, kThreads>>>(out.get()); }); };
    const auto wrong = {store_what_all_have_written<Fence::kByTheIssuer>,
                        store_what_all_have_written<Fence::kByAllBehindTheBarrier>,
                        store_what_all_have_written<Fence::kByLane0>,
                        store_what_all_have_written<Fence::kReduces>,
                        store_what_all_have_written<Fence::kNotByAWarp>};
    for (const auto kernel : wrong) {
        const auto seen = run(kernel);
        const auto found = std::ranges::find(seen, "missing_fence", &Finding::kind);
        ASSERT_NE(found, seen.end()) << messages(seen);
        EXPECT_GT(found->source.line, 0);
        ASSERT_TRUE(found->other.has_value());
        EXPECT_GT(found->other->line, 0);
    }
    const auto right = {
        store_what_all_have_written<Fence::kByAll>, store_what_all_have_written<Fence::kByTheWarp>,
        store_what_all_have_written<Fence::kByTheOnlyWriter>, store_what_all_have_written<Fence::kInRounds>,
        store_what_all_have_written<Fence::kLoadedByACopy>};
    for (const auto kernel : right)
        EXPECT_EQ(messages(run(kernel)), "");
}

// Each of two warps stores a box.
enum class SamePlace { no, in_turns, of_a_block, of_two_blocks };
template <SamePlace kSame>
__global__ void store_two_boxes(const __grid_constant__ CUtensorMap map) {
    __shared__ alignas(128) float box[2][8][32];
    const unsigned warp = threadIdx.x / 32;
    const unsigned place = kSame == SamePlace::no              ? 2 * blockIdx.x + warp
                           : kSame == SamePlace::of_two_blocks ? warp
                                                               : blockIdx.x;
    for (auto& row : box[warp])
        row[threadIdx.x % 32] = 1;
    ptx::fence_proxy_async();
    __syncwarp();
    for (unsigned turn = 0; turn < 2; ++turn) {
        if (threadIdx.x == 32 * turn) {
            ptx::tma_store(&map, 0, static_cast<int>(8 * place), box[warp]);
            ptx::tma_store_commit();
            ptx::tma_store_wait<0>();
        }
        if (kSame == SamePlace::in_turns) __syncthreads();
    }
}

TEST(BulkCopies, TwoBoxesThatAreStoredInTheSamePlace) {
    Boxes boxes;
    EXPECT_FINDS("", [&] { store_two_boxes<SamePlace::no><<<2, 64>>>(boxes.map); });
    EXPECT_FINDS("", [&] { store_two_boxes<SamePlace::in_turns><<<2, 64>>>(boxes.map); });
    EXPECT_FINDS("race", [&] { store_two_boxes<SamePlace::of_a_block><<<2, 64>>>(boxes.map); });
    EXPECT_FINDS("race_between_blocks",
                 [&] { store_two_boxes<SamePlace::of_two_blocks><<<2, 64>>>(boxes.map); });
}

// Four matrices of 8 x 8, written by a warp at once; the other warp comes later, but that is not an
// order.
template <bool kMeets>
__global__ void store_matrices(float* out) {
    __shared__ alignas(16) unsigned matrices[128];
    __shared__ unsigned lanes_done;
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x == 0) lanes_done = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        const unsigned r[4] = {1, 2, 3, 4};
        ptx::stmatrix_x4(&matrices[lane * 4], r);
        atomicAdd(&lanes_done, 1);
    }
    while (atomicAdd(&lanes_done, 0) < 32) {
    }
    if (kMeets) __syncthreads();
    out[threadIdx.x] = static_cast<float>(matrices[127 - threadIdx.x]);
}

TEST(Uninitialised, NotWhatStmatrixHasWritten) {
    Buffer<float> out(kThreads);
    EXPECT_FINDS("", [&] { store_matrices<true><<<1, kThreads>>>(out.get()); });
    EXPECT_FINDS("race", [&] { store_matrices<false><<<1, kThreads>>>(out.get()); });
}

// --- Order between blocks

template <bool kFence, bool kTicketOnly>
__global__ void last_block_sums_up(float* partial, unsigned* ticket, float* out) {
    __shared__ bool last;
    partial[blockIdx.x * kThreads + threadIdx.x] = 1;
    if (kFence) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!kTicketOnly && !last) return;
    if (kFence) __threadfence();
    out[threadIdx.x] = partial[(gridDim.x - 1 - blockIdx.x) * kThreads + threadIdx.x];
}

TEST(Order, ATicketFromCompareAndSwap) {
    Buffer<float> partial(4 * kThreads), out(kThreads);
    Buffer<unsigned> ticket(1);
    EXPECT_FINDS("", [&] {
        last_block_sums_up<true, false><<<4, kThreads>>>(partial.get(), ticket.get(), out.get());
    });
    EXPECT_FINDS("race_between_blocks", [&] {
        last_block_sums_up<false, false><<<4, kThreads>>>(partial.get(), ticket.get(), out.get());
    });
}

template <bool kForOtherBlocks>
__device__ void fence() {
    if (kForOtherBlocks)
        __threadfence();
    else
        __threadfence_block();
}

template <bool kForOtherBlocks>
__global__ void second_of_two_blocks_reads(int* data, unsigned* met, int* out) {
    data[blockIdx.x] = 1;
    fence<kForOtherBlocks>();
    if (atomicAdd(&met[blockIdx.x / 2], 1) == 0) return;
    fence<kForOtherBlocks>();
    out[blockIdx.x] = data[blockIdx.x ^ 1];
}

// Blocks on two OS threads reach their counter at the same time. Performing the operation and
// passing on the clock are two steps, and the other block may do both between them.
TEST(Order, WhoeverIsTheSecondHasHeardOfTheFirst) {
    constexpr unsigned kBlocks = 256;
    Buffer<int> data(kBlocks), out(kBlocks);
    Buffer<unsigned> met(kBlocks / 2);
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(cudaMemset(met.get(), 0, kBlocks / 2 * sizeof(unsigned)), cudaSuccess);
        EXPECT_FINDS(
            "", [&] { second_of_two_blocks_reads<true><<<kBlocks, 1>>>(data.get(), met.get(), out.get()); });
    }
}

TEST(Order, AFenceForTheBlockIsNoneForOtherBlocks) {
    Buffer<int> data(2), out(2);
    Buffer<unsigned> met(1);
    EXPECT_FINDS("race_between_blocks",
                 [&] { second_of_two_blocks_reads<false><<<2, 1>>>(data.get(), met.get(), out.get()); });
}

template <bool kAtomic>
__global__ void second_block_waits_for_the_first(int* data, int* flag, int* out) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> set(*flag);
    if (blockIdx.x == 0) {
        *data = 7;
        __threadfence();
        if (kAtomic)
            set.store(1, cuda::memory_order_relaxed);
        else
            *flag = 1;
    } else if (kAtomic) {
        while (set.load(cuda::memory_order_relaxed) == 0) {
        }
        __threadfence();
        *out = *data;
    } else {
        *out = *flag == 0 ? 0 : *data;
    }
}

TEST(Order, AnAtomicFlagWithFences) {
    Buffer<int> memory(3);
    EXPECT_FINDS("", [&] {
        second_block_waits_for_the_first<true><<<2, 1>>>(memory.get(), memory.get() + 1, memory.get() + 2);
    });
    EXPECT_NE(kinds(findings([&] {
                  second_block_waits_for_the_first<false>
                      <<<2, 1>>>(memory.get(), memory.get() + 1, memory.get() + 2);
              })),
              "");
}

__global__ void add_floats(float* sum) {
    atomicAdd(sum, 1.0f);
}

TEST(Order, AtomicsOfAllKindsGoTogether) {
    Buffer<float> sum(1);
    EXPECT_FINDS("", [&] { add_floats<<<4, kThreads>>>(sum.get()); });
}

template <bool kFence, bool kBarrier>
__global__ void second_block_loads_a_relaxed_flag(int* data, int* flag, int* out) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> set(*flag);
    if (blockIdx.x == 0) {
        *data = 7;
        __threadfence();
        set.store(1, cuda::memory_order_relaxed);
        return;
    }
    while (set.load(cuda::memory_order_relaxed) == 0) {
    }
    if (kFence) __threadfence();
    if (kBarrier) __syncthreads();
    *out = *data;
}

// A relaxed load orders nothing: what the thread reads after it may be older than the flag.
TEST(Order, ARelaxedLoadNeedsAFenceBehindIt) {
    Buffer<int> memory(3);
    const auto run = [&](auto kernel) {
        ASSERT_EQ(cudaMemset(memory.get(), 0, 3 * sizeof(int)), cudaSuccess);
        kernel<<<2, 1>>>(memory.get(), memory.get() + 1, memory.get() + 2);
    };
    EXPECT_FINDS("", [&] { run(second_block_loads_a_relaxed_flag<true, false>); });
    EXPECT_FINDS("race_between_blocks", [&] { run(second_block_loads_a_relaxed_flag<false, false>); });
    // A barrier is no fence.
    EXPECT_FINDS("race_between_blocks", [&] { run(second_block_loads_a_relaxed_flag<false, true>); });
    EXPECT_FINDS("", [&] { run(second_block_loads_a_relaxed_flag<true, true>); });
}

// Each block writes after the previous one has set the flag: a block also releases the clocks that
// it has acquired.
__global__ void blocks_take_turns(int* data, int* turn) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> whose(*turn);
    while (whose.load(cuda::memory_order_relaxed) != static_cast<int>(blockIdx.x)) {
    }
    __threadfence();
    *data += 1;
    __threadfence();
    whose.store(static_cast<int>(blockIdx.x) + 1, cuda::memory_order_relaxed);
}

TEST(Order, AnAtomicFlagFromBlockToBlock) {
    Buffer<int> memory(2);
    for (int i = 0; i < 10; ++i) {
        ASSERT_EQ(cudaMemset(memory.get(), 0, 2 * sizeof(int)), cudaSuccess);
        EXPECT_FINDS("", [&] { blocks_take_turns<<<16, 1>>>(memory.get(), memory.get() + 1); });
    }
}

__device__ int counted;

__global__ void count_in_a_variable(bool atomically) {
    if (threadIdx.x != 0) return;
    if (atomically)
        atomicAdd(&counted, 1);
    else
        counted = counted + 1;
}

TEST(Order, DeviceVariables) {
    EXPECT_FINDS("", [] { count_in_a_variable<<<4, kThreads>>>(true); });
    EXPECT_FINDS("race_between_blocks", [] { count_in_a_variable<<<4, kThreads>>>(false); });
}

template <bool kWaits>
__global__ void neighbours_in_global_memory(float* scratch, float* out) {
    scratch[threadIdx.x] = 1;
    if (kWaits) __syncthreads();
    out[threadIdx.x] = scratch[kThreads - 1 - threadIdx.x];
}

TEST(Order, ThreadsOfABlockInGlobalMemory) {
    Buffer<float> scratch(kThreads), out(kThreads);
    EXPECT_FINDS("", [&] { neighbours_in_global_memory<true><<<1, kThreads>>>(scratch.get(), out.get()); });
    EXPECT_FINDS("race",
                 [&] { neighbours_in_global_memory<false><<<1, kThreads>>>(scratch.get(), out.get()); });
}

__global__ void a_fence_in_place_of_a_barrier(float* scratch, float* out) {
    scratch[threadIdx.x] = 1;
    __threadfence();
    out[threadIdx.x] = scratch[kThreads - 1 - threadIdx.x];
}

TEST(Order, AFenceAloneOrdersNoThreads) {
    Buffer<float> scratch(kThreads), out(kThreads);
    EXPECT_FINDS("race", [&] { a_fence_in_place_of_a_barrier<<<1, kThreads>>>(scratch.get(), out.get()); });
}

// All threads write one vector, of which each thread owns one component.
template <int kOwn>
__global__ void all_write_a_vector(float4* out, bool in_shared_memory) {
    __shared__ float4 vector;
    const auto own = static_cast<float>(threadIdx.x);
    const float4 value = make_float4(kOwn == 0 ? own : 1, 1, 1, kOwn == 3 ? own : 1);
    if (in_shared_memory)
        vector = value;
    else
        *out = value;
}

TEST(Order, TheSameValueMustBeTheSameInAllWords) {
    Buffer<float4> out(1);
    for (const bool shared : {true, false}) {
        EXPECT_FINDS("race", [&] { all_write_a_vector<0><<<1, kThreads>>>(out.get(), shared); });
        EXPECT_FINDS("race", [&] { all_write_a_vector<3><<<1, kThreads>>>(out.get(), shared); });
        EXPECT_FINDS("", [&] { all_write_a_vector<-1><<<1, kThreads>>>(out.get(), shared); });
    }
}

struct Small {
    short value;
};
struct Row {
    double weight;
    int columns[5];
};

template <class T>
__global__ void copy_to_one_place(T* out, const T* in) {
    *out = in[blockIdx.x + threadIdx.x];
}

// g++ announces the store of a structure before the load that it comes from.
template <class T>
void expect_race_of_copies() {
    Buffer<T> in(kThreads), out(1);
    EXPECT_FINDS("", [&] { copy_to_one_place<<<2, kThreads / 2>>>(out.get(), in.get()); });  // all the same
    std::vector<unsigned char> bytes(kThreads * sizeof(T));
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<unsigned char>(i / sizeof(T));
    ASSERT_EQ(cudaMemcpy(in.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_FINDS("race", [&] { copy_to_one_place<<<1, kThreads>>>(out.get(), in.get()); });
    EXPECT_FINDS("race_between_blocks", [&] { copy_to_one_place<<<2, 1>>>(out.get(), in.get()); });
}

TEST(Order, CopiesOfStructuresRace) {
    expect_race_of_copies<float>();
    expect_race_of_copies<float2>();
    expect_race_of_copies<float3>();
    expect_race_of_copies<float4>();
    expect_race_of_copies<Small>();
    expect_race_of_copies<Row>();
}

__global__ void lanes_end_before_the_others_wait(float* out) {
    __shared__ float row[32];
    row[threadIdx.x] = 1;
    if (threadIdx.x >= 16) return;
    __syncwarp();
    out[threadIdx.x] = row[threadIdx.x + 16];
}

TEST(Order, LanesThatHaveEndedDoNotTakePartInACollective) {
    Buffer<float> out(32);
    EXPECT_FINDS("race", [&] { lanes_end_before_the_others_wait<<<1, 32>>>(out.get()); });
}

__global__ void __cluster_dims__(2, 1, 1) cluster_exchanges(float* out) {
    __shared__ float row[kThreads];
    cg::cluster_group cluster = cg::this_cluster();
    float* other = cluster.map_shared_rank(row, cluster.block_rank() ^ 1);
    other[threadIdx.x] = static_cast<float>(blockIdx.x);
    cluster.sync();
    out[blockIdx.x * kThreads + threadIdx.x] = row[kThreads - 1 - threadIdx.x];
}

TEST(Order, BlocksOfAClusterWriteToEachOther) {
    Buffer<float> out(4 * kThreads);
    EXPECT_FINDS("", [&] { cluster_exchanges<<<4, kThreads>>>(out.get()); });
}

// The last access to the shared memory of the other block, and what comes between it and the other
// block's end.
enum class Last {
    kReads,
    kWrites,
    kAdds,
    kReadsByPtx,
    kReadsAndMeets,
    kReadsOnOneSide,
    kOneSideEnds,
    kArrives
};
template <Last kLast>
__global__ void __cluster_dims__(2, 1, 1) end_of_a_cluster(float* out) {
    extern __shared__ float dynamic[];
    __shared__ float row[kThreads];
    __shared__ std::uint64_t barrier;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), i = threadIdx.x;
    float& place = out[blockIdx.x * kThreads + i];
    row[i] = dynamic[i] = 1;
    if (i == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init();
    }
    float* const other = cluster.map_shared_rank(row, static_cast<int>(rank ^ 1));
    float* const other_dynamic = cluster.map_shared_rank(dynamic, static_cast<int>(rank ^ 1));
    cluster.sync();
    switch (kLast) {
        case Last::kReads:
            place = other[i];
            __syncthreads();
            break;
        case Last::kWrites:
            if (rank == 1 && i < 32) other_dynamic[i] = 2;
            break;
        case Last::kAdds:
            atomicAdd(&other[i % 4], 1.0f);
            break;
        case Last::kReadsByPtx: {
            unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row + i)), there;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank ^ 1));
            asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(place) : "r"(there));
            break;
        }
        case Last::kReadsAndMeets:
            for (int round = 0; round < 3; ++round) {
                other[i] = place + other_dynamic[i];
                cluster.sync();
                place = row[i];
            }
            break;
        case Last::kReadsOnOneSide:  // the other one waits in a barrier
            if (rank == 0) place = other[i];
            cluster.sync();
            break;
        case Last::kOneSideEnds:  // which counts as an arrival
            if (rank == 0) {
                place = other[i];
            } else {
                cluster.sync();
            }
            break;
        case Last::kArrives:  // at an mbarrier, for which the other one waits
            if (rank == 0) place = other[i];
            __syncthreads();
            if (rank == 0 && i == 0) ptx::mbarrier_arrive_at(&barrier, 1);
            if (rank == 1) ptx::mbarrier_wait(&barrier, 0);
            break;
    }
}

TEST(Order, ABlockOfAClusterEndsWhenItsSharedMemoryIsNoLongerNeeded) {
    Buffer<float> out(4 * kThreads);
    const auto run = [&](auto kernel) {
        return findings([&] { kernel<<<4, kThreads, kThreads * sizeof(float)>>>(out.get()); });
    };
    EXPECT_EQ(kinds(run(end_of_a_cluster<Last::kReads>)), "cluster_exit");
    EXPECT_EQ(kinds(run(end_of_a_cluster<Last::kWrites>)), "cluster_exit");
    EXPECT_EQ(kinds(run(end_of_a_cluster<Last::kAdds>)), "cluster_exit");
    EXPECT_EQ(kinds(run(end_of_a_cluster<Last::kReadsByPtx>)), "cluster_exit");
    const auto right = {end_of_a_cluster<Last::kReadsAndMeets>, end_of_a_cluster<Last::kReadsOnOneSide>,
                        end_of_a_cluster<Last::kOneSideEnds>, end_of_a_cluster<Last::kArrives>};
    for (const auto kernel : right)
        EXPECT_EQ(messages(run(kernel)), "");
}

template <bool kWaits>
__global__ void __cluster_dims__(2, 1, 1)
    cluster_exchanges_in_global_memory(float* between, float* out, unsigned apart) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    between[i] = 1;
    if (kWaits) cg::this_cluster().sync();
    out[i] = between[i ^ apart * kThreads];
}

TEST(Order, ABarrierOfAClusterOrdersItsBlocksInGlobalMemory) {
    Buffer<float> between(4 * kThreads), out(4 * kThreads);
    const auto exchange = [&](auto kernel, unsigned apart) {
        return findings([&] { kernel<<<4, kThreads>>>(between.get(), out.get(), apart); });
    };
    EXPECT_EQ(kinds(exchange(cluster_exchanges_in_global_memory<true>, 1)), "");
    EXPECT_EQ(kinds(exchange(cluster_exchanges_in_global_memory<false>, 1)), "race_between_blocks");
    EXPECT_EQ(kinds(exchange(cluster_exchanges_in_global_memory<true>, 2)), "race_between_blocks")
        << "of another cluster";
}

// Reads of global memory are recorded when their thread synchronises: not before, and not after.
enum class Meeting { kWarp, kBlock, kHalves, kCluster };

template <Meeting kMeeting>
__device__ void meet() {
    const cg::thread_block block = cg::this_thread_block();
    if constexpr (kMeeting == Meeting::kWarp) __syncwarp();
    if constexpr (kMeeting == Meeting::kBlock) __syncthreads();
    if constexpr (kMeeting == Meeting::kHalves) block.barrier_wait(block.barrier_arrive());
    if constexpr (kMeeting == Meeting::kCluster) cg::this_cluster().sync();
}

template <Meeting kMeeting>
__global__ void read_meet_write(float* row) {
    const float value = row[31 - threadIdx.x];
    meet<kMeeting>();
    row[threadIdx.x] = value + 1;
}

template <Meeting kMeeting>
__global__ void write_read_meet(float* row, float* out, unsigned reader) {
    float value = 0;
    row[threadIdx.x] = 1;
    if (threadIdx.x == reader) value = row[31 - threadIdx.x];
    meet<kMeeting>();
    out[threadIdx.x] = value;
}

template <Meeting kMeeting>
void expect_reads_are_noted_in_time() {
    Buffer<float> row(32), out(32);
    EXPECT_FINDS("", [&] { read_meet_write<kMeeting><<<1, 32>>>(row.get()); });
    for (const unsigned reader : {0U, 31U})
        EXPECT_FINDS("race", [&] { write_read_meet<kMeeting><<<1, 32>>>(row.get(), out.get(), reader); });
}

TEST(Order, ReadsOfGlobalMemoryAreNotedWhenThreadsMeet) {
    expect_reads_are_noted_in_time<Meeting::kWarp>();
    expect_reads_are_noted_in_time<Meeting::kBlock>();
    expect_reads_are_noted_in_time<Meeting::kHalves>();
    expect_reads_are_noted_in_time<Meeting::kCluster>();
}

__global__ void read_between_the_halves(float* row, float* out, unsigned reader) {
    const cg::thread_block block = cg::this_thread_block();
    float value = 0;
    row[threadIdx.x] = 1;
    auto token = block.barrier_arrive();
    if (threadIdx.x == reader) value = row[31 - threadIdx.x];
    block.barrier_wait(std::move(token));
    out[threadIdx.x] = value;
}

__global__ void __cluster_dims__(2, 1, 1)
    read_between_the_halves_of_a_cluster(float* row, float* out, unsigned reader) {
    const cg::cluster_group cluster = cg::this_cluster();
    float value = 0;
    row[threadIdx.x + 32 * blockIdx.x] = 1;
    auto token = cluster.barrier_arrive();
    if (threadIdx.x == reader) value = row[threadIdx.x + 32 * (1 - blockIdx.x)];
    cluster.barrier_wait(std::move(token));
    out[threadIdx.x + 32 * blockIdx.x] = value;
}

TEST(Order, ReadsOfGlobalMemoryBetweenTheHalvesOfABarrier) {
    Buffer<float> row(64), out(64);
    for (const unsigned reader : {0U, 31U}) {
        EXPECT_FINDS("race", [&] { read_between_the_halves<<<1, 32>>>(row.get(), out.get(), reader); });
        EXPECT_FINDS("race_between_blocks",
                     [&] { read_between_the_halves_of_a_cluster<<<2, 32>>>(row.get(), out.get(), reader); });
    }
}

__global__ void read_before_the_flag(float* data, int* flag, float* out, bool early) {
    if (blockIdx.x == 0) {
        *data = 1;
        __threadfence();
        atomicExch(flag, 1);
        return;
    }
    if (early) *out = *data;
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    *out += *data;
}

TEST(Order, ReadsOfGlobalMemoryBeforeTheirBlockHearsOfTheWrite) {
    for (const bool early : {false, true}) {
        Buffer<float> data(1), out(1);
        Buffer<int> flag(1);
        EXPECT_FINDS(early ? "race_between_blocks" : "",
                     [&] { read_before_the_flag<<<2, 1>>>(data.get(), flag.get(), out.get(), early); });
    }
}

// --- Asynchronous copies

template <int kPending>
__global__ void wait_for_groups(const float* in, float* out) {
    __shared__ float rows[3][kThreads];
    for (unsigned r = 0; r < 3; ++r) {
        cuda_on_cpu::ptx::cp_async_4(&rows[r][threadIdx.x], &in[threadIdx.x]);
        cuda_on_cpu::ptx::cp_async_commit();
    }
    cuda_on_cpu::ptx::cp_async_wait<kPending>();
    out[threadIdx.x] = rows[1][threadIdx.x];
    cuda_on_cpu::ptx::cp_async_wait<0>();
}

TEST(Copies, AreCompleteGroupByGroup) {
    Buffer<float> in(kThreads), out(kThreads);
    EXPECT_FINDS("", [&] { wait_for_groups<0><<<1, kThreads>>>(in.get(), out.get()); });
    EXPECT_FINDS("", [&] { wait_for_groups<1><<<1, kThreads>>>(in.get(), out.get()); });
    EXPECT_FINDS("missing_wait", [&] { wait_for_groups<2><<<1, kThreads>>>(in.get(), out.get()); });
}

__global__ void copy_and_end(const float* in, float* out) {
    __shared__ float row[kThreads / 2];
    if (threadIdx.x < kThreads / 2) {
        cuda_on_cpu::ptx::cp_async_4(&row[threadIdx.x], &in[threadIdx.x]);
        return;
    }
    __syncthreads();
    out[threadIdx.x] = row[threadIdx.x - kThreads / 2];
}

TEST(Copies, AreCompleteWhenTheirThreadHasEnded) {
    Buffer<float> in(kThreads), out(kThreads);
    EXPECT_FINDS("", [&] { copy_and_end<<<1, kThreads>>>(in.get(), out.get()); });
}

template <bool kWaits>
__global__ void copy_where_another_thread_wrote(const float* in, float* out, float written) {
    __shared__ float row[kThreads];
    row[threadIdx.x] = written;
    if (kWaits) __syncthreads();
    cuda_on_cpu::ptx::cp_async_4(&row[kThreads - 1 - threadIdx.x], &in[threadIdx.x]);
    cuda_on_cpu::ptx::cp_async_commit();
    cuda_on_cpu::ptx::cp_async_wait<0>();
    __syncthreads();
    out[threadIdx.x] = row[threadIdx.x];
}

TEST(Copies, RaceWithWritesOfOtherValues) {
    Buffer<float> in(kThreads), out(kThreads);  // zeros
    EXPECT_FINDS("", [&] { copy_where_another_thread_wrote<true><<<1, kThreads>>>(in.get(), out.get(), 1); });
    EXPECT_FINDS("",
                 [&] { copy_where_another_thread_wrote<false><<<1, kThreads>>>(in.get(), out.get(), 0); });
    EXPECT_NE(kinds(findings(
                  [&] { copy_where_another_thread_wrote<false><<<1, kThreads>>>(in.get(), out.get(), 1); })),
              "");
}

// The store comes first in one order of threads, and the copy in the other.
template <bool kWaits>
__global__ void copy_over_a_word(const float* in, float* out, float written) {
    __shared__ float word;
    if (threadIdx.x == 0) word = written;
    if (kWaits) __syncthreads();
    if (threadIdx.x == kThreads - 1) cuda_on_cpu::ptx::cp_async_4(&word, in);
    cuda_on_cpu::ptx::cp_async_commit();
    cuda_on_cpu::ptx::cp_async_wait<0>();
    __syncthreads();
    out[threadIdx.x] = word;
}

TEST(Copies, RaceWithTheStoreBeforeThem) {
    Buffer<float> in(1), out(kThreads);  // zeros
    EXPECT_FINDS("", [&] { copy_over_a_word<true><<<1, kThreads>>>(in.get(), out.get(), 1); });
    EXPECT_FINDS("", [&] { copy_over_a_word<false><<<1, kThreads>>>(in.get(), out.get(), 0); });
    EXPECT_FINDS("race", [&] { copy_over_a_word<false><<<1, kThreads>>>(in.get(), out.get(), 1); });
}

// --- Barriers

__global__ void barrier_in_the_branch_of_a_loop(float* out) {
    __shared__ float sums[kThreads];
    sums[threadIdx.x] = 1;
    __syncthreads();
    for (unsigned d = kThreads / 2; d > 0; d /= 2) {
        if (threadIdx.x < d) {
            sums[threadIdx.x] += sums[threadIdx.x + d];
            __syncthreads();
        }
    }
    if (threadIdx.x == 0) *out = sums[0];
}

TEST(Barriers, ABarrierInTheBranchOfALoop) {
    Buffer<float> out(1);
    const std::vector<Finding> seen =
        findings([&] { barrier_in_the_branch_of_a_loop<<<1, kThreads>>>(out.get()); });
    EXPECT_NE(kinds(seen).find("divergent_barrier"), std::string::npos) << messages(seen);
}

__global__ void lanes_wait_for_each_other(float* out) {
    __syncwarp(threadIdx.x == 0 ? 0x3 : 0x7);
    *out = 1;
}

TEST(Barriers, MasksThatDisagree) {
    Buffer<float> out(1);
    const std::string kind = kinds(findings([&] { lanes_wait_for_each_other<<<1, 3>>>(out.get()); }));
    EXPECT_TRUE(kind == "deadlock" || kind == "wrong_mask") << kind;
}

// --- Written and unwritten memory

__global__ void copy(const float* in, float* out) {
    out[blockIdx.x * kThreads + threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
}

TEST(Written, ByAnotherKernelAlsoOneThatNobodyWatched) {
    Buffer<float> in(kThreads), between(kThreads, false), out(kThreads);
    copy<<<1, kThreads>>>(in.get(), between.get());
    EXPECT_FINDS("", [&] { copy<<<1, kThreads>>>(between.get(), out.get()); });
    Buffer<float> third(kThreads, false);
    EXPECT_FINDS("", [&] {
        copy<<<1, kThreads>>>(in.get(), third.get());
        copy<<<1, kThreads>>>(third.get(), out.get());
    });
}

TEST(Written, ByBlocksThatAreNotSampled) {
    constexpr unsigned kBlocks = 20;
    Buffer<float> in(kBlocks * kThreads), between(kBlocks * kThreads, false), out(kBlocks * kThreads);
    InspectionOptions few;
    few.blocks_per_launch = 3;
    const auto both = [&] {
        copy<<<kBlocks, kThreads>>>(in.get(), between.get());
        copy<<<kBlocks, kThreads>>>(between.get(), out.get());
    };
    EXPECT_FINDS("", both, few);
}

TEST(Written, ByCopiesAndOnlyWhatTheyWrote) {
    const std::vector<float> ones(kThreads, 1.0f);
    Buffer<float> in(kThreads, false), out(kThreads);
    ASSERT_EQ(cudaMemcpy(in.get(), ones.data(), (kThreads - 1) * sizeof(float), cudaMemcpyHostToDevice),
              cudaSuccess);
    const auto seen = findings([&] { copy<<<1, kThreads>>>(in.get(), out.get()); });
    ASSERT_EQ(kinds(seen), "uninitialised_read") << messages(seen);
    EXPECT_EQ(seen[0].thread[0], kThreads - 1);
    EXPECT_EQ(seen[0].count, 1u);
}

template <bool kWaits>
__global__ void fill_and_copy(const float* in, float* out, unsigned count) {
    __shared__ float zeros[kThreads], row[kThreads];
    if (threadIdx.x == 0) {
        memset(zeros, 0, count * sizeof(float));
        memcpy(row, in, count * sizeof(float));
    }
    if (kWaits) __syncthreads();
    out[threadIdx.x] = zeros[threadIdx.x] + row[threadIdx.x];
}

TEST(Written, ByMemsetAndMemcpyOfAnyLength) {
    Buffer<float> in(kThreads), out(kThreads);
    EXPECT_FINDS("", [&] { fill_and_copy<true><<<1, kThreads>>>(in.get(), out.get(), kThreads); });
    EXPECT_FINDS("race race", [&] { fill_and_copy<false><<<1, kThreads>>>(in.get(), out.get(), kThreads); });
    EXPECT_NE(
        kinds(findings([&] { fill_and_copy<true><<<1, kThreads>>>(in.get(), out.get(), kThreads - 1); })),
        "");
}

TEST(Written, PinnedAndManagedMemoryIsTheHostsToo) {
    float* pinned = nullptr;
    float* managed = nullptr;
    ASSERT_EQ(cudaMallocHost(&pinned, kThreads * sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaMallocManaged(&managed, kThreads * sizeof(float)), cudaSuccess);
    Buffer<float> out(kThreads);
    EXPECT_FINDS("", [&] { copy<<<1, kThreads>>>(pinned, out.get()); });
    EXPECT_FINDS("", [&] { copy<<<1, kThreads>>>(managed, out.get()); });
    cudaFreeHost(pinned);
    cudaFree(managed);
}

// --- Bounds

template <class T>
__global__ void store_at(T* out, int i) {
    out[i] = T{};
}

// --- Programmatic dependent launch: the second grid may begin before the first one has ended

__global__ void first_grid(float* results, const float* input) {
    results[threadIdx.x] = input[threadIdx.x] + 1;
    cudaTriggerProgrammaticLaunchCompletion();
}
enum class Wait {
    kNever,
    kTooLate,
    kByHalf,
    kAfterAStore,
    kAtOnce,
    kByPtx,
    kByOneThread,
    kByALane,
    kBehindOtherReads
};
template <Wait kWait>
__global__ void second_grid(float* results, float* input, const float* weights, float* out) {
    const unsigned i = threadIdx.x;
    float sum = 0;
    if (kWait == Wait::kTooLate) sum = results[i];
    if (kWait == Wait::kAfterAStore) input[i] = 2;
    if (kWait == Wait::kBehindOtherReads) sum = weights[i] + input[i];
    if (kWait == Wait::kByPtx) asm volatile("griddepcontrol.wait;" ::: "memory");
    if (kWait == Wait::kByALane && i % 32 == 0) cudaGridDependencySynchronize();
    __syncwarp();
    if (kWait == Wait::kByOneThread && i == 0) cudaGridDependencySynchronize();
    if (kWait == Wait::kByOneThread) __syncthreads();
    if (kWait >= Wait::kBehindOtherReads || kWait == Wait::kAtOnce || kWait == Wait::kTooLate ||
        kWait == Wait::kAfterAStore || (kWait == Wait::kByHalf && i < kThreads / 2))
        cudaGridDependencySynchronize();
    out[i] = sum + results[i];
}
enum class Between { kNothing, kAWait, kAMemset };
template <Wait kWait>
std::string findings_of_two_grids(Between between = Between::kNothing, bool programmatic = true) {
    Buffer<float> results(kThreads), input(kThreads), weights(kThreads), out(kThreads);
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const auto seen = findings([&] {
        first_grid<<<1, kThreads, 0, stream>>>(results.get(), input.get());
        if (between == Between::kAWait) cudaStreamSynchronize(stream);
        if (between == Between::kAMemset) cudaMemsetAsync(weights.get(), 0, sizeof(float), stream);
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = programmatic ? 1 : 0;
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(1);
        config.blockDim = dim3(kThreads);
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = 1;
        EXPECT_EQ(cudaLaunchKernelEx(&config, second_grid<kWait>, results.get(), input.get(),
                                     static_cast<const float*>(weights.get()), out.get()),
                  cudaSuccess);
    });
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    for (const Finding& finding : seen)
        EXPECT_TRUE(finding.other && finding.other->line > 0 && finding.source.line > 0) << messages(seen);
    return kinds(seen);
}

TEST(EarlyLaunch, AGridWaitsBeforeItAccessesWhatThePreviousOneAccesses) {
    EXPECT_EQ(findings_of_two_grids<Wait::kNever>(), "race_between_launches");
    EXPECT_EQ(findings_of_two_grids<Wait::kTooLate>(), "race_between_launches");
    EXPECT_EQ(findings_of_two_grids<Wait::kByHalf>(), "race_between_launches");
    EXPECT_EQ(findings_of_two_grids<Wait::kAfterAStore>(), "race_between_launches");
    EXPECT_EQ(findings_of_two_grids<Wait::kAtOnce>(), "");
    EXPECT_EQ(findings_of_two_grids<Wait::kByPtx>(), "");
    EXPECT_EQ(findings_of_two_grids<Wait::kByOneThread>(), "");
    EXPECT_EQ(findings_of_two_grids<Wait::kByALane>(), "");
    EXPECT_EQ(findings_of_two_grids<Wait::kBehindOtherReads>(), "");
    EXPECT_EQ(findings_of_two_grids<Wait::kNever>(Between::kAWait), "");
    EXPECT_EQ(findings_of_two_grids<Wait::kNever>(Between::kAMemset), "");
    EXPECT_EQ(findings_of_two_grids<Wait::kNever>(Between::kNothing, false), "");
}

TEST(Bounds, OfAllocations) {
    Buffer<float> out(9);  // 36 bytes: 12 more up to the guard page
    EXPECT_FINDS("", [&] { store_at<<<1, 1>>>(out.get(), 8); });
    const auto behind = findings([&] { store_at<<<1, 1>>>(out.get(), 9); });
    ASSERT_EQ(kinds(behind), "out_of_bounds") << messages(behind);
    EXPECT_NE(behind[0].message.find("byte 36 of the allocation of 36 bytes"), std::string::npos)
        << behind[0].message;
    EXPECT_FINDS("out_of_bounds", [&] { store_at<<<1, 1>>>(out.get(), -1); });
    EXPECT_FINDS("out_of_bounds", [&] { store_at<<<1, 1>>>(out.get(), 100); });
}

__global__ void sizes_and_pointers_of_arrays(int* out) {
    __shared__ int one;
    __shared__ float tile[4][5], other[3];
    if (threadIdx.x == 0) {
        one = static_cast<int>(sizeof(tile) + sizeof(other));
        float(*row)[5] = tile;
        for (auto& line : tile)
            line[0] = 1;
        other[2] = (*(row + 3))[0];
        *out = one + static_cast<int>(other[2]);
    }
}

TEST(Bounds, ArraysWithGapsAroundThemAreArrays) {
    Buffer<int> out(1);
    EXPECT_FINDS("", [&] { sizes_and_pointers_of_arrays<<<1, 32>>>(out.get()); });
    int result = 0;
    ASSERT_EQ(cudaMemcpy(&result, out.get(), sizeof result, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(result, 4 * 5 * 4 + 3 * 4 + 1);
}

// `__device__` and `__constant__` variables in all the places where the compiler puts them.
__device__ int first_table[16];
__device__ int second_table[64];
__constant__ float weights[9];
__device__ float with_values[4] = {1, 2, 3, 4};
__device__ const int squares[5] = {0, 1, 4, 9, 16};
__constant__ const short steps[3] = {1, 2, 3};
__device__ int one_of_two[6], other_of_two[2][3];
__device__ const int* rows[4];
__device__ int zeros[4] = {0};
struct Settings {
    int limit;
    float factors[3];
};
__constant__ Settings settings;
__device__ __managed__ int counts[4];
__device__ float4 quads[3];
namespace inner {
static __device__ unsigned char bytes[7];
}  // namespace inner

// The compiler's sanitizer leaves out loads of const variables, but not those through a pointer.
template <class T>
__device__ __noinline__ T element_of(const T* values, int i) {
    return values[i];
}

template <class Read>
__global__ void read_variable(float* out, int i, Read read) {
    out[0] = static_cast<float>(read(i));
}

template <class Read>
void expect_bounds(int size, const std::string& message, Read read) {
    Buffer<float> out(1);
    EXPECT_FINDS("", [&] { read_variable<<<1, 1>>>(out.get(), 0, read); });
    EXPECT_FINDS("", [&] { read_variable<<<1, 1>>>(out.get(), size - 1, read); });
    const auto behind = findings([&] { read_variable<<<1, 1>>>(out.get(), size, read); });
    ASSERT_EQ(kinds(behind), "out_of_bounds") << message;
    EXPECT_NE(behind[0].message.find(message), std::string::npos) << behind[0].message;
    EXPECT_GT(behind[0].source.line, 0);
    EXPECT_FINDS("out_of_bounds", [&] { read_variable<<<1, 1>>>(out.get(), size + 9, read); });
    EXPECT_FINDS("out_of_bounds", [&] { read_variable<<<1, 1>>>(out.get(), -4, read); });
}

TEST(Bounds, OfDeviceVariables) {
    const auto index = [](const std::string& name, int size) {
        return "index " + std::to_string(size) + " of '" + name + "', which has " + std::to_string(size) +
               " elements";
    };
    expect_bounds(16, index("first_table", 16), [] __device__(int i) { return first_table[i]; });
    expect_bounds(64, index("second_table", 64), [] __device__(int i) { return second_table[i]; });
    expect_bounds(9, index("weights", 9), [] __device__(int i) { return weights[i]; });
    expect_bounds(4, index("with_values", 4), [] __device__(int i) { return with_values[i]; });
    expect_bounds(5, index("squares", 5), [] __device__(int i) { return element_of(squares, i); });
    expect_bounds(3, index("steps", 3), [] __device__(int i) { return element_of(steps, i); });
    expect_bounds(6, index("one_of_two", 6), [] __device__(int i) { return one_of_two[i]; });
    expect_bounds(6, index("other_of_two", 6), [] __device__(int i) { return other_of_two[i / 3][i % 3]; });
    expect_bounds(4, index("rows", 4), [] __device__(int i) { return rows[i] == nullptr; });
    expect_bounds(4, index("zeros", 4), [] __device__(int i) { return zeros[i]; });
    expect_bounds(4, index("counts", 4), [] __device__(int i) { return counts[i]; });
    expect_bounds(3, index("quads", 3), [] __device__(int i) { return quads[i].x; });
    expect_bounds(7, index("bytes", 7), [] __device__(int i) { return inner::bytes[i]; });
    expect_bounds(3, "byte 16 of 'settings', which has 16 bytes",
                  [] __device__(int i) { return settings.factors[i]; });
}

__global__ void write_variable(int i) {
    first_table[i] = 1;
}
__global__ void add_to_variable(int i) {
    atomicAdd(&first_table[i], 1);
}
// A vector that begins in the variable and ends behind it.
__global__ void write_vector(int i) {
    reinterpret_cast<int4*>(with_values)[0] = make_int4(0, 0, 0, 0);
    *reinterpret_cast<int2*>(first_table + i) = make_int2(1, 2);
}

TEST(Bounds, OfWritesToDeviceVariables) {
    EXPECT_FINDS("", [&] { write_variable<<<1, 1>>>(15); });
    EXPECT_FINDS("", [&] { add_to_variable<<<1, 1>>>(15); });
    EXPECT_FINDS("", [&] { write_vector<<<1, 1>>>(14); });
    const auto behind = findings([&] { write_variable<<<1, 1>>>(17); });
    ASSERT_EQ(kinds(behind), "out_of_bounds");
    EXPECT_EQ(behind[0].message, "write of 4 bytes at index 17 of 'first_table', which has 16 elements");
    const auto before = findings([&] { write_variable<<<1, 1>>>(-1); });
    ASSERT_EQ(kinds(before), "out_of_bounds");
    EXPECT_EQ(before[0].message, "write of 4 bytes at index -1 of 'first_table', which has 16 elements");
    EXPECT_FINDS("out_of_bounds", [&] { add_to_variable<<<1, 1>>>(16); });
    EXPECT_FINDS("out_of_bounds", [&] { write_vector<<<1, 1>>>(16); });
    EXPECT_FINDS("misaligned", [&] { write_vector<<<1, 1>>>(13); });
}

// --- Pointers of the host in device memory

__global__ void add_one_to_rows(float* const* matrix) {
    matrix[blockIdx.x][threadIdx.x] += 1;
}
constexpr int kLineOfTheRows = __LINE__ - 2;

// One array of pointers on the device, to these rows.
template <class T>
class Rows {
  public:
    explicit Rows(const std::vector<T*>& matrix) : rows_(matrix.size()) {
        cudaMemcpy(rows_.get(), matrix.data(), matrix.size() * sizeof(T*), cudaMemcpyHostToDevice);
    }
    T* const* get() const { return rows_.get(); }

  private:
    Buffer<T*> rows_;
};

TEST(HostMemory, RowsOfTheHostBehindPointersOnTheDevice) {
    std::vector<float> first(8), second(1 << 20);  // small and large pieces of the heap differ
    float on_stack[8] = {};
    for (float* const row : {first.data(), second.data(), on_stack}) {
        Buffer<float> right(8);
        const Rows<float> matrix({right.get(), row});
        const auto seen = findings([&] { add_one_to_rows<<<2, 8>>>(matrix.get()); });
        ASSERT_EQ(kinds(seen), "host_memory") << messages(seen);
        EXPECT_EQ(seen[0].source.line, kLineOfTheRows);
        EXPECT_EQ(seen[0].block[0], 1u);
        char address[32];
        std::snprintf(address, sizeof address, "%p", static_cast<void*>(row + seen[0].thread[0]));
        EXPECT_NE(seen[0].message.find(std::string("read of 4 bytes at ") + address), std::string::npos)
            << seen[0].message;
        EXPECT_EQ(row[0], 0);
    }
}

struct Node {
    int value;
    Node* next;
};
__global__ void sum_of_list(const Node* first, int* sum) {
    for (const Node* node = first; node != nullptr; node = node->next)
        *sum += node->value;
}

TEST(HostMemory, AListOfWhichOnlyTheFirstNodeWasCopied) {
    Node last{2, nullptr};
    const auto second = std::make_unique<Node>(Node{1, &last});
    const Node first{0, second.get()};
    Buffer<Node> node(1);
    Buffer<int> sum(1);
    cudaMemcpy(node.get(), &first, sizeof first, cudaMemcpyHostToDevice);
    EXPECT_FINDS("host_memory", [&] { sum_of_list<<<1, 1>>>(node.get(), sum.get()); });
}

struct Image {
    int width, height;
    unsigned* pixels;
};
__global__ void set_pixels(const Image* image) {
    image->pixels[threadIdx.x] = 0;
}
__global__ void count_pixels(const Image* image) {
    atomicAdd(&image->pixels[0], 1u);
}
__global__ void copy_pixels(const Image* image, unsigned* out) {
    memcpy(out, image->pixels, image->width * sizeof *out);
}

TEST(HostMemory, AStructureWithAPointerOfTheHost) {
    std::vector<unsigned> pixels(32);
    const Image image{32, 1, pixels.data()};
    Buffer<Image> copy(1);
    Buffer<unsigned> out(32);
    cudaMemcpy(copy.get(), &image, sizeof image, cudaMemcpyHostToDevice);
    EXPECT_FINDS("host_memory", [&] { set_pixels<<<1, 32>>>(copy.get()); });
    EXPECT_FINDS("host_memory", [&] { count_pixels<<<1, 32>>>(copy.get()); });
    EXPECT_FINDS("host_memory", [&] { copy_pixels<<<1, 1>>>(copy.get(), out.get()); });
    cuda_on_cpu::begin_inspection({});
    set_pixels<<<1, 32>>>(copy.get());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    cuda_on_cpu::end_inspection();
    cudaDeviceReset();
}

TEST(HostMemory, NotWhatTheDeviceCanReach) {
    std::vector<float> registered(8);
    ASSERT_EQ(cudaHostRegister(registered.data(), 32, 0), cudaSuccess);
    float *pinned = nullptr, *managed = nullptr;
    cudaMallocHost(&pinned, 32);
    cudaMallocManaged(&managed, 32);
    std::fill_n(pinned, 8, 0.0F);
    std::fill_n(managed, 8, 0.0F);
    const Rows<float> matrix({registered.data(), pinned, managed});
    EXPECT_FINDS("", [&] { add_one_to_rows<<<3, 8>>>(matrix.get()); });
    EXPECT_EQ(registered[7] + pinned[7] + managed[7], 3);
    cudaHostUnregister(registered.data());
    cudaFreeHost(pinned);
    cudaFree(managed);
}

struct Tree {
    int key;
    Tree* left = nullptr;
    explicit __device__ Tree(int k) : key(k) {}
    __device__ ~Tree() {
        if (left != nullptr) delete left;
        key = -1;
    }
};
__device__ Tree* trees[2];

__global__ void grow_trees() {
    Tree* const tree = new Tree(1);
    tree->left = new Tree(2);
    auto* const numbers = static_cast<int*>(malloc(100 * sizeof(int)));
    numbers[99] = tree->left->key;
    tree->key += numbers[99];
    free(numbers);
    trees[threadIdx.x] = tree;
}
__global__ void cut_trees(int* out) {
    out[threadIdx.x] = trees[threadIdx.x]->key;
    delete trees[threadIdx.x];
}

TEST(HostMemory, NotTheHeapOfKernels) {
    Buffer<int> out(2);
    EXPECT_FINDS("", [&] {
        grow_trees<<<1, 2>>>();
        cut_trees<<<1, 2>>>(out.get());
    });
}

__constant__ float kTable[] = {1, 2, 3, 4};
struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    explicit __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Large {
    int values[200];
};
__device__ __noinline__ float last_of(const float* values, int count) {
    return values[count - 1];
}

__global__ void many_kinds_of_memory(Large large, const __grid_constant__ Large constant, int i, float* out) {
    static const float kOwn[] = {5, 6, 7, 8};
    float local[64];
    for (int k = 0; k < 64; ++k)
        local[k] = kTable[(k + i) % 4] + kOwn[k % 4];
    large.values[i] += 1;
    const Square square(local[i]);
    const Shape& shape = square;
    const float from_next_lane = __shfl_down_sync(~0U, shape.area(), 1);
    const unsigned votes = __ballot_sync(~0U, from_next_lane > 0) + __reduce_add_sync(~0U, threadIdx.x);
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const float sum = cg::reduce(warp, from_next_lane, cg::plus<float>());
    out[threadIdx.x] = last_of(local, 64) + large.values[i] + constant.values[i] + sum + votes;
    if (threadIdx.x == 40) printf("%s%g", "", out[threadIdx.x]);
}

TEST(HostMemory, NotWhatAKernelHasOfItself) {
    Buffer<float> out(32);
    EXPECT_FINDS("", [&] { many_kinds_of_memory<<<1, 32>>>({}, {}, 3, out.get()); });
}

__global__ void clear(float* out, int i) {
    out[i] = 0;
}

// A pointer in shared memory to a variable of the thread.
__global__ void sum_by_pointer(float* out) {
    __shared__ float* variables[32];
    float own = threadIdx.x;
    variables[threadIdx.x] = &own;
    __syncwarp();
    out[threadIdx.x] = *variables[threadIdx.x] + own;
    __syncwarp();
}

struct Holder {
    std::shared_ptr<int> owner;
    float* values;
};
__global__ void use_holder(Holder holder, float* out) {
    out[threadIdx.x] = holder.values[threadIdx.x];
}

TEST(HostMemory, NotMembersThatTheHostUses) {
    Buffer<float> values(32), out(32);
    cudaMemset(values.get(), 0, 128);
    const Holder holder{std::make_shared<int>(1), values.get()};
    EXPECT_FINDS("", [&] {
        use_holder<<<1, 32>>>(holder, out.get());
        sum_by_pointer<<<1, 32>>>(out.get());
    });
}

TEST(HostMemory, NotWhatCallbacksOfTheHostDo) {
    std::vector<int> done(1000);
    Buffer<float> out(32);
    EXPECT_FINDS("", [&] {
        clear<<<1, 1>>>(out.get(), 0);
        cudaLaunchHostFunc(
            nullptr,
            [](void* all) {
                for (int& one : *static_cast<std::vector<int>*>(all))
                    one += 1;
            },
            &done);
        clear<<<1, 1>>>(out.get(), 1);
        cudaDeviceSynchronize();
    });
    EXPECT_EQ(done[999], 1);
}

__global__ void add_to_mapped(int* mapped, const int* sum) {
    atomicAdd(mapped, *sum);
}

TEST(HostMemory, NotMappedMemory) {
    int *pinned = nullptr, *mapped = nullptr;
    ASSERT_EQ(cudaHostAlloc(&pinned, 8, cudaHostAllocMapped), cudaSuccess);
    ASSERT_EQ(cudaHostGetDevicePointer(&mapped, pinned, 0), cudaSuccess);
    pinned[0] = 1;
    pinned[1] = 2;
    EXPECT_FINDS("", [&] { add_to_mapped<<<1, 1>>>(mapped, mapped + 1); });
    cudaFreeHost(pinned);
}

__global__ void call_function(const float* a, const float* b, float* out) {
    const unsigned i = threadIdx.x;
    const nvstd::function<float()> sum = [=] { return a[i] + b[i]; };  // too large for the object
    nvstd::function<void(float)> store;
    store = [=](float value) { out[i] = value + a[0] + b[0]; };
    store(sum());
}

TEST(HostMemory, NotWhatAFunctionObjectHolds) {
    float* all = nullptr;
    cudaMallocManaged(&all, 96 * sizeof *all);
    std::fill_n(all, 96, 0.0F);
    EXPECT_FINDS("", [&] { call_function<<<1, 32>>>(all, all + 32, all + 64); });
    cudaDeviceReset();  // from then on all of the heap was the kernels', too
}

__global__ void sum_of_wide_tile(unsigned* out) {
    __shared__ cg::block_tile_memory<64> memory;
    const auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
    out[threadIdx.x] = tile.shfl(threadIdx.x, 40) + tile.any(threadIdx.x == 3);
}

TEST(HostMemory, NotWhatThreadsOfAWideTileExchange) {
    Buffer<unsigned> out(64);
    EXPECT_FINDS("", [&] { sum_of_wide_tile<<<1, 64>>>(out.get()); });
}

__global__ void parent(float* out) {
    clear<<<1, 1>>>(out, threadIdx.x);
}

TEST(HostMemory, NotTheArgumentsOfAChildGrid) {
    Buffer<float> out(32);
    EXPECT_FINDS("", [&] { parent<<<1, 32>>>(out.get()); });
}

// --- Misaligned words and structures

struct Pair {
    float x, y;
};
struct Pixel {
    unsigned char red, green, blue, alpha;
};
struct __attribute__((packed)) Record {
    char kind;
    int value;
    double weight;
};
struct __align__(16) Quad {
    int values[4];
};
__device__ char some_bytes[64];

// The compiler knows these addresses, and that they are misaligned.
__global__ void word_in_shared(unsigned* out) {
    __shared__ char tile[64];
    for (int i = 0; i < 64; ++i)
        tile[i] = 0;
    out[0] = *(unsigned*)(tile + 1);
}
__global__ void word_in_variable(short* out) {
    for (char& byte : some_bytes)
        byte = 0;
    const auto* const words = reinterpret_cast<const short*>(some_bytes + 1);
    out[0] = words[4];
}
__global__ void halves_of_vectors(float4* vectors) {
    *(float2*)&vectors[threadIdx.x].y = float2{1, 2};
}
__global__ void reference_to_vector(float4* vectors, float2* out) {
    out[0] = reinterpret_cast<float2&>(vectors[0].y);
}

TEST(Alignment, OfWordsWhoseAddressTheCompilerKnows) {
    Buffer<float4> vectors(4);
    cudaMemset(vectors.get(), 0, 64);
    const auto at = [&](auto* null) { return reinterpret_cast<decltype(null)>(vectors.get()); };
    EXPECT_FINDS("misaligned", [&] { word_in_shared<<<1, 1>>>(at((unsigned*)nullptr)); });
    EXPECT_FINDS("misaligned", [&] { word_in_variable<<<1, 1>>>(at((short*)nullptr)); });
    EXPECT_FINDS("misaligned", [&] { halves_of_vectors<<<1, 4>>>(vectors.get()); });
    EXPECT_FINDS("misaligned", [&] { reference_to_vector<<<1, 1>>>(vectors.get(), at((float2*)nullptr)); });
}

template <class T>
__global__ void first_of_rows(const char* image, int pitch, T* out) {
    const T* const row = (const T*)(image + threadIdx.x * pitch);
    out[threadIdx.x] = row[0];
}
__global__ void store_in_rows(void* image, int offset, uint3 value) {
    char* const row = static_cast<char*>(image) + offset;
    *static_cast<uint3*>(static_cast<void*>(row)) = value;
}

TEST(Alignment, OfStructures) {
    Buffer<char> image(64);
    Buffer<Quad> out(8);
    cudaMemset(image.get(), 0, 64);
    const auto finds = [&](auto* to, int pitch, const char* expected) {
        using T = std::remove_pointer_t<decltype(to)>;
        EXPECT_FINDS(expected, [&] { first_of_rows<<<1, 2>>>(image.get(), pitch, (T*)out.get()); });
    };
    finds((uint3*)nullptr, 13, "misaligned");
    finds((uint3*)nullptr, 20, "");
    finds((Pair*)nullptr, 10, "misaligned");
    finds((Pair*)nullptr, 12, "");
    finds((short3*)nullptr, 7, "misaligned");
    finds((short3*)nullptr, 6, "");
    finds((Quad*)nullptr, 24, "misaligned");
    finds((Quad*)nullptr, 32, "");
    finds((Pixel*)nullptr, 5, "");
    finds((uchar3*)nullptr, 3, "");
    finds((Record*)nullptr, 13, "");
    EXPECT_FINDS("misaligned", [&] { store_in_rows<<<1, 1>>>(image.get(), 2, {1, 2, 3}); });
    EXPECT_FINDS("", [&] { store_in_rows<<<1, 1>>>(image.get(), 4, {1, 2, 3}); });
}

__global__ void any_address(char* bytes, int offset, float* out) {
    __shared__ __align__(16) char tile[64];
    for (int i = threadIdx.x; i < 64; i += blockDim.x)
        tile[i] = bytes[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        int word;
        double wide;
        uint3 three;
        memcpy(&word, tile + 1, sizeof word);
        memcpy(&wide, bytes + offset, sizeof wide);
        std::memcpy(&three, (const uint3*)(bytes + offset), sizeof three);
        auto* const record = (Record*)(bytes + 3);
        record->value = 4;
        record->weight += 1;
        const Record copy = reinterpret_cast<Record*>(tile + 1)[1];
        auto* const pixels = (Pixel*)(tile + 1);
        const Pixel pixel = pixels[2];
        const char part = *(char*)((uint3*)(tile + 1));
        out[0] = static_cast<float>(word + wide + three.x + copy.value + pixel.red + part);
    }
}
__global__ void copy_words(const float* from, float* out) {
    __shared__ float tile[64];
    __pipeline_memcpy_async(tile + 1 + threadIdx.x, from + 3 + threadIdx.x, 4);
    __pipeline_memcpy_async((float2*)(tile + 40), (float2*)(from + 2), 8);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    const Quad quad = *(const Quad*)(tile + 4);
    out[threadIdx.x] = tile[threadIdx.x + 1] + quad.values[3];
}

TEST(Alignment, IsNotNeededOfBytes) {
    Buffer<char> bytes(64);
    Buffer<float> words(64), out(32);
    cudaMemset(bytes.get(), 0, 64);
    cudaMemset(words.get(), 0, 256);
    EXPECT_FINDS("", [&] { any_address<<<1, 32>>>(bytes.get(), 5, out.get()); });
    EXPECT_FINDS("", [&] { copy_words<<<1, 32>>>(words.get(), out.get()); });
}

}  // namespace

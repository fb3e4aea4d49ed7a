// What orders accesses by CUDA's memory model: fences, scopes, acquire and release, volatile. Each
// kernel with a race has a neighbour without one.
#include <gtest/gtest.h>

#include <cstring>
#include <cuda/atomic>
#include <functional>
#include <string>
#include <vector>

#include "cuda_on_cpu/inspection.h"

namespace {

using cuda_on_cpu::Finding;
using cuda_on_cpu::InspectionOptions;

// Words of device memory, cleared. Kernels use words that are kApart from each other.
constexpr int kApart = 64;
class Words {
  public:
    Words() {
        EXPECT_EQ(cudaMalloc(&data_, kBytes), cudaSuccess);
        EXPECT_EQ(cudaMemset(data_, 0, kBytes), cudaSuccess);
    }
    ~Words() { cudaFree(data_); }
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;
    int* operator()(int i) const { return data_ + kApart * i; }

  private:
    static constexpr std::size_t kBytes = 64 * kApart * sizeof(int);
    int* data_ = nullptr;
};

std::vector<Finding> findings(const std::function<void(const Words&)>& launch,
                              const InspectionOptions& options = {}) {
    const Words words;
    cuda_on_cpu::begin_inspection(options);
    launch(words);
    if (cudaDeviceSynchronize() != cudaSuccess) cudaDeviceReset();
    std::vector<Finding> all;
    for (const auto& kernel : cuda_on_cpu::end_inspection().kernels)
        all.insert(all.end(), kernel.findings.begin(), kernel.findings.end());
    return all;
}

std::string kinds(const std::vector<Finding>& all) {
    std::string text;
    for (const Finding& finding : all) {
        if (text.find(finding.kind + ";") == std::string::npos) text += finding.kind + ";";
    }
    return text;
}

std::string messages(const std::vector<Finding>& all) {
    std::string text;
    for (const Finding& finding : all)
        text += finding.kind + ": " + finding.message + "\n";
    return text;
}

// The different kinds that are found, each with a semicolon.
#define EXPECT_KINDS(expected, ...)                                   \
    do {                                                              \
        const auto of_launch = findings(__VA_ARGS__);                 \
        EXPECT_EQ(kinds(of_launch), expected) << messages(of_launch); \
    } while (false)

// ---- A thread's own release orders only what comes before it in that thread -----------------------

template <bool kBarrier>
__global__ void one_side(int* data, int* ticket) {
    if (threadIdx.x == 0) {
        data[0] = 1;
        __threadfence();
        atomicAdd(ticket, 1);
    }
    if (kBarrier) __syncthreads();
    if (threadIdx.x == 32) data[0] = 2;
}

template <bool kOneThread>
__global__ void partial_sums(int* partial, int* done) {
    if (!kOneThread || threadIdx.x == 0) {
        partial[blockIdx.x] = static_cast<int>(threadIdx.x) + 1;
        __threadfence();
        atomicAdd(done, 1);
    }
}

template <bool kOneLock>
__global__ void locked(int* locks, int* data) {
    if (threadIdx.x % 32 != 0) return;
    int* lock = &locks[kOneLock ? 0 : threadIdx.x / 32];
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    data[0] += 1;
    __threadfence();
    atomicExch(lock, 0);
}

TEST(OwnRelease, OrdersNoOtherThread) {
    EXPECT_KINDS("race;", [](const Words& at) { one_side<false><<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { one_side<true><<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("race;", [](const Words& at) { partial_sums<false><<<1, 256>>>(at(0), at(1)); });
    EXPECT_KINDS("race;", [](const Words& at) { partial_sums<false><<<4, 256>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { partial_sums<true><<<4, 256>>>(at(0), at(1)); });
    EXPECT_KINDS("race;", [](const Words& at) { locked<false><<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { locked<true><<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { locked<true><<<4, 64>>>(at(0), at(1)); });
}

// Lanes write, lane 0 publishes for its warp, another block reads.
template <bool kSyncwarp>
__global__ void lane_0_publishes(int* data, int* flag, int* out) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 1;
        if (kSyncwarp) __syncwarp();
        if (threadIdx.x == 0) {
            __threadfence();
            ready.store(1, cuda::memory_order_relaxed);
        }
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {
        }
        out[threadIdx.x] = data[31 - threadIdx.x];
    }
}

TEST(OwnRelease, OrdersNoOtherLane) {
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { lane_0_publishes<false><<<2, 32>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { lane_0_publishes<true><<<2, 32>>>(at(0), at(1), at(2)); });
}

// The thread that publishes has no fence of its own.
template <bool kOwn>
__global__ void another_thread_fences(int* data, int* flag, int* out) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 32) __threadfence();
        if (threadIdx.x == 0) {
            data[0] = 1;
            if (kOwn) __threadfence();
            atomicExch(flag, 1);
        }
    } else if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
        out[0] = data[0];
    }
}

TEST(OwnRelease, NeedsAFenceOfItsOwn) {
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { another_thread_fences<false><<<2, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { another_thread_fences<true><<<2, 64>>>(at(0), at(1), at(2)); });
}

// ---- The side that acquires ----------------------------------------------------------------------

enum class Fence { none, block, device };

template <Fence kFence>
__device__ void fence() {
    if (kFence == Fence::block) __threadfence_block();
    if (kFence == Fence::device) __threadfence();
}

template <Fence kAcquire, Fence kRelease>
__global__ void count(int* lock, int* data) {
    if (threadIdx.x % 32 != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    fence<kAcquire>();
    data[0] += 1;
    fence<kRelease>();
    atomicExch(lock, 0);
}

TEST(Acquire, ALockNeedsAFenceBehindIt) {
    using enum Fence;
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { count<none, device><<<4, 1>>>(at(0), at(1)); });
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { count<block, device><<<4, 1>>>(at(0), at(1)); });
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { count<device, block><<<4, 1>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { count<device, device><<<4, 1>>>(at(0), at(1)); });
    // Within a block.
    EXPECT_KINDS("race;", [](const Words& at) { count<none, device><<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("race;", [](const Words& at) { count<block, none><<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { count<block, block><<<1, 64>>>(at(0), at(1)); });
}

template <cuda::memory_order kStore, cuda::memory_order kLoad>
__global__ void message(int* data, int* flag, int* out) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        data[0] = 1;
        ready.store(1, kStore);
    } else {
        while (ready.load(kLoad) == 0) {
        }
        out[0] = data[0];
    }
}

TEST(Acquire, BothMemoryOrdersAreNeeded) {
    using namespace cuda;
    EXPECT_KINDS("", [](const Words& at) {
        message<memory_order_release, memory_order_acquire><<<2, 1>>>(at(0), at(1), at(2));
    });
    EXPECT_KINDS("race_between_blocks;", [](const Words& at) {
        message<memory_order_release, memory_order_relaxed><<<2, 1>>>(at(0), at(1), at(2));
    });
    EXPECT_KINDS("race_between_blocks;", [](const Words& at) {
        message<memory_order_relaxed, memory_order_acquire><<<2, 1>>>(at(0), at(1), at(2));
    });
}

// Thread 0 waits for another block; the others of its block need the barrier.
template <bool kBarrier>
__global__ void consume(int* flag, int* data, int* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(flag, 1);
        }
    } else {
        if (threadIdx.x == 0) {
            while (atomicAdd(flag, 0) == 0) {
            }
            __threadfence();
        }
        if (kBarrier) __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}

// Lane 0 waits for its warp.
template <bool kSyncwarp>
__global__ void consume_by_warps(int* flag, int* data, int* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(flag, 1);
        }
        return;
    }
    if (threadIdx.x % 32 == 0) {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
    }
    if (kSyncwarp) __syncwarp();
    out[threadIdx.x] = data[threadIdx.x];
}

TEST(Acquire, OneThreadDoesNotAcquireForItsBlock) {
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { consume<false><<<2, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { consume<true><<<2, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { consume_by_warps<false><<<2, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { consume_by_warps<true><<<2, 64>>>(at(0), at(1), at(2)); });
}

// ---- Scopes --------------------------------------------------------------------------------------

template <bool kBlock>
__global__ void sum(int* to) {
    if (kBlock)
        atomicAdd_block(to, 1);
    else
        atomicAdd_system(to, 1);
}
template <class T>
__global__ void largest(T* to) {
    atomicMax_block(to, static_cast<T>(blockIdx.x));
}
template <cuda::thread_scope kScope>
__global__ void sum_by_reference(int* to) {
    cuda::atomic_ref<int, kScope>(*to).fetch_add(1, cuda::memory_order_relaxed);
}
__global__ void exchange_in_ptx(int* to) {
    int old;
    if (blockIdx.x == 0) {
        asm volatile("atom.relaxed.cta.global.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(to), "r"(1));
    } else {
        asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(to), "r"(1));
    }
}
__global__ void add_by_builtin(int* to, bool block) {
    if (block)
        __nv_atomic_fetch_add(to, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);
    else
        __nv_atomic_fetch_add(to, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

TEST(Scope, AnAtomicOfABlockIsNoneBetweenBlocks) {
    EXPECT_KINDS("race_between_blocks;", [](const Words& at) { sum<true><<<2, 1>>>(at(0)); });
    EXPECT_KINDS("", [](const Words& at) { sum<true><<<1, 64>>>(at(0)); });
    EXPECT_KINDS("", [](const Words& at) { sum<false><<<2, 64>>>(at(0)); });
    EXPECT_KINDS("race_between_blocks;", [](const Words& at) { largest<int><<<3, 1>>>(at(0)); });
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { sum_by_reference<cuda::thread_scope_block><<<2, 1>>>(at(0)); });
    EXPECT_KINDS("", [](const Words& at) { sum_by_reference<cuda::thread_scope_block><<<1, 64>>>(at(0)); });
    EXPECT_KINDS("", [](const Words& at) { sum_by_reference<cuda::thread_scope_device><<<2, 64>>>(at(0)); });
    EXPECT_KINDS("race_between_blocks;", [](const Words& at) { exchange_in_ptx<<<2, 1>>>(at(0)); });
    EXPECT_KINDS("race_between_blocks;", [](const Words& at) { add_by_builtin<<<2, 1>>>(at(0), true); });
    EXPECT_KINDS("", [](const Words& at) { add_by_builtin<<<2, 1>>>(at(0), false); });
    const auto seen = findings([](const Words& at) { sum<true><<<2, 1>>>(at(0)); });
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_NE(seen[0].message.find("only among the threads of its block"), std::string::npos)
        << seen[0].message;
}

template <cuda::thread_scope kScope>
__global__ void publish(int* data, int* flag, int* out) {
    const cuda::atomic_ref<int, kScope> ready(*flag);
    if ((blockIdx.x * blockDim.x + threadIdx.x) == 0) {
        data[0] = 1;
        ready.store(1, cuda::memory_order_release);
    } else if (threadIdx.x == blockDim.x - 1) {
        while (ready.load(cuda::memory_order_acquire) == 0) {
        }
        out[0] = data[0];
    }
}

__global__ void publish_in_ptx(int* data, int* flag, int* out, bool block) {
    int set = 0;
    if (blockIdx.x * blockDim.x + threadIdx.x == 0) {
        data[0] = 1;
        if (block)
            asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
        else
            asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
    } else if (threadIdx.x == blockDim.x - 1) {
        while (set == 0) {
            if (block)
                asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(set) : "l"(flag) : "memory");
            else
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(set) : "l"(flag) : "memory");
        }
        out[0] = data[0];
    }
}

TEST(Scope, ReleaseAndAcquireReachAsFarAsTheirScope) {
    using namespace cuda;
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { publish<thread_scope_block><<<2, 1>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { publish<thread_scope_block><<<1, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { publish<thread_scope_device><<<2, 1>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { publish<thread_scope_system><<<2, 1>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { publish_in_ptx<<<2, 1>>>(at(0), at(1), at(2), true); });
    EXPECT_KINDS("", [](const Words& at) { publish_in_ptx<<<1, 64>>>(at(0), at(1), at(2), true); });
    EXPECT_KINDS("", [](const Words& at) { publish_in_ptx<<<2, 1>>>(at(0), at(1), at(2), false); });
}

// ---- Fences of other threads, and barriers ------------------------------------------------------------

// Which threads of a block of 64 fence.
enum class Who { none, thread_0, thread_3, warp_1, all };

template <Who kWho>
__device__ void fence_by() {
    const bool fences = kWho == Who::all || (kWho == Who::thread_0 && threadIdx.x == 0) ||
                        (kWho == Who::thread_3 && threadIdx.x == 3) ||
                        (kWho == Who::warp_1 && threadIdx.x / 32 == 1);
    if (fences) __threadfence();
}

// Block 1 waits for the flag and reads what each thread of block 0 has written.
__device__ void wait_and_read(int* data, int* flag, int* out) {
    if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];
}

// All threads write, a barrier, thread 0 raises the flag.
template <Who kBefore, Who kBehind, bool kBarrier = false>
__global__ void fences_at_a_barrier(int* data, int* flag, int* out) {
    if (blockIdx.x == 1) return wait_and_read(data, flag, out);
    data[threadIdx.x] = 1;
    fence_by<kBefore>();
    __syncthreads();
    fence_by<kBehind>();
    if (kBarrier) __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1);
}
// A fence covers what comes before it.
template <bool kLate>
__global__ void writes_behind_its_fence(int* data, int* flag, int* out) {
    if (blockIdx.x == 1) return wait_and_read(data, flag, out);
    if (!kLate) data[threadIdx.x] = 1;
    __threadfence();
    if (kLate) data[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1);
}
// One round behind the other: the fence of the round before is no fence of this one.
template <bool kEachRound>
__global__ void two_rounds(int* data, int* flag, int* out) {
    if (blockIdx.x == 1) return wait_and_read(data, flag, out);
    for (int round = 0; round < 2; ++round) {
        data[threadIdx.x] = round + 1;
        if (round == 0 || kEachRound) __threadfence();
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicExch(flag, 1);
}
// A warp's lanes meet instead.
template <Who kWho>
__global__ void fences_of_lanes(int* data, int* flag, int* out) {
    if (blockIdx.x == 1) return wait_and_read(data, flag, out);
    data[threadIdx.x] = 1;
    fence_by<kWho>();
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flag, 1);
}
// Warps that meet at a barrier of their own.
template <bool kFence>
__global__ void fences_at_a_named_barrier(int* data, int* flag, int* out) {
    if (blockIdx.x == 1) return wait_and_read(data, flag, out);
    data[threadIdx.x] = 1;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (threadIdx.x == 0) {
        if (kFence) __threadfence();
        atomicExch(flag, 1);
    }
}

// By PTX a fence of the thread that has written counts, or one that comes after the write by way of
// a barrier; and it must come before the atomic.
TEST(FencesAtABarrier, CoverWhatHappensBeforeThem) {
    using enum Who;
    const char* const kRace = "race_between_blocks;";
#define EXPECT_OF(expected, ...) \
    EXPECT_KINDS(expected, [](const Words& at) { __VA_ARGS__<<<2, 64>>>(at(0), at(10), at(20)); })
    EXPECT_OF(kRace, fences_at_a_barrier<none, none>);
    EXPECT_OF(kRace, fences_at_a_barrier<thread_3, none>);
    EXPECT_OF(kRace, fences_at_a_barrier<thread_0, none>);
    EXPECT_OF(kRace, fences_at_a_barrier<warp_1, none>);
    EXPECT_OF("", fences_at_a_barrier<all, none>);
    EXPECT_OF("", fences_at_a_barrier<none, thread_0>);
    EXPECT_OF("", fences_at_a_barrier<none, all>);
    // Nothing orders the fence of thread 3 before the atomic of thread 0, but for a second barrier.
    EXPECT_OF(kRace, fences_at_a_barrier<none, thread_3>);
    EXPECT_OF("", fences_at_a_barrier<none, thread_3, true>);
    EXPECT_OF(kRace, writes_behind_its_fence<true>);
    EXPECT_OF("", writes_behind_its_fence<false>);
    EXPECT_OF(kRace, two_rounds<false>);
    EXPECT_OF("", two_rounds<true>);
    EXPECT_OF(kRace, fences_at_a_named_barrier<false>);
    EXPECT_OF("", fences_at_a_named_barrier<true>);
#undef EXPECT_OF
#define EXPECT_OF_LANES(expected, who) \
    EXPECT_KINDS(expected, [](const Words& at) { fences_of_lanes<who><<<2, 32>>>(at(0), at(10), at(20)); })
    EXPECT_OF_LANES(kRace, none);
    EXPECT_OF_LANES(kRace, thread_3);
    EXPECT_OF_LANES(kRace, thread_0);
    EXPECT_OF_LANES("", all);
#undef EXPECT_OF_LANES
}

// Block 0 publishes. Thread 0 of block 1 sees it with a relaxed access, then the block has a
// barrier.
enum class Poll { atomic_function, relaxed_load, volatile_load, acquire_load };
template <Poll kPoll>
__device__ void wait_for(int* flag) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (kPoll == Poll::atomic_function) {
        while (atomicAdd(flag, 0) == 0) {
        }
    } else if (kPoll == Poll::volatile_load) {
        while (*static_cast<volatile int*>(flag) == 0) {
        }
    } else {
        while (ready.load(kPoll == Poll::relaxed_load ? cuda::memory_order_relaxed
                                                      : cuda::memory_order_acquire) == 0) {
        }
    }
}
template <Poll kPoll, Who kBefore, Who kBehind, bool kBarrier = false>
__global__ void acquires_at_a_barrier(int* data, int* flag, int* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(flag, 1);
        }
        return;
    }
    if (threadIdx.x == 0) wait_for<kPoll>(flag);
    fence_by<kBefore>();
    __syncthreads();
    fence_by<kBehind>();
    if (kBarrier) __syncthreads();
    out[threadIdx.x] = data[63 - threadIdx.x];
}
// The last block, and a barrier of the grid by hand, whose thread 0 has one fence only.
template <bool kAcquire>
__global__ void last_block(int* partial, int* ticket, int* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 1;
        __threadfence();
        last = atomicAdd(ticket, 1) == static_cast<int>(gridDim.x) - 1;
        if (kAcquire) __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) atomicAdd(out, partial[threadIdx.x]);
}
template <bool kAcquire>
__global__ void barrier_of_the_grid(int* data, int* count, int* out) {
    data[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < static_cast<int>(gridDim.x)) {
        }
        if (kAcquire) __threadfence();
    }
    __syncthreads();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = data[(i + blockDim.x) % (gridDim.x * blockDim.x)];
}

TEST(FencesAtABarrier, AreNotReplacedByIt) {
    using enum Who;
    using enum Poll;
    const char* const kRace = "race_between_blocks;";
#define EXPECT_OF(expected, ...) \
    EXPECT_KINDS(expected, [](const Words& at) { __VA_ARGS__<<<2, 64>>>(at(0), at(10), at(20)); })
    EXPECT_OF(kRace, acquires_at_a_barrier<atomic_function, none, none>);
    EXPECT_OF(kRace, acquires_at_a_barrier<relaxed_load, none, none>);
    EXPECT_OF(kRace, acquires_at_a_barrier<volatile_load, none, none>);
    EXPECT_OF("", acquires_at_a_barrier<acquire_load, none, none>);
    EXPECT_OF(kRace, acquires_at_a_barrier<relaxed_load, thread_3, none>);
    EXPECT_OF("", acquires_at_a_barrier<relaxed_load, thread_0, none>);
    EXPECT_OF("", acquires_at_a_barrier<atomic_function, all, none>);
    EXPECT_OF("", acquires_at_a_barrier<relaxed_load, none, all>);
    EXPECT_OF(kRace, acquires_at_a_barrier<relaxed_load, none, thread_0>);
    EXPECT_OF(kRace, acquires_at_a_barrier<relaxed_load, none, thread_3>);
    EXPECT_OF("", acquires_at_a_barrier<relaxed_load, none, thread_3, true>);
    EXPECT_OF(kRace, barrier_of_the_grid<false>);
    EXPECT_OF("", barrier_of_the_grid<true>);
#undef EXPECT_OF
    EXPECT_KINDS(kRace, [](const Words& at) { last_block<false><<<8, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { last_block<true><<<8, 64>>>(at(0), at(1), at(2)); });
    // The message tells which half is missing.
    const auto acquire = findings([](const Words& at) { last_block<false><<<8, 64>>>(at(0), at(1), at(2)); });
    EXPECT_NE(messages(acquire).find("no memory_order_acquire"), std::string::npos) << messages(acquire);
    const auto release =
        findings([](const Words& at) { fences_at_a_barrier<none, none><<<2, 64>>>(at(0), at(10), at(20)); });
    EXPECT_EQ(messages(release).find("no memory_order_acquire"), std::string::npos) << messages(release);
}

// ---- A release is no fence ---------------------------------------------------------------------------

// One word is released, another one is written relaxed. Which of the two is waited for?
enum class Second { relaxed, release, fence };
template <Second kSecond, cuda::thread_scope kScope, bool kWaitsForFirst>
__global__ void two_flags(int* data, int* flags, int* out) {
    const cuda::atomic_ref<int, kScope> first(flags[0]), second(flags[kApart]);
    if (blockIdx.x * blockDim.x + threadIdx.x == 0) {
        data[0] = 1;
        first.store(1, cuda::memory_order_release);
        if (kSecond == Second::fence) __threadfence();
        second.store(1, kSecond == Second::release ? cuda::memory_order_release : cuda::memory_order_relaxed);
    } else if (threadIdx.x == blockDim.x - 1) {
        while ((kWaitsForFirst ? first : second).load(cuda::memory_order_acquire) == 0) {
        }
        out[0] = data[0];
    }
}
// The counter is released, atomic functions follow.
template <bool kFence>
__global__ void counter_and_flag(int* data, int* counter, int* flag, int* out) {
    if (blockIdx.x == 0) {
        data[0] = 1;
        cuda::atomic_ref<int, cuda::thread_scope_device>(*counter).fetch_add(1, cuda::memory_order_acq_rel);
        if (kFence) __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
        out[0] = data[0];
    }
}
template <bool kRelease>
__global__ void two_flags_in_ptx(int* data, int* first, int* second, int* out) {
    if (blockIdx.x == 0) {
        data[0] = 1;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(first), "r"(1) : "memory");
        if (kRelease)
            asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(second), "r"(1) : "memory");
        else
            asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(second), "r"(1) : "memory");
    } else {
        int set = 0;
        while (set == 0)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(set) : "l"(second) : "memory");
        out[0] = data[0];
    }
}
// A relaxed store of the same thread to the word that it has released, as PTX has it.
__global__ void released_and_stored_again(int* data, int* flag, int* out) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        data[0] = 1;
        ready.store(1, cuda::memory_order_release);
        ready.store(2, cuda::memory_order_relaxed);
    } else {
        while (ready.load(cuda::memory_order_acquire) != 2) {
        }
        out[0] = data[0];
    }
}

TEST(Release, OrdersByItsWordAlone) {
    using enum Second;
    using namespace cuda;
    const char* const kRace = "race_between_blocks;";
#define EXPECT_OF(expected, blocks, threads, ...) \
    EXPECT_KINDS(expected, [](const Words& at) { __VA_ARGS__<<<blocks, threads>>>(at(0), at(1), at(3)); })
    EXPECT_OF(kRace, 2, 1, two_flags<relaxed, thread_scope_device, false>);
    EXPECT_OF("", 2, 1, two_flags<relaxed, thread_scope_device, true>);
    EXPECT_OF("", 2, 1, two_flags<Second::release, thread_scope_device, false>);
    EXPECT_OF("", 2, 1, two_flags<fence, thread_scope_device, false>);
    EXPECT_OF("race;", 1, 64, two_flags<relaxed, thread_scope_block, false>);
    EXPECT_OF("", 1, 64, two_flags<relaxed, thread_scope_block, true>);
    EXPECT_OF("", 1, 64, two_flags<Second::release, thread_scope_block, false>);
    EXPECT_OF("", 2, 1, released_and_stored_again);
#undef EXPECT_OF
    EXPECT_KINDS(kRace,
                 [](const Words& at) { counter_and_flag<false><<<2, 1>>>(at(0), at(1), at(2), at(3)); });
    EXPECT_KINDS("", [](const Words& at) { counter_and_flag<true><<<2, 1>>>(at(0), at(1), at(2), at(3)); });
    EXPECT_KINDS(kRace,
                 [](const Words& at) { two_flags_in_ptx<false><<<2, 1>>>(at(0), at(1), at(2), at(3)); });
    EXPECT_KINDS("", [](const Words& at) { two_flags_in_ptx<true><<<2, 1>>>(at(0), at(1), at(2), at(3)); });
}

// ---- Locks whose data is volatile ----------------------------------------------------------------------

enum class Take { exchange, exchange_relaxed, exchange_acquire, compare_and_swap };
template <Take kTake, bool kFence>
__device__ void take(int* lock) {
    const cuda::atomic_ref<int, cuda::thread_scope_device> held(*lock);
    if (kTake == Take::exchange) {
        while (atomicExch(lock, 1) != 0) {
        }
    } else if (kTake == Take::compare_and_swap) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
    } else {
        while (held.exchange(1, kTake == Take::exchange_relaxed ? cuda::memory_order_relaxed
                                                                : cuda::memory_order_acquire) != 0) {
        }
    }
    if (kFence) __threadfence();
}
template <Take kTake, bool kFence>
__global__ void count_volatile(int* lock, volatile int* data) {
    if (threadIdx.x % 32 != 0) return;
    take<kTake, kFence>(lock);
    data[0] = data[0] + 1;
    __threadfence();
    atomicExch(lock, 0);
}
template <bool kFence>
__global__ void count_volatile_in_shared_memory(int* out) {
    __shared__ int lock;
    __shared__ volatile int count;
    if (threadIdx.x == 0) {
        lock = 0;
        count = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        take<Take::exchange, kFence>(&lock);
        count = count + 1;
        __threadfence();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) out[0] = count;
}
// One thread takes the lock for its block.
template <bool kFence>
__global__ void count_volatile_by_blocks(int* lock, volatile int* data) {
    if (threadIdx.x == 0) take<Take::exchange, kFence>(lock);
    __syncthreads();
    data[threadIdx.x] = data[threadIdx.x] + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(lock, 0);
    }
}

TEST(Volatile, IsNoFenceBehindALock) {
    using enum Take;
    const char* const kRace = "race_between_blocks;";
#define EXPECT_OF(expected, blocks, threads, ...) \
    EXPECT_KINDS(expected, [](const Words& at) { __VA_ARGS__<<<blocks, threads>>>(at(0), at(1)); })
    EXPECT_OF(kRace, 4, 1, count_volatile<exchange, false>);
    EXPECT_OF(kRace, 4, 1, count_volatile<exchange_relaxed, false>);
    EXPECT_OF(kRace, 4, 1, count_volatile<compare_and_swap, false>);
    EXPECT_OF("race;", 1, 64, count_volatile<exchange, false>);
    EXPECT_OF("", 4, 1, count_volatile<exchange, true>);
    EXPECT_OF("", 4, 1, count_volatile<exchange_acquire, false>);
    EXPECT_OF("", 1, 64, count_volatile<exchange, true>);
    EXPECT_OF(kRace, 4, 64, count_volatile_by_blocks<false>);
    EXPECT_OF("", 4, 64, count_volatile_by_blocks<true>);
#undef EXPECT_OF
    EXPECT_KINDS("race;", [](const Words& at) { count_volatile_in_shared_memory<false><<<1, 64>>>(at(0)); });
    EXPECT_KINDS("", [](const Words& at) { count_volatile_in_shared_memory<true><<<1, 64>>>(at(0)); });
}

// ---- volatile ------------------------------------------------------------------------------------

__global__ void two_stores(volatile int* word) {
    word[0] = static_cast<int>(blockIdx.x) + 1;
}
__global__ void one_value(volatile int* changed) {
    changed[0] = 1;
}
__global__ void lost_update(volatile int* sum) {
    sum[0] = sum[0] + 1;
}
__global__ void volatile_beside_atomic(int* word, int* out) {
    if (threadIdx.x == 0) {
        atomicExch(word, 1);
    } else if (threadIdx.x == 32) {
        while (*static_cast<volatile int*>(word) == 0) {
        }
        out[0] = 1;
    }
}
__global__ void volatile_write_beside_atomic(int* word) {
    if (threadIdx.x == 0)
        atomicAdd(word, 1);
    else if (threadIdx.x == 32)
        *static_cast<volatile int*>(word) = 5;
}
// A flag in shared memory, and what it guards.
template <bool kFence>
__global__ void flag_between_warps(int* out) {
    __shared__ volatile int flag;
    __shared__ int data;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data = 5;
        if (kFence) __threadfence_block();
        flag = 1;
    } else if (threadIdx.x == 32) {
        while (flag == 0) {
        }
        if (kFence) __threadfence_block();
        out[0] = data;
    }
}
template <bool kFence>
__global__ void flag_in_global_memory(volatile int* flag, int* data, int* out) {
    if (threadIdx.x == 0) {
        data[0] = 5;
        if (kFence) __threadfence_block();
        flag[0] = 1;
    } else if (threadIdx.x == 32) {
        while (flag[0] == 0) {
        }
        if (kFence) __threadfence_block();
        out[0] = data[0];
    }
}

TEST(Volatile, OrdersNothing) {
    const auto seen = findings([](const Words& at) { two_stores<<<2, 1>>>(at(0)); });
    EXPECT_EQ(kinds(seen), "race_between_blocks;");
    EXPECT_NE(messages(seen).find("volatile does not order"), std::string::npos) << messages(seen);
    EXPECT_KINDS("race;race_between_blocks;", [](const Words& at) { lost_update<<<4, 64>>>(at(0)); });
    EXPECT_KINDS("race;", [](const Words& at) { lost_update<<<1, 64>>>(at(0)); });
    EXPECT_KINDS("", [](const Words& at) { lost_update<<<1, 1>>>(at(0)); });
    // Equal values, as of plain stores.
    EXPECT_KINDS("", [](const Words& at) { one_value<<<4, 64>>>(at(0)); });
    // PTX takes a volatile read for a relaxed one. A volatile write may be lost, or hide a sum.
    EXPECT_KINDS("", [](const Words& at) { volatile_beside_atomic<<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("race;", [](const Words& at) { volatile_write_beside_atomic<<<1, 64>>>(at(0)); });
}

// The flag is a race; what it guards by fences is none. One rule for both memories.
TEST(Volatile, AFlagIsARaceAndWhatFencesGuardIsNone) {
    for (const bool fences : {true, false}) {
        const auto shared = findings([&](const Words& at) {
            fences ? flag_between_warps<true><<<1, 64>>>(at(0)) : flag_between_warps<false><<<1, 64>>>(at(0));
        });
        const auto global = findings([&](const Words& at) {
            fences ? flag_in_global_memory<true><<<1, 64>>>(at(0), at(1), at(2))
                   : flag_in_global_memory<false><<<1, 64>>>(at(0), at(1), at(2));
        });
        EXPECT_EQ(kinds(shared), "race;");
        EXPECT_EQ(kinds(global), "race;");
        EXPECT_EQ(shared.size(), fences ? 1 : 2) << messages(shared);
        EXPECT_EQ(global.size(), fences ? 1 : 2) << messages(global);
    }
}

// ---- Atomics of thread scope ------------------------------------------------------------------------

template <bool kShared>
__global__ void count_in_thread_scope(int* count, bool one_word) {
    __shared__ int counts[64];
    counts[threadIdx.x] = 0;
    __syncthreads();
    int* const all = kShared ? counts : count;
    cuda::atomic_ref<int, cuda::thread_scope_thread>(all[one_word ? 0 : threadIdx.x]).fetch_add(1);
}
__global__ void beside_thread_scope(int* count) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
    } else if (threadIdx.x == 32) {
        cuda::atomic_ref<int, cuda::thread_scope_thread>(count[0]).fetch_max(1);
    }
}

TEST(ThreadScope, IsAtomicForItsThreadAlone) {
    EXPECT_KINDS("race;", [](const Words& at) { count_in_thread_scope<false><<<1, 64>>>(at(0), true); });
    EXPECT_KINDS("race;", [](const Words& at) { count_in_thread_scope<true><<<1, 64>>>(at(0), true); });
    EXPECT_KINDS("race_between_blocks;",
                 [](const Words& at) { count_in_thread_scope<false><<<2, 1>>>(at(0), true); });
    EXPECT_KINDS("race;", [](const Words& at) { beside_thread_scope<<<1, 64>>>(at(0)); });
    EXPECT_KINDS("", [](const Words& at) { count_in_thread_scope<false><<<1, 64>>>(at(0), false); });
    EXPECT_KINDS("", [](const Words& at) { count_in_thread_scope<true><<<1, 64>>>(at(0), false); });
}

// ---- Words that are written without being read -----------------------------------------------------

enum class Exchange { function, reference, object, ptx };
template <Exchange kExchange>
__forceinline__ __device__ int set_to_one(int* flag) {
    using enum Exchange;
    int old = 0;
    if (kExchange == function) {
        old = atomicExch(flag, 1);
    } else if (kExchange == reference) {
        old = cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).exchange(1);
    } else if (kExchange == object) {
        old = reinterpret_cast<cuda::atomic<int, cuda::thread_scope_device>*>(flag)->exchange(1);
    } else {
        asm volatile("atom.exch.b32 %0, [%1], 1;" : "=r"(old) : "l"(flag) : "memory");
    }
    return old;
}
template <Exchange kExchange, bool kUsed>
__global__ void set(int* flag, int* out) {
    const int old = set_to_one<kExchange>(flag);
    if (kUsed) out[0] = old;
}
__global__ void set_in_a_statement(int* flag) {
    atomicExch(flag, 1);
    cuda::atomic_ref<int, cuda::thread_scope_device>(flag[1]).exchange(1);
}
template <bool kUsed>
__global__ void set_shared(int* out) {
    __shared__ int flags[2];
    const int old = atomicExch(&flags[0], 1);
    const int other = cuda::atomic_ref<int, cuda::thread_scope_block>(flags[1]).exchange(2);
    if (kUsed) out[0] = old + other;
}
// What an earlier exchange of the same word wrote.
__global__ void set_twice(int* flag, int* out) {
    atomicExch(flag, 1);
    out[0] = atomicExch(flag, 2);
}

TEST(Exchange, DoesNotReadIfItsResultIsUnused) {
    int* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    using enum Exchange;
    const char* const kUnwritten = "uninitialised_read;";
    int* next = memory;
#define EXPECT_OF(...)                                                                            \
    EXPECT_KINDS("", [&](const Words& at) { set<__VA_ARGS__, false><<<1, 1>>>(next++, at(0)); }); \
    EXPECT_KINDS(kUnwritten, [&](const Words& at) { set<__VA_ARGS__, true><<<1, 1>>>(next++, at(0)); })
    EXPECT_OF(function);
    EXPECT_OF(reference);
    EXPECT_OF(object);
    EXPECT_OF(ptx);
#undef EXPECT_OF
    EXPECT_KINDS("", [&](const Words&) { set_in_a_statement<<<1, 1>>>(next); });
    EXPECT_KINDS("", [&](const Words& at) { set_twice<<<1, 1>>>(next + 2, at(0)); });
    EXPECT_KINDS("", [](const Words& at) { set_shared<false><<<1, 1>>>(at(0)); });
    EXPECT_KINDS(kUnwritten, [](const Words& at) { set_shared<true><<<1, 1>>>(at(0)); });
    cudaFree(memory);
}

// ---- Atomic functions by compare-and-swap -----------------------------------------------------------

// As NVIDIA's programming guide shows them: the first value is read plainly.
__device__ double add_double(double* p, double v) {
    auto* word = reinterpret_cast<unsigned long long*>(p);
    unsigned long long old = *word;
    unsigned long long seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, __double_as_longlong(v + __longlong_as_double(seen)));
    } while (seen != old);
    return __longlong_as_double(old);
}
__device__ float max_float(float* p, float v) {
    int* word = reinterpret_cast<int*>(p);
    int old = *word;
    int seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, __float_as_int(fmaxf(v, __int_as_float(seen))));
    } while (seen != old);
    return __int_as_float(old);
}
__device__ unsigned short add_short(unsigned short* p, unsigned short v) {
    unsigned short old = *p;
    unsigned short seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, static_cast<unsigned short>(seen + v));
    } while (seen != old);
    return old;
}
__global__ void sums_of_shorts(unsigned short* sums) {
    __shared__ unsigned short part[2];
    if (threadIdx.x < 2) part[threadIdx.x] = 0;
    __syncthreads();
    add_short(&part[threadIdx.x % 2], 1);
    cuda::atomic_ref<unsigned short, cuda::thread_scope_device> sum(sums[0]);
    unsigned short seen = sums[0];
    while (!sum.compare_exchange_weak(seen, seen + 1)) {
    }
    __syncthreads();
    if (threadIdx.x < 2) add_short(&sums[1], part[threadIdx.x]);
}
// Threads read what others add to; a thread reads its left neighbour's word and writes its own.
__global__ void reads_a_short(unsigned short* sum, int* out) {
    if (threadIdx.x == 32) {
        out[0] = sum[0];
    } else if (threadIdx.x == 0) {
        add_short(sum, 1);
    }
}
__global__ void shifts_shorts(unsigned short* row) {
    const unsigned short left = row[threadIdx.x];
    row[threadIdx.x + 1] = left + 1;
}
__device__ int shared_and_global;
__global__ void sums_by_cas(double* sum, float* max) {
    __shared__ double part;
    if (threadIdx.x == 0) part = 0;
    __syncthreads();
    add_double(&part, threadIdx.x);
    max_float(max, static_cast<float>(threadIdx.x % 7));
    max_float(reinterpret_cast<float*>(&shared_and_global), 1);
    __syncthreads();
    if (threadIdx.x == 0) add_double(sum, part);
}
// Another word than the one that is compared; a thread that does not compare; a plain store.
__global__ void reads_a_neighbour(int* word) {
    __shared__ int pair[2];
    if (threadIdx.x < 2) pair[threadIdx.x] = 0;
    __syncthreads();
    int old = pair[0] + word[1];
    int seen;
    do {
        seen = old;
        old = atomicCAS(threadIdx.x % 64 < 32 ? &pair[1] : &pair[0], seen, seen + 1);
    } while (seen != old);
    atomicAdd(&word[1], 1);
}
__global__ void looks_once_more(int* word, int* out) {
    if (threadIdx.x == 32) {
        out[0] = word[0];
    } else if (threadIdx.x == 0) {
        const int old = word[0];
        atomicCAS(word, old, old + 1);
    }
}
template <bool kShared>
__global__ void stores_plainly(int* global) {
    __shared__ int own;
    if (threadIdx.x == 0) own = 0;
    __syncthreads();
    int* word = kShared ? &own : global;
    const int old = *word;
    if (threadIdx.x == 32)
        *word = 5;
    else if (threadIdx.x == 0)
        atomicCAS(word, old, old + 1);
}

TEST(CompareAndSwap, TheReadBeforeItIsPartOfIt) {
    EXPECT_KINDS("", [](const Words& at) {
        sums_by_cas<<<4, 64>>>(reinterpret_cast<double*>(at(0)), reinterpret_cast<float*>(at(1)));
    });
    const auto shorts = [](int* word) { return reinterpret_cast<unsigned short*>(word); };
    EXPECT_KINDS("", [&](const Words& at) { sums_of_shorts<<<4, 64>>>(shorts(at(0))); });
    EXPECT_KINDS("race;", [&](const Words& at) { reads_a_short<<<1, 64>>>(shorts(at(0)), at(1)); });
    EXPECT_KINDS("race;", [&](const Words& at) { shifts_shorts<<<1, 64>>>(shorts(at(0))); });
    EXPECT_KINDS("race;", [](const Words& at) { reads_a_neighbour<<<1, 64>>>(at(0)); });
    EXPECT_KINDS("race;", [](const Words& at) { looks_once_more<<<1, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("race;", [](const Words& at) { stores_plainly<true><<<1, 64>>>(at(0)); });
    EXPECT_KINDS("race;", [](const Words& at) { stores_plainly<false><<<1, 64>>>(at(0)); });
}

// ---- memset, memcpy and memmove of constant sizes ----------------------------------------------------

struct Row {
    float a[6];
};
__global__ void zero_then_sum(float* out) {
    __shared__ float part[64];
    if (threadIdx.x == 0) memset(part, 0, sizeof part);
    __syncthreads();
    out[threadIdx.x] = part[threadIdx.x];
}
__global__ void copy_then_read(const Row* in, Row* spare, float* out) {
    std::memcpy(&spare[threadIdx.x], &in[threadIdx.x], sizeof(Row));
    memmove(&spare[threadIdx.x + 32], &spare[threadIdx.x], sizeof(Row));
    out[threadIdx.x] = spare[threadIdx.x + 32].a[threadIdx.x % 6];
}
template <int kBytes>
__global__ void copy_to_one_place(const char* in, char* out) {
    memcpy(out, in + 128 * threadIdx.x, kBytes);
}
template <int kBytes>
__global__ void set_one_place(char* out) {
    memset(out, static_cast<int>(threadIdx.x), kBytes);
}
__global__ void set_past_the_end(int* out) {
    __shared__ int a[16];
    a[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) memset(a, 0, 20 * sizeof(int));
    __syncthreads();
    out[threadIdx.x] = a[threadIdx.x];
}
template <int kBytes>
std::string kinds_of_both() {
    return kinds(findings([](const Words& at) {
               auto* bytes = reinterpret_cast<char*>(at(0));
               for (int i = 0; i < 256; ++i)
                   cudaMemset(bytes + i, 7 * i + 1 + i / 128, 1);
               copy_to_one_place<kBytes><<<1, 2>>>(bytes, bytes + 1024);
           })) +
           kinds(findings(
               [](const Words& at) { set_one_place<kBytes><<<1, 2>>>(reinterpret_cast<char*>(at(0))); }));
}

TEST(ConstantSizes, AreSeen) {
    float* spare = nullptr;
    ASSERT_EQ(cudaMalloc(&spare, 64 * sizeof(Row)), cudaSuccess);
    EXPECT_KINDS("", [](const Words& at) { zero_then_sum<<<1, 64>>>(reinterpret_cast<float*>(at(0))); });
    EXPECT_KINDS("", [&](const Words& at) {
        copy_then_read<<<1, 32>>>(reinterpret_cast<Row*>(at(0)), reinterpret_cast<Row*>(spare),
                                  reinterpret_cast<float*>(at(8)));
    });
    cudaFree(spare);
    EXPECT_EQ(kinds_of_both<4>(), "race;race;");
    EXPECT_EQ(kinds_of_both<8>(), "race;race;");
    EXPECT_EQ(kinds_of_both<12>(), "race;race;");
    EXPECT_EQ(kinds_of_both<24>(), "race;race;");
    EXPECT_EQ(kinds_of_both<64>(), "race;race;");
    EXPECT_EQ(kinds_of_both<100>(), "race;race;");
    EXPECT_KINDS("out_of_bounds;", [](const Words& at) { set_past_the_end<<<1, 16>>>(at(0)); });
}

// ---- Large grids ---------------------------------------------------------------------------------------

template <bool kInPlace>
__global__ void shift(float* to, const float* from) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float right = from[i + 1];
    __syncthreads();
    if (kInPlace)
        to[i] = right;
    else
        to[i + gridDim.x * blockDim.x + 1] = right;
}

TEST(LargeGrids, NeighboursAreAmongTheWatched) {
    float* a = nullptr;
    constexpr unsigned kBlocks = 1000;
    ASSERT_EQ(cudaMalloc(&a, (2 * kBlocks * 32 + 1) * sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaMemset(a, 0, (2 * kBlocks * 32 + 1) * sizeof(float)), cudaSuccess);
    InspectionOptions options;
    for (const unsigned watched : {4, 7, 256}) {
        options.blocks_per_launch = watched;
        EXPECT_KINDS(
            "race_between_blocks;", [&](const Words&) { shift<true><<<kBlocks, 32>>>(a, a); }, options);
        EXPECT_KINDS(
            "", [&](const Words&) { shift<false><<<kBlocks, 32>>>(a, a); }, options);
    }
    cudaFree(a);
}

// ---- Right forms -----------------------------------------------------------------------------------

// The last block that arrives adds up what all have left.
__global__ void last_block_sums(int* partial, int* ticket, int* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 1;
        __threadfence();
        last = atomicAdd(ticket, 1) == static_cast<int>(gridDim.x) - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x < gridDim.x) atomicAdd(out, partial[threadIdx.x]);
}
// All threads fence, then one takes the ticket; all fence again. Or what they read is volatile, as
// in NVIDIA's programming guide.
template <bool kVolatile>
__global__ void last_block_with_fences(int* partial, int* ticket, int* out) {
    __shared__ bool last;
    partial[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(reinterpret_cast<unsigned*>(ticket), gridDim.x) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    const unsigned i = (threadIdx.x * 7) % (gridDim.x * blockDim.x);
    if (!kVolatile) __threadfence();
    atomicAdd(out, kVolatile ? static_cast<volatile int*>(partial)[i] : partial[i]);
}
// A barrier of the grid by hand.
__global__ void grid_barrier(int* data, int* count, int* out) {
    data[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < static_cast<int>(gridDim.x)) {
        }
        __threadfence();
    }
    __syncthreads();
    const unsigned all = gridDim.x * blockDim.x;
    out[blockIdx.x * blockDim.x + threadIdx.x] =
        data[(blockIdx.x * blockDim.x + threadIdx.x + blockDim.x) % all];
}
// Look-back: each block waits for the one before it.
__global__ void chained_sums(int* sums, int* flags, int* out) {
    __shared__ int before;
    if (threadIdx.x == 0) {
        before = 0;
        if (blockIdx.x > 0) {
            cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[blockIdx.x - 1]);
            while (flag.load(cuda::memory_order_relaxed) == 0) {
            }
            __threadfence();
            before = sums[blockIdx.x - 1];
        }
        sums[blockIdx.x] = before + 1;
        __threadfence();
        cuda::atomic_ref<int, cuda::thread_scope_device>(flags[blockIdx.x])
            .store(1, cuda::memory_order_relaxed);
    }
    __syncthreads();
    if (threadIdx.x == 1) out[blockIdx.x] = before;
}
// Every thread takes a lock in turn; the warp votes whether all are done.
__global__ void lock_with_votes(int* lock, int* data) {
    bool done = false;
    while (!__all_sync(~0u, done)) {
        if (!done && atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            data[0] += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
__global__ void spin_lock_of_acquire_and_release(int* lock, int* data) {
    if (threadIdx.x % 32 != 0) return;
    const cuda::atomic_ref<int, cuda::thread_scope_device> held(*lock);
    while (held.exchange(1, cuda::memory_order_acquire) != 0) {
    }
    data[0] += 1;
    held.store(0, cuda::memory_order_release);
}
// Lane 0 polls, all lanes fence, before or behind the point where they meet.
template <bool kBefore>
__global__ void a_warp_waits(int* data, int* flag, int* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 1;
        __syncwarp();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(flag, 1);
        }
    } else {
        if (threadIdx.x == 0) {
            while (atomicAdd(flag, 0) == 0) {
            }
        }
        if (kBefore) __threadfence();
        __syncwarp();
        if (!kBefore) __threadfence();
        out[threadIdx.x] = data[31 - threadIdx.x];
    }
}

TEST(RightForms, AreSilent) {
    EXPECT_KINDS("", [](const Words& at) { last_block_sums<<<16, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { last_block_with_fences<false><<<16, 64>>>(at(8), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { last_block_with_fences<true><<<16, 64>>>(at(8), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { grid_barrier<<<2, 64>>>(at(0), at(10), at(20)); });
    EXPECT_KINDS("", [](const Words& at) { chained_sums<<<32, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { lock_with_votes<<<2, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { spin_lock_of_acquire_and_release<<<4, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { a_warp_waits<true><<<2, 32>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { a_warp_waits<false><<<2, 32>>>(at(0), at(1), at(2)); });
}

}  // namespace

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

// ---- Words that are written without being read -----------------------------------------------------

template <bool kUsed>
__global__ void set(int* flag, int* out) {
    if (kUsed)
        out[0] = atomicExch(flag, 1);
    else
        atomicExch(flag, 1);
}

TEST(Exchange, DoesNotReadIfItsResultIsUnused) {
    int* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 8), cudaSuccess);
    EXPECT_KINDS("", [&](const Words& at) { set<false><<<1, 1>>>(memory, at(0)); });
    EXPECT_KINDS("uninitialised_read;", [&](const Words& at) { set<true><<<1, 1>>>(memory + 1, at(0)); });
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
// As NVIDIA's sample does it: all threads fence, then one takes the ticket; none behind it.
__global__ void last_block_of_the_sample(int* partial, int* ticket, int* out) {
    __shared__ bool last;
    partial[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(reinterpret_cast<unsigned*>(ticket), gridDim.x) == gridDim.x - 1;
    __syncthreads();
    if (last) atomicAdd(out, partial[(threadIdx.x * 7) % (gridDim.x * blockDim.x)]);
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
    EXPECT_KINDS("", [](const Words& at) { last_block_of_the_sample<<<16, 64>>>(at(8), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { grid_barrier<<<2, 64>>>(at(0), at(10), at(20)); });
    EXPECT_KINDS("", [](const Words& at) { chained_sums<<<32, 64>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { lock_with_votes<<<2, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { spin_lock_of_acquire_and_release<<<4, 64>>>(at(0), at(1)); });
    EXPECT_KINDS("", [](const Words& at) { a_warp_waits<true><<<2, 32>>>(at(0), at(1), at(2)); });
    EXPECT_KINDS("", [](const Words& at) { a_warp_waits<false><<<2, 32>>>(at(0), at(1), at(2)); });
}

}  // namespace

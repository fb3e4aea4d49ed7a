// Atomic functions, fences and cuda::atomic: nothing is lost between the threads of many blocks,
// the values returned are the old ones, and a thread that waits for another reads what that thread
// wrote before.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cuda/atomic>
#include <cuda/std/atomic>
#include <numeric>

#include "on_device.cuh"

namespace {

constexpr unsigned kGrid = 24;
constexpr unsigned kBlock = 96;
constexpr unsigned kThreads = kGrid * kBlock;

__device__ unsigned global_thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// ---- What each function leaves behind -----------------------------------------------------------

struct Totals {
    int added, subtracted, smallest, largest;
    unsigned added_unsigned, subtracted_unsigned, smallest_unsigned, largest_unsigned, incremented,
        decremented, anded, ored, xored, exchanged;
    unsigned long long added_wide, smallest_wide, largest_wide, ored_wide, exchanged_wide;
    long long smallest_signed_wide, largest_signed_wide;
    float added_float, exchanged_float;
    double added_double;
    float2 added_pair;
    float4 added_quadruple;
};

__global__ void accumulate(Totals* totals) {
    const unsigned id = global_thread();
    const int signed_id = static_cast<int>(id) - 1000;
    atomicAdd(&totals->added, -2);
    atomicAdd(&totals->added_unsigned, 3);
    atomicAdd(&totals->added_wide, 1ull << 33);
    atomicAdd(&totals->added_float, 0.5f);
    atomicAdd(&totals->added_double, 0.25);
    atomicSub(&totals->subtracted, 2);
    atomicSub(&totals->subtracted_unsigned, 1u);
    atomicMin(&totals->smallest, signed_id);
    atomicMax(&totals->largest, signed_id);
    atomicMin(&totals->smallest_unsigned, id + 5);
    atomicMax(&totals->largest_unsigned, id);
    atomicMin(&totals->smallest_wide, (1ull << 40) + id);
    atomicMax(&totals->largest_wide, (1ull << 40) + id);
    atomicMin(&totals->smallest_signed_wide, signed_id * (1ll << 33));
    atomicMax(&totals->largest_signed_wide, signed_id * (1ll << 33));
    atomicInc(&totals->incremented, 9);
    atomicDec(&totals->decremented, 9);
    atomicAnd(&totals->anded, ~(1u << id % 16));
    atomicOr(&totals->ored, 1u << id % 32);
    atomicXor(&totals->xored, id);
    atomicOr(&totals->ored_wide, 1ull << id % 64);
    atomicExch(&totals->exchanged, 77u);
    atomicExch(&totals->exchanged_wide, 1ull << 50);
    atomicExch(&totals->exchanged_float, 1.5f);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    atomicAdd(&totals->added_pair, make_float2(1.0f, 2.0f));
    atomicAdd(&totals->added_quadruple, make_float4(1.0f, 2.0f, 3.0f, 4.0f));
#endif
}

TEST(Atomics, LoseNothing) {
    Totals start{};
    start.smallest_unsigned = start.anded = 0xffffffffu;
    start.smallest_wide = ~0ull;
    DeviceVector<Totals> totals(std::vector<Totals>{start});
    accumulate<<<kGrid, kBlock>>>(totals.data());
    const Totals got = totals.to_host()[0];
    constexpr int kCount = static_cast<int>(kThreads);
    EXPECT_EQ(got.added, -2 * kCount);
    EXPECT_EQ(got.added_unsigned, 3u * kThreads);
    EXPECT_EQ(got.added_wide, static_cast<unsigned long long>(kThreads) << 33);
    EXPECT_EQ(got.added_float, 0.5f * kThreads);
    EXPECT_EQ(got.added_double, 0.25 * kThreads);
    EXPECT_EQ(got.subtracted, -2 * kCount);
    EXPECT_EQ(got.subtracted_unsigned, 0u - kThreads);
    EXPECT_EQ(got.smallest, -1000);
    EXPECT_EQ(got.largest, kCount - 1 - 1000);
    EXPECT_EQ(got.smallest_unsigned, 5u);
    EXPECT_EQ(got.largest_unsigned, kThreads - 1);
    EXPECT_EQ(got.smallest_wide, 1ull << 40);
    EXPECT_EQ(got.largest_wide, (1ull << 40) + kThreads - 1);
    EXPECT_EQ(got.smallest_signed_wide, -1000 * (1ll << 33));
    EXPECT_EQ(got.largest_signed_wide, (kCount - 1001) * (1ll << 33));
    EXPECT_EQ(got.incremented, kThreads % 10);
    EXPECT_EQ(got.decremented, (10 - kThreads % 10) % 10);
    EXPECT_EQ(got.anded, 0xffff0000u);
    EXPECT_EQ(got.ored, 0xffffffffu);
    unsigned xored = 0;
    for (unsigned id = 0; id < kThreads; ++id)
        xored ^= id;
    EXPECT_EQ(got.xored, xored);
    EXPECT_EQ(got.ored_wide, ~0ull);
    EXPECT_EQ(got.exchanged, 77u);
    EXPECT_EQ(got.exchanged_wide, 1ull << 50);
    EXPECT_EQ(got.exchanged_float, 1.5f);
    if (compute_capability() < 90) return;
    EXPECT_EQ(got.added_pair.y, 2.0f * kThreads);
    EXPECT_EQ(got.added_quadruple.x, 1.0f * kThreads);
    EXPECT_EQ(got.added_quadruple.w, 4.0f * kThreads);
}

// All threads at one place, long enough for blocks to overlap and their updates to collide.
#ifdef CUDA_ON_CPU
constexpr int kRounds = 1000;
#else
constexpr int kRounds = 4000;
#endif
constexpr int kSwaps = 20;  // under contention most of them fail

__global__ void hammer(unsigned* sum, unsigned* count_down, float* real_sum, unsigned long long* swapped) {
    for (int i = 0; i < kRounds; ++i) {
        atomicAdd(sum, 1);
        atomicSub(count_down, 1u);
        atomicAdd(real_sum, 1.0f);
        if (i >= kSwaps) continue;
        unsigned long long before = ~0ull;
        for (unsigned long long seen = *static_cast<volatile unsigned long long*>(swapped); seen != before;) {
            before = seen;
            seen = atomicCAS(swapped, before, before + 1);
        }
    }
}

TEST(Atomics, LoseNothingUnderContention) {
    constexpr unsigned kHammers = 32 * 128;
    DeviceVector<unsigned> sum(1), count_down(1);
    DeviceVector<float> real_sum(1);
    DeviceVector<unsigned long long> swapped(1);
    hammer<<<32, 128>>>(sum.data(), count_down.data(), real_sum.data(), swapped.data());
    EXPECT_EQ(sum.to_host()[0], kHammers * kRounds);
    EXPECT_EQ(count_down.to_host()[0], 0u - kHammers * kRounds);
    EXPECT_EQ(real_sum.to_host()[0], static_cast<float>(kHammers * kRounds));
    EXPECT_EQ(swapped.to_host()[0], kHammers * kSwaps);
}

// ---- What each function returns -----------------------------------------------------------------

__global__ void look_at_returned_values(Checks check, int* i, unsigned* u, unsigned long long* wide,
                                        unsigned short* s, float* f) {
    *i = 5;
    check.equal(atomicAdd(i, 3), 5);
    check.equal(atomicSub(i, 1), 8);
    check.equal(atomicMin(i, 2), 7);
    check.equal(atomicMax(i, 1), 2);
    check.equal(atomicExch(i, -4), 2);
    check.equal(atomicCAS(i, 0, 9), -4);
    check.equal(atomicCAS(i, -4, 9), -4);
    check.equal(atomicAnd(i, 8), 9);
    check.equal(atomicOr(i, 3), 8);
    check.equal(atomicXor(i, 1), 11);
    check.equal(*i, 10);
    *u = 2;
    check.equal(atomicInc(u, 2), 2u);
    check.equal(*u, 0u);
    check.equal(atomicDec(u, 7), 0u);
    check.equal(*u, 7u);
    check.equal(atomicDec(u, 3), 7u);
    check.equal(*u, 3u);
    check.equal(atomicInc(u, 2), 3u);
    check.equal(*u, 0u);
    *wide = 1;
    check.equal(atomicCAS(wide, 1ull, 1ull << 60), 1ull);
    check.equal(atomicExch(wide, 0ull), 1ull << 60);
    *s = 7;
    check.equal(atomicCAS(s, static_cast<unsigned short>(7), static_cast<unsigned short>(65535)), 7);
    check.equal(*s, 65535);
    *f = 1.5f;
    check.equal(atomicExch(f, 2.5f), 1.5f);
    check.equal(atomicAdd(f, 0.25f), 2.5f);
    check.equal(atomicAdd_block(i, 1), 10);
    check.equal(atomicAdd_system(i, 1), 11);
    check.equal(atomicMax_block(i, 100), 12);
    check.equal(atomicMin_system(i, 50), 100);
    check.equal(atomicExch_block(i, 1), 50);
    check.equal(atomicCAS_system(i, 1, 6), 1);
    check.equal(atomicCAS_block(i, 6, 7), 6);
    check.equal(atomicOr_system(i, 8), 7);
    check.equal(atomicAnd_block(i, 12), 15);
    check.equal(atomicXor_block(i, 4), 12);
    check.equal(atomicSub_system(i, 8), 8);
    check.equal(atomicInc_block(u, 3), 0u);
    check.equal(atomicDec_system(u, 3), 1u);
    check.equal(atomicAdd_system(f, 0.25f), 2.75f);
}

// ---- 16 bytes at a time -------------------------------------------------------------------------

struct alignas(16) Wide {
    unsigned long long low, high;
};

__global__ void add_to_both_halves(Wide* sum, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        Wide seen = *sum;
        for (;;) {
            const Wide next{seen.low + 1, seen.high + 3};
            const Wide old = atomicCAS(sum, seen, next);
            if (old.low == seen.low && old.high == seen.high) break;
            seen = old;
        }
    }
}
TEST(WideAtomics, LoseNothing) {
    if (compute_capability() < 90) GTEST_SKIP() << "needs compute capability 9.0";
    DeviceVector<Wide> sum(std::vector<Wide>{{0, 0}});
    add_to_both_halves<<<16, 64>>>(sum.data(), 500);
    const Wide got = sum.to_host()[0];
    EXPECT_EQ(got.low, 16u * 64 * 500);
    EXPECT_EQ(got.high, 3u * 16 * 64 * 500);
}

// Blocks that meet first, so that they really run at the same time. `torn`: exchanged values whose
// halves do not belong together.
__global__ void add_side_by_side(Wide* sum, Wide* place, unsigned* met, unsigned* torn, unsigned rounds) {
    atomicAdd(met, 1);
    while (*const_cast<volatile unsigned*>(met) < gridDim.x) {
    }
    for (unsigned i = 0; i < rounds; ++i) {
        Wide seen{0, 0}, old = *sum;
        do {
            seen = old;
            old = atomicCAS(sum, seen, Wide{seen.low + 1, seen.high + 3});
        } while (old.low != seen.low || old.high != seen.high);
        const unsigned long long value = blockIdx.x * 1000000ull + i;
        const Wide handed = atomicExch(place, Wide{value, ~value});
        if (handed.high != ~handed.low) atomicAdd(torn, 1);
    }
}
TEST(WideAtomics, LoseNothingSideBySide) {
    if (compute_capability() < 90) GTEST_SKIP() << "needs compute capability 9.0";
    constexpr unsigned kBlocks = 16, kEach = 400000;
    DeviceVector<Wide> sum(1), place(std::vector<Wide>{{0, ~0ull}});
    DeviceVector<unsigned> met(1), torn(1);
    add_side_by_side<<<kBlocks, 1>>>(sum.data(), place.data(), met.data(), torn.data(), kEach);
    EXPECT_EQ(sum.to_host()[0].low, 1u * kBlocks * kEach);
    EXPECT_EQ(sum.to_host()[0].high, 3u * kBlocks * kEach);
    EXPECT_EQ(torn.to_host()[0], 0u);
}

// Every value that goes in comes out once, whole.
__global__ void hand_on(Wide* place, Wide* sums, int rounds) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    Wide sum{0, 0};
    for (int i = 0; i < rounds; ++i) {
        const unsigned long long value = thread * rounds + i;
        const Wide old = atomicExch(place, Wide{value, ~value});
        sum.low += old.low;
        sum.high += old.high == ~old.low;
    }
    sums[thread] = sum;
}
TEST(WideAtomics, ExchangeWholeValues) {
    if (compute_capability() < 90) GTEST_SKIP() << "needs compute capability 9.0";
    constexpr unsigned kAll = 16 * 64, kTimes = 1000;
    constexpr unsigned long long kCount = kAll * kTimes;
    DeviceVector<Wide> place(std::vector<Wide>{{0, ~0ull}}), sums(kAll);
    hand_on<<<16, 64>>>(place.data(), sums.data(), static_cast<int>(kTimes));
    Wide total{place.to_host()[0].low, 0};
    for (const Wide& sum : sums.to_host())
        total = {total.low + sum.low, total.high + sum.high};
    EXPECT_EQ(total.low, kCount * (kCount - 1) / 2);
    EXPECT_EQ(total.high, kCount);
}

__global__ void look_at_wide_results(Checks check, Wide* place) {
    Wide one{1, 2}, other{3, 4}, third{5, 6}, old{};
    *place = one;
    __u128AtomicCAS(place, &other, &third, &old);  // another value than expected
    check.equal(old.low, 1ull);
    check.equal(place->high, 2ull);
    __u128AtomicCAS_block(place, &one, &third, &old);
    check.equal(old.high, 2ull);
    check.equal(place->low, 5ull);
    check.equal(place->high, 6ull);
    __u128AtomicExch_system(place, &other, &old);
    check.equal(old.low, 5ull);
    check.equal(place->high, 4ull);
    __u128AtomicExch(place, &one, &old);
    __u128AtomicExch_block(place, &one, &old);
    __u128AtomicCAS_system(place, &one, &other, &old);
    check.equal(place->low, 3ull);
}
TEST(WideAtomics, ReturnWhatWasThere) {
    if (compute_capability() < 90) GTEST_SKIP() << "needs compute capability 9.0";
    DeviceVector<Wide> place(1);
    run_checks(look_at_wide_results, place.data());
}

__global__ void give_out_tickets(unsigned* next, unsigned* taken) {
    taken[atomicAdd(next, 1)] += 1;
}

TEST(Atomics, ReturnWhatWasThere) {
    DeviceVector<int> i(1);
    DeviceVector<unsigned> u(1);
    DeviceVector<unsigned long long> wide(1);
    DeviceVector<unsigned short> s(2);
    DeviceVector<float> f(1);
    run_checks(look_at_returned_values, i.data(), u.data(), wide.data(), s.data(), f.data());
}

TEST(Atomics, GiveEveryThreadItsOwnTicket) {
    DeviceVector<unsigned> next(1), taken(kThreads);
    give_out_tickets<<<kGrid, kBlock>>>(next.data(), taken.data());
    EXPECT_EQ(taken.to_host(), std::vector<unsigned>(kThreads, 1));
}

// ---- Waiting for other threads ------------------------------------------------------------------

__global__ void add_under_a_lock(int* lock, volatile int* sum) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *sum = *sum + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

__global__ void add_under_an_exchanged_lock(int* lock, volatile int* sum) {
    for (bool done = false; !done;) {
        if (atomicExch(lock, 1) == 0) {
            __threadfence();
            *sum = *sum + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

TEST(Waiting, LocksExclude) {
    DeviceVector<int> lock(1), sum(1);
    add_under_a_lock<<<8, 64>>>(lock.data(), sum.data());
    EXPECT_EQ(sum.to_host()[0], 8 * 64);
    add_under_an_exchanged_lock<<<8, 64>>>(lock.data(), sum.data());
    EXPECT_EQ(sum.to_host()[0], 2 * 8 * 64);
}

// Thread 0 of a block waits for the last one, in one of the ways in which code polls.
constexpr int kWaysToPoll = 6;

__global__ void wait_for_the_last_thread(int way, int* flag, int* message, int* received, unsigned* polls) {
    if (threadIdx.x == blockDim.x - 1) {
        *message = 100 + way;
        __threadfence();
        atomicExch(flag, 1);
    }
    if (threadIdx.x != 0) return;
    const cuda::atomic_ref<int, cuda::thread_scope_device> object(*flag);
    switch (way) {
        case 0:
            while (atomicAdd(flag, 0) == 0)
                ++*polls;
            break;
        case 1:
            while (atomicCAS(flag, 2, 3) == 0)
                ++*polls;
            break;
        case 2:
            while (atomicOr(flag, 0) == 0)
                ++*polls;
            break;
        case 3:
            while (atomicExch(flag, 0) == 0)
                ++*polls;
            break;
        case 4:
            while (object.load(cuda::memory_order_acquire) == 0)
                ++*polls;
            break;
        case 5:
            while (__ldcv(flag) == 0)
                ++*polls;
            break;
    }
    __threadfence();
    *received = *message;
}

class Polling : public ::testing::TestWithParam<int> {};

TEST_P(Polling, LetsOthersRun) {
    DeviceVector<int> flag(1), message(1), received(1);
    DeviceVector<unsigned> polls(1);
    wait_for_the_last_thread<<<1, 64>>>(GetParam(), flag.data(), message.data(), received.data(),
                                        polls.data());
    EXPECT_EQ(received.to_host()[0], 100 + GetParam());
}
INSTANTIATE_TEST_SUITE_P(EveryWay, Polling, ::testing::Range(0, kWaysToPoll));

// Each block hands a running sum to the next one.
__global__ void pass_along(int* ready, volatile int* sums) {
    const unsigned block = blockIdx.x;
    if (threadIdx.x != 0) return;
    if (block > 0) {
        while (atomicAdd(&ready[block - 1], 0) == 0) {
        }
        __threadfence();
    }
    sums[block] = static_cast<int>(block) + (block > 0 ? sums[block - 1] : 0);
    __threadfence();
    atomicExch(&ready[block], 1);
}

TEST(Waiting, BlocksWaitForTheirPredecessor) {
    constexpr int kBlocks = 16;
    DeviceVector<int> ready(kBlocks), sums(kBlocks);
    pass_along<<<kBlocks, 32>>>(ready.data(), sums.data());
    EXPECT_EQ(sums.to_host()[kBlocks - 1], kBlocks * (kBlocks - 1) / 2);
}

// ---- cuda::atomic -------------------------------------------------------------------------------

__device__ cuda::atomic<int, cuda::thread_scope_device> counter{0};
__device__ cuda::std::atomic<unsigned> standard_counter{0};

__global__ void count_with_objects(int* extremes, float* sum) {
    const int id = static_cast<int>(global_thread());
    counter.fetch_add(1, cuda::memory_order_relaxed);
    standard_counter++;
    cuda::atomic_ref<int, cuda::thread_scope_system>(extremes[0]).fetch_min(id - 10);
    cuda::atomic_ref<int, cuda::thread_scope_system>(extremes[1]).fetch_max(id - 10);
    cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
}

__global__ void read_objects(int* counts) {
    counts[0] = counter.load();
    counts[1] = static_cast<int>(standard_counter.load(cuda::std::memory_order_acquire));
}

TEST(AtomicObjects, LoseNothing) {
    DeviceVector<int> extremes(2), counts(2);
    DeviceVector<float> sum(1);
    count_with_objects<<<kGrid, kBlock>>>(extremes.data(), sum.data());
    read_objects<<<1, 1>>>(counts.data());
    EXPECT_EQ(counts.to_host(), std::vector<int>(2, static_cast<int>(kThreads)));
    EXPECT_EQ(extremes.to_host(), (std::vector<int>{-10, static_cast<int>(kThreads) - 11}));
    EXPECT_EQ(sum.to_host()[0], 0.5f * kThreads);
}

__global__ void use_every_operation(Checks check) {
    cuda::atomic<int, cuda::thread_scope_thread> a{5};
    check.equal(a.exchange(6), 5);
    check.equal(a.fetch_sub(2), 6);
    check.equal(a.fetch_or(3), 4);
    check.equal(a.fetch_and(6), 7);
    check.equal(a.fetch_xor(5), 6);
    check.equal(a.fetch_max(10), 3);
    check.equal(a.fetch_min(4), 10);
    int expected = 1;
    check.equal(a.compare_exchange_strong(expected, 8), false);
    check.equal(expected, 4);
    check.equal(
        a.compare_exchange_strong(expected, 8, cuda::memory_order_acq_rel, cuda::memory_order_acquire), true);
    a.store(9, cuda::memory_order_release);
    a = a + 1;
    a += 5;
    check.equal(++a, 16);
    check.equal(a--, 16);
    check.equal(static_cast<int>(a), 15);
    a.notify_all();
    a.wait(14);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
    cuda::std::atomic_thread_fence(cuda::std::memory_order_acquire);
    cuda::std::atomic_flag flag{};
    check.equal(flag.test_and_set(), false);
    check.equal(flag.test_and_set(), true);
    flag.clear();
    check.equal(flag.test(), false);
}
TEST(AtomicObjects, HaveTheStandardOperations) {
    run_checks(use_every_operation);
}

}  // namespace

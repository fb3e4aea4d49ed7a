// The atomic functions that take a memory order and a scope (CUDA 12.8 and newer). Nothing is lost
// between the threads of many blocks, the values returned are the old ones, and what was written
// before a release is read after the acquire that reads it.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include "on_device.cuh"

#ifdef __CUDACC_DEVICE_ATOMIC_BUILTINS__

namespace {

constexpr unsigned kGrid = 24;
constexpr unsigned kBlock = 96;
constexpr unsigned kThreads = kGrid * kBlock;

// ---- What each function leaves behind -----------------------------------------------------------

struct Totals {
    int added, subtracted, smallest, largest;
    unsigned anded, ored, xored, swapped;
    unsigned long long added_wide, ored_wide;
    long long smallest_wide, largest_wide;
    float added_float;
    double subtracted_double;
};

__global__ void accumulate(Totals* totals) {
    const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    const int signed_id = static_cast<int>(id) - 1000;
    __nv_atomic_add(&totals->added, -2, __NV_ATOMIC_RELAXED);
    __nv_atomic_sub(&totals->subtracted, 3, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_min(&totals->smallest, signed_id, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_max(&totals->largest, signed_id, __NV_ATOMIC_RELEASE);
    __nv_atomic_and(&totals->anded, ~(1u << id % 16), __NV_ATOMIC_SEQ_CST);
    __nv_atomic_or(&totals->ored, 1u << id % 32, __NV_ATOMIC_RELAXED);
    __nv_atomic_xor(&totals->xored, id, __NV_ATOMIC_CONSUME);
    __nv_atomic_fetch_add(&totals->added_wide, 1ull << 33, __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_or(&totals->ored_wide, 1ull << id % 64, __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_min(&totals->smallest_wide, signed_id * (1ll << 33), __NV_ATOMIC_ACQUIRE);
    __nv_atomic_fetch_max(&totals->largest_wide, signed_id * (1ll << 33), __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_add(&totals->added_float, 0.5f, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM);
    __nv_atomic_fetch_sub(&totals->subtracted_double, 0.25, __NV_ATOMIC_RELAXED);
    unsigned seen = __nv_atomic_load_n(&totals->swapped, __NV_ATOMIC_RELAXED);
    while (!__nv_atomic_compare_exchange_n(&totals->swapped, &seen, seen + 2, true, __NV_ATOMIC_RELAXED,
                                           __NV_ATOMIC_RELAXED)) {
    }
}
TEST(OrderedAtomics, LoseNothing) {
    Totals start{};
    start.anded = ~0u;
    DeviceVector<Totals> totals(std::vector<Totals>{start});
    accumulate<<<kGrid, kBlock>>>(totals.data());
    const Totals got = totals.to_host()[0];
    const int count = static_cast<int>(kThreads);
    EXPECT_EQ(got.added, -2 * count);
    EXPECT_EQ(got.subtracted, -3 * count);
    EXPECT_EQ(got.smallest, -1000);
    EXPECT_EQ(got.largest, count - 1001);
    EXPECT_EQ(got.anded, 0xFFFF0000u);
    EXPECT_EQ(got.ored, ~0u);
    unsigned xored = 0;
    for (unsigned id = 0; id < kThreads; ++id)
        xored ^= id;
    EXPECT_EQ(got.xored, xored);
    EXPECT_EQ(got.swapped, 2 * kThreads);
    EXPECT_EQ(got.added_wide, static_cast<unsigned long long>(kThreads) << 33);
    EXPECT_EQ(got.ored_wide, ~0ull);
    EXPECT_EQ(got.smallest_wide, -1000 * (1ll << 33));
    EXPECT_EQ(got.largest_wide, (count - 1001) * (1ll << 33));
    EXPECT_EQ(got.added_float, 0.5f * kThreads);
    EXPECT_EQ(got.subtracted_double, -0.25 * kThreads);
}

// ---- What each function returns -----------------------------------------------------------------

struct Pair {
    float x;
    short y, z;
};

__global__ void look_at_results(Checks check, int* i, unsigned* u, unsigned long long* wide, float* f,
                                unsigned char* byte, unsigned short* half, Pair* pair) {
    __nv_atomic_store_n(i, 5, __NV_ATOMIC_RELAXED);
    check.equal(__nv_atomic_load_n(i, __NV_ATOMIC_SEQ_CST), 5);
    check.equal(__nv_atomic_fetch_add(i, 0x7FFFFFFF, __NV_ATOMIC_RELAXED), 5);
    check.equal(*i, -0x7FFFFFFF - 1 + 4);  // wraps around
    check.equal(__nv_atomic_fetch_sub(i, 5, __NV_ATOMIC_RELAXED), -0x7FFFFFFF - 1 + 4);
    check.equal(__nv_atomic_exchange_n(i, 6, __NV_ATOMIC_ACQ_REL), 0x7FFFFFFF);
    check.equal(__nv_atomic_fetch_min(i, -7, __NV_ATOMIC_RELAXED), 6);
    check.equal(__nv_atomic_fetch_max(i, 12, __NV_ATOMIC_RELAXED), -7);
    check.equal(__nv_atomic_fetch_and(i, 10, __NV_ATOMIC_RELAXED), 12);
    check.equal(__nv_atomic_fetch_or(i, 3, __NV_ATOMIC_RELAXED), 8);
    check.equal(__nv_atomic_fetch_xor(i, 1, __NV_ATOMIC_RELAXED), 11);
    check.equal(*i, 10);

    __nv_atomic_store_n(u, 3u, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_BLOCK);
    check.equal(__nv_atomic_fetch_sub(u, 4u, __NV_ATOMIC_RELAXED), 3u);
    check.equal(__nv_atomic_fetch_min(u, 9u, __NV_ATOMIC_RELAXED), ~0u);  // not -1
    check.equal(*u, 9u);

    *wide = 1;
    unsigned long long expected = 2;
    check.equal(__nv_atomic_compare_exchange_n(wide, &expected, 1ull << 60, false, __NV_ATOMIC_ACQ_REL,
                                               __NV_ATOMIC_ACQUIRE),
                false);
    check.equal(expected, 1ull);
    check.equal(__nv_atomic_compare_exchange_n(wide, &expected, 1ull << 60, true, __NV_ATOMIC_RELEASE,
                                               __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE),
                true);
    check.equal(*wide, 1ull << 60);

    // Those that take pointers work with types that are no integers.
    float value = 1.5f, result = 0;
    __nv_atomic_store(f, &value, __NV_ATOMIC_RELAXED);
    __nv_atomic_load(f, &result, __NV_ATOMIC_ACQUIRE);
    check.equal(result, 1.5f);
    value = 2.25f;
    __nv_atomic_exchange(f, &value, &result, __NV_ATOMIC_SEQ_CST);
    check.equal(result, 1.5f);
    check.equal(__nv_atomic_fetch_add(f, 0.5f, __NV_ATOMIC_RELAXED), 2.25f);
    check.equal(__nv_atomic_fetch_sub(f, 0.25f, __NV_ATOMIC_RELAXED), 2.75f);
    check.equal(*f, 2.5f);

    __nv_atomic_store_n(byte, static_cast<unsigned char>(200), __NV_ATOMIC_RELAXED);
    check.equal(static_cast<int>(__nv_atomic_load_n(byte, __NV_ATOMIC_RELAXED)), 200);
    check.equal(static_cast<int>(byte[1]), 7);  // its neighbour
    __nv_atomic_store_n(half, static_cast<unsigned short>(0xFEDC), __NV_ATOMIC_RELAXED);
    unsigned short seen = 0xFEDC;
    check.equal(__nv_atomic_compare_exchange_n(half, &seen, static_cast<unsigned short>(3), false,
                                               __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED),
                true);
    check.equal(static_cast<int>(*half), 3);

    Pair next{2.0f, 3, 4}, old{};
    *pair = {1.0f, -1, -2};
    __nv_atomic_exchange(pair, &next, &old, __NV_ATOMIC_RELAXED);
    check.equal(static_cast<int>(old.z), -2);
    check.equal(
        __nv_atomic_compare_exchange(pair, &old, &next, false, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED),
        false);
    check.equal(old.x, 2.0f);
}
TEST(OrderedAtomics, ReturnWhatWasThere) {
    DeviceVector<int> i(1);
    DeviceVector<unsigned> u(1);
    DeviceVector<unsigned long long> wide(1);
    DeviceVector<float> f(1);
    DeviceVector<unsigned char> byte({1, 7, 7, 7});
    DeviceVector<unsigned short> half(2);
    DeviceVector<Pair> pair(1);
    run_checks(look_at_results, i.data(), u.data(), wide.data(), f.data(), byte.data(), half.data(),
               pair.data());
}

// ---- 16 bytes -----------------------------------------------------------------------------------

struct alignas(16) Wide {
    unsigned long long low, high;
};

__global__ void look_at_wide_results(Checks check, [[maybe_unused]] Wide* place) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    Wide one{1, 2}, other{3, 4}, result{};
    __nv_atomic_store(place, &one, __NV_ATOMIC_RELAXED);
    __nv_atomic_load(place, &result, __NV_ATOMIC_RELAXED);
    check.equal(result.low, 1ull);
    check.equal(result.high, 2ull);
    __nv_atomic_exchange(place, &other, &result, __NV_ATOMIC_RELAXED);
    check.equal(result.high, 2ull);
    check.equal(
        __nv_atomic_compare_exchange(place, &one, &other, false, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED),
        false);
    check.equal(one.low, 3ull);
    check.equal(one.high, 4ull);
    other = {5, 6};
    check.equal(
        __nv_atomic_compare_exchange(place, &one, &other, false, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED),
        true);
    check.equal(place->high, 6ull);
#else
    check.equal(0, 1);
#endif
}
TEST(OrderedAtomics, Of16Bytes) {
    if (compute_capability() < 90) GTEST_SKIP() << "needs compute capability 9.0";
    DeviceVector<Wide> place(1);
    run_checks(look_at_wide_results, place.data());
}

// ---- Order --------------------------------------------------------------------------------------

// Block 0 waits for the last block, which hands over a number.
__global__ void hand_over(int* data, int* flag, int* received) {
    if (blockIdx.x == gridDim.x - 1) {
        *data = 42;
        __nv_atomic_store_n(flag, 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
    }
    if (blockIdx.x == 0) {
        while (__nv_atomic_load_n(flag, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) == 0) {
        }
        *received = *data;
    }
}
__global__ void hand_over_with_fences(int* data, int* flag, int* received) {
    if (blockIdx.x == gridDim.x - 1) {
        *data = 42;
        __nv_atomic_thread_fence(__NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
        __nv_atomic_store_n(flag, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    }
    if (blockIdx.x == 0) {
        while (__nv_atomic_load_n(flag, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) == 0) {
        }
        __nv_atomic_thread_fence(__NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
        *received = *data;
    }
}
TEST(OrderedAtomics, ReleaseAndAcquire) {
    for (auto* const kernel : {hand_over, hand_over_with_fences}) {
        DeviceVector<int> data(1), flag(1), received(1);
        kernel<<<8, 1>>>(data.data(), flag.data(), received.data());
        EXPECT_EQ(received.to_host()[0], 42);
    }
}

// A lock: only one thread at a time has it.
__global__ void count_with_a_lock(int* lock, int* count) {
    bool done = false;
    while (!done) {
        if (__nv_atomic_exchange_n(lock, 1, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) == 0) {
            ++*count;
            __nv_atomic_store_n(lock, 0, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
            done = true;
        }
    }
}
TEST(OrderedAtomics, MakeALock) {
    DeviceVector<int> lock(1), count(1);
    count_with_a_lock<<<16, 64>>>(lock.data(), count.data());
    EXPECT_EQ(count.to_host()[0], 16 * 64);
}

}  // namespace

#endif

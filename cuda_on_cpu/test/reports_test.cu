// What the stand-in says about broken kernels: the error code a GPU would give, and a line on
// stderr that names the kernel, the block, the thread and the place. None of this can run on a GPU,
// or it would end the process's context.
#undef NDEBUG  // assert() is tested in a release build too

#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "on_device.cuh"
#include "reports.cuh"

namespace {

// ---- Addresses ----------------------------------------------------------------------------------

template <class T>
class Allocation {
  public:
    explicit Allocation(std::size_t count) { EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess); }
    ~Allocation() { static_cast<void>(cudaFree(data_)); }
    Allocation(const Allocation&) = delete;
    Allocation& operator=(const Allocation&) = delete;
    T* data() const { return data_; }

  private:
    T* data_ = nullptr;
};

constexpr int kWriteLine = __LINE__ + 2;
__global__ void write_at(int* data, long long index, unsigned thread) {
    if (threadIdx.x == thread) data[index] = 1;
}
constexpr int kReadLine = __LINE__ + 2;
__global__ void read_at(const int* data, long long index, int* out) {
    *out = data[index];
}

TEST(IllegalAddress, PastTheEnd) {
    const Allocation<int> data(1024);  // whole pages: the guard page begins right behind
    const std::string report =
        report_of(cudaErrorIllegalAddress, [&] { write_at<<<3, 64>>>(data.data(), 1024, 37); });
    EXPECT_TRUE(mentions(
        report, {"write_at", "block (", "thread (37,0,0)", "illegal access",
                 "at the first byte past the end of the 4096-byte allocation", at_line(kWriteLine)}));
}

TEST(IllegalAddress, FarPastTheEndOfAnAllocationOfAnySize) {
    const Allocation<int> data(1003);
    const std::string report =
        report_of(cudaErrorIllegalAddress, [&] { write_at<<<1, 1>>>(data.data(), 1003 + 100, 0); });
    EXPECT_TRUE(
        mentions(report, {"400 byte(s) past the end of the 4012-byte allocation", at_line(kWriteLine)}));
}

// At these distances other allocations may lie, whose memory a kernel could use unnoticed.
TEST(IllegalAddress, WithinAMegabyteOfAnAllocation) {
    for (const long long bytes : {8 << 10, 12 << 10, 100 << 10, 1000 << 10}) {
        for (const long long direction : {1, -1}) {
            const std::string report = report_of(cudaErrorIllegalAddress, [=] {
                std::vector<int*> arrays(4);
                for (int*& each : arrays)
                    ASSERT_EQ(cudaMalloc(&each, 4096), cudaSuccess);
                write_at<<<1, 1>>>(arrays[1], direction * bytes / 4, 0);
            });
            EXPECT_TRUE(mentions(report, {"4096-byte allocation at", at_line(kWriteLine),
                                          direction > 0 ? "past the end" : "before"}))
                << direction * bytes;
        }
    }
}

TEST(IllegalAddress, BeforeTheBeginning) {
    const Allocation<int> data(1024);
    const Allocation<int> out(1);
    const std::string report =
        report_of(cudaErrorIllegalAddress, [&] { read_at<<<1, 1>>>(data.data(), -2, out.data()); });
    EXPECT_TRUE(
        mentions(report, {"read_at", "8 byte(s) before the 4096-byte allocation", at_line(kReadLine)}));
}

__global__ void read_by_index(const int* data, const unsigned* index, int* out) {
    *out = data[*index];
}

// Far away, at a place that tells where the index comes from.
TEST(IllegalAddress, ByAnIndexThatNothingHasWritten) {
    const Allocation<int> data(1024);
    const Allocation<unsigned> index(3);  // and one behind, up to the alignment
    const Allocation<int> out(1);
    const auto read = [&](const unsigned* from) {
        return report_of(cudaErrorIllegalAddress,
                         [&] { read_by_index<<<1, 1>>>(data.data(), from, out.data()); });
    };
    EXPECT_TRUE(mentions(read(index.data()), {"element 4294836221 of the 4096-byte allocation",
                                              "that index comes from memory that nothing has written"}));
    EXPECT_TRUE(mentions(read(index.data() + 3), {"element 214", "of the 4096-byte allocation",
                                                  "that index comes from what lies outside an allocation"}));
}

TEST(IllegalAddress, AfterItWasFreed) {
    int* data = nullptr;
    ASSERT_EQ(cudaMalloc(&data, 400), cudaSuccess);
    ASSERT_EQ(cudaFree(data), cudaSuccess);
    const std::string report = report_of(cudaErrorIllegalAddress, [&] { write_at<<<1, 1>>>(data, 3, 0); });
    EXPECT_TRUE(mentions(
        report, {"at byte 12 of the 400-byte allocation", "which has been freed", at_line(kWriteLine)}));
}

TEST(IllegalAddress, Null) {
    const std::string report = report_of(cudaErrorIllegalAddress, [] { write_at<<<1, 1>>>(nullptr, 0, 0); });
    EXPECT_TRUE(mentions(
        report,
        {"write_at", "illegal access to a null pointer: was this array not allocated", at_line(kWriteLine)}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { write_at<<<1, 1>>>(nullptr, 10, 0); }),
                         {"illegal access to 0x28, 40 bytes after a null pointer", at_line(kWriteLine)}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { write_at<<<1, 1>>>(nullptr, -1, 0); }),
                         {"4 bytes before a null pointer", at_line(kWriteLine)}));
}

constexpr int kLateWriteLine = __LINE__ + 4;
__global__ void write_after_waiting(int* data, long long index) {
    __syncthreads();
    __syncwarp();
    if (threadIdx.y == 3 && threadIdx.x == 1) data[index] = 1;
}

TEST(IllegalAddress, InAThreadThatHasWaited) {
    const Allocation<int> data(1024);
    const std::string report = report_of(cudaErrorIllegalAddress, [&] {
        write_after_waiting<<<dim3(1, 2, 1), dim3(8, 4)>>>(data.data(), 1024);
    });
    EXPECT_TRUE(
        mentions(report, {"write_after_waiting", "block (0,", "thread (1,3,0)", at_line(kLateWriteLine)}));
}

// The slack between an allocation's end and its guard page, and that before its beginning.
TEST(IllegalAddress, InTheSlackIsFoundAfterTheLaunch) {
    const Allocation<char> bytes(10);
    const auto overwrite = [](char* data, int index) {
        return report_of(cudaErrorIllegalAddress,
                         [&] { write_at<<<1, 1>>>(reinterpret_cast<int*>(data + index), 0, 0); });
    };
    EXPECT_TRUE(mentions(overwrite(bytes.data(), 11),
                         {"write_at", "wrote 1 byte(s) past the end of the 10-byte allocation"}));
    EXPECT_TRUE(mentions(overwrite(bytes.data(), 10),
                         {"write_at", "wrote the first byte past the end of the 10-byte allocation"}));
    EXPECT_TRUE(mentions(overwrite(bytes.data(), -4), {"wrote 4 byte(s) before the 10-byte allocation"}));
    // Told once only: the next kernel is not blamed for it.
    Allocation<int> out(32);
    set_all<<<1, 32>>>(out.data(), 1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(IllegalAddress, OfHostMemoryIsReportedBeforeTheKernelRuns) {
    std::vector<int> host(100, 7);
    int on_stack = 7;
    for (int* pointer : {host.data(), &on_stack}) {
        const std::string report =
            report_of(cudaErrorIllegalAddress, [&] { write_at<<<1, 1>>>(pointer, 0, 0); });
        EXPECT_TRUE(mentions(report, {"write_at", "argument 1", "host pointer"}));
        EXPECT_EQ(*pointer, 7);
    }
}

__global__ void huge_local_array(int* out, int count) {
    volatile int values[4000000];
    for (int i = 0; i < count; ++i)
        values[i] = i;
    *out = values[count - 1];
}

// Its first elements lie far beyond the stack's guard page.
TEST(IllegalAddress, OfALocalArrayThatNoStackHasRoomFor) {
    const Allocation<int> out(1);
    const std::string report =
        report_of(cudaErrorHardwareStackError, [&] { huge_local_array<<<1, 1>>>(out.data(), 4000000); });
    EXPECT_TRUE(mentions(report, {"huge_local_array", "this thread's stack is full: local arrays too large",
                                  "a thread has 64 KB here, and up to 512 KB on a GPU"}));
}

// The frame of 72 KB ends beyond the guard page, in the stack of another thread. What is written of
// it would be that thread's variables.
__device__ __noinline__ int write_first(int count) {
    volatile int values[18000];
    for (int i = 0; i < count; ++i)
        values[i] = -1;
    return values[count - 1];
}
__global__ void frame_beyond_guard_page(int* out, int count) {
    volatile int kept[500];
    for (int i = 0; i < 500; ++i)
        kept[i] = 1;
    __syncthreads();
    if (threadIdx.x > 0) out[threadIdx.x] = write_first(count);
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < 500; ++i)
        sum += kept[i];
    out[threadIdx.x] = sum;
}

TEST(IllegalAddress, OfAFrameThatEndsInTheStackOfAnotherThread) {
    const Allocation<int> out(64);
    for (const int count : {1, 1000}) {
        const std::string report = report_of(cudaErrorHardwareStackError,
                                             [&] { frame_beyond_guard_page<<<1, 64>>>(out.data(), count); });
        EXPECT_TRUE(mentions(report, {"frame_beyond_guard_page", "this thread's stack is full"}));
    }
}

constexpr int kMemcpyLine = __LINE__ + 2;
__global__ void copy_bytes(int* out, const int* in, std::size_t bytes) {
    memcpy(out, in, bytes);
    out[0] = 1;  // or memcpy returned to the caller of the kernel
}

// The line is the kernel's also where a function of the system has done it. Only a few bytes too
// many: on some CPUs memcpy reads the last ones first.
TEST(IllegalAddress, InAFunctionOfTheSystem) {
    const Allocation<int> in(1024);
    const Allocation<int> out(1024);
    const std::string report =
        report_of(cudaErrorIllegalAddress, [&] { copy_bytes<<<1, 1>>>(out.data(), in.data(), 4096 + 64); });
    EXPECT_TRUE(
        mentions(report, {"copy_bytes", "past the end of the 4096-byte allocation", at_line(kMemcpyLine)}));
}

__global__ void copy_ints(const int* in, int* out) {
    out[threadIdx.x] = in[threadIdx.x];
}

// What is copied there from behind another array is no canary of this one.
TEST(IllegalAddress, ACopyFromSlackToSlackIsFound) {
    const Allocation<int> one(1);
    const Allocation<int> other(1);
    const Allocation<int> third(1);
    const auto copy = [](const Allocation<int>& from, const Allocation<int>& to) {
        return report_of(cudaErrorIllegalAddress, [&] { copy_ints<<<1, 2>>>(from.data(), to.data()); });
    };
    EXPECT_TRUE(mentions(copy(one, other), {"copy_ints", "past the end of the 4-byte allocation"}));
    EXPECT_TRUE(mentions(copy(other, third), {"past the end of the 4-byte allocation"}));
    EXPECT_TRUE(mentions(copy(third, one), {"past the end of the 4-byte allocation"}));
}

__global__ void overrun_dynamic_shared(int index) {
    extern __shared__ int shared[];
    shared[index] = 1;
}

TEST(IllegalAddress, OfDynamicSharedMemory) {
    // 100 bytes leave 28 of slack before the guard page.
    EXPECT_TRUE(
        mentions(report_of(cudaErrorIllegalAddress, [] { overrun_dynamic_shared<<<1, 1, 100>>>(25); }),
                 {"wrote past the end of its 100 bytes of dynamic shared memory"}));
    for (const int index : {2'000, 100'000}) {
        EXPECT_TRUE(mentions(
            report_of(cudaErrorIllegalAddress, [=] { overrun_dynamic_shared<<<1, 1, 100>>>(index); }),
            {"illegal access"}));
    }
    EXPECT_TRUE(
        mentions(report_of(cudaErrorIllegalAddress, [] { overrun_dynamic_shared<<<1, 1, 128>>>(32); }),
                 {"illegal access", "outside the block's dynamic shared memory"}));
}

TEST(IllegalAddress, BeforeDynamicSharedMemory) {
    for (const int bytes : {100, 128, 5000, 4096}) {
        for (const int index : {-1, -8, -200, -1023}) {
            const std::string report =
                report_of(cudaErrorIllegalAddress, [=] { overrun_dynamic_shared<<<1, 1, bytes>>>(index); });
            EXPECT_TRUE(mentions(report, {"dynamic shared memory"})) << bytes << ", " << index;
            const bool at_end =
                mentions(report, {"wrote before the start of its " + std::to_string(bytes) + " bytes"});
            EXPECT_TRUE(at_end || mentions(report, {"illegal access", "outside the block's"})) << report;
        }
        EXPECT_TRUE(mentions(
            report_of(cudaErrorIllegalAddress, [=] { overrun_dynamic_shared<<<1, 1, bytes>>>(-50'000); }),
            {"illegal access", "outside the block's dynamic shared memory"}));
        // What a failed block left there is not another block's fault.
        overrun_dynamic_shared<<<3, 1, bytes>>>(0);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
}

template <int kSize>
__global__ void overrun_shared(int index) {
    __shared__ int tile[kSize];
    tile[index] = 1;
}
__global__ void overrun_one_of_two(int index) {
    __shared__ int tile[7];
    alignas(16) __shared__ int other[7];
    other[0] = 1;
    tile[index] = other[0];
}

TEST(IllegalAddress, BesideASharedVariable) {
    const auto wrote_beside = [](auto kernel, int index) {
        return mentions(report_of(cudaErrorIllegalAddress, [=] { kernel<<<3, 1>>>(index); }),
                        {"wrote outside of the ", " bytes of its __shared__ variable tile",
                         "is an index too large, or negative?"});
    };
    for (const int index : {-64, -5, -1, 33, 34, 40, 33 + 63})
        EXPECT_TRUE(wrote_beside(overrun_shared<33>, index)) << index;
    for (const int index : {-64, -1, 256, 256 + 63})
        EXPECT_TRUE(wrote_beside(overrun_shared<256>, index)) << index;
    for (const int index : {-64, -1, 7, 70})
        EXPECT_TRUE(wrote_beside(overrun_one_of_two, index)) << index;
    overrun_shared<33><<<3, 1>>>(32);
    overrun_shared<256><<<3, 1>>>(255);
    overrun_one_of_two<<<3, 1>>>(6);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

__global__ void overrun_shared_in_block_1(int index) {
    __shared__ int tile[64];
    if (blockIdx.x == 1) tile[index] = 1;
}

TEST(IllegalAddress, FarFromASharedVariable) {
    // A cooperative launch runs each block but the first on an OS thread of the pool.
    for (int index : {25'000, 100'000, 200'000}) {
        void* arguments[] = {&index};
        EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress,
                                       [&] {
                                           cudaLaunchCooperativeKernel(
                                               reinterpret_cast<const void*>(overrun_shared_in_block_1),
                                               dim3(2), dim3(1), arguments, 0, nullptr);
                                       }),
                             {"illegal access", "not far from the block's __shared__ variables"}));
    }
}

__global__ void read_beside_shared(float* out) {
    __shared__ float tile[32];
    extern __shared__ float dynamic[];
    tile[threadIdx.x] = dynamic[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = tile[static_cast<int>(threadIdx.x) - 1];
    out[32 + threadIdx.x] = tile[threadIdx.x + 1];
    out[64 + threadIdx.x] = dynamic[static_cast<int>(threadIdx.x) - 1];
}

TEST(IllegalAddress, WhatLiesBesideSharedMemoryIsNaN) {
    const Allocation<float> out(96);
    read_beside_shared<<<1, 32, 128>>>(out.data());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<float> seen(96);
    ASSERT_EQ(cudaMemcpy(seen.data(), out.data(), 96 * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
    for (std::size_t i = 0; i < seen.size(); ++i)
        EXPECT_EQ(std::isnan(seen[i]), i == 0 || i == 63 || i == 64) << i;
}

// ---- Other faults -------------------------------------------------------------------------------

constexpr int kDivideLine = __LINE__ + 2;
__global__ void divide(int* out, int by) {
    out[threadIdx.x] = 100 / by;
}
__global__ void divide_any(int* out, int what, int by) {
    out[threadIdx.x] = what / by;
}
TEST(Faults, DivisionByZero) {
    const Allocation<int> out(1);
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [&] { divide<<<1, 1>>>(out.data(), 0); }),
                         {"divide", "division by zero", at_line(kDivideLine)}));
#ifdef __x86_64__  // whose instruction faults
    constexpr int kSmallest = std::numeric_limits<int>::min();
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchFailure, [&] { divide_any<<<1, 1>>>(out.data(), kSmallest, -1); }),
                 {"divide_any", "of the smallest number by -1"}));
#endif
}

// Threads that only compute run in a loop (cuda_on_cpu/rows.h). A fault in it has no thread, so the
// threads run once more, one by one.
constexpr int kWriteInRowLine = __LINE__ + 2;
__global__ void write_in_row(int* data, unsigned block, unsigned x, unsigned y, long long index) {
    if (blockIdx.x == block && threadIdx.x == x && threadIdx.y == y) data[index] = 1;
    if (blockIdx.x == 0) data[threadIdx.y * blockDim.x + threadIdx.x] = 2;
}
constexpr int kDivideInRowLine = __LINE__ + 2;
__global__ void divide_in_row(int* out, const int* by) {
    out[threadIdx.x] = 1000 / by[threadIdx.x];
}
__global__ void forget_index(int* index, int* out) {
    const int i = index[threadIdx.x];
    index[threadIdx.x] = 0;
    out[i] = 1;
}

TEST(Rows, AFaultNamesItsThread) {
    for (const unsigned x : {0u, 9u}) {
        for (const unsigned y : {0u, 4u, 6u}) {  // a block of 10 x 7 has 2 warps and 6 threads
            const Allocation<int> data(100);
            const std::string report = report_of(cudaErrorIllegalAddress, [&] {
                write_in_row<<<3, dim3(10, 7)>>>(data.data(), 2, x, y, 1LL << 17);
            });
            const std::string thread = "thread (" + std::to_string(x) + "," + std::to_string(y) + ",0)";
            EXPECT_TRUE(mentions(report, {"block (2,0,0)", thread, at_line(kWriteInRowLine)}));
        }
    }
    const Allocation<int> by(64);
    std::vector<int> divisors(64, 5);
    divisors[33] = 0;
    ASSERT_EQ(cudaMemcpy(by.data(), divisors.data(), 64 * sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchFailure, [&] { divide_in_row<<<1, 64>>>(by.data(), by.data()); }),
                 {"division by zero", "thread (33,0,0)", at_line(kDivideInRowLine)}));
}

constexpr int kWriteInRegionLine = __LINE__ + 6;
__global__ void write_in_region(int* out, unsigned thread, long long offset) {
    __shared__ int own[96];
    own[threadIdx.x] = 1;
    __syncthreads();
    for (int round = 0; round < 2; ++round) {
        if (threadIdx.x == thread && round == 1) out[(own[95 - threadIdx.x] + 1) * offset] = round;
        __syncthreads();
        own[threadIdx.x] = round;
    }
}
__global__ void write_outside_in_region(int* out, int place) {
    __shared__ int own[96];
    own[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 50) own[place] = 2;
    __syncthreads();
    out[threadIdx.x] = own[95 - threadIdx.x];
}

TEST(Rows, AFaultBehindABarrierNamesItsThread) {
    const Allocation<int> data(96);
    for (const unsigned thread : {0u, 33u, 95u}) {
        const std::string report = report_of(
            cudaErrorIllegalAddress, [&] { write_in_region<<<1, 96>>>(data.data(), thread, 1LL << 32); });
        EXPECT_TRUE(mentions(report, {"block (0,0,0)", "thread (" + std::to_string(thread) + ",0,0)",
                                      at_line(kWriteInRegionLine)}));
    }
    EXPECT_TRUE(mentions(
        report_of(cudaErrorIllegalAddress, [&] { write_outside_in_region<<<1, 96>>>(data.data(), 97); }),
        {"write_outside_in_region", "own"}));
}

TEST(Rows, AFaultThatDoesNotComeBackIsReported) {
    const Allocation<int> index(64);
    const Allocation<int> out(64);
    std::vector<int> indices(64, 1);
    indices[33] = 1 << 28;
    ASSERT_EQ(cudaMemcpy(index.data(), indices.data(), 64 * sizeof(int), cudaMemcpyHostToDevice),
              cudaSuccess);
    const std::string report =
        report_of(cudaErrorIllegalAddress, [&] { forget_index<<<1, 64>>>(index.data(), out.data()); });
    EXPECT_TRUE(mentions(report, {"forget_index", "block (0,0,0)", "illegal access"}));
    const bool in_rows =
        std::getenv("CUDA_ON_CPU_LOOPS") == nullptr && std::getenv("CUDA_ON_CPU_ORDER") == nullptr;
#ifdef CUDA_ON_CPU_INSPECT
    EXPECT_TRUE(mentions(report, {"thread (33,0,0)"}));
#else
    EXPECT_EQ(report.find("thread (33,0,0)") == std::string::npos, in_rows) << report;
#endif
}

__device__ __noinline__ int sum_recursively(volatile int* out, int depth) {
    volatile int local[256];
    local[depth % 256] = depth;
    const int rest = depth == 0 ? 0 : sum_recursively(out, depth - 1);
    *out = rest;
    return rest + local[depth % 256];
}
__global__ void overflow_stack(int* out, int depth) {
    *out = sum_recursively(out, depth);
}

TEST(Faults, StackOverflow) {
    const Allocation<int> out(1);
    EXPECT_TRUE(mentions(
        report_of(cudaErrorHardwareStackError, [&] { overflow_stack<<<1, 2>>>(out.data(), 1000000); }),
        {"overflow_stack", "stack is full"}));
}

__global__ void write_past_local_array(int* out, int count) {
    volatile int local[4] = {0, 0, 0, 0};
    for (int i = 0; i < count; ++i)
        local[i] = 0x12345678;
    if (threadIdx.x == 3) *out = local[3];
}

TEST(Faults, AWritePastALocalArrayIsADamagedStack) {
    for (const int count : {8, 16, 40, 1000, 1000000}) {
        const Allocation<int> out(1);
        const auto launch = [&] { write_past_local_array<<<1, 2>>>(out.data(), count); };
        EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, launch),
                             {"write_past_local_array", "thread (",
                              "this thread's stack is damaged: is a local array written past its end?"}))
            << count;
    }
}

struct Row {
    float values[2];
    float* out;
};
__global__ void overwrite_pointer_of(Row* rows, int count) {
    Row& row = rows[threadIdx.x];
    for (int i = 0; i < count; ++i)
        row.values[i] = 1.0f;
    *row.out = row.values[0];
}

TEST(Faults, APointerThatWasOverwrittenIsNamedAsAPossibility) {
    const Allocation<Row> rows(1);
    EXPECT_TRUE(mentions(
        report_of(cudaErrorMisalignedAddress, [&] { overwrite_pointer_of<<<1, 1>>>(rows.data(), 4); }),
        {"overwrite_pointer_of", "a pointer that was overwritten: is a local array written past its end?"}));
}

// A copy, which compilers make one access of 16 bytes; four numbers may be stored one by one.
__global__ void misaligned(float4* out) {
    const auto address = reinterpret_cast<std::uintptr_t>(out) + 4;
    *reinterpret_cast<float4*>(address) = out[2];
}
TEST(Faults, MisalignedVector) {
#ifndef __OPTIMIZE__
    GTEST_SKIP() << "not optimised, the copy is two accesses of 8 bytes, which any address serves";
#endif
    const Allocation<float4> out(4);
    EXPECT_TRUE(mentions(report_of(cudaErrorMisalignedAddress, [&] { misaligned<<<1, 1>>>(out.data()); }),
                         {"misaligned", "multiple of its size"}));
}

constexpr int kAssertLine = __LINE__ + 2;
__global__ void assert_small(int limit) {
    assert(static_cast<int>(threadIdx.x) < limit);
}
TEST(Faults, Assert) {
    EXPECT_TRUE(mentions(
        report_of(cudaErrorAssert, [] { assert_small<<<1, 64>>>(63); }),
        {"assert_small", "thread (63,0,0)", "static_cast<int>(threadIdx.x) < limit", at_line(kAssertLine)}));
}

constexpr int kTrapLine = __LINE__ + 2;
__global__ void trap_one(unsigned thread) {
    if (threadIdx.x == thread) __trap();
}
TEST(Faults, Trap) {
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { trap_one<<<1, 64>>>(9); }),
                         {"trap_one", "__trap", "thread (9,0,0)", at_line(kTrapLine)}));
}

// ---- Barriers and collectives used wrongly ------------------------------------------------------

constexpr int kSplitLine = __LINE__ + 3;
__global__ void split_barriers() {
    if (threadIdx.x < 20) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}
TEST(Misuse, BarriersInTwoBranches) {
    const std::string report = report_of(cudaErrorLaunchFailure, [] { split_barriers<<<1, 40>>>(); });
    EXPECT_TRUE(mentions(report, {"split_barriers", "different barriers", "__syncthreads",
                                  at_line(kSplitLine), at_line(kSplitLine + 2)}));
}

constexpr int kWaitLine = __LINE__ + 4;
__global__ void wait_for_each_other() {
    const unsigned lane = threadIdx.x;
    if (lane < 4) {
        __syncwarp(0x1f);
    } else if (lane == 4) {
        __shfl_sync(0x30, 1, 5);
    } else if (lane == 5) {
        __ballot_sync(0x21, 1);
    } else {
        __syncthreads();
    }
}
TEST(Misuse, Deadlock) {
    const std::string report = report_of(cudaErrorLaunchTimeout, [] { wait_for_each_other<<<1, 40>>>(); });
    EXPECT_TRUE(
        mentions(report, {"wait_for_each_other", "deadlock in block (0,0,0)", "40 thread(s) wait",
                          "lanes 0x0000000f", at_line(kWaitLine), "mask 0x0000001f, missing 0x00000010",
                          "lanes 0x00000010", "__shfl_sync", "mask 0x00000030, missing 0x00000020",
                          "lanes 0x00000020", "__ballot_sync", "mask 0x00000021, missing 0x00000001",
                          "lanes 0xffffffc0", "__syncthreads", "warp 1, lanes 0x000000ff"}));
}

__global__ void read_absent_lane(unsigned mask, int* out) {
    if (threadIdx.x >= 20) return;
    out[threadIdx.x] = __shfl_down_sync(mask, 1, 16);
}
void tell_absent_lane(unsigned mask) {
    setenv("CUDA_ON_CPU_SHUFFLES", "tell", 1);
    DeviceVector<int> out(32);
    read_absent_lane<<<2, 32>>>(mask, out.data());
    if (cudaDeviceSynchronize() != cudaSuccess) std::exit(1);
    std::exit(out.to_host()[0] == 1 ? 0 : 2);
}
TEST(Misuse, AShuffleThatReadsALaneThatHasEndedIsReported) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        tell_absent_lane(0xffffffffu), testing::ExitedWithCode(0),
        "kernel read_absent_lane: .*reports_test.cu:[0-9]+: __shfl_down_sync in lane [0-9]+ reads lane "
        "[23][0-9] of its warp, which has ended \\(it has returned\\)");
}
__global__ void read_absent_lane_in_helper(int* out) {
    if (threadIdx.x >= 20) return;
    out[threadIdx.x] = of_lane_16_further(1);
}
void tell_absent_lane_in_helper() {
    setenv("CUDA_ON_CPU_SHUFFLES", "tell", 1);
    DeviceVector<int> out(32);
    read_absent_lane_in_helper<<<1, 32>>>(out.data());
    std::exit(cudaDeviceSynchronize() == cudaSuccess ? 0 : 1);
}
TEST(Misuse, AShuffleInAHeaderIsReportedWithTheLineThatCallsIt) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(tell_absent_lane_in_helper(), testing::ExitedWithCode(0),
                "reports.cuh:[0-9]+, called in .*reports_test.cu:[0-9]+: __shfl_down_sync in lane");
}
TEST(Misuse, AShuffleThatReadsALaneOutsideItsMaskIsReported) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(tell_absent_lane(0x000fffffu), testing::ExitedWithCode(0),
                "reads lane [23][0-9] of its warp, which the mask 0x000fffff does not name");
}

TEST(Misuse, AWaitForTheDeviceInACaptureNamesTheRemedy) {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(mentions(report, {"cudaDeviceSynchronize: ", "has not started, so nothing can wait for it",
                                  "leaves the waiting to its caller"}));
    EXPECT_NE(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    static_cast<void>(cudaGetLastError());
}

constexpr int kOneLine = __LINE__ + 3;
__global__ void split_barriers_on_one_line() {
    // clang-format off
    if (threadIdx.x < 20) { __syncthreads(); } else { __syncthreads(); }
    // clang-format on
}
TEST(Misuse, TwoBarriersOnOneLineAreTwoPlaces) {
    const std::string report =
        report_of(cudaErrorLaunchFailure, [] { split_barriers_on_one_line<<<1, 40>>>(); });
    EXPECT_TRUE(mentions(report, {"different barriers", at_line(kOneLine), "CUDA_ON_CPU_BARRIERS=any"}));
}

__global__ void exchange_by_halves(int* out) {
    __shared__ int values[64];
    const unsigned t = threadIdx.x;
    values[t] = static_cast<int>(t);
    if (t < 32) {
        __syncthreads();
        out[t] = values[t + 32];
    } else {
        __syncthreads();
        out[t] = values[t - 32];
    }
}
// ctest sets CUDA_ON_CPU_BARRIERS=any for the first test, =whole for the others.
bool barriers_are(const char* rule) {
    const char* const set = std::getenv("CUDA_ON_CPU_BARRIERS");
    return set != nullptr && std::string_view(set) == rule;
}
TEST(Barriers, OfTwoBranchesMeetWhereThatIsAskedFor) {
    if (!barriers_are("any")) GTEST_SKIP() << "needs CUDA_ON_CPU_BARRIERS=any";
    DeviceVector<int> out(64);
    exchange_by_halves<<<1, 64>>>(out.data());
    const std::vector<int> got = out.to_host();
    for (int t = 0; t < 64; ++t)
        EXPECT_EQ(got[t], (t + 32) % 64);
}

constexpr int kBarrierInBranch = __LINE__ + 5;
__global__ void sum_with_a_barrier_in_a_branch() {
    for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) {
            // the other threads end after the last round
            __syncthreads();
        }
    }
}
__global__ void barriers_of_the_first(unsigned count) {
    if (threadIdx.x >= count) return;
    __syncthreads();
    __syncthreads();
}
TEST(Barriers, MayNotBeLeftOutByThreadsThatHaveComeToAnother) {
    if (!barriers_are("whole")) GTEST_SKIP() << "needs CUDA_ON_CPU_BARRIERS=whole";
    barriers_of_the_first<<<2, 64>>>(40);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "those that end before the first barrier count";
    const std::string report =
        report_of(cudaErrorLaunchFailure, [] { sum_with_a_barrier_in_a_branch<<<1, 64>>>(); });
    EXPECT_TRUE(
        mentions(report, {"of the block's", "have ended without this one", at_line(kBarrierInBranch)}))
        << report;
}

__global__ void leave_oneself_out() {
    __any_sync(0xfffffffeu, 1);
}
TEST(Misuse, MaskWithoutTheCaller) {
    const std::string report = report_of(cudaErrorLaunchFailure, [] { leave_oneself_out<<<1, 32>>>(); });
    EXPECT_TRUE(
        mentions(report, {"__any_sync", "0xfffffffe does not name the calling lane 0", "thread (0,0,0)"}));
}

__global__ void disagree() {
    if (threadIdx.x < 16) {
        __shfl_sync(0xffffffffu, 1, 0);
    } else {
        __ballot_sync(0xffffffffu, 1);
    }
}
TEST(Misuse, LanesInDifferentFunctions) {
    const std::string report = report_of(cudaErrorLaunchFailure, [] { disagree<<<1, 32>>>(); });
    EXPECT_TRUE(mentions(report, {"different functions", "__shfl_sync", "__ballot_sync", "mask 0xffffffff"}));
}

__global__ void odd_width() {
    __shfl_sync(0xffffffffu, 1, 0, 12);
}
TEST(Misuse, WidthThatIsNoPowerOfTwo) {
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchFailure, [] { odd_width<<<1, 32>>>(); }),
                         {"width must be a power of two"}));
}

__global__ void shared_too_large() {
    __shared__ int large[30 * 1024 / 4];
    __shared__ int larger[30 * 1024 / 4];
    large[threadIdx.x] = larger[threadIdx.x] = 1;
}
TEST(Misuse, TooMuchStaticSharedMemory) {
    EXPECT_TRUE(mentions(report_of(cudaErrorLaunchOutOfResources, [] { shared_too_large<<<1, 1>>>(); }),
                         {"static shared memory", "49152"}));
}

// ---- After a failure ----------------------------------------------------------------------------

TEST(Sticky, NothingWorksUntilTheReset) {
    const Allocation<int> out(32);
    testing::internal::CaptureStderr();
    trap_one<<<1, 1>>>(0);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "cleared, but not the context, as an H200 does";
    set_all<<<1, 32>>>(out.data(), 3);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure) << "of a launch that was refused";
    std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure); }).join();
    set_all<<<1, 32>>>(out.data(), 3);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    int* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, 4), cudaErrorLaunchFailure);
    int host = 0;
    EXPECT_EQ(cudaMemcpy(&host, out.data(), 4, cudaMemcpyDeviceToHost), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaMemset(out.data(), 0, 4), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaErrorLaunchFailure);
    static_cast<void>(testing::internal::GetCapturedStderr());
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&host, out.data(), 4, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_NE(host, 3) << "the kernel after the failure did not run";
}

constexpr int kWaiters = 257;
__global__ void fail_while_all_wait(int round) {
    __shared__ int shared[kWaiters];
    shared[threadIdx.x] = round;
    for (int i = 0; i < 3; ++i)
        __syncthreads();
    __syncwarp(threadIdx.x < 256 ? 0xffffffffu : 1u);
    if (threadIdx.x == static_cast<unsigned>(round % kWaiters)) __trap();
    __syncthreads();
}
__global__ void sum_with_barriers(int* out) {
    __shared__ int shared[1024];
    shared[threadIdx.x] = static_cast<int>(threadIdx.x);
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = shared[0];
}

TEST(Sticky, ThreadsAreReusableAfterAFailure) {
    for (int round = 0; round < 20; ++round) {
        static_cast<void>(
            report_of(cudaErrorLaunchFailure, [round] { fail_while_all_wait<<<8, kWaiters>>>(round * 37); }));
        DeviceVector<int> out(6);
        sum_with_barriers<<<6, 1024>>>(out.data());
        EXPECT_EQ(out.to_host(), std::vector<int>(6, 1023 * 1024 / 2)) << round;
    }
}

TEST(Handles, ThatAreGoneAreRefused) {
    testing::internal::CaptureStderr();
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    const Allocation<int> out(1);
    set_all<<<1, 1, 0, stream>>>(out.data(), 1);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaGraphLaunch(nullptr, nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGraphDestroy(nullptr), cudaErrorInvalidValue);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"cudaStreamDestroy: this stream does not exist", "kernel launch: this stream",
                          "cudaEventRecord", "cudaGraphLaunch: this graph"}));
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST(Refusals, SayWhatAndWhy) {
    testing::internal::CaptureStderr();
    const Allocation<int> out(10);
    set_all<<<1, 2000>>>(out.data(), 1);
    set_all<<<0, 1>>>(out.data(), 1);
    set_all<<<1, 1, 50000>>>(out.data(), 1);
    std::vector<int> host(11);
    EXPECT_EQ(cudaMemcpy(out.data(), host.data(), 44, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(host.data(), host.data(), 44, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(host.data(), out.data(), 44, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
    EXPECT_TRUE(
        mentions(testing::internal::GetCapturedStderr(),
                 {"set_all: block (2000, 1, 1) has 2000 threads; at most 1024",
                  "grid (0, 1, 1) has no blocks", "50000 bytes of dynamic shared memory; allowed are 49152",
                  "44 bytes: not inside one live", "not device memory", "was not allocated by CUDA"}));
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

// ---- Poison -------------------------------------------------------------------------------------

__global__ void count_not_nan(const float* values, std::size_t count, int* found) {
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) {
        if (!isnan(values[i])) atomicAdd(found, 1);
    }
}

TEST(Poison, FillsFreshDeviceMemory) {
    for (const std::size_t count : {1u, 7u, 1000u, 5000u}) {
        for (int again = 0; again < 2; ++again) {
            const Allocation<float> fresh(count);
            DeviceVector<int> found(1);
            count_not_nan<<<1, 32>>>(fresh.data(), count, found.data());
            EXPECT_EQ(found.to_host()[0], 0) << count;
            ASSERT_EQ(cudaMemset(fresh.data(), 0, count * sizeof(float)), cudaSuccess);
        }
    }
}

__global__ void count_fresh_shared(int* found) {
    __shared__ float fixed[64];
    extern __shared__ float chosen[];
    if (!isnan(fixed[threadIdx.x])) atomicAdd(found, 1);
    if (!isnan(chosen[threadIdx.x])) atomicAdd(found, 1);
    __syncthreads();
    fixed[threadIdx.x] = chosen[threadIdx.x] = 1.0f;
}

TEST(Poison, FillsSharedMemoryOfEveryBlockAnew) {
    DeviceVector<int> found(1);
    for (int again = 0; again < 2; ++again)
        count_fresh_shared<<<10, 64, 64 * sizeof(float)>>>(found.data());
    EXPECT_EQ(found.to_host()[0], 0);
}

// ---- Order, time and threads --------------------------------------------------------------------

__global__ void note_order(int* order, int* next) {
    order[atomicAdd(next, 1)] = static_cast<int>(threadIdx.x);
}

TEST(Order, IsAscendingOrDescendingAsAsked) {
    constexpr int kThreads = 100;
    DeviceVector<int> order(kThreads);
    DeviceVector<int> next(1);
    note_order<<<1, kThreads>>>(order.data(), next.data());
    const std::vector<int> got = order.to_host();
    for (int i = 0; i < kThreads; ++i)
        EXPECT_EQ(got[i], descending() ? kThreads - 1 - i : i);
}

__global__ void who_is_here(unsigned* out) {
    const unsigned lane = threadIdx.x;
    if (lane % 3 == 0) {
        out[lane] = __activemask();
    } else if (lane < 20) {
        out[lane] = __activemask();
    } else {
        out[lane] = 0;
    }
}

TEST(Activemask, HoldsAllLanesOfTheBranch) {
    DeviceVector<unsigned> out(32);
    who_is_here<<<1, 32>>>(out.data());
    const std::vector<unsigned> got = out.to_host();
    for (unsigned lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(got[lane], lane % 3 == 0 ? 0x49249249u : lane < 20 ? ~0x49249249u & 0xfffffu : 0u) << lane;
    }
}

__global__ void wait_for_flag(volatile int* flag, int* data, int* out) {
    const unsigned producer = blockDim.x - 1;
    if (threadIdx.x == producer) {
        *data = 42;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
        __threadfence();
        out[threadIdx.x] = *data;
    }
}

TEST(SpinLoops, WaitForAThreadOfTheBlock) {
    for (const unsigned threads : {2u, 32u, 33u, 256u}) {
        DeviceVector<int> flag(1);
        DeviceVector<int> data(1);
        DeviceVector<int> out(threads);
        wait_for_flag<<<1, threads>>>(flag.data(), data.data(), out.data());
        std::vector<int> expected(threads, 42);
        expected.back() = 0;
        EXPECT_EQ(out.to_host(), expected);
    }
}

__global__ void wait_for_block(volatile int* flags, int* out) {
    // Every block waits for the next one: the last starts the chain.
    if (threadIdx.x == 0) {
        if (blockIdx.x + 1 < gridDim.x) {
            while (flags[blockIdx.x + 1] == 0)
                ;
        }
        out[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
        __threadfence();
        flags[blockIdx.x] = 1;
    }
    __syncthreads();
}

TEST(SpinLoops, WaitForABlockThatComesLater) {
    constexpr unsigned kBlocks = 24;
    DeviceVector<int> flags(kBlocks);
    DeviceVector<int> out(kBlocks);
    wait_for_block<<<kBlocks, 64>>>(flags.data(), out.data());
    const std::vector<int> got = out.to_host();
    for (unsigned b = 0; b < kBlocks; ++b)
        EXPECT_EQ(got[b], static_cast<int>(b) + 1);
}

__global__ void lock_and_count(int* lock, int* count) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *static_cast<volatile int*>(count) = *static_cast<volatile int*>(count) + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
__global__ void lock_with_barrier_inside(int* lock, int* count) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *static_cast<volatile int*>(count) = *static_cast<volatile int*>(count) + 1;
    __threadfence();
    atomicExch(lock, 0);
    __syncthreads();
}

// A flag that another thread of the block sets, and one that a later block sets, are polled in all
// the ways that programs use.
struct ByLoad {
    static __device__ int get(int* flag) { return __ldcg(flag); }
};
__device__ int cached_load(const int* flag) {
    return __ldg(flag);
}
template <int kWay>
__device__ void wait_until_set(int* flag) {
    int value = 0;
    if constexpr (kWay == 0) {
        do {
            value = __ldcg(flag);
        } while (value == 0);
    } else if constexpr (kWay == 1) {
        while (cached_load(flag) == 0)
            ++value;
    } else if constexpr (kWay == 2) {
        do {
            value = *flag;
        } while (value == 0);
    } else if constexpr (kWay == 3) {
        do {
            value = atomicMax(flag, 0);
        } while (value == 0);
    } else if constexpr (kWay == 4) {
    again:
        if (*static_cast<volatile int*>(flag) == 0) goto again;
    } else if constexpr (kWay == 5) {
        for (;;)
            if (__ldcs(flag) != 0) break;
    } else if constexpr (kWay == 6) {
        while (ByLoad::get(flag) == 0) {
            flag[1] += 1;
        }
    } else {
    again_by_load:
        value = __ldca(flag);
        if (value == 0) goto again_by_load;
    }
}
template <int kWay>
__global__ void wait_in_a_way(int* flags) {
    const bool waits = blockIdx.x == 0 && threadIdx.x + 1 < blockDim.x;
    const bool waits_for_block = blockIdx.x == 0 && threadIdx.x + 1 == blockDim.x;
    if (waits) wait_until_set<kWay>(flags);
    if (waits_for_block) wait_until_set<kWay>(flags + 2);
    if (blockIdx.x == 1 && threadIdx.x == 0) atomicExch(flags + 2, 1);
    if (waits_for_block) atomicExch(flags, 1);
}
TEST(SpinLoops, PollInManyWays) {
    const auto flags_after = [](void (*kernel)(int*)) {
        DeviceVector<int> flags(4);
        kernel<<<2, 3>>>(flags.data());
        const std::vector<int> got = flags.to_host();
        return got[0] + got[2];
    };
    for (void (*kernel)(int*) : {wait_in_a_way<0>, wait_in_a_way<1>, wait_in_a_way<2>, wait_in_a_way<3>,
                                 wait_in_a_way<4>, wait_in_a_way<5>, wait_in_a_way<6>, wait_in_a_way<7>})
        EXPECT_EQ(flags_after(kernel), 2);
}

__global__ void spin_barrier(int* arrived, int* out) {
    if (threadIdx.x == 0) atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < static_cast<int>(gridDim.x)) {
    }
    if (threadIdx.x == 0) out[blockIdx.x] = 1;
}
// More than one multiprocessor holds: 32 blocks.
TEST(SpinLoops, JoinAsManyBlocksAsALargeGpuHolds) {
    constexpr unsigned kBlocks = 150;
    DeviceVector<int> arrived(1);
    DeviceVector<int> out(kBlocks);
    spin_barrier<<<kBlocks, 32>>>(arrived.data(), out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(kBlocks, 1));
}

// As programs join a grid: one thread polls, and the others wait for it, each on a stack.
__global__ void join_grid(int* arrived, int* out) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < static_cast<int>(gridDim.x)) {
        }
    }
    __syncthreads();
    if (threadIdx.x == 255) out[blockIdx.x] = 1;
}
bool guard_pages_take_no_mapping() {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool light = madvise(page, 4096, 102) == 0;  // MADV_GUARD_INSTALL
    munmap(page, 4096);
    return light;
}
TEST(SpinLoops, JoinBlocksWhoseThreadsWait) {
    if (!guard_pages_take_no_mapping()) GTEST_SKIP() << "needs Linux 6.13";
    constexpr unsigned kBlocks = 150;
    DeviceVector<int> arrived(1);
    DeviceVector<int> out(kBlocks);
    join_grid<<<kBlocks, 256>>>(arrived.data(), out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(kBlocks, 1));
}
// A scan in one pass: each block works, then waits for the one before. The next ones must not begin
// as long as that one works: they would only take its time.
__global__ void domino(int* flags, int* sums, int* running, int* most) {
    __shared__ int sum[256];
    if (threadIdx.x == 0) atomicMax(most, atomicAdd(running, 1) + 1);
    sum[threadIdx.x] = 1;
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        __syncthreads();
        const int before = threadIdx.x >= stride ? sum[threadIdx.x - stride] : 0;
        __syncthreads();
        sum[threadIdx.x] += before;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        while (atomicAdd(&flags[blockIdx.x], 0) == 0) {
        }
        sums[blockIdx.x + 1] = sums[blockIdx.x] + sum[blockDim.x - 1];
        __threadfence();
        atomicAdd(&flags[blockIdx.x + 1], 1);
        atomicSub(running, 1);
    }
}
TEST(SpinLoops, LetABlockWorkThatOthersWaitFor) {
    constexpr int kBlocks = 1000;
    constexpr int kFew = 250;  // more than 800, where each block that waits lets another one begin
    int fewest = kBlocks;
    // On a busy machine a block may seem to wait while the system does not let it run: up to 100 at
    // once have been seen.
    for (int launch = 0; launch < 5 && fewest > kFew; ++launch) {
        std::vector<int> first_is_set(kBlocks + 1);
        first_is_set[0] = 1;
        DeviceVector<int> flags(first_is_set);
        DeviceVector<int> sums(std::vector<int>(kBlocks + 1));
        DeviceVector<int> running(std::vector<int>(1));
        DeviceVector<int> most(std::vector<int>(1));
        domino<<<kBlocks, 256>>>(flags.data(), sums.data(), running.data(), most.data());
        EXPECT_EQ(sums.to_host()[kBlocks], kBlocks * 256);
        fewest = std::min(fewest, most.to_host()[0]);
    }
    EXPECT_LE(fewest, kFew) << "blocks at once";
}

TEST(Graphs, NameTheFunctionThatACapturedLaunchDoesNotGive) {
    DeviceVector<int> out(1);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    set_all<<<1, 1, 0, stream>>>(out.data(), 1);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphNode_t node = nullptr;
    std::size_t count = 1;
    ASSERT_EQ(cudaGraphGetNodes(graph, &node, &count), cudaSuccess);
    cudaKernelNodeParams params{};
    ASSERT_EQ(cudaGraphKernelNodeGetParams(node, &params), cudaSuccess);
    int* pointer = out.data();
    int value = 2;
    void* arguments[] = {&pointer, &value};
    params.kernelParams = arguments;
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaGraphKernelNodeSetParams(node, &params), cudaErrorInvalidDeviceFunction);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"cudaGraphKernelNodeSetParams", "null pointer", "captured launch"}));
    params.func = reinterpret_cast<void*>(set_all);
    EXPECT_EQ(cudaGraphKernelNodeSetParams(node, &params), cudaSuccess);
    static_cast<void>(cudaGetLastError());
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    EXPECT_EQ(out.to_host()[0], 2);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// Before the first kernel, too.
TEST(HostAccess, OutsideAnAllocationIsReported) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto leave = [](bool release) {
        volatile char* bytes = nullptr;
        cudaMallocManaged(const_cast<char**>(&bytes), 100);
        if (release) cudaFree(const_cast<char*>(bytes));
        for (int i = 0; i < 5000; ++i)
            bytes[i] = 1;
    };
    EXPECT_DEATH(leave(false), "host writes .* past the end of the 100-byte allocation");
    EXPECT_DEATH(leave(true), "host writes .* which has been freed");
}

// As with a GPU: before the first kernel, after one, and after a copy.
TEST(HostAccess, OfDeviceMemoryIsReported) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    int* memory = nullptr;
    std::vector<int> host(100);
    const auto allocate = [&] { cudaMalloc(&memory, 100 * sizeof(int)); };
    const auto run = [&] {
        allocate();
        set_all<<<1, 100>>>(memory, 1);
    };
    const int line = __LINE__ + 1;
    const auto write_third = [&] { static_cast<volatile int*>(memory)[3] = 5; };
    EXPECT_DEATH(
        (allocate(), write_third()),
        "code of the host writes device memory at 0x[0-9a-f]+, at byte 12 of the 400-byte allocation at "
        "0x[0-9a-f]+( of device 0)?, in [^ ]*" +
            at_line(line) + ": only kernels and copies have access to it; expected cudaMemcpy");
    EXPECT_DEATH((run(), write_third()), "host writes device memory");
    EXPECT_DEATH((run(), cudaDeviceSynchronize(), std::memcpy(host.data(), memory, 400)),
                 "host reads device memory at .* 400-byte allocation .*, in [^ ]*reports_test.cu");
    const auto copy = [&] {
        run();
        cudaMemcpy(host.data(), memory, 400, cudaMemcpyDeviceToHost);
        if (host[99] == 1) host[0] = *std::max_element(memory, memory + 100);
    };
    EXPECT_DEATH(copy(), "host reads device memory at .* byte [04] of .*, in [^ ]*reports_test.cu");
    EXPECT_DEATH((run(), std::free(memory)), "8 byte.s. before the 400-byte .*: are free.. or delete called");
}

TEST(HostAccess, OfOtherDeviceMemoryIsReported) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto read = [](const auto& allocate) {
        char* memory = nullptr;
        allocate(&memory);
        static_cast<void>(*static_cast<volatile char*>(memory));
    };
    EXPECT_DEATH(read([](char** memory) { cudaMallocAsync(memory, 100, nullptr); }), "reads device memory");
    std::size_t pitch = 0;
    EXPECT_DEATH(read([&](char** memory) { cudaMallocPitch(memory, &pitch, 100, 100); }),
                 "reads device memory");
    cudaIpcMemHandle_t handle;
    EXPECT_DEATH(read([&](char** memory) {
                     cudaMalloc(memory, 100);
                     cudaIpcGetMemHandle(&handle, *memory);
                     cudaMemset(*memory, 0, 100);
                 }),
                 "reads device memory");
}

TEST(HostAccess, OfMemoryForBothIsAllowed) {
    const auto works = [](int* memory) {
        memory[0] = 1;
        set_all<<<1, 100>>>(memory, 7);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(memory[99], 7);
    };
    int* memory = nullptr;
    ASSERT_EQ(cudaMallocManaged(&memory, 400), cudaSuccess);
    works(memory);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&memory, 400), cudaSuccess);
    works(memory);
    EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
    std::vector<int> registered(100);
    ASSERT_EQ(cudaHostRegister(registered.data(), 400, 0), cudaSuccess);
    works(registered.data());
    EXPECT_EQ(cudaHostUnregister(registered.data()), cudaSuccess);
    cudaMemPoolProps of_host{};
    of_host.allocType = cudaMemAllocationTypePinned;
    of_host.location.type = cudaMemLocationTypeHost;
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaMemPoolCreate(&pool, &of_host), cudaSuccess);
    ASSERT_EQ(cudaMallocFromPoolAsync(&memory, 400, pool, nullptr), cudaSuccess);
    works(memory);
    EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
    EXPECT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
}

TEST(HostAccess, OfDeviceMemoryCanBeAllowed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto access = [] {
        int* memory = nullptr;
        cudaMalloc(&memory, 400);
        set_all<<<1, 100>>>(memory, 7);
        std::_Exit(memory[99]);
    };
    setenv("CUDA_ON_CPU_HOST_ACCESS", "allowed", 1);  // the test runs in a new process, which reads it
    EXPECT_EXIT(access(), testing::ExitedWithCode(7), "");
    unsetenv("CUDA_ON_CPU_HOST_ACCESS");
}

// Of each kind of calls the one that CUDA_ON_CPU_REFUSE names; the others work.
TEST(Refusals, AreOfTheCallThatASettingNames) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto is_refused = [](const std::string& setting) {
        int host = 0;
        int* a = nullptr;
        int* b = nullptr;
        const auto launch = [&] {
            static_cast<void>(cudaGetLastError());  // of an earlier call
            set_all<<<1, 1>>>(a, 5);
            return cudaGetLastError();
        };
        const auto copy = [&] { return cudaMemcpy(&host, a, sizeof host, cudaMemcpyDeviceToHost); };
        const bool of_memory = setting == "cudaMalloc:2";
        const bool right =
            cudaMalloc(&a, 4) == cudaSuccess &&
            cudaMalloc(&b, 4) == (of_memory ? cudaErrorMemoryAllocation : cudaSuccess) &&
            (b == nullptr) == of_memory && cudaMalloc(&b, 4) == cudaSuccess && launch() == cudaSuccess &&
            copy() == cudaSuccess && host == 5 &&
            launch() == (setting == "launch:2" ? cudaErrorLaunchOutOfResources : cudaSuccess) &&
            copy() == (setting == "cudaMemcpy:2" ? cudaErrorInvalidValue : cudaSuccess) &&
            launch() == cudaSuccess && copy() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
        std::_Exit(right ? 0 : 1);
    };
    for (const std::string setting : {"cudaMalloc:2", "cudaMemcpy:2", "launch:2"}) {
        setenv("CUDA_ON_CPU_REFUSE", setting.c_str(), 1);  // the test runs in a new process, which reads it
        EXPECT_EXIT(is_refused(setting), testing::ExitedWithCode(0), "CUDA_ON_CPU_REFUSE names this call");
    }
    unsetenv("CUDA_ON_CPU_REFUSE");
}

// Where memory for their stacks is short, fewer blocks run, and the message says so.
void join_without_room() {
    const rlimit limit{1u << 30, 1u << 30};
    setrlimit(RLIMIT_DATA, &limit);
    DeviceVector<int> arrived(1);
    DeviceVector<int> out(150);
    join_grid<<<150, 256>>>(arrived.data(), out.data());
    std::exit(cudaDeviceSynchronize() == cudaErrorLaunchTimeout ? 0 : 5);
}
TEST(Timeout, ReportsBlocksThatTheSystemHasNoRoomFor) {
    const char* timeout = std::getenv("CUDA_ON_CPU_TIMEOUT");
    if (timeout == nullptr || std::string(timeout) != "1") GTEST_SKIP() << "needs CUDA_ON_CPU_TIMEOUT=1";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(join_without_room(), testing::ExitedWithCode(0),
                "join_grid.*of 150 blocks have not begun.*for more the system has no room");
}

TEST(SpinLoops, TakeALock) {
    DeviceVector<int> lock(1);
    DeviceVector<int> count(1);
    lock_and_count<<<8, 64>>>(lock.data(), count.data());
    lock_with_barrier_inside<<<8, 64>>>(lock.data(), count.data());
    EXPECT_EQ(count.to_host()[0], 2 * 8 * 64);
    EXPECT_EQ(lock.to_host()[0], 0);
}

constexpr int kPollLine = __LINE__ + 2;
__global__ void wait_in_vain(volatile int* flag) {
    while (*flag == 0) {
    }
}

// ctest sets CUDA_ON_CPU_TIMEOUT=1 for this one.
TEST(Timeout, EndsALoopThatPollsInVain) {
    const char* timeout = std::getenv("CUDA_ON_CPU_TIMEOUT");
    if (timeout == nullptr || std::string(timeout) != "1") GTEST_SKIP() << "needs CUDA_ON_CPU_TIMEOUT=1";
    DeviceVector<int> flag(1);
    EXPECT_TRUE(
        mentions(report_of(cudaErrorLaunchTimeout, [&] { wait_in_vain<<<4, 32>>>(flag.data()); }),
                 {"wait_in_vain", "has polled memory for 1 s", at_line(kPollLine), "CUDA_ON_CPU_TIMEOUT"}));
}

__global__ void wait_for_a_block_that_works(volatile int* flag, long long nanoseconds, int* out) {
    if (blockIdx.x == 0) {
        const long long begin = clock64();
        while (clock64() - begin < nanoseconds) {
            *out += 1;
        }
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
        out[1] = 9;
    }
}
TEST(Timeout, IsNoneWhileTheOtherBlockWorks) {
    const char* timeout = std::getenv("CUDA_ON_CPU_TIMEOUT");
    if (timeout == nullptr || std::string(timeout) != "1") GTEST_SKIP() << "needs CUDA_ON_CPU_TIMEOUT=1";
    DeviceVector<int> flag(1);
    DeviceVector<int> out(2);
    wait_for_a_block_that_works<<<2, 1>>>(flag.data(), 1'500'000'000, out.data());
    EXPECT_EQ(out.to_host()[1], 9);
}

__global__ void wait_for_later_blocks(int* arrived) {
    if (threadIdx.x > 0) return;
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < static_cast<int>(gridDim.x)) {
    }
}
TEST(Timeout, ReportsBlocksThatHaveNotBegun) {
    const char* timeout = std::getenv("CUDA_ON_CPU_TIMEOUT");
    if (timeout == nullptr || std::string(timeout) != "1") GTEST_SKIP() << "needs CUDA_ON_CPU_TIMEOUT=1";
    DeviceVector<int> arrived(1);
    EXPECT_TRUE(mentions(
        report_of(cudaErrorLaunchTimeout, [&] { wait_for_later_blocks<<<9999, 1024>>>(arrived.data()); }),
        {"wait_for_later_blocks", "of 9999 blocks have not begun", "CUDA_ON_CPU_THREADS="}));
}

__global__ void work_for(long long nanoseconds, int* out) {
    const long long begin = clock64();
    while (clock64() - begin < nanoseconds) {  // the line to be named
    }
    *out = 1;
}

constexpr int kEndlessLine = __LINE__ + 4;
__global__ void compute_without_end(unsigned* out) {
    unsigned value = *out;
    while (value != 3) {
        value = (value * 5 + 7) & ~1u;
        out[threadIdx.x] += value;
    }
}
// ctest sets CUDA_ON_CPU_LIMIT=1 for this one.
TEST(Limit, EndsAKernelThatNeverEnds) {
    if (std::getenv("CUDA_ON_CPU_LIMIT") == nullptr) GTEST_SKIP() << "needs CUDA_ON_CPU_LIMIT=1";
    DeviceVector<unsigned> out(2);
    const std::string report =
        report_of(cudaErrorLaunchTimeout, [&] { compute_without_end<<<3, 2>>>(out.data()); });
    EXPECT_TRUE(mentions(
        report, {"compute_without_end", "block (", "thread (", "has run for 1 s (CUDA_ON_CPU_LIMIT)"}));
    EXPECT_TRUE(mentions(report, {at_line(kEndlessLine)}) || mentions(report, {at_line(kEndlessLine - 1)}) ||
                mentions(report, {at_line(kEndlessLine + 1)}))
        << report;
    EXPECT_EQ(report.find("has run"), report.rfind("has run")) << report;
}

// ctest sets CUDA_ON_CPU_NOTICE=1 for this one.
TEST(Notice, ASlowKernelTellsOnceWhereItIsAndGoesOn) {
    const char* notice = std::getenv("CUDA_ON_CPU_NOTICE");
    if (notice == nullptr || std::string(notice) != "1") GTEST_SKIP() << "needs CUDA_ON_CPU_NOTICE=1";
    DeviceVector<int> out(1);
    testing::internal::CaptureStderr();
    // None of them takes a second. On a busy machine the first question may come late.
    for (int i = 0; i < 10; ++i)
        work_for<<<1, 1>>>(700'000'000, out.data());
    EXPECT_EQ(out.to_host()[0], 1);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(mentions(report, {"cuda_on_cpu: kernel work_for: still running after 1 s, in ",
                                  "reports_test.cu:", ", block 0, thread 0\n"}));
    EXPECT_EQ(report.find("still"), report.rfind("still")) << report;
}

__global__ void meet_often(int rounds, int* out) {
    for (int i = 0; i < rounds; ++i)
        __syncthreads();
    out[threadIdx.x] = rounds;
}
// Most of the time of such a kernel goes to switches from stack to stack, where no handler can see
// who called whom.
TEST(Notice, AKernelMayBeAskedAnywhere) {
    const char* notice = std::getenv("CUDA_ON_CPU_NOTICE");
    if (notice == nullptr || std::string(notice) != "1") GTEST_SKIP() << "needs CUDA_ON_CPU_NOTICE=1";
    constexpr int kRounds = 30000;
    DeviceVector<int> out(256);
    meet_often<<<1, 256>>>(1, out.data());  // from now on the process has a handler
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::atomic<bool> done{false};
    std::thread asks([&] {
        const pid_t self = gettid();
        while (!done) {
            for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
                const pid_t other = std::stoi(each.path().filename().string());
                if (other != self) tgkill(getpid(), other, SIGUSR2);
            }
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    });
    meet_often<<<1, 256>>>(kRounds, out.data());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    done = true;
    asks.join();
    EXPECT_EQ(out.to_host(), std::vector<int>(256, kRounds));
}

// Runs DISABLED_Other.<test> of this program, which is started by a relative path; what it prints.
std::string output_of_relative_start(const std::string& test) {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command =
        "cd '" + program.parent_path().string() + "' && './" + program.filename().string() +
        "' --gtest_also_run_disabled_tests --gtest_filter=DISABLED_Other." + test + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return "";
    std::string output;
    for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe))
        output += static_cast<char>(byte);
    pclose(pipe);
    return output;
}

TEST(DISABLED_Other, LeavesItsDirectoryAndFails) {
    ASSERT_EQ(chdir("/"), 0);
    DeviceVector<int> out(1);
    write_at<<<1, 1>>>(out.data(), 1 << 20, 0);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST(Lines, AreFoundWhereverTheProgramIs) {
    const std::string report = output_of_relative_start("LeavesItsDirectoryAndFails");
    EXPECT_TRUE(mentions(report, {"write_at", "in ", at_line(kWriteLine)}));
}

__global__ void print_in_pieces() {
    printf("x = %d", static_cast<int>(threadIdx.x));
    __syncthreads();
    if (threadIdx.x == 1) printf(", and\nmore\n");
    printf("end\n");
}

std::string printed(const std::function<void()>& launch) {
    testing::internal::CaptureStdout();
    launch();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    printf("host\n");
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
}

// ctest sets CUDA_ON_CPU_PRINTF=threads for one more run.
TEST(Printf, NamesTheThreadAtTheBeginningOfItsLinesWhereThatIsAskedFor) {
    if (descending()) GTEST_SKIP() << "the order of lines is that of the threads";
    const bool named = std::getenv("CUDA_ON_CPU_PRINTF") != nullptr;
    const std::string text = printed([] { print_in_pieces<<<1, 2>>>(); });
    if (!named) {
        EXPECT_EQ(text, "x = 0x = 1end\n, and\nmore\nend\nhost\n");
        return;
    }
    EXPECT_EQ(text,
              "[block 0, thread 0] x = 0\n[block 0, thread 1] x = 1\n"
              "[block 0, thread 0] end\n[block 0, thread 1] , and\n[block 0, thread 1] more\n"
              "[block 0, thread 1] end\nhost\n");
}

constexpr int kPrintLine = __LINE__ + 2;
__global__ void print_text(const char* format, const char* text) {
    printf(format, text);
}

// Prints a text that the kernel cannot read. Afterwards any thread of the host can print.
void print_unreadable_text(bool is_long) {
    alarm(30);
    constexpr std::size_t kSize = 4096;
    char* freed = nullptr;
    cudaMalloc(&freed, kSize);
    cudaFree(freed);
    char* endless = nullptr;
    cudaMalloc(&endless, kSize);
    cudaMemset(endless, 'x', kSize);
    char* format = nullptr;
    cudaMallocManaged(&format, 16);
    std::strcpy(format, "text: %s\n");
    print_text<<<2, 2>>>(format, is_long ? endless : freed);
    const cudaError_t error = cudaDeviceSynchronize();
    std::thread([] { printf("host\n"); }).join();
    std::fflush(stdout);
    std::exit(error == cudaErrorIllegalAddress ? 0 : 5);
}

TEST(Printf, OfAFreedTextLeavesTheHostFreeToPrint) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(print_unreadable_text(false), testing::ExitedWithCode(0),
                "print_text.*illegal access to .*, in .*" + at_line(kPrintLine));
}

TEST(Printf, OfATextWithoutAnEndLeavesTheHostFreeToPrint) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(print_unreadable_text(true), testing::ExitedWithCode(0), "print_text.*illegal access to ");
}

__global__ void print_long_text() {
    char text[1000];
    for (char& each : text)
        each = 'x';
    text[999] = '\0';
    printf("%s|%d\n", text, printf("%c%5d\n", 'a', 7));
}

TEST(Printf, TakesTextsOfAnyLengthAndReturnsTheirs) {
    if (std::getenv("CUDA_ON_CPU_PRINTF") != nullptr) GTEST_SKIP() << "lines begin with the thread's name";
    EXPECT_EQ(printed([] { print_long_text<<<1, 1>>>(); }),
              "a    7\n" + std::string(999, 'x') + "|7\nhost\n");
}
// Of a system's mappings, an allocation takes two. `more` takes one, so that either can be the
// last.
void allocate_until_refused(bool more) {
    if (more) mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int* memory = nullptr;
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess)
        error = cudaMalloc(&memory, sizeof(int));
    const std::vector<char> of_the_host(4 << 20);
    std::exit(error == cudaErrorMemoryAllocation && of_the_host.back() == 0 ? 0 : 5);
}

TEST(Allocations, BeyondTheSystemsMappingsAreRefused) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    std::size_t most = 0;
    if (!(std::ifstream("/proc/sys/vm/max_map_count") >> most) || most > 200'000)
        GTEST_SKIP() << "the system has " << most << " mappings for a program";
    for (const bool more : {false, true}) {
        EXPECT_EXIT(allocate_until_refused(more), testing::ExitedWithCode(0),
                    "the system gives no more pages to this program, which has [0-9]+ allocations");
    }
}

// The compiler makes puts() of it.
__global__ void print_line_of(const char* text) {
    printf("%s\n", text);
}

TEST(Printf, OfANullTextPrintsNull) {
    if (std::getenv("CUDA_ON_CPU_PRINTF") != nullptr) GTEST_SKIP() << "lines begin with the thread's name";
    EXPECT_EQ(printed([] { print_line_of<<<1, 1>>>(nullptr); }), "(null)\nhost\n");
}

__global__ void print_corner() {
    if (threadIdx.x == 1 && threadIdx.y == 2 && blockIdx.y == 1) printf("here\n");
}

TEST(Printf, NamesAsManyCoordinatesAsThereAreDimensions) {
    const bool named = std::getenv("CUDA_ON_CPU_PRINTF") != nullptr;
    EXPECT_EQ(printed([] { print_corner<<<dim3(1, 2), dim3(2, 3)>>>(); }),
              named ? "[block (0,1), thread (1,2)] here\nhost\n" : "here\nhost\n");
}

unsigned os_threads() {
    unsigned count = 0;
    DIR* directory = opendir("/proc/self/task");
    while (const dirent* entry = readdir(directory))
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}
std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    file >> total >> resident;
    return resident * 4096;
}

__global__ void note_blocks_at_once(int* running, int* most) {
    if (threadIdx.x == 0) {
        atomicMax(most, atomicAdd(running, 1) + 1);
        const long long start = clock64();
        while (clock64() - start < 2000000)
            __threadfence();
        atomicSub(running, 1);
    }
    __syncthreads();
}

TEST(OsThreads, AreAsManyAsAsked) {
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    const char* asked = std::getenv("CUDA_ON_CPU_THREADS");
    const int expected =
        asked != nullptr ? std::atoi(asked) : static_cast<int>(std::thread::hardware_concurrency());
    EXPECT_EQ(properties.multiProcessorCount, expected);
    DeviceVector<int> running(1);
    DeviceVector<int> most(1);
    note_blocks_at_once<<<40, 32>>>(running.data(), most.data());
    EXPECT_EQ(most.to_host()[0], expected);
}

__global__ void wait_for_all_blocks(int* passed) {
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) atomicAdd(passed, 1);
}
__global__ void __cluster_dims__(8, 1, 1) wait_for_the_cluster(int* passed) {
    cooperative_groups::this_cluster().sync();
    if (threadIdx.x == 0) atomicAdd(passed, 1);
}

// A process that may not have the memory for more OS threads. In a process of its own: the limit
// stays.
void launch_without_room_for_os_threads() {
    int* passed = nullptr;
    if (cudaMalloc(&passed, sizeof(int)) != cudaSuccess || cudaMemset(passed, 0, sizeof(int)) != cudaSuccess)
        std::exit(1);
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages;
    const rlim_t bytes = pages * 4096 + (1u << 20);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
    wait_for_the_cluster<<<8, 32>>>(passed);
    if (cudaDeviceSynchronize() != cudaErrorLaunchOutOfResources) std::exit(3);
    cudaDeviceReset();
    void* arguments[] = {&passed};
    const cudaError_t refused =
        cudaLaunchCooperativeKernel(wait_for_all_blocks, dim3(2), dim3(32), arguments, 0, nullptr);
    if (refused != cudaSuccess || cudaDeviceSynchronize() != cudaErrorLaunchOutOfResources) std::exit(4);
    cudaDeviceReset();
    int count = 1;
    cudaMemcpy(&count, passed, sizeof count, cudaMemcpyDeviceToHost);
    std::exit(count == 0 ? 0 : 5);
}

TEST(OsThreads, ThatTheSystemRefusesEndTheLaunch) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(launch_without_room_for_os_threads(), testing::ExitedWithCode(0),
                "wait_for_the_cluster.*needs 8 OS threads at once, and the system refuses");
}

TEST(ManyLaunches, LeakNeitherMemoryNorThreads) {
    DeviceVector<int> out(64);
    const auto launch_many = [&out](int times) {
        for (int i = 0; i < times; ++i) {
            // Large blocks now and then: they take long, and one leaks 1,024 stacks.
            sum_with_barriers<<<2, i % 8 == 0 ? 1024 : 64>>>(out.data());
            const Allocation<int> temporary(1000);
            set_all<<<2, 32>>>(temporary.data(), i);
        }
    };
    launch_many(1200);  // freed addresses stay reserved for a while: fill that store first
    const unsigned threads = os_threads();
    // On a busy machine an OS thread may get its first block late, and touch its stacks only then.
    // A leak grows each time.
    std::size_t grown = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
        const std::size_t before = resident_bytes();
        launch_many(600);
        const std::size_t after = resident_bytes();
        grown = after > before ? after - before : 0;
        if (grown < 2u << 20) break;
    }
    EXPECT_EQ(os_threads(), threads);
    EXPECT_LT(grown, 2u << 20);
}

}  // namespace

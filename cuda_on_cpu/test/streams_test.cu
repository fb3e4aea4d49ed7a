// Streams: kernels that wait for later kernels or for the host, host functions, what synchronises
// with what. Every test holds with every CUDA_ON_CPU_STREAMS. The tests named Late... hold on the
// stand-in where work runs late only: there a synchronisation or an event that is missing shows.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"
#include "stream_and_event.hpp"

namespace {

// A kernel is loaded at its first launch, which may wait for kernels that run: here one may wait
// for it.
[[maybe_unused]] const bool kLoadsAllKernelsFirst = setenv("CUDA_MODULE_LOADING", "EAGER", 1) == 0;

__global__ void wait_for(volatile int* flag, int value, int* out) {
    while (*flag != value) {
    }
    *out = value;
}
__global__ void wait_in_body(volatile int* flag, int* out) {
    int rounds = 0;
    while (*flag == 0)
        ++rounds;
    *out = rounds >= 0 ? 7 : 0;
}
__global__ void set(int* to, int value) {
    *to = value;
}
__global__ void copy_one(int* to, const int* from) {
    *to = *from;
}
__global__ void count(int* launches) {
    ++*launches;
}
__global__ void times_two_plus(int* value, int more) {
    *value = 2 * *value + more;
}

// Ints in pinned memory, all 0.
class Pinned {
  public:
    explicit Pinned(std::size_t count) {
        EXPECT_EQ(cudaHostAlloc(&memory_, count * sizeof(int), cudaHostAllocMapped), cudaSuccess);
        for (std::size_t i = 0; i < count; ++i)
            memory_[i] = 0;
    }
    ~Pinned() { EXPECT_EQ(cudaFreeHost(memory_), cudaSuccess); }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    operator int*() const { return memory_; }

  private:
    int* memory_ = nullptr;
};

// Device memory that is 0 before the test goes on.
class Zeros : public DeviceVector<int> {
  public:
    explicit Zeros(std::size_t count) : DeviceVector<int>(std::vector<int>(count, 0)) {
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
};

TEST(Streams, WaitForALaterKernelInAnother) {
    const Stream first;
    const Stream second;
    Zeros flag(1);
    Zeros out(1);
    wait_for<<<1, 1, 0, first>>>(flag.data(), 5, out.data());
    set<<<1, 1, 0, second>>>(flag.data(), 5);
    ASSERT_EQ(cudaStreamSynchronize(first), cudaSuccess);
    EXPECT_EQ(out.to_host()[0], 5);
}

TEST(Streams, WaitForTheHost) {
    const Pinned flag(1);
    Zeros out(1);
    wait_in_body<<<1, 32>>>(flag, out.data());
    *static_cast<volatile int*>(flag) = 1;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(out.to_host()[0], 7);
}

TEST(Streams, HandShakeWithTheHost) {
    const Stream stream;
    const Pinned flags(2);
    Zeros out(2);
    wait_for<<<1, 1, 0, stream>>>(flags, 1, flags + 1);
    volatile int* const from_kernel = flags + 1;
    volatile int* const to_kernel = flags;
    *to_kernel = 1;
    while (*from_kernel == 0) {
    }
    set<<<1, 1, 0, stream>>>(out.data(), 3);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(out.to_host()[0], 3);
}

// What comes behind a kernel that waits, in its own stream, waits with it: copies, events and host
// functions too.
TEST(Streams, KeepTheirOrderBehindAKernelThatWaits) {
    const Stream stream;
    const Pinned flag(1);
    const Pinned copied(1);
    const Event behind;
    Zeros value(1);
    std::atomic<int> calls{0};
    wait_for<<<1, 1, 0, stream>>>(flag, 1, value.data());
    times_two_plus<<<1, 1, 0, stream>>>(value.data(), 1);
    ASSERT_EQ(cudaMemcpyAsync(copied, value.data(), sizeof(int), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(
                  stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls),
              cudaSuccess);
    ASSERT_EQ(cudaEventRecord(behind, stream), cudaSuccess);
    times_two_plus<<<1, 1, 0, stream>>>(value.data(), 1);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    EXPECT_EQ(cudaEventQuery(behind), cudaErrorNotReady);
    float milliseconds = 0;
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, behind, behind), cudaErrorNotReady);
    static_cast<void>(cudaGetLastError());
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(*copied, 0);
    *static_cast<volatile int*>(flag) = 1;
    ASSERT_EQ(cudaEventSynchronize(behind), cudaSuccess);
    EXPECT_EQ(*copied, 3);
    EXPECT_EQ(calls, 1);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
    EXPECT_EQ(value.to_host()[0], 7);
}

TEST(Streams, EndWhenTheyAreAskedAgainAndAgain) {
    const Stream stream;
    const Event done;
    const Pinned copied(1);
    Zeros value(1);
    set<<<1, 1, 0, stream>>>(value.data(), 4);
    ASSERT_EQ(cudaMemcpyAsync(copied, value.data(), sizeof(int), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    ASSERT_EQ(cudaEventRecord(done, stream), cudaSuccess);
    cudaError_t state = cudaErrorNotReady;
    while ((state = cudaEventQuery(done)) == cudaErrorNotReady) {
    }
    static_cast<void>(cudaGetLastError());
    EXPECT_EQ(state, cudaSuccess);
    EXPECT_EQ(*copied, 4);
}

TEST(Streams, OfTheLegacyKindSynchroniseWithBlockingOnes) {
    const Stream blocking(cudaStreamDefault);
    const Stream other(cudaStreamDefault);
    Zeros value(1);
    for (int i = 0; i < 4; ++i) {
        set<<<1, 1, 0, blocking>>>(value.data(), i);
        times_two_plus<<<1, 1>>>(value.data(), 1);
        times_two_plus<<<1, 1, 0, other>>>(value.data(), 3);
        times_two_plus<<<1, 1>>>(value.data(), 0);
        int back = 0;
        ASSERT_EQ(cudaMemcpy(&back, value.data(), sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
        EXPECT_EQ(back, ((i * 2 + 1) * 2 + 3) * 2);
    }
}

// A pageable source is read before the call returns; so it may change afterwards.
TEST(Streams, StagePageableSources) {
    const Stream stream;
    Zeros value(2);
    int source = 6;
    ASSERT_EQ(cudaMemcpyAsync(value.data(), &source, sizeof source, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    source = 8;
    copy_one<<<1, 1, 0, stream>>>(value.data() + 1, value.data());
    int back = 0;
    ASSERT_EQ(cudaMemcpyAsync(&back, value.data() + 1, sizeof back, cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_EQ(back, 6) << "a copy to pageable memory is complete when the call returns";
}

// The same while another stream captures.
TEST(Streams, StagePageableSourcesBesideACapture) {
    const Stream capturing;
    const Stream stream;
    Zeros value(1);
    ASSERT_EQ(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeRelaxed), cudaSuccess);
    int source = 1;
    ASSERT_EQ(cudaMemcpyAsync(value.data(), &source, sizeof source, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    source = 2;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(capturing, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    int back = 0;
    ASSERT_EQ(cudaMemcpyAsync(&back, value.data(), sizeof back, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    EXPECT_EQ(back, 1);
}

TEST(Streams, FinishWhenTheyAreDestroyed) {
    const Pinned copied(1);
    Zeros value(1);
    {
        const Stream stream;
        set<<<1, 1, 0, stream>>>(value.data(), 9);
        ASSERT_EQ(cudaMemcpyAsync(copied, value.data(), sizeof(int), cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(*copied, 9);
}

TEST(Streams, FreeMemoryInTheirOrder) {
    const Stream stream;
    const Pinned copied(1);
    int* memory = nullptr;
    ASSERT_EQ(cudaMallocAsync(&memory, sizeof(int), stream), cudaSuccess);
    set<<<1, 1, 0, stream>>>(memory, 2);
    ASSERT_EQ(cudaMemcpyAsync(copied, memory, sizeof(int), cudaMemcpyDeviceToHost, stream), cudaSuccess);
    ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(*copied, 2);
    set<<<1, 1, 0, stream>>>(copied, 3);
    int* other = nullptr;
    ASSERT_EQ(cudaMalloc(&other, sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaFree(other), cudaSuccess);  // waits for the device
    EXPECT_EQ(*copied, 3);
}

TEST(HostFunctions, MayWaitForTheHost) {
    const Stream stream;
    Zeros value(1);
    std::atomic<int> flag{0};
    ASSERT_EQ(cudaLaunchHostFunc(
                  stream,
                  [](void* wanted) {
                      while (*static_cast<std::atomic<int>*>(wanted) == 0)
                          std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  },
                  &flag),
              cudaSuccess);
    set<<<1, 1, 0, stream>>>(value.data(), 1);
    flag = 1;
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(value.to_host()[0], 1);
}

// On a GPU such a call may also wait for ever.
#ifdef CUDA_ON_CPU
TEST(HostFunctions, MayNotCallCuda) {
    const Stream stream;
    cudaError_t seen = cudaSuccess;
    ASSERT_EQ(
        cudaLaunchHostFunc(
            stream, [](void* error) { *static_cast<cudaError_t*>(error) = cudaStreamSynchronize(nullptr); },
            &seen),
        cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(seen, cudaErrorNotPermitted);
}
#endif

// ---- What is missing shows where work runs late -------------------------------------------------

std::string setting() {
    const char* text = std::getenv("CUDA_ON_CPU_STREAMS");
    return text == nullptr ? "" : text;
}

class Late : public testing::Test {
  protected:
    void SetUp() override {
        if (setting() != "late") GTEST_SKIP() << "CUDA_ON_CPU_STREAMS is not late";
    }
};

TEST_F(Late, HostReadsWithoutSynchronising) {
    int* managed = nullptr;
    ASSERT_EQ(cudaMallocManaged(&managed, sizeof(int)), cudaSuccess);
    set<<<1, 1>>>(managed, 1);
    unsigned early = static_cast<unsigned>(*managed);
    EXPECT_EQ(early >> 16, 0xFFFDu) << "poison: nothing has written it yet";
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(*managed, 1);
    ASSERT_EQ(cudaFree(managed), cudaSuccess);
}

TEST_F(Late, CopyToPinnedMemoryIsReadEarly) {
    const Stream stream;
    const Pinned copied(1);
    DeviceVector<int> value{std::vector<int>{5}};
    ASSERT_EQ(cudaMemcpyAsync(copied, value.data(), sizeof(int), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_EQ(*copied, 0);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(*copied, 5);
}

TEST_F(Late, PinnedSourceIsChangedTooEarly) {
    const Stream stream;
    const Pinned source(1);
    Zeros value(1);
    *source = 5;
    ASSERT_EQ(cudaMemcpyAsync(value.data(), source, sizeof(int), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    *source = 6;
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(value.to_host()[0], 6);
}

TEST_F(Late, ProgramEndsBeforeItsWork) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto forget_to_wait = [] {
        int* memory = nullptr;
        cudaMalloc(&memory, sizeof(int));
        set<<<1, 1>>>(memory, 1);
        std::exit(0);
    };
    EXPECT_EXIT(forget_to_wait(), testing::ExitedWithCode(0), "1 operation.* have not ended");
}

// A host that waits by itself, out of sight, waits for some seconds longer.
TEST_F(Late, WorkRunsAllTheSameIfTheHostCallsNothing) {
    const Pinned flag(1);
    set<<<1, 1>>>(flag, 1);
    const std::atomic_ref<int> seen(*flag);
    for (int i = 0; i < 200 && seen.load() == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(seen.load(), 1);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

int result_of_two_streams(bool with_event) {
    const Stream producer;
    const Stream consumer;
    const Event produced;
    Zeros values(2);
    set<<<1, 1, 0, producer>>>(values.data(), 5);
    if (with_event) {
        EXPECT_EQ(cudaEventRecord(produced, producer), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(consumer, produced), cudaSuccess);
    }
    copy_one<<<1, 1, 0, consumer>>>(values.data() + 1, values.data());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return values.to_host()[1];
}

TEST(Events, OrderTwoStreams) {
    for (int i = 0; i < 20; ++i)
        ASSERT_EQ(result_of_two_streams(true), 5);
}

// The work of a blocking stream comes behind that of the legacy stream, and so does a record in it.
TEST(Events, OfABlockingStreamWaitForTheLegacyStream) {
    const Stream blocking(cudaStreamDefault);
    const Event recorded;
    for (const cudaStream_t stream : {static_cast<cudaStream_t>(blocking), cudaStreamPerThread}) {
        const Stream other;
        Zeros values(2);
        set<<<1, 1>>>(values.data(), 5);
        ASSERT_EQ(cudaEventRecord(recorded, stream), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(other, recorded), cudaSuccess);
        copy_one<<<1, 1, 0, other>>>(values.data() + 1, values.data());
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(values.to_host()[1], 5);
    }
}

TEST_F(Late, EventIsMissing) {
    EXPECT_EQ(result_of_two_streams(false), 0);
}

TEST(Random, SeedShowsAMissingEventAndIsRepeatable) {
    if (setting().find("random") == std::string::npos) GTEST_SKIP() << "CUDA_ON_CPU_STREAMS is not random";
    int wrong = 0;
    for (int i = 0; i < 20; ++i)
        wrong += result_of_two_streams(false) == 5 ? 0 : 1;
    EXPECT_GT(wrong, 0);
    EXPECT_LT(wrong, 20);
}

__global__ void append(int* log, int value) {
    log[++log[0]] = value;
}

// A missing event may show only where a stream is several tasks ahead of another one.
TEST(Random, AStreamRunsFarAheadOfAnotherOne) {
    if (setting().find("random") == std::string::npos) GTEST_SKIP() << "CUDA_ON_CPU_STREAMS is not random";
    constexpr int kTasks = 6;
    constexpr int kTrials = 20;
    int far_ahead[2] = {};
    cudaStream_t streams[2];
    for (int trial = 0; trial < kTrials; ++trial) {
        const Pinned log(2 * kTasks + 1);
        for (cudaStream_t& stream : streams)
            ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
        for (int task = 0; task < kTasks; ++task)
            for (int s = 0; s < 2; ++s)
                append<<<1, 1, 0, streams[s]>>>(log, s);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        ASSERT_EQ(log[0], 2 * kTasks);
        for (int s = 0; s < 2; ++s)
            far_ahead[s] += std::count(&log[1], &log[1] + kTasks, s) == kTasks;
        for (const cudaStream_t stream : streams)
            ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
    EXPECT_GT(far_ahead[0], 0);
    EXPECT_GT(far_ahead[1], 0);
}

// What comes behind a kernel that waits is in the queue, whatever the order of streams is. The test
// of many launches (many_launches_test.cu) has no such kernel.
TEST(Streams, HoldManyLaunchesBehindAKernelThatWaits) {
#ifndef CUDA_ON_CPU
    GTEST_SKIP() << "on an H100 the launches did not return while the kernel waited";
#endif
    constexpr int kLaunches = 10'000;
    const Pinned flag(1);
    Zeros out(1);
    Zeros launches(1);
    wait_in_body<<<1, 1>>>(flag, out.data());
    for (int i = 0; i < kLaunches; ++i)
        count<<<1, 1>>>(launches.data());
    *static_cast<volatile int*>(flag) = 1;
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(launches.to_host()[0], kLaunches);
}

// Hints: no result depends on them.
TEST(Attributes, AreKeptAndCopied) {
    cudaStream_t first = nullptr, second = nullptr;
    ASSERT_EQ(cudaStreamCreate(&first), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&second), cudaSuccess);
    DeviceVector<int> data(64);
    cudaStreamAttrValue value{};
    value.accessPolicyWindow.base_ptr = data.data();
    value.accessPolicyWindow.num_bytes = 256;
    value.accessPolicyWindow.hitRatio = 0.5f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    EXPECT_EQ(cudaStreamSetAttribute(first, cudaStreamAttributeAccessPolicyWindow, &value), cudaSuccess);
    EXPECT_EQ(cudaStreamCopyAttributes(second, first), cudaSuccess);
    cudaStreamAttrValue back{};
    EXPECT_EQ(cudaStreamGetAttribute(second, cudaStreamAttributeAccessPolicyWindow, &back), cudaSuccess);
    EXPECT_EQ(back.accessPolicyWindow.num_bytes, 256u);
    EXPECT_EQ(back.accessPolicyWindow.hitProp, cudaAccessPropertyPersisting);
    value.accessPolicyWindow.hitRatio = 1.5f;
    EXPECT_EQ(cudaStreamSetAttribute(first, cudaStreamAttributeAccessPolicyWindow, &value),
              cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_EQ(cudaCtxResetPersistingL2Cache(), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
}

}  // namespace

// Several devices. On the stand-in there are three (CUDA_ON_CPU_DEVICES); on a machine with one GPU
// the tests are skipped.
#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cuda/atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "on_device.cuh"

namespace {

// Before the stand-in reads it.
const int environment_is_set = setenv("CUDA_ON_CPU_DEVICES", "3", 0);

// An error of the given code; it is cleared.
testing::AssertionResult gives(cudaError_t got, cudaError_t expected) {
    static_cast<void>(cudaGetLastError());
    if (got == expected) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "got " << cudaGetErrorName(got);
}

class Devices : public testing::Test {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
        if (count < 2) GTEST_SKIP() << "there is one device";
        count_ = count;
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    }
    void TearDown() override { EXPECT_EQ(cudaSetDevice(0), cudaSuccess); }
    bool peers() {
        int there = 0;
        int back = 0;
        EXPECT_EQ(cudaDeviceCanAccessPeer(&there, 0, 1), cudaSuccess);
        EXPECT_EQ(cudaDeviceCanAccessPeer(&back, 1, 0), cudaSuccess);
        return there != 0 && back != 0;
    }
    int count_ = 0;
};

// While it lives, another device is current.
class On {
  public:
    explicit On(int device) {
        EXPECT_EQ(cudaGetDevice(&before_), cudaSuccess);
        EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    }
    ~On() { EXPECT_EQ(cudaSetDevice(before_), cudaSuccess); }
    On(const On&) = delete;
    On& operator=(const On&) = delete;

  private:
    int before_ = 0;
};

int* ints_on(int device, std::size_t count) {
    const On on(device);
    int* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, count * sizeof(int)), cudaSuccess);
    return data;
}

cudaStream_t stream_on(int device) {
    const On on(device);
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

std::vector<int> read(const int* data, std::size_t count) {
    std::vector<int> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), data, count * sizeof(int), cudaMemcpyDefault), cudaSuccess);
    return values;
}

__global__ void fill(int* data, int first) {
    data[threadIdx.x] = first + static_cast<int>(threadIdx.x);
}

__global__ void add(const int* from, int* to) {
    to[threadIdx.x] += from[threadIdx.x];
}

std::vector<int> counted(int first, int count) {
    std::vector<int> values;
    for (int i = 0; i < count; ++i)
        values.push_back(first + i);
    return values;
}

// --- The current device --------------------------------------------------------------------------

TEST_F(Devices, EachHostThreadHasItsCurrentOne) {
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    int of_other = -1;
    std::thread([&] { EXPECT_EQ(cudaGetDevice(&of_other), cudaSuccess); }).join();
    int here = -1;
    ASSERT_EQ(cudaGetDevice(&here), cudaSuccess);
    EXPECT_EQ(here, 1);
    EXPECT_EQ(of_other, 0);
    EXPECT_TRUE(gives(cudaSetDevice(count_), cudaErrorInvalidDevice));
    ASSERT_EQ(cudaGetDevice(&here), cudaSuccess);
    EXPECT_EQ(here, 1) << "a refused call changes nothing";
}

TEST_F(Devices, HaveNamesOfTheirOwnOnTheBus) {
    std::set<std::string> names;
    for (int device = 0; device < count_; ++device) {
        char name[32] = "";
        ASSERT_EQ(cudaDeviceGetPCIBusId(name, sizeof name, device), cudaSuccess);
        names.insert(name);
        int found = -1;
        ASSERT_EQ(cudaDeviceGetByPCIBusId(&found, name), cudaSuccess);
        EXPECT_EQ(found, device);
    }
    EXPECT_EQ(static_cast<int>(names.size()), count_);
}

TEST_F(Devices, MemoryBelongsToTheOneThatWasCurrent) {
    int* const on_0 = ints_on(0, 16);
    int* const on_1 = ints_on(1, 16);
    cudaPointerAttributes attributes{};
    ASSERT_EQ(cudaPointerGetAttributes(&attributes, on_0), cudaSuccess);
    EXPECT_EQ(attributes.device, 0);
    ASSERT_EQ(cudaPointerGetAttributes(&attributes, on_1 + 3), cudaSuccess);
    EXPECT_EQ(attributes.device, 1);
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    EXPECT_EQ(cudaFree(on_0), cudaSuccess);
    EXPECT_EQ(cudaFree(on_1), cudaSuccess);
}

TEST_F(Devices, CountTheirOwnMemory) {
    constexpr std::size_t kBytes = std::size_t{8} << 20;
    std::size_t total = 0;
    std::size_t before = 0;
    std::size_t after = 0;
    {
        const On on(1);
        ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
        ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
    }
    int* const on_1 = ints_on(1, kBytes / sizeof(int));
    {
        const On on(1);
        ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
        EXPECT_LE(after + kBytes, before);
        EXPECT_LE(before, total);
    }
    EXPECT_EQ(cudaFree(on_1), cudaSuccess);
}

// --- Streams and events --------------------------------------------------------------------------

TEST_F(Devices, ALaunchIntoAnothersStreamIsRefused) {
    const cudaStream_t of_1 = stream_on(1);
    int* const data = ints_on(1, 32);
    fill<<<1, 32, 0, of_1>>>(data, 1);
    EXPECT_TRUE(gives(cudaPeekAtLastError(), cudaErrorInvalidResourceHandle));
    {
        const On on(1);
        fill<<<1, 32, 0, of_1>>>(data, 7);
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(of_1), cudaSuccess) << "another device's stream can be waited for";
    EXPECT_EQ(read(data, 32), counted(7, 32));
    EXPECT_EQ(cudaFree(data), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(of_1), cudaSuccess);
}

TEST_F(Devices, AnEventIsRecordedInStreamsOfItsDevice) {
    const cudaStream_t of_0 = stream_on(0);
    const cudaStream_t of_1 = stream_on(1);
    cudaEvent_t event_0 = nullptr;
    cudaEvent_t event_1 = nullptr;
    ASSERT_EQ(cudaEventCreate(&event_0), cudaSuccess);
    {
        const On on(1);
        ASSERT_EQ(cudaEventCreate(&event_1), cudaSuccess);
    }
    EXPECT_TRUE(gives(cudaEventRecord(event_0, of_1), cudaErrorInvalidResourceHandle));
    EXPECT_TRUE(gives(cudaEventRecord(event_1, nullptr), cudaErrorInvalidResourceHandle));
    EXPECT_EQ(cudaEventRecord(event_0, of_0), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event_1, of_1), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(of_1, event_0), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(of_0, event_1), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event_0), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event_1), cudaSuccess);
    float milliseconds = 0;
    EXPECT_TRUE(gives(cudaEventElapsedTime(&milliseconds, event_0, event_1), cudaErrorInvalidResourceHandle));
    for (const cudaEvent_t event : {event_0, event_1})
        EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (const cudaStream_t stream : {of_0, of_1})
        EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// A chain over two devices: each step waits for the event of the one before.
TEST_F(Devices, AnEventOrdersWorkOfTwo) {
    constexpr int kThreads = 64;
    int* const on_0 = ints_on(0, kThreads);
    int* const on_1 = ints_on(1, kThreads);
    const cudaStream_t of_0 = stream_on(0);
    const cudaStream_t of_1 = stream_on(1);
    cudaEvent_t filled = nullptr;
    cudaEvent_t copied = nullptr;
    ASSERT_EQ(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming), cudaSuccess);
    fill<<<1, kThreads, 0, of_0>>>(on_0, 100);
    ASSERT_EQ(cudaEventRecord(filled, of_0), cudaSuccess);
    {
        const On on(1);
        ASSERT_EQ(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(of_1, filled), cudaSuccess);
        ASSERT_EQ(cudaMemcpyPeerAsync(on_1, 1, on_0, 0, kThreads * sizeof(int), of_1), cudaSuccess);
        ASSERT_EQ(cudaEventRecord(copied, of_1), cudaSuccess);
        add<<<1, kThreads, 0, of_1>>>(on_1, on_1);
    }
    ASSERT_EQ(cudaStreamWaitEvent(of_0, copied), cudaSuccess);
    fill<<<1, kThreads, 0, of_0>>>(on_0, 0);
    ASSERT_EQ(cudaStreamSynchronize(of_0), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(of_1), cudaSuccess);
    std::vector<int> expected;
    for (int i = 0; i < kThreads; ++i)
        expected.push_back(2 * (100 + i));
    EXPECT_EQ(read(on_1, kThreads), expected);
    EXPECT_EQ(read(on_0, kThreads), counted(0, kThreads));
    for (const cudaEvent_t event : {filled, copied})
        EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (const cudaStream_t stream : {of_0, of_1})
        EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFree(on_0), cudaSuccess);
    EXPECT_EQ(cudaFree(on_1), cudaSuccess);
}

// --- Copies --------------------------------------------------------------------------------------

TEST_F(Devices, CopyToEachOther) {
    constexpr int kCount = 48;
    constexpr std::size_t kBytes = kCount * sizeof(int);
    int* const on_0 = ints_on(0, kCount);
    int* const on_1 = ints_on(1, kCount);
    fill<<<1, kCount>>>(on_0, 5);
    ASSERT_EQ(cudaMemcpyPeer(on_1, 1, on_0, 0, kBytes), cudaSuccess);
    EXPECT_EQ(read(on_1, kCount), counted(5, kCount));
    fill<<<1, kCount>>>(on_0, 6);
    ASSERT_EQ(cudaMemcpy(on_1, on_0, kBytes, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(read(on_1, kCount), counted(6, kCount));
    fill<<<1, kCount>>>(on_0, 8);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const cudaStream_t of_1 = stream_on(1);
    ASSERT_EQ(cudaMemcpyAsync(on_1, on_0, kBytes, cudaMemcpyDeviceToDevice, of_1), cudaSuccess)
        << "a copy may be issued to another device's stream";
    ASSERT_EQ(cudaStreamSynchronize(of_1), cudaSuccess);
    EXPECT_EQ(read(on_1, kCount), counted(8, kCount));
    EXPECT_TRUE(gives(cudaMemcpyPeer(on_1, count_, on_0, 0, kBytes), cudaErrorInvalidDevice));
    EXPECT_EQ(cudaStreamDestroy(of_1), cudaSuccess);
    EXPECT_EQ(cudaFree(on_0), cudaSuccess);
    EXPECT_EQ(cudaFree(on_1), cudaSuccess);
}

// --- Peer access ---------------------------------------------------------------------------------

TEST_F(Devices, PeerAccessIsEnabledOnce) {
    if (!peers()) GTEST_SKIP() << "the devices are no peers";
    EXPECT_TRUE(gives(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled));
    ASSERT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_TRUE(gives(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled));
    {
        const On on(1);
        EXPECT_TRUE(gives(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled))
            << "it holds in one direction";
    }
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
    EXPECT_TRUE(gives(cudaDeviceEnablePeerAccess(count_, 0), cudaErrorInvalidDevice));
    int value = -1;
    ASSERT_EQ(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1), cudaSuccess);
    EXPECT_EQ(value, 1);
    EXPECT_TRUE(gives(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 1),
                      cudaErrorInvalidDevice));
}

TEST_F(Devices, AKernelReadsAndWritesAPeersMemory) {
    if (!peers()) GTEST_SKIP() << "the devices are no peers";
    constexpr int kThreads = 32;
    int* const on_0 = ints_on(0, kThreads);
    int* const on_1 = ints_on(1, kThreads);
    ASSERT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    fill<<<1, kThreads>>>(on_1, 10);
    fill<<<1, kThreads>>>(on_0, 20);
    add<<<1, kThreads>>>(on_1, on_0);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(read(on_1, kThreads), counted(10, kThreads));
    std::vector<int> expected;
    for (int i = 0; i < kThreads; ++i)
        expected.push_back(30 + 2 * i);
    EXPECT_EQ(read(on_0, kThreads), expected);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
    EXPECT_EQ(cudaFree(on_0), cudaSuccess);
    EXPECT_EQ(cudaFree(on_1), cudaSuccess);
}

TEST_F(Devices, ManagedAndPinnedMemoryIsForAll) {
    constexpr int kThreads = 32;
    int* managed = nullptr;
    int* pinned = nullptr;
    ASSERT_EQ(cudaMallocManaged(&managed, kThreads * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&pinned, kThreads * sizeof(int)), cudaSuccess);
    for (int device = 0; device < count_; ++device) {
        const On on(device);
        fill<<<1, kThreads>>>(managed, device);
        fill<<<1, kThreads>>>(pinned, device + 1);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(std::vector<int>(managed, managed + kThreads), counted(device, kThreads));
        EXPECT_EQ(std::vector<int>(pinned, pinned + kThreads), counted(device + 1, kThreads));
    }
    EXPECT_EQ(cudaFree(managed), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(Devices, APoolSaysWhoMayReachItsMemory) {
    if (!peers()) GTEST_SKIP() << "the devices are no peers";
    constexpr int kThreads = 32;
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 1), cudaSuccess);
    cudaMemPool_t of_0 = nullptr;
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&of_0, 0), cudaSuccess);
    EXPECT_NE(pool, of_0);
    int* data = nullptr;
    const cudaStream_t of_1 = stream_on(1);
    ASSERT_EQ(cudaMallocFromPoolAsync(&data, kThreads * sizeof(int), pool, of_1), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(of_1), cudaSuccess);
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtReadWrite;
    cudaMemLocation here{cudaMemLocationTypeDevice, 0};
    ASSERT_EQ(cudaMemPoolGetAccess(&flags, pool, &here), cudaSuccess);
    EXPECT_EQ(flags, cudaMemAccessFlagsProtNone);
    cudaMemAccessDesc access{};
    access.location = here;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    ASSERT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
    ASSERT_EQ(cudaMemPoolGetAccess(&flags, pool, &here), cudaSuccess);
    EXPECT_EQ(flags, cudaMemAccessFlagsProtReadWrite);
    fill<<<1, kThreads>>>(data, 3);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(read(data, kThreads), counted(3, kThreads));
    ASSERT_EQ(cudaFreeAsync(data, of_1), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(of_1), cudaSuccess);
    access.flags = cudaMemAccessFlagsProtNone;
    EXPECT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(of_1), cudaSuccess);
}

// --- Kernels that meet ---------------------------------------------------------------------------

using Flag = cuda::atomic_ref<int, cuda::thread_scope_system>;

// Two kernels that hand a number to and fro, through flags in managed memory.
__global__ void ping_pong(int* flags, int rank, int rounds, int* sum) {
    for (int round = 1; round <= rounds; ++round) {
        const int awaited = rank == 0 ? round - 1 : round;
        while (Flag(flags[1 - rank]).load(cuda::memory_order_acquire) < awaited) {
        }
        *sum += round;
        Flag(flags[rank]).store(round, cuda::memory_order_release);
    }
}

TEST_F(Devices, KernelsOfTwoWaitForEachOther) {
    if (!peers()) GTEST_SKIP() << "the devices are no peers";
    constexpr int kRounds = 20;
    for (const bool default_streams : {true, false}) {
        int* flags = nullptr;
        ASSERT_EQ(cudaMallocManaged(&flags, 2 * sizeof(int)), cudaSuccess);
        flags[0] = flags[1] = 0;
        int* sums[2];
        cudaStream_t streams[2] = {nullptr, nullptr};
        for (const int device : {0, 1}) {
            sums[device] = ints_on(device, 1);
            const On on(device);
            ASSERT_EQ(cudaMemset(sums[device], 0, sizeof(int)), cudaSuccess);
            ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
            if (!default_streams) streams[device] = stream_on(device);
        }
        for (const int device : {0, 1}) {
            const On on(device);
            ping_pong<<<1, 1, 0, streams[device]>>>(flags, device, kRounds, sums[device]);
            ASSERT_EQ(cudaGetLastError(), cudaSuccess);
        }
        for (const int device : {0, 1}) {
            const On on(device);
            ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
            EXPECT_EQ(read(sums[device], 1), std::vector<int>{kRounds * (kRounds + 1) / 2});
            EXPECT_EQ(cudaFree(sums[device]), cudaSuccess);
            if (!default_streams) {
                EXPECT_EQ(cudaStreamDestroy(streams[device]), cudaSuccess);
            }
        }
        EXPECT_EQ(cudaFree(flags), cudaSuccess);
    }
}

// The same through flags in the other's own memory: a kernel polls its memory, which the peer
// writes.
__global__ void ping_pong_of_peers(int* mine, int* of_peer, int rank, int rounds) {
    for (int round = 1; round <= rounds; ++round) {
        const int awaited = rank == 0 ? round - 1 : round;
        while (Flag(*mine).load(cuda::memory_order_acquire) < awaited) {
        }
        Flag(*of_peer).store(round, cuda::memory_order_release);
    }
}

TEST_F(Devices, KernelsOfPeersWaitForEachOther) {
    if (!peers()) GTEST_SKIP() << "the devices are no peers";
    constexpr int kRounds = 20;
    int* flags[2];
    for (const int device : {0, 1}) {
        flags[device] = ints_on(device, 1);
        const On on(device);
        ASSERT_EQ(cudaMemset(flags[device], 0, sizeof(int)), cudaSuccess);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        ASSERT_EQ(cudaDeviceEnablePeerAccess(1 - device, 0), cudaSuccess);
    }
    for (const int device : {0, 1}) {
        const On on(device);
        ping_pong_of_peers<<<1, 1>>>(flags[device], flags[1 - device], device, kRounds);
        ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    }
    for (const int device : {0, 1}) {
        const On on(device);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    for (const int device : {0, 1}) {
        const On on(device);
        EXPECT_EQ(read(flags[device], 1), std::vector<int>{kRounds}) << "device " << device;
        EXPECT_EQ(cudaDeviceDisablePeerAccess(1 - device), cudaSuccess);
    }
    for (int* const flag : flags)
        EXPECT_EQ(cudaFree(flag), cudaSuccess);
}

// Several host threads, each with a device of its own.
TEST_F(Devices, HostThreadsDriveOneEach) {
    constexpr int kThreads = 256;
    constexpr int kRounds = 50;
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int device = 0; device < count_; ++device) {
        threads.emplace_back([&right, device] {
            EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
            int* a = nullptr;
            int* b = nullptr;
            EXPECT_EQ(cudaMalloc(&a, kThreads * sizeof(int)), cudaSuccess);
            EXPECT_EQ(cudaMalloc(&b, kThreads * sizeof(int)), cudaSuccess);
            EXPECT_EQ(cudaMemset(b, 0, kThreads * sizeof(int)), cudaSuccess);
            for (int round = 0; round < kRounds; ++round) {
                fill<<<1, kThreads>>>(a, device);
                add<<<1, kThreads>>>(a, b);
            }
            std::vector<int> expected;
            for (int i = 0; i < kThreads; ++i)
                expected.push_back(kRounds * (device + i));
            if (read(b, kThreads) == expected) ++right;
            EXPECT_EQ(cudaFree(a), cudaSuccess);
            EXPECT_EQ(cudaFree(b), cudaSuccess);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(right, count_);
}

// --- __device__ variables ------------------------------------------------------------------------

__constant__ int factor = 1;
__device__ int counter;

__global__ void multiply_and_count(int* data) {
    data[threadIdx.x] *= factor;
    atomicAdd(&counter, 1);
}

TEST_F(Devices, HaveVariablesOfTheirOwn) {
    constexpr int kThreads = 32;
    for (int device = 0; device < count_; ++device) {
        const On on(device);
        const int value = 10 + device;
        ASSERT_EQ(cudaMemcpyToSymbol(factor, &value, sizeof value), cudaSuccess);
        const int none = 0;
        ASSERT_EQ(cudaMemcpyToSymbol(counter, &none, sizeof none), cudaSuccess);
    }
    std::vector<int*> data;
    for (int device = 0; device < count_; ++device) {
        data.push_back(ints_on(device, kThreads));
        const On on(device);
        fill<<<1, kThreads>>>(data.back(), 1);
        for (int launch = 0; launch <= device; ++launch)
            multiply_and_count<<<1, kThreads>>>(data.back());
    }
    for (int device = 0; device < count_; ++device) {
        const On on(device);
        int counted_here = 0;
        ASSERT_EQ(cudaMemcpyFromSymbol(&counted_here, counter, sizeof counted_here), cudaSuccess);
        EXPECT_EQ(counted_here, kThreads * (device + 1)) << "device " << device;
        int power = 1;
        for (int launch = 0; launch <= device; ++launch)
            power *= 10 + device;
        EXPECT_EQ(read(data[static_cast<std::size_t>(device)], 2), (std::vector<int>{power, 2 * power}));
        EXPECT_EQ(cudaFree(data[static_cast<std::size_t>(device)]), cudaSuccess);
    }
}

// --- Graphs --------------------------------------------------------------------------------------

TEST_F(Devices, NoGraphRecordsAPeerCopy) {
    int* const on_0 = ints_on(0, 1);
    int* const on_1 = ints_on(1, 1);
    const cudaStream_t stream = stream_on(0);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_TRUE(
        gives(cudaMemcpyPeerAsync(on_1, 1, on_0, 0, sizeof(int), stream), cudaErrorStreamCaptureUnsupported));
    cudaGraph_t graph = nullptr;
    EXPECT_TRUE(gives(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated));
}

// A capture that goes from one device to the other and back.
TEST_F(Devices, AGraphHasNodesOfTwo) {
    constexpr int kThreads = 32;
    int* const on_0 = ints_on(0, kThreads);
    int* const on_1 = ints_on(1, kThreads);
    const cudaStream_t of_0 = stream_on(0);
    const cudaStream_t of_1 = stream_on(1);
    cudaEvent_t forth = nullptr;
    cudaEvent_t back = nullptr;
    ASSERT_EQ(cudaEventCreateWithFlags(&forth, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(of_0, cudaStreamCaptureModeGlobal), cudaSuccess);
    fill<<<1, kThreads, 0, of_0>>>(on_0, 40);
    ASSERT_EQ(cudaEventRecord(forth, of_0), cudaSuccess);
    {
        const On on(1);
        ASSERT_EQ(cudaEventCreateWithFlags(&back, cudaEventDisableTiming), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(of_1, forth), cudaSuccess);
        ASSERT_EQ(cudaMemcpyAsync(on_1, on_0, kThreads * sizeof(int), cudaMemcpyDefault, of_1), cudaSuccess);
        add<<<1, kThreads, 0, of_1>>>(on_1, on_1);
        ASSERT_EQ(cudaEventRecord(back, of_1), cudaSuccess);
    }
    ASSERT_EQ(cudaStreamWaitEvent(of_0, back), cudaSuccess);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(of_0, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(executable, of_0), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(of_0), cudaSuccess);
    std::vector<int> expected;
    for (int i = 0; i < kThreads; ++i)
        expected.push_back(2 * (40 + i));
    EXPECT_EQ(read(on_1, kThreads), expected);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (const cudaEvent_t event : {forth, back})
        EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (const cudaStream_t stream : {of_0, of_1})
        EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFree(on_0), cudaSuccess);
    EXPECT_EQ(cudaFree(on_1), cudaSuccess);
}

// --- The driver API ------------------------------------------------------------------------------

TEST_F(Devices, ADriversContextIsOfOne) {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    int count = 0;
    ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, count_);
    CUcontext primary[2];
    for (const int device : {0, 1}) {
        CUdevice handle = -1;
        ASSERT_EQ(cuDeviceGet(&handle, device), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&primary[device], handle), CUDA_SUCCESS);
    }
    EXPECT_NE(primary[0], primary[1]);
    ASSERT_EQ(cuCtxSetCurrent(primary[1]), CUDA_SUCCESS);
    CUdevice device = -1;
    ASSERT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
    EXPECT_EQ(device, 1);
    int of_runtime = -1;
    ASSERT_EQ(cudaGetDevice(&of_runtime), cudaSuccess);
    EXPECT_EQ(of_runtime, 1);
    CUdeviceptr memory = 0;
    ASSERT_EQ(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
    int ordinal = -1;
    ASSERT_EQ(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory), CUDA_SUCCESS);
    EXPECT_EQ(ordinal, 1);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    CUcontext current = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, primary[0]) << "cudaSetDevice makes the primary context current";
    CUdeviceptr here = 0;
    ASSERT_EQ(cuMemAlloc(&here, 64), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyPeer(here, primary[0], memory, primary[1], 64), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(here), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
    CUcontext made = nullptr;
    ASSERT_EQ(cuCtxPushCurrent(primary[1]), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPopCurrent(&made), CUDA_SUCCESS);
    EXPECT_EQ(made, primary[1]);
    ASSERT_EQ(cudaGetDevice(&of_runtime), cudaSuccess);
    EXPECT_EQ(of_runtime, 0);
    for (const int each : {0, 1})
        EXPECT_EQ(cuDevicePrimaryCtxRelease(each), CUDA_SUCCESS);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace

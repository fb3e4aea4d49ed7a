// Several host threads that use one device at once. tsan_test.sh runs this with ThreadSanitizer,
// which then finds what the threads share without a lock.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"
#include "stream_and_event.hpp"

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 20;
constexpr unsigned kBlocks = 4;
constexpr unsigned kBlock = 32;

__global__ void add(int* values, int value) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, value);
    __syncthreads();
    values[blockIdx.x * blockDim.x + threadIdx.x] += sum / static_cast<int>(blockDim.x);
}
// Takes so long that another host thread launches in the meantime.
__global__ void set_slowly(unsigned* value) {
    unsigned random = *value;
    for (int i = 0; i < 100'000'000; ++i)
        random = random * 1664525 + 1013904223;
    *value = random == 0 ? 2 : 1;
}
// Leaves time for another kernel between the load and the store.
__global__ void add_one_slowly(int* value) {
    const int before = *value;
    unsigned random = static_cast<unsigned>(before);
    for (int i = 0; i < 500'000; ++i)
        random = random * 1664525 + 1013904223;
    *value = before + (random == 0 ? 2 : 1);
}
__global__ void add_ten(unsigned* value) {
    *value += 10;
}
__global__ void copy_when_set(int* out, int* flag) {
    while (atomicAdd_system(flag, 0) == 0) {
    }
    out[threadIdx.x] = 2;
}

// Calls `work(thread)` in several host threads, which begin together.
void in_host_threads(const std::function<void(int)>& work) {
    std::atomic<int> arrived{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            ++arrived;
            while (arrived < kThreads)
                std::this_thread::yield();
            work(thread);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
}

std::vector<int> all(int value) {
    return std::vector<int>(kBlocks * kBlock, value);
}

TEST(HostThreads, LaunchIntoTheDefaultStream) {
    in_host_threads([](int thread) {
        DeviceVector<int> values(all(0));
        for (int round = 0; round < kRounds; ++round)
            add<<<kBlocks, kBlock>>>(values.data(), thread);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(values.to_host(), all(kRounds * thread));
    });
}

// One stream carries out its work in order, whoever has issued it.
void expect_no_lost_additions(cudaStream_t stream) {
    DeviceVector<int> value(std::vector<int>{0});
    in_host_threads([&](int) {
        for (int round = 0; round < kRounds; ++round)
            add_one_slowly<<<1, 1, 0, stream>>>(value.data());
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    });
    EXPECT_EQ(value.to_host(), std::vector<int>{kThreads * kRounds});
}
TEST(HostThreads, AddToTheSameValueInOneStream) {
    expect_no_lost_additions(nullptr);
    const Stream own;
    expect_no_lost_additions(own);
}

TEST(HostThreads, CopyAllOfAnArrayOrNothing) {
    constexpr std::size_t kValues = 1 << 18;
    DeviceVector<int> ones(std::vector<int>(kValues, 1));
    DeviceVector<int> twos(std::vector<int>(kValues, 2));
    DeviceVector<int> values(std::vector<int>(kValues, 1));
    DeviceVector<int> seen(kThreads * kValues);
    in_host_threads([&](int thread) {
        int* const own = seen.data() + static_cast<std::size_t>(thread) * kValues;
        for (int round = 0; round < kRounds; ++round) {
            ASSERT_EQ(cudaMemcpy(values.data(), (thread % 2 == 0 ? ones : twos).data(), kValues * sizeof(int),
                                 cudaMemcpyDeviceToDevice),
                      cudaSuccess);
            ASSERT_EQ(cudaMemcpy(own, values.data(), kValues * sizeof(int), cudaMemcpyDeviceToDevice),
                      cudaSuccess);
            std::vector<int> copied(kValues);
            ASSERT_EQ(cudaMemcpy(copied.data(), own, kValues * sizeof(int), cudaMemcpyDeviceToHost),
                      cudaSuccess);
            ASSERT_EQ(copied, std::vector<int>(kValues, copied[0])) << "some ones, some twos";
        }
    });
}

// In a process of its own: while a kernel of the first host thread that uses the device runs, a
// second one issues its first work. Is that done behind the kernel? On a GPU, and here.
void expect_order(const std::function<void(unsigned*)>& work_of_second, unsigned expected) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto run = [&] {
        unsigned* value = nullptr;
        std::atomic<bool> ready{false};
        std::chrono::steady_clock::time_point begin, end, second_end;
        std::thread first([&] {
            cudaMalloc(&value, sizeof(unsigned));
            cudaMemset(value, 0, sizeof(unsigned));
            cudaDeviceSynchronize();
            begin = std::chrono::steady_clock::now();
            ready = true;
            set_slowly<<<1, 1>>>(value);
            cudaDeviceSynchronize();
            end = std::chrono::steady_clock::now();
        });
        std::thread second([&] {
            while (!ready)
                std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            work_of_second(value);
            cudaDeviceSynchronize();
            second_end = std::chrono::steady_clock::now();
        });
        first.join();
        second.join();
        unsigned result = 0;
        cudaMemcpy(&result, value, sizeof result, cudaMemcpyDeviceToHost);
        std::fprintf(stderr, "%s: %u, %s\n", cudaGetErrorName(cudaGetLastError()), result,
                     second_end - begin > (end - begin) / 2 ? "in order" : "too early");
        std::exit(0);
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(0), "cudaSuccess: " + std::to_string(expected) + ", in order");
}
TEST(HostThreads, BeginWithAKernelBehindWorkOfTheFirstOne) {
    expect_order([](unsigned* value) { add_ten<<<1, 1>>>(value); }, 11);
}
TEST(HostThreads, BeginWithAHostFunctionBehindWorkOfTheFirstOne) {
    expect_order(
        [](unsigned*) {
            cudaLaunchHostFunc(
                nullptr, [](void*) {}, nullptr);
        },
        1);
}

TEST(HostThreads, LaunchIntoStreamsOfTheirOwn) {
    for (const unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
        in_host_threads([flags](int thread) {
            const Stream stream(flags);
            const Event event;
            DeviceVector<int> values(all(0));
            EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
            for (int round = 0; round < kRounds; ++round) {
                add<<<kBlocks, kBlock, 0, stream>>>(values.data(), thread);
                EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
                EXPECT_EQ(cudaStreamWaitEvent(cudaStreamPerThread, event), cudaSuccess);
                add<<<kBlocks, kBlock, 0, stream>>>(values.data(), 1);
            }
            EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
            EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
            EXPECT_EQ(values.to_host(), all(kRounds * (thread + 1)));
        });
    }
}

TEST(HostThreads, LaunchByAddressAndAskForAttributes) {
    in_host_threads([](int thread) {
        DeviceVector<int> values(all(0));
        int* pointer = values.data();
        void* arguments[] = {&pointer, &thread};
        for (int round = 0; round < kRounds; ++round) {
            cudaFuncAttributes attributes{};
            EXPECT_EQ(cudaFuncGetAttributes(&attributes, add), cudaSuccess);
            int blocks = 0;
            EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, kBlock, 0), cudaSuccess);
            EXPECT_GT(blocks, 0);
            EXPECT_EQ(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024),
                      cudaSuccess);
            EXPECT_EQ(cudaLaunchKernel(add, dim3(kBlocks), dim3(kBlock), arguments, 0, nullptr), cudaSuccess);
        }
        EXPECT_EQ(values.to_host(), all(kRounds * thread));
    });
}

TEST(HostThreads, AllocateFreeAndCopy) {
    in_host_threads([](int thread) {
        for (int round = 0; round < kRounds; ++round) {
            DeviceVector<int> values(all(thread));
            int* more = nullptr;
            EXPECT_EQ(cudaMallocAsync(&more, sizeof(int), cudaStreamPerThread), cudaSuccess);
            EXPECT_EQ(cudaMemsetAsync(more, 0, sizeof(int), cudaStreamPerThread), cudaSuccess);
            EXPECT_EQ(cudaFreeAsync(more, cudaStreamPerThread), cudaSuccess);
            add<<<kBlocks, kBlock>>>(values.data(), 1);
            EXPECT_EQ(values.to_host(), all(thread + 1));
        }
        EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    });
}

// Captured before, one after the other: while a stream captures, calls of other threads may be
// refused.
cudaGraphExec_t captured(int* values, int thread) {
    const Stream stream;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    add<<<kBlocks, kBlock, 0, stream>>>(values, thread);
    add<<<kBlocks, kBlock, 0, stream>>>(values, 1);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return executable;
}

// Two threads record one event, the others query it and wait for it.
TEST(HostThreads, RecordAnEventThatOthersQuery) {
    DeviceVector<int> values(2);
    const Event event;
    in_host_threads([&](int thread) {
        const Stream stream;
        for (int round = 0; round < 50 * kRounds; ++round) {
            if (thread < 2) {
                ASSERT_EQ(cudaMemsetAsync(values.data() + thread, round, sizeof(int), stream), cudaSuccess);
                ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
            } else {
                const cudaError_t error = cudaEventQuery(event);
                ASSERT_TRUE(error == cudaSuccess || error == cudaErrorNotReady) << error;
                ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
            }
        }
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    });
}

// Two threads launch graphs that record one event, the others query it and wait for it.
TEST(HostThreads, RecordAnEventByGraphsThatOthersQuery) {
    const Event event;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, event), cudaSuccess);
    cudaGraphExec_t executables[2] = {};
    for (cudaGraphExec_t& executable : executables)
        ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    in_host_threads([&](int thread) {
        const Stream stream;
        for (int round = 0; round < 50 * kRounds; ++round) {
            if (thread < 2) {
                ASSERT_EQ(cudaGraphLaunch(executables[thread], stream), cudaSuccess);
            } else {
                const cudaError_t error = cudaEventQuery(event);
                ASSERT_TRUE(error == cudaSuccess || error == cudaErrorNotReady) << error;
                ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
            }
        }
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    });
    for (const cudaGraphExec_t executable : executables)
        EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(HostThreads, LaunchGraphs) {
    std::vector<std::unique_ptr<DeviceVector<int>>> values;
    std::vector<cudaGraphExec_t> graphs;
    for (int thread = 0; thread < kThreads; ++thread) {
        values.push_back(std::make_unique<DeviceVector<int>>(all(0)));
        graphs.push_back(captured(values.back()->data(), thread));
    }
    in_host_threads([&](int thread) {
        const Stream stream;
        const auto number = static_cast<std::size_t>(thread);
        for (int round = 0; round < kRounds; ++round)
            ASSERT_EQ(cudaGraphLaunch(graphs[number], stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(values[number]->to_host(), all(kRounds * (thread + 1)));
        EXPECT_EQ(cudaGraphExecDestroy(graphs[number]), cudaSuccess);
    });
}

// A kernel waits for the host thread that launched it.
TEST(HostThreads, LetTheirKernelsGoOn) {
#ifndef CUDA_ON_CPU
    GTEST_SKIP() << "on an H100 this did not end, for a reason that is not known";
#endif
    in_host_threads([](int) {
        const Stream stream;
        int* flag = nullptr;
        ASSERT_EQ(cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped), cudaSuccess);
        const std::atomic_ref<int> set(*flag);
        set = 0;
        DeviceVector<int> out(std::vector<int>(kBlock, 0));
        ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
        std::atomic<int> calls{0};
        copy_when_set<<<1, kBlock, 0, stream>>>(out.data(), flag);
        ASSERT_EQ(cudaLaunchHostFunc(
                      stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls),
                  cudaSuccess);
        set = 1;
        while (cudaStreamQuery(stream) == cudaErrorNotReady)
            std::this_thread::yield();
        static_cast<void>(cudaGetLastError());
        EXPECT_EQ(calls, 1);
        EXPECT_EQ(out.to_host(), std::vector<int>(kBlock, 2));
        EXPECT_EQ(cudaFreeHost(flag), cudaSuccess);
    });
}

}  // namespace

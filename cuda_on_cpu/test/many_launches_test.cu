// Many launches before the host waits, where work runs late: the time for each does not grow with
// their number, and no stack overflows.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "gpu.hpp"
#include "stream_and_event.hpp"

namespace {

__global__ void count(int* launches) {
    ++*launches;
}

// Runs `launch(n, counters)` in a process of its own, for which work runs in this order: one thread
// launches, and launches again, before it waits. That takes a second or two, so the time limit
// tells whether the time for each launch grows with their number.
void expect_counts(const char* order, int n, const std::function<void(int, int*)>& launch) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("CUDA_ON_CPU_STREAMS", order, 1);
    const auto run = [&] {
        alarm(60);
        int* counters = nullptr;
        cudaMalloc(&counters, 2 * sizeof(int));
        cudaMemset(counters, 0, 2 * sizeof(int));
        launch(n, counters);
        int counted[2] = {};
        cudaMemcpy(counted, counters, sizeof counted, cudaMemcpyDeviceToHost);
        std::fprintf(stderr, "%s: %d and %d launches\n", cudaGetErrorName(cudaGetLastError()), counted[0],
                     counted[1]);
        std::exit(0);
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(0),
                "cudaSuccess: " + std::to_string(n) + " and " + std::to_string(n) + " launches")
        << order;
    unsetenv("CUDA_ON_CPU_STREAMS");
}

void launch_into_the_default_stream(int n, int* counters) {
    for (int i = 0; i < 2 * n; ++i)
        count<<<1, 1>>>(counters + i % 2);
}

void launch_into_two_streams(unsigned flags, int n, int* counters) {
    const Stream streams[] = {Stream(flags), Stream(flags)};
    cudaStreamSynchronize(nullptr);
    for (int i = 0; i < 2 * n; ++i)
        count<<<1, 1, 0, streams[i % 2]>>>(counters + i % 2);
    for (const Stream& stream : streams)
        cudaStreamSynchronize(stream);
}

TEST(ManyLaunches, OfOneStreamTakeTheSameTimeEach) {
    expect_counts("late", 100'000, launch_into_the_default_stream);
    expect_counts("random:1", 10'000, launch_into_the_default_stream);
}

TEST(ManyLaunches, OfTwoStreamsTakeTheSameTimeEach) {
    for (const char* order : {"late", "random:1"}) {
        for (const unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking})
            expect_counts(order, 10'000,
                          [=](int n, int* counters) { launch_into_two_streams(flags, n, counters); });
    }
}

TEST(ManyLaunches, EndWhenTheHostAsksAgainAndAgain) {
    expect_counts("late", 10'000, [](int n, int* counters) {
        launch_into_the_default_stream(n, counters);
        while (cudaStreamQuery(nullptr) == cudaErrorNotReady) {
        }
        cudaGetLastError();
    });
}

TEST(ManyLaunches, OfTwoStreamsEndWhenTheHostAsksThemInTurn) {
    expect_counts("late", 30'000, [](int n, int* counters) {
        const Stream streams[] = {Stream(cudaStreamNonBlocking), Stream(cudaStreamNonBlocking)};
        cudaStreamSynchronize(nullptr);
        for (int i = 0; i < 2 * n; ++i)
            count<<<1, 1, 0, streams[i % 2]>>>(counters + i % 2);
        int done = 0;
        while (done < 2) {
            done = 0;
            for (const Stream& stream : streams)
                done += static_cast<int>(cudaStreamQuery(stream) != cudaErrorNotReady);
        }
        cudaGetLastError();
    });
}

// The default stream waits for all others, and these for it.
TEST(ManyLaunches, OfTheDefaultStreamAndAnotherTakeTheSameTimeEach) {
    expect_counts("late", 10'000, [](int n, int* counters) {
        const Stream stream(cudaStreamDefault);
        for (int i = 0; i < n; ++i) {
            count<<<1, 1>>>(counters);
            count<<<1, 1, 0, stream>>>(counters + 1);
        }
        cudaDeviceSynchronize();
    });
}

TEST(ManyLaunches, BehindEventsTakeTheSameTimeEach) {
    expect_counts("late", 10'000, [](int n, int* counters) {
        const Stream first(cudaStreamNonBlocking);
        const Stream second(cudaStreamNonBlocking);
        const Event event;
        cudaStreamSynchronize(nullptr);
        for (int i = 0; i < n; ++i) {
            count<<<1, 1, 0, first>>>(counters);
            cudaEventRecord(event, first);
            cudaStreamWaitEvent(second, event);
            count<<<1, 1, 0, second>>>(counters + 1);
        }
        cudaStreamSynchronize(second);
    });
}

}  // namespace

// Kernels that launch kernels, with what CUDA 12 left of it, and with the cudaDeviceSynchronize()
// of before. And in which order the blocks of a grid start. nvcc would need relocatable device code
// for this file, so it is for the stand-in.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "reports.cuh"

namespace {

__global__ void add(int* x, int value) {
    atomicAdd(x, value);
}
__global__ void times_two_plus(int* x, int value) {
    *x = 2 * *x + value;
}
__global__ void copy_one(int* to, const int* from) {
    *to = *from;
}

__global__ void every_thread_launches(int* x) {
    add<<<1, 32>>>(x, 1);
}

TEST(ChildGrids, EndBeforeTheirParentDoes) {
    DeviceVector<int> x(1);
    every_thread_launches<<<2, 33>>>(x.data());
    times_two_plus<<<1, 1>>>(x.data(), 5);
    EXPECT_EQ(x.to_host()[0], 2 * (2 * 33 * 32) + 5);
}

// All threads of the block are between configuration and arguments when the first one goes on.
__device__ int threads_after_a_barrier() {
    __syncthreads();
    return 1;
}
__global__ void launches_behind_a_barrier(int* x) {
    add<<<1, threads_after_a_barrier()>>>(x + threadIdx.x, static_cast<int>(threadIdx.x));
}

TEST(ChildGrids, HaveTheArgumentsOfTheThreadThatLaunchesThem) {
    DeviceVector<int> x(40);
    launches_behind_a_barrier<<<1, 40>>>(x.data());
    std::vector<int> expected(40);
    for (int i = 0; i < 40; ++i)
        expected[static_cast<std::size_t>(i)] = i;
    EXPECT_EQ(x.to_host(), expected);
}

__global__ void launches_shifted_shapes(int* x, int n) {
    add<<<1 << n, (256 >> n) + 1>>>(x, 1);
}

TEST(ChildGrids, MayHaveAShapeThatIsShifted) {
    DeviceVector<int> x(1);
    launches_shifted_shapes<<<1, 1>>>(x.data(), 3);
    EXPECT_EQ(x.to_host()[0], 8 * 33);
}

__global__ void launches_in_order(int* x) {
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 5; ++i)
        times_two_plus<<<1, 1>>>(x, i % 2);
}

TEST(ChildGrids, OfOneStreamKeepTheirOrder) {
    DeviceVector<int> x(std::vector<int>{1});
    launches_in_order<<<1, 2>>>(x.data());
    EXPECT_EQ(x.to_host()[0], 32 + 0b01010);
}

__global__ void uses_named_streams(int* x) {
    cudaStream_t first, second;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMemsetAsync(x, 0, sizeof(int), first);
    add<<<1, 32, 0, first>>>(x, 1);
    times_two_plus<<<1, 1, 0, first>>>(x, 1);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
    cudaMemcpyAsync(x + 1, x, sizeof(int), cudaMemcpyDeviceToDevice, second);
    times_two_plus<<<1, 1, 0, second>>>(x + 1, 7);
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}

TEST(ChildGrids, HaveStreamsAndEventsOfTheKernels) {
    for (int i = 0; i < 10; ++i) {
        DeviceVector<int> x(std::vector<int>{99, 99});
        uses_named_streams<<<1, 1>>>(x.data());
        EXPECT_EQ(x.to_host(), (std::vector<int>{65, 2 * 65 + 7}));
    }
}

__global__ void counts_down(int* x, int left) {
    atomicAdd(x, 1);
    if (left > 0) counts_down<<<1, 1, 0, cudaStreamTailLaunch>>>(x, left - 1);
}
__global__ void launches_a_tail(int* x) {
    if (threadIdx.x == 0) {
        times_two_plus<<<1, 1, 0, cudaStreamTailLaunch>>>(x, 1);
        copy_one<<<1, 1, 0, cudaStreamTailLaunch>>>(x + 1, x);
    }
    add<<<1, 1, 0, cudaStreamFireAndForget>>>(x, 1);
}

TEST(ChildGrids, AsTailsComeLastAndInOrder) {
    DeviceVector<int> x(2);
    launches_a_tail<<<1, 10>>>(x.data());
    EXPECT_EQ(x.to_host(), (std::vector<int>{21, 21}));
}

TEST(ChildGrids, MayFollowEachOtherForLong) {
    DeviceVector<int> x(1);
    counts_down<<<1, 1>>>(x.data(), 20000);
    EXPECT_EQ(x.to_host()[0], 20001);
}

__global__ void nests(int* x, int depth) {
    atomicAdd(x, 1);
    if (depth == 0) return;
    nests<<<1, 1, 0, cudaStreamFireAndForget>>>(x, depth - 1);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) x[1] = error;
}

TEST(ChildGrids, MayBeNested24Deep) {
    DeviceVector<int> x(2);
    nests<<<1, 1>>>(x.data(), 24);
    EXPECT_EQ(x.to_host(), (std::vector<int>{25, cudaSuccess}));
    testing::internal::CaptureStderr();
    nests<<<1, 1>>>(x.data(), 1000);
    EXPECT_EQ(x.to_host(), (std::vector<int>{50, cudaErrorLaunchMaxDepthExceeded}));
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"kernel nests, launched by a kernel: grids are nested 25 deep"}));
}

bool children_run_early() {
    const char* text = std::getenv("CUDA_ON_CPU_CHILDREN");
    return text != nullptr && std::string(text) == "early";
}

__global__ void launches_many(int* x, int count) {
    for (int i = 0; i < count; ++i)
        add<<<1, 1>>>(x, 1);
    x[1] = cudaGetLastError();
    add<<<1, 1, 0, cudaStreamTailLaunch>>>(x, 1);
    x[2] = cudaGetLastError();
}

TEST(ChildGrids, ThatWaitToBeginAreAtMostAsManyAsTheLimit) {
    DeviceVector<int> x(3);
    launches_many<<<1, 1>>>(x.data(), 2047);
    EXPECT_EQ(x.to_host(), (std::vector<int>{2048, cudaSuccess, cudaSuccess}));
    launches_many<<<1, 1>>>(x.data(), 2050);
    const std::vector<int> refused{2048 + 2048, cudaErrorLaunchPendingCountExceeded,
                                   cudaErrorLaunchPendingCountExceeded};
    const std::vector<int> all{2048 + 2051, cudaSuccess, cudaSuccess};
    EXPECT_EQ(x.to_host(), children_run_early() ? all : refused);
    ASSERT_EQ(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 3000), cudaSuccess);
    const int before = x.to_host()[0];
    launches_many<<<1, 1>>>(x.data(), 2050);
    EXPECT_EQ(x.to_host(), (std::vector<int>{before + 2051, cudaSuccess, cudaSuccess}));
    ASSERT_EQ(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2048), cudaSuccess);
}

__global__ void reads_without_order(int* x) {
    x[1] = 1;
    copy_one<<<1, 1>>>(x, x + 1);
    x[2] = x[0];  // what its child writes
    x[1] = 2;     // what its child reads
}

TEST(ChildGrids, RunEarlyOrLateAsIsSet) {
    DeviceVector<int> x(3);
    reads_without_order<<<1, 1>>>(x.data());
    EXPECT_EQ(x.to_host(), children_run_early() ? (std::vector<int>{1, 2, 1}) : (std::vector<int>{2, 2, 0}));
}

__global__ void quicksort(int* data, int left, int right) {
    int low = left;
    int high = right;
    const int pivot = data[(left + right) / 2];
    while (low <= high) {
        while (data[low] < pivot)
            ++low;
        while (data[high] > pivot)
            --high;
        if (low > high) break;
        const int kept = data[low];
        data[low++] = data[high];
        data[high--] = kept;
    }
    cudaStream_t stream;
    if (left < high) {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, stream>>>(data, left, high);
        cudaStreamDestroy(stream);
    }
    if (low < right) {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        quicksort<<<1, 1, 0, stream>>>(data, low, right);
        cudaStreamDestroy(stream);
    }
}

TEST(ChildGrids, SortRecursively) {
    std::vector<int> values(500);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<int>(i * 7919 % 499);
    DeviceVector<int> data(values);
    quicksort<<<1, 1>>>(data.data(), 0, static_cast<int>(values.size()) - 1);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(data.to_host(), values);
}

__global__ void notes_errors(int* errors) {
    if (threadIdx.x == 1) add<<<1, 2000>>>(errors, 1);
    errors[2 * threadIdx.x] = cudaGetLastError();
    errors[2 * threadIdx.x + 1] = cudaGetLastError();
}

TEST(ChildGrids, ThatAreRefusedLeaveAnErrorToTheirThread) {
    DeviceVector<int> errors(4);
    notes_errors<<<1, 2>>>(errors.data());
    EXPECT_EQ(errors.to_host(), (std::vector<int>{0, 0, cudaErrorInvalidConfiguration, 0}));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

__global__ void hands_down_local_memory(int* errors) {
    int local = 1;
    add<<<1, 1>>>(&local, 1);
    errors[0] = cudaGetLastError();
    __shared__ int shared;
    add<<<1, 1>>>(&shared, 1);
    errors[1] = cudaGetLastError();
}

TEST(ChildGrids, CannotReachTheMemoryOfTheThread) {
    DeviceVector<int> errors(2);
    testing::internal::CaptureStderr();
    hands_down_local_memory<<<1, 1>>>(errors.data());
    EXPECT_EQ(errors.to_host(), (std::vector<int>{cudaErrorInvalidValue, cudaErrorInvalidValue}));
    EXPECT_TRUE(mentions(
        testing::internal::GetCapturedStderr(),
        {"kernel add, launched by a kernel: argument 1 points to local memory", "to shared memory"}));
}

__global__ void fails(int* x) {
    assert(*x == 4711);
}
__global__ void launches_a_failure(int* x) {
    fails<<<1, 1>>>(x);
    add<<<1, 1>>>(x, 1);
}

TEST(ChildGrids, ThatFailEndTheirParent) {
    DeviceVector<int> x(1);
    const std::string report = report_of(cudaErrorAssert, [&] { launches_a_failure<<<1, 1>>>(x.data()); });
    EXPECT_TRUE(mentions(report, {"kernel fails", "Assertion `*x == 4711' failed"}));
    EXPECT_EQ(x.to_host()[0], 0);
}

__global__ void synchronises(int* x) {
    if (threadIdx.x == 0) {
        add<<<1, 32>>>(x, 1);
        cudaDeviceSynchronize();
        x[1] = x[0];
        add<<<1, 32>>>(x, 1);
    }
    __syncthreads();
    if (threadIdx.x == 1) x[2] = x[1];
}

TEST(ChildGrids, RunWhenAnOldKernelSynchronises) {
    DeviceVector<int> x(3);
    testing::internal::CaptureStderr();
    synchronises<<<1, 2>>>(x.data());
    EXPECT_EQ(x.to_host(), (std::vector<int>{64, 32, 32}));
    EXPECT_TRUE(
        mentions(testing::internal::GetCapturedStderr(), {"CUDA 12 has removed it", "cudaStreamTailLaunch"}));
}

__global__ void waits_for_its_child(volatile int* x) {
    add<<<1, 1, 0, cudaStreamFireAndForget>>>(const_cast<int*>(x), 3);
    while (*x == 0) {
    }
    x[1] = *x;
}

TEST(ChildGrids, MayRunBesideTheirParent) {
    DeviceVector<int> x(2);
    waits_for_its_child<<<1, 1>>>(x.data());
    EXPECT_EQ(x.to_host(), (std::vector<int>{3, 3}));
}

__global__ void allocates(int** memory) {
    if (cudaMalloc(memory, 4 * sizeof(int)) == cudaSuccess) add<<<1, 4>>>(*memory, 0);
    cudaMemsetAsync(*memory, 0, 4 * sizeof(int), nullptr);
    add<<<1, 4>>>(*memory, 2);
}
__global__ void frees(int** memory, int* out) {
    *out = **memory;
    cudaFree(*memory);
}

TEST(ChildGrids, UseMemoryThatAKernelAllocates) {
    DeviceVector<int*> memory(1);
    DeviceVector<int> out(1);
    allocates<<<1, 1>>>(memory.data());
    frees<<<1, 1>>>(memory.data(), out.data());
    EXPECT_EQ(out.to_host()[0], 8);
}

// ---- Graphs that kernels launch -----------------------------------------------------------------

class DeviceGraph {
  public:
    template <class Capture>
    explicit DeviceGraph(Capture capture, unsigned long long flags = cudaGraphInstantiateFlagDeviceLaunch) {
        cudaStream_t stream;
        cudaStreamCreate(&stream);
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        capture(stream);
        cudaGraph_t graph;
        cudaStreamEndCapture(stream, &graph);
        error = cudaGraphInstantiate(&executable, graph, flags);
        cudaGraphDestroy(graph);
        cudaStreamDestroy(stream);
    }
    DeviceGraph(const DeviceGraph&) = delete;
    DeviceGraph& operator=(const DeviceGraph&) = delete;
    ~DeviceGraph() {
        if (executable != nullptr) cudaGraphExecDestroy(executable);
    }

    cudaGraphExec_t executable = nullptr;
    cudaError_t error;
};

__global__ void launches_graph(cudaGraphExec_t graph, cudaStream_t stream, int* error) {
    *error = cudaGraphLaunch(graph, stream);
}
__global__ void follows_itself(int* x, int times) {
    if (++x[0] < times) x[1] = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

TEST(DeviceGraphs, RunBesideOrBehindTheGraphThatLaunchesThem) {
    for (const bool tail : {false, true}) {
        DeviceVector<int> x(std::vector<int>{1, 99});
        const DeviceGraph inner([&](cudaStream_t s) { times_two_plus<<<1, 1, 0, s>>>(x.data(), 1); });
        ASSERT_EQ(inner.error, cudaSuccess);
        ASSERT_EQ(cudaGraphUpload(inner.executable, nullptr), cudaSuccess);
        const DeviceGraph outer([&](cudaStream_t s) {
            launches_graph<<<1, 1, 0, s>>>(inner.executable,
                                           tail ? cudaStreamGraphTailLaunch : cudaStreamGraphFireAndForget,
                                           x.data() + 1);
            // Beside: another node may come before the inner graph or after it; this one is behind
            // a node that is complete with its children.
            times_two_plus<<<1, 1, 0, s>>>(x.data(), 10);
        });
        ASSERT_EQ(cudaGraphLaunch(outer.executable, nullptr), cudaSuccess);
        EXPECT_EQ(x.to_host(), (std::vector<int>{tail ? 2 * (2 + 10) + 1 : 2 * 3 + 10, cudaSuccess}));
    }
}

TEST(DeviceGraphs, MayFollowThemselvesForLong) {
    DeviceVector<int> x(2);
    const DeviceGraph loop([&](cudaStream_t s) { follows_itself<<<1, 1, 0, s>>>(x.data(), 3000); });
    ASSERT_EQ(cudaGraphLaunch(loop.executable, nullptr), cudaSuccess);
    EXPECT_EQ(x.to_host(), (std::vector<int>{3000, cudaSuccess}));
}

TEST(DeviceGraphs, AreRefusedWithTheReason) {
    DeviceVector<int> x(2);
    const auto adds = [&](cudaStream_t s) { add<<<1, 1, 0, s>>>(x.data(), 1); };
    const DeviceGraph plain(adds, 0);
    const DeviceGraph launchable(adds);
    const auto launch_in_graph = [&](cudaGraphExec_t graph, cudaStream_t stream) {
        const DeviceGraph outer(
            [&](cudaStream_t s) { launches_graph<<<1, 1, 0, s>>>(graph, stream, x.data() + 1); });
        testing::internal::CaptureStderr();
        cudaGraphLaunch(outer.executable, nullptr);
        const std::vector<int> seen = x.to_host();
        EXPECT_EQ(seen, (std::vector<int>{0, cudaErrorInvalidValue}));
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_TRUE(mentions(launch_in_graph(plain.executable, cudaStreamGraphTailLaunch),
                         {"without cudaGraphInstantiateFlagDeviceLaunch"}));
    EXPECT_TRUE(mentions(launch_in_graph(launchable.executable, cudaStreamGraphTailLaunch),
                         {"call cudaGraphUpload()"}));
    ASSERT_EQ(cudaGraphUpload(launchable.executable, nullptr), cudaSuccess);
    EXPECT_TRUE(mentions(launch_in_graph(launchable.executable, cudaStreamTailLaunch),
                         {"the stream is none of cudaStreamGraphTailLaunch"}));
    testing::internal::CaptureStderr();
    launches_graph<<<1, 1>>>(launchable.executable, cudaStreamGraphTailLaunch, x.data() + 1);
    EXPECT_EQ(x.to_host(), (std::vector<int>{0, cudaErrorInvalidValue}));
    const DeviceGraph host([](cudaStream_t s) {
        cudaLaunchHostFunc(
            s, [](void*) {}, nullptr);
    });
    EXPECT_EQ(host.error, cudaErrorNotSupported);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
    EXPECT_TRUE(mentions(testing::internal::GetCapturedStderr(),
                         {"belongs to no graph", "expected kernels, copies, memsets and child graphs"}));
}

// ---- In which order blocks start ----------------------------------------------------------------

__global__ void take_tickets(int* next, int* ticket_of_block) {
    ticket_of_block[blockIdx.x] = atomicAdd(next, 1);
}
// Block i waits for block i - 1: a chain without tickets.
__global__ void chain(volatile int* done) {
    if (blockIdx.x > 0) {
        while (done[blockIdx.x - 1] == 0) {
        }
    }
    done[blockIdx.x] = 1;
}

TEST(Blocks, AllRunOnceInTheOrderThatIsSet) {
    constexpr int kBlocks = 1000;
    DeviceVector<int> next(1);
    DeviceVector<int> tickets(kBlocks);
    take_tickets<<<kBlocks, 1>>>(next.data(), tickets.data());
    const std::vector<int> seen = tickets.to_host();
    std::vector<int> sorted = seen;
    std::sort(sorted.begin(), sorted.end());
    for (int i = 0; i < kBlocks; ++i)
        ASSERT_EQ(sorted[i], i);
    // A thread of the host may be interrupted before its block has its ticket, so single blocks may
    // be late: quarters are compared.
    const int first = std::accumulate(seen.begin(), seen.begin() + kBlocks / 4, 0);
    const int last = std::accumulate(seen.end() - kBlocks / 4, seen.end(), 0);
    const char* order = std::getenv("CUDA_ON_CPU_BLOCKS");
    if (order == nullptr) {
        EXPECT_LT(first, last);
    } else if (std::string(order) == "descending") {
        EXPECT_GT(first, last);
    } else {
        EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end()));
    }
}

TEST(Blocks, MayWaitForOnesThatStartLater) {
    DeviceVector<int> done(20);
    chain<<<20, 1>>>(done.data());
    EXPECT_EQ(done.to_host(), std::vector<int>(20, 1));
}

}  // namespace

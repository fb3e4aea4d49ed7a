// Launches and copies, on one device and on two, that are not ordered.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cuda/atomic>
#include <functional>
#include <string>
#include <vector>

#include "cuda_on_cpu/inspection.h"

namespace {

using cuda_on_cpu::Finding;

// Set before the stand-in reads them. Streams run late, so that the order they guarantee is known.
const int devices_are_set = setenv("CUDA_ON_CPU_DEVICES", "2", 1);
const int streams_are_set = setenv("CUDA_ON_CPU_STREAMS", "late", 1);

constexpr unsigned kThreads = 64;

__global__ void write_all(float* values) {
    values[threadIdx.x] = 1;  // writes here
}
__global__ void read_all(const float* values, float* out) {
    out[threadIdx.x] = 2 * values[threadIdx.x];  // reads here
}
__global__ void write_after_flag(float* values, unsigned* flag) {
    values[threadIdx.x] = 1;
    __syncthreads();
    cuda::atomic_ref<unsigned, cuda::thread_scope_system> ref(*flag);
    if (threadIdx.x == 0) ref.store(1, cuda::memory_order_release);
}
__global__ void read_after_flag(const float* values, unsigned* flag, float* out) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_system> ref(*flag);
    if (threadIdx.x == 0) {
        while (ref.load(cuda::memory_order_acquire) == 0) {
        }
    }
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x];
}

// Values of device 1, which device 0 writes; a stream and an event on each device.
class Launches : public testing::Test {
  protected:
    void SetUp() override {
        for (int device : {0, 1}) {
            ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
            const cudaError_t error = cudaDeviceEnablePeerAccess(1 - device, 0);
            ASSERT_TRUE(error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled);
            static_cast<void>(cudaGetLastError());
            ASSERT_EQ(cudaStreamCreateWithFlags(&stream[device], cudaStreamNonBlocking), cudaSuccess);
            ASSERT_EQ(cudaEventCreate(&event[device]), cudaSuccess);
        }
        for (float** memory : {&values, &out, &other}) {
            ASSERT_EQ(cudaMalloc(memory, kThreads * sizeof(float)), cudaSuccess);
            ASSERT_EQ(cudaMemset(*memory, 0, kThreads * sizeof(float)), cudaSuccess);
        }
        ASSERT_EQ(cudaMalloc(&flag, sizeof(unsigned)), cudaSuccess);
        ASSERT_EQ(cudaMemset(flag, 0, sizeof(unsigned)), cudaSuccess);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    void TearDown() override {
        for (void* memory : {static_cast<void*>(values), static_cast<void*>(out), static_cast<void*>(other),
                             static_cast<void*>(flag)})
            cudaFree(memory);
        for (int device : {0, 1}) {
            cudaStreamDestroy(stream[device]);
            cudaEventDestroy(event[device]);
        }
        cudaSetDevice(0);
    }

    void write(int device, float* to) {
        cudaSetDevice(device);
        write_all<<<1, kThreads, 0, stream[device]>>>(to);
    }
    void read(int device, const float* from) {
        cudaSetDevice(device);
        read_all<<<1, kThreads, 0, stream[device]>>>(from, out);
    }
    // Makes the stream of `waits` wait for the current work of the other device's stream.
    void wait_for(int device, int waits) {
        cudaSetDevice(device);
        EXPECT_EQ(cudaEventRecord(event[device], stream[device]), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(stream[waits], event[device]), cudaSuccess);
    }

    std::vector<Finding> findings(const std::function<void()>& work) {
        cuda_on_cpu::begin_inspection({});
        work();
        for (int device : {0, 1}) {
            cudaSetDevice(device);
            EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        }
        std::vector<Finding> all;
        for (const auto& kernel : cuda_on_cpu::end_inspection().kernels)
            all.insert(all.end(), kernel.findings.begin(), kernel.findings.end());
        return all;
    }
    std::string kinds(const std::function<void()>& work) {
        std::string text;
        for (const Finding& finding : findings(work))
            text += (text.empty() ? "" : " ") + finding.kind;
        return text;
    }

    cudaStream_t stream[2] = {};
    cudaEvent_t event[2] = {};
    float* values = nullptr;
    float* out = nullptr;
    float* other = nullptr;
    unsigned* flag = nullptr;
};

TEST_F(Launches, AMissingEventIsARaceOfTwoLines) {
    const std::vector<Finding> found = findings([&] {
        write(0, values);
        read(1, values);
    });
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, "race_between_launches");
    ASSERT_TRUE(found[0].other.has_value());
    EXPECT_NE(found[0].source.line, found[0].other->line);
    EXPECT_NE(found[0].source.file.find("launches_test.cu"), std::string::npos) << found[0].source.file;
    EXPECT_NE(found[0].message.find("of the allocation of 256 bytes on device 1"), std::string::npos)
        << found[0].message;
    EXPECT_NE(found[0].message.find("write_all on device 0"), std::string::npos) << found[0].message;
    EXPECT_NE(found[0].message.find("read_all on device 1"), std::string::npos) << found[0].message;
}

TEST_F(Launches, AnEventOrders) {
    EXPECT_EQ(kinds([&] {
                  write(0, values);
                  wait_for(0, 1);
                  read(1, values);
              }),
              "");
}

// The event is recorded before the kernel that it should follow.
TEST_F(Launches, AnEventThatComesTooEarlyDoesNot) {
    EXPECT_EQ(kinds([&] {
                  write(0, other);
                  wait_for(0, 1);
                  write(0, values);
                  read(1, values);
              }),
              "race_between_launches");
}

TEST_F(Launches, EventsOrderByWayOfAThirdStream) {
    EXPECT_EQ(kinds([&] {
                  write(0, values);
                  wait_for(0, 1);
                  write(1, other);
                  read(1, values);
                  wait_for(1, 0);
                  write(0, values);  // after it has been read
              }),
              "");
}

TEST_F(Launches, OverwritingWhatIsStillReadIsARace) {
    EXPECT_EQ(kinds([&] {
                  write(0, values);
                  wait_for(0, 1);
                  read(1, values);
                  write(0, values);
              }),
              "race_between_launches");
}

TEST_F(Launches, TheHostOrdersIfItWaits) {
    EXPECT_EQ(kinds([&] {
                  write(0, values);
                  cudaStreamSynchronize(stream[0]);
                  read(1, values);
              }),
              "");
}

TEST_F(Launches, TwoStreamsOfOneDevice) {
    cudaStream_t second = nullptr;
    cudaSetDevice(1);
    ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
    const auto both = [&] {
        write(1, values);
        read_all<<<1, kThreads, 0, second>>>(values, out);
    };
    EXPECT_EQ(kinds(both), "race_between_launches");
    cudaStreamDestroy(second);
}

TEST_F(Launches, TwoReadersAndOtherMemoryAreNoRace) {
    EXPECT_EQ(kinds([&] {
                  read(1, values);
                  cudaSetDevice(0);
                  read_all<<<1, kThreads, 0, stream[0]>>>(values, other);
              }),
              "");
}

TEST_F(Launches, ACopyThatNothingWaitsFor) {
    const auto copy_and_read = [&](bool waits) {
        return [&, waits] {
            cudaSetDevice(0);
            EXPECT_EQ(cudaMemcpyPeerAsync(values, 1, other, 1, kThreads * sizeof(float), stream[0]),
                      cudaSuccess);
            if (waits) wait_for(0, 1);
            read(1, values);
        };
    };
    EXPECT_EQ(kinds(copy_and_read(true)), "");
    const std::vector<Finding> found = findings(copy_and_read(false));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, "race_between_launches");
    EXPECT_NE(found[0].message.find("write by a copy or cudaMemset"), std::string::npos) << found[0].message;
}

// Flags in memory, as in a kernel that runs for many steps.
TEST_F(Launches, KernelsWithACommonFlagCountAsOrdered) {
    EXPECT_EQ(kinds([&] {
                  cudaSetDevice(1);
                  read_after_flag<<<1, kThreads, 0, stream[1]>>>(values, flag, out);
                  cudaSetDevice(0);
                  write_after_flag<<<1, kThreads, 0, stream[0]>>>(values, flag);
              }),
              "");
}

TEST_F(Launches, NodesOfAGraphThatHaveNoEdge) {
    for (const bool ordered : {true, false}) {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        cudaSetDevice(0);
        ASSERT_EQ(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
        wait_for(0, 1);
        write(0, values);
        if (ordered) wait_for(0, 1);
        read(1, values);
        wait_for(1, 0);
        ASSERT_EQ(cudaStreamEndCapture(stream[0], &graph), cudaSuccess);
        ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
        EXPECT_EQ(kinds([&] { cudaGraphLaunch(executable, stream[0]); }),
                  ordered ? "" : "race_between_launches");
        cudaGraphExecDestroy(executable);
        cudaGraphDestroy(graph);
    }
}

}  // namespace

// GoogleTest fixtures for tests that need a device. Without a device the tests are skipped, with
// the reason. The CPU stand-in counts as a device.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/memory_turn.hpp"

namespace course {

// Why no kernel can run here; empty if one can.
inline std::string why_no_device() {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) {
        static_cast<void>(cudaGetLastError());
        return std::string("no CUDA device: ") + cudaGetErrorString(error);
    }
    return devices == 0 ? "no CUDA device: cudaGetDeviceCount found none" : "";
}

// Does the CPU stand-in run the threads of a block from the last to the first? A test of sums or
// of host code, where the order makes no difference, may skip that run.
inline bool lanes_descend() {
    const char* const order = std::getenv("CUDA_ON_CPU_ORDER");
    return order != nullptr && std::string(order) == "descending";
}

// Why a test that needs `bytes` of device memory, gigabytes, cannot run here; empty if it can.
inline std::string why_not_so_large(std::size_t bytes) {
    const std::string gigabytes = std::to_string((bytes >> 30) + 1) + " GB";
    if (is_cpu_stand_in()) return "needs a GPU: " + gigabytes + " would have to move through CPU threads";
    constexpr std::chrono::seconds kPatience(100);
    if (!MemoryTurn::of_tests().take(kPatience))
        return "needs " + gigabytes + " of device memory, which other tests have used for 100 s";
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (free_bytes >= bytes + (std::size_t{1} << 30)) return "";
    return "needs " + gigabytes + " of free device memory; " + std::to_string(free_bytes) + " bytes are free";
}

// The parameters of a test suite: pointers to all entries of a list of versions.
template <class Versions>
auto each_of(const Versions& versions) {
    std::vector<decltype(&versions[0])> pointers;
    for (const auto& version : versions)
        pointers.push_back(&version);
    return testing::ValuesIn(pointers);
}

// The names of these tests.
struct VersionName {
    template <class Info>
    std::string operator()(const Info& info) const {
        return info.param->name;
    }
};

// `count` elements of 0 on the device. Even where the values do not matter, a kernel should not
// read unwritten memory, because initcheck reports it.
template <class T>
DeviceBuffer<T> zeros(std::size_t count) {
    return DeviceBuffer<T>(std::span<const T>(std::vector<T>(count)));
}

// The message of the std::invalid_argument that `action` throws, or "".
template <class Action>
std::string refusal(Action action) {
    try {
        action();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

// Captures the work that `queue(stream)` queues on a stream of its own into a graph. The graph
// reveals work on another stream (no node), allocations and waits (an error), and work that runs
// immediately instead of when the graph is launched.
class CapturedWork {
  public:
    template <class Queue>
    explicit CapturedWork(Queue queue) {
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        try {
            queue(stream_);
        } catch (...) {  // or nothing else could be allocated while the stream still captures
            static_cast<void>(cudaStreamEndCapture(stream_, &graph_));
            static_cast<void>(cudaStreamDestroy(stream_));
            static_cast<void>(cudaGetLastError());
            throw;
        }
        CUDA_CHECK(cudaStreamEndCapture(stream_, &graph_));
    }
    CapturedWork(const CapturedWork&) = delete;
    CapturedWork& operator=(const CapturedWork&) = delete;
    ~CapturedWork() {
        static_cast<void>(cudaGraphDestroy(graph_));
        static_cast<void>(cudaStreamDestroy(stream_));
    }

    std::size_t nodes() const {
        std::size_t count = 0;
        CUDA_CHECK(cudaGraphGetNodes(graph_, nullptr, &count));
        return count;
    }

    // The only node, a kernel; without a function if there is no node.
    cudaKernelNodeParams kernel() const {
        cudaKernelNodeParams kernel{};
        if (nodes() == 0) return kernel;
        std::size_t count = 1;
        cudaGraphNode_t node = nullptr;
        CUDA_CHECK(cudaGraphGetNodes(graph_, &node, &count));
        CUDA_CHECK(cudaGraphKernelNodeGetParams(node, &kernel));
        return kernel;
    }

    // Its grid; zeros if there is no node.
    dim3 grid() const { return nodes() == 0 ? dim3(0, 0, 0) : kernel().gridDim; }

    // Is it kernels, and nothing else?
    bool only_kernels() const {
        std::size_t count = nodes();
        std::vector<cudaGraphNode_t> all(count);
        CUDA_CHECK(cudaGraphGetNodes(graph_, all.data(), &count));
        for (const cudaGraphNode_t node : all) {
            cudaGraphNodeType type{};
            CUDA_CHECK(cudaGraphNodeGetType(node, &type));
            if (type != cudaGraphNodeTypeKernel) return false;
        }
        return true;
    }

    // Launches the graph `times` times, and waits.
    void run(int times = 1) const {
        cudaGraphExec_t executable = nullptr;
        CUDA_CHECK(cudaGraphInstantiate(&executable, graph_, 0));
        for (int i = 0; i < times; ++i)
            CUDA_CHECK(cudaGraphLaunch(executable, stream_));
        CUDA_CHECK(cudaStreamSynchronize(stream_));
        CUDA_CHECK(cudaGraphExecDestroy(executable));
    }

  private:
    cudaStream_t stream_ = nullptr;
    cudaGraph_t graph_ = nullptr;
};

template <class Fixture>
class NeedsDevice : public Fixture {
  protected:
    void SetUp() override {
        if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    }

    // After a failed kernel, every call fails until the device is reset. The reset keeps the
    // failure of this test from affecting the next one.
    void TearDown() override {
        MemoryTurn::of_tests().give_back();
        if (cudaDeviceSynchronize() == cudaSuccess) return;
        static_cast<void>(cudaDeviceReset());
        static_cast<void>(cudaGetLastError());
    }
};

using DeviceTest = NeedsDevice<testing::Test>;
template <class Parameter>
using DeviceTestWithParam = NeedsDevice<testing::TestWithParam<Parameter>>;

}  // namespace course

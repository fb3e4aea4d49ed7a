// Graphs that a program makes node by node: kernels, copies, memsets, host functions, child graphs,
// events, conditional nodes; their changes and copies. What captures make is in
// runtime_api_test.cu.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

__global__ void set(int* to, int value) {
    *to = value;
}
__global__ void times_two_plus(int* value, int more) {
    *value = 2 * *value + more;
}
__global__ void sum_of_two(int* to, const int* a, const int* b) {
    *to = *a + *b;
}

void count_call(void* calls) {
    ++*static_cast<int*>(calls);
}

class Graph {
  public:
    Graph() { EXPECT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess); }
    ~Graph() {
        if (executable_ != nullptr) {
            EXPECT_EQ(cudaGraphExecDestroy(executable_), cudaSuccess);
        }
        EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    operator cudaGraph_t() const { return graph_; }

    template <class... Arguments>
    cudaGraphNode_t kernel(void* function, const std::vector<cudaGraphNode_t>& after,
                           Arguments... arguments) {
        void* list[] = {&arguments...};
        cudaKernelNodeParams params = {};
        params.func = function;
        params.gridDim = params.blockDim = dim3(1);
        params.kernelParams = list;
        cudaGraphNode_t node = nullptr;
        EXPECT_EQ(cudaGraphAddKernelNode(&node, graph_, after.data(), after.size(), &params), cudaSuccess);
        return node;
    }
    cudaGraphNode_t copy_back(int* to, const int* from, const std::vector<cudaGraphNode_t>& after) {
        cudaGraphNode_t node = nullptr;
        EXPECT_EQ(cudaGraphAddMemcpyNode1D(&node, graph_, after.data(), after.size(), to, from, sizeof(int),
                                           cudaMemcpyDeviceToHost),
                  cudaSuccess);
        return node;
    }
    cudaGraphExec_t executable() {
        if (executable_ == nullptr) {
            EXPECT_EQ(cudaGraphInstantiate(&executable_, graph_, 0), cudaSuccess);
        }
        return executable_;
    }
    void run(int times = 1) {
        for (int i = 0; i < times; ++i)
            EXPECT_EQ(cudaGraphLaunch(executable(), nullptr), cudaSuccess);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }

  private:
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
};

void* function(void (*kernel)(int*, int)) {
    return reinterpret_cast<void*>(kernel);
}

TEST(Graphs, RunTheirNodesInTheOrderOfTheirEdges) {
    Graph graph;
    DeviceVector<int> values(3);
    int back = 0;
    int calls = 0;
    const cudaGraphNode_t a = graph.kernel(function(set), {}, values.data(), 3);
    const cudaGraphNode_t b = graph.kernel(function(set), {}, values.data() + 1, 4);
    const cudaGraphNode_t a2 = graph.kernel(function(times_two_plus), {a}, values.data(), 1);
    const cudaGraphNode_t sum =
        graph.kernel(reinterpret_cast<void*>(sum_of_two), {a2, b}, values.data() + 2,
                     static_cast<const int*>(values.data()), static_cast<const int*>(values.data() + 1));
    const cudaGraphNode_t copy = graph.copy_back(&back, values.data() + 2, {sum});
    cudaGraphNode_t host = nullptr;
    const cudaHostNodeParams params = {count_call, &calls};
    ASSERT_EQ(cudaGraphAddHostNode(&host, graph, &copy, 1, &params), cudaSuccess);
    cudaGraphNode_t empty = nullptr;
    ASSERT_EQ(cudaGraphAddEmptyNode(&empty, graph, &host, 1), cudaSuccess);
    graph.run(3);
    EXPECT_EQ(back, 11);
    EXPECT_EQ(calls, 3);

    std::size_t nodes = 0, roots = 0, edges = 0;
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(cudaGraphGetRootNodes(graph, nullptr, &roots), cudaSuccess);
    EXPECT_EQ(nodes, 7u);
    EXPECT_EQ(roots, 2u);
#if CUDART_VERSION >= 13000
    EXPECT_EQ(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges), cudaSuccess);
    cudaGraphNode_t before[2] = {};
    std::size_t count = 2;
    EXPECT_EQ(cudaGraphNodeGetDependencies(sum, before, nullptr, &count), cudaSuccess);
#else
    EXPECT_EQ(cudaGraphGetEdges(graph, nullptr, nullptr, &edges), cudaSuccess);
    cudaGraphNode_t before[2] = {};
    std::size_t count = 2;
    EXPECT_EQ(cudaGraphNodeGetDependencies(sum, before, &count), cudaSuccess);
#endif
    EXPECT_EQ(edges, 6u);
    EXPECT_EQ(count, 2u);
    EXPECT_TRUE((before[0] == a2 && before[1] == b) || (before[0] == b && before[1] == a2));
    cudaGraphNodeType type = cudaGraphNodeTypeCount;
    EXPECT_EQ(cudaGraphNodeGetType(host, &type), cudaSuccess);
    EXPECT_EQ(type, cudaGraphNodeTypeHost);
}

TEST(Graphs, SetAndCopyMemory) {
    Graph graph;
    DeviceVector<int> values(64);
    std::vector<int> back(64);
    cudaMemsetParams set_params = {};
    set_params.dst = values.data();
    set_params.value = 0x01020304;
    set_params.elementSize = 4;
    set_params.width = 64;
    set_params.height = 1;
    cudaGraphNode_t memset = nullptr;
    ASSERT_EQ(cudaGraphAddMemsetNode(&memset, graph, nullptr, 0, &set_params), cudaSuccess);
    cudaMemcpy3DParms copy_params = {};
    copy_params.srcPtr = make_cudaPitchedPtr(values.data(), 32 * sizeof(int), 32, 2);
    copy_params.dstPtr = make_cudaPitchedPtr(back.data(), 32 * sizeof(int), 32, 2);
    copy_params.extent = make_cudaExtent(16 * sizeof(int), 2, 1);
    copy_params.kind = cudaMemcpyDeviceToHost;
    cudaGraphNode_t copy = nullptr;
    ASSERT_EQ(cudaGraphAddMemcpyNode(&copy, graph, &memset, 1, &copy_params), cudaSuccess);
    graph.run();
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(back[i], i % 32 < 16 ? 0x01020304 : 0) << i;
    set_params.value = 5;
    ASSERT_EQ(cudaGraphExecMemsetNodeSetParams(graph.executable(), memset, &set_params), cudaSuccess);
    graph.run();
    EXPECT_EQ(back[0], 5);
}

TEST(Graphs, KeepTheArgumentsOfTheTimeTheyWereMade) {
    Graph graph;
    DeviceVector<int> value(2);
    int back = 0;
    const cudaGraphNode_t node = graph.kernel(function(set), {}, value.data(), 6);
    graph.copy_back(&back, value.data(), {node});
    graph.run();
    EXPECT_EQ(back, 6);
    cudaKernelNodeParams params = {};
    ASSERT_EQ(cudaGraphKernelNodeGetParams(node, &params), cudaSuccess);
    EXPECT_EQ(*static_cast<int*>(params.kernelParams[1]), 6);
    int eight = 8;
    int* target = value.data();
    void* list[] = {&target, &eight};
    params.kernelParams = list;
    ASSERT_EQ(cudaGraphExecKernelNodeSetParams(graph.executable(), node, &params), cudaSuccess);
    graph.run();
    EXPECT_EQ(back, 8);
}

TEST(Graphs, AreClonedAndUpdated) {
    Graph graph;
    Graph other;
    DeviceVector<int> value(1);
    for (const auto& [made, number] : {std::pair{&graph, 3}, std::pair{&other, 4}}) {
        const cudaGraphNode_t node = made->kernel(function(set), {}, value.data(), number);
        made->kernel(function(times_two_plus), {node}, value.data(), 1);
    }
    graph.run();
    EXPECT_EQ(value.to_host()[0], 7);
    cudaGraphExecUpdateResultInfo info = {};
    ASSERT_EQ(cudaGraphExecUpdate(graph.executable(), other, &info), cudaSuccess);
    EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
    graph.run();
    EXPECT_EQ(value.to_host()[0], 9);

    cudaGraph_t clone = nullptr;
    ASSERT_EQ(cudaGraphClone(&clone, graph), cudaSuccess);
    cudaGraphNode_t more = nullptr;
    ASSERT_EQ(cudaGraphAddEmptyNode(&more, clone, nullptr, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphExecUpdate(graph.executable(), clone, &info), cudaErrorGraphExecUpdateFailure);
    EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
    static_cast<void>(cudaGetLastError());
    std::size_t nodes = 0;
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(nodes, 2u);
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, clone, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(clone), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(executable, nullptr), cudaSuccess);
    EXPECT_EQ(value.to_host()[0], 7);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST(Graphs, HoldOthers) {
    Graph inner;
    Graph outer;
    DeviceVector<int> value(1);
    inner.kernel(function(times_two_plus), {inner.kernel(function(times_two_plus), {}, value.data(), 1)},
                 value.data(), 0);
    const cudaGraphNode_t first = outer.kernel(function(set), {}, value.data(), 1);
    cudaGraphNode_t child = nullptr;
    ASSERT_EQ(cudaGraphAddChildGraphNode(&child, outer, &first, 1, inner), cudaSuccess);
    outer.kernel(function(times_two_plus), {child}, value.data(), 5);
    outer.run();
    EXPECT_EQ(value.to_host()[0], ((1 * 2 + 1) * 2) * 2 + 5);
}

TEST(Graphs, RefuseCirclesAndStrangers) {
    Graph graph;
    Graph other;
    DeviceVector<int> value(1);
    const cudaGraphNode_t a = graph.kernel(function(set), {}, value.data(), 1);
    const cudaGraphNode_t b = graph.kernel(function(set), {a}, value.data(), 1);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddEmptyNode(&node, other, &a, 1), cudaErrorInvalidValue);
#if CUDART_VERSION >= 13000
    static_cast<void>(cudaGraphAddDependencies(graph, &b, &a, nullptr, 1));
#else
    static_cast<void>(cudaGraphAddDependencies(graph, &b, &a, 1));
#endif
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaErrorInvalidValue);
    static_cast<void>(cudaGetLastError());
}

TEST(Graphs, RecordEvents) {
    Graph graph;
    DeviceVector<int> value(1);
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const cudaGraphNode_t node = graph.kernel(function(set), {}, value.data(), 3);
    cudaGraphNode_t record = nullptr;
    ASSERT_EQ(cudaGraphAddEventRecordNode(&record, graph, &node, 1, event), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(graph.executable(), nullptr), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
    times_two_plus<<<1, 1, 0, stream>>>(value.data(), 1);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(value.to_host()[0], 7);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(Graphs, AllocateAndFreeMemory) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    int* memory = nullptr;
    DeviceVector<int> out(1);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_EQ(cudaMallocAsync(&memory, sizeof(int), stream), cudaSuccess);
    set<<<1, 1, 0, stream>>>(memory, 6);
    ASSERT_EQ(cudaMemcpyAsync(out.data(), memory, sizeof(int), cudaMemcpyDeviceToDevice, stream),
              cudaSuccess);
    ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (int i = 0; i < 3; ++i) {
        set<<<1, 1>>>(out.data(), 0);
        ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
        EXPECT_EQ(out.to_host()[0], 6);
    }
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// ---- Conditional nodes --------------------------------------------------------------------------

__global__ void set_condition(cudaGraphConditionalHandle handle, const int* value) {
    cudaGraphSetConditional(handle, static_cast<unsigned>(*value));
}
__global__ void count_down(cudaGraphConditionalHandle handle, int* left, int* rounds) {
    ++*rounds;
    cudaGraphSetConditional(handle, --*left > 0 ? 1 : 0);
}

cudaError_t try_to_add(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                       cudaGraphNodeParams& params) {
    cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
    return cudaGraphAddNode(&node, graph, after, nullptr, count, &params);
#else
    return cudaGraphAddNode(&node, graph, after, count, &params);
#endif
}

void add_conditional(cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
                     cudaGraphNodeParams& params) {
    EXPECT_EQ(try_to_add(graph, after, count, params), cudaSuccess);
}

TEST(ConditionalNodes, ChooseABody) {
    Graph graph;
    DeviceVector<int> condition(1);
    DeviceVector<int> out(1);
    cudaGraphConditionalHandle handle;
    ASSERT_EQ(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0), cudaSuccess);
    const cudaGraphNode_t decide = graph.kernel(reinterpret_cast<void*>(set_condition), {}, handle,
                                                static_cast<const int*>(condition.data()));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeSwitch;
    params.conditional.size = 3;
    add_conditional(graph, &decide, 1, params);
    for (int i = 0; i < 3; ++i) {
        int* target = out.data();
        int value = 10 + i;
        void* list[] = {&target, &value};
        cudaKernelNodeParams kernel = {};
        kernel.func = function(set);
        kernel.gridDim = kernel.blockDim = dim3(1);
        kernel.kernelParams = list;
        cudaGraphNode_t node = nullptr;
        ASSERT_EQ(cudaGraphAddKernelNode(&node, params.conditional.phGraph_out[i], nullptr, 0, &kernel),
                  cudaSuccess);
    }
    for (int i = 0; i < 4; ++i) {
        set<<<1, 1>>>(condition.data(), i);
        set<<<1, 1>>>(out.data(), 1);
        graph.run();
        EXPECT_EQ(out.to_host()[0], i < 3 ? 10 + i : 1);
    }
}

TEST(ConditionalNodes, RepeatABodyThatWasCaptured) {
    Graph graph;
    DeviceVector<int> left(1);
    DeviceVector<int> rounds(1);
    cudaGraphConditionalHandle handle;
    ASSERT_EQ(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault), cudaSuccess);
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    add_conditional(graph, nullptr, 0, params);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                            cudaStreamCaptureModeGlobal),
              cudaSuccess);
    count_down<<<1, 1, 0, stream>>>(handle, left.data(), rounds.data());
    ASSERT_EQ(cudaStreamEndCapture(stream, nullptr), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    for (int i = 0; i < 2; ++i) {
        set<<<1, 1>>>(left.data(), 5);
        graph.run();
        EXPECT_EQ(rounds.to_host()[0], 5 * (i + 1));
    }
}

// A handle belongs to the graph that it was made for, and to the bodies of that graph's nodes.
TEST(ConditionalNodes, RefuseAHandleOfAnotherGraph) {
    Graph graph;
    Graph other;
    cudaGraphConditionalHandle handle;
    ASSERT_EQ(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault), cudaSuccess);
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
    EXPECT_EQ(try_to_add(other, nullptr, 0, params), cudaErrorInvalidValue);
    static_cast<void>(cudaGetLastError());
}

TEST(ConditionalNodes, InABodyHaveAHandleOfTheGraphAround) {
    Graph graph;
    cudaGraphNodeParams params[2] = {};
    for (cudaGraphNodeParams& each : params) {
        each.type = cudaGraphNodeTypeConditional;
        each.conditional.type = cudaGraphCondTypeIf;
        each.conditional.size = 1;
        ASSERT_EQ(
            cudaGraphConditionalHandleCreate(&each.conditional.handle, graph, 1, cudaGraphCondAssignDefault),
            cudaSuccess);
    }
    add_conditional(graph, nullptr, 0, params[0]);
    add_conditional(params[0].conditional.phGraph_out[0], nullptr, 0, params[1]);
    DeviceVector<int> out(1);
    int* target = out.data();
    int value = 7;
    void* list[] = {&target, &value};
    cudaKernelNodeParams kernel = {};
    kernel.func = function(set);
    kernel.gridDim = kernel.blockDim = dim3(1);
    kernel.kernelParams = list;
    cudaGraphNode_t node = nullptr;
    ASSERT_EQ(cudaGraphAddKernelNode(&node, params[1].conditional.phGraph_out[0], nullptr, 0, &kernel),
              cudaSuccess);
    graph.run();
    EXPECT_EQ(out.to_host()[0], 7);
}

#ifdef CUDA_ON_CPU
// Nodes that no edge orders run in another order where the setting says so; nodes of one graph may
// wait for each other.
__global__ void wait_for(volatile int* flag) {
    while (*flag == 0) {
    }
}

TEST(Graphs, HaveNodesThatRunAtTheSameTime) {
    cudaStream_t stream = nullptr;  // a program with streams
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    Graph graph;
    DeviceVector<int> flag(1);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    graph.kernel(reinterpret_cast<void*>(wait_for), {}, static_cast<volatile int*>(flag.data()));
    graph.kernel(function(set), {}, flag.data(), 1);
    graph.run();
    EXPECT_EQ(flag.to_host()[0], 1);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}
#endif

}  // namespace

// Day 39's launchers of tiny grids: the graphs, and the list of versions. The kernels are in
// launches.cuh.
#include <array>
#include <utility>

#include "common/check/require.hpp"
#include "dynamic_parallelism.hpp"
#include "launches.cuh"

namespace day39 {
namespace {

using course::require;

unsigned check(std::size_t n, DeviceSpan<unsigned> counter) {
    require(n <= kMostLaunches, "launches: n is ", n, "; expected at most ", kMostLaunches);
    require(counter.size() == 1, "launches: counter has ", counter.size(), " elements; expected 1");
    return static_cast<unsigned>(n);
}

template <void (*kLaunch)(unsigned, unsigned*, cudaStream_t)>
void launch_by(std::size_t n, DeviceSpan<unsigned> counter, cudaStream_t stream) {
    kLaunch(check(n, counter), counter.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// An executable graph for one n and one counter. fill(graph, stream, n, counter) adds its nodes.
class KeptGraph {
  public:
    template <class Fill>
    KeptGraph(unsigned n, unsigned* counter, unsigned long long flags, Fill fill) : n_(n), counter_(counter) {
        try {
            CUDA_CHECK(cudaGraphCreate(&graph_, 0));
            CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
            CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream_, fill(graph_), nullptr, nullptr, 0,
                                                     cudaStreamCaptureModeThreadLocal));
            fill(n, counter, stream_);
            CUDA_CHECK_LAUNCH();
            CUDA_CHECK(cudaStreamEndCapture(stream_, nullptr));
            CUDA_CHECK(cudaStreamDestroy(std::exchange(stream_, nullptr)));
            CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, flags));
        } catch (...) {
            release();
            throw;
        }
    }
    KeptGraph(const KeptGraph&) = delete;
    KeptGraph& operator=(const KeptGraph&) = delete;
    KeptGraph(KeptGraph&& other) noexcept
        : n_(other.n_),
          counter_(std::exchange(other.counter_, nullptr)),
          stream_(std::exchange(other.stream_, nullptr)),
          graph_(std::exchange(other.graph_, nullptr)),
          executable_(std::exchange(other.executable_, nullptr)) {}
    KeptGraph() = default;
    KeptGraph& operator=(KeptGraph&& other) noexcept {
        std::swap(n_, other.n_);
        std::swap(counter_, other.counter_);
        std::swap(stream_, other.stream_);
        std::swap(graph_, other.graph_);
        std::swap(executable_, other.executable_);
        return *this;
    }
    ~KeptGraph() { release(); }

    bool is_for(unsigned n, const unsigned* counter) const { return n_ == n && counter_ == counter; }
    void launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(executable_, stream)); }

  private:
    void release() {
        // Only where the constructor has failed is there a stream, and perhaps a capture.
        if (stream_ != nullptr) {
            static_cast<void>(cudaStreamEndCapture(stream_, nullptr));
            static_cast<void>(cudaStreamDestroy(stream_));
            static_cast<void>(cudaGetLastError());
        }
        if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
        if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
    }

    unsigned n_ = 0;
    unsigned* counter_ = nullptr;
    cudaStream_t stream_ = nullptr;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
};

// The graph that a capture goes to, and what is captured.
struct HostGraph {
    static constexpr unsigned long long kFlags = 0;
    cudaGraph_t operator()(cudaGraph_t graph) { return graph; }
    void operator()(unsigned n, unsigned* counter, cudaStream_t stream) {
        launch_host_stream(n, counter, stream);
    }
};

struct SelfLaunch {
    static constexpr unsigned long long kFlags = cudaGraphInstantiateFlagDeviceLaunch;
    cudaGraph_t operator()(cudaGraph_t graph) { return graph; }
    void operator()(unsigned n, unsigned* counter, cudaStream_t stream) {
        add_one_and_relaunch<<<1, 1, 0, stream>>>(n, counter);
    }
};

struct WhileNode {
    static constexpr unsigned long long kFlags = 0;
    cudaGraphConditionalHandle go_on{};

    cudaGraph_t operator()(cudaGraph_t graph) {
        CUDA_CHECK(cudaGraphConditionalHandleCreate(&go_on, graph, 1, cudaGraphCondAssignDefault));
        cudaGraphNodeParams node{};
        node.type = cudaGraphNodeTypeConditional;
        node.conditional.handle = go_on;
        node.conditional.type = cudaGraphCondTypeWhile;
        node.conditional.size = 1;
        cudaGraphNode_t loop = nullptr;
#if CUDART_VERSION >= 13000
        CUDA_CHECK(cudaGraphAddNode(&loop, graph, nullptr, nullptr, 0, &node));
#else
        CUDA_CHECK(cudaGraphAddNode(&loop, graph, nullptr, 0, &node));
#endif
        return node.conditional.phGraph_out[0];
    }
    void operator()(unsigned n, unsigned* counter, cudaStream_t stream) {
        add_one_and_repeat<<<1, 1, 0, stream>>>(n, counter, go_on);
    }
};

// To make a graph takes longer than to launch it: the last one is kept.
template <class Fill>
void launch_graph(std::size_t n, DeviceSpan<unsigned> counter, cudaStream_t stream) {
    const unsigned launches = check(n, counter);
    if (launches == 0) return;
    thread_local KeptGraph kept;
    if (!kept.is_for(launches, counter.data())) {
        kept = KeptGraph();
        kept = KeptGraph(launches, counter.data(), Fill::kFlags, Fill());
    }
    kept.launch(stream);
}

// The counter is read and written by each grid.
course::Work work(const std::size_t& n) {
    const double written = static_cast<double>(n * sizeof(unsigned));
    return {.bytes = 2 * written, .written = written};
}

}  // namespace

std::span<const LaunchVersion> launch_versions() {
    static const std::array<LaunchVersion, 7> list = {{
        {"host_stream", "the host launches into a stream", launch_by<launch_host_stream>, work},
        {"host_graph", "the host launches a graph of all grids", launch_graph<HostGraph>, work},
        {"programmatic", "a grid begins while the one before ends", launch_by<launch_programmatic>, work},
        {"child", "a thread launches into its default stream", launch_by<launch_child>, work},
        {"tail", "each grid launches the next one", launch_by<launch_tail>, work},
        {"device_graph", "each graph launches itself again", launch_graph<SelfLaunch>, work},
        {"while_node", "a node of a graph repeats its body", launch_graph<WhileNode>, work},
    }};
    return list;
}

}  // namespace day39

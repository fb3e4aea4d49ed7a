// Day 36's searches: argument checks, the loops over levels, the list of versions. The kernels and
// their launches are in graph_traversal.cuh and beyond/.
#include <algorithm>
#include <array>

#include "beyond/balanced.cuh"
#include "beyond/bottom_up.cuh"
#include "beyond/directions.cuh"
#include "beyond/small_levels.cuh"
#include "beyond/while_graph.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "graph_traversal.cuh"
#include "graph_traversal.hpp"

namespace day36 {
namespace {

using course::DeviceSpan;
using course::require;

void check(const DeviceGraph& graph, Vertex source, const DeviceSpan<unsigned>& level,
           const DeviceSpan<Vertex>& parent, const Workspace& workspace) {
    require(source < graph.vertices(), "graph_traversal: source is ", source, "; expected less than ",
            graph.vertices(), ", the number of vertices");
    require(level.size() == graph.vertices(), "graph_traversal: level has ", level.size(),
            " elements; expected ", graph.vertices(), ", the number of vertices");
    require(parent.size() == graph.vertices(), "graph_traversal: parent has ", parent.size(),
            " elements; expected ", graph.vertices(), ", the number of vertices");
    require(!overlap(level, parent), "graph_traversal: parent overlaps level; expected no element in common");
    require(workspace.graph == &graph, "graph_traversal: workspace is another graph's; expected this one's");
}

unsigned vertices_of(const DeviceGraph& graph) {
    return static_cast<unsigned>(graph.vertices());
}
Rows out_rows(const DeviceGraph& graph) {
    return {graph.out_offsets(), graph.out_neighbours(), vertices_of(graph)};
}
Rows in_rows(const DeviceGraph& graph) {
    return {graph.in_offsets(), graph.in_neighbours(), vertices_of(graph)};
}

// A word of the device, once everything on `stream` is done.
template <class T>
T read_back(const T* word, cudaStream_t stream) {
    T value{};
    CUDA_CHECK(cudaMemcpyAsync(&value, word, sizeof(T), cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return value;
}

void begin_search(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                  DeviceSpan<Vertex> parent, cudaStream_t stream) {
    launch_reset(level.data(), parent.data(), vertices_of(graph), source, stream);
    CUDA_CHECK_LAUNCH();
}

// The loop of the versions without a queue, until a level is empty. step(current, found) enqueues a
// kernel that counts in workspace.count[0]; `found` is the count of the level before.
template <class Step>
void each_level(Workspace& workspace, cudaStream_t stream, Step step) {
    unsigned found = 1;
    for (unsigned current = 1; found != 0; ++current) {
        CUDA_CHECK(cudaMemsetAsync(workspace.count.data(), 0, sizeof(unsigned), stream));
        step(current, found);
        CUDA_CHECK_LAUNCH();
        found = read_back(workspace.count.data(), stream);
    }
}

void search_push(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                 DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    check(graph, source, level, parent, workspace);
    begin_search(graph, source, level, parent, stream);
    each_level(workspace, stream, [&](unsigned current, unsigned) {
        launch_push(out_rows(graph), current, level.data(), parent.data(), workspace.count.data(), stream);
    });
}

void search_pull(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                 DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    check(graph, source, level, parent, workspace);
    begin_search(graph, source, level, parent, stream);
    each_level(workspace, stream, [&](unsigned current, unsigned) {
        launch_pull(in_rows(graph), current, level.data(), parent.data(), workspace.count.data(), stream);
    });
}

void search_edge_centric(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                         DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    check(graph, source, level, parent, workspace);
    begin_search(graph, source, level, parent, stream);
    each_level(workspace, stream, [&](unsigned current, unsigned) {
        launch_edge_centric(graph.sources(), graph.out_neighbours(), static_cast<unsigned>(graph.edges()),
                            current, level.data(), parent.data(), workspace.count.data(), stream);
    });
}

void search_direction_simple(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                             DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    check(graph, source, level, parent, workspace);
    begin_search(graph, source, level, parent, stream);
    each_level(workspace, stream, [&](unsigned current, unsigned in_frontier) {
        launch_direction_simple(out_rows(graph), in_rows(graph), in_frontier, current, level.data(),
                                parent.data(), workspace.count.data(), stream);
    });
}

// The loop of the versions with a queue: step(begin, end, level) enqueues a kernel that appends to
// the queue and counts in workspace.count[0].
template <class Step>
void each_frontier(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                   DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream, Step step) {
    check(graph, source, level, parent, workspace);
    begin_search(graph, source, level, parent, stream);
    CUDA_CHECK(cudaMemcpyAsync(workspace.queue.data(), parent.data() + source, sizeof(Vertex),
                               cudaMemcpyDeviceToDevice, stream));
    unsigned begin = 0;
    unsigned end = 1;
    for (unsigned current = 1; begin < end; ++current) {
        CUDA_CHECK(cudaMemsetAsync(workspace.count.data(), 0, sizeof(unsigned), stream));
        step(begin, end, current);
        CUDA_CHECK_LAUNCH();
        begin = end;
        end += read_back(workspace.count.data(), stream);
    }
}

void search_frontier(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                     DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    each_frontier(graph, source, level, parent, workspace, stream,
                  [&](unsigned begin, unsigned end, unsigned current) {
                      launch_frontier(out_rows(graph), workspace.queue.data(), begin, end, current,
                                      level.data(), parent.data(), workspace.count.data(), stream);
                  });
}

void search_frontier_privatised(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                                DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    each_frontier(graph, source, level, parent, workspace, stream,
                  [&](unsigned begin, unsigned end, unsigned current) {
                      launch_frontier_privatised(out_rows(graph), workspace.queue.data(), begin, end, current,
                                                 level.data(), parent.data(), workspace.count.data(), stream);
                  });
}

void search_single_block(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                         DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    check(graph, source, level, parent, workspace);
    begin_search(graph, source, level, parent, stream);
    CUDA_CHECK(cudaMemcpyAsync(workspace.queue.data(), parent.data() + source, sizeof(Vertex),
                               cudaMemcpyDeviceToDevice, stream));
    Progress p{.level = 0, .begin = 0, .end = 1, .edges = 0, .turn = 0};
    while (p.begin < p.end) {
        if (p.end - p.begin <= kFewVertices) {
            CUDA_CHECK(
                cudaMemcpyAsync(workspace.progress.data(), &p, sizeof(p), cudaMemcpyHostToDevice, stream));
            launch_single_block(out_rows(graph), workspace.queue.data(), workspace.progress.data(),
                                level.data(), parent.data(), stream);
            CUDA_CHECK_LAUNCH();
            p = read_back(workspace.progress.data(), stream);
        } else {
            CUDA_CHECK(cudaMemsetAsync(workspace.count.data(), 0, sizeof(unsigned), stream));
            launch_frontier_privatised(out_rows(graph), workspace.queue.data(), p.begin, p.end, ++p.level,
                                       level.data(), parent.data(), workspace.count.data(), stream);
            CUDA_CHECK_LAUNCH();
            p.begin = p.end;
            p.end += read_back(workspace.count.data(), stream);
        }
    }
}

void search_cooperative(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                        DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    check(graph, source, level, parent, workspace);
    launch_cooperative(out_rows(graph), source, workspace.queue.data(), level.data(), parent.data(),
                       workspace.count.data(), stream);
}

Traversal traversal(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                    DeviceSpan<Vertex> parent, Workspace& workspace) {
    check(graph, source, level, parent, workspace);
    const unsigned words = course::ceil_div(vertices_of(graph), 32u);
    return {.out = out_rows(graph),
            .in = in_rows(graph),
            .source = source,
            .edges = static_cast<unsigned>(graph.edges()),
            .words = words,
            .without_incoming = graph.without_incoming(),
            .level = level.data(),
            .parent = parent.data(),
            .visited = workspace.visited.data(),
            .frontier = workspace.frontier.data(),
            .queue = workspace.entries.data(),
            .found = workspace.found.data()};
}

template <void (*kLaunch)(const Traversal&, cudaStream_t)>
void search_by(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level, DeviceSpan<Vertex> parent,
               Workspace& workspace, cudaStream_t stream) {
    kLaunch(traversal(graph, source, level, parent, workspace), stream);
}

void search_direction_optimised(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                                DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
    launch_direction_optimised(traversal(graph, source, level, parent, workspace), workspace.progress.data(),
                               stream);
}

}  // namespace

#if CUDART_VERSION >= 12040
// The loop of while_graph, for one set of pointers.
class WhileGraph {
  public:
    WhileGraph(const Traversal& t, Progress* progress) : level_(t.level), parent_(t.parent) {
        try {
            make(t, progress);
        } catch (...) {
            release();
            throw;
        }
    }
    WhileGraph(const WhileGraph&) = delete;
    WhileGraph& operator=(const WhileGraph&) = delete;
    ~WhileGraph() { release(); }

    bool writes_to(const unsigned* level, const Vertex* parent) const {
        return level == level_ && parent == parent_;
    }
    void launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(executable_, stream)); }

  private:
    void make(const Traversal& t, Progress* progress) {
        CUDA_CHECK(cudaGraphCreate(&graph_, 0));
        cudaGraphConditionalHandle go_on{};
        CUDA_CHECK(cudaGraphConditionalHandleCreate(&go_on, graph_, 1, cudaGraphCondAssignDefault));
        cudaGraphNodeParams node{};
        node.type = cudaGraphNodeTypeConditional;
        node.conditional.handle = go_on;
        node.conditional.type = cudaGraphCondTypeWhile;
        node.conditional.size = 1;
        cudaGraphNode_t loop = nullptr;
#if CUDART_VERSION >= 13000
        CUDA_CHECK(cudaGraphAddNode(&loop, graph_, nullptr, nullptr, 0, &node));
#else
        CUDA_CHECK(cudaGraphAddNode(&loop, graph_, nullptr, 0, &node));
#endif
        const unsigned blocks = course::resident_blocks(graph_level, static_cast<int>(kLargeBlock));
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream_, node.conditional.phGraph_out[0], nullptr, nullptr,
                                                 0, cudaStreamCaptureModeThreadLocal));
        launch_graph_level(t, progress, blocks, stream_);
        CUDA_CHECK_LAUNCH();
        launch_while_graph(t, progress, go_on, stream_);
        CUDA_CHECK_LAUNCH();  // a body without this kernel would be repeated forever
        CUDA_CHECK(cudaStreamEndCapture(stream_, nullptr));
        CUDA_CHECK(cudaStreamDestroy(stream_));
        stream_ = nullptr;
        CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    }
    void release() {
        // Only where make() has failed is there a stream, and perhaps a capture that did not end.
        if (stream_ != nullptr) {
            static_cast<void>(cudaStreamEndCapture(stream_, nullptr));
            static_cast<void>(cudaStreamDestroy(stream_));
            static_cast<void>(cudaGetLastError());
        }
        if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
        if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
    }

    const unsigned* level_;
    const Vertex* parent_;
    cudaStream_t stream_ = nullptr;  // records the body
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
};
#endif

namespace {

void search_while_graph(const DeviceGraph& graph, Vertex source, DeviceSpan<unsigned> level,
                        DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream) {
#if CUDART_VERSION >= 12040
    const Traversal t = traversal(graph, source, level, parent, workspace);
    if (!workspace.while_graph || !workspace.while_graph->writes_to(t.level, t.parent))
        workspace.while_graph = std::make_shared<WhileGraph>(t, workspace.progress.data());
    launch_graph_reset(t, stream);
    CUDA_CHECK_LAUNCH();
    launch_graph_start(t, workspace.progress.data(), stream);
    CUDA_CHECK_LAUNCH();
    workspace.while_graph->launch(stream);
#else
    check(graph, source, level, parent, workspace);
    require(false, "graph_traversal: while_graph needs CUDA 12.4 or newer");
    static_cast<void>(stream);
#endif
}

std::string why_no_while_graph(const Problem&) {
    constexpr int kNeeded = 12040;
    int driver = 0;
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    if (CUDART_VERSION >= kNeeded && driver >= kNeeded) return "";
    const auto text = [](int version) {
        return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    };
    return "needs conditional nodes, of CUDA 12.4 or newer; the toolkit is " + text(CUDART_VERSION) +
           ", the driver " + text(driver);
}

// The level and the parent of each vertex are written. How many bytes a search reads depends on the
// graph and the version, so they do not count.
course::Work work(const Problem& problem) {
    const double written = 2 * sizeof(unsigned) * static_cast<double>(problem.vertices);
    return {.bytes = written, .written = written};
}

}  // namespace

Workspace::Workspace(const DeviceGraph& of)
    : graph(&of),
      queue(of.vertices()),
      entries(of.vertices() + of.edges() / kEntryEdges),
      visited(course::ceil_div(of.vertices(), std::size_t{32})),
      frontier(2 * visited.size()),
      found(3),
      count(3),
      progress(1) {}

std::span<const Version> versions() {
    static const std::array<Version, 12> list = {{
        {"push", "a thread per vertex, which looks for neighbours", search_push, work},
        {"pull", "a thread per vertex, which looks for a parent", search_pull, work},
        {"edge_centric", "a thread per edge", search_edge_centric, work},
        {"direction_simple", "push, then pull when the frontier is large", search_direction_simple, work},
        {"frontier", "a queue of the vertices found", search_frontier, work},
        {"frontier_privatised", "a queue of each block in shared memory", search_frontier_privatised, work},
        {"single_block", "small levels in one block, without launch", search_single_block, work},
        {"cooperative", "all levels in one launch", search_cooperative, work},
        {"frontier_balanced", "hubs in pieces, warps with equal shares", search_by<launch_frontier_balanced>,
         work},
        {"bottom_up", "bits, and long lists by a warp", search_by<launch_bottom_up>, work},
        {"direction_optimised", "down, up, or in one block, by the frontier", search_direction_optimised,
         work},
        {"while_graph", "a CUDA graph that repeats itself", search_while_graph, work, why_no_while_graph},
    }};
    return list;
}

}  // namespace day36

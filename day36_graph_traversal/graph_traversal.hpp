// Breadth-first search: the host API of day 36. The kernels are in graph_traversal.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "graph.hpp"

namespace day36 {

class WhileGraph;  // an instantiated CUDA graph

// An entry of the queue of beyond/balanced.cuh: at most 32 edges of one vertex, [begin, end).
struct alignas(16) Entry {
    Vertex vertex;
    std::uint32_t begin;
    std::uint32_t end;
    std::uint32_t unused = 0;
};
inline constexpr std::uint32_t kEntryEdges = 32;

// The state of a search between launches.
struct Progress {
    std::uint32_t level;  // the frontier's
    std::uint32_t begin;  // the frontier: entries [begin, end) of the queue
    std::uint32_t end;
    std::uint32_t edges;  // edges of the frontier
    std::uint32_t turn;   // found[turn % 3] is the next level's counter
};

// Memory for the searches of one graph, one at a time.
struct Workspace {
    explicit Workspace(const DeviceGraph& graph);

    const DeviceGraph* graph;
    course::DeviceBuffer<Vertex> queue;              // the vertices in the order in which they are found
    course::DeviceBuffer<Entry> entries;             // the same, with hubs in pieces
    course::DeviceBuffer<std::uint32_t> visited;     // a bit for each vertex
    course::DeviceBuffer<std::uint32_t> frontier;    // the same, twice
    course::DeviceBuffer<unsigned long long> found;  // three counters
    course::DeviceBuffer<std::uint32_t> count;       // three more
    course::DeviceBuffer<Progress> progress;
    std::shared_ptr<WhileGraph> while_graph;  // made by the first search that needs it
};

// Searches `graph` from `source`, breadth first. level: the number of edges on a shortest path from
// the source; parent: the vertex before this one on such a path. The source is its own parent. Both
// are kUnreached if there is no path. A vertex may have several right parents; which of them is
// stored is unspecified. Enqueues its work on `stream`. Where the host runs the loop over levels,
// it waits for the stream. Throws std::invalid_argument for a source that is not a vertex, for
// lengths other than graph.vertices(), for memory that overlaps and for a workspace of another
// graph; CudaError when a launch fails.
using Launcher = void (*)(const DeviceGraph& graph, Vertex source, course::DeviceSpan<std::uint32_t> level,
                          course::DeviceSpan<Vertex> parent, Workspace& workspace, cudaStream_t stream);

struct Problem {
    std::size_t vertices = 0;
};

// The versions, in the order of the lesson.
using Version = course::Version<Launcher, Problem>;
std::span<const Version> versions();

// --- On the CPU ----------------------------------------------------------------------------------

struct Search {
    std::vector<std::uint32_t> level;
    std::vector<Vertex> parent;
};

// The reference: a queue. Throws std::invalid_argument for a source that is not a vertex.
Search search_on_cpu(const Graph& graph, Vertex source);

// The error of a search by the rules of Graph500, or "". The source has level 0 and is its own
// parent. Any other vertex that was reached has a level one more than that of its parent, and
// there is an edge between them. No edge leads from a reached vertex to one that was not reached,
// or to one whose level is higher by more than one. Only the levels of a breadth-first search
// fulfil these rules.
std::string what_is_wrong(const Graph& graph, Vertex source, std::span<const std::uint32_t> level,
                          std::span<const Vertex> parent);

// Edges of the vertices that a search has reached.
std::size_t edges_of_reached(const Graph& graph, std::span<const std::uint32_t> level);

}  // namespace day36

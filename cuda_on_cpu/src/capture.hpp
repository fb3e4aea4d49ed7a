// A stream capture: the operations that its streams issue become nodes of a graph.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "driver_types.h"
#include "stream_operation.hpp"

namespace cuda_on_cpu {

// Shared by the streams that join a capture through events.
struct Capture {
    // If `graph_to_extend` is null, the capture creates a graph and owns it until the graph is
    // taken.
    Capture(cudaStream_t begun_in, cudaGraph_t graph_to_extend, cudaStreamCaptureMode its_mode);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    // Adds a node that depends on the nodes of `after`, then sets `after` to the new node alone, so
    // that the stream's next operation depends on it.
    void record(StreamOperation operation, std::vector<cudaGraphNode_t>& after);
    // True if each recorded node is in `last` or precedes a node of `last`.
    bool is_joined(const std::vector<cudaGraphNode_t>& last) const;
    void end();
    // Does it forbid this host thread the calls that may synchronise on a GPU?
    bool forbids_here() const;

    cudaGraph_t graph;
    bool owns_graph;
    std::size_t nodes_before;  // number of nodes of the graph when the capture began
    cudaStream_t origin;       // null: it has ended
    cudaStreamCaptureMode mode;
    std::thread::id thread = std::this_thread::get_id();  // that has begun it
    bool invalidated = false;
};

// Is any stream being captured?
bool somebody_captures();

}  // namespace cuda_on_cpu

// A capture: what its streams issue becomes nodes of a graph.
#pragma once

#include <cstddef>
#include <vector>

#include "driver_types.h"
#include "stream_operation.hpp"

namespace cuda_on_cpu {

// Streams that join a capture through events share it.
struct Capture {
    // Null: the capture makes a graph, and owns it until somebody takes it.
    Capture(cudaStream_t begun_in, cudaGraph_t graph_to_extend, bool is_relaxed);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    // Adds a node that comes after these nodes. They become that node alone: what the stream issues
    // next comes after it.
    void record(StreamOperation operation, std::vector<cudaGraphNode_t>& after);
    // Is each node that was recorded one of `last`, or one that comes before one of them?
    bool is_joined(const std::vector<cudaGraphNode_t>& last) const;
    void end();

    cudaGraph_t graph;
    bool owns_graph;
    std::size_t nodes_before;  // that the graph had when the capture began
    cudaStream_t origin;       // null: it has ended
    bool relaxed;              // allows calls that a GPU's driver may answer by waiting
    bool invalidated = false;
};

// Does some stream capture at all?
bool somebody_captures();

}  // namespace cuda_on_cpu

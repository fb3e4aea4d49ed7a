#include "capture.hpp"

#include <atomic>
#include <utility>

#include "graph.hpp"

namespace cuda_on_cpu {

namespace {

std::atomic<unsigned> captures{0};  // captures that have begun and not ended

}  // namespace

Capture::Capture(cudaStream_t begun_in, cudaGraph_t graph_to_extend, cudaStreamCaptureMode its_mode)
    : graph(graph_to_extend != nullptr ? graph_to_extend : create_graph()),
      owns_graph(graph_to_extend == nullptr),
      nodes_before(number_of_nodes(*graph)),
      origin(begun_in),
      mode(its_mode) {
    ++captures;
}

Capture::~Capture() {
    if (owns_graph) destroy_graph(graph);
    end();
}

void Capture::record(StreamOperation operation, std::vector<cudaGraphNode_t>& after) {
    after = {add_node(*graph, std::move(operation), after)};
}

bool Capture::is_joined(const std::vector<cudaGraphNode_t>& last) const {
    return all_come_before(*graph, nodes_before, last);
}

void Capture::end() {
    if (std::exchange(origin, nullptr) != nullptr) --captures;
}

bool Capture::forbids_here() const {
    return mode == cudaStreamCaptureModeGlobal ||
           (mode == cudaStreamCaptureModeThreadLocal && thread == std::this_thread::get_id());
}

bool somebody_captures() {
    return captures > 0;
}

}  // namespace cuda_on_cpu

// Graphs: nodes, their operations and their dependencies.
#pragma once

#include <vector>

#include "driver_types.h"
#include "stream_operation.hpp"

namespace cuda_on_cpu {

cudaGraph_t create_graph();
void destroy_graph(cudaGraph_t graph);
std::size_t number_of_nodes(const CUgraph_st& graph);
cudaGraphNode_t add_node(CUgraph_st& graph, StreamOperation operation, std::vector<cudaGraphNode_t> after);
// Are these nodes of this graph?
cudaError_t check_dependencies(const char* function, cudaGraph_t graph, const cudaGraphNode_t* nodes,
                               std::size_t count);
// True if each node from number `first` on is in `last` or precedes a node of `last`.
bool all_come_before(const CUgraph_st& graph, std::size_t first, const std::vector<cudaGraphNode_t>& last);

}  // namespace cuda_on_cpu

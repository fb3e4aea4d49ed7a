// The state of graphs and their nodes, for the files that implement functions of graphs.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "cuda_runtime_api.h"
#include "graph.hpp"
#include "handles.hpp"

namespace cuda_on_cpu {

// The value behind a cudaGraphConditionalHandle: a kernel sets it, a conditional node reads it.
struct Condition {
    std::atomic<unsigned> value{0};
    unsigned default_value = 0;
    bool has_default = false;
};

struct ConditionalNode {
    std::shared_ptr<Condition> condition;
    cudaGraphConditionalNodeType type = cudaGraphCondTypeIf;
};

// The bytes of a kernel's arguments, and the address of each argument.
struct ArgumentCopies {
    std::vector<std::vector<char>> bytes;
    std::vector<void*> addresses;
};

}  // namespace cuda_on_cpu

struct CUgraphNode_st {
    cudaGraph_t graph = nullptr;
    cuda_on_cpu::StreamOperation operation;
    std::vector<cudaGraphNode_t> after;
    cudaGraphNode_t original = nullptr;  // of a clone
    // The node's parameters, where they are known.
    std::optional<cudaKernelNodeParams> kernel;
    std::shared_ptr<cuda_on_cpu::ArgumentCopies> arguments;
    std::optional<cudaMemcpy3DParms> copy;
    std::optional<cudaMemsetParams> memset;
    std::optional<cudaHostNodeParams> host;
    cudaEvent_t event = nullptr;
    cuda_on_cpu::ConditionalNode conditional;
    std::vector<cudaGraph_t>
        bodies;  // the graph of a child graph node, or the bodies of a conditional node; owned
};

struct CUgraph_st {
    std::vector<cudaGraphNode_t> nodes;  // owned, in the order of creation
    std::vector<std::shared_ptr<cuda_on_cpu::Condition>> conditions;
    cudaGraph_t original = nullptr;  // of a clone
    bool is_body = false;            // of a node, which owns it
};

namespace cuda_on_cpu {

Handles<CUgraph_st>& graphs();
Handles<CUgraphNode_st>& nodes();

cudaError_t no_such_graph(const char* function);
cudaError_t no_such_node(const char* function);
cudaError_t wrong_type(const char* function, const char* expected);

cudaGraph_t clone(const CUgraph_st& original);

}  // namespace cuda_on_cpu

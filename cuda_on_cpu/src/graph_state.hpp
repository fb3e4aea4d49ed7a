// What graphs and their nodes are, for the files that have functions of graphs.
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

// What a kernel sets and a conditional node reads: behind a cudaGraphConditionalHandle.
struct Condition {
    std::atomic<unsigned> value{0};
    unsigned default_value = 0;
    bool has_default = false;
};

struct ConditionalNode {
    std::shared_ptr<Condition> condition;
    cudaGraphConditionalNodeType type = cudaGraphCondTypeIf;
};

// Bytes of a kernel's arguments, and where each begins.
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
    // What the parameters were, where they are known.
    std::optional<cudaKernelNodeParams> kernel;
    std::shared_ptr<cuda_on_cpu::ArgumentCopies> arguments;
    std::optional<cudaMemcpy3DParms> copy;
    std::optional<cudaMemsetParams> memset;
    std::optional<cudaHostNodeParams> host;
    cudaEvent_t event = nullptr;
    cuda_on_cpu::ConditionalNode conditional;
    std::vector<cudaGraph_t> bodies;  // a child graph's one, a conditional node's; owned
};

struct CUgraph_st {
    std::vector<cudaGraphNode_t> nodes;  // owned, in the order of their making
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

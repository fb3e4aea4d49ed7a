// Nodes of each type, and their parameters.
#include "graph_nodes.hpp"

#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "kernel_call.hpp"
#include "memory_operations.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {

cudaError_t set_kernel(const char* function, CUgraphNode_st& node, const cudaKernelNodeParams* params) {
    if (params == nullptr) return refuse(cudaErrorInvalidValue, function, "the parameters are null");
    if (params->extra != nullptr)
        return refuse(cudaErrorNotSupported, function, "`extra`; expected kernelParams");
    KernelCall call;
    if (const cudaError_t error = call_by_address(function, params->func, params->kernelParams, &call);
        error != cudaSuccess) {
        return error;
    }
    LaunchConfiguration configuration{
        .grid = params->gridDim, .block = params->blockDim, .dynamic_shared = params->sharedMemBytes};
    if (const cudaError_t error = check_launch(call, &configuration); error != cudaSuccess) return error;
    auto copies = std::make_shared<ArgumentCopies>();
    for (std::size_t i = 0; call.kernel->parameters[i].size != 0; ++i) {
        const char* from = static_cast<const char*>(params->kernelParams[i]);
        copies->bytes.emplace_back(from, from + call.kernel->parameters[i].size);
        copies->addresses.push_back(copies->bytes.back().data());
    }
    node.operation = launch_operation(std::move(call), configuration);
    node.kernel = *params;
    node.kernel->kernelParams = copies->addresses.data();
    node.arguments = std::move(copies);
    return cudaSuccess;
}

cudaError_t set_copy(const char* function, CUgraphNode_st& node, const cudaMemcpy3DParms* params) {
    if (params == nullptr) return refuse(cudaErrorInvalidValue, function, "the parameters are null");
    if (const cudaError_t error = copy_operation(function, *params, &node.operation); error != cudaSuccess)
        return error;
    node.copy = *params;
    return cudaSuccess;
}

cudaError_t set_memset(const char* function, CUgraphNode_st& node, const cudaMemsetParams* params) {
    if (params == nullptr) return refuse(cudaErrorInvalidValue, function, "the parameters are null");
    if (const cudaError_t error = memset_operation(function, *params, &node.operation); error != cudaSuccess)
        return error;
    node.memset = *params;
    return cudaSuccess;
}

cudaError_t set_host(const char* function, CUgraphNode_st& node, const cudaHostNodeParams* params) {
    if (params == nullptr || params->fn == nullptr)
        return refuse(cudaErrorInvalidValue, function, "the function is null");
    node.operation = host_operation(params->fn, params->userData);
    node.host = *params;
    return cudaSuccess;
}

cudaMemcpy3DParms one_dimensional(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    cudaMemcpy3DParms params = {};
    params.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
    params.dstPtr = {to, bytes, bytes, 1};
    params.extent = {bytes, 1, 1};
    params.kind = kind;
    return params;
}

namespace {

Condition* condition_of(cudaGraphConditionalHandle handle) {
    return reinterpret_cast<Condition*>(handle);
}

// Is `graph` the body of a node of `outer`, or a body within such a body?
bool is_inside(cudaGraph_t graph, const CUgraph_st& outer) {
    return std::ranges::any_of(outer.nodes, [graph](const CUgraphNode_st* node) {
        return std::ranges::any_of(node->bodies, [graph](const CUgraph_st* body) {
            return body == graph || is_inside(graph, *body);
        });
    });
}

// Sets `found` to the condition of a handle that was made for `graph` or a graph around it. CUDA
// allows no other handle.
cudaError_t find_condition(const char* function, cudaGraph_t graph, cudaGraphConditionalHandle handle,
                           std::shared_ptr<Condition>* found) {
    bool exists = false;
    graphs().for_each([&](CUgraph_st& owner) {
        for (const auto& condition : owner.conditions) {
            if (condition.get() != condition_of(handle)) continue;
            exists = true;
            if (&owner == graph || is_inside(graph, owner)) *found = condition;
        }
    });
    if (*found != nullptr) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, function, "the conditional handle %s",
                  exists ? "belongs to another graph; expected one of this graph or of a graph around it"
                         : "does not exist");
}

// The operation of a node without work of its own.
StreamOperation of_type(cudaGraphNodeType type) {
    return {.work = nullptr, .type = type, .launch = {}};
}

// Common arguments of all functions that add a node.
struct NewNode {
    const char* function;
    cudaGraphNode_t* node;
    cudaGraph_t graph;
    const cudaGraphNode_t* dependencies;
    std::size_t count;
};

cudaError_t check(const NewNode& request) {
    if (request.node == nullptr) return refuse(cudaErrorInvalidValue, request.function, "node is null");
    return check_dependencies(request.function, request.graph, request.dependencies, request.count);
}

cudaGraphNode_t add(const NewNode& request, StreamOperation operation) {
    *request.node = add_node(*request.graph, std::move(operation),
                             {request.dependencies, request.dependencies + request.count});
    return *request.node;
}

template <class Params>
cudaError_t add_with(const NewNode& request, Setter<Params> set, const Params* params) {
    if (const cudaError_t error = check(request); error != cudaSuccess) return error;
    CUgraphNode_st node;
    if (const cudaError_t error = set(request.function, node, params); error != cudaSuccess) return error;
    node.graph = request.graph;
    node.after = {request.dependencies, request.dependencies + request.count};
    *request.node = nodes().create(std::move(node));
    request.graph->nodes.push_back(*request.node);
    return cudaSuccess;
}

// Sets new parameters of a node of a graph.
template <class Params>
cudaError_t change(const char* function, cudaGraphNode_t node, cudaGraphNodeType type, Setter<Params> set,
                   const Params* params) {
    if (!nodes().contains(node)) return no_such_node(function);
    if (node->operation.type != type) return wrong_type(function, "that of the parameters");
    return set(function, *node, params);
}

cudaError_t add_event_node(const NewNode& request, cudaGraphNodeType type, cudaEvent_t event) {
    if (const cudaError_t error = check(request); error != cudaSuccess) return error;
    if (!event_exists(event))
        return refuse(cudaErrorInvalidValue, request.function, "this event does not exist (any more)");
    StreamOperation operation = of_type(type);
    if (type == cudaGraphNodeTypeWaitEvent) {
        operation.work = [event] {
            if (event_exists(event)) wait_for(tasks_before(event));
            return cudaSuccess;
        };
        operation.may_wait = true;
    }
    add(request, std::move(operation))->event = event;
    return cudaSuccess;
}

cudaError_t add_conditional_node(const NewNode& request, cudaConditionalNodeParams& params) {
    if (const cudaError_t error = check(request); error != cudaSuccess) return error;
    std::shared_ptr<Condition> condition;
    if (const cudaError_t error = find_condition(request.function, request.graph, params.handle, &condition);
        error != cudaSuccess) {
        return error;
    }
    const unsigned most = params.type == cudaGraphCondTypeIf      ? 2
                          : params.type == cudaGraphCondTypeWhile ? 1
                                                                  : 65536;
    if (params.size < 1 || params.size > most)
        return refuse(cudaErrorInvalidValue, request.function, "size is %u; expected 1 to %u for this type",
                      params.size, most);
    const cudaGraphNode_t node = add(request, of_type(cudaGraphNodeTypeConditional));
    node->conditional = {condition, params.type};
    for (unsigned i = 0; i < params.size; ++i) {
        node->bodies.push_back(create_graph());
        node->bodies.back()->is_body = true;
    }
    params.phGraph_out = node->bodies.data();
    return cudaSuccess;
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// --- Nodes of each type --------------------------------------------------------------------------

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaKernelNodeParams* params) {
    return add_with({__func__, node, graph, dependencies, count}, set_kernel, params);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaMemcpy3DParms* params) {
    return add_with({__func__, node, graph, dependencies, count}, set_copy, params);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, std::size_t count, void* to,
                                     const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const cudaMemcpy3DParms params = one_dimensional(to, from, bytes, kind);
    return add_with({__func__, node, graph, dependencies, count}, set_copy, &params);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaMemsetParams* params) {
    return add_with({__func__, node, graph, dependencies, count}, set_memset, params);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, std::size_t count,
                                 const cudaHostNodeParams* params) {
    return add_with({__func__, node, graph, dependencies, count}, set_host, params);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, std::size_t count,
                                       cudaGraph_t child) {
    const NewNode request{__func__, node, graph, dependencies, count};
    if (const cudaError_t error = check(request); error != cudaSuccess) return error;
    if (!graphs().contains(child)) return no_such_graph(__func__);
    const cudaGraph_t body = clone(*child);
    body->is_body = true;
    add(request, of_type(cudaGraphNodeTypeGraph))->bodies = {body};
    return cudaSuccess;
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, std::size_t count) {
    const NewNode request{__func__, node, graph, dependencies, count};
    if (const cudaError_t error = check(request); error != cudaSuccess) return error;
    add(request, of_type(cudaGraphNodeTypeEmpty));
    return cudaSuccess;
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, std::size_t count,
                                        cudaEvent_t event) {
    return add_event_node({__func__, node, graph, dependencies, count}, cudaGraphNodeTypeEventRecord, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, std::size_t count,
                                      cudaEvent_t event) {
    return add_event_node({__func__, node, graph, dependencies, count}, cudaGraphNodeTypeWaitEvent, event);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, std::size_t count,
                                     cudaMemAllocNodeParams* params) {
    const NewNode request{__func__, node, graph, dependencies, count};
    if (const cudaError_t error = check(request); error != cudaSuccess) return error;
    if (params == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the parameters are null");
    StreamOperation operation;
    if (const cudaError_t error = graph_allocation(__func__, params->bytesize, &params->dptr, &operation);
        error != cudaSuccess) {
        return error;
    }
    add(request, std::move(operation));
    return cudaSuccess;
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, std::size_t count, void* pointer) {
    const NewNode request{__func__, node, graph, dependencies, count};
    if (const cudaError_t error = check(request); error != cudaSuccess) return error;
    StreamOperation operation;
    if (const cudaError_t error = graph_release(__func__, pointer, &operation); error != cudaSuccess)
        return error;
    add(request, std::move(operation));
    return cudaSuccess;
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData*, std::size_t count, cudaGraphNodeParams* params) {
    if (params == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the parameters are null");
    const NewNode request{__func__, node, graph, dependencies, count};
    switch (params->type) {
        case cudaGraphNodeTypeKernel:
            return add_with(request, set_kernel, &params->kernel);
        case cudaGraphNodeTypeMemcpy:
            return add_with(request, set_copy, &params->memcpy.copyParams);
        case cudaGraphNodeTypeMemset:
            return add_with(request, set_memset, &params->memset);
        case cudaGraphNodeTypeHost:
            return add_with(request, set_host, &params->host);
        case cudaGraphNodeTypeGraph:
            return cudaGraphAddChildGraphNode(node, graph, dependencies, count, params->graph.graph);
        case cudaGraphNodeTypeEmpty:
            return cudaGraphAddEmptyNode(node, graph, dependencies, count);
        case cudaGraphNodeTypeWaitEvent:
            return add_event_node(request, params->type, params->eventWait.event);
        case cudaGraphNodeTypeEventRecord:
            return add_event_node(request, params->type, params->eventRecord.event);
        case cudaGraphNodeTypeMemAlloc:
            return cudaGraphAddMemAllocNode(node, graph, dependencies, count, &params->alloc);
        case cudaGraphNodeTypeMemFree:
            return cudaGraphAddMemFreeNode(node, graph, dependencies, count, params->free.dptr);
        case cudaGraphNodeTypeConditional:
            return add_conditional_node(request, params->conditional);
        default:
            return refuse(cudaErrorNotSupported, __func__, "nodes of type %d",
                          static_cast<int>(params->type));
    }
}

// --- Parameters of nodes -------------------------------------------------------------------------

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    if (!node->operation.launch) return wrong_type(__func__, "a kernel");
    if (node->kernel) {
        *params = *node->kernel;
        return cudaSuccess;
    }
    const LaunchConfiguration& launch = *node->operation.launch;
    *params = {.func = nullptr,  // neither is known for a captured launch
               .gridDim = launch.grid,
               .blockDim = launch.block,
               .sharedMemBytes = static_cast<unsigned>(launch.dynamic_shared),
               .kernelParams = nullptr,
               .extra = nullptr};
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
    return change(__func__, node, cudaGraphNodeTypeKernel, set_kernel, params);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    if (!node->copy) return wrong_type(__func__, "a copy that no capture made");
    *params = *node->copy;
    return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
    return change(__func__, node, cudaGraphNodeTypeMemcpy, set_copy, params);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           std::size_t bytes, cudaMemcpyKind kind) {
    const cudaMemcpy3DParms params = one_dimensional(to, from, bytes, kind);
    return change(__func__, node, cudaGraphNodeTypeMemcpy, set_copy, &params);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    if (!node->memset) return wrong_type(__func__, "a memset that no capture made");
    *params = *node->memset;
    return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
    return change(__func__, node, cudaGraphNodeTypeMemset, set_memset, params);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    if (!node->host) return wrong_type(__func__, "a host function that no capture made");
    *params = *node->host;
    return cudaSuccess;
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
    return change(__func__, node, cudaGraphNodeTypeHost, set_host, params);
}

// --- Conditional nodes ---------------------------------------------------------------------------

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned default_value, unsigned flags) {
    if (handle == nullptr) return refuse(cudaErrorInvalidValue, __func__, "handle is null");
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    auto condition = std::make_shared<Condition>();
    condition->default_value = default_value;
    condition->has_default = flags == cudaGraphCondAssignDefault;
    *handle = reinterpret_cast<cudaGraphConditionalHandle>(condition.get());
    graph->conditions.push_back(std::move(condition));
    return cudaSuccess;
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
    condition_of(handle)->value = value;
}

#include "graph.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "child_grids.hpp"
#include "cuda_runtime_api.h"
#include "devices.hpp"
#include "errors.hpp"
#include "handles.hpp"
#include "kernel_call.hpp"
#include "memory_operations.hpp"

namespace cuda_on_cpu {
namespace {

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

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

struct CUgraphNode_st {
    cudaGraph_t graph = nullptr;
    StreamOperation operation;
    std::vector<cudaGraphNode_t> after;
    cudaGraphNode_t original = nullptr;  // of a clone
    // What the parameters were, where they are known.
    std::optional<cudaKernelNodeParams> kernel;
    std::shared_ptr<ArgumentCopies> arguments;
    std::optional<cudaMemcpy3DParms> copy;
    std::optional<cudaMemsetParams> memset;
    std::optional<cudaHostNodeParams> host;
    cudaEvent_t event = nullptr;
    ConditionalNode conditional;
    std::vector<cudaGraph_t> bodies;  // a child graph's one, a conditional node's; owned
};

struct CUgraph_st {
    std::vector<cudaGraphNode_t> nodes;  // owned, in the order of their making
    std::vector<std::shared_ptr<Condition>> conditions;
    cudaGraph_t original = nullptr;  // of a clone
    bool is_body = false;            // of a node, which owns it
};

namespace cuda_on_cpu {
namespace {

struct Executable;

struct ExecutableNode {
    cudaGraphNode_t node = nullptr;  // of the graph it was made from; perhaps destroyed
    StreamOperation operation;
    std::vector<std::size_t> after;
    cudaEvent_t event = nullptr;
    ConditionalNode conditional;
    std::vector<std::shared_ptr<Executable>> bodies;
    bool enabled = true;
};

struct Executable {
    std::vector<ExecutableNode> nodes;  // each behind those it comes after
    std::vector<std::shared_ptr<Condition>> conditions;
};

}  // namespace
}  // namespace cuda_on_cpu

struct CUgraphExec_st {
    std::shared_ptr<Executable> graph;
    unsigned long long flags = 0;
    TaskPointer last_launch;
};

namespace cuda_on_cpu {
namespace {

Handles<CUgraph_st>& graphs() {
    static auto* handles = new Handles<CUgraph_st>;  // usable until the last static destructor
    return *handles;
}
Handles<CUgraphNode_st>& nodes() {
    static auto* handles = new Handles<CUgraphNode_st>;
    return *handles;
}
Handles<CUgraphExec_st>& executables() {
    static auto* handles = new Handles<CUgraphExec_st>;
    return *handles;
}

cudaError_t no_such_graph(const char* function) {
    return refuse(cudaErrorInvalidValue, function, "this graph does not exist (any more)");
}
cudaError_t no_such_node(const char* function) {
    return refuse(cudaErrorInvalidValue, function, "this node does not exist (any more)");
}
cudaError_t wrong_type(const char* function, const char* expected) {
    return refuse(cudaErrorInvalidValue, function, "the node is of another type; expected %s", expected);
}

Condition* condition_of(cudaGraphConditionalHandle handle) {
    return reinterpret_cast<Condition*>(handle);
}

// The condition behind a handle of this graph, or of one that the graph is a body of.
std::shared_ptr<Condition> find_condition(cudaGraphConditionalHandle handle) {
    std::shared_ptr<Condition> found;
    graphs().for_each([&](CUgraph_st& graph) {
        for (const auto& condition : graph.conditions) {
            if (condition.get() == condition_of(handle)) found = condition;
        }
    });
    return found;
}

void destroy_node(cudaGraphNode_t node) {
    for (const cudaGraph_t body : node->bodies)
        destroy_graph(body);
    nodes().destroy(node);
}

// --- Copies of graphs ----------------------------------------------------------------------------

cudaGraph_t clone(const CUgraph_st& original) {
    const cudaGraph_t copy = create_graph();
    copy->conditions = original.conditions;
    copy->original = const_cast<cudaGraph_t>(&original);
    std::map<cudaGraphNode_t, cudaGraphNode_t> of;
    for (const cudaGraphNode_t node : original.nodes) {
        auto* made = nodes().create(*node);
        made->graph = copy;
        made->original = node;
        for (cudaGraph_t& body : made->bodies) {
            body = clone(*body);
            body->is_body = true;
        }
        of[node] = made;
        copy->nodes.push_back(made);
    }
    for (const cudaGraphNode_t made : copy->nodes) {
        for (cudaGraphNode_t& before : made->after)
            before = of[before];
    }
    return copy;
}

// The nodes, each behind those it comes after; fewer if some come after themselves.
std::vector<cudaGraphNode_t> sorted(const CUgraph_st& graph) {
    std::vector<cudaGraphNode_t> order;
    std::set<cudaGraphNode_t> placed;
    bool progress = true;
    while (progress && order.size() < graph.nodes.size()) {
        progress = false;
        for (const cudaGraphNode_t node : graph.nodes) {
            if (placed.contains(node)) continue;
            if (!std::all_of(node->after.begin(), node->after.end(),
                             [&](cudaGraphNode_t before) { return placed.contains(before); }))
                continue;
            order.push_back(node);
            placed.insert(node);
            progress = true;
        }
    }
    return order;
}

// Null: a node comes after itself.
std::shared_ptr<Executable> make_executable(const CUgraph_st& graph) {
    auto executable = std::make_shared<Executable>();
    executable->conditions = graph.conditions;
    std::map<cudaGraphNode_t, std::size_t> place;
    for (const cudaGraphNode_t node : sorted(graph)) {
        ExecutableNode made{.node = node,
                            .operation = node->operation,
                            .after = {},
                            .event = node->event,
                            .conditional = node->conditional,
                            .bodies = {}};
        for (const cudaGraphNode_t before : node->after)
            made.after.push_back(place[before]);
        for (const cudaGraph_t body : node->bodies) {
            made.bodies.push_back(make_executable(*body));
            if (made.bodies.back() == nullptr) return nullptr;
        }
        place[node] = executable->nodes.size();
        executable->nodes.push_back(std::move(made));
    }
    return executable->nodes.size() == graph.nodes.size() ? executable : nullptr;
}

// The node made from `node`, also in child graphs and bodies; null if there is none.
ExecutableNode* find(Executable& executable, cudaGraphNode_t node) {
    for (ExecutableNode& candidate : executable.nodes) {
        if (candidate.node == node) return &candidate;
        for (const auto& body : candidate.bodies) {
            if (ExecutableNode* found = find(*body, node); found != nullptr) return found;
        }
    }
    return nullptr;
}

std::shared_ptr<Executable> deep_copy(const Executable& executable) {
    auto copy = std::make_shared<Executable>(executable);
    for (ExecutableNode& node : copy->nodes) {
        for (auto& body : node.bodies)
            body = deep_copy(*body);
    }
    return copy;
}

// The graph, to be changed: launches that are not done keep what it was.
Executable& changeable(CUgraphExec_st& executable) {
    if (!is_done(executable.last_launch)) executable.graph = deep_copy(*executable.graph);
    return *executable.graph;
}

// --- Launches ------------------------------------------------------------------------------------

void assign_defaults(const Executable& executable) {
    for (const auto& condition : executable.conditions) {
        if (condition->has_default) condition->value = condition->default_value;
    }
    for (const ExecutableNode& node : executable.nodes) {
        for (const auto& body : node.bodies)
            assign_defaults(*body);
    }
}

bool may_wait(const Executable& executable) {
    return std::any_of(executable.nodes.begin(), executable.nodes.end(), [](const ExecutableNode& node) {
        return node.operation.may_wait || std::any_of(node.bodies.begin(), node.bodies.end(),
                                                      [](const auto& body) { return may_wait(*body); });
    });
}

cudaError_t run_here(const Executable& executable);

cudaError_t run_conditional(const ConditionalNode& node,
                            const std::vector<std::shared_ptr<Executable>>& bodies) {
    const unsigned value = node.condition->value;
    switch (node.type) {
        case cudaGraphCondTypeIf:
            if (value != 0) return run_here(*bodies[0]);
            return bodies.size() > 1 ? run_here(*bodies[1]) : cudaSuccess;
        case cudaGraphCondTypeWhile:
            while (node.condition->value != 0) {
                if (const cudaError_t error = run_here(*bodies[0]); error != cudaSuccess) return error;
                if (lost_context() != cudaSuccess) return cudaSuccess;
            }
            return cudaSuccess;
        case cudaGraphCondTypeSwitch:
            return value < bodies.size() ? run_here(*bodies[value]) : cudaSuccess;
    }
    return cudaSuccess;
}

cudaError_t run_here(const ExecutableNode& node) {
    if (!node.enabled) return cudaSuccess;
    switch (node.operation.type) {
        case cudaGraphNodeTypeGraph:
            return node.bodies.empty() ? node.operation.work() : run_here(*node.bodies[0]);
        case cudaGraphNodeTypeConditional:
            return run_conditional(node.conditional, node.bodies);
        case cudaGraphNodeTypeEventRecord:
            if (event_exists(node.event)) record_now(node.event);
            return cudaSuccess;
        default:
            return node.operation.work == nullptr ? cudaSuccess : node.operation.work();
    }
}

// All nodes on this OS thread, one after the other.
cudaError_t run_here(const Executable& executable) {
    for (const ExecutableNode& node : executable.nodes) {
        if (const cudaError_t error = run_here(node); error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

TaskPointer add_task(std::vector<TaskPointer>& tasks, std::vector<TaskPointer> after) {
    tasks.push_back(std::make_shared<Task>());
    tasks.back()->after = std::move(after);
    return tasks.back();
}

// One task for each node. Nodes that come after no other come after `first`. Returns the tasks of
// all nodes.
std::vector<TaskPointer> add_tasks(const Executable& executable, const TaskPointer& first,
                                   std::vector<TaskPointer>& tasks) {
    std::vector<TaskPointer> ends;
    for (const ExecutableNode& node : executable.nodes) {
        std::vector<TaskPointer> after;
        for (const std::size_t before : node.after)
            after.push_back(ends[before]);
        if (after.empty()) after.push_back(first);
        const TaskPointer task = add_task(tasks, std::move(after));
        if (!node.enabled) {
            ends.push_back(task);
        } else if (node.operation.type == cudaGraphNodeTypeGraph && !node.bodies.empty()) {
            std::vector<TaskPointer> inner = add_tasks(*node.bodies[0], task, tasks);
            inner.push_back(task);
            ends.push_back(add_task(tasks, std::move(inner)));
        } else if (node.operation.type == cudaGraphNodeTypeConditional) {
            task->work = [type = node.conditional, bodies = node.bodies] {
                return run_conditional(type, bodies);
            };
            task->may_wait = std::any_of(node.bodies.begin(), node.bodies.end(),
                                         [](const auto& body) { return may_wait(*body); });
            ends.push_back(task);
        } else if (node.operation.type == cudaGraphNodeTypeEventRecord) {
            if (event_exists(node.event)) record_behind(node.event, task);
            ends.push_back(task);
        } else {
            task->work = node.operation.work;
            task->may_wait = node.operation.may_wait;
            task->host_function = node.operation.type == cudaGraphNodeTypeHost;
            ends.push_back(task);
        }
    }
    return ends;
}

cudaError_t launch(CUgraphExec_st& executable, cudaStream_t stream) {
    const std::shared_ptr<Executable> graph = executable.graph;
    if (!work_is_deferred() && !may_wait(*graph)) {
        assign_defaults(*graph);
        const DeviceScope scope(device_of(stream));
        return note(run_here(*graph));
    }
    std::vector<TaskPointer> tasks;
    const TaskPointer first = add_task(tasks, {});
    first->work = [graph] {
        assign_defaults(*graph);
        return cudaSuccess;
    };
    std::vector<TaskPointer> ends = add_tasks(*graph, first, tasks);
    ends.push_back(first);
    add_task(tasks, std::move(ends));
    const TaskPointer before = std::exchange(executable.last_launch, tasks.back());
    issue_graph(tasks, tail_of(stream), is_done(before) ? nullptr : before);
    return cudaSuccess;
}

// --- Making nodes --------------------------------------------------------------------------------

// Of a node that has nothing to do itself.
StreamOperation of_type(cudaGraphNodeType type) {
    return {.work = nullptr, .type = type, .launch = {}};
}

// What is the same for all functions that add a node.
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

// What each type of node has to do, from its parameters. They are kept in `node`.
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

template <class Params>
using Setter = cudaError_t (*)(const char*, CUgraphNode_st&, const Params*);

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

// New parameters of a node of a graph.
template <class Params>
cudaError_t change(const char* function, cudaGraphNode_t node, cudaGraphNodeType type, Setter<Params> set,
                   const Params* params) {
    if (!nodes().contains(node)) return no_such_node(function);
    if (node->operation.type != type) return wrong_type(function, "that of the parameters");
    return set(function, *node, params);
}

// New parameters of a node of an executable graph.
template <class Params>
cudaError_t change(const char* function, cudaGraphExec_t executable, cudaGraphNode_t node,
                   cudaGraphNodeType type, Setter<Params> set, const Params* params) {
    if (!executables().contains(executable)) return no_such_graph(function);
    ExecutableNode* const found = find(changeable(*executable), node);
    if (found == nullptr) return no_such_node(function);
    if (found->operation.type != type) return wrong_type(function, "that of the parameters");
    CUgraphNode_st changed;
    if (const cudaError_t error = set(function, changed, params); error != cudaSuccess) return error;
    found->operation = std::move(changed.operation);
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
    const std::shared_ptr<Condition> condition = find_condition(params.handle);
    if (condition == nullptr)
        return refuse(cudaErrorInvalidValue, request.function, "the conditional handle does not exist");
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

// Hands out `all`, or how many there are if `out` is null.
template <class T>
void give(const std::vector<T>& all, T* out, std::size_t* count) {
    if (out == nullptr) {
        *count = all.size();
        return;
    }
    *count = std::min(*count, all.size());
    std::copy_n(all.begin(), *count, out);
}

cudaError_t change_dependencies(const char* function, cudaGraph_t graph, const cudaGraphNode_t* from,
                                const cudaGraphNode_t* to, std::size_t count, bool add) {
    for (const cudaGraphNode_t* end : {from, to}) {
        if (const cudaError_t error = check_dependencies(function, graph, end, count); error != cudaSuccess)
            return error;
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<cudaGraphNode_t>& after = to[i]->after;
        const auto found = std::find(after.begin(), after.end(), from[i]);
        if ((found == after.end()) != add || from[i] == to[i]) {
            return refuse(cudaErrorInvalidValue, function, "dependency %zu %s", i,
                          add ? "exists already, or is of a node on itself" : "does not exist");
        }
        if (add) {
            after.push_back(from[i]);
        } else {
            after.erase(found);
        }
    }
    return cudaSuccess;
}

const char* name_of(cudaGraphNodeType type) {
    static constexpr const char* kNames[] = {
        "kernel",       "memcpy", "memset", "host",     "graph", "empty", "wait for event",
        "record event", "signal", "wait",   "allocate", "free",  "",      "conditional"};
    return kNames[type];
}

// `from` has the form of `to`: takes over what its nodes have to do.
cudaGraphExecUpdateResultInfo update(Executable& to, const Executable& from) {
    const auto fails = [](cudaGraphExecUpdateResult why, cudaGraphNode_t node) {
        return cudaGraphExecUpdateResultInfo{why, node, nullptr};
    };
    if (to.nodes.size() != from.nodes.size()) return fails(cudaGraphExecUpdateErrorTopologyChanged, nullptr);
    for (std::size_t i = 0; i < to.nodes.size(); ++i) {
        const ExecutableNode& old = to.nodes[i];
        const ExecutableNode& fresh = from.nodes[i];
        if (old.after != fresh.after || old.bodies.size() != fresh.bodies.size())
            return fails(cudaGraphExecUpdateErrorTopologyChanged, fresh.node);
        if (old.operation.type != fresh.operation.type)
            return fails(cudaGraphExecUpdateErrorNodeTypeChanged, fresh.node);
    }
    for (std::size_t i = 0; i < to.nodes.size(); ++i) {
        for (std::size_t b = 0; b < to.nodes[i].bodies.size(); ++b) {
            const auto inner = update(*to.nodes[i].bodies[b], *from.nodes[i].bodies[b]);
            if (inner.result != cudaGraphExecUpdateSuccess) return inner;
        }
        to.nodes[i].operation = from.nodes[i].operation;
        to.nodes[i].event = from.nodes[i].event;
        to.nodes[i].conditional = from.nodes[i].conditional;
    }
    to.conditions = from.conditions;
    return {cudaGraphExecUpdateSuccess, nullptr, nullptr};
}

}  // namespace

cudaGraph_t create_graph() {
    return graphs().create({});
}

void destroy_graph(cudaGraph_t graph) {
    for (const cudaGraphNode_t node : graph->nodes)
        destroy_node(node);
    graphs().destroy(graph);
}

std::size_t number_of_nodes(const CUgraph_st& graph) {
    return graph.nodes.size();
}

cudaGraphNode_t add_node(CUgraph_st& graph, StreamOperation operation, std::vector<cudaGraphNode_t> after) {
    auto* node = new CUgraphNode_st;
    node->graph = &graph;
    node->operation = std::move(operation);
    node->after = std::move(after);
    graph.nodes.push_back(nodes().add(node));
    return node;
}

cudaError_t check_dependencies(const char* function, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                               std::size_t count) {
    if (!graphs().contains(graph)) return no_such_graph(function);
    if (count > 0 && dependencies == nullptr)
        return refuse(cudaErrorInvalidValue, function, "%zu dependencies, and their list is null", count);
    for (std::size_t i = 0; i < count; ++i) {
        if (!nodes().contains(dependencies[i]) || dependencies[i]->graph != graph)
            return refuse(cudaErrorInvalidValue, function, "dependency %zu is no node of this graph", i);
    }
    return cudaSuccess;
}

bool all_come_before(const CUgraph_st& graph, std::size_t first, const std::vector<cudaGraphNode_t>& last) {
    std::set<cudaGraphNode_t> seen;
    std::vector<cudaGraphNode_t> left = last;
    while (!left.empty()) {
        const cudaGraphNode_t node = left.back();
        left.pop_back();
        if (seen.insert(node).second) left.insert(left.end(), node->after.begin(), node->after.end());
    }
    return std::all_of(graph.nodes.begin() + static_cast<std::ptrdiff_t>(first), graph.nodes.end(),
                       [&](cudaGraphNode_t node) { return seen.contains(node); });
}

StreamOperation host_operation(cudaHostFn_t function, void* user_data) {
    return {.work = as_host_function([=] {
                function(user_data);
                return cudaSuccess;
            }),
            .type = cudaGraphNodeTypeHost,
            .may_wait = true,
            .launch = {}};
}

}  // namespace cuda_on_cpu

// --- Graphs and their nodes ----------------------------------------------------------------------

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
    if (graph == nullptr) return refuse(cudaErrorInvalidValue, __func__, "graph is null");
    if (flags != 0) return refuse(cudaErrorInvalidValue, __func__, "flags is %u; expected 0", flags);
    *graph = create_graph();
    return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t original) {
    if (copy == nullptr) return refuse(cudaErrorInvalidValue, __func__, "clone is null");
    if (!graphs().contains(original)) return no_such_graph(__func__);
    *copy = clone(*original);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    if (graph->is_body) return refuse(cudaErrorInvalidValue, __func__, "the graph belongs to a node");
    destroy_graph(graph);
    return cudaSuccess;
}

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

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    std::erase(node->graph->nodes, node);
    for (const cudaGraphNode_t other : node->graph->nodes)
        std::erase(other->after, node);
    destroy_node(node);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* out, std::size_t* count) {
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    give(graph->nodes, out, count);
    return cudaSuccess;
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* out, std::size_t* count) {
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    std::vector<cudaGraphNode_t> roots;
    std::copy_if(graph->nodes.begin(), graph->nodes.end(), std::back_inserter(roots),
                 [](cudaGraphNode_t node) { return node->after.empty(); });
    give(roots, out, count);
    return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, std::size_t* count) {
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    if ((from == nullptr) != (to == nullptr))
        return refuse(cudaErrorInvalidValue, __func__, "one of from and to is null");
    std::vector<cudaGraphNode_t> begins;
    std::vector<cudaGraphNode_t> ends;
    for (const cudaGraphNode_t node : graph->nodes) {
        begins.insert(begins.end(), node->after.begin(), node->after.end());
        ends.resize(begins.size(), node);
    }
    give(begins, from, count);
    give(ends, to, count);
    if (edges != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    *type = node->operation.type;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                         cudaGraphEdgeData* edges, std::size_t* count) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    give(node->after, dependencies, count);
    if (edges != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                           cudaGraphEdgeData* edges, std::size_t* count) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    std::vector<cudaGraphNode_t> behind;
    std::copy_if(node->graph->nodes.begin(), node->graph->nodes.end(), std::back_inserter(behind),
                 [node](cudaGraphNode_t other) {
                     return std::find(other->after.begin(), other->after.end(), node) != other->after.end();
                 });
    give(behind, dependents, count);
    if (edges != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
    return cudaSuccess;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t copy) {
    if (!graphs().contains(copy)) return no_such_graph(__func__);
    const auto found =
        std::find_if(copy->nodes.begin(), copy->nodes.end(),
                     [original](cudaGraphNode_t candidate) { return candidate->original == original; });
    if (found == copy->nodes.end()) return no_such_node(__func__);
    *node = *found;
    return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*, std::size_t count) {
    return change_dependencies(__func__, graph, from, to, count, true);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        std::size_t count) {
    return change_dependencies(__func__, graph, from, to, count, false);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
    if (!nodes().contains(node)) return no_such_node(__func__);
    if (node->operation.type != cudaGraphNodeTypeGraph) return wrong_type(__func__, "a child graph");
    *graph = node->bodies[0];
    return cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the file %s cannot be written",
                      path == nullptr ? "(null)" : path);
    std::map<cudaGraphNode_t, std::size_t> number;
    std::fprintf(file, "digraph {\n");
    for (const cudaGraphNode_t node : graph->nodes) {
        const std::size_t own = number.size();
        number[node] = own;
        std::fprintf(file, "  n%zu [label=\"%zu: %s\"];\n", own, own, name_of(node->operation.type));
    }
    for (const cudaGraphNode_t node : graph->nodes) {
        for (const cudaGraphNode_t before : node->after)
            std::fprintf(file, "  n%zu -> n%zu;\n", number[before], number[node]);
    }
    std::fprintf(file, "}\n");
    std::fclose(file);
    return cudaSuccess;
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
    *params = {.func = nullptr,  // of a captured launch neither is known
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

// --- Executable graphs ---------------------------------------------------------------------------

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    if (executable == nullptr) return refuse(cudaErrorInvalidValue, __func__, "executable is null");
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    auto made = make_executable(*graph);
    if (made == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "a node of the graph comes after itself");
    *executable = executables().create({std::move(made), flags, nullptr});
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                 char* log, std::size_t log_bytes) {
    if (error_node != nullptr) *error_node = nullptr;
    if (log != nullptr && log_bytes > 0) *log = '\0';
    return cudaGraphInstantiate(executable, graph);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
    return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
    if (!executables().contains(executable)) return no_such_graph(__func__);
    *flags = executable->flags;
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
    if (!executables().contains(executable)) return no_such_graph(__func__);
    return submit(
        stream, __func__,
        StreamOperation{.work = [] { return cudaSuccess; }, .type = cudaGraphNodeTypeEmpty, .launch = {}});
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    if (!executables().contains(executable)) return no_such_graph(__func__);
    if (const cudaError_t error = check_issue(stream, __func__); error != cudaSuccess) return error;
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture == nullptr) return launch(*executable, stream);
    return submit(stream, __func__,
                  StreamOperation{.work = [graph = executable->graph] { return run_here(*graph); },
                                  .type = cudaGraphNodeTypeGraph,
                                  .launch = {}});
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return executables().destroy(executable) ? cudaSuccess : no_such_graph(__func__);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
    if (!executables().contains(executable) || !graphs().contains(graph)) return no_such_graph(__func__);
    const auto fresh = make_executable(*graph);
    const cudaGraphExecUpdateResultInfo info =
        fresh == nullptr ? cudaGraphExecUpdateResultInfo{cudaGraphExecUpdateError, nullptr, nullptr}
                         : update(changeable(*executable), *fresh);
    if (result != nullptr) *result = info;
    return info.result == cudaGraphExecUpdateSuccess ? cudaSuccess : note(cudaErrorGraphExecUpdateFailure);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
    return change(__func__, executable, node, cudaGraphNodeTypeKernel, set_kernel, params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
    return change(__func__, executable, node, cudaGraphNodeTypeMemcpy, set_copy, params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const cudaMemcpy3DParms params = one_dimensional(to, from, bytes, kind);
    return change(__func__, executable, node, cudaGraphNodeTypeMemcpy, set_copy, &params);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
    return change(__func__, executable, node, cudaGraphNodeTypeMemset, set_memset, params);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
    return change(__func__, executable, node, cudaGraphNodeTypeHost, set_host, params);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
    if (!executables().contains(executable) || !graphs().contains(child)) return no_such_graph(__func__);
    ExecutableNode* const found = find(changeable(*executable), node);
    if (found == nullptr) return no_such_node(__func__);
    if (found->operation.type != cudaGraphNodeTypeGraph) return wrong_type(__func__, "a child graph");
    const auto fresh = make_executable(*child);
    const bool fits =
        fresh != nullptr && update(*found->bodies[0], *fresh).result == cudaGraphExecUpdateSuccess;
    return fits ? cudaSuccess : note(cudaErrorGraphExecUpdateFailure);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled) {
    if (!executables().contains(executable)) return no_such_graph(__func__);
    ExecutableNode* const found = find(changeable(*executable), node);
    if (found == nullptr) return no_such_node(__func__);
    found->enabled = enabled != 0;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned* enabled) {
    if (!executables().contains(executable)) return no_such_graph(__func__);
    const ExecutableNode* const found = find(changeable(*executable), node);
    if (found == nullptr) return no_such_node(__func__);
    *enabled = found->enabled ? 1 : 0;
    return cudaSuccess;
}

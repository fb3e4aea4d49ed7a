// Executable graphs: instantiation, updates and launches.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "capture.hpp"
#include "child_grids.hpp"
#include "current_device.hpp"
#include "errors.hpp"
#include "graph_nodes.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
struct Executable;

struct ExecutableNode {
    cudaGraphNode_t node = nullptr;  // node of the original graph; may have been destroyed
    StreamOperation operation;
    std::vector<std::size_t> after;
    cudaEvent_t event = nullptr;
    ConditionalNode conditional;
    std::vector<std::shared_ptr<Executable>> bodies;
    bool enabled = true;
};

struct Executable {
    std::vector<ExecutableNode> nodes;  // in topological order
    std::vector<std::shared_ptr<Condition>> conditions;
};

}  // namespace cuda_on_cpu

struct CUgraphExec_st {
    std::shared_ptr<cuda_on_cpu::Executable> graph;
    unsigned long long flags = 0;
    cuda_on_cpu::TaskPointer last_launch;
    bool uploaded = false;
    std::shared_ptr<std::atomic<bool>> launched_by_kernel = std::make_shared<std::atomic<bool>>(false);
};

namespace cuda_on_cpu {
namespace {

Handles<CUgraphExec_st>& executables() {
    // Usable until the last static destructor.
    static auto* handles = new Handles<CUgraphExec_st>("executable graph", "cudaGraphExecDestroy");
    return *handles;
}

// The nodes in topological order; fewer if the graph has a cycle.
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

// Null: the graph has a cycle.
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

// The graph for a change. If its last launch is not done, that keeps the old graph and the change
// is made in a copy.
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

// Runs all nodes on this OS thread, one after the other.
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

// Adds one task per node. Nodes without dependencies come after `first`. Returns the tasks of all
// nodes. `recordings` are to be called once the tasks are issued.
std::vector<TaskPointer> add_tasks(const Executable& executable, const TaskPointer& first,
                                   std::vector<TaskPointer>& tasks,
                                   std::vector<std::function<void()>>& recordings) {
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
            std::vector<TaskPointer> inner = add_tasks(*node.bodies[0], task, tasks, recordings);
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
            if (event_exists(node.event)) recordings.push_back(record_behind(node.event, task));
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

// The graphs that kernels of the run have launched to run behind it; those that these launch come
// before the next one.
void run_behind(GraphRun& run) {
    while (!run.behind.empty() && lost_context() == cudaSuccess) {
        const Work next = std::move(run.behind.front());
        run.behind.pop_front();
        static_cast<void>(next());
    }
    run.behind.clear();
}

bool holds_only_device_work(const Executable& executable) {
    return std::all_of(executable.nodes.begin(), executable.nodes.end(), [](const ExecutableNode& node) {
        const cudaGraphNodeType type = node.operation.type;
        const bool fits = type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
                          type == cudaGraphNodeTypeMemset || type == cudaGraphNodeTypeGraph ||
                          type == cudaGraphNodeTypeEmpty;
        return fits && std::all_of(node.bodies.begin(), node.bodies.end(),
                                   [](const auto& body) { return holds_only_device_work(*body); });
    });
}

cudaError_t launch_by_kernel(CUgraphExec_st& executable, cudaStream_t stream) {
    constexpr const char* kFunction = "cudaGraphLaunch";
    const std::shared_ptr<GraphRun> current = graph_run_of_kernel();
    if (current == nullptr)
        return refuse(cudaErrorInvalidValue, kFunction, "by a kernel that belongs to no graph");
    if ((executable.flags & cudaGraphInstantiateFlagDeviceLaunch) == 0)
        return refuse(cudaErrorInvalidValue, kFunction,
                      "by a kernel: the graph was made without cudaGraphInstantiateFlagDeviceLaunch");
    if (!executable.uploaded)
        return refuse(cudaErrorInvalidValue, kFunction,
                      "by a kernel: the graph is not on the device yet; call cudaGraphUpload()");
    const bool tail = stream == cudaStreamGraphTailLaunch;
    if (!tail && stream != cudaStreamGraphFireAndForget && stream != cudaStreamGraphFireAndForgetAsSibling)
        return refuse(cudaErrorInvalidValue, kFunction,
                      "by a kernel: the stream is none of cudaStreamGraphTailLaunch, "
                      "cudaStreamGraphFireAndForget and cudaStreamGraphFireAndForgetAsSibling");
    const std::shared_ptr<std::atomic<bool>> pending = executable.launched_by_kernel;
    const bool itself = &executable == current->executable;
    if ((itself && !tail) || pending->exchange(true))
        return refuse(cudaErrorInvalidValue, kFunction,
                      "by a kernel: the graph was launched before, and is not complete");
    Work work = [graph = executable.graph, handle = &executable, first = current->first, pending, tail] {
        *pending = false;
        assign_defaults(*graph);
        const auto run = std::make_shared<GraphRun>(handle);
        if (tail) run->first = first;
        {
            const GraphScope scope(run);
            static_cast<void>(run_here(*graph));
        }
        if (!tail) {
            run_behind(*run);
            return cudaSuccess;
        }
        // Not one in the other: a graph may follow itself for long.
        first->behind.insert(first->behind.begin(), std::make_move_iterator(run->behind.begin()),
                             std::make_move_iterator(run->behind.end()));
        return cudaSuccess;
    };
    if (tail) {
        const std::scoped_lock lock(current->mutex);
        if (current->behind.size() >= kMostBehind)
            return refuse(cudaErrorInvalidValue, kFunction,
                          "by a kernel: %zu graphs wait for this one; at most %zu", current->behind.size(),
                          kMostBehind);
        current->behind.push_back(std::move(work));
        return cudaSuccess;
    }
    {
        const std::scoped_lock lock(current->mutex);
        if (++current->beside > kMostBeside)
            return refuse(cudaErrorInvalidValue, kFunction,
                          "by a kernel: the graph has launched %u graphs to run beside it; at most %u",
                          current->beside, kMostBeside);
    }
    return submit_by_kernel(
        cudaStreamFireAndForget, kFunction,
        StreamOperation{.work = std::move(work), .type = cudaGraphNodeTypeGraph, .launch = {}});
}

cudaError_t launch(CUgraphExec_st& executable, cudaStream_t stream) {
    const std::shared_ptr<Executable> graph = executable.graph;
    const auto run = std::make_shared<GraphRun>(&executable);
    executable.uploaded = true;
    note_host_thread();
    if (!may_wait(*graph)) {
        if (const WorkAtOnce permitted; permitted) {
            assign_defaults(*graph);
            const DeviceScope scope(device_of(stream));
            const GraphScope of_graph(run);
            const cudaError_t error = run_here(*graph);
            run_behind(*run);
            return set_last_error(error);
        }
    }
    std::vector<TaskPointer> tasks;
    const TaskPointer first = add_task(tasks, {});
    first->work = [graph] {
        assign_defaults(*graph);
        return cudaSuccess;
    };
    std::vector<std::function<void()>> recordings;
    std::vector<TaskPointer> ends = add_tasks(*graph, first, tasks, recordings);
    for (const TaskPointer& task : tasks) {
        if (task->work == nullptr || task->host_function) continue;
        task->work = [work = std::move(task->work), run] {
            const GraphScope of_graph(run);
            return work();
        };
    }
    ends.push_back(first);
    add_task(tasks, std::move(ends))->work = [run] {
        run_behind(*run);
        return cudaSuccess;
    };
    const TaskPointer before = std::exchange(executable.last_launch, tasks.back());
    issue_graph(tasks, tail_of(stream), is_done(before) ? nullptr : before);
    for (const auto& record : recordings)
        record();
    return cudaSuccess;
}

// --- Changes -------------------------------------------------------------------------------------

// Sets new parameters of a node of an executable graph.
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

// Copies the operations of the nodes of `from`, whose structure must be that of `to`.
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
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    if (executable == nullptr) return refuse(cudaErrorInvalidValue, __func__, "executable is null");
    if (!graphs().contains(graph)) return no_such_graph(__func__);
    auto made = make_executable(*graph);
    if (made == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "a node of the graph comes after itself");
    if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0 && !holds_only_device_work(*made))
        return refuse(
            cudaErrorNotSupported, __func__,
            "a graph that kernels launch has nodes of other kinds; expected kernels, copies, memsets and "
            "child graphs");
    *executable = executables().create({std::move(made), flags, nullptr});
    (*executable)->uploaded = (flags & cudaGraphInstantiateFlagUpload) != 0;
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
    executable->uploaded = true;
    return submit(
        stream, __func__,
        StreamOperation{.work = [] { return cudaSuccess; }, .type = cudaGraphNodeTypeEmpty, .launch = {}});
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    if (!executables().contains(executable)) return no_such_graph(__func__);
    if (in_kernel()) return launch_by_kernel(*executable, stream);
    if (const cudaError_t error = check_issue(stream, __func__); error != cudaSuccess) return error;
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture == nullptr) return launch(*executable, stream);
    return submit(stream, __func__,
                  StreamOperation{.work = [graph = executable->graph] { return run_here(*graph); },
                                  .type = cudaGraphNodeTypeGraph,
                                  .launch = {}});
}

cudaGraphExec_t cudaGetCurrentGraphExec() {
    const std::shared_ptr<GraphRun> run = in_kernel() ? graph_run_of_kernel() : nullptr;
    return run == nullptr ? nullptr : run->executable;
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
    return info.result == cudaGraphExecUpdateSuccess ? cudaSuccess
                                                     : set_last_error(cudaErrorGraphExecUpdateFailure);
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
    return fits ? cudaSuccess : set_last_error(cudaErrorGraphExecUpdateFailure);
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

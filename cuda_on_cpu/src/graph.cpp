#include "graph.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "errors.hpp"
#include "graph_state.hpp"

namespace cuda_on_cpu {

Handles<CUgraph_st>& graphs() {
    // Usable until the last static destructor.
    static auto* handles = new Handles<CUgraph_st>("graph", "cudaGraphDestroy");
    return *handles;
}
Handles<CUgraphNode_st>& nodes() {
    static auto* handles = new Handles<CUgraphNode_st>;
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

namespace {

void destroy_node(cudaGraphNode_t node) {
    for (const cudaGraph_t body : node->bodies)
        destroy_graph(body);
    nodes().destroy(node);
}

// Copies `all` to `out`, or sets `count` to their number if `out` is null.
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

}  // namespace

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

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// --- Graphs --------------------------------------------------------------------------------------

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

// --- Their nodes ---------------------------------------------------------------------------------

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

#include <algorithm>

#include "common/check/parallel.hpp"
#include "common/check/require.hpp"
#include "graph_traversal.hpp"

namespace day36 {

Search search_on_cpu(const Graph& graph, Vertex source) {
    course::require(source < graph.vertices(), "search_on_cpu: source is ", source, "; expected less than ",
                    graph.vertices(), ", the number of vertices");
    Search search{std::vector<std::uint32_t>(graph.vertices(), kUnreached),
                  std::vector<Vertex>(graph.vertices(), kUnreached)};
    search.level[source] = 0;
    search.parent[source] = source;
    std::vector<Vertex> queue{source};
    for (std::size_t next = 0; next < queue.size(); ++next) {
        const Vertex v = queue[next];
        for (const Vertex neighbour : graph.neighbours_of(v)) {
            if (search.level[neighbour] != kUnreached) continue;
            search.level[neighbour] = search.level[v] + 1;
            search.parent[neighbour] = v;
            queue.push_back(neighbour);
        }
    }
    return search;
}

std::string what_is_wrong(const Graph& graph, Vertex source, std::span<const std::uint32_t> level,
                          std::span<const Vertex> parent) {
    const std::size_t n = graph.vertices();
    const auto text = [](const auto&... parts) { return (course::to_text(parts) + ...); };
    if (level.size() != n || parent.size() != n)
        return text("there are ", level.size(), " levels and ", parent.size(), " parents for ", n,
                    " vertices");
    if (source >= n) return text("the source is ", source, " in a graph of ", n, " vertices");
    if (level[source] != 0) return text("the source has level ", level[source]);
    if (parent[source] != source) return text("the source has parent ", parent[source]);
    std::vector<bool> has_edge(n, false);  // from its parent
    for (Vertex v = 0; v < n; ++v) {
        if ((level[v] == kUnreached) != (parent[v] == kUnreached))
            return text("vertex ", v, " has level ", level[v], " and parent ", parent[v]);
        if (level[v] == kUnreached) continue;
        if (level[v] >= n)
            return text("vertex ", v, " has level ", level[v], " in a graph of ", n, " vertices");
        if (parent[v] >= n) return text("vertex ", v, " has parent ", parent[v], ", which is no vertex");
        if (v != source && (level[parent[v]] == kUnreached || level[v] != level[parent[v]] + 1))
            return text("vertex ", v, " has level ", level[v], ", and its parent ", parent[v], " has level ",
                        level[parent[v]]);
        for (const Vertex neighbour : graph.neighbours_of(v)) {
            if (level[neighbour] == kUnreached || level[neighbour] > level[v] + 1)
                return text("an edge leads from vertex ", v, " of level ", level[v], " to vertex ", neighbour,
                            " of level ", level[neighbour]);
            if (parent[neighbour] == v) has_edge[neighbour] = true;
        }
    }
    for (Vertex v = 0; v < n; ++v)
        if (level[v] != kUnreached && v != source && !has_edge[v])
            return text("vertex ", v, " has parent ", parent[v], ", and there is no edge between them");
    return "";
}

std::size_t edges_of_reached(const Graph& graph, std::span<const std::uint32_t> level) {
    std::size_t edges = 0;
    for (Vertex v = 0; v < graph.vertices(); ++v)
        if (level[v] != kUnreached) edges += graph.neighbours_of(v).size();
    return edges;
}

}  // namespace day36

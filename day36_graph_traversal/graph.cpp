#include "graph.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/check/parallel.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"

namespace day36 {
namespace {

using course::require;

void require_sizes(std::size_t vertices, std::size_t edges) {
    require(vertices <= kMostVertices, "Graph: vertices is ", vertices, "; expected at most ", kMostVertices);
    require(edges <= kMostEdges, "Graph: edges is ", edges, "; expected at most ", kMostEdges);
}

std::vector<Vertex> sources_of(const Graph& graph) {
    std::vector<Vertex> sources(graph.edges());
    const std::span<const std::uint32_t> offsets = graph.offsets();
    course::for_each_index(graph.vertices(), [&](std::size_t v) {
        std::fill(sources.begin() + offsets[v], sources.begin() + offsets[v + 1], static_cast<Vertex>(v));
    });
    return sources;
}

// A random order of 0 to n - 1.
std::vector<Vertex> shuffled(std::size_t n, std::uint64_t seed) {
    std::vector<Vertex> order(n);
    std::iota(order.begin(), order.end(), Vertex{0});
    course::Random random(seed);
    for (std::size_t i = n; i > 1; --i)
        std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
    return order;
}

}  // namespace

Graph::Graph(std::vector<std::uint64_t> offsets, std::vector<Vertex> neighbours)
    : neighbours_(std::move(neighbours)) {
    require(!offsets.empty(), "Graph: offsets has 0 elements; expected one more than there are vertices");
    require(offsets[0] == 0, "Graph: offsets[0] is ", offsets[0], "; expected 0");
    const std::size_t n = offsets.size() - 1;
    for (std::size_t v = 0; v < n; ++v)
        require(offsets[v] <= offsets[v + 1], "Graph: offsets[", v + 1, "] is ", offsets[v + 1],
                "; expected at least offsets[", v, "], which is ", offsets[v]);
    require_sizes(n, offsets[n]);
    require(offsets[n] == neighbours_.size(), "Graph: offsets[", n, "] is ", offsets[n], "; expected ",
            neighbours_.size(), ", the number of neighbours");
    for (std::size_t e = 0; e < neighbours_.size(); ++e)
        require(neighbours_[e] < n, "Graph: neighbours[", e, "] is ", neighbours_[e], "; expected less than ",
                n, ", the number of vertices");
    offsets_.assign(offsets.begin(), offsets.end());
}

Graph Graph::directed(std::size_t vertices, std::span<const Edge> edges) {
    require_sizes(vertices, edges.size());
    Graph by_target;  // its rows are the columns of the result, in the order of the edges
    by_target.offsets_.assign(vertices + 1, 0);
    by_target.neighbours_.resize(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
        require(edges[i].from < vertices, "Graph: edges[", i, "].from is ", edges[i].from,
                "; expected less than ", vertices, ", the number of vertices");
        require(edges[i].to < vertices, "Graph: edges[", i, "].to is ", edges[i].to, "; expected less than ",
                vertices, ", the number of vertices");
        ++by_target.offsets_[edges[i].to + 1];
    }
    std::partial_sum(by_target.offsets_.begin(), by_target.offsets_.end(), by_target.offsets_.begin());
    std::vector<std::uint32_t> next(by_target.offsets_.begin(), by_target.offsets_.end() - 1);
    for (const Edge& edge : edges)
        by_target.neighbours_[next[edge.to]++] = edge.from;
    return by_target.transposed();
}

Graph Graph::undirected(std::size_t vertices, std::span<const Edge> edges) {
    require_sizes(vertices, 2 * edges.size());
    std::vector<Edge> both(2 * edges.size());
    course::for_each_index(edges.size(), [&](std::size_t i) {
        both[2 * i] = edges[i];
        both[2 * i + 1] = {edges[i].to, edges[i].from};
    });
    Graph graph = directed(vertices, both);
    graph.symmetric_ = true;
    return graph;
}

// A counting sort by target. Sources are visited in order, so each row of the result ascends.
Graph Graph::transposed() const {
    Graph result;
    result.symmetric_ = symmetric_;
    result.offsets_.assign(offsets_.size(), 0);
    result.neighbours_.resize(edges());
    for (const Vertex v : neighbours_)
        ++result.offsets_[v + 1];
    std::partial_sum(result.offsets_.begin(), result.offsets_.end(), result.offsets_.begin());
    std::vector<std::uint32_t> next(result.offsets_.begin(), result.offsets_.end() - 1);
    for (std::size_t v = 0; v < vertices(); ++v)
        for (const Vertex to : neighbours_of(static_cast<Vertex>(v)))
            result.neighbours_[next[to]++] = static_cast<Vertex>(v);
    return result;
}

Graph path(std::size_t vertices) {
    return grid_2d(vertices, 1);
}

Graph star(std::size_t vertices) {
    std::vector<Edge> edges;
    for (std::size_t v = 1; v < vertices; ++v)
        edges.push_back({0, static_cast<Vertex>(v)});
    return Graph::undirected(vertices, edges);
}

Graph grid_2d(std::size_t width, std::size_t height) {
    require(width <= kMostVertices && height <= kMostVertices, "grid_2d: width is ", width, " and height is ",
            height, "; expected at most ", kMostVertices);
    const std::size_t across = width == 0 ? 0 : (width - 1) * height;
    const std::size_t down = height == 0 ? 0 : (height - 1) * width;
    require_sizes(width * height, 2 * (across + down));
    std::vector<Edge> edges;
    edges.reserve(across + down);
    for (std::size_t v = 0; v < width * height; ++v) {
        if (v % width + 1 < width) edges.push_back({static_cast<Vertex>(v), static_cast<Vertex>(v + 1)});
        if (v / width + 1 < height) edges.push_back({static_cast<Vertex>(v), static_cast<Vertex>(v + width)});
    }
    return Graph::undirected(width * height, edges);
}

Graph uniform(std::size_t vertices, std::size_t edges, std::uint64_t seed) {
    require(vertices > 0 || edges == 0, "uniform: vertices is 0; expected at least 1, for ", edges, " edges");
    require_sizes(vertices, 2 * edges);
    std::vector<Edge> list(edges);
    course::for_each_index(edges, [&](std::size_t i) {
        course::Random random(seed, i << 3);  // numbers of its own, so that all cores can make edges
        list[i] = {random.below(static_cast<Vertex>(vertices)), random.below(static_cast<Vertex>(vertices))};
    });
    return Graph::undirected(vertices, list);
}

Graph rmat(unsigned scale, std::size_t edges, std::uint64_t seed) {
    require(scale <= 30, "rmat: scale is ", scale, "; expected at most 30");
    require_sizes(std::size_t{1} << scale, 2 * edges);
    const std::vector<Vertex> number = shuffled(std::size_t{1} << scale, seed);
    std::vector<Edge> list(edges);
    course::for_each_index(edges, [&](std::size_t i) {
        course::Random random(seed + 1, i << 6);
        Edge edge;
        // Each bit of both ends at once: 0, 0 in 57 of 100 cases, 0, 1 and 1, 0 in 19, 1, 1 in 5.
        for (unsigned bit = 0; bit < scale; ++bit) {
            const std::uint32_t draw = random.below(100);
            edge.from = 2 * edge.from + (draw >= 57 + 19 ? 1 : 0);
            edge.to = 2 * edge.to + ((draw >= 57 && draw < 57 + 19) || draw >= 57 + 2 * 19 ? 1 : 0);
        }
        list[i] = {number[edge.from], number[edge.to]};
    });
    return Graph::undirected(std::size_t{1} << scale, list);
}

DeviceGraph::DeviceGraph(const Graph& graph)
    : vertices_(graph.vertices()),
      edges_(graph.edges()),
      symmetric_(graph.is_symmetric()),
      out_offsets_(graph.offsets()),
      out_neighbours_(graph.neighbours()),
      sources_(std::span<const Vertex>(sources_of(graph))) {
    std::vector<std::uint32_t> without(course::ceil_div(vertices_, std::size_t{32}), 0);
    const auto mark = [&](std::span<const std::uint32_t> offsets) {
        for (std::size_t v = 0; v < 32 * without.size(); ++v)
            if (v >= vertices_ || offsets[v] == offsets[v + 1]) without[v / 32] |= 1u << v % 32;
    };
    if (symmetric_) {
        mark(graph.offsets());
    } else {
        const Graph columns = graph.transposed();
        in_offsets_ = course::DeviceBuffer<std::uint32_t>(columns.offsets());
        in_neighbours_ = course::DeviceBuffer<Vertex>(columns.neighbours());
        mark(columns.offsets());
    }
    without_incoming_ = course::DeviceBuffer<std::uint32_t>(std::span<const std::uint32_t>(without));
}

}  // namespace day36

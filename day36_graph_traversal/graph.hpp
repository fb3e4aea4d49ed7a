// Graphs: on the host in compressed rows, generators, and on the device. No kernels here.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "vertex.hpp"

namespace day36 {

// Edges are counted in 32 bits, because 64-bit offsets would double the bytes to load for each
// vertex.
inline constexpr std::size_t kMostVertices = std::size_t{1} << 30;
inline constexpr std::size_t kMostEdges = (std::size_t{1} << 31) - 1;

struct Edge {
    Vertex from = 0;
    Vertex to = 0;
};

// A directed graph in compressed rows (CSR): the edges of vertex v lead to neighbours[offsets[v]]
// up to neighbours[offsets[v + 1] - 1]. Self loops and duplicates of an edge are allowed.
class Graph {
  public:
    // Throws std::invalid_argument unless offsets start with 0, do not decrease and end with the
    // number of neighbours, all neighbours are vertices, and there are not too many of them.
    Graph(std::vector<std::uint64_t> offsets, std::vector<Vertex> neighbours);

    // With the neighbours of each vertex in ascending order. Throws as above.
    static Graph directed(std::size_t vertices, std::span<const Edge> edges);
    // Each edge in both directions: twice as many edges, and a self loop becomes two of them.
    static Graph undirected(std::size_t vertices, std::span<const Edge> edges);

    std::size_t vertices() const { return offsets_.size() - 1; }
    std::size_t edges() const { return neighbours_.size(); }
    std::span<const std::uint32_t> offsets() const { return offsets_; }
    std::span<const Vertex> neighbours() const { return neighbours_; }
    std::span<const Vertex> neighbours_of(Vertex v) const {
        return std::span(neighbours_).subspan(offsets_[v], offsets_[v + 1] - offsets_[v]);
    }

    // Every edge reversed: the rows of the result are the columns of this graph (CSC).
    Graph transposed() const;
    // True for the result of undirected(), which is its own transpose.
    bool is_symmetric() const { return symmetric_; }

  private:
    Graph() = default;

    std::vector<std::uint32_t> offsets_;
    std::vector<Vertex> neighbours_;
    bool symmetric_ = false;
};

// Undirected graphs. Random ones are the same for the same seed on every machine.
Graph path(std::size_t vertices);                      // 0 - 1 - 2 - ...
Graph star(std::size_t vertices);                      // vertex 0 in the middle
Graph grid_2d(std::size_t width, std::size_t height);  // four neighbours; vertex x + width y
Graph uniform(std::size_t vertices, std::size_t edges, std::uint64_t seed);
// R-MAT, the model of Graph500 (Chakrabarti, Zhan, Faloutsos 2004; a, b, c = 0.57, 0.19, 0.19),
// with 2^scale vertices, numbered at random: many vertices without an edge, a few with thousands.
Graph rmat(unsigned scale, std::size_t edges, std::uint64_t seed);

// A graph on the device: by rows (out), by columns (in), and as a list of edges.
class DeviceGraph {
  public:
    explicit DeviceGraph(const Graph& graph);
    // Workspaces and graphs of launches keep its address.
    DeviceGraph(const DeviceGraph&) = delete;
    DeviceGraph& operator=(const DeviceGraph&) = delete;

    std::size_t vertices() const { return vertices_; }
    std::size_t edges() const { return edges_; }
    const std::uint32_t* out_offsets() const { return out_offsets_.data(); }
    const Vertex* out_neighbours() const { return out_neighbours_.data(); }
    const std::uint32_t* in_offsets() const { return symmetric_ ? out_offsets() : in_offsets_.data(); }
    const Vertex* in_neighbours() const { return symmetric_ ? out_neighbours() : in_neighbours_.data(); }
    // Where edge e of out_neighbours() starts.
    const Vertex* sources() const { return sources_.data(); }
    // A bit for each vertex, 1 if no edge leads to it. Bits after the last vertex are 1, too.
    const std::uint32_t* without_incoming() const { return without_incoming_.data(); }

  private:
    std::size_t vertices_;
    std::size_t edges_;
    bool symmetric_;
    course::DeviceBuffer<std::uint32_t> out_offsets_;
    course::DeviceBuffer<Vertex> out_neighbours_;
    course::DeviceBuffer<std::uint32_t> in_offsets_;
    course::DeviceBuffer<Vertex> in_neighbours_;
    course::DeviceBuffer<Vertex> sources_;
    course::DeviceBuffer<std::uint32_t> without_incoming_;
};

}  // namespace day36

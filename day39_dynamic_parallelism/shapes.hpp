// Curves and the nodes of a quadtree, for host and device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day39 {

// A quadratic Bezier curve: from p0 to p2, in the direction of p1 at both ends.
struct Curve {
    float2 p0, p1, p2;
};

inline constexpr unsigned kMostSegments = 255;
inline constexpr unsigned kMostPoints = kMostSegments + 1;

// A square of side 2^-depth, the one with number (x, y) of its size, and its points. A leaf has no
// children; another node has four, at children to children + 3.
struct Node {
    unsigned begin, end;  // its points
    unsigned depth;
    unsigned x, y;
    unsigned children;  // 0: a leaf
};

// What kernels report of a tree.
struct Header {
    unsigned nodes;
    unsigned leaves;
    unsigned bad_points;    // outside of the unit square, or NaN
    unsigned launch_error;  // a cudaError_t: of a child that could not be launched
};

// A node with more than `capacity` points is split, unless its depth is `max_depth`.
struct Limits {
    unsigned capacity;
    unsigned max_depth;
};

// Grids are nested as deep as the tree, and CUDA allows 24. Centres are exact up to this depth.
inline constexpr unsigned kDeepest = 20;

__host__ __device__ inline bool in_unit_square(float2 p) {
    return p.x >= 0 && p.x < 1 && p.y >= 0 && p.y < 1;
}

__host__ __device__ inline bool must_split(const Node& node, Limits limits) {
    return node.end - node.begin > limits.capacity && node.depth < limits.max_depth;
}

// The quadrant of a point: 0 and 1 below the centre, 0 and 2 left of it. A point on a line between
// two quadrants is right of it, or above it.
__host__ __device__ inline unsigned quadrant_of(float2 p, const Node& node) {
    const float side = 1.0f / static_cast<float>(2u << node.depth);
    const unsigned right = p.x >= static_cast<float>(2 * node.x + 1) * side ? 1 : 0;
    const unsigned above = p.y >= static_cast<float>(2 * node.y + 1) * side ? 1 : 0;
    return right + 2 * above;
}

__host__ __device__ inline Node child_of(const Node& node, unsigned quadrant, unsigned begin, unsigned end) {
    Node child{};
    child.begin = begin;
    child.end = end;
    child.depth = node.depth + 1;
    child.x = 2 * node.x + quadrant % 2;
    child.y = 2 * node.y + quadrant / 2;
    return child;
}

}  // namespace day39

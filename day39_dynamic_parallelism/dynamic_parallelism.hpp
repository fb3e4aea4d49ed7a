// Curves and quadtrees: the host API of day 39. The kernels are in dynamic_parallelism.cuh and
// beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "shapes.hpp"

namespace day39 {

using course::DeviceSpan;

// ---- Curves -------------------------------------------------------------------------------------

// Curve c becomes counts[c] points, which are points[c * kMostPoints], points[c * kMostPoints + 1],
// ...: the first is p0, the last p2, and the segments between them stay within `tolerance` of the
// curve, unless that takes more than kMostSegments. The other points are not written. A curve whose
// bend is no number gets two points. counts[c] is 0 where a child could not be launched. Enqueues
// its work on `stream`. Throws std::invalid_argument for lengths that do not fit together, memory
// that overlaps, and a tolerance that is not greater than 0; CudaError when a launch fails.
using CurveLauncher = void (*)(DeviceSpan<const Curve> curves, float tolerance, DeviceSpan<unsigned> counts,
                               DeviceSpan<float2> points, cudaStream_t stream);

struct CurveProblem {
    std::size_t curves;
    std::size_t points;  // of all curves
};
using CurveVersion = course::Version<CurveLauncher, CurveProblem>;
std::span<const CurveVersion> curve_versions();

// The points of a curve: the reference.
unsigned points_needed(const Curve& curve, float tolerance);
// What is wrong with these points, or "".
std::string what_is_wrong(std::span<const Curve> curves, float tolerance, std::span<const unsigned> counts,
                          std::span<const float2> points);

// ---- A quadtree ---------------------------------------------------------------------------------

// The memory of a tree of n points: points and other have n elements, nodes most_nodes(n, limits),
// header one.
struct TreeSpans {
    DeviceSpan<float2> points;  // of all leaves
    DeviceSpan<float2> other;
    DeviceSpan<Node> nodes;
    DeviceSpan<Header> header;
};
std::size_t most_nodes(std::size_t n, Limits limits);

// Builds the quadtree of the points, which are in the unit square. Their order within a leaf, and
// the order of nodes, is unspecified; node 0 is the root. Points outside of the square and NaN are
// counted in header.bad_points, and read_tree() refuses the tree. Enqueues its work on `stream`;
// tree_levels waits for it. Throws std::invalid_argument for lengths that do not fit together,
// memory that overlaps, a capacity of 0, a max_depth of more than kDeepest and 2^31 points or more;
// CudaError when a launch fails.
using TreeLauncher = void (*)(DeviceSpan<const float2> points, Limits limits, const TreeSpans& tree,
                              cudaStream_t stream);
using TreeVersion = course::Version<TreeLauncher, std::size_t>;
std::span<const TreeVersion> tree_versions();

// A tree in an order that does not depend on how it was built.
struct PlainTree {
    std::vector<Node> nodes;  // each before its children; begin, end and children as in a tree of this order
    std::vector<float2> points;  // those of a leaf sorted
    bool operator==(const PlainTree& other) const;
};

// Throws std::invalid_argument for a tree whose header tells of bad points or of a launch that
// failed, and for one whose nodes do not fit together.
PlainTree read_tree(const Header& header, std::span<const Node> nodes, std::span<const float2> points);
// The reference.
PlainTree tree_on_cpu(std::span<const float2> points, Limits limits);
// The first difference between two trees, or "".
std::string difference(const PlainTree& tree, const PlainTree& expected);

// ---- Launches -----------------------------------------------------------------------------------

// Adds 1 to the counter `n` times, by as many grids, one after another. Enqueues its work on
// `stream`. Throws std::invalid_argument for more than kMostLaunches and for a counter that is not
// one element; CudaError when a launch fails.
inline constexpr std::size_t kMostLaunches = 10'000;
using LaunchLauncher = void (*)(std::size_t n, DeviceSpan<unsigned> counter, cudaStream_t stream);
using LaunchVersion = course::Version<LaunchLauncher, std::size_t>;
std::span<const LaunchVersion> launch_versions();

}  // namespace day39

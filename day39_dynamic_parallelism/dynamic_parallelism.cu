// Day 39's launchers: argument checks, the loop over levels, the lists of versions. The kernels and
// their launches are in dynamic_parallelism.cuh.
#include <algorithm>
#include <array>
#include <limits>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "dynamic_parallelism.cuh"
#include "dynamic_parallelism.hpp"

namespace day39 {
namespace {

using course::require;

constexpr std::size_t kMostTreePoints = (std::size_t{1} << 31) - 1;

template <void (*kLaunch)(const Drawing&, cudaStream_t)>
void draw_by(DeviceSpan<const Curve> curves, float tolerance, DeviceSpan<unsigned> counts,
             DeviceSpan<float2> points, cudaStream_t stream) {
    require(curves.size() <= kMostTreePoints, "curves: there are ", curves.size(), "; expected at most ",
            kMostTreePoints);
    require(tolerance > 0, "curves: tolerance is ", tolerance, "; expected more than 0");
    require(counts.size() == curves.size(), "curves: counts has ", counts.size(), " elements; expected ",
            curves.size(), ", one for each curve");
    require(points.size() == curves.size() * kMostPoints, "curves: points has ", points.size(),
            " elements; expected ", curves.size() * kMostPoints, ", ", kMostPoints, " for each curve");
    require(!overlap(counts, curves) && !overlap(points, curves) && !overlap(points, counts),
            "curves: counts or points overlap; expected no element in common");
    if (curves.empty()) return;  // a grid has at least one block
    kLaunch({curves.data(), static_cast<unsigned>(curves.size()), tolerance, counts.data(), points.data()},
            stream);
    CUDA_CHECK_LAUNCH();
}

Tree plant_tree(DeviceSpan<const float2> points, Limits limits, const TreeSpans& tree, cudaStream_t stream) {
    const std::size_t n = points.size();
    require(n <= kMostTreePoints, "quadtree: points has ", n, " elements; expected at most ",
            kMostTreePoints);
    require(limits.capacity > 0, "quadtree: capacity is 0; expected at least 1");
    require(limits.max_depth <= kDeepest, "quadtree: max_depth is ", limits.max_depth, "; expected at most ",
            kDeepest);
    require(tree.points.size() == n && tree.other.size() == n, "quadtree: the tree has room for ",
            tree.points.size(), " and ", tree.other.size(), " points; expected ", n, " twice");
    require(tree.nodes.size() >= most_nodes(n, limits), "quadtree: the tree has room for ", tree.nodes.size(),
            " nodes; expected at least ", most_nodes(n, limits));
    require(tree.header.size() == 1, "quadtree: header has ", tree.header.size(), " elements; expected 1");
    require(
        !overlap(tree.points, points) && !overlap(tree.other, points) && !overlap(tree.points, tree.other),
        "quadtree: points, tree.points or tree.other overlap; expected no element in common");
    if (n > 0)
        CUDA_CHECK(cudaMemcpyAsync(tree.points.data(), points.data(), n * sizeof(float2),
                                   cudaMemcpyDeviceToDevice, stream));
    CUDA_CHECK(cudaMemsetAsync(tree.header.data(), 0, sizeof(Header), stream));
    const Tree planted{tree.points.data(), tree.other.data(), tree.nodes.data(), tree.header.data(), limits};
    launch_plant(planted, static_cast<unsigned>(n), stream);
    CUDA_CHECK_LAUNCH();
    return planted;
}

void build_by_children(DeviceSpan<const float2> points, Limits limits, const TreeSpans& tree,
                       cudaStream_t stream) {
    const Tree t = plant_tree(points, limits, tree, stream);
    launch_tree_children(t, static_cast<unsigned>(points.size()), stream);
    CUDA_CHECK_LAUNCH();
}

void build_by_levels(DeviceSpan<const float2> points, Limits limits, const TreeSpans& tree,
                     cudaStream_t stream) {
    const Tree t = plant_tree(points, limits, tree, stream);
    unsigned first = 0;
    unsigned end = 1;
    for (unsigned depth = 0; depth < limits.max_depth && first < end; ++depth) {
        launch_tree_levels(t, first, end, stream);
        CUDA_CHECK_LAUNCH();
        first = end;
        CUDA_CHECK(cudaMemcpyAsync(&end, &t.header->nodes, sizeof(end), cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    launch_finish(t, stream);
    CUDA_CHECK_LAUNCH();
}

// Points and counts are written, curves are read.
course::Work curve_work(const CurveProblem& problem) {
    const double written = static_cast<double>(problem.points * sizeof(float2)) +
                           static_cast<double>(problem.curves * sizeof(unsigned));
    return {.bytes = written + static_cast<double>(problem.curves * sizeof(Curve)), .written = written};
}

// Each point is read and written once. How many nodes there are depends on the points.
course::Work tree_work(const std::size_t& n) {
    const double written = static_cast<double>(n * sizeof(float2));
    return {.bytes = 2 * written, .written = written};
}

}  // namespace

std::size_t most_nodes(std::size_t n, Limits limits) {
    // Of one depth, at most `full` nodes have more points than a leaf.
    const std::size_t full = n / (std::size_t{limits.capacity} + 1);
    std::size_t nodes = 1;
    std::size_t of_depth = 1;
    for (unsigned depth = 0; depth < limits.max_depth; ++depth) {
        of_depth = 4 * std::min(of_depth, full);
        nodes += of_depth;
    }
    return nodes;
}

std::span<const CurveVersion> curve_versions() {
    static const std::array<CurveVersion, 4> list = {{
        {"block_per_curve", "a block for each curve", draw_by<launch_block_per_curve>, curve_work},
        {"children", "a thread launches a grid for its curve", draw_by<launch_children>, curve_work},
        {"own_streams", "each of these grids has a stream of its own", draw_by<launch_own_streams>,
         curve_work},
        {"scanned", "no launch: a block shares out its curves' points", draw_by<launch_scanned>, curve_work},
    }};
    return list;
}

std::span<const TreeVersion> tree_versions() {
    static const std::array<TreeVersion, 2> list = {{
        {"tree_children", "a block launches a grid for what it has split", build_by_children, tree_work},
        {"tree_levels", "the host launches a grid for each level", build_by_levels, tree_work},
    }};
    return list;
}

}  // namespace day39

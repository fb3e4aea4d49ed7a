// Day 39's launchers: argument checks, the loop over levels, the lists of versions. The kernels and
// their launches are in dynamic_parallelism.cuh.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "beyond/sorted.cuh"
#include "beyond/while_tree.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/stream_buffer.hpp"
#include "dynamic_parallelism.cuh"
#include "dynamic_parallelism.hpp"

namespace day39 {
namespace {

using course::require;

constexpr std::size_t kMostTreePoints = (std::size_t{1} << 31) - 1;

// Of one depth, at most n / (capacity + 1) nodes have more points than a leaf.
std::size_t most_nodes_of(unsigned depth, std::size_t n, Limits limits) {
    std::size_t nodes = 1;
    for (unsigned d = 0; d < depth; ++d)
        nodes = 4 * std::min(nodes, n / (std::size_t{limits.capacity} + 1));
    return nodes;
}

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
    require(most_nodes(n, limits) <= 0xffffffffu, "quadtree: up to ", most_nodes(n, limits),
            " nodes; expected fewer than 2^32");
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

// tree_while and next_level in a while node, for one set of pointers.
class WhileTree {
  public:
    WhileTree(const Tree& tree, std::size_t points) : tree_(tree), points_(points) {
        try {
            make();
        } catch (...) {
            release();
            throw;
        }
    }
    WhileTree(const WhileTree&) = delete;
    WhileTree& operator=(const WhileTree&) = delete;
    ~WhileTree() { release(); }

    bool builds(const Tree& t, std::size_t points) const {
        return points == points_ && t.even == tree_.even && t.odd == tree_.odd && t.nodes == tree_.nodes &&
               t.header == tree_.header && t.limits.capacity == tree_.limits.capacity &&
               t.limits.max_depth == tree_.limits.max_depth;
    }

    void launch(cudaStream_t stream) {
        static constexpr Level kRoot = {.first = 0, .end = 1};
        CUDA_CHECK(cudaMemcpyAsync(level_.data(), &kRoot, sizeof(Level), cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaGraphLaunch(executable_, stream));
    }

  private:
    void make() {
        CUDA_CHECK(cudaGraphCreate(&graph_, 0));
        cudaGraphConditionalHandle go_on{};
        CUDA_CHECK(cudaGraphConditionalHandleCreate(&go_on, graph_, 1, cudaGraphCondAssignDefault));
        cudaGraphNodeParams node{};
        node.type = cudaGraphNodeTypeConditional;
        node.conditional.handle = go_on;
        node.conditional.type = cudaGraphCondTypeWhile;
        node.conditional.size = 1;
        cudaGraphNode_t loop = nullptr;
#if CUDART_VERSION >= 13000
        CUDA_CHECK(cudaGraphAddNode(&loop, graph_, nullptr, nullptr, 0, &node));
#else
        CUDA_CHECK(cudaGraphAddNode(&loop, graph_, nullptr, 0, &node));
#endif
        const std::size_t resident = course::resident_blocks(tree_while, static_cast<int>(kTreeBlock));
        const auto blocks = static_cast<unsigned>(
            std::min(resident,
                     std::max<std::size_t>(most_nodes_of(tree_.limits.max_depth, points_, tree_.limits), 1)));
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream_, node.conditional.phGraph_out[0], nullptr, nullptr,
                                                 0, cudaStreamCaptureModeThreadLocal));
        launch_tree_while(tree_, level_.data(), blocks, stream_);
        CUDA_CHECK_LAUNCH();
        launch_next_level(tree_.header, level_.data(), go_on, stream_);
        CUDA_CHECK_LAUNCH();  // a body without this kernel would be repeated forever
        CUDA_CHECK(cudaStreamEndCapture(stream_, nullptr));
        CUDA_CHECK(cudaStreamDestroy(std::exchange(stream_, nullptr)));
        CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    }
    void release() {
        // Only where make() has failed is there a stream, and perhaps a capture that did not end.
        if (stream_ != nullptr) {
            static_cast<void>(cudaStreamEndCapture(stream_, nullptr));
            static_cast<void>(cudaStreamDestroy(stream_));
            static_cast<void>(cudaGetLastError());
        }
        if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
        if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
    }

    Tree tree_;
    std::size_t points_;
    course::DeviceBuffer<Level> level_{1};
    cudaStream_t stream_ = nullptr;  // records the body
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
};

void build_by_while_node(DeviceSpan<const float2> points, Limits limits, const TreeSpans& tree,
                         cudaStream_t stream) {
    // To make a graph takes longer than to launch it: the last one is kept.
    thread_local std::unique_ptr<WhileTree> kept;
    const Tree t = plant_tree(points, limits, tree, stream);
    if (!kept || !kept->builds(t, points.size())) {
        kept.reset();
        kept = std::make_unique<WhileTree>(t, points.size());
    }
    kept->launch(stream);
    launch_finish(t, stream);
    CUDA_CHECK_LAUNCH();
}

// Sorts the points of t.even by their Morton codes, into t.even.
void sort_points(const Tree& t, unsigned n, cudaStream_t stream) {
    const unsigned passes = course::ceil_div(t.limits.max_depth, kDigitBits);
    if (n == 0 || passes == 0) return;
    const unsigned tiles = course::blocks_for(n, kSortTile);
    const course::StreamBuffer<unsigned> counts(std::size_t{kBins} * tiles, stream);
    const course::StreamBuffer<unsigned> totals(kBins, stream);
    float2* in = t.even;
    float2* out = t.odd;
    for (unsigned pass = 0; pass < passes; ++pass) {
        launch_count_digits(in, n, t.limits.max_depth, pass, counts.data(), stream);
        CUDA_CHECK_LAUNCH();
        launch_scan_digits(counts.data(), tiles, totals.data(), stream);
        CUDA_CHECK_LAUNCH();
        launch_move_points(in, n, t.limits.max_depth, pass, counts.data(), totals.data(), out, stream);
        CUDA_CHECK_LAUNCH();
        std::swap(in, out);
    }
    if (in != t.even)
        CUDA_CHECK(cudaMemcpyAsync(t.even, in, n * sizeof(float2), cudaMemcpyDeviceToDevice, stream));
}

void build_by_sort(DeviceSpan<const float2> points, Limits limits, const TreeSpans& tree,
                   cudaStream_t stream) {
    const Tree t = plant_tree(points, limits, tree, stream);
    sort_points(t, static_cast<unsigned>(points.size()), stream);
    const course::StreamBuffer<unsigned> level_nodes(kDeepest + 2, stream);
    level_nodes.clear();
    static constexpr unsigned kOne = 1;
    CUDA_CHECK(cudaMemcpyAsync(level_nodes.data(), &kOne, sizeof(kOne), cudaMemcpyHostToDevice, stream));
    const unsigned resident = course::resident_blocks(tree_sorted, static_cast<int>(kSortBlock));
    for (unsigned depth = 0; depth <= limits.max_depth; ++depth) {
        const auto blocks = static_cast<unsigned>(std::min<std::size_t>(
            resident,
            course::ceil_div(most_nodes_of(depth, points.size(), limits), std::size_t{kSortBlock})));
        if (blocks == 0) break;
        launch_tree_sorted(t, depth, level_nodes.data(), blocks, stream);
        CUDA_CHECK_LAUNCH();
    }
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
    std::size_t nodes = 0;
    for (unsigned depth = 0; depth <= limits.max_depth; ++depth)
        nodes += most_nodes_of(depth, n, limits);
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
    static const std::array<TreeVersion, 4> list = {{
        {"tree_children", "a block launches a grid for what it has split", build_by_children, tree_work},
        {"tree_levels", "the host launches a grid for each level", build_by_levels, tree_work},
        {"tree_while", "a graph with a while node goes from level to level", build_by_while_node, tree_work},
        {"tree_sorted", "points are sorted, then a thread for each node", build_by_sort, tree_work},
    }};
    return list;
}

}  // namespace day39

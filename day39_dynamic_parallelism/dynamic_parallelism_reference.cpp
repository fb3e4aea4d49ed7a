// The references: curves in double, the quadtree by plain recursion; and comparisons.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "common/check/require.hpp"
#include "dynamic_parallelism.hpp"

namespace day39 {
namespace {

using course::require;

constexpr double kRounding = 1.0 / (1 << 24);  // relative, of one operation of float

std::string text(double value) {
    return std::to_string(value);
}

// The most that a coordinate of a point may be off. The parameter t is off by kRounding, which
// moves a point by at most 4 times the largest coordinate; each weight has at most 4 roundings, and
// the weights add up to 1; two more for the sum.
double bound(const Curve& c) {
    double largest = 0;
    for (const float x : {c.p0.x, c.p0.y, c.p1.x, c.p1.y, c.p2.x, c.p2.y})
        largest = std::max(largest, std::abs(double{x}));
    return 11 * kRounding * largest;
}

// As segments_of(), in double.
double segments_needed(const Curve& c, double tolerance) {
    const double x = double{c.p0.x} - 2 * double{c.p1.x} + double{c.p2.x};
    const double y = double{c.p0.y} - 2 * double{c.p1.y} + double{c.p2.y};
    return std::sqrt(std::hypot(x, y) / (4 * tolerance));
}

bool before(float2 a, float2 b) {
    return std::tie(a.x, a.y) < std::tie(b.x, b.y);
}

// Appends node `index` of a tree, and all below it.
void append_node(PlainTree& plain, std::size_t index, Node node, std::span<const Node> nodes,
                 std::span<const float2> points) {
    const auto place = plain.nodes.size();
    const auto begin = static_cast<unsigned>(plain.points.size());
    plain.nodes.push_back(node);
    if (node.children == 0) {
        plain.points.insert(plain.points.end(), points.begin() + node.begin, points.begin() + node.end);
        std::sort(plain.points.begin() + begin, plain.points.end(), before);
        for (unsigned i = node.begin; i < node.end; ++i) {
            const double side = std::ldexp(1.0, -static_cast<int>(node.depth));
            const double x = points[i].x / side - node.x;
            const double y = points[i].y / side - node.y;
            require(x >= 0 && x < 1 && y >= 0 && y < 1, "quadtree: node ", index, " has the point (",
                    points[i].x, ", ", points[i].y, "), which is not in its square");
        }
    } else {
        require(node.depth < kDeepest, "quadtree: node ", index, " is deeper than ", kDeepest);
        require(node.children > 0 && node.children + std::size_t{3} < nodes.size(), "quadtree: node ", index,
                " has children ", node.children, " to ", node.children + std::size_t{3}, "; there are ",
                nodes.size(), " nodes");
        unsigned next = node.begin;
        for (unsigned q = 0; q < 4; ++q) {
            const Node child = nodes[node.children + q];
            const Node expected = child_of(node, q, next, child.end);
            require(child.begin == next && child.end >= next && child.end <= node.end, "quadtree: quadrant ",
                    q, " of node ", index, " has points ", child.begin, " to ", child.end,
                    "; expected them to begin at ", next, " and to end by ", node.end);
            require(child.depth == expected.depth && child.x == expected.x && child.y == expected.y,
                    "quadtree: quadrant ", q, " of node ", index, " is square (", child.x, ", ", child.y,
                    ") of depth ", child.depth, "; expected (", expected.x, ", ", expected.y, ") of depth ",
                    expected.depth);
            next = child.end;
            append_node(plain, node.children + q, child, nodes, points);
        }
        require(next == node.end, "quadtree: the quadrants of node ", index, " end at point ", next,
                "; expected ", node.end);
    }
    Node& appended = plain.nodes[place];
    appended.begin = begin;
    appended.end = static_cast<unsigned>(plain.points.size());
    appended.children = node.children == 0 ? 0 : static_cast<unsigned>(place) + 1;
}

void append_on_cpu(PlainTree& plain, Node node, std::vector<float2> points, Limits limits) {
    const auto place = plain.nodes.size();
    plain.nodes.push_back(node);
    const auto begin = static_cast<unsigned>(plain.points.size());
    if (!must_split(node, limits)) {
        std::sort(points.begin(), points.end(), before);
        plain.points.insert(plain.points.end(), points.begin(), points.end());
    } else {
        // The centre, in double.
        const double side = std::ldexp(1.0, -static_cast<int>(node.depth));
        const double x = (node.x + 0.5) * side;
        const double y = (node.y + 0.5) * side;
        std::vector<float2> quarters[4];
        for (const float2 p : points)
            quarters[(p.x >= x ? 1 : 0) + (p.y >= y ? 2 : 0)].push_back(p);
        plain.nodes[place].children = static_cast<unsigned>(place) + 1;
        for (unsigned q = 0; q < 4; ++q) {
            const auto at = static_cast<unsigned>(plain.points.size());
            const auto count = static_cast<unsigned>(quarters[q].size());
            append_on_cpu(plain, child_of(node, q, at, at + count), std::move(quarters[q]), limits);
        }
    }
    plain.nodes[place].begin = begin;
    plain.nodes[place].end = static_cast<unsigned>(plain.points.size());
}

}  // namespace

unsigned points_needed(const Curve& curve, float tolerance) {
    return static_cast<unsigned>(
               std::clamp(std::ceil(segments_needed(curve, tolerance)), 1.0, double{kMostSegments})) +
           1;
}

std::string what_is_wrong(std::span<const Curve> curves, float tolerance, std::span<const unsigned> counts,
                          std::span<const float2> points) {
    for (std::size_t c = 0; c < curves.size(); ++c) {
        const std::string curve = "curve " + std::to_string(c) + " ";
        const double needed = segments_needed(curves[c], tolerance);
        // `needed` may be off by a few roundings on both sides.
        const double fewest = std::clamp(std::ceil(needed * (1 - 8 * kRounding)), 1.0, double{kMostSegments});
        const double most = std::clamp(std::ceil(needed * (1 + 8 * kRounding)), 1.0, double{kMostSegments});
        const unsigned segments = counts[c] - 1;
        if (counts[c] == 0) return curve + "has 0 points: was its child not launched?";
        if (segments < fewest || segments > most)
            return curve + "has " + std::to_string(counts[c]) + " points; expected " + text(fewest + 1);
        for (unsigned i = 0; i <= segments; ++i) {
            const double t = double(i) / segments;
            const auto at = [t](double a, double b, double d) {
                return (1 - t) * (1 - t) * a + 2 * t * (1 - t) * b + t * t * d;
            };
            const double x = at(curves[c].p0.x, curves[c].p1.x, curves[c].p2.x);
            const double y = at(curves[c].p0.y, curves[c].p1.y, curves[c].p2.y);
            const float2 got = points[c * kMostPoints + i];
            const double most_off = bound(curves[c]);
            if (!(std::abs(got.x - x) <= most_off && std::abs(got.y - y) <= most_off))
                return curve + "has point " + std::to_string(i) + " at (" + text(got.x) + ", " + text(got.y) +
                       "); expected (" + text(x) + ", " + text(y) + ")";
        }
        for (unsigned i = counts[c]; i < kMostPoints; ++i) {
            if (!std::isnan(points[c * kMostPoints + i].x))
                return curve + "has " + std::to_string(counts[c]) + " points, and point " +
                       std::to_string(i) + " was written, too";
        }
    }
    return "";
}

bool PlainTree::operator==(const PlainTree& other) const {
    return difference(*this, other).empty();
}

PlainTree read_tree(const Header& header, std::span<const Node> nodes, std::span<const float2> points) {
    require(header.bad_points == 0, "quadtree: ", header.bad_points,
            " points are NaN or outside of the unit square; expected coordinates from 0 to less than 1");
    require(header.launch_error == 0, "quadtree: a child was not launched: ",
            cudaGetErrorName(static_cast<cudaError_t>(header.launch_error)));
    require(header.nodes >= 1 && header.nodes <= nodes.size(), "quadtree: there are ", header.nodes,
            " nodes; expected from 1 to ", nodes.size());
    const Node root = nodes[0];
    require(root.begin == 0 && root.end == points.size() && root.depth == 0, "quadtree: the root has points ",
            root.begin, " to ", root.end, "; expected 0 to ", points.size());
    PlainTree plain;
    append_node(plain, 0, root, nodes.first(header.nodes), points);
    const auto leaves = std::count_if(plain.nodes.begin(), plain.nodes.end(),
                                      [](const Node& node) { return node.children == 0; });
    require(header.leaves == static_cast<std::size_t>(leaves), "quadtree: the header has ", header.leaves,
            " leaves; there are ", leaves);
    require(plain.nodes.size() == header.nodes, "quadtree: ", header.nodes, " nodes, of which ",
            plain.nodes.size(), " belong to the tree");
    return plain;
}

PlainTree tree_on_cpu(std::span<const float2> points, Limits limits) {
    PlainTree plain;
    Node root{};
    root.end = static_cast<unsigned>(points.size());
    append_on_cpu(plain, root, {points.begin(), points.end()}, limits);
    return plain;
}

std::string difference(const PlainTree& tree, const PlainTree& expected) {
    const std::size_t nodes = std::min(tree.nodes.size(), expected.nodes.size());
    for (std::size_t i = 0; i < nodes; ++i) {
        const Node& a = tree.nodes[i];
        const Node& b = expected.nodes[i];
        if (a.end - a.begin != b.end - b.begin || (a.children == 0) != (b.children == 0) ||
            a.depth != b.depth)
            return "square (" + std::to_string(b.x) + ", " + std::to_string(b.y) + ") of depth " +
                   std::to_string(b.depth) + " has " + std::to_string(a.end - a.begin) + " points and is " +
                   (a.children == 0 ? "a leaf" : "split") + "; expected " + std::to_string(b.end - b.begin) +
                   " points, " + (b.children == 0 ? "a leaf" : "split");
    }
    if (tree.nodes.size() != expected.nodes.size())
        return std::to_string(tree.nodes.size()) + " nodes; expected " +
               std::to_string(expected.nodes.size());
    for (std::size_t i = 0; i < expected.points.size(); ++i) {
        if (tree.points[i].x != expected.points[i].x || tree.points[i].y != expected.points[i].y)
            return "point " + std::to_string(i) + ", in the order of leaves, is (" + text(tree.points[i].x) +
                   ", " + text(tree.points[i].y) + "); expected (" + text(expected.points[i].x) + ", " +
                   text(expected.points[i].y) + ")";
    }
    return "";
}

}  // namespace day39

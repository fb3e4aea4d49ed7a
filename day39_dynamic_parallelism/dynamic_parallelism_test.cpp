// Every version on data that fail differently: curves against a derived bound, trees node by node
// in an order that does not depend on how they were built.
#include "dynamic_parallelism.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "shapes_data.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using course::refusal;
using day39::Curve;
using day39::Header;
using day39::kMostPoints;
using day39::Limits;
using day39::Node;
using day39::Pattern;

constexpr std::uint64_t kSeed = 39;
constexpr float kTolerance = 1e-3f;

// ---- Curves -------------------------------------------------------------------------------------

class CurveTest : public course::DeviceTestWithParam<const day39::CurveVersion*> {
  protected:
    static void expect_right(const std::vector<Curve>& curves, float tolerance, const std::string& what) {
        SCOPED_TRACE(std::to_string(curves.size()) + " curves, " + what);
        const DeviceBuffer<Curve> device{std::span(curves)};
        GuardedBuffer<unsigned> counts(curves.size());
        GuardedBuffer<float2> points(curves.size() * kMostPoints);
        GetParam()->launcher(device.span(), tolerance, counts.span(), points.span(), nullptr);
        EXPECT_EQ(day39::what_is_wrong(curves, tolerance, counts.to_host(), points.to_host()), "");
        EXPECT_EQ(counts.damage(), "");
        EXPECT_EQ(points.damage(), "");
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtyNine, CurveTest, course::each_of(day39::curve_versions()),
                         course::VersionName());

// Around a warp, the curves of a block, and a block of parents.
TEST_P(CurveTest, AllNumbersOfCurves) {
    for (const std::size_t n : {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 211})
        expect_right(day39::random_curves(n, kSeed + n), kTolerance, "random");
}

// Tolerances that need from 2 to the most points.
TEST_P(CurveTest, AllNumbersOfPoints) {
    std::vector<Curve> curves(300);
    for (std::size_t c = 0; c < curves.size(); ++c) {
        // A bend that needs c + 0.5 segments.
        const float n = static_cast<float>(c) + 0.5f;
        curves[c] = {{-1, 0.25f}, {0, 0.25f - 2 * kTolerance * n * n}, {1, 0.25f}};
    }
    expect_right(curves, kTolerance, "all bends");
    expect_right(day39::random_curves(40, kSeed), 1e-9f, "the most points");
    expect_right(day39::random_curves(40, kSeed), 10.0f, "two points");
}

TEST_P(CurveTest, CurvesThatDoNotBend) {
    const std::vector<Curve> curves{{{0, 0}, {0, 0}, {0, 0}},
                                    {{0, 0}, {1, 1}, {2, 2}},
                                    {{1, 1}, {3, 3}, {1, 1}},
                                    {{-5, 1}, {1e-30f, 0}, {5, -1}},
                                    {{0, 0}, {1e6f, 0}, {0, 1e6f}}};
    expect_right(curves, kTolerance, "special");
}

// More launches than may wait to begin without asking for room.
TEST_P(CurveTest, MoreCurvesThanPendingLaunches) {
    ASSERT_EQ(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2048), cudaSuccess);
    expect_right(day39::random_curves(2100, kSeed), 1.0f, "many");
}

TEST_P(CurveTest, RandomShapes) {
    course::Random random(kSeed);
    for (int round = 0; round < 6; ++round) {
        const std::uint64_t seed = random.below(1u << 30);
        const float tolerance = std::pow(10.0f, -random.uniform(0.0f, 5.0f));
        expect_right(day39::random_curves(random.below(100), seed), tolerance,
                     "seed " + std::to_string(seed));
    }
}

TEST_P(CurveTest, RefusesWhatDoesNotFit) {
    const DeviceBuffer<Curve> curves(3);
    GuardedBuffer<unsigned> counts(3);
    GuardedBuffer<float2> points(3 * kMostPoints);
    const auto launch = [&](std::size_t n, std::size_t m, float tolerance) {
        return refusal([&] {
            GetParam()->launcher(curves.span(), tolerance, counts.span().subspan(0, n),
                                 points.span().subspan(0, m), nullptr);
        });
    };
    EXPECT_EQ(launch(2, 3 * kMostPoints, 1), "curves: counts has 2 elements; expected 3, one for each curve");
    EXPECT_EQ(launch(3, 5, 1), "curves: points has 5 elements; expected 768, 256 for each curve");
    EXPECT_EQ(launch(3, 3 * kMostPoints, 0), "curves: tolerance is 0; expected more than 0");
    EXPECT_NE(launch(3, 3 * kMostPoints, std::nanf("")), "");
}

// ---- Trees --------------------------------------------------------------------------------------

class TreeTest : public course::DeviceTestWithParam<const day39::TreeVersion*> {
  public:
    struct Memory {
        Memory(std::size_t n, Limits limits)
            : points(n), other(n), nodes(day39::most_nodes(n, limits)), header(1) {}
        day39::TreeSpans spans() { return {points.span(), other.span(), nodes.span(), header.span()}; }
        std::string damage() const {
            return points.damage() + other.damage() + nodes.damage() + header.damage();
        }
        GuardedBuffer<float2> points, other;
        GuardedBuffer<Node> nodes;
        GuardedBuffer<Header> header;
    };

  protected:
    static void expect_right(const std::vector<float2>& points, Limits limits, const std::string& what) {
        SCOPED_TRACE(std::to_string(points.size()) + " points, " + what + ", capacity " +
                     std::to_string(limits.capacity) + ", max_depth " + std::to_string(limits.max_depth));
        const DeviceBuffer<float2> device{std::span(points)};
        Memory memory(points.size(), limits);
        GetParam()->launcher(device.span(), limits, memory.spans(), nullptr);
        try {
            const day39::PlainTree tree =
                day39::read_tree(memory.header.to_host()[0], memory.nodes.to_host(), memory.points.to_host());
            EXPECT_EQ(day39::difference(tree, day39::tree_on_cpu(points, limits)), "");
        } catch (const std::invalid_argument& error) {
            ADD_FAILURE() << error.what();
        }
        EXPECT_EQ(memory.damage(), "");
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirtyNine, TreeTest, course::each_of(day39::tree_versions()),
                         course::VersionName());

// Around a leaf, a warp and a block.
TEST_P(TreeTest, AllNumbersOfPoints) {
    for (const std::size_t n : {0, 1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 1009})
        for (const Pattern pattern : day39::kPatterns)
            expect_right(day39::random_points(n, pattern, kSeed), {.capacity = 8, .max_depth = 6},
                         name(pattern));
}

TEST_P(TreeTest, AllDepths) {
    for (const unsigned depth : {0u, 1u, 5u, 20u})
        for (const Pattern pattern : {Pattern::equal, Pattern::on_lines, Pattern::clustered})
            expect_right(day39::random_points(200, pattern, kSeed), {.capacity = 5, .max_depth = depth},
                         name(pattern));
    expect_right(day39::random_points(300, Pattern::uniform, kSeed), {.capacity = 1, .max_depth = 20},
                 "alone");
    expect_right(day39::random_points(300, Pattern::uniform, kSeed), {.capacity = ~0u, .max_depth = 20},
                 "huge");
}

// The corners of the square, and the largest numbers below 1.
TEST_P(TreeTest, PointsAtTheEdge) {
    const float last = std::nextafter(1.0f, 0.0f);
    std::vector<float2> points;
    for (int i = 0; i < 10; ++i)
        for (const float2 p :
             {float2{0, 0}, float2{last, last}, float2{0, last}, float2{last, 0}, float2{0.5f, 0.5f},
              float2{std::nextafter(0.5f, 0.0f), 0.5f}, float2{-0.0f, 0.5f}})
            points.push_back(p);
    expect_right(points, {.capacity = 3, .max_depth = 20}, "corners");
}

// More tiles of the sort than a block has threads.
TEST(Sorted, ManyTiles) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const std::vector<float2> points = day39::random_points(530'000, Pattern::clustered, kSeed);
    constexpr Limits kLimits = {.capacity = 1000, .max_depth = 3};
    const DeviceBuffer<float2> device{std::span(points)};
    TreeTest::Memory memory(points.size(), kLimits);
    course::find_version(day39::tree_versions(), "tree_sorted")
        .launcher(device.span(), kLimits, memory.spans(), nullptr);
    const day39::PlainTree tree =
        day39::read_tree(memory.header.to_host()[0], memory.nodes.to_host(), memory.points.to_host());
    EXPECT_EQ(day39::difference(tree, day39::tree_on_cpu(points, kLimits)), "");
    EXPECT_EQ(memory.damage(), "");
}

TEST_P(TreeTest, RandomShapes) {
    course::Random random(kSeed);
    for (int round = 0; round < 6; ++round) {
        const std::uint64_t seed = random.below(1u << 30);
        const Limits limits{.capacity = 1 + random.below(40), .max_depth = random.below(9)};
        const Pattern pattern = day39::kPatterns[random.below(5)];
        expect_right(day39::random_points(random.below(2000), pattern, seed), limits,
                     name(pattern) + ", seed " + std::to_string(seed));
    }
}

TEST_P(TreeTest, PointsThatAreNoneAreRefused) {
    for (const float bad : {std::nanf(""), -0.1f, 1.0f, std::numeric_limits<float>::infinity()}) {
        std::vector<float2> points = day39::random_points(100, Pattern::uniform, kSeed);
        points[17].y = bad;
        points[99].x = bad;
        const Limits limits{.capacity = 4, .max_depth = 8};
        const DeviceBuffer<float2> device{std::span(points)};
        Memory memory(points.size(), limits);
        GetParam()->launcher(device.span(), limits, memory.spans(), nullptr);
        EXPECT_EQ(refusal([&] {
                      day39::read_tree(memory.header.to_host()[0], memory.nodes.to_host(),
                                       memory.points.to_host());
                  }),
                  "quadtree: 2 points are NaN or outside of the unit square; expected coordinates from 0 to "
                  "less than 1");
        EXPECT_EQ(memory.damage(), "");
    }
}

TEST_P(TreeTest, RefusesWhatDoesNotFit) {
    const DeviceBuffer<float2> points(100);
    const auto launch = [&](std::size_t n, Limits made_for, Limits limits) {
        Memory memory(n, made_for);
        return refusal([&] { GetParam()->launcher(points.span(), limits, memory.spans(), nullptr); });
    };
    const Limits usual{.capacity = 4, .max_depth = 8};
    EXPECT_EQ(launch(99, usual, usual),
              "quadtree: the tree has room for 99 and 99 points; expected 100 twice");
    EXPECT_EQ(launch(100, {4, 1}, usual), "quadtree: the tree has room for 5 nodes; expected at least 485");
    EXPECT_EQ(launch(100, usual, {0, 8}), "quadtree: capacity is 0; expected at least 1");
    EXPECT_EQ(launch(100, usual, {4, 21}), "quadtree: max_depth is 21; expected at most 20");
}

// ---- Launches -----------------------------------------------------------------------------------

class LaunchTest : public course::DeviceTestWithParam<const day39::LaunchVersion*> {};
INSTANTIATE_TEST_SUITE_P(DayThirtyNine, LaunchTest, course::each_of(day39::launch_versions()),
                         course::VersionName());

TEST_P(LaunchTest, EveryLaunchCounts) {
    ASSERT_EQ(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2048), cudaSuccess);
    GuardedBuffer<unsigned> counter(1);
    for (const unsigned n : {0u, 1u, 2u, 100u, 100u, 2500u}) {
        counter.copy_from(std::vector<unsigned>{0});
        GetParam()->launcher(n, counter.span(), nullptr);
        EXPECT_EQ(counter.to_host()[0], n);
    }
    EXPECT_EQ(counter.damage(), "");
    EXPECT_EQ(refusal([&] { GetParam()->launcher(10001, counter.span(), nullptr); }),
              "launches: n is 10001; expected at most 10000");
    EXPECT_EQ(refusal([&] { GetParam()->launcher(1, counter.span().subspan(0, 0), nullptr); }),
              "launches: counter has 0 elements; expected 1");
}

// ---- The reference ------------------------------------------------------------------------------

TEST(Reference, FindsEachMistake) {
    const std::vector<float2> points{{0.1f, 0.1f}, {0.9f, 0.1f}};
    const std::vector<Node> nodes{
        {0, 2, 0, 0, 0, 1}, {0, 1, 1, 0, 0, 0}, {1, 2, 1, 1, 0, 0}, {2, 2, 1, 0, 1, 0}, {2, 2, 1, 1, 1, 0}};
    const Header header{5, 4, 0, 0};
    EXPECT_EQ(day39::difference(day39::read_tree(header, nodes, points), day39::tree_on_cpu(points, {1, 3})),
              "");
    const auto wrong = [&](auto change) {
        std::vector<Node> changed = nodes;
        std::vector<float2> moved = points;
        Header told = header;
        change(told, changed, moved);
        std::string said;
        const std::string refused = refusal([&] {
            said =
                day39::difference(day39::read_tree(told, changed, moved), day39::tree_on_cpu(points, {1, 3}));
        });
        return refused.empty() ? said : refused;
    };
    EXPECT_NE(wrong([](auto&, auto& n, auto&) { n[0].children = 0; }), "");
    EXPECT_NE(wrong([](auto&, auto& n, auto&) { n[0].children = 2; }), "");
    EXPECT_NE(wrong([](auto&, auto& n, auto&) { n[2].begin = 0; }), "");
    EXPECT_NE(wrong([](auto&, auto& n, auto&) { n[3].x = 1; }), "");
    EXPECT_NE(wrong([](auto&, auto& n, auto&) { n[1].depth = 2; }), "");
    EXPECT_NE(wrong([](auto&, auto& n, auto&) { n[4].end = 3; }), "");
    EXPECT_NE(wrong([](auto&, auto&, auto& p) { std::swap(p[0], p[1]); }), "");
    EXPECT_NE(wrong([](auto& h, auto&, auto&) { h.leaves = 3; }), "");
    EXPECT_NE(wrong([](auto& h, auto&, auto&) { h.nodes = 4; }), "");
    EXPECT_NE(wrong([](auto& h, auto&, auto&) { h.launch_error = 65; }), "");
    const std::vector<float2> others{{0.2f, 0.1f}, {0.9f, 0.1f}};
    EXPECT_NE(day39::difference(day39::read_tree(header, nodes, others), day39::tree_on_cpu(points, {1, 3})),
              "");
}

}  // namespace

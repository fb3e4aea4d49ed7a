// What the lesson says of its versions' accesses, counted; and that no version has a race.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/test/inspection_test.hpp"
#include "graph_traversal.hpp"

namespace {

using course::DeviceBuffer;
using day36::Graph;
using day36::Vertex;

// A search from vertex 0.
class Search {
  public:
    explicit Search(const Graph& graph)
        : graph_(graph), workspace_(graph_), level_(graph_.vertices()), parent_(graph_.vertices()) {}

    std::function<void()> by(const std::string& version) {
        return [this, launch = course::find_version(day36::versions(), version).launcher] {
            launch(graph_, 0, level_.span(), parent_.span(), workspace_, nullptr);
        };
    }

  private:
    const day36::DeviceGraph graph_;
    day36::Workspace workspace_;
    DeviceBuffer<std::uint32_t> level_;
    DeviceBuffer<Vertex> parent_;
};

// Levels for one block, for the grid, and from below; hubs.
TEST(Lesson, NoVersionHasRaces) {
    Search large(day36::uniform(600, 4800, 36));
    Search hub(day36::star(100));
    for (const auto& version : day36::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES(large.by(version.name));
        EXPECT_NO_RACES(hub.by(version.name));
    }
}

// 1,024 vertices, each with 32 neighbours, of which the first is 32 behind it. So the frontiers
// begin with whole warps, and the lists of a warp are 32 x 128 bytes.
Graph ring() {
    std::vector<std::uint64_t> offsets{0};
    std::vector<Vertex> neighbours;
    for (Vertex v = 0; v < 1024; ++v) {
        for (Vertex step = 32; step < 64; ++step)
            neighbours.push_back((v + step) % 1024);
        offsets.push_back(neighbours.size());
    }
    return {offsets, neighbours};
}

// The most sectors that a request of 32 lanes took, of all loads of a kernel.
std::uint64_t sectors_of_worst(const course::Inspection& seen, const std::string& kernel_name) {
    std::uint64_t worst = 0;
    for (const course::KernelInspection& kernel : seen.kernels) {
        if (kernel.name.find(kernel_name) == std::string::npos) continue;
        for (const course::AccessLine& line : kernel.lines)
            if (line.space == course::Space::kGlobal && line.operation == course::Operation::kLoad)
                worst = std::max<std::uint64_t>(worst, line.worst.transactions);
    }
    return worst;
}

// In push each lane reads a list of its own. Adjacent edges lead to adjacent vertices here,
// so all loads of edge_centric are coalesced but those that straddle a sector.
TEST(Lesson, EdgesAreCoalescedAndListsAreNot) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    Search search(ring());
    EXPECT_EQ(sectors_of_worst(course::inspect(search.by("push")), "push"), 32u);
    EXPECT_LE(sectors_of_worst(course::inspect(search.by("edge_centric")), "edge_centric"), 5u);
}

// The last vertex has edges from 8 vertices that the search does not reach, and from 1,024 of level
// 1. So a warp reads its list for level 1, without a hit, and again for level 2, up to the first.
TEST(Lesson, ALongListIsReadUpToItsFirstHit) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    constexpr Vertex kFirst = 9, kLast = kFirst + 1024;
    std::vector<day36::Edge> edges;
    for (Vertex v = 1; v < kLast; ++v) {
        if (v >= kFirst) edges.push_back({0, v});
        edges.push_back({v, kLast});
    }
    Search search(Graph::directed(kLast + 1, edges));
    std::uint64_t most = 0;
    for (const course::KernelInspection& kernel : course::inspect(search.by("bottom_up")).kernels)
        for (const course::AccessLine& line : kernel.lines)
            if (line.space == course::Space::kGlobal && line.operation == course::Operation::kLoad)
                most = std::max(most, line.bytes_used);
    constexpr std::uint64_t kList = 1024 * sizeof(Vertex);
    EXPECT_GE(most, kList);
    EXPECT_LT(most, kList * 3 / 2);
}

}  // namespace

// Every version on graphs that fail differently: levels against the reference, levels and parents
// by the rules of Graph500.
#include "graph_traversal.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::GuardedBuffer;
using course::refusal;
using day36::DeviceGraph;
using day36::Edge;
using day36::Graph;
using day36::kUnreached;
using day36::Vertex;
using day36::Workspace;

constexpr std::uint64_t kSeed = 36;

// A graph on the device, with a search's outputs. Both begin as numbers that are no level, no
// parent and not kUnreached either.
class Searches {
  public:
    explicit Searches(Graph graph)
        : graph_(std::move(graph)),
          on_device_(graph_),
          workspace_(on_device_),
          level_(graph_.vertices()),
          parent_(graph_.vertices()) {}

    void expect_right(const day36::Version& version, Vertex source) {
        SCOPED_TRACE(version.name + " from " + std::to_string(source));
        const std::vector<std::uint32_t> garbage(graph_.vertices(), 0xabcdef01u);
        level_.copy_from(garbage);
        parent_.copy_from(garbage);
        version.launcher(on_device_, source, level_.span(), parent_.span(), workspace_, nullptr);
        const std::vector<std::uint32_t> level = level_.to_host();
        const course::VerifyResult same =
            course::verify_exact(level, day36::search_on_cpu(graph_, source).level);
        EXPECT_TRUE(same.ok()) << "levels: " << same.message();
        EXPECT_EQ(day36::what_is_wrong(graph_, source, level, parent_.to_host()), "");
        EXPECT_EQ(level_.damage(), "");
        EXPECT_EQ(parent_.damage(), "");
    }

    const Graph& graph() const { return graph_; }

  private:
    const Graph graph_;
    const DeviceGraph on_device_;
    Workspace workspace_;
    GuardedBuffer<std::uint32_t> level_;
    GuardedBuffer<Vertex> parent_;
};

class VersionTest : public course::DeviceTestWithParam<const day36::Version*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const day36::Version*>::SetUp();
        const std::string reason = GetParam()->cannot_run({});
        if (!reason.empty()) GTEST_SKIP() << reason;
    }

    // One workspace for all sources: what a search leaves behind must not matter to the next one.
    static void expect_right(const std::string& name, Graph graph, const std::vector<Vertex>& sources) {
        SCOPED_TRACE(name);
        Searches searches(std::move(graph));
        for (const Vertex source : sources)
            searches.expect_right(*GetParam(), source);
    }
};

INSTANTIATE_TEST_SUITE_P(GraphTraversal, VersionTest, course::each_of(day36::versions()),
                         course::VersionName());

TEST_P(VersionTest, TinyGraphs) {
    expect_right("one vertex", Graph({0, 0}, {}), {0});
    expect_right("one vertex with a loop", Graph({0, 1}, {0}), {0});
    expect_right("two vertices", Graph({0, 1, 2}, {1, 0}), {0, 1});
    expect_right("an edge one way", Graph({0, 1, 1}, {1}), {0, 1});
    expect_right("an edge three times", Graph({0, 3, 3}, {1, 1, 1}), {0, 1});
    expect_right("no edges", Graph(std::vector<std::uint64_t>(101, 0), {}), {0, 32, 99});
}

// Words of bits, warps and blocks.
TEST_P(VersionTest, PathsOfAllLengths) {
    for (const std::size_t n : {2, 31, 32, 33, 65, 255, 256, 257})
        expect_right("path " + std::to_string(n), day36::path(n), {static_cast<Vertex>(n / 2)});
}

// Vertices that no search reaches, at the end of a word and in words of their own.
TEST_P(VersionTest, TwoComponentsAndIsolatedVertices) {
    std::vector<Edge> edges;
    for (Vertex v = 0; v + 1 < 50; ++v)
        edges.push_back({v, v + 1});
    for (Vertex v = 70; v < 120; ++v)
        edges.push_back({v, 70 + (v * 7 + 1) % 50});
    expect_right("two components", Graph::undirected(200, edges), {40, 119, 60, 199});
}

// Lists of one piece and of 33; a hub with more neighbours than a block of the book's versions has
// room for, and on a GPU than any block has.
TEST_P(VersionTest, Stars) {
    for (const std::size_t leaves : {31, 32, 33, 1025})
        expect_right("star " + std::to_string(leaves), day36::star(leaves + 1),
                     {0, 1, static_cast<Vertex>(leaves)});
    expect_right("large star", day36::star(20000), {0, 19999});
    if (!course::is_cpu_stand_in()) expect_right("huge star", day36::star(1000000), {0});
}

// More vertices of one level than a block of any version has room for, each of which has more to
// find: one that is lost is missed.
TEST_P(VersionTest, AHubWithLongRays) {
    constexpr Vertex kRays = 20000;
    std::vector<Edge> edges;
    for (Vertex v = 1; v <= kRays; ++v) {
        edges.push_back({0, v});
        edges.push_back({v, v + kRays});
    }
    expect_right("rays", Graph::undirected(2 * kRays + 1, edges), {0, 2 * kRays});
}

// Two hubs that share all of their leaves: every leaf is found by two threads.
TEST_P(VersionTest, LeavesBetweenTwoHubs) {
    constexpr Vertex kLeaves = 3000;
    std::vector<Edge> edges;
    for (Vertex v = 0; v < kLeaves; ++v)
        for (const Vertex hub : {kLeaves, kLeaves + 1})
            edges.push_back({hub, v});
    expect_right("two hubs", Graph::undirected(kLeaves + 2, edges), {0, kLeaves});
}

TEST_P(VersionTest, Grids) {
    expect_right("3 x 3", day36::grid_2d(3, 3), {0, 4});
    expect_right("37 x 29", day36::grid_2d(37, 29), {37 * 14 + 18});
}

// A directed graph: columns differ from rows, and vertices without incoming or outgoing edges.
TEST_P(VersionTest, EdgesOneWay) {
    std::vector<Edge> tree;
    for (Vertex v = 1; v < 1000; ++v)
        tree.push_back({(v - 1) / 3, v});
    expect_right("tree", Graph::directed(1000, tree), {0, 1, 999});
    std::vector<Edge> in_star;
    for (Vertex v = 1; v < 500; ++v)
        in_star.push_back({v, 0});
    in_star.push_back({0, 7});
    expect_right("star towards 0", Graph::directed(500, in_star), {0, 3});
    // Large levels, too.
    course::Random random(kSeed);
    std::vector<Edge> many(30000);
    for (Edge& edge : many)
        edge = {random.below(3000), random.below(3000)};
    expect_right("random edges one way", Graph::directed(3000, many), {5});
}

// More vertices in a level than a block has room for, and large parts of the graph: every way of
// direction_optimised.
TEST_P(VersionTest, RandomGraphs) {
    expect_right("rmat", day36::rmat(11, 16 << 11, kSeed), {0, 1});
    expect_right("uniform", day36::uniform(20000, 80000, kSeed), {17});
    // More words and entries than a GPU has warps.
    if (!course::is_cpu_stand_in())
        expect_right("large uniform", day36::uniform(1 << 18, 1 << 21, kSeed), {17});
    course::Random random(kSeed);
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    for (int round = 0; round < 4; ++round) {
        const std::uint32_t n = 1 + random.below(600);
        std::vector<Edge> edges(random.below(3 * n));
        for (Edge& edge : edges)
            edge = {random.below(n), random.below(n)};
        expect_right("round " + std::to_string(round) + ", n " + std::to_string(n), Graph::directed(n, edges),
                     {random.below(n), random.below(n)});
    }
}

// A large frontier, then one that grows, twice: up, down and up again.
TEST_P(VersionTest, TwoRandomGraphsBehindAPath) {
    const Graph part = day36::uniform(4000, 40000, kSeed);
    std::vector<Edge> edges;
    for (Vertex v = 0; v < 4000; ++v)
        for (const Vertex neighbour : part.neighbours_of(v)) {
            edges.push_back({v, neighbour});
            edges.push_back({4000 + v, 4000 + neighbour});
        }
    for (Vertex v = 8000; v + 1 < 8004; ++v)
        edges.push_back({v, v + 1});
    edges.push_back({17, 8000});
    edges.push_back({8003, 4017});
    expect_right("two graphs", Graph::undirected(8004, edges), {3});
}

// Words of bits go on behind the last vertex; levels and parents, which have no guards here, do
// not.
TEST_P(VersionTest, ReadsNothingBehindTheLastVertex) {
    const Graph graph = day36::uniform(1025, 16384, kSeed);
    const DeviceGraph on_device(graph);
    Workspace workspace(on_device);
    course::DeviceBuffer<std::uint32_t> level(1025);
    course::DeviceBuffer<Vertex> parent(1025);
    GetParam()->launcher(on_device, 3, level.span(), parent.span(), workspace, nullptr);
    EXPECT_EQ(day36::what_is_wrong(graph, 3, level.to_host(), parent.to_host()), "");
}

// The same, where the memory behind the levels looks like a vertex of the first frontier, or like
// one that was not reached.
TEST_P(VersionTest, SearchesNothingBehindTheLastVertex) {
    constexpr std::size_t kVertices = 257;
    const Graph graph = day36::uniform(kVertices, 2000, kSeed);
    const DeviceGraph on_device(graph);
    Workspace workspace(on_device);
    for (const std::uint32_t behind : {0u, kUnreached}) {
        SCOPED_TRACE("behind the levels: " + std::to_string(behind));
        const std::vector<std::uint32_t> all(kVertices + 31, behind);
        course::DeviceBuffer<std::uint32_t> level{std::span(all)};
        course::DeviceBuffer<Vertex> parent(kVertices);
        GetParam()->launcher(on_device, 3, level.span().subspan(0, kVertices), parent.span(), workspace,
                             nullptr);
        const std::vector<std::uint32_t> got = level.to_host();
        EXPECT_EQ(std::vector(got.begin() + kVertices, got.end()), std::vector<std::uint32_t>(31, behind));
        EXPECT_EQ(day36::what_is_wrong(graph, 3, std::span(got).first(kVertices), parent.to_host()), "");
    }
}

TEST_P(VersionTest, WritesToOtherMemoryNextTime) {
    const Graph graph = day36::path(5);
    const DeviceGraph on_device(graph);
    Workspace workspace(on_device);
    GuardedBuffer<std::uint32_t> first_level(5), second_level(5, 1);
    GuardedBuffer<Vertex> first_parent(5, 1), second_parent(5, 2);
    // Both are other memory, then one of them.
    for (const auto& [level, parent] : {std::pair{&first_level, &first_parent},
                                        {&second_level, &second_parent},
                                        {&first_level, &second_parent},
                                        {&first_level, &first_parent}}) {
        level->spoil();
        parent->spoil();
        GetParam()->launcher(on_device, 4, level->span(), parent->span(), workspace, nullptr);
        EXPECT_EQ(level->to_host(), (std::vector<std::uint32_t>{4, 3, 2, 1, 0}));
        EXPECT_EQ(parent->to_host(), (std::vector<Vertex>{1, 2, 3, 4, 4}));
    }
}

// Two searches, one behind the other, on a stream that does not wait for the default one.
TEST_P(VersionTest, RunsOnTheGivenStream) {
    const Graph graph = day36::uniform(3000, 24000, kSeed);
    const DeviceGraph on_device(graph);
    Workspace workspace(on_device);
    GuardedBuffer<std::uint32_t> level(3000);
    GuardedBuffer<Vertex> parent(3000);
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const Vertex source : {7, 11})
        GetParam()->launcher(on_device, source, level.span(), parent.span(), workspace, stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaStreamDestroy(stream));
    EXPECT_EQ(level.to_host(), day36::search_on_cpu(graph, 11).level);
    EXPECT_EQ(day36::what_is_wrong(graph, 11, level.to_host(), parent.to_host()), "");
}

TEST_P(VersionTest, RefusesBadArguments) {
    const DeviceGraph graph(day36::path(5));
    const DeviceGraph other(day36::path(5));
    const DeviceGraph none(Graph({0}, {}));
    Workspace workspace(graph);
    Workspace of_other(other);
    Workspace of_none(none);
    GuardedBuffer<std::uint32_t> five(5), more(6), empty(0);
    GuardedBuffer<Vertex> parent(5);
    const auto says = [&](const DeviceGraph& g, Vertex source, GuardedBuffer<std::uint32_t>& level,
                          GuardedBuffer<Vertex>& parents, Workspace& space) {
        return refusal(
            [&] { GetParam()->launcher(g, source, level.span(), parents.span(), space, nullptr); });
    };
    EXPECT_EQ(says(graph, 5, five, parent, workspace),
              "graph_traversal: source is 5; expected less than 5, the number of vertices");
    EXPECT_EQ(says(none, 0, empty, empty, of_none),
              "graph_traversal: source is 0; expected less than 0, the number of vertices");
    EXPECT_EQ(says(graph, 0, more, parent, workspace),
              "graph_traversal: level has 6 elements; expected 5, the number of vertices");
    EXPECT_EQ(says(graph, 0, five, more, workspace),
              "graph_traversal: parent has 6 elements; expected 5, the number of vertices");
    EXPECT_EQ(says(graph, 0, five, five, workspace),
              "graph_traversal: parent overlaps level; expected no element in common");
    EXPECT_EQ(says(graph, 0, five, parent, of_other),
              "graph_traversal: workspace is another graph's; expected this one's");
}

// More levels than 16 bits can count.
TEST(ManyLevels, OnALongPath) {
    Searches searches(day36::path(66000));
    searches.expect_right(course::find_version(day36::versions(), "frontier"), 0);
}

// A source with four blocks of neighbours. Each leads to a vertex of its own, every second one to
// five: threads that finish early do not wait for the others of their block. A block stores all
// that it has found in one piece of the queue, and a piece belongs to 256 adjacent entries of the
// level before.
TEST(Cooperative, EachBlockHasAPartOfALevel) {
    const day36::Version& version = course::find_version(day36::versions(), "cooperative");
    if (const std::string reason = version.cannot_run({}); !reason.empty()) GTEST_SKIP() << reason;
    constexpr Vertex kOfBlock = 256, kFirst = 4 * kOfBlock, kPiece = kOfBlock / 2 * (1 + 5);
    std::vector<Edge> edges;
    std::vector<Vertex> parent_of(1 + kFirst);  // of the vertices of level 2, too
    for (Vertex v = 1; v <= kFirst; ++v) {
        edges.push_back({0, v});
        for (Vertex child = 0; child < (v % 2 == 0 ? 5 : 1); ++child) {
            edges.push_back({v, static_cast<Vertex>(parent_of.size())});
            parent_of.push_back(v);
        }
    }
    const Graph graph = Graph::directed(static_cast<Vertex>(parent_of.size()), edges);
    const DeviceGraph on_device(graph);
    Workspace workspace(on_device);
    GuardedBuffer<std::uint32_t> level(graph.vertices());
    GuardedBuffer<Vertex> parent(graph.vertices());
    version.launcher(on_device, 0, level.span(), parent.span(), workspace, nullptr);
    CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<Vertex> queue = workspace.queue.to_host();
    std::vector<Vertex> entry_of(graph.vertices());
    for (Vertex i = 0; i < kFirst; ++i) {
        const Vertex first = queue[1 + i];
        ASSERT_TRUE(first >= 1 && first <= kFirst)
            << "entry " << i << " of level 1 is " << first << "; expected 1 to " << kFirst;
        entry_of[first] = i;
    }
    for (Vertex i = 0; i < 4 * kPiece; ++i) {
        const Vertex second = queue[1 + kFirst + i];
        ASSERT_TRUE(second > kFirst && second < graph.vertices())
            << "entry " << i << " of level 2 is " << second << "; expected " << kFirst + 1 << " to "
            << graph.vertices() - 1;
    }
    const auto block_of = [&](Vertex i) { return entry_of[parent_of[queue[1 + kFirst + i]]] / kOfBlock; };
    for (Vertex i = 0; i < 4 * kPiece; ++i)
        ASSERT_EQ(block_of(i), block_of(i / kPiece * kPiece))
            << "Entries " << i / kPiece * kPiece << " and " << i
            << " of level 2 are in the same piece, and come from different blocks' entries of level 1. "
               "Do all blocks expand each level, with expand_privatised?";
}

// A hub, its 3,000 leaves, 100 ports and 40 leaves for each of these. direction_optimised goes
// top-down to the hub's leaves, bottom-up to the ports, and top-down again, from a queue that it
// has made of the bitmap: the ports are few, and their edges many.
TEST(DirectionOptimised, GoesTopDownBehindALargeLevel) {
    constexpr Vertex kLeaves = 3000, kPorts = 100, kOfPort = 40;
    constexpr Vertex kFirstPort = 1 + kLeaves, kFirstOfPorts = kFirstPort + kPorts;
    std::vector<Edge> edges;
    for (Vertex v = 1; v <= kLeaves; ++v) {
        edges.push_back({0, v});
        edges.push_back({v, 1 + v % kLeaves});
    }
    for (Vertex port = 0; port < kPorts; ++port) {
        edges.push_back({1 + port, kFirstPort + port});
        for (Vertex i = 0; i < kOfPort; ++i)
            edges.push_back({kFirstPort + port, kFirstOfPorts + port * kOfPort + i});
    }
    Searches searches(Graph::undirected(kFirstOfPorts + kPorts * kOfPort, edges));
    for (const Vertex source : {Vertex{0}, kFirstOfPorts})
        searches.expect_right(course::find_version(day36::versions(), "direction_optimised"), source);
}

// A hub, its leaves, 100 ports, 40 second ports, each of which leads to two leaves of its own, and
// a path: from the ports on top-down, twice. The search from the end of the path comes first, so
// entries of the queue that this one has not written belong to vertices that are far away.
TEST(DirectionOptimised, GoesTopDownTwiceBehindALargeLevel) {
    constexpr Vertex kLeaves = 5000, kPorts = 100, kSecond = 40, kPath = 1000;
    constexpr Vertex kFirstPort = 1 + kLeaves, kFirstSecond = kFirstPort + kPorts;
    constexpr Vertex kLastLeaves = kFirstSecond + kSecond, kFirstOfPath = kLastLeaves + 2 * kSecond;
    std::vector<Edge> edges;
    for (Vertex v = 1; v <= kLeaves; ++v) {
        edges.push_back({0, v});
        edges.push_back({v, 1 + v % kLeaves});
    }
    for (Vertex port = kFirstPort; port < kFirstSecond; ++port) {
        edges.push_back({port - kFirstPort + 1, port});
        for (Vertex second = kFirstSecond; second < kLastLeaves; ++second)
            edges.push_back({port, second});
    }
    for (Vertex leaf = kLastLeaves; leaf < kFirstOfPath; ++leaf)
        edges.push_back({kFirstSecond + (leaf - kLastLeaves) / 2, leaf});
    edges.push_back({kLastLeaves, kFirstOfPath});
    for (Vertex v = kFirstOfPath; v + 1 < kFirstOfPath + kPath; ++v)
        edges.push_back({v, v + 1});
    Searches searches(Graph::undirected(kFirstOfPath + kPath, edges));
    for (const Vertex source : {kFirstOfPath + kPath - 1, Vertex{0}})
        searches.expect_right(course::find_version(day36::versions(), "direction_optimised"), source);
}

// --- Graphs --------------------------------------------------------------------------------------

TEST(GraphTest, RefusesWhatIsNoGraph) {
    const auto says = [](std::vector<std::uint64_t> offsets, std::vector<Vertex> neighbours) {
        return refusal([&] { Graph(offsets, neighbours); });
    };
    EXPECT_EQ(says({0, 2, 3}, {1, 1, 0}), "");
    EXPECT_EQ(says({}, {}), "Graph: offsets has 0 elements; expected one more than there are vertices");
    EXPECT_EQ(says({1, 2}, {0, 0}), "Graph: offsets[0] is 1; expected 0");
    EXPECT_EQ(says({0, 2, 1}, {0}), "Graph: offsets[2] is 1; expected at least offsets[1], which is 2");
    EXPECT_EQ(says({0, 1, 2}, {0}), "Graph: offsets[2] is 2; expected 1, the number of neighbours");
    EXPECT_EQ(says({0, 1, 2}, {1, 2}),
              "Graph: neighbours[1] is 2; expected less than 2, the number of vertices");
    EXPECT_EQ(says({0, std::uint64_t{1} << 31}, {}),
              "Graph: edges is 2147483648; expected at most 2147483647");
    const std::vector<Edge> outside{{0, 1}, {2, 1}};
    EXPECT_EQ(refusal([&] { (void)Graph::directed(2, outside); }),
              "Graph: edges[1].from is 2; expected less than 2, the number of vertices");
    EXPECT_EQ(refusal([&] { (void)Graph::directed((std::size_t{1} << 30) + 1, {}); }),
              "Graph: vertices is 1073741825; expected at most 1073741824");
    EXPECT_EQ(refusal([&] { (void)day36::search_on_cpu(Graph({0}, {}), 0); }),
              "search_on_cpu: source is 0; expected less than 0, the number of vertices");
}

template <class T>
std::vector<T> list(std::span<const T> span) {
    return {span.begin(), span.end()};
}

TEST(GraphTest, RowsAndColumns) {
    const std::vector<Edge> edges{{2, 0}, {0, 2}, {0, 1}, {2, 2}, {0, 1}};
    const Graph graph = Graph::directed(4, edges);
    EXPECT_EQ(list(graph.offsets()), (std::vector<std::uint32_t>{0, 3, 3, 5, 5}));
    EXPECT_EQ(list(graph.neighbours()), (std::vector<Vertex>{1, 1, 2, 0, 2}));
    EXPECT_EQ(list(graph.transposed().offsets()), (std::vector<std::uint32_t>{0, 1, 3, 5, 5}));
    EXPECT_EQ(list(graph.transposed().neighbours()), (std::vector<Vertex>{2, 0, 0, 0, 2}));
    const Graph both = Graph::undirected(4, edges);
    EXPECT_EQ(both.edges(), 10u);
    EXPECT_EQ(list(both.transposed().offsets()), list(both.offsets()));
    EXPECT_EQ(list(both.transposed().neighbours()), list(both.neighbours()));
}

TEST(GraphTest, Generators) {
    EXPECT_EQ(day36::grid_2d(5, 3).edges(), 2u * (4 * 3 + 5 * 2));
    EXPECT_EQ(list(day36::grid_2d(5, 3).neighbours_of(6)), (std::vector<Vertex>{1, 5, 7, 11}));
    EXPECT_EQ(list(day36::path(4).neighbours()), (std::vector<Vertex>{1, 0, 2, 1, 3, 2}));
    EXPECT_EQ(day36::star(9).neighbours_of(0).size(), 8u);
    EXPECT_EQ(day36::path(0).vertices(), 0u);
    EXPECT_EQ(day36::grid_2d(0, 3).vertices(), 0u);
    constexpr std::size_t kLarge = std::size_t{1} << 32;  // its square is 0 in 64 bits
    EXPECT_EQ(refusal([] { (void)day36::grid_2d(kLarge, kLarge); }),
              "grid_2d: width is 4294967296 and height is 4294967296; expected at most 1073741824");
    EXPECT_EQ(refusal([] { (void)day36::grid_2d(std::size_t{1} << 15, std::size_t{1} << 15); }),
              "Graph: edges is 4294836224; expected at most 2147483647");
    EXPECT_EQ(list(day36::uniform(50, 99, 7).neighbours()), list(day36::uniform(50, 99, 7).neighbours()));
    EXPECT_NE(list(day36::uniform(50, 99, 7).neighbours()), list(day36::uniform(50, 99, 8).neighbours()));
    EXPECT_NE(refusal([] { (void)day36::uniform(0, 1, 7); }), "");

    const Graph rmat = day36::rmat(12, 16 << 12, kSeed);
    EXPECT_EQ(rmat.edges(), 2u * (16 << 12));
    std::size_t alone = 0;
    std::size_t largest = 0;
    for (Vertex v = 0; v < rmat.vertices(); ++v) {
        alone += rmat.neighbours_of(v).empty();
        largest = std::max(largest, rmat.neighbours_of(v).size());
    }
    EXPECT_GT(alone, rmat.vertices() / 10) << "vertices without an edge";
    EXPECT_GT(largest, 20 * rmat.edges() / rmat.vertices()) << "edges of the largest hub";
}

// --- The reference -------------------------------------------------------------------------------

// The other way to compute levels: relax all edges until nothing changes.
TEST(Reference, AgreesWithRelaxation) {
    course::Random random(kSeed);
    for (int round = 0; round < 20; ++round) {
        const std::uint32_t n = 1 + random.below(60);
        std::vector<Edge> edges(random.below(3 * n));
        for (Edge& edge : edges)
            edge = {random.below(n), random.below(n)};
        const Vertex source = random.below(n);
        std::vector<std::uint32_t> level(n, kUnreached);
        level[source] = 0;
        for (std::uint32_t repeat = 0; repeat < n; ++repeat)
            for (const Edge& edge : edges)
                if (level[edge.from] != kUnreached)
                    level[edge.to] = std::min(level[edge.to], level[edge.from] + 1);
        const Graph graph = Graph::directed(n, edges);
        const day36::Search search = day36::search_on_cpu(graph, source);
        EXPECT_EQ(search.level, level) << "seed " << kSeed << ", round " << round;
        EXPECT_EQ(day36::what_is_wrong(graph, source, search.level, search.parent), "");
    }
}

// 0 - 1 - 2 - 3, 0 - 2, and 4 alone.
TEST(Reference, TheRulesFindEachMistake) {
    const std::vector<Edge> edges{{0, 1}, {1, 2}, {2, 3}, {0, 2}};
    const Graph graph = Graph::undirected(5, edges);
    constexpr std::uint32_t N = kUnreached;
    const auto wrong = [&](const std::vector<std::uint32_t>& level, const std::vector<Vertex>& parent) {
        return day36::what_is_wrong(graph, 0, level, parent);
    };
    EXPECT_EQ(wrong({0, 1, 1, 2, N}, {0, 0, 0, 2, N}), "");
    EXPECT_EQ(wrong({0, 1, 1, 2}, {0, 0, 0, 2}), "there are 4 levels and 4 parents for 5 vertices");
    EXPECT_EQ(day36::what_is_wrong(graph, 5, std::vector<std::uint32_t>(5), std::vector<Vertex>(5)),
              "the source is 5 in a graph of 5 vertices");
    EXPECT_EQ(wrong({1, 1, 1, 2, N}, {0, 0, 0, 2, N}), "the source has level 1");
    EXPECT_EQ(wrong({0, 1, 1, 2, N}, {1, 0, 0, 2, N}), "the source has parent 1");
    EXPECT_EQ(wrong({0, 1, 2, 3, N}, {0, 0, 1, 2, N}),
              "an edge leads from vertex 0 of level 0 to vertex 2 of level 2");
    EXPECT_EQ(wrong({0, 1, 1, N, N}, {0, 0, 0, N, N}),
              "an edge leads from vertex 2 of level 1 to vertex 3 of level 4294967295");
    EXPECT_EQ(wrong({0, 1, 1, 2, N}, {0, 0, 0, 1, N}),
              "vertex 3 has parent 1, and there is no edge between them");
    EXPECT_EQ(wrong({0, 1, 1, 2, N}, {0, 0, 1, 2, N}), "vertex 2 has level 1, and its parent 1 has level 1");
    EXPECT_EQ(wrong({0, 1, 1, 2, N}, {0, 0, 0, 2, 0}), "vertex 4 has level 4294967295 and parent 0");
    EXPECT_EQ(wrong({0, 1, 1, 2, 1}, {0, 0, 0, 2, 0}),
              "vertex 4 has parent 0, and there is no edge between them");
    EXPECT_EQ(wrong({0, 1, 1, 2, 9}, {0, 0, 0, 2, 0}), "vertex 4 has level 9 in a graph of 5 vertices");
    EXPECT_EQ(wrong({0, 1, 1, 2, N}, {0, 0, 0, 9, N}), "vertex 3 has parent 9, which is no vertex");
    EXPECT_EQ(day36::edges_of_reached(graph, std::vector<std::uint32_t>{0, 1, 1, 2, N}), 8u);
}

}  // namespace

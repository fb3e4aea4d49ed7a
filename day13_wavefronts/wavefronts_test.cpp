// Every version against the plain loops, exactly: integers, and floats whose sums are exact.
#include "wavefronts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using day13::Symbol;
using day13::Workspace;

constexpr std::uint64_t kSeed = 13;
constexpr float kNone = std::numeric_limits<float>::infinity();

// --- Edit distance -------------------------------------------------------------------------------

enum class Pattern { kRandom, kSimilar, kEqual, kNothingInCommon, kShifted };
constexpr Pattern kPatterns[] = {Pattern::kRandom, Pattern::kSimilar, Pattern::kEqual,
                                 Pattern::kNothingInCommon, Pattern::kShifted};
constexpr const char* kNames[] = {"random", "similar", "equal", "nothing in common", "shifted"};

struct Pair {
    std::vector<Symbol> a;
    std::vector<Symbol> b;
};

Pair make_pair(std::size_t m, std::size_t n, Pattern pattern, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    Pair pair{std::vector<Symbol>(m), std::vector<Symbol>(n)};
    for (Symbol& symbol : pair.a)
        symbol = static_cast<Symbol>(random.below(4));
    for (std::size_t j = 0; j < n; ++j) {
        const auto other = static_cast<Symbol>(random.below(4));
        const bool is_same =
            pattern == Pattern::kEqual || (pattern == Pattern::kSimilar && random.below(10) > 0);
        pair.b[j] = is_same && j < m ? pair.a[j] : other;
        if (pattern == Pattern::kNothingInCommon) pair.b[j] = static_cast<Symbol>(other + 100);
        if (pattern == Pattern::kShifted) pair.b[j] = j + 7 < m ? pair.a[j + 7] : other;
    }
    return pair;
}

class EditTest : public course::DeviceTestWithParam<const day13::EditVersion*> {
  protected:
    static void expect_right(const Pair& pair, const std::string& what) {
        const std::size_t n = pair.b.size();
        GuardedBuffer<Symbol> a(pair.a.size(), 1);
        GuardedBuffer<Symbol> b(n, 3);
        a.copy_from(pair.a);
        b.copy_from(pair.b);
        GuardedBuffer<int> distances(n + 1);
        Workspace workspace(pair.a.size(), n);
        GetParam()->launcher(a.span(), b.span(), distances.span(), workspace, nullptr);
        course::VerifyResult result =
            course::verify_exact(distances.to_host(), day13::edit_distances_on_cpu(pair.a, pair.b));
        result.damage = distances.damage() + a.damage() + b.damage();
        EXPECT_TRUE(result.ok()) << "m = " << pair.a.size() << ", n = " << n << ", " << what << ": "
                                 << result.message();
        EXPECT_EQ(a.to_host(), pair.a) << "a was changed";
        EXPECT_EQ(b.to_host(), pair.b) << "b was changed";
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirteen, EditTest, course::each_of(day13::edit_versions()),
                         course::VersionName());

// Around a warp, around tiles of 64 and of 128; and tall, wide and square.
constexpr std::pair<std::size_t, std::size_t> kShapes[] = {
    {0, 0},     {0, 1},   {1, 0},     {0, 70},    {70, 0},  {1, 1},   {1, 2},     {2, 1},     {31, 32},
    {33, 31},   {63, 64}, {64, 63},   {64, 64},   {65, 65}, {4, 129}, {127, 128}, {128, 127}, {128, 128},
    {129, 129}, {130, 3}, {131, 260}, {260, 131}, {1, 300}, {300, 1}, {257, 311}};

TEST_P(EditTest, AllShapesAndPatterns) {
    for (const auto& [m, n] : kShapes)
        for (const Pattern pattern : kPatterns)
            expect_right(make_pair(m, n, pattern), kNames[static_cast<std::size_t>(pattern)]);
}

TEST_P(EditTest, RandomShapes) {
    course::Random random(20261129);
    SCOPED_TRACE("course::Random seed 20261129");
    for (int round = 0; round < 15; ++round) {
        const std::size_t m = random.below(500);
        const std::size_t n = random.below(500);
        const Pattern pattern = kPatterns[random.below(std::size(kPatterns))];
        expect_right(make_pair(m, n, pattern, random.next()), kNames[static_cast<std::size_t>(pattern)]);
    }
}

TEST_P(EditTest, KnownDistances) {
    const auto symbols = [](const std::string& text) {
        return std::vector<Symbol>(text.begin(), text.end());
    };
    const auto distance = [&](const std::string& a, const std::string& b) {
        const DeviceBuffer<Symbol> a_device{std::span<const Symbol>(symbols(a))};
        const DeviceBuffer<Symbol> b_device{std::span<const Symbol>(symbols(b))};
        GuardedBuffer<int> distances(b.size() + 1);
        Workspace workspace(a.size(), b.size());
        GetParam()->launcher(a_device.span(), b_device.span(), distances.span(), workspace, nullptr);
        return distances.to_host().back();
    };
    EXPECT_EQ(distance("kitten", "sitting"), 3);
    EXPECT_EQ(distance("wavefront", "waterfront"), 2);
    EXPECT_EQ(distance("\xff\x80", "\x7f\x80"), 1);
}

// A workspace for longer sequences, used before, does as well.
TEST_P(EditTest, AWorkspaceCanBeUsedAgain) {
    Workspace workspace(300, 200);
    for (const auto& [m, n] : {std::pair{300, 200}, std::pair{150, 190}, std::pair{7, 100}}) {
        const Pair pair = make_pair(m, n, Pattern::kSimilar);
        const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
        const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
        GuardedBuffer<int> distances(pair.b.size() + 1);
        GetParam()->launcher(a.span(), b.span(), distances.span(), workspace, nullptr);
        EXPECT_EQ(distances.to_host(), day13::edit_distances_on_cpu(pair.a, pair.b));
    }
}

TEST_P(EditTest, RunsOnTheGivenStream) {
    const Pair pair = make_pair(140, 150, Pattern::kSimilar);
    const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
    const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
    GuardedBuffer<int> distances(151);
    Workspace workspace(140, 150);
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(a.span(), b.span(), distances.span(), workspace, stream);
    });
    CUDA_CHECK(cudaDeviceSynchronize());
    distances.spoil();
    work.run();
    EXPECT_EQ(distances.to_host(), day13::edit_distances_on_cpu(pair.a, pair.b));
}

TEST_P(EditTest, RefusesBadArguments) {
    DeviceBuffer<Symbol> symbols = course::zeros<Symbol>(64);
    DeviceBuffer<int> distances(9);
    Workspace workspace(8, 8);
    const auto message = [&](std::size_t m, std::size_t n, course::DeviceSpan<int> out) {
        return course::refusal([&] {
            GetParam()->launcher(symbols.span().subspan(0, m), symbols.span().subspan(20, n), out, workspace,
                                 nullptr);
        });
    };
    EXPECT_EQ(message(8, 8, distances.span()), "");
    EXPECT_EQ(message(8, 7, distances.span()),
              "edit distance: distances has 9 elements; expected one more than b has symbols, 8");
    EXPECT_EQ(message(9, 8, distances.span()),
              "edit distance: workspace is for 8 and 8 symbols; expected at least as many as a and b have, 9 "
              "and 8");
    const auto inside = [&](std::size_t offset) {
        return course::DeviceSpan<int>::from_device_pointer(
            reinterpret_cast<int*>(symbols.span().subspan(offset, 36).data()), 9);
    };
    EXPECT_EQ(message(8, 8, inside(4)), "edit distance: distances overlaps a; expected no element in common");
    EXPECT_EQ(message(8, 8, inside(24)),
              "edit distance: distances overlaps b; expected no element in common");
}

// 2^32 cells and more: no offset may be computed in 32 bits. All symbols differ, so each of the
// longer sequence costs one operation.
TEST_P(EditTest, MoreCellsThan32BitsCount) {
    if (course::is_cpu_stand_in()) GTEST_SKIP() << "needs a GPU: 2^32 cells take CPU threads too long";
    const std::size_t m = 65537;
    const std::size_t n = 65539;
    DeviceBuffer<Symbol> a(m);
    DeviceBuffer<Symbol> b(n);
    CUDA_CHECK(cudaMemset(a.data(), 1, a.bytes()));
    CUDA_CHECK(cudaMemset(b.data(), 2, b.bytes()));
    GuardedBuffer<int> distances(n + 1);
    Workspace workspace(m, n);
    GetParam()->launcher(a.span(), b.span(), distances.span(), workspace, nullptr);
    const std::vector<int> got = distances.to_host();
    for (std::size_t j = 0; j <= n; ++j)
        ASSERT_EQ(got[j], static_cast<int>(std::max(m, j))) << j;
    EXPECT_EQ(distances.damage(), "");
}

TEST(EditWorkspace, RefusesMoreThan2To30Symbols) {
    EXPECT_EQ(course::refusal([] { Workspace workspace((std::size_t{1} << 30) + 1, 1); }),
              "edit distance: a has 1073741825 symbols; expected at most 2^30");
    EXPECT_EQ(course::refusal([] { Workspace workspace(1, (std::size_t{1} << 30) + 1); }),
              "edit distance: b has 1073741825 symbols; expected at most 2^30");
}

// --- Beyond: other rules -------------------------------------------------------------------------

class LocalTest : public course::DeviceTestWithParam<const day13::LocalVersion*> {
  protected:
    static void expect_right(const Pair& pair, const day13::Scoring& scoring, const std::string& what) {
        const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
        const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
        GuardedBuffer<int> score(1);
        Workspace workspace(pair.a.size(), pair.b.size());
        GetParam()->launcher(a.span(), b.span(), scoring, score.span(), workspace, nullptr);
        EXPECT_EQ(score.to_host()[0], day13::local_score_on_cpu(pair.a, pair.b, scoring))
            << "m = " << pair.a.size() << ", n = " << pair.b.size() << ", " << what;
        EXPECT_EQ(score.damage(), "");
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirteen, LocalTest, course::each_of(day13::local_versions()),
                         course::VersionName());

// The last: gaps and mismatches are free, so the score is 1 for each pair of the longest common
// subsequence.
TEST_P(LocalTest, AllShapesPatternsAndScorings) {
    for (const auto& [m, n] : kShapes)
        for (const Pattern pattern : kPatterns)
            for (const day13::Scoring& scoring :
                 {day13::Scoring{}, day13::Scoring{5, -4, -1}, day13::Scoring{1, 0, 0}})
                expect_right(make_pair(m, n, pattern), scoring, kNames[static_cast<std::size_t>(pattern)]);
}

TEST_P(LocalTest, ManyStrips) {
    expect_right(make_pair(1700, 130, Pattern::kShifted), {}, "shifted");
    expect_right(make_pair(1025, 1, Pattern::kRandom), {}, "random");
}

TEST_P(LocalTest, RefusesBadArguments) {
    DeviceBuffer<Symbol> symbols = course::zeros<Symbol>(64);
    DeviceBuffer<int> score(2);
    Workspace workspace(8, 8);
    const auto message = [&](const day13::Scoring& scoring, std::size_t m, std::size_t scores) {
        return course::refusal([&] {
            GetParam()->launcher(symbols.span().subspan(0, m), symbols.span().subspan(20, 8), scoring,
                                 score.span().subspan(0, scores), workspace, nullptr);
        });
    };
    EXPECT_EQ(message({}, 8, 1), "");
    EXPECT_EQ(message({}, 8, 2), "local alignment: score has 2 elements; expected 1");
    EXPECT_EQ(message({}, 9, 1),
              "local alignment: workspace is for 8 and 8 symbols; expected at least as many as a and b have, "
              "9 and 8");
    EXPECT_EQ(
        message({2, 1, -1}, 8, 1),
        "local alignment: match, mismatch and gap are 2, 1 and -1; expected match > 0, the others <= 0");
    EXPECT_EQ(
        message({1 << 28, 0, 0}, 8, 1),
        "local alignment: match, mismatch and gap are 268435456, 0 and 0; expected scores of up to 2^30 "
        "for 8 pairs");
}

using StripsTest = course::DeviceTest;

// Strips wait for each other: more of them than the blocks of the other tests, in any order of
// blocks.
TEST_F(StripsTest, ManyStrips) {
    for (const char* const name : {"strips", "strips_256", "strips_512"}) {
        const Pair pair = make_pair(2100, 140, Pattern::kShifted);
        const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
        const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
        GuardedBuffer<int> distances(141);
        Workspace workspace(2100, 140);
        course::find_version(day13::edit_versions(), name)
            .launcher(a.span(), b.span(), distances.span(), workspace, nullptr);
        EXPECT_EQ(distances.to_host(), day13::edit_distances_on_cpu(pair.a, pair.b)) << name;
        EXPECT_EQ(distances.damage(), "");
    }
}

std::vector<float2> make_curve(std::size_t n, bool is_whole, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float2> curve(n);
    int x = 0, y = 0;
    for (float2& point : curve) {
        x += random.integer(-5, 9);
        y += random.integer(-9, 9);
        point = float2{static_cast<float>(x), static_cast<float>(y)};
        if (!is_whole) point.x += 0.37F;
        if (!is_whole) point.y *= 0.91F;
    }
    return curve;
}

// Whole coordinates: squares are exact, and the root is rounded once. Others: two products, a sum
// and a root, of differences that are rounded as well.
TEST_F(StripsTest, FrechetDistances) {
    for (const bool is_whole : {true, false}) {
        for (const auto& [m, n] : kShapes) {
            const std::vector<float2> a = make_curve(m, is_whole, 1);
            const std::vector<float2> b = make_curve(n, is_whole, 2);
            const DeviceBuffer<float2> a_device{std::span<const float2>(a)};
            const DeviceBuffer<float2> b_device{std::span<const float2>(b)};
            GuardedBuffer<float> distances(n + 1);
            Workspace workspace(m, n);
            frechet_distances(a_device.span(), b_device.span(), distances.span(), workspace, nullptr);
            const std::vector<double> expected = day13::frechet_distances_on_cpu(a, b);
            const std::vector<float> got = distances.to_host();
            EXPECT_EQ(distances.damage(), "");
            constexpr double kRounding = std::numeric_limits<float>::epsilon() / 2;
            for (std::size_t j = 0; j <= n; ++j) {
                const auto nearest = static_cast<float>(expected[j]);
                if (is_whole || std::isinf(expected[j])) {
                    ASSERT_EQ(got[j], nearest) << "m = " << m << ", n = " << n << ", j = " << j;
                } else {
                    ASSERT_NEAR(got[j], expected[j], 4 * kRounding * expected[j])
                        << "m = " << m << ", n = " << n << ", j = " << j;
                }
            }
        }
    }
}

TEST_F(StripsTest, FrechetRefusesBadArguments) {
    DeviceBuffer<float2> points(16);
    DeviceBuffer<float> distances(9);
    Workspace workspace(8, 8);
    const auto message = [&](std::size_t m, std::size_t n) {
        return course::refusal([&] {
            frechet_distances(points.span().subspan(0, m), points.span().subspan(0, n), distances.span(),
                              workspace, nullptr);
        });
    };
    EXPECT_EQ(message(8, 7),
              "frechet_distances: distances has 9 elements; expected one more than b has points, 8");
    EXPECT_EQ(
        message(9, 8),
        "frechet_distances: workspace is for 8 and 8 points; expected at least as many as a and b have, "
        "9 and 8");
}

// --- All shortest paths --------------------------------------------------------------------------

enum class Graph { kDense, kSparse, kNegative, kNoEdges, kRing };
constexpr Graph kGraphs[] = {Graph::kDense, Graph::kSparse, Graph::kNegative, Graph::kNoEdges, Graph::kRing};
constexpr const char* kGraphNames[] = {"dense", "sparse", "negative edges", "no edges", "ring"};

// Whole numbers, so that all sums are exact. Negative edges: each vertex has a height, and an edge
// costs its weight and the difference in height, so that no cycle is negative.
std::vector<float> make_graph(std::size_t n, Graph kind, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    std::vector<int> height(n);
    for (int& h : height)
        h = kind == Graph::kNegative ? random.integer(0, 1000) : 0;
    std::vector<float> weights(n * n, kNone);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            const int weight = random.integer(1, 1000);
            const bool is_edge =
                kind == Graph::kDense || kind == Graph::kNegative
                    ? random.below(8) > 0
                    : kind == Graph::kSparse && random.below(static_cast<std::uint32_t>(n)) < 2;
            if (is_edge) weights[i * n + j] = static_cast<float>(weight + height[j] - height[i]);
            if (kind == Graph::kRing && j == (i + 1) % n) weights[i * n + j] = static_cast<float>(weight);
            if (i == j) weights[i * n + j] = 0;
        }
    }
    return weights;
}

class PathTest : public course::DeviceTestWithParam<const day13::PathVersion*> {
  protected:
    static std::vector<float> run(const std::vector<float>& weights, std::size_t n, std::string& damage,
                                  std::size_t misaligned_by = 1) {
        GuardedBuffer<float> distance(n * n, misaligned_by);
        distance.copy_from(weights);
        GetParam()->launcher(distance.span(), n, nullptr);
        damage = distance.damage();
        return distance.to_host();
    }

    static void expect_right(const std::vector<float>& weights, std::size_t n, const std::string& what,
                             std::size_t misaligned_by = 1) {
        std::vector<double> expected(weights.begin(), weights.end());
        day13::shortest_paths_on_cpu(expected, n);
        std::string damage;
        course::VerifyResult result =
            course::verify(run(weights, n, damage, misaligned_by), expected, {.factor = 0});
        result.damage = damage;
        EXPECT_TRUE(result.ok()) << "n = " << n << ", " << what << ": " << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirteen, PathTest, course::each_of(day13::path_versions()),
                         course::VersionName());

TEST_P(PathTest, AllSizesAndGraphs) {
    for (const std::size_t n : {0, 1, 2, 31, 32, 33, 63, 64, 65, 97, 131})
        for (const Graph graph : kGraphs)
            expect_right(make_graph(n, graph), n, kGraphNames[static_cast<std::size_t>(graph)]);
}

TEST_P(PathTest, RandomSizes) {
    course::Random random(20261130);
    SCOPED_TRACE("course::Random seed 20261130");
    for (int round = 0; round < 5; ++round) {
        const std::size_t n = random.below(150);
        const Graph graph = kGraphs[random.below(std::size(kGraphs))];
        expect_right(make_graph(n, graph, random.next()), n, kGraphNames[static_cast<std::size_t>(graph)]);
    }
}

// Rows that 16-byte loads can read: multiples of 4, from an aligned address.
TEST_P(PathTest, AlignedRows) {
    for (const std::size_t n : {4, 64, 128, 140})
        expect_right(make_graph(n, Graph::kNegative), n, "negative edges, aligned", 0);
}

// A path may use 129 edges; each sum is rounded. The reference rounds in double.
TEST_P(PathTest, WeightsThatRound) {
    const std::size_t n = 130;
    course::Random random(kSeed);
    std::vector<float> weights = make_graph(n, Graph::kRing);
    for (float& weight : weights)
        if (weight > 0 && weight < kNone) weight = 0.1F + static_cast<float>(random.below(1000)) / 977;
    std::vector<double> expected(weights.begin(), weights.end());
    day13::shortest_paths_on_cpu(expected, n);
    std::string damage;
    const std::vector<float> got = run(weights, n, damage);
    EXPECT_EQ(damage, "");
    constexpr double kRounding = std::numeric_limits<float>::epsilon() / 2;
    for (std::size_t e = 0; e < got.size(); ++e)
        ASSERT_NEAR(got[e], expected[e], (n - 1) * kRounding * expected[e]) << "at " << e;
}

// Largest weights: their sum is infinity, which is no path; and no infinity becomes finite.
TEST_P(PathTest, InfinityStaysInfinity) {
    constexpr float kMost = std::numeric_limits<float>::max();
    const std::size_t n = 70;
    std::vector<float> weights(n * n, kNone);
    for (std::size_t i = 0; i < n; ++i)
        weights[i * n + i] = 0;
    weights[1] = -kMost;
    weights[1 * n + 2] = kMost;
    weights[3 * n + 4] = kMost;
    weights[4 * n + 69] = kMost;
    std::string damage;
    std::vector<float> expected = weights;
    expected[2] = 0;  // 0 -> 1 -> 2
    EXPECT_EQ(run(weights, n, damage), expected);
    EXPECT_EQ(damage, "");
}

TEST_P(PathTest, ANegativeCycleShowsOnTheDiagonal) {
    for (const std::size_t n : {2, 40, 100}) {
        std::vector<float> weights = make_graph(n, Graph::kRing);
        double around = 0;
        for (std::size_t i = 0; i < n; ++i)
            around += weights[i * n + (i + 1) % n];
        for (const auto& [total, is_negative] : {std::pair{0.0, false}, std::pair{-1.0, true}}) {
            std::vector<float> changed = weights;
            changed[(n - 1) * n] += static_cast<float>(total - around);
            std::string damage;
            const std::vector<float> got = run(changed, n, damage);
            bool any = false;
            for (std::size_t i = 0; i < n; ++i)
                any = any || got[i * n + i] < 0;
            EXPECT_EQ(any, is_negative) << "n = " << n;
        }
    }
}

TEST_P(PathTest, RunsOnTheGivenStream) {
    const std::size_t n = 70;
    const std::vector<float> weights = make_graph(n, Graph::kSparse);
    std::vector<double> expected(weights.begin(), weights.end());
    day13::shortest_paths_on_cpu(expected, n);
    DeviceBuffer<float> distance{std::span<const float>(weights)};
    const course::CapturedWork work(
        [&](cudaStream_t stream) { GetParam()->launcher(distance.span(), n, stream); });
    CUDA_CHECK(cudaDeviceSynchronize());
    distance.copy_from(std::span<const float>(weights));
    work.run();
    EXPECT_EQ(distance.to_host(), std::vector<float>(expected.begin(), expected.end()));
}

TEST_P(PathTest, RefusesBadArguments) {
    DeviceBuffer<float> distance(10);
    const auto message = [&](std::size_t elements, std::size_t n) {
        return course::refusal(
            [&] { GetParam()->launcher(distance.span().subspan(0, elements), n, nullptr); });
    };
    EXPECT_EQ(message(10, 3), "shortest paths: distance has 10 elements; expected n * n, 9");
    EXPECT_EQ(message(10, 131073), "shortest paths: n is 131073; expected at most 2^17 vertices");
}

TEST(OnTheCpu, OneRowOfPathsIsThatOfAll) {
    const std::size_t n = 60;
    const std::vector<float> weights = make_graph(n, Graph::kSparse);
    std::vector<double> all(weights.begin(), weights.end());
    day13::shortest_paths_on_cpu(all, n);
    for (const std::size_t source : {0, 17, 59}) {
        const std::vector<double> row = day13::shortest_paths_from_on_cpu(weights, n, source);
        EXPECT_TRUE(
            std::equal(row.begin(), row.end(), all.begin() + static_cast<std::ptrdiff_t>(source * n)));
    }
}

TEST(OnTheCpu, KnownScores) {
    const auto symbols = [](const std::string& text) {
        return std::vector<Symbol>(text.begin(), text.end());
    };
    const auto score = [&](const std::string& a, const std::string& b) {
        return day13::local_score_on_cpu(symbols(a), symbols(b), {3, -3, -2});
    };
    EXPECT_EQ(score("TGTTACGG", "GGTTGACTA"), 13);  // GTT-AC and GTTGAC
    EXPECT_EQ(score("AAAA", "CCCC"), 0);
}

TEST(OnTheCpu, KnownResults) {
    const std::vector<Symbol> a = {1, 2, 3};
    EXPECT_EQ(day13::edit_distances_on_cpu(a, std::vector<Symbol>{2, 3, 3}), (std::vector{3, 2, 1, 2}));
    EXPECT_EQ(day13::edit_distances_on_cpu({}, a), (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(day13::edit_distances_on_cpu(a, {}), (std::vector{3}));
    std::vector<double> distance = {0, 5, 1, 9, 0, 9, 9, -3, 0};
    day13::shortest_paths_on_cpu(distance, 3);
    EXPECT_EQ(distance, (std::vector<double>{0, -2, 1, 9, 0, 9, 6, -3, 0}));
}

}  // namespace

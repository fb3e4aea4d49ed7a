// Alignments: the script is applied and its cost is added up, and compared with the plain loops.
#include "beyond/alignments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using day13::Alignment;
using day13::Step;
using day13::Symbol;

constexpr std::uint64_t kSeed = 1313;

struct Pair {
    std::vector<Symbol> a;
    std::vector<Symbol> b;
};

enum class Pattern { kRandom, kEdited, kEqual, kNothingInCommon, kIsland };
constexpr Pattern kPatterns[] = {Pattern::kRandom, Pattern::kEdited, Pattern::kEqual,
                                 Pattern::kNothingInCommon, Pattern::kIsland};
constexpr const char* kNames[] = {"random", "edited", "equal", "nothing in common", "island"};

// kEdited: b is a with symbols replaced, inserted and left out, and whole runs of them. kIsland: b
// is foreign to a but for a piece of it.
Pair make_pair(std::size_t m, std::size_t n, Pattern pattern, std::uint64_t seed = kSeed) {
    course::Random random(seed);
    Pair pair{std::vector<Symbol>(m), std::vector<Symbol>(n)};
    for (Symbol& symbol : pair.a)
        symbol = static_cast<Symbol>(random.below(4));
    std::size_t from = 0;
    for (std::size_t j = 0; j < n; ++j) {
        const auto other = static_cast<Symbol>(random.below(4));
        bool is_same = pattern == Pattern::kEqual;
        if (pattern == Pattern::kEdited) {
            is_same = random.below(8) > 0;
            if (random.below(30) == 0) from += random.below(9);
            if (random.below(30) == 0 && from > 0) --from;
        }
        if (pattern == Pattern::kIsland) is_same = j >= n / 3 && j < n / 2;
        pair.b[j] = is_same && from < m ? pair.a[from] : other;
        if (pattern == Pattern::kNothingInCommon || (pattern == Pattern::kIsland && !is_same))
            pair.b[j] = static_cast<Symbol>(other + 100);
        ++from;
    }
    return pair;
}

// Around lanes' rows, strips of 128 rows and windows of 128 steps.
constexpr std::pair<std::size_t, std::size_t> kShapes[] = {
    {0, 0},     {0, 1},     {1, 0},     {0, 70},  {70, 0},   {1, 1},     {1, 2},    {2, 1},   {3, 4},
    {5, 3},     {31, 32},   {64, 63},   {4, 200}, {1, 300},  {300, 1},   {96, 97},  {97, 96}, {127, 128},
    {128, 127}, {128, 128}, {129, 129}, {130, 3}, {257, 40}, {131, 260}, {260, 131}};

struct Traced {
    Alignment alignment;
    std::vector<Step> steps;
};

template <class Launch>
Traced trace(const Pair& pair, day13::TraceWorkspace& workspace, Launch launch) {
    const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
    const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
    GuardedBuffer<Step> script(pair.a.size() + pair.b.size(), 1);
    GuardedBuffer<Alignment> alignment(1);
    const std::vector<Step> before = script.to_host();
    launch(a.span(), b.span(), script.span(), alignment.span(), workspace);
    EXPECT_EQ(script.damage() + alignment.damage(), "");
    Traced traced{alignment.to_host()[0], {}};
    const std::vector<Step> after = script.to_host();
    const auto steps = static_cast<std::size_t>(traced.alignment.steps);
    if (steps > after.size()) {
        ADD_FAILURE() << "alignment has " << traced.alignment.steps << " steps; expected at most "
                      << after.size();
        return traced;
    }
    const auto first = after.end() - traced.alignment.steps;
    EXPECT_TRUE(std::equal(after.begin(), first, before.begin()))
        << "elements before the script were written";
    traced.steps.assign(first, after.end());
    return traced;
}

// Applies the script to its part of a, with the symbols of b that it inserts, and adds up what the
// steps cost. Returns what comes out: the part of b, if the script is right.
struct Applied {
    std::vector<Symbol> result;
    int cost = 0;
    int from_a = 0, from_b = 0;
};

Applied apply(const Pair& pair, const Traced& traced, int equal, int unequal, int gap) {
    Applied applied;
    auto i = static_cast<std::size_t>(traced.alignment.a_begin);
    auto j = static_cast<std::size_t>(traced.alignment.b_begin);
    for (const Step step : traced.steps) {
        const bool takes_a = step != Step::kOnlyB;
        const bool takes_b = step != Step::kOnlyA;
        if ((takes_a && i >= pair.a.size()) || (takes_b && j >= pair.b.size())) {
            ADD_FAILURE() << "the script takes more symbols than there are";
            return applied;
        }
        if (takes_b) {
            const bool is_kept = takes_a && pair.a[i] == pair.b[j];
            applied.result.push_back(is_kept ? pair.a[i] : pair.b[j]);
            applied.cost += !takes_a ? gap : is_kept ? equal : unequal;
        } else {
            applied.cost += gap;
        }
        i += takes_a ? 1 : 0;
        j += takes_b ? 1 : 0;
    }
    applied.from_a = static_cast<int>(i);
    applied.from_b = static_cast<int>(j);
    return applied;
}

void expect_same(const Traced& got, const day13::TracedOnCpu& expected) {
    EXPECT_EQ(got.alignment.score, expected.alignment.score);
    EXPECT_EQ(got.alignment.a_begin, expected.alignment.a_begin);
    EXPECT_EQ(got.alignment.a_end, expected.alignment.a_end);
    EXPECT_EQ(got.alignment.b_begin, expected.alignment.b_begin);
    EXPECT_EQ(got.alignment.b_end, expected.alignment.b_end);
    EXPECT_EQ(got.alignment.steps, expected.alignment.steps);
    EXPECT_TRUE(got.steps == expected.steps) << "another script than the reference's";
}

std::string describe(const Pair& pair, const std::string& what) {
    return "m = " + std::to_string(pair.a.size()) + ", n = " + std::to_string(pair.b.size()) + ", " + what;
}

// --- Traceback of the edit distance --------------------------------------------------------------

class TraceTest : public course::DeviceTestWithParam<const day13::TraceVersion*> {
  protected:
    static Traced run(const Pair& pair, day13::TraceWorkspace& workspace) {
        return trace(pair, workspace, [](auto a, auto b, auto script, auto alignment, auto& space) {
            GetParam()->launcher(a, b, script, alignment, space, nullptr);
        });
    }

    static void expect_right(const Pair& pair, const std::string& what) {
        SCOPED_TRACE(describe(pair, what));
        day13::TraceWorkspace workspace(pair.a.size(), pair.b.size());
        const Traced got = run(pair, workspace);
        const Applied applied = apply(pair, got, 0, 1, 1);
        EXPECT_TRUE(applied.result == pair.b) << "the script does not turn a into b";
        EXPECT_EQ(applied.from_a, static_cast<int>(pair.a.size()));
        EXPECT_EQ(applied.cost, day13::edit_distances_on_cpu(pair.a, pair.b).back());
        expect_same(got, day13::trace_on_cpu(pair.a, pair.b));
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirteen, TraceTest, course::each_of(day13::trace_versions()),
                         course::VersionName());

TEST_P(TraceTest, TheScriptTurnsAIntoBAtTheLeastCost) {
    for (const auto& [m, n] : kShapes)
        for (const Pattern pattern : kPatterns)
            expect_right(make_pair(m, n, pattern), kNames[static_cast<std::size_t>(pattern)]);
}

TEST_P(TraceTest, RandomShapes) {
    course::Random random(20261201);
    SCOPED_TRACE("course::Random seed 20261201");
    for (int round = 0; round < 10; ++round) {
        const std::size_t m = random.below(500);
        const std::size_t n = random.below(500);
        const Pattern pattern = kPatterns[random.below(std::size(kPatterns))];
        expect_right(make_pair(m, n, pattern, random.next()), kNames[static_cast<std::size_t>(pattern)]);
    }
}

TEST_P(TraceTest, AKnownScript) {
    const std::string a = "kitten";
    const std::string b = "sitting";
    const Pair pair{{a.begin(), a.end()}, {b.begin(), b.end()}};
    day13::TraceWorkspace workspace(300, 200);  // for longer sequences
    const Traced got = run(pair, workspace);
    EXPECT_EQ(got.alignment.score, 3);
    std::vector<Step> expected(6, Step::kPair);
    expected.push_back(Step::kOnlyB);
    EXPECT_TRUE(got.steps == expected);
}

TEST_P(TraceTest, AWorkspaceCanBeUsedAgain) {
    day13::TraceWorkspace workspace(300, 200);
    for (const auto& [m, n] : {std::pair{300, 200}, std::pair{150, 190}, std::pair{7, 100}}) {
        const Pair pair = make_pair(m, n, Pattern::kEdited);
        expect_same(run(pair, workspace), day13::trace_on_cpu(pair.a, pair.b));
    }
}

TEST_P(TraceTest, RunsOnTheGivenStream) {
    const Pair pair = make_pair(140, 150, Pattern::kEdited);
    const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
    const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
    GuardedBuffer<Step> script(290);
    GuardedBuffer<Alignment> alignment(1);
    day13::TraceWorkspace workspace(140, 150);
    const course::CapturedWork work([&](cudaStream_t stream) {
        GetParam()->launcher(a.span(), b.span(), script.span(), alignment.span(), workspace, stream);
    });
    CUDA_CHECK(cudaDeviceSynchronize());
    script.spoil();
    alignment.spoil();
    work.run();
    const Alignment got = alignment.to_host()[0];
    const day13::TracedOnCpu expected = day13::trace_on_cpu(pair.a, pair.b);
    ASSERT_EQ(got.steps, expected.alignment.steps);
    const std::vector<Step> steps = script.to_host();
    EXPECT_TRUE(std::equal(expected.steps.begin(), expected.steps.end(), steps.end() - got.steps));
}

TEST_P(TraceTest, RefusesBadArguments) {
    DeviceBuffer<Symbol> symbols = course::zeros<Symbol>(64);
    DeviceBuffer<Step> script(16);
    DeviceBuffer<Alignment> alignment(2);
    day13::TraceWorkspace workspace(8, 8);
    const auto message = [&](std::size_t m, std::size_t n, course::DeviceSpan<Step> steps,
                             std::size_t alignments) {
        return course::refusal([&] {
            GetParam()->launcher(symbols.span().subspan(0, m), symbols.span().subspan(20, n), steps,
                                 alignment.span().subspan(0, alignments), workspace, nullptr);
        });
    };
    EXPECT_EQ(message(8, 8, script.span(), 1), "");
    EXPECT_EQ(message(8, 8, script.span(), 2), "traceback: alignment has 2 elements; expected 1");
    EXPECT_EQ(message(8, 7, script.span(), 1),
              "traceback: script has 16 elements; expected as many as a and b have symbols, 15");
    EXPECT_EQ(
        message(9, 7, script.span(), 1),
        "traceback: workspace is for 8 and 8 symbols; expected at least as many as a and b have, 9 and 7");
    const auto inside = course::DeviceSpan<Step>::from_device_pointer(
        reinterpret_cast<Step*>(symbols.span().subspan(4, 16).data()), 16);
    EXPECT_EQ(message(8, 8, inside, 1), "traceback: script overlaps a or b; expected no element in common");
}

// --- Traceback of local alignments ---------------------------------------------------------------

class LocalTraceTest : public course::DeviceTestWithParam<const day13::LocalTraceVersion*> {
  protected:
    static void expect_right(const Pair& pair, const day13::Scoring& scoring, const std::string& what) {
        SCOPED_TRACE(describe(pair, what));
        day13::TraceWorkspace workspace(pair.a.size(), pair.b.size());
        const Traced got =
            trace(pair, workspace, [&](auto a, auto b, auto script, auto alignment, auto& space) {
                GetParam()->launcher(a, b, scoring, script, alignment, space, nullptr);
            });
        const Applied applied = apply(pair, got, scoring.match, scoring.mismatch, scoring.gap);
        EXPECT_EQ(applied.cost, day13::local_score_on_cpu(pair.a, pair.b, scoring));
        EXPECT_EQ(applied.from_a, got.alignment.a_end);
        EXPECT_EQ(applied.from_b, got.alignment.b_end);
        expect_same(got, day13::local_trace_on_cpu(pair.a, pair.b, scoring));
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirteen, LocalTraceTest, course::each_of(day13::local_trace_versions()),
                         course::VersionName());

TEST_P(LocalTraceTest, TheScriptHasTheBestScore) {
    for (const auto& [m, n] : kShapes)
        for (const Pattern pattern : kPatterns)
            for (const day13::Scoring& scoring :
                 {day13::Scoring{}, day13::Scoring{5, -4, -1}, day13::Scoring{1, 0, 0}})
                expect_right(make_pair(m, n, pattern), scoring, kNames[static_cast<std::size_t>(pattern)]);
}

TEST_P(LocalTraceTest, ManyStrips) {
    expect_right(make_pair(1700, 130, Pattern::kEdited), {}, "edited");
}

TEST_P(LocalTraceTest, RefusesABadScoring) {
    DeviceBuffer<Symbol> symbols = course::zeros<Symbol>(16);
    DeviceBuffer<Step> script(16);
    DeviceBuffer<Alignment> alignment(1);
    day13::TraceWorkspace workspace(8, 8);
    EXPECT_EQ(
        course::refusal([&] {
            GetParam()->launcher(symbols.span().subspan(0, 8), symbols.span().subspan(8, 8), {2, 1, -1},
                                 script.span(), alignment.span(), workspace, nullptr);
        }),
        "local alignment: match, mismatch and gap are 2, 1 and -1; expected match > 0, the others <= 0");
}

TEST(TraceWorkspace, RefusesMoreThan2To30Symbols) {
    EXPECT_EQ(course::refusal([] { day13::TraceWorkspace workspace(1, (std::size_t{1} << 30) + 1); }),
              "traceback: b has 1073741825 symbols; expected at most 2^30");
}

}  // namespace

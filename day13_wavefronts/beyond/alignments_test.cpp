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
    for (void* const place : {static_cast<void*>(symbols.data()), static_cast<void*>(symbols.data() + 24),
                              static_cast<void*>(script.data())}) {
        const auto overlapping =
            course::DeviceSpan<Alignment>::from_device_pointer(static_cast<Alignment*>(place), 1);
        EXPECT_EQ(course::refusal([&] {
                      GetParam()->launcher(symbols.span().subspan(0, 8), symbols.span().subspan(20, 8),
                                           script.span(), overlapping, workspace, nullptr);
                  }),
                  "traceback: alignment overlaps a, b or script; expected no element in common");
    }
}

// The directions have more than 2^31 bytes: an index of 32 bits would wrap. The script is the best
// if it turns a into b and costs the distance that a kernel without directions finds.
TEST_P(TraceTest, MoreDirectionsThan31BitsCount) {
    if (course::is_cpu_stand_in()) GTEST_SKIP() << "needs a GPU: 2^33 cells take CPU threads too long";
    constexpr std::size_t kN = 93000;
    const Pair pair = make_pair(kN, kN, Pattern::kEdited);
    day13::TraceWorkspace workspace(kN, kN);
    const Traced got = run(pair, workspace);
    const Applied applied = apply(pair, got, 0, 1, 1);
    EXPECT_TRUE(applied.result == pair.b) << "the script does not turn a into b";
    EXPECT_EQ(applied.from_a, static_cast<int>(kN));

    const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
    const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
    DeviceBuffer<int> distances(kN + 1);
    day13::Workspace of_distances(kN, kN);
    course::find_version(day13::edit_versions(), "strips")
        .launcher(a.span(), b.span(), distances.span(), of_distances, nullptr);
    const int distance = distances.to_host().back();
    EXPECT_EQ(applied.cost, distance);
    EXPECT_EQ(got.alignment.score, distance);
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
    const day13::Scoring scorings[] = {{}, {5, -4, -1}, {1, 0, 0}};
    std::size_t round = 0;
    for (const auto& [m, n] : kShapes)
        for (const Pattern pattern : kPatterns)
            expect_right(make_pair(m, n, pattern), scorings[round++ % std::size(scorings)],
                         kNames[static_cast<std::size_t>(pattern)]);
}

TEST_P(LocalTraceTest, ManyStrips) {
    expect_right(make_pair(1700, 130, Pattern::kEdited), {}, "edited");
    // The best end is in the last of 34 strips, of which a lane of walk_windows reads two.
    Pair pair = make_pair(4300, 5, Pattern::kNothingInCommon);
    std::copy(pair.b.begin(), pair.b.end(), pair.a.end() - 5);
    expect_right(pair, {}, "a common piece in the last strip");
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

// --- Affine gaps ---------------------------------------------------------------------------------

class AffineTest : public course::DeviceTestWithParam<const day13::AffineVersion*> {
  protected:
    static int score(const Pair& pair, const day13::AffineScoring& scoring) {
        const DeviceBuffer<Symbol> a{std::span<const Symbol>(pair.a)};
        const DeviceBuffer<Symbol> b{std::span<const Symbol>(pair.b)};
        GuardedBuffer<int> result(1);
        day13::AffineWorkspace workspace(pair.a.size(), pair.b.size());
        GetParam()->launcher(a.span(), b.span(), scoring, result.span(), workspace, nullptr);
        EXPECT_EQ(result.damage(), "");
        return result.to_host()[0];
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirteen, AffineTest, course::each_of(day13::affine_versions()),
                         course::VersionName());

TEST_P(AffineTest, AllShapesAndPatterns) {
    const day13::AffineScoring scorings[] = {{}, {5, -4, -10, -1}, {3, -2, 0, -2}, {4, -9, -1, 0}};
    std::size_t round = 0;
    for (const auto& [m, n] : kShapes) {
        for (const Pattern pattern : kPatterns) {
            const Pair pair = make_pair(m, n, pattern);
            const day13::AffineScoring& scoring = scorings[round++ % std::size(scorings)];
            EXPECT_EQ(score(pair, scoring), day13::affine_score_on_cpu(pair.a, pair.b, scoring))
                << describe(pair, kNames[static_cast<std::size_t>(pattern)]) << ", open " << scoring.open;
        }
    }
}

TEST_P(AffineTest, ManyStrips) {
    const Pair pair = make_pair(1300, 130, Pattern::kEdited);
    EXPECT_EQ(score(pair, {}), day13::affine_score_on_cpu(pair.a, pair.b, {}));
}

// A gap of 500 symbols, over a whole strip of 256 rows, between two pieces of 60 equal pairs: worth
// it if it costs less than one of the pieces.
TEST_P(AffineTest, LongGaps) {
    Pair pair;
    for (int i = 0; i < 120; ++i)
        pair.b.push_back(static_cast<Symbol>(i));
    pair.a = pair.b;
    pair.a.insert(pair.a.begin() + 60, 500, Symbol{200});
    const Pair turned{pair.b, pair.a};
    for (const Pair& of : {pair, turned}) {
        EXPECT_EQ(score(of, {2, -1, -7, 0}), 233);    // 120 pairs and the gap
        EXPECT_EQ(score(of, {2, -9, -119, 0}), 121);  // just worth it
        EXPECT_EQ(score(of, {2, -9, -121, 0}), 120);  // not any more
        EXPECT_EQ(score(of, {200, -99, -7, -1}), 23493);
    }
}

// b lacks symbols of a, at the end of a strip of 128 or 256 rows. Such a gap is opened once, and is
// no extension of another.
TEST_P(AffineTest, GapsAcrossTheEndOfAStrip) {
    for (const std::size_t end : {128, 256})
        for (const std::size_t missing : {end - 1, end})
            for (const std::size_t length : {1, 3}) {
                Pair pair = make_pair(end + 40, 1, Pattern::kRandom);
                pair.b = pair.a;
                const auto at = pair.b.begin() + static_cast<std::ptrdiff_t>(missing);
                pair.b.erase(at, at + static_cast<std::ptrdiff_t>(length));
                const day13::AffineScoring scoring{5, -4, -11, -2};
                EXPECT_EQ(score(pair, scoring), day13::affine_score_on_cpu(pair.a, pair.b, scoring))
                    << length << " symbols of a from " << missing << " on";
            }
}

// Without `open` it is the other local alignment.
TEST_P(AffineTest, WithoutOpeningItIsTheLinearGap) {
    const Pair pair = make_pair(260, 131, Pattern::kEdited);
    EXPECT_EQ(score(pair, {5, -4, 0, -3}), day13::local_score_on_cpu(pair.a, pair.b, {5, -4, -3}));
}

TEST_P(AffineTest, RefusesBadArguments) {
    DeviceBuffer<Symbol> symbols = course::zeros<Symbol>(64);
    DeviceBuffer<int> result(2);
    day13::AffineWorkspace workspace(8, 8);
    const auto message = [&](const day13::AffineScoring& scoring, std::size_t m, std::size_t scores) {
        return course::refusal([&] {
            GetParam()->launcher(symbols.span().subspan(0, m), symbols.span().subspan(20, 8), scoring,
                                 result.span().subspan(0, scores), workspace, nullptr);
        });
    };
    EXPECT_EQ(message({}, 8, 1), "");
    EXPECT_EQ(message({}, 8, 2), "affine alignment: score has 2 elements; expected 1");
    EXPECT_EQ(
        message({}, 9, 1),
        "affine alignment: workspace is for 8 and 8 symbols; expected at least as many as a and b have, "
        "9 and 8");
    EXPECT_EQ(
        message({2, -1, 1, -1}, 8, 1),
        "affine alignment: match, mismatch, open and extend are 2, -1, 1 and -1; expected match > 0, the "
        "others <= 0");
    EXPECT_EQ(
        message({2, -1, -(1 << 30), -1}, 8, 1),
        "affine alignment: match, mismatch, open and extend are 2, -1, -1073741824 and -1; expected scores "
        "of up to 2^30 for 8 pairs, and open + extend of at least -2^30");
}

// --- One query, many sequences -------------------------------------------------------------------

struct Sequences {
    std::vector<Symbol> symbols;
    std::vector<std::int64_t> begins{0};

    void add(std::span<const Symbol> sequence) {
        symbols.insert(symbols.end(), sequence.begin(), sequence.end());
        begins.push_back(static_cast<std::int64_t>(symbols.size()));
    }
};

// Sequences with the given lengths: every other one shares a piece with the query.
Sequences make_sequences(std::span<const Symbol> query, std::span<const std::size_t> lengths,
                         std::uint64_t seed = kSeed) {
    Sequences all;
    course::Random random(seed);
    for (std::size_t k = 0; k < lengths.size(); ++k) {
        std::vector<Symbol> sequence(lengths[k]);
        const std::size_t from = query.empty() ? 0 : random.below(static_cast<std::uint32_t>(query.size()));
        for (std::size_t j = 0; j < lengths[k]; ++j) {
            sequence[j] = static_cast<Symbol>(random.below(4));
            if (k % 2 == 0 && from + j < query.size() && random.below(9) > 0) sequence[j] = query[from + j];
        }
        all.add(sequence);
    }
    return all;
}

class SearchTest : public course::DeviceTestWithParam<const day13::SearchVersion*> {
  protected:
    static void expect_right(std::span<const Symbol> query, const Sequences& all,
                             const day13::Scoring& scoring = {}) {
        day13::Database database(all.symbols, all.begins);
        const DeviceBuffer<Symbol> on_device(query);
        GuardedBuffer<int> scores(database.count());
        GetParam()->launcher(on_device.span(), database, scoring, scores.span(), nullptr);
        EXPECT_EQ(scores.to_host(), day13::search_on_cpu(query, all.symbols, all.begins, scoring))
            << "query of " << query.size() << " symbols, " << database.count() << " sequences";
        EXPECT_EQ(scores.damage(), "");
    }
};

INSTANTIATE_TEST_SUITE_P(DayThirteen, SearchTest, course::each_of(day13::search_versions()),
                         course::VersionName());

TEST_P(SearchTest, AllLengthsOfQueriesAndSequences) {
    const std::size_t lengths[] = {0, 1, 7, 8, 9, 31, 32, 33, 100, 0, 130, 64, 5, 257, 3};
    const day13::Scoring scorings[] = {{}, {5, -4, -1}, {1, 0, 0}};
    std::size_t round = 0;
    for (const std::size_t m : {0, 1, 3, 15, 16, 17, 127, 128, 129, 300}) {
        const std::vector<Symbol> query = make_pair(m, 0, Pattern::kRandom).a;
        expect_right(query, make_sequences(query, lengths), scorings[round++ % std::size(scorings)]);
    }
}

// Groups of a warp that get no sequence, and no sequence at all.
TEST_P(SearchTest, AllCountsOfSequences) {
    const std::vector<Symbol> query = make_pair(40, 0, Pattern::kRandom).a;
    for (const std::size_t count : {0, 1, 2, 3, 4, 5, 8, 9, 33})
        expect_right(query, make_sequences(query, std::vector<std::size_t>(count, 20)));
}

// Symbols of all 8 bits: after its end, a sequence has no symbol that equals one of the query.
TEST_P(SearchTest, TheLargestSymbols) {
    constexpr Symbol kSymbols[] = {0, 127, 128, 255};
    std::vector<Symbol> query = make_pair(150, 0, Pattern::kRandom).a;
    Sequences all = make_sequences(query, std::vector<std::size_t>{90, 50, 17, 33, 8, 140});
    for (std::vector<Symbol>* const symbols : {&query, &all.symbols})
        for (Symbol& symbol : *symbols)
            symbol = kSymbols[symbol];
    expect_right(query, all);

    Sequences shorter;
    for (const Symbol symbol : {0, 128, 255}) {
        shorter.add(std::vector<Symbol>(60, symbol));
        shorter.add(std::vector<Symbol>(20, symbol));
    }
    for (const Symbol symbol : {0, 128, 255})
        expect_right(std::vector<Symbol>(40, symbol), shorter);
}

TEST_P(SearchTest, ManySequences) {
    course::Random random(20261202);
    SCOPED_TRACE("course::Random seed 20261202");
    std::vector<std::size_t> lengths(400);
    for (std::size_t& length : lengths)
        length = random.below(60);
    const std::vector<Symbol> query = make_pair(140, 0, Pattern::kRandom).a;
    expect_right(query, make_sequences(query, lengths, random.next()));
}

TEST_P(SearchTest, ADatabaseCanBeUsedAgain) {
    const std::vector<Symbol> query = make_pair(200, 0, Pattern::kRandom).a;
    const Sequences all = make_sequences(query, std::vector<std::size_t>{50, 90, 10});
    day13::Database database(all.symbols, all.begins);
    for (const std::size_t m : {200, 10, 150}) {
        const auto part = std::span<const Symbol>(query).subspan(0, m);
        const DeviceBuffer<Symbol> on_device(part);
        GuardedBuffer<int> scores(3);
        GetParam()->launcher(on_device.span(), database, {}, scores.span(), nullptr);
        EXPECT_EQ(scores.to_host(), day13::search_on_cpu(part, all.symbols, all.begins, {}));
    }
}

TEST_P(SearchTest, RefusesBadArguments) {
    const Sequences all = make_sequences({}, std::vector<std::size_t>{5, 9});
    day13::Database database(all.symbols, all.begins);
    DeviceBuffer<Symbol> query = course::zeros<Symbol>(16);
    DeviceBuffer<int> scores(3);
    const auto message = [&](const day13::Scoring& scoring, course::DeviceSpan<int> out) {
        return course::refusal([&] { GetParam()->launcher(query.span(), database, scoring, out, nullptr); });
    };
    EXPECT_EQ(message({}, scores.span().subspan(0, 2)), "");
    EXPECT_EQ(message({}, scores.span()),
              "search: scores has 3 elements; expected one for each sequence of the database, 2");
    EXPECT_EQ(message({}, course::DeviceSpan<int>::from_device_pointer(
                              reinterpret_cast<int*>(query.span().subspan(4, 8).data()), 2)),
              "search: scores overlaps query; expected no element in common");
    EXPECT_EQ(
        message({2, 1, -1}, scores.span().subspan(0, 2)),
        "local alignment: match, mismatch and gap are 2, 1 and -1; expected match > 0, the others <= 0");
}

// Scores of up to 2^15 - 1, and penalties down to -2^15.
TEST_P(SearchTest, TheLargestScoresOf16Bits) {
    const std::vector<Symbol> query = make_pair(31, 0, Pattern::kRandom).a;
    Sequences all;
    all.add(query);
    all.add(std::span(query).subspan(5, 9));
    all.add(query);
    expect_right(query, all, {1057, -32768, -32768});  // 31 * 1057 = 32,767
    expect_right(query, all, {1057, 0, -32768});
}

TEST(SearchOfHalves, RefusesScoresBeyond16Bits) {
    const Sequences all = make_sequences({}, std::vector<std::size_t>{30, 32});
    day13::Database database(all.symbols, all.begins);
    DeviceBuffer<Symbol> query = course::zeros<Symbol>(40);
    DeviceBuffer<int> scores(2);
    const day13::SearchVersion& version = course::find_version(day13::search_versions(), "pair_halves");
    EXPECT_EQ(course::refusal([&] {
                  version.launcher(query.span(), database, {1024, 0, 0}, scores.span(), {});
              }),
              "search: match, mismatch and gap are 1024, 0 and 0, with up to 32 pairs; expected scores and "
              "penalties that 16 bits hold");
    EXPECT_EQ(version.cannot_run({.most = 32768}), "scores may exceed 16 bits");
    EXPECT_EQ(version.cannot_run({.most = 32767}), "");
}

TEST(Database, RefusesBadBegins) {
    const std::vector<Symbol> symbols(5);
    const auto message = [&](const std::vector<std::int64_t>& begins) {
        return course::refusal([&] { day13::Database database(symbols, begins); });
    };
    EXPECT_EQ(message({0, 2, 5}), "");
    EXPECT_EQ(message({}), "database: begins starts with nothing; expected 0");
    EXPECT_EQ(message({1, 5}), "database: begins starts with 1; expected 0");
    EXPECT_EQ(message({0, 4, 3, 5}), "database: begins[2] is 3; expected at least the element before it, 4");
    EXPECT_EQ(message({0, 4}), "database: begins ends with 4; expected the number of symbols, 5");
}

TEST(OnTheCpu, KnownAffineScores) {
    const auto score = [](const std::string& a, const std::string& b) {
        return day13::affine_score_on_cpu(std::vector<Symbol>(a.begin(), a.end()),
                                          std::vector<Symbol>(b.begin(), b.end()), {2, -3, -3, -1});
    };
    EXPECT_EQ(score("AAAACCCC", "AAAAGGCCCC"), 11);  // 8 pairs, one gap of 2
    EXPECT_EQ(score("AAAACCCC", "AAAAGCCGCC"), 9);   // AAAACCC and AAAAGCC: no gap
    EXPECT_EQ(score("AAAACCCC", "GGGG"), 0);
}

TEST(TraceWorkspace, RefusesMoreThan2To30Symbols) {
    EXPECT_EQ(course::refusal([] { day13::TraceWorkspace workspace(1, (std::size_t{1} << 30) + 1); }),
              "alignment: b has 1073741825 symbols; expected at most 2^30");
}

}  // namespace

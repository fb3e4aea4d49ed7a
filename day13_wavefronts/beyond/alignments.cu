// Host code of day 13's alignments: argument checks and the lists of versions.
#include <algorithm>
#include <array>
#include <numeric>

#include "affine.cuh"
#include "alignments.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "database.cuh"
#include "traceback.cuh"

namespace day13 {
namespace {

using course::DeviceSpan;
using course::require;

std::size_t checked_length(const char* what, std::size_t length) {
    require(length <= kMostSymbols, "alignment: ", what, " has ", length, " symbols; expected at most 2^30");
    return length;
}

void check_trace(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<Step> script,
                 DeviceSpan<Alignment> alignment, const TraceWorkspace& workspace) {
    require(alignment.size() == 1, "traceback: alignment has ", alignment.size(), " elements; expected 1");
    require(script.size() == a.size() + b.size(), "traceback: script has ", script.size(),
            " elements; expected as many as a and b have symbols, ", a.size() + b.size());
    require(!overlap(a, script) && !overlap(b, script),
            "traceback: script overlaps a or b; expected no element in common");
    require(!overlap(a, alignment) && !overlap(b, alignment) && !overlap(script, alignment),
            "traceback: alignment overlaps a, b or script; expected no element in common");
    require(workspace.m() >= a.size() && workspace.n() >= b.size(), "traceback: workspace is for ",
            workspace.m(), " and ", workspace.n(), " symbols; expected at least as many as a and b have, ",
            a.size(), " and ", b.size());
}

template <bool kHasWindows, class Rule>
void enqueue(const Rule& rule, DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b,
             DeviceSpan<Step> script, DeviceSpan<Alignment> alignment, TraceWorkspace& workspace,
             cudaStream_t stream) {
    check_trace(a, b, script, alignment, workspace);
    const auto m = static_cast<int>(a.size());
    const auto n = static_cast<int>(b.size());
    if (m == 0 || n == 0) {
        launch_trace_borders(Rule::kIsLocal, m, n, script.data(), alignment.data(), stream);
    } else {
        launch_trace<kHasWindows>(rule, a.data(), m, b.data(), n, script.data(), alignment.data(), workspace,
                                  stream);
    }
    CUDA_CHECK_LAUNCH();
}

template <bool kHasWindows>
void enqueue_trace(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, DeviceSpan<Step> script,
                   DeviceSpan<Alignment> alignment, TraceWorkspace& workspace, cudaStream_t stream) {
    enqueue<kHasWindows>(EditTraceRule{}, a, b, script, alignment, workspace, stream);
}

template <bool kHasWindows>
void enqueue_local_trace(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, const Scoring& scoring,
                         DeviceSpan<Step> script, DeviceSpan<Alignment> alignment, TraceWorkspace& workspace,
                         cudaStream_t stream) {
    check_scoring(scoring, std::min(a.size(), b.size()));
    enqueue<kHasWindows>(LocalTraceRule{{scoring.match, scoring.mismatch, scoring.gap}}, a, b, script,
                         alignment, workspace, stream);
}

// The sequences are read, and the alignment is written: at least the longer one's steps.
course::Work trace_work(const Sequences& size) {
    const auto written = static_cast<double>(std::max(size.m, size.n) + sizeof(Alignment));
    return {.bytes = static_cast<double>(size.m + size.n) + written,
            .written = written,
            .arithmetic = course::Arithmetic::kOther};
}

// A local alignment may be empty.
course::Work local_trace_work(const Sequences& size) {
    return {.bytes = static_cast<double>(size.m + size.n + sizeof(Alignment)),
            .written = sizeof(Alignment),
            .arithmetic = course::Arithmetic::kOther};
}

std::size_t strips_for(std::size_t m) {
    return course::ceil_div(std::max<std::size_t>(m, 1), std::size_t{kTraceStrip});
}

void check_affine_scoring(const AffineScoring& scoring, std::size_t pairs) {
    constexpr std::int64_t kMostScore = std::int64_t{1} << 30;
    const auto shorter = static_cast<std::int64_t>(std::max<std::size_t>(pairs, 1));
    require(scoring.match > 0 && scoring.mismatch <= 0 && scoring.open <= 0 && scoring.extend <= 0,
            "affine alignment: match, mismatch, open and extend are ", scoring.match, ", ", scoring.mismatch,
            ", ", scoring.open, " and ", scoring.extend, "; expected match > 0, the others <= 0");
    require(scoring.match <= kMostScore / shorter && scoring.mismatch >= -kMostScore &&
                std::int64_t{scoring.open} + scoring.extend >= -kMostScore,
            "affine alignment: match, mismatch, open and extend are ", scoring.match, ", ", scoring.mismatch,
            ", ", scoring.open, " and ", scoring.extend, "; expected scores of up to 2^30 for ", shorter,
            " pairs, and open + extend of at least -2^30");
}

template <int kEach>
void enqueue_affine(DeviceSpan<const Symbol> a, DeviceSpan<const Symbol> b, const AffineScoring& scoring,
                    DeviceSpan<int> score, AffineWorkspace& workspace, cudaStream_t stream) {
    require(score.size() == 1, "affine alignment: score has ", score.size(), " elements; expected 1");
    require(!overlap(a, score) && !overlap(b, score),
            "affine alignment: score overlaps a or b; expected no element in common");
    require(workspace.m() >= a.size() && workspace.n() >= b.size(), "affine alignment: workspace is for ",
            workspace.m(), " and ", workspace.n(), " symbols; expected at least as many as a and b have, ",
            a.size(), " and ", b.size());
    check_affine_scoring(scoring, std::min(a.size(), b.size()));
    CUDA_CHECK(cudaMemsetAsync(score.data(), 0, sizeof(int), stream));
    if (a.empty() || b.empty()) return;
    const AffineRule rule{scoring.match, scoring.mismatch, scoring.open + scoring.extend, scoring.extend};
    static_assert(sizeof(AffineRow) == 2 * sizeof(int));
    launch_sweep_strips<kEach>(rule, a.data(), static_cast<int>(a.size()), b.data(),
                               static_cast<int>(b.size()), reinterpret_cast<AffineRow*>(workspace.row()),
                               workspace.board(), score.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void check_search(DeviceSpan<const Symbol> query, const Database& database, const Scoring& scoring,
                  DeviceSpan<int> scores) {
    checked_length("query", query.size());
    require(scores.size() == database.count(), "search: scores has ", scores.size(),
            " elements; expected one for each sequence of the database, ", database.count());
    require(!overlap(query, scores), "search: scores overlaps query; expected no element in common");
    check_scoring(scoring, std::min(query.size(), database.longest()));
}

template <auto kLaunch>
void enqueue_search(DeviceSpan<const Symbol> query, Database& database, const Scoring& scoring,
                    DeviceSpan<int> scores, cudaStream_t stream) {
    check_search(query, database, scoring, scores);
    if (scores.empty()) return;
    if (query.empty()) {
        CUDA_CHECK(cudaMemsetAsync(scores.data(), 0, scores.size() * sizeof(int), stream));
        return;
    }
    const LocalRule rule{scoring.match, scoring.mismatch, scoring.gap};
    kLaunch(rule, query.data(), static_cast<int>(query.size()), database.view(), scores.data(), stream);
    CUDA_CHECK_LAUNCH();
}

std::string constraint_of_halves(const Search& size) {
    return size.most < 1 << 15 ? "" : "scores may exceed 16 bits";
}

void enqueue_halves(DeviceSpan<const Symbol> query, Database& database, const Scoring& scoring,
                    DeviceSpan<int> scores, cudaStream_t stream) {
    check_search(query, database, scoring, scores);
    const std::size_t pairs = std::min(query.size(), database.longest());
    const std::int64_t most = scoring.match * static_cast<std::int64_t>(pairs);
    constexpr int kLeast = -(1 << 15);
    require(most < 1 << 15 && scoring.mismatch >= kLeast && scoring.gap >= kLeast,
            "search: match, mismatch and gap are ", scoring.match, ", ", scoring.mismatch, " and ",
            scoring.gap, ", with up to ", pairs, " pairs; expected scores and penalties that 16 bits hold");
    enqueue_search<launch_search_halves<8, 16>>(query, database, scoring, scores, stream);
}

// The sequences are read, and a score is written for each of the database's.
course::Work search_work(const Search& size) {
    const auto written = static_cast<double>(size.sequences * sizeof(int));
    return {.bytes = static_cast<double>(size.query) + size.symbols + written,
            .written = written,
            .arithmetic = course::Arithmetic::kOther};
}

std::size_t longest_of(std::span<const Symbol> symbols, std::span<const std::int64_t> begins) {
    require(!begins.empty() && begins.front() == 0, "database: begins starts with ",
            begins.empty() ? std::string("nothing") : std::to_string(begins.front()), "; expected 0");
    require(begins.size() - 1 <= kMostSymbols, "database: there are ", begins.size() - 1,
            " sequences; expected at most 2^30");
    std::int64_t longest = 0;
    for (std::size_t k = 0; k + 1 < begins.size(); ++k) {
        require(begins[k] <= begins[k + 1], "database: begins[", k + 1, "] is ", begins[k + 1],
                "; expected at least the element before it, ", begins[k]);
        longest = std::max(longest, begins[k + 1] - begins[k]);
    }
    require(begins.back() == static_cast<std::int64_t>(symbols.size()), "database: begins ends with ",
            begins.back(), "; expected the number of symbols, ", symbols.size());
    require(longest <= std::int64_t{kMostSymbols}, "database: a sequence has ", longest,
            " symbols; expected at most 2^30");
    return static_cast<std::size_t>(longest);
}

std::vector<int> longest_first(std::span<const std::int64_t> begins) {
    std::vector<int> order(begins.size() - 1);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
        const auto length = [&](int k) {
            return begins[static_cast<std::size_t>(k) + 1] - begins[static_cast<std::size_t>(k)];
        };
        return length(x) > length(y);
    });
    return order;
}

}  // namespace

Database::Database(std::span<const Symbol> symbols, std::span<const std::int64_t> begins)
    : longest_(longest_of(symbols, begins)),
      symbols_(symbols),
      begins_(begins),
      order_(std::span<const int>(longest_first(begins))),
      row_(symbols.size()),
      ticket_(1) {}

DatabaseView Database::view() {
    return {symbols_.data(),           begins_.data(), order_.data(),
            static_cast<int>(count()), row_.data(),    ticket_.data()};
}

std::span<const SearchVersion> search_versions() {
    static const std::array<SearchVersion, 3> list = {{
        {"pair_warps", "a warp for each sequence, 4 rows per lane", enqueue_search<launch_search<32, 4>>,
         search_work},
        {"pair_groups", "8 lanes for each sequence, 16 rows per lane", enqueue_search<launch_search<8, 16>>,
         search_work},
        {"pair_halves", "two sequences in the halves of each register", enqueue_halves, search_work,
         constraint_of_halves},
    }};
    return list;
}

AffineWorkspace::AffineWorkspace(std::size_t m, std::size_t n)
    : m_(checked_length("a", m)), n_(checked_length("b", n)), row_(2 * (n + 1)), board_(strips_for(m) + 1) {}

std::span<const AffineVersion> affine_versions() {
    static const std::array<AffineVersion, 2> list = {{
        {"affine_strips", "three scores a cell, a warp for 128 rows", enqueue_affine<4>, local_trace_work},
        {"affine_strips_256", "a warp for 256 rows", enqueue_affine<8>, local_trace_work},
    }};
    return list;
}

TraceWorkspace::TraceWorkspace(std::size_t m, std::size_t n)
    : m_(checked_length("a", m)),
      n_(checked_length("b", n)),
      directions_(strips_for(m) * (n + kWarpSize - 1) * kWarpSize),
      row_(n + 1),
      board_(strips_for(m) + 1),
      ends_(strips_for(m)) {}

std::span<const TraceVersion> trace_versions() {
    static const std::array<TraceVersion, 2> list = {{
        {"trace_thread", "two bits for each cell, a thread walks back", enqueue_trace<false>, trace_work},
        {"trace_windows", "a warp loads windows, one lane walks", enqueue_trace<true>, trace_work},
    }};
    return list;
}

std::span<const LocalTraceVersion> local_trace_versions() {
    static const std::array<LocalTraceVersion, 2> list = {{
        {"local_trace_thread", "two bits for each cell, a thread walks back", enqueue_local_trace<false>,
         local_trace_work},
        {"local_trace_windows", "a warp loads windows, one lane walks", enqueue_local_trace<true>,
         local_trace_work},
    }};
    return list;
}

}  // namespace day13

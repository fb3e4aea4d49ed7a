#include <algorithm>
#include <limits>

#include "alignments.hpp"

namespace day13 {
namespace {

// The table, (m + 1) x (n + 1) cells, row-major, and the walk from cell (i, j) back along the cells
// that have led to it. `gap` is added for a symbol alone. A local alignment begins after a cell
// that is 0.
struct Table {
    Table(std::size_t m, std::size_t n) : columns(n + 1), cells((m + 1) * (n + 1)) {}
    int& at(std::size_t i, std::size_t j) { return cells[i * columns + j]; }
    std::size_t columns;
    std::vector<int> cells;
};

TracedOnCpu walk(Table& table, std::span<const Symbol> a, std::span<const Symbol> b, std::size_t i,
                 std::size_t j, int equal, int unequal, int gap, bool is_local) {
    TracedOnCpu traced;
    traced.alignment.score = table.at(i, j);
    traced.alignment.a_end = static_cast<int>(i);
    traced.alignment.b_end = static_cast<int>(j);
    while (is_local ? table.at(i, j) > 0 : i + j > 0) {
        const int cell = table.at(i, j);
        if (i > 0 && j > 0 && cell == table.at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? equal : unequal)) {
            traced.steps.push_back(Step::kPair);
            --i;
            --j;
        } else if (i > 0 && cell == table.at(i - 1, j) + gap) {
            traced.steps.push_back(Step::kOnlyA);
            --i;
        } else {
            traced.steps.push_back(Step::kOnlyB);
            --j;
        }
    }
    std::reverse(traced.steps.begin(), traced.steps.end());
    traced.alignment.a_begin = static_cast<int>(i);
    traced.alignment.b_begin = static_cast<int>(j);
    traced.alignment.steps = static_cast<int>(traced.steps.size());
    return traced;
}

}  // namespace

TracedOnCpu trace_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b) {
    Table table(a.size(), b.size());
    for (std::size_t i = 0; i <= a.size(); ++i)
        for (std::size_t j = 0; j <= b.size(); ++j)
            table.at(i, j) = i == 0 || j == 0
                                 ? static_cast<int>(i + j)
                                 : std::min({table.at(i - 1, j) + 1, table.at(i, j - 1) + 1,
                                             table.at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1)});
    return walk(table, a, b, a.size(), b.size(), 0, 1, 1, false);
}

TracedOnCpu local_trace_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b, const Scoring& scoring) {
    Table table(a.size(), b.size());
    std::size_t best_i = 0;
    std::size_t best_j = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
        for (std::size_t i = 1; i <= a.size(); ++i) {
            const int paired =
                table.at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? scoring.match : scoring.mismatch);
            table.at(i, j) =
                std::max({0, paired, table.at(i - 1, j) + scoring.gap, table.at(i, j - 1) + scoring.gap});
            if (table.at(i, j) > table.at(best_i, best_j)) {
                best_i = i;
                best_j = j;
            }
        }
    }
    return walk(table, a, b, best_i, best_j, scoring.match, scoring.mismatch, scoring.gap, true);
}

int affine_score_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b, const AffineScoring& scoring) {
    // Of a gap that has not been opened: small, and still no sum overflows.
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min() / 2;
    std::vector<std::int64_t> score(b.size() + 1, 0);
    std::vector<std::int64_t> in_gap_of_a(b.size() + 1, kNone);
    std::int64_t best = 0;
    for (const Symbol of_a : a) {
        std::int64_t diagonal = 0;
        std::int64_t in_gap_of_b = kNone;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            in_gap_of_b = std::max(in_gap_of_b, score[j - 1] + scoring.open) + scoring.extend;
            in_gap_of_a[j] = std::max(in_gap_of_a[j], score[j] + scoring.open) + scoring.extend;
            const std::int64_t paired = diagonal + (of_a == b[j - 1] ? scoring.match : scoring.mismatch);
            diagonal = score[j];
            score[j] = std::max({std::int64_t{0}, paired, in_gap_of_b, in_gap_of_a[j]});
            best = std::max(best, score[j]);
        }
    }
    return static_cast<int>(best);
}

std::vector<int> search_on_cpu(std::span<const Symbol> query, std::span<const Symbol> symbols,
                               std::span<const std::int64_t> begins, const Scoring& scoring) {
    const std::size_t count = begins.empty() ? 0 : begins.size() - 1;
    std::vector<int> scores(count);
#pragma omp parallel for schedule(dynamic)
    for (std::size_t k = 0; k < count; ++k) {
        const auto begin = static_cast<std::size_t>(begins[k]);
        const auto length = static_cast<std::size_t>(begins[k + 1] - begins[k]);
        scores[k] = local_score_on_cpu(query, symbols.subspan(begin, length), scoring);
    }
    return scores;
}

}  // namespace day13

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/check/require.hpp"
#include "wavefronts.hpp"

namespace day13 {

std::vector<int> edit_distances_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b) {
    std::vector<int> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
        int diagonal = row[0];
        row[0] = static_cast<int>(i) + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
        }
    }
    return row;
}

void shortest_paths_on_cpu(std::span<double> distance, std::size_t n) {
    course::require(distance.size() == n * n, "shortest_paths_on_cpu: distance has ", distance.size(),
                    " elements; expected n * n, ", n * n);
    for (std::size_t k = 0; k < n; ++k) {
#pragma omp parallel for if (n > 200)
        for (std::size_t i = 0; i < n; ++i) {
            const double to_k = distance[i * n + k];
            for (std::size_t j = 0; j < n; ++j)
                distance[i * n + j] = std::min(distance[i * n + j], to_k + distance[k * n + j]);
        }
    }
}

std::vector<double> shortest_paths_from_on_cpu(std::span<const float> weights, std::size_t n,
                                               std::size_t source) {
    std::vector<double> length(n, std::numeric_limits<double>::infinity());
    std::vector<char> is_final(n);
    length[source] = 0;
    for (std::size_t round = 0; round < n; ++round) {
        std::size_t nearest = n;
        for (std::size_t v = 0; v < n; ++v)
            if (!is_final[v] && (nearest == n || length[v] < length[nearest])) nearest = v;
        is_final[nearest] = 1;
        for (std::size_t v = 0; v < n; ++v)
            length[v] = std::min(length[v], length[nearest] + weights[nearest * n + v]);
    }
    return length;
}

int local_score_on_cpu(std::span<const Symbol> a, std::span<const Symbol> b, const Scoring& scoring) {
    std::vector<int> row(b.size() + 1, 0);
    int best = 0;
    for (const Symbol of_a : a) {
        int diagonal = 0;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const int paired = diagonal + (of_a == b[j] ? scoring.match : scoring.mismatch);
            diagonal = row[j + 1];
            row[j + 1] = std::max({0, paired, row[j] + scoring.gap, row[j + 1] + scoring.gap});
            best = std::max(best, row[j + 1]);
        }
    }
    return best;
}

std::vector<double> frechet_distances_on_cpu(std::span<const float2> a, std::span<const float2> b) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    std::vector<double> row(b.size() + 1, kNone);
    row[0] = 0;
    for (const float2 of_a : a) {
        double diagonal = row[0];
        row[0] = kNone;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const double leash = std::hypot(double{of_a.x} - b[j].x, double{of_a.y} - b[j].y);
            const double before = std::min({diagonal, row[j], row[j + 1]});
            diagonal = row[j + 1];
            row[j + 1] = std::max(leash, before);
        }
    }
    return row;
}

}  // namespace day13

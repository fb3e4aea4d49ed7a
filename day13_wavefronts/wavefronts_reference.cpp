#include <algorithm>
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

}  // namespace day13

// The reference of the k best: a partial sort of each row of the distances.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "top_k.hpp"

namespace day48 {

TopKOnCpu top_k_on_cpu(Order order, std::size_t k, std::size_t m, std::size_t n,
                       const course::DistancesOnCpu& distances) {
    if (k > n) {
        throw std::invalid_argument("top_k_on_cpu: k is " + std::to_string(k) + " and there are " +
                                    std::to_string(n) + " columns; expected at most as many");
    }
    TopKOnCpu result{std::vector<double>(m * k), std::vector<std::uint32_t>(m * k),
                     std::vector<double>(m * k)};
#pragma omp parallel for
    for (std::ptrdiff_t signed_row = 0; signed_row < static_cast<std::ptrdiff_t>(m); ++signed_row) {
        const auto row = static_cast<std::size_t>(signed_row);
        const double* const values = distances.values.data() + row * n;
        std::vector<std::uint32_t> columns(n);
        std::iota(columns.begin(), columns.end(), 0u);
        const auto precedes = [&](std::uint32_t a, std::uint32_t b) {
            const bool a_is_nan = std::isnan(values[a]);
            const bool b_is_nan = std::isnan(values[b]);
            if (a_is_nan != b_is_nan) return b_is_nan;
            if (a_is_nan || values[a] == values[b]) return a < b;
            return order == Order::kSmallest ? values[a] < values[b] : values[a] > values[b];
        };
        std::ranges::partial_sort(columns, columns.begin() + static_cast<std::ptrdiff_t>(k), precedes);
        double magnitude = 0;
        for (std::size_t col = 0; col < n; ++col) {
            const double of_this = distances.magnitudes[row * n + col];
            if (std::isfinite(of_this)) magnitude = std::max(magnitude, of_this);
        }
        for (std::size_t i = 0; i < k; ++i) {
            result.values[row * k + i] = values[columns[i]];
            result.indices[row * k + i] = columns[i];
            result.magnitudes[row * k + i] = magnitude;
        }
    }
    return result;
}

}  // namespace day48

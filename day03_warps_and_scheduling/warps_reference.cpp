#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/check/require.hpp"
#include "warps.hpp"

namespace day03 {

std::vector<int> longest_first(std::span<const int> terms) {
    std::vector<int> order(terms.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return terms[static_cast<std::size_t>(a)] > terms[static_cast<std::size_t>(b)];
    });
    return order;
}

Expected evaluate_on_cpu(Rule rule, std::span<const float> x, std::span<const int> terms,
                         std::span<const float> coefficients) {
    const std::size_t all = coefficients.size();
    course::require(rule != Rule::kOwnTerms || terms.size() == x.size(), "evaluate_on_cpu: x and terms have ",
                    x.size(), " and ", terms.size(), " elements; expected the same number");
    Expected expected{std::vector<double>(x.size()), std::vector<double>(x.size())};
#pragma omp parallel for
    for (std::ptrdiff_t point = 0; point < static_cast<std::ptrdiff_t>(x.size()); ++point) {
        const auto i = static_cast<std::size_t>(point);
        const std::size_t count = rule == Rule::kOwnTerms ? static_cast<std::size_t>(terms[i]) : all;
        const bool reversed = rule == Rule::kOddReversed && i % 2 == 1;
        double y = 0;
        double magnitude = 0;
        for (std::size_t k = 0; k < count; ++k) {
            const double c = static_cast<double>(coefficients[reversed ? all - 1 - k : k]);
            y = y * static_cast<double>(x[i]) + c;
            magnitude = magnitude * std::abs(static_cast<double>(x[i])) + std::abs(c);
        }
        expected.y[i] = y;
        expected.magnitude[i] = std::isfinite(magnitude) ? magnitude : 0;
    }
    return expected;
}

double chains_on_cpu(int chains, int multiply_adds, std::size_t t) {
    double sum = 0;
    for (int k = 0; k < chains; ++k)
        sum += static_cast<double>(t % 1000) + k + multiply_adds / chains;
    return sum;
}

}  // namespace day03

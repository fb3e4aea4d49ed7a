// The reference of reductions: plain loops over a matrix of distances, in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reduce_in_matmul.hpp"

namespace day46 {
namespace {

bool precedes(double a, double b, bool is_max) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
    return is_max ? a > b : a < b;
}

}  // namespace

ReducedOnCpu reduce_on_cpu(Reduction reduction, Along along, std::size_t m, std::size_t n,
                           const course::DistancesOnCpu& distances) {
    const std::size_t results = along == Along::kRows ? m : n;
    const std::size_t count = along == Along::kRows ? n : m;
    const std::size_t step = along == Along::kRows ? 1 : n;
    const bool is_max = reduction == Reduction::kMax;
    ReducedOnCpu reduced{std::vector<double>(results), {}, std::vector<double>(results)};
    if (is_max || reduction == Reduction::kMin) reduced.indices.resize(results);
    for (std::size_t i = 0; i < results; ++i) {
        const std::size_t begin = along == Along::kRows ? i * n : i;
        const auto value = [&](std::size_t j) { return distances.values[begin + j * step]; };
        double sum = 0;
        double largest = -std::numeric_limits<double>::infinity();
        std::size_t best = 0;
        for (std::size_t j = 0; j < count; ++j) {
            const double magnitude = distances.magnitudes[begin + j * step];
            double& bound = reduced.magnitudes[i];
            if (std::isfinite(magnitude))  // what is infinite or NaN is compared as such
                bound = reduction == Reduction::kSum ? bound + magnitude : std::max(bound, magnitude);
            sum += value(j);
            largest = std::max(largest, value(j));
            if (precedes(value(j), value(best), is_max)) best = j;
        }
        if (!reduced.indices.empty()) {
            reduced.values[i] = value(best);
            reduced.indices[i] = static_cast<std::uint32_t>(best);
        } else if (reduction == Reduction::kSum) {
            reduced.values[i] = sum;
        } else if (std::isinf(largest)) {
            reduced.values[i] = std::isnan(sum) ? sum : largest;
        } else {
            double exponentials = 0;
            for (std::size_t j = 0; j < count; ++j)
                exponentials += std::exp(value(j) - largest);
            reduced.values[i] = largest + std::log(exponentials);
            // The error of an element passes through; the sum's relative error is one of its
            // logarithm.
            reduced.magnitudes[i] += 1 + std::abs(reduced.values[i]);
        }
    }
    return reduced;
}

}  // namespace day46

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "histogram.hpp"

namespace day12 {
namespace {

template <class Value>
void count(std::span<const Value> values, Range range, std::span<Counter> counts) {
    if (counts.empty() || range.lower >= range.upper || range.lower < kAllInts.lower ||
        range.upper > kAllInts.upper) {
        throw std::invalid_argument(
            "histogram_on_cpu: expected a bin and a range that is not empty, within int");
    }
    // A distance below 2^32 times fewer than 2^32 bins: the product fits in 64 bits.
    const auto bins = static_cast<std::uint64_t>(counts.size());
    const auto width = static_cast<std::uint64_t>(range.upper - range.lower);
    const auto n = static_cast<std::ptrdiff_t>(values.size());
    std::fill(counts.begin(), counts.end(), 0);
#pragma omp parallel
    {
        std::vector<Counter> own(counts.size());
#pragma omp for schedule(static)
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const std::int64_t value = values[static_cast<std::size_t>(i)];
            if (value < range.lower || value >= range.upper) continue;
            ++own[static_cast<std::uint64_t>(value - range.lower) * bins / width];
        }
#pragma omp critical
        for (std::size_t bin = 0; bin < own.size(); ++bin)
            counts[bin] += own[bin];
    }
}

}  // namespace

void histogram_on_cpu(std::span<const std::uint8_t> values, Range range, std::span<Counter> counts) {
    count(values, range, counts);
}

void histogram_on_cpu(std::span<const std::int32_t> values, Range range, std::span<Counter> counts) {
    count(values, range, counts);
}

}  // namespace day12

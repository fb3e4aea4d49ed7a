#include "histogram_plain_loop.hpp"

#include <algorithm>

namespace day12 {
namespace {

// Each thread counts into an array of its own; at the end, OpenMP adds them up.
template <class Value, class BinOf>
void count(std::span<const Value> values, std::span<Counter> counts, int threads, BinOf bin_of) {
    const std::size_t bins = counts.size();
    Counter* const all = counts.data();
    std::ranges::fill(counts, 0);
#pragma omp parallel for num_threads(threads) reduction(+ : all[:bins])
    for (std::size_t i = 0; i < values.size(); ++i)
        ++all[bin_of(values[i])];
}

}  // namespace

void count_plainly(std::span<const std::uint8_t> values, Range, std::span<Counter> counts, int threads) {
    count(values, counts, threads, [](std::uint8_t value) { return value; });
}

void count_plainly(std::span<const std::int32_t> values, Range range, std::span<Counter> counts,
                   int threads) {
    const auto bins = static_cast<std::uint64_t>(counts.size());
    const auto width = static_cast<std::uint64_t>(range.upper - range.lower);
    count(values, counts, threads,
          [=](std::int32_t value) { return static_cast<std::uint64_t>(value - range.lower) * bins / width; });
}

}  // namespace day12

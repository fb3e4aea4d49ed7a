// Values to count, by name: distributions that favour one counter, or use all of them. For tests
// and the day's program.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "common/device/random.hpp"
#include "histogram.hpp"

namespace day12 {

enum class Distribution {
    kUniform,       // all values equally likely
    kSingleValued,  // one value everywhere
    kZipf,          // the k-th of the values is 1/k as likely as the first
    kRuns,          // uniform, each value 1 to 40 times in a row
    kSorted,        // uniform, ascending
};

inline constexpr std::array kDistributions = {Distribution::kUniform, Distribution::kSingleValued,
                                              Distribution::kZipf, Distribution::kRuns,
                                              Distribution::kSorted};

inline std::string_view name(Distribution distribution) {
    switch (distribution) {
        case Distribution::kUniform:
            return "uniform";
        case Distribution::kSingleValued:
            return "single_valued";
        case Distribution::kZipf:
            return "zipf";
        case Distribution::kRuns:
            return "runs";
        case Distribution::kSorted:
            return "sorted";
    }
    throw std::invalid_argument("name: not a Distribution");
}

// G. K. Zipf's law over `choices` ranks, rank 0 the most likely: the sums 1, 1 + 1/2, 1 + 1/2 +
// 1/3, ... and a search in them. Divisions and sums round the same way everywhere, so the ranks are
// the same from every compiler.
class Zipf {
  public:
    explicit Zipf(std::size_t choices) : sums_(choices) {
        double sum = 0;
        for (std::size_t rank = 0; rank < choices; ++rank)
            sums_[rank] = sum += 1.0 / static_cast<double>(rank + 1);
    }

    std::size_t operator()(course::Random& random) const {
        const double unit = static_cast<double>(random.next() >> 11) * 0x1p-53;
        const auto rank = std::upper_bound(sums_.begin(), sums_.end(), unit * sums_.back());
        return std::min(static_cast<std::size_t>(rank - sums_.begin()), sums_.size() - 1);
    }

  private:
    std::vector<double> sums_;
};

// `size` values in `range`, the same for the same seed. Those of a Zipf distribution are its first
// 65536 at most.
template <class Value>
std::vector<Value> make_values(std::size_t size, Distribution distribution, Range range, std::uint64_t seed) {
    const std::int64_t most_ranks = distribution == Distribution::kZipf ? 1 << 16 : 1;
    const Zipf zipf(static_cast<std::size_t>(std::min(range.upper - range.lower, most_ranks)));
    const auto uniform = [&](course::Random& random) {
        return random.integer(static_cast<std::int32_t>(range.lower),
                              static_cast<std::int32_t>(range.upper - 1));
    };
    std::vector<Value> values(size);
    const auto n = static_cast<std::ptrdiff_t>(size);
    if (distribution == Distribution::kRuns) {
        course::Random random(seed);
        for (std::size_t i = 0; i < size;) {
            const auto value = static_cast<Value>(uniform(random));
            for (std::uint32_t left = 1 + random.below(40); left > 0 && i < size; --left)
                values[i++] = value;
        }
        return values;
    }
    course::Random first(seed);
    const auto single = static_cast<Value>(uniform(first));
#pragma omp parallel for if (size > 100000)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        course::Random random(seed, static_cast<std::uint64_t>(i) * 2);  // a draw may be repeated, rarely
        Value value = single;
        if (distribution == Distribution::kZipf) {
            value = static_cast<Value>(range.lower + static_cast<std::int64_t>(zipf(random)));
        } else if (distribution != Distribution::kSingleValued) {
            value = static_cast<Value>(uniform(random));
        }
        values[static_cast<std::size_t>(i)] = value;
    }
    if (distribution == Distribution::kSorted) std::sort(values.begin(), values.end());
    return values;
}

}  // namespace day12

// The worked example of top_k.hpp: which of many points are nearest to each query? All distances
// are computed, so the answer is exact except for rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace day48 {

// By squared distance, k for each query, the nearest first; of equally near points, the one with
// the lowest index comes first.
struct Neighbours {
    std::size_t k = 0;
    std::vector<std::uint32_t> indices;
    std::vector<float> squared_distances;
};

// Vectors of d numbers, one after the other. Throws std::invalid_argument when a size is not a
// multiple of d, for d = 0, and when k is out of range.
Neighbours nearest_neighbours(std::span<const float> queries, std::span<const float> points, std::size_t d,
                              std::size_t k);

// The reference: every distance, in double.
Neighbours nearest_neighbours_on_cpu(std::span<const float> queries, std::span<const float> points,
                                     std::size_t d, std::size_t k);

// The share of the nearest points that was found, in any order: 1 when none is missing. Throws
// std::invalid_argument when the two have different numbers of queries.
double recall(const Neighbours& found, const Neighbours& nearest);

}  // namespace day48

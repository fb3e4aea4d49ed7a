// The worked example of top_k.hpp: which of many points are nearest to each query? All distances are looked at, so the answer is exact,
// but for the rounding of distances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace day48 {

// By squared distance, k for each query, the nearest first; of equally near ones that of the lowest index.
struct Neighbours {
    std::size_t k = 0;
    std::vector<std::uint32_t> indices;
    std::vector<float> squared_distances;
};

// Vectors of d numbers, one after the other. Throws std::invalid_argument when they are not whole vectors, for d = 0, and when k is out
// of range.
Neighbours nearest_neighbours(std::span<const float> queries, std::span<const float> points, std::size_t d,
                              std::size_t k);

// The reference: every distance, in double.
Neighbours nearest_neighbours_on_cpu(std::span<const float> queries, std::span<const float> points,
                                     std::size_t d, std::size_t k);

// What part of the nearest ones is among those found, whatever their order: 1 when none is missing. Throws std::invalid_argument when
// the two are not of the same number of queries.
double recall(const Neighbours& found, const Neighbours& nearest);

}  // namespace day48

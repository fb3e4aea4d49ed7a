// Points that lie in blobs, for k-means.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/device/random.hpp"

namespace day46 {

struct Blobs {
    std::vector<float> centres;  // vectors of d numbers, one after the other
    std::vector<float> points;
};

// n points of d numbers, each normally distributed with `spread` about one of the centres, which
// lie in [-10, 10)^d. The same for the same seed.
inline Blobs make_blobs(std::size_t n, std::size_t blobs, std::size_t d, float spread, std::uint64_t seed) {
    course::Random random(seed);
    Blobs made{std::vector<float>(blobs * d), std::vector<float>(n * d)};
    for (float& x : made.centres)
        x = random.uniform(-10, 10);
    for (std::size_t point = 0; point < n; ++point) {
        const std::size_t blob = random.below(static_cast<std::uint32_t>(blobs));
        for (std::size_t i = 0; i < d; ++i)
            made.points[point * d + i] = std::fma(spread, random.normal(), made.centres[blob * d + i]);
    }
    return made;
}

// k of them, at equal distances in their order: centres to start with.
inline std::vector<float> evenly_chosen(std::span<const float> points, std::size_t d, std::size_t k) {
    std::vector<float> chosen;
    for (std::size_t i = 0; i < k; ++i) {
        const auto point = points.subspan(points.size() / d * i / k * d, d);
        chosen.insert(chosen.end(), point.begin(), point.end());
    }
    return chosen;
}

}  // namespace day46

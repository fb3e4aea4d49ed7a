// Digits that the course draws itself: strokes, turned, moved and bent at random, with noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shapes.hpp"

namespace day33 {

struct Digits {
    std::vector<float> pictures;  // count x 28 x 28, 0 is paper and 1 ink, plus noise
    std::vector<int> labels;      // 0 to 9
};

// The same for the same seed, on every machine but for the rounding of sines.
Digits draw_digits(std::size_t count, std::uint64_t seed);

}  // namespace day33

// The arguments of a matrix product: its shape, and the checks that launchers share.
#pragma once

#include <cstddef>

#include "common/check/require.hpp"

namespace course {

// C is m x n; k products are summed for each element of it.
struct MatmulShape {
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;
};

// Kernels count rows and columns in int, with room for a tile beyond the last.
inline constexpr std::size_t kMostExtent = (std::size_t{1} << 31) - 1024;

// Throws std::invalid_argument when an extent is too large or C overlaps A or B. The message
// starts with `topic`.
template <class A, class B, class C>
void check_extents_and_overlap(const char* topic, const A& a, const B& b, const C& c) {
    for (const std::size_t extent : {c.rows(), c.cols(), a.cols()})
        require(extent <= kMostExtent, topic, ": M, N or K is ", extent, "; expected at most ", kMostExtent);
    require(!overlap(c, a), topic, ": C overlaps A; expected no common element");
    require(!overlap(c, b), topic, ": C overlaps B; expected no common element");
}

}  // namespace course

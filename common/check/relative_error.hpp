// The relative error of an approximate result, as two numbers.
#pragma once

#include <span>

namespace course {

// The root mean square and the maximum magnitude of the difference, both divided by the root mean
// square of `exact`.
struct RelativeError {
    double root_mean_square = 0;
    double largest = 0;
};

// Throws std::invalid_argument when the lengths differ.
RelativeError relative_error(std::span<const double> exact, std::span<const double> approximate);

}  // namespace course

#include "common/check/relative_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/check/require.hpp"

namespace course {

RelativeError relative_error(std::span<const double> exact, std::span<const double> approximate) {
    require(approximate.size() == exact.size(), "relative_error: approximate has ", approximate.size(),
            " elements; expected ", exact.size());
    double squares = 0;
    double squares_of_error = 0;
    double largest = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double error = approximate[i] - exact[i];
        squares += exact[i] * exact[i];
        squares_of_error += error * error;
        largest = std::max(largest, std::abs(error));
    }
    const double size = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(exact.size(), 1)));
    return {std::sqrt(squares_of_error / std::max(squares, 1e-300)), largest / std::max(size, 1e-300)};
}

}  // namespace course

#include "softmax_rows_plain_loop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace day21 {

// The sum is a double: a float that holds the sum of millions of terms is too coarse for the next.
void softmax_plainly(const Problem& problem, std::span<const float> in, std::span<float> out, int threads) {
    const std::size_t cols = problem.cols;
#pragma omp parallel for num_threads(threads)
    for (std::size_t row = 0; row < problem.rows; ++row) {
        const float* const x = &in[row * cols];
        float* const y = &out[row * cols];
        float max = -std::numeric_limits<float>::infinity();
        for (std::size_t col = 0; col < cols; ++col)
            max = std::max(max, x[col]);
        double sum = 0;
        for (std::size_t col = 0; col < cols; ++col) {
            y[col] = std::exp(x[col] - max);
            sum += static_cast<double>(y[col]);
        }
        const auto inverse = static_cast<float>(1 / sum);
        for (std::size_t col = 0; col < cols; ++col)
            y[col] *= inverse;
    }
}

}  // namespace day21

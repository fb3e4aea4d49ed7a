#include "quantization_plain_loop.hpp"

#include <algorithm>
#include <cmath>

namespace day30 {

void quantize_rows_plainly(std::size_t rows, std::size_t cols, std::span<const float> in,
                           std::span<std::int8_t> out, std::span<float> scale, int threads) {
#pragma omp parallel for num_threads(threads)
    for (std::size_t row = 0; row < rows; ++row) {
        const float* const x = &in[row * cols];
        std::int8_t* const q = &out[row * cols];
        float largest = 0;
        for (std::size_t col = 0; col < cols; ++col)
            largest = std::max(largest, std::abs(x[col]));
        scale[row] = largest / 127;
        // A double holds the product exactly, so that it is rounded once.
        const double inverse = largest > 0 ? static_cast<double>(1 / scale[row]) : 0;
        for (std::size_t col = 0; col < cols; ++col)
            q[col] = static_cast<std::int8_t>(std::lrint(static_cast<double>(x[col]) * inverse));
    }
}

}  // namespace day30

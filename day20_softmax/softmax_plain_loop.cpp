#include "softmax_plain_loop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace day20 {

// The sum is a double: a float that holds the sum of millions of terms is too coarse for the next.
void softmax_plainly(std::span<const float> in, std::span<float> out, int threads) {
    float max = -std::numeric_limits<float>::infinity();
#pragma omp parallel for num_threads(threads) reduction(max : max)
    for (std::size_t i = 0; i < in.size(); ++i)
        max = std::max(max, in[i]);
    double sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (std::size_t i = 0; i < in.size(); ++i) {
        out[i] = std::exp(in[i] - max);
        sum += static_cast<double>(out[i]);
    }
    const auto inverse = static_cast<float>(1 / sum);
#pragma omp parallel for num_threads(threads)
    for (std::size_t i = 0; i < in.size(); ++i)
        out[i] *= inverse;
}

}  // namespace day20

#include "attention_plain_loop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace day25 {

// Query by query: its scores, their softmax, and the sum of the values with these weights.
void attention_plainly(const AttentionShape& shape, std::span<const float> q, std::span<const float> k,
                       std::span<const float> v, float scale, std::span<float> out, int threads) {
    const std::size_t width = shape.width;
    const std::size_t row = shape.heads * width;  // columns of a token: those of all heads
#pragma omp parallel num_threads(threads)
    {
        std::vector<float> weights(shape.keys);
#pragma omp for collapse(3)
        for (std::size_t batch = 0; batch < shape.batch; ++batch) {
            for (std::size_t head = 0; head < shape.heads; ++head) {
                for (std::size_t i = 0; i < shape.queries; ++i) {
                    const float* const query = &q[(batch * shape.queries + i) * row + head * width];
                    const float* const keys = &k[batch * shape.keys * row + head * width];
                    const float* const values = &v[batch * shape.keys * row + head * width];
                    float* const result = &out[(batch * shape.queries + i) * row + head * width];
                    float max = -std::numeric_limits<float>::infinity();
                    for (std::size_t j = 0; j < shape.keys; ++j) {
                        float score = 0;
                        for (std::size_t c = 0; c < width; ++c)
                            score += query[c] * keys[j * row + c];
                        weights[j] = scale * score;
                        max = std::max(max, weights[j]);
                    }
                    float sum = 0;
                    for (float& weight : weights) {
                        weight = std::exp(weight - max);
                        sum += weight;
                    }
                    std::fill(result, result + width, 0.0f);
                    for (std::size_t j = 0; j < shape.keys; ++j) {
                        const float weight = weights[j] / sum;
                        for (std::size_t c = 0; c < width; ++c)
                            result[c] += weight * values[j * row + c];
                    }
                }
            }
        }
    }
}

}  // namespace day25

#include "matmul_tiled_plain_loop.hpp"

namespace day05 {

// i, k, j: the innermost loop goes along rows of B and C, so it reads memory in order, and
// compilers vectorise it.
void multiply_plainly(Shape shape, std::span<const float> a, std::span<const float> b, std::span<float> c,
                      int threads) {
    const std::size_t cols = shape.cols;
    const std::size_t depth = shape.depth;
#pragma omp parallel for num_threads(threads)
    for (std::size_t i = 0; i < shape.rows; ++i) {
        float* const c_row = &c[i * cols];
        for (std::size_t j = 0; j < cols; ++j)
            c_row[j] = 0;
        for (std::size_t k = 0; k < depth; ++k) {
            const float factor = a[i * depth + k];
            const float* const b_row = &b[k * cols];
            for (std::size_t j = 0; j < cols; ++j)
                c_row[j] += factor * b_row[j];
        }
    }
}

}  // namespace day05

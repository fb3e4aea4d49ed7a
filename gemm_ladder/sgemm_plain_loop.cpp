#include "sgemm_plain_loop.hpp"

namespace gemm {

// i, p, j: the innermost loop goes along rows of B and C, so it reads memory in order, and
// compilers vectorise it.
void multiply_plainly(const Shape& shape, std::span<const float> a, std::span<const float> b,
                      std::span<float> c, int threads) {
#pragma omp parallel for num_threads(threads)
    for (std::size_t i = 0; i < shape.m; ++i) {
        float* const c_row = &c[i * shape.n];
        for (std::size_t j = 0; j < shape.n; ++j)
            c_row[j] = 0;
        for (std::size_t p = 0; p < shape.k; ++p) {
            const float factor = a[i * shape.k + p];
            const float* const b_row = &b[p * shape.n];
            for (std::size_t j = 0; j < shape.n; ++j)
                c_row[j] += factor * b_row[j];
        }
    }
}

}  // namespace gemm

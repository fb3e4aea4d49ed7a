#include "spmv_plain_loop.hpp"

namespace day35 {

void multiply_plainly(const CsrMatrix& csr, std::span<const float> x, std::span<float> y, int threads) {
    const Offset* const start = csr.row_start().data();
    const Index* const cols = csr.cols().data();
    const float* const values = csr.values().data();
#pragma omp parallel for num_threads(threads)
    for (Index row = 0; row < csr.shape().rows; ++row) {
        float sum = 0;
        for (Offset i = start[row]; i < start[row + 1]; ++i)
            sum += values[i] * x[cols[i]];
        y[row] = sum;
    }
}

}  // namespace day35

// Bug hunt "vector_matrix": the product of a row vector and a matrix.
//
//   out[c] = the sum of x[r] a(r, c) over all rows r
//
//   ./course run bug_hunts --only vector_matrix
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 128;

// Idea: a thread for each column; the block loads a piece of x into shared memory, and all its
// threads use each value of it.
// Cost removed: all but one of a block's loads of x.
// Still limits it: memory; and a matrix of few columns has few threads.
__global__ void multiply_row_vector(DeviceMatrix<const float> a, DeviceSpan<const float> x,
                                    DeviceSpan<float> out) {
    __shared__ float x_tile[kBlock];
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;

    float sum = 0;
    for (std::size_t begin = 0; begin < a.rows(); begin += kBlock) {
        const std::size_t count = a.rows() - begin < kBlock ? a.rows() - begin : kBlock;
        if (threadIdx.x < count) x_tile[threadIdx.x] = x[begin + threadIdx.x];
        __syncthreads();  // the tile is complete
        if (col < a.cols()) {
            for (std::size_t i = 0; i < count; ++i)
                sum += x_tile[i] * a(begin + i, col);
        }
        __syncthreads();  // safe to overwrite
    }
    if (col < a.cols()) out[col] = sum;
}

}  // namespace

void vector_matrix(DeviceMatrix<const float> a, DeviceSpan<const float> x, DeviceSpan<float> out,
                   cudaStream_t stream) {
    require_size("vector_matrix", "x", x, a.rows());
    require_size("vector_matrix", "out", out, a.cols());
    require_apart("vector_matrix", a, as_row(out));
    require_apart("vector_matrix", as_row(x), as_row(out));
    const unsigned blocks = course::blocks_for(a.cols(), kBlock);
    if (blocks == 0) return;
    multiply_row_vector<<<blocks, kBlock, 0, stream>>>(a, x, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts

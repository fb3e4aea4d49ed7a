// Threads outside of C return, so the barriers wait for them, and the tiles miss their elements.
// exercise: day05/tiled
// expect: matmul_tiled.cuh:\d+
__global__ void multiply_tiled(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                               DeviceMatrix<float> c) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = blockIdx.y * kTile + ty;
    const std::size_t col = blockIdx.x * kTile + tx;
    if (row >= c.rows() || col >= c.cols()) return;
    float sum = 0;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += kTile) {
        a_tile[ty][tx] = k0 + tx < a.cols() ? a(row, k0 + tx) : 0.0f;
        b_tile[ty][tx] = k0 + ty < b.rows() ? b(k0 + ty, col) : 0.0f;
        __syncthreads();
        for (int k = 0; k < kTile; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();
    }
    c(row, col) = sum;
}

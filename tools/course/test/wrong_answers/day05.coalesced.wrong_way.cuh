// threadIdx.x is still the row, as in the naive kernel.
// exercise: day05/coalesced
// expect: In global memory it needs \d+ sectors, the lesson's version \d+
__global__ void multiply_coalesced(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                   DeviceMatrix<float> c) {
    const std::size_t row = blockIdx.y * blockDim.y + threadIdx.x;
    const std::size_t col = blockIdx.x * blockDim.x + threadIdx.y;
    if (row >= c.rows() || col >= c.cols()) return;
    float sum = 0;
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * b(k, col);
    c(row, col) = sum;
}

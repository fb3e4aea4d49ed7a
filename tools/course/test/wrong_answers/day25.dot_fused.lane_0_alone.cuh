// Lane 0 does the whole row.
// exercise: day25/dot_fused
// expect: To global memory it makes \d+ requests|In global memory it needs \d+ sectors
template <int WIDTH>
__global__ void __launch_bounds__(kWarpsPerBlock* course::kWarpSize)
    multiply_rows(DeviceMatrix<const float> matrix, DeviceSpan<const float> vector, DeviceSpan<float> out) {
    const std::size_t row =
        static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / course::kWarpSize;
    if (row >= matrix.rows() || threadIdx.x % course::kWarpSize != 0) return;
    float sum = 0;
    for (std::size_t i = 0; i < matrix.cols(); ++i)
        sum += matrix(row, i) * vector[i];
    out[row] = sum;
}

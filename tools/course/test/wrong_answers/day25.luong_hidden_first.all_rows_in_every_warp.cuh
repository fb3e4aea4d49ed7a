// Every warp adds up all rows.
// exercise: day25/luong_hidden_first
// expect: In global memory it needs \d+ sectors, the lesson's version \d+\.\n\s+\S*scores.cuh:\d+:
// needs: dot_fused
__global__ void __launch_bounds__(kColumnWarps* course::kWarpSize)
    vector_times_matrix(DeviceSpan<const float> vector, DeviceMatrix<const float> matrix,
                        DeviceSpan<float> out) {
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const unsigned warp = threadIdx.x / course::kWarpSize;
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * course::kWarpSize + lane;
    if (col >= matrix.cols()) return;
    float sum = 0;
    for (std::size_t row = 0; row < matrix.rows(); ++row)
        sum += vector[row] * matrix(row, col);
    if (warp == 0) out[col] = sum;
}

// The largest value of the row is read before all threads have added theirs.
// exercise: day30/plain
// expect: quantization.cuh:\d+ and \S*quantization.cuh:\d+: .* in no order
// inspect: yes
template <class T>
__global__ void __launch_bounds__(kThreads) find_row_scales(DeviceMatrix<const T> in, float* scale) {
    __shared__ unsigned largest;  // bits of max |x|
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    const std::size_t row = blockIdx.x;
    unsigned of_thread = 0;
    for (std::size_t col = threadIdx.x; col < in.cols(); col += kThreads)
        of_thread = max(of_thread, __float_as_uint(fabsf(static_cast<float>(in(row, col)))));
    atomicMax(&largest, of_thread);
    if (threadIdx.x == 0) scale[row] = symmetric_scale(largest);
}

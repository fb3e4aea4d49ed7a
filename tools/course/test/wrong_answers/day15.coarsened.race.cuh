// The blocks' sums are read, added to and exchanged: two blocks may read the same sum.
// exercise: day15/coarsened
// expect: in no order
__global__ void reduce_coarsened(const float* in, std::size_t n, float* out) {
    __shared__ float values[kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * kBlock;
    float sum = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * kBlock + t; i < n; i += step)
        sum += in[i];
    values[t] = sum;
    for (unsigned stride = kBlock / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (t < stride) values[t] += values[t + stride];
    }
    if (t == 0) atomicExch(out, *out + values[0]);
}

// Threads beyond the end leave early, so the sum of the last section is not written.
// exercise: day16/kogge_stone
// expect: the sum of all
__global__ void kogge_stone(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ float values[kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + t;
    if (i >= n) return;
    values[t] = in[i];
    for (unsigned stride = 1; stride < kBlock; stride *= 2) {
        __syncthreads();
        const float left = t >= stride ? values[t - stride] : 0.0f;
        __syncthreads();
        values[t] += left;
    }
    out[i] = values[t];
    if (t == kBlock - 1) sums[blockIdx.x] = values[t];
}

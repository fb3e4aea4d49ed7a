// One barrier in each step: a thread adds to its value while another one still has to read it.
// exercise: day16/kogge_stone
// expect: When the last thread of a block runs first, the tests? (?:pass|fails with other values)(?s:.*)(?:A race, or an index out of range\?|inspection found)
__global__ void kogge_stone(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ float values[kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + t;
    values[t] = i < n ? in[i] : 0.0f;
    for (unsigned stride = 1; stride < kBlock; stride *= 2) {
        __syncthreads();
        if (t >= stride) values[t] += values[t - stride];
    }
    if (i < n) out[i] = values[t];
    if (t == kBlock - 1) sums[blockIdx.x] = values[t];
}

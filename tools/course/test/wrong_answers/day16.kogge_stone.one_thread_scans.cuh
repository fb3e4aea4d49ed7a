// Thread 0 of a block scans alone.
// exercise: day16/kogge_stone
// expect: In shared memory it needs \d+ wavefronts, the lesson's version \d+\.\n\s+\S*scan.cuh:\d+: 1 of 32 lanes
__global__ void kogge_stone(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ float values[kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + t;
    values[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    if (t == 0)
        for (unsigned k = 1; k < kBlock; ++k)
            values[k] += values[k - 1];
    __syncthreads();
    if (i < n) out[i] = values[t];
    if (t == kBlock - 1) sums[blockIdx.x] = values[t];
}

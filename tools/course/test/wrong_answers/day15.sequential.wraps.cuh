// The index has 32 bits and wraps at element 2^32.
// exercise: day15/sequential
// expect: IndicesBeyond32Bits/sequential: not done after 20 s
__global__ void reduce_sequential(const float* in, std::size_t n, float* out, float* scratch) {
    float* values = scratch + blockIdx.x * kBlock;
    const unsigned t = threadIdx.x;
    const unsigned step = gridDim.x * kBlock;
    for (unsigned first = blockIdx.x * kBlock; first < n; first += step) {
        values[t] = first + t < n ? in[first + t] : 0.0f;
        for (unsigned stride = kBlock / 2; stride > 0; stride /= 2) {
            __syncthreads();
            if (t < stride) values[t] += values[t + stride];
        }
        if (t == 0) atomicAdd(out, values[0]);
        __syncthreads();
    }
}

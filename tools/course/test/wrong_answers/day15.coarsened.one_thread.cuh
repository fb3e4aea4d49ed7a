// Thread 0 of each block adds everything.
// exercise: day15/coarsened
// expect: In global memory it needs
__global__ void reduce_coarsened(const float* in, std::size_t n, float* out) {
    if (threadIdx.x != 0) return;
    const std::size_t step = std::size_t{gridDim.x} * kBlock;
    float sum = 0;
    for (std::size_t first = std::size_t{blockIdx.x} * kBlock; first < n; first += step)
        for (std::size_t i = first; i < n && i < first + kBlock; ++i)
            sum += in[i];
    atomicAdd(out, sum);
}

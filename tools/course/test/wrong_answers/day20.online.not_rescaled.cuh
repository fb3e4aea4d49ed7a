// The sum is not rescaled when the maximum grows.
// exercise: day20/online
// expect: each of them is 0.\d+ times what is expected: is a factor wrong, or the sum by which they are divided
__global__ void part_maxima_and_sums(const float* x, MaxSum* parts, std::size_t n) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    MaxSum part = nothing();
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
        part.max = fmaxf(part.max, x[i]);
        part.sum += exponential(x[i], shift_of(part.max));
    }
    part = block_merge(part);
    if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

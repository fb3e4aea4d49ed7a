// The maximum begins at 0, so a block of negative elements has none of them.
// exercise: day20/five_kernels
// expect: softmax of \d+, all the lowest float: \d+ of \d+ values? differ
__global__ void part_maxima(const float* x, float* maxima, std::size_t n) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    float max = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        max = fmaxf(max, x[i]);
    max = course::block_reduce<kBlock>(max, course::Max{});
    if (threadIdx.x == 0) maxima[blockIdx.x] = max;
}

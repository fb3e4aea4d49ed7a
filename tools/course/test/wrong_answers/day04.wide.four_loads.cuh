// Four loads of 4 bytes in place of one of 16.
// exercise: day04/wide
// expect: global
// inspect: yes
__global__ void read_wide(const unsigned* x, std::size_t n, unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t threads = gridDim.x * kBlock;
    unsigned sum = 0;
    for (std::size_t i = 4 * t; i < n; i += 4 * threads)
        for (std::size_t k = i; k < i + 4 && k < n; ++k)
            sum += x[k];
    sums[t] = sum;
}

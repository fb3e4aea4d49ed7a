// Lane 0 of a warp counts the values of all 32 lanes.
// exercise: day12/global_atomics
// expect: In global memory it needs \d+ sectors, the lesson's version \d+\.\n\s+\S*histogram.cuh:\d+: 1 of 32 lanes
__global__ void count_global_atomics(const std::uint8_t* values, std::size_t n, Counter* counts) {
    if (threadIdx.x % 32 != 0) return;
    for (std::size_t k = 0; k < 32; ++k) {
        const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x + k;
        if (i < n) atomicAdd(counts + values[i], 1);
    }
}

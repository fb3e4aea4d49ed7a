// The counters of a block are increased without an atomic.
// exercise: day12/shared_private
// expect: an atomic is missing|in no order
__global__ void count_shared_private(const std::uint8_t* values, std::size_t n, Counter* counts) {
    __shared__ unsigned counters[kBins];
    counters[threadIdx.x] = 0;
    __syncthreads();
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n) counters[values[i]] += 1;
    __syncthreads();
    const unsigned count = counters[threadIdx.x];
    if (count != 0) atomicAdd(counts + threadIdx.x, count);
}

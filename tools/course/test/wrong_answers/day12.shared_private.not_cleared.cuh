// The counters of a block are never set to 0.
// exercise: day12/shared_private
// expect: shared memory that no thread has written|shared memory that no thread had written|uninitialised|never written
__global__ void count_shared_private(const std::uint8_t* values, std::size_t n, Counter* counts) {
    __shared__ unsigned counters[kBins];
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n) atomicAdd(counters + values[i], 1);
    __syncthreads();
    const unsigned count = counters[threadIdx.x];
    if (count != 0) atomicAdd(counts + threadIdx.x, count);
}

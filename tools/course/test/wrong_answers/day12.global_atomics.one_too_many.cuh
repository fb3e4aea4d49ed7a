// One value too many: the byte behind the last one is counted, too.
// exercise: day12/global_atomics
// expect: 165 is the byte that this test puts before and behind the values: is an index out of range\?
__global__ void count_global_atomics(const std::uint8_t* values, std::size_t n, Counter* counts) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i <= n) atomicAdd(counts + values[i], 1);
}

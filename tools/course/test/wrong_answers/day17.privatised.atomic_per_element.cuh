// An atomic in global memory for each element, as in `atomic`.
// exercise: day17/privatised
// expect: In global memory it does \d+ atomic operations, the lesson's version \d+\.\n\s+\S*filter.cuh:\d+: [\d.]+ of 32 lanes
__global__ void privatised(const std::int32_t* in, std::size_t n, Below keep, std::int32_t* out,
                           Count* count) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n && keep(in[i])) out[atomicAdd(count, Count{1})] = in[i];
}

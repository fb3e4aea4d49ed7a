// An atomic in global memory for each element, as in `atomic`.
// exercise: day17/warp_aggregated
// expect: In global memory it does \d+ atomic operations, the lesson's version \d+\.
__global__ void warp_aggregated(const std::int32_t* in, std::size_t n, Below keep, std::int32_t* out,
                                Count* count) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n && keep(in[i])) out[atomicAdd(count, Count{1})] = in[i];
}

// One thread of a block reads all of its elements, one after the other.
// exercise: day17/stable
// expect: In global memory it needs \d+ sectors, the lesson's version \d+\.\n\s+\S*filter.cuh:\d+: 1 of 32 lanes
__global__ void count_kept(const std::int32_t* in, std::size_t n, Below keep, Count* counts) {
    if (threadIdx.x != 0) return;
    Count kept = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * kBlock;
         i < n && i < (std::size_t{blockIdx.x} + 1) * kBlock; ++i)
        kept += keep(in[i]);
    counts[blockIdx.x] = kept;
}

// Every round reads global memory.
// exercise: day04/from_shared
// expect: global
// inspect: yes
__global__ void again_shared(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums) {
    const uint4* const piece = x + std::size_t{blockIdx.x} * quads;
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round)
        for (unsigned i = threadIdx.x; i < quads; i += kPieceBlock) {
            const uint4 quad = piece[i];
            sum += quad.x + quad.y + quad.z + quad.w;
        }
    sums[blockIdx.x * kPieceBlock + threadIdx.x] = sum;
}

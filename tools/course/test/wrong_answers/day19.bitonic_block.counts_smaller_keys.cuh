// No network: each thread counts the keys that are smaller than its own.
// exercise: day19/bitonic_block
// expect: In shared memory it needs \d+ wavefronts, the lesson's version \d+\.\n\s+\S*merge_sort.cuh:\d+:
__device__ inline void bitonic_sort(Key* tile) {
    Key mine[2];
    unsigned places[2];
    for (unsigned k = 0; k < 2; ++k) {
        const unsigned i = threadIdx.x + k * kBitonicBlock;
        mine[k] = tile[i];
        places[k] = 0;
        for (unsigned j = 0; j < kSorted; ++j)
            places[k] += tile[j] < mine[k] || (tile[j] == mine[k] && j < i);
    }
    __syncthreads();
    for (unsigned k = 0; k < 2; ++k)
        tile[places[k]] = mine[k];
    __syncthreads();
}

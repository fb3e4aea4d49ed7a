// Exercises on merging: co-ranks, and how many threads search where. 4th edition 12.1, 12.2, 12.4;
// 5th edition 13.1, 13.2, 13.4.
//
//   ./course run docs/answers/merges.cu
#include <cuda_runtime.h>

#include <cstdio>

// How many of the first k results come from A. Prints what it compares.
__global__ void find_co_rank(int k, const int* a, int m, const int* b, int n, int* co_rank) {
    int low = k > n ? k - n : 0, high = k < m ? k : m;
    while (low < high) {
        const int i = (low + high) / 2, j = k - i;
        printf("  k = %d: %d to %d are possible; A[%d] = %d, B[%d] = %d\n", k, low, high, i, a[i], j - 1,
               b[j - 1]);
        if (a[i] <= b[j - 1])
            low = i + 1;
        else
            high = i;
    }
    *co_rank = low;
}

// Threads that search in global memory without tiles, with tiles, and in shared memory with tiles.
__global__ void count_searches(int results, int per_thread, int* counts) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread * per_thread < results) atomicAdd(counts, 1);
    if (threadIdx.x == 0) atomicAdd(counts + 1, 1);
    if (thread * per_thread < results) atomicAdd(counts + 2, 1);
}

int main() {
    int *values = nullptr, *counts = nullptr;
    cudaMallocManaged(&values, 9 * sizeof(int));
    cudaMallocManaged(&counts, 4 * sizeof(int));
    const int numbers[] = {1, 7, 8, 9, 10, 7, 10, 10, 12};
    for (int i = 0; i < 9; ++i)
        values[i] = numbers[i];
    bool all = true;
    for (int k : {8, 6}) {
        find_co_rank<<<1, 1>>>(k, values, 5, values + 5, 4, counts);
        all &= cudaDeviceSynchronize() == cudaSuccess && counts[0] == 5;
        std::printf("before C[%d]: %d elements of A, %d of B\n", k, counts[0], k - counts[0]);
    }
    constexpr int kResults = 1030400 + 608000, kPerThread = 8, kBlock = 1024;
    for (int i = 0; i < 4; ++i)
        counts[i] = 0;
    count_searches<<<(kResults + kPerThread * kBlock - 1) / (kPerThread * kBlock), kBlock>>>(
        kResults, kPerThread, counts);
    all &= cudaDeviceSynchronize() == cudaSuccess && counts[0] == 204800 && counts[1] == 200;
    std::printf("%d results: %d threads search in global memory; with tiles %d, and %d in shared memory\n",
                kResults, counts[0], counts[1], counts[2]);
    return all ? 0 : 1;
}

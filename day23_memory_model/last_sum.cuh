// Verdict: missing acquire, line 23
//
// Last sum: each block adds up 64 elements, the last block adds up the sums. Each out[i] becomes
// the sum of all elements.
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

namespace day23 {

// words[0]: how many blocks have stored their sums.
__global__ void last_sum(const int* in, int* sums, int* out, unsigned n, unsigned* words) {
    __shared__ bool is_last;
    __shared__ int total;
    if (threadIdx.x == 0) {
        int sum = 0;
        for (unsigned i = blockIdx.x * blockDim.x; i < (blockIdx.x + 1) * blockDim.x && i < n; ++i)
            sum += in[i];
        sums[blockIdx.x] = sum;
        const cuda::atomic_ref<unsigned, cuda::thread_scope_device> stored(words[0]);
        is_last = stored.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
        if (is_last) {
            total = 0;
            for (unsigned b = 0; b < gridDim.x; ++b)
                total += sums[b];
        }
    }
    __syncthreads();
    if (!is_last) return;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = total;
}

inline void launch_last_sum(const int* in, int* out, unsigned n, unsigned* words, cudaStream_t stream) {
    int* sums = nullptr;
    cudaMallocAsync(&sums, (n + 63) / 64 * sizeof(int), stream);
    last_sum<<<(n + 63) / 64, 64, 0, stream>>>(in, sums, out, n, words);
    cudaFreeAsync(sums, stream);
}

}  // namespace day23

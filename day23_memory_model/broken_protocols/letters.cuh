// Verdict: ?, line ?
//
// Letters: blocks in pairs. One writes 64 letters, the other one reads them: out[i] = 2 in[i].
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

namespace day23 {

// words[0]: tickets, which decide the role of a block. A writer draws before its reader, so a
// reader waits for a block that runs. words[8 + pair]: the flag of a pair.
__global__ void letters(const int* in, int* letter, int* out, unsigned n, unsigned* words) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(&words[0], 1);
    __syncthreads();
    const unsigned pair = ticket / 2;
    const unsigned i = pair * blockDim.x + threadIdx.x;
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(words[8 + pair]);

    if (ticket % 2 == 0) {
        if (i < n) letter[i] = 2 * in[i];
        __syncthreads();  // all letters of the block are written
        if (threadIdx.x == 0) flag.store(1, cuda::memory_order_relaxed);
    } else {
        if (threadIdx.x == 0) {
            while (flag.load(cuda::memory_order_acquire) == 0) {
            }
        }
        __syncthreads();  // thread 0 has seen the flag
        if (i < n) out[i] = letter[i];
    }
}

inline void launch_letters(const int* in, int* out, unsigned n, unsigned* words, cudaStream_t stream) {
    int* letter = nullptr;
    cudaMallocAsync(&letter, n * sizeof(int), stream);
    letters<<<2 * ((n + 63) / 64), 64, 0, stream>>>(in, letter, out, n, words);
    cudaFreeAsync(letter, stream);
}

}  // namespace day23

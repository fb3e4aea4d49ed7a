// Verdict: ?, line ?
//
// Purse: a purse, and a lock. Each block puts in the number of its elements above 0, and out[i]
// becomes the number of elements that were in the purse when the block was done, minus those that
// were there before.
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

namespace day23 {

// words[0] counts tickets, words[1] is the ticket whose turn it is, words[2] is the purse.
__global__ void purse(const int* in, int* out, unsigned n, unsigned* words) {
    __shared__ int put_in;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int above = __syncthreads_count(i < n && in[i] > 0);
    if (threadIdx.x == 0) {
        const cuda::atomic_ref<unsigned, cuda::thread_scope_device> next(words[0]);
        const cuda::atomic_ref<unsigned, cuda::thread_scope_device> turn(words[1]);
        const unsigned ticket = next.fetch_add(1, cuda::memory_order_relaxed);
        while (turn.load(cuda::memory_order_acquire) != ticket) {
        }
        const unsigned before = words[2];
        turn.store(ticket + 1, cuda::memory_order_release);
        words[2] = before + above;
        put_in = static_cast<int>(words[2] - before);
    }
    __syncthreads();
    if (i < n) out[i] = put_in;
}

inline void launch_purse(const int* in, int* out, unsigned n, unsigned* words, cudaStream_t stream) {
    purse<<<(n + 63) / 64, 64, 0, stream>>>(in, out, n, words);
}

}  // namespace day23

// Verdict: ?, line ?
//
// Account: one account, and a lock. Each block pays in its 64 elements, and out[i] becomes the
// balance after the block of element i has paid in, minus the balance before.
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

namespace day23 {

// words[0]: the lock. balance: the account, 0 at first.
__global__ void account(const int* in, int* balance, int* out, unsigned n, unsigned* words) {
    __shared__ int change;
    if (threadIdx.x == 0) {
        int sum = 0;
        for (unsigned i = blockIdx.x * blockDim.x; i < (blockIdx.x + 1) * blockDim.x && i < n; ++i)
            sum += in[i];
        const cuda::atomic_ref<unsigned, cuda::thread_scope_block> lock(words[0]);
        while (lock.exchange(1, cuda::memory_order_acquire) != 0) {
        }
        const int before = *balance;
        *balance = before + sum;
        change = *balance - before;
        lock.store(0, cuda::memory_order_release);
    }
    __syncthreads();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = change;
}

inline void launch_account(const int* in, int* out, unsigned n, unsigned* words, cudaStream_t stream) {
    int* const balance = reinterpret_cast<int*>(&words[1]);
    account<<<(n + 63) / 64, 64, 0, stream>>>(in, balance, out, n, words);
}

}  // namespace day23

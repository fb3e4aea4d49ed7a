// Verdict: flag reset too early, line 25
//
// Mailbox: one block sends all elements, one after the other, through a box for one number. Another
// one takes them out: out[i] = in[i] + 1.
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

namespace day23 {

// words[0] counts tickets, words[1] is 1 while there is a number in the box, words[2] is the box.
__global__ void mailbox(const int* in, int* out, unsigned n, unsigned* words) {
    if (threadIdx.x != 0) return;
    const bool is_sender = atomicAdd(&words[0], 1) == 0;
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> is_full(words[1]);
    for (unsigned i = 0; i < n; ++i) {
        while (is_full.load(cuda::memory_order_acquire) != (is_sender ? 0 : 1)) {
        }
        if (is_sender) {
            words[2] = static_cast<unsigned>(in[i]);
            is_full.store(1, cuda::memory_order_release);
        } else {
            out[i] = static_cast<int>(words[2]) + 1;
            is_full.store(0, cuda::memory_order_release);
        }
    }
}

inline void launch_mailbox(const int* in, int* out, unsigned n, unsigned* words, cudaStream_t stream) {
    mailbox<<<2, 32, 0, stream>>>(in, out, n, words);
}

}  // namespace day23

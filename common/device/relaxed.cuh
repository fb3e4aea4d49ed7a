// Words through which the blocks of a launch communicate.
#pragma once

#include <cuda/atomic>

namespace course {

// For words that other threads of the GPU load and store at the same time. *Relaxed*: the whole
// word is accessed, in memory that all blocks see, never a copy in a register. But no other access
// is ordered before or after it. Where another variable belongs to the word, the writer needs a
// fence before the store, and the reader one after the load.
template <class T>
__device__ T load_relaxed(const T* address) {
    return cuda::atomic_ref<T, cuda::thread_scope_device>(*const_cast<T*>(address))
        .load(cuda::memory_order_relaxed);
}

template <class T>
__device__ void store_relaxed(T* address, T value) {
    cuda::atomic_ref<T, cuda::thread_scope_device>(*address).store(value, cuda::memory_order_relaxed);
}

}  // namespace course

// Words through which the blocks of a launch communicate.
#pragma once

#include <cuda/atomic>

namespace course {

// For words that other threads of the GPU load and store at the same time. *Relaxed*: the access
// goes to the whole word in memory that all blocks see, never to a copy in a register. But it does
// not order any other access. If the word guards other data, the writer needs a fence before the
// store, and the reader needs one after the load.
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

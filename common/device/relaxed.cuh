// Words by which the blocks of a launch tell each other something.
#pragma once

#include <cuda/atomic>

namespace course {

// Loads and stores that other threads of the GPU may make at the same time. *Relaxed*: the whole
// word is accessed, in memory that all blocks see, and anew each time; but no other access is
// ordered before or behind it. Where another variable belongs to the word, the writer needs a fence
// before the store, and the reader one behind the load.
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

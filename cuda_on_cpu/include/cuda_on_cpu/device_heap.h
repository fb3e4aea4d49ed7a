// malloc(), free(), new and delete in device code, which the translator replaces by these. On a GPU
// they take from a heap of limited size (cudaLimitMallocHeapSize), and give null when it is full.
#pragma once

#include <cstddef>
#include <new>

namespace cuda_on_cpu {

// Called by code of the host, all of them do what the standard library's functions do.
void* heap_malloc(std::size_t bytes);
void heap_free(void* memory);
void* heap_new(std::size_t bytes, std::size_t alignment);
// Before a kernel allocates from the host's heap what is not counted.
void note_own_new();
// Before memory is given back by another function.
void leaves_heap(const volatile void* memory);

struct OnHeap {};

// `new T` becomes `OwnNew() ->* new T` in a file where some class has an operator of its own.
struct OwnNew {
    OwnNew() { note_own_new(); }
    template <class T>
    T* operator->*(T* made) const {
        return made;
    }
};

// `delete p` becomes `delete leaving_heap(p)`.
template <class T>
T* leaving_heap(T* pointer) {
    leaves_heap(pointer);
    return pointer;
}

}  // namespace cuda_on_cpu

// `new T` becomes `::new (::cuda_on_cpu::OnHeap()) T`. Without exceptions the result may be null.
inline void* operator new(std::size_t bytes, cuda_on_cpu::OnHeap) noexcept {
    return cuda_on_cpu::heap_new(bytes, 0);
}
inline void* operator new[](std::size_t bytes, cuda_on_cpu::OnHeap) noexcept {
    return cuda_on_cpu::heap_new(bytes, 0);
}
inline void* operator new(std::size_t bytes, std::align_val_t alignment, cuda_on_cpu::OnHeap) noexcept {
    return cuda_on_cpu::heap_new(bytes, static_cast<std::size_t>(alignment));
}
inline void* operator new[](std::size_t bytes, std::align_val_t alignment, cuda_on_cpu::OnHeap) noexcept {
    return cuda_on_cpu::heap_new(bytes, static_cast<std::size_t>(alignment));
}
// If a constructor throws, which code of the host may do.
inline void operator delete(void* memory, cuda_on_cpu::OnHeap) noexcept {
    ::operator delete(memory);
}
inline void operator delete[](void* memory, cuda_on_cpu::OnHeap) noexcept {
    ::operator delete[](memory);
}
inline void operator delete(void* memory, std::align_val_t alignment, cuda_on_cpu::OnHeap) noexcept {
    ::operator delete(memory, alignment);
}
inline void operator delete[](void* memory, std::align_val_t alignment, cuda_on_cpu::OnHeap) noexcept {
    ::operator delete[](memory, alignment);
}

// Several adjacent values that one access moves between memory and registers (a vectorised load or
// store).
//
// A thread that loads a float4 requests 16 bytes with one instruction, and a warp 512: fewer
// instructions, more bytes in flight. The price is alignment: the address must be a multiple of the
// pack's size.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace course {

// Is `address` a multiple of `bytes`, a power of two?
__host__ __device__ inline bool is_aligned(const void* address, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
    static_assert(sizeof(T) * N == 4 || sizeof(T) * N == 8 || sizeof(T) * N == 16,
                  "Pack<T, N>: one access moves 4, 8 or 16 bytes");

    T value[N];

    // The N values from `address` on; `address` must be aligned to the pack.
    static __device__ Pack load(const T* address) {
        const Word word = *words_at(address);
        Pack pack;
        std::memcpy(&pack, &word, sizeof(pack));
        return pack;
    }

    __device__ void store(T* address) const {
        Word word;
        std::memcpy(&word, this, sizeof(word));
        *words_at(address) = word;
    }

    // A streaming store, for what is not read again soon: the L2 cache evicts it first.
    __device__ void store_streaming(T* address) const {
        Word word;
        std::memcpy(&word, this, sizeof(word));
        __stcs(words_at(address), word);
    }

  private:
    // Copied as one of CUDA's vector types, which compilers keep together. The members of a plain
    // struct may be stored one by one.
    using Word = std::conditional_t<sizeof(T) * N == 16, uint4,
                                    std::conditional_t<sizeof(T) * N == 8, uint2, unsigned>>;

    template <class U>
    static __device__ auto words_at(U* address) {
#ifdef CUDA_ON_CPU
        // A GPU reports an error for a misaligned address; a CPU may not.
        if (!is_aligned(address, sizeof(Pack)))
            cuda_on_cpu::device_failure(
                cudaErrorMisalignedAddress,
                "misaligned access: the address of a Pack must be a multiple of its size",
                cuda_on_cpu::Site::here());
#endif
        return reinterpret_cast<std::conditional_t<std::is_const_v<U>, const Word, Word>*>(address);
    }
};

}  // namespace course

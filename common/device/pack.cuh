// Several neighbouring values that move between memory and registers in one access.
//
// A thread that loads a float4 asks for 16 bytes with one instruction, a warp for 512: fewer
// instructions, more bytes in flight. The price is alignment: the address must be a multiple of the
// pack's size.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace course {

template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
    static_assert(sizeof(T) * N == 4 || sizeof(T) * N == 8 || sizeof(T) * N == 16,
                  "Pack<T, N>: one access moves 4, 8 or 16 bytes");

    T value[N];

    // The N values from `address` on; `address` must be aligned to the pack.
    static __device__ Pack load(const T* address) {
        const Word word = *reinterpret_cast<const Word*>(address);
        Pack pack;
        std::memcpy(&pack, &word, sizeof(pack));
        return pack;
    }

    __device__ void store(T* address) const {
        Word word;
        std::memcpy(&word, this, sizeof(word));
        *reinterpret_cast<Word*>(address) = word;
    }

    // A streaming store, for what is not read again soon: the L2 cache evicts it first.
    __device__ void store_streaming(T* address) const {
        Word word;
        std::memcpy(&word, this, sizeof(word));
        __stcs(reinterpret_cast<Word*>(address), word);
    }

  private:
    // Copied as one of CUDA's vector types, which no compiler takes apart; of a plain struct it may
    // store each member by itself.
    using Word = std::conditional_t<sizeof(T) * N == 16, uint4,
                                    std::conditional_t<sizeof(T) * N == 8, uint2, unsigned>>;
};

// Is `address` a multiple of `bytes`, a power of two?
__host__ __device__ inline bool is_aligned(const void* address, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace course

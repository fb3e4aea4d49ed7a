// The implementation of cuda::memcpy_async, shared by <cuda/barrier> and <cuda/pipeline>.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/async_copy.h"
#include "cuda_on_cpu/thread.h"

namespace cuda {

// A number of bytes that is a multiple of `Alignment`. The addresses it is used with must be
// aligned to `Alignment`, too.
template <std::size_t Alignment>
struct aligned_size_t {
    static_assert(Alignment > 0 && (Alignment & (Alignment - 1)) == 0, "aligned_size_t: a power of two");
    static constexpr std::size_t align = Alignment;

    std::size_t value;

    explicit constexpr aligned_size_t(std::size_t size) : value(size) {}
    constexpr operator std::size_t() const { return value; }
};

// On a GPU the result of memcpy_async is the way the copy was done; here all copies are
// asynchronous.
enum class async_contract_fulfillment { none, async };

}  // namespace cuda

namespace cuda_on_cpu {

template <class Size>
inline constexpr std::size_t kAlignmentOfSize = 1;
template <std::size_t Alignment>
inline constexpr std::size_t kAlignmentOfSize<cuda::aligned_size_t<Alignment>> = Alignment;

// The thread with this rank, of `threads`, copies its pieces. A piece has up to 16 bytes, as many
// as the known alignment allows. All pieces are pending copies, including those that a GPU would
// copy at once. It is an error if an address or a size is not aligned as promised, or if the
// destination is not in the block's shared memory.
inline void copy_pieces(void* destination, const void* source, std::size_t size, std::size_t alignment,
                        unsigned rank, unsigned threads, Site site) {
    const auto all =
        reinterpret_cast<std::uintptr_t>(destination) | reinterpret_cast<std::uintptr_t>(source) | size;
    if (all % alignment != 0)
        device_failure(cudaErrorMisalignedAddress,
                       "memcpy_async: an address or the size is not aligned as promised", site);
    const std::size_t piece = alignment < 16 ? alignment : 16;
    for (std::size_t at = rank * piece; at < size; at += threads * piece) {
        issue_copy(static_cast<char*>(destination) + at, static_cast<const char*>(source) + at,
                   static_cast<unsigned>(piece), static_cast<unsigned>(piece), site);
    }
}

// As cuda::memcpy_async, for one thread or for all threads of a group. The alignment is the greater
// of those that the pointer types and the size promise.
struct OneThread {
    static constexpr unsigned thread_rank() { return 0; }
    static constexpr unsigned size() { return 1; }
};
template <class Group, class T, class Size>
void copy_by_group(const Group& group, T* destination, const T* source, Size size, Site site) {
    constexpr std::size_t kOfType =
        std::is_void_v<T> ? 1 : alignof(std::conditional_t<std::is_void_v<T>, char, T>);
    copy_pieces(destination, source, static_cast<std::size_t>(size),
                std::max(kOfType, kAlignmentOfSize<Size>), static_cast<unsigned>(group.thread_rank()),
                static_cast<unsigned>(group.size()), site);
}

}  // namespace cuda_on_cpu

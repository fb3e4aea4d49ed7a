// The contents of memory before a kernel writes it, and what arithmetic makes of them.
//
// A GuardedBuffer fills its payload with a NaN, and the CPU stand-in fills fresh device and shared
// memory with NaN. Each kind of memory has a NaN of its own. On the CPU, arithmetic keeps the
// mantissa of a NaN operand, so a wrong result shows which memory it was computed from. (A GPU
// returns the same NaN for all of them, so only untouched elements can be identified there.)
//
//     filled with                         16 bits  32 bits     after arithmetic
//     output (GuardedBuffer<float>)                0xFFBFFFFC  0xFFFFFFFC
//     output of another type, cudaMemset  0xFFFF   0xFFFFFFFF  0xFFFFFFFF
//     shared memory, on the CPU           0xFFFE   0xFFFEFFFE  0xFFFEFFFE
//     device memory, on the CPU           0xFFFD   0xFFFDFFFD  0xFFFDFFFD
//     around an allocation, on the CPU    0x7FFF   0x7FFF7FFF  0x7FFF7FFF        or with E or D for the last F
//
// The output is filled with a signalling NaN, which arithmetic makes quiet. So an unwritten
// element differs from one that was computed from an unwritten element, as in `c[i] += x`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace course {

// The sizeof(T) bytes of an unwritten element of a GuardedBuffer<T>.
template <class T>
std::span<const std::byte> unwritten_bytes();

// Is the value what a GuardedBuffer or a cudaMemset to 0xFF leaves in memory?
template <class T>
bool is_unwritten(const T& value);

// The memory that a NaN was computed from.
enum class NanOrigin { kUnknown, kOutput, kSharedMemory, kDeviceMemory, kOutside };

// The origin of a value of `size` bytes: 4 is float, 8 is double. It is unknown for any other
// size, and for a value that is not a NaN.
NanOrigin origin_of_nan(const void* value, std::size_t size);

// The origin of a count that started at the 32-bit contents of fresh memory, or of a sum of a few
// such counts. About one in 30,000 random values matches by chance. kOutside: a copy of the guards
// around a GuardedBuffer.
NanOrigin origin_of_integer(std::uint64_t value);

// --- Implementation of the templates -------------------------------------------------------------

namespace detail {

std::span<const std::byte> unwritten_float();
std::span<const std::byte> unwritten_double();
std::span<const std::byte> all_bits_set(std::size_t size);  // throws std::length_error above 256 bytes
bool same_bytes(const void* value, std::span<const std::byte> bytes);

}  // namespace detail

template <class T>
std::span<const std::byte> unwritten_bytes() {
    if constexpr (std::is_same_v<T, float>) return detail::unwritten_float();
    if constexpr (std::is_same_v<T, double>) return detail::unwritten_double();
    return detail::all_bits_set(sizeof(T));
}

template <class T>
bool is_unwritten(const T& value) {
    return detail::same_bytes(&value, unwritten_bytes<T>()) ||
           detail::same_bytes(&value, detail::all_bits_set(sizeof(T)));
}

}  // namespace course

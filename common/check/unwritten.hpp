// What memory holds before a kernel writes it, and what becomes of it in arithmetic.
//
// A GuardedBuffer fills its payload with a NaN, and so does the CPU stand-in with fresh device and
// shared memory. Each has a NaN of its own: arithmetic keeps the mantissa of a NaN operand on the
// CPU, so a wrong result tells which memory it was computed from. (A GPU returns one NaN for all:
// there only untouched elements can be told apart.)
//
//     filled with                         16 bits  32 bits     after arithmetic
//     output (GuardedBuffer<float>)                0xFFBFFFFC  0xFFFFFFFC
//     output of another type, cudaMemset  0xFFFF   0xFFFFFFFF  0xFFFFFFFF
//     shared memory, on the CPU           0xFFFE   0xFFFEFFFE  0xFFFEFFFE
//     device memory, on the CPU           0xFFFD   0xFFFDFFFD  0xFFFDFFFD
//     around an allocation, on the CPU    0x7FFF   0x7FFF7FFF  0x7FFF7FFF        or with E or D for the last F
//
// The output's is a signalling NaN, which arithmetic makes quiet: so an element that was never
// written differs from one that was computed from it, as `c[i] += x` does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace course {

// What a GuardedBuffer<T> holds before anything is written: sizeof(T) bytes.
template <class T>
std::span<const std::byte> unwritten_bytes();

// Is the value as a GuardedBuffer or a cudaMemset to 0xFF leaves it?
template <class T>
bool is_unwritten(const T& value);

// Which memory a NaN was computed from.
enum class NanOrigin { kUnknown, kOutput, kSharedMemory, kDeviceMemory, kOutside };

// Of a value of `size` bytes: 4 is float, 8 is double; of any other size, and of any value that is
// no NaN, it is unknown.
NanOrigin origin_of_nan(const void* value, std::size_t size);

// Of a count that began at what 32 bits of fresh memory hold, or of a sum of a few such; by chance
// one in 30,000 values is like that.
NanOrigin origin_of_integer(std::uint64_t value);

// --- what the templates are made of --------------------------------------------------------------

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

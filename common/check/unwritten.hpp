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
//     guards of a GuardedBuffer, half     0x7DBF                                 0x7FBF as half
//     the same of bfloat16                0x7F9F                                 0x7FDF as bfloat16
//     the same of float                            0x7FBF7FBF  0x7FFF7FBF
//
// Output and guards are filled with a signalling NaN, which arithmetic makes quiet. So an unwritten
// element differs from one that was computed from an unwritten element, as in `c[i] += x`, and what
// a kernel computes from a guard differs from the guard that it overwrites.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

struct __half;
struct __nv_bfloat16;

namespace course {

inline constexpr int kGuardByte = 0xA5;  // of guards around integers

// The sizeof(T) bytes of an unwritten element of a GuardedBuffer<T>.
template <class T>
std::span<const std::byte> unwritten_bytes();

// The bytes that the guards of a GuardedBuffer<T> repeat: a NaN, which no sum hides. For integers,
// and for what is neither: 0xA5.
template <class T>
std::span<const std::byte> guard_bytes();

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
std::span<const std::byte> guard_of_float();
std::span<const std::byte> guard_of_double();
std::span<const std::byte> guard_of_half();
std::span<const std::byte> guard_of_bfloat16();
std::span<const std::byte> guard_of_integer();
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
std::span<const std::byte> guard_bytes() {
    if constexpr (std::is_same_v<T, float>) return detail::guard_of_float();
    if constexpr (std::is_same_v<T, double>) return detail::guard_of_double();
    if constexpr (std::is_same_v<T, __half>) return detail::guard_of_half();
    if constexpr (std::is_same_v<T, __nv_bfloat16>) return detail::guard_of_bfloat16();
    return detail::guard_of_integer();
}

template <class T>
bool is_unwritten(const T& value) {
    return detail::same_bytes(&value, unwritten_bytes<T>()) ||
           detail::same_bytes(&value, detail::all_bits_set(sizeof(T)));
}

}  // namespace course

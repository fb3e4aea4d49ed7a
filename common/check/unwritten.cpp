#include "common/check/unwritten.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

namespace course {
namespace {

constexpr std::uint32_t kFloat = 0xFFBFFFFC;
constexpr std::uint64_t kDouble = 0xFFF7FFFFFFFFFFFC;
constexpr std::uint32_t kGuardOfFloat = 0x7FBF7FBF;
constexpr std::uint64_t kGuardOfDouble = 0x7FF7BFBFBFBFBFBF;
constexpr std::uint16_t kGuardOfHalf = 0x7DBF;
constexpr std::uint16_t kGuardOfBfloat16 = 0x7F9F;

// The mantissa of a quiet NaN in the format of double. Conversion between the formats keeps the
// leading bits.
constexpr int kDoubleMantissa = 52;
constexpr std::uint64_t mantissa_in_double(std::uint64_t bits, int mantissa_bits) {
    const std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
    const std::uint64_t quiet = std::uint64_t{1} << (kDoubleMantissa - 1);
    return mantissa << (kDoubleMantissa - mantissa_bits) | quiet;
}

struct Source {
    NanOrigin origin;
    std::uint64_t mantissa;
};

// Memory filled with a repeated 16-bit pattern, read as half, bfloat16, float and double.
constexpr std::array<Source, 4> of_memory(NanOrigin origin, std::uint64_t bits) {
    const std::uint64_t twice = bits << 16 | bits;
    return {{{origin, mantissa_in_double(twice << 32 | twice, 52)},
             {origin, mantissa_in_double(twice, 23)},
             {origin, mantissa_in_double(bits, 10)},
             {origin, mantissa_in_double(bits, 7)}}};
}

constexpr Source kOutputs[] = {{NanOrigin::kOutput, mantissa_in_double(kDouble, 52)},
                               {NanOrigin::kOutput, mantissa_in_double(kFloat, 23)}};
constexpr auto kShared = of_memory(NanOrigin::kSharedMemory, 0xFFFE);
constexpr auto kDevice = of_memory(NanOrigin::kDeviceMemory, 0xFFFD);
// Only float and double: as 16-bit types, these patterns have the same mantissas as other memory.
constexpr std::array<Source, 6> of_surroundings() {
    std::array<Source, 6> sources{};
    std::size_t next = 0;
    for (const std::uint64_t bits : {0x7FFF, 0x7FFE, 0x7FFD}) {
        const std::uint64_t twice = bits << 16 | bits;
        sources[next++] = {NanOrigin::kOutside, mantissa_in_double(twice << 32 | twice, 52)};
        sources[next++] = {NanOrigin::kOutside, mantissa_in_double(twice, 23)};
    }
    return sources;
}
constexpr auto kSurroundings = of_surroundings();
constexpr Source kGuards[] = {{NanOrigin::kOutside, mantissa_in_double(kGuardOfDouble, 52)},
                              {NanOrigin::kOutside, mantissa_in_double(kGuardOfFloat, 23)},
                              {NanOrigin::kOutside, mantissa_in_double(kGuardOfHalf, 10)},
                              {NanOrigin::kOutside, mantissa_in_double(kGuardOfBfloat16, 7)}};

NanOrigin origin_of_mantissa(std::uint64_t mantissa, int mantissa_bits) {
    const int dropped = kDoubleMantissa - mantissa_bits;
    for (const std::span<const Source> sources :
         {std::span<const Source>(kOutputs), std::span<const Source>(kShared),
          std::span<const Source>(kDevice), std::span<const Source>(kSurroundings),
          std::span<const Source>(kGuards)}) {
        for (const Source& source : sources) {
            if (source.mantissa >> dropped == mantissa >> dropped) return source.origin;
        }
    }
    return NanOrigin::kUnknown;
}

}  // namespace

NanOrigin origin_of_nan(const void* value, std::size_t size) {
    if (size == sizeof(float)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, value, sizeof bits);
        if (!std::isnan(std::bit_cast<float>(bits))) return NanOrigin::kUnknown;
        return origin_of_mantissa(mantissa_in_double(bits, 23), 23);
    }
    if (size == sizeof(double)) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, value, sizeof bits);
        if (!std::isnan(std::bit_cast<double>(bits))) return NanOrigin::kUnknown;
        return origin_of_mantissa(mantissa_in_double(bits, 52), 52);
    }
    return NanOrigin::kUnknown;
}

NanOrigin origin_of_integer(std::uint64_t value) {
    constexpr std::uint32_t kMostCounted =
        0xFFFF;  // the largest count that is still attributed to the fill pattern
    constexpr std::uint32_t kGuardOfIntegers = kGuardByte * 0x01010101U;
    const std::uint64_t high = value >> 32;
    if (static_cast<std::uint32_t>(value) == kGuardOfIntegers &&
        (high == 0 || high == 0xFFFFFFFF || high == kGuardOfIntegers))
        return NanOrigin::kOutside;
    if (high != 0 && high != 0xFFFFFFFF && high != 0xFFFEFFFE && high != 0xFFFDFFFD)
        return NanOrigin::kUnknown;
    const auto low = static_cast<std::uint32_t>(value);
    if (low >= 0xFFFEFFFE && low - 0xFFFEFFFE < kMostCounted) return NanOrigin::kSharedMemory;
    if (low >= 0xFFFDFFFD && low - 0xFFFDFFFD < kMostCounted) return NanOrigin::kDeviceMemory;
    return NanOrigin::kUnknown;
}

namespace detail {
namespace {

template <auto kBits>
std::span<const std::byte> bytes_of() {
    static const auto bytes = std::bit_cast<std::array<std::byte, sizeof kBits>>(kBits);
    return bytes;
}

}  // namespace

std::span<const std::byte> unwritten_float() {
    return bytes_of<kFloat>();
}
std::span<const std::byte> unwritten_double() {
    return bytes_of<kDouble>();
}
std::span<const std::byte> guard_of_float() {
    return bytes_of<kGuardOfFloat>();
}
std::span<const std::byte> guard_of_double() {
    return bytes_of<kGuardOfDouble>();
}
std::span<const std::byte> guard_of_half() {
    return bytes_of<kGuardOfHalf>();
}
std::span<const std::byte> guard_of_bfloat16() {
    return bytes_of<kGuardOfBfloat16>();
}
std::span<const std::byte> guard_of_integer() {
    return bytes_of<std::uint8_t{kGuardByte}>();
}

std::span<const std::byte> all_bits_set(std::size_t size) {
    static const auto bytes = [] {
        std::array<std::byte, 256> all{};
        all.fill(std::byte{0xFF});
        return all;
    }();
    if (size > bytes.size())
        throw std::length_error("all_bits_set: size is " + std::to_string(size) +
                                "; expected at most 256 bytes");
    return std::span(bytes).first(size);
}

bool same_bytes(const void* value, std::span<const std::byte> bytes) {
    return std::memcmp(value, bytes.data(), bytes.size()) == 0;
}

}  // namespace detail
}  // namespace course

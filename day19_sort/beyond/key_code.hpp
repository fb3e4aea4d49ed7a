// Radix sort orders unsigned integers. Other keys are encoded as such, with the same order, and
// decoded in the last pass.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace day19 {

enum class Direction { kAscending, kDescending };

// The code of a key of 32 or 64 bits, given as `Bits`. Four constants describe all types:
//   unsigned integers      as they are
//   signed integers        the sign bit is flipped: negative ones come first
//   floating point         of negative numbers the other bits are flipped as well: the larger their
//                          magnitude, the further in front. NaN with the sign bit would now be the
//                          first codes; subtracting their number moves them behind all others, as
//                          codes wrap. So NaN is last, whatever its sign, and -0 is before +0.
//   descending             the complement of the code
template <class Bits>
struct KeyCode {
    Bits flip_if_negative = 0;  // without the sign bit
    Bits flip = 0;
    Bits subtract = 0;
    Bits complement = 0;  // all bits or none

    __host__ __device__ Bits encode(Bits key) const {
        key ^= negative(key) & flip_if_negative;
        return ((key ^ flip) - subtract) ^ complement;
    }
    __host__ __device__ Bits decode(Bits code) const {
        const Bits key = ((code ^ complement) + subtract) ^ flip;
        return key ^ (negative(key) & flip_if_negative);
    }
    __host__ __device__ bool is_identity() const { return (flip | complement) == 0; }

  private:
    static constexpr int kSignBit = 8 * static_cast<int>(sizeof(Bits)) - 1;
    // All bits of a negative number, or none.
    static __host__ __device__ Bits negative(Bits key) { return Bits{0} - (key >> kSignBit); }
};

template <class Key>
using BitsOf = std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t>;

template <class Key>
KeyCode<BitsOf<Key>> key_code(Direction direction) {
    using Bits = BitsOf<Key>;
    static_assert(sizeof(Key) == sizeof(Bits));
    constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
    KeyCode<Bits> code;
    if constexpr (std::is_floating_point_v<Key>) {
        constexpr int kMantissaBits = std::numeric_limits<Key>::digits - 1;
        code = {.flip_if_negative = kSign - 1, .flip = kSign, .subtract = (Bits{1} << kMantissaBits) - 1};
    } else if constexpr (std::is_signed_v<Key>) {
        code.flip = kSign;
    }
    if (direction == Direction::kDescending) code.complement = ~Bits{0};
    return code;
}

}  // namespace day19

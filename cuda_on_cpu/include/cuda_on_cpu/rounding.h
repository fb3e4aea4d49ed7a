// Rounding in the mode of CUDA's suffixes (_rn, _rz, _ru, _rd), protected from the optimiser.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// The rounding mode of conversions that take it as an argument.
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

namespace cuda_on_cpu {

enum class Rounding {
    kNearest = FE_TONEAREST,
    kTowardZero = FE_TOWARDZERO,
    kUp = FE_UPWARD,
    kDown = FE_DOWNWARD,
};

#if defined(__x86_64__)
#define CUDA_ON_CPU_FLOAT_REGISTER "+x"
#elif defined(__aarch64__)
#define CUDA_ON_CPU_FLOAT_REGISTER "+w"
#else
#define CUDA_ON_CPU_FLOAT_REGISTER "+m"
#endif

// Returns the value unchanged, but prevents the compiler from fusing a product that passed through
// here with a later sum. (__builtin_assoc_barrier has this purpose, but g++ 12 drops it in loops
// that it vectorises.)
template <class Real>
Real unfused(Real value) {
    __asm__("" : CUDA_ON_CPU_FLOAT_REGISTER(value));
    return value;
}

// Returns the value unchanged, but hides it from the optimiser, and keeps its computation in place,
// between the changes of the rounding mode around it.
template <class Real>
Real pinned(Real value) {
    __asm__ volatile("" : CUDA_ON_CPU_FLOAT_REGISTER(value) : : "memory");
    return value;
}
#undef CUDA_ON_CPU_FLOAT_REGISTER

// Sets the processor's rounding mode for the lifetime of the object.
class RoundingScope {
  public:
    explicit RoundingScope(Rounding mode) : saved_(std::fegetround()) {
        std::fesetround(static_cast<int>(mode));
    }
    ~RoundingScope() { std::fesetround(saved_); }
    RoundingScope(const RoundingScope&) = delete;
    RoundingScope& operator=(const RoundingScope&) = delete;

  private:
    int saved_;
};

// operation(operands...), one rounding of the exact result in the given mode.
template <Rounding mode, class Operation, class... Real>
auto rounded(Operation operation, Real... operands) {
    if constexpr (mode == Rounding::kNearest) {
        return unfused(operation(operands...));
    } else {
        const RoundingScope scope(mode);
        return pinned(operation(pinned(operands)...));
    }
}

// The exact value rounded in the given mode. It is computed from the nearest representable number
// and the side of the exact value on which that number lies.
template <Rounding mode, class Real>
Real directed(Real nearest, bool above_exact, bool below_exact) {
    constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    const bool away_from_zero = nearest > 0 ? above_exact : below_exact;
    if (mode == Rounding::kUp && below_exact) return std::nextafter(nearest, kInfinity);
    if (mode == Rounding::kDown && above_exact) return std::nextafter(nearest, -kInfinity);
    if (mode == Rounding::kTowardZero && away_from_zero) return std::nextafter(nearest, Real{0});
    return nearest;
}

template <Rounding mode>
float to_float(double value) {
    const float nearest = static_cast<float>(value);
    return directed<mode>(nearest, nearest > value, nearest < value);
}

template <class Real, Rounding mode, class Integer>
Real from_integer(Integer value) {
    // Holds every 64-bit integer, signed or not, and its rounded value.
    __extension__ using Wide = __int128;
    const Real nearest = static_cast<Real>(value);
    const Wide rounded_value = static_cast<Wide>(nearest);
    return directed<mode>(nearest, rounded_value > value, rounded_value < value);
}

template <Rounding mode, class Real>
Real to_whole(Real value) {
    if constexpr (mode == Rounding::kNearest) return std::nearbyint(value);
    if constexpr (mode == Rounding::kTowardZero) return std::trunc(value);
    if constexpr (mode == Rounding::kUp) return std::ceil(value);
    if constexpr (mode == Rounding::kDown) return std::floor(value);
}

// Saturates, as a GPU does where C++ leaves the result undefined. NaN gives 0, or only the top bit
// set if the source or the destination has 64 bits (PTX ISA, cvt).
template <class Integer, Rounding mode, class Real>
Integer to_integer(Real value) {
    using Limits = std::numeric_limits<Integer>;
    constexpr Real kAboveMax = static_cast<Real>(Limits::max() / 2 + 1) * 2;
    if (std::isnan(value)) {
        using Bits = std::make_unsigned_t<Integer>;
        constexpr Bits kTopBit = Bits{1} << (8 * sizeof(Integer) - 1);
        return sizeof(Real) == 8 || sizeof(Integer) == 8 ? static_cast<Integer>(kTopBit) : Integer{0};
    }
    const Real whole = to_whole<mode>(value);
    if (whole >= kAboveMax) return Limits::max();
    if (whole <= static_cast<Real>(Limits::min())) return Limits::min();
    return static_cast<Integer>(whole);
}

}  // namespace cuda_on_cpu

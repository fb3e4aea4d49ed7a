// Random numbers with the same bits from every compiler, on the host and in a kernel. The standard
// library guarantees that for its engines but not for its distributions. Here both are written with
// integer arithmetic and correctly rounded operations.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

namespace course {

// SplitMix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014, with the constants of S. Vigna's splitmix64.c. Its state is a counter, so every
// position of the sequence is directly accessible: Random(seed, i) in thread i continues the
// sequence of Random(seed) after i numbers.
class Random {
  public:
    __host__ __device__ explicit Random(std::uint64_t seed, std::uint64_t position = 0)
        : state_(seed + position * kStep) {}

    // 64 random bits.
    __host__ __device__ std::uint64_t next() {
        state_ += kStep;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    // An integer in [0, bound), each equally likely; 0 for bound 0. D. Lemire, "Fast random integer
    // generation in an interval", 2019: the high half of a product, and a new draw for the few
    // values that would make some results more likely.
    __host__ __device__ std::uint32_t below(std::uint32_t bound) {
        if (bound == 0) return 0;
        const std::uint32_t unfair = (0u - bound) % bound;
        std::uint64_t product = 0;
        do {
            product = (next() >> 32) * bound;
        } while (static_cast<std::uint32_t>(product) < unfair);
        return static_cast<std::uint32_t>(product >> 32);
    }

    // An integer in [low, high], both included; low <= high.
    __host__ __device__ std::int32_t integer(std::int32_t low, std::int32_t high) {
        const auto choices = static_cast<std::uint32_t>(static_cast<std::int64_t>(high) - low + 1);
        const std::uint32_t offset = choices == 0 ? static_cast<std::uint32_t>(next() >> 32) : below(choices);
        return static_cast<std::int32_t>(low + static_cast<std::int64_t>(offset));
    }

    // A float in [low, high), low < high, from 24 random bits. Only a fused multiply-add rounds,
    // which gives the same result everywhere; `low + u * width` would be fused by some compilers
    // and not by others. A value that rounds up to `high` is drawn again.
    __host__ __device__ float uniform(float low, float high) {
        const double width = static_cast<double>(high) - static_cast<double>(low);
        float value = high;
        while (value >= high) {
            const double unit = static_cast<double>(next() >> 40) * 0x1p-24;
            value = static_cast<float>(::fma(unit, width, static_cast<double>(low)));
        }
        return value;
    }

    // Mean 0, variance 1, nearly normal: the sum of twelve uniform 21-bit integers, centred and
    // scaled, exact in a float. It needs no logarithm or cosine, whose last bit would depend on
    // the library. All numbers are within +-6.
    __host__ __device__ float normal() {
        constexpr std::uint64_t kChunk = (1u << 21) - 1;
        std::int32_t sum = 0;
        for (int draw = 0; draw < 4; ++draw) {
            const std::uint64_t bits = next();
            sum += static_cast<std::int32_t>((bits & kChunk) + (bits >> 21 & kChunk) + (bits >> 42 & kChunk));
        }
        const std::int32_t centred = sum - 6 * static_cast<std::int32_t>(kChunk);
        return static_cast<float>(centred) * 0x1p-21f;
    }

  private:
    static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;

    std::uint64_t state_;
};

}  // namespace course

// DPX functions, the inner loops of dynamic programming (Smith-Waterman, Floyd-Warshall): minima
// and maxima of sums and of three numbers. They take a 32-bit number, signed or unsigned, or two
// 16-bit numbers in the halves of a word (x2). Sums wrap. With relu, negative results become 0.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/intrinsics.h"

namespace cuda_on_cpu {

// Applies the operation to whole words, or to their halves.
template <class Lane, class Operation, class Word, class... Words>
Word dpx(Operation operation, Word word, Words... words) {
    if constexpr (sizeof(Lane) == sizeof(Word)) {
        return operation(word, words...);
    } else {
        const auto on_lanes = [&](auto... lanes) { return operation(static_cast<Lane>(lanes)...); };
        return lanewise<Lane>(on_lanes, word, words...);
    }
}

template <class Lane>
Lane wrapped_sum(Lane a, Lane b) {
    using Bits = std::make_unsigned_t<Lane>;
    return static_cast<Lane>(static_cast<Bits>(static_cast<Bits>(a) + static_cast<Bits>(b)));
}

template <class Lane, class... Lanes>
Lane largest(Lane first, Lanes... others) {
    ((first = others > first ? others : first), ...);
    return first;
}
template <class Lane, class... Lanes>
Lane smallest(Lane first, Lanes... others) {
    ((first = others < first ? others : first), ...);
    return first;
}

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_DPX_2(name, Word, Lane, expression)                                                   \
    inline Word name(Word word_a, Word word_b) {                                                          \
        return cuda_on_cpu::dpx<Lane>([](Lane a, Lane b) -> Lane { return expression; }, word_a, word_b); \
    }
#define CUDA_ON_CPU_DPX_3(name, Word, Lane, expression)                                                  \
    inline Word name(Word word_a, Word word_b, Word word_c) {                                            \
        return cuda_on_cpu::dpx<Lane>([](Lane a, Lane b, Lane c) -> Lane { return expression; }, word_a, \
                                      word_b, word_c);                                                   \
    }

#define CUDA_ON_CPU_DPX(type, Word, Lane)                                             \
    CUDA_ON_CPU_DPX_3(__viaddmax_##type, Word, Lane,                                  \
                      cuda_on_cpu::largest(cuda_on_cpu::wrapped_sum<Lane>(a, b), c))  \
    CUDA_ON_CPU_DPX_3(__viaddmin_##type, Word, Lane,                                  \
                      cuda_on_cpu::smallest(cuda_on_cpu::wrapped_sum<Lane>(a, b), c)) \
    CUDA_ON_CPU_DPX_3(__vimax3_##type, Word, Lane, cuda_on_cpu::largest(a, b, c))     \
    CUDA_ON_CPU_DPX_3(__vimin3_##type, Word, Lane, cuda_on_cpu::smallest(a, b, c))
#define CUDA_ON_CPU_DPX_RELU(type, Word, Lane)                                                         \
    CUDA_ON_CPU_DPX_3(__viaddmax_##type##_relu, Word, Lane,                                            \
                      cuda_on_cpu::largest(cuda_on_cpu::wrapped_sum<Lane>(a, b), c, Lane{0}))          \
    CUDA_ON_CPU_DPX_3(                                                                                 \
        __viaddmin_##type##_relu, Word, Lane,                                                          \
        cuda_on_cpu::largest(cuda_on_cpu::smallest(cuda_on_cpu::wrapped_sum<Lane>(a, b), c), Lane{0})) \
    CUDA_ON_CPU_DPX_3(__vimax3_##type##_relu, Word, Lane, cuda_on_cpu::largest(a, b, c, Lane{0}))      \
    CUDA_ON_CPU_DPX_3(__vimin3_##type##_relu, Word, Lane,                                              \
                      cuda_on_cpu::largest(cuda_on_cpu::smallest(a, b, c), Lane{0}))                   \
    CUDA_ON_CPU_DPX_2(__vimax_##type##_relu, Word, Lane, cuda_on_cpu::largest(a, b, Lane{0}))          \
    CUDA_ON_CPU_DPX_2(__vimin_##type##_relu, Word, Lane,                                               \
                      cuda_on_cpu::largest(cuda_on_cpu::smallest(a, b), Lane{0}))
// Also returns which operand was chosen: for the maximum, a if a >= b; for the minimum, a if a <=
// b.
#define CUDA_ON_CPU_DPX_CHOOSE(name, type, Word, relation)     \
    inline Word name##_##type(Word a, Word b, bool* chose_a) { \
        *chose_a = a relation b;                               \
        return *chose_a ? a : b;                               \
    }
#define CUDA_ON_CPU_DPX_CHOOSE_HALVES(name, type, Lane, relation)                                          \
    inline unsigned int name##_##type(unsigned int a, unsigned int b, bool* chose_high, bool* chose_low) { \
        *chose_high = static_cast<Lane>(a >> 16) relation static_cast<Lane>(b >> 16);                      \
        *chose_low = static_cast<Lane>(a) relation static_cast<Lane>(b);                                   \
        return ((*chose_high ? a : b) & 0xffff0000u) | ((*chose_low ? a : b) & 0xffffu);                   \
    }

CUDA_ON_CPU_DPX(s32, int, int)
CUDA_ON_CPU_DPX(u32, unsigned int, unsigned int)
CUDA_ON_CPU_DPX(s16x2, unsigned int, std::int16_t)
CUDA_ON_CPU_DPX(u16x2, unsigned int, std::uint16_t)
CUDA_ON_CPU_DPX_RELU(s32, int, int)
CUDA_ON_CPU_DPX_RELU(s16x2, unsigned int, std::int16_t)
CUDA_ON_CPU_DPX_CHOOSE(__vibmax, s32, int, >=)
CUDA_ON_CPU_DPX_CHOOSE(__vibmax, u32, unsigned int, >=)
CUDA_ON_CPU_DPX_CHOOSE(__vibmin, s32, int, <=)
CUDA_ON_CPU_DPX_CHOOSE(__vibmin, u32, unsigned int, <=)
CUDA_ON_CPU_DPX_CHOOSE_HALVES(__vibmax, s16x2, std::int16_t, >=)
CUDA_ON_CPU_DPX_CHOOSE_HALVES(__vibmax, u16x2, std::uint16_t, >=)
CUDA_ON_CPU_DPX_CHOOSE_HALVES(__vibmin, s16x2, std::int16_t, <=)
CUDA_ON_CPU_DPX_CHOOSE_HALVES(__vibmin, u16x2, std::uint16_t, <=)
#undef CUDA_ON_CPU_DPX_CHOOSE_HALVES
#undef CUDA_ON_CPU_DPX_CHOOSE
#undef CUDA_ON_CPU_DPX_RELU
#undef CUDA_ON_CPU_DPX
#undef CUDA_ON_CPU_DPX_3
#undef CUDA_ON_CPU_DPX_2

// Skips of random number generators: a step is a matrix, so many steps are a power of it.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

// Marsaglia's xorshift of 160 bits: skips `count` times 2^power steps, power + 64 at most 160.
void skip_xorwow(std::uint32_t (&words)[5], std::uint64_t count, unsigned power);

// L'Ecuyer's MRG32k3a: skips `count` times 2^power steps, power + 64 at most 192.
void skip_mrg32k3a(std::uint32_t (&first)[3], std::uint32_t (&second)[3], std::uint64_t count,
                   unsigned power);

}  // namespace cuda_on_cpu

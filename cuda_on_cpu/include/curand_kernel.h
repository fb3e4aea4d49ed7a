// cuRAND's generators for kernels: XORWOW (curandState), Philox4x32-10 and MRG32k3a, which give
// NVIDIA's numbers. Integers and uniform numbers are bit-identical; normal numbers differ in the
// last bits, because sine, cosine and logarithm do. Poisson numbers have the right distribution but
// are different numbers.
#pragma once

#define CURAND_KERNEL_H_  // the include guard of NVIDIA's header, for which programs test

#include <math.h>

#include <cstdint>

#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/random_skip.h"
#include "vector_functions.h"
#include "vector_types.h"

// --- States --------------------------------------------------------------------------------------------------------------

// Normal numbers are generated in pairs: the second one is kept for the next call of the same
// function.
enum curandKept { CURAND_KEPT_NOTHING, CURAND_KEPT_NORMAL, CURAND_KEPT_LOG_NORMAL };
struct curandKeptNormal {
    curandKept float_kind, double_kind;
    float kept_float;
    double kept_double;
};

struct curandStateXORWOW {
    std::uint32_t counter;
    std::uint32_t words[5];
    curandKeptNormal normal;
};
struct curandStatePhilox4_32_10 {
    // A 128-bit counter: x, y count blocks of four numbers; z, w are the subsequence.
    uint4 counter;
    uint2 key;
    uint4 block;
    // Index in `block`.
    unsigned next;
    curandKeptNormal normal;
};
struct curandStateMRG32k3a {
    std::uint32_t first[3], second[3];
    curandKeptNormal normal;
};

using curandStateXORWOW_t = curandStateXORWOW;
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
using curandStateMRG32k3a_t = curandStateMRG32k3a;
using curandState_t = curandStateXORWOW;
using curandState = curandStateXORWOW;

#define CURAND_2POW32_INV (2.3283064e-10f)
#define CURAND_2POW32_INV_DOUBLE (2.3283064365386963e-10)
#define CURAND_2POW53_INV_DOUBLE (1.1102230246251565e-16)

// --- XORWOW (Marsaglia, 2003): xorshift of 160 bits, plus a counter ---------------------------------------------------------

__device__ inline unsigned curand(curandStateXORWOW* state) {
    std::uint32_t* v = state->words;
    const std::uint32_t t = v[0] ^ (v[0] >> 2);
    v[0] = v[1];
    v[1] = v[2];
    v[2] = v[3];
    v[3] = v[4];
    v[4] = (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1));
    state->counter += 362437;
    return v[4] + state->counter;
}

__device__ inline void skipahead(unsigned long long steps, curandStateXORWOW* state) {
    cuda_on_cpu::skip_xorwow(state->words, steps, 0);
    state->counter += 362437u * static_cast<std::uint32_t>(steps);
}

// A subsequence has 2^67 numbers.
__device__ inline void skipahead_sequence(unsigned long long subsequences, curandStateXORWOW* state) {
    cuda_on_cpu::skip_xorwow(state->words, subsequences, 67);
}

__device__ inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                                   unsigned long long offset, curandStateXORWOW* state) {
    const std::uint32_t low = static_cast<std::uint32_t>(seed) ^ 0xaad26b49u;
    const std::uint32_t high = static_cast<std::uint32_t>(seed >> 32) ^ 0xf7dcefddu;
    const std::uint32_t a = 1099087573u * low, b = 2591861531u * high;
    *state = {
        6615241u + b + a, {123456789u + a, 362436069u ^ a, 521288629u + b, 88675123u ^ b, 5783321u + a}, {}};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

// --- Philox4x32-10 (Salmon et al., 2011) ---------------------------------------------------------------------------------------

__device__ inline uint4 curand_Philox4x32_10(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t first = std::uint64_t{0xD2511F53u} * counter.x;
        const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * counter.z;
        counter = {static_cast<unsigned>(second >> 32) ^ counter.y ^ key.x, static_cast<unsigned>(second),
                   static_cast<unsigned>(first >> 32) ^ counter.w ^ key.y, static_cast<unsigned>(first)};
        key = {key.x + 0x9E3779B9u, key.y + 0xBB67AE85u};
    }
    return counter;
}

__device__ inline void skipahead_sequence(unsigned long long subsequences, curandStatePhilox4_32_10* state) {
    const std::uint64_t high =
        (std::uint64_t{state->counter.w} << 32 | state->counter.z) + static_cast<std::uint64_t>(subsequences);
    state->counter.z = static_cast<unsigned>(high);
    state->counter.w = static_cast<unsigned>(high >> 32);
    state->block = curand_Philox4x32_10(state->counter, state->key);
}

// Skips whole blocks of four numbers.
__device__ inline void curand_skip_blocks(std::uint64_t blocks, curandStatePhilox4_32_10* state) {
    const std::uint64_t old = std::uint64_t{state->counter.y} << 32 | state->counter.x;
    const std::uint64_t low = old + blocks;
    state->counter.x = static_cast<unsigned>(low);
    state->counter.y = static_cast<unsigned>(low >> 32);
    skipahead_sequence(low < old ? 1 : 0, state);
}

__device__ inline void skipahead(unsigned long long steps, curandStatePhilox4_32_10* state) {
    const unsigned next = state->next + static_cast<unsigned>(steps & 3);
    state->next = next & 3;
    curand_skip_blocks(steps / 4 + next / 4, state);
}

__device__ inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                                   unsigned long long offset, curandStatePhilox4_32_10* state) {
    *state = {{}, {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)}, {}, 0, {}};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

__device__ inline unsigned curand(curandStatePhilox4_32_10* state) {
    const unsigned all[] = {state->block.x, state->block.y, state->block.z, state->block.w};
    const unsigned number = all[state->next++];
    if (state->next == 4) {
        state->next = 0;
        curand_skip_blocks(1, state);
    }
    return number;
}

// Returns the next four numbers.
__device__ inline uint4 curand4(curandStatePhilox4_32_10* state) {
    const uint4 now = state->block;
    curand_skip_blocks(1, state);
    const uint4 then = state->block;
    switch (state->next) {
        case 1:
            return {now.y, now.z, now.w, then.x};
        case 2:
            return {now.z, now.w, then.x, then.y};
        case 3:
            return {now.w, then.x, then.y, then.z};
        default:
            return now;
    }
}

// --- MRG32k3a (L'Ecuyer, 1999) ---------------------------------------------------------------------------------------------------

// Returns a number in 1 .. 4294967087.
__device__ inline double curand_MRG32k3a(curandStateMRG32k3a* state) {
    constexpr std::int64_t kModulus1 = 4294967087, kModulus2 = 4294944443;
    std::uint32_t *a = state->first, *b = state->second;
    std::int64_t p = (std::int64_t{1403580} * a[1] - std::int64_t{810728} * a[0]) % kModulus1;
    std::int64_t q = (std::int64_t{527612} * b[2] - std::int64_t{1370589} * b[0]) % kModulus2;
    p += p < 0 ? kModulus1 : 0;
    q += q < 0 ? kModulus2 : 0;
    a[0] = a[1];
    a[1] = a[2];
    a[2] = static_cast<std::uint32_t>(p);
    b[0] = b[1];
    b[1] = b[2];
    b[2] = static_cast<std::uint32_t>(q);
    return static_cast<double>(p > q ? p - q : p - q + kModulus1);
}

// Scaled to 32 bits.
__device__ inline unsigned curand(curandStateMRG32k3a* state) {
    return static_cast<unsigned>(curand_MRG32k3a(state) * 1.000000048662);
}

__device__ inline void skipahead(unsigned long long steps, curandStateMRG32k3a* state) {
    cuda_on_cpu::skip_mrg32k3a(state->first, state->second, steps, 0);
}
__device__ inline void skipahead_subsequence(unsigned long long subsequences, curandStateMRG32k3a* state) {
    cuda_on_cpu::skip_mrg32k3a(state->first, state->second, subsequences, 76);
}
__device__ inline void skipahead_sequence(unsigned long long sequences, curandStateMRG32k3a* state) {
    cuda_on_cpu::skip_mrg32k3a(state->first, state->second, sequences, 127);
}

__device__ inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                                   unsigned long long offset, curandStateMRG32k3a* state) {
    constexpr std::uint64_t kModulus1 = 4294967087, kModulus2 = 4294944443;
    *state = {{12345, 12345, 12345}, {12345, 12345, 12345}, {}};
    if (seed != 0) {
        const std::uint64_t low = static_cast<std::uint32_t>(seed) ^ 0x55555555u;
        const std::uint64_t high = static_cast<std::uint32_t>(seed >> 32) ^ 0xAAAAAAAAu;
        for (int i = 0; i < 3; ++i) {
            state->first[i] =
                static_cast<std::uint32_t>((i % 2 == 0 ? low : high) * state->first[i] % kModulus1);
            state->second[i] =
                static_cast<std::uint32_t>((i % 2 == 0 ? high : low) * state->second[i] % kModulus2);
        }
    }
    skipahead_subsequence(subsequence, state);
    skipahead(offset, state);
}

// --- Uniform numbers in (0, 1] -----------------------------------------------------------------------------------------------

__device__ inline float curand_uniform_of(unsigned x) {
    return x * CURAND_2POW32_INV + CURAND_2POW32_INV / 2;
}
// With 53 random bits.
__device__ inline double curand_uniform_of(unsigned low, unsigned high) {
    const std::uint64_t bits = low ^ std::uint64_t{high} << 21;
    return static_cast<double>(bits) * CURAND_2POW53_INV_DOUBLE + CURAND_2POW53_INV_DOUBLE / 2;
}

template <class State>
__device__ float curand_uniform(State* state) {
    return curand_uniform_of(curand(state));
}
template <class State>
__device__ double curand_uniform_double(State* state) {
    const unsigned low = curand(state);
    return curand_uniform_of(low, curand(state));
}

// With 32 random bits.
__device__ inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
    return curand(state) * CURAND_2POW32_INV_DOUBLE + CURAND_2POW32_INV_DOUBLE;
}
__device__ inline double curand_uniform_double(curandStateMRG32k3a* state) {
    return curand_MRG32k3a(state) * 2.3283065498378288e-10;
}
__device__ inline float curand_uniform(curandStateMRG32k3a* state) {
    return static_cast<float>(curand_uniform_double(state));
}

__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
    const uint4 x = curand4(state);
    return {curand_uniform_of(x.x), curand_uniform_of(x.y), curand_uniform_of(x.z), curand_uniform_of(x.w)};
}
__device__ inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
    const uint4 x = curand4(state);
    return {curand_uniform_of(x.x, x.y), curand_uniform_of(x.z, x.w)};
}
__device__ inline double4 curand_uniform4_double(curandStatePhilox4_32_10* state) {
    const double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
    return {a.x, a.y, b.x, b.y};
}

// --- Normal numbers: pairs, by the method of Box and Muller -----------------------------------------------------------------------

__device__ inline float2 curand_box_muller(unsigned x, unsigned y) {
    constexpr float kTwoPi = 6.2831855f * CURAND_2POW32_INV;
    const float radius = sqrtf(-2 * logf(x * CURAND_2POW32_INV + CURAND_2POW32_INV / 2));
    const float angle = y * kTwoPi + kTwoPi / 2;
    return {sinf(angle) * radius, cosf(angle) * radius};
}
__device__ inline double2 curand_box_muller_double(unsigned x_low, unsigned x_high, unsigned y_low,
                                                   unsigned y_high) {
    constexpr double kPi = 3.14159265358979323846;
    const double radius = sqrt(-2 * log(curand_uniform_of(x_low, x_high)));
    const double angle = 2 * kPi * curand_uniform_of(y_low, y_high);
    return {sin(angle) * radius, cos(angle) * radius};
}

template <class State>
__device__ float2 curand_normal2(State* state) {
    const unsigned x = curand(state);
    return curand_box_muller(x, curand(state));
}
template <class State>
__device__ double2 curand_normal2_double(State* state) {
    const unsigned a = curand(state), b = curand(state), c = curand(state);
    return curand_box_muller_double(a, b, c, curand(state));
}
__device__ inline double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
    const uint4 x = curand4(state);
    return curand_box_muller_double(x.x, x.y, x.z, x.w);
}
__device__ inline float2 curand_normal2(curandStateMRG32k3a* state) {
    const float x = curand_uniform(state), angle = curand_uniform(state) * 6.2831855f;
    const float radius = sqrtf(-2 * logf(x));
    return {sinf(angle) * radius, cosf(angle) * radius};
}
__device__ inline double2 curand_normal2_double(curandStateMRG32k3a* state) {
    const double x = curand_uniform_double(state),
                 angle = curand_uniform_double(state) * 6.28318530717958647692;
    const double radius = sqrt(-2 * log(x));
    return {sin(angle) * radius, cos(angle) * radius};
}
__device__ inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
    const uint4 x = curand4(state);
    const float2 a = curand_box_muller(x.x, x.y), b = curand_box_muller(x.z, x.w);
    return {a.x, a.y, b.x, b.y};
}
__device__ inline double4 curand_normal4_double(curandStatePhilox4_32_10* state) {
    const double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
    return {a.x, a.y, b.x, b.y};
}

// `make` returns a pair of numbers of this kind.
template <class Make>
__device__ float curand_one_of_pair(curandKeptNormal& normal, curandKept kind, Make make) {
    if (normal.float_kind == kind) {
        normal.float_kind = CURAND_KEPT_NOTHING;
        return normal.kept_float;
    }
    const float2 pair = make();
    normal.float_kind = kind;
    normal.kept_float = pair.y;
    return pair.x;
}
template <class Make>
__device__ double curand_one_of_double_pair(curandKeptNormal& normal, curandKept kind, Make make) {
    if (normal.double_kind == kind) {
        normal.double_kind = CURAND_KEPT_NOTHING;
        return normal.kept_double;
    }
    const double2 pair = make();
    normal.double_kind = kind;
    normal.kept_double = pair.y;
    return pair.x;
}

template <class State>
__device__ float2 curand_log_normal2(State* state, float mean, float stddev) {
    const float2 pair = curand_normal2(state);
    return {expf(mean + stddev * pair.x), expf(mean + stddev * pair.y)};
}
template <class State>
__device__ double2 curand_log_normal2_double(State* state, double mean, double stddev) {
    const double2 pair = curand_normal2_double(state);
    return {exp(mean + stddev * pair.x), exp(mean + stddev * pair.y)};
}
template <class State>
__device__ float curand_normal(State* state) {
    return curand_one_of_pair(state->normal, CURAND_KEPT_NORMAL, [=] { return curand_normal2(state); });
}
template <class State>
__device__ double curand_normal_double(State* state) {
    return curand_one_of_double_pair(state->normal, CURAND_KEPT_NORMAL,
                                     [=] { return curand_normal2_double(state); });
}
template <class State>
__device__ float curand_log_normal(State* state, float mean, float stddev) {
    return curand_one_of_pair(state->normal, CURAND_KEPT_LOG_NORMAL,
                              [=] { return curand_log_normal2(state, mean, stddev); });
}
template <class State>
__device__ double curand_log_normal_double(State* state, double mean, double stddev) {
    return curand_one_of_double_pair(state->normal, CURAND_KEPT_LOG_NORMAL,
                                     [=] { return curand_log_normal2_double(state, mean, stddev); });
}
__device__ inline float4 curand_log_normal4(curandStatePhilox4_32_10* state, float mean, float stddev) {
    const float4 x = curand_normal4(state);
    return {expf(mean + stddev * x.x), expf(mean + stddev * x.y), expf(mean + stddev * x.z),
            expf(mean + stddev * x.w)};
}

// --- Poisson numbers: by Knuth's products, above 30 by Hörmann's transformed rejection (PTRS, 1993) -------------------------------

template <class State>
__device__ unsigned curand_poisson(State* state, double lambda) {
    if (lambda < 30) {
        const double limit = exp(-lambda);
        unsigned count = 0;
        for (double product = curand_uniform_double(state); product > limit;
             product *= curand_uniform_double(state))
            ++count;
        return count;
    }
    const double b = 0.931 + 2.53 * sqrt(lambda), a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accept = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = curand_uniform_double(state) - 0.5, v = curand_uniform_double(state);
        const double distance = 0.5 - fabs(u);
        const double k = floor((2 * a / distance + b) * u + lambda + 0.43);
        if (distance >= 0.07 && v <= accept) return static_cast<unsigned>(k);
        if (k < 0 || (distance < 0.013 && v > distance)) continue;
        if (log(v) + log(inverse_alpha) - log(a / (distance * distance) + b) <=
            -lambda + k * log(lambda) - lgamma(k + 1))
            return static_cast<unsigned>(k);
    }
}
__device__ inline uint4 curand_poisson4(curandStatePhilox4_32_10* state, double lambda) {
    const unsigned a = curand_poisson(state, lambda), b = curand_poisson(state, lambda),
                   c = curand_poisson(state, lambda);
    return {a, b, c, curand_poisson(state, lambda)};
}

// --- Sobol's quasirandom sequences. One dimension has a vector of directions: curandGetDirectionVectors32 of curand.h gives those of 21 dimensions --------

template <class Word>
struct curandStateSobol {
    Word directions[8 * sizeof(Word)];
    unsigned long long next;  // the number of the next point
};
using curandStateSobol32 = curandStateSobol<unsigned>;
using curandStateSobol64 = curandStateSobol<unsigned long long>;
using curandStateSobol32_t = curandStateSobol32;
using curandStateSobol64_t = curandStateSobol64;

template <class Word>
__device__ void curand_init(const Word* directions, unsigned offset, curandStateSobol<Word>* state) {
    for (unsigned i = 0; i < 8 * sizeof(Word); ++i)
        state->directions[i] = directions[i];
    state->next = offset;
}
template <class Word>
__device__ Word curand(curandStateSobol<Word>* state) {
    const unsigned long long gray = state->next ^ (state->next >> 1);
    ++state->next;
    Word x = 0;
    for (unsigned i = 0; i < 8 * sizeof(Word); ++i)
        x ^= (gray >> i & 1) != 0 ? state->directions[i] : 0;
    return x;
}
template <class Word>
__device__ void skipahead(unsigned long long steps, curandStateSobol<Word>* state) {
    state->next += steps;
}
template <class Word>
__device__ float curand_uniform(curandStateSobol<Word>* state) {
    return curand_uniform_of(static_cast<unsigned>(curand(state) >> (8 * sizeof(Word) - 32)));
}
__device__ inline double curand_uniform_double(curandStateSobol32* state) {
    return curand(state) * CURAND_2POW32_INV_DOUBLE + CURAND_2POW32_INV_DOUBLE;
}
__device__ inline double curand_uniform_double(curandStateSobol64* state) {
    return static_cast<double>(curand(state) >> 11) * CURAND_2POW53_INV_DOUBLE + CURAND_2POW53_INV_DOUBLE / 2;
}
template <class Word>
__device__ float curand_normal(curandStateSobol<Word>* state) {
    return normcdfinvf(curand_uniform(state));
}
template <class Word>
__device__ double curand_normal_double(curandStateSobol<Word>* state) {
    return normcdfinv(curand_uniform_double(state));
}

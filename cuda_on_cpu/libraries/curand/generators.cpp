#include "generators.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "curand_kernel.h"

namespace cuda_on_cpu::random {
namespace {

bool comes_in_pairs(Kind kind) {
    return kind == Kind::normal || kind == Kind::normal_double || kind == Kind::log_normal ||
           kind == Kind::log_normal_double;
}

void write(const Request& request, std::size_t i, double value) {
    switch (request.kind) {
        case Kind::integer:
        case Kind::poisson:
            static_cast<unsigned*>(request.output)[i] = static_cast<unsigned>(value);
            break;
        case Kind::uniform:
            static_cast<float*>(request.output)[i] = static_cast<float>(value);
            break;
        case Kind::normal:
            static_cast<float*>(request.output)[i] =
                static_cast<float>(request.mean) +
                static_cast<float>(request.stddev) * static_cast<float>(value);
            break;
        case Kind::log_normal:
            static_cast<float*>(request.output)[i] =
                std::exp(static_cast<float>(request.mean) +
                         static_cast<float>(request.stddev) * static_cast<float>(value));
            break;
        case Kind::uniform_double:
            static_cast<double*>(request.output)[i] = value;
            break;
        case Kind::normal_double:
            static_cast<double*>(request.output)[i] = request.mean + request.stddev * value;
            break;
        case Kind::log_normal_double:
            static_cast<double*>(request.output)[i] = std::exp(request.mean + request.stddev * value);
    }
}

template <class State>
double one(const Request& request, State& state) {
    switch (request.kind) {
        case Kind::integer:
            return curand(&state);
        case Kind::uniform:
            return curand_uniform(&state);
        case Kind::poisson:
            return curand_poisson(&state, request.mean);
        default:
            return curand_uniform_double(&state);
    }
}

template <class State>
double2 pair(Kind kind, State& state) {
    if (kind == Kind::normal_double || kind == Kind::log_normal_double) return curand_normal2_double(&state);
    const float2 numbers = curand_normal2(&state);
    return {numbers.x, numbers.y};
}

void next_subsequence(curandStateXORWOW* state) {
    skipahead_sequence(1, state);
}
void next_subsequence(curandStateMRG32k3a* state) {
    skipahead_subsequence(1, state);
}

// XORWOW and MRG32k3a: adjacent elements of the array come from adjacent subsequences, in turn. For
// normal numbers both elements of a pair come from one subsequence.
template <class State>
class InTurn : public Generator {
  public:
    InTurn(const Settings& settings, std::size_t subsequences)
        : subsequences_(subsequences), offset_(settings.offset), turn_(settings.offset % subsequences) {
        curand_init(settings.seed, 0, 0, &next_new_);
    }

    void generate(const Request& request) override {
        if (comes_in_pairs(request.kind)) {
            for (std::size_t i = 0; i + 1 < request.count; i += 2) {
                const double2 numbers = pair(request.kind, take());
                write(request, i, numbers.x);
                write(request, i + 1, numbers.y);
            }
            return;
        }
        for (std::size_t i = 0; i < request.count; ++i)
            write(request, i, one(request, take()));
    }

  private:
    State& take() {
        while (states_.size() <= turn_) {
            State state = next_new_;
            const bool passed = states_.size() < offset_ % subsequences_;
            skipahead(offset_ / subsequences_ + (passed ? 1 : 0), &state);
            states_.push_back(state);
            next_subsequence(&next_new_);
        }
        State& state = states_[turn_];
        turn_ = (turn_ + 1) % subsequences_;
        return state;
    }

    std::size_t subsequences_;
    unsigned long long offset_;
    std::size_t turn_;
    // The first number of the first unused subsequence.
    State next_new_;
    std::vector<State> states_;
};

// Philox: four adjacent elements come from one subsequence, and the next four from the next of
// 65536. Four doubles use eight of its integers.
class Philox : public Generator {
  public:
    explicit Philox(const Settings& settings)
        : seed_(settings.seed), position_(settings.offset), taken_(kSubsequences) {
        const std::uint64_t groups = settings.offset / 4;
        for (std::uint64_t i = 0; i < kSubsequences; ++i)
            taken_[i] = 4 * (groups / kSubsequences + (i < groups % kSubsequences ? 1 : 0));
    }

    void generate(const Request& request) override {
        const bool doubles = request.kind == Kind::uniform_double || comes_in_pairs_of_doubles(request.kind);
        double group[4] = {};
        for (std::size_t i = 0; i < request.count; ++i, ++position_) {
            const std::uint64_t subsequence = position_ / 4 % kSubsequences;
            if (i == 0 || position_ % 4 == 0) {
                curandStatePhilox4_32_10 state;
                curand_init(seed_, subsequence, taken_[subsequence], &state);
                fill(request, state, group);
            }
            write(request, i, group[position_ % 4]);
            if (position_ % 4 == 3) taken_[subsequence] += doubles ? 8 : 4;
        }
    }

  private:
    static constexpr std::uint64_t kSubsequences = 65536;

    static bool comes_in_pairs_of_doubles(Kind kind) {
        return kind == Kind::normal_double || kind == Kind::log_normal_double;
    }

    static void fill(const Request& request, curandStatePhilox4_32_10& state, double (&group)[4]) {
        for (int i = 0; i < 4; i += 2) {
            double2 numbers;
            if (comes_in_pairs(request.kind)) {
                numbers = pair(request.kind, state);
            } else if (request.kind == Kind::uniform_double) {
                numbers = curand_uniform2_double(&state);
            } else {
                numbers.x = one(request, state);
                numbers.y = one(request, state);
            }
            group[i] = numbers.x;
            group[i + 1] = numbers.y;
        }
    }

    unsigned long long seed_;
    // Of the next number.
    std::uint64_t position_;
    // Integers used of each subsequence.
    std::vector<std::uint64_t> taken_;
};

// A state with the interface of those in curand_kernel.h.
struct Mersenne {
    std::mt19937 engine;
};
unsigned curand(Mersenne* state) {
    return static_cast<unsigned>(state->engine());
}

class MersenneTwister : public Generator {
  public:
    explicit MersenneTwister(const Settings& settings)
        : state_{std::mt19937(static_cast<std::uint32_t>(settings.seed))} {}

    void generate(const Request& request) override {
        for (std::size_t i = 0; i < request.count; ++i) {
            if (!comes_in_pairs(request.kind)) {
                write(request, i, one(request, state_));
                continue;
            }
            const double2 numbers = pair(request.kind, state_);
            write(request, i, numbers.x);
            if (++i < request.count) write(request, i, numbers.y);
        }
    }

  private:
    Mersenne state_;
};

// --- Sobol's sequences, with the direction numbers of Joe and Kuo (2008) -------------------------

struct Direction {
    unsigned degree;      // of the primitive polynomial
    unsigned polynomial;  // its inner coefficients
    unsigned numbers[7];  // the first `degree` direction numbers
};

constexpr Direction kDirections[kSobolDimensions] = {
    {0, 0, {}},
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
};

template <class Word>
std::vector<Word> direction_vectors(const Direction& direction) {
    constexpr unsigned kBits = 8 * sizeof(Word);
    std::vector<Word> v(kBits);
    for (unsigned i = 0; i < kBits; ++i) {
        const unsigned s = direction.degree;
        if (s == 0) {
            v[i] = Word{1} << (kBits - 1 - i);
        } else if (i < s) {
            v[i] = Word{direction.numbers[i]} << (kBits - 1 - i);
        } else {
            v[i] = v[i - s] ^ (v[i - s] >> s);
            for (unsigned k = 1; k < s; ++k) {
                if ((direction.polynomial >> (s - 1 - k) & 1) != 0) v[i] ^= v[i - k];
            }
        }
    }
    return v;
}

template <class Word>
std::vector<Word> all_directions() {
    std::vector<Word> all;
    for (const Direction& direction : kDirections) {
        const std::vector<Word> one = direction_vectors<Word>(direction);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

// The quantile of the normal distribution for this probability, by Newton's method on the error
// function.
double normal_quantile(double probability) {
    double x = 0;
    for (int i = 0; i < 60; ++i) {
        const double error = 0.5 * std::erfc(-x / std::sqrt(2.0)) - probability;
        const double step = error * std::sqrt(2 * 3.14159265358979323846) * std::exp(x * x / 2);
        x -= std::clamp(step, -1.0, 1.0);
        if (std::abs(step) < 1e-15) break;
    }
    return x;
}

// The first coordinates of all points, then the second coordinates of all points, and so on.
class Sobol : public Generator {
  public:
    explicit Sobol(const Settings& settings)
        : dimensions_(settings.dimensions), next_point_(settings.offset) {}

    void generate(const Request& request) override {
        const std::size_t points = request.count / dimensions_;
        for (unsigned dimension = 0; dimension < dimensions_; ++dimension) {
            const std::uint32_t* vectors = sobol_directions32().data() + 32 * dimension;
            for (std::size_t i = 0; i < points; ++i) {
                const std::uint64_t point = next_point_ + i;
                const std::uint64_t gray = point ^ (point >> 1);
                std::uint32_t x = 0;
                for (unsigned bit = 0; bit < 32; ++bit)
                    x ^= (gray >> bit & 1) != 0 ? vectors[bit] : 0;
                write(request, dimension * points + i, number(request, x));
            }
        }
        next_point_ += points;
    }

  private:
    static double number(const Request& request, std::uint32_t x) {
        if (request.kind == Kind::integer) return x;
        if (request.kind == Kind::uniform) return curand_uniform_of(x);
        const double uniform = x * CURAND_2POW32_INV_DOUBLE + CURAND_2POW32_INV_DOUBLE / 2;
        if (request.kind == Kind::uniform_double) return uniform + CURAND_2POW32_INV_DOUBLE / 2;
        if (request.kind != Kind::poisson) return normal_quantile(uniform);
        double term = std::exp(-request.mean), sum = term;
        unsigned count = 0;
        for (; sum < uniform && count < 10 * request.mean + 100; sum += term)
            term *= request.mean / ++count;
        return count;
    }

    unsigned dimensions_;
    std::uint64_t next_point_;
};

}  // namespace

const std::vector<std::uint32_t>& sobol_directions32() {
    static const auto all = all_directions<std::uint32_t>();
    return all;
}
const std::vector<std::uint64_t>& sobol_directions64() {
    static const auto all = all_directions<std::uint64_t>();
    return all;
}

std::unique_ptr<Generator> make_generator(const Settings& settings) {
    switch (settings.type) {
        case CURAND_RNG_PSEUDO_MRG32K3A:
            return std::make_unique<InTurn<curandStateMRG32k3a>>(
                settings, settings.ordering == CURAND_ORDERING_PSEUDO_LEGACY ? 4096 : 81920);
        case CURAND_RNG_PSEUDO_MTGP32:
        case CURAND_RNG_PSEUDO_MT19937:
            return std::make_unique<MersenneTwister>(settings);
        case CURAND_RNG_PSEUDO_PHILOX4_32_10:
            return std::make_unique<Philox>(settings);
        case CURAND_RNG_QUASI_DEFAULT:
        case CURAND_RNG_QUASI_SOBOL32:
            return std::make_unique<Sobol>(settings);
        default:
            return std::make_unique<InTurn<curandStateXORWOW>>(settings, 4096);
    }
}

}  // namespace cuda_on_cpu::random

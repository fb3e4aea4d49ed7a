// Generators of the host API: which number of which sequence each element of an array is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "curand.h"

namespace cuda_on_cpu::random {

// What is made of the generators' integers.
enum class Kind {
    integer,
    uniform,
    uniform_double,
    normal,
    normal_double,
    log_normal,
    log_normal_double,
    poisson
};

struct Request {
    Kind kind;
    void* output;  // unsigned, float or double, as the kind says
    std::size_t count;
    double mean = 0;  // of Poisson numbers: lambda
    double stddev = 1;
};

class Generator {
  public:
    virtual ~Generator() = default;
    virtual void generate(const Request& request) = 0;
};

struct Settings {
    curandRngType_t type;
    unsigned long long seed = 0;
    unsigned long long offset = 0;
    curandOrdering_t ordering = CURAND_ORDERING_PSEUDO_DEFAULT;
    unsigned dimensions = 1;
};

inline constexpr unsigned kSobolDimensions = 21;

// Of all dimensions, one behind the other.
const std::vector<std::uint32_t>& sobol_directions32();
const std::vector<std::uint64_t>& sobol_directions64();

std::unique_ptr<Generator> make_generator(const Settings& settings);

}  // namespace cuda_on_cpu::random

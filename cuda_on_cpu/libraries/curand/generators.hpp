// Generators of the host API: they map each element of an array to a number of a subsequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "curand.h"

namespace cuda_on_cpu::random {

// The distribution to which the generators' integers are converted.
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
    void* output;  // unsigned, float or double, depending on the kind
    std::size_t count;
    // For Poisson numbers: lambda.
    double mean = 0;
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

// The direction vectors of all dimensions, one dimension after the other.
const std::vector<std::uint32_t>& sobol_directions32();
const std::vector<std::uint64_t>& sobol_directions64();

std::unique_ptr<Generator> make_generator(const Settings& settings);

}  // namespace cuda_on_cpu::random

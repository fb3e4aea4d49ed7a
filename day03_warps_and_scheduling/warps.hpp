// The host API of day 3. The kernels are in warps.cuh, the count of resident blocks in
// occupancy.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/bench/occupancy.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day03 {

// --- Divergence: a polynomial at many points -----------------------------------------------------

inline constexpr std::size_t kCoefficients = 256;

// n points. `terms` (each 0 to 256) and `order` (each point once) are read by the versions with
// loops of unequal length only.
struct Points {
    course::DeviceSpan<const float> x;
    course::DeviceSpan<const int> terms;
    course::DeviceSpan<const int> order;
};

// What a version computes. Versions of one rule have the same results.
enum class Rule {
    kAllTerms,     // all coefficients
    kOddReversed,  // all coefficients; at odd points in reverse order
    kOwnTerms      // point i: the first terms[i]
};

struct Problem {
    std::size_t points = 0;
    double steps = 0;  // of all points together under kOwnTerms
};

// Enqueues y[i] = the polynomial at x[i]. `coefficients` has 256 elements; y has as many as x and
// overlaps no input. Throws std::invalid_argument for a bad argument, CudaError when the launch
// fails.
using Launcher = void (*)(const Points& points, course::DeviceSpan<const float> coefficients,
                          course::DeviceSpan<float> y, cudaStream_t stream);

struct Divergence : course::Version<Launcher, Problem> {
    Rule rule = Rule::kAllTerms;
};
std::span<const Divergence> versions();

// The points from the most terms to the fewest; of equals the first one first.
std::vector<int> longest_first(std::span<const int> terms);

// The reference, in double. magnitude[i] is the sum of the absolute terms, which rounding errors
// are proportional to.
struct Expected {
    std::vector<double> y;
    std::vector<double> magnitude;
};
Expected evaluate_on_cpu(Rule rule, std::span<const float> x, std::span<const int> terms,
                         std::span<const float> coefficients);

// --- Latency: multiply-adds in independent chains ------------------------------------------------

struct ChainsProblem {
    int warps_per_sm = 0;   // 1 to 32, or 64
    int multiply_adds = 0;  // of each thread; a multiple of 8, >= 0
};

// Threads of a grid with this many warps on each SM of the current device.
std::size_t chain_threads(int warps_per_sm);

// Enqueues the kernel; out has an element for each thread. Throws as above.
using ChainsLauncher = void (*)(const ChainsProblem& problem, course::DeviceSpan<float> out,
                                cudaStream_t stream);
struct Chains : course::Version<ChainsLauncher, ChainsProblem> {
    int chains = 1;  // of each thread
};
std::span<const Chains> chains_versions();

// What thread t writes: a whole number, exact in float up to 2^20 multiply-adds.
double chains_on_cpu(int chains, int multiply_adds, std::size_t t);

// --- Occupancy -----------------------------------------------------------------------------------

// Blocks of a kernel that an SM runs at the same time. The block fits on the SM.
int resident_blocks(const course::BlockNeeds& block, const course::MultiprocessorLimits& sm);

// A kernel of this day, built and launched in some way.
struct Residency {
    std::string kernel;
    course::BlockNeeds block;
    int by_hand = 0;     // resident_blocks()
    int by_runtime = 0;  // cudaOccupancyMaxActiveBlocksPerMultiprocessor
};
std::vector<Residency> residencies();

}  // namespace day03

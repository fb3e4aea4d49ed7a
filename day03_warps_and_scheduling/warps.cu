// Day 3's host code: argument checks and the lists of versions. The kernels and their launches are
// in warps.cuh.
#include <array>

#include "common/bench/kernel_resources.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "warps.cuh"
#include "warps.hpp"

namespace day03 {
namespace {

using course::DeviceSpan;
using course::require;

static_assert(kCoefficients == kTerms && kTerms == kBlock, "a thread of a block loads one coefficient");

constexpr std::size_t kMostPoints = std::size_t{1} << 30;  // indices are int

void check_arguments(const Points& points, DeviceSpan<const float> coefficients, DeviceSpan<float> y) {
    require(coefficients.size() == kCoefficients, "warps: there are ", coefficients.size(),
            " coefficients; expected ", kCoefficients);
    require(y.size() == points.x.size(), "warps: x and y have ", points.x.size(), " and ", y.size(),
            " elements; expected the same number");
    require(y.size() <= kMostPoints, "warps: there are ", y.size(), " points; expected at most ",
            kMostPoints);
    require(!overlap(points.x, y) && !overlap(points.terms, y) && !overlap(points.order, y) &&
                !overlap(coefficients, y),
            "warps: y overlaps an input; expected memory of its own");
}

void check_length(DeviceSpan<const int> list, const char* name, const Points& points) {
    require(list.size() == points.x.size(), "warps: x and ", name, " have ", points.x.size(), " and ",
            list.size(), " elements; expected the same number");
}

// uniform, diverge_by_lane, diverge_by_warp
template <auto kLaunch>
void all_terms(const Points& points, DeviceSpan<const float> coefficients, DeviceSpan<float> y,
               cudaStream_t stream) {
    check_arguments(points, coefficients, y);
    if (y.empty()) return;
    kLaunch(points.x.data(), coefficients.data(), y.data(), static_cast<int>(y.size()), stream);
    CUDA_CHECK_LAUNCH();
}

void unequal(const Points& points, DeviceSpan<const float> coefficients, DeviceSpan<float> y,
             cudaStream_t stream) {
    check_arguments(points, coefficients, y);
    check_length(points.terms, "terms", points);
    if (y.empty()) return;
    launch_unequal_loops(points.x.data(), points.terms.data(), coefficients.data(), y.data(),
                         static_cast<int>(y.size()), stream);
    CUDA_CHECK_LAUNCH();
}

void sorted(const Points& points, DeviceSpan<const float> coefficients, DeviceSpan<float> y,
            cudaStream_t stream) {
    check_arguments(points, coefficients, y);
    check_length(points.terms, "terms", points);
    check_length(points.order, "order", points);
    if (y.empty()) return;
    launch_sorted_loops(points.x.data(), points.terms.data(), points.order.data(), coefficients.data(),
                        y.data(), static_cast<int>(y.size()), stream);
    CUDA_CHECK_LAUNCH();
}

void check_warps(int warps_per_sm) {
    require((warps_per_sm >= 1 && warps_per_sm <= 32) || warps_per_sm == 64, "chains: warps_per_sm is ",
            warps_per_sm, "; expected 1 to 32, or 64");
}

template <int kChains>
void run_chains(const ChainsProblem& problem, DeviceSpan<float> out, cudaStream_t stream) {
    const std::size_t threads = chain_threads(problem.warps_per_sm);
    require(out.size() == threads, "chains: out has ", out.size(), " elements; expected ", threads,
            ", one for each thread");
    require(problem.multiply_adds >= 0 && problem.multiply_adds % 8 == 0, "chains: multiply_adds is ",
            problem.multiply_adds, "; expected a multiple of 8 that is not negative");
    launch_chains<kChains>(out.data(), problem.warps_per_sm, problem.multiply_adds, stream);
    CUDA_CHECK_LAUNCH();
}

course::Work work_of_all_terms(const Problem& problem) {
    const auto n = static_cast<double>(problem.points);
    return {.bytes = 8 * n, .written = 4 * n, .flops = 2 * kTerms * n};
}
course::Work work_of_own_terms(const Problem& problem) {
    const auto n = static_cast<double>(problem.points);
    return {.bytes = 12 * n, .written = 4 * n, .flops = 2 * problem.steps};
}
course::Work work_of_chains(const ChainsProblem& problem) {
    const auto threads = static_cast<double>(chain_threads(problem.warps_per_sm));
    return {.bytes = 4 * threads, .written = 4 * threads, .flops = 2 * threads * problem.multiply_adds};
}

template <class... Parameters>
Residency residency(const char* name, void (*kernel)(Parameters...), int threads,
                    std::size_t dynamic_shared = 0) {
    course::allow_shared_bytes(kernel, dynamic_shared);
    const course::KernelResources built = course::resources_of(kernel, threads, dynamic_shared);
    const course::BlockNeeds block = {
        .threads = threads, .registers = built.registers, .shared_bytes = built.shared_bytes};
    int by_runtime = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&by_runtime, kernel, threads, dynamic_shared));
    return {name, block, resident_blocks(block, course::multiprocessor_limits()), by_runtime};
}

}  // namespace

std::span<const Divergence> versions() {
    static const std::array<Divergence, 5> list = {{
        {{"uniform", "all lanes take the same way", all_terms<launch_uniform>, work_of_all_terms},
         Rule::kAllTerms},
        {{"diverge_by_lane", "odd lanes take another branch", all_terms<launch_diverge_by_lane>,
          work_of_all_terms},
         Rule::kOddReversed},
        {{"diverge_by_warp", "whole warps take another branch", all_terms<launch_diverge_by_warp>,
          work_of_all_terms},
         Rule::kOddReversed},
        {{"unequal_loops", "each lane has its own number of steps", unequal, work_of_own_terms},
         Rule::kOwnTerms},
        {{"sorted_loops", "lanes of a warp have nearly equal numbers of steps", sorted, work_of_own_terms},
         Rule::kOwnTerms},
    }};
    return list;
}

std::size_t chain_threads(int warps_per_sm) {
    check_warps(warps_per_sm);
    return std::size_t{course::multiprocessors()} * static_cast<std::size_t>(warps_per_sm) * 32;
}

std::span<const Chains> chains_versions() {
    static const std::array<Chains, 4> list = {{
        {{"chains_1", "each multiply-add waits for the one before", run_chains<1>, work_of_chains}, 1},
        {{"chains_2", "two independent chains per thread", run_chains<2>, work_of_chains}, 2},
        {{"chains_4", "four independent chains per thread", run_chains<4>, work_of_chains}, 4},
        {{"chains_8", "eight independent chains per thread", run_chains<8>, work_of_chains}, 8},
    }};
    return list;
}

std::vector<Residency> residencies() {
    return {residency("uniform", uniform, 32),
            residency("uniform", uniform, 256),
            residency("uniform", uniform, 768),
            residency("uniform", uniform, 1024),
            residency("uniform, 40 KB more", uniform, 256, std::size_t{40} << 10),
            residency("sorted_loops", sorted_loops, 256),
            residency("chains_1", chains<1>, 256),
            residency("chains_8", chains<8>, 256),
            residency("chains_8", chains<8>, 33)};
}

}  // namespace day03

// Day 10's host code for filters of any kind: argument checks, and the list of versions. The
// kernels and their launches are in convolution.cuh and beyond/.
#include <array>
#include <cstdint>

#include "common/check/check.hpp"
#include "convolution.cuh"
#include "convolution.hpp"
#include "launch.hpp"

namespace day10 {
namespace {

using course::DeviceSpan;

// Indices of weights are ints.
std::string naive_constraint(const Problem& problem) {
    if (problem.filter_rows <= (std::size_t{1} << 30) / problem.filter_cols) return "";
    return "a filter of " + std::to_string(problem.filter_rows) + " x " +
           std::to_string(problem.filter_cols) + "; expected at most 2^30 weights";
}

std::string constant_constraint(const Problem& problem) {
    if (problem.filter_rows * problem.filter_cols <= kConstantWeights) return "";
    return "constant memory holds " + std::to_string(kConstantWeights) + " weights; the filter has " +
           std::to_string(problem.filter_rows) + " x " + std::to_string(problem.filter_cols);
}

std::string shared_halo_constraint(const Problem& problem) {
    if (const std::string reason = constant_constraint(problem); !reason.empty()) return reason;
    const Size filter = {static_cast<int>(problem.filter_rows), static_cast<int>(problem.filter_cols)};
    const std::size_t bytes = shared_halo_bytes(filter, static_cast<int>(problem.channels));
    if (bytes <= kSharedBytes) return "";
    return "a tile with its halo needs " + std::to_string(bytes) +
           " bytes of shared memory; expected at most " + std::to_string(kSharedBytes);
}

Size size_of(const Filter& filter) {
    return {static_cast<int>(filter.rows()), static_cast<int>(filter.cols())};
}

// A version of convolution.cuh, with its arguments checked.
template <class T, auto kLaunch, auto kConstraint>
void run(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
         DeviceSpan<float>, cudaStream_t stream) {
    check_pictures(in, out);
    require_can_run(kConstraint(problem_of(in, filter)));
    if (is_empty(in)) return;
    kLaunch(source(in, border), target(out), filter.device_weights(), size_of(filter), stream);
    CUDA_CHECK_LAUNCH();
}

// A separable filter needs rows + cols multiply-adds.
template <class T>
course::Work work(const Problem& problem) {
    const auto values = static_cast<double>(problem.rows * problem.cols * problem.channels);
    const auto area = static_cast<double>(problem.filter_rows * problem.filter_cols);
    const auto taps = static_cast<double>(problem.filter_rows + problem.filter_cols);
    return {.bytes = 2 * sizeof(T) * values,
            .written = sizeof(T) * values,
            .flops = 2 * values * (problem.separable ? taps : area)};
}

}  // namespace

template <class T>
std::span<const Convolution<T>> versions() {
    static const std::array<Convolution<T>, 7> list = {{
        {"naive", "a thread per value", run<T, launch_naive<T>, naive_constraint>, work<T>, naive_constraint},
        {"constant_filter", "weights in constant memory", run<T, launch_constant<T>, constant_constraint>,
         work<T>, constant_constraint},
        {"shared_halo", "tile and halo in shared memory",
         run<T, launch_shared_halo<T>, shared_halo_constraint>, work<T>, shared_halo_constraint},
        {"cached_halo", "tile in shared memory, halo cached",
         run<T, launch_cached_halo<T>, constant_constraint>, work<T>, constant_constraint},
        {"separable_two_pass", "rows, then columns", separable_two_pass<T>, work<T>, two_pass_constraint},
        {"separable_fused", "both passes on one tile", separable_fused<T>, work<T>, fused_constraint},
        {"separable_streaming", "a warp marches down the picture", separable_streaming<T>, work<T>,
         two_pass_constraint},
    }};
    return list;
}

template std::span<const Convolution<float>> versions<float>();
template std::span<const Convolution<std::uint8_t>> versions<std::uint8_t>();

}  // namespace day10

// Day 10's launchers for filters of any kind, and the list of versions. The kernels are in
// convolution.cuh, convolution_separable.cuh and convolution_streaming.cuh.
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

std::size_t shared_halo_bytes(const Problem& problem) {
    return (kTile + problem.filter_rows - 1) * (kTile + (problem.filter_cols - 1) * problem.channels) *
           sizeof(float);
}

std::string shared_halo_constraint(const Problem& problem) {
    if (const std::string reason = constant_constraint(problem); !reason.empty()) return reason;
    const std::size_t bytes = shared_halo_bytes(problem);
    if (bytes <= kSharedBytes) return "";
    return "a tile with its halo needs " + std::to_string(bytes) +
           " bytes of shared memory; expected at most " + std::to_string(kSharedBytes);
}

Size size_of(const Filter& filter) {
    return {static_cast<int>(filter.rows()), static_cast<int>(filter.cols())};
}

constexpr dim3 kBlock(kBlockCols, kBlockRows);

template <class T>
void launch_naive(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                  DeviceSpan<float>, cudaStream_t stream) {
    check_pictures(in, out);
    require_can_run(naive_constraint(problem_of(in, filter)));
    if (is_empty(in)) return;
    convolve_naive<<<tiles_of(in, kBlockRows, kBlockCols), kBlock, 0, stream>>>(
        source(in, border), target(out), filter.device_weights(), size_of(filter),
        tiles(in.cols() * in.channels(), kBlockCols));
    CUDA_CHECK_LAUNCH();
}

template <class T>
void launch_constant_filter(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                            Border border, DeviceSpan<float>, cudaStream_t stream) {
    check_pictures(in, out);
    require_can_run(constant_constraint(problem_of(in, filter)));
    if (is_empty(in)) return;
    put_into_constant_memory(filter, stream);
    convolve_constant<<<tiles_of(in, kBlockRows, kBlockCols), kBlock, 0, stream>>>(
        source(in, border), target(out), size_of(filter), tiles(in.cols() * in.channels(), kBlockCols));
    CUDA_CHECK_LAUNCH();
}

template <class T>
void launch_shared_halo(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                        DeviceSpan<float>, cudaStream_t stream) {
    check_pictures(in, out);
    const Problem problem = problem_of(in, filter);
    require_can_run(shared_halo_constraint(problem));
    if (is_empty(in)) return;
    put_into_constant_memory(filter, stream);
    convolve_shared_halo<<<tiles_of(in, kTile, kTile), kBlock, shared_halo_bytes(problem), stream>>>(
        source(in, border), target(out), size_of(filter), tiles(in.cols() * in.channels(), kTile));
    CUDA_CHECK_LAUNCH();
}

template <class T>
void launch_cached_halo(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                        DeviceSpan<float>, cudaStream_t stream) {
    check_pictures(in, out);
    require_can_run(constant_constraint(problem_of(in, filter)));
    if (is_empty(in)) return;
    put_into_constant_memory(filter, stream);
    convolve_cached_halo<<<tiles_of(in, kTile, kTile), kBlock, 0, stream>>>(
        source(in, border), target(out), size_of(filter), tiles(in.cols() * in.channels(), kTile));
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
        {"naive", "a thread per value", launch_naive<T>, work<T>, naive_constraint},
        {"constant_filter", "weights in constant memory", launch_constant_filter<T>, work<T>,
         constant_constraint},
        {"shared_halo", "tile and halo in shared memory", launch_shared_halo<T>, work<T>,
         shared_halo_constraint},
        {"cached_halo", "tile in shared memory, halo cached", launch_cached_halo<T>, work<T>,
         constant_constraint},
        {"separable_two_pass", "rows, then columns", launch_separable_two_pass<T>, work<T>,
         two_pass_constraint},
        {"separable_fused", "both passes on one tile", launch_separable_fused<T>, work<T>, fused_constraint},
        {"separable_streaming", "a warp marches down the picture", launch_separable_streaming<T>, work<T>,
         two_pass_constraint},
    }};
    return list;
}

template std::span<const Convolution<float>> versions<float>();
template std::span<const Convolution<std::uint8_t>> versions<std::uint8_t>();

}  // namespace day10

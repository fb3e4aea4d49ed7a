// Day 10's host code for separable filters. The kernels and their launches are in
// beyond/separable.cuh.
#include <cstdint>
#include <numeric>

#include "beyond/separable.cuh"
#include "common/check/check.hpp"
#include "launch.hpp"

namespace day10 {
namespace {

using namespace separable;
using course::DeviceSpan;

Taps taps_of(const Filter& filter) {
    return {filter.device_column(), filter.device_row(), static_cast<int>(filter.rows()),
            static_cast<int>(filter.cols())};
}

}  // namespace

std::string two_pass_constraint(const Problem& problem) {
    return problem.separable ? "" : "the filter is not separable";
}

std::string fused_constraint(const Problem& problem) {
    if (const std::string reason = two_pass_constraint(problem); !reason.empty()) return reason;
    const std::size_t bytes = fused_bytes(problem.filter_cols, problem.filter_rows, problem.channels);
    if (bytes <= kSharedBytes) return "";
    return "a tile with its halo needs " + std::to_string(bytes) +
           " bytes of shared memory; expected at most " + std::to_string(kSharedBytes);
}

template <class T>
void separable_two_pass(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                        DeviceSpan<float> workspace, cudaStream_t stream) {
    check_pictures(in, out);
    require_can_run(two_pass_constraint(problem_of(in, filter)));
    if (is_empty(in)) return;
    const std::size_t width = in.cols() * in.channels();
    require(workspace.size() >= in.rows() * width, "convolution: a workspace of ", workspace.size(),
            " floats; expected rows * cols * channels = ", in.rows() * width);
    const std::size_t bytes = in.rows() * width * sizeof(float);
    require(!overlap(workspace.data(), bytes, in.values().data(), extent(in)) &&
                !overlap(workspace.data(), bytes, out.values().data(), extent(out)),
            "convolution: `workspace` overlaps a picture; expected nothing in common");
    // Constant border: the row filter's result for a row outside the image.
    Border between = border;
    between.value *= std::accumulate(filter.row().begin(), filter.row().end(), 0.0f);
    launch_two_pass(source(in, border), target(out), taps_of(filter), workspace.data(), between, stream);
    CUDA_CHECK_LAUNCH();
}

template <class T>
void separable_fused(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                     DeviceSpan<float>, cudaStream_t stream) {
    check_pictures(in, out);
    const Problem problem = problem_of(in, filter);
    require_can_run(fused_constraint(problem));
    if (is_empty(in)) return;
    launch_fused(source(in, border), target(out), taps_of(filter), stream);
    CUDA_CHECK_LAUNCH();
}

template void separable_two_pass<float>(DevicePicture<const float>, DevicePicture<float>, const Filter&,
                                        Border, DeviceSpan<float>, cudaStream_t);
template void separable_two_pass<std::uint8_t>(DevicePicture<const std::uint8_t>, DevicePicture<std::uint8_t>,
                                               const Filter&, Border, DeviceSpan<float>, cudaStream_t);
template void separable_fused<float>(DevicePicture<const float>, DevicePicture<float>, const Filter&, Border,
                                     DeviceSpan<float>, cudaStream_t);
template void separable_fused<std::uint8_t>(DevicePicture<const std::uint8_t>, DevicePicture<std::uint8_t>,
                                            const Filter&, Border, DeviceSpan<float>, cudaStream_t);

}  // namespace day10

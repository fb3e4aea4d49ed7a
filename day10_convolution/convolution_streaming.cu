// Day 10's host code for the streaming version. The kernel and its launch are in
// beyond/streaming.cuh.
#include <algorithm>
#include <cstdint>

#include "beyond/streaming.cuh"
#include "common/check/check.hpp"
#include "launch.hpp"

namespace day10 {
namespace {

using course::DeviceSpan;

template <class T, int R, int C>
void launch_radius(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                   cudaStream_t stream) {
    Taps<R> taps;
    std::copy(filter.row().begin(), filter.row().end(), taps.row);
    std::copy(filter.column().begin(), filter.column().end(), taps.column);

    const bool packs = course::is_aligned(in.values().data(), kLaneValues * sizeof(T)) &&
                       course::is_aligned(out.values().data(), kLaneValues * sizeof(T)) &&
                       in.pitch() % kLaneValues == 0 && out.pitch() % kLaneValues == 0;

    launch_streaming<C>(source(in, border), target(out), taps, packs, stream);
    CUDA_CHECK_LAUNCH();
}

template <class T, int C>
void launch_channels(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                     cudaStream_t stream) {
    switch (filter.rows() / 2) {
        case 1:
            return launch_radius<T, 1, C>(in, out, filter, border, stream);
        case 2:
            return launch_radius<T, 2, C>(in, out, filter, border, stream);
        case 3:
            return launch_radius<T, 3, C>(in, out, filter, border, stream);
        case 4:
            return launch_radius<T, 4, C>(in, out, filter, border, stream);
        default:
            return launch_radius<T, 5, C>(in, out, filter, border, stream);
    }
}

}  // namespace

// Sums in registers need a radius that is known at compile time: 1 to 5, the same in both
// directions. Other filters go to the fastest version that can run them.
template <class T>
void separable_streaming(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                         DeviceSpan<float> workspace, cudaStream_t stream) {
    check_pictures(in, out);
    const Problem problem = problem_of(in, filter);
    require_can_run(two_pass_constraint(problem));
    if (is_empty(in)) return;
    if (filter.rows() == filter.cols() && filter.rows() >= 3 && filter.rows() <= 11) {
        if (in.channels() == 1) return launch_channels<T, 1>(in, out, filter, border, stream);
        return launch_channels<T, 3>(in, out, filter, border, stream);
    }
    if (fused_constraint(problem).empty()) return separable_fused(in, out, filter, border, workspace, stream);
    separable_two_pass(in, out, filter, border, workspace, stream);
}

template void separable_streaming<float>(DevicePicture<const float>, DevicePicture<float>, const Filter&,
                                         Border, DeviceSpan<float>, cudaStream_t);
template void separable_streaming<std::uint8_t>(DevicePicture<const std::uint8_t>,
                                                DevicePicture<std::uint8_t>, const Filter&, Border,
                                                DeviceSpan<float>, cudaStream_t);

}  // namespace day10

// Day 10's launcher of the streaming version. The kernel is in convolution_streaming.cuh.
#include <algorithm>
#include <cstdint>

#include "common/check/check.hpp"
#include "convolution_streaming.cuh"
#include "launch.hpp"

namespace day10 {
namespace {

using course::DeviceSpan;

constexpr int kWaves = 1;       // blocks of the grid, in units of what the GPU runs at once
constexpr int kLeastBand = 16;  // rows of a band: with fewer, most of the work would be halo

template <class T, int R, int C>
void launch_radius(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter, Border border,
                   cudaStream_t stream) {
    Taps<R> taps;
    std::copy(filter.row().begin(), filter.row().end(), taps.row);
    std::copy(filter.column().begin(), filter.column().end(), taps.column);

    // Bands just high enough that all blocks are resident at once. Each band loads 2 R rows that
    // the adjacent bands load, too.
    constexpr int kThreads = kWarps * 32;
    const int across = tiles(in.cols() * C, kWarps * kStripValues);
    // Queried once, on the first device used: the height of a band only affects speed.
    static const unsigned resident = course::resident_blocks(filter_streaming<T, R, C>, kThreads);
    const std::size_t bands = std::max<std::size_t>(1, kWaves * resident / static_cast<unsigned>(across));
    int band_rows = std::max(kLeastBand, tiles(in.rows(), static_cast<int>(bands)));
    const int steps = course::ceil_div(band_rows + 2 * R, kRowsAhead);
    band_rows = steps * kRowsAhead - 2 * R;  // whole steps only
    const bool packs = course::is_aligned(in.values().data(), kLaneValues * sizeof(T)) &&
                       course::is_aligned(out.values().data(), kLaneValues * sizeof(T)) &&
                       in.pitch() % kLaneValues == 0 && out.pitch() % kLaneValues == 0;

    const unsigned blocks = tiles_of(in, band_rows, kWarps * kStripValues);
    filter_streaming<T, R, C>
        <<<blocks, kThreads, 0, stream>>>(source(in, border), target(out), taps, band_rows, across, packs);
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
void launch_separable_streaming(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                                Border border, DeviceSpan<float> workspace, cudaStream_t stream) {
    check_pictures(in, out);
    const Problem problem = problem_of(in, filter);
    require_can_run(two_pass_constraint(problem));
    if (is_empty(in)) return;
    if (filter.rows() == filter.cols() && filter.rows() >= 3 && filter.rows() <= 11) {
        if (in.channels() == 1) return launch_channels<T, 1>(in, out, filter, border, stream);
        return launch_channels<T, 3>(in, out, filter, border, stream);
    }
    if (fused_constraint(problem).empty())
        return launch_separable_fused(in, out, filter, border, workspace, stream);
    launch_separable_two_pass(in, out, filter, border, workspace, stream);
}

template void launch_separable_streaming<float>(DevicePicture<const float>, DevicePicture<float>,
                                                const Filter&, Border, DeviceSpan<float>, cudaStream_t);
template void launch_separable_streaming<std::uint8_t>(DevicePicture<const std::uint8_t>,
                                                       DevicePicture<std::uint8_t>, const Filter&, Border,
                                                       DeviceSpan<float>, cudaStream_t);

}  // namespace day10

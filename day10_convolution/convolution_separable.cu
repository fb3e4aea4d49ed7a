// Day 10's launchers for separable filters. The kernels are in convolution_separable.cuh.
#include <cstdint>
#include <numeric>

#include "common/check/check.hpp"
#include "convolution_separable.cuh"
#include "launch.hpp"

namespace day10 {
namespace {

using namespace separable;
using course::DeviceSpan;

constexpr dim3 kBlock(kBlockCols, kBlockRows);

std::size_t fused_bytes(const Problem& problem) {
    const std::size_t tile_rows = kTileRows + problem.filter_rows - 1;
    const std::size_t tile_values = kTileCols + (problem.filter_cols - 1) * problem.channels;
    return tile_rows * (tile_values + kTileCols) * sizeof(float);
}

}  // namespace

std::string two_pass_constraint(const Problem& problem) {
    return problem.separable ? "" : "the filter is not separable";
}

std::string fused_constraint(const Problem& problem) {
    if (const std::string reason = two_pass_constraint(problem); !reason.empty()) return reason;
    const std::size_t bytes = fused_bytes(problem);
    if (bytes <= kSharedBytes) return "";
    return "a tile with its halo needs " + std::to_string(bytes) +
           " bytes of shared memory; expected at most " + std::to_string(kSharedBytes);
}

template <class T>
void launch_separable_two_pass(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                               Border border, DeviceSpan<float> workspace, cudaStream_t stream) {
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
    const unsigned blocks = tiles_of(in, kBlockRows, kBlockCols);
    const int across = tiles(width, kBlockCols);
    filter_rows<<<blocks, kBlock, 0, stream>>>(source(in, border),
                                               Target<float>{workspace.data(), static_cast<unsigned>(width)},
                                               filter.device_row(), static_cast<int>(filter.cols()), across);
    CUDA_CHECK_LAUNCH();

    // Constant border: the row filter's result for a row outside the image.
    Border between = border;
    between.value *= std::accumulate(filter.row().begin(), filter.row().end(), 0.0f);
    const DevicePicture<const float> rows_filtered(workspace, in.rows(), in.cols(), in.channels());
    filter_columns<<<blocks, kBlock, 0, stream>>>(source(rows_filtered, between), target(out),
                                                  filter.device_column(), static_cast<int>(filter.rows()),
                                                  across);
    CUDA_CHECK_LAUNCH();
}

template <class T>
void launch_separable_fused(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                            Border border, DeviceSpan<float>, cudaStream_t stream) {
    check_pictures(in, out);
    const Problem problem = problem_of(in, filter);
    require_can_run(fused_constraint(problem));
    if (is_empty(in)) return;
    filter_fused<<<tiles_of(in, kTileRows, kTileCols), kBlock, fused_bytes(problem), stream>>>(
        source(in, border), target(out), filter.device_column(), static_cast<int>(filter.rows()),
        filter.device_row(), static_cast<int>(filter.cols()), tiles(in.cols() * in.channels(), kTileCols));
    CUDA_CHECK_LAUNCH();
}

template void launch_separable_two_pass<float>(DevicePicture<const float>, DevicePicture<float>,
                                               const Filter&, Border, DeviceSpan<float>, cudaStream_t);
template void launch_separable_two_pass<std::uint8_t>(DevicePicture<const std::uint8_t>,
                                                      DevicePicture<std::uint8_t>, const Filter&, Border,
                                                      DeviceSpan<float>, cudaStream_t);
template void launch_separable_fused<float>(DevicePicture<const float>, DevicePicture<float>, const Filter&,
                                            Border, DeviceSpan<float>, cudaStream_t);
template void launch_separable_fused<std::uint8_t>(DevicePicture<const std::uint8_t>,
                                                   DevicePicture<std::uint8_t>, const Filter&, Border,
                                                   DeviceSpan<float>, cudaStream_t);

}  // namespace day10

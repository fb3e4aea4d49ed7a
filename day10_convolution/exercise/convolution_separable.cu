// To work through: fill in what says TODO, then ./course check day10. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Day 10, second part: filters that are a column times a row, weight(dy, dx) = column[dy] * row[dx].
//
// Filter every row with `row`, then every column of the result with `column`: rows + cols multiply-adds for each value
// instead of rows x cols. What lies between the passes is kept in float, also for 8-bit pictures.
#include <cstdint>
#include <numeric>

#include "common/check/check.hpp"
#include "picture_access.cuh"

namespace day10 {
namespace {

using course::DeviceSpan;

constexpr int kBlockCols = 32;
constexpr int kBlockRows = 8;
constexpr int kTileCols = 64;
constexpr int kTileRows = 32;

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: a thread per value, taps along the row; a second kernel does the same along the columns.
// Cost removed: rows x cols multiply-adds become rows + cols.
// Still limits it: the result of the first pass goes to memory and comes back from there, up to once for each tap.
template <class T>
__global__ void filter_rows(Source<T> in, Target<float> out, const float* taps, int count, int tiles_across) {
    // TODO day10/separable_two_pass, about 15 minutes.
    // A filter that is a column times a row needs rows + cols multiply-adds instead of rows * cols.
    // `filter_rows` takes the picture and writes, for each value, the sum along its row: `count` taps, the
    // middle one on the value itself. `filter_columns` takes that result and does the same along the columns.
    //
    // What lies between is kept in float. So the first kernel writes its sum as it is, and the second rounds
    // it with `to_value<T>`. Blocks, `Tile` and channels are as in the exercise `naive`.
}

template <class T>
__global__ void filter_columns(Source<float> in, Target<T> out, const float* taps, int count,
                               int tiles_across) {
    // TODO day10/separable_two_pass: this one too, see filter_rows.
}

// Idea: a block of 32 x 8 threads does both passes on a tile of 32 x 64 outputs; what lies between stays in shared memory.
// Cost removed: the way of the first result to memory and back, and a kernel.
// Still limits it: halo rows are filtered by the tile above and by the one below; a load from shared memory for each tap.
template <class T>
__global__ void filter_fused(Source<T> in, Target<T> out, const float* column, int column_taps,
                             const float* row, int row_taps, int tiles_across) {
    // TODO day10/separable_fused, about 40 minutes.
    // Both passes on one tile, so that what lies between stays in shared memory. A block of 32 x 8 threads
    // makes a tile of `kTileRows` x `kTileCols` outputs, 32 x 64.
    //
    // It needs two arrays, one behind the other in `extern __shared__ float shared[];`. `loaded` has
    // `kTileRows + column_taps - 1` rows of `kTileCols + (row_taps - 1) * in.channels` values: the tile with
    // its halo. `filtered` has as many rows, of `kTileCols` values: what the row filter made of them. `row`
    // are the `row_taps` weights along a row, `column` the `column_taps` weights along a column.
}

// --- Launchers -------------------------------------------------------------------------------------------------------

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
    require(workspace.size() >= in.rows() * width,
            "a workspace of " + std::to_string(workspace.size()) +
                " floats; expected rows * cols * channels = " + std::to_string(in.rows() * width));
    const std::size_t bytes = in.rows() * width * sizeof(float);
    require(!overlap(workspace.data(), bytes, in.values().data(), extent(in)) &&
                !overlap(workspace.data(), bytes, out.values().data(), extent(out)),
            "`workspace` overlaps a picture; expected nothing in common");
    const unsigned blocks = tiles_of(in, kBlockRows, kBlockCols);
    const int across = tiles(width, kBlockCols);
    filter_rows<<<blocks, kBlock, 0, stream>>>(source(in, border),
                                               Target<float>{workspace.data(), static_cast<unsigned>(width)},
                                               filter.device_row(), static_cast<int>(filter.cols()), across);
    CUDA_CHECK_LAUNCH();

    // A row outside the picture is `value` everywhere; this is what the first pass would have made of it.
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

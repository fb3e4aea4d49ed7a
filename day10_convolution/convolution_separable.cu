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
    const Tile tile(kBlockRows, kBlockCols, tiles_across);
    const int row = tile.row + static_cast<int>(threadIdx.y);
    const int value = tile.value + static_cast<int>(threadIdx.x);
    if (row >= in.rows || value >= in.width()) return;
    const int left = value / in.channels - count / 2;
    float sum = 0;
    for (int k = 0; k < count; ++k)
        sum += taps[k] * in.at(row, left + k, value % in.channels);
    out.row(row)[value] = sum;
}

template <class T>
__global__ void filter_columns(Source<float> in, Target<T> out, const float* taps, int count,
                               int tiles_across) {
    const Tile tile(kBlockRows, kBlockCols, tiles_across);
    const int row = tile.row + static_cast<int>(threadIdx.y);
    const int value = tile.value + static_cast<int>(threadIdx.x);
    if (row >= in.rows || value >= in.width()) return;
    const int top = row - count / 2;
    float sum = 0;
    for (int k = 0; k < count; ++k)
        sum += taps[k] * in.at(top + k, value / in.channels, value % in.channels);
    out.row(row)[value] = to_value<T>(sum);
}

// Idea: a block of 32 x 8 threads does both passes on a tile of 32 x 64 outputs; what lies between stays in shared memory.
// Cost removed: the way of the first result to memory and back, and a kernel.
// Still limits it: halo rows are filtered by the tile above and by the one below; a load from shared memory for each tap.
template <class T>
__global__ void filter_fused(Source<T> in, Target<T> out, const float* column, int column_taps,
                             const float* row, int row_taps, int tiles_across) {
    extern __shared__ float shared[];
    const Tile tile(kTileRows, kTileCols, tiles_across);
    const int tile_rows = kTileRows + column_taps - 1;
    const int tile_values = kTileCols + (row_taps - 1) * in.channels;
    float* const loaded = shared;                              // tile_rows x tile_values
    float* const filtered = shared + tile_rows * tile_values;  // tile_rows x kTileCols
    const int thread_row = static_cast<int>(threadIdx.y);
    const int lane = static_cast<int>(threadIdx.x);

    const int top = tile.row - column_taps / 2;
    for (int y = thread_row; y < tile_rows; y += kBlockRows) {
        for (int x = lane; x < tile_values; x += kBlockCols) {
            const int value = tile.value + x;  // before the step to the left by half a filter
            loaded[y * tile_values + x] =
                in.at(top + y, value / in.channels - row_taps / 2, value % in.channels);
        }
    }
    __syncthreads();

    for (int y = thread_row; y < tile_rows; y += kBlockRows) {
        for (int x = lane; x < kTileCols; x += kBlockCols) {
            float sum = 0;
            for (int k = 0; k < row_taps; ++k)
                sum += row[k] * loaded[y * tile_values + x + k * in.channels];
            filtered[y * kTileCols + x] = sum;
        }
    }
    __syncthreads();

    for (int y = thread_row; y < kTileRows && tile.row + y < in.rows; y += kBlockRows) {
        for (int x = lane; x < kTileCols && tile.value + x < in.width(); x += kBlockCols) {
            float sum = 0;
            for (int k = 0; k < column_taps; ++k)
                sum += column[k] * filtered[(y + k) * kTileCols + x];
            out.row(tile.row + y)[tile.value + x] = to_value<T>(sum);
        }
    }
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

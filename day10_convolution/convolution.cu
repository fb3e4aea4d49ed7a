// Day 10: convolution and blur.                                                                      PMPP chapter 7
//
//   version               idea                                          what limits it
//   naive                 a thread per value, all from global memory    two loads for every multiply-add, one of them a weight
//   constant_filter       weights in constant memory                    each value is fetched once per weight
//   shared_halo           tile and halo in shared memory                a multiply-add per weight; the halo's loads
//   cached_halo           tile in shared memory, halo from the caches   a multiply-add per weight; a branch for each
//                                                                              ... convolution_separable.cu:
//   separable_two_pass    a row filter, then a column filter            what lies between goes to memory and back
//   separable_fused       both on one tile in shared memory             the halo's rows are filtered twice
//                                                                              ... convolution_streaming.cu:
//   separable_streaming   a warp marches down the picture               memory: each value in once, out once
//
// Each value must be read and written once: the best possible time is that of a copy of the picture. The sums take
// rows x cols multiply-adds of a filter per value, and rows + cols where the filter is separable.
//
//   ./course run day10                                          all versions, verified and timed, on a small picture
//   ./course run day10 --image in.png --sigma 4 --out out.png   your own
#include <array>
#include <cstdint>

#include "common/check/check.hpp"
#include "convolution.hpp"
#include "picture_access.cuh"

namespace day10 {
namespace {

using course::DeviceSpan;

constexpr int kBlockCols = 32;  // a warp reads 32 values of a row
constexpr int kBlockRows = 8;
constexpr int kTile = 32;  // outputs of a block with shared memory: 32 x 32, four to a thread

// Constant memory is 64 KB in all. It is read through a cache of its own that hands one word to all lanes of a warp: as good
// as a register when they want the same word. There is one of it: work on two streams would overwrite each other's filter.
constexpr std::size_t kConstantWeights = 64 * 1024 / sizeof(float);
__constant__ float constant_weights[kConstantWeights];

// --- Kernels ---------------------------------------------------------------------------------------------------------
//
// A picture is rows x width values, width = cols * channels; value i of a row is channel i % channels of pixel i / channels.

struct Size {
    int rows;
    int cols;
};

// The sum for one value, neighbours through `neighbour(dy, dx)`.
template <class Neighbour>
__device__ float weighted_sum(const float* weights, Size filter, Neighbour neighbour) {
    float sum = 0;
    for (int dy = 0; dy < filter.rows; ++dy) {
        for (int dx = 0; dx < filter.cols; ++dx)
            sum += weights[dy * filter.cols + dx] * neighbour(dy, dx);
    }
    return sum;
}

// One thread, one value: thread (x, y) of a 32 x 8 block has value 32 * (block across) + x of row 8 * (block down) + y.
template <class T>
__device__ void convolve_one(const Source<T>& in, const Target<T>& out, const float* weights, Size filter,
                             int tiles_across) {
    const Tile tile(kBlockRows, kBlockCols, tiles_across);
    const int row = tile.row + static_cast<int>(threadIdx.y);
    const int value = tile.value + static_cast<int>(threadIdx.x);
    if (row >= in.rows || value >= in.width()) return;
    const int top = row - filter.rows / 2;
    const int left = value / in.channels - filter.cols / 2;
    const int channel = value % in.channels;
    const float sum =
        weighted_sum(weights, filter, [&](int dy, int dx) { return in.at(top + dy, left + dx, channel); });
    out.row(row)[value] = to_value<T>(sum);
}

// Idea: a thread for each value; it fetches its neighbours and their weights from global memory.
// Cost removed: the loop over the picture.
// Still limits it: two loads for one multiply-add, and the border is asked about at each of them.
template <class T>
__global__ void convolve_naive(Source<T> in, Target<T> out, const float* weights, Size filter,
                               int tiles_across) {
    convolve_one(in, out, weights, filter, tiles_across);
}

// Idea: all lanes want the same weight at the same time: constant memory broadcasts it.
// Cost removed: half of the loads from global memory.
// Still limits it: a value is fetched, mostly from the caches, once for each weight.
template <class T>
__global__ void convolve_constant(Source<T> in, Target<T> out, Size filter, int tiles_across) {
    convolve_one(in, out, constant_weights, filter, tiles_across);
}

// Idea: a block fetches its tile and the halo around it once; 32 x 32 outputs from (32 + halo) x (32 + halo) values.
// Cost removed: fetching a value for each weight, and asking about the border: outside values are put into the tile.
// Still limits it: a multiply-add and a load from shared memory for each of rows x cols weights.
template <class T>
__global__ void convolve_shared_halo(Source<T> in, Target<T> out, Size filter, int tiles_across) {
    extern __shared__ float with_halo[];
    const Tile tile(kTile, kTile, tiles_across);
    const int tile_rows = kTile + filter.rows - 1;
    const int tile_values = kTile + (filter.cols - 1) * in.channels;
    const int top = tile.row - filter.rows / 2;

    for (int y = static_cast<int>(threadIdx.y); y < tile_rows; y += kBlockRows) {
        for (int x = static_cast<int>(threadIdx.x); x < tile_values; x += kBlockCols) {
            const int value = tile.value + x;  // before the step to the left by half a filter
            with_halo[y * tile_values + x] =
                in.at(top + y, value / in.channels - filter.cols / 2, value % in.channels);
        }
    }
    __syncthreads();

    const int x = static_cast<int>(threadIdx.x);
    for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kBlockRows) {
        if (tile.row + y >= in.rows || tile.value + x >= in.width()) continue;
        const float sum = weighted_sum(constant_weights, filter, [&](int dy, int dx) {
            return with_halo[(y + dy) * tile_values + x + dx * in.channels];
        });
        out.row(tile.row + y)[tile.value + x] = to_value<T>(sum);
    }
}

// Idea: the halo of a tile is the inside of its neighbours, which other blocks fetch at about the same time: leave it to the caches.
// Cost removed: the halo in shared memory, whose size depends on the filter. (PMPP 7.5)
// Still limits it: as before, and at each weight the question whether the value is in the tile.
template <class T>
__global__ void convolve_cached_halo(Source<T> in, Target<T> out, Size filter, int tiles_across) {
    __shared__ float inside[kTile][kTile];
    const Tile tile(kTile, kTile, tiles_across);
    const int x = static_cast<int>(threadIdx.x);
    const int value = tile.value + x;

    for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kBlockRows) {
        if (tile.row + y < in.rows && value < in.width())
            inside[y][x] = static_cast<float>(in.row(tile.row + y)[value]);
    }
    __syncthreads();

    if (value >= in.width()) return;
    const int tile_rows = min(kTile, in.rows - tile.row);
    const int tile_values = min(kTile, in.width() - tile.value);
    for (int y = static_cast<int>(threadIdx.y); y < tile_rows; y += kBlockRows) {
        const float sum = weighted_sum(constant_weights, filter, [&](int dy, int dx) {
            const int near_y = y + dy - filter.rows / 2;
            const int near_x = x + (dx - filter.cols / 2) * in.channels;
            if (near_y >= 0 && near_y < tile_rows && near_x >= 0 && near_x < tile_values)
                return inside[near_y][near_x];
            return in.at(tile.row + near_y, value / in.channels + dx - filter.cols / 2, value % in.channels);
        });
        out.row(tile.row + y)[value] = to_value<T>(sum);
    }
}

// --- Launchers -------------------------------------------------------------------------------------------------------

// Places of weights and of what they meet are ints.
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

// From the device to the device, on the stream: behind kernels that still read the filter before this one.
void put_into_constant_memory(const Filter& filter, cudaStream_t stream) {
    CUDA_CHECK(cudaMemcpyToSymbolAsync(constant_weights, filter.device_weights(),
                                       filter.weights().size() * sizeof(float), 0, cudaMemcpyDeviceToDevice,
                                       stream));
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

// A separable filter needs no more than rows + cols multiply-adds.
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

// --- The list ----------------------------------------------------------------------------------------------------------

template <class T>
std::span<const Convolution<T>> variants() {
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

template std::span<const Convolution<float>> variants<float>();
template std::span<const Convolution<std::uint8_t>> variants<std::uint8_t>();

}  // namespace day10

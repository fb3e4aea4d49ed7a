// Day 30, beyond: scales and zero points of any groups, the whole matrix, rows or columns. It is
// the first pass of two_passes; quantize_octets in quantization.cuh is the second.
//
//   two_passes         reads x 2 times    any group, rows of any length    the second read
#pragma once

#include "quantization.cuh"

namespace day30 {

// Ranges are collected in the memory of the parameters: bits of the upper end in `scale`, of the
// lower end in `zero_point`. Both start as 0.
template <Scheme kScheme>
__device__ void collect(Range range, float* scale, std::int32_t* zero_point, std::size_t group) {
    atomicMax(reinterpret_cast<unsigned*>(scale) + group, range.above);
    if constexpr (kScheme == Scheme::kAsymmetric)
        atomicMax(reinterpret_cast<unsigned*>(zero_point) + group, range.below);
}

// A chunk of a row, as many values as a block keeps in registers.
template <class T, bool kAligned>
using Chunk = RowShare<T, kThreads, kAligned>;
constexpr std::size_t kChunk = Chunk<float, true>::kCapacity;

// Idea: a block finds the range of a chunk of a row. Atomics combine the chunks of a row, or of the
// matrix.
// Cost removed: narrow loads, 255 of 256 atomics, and one block for a long row.
// Still limits it: ALU (half, per row, counters: 78 % busy, memory at most 55 %). quantize_octets
// reads everything again.
template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    find_row_ranges(DeviceMatrix<const T> in, unsigned chunks, float* scale, std::int32_t* zero_point) {
    const std::size_t row = blockIdx.x / chunks;
    const std::size_t begin = blockIdx.x % chunks * kChunk;
    Chunk<T, kAligned> chunk;
    chunk.load(in.data() + row * in.leading_dimension() + begin, min(kChunk, in.cols() - begin),
               static_cast<int>(threadIdx.x));
    const Range range = group_merge<kScheme, kThreads>(chunk.template range<kScheme>());
    if (threadIdx.x == 0)
        collect<kScheme>(range, scale, zero_point, kGranularity == Granularity::kRow ? row : 0);
}

template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
void launch_find_row_ranges(DeviceMatrix<const T> in, float* scale, std::int32_t* zero_point,
                            cudaStream_t stream) {
    const std::size_t chunks = course::ceil_div(in.cols(), kChunk);
    find_row_ranges<T, kScheme, kGranularity, kAligned>
        <<<course::blocks_for(in.rows() * chunks, 1), kThreads, 0, stream>>>(
            in, static_cast<unsigned>(chunks), scale, zero_point);
}

constexpr int kColumnRows = 8;                           // of a block, at a time: one per warp
constexpr int kColumnTile = course::kWarpSize * kOctet;  // columns of a block
constexpr std::size_t kColumnChunk = 64;                 // rows of a block, altogether

// Idea: a warp goes down 256 columns at once, eight per lane, so that it loads whole lines. The
// warps of a block merge their ranges in shared memory.
// Cost removed: unused bytes of sectors: a thread that goes down one column of halves uses 2 of the
// 32 bytes.
// Still limits it: memory. quantize_octets reads everything again.
template <class T, Scheme kScheme, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    find_column_ranges(DeviceMatrix<const T> in, unsigned tiles, float* scale, std::int32_t* zero_point) {
    __shared__ Range of_warp[kColumnRows][kColumnTile];
    const std::size_t tile = std::size_t{blockIdx.x % tiles} * kColumnTile;
    const std::size_t begin = blockIdx.x / tiles * kColumnChunk;
    const std::size_t end = min(begin + kColumnChunk, in.rows());
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;

    Range range[kOctet] = {};
#pragma unroll 4
    for (std::size_t row = begin + warp; row < end; row += kColumnRows) {
        const auto octet = Octet<T>::template load<kAligned>(in.data() + row * in.leading_dimension(),
                                                             tile + lane * kOctet, in.cols());
        for (int k = 0; k < kOctet; ++k)
            range[k].template include<kScheme>(octet[k]);
    }
    for (int k = 0; k < kOctet; ++k)
        of_warp[warp][lane * kOctet + k] = range[k];
    __syncthreads();
    static_assert(kThreads == kColumnTile, "a thread for each column");
    Range of_column = {};
    for (int w = 0; w < kColumnRows; ++w)
        of_column = merge<kScheme>(of_column, of_warp[w][threadIdx.x]);
    if (tile + threadIdx.x < in.cols()) collect<kScheme>(of_column, scale, zero_point, tile + threadIdx.x);
}

template <class T, Scheme kScheme, bool kAligned>
void launch_find_column_ranges(DeviceMatrix<const T> in, float* scale, std::int32_t* zero_point,
                               cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div<std::size_t>(in.cols(), kColumnTile);
    const std::size_t chunks = course::ceil_div(in.rows(), kColumnChunk);
    find_column_ranges<T, kScheme, kAligned><<<course::blocks_for(tiles * chunks, 1), kThreads, 0, stream>>>(
        in, static_cast<unsigned>(tiles), scale, zero_point);
}

// Collected ranges become parameters, in place.
template <Scheme kScheme>
__global__ void finish_parameters(float* scale, std::int32_t* zero_point, std::size_t groups) {
    const std::size_t group = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (group >= groups) return;
    Range range{.above = __float_as_uint(scale[group]), .below = 0};
    if constexpr (kScheme == Scheme::kAsymmetric) range.below = static_cast<unsigned>(zero_point[group]);
    const Parameters parameters = parameters_of<kScheme>(range);
    scale[group] = parameters.scale;
    if constexpr (kScheme == Scheme::kAsymmetric) zero_point[group] = parameters.zero_point;
}

template <Scheme kScheme>
void launch_finish_parameters(float* scale, std::int32_t* zero_point, std::size_t groups,
                              cudaStream_t stream) {
    finish_parameters<kScheme>
        <<<course::blocks_for(groups, kThreads), kThreads, 0, stream>>>(scale, zero_point, groups);
}

}  // namespace day30

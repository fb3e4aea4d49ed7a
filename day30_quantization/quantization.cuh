// Day 30: a matrix of float or half to 8 bits, and back.                                         not in PMPP
//
//     quantise     q = saturate(round(x / scale) + zero_point)       dequantise     x' = (q - zero_point) scale
//
//   version            reads x    what is new                             what limits it
//   plain              2 times    a block per row, a thread per value     1 to 4 bytes per access; double
//   two_passes         2 times    eight values per thread; any group      the second read
//   row_in_registers   once       a row stays in registers                memory, 3 bytes per half
//
// plain and row_in_registers quantise rows, plain only symmetrically. two_passes does everything: a
// scale per matrix, row or column, symmetric or asymmetric. This file has plain and the first pass,
// rounding.cuh the second pass and row_in_registers. blockwise.cuh continues with 4 bits. The
// program also runs host_pointers: the kernels of two_passes, called with host memory
// (quantize_rows_of_host in quantization.cu).
//
//   ./course run day30                                              every version, verified and timed
//   ./course run day30 --only row_in_registers --size 64x4096    rows x columns
//   ./course inspect day30 --only plain --size 64x256            what its accesses cost
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstddef>
#include <cstdint>

#include "common/device/octet.cuh"
#include "common/device/warp.cuh"
#include "quantization.hpp"
#include "ranges.cuh"
#include "row_share.cuh"

namespace day30 {

using course::DeviceMatrix;
using course::kOctet;
using course::Octet;

constexpr int kThreads = 256;

// --- plain: rows, symmetric ----------------------------------------------------------------------

// Floats that are not negative are ordered like their bits, with Inf above all numbers and NaN
// above Inf. So magnitudes are compared as integers: unlike fmaxf, max() keeps a NaN, and there is
// an atomicMax.
constexpr unsigned kInfinityBits = 0x7f800000u;

// The largest magnitude becomes 127. A row with a NaN or an Inf gets NaN, a row of zeros 0.
__device__ inline float symmetric_scale(unsigned largest) {
    if (largest >= kInfinityBits) return __uint_as_float(0x7fffffffu);
    const float scale = __uint_as_float(largest) / 127;
    return scale < FLT_MIN ? 0.0f : scale;
}

// Idea: a block per row. Each thread finds the largest magnitude of its columns, an atomic that of
// the row.
// Cost removed: none yet.
// Still limits it: 256 atomics per row; a load of 2 or 4 bytes per instruction.
template <class T>
__global__ void __launch_bounds__(kThreads) find_row_scales(DeviceMatrix<const T> in, float* scale) {
    __shared__ unsigned largest;  // bits of max |x|
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    const std::size_t row = blockIdx.x;
    unsigned of_thread = 0;
    for (std::size_t col = threadIdx.x; col < in.cols(); col += kThreads)
        of_thread = max(of_thread, __float_as_uint(fabsf(static_cast<float>(in(row, col)))));
    atomicMax(&largest, of_thread);
    __syncthreads();
    if (threadIdx.x == 0) scale[row] = symmetric_scale(largest);
}

// Idea: a thread per value. The product x * (1 / scale) is exact in double, so it is rounded only
// once, by rint(): to the nearest integer, ties to even.
// Cost removed: none yet.
// Still limits it: 1 byte per store; arithmetic in double; a division of 64 bits for the row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    quantize_values(DeviceMatrix<const T> in, const float* scale, DeviceMatrix<std::int8_t> out) {
    const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i >= in.rows() * in.cols()) return;
    const std::size_t row = i / in.cols();
    const std::size_t col = i % in.cols();
    const bool is_number = scale[row] >= FLT_MIN;  // neither 0 nor NaN
    const double x = static_cast<double>(static_cast<float>(in(row, col)));
    const double exact = is_number ? x * static_cast<double>(1 / scale[row]) : 0.0;
    out(row, col) = static_cast<std::int8_t>(rint(exact));
}

// --- two_passes, first pass: the ranges of any groups --------------------------------------------

// From here on a thread has eight adjacent values, an Octet: 16 bytes of halves, 32 of floats.
// ranges.cuh has a Range, the largest magnitude (symmetric) or both ends (asymmetric), and merges
// the ranges of the lanes of a warp and of the warps of a block. row_share.cuh has the octets of a
// row that a thread keeps in registers.

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
// Still limits it: memory. quantize_octets reads everything again.
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

struct Parameters {
    float scale;
    std::int32_t zero_point;
};

template <Scheme kScheme>
__device__ inline Parameters parameters_of(Range range) {
    if (max(range.above, range.below) >= kInfinityBits) return {__uint_as_float(0x7fffffffu), 0};
    const float above = __uint_as_float(range.above);
    const float below = __uint_as_float(range.below);
    // Both parts of a range are divided first: their sum may be too large for a float.
    const float scale = kScheme == Scheme::kSymmetric ? above / 127 : above / 255 + below / 255;
    if (scale < FLT_MIN) return {0, 0};
    return {scale, kScheme == Scheme::kSymmetric ? 0 : __float2int_rn(below / scale) - 128};
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

}  // namespace day30

// Day 32: the linear layer of LLM.int8(), Y = X W^T with most of it multiplied in 8 bits.        not in PMPP
//
//   find outlier columns ─▶ quantise the others by rows ─▶ X8 W8^T in int32 ─▶ times both scales ─▶ + Xo Wo^T ─▶ Y
//
//   version   kernels   what is new                  what limits it
//   plain     7         a kernel for each step       the int8 product: a thread per result
//
// X is tokens (day 25) x inputs, W is outputs x inputs, both half. W8 and its scales are made once,
// in advance. Only the GPU knows the number of outlier columns, and the host would have to wait for
// it. So the host queues work for any number, and the kernels read the number. Each kernel is
// followed by its launch. beyond/ has the products on tensor cores (day 40: separate_kernels,
// fused), and rows of more than 32,768 inputs.
//
//   ./course run day32 --only plain --size 128x256x512            tokens x outputs x inputs
//   ./course run day32 --program                                  program.cu, from main() to the result
//   ./course inspect day32 --only plain --size 33x64x256          what its accesses cost
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/octet.cuh"
#include "row_codes.cuh"

namespace day32 {

using course::DeviceMatrix;
using course::kOctet;
using course::kWarpSize;
using Octet = course::Octet<__half>;

// --- Which columns are outlier columns? ----------------------------------------------------------

constexpr int kMarkWarps = 8;
constexpr int kMarkThreads = kMarkWarps * kWarpSize;
constexpr int kMarkTile = kWarpSize * kOctet;  // columns of a block
constexpr std::size_t kMarkRows = 64;          // rows of a block

// Idea: a warp goes down 256 columns, eight per lane, and keeps the largest magnitudes, two in a
// register. Outliers are rare: a thread that finds one writes keep[col] = 0. Several may write the
// same 0.
// Cost removed: any exchange between warps and blocks.
// Still limits it: latency, then memory, for one read of X (counters: waits for loads 66 % of the
// time, memory 56 % busy).
template <bool kAligned>
__global__ void __launch_bounds__(kMarkThreads)
    mark_outliers(DeviceMatrix<const __half> x, float threshold, std::uint16_t* keep, unsigned tiles) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const std::size_t col = std::size_t{blockIdx.x % tiles} * kMarkTile + lane * kOctet;
    const std::size_t begin = blockIdx.x / tiles * kMarkRows;
    const std::size_t end = min(begin + kMarkRows, x.rows());
    __half2 largest[kOctet / 2];
    for (__half2& two : largest)
        two = __float2half2_rn(0);
#pragma unroll 4
    for (std::size_t row = begin + warp; row < end; row += kMarkWarps) {
        const auto octet = Octet::load<kAligned>(x.data() + row * x.leading_dimension(), col, x.cols());
        for (int k = 0; k < kOctet / 2; ++k)
            largest[k] = __hmax2_nan(largest[k], __habs2(octet.unit(k)));
    }
    for (int k = 0; k < kOctet; ++k) {
        const float value = k % 2 == 0 ? __low2float(largest[k / 2]) : __high2float(largest[k / 2]);
        if (col + k < x.cols() && !(value < threshold)) keep[col + k] = 0;  // NaN is not less
    }
}

// keep[col] is 0xffff for all columns before.
template <bool kAligned>
void launch_mark_outliers(DeviceMatrix<const __half> x, float threshold, std::uint16_t* keep,
                          cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div<std::size_t>(x.cols(), kMarkTile);
    const std::size_t chunks = course::ceil_div(x.rows(), kMarkRows);
    mark_outliers<kAligned><<<course::blocks_for(tiles * chunks, 1), kMarkThreads, 0, stream>>>(
        x, threshold, keep, static_cast<unsigned>(tiles));
}

constexpr int kListThreads = 1024;

// Idea: one block lists the outlier columns in ascending order. A ballot (day 17) gives a warp one
// bit per lane; the bits below its own are the outlier columns before a lane's. Warps exchange
// their counts in shared memory.
// Cost removed: atomics, whose order would change from run to run.
// Still limits it: latency of one block on one SM, whose ALUs are 75 % busy. A row of 4,096 columns
// takes four steps.
__global__ void __launch_bounds__(kListThreads)
    list_outliers(const std::uint16_t* keep, std::size_t cols, std::uint32_t* columns, std::uint32_t* count) {
    constexpr int kWarps = kListThreads / kWarpSize;
    __shared__ unsigned of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    unsigned before = 0;
    for (std::size_t begin = 0; begin < cols; begin += kListThreads) {
        const std::size_t col = begin + threadIdx.x;
        const bool is_outlier = col < cols && keep[col] == 0;
        const unsigned lanes = __ballot_sync(course::kWholeWarp, is_outlier);
        if (lane == 0) of_warp[warp] = static_cast<unsigned>(__popc(lanes));
        __syncthreads();  // all counts are written
        unsigned place = before + static_cast<unsigned>(__popc(lanes & ((1u << lane) - 1)));
        for (int w = 0; w < kWarps; ++w) {
            if (w < warp) place += of_warp[w];
            before += of_warp[w];
        }
        if (is_outlier) columns[place] = static_cast<std::uint32_t>(col);
        __syncthreads();  // safe to overwrite of_warp
    }
    if (threadIdx.x == 0) *count = before;
}

inline void launch_list_outliers(const std::uint16_t* keep, std::size_t cols, std::uint32_t* columns,
                                 std::uint32_t* count, cudaStream_t stream) {
    list_outliers<<<1, kListThreads, 0, stream>>>(keep, cols, columns, count);
}

// --- The kept columns of X in 8 bits, a scale for each row (as on day 30) ------------------------

// Sets outlier columns to 0. keep is 0 or 0xffff, so two halves are masked at once, by their bits.
template <bool kAligned>
__device__ void mask(Octet& octet, const std::uint16_t* keep, std::size_t col, std::size_t cols) {
    using Mask = course::Pack<std::uint16_t, kOctet>;
    Mask of_octet{};
    if (kAligned && col + kOctet <= cols) {
        of_octet = Mask::load(keep + col);
    } else {
        for (int k = 0; k < kOctet; ++k)
            if (col + k < cols) of_octet.value[k] = keep[col + k];
    }
    unsigned words[kOctet / 2];
    std::memcpy(words, &of_octet, sizeof(words));
    for (int u = 0; u < kOctet / 2; ++u) {
        unsigned pair;
        std::memcpy(&pair, &octet.unit(u), sizeof(pair));
        pair &= words[u];
        std::memcpy(&octet.unit(u), &pair, sizeof(pair));
    }
}

// From row_codes.cuh: scale_of(block_max<...>(magnitude_bits(largest))) is the scale of a row, max
// |x| / 127, in every thread of its block; quantize() makes the codes of eight values.

constexpr int kKeptPacks = 4;  // octets of a thread

// Idea: a block per row, which stays in registers between finding the largest magnitude and
// quantising. Outlier columns count as 0 in both.
// Cost removed: a second read, and a copy of X without its outlier columns.
// Still limits it: L2 (counters: 70 % busy, memory 48 %). mark_outliers has read X before, and a
// part of it is still in the L2 cache.
template <bool kAligned, int kThreads>
__global__ void __launch_bounds__(kThreads)
    kept_row_in_registers(DeviceMatrix<const __half> x, const std::uint16_t* keep,
                          DeviceMatrix<std::int8_t> out, float* scale) {
    const std::size_t row = blockIdx.x;
    const auto col_of = [](int pack) {
        return static_cast<std::size_t>(pack * kThreads + static_cast<int>(threadIdx.x)) * kOctet;
    };
    Octet octets[kKeptPacks];
#pragma unroll
    for (int p = 0; p < kKeptPacks; ++p)
        octets[p] = Octet::load<kAligned>(x.data() + row * x.leading_dimension(), col_of(p), x.cols());
    __half2 largest = __float2half2_rn(0);
#pragma unroll
    for (int p = 0; p < kKeptPacks; ++p) {
        mask<kAligned>(octets[p], keep, col_of(p), x.cols());
        for (int u = 0; u < kOctet / 2; ++u)
            largest = __hmax2_nan(largest, __habs2(octets[p].unit(u)));
    }
    const float row_scale = scale_of(block_max<kThreads>(magnitude_bits(largest)));
    const float inverse = inverse_of(row_scale);
#pragma unroll
    for (int p = 0; p < kKeptPacks; ++p)
        if (col_of(p) < x.cols())
            course::store_bytes<kAligned>(quantize(octets[p], inverse),
                                          out.data() + row * out.leading_dimension(), col_of(p), x.cols());
    if (threadIdx.x == 0) scale[row] = row_scale;
}

// A row has at most 32 kThreads columns.
template <bool kAligned, int kThreads>
void launch_kept_row_in_registers(DeviceMatrix<const __half> x, const std::uint16_t* keep,
                                  DeviceMatrix<std::int8_t> out, float* scale, cudaStream_t stream) {
    kept_row_in_registers<kAligned, kThreads>
        <<<course::blocks_for(x.rows(), 1), kThreads, 0, stream>>>(x, keep, out, scale);
}

// --- The outlier columns in half -----------------------------------------------------------------

// The outlier columns of X and W side by side, zero-filled to whole tiles.
struct Outliers {
    const std::uint32_t* columns;
    const std::uint32_t* count;
    __half* x;  // tokens x pitch
    __half* w;  // outputs x pitch
    std::size_t pitch;

    static constexpr std::size_t kTile = 64;  // columns of half in 128 bytes

    __device__ std::size_t padded() const { return (*count + kTile - 1) / kTile * kTile; }
};

constexpr int kGatherWarps = 8;
constexpr int kGatherThreads = kGatherWarps * kWarpSize;

// Idea: a warp gathers the outlier columns of one row, first of X, then of W.
// Cost removed: scattered loads in the product, which would repeat them for every tile.
// Still limits it: the launch, with few outlier columns (counters: 4 us, no unit 50 % busy); with
// many, sectors of 32 bytes, of which two are used.
__global__ void __launch_bounds__(kGatherThreads)
    gather_outliers(DeviceMatrix<const __half> x, DeviceMatrix<const __half> w, Outliers outliers) {
    const std::size_t index = std::size_t{blockIdx.x} * kGatherWarps + threadIdx.x / kWarpSize;
    if (index >= x.rows() + w.rows()) return;
    const bool of_x = index < x.rows();
    const std::size_t row = of_x ? index : index - x.rows();
    const DeviceMatrix<const __half> from = of_x ? x : w;
    __half* const to = (of_x ? outliers.x : outliers.w) + row * outliers.pitch;
    const std::size_t count = *outliers.count;
    for (std::size_t i = threadIdx.x % kWarpSize; i < outliers.padded(); i += kWarpSize)
        to[i] = i < count ? from(row, outliers.columns[i]) : __half(0.0f);
}

inline void launch_gather_outliers(DeviceMatrix<const __half> x, DeviceMatrix<const __half> w,
                                   Outliers outliers, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(x.rows() + w.rows(), kGatherWarps);
    gather_outliers<<<grid, kGatherThreads, 0, stream>>>(x, w, outliers);
}

// --- plain: a kernel for each step ---------------------------------------------------------------

constexpr int kPlainThreads = 256;

// Idea: X8 W8^T, a thread for each result.
// Cost removed: none yet.
// Still limits it: two 1-byte loads per multiply-add (counters: L1 97 % busy).
__global__ void __launch_bounds__(kPlainThreads)
    plain_product(DeviceMatrix<const std::int8_t> x8, DeviceMatrix<const std::int8_t> w8,
                  std::int32_t* sums) {
    const std::size_t i = std::size_t{blockIdx.x} * kPlainThreads + threadIdx.x;
    if (i >= x8.rows() * w8.rows()) return;
    const std::size_t row = i / w8.rows();
    const std::size_t col = i % w8.rows();
    int sum = 0;
    for (std::size_t k = 0; k < x8.cols(); ++k)
        sum += x8(row, k) * w8(col, k);
    sums[i] = sum;
}

inline void launch_plain_product(DeviceMatrix<const std::int8_t> x8, DeviceMatrix<const std::int8_t> w8,
                                 std::int32_t* sums, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(x8.rows() * w8.rows(), kPlainThreads);
    plain_product<<<grid, kPlainThreads, 0, stream>>>(x8, w8, sums);
}

// Idea: an int32 sum times the scales of its row and column is a float, which takes the place of
// the sum.
// Cost removed: none yet.
// Still limits it: the latency of 4-byte loads (counters: waits for loads 64 % of the time, L2 54 %
// busy, memory 48 %). The next kernel reads the results again.
__global__ void __launch_bounds__(kPlainThreads)
    dequantize_sums(std::int32_t* sums, std::size_t rows, std::size_t cols, const float* row_scale,
                    const float* column_scale) {
    const std::size_t i = std::size_t{blockIdx.x} * kPlainThreads + threadIdx.x;
    if (i >= rows * cols) return;
    const float value = static_cast<float>(sums[i]) * row_scale[i / cols] * column_scale[i % cols];
    sums[i] = __float_as_int(value);
}

inline void launch_dequantize_sums(std::int32_t* sums, std::size_t rows, std::size_t cols,
                                   const float* row_scale, const float* column_scale, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(rows * cols, kPlainThreads);
    dequantize_sums<<<grid, kPlainThreads, 0, stream>>>(sums, rows, cols, row_scale, column_scale);
}

// Idea: the product of the outlier columns, a thread for each result, is added to that float.
// Cost removed: none yet.
// Still limits it: two loads per multiply-add; slow when there are many outlier columns.
__global__ void __launch_bounds__(kPlainThreads)
    add_outliers(const std::int32_t* sums, Outliers outliers, DeviceMatrix<__half> y) {
    const std::size_t i = std::size_t{blockIdx.x} * kPlainThreads + threadIdx.x;
    if (i >= y.rows() * y.cols()) return;
    const std::size_t row = i / y.cols();
    const std::size_t col = i % y.cols();
    float sum = __int_as_float(sums[i]);
    for (std::size_t k = 0; k < *outliers.count; ++k)
        sum += static_cast<float>(outliers.x[row * outliers.pitch + k]) *
               static_cast<float>(outliers.w[col * outliers.pitch + k]);
    y(row, col) = __half(sum);
}

inline void launch_add_outliers(const std::int32_t* sums, Outliers outliers, DeviceMatrix<__half> y,
                                cudaStream_t stream) {
    const unsigned grid = course::blocks_for(y.rows() * y.cols(), kPlainThreads);
    add_outliers<<<grid, kPlainThreads, 0, stream>>>(sums, outliers, y);
}

}  // namespace day32

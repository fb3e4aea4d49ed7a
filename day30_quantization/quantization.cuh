// Day 30: a matrix of float or half to 8 bits, and back.                                         not in PMPP
//
//     quantise     q = saturate(round(x / scale) + zero_point)       dequantise     x' = (q - zero_point) scale
//
//   version            reads x    what is new                             what limits it
//   plain              2 times    a block per row, a thread per value     latency: 1 to 4 bytes per access
//   row_in_registers   once       a row stays in registers                L2, latency of the row's loads
//
// Both quantise rows, plain only symmetrically. quantize_octets and dequantize_octets, eight values
// per thread, are for scales that are given. Each kernel is followed by its launch. beyond/ finds
// the scales of any groups (two_passes), and goes on with blocks of 4 bits. The program also runs
// host_pointers, called with host memory (quantize_rows_of_host in quantization.cu).
//
//   ./course run day30                                              every version, verified and timed
//   ./course run day30 --program                                    program.cu, from main() to the result
//   ./course inspect day30 --only plain --size 64x256               what its accesses cost
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/octet.cuh"
#include "ranges.cuh"

namespace day30 {

using course::ByteOctet;
using course::DeviceMatrix;

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
// Still limits it: latency. A load has 2 or 4 bytes, and a row 256 atomics (counters: waits for
// loads 45 % of the time, issue slots 59 % busy).
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
// Still limits it: latency. 2 bytes per load and 1 per store; a division of 64 bits for the row
// (counters: waits for loads 59 % of the time, issue slots 60 % busy, FP64 1 %).
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

// `scale` has an element for each row.
template <class T>
void launch_plain(DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out, float* scale,
                  cudaStream_t stream) {
    find_row_scales<T><<<course::blocks_for(in.rows(), 1), kThreads, 0, stream>>>(in, scale);
    if (in.cols() == 0) return;
    const unsigned grid = course::blocks_for(in.rows() * in.cols(), kThreads);
    quantize_values<T><<<grid, kThreads, 0, stream>>>(in, scale, out);
}

// --- Given scales: eight values per thread, rounding without a conversion ------------------------

// From here on a thread has eight adjacent values, an Octet: one load of 16 bytes for halves, one
// store of 8 bytes for their codes.

// Adding 1.5 * 2^23 to a number below 2^22 leaves no bits for a fraction: the addition itself
// rounds to the nearest integer, ties to even, and the lowest byte of the sum is that integer. So a
// single instruction, fmaf, multiplies, rounds and converts, and it rounds the exact product, as
// plain does with double.
constexpr float kRounding = 12582912.0f;

// The lowest bytes of four such sums.
__device__ inline unsigned low_bytes(float a, float b, float c, float d) {
    const unsigned ab = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x0040);
    const unsigned cd = __byte_perm(__float_as_uint(c), __float_as_uint(d), 0x0040);
    return __byte_perm(ab, cd, 0x5410);
}

// Of round(0) to round(7), each the sum of a number and kRounding.
template <class Round>
__device__ ByteOctet rounded_octet(const Round& round) {
    const unsigned words[2] = {low_bytes(round(0), round(1), round(2), round(3)),
                               low_bytes(round(4), round(5), round(6), round(7))};
    ByteOctet bytes;
    std::memcpy(&bytes, words, sizeof(bytes));
    return bytes;
}

struct Parameters {
    float scale;
    std::int32_t zero_point;
};

// For given parameters: values may saturate, and a NaN becomes the zero point.
class Quantizer {
  public:
    template <Scheme kScheme>
    static __device__ Quantizer make(Parameters p) {
        Quantizer quantizer;
        quantizer.inverse_ = fabsf(p.scale) >= FLT_MIN ? 1 / p.scale : 0.0f;  // 0 for NaN, too
        const auto zero = static_cast<float>(p.zero_point);
        quantizer.lowest_ = kRounding + (kScheme == Scheme::kSymmetric ? -127.0f : -128.0f - zero);
        quantizer.highest_ = kRounding + 127.0f - zero;
        quantizer.zero_ = zero;
        return quantizer;
    }

    __device__ float operator()(float x) const {
        const float rounded = fmaf(x, inverse_, kRounding);
        const float nan_is_zero = isnan(rounded) ? kRounding : rounded;
        return fminf(fmaxf(nan_is_zero, lowest_), highest_) + zero_;
    }

    template <class T>
    __device__ ByteOctet operator()(const Octet<T>& x) const {
        return rounded_octet([&](int k) { return (*this)(x[k]); });
    }

  private:
    float inverse_;
    float lowest_;
    float highest_;
    float zero_;
};

// The row and the octet of a thread, where a row has `octets` of them. A division of 64 bits takes
// about as long as everything else that the thread does, so small numbers are divided in 32 bits.
struct OctetCoords {
    std::size_t row;
    std::size_t octet;

    __device__ explicit OctetCoords(std::size_t octets) {
        const std::size_t thread = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
        if ((thread | octets) >> 32 == 0) {
            row = static_cast<unsigned>(thread) / static_cast<unsigned>(octets);
            octet = static_cast<unsigned>(thread) % static_cast<unsigned>(octets);
        } else {
            row = thread / octets;
            octet = thread % octets;
        }
    }

    __device__ std::size_t col() const { return octet * kOctet; }
};

// The parameters of the group of an element: the matrix, its row, or its column.
template <Scheme kScheme, Granularity kGranularity>
struct GivenParameters {
    const float* scale;
    const std::int32_t* zero_point;

    __device__ Parameters operator()(std::size_t row, std::size_t col) const {
        const std::size_t group = kGranularity == Granularity::kRow      ? row
                                  : kGranularity == Granularity::kColumn ? col
                                                                         : 0;
        return {scale[group], kScheme == Scheme::kAsymmetric ? zero_point[group] : 0};
    }
};

// Idea: eight values per thread, in registers from load to store.
// Cost removed: seven of eight accesses, and arithmetic in double.
// Still limits it: L2 or memory, wherever the first pass has left the values (counters: L2 76 %
// busy, memory 51 %); per column a scale, and its inverse, for each value.
template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    quantize_octets(DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                    GivenParameters<kScheme, kGranularity> parameters, std::size_t octets) {
    const OctetCoords at(octets);
    if (at.row >= in.rows()) return;
    const auto x =
        Octet<T>::template load<kAligned>(in.data() + at.row * in.leading_dimension(), at.col(), in.cols());
    const auto quantizer = [&](int k) {
        const std::size_t col = min(at.col() + k, in.cols() - 1);
        return Quantizer::make<kScheme>(parameters(at.row, col));
    };
    ByteOctet q;
    if constexpr (kGranularity == Granularity::kColumn) {
        q = rounded_octet([&](int k) { return quantizer(k)(x[k]); });
    } else {
        q = quantizer(0)(x);
    }
    course::store_bytes<kAligned>(q, out.data() + at.row * out.leading_dimension(), at.col(), in.cols());
}

template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
void launch_quantize_octets(DeviceMatrix<const T> in, const float* scale, const std::int32_t* zero_point,
                            DeviceMatrix<std::int8_t> out, cudaStream_t stream) {
    const std::size_t octets = course::ceil_div<std::size_t>(in.cols(), kOctet);
    quantize_octets<T, kScheme, kGranularity, kAligned>
        <<<course::blocks_for(in.rows() * octets, kThreads), kThreads, 0, stream>>>(
            in, out, {scale, zero_point}, octets);
}

// Idea: the same way back. Eight bytes per thread become eight values.
// Cost removed: seven of eight accesses.
// Still limits it: memory.
template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    dequantize_octets(DeviceMatrix<const std::int8_t> in, DeviceMatrix<T> out,
                      GivenParameters<kScheme, kGranularity> parameters, std::size_t octets) {
    const OctetCoords at(octets);
    if (at.row >= in.rows()) return;
    const ByteOctet q =
        course::load_bytes<kAligned>(in.data() + at.row * in.leading_dimension(), at.col(), in.cols());
    const auto x = Octet<T>::of([&](int k) {
        const Parameters p = parameters(at.row, min(at.col() + k, in.cols() - 1));
        return static_cast<T>(static_cast<float>(q.value[k] - p.zero_point) * p.scale);
    });
    x.template store<kAligned>(out.data() + at.row * out.leading_dimension(), at.col(), in.cols());
}

template <class T, Scheme kScheme, Granularity kGranularity, bool kAligned>
void launch_dequantize_octets(DeviceMatrix<const std::int8_t> in, const float* scale,
                              const std::int32_t* zero_point, DeviceMatrix<T> out, cudaStream_t stream) {
    const std::size_t octets = course::ceil_div<std::size_t>(in.cols(), kOctet);
    dequantize_octets<T, kScheme, kGranularity, kAligned>
        <<<course::blocks_for(in.rows() * octets, kThreads), kThreads, 0, stream>>>(
            in, out, {scale, zero_point}, octets);
}

// --- row_in_registers: scales found, and codes, in one kernel -------------------------------------

constexpr int kPacks = 4;  // octets of a thread

// Row or chunk of a row that kGroupThreads threads keep in registers: kPacks octets of each, those
// of adjacent threads side by side.
template <class T, int kGroupThreads, bool kAligned>
class RowShare {
  public:
    static constexpr std::size_t kCapacity = std::size_t{kGroupThreads} * kPacks * kOctet;

    __device__ void load(const T* row, std::size_t cols, int thread) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            octet_[p] = Octet<T>::template load<kAligned>(row, col(p, thread), cols);
    }

    template <Scheme kScheme>
    __device__ Range range() const {
        return range_of<kScheme>(octet_, kPacks);
    }

    // Stores quantize(octet) for each octet. They are streaming stores (day 6), whose lines the L2
    // cache evicts first.
    template <class AnyQuantizer>
    __device__ void store(std::int8_t* row, std::size_t cols, int thread,
                          const AnyQuantizer& quantize) const {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            if (col(p, thread) < cols) store_streaming(quantize(octet_[p]), row, col(p, thread), cols);
    }

  private:
    static __device__ std::size_t col(int pack, int thread) {
        return static_cast<std::size_t>(pack * kGroupThreads + thread) * kOctet;
    }

    static __device__ void store_streaming(const ByteOctet& bytes, std::int8_t* row, std::size_t col,
                                           std::size_t cols) {
        if (kAligned && col + kOctet <= cols) {
            uint2 words;
            std::memcpy(&words, &bytes, sizeof(words));
            __stcs(reinterpret_cast<uint2*>(row + col), words);
        } else {
            course::store_bytes<false>(bytes, row, col, cols);
        }
    }

    Octet<T> octet_[kPacks];
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

// For the symmetric scheme, and only for the values from which the scale was computed: nothing can
// saturate, and a NaN makes all codes 0.
class AbsmaxQuantizer {
  public:
    __device__ explicit AbsmaxQuantizer(float scale)
        : inverse_(scale >= FLT_MIN ? 1 / scale : 0.0f), mask_(inverse_ > 0 ? 0xffffffffu : 0u) {}

    template <class T>
    __device__ ByteOctet operator()(const Octet<T>& x) const {
        const auto round = [&](int k) { return fmaf(x[k], inverse_, kRounding); };
        const unsigned words[2] = {low_bytes(round(0), round(1), round(2), round(3)) & mask_,
                                   low_bytes(round(4), round(5), round(6), round(7)) & mask_};
        ByteOctet bytes;
        std::memcpy(&bytes, words, sizeof(bytes));
        return bytes;
    }

  private:
    float inverse_;
    unsigned mask_;
};

constexpr int kFewestThreads = 128;  // of a block: short rows share one
constexpr std::size_t kLongestRow = RowShare<float, 1024, true>::kCapacity;

// Idea: kRowThreads threads keep their row in registers while they find its range, and quantise it
// from there.
// Cost removed: the second read, and all kernels but one.
// Still limits it: the latency of a row's loads (counters: waits for loads 53 % of the time; L2 65
// % busy, memory 51 %, as the codes stay in L2); in the asymmetric scheme comparisons and
// conversions.
template <class T, Scheme kScheme, bool kAligned, int kRowThreads>
__global__ void __launch_bounds__(std::max(kRowThreads, kFewestThreads))
    row_in_registers(DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out, float* scale,
                     std::int32_t* zero_point) {
    constexpr int kRows = kRowThreads < kFewestThreads ? kFewestThreads / kRowThreads : 1;
    const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
    const std::size_t row = std::size_t{blockIdx.x} * kRows + threadIdx.x / kRowThreads;
    const std::size_t cols = row < in.rows() ? in.cols() : 0;  // a row beyond the last is empty

    RowShare<T, kRowThreads, kAligned> share;
    share.load(in.data() + row * in.leading_dimension(), cols, thread);
    const Range range = group_merge<kScheme, kRowThreads, kRows>(share.template range<kScheme>());
    const Parameters parameters = parameters_of<kScheme>(range);
    std::int8_t* const out_row = out.data() + row * out.leading_dimension();
    if constexpr (kScheme == Scheme::kSymmetric) {
        share.store(out_row, cols, thread, AbsmaxQuantizer(parameters.scale));
    } else {
        share.store(out_row, cols, thread, Quantizer::make<kScheme>(parameters));
    }
    if (thread == 0 && row < in.rows()) {
        scale[row] = parameters.scale;
        if (zero_point != nullptr) zero_point[row] = parameters.zero_point;
    }
}

template <class T, Scheme kScheme, bool kAligned, int kRowThreads>
void launch_row_in_registers(DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out, float* scale,
                             std::int32_t* zero_point, cudaStream_t stream) {
    constexpr int kBlock = std::max(kRowThreads, kFewestThreads);
    const unsigned grid = course::blocks_for(in.rows(), kBlock / kRowThreads);
    row_in_registers<T, kScheme, kAligned, kRowThreads>
        <<<grid, kBlock, 0, stream>>>(in, out, scale, zero_point);
}

}  // namespace day30

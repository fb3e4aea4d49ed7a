// Day 30, part 2: rounding. The second pass of two_passes, and row_in_registers, which needs only
// one. The table of versions and the ranges of groups are in quantization.cuh.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quantization.cuh"

namespace day30 {

using course::ByteOctet;

// --- two_passes, second pass: rounding without a conversion --------------------------------------

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

// The parameters of the group of an element.
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
// Still limits it: memory; per column a scale, and its inverse, for each value.
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

// --- row_in_registers ----------------------------------------------------------------------------

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
// Still limits it: memory; in the asymmetric scheme comparisons and conversions.
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

}  // namespace day30

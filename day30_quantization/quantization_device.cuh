// What the kernels of this day are made of: eight neighbouring values, the range of a group, rounding to 8 bits.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "quantization.hpp"

namespace day30 {

// --- Eight values ------------------------------------------------------------------------------------------------------

constexpr int kOctet = 8;  // one load of 16 bytes of halves, two of floats, and one store of 8 bytes of int8

// Columns [column, column + 8) of a row of `cols`; those from the end on count as 0 and are not stored. kAligned: rows begin at
// multiples of 16 bytes. Halves stay in pairs, as they are loaded and as instructions take them.
template <class T>
class Octet {
    static constexpr bool kHalf = std::is_same_v<T, __half>;
    using Unit = std::conditional_t<kHalf, __half2, T>;
    using Units = course::Pack<Unit, 4>;
    static constexpr int kPacks = kOctet * sizeof(T) / sizeof(Units);

  public:
    // Of value(0) to value(7).
    template <class Value>
    static __device__ Octet of(const Value& value) {
        Octet octet;
        for (int u = 0; u < 4 * kPacks; ++u) {
            if constexpr (kHalf) {
                octet.unit(u) = __halves2half2(value(2 * u), value(2 * u + 1));
            } else {
                octet.unit(u) = value(u);
            }
        }
        return octet;
    }

    template <bool kAligned>
    static __device__ Octet load(const T* row, std::size_t column, std::size_t cols) {
        if (kAligned && column + kOctet <= cols) {
            Octet octet;
            const auto* const units = reinterpret_cast<const Unit*>(row + column);
            for (int p = 0; p < kPacks; ++p)
                octet.pack_[p] = Units::load(units + 4 * p);
            return octet;
        }
        return of([&](int k) { return column + k < cols ? row[column + k] : T(0.0f); });
    }

    template <bool kAligned>
    __device__ void store(T* row, std::size_t column, std::size_t cols) const {
        if (kAligned && column + kOctet <= cols) {
            for (int p = 0; p < kPacks; ++p)
                pack_[p].store(reinterpret_cast<Unit*>(row + column) + 4 * p);
        } else {
            for (int k = 0; k < kOctet; ++k)
                if (column + k < cols) row[column + k] = static_cast<T>((*this)[k]);
        }
    }

    __device__ float operator[](int k) const {
        if constexpr (kHalf) {
            return k % 2 == 0 ? __low2float(unit(k / 2)) : __high2float(unit(k / 2));
        } else {
            return unit(k);
        }
    }

    __device__ Unit& unit(int u) { return pack_[u / 4].value[u % 4]; }
    __device__ const Unit& unit(int u) const { return pack_[u / 4].value[u % 4]; }

  private:
    Units pack_[kPacks];
};

using Bytes = course::Pack<std::int8_t, kOctet>;

template <bool kAligned>
__device__ inline Bytes load_bytes(const std::int8_t* row, std::size_t column, std::size_t cols) {
    if (kAligned && column + kOctet <= cols) return Bytes::load(row + column);
    Bytes bytes{};
    for (int k = 0; k < kOctet; ++k)
        if (column + k < cols) bytes.value[k] = row[column + k];
    return bytes;
}

// Who reads the result? Somebody soon: it may stay in the L2 cache. Nobody here: it leaves first, and the input stays, which helps only where
// the input is read again, as when repeats are timed with a warm cache.
enum class Reader { kSoon, kNobody };

template <bool kAligned, Reader kReader = Reader::kSoon>
__device__ void store_bytes(const Bytes& bytes, std::int8_t* row, std::size_t column, std::size_t cols) {
    if (kAligned && column + kOctet <= cols) {
        if constexpr (kReader == Reader::kNobody) {
            uint2 words;
            std::memcpy(&words, &bytes, sizeof(words));
            __stcs(reinterpret_cast<uint2*>(row + column), words);
        } else {
            bytes.store(row + column);
        }
    } else {
        for (int k = 0; k < kOctet; ++k)
            if (column + k < cols) row[column + k] = bytes.value[k];
    }
}

// Which eight values a thread takes of a matrix with `octets` times eight in a row. A division of 64 bits takes about as long as all else
// that the thread does, so small numbers are divided as such.
template <int kThreads>
struct Place {
    std::size_t row;
    std::size_t octet;

    __device__ explicit Place(std::size_t octets) {
        const std::size_t thread = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
        if ((thread | octets) >> 32 == 0) {
            row = static_cast<unsigned>(thread) / static_cast<unsigned>(octets);
            octet = static_cast<unsigned>(thread) % static_cast<unsigned>(octets);
        } else {
            row = thread / octets;
            octet = thread % octets;
        }
    }

    __device__ std::size_t column() const { return octet * kOctet; }
};

// --- The range of a group ----------------------------------------------------------------------------------------------

// Floats that are not negative are ordered as their bits are; beyond the largest come Inf and then the NaNs. So a maximum of bits
// loses no NaN, as fmaxf would.
constexpr unsigned kInfinityBits = 0x7f800000u;

// Symmetric: the bits of max |x|, in `above`. Asymmetric: those of max x in `above` and of max -x in `below`, each at least 0; a
// NaN is in one of them. Without initial values: shared memory holds some.
struct Range {
    unsigned above, below;

    template <Scheme kScheme>
    __device__ void include(float x) {
        if constexpr (kScheme == Scheme::kSymmetric) {
            above = max(above, __float_as_uint(fabsf(x)));
        } else if (const unsigned bits = __float_as_uint(x); bits < 0x80000000u) {
            above = max(above, bits);
        } else {
            below = max(below, bits - 0x80000000u);
        }
    }
};

// The range of `count` octets. Magnitudes of halves are compared two at a time.
template <Scheme kScheme, class T>
__device__ Range range_of(const Octet<T>* octets, int count) {
    Range range = {};
    if constexpr (kScheme == Scheme::kSymmetric && std::is_same_v<T, __half>) {
        __half2 largest = __float2half2_rn(0);
#pragma unroll
        for (int i = 0; i < count; ++i)
            for (int u = 0; u < kOctet / 2; ++u)
                largest = __hmax2_nan(largest, __habs2(octets[i].unit(u)));
        range.include<kScheme>(__low2float(largest));
        range.include<kScheme>(__high2float(largest));
    } else {
#pragma unroll
        for (int i = 0; i < count; ++i)
            for (int k = 0; k < kOctet; ++k)
                range.include<kScheme>(octets[i][k]);
    }
    return range;
}

template <Scheme kScheme>
__device__ inline Range merge(Range a, Range b) {
    Range merged{.above = max(a.above, b.above), .below = 0};
    if constexpr (kScheme == Scheme::kAsymmetric) merged.below = max(a.below, b.below);
    return merged;
}

template <Scheme kScheme>
__device__ inline Range warp_merge(Range range) {
    const auto larger = [](unsigned a, unsigned b) { return max(a, b); };
    range.above = course::warp_reduce(range.above, larger);
    if constexpr (kScheme == Scheme::kAsymmetric) range.below = course::warp_reduce(range.below, larger);
    return range;
}

// Over groups of kThreads neighbouring threads, whole warps; the block has kGroups of them, and all its threads must call. One barrier, and
// none for a group of one warp.
template <Scheme kScheme, int kThreads, int kGroups = 1>
__device__ Range group_merge(Range range) {
    constexpr int kWarps = kThreads / course::kWarpSize;
    range = warp_merge<kScheme>(range);
    if constexpr (kWarps > 1) {
        static_assert(kWarps <= course::kWarpSize, "group_merge: a lane for each warp");
        __shared__ Range of_warp[kGroups * kWarps];
        const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
        const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
        if (lane == 0) of_warp[warp] = range;
        __syncthreads();
        range = warp_merge<kScheme>(of_warp[warp / kWarps * kWarps + lane % kWarps]);
    }
    return range;
}

// --- Scale, zero point, rounding ---------------------------------------------------------------------------------------

struct Parameters {
    float scale;
    std::int32_t zero_point;
};

template <Scheme kScheme>
__device__ inline Parameters parameters_of(Range range) {
    if (max(range.above, range.below) >= kInfinityBits) return {__uint_as_float(0x7fffffffu), 0};
    const float above = __uint_as_float(range.above);
    const float below = __uint_as_float(range.below);
    // The two parts of a range are divided first: their sum may be too large for a float.
    const float scale = kScheme == Scheme::kSymmetric ? above / 127 : above / 255 + below / 255;
    if (scale < FLT_MIN) return {0, 0};
    return {scale, kScheme == Scheme::kSymmetric ? 0 : __float2int_rn(below / scale) - 128};
}

// Adding 1.5 * 2^23 to a number below 2^22 leaves no bits for a fraction: the addition itself rounds to the nearest integer, ties to
// even, and its lowest byte is that integer. One instruction multiplies, rounds and converts.
constexpr float kRounding = 12582912.0f;

// The low bytes of four numbers that were rounded so.
__device__ inline unsigned low_bytes(float a, float b, float c, float d) {
    const unsigned ab = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x0040);
    const unsigned cd = __byte_perm(__float_as_uint(c), __float_as_uint(d), 0x0040);
    return __byte_perm(ab, cd, 0x5410);
}

template <class Round>
__device__ Bytes rounded_octet(const Round& round) {
    const unsigned words[2] = {low_bytes(round(0), round(1), round(2), round(3)),
                               low_bytes(round(4), round(5), round(6), round(7))};
    Bytes bytes;
    std::memcpy(&bytes, words, sizeof(bytes));
    return bytes;
}

// For values of any size.
class Quantizer {
  public:
    template <Scheme kScheme>
    static __device__ Quantizer make(Parameters p) {
        Quantizer quantizer;
        quantizer.inverse_ = p.scale >= FLT_MIN ? 1 / p.scale : 0.0f;  // 0 for NaN too
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
    __device__ Bytes operator()(const Octet<T>& x) const {
        return rounded_octet([&](int k) { return (*this)(x[k]); });
    }

  private:
    float inverse_;
    float lowest_;
    float highest_;
    float zero_;
};

// For the symmetric scheme and the very values that the scale was found for: nothing can saturate, and a NaN makes all of them 0.
class AbsmaxQuantizer {
  public:
    __device__ explicit AbsmaxQuantizer(float scale)
        : inverse_(scale >= FLT_MIN ? 1 / scale : 0.0f), mask_(inverse_ > 0 ? 0xffffffffu : 0u) {}

    template <class T>
    __device__ Bytes operator()(const Octet<T>& x) const {
        const auto round = [&](int k) { return fmaf(x[k], inverse_, kRounding); };
        const unsigned words[2] = {low_bytes(round(0), round(1), round(2), round(3)) & mask_,
                                   low_bytes(round(4), round(5), round(6), round(7)) & mask_};
        Bytes bytes;
        std::memcpy(&bytes, words, sizeof(bytes));
        return bytes;
    }

  private:
    float inverse_;
    unsigned mask_;
};

// --- A row in registers --------------------------------------------------------------------------------------------------

// What each of kThreads threads keeps of a row: kPacks octets, those of neighbouring threads side by side.
template <class T, int kThreads, int kPacks, bool kAligned>
class RowShare {
  public:
    static constexpr std::size_t kCapacity = std::size_t{kThreads} * kPacks * kOctet;

    __device__ void load(const T* row, std::size_t cols, int thread) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            octet_[p] = Octet<T>::template load<kAligned>(row, column(p, thread), cols);
    }

    template <Scheme kScheme>
    __device__ Range range() const {
        return range_of<kScheme>(octet_, kPacks);
    }

    template <Reader kReader, class AnyQuantizer>
    __device__ void store(std::int8_t* row, std::size_t cols, int thread,
                          const AnyQuantizer& quantize) const {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            if (column(p, thread) < cols)
                store_bytes<kAligned, kReader>(quantize(octet_[p]), row, column(p, thread), cols);
    }

    // change(octet, its first column), for each.
    template <class Change>
    __device__ void for_each(int thread, const Change& change) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            change(octet_[p], column(p, thread));
    }

  private:
    static __device__ std::size_t column(int pack, int thread) {
        return static_cast<std::size_t>(pack * kThreads + thread) * kOctet;
    }

    Octet<T> octet_[kPacks];
};

}  // namespace day30

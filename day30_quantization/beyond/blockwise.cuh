// Day 30, beyond: blocks of a row, each with a scale of its own, in 8 or in 4 bits.
//
//   quantize_block_octets      a few adjacent threads hold a block in registers; shuffles find its scale
//   dequantize_block_octets    eight codes per thread
//
// Both read and write everything once, and 4 bits write half as much as 8 bits. Nevertheless they
// are limited by instructions: conversions and packing, and for nf4 four dependent loads from the
// table of levels.
//
//   ./course run day30 --size 4096x4096
#pragma once

#include "blockwise.hpp"
#include "quantization.cuh"

namespace day30 {

// --- Codes ---------------------------------------------------------------------------------------

static __device__ constexpr float kLevels[16] = {
    kNf4Levels[0],  kNf4Levels[1],  kNf4Levels[2],  kNf4Levels[3], kNf4Levels[4],  kNf4Levels[5],
    kNf4Levels[6],  kNf4Levels[7],  kNf4Levels[8],  kNf4Levels[9], kNf4Levels[10], kNf4Levels[11],
    kNf4Levels[12], kNf4Levels[13], kNf4Levels[14], kNf4Levels[15]};

// Scale, codes and values of one kind of code. The code of x is that of x * inverse.
template <Code kCode>
struct Coder {
    static constexpr bool kPacked = kCode != Code::kInt8;  // two in a byte
    static constexpr float kLargest = kCode == Code::kInt8 ? 127 : kCode == Code::kInt4 ? 7 : 1;

    static __device__ unsigned code(float x, float inverse) {
        if constexpr (kCode == Code::kNf4) {
            // Sixteen levels have fifteen borders, half-way between adjacent levels. A binary
            // search finds in four comparisons how many of them are below x.
            const float y = x * inverse;
            unsigned below = 0;
            for (unsigned step = 8; step > 0; step /= 2) {
                const unsigned border = below + step - 1;
                if (y > (kLevels[border] + kLevels[border + 1]) / 2) below += step;
            }
            return below;
        } else {
            return __float_as_uint(fmaf(x, inverse, kRounding)) & (kPacked ? 0xfu : 0xffu);
        }
    }

    static __device__ float value(unsigned code) {
        if constexpr (kCode == Code::kNf4) return kLevels[code];
        constexpr unsigned kSign = kPacked ? 8 : 128;
        return static_cast<float>(static_cast<int>(code ^ kSign) - static_cast<int>(kSign));
    }
};

// Code k of eight at its place: two codes share a byte if they are packed.
template <Code kCode>
__device__ unsigned long long shifted(unsigned code, int k) {
    return static_cast<unsigned long long>(code) << (k * (Coder<kCode>::kPacked ? 4 : 8));
}

template <Code kCode>
constexpr int kOctetBytes = Coder<kCode>::kPacked ? kOctet / 2 : kOctet;

template <Code kCode, bool kAligned>
__device__ void store_codes(unsigned long long codes, std::uint8_t* row, std::size_t octet,
                            std::size_t bytes) {
    constexpr int kBytes = kOctetBytes<kCode>;
    const std::size_t begin = octet * kBytes;
    if (kAligned && begin + kBytes <= bytes) {
        course::Pack<std::uint8_t, kBytes> pack;
        std::memcpy(&pack, &codes, sizeof(pack));
        pack.store(row + begin);
    } else {
        for (int i = 0; i < kBytes; ++i)
            if (begin + i < bytes) row[begin + i] = static_cast<std::uint8_t>(codes >> (8 * i));
    }
}

template <Code kCode, bool kAligned>
__device__ unsigned long long load_codes(const std::uint8_t* row, std::size_t octet, std::size_t bytes) {
    constexpr int kBytes = kOctetBytes<kCode>;
    const std::size_t begin = octet * kBytes;
    unsigned long long codes = 0;
    if (kAligned && begin + kBytes <= bytes) {
        const auto pack = course::Pack<std::uint8_t, kBytes>::load(row + begin);
        std::memcpy(&codes, &pack, sizeof(pack));
    } else {
        for (int i = 0; i < kBytes; ++i)
            if (begin + i < bytes) codes |= static_cast<unsigned long long>(row[begin + i]) << (8 * i);
    }
    return codes;
}

// --- Kernels -------------------------------------------------------------------------------------

// Idea: kBlock / 8 adjacent threads have a block of values, eight each. Shuffles between them
// find the largest magnitude: 1 step for a block of 16 values, 5 for 256.
// Cost removed: the second read, and shared memory.
// Still limits it: issue slots (counters: 76 % busy for int4, 69 % for int8, where L2 is 71 %
// busy), which go to conversions and packing; nf4: loads from the table of levels, each of which
// depends on the previous comparison.
template <class T, Code kCode, bool kAligned, int kBlock>
__global__ void __launch_bounds__(kThreads)
    quantize_block_octets(DeviceMatrix<const T> in, DeviceMatrix<std::uint8_t> codes,
                          DeviceMatrix<float> scales, std::size_t octets) {
    constexpr int kThreadsOfBlock = kBlock / kOctet;
    const OctetCoords at(octets);
    const bool inside = at.row < in.rows();  // no thread may leave before the shuffles
    const std::size_t col = at.col();
    const auto x = Octet<T>::template load<kAligned>(in.data() + at.row * in.leading_dimension(), col,
                                                     inside ? in.cols() : 0);
    unsigned largest = range_of<Scheme::kSymmetric>(&x, 1).above;
    for (int distance = kThreadsOfBlock / 2; distance > 0; distance /= 2)
        largest = max(largest, __shfl_xor_sync(course::kWholeWarp, largest, distance));

    float scale = __uint_as_float(largest) / Coder<kCode>::kLargest;
    if (largest >= kInfinityBits) scale = __uint_as_float(0x7fffffffu);
    if (scale < FLT_MIN) scale = 0;
    const float inverse = scale >= FLT_MIN ? 1 / scale : 0.0f;
    unsigned long long packed = 0;
    for (int k = 0; k < kOctet; ++k) {
        const float value = inverse > 0 ? x[k] : 0.0f;  // not NaN times 0
        if (col + k < in.cols()) packed |= shifted<kCode>(Coder<kCode>::code(value, inverse), k);
    }
    if (!inside || col >= in.cols()) return;
    store_codes<kCode, kAligned>(packed, codes.data() + at.row * codes.leading_dimension(), at.octet,
                                 codes.cols());
    if (at.octet % kThreadsOfBlock == 0) scales(at.row, at.octet / kThreadsOfBlock) = scale;
}

template <class T, Code kCode, bool kAligned, int kBlock>
void launch_quantize_block_octets(DeviceMatrix<const T> in, DeviceMatrix<std::uint8_t> codes,
                                  DeviceMatrix<float> scales, cudaStream_t stream) {
    const std::size_t octets = scales.cols() * (kBlock / kOctet);  // of whole blocks
    quantize_block_octets<T, kCode, kAligned, kBlock>
        <<<course::blocks_for(in.rows() * octets, kThreads), kThreads, 0, stream>>>(in, codes, scales,
                                                                                    octets);
}

// Idea: eight codes per thread, one scale.
// Cost removed: seven of eight accesses.
// Still limits it: conversions; nf4: a load from the table of levels for each value.
template <class T, Code kCode, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    dequantize_block_octets(DeviceMatrix<const std::uint8_t> codes, DeviceMatrix<const float> scales,
                            DeviceMatrix<T> out, std::size_t octets, int octets_of_block) {
    const OctetCoords at(octets);
    if (at.row >= out.rows()) return;
    const unsigned long long packed = load_codes<kCode, kAligned>(
        codes.data() + at.row * codes.leading_dimension(), at.octet, codes.cols());
    const float scale = scales(at.row, at.octet / octets_of_block);
    constexpr int kBits = Coder<kCode>::kPacked ? 4 : 8;
    const auto x = Octet<T>::of([&](int k) {
        const auto code = static_cast<unsigned>(packed >> (k * kBits)) & ((1u << kBits) - 1);
        return static_cast<T>(Coder<kCode>::value(code) * scale);
    });
    x.template store<kAligned>(out.data() + at.row * out.leading_dimension(), at.octet * kOctet, out.cols());
}

template <class T, Code kCode, bool kAligned>
void launch_dequantize_block_octets(DeviceMatrix<const std::uint8_t> codes, DeviceMatrix<const float> scales,
                                    DeviceMatrix<T> out, int octets_of_block, cudaStream_t stream) {
    const std::size_t octets = course::ceil_div<std::size_t>(out.cols(), kOctet);
    dequantize_block_octets<T, kCode, kAligned>
        <<<course::blocks_for(out.rows() * octets, kThreads), kThreads, 0, stream>>>(codes, scales, out,
                                                                                     octets, octets_of_block);
}

}  // namespace day30

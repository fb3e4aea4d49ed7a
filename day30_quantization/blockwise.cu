// Day 30, second part: blocks of a row with a scale each, in 8 or in 4 bits.
//
//     quantize_blocks      a few neighbouring threads have a block in registers; its scale takes a few shuffles
//     dequantize_blocks    eight codes per thread
//
// Both read and write everything once, and 4 bits write half of what 8 bits do. Instructions limit them all the same: conversions, and for
// nf4 four loads that wait for one another.
//
//   ./course run day30 --size 4096x4096x4096
#include <algorithm>
#include <string>

#include "arguments.hpp"
#include "blockwise.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "quantization_device.cuh"

namespace day30 {
namespace {

constexpr int kThreads = 256;

// --- Codes -----------------------------------------------------------------------------------------------------------

__device__ constexpr float kLevels[16] = {kNf4Levels[0],  kNf4Levels[1],  kNf4Levels[2],  kNf4Levels[3],
                                          kNf4Levels[4],  kNf4Levels[5],  kNf4Levels[6],  kNf4Levels[7],
                                          kNf4Levels[8],  kNf4Levels[9],  kNf4Levels[10], kNf4Levels[11],
                                          kNf4Levels[12], kNf4Levels[13], kNf4Levels[14], kNf4Levels[15]};

// Scale, codes and values of one kind of code. The code of x is that of x * inverse.
template <Code kCode>
struct Coder {
    static constexpr bool kPacked = kCode != Code::kInt8;  // two in a byte
    static constexpr float kLargest = kCode == Code::kInt8 ? 127 : kCode == Code::kInt4 ? 7 : 1;

    static __device__ unsigned code(float x, float inverse) {
        if constexpr (kCode == Code::kNf4) {
            // Sixteen levels have fifteen borders half-way; how many of them lie below x is found in four comparisons.
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

// Eight codes as they lie in memory, in the lowest bytes.
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

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: block / 8 neighbouring threads have a block of values, eight each; who is alone in 16 values meets one other thread.
// Cost removed: the second read, and shared memory.
// Still limits it: conversions and packing; nf4: loads from the table of levels, each of which waits for the last comparison.
template <class T, Code kCode, bool kAligned, int kBlock>
__global__ void __launch_bounds__(kThreads)
    quantize(DeviceMatrix<const T> in, DeviceMatrix<std::uint8_t> codes, DeviceMatrix<float> scales,
             std::size_t octets) {
    constexpr int kThreadsOfBlock = kBlock / kOctet;
    const Place<kThreads> place(octets);
    const bool inside = place.row < in.rows();  // no thread may leave before the shuffles
    const std::size_t column = place.column();
    const auto x = Octet<T>::template load<kAligned>(in.data() + place.row * in.leading_dimension(), column,
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
        if (column + k < in.cols()) packed |= shifted<kCode>(Coder<kCode>::code(value, inverse), k);
    }
    if (!inside || column >= in.cols()) return;
    store_codes<kCode, kAligned>(packed, codes.data() + place.row * codes.leading_dimension(), place.octet,
                                 codes.cols());
    if (place.octet % kThreadsOfBlock == 0) scales(place.row, place.octet / kThreadsOfBlock) = scale;
}

// Idea: eight codes per thread, one scale.
// Cost removed: seven of eight accesses.
// Still limits it: conversions; nf4: a load from the table of levels for each value.
template <class T, Code kCode, bool kAligned>
__global__ void __launch_bounds__(kThreads)
    dequantize(DeviceMatrix<const std::uint8_t> codes, DeviceMatrix<const float> scales, DeviceMatrix<T> out,
               std::size_t octets, int octets_of_block) {
    const Place<kThreads> place(octets);
    if (place.row >= out.rows()) return;
    const unsigned long long packed = load_codes<kCode, kAligned>(
        codes.data() + place.row * codes.leading_dimension(), place.octet, codes.cols());
    const float scale = scales(place.row, place.octet / octets_of_block);
    constexpr int kBits = Coder<kCode>::kPacked ? 4 : 8;
    const auto x = Octet<T>::of([&](int k) {
        const auto code = static_cast<unsigned>(packed >> (k * kBits)) & ((1u << kBits) - 1);
        return static_cast<T>(Coder<kCode>::value(code) * scale);
    });
    x.template store<kAligned>(out.data() + place.row * out.leading_dimension(), place.octet * kOctet,
                               out.cols());
}

// --- Launchers -------------------------------------------------------------------------------------------------------

// Throws std::invalid_argument for a block size that is not in the list, and for shapes that do not belong together.
template <class T, class Codes, class Scales>
void check_arguments(std::string_view function, BlockFormat format, DeviceMatrix<T> values, Codes codes,
                     Scales scales) {
    require_block(function, format.block);
    require_shape(Argument{function, "codes"}, codes, values.rows(), format.bytes(values.cols()));
    require_shape(Argument{function, "scales"}, scales, values.rows(), format.scales(values.cols()));
}

template <class Function>
void with_code(Code code, bool aligned, const Function& function) {
    const auto with_alignment = [&]<Code kCode>() {
        if (aligned) {
            function.template operator()<kCode, true>();
        } else {
            function.template operator()<kCode, false>();
        }
    };
    switch (code) {
        case Code::kInt8:
            return with_alignment.template operator()<Code::kInt8>();
        case Code::kInt4:
            return with_alignment.template operator()<Code::kInt4>();
        case Code::kNf4:
            return with_alignment.template operator()<Code::kNf4>();
    }
}

// Calls function<kBlock>() for the block size that is known to be in the list.
template <int kBlock = 16, class Function>
void with_block(std::size_t block, const Function& function) {
    if constexpr (kBlock < 256) {
        if (block > std::size_t{kBlock}) return with_block<2 * kBlock>(block, function);
    }
    function.template operator()<kBlock>();
}

}  // namespace

std::string name(Code code) {
    return code == Code::kInt8 ? "int8" : code == Code::kInt4 ? "int4" : "nf4";
}

std::size_t BlockFormat::bytes(std::size_t cols) const {
    return code == Code::kInt8 ? cols : course::ceil_div<std::size_t>(cols, 2);
}

std::size_t BlockFormat::scales(std::size_t cols) const {
    require_block("BlockFormat::scales", block);
    return course::ceil_div(cols, block);
}

template <class T>
void quantize_blocks(BlockFormat format, DeviceMatrix<const T> in, DeviceMatrix<std::uint8_t> codes,
                     DeviceMatrix<float> scales, cudaStream_t stream) {
    check_arguments("quantize_blocks", format, in, codes, scales);
    require_apart("quantize_blocks: codes", codes, "in", in);
    require_apart("quantize_blocks: scales", scales, "in", in);
    require_apart("quantize_blocks: codes", codes, "scales", scales);
    if (in.rows() == 0 || in.cols() == 0) return;
    const std::size_t octets = format.scales(in.cols()) * (format.block / kOctet);  // of whole blocks
    const bool aligned = rows_are_aligned(in, 16) && rows_are_aligned(codes, 8);
    const unsigned blocks = course::blocks_for(in.rows() * octets, kThreads);
    with_code(format.code, aligned, [&]<Code kCode, bool kAligned>() {
        with_block(format.block, [&]<int kBlock>() {
            quantize<T, kCode, kAligned, kBlock><<<blocks, kThreads, 0, stream>>>(in, codes, scales, octets);
            CUDA_CHECK_LAUNCH();
        });
    });
}

template <class T>
void dequantize_blocks(BlockFormat format, DeviceMatrix<const std::uint8_t> codes,
                       DeviceMatrix<const float> scales, DeviceMatrix<T> out, cudaStream_t stream) {
    check_arguments("dequantize_blocks", format, out, codes, scales);
    require_apart("dequantize_blocks: out", out, "codes", codes);
    require_apart("dequantize_blocks: out", out, "scales", scales);
    if (out.rows() == 0 || out.cols() == 0) return;
    const std::size_t octets = course::ceil_div<std::size_t>(out.cols(), kOctet);
    const bool aligned = rows_are_aligned(out, 16) && rows_are_aligned(codes, 8);
    const unsigned blocks = course::blocks_for(out.rows() * octets, kThreads);
    with_code(format.code, aligned, [&]<Code kCode, bool kAligned>() {
        dequantize<T, kCode, kAligned><<<blocks, kThreads, 0, stream>>>(
            codes, scales, out, octets, static_cast<int>(format.block / kOctet));
        CUDA_CHECK_LAUNCH();
    });
}

course::Work quantize_blocks_work(BlockFormat format, std::size_t rows, std::size_t cols,
                                  std::size_t value_bytes) {
    const auto elements = static_cast<double>(rows * cols);
    const auto written =
        static_cast<double>(rows * (format.bytes(cols) + format.scales(cols) * sizeof(float)));
    return {.bytes = elements * static_cast<double>(value_bytes) + written,
            .written = written,
            .flops = 2 * elements};
}

#define DAY30_INSTANTIATE(T)                                                                         \
    template void quantize_blocks<T>(BlockFormat, DeviceMatrix<const T>, DeviceMatrix<std::uint8_t>, \
                                     DeviceMatrix<float>, cudaStream_t);                             \
    template void dequantize_blocks<T>(BlockFormat, DeviceMatrix<const std::uint8_t>,                \
                                       DeviceMatrix<const float>, DeviceMatrix<T>, cudaStream_t);
DAY30_INSTANTIATE(float)
DAY30_INSTANTIATE(__half)
#undef DAY30_INSTANTIATE

}  // namespace day30

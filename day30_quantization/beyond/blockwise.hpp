// Quantisation in blocks: every `block` adjacent values of a row have a scale of their own, so that
// a large value reduces only the resolution of the values near it. In 8 bits, or in 4, two codes in
// a byte.
//
//   int8   round(x / scale) in [-127, 127], scale = max |x| / 127        like GGUF's Q8_0 (blocks of 32)
//   int4   round(x / scale) in [-7, 7], two's complement,                4-bit weights in general
//          scale = max |x| / 7
//   nf4    the nearest of 16 levels, scale = max |x|                     QLoRA's (blocks of 64)
//
// The levels of nf4 are quantiles of a normal distribution, scaled to [-1, 1]: they are closer
// where values are frequent. Of two equally near levels the lower one is chosen.
//
// Real formats store scales in 16 bits or quantise them once more. Here they are floats, so a value
// takes bits + 32 / block bits. Zeros, NaN and Inf as in quantization.hpp, with a block for a
// group: scale 0 or NaN, and codes that represent 0.
//
// Methods: T. Dettmers, A. Pagnoni, A. Holtzman, L. Zettlemoyer, "QLoRA: Efficient Finetuning of
// Quantized LLMs", 2023, section 3 and appendix E (the levels); T. Dettmers, M. Lewis, S. Shleifer,
// L. Zettlemoyer, "8-bit Optimizers via Block-wise Quantization", 2022.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/bench/work.hpp"
#include "common/device/device_view.hpp"

namespace day30 {

enum class Code { kInt8, kInt4, kNf4 };

// "int8", "int4", "nf4"
std::string name(Code code);

inline constexpr std::array<float, 16> kNf4Levels = {-1.0f,
                                                     -0.6961928009986877f,
                                                     -0.5250730514526367f,
                                                     -0.39491748809814453f,
                                                     -0.28444138169288635f,
                                                     -0.18477343022823334f,
                                                     -0.09105003625154495f,
                                                     0.0f,
                                                     0.07958029955625534f,
                                                     0.16093020141124725f,
                                                     0.24611230194568634f,
                                                     0.33791524171829224f,
                                                     0.44070982933044434f,
                                                     0.5626170039176941f,
                                                     0.7229568362236023f,
                                                     1.0f};

// 16, 32, 64, 128 or 256 values share a scale; the last block of a row may be shorter.
struct BlockFormat {
    Code code = Code::kInt4;
    std::size_t block = 64;

    // Of a row's codes. Of two codes in a byte the first is the low half.
    std::size_t bytes(std::size_t cols) const;
    // Of a row. std::invalid_argument for another `block`.
    std::size_t scales(std::size_t cols) const;
};

// Throws std::invalid_argument, in the name of `function`, unless a block of `block` values may
// share a scale.
void require_block(std::string_view function, std::size_t block);

// `codes` is in.rows() x format.bytes(in.cols()), `scales` in.rows() x format.scales(in.cols()). T
// is float or __half. An unused half of a row's last byte becomes 0. Any leading dimension, any
// alignment of elements; outputs must not overlap inputs. std::invalid_argument for arguments
// unlike that, CudaError when the launch fails.
template <class T>
void quantize_blocks(BlockFormat format, course::DeviceMatrix<const T> in,
                     course::DeviceMatrix<std::uint8_t> codes, course::DeviceMatrix<float> scales,
                     cudaStream_t stream);

// Scales may be any floats, of either sign: a value is that of its code times its scale, and 0
// times Inf is NaN.
template <class T>
void dequantize_blocks(BlockFormat format, course::DeviceMatrix<const std::uint8_t> codes,
                       course::DeviceMatrix<const float> scales, course::DeviceMatrix<T> out,
                       cudaStream_t stream);

course::Work quantize_blocks_work(BlockFormat format, std::size_t rows, std::size_t cols,
                                  std::size_t value_bytes);

// The same on the CPU, packed. Codes and scales are bit for bit what the GPU finds.
template <class T>
void quantize_blocks_on_cpu(BlockFormat format, std::size_t rows, std::size_t cols, std::span<const T> in,
                            std::span<std::uint8_t> codes, std::span<float> scales);
void dequantize_blocks_on_cpu(BlockFormat format, std::size_t rows, std::size_t cols,
                              std::span<const std::uint8_t> codes, std::span<const float> scales,
                              std::span<double> out);

}  // namespace day30

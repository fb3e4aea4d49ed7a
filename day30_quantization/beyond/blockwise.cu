// Day 30's host code for blocks: argument checks, and the choice of the constants of blockwise.cuh.
#include <string>
#include <string_view>

#include "blockwise.cuh"
#include "common/check/check.hpp"
#include "common/check/matrix_arguments.hpp"
#include "common/device/grid.hpp"

namespace day30 {
namespace {

using course::Argument;

// Throws std::invalid_argument for a block size that is not in the list, and for shapes that do not
// match.
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

// Calls function<kBlock>() for a block size of the list.
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

void require_block(std::string_view function, std::size_t block) {
    course::require(block >= 16 && block <= 256 && (block & (block - 1)) == 0, function, ": block is ", block,
                    "; expected 16, 32, 64, 128 or 256");
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
    const bool aligned = rows_are_aligned(in, 16) && rows_are_aligned(codes, 8);
    with_code(format.code, aligned, [&]<Code kCode, bool kAligned>() {
        with_block(format.block, [&]<int kBlock>() {
            launch_quantize_block_octets<T, kCode, kAligned, kBlock>(in, codes, scales, stream);
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
    const bool aligned = rows_are_aligned(out, 16) && rows_are_aligned(codes, 8);
    with_code(format.code, aligned, [&]<Code kCode, bool kAligned>() {
        launch_dequantize_block_octets<T, kCode, kAligned>(codes, scales, out,
                                                           static_cast<int>(format.block / kOctet), stream);
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

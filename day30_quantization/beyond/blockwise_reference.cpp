#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "blockwise.hpp"
#include "common/check/matrix_arguments.hpp"

namespace day30 {
namespace {

using course::Argument;
using course::require_size;

// The nearest level, of two equally near the lower one.
int nearest_level(float value) {
    int best = 0;
    for (int level = 1; level < 16; ++level) {
        const auto at = static_cast<std::size_t>(level);
        if (value > (kNf4Levels[at - 1] + kNf4Levels[at]) / 2) best = level;
    }
    return best;
}

double largest_code(Code code) {
    return code == Code::kInt8 ? 127 : code == Code::kInt4 ? 7 : 1;
}

void require_sizes(std::string_view function, BlockFormat format, std::size_t rows, std::size_t cols,
                   std::size_t values, std::size_t codes, std::size_t scales) {
    require_block(function, format.block);
    require_size(Argument{function, "values"}, values, rows * cols);
    require_size(Argument{function, "codes"}, codes, rows * format.bytes(cols));
    require_size(Argument{function, "scales"}, scales, rows * format.scales(cols));
}

}  // namespace

template <class T>
void quantize_blocks_on_cpu(BlockFormat format, std::size_t rows, std::size_t cols, std::span<const T> in,
                            std::span<std::uint8_t> codes, std::span<float> scales) {
    require_sizes("quantize_blocks_on_cpu", format, rows, cols, in.size(), codes.size(), scales.size());
    std::fill(codes.begin(), codes.end(), std::uint8_t{0});
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t begin = 0; begin < cols; begin += format.block) {
            const std::size_t end = std::min(cols, begin + format.block);
            float largest = 0;
            bool finite = true;
            for (std::size_t col = begin; col < end; ++col) {
                const float magnitude = std::abs(static_cast<float>(in[row * cols + col]));
                finite = finite && std::isfinite(magnitude);
                largest = std::max(largest, magnitude);
            }
            float scale = largest / static_cast<float>(largest_code(format.code));
            if (scale < FLT_MIN) scale = 0;
            if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
            scales[row * format.scales(cols) + begin / format.block] = scale;
            const float inverse = scale > 0 ? 1 / scale : 0;
            for (std::size_t col = begin; col < end; ++col) {
                const float x = scale > 0 ? static_cast<float>(in[row * cols + col]) : 0;
                int code = format.code == Code::kNf4
                               ? nearest_level(x * inverse)
                               : static_cast<int>(
                                     std::nearbyint(static_cast<double>(x) * static_cast<double>(inverse)));
                if (format.code == Code::kInt8) {
                    codes[row * cols + col] = static_cast<std::uint8_t>(code);
                } else {
                    code = (code & 15) << (col % 2 * 4);
                    codes[row * format.bytes(cols) + col / 2] |= static_cast<std::uint8_t>(code);
                }
            }
        }
    }
}

void dequantize_blocks_on_cpu(BlockFormat format, std::size_t rows, std::size_t cols,
                              std::span<const std::uint8_t> codes, std::span<const float> scales,
                              std::span<double> out) {
    require_sizes("dequantize_blocks_on_cpu", format, rows, cols, out.size(), codes.size(), scales.size());
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t col = 0; col < cols; ++col) {
            const double scale = static_cast<double>(scales[row * format.scales(cols) + col / format.block]);
            const std::uint8_t* const of_row = codes.data() + row * format.bytes(cols);
            if (format.code == Code::kInt8) {
                out[row * cols + col] = static_cast<std::int8_t>(of_row[col]) * scale;
                continue;
            }
            const int code = of_row[col / 2] >> (col % 2 * 4) & 15;
            const double value = format.code == Code::kNf4
                                     ? static_cast<double>(kNf4Levels[static_cast<std::size_t>(code)])
                                     : (code < 8 ? code : code - 16);
            out[row * cols + col] = value * scale;
        }
    }
}

#define DAY30_INSTANTIATE(T)                                                                           \
    template void quantize_blocks_on_cpu<T>(BlockFormat, std::size_t, std::size_t, std::span<const T>, \
                                            std::span<std::uint8_t>, std::span<float>);
DAY30_INSTANTIATE(float)
DAY30_INSTANTIATE(__half)
#undef DAY30_INSTANTIATE

}  // namespace day30

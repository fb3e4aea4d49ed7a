#include "convolution_plain_loop.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace day10 {
namespace {

// Beyond the border stands the pixel at the border: place i of n, moved by `by`.
std::size_t place(std::size_t i, std::ptrdiff_t by, std::size_t n) {
    const std::ptrdiff_t moved = static_cast<std::ptrdiff_t>(i) + by;
    return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(moved, 0, static_cast<std::ptrdiff_t>(n) - 1));
}

}  // namespace

template <class T>
void convolve_plainly(std::span<const T> in, std::size_t rows, std::size_t cols, std::size_t channels,
                      const Filter& filter, std::span<T> out, int threads) {
    const auto up = static_cast<std::ptrdiff_t>(filter.rows() / 2);
    const auto left = static_cast<std::ptrdiff_t>(filter.cols() / 2);
#pragma omp parallel for num_threads(threads)
    for (std::size_t y = 0; y < rows; ++y) {
        for (std::size_t x = 0; x < cols; ++x) {
            for (std::size_t c = 0; c < channels; ++c) {
                const float* weight = filter.weights().data();
                float sum = 0;
                for (std::ptrdiff_t dy = -up; dy <= up; ++dy)
                    for (std::ptrdiff_t dx = -left; dx <= left; ++dx)
                        sum += *weight++ *
                               static_cast<float>(
                                   in[(place(y, dy, rows) * cols + place(x, dx, cols)) * channels + c]);
                T& result = out[(y * cols + x) * channels + c];
                if constexpr (std::is_same_v<T, float>) {
                    result = sum;
                } else {
                    result = static_cast<T>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
                }
            }
        }
    }
}

template void convolve_plainly(std::span<const float>, std::size_t, std::size_t, std::size_t, const Filter&,
                               std::span<float>, int);
template void convolve_plainly(std::span<const std::uint8_t>, std::size_t, std::size_t, std::size_t,
                               const Filter&, std::span<std::uint8_t>, int);

}  // namespace day10

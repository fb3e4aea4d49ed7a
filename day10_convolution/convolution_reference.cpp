#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "convolution.hpp"

namespace day10 {
namespace {

constexpr std::ptrdiff_t kOutside = -1;

// Which of n places stands at place i, by walking there.
std::ptrdiff_t place(std::ptrdiff_t i, std::ptrdiff_t n, BorderKind kind) {
    while (i < 0 || i >= n) {
        switch (kind) {
            case BorderKind::kReplicate:
                i = i < 0 ? 0 : n - 1;
                break;
            case BorderKind::kReflect:
                if (n == 1) return 0;
                i = i < 0 ? -i : 2 * (n - 1) - i;
                break;
            case BorderKind::kConstant:
                return kOutside;
            case BorderKind::kWrap:
                i = i < 0 ? i + n : i - n;
                break;
        }
    }
    return i;
}

// The places from -reach to n + reach - 1.
std::vector<std::ptrdiff_t> places(std::size_t n, std::size_t reach, BorderKind kind) {
    std::vector<std::ptrdiff_t> all(n + 2 * reach);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = place(static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(reach),
                       static_cast<std::ptrdiff_t>(n), kind);
    }
    return all;
}

}  // namespace

template <class T>
Expected convolve_on_cpu(std::span<const T> in, std::size_t rows, std::size_t cols, std::size_t channels,
                         const Filter& filter, Border border) {
    const std::size_t size = rows * cols * channels;
    if (in.size() != size) throw std::invalid_argument("convolve_on_cpu: `in` is not rows * cols * channels");
    Expected out{std::vector<double>(size), std::vector<double>(size)};
    if (size == 0) return out;
    const std::vector<std::ptrdiff_t> row_at = places(rows, filter.rows() / 2, border.kind);
    const std::vector<std::ptrdiff_t> col_at = places(cols, filter.cols() / 2, border.kind);
    std::vector<double> weights;
    for (std::size_t dy = 0; dy < filter.rows(); ++dy) {
        for (std::size_t dx = 0; dx < filter.cols(); ++dx)
            weights.push_back(filter.weight(dy, dx));
    }
    const auto last_row = static_cast<std::ptrdiff_t>(rows);
    const bool worth_threads = size * weights.size() > 1000000;
#pragma omp parallel for if (worth_threads)
    for (std::ptrdiff_t row = 0; row < last_row; ++row) {
        const auto y = static_cast<std::size_t>(row);
        for (std::size_t i = 0; i < cols * channels; ++i) {
            const std::size_t x = i / channels;
            const std::size_t channel = i % channels;
            double sum = 0;
            double magnitude = 0;
            for (std::size_t dy = 0; dy < filter.rows(); ++dy) {
                for (std::size_t dx = 0; dx < filter.cols(); ++dx) {
                    const std::ptrdiff_t from_row = row_at[y + dy];
                    const std::ptrdiff_t from_col = col_at[x + dx];
                    double value = static_cast<double>(border.value);
                    if (from_row != kOutside && from_col != kOutside) {
                        const std::size_t pixel =
                            static_cast<std::size_t>(from_row) * cols + static_cast<std::size_t>(from_col);
                        value = static_cast<double>(in[pixel * channels + channel]);
                    }
                    const double term = weights[dy * filter.cols() + dx] * value;
                    sum += term;
                    magnitude += std::abs(term);
                }
            }
            out.value[y * cols * channels + i] = sum;
            out.magnitude[y * cols * channels + i] = magnitude;
        }
    }
    return out;
}

template Expected convolve_on_cpu<float>(std::span<const float>, std::size_t, std::size_t, std::size_t,
                                         const Filter&, Border);
template Expected convolve_on_cpu<std::uint8_t>(std::span<const std::uint8_t>, std::size_t, std::size_t,
                                                std::size_t, const Filter&, Border);

}  // namespace day10

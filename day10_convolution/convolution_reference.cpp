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

// A picture and what stands outside it, on the way to its sums.
template <class T>
struct Task {
    std::span<const T> in;
    std::size_t rows;
    std::size_t cols;
    std::size_t channels;
    const Filter& filter;
    double outside;
    std::vector<std::ptrdiff_t> row_at;
    std::vector<std::ptrdiff_t> col_at;
    bool worth_threads;

    std::size_t width() const { return cols * channels; }

    // Row `from` of the picture with the border to its left and right.
    std::vector<double> padded_row(std::ptrdiff_t from) const {
        std::vector<double> row(col_at.size() * channels, outside);
        if (from == kOutside) return row;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::ptrdiff_t col = col_at[i / channels];
            if (col == kOutside) continue;
            row[i] = static_cast<double>(
                in[(static_cast<std::size_t>(from) * cols + static_cast<std::size_t>(col)) * channels +
                   i % channels]);
        }
        return row;
    }
};

// Adds weight * from[i], and its magnitude.
void add_scaled(double weight, const double* value_from, const double* magnitude_from, double* value,
                double* magnitude, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        value[i] += weight * value_from[i];
        magnitude[i] += std::abs(weight * magnitude_from[i]);
    }
}

// The definition: rows x cols terms for each value.
template <class T>
void sum_directly(const Task<T>& task, Expected& out) {
    const auto last_row = static_cast<std::ptrdiff_t>(task.rows);
#pragma omp parallel for if (task.worth_threads)
    for (std::ptrdiff_t row = 0; row < last_row; ++row) {
        const auto y = static_cast<std::size_t>(row);
        const std::size_t begin = y * task.width();
        for (std::size_t dy = 0; dy < task.filter.rows(); ++dy) {
            const std::vector<double> from = task.padded_row(task.row_at[y + dy]);
            for (std::size_t dx = 0; dx < task.filter.cols(); ++dx) {
                const double* const shifted = from.data() + dx * task.channels;
                add_scaled(task.filter.weight(dy, dx), shifted, shifted, &out.value[begin],
                           &out.magnitude[begin], task.width());
            }
        }
    }
}

// The same for a column times a row, in rows + cols terms: photographs would take minutes
// otherwise. Nothing is rounded between the passes that double would not round.
template <class T>
void sum_rows_then_columns(const Task<T>& task, Expected& out) {
    const std::size_t width = task.width();
    const std::vector<float>& column = task.filter.column();
    const std::vector<float>& row_taps = task.filter.row();
    // One row more than the picture has: what the first pass makes of a row outside.
    Expected across{std::vector<double>((task.rows + 1) * width),
                    std::vector<double>((task.rows + 1) * width)};
    const auto last_row = static_cast<std::ptrdiff_t>(task.rows);
#pragma omp parallel for if (task.worth_threads)
    for (std::ptrdiff_t row = 0; row <= last_row; ++row) {
        const std::size_t begin = static_cast<std::size_t>(row) * width;
        const std::vector<double> from = task.padded_row(row == last_row ? kOutside : row);
        for (std::size_t dx = 0; dx < row_taps.size(); ++dx) {
            const double* const shifted = from.data() + dx * task.channels;
            add_scaled(static_cast<double>(row_taps[dx]), shifted, shifted, &across.value[begin],
                       &across.magnitude[begin], width);
        }
    }
#pragma omp parallel for if (task.worth_threads)
    for (std::ptrdiff_t row = 0; row < last_row; ++row) {
        const auto y = static_cast<std::size_t>(row);
        for (std::size_t dy = 0; dy < column.size(); ++dy) {
            const std::ptrdiff_t place = task.row_at[y + dy];
            const std::size_t from =
                (place == kOutside ? task.rows : static_cast<std::size_t>(place)) * width;
            add_scaled(static_cast<double>(column[dy]), &across.value[from], &across.magnitude[from],
                       &out.value[y * width], &out.magnitude[y * width], width);
        }
    }
}

}  // namespace

template <class T>
Expected convolve_on_cpu(std::span<const T> in, std::size_t rows, std::size_t cols, std::size_t channels,
                         const Filter& filter, Border border) {
    const std::size_t size = rows * cols * channels;
    if (in.size() != size) throw std::invalid_argument("convolve_on_cpu: `in` is not rows * cols * channels");
    Expected out{std::vector<double>(size), std::vector<double>(size)};
    if (size == 0) return out;
    const std::size_t taps =
        filter.is_separable() ? filter.rows() + filter.cols() : filter.rows() * filter.cols();
    const Task<T> task{in,
                       rows,
                       cols,
                       channels,
                       filter,
                       static_cast<double>(border.value),
                       places(rows, filter.rows() / 2, border.kind),
                       places(cols, filter.cols() / 2, border.kind),
                       size * taps > 1000000};
    if (filter.is_separable()) {
        sum_rows_then_columns(task, out);
    } else {
        sum_directly(task, out);
    }
    return out;
}

template Expected convolve_on_cpu<float>(std::span<const float>, std::size_t, std::size_t, std::size_t,
                                         const Filter&, Border);
template Expected convolve_on_cpu<std::uint8_t>(std::span<const std::uint8_t>, std::size_t, std::size_t,
                                                std::size_t, const Filter&, Border);

}  // namespace day10

// The hunts on the CPU: plain loops in double. Each says which terms an element of the result is
// the sum of.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "references.hpp"

namespace hunts {
namespace {

using Input = std::span<const float>;
using Output = std::span<double>;

// For each element (row, col) of the result: `terms` calls what it is given with each of its terms.
template <class Terms>
void add_up(const Shape& shape, Output out, Output magnitude, Terms terms) {
    std::fill(out.begin(), out.end(), 0.0);
    std::fill(magnitude.begin(), magnitude.end(), 0.0);
    for (std::size_t row = 0; row < shape.rows; ++row) {
        for (std::size_t col = 0; col < shape.cols; ++col) {
            const std::size_t i = row * shape.cols + col;
            terms(row, col, [&](double term) {
                out[i] += term;
                magnitude[i] += std::abs(term);
            });
        }
    }
}

}  // namespace

void filter_on_cpu(const Layout& layout, Input in, Input weights, Output out, Output magnitude) {
    const auto [rows, cols] = layout.in;
    const auto inside = [](std::size_t place, std::size_t extent) { return place >= 1 && place <= extent; };
    add_up(layout.out, out, magnitude, [&](std::size_t row, std::size_t col, auto add) {
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < 3; ++j) {
                if (inside(row + i, rows) && inside(col + j, cols))
                    add(static_cast<double>(weights[3 * i + j]) * in[(row + i - 1) * cols + col + j - 1]);
            }
        }
    });
}

void resample_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude,
           [&](std::size_t, std::size_t i, auto add) { add(in[i * in.size() / out.size()]); });
}

void vector_matrix_on_cpu(const Layout& layout, Input a, Input x, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude, [&](std::size_t, std::size_t col, auto add) {
        for (std::size_t row = 0; row < layout.in.rows; ++row)
            add(static_cast<double>(x[row]) * a[row * layout.in.cols + col]);
    });
}

void midpoints_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude, [&](std::size_t, std::size_t i, auto add) {
        add(0.5 * in[i]);
        add(0.5 * in[i + 1]);
    });
}

void warp_sums_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude, [&](std::size_t, std::size_t warp, auto add) {
        for (std::size_t i = warp * 32; i < std::min(warp * 32 + 32, in.size()); ++i)
            add(in[i]);
    });
}

void centre_rows_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    const std::size_t cols = layout.in.cols;
    for (std::size_t row = 0; row < layout.in.rows; ++row) {
        double mean = 0;
        double mean_magnitude = 0;
        for (std::size_t i = row * cols; i < (row + 1) * cols; ++i) {
            mean += in[i] / static_cast<double>(cols);
            mean_magnitude += std::abs(in[i]) / static_cast<double>(cols);
        }
        for (std::size_t i = row * cols; i < (row + 1) * cols; ++i) {
            out[i] = in[i] - mean;
            magnitude[i] = std::abs(in[i]) + mean_magnitude;
        }
    }
}

void column_sums_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude, [&](std::size_t, std::size_t col, auto add) {
        for (std::size_t row = 0; row < layout.in.rows; ++row)
            add(in[row * layout.in.cols + col]);
    });
}

void scale_rows_on_cpu(const Layout& layout, Input in, Input factors, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude, [&](std::size_t row, std::size_t col, auto add) {
        add(static_cast<double>(factors[row]) * in[row * layout.in.cols + col]);
    });
}

void transpose_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude,
           [&](std::size_t row, std::size_t col, auto add) { add(in[col * layout.in.cols + row]); });
}

void fold_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude, [&](std::size_t, std::size_t place, auto add) {
        for (std::size_t i = place; i < in.size(); i += out.size())
            add(in[i]);
    });
}

void running_sums_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    const std::size_t cols = layout.in.cols;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const bool begins = i % cols == 0;
        out[i] = (begins ? 0 : out[i - 1]) + in[i];
        magnitude[i] = (begins ? 0 : magnitude[i - 1]) + std::abs(in[i]);
    }
}

// Two steps of heat between cells that are `distance` apart in memory.
void heat(Input in, Output out, Output magnitude, std::size_t distance, auto has_both) {
    std::ranges::copy(in, out.begin());
    std::ranges::transform(in, magnitude.begin(), [](float value) { return std::abs(value); });
    for (int step = 0; step < 2; ++step) {
        for (const Output& values : {out, magnitude}) {
            const std::vector<double> old(values.begin(), values.end());
            for (std::size_t i = 0; i < old.size(); ++i)
                if (has_both(i)) values[i] = (old[i - distance] + old[i] + old[i + distance]) / 3;
        }
    }
}

void rods_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    const std::size_t cols = layout.in.cols;
    heat(in, out, magnitude, 1, [cols](std::size_t i) { return i % cols > 0 && i % cols + 1 < cols; });
}

void details_on_cpu(const Layout& layout, Input in, Input none, Output out, Output magnitude) {
    rods_on_cpu(layout, in, none, out, magnitude);  // a blur is a step of the heat
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = in[i] - out[i];
        magnitude[i] += std::abs(static_cast<double>(in[i]));
    }
}

void halves_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    const auto [rows, cols] = layout.in;
    heat(in, out, magnitude, cols,
         [rows, cols](std::size_t i) { return i / cols > 0 && i / cols + 1 < rows; });
}

void letters_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    add_up(layout.out, out, magnitude, [&](std::size_t, std::size_t i, auto add) { add(2 * in[i]); });
}

void shelves_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    const std::size_t n = layout.in.cols;
    std::vector<std::size_t> boxes(n);
    std::iota(boxes.begin(), boxes.end(), std::size_t{0});
    for (std::size_t begin = 0; begin < n; begin += 128)
        std::ranges::stable_sort(std::span(boxes).subspan(begin, std::min<std::size_t>(128, n - begin)), {},
                                 [](std::size_t i) { return i * i % 256; });
    for (std::size_t k = 0; k < n; ++k) {
        out[k] = in[boxes[k]];
        magnitude[k] = std::abs(out[k]);
    }
}

void places_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    double before = 0;
    for (std::size_t block = 0; block < layout.out.cols; ++block) {
        out[block] = magnitude[block] = before;
        for (std::size_t i = block * 256; i < std::min(block * 256 + 256, in.size()); ++i)
            before += in[i] > 0 ? 1 : 0;
    }
}

// A queue: cells in the order in which the water reaches them.
void flood_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    constexpr double kDry = 9;
    const std::size_t cols = layout.in.cols;
    std::vector<std::size_t> queue;
    std::ranges::fill(out, kDry);
    const auto reach = [&](std::size_t cell, double step) {
        if (!(in[cell] > -0.5f) || out[cell] != kDry || step >= kDry) return;
        out[cell] = step;
        queue.push_back(cell);
    };
    for (std::size_t cell = 0; cell < in.size(); cell += cols)
        reach(cell, 0);
    for (std::size_t next = 0; next < queue.size(); ++next) {
        const std::size_t cell = queue[next];
        const double step = out[cell] + 1;
        if (cell % cols > 0) reach(cell - 1, step);
        if (cell % cols + 1 < cols) reach(cell + 1, step);
        if (cell >= cols) reach(cell - cols, step);
        if (cell + cols < in.size()) reach(cell + cols, step);
    }
    std::ranges::copy(out, magnitude.begin());
}

namespace {

// The 2^9 columns and rows of the squares.
unsigned cell_of(float coordinate) {
    const float scaled = (coordinate + 1) * 256;
    return scaled > 0 ? static_cast<unsigned>(std::min(scaled, 511.0f)) : 0;
}

// Divides a square of `side` cells, the points of which are `points`, if it has too many.
void divide(Input in, unsigned side, const std::vector<std::size_t>& points, Output out) {
    if (points.size() <= 32 || side == 2) {
        for (const std::size_t i : points)
            out[i] = static_cast<double>(points.size());
        return;
    }
    const std::size_t n = in.size() / 2;
    std::vector<std::size_t> quarters[4];
    for (const std::size_t i : points) {
        const bool right = cell_of(in[i]) % side >= side / 2;
        const bool above = cell_of(in[n + i]) % side >= side / 2;
        quarters[(right ? 1 : 0) + (above ? 2 : 0)].push_back(i);
    }
    for (const std::vector<std::size_t>& quarter : quarters)
        divide(in, side / 2, quarter, out);
}

}  // namespace

void squares_on_cpu(const Layout&, Input in, Input, Output out, Output magnitude) {
    std::vector<std::size_t> all(out.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = i;
    divide(in, 512, all, out);
    std::ranges::copy(out, magnitude.begin());
}

void recordings_on_cpu(const Layout& layout, Input in, Input, Output out, Output magnitude) {
    const std::size_t n = layout.in.cols;
    std::size_t i = 0;
    std::size_t j = 0;
    for (std::size_t k = 0; k < 2 * n; ++k) {
        const bool is_first = j == n || (i < n && i / 4 <= j / 3);
        out[k] = is_first ? in[i++] : in[n + j++];
        magnitude[k] = std::abs(out[k]);
    }
}

// The loops of the forward pass, with both sides exchanged: what y(row, col) was the sum of gets a
// part of its gradient.
void gradient_on_cpu(const Layout& layout, Input in, Input weights, Output out, Output magnitude) {
    std::ranges::fill(out, 0.0);
    std::ranges::fill(magnitude, 0.0);
    for (std::size_t k = 0; k < in.size() * 9; ++k) {
        const std::size_t row = 2 * (k / 9 / layout.in.cols) + k % 9 / 3;  // + 1, the padding
        const std::size_t col = 2 * (k / 9 % layout.in.cols) + k % 3;
        if (row < 1 || row > layout.out.rows || col < 1 || col > layout.out.cols) continue;
        const std::size_t x = (row - 1) * layout.out.cols + col - 1;
        const double term = static_cast<double>(weights[k % 9]) * in[k / 9];
        out[x] += term;
        magnitude[x] += std::abs(term);
    }
}

}  // namespace hunts

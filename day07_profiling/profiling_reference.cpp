#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "references.hpp"

namespace day07 {

Layout particles_layout(std::size_t n) {
    return {.in = 2 * n, .work = 8 * n, .out = n, .terms = 17};
}

void particles_on_cpu(std::size_t n, Input in, Output out, Output magnitude) {
    for (std::size_t i = 0; i < n; ++i) {
        const double way = 16 * 0.01 * in[n + i];
        out[i] = in[i] + way;
        magnitude[i] = std::abs(in[i]) + std::abs(way);
    }
}

Layout running_sums_layout(std::size_t n) {
    return {.in = 32 * n, .out = 32 * n, .terms = 32};
}

void running_sums_on_cpu(std::size_t n, Input in, Output out, Output magnitude) {
    for (std::size_t row = 0; row < n; ++row) {
        double sum = 0;
        double size = 0;
        for (std::size_t i = 32 * row; i < 32 * row + 32; ++i) {
            sum += in[i];
            size += std::abs(in[i]);
            out[i] = sum;
            magnitude[i] = size;
        }
    }
}

Layout readings_layout(std::size_t n) {
    return {.in = 32768 * n, .out = 32768, .terms = n};
}

void readings_on_cpu(std::size_t n, Input in, Output out, Output magnitude) {
    std::fill(out.begin(), out.end(), 0.0);
    std::fill(magnitude.begin(), magnitude.end(), 0.0);
    for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t col = 0; col < 32768; ++col) {
            out[col] += in[row * 32768 + col];
            magnitude[col] += std::abs(in[row * 32768 + col]);
        }
    }
}

// Three products, each with sums of eight terms.
Layout matrices_layout(std::size_t n) {
    return {.in = 64 * n, .out = 64 * n, .terms = 3 * 9 * 4};
}

void matrices_on_cpu(std::size_t n, Input in, Output out, Output magnitude) {
#pragma omp parallel for
    for (std::ptrdiff_t matrix = 0; matrix < static_cast<std::ptrdiff_t>(n); ++matrix) {
        const std::size_t i = static_cast<std::size_t>(matrix);
        std::array<double, 64> a, sizes;
        for (std::size_t e = 0; e < 64; ++e) {
            a[e] = in[e * n + i];
            sizes[e] = std::abs(a[e]);
        }
        for (int squaring = 0; squaring < 3; ++squaring) {
            std::array<double, 64> product{}, of_sizes{};
            for (std::size_t e = 0; e < 64; ++e) {
                for (std::size_t k = 0; k < 8; ++k) {
                    product[e] += a[e / 8 * 8 + k] * a[k * 8 + e % 8];
                    of_sizes[e] += sizes[e / 8 * 8 + k] * sizes[k * 8 + e % 8];
                }
            }
            a = product;
            sizes = of_sizes;
        }
        for (std::size_t e = 0; e < 64; ++e) {
            out[e * n + i] = a[e];
            magnitude[e * n + i] = sizes[e];
        }
    }
}

// An iteration halves the error that it starts with, and adds those of a sine, a product and a sum:
// four roundings, eight in the end.
Layout asteroids_layout(std::size_t n) {
    return {.in = 133 * n, .out = 133 * n, .terms = 8};
}

void asteroids_on_cpu(std::size_t n, Input in, Output out, Output magnitude) {
#pragma omp parallel for
    for (std::ptrdiff_t element = 0; element < static_cast<std::ptrdiff_t>(133 * n); ++element) {
        const std::size_t i = static_cast<std::size_t>(element);
        double e = in[i];
        for (int iteration = 0; iteration < 24; ++iteration)
            e = in[i] + 0.5 * std::sin(e);
        out[i] = e;
        magnitude[i] = std::abs(in[i]) + 0.5;
    }
}

Layout positive_layout(std::size_t n) {
    return {.in = n, .out = 1};
}

void positive_on_cpu(std::size_t, Input in, Output out, Output magnitude) {
    out[0] = static_cast<double>(std::count_if(in.begin(), in.end(), [](float x) { return x > 0; }));
    magnitude[0] = 0;  // whole numbers below 2^24: exact
}

Layout first_layout(std::size_t n) {
    return {.in = 256 * n, .out = 256 * n};
}

void first_on_cpu(std::size_t, Input in, Output out, Output magnitude) {
    for (std::size_t i = 0; i < in.size(); ++i) {
        const double first = in[i / 256 * 256];
        out[i] = in[i] - first;
        magnitude[i] = std::abs(in[i]) + std::abs(first);
    }
}

// In each of 16 steps two roundings, and those of the divisor, which come from the steps before.
Layout signal_layout(std::size_t n) {
    return {.in = n, .work = n, .out = n, .terms = 64};
}

void signal_on_cpu(std::size_t, Input in, Output out, Output magnitude) {
    double divisor = 1;
    double first = std::abs(in[0]);
    for (int step = 0; step < 16; ++step) {
        divisor *= 1 + first;
        first /= 1 + first;
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
        out[i] = in[i] / divisor;
        magnitude[i] = std::abs(out[i]);
    }
}

}  // namespace day07

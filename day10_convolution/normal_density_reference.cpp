#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "normal_density.hpp"

namespace day10 {

double density_at_mean(const Normal2d& normal) {
    const double free_share = 1 - normal.correlation * normal.correlation;
    return 1 / (2 * std::numbers::pi * normal.sigma_x * normal.sigma_y * std::sqrt(free_share));
}

void check_normal(const Normal2d& normal) {
    const auto require = [](bool condition, const char* what, double value, const char* expected) {
        if (condition) return;
        throw std::invalid_argument(fmt::format("normal_density: {} {}; expected {}", what, value, expected));
    };
    const auto is_positive = [](double value) { return std::isfinite(value) && value > 0; };
    require(std::isfinite(normal.mean_x), "mean_x", normal.mean_x, "a finite number");
    require(std::isfinite(normal.mean_y), "mean_y", normal.mean_y, "a finite number");
    require(is_positive(normal.sigma_x), "sigma_x", normal.sigma_x, "a finite number > 0");
    require(is_positive(normal.sigma_y), "sigma_y", normal.sigma_y, "a finite number > 0");
    require(std::abs(normal.correlation) < 1, "correlation", normal.correlation, "a number between -1 and 1");
    const double top = density_at_mean(normal);
    require(top <= static_cast<double>(std::numeric_limits<float>::max()), "the density at the mean is", top,
            "a number that float can hold");
}

ExpectedDensity normal_density_on_cpu(std::size_t rows, std::size_t cols, const Normal2d& normal,
                                      const Grid2d& grid) {
    check_normal(normal);
    ExpectedDensity out{std::vector<double>(rows * cols), std::vector<double>(rows * cols)};
    const double free_share = 1 - normal.correlation * normal.correlation;
    const double top = density_at_mean(normal);
    const auto last = static_cast<std::ptrdiff_t>(rows);
#pragma omp parallel for
    for (std::ptrdiff_t row = 0; row < last; ++row) {
        const auto i = static_cast<std::size_t>(row);
        const double v =
            (grid.first_y + static_cast<double>(i) * grid.step_y - normal.mean_y) / normal.sigma_y;
        for (std::size_t j = 0; j < cols; ++j) {
            const double u =
                (grid.first_x + static_cast<double>(j) * grid.step_x - normal.mean_x) / normal.sigma_x;
            const double mixed = 2 * normal.correlation * u * v;
            const double density = top * std::exp(-(u * u - mixed + v * v) / (2 * free_share));
            out.value[i * cols + j] = density;
            out.magnitude[i * cols + j] =
                density * (1 + (u * u + std::abs(mixed) + v * v) / (2 * free_share));
        }
    }
    return out;
}

}  // namespace day10

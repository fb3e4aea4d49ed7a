#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "beyond/reconstruction.hpp"

namespace day37 {
namespace {

using Complex = std::complex<double>;

double value(const std::vector<float>& values, std::size_t i) {
    return static_cast<double>(values[i]);
}

double position(std::size_t i, std::size_t extent, std::size_t field) {
    return (static_cast<double>(i) - (static_cast<double>(extent) - 1) / 2) / static_cast<double>(field);
}

// exp(i 2 pi k(m) r(n)).
Complex wave(const HostSamples& k, std::size_t m, const Grid& grid, std::size_t n) {
    const double turns = value(k.kx, m) * position(n % grid.nx, grid.nx, grid.nx) +
                         value(k.ky, m) * position(n / grid.nx % grid.ny, grid.ny, grid.ny) +
                         value(k.kz, m) * position(n / grid.nx / grid.ny, grid.nz, grid.nz);
    return std::polar(1.0, 2 * std::numbers::pi * turns);
}

Complex phi(const HostSamples& k, std::size_t m) {
    return {value(k.phi_re, m), value(k.phi_im, m)};
}

// The sum of exp(i 2 pi k r) over an axis's n voxels. They are their own mirror image, so it is
// real.
double sum_of_waves(double k, std::size_t n) {
    const double step = std::sin(std::numbers::pi * k / static_cast<double>(n));
    return std::abs(step) < 1e-12 ? static_cast<double>(n) : std::sin(std::numbers::pi * k) / step;
}

}  // namespace

HostPositions difference_positions(const Grid& grid, std::size_t stride) {
    const Grid all = differences_of(grid);
    HostPositions positions;
    for (std::size_t n = 0; n < all.count(); n += stride) {
        positions.x.push_back(static_cast<float>(position(n % all.nx, all.nx, grid.nx)));
        positions.y.push_back(static_cast<float>(position(n / all.nx % all.ny, all.ny, grid.ny)));
        positions.z.push_back(static_cast<float>(position(n / all.nx / all.ny, all.nz, grid.nz)));
    }
    return positions;
}

std::vector<Complex> normal_on_cpu(const HostSamples& k, const Grid& grid, const std::vector<float2>& x,
                                   double lambda, std::size_t stride) {
    const auto complex_of = [](float2 v) {
        return Complex(static_cast<double>(v.x), static_cast<double>(v.y));
    };
    std::vector<Complex> samples(k.size());
#pragma omp parallel for if (k.size() * x.size() > 100000)
    for (std::size_t m = 0; m < k.size(); ++m)
        for (std::size_t n = 0; n < x.size(); ++n)
            samples[m] += complex_of(x[n]) * std::conj(wave(k, m, grid, n));
    std::vector<Complex> out((x.size() + stride - 1) / stride);
#pragma omp parallel for if (k.size() * out.size() > 100000)
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t n = i * stride;
        for (std::size_t m = 0; m < k.size(); ++m)
            out[i] += std::norm(phi(k, m)) * samples[m] * wave(k, m, grid, n);
        out[i] += lambda * complex_of(x[n]);
    }
    return out;
}

double most_of_normal(const HostSamples& k, const Grid& grid) {
    double most = 0;
    for (std::size_t row = 0; row < k.size(); ++row) {
        double sum = 0;
        for (std::size_t m = 0; m < k.size(); ++m) {
            const double waves = sum_of_waves(value(k.kx, row) - value(k.kx, m), grid.nx) *
                                 sum_of_waves(value(k.ky, row) - value(k.ky, m), grid.ny) *
                                 sum_of_waves(value(k.kz, row) - value(k.kz, m), grid.nz);
            sum += std::abs(phi(k, row)) * std::abs(phi(k, m)) * std::abs(waves);
        }
        most = std::max(most, sum);
    }
    return most;
}

}  // namespace day37

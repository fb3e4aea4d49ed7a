#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

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

std::vector<Complex> measured(const HostSamples& k) {
    std::vector<Complex> d;
    for (std::size_t m = 0; m < k.size(); ++m)
        d.emplace_back(value(k.d_re, m), value(k.d_im, m));
    return d;
}

// F F^H, of all pairs of samples.
std::vector<Complex> gram_matrix(const HostSamples& k, const Grid& grid) {
    std::vector<Complex> gram;
    for (std::size_t row = 0; row < k.size(); ++row) {
        for (std::size_t m = 0; m < k.size(); ++m) {
            const double waves = sum_of_waves(value(k.kx, row) - value(k.kx, m), grid.nx) *
                                 sum_of_waves(value(k.ky, row) - value(k.ky, m), grid.ny) *
                                 sum_of_waves(value(k.kz, row) - value(k.kz, m), grid.nz);
            gram.push_back(phi(k, row) * std::conj(phi(k, m)) * waves);
        }
    }
    return gram;
}

std::vector<Complex> times(const std::vector<Complex>& matrix, const std::vector<Complex>& s) {
    std::vector<Complex> product(s.size());
    for (std::size_t row = 0; row < s.size(); ++row)
        for (std::size_t m = 0; m < s.size(); ++m)
            product[row] += matrix[row * s.size() + m] * s[m];
    return product;
}

// F^H s.
std::vector<float2> image_of(const HostSamples& k, const Grid& grid, const std::vector<Complex>& samples) {
    std::vector<float2> image(grid.count());
#pragma omp parallel for if (k.size() * image.size() > 100000)
    for (std::size_t n = 0; n < image.size(); ++n) {
        Complex sum = 0;
        for (std::size_t m = 0; m < k.size(); ++m)
            sum += std::conj(phi(k, m)) * samples[m] * wave(k, m, grid, n);
        image[n] = make_float2(static_cast<float>(sum.real()), static_cast<float>(sum.imag()));
    }
    return image;
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
    for (std::size_t m = 0; m < k.size(); ++m) {
        Complex sum = 0;  // samples[m] shares a cache line with those of other threads
        for (std::size_t n = 0; n < x.size(); ++n)
            sum += complex_of(x[n]) * std::conj(wave(k, m, grid, n));
        samples[m] = sum;
    }
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

std::vector<float2> image_on_cpu(const HostSamples& k, const Grid& grid) {
    return image_of(k, grid, measured(k));
}

std::vector<float2> product_on_cpu(const HostSamples& k, const Grid& grid) {
    return image_of(k, grid, times(gram_matrix(k, grid), measured(k)));
}

GradientsOnCpu gradients_on_cpu(const HostSamples& k, const Grid& grid, double lambda, int iterations) {
    const std::size_t samples = k.size();
    const std::vector<Complex> gram = gram_matrix(k, grid);
    const auto times_gram = [&](const std::vector<Complex>& s) { return times(gram, s); };
    // The dot product of the images F^H s and F^H t, with t multiplied by F F^H already.
    const auto dot = [&](const std::vector<Complex>& s, const std::vector<Complex>& gram_t) {
        double sum = 0;
        for (std::size_t m = 0; m < samples; ++m)
            sum += (std::conj(s[m]) * gram_t[m]).real();
        return std::max(sum, 0.0);
    };
    std::vector<Complex> x(samples);
    std::vector<Complex> residual = measured(k);
    std::vector<Complex> direction = residual;
    GradientsOnCpu result;
    result.residuals.push_back(dot(residual, times_gram(residual)));
    for (int i = 0; i < iterations; ++i) {
        std::vector<Complex> product = times_gram(direction);
        for (std::size_t m = 0; m < samples; ++m)
            product[m] += lambda * direction[m];
        const double curvature = dot(direction, times_gram(product));
        const double before = result.residuals.back();
        const double alpha = curvature > 0 ? before / curvature : 0;
        for (std::size_t m = 0; m < samples; ++m) {
            x[m] += alpha * direction[m];
            residual[m] -= alpha * product[m];
        }
        const double after = dot(residual, times_gram(residual));
        for (std::size_t m = 0; m < samples; ++m)
            direction[m] = residual[m] + (before > 0 ? after / before : 0) * direction[m];
        result.residuals.push_back(after);
    }
    result.x = image_of(k, grid, x);
    return result;
}

double most_of_normal(const HostSamples& k, const Grid& grid) {
    const std::vector<Complex> gram = gram_matrix(k, grid);
    double most = 0;
    for (std::size_t row = 0; row < k.size(); ++row) {
        double sum = 0;
        for (std::size_t m = 0; m < k.size(); ++m)
            sum += std::abs(gram[row * k.size() + m]);
        most = std::max(most, sum);
    }
    return most;
}

}  // namespace day37

// Day 37, beyond: how far off may gridding be? For the tests and the program.
//
// A sample's wave, at `place` points, is made of the waves at the points l near it. At a voxel that
// is f periods per point, from -1/4 to 1/4, the sum of value(l - place) exp(i 2 pi f (l - place))
// should be the window's transform at f. window_error() is the largest relative difference, E. In d
// dimensions a wave is off by at most (1 + E)^d - 1.
//
// Rounding comes on top. With eps = 2^-23, b the magnitudes at the points and G their number:
//   weights    4 eps along each axis, and beta / 2 eps, because I0 grows with its argument like exp()
//   sums       sqrt(M) eps for the M samples that a point may have
//   transform  log2 G eps
// of the point's magnitude. Errors of different points are independent, so those of a voxel add in
// quadrature, and we allow 3 times that: 3 eps (...) |b|. Then each voxel is divided by the window's
// transform, which is smallest at f = 1/4.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <vector>

#include "beyond/gridding.hpp"
#include "grid.hpp"
#include "mri.hpp"
#include "mri_verify.hpp"

namespace day37 {

// The largest relative difference on a mesh; between its nodes it may be a little larger.
inline double window_error(int width) {
    double worst = 0;
    for (int place = 0; place < 64; ++place) {
        const double first = std::ceil(place / 64.0 - 0.5 * width);
        std::vector<double> points, values;
        for (int i = 0; i < width; ++i) {
            points.push_back(first + i - place / 64.0);
            values.push_back(window_value(width, points.back()));
        }
        for (int f = 0; f <= 32; ++f) {  // of -f it is the same
            std::complex<double> sum = 0;
            for (std::size_t i = 0; i < points.size(); ++i)
                sum += values[i] * std::polar(1.0, 2 * std::numbers::pi * f / 128.0 * points[i]);
            worst = std::max(worst, std::abs(sum / window_transform(width, f / 128.0) - 1.0));
        }
    }
    return 1.05 * worst;
}

// Magnitudes and sums at the points, in double, x fastest.
struct SpreadOnCpu {
    std::vector<std::complex<double>> sum;
    std::vector<double> magnitude;
};

inline SpreadOnCpu spread_on_cpu(const HostSamples& k, const Grid& grid, const Grid& field,
                                 const Grid& points, int width) {
    struct AxisWindow {
        std::vector<std::size_t> point;
        std::vector<double> value;
    };
    const auto window = [&](float at, std::size_t all, std::size_t of_field) {
        if (all == 1) return AxisWindow{{0}, {1.0}};
        const double place =
            std::fmod(static_cast<double>(at) * (static_cast<double>(all) / static_cast<double>(of_field)),
                      static_cast<double>(all));
        const double first = std::ceil(place - 0.5 * width);
        AxisWindow axis;
        for (int i = 0; i < width; ++i) {
            const double l = first + i;
            axis.point.push_back(static_cast<std::size_t>(l - std::floor(l / static_cast<double>(all)) *
                                                                  static_cast<double>(all)));
            axis.value.push_back(window_value(width, l - place));
        }
        return axis;
    };
    const auto half_voxel = [](float at, std::size_t voxels, std::size_t of_field) {
        return voxels % 2 == 0 ? 0.5 * static_cast<double>(at) / static_cast<double>(of_field) : 0.0;
    };
    SpreadOnCpu out{std::vector<std::complex<double>>(points.count()), std::vector<double>(points.count())};
    for (std::size_t m = 0; m < k.size(); ++m) {
        const AxisWindow x = window(k.kx[m], points.nx, field.nx);
        const AxisWindow y = window(k.ky[m], points.ny, field.ny);
        const AxisWindow z = window(k.kz[m], points.nz, field.nz);
        const double turns = half_voxel(k.kx[m], grid.nx, field.nx) + half_voxel(k.ky[m], grid.ny, field.ny) +
                             half_voxel(k.kz[m], grid.nz, field.nz);
        const std::complex<double> phi(k.phi_re[m], k.phi_im[m]);
        const std::complex<double> d(k.d_re[m], k.d_im[m]);
        const std::complex<double> mu =
            std::conj(phi) * d * std::polar(1.0, 2 * std::numbers::pi * std::fmod(turns, 1.0));
        for (std::size_t c = 0; c < z.point.size(); ++c) {
            for (std::size_t b = 0; b < y.point.size(); ++b) {
                for (std::size_t a = 0; a < x.point.size(); ++a) {
                    const std::size_t at = (z.point[c] * points.ny + y.point[b]) * points.nx + x.point[a];
                    const double weight = z.value[c] * y.value[b] * x.value[a];
                    out.sum[at] += weight * mu;
                    out.magnitude[at] += weight * std::abs(mu);
                }
            }
        }
    }
    return out;
}

inline int dimensions_of(const Grid& points) {
    return (points.nx > 1 ? 1 : 0) + (points.ny > 1 ? 1 : 0) + (points.nz > 1 ? 1 : 0);
}

// In eps, of a point's magnitude.
inline double spread_rounding(std::size_t samples, int width, int dimensions) {
    return dimensions * (4 + window_beta(width) / 2) + std::sqrt(static_cast<double>(samples));
}

// What verify_sums() allows: `weight` is the sum of |mu|, for which a voxel's own may stand.
inline ErrorOfTerm gridding_error(const SpreadOnCpu& spread, const Grid& points, std::size_t samples,
                                  int width, double weight) {
    const int dimensions = dimensions_of(points);
    double squares = 0;
    for (const double magnitude : spread.magnitude)
        squares += magnitude * magnitude;
    const double smallest = std::pow(window_transform(width, 0.25), dimensions);
    const double of_points =
        spread_rounding(samples, width, dimensions) + std::log2(static_cast<double>(points.count()));
    const double rounding = weight > 0 ? 3 * of_points * std::sqrt(squares) / smallest / weight : 0;
    const double of_window = std::pow(1 + window_error(width), dimensions) - 1;
    ErrorOfTerm error;
    error.fixed += of_window / 0x1p-23 + rounding;
    return error;
}

}  // namespace day37

// Day 37, beyond: how far off may a product by F^H F, and conjugate gradients, be? For the tests
// and the program.
//
// With eps = 2^-23 and W the sum of |phi|^2:
//   Q           5 eps W for the tables, and 2 sqrt(M) eps W for the sum of M terms; if it is by
//               gridding, also that of gridding_verify.hpp. A voxel of the product has one value of
//               Q for each voxel of x, so the errors of Q count times the sum of |x|
//   transforms  a transform of length L adds an error of at most about 3 eps log2 L, relative to the
//               norm. There are two, and the multiplication. The transform of Q is at most W times
//               the number of differences, D. Errors are spread evenly over the padded image
// So a value of the product may be off by 6 (log2 D + 3) W sqrt(D) |x| eps for the transforms.
//
// Let kappa be the largest eigenvalue of F^H F + lambda, relative to lambda. A step of conjugate
// gradients adds the error of a product, 6 (log2 D + 3) kappa eps, relative to the residual before
// it. Later steps do not make it larger, so the errors of all steps so far add up.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <span>
#include <vector>

#include "beyond/reconstruction.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "mri.hpp"
#include "mri_verify.hpp"

namespace day37 {

struct SamplesOnDevice {
    explicit SamplesOnDevice(const HostSamples& k) {
        for (const auto* values : {&k.kx, &k.ky, &k.kz, &k.phi_re, &k.phi_im, &k.d_re, &k.d_im})
            arrays.emplace_back(std::span(*values));
    }
    KSpace k() const {
        const auto& a = arrays;
        return {a[0].span(), a[1].span(), a[2].span(), a[3].span(), a[4].span(), a[5].span(), a[6].span()};
    }
    std::vector<course::DeviceBuffer<float>> arrays;
};

// With d = phi, mu is |phi|^2, whose sums are Q.
inline HostSamples with_d_phi(HostSamples k) {
    k.d_re = k.phi_re;
    k.d_im = k.phi_im;
    return k;
}

inline std::complex<double> complex_of(float2 value) {
    return {static_cast<double>(value.x), static_cast<double>(value.y)};
}

inline double norm_of(const std::vector<float2>& image) {
    double squares = 0;
    for (const float2 value : image)
        squares += std::norm(complex_of(value));
    return std::sqrt(squares);
}

// In eps, relative to the norm.
inline double transform_error(const Grid& grid) {
    return 6 * (std::log2(static_cast<double>(differences_of(grid).count())) + 3);
}

// In eps, of each value of (F^H F) x. `of_gridding`: of Q, in eps of W.
inline double product_error(const HostSamples& k, const Grid& grid, const std::vector<float2>& x,
                            double of_gridding = 0) {
    double weight = 0;
    for (std::size_t m = 0; m < k.size(); ++m)
        weight += std::norm(complex_of(make_float2(k.phi_re[m], k.phi_im[m])));
    double one_norm = 0;
    for (const float2 value : x)
        one_norm += std::abs(complex_of(value));
    const double of_q = 5 + 2 * std::sqrt(static_cast<double>(k.size())) + of_gridding;
    const auto differences = static_cast<double>(differences_of(grid).count());
    return of_q * weight * one_norm + transform_error(grid) * weight * std::sqrt(differences) * norm_of(x);
}

// Compares all voxels, part by part; `allowed` in eps.
inline course::VerifyResult verify_image(const std::vector<float2>& got, const std::vector<float2>& expected,
                                         double allowed) {
    const auto parts = [](const std::vector<float2>& image, float float2::*part) {
        std::vector<float> values;
        for (const float2& value : image)
            values.push_back(value.*part);
        return values;
    };
    const std::vector<double> of_each(expected.size(), allowed);
    const auto compare = [&](float float2::*part) {
        const std::vector<float> values = parts(expected, part);
        return course::verify(parts(got, part), std::vector<double>(values.begin(), values.end()),
                              {.factor = 1}, of_each);
    };
    course::VerifyResult result = compare(&float2::x);
    const course::VerifyResult imaginary = compare(&float2::y);
    if (!imaginary.ok()) result.damage += " imaginary parts: " + imaginary.message();
    return result;
}

// What conjugate gradients for b = F^H d are compared with: an image, and the residuals of all
// steps. `b` is F^H d.
struct GradientsCheck {
    GradientsCheck(const HostSamples& k, const Grid& grid, const std::vector<float2>& b, float lambda,
                   int steps)
        : expected(gradients_on_cpu(k, grid, static_cast<double>(lambda), steps)), norm_of_b(norm_of(b)) {
        const auto of_lambda = static_cast<double>(lambda);
        const double of_step = transform_error(grid) * (most_of_normal(k, grid) + of_lambda) / of_lambda;
        double of_all = 0;
        for (const double residual : expected.residuals) {
            relative.push_back(std::sqrt(residual) / norm_of_b);
            allowed.push_back(2 + of_all);
            of_all += of_step * relative.back();
        }
        // An error of the residual is one of x, divided by lambda or more.
        of_voxel = allowed.back() * norm_of_b / of_lambda / std::sqrt(static_cast<double>(grid.count()));
    }

    course::VerifyResult verify(const std::vector<float2>& x, const std::vector<double>& residuals) const {
        course::VerifyResult result = verify_image(x, expected.x, of_voxel);
        std::vector<float> got;
        for (const double residual : residuals)
            got.push_back(static_cast<float>(std::sqrt(residual) / norm_of_b));
        const course::VerifyResult of_steps = course::verify(got, relative, {.factor = 1}, allowed);
        if (!of_steps.ok()) result.damage += " residuals, relative to b: " + of_steps.message();
        return result;
    }

    GradientsOnCpu expected;
    double norm_of_b;
    std::vector<double> relative;  // residuals, relative to b
    std::vector<double> allowed;   // of each, in eps
    double of_voxel = 0;           // in eps
};

}  // namespace day37

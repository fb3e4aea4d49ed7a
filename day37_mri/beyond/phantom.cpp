#include "beyond/phantom.hpp"

#include <array>
#include <cmath>
#include <numbers>

namespace day37 {
namespace {

constexpr double kPi = std::numbers::pi;

constexpr std::array<Ellipse, 9> kPhantom = {{
    {0, 0, 0.44, 0.34, 90, 1.0},          // skull
    {0, -0.01, 0.41, 0.31, 90, -0.7},     // brain
    {0.10, 0.03, 0.15, 0.055, 72, -0.2},  // ventricles
    {-0.10, 0.03, 0.18, 0.07, 108, -0.2},
    {0, 0.18, 0.11, 0.09, 90, 0.2},
    {0, -0.06, 0.025, 0.025, 0, 0.3},
    {-0.05, -0.29, 0.03, 0.015, 0, 0.3},
    {0.01, -0.29, 0.015, 0.015, 0, 0.3},
    {0.06, -0.29, 0.03, 0.015, 90, 0.3},
}};

}  // namespace

std::span<const Ellipse> phantom() {
    return kPhantom;
}

std::vector<float> phantom_image(std::size_t n) {
    constexpr int kPoints = 4;
    std::vector<float> image(n * n);
    const auto position = [n](std::size_t i, int point) {
        const double shift = (point + 0.5) / kPoints - 0.5;
        return (static_cast<double>(i) + shift - (static_cast<double>(n) - 1) / 2) / static_cast<double>(n);
    };
    for (std::size_t i = 0; i < image.size(); ++i) {
        double sum = 0;
        for (int point = 0; point < kPoints * kPoints; ++point) {
            const double x = position(i % n, point % kPoints);
            const double y = position(i / n, point / kPoints);
            for (const Ellipse& e : kPhantom) {
                const double cosine = std::cos(e.degrees * kPi / 180);
                const double sine = std::sin(e.degrees * kPi / 180);
                const double a = ((x - e.x) * cosine + (y - e.y) * sine) / e.half_a;
                const double b = ((y - e.y) * cosine - (x - e.x) * sine) / e.half_b;
                if (a * a + b * b <= 1) sum += e.value;
            }
        }
        image[i] = static_cast<float>(sum / (kPoints * kPoints));
    }
    return image;
}

// A disc of radius 1 has the transform J1(2 pi k) / k; an ellipse is a disc that is stretched,
// rotated and moved.
std::complex<double> phantom_sample(double kx, double ky) {
    std::complex<double> sum = 0;
    for (const Ellipse& e : kPhantom) {
        const double cosine = std::cos(e.degrees * kPi / 180);
        const double sine = std::sin(e.degrees * kPi / 180);
        const double rho =
            std::hypot(e.half_a * (kx * cosine + ky * sine), e.half_b * (ky * cosine - kx * sine));
        const double disc = rho < 1e-6 ? kPi : std::cyl_bessel_j(1, 2 * kPi * rho) / rho;
        sum += e.value * e.half_a * e.half_b * disc * std::polar(1.0, -2 * kPi * (kx * e.x + ky * e.y));
    }
    return sum;
}

// Between two turns lie n / 2 / turns, between two samples of a turn 2 pi radius turns / samples.
HostSamples spiral_scan(std::size_t n, std::size_t samples, double turns) {
    HostSamples k;
    const auto side = static_cast<double>(n);
    for (std::size_t m = 0; m < samples; ++m) {
        const double along = (static_cast<double>(m) + 0.5) / static_cast<double>(samples);
        const double radius = 0.5 * side * along;
        const double angle = 2 * kPi * turns * along;
        const double area = kPi * radius * side / static_cast<double>(samples);
        const double root = std::sqrt(area) / side;
        k.kx.push_back(static_cast<float>(radius * std::cos(angle)));
        k.ky.push_back(static_cast<float>(radius * std::sin(angle)));
        k.kz.push_back(0);
        k.phi_re.push_back(static_cast<float>(root));
        k.phi_im.push_back(0);
        const std::complex<double> d =
            root * side * side * phantom_sample(static_cast<double>(k.kx[m]), static_cast<double>(k.ky[m]));
        k.d_re.push_back(static_cast<float>(d.real()));
        k.d_im.push_back(static_cast<float>(d.imag()));
    }
    return k;
}

}  // namespace day37

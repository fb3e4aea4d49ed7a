// Day 37, beyond: scans the phantom along a spiral, and prints a picture (PGM) of three images side
// by side: the truth, the sum of waves, F^H d, and the result of conjugate gradients. Voxels are
// shown by their magnitude.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "beyond/phantom.hpp"
#include "beyond/reconstruction.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "mri.hpp"

namespace {

using course::DeviceBuffer;

constexpr std::size_t kVoxels = 128;
constexpr std::size_t kSamples = 24000;
constexpr double kTurns = 66;
constexpr int kIterations = 15;
constexpr float kLambda = 1e-3f;

// The sums of the last version, as complex numbers.
std::vector<float2> sums(const day37::Grid& grid, const day37::HostSamples& k) {
    std::vector<DeviceBuffer<float>> arrays;
    const day37::HostPositions r = day37::grid_positions(grid);
    for (const auto* values : {&k.kx, &k.ky, &k.kz, &k.phi_re, &k.phi_im, &k.d_re, &k.d_im, &r.x, &r.y, &r.z})
        arrays.emplace_back(std::span(*values));
    const auto at = [&](std::size_t i) { return course::DeviceSpan<const float>(arrays[i].span()); };
    DeviceBuffer<float> re(grid.count());
    DeviceBuffer<float> im(grid.count());
    day37::Workspace workspace({grid, k.size()});
    course::find_version(day37::versions(), "separable")
        .launcher({at(0), at(1), at(2), at(3), at(4), at(5), at(6)}, {at(7), at(8), at(9), grid},
                  {re.span(), im.span()}, workspace, nullptr);
    const std::vector<float> real = re.to_host();
    const std::vector<float> imaginary = im.to_host();
    std::vector<float2> both;
    for (std::size_t n = 0; n < real.size(); ++n)
        both.push_back(make_float2(real[n], imaginary[n]));
    return both;
}

std::vector<float2> conjugate_gradients(const day37::Grid& grid, const day37::HostSamples& k,
                                        const std::vector<float2>& b) {
    const DeviceBuffer<float> kx{std::span(k.kx)};
    const DeviceBuffer<float> ky{std::span(k.ky)};
    const DeviceBuffer<float> kz{std::span(k.kz)};
    const DeviceBuffer<float> phi_re{std::span(k.phi_re)};
    const DeviceBuffer<float> phi_im{std::span(k.phi_im)};
    day37::NormalOperator normal(
        grid, {kx.span(), ky.span(), kz.span(), phi_re.span(), phi_im.span(), {}, {}}, nullptr);
    day37::ConjugateGradients gradients(grid);
    const DeviceBuffer<float2> b_device{std::span(b)};
    DeviceBuffer<float2> x(grid.count());
    DeviceBuffer<double> residuals(kIterations + 1);
    gradients.solve(normal, b_device.span(), kLambda, kIterations, x.span(), residuals.span(), nullptr);
    return x.to_host();
}

double error(const std::vector<float2>& image, const std::vector<float>& truth) {
    double difference = 0;
    double size = 0;
    for (std::size_t n = 0; n < truth.size(); ++n) {
        const double re = static_cast<double>(image[n].x) - static_cast<double>(truth[n]);
        difference += re * re + static_cast<double>(image[n].y) * static_cast<double>(image[n].y);
        size += static_cast<double>(truth[n]) * static_cast<double>(truth[n]);
    }
    return std::sqrt(difference / size);
}

int grey(float value) {
    return static_cast<int>(std::clamp(255 * value, 0.0f, 255.0f));
}

}  // namespace

int main() {
    const day37::Grid grid{kVoxels, kVoxels, 1};
    const std::vector<float> truth = day37::phantom_image(kVoxels);
    const day37::HostSamples k = day37::spiral_scan(kVoxels, kSamples, kTurns);
    const std::vector<float2> sum = sums(grid, k);
    const std::vector<float2> solution = conjugate_gradients(grid, k, sum);
    std::fprintf(stderr, "relative error: F^H d %.3f, %d steps of conjugate gradients %.3f\n",
                 error(sum, truth), kIterations, error(solution, truth));
    std::printf("P2\n%zu %zu\n255\n", 3 * kVoxels, kVoxels);
    for (std::size_t row = kVoxels; row-- > 0;) {  // y grows upwards
        const std::size_t first = row * kVoxels;
        for (std::size_t column = 0; column < kVoxels; ++column)
            std::printf("%d ", grey(truth[first + column]));
        for (const auto* image : {&sum, &solution}) {
            for (std::size_t column = 0; column < kVoxels; ++column)
                std::printf("%d ", grey(std::hypot((*image)[first + column].x, (*image)[first + column].y)));
        }
        std::printf("\n");
    }
    return 0;
}

#include <cmath>
#include <numbers>

#include "common/check/require.hpp"
#include "common/device/random.hpp"
#include "mri.hpp"

namespace day37 {

float grid_position(std::size_t i, std::size_t n) {
    const double middle = (static_cast<double>(n) - 1) / 2;
    return static_cast<float>((static_cast<double>(i) - middle) / static_cast<double>(n));
}

HostPositions grid_positions(const Grid& grid) {
    HostPositions positions;
    for (auto* axis : {&positions.x, &positions.y, &positions.z})
        axis->reserve(grid.count());
    for (std::size_t z = 0; z < grid.nz; ++z) {
        for (std::size_t y = 0; y < grid.ny; ++y) {
            for (std::size_t x = 0; x < grid.nx; ++x) {
                positions.x.push_back(grid_position(x, grid.nx));
                positions.y.push_back(grid_position(y, grid.ny));
                positions.z.push_back(grid_position(z, grid.nz));
            }
        }
    }
    return positions;
}

HostPositions random_positions(std::size_t count, std::uint64_t seed) {
    course::Random random(seed);
    HostPositions positions;
    for (std::size_t n = 0; n < count; ++n) {
        positions.x.push_back(random.uniform(-0.5f, 0.5f));
        positions.y.push_back(random.uniform(-0.5f, 0.5f));
        positions.z.push_back(random.uniform(-0.5f, 0.5f));
    }
    return positions;
}

HostSamples random_samples(std::size_t count, const Grid& extent, std::uint64_t seed) {
    course::Random random(seed);
    HostSamples k;
    const auto within = [&](std::size_t n) { return random.uniform(-0.5f, 0.5f) * static_cast<float>(n); };
    for (std::size_t m = 0; m < count; ++m) {
        k.kx.push_back(within(extent.nx));
        k.ky.push_back(within(extent.ny));
        k.kz.push_back(within(extent.nz));
        for (auto* values : {&k.phi_re, &k.phi_im, &k.d_re, &k.d_im})
            values->push_back(random.uniform(-1.0f, 1.0f));
    }
    return k;
}

Expected sums_on_cpu(const HostSamples& k, const HostPositions& voxels) {
    course::require(voxels.x.size() == voxels.y.size() && voxels.x.size() == voxels.z.size(),
                    "sums_on_cpu: x has ", voxels.x.size(), " elements, y ", voxels.y.size(), ", z ",
                    voxels.z.size(), "; expected the same number");
    const std::size_t count = voxels.size();
    Expected out;
    for (auto* values : {&out.re, &out.im, &out.weight, &out.phase_weight})
        values->assign(count, 0.0);
    const auto value = [](const std::vector<float>& values, std::size_t i) {
        return static_cast<double>(values[i]);
    };
#pragma omp parallel for if (count * k.size() > 100000)
    for (std::size_t n = 0; n < count; ++n) {
        for (std::size_t m = 0; m < k.size(); ++m) {
            const double phi_re = value(k.phi_re, m);
            const double phi_im = value(k.phi_im, m);
            const double d_re = value(k.d_re, m);
            const double d_im = value(k.d_im, m);
            const double mu_re = phi_re * d_re + phi_im * d_im;
            const double mu_im = phi_re * d_im - phi_im * d_re;
            const double along_x = value(k.kx, m) * value(voxels.x, n);
            const double along_y = value(k.ky, m) * value(voxels.y, n);
            const double along_z = value(k.kz, m) * value(voxels.z, n);
            const double turns = along_x + along_y + along_z;
            const double angle = 2 * std::numbers::pi * (turns - std::rint(turns));
            out.re[n] += mu_re * std::cos(angle) - mu_im * std::sin(angle);
            out.im[n] += mu_im * std::cos(angle) + mu_re * std::sin(angle);
            const double weight = (std::abs(phi_re) + std::abs(phi_im)) * (std::abs(d_re) + std::abs(d_im));
            out.weight[n] += weight;
            out.phase_weight[n] += weight * (std::abs(along_x) + std::abs(along_y) + std::abs(along_z));
        }
    }
    return out;
}

}  // namespace day37

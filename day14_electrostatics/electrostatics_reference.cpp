#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/device/random.hpp"
#include "electrostatics.hpp"

namespace day14 {

// How far can a float sum be off? With u = 2^-24 and L the largest coordinate of a point:
//   - a coordinate of a point is a rounded product, so it is off by u L, and a difference of
//     coordinates by that and u of itself. s is then off by 6 u s and 2 sqrt(3) u L sqrt(s), and 1 /
//     sqrt(s) by 3 u + sqrt(3) u L / sqrt(s) of itself; rsqrtf adds 2 ulp, 4 u;
//   - the factor of the cutoff, (1 - s / cutoff^2)^2, is off by twice the error of s / cutoff^2,
//     which is 8 u + 2 sqrt(3) u L / sqrt(s) where s < cutoff^2;
//   - the products add a rounding each. So a term is off by less than 30 u + 9 u L / sqrt(s), times
//     |charge| / sqrt(s);
//   - adding n terms within the cutoff adds n u times the sum of their magnitudes at most, and 2 sqrt(n) u
//     of it with high probability (common/check/verify.hpp). The latter finds a missing atom.
Expected potential_on_cpu(std::span<const Atom> atoms, const Grid& grid, float cutoff,
                          std::span<const std::size_t> at) {
    Expected expected{std::vector<double>(at.size()), std::vector<double>(at.size())};
    const double largest = static_cast<double>(grid.spacing) * std::max({grid.nx, grid.ny, grid.nz});
    // An atom at the cutoff may be inside for the kernel and outside here. Its term is tiny.
    const double reach = static_cast<double>(cutoff) * cutoff * (1 + 1e-5);
    const auto nx = static_cast<std::size_t>(grid.nx);
    const auto ny = static_cast<std::size_t>(grid.ny);
#pragma omp parallel for schedule(dynamic, 64)
    for (std::size_t i = 0; i < at.size(); ++i) {
        const double x = static_cast<double>(at[i] % nx) * static_cast<double>(grid.spacing);
        const double y = static_cast<double>(at[i] / nx % ny) * static_cast<double>(grid.spacing);
        const double z = static_cast<double>(at[i] / nx / ny) * static_cast<double>(grid.spacing);
        double sum = 0;
        double roundings = 0, magnitude = 0, terms = 0;
        for (const Atom& atom : atoms) {
            const double dx = x - static_cast<double>(atom.x);
            const double dy = y - static_cast<double>(atom.y);
            const double dz = z - static_cast<double>(atom.z);
            const double s = dx * dx + dy * dy + dz * dz + static_cast<double>(kSoftening);
            if (cutoff > 0 && s > reach) continue;
            const double inverse = 1 / std::sqrt(s);
            const double term = static_cast<double>(atom.charge) * inverse;
            const double inside =
                cutoff > 0 ? std::max(0.0, 1 - s / (static_cast<double>(cutoff) * cutoff)) : 1.0;
            sum += term * inside * inside;
            roundings += std::abs(term) * (30 + 9 * largest * inverse);
            magnitude += std::abs(term);
            ++terms;
        }
        expected.potential[i] = sum;
        expected.roundings[i] = roundings + 2 * std::sqrt(terms) * magnitude;
    }
    return expected;
}

Expected potential_on_cpu(std::span<const Atom> atoms, const Grid& grid, float cutoff) {
    std::vector<std::size_t> all(points(grid));
    std::iota(all.begin(), all.end(), std::size_t{0});
    return potential_on_cpu(atoms, grid, cutoff, all);
}

std::vector<Atom> random_atoms(std::size_t n, const Grid& grid, std::uint64_t seed) {
    course::Random random(seed);
    const auto along = [&](int extent) {
        return random.uniform(-0.5f, static_cast<float>(extent) * grid.spacing + 0.5f);
    };
    std::vector<Atom> atoms(n);
    for (Atom& atom : atoms)
        atom = {along(grid.nx), along(grid.ny), along(grid.nz), random.uniform(-1.0f, 1.0f)};
    return atoms;
}

}  // namespace day14

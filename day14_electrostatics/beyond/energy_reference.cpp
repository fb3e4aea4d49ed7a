#include <cmath>

#include "beyond/energy.hpp"

namespace day14 {

// How far can the energy be off, with u = 2^-24? The coordinates are exact, so a difference is off
// by u of itself, and its square by 3 u. Three sums make s off by 6 u of itself at most, and 1 /
// sqrt(s) by 3 u. rsqrtf adds 2 ulp, which is up to 4 u, and the product with a charge 1 u: 8 u for
// a term, and 10 u leave room for the squares of u.
//
// A thread adds fewer than n terms in float. That adds 2 sqrt(n) u of the sum of their magnitudes,
// with high probability (common/check/verify.hpp). All further sums are in double.
ExpectedEnergy energy_on_cpu(std::span<const Atom> atoms) {
    double energy = 0;
    double magnitude = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : energy, magnitude)
    for (std::size_t i = 0; i < atoms.size(); ++i) {
        double sum = 0;
        double of_magnitudes = 0;
        for (std::size_t j = i + 1; j < atoms.size(); ++j) {
            const double dx = static_cast<double>(atoms[i].x) - static_cast<double>(atoms[j].x);
            const double dy = static_cast<double>(atoms[i].y) - static_cast<double>(atoms[j].y);
            const double dz = static_cast<double>(atoms[i].z) - static_cast<double>(atoms[j].z);
            const double s = dx * dx + dy * dy + dz * dz + static_cast<double>(kSoftening);
            const double term = static_cast<double>(atoms[j].charge) / std::sqrt(s);
            sum += term;
            of_magnitudes += std::abs(term);
        }
        energy += static_cast<double>(atoms[i].charge) * sum;
        magnitude += std::abs(static_cast<double>(atoms[i].charge)) * of_magnitudes;
    }
    return {energy, (10 + 2 * std::sqrt(static_cast<double>(atoms.size()))) * magnitude};
}

}  // namespace day14

#include "electrostatics_plain_loop.hpp"

#include <algorithm>
#include <cmath>

namespace day14 {

void potential_plainly(std::span<const Atom> atoms, const Grid& grid, float cutoff,
                       std::span<float> potential, int threads) {
    const float inverse_cutoff2 = cutoff > 0 ? 1 / (cutoff * cutoff) : 0;
#pragma omp parallel for num_threads(threads) collapse(2)
    for (int z = 0; z < grid.nz; ++z) {
        for (int y = 0; y < grid.ny; ++y) {
            for (int x = 0; x < grid.nx; ++x) {
                float sum = 0;
                for (const Atom& atom : atoms) {
                    const float dx = grid.at(x) - atom.x;
                    const float dy = grid.at(y) - atom.y;
                    const float dz = grid.at(z) - atom.z;
                    const float s = kSoftening + dx * dx + dy * dy + dz * dz;
                    const float inside = std::max(0.0f, 1 - s * inverse_cutoff2);
                    sum += atom.charge / std::sqrt(s) * inside * inside;
                }
                potential[grid.index(x, y, z)] = sum;
            }
        }
    }
}

}  // namespace day14

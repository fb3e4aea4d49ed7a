#include "mri_plain_loop.hpp"

#include <cmath>
#include <numbers>

namespace day37 {

void sum_plainly(const HostSamples& k, const HostPositions& voxels, std::span<float> re, std::span<float> im,
                 int threads) {
#pragma omp parallel for num_threads(threads)
    for (std::size_t n = 0; n < voxels.size(); ++n) {
        re[n] = 0;
        im[n] = 0;
        for (std::size_t m = 0; m < k.size(); ++m) {
            const float mu_re = k.phi_re[m] * k.d_re[m] + k.phi_im[m] * k.d_im[m];
            const float mu_im = k.phi_re[m] * k.d_im[m] - k.phi_im[m] * k.d_re[m];
            const float turns = k.kx[m] * voxels.x[n] + k.ky[m] * voxels.y[n] + k.kz[m] * voxels.z[n];
            const float angle = 2 * std::numbers::pi_v<float> * turns;
            re[n] += mu_re * std::cos(angle) - mu_im * std::sin(angle);
            im[n] += mu_im * std::cos(angle) + mu_re * std::sin(angle);
        }
    }
}

}  // namespace day37

// Day 37, beyond: the separable sum for other host code of the day.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "grid.hpp"
#include "mri.hpp"

namespace day37 {

// Samples whose mu is known, in device memory.
struct Weighted {
    const float *kx, *ky, *kz, *mu_re, *mu_im;
    std::size_t count;
};

// Enqueues sums at the voxels of `grid`, of which `field` voxels are one field of view along each
// axis. `tables` has axis_table_floats(samples.count, grid) floats, from an address aligned to 8
// bytes on.
void sum_on_grid(const Weighted& samples, const Grid& grid, const Grid& field, float* re, float* im,
                 float* tables, cudaStream_t stream);
// Enqueues mu = conj(phi) d, for all samples of k.
void multiply_mu(const KSpace& k, float* mu_re, float* mu_im, cudaStream_t stream);
std::size_t axis_table_floats(std::size_t samples, const Grid& grid);

}  // namespace day37

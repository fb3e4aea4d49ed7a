// Day 37, beyond: an image whose samples agree with the measured ones, by conjugate gradients.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "grid.hpp"
#include "mri.hpp"

namespace day37 {

// F takes an image to its samples: (F x)(m) = phi(m) * sum over n of x(n) exp(-i 2 pi k(m) r(n)).
// Then F^H F x is a convolution of x with the point spread function
//     Q(delta) = sum over m of |phi(m)|^2 exp(i 2 pi k(m) delta),
// at all differences delta of two voxels of the grid. This class holds its Fourier transform, on a
// grid of a power of two of at least 2 n - 1 along each axis.
class NormalOperator {
  public:
    static constexpr std::size_t kMostExtent = 1024;

    // Enqueues the computation of Q. k.d is not used; k may be freed when the stream has done it.
    // Throws std::invalid_argument unless the grid has 1 to 1,024 voxels along each axis.
    NormalOperator(const Grid& grid, const KSpace& k, cudaStream_t stream);

    // out = (F^H F) x. `out` may be `x`, but must not overlap it otherwise.
    void apply(course::DeviceSpan<const float2> x, course::DeviceSpan<float2> out, cudaStream_t stream);

    const Grid& grid() const { return grid_; }

  private:
    Grid grid_;
    Grid padded_;
    course::DeviceBuffer<float2> roots_x_, roots_y_, roots_z_;
    course::DeviceBuffer<float2> along_x_;   // padded x, y, z
    course::DeviceBuffer<float2> along_xy_;  // padded x, padded y, z
    course::DeviceBuffer<float> filter_;     // z fastest, all padded
};

// Solves (F^H F + lambda) x = b by `iterations` steps of conjugate gradients from x = 0, without
// waiting for the device. residuals[i] is the squared norm of the residual after i steps; it has
// iterations + 1 elements. lambda >= 0.
class ConjugateGradients {
  public:
    explicit ConjugateGradients(const Grid& grid);

    void solve(NormalOperator& normal, course::DeviceSpan<const float2> b, float lambda, int iterations,
               course::DeviceSpan<float2> x, course::DeviceSpan<double> residuals, cudaStream_t stream);

  private:
    Grid grid_;
    course::DeviceBuffer<float2> residual_, direction_, product_;
    course::DeviceBuffer<double> partial_, curvature_;
};

}  // namespace day37

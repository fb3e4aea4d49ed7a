// Day 37, beyond: an image whose samples agree with the measured ones, by conjugate gradients.
#pragma once

#include <cuda_runtime.h>

#include <complex>
#include <cstddef>
#include <vector>

#include "beyond/gridding.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "grid.hpp"
#include "mri.hpp"

namespace day37 {

// The differences of two voxels of a grid: 2 n - 1 along each axis. They are a grid, too, `grid` of
// which are one field of view.
Grid differences_of(const Grid& grid);
// The grid of NormalOperator's transforms: a power of two of at least 2 n - 1 along each axis.
Grid padded_of(const Grid& grid);

// The point spread function of the samples:
//     Q(delta) = sum over m of |phi(m)|^2 exp(i 2 pi k(m) delta),
// at all differences delta of two voxels of `grid`. Enqueued by `separable`, or by gridding, which
// is approximate (gridding_verify.hpp). `gridding` is for the differences, one field of view is
// `grid`, and the workspace is for {differences_of(grid), samples}. Both must live until the stream
// has done the work. k.d is not used. Throws std::invalid_argument for a bad argument.
void point_spread(const KSpace& k, const Grid& grid, const Image& q, Workspace& workspace,
                  cudaStream_t stream);
void point_spread(const KSpace& k, const Grid& grid, Gridding& gridding, const Image& q, Workspace& workspace,
                  cudaStream_t stream);

// F takes an image to its samples: (F x)(m) = phi(m) * sum over n of x(n) exp(-i 2 pi k(m) r(n)).
// Then F^H F x is a convolution of x with Q. This class holds the Fourier transform of Q, on the
// grid padded_of(grid).
class NormalOperator {
  public:
    static constexpr std::size_t kMostExtent = 1024;

    // Enqueues the computation of Q, as point_spread() does; k may be freed when the stream has
    // done it. Throws std::invalid_argument unless the grid has 1 to 1,024 voxels along each axis.
    NormalOperator(const Grid& grid, const KSpace& k, cudaStream_t stream);
    NormalOperator(const Grid& grid, const KSpace& k, Gridding& gridding, cudaStream_t stream);

    // out = (F^H F) x. `out` may be `x`, but must not overlap it otherwise.
    void apply(course::DeviceSpan<const float2> x, course::DeviceSpan<float2> out, cudaStream_t stream);

    const Grid& grid() const { return grid_; }
    const Grid& padded() const { return padded_; }

  private:
    // Of a grid that has been checked.
    explicit NormalOperator(const Grid& grid);
    void take(const KSpace& k, Gridding* gridding, cudaStream_t stream);

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

// --- Reference, in double ------------------------------------------------------------------------

// The differences of two voxels, in fields of view: every `stride`-th of differences_of(grid).
HostPositions difference_positions(const Grid& grid, std::size_t stride = 1);

// (F^H F + lambda) x, first to the samples and back, at every `stride`-th voxel. The voxels are at
// the exact positions of the grid: the operator does not use rounded ones.
std::vector<std::complex<double>> normal_on_cpu(const HostSamples& k, const Grid& grid,
                                                const std::vector<float2>& x, double lambda = 0,
                                                std::size_t stride = 1);

// F^H d: the sum over m of conj(phi(m)) d(m) exp(i 2 pi k(m) r(n)), rounded.
std::vector<float2> image_on_cpu(const HostSamples& k, const Grid& grid);
// F^H F F^H d, where F F^H is a matrix of all pairs of samples.
std::vector<float2> product_on_cpu(const HostSamples& k, const Grid& grid);

// ConjugateGradients for b = F^H d. All vectors are then images F^H s, because (F^H F + lambda) F^H
// s = F^H (F F^H + lambda) s, and the reference takes its steps with the samples s.
struct GradientsOnCpu {
    std::vector<float2> x;
    std::vector<double> residuals;
};
GradientsOnCpu gradients_on_cpu(const HostSamples& k, const Grid& grid, double lambda, int iterations);

// At least the largest eigenvalue of F^H F. That is the norm of F F^H, a matrix of all pairs of
// samples, which is at most its largest sum of magnitudes in a row.
double most_of_normal(const HostSamples& k, const Grid& grid);

}  // namespace day37

// Day 37, beyond: the sum of waves by gridding and a fast Fourier transform, which together are
// called a non-uniform FFT.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "beyond/separable.hpp"
#include "common/device/device_view.hpp"
#include "grid.hpp"
#include "mri.hpp"

namespace day37 {

// Why there is no transform, or "": it is cuFFT's, which on the CPU stands on FFTW.
std::string why_no_fft();

// The window of `width` points, for a grid of at least twice as many points as voxels: beta, by a
// formula of P. Beatty, D. Nishimura and J. Pauly (2005); its value at `points` from the middle,
// where it is 1; and its transform at `frequency` periods per point.
double window_beta(int width);
double window_value(int width, double points);
double window_transform(int width, double frequency);

// How samples are spread, slow to fast (gridding.cuh).
enum class Spreading { kAtomic, kByWarps, kTiled };
struct NamedSpreading {
    std::string name;
    Spreading how;
};
inline const std::array<NamedSpreading, 3> kSpreadings = {{{"spread_atomic", Spreading::kAtomic},
                                                           {"spread_by_warps", Spreading::kByWarps},
                                                           {"spread_tiled", Spreading::kTiled}}};

// Sums of waves on a grid, as of sum_on_grid() (separable.hpp), but approximate:
// gridding_verify.hpp has the bound. One stream at a time.
class Gridding {
  public:
    static constexpr int kLeastWidth = 2;
    static constexpr int kMostWidth = 8;
    static constexpr std::size_t kMostExtent = 2048;
    static constexpr std::size_t kMostPoints = std::size_t{1} << 30;

    // For voxels of `grid`, of which `field` are one field of view along each axis, and at most
    // `samples` samples. Throws std::invalid_argument for a number that is out of range.
    Gridding(const Grid& grid, const Grid& field, std::size_t samples, int width);
    Gridding(Gridding&&) noexcept;
    ~Gridding();

    // Enqueues the first step alone, which needs no transform: mu at the points.
    void spread(const Weighted& samples, Spreading how, cudaStream_t stream);
    // The points, x fastest, and how many there are along each axis.
    course::DeviceSpan<const float2> points() const;
    Grid extents() const;
    // As the constructor was given them.
    const Grid& grid() const;
    const Grid& field() const;
    std::size_t samples() const;

    // Enqueues the sums at all voxels. Throws std::runtime_error where there is no transform.
    void sum(const Weighted& samples, Spreading how, course::DeviceSpan<float> re,
             course::DeviceSpan<float> im, cudaStream_t stream);
    // The same for F^H d: mu comes from phi and d.
    void sum(const KSpace& k, Spreading how, const Image& out, cudaStream_t stream);

  private:
    struct Plan;
    std::unique_ptr<Plan> plan_;
};

}  // namespace day37

// The host API of day 37: the images that samples of k-space make, as sums of waves. The kernels
// are in mri.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "grid.hpp"

namespace day37 {

// Where voxel i of n is (grid.hpp).
float grid_position(std::size_t i, std::size_t n);

struct Problem {
    Grid grid;
    std::size_t samples = 0;
};

inline constexpr std::size_t kMostSamples = std::size_t{1} << 30;
inline constexpr std::size_t kMostVoxels = std::size_t{1} << 38;

// M samples: where they are in k-space, in periods per field of view, the model's factor for each
// (phi), and what the scanner measured (d).
struct KSpace {
    course::DeviceSpan<const float> kx, ky, kz;
    course::DeviceSpan<const float> phi_re, phi_im;
    course::DeviceSpan<const float> d_re, d_im;
};

// N positions, anywhere. `grid` is empty, or the grid that x, y and z are the positions of, which
// is not checked: versions for grids compute the positions themselves.
struct Voxels {
    course::DeviceSpan<const float> x, y, z;
    Grid grid{};
};

struct Image {
    course::DeviceSpan<float> re, im;
};

// Device memory for intermediate results, of problems with at most these samples and extents. Two
// sums that may run at the same time, on two streams, need two workspaces.
class Workspace {
  public:
    // Throws std::invalid_argument for more than kMostSamples, CudaError when there is no memory.
    explicit Workspace(const Problem& problem);

    std::size_t samples() const { return samples_; }
    float* mu_re() { return mu_.data(); }
    float* mu_im() { return mu_.data() + pitch_; }
    course::DeviceSpan<float> scratch() { return scratch_.span(); }  // tables of the samples

  private:
    std::size_t samples_;
    std::size_t pitch_;
    course::DeviceBuffer<float> mu_;
    course::DeviceBuffer<float> scratch_;
};

// Enqueues, for every voxel n, the sum over all samples m of
//     conj(phi(m)) * d(m) * exp(i 2 pi (kx(m) x(n) + ky(m) y(n) + kz(m) z(n)))
// on `stream`. The arrays of k-space have one length, those of voxels and image another; 0 is legal
// for both. Outputs must not overlap inputs or each other. The versions that copy samples to
// constant memory share it: use them on one stream at a time. Throws std::invalid_argument for a
// bad argument, CudaError when a launch fails.
using Launcher = void (*)(const KSpace& k, const Voxels& voxels, const Image& out, Workspace& workspace,
                          cudaStream_t stream);

// The versions, slow to fast.
using Version = course::Version<Launcher, Problem>;
std::span<const Version> versions();

// Samples and positions on the host.
struct HostSamples {
    std::vector<float> kx, ky, kz, phi_re, phi_im, d_re, d_im;

    std::size_t size() const { return kx.size(); }
};
struct HostPositions {
    std::vector<float> x, y, z;

    std::size_t size() const { return x.size(); }
};

// `count` samples, with |kx| <= extent_x / 2 and so on: a grid of that many voxels resolves no more.
HostSamples random_samples(std::size_t count, const Grid& extent, std::uint64_t seed);
HostPositions grid_positions(const Grid& grid);
HostPositions random_positions(std::size_t count, std::uint64_t seed);

// The reference: plain loops, in double. `weight` is the sum of |mu|, and `phase_weight` that of
// |mu| times |kx x| + |ky y| + |kz z|, both for the bound of the error (mri_verify.hpp).
struct Expected {
    std::vector<double> re, im, weight, phase_weight;
};
Expected sums_on_cpu(const HostSamples& k, const HostPositions& voxels);

}  // namespace day37

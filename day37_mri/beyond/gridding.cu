// Day 37, beyond: the host code of gridding, and the transform by cuFFT.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <stdexcept>
#include <vector>

#include "beyond/cufft_plan.hpp"
#include "beyond/gridding.cuh"
#include "beyond/gridding.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"

namespace day37 {
namespace {

using course::DeviceBuffer;
using course::require;

// At least twice the voxels, even, and without a prime factor above 5: sizes that FFTs like. An
// axis of one voxel needs one point.
std::size_t points_for(std::size_t voxels) {
    if (voxels == 1) return 1;
    for (std::size_t points = 2 * voxels;; points += 2) {
        std::size_t rest = points;
        for (const std::size_t prime : {2, 3, 5})
            while (rest % prime == 0)
                rest /= prime;
        if (rest == 1) return points;
    }
}

Grid checked(const Grid& grid, const Grid& field, std::size_t samples, int width) {
    Grid points = grid;
    for (std::size_t* const n : {&points.nx, &points.ny, &points.nz}) {
        require(*n >= 1 && *n <= Gridding::kMostExtent, "Gridding: the grid has ", *n,
                " voxels along an axis; expected 1 to ", Gridding::kMostExtent);
        *n = points_for(*n);
    }
    for (const std::size_t n : {field.nx, field.ny, field.nz})
        require(n >= 1, "Gridding: the field of view has 0 voxels along an axis; expected at least 1");
    require(points.count() <= Gridding::kMostPoints, "Gridding: ", points.count(),
            " points; expected at most 2^30");
    require(width >= Gridding::kLeastWidth && width <= Gridding::kMostWidth, "Gridding: width is ", width,
            "; expected ", Gridding::kLeastWidth, " to ", Gridding::kMostWidth);
    require(samples <= kMostSamples, "Gridding: ", samples, " samples; expected at most 2^30");
    return points;
}

// Per voxel, 1 over the window's transform.
std::vector<float> roll_of(std::size_t voxels, std::size_t points, int width) {
    std::vector<float> roll(voxels, 1.0f);
    if (points == 1) return roll;
    for (std::size_t i = 0; i < voxels; ++i) {
        const double from_middle = static_cast<double>(i) - static_cast<double>(voxels / 2);
        roll[i] = static_cast<float>(1 / window_transform(width, from_middle / static_cast<double>(points)));
    }
    return roll;
}

}  // namespace

// As the kernel has it: I0 of another beta would differ by more than rounding.
double window_beta(int width) {
    return static_cast<double>(
        static_cast<float>(std::numbers::pi * std::sqrt(0.5625 * width * width - 0.8)));
}

double window_value(int width, double points) {
    const double beta = window_beta(width);
    const double t = 2 * points / width;
    return std::abs(t) > 1
               ? 0
               : std::cyl_bessel_i(0.0, beta * std::sqrt(1 - t * t)) / std::cyl_bessel_i(0.0, beta);
}

double window_transform(int width, double frequency) {
    const double beta = window_beta(width);
    const double of_frequency = std::numbers::pi * width * frequency;
    const double root = std::sqrt(beta * beta - of_frequency * of_frequency);
    return width * std::sinh(root) / root / std::cyl_bessel_i(0.0, beta);
}

#ifdef COURSE_HAS_CUFFT

namespace {

// From waves to voxels.
class Transform {
  public:
    explicit Transform(const Grid& points) : plan_(points) {}
    void run(float2* points, cudaStream_t stream) const { plan_.run(points, CUFFT_INVERSE, stream); }

  private:
    CufftPlan plan_;
};

}  // namespace

std::string why_no_fft() {
    return "";
}

#else

namespace {

class Transform {
  public:
    explicit Transform(const Grid&) {}
    void run(float2*, cudaStream_t) const { throw std::runtime_error("Gridding: " + why_no_fft()); }
};

}  // namespace

std::string why_no_fft() {
    return "cuFFT was not found; on the CPU it needs FFTW: scripts/install_dependencies.sh --libraries";
}

#endif

struct Gridding::Plan {
    Plan(const Grid& image_grid, const Grid& of_field, std::size_t most_samples, int window_width)
        : grid(image_grid),
          field(of_field),
          extents(checked(image_grid, of_field, most_samples, window_width)),
          samples(most_samples),
          width(window_width),
          axis_x(axis(grid.nx, extents.nx, field.nx)),
          axis_y(axis(grid.ny, extents.ny, field.ny)),
          axis_z(axis(grid.nz, extents.nz, field.nz)),
          points(extents.count()),
          windows(most_samples),
          weights(3 * static_cast<std::size_t>(window_width) * most_samples),
          mu(2 * most_samples),
          tile_starts(2 * static_cast<std::size_t>(spread_tiles(sizes()).count()) + 1),
          ranks(2 * most_samples),
          roll_x(std::span<const float>(roll_of(grid.nx, extents.nx, width))),
          roll_y(std::span<const float>(roll_of(grid.ny, extents.ny, width))),
          roll_z(std::span<const float>(roll_of(grid.nz, extents.nz, width))),
          transform(extents) {}

    WindowAxis axis(std::size_t voxels, std::size_t all, std::size_t of_field) const {
        const bool even = voxels % 2 == 0;
        return {.scale = static_cast<double>(all) / static_cast<double>(of_field),
                .points = static_cast<int>(all),
                .width = width,
                .half_voxel = even ? 1.0 / static_cast<double>(of_field) : 0.0};
    }

    Points sizes() const {
        const auto along = [this](std::size_t n) { return n == 1 ? 1 : width; };
        return {.nx = static_cast<int>(extents.nx),
                .ny = static_cast<int>(extents.ny),
                .nz = static_cast<int>(extents.nz),
                .wx = along(extents.nx),
                .wy = along(extents.ny),
                .wz = along(extents.nz),
                .width = width};
    }

    TileOrder order() {
        const auto tiles = static_cast<std::size_t>(spread_tiles(sizes()).count());
        int* const counts = tile_starts.data();
        return {.counts = counts,
                .starts = counts + tiles,
                .ranks = ranks.data(),
                .order = ranks.data() + samples};
    }

    Grid grid, field, extents;
    std::size_t samples;
    int width;
    WindowAxis axis_x, axis_y, axis_z;
    DeviceBuffer<float2> points;
    DeviceBuffer<Window> windows;
    DeviceBuffer<float> weights, mu;
    DeviceBuffer<int> tile_starts, ranks;
    DeviceBuffer<float> roll_x, roll_y, roll_z;
    Transform transform;
};

Gridding::Gridding(const Grid& grid, const Grid& field, std::size_t samples, int width)
    : plan_(std::make_unique<Plan>(grid, field, samples, width)) {}
Gridding::Gridding(Gridding&&) noexcept = default;
Gridding::~Gridding() = default;

course::DeviceSpan<const float2> Gridding::points() const {
    return static_cast<const Plan&>(*plan_).points.span();
}

Grid Gridding::extents() const {
    return plan_->extents;
}

const Grid& Gridding::grid() const {
    return plan_->grid;
}

const Grid& Gridding::field() const {
    return plan_->field;
}

std::size_t Gridding::samples() const {
    return plan_->samples;
}

void Gridding::spread(const Weighted& k, Spreading how, cudaStream_t stream) {
    Plan& plan = *plan_;
    require(k.count <= plan.samples, "Gridding: ", k.count, " samples; expected at most ", plan.samples,
            ", for which its memory is");
    const auto samples = static_cast<int>(k.count);
    const Points points = plan.sizes();
    float2* const grid = plan.points.data();
    if (samples == 0) {
        CUDA_CHECK(cudaMemsetAsync(grid, 0, points.count() * sizeof(float2), stream));
        return;
    }
    const double beta = window_beta(plan.width);
    const KaiserBessel window{static_cast<float>(beta), static_cast<float>(1 / std::cyl_bessel_i(0.0, beta))};
    Window* const windows = plan.windows.data();
    float* const weights = plan.weights.data();
    place_windows<<<spread_blocks(k.count), kSpreadBlock, 0, stream>>>(
        k.kx, k.ky, k.kz, k.mu_re, k.mu_im, samples, plan.axis_x, plan.axis_y, plan.axis_z, window,
        plan.width, windows, weights);
    switch (how) {
        case Spreading::kAtomic:
            launch_spread_atomic(windows, weights, samples, points, grid, stream);
            break;
        case Spreading::kByWarps:
            launch_spread_by_warps(windows, weights, samples, points, grid, stream);
            break;
        case Spreading::kTiled:
            launch_spread_tiled(windows, weights, samples, plan.order(), points, grid, stream);
            break;
    }
    CUDA_CHECK_LAUNCH();
}

void Gridding::sum(const Weighted& k, Spreading how, course::DeviceSpan<float> re,
                   course::DeviceSpan<float> im, cudaStream_t stream) {
    Plan& plan = *plan_;
    const std::size_t voxels = plan.grid.count();
    require(re.size() == voxels && im.size() == voxels, "Gridding: re and im have ", re.size(), " and ",
            im.size(), " elements; expected ", voxels, ", one per voxel");
    require(!overlap(re, im), "Gridding: re overlaps im; expected no element in common");
    if (!why_no_fft().empty()) throw std::runtime_error("Gridding: " + why_no_fft());
    spread(k, how, stream);
    plan.transform.run(plan.points.data(), stream);
    crop_image<<<spread_blocks(voxels), kSpreadBlock, 0, stream>>>(
        plan.points.data(), plan.sizes(), {plan.roll_x.data(), plan.roll_y.data(), plan.roll_z.data()},
        plan.grid, re.data(), im.data());
    CUDA_CHECK_LAUNCH();
}

void Gridding::sum(const KSpace& k, Spreading how, const Image& out, cudaStream_t stream) {
    Plan& plan = *plan_;
    const std::size_t samples = k.kx.size();
    require(k.ky.size() == samples && k.kz.size() == samples && k.phi_re.size() == samples &&
                k.phi_im.size() == samples && k.d_re.size() == samples && k.d_im.size() == samples,
            "Gridding: the arrays of k-space have different lengths; expected ", samples, ", as kx");
    require(samples <= plan.samples, "Gridding: ", samples, " samples; expected at most ", plan.samples,
            ", for which its memory is");
    float* const mu_re = plan.mu.data();
    float* const mu_im = mu_re + plan.samples;
    multiply_mu(k, mu_re, mu_im, stream);
    sum({k.kx.data(), k.ky.data(), k.kz.data(), mu_re, mu_im, samples}, how, out.re, out.im, stream);
}

}  // namespace day37

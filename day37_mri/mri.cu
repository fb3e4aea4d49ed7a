// Day 37's launchers: argument checks, the list of versions. The kernels and their launches are in
// mri.cuh and beyond/.
#include <algorithm>
#include <array>
#include <string>

#include "beyond/coarsened.cuh"
#include "beyond/runs.cuh"
#include "beyond/separable.cuh"
#include "beyond/separable.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "mri.cuh"
#include "mri.hpp"

namespace day37 {
namespace {

using course::require;
using Inputs = std::array<course::DeviceSpan<const float>, 10>;

constexpr std::array kNames = {"kx", "ky", "kz", "phi_re", "phi_im", "d_re", "d_im", "x", "y", "z"};
constexpr std::size_t kOfSamples = 7;  // the first of them

Inputs inputs_of(const KSpace& k, const Voxels& voxels) {
    return {k.kx, k.ky, k.kz, k.phi_re, k.phi_im, k.d_re, k.d_im, voxels.x, voxels.y, voxels.z};
}

void check_arguments(const KSpace& k, const Voxels& voxels, const Image& out, const Workspace& workspace) {
    const Inputs inputs = inputs_of(k, voxels);
    const std::size_t samples = k.kx.size();
    const std::size_t count = voxels.x.size();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool of_sample = i < kOfSamples;
        require(inputs[i].size() == (of_sample ? samples : count), "mri: ", kNames[i], " has ",
                inputs[i].size(), " elements; expected ", of_sample ? samples : count, ", as ",
                of_sample ? "kx" : "x");
        require(!overlap(inputs[i], out.re) && !overlap(inputs[i], out.im), "mri: an output overlaps ",
                kNames[i], "; expected no element in common");
    }
    require(out.re.size() == count && out.im.size() == count, "mri: re and im have ", out.re.size(), " and ",
            out.im.size(), " elements; expected ", count, ", one per voxel");
    require(!overlap(out.re, out.im), "mri: re overlaps im; expected no element in common");
    require(samples <= kMostSamples, "mri: ", samples, " samples; expected at most 2^30");
    require(count <= kMostVoxels, "mri: ", count, " voxels; expected at most 2^38");
    require(samples <= workspace.samples(), "mri: the workspace is for ", workspace.samples(),
            " samples; expected at least ", samples);
    require(voxels.grid.count() == 0 || voxels.grid.count() == count, "mri: the grid has ",
            voxels.grid.count(), " voxels and x ", count, "; expected the same number");
}

Samples samples_of(const KSpace& k) {
    return {k.kx.data(),     k.ky.data(),   k.kz.data(),   k.phi_re.data(),
            k.phi_im.data(), k.d_re.data(), k.d_im.data(), static_cast<int>(k.kx.size())};
}

// Both arrays of mu start at a multiple of 128 bytes.
std::size_t pitch_for(std::size_t samples) {
    require(samples <= kMostSamples, "mri: a workspace for ", samples, " samples; expected at most 2^30");
    return course::ceil_div<std::size_t>(samples, 32) * 32;
}

// Floats of the largest table that a version makes of these samples.
std::size_t scratch_floats(const Problem& problem) {
    const std::size_t others = problem.samples * (sizeof(HalfRun) / sizeof(float));
    return std::max(others, axis_table_floats(problem.samples, problem.grid));
}

// Why a version for grids cannot run, or "".
constexpr std::size_t kMostExtent = std::size_t{1} << 20;
std::string why_no_grid(const Problem& problem) {
    const Grid& grid = problem.grid;
    if (grid.count() == 0) return "it is for voxels on a grid";
    if (std::max({grid.nx, grid.ny, grid.nz}) <= kMostExtent) return "";
    return "the grid is " + std::to_string(grid.nx) + " x " + std::to_string(grid.ny) + " x " +
           std::to_string(grid.nz) + "; expected at most 2^20 voxels along each axis";
}

// Sums without samples, which no version starts a grid for.
void clear(const Image& out, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(out.re.data(), 0, out.re.size() * sizeof(float), stream));
    CUDA_CHECK(cudaMemsetAsync(out.im.data(), 0, out.im.size() * sizeof(float), stream));
}

// The launches as run() calls them: each takes what it needs.
struct Arguments {
    Samples samples;
    Mu mu;
    Positions positions;
    Sums sums;
    Grid grid;
    float* scratch;
    cudaStream_t stream;
};

void scatter(const Arguments& a) {
    launch_scatter_atomic(a.samples, a.positions, a.sums, a.stream);
}

// Of those that take samples, mu, positions and sums.
template <auto kLaunch>
void direct(const Arguments& a) {
    kLaunch(a.samples, a.mu, a.positions, a.sums, a.stream);
}

void constant_structs(const Arguments& a) {
    launch_constant_structs(a.samples, a.mu, a.positions, a.sums, reinterpret_cast<PackedSample*>(a.scratch),
                            a.stream);
}

void rotation(const Arguments& a) {
    launch_rotation(a.samples, a.mu, a.positions, a.grid, a.sums, reinterpret_cast<float2*>(a.scratch),
                    a.stream);
}

void mirrored_runs(const Arguments& a) {
    launch_mirrored_runs(a.samples, a.mu, a.positions, a.grid, a.sums, reinterpret_cast<HalfRun*>(a.scratch),
                         a.stream);
}

void separable(const Arguments& a) {
    const AxisTables tables = axis_tables_in(a.scratch, static_cast<std::size_t>(a.samples.count), a.grid);
    launch_separable(a.samples, a.mu, a.grid, a.sums, tables, a.stream);
}

// A version, with its arguments checked.
template <void (*kLaunch)(const Arguments&), std::string (*kConstraint)(const Problem&) = nullptr>
void run(const KSpace& k, const Voxels& voxels, const Image& out, Workspace& workspace, cudaStream_t stream) {
    check_arguments(k, voxels, out, workspace);
    const Problem problem{voxels.grid, k.kx.size()};
    if (out.re.empty()) return;
    if constexpr (kConstraint != nullptr) {
        const std::string reason = kConstraint(problem);
        require(reason.empty(), "mri: ", reason);
    }
    require(scratch_floats(problem) <= workspace.scratch().size(),
            "mri: the workspace is for a smaller grid or fewer samples; expected one for ", problem.samples,
            " samples and ", voxels.grid.nx, " x ", voxels.grid.ny, " x ", voxels.grid.nz, " voxels");
    if (k.kx.empty()) return clear(out, stream);
    kLaunch({samples_of(k),
             {workspace.mu_re(), workspace.mu_im()},
             {voxels.x.data(), voxels.y.data(), voxels.z.data(), voxels.x.size()},
             {out.re.data(), out.im.data()},
             voxels.grid,
             workspace.scratch().data(),
             stream});
    CUDA_CHECK_LAUNCH();
}

// Sine and cosine count as one operation each. Of a voxel and a sample: three multiply-adds for the
// phase, and four for the sum.
course::Work work(const Problem& problem) {
    const auto voxels = static_cast<double>(problem.grid.count());
    const auto samples = static_cast<double>(problem.samples);
    const double written = 2 * sizeof(float) * voxels;
    return {.bytes = sizeof(float) * (7 * samples + 3 * voxels) + written,
            .written = written,
            .flops = 16 * voxels * samples,
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace

Workspace::Workspace(const Problem& problem)
    : samples_(problem.samples),
      pitch_(pitch_for(problem.samples)),
      mu_(2 * pitch_),
      scratch_(scratch_floats(problem)) {}

std::size_t axis_table_floats(std::size_t samples, const Grid& grid) {
    return 2 * samples * ((grid.nx + 1) / 2 + grid.ny + grid.nz);
}

void multiply_mu(const KSpace& k, float* mu_re, float* mu_im, cudaStream_t stream) {
    launch_compute_mu(samples_of(k), {mu_re, mu_im}, stream);
    CUDA_CHECK_LAUNCH();
}

void sum_on_grid(const Weighted& samples, const Grid& grid, const Grid& field, float* re, float* im,
                 float* tables, cudaStream_t stream) {
    const Samples s{.kx = samples.kx,
                    .ky = samples.ky,
                    .kz = samples.kz,
                    .phi_re = nullptr,
                    .phi_im = nullptr,
                    .d_re = nullptr,
                    .d_im = nullptr,
                    .count = static_cast<int>(samples.count)};
    // The launch only reads mu.
    const Mu mu{const_cast<float*>(samples.mu_re), const_cast<float*>(samples.mu_im)};
    launch_tables(s, mu, grid, field, {re, im}, axis_tables_in(tables, samples.count, grid), stream);
    CUDA_CHECK_LAUNCH();
}

std::span<const Version> versions() {
    static const std::array<Version, 12> list = {{
        {"scatter_atomic", "a thread per sample adds to every voxel", run<scatter>, work},
        {"gather", "a thread per voxel", run<direct<launch_gather>>, work},
        {"registers", "sum and position in registers", run<direct<launch_registers>>, work},
        {"constant_chunks", "samples in constant memory", run<direct<launch_constant_chunks>>, work},
        {"hardware_trig", "sine and cosine by the special function units", run<direct<launch_hardware_trig>>,
         work},
        {"shared_tile", "samples in shared memory", run<direct<launch_shared_tile>>, work},
        {"constant_structs", "samples as structures in constant memory", run<constant_structs>, work},
        {"coarsened", "four voxels per thread", run<direct<launch_coarsened>>, work},
        {"rotation", "16 voxels along x from one sine", run<rotation, why_no_grid>, work, why_no_grid},
        {"mirrored", "a voxel and its mirror image", run<direct<launch_mirrored>, why_no_grid>, work,
         why_no_grid},
        {"mirrored_runs", "8 voxels along x, mirrored about their middle", run<mirrored_runs, why_no_grid>,
         work, why_no_grid},
        {"separable", "a product of two matrices of waves", run<separable, why_no_grid>, work, why_no_grid},
    }};
    return list;
}

}  // namespace day37

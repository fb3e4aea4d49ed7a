// Day 37's launchers: argument checks, the list of versions. The kernels and their launches are in
// mri.cuh and beyond/.
#include <array>
#include <string>

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

// Sums without samples, which no version starts a grid for.
void clear(const Image& out, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(out.re.data(), 0, out.re.size() * sizeof(float), stream));
    CUDA_CHECK(cudaMemsetAsync(out.im.data(), 0, out.im.size() * sizeof(float), stream));
}

// A version of mri.cuh, with its arguments checked.
template <auto kLaunch>
void run(const KSpace& k, const Voxels& voxels, const Image& out, Workspace& workspace, cudaStream_t stream) {
    check_arguments(k, voxels, out, workspace);
    if (out.re.empty()) return;
    if (k.kx.empty()) return clear(out, stream);
    const Positions positions{voxels.x.data(), voxels.y.data(), voxels.z.data(), voxels.x.size()};
    const Sums sums{out.re.data(), out.im.data()};
    if constexpr (std::is_invocable_v<decltype(kLaunch), Samples, Positions, Sums, cudaStream_t>) {
        kLaunch(samples_of(k), positions, sums, stream);
    } else {
        kLaunch(samples_of(k), {workspace.mu_re(), workspace.mu_im()}, positions, sums, stream);
    }
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
    : samples_(problem.samples), pitch_(pitch_for(problem.samples)), mu_(2 * pitch_) {}

std::span<const Version> versions() {
    static const std::array<Version, 6> list = {{
        {"scatter_atomic", "a thread per sample adds to every voxel", run<launch_scatter_atomic>, work},
        {"gather", "a thread per voxel", run<launch_gather>, work},
        {"registers", "sum and position in registers", run<launch_registers>, work},
        {"constant_chunks", "samples in constant memory", run<launch_constant_chunks>, work},
        {"hardware_trig", "sine and cosine by the special function units", run<launch_hardware_trig>, work},
        {"shared_tile", "samples in shared memory", run<launch_shared_tile>, work},
    }};
    return list;
}

}  // namespace day37

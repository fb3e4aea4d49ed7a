// The electrostatic potential of atoms at the points of a grid: the host API of day 14. The kernels
// are in electrostatics.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "atoms.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day14 {

std::size_t points(const Grid& grid);
std::string to_text(const Grid& grid);  // "nx x ny x nz"

// Enqueues on `stream`, for each point p of the grid, with s = |p - atom|^2 + kSoftening:
//
//     potential[p] = sum over all atoms of  charge / sqrt(s)                            cutoff 0
//     potential[p] = sum over all atoms of  charge / sqrt(s) * max(0, 1 - s / cutoff^2)^2     else
//
// in elementary charges per angstrom; 332.06 times as much is kcal / mol per elementary charge.
// With a cutoff, atoms further away contribute nothing, and the factor makes the potential smooth
// there. Atoms may lie anywhere, in the box or out of it; coordinates of more than 1e18 angstrom
// (whose squares are no floats) have no meaning. `potential` is overwritten. Throws
// std::invalid_argument for a bad argument and where cannot_run() has a reason, CudaError when a
// launch fails. Versions with atoms in constant memory are for one stream at a time.
using Launcher = void (*)(course::DeviceSpan<const Atom> atoms, const Grid& grid, float cutoff,
                          course::DeviceSpan<float> potential, cudaStream_t stream);

struct Problem {
    Grid grid;
    std::size_t atoms = 0;
    float cutoff = 0;
};

// The versions, slow to fast: first those without a cutoff, then those with one.
using Version = course::Version<Launcher, Problem>;
std::span<const Version> versions();

// The reference: plain loops in double, on all cores.
struct Expected {
    std::vector<double> potential;
    // The largest error that float arithmetic causes with high probability, in units of
    // 2^-24. electrostatics_reference.cpp derives it.
    std::vector<double> roundings;
};
// For the points of these indices.
Expected potential_on_cpu(std::span<const Atom> atoms, const Grid& grid, float cutoff,
                          std::span<const std::size_t> at);
// For all points.
Expected potential_on_cpu(std::span<const Atom> atoms, const Grid& grid, float cutoff);

// `n` atoms in a box of the grid's size and half an angstrom around it, with charges from -1 to 1.
std::vector<Atom> random_atoms(std::size_t n, const Grid& grid, std::uint64_t seed);

}  // namespace day14

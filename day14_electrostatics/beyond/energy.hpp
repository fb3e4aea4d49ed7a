// The electrostatic energy of atoms: the host API of energy.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "atoms.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day14 {

// Enqueues on `stream`, with s = |a - b|^2 + kSoftening:
//
//     energy[0] = sum over all pairs of atoms a and b, each once, of  charge_a * charge_b / sqrt(s)
//
// in the square of the elementary charge per angstrom; 332.06 times as much is kcal / mol. A term
// is a float, the sum of terms of a thread, too; the rest is in double. Fewer than two atoms have
// the energy 0. Coordinates of more than 1e18 angstrom have no meaning. Throws
// std::invalid_argument unless `energy` has one element and there are at most kMostEnergyAtoms,
// CudaError when a launch fails.
using EnergyLauncher = void (*)(course::DeviceSpan<const Atom> atoms, course::DeviceSpan<double> energy,
                                cudaStream_t stream);

inline constexpr std::size_t kMostEnergyAtoms = std::size_t{1} << 24;

// The versions, slow to fast; their problem is the number of atoms.
using EnergyVersion = course::Version<EnergyLauncher, std::size_t>;
std::span<const EnergyVersion> energy_versions();

// The reference: a plain loop over all pairs in double.
struct ExpectedEnergy {
    double energy = 0;
    // The largest error that float arithmetic causes with high probability, in units of 2^-24.
    // energy_reference.cpp derives it.
    double roundings = 0;
};
ExpectedEnergy energy_on_cpu(std::span<const Atom> atoms);

}  // namespace day14

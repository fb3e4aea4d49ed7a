// Day 14, beyond: the host code of the energy.
#include <array>

#include "beyond/energy.cuh"
#include "beyond/energy.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/stream_buffer.hpp"

namespace day14 {
namespace {

using course::DeviceSpan;
using course::require;
using course::StreamBuffer;

// Checks, and true if there is a pair.
bool begin(DeviceSpan<const Atom> atoms, DeviceSpan<double> energy, cudaStream_t stream) {
    require(energy.size() == 1, "energy: energy has ", energy.size(), " elements; expected 1");
    require(atoms.size() <= kMostEnergyAtoms, "energy: ", atoms.size(), " atoms; expected at most ",
            kMostEnergyAtoms);
    require(!overlap(atoms, energy), "energy: energy overlaps atoms; expected no element in common");
    if (atoms.size() >= 2) return true;
    CUDA_CHECK(cudaMemsetAsync(energy.data(), 0, sizeof(double), stream));
    return false;
}

void each_twice(DeviceSpan<const Atom> atoms, DeviceSpan<double> energy, cudaStream_t stream) {
    if (!begin(atoms, energy, stream)) return;
    const StreamBuffer<double> sums(blocks_each_twice(atoms.size()), stream);
    launch_each_twice(atoms.data(), atoms.size(), sums.data(), energy.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void each_once(DeviceSpan<const Atom> atoms, DeviceSpan<double> energy, cudaStream_t stream) {
    if (!begin(atoms, energy, stream)) return;
    const dim3 blocks = blocks_each_once(atoms.size());
    const StreamBuffer<double> sums(std::size_t{blocks.x} * blocks.y, stream);
    launch_each_once(atoms.data(), atoms.size(), sums.data(), energy.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// What has to be done: eleven operations for a pair, beside the root. Three differences, three
// multiply-adds and that of the sum.
course::Work work(const std::size_t& atoms) {
    const auto n = static_cast<double>(atoms);
    return {
        .bytes = sizeof(Atom) * n + sizeof(double), .written = sizeof(double), .flops = 11 * n * (n - 1) / 2};
}

}  // namespace

std::span<const EnergyVersion> energy_versions() {
    static const std::array<EnergyVersion, 2> list{{
        {"each_twice", "energy: a thread per atom reads all others", each_twice, work},
        {"each_once", "energy: a ring of tiles, each pair once", each_once, work},
    }};
    return list;
}

}  // namespace day14

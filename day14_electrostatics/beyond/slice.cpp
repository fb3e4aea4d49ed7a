// Day 14, beyond: the potential of a made-up molecule in a slice through its middle, as a picture
// (PGM): 128 is a potential of 0, 1 and 255 are -kBrightest and kBrightest. Also prints the energy.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "beyond/energy.hpp"
#include "beyond/molecule.hpp"
#include "common/device/device_buffer.hpp"
#include "electrostatics.hpp"

namespace {

using course::DeviceBuffer;
using day14::Atom;

constexpr std::size_t kResidues = 150;
constexpr std::uint64_t kSeed = 14;
constexpr int kExtent = 256;  // points of a row
constexpr float kSpacing = 0.25f;
constexpr float kBrightest = 1;  // elementary charges per angstrom

}  // namespace

int main() {
    std::vector<Atom> atoms = day14::random_molecule(kResidues, kSeed);
    // A map starts at (0, 0, 0): the molecule's middle goes to the middle of the slice z = 0.
    for (Atom& atom : atoms) {
        atom.x += kExtent * kSpacing / 2;
        atom.y += kExtent * kSpacing / 2;
    }
    const day14::Grid slice{kExtent, kExtent, 1, kSpacing};
    const DeviceBuffer<Atom> device{std::span<const Atom>(atoms)};
    DeviceBuffer<float> potential(points(slice));
    course::find_version(day14::versions(), "shared_atoms")
        .launcher(device.span(), slice, 0, potential.span(), nullptr);
    DeviceBuffer<double> energy(1);
    day14::energy_versions().back().launcher(device.span(), energy.span(), nullptr);
    std::fprintf(stderr, "%zu atoms, energy %.1f kcal/mol\n", atoms.size(), 332.06 * energy.to_host()[0]);

    const std::vector<float> values = potential.to_host();
    std::printf("P2\n%d %d\n255\n", kExtent, kExtent);
    for (int row = kExtent; row-- > 0;) {  // y grows upwards
        for (int x = 0; x < kExtent; ++x) {
            const float value = values[slice.index(x, row, 0)] / kBrightest;
            std::printf("%d ", static_cast<int>(std::clamp(128 + std::round(127 * value), 1.0f, 255.0f)));
        }
        std::printf("\n");
    }
    return 0;
}

// The energy against the reference in double, within the derived bound, and the molecule.
#include "beyond/energy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/molecule.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "electrostatics.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using day14::Atom;

constexpr std::uint64_t kSeed = 1414;

// Atoms about 4 angstrom apart, as dense as random_atoms makes them in a box of this size.
std::vector<Atom> atoms_of_a_cube(std::size_t n, std::uint64_t seed = kSeed) {
    const int side = 1 + static_cast<int>(4 * std::cbrt(static_cast<double>(n)));
    return day14::random_atoms(n, {side, side, side, 1}, seed);
}

// `roundings` are in units of 2^-24, the bound in the epsilon of double.
course::VerifyResult verify(double got, const day14::ExpectedEnergy& expected) {
    return course::verify(std::vector<double>{got}, std::vector<double>{expected.energy}, {.factor = 0x1p28},
                          std::vector<double>{expected.roundings});
}

class EnergyTest : public course::DeviceTestWithParam<const day14::EnergyVersion*> {
  protected:
    static void expect_right(const std::vector<Atom>& atoms) {
        SCOPED_TRACE(std::to_string(atoms.size()) + " atoms, course::Random seed " + std::to_string(kSeed));
        GuardedBuffer<Atom> device(atoms.size());
        device.copy_from(atoms);
        GuardedBuffer<double> energy(1);
        GetParam()->launcher(device.span(), energy.span(), nullptr);
        course::VerifyResult result = verify(energy.to_host()[0], day14::energy_on_cpu(atoms));
        result.damage = energy.damage() + device.damage();
        EXPECT_TRUE(result.ok()) << result.message();
    }
};

INSTANTIATE_TEST_SUITE_P(DayFourteen, EnergyTest, course::each_of(day14::energy_versions()),
                         course::VersionName());

TEST_P(EnergyTest, AnyNumberOfAtoms) {
    for (const std::size_t n :
         {0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 383, 384, 385, 511, 512, 513, 640, 641, 997})
        expect_right(atoms_of_a_cube(n));
}

// Rings of 65 and 66 tiles, in which some blocks take two steps.
TEST_P(EnergyTest, MoreStepsThanBlocks) {
    if (GetParam()->name == "each_twice") GTEST_SKIP() << "it has no ring";
    for (const std::size_t n : {64 * 128 + 1, 65 * 128 + 1})
        expect_right(atoms_of_a_cube(n));
}

// Only two atoms have a charge, so their pair alone is the energy: in the same tile, in adjacent
// tiles, and in opposite ones of an even and of an odd ring.
TEST_P(EnergyTest, EachPairOnce) {
    for (const std::size_t tiles : {1, 2, 3, 4, 5}) {
        const std::size_t n = tiles * 128 - 5;
        for (std::size_t tile = 0; tile < tiles; ++tile) {
            for (const std::size_t lane : {0, 122}) {
                std::vector<Atom> atoms = atoms_of_a_cube(n);
                for (Atom& atom : atoms)
                    atom.charge = 0;
                atoms[5].charge = 2;
                atoms[tile * 128 + lane].charge = -3;
                expect_right(atoms);
            }
        }
    }
}

// More pairs than 32 bits count, in rings of more than a thousand steps. All terms but that of the
// two atoms with a charge are 0.
TEST_P(EnergyTest, MorePairsThan32BitsCount) {
    if (course::is_cpu_stand_in()) GTEST_SKIP() << "needs a GPU: 2^35 pairs take CPU threads too long";
    const std::vector<Atom> neutral = [] {
        std::vector<Atom> atoms = atoms_of_a_cube(300'000);
        for (Atom& atom : atoms)
            atom.charge = 0;
        return atoms;
    }();
    for (const std::size_t other : {6, 150'000, 299'999}) {
        SCOPED_TRACE("atoms 5 and " + std::to_string(other));
        std::vector<Atom> atoms = neutral;
        atoms[5].charge = 2;
        atoms[other].charge = -3;
        const DeviceBuffer<Atom> device{std::span<const Atom>(atoms)};
        GuardedBuffer<double> energy(1);
        GetParam()->launcher(device.span(), energy.span(), nullptr);
        const std::vector<Atom> charged{atoms[5], atoms[other]};
        const course::VerifyResult result = verify(energy.to_host()[0], day14::energy_on_cpu(charged));
        EXPECT_TRUE(result.ok()) << result.message();
    }
}

TEST_P(EnergyTest, AtomsInTheSamePlace) {
    expect_right(std::vector<Atom>(2, {1, 2, 3, 1}));
    expect_right(std::vector<Atom>(200, {1e6f, 2, -3, -0.75f}));
}

TEST_P(EnergyTest, HugeChargesBesideTinyOnes) {
    std::vector<Atom> atoms = atoms_of_a_cube(300);
    for (std::size_t i = 0; i < atoms.size(); ++i)
        atoms[i].charge *= i % 3 == 0 ? 1e20f : 1e-20f;
    expect_right(atoms);
    for (std::size_t i = 0; i < atoms.size(); i += 3)
        atoms[i].charge *= 1e-40f;
    expect_right(atoms);
}

// Its potential is infinite in its own place, which is also that of threads without an atom. In a
// ring of three tiles the last one, which is not full, meets the first.
TEST_P(EnergyTest, AHugeChargeAtTheOrigin) {
    for (const std::size_t n : {2, 300}) {
        std::vector<Atom> atoms(n, {3, 4, 0, 2});
        atoms[0] = {0, 0, 0, 1e37f};
        expect_right(atoms);
    }
}

TEST_P(EnergyTest, ChargesThatCancel) {
    std::vector<Atom> atoms = atoms_of_a_cube(150);
    for (std::size_t i = 0; i < 150; ++i) {
        atoms.push_back(atoms[i]);
        atoms.back().charge = -atoms[i].charge;
    }
    expect_right(atoms);
}

TEST_P(EnergyTest, AtomsFarAway) {
    std::vector<Atom> atoms = atoms_of_a_cube(140);
    for (std::size_t i = 0; i < atoms.size(); i += 7)
        atoms[i].x *= i % 2 == 0 ? 1e17f : -1e9f;
    expect_right(atoms);
}

TEST_P(EnergyTest, OfAMolecule) {
    expect_right(day14::random_molecule(200, kSeed));
}

TEST_P(EnergyTest, RunsOnTheGivenStream) {
    const std::vector<Atom> two{{0, 0, 0, 1}, {0, 0, 2, 3}};
    DeviceBuffer<Atom> atoms{std::span<const Atom>(two)};
    GuardedBuffer<double> energy(1);
    const auto launch = [&](std::size_t n) {
        return [&, n](cudaStream_t stream) {
            GetParam()->launcher(atoms.span().subspan(0, n), energy.span(), stream);
        };
    };
    EXPECT_EQ(course::CapturedWork(launch(1)).nodes(), 1U) << "expected the memset alone";
    const course::CapturedWork work(launch(2));
    EXPECT_GE(work.nodes(), 2U) << "expected at least two kernels on the given stream";
    CUDA_CHECK(cudaDeviceSynchronize());
    energy.spoil();
    work.run();
    EXPECT_TRUE(verify(energy.to_host()[0], day14::energy_on_cpu(two)).ok());
}

TEST_P(EnergyTest, RefusesBadArguments) {
    const DeviceBuffer<Atom> atoms{std::span<const Atom>(atoms_of_a_cube(4))};
    GuardedBuffer<double> energies(2);
    const auto refusal = [&](course::DeviceSpan<const Atom> some, course::DeviceSpan<double> energy) {
        try {
            GetParam()->launcher(some, energy, nullptr);
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string("none");
    };
    EXPECT_EQ(refusal(atoms.span(), energies.span()), "energy: energy has 2 elements; expected 1");
    EXPECT_EQ(refusal(atoms.span(), energies.span().subspan(0, 0)),
              "energy: energy has 0 elements; expected 1");
    const auto many =
        course::DeviceSpan<const Atom>::from_device_pointer(atoms.data(), day14::kMostEnergyAtoms + 1);
    EXPECT_EQ(refusal(many, energies.span().subspan(0, 1)),
              "energy: 16777217 atoms; expected at most 16777216");
    const auto inside = course::DeviceSpan<double>::from_device_pointer(
        reinterpret_cast<double*>(const_cast<Atom*>(atoms.data())) + 1, 1);
    EXPECT_EQ(refusal(atoms.span(), inside), "energy: energy overlaps atoms; expected no element in common");
    for (const double value : energies.to_host())
        EXPECT_TRUE(std::isnan(value)) << "written in spite of the refusal";
}

// The definition, by hand.
TEST(EnergyOnCpu, IsTheDefinition) {
    const double near = 1 / std::sqrt(1 + 1.0 / 4096);
    const double far = 1 / std::sqrt(4 + 1.0 / 4096);
    const std::vector<Atom> three{{0, 0, 0, 2}, {0, 0, 1, -3}, {0, 0, 2, 5}};
    EXPECT_NEAR(day14::energy_on_cpu(three).energy, (2 * -3 - 3 * 5) * near + 2 * 5 * far, 1e-12);
    EXPECT_EQ(day14::energy_on_cpu({}).energy, 0);
}

// Half of the sum of charge * potential, less each atom's own 64 * charge^2: the map, if there is a
// point at every atom.
TEST(EnergyOnCpu, IsHalfOfTheChargesInThePotential) {
    const day14::Grid grid{4, 3, 2, 1};
    std::vector<Atom> atoms;
    for (int i = 0; i < 24; ++i)
        atoms.push_back({grid.at(i % 4), grid.at(i / 4 % 3), grid.at(i / 12), static_cast<float>(i % 5) - 2});
    const day14::Expected map = day14::potential_on_cpu(atoms, grid, 0);
    double twice = 0;
    for (std::size_t i = 0; i < atoms.size(); ++i) {
        const auto charge = static_cast<double>(atoms[i].charge);
        twice += charge * (map.potential[i] - 64 * charge);
    }
    EXPECT_NEAR(day14::energy_on_cpu(atoms).energy, twice / 2, 1e-9);
}

TEST(Molecule, IsCompactAndHasTwoSides) {
    constexpr std::size_t kResidues = 200;
    const std::vector<Atom> atoms = day14::random_molecule(kResidues, kSeed);
    ASSERT_EQ(atoms.size(), 4 * kResidues);
    double dipole = 0;
    double charge = 0;
    for (const Atom& atom : atoms) {
        // A ball of 200 residues has a radius of 18.6 angstrom; the rest is the side chains.
        EXPECT_LT(std::sqrt(atom.x * atom.x + atom.y * atom.y + atom.z * atom.z), 19 + 3.8 + 3);
        dipole += static_cast<double>(atom.x) * static_cast<double>(atom.charge);
        charge += static_cast<double>(atom.charge);
    }
    EXPECT_EQ(charge, 0);
    EXPECT_GT(dipole, 50) << "in elementary charges times angstrom";
    const std::vector<Atom> again = day14::random_molecule(kResidues, kSeed);
    for (std::size_t i = 0; i < atoms.size(); ++i)
        EXPECT_EQ(atoms[i].x, again[i].x);
    const std::vector<Atom> other = day14::random_molecule(kResidues, kSeed + 1);
    EXPECT_NE(atoms.back().x, other.back().x);
}

}  // namespace

// Day 14's program: every version verified and timed.
//
//     day14_electrostatics --size NXxNYxNZxATOMS
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "beyond/energy.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "electrostatics.hpp"
#include "electrostatics_plain_loop.hpp"

namespace {

using day14::Atom;
using day14::Grid;

// Pairs that the reference computes: of many points it takes a sample.
constexpr std::size_t kMostOnCpu = 400'000'000;
// Pairs beyond which `scatter` takes too long to repeat on a GPU.
constexpr double kMostScattered = 2e9;
// Pairs of atoms, of which the reference of the energy computes all.
constexpr double kMostAtomPairs = 1e10;
// What a pair takes in a plain loop on one thread, in seconds. An estimate.
constexpr double kPlainPair = 6e-9;

struct Data {
    Data(const Grid& g, std::size_t n, float c)
        : grid(g),
          cutoff(c),
          atoms(day14::random_atoms(n, g, 14)),
          device(std::span<const Atom>(atoms)),
          out(points(g)) {
        const std::size_t most = std::max<std::size_t>(kMostOnCpu / n, 1000);
        const std::size_t step = std::max<std::size_t>(points(g) / most, 1);
        // A prime number of points apart, or nearly: in all columns of the grid.
        for (std::size_t i = 0; i < points(g); i += step == 1 ? 1 : step | 1)
            at.push_back(i);
        expected = day14::potential_on_cpu(atoms, grid, cutoff, at);
    }

    course::VerifyResult verify(const std::vector<float>& got) const {
        std::vector<float> sample(at.size());
        for (std::size_t i = 0; i < at.size(); ++i)
            sample[i] = got[at[i]];
        course::VerifyResult result =
            course::verify(sample, expected.potential, {.factor = 0.5}, expected.roundings);
        const auto missing = std::ranges::count_if(got, [](float value) { return std::isnan(value); });
        if (missing != 0) result.damage += fmt::format("{} points are NaN", missing);
        return result;
    }

    Grid grid;
    float cutoff;
    std::vector<Atom> atoms;
    std::vector<std::size_t> at;
    day14::Expected expected;
    course::DeviceBuffer<Atom> device;
    course::GuardedBuffer<float> out;
};

void require_four(const course::Dims& size) {
    course::require(size.size() == 4, "size has ", size.size(),
                    " numbers; expected four, nx x ny x nz x atoms, for example 64x64x64x1000");
}

// With a cutoff, bench_sizes have 0.06 atoms per cubic angstrom in all boxes.
course::Case make_case(const course::Dims& size, float cutoff) {
    require_four(size);
    const std::size_t n = size[3];
    const double m =
        static_cast<double>(size[0]) * static_cast<double>(size[1]) * static_cast<double>(size[2]);
    // So many atoms are a problem for versions with a cutoff only, and a few for the others.
    const double pairs = m * static_cast<double>(n);
    if (cutoff == 0 ? pairs > 2e11 : n < 100) return {};
    const float spacing = cutoff == 0 ? 0.5f : 1.0f;
    const Grid grid{static_cast<int>(size[0]), static_cast<int>(size[1]), static_cast<int>(size[2]), spacing};
    const std::string problem =
        fmt::format("{} {}x{}x{}x{}", cutoff == 0 ? "all_pairs" : fmt::format("cutoff_{}", cutoff), grid.nx,
                    grid.ny, grid.nz, n);
    course::UsualCase<Data> usual(problem, "float", std::make_shared<Data>(grid, n, cutoff));
    usual.output(&Data::out, [](const Data& data, const auto& got) { return data.verify(got); });
    const day14::Problem shape{grid, n, cutoff};
    std::vector<day14::Version> list;
    for (const day14::Version& version : day14::versions()) {
        if (version.cannot_run(shape).empty() && (version.name != "scatter" || pairs <= kMostScattered))
            list.push_back(version);
    }
    usual.versions(list, shape, [](const auto& version, Data& data, cudaStream_t stream) {
        version.launcher(data.device.span(), data.grid, data.cutoff, data.out.span(), stream);
    });
    usual.plain_loop(
        list.front().work(shape), pairs * kPlainPair,
        [m] { return course::unwritten<float>(static_cast<std::size_t>(m)); },
        [](const Data& data, std::span<float> out, int threads) {
            day14::potential_plainly(data.atoms, data.grid, data.cutoff, out, threads);
        },
        [](const Data& data, const std::vector<float>& out) { return data.verify(out); });
    return usual.result;
}

struct EnergyData {
    explicit EnergyData(std::vector<Atom> all)
        : atoms(std::move(all)),
          expected(day14::energy_on_cpu(atoms)),
          device(std::span<const Atom>(atoms)),
          energy(1) {}

    std::vector<Atom> atoms;
    day14::ExpectedEnergy expected;
    course::DeviceBuffer<Atom> device;
    course::GuardedBuffer<double> energy;
};

// The energy of the atoms alone: of the grid only the box counts, in which they are.
course::Case energy_case(const course::Dims& size) {
    require_four(size);
    const std::size_t n = size[3];
    if (static_cast<double>(n) * static_cast<double>(n) / 2 > kMostAtomPairs) return {};
    const Grid box{static_cast<int>(size[0]), static_cast<int>(size[1]), static_cast<int>(size[2]), 1};
    course::UsualCase<EnergyData> usual(fmt::format("energy {}x{}x{}x{}", box.nx, box.ny, box.nz, n), "float",
                                        std::make_shared<EnergyData>(day14::random_atoms(n, box, 14)));
    usual.output(&EnergyData::energy, [](const EnergyData& data, const std::vector<double>& got) {
        // Units of 2^-24, in the epsilon of double.
        return course::verify(got, std::vector<double>{data.expected.energy}, {.factor = 0x1p28},
                              std::vector<double>{data.expected.roundings});
    });
    usual.versions(day14::energy_versions(), n,
                   [](const auto& version, EnergyData& data, cudaStream_t stream) {
                       version.launcher(data.device.span(), data.energy.span(), stream);
                   });
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const auto with_cutoff = [](float cutoff) {
        return [cutoff](const course::Dims& size) { return make_case(size, cutoff); };
    };
    const course::Program program{.day = "day14_electrostatics",
                                  .title = "the potential of atoms at nx x ny x nz points",
                                  .default_size = {32, 24, 16, 200},
                                  .bench_sizes = {{64, 64, 64, 4000},
                                                  {256, 256, 256, 4000},
                                                  {64, 64, 64, 15625},
                                                  {128, 128, 128, 125000},
                                                  {256, 256, 256, 1000000}},
                                  .make_cases = {with_cutoff(0), with_cutoff(12), energy_case}};
    return course::run_program(program, argc, argv);
}

// Day 14's host code: argument checks, the list of versions. The kernels and their launches are in
// electrostatics.cuh and beyond/.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "beyond/cell_list.cuh"
#include "beyond/mixed_pipes.cuh"
#include "beyond/shared_atoms.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/stream_buffer.hpp"
#include "electrostatics.cuh"
#include "electrostatics.hpp"

namespace day14 {
namespace {

using course::DeviceSpan;
using course::require;
using course::StreamBuffer;

constexpr float kMostAngstrom = 1e6f;                     // where floats are 0.06 apart
constexpr int kMostPoints = 65535;                        // along an axis: blocks of a grid along z
constexpr std::size_t kMostAtoms = std::size_t{1} << 29;  // twice as many bins, numbered by ints

void check_arguments(DeviceSpan<const Atom> atoms, const Grid& grid, float cutoff,
                     DeviceSpan<float> potential) {
    const auto good = [](int extent) { return extent >= 0 && extent <= kMostPoints; };
    require(good(grid.nx) && good(grid.ny) && good(grid.nz), "electrostatics: the grid has ", to_text(grid),
            " points; expected 0 to ", kMostPoints, " along each axis");
    require(std::isfinite(grid.spacing) && grid.spacing > 0, "electrostatics: spacing is ", grid.spacing,
            "; expected a finite number above 0");
    const float longest = grid.spacing * static_cast<float>(std::max({grid.nx, grid.ny, grid.nz}));
    require(longest <= kMostAngstrom, "electrostatics: the grid is ", longest,
            " angstrom long; expected at most ", kMostAngstrom);
    require(cutoff == 0 || (cutoff >= 1e-30f && cutoff <= 1e30f), "electrostatics: cutoff is ", cutoff,
            "; expected 1e-30 to 1e30, or 0 for none");
    require(potential.size() == points(grid), "electrostatics: potential has ", potential.size(),
            " elements; expected ", points(grid), ", one for each of ", to_text(grid), " points");
    require(atoms.size() <= kMostAtoms, "electrostatics: ", atoms.size(), " atoms; expected at most 2^29");
    require(!overlap(atoms, potential),
            "electrostatics: potential overlaps atoms; expected no element in common");
}

std::string why_not_without_cutoff(const Problem& problem) {
    return problem.cutoff == 0 ? ""
                               : "it computes all pairs; the cutoff versions end the potential at " +
                                     course::to_text(problem.cutoff) + " angstrom";
}

std::string why_not_with_cutoff(const Problem& problem) {
    return problem.cutoff > 0 ? "" : "it needs a cutoff above 0";
}

// Checks, potential = 0, and true if there is something to compute.
bool begin(DeviceSpan<const Atom> atoms, const Grid& grid, float cutoff, DeviceSpan<float> potential,
           std::string (*why_not)(const Problem&), cudaStream_t stream) {
    check_arguments(atoms, grid, cutoff, potential);
    const std::string reason = why_not({grid, atoms.size(), cutoff});
    require(reason.empty(), "electrostatics: cutoff is ", cutoff, ": ", reason);
    if (potential.empty()) return false;
    CUDA_CHECK(cudaMemsetAsync(potential.data(), 0, potential.size() * sizeof(float), stream));
    return !atoms.empty();
}

// The versions that compute all pairs.
template <auto kLaunch>
void all_pairs(DeviceSpan<const Atom> atoms, const Grid& grid, float cutoff, DeviceSpan<float> potential,
               cudaStream_t stream) {
    if (!begin(atoms, grid, cutoff, potential, why_not_without_cutoff, stream)) return;
    kLaunch(atoms.data(), atoms.size(), grid, potential.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void binned(DeviceSpan<const Atom> atoms, const Grid& grid, float cutoff, DeviceSpan<float> potential,
            cudaStream_t stream) {
    if (!begin(atoms, grid, cutoff, potential, why_not_with_cutoff, stream)) return;
    const Bins bins = bins_for(grid, cutoff, atoms.size());
    const StreamBuffer<unsigned> counts(total(bins) + 1, stream);  // and that of the overflow
    const StreamBuffer<Atom> in_bins(total(bins) * kCapacity, stream);
    const StreamBuffer<Atom> overflow(atoms.size(), stream);
    counts.clear();
    launch_binned(atoms.data(), atoms.size(), grid, cutoff, bins,
                  {counts.data(), in_bins.data(), counts.data() + total(bins), overflow.data()},
                  potential.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void cell_list(DeviceSpan<const Atom> atoms, const Grid& grid, float cutoff, DeviceSpan<float> potential,
               cudaStream_t stream) {
    if (!begin(atoms, grid, cutoff, potential, why_not_with_cutoff, stream)) return;
    const Bins bins = bins_for(grid, cutoff, atoms.size());
    const std::size_t cells = total(bins) + 1;
    const StreamBuffer<unsigned> counts(cells, stream);
    const StreamBuffer<unsigned> starts(cells, stream);
    const StreamBuffer<unsigned> sums(cells / kSection + 1, stream);
    const StreamBuffer<Atom> sorted(atoms.size(), stream);
    counts.clear();
    launch_cell_list(atoms.data(), atoms.size(), grid, cutoff, bins,
                     {counts.data(), starts.data(), sums.data(), sorted.data()}, potential.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// Five operations for a pair, beside the root: a difference and two multiply-adds. What dy and dz
// cost is shared by the points of a row.
course::Work work_of_all_pairs(const Problem& problem) {
    const auto m = static_cast<double>(points(problem.grid));
    const auto n = static_cast<double>(problem.atoms);
    return {.bytes = sizeof(float) * m + sizeof(Atom) * n, .written = sizeof(float) * m, .flops = 5 * m * n};
}

// How many pairs are within the cutoff depends on the data.
course::Work work_with_cutoff(const Problem& problem) {
    course::Work work = work_of_all_pairs(problem);
    work.flops = 0;
    return work;
}

}  // namespace

std::size_t points(const Grid& grid) {
    return static_cast<std::size_t>(grid.nx) * static_cast<std::size_t>(grid.ny) *
           static_cast<std::size_t>(grid.nz);
}

std::string to_text(const Grid& grid) {
    return course::shape_text(grid.nx, grid.ny, grid.nz);
}

std::span<const Version> versions() {
    static const std::array<Version, 12> list{{
        {"scatter", "each atom adds to the points", all_pairs<launch_scatter>, work_of_all_pairs,
         why_not_without_cutoff},
        {"gather", "each point reads the atoms", all_pairs<launch_gather>, work_of_all_pairs,
         why_not_without_cutoff},
        {"coarsened", "a thread has four adjacent points", all_pairs<launch_coarsened>, work_of_all_pairs,
         why_not_without_cutoff},
        {"coalesced", "its points are 32 apart", all_pairs<launch_coalesced>, work_of_all_pairs,
         why_not_without_cutoff},
        {"all_slices", "one launch for all slices", all_pairs<launch_all_slices>, work_of_all_pairs,
         why_not_without_cutoff},
        {"binned", "each point reads the bins within the cutoff", binned, work_with_cutoff,
         why_not_with_cutoff},
        {"shared_atoms", "atoms in shared memory", all_pairs<launch_shared_atoms>, work_of_all_pairs,
         why_not_without_cutoff},
        {"one_pipe", "eight points along z, all roots by special functions",
         all_pairs<launch_mixed_pipes<1000>>, work_of_all_pairs, why_not_without_cutoff},
        {"mixed_pipes_8", "one root in eight by multiply-adds", all_pairs<launch_mixed_pipes<8>>,
         work_of_all_pairs, why_not_without_cutoff},
        {"mixed_pipes_5", "one root in five by multiply-adds", all_pairs<launch_mixed_pipes<5>>,
         work_of_all_pairs, why_not_without_cutoff},
        {"mixed_pipes_4", "one root in four by multiply-adds", all_pairs<launch_mixed_pipes<4>>,
         work_of_all_pairs, why_not_without_cutoff},
        {"cell_list", "atoms sorted by cell, those in reach collected by a warp", cell_list, work_with_cutoff,
         why_not_with_cutoff},
    }};
    return list;
}

}  // namespace day14

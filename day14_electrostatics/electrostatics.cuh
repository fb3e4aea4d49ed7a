// Day 14: the electrostatic potential map.           PMPP chapter 18 (4th edition), 21 (5th edition)
//
//   version       who computes a pair, atom and point       what limits it
//   scatter       a thread per atom adds to all points      an atomic for every pair
//   gather        a thread per point reads all atoms        issue slots
//   coarsened     a thread has four points of a row         latency: a block per SM
//   coalesced     the four are 32 points apart              latency: a launch for each slice
//   all_slices    one launch for all slices                 constant memory
//   binned        with a cutoff: only atoms of near bins    several times as many atoms as needed are read
//
// The potential at a point is the sum of charge / distance over the atoms: n atoms and m points
// make n * m pairs. The first five versions compute them all. If the potential of an atom ends at a
// cutoff distance, n * m becomes m times the atoms within it. Each kernel is followed by its
// launch. beyond/ has atoms in shared memory, square roots by other instructions, sorted atoms, and
// the energy of all pairs.
//
//   ./course run day14                                     every version, verified and timed
//   ./course run day14 --program                           program.cu: one map, from main() to the result
//   ./course inspect day14 --only coarsened                sectors of each store
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "atoms.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace day14 {

// All launches: `potential` has a float for each point of the grid, and all are 0. `atoms` is an
// array in device memory. There is at least one point and one atom.

constexpr int kScatterBlock = 128;

// Idea: one thread per atom. It adds the atom's term to each point of a slice.
// Cost removed: the loop over atoms.
// Still limits it: an atomic for every pair, because all threads add to the same points. 4,000
// atoms are only 4,000 threads.
__global__ void potential_scatter(const Atom* atoms, std::size_t n, Grid grid, int z, float* potential) {
    const std::size_t i = std::size_t{blockIdx.x} * kScatterBlock + threadIdx.x;
    if (i >= n) return;
    const Atom atom = atoms[i];
    const float dz = grid.at(z) - atom.z;
    for (int y = 0; y < grid.ny; ++y) {
        const float dy = grid.at(y) - atom.y;
        for (int x = 0; x < grid.nx; ++x) {
            const float dx = grid.at(x) - atom.x;
            const float s = kSoftening + dx * dx + dy * dy + dz * dz;
            atomicAdd(potential + grid.index(x, y, z), atom.charge * rsqrtf(s));
        }
    }
}

inline void launch_scatter(const Atom* atoms, std::size_t n, const Grid& grid, float* potential,
                           cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(n, kScatterBlock);
    for (int z = 0; z < grid.nz; ++z)
        potential_scatter<<<blocks, kScatterBlock, 0, stream>>>(atoms, n, grid, z, potential);
}

// Constant memory has 64 KB, which is 4,096 atoms. They are copied there chunk by chunk.
constexpr int kChunk = 4000;
__constant__ Atom chunk[kChunk];

// Queues a copy of the atoms from number `first` on, as many as fit, and returns how many.
inline int copy_chunk(const Atom* atoms, std::size_t n, std::size_t first, cudaStream_t stream) {
    const std::size_t count = std::min(n - first, std::size_t{kChunk});
    CUDA_CHECK(cudaMemcpyToSymbolAsync(chunk, atoms + first, count * sizeof(Atom), 0,
                                       cudaMemcpyDeviceToDevice, stream));
    return static_cast<int>(count);
}

constexpr int kBlockX = 32;  // a warp has adjacent points of a row
constexpr int kBlockY = 4;

// Idea: one thread per point. It reads all atoms and keeps its sum in a register. All lanes read
// the same atom at the same time, so constant memory broadcasts it (day 10).
// Cost removed: the atomics. A thread stores once per chunk.
// Still limits it: issue slots, 71 % busy, while warps wait for the constant cache 16 % of their
// time. A pair takes nine instructions: three differences, three multiply-adds (the first of them
// adds kSoftening), the root (without what `rsqrtf` does for subnormal numbers), the sum, and the
// load of the atom. `coarsened` has fewer, but has fewer warps, too, and the time does not change.
__global__ void potential_gather(int count, Grid grid, int z, float* potential) {
    const int x = static_cast<int>(blockIdx.x) * kBlockX + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBlockY + static_cast<int>(threadIdx.y);
    if (x >= grid.nx || y >= grid.ny) return;
    float sum = 0;
    for (int i = 0; i < count; ++i) {
        const float dx = grid.at(x) - chunk[i].x;
        const float dy = grid.at(y) - chunk[i].y;
        const float dz = grid.at(z) - chunk[i].z;
        sum += chunk[i].charge * rsqrtf(kSoftening + dx * dx + dy * dy + dz * dz);
    }
    potential[grid.index(x, y, z)] += sum;
}

inline void launch_gather(const Atom* atoms, std::size_t n, const Grid& grid, float* potential,
                          cudaStream_t stream) {
    const dim3 blocks(course::blocks_for(grid.nx, kBlockX), course::blocks_for(grid.ny, kBlockY));
    const dim3 threads(kBlockX, kBlockY);
    for (std::size_t first = 0; first < n; first += kChunk) {
        const int count = copy_chunk(atoms, n, first, stream);
        for (int z = 0; z < grid.nz; ++z)
            potential_gather<<<blocks, threads, 0, stream>>>(count, grid, z, potential);
    }
}

constexpr int kPoints = 4;                       // of a thread
constexpr int kBlockPoints = kBlockX * kPoints;  // of a row, for a warp

// Idea: thread coarsening. A thread has four adjacent points of a row, which have dy and dz in
// common.
// Cost removed: three quarters of the loads from constant memory, and of the work on dy and dz.
// Still limits it: latency. A slice of 256 x 256 points has 128 blocks of 4 warps for 132 SMs, and
// these wait for the constant cache 32 % of their time. 256^3 points and 4,000 atoms take 43.1 ms
// on an H200, 43.3 with `gather`. Its stores are not coalesced, which costs nothing here: the
// points of adjacent lanes are 16 bytes apart, so each of a thread's four stores reaches 16
// sectors, not 4, and `coalesced`, without that, takes 43.2 ms.
__global__ void potential_coarsened(int count, Grid grid, int z, float* potential) {
    const int x = static_cast<int>(blockIdx.x) * kBlockPoints + static_cast<int>(threadIdx.x) * kPoints;
    const int y = static_cast<int>(blockIdx.y) * kBlockY + static_cast<int>(threadIdx.y);
    if (y >= grid.ny) return;
    float sums[kPoints] = {};
    for (int i = 0; i < count; ++i) {
        const float dy = grid.at(y) - chunk[i].y;
        const float dz = grid.at(z) - chunk[i].z;
        const float in_common = kSoftening + dy * dy + dz * dz;
#pragma unroll
        for (int k = 0; k < kPoints; ++k) {
            const float dx = grid.at(x + k) - chunk[i].x;
            sums[k] += chunk[i].charge * rsqrtf(dx * dx + in_common);
        }
    }
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
        if (x + k < grid.nx) potential[grid.index(x + k, y, z)] += sums[k];
    }
}

inline void launch_coarsened(const Atom* atoms, std::size_t n, const Grid& grid, float* potential,
                             cudaStream_t stream) {
    const dim3 blocks(course::blocks_for(grid.nx, kBlockPoints), course::blocks_for(grid.ny, kBlockY));
    const dim3 threads(kBlockX, kBlockY);
    for (std::size_t first = 0; first < n; first += kChunk) {
        const int count = copy_chunk(atoms, n, first, stream);
        for (int z = 0; z < grid.nz; ++z)
            potential_coarsened<<<blocks, threads, 0, stream>>>(count, grid, z, potential);
    }
}

// Idea: the four points of a thread are 32 points apart, so that in each load and store the lanes
// of a warp have adjacent points.
// Cost removed: three quarters of the sectors that loads and stores request.
// Still limits it: latency, because each slice has a launch of its own: 128 blocks of 4 warps for
// 132 SMs with 256^3 points, as in `coarsened`. 64^3 points and 4,000 atoms take 10.7 ms on an
// H200, and 2.30 with one launch for all slices. A slice has only 16 blocks there, and the next one
// starts when all of them have finished.
__global__ void potential_coalesced(int count, Grid grid, int z, float* potential) {
    const int x = static_cast<int>(blockIdx.x) * kBlockPoints + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBlockY + static_cast<int>(threadIdx.y);
    if (y >= grid.ny) return;
    float sums[kPoints] = {};
    for (int i = 0; i < count; ++i) {
        const float dy = grid.at(y) - chunk[i].y;
        const float dz = grid.at(z) - chunk[i].z;
        const float in_common = kSoftening + dy * dy + dz * dz;
#pragma unroll
        for (int k = 0; k < kPoints; ++k) {
            const float dx = grid.at(x + k * kBlockX) - chunk[i].x;
            sums[k] += chunk[i].charge * rsqrtf(dx * dx + in_common);
        }
    }
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
        const int own = x + k * kBlockX;
        if (own < grid.nx) potential[grid.index(own, y, z)] += sums[k];
    }
}

inline void launch_coalesced(const Atom* atoms, std::size_t n, const Grid& grid, float* potential,
                             cudaStream_t stream) {
    const dim3 blocks(course::blocks_for(grid.nx, kBlockPoints), course::blocks_for(grid.ny, kBlockY));
    const dim3 threads(kBlockX, kBlockY);
    for (std::size_t first = 0; first < n; first += kChunk) {
        const int count = copy_chunk(atoms, n, first, stream);
        for (int z = 0; z < grid.nz; ++z)
            potential_coalesced<<<blocks, threads, 0, stream>>>(count, grid, z, potential);
    }
}

// Idea: the slice is a third coordinate of the block, so a launch computes all slices.
// Cost removed: launches that leave SMs without work.
// Still limits it: the loads from constant memory: 79 % of the time warps wait for the constant
// cache. With the atoms in shared memory instead (beyond/shared_atoms.cuh), 256^3 points and 4,000
// atoms take 20.7 ms on an H200, with this kernel 94.2 ms, and 43.2 ms with a launch per slice,
// whose inner loop has the same instructions. With 64^3 points one launch is 4.7 times as fast. By
// arithmetic the reciprocal square roots take 16 ms: an SM computes 16 of them per clock cycle.
__global__ void potential_all_slices(int count, Grid grid, float* potential) {
    const int x = static_cast<int>(blockIdx.x) * kBlockPoints + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBlockY + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z);
    if (y >= grid.ny) return;
    float sums[kPoints] = {};
    for (int i = 0; i < count; ++i) {
        const float dy = grid.at(y) - chunk[i].y;
        const float dz = grid.at(z) - chunk[i].z;
        const float in_common = kSoftening + dy * dy + dz * dz;
#pragma unroll
        for (int k = 0; k < kPoints; ++k) {
            const float dx = grid.at(x + k * kBlockX) - chunk[i].x;
            sums[k] += chunk[i].charge * rsqrtf(dx * dx + in_common);
        }
    }
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
        const int own = x + k * kBlockX;
        if (own < grid.nx) potential[grid.index(own, y, z)] += sums[k];
    }
}

inline void launch_all_slices(const Atom* atoms, std::size_t n, const Grid& grid, float* potential,
                              cudaStream_t stream) {
    const dim3 blocks(course::blocks_for(grid.nx, kBlockPoints), course::blocks_for(grid.ny, kBlockY),
                      static_cast<unsigned>(grid.nz));
    const dim3 threads(kBlockX, kBlockY);
    for (std::size_t first = 0; first < n; first += kChunk) {
        const int count = copy_chunk(atoms, n, first, stream);
        potential_all_slices<<<blocks, threads, 0, stream>>>(count, grid, potential);
    }
}

// The term of an atom whose potential ends at the cutoff, without a step: the factor is 1 at the
// atom and 0 at the cutoff, where its slope is 0, too. `s` is the softened square of the distance.
__device__ inline float term_within(float charge, float s, float inverse_cutoff2) {
    const float inside = fmaxf(0.0f, 1.0f - s * inverse_cutoff2);
    return charge * rsqrtf(s) * inside * inside;
}

constexpr int kCapacity = 16;  // atoms of a bin

// Cubes that cover the box of the points, and the cutoff around it. Further atoms are of no use.
struct Bins {
    int nx, ny, nz;
    float low;      // the corner of the first bin, along each axis
    float per_bin;  // 1 / side

    // The bin of a coordinate along an axis, as a float: it may be outside, and even too large for
    // an int.
    __device__ float bin(float coordinate) const { return floorf((coordinate - low) * per_bin); }
};

// Bins whose side is a third of the cutoff, or larger, so that there are not many more bins than
// atoms.
inline Bins bins_for(const Grid& grid, float cutoff, std::size_t n) {
    float side = cutoff / 3;
    const auto along = [&](int extent) {
        return std::floor((static_cast<float>(extent) * grid.spacing + 2 * cutoff) / side) + 1;
    };
    while (along(grid.nx) * along(grid.ny) * along(grid.nz) > 2 * static_cast<float>(n) + 64)
        side *= 1.25f;
    return {static_cast<int>(along(grid.nx)), static_cast<int>(along(grid.ny)),
            static_cast<int>(along(grid.nz)), -cutoff, 1 / side};
}

inline std::size_t total(const Bins& bins) {
    return static_cast<std::size_t>(bins.nx) * static_cast<std::size_t>(bins.ny) *
           static_cast<std::size_t>(bins.nz);
}

// The memory of the bins. An atom that finds its bin full is appended to a list.
struct BinMemory {
    unsigned* counts;          // atoms of each bin, all 0 before; may exceed kCapacity
    Atom* atoms;               // kCapacity for each bin
    unsigned* overflow_count;  // 0 before
    Atom* overflow;            // as many as there are atoms
};

// A thread per atom, which takes the next place of its bin, as in a histogram (day 12).
__global__ void fill_bins(const Atom* atoms, std::size_t n, Bins bins, BinMemory memory) {
    const std::size_t i = std::size_t{blockIdx.x} * kScatterBlock + threadIdx.x;
    if (i >= n) return;
    const Atom atom = atoms[i];
    const float x = bins.bin(atom.x);
    const float y = bins.bin(atom.y);
    const float z = bins.bin(atom.z);
    const bool inside = x >= 0 && x < static_cast<float>(bins.nx) && y >= 0 &&
                        y < static_cast<float>(bins.ny) && z >= 0 && z < static_cast<float>(bins.nz);
    if (!inside) return;
    const int bin = (static_cast<int>(z) * bins.ny + static_cast<int>(y)) * bins.nx + static_cast<int>(x);
    const unsigned place = atomicAdd(memory.counts + bin, 1);
    if (place < kCapacity) {
        memory.atoms[static_cast<std::size_t>(bin) * kCapacity + place] = atom;
    } else {
        memory.overflow[atomicAdd(memory.overflow_count, 1)] = atom;
    }
}

constexpr int kTileX = 8;  // a block has 8 x 4 x 4 points, one for each thread
constexpr int kTileY = 4;
constexpr int kTileZ = 4;

// The first and the last bin along an axis that the cutoff reaches from points `first` to `last`.
struct Reach {
    int first, last;
};
__device__ inline Reach reach(const Bins& bins, int most, const Grid& grid, int first, int last,
                              float cutoff) {
    const int low = static_cast<int>(bins.bin(grid.at(first) - cutoff));
    const int high = static_cast<int>(bins.bin(grid.at(last) + cutoff));
    return {max(low, 0), min(high, most - 1)};
}

// Idea: only atoms near enough. A block has a small cube of points, and visits the bins that the
// cutoff reaches from there. All its threads visit the same bins.
// Cost removed: all other atoms. The work per point no longer grows with the size of the box.
// Still limits it: issue slots, 94 % busy. A block visits a box of bins, but the atoms that count
// for a point are in a ball. With a cutoff of 12 points and bins of 4, the box is 3.5 to 4.6 times
// as large, depending on where the block lies. The lists of the bins are of different lengths.
__global__ void potential_binned(Bins bins, BinMemory memory, Grid grid, float cutoff, float* potential) {
    const int first_x = static_cast<int>(blockIdx.x) * kTileX;
    const int first_y = static_cast<int>(blockIdx.y) * kTileY;
    const int first_z = static_cast<int>(blockIdx.z) * kTileZ;
    const int x = first_x + static_cast<int>(threadIdx.x);
    const int y = first_y + static_cast<int>(threadIdx.y);
    const int z = first_z + static_cast<int>(threadIdx.z);
    if (x >= grid.nx || y >= grid.ny || z >= grid.nz) return;

    const Reach along_x = reach(bins, bins.nx, grid, first_x, first_x + kTileX - 1, cutoff);
    const Reach along_y = reach(bins, bins.ny, grid, first_y, first_y + kTileY - 1, cutoff);
    const Reach along_z = reach(bins, bins.nz, grid, first_z, first_z + kTileZ - 1, cutoff);
    const float inverse_cutoff2 = 1 / (cutoff * cutoff);
    float sum = 0;
    for (int bz = along_z.first; bz <= along_z.last; ++bz) {
        for (int by = along_y.first; by <= along_y.last; ++by) {
            for (int bx = along_x.first; bx <= along_x.last; ++bx) {
                const int bin = (bz * bins.ny + by) * bins.nx + bx;
                const Atom* const atoms = memory.atoms + static_cast<std::size_t>(bin) * kCapacity;
                const unsigned atoms_of_bin = min(memory.counts[bin], unsigned{kCapacity});
                for (unsigned i = 0; i < atoms_of_bin; ++i) {
                    const Atom atom = atoms[i];
                    const float dx = grid.at(x) - atom.x;
                    const float dy = grid.at(y) - atom.y;
                    const float dz = grid.at(z) - atom.z;
                    sum +=
                        term_within(atom.charge, kSoftening + dx * dx + dy * dy + dz * dz, inverse_cutoff2);
                }
            }
        }
    }
    potential[grid.index(x, y, z)] = sum;
}

// The atoms of full bins: each point reads all of them. There are few, or the capacity is too
// small.
__global__ void potential_of_overflow(BinMemory memory, Grid grid, float cutoff, float* potential) {
    const int x = static_cast<int>(blockIdx.x) * kTileX + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kTileY + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z) * kTileZ + static_cast<int>(threadIdx.z);
    const unsigned n = *memory.overflow_count;
    if (n == 0 || x >= grid.nx || y >= grid.ny || z >= grid.nz) return;
    float sum = 0;
    for (unsigned i = 0; i < n; ++i) {
        const Atom atom = memory.overflow[i];
        const float dx = grid.at(x) - atom.x;
        const float dy = grid.at(y) - atom.y;
        const float dz = grid.at(z) - atom.z;
        sum += term_within(atom.charge, kSoftening + dx * dx + dy * dy + dz * dz, 1 / (cutoff * cutoff));
    }
    potential[grid.index(x, y, z)] += sum;
}

inline void launch_binned(const Atom* atoms, std::size_t n, const Grid& grid, float cutoff, const Bins& bins,
                          const BinMemory& memory, float* potential, cudaStream_t stream) {
    const unsigned atom_blocks = course::blocks_for(n, kScatterBlock);
    fill_bins<<<atom_blocks, kScatterBlock, 0, stream>>>(atoms, n, bins, memory);

    const dim3 blocks(course::blocks_for(grid.nx, kTileX), course::blocks_for(grid.ny, kTileY),
                      course::blocks_for(grid.nz, kTileZ));
    const dim3 threads(kTileX, kTileY, kTileZ);
    potential_binned<<<blocks, threads, 0, stream>>>(bins, memory, grid, cutoff, potential);
    potential_of_overflow<<<blocks, threads, 0, stream>>>(memory, grid, cutoff, potential);
}

}  // namespace day14

// Day 14, beyond: the energy of the atoms, one number for all pairs of them. It is a reduction (day
// 15) over n^2 / 2 pairs of n atoms.
//
//   version        who computes a pair of atoms                 what limits it
//   each_twice     both: a thread per atom reads all others     few atoms: few blocks
//   each_once      one of them, by a ring of tiles              issue slots
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "atoms.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"

namespace day14 {

constexpr int kEnergyBlock = 128;  // threads of a block, and atoms of a tile

// The sum of the values of all threads of the block. All threads have it. A double has 53 bits,
// so that adding the sums of threads costs no accuracy. There are few: one for each thread.
__device__ inline double sum_of_block(double value) {
    __shared__ double of_warp[kEnergyBlock / course::kWarpSize];
    const auto add = [](double a, double b) { return a + b; };
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const unsigned warp = threadIdx.x / course::kWarpSize;
    value = course::warp_reduce(value, add);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    return course::warp_reduce(lane < kEnergyBlock / course::kWarpSize ? of_warp[lane] : 0.0, add);
}

// One block adds up the sums of all blocks.
__global__ void add_sums(const double* sums, unsigned count, double* energy) {
    double own = 0;
    for (unsigned i = threadIdx.x; i < count; i += kEnergyBlock)
        own += sums[i];
    const double total = sum_of_block(own);
    if (threadIdx.x == 0) *energy = total;
}

// 1 / distance of two atoms, softened.
__device__ inline float inverse_distance(const Atom& a, const Atom& b) {
    const float dx = a.x - b.x;
    const float dy = a.y - b.y;
    const float dz = a.z - b.z;
    return rsqrtf(kSoftening + dx * dx + dy * dy + dz * dz);
}

// Idea: gather. A thread per atom adds up the potential of all other atoms at its own place, as
// shared_atoms does at a point. Half of charge * potential is the atom's share of the energy.
// Cost removed: the map. No point but the atoms' own is computed.
// Still limits it: for few atoms, that there are few blocks: n atoms are only n threads. 15,625
// atoms are 123 blocks for the 132 SMs of an H200 and take 427 us, 4,000 atoms are 32 blocks and
// take 113 us: as long for an atom, although the pairs are 15 times as many. With 125,000 atoms the
// issue slots are 78 % busy. Each pair is computed twice, once for each of its atoms.
__global__ void energy_each_twice(const Atom* atoms, unsigned n, double* sums) {
    __shared__ Atom tile[kEnergyBlock];
    const unsigned i = blockIdx.x * kEnergyBlock + threadIdx.x;
    const Atom own = i < n ? atoms[i] : Atom{0, 0, 0, 0};
    float potential = 0;
    for (unsigned first = 0; first < n; first += kEnergyBlock) {
        const unsigned count = min(n - first, unsigned{kEnergyBlock});
        if (threadIdx.x < count) tile[threadIdx.x] = atoms[first + threadIdx.x];
        __syncthreads();  // the tile is complete
        for (unsigned k = 0; k < count; ++k) {
            // Subtracting the atom's own term behind the loop would leave a rounding error of its
            // 64 times the charge.
            const float charge = first + k == i ? 0.0f : tile[k].charge;
            potential += charge * inverse_distance(own, tile[k]);
        }
        __syncthreads();  // the tile may be overwritten
    }
    // A thread without an atom stands at (0, 0, 0), where the potential may be infinite.
    const double energy = 0.5 * static_cast<double>(own.charge) * static_cast<double>(potential);
    const double sum = sum_of_block(i < n ? energy : 0.0);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

inline unsigned blocks_each_twice(std::size_t n) {
    return course::blocks_for(n, kEnergyBlock);
}

// Both launches: `sums` has a double for each block.
inline void launch_each_twice(const Atom* atoms, std::size_t n, double* sums, double* energy,
                              cudaStream_t stream) {
    const unsigned blocks = blocks_each_twice(n);
    energy_each_twice<<<blocks, kEnergyBlock, 0, stream>>>(atoms, static_cast<unsigned>(n), sums);
    add_sums<<<1, kEnergyBlock, 0, stream>>>(sums, blocks, energy);
}

// Idea: the tiles of atoms stand in a ring. A tile meets itself and the next half of the ring, so
// each two tiles meet once, and all tiles have the same work. blockIdx.y shares out the steps along
// the ring, so that there are blocks enough.
// Cost removed: half of the pairs, and SMs without work where there are few atoms.
// Still limits it: issue slots, 79 % busy. A pair takes nine instructions: a load of the other
// atom, which all lanes read at once, three differences, three multiply-adds, the root and the sum
// (without what `rsqrtf` does for subnormal numbers). By arithmetic, 125,000 atoms take 2.1 ms of
// an H200's issue slots and 1.9 ms of its special function units; the kernel takes 4.01.
__global__ void energy_each_once(const Atom* atoms, unsigned n, unsigned tiles, double* sums) {
    __shared__ Atom tile[kEnergyBlock];
    const unsigned i = blockIdx.x * kEnergyBlock + threadIdx.x;
    const Atom own = i < n ? atoms[i] : Atom{0, 0, 0, 0};
    float potential = 0;
    for (unsigned step = blockIdx.y; step <= tiles / 2; step += gridDim.y) {
        // Opposite tiles of an even ring would meet twice.
        if (2 * step == tiles && blockIdx.x >= step) break;
        const unsigned first = (blockIdx.x + step) % tiles * kEnergyBlock;
        const unsigned count = min(n - first, unsigned{kEnergyBlock});
        if (threadIdx.x < count) tile[threadIdx.x] = atoms[first + threadIdx.x];
        __syncthreads();  // the tile is complete
        // In its own tile, an atom meets those behind it.
        for (unsigned k = step == 0 ? threadIdx.x + 1 : 0; k < count; ++k)
            potential += tile[k].charge * inverse_distance(own, tile[k]);
        __syncthreads();  // the tile may be overwritten
    }
    // A thread without an atom stands at (0, 0, 0), where the potential may be infinite.
    const double energy = static_cast<double>(own.charge) * static_cast<double>(potential);
    const double sum = sum_of_block(i < n ? energy : 0.0);
    if (threadIdx.x == 0) sums[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

// About as many blocks as an H200 holds (132 x 16). More if there are more tiles, fewer if there
// are not that many steps.
constexpr unsigned kEnoughBlocks = 2048;

inline dim3 blocks_each_once(std::size_t n) {
    const unsigned tiles = course::blocks_for(n, kEnergyBlock);
    return {tiles, std::min(tiles / 2 + 1, course::ceil_div(kEnoughBlocks, tiles))};
}

inline void launch_each_once(const Atom* atoms, std::size_t n, double* sums, double* energy,
                             cudaStream_t stream) {
    const dim3 blocks = blocks_each_once(n);
    energy_each_once<<<blocks, kEnergyBlock, 0, stream>>>(atoms, static_cast<unsigned>(n), blocks.x, sums);
    add_sums<<<1, kEnergyBlock, 0, stream>>>(sums, blocks.x * blocks.y, energy);
}

}  // namespace day14

// Day 14, beyond: atoms in shared memory.
#pragma once

#include "../electrostatics.cuh"

namespace day14 {

constexpr int kSharedAtoms = kBlockX * kBlockY;  // of a tile: one for each thread to load

// Idea: as all_slices, but a block copies a tile of atoms to shared memory, one by each thread. All
// lanes read the same atom there, which is a broadcast, too.
// Cost removed: chunks. One launch handles any number of atoms, and any number of streams can do it
// at the same time, because there is no array that all launches share.
// Still limits it: special functions, 75 % busy, and issue slots, 78 %. 256^3 points and 4,000
// atoms take 20.7 ms on an H200, of which the roots need 16.0 by arithmetic; `all_slices` takes
// 94.2 ms.
__global__ void potential_shared_atoms(const Atom* atoms, std::size_t n, Grid grid, float* potential) {
    __shared__ Atom tile[kSharedAtoms];
    const int x = static_cast<int>(blockIdx.x) * kBlockPoints + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBlockY + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z);
    const int thread = static_cast<int>(threadIdx.y) * kBlockX + static_cast<int>(threadIdx.x);
    float sums[kPoints] = {};
    for (std::size_t first = 0; first < n; first += kSharedAtoms) {
        const int count = static_cast<int>(n - first < kSharedAtoms ? n - first : kSharedAtoms);
        if (thread < count) tile[thread] = atoms[first + static_cast<std::size_t>(thread)];
        __syncthreads();  // the tile is complete
        for (int i = 0; i < count; ++i) {
            const Atom atom = tile[i];
            const float dy = grid.at(y) - atom.y;
            const float dz = grid.at(z) - atom.z;
            const float in_common = kSoftening + dy * dy + dz * dz;
#pragma unroll
            for (int k = 0; k < kPoints; ++k) {
                const float dx = grid.at(x + k * kBlockX) - atom.x;
                sums[k] += atom.charge * rsqrtf(dx * dx + in_common);
            }
        }
        __syncthreads();  // the tile may be overwritten
    }
    if (y >= grid.ny) return;
#pragma unroll
    for (int k = 0; k < kPoints; ++k) {
        const int own = x + k * kBlockX;
        if (own < grid.nx) potential[grid.index(own, y, z)] = sums[k];
    }
}

inline void launch_shared_atoms(const Atom* atoms, std::size_t n, const Grid& grid, float* potential,
                                cudaStream_t stream) {
    const dim3 blocks(course::blocks_for(grid.nx, kBlockPoints), course::blocks_for(grid.ny, kBlockY),
                      static_cast<unsigned>(grid.nz));
    const dim3 threads(kBlockX, kBlockY);
    potential_shared_atoms<<<blocks, threads, 0, stream>>>(atoms, n, grid, potential);
}

}  // namespace day14

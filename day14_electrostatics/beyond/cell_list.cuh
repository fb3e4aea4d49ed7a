// Day 14, beyond: atoms sorted by cell. A counting sort is a histogram (day 12) and a scan (day
// 16).
#pragma once

#include "../electrostatics.cuh"
#include "common/device/ptx.cuh"

namespace day14 {

constexpr unsigned kAllLanes = 0xffffffffu;

// The cells are the bins of the lesson, without a capacity. Cell c has the atoms atoms[starts[c]]
// to atoms[starts[c + 1] - 1].
struct CellMemory {
    unsigned* counts;  // one for each cell, and one more; all 0 before
    unsigned* starts;  // as many
    unsigned* sums;    // one for each section of the scan
    Atom* atoms;       // as many as there are atoms
};

// The number of an atom's cell. Atoms outside of all cells have the number total(bins), that of a
// cell behind all others, which no point visits.
__device__ inline unsigned cell_of(const Atom& atom, const Bins& bins) {
    const float x = bins.bin(atom.x);
    const float y = bins.bin(atom.y);
    const float z = bins.bin(atom.z);
    const bool inside = x >= 0 && x < static_cast<float>(bins.nx) && y >= 0 &&
                        y < static_cast<float>(bins.ny) && z >= 0 && z < static_cast<float>(bins.nz);
    if (!inside) return static_cast<unsigned>(bins.nx * bins.ny * bins.nz);
    return static_cast<unsigned>((static_cast<int>(z) * bins.ny + static_cast<int>(y)) * bins.nx +
                                 static_cast<int>(x));
}

__global__ void count_cells(const Atom* atoms, std::size_t n, Bins bins, unsigned* counts) {
    const std::size_t i = std::size_t{blockIdx.x} * kScatterBlock + threadIdx.x;
    if (i < n) atomicAdd(counts + cell_of(atoms[i], bins), 1);
}

constexpr int kSection = 1024;  // counters of a block, one for each thread

// The exclusive prefix sums of a section, and its total. Launched twice: for the counters, and with
// one block for the totals, section by section.
__global__ void scan_sections(const unsigned* in, unsigned* out, unsigned n, unsigned* totals) {
    __shared__ unsigned sums[2][kSection];
    unsigned before = 0;
    for (unsigned first = blockIdx.x * kSection; first < n; first += gridDim.x * kSection) {
        const unsigned i = first + threadIdx.x;
        const unsigned own = i < n ? in[i] : 0;
        int now = 0;
        sums[now][threadIdx.x] = own;
        for (unsigned stride = 1; stride < kSection; stride *= 2) {  // Kogge-Stone
            __syncthreads();
            const unsigned left = threadIdx.x >= stride ? sums[now][threadIdx.x - stride] : 0;
            sums[now ^ 1][threadIdx.x] = sums[now][threadIdx.x] + left;
            now ^= 1;
        }
        __syncthreads();
        if (i < n) out[i] = before + sums[now][threadIdx.x] - own;
        const unsigned total = sums[now][kSection - 1];
        if (totals != nullptr && threadIdx.x == 0) totals[first / kSection] = total;
        before += total;
        __syncthreads();  // the sums may be overwritten
    }
}

__global__ void add_sections(unsigned* starts, unsigned n, const unsigned* sums) {
    const unsigned i = blockIdx.x * kSection + threadIdx.x;
    if (i < n) starts[i] += sums[blockIdx.x];
}

// An atom takes the last free place of its cell.
__global__ void place_atoms(const Atom* atoms, std::size_t n, Bins bins, CellMemory memory) {
    const std::size_t i = std::size_t{blockIdx.x} * kScatterBlock + threadIdx.x;
    if (i >= n) return;
    const Atom atom = atoms[i];
    const unsigned cell = cell_of(atom, bins);
    const unsigned left = atomicSub(memory.counts + cell, 1);
    memory.atoms[memory.starts[cell] + left - 1] = atom;
}

constexpr int kWarps = 4;  // of a block, each on its own
constexpr int kWarpX = 8;  // a warp has 8 x 4 x 4 points, a lane those of a column
constexpr int kWarpY = 4;
constexpr int kWarpZ = 4;

// How far a coordinate is from an interval; 0 inside.
__device__ inline float distance_to(float coordinate, float low, float high) {
    return fmaxf(0.0f, fmaxf(low - coordinate, coordinate - high));
}

// Idea: atoms of adjacent cells along x are adjacent in memory, so a row of cells is one range of
// atoms. A warp loads 32 of them at once, each lane tests the distance of one of them to the box of
// the warp's points, and those within the cutoff are collected in shared memory. All lanes read
// them from there.
// Cost removed: the capacity, and most atoms that are too far away. Adding up is for atoms near the
// warp's own points, and rows out of reach are not loaded.
// Still limits it: issue slots, 87 % busy, before special functions, 67 %. By geometry, about half
// of the collected pairs are within the cutoff, if it is 12 times the spacing. It is not the number
// of instructions alone: collecting until there were more than 32 atoms took 7 % fewer of them, and
// 5.21 ms in place of 5.02 for 1,000,000 atoms and 256^3 points on an H200.
__global__ void potential_cell_list(Bins bins, CellMemory memory, Grid grid, float cutoff, float* potential) {
    __shared__ Atom near[kWarps][32];
    const int lane = static_cast<int>(threadIdx.x);
    const int warp = static_cast<int>(threadIdx.y);
    const int first_x = (static_cast<int>(blockIdx.x) * kWarps + warp) * kWarpX;
    const int first_y = static_cast<int>(blockIdx.y) * kWarpY;
    const int first_z = static_cast<int>(blockIdx.z) * kWarpZ;
    if (first_x >= grid.nx) return;  // the whole warp, and there is no barrier of the block

    const float low_x = grid.at(first_x), high_x = grid.at(first_x + kWarpX - 1);
    const float low_y = grid.at(first_y), high_y = grid.at(first_y + kWarpY - 1);
    const float low_z = grid.at(first_z), high_z = grid.at(first_z + kWarpZ - 1);
    const int x = first_x + lane % kWarpX;
    const int y = first_y + lane / kWarpX;
    const Reach along_x = reach(bins, bins.nx, grid, first_x, first_x + kWarpX - 1, cutoff);
    const Reach along_y = reach(bins, bins.ny, grid, first_y, first_y + kWarpY - 1, cutoff);
    const Reach along_z = reach(bins, bins.nz, grid, first_z, first_z + kWarpZ - 1, cutoff);
    const float cutoff2 = cutoff * cutoff;
    const float inverse_cutoff2 = 1 / cutoff2;
    const float side = 1 / bins.per_bin;
    float sums[kWarpZ] = {};
    for (int bz = along_z.first; bz <= along_z.last; ++bz) {
        const float cell_z = bins.low + static_cast<float>(bz) * side;
        const float dz_row = fmaxf(0.0f, fmaxf(cell_z - high_z, low_z - (cell_z + side)));
        for (int by = along_y.first; by <= along_y.last; ++by) {
            const float cell_y = bins.low + static_cast<float>(by) * side;
            const float dy_row = fmaxf(0.0f, fmaxf(cell_y - high_y, low_y - (cell_y + side)));
            // How far the row of cells is from the points. Rounding may leave out an atom at the
            // cutoff, where its term is 0.
            if (dy_row * dy_row + dz_row * dz_row > cutoff2) continue;
            const int row = (bz * bins.ny + by) * bins.nx;
            const unsigned begin = memory.starts[row + along_x.first];
            const unsigned end = memory.starts[row + along_x.last + 1];
            for (unsigned first = begin; first < end; first += 32) {
                const unsigned i = first + static_cast<unsigned>(lane);
                Atom atom{};
                bool is_near = false;
                if (i < end) {
                    atom = memory.atoms[i];
                    const float dx = distance_to(atom.x, low_x, high_x);
                    const float dy = distance_to(atom.y, low_y, high_y);
                    const float dz = distance_to(atom.z, low_z, high_z);
                    is_near = dx * dx + dy * dy + dz * dz < cutoff2;
                }
                const unsigned votes = __ballot_sync(kAllLanes, is_near);  // day 17
                if (is_near) near[warp][__popc(votes & ((1u << lane) - 1))] = atom;
                __syncwarp();  // the atoms are there
                const int count = __popc(votes);
                for (int a = 0; a < count; ++a) {
                    const Atom other = near[warp][a];
                    const float dx = grid.at(x) - other.x;
                    const float dy = grid.at(y) - other.y;
                    const float in_common = dx * dx + dy * dy + kSoftening;
#pragma unroll
                    for (int k = 0; k < kWarpZ; ++k) {
                        const float dz = grid.at(first_z + k) - other.z;
                        const float s = dz * dz + in_common;
                        // s is no denormal number, so the faster root will do. __saturatef keeps to
                        // [0, 1], as a modifier of the instruction before it.
                        const float inside = __saturatef(1.0f - s * inverse_cutoff2);
                        sums[k] += other.charge * (course::ptx::rsqrt_approx(s) * inside * inside);
                    }
                }
                __syncwarp();  // all lanes have read them
            }
        }
    }
    if (x >= grid.nx || y >= grid.ny) return;
#pragma unroll
    for (int k = 0; k < kWarpZ; ++k) {
        if (first_z + k < grid.nz) potential[grid.index(x, y, first_z + k)] = sums[k];
    }
}

inline void launch_cell_list(const Atom* atoms, std::size_t n, const Grid& grid, float cutoff,
                             const Bins& bins, const CellMemory& memory, float* potential,
                             cudaStream_t stream) {
    const unsigned atom_blocks = course::blocks_for(n, kScatterBlock);
    const auto cells = static_cast<unsigned>(total(bins) + 1);
    const unsigned sections = course::blocks_for(cells, kSection);
    count_cells<<<atom_blocks, kScatterBlock, 0, stream>>>(atoms, n, bins, memory.counts);
    scan_sections<<<sections, kSection, 0, stream>>>(memory.counts, memory.starts, cells, memory.sums);
    scan_sections<<<1, kSection, 0, stream>>>(memory.sums, memory.sums, sections, nullptr);
    add_sections<<<sections, kSection, 0, stream>>>(memory.starts, cells, memory.sums);
    place_atoms<<<atom_blocks, kScatterBlock, 0, stream>>>(atoms, n, bins, memory);

    const dim3 blocks(course::blocks_for(grid.nx, kWarpX * kWarps), course::blocks_for(grid.ny, kWarpY),
                      course::blocks_for(grid.nz, kWarpZ));
    const dim3 threads(32, kWarps);
    potential_cell_list<<<blocks, threads, 0, stream>>>(bins, memory, grid, cutoff, potential);
}

}  // namespace day14

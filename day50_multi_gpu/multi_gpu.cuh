// Day 50: one grid on several GPUs.          PMPP chapter 20 (4th edition), chapter 23 (5th edition)
//
//   version               what is new                              what limits it
//   one_gpu               the whole grid on one GPU                its memory and its bandwidth
//   peer_copy             a slab for each GPU, ghost planes        the copies wait for the sweep, the
//                         copied from GPU to GPU                   next sweep for the copies
//   peer_copy_overlapped  the edges of a slab first; their copies  small grids: launches, events,
//                         run beside the sweep of the middle       copies
//   nccl                  send and receive, as between nodes       as peer_copy; a kernel does the
//                                                                  copying
//   nccl_overlapped       the same beside the sweep of the middle  as peer_copy_overlapped
//   direct_stores         the sweep itself writes the neighbour's  small grids: launches and events
//                         ghost planes
//   graph                 all steps of direct_stores in one graph  a kernel's launch, two per step
//   persistent            one kernel for all steps, flags in       the way of a flag to the other GPU
//                         peer memory
//
// Between processes, with MPI: mpi.cu. The kernels are here; multi_gpu.cu has the versions, which
// are the lesson's other half: what is launched where, and what waits for what.
//
//   ./course run day50                                     every version, verified and timed
//   CUDA_ON_CPU_DEVICES=4 ./course run day50               on four devices of the stand-in
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cuda/atomic>

#include "multi_gpu.hpp"

namespace day50 {

constexpr int kCols = 32;  // cells of a block along x
constexpr int kRows = 8;   // and along y
constexpr int kDepth = 8;  // planes of a sweep's block: so many cells of a thread, along z

// The grid of a rank as kernels see it. Plane z is one of the rank's own for 0 <= z < planes; the
// planes -kRadius to -1 and planes to planes + kRadius - 1 are ghosts: copies of the neighbours'.
struct Local {
    int nx, ny;
    int planes;
    int first;  // plane 0 is plane `first` of the whole grid,
    int nz;     // which has so many

    __host__ __device__ std::size_t plane() const { return static_cast<std::size_t>(nx) * ny; }
    __host__ __device__ std::size_t index(int x, int y, int z) const {
        return (z + kRadius) * plane() + static_cast<std::size_t>(y) * nx + x;
    }
};

// The weights of the 25 points: of the cell, and of both neighbours at distance 1, 2, 3, 4 along
// each axis.
struct Weights {
    float centre;
    float at[kRadius];
};
constexpr Weights kWeights{0.4f, {0.05f, 0.025f, 0.015f, 0.01f}};  // 0.4 + 6 x 0.1 = 1

// The mean of the points around a cell. A cell near an edge of the whole grid keeps its value.
__device__ inline float new_value(const float* in, const Local& local, const Weights& weights, int x, int y,
                                  int z) {
    const std::size_t i = local.index(x, y, z);
    const int global_z = local.first + z;
    if (x < kRadius || x >= local.nx - kRadius || y < kRadius || y >= local.ny - kRadius ||
        global_z < kRadius || global_z >= local.nz - kRadius)
        return in[i];
    float sum = weights.centre * in[i];
    for (int d = 1; d <= kRadius; ++d) {
        const std::size_t row = static_cast<std::size_t>(d) * local.nx;
        const std::size_t plane = d * local.plane();
        sum = fmaf(weights.at[d - 1], in[i - d] + in[i + d], sum);
        sum = fmaf(weights.at[d - 1], in[i - row] + in[i + row], sum);
        sum = fmaf(weights.at[d - 1], in[i - plane] + in[i + plane], sum);
    }
    return sum;
}

// Idea: the planes from `begin` to `end` - 1. A thread goes through kDepth cells, plane after plane:
// what it reads for one of them is near what it reads for the next, and still in the L1 cache.
// Cost removed: none. This is what a GPU does with its part of the grid.
// Still limits it: 25 loads per cell, most of them from a cache. Day 11 has faster sweeps; here the
// question is what happens between them.
__global__ void sweep(const float* in, float* out, Local local, Weights weights, int begin, int end) {
    const int x = static_cast<int>(blockIdx.x) * kCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kRows + static_cast<int>(threadIdx.y);
    const int first = begin + static_cast<int>(blockIdx.z) * kDepth;
    if (x >= local.nx || y >= local.ny) return;
    for (int z = first; z < min(first + kDepth, end); ++z)
        out[local.index(x, y, z)] = new_value(in, local, weights, x, y, z);
}

// Where a rank's edge planes go: the ghost planes of its neighbours, in their memory. Null: there
// is no neighbour.
struct Neighbours {
    float* below;  // the ghost planes behind the slab below, for planes 0 to kRadius - 1
    float* above;  // the ghost planes before the slab above, for the last kRadius planes
};

// A plane within kRadius of an end of the slab is a ghost plane of the neighbour there. In a thin
// slab it may be one of both.
__device__ inline void store(float value, float* out, const Local& local, const Neighbours& to, int x, int y,
                             int z) {
    out[local.index(x, y, z)] = value;
    const std::size_t cell = static_cast<std::size_t>(y) * local.nx + x;
    const int from_end = z - (local.planes - kRadius);
    if (to.below != nullptr && z < kRadius) to.below[z * local.plane() + cell] = value;
    if (to.above != nullptr && from_end >= 0) to.above[from_end * local.plane() + cell] = value;
}

// Idea: peer access. A pointer into another GPU's memory can be stored to like any other: what
// another GPU needs is written there at once.
// Cost removed: reading the edge planes again, and the calls that copy them.
// Still limits it: the host still launches each step, and events still order the steps of
// neighbours.
__global__ void sweep_and_store(const float* in, float* out, Local local, Weights weights, int begin, int end,
                                Neighbours to) {
    const int x = static_cast<int>(blockIdx.x) * kCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kRows + static_cast<int>(threadIdx.y);
    const int first = begin + static_cast<int>(blockIdx.z) * kDepth;
    if (x >= local.nx || y >= local.ny) return;
    for (int z = first; z < min(first + kDepth, end); ++z)
        store(new_value(in, local, weights, x, y, z), out, local, to, x, y, z);
}

// Flags of neighbours: how many steps they have done. Null: there is no neighbour.
struct Flags {
    unsigned* mine;   // two in this GPU's memory: of the rank below, of the rank above
    unsigned* below;  // one in the memory of the rank below, which this rank sets
    unsigned* above;  // and of the rank above
};

using SystemFlag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Waits until the flag has come to `steps`. It grows and may pass it, and from 2^32 it goes on at
// 0. Acquire: what was written before the flag was set is seen by loads after this one.
__device__ inline void wait_for(unsigned& flag, unsigned steps) {
    while (static_cast<int>(SystemFlag(flag).load(cuda::memory_order_acquire) - steps) < 0) {
    }
}

// The grids of a rank. Step k reads what step k - 1 wrote; step 0 reads `in`, the last one writes
// `out`.
struct Grids {
    const float* in;
    float* out;
    float* spare;

    __host__ __device__ float* target(unsigned step, unsigned steps) const {
        return (steps - 1 - step) % 2 == 0 ? out : spare;
    }
    __host__ __device__ const float* source(unsigned step, unsigned steps) const {
        return step == 0 ? in : target(step - 1, steps);
    }
};

// Idea: one launch for all steps. The blocks of a GPU meet at a barrier of the grid; GPUs tell each
// other by flags how far they are. A flag lies in the memory of the GPU that waits for it: polling
// stays inside that GPU, and only the store crosses the link.
// Cost removed: launches and events. A step begins as soon as the neighbours' planes have arrived.
// Still limits it: the way of planes and flag to the other GPU, about a microsecond, and a barrier
// of the grid. Edges and middle are one after the other.
// Before step k a rank waits until its neighbours have done k steps. Then its ghost planes are
// there. And the neighbours no longer read the ghost planes that step k overwrites: those were read
// in step k - 1. `done` is the number of steps of earlier launches.
// A tile is `depth` planes deep. Blocks do not keep pace with each other, so what one of them has
// read may have left the L2 cache before another one needs it. A deep tile needs little from others.
__global__ void persistent(Grids grids, Local local, Weights weights, Neighbours to_out, Neighbours to_spare,
                           Flags flags, unsigned steps, unsigned done, int depth) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int tiles_x = (local.nx + kCols - 1) / kCols;
    const int tiles_y = (local.ny + kRows - 1) / kRows;
    const int tiles_z = (local.planes + depth - 1) / depth;
    const long long tiles = static_cast<long long>(tiles_x) * tiles_y * tiles_z;
    for (unsigned step = 0; step < steps; ++step) {
        if (threadIdx.x == 0 && threadIdx.y == 0) {
            if (to_out.below != nullptr) wait_for(flags.mine[0], done + step);
            if (to_out.above != nullptr) wait_for(flags.mine[1], done + step);
        }
        __syncthreads();
        const float* const in = grids.source(step, steps);
        float* const out = grids.target(step, steps);
        const Neighbours to = out == grids.out ? to_out : to_spare;
        for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int x = static_cast<int>(tile % tiles_x) * kCols + static_cast<int>(threadIdx.x);
            const int y = static_cast<int>(tile / tiles_x % tiles_y) * kRows + static_cast<int>(threadIdx.y);
            const int first = static_cast<int>(tile / tiles_x / tiles_y) * depth;
            if (x >= local.nx || y >= local.ny) continue;
            for (int z = first; z < min(first + depth, local.planes); ++z)
                store(new_value(in, local, weights, x, y, z), out, local, to, x, y, z);
        }
        __threadfence_system();  // this thread's planes, before the barrier and the flag
        grid.sync();
        if (blockIdx.x == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
            if (flags.below != nullptr)
                SystemFlag(*flags.below).store(done + step + 1, cuda::memory_order_release);
            if (flags.above != nullptr)
                SystemFlag(*flags.above).store(done + step + 1, cuda::memory_order_release);
        }
    }
}

}  // namespace day50

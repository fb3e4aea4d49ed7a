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
//   graph                 all steps of direct_stores in one graph  two kernels, one after the other,
//                                                                  per step
//   persistent            one kernel for all steps, flags in       the latency of flags between GPUs
//                         peer memory
//
// The kernels are here. multi_gpu.cu, the other half of the lesson, has the versions: what is
// launched where, and what waits for what. mpi.cu has versions between processes, with MPI.
//
//   ./course run day50                                     every version, verified and timed
//   CUDA_ON_CPU_DEVICES=4 ./course run day50               on four devices of the stand-in
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

#include "multi_gpu.hpp"

namespace day50 {

constexpr int kCols = 32;  // cells of a block along x
constexpr int kRows = 8;   // and along y
constexpr int kDepth = 8;  // and along z; a thread computes all kDepth of them

// The grid of a rank. Planes 0 to planes - 1 are the rank's own. Planes -kRadius to -1, and
// `planes` to planes + kRadius - 1, are ghost planes: copies of the neighbours' planes.
struct Local {
    int nx, ny;
    int planes;
    int first;  // of the whole grid: the plane that is plane 0 here
    int nz;     // planes of the whole grid

    __host__ __device__ std::size_t plane() const { return static_cast<std::size_t>(nx) * ny; }
    __host__ __device__ std::size_t index(int x, int y, int z) const {
        return (z + kRadius) * plane() + static_cast<std::size_t>(y) * nx + x;
    }
};

// The weights of the 25 points: of the cell itself, and of the neighbours at distance 1, 2, 3, 4
// along each axis.
struct Weights {
    float centre;
    float at[kRadius];
};
constexpr Weights kWeights{0.4f, {0.05f, 0.025f, 0.015f, 0.01f}};  // 0.4 + 6 x 0.1 = 1

// The weighted mean of the 25 points. A cell within kRadius of an edge of the whole grid keeps its
// value.
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

// Idea: a sweep over the planes from `begin` to `end` - 1. A thread computes kDepth cells along z.
// Eight of the nine cells that it reads along z serve for its next cell as well, and are still in
// the L1 cache.
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

// Where a rank's edge planes go: the ghost planes of its neighbours, in their memory. Null where
// there is no neighbour.
struct Neighbours {
    float* below;  // ghost planes of the rank below, for planes 0 to kRadius - 1
    float* above;  // ghost planes of the rank above, for the last kRadius planes
};

// The new values of one x and y in the planes from `begin` to `end` - 1. Where they are an edge,
// each is stored here and in the ghost planes of the neighbour that needs it. In a thin slab, a
// plane may be an edge on both sides.
__device__ inline void sweep_column(const float* in, float* out, const Local& local, const Weights& weights,
                                    const Neighbours& to, int x, int y, int begin, int end) {
    const int last_edge = local.planes - kRadius;  // its first plane
    const bool sends_down = to.below != nullptr && begin < kRadius;
    const bool sends_up = to.above != nullptr && end > last_edge;
    const std::size_t cell = static_cast<std::size_t>(y) * local.nx + x;
    for (int z = begin; z < end; ++z) {
        const float value = new_value(in, local, weights, x, y, z);
        out[local.index(x, y, z)] = value;
        if (sends_down && z < kRadius) to.below[z * local.plane() + cell] = value;
        if (sends_up && z >= last_edge) to.above[(z - last_edge) * local.plane() + cell] = value;
    }
}

// Blocks start about in the order of their numbers. In this order of the `count` parts of a slab,
// its last part comes second, so both edges are sent while the middle is swept.
__device__ inline int edges_first(int number, int count) {
    if (number == 0) return 0;
    return number == 1 ? count - 1 : number - 1;
}

// Idea: peer access. A kernel can store to another GPU's memory like to its own, so it stores a
// cell of an edge there at once.
// Cost removed: reading the edge planes again, the calls that copy them, and the launches of their
// own for the edges.
// Still limits it: the host launches each step, and events order the steps of neighbours.
__global__ void sweep_and_store(const float* in, float* out, Local local, Weights weights, Neighbours to) {
    const int x = static_cast<int>(blockIdx.x) * kCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kRows + static_cast<int>(threadIdx.y);
    const int first = edges_first(static_cast<int>(blockIdx.z), static_cast<int>(gridDim.z)) * kDepth;
    if (x >= local.nx || y >= local.ny) return;
    sweep_column(in, out, local, weights, to, x, y, first, min(first + kDepth, local.planes));
}

// A flag counts the steps that a rank has done. It lies in the memory of the neighbour that reads
// it.
struct Flags {
    Progress* mine;
    unsigned* below;  // in the memory of the rank below, set by this rank; null where there is none
    unsigned* above;  // the same in the memory of the rank above
};

using SystemFlag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Waits until the flag is at least `steps`. It wraps round at 2^32, so the sign of the difference
// decides. Acquire: loads after this one see what the neighbour stored before it set the flag. The
// fence is behind the loop, as an acquire drops the L1 cache, which other blocks are using.
__device__ inline void wait_for(unsigned& flag, unsigned steps) {
    while (static_cast<int>(SystemFlag(flag).load(cuda::memory_order_relaxed) - steps) < 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_system);
}

// True for one block of the grid, the last one. Then all blocks have arrived, and `arrived` is 0
// again for the next step. Acquire and release: what the other blocks have stored happens before
// what the last one does next, also for a neighbour that sees its flag.
__device__ inline bool is_last_to_arrive(unsigned& arrived) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(arrived);
    if (count.fetch_add(1, cuda::memory_order_acq_rel) + 1 < gridDim.x) return false;
    count.store(0, cuda::memory_order_relaxed);
    return true;
}

// The grids of a rank. Step 0 reads `in`. The steps write `out` and `spare` in turn, the last one
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

// Idea: one launch for all steps. In each step, the last block of a GPU to be done sets a flag here
// and in the memory of both neighbours; before the next step, all blocks wait for these three
// flags. A flag lies in the memory of the GPU that polls it, so only the store crosses the link.
// Cost removed: launches and events. A step begins as soon as the neighbours' planes have arrived.
// Still limits it: the latency of planes and flag on the link. Flags are set after the whole slab,
// not after its edges.
//
// Before step k a rank waits until its neighbours have done k steps. Then its ghost planes have
// arrived. And the neighbours no longer read the ghost planes that step k overwrites: those were
// read in step k - 1. `done` is the number of steps of earlier launches.
//
// A tile is `depth` planes deep. Blocks drift apart, so what one block has loaded may have been
// evicted from the L2 cache when another one needs it. A deep tile shares fewer planes with others.
__global__ void persistent(Grids grids, Local local, Weights weights, Neighbours to_out, Neighbours to_spare,
                           Flags flags, unsigned steps, unsigned done, int depth) {
    const bool leads = threadIdx.x == 0 && threadIdx.y == 0;
    const int tiles_x = (local.nx + kCols - 1) / kCols;
    const int tiles_y = (local.ny + kRows - 1) / kRows;
    const int tiles_z = (local.planes + depth - 1) / depth;
    const long long tiles = static_cast<long long>(tiles_x) * tiles_y * tiles_z;
    for (unsigned step = 0; step < steps; ++step) {
        if (leads) wait_for(flags.mine->own, done + step);
        if (leads && to_out.below != nullptr) wait_for(flags.mine->below, done + step);
        if (leads && to_out.above != nullptr) wait_for(flags.mine->above, done + step);
        __syncthreads();
        const float* const in = grids.source(step, steps);
        float* const out = grids.target(step, steps);
        const Neighbours to = out == grids.out ? to_out : to_spare;
        for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int x = static_cast<int>(tile % tiles_x) * kCols + static_cast<int>(threadIdx.x);
            const int y = static_cast<int>(tile / tiles_x % tiles_y) * kRows + static_cast<int>(threadIdx.y);
            const int first = edges_first(static_cast<int>(tile / tiles_x / tiles_y), tiles_z) * depth;
            if (x >= local.nx || y >= local.ny) continue;
            sweep_column(in, out, local, weights, to, x, y, first, min(first + depth, local.planes));
        }
        __syncthreads();  // what other threads of this block have stored is before its arrival
        if (leads && is_last_to_arrive(flags.mine->arrived)) {
            // One fence, which takes a microsecond, releases to all three.
            cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
            for (unsigned* const flag : {&flags.mine->own, flags.below, flags.above})
                if (flag != nullptr) SystemFlag(*flag).store(done + step + 1, cuda::memory_order_relaxed);
        }
    }
}

}  // namespace day50

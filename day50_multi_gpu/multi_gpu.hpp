// One grid on several GPUs: the host API of day 50. The kernels are in multi_gpu.cuh, the versions
// in multi_gpu.cu, the memory of the GPUs in domain.cpp.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/version.hpp"
#include "slab.cuh"

namespace day50 {

inline constexpr int kPoints = 6 * kRadius + 1;

// Cells of a grid: nz planes of ny rows of nx cells. Cells that are adjacent along x are adjacent
// in memory.
struct Extents {
    std::size_t nx = 0;
    std::size_t ny = 0;
    std::size_t nz = 0;

    std::size_t plane() const { return nx * ny; }
    std::size_t cells() const { return plane() * nz; }
};

// The planes of one rank.
struct Slab {
    std::size_t first = 0;
    std::size_t planes = 0;
};

// Cuts nz planes into a slab for each rank; they differ by at most one plane. Throws
// std::invalid_argument without a rank, and when there are several and a slab would be thinner than
// kRadius planes: ghost planes would then have to come from farther away than the next rank.
std::vector<Slab> cut(std::size_t nz, std::size_t ranks);

// The progress of the kernel `persistent`, in the memory of a rank.
struct Progress {
    unsigned arrived = 0;  // blocks of this rank that have done the step
    unsigned own = 0;      // steps that this rank has done, and those below and above; of all launches
    unsigned below = 0;
    unsigned above = 0;
};

// A rank's data on its GPU: the slab, with kRadius ghost planes before and after it, in three
// grids. `in` stays as it is, the steps write `out` and `spare` in turn.
struct Rank {
    int device = 0;
    Slab slab;
    float* in = nullptr;
    float* out = nullptr;
    float* spare = nullptr;
    Progress* flags = nullptr;
    cudaStream_t edges = nullptr;   // for the first planes and the last ones, and their exchange
    cudaStream_t middle = nullptr;  // for the planes between them
    cudaEvent_t started = nullptr;  // of rank 0: the work that comes before the first step
    cudaEvent_t edges_swept = nullptr;
    cudaEvent_t edges_done = nullptr;  // the edges are swept, and in the neighbours' memory
    cudaEvent_t middle_done = nullptr;
};

class Timeline;

// A grid cut into slabs, one for each entry of `devices`. A device may be named several times: its
// ranks share it. The constructor enables peer access between the devices of neighbours. All
// functions leave the current device as it was. Throws std::invalid_argument for a bad argument
// (the extents are at least 1 and at most 65,535 planes and rows and 2^30 columns),
// std::length_error for more than 2^64 bytes, CudaError where a call fails.
class Domain {
  public:
    Domain(const Extents& extents, std::span<const int> devices);
    ~Domain();
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    // Sets `in`, ghost planes included.
    void copy_from(std::span<const float> grid);
    // `out`, without ghost planes.
    std::vector<float> to_host() const;
    // Fills `out` and `spare` with NaN, ghost planes included.
    void spoil();

    const Extents& extents() const { return extents_; }
    std::span<Rank> ranks() { return ranks_; }
    std::span<const Rank> ranks() const { return ranks_; }
    // Do two ranks share a device?
    bool shares_devices() const;
    // Can neighbours reach each other's memory?
    bool peers() const { return peers_; }

    // The executable graph of version `graph`; null until it is made.
    cudaGraphExec_t& graph(unsigned steps);
    // The communicators of the versions with NCCL; null until they are made.
    std::shared_ptr<void> communicators;
    // For the program's timeline of overlap; null otherwise (timeline.hpp).
    Timeline* timeline = nullptr;
    // The steps of all launches of version `persistent` so far: what the flags have counted.
    unsigned steps_before = 0;

  private:
    void make(std::span<const int> devices);
    void release();

    Extents extents_;
    std::vector<Rank> ranks_;
    bool peers_ = true;
    std::vector<std::pair<unsigned, cudaGraphExec_t>> graphs_;
};

// Enqueues `steps` steps on the streams of all ranks. They start after the work that `stream`
// already has, and later work in `stream` waits for all ranks. `stream` belongs to the device of
// rank 0. Each step computes all cells from the grid before it, as the weighted mean of 25 of them;
// cells nearer than kRadius to an edge of the whole grid keep their values. `out` is the grid after
// the last step, which with no step is a copy of `in`. Every version gives the same bits, on any
// number of ranks. Throws std::invalid_argument where cannot_run() has a reason, CudaError when a
// call fails.
using Launcher = void (*)(Domain& domain, unsigned steps, cudaStream_t stream);

struct Problem {
    Extents extents;
    unsigned steps = 1;
    std::size_t ranks = 1;
    bool shares_devices = false;  // two ranks on one device
    bool peers = true;            // neighbours can reach each other's memory
};
Problem problem_of(const Domain& domain, unsigned steps);

// The versions, slow to fast.
using Version = course::Version<Launcher, Problem>;
std::span<const Version> versions();

// The speed that the GPUs could reach if the exchange took no time: the sweeps of all slabs without
// it. So the result is wrong.
void sweep_without_exchange(Domain& domain, unsigned steps, cudaStream_t stream);

// The reference: plain loops on the CPU over the whole grid, in float, in the order of the kernels
// and with their rounding.
std::vector<float> steps_on_cpu(const Extents& extents, std::span<const float> in, unsigned steps);

}  // namespace day50

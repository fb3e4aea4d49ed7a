// Day 50, beyond: one process for each GPU, and MPI between them. The book's program.
//
//   mpi_staged       ghost planes go through pinned host memory: copy, MPI_Sendrecv, copy
//   mpi_overlapped   the same, the edges first, beside the sweep of the middle
//
//   mpirun -np 3 build/cpu/bin/day50_multi_gpu_mpi --size 64x48x40x4
//
// Process 0 compares the grid with one on the CPU, bit for bit. A process that fails ends all of
// them, with a message and exit code 1 (processes.hpp).
#include "beyond/processes.hpp"

namespace {

using namespace day50;

// Pinned host memory for kRadius planes. An asynchronous copy to pageable memory would go through a
// buffer of the driver.
class PinnedPlanes {
  public:
    explicit PinnedPlanes(std::size_t floats) { CUDA_CHECK(cudaMallocHost(&data_, floats * sizeof(float))); }
    ~PinnedPlanes() { static_cast<void>(cudaFreeHost(data_)); }
    PinnedPlanes(const PinnedPlanes&) = delete;
    PinnedPlanes& operator=(const PinnedPlanes&) = delete;
    float* data() const { return data_; }

  private:
    float* data_ = nullptr;
};

struct Buffers {
    explicit Buffers(std::size_t floats)
        : to_below(floats), to_above(floats), from_below(floats), from_above(floats) {}
    PinnedPlanes to_below, to_above, from_below, from_above;
};

// Sends the edge planes that a step has written to the neighbours, and receives theirs in the ghost
// planes. All copies are in p.edges.
void exchange(const Process& p, unsigned step, unsigned steps, const Buffers& buffers) {
    float* const grid = p.grids.target(step, steps);
    const std::size_t plane = p.local.plane();
    const std::size_t bytes = p.edge_floats() * sizeof(float);
    const auto count = static_cast<int>(p.edge_floats());
    float* const first = grid + kRadius * plane;        // own planes
    float* const last = grid + p.local.planes * plane;  // the last kRadius of them
    float* const behind = last + kRadius * plane;       // ghost planes
    CUDA_CHECK(cudaMemcpyAsync(buffers.to_below.data(), first, bytes, cudaMemcpyDeviceToHost, p.edges));
    CUDA_CHECK(cudaMemcpyAsync(buffers.to_above.data(), last, bytes, cudaMemcpyDeviceToHost, p.edges));
    // MPI does not wait for streams, so it would send the old contents of the buffers.
    CUDA_CHECK(cudaStreamSynchronize(p.edges));
    // Down, then up. MPI_Sendrecv avoids a deadlock: if all processes sent first, all of them could
    // wait for a receive.
    MPI_CHECK(MPI_Sendrecv(buffers.to_below.data(), count, MPI_FLOAT, p.below(), 0, buffers.from_above.data(),
                           count, MPI_FLOAT, p.above(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI_CHECK(MPI_Sendrecv(buffers.to_above.data(), count, MPI_FLOAT, p.above(), 1, buffers.from_below.data(),
                           count, MPI_FLOAT, p.below(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (p.below() != MPI_PROC_NULL)
        CUDA_CHECK(cudaMemcpyAsync(grid, buffers.from_below.data(), bytes, cudaMemcpyHostToDevice, p.edges));
    if (p.above() != MPI_PROC_NULL)
        CUDA_CHECK(
            cudaMemcpyAsync(behind, buffers.from_above.data(), bytes, cudaMemcpyHostToDevice, p.edges));
    // MPI overwrites these buffers in the next step. The wait for this stream comes before that.
}

void mpi_staged(const Process& p, unsigned steps, const Buffers& buffers) {
    for (unsigned step = 0; step < steps; ++step) {
        sweep_planes(p, step, steps, 0, p.local.planes, p.edges);
        exchange(p, step, steps, buffers);
    }
    CUDA_CHECK(cudaStreamSynchronize(p.edges));
}

// The middle is launched before the exchange, so the GPU sweeps it while the host waits for the
// edges and calls MPI. That sweep needs the edges of the last step, for which exchange() has
// waited. The edges need the middle of the last step: an event.
void mpi_overlapped(const Process& p, unsigned steps, const Buffers& buffers) {
    const int first_end = std::min(kRadius, p.local.planes);
    const int last_begin = std::max(first_end, p.local.planes - kRadius);
    for (unsigned step = 0; step < steps; ++step) {
        if (step > 0) CUDA_CHECK(cudaStreamWaitEvent(p.edges, p.middle_done));
        sweep_planes(p, step, steps, 0, first_end, p.edges);
        sweep_planes(p, step, steps, last_begin, p.local.planes, p.edges);
        sweep_planes(p, step, steps, first_end, last_begin, p.middle);
        CUDA_CHECK(cudaEventRecord(p.middle_done, p.middle));
        exchange(p, step, steps, buffers);
    }
    CUDA_CHECK(cudaDeviceSynchronize());
}

bool run_all(const Extents& extents, unsigned steps) {
    Process process = this_process(extents);
    const int device = device_of_this_process();
    // A domain of one rank provides the memory, streams and events.
    Domain domain({extents.nx, extents.ny, static_cast<std::size_t>(process.local.planes)},
                  std::vector<int>{device});
    CUDA_CHECK(cudaSetDevice(device));
    const Rank& own = domain.ranks()[0];
    process.grids = {own.in, own.out, own.spare};
    process.edges = own.edges;
    process.middle = own.middle;
    process.middle_done = own.middle_done;
    const Buffers buffers(process.edge_floats());
    const bool staged =
        run("mpi_staged", process, own.in, steps, [&] { mpi_staged(process, steps, buffers); });
    const bool overlapped =
        run("mpi_overlapped", process, own.in, steps, [&] { mpi_overlapped(process, steps, buffers); });
    return staged && overlapped;
}

}  // namespace

int main(int argc, char** argv) {
    return run_processes("day50_multi_gpu_mpi", argc, argv, run_all);
}

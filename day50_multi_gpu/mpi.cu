// Day 50 between processes: one process for each GPU, and MPI between them. The book's program.
//
//   mpi_staged       ghost planes go through pinned host memory: copy, MPI_Sendrecv, copy
//   mpi_overlapped   the same, the edges first, beside the sweep of the middle
//
//   mpirun -np 3 build/cpu/bin/day50_multi_gpu_mpi --size 64x48x40x4
//
// Process 0 compares the grid with one on the CPU, bit for bit. A process that fails ends all of
// them, with a message and exit code 1.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/require.hpp"
#include "multi_gpu.cuh"
#include "multi_gpu.hpp"

namespace {

using namespace day50;

void check_mpi(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw std::runtime_error(std::string(call) +
                             " failed: " + std::string(text, static_cast<std::size_t>(length)));
}
#define MPI_CHECK(...) check_mpi((__VA_ARGS__), #__VA_ARGS__)

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

// The slab of this process, on its GPU. Neighbours are other processes. MPI_PROC_NULL stands for no
// neighbour: a send to it or a receive from it does nothing.
struct Process {
    int rank = 0;
    int ranks = 1;
    Local local{};
    Grids grids{};
    cudaStream_t edges = nullptr;
    cudaStream_t middle = nullptr;
    cudaEvent_t middle_done = nullptr;

    int below() const { return rank > 0 ? rank - 1 : MPI_PROC_NULL; }
    int above() const { return rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL; }
    std::size_t edge_floats() const { return kRadius * local.plane(); }
};

void sweep_planes(const Process& p, unsigned step, unsigned steps, int begin, int end, cudaStream_t stream) {
    if (begin >= end) return;
    const dim3 blocks((p.local.nx + kCols - 1) / kCols, (p.local.ny + kRows - 1) / kRows,
                      (end - begin + kDepth - 1) / kDepth);
    sweep<<<blocks, dim3(kCols, kRows), 0, stream>>>(p.grids.source(step, steps), p.grids.target(step, steps),
                                                     p.local, kWeights, begin, end);
    CUDA_CHECK_LAUNCH();
}

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
    // MPI knows nothing of streams: without this wait it would send what the buffers held before.
    CUDA_CHECK(cudaStreamSynchronize(p.edges));
    // Down, then up. MPI_Sendrecv avoids a deadlock: if all processes sent first, all could wait
    // for a receive.
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
// edges and calls MPI. The middle needs the edges of the last step, for which exchange() has
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

// The processes of a node are dealt out to its GPUs.
int device_of_this_process() {
    MPI_Comm node;
    int rank_in_node = 0;
    int devices = 0;
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MPI_CHECK(MPI_Comm_rank(node, &rank_in_node));
    MPI_CHECK(MPI_Comm_free(&node));
    CUDA_CHECK(cudaGetDeviceCount(&devices));
    return rank_in_node % devices;
}

// Runs a version and returns whether the whole grid is right, which process 0 finds out.
bool run(const char* name, void (*version)(const Process&, unsigned, const Buffers&), int rank, int ranks,
         const Extents& extents, unsigned steps) {
    const int device = device_of_this_process();
    const Slab slab = cut(extents.nz, static_cast<std::size_t>(ranks))[static_cast<std::size_t>(rank)];
    const std::vector<float> whole =
        course::make_data<float>(extents.cells(), course::DataPattern::kSignedUniform, 50);

    // A domain of one rank provides the memory, streams and events. `in` is filled here, because
    // this rank has neighbours' planes as ghost planes, of which the domain does not know.
    Domain domain({extents.nx, extents.ny, slab.planes}, std::vector<int>{device});
    CUDA_CHECK(cudaSetDevice(device));
    const Rank& own = domain.ranks()[0];
    const std::size_t plane = extents.plane();
    const std::size_t before = std::min<std::size_t>(kRadius, slab.first);
    const std::size_t end = std::min(slab.first + slab.planes + kRadius, extents.nz);
    CUDA_CHECK(cudaMemcpy(own.in + (kRadius - before) * plane, &whole[(slab.first - before) * plane],
                          (end - slab.first + before) * plane * sizeof(float), cudaMemcpyHostToDevice));
    const Process process{
        .rank = rank,
        .ranks = ranks,
        .local = {static_cast<int>(extents.nx), static_cast<int>(extents.ny), static_cast<int>(slab.planes),
                  static_cast<int>(slab.first), static_cast<int>(extents.nz)},
        .grids = {own.in, own.out, own.spare},
        .edges = own.edges,
        .middle = own.middle,
        .middle_done = own.middle_done};

    // Not timed: pinned memory takes long to allocate, and the first launch loads the code.
    const Buffers buffers(process.edge_floats());
    version(process, steps, buffers);
    domain.spoil();
    MPI_CHECK(MPI_Barrier(MPI_COMM_WORLD));
    const double begin = MPI_Wtime();
    version(process, steps, buffers);
    MPI_CHECK(MPI_Barrier(MPI_COMM_WORLD));
    const double seconds = MPI_Wtime() - begin;

    const std::vector<float> planes = domain.to_host();
    std::vector<int> counts;
    std::vector<int> places;
    for (const Slab& s : cut(extents.nz, static_cast<std::size_t>(ranks))) {
        counts.push_back(static_cast<int>(s.planes * plane));
        places.push_back(static_cast<int>(s.first * plane));
    }
    std::vector<float> got(rank == 0 ? extents.cells() : 0);
    MPI_CHECK(MPI_Gatherv(planes.data(), static_cast<int>(planes.size()), MPI_FLOAT, got.data(),
                          counts.data(), places.data(), MPI_FLOAT, 0, MPI_COMM_WORLD));
    if (rank != 0) return true;
    const std::vector<float> expected = steps_on_cpu(extents, whole, steps);
    const bool right = std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0;
    std::printf("%-16s %d processes, %.1f us per step, %s\n", name, ranks, seconds / steps * 1e6,
                right ? "ok" : "WRONG");
    return right;
}

int run_all(int rank, int ranks, int argc, char** argv) {
    std::string size = "64x48x40x4";
    CLI::App app("steps of a 25-point stencil over a grid, a slab for each process");
    app.add_option("--size", size, "NXxNYxNZxSTEPS");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return rank == 0 ? app.exit(error) : error.get_exit_code();
    }
    Extents extents;
    unsigned steps = 0;
    char rest = 0;
    const int numbers =
        std::sscanf(size.c_str(), "%zux%zux%zux%u%c", &extents.nx, &extents.ny, &extents.nz, &steps, &rest);
    course::require(numbers == 4 && steps >= 1 && extents.cells() <= std::size_t{1} << 30, "--size is ", size,
                    "; expected NXxNYxNZxSTEPS, with a step and at most 2^30 cells, for example 64x48x40x4");
    const bool staged = run("mpi_staged", mpi_staged, rank, ranks, extents, steps);
    const bool overlapped = run("mpi_overlapped", mpi_overlapped, rank, ranks, extents, steps);
    return staged && overlapped ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = 1;
    try {
        code = run_all(rank, ranks, argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "day50_multi_gpu_mpi: process %d of %d: %s\n", rank, ranks, error.what());
        std::fflush(stderr);
        // Ends all processes, also those that wait for this one.
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return code;
}

// Day 50, beyond: kernels send to the memory of other processes. It needs NVIDIA's library NVSHMEM,
// which does not exist for the CPU.
//
//   nvshmem_put      edges first; blocks put them into the neighbours' ghost planes, and add to a
//                    signal there, while the middle is swept
//
//   mpirun -np 2 build/gpu/bin/day50_multi_gpu_nvshmem --size 64x48x40x4
//
// Idea: symmetric memory. All processes allocate the same sizes in the same order, so an address of
// this process, with the number of another one, identifies the same place there. That works within
// a node and between nodes.
// Cost removed: the host, which called MPI between two sweeps, and the copies through its memory.
// Still limits it: four launches and a handful of events per step.
//
// MPI starts the processes and tells all of them the identifier that NVSHMEM needs.
#include <nvshmem.h>
#include <nvshmemx.h>

#include "beyond/processes.hpp"

namespace {

using namespace day50;

constexpr int kPutThreads = 512;
constexpr int kPutBlocks = 32;

// Each block puts a part of the edge. The signal follows the values: it is the number of parts that
// have arrived.
__global__ void put_edge(float* ghosts, const float* edge, std::size_t floats, std::uint64_t* signal,
                         int process) {
    const std::size_t longest = (floats + gridDim.x - 1) / gridDim.x;
    const std::size_t begin = min(longest * blockIdx.x, floats);
    const std::size_t end = min(begin + longest, floats);
    nvshmemx_float_put_signal_nbi_block(ghosts + begin, edge + begin, end - begin, signal, 1,
                                        NVSHMEM_SIGNAL_ADD, process);
}

// Symmetric memory: the same on all processes, so every slab has room for the thickest one.
struct Symmetric {
    explicit Symmetric(std::size_t floats) {
        for (float** const grid : {&in, &out, &spare})
            *grid = static_cast<float*>(allocate(floats * sizeof(float)));
        signals = static_cast<std::uint64_t*>(allocate(2 * sizeof(std::uint64_t)));
        CUDA_CHECK(cudaMemset(signals, 0, 2 * sizeof(std::uint64_t)));
        CUDA_CHECK(cudaDeviceSynchronize());
        nvshmem_barrier_all();  // no process adds to a signal before it is 0
    }
    ~Symmetric() {
        for (float* const grid : {in, out, spare})
            nvshmem_free(grid);
        nvshmem_free(signals);
    }
    Symmetric(const Symmetric&) = delete;
    Symmetric& operator=(const Symmetric&) = delete;

    static void* allocate(std::size_t bytes) {
        void* const memory = nvshmem_malloc(bytes);
        course::require(memory != nullptr, "nvshmem_malloc: found no ", bytes,
                        " bytes of symmetric memory; NVSHMEM_SYMMETRIC_SIZE sets how much there is");
        return memory;
    }

    float* in = nullptr;
    float* out = nullptr;
    float* spare = nullptr;
    // Parts that have arrived from the process below, and from the one above; of all runs.
    std::uint64_t* signals = nullptr;
    std::uint64_t expected = 0;
};

// The order of the steps is that of peer_copy_overlapped. Each stream waits for a neighbour's
// signal instead of its event. The host does not wait.
void nvshmem_put(const Process& p, unsigned steps, Symmetric& memory, cudaEvent_t edges_swept) {
    const int first_end = std::min(kRadius, p.local.planes);
    const int last_begin = std::max(first_end, p.local.planes - kRadius);
    const std::size_t plane = p.local.plane();
    const auto slabs = slabs_of(p);
    for (unsigned step = 0; step < steps; ++step) {
        if (step > 0) {
            if (p.below() != MPI_PROC_NULL)
                nvshmemx_signal_wait_until_on_stream(&memory.signals[0], NVSHMEM_CMP_GE, memory.expected,
                                                     p.edges);
            if (p.above() != MPI_PROC_NULL)
                nvshmemx_signal_wait_until_on_stream(&memory.signals[1], NVSHMEM_CMP_GE, memory.expected,
                                                     p.edges);
            CUDA_CHECK(cudaStreamWaitEvent(p.edges, p.middle_done));
            CUDA_CHECK(cudaStreamWaitEvent(p.middle, edges_swept));
        }
        sweep_planes(p, step, steps, 0, first_end, p.edges);
        sweep_planes(p, step, steps, last_begin, p.local.planes, p.edges);
        CUDA_CHECK(cudaEventRecord(edges_swept, p.edges));
        float* const grid = p.grids.target(step, steps);
        if (p.below() != MPI_PROC_NULL) {
            const std::size_t planes_below = slabs[static_cast<std::size_t>(p.below())].planes;
            put_edge<<<kPutBlocks, kPutThreads, 0, p.edges>>>(grid + (kRadius + planes_below) * plane,
                                                              grid + kRadius * plane, p.edge_floats(),
                                                              &memory.signals[1], p.below());
        }
        if (p.above() != MPI_PROC_NULL)
            put_edge<<<kPutBlocks, kPutThreads, 0, p.edges>>>(grid, grid + p.local.planes * plane,
                                                              p.edge_floats(), &memory.signals[0], p.above());
        CUDA_CHECK_LAUNCH();
        memory.expected += kPutBlocks;
        sweep_planes(p, step, steps, first_end, last_begin, p.middle);
        CUDA_CHECK(cudaEventRecord(p.middle_done, p.middle));
    }
    // The puts of the last step must not arrive in grids that are filled anew.
    nvshmemx_quiet_on_stream(p.edges);
    CUDA_CHECK(cudaDeviceSynchronize());
}

// Multicast stays off: not every machine allows it.
void start_nvshmem(const Process& p) {
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (p.rank == 0) course::require(nvshmemx_get_uniqueid(&id) == 0, "nvshmemx_get_uniqueid failed");
    MPI_CHECK(MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD));
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(p.rank, p.ranks, &id, &attributes);
    course::require(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0,
                    "nvshmemx_init_attr failed; NVSHMEM_DEBUG=INFO tells why");
}

bool run_all(const Extents& extents, unsigned steps) {
    Process process = this_process(extents);
    CUDA_CHECK(cudaSetDevice(device_of_this_process()));
    start_nvshmem(process);
    bool right = false;
    {
        // The first slab is the thickest.
        const std::size_t thickest = slabs_of(process).front().planes;
        Symmetric memory((thickest + 2 * kRadius) * extents.plane());
        process.grids = {memory.in, memory.out, memory.spare};
        cudaEvent_t edges_swept = nullptr;
        for (cudaStream_t* const stream : {&process.edges, &process.middle})
            CUDA_CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
        for (cudaEvent_t* const event : {&process.middle_done, &edges_swept})
            CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
        right = run("nvshmem_put", process, memory.in, steps,
                    [&] { nvshmem_put(process, steps, memory, edges_swept); });
        for (const cudaEvent_t event : {process.middle_done, edges_swept})
            CUDA_CHECK(cudaEventDestroy(event));
        for (const cudaStream_t stream : {process.edges, process.middle})
            CUDA_CHECK(cudaStreamDestroy(stream));
    }
    nvshmem_finalize();
    return right;
}

}  // namespace

int main(int argc, char** argv) {
    return run_processes("day50_multi_gpu_nvshmem", argc, argv, run_all);
}

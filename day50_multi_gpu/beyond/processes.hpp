// Code that the programs with a process for each GPU share: the slab of a process, its
// verification, and the end of all processes if one fails.
#pragma once

#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/require.hpp"
#include "multi_gpu.cuh"
#include "multi_gpu.hpp"

namespace day50 {

inline void check_mpi(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw std::runtime_error(std::string(call) +
                             " failed: " + std::string(text, static_cast<std::size_t>(length)));
}
#define MPI_CHECK(...) check_mpi((__VA_ARGS__), #__VA_ARGS__)

// The slab of this process, on its GPU. Neighbours are other processes. MPI_PROC_NULL means no
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

inline void sweep_planes(const Process& p, unsigned step, unsigned steps, int begin, int end,
                         cudaStream_t stream) {
    if (begin >= end) return;
    launch_sweep(p.grids.source(step, steps), p.grids.target(step, steps), p.local, begin, end, stream);
    CUDA_CHECK_LAUNCH();
}

// The processes of a node are dealt out to its GPUs.
inline int device_of_this_process() {
    MPI_Comm node;
    int rank_in_node = 0;
    int devices = 0;
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MPI_CHECK(MPI_Comm_rank(node, &rank_in_node));
    MPI_CHECK(MPI_Comm_free(&node));
    CUDA_CHECK(cudaGetDeviceCount(&devices));
    return rank_in_node % devices;
}

inline std::vector<Slab> slabs_of(const Process& p) {
    return cut(static_cast<std::size_t>(p.local.nz), static_cast<std::size_t>(p.ranks));
}

// The process's number and slab. Without grids, streams and events.
inline Process this_process(const Extents& extents) {
    Process p;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &p.rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &p.ranks));
    p.local.nz = static_cast<int>(extents.nz);
    const Slab slab = slabs_of(p)[static_cast<std::size_t>(p.rank)];
    p.local = {static_cast<int>(extents.nx), static_cast<int>(extents.ny), static_cast<int>(slab.planes),
               static_cast<int>(slab.first), static_cast<int>(extents.nz)};
    return p;
}

// Sets `in`, ghost planes included, of which those that exist are planes of the whole grid; and
// fills the other two grids with NaN.
inline void fill_grids(const Process& p, const std::vector<float>& whole, float* in) {
    const std::size_t plane = p.local.plane();
    const int before = std::min(kRadius, p.local.first);
    const int end = std::min(p.local.first + p.local.planes + kRadius, p.local.nz);
    CUDA_CHECK(cudaMemcpy(in + (kRadius - before) * plane, &whole[(p.local.first - before) * plane],
                          (end - p.local.first + before) * plane * sizeof(float), cudaMemcpyHostToDevice));
    for (float* const grid : {p.grids.out, p.grids.spare})
        CUDA_CHECK(cudaMemset(grid, 0xff, (p.local.planes + 2 * kRadius) * plane * sizeof(float)));
    CUDA_CHECK(cudaDeviceSynchronize());
}

// Runs a version twice, times the second run, and returns whether the whole grid is right, bit for
// bit, which process 0 finds out. The first run is not timed, because its launches load the code.
inline bool run(const char* name, const Process& p, float* in, unsigned steps,
                const std::function<void()>& version) {
    const Extents extents{static_cast<std::size_t>(p.local.nx), static_cast<std::size_t>(p.local.ny),
                          static_cast<std::size_t>(p.local.nz)};
    const std::vector<float> whole =
        course::make_data<float>(extents.cells(), course::DataPattern::kSignedUniform, 50);
    double seconds = 0;
    for (int repeat = 0; repeat < 2; ++repeat) {
        fill_grids(p, whole, in);
        MPI_CHECK(MPI_Barrier(MPI_COMM_WORLD));
        const double begin = MPI_Wtime();
        version();
        MPI_CHECK(MPI_Barrier(MPI_COMM_WORLD));
        seconds = MPI_Wtime() - begin;
    }
    const std::size_t plane = p.local.plane();
    std::vector<float> planes(static_cast<std::size_t>(p.local.planes) * plane);
    CUDA_CHECK(cudaMemcpy(planes.data(), p.grids.out + kRadius * plane, planes.size() * sizeof(float),
                          cudaMemcpyDeviceToHost));
    std::vector<int> counts;
    std::vector<int> places;
    for (const Slab& slab : slabs_of(p)) {
        counts.push_back(static_cast<int>(slab.planes * plane));
        places.push_back(static_cast<int>(slab.first * plane));
    }
    std::vector<float> got(p.rank == 0 ? extents.cells() : 0);
    MPI_CHECK(MPI_Gatherv(planes.data(), static_cast<int>(planes.size()), MPI_FLOAT, got.data(),
                          counts.data(), places.data(), MPI_FLOAT, 0, MPI_COMM_WORLD));
    if (p.rank != 0) return true;
    const std::vector<float> expected = steps_on_cpu(extents, whole, steps);
    const bool right = std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0;
    std::printf("%-16s %d processes, %.1f us per step, %s\n", name, p.ranks, seconds / steps * 1e6,
                right ? "ok" : "WRONG");
    return right;
}

// The program of a process: `run_all` returns whether all is right. A process that fails ends all
// of them, with a message and exit code 1.
inline int run_processes(const char* program, int argc, char** argv,
                         const std::function<bool(const Extents&, unsigned)>& run_all) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = 1;
    std::string size = "64x48x40x4";
    CLI::App app("steps of a 25-point stencil over a grid, a slab for each process", program);
    app.add_option("--size", size, "NXxNYxNZxSTEPS");
    try {
        app.parse(argc, argv);
        Extents extents;
        unsigned steps = 0;
        char rest = 0;
        const int numbers = std::sscanf(size.c_str(), "%zux%zux%zux%u%c", &extents.nx, &extents.ny,
                                        &extents.nz, &steps, &rest);
        course::require(numbers == 4 && steps >= 1 && extents.cells() <= std::size_t{1} << 30, "--size is ",
                        size,
                        "; expected NXxNYxNZxSTEPS, with a step and at most 2^30 cells, for example "
                        "64x48x40x4");
        code = run_all(extents, steps) ? 0 : 1;
    } catch (const CLI::ParseError& error) {
        code = rank == 0 ? app.exit(error) : error.get_exit_code();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: process %d of %d: %s\n", program, rank, ranks, error.what());
        std::fflush(stderr);
        // Ends all processes, also those that wait for this one.
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return code;
}

}  // namespace day50

// Day 50, the second half of the lesson: the versions. One host thread drives all ranks. A step has
// two loops over the ranks: in the first one streams wait for events of the last step, the second
// one launches. In a single loop, rank 1 would wait for this step of rank 0, rank 2 for that of
// rank 1, and the GPUs would work one after the other, because a wait is for the latest record of
// an event.
//
// A stream or an event belongs to the device that was current when it was created. A kernel may
// only be launched into a stream of the current device (OnDevice). Any stream may wait for any
// event.
#include <algorithm>
#include <array>
#include <string>

#include "beyond/graph.hpp"
#include "beyond/persistent.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "domain.hpp"
#include "multi_gpu.cuh"
#include "timeline.hpp"
#ifdef COURSE_HAS_NCCL
#include "communicators.hpp"
#endif

namespace day50 {
namespace {

using course::require;

Local local_of(const Domain& domain, const Rank& rank) {
    const Extents& e = domain.extents();
    return {static_cast<int>(e.nx), static_cast<int>(e.ny), static_cast<int>(rank.slab.planes),
            static_cast<int>(rank.slab.first), static_cast<int>(e.nz)};
}

Grids grids_of(const Rank& rank) {
    return {rank.in, rank.out, rank.spare};
}

// Launches the sweep of planes `begin` to `end` - 1 into a stream of the current device.
void sweep_planes(const Domain& domain, const Rank& rank, unsigned step, unsigned steps, int begin, int end,
                  cudaStream_t stream) {
    if (begin >= end) return;
    const Local local = local_of(domain, rank);
    const Grids grids = grids_of(rank);
    const Timeline::Span span(domain, rank, stream, "sweep");
    launch_sweep(grids.source(step, steps), grids.target(step, steps), local, begin, end, stream);
    CUDA_CHECK_LAUNCH();
}

// --- One GPU -------------------------------------------------------------------------------------

void one_gpu(Domain& domain, unsigned steps, cudaStream_t stream) {
    const Rank& rank = domain.ranks()[0];
    const OnDevice on(rank.device);
    for (unsigned step = 0; step < steps; ++step)
        sweep_planes(domain, rank, step, steps, 0, static_cast<int>(rank.slab.planes), stream);
}

// --- Copies from GPU to GPU ----------------------------------------------------------------------

// `stream` waits until both neighbours have sent their edges of the last step.
void wait_for_neighbours(Domain& domain, std::size_t r, cudaStream_t stream) {
    for (const Rank* neighbour : {below(domain, r), above(domain, r)})
        if (neighbour != nullptr) CUDA_CHECK(cudaStreamWaitEvent(stream, neighbour->edges_done));
}

// Copies the edge planes that a step has written to the neighbours' ghost planes. A neighbour reads
// them in the next step, and waits for this copy first.
// May they be overwritten now? Because two grids take turns, the neighbour last read these ghost
// planes one step ago, when it swept its edges. This rank has waited for the event after that
// sweep.
void copy_edges(Domain& domain, std::size_t r, unsigned step, unsigned steps) {
    const Rank& rank = domain.ranks()[r];
    const std::size_t plane = domain.extents().plane();
    const std::size_t bytes = kRadius * plane * sizeof(float);
    const float* const own = grids_of(rank).target(step, steps);
    const Timeline::Span span(domain, rank, rank.edges, "copy");
    if (const Rank* to = below(domain, r)) {
        float* const ghosts = grids_of(*to).target(step, steps) + (kRadius + to->slab.planes) * plane;
        CUDA_CHECK(
            cudaMemcpyPeerAsync(ghosts, to->device, own + kRadius * plane, rank.device, bytes, rank.edges));
    }
    if (const Rank* to = above(domain, r)) {
        float* const ghosts = grids_of(*to).target(step, steps);
        CUDA_CHECK(cudaMemcpyPeerAsync(ghosts, to->device, own + rank.slab.planes * plane, rank.device, bytes,
                                       rank.edges));
    }
}

// Idea: sweep, copy the edges, and record an event after the copies, for which the neighbours wait.
// Cost removed: the limit of one GPU's memory and bandwidth.
// Still limits it: a GPU is idle while planes are copied.
void peer_copy(Domain& domain, unsigned steps, cudaStream_t stream) {
    begin_after(domain, stream);
    for (unsigned step = 0; step < steps; ++step) {
        for (std::size_t r = 0; step > 0 && r < domain.ranks().size(); ++r)
            wait_for_neighbours(domain, r, domain.ranks()[r].edges);
        for (std::size_t r = 0; r < domain.ranks().size(); ++r) {
            const Rank& rank = domain.ranks()[r];
            const OnDevice on(rank.device);
            sweep_planes(domain, rank, step, steps, 0, static_cast<int>(rank.slab.planes), rank.edges);
            copy_edges(domain, r, step, steps);
            CUDA_CHECK(cudaEventRecord(rank.edges_done, rank.edges));
        }
    }
    end_before(domain, stream);
}

// The edges of a slab are the kRadius planes beside each neighbour. The first slab and the last one
// have one part, because planes that no neighbour needs belong to the middle, which saves a launch.
// In a thin slab some planes would be in both parts, so the second one is shorter.
struct Edges {
    int first_end;   // the first part is planes 0 to first_end - 1,
    int last_begin;  // the second part last_begin to planes - 1
    int planes;
};
Edges edges_of(const Domain& domain, const Rank& rank) {
    const int planes = static_cast<int>(rank.slab.planes);
    const bool has_above = rank.slab.first + rank.slab.planes < domain.extents().nz;
    const int first_end = rank.slab.first > 0 ? std::min(kRadius, planes) : 0;
    return {first_end, has_above ? std::max(first_end, planes - kRadius) : planes, planes};
}

// The middle reads no ghost planes, so it needs the edges of the last step swept, but not
// exchanged. The edges need the middle of the last step, and the neighbours' edges.
void wait_for_last_step(Domain& domain, std::size_t r) {
    const Rank& rank = domain.ranks()[r];
    wait_for_neighbours(domain, r, rank.edges);
    CUDA_CHECK(cudaStreamWaitEvent(rank.edges, rank.middle_done));
    CUDA_CHECK(cudaStreamWaitEvent(rank.middle, rank.edges_swept));
}

void sweep_edges(const Domain& domain, const Rank& rank, unsigned step, unsigned steps) {
    const Edges edges = edges_of(domain, rank);
    sweep_planes(domain, rank, step, steps, 0, edges.first_end, rank.edges);
    sweep_planes(domain, rank, step, steps, edges.last_begin, edges.planes, rank.edges);
    CUDA_CHECK(cudaEventRecord(rank.edges_swept, rank.edges));
}

void sweep_middle(const Domain& domain, const Rank& rank, unsigned step, unsigned steps) {
    const Edges edges = edges_of(domain, rank);
    sweep_planes(domain, rank, step, steps, edges.first_end, edges.last_begin, rank.middle);
    CUDA_CHECK(cudaEventRecord(rank.middle_done, rank.middle));
}

// Idea: the edges first. While they are copied, the middle is swept in another stream.
// Cost removed: waiting for the copies, as long as the middle takes longer than they do.
// Still limits it: three launches, two copies and a handful of events per rank and step. With small
// slabs, these take longer than the sweeps.
void peer_copy_overlapped(Domain& domain, unsigned steps, cudaStream_t stream) {
    begin_after(domain, stream);
    for (unsigned step = 0; step < steps; ++step) {
        for (std::size_t r = 0; step > 0 && r < domain.ranks().size(); ++r)
            wait_for_last_step(domain, r);
        for (std::size_t r = 0; r < domain.ranks().size(); ++r) {
            const Rank& rank = domain.ranks()[r];
            const OnDevice on(rank.device);
            sweep_edges(domain, rank, step, steps);
            copy_edges(domain, r, step, steps);
            CUDA_CHECK(cudaEventRecord(rank.edges_done, rank.edges));
            sweep_middle(domain, rank, step, steps);
        }
    }
    end_before(domain, stream);
}

// --- NCCL ----------------------------------------------------------------------------------------

#ifdef COURSE_HAS_NCCL
// Idea: each rank sends to its neighbours and receives from them, as it would between nodes. The
// calls of a group are one operation. Outside a group, the first send would wait for a receive that
// this thread has not called yet.
void exchange_by_nccl(Domain& domain, unsigned step, unsigned steps) {
    const std::size_t plane = domain.extents().plane();
    const std::size_t count = kRadius * plane;
    NCCL_CHECK(ncclGroupStart());
    for (std::size_t r = 0; r < domain.ranks().size(); ++r) {
        const Rank& rank = domain.ranks()[r];
        const ncclComm_t communicator = communicators(domain)[r];
        const int number = static_cast<int>(r);
        float* const grid = grids_of(rank).target(step, steps);
        float* const behind = grid + (kRadius + rank.slab.planes) * plane;  // ghosts
        if (below(domain, r) != nullptr) {
            NCCL_CHECK(
                ncclSend(grid + kRadius * plane, count, ncclFloat, number - 1, communicator, rank.edges));
            NCCL_CHECK(ncclRecv(grid, count, ncclFloat, number - 1, communicator, rank.edges));
        }
        if (above(domain, r) != nullptr) {
            NCCL_CHECK(ncclSend(behind - count, count, ncclFloat, number + 1, communicator, rank.edges));
            NCCL_CHECK(ncclRecv(behind, count, ncclFloat, number + 1, communicator, rank.edges));
        }
    }
    NCCL_CHECK(ncclGroupEnd());
}

// No events between ranks are needed: the work after a receive in its stream runs after the planes
// have arrived.
void nccl(Domain& domain, unsigned steps, cudaStream_t stream) {
    communicators(domain);
    begin_after(domain, stream);
    for (unsigned step = 0; step < steps; ++step) {
        for (const Rank& rank : domain.ranks()) {
            const OnDevice on(rank.device);
            sweep_planes(domain, rank, step, steps, 0, static_cast<int>(rank.slab.planes), rank.edges);
        }
        exchange_by_nccl(domain, step, steps);
    }
    end_before(domain, stream);
}

// Still limits it: NCCL copies by kernels, which take SMs from the sweep of the middle.
void nccl_overlapped(Domain& domain, unsigned steps, cudaStream_t stream) {
    communicators(domain);
    begin_after(domain, stream);
    for (unsigned step = 0; step < steps; ++step) {
        for (const Rank& rank : domain.ranks()) {
            const OnDevice on(rank.device);
            if (step > 0) {
                CUDA_CHECK(cudaStreamWaitEvent(rank.edges, rank.middle_done));
                CUDA_CHECK(cudaStreamWaitEvent(rank.middle, rank.edges_swept));
            }
            sweep_edges(domain, rank, step, steps);
        }
        exchange_by_nccl(domain, step, steps);
        for (const Rank& rank : domain.ranks()) {
            const OnDevice on(rank.device);
            sweep_middle(domain, rank, step, steps);
        }
    }
    end_before(domain, stream);
}
#else
// Never run: with_nccl() refuses both.
void nccl(Domain&, unsigned, cudaStream_t) {}
void nccl_overlapped(Domain&, unsigned, cudaStream_t) {}
#endif

// --- Stores into the neighbour's memory ----------------------------------------------------------

// The ghost planes that this rank stores to: after the slab below, and before the slab above.
Neighbours neighbours_of(Domain& domain, std::size_t r, float* Rank::*grid) {
    const Rank* const lower = below(domain, r);
    const Rank* const upper = above(domain, r);
    return {
        lower == nullptr ? nullptr : lower->*grid + (kRadius + lower->slab.planes) * domain.extents().plane(),
        upper == nullptr ? nullptr : upper->*grid};
}

// All planes in one launch, the edges among its first blocks. A rank waits for the last step of its
// neighbours as a whole: then their edges are in its ghost planes, and they no longer read the
// ghost planes that this step overwrites.
void direct_stores(Domain& domain, unsigned steps, cudaStream_t stream) {
    begin_after(domain, stream);
    for (unsigned step = 0; step < steps; ++step) {
        for (std::size_t r = 0; step > 0 && r < domain.ranks().size(); ++r)
            wait_for_neighbours(domain, r, domain.ranks()[r].edges);
        for (std::size_t r = 0; r < domain.ranks().size(); ++r) {
            const Rank& rank = domain.ranks()[r];
            const OnDevice on(rank.device);
            const Local local = local_of(domain, rank);
            const Grids grids = grids_of(rank);
            float* const out = grids.target(step, steps);
            const Neighbours to = neighbours_of(domain, r, out == rank.out ? &Rank::out : &Rank::spare);
            const Timeline::Span span(domain, rank, rank.edges, "sweep");
            launch_sweep_and_store(grids.source(step, steps), out, local, to, rank.edges);
            CUDA_CHECK_LAUNCH();
            CUDA_CHECK(cudaEventRecord(rank.edges_done, rank.edges));
        }
    }
    end_before(domain, stream);
}

// --- Beyond: all steps in one launch -------------------------------------------------------------

void graph(Domain& domain, unsigned steps, cudaStream_t stream) {
    launch_graph(domain, steps, direct_stores, stream);
}

void persistent_kernels(Domain& domain, unsigned steps, cudaStream_t stream) {
    begin_after(domain, stream);
    for (std::size_t r = 0; r < domain.ranks().size(); ++r) {
        const Rank& rank = domain.ranks()[r];
        const OnDevice on(rank.device);
        const Rank* const lower = below(domain, r);
        const Rank* const upper = above(domain, r);
        const Flags flags{rank.flags, lower == nullptr ? nullptr : &lower->flags->above,
                          upper == nullptr ? nullptr : &upper->flags->below};
        launch_persistent(grids_of(rank), local_of(domain, rank), neighbours_of(domain, r, &Rank::out),
                          neighbours_of(domain, r, &Rank::spare), flags, steps, domain.steps_before,
                          rank.edges);
    }
    domain.steps_before += steps;
    end_before(domain, stream);
}

// --- The list ------------------------------------------------------------------------------------

// The bytes and operations of the GPU with the most planes.
course::Work work(const Problem& problem) {
    const Extents& e = problem.extents;
    const auto planes = static_cast<double>((e.nz + problem.ranks - 1) / problem.ranks);
    const double cells = planes * static_cast<double>(e.plane()) * problem.steps;
    return {.bytes = 2 * sizeof(float) * cells,
            .written = sizeof(float) * cells,
            .flops = (1 + 3 * 3 * kRadius) * cells};
}

std::string one_rank(const Problem& problem) {
    return problem.ranks == 1 ? "" : "is for one rank; there are " + std::to_string(problem.ranks);
}

std::string with_peers(const Problem& problem) {
    return problem.peers ? "" : "needs peer access between the GPUs of neighbours";
}

std::string a_device_each(const Problem& problem) {
    return problem.shares_devices
               ? "needs a GPU for each rank; " + std::to_string(problem.ranks) + " ranks share GPUs"
               : "";
}

std::string with_nccl(const Problem& problem) {
#ifdef COURSE_HAS_NCCL
    return a_device_each(problem);
#else
    static_cast<void>(problem);
    return "was built without NCCL: nccl.h or libnccl was not found";
#endif
}

std::string peers_with_a_device_each(const Problem& problem) {
    const std::string reason = with_peers(problem);
    return reason.empty() ? a_device_each(problem) : reason;
}

std::string nothing(const Problem&) {
    return "";
}

// Checks the requirements of the version, and copies the grid if there is no step. Without the
// checks, ranks of `persistent` that share a GPU would deadlock.
template <Launcher kLaunch, std::string (*kCannotRun)(const Problem&) = nothing>
void launch(Domain& domain, unsigned steps, cudaStream_t stream) {
    const std::string reason = kCannotRun(problem_of(domain, steps));
    require(reason.empty(), "multi_gpu: the version ", reason);
    const OnDevice on(domain.ranks()[0].device);
    if (steps > 0) return kLaunch(domain, steps, stream);
    begin_after(domain, stream);
    const std::size_t ghosts = kRadius * domain.extents().plane();
    for (const Rank& rank : domain.ranks())
        CUDA_CHECK(cudaMemcpyAsync(rank.out + ghosts, rank.in + ghosts,
                                   rank.slab.planes * domain.extents().plane() * sizeof(float),
                                   cudaMemcpyDeviceToDevice, rank.edges));
    end_before(domain, stream);
}

}  // namespace

void sweep_without_exchange(Domain& domain, unsigned steps, cudaStream_t stream) {
    begin_after(domain, stream);
    for (unsigned step = 0; step < steps; ++step) {
        for (const Rank& rank : domain.ranks()) {
            const OnDevice on(rank.device);
            sweep_planes(domain, rank, step, steps, 0, static_cast<int>(rank.slab.planes), rank.edges);
        }
    }
    end_before(domain, stream);
}

std::span<const Version> versions() {
    static const std::array<Version, 8> list = {{
        {"one_gpu", "the whole grid on one GPU", launch<one_gpu, one_rank>, work, one_rank},
        {"peer_copy", "sweep, then copy ghost planes from GPU to GPU", launch<peer_copy>, work},
        {"peer_copy_overlapped", "the edges first; copies beside the sweep of the middle",
         launch<peer_copy_overlapped>, work},
        {"nccl", "sweep, then send and receive", launch<nccl, with_nccl>, work, with_nccl},
        {"nccl_overlapped", "the edges first; NCCL beside the sweep of the middle",
         launch<nccl_overlapped, with_nccl>, work, with_nccl},
        {"direct_stores", "the sweep writes the neighbour's ghost planes", launch<direct_stores, with_peers>,
         work, with_peers},
        {"graph", "all steps of direct_stores in one CUDA graph", launch<graph, with_peers>, work,
         with_peers},
        {"persistent", "one kernel for all steps, flags in peer memory",
         launch<persistent_kernels, peers_with_a_device_each>, work, peers_with_a_device_each},
    }};
    return list;
}

}  // namespace day50

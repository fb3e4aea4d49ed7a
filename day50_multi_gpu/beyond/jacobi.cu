// Day 50, beyond: the versions of Jacobi's method with a norm. Their events are those of
// peer_copy_overlapped in multi_gpu.cu. The norm is new: the sums of rows come from all GPUs, and
// the host decides for all of them whether to continue.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "beyond/jacobi.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "domain.hpp"
#ifdef COURSE_HAS_NCCL
#include "communicators.hpp"
#endif

namespace day50 {

using course::require;

RowSums::RowSums(const Domain& domain) : rows_(domain.extents().nz) {
    for (const Rank& rank : domain.ranks()) {
        const OnDevice on(rank.device);
        on_devices_.emplace_back(2 * rows_);
        CUDA_CHECK(cudaMemset(on_devices_.back().data(), 0, on_devices_.back().bytes()));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    CUDA_CHECK(cudaMallocHost(&on_host_, rows_ * sizeof(double)));
}

RowSums::~RowSums() {
    static_cast<void>(cudaFreeHost(on_host_));
}

namespace {

// The steps write `out` and `spare` in turn, and the first one reads `in`.
float* target(const Rank& rank, unsigned step) {
    return step % 2 == 0 ? rank.out : rank.spare;
}
const float* source(const Rank& rank, unsigned step) {
    return step == 0 ? rank.in : target(rank, step - 1);
}

// Launches `count` rows, `begin`, begin + stride and so on. Without `row_sums` no norm is computed.
void sweep_rows(const Domain& domain, const Rank& rank, unsigned step, int begin, int stride, int count,
                double* row_sums, cudaStream_t stream) {
    if (count <= 0) return;
    const Strip strip{static_cast<int>(domain.extents().nx), static_cast<int>(rank.slab.planes),
                      static_cast<int>(rank.slab.first), static_cast<int>(domain.extents().nz)};
    launch_jacobi_rows(source(rank, step), target(rank, step), strip, begin, stride, count, row_sums, stream);
    CUDA_CHECK_LAUNCH();
}

bool has_norm(unsigned step, const Stop& stop) {
    return (step + 1) % stop.every == 0 || step + 1 == stop.most_steps;
}

// In the order of the rows, so that any number of ranks gives the same bits.
double norm_of(const double* sums, std::size_t rows) {
    double sum = 0;
    for (std::size_t row = 0; row < rows; ++row)
        sum += sums[row];
    return std::sqrt(sum);
}

// The last step may have written `spare`. Later work in `stream` waits for all ranks.
void finish(Domain& domain, unsigned steps, cudaStream_t stream) {
    for (const Rank& rank : domain.ranks()) {
        if (target(rank, steps - 1) == rank.out) continue;
        const OnDevice on(rank.device);
        const std::size_t own = kRadius * domain.extents().plane();
        CUDA_CHECK(cudaMemcpyAsync(rank.out + own, rank.spare + own,
                                   rank.slab.planes * domain.extents().plane() * sizeof(float),
                                   cudaMemcpyDeviceToDevice, rank.edges));
    }
    end_before(domain, stream);
}

// --- One GPU -------------------------------------------------------------------------------------

JacobiResult one_gpu(Domain& domain, RowSums& sums, const Stop& stop, cudaStream_t stream) {
    const Rank& rank = domain.ranks()[0];
    const int rows = static_cast<int>(rank.slab.planes);
    begin_after(domain, stream);
    JacobiResult result;
    for (unsigned step = 0; step < stop.most_steps; ++step) {
        const bool with_norm = has_norm(step, stop);
        sweep_rows(domain, rank, step, 0, 1, rows, with_norm ? sums.own(0) : nullptr, rank.edges);
        if (!with_norm) continue;
        CUDA_CHECK(cudaMemcpyAsync(sums.on_host(), sums.own(0), sums.rows() * sizeof(double),
                                   cudaMemcpyDeviceToHost, rank.edges));
        CUDA_CHECK(cudaStreamSynchronize(rank.edges));
        result = {step + 1, norm_of(sums.on_host(), sums.rows())};
        if (result.norm <= stop.tolerance) break;
    }
    finish(domain, result.steps, stream);
    return result;
}

// --- Several GPUs --------------------------------------------------------------------------------

// As in peer_copy_overlapped. The edges need the middle of the last step, and the neighbours' edges
// in the ghost rows. The middle needs the edges of the last step.
void wait_for_last_step(Domain& domain, std::size_t r) {
    const Rank& rank = domain.ranks()[r];
    for (const Rank* neighbour : {below(domain, r), above(domain, r)})
        if (neighbour != nullptr) CUDA_CHECK(cudaStreamWaitEvent(rank.edges, neighbour->edges_done));
    CUDA_CHECK(cudaStreamWaitEvent(rank.edges, rank.middle_done));
    CUDA_CHECK(cudaStreamWaitEvent(rank.middle, rank.edges_swept));
}

// Copies the first row to the ghost row after the slab below, and the last row to the ghost row
// before the slab above.
void copy_edge_rows(Domain& domain, std::size_t r, unsigned step) {
    const Rank& rank = domain.ranks()[r];
    const std::size_t row = domain.extents().nx;
    const float* const first = target(rank, step) + kRadius * row;
    const float* const last = first + (rank.slab.planes - 1) * row;
    if (const Rank* to = below(domain, r))
        CUDA_CHECK(cudaMemcpyPeerAsync(target(*to, step) + (kRadius + to->slab.planes) * row, to->device,
                                       first, rank.device, row * sizeof(float), rank.edges));
    if (const Rank* to = above(domain, r))
        CUDA_CHECK(cudaMemcpyPeerAsync(target(*to, step) + (kRadius - 1) * row, to->device, last, rank.device,
                                       row * sizeof(float), rank.edges));
}

// Copies the sums of each rank's rows to their place on the host.
void collect_by_copies(Domain& domain, RowSums& sums) {
    for (std::size_t r = 0; r < domain.ranks().size(); ++r) {
        const Rank& rank = domain.ranks()[r];
        CUDA_CHECK(cudaMemcpyAsync(sums.on_host() + rank.slab.first, sums.own(r) + rank.slab.first,
                                   rank.slab.planes * sizeof(double), cudaMemcpyDeviceToHost, rank.edges));
    }
}

// Idea: an all-reduce gives every rank the sums of all rows, as processes on several nodes would
// need them. NCCL adds in an order that depends on the number of ranks. But each row's sum is 0 on
// all ranks but one, and adding 0 does not round, so the result is exact in any order.
// Still limits it: a message of all rows, where one number would do if its bits did not matter.
#ifdef COURSE_HAS_NCCL
void collect_by_nccl(Domain& domain, RowSums& sums) {
    NCCL_CHECK(ncclGroupStart());
    for (std::size_t r = 0; r < domain.ranks().size(); ++r)
        NCCL_CHECK(ncclAllReduce(sums.own(r), sums.all(r), sums.rows(), ncclDouble, ncclSum,
                                 communicators(domain)[r], domain.ranks()[r].edges));
    NCCL_CHECK(ncclGroupEnd());
    // This thread drives all ranks and decides for them. A separate process would copy its result.
    CUDA_CHECK(cudaMemcpyAsync(sums.on_host(), sums.all(0), sums.rows() * sizeof(double),
                               cudaMemcpyDeviceToHost, domain.ranks()[0].edges));
}
#else
// Never run: with_nccl() refuses it.
void collect_by_nccl(Domain&, RowSums&) {}
#endif

// Idea: the edge rows first. They are copied while the middle is swept.
// Cost removed: waiting for the copies.
// Still limits it: the host waits for each norm, and the GPUs wait for the host. With `every` above
// 1, most steps have no norm and follow each other without a gap.
template <void (*kCollect)(Domain&, RowSums&)>
JacobiResult overlapped(Domain& domain, RowSums& sums, const Stop& stop, cudaStream_t stream) {
#ifdef COURSE_HAS_NCCL
    // Before the first group, because communicators that are made inside one could be used only
    // after its end.
    if constexpr (kCollect == collect_by_nccl) communicators(domain);
#endif
    begin_after(domain, stream);
    JacobiResult result;
    for (unsigned step = 0; step < stop.most_steps; ++step) {
        const bool with_norm = has_norm(step, stop);
        for (std::size_t r = 0; step > 0 && r < domain.ranks().size(); ++r)
            wait_for_last_step(domain, r);
        for (std::size_t r = 0; r < domain.ranks().size(); ++r) {
            const Rank& rank = domain.ranks()[r];
            const OnDevice on(rank.device);
            const int rows = static_cast<int>(rank.slab.planes);
            double* const row_sums = with_norm ? sums.own(r) : nullptr;
            // The first row and the last one, in one launch.
            sweep_rows(domain, rank, step, 0, rows - 1, std::min(rows, 2), row_sums, rank.edges);
            CUDA_CHECK(cudaEventRecord(rank.edges_swept, rank.edges));
            copy_edge_rows(domain, r, step);
            CUDA_CHECK(cudaEventRecord(rank.edges_done, rank.edges));
            sweep_rows(domain, rank, step, 1, 1, rows - 2, row_sums, rank.middle);
            CUDA_CHECK(cudaEventRecord(rank.middle_done, rank.middle));
        }
        if (!with_norm) continue;
        for (const Rank& rank : domain.ranks())
            CUDA_CHECK(cudaStreamWaitEvent(rank.edges, rank.middle_done));
        kCollect(domain, sums);
        // For all ranks, because the next step with a norm overwrites the sums.
        for (const Rank& rank : domain.ranks())
            CUDA_CHECK(cudaStreamSynchronize(rank.edges));
        result = {step + 1, norm_of(sums.on_host(), sums.rows())};
        if (result.norm <= stop.tolerance) break;
    }
    finish(domain, result.steps, stream);
    return result;
}

// --- The list ------------------------------------------------------------------------------------

// Of one GPU; of several, the one with the most rows.
course::Work work(const Problem& problem) {
    const auto rows = static_cast<double>((problem.extents.nz + problem.ranks - 1) / problem.ranks);
    const double cells = rows * static_cast<double>(problem.extents.nx) * problem.steps;
    return {.bytes = 2 * sizeof(float) * cells, .written = sizeof(float) * cells, .flops = 4 * cells};
}

std::string one_rank(const Problem& problem) {
    return problem.ranks == 1 ? "" : "is for one rank; there are " + std::to_string(problem.ranks);
}

std::string nothing(const Problem&) {
    return "";
}

std::string with_nccl(const Problem& problem) {
#ifdef COURSE_HAS_NCCL
    return problem.shares_devices
               ? "needs a GPU for each rank; " + std::to_string(problem.ranks) + " ranks share GPUs"
               : "";
#else
    static_cast<void>(problem);
    return "was built without NCCL: nccl.h or libnccl was not found";
#endif
}

template <JacobiLauncher kLaunch, std::string (*kCannotRun)(const Problem&)>
JacobiResult launch(Domain& domain, RowSums& sums, const Stop& stop, cudaStream_t stream) {
    const Extents& e = domain.extents();
    const std::string reason = kCannotRun(problem_of(domain, stop.most_steps));
    require(reason.empty(), "jacobi: the version ", reason);
    require(e.ny == 1, "jacobi: extents are ", e.nx, " x ", e.ny, " x ", e.nz, "; expected a grid_2d()");
    const std::size_t ranks = domain.ranks().size();
    require(sums.rows() == e.nz && sums.ranks() == ranks, "jacobi: sums are for ", sums.rows(), " rows on ",
            sums.ranks(), " ranks; expected ", e.nz, " on ", ranks);
    require(stop.most_steps >= 1 && stop.every >= 1, "jacobi: stop has most_steps ", stop.most_steps,
            " and every ", stop.every, "; expected at least 1");
    const OnDevice on(domain.ranks()[0].device);
    return kLaunch(domain, sums, stop, stream);
}

}  // namespace

std::span<const JacobiVersion> jacobi_versions() {
    static const std::array<JacobiVersion, 3> list = {{
        {"jacobi_one_gpu", "the whole grid on one GPU", launch<one_gpu, one_rank>, work, one_rank},
        {"jacobi_overlapped", "edge rows first; sums of rows copied to the host",
         launch<overlapped<collect_by_copies>, nothing>, work},
        {"jacobi_nccl_norm", "edge rows first; sums of rows all-reduced",
         launch<overlapped<collect_by_nccl>, with_nccl>, work, with_nccl},
    }};
    return list;
}

}  // namespace day50

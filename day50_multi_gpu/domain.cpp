// Day 50: the memory, streams and events of a grid on several GPUs.
#include "domain.hpp"

#include <algorithm>
#include <vector>

#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "multi_gpu.hpp"

namespace day50 {
namespace {

using course::require;

std::size_t with_ghosts(const Extents& extents, const Slab& slab) {
    return (slab.planes + 2 * kRadius) * extents.plane();
}

// Lets kernels of device `from` reach the memory of device `to`. False if the hardware cannot:
// copies go through the host then.
bool enable_peer_access(int from, int to) {
    if (from == to) return true;
    int can = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&can, from, to));
    if (can == 0) return false;
    const OnDevice on(from);
    const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
        static_cast<void>(cudaGetLastError());
    else
        CUDA_CHECK(error);
    return true;
}

}  // namespace

std::vector<Slab> cut(std::size_t nz, std::size_t ranks) {
    require(ranks >= 1, "cut: ranks is 0; expected at least 1");
    require(ranks == 1 || nz / ranks >= kRadius, "cut: nz is ", nz, " and ranks is ", ranks,
            "; expected at least ", kRadius, " planes for each rank, which is nz >= ", kRadius * ranks);
    std::vector<Slab> slabs;
    std::size_t first = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::size_t planes = nz / ranks + (rank < nz % ranks ? 1 : 0);
        slabs.push_back({first, planes});
        first += planes;
    }
    return slabs;
}

Domain::Domain(const Extents& extents, std::span<const int> devices) : extents_(extents) {
    try {
        make(devices);
    } catch (...) {
        release();
        throw;
    }
}

Domain::~Domain() {
    release();
}

void Domain::make(std::span<const int> devices) {
    const Extents& extents = extents_;
    constexpr std::size_t kMostAlongYZ = 65535;
    require(extents.nx >= 1 && extents.nx <= std::size_t{1} << 30 && extents.ny >= 1 &&
                extents.ny <= kMostAlongYZ && extents.nz >= 1 && extents.nz <= kMostAlongYZ,
            "Domain: extents are ", extents.nx, " x ", extents.ny, " x ", extents.nz,
            "; expected 1 to 2^30 x 1 to 65535 x 1 to 65535");
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    const std::vector<Slab> slabs = cut(extents.nz, devices.size());
    for (std::size_t r = 0; r < devices.size(); ++r) {
        require(devices[r] >= 0 && devices[r] < count, "Domain: devices[", r, "] is ", devices[r],
                "; expected 0 to ", count - 1);
    }
    for (std::size_t r = 1; r < devices.size(); ++r) {
        const bool down = enable_peer_access(devices[r], devices[r - 1]);
        const bool up = enable_peer_access(devices[r - 1], devices[r]);
        peers_ = peers_ && down && up;
    }
    ranks_.resize(devices.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        rank.device = devices[r];
        rank.slab = slabs[r];
        const OnDevice on(rank.device);
        for (float** grid : {&rank.in, &rank.out, &rank.spare})
            *grid = static_cast<float*>(
                course::allocate_on_device(with_ghosts(extents, rank.slab), sizeof(float)));
        CUDA_CHECK(cudaMalloc(&rank.flags, sizeof(Progress)));
        CUDA_CHECK(cudaMemset(rank.flags, 0, sizeof(Progress)));
        // Blocks of the edges before waiting blocks of the middle, whose kernel may fill the GPU.
        int lowest = 0;
        int highest = 0;
        CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
        CUDA_CHECK(cudaStreamCreateWithPriority(&rank.edges, cudaStreamNonBlocking, highest));
        CUDA_CHECK(cudaStreamCreateWithFlags(&rank.middle, cudaStreamNonBlocking));
        for (cudaEvent_t* event : {&rank.started, &rank.edges_swept, &rank.edges_done, &rank.middle_done})
            CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
        CUDA_CHECK(cudaDeviceSynchronize());  // the flags are 0 before any stream reads them
    }
}

// What has not been made is null. A failure here has been reported by the work that failed; a
// destructor does not throw, so no OnDevice, whose constructor may.
void Domain::release() {
    int before = 0;
    static_cast<void>(cudaGetDevice(&before));
    for (const Rank& rank : ranks_) {
        static_cast<void>(cudaSetDevice(rank.device));
        static_cast<void>(cudaDeviceSynchronize());
    }
    // All work is done.
    communicators.reset();
    for (auto& [steps, graph] : graphs_)
        if (graph != nullptr) static_cast<void>(cudaGraphExecDestroy(graph));
    for (const Rank& rank : ranks_) {
        static_cast<void>(cudaSetDevice(rank.device));
        for (cudaEvent_t event : {rank.started, rank.edges_swept, rank.edges_done, rank.middle_done})
            if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
        for (cudaStream_t stream : {rank.edges, rank.middle})
            if (stream != nullptr) static_cast<void>(cudaStreamDestroy(stream));
        for (void* memory : {static_cast<void*>(rank.in), static_cast<void*>(rank.out),
                             static_cast<void*>(rank.spare), static_cast<void*>(rank.flags)})
            static_cast<void>(cudaFree(memory));
    }
    static_cast<void>(cudaSetDevice(before));
}

void Domain::copy_from(std::span<const float> grid) {
    require(grid.size() == extents_.cells(), "Domain::copy_from: grid has ", grid.size(), " cells; expected ",
            extents_.cells());
    const std::size_t plane = extents_.plane();
    for (const Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        // The ghost planes that exist: before the first slab and behind the last one there are
        // none.
        const std::size_t below = std::min<std::size_t>(kRadius, rank.slab.first);
        const std::size_t end = std::min(rank.slab.first + rank.slab.planes + kRadius, extents_.nz);
        const std::size_t first = rank.slab.first - below;
        CUDA_CHECK(cudaMemcpy(rank.in + (kRadius - below) * plane, &grid[first * plane],
                              (end - first) * plane * sizeof(float), cudaMemcpyHostToDevice));
    }
}

std::vector<float> Domain::to_host() const {
    const std::size_t plane = extents_.plane();
    std::vector<float> grid(extents_.cells());
    for (const Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaMemcpy(&grid[rank.slab.first * plane], rank.out + kRadius * plane,
                              rank.slab.planes * plane * sizeof(float), cudaMemcpyDeviceToHost));
    }
    return grid;
}

void Domain::spoil() {
    // A float of which all bits are set is NaN.
    for (const Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        for (float* grid : {rank.out, rank.spare})
            CUDA_CHECK(cudaMemset(grid, 0xff, with_ghosts(extents_, rank.slab) * sizeof(float)));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
}

bool Domain::shares_devices() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        for (std::size_t other = 0; other < r; ++other)
            if (ranks_[r].device == ranks_[other].device) return true;
    return false;
}

cudaGraphExec_t& Domain::graph(unsigned steps) {
    for (auto& [of_steps, graph] : graphs_)
        if (of_steps == steps) return graph;
    return graphs_.emplace_back(steps, nullptr).second;
}

Problem problem_of(const Domain& domain, unsigned steps) {
    return {.extents = domain.extents(),
            .steps = steps,
            .ranks = domain.ranks().size(),
            .shares_devices = domain.shares_devices(),
            .peers = domain.peers()};
}

void begin_after(Domain& domain, cudaStream_t stream) {
    CUDA_CHECK(cudaEventRecord(domain.ranks()[0].started, stream));
    for (const Rank& rank : domain.ranks())
        for (const cudaStream_t own : {rank.edges, rank.middle})
            CUDA_CHECK(cudaStreamWaitEvent(own, domain.ranks()[0].started));
}

void end_before(Domain& domain, cudaStream_t stream) {
    for (const Rank& rank : domain.ranks()) {
        CUDA_CHECK(cudaEventRecord(rank.edges_done, rank.edges));
        CUDA_CHECK(cudaEventRecord(rank.middle_done, rank.middle));
        CUDA_CHECK(cudaStreamWaitEvent(stream, rank.edges_done));
        CUDA_CHECK(cudaStreamWaitEvent(stream, rank.middle_done));
    }
}

const Rank* below(Domain& domain, std::size_t r) {
    return r == 0 ? nullptr : &domain.ranks()[r - 1];
}
const Rank* above(Domain& domain, std::size_t r) {
    return r + 1 == domain.ranks().size() ? nullptr : &domain.ranks()[r + 1];
}

}  // namespace day50

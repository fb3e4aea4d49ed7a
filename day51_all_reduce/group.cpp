// Day 51: the memory, streams and events of the ranks.
#include "group.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "all_reduce.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"

namespace day51 {
namespace {

using course::require;

bool can_access(int from, int to) {
    int can = 1;
    if (from != to) CUDA_CHECK(cudaDeviceCanAccessPeer(&can, from, to));
    return can != 0;
}

// Without peer access, copies go through the host's memory.
void enable_peer_access(int from, int to) {
    if (from == to || !can_access(from, to)) return;
    // A second group finds it enabled and does not try again: each refusal would be reported.
    static std::set<std::pair<int, int>> enabled;
    if (!enabled.emplace(from, to).second) return;
    const OnDevice on(from);
    const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
        static_cast<void>(cudaGetLastError());
    else
        CUDA_CHECK(error);
}

}  // namespace

Group::Group(std::span<const int> devices) {
    try {
        make(devices);
    } catch (...) {
        release();
        throw;
    }
}

Group::~Group() {
    communicators.reset();
    release();
}

void Group::make(std::span<const int> devices) {
    require(!devices.empty() && devices.size() <= kMostRanks, "Group: there are ", devices.size(),
            " devices; expected 1 to ", kMostRanks);
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    for (std::size_t r = 0; r < devices.size(); ++r)
        require(devices[r] >= 0 && devices[r] < count, "Group: devices[", r, "] is ", devices[r],
                "; expected 0 to ", count - 1);
    has_peer_access_ = true;
    for (const int from : devices) {
        for (const int to : devices) {
            enable_peer_access(from, to);
            has_peer_access_ = has_peer_access_ && can_access(from, to);
        }
    }
    ranks_.resize(devices.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        rank.device = devices[r];
        const OnDevice on(rank.device);
        rank.multiprocessors = course::multiprocessors();
        CUDA_CHECK(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
        for (cudaEvent_t* event : {&rank.ready, &rank.sent, &rank.added})
            CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
        CUDA_CHECK(cudaMalloc(&rank.signals, sizeof(Signals)));
        CUDA_CHECK(cudaMemset(rank.signals, 0, sizeof(Signals)));
        CUDA_CHECK(cudaDeviceSynchronize());  // the flags are 0 before any kernel looks at them
    }
}

// What has not been made is null. A failure here has been reported by the work that failed.
void Group::release() {
    int current = 0;
    static_cast<void>(cudaGetDevice(&current));
    for (const Rank& rank : ranks_) {
        static_cast<void>(cudaSetDevice(rank.device));
        static_cast<void>(cudaDeviceSynchronize());
    }
    for (const Rank& rank : ranks_) {
        static_cast<void>(cudaSetDevice(rank.device));
        for (cudaEvent_t event : {rank.ready, rank.sent, rank.added})
            if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
        if (rank.stream != nullptr) static_cast<void>(cudaStreamDestroy(rank.stream));
        static_cast<void>(cudaFree(rank.signals));
        static_cast<void>(cudaFree(rank.staging));
        static_cast<void>(cudaFree(rank.inbox));
    }
    static_cast<void>(cudaSetDevice(current));
}

bool Group::shares_devices() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        for (std::size_t other = 0; other < r; ++other)
            if (ranks_[r].device == ranks_[other].device) return true;
    return false;
}

void Group::begin_after(cudaStream_t stream) const {
    const OnDevice on(ranks_[0].device);
    CUDA_CHECK(cudaEventRecord(ranks_[0].ready, stream));
    for (const Rank& rank : ranks_)
        CUDA_CHECK(cudaStreamWaitEvent(rank.stream, ranks_[0].ready));
}

void Group::end_before(cudaStream_t stream) const {
    for (const Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaEventRecord(rank.ready, rank.stream));
    }
    const OnDevice on(ranks_[0].device);
    for (const Rank& rank : ranks_)
        CUDA_CHECK(cudaStreamWaitEvent(stream, rank.ready));
}

void Group::need_staging(std::size_t floats) {
    if (floats <= staging_floats_) return;
    for (const Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    staging_floats_ = 0;
    for (Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaFree(rank.staging));
        rank.staging = nullptr;
        CUDA_CHECK(cudaMalloc(&rank.staging, floats * sizeof(float)));
    }
    staging_floats_ = floats;
}

// No packet of old calls is in the new inboxes: their numbers are 0, which is no call's. Each kind
// has inboxes of its own: a value of one must not pass for the number of another.
void Group::need_inboxes(std::size_t blocks, std::size_t bytes) {
    if (blocks <= inbox_blocks_ && bytes <= inbox_bytes_) return;
    for (const Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaDeviceSynchronize());
    }
    blocks = std::max(blocks, std::exchange(inbox_blocks_, 0));
    bytes = std::max(bytes, std::exchange(inbox_bytes_, 0));
    const std::size_t of_all = kInboxKinds * ranks_.size() * 2 * blocks * bytes;
    for (Rank& rank : ranks_) {
        const OnDevice on(rank.device);
        CUDA_CHECK(cudaFree(rank.inbox));
        rank.inbox = nullptr;
        CUDA_CHECK(cudaMalloc(&rank.inbox, of_all));
        CUDA_CHECK(cudaMemset(rank.inbox, 0, of_all));
        CUDA_CHECK(cudaDeviceSynchronize());  // also before other ranks send to it
    }
    inbox_blocks_ = blocks;
    inbox_bytes_ = bytes;
}

Problem problem_of(const Group& group, std::size_t count, int calls) {
    return {.count = count,
            .ranks = group.size(),
            .calls = calls,
            .shares_devices = group.shares_devices(),
            .peers = group.has_peer_access()};
}

}  // namespace day51

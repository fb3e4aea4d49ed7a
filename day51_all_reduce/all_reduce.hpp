// All-reduce: each of several GPUs has an array, and gets the sum of all arrays. The host API of
// day 51. Versions that copy are in copies.cu, the kernels of the others in all_reduce.cuh and
// beyond/inboxes.cuh, each followed by its launch, the memory of ranks in group.cpp.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "parts.cuh"

namespace day51 {

// The most values that the versions with inboxes accept.
inline constexpr std::size_t kMostSent = std::size_t{1} << 20;

// The kinds of messages. Each kind has its own inboxes.
enum class Sent { kValues, kPackets };
inline constexpr std::size_t kInboxKinds = 2;

// A rank's data on its GPU besides the arrays that are added.
struct Rank {
    int device = 0;
    unsigned multiprocessors = 0;
    cudaStream_t stream = nullptr;  // all work of this rank, in order
    cudaEvent_t ready = nullptr;    // all work before it in `stream` is complete
    cudaEvent_t sent = nullptr;     // a copy to another rank is complete
    cudaEvent_t added = nullptr;    // what has been received is added, and may be overwritten
    float* staging = nullptr;       // where other ranks' values arrive; Group::need_staging
    char* inbox = nullptr;          // where values arrive in push and packets; Group::need_inboxes
    Signals* signals = nullptr;
};

// The ranks of an all-reduce, one for each entry of `devices`. A device may be named several times:
// its ranks share it. The constructor enables peer access between all of them. All functions leave
// the current device as it was. Throws std::invalid_argument for a bad argument (1 to kMostRanks
// devices), CudaError where a call fails.
class Group {
  public:
    explicit Group(std::span<const int> devices);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    const std::vector<Rank>& ranks() const { return ranks_; }
    int size() const { return static_cast<int>(ranks_.size()); }
    // Do two ranks share a device?
    bool shares_devices() const;
    // Can each device reach the memory of all others?
    bool has_peer_access() const { return has_peer_access_; }

    // The streams of all ranks wait for the earlier work of `stream`.
    void begin_after(cudaStream_t stream) const;
    // `stream`, of the device of rank 0, waits for the streams of all ranks.
    void end_before(cudaStream_t stream) const;

    // From now on `staging` of all ranks has room for `floats` values. Waits for all devices, if it
    // has to grow.
    void need_staging(std::size_t floats);

    // From now on `inbox` of all ranks has room for two calls of each kind, in each of which each
    // rank sends `bytes` to each of `blocks` blocks. Waits as need_staging() does.
    void need_inboxes(std::size_t blocks, std::size_t bytes);
    // The available room: at least what was requested.
    std::size_t inbox_blocks() const { return inbox_blocks_; }
    std::size_t inbox_bytes() const { return inbox_bytes_; }

    // Of the version with NCCL: its communicators, null until they are made.
    std::shared_ptr<void> communicators;

  private:
    void make(std::span<const int> devices);
    void release();

    std::vector<Rank> ranks_;
    bool has_peer_access_ = false;
    std::size_t staging_floats_ = 0;
    std::size_t inbox_blocks_ = 0;
    std::size_t inbox_bytes_ = 0;
};

// The arrays of all ranks, each in the memory of its rank's device, all of the same length. An
// all-reduce is in place if in[r] is out[r]; otherwise they must not overlap.
struct Arrays {
    std::vector<course::DeviceSpan<const float>> in;
    std::vector<course::DeviceSpan<float>> out;
};

// Enqueues an all-reduce in the streams of the ranks: out[r] becomes in[0] + in[1] + ... for every
// rank r, and is complete for later work in the stream of rank r. From then on, in[r] is no longer
// read. Throws std::invalid_argument for arrays that do not fit the group, and where cannot_run()
// has a reason; CudaError when a call fails.
//
// A sum is rounded after each addition, so its bits depend on the order. All versions but `ring`
// add in the order of the ranks. `ring` starts with rank p in part p (part_of), and goes
// round. All ranks get the same bits. NCCL does not promise an order.
using Launcher = void (*)(Group& group, const Arrays& arrays);

struct Problem {
    std::size_t count = 0;  // values of an array
    int ranks = 1;
    int calls = 1;                // all-reduces, one after the other
    bool shares_devices = false;  // two ranks on one device
    bool peers = true;            // each device can reach the memory of all others
};
Problem problem_of(const Group& group, std::size_t count, int calls = 1);

// Our versions, slow to fast; and NCCL's.
using Version = course::Version<Launcher, Problem>;
std::span<const Version> versions();
std::span<const Version> peers();

// The reference: floats, added on the CPU one after the other.
enum class Order { kRanks, kRing };
std::vector<float> sums_on_cpu(std::span<const std::vector<float>> in, Order order);

}  // namespace day51

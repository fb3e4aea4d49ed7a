// The shared memory through which the ranks of a communicator exchange data: ranks of one process,
// or of several.
//
// A collective is processed chunk by chunk: each rank copies its chunk to its part of the memory,
// all ranks wait at a barrier, each rank reads what it needs, and all wait again. A message from
// one rank to another goes chunk by chunk through the channel of the two.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nccl.h"

namespace cuda_on_cpu::nccl {

inline constexpr int kMostRanks = 64;
// Bytes per rank in collectives.
inline constexpr std::size_t kChunk = std::size_t{1} << 18;
// Bytes in flight between two ranks.
inline constexpr std::size_t kChannelChunk = std::size_t{1} << 16;

enum class Kind : std::uint32_t {
    none,
    broadcast,
    reduce,
    all_reduce,
    all_gather,
    reduce_scatter,
    send,
    receive
};
const char* name_of(Kind kind);
inline bool is_collective(Kind kind) {
    return kind != Kind::send && kind != Kind::receive;
}

// The parameters on which the ranks of a collective, or both ends of a channel, must agree.
struct Call {
    // Counted from 1: the communicator's collectives, or the channel's messages.
    std::uint64_t number = 0;
    Kind kind = Kind::none;
    std::uint64_t count = 0;
    ncclDataType_t type = ncclInt8;
    ncclRedOp_t op = ncclSum;
    std::int32_t root = 0;  // or the peer
};
// "ncclAllReduce of 12 ncclFloat32, ncclSum"
std::string describe(const Call& call);

struct Channel {
    std::atomic<std::uint64_t> written;  // chunks
    std::atomic<std::uint64_t> read;
    Call call;  // the message that the last chunk belongs to
};

// The state of one rank that is visible to the others.
struct Presence {
    enum State : std::uint32_t { absent, present, gone, aborted };
    std::atomic<std::uint32_t> state;
    std::atomic<std::int32_t> process;
    std::atomic<std::int32_t> device;
    // Number of barriers at which the rank has arrived.
    std::atomic<std::uint64_t> arrived;
    // The last collective that the rank has begun.
    Call call;
    std::atomic<std::uint64_t> number;  // of `call`
    // A Kind: the operation in which the rank waits.
    std::atomic<std::uint32_t> doing;
    std::atomic<std::int32_t> peer;  // of `doing`
};

struct Header {
    std::uint64_t mark;
    std::int32_t ranks;
    // 1 + the rank that has reported an error; 0: none.
    std::atomic<std::int32_t> failed;
};

class Meeting {
  public:
    // Attaches to the memory of that name, which the first rank creates. Returns null and sets
    // `why` if there is none, or if its ranks do not match.
    static std::unique_ptr<Meeting> attach(const std::string& name, int ranks, int rank, int device,
                                           std::string* why);
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    const std::string& name() const { return name_; }
    // To be called when all ranks have attached.
    void forget_name();

    Presence& presence(int rank) { return presences_[rank]; }
    Presence& own() { return presences_[rank_]; }
    Channel& channel(int from, int to) { return channels_[from * ranks_ + to]; }
    char* channel_data(int from, int to) {
        return channel_data_ + static_cast<std::size_t>(from * ranks_ + to) * kChannelChunk;
    }
    char* chunk(int rank) { return chunks_ + static_cast<std::size_t>(rank) * kChunk; }

    // Waits until all ranks have arrived. False: that can no longer happen, or has taken too long.
    bool barrier(const std::string& what) {
        arrive();
        return all_arrive(what);
    }
    void arrive();
    bool all_arrive(const std::string& what);
    // Waits until `done` returns true. `awaited` returns the rank that it waits for; it is used
    // after a timeout.
    bool wait(const std::string& what, const std::function<bool()>& done,
              const std::function<int()>& awaited);

    // Reports why the ranks cannot continue. Only the first report counts.
    void fail(const std::string& why);
    bool has_failed() const { return header_->failed != 0; }
    void abort_by_host() { aborted_ = true; }
    bool is_aborted() const { return aborted_; }
    const std::string& last_error() const { return last_error_; }

  private:
    Meeting(std::string name, char* memory, std::size_t bytes, int ranks, int rank);
    std::string why_not(int awaited);

    std::string name_;
    char* memory_;
    std::size_t bytes_;
    int ranks_;
    int rank_;
    std::uint64_t barriers_ = 0;
    Header* header_;
    Presence* presences_;
    Channel* channels_;
    char* channel_data_;
    char* chunks_;
    std::atomic<bool> aborted_{false};
    std::string last_error_;
};

// While an object of this class exists, this OS thread runs work of a communicator, for which no
// other work waits.
class CommunicatorWork {
  public:
    CommunicatorWork();
    ~CommunicatorWork();
    CommunicatorWork(const CommunicatorWork&) = delete;
    CommunicatorWork& operator=(const CommunicatorWork&) = delete;
};

}  // namespace cuda_on_cpu::nccl

// The shared memory in which the ranks of a communicator meet: ranks of one process, or of several.
//
// A collective goes chunk by chunk: each rank puts its chunk into its part of the memory, all meet
// at a barrier, each takes what it needs, all meet again. From one rank to another a chunk goes
// through the channel of the two.
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
inline constexpr std::size_t kChunk = std::size_t{1} << 18;         // bytes of a rank, in collectives
inline constexpr std::size_t kChannelChunk = std::size_t{1} << 16;  // bytes on their way between two ranks

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

// What the ranks of a collective must agree on, or both ends of a channel.
struct Call {
    std::uint64_t number = 0;  // from 1: the communicator's calls of collectives, the channel's messages
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
    Call call;  // of the message that the last chunk belongs to
};

// Of one rank, that others see.
struct Presence {
    enum State : std::uint32_t { absent, present, gone, aborted };
    std::atomic<std::uint32_t> state;
    std::atomic<std::int32_t> process;
    std::atomic<std::int32_t> device;
    std::atomic<std::uint64_t> arrived;  // barriers
    Call call;                           // the last collective that it has begun
    std::atomic<std::uint64_t> number;   // of `call`
    std::atomic<std::uint32_t> doing;    // a Kind: what it waits in
    std::atomic<std::int32_t> peer;      // of `doing`
};

struct Header {
    std::uint64_t mark;
    std::int32_t ranks;
    std::atomic<std::int32_t> failed;  // 1 + the rank that has said why; 0: none
};

class Meeting {
  public:
    // The memory of that name, which the first rank makes. Null, and `why`: there is none, or its
    // ranks are others.
    static std::unique_ptr<Meeting> attach(const std::string& name, int ranks, int rank, int device,
                                           std::string* why);
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    const std::string& name() const { return name_; }
    void forget_name();  // all ranks are there

    Presence& presence(int rank) { return presences_[rank]; }
    Presence& own() { return presences_[rank_]; }
    Channel& channel(int from, int to) { return channels_[from * ranks_ + to]; }
    char* channel_data(int from, int to) {
        return channel_data_ + static_cast<std::size_t>(from * ranks_ + to) * kChannelChunk;
    }
    char* chunk(int rank) { return chunks_ + static_cast<std::size_t>(rank) * kChunk; }

    // All ranks are here. False: that can no longer happen, or has taken too long.
    bool barrier(const std::string& what) {
        arrive();
        return all_arrive(what);
    }
    void arrive();
    bool all_arrive(const std::string& what);
    // Waits until `done` is true. `awaited`: the rank that it waits for, after it has not come.
    bool wait(const std::string& what, const std::function<bool()>& done,
              const std::function<int()>& awaited);

    // Says why the ranks cannot go on: once, by the first that knows.
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

// While it lives, this OS thread runs work of a communicator, and nothing that others wait for.
class CommunicatorWork {
  public:
    CommunicatorWork();
    ~CommunicatorWork();
    CommunicatorWork(const CommunicatorWork&) = delete;
    CommunicatorWork& operator=(const CommunicatorWork&) = delete;
};

}  // namespace cuda_on_cpu::nccl

#include "meeting.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "elements.hpp"
#include "environment.hpp"
#include "work_queue.hpp"

namespace cuda_on_cpu::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMark = 0x6c63636e75706331;
// Values written by two ranks do not share a cache line.
constexpr std::size_t kLine = 128;

std::atomic<unsigned> communicator_work{0};  // of this process

std::size_t round_up(std::size_t bytes) {
    return (bytes + kLine - 1) / kLine * kLine;
}

struct Layout {
    explicit Layout(int ranks) {
        const auto n = static_cast<std::size_t>(ranks);
        presences = round_up(sizeof(Header));
        channels = presences + round_up(n * sizeof(Presence));
        channel_data = channels + round_up(n * n * sizeof(Channel));
        chunks = channel_data + n * n * kChannelChunk;
        bytes = chunks + n * kChunk;
    }
    std::size_t presences, channels, channel_data, chunks, bytes;
};

std::string text(const char* format, auto... arguments) {
    char buffer[600];
    std::snprintf(buffer, sizeof buffer, format, arguments...);
    return buffer;
}

// A process that has ended counts as gone, even if its parent has not waited for it yet.
bool is_alive(int process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    if (!std::getline(status, line)) return kill(process, 0) == 0 || errno != ESRCH;
    const std::size_t name_end = line.rfind(") ");
    return name_end == std::string::npos || line[name_end + 2] != 'Z';
}

}  // namespace

const char* name_of(Kind kind) {
    static constexpr const char* kNames[] = {"no call",       "ncclBroadcast", "ncclReduce",
                                             "ncclAllReduce", "ncclAllGather", "ncclReduceScatter",
                                             "ncclSend",      "ncclRecv"};
    return kNames[static_cast<std::uint32_t>(kind)];
}

std::string describe(const Call& call) {
    std::string result = text("%s of %llu %s", name_of(call.kind),
                              static_cast<unsigned long long>(call.count), name_of(call.type));
    const bool reduces =
        call.kind == Kind::reduce || call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter;
    if (reduces) result += std::string(", ") + name_of(call.op);
    if (call.kind == Kind::reduce || call.kind == Kind::broadcast) result += text(", root %d", call.root);
    return result;
}

std::unique_ptr<Meeting> Meeting::attach(const std::string& name, int ranks, int rank, int device,
                                         std::string* why) {
    const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        *why = text("no shared memory: %s", std::strerror(errno));
        return nullptr;
    }
    const Layout layout(ranks);
    flock(file, LOCK_EX);
    struct stat status {};
    const bool is_known = fstat(file, &status) == 0;
    const bool is_new = is_known && status.st_size == 0;
    std::size_t bytes = is_new ? layout.bytes : static_cast<std::size_t>(status.st_size);
    void* memory = MAP_FAILED;
    if (is_known && (!is_new || ftruncate(file, static_cast<off_t>(bytes)) == 0))
        memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        *why = text("no shared memory: %s", std::strerror(errno));
        close(file);
        return nullptr;
    }
    auto& header = *static_cast<Header*>(memory);
    if (is_new) {
        header.mark = kMark;
        header.ranks = ranks;
    }
    if (header.mark != kMark || header.ranks != ranks) {
        *why = text("rank %d is one of %d ranks, another rank of the same id one of %d", rank, ranks,
                    header.ranks);
        header.failed = 1 + rank;
    } else {
        auto* const presences = reinterpret_cast<Presence*>(static_cast<char*>(memory) + layout.presences);
        if (presences[rank].state != Presence::absent) {
            *why = text("there is a rank %d of %d already, of process %d", rank, ranks,
                        presences[rank].process.load());
            header.failed = 1 + rank;
        } else {
            presences[rank].process = getpid();
            presences[rank].device = device;
            presences[rank].state = Presence::present;
        }
    }
    flock(file, LOCK_UN);
    close(file);
    if (!why->empty()) {
        munmap(memory, bytes);
        return nullptr;
    }
    return std::unique_ptr<Meeting>(new Meeting(name, static_cast<char*>(memory), bytes, ranks, rank));
}

Meeting::Meeting(std::string name, char* memory, std::size_t bytes, int ranks, int rank)
    : name_(std::move(name)), memory_(memory), bytes_(bytes), ranks_(ranks), rank_(rank) {
    const Layout layout(ranks);
    header_ = reinterpret_cast<Header*>(memory);
    presences_ = reinterpret_cast<Presence*>(memory + layout.presences);
    channels_ = reinterpret_cast<Channel*>(memory + layout.channels);
    channel_data_ = memory + layout.channel_data;
    chunks_ = memory + layout.chunks;
}

Meeting::~Meeting() {
    std::uint32_t present = Presence::present;
    own().state.compare_exchange_strong(present, Presence::gone);
    munmap(memory_, bytes_);
}

void Meeting::forget_name() {
    shm_unlink(name_.c_str());
}

void Meeting::fail(const std::string& why) {
    std::int32_t none = 0;
    if (!header_->failed.compare_exchange_strong(none, 1 + rank_)) return;
    last_error_ = text("rank %d: ", rank_) + why;
    std::fflush(stdout);
    std::fprintf(stderr, "cuda_on_cpu: NCCL: %s\n", last_error_.c_str());
}

// Describes why a rank does not arrive.
std::string Meeting::why_not(int awaited) {
    Presence& other = presence(awaited);
    if (other.state == Presence::absent)
        return text(
            "rank %d, which has not called ncclCommInitRank. A host thread that makes several "
            "communicators makes them between ncclGroupStart and ncclGroupEnd",
            awaited);
    const auto doing = static_cast<Kind>(other.doing.load());
    if (doing == Kind::send || doing == Kind::receive)
        return text(
            "rank %d, which waits in %s %s rank %d: calls that need each other stand between "
            "ncclGroupStart and ncclGroupEnd",
            awaited, name_of(doing), doing == Kind::send ? "to" : "from", other.peer.load());
    if (doing != Kind::none)
        return text("rank %d, which waits in %s, call %llu", awaited, name_of(doing),
                    static_cast<unsigned long long>(other.number.load()));
    const auto own_doing = static_cast<Kind>(own().doing.load());
    if (own_doing == Kind::send || own_doing == Kind::receive)
        return text("rank %d, which has not called %s rank %d", awaited,
                    own_doing == Kind::send ? "ncclRecv from" : "ncclSend to", rank_);
    const auto number = static_cast<unsigned long long>(other.number.load());
    return text("rank %d, which has not made this call (its last collective: %s%s)", awaited,
                number == 0 ? "none" : ("call " + std::to_string(number) + ", ").c_str(),
                number == 0 ? "" : describe(other.call).c_str());
}

bool Meeting::wait(const std::string& what, const std::function<bool()>& done,
                   const std::function<int()>& awaited) {
    constexpr unsigned kQuick = 200;
    constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
    auto begin = Clock::now();
    auto next_look = begin + kBetweenLooks;
    for (unsigned round = 0;; ++round) {
        if (done()) return true;
        if (has_failed() || aborted_) return false;
        if (round < kQuick) {
            std::this_thread::yield();
            continue;
        }
        // The host may have to make the calls for the other ranks.
        if (round == kQuick) let_host_go_on(running_task());
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        const auto now = Clock::now();
        if (now < next_look) continue;
        next_look = now + kBetweenLooks;
        if (running_task_count() > communicator_work)
            begin = now;  // a kernel runs, after which the rank may come
        const int other = awaited();
        if (done()) return true;
        if (other < 0) continue;
        const std::uint32_t state = presence(other).state;
        if (state == Presence::aborted || state == Presence::gone) {
            fail(what + " waits for rank " + std::to_string(other) + ", whose communicator was " +
                 (state == Presence::aborted ? "aborted" : "destroyed"));
            return false;
        }
        if (state == Presence::present && !is_alive(presence(other).process)) {
            fail(what + " waits for rank " + std::to_string(other) + ", whose process " +
                 std::to_string(presence(other).process) + " has ended");
            return false;
        }
        if (now - begin < environment().timeout) continue;
        fail(what + " has waited " + std::to_string(environment().timeout.count()) + " s for " +
             why_not(other) + " (CUDA_ON_CPU_TIMEOUT sets the time)");
        return false;
    }
}

CommunicatorWork::CommunicatorWork() {
    ++communicator_work;
}

CommunicatorWork::~CommunicatorWork() {
    --communicator_work;
}

void Meeting::arrive() {
    own().arrived = ++barriers_;
}

bool Meeting::all_arrive(const std::string& what) {
    const auto missing = [&] {
        for (int rank = 0; rank < ranks_; ++rank) {
            if (presence(rank).arrived < barriers_) return rank;
        }
        return -1;
    };
    return wait(
        what, [&] { return missing() < 0; }, missing);
}

}  // namespace cuda_on_cpu::nccl

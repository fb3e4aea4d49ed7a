// NCCL's functions: a rank's call becomes work of its stream, which meets that of the other ranks
// in shared memory (meeting.hpp).
#include "nccl.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "capture.hpp"
#include "current_device.hpp"
#include "elements.hpp"
#include "errors.hpp"
#include "library_arguments.hpp"
#include "meeting.hpp"
#include "memory.hpp"
#include "stream.hpp"
#include "work_queue.hpp"

using namespace cuda_on_cpu;
using namespace cuda_on_cpu::nccl;

namespace {

// The arguments and the progress of one call.
struct Operation {
    Call call;
    const void* send = nullptr;
    void* receive = nullptr;
    // Bytes, for sends and receives.
    std::size_t done = 0;
    bool begun = false;
};

}  // namespace

struct ncclComm {
    std::unique_ptr<Meeting> meeting;
    int rank = 0;
    int ranks = 0;
    int device = 0;
    // False for a communicator made in a group until the group's end.
    bool complete = false;
    std::string name;

    // Serialises the pieces of work.
    std::mutex running;
    std::mutex turns_mutex;
    std::uint64_t issued = 0;                               // pieces of work, in the order of their calls
    std::set<std::uint64_t> turns;                          // of these, those that are not done
    std::uint64_t collectives = 0;                          // carried out
    std::map<std::pair<int, int>, std::uint64_t> messages;  // carried out, of each channel
    std::atomic<ncclResult_t> error{ncclSuccess};

    // The last call outside a group.
    struct Alone {
        std::thread::id thread;
        Kind kind = Kind::none;
        int peer = 0;
        // Number of collectives called outside a group.
        std::uint64_t collectives = 0;
    } alone;
};

namespace {

std::mutex mutex;
std::set<ncclComm_t>& comms() {
    static auto* alive = new std::set<ncclComm_t>;  // usable until the last static destructor
    return *alive;
}
thread_local std::string last_error;

[[gnu::format(printf, 3, 4)]] ncclResult_t refuse(ncclResult_t result, const char* function,
                                                  const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[600];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    last_error = std::string(function) + ": " + message;
    std::fprintf(stderr, "cuda_on_cpu: %s (%s)\n", last_error.c_str(), ncclGetErrorString(result));
    return result;
}

// --- Carrying out --------------------------------------------------------------------------------

std::string title(const Call& call) {
    std::string text = name_of(call.kind);
    if (call.kind == Kind::send) text += " to rank " + std::to_string(call.root);
    if (call.kind == Kind::receive) text += " from rank " + std::to_string(call.root);
    return text + ", call " + std::to_string(call.number);
}

// Do all ranks make the same call? If not, reports which two differ.
bool all_agree(Meeting& meeting, const Call& own) {
    for (int rank = 0; rank < meeting.ranks(); ++rank) {
        const Call& other = meeting.presence(rank).call;
        if (other.kind == own.kind && other.count == own.count && other.type == own.type &&
            other.op == own.op && other.root == own.root)
            continue;
        meeting.fail("call " + std::to_string(own.number) + " is " + describe(own) + "; rank " +
                     std::to_string(rank) + " calls " + describe(other) + ". Expected the same of all ranks");
        return false;
    }
    return true;
}

// The number of elements of the whole array that the ranks copy to their chunks, one chunk after
// the other.
std::size_t staged_count(const Meeting& meeting, const Call& call) {
    return call.kind == Kind::reduce_scatter ? call.count * static_cast<std::size_t>(meeting.ranks())
                                             : call.count;
}

// Reads this rank's results from the chunks of all ranks, which contain the elements [first, first
// + count).
void take(Meeting& meeting, const Operation& operation, std::size_t first, std::size_t count) {
    const Call& call = operation.call;
    const std::size_t size = bytes_of(call.type);
    auto* const receive = static_cast<char*>(operation.receive);
    const int rank = meeting.rank();
    std::vector<const void*> chunks;
    for (int other = 0; other < meeting.ranks(); ++other)
        chunks.push_back(meeting.chunk(other));
    switch (call.kind) {
        case Kind::broadcast:
            std::memcpy(receive + first * size, chunks[static_cast<std::size_t>(call.root)], count * size);
            return;
        case Kind::reduce:
            if (rank == call.root) reduce(receive + first * size, chunks, count, call.type, call.op);
            return;
        case Kind::all_reduce:
            reduce(receive + first * size, chunks, count, call.type, call.op);
            return;
        case Kind::all_gather:
            for (std::size_t other = 0; other < chunks.size(); ++other)
                std::memcpy(receive + (other * call.count + first) * size, chunks[other], count * size);
            return;
        case Kind::reduce_scatter: {
            const std::size_t own_first = static_cast<std::size_t>(rank) * call.count;
            const std::size_t from = std::max(first, own_first);
            const std::size_t to = std::min(first + count, own_first + call.count);
            if (from >= to) return;
            for (const void*& chunk : chunks)
                chunk = static_cast<const char*>(chunk) + (from - first) * size;
            reduce(receive + (from - own_first) * size, chunks, to - from, call.type, call.op);
            return;
        }
        default:
            return;
    }
}

bool carry_out_collective(ncclComm& comm, Operation& operation) {
    Meeting& meeting = *comm.meeting;
    Call& call = operation.call;
    call.number = ++comm.collectives;
    const std::string what = title(call);
    meeting.own().call = call;
    meeting.own().number = call.number;
    meeting.own().doing = static_cast<std::uint32_t>(call.kind);
    if (!meeting.barrier(what) || !all_agree(meeting, call)) return false;
    const std::size_t size = bytes_of(call.type);
    const std::size_t all = staged_count(meeting, call);
    const std::size_t most = kChunk / size;
    const bool contributes = call.kind != Kind::broadcast || comm.rank == call.root;
    for (std::size_t first = 0; first < all; first += most) {
        const std::size_t count = std::min(most, all - first);
        if (contributes)
            std::memcpy(meeting.chunk(comm.rank), static_cast<const char*>(operation.send) + first * size,
                        count * size);
        if (!meeting.barrier(what)) return false;
        take(meeting, operation, first, count);
        if (!meeting.barrier(what)) return false;
    }
    // The next call overwrites this one.
    return all > 0 || meeting.barrier(what);
}

// One step of a send or a receive, if its channel has room or contains data. Returns true when the
// operation is complete.
bool advance(ncclComm& comm, Operation& operation) {
    Meeting& meeting = *comm.meeting;
    Call& call = operation.call;
    const bool sends = call.kind == Kind::send;
    const int from = sends ? comm.rank : call.root;
    const int to = sends ? call.root : comm.rank;
    Channel& channel = meeting.channel(from, to);
    char* const data = meeting.channel_data(from, to);
    const std::size_t bytes = call.count * bytes_of(call.type);
    const std::size_t chunk = std::min(kChannelChunk, bytes - operation.done);
    if (sends) {
        if (channel.written != channel.read) return false;  // the other end has not read the last chunk
        if (operation.begun && operation.done == bytes) return true;
        channel.call = call;
        std::memcpy(data, static_cast<const char*>(operation.send) + operation.done, chunk);
        operation.done += chunk;
        operation.begun = true;
        ++channel.written;
        return false;
    }
    if (channel.written == channel.read) return false;
    if (channel.call.count != call.count || channel.call.type != call.type) {
        Call sent = channel.call;
        meeting.fail(title(call) + " is " + describe(call) + "; rank " + std::to_string(from) +
                     " has called " + describe(sent) + ". Expected the same count and type");
        return false;
    }
    std::memcpy(static_cast<char*>(operation.receive) + operation.done, data, chunk);
    operation.done += chunk;
    ++channel.read;
    return operation.done == bytes;
}

// Messages of one channel are transferred in order, those of different channels at the same time.
bool carry_out_messages(ncclComm& comm, const std::vector<Operation*>& operations) {
    std::vector<Operation*> open = operations;
    for (Operation* const each : open)
        each->call.number = ++comm.messages[{static_cast<int>(each->call.kind), each->call.root}];
    Presence& own = comm.meeting->own();
    while (!open.empty()) {
        own.peer = open.front()->call.root;
        own.doing = static_cast<std::uint32_t>(open.front()->call.kind);
        bool moved = false;
        const auto step = [&] {
            std::set<std::pair<Kind, int>> busy;
            const std::size_t before = open.size();
            std::erase_if(open, [&](Operation* each) {
                if (!busy.insert({each->call.kind, each->call.root}).second) return false;
                const std::size_t done = each->done;
                const bool complete = advance(comm, *each);
                moved = moved || each->done != done;
                if (complete) busy.erase({each->call.kind, each->call.root});
                return complete;
            });
            moved = moved || open.size() != before;
            return moved || open.empty();
        };
        const std::string what = title(open.front()->call);
        const bool goes_on =
            comm.meeting->wait(what, step, [&] { return open.empty() ? -1 : open.front()->call.root; });
        if (!goes_on) {
            own.doing = 0;
            return false;
        }
    }
    own.doing = 0;
    return true;
}

cudaError_t carry_out(ncclComm& comm, std::vector<Operation> operations) {
    const CommunicatorWork here;
    const std::scoped_lock lock(comm.running);
    bool right = comm.error == ncclSuccess;
    std::vector<Operation*> messages;
    for (Operation& operation : operations) {
        if (!is_collective(operation.call.kind)) {
            messages.push_back(&operation);
        } else {
            right = right && carry_out_collective(comm, operation);
        }
    }
    comm.meeting->own().doing = 0;
    right = right && (messages.empty() || carry_out_messages(comm, messages));
    if (right) {
        for (const Operation& operation : operations) {
            const std::size_t bytes = operation.call.count * bytes_of(operation.call.type);
            if (operation.receive != nullptr)
                note_written(
                    {.name = "receive", .pointer = operation.receive, .bytes = bytes, .written = true});
        }
        return cudaSuccess;
    }
    comm.error = ncclRemoteError;
    return comm.meeting->is_aborted() ? cudaSuccess : cudaErrorLaunchFailure;
}

// --- Issuing -------------------------------------------------------------------------------------

// Orders the work of several streams by their calls, as on all other ranks.
class Turn {
  public:
    explicit Turn(ncclComm& comm) : comm_(comm) {
        const std::scoped_lock lock(comm.turns_mutex);
        number_ = comm.issued++;
        comm.turns.insert(number_);
    }
    ~Turn() {
        const std::scoped_lock lock(comm_.turns_mutex);
        comm_.turns.erase(number_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    void wait() const {
        const CommunicatorWork here;
        while (!is_next()) {
            let_host_go_on(running_task());
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }

  private:
    bool is_next() const {
        const std::scoped_lock lock(comm_.turns_mutex);
        return *comm_.turns.begin() == number_;
    }
    ncclComm& comm_;
    std::uint64_t number_ = 0;
};

struct Issue {
    ncclComm_t comm;
    int rank;
    std::vector<cudaStream_t> streams;
    std::vector<Operation> operations;
};

// The calls of a host thread since ncclGroupStart.
struct Group {
    int depth = 0;
    ncclResult_t error = ncclSuccess;
    std::vector<Issue> issues;
    std::vector<ncclComm_t> made;  // communicators
};

// When its host thread ends, an open group is reported: none of its calls was carried out, and no
// stream has an error.
struct GroupOfThread : Group {
    ~GroupOfThread() {
        if (issues.empty()) return;
        std::fprintf(stderr,
                     "cuda_on_cpu: NCCL: %s of rank %d was never carried out: ncclGroupStart has no "
                     "ncclGroupEnd\n",
                     name_of(issues.front().operations.front().call.kind), issues.front().rank);
    }
};
thread_local GroupOfThread group;

// Makes all streams of `later` wait for the work that `first` has now.
cudaError_t let_wait(const std::vector<cudaStream_t>& later, cudaStream_t first) {
    for (const cudaStream_t stream : later) {
        if (stream == first) continue;
        cudaEvent_t event = nullptr;
        cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        if (error == cudaSuccess) error = cudaEventRecord(event, first);
        if (error == cudaSuccess) error = cudaStreamWaitEvent(stream, event);
        if (event != nullptr) static_cast<void>(cudaEventDestroy(event));
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

// The calls of a group are one piece of work, in the stream of the first call. As in NCCL, it
// begins after the earlier work of all streams of the group, and all these streams continue after
// it.
ncclResult_t issue(Issue work) {
    ncclComm& comm = *work.comm;
    const cudaStream_t stream = work.streams.front();
    const DeviceScope scope(comm.device);
    const char* const function = name_of(work.operations.front().call.kind);
    StreamOperation operation;
    operation.may_wait = true;
    if (somebody_captures()) {
        operation.work = [&comm, operations = std::move(work.operations)] {
            return carry_out(comm, operations);
        };
    } else {
        operation.work = [&comm, turn = std::make_shared<Turn>(comm),
                          operations = std::move(work.operations)] {
            turn->wait();
            return carry_out(comm, operations);
        };
    }
    cudaError_t error = cudaSuccess;
    for (const cudaStream_t other : work.streams) {
        if (error == cudaSuccess) error = let_wait({stream}, other);
    }
    if (error == cudaSuccess) error = submit(stream, function, std::move(operation));
    if (error == cudaSuccess) error = let_wait(work.streams, stream);
    return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t check_comm(const char* function, ncclComm_t comm) {
    {
        const std::scoped_lock lock(mutex);
        if (comms().contains(comm)) return ncclSuccess;
    }
    return refuse(ncclInvalidArgument, function, "this communicator does not exist (any more)");
}

// On a GPU, NCCL accesses memory of its own device, and pinned host memory.
ncclResult_t check_buffer(const char* function, const char* name, const void* pointer, std::size_t bytes,
                          const ncclComm& comm) {
    if (bytes == 0) return ncclSuccess;
    const auto allocation = find_allocation(pointer);
    if (pointer == nullptr || !allocation || !device_accessible(pointer, bytes)) {
        const std::string where = allocation ? "; it lies " + describe_address(pointer) : "";
        return refuse(ncclInvalidArgument, function,
                      "%s of rank %d is %p; expected %zu bytes inside one live allocation of device memory%s",
                      name, comm.rank, pointer, bytes, where.c_str());
    }
    if (allocation->type == cudaMemoryTypeDevice && allocation->device != comm.device)
        return refuse(ncclInvalidArgument, function,
                      "%s of rank %d is memory of device %d; the rank's device is %d", name, comm.rank,
                      allocation->device, comm.device);
    return ncclSuccess;
}

// Reports a host thread that calls for several ranks, one after the other and outside a group: NCCL
// may wait in the first call for the second.
ncclResult_t check_alone(const char* function, ncclComm& comm, const Call& call) {
    ncclComm::Alone now{std::this_thread::get_id(), call.kind, call.root, comm.alone.collectives};
    if (is_collective(call.kind)) ++now.collectives;
    const std::scoped_lock lock(mutex);
    comm.alone = now;
    for (const ncclComm_t other : comms()) {
        if (other == &comm || other->name != comm.name || other->alone.thread != now.thread) continue;
        const bool same_collective = is_collective(call.kind) && is_collective(other->alone.kind) &&
                                     other->alone.collectives == now.collectives;
        const bool same_message = !is_collective(call.kind) && !is_collective(other->alone.kind) &&
                                  other->alone.kind != Kind::none && other->alone.peer == comm.rank &&
                                  call.root == other->rank && other->alone.kind != call.kind;
        if (!same_collective && !same_message) continue;
        char text[500];
        std::snprintf(text, sizeof text,
                      "%s is called for rank %d by the host thread that has called %s for rank %d, outside a "
                      "group: NCCL may wait in the first call for the second. Expected both between "
                      "ncclGroupStart and ncclGroupEnd",
                      function, comm.rank, name_of(other->alone.kind), other->rank);
        comm.meeting->fail(text);
        last_error = text;
        return ncclInvalidUsage;
    }
    return ncclSuccess;
}

// In place, a rank's part is at its position in the array of all ranks. Other buffers must not
// overlap: a GPU would read data that another block has overwritten.
ncclResult_t check_overlap(const char* function, const Operation& operation, std::size_t send_bytes,
                           std::size_t receive_bytes, const ncclComm& comm) {
    const auto send = reinterpret_cast<std::uintptr_t>(operation.send);
    const auto receive = reinterpret_cast<std::uintptr_t>(operation.receive);
    if (send >= receive + receive_bytes || receive >= send + send_bytes) return ncclSuccess;
    const auto rank = static_cast<std::size_t>(comm.rank);
    const std::uintptr_t before_send = operation.call.kind == Kind::all_gather ? rank * send_bytes : 0;
    const std::uintptr_t before_receive =
        operation.call.kind == Kind::reduce_scatter ? rank * receive_bytes : 0;
    if (send - before_send == receive - before_receive) return ncclSuccess;
    return refuse(ncclInvalidArgument, function,
                  "the buffers of rank %d overlap: send %p, receive %p. Expected buffers apart, or in place: "
                  "send = receive%s",
                  comm.rank, operation.send, operation.receive,
                  operation.call.kind == Kind::all_gather       ? " + rank * count"
                  : operation.call.kind == Kind::reduce_scatter ? " - rank * count"
                                                                : "");
}

ncclResult_t check_call(const char* function, const Operation& operation, const ncclComm& comm) {
    const Call& call = operation.call;
    if (call.type < 0 || call.type >= ncclNumTypes)
        return refuse(ncclInvalidArgument, function, "the type is %d", static_cast<int>(call.type));
    if (call.op < 0 || call.op >= ncclNumOps)
        return refuse(ncclInvalidArgument, function, "the reduction is %d", static_cast<int>(call.op));
    if (call.root < 0 || call.root >= comm.ranks)
        return refuse(ncclInvalidArgument, function, "rank %d; the communicator has %d, from 0", call.root,
                      comm.ranks);
    const std::size_t most = SIZE_MAX / bytes_of(call.type) / static_cast<std::size_t>(comm.ranks);
    if (call.count > most)
        return refuse(ncclInvalidArgument, function, "the count of rank %d is %llu; expected at most %zu",
                      comm.rank, static_cast<unsigned long long>(call.count), most);
    const std::size_t bytes = call.count * bytes_of(call.type);
    const auto all = static_cast<std::size_t>(comm.ranks) * bytes;
    const std::size_t send_bytes = call.kind == Kind::reduce_scatter ? all : bytes;
    const std::size_t receive_bytes = call.kind == Kind::all_gather ? all : bytes;
    const bool is_root = comm.rank == call.root;
    const bool sends = call.kind != Kind::receive && (call.kind != Kind::broadcast || is_root);
    const bool receives = call.kind != Kind::send && (call.kind != Kind::reduce || is_root);
    if (sends) {
        const ncclResult_t error =
            check_buffer(function, "the send buffer", operation.send, send_bytes, comm);
        if (error != ncclSuccess) return error;
    }
    if (!receives) return ncclSuccess;
    const ncclResult_t error =
        check_buffer(function, "the receive buffer", operation.receive, receive_bytes, comm);
    if (error != ncclSuccess || !sends) return error;
    return check_overlap(function, operation, send_bytes, receive_bytes, comm);
}

ncclResult_t check_stream_of(const char* function, cudaStream_t stream, const ncclComm& comm) {
    if (check_stream(stream, function) != cudaSuccess) return ncclInvalidArgument;
    if (is_default(stream) || device_of(stream) == comm.device) return ncclSuccess;
    return refuse(ncclInvalidUsage, function, "the stream belongs to device %d; the device of rank %d is %d",
                  device_of(stream), comm.rank, comm.device);
}

ncclResult_t call_for(const char* function, ncclComm_t comm, cudaStream_t stream,
                      const Operation& operation) {
    ncclResult_t error = check_comm(function, comm);
    if (error == ncclSuccess) error = check_call(function, operation, *comm);
    if (error == ncclSuccess) error = check_stream_of(function, stream, *comm);
    if (error == ncclSuccess && !comm->complete)
        error = refuse(ncclInvalidUsage, function,
                       "the communicator of rank %d is complete after ncclGroupEnd only", comm->rank);
    if (error == ncclSuccess && comm->error != ncclSuccess)
        error = refuse(comm->error, function, "an earlier call of rank %d has failed", comm->rank);
    if (group.depth == 0) {
        if (error == ncclSuccess) error = check_alone(function, *comm, operation.call);
        return error != ncclSuccess ? error : issue({comm, comm->rank, {stream}, {operation}});
    }
    if (error != ncclSuccess) {
        group.error = error;
        return error;
    }
    comm->alone.thread = {};
    const auto same = std::ranges::find(group.issues, comm, &Issue::comm);
    if (same == group.issues.end()) {
        group.issues.push_back({comm, comm->rank, {stream}, {operation}});
        return ncclSuccess;
    }
    same->operations.push_back(operation);
    if (std::ranges::find(same->streams, stream) == same->streams.end()) same->streams.push_back(stream);
    return ncclSuccess;
}

// --- Making communicators ------------------------------------------------------------------------

ncclResult_t attach(const char* function, ncclComm& comm) {
    std::string why;
    comm.meeting = Meeting::attach(comm.name, comm.ranks, comm.rank, comm.device, &why);
    if (comm.meeting != nullptr) return ncclSuccess;
    return refuse(ncclInvalidArgument, function, "%s", why.c_str());
}

// After arrive(): waits until all ranks have arrived, and checks that no two ranks use the same
// device.
ncclResult_t meet(const char* function, ncclComm& comm) {
    Meeting& meeting = *comm.meeting;
    const bool complete = meeting.all_arrive("ncclCommInitRank");
    if (complete && comm.rank == 0) meeting.forget_name();
    if (!complete) {
        meeting.forget_name();
        last_error = meeting.last_error();
        return ncclRemoteError;
    }
    for (int rank = 0; rank < comm.ranks; ++rank) {
        const Presence& other = meeting.presence(rank);
        if (rank == comm.rank || other.process != getpid() || other.device != comm.device) continue;
        return refuse(ncclInvalidUsage, function,
                      "ranks %d and %d have one device, %d; expected one for each rank: cudaSetDevice before",
                      std::min(rank, comm.rank), std::max(rank, comm.rank), comm.device);
    }
    comm.complete = true;
    return ncclSuccess;
}

void forget(ncclComm_t comm) {
    {
        const std::scoped_lock lock(mutex);
        comms().erase(comm);
    }
    delete comm;
}

ncclResult_t init_rank(const char* function, ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank) {
    if (comm == nullptr) return refuse(ncclInvalidArgument, function, "the communicator to set is null");
    if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks)
        return refuse(ncclInvalidArgument, function, "rank %d of %d; expected 1 to %d ranks, from 0", rank,
                      ranks, kMostRanks);
    if (std::memchr(id.internal, 0, sizeof id.internal) == nullptr || id.internal[0] != '/')
        return refuse(ncclInvalidArgument, function, "the id is none of ncclGetUniqueId");
    *comm = nullptr;
    auto* const made = new ncclComm;
    made->rank = rank;
    made->ranks = ranks;
    made->device = current_device();
    made->name = id.internal;
    ncclResult_t error = attach(function, *made);
    if (error != ncclSuccess) {
        delete made;
        return error;
    }
    {
        const std::scoped_lock lock(mutex);
        comms().insert(made);
    }
    *comm = made;
    made->meeting->arrive();
    if (group.depth > 0) {
        group.made.push_back(made);
        return ncclSuccess;
    }
    error = meet(function, *made);
    if (error == ncclSuccess) return error;
    *comm = nullptr;
    forget(made);
    return error;
}

// Refuses to destroy a communicator that is used in an open group, because ncclGroupEnd would use
// it.
ncclResult_t check_not_in_group(const char* function, ncclComm_t comm) {
    if (const ncclResult_t error = check_comm(function, comm); error != ncclSuccess) return error;
    const auto same = std::ranges::find(group.issues, comm, &Issue::comm);
    const bool is_made = std::ranges::find(group.made, comm) != group.made.end();
    if (same == group.issues.end() && !is_made) return ncclSuccess;
    return refuse(ncclInvalidUsage, function,
                  "%s of rank %d is in a group that has not ended. Expected ncclGroupEnd first",
                  is_made ? "ncclCommInitRank" : name_of(same->operations.front().call.kind), comm->rank);
}

// Waits until the communicator's work is done.
void wait_for_work(const ncclComm& comm) {
    wait_for_streams_of(comm.device);
}

}  // namespace

// --- The interface -------------------------------------------------------------------------------

ncclResult_t ncclGetVersion(int* version) {
    if (version == nullptr) return refuse(ncclInvalidArgument, __func__, "version is null");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
    switch (result) {
        case ncclSuccess:
            return "no error";
        case ncclUnhandledCudaError:
            return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
        case ncclSystemError:
            return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case ncclInternalError:
            return "internal error - please report this issue to the NCCL developers";
        case ncclInvalidArgument:
            return "invalid argument (run with NCCL_DEBUG=WARN for details)";
        case ncclInvalidUsage:
            return "invalid usage (run with NCCL_DEBUG=WARN for details)";
        case ncclRemoteError:
            return "remote process exited or there was a network error";
        case ncclInProgress:
            return "NCCL operation in progress";
        default:
            return "unknown result code";
    }
}

const char* ncclGetLastError(ncclComm_t comm) {
    if (comm != nullptr && check_comm(__func__, comm) == ncclSuccess && comm->meeting != nullptr &&
        !comm->meeting->last_error().empty())
        return comm->meeting->last_error().c_str();
    return last_error.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    if (id == nullptr) return refuse(ncclInvalidArgument, __func__, "the id to set is null");
    static std::atomic<unsigned> made{0};
    std::random_device random;
    *id = {};
    std::snprintf(id->internal, sizeof id->internal, "/cuda_on_cpu_nccl.%d.%u.%08x%08x", getpid(), made++,
                  random(), random());
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
    return init_rank(__func__, comm, ranks, id, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
    return init_rank(__func__, comm, ranks, id, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t* made, int count, const int* devices) {
    if (made == nullptr || count < 1)
        return refuse(ncclInvalidArgument, __func__,
                      "the communicators to set are null, or their count, %d, is "
                      "less than 1",
                      count);
    for (int rank = 0; rank < count; ++rank) {
        const int device = devices == nullptr ? rank : devices[rank];
        if (device < 0 || device >= device_count())
            return refuse(ncclInvalidArgument, __func__,
                          "device %d of rank %d; there %s %d (CUDA_ON_CPU_DEVICES sets how many)", device,
                          rank, device_count() == 1 ? "is" : "are", device_count());
    }
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclResult_t error = ncclGroupStart();
    for (int rank = 0; rank < count && error == ncclSuccess; ++rank) {
        const DeviceScope scope(devices == nullptr ? rank : devices[rank]);
        error = init_rank(__func__, &made[rank], count, id, rank);
    }
    const ncclResult_t end = ncclGroupEnd();
    return error != ncclSuccess ? error : end;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (const ncclResult_t error = check_not_in_group(__func__, comm); error != ncclSuccess) return error;
    wait_for_work(*comm);
    return comm->error;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (comm == nullptr) return ncclSuccess;
    if (const ncclResult_t error = check_not_in_group(__func__, comm); error != ncclSuccess) return error;
    wait_for_work(*comm);
    forget(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (comm == nullptr) return ncclSuccess;
    if (const ncclResult_t error = check_comm(__func__, comm); error != ncclSuccess) return error;
    std::erase_if(group.issues, [&](const Issue& each) { return each.comm == comm; });
    std::erase(group.made, comm);
    if (comm->meeting != nullptr) {
        comm->meeting->own().state = Presence::aborted;
        comm->meeting->abort_by_host();
    }
    wait_for_work(*comm);
    forget(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
    if (error == nullptr) return refuse(ncclInvalidArgument, __func__, "the error to set is null");
    if (const ncclResult_t known = check_comm(__func__, comm); known != ncclSuccess) return known;
    *error = comm->error;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
    if (const ncclResult_t error = check_comm(__func__, comm); error != ncclSuccess) return error;
    *count = comm->ranks;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
    if (const ncclResult_t error = check_comm(__func__, comm); error != ncclSuccess) return error;
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
    if (const ncclResult_t error = check_comm(__func__, comm); error != ncclSuccess) return error;
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** pointer, std::size_t bytes) {
    return cudaMalloc(pointer, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* pointer) {
    return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclGroupStart() {
    ++group.depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
    if (group.depth == 0) return refuse(ncclInvalidUsage, __func__, "there is no ncclGroupStart before it");
    if (--group.depth > 0) return ncclSuccess;
    const Group ended = std::exchange<Group>(group, Group{});
    if (ended.error != ncclSuccess) return ended.error;
    for (const ncclComm_t comm : ended.made) {
        if (const ncclResult_t error = meet("ncclCommInitRank", *comm); error != ncclSuccess) return error;
    }
    // The memory may have been freed since the call.
    for (const Issue& each : ended.issues) {
        for (const Operation& operation : each.operations) {
            const ncclResult_t error = check_call(name_of(operation.call.kind), operation, *each.comm);
            if (error != ncclSuccess) return error;
        }
    }
    ncclResult_t error = ncclSuccess;
    for (const Issue& each : ended.issues) {
        const ncclResult_t result = issue(each);
        if (error == ncclSuccess) error = result;
    }
    return error;
}

ncclResult_t ncclBcast(void* buffer, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    return call_for(__func__, comm, stream,
                    {{.kind = Kind::broadcast, .count = count, .type = type, .root = root}, send, receive});
}

ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    return call_for(
        __func__, comm, stream,
        {{.kind = Kind::reduce, .count = count, .type = type, .op = op, .root = root}, send, receive});
}

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    return call_for(__func__, comm, stream,
                    {{.kind = Kind::all_reduce, .count = count, .type = type, .op = op}, send, receive});
}

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    return call_for(__func__, comm, stream,
                    {{.kind = Kind::all_gather, .count = count, .type = type}, send, receive});
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    return call_for(__func__, comm, stream,
                    {{.kind = Kind::reduce_scatter, .count = count, .type = type, .op = op}, send, receive});
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return call_for(__func__, comm, stream,
                    {{.kind = Kind::send, .count = count, .type = type, .root = peer}, send, nullptr});
}

ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return call_for(__func__, comm, stream,
                    {{.kind = Kind::receive, .count = count, .type = type, .root = peer}, nullptr, receive});
}

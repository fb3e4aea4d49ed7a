// Events of a running kernel for an observer, which is the inspector in programs linked with it. In
// other programs the observer is a null pointer, which is checked where threads wait, end and
// allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "cuda_on_cpu/language.h"
#include "driver_types.h"
#include "vector_types.h"

namespace cuda_on_cpu {

struct LaunchState;
struct TensorMap;

// All operations of a block's threads except loads and stores. Threads and warps are identified by
// their number in the block, lanes by a mask.
namespace event {

struct ThreadEnded {
    unsigned thread;
};

// The first thread of the block to reach it has passed the declaration of a `__shared__` variable.
// No other variable uses the `gap` bytes on each side of it.
struct SharedEntered {
    const char* name;
    void* object;
    std::size_t size;
    std::size_t gap;
};

// The barrier of the block. What a thread did before it arrived happens before what any thread does
// after the release.
struct BarrierArrived {
    unsigned thread;
    Site site;
};
struct BarrierReleased {};
// The same barrier split in two: a thread arrives, and waits later.
struct SplitBarrierArrived {
    unsigned thread;
    Site site;
};
struct SplitBarrierLeft {
    unsigned thread;
};

// A collective: a shuffle, a vote, __syncwarp... `mask` is the mask of its lanes; `lanes` are those
// of them that had not ended.
struct CollectiveArrived {
    unsigned thread;
    std::uint32_t mask;
    Site site;
};
struct CollectiveCompleted {
    unsigned warp;
    std::uint32_t mask;
    std::uint32_t lanes;
};

// Barriers between blocks: of a grid or of a cluster.
struct BlocksBarrierArrived {
    unsigned thread;
    const void* barrier;
    unsigned phase;
    Site site;
};
struct BlocksBarrierLeft {
    unsigned thread;
    const void* barrier;
    unsigned phase;
};

// Asynchronous copies (cp.async). A thread's copies complete when it waits for them, oldest group
// first. `shared` still holds the old bytes; `data` points to the new ones.
struct CopyIssued {
    unsigned thread;
    void* shared;
    const void* data;
    const void* global;
    unsigned bytes;
    unsigned valid_bytes;
    Site site;
};
struct CopiesCommitted {
    unsigned thread;
};
struct CopiesAwaited {
    unsigned thread;
    unsigned pending;
};

// cuda::barrier and named barriers: threads arrive and wait separately. What a thread did before it
// arrived happens before what any thread does after it has waited for that phase. A new barrier may
// reuse the address of an earlier one.
struct ArrivalBarrierBegun {
    const void* barrier;
};
struct ArrivalBarrierArrived {
    unsigned thread;
    const void* barrier;
    Site site;
};
struct ArrivalBarrierCompleted {
    const void* barrier;
};
struct ArrivalBarrierLeft {
    unsigned thread;
    const void* barrier;
    Site site;
};
// The thread's copies complete, at the latest, when it arrives.
struct CopiesAttached {
    unsigned thread;
};

// mbarriers. A thread arrives in, or has waited for, the phase of that parity. Completed phases
// have no event, because another block of the cluster may complete one.
struct MbarrierArrived {
    unsigned thread;
    const void* barrier;
    unsigned parity;
};
// An arrival of the thread at another block's mbarrier, or a bulk copy that completes there.
struct RemoteMbarrierArrived {
    unsigned thread;
    const void* barrier;
    unsigned parity;
};
struct MbarrierLeft {
    unsigned thread;
    const void* barrier;
    unsigned parity;
    Site site;
};

// Bulk copies of a box of a matrix. A load to the block's own shared memory is pending until the
// phase of the mbarrier ends. A store is one access when it is issued: its box is read, and the
// matrix counts as written.
struct BoxLoadIssued {
    unsigned thread;
    void* shared;
    const TensorMap& map;
    int column;
    int row;
    const void* barrier;
    unsigned parity;
    Site site;
};
struct BoxLoaded {
    const void* shared;
    const void* barrier;
    unsigned parity;
};
struct BoxStoreIssued {
    unsigned thread;
    const void* shared;
    const TensorMap& map;
    int column;
    int row;
    Site site;
};
// fence.proxy.async: bulk copies that are ordered after it see what the thread has written before.
struct ProxyFenced {
    unsigned thread;
};
// A bulk copy reads these bytes of the block's shared memory. Notified before BoxStoreIssued.
struct BulkRead {
    unsigned thread;
    const void* shared;
    std::size_t bytes;
    Site site;
};

// Programmatic dependent launch: the thread has waited for the previous grid (LaunchConfiguration).
struct PreviousGridAwaited {
    unsigned thread;
};

// All 32 lanes load or store matrices of 8 rows of 16 bytes; rows[8 m + i] is row i of matrix m.
struct MatricesLoaded {
    unsigned warp;
    const void* const* rows;
    unsigned matrices;
    Site site;
};
struct MatricesStored {
    unsigned warp;
    const void* const* rows;
    unsigned matrices;
    Site site;
};

}  // namespace event

using Event =
    std::variant<event::ThreadEnded, event::SharedEntered, event::BarrierArrived, event::BarrierReleased,
                 event::SplitBarrierArrived, event::SplitBarrierLeft, event::CollectiveArrived,
                 event::CollectiveCompleted, event::BlocksBarrierArrived, event::BlocksBarrierLeft,
                 event::CopyIssued, event::CopiesCommitted, event::CopiesAwaited, event::ArrivalBarrierBegun,
                 event::ArrivalBarrierArrived, event::ArrivalBarrierCompleted, event::ArrivalBarrierLeft,
                 event::CopiesAttached, event::MbarrierArrived, event::RemoteMbarrierArrived,
                 event::MbarrierLeft, event::BoxLoadIssued, event::BoxLoaded, event::BoxStoreIssued,
                 event::ProxyFenced, event::BulkRead, event::PreviousGridAwaited, event::MatricesLoaded,
                 event::MatricesStored>;

// Observes the blocks of one OS thread, one after the other.
class BlockObserver {
  public:
    virtual ~BlockObserver() = default;

    virtual void begin_block(LaunchState& launch, uint3 block, void* dynamic_shared, std::size_t size) = 0;
    virtual void notify(const Event& event) = 0;
    virtual void end_block() = 0;
};

// Observes launches. Calls may come from several OS threads at once.
class LaunchObserver {
  public:
    virtual ~LaunchObserver() = default;

    virtual void begin_launch(LaunchState& /*launch*/) {}
    // The observer of this block on the calling OS thread; null: the block is not observed.
    virtual BlockObserver* watch(LaunchState& /*launch*/, uint3 /*block*/) { return nullptr; }
    virtual void end_launch(LaunchState& /*launch*/) {}
    // The first failure of the launch; `message` as it is printed. Line 0: the place is in the
    // message, or unknown.
    virtual void launch_failed(LaunchState& /*launch*/, cudaError_t /*error*/, const std::string& /*message*/,
                               Site /*site*/) {}
    // A copy from the device to the host whose call returns only when the data is there.
    virtual void host_awaits_copy(std::size_t /*bytes*/) {}
};

// Observes memory from the program's beginning to its end. Calls may come from several OS threads
// at once, with locks of the runtime held: they must not call back.
class MemoryObserver {
  public:
    virtual ~MemoryObserver() = default;

    // `host_may_write`: pinned or managed memory.
    virtual void memory_allocated(void* memory, std::size_t size, bool host_may_write) = 0;
    virtual void memory_freed(void* memory) = 0;
    // By cudaMemset or cudaMemcpy, or by a bulk store of a block that is not observed. Called
    // without locks.
    virtual void memory_written(void* memory, std::size_t size) = 0;
    // A kernel that is not observed is launched: it may write anywhere.
    virtual void unwatched_launch() = 0;
};

// Set while the inspector runs.
extern constinit LaunchObserver* launch_observer;
// Set by the inspector when the program begins.
extern constinit MemoryObserver* memory_observer;

}  // namespace cuda_on_cpu

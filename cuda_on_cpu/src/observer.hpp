// Events of a running kernel, for an observer: the inspector, in programs that are linked with it.
// In all others there is no observer: a null pointer, which is read where threads wait, end and
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

// What the threads of a block do besides loads and stores. A thread is given by its number in the
// block, a warp by its number, lanes by a mask.
namespace event {

struct ThreadEnded {
    unsigned thread;
};

// The block's first thread has reached the declaration of a `__shared__` variable. No variable uses
// the `gap` bytes on each side of it.
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

// A collective: a shuffle, a vote, __syncwarp... `mask` names its lanes; `lanes` are those of them
// that had not ended.
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
};
struct BlocksBarrierLeft {
    unsigned thread;
    const void* barrier;
    unsigned phase;
};

// Asynchronous copies (cp.async). Those of a thread complete, oldest group first, when it waits for
// them. `shared` still holds the old bytes; `data` are the new ones.
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
// arrived happens before what any thread does after it has waited for that phase. A barrier may
// begin at an address that an earlier one had.
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

// mbarriers. A thread arrives in, or has waited for, the phase of that parity. There is no event
// for a completed phase, which another block of the cluster may complete.
struct MbarrierArrived {
    unsigned thread;
    const void* barrier;
    unsigned parity;
};
// The mbarrier of another block: an arrival of the thread, or a bulk copy that completes there.
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
                 event::MatricesLoaded, event::MatricesStored>;

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

// What the runtime tells somebody who watches kernels run: the inspector, in programs that are
// linked with it. In all others there is none: a null pointer, looked at where threads wait, end
// and allocate, and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda_on_cpu/language.h"
#include "driver_types.h"
#include "vector_types.h"

namespace cuda_on_cpu {

struct LaunchState;
struct TensorMap;

// Watches the blocks of one OS thread, one after the other. A thread is named by its number in the
// block, a warp by its number, lanes by a mask.
class BlockObserver {
  public:
    virtual ~BlockObserver() = default;

    virtual void begin_block(LaunchState& /*launch*/, uint3 /*block*/, void* /*dynamic_shared*/,
                             std::size_t /*size*/) {}
    virtual void end_block() {}
    virtual void thread_ended(unsigned /*thread*/) {}

    // The block's first thread has reached the declaration of a `__shared__` variable.
    // Bytes around it (`gap`, on each side) belong to nobody.
    virtual void shared_entered(const char* /*name*/, void* /*object*/, std::size_t /*size*/,
                                std::size_t /*gap*/) {}

    // The barrier of the block. Who has arrived before it is released is ordered before all who
    // leave it after that: they waited in it, or (its second half apart from the first) say so by
    // barrier_left().
    virtual void barrier_arrived(unsigned /*thread*/, Site /*site*/) {}
    virtual void barrier_arrived_to_wait_later(unsigned /*thread*/, Site /*site*/) {}
    virtual void barrier_released() {}
    virtual void barrier_left(unsigned /*thread*/) {}

    // A collective: a shuffle, a vote, __syncwarp... `mask` names its lanes; `lanes` are those of
    // them that had not ended.
    virtual void collective_arrived(unsigned /*thread*/, std::uint32_t /*mask*/, Site /*site*/) {}
    virtual void collective_completed(unsigned /*warp*/, std::uint32_t /*mask*/, std::uint32_t /*lanes*/) {}

    // Barriers between blocks: of a grid or of a cluster.
    virtual void blocks_barrier_arrived(unsigned /*thread*/, const void* /*barrier*/, unsigned /*phase*/) {}
    virtual void blocks_barrier_left(unsigned /*thread*/, const void* /*barrier*/, unsigned /*phase*/) {}

    // Asynchronous copies: those of a thread complete, oldest group first, when it waits for them.
    // `shared` is still what it was; `data` is what it will be.
    virtual void copy_issued(unsigned /*thread*/, void* /*shared*/, const void* /*data*/,
                             const void* /*global*/, unsigned /*bytes*/, unsigned /*valid_bytes*/,
                             Site /*site*/) {}
    virtual void copies_committed(unsigned /*thread*/) {}
    virtual void copies_awaited(unsigned /*thread*/, unsigned /*pending*/) {}

    // Barriers at which threads arrive and for which they wait, each at its own time. Who has
    // arrived before a phase is completed is ordered before all who leave the barrier after that.
    // Copies attached to a phase are made, at the latest, when their thread arrives. At an address
    // one barrier may begin after another.
    virtual void barrier_begun(const void* /*barrier*/) {}
    virtual void arrival_barrier_arrived(unsigned /*thread*/, const void* /*barrier*/, Site /*site*/) {}
    virtual void arrival_barrier_completed(const void* /*barrier*/) {}
    virtual void arrival_barrier_left(unsigned /*thread*/, const void* /*barrier*/, Site /*site*/) {}
    virtual void copies_attached(unsigned /*thread*/) {}

    // mbarriers: the same, but another block of the cluster may end a phase, and nobody tells. A
    // thread arrives in, or has waited for, the phase of that parity. Also at the mbarrier of
    // another block, by itself or with a box for it.
    virtual void mbarrier_arrived(unsigned /*thread*/, const void* /*barrier*/, unsigned /*parity*/) {}
    virtual void mbarrier_of_another_block_arrived(unsigned /*thread*/, const void* /*barrier*/,
                                                   unsigned /*parity*/) {}
    virtual void mbarrier_left(unsigned /*thread*/, const void* /*barrier*/, unsigned /*parity*/,
                               Site /*site*/) {}

    // A box of a matrix on its way to the block's own shared memory, until the phase of the
    // mbarrier ends; and there. A box to a matrix: what is stored has been read, and counts as
    // written, when the store is asked for.
    virtual void box_load_issued(unsigned /*thread*/, void* /*shared*/, const TensorMap& /*map*/,
                                 int /*column*/, int /*row*/, const void* /*barrier*/, unsigned /*parity*/,
                                 Site /*site*/) {}
    virtual void box_loaded(const void* /*shared*/, const void* /*barrier*/, unsigned /*parity*/) {}
    virtual void box_store_issued(unsigned /*thread*/, const void* /*shared*/, const TensorMap& /*map*/,
                                  int /*column*/, int /*row*/, Site /*site*/) {}

    // All 32 lanes load matrices of 8 rows of 16 bytes; rows[8 m + i] is row i of matrix m.
    virtual void matrices_loaded(unsigned /*warp*/, const void* const* /*rows*/, unsigned /*matrices*/,
                                 Site /*site*/) {}
    // The same, and they are stored.
    virtual void matrices_stored(unsigned /*warp*/, const void* const* /*rows*/, unsigned /*matrices*/,
                                 Site /*site*/) {}
};

// Watches launches and memory. Calls may come from several OS threads at once.
class LaunchObserver {
  public:
    virtual ~LaunchObserver() = default;

    virtual void begin_launch(LaunchState& /*launch*/) {}
    // The watcher of this block on the calling OS thread; null: it is not watched.
    virtual BlockObserver* watch(LaunchState& /*launch*/, uint3 /*block*/) { return nullptr; }
    virtual void end_launch(LaunchState& /*launch*/) {}
    // The first failure of the launch; `message` as it is printed. Line 0: the message has the
    // place, or it is not known.
    virtual void launch_failed(LaunchState& /*launch*/, cudaError_t /*error*/, const std::string& /*message*/,
                               Site /*site*/) {}
};

// Watches memory from the program's beginning to its end, in programs that are linked with the
// inspector. Calls may come from several OS threads at once, with locks of the runtime held: they
// must not call back.
class MemoryObserver {
  public:
    virtual ~MemoryObserver() = default;

    // `host_may_write`: pinned or managed memory.
    virtual void memory_allocated(void* memory, std::size_t size, bool host_may_write) = 0;
    virtual void memory_freed(void* memory) = 0;
    // By cudaMemset or cudaMemcpy, or by a bulk store of a block that nobody watches; called
    // without locks.
    virtual void memory_written(void* memory, std::size_t size) = 0;
    // A kernel that nobody watches is launched: it may write anywhere.
    virtual void unwatched_launch() = 0;
};

// Set by the inspector while it watches.
extern constinit LaunchObserver* launch_observer;
// Set by the inspector when the program begins.
extern constinit MemoryObserver* memory_observer;

}  // namespace cuda_on_cpu

// Checks every access of a kernel: races, bounds, alignment, reads of unwritten memory, and copies
// that were not waited for. There is one BlockChecks for each OS thread; LaunchChecks has the state
// that the blocks of a launch share.
//
// Blocks that are not watched are processed as far as the watched ones need it: their writes mark
// memory as written, and their atomic accesses pass on the clocks of other blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/thread.h"
#include "findings.hpp"
#include "footprints.hpp"
#include "launch_state.hpp"
#include "observer.hpp"
#include "patterns.hpp"
#include "races.hpp"
#include "shadow.hpp"
#include "trace.hpp"
#include "transactions.hpp"
#include "variable_gaps.hpp"
#include "vector_types.h"

namespace cuda_on_cpu::inspector {

// The number of blocks in a cluster, and the number of a block's cluster in the grid. Without
// clusters each block is a cluster.
std::uint64_t blocks_together(const LaunchConfiguration& launch);
std::uint64_t cluster_of(uint3 block, const LaunchConfiguration& launch);

// An allocation, and the set of its written bytes.
struct DeviceMemory {
    Address begin = 0;
    std::size_t size = 0;
    bool freed = false;
    // Null: all bytes count as written.
    std::unique_ptr<WrittenBytes> written;
};

// State that the blocks of one launch share.
class LaunchChecks {
  public:
    explicit LaunchChecks(const LaunchState& launch);

    Findings& findings() { return findings_; }
    void failed(cudaError_t error, const std::string& message, Site site);

    // Returns the next free number for a watched block.
    unsigned number(std::array<unsigned, 3> block);
    std::array<unsigned, 3> block(unsigned number) const;

    GlobalShadow::Generation generation() const { return generation_; }
    // An earlier launch beside which this one may run, and what its findings need.
    struct EarlierLaunch {
        GlobalShadow::Generation generation = 0;
        std::string kernel;
        dim3 shape;
        std::vector<std::array<unsigned, 3>> blocks;
    };
    // The copy of the kernel's arguments that all threads read.
    const void* arguments() const { return arguments_; }
    // In the order of their addresses.
    const std::vector<GuardedVariable>& variables() const { return variables_; }
    const EarlierLaunch* beside() const { return beside_ ? &*beside_ : nullptr; }
    const std::string& kernel() const { return kernel_; }
    // Are there clusters of several blocks, which access each other's shared memory?
    bool clusters() const { return clusters_; }
    // Calls `change` under a lock with the clocks that the blocks of that cluster have released at
    // its barriers.
    using BlockPhases = Phases<const BlockClocks>;
    void at_cluster_barrier(std::uint64_t cluster, const std::function<void(BlockPhases&)>& change);
    // The same for the clocks that other blocks have released at an mbarrier.
    void at_mbarrier(const void* barrier, const std::function<void(BlockPhases&)>& change);
    // The last access of a thread to the shared memory of another block of its cluster.
    struct AccessInCluster {
        unsigned block;  // its number among the watched blocks
        unsigned thread;
        Epoch epoch;
        Party party;
        std::string what;
        // The phase of the cluster's barrier in which the thread has arrived since; ~0: in none.
        unsigned phase = ~0U;
    };
    // For each block of a cluster, by its rank: who has accessed its shared memory, and whether it
    // has ended.
    struct SharedInCluster {
        std::vector<AccessInCluster> accesses;
        bool ended = false;
    };
    using ClusterAccesses = std::array<SharedInCluster, 16>;
    void with_accesses(std::uint64_t cluster, const std::function<void(ClusterAccesses&)>& change);
    // Takes over the footprint of a block of the launch.
    void add_footprint(Footprint&& of_block);
    // At the end of the launch: looks for races with other launches.
    void end();
    // For a block that begins; std::nullopt if the order of the streams is not known.
    std::optional<Footprint> new_footprint() const;
    // False: the kernels accessed more device memory than fits into the shadow memory.
    static bool all_memory_watched();
    std::atomic<bool> any_fence{false};

  private:
    Findings findings_;
    GlobalShadow::Generation generation_;
    bool clusters_;
    std::string kernel_;
    std::uint64_t number_of_launch_;
    dim3 shape_;
    std::optional<EarlierLaunch> beside_;
    const void* arguments_;
    std::vector<GuardedVariable> variables_;
    mutable std::mutex mutex_;
    std::vector<std::array<unsigned, 3>> blocks_;
    std::unordered_map<std::uint64_t, BlockPhases> at_clusters_;
    std::unordered_map<const void*, BlockPhases> at_mbarriers_;
    std::unordered_map<std::uint64_t, ClusterAccesses> in_clusters_;
    // Null: the order of the streams is not known.
    std::shared_ptr<Footprint> footprint_;
};

// The only T of this OS thread. The main thread's object is destroyed before static objects of the
// program, which may launch kernels: these get a second object.
template <class T>
T& only_of_this_thread() {
    static constinit thread_local T* only = nullptr;
    static constinit thread_local bool has_ended = false;
    struct Owner {
        T object;
        ~Owner() {
            only = nullptr;
            has_ended = true;
        }
    };
    if (only != nullptr) return *only;
    if (has_ended) return *(only = new T);
    static thread_local const auto owner = std::make_unique<Owner>();
    return *(only = &owner->object);
}

// Keeps plain loads of device memory that can only be wrong by a race, until BlockChecks asks for
// them: before an event that may change their order.
class UncheckedLoads {
  public:
    virtual ~UncheckedLoads() = default;
    // Passes all of them on to BlockChecks::note_load() or note_loads().
    virtual void hand_over() = 0;
};

class BlockChecks final : private SharedSink, private GlobalSink {
  public:
    // The checks of this OS thread.
    static BlockChecks& of_this_thread();
    BlockChecks();
    ~BlockChecks() override;

    void begin_block(LaunchChecks& launch, const LaunchState& state, uint3 block, bool watched);
    void begin_watched_block(void* dynamic_shared, std::size_t size, UncheckedLoads& unchecked);
    void end_block();
    // At the end of the launch: each OS thread drops its state of it.
    static void forget_everywhere(const LaunchChecks& launch);

    // An access of the running thread. `aligned`: the instruction needs an address that is a
    // multiple of its size.
    void access(AccessKind kind, const volatile void* address, std::size_t bytes, Place place, bool aligned) {
        const auto byte = reinterpret_cast<Address>(address);
        if (byte - stacks_begin_ < stacks_size_) return;  // a thread's own variables
        if (!watched_) {
            if (launch_ != nullptr && writes(kind)) check(kind, byte, bytes, place, aligned);
            return;
        }
        if (touches_) touch(kind, byte, static_cast<unsigned>(bytes), place);
        if (is_usual(kind, byte, bytes, place) || is_usual_of_shared(kind, byte, bytes, place)) return;
        check(kind, byte, bytes, place, aligned);
    }
    // Can an aligned plain load by that instruction from [begin, begin + size) only be wrong by a
    // race? Then it may be noted later. settle() is due at once.
    bool can_only_race(Place place, Address begin, std::size_t size) const {
        const Piece& piece = pieces_[place];
        return watched_ && !touches_ && piece.usable && piece.begin == begin && piece.size == size;
    }
    // Such a load: of one thread; of all lanes of a warp, if have_one_epoch().
    void note_load(unsigned thread, Action action, Address address);
    void note_loads(unsigned warp, Action action, const Addresses& addresses,
                    std::span<const LaneGroup> groups);
    bool have_one_epoch(unsigned warp) const { return order_.have_one_epoch(warp); }
    // Finishes those checks of the last access that needed its result. `next`: what comes now.
    void settle(AccessKind next = AccessKind::store) {
        if (!second_writes_.empty() || volatile_load_ != 0) settle_last_access(next);
    }
    // To be called before and after an atomic access is performed. `memory_order` is the compiler's
    // number.
    void before_atomic(AccessKind kind, const volatile void* address, unsigned bytes, int memory_order,
                       Place place);
    void after_atomic(AccessKind kind, const volatile void* address, int memory_order);
    // A plain load of the word by this thread that nothing else has followed but plain accesses
    // only gives the value with which the word is compared, so it is no access of its own.
    void before_compare_and_swap(const volatile void* address, unsigned bytes);
    // An exchange with a number, which is not 0, reads only if exchange_used() follows.
    void before_exchange(unsigned number) {
        takes_lock_ = true;
        exchange_ = number;
    }
    void exchange_used(unsigned number) {
        if (!unwritten_exchanges_.empty()) note_exchange(number);
    }
    // Volatile accesses order as relaxed atomic ones do, but two of them conflict. With
    // CUDA_ON_CPU_VOLATILE=atomic they count as atomic.
    void volatile_access(AccessKind kind, const volatile void* address, unsigned bytes, Place place);
    // `for_other_blocks`: true for __threadfence(), false for __threadfence_block().
    void fence(bool for_other_blocks);

    // Events of a watched block. Events of other blocks, and those that do not order anything, are
    // ignored.
    void notify(const Event& event);

  private:
    enum class Memory : std::uint8_t {
        nothing,
        static_shared,
        dynamic_shared,
        of_cluster,
        device,
        variables,
        constants,  // variables that are const
        host
    };
    static bool is_shared(Memory memory) {
        return memory == Memory::static_shared || memory == Memory::dynamic_shared;
    }
    struct Page {
        Address number = ~Address{0};
        DeviceMemory* device = nullptr;
        Memory memory = Memory::nothing;
    };
    struct Piece {
        DeviceMemory* device = nullptr;
        Address begin = 0;
        std::size_t size = 0;
        // The last address that was accessed.
        Address last = 0;
        // The memory exists, and all of it has been written.
        bool usable = false;
    };
    // A second plain write to a word, by another thread and unordered with the first. It is a race
    // only if it changes the value.
    struct SecondWrite {
        Access access;
        Earlier earlier;
        Address where = 0;
        std::array<unsigned char, 4> before{};
        unsigned bytes = 0;
    };
    struct Copy {
        Address shared;
        unsigned bytes;
        unsigned group;
    };
    struct Copies {
        unsigned group = 0;
        std::vector<Copy> pending;
    };

    // The fast path for device memory: an access that can only be wrong by a race. A loop usually
    // continues with the same stride, so the shadow of the next address is prefetched.
    bool is_usual(AccessKind kind, Address byte, std::size_t bytes, Place place) {
        Piece& piece = pieces_[place];
        if (!piece.usable || byte - piece.begin >= piece.size) return false;
        const Access access{running_thread(), byte, static_cast<unsigned>(bytes), kind, short_place(place)};
        if (!access.in_one_line() || piece.size - (byte - piece.begin) < bytes) return false;
        const Address next = 2 * byte - std::exchange(piece.last, byte);
        settle(kind);
        if (kind == AccessKind::load) {
            reads_.prefetch(next);
            note_read(access);
        } else {
            note_write(access, next);
        }
        return true;
    }

    // The fast path for shared memory.
    bool is_usual_of_shared(AccessKind kind, Address byte, std::size_t bytes, Place place) {
        SharedShadow::Region* region = shared_at_[place];
        if (kind != AccessKind::load || region == nullptr) return false;
        settle(kind);
        return shared_.usual_read(
            *region,
            {running_thread(), byte, static_cast<unsigned>(bytes), AccessKind::load, short_place(place)},
            order_);
    }

    static unsigned running_thread() { return current_warp * kLanes + current_lane; }
    template <class OneEvent>
    void on(const OneEvent&) {}
    void on(const event::ThreadEnded& event);
    void on(const event::SharedEntered& event);
    void on(const event::BarrierArrived& event);
    void on(const event::BarrierReleased& event);
    void on(const event::SplitBarrierArrived& event);
    void on(const event::SplitBarrierLeft& event);
    void on(const event::CollectiveCompleted& event);
    void on(const event::BlocksBarrierArrived& event);
    void on(const event::BlocksBarrierLeft& event);
    void on(const event::CopyIssued& event);
    void on(const event::CopiesCommitted& event);
    void on(const event::CopiesAwaited& event);
    void on(const event::ArrivalBarrierBegun& event);
    void on(const event::ArrivalBarrierArrived& event);
    void on(const event::ArrivalBarrierCompleted& event);
    void on(const event::ArrivalBarrierLeft& event);
    void on(const event::CopiesAttached& event);
    void on(const event::MbarrierArrived& event);
    void on(const event::RemoteMbarrierArrived& event);
    void on(const event::MbarrierLeft& event);
    void on(const event::BoxLoadIssued& event);
    void on(const event::BoxLoaded& event);
    void on(const event::BoxStoreIssued& event);
    void on(const event::PreviousGridAwaited& event);
    void on(const event::ProxyFenced& event);
    void on(const event::BulkRead& event);
    void on(const event::MatricesLoaded& event);
    void on(const event::MatricesStored& event);

    void check(AccessKind kind, Address byte, std::size_t bytes, Place place, bool aligned);
    void check_by(unsigned thread, AccessKind kind, Address byte, std::size_t bytes, Place place,
                  bool aligned);
    void check_rows(AccessKind kind, unsigned warp, const void* const* rows, unsigned matrices, Site site);
    void check_box(unsigned thread, AccessKind kind, const TensorMap& map, int column, int row, Place place);
    void check_shared(SharedShadow::Region& region, const Access& access, bool aligned);
    bool inside_variable(const Access& access, bool aligned);
    bool is_lent(Address byte) const;
    void report_host(const Access& access);
    void check_device(DeviceMemory& memory, const Access& access, bool aligned);
    bool inside_shared(SharedShadow::Region& region, const Access& access, bool aligned);
    // Accesses to the shared memory of other blocks of the cluster have to be ordered before these
    // blocks end.
    void note_in_cluster(const Access& access);
    void end_in_cluster();
    void arrive_in_cluster(unsigned thread, unsigned phase);
    void hand_over_in_cluster(unsigned thread);
    void report_exit(const LaunchChecks::AccessInCluster& access, unsigned rank);
    const Page& page(Address byte);
    Page page_for(Address byte, Place place);
    Page look_up(Address byte);
    void complete_copies(unsigned thread, unsigned end_of_groups);
    void fence_to_release(unsigned thread, bool for_other_blocks);
    void acquire_loaded();
    void acquire_loaded(unsigned thread);
    // Only what atomic accesses other than those that take a lock have loaded, of other words.
    void acquire_flags(unsigned thread, Address except);
    void keep_loaded_for_block();
    // Would the thread be ordered after it if it had fenced?
    bool has_loaded(unsigned thread, const Earlier& earlier);
    void pass_on(unsigned thread);
    void share_loaded(unsigned warp, LaneMask lanes);
    bool orders_blocks(Address byte);
    void settle_last_access(AccessKind next);
    void note_device_access(const Access& access);
    // Reads are collected until an event may change their order, because recording those of one
    // line together costs little more than recording one.
    void note_read(const Access& access) {
        const Epoch epoch = order_.epoch(access.thread);
        const auto block = static_cast<std::uint16_t>(others_.number());
        if (!reads_.add(access, epoch, block)) note_others_for(access, epoch, block);
    }
    // Records the access for the detection of races with other launches.
    [[gnu::noinline]] void touch(AccessKind kind, Address byte, unsigned bytes, Place place);
    // The thread has not waited for the previous grid: see LaunchChecks::EarlierLaunch.
    void compare_with_earlier_launch(AccessKind kind, Address byte, std::size_t bytes, Place place);
    void note_read(const Run& reads, Address line) {
        if (!reads_.add(reads, line)) note_others_for(reads, line);
    }
    [[gnu::noinline]] void note_others_for(const Access& read, Epoch epoch, std::uint16_t block);
    [[gnu::noinline]] void note_others_for(const Run& reads, Address line);
    void hand_over_loads() {
        if (unchecked_ != nullptr) unchecked_->hand_over();
    }
    void note_write(const Access& access, Address next);
    void note_reads();
    void note_load_races();
    void note_short_reads();
    void note_exchange(unsigned number);
    void note_in_turn(const Run& run, Address line);
    void note_second_writes();
    // `after(word)` returns the bytes that are in memory now, or will be after the store.
    void settle_second_writes(const std::function<const void*(const SecondWrite&)>& after);

    void race(const Access& access, const Earlier& earlier, Address where) override;
    void uninitialised(const Access& access, Address where) override;
    void missing_wait(const Access& access, const Earlier& copy, Address where) override;
    void note_race(const Access& access, const Earlier& earlier, Address where);
    void report(const char* kind, const Access& access, const std::string& message,
                const Earlier* earlier = nullptr);
    Party party(unsigned thread, ShortPlace place) const;
    std::array<unsigned, 3> index(unsigned thread) const;
    std::string describe(Address where);

    LaunchChecks* launch_ = nullptr;
    // Of the running block.
    std::optional<Footprint> footprint_;
    const LaunchChecks::EarlierLaunch* beside_ = nullptr;
    bool touches_ = false;  // either of the two
    // Threads that have waited for the grid of beside_, and in which epoch; and for each thread: it
    // has waited, or an order leads from one that has to it.
    std::vector<std::pair<unsigned, Epoch>> waits_;
    std::vector<bool> waited_;
    bool watched_ = false;
    std::array<unsigned, 3> block_{};
    dim3 shape_{1, 1, 1};
    unsigned threads_ = 0;
    const void* grid_barrier_ = nullptr;
    GlobalShadow::Generation generation_ = 0;

    Address stacks_begin_ = 0;
    Address stacks_size_ = 0;
    static constexpr std::size_t kPages = 256;
    static constexpr std::size_t kPageBytes = 4096;
    ByPlace<Piece> pieces_;
    std::array<Page, kPages> pages_;
    // Recently looked-up allocations.
    RecentlyUsed<DeviceMemory*> recent_;
    Address static_begin_ = ~Address{0};
    Address static_end_ = 0;
    SharedShadow::Region* dynamic_ = nullptr;

    BlockOrder order_;
    GridOrder others_;
    SharedShadow shared_;
    // The array of the running block that the instruction has accessed last.
    ByPlace<SharedShadow::Region*> shared_at_;
    PendingReads reads_;
    UncheckedLoads* unchecked_ = nullptr;  // while a watched block runs
    // The next reads to record, and their lines.
    std::array<std::pair<Run, Address>, 8> in_turn_{};
    std::size_t next_in_turn_ = 0;
    // The clocks that the block's atomic accesses have released, by address.
    std::unordered_map<Address, SharedClock> atomics_;
    // The clocks of other blocks at the addresses that a thread has read with relaxed operations.
    // They are acquired at its next fence.
    struct Loaded {
        SharedBlockClocks clocks;
        bool of_lock = false;
    };
    using LoadedAt = std::map<std::pair<unsigned, Address>, Loaded>;
    LoadedAt loaded_;
    std::pair<LoadedAt::iterator, LoadedAt::iterator> loaded_by(unsigned thread) {
        return {loaded_.lower_bound({thread, 0}), loaded_.lower_bound({thread + 1, 0})};
    }
    // What threads of the block have read so before a barrier of the block, and which threads have
    // acquired it since.
    struct LoadedBeforeBarrier {
        SharedBlockClocks clocks;
        std::vector<bool> acquired_by;
        bool acquired = false;

        void acquire(unsigned thread, GridOrder& order);
    };
    void keep_for_block(const Loaded& loaded);
    enum { kFlags, kLocks };
    std::array<LoadedBeforeBarrier, 2> loaded_before_barrier_;
    // May the next atomic access take a lock: is it a compare-and-swap or an exchange? Was each
    // thread's last one that read?
    bool takes_lock_ = false;
    unsigned exchange_ = 0;
    // Exchanges of unwritten memory of which no use is known so far.
    struct UnwrittenExchange {
        unsigned number;
        Access access;
        Address where;
    };
    std::vector<UnwrittenExchange> unwritten_exchanges_;
    std::vector<bool> took_lock_;
    bool split_barrier_ = false;
    Site barrier_site_{"", 0};
    // The number of the block's cluster in the grid.
    std::uint64_t cluster_ = 0;
    unsigned cluster_phase_ = ~0U;
    // For each other block of the cluster and each thread, the epoch of the last access noted.
    std::map<std::pair<unsigned, unsigned>, Epoch> in_cluster_;
    std::vector<Copies> copies_;
    // For each thread, the epochs in which it has called fence.proxy.async: the last few.
    static constexpr std::size_t kMostProxyFences = 16;
    std::map<unsigned, std::vector<Epoch>> proxy_fences_;
    // For each copy engine, the thread that issued its last copy.
    std::array<unsigned, BlockOrder::kCopyEngines> issued_by_{};
    // Number of barriers that the block has passed.
    unsigned barriers_ = 0;
    unsigned ended_after_a_barrier_ = 0;
    // Of the last access, one for each of its words.
    std::vector<SecondWrite> second_writes_;
    bool second_writes_waited_ = false;  // for one load
    // Races of plain loads of shared memory with atomic accesses: none if a compare-and-swap
    // follows.
    struct LoadRace {
        Access access;
        Earlier earlier;
        Address where;
    };
    std::vector<LoadRace> load_races_;
    // Plain loads of two bytes of device memory, which are recorded before the next store of part
    // of a word: none if a compare-and-swap follows. Of whole words: reads_.
    std::vector<Access> short_reads_;
    // The address of the last access, if that was a volatile load.
    Address volatile_load_ = 0;
};

// For the hooks: null unless a block of a launch under inspection runs on this OS thread.
extern constinit thread_local BlockChecks* checking;

}  // namespace cuda_on_cpu::inspector

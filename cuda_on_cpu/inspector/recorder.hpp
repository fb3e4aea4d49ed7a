// Records the accesses of the threads of one block event by event, and counts them warp by warp.
// There is one recorder for each OS thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "convergence.hpp"
#include "cuda_on_cpu/thread.h"
#include "launch_state.hpp"
#include "observer.hpp"
#include "trace.hpp"
#include "transactions.hpp"

namespace cuda_on_cpu::inspector {

// The sectors of an allocation that one launch has accessed, by blocks on any OS thread.
class SectorSet {
  public:
    explicit SectorSet(std::uint64_t sectors) : words_((sectors + 63) / 64) {}
    // `first` is the number of the allocation's first sector.
    void insert(std::span<const std::uint64_t> sectors, std::uint64_t first);
    std::uint64_t count() const;

  private:
    std::vector<std::atomic<std::uint64_t>> words_;
};

// Memory that a kernel may access. Counts use the addresses a GPU would have: there allocations are
// aligned to 256 bytes, here to 16.
struct Region {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t gpu_begin = 0;
    unsigned array = 0;  // its number in LaunchRecord::arrays
    // For global memory; created when first needed.
    mutable std::atomic<SectorSet*> read{nullptr};
    mutable std::atomic<SectorSet*> written{nullptr};

    Region() = default;
    Region(std::uint64_t from, std::uint64_t to, std::uint64_t gpu, unsigned number)
        : begin(from), end(to), gpu_begin(gpu), array(number) {}
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region();
    bool holds(std::uint64_t byte) const { return byte >= begin && byte < end; }
};

// An action on one array: accesses with the same key are counted together.
struct LineKey {
    std::uint64_t action;  // Action::word()
    unsigned array;

    bool operator==(const LineKey&) const = default;
    std::size_t hash() const { return (action ^ std::uint64_t{array} << 56) * 0x9E3779B97F4A7C15U >> 20; }
};
struct HashOfLineKey {
    std::size_t operator()(const LineKey& key) const { return key.hash(); }
};

// The counts for one key in one launch: AccessLine without its line.
struct LineCount {
    std::uint64_t requests = 0;
    std::uint64_t transactions = 0;
    std::uint64_t ideal = 0;
    std::uint64_t active_lanes = 0;
    std::uint64_t bytes_used = 0;
    WorstRequest worst;
    // Its number in the grid.
    std::uint64_t worst_block = 0;

    void add(const LineCount& other);
};
using LineCounts = std::unordered_map<LineKey, LineCount, HashOfLineKey>;

// TraceStep without its names.
struct RawStep {
    enum class Kind : std::uint8_t {
        kRequest,
        kBarrier,
        kCollective,
        kArrival,
        kWait,
        kBlocksBarrier,
        kBulkLoad,
        kBulkStore
    };

    Kind kind = Kind::kRequest;
    Action action;  // of a step that is no request, only the place
    LaneMask lanes = 0;
    unsigned repeats = 0;
    unsigned bulk_bytes = 0;
    unsigned transactions = 0;
    unsigned ideal = 0;
    std::uint64_t array_begin = 0;  // of a GPU, as are the addresses
    unsigned array = 0;
    Addresses addresses{};
};

// The steps of one warp; the first few are recorded.
struct RawTrace {
    std::uint64_t steps = 0;
    // Of the recorded steps.
    unsigned requests = 0;
    std::vector<RawStep> recorded;
    // The number of recorded steps that are alike: kind, action, lanes, transactions, array.
    std::map<std::tuple<RawStep::Kind, std::uint64_t, LaneMask, unsigned, unsigned>, unsigned> alike;
};

// The trace of a launch: of the inspected warps the one with the most recorded requests, the first
// of these, as the inspector chooses among launches. So it is seldom a warp at an edge, which has
// less to do than others.
struct LaunchTrace {
    std::mutex mutex;
    std::uint64_t block_number = ~std::uint64_t{0};
    std::array<unsigned, 3> block{};
    unsigned warp = 0;
    RawTrace trace;
};

// One launch under inspection.
struct LaunchRecord {
    std::size_t number = 0;
    std::string kernel;
    unsigned threads_per_block = 0;
    std::size_t dynamic_shared = 0;
    std::size_t static_shared = 0;
    std::uint64_t blocks = 0;
    std::uint64_t inspected_blocks = 0;
    std::uint64_t unique_read_bytes = 0;
    std::uint64_t unique_written_bytes = 0;
    std::uint64_t barriers = 0;
    std::uint64_t dropped_accesses = 0;
    bool all_memory_watched = true;
    std::vector<std::unique_ptr<Region>> global;  // in the order of their addresses
    // Names of arrays: "tile", "in", or "allocation of 4096 bytes". Names of shared arrays are
    // added when a block first reaches their declarations.
    std::vector<std::string> arrays;
    // For the array of each region: where in the allocation the parameter that names it points. A
    // trace counts bytes from there, so that in[0] is at 0 behind a guard zone, too.
    std::vector<std::uint64_t> named_at;
    // Index of the region, and array, of the `__device__` variables.
    unsigned variables = 0;
    std::mutex arrays_mutex;
    LineCounts lines;
    std::unique_ptr<LaunchChecks> checks;
    // 0: no trace is wanted.
    unsigned trace_steps = 0;
    unsigned trace_alike = 0;
    LaunchTrace trace;
};

class Recorder final : public BlockObserver, private UncheckedLoads {
  public:
    // The recorder of this OS thread.
    static Recorder& of_this_thread();

    Recorder();
    ~Recorder() override;
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // An access of the running thread, which is in a watched block.
    void access(Operation operation, const volatile void* address, unsigned bytes, Place place) {
        const auto byte = reinterpret_cast<std::uint64_t>(address);
        if (byte - stacks_begin_ < stacks_size_) return;  // a thread's own variables
        if (const Piece& piece = pieces_[place]; byte - piece.begin < piece.size) {
            note(running_thread(), Action(place, piece.space, operation, bytes), byte);
        } else {
            access_anywhere(Action(place, Space::kGlobal, operation, bytes), byte);
        }
    }
    // The fast path of plain loads from device memory, which are checked later, a warp's together.
    // Returns false if the load is of another kind.
    bool note_usual_load(const volatile void* address, unsigned bytes, Place place) {
        const auto byte = reinterpret_cast<std::uint64_t>(address);
        const Piece& piece = pieces_[place];
        if (!piece.can_only_race || byte - piece.begin > piece.size - bytes || byte % bytes != 0)
            return false;
        checks_.settle(AccessKind::load);
        Warp& warp = warp_[current_warp];
        if (warp.traces == nullptr) give_traces(warp);
        warp.unchecked = true;
        const Action action(place, Space::kGlobal, Operation::kLoad, bytes);
        return (*warp.traces)[current_lane].note({action, byte | kUnchecked});
    }
    // An access with a size or alignment that no single instruction supports: counts as several
    // instructions.
    void access_range(Operation operation, const volatile void* address, std::size_t bytes, Place place);
    // If the last event of the running thread was an atomic load of this address, removes it:
    // together with the write that follows, it is one operation.
    void take_back_atomic_load(const volatile void* address);

    void begin_block(LaunchState& launch, uint3 block, void* dynamic_shared, std::size_t size) override;
    void notify(const Event& event) override;
    void end_block() override;

    // Adds the counts of a launch that has ended to its record, and clears them: those of the
    // recorders of all OS threads that still run.
    static void deliver_all(LaunchRecord& record);

  private:
    void deliver(LaunchRecord& record);

    enum class Kind : std::uint8_t { kNothing, kGlobal, kDynamicShared, kStaticShared, kVariables };
    // The contents of one page of memory. A page with static `__shared__` variables may contain
    // others, too.
    struct Page {
        std::uint64_t number = ~std::uint64_t{0};
        const Region* region = nullptr;
        Kind kind = Kind::kNothing;
    };
    // An allocation, or an array in shared memory.
    struct Piece {
        std::uint64_t begin = 0;
        std::uint64_t size = 0;
        Space space = Space::kGlobal;
        // Plain loads can only be wrong by a race.
        bool can_only_race = false;
    };
    // The events of a lane: a vector whose fast path needs only two pointers.
    class LaneTrace {
      public:
        // Returns false if there are too many.
        bool note(const TraceEntry& event) {
            if (end_ == limit_ && !grow()) return false;
            *end_++ = event;
            return true;
        }
        void clear() {
            end_ = events_.get();
            handed_over_ = 0;
        }
        bool empty() const { return end_ == events_.get(); }
        TraceEntry& last() { return end_[-1]; }
        void forget_last() { --end_; }
        Trace events() const { return {events_.get(), end_}; }
        bool none_handed_over() const { return handed_over_ == 0; }
        // Those since the last call.
        Trace not_handed_over() {
            const Trace all = events();
            return all.subspan(std::exchange(handed_over_, all.size()));
        }

      private:
        [[gnu::noinline]] bool grow();

        std::unique_ptr<TraceEntry[]> events_;
        TraceEntry* end_ = nullptr;
        TraceEntry* limit_ = nullptr;
        std::size_t handed_over_ = 0;
    };
    using WarpTraces = std::array<LaneTrace, kLanes>;
    struct Warp {
        LaneMask live = 0;
        // Lanes that wait at a barrier of the block.
        LaneMask waiting = 0;
        // Lanes that were live when the traces began.
        LaneMask began = 0;
        // May there be loads among the events that BlockChecks has not got yet?
        bool unchecked = false;
        // Null if there are no events.
        std::unique_ptr<WarpTraces> traces;
    };
    // A collective of some of a warp's lanes. It is a step of the trace once converge() has come to
    // it with all of them.
    struct PendingStep {
        RawStep step;
        LaneMask missing = 0;
    };
    // What is recorded of one warp.
    struct TracedWarp {
        RawTrace trace;
        // Where each lane has last arrived at a barrier or a collective.
        std::array<Place, kLanes> waits_at{};
        // A sync point of a collective has the number of its step here, plus 1, as its address in
        // the trace of a lane.
        std::vector<PendingStep> pending;
        // A load or store of matrices whose collective has not completed.
        std::vector<RawStep> of_matrices;
    };

    static unsigned running_thread() { return current_warp * kLanes + current_lane; }
    // In the address of a load: note_usual_load() has noted it.
    static constexpr unsigned kUncheckedBit = 62;
    static constexpr std::uint64_t kUnchecked = std::uint64_t{1} << kUncheckedBit;
    // An event of all lanes of a warp.
    struct AtOnce {
        AtOnce(const Traces& traces, std::size_t event);

        Action action;
        Addresses addresses;
        // Lanes whose load BlockChecks has not got yet.
        LaneMask unchecked = 0;
    };
    void hand_over() override;
    void hand_over(unsigned warp);
    void hand_over(unsigned warp, const AtOnce& all);
    const Pattern& pattern(const AtOnce& all, const Region& region);

    // Other events do not change any count.
    template <class OneEvent>
    void on(const OneEvent&) {}
    void on(const event::ThreadEnded& event);
    void on(const event::SharedEntered& event);
    void on(const event::BarrierArrived& event);
    void on(const event::BarrierReleased& event);
    void on(const event::SplitBarrierArrived& event);
    void on(const event::CollectiveArrived& event);
    void on(const event::CollectiveCompleted& event);
    void on(const event::BlocksBarrierArrived& event);
    void on(const event::ArrivalBarrierArrived& event);
    void on(const event::ArrivalBarrierLeft& event);
    void on(const event::MbarrierLeft& event);
    void on(const event::CopyIssued& event);
    void on(const event::BoxLoadIssued& event);
    void on(const event::BoxStoreIssued& event);
    void on(const event::MatricesLoaded& event);
    void on(const event::MatricesStored& event);

    // Returns the region that contains the byte; null if it is not in memory that is counted.
    const Region* find(std::uint64_t byte, Space& space) {
        Page& page = pages_[byte / kPageBytes % kPages];
        if (page.number != byte / kPageBytes) page = look_up(byte);
        const bool global = page.kind == Kind::kGlobal || page.kind == Kind::kVariables;
        space = global ? Space::kGlobal : Space::kShared;
        if (page.kind == Kind::kStaticShared) return find_static(byte);
        return page.kind == Kind::kVariables && is_constant(byte) ? nullptr : page.region;
    }
    const Region* find_static(std::uint64_t byte) const;
    static bool is_constant(std::uint64_t byte);
    Page look_up(std::uint64_t byte);
    void note(unsigned thread, Action action, std::uint64_t byte) {
        Warp& warp = warp_[thread / kLanes];
        if (warp.traces == nullptr) give_traces(warp);
        if (!(*warp.traces)[thread % kLanes].note({action, byte})) ++dropped_;
    }
    [[gnu::noinline]] void access_anywhere(Action action, std::uint64_t byte);
    Piece piece_of(const Region& region, Space space, Place place) const;
    [[gnu::noinline]] void give_traces(Warp& warp);
    void finish_warp(unsigned number);
    // Record a step of a warp, if the block is traced.
    void note_wait(unsigned thread, Site site);
    void trace_wait(unsigned warp, RawStep::Kind kind, LaneMask lanes);
    void trace_step(unsigned warp, const RawStep& step);
    void postpone(unsigned warp, LaneMask lanes);
    void pass_sync_point(unsigned warp, unsigned lane, const TraceEntry& event);
    void note_step(unsigned thread, RawStep::Kind kind, Action action, Site site, std::size_t bulk_bytes = 0);
    void trace_noted(unsigned warp, LaneMask lanes, const TraceEntry& event);
    void keep_trace();
    void count(unsigned warp, AtOnce& all);
    void count(unsigned warp, Action action, LaneMask mask, Addresses& bytes);
    static void note_sectors(Operation operation, const Region& region, const Sectors& sectors);
    void add_matrices(unsigned warp, const void* const* rows, unsigned matrices, Operation operation,
                      Site site);
    // `of_matrices`: of a collective, and traced when that completes.
    void add(unsigned warp, Action action, LaneMask mask, const Count& count, const Region& region,
             const Addresses& gpu_addresses, bool of_matrices = false);

    static constexpr std::size_t kPages = 256;
    static constexpr std::size_t kPageBytes = 4096;
    // The most events of one thread between two waits.
    static constexpr std::size_t kMaxEvents = std::size_t{1} << 18;

    BlockChecks& checks_ = BlockChecks::of_this_thread();
    LaunchRecord* launch_ = nullptr;
    uint3 block_{0, 0, 0};
    std::uint64_t block_number_ = 0;
    unsigned warps_ = 0;
    std::array<Warp, 32> warp_;
    std::vector<std::unique_ptr<WarpTraces>> idle_traces_;

    // The stacks of the block's threads: [begin, begin + size).
    std::uint64_t stacks_begin_ = 0;
    std::uint64_t stacks_size_ = 0;
    ByPlace<Piece> pieces_;
    std::array<Page, kPages> pages_;
    // Regions whose pages were looked up recently.
    RecentlyUsed<const Region*> recent_;
    Region dynamic_shared_;
    std::vector<std::unique_ptr<Region>> static_shared_;
    // Start of the range that contains all static shared variables.
    std::uint64_t static_begin_ = ~std::uint64_t{0};
    std::uint64_t static_end_ = 0;

    LineCount& line(const LineKey& key) {
        auto& [cached, count] = recent_lines_[key.hash() % recent_lines_.size()];
        if (count == nullptr || cached != key) {
            cached = key;
            count = &lines_[key];
        }
        return *count;
    }

    Patterns patterns_;
    LineCounts lines_;
    std::array<std::pair<LineKey, LineCount*>, 64> recent_lines_{};
    std::uint64_t barriers_ = 0;
    std::uint64_t blocks_ = 0;
    std::uint64_t dropped_ = 0;
    // One for each warp of the running block, if one of them may be the one to keep; else empty.
    std::vector<TracedWarp> traced_;
};

// The recorder, for the hooks; null unless a watched block runs on this OS thread.
extern constinit thread_local Recorder* recording;

}  // namespace cuda_on_cpu::inspector

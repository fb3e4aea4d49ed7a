// Runs the threads of one block, one after the other, on one OS thread.
//
// Lazy fibres: a CUDA thread starts on whatever fibre is at hand. If it ends without waiting for anybody, the next thread
// starts on the same stack, in a plain loop. Only a thread that waits keeps its stack, and the loop goes on on another.
//
// Which thread runs next: stay in the warp while it has a lane that can run, then go to the next warp that has one. Lanes
// and warps are taken in ascending order, or descending (CUDA_ON_CPU_ORDER): a correct kernel cannot tell.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrival_barriers.hpp"
#include "async_copies.hpp"
#include "bulk_copies.hpp"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/thread.h"
#include "fibre.hpp"
#include "launch_state.hpp"
#include "mbarrier.hpp"
#include "observer.hpp"
#include "shared_arena.hpp"
#include "warp.hpp"
#include "warpgroup_products.hpp"

namespace cuda_on_cpu {

// A time that other OS threads may read. A store costs what it costs of a plain variable.
class RelaxedTime {
  public:
    void operator=(std::chrono::steady_clock::rep time) { time_.store(time, std::memory_order_relaxed); }
    operator std::chrono::steady_clock::rep() const { return time_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::chrono::steady_clock::rep> time_{0};
};

class BlockRunner {
  public:
    BlockRunner();
    ~BlockRunner();
    BlockRunner(const BlockRunner&) = delete;
    BlockRunner& operator=(const BlockRunner&) = delete;

    // Runs one block to its end. A failure is in `launch` afterwards. `cluster` is null outside clusters.
    void run(LaunchState& launch, uint3 block, ClusterState* cluster);

    // What threads call (see thread.h).
    int barrier(BarrierKind kind, int predicate, Site site);
    void barrier_arrive(Site site);
    void barrier_wait(Site site);
    void collective(unsigned named, void* operand, CollectiveWork work, const char* name, Site site,
                    Ended ended);
    unsigned converged(const char* name, Site site);
    void yield();
    void grid_sync(Site site);
    void wait_for(BlocksBarrier& barrier, unsigned phase, const char* name, Site site);
    void cluster_arrive(Site site);
    void cluster_wait(Site site);
    void issue_copy(void* shared, const void* global, unsigned bytes, unsigned valid_bytes, Site site);
    void commit_copies();
    void wait_for_copies(unsigned pending);
    void init_arrival_barrier(const void* barrier, std::int64_t expected, Site site);
    std::uint64_t arrive_at(const void* barrier, std::int64_t count, bool leave, Site site);
    void attach_copies_to(const void* barrier, Site site);
    std::uint64_t present_phase(const void* barrier, Site site) {
        return arrival_barrier(barrier, site).phase;
    }
    void wait_for_phase(const void* barrier, std::uint64_t phase, const char* name, Site site);

    // Of compute capability 9.0 (see hopper.h; block_hopper.cpp).
    void expect_block() { loads_.clear(); }  // from here on other blocks may ask for loads to it
    void mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Site site);
    void mbarrier_inval(std::uint64_t* barrier, Site site);
    void publish_mbarriers();
    void mbarrier_arrive(std::uint64_t* barrier, unsigned bytes, Site site);
    void mbarrier_arrive_at(std::uint64_t* barrier, unsigned rank, Site site);
    void mbarrier_wait(std::uint64_t* barrier, unsigned parity, Site site);
    static constexpr unsigned kOwnBlock = ~0u;
    void load_box(void* shared, const CUtensorMap* map, int column, int row, std::uint64_t* barrier,
                  unsigned rank, Site site);
    void store_box(const CUtensorMap* map, int column, int row, const void* shared, Site site);
    void commit_stores() { stores_.commit(thread_number()); }
    void wait_for_stores(unsigned pending, bool until_written, Site site);
    void fence_proxy_async();
    // Without waiting it only arrives.
    void named_barrier(unsigned id, unsigned threads, Site site, bool waits = true);
    void mbarrier_expect(std::uint64_t* barrier, int bytes, Site site);
    bool mbarrier_test(std::uint64_t* barrier, unsigned parity, Site site);
    WarpgroupProducts& products();
    void wait_for_warpgroup(unsigned pending,
                            Site site);  // until its other warps have started what this one waits for
    void wake_warpgroup();
    bool shared_of_cluster(const void* pointer);
    std::size_t shared_window_address(const void* pointer, Site site);
    void* shared_window_pointer(std::uint64_t address, std::size_t bytes, Site site);
    [[noreturn]] void exit_thread();

    [[noreturn]] void fail(cudaError_t error, const std::string& message, Site site);

    bool running() const { return launch_ != nullptr; }
    bool is_seen_running() const { return seen_launch_ != nullptr; }  // asked by other OS threads
    void reverse_order() { descending_ = !descending_; }
    // Asked by other OS threads: has a block of `launch` that runs here done nothing but poll memory, or wait for other blocks, for that
    // long? True if none runs here.
    bool only_polls(const LaunchState& launch, std::chrono::steady_clock::rep now,
                    std::chrono::steady_clock::rep duration) const;
    LaunchState& launch() const { return *launch_; }
    ClusterState& cluster();  // a block outside clusters is a cluster of its own
    unsigned live_threads() const { return live_threads_; }
    std::string where() const;  // "block (0,0,0), thread (5,0,0)"
    // The place in the kernel for which the runtime reads memory at this moment; line 0: for none.
    Site take_reading_site() { return std::exchange(reading_site_, Site{"", 0}); }
    bool in_stack_guard(const void* address) const { return stacks_.in_guard_page(address); }
    // The one below the stack of the running thread, where what a stack has no room for would be?
    bool below_stack(const void* address) const { return address < current_fibre_->stack_bottom; }
    const FibreStacks& stacks() const { return stacks_; }
    BlockObserver* observer() const { return observer_; }
    dim3 shape() const { return shape_; }

    const SharedArena& shared() const { return shared_; }
    void* dynamic_shared_arena() const { return shared_.begin(); }
    bool in_dynamic_shared(const void* address) const { return shared_.in_arena(address); }
    void enter_shared(void* object, std::size_t size, bool poison, const char* name, std::size_t gap);

  private:
    struct Thread {
        Fibre* fibre = nullptr;  // where it is suspended
        const char* waits = "";  // in which function, and where in the source
        Site site{"", 0};
        BlocksBarrier* blocks_barrier = nullptr;
        unsigned phase = 0;
        unsigned block_phase = 0;  // in which it arrived, when it owes a wait
        unsigned cluster_phase = 0;
        std::uint64_t* mbarrier = nullptr;  // for which phase: its parity is in `phase`
        unsigned named_barrier = 0;
    };
    struct NamedBarrier {
        unsigned expected = 0;
        unsigned arrived = 0;
    };

    static void fibre_entry(boost::context::detail::transfer_t arrival);
    void run_threads();
    void finish_thread();
    bool pick();  // chooses the next thread into current_*; false: nobody can run
    bool pick_warp();
    void converge(Warp& warp);
    bool wake_polling();
    bool may_poll_on(std::chrono::steady_clock::rep now);
    bool any_waits(Wait wait) const;
    template <class Predicate>
    bool wake_if(Wait wait, const Predicate& over);
    bool wake_past_blocks_barriers();
    bool wait_for_other_blocks();
    bool wait_for_grid();
    bool wait_for_cluster(unsigned seen_events);
    bool refuses(Ended ended) const {
        return ended == Ended::refused || (ended == Ended::reported && observer_ != nullptr);
    }
    bool others_may_help() const;
    bool carry_out_awaited_loads();
    bool wake_past_mbarriers(const std::uint64_t* barrier);
    void wake_named_barrier(unsigned id);
    void change_own_mbarrier(std::uint64_t* barrier, unsigned arrivals, int bytes, Site site);
    MbarrierState usable_mbarrier(const std::uint64_t* barrier, Site site);
    const TensorMap& tensor_map(const CUtensorMap* map, int column, int row, const void* shared, Site site);
    std::string what_is_missing(const Thread& thread, LaneMask lane, const Warp& warp) const;
    void end_hopper_block();
    bool all_arrived_at_cluster_barrier(unsigned phase) const;
    Thread& note_wait(const char* name, Site site);
    void suspend(const char* name, Site site);
    void wait_until_woken(const char* name, Site site);
    void hand_over(Thread& self);
    Fibre& fibre_for_current();
    Fibre& free_fibre();
    void become_current();
    void count_arrival(BarrierKind kind, int predicate, Site site);
    void release_barrier();
    ArrivalBarrier& arrival_barrier(const void* barrier, Site site);
    void step_back_after_arrival();
    void complete_phase(const void* barrier, ArrivalBarrier& state);
    void set_shape(dim3 block);
    // Out of line, so that what leads to them stays short.
    [[noreturn, gnu::cold]] void fail_at_different_barrier(BarrierKind kind, Site site);
    [[noreturn, gnu::cold]] void fail_on_copy(cudaError_t error, unsigned bytes, const std::string& why,
                                              Site site);
    [[noreturn, gnu::cold]] void fail_on_mask(LaneMask mask, const char* name, Site site);
    void complete(Warp& warp, unsigned g);
    [[noreturn, gnu::cold]] void fail_in_different_collective(const Group& group, const char* name,
                                                              Site site);
    void report_deadlock();
    std::string describe_waiting() const;
    void abandon_fibres();

    unsigned thread_number() const { return current_warp_ * kWarpLanes + current_lane_; }

    // This OS thread's own: looked up once, because a look-up may be a call where code is position-independent.
    unsigned& current_lane_ = current_lane;
    unsigned& current_warp_ = current_warp;
    uint3& thread_index_ = threadIdx;
    unsigned& polls_ = polls;

    LaunchState* launch_ = nullptr;
    BlockObserver* observer_ = nullptr;  // of the block that runs; null: nobody watches
    ClusterState* cluster_ = nullptr;
    std::optional<ClusterState> own_cluster_;
    bool descending_ = false;
    uint3 block_{0, 0, 0};
    bool failed_ = false;
    bool cluster_waits_ = false;  // all blocks of it, for each other
    using Clock = std::chrono::steady_clock;
    static constexpr Clock::rep kFirstLook = Clock::duration(std::chrono::milliseconds(2)).count();
    // Other OS threads read these.
    std::atomic<const LaunchState*> seen_launch_{nullptr};
    std::atomic<bool> waits_for_blocks_{false};  // of the launch or of the cluster
    RelaxedTime polling_since_;                  // 0: the block does something else
    RelaxedTime last_poll_;
    Clock::rep look_at_others_ = 0;
    std::uint64_t blocks_begun_ = 0;  // of the launch, when this one began to poll
    unsigned polling_rounds_ = 0;

    dim3 shape_{0, 0, 0};
    unsigned threads_ = 0;
    unsigned warps_in_block_ = 0;
    unsigned live_threads_ = 0;
    LaneMask busy_warps_ = 0;  // warps with a lane that can run
    LaneMask polling_warps_ = 0;
    std::array<Warp, kMaxWarps> warps_;
    std::array<Thread, kMaxThreads> thread_;
    std::array<uint3, kMaxThreads> index_;

    struct {
        unsigned arrived = 0;
        BarrierKind kind = BarrierKind::sync;
        Site site{"", 0};
        int true_count = 0;
        int result = 0;
        unsigned phase = 0;
    } barrier_;

    unsigned grid_sync_left_ =
        0;  // threads of the block that have yet to pass through the grid.sync under way
    unsigned grid_sync_phase_ = 0;

    AsyncCopies copies_;
    ArrivalBarriers arrival_barriers_;
    BulkLoads loads_;
    BulkStores stores_;
    std::vector<std::uint64_t*> unpublished_;  // mbarriers that only this block knows of yet
    static constexpr unsigned kNamedBarriers = 16;
    std::array<NamedBarrier, kNamedBarriers> named_barriers_;
    WarpgroupProducts products_;
    std::uint64_t block_of_products_ = 0;
    Site reading_site_{"", 0};

    FibreStacks stacks_;
    Fibre caller_;  // the OS thread's own stack
    std::vector<std::unique_ptr<Fibre>> all_fibres_;
    std::vector<Fibre*> idle_fibres_;
    Fibre* current_fibre_ = nullptr;
    Fibre abandoned_;  // where a thread stood that has ended within a function

    SharedArena shared_;
    std::array<unsigned char, kMaxThreads>
        early_tests_{};  // of mbarriers, one after the other, that said "not yet"
};

// Wakes the threads that wait for that reason, and for which it is over.
template <class Predicate>
bool BlockRunner::wake_if(Wait wait, const Predicate& over) {
    bool woken = false;
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        Warp& warp = warps_[w];
        for (const unsigned lane : lanes_of(warp.at(wait))) {
            if (!over(thread_[w * kWarpLanes + lane])) continue;
            warp.at(wait) &= ~bit(lane);
            warp.ready |= bit(lane);
            busy_warps_ |= bit(w);
            woken = true;
        }
    }
    return woken;
}

// Is it in the shared memory of a block of the cluster? And what lies at the same place of this block's, for one in that of `rank`.
bool in_shared_of_cluster(const void* pointer);
void* place_in_own_shared(const void* pointer, unsigned rank);

// The runner of this OS thread. A plain pointer, inline: every barrier and shuffle begins here.
extern constinit thread_local BlockRunner* runner_of_os_thread;
BlockRunner& first_block_runner();
inline BlockRunner& block_runner() {
    return runner_of_os_thread != nullptr ? *runner_of_os_thread : first_block_runner();
}

}  // namespace cuda_on_cpu

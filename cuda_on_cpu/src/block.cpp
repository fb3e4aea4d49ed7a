#include "block.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "device.hpp"
#include "environment.hpp"
#include "kernel_line.hpp"
#include "memory.hpp"
#include "slow_launch.hpp"

constinit thread_local uint3 threadIdx{0, 0, 0};
constinit thread_local uint3 blockIdx{0, 0, 0};
constinit thread_local dim3 blockDim{1, 1, 1};
constinit thread_local dim3 gridDim{1, 1, 1};

namespace cuda_on_cpu {

constinit thread_local unsigned current_lane = 0;
constinit thread_local unsigned current_warp = 0;
constinit thread_local std::uint64_t current_block = 0;

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kArenaSize = 57 * kPage;        // 228 KB: an SM's shared memory
constexpr std::size_t kDynamicSharedAlignment = 128;  // bank 0 at its start
constexpr unsigned char kCanary = 0xC5;

LaneMask bit(unsigned lane) {
    return LaneMask{1} << lane;
}

unsigned first(LaneMask mask, bool descending) {
    return static_cast<unsigned>(descending ? 31 - std::countl_zero(mask) : std::countr_zero(mask));
}

std::string triple(unsigned x, unsigned y, unsigned z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

std::string hexadecimal(LaneMask mask) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", mask);
    return text;
}

std::string place(Site site) {
    return std::string(site.file) + ":" + std::to_string(site.line);
}

const char* name_of(BarrierKind kind) {
    static constexpr const char* kNames[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and",
                                             "__syncthreads_or", "block.barrier_arrive"};
    return kNames[static_cast<int>(kind)];
}

// Most often one and the same literal; the text counts when several object files mention one header.
bool same_place(Site a, Site b) {
    return a.line_and_column == b.line_and_column && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

}  // namespace

constinit thread_local BlockRunner* runner_of_os_thread = nullptr;

namespace {

constinit thread_local bool has_ended = false;

// Static objects of the program are destroyed after this one of the main thread, and may use the runtime.
struct Owner {
    BlockRunner runner;
    ~Owner() {
        runner_of_os_thread = nullptr;
        has_ended = true;
    }
};

}  // namespace

BlockRunner& first_block_runner() {
    if (has_ended) return *(runner_of_os_thread = new BlockRunner);
    static thread_local const auto owner = std::make_unique<Owner>();
    runner_of_os_thread = &owner->runner;
    return owner->runner;
}

BlockRunner::BlockRunner() : descending_(environment().descending) {
    all_fibres_.reserve(kMaxThreads + 1);
    idle_fibres_.reserve(kMaxThreads + 1);
    void* memory =
        mmap(nullptr, kArenaSize + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    arena_ = static_cast<char*>(memory) + kPage;
    mprotect(arena_, kArenaSize, PROT_READ | PROT_WRITE);
    may_be_asked(*this);
}

BlockRunner::~BlockRunner() {
    may_not_be_asked(*this);
    munmap(arena_ - kPage, kArenaSize + 2 * kPage);
}

// --- One block ---------------------------------------------------------------------------------------------------

void BlockRunner::run(LaunchState& launch, uint3 block, ClusterState* cluster) {
    launch_ = &launch;
    seen_launch_.store(&launch, std::memory_order_release);
    cluster_ = cluster;
    failed_ = false;
    polling_since_ = 0;
    ++current_block;
    blockIdx = block_ = block;
    cluster_waits_ = false;
    gridDim = launch.configuration.grid;
    if (shape_.x != launch.configuration.block.x || shape_.y != launch.configuration.block.y ||
        shape_.z != launch.configuration.block.z) {
        set_shape(launch.configuration.block);
    }
    blockDim = shape_;
    place_dynamic_shared(launch.configuration.dynamic_shared);
    static_shared_ = 0;
    entered_.clear();
    copies_.begin_block();
    arrival_barriers_.clear();
    stores_.clear();
    unpublished_.clear();
    if (cluster == nullptr) loads_.clear();
    observer_ = launch.observer == nullptr ? nullptr : launch.observer->watch(launch, block);
    if (observer_ != nullptr) observer_->begin_block(launch, block, dynamic_shared_, dynamic_shared_size_);

    live_threads_ = threads_;
    busy_warps_ = warps_in_block_ == 32 ? ~LaneMask{0} : bit(warps_in_block_) - 1;
    polling_warps_ = 0;
    barrier_.arrived = 0;
    grid_sync_left_ = 0;
    named_barriers_ = {};
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        const unsigned lanes = std::min(kWarpLanes, threads_ - w * kWarpLanes);
        Warp& warp = warps_[w];
        warp.unstarted = warp.live = warp.lanes = lanes == kWarpLanes ? ~LaneMask{0} : bit(lanes) - 1;
        warp.ready = warp.polling = warp.converging = warp.at_barrier = warp.at_blocks_barrier = 0;
        warp.at_mbarrier = warp.at_named_barrier = warp.at_products = 0;
        warp.owes_block_wait = warp.owes_cluster_wait = 0;
        warp.group_count = 0;
    }
    current_warp_ = first(busy_warps_, descending_);

    // Threads hand over to each other; control comes back here when none of them can run.
    while (!failed_ && live_threads_ > 0) {
        if (pick()) {
            become_current();
            switch_fibre(caller_, fibre_for_current());
        } else if (!wait_for_other_blocks()) {
            if (!launch.failed) report_deadlock();
            failed_ = true;
        }
    }
    if (launch.configuration.cooperative) launch.grid_barrier.desert();
    end_hopper_block();
    if (failed_) {
        abandon_fibres();
    } else {
        check_dynamic_shared_canary();
        // Blocks may differ: one that returns early declares nothing.
        std::atomic<std::size_t>& most = launch.kernel->static_shared;
        if (std::size_t known = most; known < static_shared_)
            most.compare_exchange_strong(known, static_shared_);
    }
    if (observer_ != nullptr) observer_->end_block();
    observer_ = nullptr;
    launch_ = nullptr;
    seen_launch_.store(nullptr, std::memory_order_release);
}

void BlockRunner::set_shape(dim3 block) {
    shape_ = block;
    threads_ = block.x * block.y * block.z;
    warps_in_block_ = (threads_ + kWarpLanes - 1) / kWarpLanes;
    unsigned i = 0;
    for (unsigned z = 0; z < block.z; ++z) {
        for (unsigned y = 0; y < block.y; ++y) {
            for (unsigned x = 0; x < block.x; ++x)
                index_[i++] = uint3{x, y, z};
        }
    }
}

// --- Choosing and switching ----------------------------------------------------------------------------------------

// The heart of it: which thread runs next?
[[gnu::always_inline]] inline bool BlockRunner::pick() {
    for (;;) {
        Warp& warp = warps_[current_warp_];
        if (const LaneMask runnable = warp.ready | warp.unstarted; runnable != 0) {
            current_lane_ = first(runnable, descending_);
            return true;
        }
        if (warp.converging != 0) {
            converge(warp);
        } else if (!pick_warp()) {
            return false;
        }
    }
}

bool BlockRunner::pick_warp() {
    busy_warps_ &= ~bit(current_warp_);
    if (busy_warps_ == 0 && !wake_polling()) return false;
    current_warp_ = first(busy_warps_, descending_);
    return true;
}

// What the polling lanes look for may come from lanes whose barrier between blocks is over by now.
bool BlockRunner::wake_past_blocks_barriers() {
    bool woken = false;
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        Warp& warp = warps_[w];
        for (LaneMask left = warp.at_blocks_barrier; left != 0; left &= left - 1) {
            const unsigned lane = first(left, false);
            const Thread& thread = thread_[w * kWarpLanes + lane];
            if (!thread.blocks_barrier->passed(thread.phase)) continue;
            warp.at_blocks_barrier &= ~bit(lane);
            warp.ready |= bit(lane);
            busy_warps_ |= bit(w);
            woken = true;
        }
    }
    return woken;
}

// Lanes that poll memory go on only when everybody else waits: then the value they look for may have come.
bool BlockRunner::wake_polling() {
    if (polling_warps_ == 0 || launch_->failed) return false;
    if (launch_->repeated) {  // it depends on the order by right
        launch_->failed = true;
        return false;
    }
    for (LaneMask left = polling_warps_; left != 0; left &= left - 1) {
        Warp& warp = warps_[first(left, false)];
        warp.ready |= warp.polling;
        warp.polling = 0;
    }
    busy_warps_ = polling_warps_;
    polling_warps_ = 0;
    wake_past_blocks_barriers();
    if (waits_at_mbarrier()) {
        if (!carry_out_awaited_loads()) return false;
        wake_past_mbarriers(nullptr);
    }
    const Clock::rep now = Clock::now().time_since_epoch().count();
    last_poll_ = now;
    if (polling_since_ == 0) {
        polling_since_ = now;
        look_at_others_ = now + kFirstLook;
    }
    if (now >= look_at_others_ && !may_poll_on(now)) return false;
    // Giving up the core costs a time slice on a busy machine, and most of the time the awaited thread is in this block.
    constexpr unsigned kRoundsPerYield = 64;
    if (++polling_rounds_ % kRoundsPerYield == 0) launch_->let_other_blocks_run();
    return true;
}

// Every now and then: do other blocks of the launch make progress? Then what this block polls for may still come.
bool BlockRunner::may_poll_on(Clock::rep now) {
    constexpr Clock::rep kBetweenLooks = Clock::duration(std::chrono::milliseconds(10)).count();
    look_at_others_ = now + kBetweenLooks;
    if (const std::uint64_t begun = launch_->next_block; begun != blocks_begun_) {
        blocks_begun_ = begun;
        polling_since_ = now;
        return true;
    }
    if (!every_block_polls(*launch_, kFirstLook)) return true;
    launch_->polls_in_vain();
    const Clock::rep timeout = Clock::duration(environment().timeout).count();
    if (!every_block_polls(*launch_, timeout)) return true;
    if (launch_->polled_in_vain.exchange(true)) return !launch_->failed;  // another block tells
    // The last thread that asked for other threads to run; its block's others poll, too, or wait.
    const std::string line = calling_kernel_line();
    launch_->fail(cudaErrorLaunchTimeout,
                  "block " + triple(blockIdx.x, blockIdx.y, blockIdx.z) + " has polled memory for " +
                      std::to_string(environment().timeout.count()) + " s for a value that never came" +
                      (line.empty() ? "" : ", in " + line) + " (CUDA_ON_CPU_TIMEOUT)" +
                      launch_->blocks_that_wait_to_begin());
    return false;
}

bool BlockRunner::only_polls(const LaunchState& launch, Clock::rep now, Clock::rep duration) const {
    constexpr Clock::rep kRecently = Clock::duration(std::chrono::seconds(1)).count();
    if (seen_launch_ != &launch || waits_for_blocks_) return true;
    const Clock::rep since = polling_since_;
    return since != 0 && now - since >= duration && now - last_poll_ < kRecently;
}

[[gnu::always_inline]] inline void BlockRunner::become_current() {
    const unsigned number = thread_number();
    Warp& warp = warps_[current_warp_];
    warp.ready &= ~bit(current_lane_);
    thread_index_ = index_[number];
    polls_ = 0;
}

[[gnu::always_inline]] inline Fibre& BlockRunner::fibre_for_current() {
    const bool suspended = (warps_[current_warp_].unstarted & bit(current_lane_)) == 0;
    current_fibre_ = suspended ? thread_[thread_number()].fibre : &free_fibre();
    return *current_fibre_;
}

Fibre& BlockRunner::free_fibre() {
    if (!idle_fibres_.empty()) {
        Fibre* fibre = idle_fibres_.back();
        idle_fibres_.pop_back();
        return *fibre;
    }
    all_fibres_.push_back(std::make_unique<Fibre>());
    stacks_.create(*all_fibres_.back(), fibre_entry);
    return *all_fibres_.back();
}

void BlockRunner::fibre_entry(boost::context::detail::transfer_t arrival) {
    arrive_in_new_fibre(arrival);
    block_runner().run_threads();
}

// What every fibre does: run threads that have not begun, until others have to go on on their own stacks.
void BlockRunner::run_threads() {
    for (;;) {
        warps_[current_warp_].unstarted &= ~bit(current_lane_);
        launch_->run(launch_->closure.get());
        finish_thread();

        const bool found = !failed_ && pick();
        if (found) {
            become_current();
            if ((warps_[current_warp_].unstarted & bit(current_lane_)) != 0) continue;
        }
        Fibre& self = *current_fibre_;
        idle_fibres_.push_back(&self);
        switch_fibre(self, found ? fibre_for_current() : caller_);
        // Here again with a thread that has not begun.
    }
}

// Ends the running thread wherever it is: its stack is used again from the top.
void BlockRunner::exit_thread() {
    finish_thread();
    const bool found = !failed_ && pick();
    if (found) become_current();
    stacks_.create(*current_fibre_, fibre_entry);
    idle_fibres_.push_back(current_fibre_);
    switch_fibre(abandoned_, found ? fibre_for_current() : caller_);
    __builtin_unreachable();
}

void BlockRunner::finish_thread() {
    Warp& warp = warps_[current_warp_];
    warp.live &= ~bit(current_lane_);
    --live_threads_;
    polling_since_ = 0;  // the block makes progress
    if (copies_.used()) copies_.finish(thread_number());
    if (stores_.used()) {
        if (const std::string error = stores_.finish(thread_number()); !error.empty())
            fail(cudaErrorLaunchFailure, error, Site{"", 0});
    }
    if (observer_ != nullptr) observer_->thread_ended(thread_number());
    if (((warp.owes_block_wait | warp.owes_cluster_wait) & bit(current_lane_)) != 0) {
        fail(cudaErrorLaunchFailure, "this thread has ended between barrier_arrive and barrier_wait",
             Site{"", 0});
    }
    if (cluster_ != nullptr && cluster_->barrier.drop()) cluster_->events.happened();
    for (unsigned g = warp.group_count; g-- > 0;) {  // backwards: complete() moves the last one into the gap
        const Group& group = warp.groups[g];
        if ((group.mask & bit(current_lane_)) == 0) continue;
        if (!refuses(group.ended)) {
            if (group.arrived == (group.mask & warp.live)) complete(warp, g);
        } else {
            const Thread& waiting = thread_[current_warp_ * kWarpLanes + first(group.arrived, false)];
            fail(cudaErrorLaunchFailure,
                 "this thread has ended, but lanes " + hexadecimal(group.arrived) +
                     " of its warp wait for it in " + group.name + " with mask " + hexadecimal(group.mask),
                 waiting.site);
        }
    }
    if (barrier_.arrived > 0 && barrier_.arrived == live_threads_) release_barrier();
}

// Notes why and where the running thread waits. The caller puts its lane into some state.
[[gnu::always_inline]] inline BlockRunner::Thread& BlockRunner::note_wait(const char* name, Site site) {
    Thread& self = thread_[thread_number()];
    self.waits = name;
    self.site = site;
    self.fibre = current_fibre_;
    return self;
}

[[gnu::always_inline]] inline void BlockRunner::suspend(const char* name, Site site) {
    hand_over(note_wait(name, site));
}

// Lets the next thread run; returns when somebody hands over to `self`.
[[gnu::always_inline]] inline void BlockRunner::hand_over(Thread& self) {
    if (pick()) {
        become_current();
        if (&thread_[thread_number()] == &self) return;
        switch_fibre(*self.fibre, fibre_for_current());
    } else {
        switch_fibre(*self.fibre, caller_);
    }
}

// suspend() for those who wait less often than it is long.
void BlockRunner::wait_until_woken(const char* name, Site site) {
    suspend(name, site);
}

// --- Barrier -------------------------------------------------------------------------------------------------------

int BlockRunner::barrier(BarrierKind kind, int predicate, Site site) {
    count_arrival(kind, predicate, site);
    if (observer_ != nullptr) observer_->barrier_arrived(thread_number(), site);
    warps_[current_warp_].at_barrier |= bit(current_lane_);
    Thread& self = note_wait(name_of(kind), site);
    if (++barrier_.arrived == live_threads_) {
        release_barrier();
        current_warp_ = first(busy_warps_, descending_);
    }
    hand_over(self);
    return barrier_.result;
}

// All threads arrive at one place, but the two halves of a barrier may stand in several.
[[gnu::always_inline]] inline void BlockRunner::count_arrival(BarrierKind kind, int predicate, Site site) {
    if (barrier_.arrived == 0) {
        barrier_.kind = kind;
        barrier_.site = site;
        barrier_.true_count = 0;
    } else if (barrier_.kind != kind || (kind != BarrierKind::split && !same_place(barrier_.site, site) &&
                                         !environment().any_barriers)) {
        fail_at_different_barrier(kind, site);
    }
    barrier_.true_count += predicate != 0 ? 1 : 0;
}

void BlockRunner::fail_at_different_barrier(BarrierKind kind, Site site) {
    fail(cudaErrorLaunchFailure,
         std::string("threads of one block wait at different barriers: this one in ") + name_of(kind) + ", " +
             std::to_string(barrier_.arrived) + " other(s) in " + name_of(barrier_.kind) + " at " +
             place(barrier_.site) + ". A barrier in a branch must be reached by the whole block" +
             (kind == barrier_.kind ? " (CUDA_ON_CPU_BARRIERS=any lets them meet, as GPUs do)" : ""),
         site);
}

void BlockRunner::barrier_arrive(Site site) {
    Warp& warp = warps_[current_warp_];
    if ((warp.owes_block_wait & bit(current_lane_)) != 0) {
        fail(cudaErrorLaunchFailure, "barrier_arrive again without barrier_wait in between", site);
    }
    count_arrival(BarrierKind::split, 0, site);
    if (observer_ != nullptr) observer_->barrier_arrived_to_wait_later(thread_number(), site);
    warp.owes_block_wait |= bit(current_lane_);
    thread_[thread_number()].block_phase = barrier_.phase;
    if (++barrier_.arrived == live_threads_) release_barrier();
}

void BlockRunner::barrier_wait(Site site) {
    Warp& warp = warps_[current_warp_];
    if ((warp.owes_block_wait & bit(current_lane_)) == 0) {
        fail(cudaErrorLaunchFailure, "barrier_wait without barrier_arrive", site);
    }
    warp.owes_block_wait &= ~bit(current_lane_);
    if (thread_[thread_number()].block_phase == barrier_.phase) {
        warp.at_barrier |= bit(current_lane_);
        suspend("block.barrier_wait", site);
    }
    if (observer_ != nullptr) observer_->barrier_left(thread_number());
}

void BlockRunner::release_barrier() {
    ++barrier_.phase;
    polling_since_ = 0;
    if (observer_ != nullptr) observer_->barrier_released();
    switch (barrier_.kind) {
        case BarrierKind::sync:
        case BarrierKind::split:
            break;
        case BarrierKind::count:
            barrier_.result = barrier_.true_count;
            break;
        case BarrierKind::all:
            barrier_.result = barrier_.true_count == static_cast<int>(barrier_.arrived);
            break;
        case BarrierKind::any:
            barrier_.result = barrier_.true_count > 0;
            break;
    }
    barrier_.arrived = 0;
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        Warp& warp = warps_[w];
        if (warp.at_barrier == 0) continue;
        warp.ready |= warp.at_barrier;
        warp.at_barrier = 0;
        busy_warps_ |= bit(w);
    }
}

// --- Warp collectives ------------------------------------------------------------------------------------------------

void BlockRunner::collective(unsigned named, void* operand, CollectiveWork work, const char* name, Site site,
                             Ended ended) {
    Warp& warp = warps_[current_warp_];
    const LaneMask self = bit(current_lane_);
    const LaneMask mask =
        named & warp.lanes;  // what a mask says of lanes beyond the end of the block means nothing
    if ((mask & self) == 0 || ((mask & ~warp.live) != 0 && refuses(ended))) fail_on_mask(named, name, site);
    warp.operands[current_lane_] = operand;
    if (observer_ != nullptr) observer_->collective_arrived(thread_number(), mask, site);

    unsigned g = 0;
    while (g < warp.group_count && warp.groups[g].mask != mask)
        ++g;
    if (g == warp.group_count) {
        warp.groups[warp.group_count++] = Group{mask, 0, work, name, ended};
    } else if (warp.groups[g].work != work) {
        fail_in_different_collective(warp.groups[g], name, site);
    }
    warp.groups[g].arrived |= self;
    if (warp.groups[g].arrived == (mask & warp.live)) complete(warp, g);
    suspend(name, site);
}

void BlockRunner::fail_on_mask(LaneMask mask, const char* name, Site site) {
    const std::string start = std::string(name) + ": mask " + hexadecimal(mask);
    if ((mask & bit(current_lane_)) == 0) {
        fail(cudaErrorLaunchFailure,
             start + " does not name the calling lane " + std::to_string(current_lane_), site);
    }
    fail(cudaErrorLaunchFailure,
         start + " names lanes that have ended: " +
             hexadecimal(mask & warps_[current_warp_].lanes & ~warps_[current_warp_].live),
         site);
}

void BlockRunner::fail_in_different_collective(const Group& group, const char* name, Site site) {
    fail(cudaErrorLaunchFailure,
         "lanes of one mask " + hexadecimal(group.mask) + " are in different functions: this one in " + name +
             ", lanes " + hexadecimal(group.arrived) + " in " + group.name + " at " +
             place(thread_[current_warp_ * kWarpLanes + first(group.arrived, false)].site),
         site);
}

void BlockRunner::complete(Warp& warp, unsigned g) {
    const Group group = warp.groups[g];
    warp.groups[g] = warp.groups[--warp.group_count];
    if (group.work != nullptr) group.work(Lanes{group.arrived, warp.operands.data()});
    if (observer_ != nullptr) observer_->collective_completed(current_warp_, group.mask, group.arrived);
    warp.ready |= group.arrived;
    polling_since_ = 0;
}

// Every lane of the warp that could run has run, and these stand in __activemask: those at one place are together.
void BlockRunner::converge(Warp& warp) {
    const unsigned base = current_warp_ * kWarpLanes;
    while (warp.converging != 0) {
        const unsigned leader = first(warp.converging, false);
        LaneMask together = 0;
        for (LaneMask left = warp.converging; left != 0; left &= left - 1) {
            const unsigned lane = first(left, false);
            if (same_place(thread_[base + leader].site, thread_[base + lane].site)) together |= bit(lane);
        }
        for (LaneMask left = together; left != 0; left &= left - 1)
            warp.converged[first(left, false)] = together;
        warp.converging &= ~together;
        warp.ready |= together;
    }
}

unsigned BlockRunner::converged(const char* name, Site site) {
    warps_[current_warp_].converging |= bit(current_lane_);
    suspend(name, site);
    return warps_[current_warp_].converged[current_lane_];
}

void BlockRunner::yield() {
    polling_warps_ |= bit(current_warp_);
    warps_[current_warp_].polling |= bit(current_lane_);
    suspend("polling memory", Site{"", 0});
}

// With late stores, who arrives and need not wait lets the others go first: what it still reads may be written again.
void BlockRunner::step_back_after_arrival() {
    if (environment().late_stores) yield();
}

// --- Several blocks ----------------------------------------------------------------------------------------------------

// As the hardware does it: the block gathers, then arrives as one.
void BlockRunner::grid_sync(Site site) {
    barrier(BarrierKind::sync, 0, site);
    // Counted from the first of them down: threads that go on at once may have ended before the last comes here.
    if (grid_sync_left_ == 0) {
        grid_sync_left_ = live_threads_;
        grid_sync_phase_ = launch_->grid_barrier.arrive();
    }
    --grid_sync_left_;
    if (observer_ != nullptr) {
        observer_->blocks_barrier_arrived(thread_number(), &launch_->grid_barrier, grid_sync_phase_);
    }
    wait_for(launch_->grid_barrier, grid_sync_phase_, "grid.sync", site);
}

void BlockRunner::wait_for(BlocksBarrier& barrier, unsigned phase, const char* name, Site site) {
    if (!barrier.passed(phase)) {
        Thread& self = thread_[thread_number()];
        self.blocks_barrier = &barrier;
        self.phase = phase;
        warps_[current_warp_].at_blocks_barrier |= bit(current_lane_);
        suspend(name, site);
    }
    if (observer_ != nullptr) observer_->blocks_barrier_left(thread_number(), &barrier, phase);
}

ClusterState& BlockRunner::cluster() {
    if (cluster_ == nullptr) {
        cluster_ = &own_cluster_.emplace(dim3(1, 1, 1), live_threads_);
        cluster_->block[0] = {arena_, reinterpret_cast<char*>(&threadIdx), this};
    }
    return *cluster_;
}

void BlockRunner::cluster_arrive(Site site) {
    Warp& warp = warps_[current_warp_];
    if ((warp.owes_cluster_wait & bit(current_lane_)) != 0) {
        fail(cudaErrorLaunchFailure, "the cluster's barrier_arrive again without barrier_wait in between",
             site);
    }
    warp.owes_cluster_wait |= bit(current_lane_);
    BlocksBarrier& barrier = cluster().barrier;
    const unsigned phase = barrier.phase();
    thread_[thread_number()].cluster_phase = phase;
    // Before the arrival: then other blocks go on.
    if (observer_ != nullptr) observer_->blocks_barrier_arrived(thread_number(), &barrier, phase);
    barrier.arrive();
    if (barrier.passed(phase)) cluster_->events.happened();
}

void BlockRunner::cluster_wait(Site site) {
    Warp& warp = warps_[current_warp_];
    if ((warp.owes_cluster_wait & bit(current_lane_)) == 0) {
        fail(cudaErrorLaunchFailure, "the cluster's barrier_wait without barrier_arrive", site);
    }
    wait_for(cluster().barrier, thread_[thread_number()].cluster_phase, "cluster.sync", site);
    warp.owes_cluster_wait &= ~bit(current_lane_);
}

bool BlockRunner::all_arrived_at_cluster_barrier(unsigned phase) const {
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        const Warp& warp = warps_[w];
        if ((warp.live & ~warp.owes_cluster_wait) != 0) return false;
        for (LaneMask left = warp.live; left != 0; left &= left - 1) {
            if (thread_[w * kWarpLanes + first(left, false)].cluster_phase != phase) return false;
        }
    }
    return true;
}

// No thread of this block can run. Those that wait for bulk copies or for other blocks may, once these have done their part.
bool BlockRunner::wait_for_other_blocks() {
    for (;;) {
        const unsigned seen = cluster_ != nullptr ? cluster_->events.count() : 0;
        if (launch_->failed || !carry_out_awaited_loads()) return false;
        const bool past_mbarriers = wake_past_mbarriers(nullptr);
        if (wake_past_blocks_barriers() || past_mbarriers) {
            polling_since_ = 0;
            return true;
        }
        waits_for_blocks_ = true;
        const bool goes_on = cluster_ == nullptr ? wait_for_grid() : wait_for_cluster(seen);
        waits_for_blocks_ = false;
        if (cluster_ == nullptr || !goes_on) return goes_on;
    }
}

bool BlockRunner::wait_for_cluster(unsigned seen_events) {
    if (!others_may_help()) return false;
    if (cluster_->events.wait(seen_events, launch_->failed)) return true;
    cluster_waits_ = true;
    return false;
}

bool BlockRunner::wait_for_grid() {
    bool waits = false;
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        const Warp& warp = warps_[w];
        for (LaneMask left = warp.at_blocks_barrier; left != 0; left &= left - 1) {
            const Thread& thread = thread_[w * kWarpLanes + first(left, false)];
            if (!thread.blocks_barrier->wait(thread.phase, launch_->failed)) return false;
            waits = true;
        }
    }
    return waits && wake_past_blocks_barriers();
}

// Other blocks of the cluster can help those who wait at an mbarrier, and, if all threads of this block have come to it, at the
// cluster's barrier.
bool BlockRunner::others_may_help() const {
    if (waits_at_mbarrier()) return true;
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        if (const LaneMask waiting = warps_[w].at_blocks_barrier; waiting != 0)
            return all_arrived_at_cluster_barrier(thread_[w * kWarpLanes + first(waiting, false)].phase);
    }
    return false;
}

// --- Shared memory -------------------------------------------------------------------------------------------------------

// Dynamic shared memory ends at a guard page, so that reading past its end stops at the line that does it.
void BlockRunner::place_dynamic_shared(std::size_t size) {
    const std::size_t room =
        (size + kDynamicSharedAlignment - 1) / kDynamicSharedAlignment * kDynamicSharedAlignment;
    char* start = arena_ + kArenaSize - room;
    dynamic_shared_ = start;
    dynamic_shared_size_ = size;
    fill(start, size, kSharedPoison);
    std::memset(start + size, kCanary, room - size);
}

void BlockRunner::check_dynamic_shared_canary() {
    const char* end = arena_ + kArenaSize;
    for (const char* byte = static_cast<char*>(dynamic_shared_) + dynamic_shared_size_; byte < end; ++byte) {
        if (static_cast<unsigned char>(*byte) == kCanary) continue;
        launch_->fail(cudaErrorIllegalAddress,
                      "block " + triple(blockIdx.x, blockIdx.y, blockIdx.z) + " wrote past the end of its " +
                          std::to_string(dynamic_shared_size_) + " bytes of dynamic shared memory");
        return;
    }
}

bool BlockRunner::in_dynamic_shared(const void* address) const {
    return address >= arena_ && address < arena_ + kArenaSize;
}

void BlockRunner::enter_shared(void* object, std::size_t size, bool poison, const char* name,
                               std::size_t gap) {
    // Threads that store late may all come here before the first of them has noted that it did.
    if (std::ranges::find(entered_, object) != entered_.end()) return;
    entered_.push_back(object);
    static_shared_ += size;
    if (poison) fill(object, size, kSharedPoison);
    if (observer_ != nullptr) observer_->shared_entered(name, object, size, gap);
    if (launch_ == nullptr) return;
    const DeviceLimits& limits = device_limits();
    if (static_shared_ > limits.shared_per_block) {
        fail(cudaErrorLaunchOutOfResources,
             "static shared memory of this kernel is over " + std::to_string(limits.shared_per_block) +
                 " bytes; nvcc would refuse it. Use dynamic shared memory",
             Site{"", 0});
    }
    if (static_shared_ + dynamic_shared_size_ > limits.shared_per_block_optin) {
        fail(cudaErrorLaunchOutOfResources,
             std::to_string(static_shared_) + " bytes of static and " + std::to_string(dynamic_shared_size_) +
                 " bytes of dynamic shared memory are more than a block can have (" +
                 std::to_string(limits.shared_per_block_optin) + ")",
             Site{"", 0});
    }
}

// Exactly the block's own, and not what lies around it.
bool BlockRunner::holds_shared(const void* address, std::size_t size) const {
    if (!in_dynamic_shared(address)) return in_static_shared(address);
    const char* byte = static_cast<const char*>(address);
    const char* begin = static_cast<const char*>(dynamic_shared_);
    return byte >= begin && byte + size <= begin + dynamic_shared_size_;
}

// --- Asynchronous copies -------------------------------------------------------------------------------------------------

void BlockRunner::issue_copy(void* shared, const void* global, unsigned bytes, unsigned valid_bytes,
                             Site site) {
    const auto misaligned = [bytes](const void* address) {
        return (reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) != 0;
    };
    if (misaligned(shared) || (valid_bytes > 0 && misaligned(global))) {
        fail_on_copy(cudaErrorMisalignedAddress, bytes,
                     std::string("misaligned access: the ") +
                         (misaligned(shared) ? "destination" : "source") +
                         " must be at a multiple of the size",
                     site);
    }
    if (!holds_shared(shared, bytes)) {
        fail_on_copy(cudaErrorIllegalAddress, bytes, "the destination is not in the block's shared memory",
                     site);
    }
    if (valid_bytes > bytes) {
        fail_on_copy(cudaErrorLaunchFailure, bytes, std::to_string(valid_bytes) + " of them valid", site);
    }
    std::array<unsigned char, AsyncCopies::kMaxBytes> data{};
    if (valid_bytes > 0) {
        reading_site_ = site;
        std::atomic_signal_fence(std::memory_order_seq_cst);  // what handles a fault asks for the site
        std::memcpy(data.data(), global, valid_bytes);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        reading_site_ = Site{"", 0};
    }
    if (observer_ != nullptr)
        observer_->copy_issued(thread_number(), shared, data.data(), global, bytes, valid_bytes, site);
    copies_.issue(thread_number(), shared, data, bytes);
}

void BlockRunner::commit_copies() {
    copies_.commit(thread_number());
    if (observer_ != nullptr) observer_->copies_committed(thread_number());
}

void BlockRunner::wait_for_copies(unsigned pending) {
    copies_.wait(thread_number(), pending);
    if (observer_ != nullptr) observer_->copies_awaited(thread_number(), pending);
}

void BlockRunner::fail_on_copy(cudaError_t error, unsigned bytes, const std::string& why, Site site) {
    fail(error, "cp.async of " + std::to_string(bytes) + " bytes: " + why, site);
}

// --- Barriers at which threads arrive and for which they wait, each at its own time -----------------------------------------

void BlockRunner::init_arrival_barrier(const void* barrier, std::int64_t expected, Site site) {
    if (!holds_shared(barrier, sizeof(std::uint64_t)))
        fail(cudaErrorIllegalAddress, "a barrier that is not in the block's shared memory", site);
    if (expected <= 0) {
        fail(cudaErrorLaunchFailure,
             "a barrier that expects " + std::to_string(expected) + " arrivals: nobody could wait for it",
             site);
    }
    ArrivalBarrier& state = arrival_barriers_[barrier];
    state = {};
    state.expected = state.pending = expected;
    if (observer_ != nullptr) observer_->barrier_begun(barrier);
}

ArrivalBarrier& BlockRunner::arrival_barrier(const void* barrier, Site site) {
    const auto found = arrival_barriers_.find(barrier);
    if (found == arrival_barriers_.end())
        fail(cudaErrorLaunchFailure, "a barrier that was not initialised", site);
    return found->second;
}

std::uint64_t BlockRunner::arrive_at(const void* barrier, std::int64_t count, bool leave, Site site) {
    ArrivalBarrier& state = arrival_barrier(barrier, site);
    if (count < 1 || count > state.pending) {
        fail(cudaErrorLaunchFailure,
             std::to_string(count) + " arrivals at a barrier that expects " + std::to_string(state.pending) +
                 " more of " + std::to_string(state.expected),
             site);
    }
    if (observer_ != nullptr) observer_->arrival_barrier_arrived(thread_number(), barrier, site);
    const std::uint64_t phase = state.phase;
    state.pending -= count;
    if (leave) ++state.leaving;
    if (state.pending == 0) complete_phase(barrier, state);
    step_back_after_arrival();
    return phase;
}

void BlockRunner::complete_phase(const void* barrier, ArrivalBarrier& state) {
    ++state.phase;
    polling_since_ = 0;
    state.expected -= std::exchange(state.leaving, 0);
    state.pending = state.expected;
    copies_.append(state.complete, state.copies);
    if (observer_ != nullptr) observer_->arrival_barrier_completed(barrier);
    for (const unsigned thread : state.waiting) {
        warps_[thread / kWarpLanes].ready |= bit(thread % kWarpLanes);
        busy_warps_ |= bit(thread / kWarpLanes);
    }
    state.waiting.clear();
}

void BlockRunner::attach_copies_to(const void* barrier, Site site) {
    copies_.move_to(arrival_barrier(barrier, site).copies, thread_number());
    if (observer_ != nullptr) observer_->copies_attached(thread_number());
}

void BlockRunner::wait_for_phase(const void* barrier, std::uint64_t phase, const char* name, Site site) {
    if (ArrivalBarrier& state = arrival_barrier(barrier, site); state.phase <= phase) {
        state.waiting.push_back(thread_number());
        suspend(name, site);
    }
    copies_.complete(arrival_barrier(barrier, site).complete);
    if (observer_ != nullptr) observer_->arrival_barrier_left(thread_number(), barrier, site);
}

// --- Failure ---------------------------------------------------------------------------------------------------------------

std::string BlockRunner::where() const {
    return "block " + triple(blockIdx.x, blockIdx.y, blockIdx.z) + ", thread " +
           triple(threadIdx.x, threadIdx.y, threadIdx.z);
}

void BlockRunner::fail(cudaError_t error, const std::string& message, Site site) {
    launch_->fail(error, where() + (site.line > 0 ? ", " + place(site) : std::string()) + ": " + message,
                  site);
    failed_ = true;
    Fibre nowhere;  // nobody comes back to this thread
    switch_fibre(nowhere, caller_);
    __builtin_unreachable();
}

void BlockRunner::report_deadlock() {
    std::string message = "deadlock in " + describe_waiting();
    if (cluster_waits_) {  // and so nobody else runs
        for (const ClusterState::Block& other : cluster_->block) {
            if (other.runner == nullptr || other.runner == this || other.runner->live_threads_ == 0) continue;
            message += "\n    and in " + other.runner->describe_waiting();
        }
    }
    launch_->fail(cudaErrorLaunchTimeout, message);
}

// "block (0,0,0): 2 thread(s) wait and none can go on", and where they wait, in lines of their own.
std::string BlockRunner::describe_waiting() const {
    std::string message = "block " + triple(block_.x, block_.y, block_.z) + ": " +
                          std::to_string(live_threads_) + " thread(s) wait and none can go on";
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        const Warp& warp = warps_[w];
        LaneMask left = warp.live;
        while (left != 0) {  // lanes of a warp that wait at one place share a line
            const Thread& leader = thread_[w * kWarpLanes + first(left, false)];
            LaneMask together = 0;
            for (LaneMask rest = left; rest != 0; rest &= rest - 1) {
                const unsigned lane = first(rest, false);
                const Thread& other = thread_[w * kWarpLanes + lane];
                if (other.waits == leader.waits && same_place(other.site, leader.site)) together |= bit(lane);
            }
            left &= ~together;
            message += "\n    warp " + std::to_string(w) + ", lanes " + hexadecimal(together) +
                       ", from thread " +
                       triple(index_[w * kWarpLanes + first(together, false)].x,
                              index_[w * kWarpLanes + first(together, false)].y,
                              index_[w * kWarpLanes + first(together, false)].z) +
                       ": in " + leader.waits + " at " + place(leader.site);
            message += what_is_missing(leader, bit(first(together, false)), warp);
            for (unsigned g = 0; g < warp.group_count; ++g) {
                if ((warp.groups[g].arrived & together) != 0) {
                    message += ", mask " + hexadecimal(warp.groups[g].mask) + ", missing " +
                               hexadecimal(warp.groups[g].mask & ~warp.groups[g].arrived);
                }
            }
        }
    }
    return message;
}

// After a failure some fibres stand in the middle of a kernel. Their stacks are used again from the top.
void BlockRunner::abandon_fibres() {
    idle_fibres_.clear();
    for (const auto& fibre : all_fibres_) {
        stacks_.create(*fibre, fibre_entry);
        idle_fibres_.push_back(fibre.get());
    }
}

}  // namespace cuda_on_cpu

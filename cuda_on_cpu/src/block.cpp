#include "block.hpp"

#include <cstdio>
#include <memory>

#include "current_device.hpp"
#include "diagnosis.hpp"
#include "environment.hpp"
#include "report_text.hpp"
#include "slow_launch.hpp"

constinit thread_local uint3 threadIdx{0, 0, 0};
constinit thread_local uint3 blockIdx{0, 0, 0};
constinit thread_local dim3 blockDim{1, 1, 1};
constinit thread_local dim3 gridDim{1, 1, 1};

namespace cuda_on_cpu {

constinit thread_local unsigned current_lane = 0;
constinit thread_local unsigned current_warp = 0;
constinit thread_local std::uint64_t current_block = 0;

constinit thread_local BlockRunner* runner_of_os_thread = nullptr;

namespace {

constexpr unsigned kMostPollsRepeated = 1000;

constinit thread_local bool has_ended = false;

// Static objects of the program are destroyed after the main thread's Owner, and their destructors
// may use the runtime.
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

BlockRunner::BlockRunner() {
    may_be_asked(*this);
}

BlockRunner::~BlockRunner() {
    may_not_be_asked(*this);
}

// --- One block -----------------------------------------------------------------------------------

void BlockRunner::run(LaunchState& launch, uint3 block, ClusterState* cluster) {
    launch_ = &launch;
    device_of_os_thread = launch.device;
    seen_launch_.store(&launch, std::memory_order_release);
    failed_ = false;
    note_progress();
    ++current_block;
    blockIdx = index_ = block;
    blockDim = launch.configuration.block;
    gridDim = launch.configuration.grid;
    shared_.begin_block(launch.configuration.dynamic_shared);
    between_blocks_.begin_block(cluster);
    async_.begin_block();
    arrival_barriers_.begin_block();
    mbarriers_.begin_block();
    named_barriers_.begin_block();
    barrier_.begin_block();
    observer_ = launch.observer == nullptr ? nullptr : launch.observer->watch(launch, block);
    if (observer_ != nullptr)
        observer_->begin_block(launch, block, shared_.dynamic(), shared_.dynamic_bytes());

    if (runs_in_rows(cluster)) {
        run_rows();
    } else {
        run_threads();
    }
    end_block();
    if (observer_ != nullptr) observer_->end_block();
    observer_ = nullptr;
    launch_ = nullptr;
    seen_launch_.store(nullptr, std::memory_order_release);
}

void BlockRunner::run_threads() {
    scheduler_.begin_block(*launch_);
    while (!failed_ && scheduler_.live_threads() > 0) {
        if (scheduler_.run() || between_blocks_.wait_for_other_blocks()) continue;
        if (!launch_->failed) launch_->fail(cudaErrorLaunchTimeout, describe_deadlock(*this));
        failed_ = true;
    }
}

// Not where each start of a thread may be seen, or another order is asked for.
bool BlockRunner::runs_in_rows(const ClusterState* cluster) const {
    static const bool wanted =
        environment().rows && !environment().late_stores && !environment().lockstep && !is_debugged();
    return launch_->run_block != nullptr && wanted && !scheduler_.descending() && !launch_->repeated &&
           launch_->observer == nullptr && cluster == nullptr && !launch_->configuration.cooperative;
}

void BlockRunner::run_rows() {
    in_rows_ = true;
    error_in_rows_ = cudaSuccess;
    scheduler_.run_rows(*launch_);
    in_rows_ = false;
    if (error_in_rows_ == cudaSuccess) return;
    scheduler_.abandon_fibres();
    run_threads();
    if (failed_) return;
    // The threads before it have changed what the thread has met.
    launch_->fail(error_in_rows_, "block " + triple(blockIdx) + ": " + message_of_rows_);
    failed_ = true;
}

void BlockRunner::end_block() {
    if (launch_->configuration.cooperative) launch_->grid_barrier.desert();
    const std::string left_over = async_.end_block();
    between_blocks_.end_block();
    if (!failed_ && !left_over.empty()) {
        launch_->fail(cudaErrorLaunchFailure, "block " + triple(blockIdx) + ": " + left_over);
        failed_ = true;
    }
    if (failed_) {
        scheduler_.abandon_fibres();
        shared_.renew_canary();
        return;
    }
    const auto wrote = [this](const char* where) {
        return "block " + triple(blockIdx) + " wrote " + where + " its " +
               std::to_string(shared_.dynamic_bytes()) + " bytes of dynamic shared memory";
    };
    if (!shared_.intact_behind_dynamic()) {
        launch_->fail(cudaErrorIllegalAddress, wrote("past the end of"));
    } else if (!shared_.intact_before_dynamic()) {
        launch_->fail(cudaErrorIllegalAddress, wrote("before the start of") + ": is an index negative?");
        shared_.renew_canary();
    } else if (const SharedObject* const object = shared_.written_beside(); object != nullptr) {
        launch_->fail(cudaErrorIllegalAddress, "block " + triple(blockIdx) + " wrote outside of the " +
                                                   std::to_string(object->size) +
                                                   " bytes of its __shared__ variable " + object->name +
                                                   ": is an index too large, or negative?");
    }
    // Take the maximum, because a block that returns early may not reach its declarations.
    Atomic<std::size_t>& most = launch_->kernel->static_shared;
    if (std::size_t known = most; known < shared_.static_bytes())
        most.compare_exchange_strong(known, shared_.static_bytes());
}

void BlockRunner::fail(cudaError_t error, const std::string& message, Site site) {
    fail_in(running_thread() + (site.line > 0 ? ", " + place(site) : std::string()), error, message, site);
}

void BlockRunner::fail_in(const std::string& where, cudaError_t error, const std::string& message,
                          Site site) {
    if (in_rows_) {
        error_in_rows_ = error;
        message_of_rows_ = message;
        scheduler_.leave_block();
    }
    launch_->fail(error, where + ": " + message, site);
    failed_ = true;
    scheduler_.leave_block();
}

void BlockRunner::need_capability(Capability first, Capability last, const char* instruction, Site site) {
    const Capability here = environment().capability;
    if (first <= here && here <= last) return;
    const auto text = [](Capability capability) {
        return std::to_string(capability.major) + "." + std::to_string(capability.minor);
    };
    fail(cudaErrorNoKernelImageForDevice,
         std::string(instruction) + " needs compute capability " + text(first) +
             (first == last ? "" : " or more") + "; this device has " + text(here) +
             " (CUDA_ON_CPU_CAPABILITY)",
         site);
}

// --- Called by the scheduler --------------------------------------------------------------------

void BlockRunner::thread_ends() {
    scheduler_.count_end();
    note_progress();
    async_.thread_ended();
    notify(event::ThreadEnded{scheduler_.thread_number()});
    Warp& warp = scheduler_.warp();
    if (((warp.owes_block_wait | warp.owes_cluster_wait) & scheduler_.lane_bit()) != 0) {
        fail(cudaErrorLaunchFailure, "this thread has ended between barrier_arrive and barrier_wait",
             Site{"", 0});
    }
    between_blocks_.thread_ended();
    if (warp.group_count > 0) collectives_.thread_ended(warp);
    barrier_.thread_ended();
}

// Lanes that poll memory only run again when all others wait, because the value may have been
// written by then.
bool BlockRunner::wake_polling() {
    if (!scheduler_.any_polls() || launch_->failed) return false;
    // Too many polls in a repetition: the kernel waits for another block.
    if (launch_->repeated && ++launch_->polls_repeated > kMostPollsRepeated) {
        launch_->failed = true;
        return false;
    }
    scheduler_.wake_polling();
    // The value may come from lanes whose barrier between blocks has completed by now.
    between_blocks_.wake();
    if (scheduler_.any_waits(Wait::mbarrier)) {
        if (!async_.carry_out_awaited_loads()) return false;
        mbarriers_.wake_past(nullptr);
    }
    return launch_->repeated || polling_.poll_on(*launch_);
}

void BlockRunner::step_back_after_arrival() {
    if (environment().late_stores) scheduler_.yield();
}

bool BlockRunner::only_polls(const LaunchState& launch, PollingWatch::Time now,
                             PollingWatch::Time duration) const {
    return seen_launch_ != &launch || between_blocks_.waits() || polling_.only_polls(now, duration);
}

bool BlockRunner::has_polled_since(const LaunchState& launch, PollingWatch::Time then) const {
    return seen_launch_ == &launch && (between_blocks_.waits() || polling_.has_polled_since(then));
}

// --- Shared memory -------------------------------------------------------------------------------

void BlockRunner::enter_shared(void* object, std::size_t size, bool poison, const char* name, std::size_t gap,
                               bool alone) {
    // An observer reports each access beside a variable with its line, so no guard bytes are
    // needed.
    const std::size_t guarded = alone && observer_ == nullptr ? gap : 0;
    enter_shared({object, size, name, guarded, guarded}, poison, gap);
}

void BlockRunner::enter_shared(void* object, std::size_t size, bool poison, const char* name, SharedGap& one,
                               SharedGap& other) {
    SharedObject shared{object, size, name};
    shared.take_gap(one);
    shared.take_gap(other);
    enter_shared(shared, poison, 0);
}

void BlockRunner::enter_shared(const SharedObject& object, bool poison, std::size_t gap) {
    if (!shared_.enter(object, poison)) return;
    notify(event::SharedEntered{object.name, object.begin, object.size, gap});
    if (launch_ == nullptr) return;
    if (const std::string error = shared_.over_limits(); !error.empty())
        fail(cudaErrorLaunchOutOfResources, error, Site{"", 0});
}

bool BlockRunner::shared_of_block(const void* pointer) {
    return shared_.in_arena(pointer) || in_static_shared(pointer);
}

bool BlockRunner::shared_of_cluster(const void* pointer) {
    if (shared_of_block(pointer)) return true;
    return between_blocks_.in_cluster() && in_shared_of_cluster(pointer);
}

std::size_t BlockRunner::shared_address(const void* pointer, Site site) {
    if (!shared_of_cluster(pointer))
        fail(cudaErrorIllegalAddress, "an address within shared memory of a pointer that is to other memory",
             site);
    const std::size_t address = shared_.address_of(pointer);
    if (address == SharedArena::kNoAddress)
        fail(cudaErrorIllegalAddress, "addresses within the shared memory of more than 255 places", site);
    return address;
}

void* BlockRunner::shared_pointer(std::uint64_t address, std::size_t bytes, Site site) {
    if (void* const pointer = shared_.at(address, bytes); pointer != nullptr) return pointer;
    char text[160];
    std::snprintf(text, sizeof text,
                  "the address 0x%llx is not in the block's shared memory; expected what "
                  "__cvta_generic_to_shared() or cvta.to.shared makes of a pointer",
                  static_cast<unsigned long long>(address));
    fail(cudaErrorIllegalAddress, text, site);
}

}  // namespace cuda_on_cpu

#include "cuda_on_cpu/launch.h"

#include <algorithm>
#include <barrier>
#include <climits>
#include <cstdio>
#include <cstring>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "block.hpp"
#include "device.hpp"
#include "environment.hpp"
#include "errors.hpp"
#include "exit_report.hpp"
#include "fault.hpp"
#include "few_blocks.hpp"
#include "launch_state.hpp"
#include "memory.hpp"
#include "module_ranges.hpp"
#include "order_check.hpp"
#include "slow_launch.hpp"
#include "stream.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {
namespace {

// What the last kernel function called on this host thread left for launch_prepared().
struct Prepared {
    Kernel* kernel = nullptr;
    std::shared_ptr<const void> closure;
    void (*run)(const void*) = nullptr;
    cudaError_t error = cudaSuccess;
    std::vector<NamedAddress> addresses;
};
thread_local Prepared prepared;
constinit thread_local bool asking = false;
constinit thread_local Kernel* answer = nullptr;

std::string text_of(dim3 d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

// "void scale(T*, T) [with T = float]" -> "scale [with T = float]"
std::string short_name(const char* pretty) {
    std::string name = pretty;
    for (const std::string_view unnamed :
         {"{anonymous}::", "(anonymous namespace)::"}) {  // as g++ and clang print it
        for (auto at = name.find(unnamed); at != std::string::npos; at = name.find(unnamed, at)) {
            name.erase(at, unnamed.size());
        }
    }
    std::string bindings;
    if (const auto with = name.find(" ["); with != std::string::npos) {
        bindings = name.substr(with);
        name.resize(with);
    }
    if (const auto parameters = name.find('('); parameters != std::string::npos && !name.starts_with("(")) {
        name.resize(parameters);
    }
    if (const auto space = name.rfind(' '); space != std::string::npos) name.erase(0, space + 1);
    return name + bindings;
}

// All that may be an address in the arguments: pointers, and those in structures. Arguments beyond the last name are those of a
// parameter pack.
std::vector<NamedAddress> addresses_in(std::string_view names, std::span<const Argument> arguments) {
    std::vector<NamedAddress> found;
    std::string_view name;
    for (const Argument& argument : arguments) {
        if (!names.empty()) {
            name = names.substr(0, names.find(", "));
            names.remove_prefix(std::min(names.size(), name.size() + 2));
            if (name.ends_with("...")) name.remove_suffix(3);
        }
        for (std::size_t i = 0; i + sizeof(std::uintptr_t) <= argument.size; i += sizeof(std::uintptr_t)) {
            std::uintptr_t word = 0;
            std::memcpy(&word, static_cast<const char*>(const_cast<const void*>(argument.bytes)) + i,
                        sizeof word);
            if (word != 0) found.push_back({std::string(name), word});
        }
    }
    return found;
}

// What a GPU refuses before it starts a kernel.
cudaError_t check(const Kernel& kernel, const LaunchConfiguration& c) {
    const DeviceLimits& limits = device_limits();
    const std::string name = "kernel " + short_name(kernel.pretty_name);
    const char* function = name.c_str();
    if (volume(c.grid) == 0) {
        return refuse(cudaErrorInvalidConfiguration, function, "grid %s has no blocks",
                      text_of(c.grid).c_str());
    }
    if (volume(c.block) == 0) {
        return refuse(cudaErrorInvalidConfiguration, function, "block %s has no threads",
                      text_of(c.block).c_str());
    }
    if (c.block.x > limits.threads_per_block || c.block.y > limits.threads_per_block ||
        c.block.z > limits.block_z || volume(c.block) > limits.threads_per_block) {
        return refuse(cudaErrorInvalidConfiguration, function,
                      "block %s has %llu threads; at most %u, and at most %u in z", text_of(c.block).c_str(),
                      static_cast<unsigned long long>(volume(c.block)), limits.threads_per_block,
                      limits.block_z);
    }
    if (c.grid.x > limits.grid_x || c.grid.y > limits.grid_yz || c.grid.z > limits.grid_yz) {
        return refuse(cudaErrorInvalidConfiguration, function, "grid %s is too large; at most (%u, %u, %u)",
                      text_of(c.grid).c_str(), limits.grid_x, limits.grid_yz, limits.grid_yz);
    }
    if (volume(c.block) > kernel.max_threads_per_block) {
        return refuse(cudaErrorInvalidValue, function,
                      "block %s has more threads than its __launch_bounds__(%u)", text_of(c.block).c_str(),
                      kernel.max_threads_per_block);
    }
    if (c.dynamic_shared > allowed_dynamic_shared(kernel)) {
        const std::size_t static_shared = kernel.static_shared;
        return refuse(
            cudaErrorInvalidValue, function,
            "%zu bytes of dynamic shared memory; allowed are %zu beside %zu static ones. More, up to %zu, "
            "must be asked for with cudaFuncSetAttribute(kernel, "
            "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)",
            c.dynamic_shared, allowed_dynamic_shared(kernel), static_shared,
            limits.shared_per_block_optin - static_shared);
    }
    const unsigned fit = blocks_per_multiprocessor(static_cast<unsigned>(volume(c.block)),
                                                   c.dynamic_shared + kernel.static_shared);
    if (c.cooperative && volume(c.grid) > std::uint64_t{fit} * multiprocessors()) {
        return refuse(cudaErrorCooperativeLaunchTooLarge, function,
                      "a cooperative grid of %llu blocks; %u multiprocessors with %u such blocks each run "
                      "%llu at a time",
                      static_cast<unsigned long long>(volume(c.grid)), multiprocessors(), fit,
                      static_cast<unsigned long long>(fit) * multiprocessors());
    }
    const dim3 cluster = c.cluster;
    if (c.cooperative && volume(cluster) > 1) {
        return refuse(cudaErrorNotSupported, function, "a cooperative launch with clusters");
    }
    if (volume(cluster) != 0) {
        const unsigned maximum =
            kernel.non_portable_cluster ? limits.cluster_maximum : limits.cluster_portable;
        if (volume(cluster) > maximum) {
            return refuse(cudaErrorInvalidClusterSize, function, "a cluster of %llu blocks; at most %u",
                          static_cast<unsigned long long>(volume(cluster)), maximum);
        }
        if (c.grid.x % cluster.x != 0 || c.grid.y % cluster.y != 0 || c.grid.z % cluster.z != 0) {
            return refuse(cudaErrorInvalidClusterSize, function,
                          "grid %s is not a multiple of the cluster %s", text_of(c.grid).c_str(),
                          text_of(cluster).c_str());
        }
    }
    return cudaSuccess;
}

uint3 index_in(dim3 extent, std::uint64_t i) {
    return uint3{static_cast<unsigned>(i % extent.x), static_cast<unsigned>(i / extent.x % extent.y),
                 static_cast<unsigned>(i / (std::uint64_t{extent.x} * extent.y))};
}

// Blocks that know nothing of each other, handed out in ascending order.
void run_independent(LaunchState& launch) {
    const std::uint64_t all = volume(launch.configuration.grid);
    const auto few = few_blocks_of(all);
    const std::uint64_t blocks = few ? few->size() : all;
    Team team;
    launch.work = [&launch, &few, blocks] {
        BlockRunner& runner = block_runner();
        while (!launch.failed) {
            const std::uint64_t next = launch.next_block++;
            if (next >= blocks) break;
            runner.run(launch, index_in(launch.configuration.grid, few ? (*few)[next] : next), nullptr);
        }
    };
    launch.team = &team;
    launch.os_threads = static_cast<unsigned>(std::min<std::uint64_t>(blocks, environment().threads));
    for (unsigned i = 1; i < launch.os_threads; ++i)
        team.start(launch.work);
    launch.work();
}

// work(0) to work(count - 1), an OS thread for each, or none of them when the system has not got so many.
void run_at_once(LaunchState& launch, unsigned count, const std::function<void(unsigned)>& work) {
    bool complete = true;
    std::latch started(1);
    Team team;  // last: it waits at its end for those who use the others
    try {
        for (unsigned i = 1; i < count; ++i) {
            team.start([&, i] {
                started.wait();
                if (complete) work(i);
            });
        }
    } catch (const std::system_error& error) {
        complete = false;
        launch.fail(cudaErrorLaunchOutOfResources,
                    "needs " + std::to_string(count) +
                        " OS threads at once, and the system refuses: " + error.what());
    }
    started.count_down();
    if (complete) work(0);
}

// All blocks at once.
void run_cooperative(LaunchState& launch) {
    const auto blocks = static_cast<unsigned>(volume(launch.configuration.grid));
    launch.grid_barrier.expect(blocks);
    run_at_once(launch, blocks, [&launch](unsigned block) {
        block_runner().run(launch, index_in(launch.configuration.grid, block), nullptr);
    });
}

// The clusters one after the other, the blocks of each at once.
void run_clusters(LaunchState& launch) {
    const dim3 dims = launch.configuration.cluster;
    const dim3 grid = launch.configuration.grid;
    const dim3 clusters(grid.x / dims.x, grid.y / dims.y, grid.z / dims.z);
    const auto size = static_cast<unsigned>(volume(dims));
    std::shared_ptr<ClusterState>& cluster = launch.cluster;
    std::uint64_t number = 0;
    const auto next_cluster = [&]() noexcept {
        cluster = std::make_shared<ClusterState>(
            dims, size * static_cast<unsigned>(volume(launch.configuration.block)));
    };
    next_cluster();
    std::barrier entered(size);
    std::barrier finished(size, [&]() noexcept {
        number = launch.failed ? volume(clusters) : number + 1;
        next_cluster();
    });
    run_at_once(launch, size, [&](unsigned rank) {
        BlockRunner& runner = block_runner();
        while (number < volume(clusters)) {
            cluster->block[rank] = {static_cast<char*>(runner.dynamic_shared_arena()),
                                    reinterpret_cast<char*>(&threadIdx), &runner};
            runner.expect_block();
            entered.arrive_and_wait();
            const uint3 of_cluster = index_in(clusters, number);
            const uint3 in_cluster = index_in(dims, rank);
            if (!launch.failed) {
                runner.run(launch,
                           uint3{of_cluster.x * dims.x + in_cluster.x, of_cluster.y * dims.y + in_cluster.y,
                                 of_cluster.z * dims.z + in_cluster.z},
                           cluster.get());
            }
            finished.arrive_and_wait();
        }
    });
}

cudaError_t run(const Prepared& call, const LaunchConfiguration& configuration) {
    prepare_thread_for_faults();
    lockstep = environment().lockstep;
    const WatchedLaunch watched;
    LaunchState launch;
    launch.kernel = call.kernel;
    launch.name = short_name(call.kernel->pretty_name);
    launch.closure = call.closure;
    launch.run = call.run;
    launch.addresses = call.addresses;
    launch.configuration = configuration;
    launch.observer = launch_observer;
    if (launch.observer != nullptr) {
        launch.observer->begin_launch(launch);
    } else if (memory_observer != nullptr) {
        memory_observer->unwatched_launch();
    }
    note_launch();
    const OrderCheck order_check(launch);
    if (volume(configuration.cluster) > 1) {
        run_clusters(launch);
    } else if (configuration.cooperative) {
        run_cooperative(launch);
    } else {
        run_independent(launch);
    }
    if (const std::string damage = damaged_allocation(); !damage.empty()) {
        launch.fail(cudaErrorIllegalAddress, "the kernel " + damage);
    }
    if (launch.observer != nullptr) launch.observer->end_launch(launch);
    if (launch.failed) lose_context(launch.error);
    return cudaSuccess;  // as on a GPU, a failure inside the kernel shows at the next synchronisation
}

}  // namespace

constinit LaunchObserver* launch_observer = nullptr;
constinit MemoryObserver* memory_observer = nullptr;

bool Kernel::asked() {
    if (asking) answer = this;
    return asking;
}

void Kernel::check_pointer(int position, const volatile void* pointer) {
    if (!plain_host_memory(pointer)) return;
    std::fprintf(
        stderr,
        "cuda_on_cpu: kernel %s: argument %d is the host pointer %p; a GPU cannot reach that memory. "
        "Copy it to memory from cudaMalloc\n",
        short_name(pretty_name).c_str(), position, const_cast<void*>(pointer));
    prepared.error = cudaErrorIllegalAddress;
}

void Kernel::prepare_erased(const void* closure, void (*run)(const void*), void (*destroy)(const void*),
                            const char* names, const Argument* arguments, std::size_t count) {
    std::shared_ptr<const void> owned(closure, destroy);
    if (on_device()) {
        device_failure(cudaErrorNotSupported, "a kernel launched by a kernel: this is not supported",
                       Site{"", 0});
    }
    std::vector<NamedAddress> addresses;
    if (launch_observer != nullptr) addresses = addresses_in(names, {arguments, count});
    prepared = {this, std::move(owned), run, prepared.error, std::move(addresses)};
}

// Called without arguments: a kernel's function that is asked does not look at them.
Kernel* kernel_at(const void* function) {
    if (function == nullptr || !(in_program_code(function) || in_module(function, 1))) return nullptr;
    begin_asking();
    reinterpret_cast<void (*)()>(const_cast<void*>(function))();
    return end_asking();
}

void begin_asking() {
    asking = true;
    answer = nullptr;
}

Kernel* end_asking() {
    asking = false;
    return answer;
}

cudaError_t launch_prepared(const LaunchConfiguration& configuration) {
    const Prepared call = std::exchange(prepared, Prepared{});
    if (call.kernel == nullptr) return note(cudaErrorInvalidDeviceFunction);
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return note(lost);
    LaunchConfiguration complete = configuration;
    if (volume(complete.cluster) == 0) complete.cluster = call.kernel->cluster_dims;
    if (const cudaError_t error = check(*call.kernel, complete); error != cudaSuccess) {
        invalidate_capture_of(complete.stream);
        return error;
    }
    if (call.error != cudaSuccess) {
        lose_context(call.error);
        return cudaSuccess;
    }
    return submit(
        complete.stream, "kernel launch", [call, complete] { return run(call, complete); }, complete);
}

// --- LaunchState -----------------------------------------------------------------------------------------------------

void LaunchState::fail(cudaError_t code, const std::string& message, Site site) {
    const std::scoped_lock lock(report_mutex);
    if (failed) return;
    std::fflush(stdout);
    std::fprintf(stderr, "cuda_on_cpu: kernel %s: %s\n", name.c_str(), message.c_str());
    if (observer != nullptr) observer->launch_failed(*this, code, message, site);
    error = code;
    failed = true;
    note_failure();
    grid_barrier.wake_all();
    if (const auto running = cluster; running != nullptr) {
        running->barrier.wake_all();
        running->events.wake_all();
    }
}

namespace {

// As many as an H100 holds at once, if the system has room: each waiting thread has a stack with a guard page, which takes two of the
// 65530 mappings that Linux allows. The blocks that fit this device run in any case.
unsigned most_blocks_at_once(const LaunchState& launch) {
    constexpr unsigned kMultiprocessors = 132;
    constexpr unsigned kMappings = 50000;
    const auto threads = static_cast<unsigned>(volume(launch.configuration.block));
    const unsigned fit = blocks_per_multiprocessor(
        threads, launch.configuration.dynamic_shared + launch.kernel->static_shared);
    return std::max({fit * multiprocessors(), environment().threads,
                     std::min(fit * kMultiprocessors, kMappings / (2 * threads + 8))});
}

}  // namespace

constinit std::atomic<void (*)(LaunchState&)> launch_polls_in_vain{nullptr};

// A block that only polls may wait for one that has no OS thread yet: a GPU would run both at the same time.
void LaunchState::let_other_blocks_run() {
    std::this_thread::yield();
    if (team == nullptr || next_block >= volume(configuration.grid)) return;
    const std::scoped_lock lock(report_mutex);
    most_os_threads = most_blocks_at_once(*this);
    if (os_threads >= most_os_threads) return;
    try {
        team->start(work);
        ++os_threads;
    } catch (const std::system_error&) {
        os_threads = UINT_MAX;  // the system gives no more: those there are must do
    }
}

std::string LaunchState::blocks_that_wait_to_begin() const {
    const std::uint64_t all = volume(configuration.grid);
    const std::uint64_t begun = next_block;
    if (team == nullptr || begun >= all) return "";
    const unsigned fit =
        std::max(1U, blocks_per_multiprocessor(static_cast<unsigned>(volume(configuration.block)),
                                               configuration.dynamic_shared + kernel->static_shared));
    const std::uint64_t needed = (all + fit - 1) / fit;
    return "; " + std::to_string(all - begun) + " of " + std::to_string(all) +
           " blocks have not begun: " + std::to_string(most_os_threads) +
           " run at once here, as many as on a GPU with " +
           std::to_string((most_os_threads + fit - 1) / fit) +
           " multiprocessors. CUDA_ON_CPU_THREADS=" + std::to_string(needed) +
           " runs all of them at once, if the system has room";
}

// --- BlocksBarrier ---------------------------------------------------------------------------------------------------

unsigned BlocksBarrier::arrive() {
    const std::scoped_lock lock(mutex_);
    const unsigned phase = phase_.load(std::memory_order_relaxed);
    if (++arrived_ == expected_) complete();
    return phase;
}

void BlocksBarrier::complete() {
    arrived_ = 0;
    phase_.store(phase_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    changed_.notify_all();
}

bool BlocksBarrier::wait(unsigned phase, const std::atomic<bool>& cancelled) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return passed(phase) || cancelled || deserted_; });
    return passed(phase);
}

bool BlocksBarrier::drop() {
    const std::scoped_lock lock(mutex_);
    const bool last = --expected_ > 0 && arrived_ == expected_;
    if (last) complete();
    return last;
}

void BlocksBarrier::desert() {
    const std::scoped_lock lock(mutex_);
    deserted_ = true;
    changed_.notify_all();
}

void BlocksBarrier::wake_all() {
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
}

// --- ClusterEvents ---------------------------------------------------------------------------------------------------

void ClusterEvents::happened() {
    const std::scoped_lock lock(mutex_);
    count_.fetch_add(1, std::memory_order_release);
    waiting_ = 0;  // whoever waits shall look again
    changed_.notify_all();
}

bool ClusterEvents::wait(unsigned seen, const std::atomic<bool>& cancelled) {
    std::unique_lock lock(mutex_);
    if (count() != seen) return !cancelled;
    if (waiting_ + 1 >= blocks_) return false;
    ++waiting_;
    changed_.wait(lock, [&] { return count() != seen || cancelled; });
    return !cancelled;
}

void ClusterEvents::block_ended() {
    const std::scoped_lock lock(mutex_);
    --blocks_;
    count_.fetch_add(1, std::memory_order_release);
    waiting_ = 0;
    changed_.notify_all();
}

void ClusterEvents::wake_all() {
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
}

}  // namespace cuda_on_cpu

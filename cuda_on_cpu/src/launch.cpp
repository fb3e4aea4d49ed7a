#include "cuda_on_cpu/launch.h"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <latch>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "block.hpp"
#include "child_grids.hpp"
#include "current_device.hpp"
#include "device.hpp"
#include "device_variables.hpp"
#include "environment.hpp"
#include "errors.hpp"
#include "exit_report.hpp"
#include "fault.hpp"
#include "few_blocks.hpp"
#include "fibre.hpp"
#include "host_shadows.hpp"
#include "kernel_call.hpp"
#include "launch_state.hpp"
#include "managed_watch.hpp"
#include "memory.hpp"
#include "module_ranges.hpp"
#include "order_check.hpp"
#include "slow_launch.hpp"
#include "stream.hpp"
#include "variable_gaps.hpp"
#include "work_queue.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {
namespace {

// The call that the last kernel function on this OS thread has prepared for launch_prepared().
thread_local KernelCall prepared;
constinit thread_local bool querying = false;
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

// All possible addresses in the arguments: pointers, also those in structures. Arguments beyond the
// last name belong to a parameter pack.
std::vector<NamedAddress> addresses_in(std::string_view names, std::span<const Argument> arguments) {
    std::vector<NamedAddress> found;
    std::string_view name;
    for (const Argument& argument : arguments) {
        if (!names.empty()) {
            name = names.substr(0, names.find(", "));
            names.remove_prefix(std::min(names.size(), name.size() + 2));
            if (name.ends_with("...")) name.remove_suffix(3);
        }
        constexpr std::size_t kLarge = 128;  // bytes
        const bool may_be_unset = argument.pointers == nullptr && argument.size > kLarge;
        for (std::size_t i = 0; i + sizeof(std::uintptr_t) <= argument.size; i += sizeof(std::uintptr_t)) {
            if (argument.pointers != nullptr && !argument.pointers[i / sizeof(std::uintptr_t)]) continue;
            std::uintptr_t word = 0;
            std::memcpy(&word, static_cast<const char*>(const_cast<const void*>(argument.bytes)) + i,
                        sizeof word);
            if (word != 0) found.push_back({std::string(name), word, may_be_unset});
        }
    }
    return found;
}

// Returns the errors with which a GPU refuses a launch.
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
        if (limits.cluster_portable == 0) {
            return refuse(cudaErrorNotSupported, function,
                          "a cluster needs compute capability 9.0; this device has %d.%d", limits.major,
                          limits.minor);
        }
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

// The order in which the `blocks` blocks of a grid start (CUDA_ON_CPU_BLOCKS).
class StartOrder {
  public:
    explicit StartOrder(std::uint64_t blocks) : order_(environment().blocks.order), blocks_(blocks) {
        if (order_ != BlockOrder::random || blocks < 3) return;
        static std::atomic<std::uint64_t> launches{0};
        std::mt19937_64 random(environment().blocks.seed + (launches++ << 32));
        // The multiples of a step that is coprime to the number of blocks visit each block exactly
        // once.
        const std::uint64_t most = std::min(blocks - 1, ~std::uint64_t{0} / blocks - 1);
        first_ = random() % blocks;
        do {
            step_ = 1 + random() % most;
        } while (std::gcd(step_, blocks) != 1);
    }

    std::uint64_t operator()(std::uint64_t next) const {
        if (order_ == BlockOrder::descending) return blocks_ - 1 - next;
        if (step_ == 0) return next;
        return (first_ + step_ * next % blocks_) % blocks_;
    }

  private:
    BlockOrder order_;
    std::uint64_t blocks_;
    std::uint64_t first_ = 0;
    std::uint64_t step_ = 0;
};

// Runs blocks that are independent of each other.
void run_independent(LaunchState& launch) {
    const auto& few = launch.few_blocks;
    const std::uint64_t blocks = few ? few->size() : volume(launch.configuration.grid);
    const StartOrder order(blocks);
    Team team;
    const auto os_threads = static_cast<unsigned>(std::min<std::uint64_t>(blocks, environment().threads));
    // Blocks that run as loops wait for no other ones and may be short, so that each access to what
    // OS threads share counts.
    const std::uint64_t at_once = launch.run_block != nullptr && blocks / os_threads >= 64 ? 8 : 1;
    launch.work = [&launch, &few, &order, blocks, at_once] {
        BlockRunner& runner = block_runner();
        while (!launch.failed) {
            const std::uint64_t first = launch.next_block.fetch_add(at_once);
            if (first >= blocks) break;
            for (std::uint64_t next = first; next < std::min(first + at_once, blocks) && !launch.failed;
                 ++next) {
                const std::uint64_t block = order(next);
                runner.run(launch, index_in(launch.configuration.grid, few ? (*few)[block] : block), nullptr);
            }
        }
    };
    launch.team = &team;
    launch.os_threads = os_threads;
    for (unsigned i = 1; i < os_threads; ++i)
        team.start(launch.work);
    launch.work();
}

// Runs work(0) to work(count - 1), each on its own OS thread, or none of them if the system does
// not have so many OS threads.
void run_concurrently(LaunchState& launch, unsigned count, const std::function<void(unsigned)>& work) {
    bool complete = true;
    std::latch started(1);
    Team team;  // last: its destructor waits for threads that use the other members
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

// Runs all blocks at the same time.
void run_cooperative(LaunchState& launch) {
    const auto blocks = static_cast<unsigned>(volume(launch.configuration.grid));
    launch.grid_barrier.expect(blocks);
    run_concurrently(launch, blocks, [&launch](unsigned block) {
        block_runner().run(launch, index_in(launch.configuration.grid, block), nullptr);
    });
}

// Runs the clusters one after the other, and the blocks of each cluster at the same time.
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
    run_concurrently(launch, size, [&](unsigned rank) {
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

// Collects the tail launches of a grid that is itself a tail launch. They run when that grid is
// complete, so that the recursion does not get deeper.
constinit thread_local std::deque<Work>* tails_behind = nullptr;
// The nesting depth of child grids on this OS thread.
constinit thread_local unsigned depth = 0;

void run_blocks(LaunchState& launch) {
    if (launch.observer != nullptr) {
        launch.observer->begin_launch(launch);
    } else if (memory_observer != nullptr) {
        memory_observer->unwatched_launch();
    }
    note_launch();
    const ManagedWatch managed_watch(launch.name, !launch.kernel->polls);
    const OrderCheck order_check(launch);
    {
        const KernelOnDevice on_device(launch.device, launch.kernel->polls);
        if (volume(launch.configuration.cluster) > 1) {
            run_clusters(launch);
        } else if (launch.configuration.cooperative) {
            run_cooperative(launch);
        } else {
            run_independent(launch);
        }
    }
    if (const std::string damage = damaged_allocation(); !damage.empty()) {
        launch.fail(cudaErrorIllegalAddress, "the kernel " + damage);
    }
    if (const std::string damage = damaged_variable(); !damage.empty()) {
        launch.fail(cudaErrorIllegalAddress, "the kernel " + damage);
    }
    if (launch.observer != nullptr) launch.observer->end_launch(launch);
    if (launch.failed) lose_context(launch.error);
}

// Runs the grids that the grid's threads have launched, and their children.
void run_children(LaunchState& launch, std::deque<Work>* behind) {
    if (launch.children == nullptr) return;
    std::deque<Work> tails = launch.children.load()->take_tails();
    if (behind != nullptr) {
        behind->insert(behind->begin(), std::make_move_iterator(tails.begin()),
                       std::make_move_iterator(tails.end()));
        return;
    }
    while (!tails.empty() && lost_context() == cudaSuccess) {
        const Work next = std::move(tails.front());
        tails.pop_front();
        tails_behind = &tails;
        static_cast<void>(next());
        tails_behind = nullptr;
    }
}

void run_grid(const KernelCall& call, const LaunchConfiguration& configuration,
              const std::optional<std::vector<std::uint64_t>>& few_blocks, Task* task,
              std::deque<Work>* behind) {
    prepare_thread_for_faults();
    static const bool steps = lockstep = environment().lockstep;
    static_cast<void>(steps);
    const WatchedLaunch watched;
    LaunchState launch;
    launch.kernel = call.kernel;
    launch.name = short_name(call.kernel->pretty_name);
    launch.closure = call.closure;
    launch.run = call.run;
    launch.run_block = call.run_block;
    launch.addresses = call.addresses;
    launch.configuration = configuration;
    launch.few_blocks = few_blocks;
    launch.observer = launch_observer;
    launch.task = task;
    launch.device = current_device();
    launch.nesting = call.nesting;
    launch.graph_run = graph_of_os_thread;
    run_blocks(launch);
    ++depth;
    run_children(launch, behind);
    --depth;
}

cudaError_t run(const KernelCall& call, const LaunchConfiguration& configuration,
                const std::optional<std::vector<std::uint64_t>>& few_blocks) {
    constexpr unsigned kGridsPerStack = 100;
    std::deque<Work>* const behind = std::exchange(tails_behind, nullptr);
    Task* const task = running_task();
    if (depth < kGridsPerStack) {
        run_grid(call, configuration, few_blocks, task, behind);
    } else {
        Team team;
        team.start([&, device = current_device(), graph = graph_of_os_thread] {
            const DeviceScope scope(device);
            const GraphScope of_graph(graph);
            run_grid(call, configuration, few_blocks, task, behind);
        });
        team.wait();
    }
    return cudaSuccess;  // as on a GPU, a failure inside the kernel shows at the next synchronisation
}

}  // namespace

constinit LaunchObserver* launch_observer = nullptr;
constinit MemoryObserver* memory_observer = nullptr;

void Kernel::may_poll() {
    polls.store(true, MemoryOrder::relaxed);
}

bool Kernel::is_query() {
    if (querying) answer = this;
    return querying;
}

void Kernel::check_pointer(int position, const volatile void* pointer) {
    if (in_kernel()) {
        const auto* byte = const_cast<const char*>(static_cast<const volatile char*>(pointer));
        BlockRunner& runner = block_runner();
        const bool local = byte >= runner.stacks().begin() && byte < runner.stacks().end();
        if (byte == nullptr || (!local && !runner.in_dynamic_shared(byte) && !in_static_shared(byte))) return;
        std::fprintf(stderr,
                     "cuda_on_cpu: kernel %s, launched by a kernel: argument %d points to %s memory of the "
                     "thread that "
                     "launches it; the child grid cannot reach that\n",
                     short_name(pretty_name).c_str(), position, local ? "local" : "shared");
        prepared.error = cudaErrorInvalidValue;
        return;
    }
    if (!plain_host_memory(pointer)) return;
    prepared.error = cudaErrorIllegalAddress;
    if (const std::string shadow = describe_shadow(pointer); !shadow.empty()) {
        std::fprintf(stderr, "cuda_on_cpu: kernel %s: argument %d is %s\n", short_name(pretty_name).c_str(),
                     position, shadow.c_str());
        return;
    }
    std::fprintf(
        stderr,
        "cuda_on_cpu: kernel %s: argument %d is the host pointer %p; a GPU cannot reach that memory. "
        "Copy it to memory from cudaMalloc\n",
        short_name(pretty_name).c_str(), position, const_cast<void*>(pointer));
}

namespace {

// The kernel may not use these pointers, so the launch continues.
void look_for_host_pointers(const Kernel& kernel, std::span<const NamedAddress> addresses) {
    constexpr std::uintptr_t kLeast = std::uintptr_t{1} << 32;  // smaller values are treated as numbers
    for (const NamedAddress& each : addresses) {
        if (each.address >= kLeast && !each.may_be_unset &&
            plain_host_memory(reinterpret_cast<const void*>(each.address)))
            note_host_pointer(short_name(kernel.pretty_name), each.parameter);
    }
}

}  // namespace

void Kernel::prepare_erased(const void* closure, void (*run)(const void*), RunBlock run_block,
                            void (*destroy)(const void*), const char* names, const Argument* arguments,
                            std::size_t count) {
    std::shared_ptr<const void> owned(closure, destroy);
    std::vector<NamedAddress> addresses;
    const bool gives_hints = own_program && environment().hints && !in_kernel();
    if (launch_observer != nullptr || gives_hints) addresses = addresses_in(names, {arguments, count});
    if (gives_hints) look_for_host_pointers(*this, addresses);
    prepared = {this, std::move(owned), run, run_block, prepared.error, std::move(addresses)};
}

// The kernel's function is called without arguments, because it does not read them in a query.
Kernel* kernel_at(const void* function) {
    if (function == nullptr || !(in_program_code(function) || in_module(function, 1))) return nullptr;
    begin_query();
    reinterpret_cast<void (*)()>(const_cast<void*>(function))();
    return end_query();
}

void begin_query() {
    querying = true;
    answer = nullptr;
}

Kernel* end_query() {
    querying = false;
    return answer;
}

cudaError_t call_by_address(const char* caller, const void* function, void** arguments, KernelCall* call) {
    const Kernel* const kernel = kernel_at(function);
    if (kernel == nullptr)
        return refuse(cudaErrorInvalidDeviceFunction, caller,
                      function == nullptr
                          ? "the function is a null pointer, as cudaGraphKernelNodeGetParams() "
                            "gives it for a captured launch; expected the kernel's name"
                          : "this is no kernel");
    const std::string name = short_name(kernel->pretty_name);
    if (kernel->prepare_untyped == nullptr) {
        return refuse(
            cudaErrorNotSupported, caller,
            "kernel %s has a parameter without a name, so its type is not known here; expected names for all",
            name.c_str());
    }
    if (kernel->parameters.load()->size != 0 && arguments == nullptr) {
        return refuse(cudaErrorInvalidValue, caller, "kernel %s has parameters; their list is null",
                      name.c_str());
    }
    kernel->prepare_untyped.load()(function, arguments);
    *call = std::exchange(prepared, KernelCall{});
    return cudaSuccess;
}

cudaError_t check_launch(const KernelCall& call, LaunchConfiguration* configuration) {
    if (volume(configuration->cluster) == 0) configuration->cluster = call.kernel->cluster_dims;
    return check(*call.kernel, *configuration);
}

StreamOperation launch_operation(KernelCall call, const LaunchConfiguration& configuration) {
    const bool may_wait = call.kernel->polls && concurrency_expected();
    return {.work =
                [call = std::move(call), configuration, few = few_blocks_of(volume(configuration.grid)),
                 device = current_device()] {
                    const DeviceScope scope(device);
                    return run(call, configuration, few);
                },
            .type = cudaGraphNodeTypeKernel,
            .may_wait = may_wait,
            .launch = configuration};
}

namespace {

cudaError_t launch_by_kernel(KernelCall call, LaunchConfiguration configuration) {
    if (call.error != cudaSuccess) return set_last_error(call.error);
    if (const cudaError_t error = check_launch(call, &configuration); error != cudaSuccess) return error;
    const cudaError_t refused =
        check_child(configuration.stream, short_name(call.kernel->pretty_name).c_str());
    if (refused != cudaSuccess) return refused;
    call.nesting =
        runner_of_os_thread->launch().nesting + (configuration.stream == cudaStreamTailLaunch ? 0 : 1);
    return submit_by_kernel(configuration.stream, "kernel launch",
                            launch_operation(std::move(call), configuration));
}

cudaError_t launch_by_host(KernelCall call, LaunchConfiguration configuration) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    cudaError_t error = check_launch(call, &configuration);
    if (error == cudaSuccess && must_be_refused(RefusedCall::launch)) {
        error = refuse(cudaErrorLaunchOutOfResources, "kernel launch", "%s", kRefusedForATest);
    }
    if (error == cudaSuccess && call.error != cudaSuccess) {
        lose_context(call.error);
        return cudaSuccess;
    }
    if (error == cudaSuccess) error = check_device_of(configuration.stream, "kernel launch");
    if (error != cudaSuccess) {
        invalidate_capture_of(configuration.stream);
        return error;
    }
    if (launch_observer != nullptr) number_launch(configuration);
    return submit_by_host(configuration.stream, "kernel launch",
                          launch_operation(std::move(call), configuration));
}

}  // namespace

cudaError_t launch_prepared(const LaunchConfiguration& configuration) {
    KernelCall call = std::exchange(prepared, KernelCall{});
    if (call.kernel == nullptr)
        return refuse(cudaErrorInvalidDeviceFunction, "kernel launch",
                      "the function in front of <<<...>>> is no kernel");
    return in_kernel() ? launch_by_kernel(std::move(call), configuration)
                       : launch_by_host(std::move(call), configuration);
}

// --- LaunchState ---------------------------------------------------------------------------------

void LaunchState::fail(cudaError_t code, const std::string& message, Site site) {
    const std::scoped_lock lock(report_mutex);
    if (failed) return;
    std::fflush(stdout);
    std::fprintf(stderr, "cuda_on_cpu: kernel %s: %s\n", name.c_str(), message.c_str());
    if (observer != nullptr) observer->launch_failed(*this, code, message, site);
    error = code;
    failed = true;
    note_failure(code);
    grid_barrier.wake_all();
    if (const auto running = cluster; running != nullptr) {
        running->barrier.wake_all();
        running->events.wake_all();
    }
}

namespace {

// As many blocks as are resident on an H100, if the system has room for their threads' stacks: at
// most a quarter of its memory, at two pages per stack, and the 65530 mappings that Linux allows.
// The blocks that fit this device run in any case.
unsigned most_blocks_at_once(const LaunchState& launch) {
    constexpr unsigned kMultiprocessors = 132;
    constexpr unsigned kMappings = 50000;
    const auto threads = static_cast<unsigned>(volume(launch.configuration.block));
    const unsigned fit = blocks_per_multiprocessor(
        threads, launch.configuration.dynamic_shared + launch.kernel->static_shared);
    const auto of_memory = static_cast<unsigned>(sysconf(_SC_PHYS_PAGES) / 8 / threads);
    const unsigned of_mappings = kMappings / ((guards_take_mappings() ? 2 * threads : 0) + 8);
    return std::max({fit * multiprocessors(), environment().threads,
                     std::min({fit * kMultiprocessors, of_memory, of_mappings})});
}

}  // namespace

void LaunchState::polls_in_vain() {
    let_host_go_on(task);
    if (ChildGrids* const issued = children; issued != nullptr) issued->start_now();
}

ChildGrids& LaunchState::make_children() {
    const std::scoped_lock lock(report_mutex);
    if (children == nullptr) children = new ChildGrids;
    return *children;
}

// A block that only polls may wait for a block that has no OS thread yet, although a GPU would run
// both at the same time. While another block of the launch is working, the polling block may be
// waiting for that one, and a further block would only slow it down. But the work may also be an
// endless loop, so this waits for kPatience at most.
void LaunchState::let_other_blocks_begin(std::chrono::steady_clock::rep since,
                                         std::chrono::steady_clock::rep now) {
    constexpr std::chrono::steady_clock::duration kPatience = std::chrono::milliseconds(200);
    if (team == nullptr || next_block >= volume(configuration.grid)) return;
    const auto then = std::max(since, last_begin.load());
    const bool all_poll = blocks_that_have_polled(*this, then) == os_threads;
    if (!all_poll && now - then < kPatience.count()) return;
    const std::scoped_lock lock(report_mutex);
    if (then < last_begin) return;  // another block was faster
    if (most_os_threads == 0) {
        most_os_threads = most_blocks_at_once(*this);
        const unsigned wanted = most_os_threads;
        // The extra stacks cover the OS thread itself and its shared memory.
        const std::uint64_t stacks_each = volume(configuration.block) + 64;
        while (most_os_threads > 1 && !FibreStacks::room_for(most_os_threads * stacks_each))
            most_os_threads = most_os_threads * 3 / 4;
        system_is_full = most_os_threads < wanted;
    }
    // If all blocks poll and none has ended since the last start, they probably wait for the whole
    // grid, so the number of OS threads doubles. Otherwise one more block starts.
    const std::uint64_t ended = next_block - os_threads;
    unsigned more = all_poll && ended == ended_at_last_begin ? os_threads.load() : 1;
    ended_at_last_begin = ended;
    try {
        for (; more > 0 && os_threads < most_os_threads; --more) {
            team->start(work);
            ++os_threads;
        }
        last_begin = std::chrono::steady_clock::now().time_since_epoch().count();
    } catch (const std::system_error&) {  // no more OS threads: the present ones must suffice
        most_os_threads = os_threads;
        system_is_full = true;
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
           std::to_string((most_os_threads + fit - 1) / fit) + " multiprocessors" +
           (system_is_full ? "; for more the system has no room (ulimit -d, -u, -v)" : "") +
           ". CUDA_ON_CPU_THREADS=" + std::to_string(needed) +
           " runs all of them at once, if the system has room";
}

// --- BlocksBarrier -------------------------------------------------------------------------------

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

// --- ClusterEvents -------------------------------------------------------------------------------

void ClusterEvents::happened() {
    const std::scoped_lock lock(mutex_);
    count_.fetch_add(1, std::memory_order_release);
    waiting_ = 0;  // waiting threads check again
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

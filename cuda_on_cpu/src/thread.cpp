// Device functions (thread.h and async_copy.h), which call the block runner of this OS thread.
#include "cuda_on_cpu/thread.h"

#include <link.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>

#include "block.hpp"
#include "child_grids.hpp"
#include "cuda_on_cpu/arrival_barrier.h"
#include "cuda_on_cpu/async_copy.h"
#include "cuda_on_cpu/barriers.h"
#include "cuda_on_cpu/host_memory.h"
#include "environment.hpp"
#include "fault.hpp"
#include "kernel_line.hpp"
#include "launch_state.hpp"
#include "pages.hpp"
#include "shared_arena.hpp"
#include "work_queue.hpp"

namespace cuda_on_cpu {

bool in_kernel() {
    return runner_of_os_thread != nullptr && runner_of_os_thread->runs_block();
}

void set_grid_constants(const GridConstant* first, std::size_t count) {
    block_runner().scheduler().thread().grid_constants = {first, count};
}

int block_barrier(BarrierKind kind, int predicate, Site site) {
    return block_runner().barrier().sync(kind, predicate, site);
}
void block_barrier_arrive(Site site) {
    block_runner().barrier().arrive(site);
}
void block_barrier_wait(Site site) {
    block_runner().barrier().wait(site);
}

void tile_collective(unsigned size, void* operand, TileWork work, const char* name, Site site) {
    block_runner().named_barriers().meet_in_tile(size, operand, work, name, site);
}
void warp_collective(unsigned mask, void* operand, CollectiveWork work, const char* name, Site site,
                     Ended ended) {
    block_runner().collectives().meet(mask, operand, work, name, site, ended);
}

void note_undefined_shuffle(unsigned mask, unsigned source, const char* name, Site site) {
    if (environment().tells_shuffles)
        block_runner().collectives().tell_undefined_shuffle(mask, source, name, site);
}

unsigned converged_lanes(Site site) {
    return block_runner().collectives().converged("__activemask", site);
}

constinit thread_local unsigned polls = 0;
constinit thread_local int uses_host_memory = 0;
constinit thread_local const void* loaded_last[2] = {nullptr, nullptr};
// In constant memory, like atomics_are_noted.
CUDA_ON_CPU_CONSTANT constinit bool lockstep = false;

void wait_for_lanes_in_step(unsigned place) {
    BlockRunner& runner = block_runner();
    if (runner.runs_block()) runner.collectives().converged("lockstep", Site{"", static_cast<int>(place)});
}

void spin_hint() {
    if (atomics_are_noted) note_atomic(AtomicKind::ordered, nullptr, 0);
    if (in_kernel()) {
        runner_of_os_thread->scheduler().yield();
    } else {
        host_polls();
    }
}

bool grid_barrier_available() {
    return block_runner().launch().configuration.cooperative;
}

void grid_barrier(Site site) {
    BlockRunner& runner = block_runner();
    if (!grid_barrier_available()) {
        runner.fail(cudaErrorLaunchFailure,
                    "grid sync in a kernel that was not launched with cudaLaunchCooperativeKernel", site);
    }
    runner.between_blocks().grid_sync(site);
}

void cluster_barrier_arrive(Site site) {
    block_runner().between_blocks().cluster_arrive(site);
}
void cluster_barrier_wait(Site site) {
    block_runner().between_blocks().cluster_wait(site);
}

void issue_copy(void* shared, const void* global, unsigned bytes, unsigned valid_bytes, Site site) {
    block_runner().async().issue_copy(shared, global, bytes, valid_bytes, site);
}
void commit_copies() {
    block_runner().async().commit_copies();
}
void wait_for_copies(unsigned pending) {
    block_runner().async().wait_for_copies(pending);
}

void init_arrival_barrier(const void* barrier, std::int64_t expected, Site site) {
    block_runner().arrival_barriers().init(barrier, expected, site);
}
std::uint64_t arrive_at(const void* barrier, std::int64_t count, Site site) {
    return block_runner().arrival_barriers().arrive(barrier, count, site);
}
void attach_copies_to(const void* barrier, Site site) {
    block_runner().arrival_barriers().attach_copies(barrier, site);
}
void wait_for_phase(const void* barrier, std::uint64_t phase, const char* name, Site site) {
    block_runner().arrival_barriers().wait_for_phase(barrier, phase, name, site);
}

dim3 cluster_dimensions() {
    return block_runner().cluster().dims;
}

bool cluster_is_given() {
    return block_runner().launch().configuration.cluster.x != 0;
}

uint3 cluster_block_index() {
    const dim3 dims = cluster_dimensions();
    return uint3{blockIdx.x % dims.x, blockIdx.y % dims.y, blockIdx.z % dims.z};
}

unsigned cluster_block_rank() {
    const dim3 dims = cluster_dimensions();
    const uint3 index = cluster_block_index();
    return (index.z * dims.y + index.y) * dims.x + index.x;
}

namespace {

// The thread-local objects of one module (program or shared library) on this OS thread, which
// include `__shared__` arrays.
struct ThreadLocals {
    const char* begin;
    const char* end;
    bool hold(const char* byte) const { return byte >= begin && byte < end; }
};

}  // namespace

bool in_static_shared(const void* address) {
    const auto* byte = static_cast<const char*>(address);
    static constinit thread_local ThreadLocals last{nullptr, nullptr};
    if (last.hold(byte)) return true;
    struct Search {
        const char* byte;
        ThreadLocals found;
    } search{byte, {nullptr, nullptr}};
    dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* argument) {
            auto& wanted = *static_cast<Search*>(argument);
            for (int i = 0; i < module->dlpi_phnum; ++i) {
                if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
                const auto* begin = static_cast<const char*>(module->dlpi_tls_data);
                const ThreadLocals locals{begin, begin + module->dlpi_phdr[i].p_memsz};
                if (begin != nullptr && locals.hold(wanted.byte)) wanted.found = locals;
            }
            return 0;
        },
        &search);
    if (search.found.begin == nullptr) return false;
    last = search.found;
    return true;
}

bool beside_static_shared(const void* address) {
    const auto byte = reinterpret_cast<std::uintptr_t>(address);
    return byte - (reinterpret_cast<std::uintptr_t>(&threadIdx) - guard_size()) < 2 * guard_size();
}

namespace {

// Is the byte in the shared memory of that block? It is if the byte at the same offset here is in
// this block's shared memory.
bool in_shared_of(const ClusterState::Block& other, const char* byte) {
    BlockRunner& runner = block_runner();
    return runner.in_dynamic_shared(static_cast<char*>(runner.dynamic_shared_arena()) +
                                    (byte - other.dynamic_arena)) ||
           in_static_shared(reinterpret_cast<char*>(&threadIdx) + (byte - other.thread_local_base));
}

unsigned cluster_size() {
    const dim3 dims = cluster_dimensions();
    return dims.x * dims.y * dims.z;
}

}  // namespace

bool in_shared_of_cluster(const void* pointer) {
    BlockRunner& runner = block_runner();
    for (unsigned rank = 0; rank < cluster_size(); ++rank) {
        if (in_shared_of(runner.cluster().block[rank], static_cast<const char*>(pointer))) return true;
    }
    return false;
}

void* place_in_own_shared(const void* pointer, unsigned rank) {
    const ClusterState::Block& other = block_runner().cluster().block[rank];
    const auto* const byte = static_cast<const char*>(pointer);
    BlockRunner& runner = block_runner();
    char* const own = static_cast<char*>(runner.dynamic_shared_arena()) + (byte - other.dynamic_arena);
    if (runner.in_dynamic_shared(own)) return own;
    return reinterpret_cast<char*>(&threadIdx) + (byte - other.thread_local_base);
}

void* map_shared(const void* pointer, unsigned rank, Site site) {
    BlockRunner& runner = block_runner();
    auto* byte = static_cast<char*>(const_cast<void*>(pointer));
    const unsigned size = cluster_size();
    if (rank >= size) {
        runner.fail(cudaErrorLaunchFailure,
                    "shared memory of block " + std::to_string(rank) + " asked for; the cluster has " +
                        std::to_string(size) + " block(s)",
                    site);
    }
    const ClusterState::Block& other = runner.cluster().block[rank];
    if (runner.in_dynamic_shared(byte)) {
        return other.dynamic_arena + (byte - static_cast<char*>(runner.dynamic_shared_arena()));
    }
    if (!in_static_shared(byte)) {
        runner.fail(cudaErrorIllegalAddress,
                    "a pointer to map to another block does not point to shared memory of this one", site);
    }
    return other.thread_local_base + (byte - reinterpret_cast<char*>(&threadIdx));
}

unsigned shared_rank(const void* pointer, Site site) {
    BlockRunner& runner = block_runner();
    const unsigned size = cluster_size();
    for (unsigned rank = 0; rank < size; ++rank) {
        if (in_shared_of(runner.cluster().block[rank], static_cast<const char*>(pointer))) return rank;
    }
    runner.fail(cudaErrorIllegalAddress, "a pointer that is not to shared memory of this cluster", site);
}

void await_previous_grid() {
    BlockRunner& runner = block_runner();
    runner.notify(event::PreviousGridAwaited{runner.scheduler().thread_number()});
}

void* dynamic_shared() {
    return block_runner().shared().dynamic();
}
std::size_t dynamic_shared_size() {
    return block_runner().shared().dynamic_bytes();
}

void enter_shared(void* object, std::size_t size, bool poison, const char* name, std::size_t gap,
                  bool alone) {
    block_runner().enter_shared(object, size, poison, name, gap, alone);
}
void enter_shared(void* object, std::size_t size, bool poison, const char* name, SharedGap& one,
                  SharedGap& other) {
    block_runner().enter_shared(object, size, poison, name, one, other);
}

void device_failure(cudaError_t error, const char* message, Site site) {
    BlockRunner& runner = block_runner();
    if (runner.runs_block()) runner.fail(error, message, site);
    std::fprintf(stderr, "cuda_on_cpu: %s:%d: %s\n", site.file, site.line, message);
    std::abort();
}

}  // namespace cuda_on_cpu

// Called by the C library's assert(). Inside a kernel it must end the launch, not the program.
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line,
                              const char* function) noexcept {
    using namespace cuda_on_cpu;
    const std::string message = std::string("Assertion `") + assertion + "' failed";
    if (BlockRunner& runner = block_runner(); runner.runs_block()) {
        runner.fail(cudaErrorAssert, message, Site{file, static_cast<int>(line)});
    }
    std::fprintf(stderr, "%s:%u: %s: %s.\n", file, line, function, message.c_str());
    std::abort();
}

// Called by code compiled with -fstack-protector, when a function whose frame was overwritten
// returns.
extern "C" [[noreturn]] void __stack_chk_fail() {
    using namespace cuda_on_cpu;
    void* const call = static_cast<char*>(__builtin_return_address(0)) - 1;
    const std::string line = kernel_line(std::span(&call, 1));
    const std::string message = kDamagedStack + (line.empty() ? "" : " In the function that ends in " + line);
    if (BlockRunner& runner = block_runner(); runner.runs_block())
        runner.fail(cudaErrorIllegalAddress, message, Site{"", 0});
    std::fprintf(stderr, "cuda_on_cpu: host code: %s\n", message.c_str());
    std::abort();
}

long long clock64() {
    cuda_on_cpu::order_may_show = true;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// The C library's clock(); in a kernel, CUDA's function of the same name.
extern "C" std::clock_t clock() noexcept {
    if (cuda_on_cpu::in_kernel()) return static_cast<std::clock_t>(clock64());
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * CLOCKS_PER_SEC + used.tv_nsec / (1'000'000'000 / CLOCKS_PER_SEC);
}

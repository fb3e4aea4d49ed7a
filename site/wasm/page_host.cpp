// What stands in a page in the place of the runtime's other half: one launch at a time, on the one
// thread of a worker. There are no streams, no guard pages, no signals and no OS threads; clusters,
// cooperative grids, bulk copies and wgmma are left out.
#include "page_host.hpp"

#include <link.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "block.hpp"
#include "cuda_on_cpu/launch.h"
#include "device.hpp"
#include "kernel_line.hpp"
#include "launch_state.hpp"
#include "mbarrier_object.hpp"
#include "memory.hpp"
#include "report_text.hpp"
#include "slow_launch.hpp"
#include "tensor_map.hpp"
#include "work_queue.hpp"

// --- The system ----------------------------------------------------------------------------------

// Memory that is not touched takes none of the machine's, so it is not cleared, as emscripten's
// mmap() does. All of it can be accessed.
extern "C" void* mmap(void*, std::size_t size, int, int, int, off_t) {
    void* const memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return memory == nullptr ? MAP_FAILED : memory;
}
extern "C" int munmap(void*, std::size_t) {
    return 0;
}
extern "C" int mprotect(void*, std::size_t, int) {
    return 0;
}
extern "C" int madvise(void*, std::size_t, int) {
    return 0;
}
extern "C" long sysconf(int) {
    return 4096;
}
extern "C" int dl_iterate_phdr(int (*)(dl_phdr_info*, std::size_t, void*), void*) {
    return 0;
}

namespace cuda_on_cpu {
namespace {

struct Prepared {
    Kernel* kernel = nullptr;
    std::shared_ptr<const void> closure;
    void (*run)(const void*) = nullptr;
};
Prepared prepared;

void run_and_count(const void* closure) {
    ++run_seen.threads;
    prepared.run(closure);
}

[[noreturn]] void not_in_a_page(const char* what) {
    std::fprintf(stderr, "%s is not in the page's runtime\n", what);
    std::abort();
}

}  // namespace

RunSeen run_seen;

constinit LaunchObserver* launch_observer = nullptr;
constinit MemoryObserver* memory_observer = nullptr;

// --- Launches ------------------------------------------------------------------------------------

bool Kernel::is_query() {
    return false;
}

void Kernel::check_pointer(int, const volatile void*) {}

void Kernel::prepare_erased(const void* closure, void (*run)(const void*), void (*destroy)(const void*),
                            const char*, const Argument*, std::size_t) {
    prepared = {this, std::shared_ptr<const void>(closure, destroy), run};
}

cudaError_t launch_prepared(const LaunchConfiguration& configuration) {
    LaunchState launch;
    launch.kernel = prepared.kernel;
    launch.name = "in the page";
    launch.closure = prepared.closure;
    launch.run = run_and_count;
    launch.configuration = configuration;
    if (volume(configuration.block) > prepared.kernel->max_threads_per_block) {
        launch.fail(cudaErrorInvalidValue, "block (" + std::to_string(configuration.block.x) + ", " +
                                               std::to_string(configuration.block.y) +
                                               ") has more threads than its __launch_bounds__(" +
                                               std::to_string(prepared.kernel->max_threads_per_block) + ")");
    }
    for (std::uint64_t block = 0; block < volume(configuration.grid) && !launch.failed; ++block) {
        block_runner().run(launch, index_in(configuration.grid, block), nullptr);
        ++run_seen.blocks;
    }
    return launch.error;
}

void LaunchState::fail(cudaError_t code, const std::string& message, Site) {
    if (failed) return;
    std::fprintf(stderr, "%s\n", message.c_str());
    error = code;
    failed = true;
}

void LaunchState::polls_in_vain() {}
void LaunchState::let_other_blocks_begin(std::chrono::steady_clock::rep, std::chrono::steady_clock::rep) {}
std::string LaunchState::blocks_that_wait_to_begin() const {
    return "";
}
void host_polls() {}
void Team::wait() {}
void may_be_asked(const BlockRunner&) {}
void may_not_be_asked(const BlockRunner&) {}
bool every_block_polls(const LaunchState&, std::chrono::steady_clock::rep) {
    return true;
}

const DeviceLimits& device_limits() {
    static const DeviceLimits limits;
    return limits;
}

// --- Memory --------------------------------------------------------------------------------------

void fill(void* memory, std::size_t size, std::uint16_t pattern) {
    auto* bytes = static_cast<unsigned char*>(memory);
    for (std::size_t i = 0; i < size; ++i) {
        const bool high = (reinterpret_cast<std::uintptr_t>(bytes + i) & 1) != 0;
        bytes[i] = static_cast<unsigned char>(high ? pattern >> 8 : pattern);
    }
}

bool device_accessible(const volatile void*, std::size_t) {
    return true;
}

// --- Reports -------------------------------------------------------------------------------------

std::string place_and_caller(Site site) {
    return place(site);
}
std::string calling_kernel_line() {
    return "";
}
std::string kernel_line(std::span<void* const>) {
    return "";
}

// --- What a page does not have -------------------------------------------------------------------

unsigned BlocksBarrier::arrive() {
    not_in_a_page("a barrier between blocks");
}
bool BlocksBarrier::wait(unsigned, const std::atomic<bool>&) {
    not_in_a_page("a barrier between blocks");
}
bool BlocksBarrier::drop() {
    return false;
}
void BlocksBarrier::desert() {}
void BlocksBarrier::wake_all() {}

void ClusterEvents::happened() {}
bool ClusterEvents::wait(unsigned, const std::atomic<bool>&) {
    not_in_a_page("a cluster");
}
void ClusterEvents::block_ended() {}

std::optional<MbarrierState> read_mbarrier(const std::uint64_t*) {
    not_in_a_page("an mbarrier");
}
void write_mbarrier(std::uint64_t*, const MbarrierState&) {
    not_in_a_page("an mbarrier");
}
MbarrierChange change_mbarrier(std::uint64_t*, unsigned, int, unsigned) {
    not_in_a_page("an mbarrier");
}
std::string describe_mbarrier(const std::uint64_t*) {
    not_in_a_page("an mbarrier");
}

void WarpgroupProducts::begin_block(const char*, const char*, const char*, unsigned) {}
std::string WarpgroupProducts::end_block() const {
    return "";
}
void WarpgroupProducts::loaded(const void*, std::size_t) {}
bool WarpgroupProducts::begin_wait(unsigned, unsigned) {
    not_in_a_page("wgmma");
}
void WarpgroupProducts::end_wait(unsigned) {}
bool WarpgroupProducts::can_end_wait(unsigned) const {
    return false;
}

const TensorMap* TensorMap::of(const CUtensorMap*) {
    not_in_a_page("a bulk copy");
}
TensorMap TensorMap::matrix(int, int) const {
    not_in_a_page("a bulk copy");
}
TensorMap TensorMap::column_of_pixels(const int (&)[3], const std::uint16_t (&)[2]) const {
    not_in_a_page("a bulk copy");
}
std::vector<TensorMap::Row> TensorMap::rows_within(int, int) const {
    not_in_a_page("a bulk copy");
}
bool TensorMap::box_accessible(int, int) const {
    return false;
}
void TensorMap::load(int, int, void*) const {
    not_in_a_page("a bulk copy");
}
void TensorMap::store(int, int, const std::vector<unsigned char>&, const void*) const {
    not_in_a_page("a bulk copy");
}

}  // namespace cuda_on_cpu

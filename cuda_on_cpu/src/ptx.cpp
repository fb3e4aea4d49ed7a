// Functions for inline PTX that are too long for a header or need the block's runner: ptx_memory.h,
// ptx_threads.h, ptx_async.h.
#include "cuda_on_cpu/ptx.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <string>

#include "block.hpp"
#include "device.hpp"

// The sections with the program's `__constant__` variables (language.h): those that the host may
// write, and const ones. The linker defines these symbols if there are such variables; otherwise
// they are null.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const char __start_cuda_on_cpu_constant;
[[gnu::weak, gnu::visibility("hidden")]] extern const char __stop_cuda_on_cpu_constant;
[[gnu::weak, gnu::visibility("hidden")]] extern const char __start_cuda_on_cpu_const;
[[gnu::weak, gnu::visibility("hidden")]] extern const char __stop_cuda_on_cpu_const;
}

namespace cuda_on_cpu::ptx::isa {

// ---- Addresses ----------------------------------------------------------------------------------

std::uint64_t shared_address_of(const void* pointer, Site site) {
    return block_runner().shared_address(pointer, site);
}
void* shared_pointer(std::uint64_t address, std::size_t bytes, Site site) {
    return block_runner().shared_pointer(address, bytes, site);
}
bool is_shared(const void* pointer) {
    return block_runner().shared_of_cluster(pointer);
}
bool is_shared_of_block(const void* pointer) {
    return block_runner().shared_of_block(pointer);
}
bool is_local(const void* pointer) {
    const FibreStacks& stacks = block_runner().stacks();
    return pointer >= stacks.begin() && pointer < stacks.end() && !is_grid_constant(pointer);
}
bool is_grid_constant(const void* pointer) {
    return block_runner().scheduler().is_grid_constant(pointer);
}
bool is_constant(const void* pointer) {
    return (pointer >= &__start_cuda_on_cpu_constant && pointer < &__stop_cuda_on_cpu_constant) ||
           (pointer >= &__start_cuda_on_cpu_const && pointer < &__stop_cuda_on_cpu_const);
}

// ---- Threads ------------------------------------------------------------------------------------

std::uint32_t smid() {
    static std::atomic<std::uint32_t> os_threads = 0;
    static thread_local const std::uint32_t own = os_threads++;
    return own % multiprocessors();
}
std::uint32_t nsmid() {
    return multiprocessors();
}
std::uint64_t globaltimer() {
    poll();
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}
void exit() {
    block_runner().scheduler().end_thread();
}

int vote_at_named_barrier(BarrierKind kind, unsigned id, unsigned threads, bool predicate, Site site) {
    const NamedBarriers::Votes votes = block_runner().named_barriers().vote(id, threads, predicate, site);
    if (kind == BarrierKind::count) return static_cast<int>(votes.true_ones);
    return (kind == BarrierKind::all ? votes.true_ones == votes.all : votes.true_ones > 0) ? 1 : 0;
}

// ---- mbarriers ----------------------------------------------------------------------------------

std::uint64_t arrive_at_mbarrier(void* barrier, unsigned count, Site site) {
    return arrive_at_mbarrier(barrier, count, 0, site);
}
std::uint64_t arrive_at_mbarrier(void* barrier, std::int64_t count, std::int64_t bytes, Site site) {
    BlockRunner& runner = block_runner();
    auto* const word = static_cast<std::uint64_t*>(barrier);
    if (runner.shared().holds(word, sizeof *word)) return runner.mbarriers().arrive(word, count, bytes, site);
    const unsigned rank = shared_rank(word, site);
    auto* const here = static_cast<std::uint64_t*>(place_in_own_shared(word, rank));
    runner.mbarriers().arrive_at(here, rank, count, bytes, site);
    return 0;
}
std::uint64_t arrive_without_completing(void* barrier, unsigned count, Site site) {
    const auto state = read_mbarrier(static_cast<std::uint64_t*>(barrier));
    if (state && count >= state->pending)
        block_runner().fail(cudaErrorLaunchFailure,
                            "mbarrier.arrive.noComplete: " + std::to_string(count) +
                                " arrivals would end the phase, which expects " +
                                std::to_string(state->pending) + " more",
                            site);
    return arrive_at_mbarrier(barrier, count, 0, site);
}
void arrive_and_drop_at_mbarrier(void* barrier, Site site) {
    block_runner().mbarriers().arrive_and_drop(static_cast<std::uint64_t*>(barrier), site);
}
void init_mbarrier_for_cpp(void* barrier, std::int64_t arrivals, Site site) {
    block_runner().mbarriers().init_for_cpp(static_cast<std::uint64_t*>(barrier), arrivals, site);
}
void attach_copies_to_mbarrier(void* barrier, Site site) {
    block_runner().mbarriers().attach_copies(static_cast<std::uint64_t*>(barrier), site);
}
void wait_at_mbarrier(void* barrier, unsigned parity, const char* name, Site site) {
    block_runner().mbarriers().wait(static_cast<std::uint64_t*>(barrier), parity, site, name);
}
std::uint64_t arrive_at_mbarrier_expecting(void* barrier, unsigned bytes, Site site) {
    return arrive_at_mbarrier(barrier, 1, bytes, site);
}
void expect_at_mbarrier(void* barrier, int bytes, Site site) {
    block_runner().mbarriers().expect(static_cast<std::uint64_t*>(barrier), bytes, site);
}
bool test_mbarrier(void* barrier, unsigned parity, Site site) {
    return block_runner().mbarriers().test(static_cast<std::uint64_t*>(barrier), parity, site);
}

// ---- Bulk copies --------------------------------------------------------------------------------

void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier, Site site) {
    block_runner().async().load_bytes(shared, global, bytes, static_cast<std::uint64_t*>(barrier),
                                      AsyncEngine::kOwnBlock, site);
}
void bulk_store(void* global, const void* shared, unsigned bytes, Site site) {
    bulk_reduce(global, shared, bytes, Combine(), site);
}
void bulk_reduce(void* global, const void* shared, unsigned bytes, Combine combine, Site site) {
    block_runner().async().store_bytes(global, shared, bytes, combine, site);
}
void bulk_reduce_add(float* global, const float* shared, unsigned bytes, Site site) {
    const auto sum = [](std::uint64_t there, std::uint64_t value) {
        const auto as_float = [](std::uint64_t bits) {
            return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        };
        return std::uint64_t{std::bit_cast<std::uint32_t>(as_float(there) + as_float(value))};
    };
    bulk_reduce(global, shared, bytes, {sizeof(float), sum}, site);
}
void bulk_copy_to_block(void* there, const void* shared, unsigned bytes, void* barrier, Combine combine,
                        Site site) {
    block_runner().async().copy_to_block(there, shared, bytes, static_cast<std::uint64_t*>(barrier), combine,
                                         site);
}
void store_in_block(void* there, const void* value, unsigned bytes, void* barrier, Combine combine,
                    Site site) {
    block_runner().async().store_in_block(there, value, bytes, static_cast<std::uint64_t*>(barrier), combine,
                                          site);
}

}  // namespace cuda_on_cpu::ptx::isa

// What inline PTX calls and is too long for a header, or needs the block's runner: ptx_memory.h,
// ptx_threads.h, ptx_async.h.
#include "cuda_on_cpu/ptx.h"

#include <atomic>
#include <chrono>
#include <string>

#include "block.hpp"
#include "device.hpp"

namespace cuda_on_cpu::ptx::isa {

// ---- Addresses ---------------------------------------------------------------------------------------------------------

std::uint64_t shared_address_of(const void* pointer, Site site) {
    return block_runner().shared_address(pointer, site);
}
void* shared_pointer(std::uint64_t address, std::size_t bytes, Site site) {
    return block_runner().shared_pointer(address, bytes, site);
}
bool is_shared(const void* pointer) {
    return block_runner().shared_of_cluster(pointer);
}
bool is_local(const void* pointer) {
    const FibreStacks& stacks = block_runner().stacks();
    return pointer >= stacks.begin() && pointer < stacks.end();
}

// ---- Threads -----------------------------------------------------------------------------------------------------------

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
void arrive_at_named_barrier(unsigned id, unsigned threads, Site site) {
    block_runner().named_barriers().meet(id, threads, site, false);
}

// ---- mbarriers ---------------------------------------------------------------------------------------------------------

std::uint64_t arrive_at_mbarrier(void* barrier, unsigned count, Site site) {
    auto* const word = static_cast<std::uint64_t*>(barrier);
    const bool own = block_runner().shared().holds(word, sizeof *word);
    const unsigned rank = own ? 0 : shared_rank(word, site);
    const auto state = read_mbarrier(word);
    for (unsigned i = 0; i < count; ++i) {
        if (own) {
            block_runner().mbarriers().arrive(word, 0, site);
        } else {
            auto* const here = static_cast<std::uint64_t*>(place_in_own_shared(word, rank));
            block_runner().mbarriers().arrive_at(here, rank, site);
        }
    }
    return state ? state->parity : 0;
}
std::uint64_t arrive_at_mbarrier_expecting(void* barrier, unsigned bytes, Site site) {
    auto* const word = static_cast<std::uint64_t*>(barrier);
    const auto state = read_mbarrier(word);
    block_runner().mbarriers().arrive(word, bytes, site);
    return state ? state->parity : 0;
}
void expect_at_mbarrier(void* barrier, int bytes, Site site) {
    block_runner().mbarriers().expect(static_cast<std::uint64_t*>(barrier), bytes, site);
}
bool test_mbarrier(void* barrier, unsigned parity, Site site) {
    return block_runner().mbarriers().test(static_cast<std::uint64_t*>(barrier), parity, site);
}

// ---- Bulk copies -------------------------------------------------------------------------------------------------------

void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier, Site site) {
    block_runner().async().load_bytes(shared, global, bytes, static_cast<std::uint64_t*>(barrier), site);
}
void bulk_store(void* global, const void* shared, unsigned bytes, Site site) {
    block_runner().async().store_bytes(global, shared, bytes, site);
}

}  // namespace cuda_on_cpu::ptx::isa

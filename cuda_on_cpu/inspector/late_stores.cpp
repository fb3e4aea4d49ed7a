// Late stores, for programs that are linked with this instead of the inspector and run with
// CUDA_ON_CPU_STORES=late. Before each store to memory that other threads can access, a thread
// yields until all other threads of its block wait, have ended, or are about to store, too. So when
// two threads execute `counter += 1`, both read the old value and one addition is lost, and a read
// without a barrier finds the old value. A kernel without races computes the same results as
// without late stores.
#include <cstddef>
#include <cstdint>

#include "block.hpp"
#include "cuda_on_cpu/atomics.h"
#include "environment.hpp"
#include "shadow.hpp"

namespace {

using cuda_on_cpu::Operation;
using cuda_on_cpu::inspector::AccessKind;

void step_back(const volatile void* address) {
    static const bool late = cuda_on_cpu::environment().late_stores;
    cuda_on_cpu::BlockRunner* const runner = cuda_on_cpu::runner_of_os_thread;
    if (!late || runner == nullptr || !runner->runs_block()) return;  // the host's stores
    const auto* const byte = static_cast<const volatile char*>(address);
    if (byte >= runner->stacks().begin() && byte < runner->stacks().end()) return;  // a thread's own memory
    runner->scheduler().yield();
}

void access(Operation operation, const volatile void* address, std::size_t, std::uint64_t) {
    if (operation == Operation::kStore) step_back(address);
}

constexpr auto volatile_access = access;
constexpr auto access_range = access;

template <class Perform>
auto atomic(AccessKind, const volatile void*, unsigned, int, std::uint64_t, Perform perform) {
    return perform();
}

void before_compare_and_swap(const volatile void*, unsigned) {}
void before_exchange() {}
void before_retry(const volatile void*) {}
void fence(bool) {}

}  // namespace

#include "sanitizer_interface.inc"

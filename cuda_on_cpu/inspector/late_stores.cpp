// Stores that come as late as they may, in programs that are linked with this in place of the
// inspector, and with CUDA_ON_CPU_STORES=late: a thread steps back before each store to memory that
// others see, until all others of its block wait, have ended or want to store, too. What it has
// read by then, others have read as well. So of two threads that do `counter += 1` one adds in
// vain, and who reads without a barrier what another writes finds what was there before. A kernel
// without races cannot tell.
#include <cstddef>
#include <cstdint>

#include "block.hpp"
#include "environment.hpp"
#include "shadow.hpp"

namespace {

using cuda_on_cpu::Operation;
using cuda_on_cpu::inspector::AccessKind;

void step_back(const volatile void* address) {
    static const bool late = cuda_on_cpu::environment().late_stores;
    cuda_on_cpu::BlockRunner* const runner = cuda_on_cpu::runner_of_os_thread;
    if (!late || runner == nullptr || !runner->running()) return;  // the host's stores
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

void before_retry(const volatile void*) {}
void fence(bool) {}

}  // namespace

#include "sanitizer_interface.inc"

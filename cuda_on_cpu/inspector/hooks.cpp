// The functions that instrumented code calls before each load and store, for the inspector.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "cuda_on_cpu/atomics.h"
#include "recorder.hpp"

namespace {

using cuda_on_cpu::Operation;
using cuda_on_cpu::inspector::AccessKind;
using cuda_on_cpu::inspector::checking;
using cuda_on_cpu::inspector::in_block;
using cuda_on_cpu::inspector::in_thread;
using cuda_on_cpu::inspector::of_block;
using cuda_on_cpu::inspector::of_thread;
using cuda_on_cpu::inspector::recording;

AccessKind kind_of(Operation operation) {
    return operation == Operation::kStore ? AccessKind::store : AccessKind::load;
}

// Out of line, so that the fast path saves no registers for it.
[[gnu::noinline]] void other_access(Operation operation, const volatile void* address, unsigned bytes,
                                    std::uint64_t place) {
    if (auto* checks = checking; checks != nullptr)
        checks->access(kind_of(operation), address, bytes, place, true);
    if (auto* recorder = recording; recorder != nullptr) recorder->access(operation, address, bytes, place);
}

[[gnu::always_inline]] inline void access(Operation operation, const volatile void* address, unsigned bytes,
                                          std::uint64_t place) {
    if (operation == Operation::kLoad && bytes >= 4 && recording != nullptr &&
        recording->note_usual_load(address, bytes, place))
        return;
    other_access(operation, address, bytes, place);
}

[[gnu::always_inline]] inline void volatile_access(Operation operation, const volatile void* address,
                                                   unsigned bytes, std::uint64_t place) {
    if (auto* checks = checking; checks != nullptr)
        checks->volatile_access(kind_of(operation), address, bytes, place);
    if (auto* recorder = recording; recorder != nullptr) recorder->access(operation, address, bytes, place);
}

[[gnu::always_inline]] inline void access_bytes(Operation operation, const volatile void* address,
                                                std::size_t bytes, std::uint64_t place,
                                                bool aligned = false) {
    if (bytes == 0) return;
    if (auto* checks = checking; checks != nullptr)
        checks->access(kind_of(operation), address, bytes, place, aligned);
    if (auto* recorder = recording; recorder != nullptr)
        recorder->access_range(operation, address, bytes, place);
}

// The last cast to a pointer to structures of that size whose address was not aligned for them
// (inspected_casts.h). Nothing else distinguishes such an access from one of a packed structure.
struct MisalignedCast {
    std::uintptr_t address = 0;
    std::size_t alignment = 1;
};
constexpr std::size_t kMostBytes = 64;
constinit thread_local MisalignedCast misaligned_casts[kMostBytes + 1];

[[gnu::always_inline]] inline void access_range(Operation operation, const volatile void* address,
                                                std::size_t bytes, std::uint64_t place) {
    const MisalignedCast& cast = misaligned_casts[bytes <= kMostBytes ? bytes : 0];
    const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(address) - cast.address;
    const bool needs_alignment = cast.alignment > 1 && apart % cast.alignment == 0;
    access_bytes(operation, address, bytes, place, needs_alignment);
}

// What the instrumented code has announced of its next atomic access (inspected_scope.h).
constinit thread_local bool next_in_block = false;
constinit thread_local bool next_in_thread = false;
// Not 0: the number of the exchange that comes next, whose result may be unused.
constinit thread_local unsigned next_may_be_unused = 0;
constinit thread_local unsigned exchanges = 0;
// The last atomic load, if its scope was a block, or a thread: the compare-and-swap that follows
// has the same.
constinit thread_local const volatile void* loaded_in_block = nullptr;
constinit thread_local const volatile void* loaded_in_thread = nullptr;

// An exchange without a use of its result only writes, but a GPU serves it like other exchanges.
Operation operation_of(AccessKind kind) {
    if (kind == AccessKind::atomic_load) return Operation::kAtomicLoad;
    if (kind == AccessKind::atomic_store && !cuda_on_cpu::result_unused) return Operation::kAtomicStore;
    return Operation::kAtomic;
}

// `perform` carries the operation out. The checks release the thread's clock before it, and acquire
// the clock at the address after it, because blocks on other OS threads run at the same time.
template <class Perform>
[[gnu::always_inline]] inline auto atomic(AccessKind kind, const volatile void* address, unsigned bytes,
                                          int order, std::uint64_t place, Perform perform) {
    const Operation operation = operation_of(kind);
    const bool is_load = kind == AccessKind::atomic_load;
    if (std::exchange(next_in_block, false)) kind = in_block(kind);
    if (std::exchange(next_in_thread, false)) {
        kind = in_thread(kind);
        order = __ATOMIC_RELAXED;
    }
    if (is_load) {
        loaded_in_thread = of_thread(kind) ? address : nullptr;
        loaded_in_block = of_block(kind) && !of_thread(kind) ? address : nullptr;
    }
    if (auto* checks = checking; checks != nullptr) checks->before_atomic(kind, address, bytes, order, place);
    if (auto* recorder = recording; recorder != nullptr) recorder->access(operation, address, bytes, place);
    const auto result = perform();
    if (auto* checks = checking; checks != nullptr) checks->after_atomic(kind, address, order);
    return result;
}

void before_compare_and_swap(const volatile void* address, unsigned bytes) {
    if (auto* checks = checking; checks != nullptr) checks->before_compare_and_swap(address, bytes);
}

void before_exchange() {
    const unsigned number = std::exchange(next_may_be_unused, 0);
    if (auto* checks = checking; checks != nullptr) checks->before_exchange(number);
}

// A load and the compare-and-swap that follows it are one atomic operation.
void before_retry(const volatile void* address) {
    if (loaded_in_block == address) next_in_block = true;
    if (loaded_in_thread == address) next_in_thread = true;
    if (recording != nullptr) recording->take_back_atomic_load(address);
}

void fence(bool for_other_blocks) {
    if (auto* checks = checking; checks != nullptr) checks->fence(for_other_blocks);
}

}  // namespace

#include "sanitizer_interface.inc"

// Replacements for memset and similar functions in instrumented code (inspected_memory.h), because
// the compiler does not instrument the originals.
extern "C" {
// The scope of the next atomic access is a block.
void cuda_on_cpu_next_in_block() {
    next_in_block = true;
}

void cuda_on_cpu_next_in_thread() {
    next_in_thread = true;
}

// The next atomic access is an exchange, whose result passes through cuda_on_cpu_used() if it has a
// use.
unsigned cuda_on_cpu_next_may_be_unused() {
    if (++exchanges == 0) ++exchanges;
    return next_may_be_unused = exchanges;
}
unsigned long long cuda_on_cpu_used(unsigned long long value, unsigned number) {
    if (auto* checks = checking; checks != nullptr) checks->exchange_used(number);
    return value;
}

// `alignment`: what structures of so many bytes need.
void cuda_on_cpu_misaligned_cast(const volatile void* pointer, std::size_t bytes, std::size_t alignment) {
    if (bytes <= kMostBytes) misaligned_casts[bytes] = {reinterpret_cast<std::uintptr_t>(pointer), alignment};
}

void* cuda_on_cpu_memset(void* to, int value, std::size_t bytes) {
    access_bytes(Operation::kStore, to, bytes, PLACE);
    return std::memset(to, value, bytes);
}
void* cuda_on_cpu_memcpy(void* to, const void* from, std::size_t bytes) {
    access_bytes(Operation::kLoad, from, bytes, PLACE);
    access_bytes(Operation::kStore, to, bytes, PLACE);
    return std::memcpy(to, from, bytes);
}
void* cuda_on_cpu_memmove(void* to, const void* from, std::size_t bytes) {
    access_bytes(Operation::kLoad, from, bytes, PLACE);
    access_bytes(Operation::kStore, to, bytes, PLACE);
    return std::memmove(to, from, bytes);
}
}  // extern "C"

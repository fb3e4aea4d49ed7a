// What instrumented code calls before each load and store, for the inspector.
#include <cstddef>
#include <cstdint>

#include "recorder.hpp"

namespace {

using cuda_on_cpu::Operation;
using cuda_on_cpu::inspector::AccessKind;
using cuda_on_cpu::inspector::checking;
using cuda_on_cpu::inspector::recording;

AccessKind kind_of(Operation operation) {
    return operation == Operation::kStore ? AccessKind::store : AccessKind::load;
}

[[gnu::always_inline]] inline void access(Operation operation, const volatile void* address, unsigned bytes,
                                          std::uint64_t place) {
    if (auto* checks = checking; checks != nullptr)
        checks->access(kind_of(operation), address, bytes, place, true);
    if (auto* recorder = recording; recorder != nullptr) recorder->access(operation, address, bytes, place);
}

[[gnu::always_inline]] inline void volatile_access(Operation operation, const volatile void* address,
                                                   unsigned bytes, std::uint64_t place) {
    if (auto* checks = checking; checks != nullptr)
        checks->volatile_access(kind_of(operation), address, bytes, place);
    if (auto* recorder = recording; recorder != nullptr) recorder->access(operation, address, bytes, place);
}

[[gnu::always_inline]] inline void access_range(Operation operation, const volatile void* address,
                                                std::size_t bytes, std::uint64_t place) {
    if (auto* checks = checking; checks != nullptr)
        checks->access(kind_of(operation), address, bytes, place, false);
    if (auto* recorder = recording; recorder != nullptr)
        recorder->access_range(operation, address, bytes, place);
}

// `perform` carries the operation out. What it hands on is known to others before they can see it done, and what it
// has come by is known to its thread after it: blocks on other OS threads go on meanwhile.
template <class Perform>
[[gnu::always_inline]] inline auto atomic(AccessKind kind, const volatile void* address, unsigned bytes,
                                          int order, std::uint64_t place, Perform perform) {
    if (auto* checks = checking; checks != nullptr) checks->before_atomic(kind, address, bytes, order, place);
    if (auto* recorder = recording; recorder != nullptr)
        recorder->access(Operation::kAtomic, address, bytes, place);
    const auto result = perform();
    if (auto* checks = checking; checks != nullptr) checks->after_atomic(kind, address);
    return result;
}

// A load, and the try to store what was made of it, are one atomic operation.
void before_retry(const volatile void* address) {
    if (recording != nullptr) recording->take_back_atomic_load(address);
}

void fence() {
    if (auto* checks = checking; checks != nullptr) checks->fence();
}

}  // namespace

#include "sanitizer_interface.inc"

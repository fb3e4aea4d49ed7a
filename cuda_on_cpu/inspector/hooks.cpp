// What instrumented code calls before each load and store, in place of the thread sanitizer's own library. The names and what
// they mean are those of its interface (GCC: -fsanitize=thread; LLVM: tsan_interface.h and tsan_interface_atomic.h).
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "recorder.hpp"

namespace {

using cuda_on_cpu::Operation;
using cuda_on_cpu::inspector::AccessKind;
using cuda_on_cpu::inspector::checking;
using cuda_on_cpu::inspector::recording;

// Where the instrumented code goes on when the hook returns.
#define PLACE (reinterpret_cast<std::uint64_t>(__builtin_return_address(0)))

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
    if (bytes == 0) return;
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

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define PLAIN(bytes)                                               \
    void __tsan_read##bytes(void* address) {                       \
        access(Operation::kLoad, address, bytes, PLACE);           \
    }                                                              \
    void __tsan_write##bytes(void* address) {                      \
        access(Operation::kStore, address, bytes, PLACE);          \
    }                                                              \
    void __tsan_volatile_read##bytes(void* address) {              \
        volatile_access(Operation::kLoad, address, bytes, PLACE);  \
    }                                                              \
    void __tsan_volatile_write##bytes(void* address) {             \
        volatile_access(Operation::kStore, address, bytes, PLACE); \
    }                                                              \
    void __tsan_unaligned_read##bytes(void* address) {             \
        access_range(Operation::kLoad, address, bytes, PLACE);     \
    }                                                              \
    void __tsan_unaligned_write##bytes(void* address) {            \
        access_range(Operation::kStore, address, bytes, PLACE);    \
    }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
#undef PLAIN

void __tsan_read_range(void* address, std::size_t bytes) {
    access_range(Operation::kLoad, address, bytes, PLACE);
}
void __tsan_write_range(void* address, std::size_t bytes) {
    access_range(Operation::kStore, address, bytes, PLACE);
}

// Atomic operations the hook must carry out itself. They are all sequentially consistent: stronger than asked for is right.
#define FETCH(name, builtin, bits, Word)                                               \
    Word __tsan_atomic##bits##_##name(volatile Word* address, Word value, int order) { \
        return atomic(AccessKind::atomic, address, bits / 8, order, PLACE,             \
                      [=] { return builtin(address, value, __ATOMIC_SEQ_CST); });      \
    }
#define COMPARE_EXCHANGE(address, expected, desired) \
    __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define ATOMIC(bits, Word)                                                                                     \
    Word __tsan_atomic##bits##_load(const volatile Word* address, int order) {                                 \
        return atomic(AccessKind::atomic_load, address, bits / 8, order, PLACE,                                \
                      [=] { return __atomic_load_n(address, __ATOMIC_SEQ_CST); });                             \
    }                                                                                                          \
    void __tsan_atomic##bits##_store(volatile Word* address, Word value, int order) {                          \
        atomic(AccessKind::atomic_store, address, bits / 8, order, PLACE, [=] {                                \
            __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                \
            return 0;                                                                                          \
        });                                                                                                    \
    }                                                                                                          \
    FETCH(exchange, __atomic_exchange_n, bits, Word)                                                           \
    FETCH(fetch_add, __atomic_fetch_add, bits, Word)                                                           \
    FETCH(fetch_sub, __atomic_fetch_sub, bits, Word)                                                           \
    FETCH(fetch_and, __atomic_fetch_and, bits, Word)                                                           \
    FETCH(fetch_or, __atomic_fetch_or, bits, Word)                                                             \
    FETCH(fetch_xor, __atomic_fetch_xor, bits, Word)                                                           \
    FETCH(fetch_nand, __atomic_fetch_nand, bits, Word)                                                         \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile Word* address, Word* expected, Word desired,    \
                                                      int order, int) {                                        \
        return atomic(AccessKind::atomic, address, bits / 8, order, PLACE,                                     \
                      [=] { return COMPARE_EXCHANGE(address, expected, desired); });                           \
    }                                                                                                          \
    /* The stand-in's atomics that no instruction has: load, change, try to store, and again until it held. */ \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile Word* address, Word* expected, Word desired,      \
                                                    int order, int) {                                          \
        if (recording != nullptr) recording->take_back_atomic_load(address);                                   \
        return atomic(AccessKind::atomic, address, bits / 8, order, PLACE,                                     \
                      [=] { return COMPARE_EXCHANGE(address, expected, desired); });                           \
    }
ATOMIC(8, std::uint8_t)
ATOMIC(16, std::uint16_t)
ATOMIC(32, std::uint32_t)
ATOMIC(64, std::uint64_t)
#undef ATOMIC
#undef COMPARE_EXCHANGE
#undef FETCH

// __threadfence() and its like are sequentially consistent, the fence of a block is weaker (atomics.h).
void __tsan_atomic_thread_fence(int order) {
    if (auto* checks = checking; checks != nullptr) checks->fence(order == __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// What instrumented code calls in place of memset and its like (inspected_memory.h): the compiler has not looked into those.
void* cuda_on_cpu_memset(void* to, int value, std::size_t bytes) {
    access_range(Operation::kStore, to, bytes, PLACE);
    return std::memset(to, value, bytes);
}
void* cuda_on_cpu_memcpy(void* to, const void* from, std::size_t bytes) {
    access_range(Operation::kLoad, from, bytes, PLACE);
    access_range(Operation::kStore, to, bytes, PLACE);
    return std::memcpy(to, from, bytes);
}
void* cuda_on_cpu_memmove(void* to, const void* from, std::size_t bytes) {
    access_range(Operation::kLoad, from, bytes, PLACE);
    access_range(Operation::kStore, to, bytes, PLACE);
    return std::memmove(to, from, bytes);
}
#undef PLACE

}  // extern "C"

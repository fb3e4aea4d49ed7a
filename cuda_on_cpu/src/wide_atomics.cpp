// Atomic functions on 16 bytes.
#include <cstring>
#include <mutex>

#include "cuda_on_cpu/atomics.h"

namespace cuda_on_cpu {
namespace {

__extension__ using Bits128 = unsigned __int128;

Bits128 load(const void* from) {
    Bits128 bits;
    std::memcpy(&bits, from, sizeof bits);
    return bits;
}

#if defined(__x86_64__)
// Every x86-64 processor with more than one core has this instruction.
[[gnu::target("cx16")]] Bits128 compare_and_swap(Bits128* address, Bits128 expected, Bits128 desired) {
    return __sync_val_compare_and_swap(address, expected, desired);
}
#else
Bits128 compare_and_swap(Bits128* address, Bits128 expected, Bits128 desired) {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    const Bits128 old = *address;
    if (old == expected) *address = desired;
    return old;
}
#endif

}  // namespace

bool exchange_16_bytes(void* address, const void* value, void* old) {
    auto* const place = static_cast<Bits128*>(address);
    const Bits128 desired = load(value);
    Bits128 expected = 0;  // a guess; the first attempt returns the actual value
    for (;;) {
        const Bits128 found = compare_and_swap(place, expected, desired);
        if (found == expected) break;
        expected = found;
    }
    std::memcpy(old, &expected, sizeof expected);
    return expected != desired;
}

bool compare_and_swap_16_bytes(void* address, const void* expected, const void* desired, void* old) {
    const Bits128 wanted = load(expected);
    const Bits128 next = load(desired);
    const Bits128 found = compare_and_swap(static_cast<Bits128*>(address), wanted, next);
    std::memcpy(old, &found, sizeof found);
    return found == wanted && found != next;
}

}  // namespace cuda_on_cpu
